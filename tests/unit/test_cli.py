"""The command line as a whole: a mistake is one line on standard error and exit code 2, never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from aelius_math.cli import COMMANDS, main


def called(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    try:
        code = main(list(words))
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_and_takes_json(capsys: pytest.CaptureFixture[str], command: str) -> None:
    code, out, err = called(capsys, command, "--help")
    assert code == 0 and "--json" in out and err == ""


@pytest.mark.parametrize("words", [(), ("nonsense",), ("model",), ("model", "--nonsense", "x"), ("ledger", "extra")])
def test_a_mistake_in_the_words_is_one_line_and_exit_code_two(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    code, out, err = called(capsys, *words)
    assert code == 2 and out == ""
    assert err.count("\n") == 1 and err.startswith("aelius-math")


@pytest.mark.parametrize("text", ["", "[]", "{", "{}", "7", "null", '{"model_type": "nonsense"}', "\x00", '{"a": 1e999}'])
def test_bad_json_to_model_is_one_line_and_exit_code_two(capsys: pytest.CaptureFixture[str], tmp_path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    code, out, err = called(capsys, "model", str(path))
    assert code == 2 and out == ""
    assert err.count("\n") == 1 and ": got " in err and "expected" in err


def test_json_is_one_object_of_schema_one(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, "model", "qwen3.8-27b", "--json")
    found = json.loads(out)
    assert code == 0 and found["schema"] == 1 and found["kv_bytes_per_token"] == 65_536


def test_a_reader_that_stops_early_sees_no_traceback() -> None:
    run = subprocess.run(f'"{sys.executable}" -m aelius_math ledger | head -n 1', shell=True, capture_output=True, text=True, check=False)
    assert run.stdout.count("\n") == 1 and run.stderr == ""


def test_a_command_does_not_load_the_others() -> None:
    code = (
        "import sys; from aelius_math.cli import main; main(['model', 'qwen3.8-27b']); "
        "sys.exit(any(name in sys.modules for name in ('aelius_math.vllm', 'aelius_math.llamacpp', 'numpy', 'matplotlib')))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
