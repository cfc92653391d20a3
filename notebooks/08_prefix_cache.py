# %% [markdown]
# # What is [84.8%](num:prefix_hit_rate) worth?
#
# About [9.3 million](num:hits) tokens of prompt that were not computed again, of [11.0 million](num:prefix_lookups) that
# were looked up. At prompt speeds that are likely for such cards, that is between [1.3 hours](num:hours_fast) and
# [2.6 hours](num:hours_slow) of both cards at full load, since a restart whose day is not known.
#
# The rate says nothing about the people whose prompts can never hit. On this model a cached prefix ends at a block, and a
# block is [1,616](num:block) tokens long. With drafts on, a prompt of fewer than [3,233](num:first_hit) tokens hits nothing.

# %% tags=["fold"]
from fractions import Fraction

from aelius_math import figures, service
from aelius_math.ledger import given, givens, num, numbers
from aelius_math.tables import Table

# %% [markdown]
# ## Given

# %%
rate = given("prefix_hit_rate") / 100
lookups = given("prefix_lookups")
givens("prefix_hit_rate", "prefix_lookups", "drafts", "engine_version", "kv_available")

# %% [markdown]
# What the engine counts are tokens, not requests. For every request that is scheduled, the length of its prompt goes to the
# queries and the cached part of it to the hits (vLLM 0.28.0, `vllm/v1/metrics/stats.py`, `PrefixCacheStats`). So one long
# prompt weighs as much as hundreds of short ones.
#
# ## Derive: hits and misses
#
# Both published figures are rounded, so each product has an interval, not a value.

# %% tags=["fold"]
rates = (rate - Fraction(5, 10_000), rate + Fraction(5, 10_000))
looked_up = (lookups - 50_000, lookups + 50_000)
hits = rate * lookups
misses = lookups - hits
numbers(
    hits=num(hits, "tokens of prompt served from the cache", "= prefix_hit_rate / 100 * prefix_lookups", "tokens", digits=2),
    hits_low=num(rates[0] * looked_up[0], "hits, at least", "= (prefix_hit_rate - 0.05) / 100 * (prefix_lookups - 50000)", "tokens", digits=3),
    hits_high=num(rates[1] * looked_up[1], "hits, at most", "= (prefix_hit_rate + 0.05) / 100 * (prefix_lookups + 50000)", "tokens", digits=3),
    misses=num(misses, "tokens of prompt computed", "= prefix_lookups - hits", "tokens", digits=2),
    misses_low=num((1 - rates[1]) * looked_up[0], "misses, at least", "= (100 - prefix_hit_rate - 0.05) / 100 * (prefix_lookups - 50000)", "tokens", digits=3),
    misses_high=num((1 - rates[0]) * looked_up[1], "misses, at most", "= (100 - prefix_hit_rate + 0.05) / 100 * (prefix_lookups + 50000)", "tokens", digits=3),
    per_miss=num(1 / (1 - rate), "lookups for each miss", "= 100 / (100 - prefix_hit_rate)", "x", digits=2),
)  # fmt: skip

# %% [markdown]
# [9.28 million](num:hits_low) to [9.38 million](num:hits_high) tokens were hit, [1.66 million](num:misses_low) to
# [1.69 million](num:misses_high) tokens were missed. For each that was missed, [6.6](num:per_miss) were looked up.
#
# ## Derive: hours
#
# The article does not give its prompt speed. A low and a high one bracket what such cards are likely to do; both are assumptions, and
# the hours are only as good as they are.

# %% tags=["fold"]
fast, slow = 2000, 1000
numbers(
    fast=num(fast, "prompt speed, high", unit="tokens/s", kind="assumed", source="twice the low one"),
    slow=num(slow, "prompt speed, low", unit="tokens/s", kind="assumed",
        source="a round number near 993 tokens/s, measured on one RTX 3090 under llama.cpp: github.com/noonghunna/club-3090/issues/1111"),
    hours_fast=num(hits / fast / 3600, "prompt work saved at the high speed", "= hits / fast / 3600", "h", digits=2),
    hours_slow=num(hits / slow / 3600, "prompt work saved at the low speed", "= hits / slow / 3600", "h", digits=2),
)  # fmt: skip

# %% [markdown]
# ## Derive: where a hit may end
#
# A plain transformer can take up a cached prompt at any block, and its blocks are short. This model cannot: its recurrent
# layers need their state *as it was at that token*, and a state is only kept where a block ends. So the whole model hits in
# blocks of [1,616](num:block) tokens, the size that [the engine chose](04_why_289661.ipynb) to make a page as large as a
# state.
#
# At most, then, a prompt of $n$ tokens hits
#
# $$\left( \left\lfloor \frac{n - 1}{B} \right\rfloor - e \right) \cdot B$$
#
# tokens. The last token is always computed, for its logits. $e$ is one with drafts, none without: the draft head must see
# the tokens just before the new ones, so the last block that matched is dropped. Read in the source of vLLM 0.28.0
# (`vllm/v1/core/kv_cache_coordinator.py`), not run.


