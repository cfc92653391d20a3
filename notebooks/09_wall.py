# %% [markdown]
# # Why did [64K](num:wall) halve the speed?
#
# Going past it did, because a decision was made before anything ran out. When llama.cpp starts, a fit pass adds up what the configuration will
# take and wants [1,024 MiB](num:fit_target) left over. At [64K](num:wall) of context that still came out. A little further it
# did not, and the pass moved whole layers to the CPU, layer 0 first. Memory use then went **down**, and the speed with it:
# with one recurrent layer elsewhere, the build switched its fused kernel off for all [48](num:recurrent_blocks).
#
# And part of what was missing was not missing at all. The pass charged the recurrent state as used, and found it gone from
# what was free as well.

# %% tags=["fold"]
import json
from dataclasses import replace

from aelius_math import catalogue, figures
from aelius_math.ledger import find_root, given, givens, num, numbers, published
from aelius_math.llamacpp import Context, fit, memory
from aelius_math.llamacpp_worth import growth, margin_window, walls
from aelius_math.tables import Table

# %% [markdown]
# ## Given
#
# The article's card in July, with its configuration in words. The draft length, the weights file, the reading of K and the
# lowered margin are not stated; the table with the speeds is lost.

# %%
MiB, GB, K = 2**20, 10**9, given("k_binary")
givens("july_card", "july_config", "ngl_99", "wall", "fit_target", "fit_80k_used", "fit_80k_free", "ceiling", "eviction_from")

# %% [markdown]
# The settings below are the article's where it states them. A number of slots that is given by hand (`-np`) splits
# the context between them, here [two](num:july_slots); that the build was one of July's is an assumption, and so are the draft lengths that are tried.

# %%
model = catalogue.load("qwen3.8-27b")


def july(context, drafts=2, **changes):
    settings = dict(n_ctx=context, n_seq_max=given("july_slots"), type_k="q8_0", type_v="q8_0", draft_max=drafts, build="jul")
    return Context(**{**settings, **changes})


# %% [markdown]
# ## Derive: what a longer context takes
#
# Everything that grows with the context, for each [1,024](num:k_binary) tokens:

# %% tags=["fold"]
grows = growth(model, july(64 * K))
numbers(
    grow_kv=num(grows.kv_bytes / MiB, "main cache, q8_0", "= full_attention_blocks * 2 * 1024 * q8_bytes / q8_values * k_binary / MiB", "MiB"),
    grow_draft=num(grows.draft_kv_bytes / MiB, "draft cache, f16", "= 2 * 1024 * 2 * k_binary / MiB", "MiB"),
    grow_copy=num(grows.scratch_bytes / MiB, "f16 copy of one quantised layer", "= 2 * 1024 * 2 * k_binary / MiB", "MiB"),
    grow_mask=num(grows.mask_bytes / MiB, "masks of both contexts", "= 2 * 512 * 2 * k_binary / july_slots / MiB", "MiB"),
    grow_all=num(grows.total_bytes / MiB, "all that grows", "= grow_kv + grow_draft + grow_copy + grow_mask", "MiB"),
    margin_tokens=num(given("fit_target") * K / (grows.total_bytes / MiB), "what the margin is worth", "= fit_target / grow_all * k_binary", "tokens"),
)

# %% [markdown]
# [34.0 MiB](num:grow_kv) for the cache, [4.0 MiB](num:grow_draft) for the draft's own, which stays f16 unless it is told
# otherwise, [4.0 MiB](num:grow_copy) for an unpacked copy of one layer that the attention kernel wants, and
# [1.0 MiB](num:grow_mask) for masks: [43.0 MiB](num:grow_all). The margin alone is worth [about 24,000](num:margin_tokens)
# tokens.
#
# What does not grow is the recurrent state, and here it is kept in f32, once for each slot **and** once for each draft token
# that may have to be taken back.

# %% tags=["fold"]
states = {drafts: memory(model, july(64 * K, drafts)).recurrent_bytes / MiB for drafts in (0, 1, 2, 3)}
numbers(
    state_f32=num(states[0] / given("july_slots"), "state of one slot, f32", "= recurrent_blocks * (conv_el + state_el) * 4 / MiB", "MiB"),
    state_1=num(states[1], "state with one draft token", "= state_f32 * july_slots * 2", "MiB"),
    state_2=num(states[2], "state with two", "= state_f32 * july_slots * 3", "MiB"),
    state_3=num(states[3], "state with three, the default", "= state_f32 * july_slots * 4", "MiB"),
    draft_step=num(states[2] - states[1], "state of one more draft token", "= state_f32 * july_slots", "MiB"),
)

