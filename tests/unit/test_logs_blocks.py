"""From printed figures back to blocks: whatever the engine prints is found again, and nothing that it would not print."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from aelius_math.log_blocks import Candidate, agrees, padded_groups, pairs, prints, solve
from aelius_math.log_derive import old_pairs
from aelius_math.logs import read

BLOCKS = st.integers(1, 5000)
LENGTHS = st.integers(64, 1 << 20)


@given(blocks=BLOCKS, per_request=st.integers(1, 700), length=LENGTHS)
def test_what_a_pool_prints_leads_back_to_it(blocks: int, per_request: int, length: int) -> None:
    concurrency = float(f"{blocks / per_request:.2f}")
    found = pairs(prints(blocks, per_request, length), length, concurrency, per_request, per_request)
    assert (blocks, per_request) in found


@given(tokens=st.integers(1, 10**7), length=LENGTHS, concurrency=st.none() | st.integers(1, 900).map(lambda x: x / 100))
def test_every_pair_prints_the_figures(tokens: int, length: int, concurrency: float | None) -> None:
    for blocks, per_request in pairs(tokens, length, concurrency, most=60):
        assert blocks >= 1 and prints(blocks, per_request, length) == tokens
        assert concurrency is None or abs(blocks / per_request - concurrency) < 0.00501


@given(
    blocks=BLOCKS, length=LENGTHS, block_size=st.integers(1, 300).map(lambda x: 16 * x), drafts=st.integers(0, 8),
    states=st.sampled_from((1, 2)), groups=st.integers(1, 16),
)  # fmt: skip
def test_a_hybrids_pool_is_among_the_candidates_however_little_the_log_says(
    blocks: int, length: int, block_size: int, drafts: int, states: int, groups: int
) -> None:
    fixed = groups * (states + drafts)
    per_request = -(-length // block_size) + fixed
    assume(per_request <= 4096)
    printed = {"tokens": prints(blocks, per_request, length), "max_model_len": length, "concurrency": None}
    wanted = Candidate(blocks, per_request, fixed)
    said = {"drafts": drafts, "states_per_group": states, "groups": {groups}}
    assert wanted in solve(**printed, block_size=block_size, **said)
    for name in said:
        assert wanted in solve(**printed, block_size=block_size, **{**said, name: None})
    assert wanted in solve(**printed, block_size=block_size)
    stated = solve(**printed, block_size=block_size, num_blocks=blocks)
    assert wanted in stated and all(one.num_blocks == blocks for one in stated)


def test_a_search_goes_to_the_edges_of_what_is_tried() -> None:
    assert (4096, 4096) in pairs(100_000, 100_000, None)
    assert pairs(100_000, 100_000, None)[0] == (1, 1)
    assert max(per_request for _, per_request in pairs(100_000, 100_000, None)) == 4096
    one_block = solve(prints(100, 1 + 16 * 34, 16), 16, None, block_size=16)
    assert Candidate(100, 545, 544) in one_block  # sixteen groups of two states and 32 drafts: the most that is tried
    assert not any((one.fixed_blocks_per_request or 0) > 544 for one in one_block)


def test_without_the_token_line_stated_blocks_and_the_concurrency_bound_the_request() -> None:
    found = solve(None, 262144, 1.10, num_blocks=200)
    assert [one.blocks_per_request for one in found] == [181, 182]
    assert all(f"{200 / one.blocks_per_request:.2f}" == "1.10" for one in found)
    assert f"{200 / 180:.2f}" != "1.10" != f"{200 / 183:.2f}"
    found = solve(None, 262144, 1.10, num_blocks=200, block_size=1616, drafts=4, states_per_group=2)
    assert found == [Candidate(200, 181, 18)]
    assert solve(None, 262144, None, num_blocks=200) == []
    assert solve(None, 262144, 1.10) == []


@given(blocks=BLOCKS, per_request=BLOCKS)
def test_two_decimals_agree_with_what_was_rounded_to_them(blocks: int, per_request: int) -> None:
    assert agrees(blocks / per_request, float(f"{blocks / per_request:.2f}"))
    assert not agrees(blocks / per_request + 0.0101, float(f"{blocks / per_request:.2f}"))


@given(layers=st.integers(2, 200), size=st.integers(2, 100))
def test_the_padding_warning_gives_the_groups_away(layers: int, size: int) -> None:
    added = -layers % size
    assume(added)
    percent = float(f"{added / layers * 100:.2f}")
    found = padded_groups([(added, percent)])
    if found is not None:  # two decimals tell the layers apart only while there are few of them
        assert -(-layers // size) in found or round(added / percent * 100) != layers


@pytest.mark.parametrize(
    ("padding", "groups"),
    [
        ([(3, 6.25)], {1, 3}), ([(1, 4.35)], {1, 2, 3, 4, 6, 8, 12}), ([], None), ([(3, 6.25), (1, 4.35)], None),
        ([(3, 0.0)], None), ([(3, 6.4)], None), ([(1, 0.0001)], None), ([(0, 1.0)], None), ([(1, 100.0)], {1}),
    ],
)  # fmt: skip
def test_groups_by_hand(padding: list[tuple[int, float]], groups: set[int] | None) -> None:
    assert padded_groups(padding) == groups


def test_the_old_rule_by_hand() -> None:
    said = {"block_size": 1616, "drafts": 4, "states_per_group": 2, "groups": {3}}
    # 80,800 tokens are 50 blocks of each of four groups: 200 to 203 in all, over 181 from 1.105 to 1.122
    assert old_pairs(80800, 262144, 1.10, **said) == [Candidate(200, 181, 18)]
    assert [one.num_blocks for one in old_pairs(80800, 262144, 1.12, **said)] == [202, 203]
    assert old_pairs(80801, 262144, 1.10, **said) == []
    most = old_pairs(80800, 262144, 1.10, **{**said, "groups": None})
    assert max(one.fixed_blocks_per_request for one in most) <= 16 * 6


@given(blocks=st.integers(40, 5000), groups=st.integers(1, 16), drafts=st.integers(0, 8), states=st.sampled_from((1, 2)))
def test_a_pool_of_the_old_rule_is_among_the_candidates(blocks: int, groups: int, drafts: int, states: int) -> None:
    fixed = groups * (states + drafts)
    tokens, concurrency = blocks // (groups + 1) * 800, float(f"{blocks / (164 + fixed):.2f}")
    assume(tokens)
    wanted = Candidate(blocks, 164 + fixed, fixed)
    said = {"drafts": drafts, "states_per_group": states, "groups": {groups}}
    for open_one in (None, *said):
        given_now = {name: None if name == open_one else value for name, value in said.items()}
        assert wanted in old_pairs(tokens, 164 * 800, concurrency, block_size=800, **given_now)


# what a boot's own lines decide

HEAD = "INFO 05-04 01:05:57 [vllm.py:1] "


def derived(*lines: str) -> dict:
    """What follows from lines of one boot."""
    (boot,) = read("\n".join(HEAD + line for line in lines))["boots"]
    return {**boot["derived"], "notes": boot["notes"]}


POOL = ("GPU KV cache size: 289,661 tokens", "Maximum concurrency for 262,144 tokens per request: 1.10x")
BLOCK = "Setting attention block size to 1616 tokens"


def test_the_blocks_of_a_bare_pool_stay_open_with_all_that_print_it() -> None:
    found = derived(*POOL)
    assert found["num_blocks"] is None and found["candidates_total"] == 39
    assert len(found["candidates"]) == 20 and {"num_blocks": 200, "blocks_per_request": 181} in found["candidates"]


def test_an_attention_block_size_settles_the_articles_pool_and_says_on_what_ground() -> None:
    found = derived(BLOCK, *POOL)
    assert (found["num_blocks"], found["blocks_per_request"], found["usable_blocks"]) == (200, 181, 199)
    assert found["basis"] == "the log alone, the attention layers taken for one group"
    assert (found["most_conversations"], found["binds"]) == (199 // 19, "the blocks of the pool")


@pytest.mark.parametrize(
    ("seats", "most", "binds"), [(9, 9, "max_num_seqs"), (10, 10, "the blocks of the pool"), (11, 10, "the blocks of the pool")]
)
def test_seats_bind_when_they_are_fewer_than_the_blocks_allow(seats: int, most: int, binds: str) -> None:
    found = derived(f"non-default args: {{'max_num_seqs': {seats}}}", BLOCK, *POOL)
    assert (found["most_conversations"], found["binds"]) == (most, binds)


@pytest.mark.parametrize("mode", ["all"])
def test_mode_all_is_not_read_as_align(mode: str) -> None:
    found = derived(f"Mamba cache mode is set to '{mode}' for X by default", BLOCK, *POOL)
    assert found["candidates_total"] == 39


def test_a_drafter_of_its_own_is_not_read_as_one_attention_group() -> None:
    args = "non-default args: {'speculative_config': {'method': 'dflash', 'num_speculative_tokens': 7}}"
    assert derived(args, BLOCK, *POOL)["candidates_total"] == 39


@pytest.mark.parametrize(("version", "noted"), [("0.20.0", True), ("0.20.1rc1.dev16", True), ("0.21.0", False), (None, True)])
def test_tokens_that_are_no_product_are_the_old_rules_only_where_the_release_can_be_old(version: str | None, noted: bool) -> None:
    engine = () if version is None else (f"Initializing a V1 LLM engine (v{version}) with config: seed=0,",)
    found = derived(*engine, BLOCK, "GPU KV cache size: 80,800 tokens", POOL[1])
    assert any("up to 0.20.0" in note for note in found["notes"]) is noted
    assert any("No whole number" in note for note in found["notes"]) is not noted
    assert (found["candidates_total"] > 0) is noted


def test_an_old_release_without_a_concurrency_or_with_a_block_size_is_left_open() -> None:
    engine = "Initializing a V1 LLM engine (v0.19.0) with config: seed=0, max_seq_len=32768,"
    pool = ("GPU KV cache size: 42,656 tokens", "Maximum concurrency for 32,768 tokens per request: 1.30x")
    assert derived(engine, pool[0])["candidates_total"] == 0
    assert derived(engine, BLOCK, *pool)["candidates_total"] == 0
    found = derived(engine, *pool)
    assert [one["num_blocks"] for one in found["candidates"]] == [2666, 1333]
    found = derived("non-default args: {'max_model_len': 32768}", engine, *pool)
    assert (found["num_blocks"], found["blocks_per_request"]) == (2666, 2048)


def test_a_block_count_needs_its_block_size() -> None:
    line = "# GPU blocks: 1381"
    found = derived(line, "Maximum concurrency for 2048 tokens per request: 10.79x")
    assert (found["num_blocks"], found["blocks_per_request"]) == (1381, 128)
    alone = derived("Initializing a V1 LLM engine (v0.7.0) with config: max_seq_len=2048,", line)
    assert alone["candidates_total"] == 0


def test_an_override_is_the_pool() -> None:
    found = derived("Overriding num_gpu_blocks=346 with num_gpu_blocks_override=200", *POOL)
    assert found["num_blocks"] == 200 and any("346" in note for note in found["notes"])


@pytest.mark.parametrize("line", ["Setting attention block size to 0 tokens", "Maximum concurrency for 0 tokens per request: 1.10x"])
def test_figures_of_nothing_are_not_derived_from(line: str) -> None:
    assert derived(line, POOL[0])["num_blocks"] is None
