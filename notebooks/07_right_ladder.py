# %% [markdown]
# # Is it the right ladder for [38](num:daily_actives) people?
#
# Almost any gate is right for them, and a flat one is not. Under the demand that is assumed here, [99.8%](num:now_ladder) of turns
# start on time with the article's ladder, and as many without any gate at all. Cut flat into slices of [128K](num:flat_slice), the
# same pool serves [82%](num:now_flat) on time.
#
# What a ladder buys is room to grow: it carries about [six](num:most_ladder_r) times that demand with [95%](num:share) on time. If
# every open conversation pinned its blocks, the pool would carry [1.2](num:most_pinned) times. All of this is **simulated**, and the
# demand is **assumed**: the article gives a count of people and says that long conversations are rare, nothing else.

# %% tags=["fold"]
from aelius_math import busy_hour, demand, erlang, experiments, figures
from aelius_math.ledger import given, num, numbers
from aelius_math.tables import Table

# %% [markdown]
# ## Given
#
# A turn is **on time** if the engine begins on it within [10 s](num:on_time). The demand is one table, `aelius_math/demand.toml`. Change a line and run
# `make simulate`, and everything here is made anew.

# %%
table, K = demand.table(), given("k_binary")
runs = busy_hour.stored()["parts"]
Table(("line", "value", "unit", "source"), [(name, f"{row['value']:,}", row["unit"], row["source"]) for name, row in table.items()])

# %% tags=["fold"]
numbers(
    on_time=num(float(table["on_time"]["value"]), "a turn starts within", unit="s", kind="assumed", source="this project's definition"),
    share=num(95, "turns that must start on time", unit="%", kind="assumed", source="this project's definition"),
    sessions=num(demand.assumed().sessions_per_hour, "conversations begun in the busy hour", unit="conversations", kind="assumed", source="demand.toml", digits=3),
)

# %% [markdown]
# ## Derive: is the simulation right at all?
#
# The long runs are stored with their seeds and re-made by one command. They are run over [the ladder's own
# code](06_ladder.ipynb), not a copy. At every event free, used and cached blocks must add up to the whole, or the run stops. And
# where a closed form exists they must meet it: with customers from the textbook, the share that waits is Erlang's C.

# %%
rows = runs["erlang"]
Table(
    ("servers", "load", "Erlang C", "simulated", "standard error", "off, in errors"),
    [
        (r["servers"], r["load"], f"{r['exact']:.5f}", f"{r['simulated']:.5f}", f"{r['standard_error']:.5f}",
            f"{(r['simulated'] - r['exact']) / r['standard_error']:+.1f}")
        for r in rows
    ],
)  # fmt: skip

# %%
for r in rows:
    assert abs(erlang.erlang_c(r["servers"], r["load"]) - r["exact"]) < 1e-12
    assert abs(r["simulated"] - r["exact"]) < 3 * r["standard_error"]
assert all(r["standard_error"] <= 0.01 * r["exact"] for r in rows[:2])
live = experiments.repeat(busy_hour.scene("ladder", hours=20.0), [1])[0]
assert live.on_time == runs["curves"]["ladder"][2]["first_on_time"]
print("one stored run, made again:", f"{live.on_time:.4f}", "on time, as stored")

# %% [markdown]
# ## Derive: the busy hour as it is

# %%
now = runs["now"]
names = list(now)
Table(
    ("policy", "on time [%]", "±", "late: gate [%]", "late: prompt work [%]", "running", "holding a slice"),
    [
        (n, f"{100 * now[n]['on_time'][0]:.1f}", f"{100 * now[n]['on_time'][1]:.1f}", f"{100 * now[n]['late_gate'][0]:.1f}",
            f"{100 * now[n]['late_prefill'][0]:.1f}", f"{now[n]['mean_running'][0]:.2f}", f"{now[n]['mean_leased'][0]:.1f}")
        for n in names
    ],
)  # fmt: skip

# %% tags=["fold"]
long_runs = "simulation, aelius_math/simulated.json"


def percent(name, field="on_time"):
    return num(100 * now[name][field][0], f"{name}: {field.replace('_', ' ')}, now", unit="%", source=long_runs, digits=3)