# %% [markdown]
# [598.5 MiB](num:state_1), [897.75 MiB](num:state_2) or [1,197 MiB](num:state_3), by the draft length. The article does not
# give it, and it moves the wall more than anything else. (The ceiling at
# [84K](num:ceiling), past a wall at [64K](num:wall), belongs to a lowered margin; that comes below.)
#
# ## Derive: the fit pass as a decision
#
# The pass allocates no cache to find out. It compares:
#
# $$\text{used} + \text{margin} \le \text{free}$$
#
# If that holds it changes nothing. If it fails by a single MiB and the context was set by hand, it moves whole layers away,
# the first one first, until it holds again. A layer weighs [206 MiB](num:layer_mib) and more, so the plan jumps from slightly too
# large to clearly too small.
#
# The figures of a file are needed to show it. This one was replayed through the engine's own fit code without a card: a file of
# this model in 4-bit with [14,497 MiB](num:file_mib) on the device. It stands in for the article's, which is not named.

# %%
source = "llama.cpp at e3546c794, its own fit code, replayed without a card"
free_before, file_mib, vision_mib = 22_193, 14_497, 1_136
plan = {context * K: fit(model, july(context * K), free_before_mib=free_before, weights_mib=file_mib, vision_mib=vision_mib)
    for context in range(48, 129, 2)}  # fmt: skip
wall = plan[64 * K].wall_tokens
beyond = next(found for found in plan.values() if found.verdict != "fits")
inside = [found for context, found in plan.items() if context <= wall][-1]
numbers(
    file_mib=num(file_mib, "weights on the device, stand-in file", unit="MiB", kind="external", source=source),
    stand_free=num(free_before, "free before the server starts, stand-in", unit="MiB", kind="external", source=source),
    vision=num(vision_mib, "vision's part of the margin", unit="MiB", kind="external", source="llama.cpp logs of this model's F16 mmproj: 888 weights, 248 compute"),
    layer_mib=num(205.6, "one recurrent layer's weights", unit="MiB", kind="external", source=source, digits=4),
    stand_wall=num(wall, "wall of the stand-in, two drafts", unit="tokens", source="fit rule of July's build, run in aelius_math.llamacpp"),
    layers_gone=num(beyond.layers_total - beyond.layers_kept, "layers moved just past it", unit="layers", source="fit rule of July's build, run in aelius_math.llamacpp"),
    drop=num(round((inside.on_device_bytes - beyond.on_device_bytes) / MiB), "memory that comes free when the wall is crossed", unit="MiB", digits=3),
)  # fmt: skip

# %% tags=["fold"]
contexts = list(plan)
projected = [(found.projected_bytes + found.margin_bytes) / 1024**3 for found in plan.values()]
used = [found.on_device_bytes / 1024**3 for found in plan.values()]
fitting = [context for context in contexts if context <= wall]
with figures.plot(height=310) as (fig, ax):
    ax.plot(contexts, projected, color=figures.colour(6), linestyle=(0, (4, 3)))
    ax.axhline(plan[64 * K].free_bytes / 1024**3, color=figures.INK, linewidth=1)
    ax.plot(fitting, used[: len(fitting)], color=figures.colour(1))
    ax.plot(contexts[len(fitting) :], used[len(fitting) :], color=figures.colour(2))
    ax.axvline(wall, color=figures.INK, linewidth=1, linestyle=(0, (1, 2)))
    ax.set_xlim(48 * K, 128 * K)
    ax.set_ylim(17, 22)
    figures.token_axis(ax.xaxis, [48 * K, 64 * K, 80 * K, 96 * K, 112 * K, 128 * K])
    figures.axes(ax, x="context [tokens], stand-in file", y="memory of the card [GiB]")
    figures.label(ax, 50 * K, plan[64 * K].free_bytes / 1024**3, "free, as the pass reads it", dy=9)
    figures.label(ax, 100 * K, projected[26], "what it wants, margin and all", dx=-4, dy=-14, ha="left", colour=figures.colour(6))
    figures.label(ax, 52 * K, used[2], "on the card", dy=14, ha="right", dx=30, colour=figures.colour(1))
    figures.label(ax, 104 * K, used[28], "layers moved", dy=-16, colour=figures.colour(2))
