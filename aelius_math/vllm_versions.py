"""What each release of vLLM does, in one table: the rules of the planner that have changed since 0.17.

Read in the sources of RELEASES: vllm/v1/core/kv_cache_utils.py (from 0.33 kv_cache_planning.py beside it),
vllm/v1/kv_cache_interface.py, vllm/config/vllm.py, vllm/config/cache.py, vllm/platforms/interface.py (before 0.20
vllm/model_executor/models/config.py), and get_kv_cache_spec of the layers in vllm/model_executor/layers/.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from aelius_math.units import AeliusError

FIRST = (0, 17, 0)
RELEASES = (
    "0.33.0", "0.32.0", "0.31.0", "0.30.0", "0.29.0", "0.28.0", "0.27.1", "0.27.0", "0.26.0", "0.25.1", "0.25.0", "0.24.0",
    "0.23.0", "0.22.1", "0.22.0", "0.21.0", "0.20.2", "0.20.1", "0.20.0", "0.19.1", "0.19.0", "0.18.1", "0.18.0",
    "0.17.1", "0.17.0",
)  # fmt: skip
"""The releases whose planner was read, the newest first; 0.17.1, 0.18.1 and 0.19.1 beside the release before each, from
which no rule differs."""
EXPECTED = f'a release from "0.17.0" to "{RELEASES[0]}" (older ones for one kind of full attention only)'


class Rules(NamedTuple):
    """The planner's rules at one release.

    group_factor              the largest bucket below this many times the smallest: groups of its size, padded
    checks_all_groups         no: the fit check looks at the first group only
    checks_null_block         a request must fit beside the null block
    tokens_from_concurrency   the logged tokens; no: num_blocks // groups * smallest block
    override_plans            num_gpu_blocks_override replaces the memory in the fit check too
    drafts_in_mode_all        mode "all" counts the draft tokens' blocks
    pads_attention            an attention page that does not divide the largest is padded to it
    pads_state                a state page is padded again when a drafter's page is larger
    window_block              window layers start from --block-size ("asked"), from the backend's smallest block ("kernel"),
                              or from as many of those as --block-size holds ("whole kernels")
    falls_back_to_full        windows beside MLA whose pages cannot be made one: planned as full
    packs_windows             formats that window layers are planned in as packed; elsewhere a whole byte an element
    promotes_format           the hybrid manager off: layers of these kinds, planned as full, keep the cache's format
    promoted_apart            they are another spec than the full ones: of equal pages, and the group's name says so
    specs_name_format         a layer's spec says its format beside its bytes: one that loses it is another, at equal bytes
    promotes_blocks           windows that start from another block than the full layers: planned as full in theirs
    windows_beside_mla        window layers, also a drafter's, may stand beside MLA layers of the model
    retains_for_mtp           window layers keep k - 1 tokens more when several MTP layers draft
    drafts_widen_kda          the convolution of Kimi Delta Attention grows with the draft tokens
    drafts_widen_short        so does a gated short convolution
    bf16_state                mamba_ssm_cache_dtype may be bfloat16
    kda_state_is_set          mamba_ssm_cache_dtype counts for Kimi Delta Attention, as float32 or bfloat16
    mode_all                  mamba_cache_mode may be all
    kda_checkpoint            align: one block more for Kimi Delta Attention with the FlashKDA prefill
    mamba2_checkpoint         align: one block more for Mamba 2
    gdn_checkpoint            align: one block more for Gated DeltaNet with the FlashInfer prefill, and its alignment
    caps_max_num_seqs         recurrent layers: the engine aborts where max_num_seqs exceeds the blocks (CUDA graphs on)
    in_flight_batches         batches that window and chunk layers hold at a time (async scheduling on, one stage)
    align_follows_block_size  a hybrid's alignment is at least --block-size
    whole_kernels             a hybrid's block is a multiple of the backend's smallest
    mla_hybrid_kernel         smallest block of the backend, for hybrids with MLA
    mla_hybrid_least          the least alignment that the engine takes for those
    hybrid_prefix_caching     its default for models with recurrent and attention layers
    formats                   kv_cache_dtype, by the names of aelius_math.dtypes
    old                       before the first release whose planner was read
    """

    group_factor: tuple[int, int]
    checks_all_groups: bool
    checks_null_block: bool
    tokens_from_concurrency: bool
    override_plans: bool
    drafts_in_mode_all: bool
    pads_attention: bool
    pads_state: bool
    window_block: str
    falls_back_to_full: bool
    packs_windows: frozenset[str]
    promotes_format: frozenset[str]
    promoted_apart: bool
    specs_name_format: bool
    promotes_blocks: bool
    windows_beside_mla: bool
    retains_for_mtp: bool
    drafts_widen_kda: bool
    drafts_widen_short: bool
    bf16_state: bool
    kda_state_is_set: bool
    mode_all: bool
    kda_checkpoint: bool
    mamba2_checkpoint: bool
    gdn_checkpoint: bool
    caps_max_num_seqs: bool
    in_flight_batches: int
    align_follows_block_size: bool
    whole_kernels: bool
    mla_hybrid_kernel: int
    mla_hybrid_least: int
    hybrid_prefix_caching: bool
    formats: frozenset[str]
    old: bool


PLAIN = frozenset({"bf16", "fp16", "fp8", "fp8_ds_mla"})
SCALED = PLAIN | {"int8_per_token_head", "fp8_per_token_head", "nvfp4"}
INT4 = SCALED | {"int4_per_token_head"}
WINDOWS_PROMOTED = frozenset({"SlidingWindowSpec"})
BOTH_PROMOTED = WINDOWS_PROMOTED | {"ChunkedLocalAttentionSpec"}


def parse(version: object) -> tuple[tuple[int, int, int], bool]:
    """The numbers of a version, and whether it is a pre-release; refuses what does not name one.

    >>> parse("0.28.0"), parse("v0.27.1.post1+cu129"), parse("0.20.1rc1.dev91+ga749a33d8")
    (((0, 28, 0), False), ((0, 27, 1), False), ((0, 20, 1), True))
    """
    text = version.removeprefix("v").partition("+")[0] if isinstance(version, str) else ""
    numbers: list[int] = []
    for part in text.split(".")[:3]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits or len(digits) > 4:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    if len(numbers) < 2:
        raise AeliusError("version", version, EXPECTED)
    return (numbers[0], numbers[1], numbers[2] if len(numbers) > 2 else 0), any(x in text for x in ("rc", "dev", "a", "b"))


def at(numbers: tuple[int, int, int]) -> Rules:
    """The rules of one release."""
    since = numbers.__ge__
    return Rules(
        group_factor=(3, 2) if since((0, 18, 0)) else (5, 4),
        checks_all_groups=since((0, 19, 0)),
        checks_null_block=since((0, 29, 0)),
        tokens_from_concurrency=since((0, 20, 1)),
        override_plans=since((0, 20, 1)),
        drafts_in_mode_all=since((0, 22, 0)),
        pads_attention=since((0, 24, 0)),
        pads_state=since((0, 26, 0)),
        window_block="whole kernels" if since((0, 30, 0)) else "kernel" if since((0, 25, 0)) else "asked",
        falls_back_to_full=since((0, 27, 0)),
        packs_windows=INT4 if since((0, 28, 0)) else SCALED if since((0, 21, 0)) else SCALED - {"nvfp4"},
        promotes_format=BOTH_PROMOTED if since((0, 28, 0)) else WINDOWS_PROMOTED if since((0, 21, 0)) else frozenset(),
        promoted_apart=since((0, 24, 0)) and not since((0, 28, 0)),
        specs_name_format=since((0, 20, 0)),
        promotes_blocks=since((0, 27, 0)),
        windows_beside_mla=since((0, 26, 0)),
        retains_for_mtp=since((0, 28, 0)),
        drafts_widen_kda=since((0, 27, 0)),
        drafts_widen_short=since((0, 29, 0)),
        bf16_state=since((0, 22, 0)),
        kda_state_is_set=since((0, 30, 0)),
        mode_all=not since((0, 32, 0)),
        kda_checkpoint=since((0, 29, 0)),
        mamba2_checkpoint=since((0, 32, 0)),
        gdn_checkpoint=since((0, 33, 0)),
        caps_max_num_seqs=since((0, 20, 0)),
        in_flight_batches=2 if since((0, 26, 0)) else 1,
        align_follows_block_size=since((0, 20, 0)),
        whole_kernels=since((0, 32, 0)),
        mla_hybrid_kernel=16 if since((0, 20, 0)) else 64,
        mla_hybrid_least=128 if since((0, 27, 0)) else 16,
        hybrid_prefix_caching=since((0, 28, 0)),
        formats=INT4 if since((0, 25, 0)) else SCALED if since((0, 20, 0)) else PLAIN,
        old=numbers < FIRST,
    )


@lru_cache(maxsize=64)
def possible(version: str) -> tuple[Rules, ...]:
    """The rules that a version may follow: one set for a release.

    A pre-release stands between the release before it and the next minor one (the builds of the main branch are named
    after the last tag), so it may follow the rules of either. A release between two of RELEASES is taken to follow the one
    before it, and `read_before` names that one, so that the plan can say it. Raises AeliusError where no rules are known.

    >>> [rules.tokens_from_concurrency for rules in possible("0.20.1rc1.dev16")]
    [False, True]
    """
    numbers, prerelease = parse(version)
    if numbers[:2] > parse(RELEASES[0])[0][:2]:
        raise AeliusError("version", version, EXPECTED)
    if not prerelease:
        return (at(numbers),)
    major, minor, patch = numbers
    before = at((major, minor, patch - 1) if patch else (major, minor - 1, 99))
    after = at((major, minor + 1, 0))
    return (before,) if before == after else (before, after)


def read_before(version: str) -> str | None:
    """The newest of RELEASES before a release that is none of them; None for one that was read, and for a pre-release.

    >>> read_before("0.22.7"), read_before("0.22.1"), read_before("0.22.1.post1"), read_before("0.23.1rc1.dev5")
    ('0.22.1', None, None, None)
    """
    numbers, prerelease = parse(version)
    older = [release for release in RELEASES if parse(release)[0] <= numbers]
    if prerelease or not older or parse(older[0])[0] == numbers:
        return None
    return older[0]


def rules_for(version: str) -> Rules:
    """The rules of a release; of a pre-release, those of the release before it.

    >>> rules_for("0.20.0").tokens_from_concurrency, rules_for("0.28.0").tokens_from_concurrency
    (False, True)
    """
    return possible(version)[0]
