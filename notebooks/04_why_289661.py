# %% [markdown]
# # Why exactly [289,661](num:pool)?
#
# Because it is no quotient of bytes. The engine cuts its memory into blocks and counts them: [200](num:blocks). It counts
# the blocks that one request of full length takes: [181](num:per_request). Then it logs the limit times their ratio,
# rounded down: [200](num:blocks) ÷ [181](num:per_request) × [262,144](num:request_limit) =
# [289,661](num:pool). No other pair of counts up to [361](num:pairs_tried) gives that number.
#
# Under the article's own statements, an fp8 cache and a prefix cache that is hit, one setting leads to that pair:
# [four](num:drafts) draft tokens a step. That is **inferred**. The article states neither the draft length nor the version
# of its engine.

# %% tags=["fold"]
import json
from math import ceil

from aelius_math import catalogue, figures
from aelius_math import service as article_service
from aelius_math.ledger import find_root, given, givens, num, numbers
from aelius_math.tables import Table
from aelius_math.units import parse_bytes
from aelius_math.vllm import Engine, plan_pool

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
# Which pairs of whole numbers print the article's? Try every count per request up to the first multiple of the one
# that works:

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
# One pair among all [361](num:pairs_tried). The next pairs are its multiples.
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
assert service() == article_service.engine()
Table(
    ("symbol", "what", "formula", "in numbers", "value", "unit"),
    [(s.symbol, s.name, s.formula, s.numbers, f"{s.value:,.6g}" if isinstance(s.value, float) else f"{s.value:,}", s.unit) for s in plan.steps],
)

# %% [markdown]
# Read it as [four](num:groups) sentences.
#
# **A block must hold a state.** The engine gives attention and recurrent layers pages of one size. A DeltaNet layer keeps
# [1,644,544](num:layer_state) bytes on each card, with a column of its convolution added for each of [four](num:drafts) draft tokens.
# A token of one attention layer takes [1,024](num:layer_fp8) bytes. So a block is the first multiple of [16](num:align)
# tokens whose page is large enough: [1,616](num:block) tokens, [1,654,784](num:page) bytes.
#
# **Layers are grouped.** The draft head adds one attention layer, so [17](num:attention) attention layers stand against
# [48](num:recurrent_blocks) recurrent ones. They go into [four](num:groups) groups, [one](num:attn_groups) of
# [17](num:attention) and [three](num:state_groups) of [16](num:group_size), each with a block table of its own; a block spans the fullest group and weighs [28,131,328](num:block_bytes) bytes on each card.
#
# **A full request is counted.** Its tokens fill [163](num:attention_req) blocks of the attention group. Each of the
# [three](num:state_groups) recurrent groups takes [six](num:state_req): the state, its copy at the last
# cached block, and one for each draft token. Together [181](num:per_request).
#
# **The memory is divided.** [200](num:blocks) blocks need [5.24 GiB](num:kv_need) on each card. The engine reads what it has
# left and rounds down to whole blocks, so anything up to one block more gives the same count.

# %% tags=["fold"]
by_symbol = {step.symbol: step.value for step in plan.steps}
recurrent_groups = [group for group in plan.groups if group.spec == "MambaSpec"]
states = plan.fixed_blocks_per_request // len(recurrent_groups)
rule = f"vLLM {given('engine_version')}, rule as written in aelius_math.vllm"
numbers(
    layer_state=num(by_symbol["S"], "state of one recurrent layer on one card", unit="bytes", source=rule),
    layer_fp8=num(by_symbol["t"], "a token of one attention layer on one card", "= card_token // full_attention_blocks", "bytes"),
    align=num(by_symbol["a"], "alignment of a block", unit="tokens", kind="external", source="vLLM, smallest block of its attention kernels"),
    block=num(plan.block_size, "tokens of one block", "= align * ceil_div(layer_state, align * layer_fp8)", "tokens"),
    page=num(plan.page_size_bytes, "one page of one layer on one card", "= block * layer_fp8", "bytes"),
    attention=num(by_symbol["G"], "attention layers, the draft head's included", "= full_attention_blocks + 1", "layers"),
    groups=num(len(plan.groups), "groups of layers", "= 1 + recurrent_blocks // full_attention_blocks", "groups"),
    attn_groups=num(len(plan.groups) - len(recurrent_groups), "attention groups", "= groups - state_groups", "groups"),
    group_size=num(recurrent_groups[0].num_layers, "layers of a recurrent group", "= recurrent_blocks // state_groups", "layers"),
    state_groups=num(len(recurrent_groups), "recurrent groups", "= groups - 1", "groups"),
    block_bytes=num(plan.block_size_bytes, "one block on one card", "= page * attention", "bytes"),
    attention_req=num(plan.blocks_per_request - plan.fixed_blocks_per_request, "attention blocks of a full request",
        "= ceil_div(request_limit, block)", "blocks"),
    state_req=num(states, "blocks of a request in each recurrent group", "= 2 + drafts", "blocks"),
    fixed=num(plan.fixed_blocks_per_request, "blocks of state of a live request", "= state_groups * state_req", "blocks"),
    request_again=num(plan.blocks_per_request, "blocks of a full request, added up", "= attention_req + fixed", "blocks"),
    kv_need=num(blocks * plan.block_size_bytes, "memory that so many blocks need on a card", "= blocks * block_bytes", "bytes", kind="inferred"),
)  # fmt: skip

