"""llama.cpp's fit pass on one device: replayed and public decisions, each rule by hand, properties, refusals."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from llamacpp_models import QWEN_27B, full, golden, model, printed

from aelius_math.cache import FullAttention, Mamba2
from aelius_math.llamacpp import Block, Context, fit, memory
from aelius_math.llamacpp_builds import BUILDS, REPLAYED_27B, BlockWeights, build_of, mib_bytes
from aelius_math.llamacpp_case import (
    abort_reason,
    block_bytes,
    blocks_of,
    largest,
    layer_cache_bytes,
    reduced_context,
    room,
    units_total,
)
from aelius_math.model import Model
from aelius_math.units import MIB, AeliusError

few = settings(max_examples=30, deadline=None)

JULY = {"n_seq_max": 2, "type_k": "q8_0", "type_v": "q8_0", "build": "jul"}
OCTOBER = {**JULY, "build": "oct"}
WEIGHTS = 14_497
LLAMA_8B = Model(name="llama8b", layers=(full(32, 8, 128),), max_position_embeddings=131_072)


def blocks(of, mib):
    return [Block(layer=layer, weights_bytes=mib * MIB) for layer in of.layers for _ in range(layer.num_layers)]


# golden


def wall_context(row, build="oct"):
    flags = row["extra_flags"]
    draft = "q8_0" if "-ctkd" in flags else "f16"
    return Context(
        n_ctx=row["ctx"],
        n_seq_max=2,
        kv_unified=row["kv_unified"],
        type_k="q8_0",
        type_v="q8_0",
        type_k_draft=draft,
        type_v_draft=draft,
        draft_max=row["draft_max"],
        n_ubatch=row["ubatch"],
        n_batch=1024 if "-b" in flags else 2048,
        build=build,
    )


def test_every_replayed_run_has_the_same_verdict_deficit_units_and_buffers():
    rows = golden("llamacpp_wall.json")
    for row in rows:
        found = fit(
            QWEN_27B,
            wall_context(row),
            free_mib=row["free_mib"],
            weights_mib=WEIGHTS,
            fit_target_mib=row["margin_mib"] - 1136,
            vision_mib=1136,
            n_gpu_layers=99 if "-ngl" in row["extra_flags"] else None,
        )
        assert found.verdict == row["verdict"], row
        assert found.layers_kept == row["units_kept"], row
        assert found.margin_mib == row["margin_mib"]
        assert abs(found.projected_mib - row["projected_mib"]) <= 1, row
        assert abs(found.deficit_mib - row.get("deficit_mib", 0)) <= 1, row
        assert found.fits == (found.deficit_bytes == 0)
        buffers = [printed(found.memory.compute_main_bytes), printed(found.memory.compute_draft_bytes)]
        assert buffers == row["compute_mib_main_draft"], row
    assert len(rows) == 44


def test_july_decides_the_same_runs_the_same_way_though_it_adds_the_draft_to_the_margin():
    for row in golden("llamacpp_wall.json"):
        given_ = {"free_mib": row["free_mib"], "weights_mib": WEIGHTS, "fit_target_mib": row["margin_mib"]}
        july, october = (fit(QWEN_27B, wall_context(row, build), **given_) for build in ("jul", "oct"))
        draft = july.memory.draft_kv_bytes + july.memory.compute_draft_bytes
        assert (july.verdict, july.deficit_bytes) == (october.verdict, october.deficit_bytes)
        assert july.margin_bytes - october.margin_bytes == draft
        assert october.projected_bytes - july.projected_bytes == draft


def test_every_public_fit_has_the_same_verdict_and_leaves_or_lacks_the_same():
    rows = golden("llamacpp_fits.json")
    for row in rows:
        leave, deficit = room(row["used"], row["free_fit"], row["margin"])
        assert (deficit == 0) == (row["verdict"] == "no change"), row
        if "leave" in row:
            assert abs(leave - row["leave"]) <= 1, row
        if "deficit" in row:
            assert abs(deficit - row["deficit"]) <= 1, row
        if "abort" in row["verdict"]:
            number = int(row["verdict"].split()[-1])
            assert abort_reason(number) == f"n_gpu_layers already set by user to {number}, abort"
    assert len(rows) == 9


def test_public_fits_read_less_free_memory_by_the_recurrent_state():
    gaps = []
    for row in golden("llamacpp_fits.json"):
        check = row["double_count_check"]
        if check and "Windows" not in row["gpu"]:
            outside = row["free_after_fit"] or row["free_before"]
            assert abs(outside - row["free_fit"] - check["rs"]) <= 3, row
            gaps.append(check["rs"])
    assert gaps == [1795.5, 1795.5, 1795.5, 448.88, 448.88, 598.5]


def test_the_public_context_that_was_reduced_went_to_the_floor():
    (row,) = [row for row in golden("llamacpp_fits.json") if "reduced" in row["verdict"]]
    target = row["free_fit"] - row["margin"]
    assert reduced_context(4096, 131_072, row["used"] - 20_000, row["used"], target) == 4096


# by hand: the decision


def at(context_k, free, **other):
    context = Context(n_ctx=context_k * 1024, draft_max=3, **{**OCTOBER, **other.pop("flags", {})})
    return fit(QWEN_27B, context, free_mib=free, weights_mib=WEIGHTS, vision_mib=1136, **other)


def test_leaving_just_the_margin_fits_and_a_byte_less_does_not():
    context = Context(n_ctx=65536, draft_max=1, **OCTOBER)
    used = fit(QWEN_27B, context, free_mib=20_000, weights_mib=WEIGHTS).projected_bytes
    exact = (used + 1024 * MIB) / MIB
    enough = fit(QWEN_27B, context, free_mib=exact, weights_mib=WEIGHTS)
    assert (enough.verdict, enough.deficit_bytes, enough.leave_bytes) == ("fits", 0, 1024 * MIB)
    assert (enough.n_ctx, enough.memory.n_ctx_seq) == (65_536, 32_768)
    short = fit(QWEN_27B, context, free_mib=exact - 2**-20, weights_mib=WEIGHTS)
    assert (short.verdict, short.deficit_bytes, short.layers_kept) == ("evict", 1, 65)


def test_one_byte_too_many_costs_a_whole_layer_so_that_use_falls_when_the_wall_is_crossed():
    found = at(64, 20_996)
    over = fit(QWEN_27B, Context(n_ctx=80 * 1024, draft_max=3, **OCTOBER), free_mib=20_996, weights_mib=WEIGHTS,
               vision_mib=1136)  # fmt: skip
    assert (found.layers_kept, over.layers_kept) == (66, 63)
    front = blocks_of(QWEN_27B, REPLAYED_27B)[:3]
    assert over.moved_bytes == sum(block_bytes(block, over.memory) for block in front)
    assert over.on_device_bytes == over.projected_bytes - over.moved_bytes < at(75, 22_193).on_device_bytes
    assert (found.moved_bytes, found.on_device_bytes) == (0, found.projected_bytes)


def test_what_is_on_the_device_is_the_same_in_july_whose_projection_leaves_the_draft_out():
    for free in (20_996, 22_193):
        july, october = at(80, free, flags=JULY), at(80, free, flags=OCTOBER)
        assert july.on_device_bytes == october.on_device_bytes
        assert july.projected_bytes < october.projected_bytes
        own = {"compute_mib": 600}
        assert at(80, free, flags=JULY, **own).on_device_bytes == at(80, free, flags=OCTOBER, **own).on_device_bytes
    assert fit(QWEN_27B, Context(n_ctx=4096), free_mib=1, weights_mib=16_000).on_device_bytes is None


def test_july_measures_the_draft_of_an_unset_context_at_the_models_full_length():
    unset = fit(QWEN_27B, Context(n_ctx=None, draft_max=1, **JULY), free_mib=20_000, weights_mib=WEIGHTS)
    full_length = memory(QWEN_27B, Context(n_ctx=262_144, draft_max=1, **JULY))
    assert unset.margin_bytes == 1024 * MIB + full_length.draft_kv_bytes + full_length.compute_draft_bytes
    assert unset.verdict == "context reduced"
    october = fit(QWEN_27B, Context(n_ctx=None, draft_max=1, n_seq_max=2, kv_unified=True, type_k="q8_0", type_v="q8_0"),
                  free_mib=20_000, weights_mib=WEIGHTS)  # fmt: skip
    assert october.n_ctx > unset.n_ctx


def test_the_replayed_file_has_three_recurrent_layers_then_one_of_attention():
    found = blocks_of(QWEN_27B, REPLAYED_27B)
    assert [type(block.layer).__name__ for block in found[:5]] == [
        "GatedDeltaNet",
        "GatedDeltaNet",
        "GatedDeltaNet",
        "FullAttention",
        "GatedDeltaNet",
    ]
    assert len(found) == 64
    assert sum(isinstance(block.layer, FullAttention) for block in found) == 16


def test_layers_are_moved_with_their_share_of_cache_or_state():
    found = memory(QWEN_27B, Context(n_ctx=65536, draft_max=3, **OCTOBER))
    attention, state = QWEN_27B.layers
    assert layer_cache_bytes(attention, found) == 2176 * MIB // 16
    assert layer_cache_bytes(state, found) == 1197 * MIB // 48


def test_how_many_layers_move_is_not_said_where_their_weights_are_not_known():
    found = fit(QWEN_27B, Context(n_ctx=80 * 1024, draft_max=3, **OCTOBER), free_mib=20_000, weights_mib=16_387)
    assert (found.verdict, found.layers_kept, found.layers_total) == ("evict", None, 66)
    assert found.action == "whole layers move to the CPU, layer 0 first"
    near = fit(QWEN_27B, Context(n_ctx=80 * 1024, draft_max=3, **OCTOBER), free_mib=20_000, weights_mib=14_498)
    assert near.layers_kept is None


def test_layers_given_by_the_caller_move_one_by_one_from_the_front():
    context = Context(n_ctx=4096)
    cache = memory(LLAMA_8B, context).kv_bytes // 32
    layer = 100 * MIB + cache
    for moved, over in [(1, 1), (1, layer), (2, layer + 1), (2, 2 * layer), (5, 4 * layer + 1)]:
        used = 4000 * MIB + 512 * MIB + 100 * MIB
        free = (used + 1024 * MIB - over) / MIB
        found = fit(LLAMA_8B, context, free_mib=free, weights_mib=4000, compute_mib=100, blocks=blocks(LLAMA_8B, 100))
        assert (found.layers_kept, found.layers_total, found.deficit_bytes) == (33 - moved, 33, over)
        assert found.action == f"{moved} of 32 layers move to the CPU, layer 0 first"


def test_a_layer_count_set_by_the_user_stops_the_pass_and_loading_goes_on():
    found = at(80, 20_996, n_gpu_layers=99)
    assert (found.verdict, found.layers_kept, found.fits) == ("evict", 66, False)
    assert "n_gpu_layers already set by user to 99, abort; loading goes on" in found.action
    assert at(64, 22_193, n_gpu_layers=99).action == "no changes needed"
    assert at(80, 20_996, override_tensor=True).action.startswith("failed to fit")


def test_a_layer_count_below_all_leaves_the_front_layers_out_before_the_pass_looks():
    all_of_it, some = at(80, 20_996), at(80, 20_996, n_gpu_layers=63)
    front = blocks_of(QWEN_27B, REPLAYED_27B)[:3]
    saved = sum(block.weights_bytes + layer_cache_bytes(block.layer, some.memory) for block in front)
    assert all_of_it.projected_bytes - some.projected_bytes == saved
    assert (some.verdict, some.layers_kept) == ("fits", 63)
    assert at(80, 20_996, n_gpu_layers=66).projected_bytes == all_of_it.projected_bytes
    assert at(80, 20_996, n_gpu_layers=2).layers_kept == 2


def test_july_loses_a_unit_to_its_own_count_even_where_moving_none_would_do():
    context = Context(n_ctx=80 * 1024, draft_max=3, **JULY)
    tiny = fit(QWEN_27B, context, free_mib=20_996 + 476, weights_mib=WEIGHTS, vision_mib=1136)
    assert (tiny.verdict, tiny.layers_kept, tiny.layers_total) == ("evict", 65, 66)
    assert units_total(QWEN_27B, Context(n_ctx=4096, build="jul")) == 66
    assert units_total(QWEN_27B, Context(n_ctx=4096, build="oct")) == 65
    assert units_total(QWEN_27B, Context(n_ctx=4096, draft_max=1, build="oct")) == 66


def test_the_fused_kernel_goes_off_in_july_when_a_layer_moves_and_drafts_are_verified():
    july, october = {"flags": JULY}, {"flags": OCTOBER}
    assert at(80, 20_996, **july).fused_ops is False
    assert at(64, 22_193, **july).fused_ops is True
    assert at(80, 20_996, n_gpu_layers=99, **july).fused_ops is True
    assert at(80, 20_996, **october).fused_ops is True
    assert at(80, 20_996, n_gpu_layers=63, **july).fused_ops is False
    drafted = Context(n_ctx=80 * 1024, draft_max=3, **JULY)
    assert fit(QWEN_27B, drafted, free_mib=20_000, weights_mib=16_387).fused_ops is False
    unmeasured = Context(n_ctx=4096, draft_max=3, n_ubatch=1024, **JULY)
    found = fit(QWEN_27B, unmeasured, free_mib=30_000, weights_mib=WEIGHTS)
    assert (found.verdict, found.fused_ops, found.layers_kept) == ("unknown", None, None)
    undrafted = Context(n_ctx=80 * 1024, **JULY)
    assert fit(QWEN_27B, undrafted, free_mib=18_000, weights_mib=WEIGHTS).fused_ops is None
    plain = fit(LLAMA_8B, Context(n_ctx=4096), free_mib=1000, weights_mib=4000, compute_mib=100)
    assert (plain.verdict, plain.fused_ops) == ("evict", None)


def test_minus_129_mib_for_the_smaller_micro_batch_and_it_still_evicts():
    base, smaller = at(80, 20_996), at(80, 20_996, flags={"n_ubatch": 256, "n_batch": 1024})
    assert round(smaller.projected_mib - base.projected_mib) == -129
    assert (base.verdict, smaller.verdict) == ("evict", "evict")
    assert smaller.wall_tokens - base.wall_tokens == 3 * 1024


def test_plus_152_mib_for_a_quantised_draft_cache():
    base, quantised = at(80, 20_996), at(80, 20_996, flags={"type_k_draft": "q8_0", "type_v_draft": "q8_0"})
    assert round(quantised.projected_mib - base.projected_mib) == 152
    assert base.memory.draft_kv_bytes - quantised.memory.draft_kv_bytes == 150 * MIB
    assert printed(quantised.memory.compute_draft_bytes) == 440.28


# by hand: what is counted twice


def test_the_state_is_counted_twice_in_both_builds():
    assert all(build.state_counted_twice for build in BUILDS.values())
    for build in ("jul", "oct"):
        flags = {**JULY, "build": build}
        found = fit(QWEN_27B, Context(n_ctx=80 * 1024, draft_max=3, **flags), free_before_mib=22_193, weights_mib=WEIGHTS)
        assert found.free_bytes == 22_193 * MIB - found.counted_twice_bytes
        assert found.counted_twice_bytes == found.memory.recurrent_bytes == 1197 * MIB


def test_free_memory_as_the_pass_reads_it_is_taken_as_it_is():
    found = at(80, 20_996)
    assert (found.free_bytes, found.free_mib, found.counted_twice_bytes) == (20_996 * MIB, 20_996, 0)


def test_a_build_that_counts_once_would_read_what_is_free(monkeypatch):
    from dataclasses import replace

    monkeypatch.setitem(BUILDS, "oct", replace(BUILDS["oct"], state_counted_twice=False))
    found = fit(QWEN_27B, Context(n_ctx=80 * 1024, draft_max=3, **OCTOBER), free_before_mib=22_193, weights_mib=WEIGHTS,
                vision_mib=1136)  # fmt: skip
    assert (found.verdict, found.free_bytes, found.counted_twice_bytes) == ("fits", 22_193 * MIB, 0)


def test_eviction_with_1100_mib_free_after_loading_is_the_state_counted_twice():
    context = Context(n_ctx=80 * 1024, draft_max=1, **OCTOBER)
    used = fit(QWEN_27B, context, free_mib=1, weights_mib=WEIGHTS).projected_mib
    as_it_is = fit(QWEN_27B, context, free_before_mib=used + 1100, weights_mib=WEIGHTS)
    assert (as_it_is.verdict, as_it_is.leave_mib) == ("evict", 1100 - 598.5)
    assert fit(QWEN_27B, context, free_mib=used + 1100, weights_mib=WEIGHTS).verdict == "fits"


@pytest.mark.parametrize(("draft", "wall", "blind"), [(1, 89, 115), (2, 75, 101.5), (3, 61, 87.5)])
def test_the_wall_of_a_headless_card_by_drafted_tokens_with_and_without_vision(draft, wall, blind):
    context = Context(n_ctx=65536, draft_max=draft, **JULY)
    for vision, k in ((1136, wall), (0, blind)):
        found = fit(QWEN_27B, context, free_before_mib=23_750, weights_mib=16_387, vision_mib=vision)
        assert found.wall_tokens == k * 1024


# by hand: the context left unset


def test_an_unset_context_is_shrunk_along_a_line_and_rounded_down_and_never_below_the_floor():
    assert reduced_context(4096, 131_072, 1000, 5000, 3000) == 67_584
    assert reduced_context(4096, 131_072, 1000, 5000, 2999) == 67_328
    assert reduced_context(4096, 131_072, 1000, 5000, 1001) == 4096
    assert reduced_context(4096, 131_072, 1000, 5000, 1000) == 4096
    assert reduced_context(8192, 524_288, 1000, 5000, 3000, 512) == 266_240
    assert reduced_context(4096, 8192, 5000, 5000, 6000) == 4096


def test_an_unset_context_that_can_shrink_fits_and_moves_nothing():
    context = Context(n_ctx=None, type_k="q8_0", type_v="q8_0")
    found = fit(QWEN_27B, context, free_mib=22_000, weights_mib=WEIGHTS)
    assert (found.verdict, found.fits, found.layers_kept) == ("context reduced", True, 65)
    assert found.memory.n_ctx == 262_144
    assert found.n_ctx % 256 == 0
    assert found.action == f"context size reduced from 262144 to {found.n_ctx}; entire model fits"
    again = Context(n_ctx=found.n_ctx, type_k="q8_0", type_v="q8_0")
    assert fit(QWEN_27B, again, free_mib=22_000, weights_mib=WEIGHTS).verdict == "fits"
    assert found.wall_tokens - found.n_ctx < 512


def test_october_gives_split_slots_a_floor_and_a_full_length_each_and_july_does_not():
    context = {"n_ctx": None, "n_seq_max": 2, "type_k": "q8_0", "type_v": "q8_0"}
    tight = {"free_mib": 10_000, "weights_mib": WEIGHTS}
    assert fit(QWEN_27B, Context(build="oct", **context), **tight).n_ctx == 8192
    assert fit(QWEN_27B, Context(build="jul", **context), **tight).n_ctx == 4096
    room_for_some = {"free_mib": 22_000, "weights_mib": WEIGHTS}
    october = fit(QWEN_27B, Context(build="oct", **context), **room_for_some)
    assert october.action.startswith("context size reduced from 524288")
    assert october.n_ctx % 512 == 0


def test_an_unset_context_that_is_too_large_at_its_floor_goes_on_to_move_layers_there():
    found = fit(QWEN_27B, Context(n_ctx=None, type_k="q8_0", type_v="q8_0"), free_mib=15_000, weights_mib=WEIGHTS)
    assert (found.verdict, found.n_ctx) == ("evict", 4096)
    floor = fit(QWEN_27B, Context(n_ctx=4096, type_k="q8_0", type_v="q8_0"), free_mib=15_000, weights_mib=WEIGHTS)
    assert found.layers_kept == floor.layers_kept
    assert found.action.startswith("context size reduced from 262144 to 4096; ")
    aborted = fit(QWEN_27B, Context(n_ctx=None), free_mib=15_000, weights_mib=WEIGHTS, n_gpu_layers=99)
    assert (aborted.verdict, aborted.layers_kept) == ("evict", 65)
    assert "to 4096; failed to fit params" in aborted.action


def test_a_floor_that_just_fits_is_kept_and_a_byte_less_moves_a_layer():
    context = Context(n_ctx=None, type_k="q8_0", type_v="q8_0")
    floor = fit(QWEN_27B, Context(n_ctx=4096, type_k="q8_0", type_v="q8_0"), free_mib=1, weights_mib=WEIGHTS)
    exact = (floor.projected_bytes + floor.margin_bytes) / MIB
    found = fit(QWEN_27B, context, free_mib=exact, weights_mib=WEIGHTS)
    assert (found.verdict, found.n_ctx, found.layers_kept) == ("context reduced", 4096, 65)
    found = fit(QWEN_27B, context, free_mib=exact - 2**-20, weights_mib=WEIGHTS)
    assert (found.verdict, found.n_ctx, found.layers_kept) == ("evict", 4096, 64)


def test_a_context_set_by_the_user_or_asked_for_in_full_is_not_shrunk():
    for n_ctx in (262_144, 0):
        found = fit(QWEN_27B, Context(n_ctx=n_ctx, type_k="q8_0", type_v="q8_0"), free_mib=22_000, weights_mib=WEIGHTS)
        assert (found.verdict, found.n_ctx) == ("evict", 262_144)
        assert "context size" not in found.action


def test_a_model_no_longer_than_the_floor_is_not_shrunk():
    short = Model(name="short", layers=QWEN_27B.layers, max_position_embeddings=4096)
    found = fit(short, Context(n_ctx=None), free_mib=14_000, weights_mib=WEIGHTS)
    assert (found.verdict, found.n_ctx) == ("evict", 4096)
    assert "context size" not in found.action


# by hand: what is not known


def test_where_nobody_measured_the_constant_the_verdict_is_unknown_unless_it_lacks_room_without():
    roomy = fit(LLAMA_8B, Context(n_ctx=4096), free_mib=20_000, weights_mib=4000)
    assert (roomy.verdict, roomy.projected_mib, roomy.wall_tokens, roomy.deficit_mib) == ("unknown", None, None, None)
    assert roomy.known_bytes == (4000 + 512 + 4) * MIB
    rest = 20_000 - 1024 - 4000 - 512 - 4
    assert roomy.action.endswith(f"takes at most {rest:,.2f} MiB")
    assert fit(LLAMA_8B, Context(n_ctx=4096), free_mib=20_000, weights_mib=4000, compute_mib=4 + rest).fits
    tight = fit(LLAMA_8B, Context(n_ctx=4096), free_mib=5000, weights_mib=4000)
    assert (tight.verdict, tight.deficit_mib, tight.layers_kept) == ("evict", None, None)
    for free in (5000, 20_000):
        found = fit(LLAMA_8B, Context(n_ctx=4096), free_mib=free, weights_mib=4000, blocks=blocks(LLAMA_8B, 100))
        assert (found.moved_bytes, found.layers_kept) == (None, None)


def test_the_callers_own_compute_buffer_stands_in_for_a_constant():
    found = fit(LLAMA_8B, Context(n_ctx=4096), free_mib=20_000, weights_mib=4000, compute_mib=104)
    assert (found.verdict, found.projected_mib) == ("fits", 4000 + 512 + 104)
    doubled = fit(LLAMA_8B, Context(n_ctx=8192), free_mib=20_000, weights_mib=4000, compute_mib=108)
    assert doubled.wall_tokens == found.wall_tokens
    least = fit(LLAMA_8B, Context(n_ctx=4096), free_mib=20_000, weights_mib=4000, compute_mib=4)
    assert least.projected_mib == 4000 + 512 + 4
    measured = fit(QWEN_27B, Context(n_ctx=4096), free_mib=20_000, weights_mib=WEIGHTS, compute_mib=200)
    assert measured.projected_mib == WEIGHTS + 256 + 149.625 + 200


def test_the_wall_is_a_context_that_the_engine_does_not_pad():
    for slots, step in ((1, 256), (2, 512)):
        context = Context(n_ctx=65536, n_seq_max=slots, type_k="q8_0", type_v="q8_0")
        walls = {fit(QWEN_27B, context, free_mib=20_000 + k * 11, weights_mib=WEIGHTS).wall_tokens for k in range(8)}
        assert {wall % step for wall in walls} == {0}
        assert {wall % (2 * step) for wall in walls} == {0, step}
    three = fit(QWEN_27B, Context(n_ctx=65536, n_seq_max=3), free_mib=22_000, weights_mib=WEIGHTS, compute_mib=200)
    assert three.wall_tokens % 768 == 0
    assert three.wall_tokens > 0


def test_windows_are_counted_in_what_is_used():
    gemma = model("gemma3-27b")
    found = fit(gemma, Context(n_ctx=4096), free_mib=40_000, weights_mib=16_000, compute_mib=500)
    assert found.projected_bytes == 16_500 * MIB + found.memory.kv_bytes + found.memory.swa_bytes
    assert found.memory.swa_bytes > 0


def test_nothing_set_by_the_user_aborts_nothing():
    assert abort_reason(None) is None
    assert abort_reason(None, True) == "model_params::tensor_buft_overrides already set by user, abort"
    assert abort_reason(0).startswith("n_gpu_layers already set by user to 0")


def test_layers_cannot_be_counted_where_one_may_keep_nothing():
    mamba = Mamba2(num_layers=2, num_heads=8, head_dim=64, n_groups=1, state_size=128, conv_kernel_size=4)
    assert units_total(Model(name="mamba", layers=(mamba,)), Context(n_ctx=4096)) is None
    assert units_total(Model(name="hybrid", layers=(full(2, 8, 128), mamba)), Context(n_ctx=4096)) is None


def test_state_alone_has_no_wall():
    mamba = Mamba2(num_layers=2, num_heads=8, head_dim=64, n_groups=1, state_size=128, conv_kernel_size=4)
    found = fit(Model(name="mamba", layers=(mamba,)), Context(n_ctx=4096), free_mib=5000, weights_mib=100, compute_mib=100)
    assert (found.verdict, found.wall_tokens, found.memory.compute_growing_bytes) == ("fits", None, 0)


# refusals


@pytest.mark.parametrize(
    ("given_", "field"),
    [
        ({}, "free_mib"),
        ({"free_mib": 1, "free_before_mib": 1}, "free_mib"),
        ({"free_mib": -1}, "free_mib"),
        ({"free_mib": "24GB"}, "free_mib"),
        ({"free_mib": True}, "free_mib"),
        ({"free_mib": float("nan")}, "free_mib"),
        ({"free_before_mib": float("inf")}, "free_before_mib"),
        ({"free_mib": 1 << 34}, "free_mib"),
        ({"free_mib": 1, "fit_target_mib": -1}, "fit_target_mib"),
        ({"free_mib": 1, "vision_mib": -1}, "vision_mib"),
        ({"free_mib": 1, "n_gpu_layers": -1}, "n_gpu_layers"),
        ({"free_mib": 1, "n_gpu_layers": 64}, "n_gpu_layers"),
        ({"free_mib": 1, "compute_mib": 319}, "compute_mib"),
    ],
)
def test_sizes_that_are_none_are_refused_by_name(given_, field):
    context = Context(n_ctx=65536, **{**OCTOBER, "type_k": "f16", "type_v": "f16"}, draft_max=0)
    if "compute_mib" in given_:
        context = Context(n_ctx=65536, draft_max=1, **OCTOBER)
    with pytest.raises(AeliusError) as caught:
        fit(QWEN_27B, context, weights_mib=16_000, **given_)
    assert caught.value.field == field


def test_a_draft_without_mtp_layers_is_refused():
    with pytest.raises(AeliusError, match="draft_max: got 2"):
        fit(model("qwen35-27b"), Context(n_ctx=4096, draft_max=2), free_mib=1, weights_mib=1)


def test_fewer_layers_than_all_need_their_weights():
    mamba = Mamba2(num_layers=2, num_heads=8, head_dim=64, n_groups=1, state_size=128, conv_kernel_size=4)
    with pytest.raises(AeliusError, match="none set: this model's layers cannot be counted"):
        fit(Model(name="m", layers=(mamba,)), Context(n_ctx=256), free_mib=1, weights_mib=1, n_gpu_layers=99)
    with pytest.raises(AeliusError, match="n_gpu_layers: got 0, expected at least 65"):
        fit(QWEN_27B, Context(n_ctx=256), free_mib=1, weights_mib=WEIGHTS, n_gpu_layers=0)


def test_an_order_of_layers_that_is_not_the_models_is_refused():
    for pattern in (("GatedDeltaNet",), ("FullAttention", "GatedDeltaNet")):
        with pytest.raises(AeliusError, match="pattern"):
            blocks_of(QWEN_27B, BlockWeights(weights_mib=1, by_kind=REPLAYED_27B.by_kind, pattern=pattern))
    with pytest.raises(AeliusError, match="pattern"):
        blocks_of(QWEN_27B, BlockWeights(weights_mib=1, by_kind={"FullAttention": 1}, pattern=REPLAYED_27B.pattern))


def test_builds_are_named_by_their_month():
    assert (build_of("jul").date, build_of("oct").date) == ("2026-07-11", "2026-10-01")
    assert mib_bytes("free_mib", 0.01) == 10_486
    assert mib_bytes("free_mib", 1 << 33) == 1 << 53
    with pytest.raises(AeliusError, match="free_mib"):
        mib_bytes("free_mib", (1 << 33) + 1)


def test_the_replayed_files_layers_weigh_what_4_5_bits_a_weight_give():
    hidden, intermediate = 5120, 17_408
    mlp = 3 * hidden * intermediate
    delta_net = hidden * (10_240 + 6144 + 2 * 48) + 6144 * hidden  # qkv, gate, two a head; out
    attention = hidden * (2 * 24 * 256 + 2 * 4 * 256) + 24 * 256 * hidden  # Q with its gate, K, V; out
    for kind, weights in (("GatedDeltaNet", delta_net + mlp), ("FullAttention", attention + mlp)):
        assert round(weights * 4.5 / 8 / MIB, 1) == REPLAYED_27B.by_kind[kind]


# properties

contexts = st.builds(
    Context,
    n_ctx=st.integers(600, 200_000),
    n_seq_max=st.sampled_from([1, 2]),
    kv_unified=st.booleans(),
    type_k=st.sampled_from(["f16", "q8_0"]),
    type_v=st.sampled_from(["f16", "q8_0"]),
    draft_max=st.integers(0, 3),
    n_ubatch=st.sampled_from([256, 512]),
    build=st.sampled_from(["jul", "oct"]),
)


@few
@given(context=contexts, free=st.integers(10_000, 40_000), target=st.integers(0, 4000), more=st.integers(0, 4000))
def test_more_margin_never_fits_more(context, free, target, more):
    less = fit(QWEN_27B, context, free_mib=free, weights_mib=WEIGHTS, fit_target_mib=target)
    asked = fit(QWEN_27B, context, free_mib=free, weights_mib=WEIGHTS, fit_target_mib=target + more)
    assert not (asked.fits and not less.fits)
    assert asked.deficit_bytes >= less.deficit_bytes
    assert asked.layers_kept <= less.layers_kept
    assert asked.wall_tokens <= less.wall_tokens


@few
@given(context=contexts, free=st.integers(15_000, 30_000))
def test_the_wall_fits_and_one_step_more_does_not(context, free):
    wall = fit(QWEN_27B, context, free_mib=free, weights_mib=WEIGHTS).wall_tokens
    step = 256 * context.streams
    assert wall % step == 0
    for n_ctx, fits in ((wall, True), (wall + step, False)):
        if n_ctx >= 512:
            moved = Context(**{**vars(context), "n_ctx": n_ctx})
            assert fit(QWEN_27B, moved, free_mib=free, weights_mib=WEIGHTS).fits is fits


@few
@given(context=contexts, free=st.integers(12_000, 22_000))
def test_what_stays_after_an_eviction_keeps_the_margin_and_one_layer_more_would_not(context, free):
    found = fit(QWEN_27B, context, free_mib=free, weights_mib=WEIGHTS)
    assume(found.verdict == "evict" and found.layers_kept > found.layers_total - 64)
    moved = found.layers_total - found.layers_kept
    sizes = [block.weights_bytes + layer_cache_bytes(block.layer, found.memory)
             for block in blocks_of(QWEN_27B, REPLAYED_27B)]  # fmt: skip
    assert sum(sizes[:moved]) >= found.deficit_bytes
    assert moved == 1 or sum(sizes[: moved - 1]) < found.deficit_bytes


@few
@given(wall=st.integers(0, 5000), step=st.integers(1, 600), start=st.integers(1, 9))
def test_the_search_finds_the_largest_multiple(wall, step, start):
    assert largest(lambda size: size <= wall, step, start * step) == wall // step * step


def test_the_search_goes_to_the_most_cells_that_a_context_can_have():
    assert largest(lambda size: True, 256, 256) is None
    assert largest(lambda size: size < (1 << 32) - 256, 256, 256) == (1 << 32) - 512
    assert largest(lambda size: size <= (1 << 32) - 256, 256, 256) is None
    assert largest(lambda size: size <= 768, 256, 1024) == 768
    assert largest(lambda size: size == 256, 256, 1024) == 256
    assert largest(lambda size: False, 256, 1024) == 0