numbers(
    now_flat=percent("flat"),
    now_ladder=percent("ladder"),
    now_draft=percent("draft"),
    now_free=percent("no gate"),
    now_pinned=percent("blocks, idle hold"),
    running_now=num(now["ladder"]["mean_running"][0], "requests that run at a moment", unit="requests", source=long_runs, digits=2),
    leased_now=num(now["ladder"]["mean_leased"][0], "conversations that hold a slice", unit="conversations", source=long_runs, digits=2),
    used_now=num(now["ladder"]["mean_used"][0], "blocks in use at a moment", unit="blocks", source=long_runs, digits=2),
)

# %% [markdown]
# No budget binds. On average [0.30](num:running_now) requests run, [2.8](num:leased_now) conversations hold a slice and
# [5.7](num:used_now) of [199](num:usable) blocks are in use. What makes the few late turns late is one long prompt that is still
# being read. The flat cut has only [two](num:flat_users) places, and a conversation keeps its place while its person thinks.
#
# The draft with [twenty](num:hardcoded_shorts) shorts that were not there does as well as the ladder, [99.8%](num:now_draft). Its overdraft
# is a promise that cannot be kept, not a daily failure: nobody came to collect.
#
# ## Derive: how far each carries

# %%
curves, most = runs["curves"], runs["largest"]
Table(
    ("policy", "times the demand", "±"),
    [(n, f"{most[n]['scale'][0]:.2f}", f"{most[n]['scale'][1]:.2f}") for n in most],
)

# %% tags=["fold"]
def at(scale, name):
    return next(point for point in curves[name] if point["scale"] == scale)


numbers(
    most_flat=num(most["flat"]["scale"][0], "flat: largest demand", unit="x", source=long_runs, digits=2),
    most_ladder=num(most["ladder"]["scale"][0], "ladder: largest demand", unit="x", source=long_runs, digits=2),
    most_ladder_r=num(round(most["ladder"]["scale"][0]), "ladder: largest demand, whole", "= round(most_ladder)", "x"),
    most_draft=num(most["draft"]["scale"][0], "draft: largest demand", unit="x", source=long_runs, digits=2),
    most_free=num(most["no gate"]["scale"][0], "no gate: largest demand", unit="x", source=long_runs, digits=2),
    most_pinned=num(most["blocks, idle hold"]["scale"][0], "blocks pinned by idle conversations: largest demand", unit="x", source=long_runs, digits=2),
    twelve=num(12, "a demand past what either carries", unit="x", kind="assumed", source="one of the scales that were run"),
    ladder_12=num(100 * at(12, "ladder")["on_time"][0], "ladder: on time there", unit="%", source=long_runs, digits=2),
    free_12=num(100 * at(12, "no gate")["on_time"][0], "no gate: on time there", unit="%", source=long_runs, digits=2),
    most_bare=num(most["ladder, no MTP, no caching"]["scale"][0], "ladder without drafts and caching: largest demand", unit="x", source=long_runs, digits=2),
)

# %% tags=["fold"]
shown = {"flat": 6, "ladder": 1, "no gate": 3, "blocks, idle hold": 2}
with figures.plot(height=310) as (fig, ax):
    for name, series in shown.items():
        points = curves[name]
        x = [p["scale"] for p in points]
        mean = [100 * p["on_time"][0] for p in points]
        half = [100 * p["on_time"][1] for p in points]
        ax.fill_between(x, [m - h for m, h in zip(mean, half, strict=True)], [m + h for m, h in zip(mean, half, strict=True)],
            color=figures.colour(series), alpha=0.18, linewidth=0)  # fmt: skip
        ax.plot(x, mean, color=figures.colour(series))
    ax.axhline(95, color=figures.INK, linewidth=1, linestyle=(0, (4, 3)))
    ax.set_xscale("log", base=2)
    ax.set_xlim(0.25, 16)
    ax.set_xticks([0.25, 0.5, 1, 2, 4, 8, 16], [f"{t:g}x" for t in (0.25, 0.5, 1, 2, 4, 8, 16)])
    ax.set_ylim(0, 104)
    figures.axes(ax, x="demand, in times of what is assumed now", y="turns that start on time [%]")
    figures.label(ax, 0.55, 78, "flat", colour=figures.colour(6), dx=4)
    figures.label(ax, 1.5, 60, "blocks pinned by idle conversations", dx=-4, dy=-8, ha="right", colour=figures.colour(2))
    figures.label(ax, 6.2, 84, "ladder", dx=-12, dy=-10, ha="right", colour=figures.colour(1))
    figures.label(ax, 11, 70, "no gate", dx=8, colour=figures.colour(3))
