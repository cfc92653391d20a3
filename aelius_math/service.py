"""The article's service as vLLM's planner sees it: its settings and its pool, from the ledger's givens, in one place.

The article states the cards, the model, the fp8 cache and a prefix cache that is hit. The draft length and the memory are
inferred and the engine's version is assumed: facts.toml says from what, and note four derives it.
"""

from __future__ import annotations

from typing import Any

from aelius_math import catalogue
from aelius_math.ledger import given
from aelius_math.model import Model
from aelius_math.vllm import Engine, Pool, plan_pool


def model() -> Model:
    """The article's model."""
    return catalogue.load("qwen3.8-27b")


def engine(**changes: Any) -> Engine:
    """The service's settings, with some of them changed.

    >>> engine(max_model_len=8192).num_speculative_tokens
    4
    """
    settings: dict[str, Any] = {
        "version": given("engine_version"),
        "tensor_parallel_size": given("cards"),
        "kv_cache_dtype": "fp8",
        "max_model_len": given("request_limit"),
        "num_speculative_tokens": given("drafts"),
        "enable_prefix_caching": True,
    }
    return Engine(**{**settings, **changes})


def pool(**changes: Any) -> Pool:
    """What the service's memory for the cache [bytes on each card, inferred] holds, with some settings changed.

    Raises DoesNotFit where the engine would not start so.

    >>> pool().tokens, pool().num_blocks, pool(num_speculative_tokens=0, enable_prefix_caching=False).tokens
    (289661, 200, 335728)
    """
    return plan_pool(model(), engine(**changes), given("kv_available"))
