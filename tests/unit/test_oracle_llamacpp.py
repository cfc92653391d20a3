"""`make oracle-llamacpp`: what it lays, asks, refuses, compares and writes; no network, no engine."""

import json
import struct
import sys
from types import SimpleNamespace

import llamacpp_engine
import llamacpp_lay
import llamacpp_toys as toys
import pytest
from gguf_files import loadable_bytes
from llamacpp_lay import Stop
from llamacpp_runs import buffers_of, log_of, says

import oracle_llamacpp as oracle
from aelius_math.gguf_header import parse
from aelius_math.logs import read

BUILD = {"version": "0.11739", "build": "b11739", "commit": "0ce8cd114"}
LOG = """\
llama_context: constructing llama_context
llama_context: n_seq_max             = 2
llama_context: n_ctx                 = 4096
llama_context: n_ctx_seq             = 2048
llama_context: n_ctx_seq (2048) < n_ctx_train (262144) -- the full capacity of the model will not be utilized
llama_context: n_rs_seq              = 2
llama_kv_cache:        CPU KV buffer size =   136.00 MiB
llama_kv_cache: size =  136.00 MiB (  2048 cells,  16 layers,  2/2 seqs), K (q8_0):   68.00 MiB, V (q8_0):   68.00 MiB
llama_memory_recurrent:        CPU RS buffer size =   897.75 MiB
llama_memory_recurrent: size =  897.75 MiB (     2 cells,  64 layers,  2 seqs  2 rs_seq), R (f32):   33.75 MiB, S (f32):  864.00 MiB, P (f32):    0.00 MiB
sched_reserve:        CPU compute buffer size =     6.40 MiB
""".splitlines()  # of b11739, shortened
RUN = toys.run(4096, 2, k="q8_0", drafts=2)
SPARSE = """\
llama_context: constructing llama_context
llama_context: n_ctx                 = 4096
llama_kv_cache_dsa: creating main KV cache, size = 2048 cells
llama_kv_cache: size =  145.83 MiB (  2048 cells,  61 layers,  2/2 seqs), K (q8_0):  145.83 MiB, V (q8_0):    0.00 MiB
llama_kv_cache_dsa: creating indexer KV cache, size = 2048 cells
llama_kv_cache: size =   32.41 MiB (  2048 cells,  61 layers,  2/2 seqs), K (q8_0):   32.41 MiB, V (q8_0):    0.00 MiB
sched_reserve:        CPU compute buffer size =     6.40 MiB
"""


# reading the log


def test_the_sizes_of_a_log_are_read_and_are_what_the_package_says():
    arch = toys.MODELS["qwen3.5-27b"][0]
    assert log_of(LOG) == says(arch, toys.keys_of("qwen3.5-27b"), RUN, "oct")
    assert buffers_of(LOG) == {"kv": 136.0, "rs": 897.75}
    assert log_of(["llama_kv_cache: layer   0: dev = CPU"]) == {"kv": []}


def test_the_packages_own_reader_of_logs_reads_the_newest_builds_lines():
    (boot,) = read("\n".join(LOG))["boots"]
    assert (boot["kv_mib"], boot["recurrent_mib"], boot["recurrent"]["rs_seq"], boot["n_ctx"]) == (136.0, 897.75, 2, 4096)


def test_the_packages_own_reader_of_logs_takes_index_keys_for_no_drafter():
    (boot,) = read(SPARSE)["boots"]
    assert [cache["role"] for cache in boot["caches"]] == ["target", "target, index"]
    assert (boot["kv_mib"], boot["draft_kv_mib"], boot["swa_mib"]) == (178.24, None, None)


# what is asked


@pytest.mark.parametrize("name", toys.MODELS)
def test_every_toy_is_a_model_that_the_package_reads(name):
    for old in (False, True):
        for run in toys.runs_of(name, old=old)[:1]:
            assert says(toys.MODELS[name][0], toys.keys_of(name, old), run, "oct")["n_ctx"]


