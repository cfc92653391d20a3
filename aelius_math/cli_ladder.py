"""The command `ladder`: a pool cut into slices, counted in tokens or in the engine's blocks."""

from __future__ import annotations

import argparse

from aelius_math.cli import Result
from aelius_math.ladder import BlockCosts, BlockPool, Ladder
from aelius_math.units import AeliusError, ceil_div, parse_tokens, whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pool", metavar="T", help='tokens of the whole pool, such as "289,661"')
    parser.add_argument("--slices", default="64K,3x32K", help='big slices, such as 64K,3x32K (the default), or "none"')
    parser.add_argument("--shorts", default="auto", help="number of short slices; auto: as many as what is left holds")
    parser.add_argument("--short-tokens", metavar="S", help="tokens of a short slice; needed unless --shorts is 0")
    parser.add_argument("--reserve", default="0", metavar="F", help="fraction promised to no slice, such as 0.05")
    parser.add_argument("--k", type=int, default=1024, choices=(1024, 1000), help="tokens in a K (default 1024)")
    parser.add_argument("--budget", default="tokens", choices=("tokens", "blocks"), help="what is counted")
    parser.add_argument(
        "--count", default="planned", choices=("planned", "running"), help="whose blocks: the planner's, or steady running"
    )
    blocks = parser.add_argument_group(
        "budget in blocks", "what a request costs: --block-size, --fixed-blocks; how many blocks: --blocks, or --pool with --max-model-len"
    )
    blocks.add_argument("--block-size", type=int, metavar="N", help="tokens of one block")
    blocks.add_argument("--fixed-blocks", type=int, metavar="N", help="blocks a request holds beside its tokens' (planned)")
    blocks.add_argument("--transient-blocks", type=int, metavar="N", help="those of them that a running request lets go")
    blocks.add_argument("--blocks", type=int, metavar="N", help="usable blocks of the pool")
    blocks.add_argument("--max-model-len", metavar="L", help="the limit under which the engine printed --pool")


def parse_slices(text: str, k: int) -> tuple[int, ...]:
    """Tokens of each slice that a text such as "64K,3x32K" names.

    >>> parse_slices("64K,3x32K", 1000)
    (64000, 32000, 32000, 32000)
    """
    if text.strip() in ("", "none"):
        return ()
    slices: list[int] = []
    for part in text.split(","):
        number, _, size = part.strip().rpartition("x")
        if number and not (number.isascii() and number.isdigit() and 0 < int(number) <= 10_000):
            raise AeliusError("--slices", part, "a size such as 64K, or a number of them such as 3x32K")
        slices += [parse_tokens(size, "--slices", k)] * int(number or 1)
    return tuple(slices)


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


def block_costs(args: argparse.Namespace, pool: int | None) -> BlockPool:
    """The block costs that the flags state; what they leave open is refused by name."""
    for name in ("block_size", "fixed_blocks"):
        if getattr(args, name) is None:
            raise AeliusError("--" + name.replace("_", "-"), None, "what a request costs in blocks, for --budget blocks")
    if args.count == "running" and args.transient_blocks is None:
        raise AeliusError("--transient-blocks", None, "the fixed blocks that a running request lets go, for --count running")
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
    limit = parse_tokens(args.max_model_len, "--max-model-len", args.k)
    derived = usable_blocks(pool, limit, costs.blocks(limit))
    if args.blocks not in (None, derived):
        raise AeliusError("--blocks", args.blocks, f"{derived:,}, which is what --pool at --max-model-len says")
    return BlockCosts(
        usable_blocks=derived,
        block_size=costs.block_size,
        fixed_blocks=costs.fixed_blocks,
        transient_blocks=costs.transient_blocks,
    )


def run(args: argparse.Namespace) -> Result:
    pool: int | BlockPool | None = None if args.pool is None else parse_tokens(args.pool, "--pool", args.k)
    if args.budget == "blocks":
        pool = block_costs(args, pool if isinstance(pool, int) else None)
    elif pool is None:
        raise AeliusError("--pool", None, "the tokens of the whole pool")
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
