"""llama.cpp's fit pass on several devices: a toy worked by hand, the split by free memory, properties, refusals."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llamacpp_models import QWEN_27B, delta, full, slides

from aelius_math.llamacpp import Block, Context, fit, fit_devices, memory
from aelius_math.llamacpp_builds import REPLAYED_27B
from aelius_math.llamacpp_case import blocks_of
from aelius_math.llamacpp_devices import Layout, fill, split_by_free
from aelius_math.model import Model
from aelius_math.units import MIB, AeliusError

few = settings(max_examples=30, deadline=None)

# 8 layers of 100 MiB; 1,024 tokens of f16 cache add 4 MiB a layer and a mask of 1 MiB a device.
TOY = Model(name="toy", layers=(full(8, 8, 128),), max_position_embeddings=32_768)
BLOCKS = tuple(Block(layer=TOY.layers[0], weights_bytes=100 * MIB) for _ in range(8))
TOY_CONTEXT = Context(n_ctx=1024)


def toy(free, target=0, **other):
    context = other.pop("context", TOY_CONTEXT)
    given_ = {"blocks": BLOCKS, "output_mib": 50, "compute_mib": [11] * len(free), "fit_target_mib": target, **other}
    return fit_devices(TOY, context, free_mib=free, **given_)


def units(found):
    return [device.units for device in found.devices]


def used(devices):
    return [device.used_bytes / MIB for device in devices]


def test_layers_are_first_laid_out_in_proportion_to_free_memory_front_layers_first():
    assert split_by_free(9, [2000, 1000]) == [6, 3]
    assert split_by_free(66, [1]) == [66]
    assert split_by_free(5, [0, 7]) == [0, 5]
    assert split_by_free(66, [23_000, 24_000]) == [33, 33]
    assert split_by_free(3, [1, 1]) == [2, 1]


def test_devices_that_each_keep_their_margin_are_left_as_they_are():
    found = toy([1000, 1000], target=300)
    assert (found.verdict, units(found)) == ("fits", [5, 4])
    assert used(found.devices) == [5 * 104 + 11, 3 * 104 + 50 + 11]
    assert found.action.endswith("no changes needed")
    assert found.projected == found.devices
    assert (found.layers_kept, found.layers_total) == (9, 9)


def test_one_device_below_its_margin_has_the_layers_laid_anew_last_device_first():
    found = toy([500, 1000])  # in proportion: 3 and 6 units, 323 and 581 MiB
    assert (found.verdict, units(found)) == ("fits", [3, 6])
    found = toy([500, 1000], target=[200, 0])  # the first leaves 177 < 200
    assert (found.verdict, units(found)) == ("moved", [0, 9])
    assert used(found.devices) == [0, 8 * 104 + 50 + 11]
    found = toy([500, 1000], target=[200, 200])  # the last takes what 800 hold: output and 7 layers
    assert (found.verdict, units(found)) == ("moved", [1, 8])
    assert used(found.devices) == [104 + 11, 7 * 104 + 50 + 11]


def test_what_no_device_holds_goes_to_the_cpu_from_the_front():
    found = toy([300, 500])
    assert (found.verdict, units(found)) == ("evict", [2, 5])
    assert (found.layers_kept, found.layers_total) == (7, 9)
    assert used(found.devices) == [2 * 104 + 11, 4 * 104 + 50 + 11]
    assert found.action == "2 units move to the CPU, layer 0 first"


def test_a_device_that_holds_exactly_its_target_is_full_and_a_byte_less_is_too_little():
    exact = [219, 477]
    assert units(toy(exact)) == [2, 5]
    assert units(toy([219 - 2**-20, 477])) == [1, 5]
    assert units(toy([219, 477 - 2**-20])) == [2, 4]
    assert units(toy(exact, context=Context(n_ctx=1024, build="jul"))) == [2, 5]


def test_vision_goes_to_the_margin_of_the_first_device():
    found = toy([1000, 1000], vision_mib=500)
    assert [device.margin_bytes / MIB for device in found.projected] == [500, 0]
    assert (found.verdict, units(found)) == ("moved", [0, 9])


def test_what_the_user_fixed_stops_the_pass_and_the_layout_stands():
    for fixed, words in [
        ({"n_gpu_layers": 99}, "n_gpu_layers already set by user to 99, abort"),
        ({"tensor_split": [1, 1]}, "tensor_split already set by user, abort"),
        ({"split_mode": "row"}, "LLAMA_SPLIT_MODE_ROW not implemented, abort"),
        ({"override_tensor": True}, "tensor_buft_overrides already set by user, abort"),
    ]:
        found = toy([300, 500], **fixed)
        assert found.verdict == "evict"
        assert words in found.action
        assert found.devices == found.projected
        assert toy([1000, 1000], **fixed).action.endswith("no changes needed")


def test_tensor_split_mode_is_never_fitted():
    assert "SPLIT_MODE_TENSOR" in toy([1000, 1000], split_mode="tensor").action
    assert toy([1000, 1000], split_mode="tensor").verdict == "fits"
    assert toy([300, 500], split_mode="tensor").verdict == "evict"


def test_a_split_given_by_the_user_is_the_first_layout():
    assert [device.units for device in toy([1000, 1000], tensor_split=[3, 1]).projected] == [7, 2]


@pytest.mark.parametrize("build", ["jul", "oct"])
def test_an_unset_context_is_reduced_and_then_the_layers_are_laid(build):
    context = Context(n_ctx=None, build=build)
    found = toy([800, 800], context=context, compute_mib=[42, 42])
    # At 32,768 tokens: 850 of weights, 8 x 128 of cache, 2 x (32 of mask + 10); at 4,096: 850 + 128 + 2 x 14.
    assert [sum(used(found.projected))] == [850 + 1024 + 84]
    target = 1600 - 3 * (850 // 8 + 0.25) / 2
    reached = 4096 + (32_768 - 4096) * (target - 1006) / (1958 - 1006)
    assert found.n_ctx == int(reached) // 256 * 256
    assert found.verdict == "context reduced"
    assert sum(units(found)) == 9


def test_one_device_is_decided_as_the_pass_for_one_device_does():
    blocks = blocks_of(QWEN_27B, REPLAYED_27B)
    tail = 14_497 - (48 * 205.6 + 16 * 199.7)
    for build in ("jul", "oct"):
        context = Context(n_ctx=80 * 1024, n_seq_max=2, type_k="q8_0", type_v="q8_0", draft_max=3, build=build)
        compute = memory(QWEN_27B, context).compute_bytes / MIB
        for free in (20_000, 20_996, 22_500):
            one = fit(QWEN_27B, context, free_mib=free, weights_mib=14_497, vision_mib=1136)
            many = fit_devices(QWEN_27B, context, blocks=blocks, output_mib=tail - 335, mtp_mib=335, free_mib=[free],
                               compute_mib=[compute], vision_mib=1136)  # fmt: skip
            assert (many.verdict, many.layers_kept, many.layers_total) == (one.verdict, one.layers_kept, 66)
            (device,) = many.projected
            wants = device.used_bytes + device.margin_bytes
            assert abs(wants - one.projected_bytes - one.margin_bytes) < MIB


# 4 recurrent layers, then 4 of attention, MTP and the output: units 0 to 9.
HYBRID = Model(
    name="hybrid",
    layers=(delta(4, 1, 2), full(4, 8, 128)),
    mtp_layers=(full(1, 8, 128),),
    max_position_embeddings=32_768,
)
HYBRID_BLOCKS = tuple(Block(layer=layer, weights_bytes=100 * MIB) for layer in HYBRID.layers for _ in range(4))
QUANTISED = {"type_k": "q8_0", "type_v": "q8_0", "type_k_draft": "q8_0", "type_v_draft": "q8_0"}


def laid(context, tail=(300, 500), blocks=HYBRID_BLOCKS, of=HYBRID):
    return Layout(model=of, context=context, blocks=blocks, tail=tail, constants=(7, 9)), memory(of, context)


def test_what_grows_is_counted_on_the_devices_that_attend_and_the_one_that_drafts():
    layout, found = laid(Context(n_ctx=1024, draft_max=1, **QUANTISED))
    main = found.mask_bytes + found.scratch_bytes
    draft = found.draft_mask_bytes + found.draft_scratch_bytes
    assert (main, draft) == (5 * MIB, 5 * MIB)
    slices = {(0, 4): (0, 0), (4, 4): (main, 0), (0, 8): (main, 0), (3, 2): (main, 0), (4, 5): (main, draft),
              (8, 1): (0, draft), (8, 2): (0, draft), (9, 1): (0, 0), (0, 10): (main, draft)}  # fmt: skip
    assert {units_: layout.growing(*units_, found) for units_ in slices} == slices
    layout, found = laid(Context(n_ctx=1024), tail=(500,))
    assert layout.growing(8, 1, found) == (0, 0)


def test_windows_and_states_alone_grow_nothing_on_a_device():
    windows = Model(name="windows", layers=(slides(2, 8, 128, 512), full(2, 8, 128), delta(2, 1, 2)))
    blocks = tuple(Block(layer=layer, weights_bytes=0) for layer in windows.layers for _ in range(2))
    layout, found = laid(Context(n_ctx=4096), blocks=blocks, of=windows)
    assert [layout.growing(start, 2, found)[0] for start in (0, 2, 4)] == [0, 4 * MIB, 0]


def test_a_device_needs_its_units_their_caches_its_constant_and_the_draft_beside():
    layout, found = laid(Context(n_ctx=1024, draft_max=1, **QUANTISED))
    state, cache = found.recurrent_bytes // 4, found.kv_bytes // 4
    assert layout.needs(0, 0, 4, found) == (4 * (100 * MIB + state) + 7, 0)
    assert layout.needs(1, 4, 6, found) == (4 * (100 * MIB + cache) + 800 + 5 * MIB + 9, found.draft_kv_bytes + 5 * MIB)
    assert layout.needs(1, 9, 1, found) == (509, 0)
    assert layout.needs(1, 8, 1, found) == (309, found.draft_kv_bytes + 5 * MIB)
    assert layout.needs(0, 5, 3, found)[1] == 0
    assert layout.needs(0, 5, 0, found) == (0, 0)


def test_july_keeps_the_draft_beside_and_october_among_what_is_used():
    for build, beside in (("jul", True), ("oct", False)):
        layout, found = laid(Context(n_ctx=1024, draft_max=1, build=build, **QUANTISED))
        draft = found.draft_kv_bytes + 5 * MIB
        first, last = layout.lay([4, 6], [10_000 * MIB] * 2, [50, 60], found)
        assert (first.margin_bytes, last.margin_bytes) == (50, 60 + draft * beside)
        assert last.used_bytes == layout.needs(1, 4, 6, found)[0] + draft * (not beside)
        assert last.leave_bytes == 10_000 * MIB - last.used_bytes


def test_in_july_layers_laid_anew_leave_layer_0_on_the_cpu_whatever_room_there_is():
    for build, kept in (("jul", 9), ("oct", 10)):
        found = fit_devices(HYBRID, Context(n_ctx=1024, draft_max=1, build=build), blocks=HYBRID_BLOCKS, mtp_mib=100,
                            output_mib=100, free_mib=[1200, 4000], compute_mib=[20, 40],
                            fit_target_mib=[1100, 0])  # fmt: skip
        assert (found.layers_kept, found.layers_total) == (kept, 10)
        assert found.verdict == ("moved" if build == "oct" else "evict")


def shrinks(build, slots, short):
    """What `fit_devices` shrinks an unset context of HYBRID to, so many MiB short, and what the engine's formula gives."""
    streams = slots if build == "oct" else 1
    full_length, floor = 32_768 * streams, 4096 * streams
    sizes = []
    for n_ctx in (floor, full_length):
        here = memory(HYBRID, Context(n_ctx=n_ctx, n_seq_max=slots, draft_max=1, build=build))
        draft = here.draft_kv_bytes + here.draft_mask_bytes
        main = here.kv_bytes + here.recurrent_bytes + here.mask_bytes * 2
        sizes.append(main + (draft if build == "oct" else 0))
    constants = 1000 * MIB + 400 * MIB - here.mask_bytes * 2 - here.draft_mask_bytes
    margin = draft if build == "jul" else 0
    free = constants + sizes[1] + margin - short * MIB
    found = fit_devices(HYBRID, Context(n_ctx=None, n_seq_max=slots, draft_max=1, build=build), blocks=HYBRID_BLOCKS,
                        mtp_mib=100, output_mib=100, free_mib=[free / MIB / 2] * 2, compute_mib=[200, 200],
                        fit_target_mib=0)  # fmt: skip
    layers = 9 if build == "oct" else 8
    target = free - margin - 3 * (1000 * MIB // layers) // 2
    n_ctx = floor + (full_length - floor) * (target - constants - sizes[0]) // (sizes[1] - sizes[0])
    return found, n_ctx - n_ctx % (256 * streams)


@pytest.mark.parametrize(("build", "slots"), [("oct", 1), ("oct", 2), ("jul", 1), ("jul", 2)])
def test_each_build_shrinks_an_unset_context_by_its_own_floor_length_and_count_of_layers(build, slots):
    align = 256 * (slots if build == "oct" else 1)
    reached = set()
    for short in range(100, 160, 6):
        found, expected = shrinks(build, slots, short)
        assert found.n_ctx == expected
        assert 4096 < found.n_ctx < 32_768 * slots
        reached.add(found.n_ctx % (2 * align))
    assert reached == {0, align}


@pytest.mark.parametrize(("build", "floor"), [("oct", 8192), ("jul", 4096)])
def test_split_slots_have_a_floor_each_in_october_and_one_in_july(build, floor):
    found, _ = shrinks(build, 2, 1400 if build == "oct" else 700)
    assert found.n_ctx == floor


def test_devices_that_only_recur_need_no_compute_buffer_that_grows():
    found = fit_devices(HYBRID, Context(n_ctx=1024), blocks=HYBRID_BLOCKS, output_mib=100, free_mib=[4000, 5000],
                        compute_mib=[0, 40])  # fmt: skip
    assert [device.units for device in found.projected] == [4, 5]
    assert found.projected[0].used_bytes == 400 * MIB + memory(HYBRID, Context(n_ctx=1024)).recurrent_bytes


def test_an_unset_context_stays_where_the_devices_together_have_just_enough():
    found = toy([929, 1029], context=Context(n_ctx=None), compute_mib=[42, 42])
    assert sum(used(found.projected)) == 929 + 1029
    assert found.projected[0].leave_bytes < 0
    assert found.n_ctx == 32_768


def test_a_context_no_longer_than_the_floor_stays():
    short = Model(name="short", layers=TOY.layers, max_position_embeddings=2048)
    found = fit_devices(short, Context(n_ctx=None), blocks=BLOCKS, output_mib=50, free_mib=[300, 500],
                        compute_mib=[11, 11], fit_target_mib=0)  # fmt: skip
    assert found.n_ctx == 2048


def test_a_compute_buffer_of_just_what_grows_is_taken():
    assert used(toy([1000, 1000], compute_mib=[1, 11]).devices) == [5 * 104 + 1, 3 * 104 + 50 + 11]


def test_the_weight_of_an_mtp_layer_that_is_loaded_has_to_be_given():
    with pytest.raises(AeliusError, match="mtp_mib: got None"):
        fit_devices(HYBRID, Context(n_ctx=1024, draft_max=1), blocks=HYBRID_BLOCKS, output_mib=100, free_mib=[4000],
                    compute_mib=[100])  # fmt: skip


def test_july_knows_of_one_unit_fewer_than_there_are():
    assert fill(4, [100], lambda device, start, count: count, 3) == [3]
    assert fill(4, [100], lambda device, start, count: count, 4) == [4]


def test_the_draft_is_counted_on_the_device_that_holds_the_mtp_layer():
    blocks = blocks_of(QWEN_27B, REPLAYED_27B)
    given_ = {"blocks": blocks, "output_mib": 1000, "mtp_mib": 335, "free_mib": [24_000, 24_000]}
    drafted, plain = (fit_devices(QWEN_27B, Context(n_ctx=65536, draft_max=draft), compute_mib=[300, 300], **given_) for draft in (1, 0))
    assert plain.layers_total == drafted.layers_total - 1
    found = memory(QWEN_27B, Context(n_ctx=65536, draft_max=1))
    more = drafted.projected[1].used_bytes + drafted.projected[0].used_bytes
    more -= plain.projected[1].used_bytes + plain.projected[0].used_bytes
    assert more == found.draft_kv_bytes + found.recurrent_bytes // 2 + 335 * MIB


@few
@given(
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=12),
    targets=st.lists(st.integers(0, 200), min_size=1, max_size=4),
)
def test_each_device_from_the_last_takes_as_many_units_as_fit_and_no_device_is_overfull(sizes, targets):
    def takes(device, start, count):
        return sum(sizes[start : start + count])

    counts = fill(len(sizes), targets, takes, len(sizes))
    end = len(sizes)
    for device in reversed(range(len(targets))):
        start = end - counts[device]
        assert takes(device, start, counts[device]) <= targets[device]
        assert start == 0 or takes(device, start - 1, counts[device] + 1) > targets[device]
        end = start


