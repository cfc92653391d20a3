"""`make oracle-vllm`: what it asks for, what it refuses, what it compares and what it writes; no network, no engine."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from types import SimpleNamespace

import pytest
import vllm_draw
import vllm_extract

import oracle_vllm
import oracle_vllm_report
from aelius_math import catalogue
from aelius_math.vllm_versions import RELEASES
from oracle_vllm import Stop

LOCK = """
[[packages]]
name = "vllm"
version = "0.33.0"
sdist = { url = "address", size = 47101396, hashes = { sha256 = "f4c3" } }
"""
FULL = {"kind": "FullAttention", "num_layers": 8, "num_kv_heads": 8, "head_size": 128}
CASE = {"engine": {"max_model_len": 4096}, "layers": [FULL], "mtp_layers": [], "available_bytes": 1 << 30}


def case(**settings):
    return CASE | {"engine": CASE["engine"] | settings}


def stopped(function, *args):
    return str(pytest.raises(Stop, function, *args).value)


def test_a_version_is_taken_as_releases_are_named():
    assert [oracle_vllm.checked(text) for text in ("0.33.0", "v0.33", "0.28", "0.22.1")] == ["0.33.0", "0.33.0", "0.28.0", "0.22.1"]


@pytest.mark.parametrize("text", ["", "newest", "0.19.0", "0.33.0rc1", "0.22.1rc1"])
def test_a_version_that_cannot_be_run_is_refused_with_one_that_can(text):
    assert f"VERSION={RELEASES[0]}" in stopped(oracle_vllm.checked, text)


def test_a_release_too_old_to_run_may_still_be_compared_with_another():
    assert oracle_vllm.checked("0.17.1", to_run=False) == "0.17.1"
    assert "from 0.17.0 on can be compared" in stopped(oracle_vllm.checked, "0.16.0", "AGAINST", False)


def test_a_version_left_out_is_asked_for_and_not_called_wrong():
    assert stopped(oracle_vllm.checked, "").startswith("say which release: VERSION=")


def test_a_release_that_is_not_there_is_answered_with_its_neighbours():
    assert [oracle_vllm.nearest(version) for version in ("9.9.9", "0.22.7", "0.1")] == [RELEASES[0], "0.22.1 and 0.23.0", RELEASES[-1]]


def test_the_source_release_is_found_in_the_lock():
    assert oracle_vllm.located(LOCK, "0.33.0") == ("address", "f4c3", 47101396)
    assert "without its source" in stopped(oracle_vllm.located, LOCK.replace("sdist", "other"), "0.33.0")


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("x No solution found: Because there is no version of vllm==0.99.0", "knows no vLLM 0.99.0"),
        ("error: Failed to fetch: dns error", "needs the network"),
    ],
)
def test_an_unknown_release_and_an_absent_network_are_told_apart(monkeypatch, said, means):
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: SimpleNamespace(returncode=1, stdout="", stderr=said))
    assert means in stopped(oracle_vllm.resolved, "0.99.0")


def archive(path):
    with tarfile.open(path, "w:gz") as tar:
        for name in ("vllm-9/vllm/v1/kv_cache_interface.py", "vllm-9/vllm/_C.so", "vllm-9/setup.py", "vllm-9/vllm/../../out.py"):
            member = tarfile.TarInfo(name)
            member.size = 1
            tar.addfile(member, io.BytesIO(b"#"))


def test_only_the_python_files_of_the_engine_are_kept(tmp_path):
    archive(tmp_path / "a.tar.gz")
    with pytest.raises(tarfile.OutsideDestinationError):  # and nothing leaves the folder
        oracle_vllm.unpacked(tmp_path / "a.tar.gz", tmp_path / "in")
    assert [path.name for path in (tmp_path / "in").rglob("*") if path.is_file()] == ["kv_cache_interface.py"]


@pytest.mark.parametrize(("answer", "means"), [(b"other bytes", "SHA-256"), (None, "did not arrive")])
def test_a_download_that_is_not_what_the_index_says_is_thrown_away(monkeypatch, tmp_path, answer, means):
    def opened(url, timeout):
        if answer is None:
            raise TimeoutError("timed out")
        return io.BytesIO(answer)

    monkeypatch.setattr(oracle_vllm, "CACHE", tmp_path)
    monkeypatch.setattr(oracle_vllm, "resolved", lambda version: LOCK)
    monkeypatch.setattr(oracle_vllm.urllib.request, "urlopen", opened)
    assert means in stopped(oracle_vllm.fetched, "0.33.0")
    assert not list(tmp_path.iterdir())


def test_a_release_that_is_there_is_not_fetched_again(monkeypatch, tmp_path):
    there = tmp_path / "vllm-0.33.0" / "vllm" / "v1" / "kv_cache_interface.py"
    there.parent.mkdir(parents=True)
    there.touch()
    monkeypatch.setattr(oracle_vllm, "CACHE", tmp_path)
    monkeypatch.setattr(oracle_vllm, "resolved", lambda version: pytest.fail("asked the index"))
    assert oracle_vllm.fetched("0.33.0") == tmp_path / "vllm-0.33.0"


def test_an_engine_that_breaks_says_where_its_stubs_are(monkeypatch, tmp_path):
    broken = SimpleNamespace(returncode=1, stdout="", stderr="Traceback\nAttributeError: new_field")
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: broken)
    text = stopped(oracle_vllm.asked, tmp_path, [CASE])
    absent = SimpleNamespace(
        returncode=1, stdout="", stderr=f"x\nFileNotFoundError: [Errno 2] No such file or directory: '{tmp_path}/vllm/a.py'"
    )
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: absent)
    assert "vllm/a.py is asked for, and this release has no such file" in stopped(oracle_vllm.asked, tmp_path, [CASE])
    assert "new_field" in text and "vllm_stubs.py" in text and "Traceback (most" not in text


def test_cases_that_the_package_refuses_are_counted_by_field_and_not_asked():
    kept, refused = oracle_vllm.derived([CASE, case(tensor_parallel_size=3), case(mamba_cache_mode="all")], "0.33.0")
    assert [one["engine"]["version"] for one in kept] == ["0.33.0"]
    assert refused == {"tensor_parallel_size": 1, "mamba_cache_mode": 1}


def test_a_release_newer_than_the_package_is_planned_by_the_newest_rules():
    assert [oracle_vllm.known(version) for version in ("0.28.0", "0.33.1", "0.34.0")] == ["0.28.0", "0.33.1", RELEASES[0]]


def right(cases):
    return [oracle_vllm.compared(one, {"num_blocks": 0, "tokens": 0}) for one in cases]


@pytest.fixture
def engine(monkeypatch, tmp_path):
    """The tool with an engine that answers as `answers` says, and a golden file of its own."""
    golden = tmp_path / "golden"
    golden.mkdir()
    (golden / "0.30.0.json").write_text(json.dumps({"runs": [case(version="0.30.0") | {"planned": {"num_blocks": 1}}]}))
    monkeypatch.setattr(oracle_vllm, "ROOT", tmp_path)
    monkeypatch.setattr(oracle_vllm, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(oracle_vllm, "GOLDEN", golden)
    monkeypatch.setattr(oracle_vllm, "fetched", lambda version: tmp_path)
    monkeypatch.setattr(oracle_vllm, "asked", lambda folder, cases: right(cases))
    return SimpleNamespace(golden=golden, answers=lambda function: monkeypatch.setattr(oracle_vllm, "asked", function))


def cases_of(golden, version):
    return json.loads((golden / f"{version}.json").read_text())["runs"]


def test_where_all_agree_the_report_says_so_and_writes_nothing(engine, capsys):
    assert oracle_vllm.run("0.33.0", 20, False) == 0
    assert "differ 0" in capsys.readouterr().out and [file.name for file in engine.golden.iterdir()] == ["0.30.0.json"]


def test_differences_are_grouped_on_one_screen_and_stand_whole_in_a_file(engine, capsys):
    engine.answers(lambda folder, cases: [{**answer, "num_blocks": -1} for answer in right(cases)])
    assert oracle_vllm.run("0.33.0", 200, False) == 1
    out = capsys.readouterr().out
    assert "agree 0" in out and "num_blocks: vLLM -1, here" in out and "max_model_len=" in out and "more such groups" in out
    assert len(out.splitlines()) < 26
    whole = (oracle_vllm.CACHE / "vllm-0.33.0.differ.txt").read_text()
    assert "cache/vllm-0.33.0.differ.txt" in out and whole.count("num_blocks: vLLM -1") == int(out.partition("differ ")[2].split()[0])


def test_a_difference_says_what_drafts():
    mtp = case(num_speculative_tokens=1) | {"mtp_layers": [FULL | {"kind": "MLA"}]}
    drafter = case(num_speculative_tokens=1, draft=[FULL | {"kind": "SlidingWindow"}])
    said = [oracle_vllm_report.kinds(one) for one in (CASE, mtp, drafter)]
    assert said == ["FullAttention", "FullAttention, drafted by MLA", "FullAttention, drafted by SlidingWindow"]


def test_the_engines_answers_are_the_cases_of_that_version_only(engine, capsys):
    before = (engine.golden / "0.30.0.json").read_text()
    oracle_vllm.run("0.33.0", 60, True)
    cases = cases_of(engine.golden, "0.33.0")
    assert {one["engine"]["version"] for one in cases} == {"0.33.0"} and (engine.golden / "0.30.0.json").read_text() == before
    assert len({one["model"] for one in cases if "model" in one}) == len(catalogue.names())
    assert sum("model" not in one for one in cases) == oracle_vllm.KEPT_TOYS
    oracle_vllm.run("0.33.0", 60, True)
    assert cases_of(engine.golden, "0.33.0") == cases


def test_what_differed_once_becomes_a_case_and_stays_one_when_fewer_toys_are_drawn(engine, capsys):
    def last_is_wrong(folder, cases):
        return [*right(cases)[:-1], {**right(cases)[-1], "num_blocks": -1}]

    engine.answers(last_is_wrong)
    assert oracle_vllm.run("0.33.0", 100, True) == 1
    assert "fails until" in capsys.readouterr().out
    wrong = cases_of(engine.golden, "0.33.0")[-1]
    assert wrong["planned"]["num_blocks"] == -1 and len(cases_of(engine.golden, "0.33.0")) == 2 * len(catalogue.names()) + 30 + 1
    engine.answers(lambda folder, cases: right(cases))
    assert oracle_vllm.run("0.33.0", 40, True) == 0
    assert "passes" in capsys.readouterr().out
    assert oracle_vllm.plain(cases_of(engine.golden, "0.33.0")[-1]) == oracle_vllm.plain(wrong)


def test_what_the_engine_refuses_for_another_reason_is_a_difference_and_no_case(engine, capsys):
    engine.answers(lambda folder, cases: [{"error": "other", "text": "no"} for _ in cases])
    assert oracle_vllm.run("0.33.0", 0, True) == 1
    assert not (engine.golden / "0.33.0.json").exists()


def laid(root, **files):
    for name, text in files.items():
        file = root / "vllm" / "config" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def test_two_releases_are_compared_by_the_files_that_hold_the_planners_rules(tmp_path, monkeypatch, capsys):
    old = laid(tmp_path / "old", cache="a\nb\n", model="c\n", other="x\n")
    new = laid(tmp_path / "new", cache="a\nB\nC\n", vllm="d\n", other="y\n")
    assert oracle_vllm_report.changed(old, old) == []
    said = [("vllm/config/cache.py", "+2 -1 lines"), ("vllm/config/model.py", "gone"), ("vllm/config/vllm.py", "new")]
    assert oracle_vllm_report.changed(old, new) == said
    folders = {"0.22.0": old, "0.22.1": new}
    monkeypatch.setattr(oracle_vllm, "ROOT", tmp_path)
    monkeypatch.setattr(oracle_vllm, "fetched", folders.get)
    assert oracle_vllm.set_side_by_side("0.22.1", "0.22.0") == 0
    assert "diff -u old/vllm/config/cache.py new/vllm/config/cache.py" in capsys.readouterr().out
    monkeypatch.setattr(oracle_vllm, "fetched", lambda version: old)
    assert oracle_vllm.set_side_by_side("0.22.1", "0.22.0") == 0
    assert "no file" in capsys.readouterr().out


def test_what_is_wrong_is_one_sentence_and_no_traceback(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["oracle", "0.1"])
    assert oracle_vllm.main() == 2
    err = capsys.readouterr().err
    assert err.startswith("oracle-vllm: VERSION=0.1") and "Traceback" not in err


def test_the_same_cases_are_drawn_at_every_run_and_none_twice():
    first, second = ([*vllm_draw.of_catalogue(), *vllm_draw.toys(50)] for _ in range(2))
    texts = [json.dumps(one) for one in first]
    assert first == second and len(set(texts)) == len(texts)


SOURCE = """
import torch

def size(spec):
    return torch.numel(spec) if unknown else double(spec)

class Layer(torch.nn.Module):
    @property
    def block(self): return 16
    def spec(self): return super().spec() + self.block + extra
    def forward(self): return torch.zeros(1)
"""


def test_a_function_and_methods_of_a_file_run_without_the_file(tmp_path):
    file = tmp_path / "layer.py"
    file.write_text(SOURCE)
    given = {"unknown": False, "double": lambda number: 2 * number, "extra": 100}
    assert vllm_extract.functions(file, ("size", "absent"), given)["size"](21) == 42
    base = type("Base", (), {"spec": lambda self: 1})
    layer = vllm_extract.methods(file, "Layer", ("spec", "block"), base, given)()
    assert layer.spec() == 117 and not hasattr(layer, "forward")
    with pytest.raises(LookupError, match="no class Other"):
        vllm_extract.methods(file, "Other", ("spec",), base, given)
