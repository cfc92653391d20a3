# %% [markdown]
# # What did the second card buy?
#
# Roughly [3.1x](num:gain_decimal) the length of one request, the article says: [262,144](num:request_limit) tokens against
# [84K](num:ceiling). That holds if [84K](num:ceiling) is read in thousands. In binary K the same sentence gives
# [3.0x](num:gain_binary).
#
# Most of it is memory: with the second card, conversations have [2.97x](num:memory_gain) the bytes that July's card had for
# what grew. The rest, [1.13x](num:token_gain), is what a token costs under the other engine.

# %% tags=["fold"]
from aelius_math import figures, service
from aelius_math.ledger import given, givens, num, numbers
from aelius_math.llamacpp import Context
from aelius_math.llamacpp_worth import flag_worth, growth
from aelius_math.tables import Table
from aelius_math.vllm import plan_pool

# %% [markdown]
# ## Given

# %%
MiB, GiB, K = 2**20, 2**30, given("k_binary")
limit, pool, cards = given("request_limit"), given("pool"), given("cards")
givens("request_limit", "pool", "wall", "ceiling", "july_slots", "second_card_gain", "kv_available")

# %% [markdown]
# ## Derive: each reading of the factor
#
# [84K](num:ceiling) may be any of several numbers. In thousands it is what someone types after `-c`; the engine then pads it, one way
# for a context that all slots share and another for one that is split; and in binary K it is a whole number of pads already.

# %%
model = service.model()


def july(context, drafts=2, **changes):
    settings = dict(n_ctx=context, n_seq_max=given("july_slots"), type_k="q8_0", type_v="q8_0", draft_max=drafts, build="jul")
    return Context(**{**settings, **changes})


ceiling, evicts = given("ceiling"), given("eviction_from")
typed = 84 * given("k_decimal")
unified, _ = july(typed, kv_unified=True).split()
split, slot = july(typed).split()
binary, slot_binary = july(84 * K).split()
readings = {"in thousands": typed, "in thousands, padded for one pool": unified, "in thousands, padded for slots": split, "in binary K": binary}
Table((f"what {ceiling} is", "tokens", "factor"), [(name, tokens, f"{limit / tokens:.3f}") for name, tokens in readings.items()])

# %% tags=["fold"]
numbers(
    typed=num(typed, f"{ceiling} in thousands", "= 84 * k_decimal", "tokens", k=1000),
    unified=num(unified, "the same, padded for one pool", "= ceil_div(typed, 256) * 256", "tokens"),
    split=num(split, "the same, padded for split slots", "= july_slots * ceil_div(typed // july_slots, 256) * 256", "tokens"),
    binary=num(binary, f"{ceiling} in binary K", "= 84 * k_binary", "tokens", k=1024),
    gain_decimal=num(limit / typed, f"length of a request, over {ceiling} in thousands", "= request_limit / typed", "x"),
    gain_unified=num(limit / unified, f"over {ceiling} padded for one pool", "= request_limit / unified", "x"),
    gain_split=num(limit / split, f"over {ceiling} padded for split slots", "= request_limit / split", "x"),
    gain_binary=num(limit / binary, f"over {ceiling} in binary K", "= request_limit / binary", "x"),
    gain_pool=num(pool / typed, "pool to pool", "= pool / typed", "x"),
    gain_pool_binary=num(pool / binary, "pool to pool, binary K", "= pool / binary", "x"),
    slot_typed=num(slot, "one split slot of July's ceiling", "= split // july_slots", "tokens"),
    gain_slot=num(limit / slot, "length of a request, against one split slot", "= request_limit / slot_typed", "x"),
    next_step=num(86 * given("k_decimal"), f"{evicts} in thousands", "= 86 * k_decimal", "tokens", k=1000),
    next_padded=num(july(86 * given("k_decimal")).split()[0], f"{evicts} in thousands, padded", "= ceil_div(next_step, 256) * 256", "tokens"),
)

# %% [markdown]
# In thousands the factor is [3.12](num:gain_decimal), padded [3.11](num:gain_unified) or [3.10](num:gain_split): all round to
# the article's [3.1x](num:second_card_gain). In binary K it is [3.05](num:gain_binary), which rounds to
# [3.0x](num:gain_binary). The readings may not be mixed: [86,000](num:next_step), which evicts, is padded to
# [86,016](num:next_padded), and that is exactly the binary [84K](num:binary) that would fit.
#
# Pool to pool the gain is larger, [3.4x](num:gain_pool). And if July's [two](num:july_slots) slots split the context, one request
# had [42,240](num:slot_typed) tokens, and may now run to [6.2x](num:gain_slot) that. The article compares a request with a pool.
#
# ## Derive: where it came from
#
# Tokens are memory over what a token costs:
#
# $$\frac{\text{pool}}{\text{ceiling}} = \frac{\text{memory now}}{\text{memory then}} \cdot \frac{\text{cost then}}{\text{cost now}}$$
#
# In July a token cost [43.0 MiB](num:grow_all) for each binary K: cache, the draft's cache, an unpacked copy and masks. Now it
# costs its share of the blocks on both cards, state and draft layer included.