figures.show(
    fig,
    name="wall",
    alt="Memory of the card against the context. What the pass wants rises until it meets what is free, at the wall of {stand_wall} "
    "tokens; there the memory on the card drops by {drop}, because whole layers leave, and rises again from below.",
    caption="At the wall the pass moves whole layers away: memory use falls by {drop} although the context grew.",
    stand_wall=wall,
    drop=f"{round((inside.on_device_bytes - beyond.on_device_bytes) / MiB)} MiB",
)

# %% [markdown]
# Where the wall stands for an idle card, by draft length and with or without vision, on another public file of this
# model:

# %%
idle, heavier = 23_750, 16_387
at = walls(model, july(64 * K), free_before_mib=idle, weights_mib=heavier, vision_mib=vision_mib)
Table(("draft tokens", "wall, vision on", "wall, vision off"), [(d, at[d, True], at[d, False]) for d in (1, 2, 3)])

# %% tags=["fold"]
rule = "fit rule of July's build, run in aelius_math.llamacpp"
numbers(
    idle_free=num(idle, f"free on an idle card of {given('card_size')} GB", unit="MiB", kind="external", source="public llama.cpp logs of such cards"),
    heavier=num(heavier, "weights of the heavier file", unit="MiB", kind="external", source="a public log of Qwen3.6-27B UD-Q4_K_XL with its draft head"),
    wall_1=num(at[1, True], "wall, one draft token, vision on", unit="tokens", source=rule, k=1024),
    wall_2=num(at[2, True], "wall, two draft tokens, vision on", unit="tokens", source=rule, k=1024),
    wall_3=num(at[3, True], "wall, three draft tokens, vision on", unit="tokens", source=rule, k=1024),
    no_vision=num(at[2, False] - at[2, True], "what vision costs", unit="tokens", source=rule),
)  # fmt: skip

# %% [markdown]
# [89K](num:wall_1), [75K](num:wall_2) and [61K](num:wall_3): the article's wall at [64K](num:wall) and its ceiling at
# [84K](num:ceiling) both lie in that range.

# %% [markdown]
# ## Derive: the unit in which the card adds up
#
# [23.5 GB](num:fit_80k_used) used and [1.1 GB](num:fit_80k_free) free are [24.6 GB](num:card_sum). The card has neither: it is
# [24 GiB](num:card_mib), or [25.8 GB](num:card_gb). But [24,576 MiB](num:card_mib) over a thousand is
# [24.6](num:card_moved). So the article's figures are MiB divided by a thousand: what `nvidia-smi` prints, with the comma
# read as a point.

# %% tags=["fold"]
numbers(
    card_sum=num(float(given("fit_80k_used") + given("fit_80k_free")), "used and free together", "= fit_80k_used + fit_80k_free", "GB", digits=3),
    card_gb=num(given("card_mib") * MiB / GB, "the card in decimal GB", "= card_mib * MiB / GB", "GB"),
    card_moved=num(given("card_mib") / 1000, "its MiB over a thousand", "= card_mib / 1000", digits=3),
)

# %% [markdown]
# ## Derive: why it evicted with [1.1 GB](num:fit_80k_free) free
#
# At [80K](num:fit_80k) the pass had evicted, and then [1.1 GB](num:fit_80k_free) stood free: more than the margin wants. The
# state explains it. The dry run of these builds really allocates the recurrent state, so what it reads as free is already
# short by it, while what it counts as used holds it again. The condition in effect is
#
# $$\text{left over} \ge \text{margin} + \text{state}$$
#
# Public fits show the gap. Each line is a boot that printed both what was free before and what the pass read:

# %%
fits = json.loads((find_root() / "tests/golden/llamacpp_fits.json").read_text())
gaps = [(f["gpu"], f["double_count_check"]["free_gap"], f["rs"]) for f in fits if f.get("double_count_check")]
Table(("card", "free before, less free in the pass [MiB]", "recurrent state [MiB]"), [(g, f"{a:,}", f"{b:,}") for g, a, b in gaps])

# %% tags=["fold"]
left = 1000 * float(given("fit_80k_free"))
close = [gap for _, gap, state in gaps if abs(gap - state) <= 3]
assert left >= given("fit_target") and all(left - state < given("fit_target") for state in list(states.values())[1:])
numbers(
    left_mib=num(left, f"what was free at {given('fit_80k')}", "= 1000 * fit_80k_free", "MiB", digits=2),
    left_once=num(left - states[1], "the same, less the state of one draft token", "= left_mib - state_1", "MiB", digits=2),
    should_leave=num(float(given("fit_target")) + states[1], "what the pass leaves free, state of one draft token", "= fit_target + state_1", "MiB"),
    gap_logs=num(len(close), "public fits whose gap is the state, within three MiB", unit="logs"),
    all_logs=num(len(gaps), "public fits that show both figures", unit="logs"),
)