def test_a_build_that_cannot_leave_out_mtp_layers_is_given_files_without_them():
    assert toys.keys_of("deepseek-v3")["block_count"] == 62
    assert toys.keys_of("deepseek-v3", old=True)["block_count"] == 61
    assert "nextn_predict_layers" not in toys.keys_of("deepseek-v3", old=True)
    assert not any(run.get("mtp") for run in toys.runs_of("deepseek-v3", old=True))
    assert any(run.get("mtp") for run in toys.runs_of("qwen3.5-27b", old=True))


def test_the_flags_become_the_fields_of_the_engines_own_structure():
    assert toys.params(toys.run(3000, 2, kvu=True, ub=128, k="q8_0", v="q4_0", drafts=1)) == {
        "n_ctx": 3000, "n_seq_max": 2, "kv_unified": True, "n_ubatch": 128, "type_k": 8, "type_v": 2, "n_rs_seq": 1,
        "ctx_type": 0, "swa_full": False,
    }  # fmt: skip
    assert toys.params(toys.run(3000, mtp=True))["ctx_type"] == 1


def test_a_toy_file_holds_its_keys_and_no_vocabulary():
    keys = parse(loadable_bytes("llama", toys.keys_of("llama8b")), "toy.gguf")
    assert (keys["llama.block_count"], keys["tokenizer.ggml.model"]) == (32, "none")


def test_a_field_that_a_build_does_not_have_is_left_out():
    class Params:
        n_ctx = 0

    assert vars(llamacpp_engine.filled(Params(), {"n_ctx": 4096, "load_mtp": True})) == {"n_ctx": 4096}


# the engine's process

ENGINE = """\
import json, sys
job = json.load(sys.stdin)
print("a word of the engine's own")
print(json.dumps({"made": True, "log": []}))
for run in job["runs"]:
    if run["n_seq_max"] == 3:
        sys.exit("somewhere/ggml.c:1: GGML_ASSERT(false) failed")
    print(json.dumps({"made": run["n_seq_max"] != 2, "log": [str(run["n_ctx"])]}))
"""


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """A stand-in for the engine: it dies of three slots, and refuses two."""
    (tmp_path / "llamacpp_engine.py").write_text(ENGINE, encoding="utf-8")
    monkeypatch.setattr(oracle, "ENGINE", tmp_path)
    return tmp_path / "llamacpp_engine.py"


def test_it_starts_again_behind_a_run_that_kills_the_engine(engine, tmp_path):
    runs = [toys.run(1, 3), toys.run(2), toys.run(3, 3), toys.run(4, 2), toys.run(5, 3)]
    said = oracle.ask(tmp_path, "llama", toys.keys_of("llama8b"), {}, runs)
    died = {"died": "ggml.c:1: GGML_ASSERT(false) failed"}
    assert said[1:] == [died, {"made": True, "log": ["2"]}, died, {"made": False, "log": ["4"]}, died]


def test_a_model_that_is_not_loaded_stops_with_the_engines_words(engine, tmp_path):
    engine.write_text("import sys; sys.exit('no such architecture')", encoding="utf-8")
    with pytest.raises(Stop, match="llama: the engine did not load it, and says: no such architecture"):
        oracle.ask(tmp_path, "llama", {}, {}, [])
    engine.write_text("""print('{"made": false, "log": ["bad key"]}')""", encoding="utf-8")
    with pytest.raises(Stop, match="bad key"):
        oracle.ask(tmp_path, "llama", {}, {}, [])


def test_an_architecture_that_a_build_does_not_have_yet_is_told_from_a_file_that_is_wrong(engine, tmp_path):
    engine.write_text("""print('{"made": false, "log": ["unknown model architecture: laguna"]}')""", encoding="utf-8")
    with pytest.raises(oracle.Unknown):
        oracle.ask(tmp_path, "laguna", {}, {}, [])


# the command


