"""What a context costs per 1,024 tokens, what flags are worth in tokens, and which margins can have been in force."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llamacpp_models import QWEN_27B, golden, model

from aelius_math.cache import Mamba2
from aelius_math.llamacpp import Context, fit, memory
from aelius_math.llamacpp_builds import BUILDS
from aelius_math.llamacpp_worth import flag_worth, growth, margin_window, tokens_worth, walls
from aelius_math.model import Model
from aelius_math.units import MIB, AeliusError

few = settings(max_examples=30, deadline=None)

JULY = Context(n_ctx=65536, n_seq_max=2, type_k="q8_0", type_v="q8_0", draft_max=3, build="jul")
CARD = {"free_before_mib": 23_750, "weights_mib": 16_387, "vision_mib": 1136}


def parts(context):
    found = growth(QWEN_27B, context)
    return [size / MIB for size in (found.kv_bytes, found.draft_kv_bytes, found.scratch_bytes, found.mask_bytes)]


def test_43_mib_for_each_1024_tokens_of_the_articles_context_and_44_unified():
    assert parts(JULY) == [34, 4, 4, 1]
    assert growth(QWEN_27B, JULY).total_bytes == 43 * MIB
    assert parts(replace(JULY, kv_unified=True)) == [34, 4, 4, 2]


def test_a_quantised_draft_grows_less_in_its_cache_and_more_in_its_copy():
    quantised = replace(JULY, type_k_draft="q8_0", type_v_draft="q8_0")
    assert parts(quantised) == [34, Fraction(17, 8), 8, 1]
    assert float(growth(QWEN_27B, quantised).total_bytes / MIB) == 45.125


def test_growth_is_exact_where_three_streams_share_a_mask():
    found = growth(QWEN_27B, replace(JULY, n_seq_max=3, draft_max=0))
    assert found.mask_bytes == Fraction(MIB, 3)


def test_windows_do_not_grow():
    found = growth(model("gemma3-27b"), Context(n_ctx=4096))
    assert found.kv_bytes == 1024 * 10 * 2 * 16 * 128 * 2


def test_every_step_of_the_replayed_runs_grows_as_the_rule_says():
    rows = [row for row in golden("llamacpp_wall.json") if not row["extra_flags"] and not row["kv_unified"]]
    first = {}
    for row in rows:
        if row["ubatch"] == 512:
            start = first.setdefault(row["draft_max"], row)
            steps = (row["ctx"] - start["ctx"]) / 1024
            assert abs(row["projected_mib"] - start["projected_mib"] - 43 * steps) <= 1
    assert len(first) == 3


@pytest.mark.parametrize(("mib", "k"), [(1024, 23.8), (1136, 26.4), (598.5, 13.9)])
def test_what_margin_vision_and_a_drafted_token_are_worth_in_tokens(mib, k):
    assert round(tokens_worth(QWEN_27B, JULY, mib) / 1024, 1) == k


def test_the_margin_relation_of_the_articles_84k_and_86k():
    window = margin_window(QWEN_27B, JULY)
    assert (window.passes_at, window.fails_at, window.slack_below) == (164, 78, 688)
    assert (window.least, window.most) == (79, 851)
    unified = margin_window(QWEN_27B, replace(JULY, kv_unified=True))
    assert (unified.passes_at, unified.fails_at, unified.slack_below) == (144, 56, 704)


@pytest.mark.parametrize(
    ("target", "slacks"),
    [(78, None), (79, (0, 1)), (128, (0, 50)), (256, (92, 178)), (512, (348, 434)), (851, (687, 688)), (852, None)],
)
def test_which_slack_a_lowered_target_needs(target, slacks):
    assert margin_window(QWEN_27B, JULY).slacks(target) == slacks


@few
@given(slack=st.integers(0, 687), target=st.integers(0, 1024))
def test_the_margin_relation_is_what_the_fit_pass_itself_decides(slack, target):
    def fits(k, margin):
        return fit(QWEN_27B, replace(JULY, n_ctx=k * 1024), free_mib=free, weights_mib=16_000, fit_target_mib=margin).fits

    at_64k = fit(QWEN_27B, JULY, free_mib=1, weights_mib=16_000)
    free = (at_64k.projected_bytes + at_64k.margin_bytes) / MIB + slack
    assert fits(64, 1024)
    assert not fits(80, 1024)
    window = margin_window(QWEN_27B, JULY)
    assert fits(84, target) == (target <= window.passes_at + slack)
    assert fits(86, target) == (target <= window.fails_at + slack)


def test_the_walls_by_drafted_tokens_with_and_without_vision():
    found = walls(QWEN_27B, JULY, **CARD)
    assert {key: wall / 1024 for key, wall in found.items()} == {
        (1, True): 89,
        (1, False): 115,
        (2, True): 75,
        (2, False): 101.5,
        (3, True): 61,
        (3, False): 87.5,
    }


def worth_of(context=JULY, **other):
    return {each.flag: each for each in flag_worth(QWEN_27B, context, **{**CARD, **other})}


def test_flags_are_listed_by_what_they_gain_and_each_wall_is_what_fit_gives():
    found = flag_worth(QWEN_27B, JULY, **CARD)
    gains = [each.gain_tokens for each in found]
    assert gains == sorted(gains, reverse=True)
    base = fit(QWEN_27B, JULY, **CARD).wall_tokens
    assert all(each.wall_tokens - each.gain_tokens == base for each in found)
    worth = worth_of()
    assert worth["--fit-target 0"].gain_tokens == 23.5 * 1024
    assert worth["--no-mmproj-offload"].gain_tokens == 26.5 * 1024
    assert worth["-ub 256"].gain_tokens == 2.5 * 1024
    assert worth["-ctkd q8_0 -ctvd q8_0"].gain_tokens < 0
    assert worth["-kvu"].gain_tokens == -0.75 * 1024
    assert worth["-np 1"].gain_tokens == 26.5 * 1024
    assert worth["--fit-target 0"].saved_bytes == 1024 * MIB
    assert worth["--no-mmproj-offload"].saved_bytes == 1136 * MIB


def test_a_drafted_token_less_is_worth_its_state_twice():
    assert worth_of()["--spec-draft-n-max 2"].saved_bytes == 598.5 * MIB
    assert worth_of()["--spec-draft-n-max 2"].gain_tokens == 14 * 1024


def test_worth_is_the_same_from_free_memory_as_read_and_from_free_memory_at_start():
    as_read = 23_750 - memory(QWEN_27B, JULY).recurrent_bytes / MIB
    assert flag_worth(QWEN_27B, JULY, free_mib=as_read, weights_mib=16_387, vision_mib=1136) == flag_worth(QWEN_27B, JULY, **CARD)


def test_vision_and_margin_left_unset_are_none_and_1024_mib():
    given_ = {"free_before_mib": 23_750, "weights_mib": 16_387}
    assert flag_worth(QWEN_27B, JULY, **given_) == flag_worth(QWEN_27B, JULY, vision_mib=0, fit_target_mib=1024, **given_)


def test_flags_that_are_as_they_could_be_are_not_offered():
    plain = Context(n_ctx=65536, n_seq_max=1, n_ubatch=256, type_k="q4_0", type_v="q4_0")
    assert set(worth_of(plain, vision_mib=0, fit_target_mib=0)) == {"-ub 512", "-ctk f16 -ctv f16", "-ctk q8_0 -ctv q8_0"}
    drafted = worth_of(replace(JULY, draft_max=1, kv_unified=True, type_k_draft="q8_0"))
    assert "--spec-draft-n-max 0" not in drafted
    assert "--spec-draft-n-max 1" in worth_of(replace(JULY, draft_max=2))
    auto = set(worth_of(replace(JULY, n_seq_max=None)))
    assert "-np 1" in auto
    assert not {"-kvu", "-no-kvu"} & auto
    assert {"no --spec-type draft-mtp", "-no-kvu", "-ctkd f16 -ctvd f16", "-ctkd q8_0 -ctvd q8_0"} <= set(drafted)


def test_a_build_that_counts_the_state_once_gains_it_once(monkeypatch):
    monkeypatch.setitem(BUILDS, "jul", replace(BUILDS["jul"], state_counted_twice=False))
    assert worth_of()["--spec-draft-n-max 2"].saved_bytes == 299.25 * MIB


def test_drafting_off_is_what_the_same_flags_without_a_draft_give():
    one = replace(JULY, draft_max=1)
    off = worth_of(one)["no --spec-type draft-mtp"]
    assert off.wall_tokens == fit(QWEN_27B, replace(JULY, draft_max=0), **CARD).wall_tokens
    assert off.gain_tokens > 0


def test_growth_with_a_drafter_that_is_not_known_is_refused():
    with pytest.raises(AeliusError, match="draft_max"):
        growth(model("qwen35-27b"), JULY)


def test_flags_whose_memory_is_not_known_are_left_out():
    assert flag_worth(model("llama8b"), Context(n_ctx=4096), free_mib=9000, weights_mib=4000) == []


def test_tokens_cannot_be_bought_where_nothing_grows():
    mamba = Mamba2(num_layers=2, num_heads=8, head_dim=64, n_groups=1, state_size=128, conv_kernel_size=4)
    with pytest.raises(AeliusError, match="context"):
        tokens_worth(Model(name="mamba", layers=(mamba,)), Context(n_ctx=4096), 1024)