# %% [markdown]
# In [six](num:gap_logs) of [seven](num:all_logs) the gap is the state to within a few MiB; the rest carry other changes of the
# desktop. So [1,100 MiB](num:left_mib) would have passed the margin of [1,024 MiB](num:fit_target); less the state that
# goes with one draft token, [502 MiB](num:left_once), it did not.
#
# One thing stays open: **when** the figure was read. If it was after layers had been moved, the pass should have left the
# margin and the state, [1,622.5 MiB](num:should_leave) at least. Then it was read later, when generation had grown, or the
# pass was off. The article does not say.
#
# ## Derive: which margin gives [84K](num:ceiling) but not [86K](num:eviction_from)
#
# Call $x$ what was to spare at [64K](num:wall) under the default margin. It is less than [688 MiB](num:slack_below), since
# [80K](num:fit_80k) evicted. Then [84K](num:ceiling) passes if the margin is at most [164 MiB](num:passes_at) $+\, x$, and
# [86K](num:eviction_from) fails if it is above [78 MiB](num:fails_at) $+\, x$, whatever weights and desktop take.

# %% tags=["fold"]
window = margin_window(model, july(64 * K))
numbers(
    passes_at=num(window.passes_at, "margin at which the ceiling passes, with no unknown", "= fit_target - 20 * grow_all", "MiB"),
    fails_at=num(window.fails_at, "margin above which the next step fails, with no unknown", "= fit_target - 22 * grow_all", "MiB"),
    slack_below=num(window.slack_below, "what x is below", "= 16 * grow_all", "MiB"),
    least=num(window.least, "least margin that gives both", "= fails_at + 1", "MiB"),
    most=num(window.most, "greatest margin that gives both", "= passes_at + slack_below - 1", "MiB"),
)

# %% tags=["fold"]
slack = [0, 687]
with figures.plot(height=300) as (fig, ax):
    low = [float(window.fails_at) + x for x in slack]
    high = [float(window.passes_at) + x for x in slack]
    ax.fill_between(slack, low, high, color=figures.colour(1), alpha=0.35, linewidth=0)
    ax.plot(slack, high, color=figures.colour(1))
    ax.plot(slack, low, color=figures.colour(1))
    ax.axhline(given("fit_target"), color=figures.INK, linewidth=1, linestyle=(0, (4, 3)))
    ax.set_xlim(0, 687)
    ax.set_ylim(0, 1120)
    figures.axes(ax, x="to spare at the wall under the default margin [MiB]", y="--fit-target [MiB]")
    figures.label(ax, 10, given("fit_target"), "default: {fit_target}", fit_target=published()["fit_target"], dy=-12)
    figures.label(ax, 330, 560, "the ceiling fails too", ha="right", dx=-20, dy=20)
    figures.label(ax, 330, 300, "the next step fits as well", dx=20)
figures.show(
    fig,
    name="margins",
    alt="A narrow band of margins against what was to spare: inside it the ceiling fits and the next step does not. It runs from {least} to "
    "{most}; the default of {fit_target} lies above all of it.",
    caption="Only a margin in the band stops exactly there: from {least} to {most}, never the default.",
    least=f"{window.least} MiB",
    most=f"{window.most} MiB",
    fit_target=published()["fit_target"],
)

# %% [markdown]
# So the margin had been lowered, to something between [79 MiB](num:least) and [851 MiB](num:most). The article also says that no
# smaller margin bought the next [2K](num:ceiling_step). Both cannot be the fit pass: below the band it would have let
# [86K](num:eviction_from) through. Either no smaller margin was tried, or that step failed at run time and not in the pass.
# The table that would say is lost.
#
# ## Derive: what the flags were worth
#
# Each of the article's attempts, at [80K](num:fit_80k) with the stand-in's figures:


# %%
def wanted(**changes):
    found = memory(model, july(80 * K, **changes))
    return (found.kv_bytes + found.draft_kv_bytes + found.compute_bytes) / MiB


