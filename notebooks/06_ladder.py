# %% [markdown]
# # How should [289,661](num:pool) tokens be handed out?
#
# As a ladder: [one](num:ladder_bigs) slice of [64K](num:ladder_big), [three](num:ladder_mids) of [32K](num:ladder_mid), and as many
# short ones as what is left holds. For a short slice of [6,623](num:short_least) to [6,990](num:short_most) tokens that is
# [eighteen](num:ladder_shorts), and at the largest of them the ladder fills the pool to all but [one](num:unused) token.
#
# In the engine's blocks the same ladder wants [590](num:want_planned) of [199](num:usable). It works all the same: only requests that are
# being computed hold blocks, what an idle conversation leaves can be taken back, and few run at once. The promise is about seats, not about
# everybody running together.

# %% tags=["fold"]
from aelius_math import figures, service
from aelius_math.ladder import Ladder, slice_sizes
from aelius_math.ledger import given, givens, num, numbers
from aelius_math.tables import Table

# %% [markdown]
# ## Given
#
# The article's ladder and its short draft. The size of a short slice, the reading of K and the reserve are not stated; the
# table that may have held them is lost.

# %%
pool, limit, K = given("pool"), given("request_limit"), given("k_binary")
givens("pool", "ladder", "ladder_bigs", "ladder_mids", "ladder_shorts", "hardcoded_shorts", "oversubscription", "flat_users")

# %% [markdown]
# ## Derive: equal slices
#
# The simplest way is to cut the pool into equal slices. Then [two](num:flat_users) people are served, if a slice is
# [96,554](num:flat_least) to [144,830](num:flat_most) tokens; [128K](num:flat_slice) is one such size.

# %% tags=["fold"]
flat = slice_sizes(pool, given("flat_users"))
numbers(
    flat_least=num(flat[0], "least slice of which exactly two fit", "= pool // 3 + 1", "tokens"),
    flat_most=num(flat[-1], "largest slice of which two fit", "= pool // flat_users", "tokens"),
    flat_slice=num(128 * K, "a flat slice in that range", unit="tokens", kind="assumed", source="a round size in that range", k=1024),
)

# %% [markdown]
# ## Derive: the ladder in tokens
#
# The big slices take [163,840](num:bigs) tokens and leave [125,821](num:rest). [Eighteen](num:ladder_shorts) shorts fit for one
# range of sizes and no other.

# %% tags=["fold"]
bigs = given("ladder_bigs") * 64 * K + given("ladder_mids") * 32 * K
rest = pool - bigs
sizes = slice_sizes(rest, given("ladder_shorts"))
kilo = given("k_decimal")
sizes_decimal = slice_sizes(pool - given("ladder_bigs") * 64 * kilo - given("ladder_mids") * 32 * kilo, given("ladder_shorts"))
ladder = Ladder(pool=pool, short_tokens=sizes[-1])
reserved = [Ladder(pool=pool, short_tokens=size, reserve=share).shorts for share, size in ((0.05, 6 * K), (0.10, 5 * K))]
numbers(
    bigs=num(bigs, "the big slices, binary K", "= (64 * ladder_bigs + 32 * ladder_mids) * k_binary", "tokens"),
    rest=num(rest, "what they leave", "= pool - bigs", "tokens"),
    short_least=num(sizes[0], "least short slice of which exactly so many fit", "= rest // (ladder_shorts + 1) + 1", "tokens"),
    short_most=num(sizes[-1], "largest such slice", "= rest // ladder_shorts", "tokens"),
    short_least_d=num(sizes_decimal[0], "least such slice, K in thousands", "= (pool - 160 * k_decimal) // (ladder_shorts + 1) + 1", "tokens"),
    short_most_d=num(sizes_decimal[-1], "largest such slice, K in thousands", "= (pool - 160 * k_decimal) // ladder_shorts", "tokens"),
    reserve_5=num(5, "a reserve that was tried", unit="%", kind="assumed", source="tried for the reading"),
    reserve_10=num(10, "another reserve that was tried", unit="%", kind="assumed", source="tried for the reading"),
    short_6k=num(6 * K, "short slice that goes with the first", unit="tokens", kind="assumed", source="tried for the reading", k=1024),
    short_5k=num(5 * K, "short slice that goes with the second", unit="tokens", kind="assumed", source="tried for the reading", k=1024),
    unused=num(ladder.left, "what the full ladder leaves", "= rest - ladder_shorts * short_most", "tokens"),
    seats=num(ladder.seats, "seats of the ladder", "= ladder_bigs + ladder_mids + ladder_shorts", "seats"),
)  # fmt: skip