@few
@given(units_=st.integers(1, 80), free=st.lists(st.integers(0, 30_000), min_size=1, max_size=5))
def test_the_split_by_free_memory_loses_no_unit_and_gives_none_to_a_full_device(units_, free):
    if not sum(free):
        return
    counts = split_by_free(units_, free)
    assert sum(counts) == units_
    for count, size in zip(counts, free, strict=True):
        assert abs(count - units_ * size / sum(free)) < 1 + 1e-9
        assert size or not count


@pytest.mark.parametrize(
    ("free", "other", "field"),
    [
        ([0, 0], {}, "free_mib"),
        ([1, -1], {}, "free_mib"),
        ([100, 100], {"fit_target_mib": [1]}, "fit_target_mib"),
        ([100, 100], {"compute_mib": [11]}, "compute_mib"),
        ([100, 100], {"compute_mib": [0.5, 11]}, "compute_mib"),
        ([100, 100], {"split_mode": "none"}, "split_mode"),
        ([100, 100], {"tensor_split": [1]}, "tensor_split"),
        ([100, 100], {"output_mib": -1}, "output_mib"),
        ([100, 100], {"context": Context(n_ctx=1024, draft_max=1)}, "draft_max"),
        ([], {}, "free_mib"),
    ],
)
def test_sizes_that_are_none_are_refused_by_name(free, other, field):
    with pytest.raises(AeliusError) as caught:
        toy(free, **other)
    assert caught.value.field == field