# %% [markdown]
# ## Derive: which settings print it
#
# The pair was found from the number, the blocks per request from a setting. Which settings lead to that pair? Search
# formats of the cache and of the state, draft lengths and prefix caching, and keep what can print the article's number
# with some whole count of blocks.

# %%
formats = ("bf16", "fp8", "int8_per_token_head", "fp8_per_token_head", "int4_per_token_head", "nvfp4")
found, tried = [], 0
for cache in formats:
    for state in (None, "bf16"):
        for caching in (True, False):
            for drafts in range(17):
                setting = service(
                    kv_cache_dtype=cache, mamba_ssm_cache_dtype=state, enable_prefix_caching=caching, num_speculative_tokens=drafts
                )
                want = plan_pool(model, setting, 2**40).blocks_per_request
                have = ceil(pool * want / limit)
                tried += 1
                if have * limit // want == pool:
                    size = plan_pool(model, setting, 2**40).block_size_bytes
                    found.append((cache, state or "fp32", caching, drafts, have, want, f"{have * size / 2**30:.2f} GiB"))
Table(("cache", "state", "prefix caching", "draft tokens", "blocks", "per request", "memory a card"), found)

# %% tags=["fold"]
stated = [row for row in found if row[0] == "fp8" and row[2]]
loose = [row for row in found if row[0].startswith("fp8") and row[2]]
assert [row[3] for row in stated] == [given("drafts")]
numbers(
    tried=num(tried, "settings searched", "= 6 * 2 * 2 * 17", "settings"),
    printing=num(len(found), "settings that can print the number", unit="settings"),
    stated=num(len(stated), "of these with fp8 and prefix caching", unit="settings"),
    loosely=num(len(loose), "of these, with any fp8 format and prefix caching", unit="settings"),
    loose_drafts=num(loose[-1][3], "draft tokens of the other fp8 format", unit="tokens"),
)

# %% [markdown]
# Of [408](num:tried) settings [eight](num:printing) can print it. The article says that the cache is fp8, and that prefix
# caching is hit [84.8%](num:prefix_hit_rate) of the time, so it is on. That leaves [one](num:stated):
# [four](num:drafts) draft tokens, with the state in `float32` as the model asks.
#
# The inference stands on those statements and on one reading: that "fp8" is the engine's plain format. Read loosely, as
# any format that has fp8 in its name, it leaves [two](num:loosely); with a scale for each token and head
# (`fp8_per_token_head`) it would be [three](num:loose_drafts) draft tokens. The notes go on with the plain format.
#
# ## Which version, and what that changes
#
# The article does not say. The number itself says something: it is odd. Releases up to vLLM 0.20.0 logged whole blocks
# divided by the groups, and a block is always an even count of tokens, so none of them could have printed it. The same
# memory under the old rule:

# %%
old = plan_pool(model, service(version="0.20.0"), given("kv_available"))
prints = []
for version in ("0.20.0", "0.22.0", "0.24.0", "0.27.0", "0.28.0"):
    at = plan_pool(model, service(version=version), given("kv_available"))
    silent = plan_pool(model, service(version=version, enable_prefix_caching=None), given("kv_available"))
    prints.append((version, at.tokens, at.num_blocks, at.blocks_per_request, silent.tokens))
