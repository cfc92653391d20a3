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
from aelius_math import figures
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
# Most people ask for far less, and the same pool then serves more of them. Whole requests of equal length, by plain
# division:

# %% tags=["fold"]
K = given("k_binary")
lengths = [256 * K, 128 * K, 64 * K, 32 * K, 16 * K, 8 * K]
seats = {length: pool // length for length in lengths}
numbers(
    seats_128k=num(seats[128 * K], f"requests of {figures.tokens(128 * K)} that the pool holds", "= pool // (128 * k_binary)", "requests"),
    seats_64k=num(seats[64 * K], f"requests of {figures.tokens(64 * K)} that the pool holds", "= pool // (64 * k_binary)", "requests"),
    seats_32k=num(seats[32 * K], f"requests of {figures.tokens(32 * K)} that the pool holds", "= pool // (32 * k_binary)", "requests"),
    seats_8k=num(seats[8 * K], f"requests of {figures.tokens(8 * K)} that the pool holds", "= pool // (8 * k_binary)", "requests"),
)

# %% tags=["fold"]
rows = list(reversed(lengths))
left_over = {length: pool - seats[length] * length for length in lengths}
with figures.plot(height=290) as (fig, ax):
    for row, length in enumerate(rows):
        for seat in range(seats[length]):
            ax.barh(row, length, left=seat * length, height=0.66, color=figures.colour(1), edgecolor=figures.PAPER)
        ax.barh(row, left_over[length], left=pool - left_over[length], height=0.66, color=figures.colour(6), alpha=0.3)
    ax.axvline(pool, color=figures.INK)
    ax.set_yticks(range(len(rows)), [f"{seats[length]} of {figures.tokens(length)}" for length in rows])
    figures.token_axis(ax.xaxis, [0, 64 * K, 128 * K, 192 * K, 256 * K])
    figures.axes(ax, x="tokens of the pool", grid="")
    ax.set_ylim(-0.55, len(rows) + 0.05)
    figures.label(ax, pool, len(rows) - 0.6, "{pool} live for everybody", pool=pool, dx=-6, ha="right", va="bottom")
figures.show(
    fig,
    name="two-numbers",
    alt="Six bars, each the pool of {pool} tokens, filled with whole requests of one length: one of full length, {seats_128k} of "
    "half of that, {seats_64k}, {seats_32k} and so on up to {seats_8k}. A grey rest is left in each.",
    caption="One request of full length fills the pool. Cut it into shorter ones and {seats_64k}, {seats_32k} or {seats_8k} people fit, counted in tokens.",
    pool=pool,
    seats_128k=seats[128 * K],
    seats_64k=seats[64 * K],
    seats_32k=seats[32 * K],
    seats_8k=seats[8 * K],
)

# %% [markdown]
# The lengths are in binary K, [1,024](num:k_binary) tokens. Plain division is too kind: the engine gives memory out in
# blocks, and every live conversation pays a fixed sum besides.
# [Counted in blocks](04_why_289661.ipynb#what-a-short-conversation-costs), fewer fit.

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
# [2,622](num:same_print) different pools print the same concurrency. And the bars of the plot, filled by another route:

# %%
for length in lengths:
    room, count = pool, 0
    while room >= length:
        room, count = room - length, count + 1
    assert (count, room) == (seats[length], left_over[length])

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
