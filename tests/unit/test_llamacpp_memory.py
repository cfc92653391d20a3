"""llama.cpp's caches, state and compute buffer: golden runs and logs, the article's table by hand, properties, refusals."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llamacpp_models import LAYERS, QWEN_27B, delta, full, golden, model, printed, slides

from aelius_math.cache import MLA, FullAttention, GatedDeltaNet, KimiDelta, Layers, Mamba1
from aelius_math.cache_kinds import ShortConvolution
from aelius_math.catalogue import load
from aelius_math.llamacpp import Context, fit, memory
from aelius_math.llamacpp_builds import (
    EMBEDDING_27B,
    VISION_27B_MIB,
    VOCABULARY_27B,
    is_qwen_27b,
    logits_buffer_bytes,
)
from aelius_math.llamacpp_context import CACHE_TYPES
from aelius_math.llamacpp_memory import window_cells
from aelius_math.model import Model
from aelius_math.units import MIB, AeliusError

few = settings(max_examples=30, deadline=None)

RUNS = golden("llamacpp_memory.json")
LOGS = golden("llamacpp_logs.json")


def context_of(row, **other):
    return Context(
        n_ctx=row["ctx"],
        n_seq_max=row["slots"],
        kv_unified=row["kv_unified"],
        type_k=row["type_k"],
        type_v=row["type_v"],
        n_ubatch=row["ubatch"],
        **other,
    )


# golden: a real build's own log


def test_every_run_of_the_real_build_is_equal_to_the_hundredth_of_a_mib_or_refused_as_it_refuses():
    loaded = refused = 0
    for row in RUNS:
        if "error" in row:
            with pytest.raises(AeliusError, match="unequal types for MLA"):
                memory(model(row["model"]), context_of(row, build="oct"))
            refused += 1
            continue
        found, log = memory(model(row["model"]), context_of(row, build="oct")), row["log"]
        assert (found.n_ctx, found.n_ctx_seq) == (log["n_ctx"], log["n_ctx_seq"]), row
        caches = [
            {
                "size": printed(cache.size_bytes),
                "cells": cache.cells,
                "layers": cache.layers,
                "n_seq": found.slots,
                "streams": cache.streams,
                "k": printed(cache.k_bytes),
                "v": printed(cache.v_bytes),
            }
            for cache in found.caches
        ]
        assert caches == log["kv"], row
        assert printed(found.kv_bytes + found.swa_bytes) == printed(sum(c.size_bytes for c in found.caches))
        state = log.get("rs")
        if state:
            assert (state["cells"], state["R"], state["S"], state["size"]) == (
                found.recurrent_rows,
                printed(found.conv_bytes),
                printed(found.state_bytes),
                printed(found.recurrent_bytes),
            ), row
        else:
            assert found.recurrent_bytes == 0
        loaded += 1
    assert (loaded, refused) == (220, 11)


def log_rows(*kinds):
    return [row for row in LOGS if row["kind"] in kinds]


def test_public_kv_lines_are_equal_as_printed():
    rows = log_rows("kv")
    for row in rows:
        context = Context(n_ctx=row["cells"], type_k=row["tk"], type_v=row["tv"] or row["tk"])
        (cache,) = [c for c in memory(model(row["geometry"]), context).caches if c.role == "full"]
        assert printed(cache.size_bytes if row["tv"] else cache.k_bytes) == row["logged_MiB"], row
    assert len(rows) == 22


def test_public_sliding_window_lines_are_equal_as_printed():
    rows = log_rows("swa")
    for row in rows:
        context = Context(
            n_ctx=row["n_ctx"],
            n_seq_max=row["n_seq"],
            kv_unified=row["unified"],
            n_ubatch=row["ub"],
            n_batch=2048,
            type_k=row["tk"],
            type_v=row["tv"],
        )
        found = memory(model(row["geometry"]), context)
        assert (found.swa_cells, printed(found.swa_bytes)) == (row["logged_cells"], row["logged_MiB"]), row
    assert len(rows) == 6


def test_public_recurrent_state_lines_are_equal_as_printed():
    rows = log_rows("rs")
    for row in rows:
        context = Context(n_ctx=8192, n_seq_max=row["n_seq"], draft_max=row["n_rs_seq"])
        assert printed(memory(model(row["geometry"]), context).recurrent_bytes) == row["logged_MiB"], row
    assert len(rows) == 9


def test_public_compute_lines_are_equal_as_printed_but_for_the_boot_that_had_evicted_two_layers():
    evicted = 0
    for row in log_rows("compute_main", "compute_full", "compute_mtp"):
        context = Context(n_ctx=row["n_ctx"], type_k="q4_0", type_v="q4_0", draft_max=1, n_ubatch=row["ub"], build="jul")
        found = memory(QWEN_27B, context)
        size = found.compute_draft_bytes if row["kind"] == "compute_mtp" else found.compute_main_bytes
        if row["logged_MiB"] == 777.57:
            assert printed(size) == 760.27
            evicted += 1
        elif row["kind"] == "compute_full":  # printed without decimals
            assert round(size / MIB) == row["logged_MiB"]
        else:
            assert printed(size) == row["logged_MiB"], row
    assert evicted == 1


def test_the_draft_estimate_with_a_quantised_cache_is_equal_as_printed():
    (row,) = log_rows("mtp_estimate_q8")
    context = Context(n_ctx=row["n_ctx"], type_k_draft="q8_0", type_v_draft="q8_0", draft_max=1, n_ubatch=row["ub"], n_batch=512)
    found = memory(QWEN_27B, context)
    assert printed(found.draft_kv_bytes + found.compute_draft_bytes) == row["logged_MiB"] == 849.78


def test_builds_before_june_2026_reserved_logits_for_every_row():
    (row,) = log_rows("compute_logits")
    assert logits_buffer_bytes(row["ub"], VOCABULARY_27B, EMBEDDING_27B) / MIB == row["logged_MiB"]


def test_the_vision_constant_is_the_logged_worst_case_less_its_part_on_the_cpu():
    (row,) = log_rows("mmproj")
    assert round(VISION_27B_MIB + 24.93, 2) == row["logged_MiB"]


# by hand

JULY = {"n_seq_max": 2, "type_k": "q8_0", "type_v": "q8_0", "build": "jul"}


@pytest.mark.parametrize(
    ("k", "main", "scratch", "draft", "draft_q8", "masks"),
    [
        (64, 2176, 256, 256, 136, 64),
        (80, 2720, 320, 320, 170, 80),
        (84, 2856, 336, 336, 178.5, 84),
        (86, 2924, 344, 344, 182.75, 86),
    ],
)
def test_the_table_of_what_grows_on_the_articles_card(k, main, scratch, draft, draft_q8, masks):
    found = memory(QWEN_27B, Context(n_ctx=k * 1024, draft_max=1, **JULY))
    assert found.kv_bytes == main * MIB
    assert found.scratch_bytes == scratch * MIB
    assert found.draft_kv_bytes == draft * MIB
    assert found.mask_bytes + found.draft_mask_bytes == masks * MIB
    assert found.draft_scratch_bytes == 0
    quantised = Context(n_ctx=k * 1024, draft_max=1, type_k_draft="q8_0", type_v_draft="q8_0", **JULY)
    assert memory(QWEN_27B, quantised).draft_kv_bytes == draft_q8 * MIB


def test_recurrent_state_is_counted_per_slot_and_once_more_for_each_drafted_token():
    sizes = [memory(QWEN_27B, Context(n_ctx=65536, draft_max=k, **JULY)).recurrent_bytes / MIB for k in range(5)]
    assert sizes == [299.25, 598.5, 897.75, 1197.0, 1496.25]
    assert memory(QWEN_27B, Context(n_ctx=4096)).recurrent_bytes / MIB == 149.625


def test_architectures_without_rollback_keep_one_state_a_slot_however_much_is_drafted():
    kimi = KimiDelta(num_layers=20, num_heads=32, head_dim=128, conv_kernel_size=4)
    linear = Model(name="kimi", layers=(kimi,), architecture="kimi-linear")
    found = memory(linear, Context(n_ctx=256, n_seq_max=2, draft_max=3))
    assert found.recurrent_rows == 2
    assert found.state_bytes == 4 * 20 * 524_288 * 2
    assert found.conv_bytes == 4 * 20 * 3 * 3 * 4096 * 2
    next_80b = Model(name="Qwen3-Next", layers=(delta(36, 16, 32),), architecture="qwen3next")
    assert memory(next_80b, Context(n_ctx=256, draft_max=3)).recurrent_rows == 1


@pytest.mark.parametrize(("name", "rows"), [("nemotron-3.5-lightning-30b-a3b", 3), ("lfm2.5-8b-a1b", 3),
    ("qwen3-next-80b-a3b", 1), ("kimi-k3", 3), ("kimi-linear-48b-a3b", 1), ("qwen3.5-35b-a3b", 3), ("jamba-v0.1", 1)])  # fmt: skip
def test_a_config_says_by_its_model_type_whether_the_state_can_be_rolled_back(name, rows):
    assert memory(load(name), Context(n_ctx=256, draft_max=2)).recurrent_rows == rows


def test_july_rolled_back_only_the_class_of_qwen35():
    rows = [memory(load(name), Context(n_ctx=256, draft_max=2, build="jul")).recurrent_rows for name in (
        "qwen3.5-27b", "nemotron-3.5-lightning-30b-a3b", "lfm2.5-8b-a1b", "kimi-k3")]  # fmt: skip
    assert rows == [3, 1, 1, 1]


def test_layers_by_hand_are_judged_by_their_kind_and_refused_where_the_kind_does_not_tell():
    kimi = KimiDelta(num_layers=20, num_heads=32, head_dim=128, conv_kernel_size=4)
    short = ShortConvolution(num_layers=10, hidden_size=2048, conv_kernel_size=3)
    mamba = Mamba1(num_layers=8, intermediate_size=8192, state_size=16, conv_kernel_size=4)
    drafts = Context(n_ctx=256, draft_max=3)
    assert memory(Model(name="lfm2", layers=(short,)), drafts).recurrent_rows == 4
    assert memory(Model(name="mixed", layers=(mamba, delta(1, 16, 48))), drafts).recurrent_rows == 1
    mixed = Model(name="mixed", layers=(kimi, delta(1, 16, 48)))
    with pytest.raises(AeliusError, match="architecture: got None"):
        memory(mixed, drafts)
    assert memory(mixed, Context(n_ctx=256)).recurrent_rows == 1
    assert memory(mixed, Context(n_ctx=256, draft_max=3, build="jul")).recurrent_rows == 1


def test_attention_alone_has_no_state():
    assert memory(model("llama8b"), Context(n_ctx=256)).recurrent_rows == 0


def test_cache_types_do_not_touch_the_recurrent_state_and_its_dtype_in_the_model_does_not_either():
    assert {memory(QWEN_27B, Context(n_ctx=4096, type_k=name, type_v=name)).recurrent_bytes for name in CACHE_TYPES} == {156_893_184}
    half = GatedDeltaNet(**{**vars(delta(48, 16, 48)), "state_dtype": "bf16", "conv_dtype": "bf16"})
    halved = Model(name="27B", layers=(full(16, 4, 256), half))
    assert memory(halved, Context(n_ctx=4096)).recurrent_bytes == 156_893_184


@pytest.mark.parametrize(
    ("type_k", "type_v", "kib"),
    [("f16", "f16", 64), ("q8_0", "q8_0", 34), ("q4_0", "q4_0", 18), ("q8_0", "q4_0", 26), ("f32", "f32", 128),
     ("bf16", "bf16", 64), ("q5_1", "q4_1", 22), ("q5_0", "iq4_nl", 20)],
)  # fmt: skip
def test_bytes_of_a_token_by_row_type(type_k, type_v, kib):
    found = memory(QWEN_27B, Context(n_ctx=1024, type_k=type_k, type_v=type_v))
    assert found.kv_bytes == kib * 1024 * 1024


@pytest.mark.parametrize(
    ("flags", "split"),
    [
        ({"n_ctx": 4096, "n_seq_max": 10}, (5120, 512)),
        ({"n_ctx": 1000}, (1024, 1024)),
        ({"n_ctx": 1000, "n_seq_max": 3}, (1536, 512)),
        ({"n_ctx": 1000, "n_seq_max": 3, "kv_unified": True}, (1024, 1024)),
        ({"n_ctx": 84000, "n_seq_max": 2, "kv_unified": True}, (84224, 84224)),
        ({"n_ctx": 84000, "n_seq_max": 2}, (84480, 42240)),
        ({"n_ctx": 86000, "n_seq_max": 2}, (86016, 43008)),
        ({"n_ctx": 65536, "n_seq_max": 2}, (65536, 32768)),
        ({"n_ctx": 65536, "n_seq_max": None}, (65536, 65536)),
        ({"n_ctx": 65536, "n_seq_max": None, "kv_unified": False}, (65536, 65536)),
        ({"n_ctx": 65536, "n_seq_max": 4, "kv_unified": False}, (65536, 16384)),
        ({"n_ctx": 1, "n_seq_max": 256}, (65536, 256)),
    ],
)
def test_the_context_is_padded_up_in_all_and_per_slot(flags, split):
    assert Context(**flags).split() == split


def test_slots_are_split_when_their_number_is_given_and_share_one_pool_when_it_is_not():
    given_two, left_unset = Context(n_ctx=65536, n_seq_max=2), Context(n_ctx=65536, n_seq_max=None)
    assert (given_two.streams, given_two.unified) == (2, False)
    assert (left_unset.streams, left_unset.unified, left_unset.slots) == (1, True, 4)


def test_two_conversations_of_34k_fit_neither_half_of_a_split_64k_nor_the_whole_of_a_shared_one():
    assert Context(n_ctx=65536, n_seq_max=2).split()[1] == 32_768 < 34 * 1024
    assert Context(n_ctx=65536, n_seq_max=2, kv_unified=True).split()[0] == 65_536 < 2 * 34 * 1024
    assert Context(n_ctx=84 * 1024, n_seq_max=2).split()[1] == 43_008 > 34 * 1024


def test_splitting_or_sharing_does_not_change_what_the_cache_takes_but_halves_the_mask():
    split = memory(QWEN_27B, Context(n_ctx=65536, draft_max=1, **JULY))
    shared = memory(QWEN_27B, Context(n_ctx=65536, draft_max=1, kv_unified=True, **JULY))
    assert (split.kv_bytes, split.draft_kv_bytes, split.scratch_bytes) == (
        shared.kv_bytes,
        shared.draft_kv_bytes,
        shared.scratch_bytes,
    )
    assert (split.mask_bytes, shared.mask_bytes) == (32 * MIB, 64 * MIB)
    assert split.cells * split.streams == shared.cells == 65_536


def test_a_draft_cache_of_which_half_is_not_f16_has_the_main_contexts_constant():
    for types in ({"type_k_draft": "q8_0"}, {"type_v_draft": "q8_0"}):
        found = memory(QWEN_27B, Context(n_ctx=65536, draft_max=1, **types, **JULY))
        assert printed(found.draft_constant_bytes) == 80.28
        assert found.draft_scratch_bytes == 128 * MIB


def test_an_f16_cache_needs_no_copy_and_every_other_type_needs_one_of_the_parts_that_are_not_f16():
    token = 2 * 4 * 256
    for type_k, type_v, copied in [("f16", "f16", 0), ("q8_0", "f16", 1), ("f16", "q8_0", 1), ("bf16", "bf16", 2)]:
        found = memory(QWEN_27B, Context(n_ctx=1024, type_k=type_k, type_v=type_v))
        assert found.scratch_bytes == copied * token * 1024


def test_mla_keeps_k_only_and_copies_it_once():
    found = memory(model("dsv2lite"), Context(n_ctx=1024, type_k="q8_0", type_v="q8_0"))
    assert found.kv_bytes == 27 * 576 // 32 * 34 * 1024
    assert (found.caches[0].v_bytes, found.scratch_bytes) == (0, 576 * 2 * 1024)


def test_a_head_with_unequal_k_and_v_is_counted_as_both():
    layers = (FullAttention(num_layers=2, num_kv_heads=8, head_size=192, head_size_v=128),)
    found = memory(Model(name="mimo", layers=layers), Context(n_ctx=256))
    assert (found.caches[0].k_bytes, found.caches[0].v_bytes) == (2 * 8 * 192 * 2 * 256, 2 * 8 * 128 * 2 * 256)


def test_a_window_takes_the_slots_that_share_it_a_micro_batch_and_never_more_than_the_context():
    assert window_cells(1024, 8192, 4, True, 512) == 4608
    assert window_cells(1024, 8192, 4, False, 512) == 1536
    assert window_cells(1024, 1024, 1, False, 2048) == 1024
    assert window_cells(128, 131072, 1, False, 512) == 768
    assert window_cells(1000, 8192, 1, False, 100) == 1280


def test_flags_left_unset_are_the_servers_own():
    found = memory(QWEN_27B, Context(n_ctx=4096))
    assert (found.n_ubatch, found.slots, found.recurrent_rows, found.build) == (512, 1, 1, "oct")
    assert {cache.type_k for cache in found.caches} | {cache.type_v for cache in found.caches} == {"f16"}
    assert memory(QWEN_27B, Context(n_ctx=4096, n_ubatch=4096)).n_ubatch == 2048
    drafted = memory(QWEN_27B, Context(n_ctx=4096, draft_max=1, type_k="q8_0", type_v="q8_0")).caches[-1]
    assert (drafted.type_k, drafted.type_v) == ("f16", "f16")


def test_what_grows_in_the_compute_buffers_is_both_masks_and_both_copies():
    found = memory(QWEN_27B, Context(n_ctx=65536, draft_max=1, type_k_draft="q8_0", type_v_draft="q8_0", **JULY))
    assert found.compute_growing_bytes == (32 + 32 + 256 + 256) * MIB
    plain = memory(QWEN_27B, Context(n_ctx=65536, **JULY))
    assert (plain.draft_mask_bytes, plain.draft_scratch_bytes, plain.draft_constant_bytes) == (0, 0, 0)
    assert plain.compute_growing_bytes == (32 + 256) * MIB


def test_windows_alone_have_no_mask_that_grows_and_their_draft_has_its_own_cells():
    windows = Model(name="drafter", layers=(slides(5, 8, 128, 2048),), mtp_layers=(slides(1, 8, 128, 2048),))
    found = memory(windows, Context(n_ctx=32768, draft_max=1, type_k="q8_0"))
    assert (found.mask_bytes, found.scratch_bytes, found.draft_mask_bytes) == (0, 0, 0)
    assert (found.kv_bytes, found.swa_cells) == (0, 2560)
    assert found.draft_kv_bytes == 2 * 8 * 128 * 2 * 2560
    state = memory(Model(name="state", layers=(delta(48, 16, 48),)), Context(n_ctx=256))
    assert (state.mask_bytes, state.scratch_bytes, state.kv_bytes) == (0, 0, 0)


def test_a_micro_batch_of_one_and_the_largest_are_taken():
    for size in (1, 1 << 24):
        assert memory(QWEN_27B, Context(n_ctx=256, n_ubatch=size, n_batch=size)).n_ubatch == min(size, 256)
    assert Context(n_ctx=256, draft_max=1024).draft_max == 1024


def test_the_micro_batch_is_cut_by_the_batch_and_by_the_context():
    assert memory(QWEN_27B, Context(n_ctx=4096, n_batch=256)).n_ubatch == 256
    assert memory(QWEN_27B, Context(n_ctx=300)).n_ubatch == 300


def test_the_constant_is_known_for_the_27b_at_the_settings_measured_and_for_nothing_else():
    assert printed(memory(QWEN_27B, Context(n_ctx=65536, draft_max=1, **JULY)).compute_bytes) == 498.3
    assert memory(model("llama8b"), Context(n_ctx=4096)).compute_bytes is None
    assert memory(QWEN_27B, Context(n_ctx=4096, n_ubatch=1024)).compute_bytes is None
    assert memory(QWEN_27B, Context(n_ctx=4096, n_seq_max=3)).compute_bytes is None
    assert memory(QWEN_27B, Context(n_ctx=4096, n_seq_max=None)).compute_bytes is not None
    assert memory(QWEN_27B, Context(n_ctx=4096, n_seq_max=2, draft_max=15)).compute_bytes is not None
    assert memory(QWEN_27B, Context(n_ctx=4096, n_seq_max=2, draft_max=16)).compute_bytes is None
    assert memory(QWEN_27B, Context(n_ctx=4096, draft_max=31)).compute_bytes is not None
    assert memory(QWEN_27B, Context(n_ctx=4096, draft_max=32)).compute_bytes is None
    assert memory(model("llama8b"), Context(n_ctx=4096)).compute_growing_bytes == 4096 * 512 * 2


@pytest.mark.parametrize(
    "layers",
    [
        (full(16, 4, 128), delta(48, 16, 48)),
        (full(16, 8, 256), delta(48, 16, 48)),
        (full(15, 4, 256), delta(48, 16, 48)),
        (full(16, 4, 256), delta(47, 16, 48)),
        (full(16, 4, 256), delta(48, 8, 48)),
        (full(16, 4, 256), delta(48, 16, 32)),
        (full(16, 4, 256),),
        (full(16, 4, 256), full(48, 4, 256)),
        (FullAttention(num_layers=16, num_kv_heads=4, head_size=256, head_size_v=128), delta(48, 16, 48)),
    ],
)
def test_no_other_geometry_passes_for_the_27b(layers):
    assert is_qwen_27b(QWEN_27B)
    assert not is_qwen_27b(Model(name="other", layers=layers))


def test_a_drafter_that_is_a_model_of_its_own_is_not_known():
    found = memory(model("qwen35-27b"), Context(n_ctx=4096, draft_max=2))
    assert (found.draft_kv_bytes, found.recurrent_bytes) == (None, 3 * 156_893_184)


def test_an_unset_context_is_the_models_own_and_in_october_once_a_slot_where_slots_are_split():
    assert memory(QWEN_27B, Context(n_ctx=None)).n_ctx == 262_144
    assert memory(QWEN_27B, Context(n_ctx=0, n_seq_max=2)).n_ctx == 524_288
    assert memory(QWEN_27B, Context(n_ctx=None, n_seq_max=2, build="jul")).n_ctx == 262_144
    assert memory(QWEN_27B, Context(n_ctx=None, n_seq_max=2, kv_unified=True)).n_ctx == 262_144


# refusals


@pytest.mark.parametrize(
    ("flags", "field"),
    [
        ({"n_ctx": -1}, "n_ctx"),
        ({"n_ctx": 1 << 32}, "n_ctx"),
        ({"n_ctx": "64K"}, "n_ctx"),
        ({"n_ctx": 4096, "n_seq_max": 0}, "n_seq_max"),
        ({"n_ctx": 4096, "n_seq_max": 257}, "n_seq_max"),
        ({"n_ctx": 4096, "kv_unified": "yes"}, "kv_unified"),
        ({"n_ctx": 4096, "type_k": "fp8"}, "type_k"),
        ({"n_ctx": 4096, "type_v": "q3_k"}, "type_v"),
        ({"n_ctx": 4096, "type_k_draft": None}, "type_k_draft"),
        ({"n_ctx": 4096, "type_v_draft": 8}, "type_v_draft"),
        ({"n_ctx": 4096, "draft_max": -1}, "draft_max"),
        ({"n_ctx": 4096, "n_ubatch": 0}, "n_ubatch"),
        ({"n_ctx": 4096, "n_batch": 0}, "n_batch"),
        ({"n_ctx": 4096, "n_ubatch": (1 << 24) + 1}, "n_ubatch"),
        ({"n_ctx": 4096, "n_batch": (1 << 24) + 1}, "n_batch"),
        ({"n_ctx": 4096, "draft_max": 1025}, "draft_max"),
        ({"n_ctx": 4096, "build": "may"}, "build"),
        ({"n_ctx": 4096, "build": None}, "build"),
    ],
)
def test_flags_that_are_none_are_refused_by_name(flags, field):
    with pytest.raises(AeliusError) as caught:
        Context(**flags)
    assert caught.value.field == field


def test_an_unset_context_of_a_model_without_a_length_is_refused():
    with pytest.raises(AeliusError, match="n_ctx: got None"):
        memory(model("llama8b"), Context(n_ctx=None))


def test_heads_that_are_no_whole_blocks_are_refused_for_quantised_types_only():
    odd = Model(name="phi2", layers=(full(2, 4, 80),))
    assert memory(odd, Context(n_ctx=256)).kv_bytes == 2 * 2 * 320 * 2 * 256
    with pytest.raises(AeliusError, match="type_v: got 'q8_0'"):
        memory(odd, Context(n_ctx=256, type_v="q8_0"))


SPARSE = MLA(num_layers=2, kv_lora_rank=512, qk_rope_head_dim=64, index_head_dim=128)


def test_sparse_index_keys_have_a_cache_of_the_type_of_k_beside_the_main_one_and_drafts_have_none():
    model = Model(name="v3.2", layers=(SPARSE,), mtp_layers=(SPARSE,))
    found = memory(model, Context(n_ctx=512, draft_max=1, type_k="q8_0", type_v="q8_0"))
    assert [(cache.role, cache.k_bytes, cache.v_bytes) for cache in found.caches] == [
        ("full", 2 * 512 * 576 // 32 * 34, 0), ("index", 2 * 512 * 128 // 32 * 34, 0), ("draft full", 2 * 512 * 576 * 2, 0),
    ]  # fmt: skip
    assert found.kv_bytes == 2 * 512 * (576 + 128) // 32 * 34


def test_what_the_fit_pass_counts_of_sparse_attention_is_refused_by_name():
    model = Model(name="v3.2", layers=(SPARSE,))
    with pytest.raises(AeliusError, match="index_head_dim: got 128"):
        fit(model, Context(n_ctx=512), free_mib=1000, weights_mib=10)


def test_an_index_key_that_is_no_whole_block_is_refused_for_quantised_types_only():
    odd = MLA(num_layers=2, kv_lora_rank=512, qk_rope_head_dim=64, index_head_dim=80)
    assert memory(Model(name="odd", layers=(odd,)), Context(n_ctx=256)).caches[1].k_bytes == 2 * 256 * 160
    with pytest.raises(AeliusError, match="the index key has 80 values"):
        memory(Model(name="odd", layers=(odd,)), Context(n_ctx=256, type_k="q8_0", type_v="q8_0"))


def test_unequal_types_of_mla_are_refused_since_the_build_that_refuses_them():
    unequal = {"n_ctx": 256, "type_k": "q8_0", "type_v": "f16"}
    assert memory(model("dsv2lite"), Context(**unequal, build="jul")).kv_bytes == 27 * 256 * 576 // 32 * 34
    with pytest.raises(AeliusError, match="type_v: got 'f16', expected q8_0"):
        memory(model("dsv2lite"), Context(**unequal))


def test_grok_runs_without_flash_attention_so_its_v_is_not_quantised():
    grok = Model(name="grok", layers=(full(64, 8, 128),), architecture="grok")
    assert memory(grok, Context(n_ctx=256, type_k="q8_0", type_v="bf16")).kv_bytes > 0
    with pytest.raises(AeliusError, match="type_v: got 'q8_0', expected f32, f16 or bf16"):
        memory(grok, Context(n_ctx=256, type_k="q8_0", type_v="q8_0"))


def test_unknown_kinds_of_layer_are_refused_by_name():
    class Novel(Layers):
        pass

    with pytest.raises(AeliusError, match="layers: got 'Novel'"):
        memory(Model(name="new", layers=(Novel(num_layers=1),)), Context(n_ctx=256))


# properties

contexts = st.builds(
    Context,
    n_ctx=st.integers(1, 400_000),
    n_seq_max=st.integers(1, 16),
    kv_unified=st.booleans(),
    type_k=st.sampled_from(["f16", "q8_0", "q4_0"]),
    type_k_draft=st.sampled_from(["f16", "q8_0"]),
    draft_max=st.integers(0, 4),
    n_ubatch=st.sampled_from([128, 256, 512, 2048]),
    build=st.sampled_from(["jul", "oct"]),
)
names = st.sampled_from(["qwen35-27b", "gemma3-27b", "gpt-oss-20b", "llama8b"])


@few
@given(context=contexts)
def test_the_split_covers_what_was_asked_and_pads_by_less_than_a_row_a_slot(context):
    n_ctx, n_ctx_seq = context.split()
    assert n_ctx >= context.n_ctx
    assert n_ctx == n_ctx_seq * context.streams
    assert n_ctx_seq % 256 == 0
    assert n_ctx - context.n_ctx < 256 * (context.streams + 1)


@few
@given(name=names, context=contexts, more=st.integers(0, 100_000))
def test_more_context_never_takes_less_memory(name, context, more):
    larger = Context(**{**vars(context), "n_ctx": context.n_ctx + more})
    small, large = (memory(model(name), each) for each in (context, larger))
    assert small.kv_bytes <= large.kv_bytes
    assert small.swa_bytes <= large.swa_bytes
    assert small.recurrent_bytes == large.recurrent_bytes
    assert small.compute_growing_bytes <= large.compute_growing_bytes


@few
@given(context=contexts)
def test_sizes_are_whole_bytes_and_add_up(context):
    found = memory(QWEN_27B, context)
    sizes = [found.kv_bytes, found.swa_bytes, found.conv_bytes, found.state_bytes, found.draft_kv_bytes]
    assert all(type(size) is int for size in sizes)
    assert sum(cache.size_bytes for cache in found.caches) == found.kv_bytes + found.swa_bytes + found.draft_kv_bytes
    if found.compute_bytes is not None:
        constants = found.constant_bytes + found.draft_constant_bytes
        assert found.compute_bytes == found.compute_growing_bytes + constants
    assert LAYERS["qwen35-27b"][0].num_layers == found.caches[0].layers
