# %% [markdown]
# # Why does a load test lie?
#
# Because it looks before anything has grown. A server that has loaded has shown that its plan fitted at that moment, and
# nothing more. Whether layers were moved away, or the driver moved memory to the host without a word, shows in one figure only:
# the speed of decoding, deep in a long context. That is why every speed of the article is `timings.predicted_per_second` and
# never a check that the model loaded.
#
# Below is the trap as an experiment that you can run, and a command that reads the timings and says where the cliff is.

# %% tags=["fold"]
from math import log
from random import Random

from aelius_math import catalogue, figures
from aelius_math.decode import Sample, find_cliff
from aelius_math.ledger import given, givens, num, numbers
from aelius_math.llamacpp import Context, memory
from aelius_math.tables import Table

# %% [markdown]
# ## Given
#
# What the article says of the matter. The tables that would tie these figures together, speed against depth and against the
# margin, are lost.

# %%
MiB, K = 2**20, given("k_binary")
givens("metric", "paging_past", "evicted_speed", "deep_speed", "ceiling", "fit_80k")

# %% [markdown]
# ## Derive: what each check sees
#
# Memory has its moments. When the server **loads**, weights, caches and state are laid out. At the **first request** kernels,
# graphs and work buffers appear that were not needed before. **Deep in a conversation** whatever grows with the context is at
# its largest. A check sees only the moments before it.

# %%
checks = [
    ("the process is up", "load", "that the plan was accepted, or that the fit pass changed it"),
    ("free memory after loading", "load", "weights, caches, state; falls when layers are moved away, so it looks better"),
    ("one short question", "first request", "kernels and buffers of a short context"),
    ("a long prompt, one token", "first request", "the prompt's buffers, not the draft's while it verifies"),
    ("decode speed, deep", "deep", "all of it, and paging"),
]
Table(("check", "moment", "what it sees"), checks)

# %% [markdown]
# The line on free memory is the cruel one. When the fit pass moves a layer to the CPU, the card has **more** free memory than before.
# A dashboard that watches memory sees an improvement.
#
# ## Derive: what grows, and in which builds
#
# In llama.cpp builds since June 2026 (pull request #23907) the caches, the unpacked copy of a quantised layer and the masks are all reserved
# when the context is made. Before that, the unpacked copy came from a pool that grew during generation, invisible to the fit
# pass. For the article's cache it is this much:

# %%
model = catalogue.load("qwen3.8-27b")


def july(context):
    return Context(n_ctx=context, n_seq_max=given("july_slots"), type_k="q8_0", type_v="q8_0", draft_max=2, build="jul")


copies = {context: memory(model, july(context * K)).scratch_bytes / MiB for context in (64, 80, 84)}
numbers(
    copy_64=num(copies[64], "the unpacked copy at July's wall", "= 64 * grow_copy", "MiB"),
    copy_80=num(copies[80], "the unpacked copy where it evicted", "= 80 * grow_copy", "MiB"),
    copy_84=num(copies[84], "the unpacked copy at the ceiling", "= 84 * grow_copy", "MiB"),
)

# %% [markdown]
# [256 MiB](num:copy_64) at [64K](num:wall), [320 MiB](num:copy_80) at [80K](num:fit_80k): much of the default margin, found only
# by decoding. On newer builds what is left to grow is smaller and less known: work pools, graphs, kernels that load late, an image
# that is encoded. **Read in the source, not measured.**
#
# What happens then depends on the system. On Linux an allocation that does not fit fails, and the server says so. Under Windows
# and WSL the driver moves memory to the host and says nothing; the article saw that past [80K](num:paging_past), and the speed was
# [halved](num:evicted_speed).
#
# ## Derive: how all of it can hold
#
# The article says that past [about 80K](num:paging_past) the driver pages; that [84K](num:ceiling) is the ceiling of a configuration that
# was validated; and that deep in the context the speed there is [identical](num:deep_speed). These sit side by side only if they belong to
# different moments or settings:
#
# * the paging was seen before a margin was lowered or a buffer shrunk, and [84K](num:ceiling) is what was left after it; or
# * it was seen on an earlier build, whose buffers grew; or
# * it needs all slots busy, and the validation used one.
#
# Which of them it was is **unknown**. What is known: [84K](num:ceiling) at an unchanged deep speed was not paging, and a load
# test could not have told.
#
# ## Derive: a protocol for your own server
#
# Ask for some hundred tokens at growing depth, from shallow to the limit and past what you mean to promise. Repeat each depth.
# Do it with every slot busy, drafts on, and an image in one of the prompts if you serve images. Then read the decode speeds:
#
# ```sh
# for depth in 4000 8000 16000 32000 48000 64000 72000 80000 84000; do
#   python -c "print('word ' * $depth)" | jq -Rsc '{prompt: ., n_predict: 256, cache_prompt: false}' |
#     curl -s http://127.0.0.1:8080/completion -d @- | jq -c '{timings}'
# done > timings.jsonl
# aelius-math decode timings.jsonl
# ```
#
# The command looks for a step that is too large for noise and better than a smooth decline, since reading a longer cache slows
# every engine down a little. Here on series that were made up for the purpose: one smooth, one with a fall planted.

