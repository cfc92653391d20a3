"""`aelius-math pool CONFIG --available 5.24GiB`: vLLM's KV pool, or why the engine would refuse to start."""

from __future__ import annotations

import argparse

from aelius_math.cli import Result
from aelius_math.cli_config import add_config, load_model
from aelius_math.cli_engine import add_engine, limit, settings
from aelius_math.units import parse_bytes, show_bytes
from aelius_math.vllm import DoesNotFit, Engine, Pool, plan_pool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.add_argument(
        "--available",
        required=True,
        metavar="SIZE",
        help="bytes for KV on one card, such as 5.24GiB; one size for each card, with commas: the smallest binds",
    )
    parser.add_argument("--steps", action="store_true", help="print the derivation, line by line")
    add_engine(parser)


def run(args: argparse.Namespace) -> Result:
    sizes = [parse_bytes(size, "--available") for size in args.available.split(",")]
    model = load_model(args.config, dtype=args.dtype)
    engine = Engine(**limit(settings(args), model.max_position_embeddings))  # type: ignore[arg-type]
    try:
        pool = plan_pool(model, engine, sizes if len(sizes) > 1 else sizes[0])
    except DoesNotFit as refused:
        return refusal(model.name, engine, refused)
    return Result(payload(pool), text(pool, args.steps))


def refusal(name: str, engine: Engine, refused: DoesNotFit) -> Result:
    """What is printed when one full request does not fit; exit code 1."""
    payload = {"name": name, **refused.numbers, "max_model_len": engine.max_model_len}
    lines = [
        f"{name}: refused. One request of {engine.max_model_len:,} tokens does not fit.",
        "",
        f"  needed     {show_bytes(refused.needed_bytes):>12}, {refused.blocks_per_request:,} blocks",
        f"  available  {show_bytes(int(str(refused.value))):>12}, {refused.num_blocks:,} blocks",
        f"  longest max_model_len that fits  {refused.longest_max_model_len:,}",
    ]
    return Result(payload, "\n".join(lines), 1)


def payload(pool: Pool) -> dict[str, object]:
    """The JSON shape."""
    return {
        **pool.numbers,
        "groups": [group._asdict() for group in pool.groups],
        "steps": [step._asdict() for step in pool.steps],
        "notes": list(pool.notes),
    }


def text(pool: Pool, steps: bool) -> str:
    """The same for people."""
    engine = pool.engine
    cards = f", {engine.tensor_parallel_size} cards" if engine.tensor_parallel_size > 1 else ""
    counts = "/".join(str(group.num_layers) for group in pool.groups)
    fixed = f", {pool.fixed_blocks_per_request} of them for state" if pool.fixed_blocks_per_request else ""
    lines = [
        f"{pool.model.name}, vLLM {engine.version}, {pool.plan.dtype} cache{cards}",
        "",
        f"  {pool.tokens:>13,}  tokens: the pool as logged, at a limit of {engine.max_model_len:,}",
        f"  {pool.max_concurrency:>13.2f}  full requests at a time",
        "",
        f"  {pool.num_blocks:>13,}  blocks, {pool.usable_blocks:,} usable",
        f"  {pool.blocks_per_request:>13,}  blocks for one full request{fixed}",
        f"  {pool.block_size:>13,}  tokens in a block",
        f"  {pool.block_size_bytes:>13,}  bytes of a block on one card ({show_bytes(pool.block_size_bytes)})",
        f"  {len(pool.groups):>13,}  groups of {counts} layers",
    ]
    if steps:
        lines.append("")
        width = max(len(step.name) for step in pool.steps)
        for step in pool.steps:
            value = f"{step.value:,.3f}" if isinstance(step.value, float) else f"{step.value:,}"
            lines.append(f"  {step.symbol:>2}  {step.name:<{width}}  {value:>15} {step.unit}")
            lines.append(f"      {step.formula} = {step.numbers}   ({step.source})")
    lines += ["", *pool.notes] if pool.notes else []
    return "\n".join(lines)
