# %% [markdown]
# # Why exactly 289,661?
#
# Because it is no quotient of bytes. The engine cuts its memory into blocks and counts them: [200](num:blocks). It counts
# the blocks that one request of full length takes: [181](num:per_request). Then it logs the limit times their ratio,
# rounded down: [200](num:blocks) ÷ [181](num:per_request) × [262,144](num:request_limit) =
# [289,661](num:pool). No other pair of counts in reach gives that number.
#
# Under the article's own statements, an fp8 cache and a prefix cache that is hit, one setting leads to that pair:
# [four](num:drafts) draft tokens a step. That is **inferred**. The article states neither the draft length nor the version
# of its engine.

# %% tags=["fold"]
import json
from math import ceil

from aelius_math import catalogue, figures
from aelius_math.ledger import find_root, given, givens, num, numbers
from aelius_math.vllm import DoesNotFit, Engine, explain, plan_pool

# %% [markdown]
# ## Given

# %%
pool, limit, cards = given("pool"), given("request_limit"), given("cards")
givens("pool", "request_limit", "cards", "prefix_hit_rate", "engine_version")

# %% [markdown]
# The version is an assumption. The rule that is used here came with vLLM 0.20.1; what other versions print is shown below.
#
# ## Derive: the pair
#
# The engine logs the pool as the limit times blocks over blocks per request, rounded down to a token:
#
# $$\text{pool} = \left\lfloor \frac{\text{blocks}}{\text{blocks per request}} \cdot \text{limit} \right\rfloor$$
#
# Which pairs of whole numbers print the article's? Try every count per request up to twice the one that works:

# %%
pairs = []
for per_request in range(1, 362):
    blocks = ceil(pool * per_request / limit)
    if blocks * limit // per_request == pool:
        pairs.append((blocks, per_request))
print(pairs)
blocks, per_request = pairs[0]
numbers(
    blocks=num(blocks, "blocks of the pool", unit="blocks", kind="inferred", source="the only pair that prints the logged pool"),
    per_request=num(per_request, "blocks of one full request", unit="blocks", kind="inferred", source="the only pair that prints the logged pool"),
    pool_again=num(blocks * limit // per_request, "the pool, printed again", "= floor(blocks * request_limit / per_request)", "tokens"),
    pairs_tried=num(361, "counts per request that were tried", "= 2 * per_request - 1", "counts"),
)

# %% [markdown]
# One pair among all [361](num:pairs_tried). It is the first fraction of its kind because [181](num:per_request) is prime:
# the next pair is the double of both.
#
# ## Derive: the engine's own arithmetic
#
# Now from the other end: the model, the cards, and the engine's rules, step by step.

# %%
model = catalogue.load("qwen3.8-27b")


def service(**changes):
    settings = dict(
        version=given("engine_version"),
        tensor_parallel_size=cards,
        kv_cache_dtype="fp8",
        max_model_len=limit,
        num_speculative_tokens=given("drafts"),
        enable_prefix_caching=True,
    )
    return Engine(**{**settings, **changes})


plan = plan_pool(model, service(), given("kv_available"))
for step in plan.steps:
    print(step)
