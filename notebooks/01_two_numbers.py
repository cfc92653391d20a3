# %% [markdown]
# # Which two numbers get confused?
#
# A service on [two](num:cards) RTX 3090s publishes two counts of tokens. **[262,144](num:request_limit)** is the longest
# single request that its engine accepts. **[289,661](num:pool)** is all that it holds live, for everybody together. The
# second is [1.105](num:pool_ratio) times the first: room for one request of full length, and little beside it.
#
# They look alike, and they answer different questions. The first says how long one conversation may grow. The second
# says how much all conversations may hold at the same moment.

# %% tags=["fold"]
from aelius_math import figures, service
from aelius_math.ledger import given, givens, num, numbers

# %% [markdown]
# ## Given
#
# Both are the article's, read off the running system. Nothing on this page can produce them; it only puts them side by
# side. Where the second comes from is [a note of its own](04_why_289661.ipynb).

# %%
request_limit = given("request_limit")
pool = given("pool")
givens("request_limit", "pool")

# %% [markdown]
# | question | one request | everybody |
# |---|---|---|
# | how many tokens | [262,144](num:request_limit) | [289,661](num:pool) |
# | who sets it | the model (`max_position_embeddings`), or a lower `--max-model-len` | the memory that weights and neighbours leave |
# | when it is known | before anything is bought | when the engine has started, in its log |
# | what happens beyond it | the request is refused | requests wait, or are put back and computed again |
# | what more memory does | nothing | it grows |

# %% [markdown]
# ## Derive
#
# The quotient of the two is the number of full-length requests that fit at once. The difference is what one such request
# leaves for everybody else.

# %% tags=["fold"]
gap = pool - request_limit
numbers(
    pool_ratio=num(pool / request_limit, "full requests in the pool", "= pool / request_limit", "x"),
    pool_gap=num(gap, "what one full request leaves", "= pool - request_limit", "tokens"),
    pool_share=num(100 * request_limit / pool, "share of the pool that one full request takes", "= 100 * request_limit / pool", "%"),
)

# %% [markdown]
# One user who asks for everything takes [90.5%](num:pool_share) of the service. The other [27,517](num:pool_gap) tokens
# are what the rest of the house shares until the answer is finished.
#
# Most people ask for far less, and the same pool then serves more of them. It does not divide evenly, though. The engine
# hands memory out in blocks, [200](num:blocks) of [1,616](num:block) tokens, and keeps one. By its planner's count every
# live conversation holds [18](num:fixed) of them for its state, however little it says; where that comes from is in
# [the note on the pool](04_why_289661.ipynb#what-a-short-conversation-costs). So of equal conversations fit:

# %% tags=["fold"]
K = given("k_binary")
lengths = [256 * K, 128 * K, 64 * K, 32 * K, 16 * K, 8 * K]
planned = service.pool()
fit = {length: planned.usable_blocks // planned.blocks(length) for length in lengths}
by_tokens = {length: pool // length for length in lengths}
chosen = "one of the lengths chosen here"
numbers(
    length_32k=num(32 * K, "a conversation's length", unit="tokens", kind="assumed", source=chosen, k=1024),
    length_8k=num(8 * K, "a shorter conversation's length", unit="tokens", kind="assumed", source=chosen, k=1024),
    seats_8k_b=num(fit[8 * K], f"requests of {figures.tokens(8 * K)} at once, planned", "= usable // (ceil_div(8 * k_binary, block) + fixed)", "requests"),
    seats_32k=num(by_tokens[32 * K], f"the pool's tokens over {figures.tokens(32 * K)}, which is more than fit", "= pool // (32 * k_binary)", "requests"),
    seats_8k=num(by_tokens[8 * K], f"the pool's tokens over {figures.tokens(8 * K)}, which is more than fit", "= pool // (8 * k_binary)", "requests"),
)

# %% tags=["fold"]
rows = list(reversed(lengths))
usable, fixed = planned.usable_blocks, planned.fixed_blocks_per_request
with figures.plot(height=290) as (fig, ax):
    for row, length in enumerate(rows):
        each = planned.blocks(length)
        for seat in range(fit[length]):
            ax.barh(row, fixed, left=seat * each, height=0.66, color=figures.colour(2))
            ax.barh(row, each - fixed, left=seat * each + fixed, height=0.66, color=figures.colour(1))
            ax.barh(row, each, left=seat * each, height=0.66, color="none", edgecolor=figures.PAPER)
        ax.barh(row, usable - fit[length] * each, left=fit[length] * each, height=0.66, color=figures.colour(6), alpha=0.3)
    ax.axvline(usable, color=figures.INK)
    ax.set_yticks(range(len(rows)), [f"{fit[length]} of {figures.tokens(length)}" for length in rows])
    ax.set_xticks([0, 50, 100, 150])
    figures.axes(ax, x="blocks of the pool", grid="")
    ax.set_ylim(-0.55, len(rows) + 0.05)
    figures.label(ax, 0, len(rows) - 0.6, "state", colour=figures.colour(2), va="bottom")
    figures.label(ax, fixed, len(rows) - 0.6, "text", colour=figures.colour(1), dx=14, va="bottom")
    figures.label(ax, usable, len(rows) - 0.6, "{usable} blocks for everybody", usable=usable, dx=-6, ha="right", va="bottom")
figures.show(
    fig,
    name="two-numbers",
    alt="Six bars, each the {usable} blocks that conversations can hold, filled with as many of one length as fit: one of full length, one "
    "of half of that, then {seats_64k_b}, {seats_32k_b}, {seats_16k} and {seats_8k_b}. Each has {fixed} blocks of state before its text. A grey rest is left in most.",
    caption="What fits at once, in the engine's blocks: a single request of full length, or {seats_64k_b}, {seats_32k_b} or {seats_8k_b} shorter ones. "
    "Each pays {fixed} blocks for its state.",
    usable=usable,
    fixed=fixed,
    seats_64k_b=fit[64 * K],
    seats_32k_b=fit[32 * K],
    seats_16k=fit[16 * K],
    seats_8k_b=fit[8 * K],
)

# %% [markdown]
# Dividing the pool's tokens is too kind. It would give [8](num:seats_32k) conversations of [32K](num:length_32k) where
# [5](num:seats_32k_b) fit, and [35](num:seats_8k) of [8K](num:length_8k) where [8](num:seats_8k_b) fit. The lengths are in binary K,
# [1,024](num:k_binary) tokens. A running request holds a few blocks less than is planned: that lets
# [two](num:run_128k) of [128K](num:flat_slice) run beside each other.

# %% [markdown]
# ## Check
#
# The limit is a power of two. The engine prints the quotient in its start-up log as "Maximum concurrency", rounded to
# hundredths; that line alone would leave the pool open by thousands of tokens, so it cannot stand in for the pool itself.

# %%
assert request_limit == 2**18 == 256 * K
printed = f"{pool / request_limit:.2f}x"
agreeing = [tokens for tokens in range(request_limit, 2 * request_limit) if f"{tokens / request_limit:.2f}x" == printed]
assert pool in agreeing
print("printed by the engine:", printed)
numbers(
    same_print=num(len(agreeing), "pools that print the same concurrency", unit="tokens"),
)

# %% [markdown]
# [2,622](num:same_print) different pools print the same concurrency. And the bars of the plot, filled by another route: by
# hand, block by block, until the next conversation does not fit.

# %%
for length in lengths:
    room, count = 200 - 1, 0
    each = -(-length // 1616) + 3 * (2 + given("drafts"))
    while room >= each:
        room, count = room - each, count + 1
    assert count == fit[length] <= by_tokens[length]

# %% [markdown]
# ## What if
#
# **You rent.** A provider shows you the first number only: the context window. How much its cards hold live, and how many
# people you share that with, is its business. When the pool is full you see a slow answer, not a number. On your own
# cards you see both, and the second is the one that runs out.
#
# **You lower the limit.** It is tempting to read the pool as fixed: allow shorter requests, and serve more people from
# the same tokens. But the pool that the engine logs depends on the limit itself. Under a lower one the same memory is logged
# as [fewer tokens](04_why_289661.ipynb#the-pool-is-not-a-constant).
#
# **You add memory.** The first number stays where it is, the second grows. What a GiB is worth in tokens depends on the
# model: [why a window this size fits at all](02_why_it_fits.ipynb) is the next note.