# %% [markdown]
# [Eighteen](num:ladder_shorts) slices of [6,990](num:short_most) leave [one](num:unused) token of the pool. With K in thousands the range is
# [6,825](num:short_least_d) to [7,203](num:short_most_d). A reserve shifts it: with [5%](num:reserve_5) held back, as many
# shorts of [6K](num:short_6k) fit; with [10%](num:reserve_10), as many of [5K](num:short_5k). So the article's number fits several readings, and the size of a short slice stays unknown.

# %% tags=["fold"]
parts = [("one of", 64 * K, 1, given("ladder_bigs")), ("three of", 32 * K, 3, given("ladder_mids")), ("shorts", sizes[-1], 2, ladder.shorts)]
planned = service.pool()
in_blocks = Ladder(pool=planned, shorts=given("ladder_shorts"), short_tokens=sizes[-1], budget="blocks")
running = Ladder(pool=planned, shorts=given("ladder_shorts"), short_tokens=sizes[-1], budget="blocks", count="running")
with figures.plot(height=250, nrows=2) as (fig, (upper, lower)):
    left = 0
    for _, size, series, count in parts:
        for _ in range(count):
            upper.barh(0, size, left=left, height=0.6, color=figures.colour(series), edgecolor=figures.PAPER)
            left += size
    upper.axvline(pool, color=figures.INK)
    left = 0
    for _, size, series, count in parts:
        for _ in range(count):
            lower.barh(0, planned.blocks(size), left=left, height=0.6, color=figures.colour(series), edgecolor=figures.PAPER)
            left += planned.blocks(size)
    lower.axvline(planned.usable_blocks, color=figures.INK)
    for ax in (upper, lower):
        ax.set_yticks([])
        ax.set_ylim(-0.45, 0.75)
    upper.set_xlim(0, pool * 1.03)
    lower.set_xlim(0, in_blocks.promised * 1.03)
    figures.token_axis(upper.xaxis, [0, 64 * K, 128 * K, 192 * K, 256 * K])
    figures.axes(upper, y="in tokens", grid="")
    figures.axes(lower, y="in the engine's blocks, all running at once", grid="")
    figures.label(upper, pool, 0.52, "{pool}", pool=pool, ha="right", dx=-4)
    figures.label(lower, planned.usable_blocks, 0.52, "{usable} usable", usable=planned.usable_blocks, dx=4)
    figures.label(lower, in_blocks.promised, 0.52, "{want_planned} wanted", want_planned=in_blocks.promised, ha="right")
figures.show(
    fig,
    name="ladder-cut",
    alt="Two bars. In tokens the ladder fills the pool of {pool} exactly: one long slice, three middle ones, many short. In blocks the same "
    "slices reach to {want_planned}, far past the mark of {usable} usable blocks.",
    caption="The same ladder: full to the token above, and {over} times the usable blocks below.",
    over=f"{in_blocks.promised / planned.usable_blocks:.2f}",
    pool=pool,
    want_planned=in_blocks.promised,
    usable=planned.usable_blocks,
)

# %% [markdown]
# ## Derive: the ladder in blocks
#
# A live request pays [18](num:fixed) blocks of state whatever its length, by the planner's count, which sizes the pool (a running request holds a little less). All [22](num:seats) of them at once would
# want [590](num:want_planned) blocks, or [524](num:want_running) as they run; [199](num:usable) can be held. The big ones alone
# want [176](num:four_planned), or [164](num:four_running).

# %% tags=["fold"]
four = Ladder(pool=planned, shorts=0, budget="blocks")
four_running = Ladder(pool=planned, shorts=0, budget="blocks", count="running")
numbers(
    want_planned=num(in_blocks.promised, "blocks that the ladder wants, planned", "= ceil_div(64 * k_binary, block) + 3 * ceil_div(32 * k_binary, block) + ladder_shorts * ceil_div(short_most, block) + seats * fixed", "blocks"),
    want_running=num(running.promised, "blocks that it wants, running", "= want_planned - seats * (fixed - running_fixed)", "blocks", kind="inferred", source="read in the engine's source, not run"),
    four_planned=num(four.promised, "the big slices alone, planned", "= ceil_div(64 * k_binary, block) + 3 * ceil_div(32 * k_binary, block) + 4 * fixed", "blocks"),
    four_running=num(four_running.promised, "the big slices alone, running", "= four_planned - 4 * (fixed - running_fixed)", "blocks", kind="inferred", source="read in the engine's source, not run"),
    over=num(in_blocks.promised / planned.usable_blocks, "wanted over usable", "= want_planned / usable", "x"),
)  # fmt: skip

# %% [markdown]
# Why does it work? In this engine a conversation that waits for its person holds no blocks. What it leaves behind is prefix
# cache, which is given to the next who needs it. Only requests that are being computed hold blocks, and on a service for
# [38](num:daily_actives) people few are computed at the same moment. If the article's remark were literal, that every open
# conversation draws on the pool, then the ladder could not be honoured in blocks.
#
# ## Derive: seats by length
#
# How many requests of one length can run at the same moment? It depends on what the flags add to each.