assert all(row[1] == pool for row in prints[1:]) and pool % 2 == 1 and plan.block_size % 2 == 0
numbers(
    old_log=num(old.tokens, "the same pool as releases up to 0.20.0 log it", "= blocks // groups * block", "tokens"),
    no_cache=num(prints[-2][-1], "the pool with prefix caching off", unit="tokens", source="vLLM 0.27.0, rule as written in aelius_math.vllm"),
)

# %%
Table(("version", "logged, caching on", "blocks", "per request", "logged, caching not mentioned"), prints)

# %% [markdown]
# The pool is the same in all of them; only the line in the log differs: [80,800](num:old_log) before, [289,661](num:pool)
# since. One default changed as well. Up to vLLM 0.27 prefix caching was off for models with recurrent layers unless it was
# asked for, and the pool then is [294,543](num:no_cache); from vLLM 0.28 it is on.
#
# ## Public logs that agree
#
# Other people have posted what their engine printed. One runs nearly this setting on cards like these: fp8,
# [four](num:log_drafts) draft tokens, the same limit, blocks of [1,616](num:log_block) tokens; it has more memory left, and a whole
# count of blocks prints its pool. One states every input and its memory. The last is a curiosity: other flags, and exactly
# the article's number.

# %%
logs = {log["id"]: log for log in json.loads((find_root() / "tests/golden/vllm_logs.json").read_text())}


def planned(log, available):
    engine = Engine(
        version=log["vllm_version"], tensor_parallel_size=log["tp"], max_model_len=log["max_model_len"],
        kv_cache_dtype=log["kv_cache_dtype"], num_speculative_tokens=log["num_speculative_tokens"], enable_prefix_caching=True,
    )  # fmt: skip
    return plan_pool(model, engine, available)


def agreeing(log):
    """The counts of blocks that print the logged pool, within the memory line where there is one."""
    page = planned(log, 2**40).block_size_bytes
    low, high = (0, 2**40) if log["available_kv_gib"] is None else (
        parse_bytes(f"{log['available_kv_gib'] + off:.3f}GiB") for off in (-0.005, 0.005)
    )  # fmt: skip
    want = planned(log, 2**40).blocks_per_request
    near = log["gpu_kv_cache_tokens"] * want // log["max_model_len"]
    return [n for n in (near, near + 1) if low <= (n + 1) * page and n * page <= high
        and planned(log, n * page).tokens == log["gpu_kv_cache_tokens"]]  # fmt: skip


rows = []
for key in ("club-1170", "talos-1995", "club-602"):
    log = logs[key]
    (count,) = agreeing(log)
    memory = f"{log['available_kv_gib']} GiB" if log["available_kv_gib"] else "not printed"
    rows.append((log["model"], log["kv_cache_dtype"], log["num_speculative_tokens"], log["max_model_len"], memory,
        log["gpu_kv_cache_tokens"], count, planned(log, 2**40).blocks_per_request))  # fmt: skip
Table(("model", "cache", "drafts", "limit", "memory a card", "logged pool", "blocks", "per request"), rows)

# %% tags=["fold"]
near, exact, same = (logs[key] for key in ("club-1170", "talos-1995", "club-602"))
numbers(
    log_drafts=num(near["num_speculative_tokens"], "its draft tokens", unit="tokens", kind="external", source=near["source"]),
    log_block=num(near["attention_block_size_logged"], "its block", unit="tokens", kind="external", source=near["source"]),
    log_near=num(near["gpu_kv_cache_tokens"], "pool of a public log of nearly this setting", unit="tokens", kind="external", source=near["source"]),
    log_exact=num(exact["gpu_kv_cache_tokens"], "pool of a public log with every input stated", unit="tokens", kind="external", source=exact["source"]),
    log_same=num(same["gpu_kv_cache_tokens"], "pool of a public log with other flags", "= pool", "tokens", kind="external", source=same["source"]),
)