plain = wanted()
small = wanted(n_ubatch=given("evict_ub"), n_batch=given("evict_b"))
quantised = wanted(type_k_draft="q8_0", type_v_draft="q8_0")
pinned = fit(model, july(96 * K), free_before_mib=free_before, weights_mib=file_mib, vision_mib=vision_mib, n_gpu_layers=99)
print(pinned.action)
numbers(
    ub_saves=num(plain - small, f"what -ub {given('evict_ub')} -b {given('evict_b')} saves", unit="MiB", digits=3, source="memory rule of July's build, run in aelius_math.llamacpp"),
    ub_tokens=num((plain - small) / (grows.total_bytes / MiB) * K, "what that is worth", "= ub_saves / grow_all * k_binary", "tokens", digits=2),
    draft_saves=num(80 * K * (4096 - 2176) / MiB, "what a q8_0 draft cache saves", "= 80 * k_binary * (4096 - 2 * 1024 * q8_bytes / q8_values) / MiB", "MiB"),
    draft_costs=num(quantised - plain, "what it costs in all", unit="MiB", digits=3, source="memory rule of July's build, run in aelius_math.llamacpp"),
)  # fmt: skip

# %% [markdown]
# * `-ub` [256](num:evict_ub) with `-b` [1,024](num:evict_b) saves [129 MiB](num:ub_saves), worth [about 3,100](num:ub_tokens) tokens: too little to matter, and it
#   makes each pass smaller.
# * `-ctkd q8_0 -ctvd q8_0` saves [150 MiB](num:draft_saves) of cache, as promised, and then wants an unpacked copy of it: all
#   told it costs [152 MiB](num:draft_costs) **more**. That is why the flags cause the eviction they are meant to avoid.
# * `-ngl 99` stops the pass, which says so and leaves the values as they are. It calls this an abort; on Linux the server
#   goes on and fails only if an allocation does.
#
# ## Derive: why [2 x 34K](num:two_by_34k) does not fit
#
# The context is split between the slots: each of a [64K](num:wall) pool sees [32,768](num:slot_64) tokens, fewer than
# [34,816](num:slot_34k_tokens). Unified it would be [69,632](num:pair) against [65,536](num:wall_tokens). At [84K](num:ceiling)
# each slot has [43,008](num:slot_84). So it holds under either reading of the slots.

# %% tags=["fold"]
numbers(
    wall_tokens=num(64 * K, "the wall in tokens", "= 64 * k_binary", "tokens"),
    slot_64=num(july(64 * K).split()[1], "one slot of the pool at the wall", "= wall_tokens // july_slots", "tokens"),
    slot_84=num(july(84 * K).split()[1], "one slot of the pool at the ceiling", "= 84 * k_binary // july_slots", "tokens"),
    slot_34k_tokens=num(34 * K, "the slot that was wanted", "= 34 * k_binary", "tokens"),
    pair=num(2 * 34 * K, "both of them", "= july_slots * slot_34k_tokens", "tokens"),
)

# %% [markdown]
# ## Check
#
# The real fit code, replayed at many contexts, gave the same verdict, the same deficit within a MiB and the same layers kept.

# %%
replayed = json.loads((find_root() / "tests/golden/llamacpp_wall.json").read_text())
same = 0
for row in replayed:
    if row["kv_unified"] or row["ubatch"] != 512 or row["extra_flags"]:
        continue
    context = july(row["ctx"], row["draft_max"])
    found = fit(model, context, free_mib=row["free_mib"], weights_mib=file_mib, fit_target_mib=row["margin_mib"])
    assert (found.verdict == "fits") == (row["verdict"] == "fits") and found.layers_kept == row["units_kept"], row
    same += 1
print(same, "of", len(replayed), "replayed runs are of this kind, and agree")
assert all(b.wall_tokens == wall for b in plan.values()) and inside.verdict == "fits" and beyond.fused_ops is False
assert projected == sorted(projected) and used[len(fitting)] < used[len(fitting) - 1]
assert window.most - window.least == int(window.slack_below) + int(window.passes_at - window.fails_at) - 2
assert replace(july(64 * K), kv_unified=True).split()[1] == 64 * K < 2 * 34 * K

# %% [markdown]
# ## What if
#
# **The build were newer.** Builds since late August 2026 no longer switch the fused kernel off for one layer elsewhere; the
# double count of the state was still in October's. A fix is open as a pull request.
#
# **The speed.** Nothing here measures it. That one layer on the CPU costs so much of decoding is the article's measurement and the
# engine's own warning; what one layer costs on another machine has to be measured there.
