# %% [markdown]
# # Which calculators are wrong, and by how much?
#
# Those that use one formula for every model. On plain transformers most are right. On the mixtures that people run today the
# common shortcuts miss by factors, up to [9.1x](num:worst_all) on windows and hybrids and [25x](num:worst_mla) on compressed
# caches, nearly always upward: they refuse models that
# would have fitted. And the best of them, exact in bytes, still miss the engine's pool, because an engine gives memory out in
# blocks.
#
# What follows is by shortcut, not by tool. Each is run over the [38](num:models) models of this project's catalogue.

# %% tags=["fold"]
from aelius_math import catalogue, figures, service
from aelius_math.cache import MLA
from aelius_math.dtypes import row_bytes
from aelius_math.ledger import given, num, numbers
from aelius_math.tables import Table

# %% [markdown]
# ## Given
#
# One request of [32K](num:span) tokens with a 16-bit cache on one card, and each model's own configuration. The reference is
# what the layers really keep: growing layers, windows up to their size, index keys, and the fixed state.

# %%
K = given("k_binary")
span = 32 * K
names = catalogue.names()


def truth(model):
    """Bytes that one conversation of `span` tokens keeps, no blocks."""
    window = sum(x.num_layers * x.token_bytes("bf16") * min(x.window, span) for x in model.layers if x.window)
    state = sum(x.num_layers * (x.conv_elements() * 2 + x.state_elements() * 4) for x in model.layers if x.recurrent)
    return (model.kv_bytes_per_token() + model.index_bytes_per_token()) * span + window + state


real = {name: truth(catalogue.load(name)) for name in names}
numbers(
    span=num(span, "length of the request", unit="tokens", kind="assumed", source="a length that people ask for", k=1024),
    models=num(len(names), "models of the catalogue", unit="models"),
)

# %% [markdown]
# ## Derive: the shortcuts
#
# Each is a few lines. A model that lacks the fields for one is left out of it, as a tool would have to leave it out.


# %%
def fields(name):
    config = catalogue.config(name)
    text = config.get("text_config", config)
    layers, heads = text.get("num_hidden_layers"), text.get("num_attention_heads")
    kv_heads, hidden = text.get("num_key_value_heads", heads), text.get("hidden_size")
    if None in (layers, heads, kv_heads, hidden):
        return None
    return layers, heads, kv_heads, hidden, text.get("head_dim") or hidden // heads


def all_layers(name):  # every layer grows
    layers, _, kv_heads, _, head = fields(name)
    return layers * 2 * kv_heads * head * 2 * span