# %%
depths = [K * (4 + 2 * step) for step in range(48)]
planted = 64 * K


def series(seed, fall, decline=True, noise=0.10):
    random = Random(seed)
    steady = [60 / (1 + x / (600 * K) * decline) for x in depths]
    return [Sample(x, v * (1 - fall if x > planted else 1) * (1 + random.gauss(0, noise))) for x, v in zip(depths, steady, strict=True)]


smooth, cliff = find_cliff(series(1, 0)), find_cliff(series(1, 0.30))
Table(
    ("series", "verdict", "after", "before", "fall", "confidence"),
    [
        ("smooth", smooth.verdict, "", "", "", ""),
        ("with a fall", cliff.verdict, f"{cliff.after:,.0f}", f"{cliff.before:,.0f}", f"{cliff.fall:.0%}", f"{cliff.confidence:.1%}"),
    ],
)

# %% tags=["fold"]
tries = 100
found = [find_cliff(series(seed, 0.30)) for seed in range(tries)]
placed = sum(f.verdict == "cliff" and abs(depths.index(f.after) - depths.index(planted)) <= 1 for f in found)
silent = sum(find_cliff(series(seed, 0, decline=False)).verdict == "none" for seed in range(tries))
gentle = sum(find_cliff(series(seed, 0)).verdict == "none" for seed in range(tries))
numbers(
    tries=num(tries, "made-up series of each kind", unit="series", kind="assumed", source="chosen here; the tests run a thousand"),
    placed=num(placed, "planted falls placed within one sample", unit="series"),
    silent=num(silent, "flat series without a false cliff", unit="series"),
    gentle=num(gentle, "smoothly declining series without a false cliff", unit="series"),
    planted_fall=num(30, "the fall that was planted", unit="%", kind="assumed", source="chosen here"),
    planted_noise=num(10, "noise of one sample", unit="%", kind="assumed", source="chosen here"),
)

# %% tags=["fold"]
shown = series(1, 0.30)
with figures.plot(height=280) as (fig, ax):
    ax.plot([s.context for s in shown], [s.speed for s in shown], "o", color=figures.colour(1), markersize=5, alpha=0.7, markeredgewidth=0)
    ax.axvspan(cliff.after, cliff.before, color=figures.colour(2), alpha=0.35, linewidth=0)
    ax.set_ylim(0, 80)
    ax.set_xlim(0, 100 * K)
    figures.token_axis(ax.xaxis, [0, 16 * K, 32 * K, 48 * K, 64 * K, 80 * K, 96 * K])
    figures.axes(ax, x="depth of the context [tokens]", y="decode speed [tokens/s], made up")
    figures.label(ax, cliff.before, 66, "found here", dx=6, colour=figures.colour(2))
figures.show(
    fig,
    name="cliff",
    alt="Made-up decode speeds against the depth of the context, scattered by a tenth. They decline slowly, then fall by about a third; a "
    "narrow band marks the place that the command finds.",
    caption="A fall among noise, and where the command places it.",
)

# %% [markdown]
# Of [100](num:tries) series with a fall of [30%](num:planted_fall) under noise of [10%](num:planted_noise), [100](num:placed) falls are placed within
# one sample. Of as many flat ones [99](num:silent) pass without a false alarm, of those that decline smoothly [95](num:gentle): a
# decline under noise looks a little like a step, and a cliff that matters should be measured again.
#
# ## Check
#
# The command never says more than the series can bear: with too few samples, or a fall inside the noise, it says so.

# %%
few = find_cliff(series(1, 0.30)[:6])
small = find_cliff(series(3, 0.03, decline=False))
assert (few.verdict, small.verdict) == ("too few", "none")
assert cliff.after < cliff.before and cliff.low <= planted <= cliff.high
assert smooth.speed_after < smooth.speed_before and log(cliff.confidence) < 0
print("a fall of", f"{small.visible:.0%}", "halfway would have shown")

# %% [markdown]
# ## What if
#
# **You can only check once.** Check the decode speed at the depth you promise, with all slots busy. It is the one figure that the
# other checks follow from.
#
# **The engine is vLLM.** It reserves its cache when it starts, and profiles a full batch before it does. What it does not show is
# [how many can run at once](06_ladder.ipynb); the same command reads its log.
