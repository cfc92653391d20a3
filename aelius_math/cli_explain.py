"""`aelius-math explain --tokens T --max-model-len L CONFIG`: which settings print a logged pool."""

from __future__ import annotations

import argparse

from aelius_math.cli import Result
from aelius_math.cli_config import add_config, load_model
from aelius_math.cli_engine import add_engine, length, limit, settings
from aelius_math.units import GIB, AeliusError, parse_bytes
from aelius_math.vllm_explain import Candidate, Explanation, explain

OMITTED = ("draft", "max_model_len")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.add_argument("--tokens", required=True, metavar="T", help='as logged: "GPU KV cache size: 289,661 tokens"')
    parser.add_argument("--max-concurrency", type=float, metavar="X", help='as logged: "Maximum concurrency ...: 1.10x"')
    parser.add_argument("--available", metavar="SIZE", help='as logged: "Available KV cache memory: 5.24 GiB"')
    add_engine(parser)


def run(args: argparse.Namespace) -> Result:
    model = load_model(args.config, dtype=args.dtype)
    given = limit(settings(args), model.max_position_embeddings)
    most = given.pop("max_model_len")
    if args.max_concurrency is not None and not 0 < args.max_concurrency < 1e9:
        raise AeliusError("--max-concurrency", args.max_concurrency, "a number above 0, as printed")
    found = explain(
        length(args.tokens, "--tokens"),
        int(str(most)),
        model,
        max_concurrency=args.max_concurrency,
        available_kv_gib=None if args.available is None else parse_bytes(args.available, "--available") / GIB,
        **given,  # type: ignore[arg-type]
    )
    shown = {name: value for name, value in given.items() if name not in OMITTED}
    payload = {
        "name": model.name,
        "tokens": length(args.tokens, "--tokens"),
        "max_model_len": most,
        "ambiguous": found.ambiguous,
        "candidates": [flat(candidate, shown) for candidate in found.candidates],
        "searched": {name: list(values) for name, values in found.searched.items()},
        "fixed": shown,
        "tried": found.tried,
    }
    return Result(payload, text(model.name, args.tokens, found))


def flat(candidate: Candidate, given: dict[str, object]) -> dict[str, object]:
    """A candidate's settings, and what they make of the pool."""
    return {
        **given,
        **candidate.settings,
        "same_as": list(candidate.same_as),
        "num_blocks": candidate.num_blocks,
        "blocks_per_request": candidate.blocks_per_request,
        "attention_block_size": candidate.block_size,
        "available_bytes": candidate.available_bytes,
    }


def text(name: str, tokens: str, found: Explanation) -> str:
    """The same for people."""
    count = sum(1 + len(candidate.same_as) for candidate in found.candidates)
    verdict = "no setting tried prints it" if not count else "one setting prints it" if count == 1 else f"{count} settings print it"
    lines = [f"{name}, {tokens} tokens: {verdict}.", ""]
    for candidate in found.candidates:
        chosen = {key: value for key, value in candidate.settings.items() if value is not None}
        words = ", ".join(f"{key} {value}" for key, value in chosen.items())
        same = f" (or {', '.join(candidate.same_as)})" if candidate.same_as else ""
        lines.append(f"  {candidate.num_blocks:,} / {candidate.blocks_per_request:,} blocks: {words}{same}")
    lines += ["", f"Tried {found.tried:,} settings:"]
    for key, values in found.searched.items():
        lines.append(f"  {key}: {', '.join('default' if value is None else str(value) for value in values)}")
    return "\n".join(lines)