def hidden_over_heads(name):  # the head's size from hidden / heads, growing layers only
    layers, heads, kv_heads, hidden, _ = fields(name)
    return layers * 2 * kv_heads * (hidden // heads) * 2 * span


def query_heads(name):  # as many heads of K and V as of queries
    layers, heads, _, _, head = fields(name)
    return layers * 2 * heads * head * 2 * span


def windows_as_full(name):
    model = catalogue.load(name)
    return real[name] + sum(x.num_layers * x.token_bytes("bf16") * max(0, span - x.window) for x in model.layers if x.window)


def state_forgotten(name):
    model = catalogue.load(name)
    return real[name] - sum(x.num_layers * (x.conv_elements() * 2 + x.state_elements() * 4) for x in model.layers if x.recurrent)


def latents_as_heads(name):  # K and V of every head where one compressed vector is kept
    _, heads, kv_heads, hidden, _ = fields(name)
    mla = [x for x in catalogue.load(name).layers if isinstance(x, MLA)]
    kept = sum(x.num_layers * x.token_bytes("bf16") for x in mla)
    return real[name] + (sum(x.num_layers for x in mla) * 2 * kv_heads * (hidden // heads) * 2 - kept) * span


def plain(name):  # one kind of layer, each of them full attention
    return fields(name) and [(type(x).__name__, x.num_layers) for x in kinds[name]] == [("FullAttention", fields(name)[0])]


kinds = {name: catalogue.load(name).layers for name in names}
latent = {name for name in names if any(isinstance(x, MLA) for x in kinds[name])}
concerned = {
    all_layers: [n for n in names if fields(n) and n not in latent and any(x.recurrent or x.window for x in kinds[n])],
    hidden_over_heads: [n for n in names if fields(n) and plain(n)],
    query_heads: [n for n in names if fields(n) and plain(n)],
    windows_as_full: [n for n in names if any(x.window for x in kinds[n])],
    latents_as_heads: [n for n in names if n in latent and fields(n)],
    state_forgotten: [n for n in names if any(x.recurrent and x.state_elements() for x in kinds[n])],
}
said = {
    all_layers: "every layer counted as growing",
    hidden_over_heads: "head size taken as hidden / heads",
    query_heads: "query heads for heads of K and V",
    windows_as_full: "windows counted as full",
    latents_as_heads: "K and V of every head where one vector is kept",
    state_forgotten: "fixed state forgotten",
}
factors = {short: {n: short(n) / real[n] for n in models if real[n]} for short, models in concerned.items()}
Table(
    ("shortcut", "models concerned", "least", "median", "most", "worst for"),
    [
        (said[s], len(f), f"{min(f.values()):.2f}", f"{sorted(f.values())[len(f) // 2]:.2f}", f"{max(f.values()):.2f}",
            max(f, key=lambda n: max(f[n], 1 / max(f[n], 1e-9))))
        for s, f in factors.items()
    ],
)  # fmt: skip

# %% tags=["fold"]
with figures.plot(height=300) as (fig, ax):
    for row, (short, found) in enumerate(reversed(list(factors.items()))):
        ax.plot(list(found.values()), [row] * len(found), "o", color=figures.colour(1), alpha=0.45, markersize=7, markeredgewidth=0)
        figures.label(ax, 0.16, row, said[short], dy=12)
    ax.axvline(1, color=figures.INK, linewidth=1)
    ax.set_xscale("log")
    ax.set_xlim(0.15, 90)
    ax.set_ylim(-0.5, len(factors))
    ax.set_yticks([])
    ticks = [0.25, 0.5, 1, 2, 4, 8, 16, 32, 64]
    ax.set_xticks(ticks, [f"{t:g}x" for t in ticks])
    ax.minorticks_off()
    figures.axes(ax, x="what the shortcut says, over what is kept", grid="x")
figures.show(
    fig,
    name="shortcuts",
    alt="Six rows of dots, one row a shortcut, one dot a model, on a scale of factors. Counting every layer reaches beyond ten; counting K "
    "and V of every head for compressed vectors reaches {worst_mla}. Only forgetting the state falls below one.",
    caption="A shortcut that is right for one family is wrong by an order of magnitude for the next.",
    worst_mla=f"{max(factors[latents_as_heads].values()):.0f}x",
)

# %% tags=["fold"]
of = {short: max(found.values()) for short, found in factors.items()}
numbers(
    worst_all=num(of[all_layers], "every layer counted, at worst", unit="x"),
    worst_hidden=num(of[hidden_over_heads], "hidden over heads, at worst upward", unit="x"),
    least_hidden=num(min(factors[hidden_over_heads].values()), "hidden over heads, at worst downward", unit="x"),
    worst_query=num(of[query_heads], "query heads, at worst", unit="x"),
    worst_window=num(min(v for n, v in factors[windows_as_full].items() if n.startswith("gpt-oss")), "windows as full, gpt-oss", unit="x"),
    worst_mla=num(of[latents_as_heads], "K and V of every head for MLA, at worst", unit="x"),
    least_state=num(min(factors[state_forgotten].values()), "state forgotten, at worst", unit="x"),
    qwen_all=num(factors[all_layers]["qwen3.8-27b"], "every layer counted, Qwen3.8-27B", unit="x"),
)

# %% [markdown]
# Counting every layer is [3.7x](num:qwen_all) off on this site's model and [9.1x](num:worst_all) at worst. Taking the heads of
# the queries for those of K and V costs up to [8.0x](num:worst_query) on plain transformers; a head's size from hidden over
# heads goes both ways, [0.50x](num:least_hidden) to [1.25x](num:worst_hidden). Heads in place of one compressed vector reach
# [25x](num:worst_mla). Forgetting the state is the only one that promises too much, and on a model that is all state it
# promises everything.
#
# ## Derive: what is left for a perfect byte count
#
# Suppose the bytes are right. The article's own service shows what the engine then does with them.

# %%
GiB = 2**30
model, pool = service.model(), given("pool")
memory = given("kv_available")
state = model.conv_elements * 2 + model.state_elements * 4
per_token = model.kv_bytes_per_token("fp8") // given("cards")
blocks_off = {
    "blocks, state and drafts ignored": memory // per_token,
    "fixed state of one conversation taken off": (memory - state // given("cards")) // per_token,
    "every layer counted as growing": memory // (4 * per_token),
}
Table(
    ("what was assumed", "tokens", "over the logged pool"),
    [(name, tokens, f"{tokens / pool:.3f}") for name, tokens in blocks_off.items()],
)

# %% tags=["fold"]
short = service.pool(max_model_len=span)
numbers(
    exact_bytes=num(memory // per_token, "the pool by bytes alone", "= kv_available // card_token", "tokens"),
    exact_off=num(memory // per_token / pool, "the same over the logged pool", "= exact_bytes / pool", "x"),
    q8_short=num(row_bytes("q8_0", 32) / 32, "q8_0 taken as one byte: what a cache really takes over that", "= q8_bytes / q8_values", "x"),
    gb_for_gib=num(GiB / 10**9, "a GiB read as a GB", "= GiB / GB", "x"),
    pool_at_32k=num(short.tokens, "the pool as logged at the shorter limit", "= pool_32k", "tokens"),
)

# %% [markdown]
# Exact bytes give [343,400](num:exact_bytes) tokens, [1.19x](num:exact_off) the pool: blocks, the copies of the state and the
# draft head are not in them. A q8_0 cache taken as one byte an element is [1.0625x](num:q8_short) too small; a GiB read as a
# GB is [1.07x](num:gb_for_gib) off before anything else. And a tool that gives one pool for a card cannot be right for every limit:
# at [32K](num:span) the same memory is logged as [168,041](num:pool_at_32k).
#
# ## Check
#
# Users met these in public, with figures. Each is redone here from the model's own shape.

# %%
assert round(factors[all_layers]["qwen3.6-35b-a3b"], 1) >= 3.0  # github.com/gpustack/gguf-parser-go/issues/28
assert catalogue.load("qwen3.6-35b-a3b").kv_bytes_per_token() == 20_480
assert catalogue.load("deepseek-v3").kv_bytes_per_token() == 70_272  # github.com/LMCache/LMCache/pull/694
assert round(factors[latents_as_heads]["deepseek-v3"], 1) == 24.9  # github.com/NVIDIA/TensorRT-LLM/pull/16707
assert catalogue.load("mistral-small-3.1-24b").kv_bytes_per_token() == 163_840  # github.com/NVIDIA/Model-Optimizer/issues/2482
assert round(factors[hidden_over_heads]["mistral-small-3.1-24b"], 2) == 1.25
assert catalogue.load("gpt-oss-20b").kv_bytes_per_token() == 24_576 and round(factors[windows_as_full]["gpt-oss-20b"], 1) == 2.0
assert short.tokens == 168_041 and blocks_off["every layer counted as growing"] == 85_850
assert all(value <= 1 for value in factors[state_forgotten].values())
assert all(value >= 1 for short_ in (all_layers, windows_as_full, query_heads, latents_as_heads) for value in factors[short_].values())

# %% [markdown]
# [A scheduler](https://github.com/gpustack/gguf-parser-go/issues/28) refused a card that works, because a hybrid was counted in
# full. [A benchmark](https://github.com/NVIDIA/TensorRT-LLM/pull/16707) ran with a fraction of its batch for the same reason on
# compressed caches. [Another](https://github.com/NVIDIA/Model-Optimizer/issues/2482) took the head from hidden over heads. And
# [one tool](https://github.com/alvarobartt/hf-mem/issues/61) was "corrected" against an engine's log whose own line counted only
# a part of the pool, and has been wrong on windows since.
#
# ## What if
#
# **You must use one formula.** Then use the bytes that really grow, add the state once for each live conversation, and leave room.
#
# **You can ask the engine.** Its log is the truth about its own pool: [its arithmetic](04_why_289661.ipynb) can be read off it.
