"""vLLM's KV pool: how many blocks fit, what one request takes of them, and the tokens that the engine logs.

The engine's own arithmetic, rule by rule, so its integers come out. `plan_pool` plans (`aelius_math.vllm_plan`: what
does not depend on the memory), then fills the memory and checks that one request fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aelius_math.model import Model
from aelius_math.records import Record
from aelius_math.units import AeliusError, whole
from aelius_math.vllm_engine import DoesNotFit, Engine
from aelius_math.vllm_groups import Group
from aelius_math.vllm_plan import Plan, make_plan

if TYPE_CHECKING:
    from aelius_math.vllm_explain import explain
    from aelius_math.vllm_steps import Step

__all__ = ["DoesNotFit", "Engine", "Group", "Pool", "explain", "plan_pool"]


def __getattr__(name: str) -> object:
    """`explain` is loaded when it is asked for: a plan does not need the search."""
    if name == "explain":
        from aelius_math.vllm_explain import explain

        return explain
    raise AttributeError(name)


class Pool(Record):
    """The pool of one card, as planned. All fields are whole numbers but max_concurrency, the engine's own float.

    block_size              tokens, before pages are unified (the number in "Setting attention block size to ...")
    page_size_bytes         bytes of one layer's page; None where one group sums pages of several sizes
    block_size_bytes        bytes of one block on one card: a page of each layer of the fullest group
    groups                  (spec, layers, tokens in a block), one for each block table
    num_blocks              blocks, the null block counted
    blocks_per_request      blocks that one request of max_model_len takes by the planner's count
    fixed_blocks_per_request  of these, the blocks of the recurrent groups
    tokens                  as logged: "GPU KV cache size"
    """

    model: Model
    engine: Engine
    available_bytes: int
    block_size: int
    page_size_bytes: int | None
    block_size_bytes: int
    groups: tuple[Group, ...]
    num_blocks: int
    blocks_per_request: int
    fixed_blocks_per_request: int
    tokens: int
    max_concurrency: float
    plan: Plan

    @property
    def usable_blocks(self) -> int:
        """Blocks [int] that requests can hold: block 0 is the null block (vllm/v1/core/block_pool.py)."""
        return self.num_blocks - 1

    def blocks(self, tokens: int, running: bool = False, peak: bool = False) -> int:
        """Blocks [int] of one request of `tokens`.

        The planner's count, that the logged pool rests on. `running`: what it holds between two steps, read in the
        engine's source and not run: in mode align a recurrent group's second block is there only while a state
        is copied. `peak` counts it. The draft tokens' slots at the end of the sequence are not counted.
        """
        whole("tokens", tokens)
        tables, request = self.plan.tables, self.plan.request
        if not running:
            return sum(table.blocks(tokens, request) for table in tables)
        held = [table.running(tokens, request) for table in tables]
        if peak:
            held = [
                table.blocks(tokens, request) if table.buckets[0].layer.recurrent else count
                for table, count in zip(tables, held, strict=True)
            ]
        return sum(held)

    @property
    def numbers(self) -> dict[str, object]:
        """The pool under the names of the command's JSON, without groups, steps and notes."""
        own = ("available_bytes", "block_size", "page_size_bytes", "block_size_bytes", "num_blocks", "usable_blocks")
        counted = ("blocks_per_request", "fixed_blocks_per_request", "tokens", "max_concurrency")
        return {
            "name": self.model.name,
            "refused": False,
            "version": self.engine.version,
            "max_model_len": self.engine.max_model_len,
            "kv_cache_dtype": self.plan.dtype,
            "mamba_cache_mode": self.plan.mode,
            **{name: getattr(self, name) for name in own + counted},
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know beside the numbers."""
        from aelius_math.vllm_steps import notes

        return notes(self)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The derivation, line by line."""
        from aelius_math.vllm_steps import steps

        return steps(self)


def plan_pool(model: Model, engine: Engine, available_bytes: int | Sequence[int]) -> Pool:
    """The KV pool of one card: blocks and tokens [int], from the bytes that the engine has left for it.

    `available_bytes` is per card, one number or one for each of the tensor_parallel_size cards; the smallest binds.
    Raises DoesNotFit where the engine would refuse to start, AeliusError for a setting that it would not take.

    >>> from aelius_math import catalogue
    >>> engine = Engine(max_model_len=262144, tensor_parallel_size=2, kv_cache_dtype="fp8", num_speculative_tokens=4)
    >>> pool = plan_pool(catalogue.load("Qwen3.8-27B"), engine, 200 * 28131328)
    >>> pool.block_size, pool.num_blocks, pool.blocks_per_request, pool.tokens
    (1616, 200, 181, 289661)
    """
    available = smallest(available_bytes, engine.tensor_parallel_size)
    return fill(model, engine, make_plan(model, engine), available)


def fill(model: Model, engine: Engine, plan: Plan, available: int) -> Pool:
    """The pool of a plan that is given `available` bytes."""
    rules, limit, block_bytes = plan.rules, engine.max_model_len, plan.block_size_bytes
    num_blocks = available // block_bytes
    planned = available
    if engine.num_gpu_blocks_override is not None:
        num_blocks = engine.num_gpu_blocks_override
        if rules.override_plans:
            planned = num_blocks * block_bytes
    blocks = plan.blocks(limit)
    needed = plan.needed_blocks(limit) * block_bytes
    if needed > planned:
        null = plan.null_blocks * block_bytes
        raise DoesNotFit(available, needed, longest(plan, limit, planned), num_blocks, blocks, null)
    concurrency = num_blocks / blocks  # the engine's own float: it decides what int() makes of it
    groups = tuple([table.group for table in plan.tables])
    if rules.tokens_from_concurrency:
        tokens = int(concurrency * limit)
    else:
        tokens = num_blocks // len(groups) * min([group.block_size for group in groups])
    recurrent = [table for table in plan.tables if table.buckets[0].layer.recurrent]
    most = engine.max_num_seqs if recurrent and rules.caps_max_num_seqs else None
    if most is not None and most > num_blocks:
        expected = f"at most {num_blocks:,}, the pool's blocks: each sequence decoding needs one for its state"
        raise AeliusError("max_num_seqs", engine.max_num_seqs, expected)
    return Pool(
        model=model,
        engine=engine,
        available_bytes=available,
        block_size=plan.block_size,
        page_size_bytes=plan.page_size_bytes,
        block_size_bytes=block_bytes,
        groups=groups,
        num_blocks=num_blocks,
        blocks_per_request=blocks,
        fixed_blocks_per_request=sum([table.blocks(limit, plan.request) for table in recurrent]),
        tokens=tokens,
        max_concurrency=concurrency,
        plan=plan,
    )


def smallest(available_bytes: int | Sequence[int], cards: int) -> int:
    """The bytes that bind: those of the card with the least."""
    if not isinstance(available_bytes, list | tuple):
        return whole("available_bytes", available_bytes, 0)
    if len(available_bytes) != cards:
        raise AeliusError("available_bytes", available_bytes, f"one size for each of {cards} cards")
    return min(whole("available_bytes", size, 0) for size in available_bytes)


def longest(plan: Plan, limit: int, available: int) -> int:
    """The longest max_model_len [tokens] whose one request fits, at most `limit`; 0 if not even one token does."""
    most = available // plan.block_size_bytes
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if plan.needed_blocks(middle) <= most:
            low = middle
        else:
            high = middle - 1
    return low