@pytest.fixture
def laid(tmp_path, monkeypatch):
    """A build that is laid, and an engine that answers as the package does."""
    monkeypatch.setattr(oracle, "GOLDEN", tmp_path)
    monkeypatch.setattr(oracle, "ROOT", tmp_path)
    monkeypatch.setattr(oracle.llamacpp_lay, "lay", lambda root, version: tmp_path)
    monkeypatch.setattr(oracle.llamacpp_lay, "built", lambda folder: BUILD)
    monkeypatch.setattr(oracle.llamacpp_lay, "is_old", lambda folder: False)
    monkeypatch.setattr(oracle, "dry_run", lambda folder, old: {"model": "mamba-eighth", **oracle.DRY[1], "log": {"kv": 0.0, "rs": 9.5}})
    monkeypatch.setattr(toys, "MODELS", {name: toys.MODELS[name] for name in ("llama8b", "mamba-eighth")})

    def rows(folder, name, few, old):
        asked = toys.runs_of(name, few, old)
        return [{"model": name, **run, "log": says(toys.MODELS[name][0], toys.keys_of(name), run, "oct")} for run in asked]

    monkeypatch.setattr(oracle, "rows_of", rows)
    return tmp_path


def test_the_runs_are_kept_when_told_with_build_flags_and_keys(laid, capsys):
    assert oracle.main(["--few", "--write"]) == 0
    out = capsys.readouterr().out
    assert "llama.cpp b11739 (0ce8cd114), from llama-cpp-py-sync 0.11739, held against the rules that were read at 0c1e57098" in out
    assert "a dry run of mamba-eighth lays 0.00 MiB of cache and 9.50 MiB of state, as the rule of the fit pass has it" in out
    assert out.splitlines()[-2] == "All holds: nothing is to be done."
    assert "8 agree, 0 differ" in out
    file = json.loads((laid / "b11739.json").read_text(encoding="utf-8"))
    assert (file["build"], file["rules"], len(file["runs"])) == ("b11739", "oct", 8)
    assert file["common_keys"] | file["models"]["llama8b"]["keys"] == toys.keys_of("llama8b")


def test_where_something_differs_it_says_with_which_flags(laid, monkeypatch, capsys):
    honest = oracle.rows_of

    def spoilt(*asked):
        rows = honest(*asked)
        rows[0]["log"]["n_ctx"] += 256
        return rows

    monkeypatch.setattr(oracle, "rows_of", spoilt)
    assert oracle.main(["--few"]) == 1
    out = capsys.readouterr().out
    assert "6 agree, 2 differ" in out
    assert "llama8b: ctx 3000, type_k f16, type_v f16, slots 2, kv_unified False, ubatch 256" in out
    assert not list(laid.glob("*.json"))


def test_a_death_that_is_known_is_told_from_one_that_is_not(laid, monkeypatch, capsys):
    (name, words), *_ = toys.DIES
    honest = oracle.rows_of
    dead = {"model": name, **toys.run(1000, 3), "died": f"ggml.c:2083: {words}"}
    monkeypatch.setattr(oracle, "rows_of", lambda *asked: [*honest(*asked), dead])
    assert oracle.main(["--only", "mamba"]) == 0
    assert "(known, with three slots or more" in capsys.readouterr().out
    dead["died"] = "ggml.c:1: GGML_ASSERT(other) failed"
    assert oracle.main(["--only", "mamba"]) == 1
    out = capsys.readouterr().out
    assert "(not known" in out and "To look at: the engine died on 1 runs" in out


def test_every_death_among_the_golden_runs_is_a_known_one():
    files = [json.loads(file.read_text(encoding="utf-8")) for file in oracle.GOLDEN.glob("*.json")]
    dead = [row for file in files for row in file["runs"] if "died" in row]
    assert dead and not oracle.new_deaths(dead)