# %%
lengths = {(figures.tokens(n) if n > 1 else "the smallest"): n for n in (1, sizes[-1], 16 * K, 32 * K, 64 * K, 128 * K)}


sets = {
    "as inferred": planned,
    "no drafts": service.pool(num_speculative_tokens=0),
    "no drafts, no caching": service.pool(num_speculative_tokens=0, enable_prefix_caching=False),
}
seats = {name: {length: p.usable_blocks // p.blocks(n) for length, n in lengths.items()} for name, p in sets.items()}
steady = {length: planned.usable_blocks // planned.blocks(n, running=True) for length, n in lengths.items()}
Table(
    ("request", *sets, "as inferred, running count"),
    [(length, *(seats[name][length] for name in sets), steady[length]) for length in lengths],
)

# %% tags=["fold"]
numbers(
    seats_short=num(seats["as inferred"][figures.tokens(sizes[-1])], "short slices running at once, planned", "= usable // (ceil_div(short_most, block) + fixed)", "seats"),
    seats_16k=num(seats["as inferred"][figures.tokens(16 * K)], "middling requests at once, planned", "= usable // (ceil_div(16 * k_binary, block) + fixed)", "seats"),
    seats_64k_b=num(seats["as inferred"][figures.tokens(64 * K)], "long requests at once, planned", "= usable // (ceil_div(64 * k_binary, block) + fixed)", "seats"),
    seats_128k_b=num(seats["as inferred"][figures.tokens(128 * K)], "flat slices at once, planned", "= usable // (ceil_div(flat_slice, block) + fixed)", "seats"),
    run_128k=num(steady[figures.tokens(128 * K)], "flat slices at once, running", "= usable // (ceil_div(flat_slice, block) + running_fixed)", "seats", kind="inferred", source="read in the engine's source, not run"),
    free_short=num(seats["no drafts, no caching"][figures.tokens(sizes[-1])], "short slices at once without drafts and caching", unit="seats", source="vLLM's rule, run in aelius_math.vllm"),
)  # fmt: skip

# %% tags=["fold"]
with figures.plot(height=290) as (fig, ax):
    marks = [1 * K, 4 * K, 16 * K, 64 * K, 256 * K]
    fine = [n * K for n in range(1, limit // K + 1)]
    for place, p in enumerate(sets.values()):
        ax.step(fine, [p.usable_blocks // p.blocks(n) for n in fine], where="post", color=figures.colour((1, 3, 2)[place]))
    ax.set_xscale("log", base=2)
    ax.set_xlim(0.9 * K, 1.1 * limit)
    ax.set_yscale("log", base=2)
    ax.set_yticks([2**power for power in range(7)], [f"{2**power}" for power in range(7)])
    ax.set_ylim(0.9, 80)
    figures.token_axis(ax.xaxis, marks)
    figures.axes(ax, x="length of each request [tokens]", y="requests that run at the same moment")
    figures.label(ax, K, seats["no drafts, no caching"]["the smallest"], "no drafts, no caching", dx=6, dy=14, colour=figures.colour(2))
    figures.label(ax, K, seats["no drafts"]["the smallest"], "no drafts", dx=6, dy=14, colour=figures.colour(3))
    figures.label(ax, K, seats["as inferred"]["the smallest"], "as inferred", dx=6, dy=-14, colour=figures.colour(1))
stops = [n * K for n in (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)]
slider = figures.Slider(
    ax=ax,
    columns=("length of each request", *sets),
    stops=[(n, (figures.tokens(n), *(p.usable_blocks // p.blocks(n) for p in sets.values()))) for n in stops],
    start=stops.index(32 * K),
)
figures.show(
    fig,
    name="seats-by-length",
    slider=slider,
    alt="Requests that can run at the same moment, against their length, under three sets of flags. As inferred {seats_short} short ones run; "
    "without drafts and caching {free_short}. At long lengths the three meet.",
    caption="Flags decide for short requests, length for long ones: {seats_short} against {free_short} short slices at once.",
    seats_short=seats["as inferred"][figures.tokens(sizes[-1])],
    free_short=seats["no drafts, no caching"][figures.tokens(sizes[-1])],
)

# %% [markdown]
# Flat slices of [128K](num:flat_slice) are [two](num:flat_users) in tokens. In blocks they are [one](num:seats_128k_b) by the
# planner's count and [two](num:run_128k) as they run.
#
# ## Derive: the draft with [twenty](num:hardcoded_shorts)
#
# An early draft promised [twenty](num:hardcoded_shorts) short sessions whatever was left. The article says what it did to the
# pool: [170%](num:oversubscription), roughly. With shorts of [16K](num:short_16k) it comes out **to** that:

# %% tags=["fold"]
draft = Ladder(pool=pool, shorts=given("hardcoded_shorts"), short_tokens=16 * K)
first_broken = next(n for n in range(1, 25) if sum(draft.places[:n]) > pool)
order = sorted(draft.places)
numbers(
    drafted=num(draft.promised, "what the draft promised", "= bigs + hardcoded_shorts * 16 * k_binary", "tokens"),
    drafted_share=num(100 * draft.promised / pool, "the same over the pool", "= 100 * drafted / pool", "%"),
    drafted_decimal=num(100 * (160 * kilo + 20 * 16 * kilo) / pool, "the same, K in thousands", "= 100 * (160 + 20 * 16) * k_decimal / pool", "%"),
    by_share=num(100 * (bigs + 20 * 30 * K) / pool, "the other reading, in all", "= 100 * (bigs + 20 * 30 * k_binary) / pool", "%"),
    breaks_at=num(100 * pool / draft.promised, "grants out when the first promise must break", "= 100 * pool / drafted", "%"),
    by_all=num(100 + given("oversubscription"), "by the article's figure, in all", "= 100 + oversubscription", "%"),
    short_16k=num(16 * K, "a short slice of the draft that fits the figure", unit="tokens", kind="assumed", source="the power of two that fits the article's figure", k=1024),
    short_30k=num(30 * K, "a short slice that the other reading wants", unit="tokens", kind="assumed", source="tried for the reading", k=1024),
    overdrawn=num(-draft.left, "tokens promised and not there", "= drafted - pool", "tokens"),
)  # fmt: skip

# %% [markdown]
# [491,520](num:drafted) tokens are [169.7%](num:drafted_share) of the pool, [165.7%](num:drafted_decimal) with K in thousands. Read
# as "by", it would be [270%](num:by_all) in all. No power of two gives that; shorts of [30K](num:short_30k) come near, with
# [269%](num:by_share). So the figure holds if it is read as
# **to** that much, not **by** it. The first promise breaks when [58.9%](num:breaks_at) of the grants are out.
#
# What the person then saw, an HTTP 500 in the middle of an answer, cannot have come from the engine's memory. When blocks run
# out, vLLM puts a request back and computes it again later; it does not fail it. The error came from a layer above.
#
# ## Check
#
# The arena never grants more than its budget: hand out the ladder, try one more, and hand it out again after a release.

# %%
arena = Ladder(pool=pool, short_tokens=sizes[-1]).open()
wanted = [60_000, 30_000, 30_000, 30_000] + [6_000] * 18
answers = [arena.admit(person, tokens, now=float(person)) for person, tokens in enumerate(wanted)]
assert sum(answer.cost for answer in answers) == pool - 1
late = arena.admit("late", 6_000, now=30.0)
print(late)
arena.release(21, now=31.0)
print(arena.serve(now=31.0))
arena.check()

# %%
assert [Ladder(pool=pool, short_tokens=s).shorts for s in (sizes[0] - 1, sizes[0], sizes[-1], sizes[-1] + 1)] == [19, 18, 18, 17]
assert reserved == [18, 18]
assert in_blocks.promised == sum(planned.blocks(tokens) for tokens in in_blocks.places) == 590
assert 2 * flat[-1] <= pool < 3 * flat[0]
assert list(seats["as inferred"].values()) == [10, 8, 6, 5, 3, 1] and list(steady.values()) == [12, 9, 7, 5, 3, 2]

# %% [markdown]
# ## What if
#
# **Every open conversation pinned its blocks.** Then the ladder would have to be cut in blocks: the big slices take
# [176](num:four_planned), and what is left is [one](num:shorts_pinned) short slice.
#
# **The drafts and the cache were off.** The big slices would take [117](num:bare_four) blocks, and [twelve](num:bare_shorts) short
# slices could run beside them. Room is what those flags cost.

# %% tags=["fold"]
pinned = Ladder(pool=planned, short_tokens=sizes[-1], budget="blocks")
bare = Ladder(pool=sets["no drafts, no caching"], short_tokens=sizes[-1], budget="blocks")
numbers(
    shorts_pinned=num(pinned.shorts, "short slices beside the big four, in blocks", "= (usable - four_planned) // (ceil_div(short_most, block) + fixed)", "seats"),
    bare_four=num(Ladder(pool=sets["no drafts, no caching"], shorts=0, budget="blocks").promised, "the big four without drafts and caching", unit="blocks", source="vLLM's rule, run in aelius_math.vllm"),
    bare_shorts=num(bare.shorts, "short slices beside them", unit="seats", source="vLLM's rule, run in aelius_math.vllm"),
)  # fmt: skip
