"""The command `pool`: its shape, its flags, its refusals."""

from __future__ import annotations

import argparse
import json

import pytest

from aelius_math import cli_pool
from aelius_math.cli import main
from aelius_math.vllm import Engine

ARTICLE = (
    "pool Qwen3.8-27B --available 5.24GiB --max-model-len 262144 --tensor-parallel-size 2 --kv-cache-dtype fp8 "
    "--num-speculative-tokens 4 --enable-prefix-caching"
)


def printed(capsys, words):
    code = main(words.split())
    out = capsys.readouterr()
    return code, out.out, out.err


def test_the_articles_pool_in_json(capsys):
    code, out, err = printed(capsys, ARTICLE + " --json")
    shape = json.loads(out)
    assert (code, err, shape["schema"], shape["refused"]) == (0, "", 1, False)
    names = ("block_size", "num_blocks", "blocks_per_request", "fixed_blocks_per_request", "tokens")
    assert [shape[name] for name in names] == [1616, 200, 181, 18, 289_661]
    assert f"{shape['max_concurrency']:.2f}" == "1.10"
    assert shape["steps"][-1]["value"] == 289_661


def test_a_pool_that_does_not_fit_exits_one_with_its_shape_on_standard_output(capsys):
    code, out, err = printed(capsys, ARTICLE.replace("fp8", "auto") + " --json")
    shape = json.loads(out)
    assert (code, err) == (1, "")
    assert (shape["refused"], shape["longest_max_model_len"], shape["num_blocks"]) == (True, 146_880, 198)
    assert shape["needed_bytes"] == 340 * 28_409_856


def test_people_read_the_same_numbers(capsys):
    code, out, _ = printed(capsys, ARTICLE + " --steps")
    assert code == 0 and "289,661" in out and "int(200 / 181 * 262144)" in out
    code, out, _ = printed(capsys, ARTICLE.replace("fp8", "auto"))
    assert code == 1 and "146,880" in out


def test_of_several_cards_the_smallest_binds(capsys):
    _, one, _ = printed(capsys, ARTICLE + " --json")
    _, two, _ = printed(capsys, ARTICLE.replace("5.24GiB", "9GiB,5.24GiB") + " --json")
    assert json.loads(one)["num_blocks"] == json.loads(two)["num_blocks"]


def test_the_models_own_longest_length_is_the_default(capsys):
    _, out, _ = printed(capsys, ARTICLE.replace("--max-model-len 262144 ", "") + " --json")
    assert json.loads(out)["max_model_len"] == 262_144


def test_every_field_of_engine_has_its_flag():
    parser = argparse.ArgumentParser()
    cli_pool.add_arguments(parser)
    assert set(Engine.__dataclass_fields__) <= {action.dest for action in parser._actions}


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (("5.24GiB", "5.24G"), "--available"),
        (("5.24GiB", "-1"), "--available"),
        (("5.24GiB", "1GiB,2GiB,3GiB"), "available_bytes"),
        (("262144", "0"), "--max-model-len"),
        (("262144", "lots"), "--max-model-len"),
        (("fp8", "q8_0"), "kv_cache_dtype"),
        (("fp8", "fp9"), "kv_cache_dtype"),
        (("tokens 4", "tokens -1"), "num_speculative_tokens"),
        (("size 2", "size 3"), "tensor_parallel_size"),
        (("size 2", "size 0"), "tensor_parallel_size"),
        (("Qwen3.8-27B", "no-such-model"), "CONFIG"),
        (("--enable", "--vllm-version 0.99.0 --enable"), "version"),
        (("--enable", "--vllm-version 0.20.1rc1 --enable"), "version"),
        (("--enable", "--vllm-version 0.16.0 --enable"), "version"),
        (("--enable", "--pipeline-parallel-size 2 --enable"), "pipeline_parallel_size"),
        (("--enable", "--decode-context-parallel-size 2 --enable"), "decode_context_parallel_size"),
        (("--enable", "--mamba-cache-mode some --enable"), "mamba_cache_mode"),
        (("--enable", "--max-num-seqs 1024 --enable"), "max_num_seqs"),
        (("--enable", "--block-size 0 --enable"), "block_size"),
    ],
)
def test_bad_input_is_one_line_that_names_it_and_nothing_else(capsys, change, name):
    assert change[0] in ARTICLE
    try:
        code, out, err = printed(capsys, ARTICLE.replace(*change))
    except SystemExit as stopped:  # argparse
        code, (out, err) = stopped.code, capsys.readouterr()
    assert (code, out) == (2, "")
    assert name in err and err.count("\n") == 1