# %%
now = service.pool()
then_mib = growth(model, july(84 * K)).total_bytes * 84 / MiB
now_mib = cards * now.available_bytes / MiB
cost_then, cost_now = then_mib * MiB / binary, now_mib * MiB / pool
numbers(
    then_mib=num(then_mib, "what grew at July's ceiling, binary K", "= 84 * grow_all", "MiB"),
    now_mib=num(now_mib, "memory for conversations now, both cards", "= cards * kv_available / MiB", "MiB"),
    memory_gain=num(now_mib / float(then_mib), "memory, now over then", "= now_mib / then_mib", "x"),
    cost_then=num(float(cost_then), "one token in July", "= grow_all * MiB / k_binary", "bytes"),
    cost_now=num(cost_now, "one token now, both cards, state and all", "= now_mib * MiB / pool", "bytes"),
    token_gain=num(float(cost_then) / cost_now, "cost of a token, then over now", "= cost_then / cost_now", "x"),
    both_gains=num(now_mib / float(then_mib) * float(cost_then) / cost_now, "both together", "= memory_gain * token_gain", "x"),
)

# %% [markdown]
# [2.97](num:memory_gain) times [1.13](num:token_gain) is [3.37](num:both_gains), the pools in binary K. The formats alone would
# have brought [1.0625x](num:fp8_over_q8): fp8 against q8_0. The rest of the smaller cost is the unpacked copy and the masks,
# which the other engine does not keep, less the state in blocks, which July's card kept beside the context.
#
# And the second card brought more than it seems. It also carries the image model, whose worst moment takes
# [4.11 GiB](num:edit_peak) of it and strands as much on the first.

# %% tags=["fold"]
steps = {"July's wall": 64 * K, "July's ceiling": 84 * K, "one request now": limit, "everybody now": pool}
with figures.plot(height=280) as (fig, ax):
    for place, (name, tokens) in enumerate(steps.items()):
        ax.bar(place, tokens, width=0.6, color=figures.colour(2 if place < 2 else 1))
    ids = ["wall", "ceiling", "request_limit", "pool"]
    said = [given("wall"), ceiling, f"{limit:,}", f"{pool:,}"]
    for place, (key, text, tokens) in enumerate(zip(ids, said, steps.values(), strict=True)):
        figures.label(ax, place, tokens, "{" + key + "}", dy=4, ha="center", va="bottom", bold=True, **{key: text})
    ax.set_xticks(range(len(steps)), [name.replace(" ", "\n", 1) for name in steps])
    figures.token_axis(ax.yaxis, [0, 64 * K, 128 * K, 192 * K, 256 * K])
    ax.set_ylim(0, 325_000)
    figures.axes(ax, y="context [tokens]")
figures.show(
    fig,
    name="second-card",
    alt="Four bars: July's wall at {wall}, its ceiling at {ceiling}, one request now at {request_limit} tokens and everybody now at {pool}.",
    caption="From {wall} to {pool}: the step from one card to two is the large one.",
    wall=given("wall"),
    ceiling=ceiling,
    request_limit=limit,
    pool=pool,
)

# %% [markdown]
# ## Derive: what binds today
#
# In both engines a default nobody chose decides how much fits. What each is worth, in tokens of the pool for vLLM, and of the
# wall for llama.cpp on one idle card.


# %%
def changed(**settings):
    return service.pool(**settings).tokens - pool


defaults = [
    ("vLLM", "no draft tokens", changed(num_speculative_tokens=0)),
    ("vLLM", "prefix caching: off instead of on", changed(enable_prefix_caching=False)),
    ("vLLM", "state in bf16 instead of fp32", changed(mamba_ssm_cache_dtype="bf16")),
]
for worth in flag_worth(model, july(64 * K), free_before_mib=23_750, weights_mib=16_387, vision_mib=1_136):
    defaults.append(("llama.cpp", worth.flag, worth.gain_tokens))
Table(("engine", "change", "tokens"), defaults)

# %% tags=["fold"]
numbers(
    no_drafts=num(defaults[0][2], "pool without drafts", "= k0_pool - pool", "tokens"),
    no_caching=num(defaults[1][2], "pool without prefix caching", "= no_cache - pool", "tokens"),
    state_bf16=num(defaults[2][2], "pool with a bf16 state", unit="tokens", source=f"vLLM {given('engine_version')}, rule as written in aelius_math.vllm"),
)

# %% [markdown]
# In vLLM the drafts bind most: without them the pool would hold [40,278](num:no_drafts) tokens more. Keeping the state in 16-bit
# would bring [14,841](num:state_bf16), and is not what the model asks for. In llama.cpp it is the drafts again, through the state
# that each of them copies; then vision, then the margin.
#
# ## Check

# %%
assert [round(limit / tokens, 1) for tokens in readings.values()] == [3.1, 3.1, 3.1, 3.0]
assert abs(now_mib / float(then_mib) * float(cost_then) / cost_now - pool / binary) < 1e-9
assert binary == july(86 * given("k_decimal")).split()[0] == 84 * K
assert list(steps.values()) == sorted(steps.values())
assert now.tokens == pool and slot * given("july_slots") == split

# %% [markdown]
# ## What if
#
# **The image model moved out.** The pool would be [515,598](num:pool_before) tokens, and the second card would have bought
# [6.0x](num:alone_gain) July's ceiling instead of [3.4x](num:gain_pool_binary).

# %%
alone = plan_pool(model, service.engine(), given("kv_available") + int(given("edit_peak") * GiB)).tokens
numbers(alone_gain=num(alone / binary, "pool without the image model, over July's ceiling", "= pool_before / binary", "x"))
