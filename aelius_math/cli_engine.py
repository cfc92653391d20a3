"""vLLM's settings as flags, by vLLM's own names: shared by the commands `pool` and `explain`."""

from __future__ import annotations

import argparse

from aelius_math.cli_config import load_model
from aelius_math.units import AeliusError, parse_tokens

NUMBERS = {
    "tensor_parallel_size": ("-tp", "cards that the model is split over (default 1)"),
    "max_num_batched_tokens": (None, "the token budget of a step: needed with window, chunk or such drafter layers"),
    "num_speculative_tokens": (None, "draft tokens of each step (default 0)"),
    "block_size": (None, "tokens of a block"),
    "num_gpu_blocks_override": (None, "blocks, whatever the memory holds"),
    "max_num_seqs": (None, "sequences at a time: with recurrent layers at most the pool's blocks"),
    "kernel_block_size": (None, "smallest block of the attention backend (not a flag of vLLM's)"),
    "pipeline_parallel_size": ("-pp", "only 1 is derived"),
    "decode_context_parallel_size": ("-dcp", "only 1 is derived"),
    "prefill_context_parallel_size": ("-pcp", "only 1 is derived"),
}


def add_engine(parser: argparse.ArgumentParser) -> None:
    """A flag for every field of Engine."""
    group = parser.add_argument_group("vLLM's settings, by its own names")
    group.add_argument("--vllm-version", dest="version", metavar="V", help="release (default 0.28.0)")
    group.add_argument("--max-model-len", metavar="L", help="tokens, such as 262144, 256K (K is 1,024) or 262k (1,000)")
    group.add_argument("--kv-cache-dtype", metavar="D", help="auto, fp8, int8_per_token_head, nvfp4 ... (default auto)")
    for name, (short, text) in NUMBERS.items():
        flags = [short] if short else []
        group.add_argument(*flags, "--" + name.replace("_", "-"), type=int, metavar="N", help=text)
    caching = argparse.BooleanOptionalAction
    group.add_argument("--enable-prefix-caching", action=caching, help="the release's default, if not given")
    group.add_argument("--mamba-cache-mode", metavar="M", help="none, align or all")
    group.add_argument("--mamba-ssm-cache-dtype", metavar="D", help="dtype of recurrent state, if not the model's")
    group.add_argument("--gdn-prefill-backend", metavar="B", help="triton (assumed), flashinfer, cutedsl ...")
    group.add_argument("--kda-prefill-backend", metavar="B", help="triton (assumed), flashkda or flashinfer")
    group.add_argument("--speculative-method", metavar="M", help="mtp (the default where the model has it), ngram ...")
    group.add_argument("--draft", metavar="CONFIG", help="the config of a separate drafter")
    group.add_argument(
        "--disable-hybrid-kv-cache-manager",
        dest="hybrid_kv_cache_manager",
        action="store_false",
        default=None,
        help="window and chunk layers are planned as full",
    )


def settings(args: argparse.Namespace) -> dict[str, object]:
    """What was given, by Engine's field names."""
    names = [*NUMBERS, "version", "max_model_len", "kv_cache_dtype", "enable_prefix_caching", "mamba_cache_mode"]
    names += [
        "mamba_ssm_cache_dtype",
        "gdn_prefill_backend",
        "kda_prefill_backend",
        "speculative_method",
        "draft",
        "hybrid_kv_cache_manager",
    ]
    given = {name: value for name in names if (value := getattr(args, name)) is not None}
    if "max_model_len" in given:
        given["max_model_len"] = length(str(given["max_model_len"]), "--max-model-len")
    if "draft" in given:
        given["draft"] = load_model(str(given["draft"])).layers
    return given


def length(text: str, flag: str) -> int:
    """Tokens that a text names; as vLLM has it, K is 1,024 and k is 1,000.

    >>> length("256K", "--max-model-len"), length("256k", "--max-model-len")
    (262144, 256000)
    """
    return parse_tokens(text, flag, k=1000 if text.strip().endswith("k") else 1024)


def limit(given: dict[str, object], most: int | None) -> dict[str, object]:
    """The settings with a max_model_len: the model's own where none is given, as in vLLM."""
    if "max_model_len" not in given:
        if most is None:
            raise AeliusError("--max-model-len", None, "a number of tokens: the config states no longest length")
        given["max_model_len"] = most
    return given
