"""The command `model`: the contract's shape, text for people, and one line for each mistake."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from aelius_math.cli import main

LLAMA = {"model_type": "llama", "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
         "hidden_size": 4096, "torch_dtype": "bfloat16"}  # fmt: skip


def written(folder: Path, content: object, name: str = "config.json") -> str:
    path = folder / name
    data = content if isinstance(content, bytes) else (content if isinstance(content, str) else json.dumps(content)).encode()
    path.write_bytes(data)
    return str(path)


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["model", *words, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    found: dict[str, Any] = json.loads(out)
    return found


def test_json_holds_the_contract_s_names(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "qwen3.8-27b")
    expected = {"schema": 1, "name": "Qwen/Qwen3.8-27B", "kv_bytes_per_token": 65_536, "index_bytes_per_token": 0,
                "window_bytes": 0, "conv_elements": 1_474_560, "state_elements": 37_748_736,
                "mtp_bytes_per_token": 4_096, "dtype": "bf16"}  # fmt: skip
    assert {name: found[name] for name in expected} == expected
    assert [(layer["kind"], layer["num_layers"]) for layer in found["layers"]] == [("GatedDeltaNet", 48), ("FullAttention", 16)]
    assert [layer["num_layers"] for layer in found["mtp_layers"]] == [1]


def test_a_file_standard_input_and_the_catalogue_are_read_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from_file = answer(capsys, written(tmp_path, LLAMA))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(LLAMA).encode())))
    assert answer(capsys, "-") == from_file
    same = ("kv_bytes_per_token", "window_bytes", "state_elements", "dtype", "layers")
    stored = answer(capsys, "llama-3.1-8b")
    assert {name: stored[name] for name in same} == {name: from_file[name] for name in same}


def test_a_byte_order_mark_and_a_bare_infinity_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = json.dumps({**LLAMA, "time_step_limit": [0.0, float("inf")], "x": float("nan")})
    assert "Infinity" in text
    assert answer(capsys, written(tmp_path, b"\xef\xbb\xbf" + text.encode()))["kv_bytes_per_token"] == 131_072


def test_the_two_golden_configs_with_infinity_are_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden = json.loads((Path(__file__).parents[1] / "golden" / "models.json").read_text("utf-8"))
    infinite = [case for case in golden if "Infinity" in json.dumps(case["config"])]
    assert len(infinite) == 2
    for case in infinite:
        found = answer(capsys, written(tmp_path, case["config"]))
        assert found["kv_bytes_per_token"] == case["truth"]["bytes_per_token_bf16"]


def test_text_says_what_each_kind_of_layer_keeps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "gemma-3-27b"]) == 0
    out = capsys.readouterr().out
    assert "8,192 bytes a token each, up to 1,024 tokens" in out
    assert "each token             81,920 bytes" in out


def test_the_dtype_may_be_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = {name: value for name, value in LLAMA.items() if name != "torch_dtype"}
    assert answer(capsys, written(tmp_path, bare))["dtype"] is None
    assert answer(capsys, written(tmp_path, bare), "--dtype", "float16")["dtype"] == "fp16"


BAD: dict[str, tuple[object, str]] = {
    "not JSON": ("model: llama", "CONFIG: got '{path}', expected JSON: Expecting value at line 1"),
    "half of it": (json.dumps(LLAMA)[:50], "CONFIG: got '{path}', expected JSON: "),
    "empty": ("", "CONFIG: got '{path}', expected JSON; it is empty"),
    "white space": (" \n", "CONFIG: got '{path}', expected JSON; it is empty"),
    "a list": ([LLAMA], "CONFIG: got [{{'model_type': 'llama', "),
    "a number": ("17", "CONFIG: got 17, expected a JSON object"),
    "binary": (b"\x00\xff\xfe\x80PK", "CONFIG: got '{path}', expected JSON text in UTF-8"),
    "deep": ("[" * 100_000, "CONFIG: got '{path}', expected JSON nested less deeply"),
    "a number of 5,000 digits": ('{"num_hidden_layers": 1' + "0" * 5000 + "}", "expected JSON with numbers of fewer digits"),
    "a lacking field": ({**LLAMA, "num_hidden_layers": None}, "num_hidden_layers: got None, expected a whole number"),
    "zero heads": ({**LLAMA, "num_attention_heads": 0}, "num_attention_heads: got 0, expected a whole number"),
    "a text for a number": ({**LLAMA, "num_hidden_layers": "32"}, "num_hidden_layers: got '32', expected a whole number"),
    "an unknown kind": ({**LLAMA, "model_type": "llama9"}, "model_type: got 'llama9', expected a model type"),
    "half a GGUF": (b"GGUF\x03\x00", "CONFIG: got '6 bytes', expected a GGUF file of at least 8 bytes"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_that_names_field_and_value(
    content: object, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, content)
    assert main(["model", path, "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1 and err.startswith("aelius-math model: ")
    assert message.format(path=path)[:70].split("'/")[0] in err and "Traceback" not in err


def test_a_directory_and_an_unreadable_name_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for word in (str(tmp_path), "a\0b", str(tmp_path / "config.json"), "qwen3.8-28b", ""):
        assert main(["model", word]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
    assert main(["model", "qwen3.8-28b"]) == 2
    assert "near to it: qwen3.8-27b" in capsys.readouterr().err


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "loop.json"
    path.symlink_to(path)
    assert main(["model", str(path)]) == 2
    assert "expected a file that can be read: Too many levels of symbolic links" in capsys.readouterr().err