# %%
def can_hit(prompt, block, drafts):
    return max(0, (prompt - 1) // block - (1 if drafts else 0)) * block


block = service.pool().block_size
first = next(n for n in range(1, 10_000) if can_hit(n, block, given("drafts")))
plain = next(n for n in range(1, 10_000) if can_hit(n, block, 0))
numbers(
    first_hit=num(first, "shortest prompt that can hit, with drafts", "= 2 * block + 1", "tokens", kind="inferred", source="read in vLLM 0.28.0, not run"),
    plain_hit=num(plain, "shortest prompt that can hit, without drafts", "= block + 1", "tokens", kind="inferred", source="read in vLLM 0.28.0, not run"),
    dense_block=num(16, "tokens of a block of a plain transformer", unit="tokens", kind="external", source="vLLM 0.28.0, vllm/config/cache.py, block_size"),
)  # fmt: skip

# %% tags=["fold"]
K = given("k_binary")
lengths = list(range(64, 16 * K + 1, 64))
series = {
    "dense": [100 * can_hit(n, 16, 0) / n for n in lengths],
    "plain": [100 * can_hit(n, block, 0) / n for n in lengths],
    "drafts": [100 * can_hit(n, block, 4) / n for n in lengths],
}
with figures.plot(height=300) as (fig, ax):
    for place, name in enumerate(("dense", "plain", "drafts")):
        ax.plot(lengths, series[name], color=figures.colour((6, 3, 1)[place]), linewidth=1.75)
    ax.set_xlim(0, 16 * K)
    ax.set_ylim(0, 108)
    figures.token_axis(ax.xaxis, [0, 4 * K, 8 * K, 12 * K, 16 * K])
    figures.axes(ax, x="length of the prompt [tokens]", y="most that a repeated prompt can take from the cache [%]")
    figures.label(ax, 9 * K, 100, "a plain transformer, blocks of {dense_block}", dense_block=16, dy=9, colour=figures.colour(6))
    figures.label(ax, block, 20, "no\ndrafts", dx=8, colour=figures.colour(3))
    figures.label(ax, 7 * K, 56, "with drafts, blocks of {block}", block=block, colour=figures.colour(1))
figures.show(
    fig,
    name="hit-share",
    alt="The most that a repeated prompt can take from the prefix cache, against its length. A plain transformer is near the whole "
    "from the start. This model starts at nothing, jumps at each block of {block} tokens and falls between; with drafts it starts one "
    "block later, at {first_hit} tokens.",
    caption="Blocks of {block} tokens and drafts keep every prompt below {first_hit} tokens out of the cache.",
    block=block,
    first_hit=first,
)

# %% [markdown]
# It is a ceiling, not a forecast. A state is kept where a scheduled step ends on a block, so a shared beginning that no step
# ended on is missed although it is long enough.
#
# ## Check
#
# Public reports of prefix caches on models of this kind, against the ceiling. None used drafts.

# %%
reports = [
    ("vllm-project/vllm/issues/40696", "Qwen3.5-4B", 528, 480, 0),
    ("vllm-project/vllm/issues/40696", "Qwen3.5-4B", 528, 552, 95),
    ("vllm-project/vllm/issues/40696", "Qwen3.5-4B", 528, 979, 54),
]
for thread, name, size, prompt, reported in reports:
    share = 100 * can_hit(prompt, size, 0) / prompt
    assert abs(share - reported) < 1
Table(
    ("report", "model", "block", "prompt", "hit, reported [%]", "ceiling [%]"),
    [(t.rsplit("/", 1)[-1], m, b, p, r, f"{100 * can_hit(p, b, 0) / p:.1f}") for t, m, b, p, r in reports],
)

# %% [markdown]
# The figures of [that report](https://github.com/vllm-project/vllm/issues/40696) come out within their rounding. Others say
# only that the cache never hits: [one](https://github.com/vllm-project/vllm/issues/51198) with a prompt of some hundred
# tokens, shorter than that model's block; [one](https://github.com/vllm-project/vllm/issues/53749) on other hybrids, for
# any prefix below a block. [A third](https://github.com/vllm-project/vllm/issues/45238) shows the other cause, a kept state
# that lies in the part no other request shares. None of these is a fault of the arithmetic, and none is named in a log.

# %%
assert rates[0] * looked_up[0] < hits < rates[1] * looked_up[1]
assert hits + misses == lookups
assert series["drafts"][-1] < series["plain"][-1] < series["dense"][-1] < 100
assert [can_hit(n, block, 4) for n in (block, 2 * block, 2 * block + 1, 3 * block + 1)] == [0, 0, block, 2 * block]

# %% [markdown]
# ## What if
#
# **The cache were off.** Every prompt would be computed, and the pool would be larger: [294,543](num:no_cache) tokens instead
# of [289,661](num:pool). Caching keeps a copy of each group's state, and that costs [4,882](num:cache_cost) tokens of the pool,
# [1.7%](num:cache_share).

# %% tags=["fold"]
off = service.pool(enable_prefix_caching=False).tokens
numbers(
    cache_cost=num(off - given("pool"), "what prefix caching costs", "= no_cache - pool", "tokens"),
    cache_share=num(100 * (off - given("pool")) / off, "its share of the pool", "= 100 * cache_cost / no_cache", "%"),
)

# %% [markdown]
# **The drafts were off.** A prompt could hit from [1,617](num:plain_hit) tokens. A template that everyone's prompt begins
# with, and that fills a block, would then be computed once.
#
# **Nothing is known of the requests.** A rate over tokens cannot say how many people were served from the cache. It was
# probably few of them, and long ones: the article calls its conversations overwhelmingly short.