figures.show(
    fig,
    name="on-time",
    alt="Turns that start on time against the demand, for four policies. Flat slices fall first, then blocks pinned by idle conversations "
    "just past the present demand; the ladder holds to about {most_ladder} times it, no gate a little further before it drops.",
    caption="With the ladder the service carries about {most_ladder} times its demand; what idle conversations hold decides.",
    most_ladder=f"{most['ladder']['scale'][0]:.1f}x",
)

# %% [markdown]
# Flat carries [0.38](num:most_flat) times the demand, the ladder [6.2](num:most_ladder) times, no gate [7.7](num:most_free), which is
# within the noise of it. Why a gate at all, then? Past its end the ungated service falls apart: more conversations than the cache can keep
# push each other out, every turn reads its whole prompt again, and prompt work fills the cards. At [12x](num:twelve) the demand
# [73%](num:ladder_12) start on time with the ladder and [34%](num:free_12) without a gate. The ladder's real service is to keep the working set small, and to make
# people wait where they can see it.
#
# Without drafts and prefix caching there are more seats, and it carries less, [3.1](num:most_bare): the cache is worth more than the
# seats it costs.
#
# ## Derive: what matters most
#
# How long an idle conversation keeps its slice, and the assumptions themselves, each made smaller and larger:

# %%
idle = runs["idle"]
Table(("idle timeout [s]", "times the demand", "±"), [(r["idle"], f"{r['scale'][0]:.1f}", f"{r['scale'][1]:.1f}") for r in idle])

# %%
tests = runs["sensitivity"]
base = most["ladder"]["scale"][0]
ranked = sorted(tests, key=lambda r: -abs(r["scale"][0] - base))[:10]
Table(
    ("assumption", "times", "on time now [%]", "carries", "±"),
    [(r["line"], r["factor"], f"{100 * r['on_time'][0]:.1f}", f"{r['scale'][0]:.1f}", f"{r['scale'][1]:.1f}") for r in ranked],
)

# %% [markdown]
# ## Derive: a better ladder
#
# Every ladder that keeps a slice of [64K](num:ladder_big) and fits the pool, from a grid of shapes; the best few run again with more seeds, at
# a demand that the article's ladder no longer carries well.

# %%
search = runs["search"]
in_tokens, in_blocks = search["tokens"], search["blocks"]
Table(
    ("counted in", "slices [K]", "shorts", "of tokens", "on time [%]", "±"),
    [
        (kind, " + ".join(f"{s // K}" for s in r["slices"]), r["shorts"], r["short_tokens"], f"{100 * r['on_time'][0]:.1f}", f"{100 * r['on_time'][1]:.1f}")
        for kind, part in (("tokens", in_tokens), ("blocks", in_blocks))
        for r in part["best"][:4]
    ]
    + [
        (f"the article's, {kind}", " + ".join(f"{s // K}" for s in busy_hour.in_tokens().slices), "", "", f"{100 * search[key]['on_time'][0]:.1f}", f"{100 * search[key]['on_time'][1]:.1f}")
        for kind, key in (("tokens", "article in tokens"), ("blocks", "article in blocks"))
    ],
)  # fmt: skip

# %% tags=["fold"]
best = in_tokens["best"][0]
numbers(
    tried_ladders=num(in_tokens["tried"], "ladders tried in tokens", unit="ladders"),
    best_on_time=num(100 * best["on_time"][0], "the best of them, on time", unit="%", source=long_runs, digits=3),
    mid_16k=num(best["slices"][1], "the middle slice of the best", unit="tokens", k=1024),
    article_there=num(100 * search["article in tokens"]["on_time"][0], "the article's at the same demand", unit="%", source=long_runs, digits=3),
)

