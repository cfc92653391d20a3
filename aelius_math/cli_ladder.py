"""The command `ladder`: a pool cut into slices, counted in tokens or in the engine's blocks.

What a request costs in blocks comes from CONFIG and vLLM's flags, or is stated by hand; it is never assumed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from aelius_math.cli import Result
from aelius_math.cli_config import EXPECTED, load_model
from aelius_math.cli_engine import add_engine, length, limit, settings
from aelius_math.cli_pool import refusal
from aelius_math.ladder import BlockCosts, BlockPool, Ladder
from aelius_math.ladder_slices import parse_slices
from aelius_math.units import AeliusError, ceil_div, parse_bytes, parse_tokens, whole
from aelius_math.vllm import DoesNotFit, Engine, Pool, plan_pool
from aelius_math.vllm_explain import Candidate, explain


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", metavar="CONFIG", nargs="?", help=f"for --budget blocks: {EXPECTED}")
    parser.add_argument("--dtype", help="the model's own dtype, where its config does not say")
    parser.add_argument("--pool", metavar="T", help='tokens of the whole pool, such as "289,661"')
    parser.add_argument("--slices", default="64K,3x32K", help='big slices, such as 64K,3x32K (the default), or "none"')
    parser.add_argument("--shorts", default="auto", help="number of short slices; auto: as many as what is left holds")
    parser.add_argument("--short-tokens", metavar="S", help="tokens of a short slice; needed unless --shorts is 0")
    parser.add_argument("--reserve", default="0", metavar="F", help="fraction promised to no slice, such as 0.05")
    parser.add_argument("--k", type=int, default=1024, choices=(1024, 1000), help="tokens in a K (default 1024)")
    parser.add_argument("--budget", default="tokens", choices=("tokens", "blocks"), help="what is counted")
    parser.add_argument("--count", default="planned", choices=("planned", "running"), help="blocks of the planner, or of steady running")
    blocks = parser.add_argument_group(
        "budget in blocks",
        "With CONFIG: --available, or the --pool that the engine printed. Without: --block-size (tokens of one block), "
        "--fixed-blocks, and --blocks, or --pool with --max-model-len.",
    )
    blocks.add_argument("--available", metavar="SIZE", help="bytes for KV on one card, such as 5.24GiB")
    blocks.add_argument("--blocks", type=int, metavar="N", help="usable blocks of the pool")
    blocks.add_argument("--fixed-blocks", type=int, metavar="N", help="planned blocks of a request beside its tokens'")
    blocks.add_argument("--transient-blocks", type=int, metavar="N", help="those of them that go when a request runs")
    add_engine(parser)


def usable_blocks(tokens: int, max_model_len: int, blocks_per_request: int) -> int:
    """Usable blocks [int] of the pool that the engine prints as so many tokens; the null block is not among them.

    Inverts vLLM's int(num_blocks / blocks_per_request * max_model_len) (0.20.1 and later).

    >>> usable_blocks(289661, 262144, 181)
    199
    """
    num_blocks = ceil_div(tokens * blocks_per_request, max_model_len)
    if int(num_blocks / blocks_per_request * max_model_len) != tokens:
        raise AeliusError("--pool", tokens, f"what a whole number of blocks prints, {blocks_per_request} a request")
    return num_blocks - 1


def stated_costs(args: argparse.Namespace, pool: int | None) -> BlockPool:
    """The block costs that the flags state; what they leave open is refused by name."""
    for name in ("block_size", "fixed_blocks"):
        if getattr(args, name) is None:
            what = "what a request costs in blocks (or a CONFIG with its settings), for --budget blocks"
            raise AeliusError("--" + name.replace("_", "-"), None, what)
    if args.count == "running" and args.transient_blocks is None:
        raise AeliusError("--transient-blocks", None, "the fixed blocks that go when a request runs, for --count running")
    costs = BlockCosts(
        usable_blocks=0 if args.blocks is None else whole("--blocks", args.blocks),
        block_size=whole("--block-size", args.block_size),
        fixed_blocks=whole("--fixed-blocks", args.fixed_blocks, 0),
        transient_blocks=args.transient_blocks,
    )
    if args.max_model_len is None or pool is None:
        if args.blocks is None:
            raise AeliusError("--blocks", None, "the pool's usable blocks, or --pool with --max-model-len")
        return costs
    most = length(args.max_model_len, "--max-model-len")
    derived = usable_blocks(pool, most, costs.blocks(most))
    if args.blocks not in (None, derived):
        raise AeliusError("--blocks", args.blocks, f"{derived:,}, which is what --pool at --max-model-len says")
    return replace(costs, usable_blocks=derived)


def planned_pool(args: argparse.Namespace, tokens: int | None) -> Pool:
    """The pool that vLLM plans for CONFIG: from the bytes it has, or from the tokens it printed."""
    for name in ("blocks", "fixed_blocks", "transient_blocks"):
        if getattr(args, name) is not None:
            raise AeliusError("--" + name.replace("_", "-"), getattr(args, name), "nothing beside CONFIG, which says it")
    model = load_model(args.config, dtype=args.dtype)
    given = limit(settings(args), model.max_position_embeddings)
    if args.available is not None:
        sizes = [parse_bytes(size, "--available") for size in args.available.split(",")]
        pool = plan_pool(model, Engine(**given), sizes if len(sizes) > 1 else sizes[0])  # type: ignore[arg-type]
        if tokens not in (None, pool.tokens):
            raise AeliusError("--pool", tokens, f"{pool.tokens:,}, which is what --available gives")
        return pool
    if tokens is None:
        raise AeliusError("--available", None, "the bytes for KV on one card, or --pool: the tokens that the engine printed")
    most = int(str(given.pop("max_model_len")))
    found = explain(tokens, most, model, **given)  # type: ignore[arg-type]
    if len(found.candidates) != 1:
        raise AeliusError("--pool", tokens, unexplained(found.candidates, found.tried))
    (chosen,) = found.candidates
    return plan_pool(model, chosen.engine, chosen.available_bytes)


def unexplained(candidates: Sequence[Candidate], tried: int) -> str:
    """Why a printed pool does not say which setting printed it."""
    if not candidates:
        return f"what some setting of this model prints; none of the {tried:,} tried does"
    names = sorted({name for one in candidates for name in one.settings})
    open_ = [name for name in names if len({str(one.settings.get(name)) for one in candidates}) > 1]
    flags = ", ".join("--" + name.replace("_", "-") for name in open_)
    return f"a number that one setting prints; {len(candidates)} do, so say which: {flags}"


def refuse_idle_flags(args: argparse.Namespace) -> None:
    """A flag that changes nothing is a mistake: it is named."""
    idle = dict(settings(args)) if args.config is None else {}
    idle["available"] = args.available if args.config is None else None
    if args.budget == "blocks":
        for name in ("block_size", "max_model_len"):
            idle.pop(name, None)
    else:
        idle |= {name: getattr(args, name) for name in ("blocks", "fixed_blocks", "transient_blocks")}
    for name, value in idle.items():
        if value is not None:
            flag = "--" + name.replace("_", "-").replace("version", "vllm-version")
            needs = "--budget blocks" if args.config is not None or name.endswith(("blocks", "size", "len")) else "a CONFIG"
            raise AeliusError(flag, value, f"{needs} beside it: without, it changes nothing")


def run(args: argparse.Namespace) -> Result:
    refuse_idle_flags(args)
    tokens = None if args.pool is None else parse_tokens(args.pool, "--pool", args.k)
    pool: int | BlockPool
    try:
        if args.config is not None and (args.budget == "blocks" or tokens is None):
            pool = planned_pool(args, tokens)
        elif args.budget == "blocks":
            pool = stated_costs(args, tokens)
        elif tokens is None:
            raise AeliusError("--pool", None, "the tokens of the whole pool, such as --pool 289661")
        else:
            pool = tokens
    except DoesNotFit as refused:
        model = load_model(args.config, dtype=args.dtype)
        return refusal(model.name, Engine(**limit(settings(args), model.max_position_embeddings)), refused)  # type: ignore[arg-type]
    shorts: int | str = int(args.shorts) if args.shorts.isascii() and args.shorts.isdigit() else args.shorts
    short_tokens = None if args.short_tokens is None else parse_tokens(args.short_tokens, "--short-tokens", args.k)
    ladder = Ladder(
        pool=pool,
        slices=parse_slices(args.slices, args.k),
        shorts=shorts,
        short_tokens=short_tokens,
        reserve=args.reserve,
        budget=args.budget,
        count=args.count,
    )
    return Result(payload(ladder, args), text(ladder, args), 0 if ladder.left >= 0 else 1)


def payload(ladder: Ladder, args: argparse.Namespace) -> dict[str, object]:
    """The JSON shape; amounts are tokens or blocks, as budget_kind says, sizes of slices always tokens."""
    return {
        "budget_kind": ladder.budget,
        "count": ladder.count if ladder.budget == "blocks" else None,
        "k": args.k,
        "total": ladder.total,
        "slices": list(ladder.slices),
        "shorts": ladder.shorts,
        "short_tokens": ladder.short_tokens,
        "reserve": ladder.reserved,
        "promised": ladder.promised,
        "left": ladder.left,
        "seats": ladder.seats,
        "fits": ladder.left >= 0,
    }


def text(ladder: Ladder, args: argparse.Namespace) -> str:
    """The same for people: a line per size of slice, then what it comes to."""
    unit = ladder.budget
    lines = [f"{'slice':>10} {'number':>7} {unit + ' each':>12} {'together':>12}"]
    for tokens in sorted(set(ladder.places), reverse=True):
        number, cost = ladder.places.count(tokens), ladder.cost(tokens)
        lines.append(f"{tokens:>10,} {number:>7,} {cost:>12,} {number * cost:>12,}")
    lines.append(f"promised {ladder.promised:,} of {ladder.total:,} {unit}, reserve {ladder.reserved:,}, left {ladder.left:,}")
    if ladder.left < 0:
        share = 100 * ladder.promised / max(1, ladder.total)
        lines.append(f"does not fit: {share:.1f}% is promised; the first {ladder.seats} of {len(ladder.places)} can be held")
    else:
        lines.append(f"seats: {ladder.seats:,}, {ladder.shorts:,} of them short")
    return "\n".join(lines)