def test_a_dry_run_that_is_not_as_the_fit_pass_counts_is_something_to_look_at(laid, monkeypatch, capsys):
    monkeypatch.setattr(oracle, "dry_run", lambda folder, old: {"model": "mamba-eighth", **oracle.DRY[1], "log": {"kv": 0.0, "rs": 0.0}})
    assert oracle.main(["--only", "mamba"]) == 1
    assert "expected 0.00 and 9.50" in capsys.readouterr().out


def test_a_build_newer_than_the_newest_that_was_seen_says_what_is_left():
    assert "name b11800 in newest_seen" in oracle.to_do("b11800", "oct", [], [], True)


def test_how_far_it_is_is_said_where_nobody_sees_a_line_rewritten(laid, monkeypatch, capsys):
    monkeypatch.setattr(oracle, "EVERY", -1)
    oracle.main(["--few"])
    assert "runs so far, the last of mamba-eighth" in capsys.readouterr().err


def test_a_part_of_the_models_is_compared_but_not_kept(laid, capsys):
    assert oracle.main(["--only", "mamba"]) == 0
    assert "1 models, 12 runs" in capsys.readouterr().out
    assert oracle.main(["--only", "mamba", "--write"]) == 2
    assert "WRITE: got it with ONLY" in capsys.readouterr().err
    assert not list(laid.glob("*.json"))


def test_models_that_a_build_does_not_know_are_named_and_the_others_asked(laid, monkeypatch, capsys):
    honest = oracle.rows_of

    def rows(folder, name, few, old):
        if name == "mamba-eighth":
            raise oracle.Unknown(name)
        return honest(folder, name, few, old)

    monkeypatch.setattr(oracle, "rows_of", rows)
    assert oracle.main(["--few"]) == 0
    assert "not asked, as the build does not know them: mamba\n" in capsys.readouterr().out


def test_what_it_cannot_do_it_says_in_one_line_without_a_traceback(capsys):
    assert oracle.main(["--only", "nothing"]) == 2
    assert capsys.readouterr().err.startswith("oracle-llamacpp: ONLY: got 'nothing', expected a part of one of llama8b")
    assert oracle.main(["--version", "newest"]) == 2
    assert "VERSION: got 'newest', expected a build of llama.cpp, as b11739" in capsys.readouterr().err


def test_builds_up_to_julys_are_held_against_julys_rules_and_later_ones_against_octobers():
    assert [oracle.rules_of(build) for build in ("b9879", "b9982", "b9983", "b11739", "b10330.2")] == [
        "jul", "jul", "oct", "oct", "oct",
    ]  # fmt: skip


# laying a build


@pytest.mark.parametrize("version", ["b11739", "11739", "0.11739"])
def test_a_build_may_be_written_as_its_tag_its_number_or_the_packages_version(version):
    assert llamacpp_lay.release(version) == "0.11739"


def test_another_machine_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(llamacpp_lay.platform, "machine", lambda: "arm64")
    with pytest.raises(Stop, match="machine: got .* arm64, expected Linux x86_64"):
        llamacpp_lay.lay(tmp_path, "b11739")


