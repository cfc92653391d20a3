"""The article's service as scenes for the simulation: its rig, its policies, and the stored results of long runs.

The rig is inferred, not stated: it is the one that prints the article's pool (see the note on it).
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from aelius_math import service
from aelius_math.demand import assumed
from aelius_math.ladder import BlockCosts, Ladder, slice_sizes
from aelius_math.ledger import given
from aelius_math.scene import Policy, Rig, Scene
from aelius_math.units import AeliusError
from aelius_math.vllm import Pool

DRAFTS: int = given("drafts")

SHORT = slice_sizes(given("pool") - sum(Ladder.slices), given("ladder_shorts"))[-1]
"""Tokens of a short slice: the largest of which eighteen fit."""


@cache
def pool(num_speculative_tokens: int = DRAFTS, enable_prefix_caching: bool = True) -> Pool:
    """The pool of the article's two cards under a setting; by default the one that prints its number.

    >>> pool().tokens, pool().usable_blocks, pool(0, False).tokens
    (289661, 199, 335728)
    """
    return service.pool(num_speculative_tokens=num_speculative_tokens, enable_prefix_caching=enable_prefix_caching)


@cache
def rig(num_speculative_tokens: int = DRAFTS, enable_prefix_caching: bool = True) -> Rig:
    """That pool as the simulation takes it. At rest a conversation keeps one state of each recurrent group: inferred."""
    planned = pool(num_speculative_tokens, enable_prefix_caching)
    costs = BlockCosts(
        usable_blocks=planned.usable_blocks,
        block_size=planned.block_size,
        fixed_blocks=planned.fixed_blocks_per_request,
        transient_blocks=planned.blocks(1) - planned.blocks(1, running=True),
    )
    states = sum(group.spec == "MambaSpec" for group in planned.groups) if enable_prefix_caching else 0
    return Rig(costs=costs, tokens=planned.tokens, prefix_caching=enable_prefix_caching, cached_fixed=states)


def in_tokens(**changes: Any) -> Ladder:
    """The article's ladder, in tokens."""
    return Ladder(**{"pool": given("pool"), "short_tokens": SHORT, **changes})


def in_blocks(**changes: Any) -> Ladder:
    """The same big slices counted in the engine's blocks, planned count, shorts derived."""
    return Ladder(**{"pool": pool(), "budget": "blocks", "short_tokens": SHORT, **changes})


@cache
def policies() -> dict[str, tuple[Policy, Rig]]:
    """Each way to hand out the pool, by name, with the rig it is tried on.

    The draft is granted as its authors meant it, as if all it promises were there.
    """
    promised = in_tokens(shorts=20, short_tokens=16_384).promised
    bare = rig(0, False)
    ways = {
        "flat": (in_tokens(slices=(), short_tokens=131_072), 300.0, rig()),
        "ladder": (in_tokens(), 300.0, rig()),
        "ladder, idle 0 s": (in_tokens(), 0.0, rig()),
        "draft": (in_tokens(pool=promised, shorts=20, short_tokens=16_384), 300.0, rig()),
        "no gate": (None, 0.0, rig()),
        "blocks, idle hold": (in_blocks(), 300.0, rig()),
        "blocks, idle 0 s": (in_blocks(), 0.0, rig()),
        "ladder, no MTP, no caching": (in_tokens(), 300.0, bare),
        "blocks, no MTP, no caching, idle 0 s": (in_blocks(pool=pool(0, False)), 0.0, bare),
    }
    return {name: (Policy(name=name, ladder=ladder, idle_timeout=idle), on) for name, (ladder, idle, on) in ways.items()}


def scene(name: str, *, demand: dict[str, float] | None = None, **changes: Any) -> Scene:
    """A policy's scene by name, under the assumed demand with some of its lines changed.

    >>> scene("ladder", scale=2).policy.ladder.seats
    22
    """
    policy, on = policies()[name]
    return Scene(**{"demand": assumed(**(demand or {})), "policy": policy, "rig": on, **changes})


@cache
def stored() -> dict[str, Any]:
    """The results of the long runs, as `make simulate` wrote them, with seeds and version.

    Raises AeliusError if they are of another rig than the article's is now.
    """
    data: dict[str, Any] = json.loads(files("aelius_math").joinpath("simulated.json").read_text(encoding="utf-8"))
    if data["rig"] != simulated_rig():
        raise AeliusError("simulated.json", data["rig"], f"runs of the article's rig as it is now, {simulated_rig()}: make simulate")
    return data


def simulated_rig() -> dict[str, int]:
    """What of the rig and the ladder the long runs rest on [blocks and tokens].

    >>> simulated_rig()["usable_blocks"], simulated_rig()["pool"]
    (199, 289661)
    """
    costs = rig().costs
    return {
        "pool": given("pool"),
        "tokens": rig().tokens,
        "short": SHORT,
        "usable_blocks": costs.usable_blocks,
        "block_size": costs.block_size,
        "fixed_blocks": costs.fixed_blocks,
    }
