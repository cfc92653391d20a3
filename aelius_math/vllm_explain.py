"""Which settings print a logged pool: the settings are tried one by one, and the tried ones are stated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from aelius_math.cache import MLA, GatedDeltaNet, KimiDelta, Recurrent
from aelius_math.model import Model
from aelius_math.records import Record, replace
from aelius_math.units import GIB, AeliusError, whole
from aelius_math.vllm_engine import Engine
from aelius_math.vllm_plan import Plan, make_plan
from aelius_math.vllm_versions import rules_for

DRAFT_TOKENS = tuple(range(17))
VERSION = "0.28.0"
FORMATS = ("fp8", "int8_per_token_head", "fp8_per_token_head", "int4_per_token_head", "nvfp4", "fp8_ds_mla")
BLOCK_SIZES = (None, 32, 64, 128)
TOKEN_BUDGETS = (2048, 4096, 8192, 16384, 32768)
KERNEL_BLOCKS = (1, 8, 16, 32, 64, 128, 256)
USUAL_DRAFTS = (0, 1, 2, 3, 4)
USUAL_FORMATS = ("auto", "fp8", "fp8_ds_mla")


class Candidate(Record):
    """Settings that print the pool.

    engine              all settings, those that were given too
    settings            those that were searched, by Engine's names
    same_as             other values of kv_cache_dtype that cannot be told apart: as many bytes
    num_blocks          the blocks that print it; by the rule before 0.20.1, the fewest of several
    blocks_per_request  of one request of max_model_len
    block_size          tokens, as the engine logs it
    available_bytes     the least memory per card that holds these blocks
    """

    engine: Engine
    settings: Mapping[str, object]
    same_as: tuple[str, ...]
    num_blocks: int
    blocks_per_request: int
    block_size: int
    available_bytes: int


class Explanation(Record):
    """All candidates, the most usual first; `searched` states what was tried, `fixed` what was given."""

    candidates: tuple[Candidate, ...]
    searched: Mapping[str, tuple[object, ...]]
    fixed: Mapping[str, object]
    tried: int

    @property
    def ambiguous(self) -> bool:
        return len(self.candidates) > 1


def explain(
    tokens: int,
    max_model_len: int,
    model: Model,
    *,
    max_concurrency: float | None = None,
    available_kv_gib: float | None = None,
    block_size: int | None = None,
    **fixed: object,
) -> Explanation:
    """The settings under which vLLM logs a pool of so many tokens at this limit.

    `fixed` are Engine's fields: each one given is not searched. What else a log prints narrows the search:
    `max_concurrency` and `available_kv_gib`, to the two digits printed, and `block_size`, as set or as logged ("Setting
    attention block size to ..."). Without an available memory, any whole number of blocks is taken with which the engine
    would start. An empty list: none of the settings tried prints it.

    >>> from aelius_math import catalogue
    >>> model = catalogue.load("Qwen3.8-27B")
    >>> found = explain(289661, 262144, model, tensor_parallel_size=2, kv_cache_dtype="fp8", enable_prefix_caching=True)
    >>> [(c.engine.num_speculative_tokens, c.num_blocks, c.blocks_per_request) for c in found.candidates]
    [(4, 200, 181)]
    """
    whole("tokens", tokens)
    whole("max_model_len", max_model_len)
    fields = Engine._fields
    for name, value in fixed.items():
        if name not in fields:
            raise AeliusError(name, value, "one of vLLM's settings: " + ", ".join(fields))
    given = {name: value for name, value in fixed.items() if value is not None}
    spaces = search_space(model, given, block_size)
    logged = Logged(
        tokens=tokens,
        max_model_len=max_model_len,
        max_concurrency=max_concurrency,
        available_kv_gib=available_kv_gib,
        block_size=block_size,
    )
    found: dict[tuple[object, ...], Candidate] = {}
    tried = 0
    refused: AeliusError | None = None
    for settings in combinations(spaces):
        tried += 1
        try:
            engine = Engine(max_model_len=max_model_len, **given, **settings)  # type: ignore[arg-type]
            plan = make_plan(model, engine)
        except AeliusError as error:
            refused = error
            continue
        candidate = logged.fits(plan, engine, settings)
        if candidate is None:
            continue
        others = [item for item in settings.items() if item[0] not in ("kv_cache_dtype", "block_size")]
        key = (*others, plan.block_size_bytes, plan.block_size, candidate.num_blocks)
        first = found.setdefault(key, candidate)  # what makes no difference is one candidate
        dtype = engine.kv_cache_dtype
        if dtype != first.engine.kv_cache_dtype and dtype not in first.same_as:
            found[key] = replace(first, same_as=(*first.same_as, dtype))
    if refused is not None and tried and not found and (refused.field in given or refused.field == "Model.dtype"):
        raise refused
    ordered = sorted(found.values(), key=lambda candidate: unusual(candidate.engine))
    return Explanation(candidates=tuple(ordered), searched=spaces, fixed=given, tried=tried)


class Logged(Record):
    """What a log prints, and whether a plan prints it."""

    tokens: int
    max_model_len: int
    max_concurrency: float | None
    available_kv_gib: float | None
    block_size: int | None

    def fits(self, plan: Plan, engine: Engine, settings: Mapping[str, object]) -> Candidate | None:
        """The candidate, if some number of blocks prints all that is logged."""
        if self.block_size not in (None, engine.block_size, plan.block_size):
            return None
        blocks = plan.blocks(self.max_model_len)
        least_to_start = plan.needed_blocks(self.max_model_len)
        for num_blocks in self.counts(plan, blocks):
            if engine.num_gpu_blocks_override not in (None, num_blocks):
                continue
            if num_blocks >= least_to_start and self.agrees(plan, engine, num_blocks, blocks):
                return Candidate(
                    engine=engine,
                    settings=settings,
                    same_as=(),
                    num_blocks=num_blocks,
                    blocks_per_request=blocks,
                    block_size=plan.block_size,
                    available_bytes=num_blocks * plan.block_size_bytes,
                )
        return None

    def counts(self, plan: Plan, blocks: int) -> Iterator[int]:
        """Numbers of blocks that are logged as these tokens."""
        if plan.rules.tokens_from_concurrency:
            near = self.tokens * blocks // self.max_model_len
            for count in range(max(1, near - 1), near + 3):
                if int(count / blocks * self.max_model_len) == self.tokens:
                    yield count
            return
        least = min(table.group.block_size for table in plan.tables)
        groups = len(plan.tables)
        if self.tokens % least == 0:
            yield from range(self.tokens // least * groups, (self.tokens // least + 1) * groups)

    def agrees(self, plan: Plan, engine: Engine, num_blocks: int, blocks: int) -> bool:
        """Whether the concurrency and the memory are those printed, to the digits printed."""
        if self.max_concurrency is not None and f"{num_blocks / blocks:.2f}" != f"{self.max_concurrency:.2f}":
            return False
        if self.available_kv_gib is None or engine.num_gpu_blocks_override is not None:
            return True
        low, high = (int((self.available_kv_gib + off) * GIB) for off in (-0.005, 0.005))
        return num_blocks * plan.block_size_bytes <= high and (num_blocks + 1) * plan.block_size_bytes > low


def search_space(model: Model, given: Mapping[str, object], block_size: int | None) -> dict[str, tuple[object, ...]]:
    """What is tried: settings that are given, and those that make no difference to this model, are left out."""
    rules = rules_for(str(given.get("version", VERSION)))
    recurrent = [layer for layer in model.layers if isinstance(layer, Recurrent)]
    attention = any(not layer.recurrent for layer in model.layers)
    bounded = any(layer.window is not None for layer in (*model.layers, *given.get("draft", ())))  # type: ignore[misc]
    drafter = bool(given.get("draft")) or bool(model.mtp_layers) or given.get("speculative_method") is not None
    formats = [name for name in FORMATS if name in rules.formats and attention]
    if not any(isinstance(layer, MLA) for layer in model.layers):
        formats = [name for name in formats if name != "fp8_ds_mla"]
    spaces: dict[str, tuple[object, ...]] = {
        "num_speculative_tokens": DRAFT_TOKENS if drafter else (0,),
        "kv_cache_dtype": ("auto", *formats),
    }
    if recurrent:
        spaces["enable_prefix_caching"] = (True, False)
        every = rules.mode_all and all(layer.offers_mode_all for layer in recurrent)
        spaces["mamba_cache_mode"] = ("align", "all") if every else ("align",)
        spaces["mamba_ssm_cache_dtype"] = (None, "bfloat16" if rules.bf16_state else "float16")
    if rules.gdn_checkpoint and any(isinstance(layer, GatedDeltaNet) for layer in recurrent):
        spaces["gdn_prefill_backend"] = ("triton", "flashinfer")
    if rules.kda_checkpoint and any(isinstance(layer, KimiDelta) for layer in recurrent):
        spaces["kda_prefill_backend"] = ("triton", "flashkda")
    if block_size is None:
        spaces["block_size"] = BLOCK_SIZES
    else:
        spaces["block_size"] = (None, block_size) if block_size in KERNEL_BLOCKS else (None,)
    if bounded:
        spaces["max_num_batched_tokens"] = TOKEN_BUDGETS
    return {name: values for name, values in spaces.items() if name not in given}


def combinations(spaces: Mapping[str, tuple[object, ...]]) -> Iterator[dict[str, object]]:
    """Every combination once; a mode, and a prefill that sets blocks aside, are tried only with prefix caching on."""
    for values in product(*spaces.values()):
        settings = dict(zip(spaces, values, strict=True))
        if settings.get("enable_prefix_caching") is False and {"flashinfer", "flashkda"} & set(values):
            continue
        if settings.get("enable_prefix_caching") is False and "mamba_cache_mode" in settings:
            if settings["mamba_cache_mode"] != "align":
                continue
            settings["mamba_cache_mode"] = None
        yield settings


def unusual(engine: Engine) -> tuple[int, int]:
    """How far settings are from what most people run: the less, the earlier in the list."""
    default = rules_for(engine.version).hybrid_prefix_caching
    score = 0 if engine.num_speculative_tokens in USUAL_DRAFTS else 2
    score += 0 if engine.kv_cache_dtype in USUAL_FORMATS else 3
    score += engine.enable_prefix_caching not in (None, default)
    score += 4 * (engine.mamba_cache_mode == "all")
    score += 4 * (engine.mamba_ssm_cache_dtype is not None)
    score += 4 * (engine.block_size is not None)
    return score, engine.num_speculative_tokens