# %% [markdown]
# The first prints [530,081](num:log_near), the second [302,921](num:log_exact); both come out to the token. In the third,
# the cache is `int8_per_token_head` and the draft length is inferred, so its [289,661](num:log_same) agrees and proves
# nothing. The same number from another setting is why this page counts settings before it names one.
#
# ## The pool is not a constant
#
# The article sets the pool beside the limit as if the two were independent. In the engine they are not: the pool is the
# limit times a ratio, and the fixed blocks of a request weigh more the shorter the limit is. The same memory, at
# several limits:

# %%
limits = [plan.block_size, *(2**power for power in range(12, 19))]
at_limit = {short: plan_pool(model, service(max_model_len=short), given("kv_available")) for short in limits}
Table(("limit", "blocks per request", "logged pool"), [(short, p.blocks_per_request, p.tokens) for short, p in at_limit.items()])

# %% tags=["fold"]
chosen = "one of the limits chosen here"
numbers(
    limit_32k=num(32768, f"a limit of {figures.tokens(32768)}", unit="tokens", kind="assumed", source=chosen, k=1024),
    limit_128k=num(131072, f"a limit of {figures.tokens(131072)}", unit="tokens", kind="assumed", source=chosen, k=1024),
    pool_1616=num(at_limit[plan.block_size].tokens, "pool at a limit of one block", "= floor(blocks * block / (1 + fixed))", "tokens"),
    pool_8k=num(at_limit[8192].tokens, f"pool at a limit of {figures.tokens(8192)}", "= floor(blocks * 8192 / (ceil_div(8192, block) + fixed))", "tokens"),
    pool_32k=num(at_limit[32768].tokens, f"pool at a limit of {figures.tokens(32768)}", "= floor(blocks * limit_32k / (ceil_div(limit_32k, block) + fixed))", "tokens"),
    pool_128k=num(at_limit[131072].tokens, f"pool at a limit of {figures.tokens(131072)}", "= floor(blocks * limit_128k / (ceil_div(limit_128k, block) + fixed))", "tokens"),
)

# %% tags=["fold"]
K = 1024
curve = [p.tokens for p in at_limit.values()]
with figures.plot(height=290) as (fig, ax):
    ax.plot(limits, curve, "o-", color=figures.colour(1))
    ax.set_xscale("log", base=2)
    ax.set_ylim(0, 320 * K)
    figures.token_axis(ax.xaxis, [2 * K, 8 * K, 32 * K, 128 * K])
    figures.token_axis(ax.yaxis, [0, 64 * K, 128 * K, 192 * K, 256 * K])
    figures.axes(ax, x="limit of one request [tokens]", y="the pool as the engine logs it [tokens], same memory")
    figures.label(ax, limit, pool, "{pool}", pool=pool, ha="right", va="bottom", dy=4, bold=True)
    figures.label(ax, 8 * K, at_limit[8 * K].tokens, "{pool_8k}", pool_8k=at_limit[8 * K].tokens, dx=8, va="top", dy=-2)
figures.show(
    fig,
    name="pool-by-limit",
    alt="The pool as logged against the limit of one request, for the same memory. It rises steeply from {pool_1616} tokens at a "
    "limit of one block, by {pool_8k}, to {pool} at the full limit.",
    caption="Lower the limit and the logged pool shrinks, though not one byte was taken away.",
    pool=pool,
    pool_8k=at_limit[8 * K].tokens,
    pool_1616=at_limit[plan.block_size].tokens,
)

# %% [markdown]
# At a limit of [32K](num:limit_32k) the same blocks are logged as [168,041](num:pool_32k) tokens, at [128K](num:limit_128k) as
# [262,144](num:pool_128k). Neither
# is wrong. A pool in tokens is a promise about requests of full length, and about no others.
#
# ## What a short conversation costs
#
# The planner's count is what the engine sizes its pool by; what a request holds while it runs is a little less, and comes below. By
# the planner's count every live request holds [18](num:fixed) blocks of state beside its text. So the smallest chat costs
# [19](num:blocks_1), and they are as large as those of anyone else.

# %%
lengths = {figures.tokens(n): n for n in (1, 4 * K, 16 * K, 32 * K, 64 * K, 128 * K, 256 * K)}
Table(
    ("request", "attention blocks", "state, planned", "in all, planned", "in all, running"),
    [(name, plan.blocks(n) - plan.fixed_blocks_per_request, plan.fixed_blocks_per_request, plan.blocks(n), plan.blocks(n, running=True))
        for name, n in lengths.items()],
)  # fmt: skip