def test_a_build_that_is_not_to_be_had_is_said_with_the_installers_words(tmp_path, monkeypatch):
    failed = SimpleNamespace(returncode=1, stderr="error: no\n room.")
    monkeypatch.setattr(llamacpp_lay.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(Stop, match="error: no room. Give another VERSION"):
        llamacpp_lay.install(tmp_path, "llama-cpp-py-sync==0.1")


def test_a_build_that_is_not_there_is_named_and_nothing_else(tmp_path, monkeypatch):
    failed = SimpleNamespace(returncode=1, stderr="x No solution found: Because there is no version of llama-cpp-py-sync==0.999999 and ...")
    monkeypatch.setattr(llamacpp_lay.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(Stop, match="^VERSION: the index has no build b999999 of llama.cpp. Not every build is there") as caught:
        llamacpp_lay.install(tmp_path, "llama-cpp-py-sync==0.999999")
    assert "sync" not in str(caught.value)


def test_a_build_that_is_laid_is_not_laid_again(tmp_path, monkeypatch):
    made = []

    def install(folder, package):
        made.append(package)
        inside = folder / "llama_cpp_py_sync"
        inside.mkdir()
        (inside / "_cffi_bindings.py").write_text("bool no_alloc;", encoding="utf-8")
        (inside / "_version.py").write_text(
            '__version__ = "0.11739"\n__llama_cpp_commit__ = "0ce8cd114"\n__llama_cpp_tag__ = "b11739"\n', encoding="utf-8"
        )

    monkeypatch.setattr(llamacpp_lay, "install", install)
    monkeypatch.setattr(llamacpp_lay.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(llamacpp_lay.platform, "system", lambda: "Linux")
    folder = llamacpp_lay.lay(tmp_path, "")
    assert folder.name == "llamacpp-0.11739"
    assert llamacpp_lay.lay(tmp_path, "b11739") == folder
    assert made == ["llama-cpp-py-sync"]
    assert llamacpp_lay.built(folder) == BUILD
    assert llamacpp_lay.is_old(folder)


def test_a_package_that_does_not_say_its_build_is_refused(tmp_path):
    (tmp_path / "llama_cpp_py_sync").mkdir()
    (tmp_path / "llama_cpp_py_sync" / "_version.py").write_text('__version__ = "0.1"\n', encoding="utf-8")
    with pytest.raises(Stop, match="llama_cpp_commit, llama_cpp_tag not found"):
        llamacpp_lay.built(tmp_path)


# the names of an older C library


def elf(symbol=b"__isoc23_strtol", wanted=b"GLIBC_2.38"):
    """A library that wants one function of one version: the tables that the loader reads, and nothing else."""
    strings = b"\0" + symbol + b"\0" + wanted + b"\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 0, 0, 0)
    versions = struct.pack("<HH", 0, 2)
    needed = struct.pack("<HHIII", 1, 1, 0, 16, 0) + struct.pack("<IHHII", 0, 0, 2, 2 + len(symbol), 0)
    parts, at = [strings, symbols, versions, needed], 64
    kinds = [3, 11, 0x6FFFFFFF, 0x6FFFFFFE]
    table = [bytes(64)]
    for kind, part in zip(kinds, parts, strict=True):
        info = 1 if kind == 0x6FFFFFFE else 0
        table.append(struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, at, len(part), 1, info, 0, 0))
        at += len(part)
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<Q", head, 0x28, at)
    struct.pack_into("<HH", head, 0x3A, 64, len(table))
    return bytes(head) + b"".join(parts) + b"".join(table), len(head) + len(strings) + 24


def test_a_function_of_the_newer_c_library_is_wanted_by_its_plain_name_and_nothing_else_changes():
    before, entry = elf()
    after = llamacpp_lay.relink(before)
    assert struct.unpack_from("<I", after, entry)[0] == 1 + len("__isoc23_")
    assert after[64 + 10 : 64 + 16] == b"strtol"
    changed = [index for index in range(len(before)) if before[index] != after[index]]
    assert changed == [entry, entry + 24 + 2, entry + 24 + 4 + 16 + 4]  # the name, its version, and the demand, made weak


def test_a_library_that_wants_nothing_newer_is_left_as_it_is():
    before, _ = elf(b"strtol", b"GLIBC_2.34")
    assert llamacpp_lay.relink(before) == before


def test_a_library_that_wants_another_function_of_it_is_refused():
    with pytest.raises(Stop, match="wants strlcpy of glibc 2.38"):
        llamacpp_lay.relink(elf(b"strlcpy")[0])


def test_what_is_no_library_is_refused():
    with pytest.raises(Stop, match="expected a little-endian ELF file"):
        llamacpp_lay.relink(b"MZ" + bytes(80))


def test_the_c_librarys_version_is_read():
    assert llamacpp_lay.libc() > (2, 0) or sys.platform != "linux"