# %% [markdown]
# Of [140](num:tried_ladders) ladders in tokens the best is [97.6%](num:best_on_time) on time where the article's is
# [95.5%](num:article_there). Those that win put slices of [16K](num:mid_16k) between the short ones and the long one: the gap there is the weak
# point of the article's, for conversations that are neither. The leaders overlap each other, and they were picked for this demand; take the
# shape from it, not the sizes.
#
# ## Derive: many times the people

# %%
rigs = runs["rigs"]
Table(
    ("times the people", "rigs, one router", "rigs, each alone", "Erlang, one queue", "Erlang, separate"),
    [(r["people"], r["routed"], r["random"], r["erlang_pooled"], r["erlang_separate"]) for r in rigs["rows"]],
)

# %% tags=["fold"]
large = rigs["rows"][-1]
numbers(
    times_1000=num(large["people"], "times the people", unit="x", kind="assumed", source="the largest that was run"),
    rigs_routed=num(large["routed"], "rigs with one router", unit="rigs", source=long_runs),
    rigs_random=num(large["random"], "rigs, each with its own people", unit="rigs", source=long_runs),
    pooling=num(large["random"] / large["routed"], "what one router saves", "= rigs_random / rigs_routed", "x"),
)

# %% [markdown]
# At [1,000](num:times_1000) times the people, [125](num:rigs_routed) rigs behind one router do what [158](num:rigs_random) do with people assigned to
# them at random, [1.26x](num:pooling). But nobody should build that router. It exists:
#
# * [vLLM's production stack](https://docs.vllm.ai/projects/production-stack/en/latest/use_cases/prefix-aware-routing.html) sends a session, or a prompt whose
#   beginning it knows, to the server that has it cached;
# * [NVIDIA Dynamo](https://docs.nvidia.com/dynamo/latest/components/router/routing-concepts) weighs the cached part of a prompt against each server's load.
#
# Neither hands out slices of a pool; they assume that servers queue by themselves. A ladder in front of them is still one's own.

# %% tags=["fold"]
hour = runs["hour"]["6"]
moments = hour["rows"]
seconds = [row[0] / 60 for row in moments]
with figures.plot(height=280) as (fig, ax):
    ax.stackplot(
        seconds, [row[1] for row in moments], [row[2] for row in moments], [row[3] for row in moments],
        colors=[figures.colour(1), figures.colour(3), figures.colour(6)], linewidth=0,
    )  # fmt: skip
    ax.set_xlim(0, 60)
    ax.set_ylim(0, 199)
    figures.axes(ax, x="minute of a busy hour, six times the demand", y="blocks of the pool", grid="")
    figures.label(ax, 1, 12, "in use", colour=figures.PAPER)
    figures.label(ax, 1, 95, "cached, can be taken back", colour=figures.PAPER)
    figures.label(ax, 1, 188, "free", colour=figures.PAPER)
figures.show(
    fig,
    name="busy-hour",
    alt="A busy hour at six times the demand, as a stacked area of {usable} blocks. Blocks in use flicker low, cached ones fill most of the "
    "pool, free ones come and go at the top.",
    caption="Most of the pool is cache that can be taken back; running requests hold little of the {usable} blocks.",
    usable=199,
)

# %% [markdown]
# ## Check

# %%
assert all(row[1] + row[2] + row[3] == 199 for row in moments)
assert now["flat"]["on_time"][0] < now["blocks, idle hold"]["on_time"][0] < now["ladder"]["on_time"][0]
assert most["flat"]["scale"][0] < most["blocks, idle hold"]["scale"][0] < most["ladder"]["scale"][0] < most["no gate"]["scale"][0]
assert all(r["routed"] <= r["random"] for r in rigs["rows"])
assert [round(erlang.erlang_c(c, a), 6) for c, a in ((22, 14), (18, 14.4), (2, 1.4))] == [0.033213, 0.278960, 0.576471]

# %% [markdown]
# ## What if
#
# **The demand is other than assumed.** It is. Put in what you measure on your own service: turns, lengths, pauses; the table says which lines
# move the result most.
#
# **Waiting people kept their short slice.** They would hold what others wait for. The ladder takes it back after a timeout; without one, waiters can
# stop each other for good.
