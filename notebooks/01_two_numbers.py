# %% [markdown]
# # Which two numbers get confused?
#
# A single request may be [262,144](num:request_limit) tokens long. The cache holds [289,661](num:pool) tokens for
# everybody who is being served, so it is [1.105](num:pool_ratio) requests of full length: one of them leaves room for
# little else.

# %% tags=["fold"]
from aelius_math.ledger import given, num, numbers

# %% [markdown]
# ## Given
#
# Both numbers are the article's. The first is what the model was trained for and the engine accepts; the second is what
# the engine reports when it starts.

# %%
request_limit = given("request_limit")
pool = given("pool")

# %% [markdown]
# ## Derive
#
# $$\text{pool over request} = \frac{\text{pool}}{\text{request limit}}$$

# %%
numbers(
    pool_ratio=num(pool / request_limit, "requests of full length that the pool holds", "= pool / request_limit", "requests"),
)

# %% [markdown]
# ## Check
#
# The engine prints the same quotient in its start-up log, as a maximum concurrency.

# %%
assert request_limit < pool < 2 * request_limit

# %% [markdown]
# ## What if
#
# Rented by the token, the service shows only the first of the two: nobody else's conversation is seen to wait.