# %% tags=["fold"]
state_tokens = (model.conv_elements * 2 + model.state_elements * 4) // model.kv_bytes_per_token("fp8")
usable = plan.usable_blocks
numbers(
    usable=num(usable, "blocks that requests can hold", "= blocks - 1", "blocks"),
    blocks_1=num(plan.blocks(1), "blocks of the smallest chat, planned", "= 1 + fixed", "blocks"),
    running_1=num(plan.blocks(1, running=True), "blocks of the smallest chat, running", "= 1 + state_groups * (1 + drafts)", "blocks",
        kind="inferred", source="read in the engine's source, not run"),
    running_fixed=num(plan.blocks(1, running=True) - 1, "blocks of state, running", "= state_groups * (1 + drafts)", "blocks",
        kind="inferred", source="read in the engine's source, not run"),
    fixed_tokens=num(plan.fixed_blocks_per_request * plan.block_size, "room of the state's blocks", "= fixed * block", "tokens"),
    fixed_ratio=num(plan.fixed_blocks_per_request * plan.block_size / state_tokens, "the engine's blocks against the state itself", "= fixed_tokens / state_tokens", "x"),
    left_over=num(usable - plan.blocks(limit), "usable blocks beside a full request", "= usable - per_request", "blocks"),
    left_share=num((usable - plan.blocks(limit)) / plan.blocks(1), "what a full request leaves, against the smallest chat", "= left_over / blocks_1", "x"),
    chats=num(usable // plan.blocks(1), "smallest chats at once, planned", "= usable // blocks_1", "conversations"),
    seats_32k_b=num(usable // plan.blocks(32 * K), f"requests of {figures.tokens(32 * K)} at once, planned", "= usable // (ceil_div(32 * k_binary, block) + fixed)", "requests"),
)  # fmt: skip

# %% tags=["fold"]
with figures.plot(height=300) as (fig, ax):
    places = range(len(lengths))
    text = [plan.blocks(n) - plan.fixed_blocks_per_request for n in lengths.values()]
    ax.bar(places, [plan.fixed_blocks_per_request] * len(lengths), width=0.66, color=figures.colour(2))
    ax.bar(places, text, bottom=plan.fixed_blocks_per_request, width=0.66, color=figures.colour(1))
    ax.axhline(usable, color=figures.INK)
    figures.label(ax, 0, usable, "{usable} blocks usable", usable=usable, dx=-18, dy=4, va="bottom")
    figures.label(ax, 0, plan.blocks(1), "{blocks_1}", blocks_1=plan.blocks(1), dy=3, ha="center", va="bottom")
    figures.label(ax, 6, plan.blocks(limit), "{per_request}", per_request=plan.blocks(limit), dy=3, ha="center", va="bottom")
    figures.label(ax, 1, 60, "text", colour=figures.colour(1), dx=60)
    figures.label(ax, 0, 40, "state: {fixed} each", fixed=plan.fixed_blocks_per_request, colour=figures.colour(2), dx=-18, dy=5)
    ax.set_xticks(list(places), list(lengths))
    ax.set_ylim(0, 225)
    figures.axes(ax, x="length of the request [tokens]", y="blocks that one live request takes")
figures.show(
    fig,
    name="blocks-by-length",
    alt="Seven stacked bars, the blocks of one request by its length. Each has {fixed} blocks of state at the foot; the text "
    "above grows from one block to most of {per_request} for a full request. A line at {usable} marks the usable blocks.",
    caption="Every live conversation pays {fixed} blocks before its first word; a short one pays little else.",
    fixed=plan.fixed_blocks_per_request,
    per_request=plan.blocks(limit),
    usable=usable,
)

# %% [markdown]
# [18](num:fixed) blocks are room for [29,088](num:fixed_tokens) tokens, [6.2](num:fixed_ratio) times the state itself: the rest
# is copies, drafts and padding. Of [200](num:blocks) blocks [199](num:usable) can be held, since the engine keeps one as a
# null block. A full request leaves [18](num:left_over) of them, [fewer than](num:left_share) the [19](num:blocks_1) that the smallest chat
# wants. The article's remark that one user who asks for everything is the whole service is true to the letter.
#
# While it runs, a request holds somewhat less: the second block of a group's state is there only as long as a state is being
# copied. Read in the engine's source, not run: [16](num:running_1) blocks for the smallest chat between steps,
# [15](num:running_fixed) of them state. The logged pool rests on the planner's count.
#
# ## What simple arithmetic gets wrong
#
# Divide the bytes by what a token costs, and the answer depends on what was forgotten.

# %%
def off(tokens):
    return 100 * (tokens - pool) / pool


kv_available = given("kv_available")
growing, every, mtp = given("full_attention_blocks"), given("layers_all"), given("full_attention_blocks") + 1
naive = kv_available // (growing * 1024)
naive_mtp = kv_available // (mtp * 1024)
naive_all = kv_available // (every * 1024)
numbers(
    naive=num(naive, "only the growing layers, state forgotten", "= kv_available // (full_attention_blocks * layer_fp8)", "tokens"),
    naive_off=num(off(naive), "how far off that is", "= 100 * (naive - pool) / pool", "%"),
    naive_mtp=num(naive_mtp, "the draft head's layer counted too", "= kv_available // (attention * layer_fp8)", "tokens"),
    naive_mtp_off=num(off(naive_mtp), "how far off that is, with the draft head", "= 100 * (naive_mtp - pool) / pool", "%"),
    naive_all=num(naive_all, "every layer counted as growing", "= kv_available // (layers_all * layer_fp8)", "tokens"),
    naive_all_off=num(off(naive_all), "how far off that is, every layer", "= 100 * (naive_all - pool) / pool", "%"),
)

# %% [markdown]
# | what was assumed | tokens | off by |
# |---|---|---|
# | only the layers that grow, the state forgotten | [343,400](num:naive) | [+18.6%](num:naive_off) |
# | the same, with the draft head's layer | [323,200](num:naive_mtp) | [+11.6%](num:naive_mtp_off) |
# | all layers grow | [85,850](num:naive_all) | [−70.4%](num:naive_all_off) |
#
# ## Check
#
# The layer's bytes by hand, without the package; and the pool with one block more or less, which would have printed another
# number.

# %%
conv = (4 - 1 + given("drafts")) * (2 * 16 * 128 + 48 * 128) // cards * 2
state = 48 // cards * 128 * 128 * 4
assert conv + state == by_symbol["S"] == 1_644_544
assert [n for n in range(16, 4096, 16) if n * 1024 >= conv + state][0] == plan.block_size
assert (163 + 3 * (2 + 4), 28_131_328) == (plan.blocks_per_request, 1616 * 1024 * 17)
for count in (199, 200, 201):
    print(count, "blocks:", f"{count * limit // 181:,}")
assert sum(group.num_layers for group in plan.groups) == given("layers_all") + 1
assert curve == sorted(curve) and curve[-1] == pool
assert [plan.blocks(n) for n in lengths.values()] == [18 + ceil(n / 1616) for n in lengths.values()]

# %% [markdown]
# ## What if
#
# **Drafts were off.** The same bytes would be [219](num:k0_blocks) blocks and hold [329,939](num:k0_pool) tokens; a live
# request would keep [six](num:k0_fixed) blocks of state instead of [18](num:fixed). Draft tokens buy speed with room.
#
# **Prefix caching were off.** A group's state would need no copy, and the pool would be [294,543](num:no_cache).
#
# **Both were off.** [335,728](num:bare_pool) tokens, with [three](num:bare_fixed) blocks of state.

# %% tags=["fold"]
k0 = plan_pool(model, service(num_speculative_tokens=0), given("kv_available"))
bare = plan_pool(model, service(num_speculative_tokens=0, enable_prefix_caching=False), given("kv_available"))
numbers(
    k0_blocks=num(k0.num_blocks, "blocks without drafts", unit="blocks", source=rule),
    k0_pool=num(k0.tokens, "the pool without drafts", unit="tokens", source=rule),
    k0_fixed=num(k0.fixed_blocks_per_request, "blocks of state without drafts", "= state_groups * 2", "blocks"),
    bare_pool=num(bare.tokens, "the pool without drafts and caching", unit="tokens", source=rule),
    bare_fixed=num(bare.fixed_blocks_per_request, "blocks of state without drafts and caching", "= state_groups", "blocks"),
)
