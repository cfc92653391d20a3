# %% [markdown]
# # Why does a window this size fit at all?
#
# Because most of the model does not remember every token. Of [64](num:layers_all) layers only
# [16](num:full_attention_blocks) keep a cache that grows: [64 KiB](num:kv_token) for each token in a 16-bit cache. Had all of
# them grown, it would be [256 KiB](num:dense_token). The other [48](num:recurrent_blocks) keep a state of fixed size,
# [146.8 MiB](num:state_bytes) for each live conversation.
#
# So a full window of [262,144](num:request_limit) tokens takes [16 GiB](num:kv_window) in a 16-bit cache, not
# [64 GiB](num:dense_window). The price is paid at the other end: the shortest chat carries the whole state.

# %% tags=["fold"]
from aelius_math import catalogue, figures
from aelius_math.dtypes import element_bytes
from aelius_math.ledger import given, givens, num, numbers

# %% [markdown]
# ## Given
#
# The article's count of layers, and the shape of each kind from the model's own configuration. No copy of the whole
# `config.json` of Qwen3.8-27B was at hand; its fields are attested by public programs that read them, and agree with
# the files of the earlier models of the same class.

# %%
givens("model", "layers_all", "full_attention_blocks", "recurrent_blocks", "request_limit")

# %% tags=["fold"]
config = catalogue.config("qwen3.8-27b")["text_config"]


def field(name, label, unit):
    return num(config[name], label, unit=unit, kind="external", source=f"Qwen3.8-27B config.json, {name}")


numbers(
    interval=field("full_attention_interval", "every so many layers one is full attention", "layers"),
    kv_heads=field("num_key_value_heads", "heads of K and V", "heads"),
    head_size=field("head_dim", "elements of one head", "elements"),
    k_heads=field("linear_num_key_heads", "DeltaNet key heads", "heads"),
    v_heads=field("linear_num_value_heads", "DeltaNet value heads", "heads"),
    k_dim=field("linear_key_head_dim", "elements of a DeltaNet key head", "elements"),
    v_dim=field("linear_value_head_dim", "elements of a DeltaNet value head", "elements"),
    conv_kernel=field("linear_conv_kernel_dim", "width of its convolution", "columns"),
)

# %% [markdown]
# The formats decide the bytes. The cache and the convolution are kept in the model's own `bfloat16`; the recurrent
# state in `float32`, which the configuration says by name (`mamba_ssm_dtype`).

# %% tags=["fold"]
kv_element = element_bytes(config["dtype"])
state_element = element_bytes(config["mamba_ssm_dtype"])
numbers(
    kv_element=num(kv_element, "bytes of a cached element at 16 bits", unit="bytes", kind="external", source="Qwen3.8-27B config.json, dtype"),
    state_element=num(
        state_element, "bytes of a state element", unit="bytes", kind="external", source="Qwen3.8-27B config.json, mamba_ssm_dtype"
    ),
)

# %% [markdown]
# ## Derive: what grows
#
# A full-attention layer keeps, for every token, one key and one value for each head of K and V:
#
# $$t = 2 \cdot h_{kv} \cdot d_{head} \cdot b$$
#
# One layer in [four](num:interval) is of that kind.

# %% tags=["fold"]
layers = config["num_hidden_layers"]
growing = layers // config["full_attention_interval"]
layer_token = 2 * config["num_key_value_heads"] * config["head_dim"] * kv_element
kv_token = growing * layer_token
numbers(
    layer_token=num(layer_token, "one token in one layer, 16 bits", "= 2 * kv_heads * head_size * kv_element", "bytes"),
    kv_token=num(kv_token, "one token in all layers that grow", "= layers_all // interval * layer_token", "bytes"),
    dense_token=num(layers * layer_token, "one token if every layer grew", "= layers_all * layer_token", "bytes"),
    kv_window=num(kv_token * given("request_limit"), "a full window", "= kv_token * request_limit", "bytes"),
    dense_window=num(layers * layer_token * given("request_limit"), "a full window if every layer grew", "= dense_token * request_limit", "bytes"),
)

# %% [markdown]
# [64 KiB](num:kv_token) against [256 KiB](num:dense_token): the mixture alone saves a factor of [four](num:hybrid_saving).
# (That the larger figure is [262,144](num:dense_token) bytes, and the window [262,144](num:request_limit) tokens, is chance.)
#
# ## Derive: what stays
#
# A Gated DeltaNet layer keeps no tokens. It keeps one matrix for each value head, and the last columns of a short
# convolution:
#
# $$s = h_v \cdot d_v \cdot d_k \qquad c = (w - 1) \cdot (2 \cdot h_k \cdot d_k + h_v \cdot d_v)$$

# %%
fixed = layers - growing
state = config["linear_num_value_heads"] * config["linear_value_head_dim"] * config["linear_key_head_dim"]
channels = 2 * config["linear_num_key_heads"] * config["linear_key_head_dim"] + (
    config["linear_num_value_heads"] * config["linear_value_head_dim"]
)
conv = (config["linear_conv_kernel_dim"] - 1) * channels
state_bytes = fixed * (conv * kv_element + state * state_element)
numbers(
    hybrid_saving=num(layers / growing, "saved by the mixture of layers", "= dense_token / kv_token", "x"),
    state_el=num(state, "elements of state in one layer", "= v_heads * v_dim * k_dim", "elements"),
    conv_el=num(conv, "elements of convolution in one layer", "= (conv_kernel - 1) * (2 * k_heads * k_dim + v_heads * v_dim)", "elements"),
    state_bytes=num(
        state_bytes, "fixed state of one conversation", "= recurrent_blocks * (conv_el * kv_element + state_el * state_element)", "bytes"
    ),
)

# %% [markdown]
# The article puts it as a long chat costing these layers what one line costs. That is true for each of them, and it is
# not nothing. In the currency of the pool, tokens of the article's fp8 cache, a
# conversation of a single line holds as much as [4,698](num:state_tokens) tokens of text.

# %% tags=["fold"]
fp8_token = growing * 2 * config["num_key_value_heads"] * config["head_dim"] * element_bytes("fp8")
numbers(
    fp8_token=num(fp8_token, "one token at fp8, both cards together", "= kv_token * 1 // kv_element", "bytes"),
    state_tokens=num(state_bytes // fp8_token, "the fixed state in fp8 tokens", "= state_bytes / fp8_token", "tokens"),
    state_tokens16=num(state_bytes // kv_token, "the fixed state in 16-bit tokens", "= state_bytes / kv_token", "tokens"),
)

# %% [markdown]
# ## Derive: where the lines cross
#
# Very short conversations would be cheaper on a model whose every layer grows. The lines cross where the state is worth
# the growth that is saved:
#
# $$L_{cross} = \frac{\text{state}}{\text{dense} - \text{hybrid}}$$

# %% tags=["fold"]
cross = state_bytes // (layers * layer_token - kv_token)
numbers(
    cross=num(cross, "length at which both cost the same, 16 bits", "= state_bytes / (dense_token - kv_token)", "tokens"),
    cross_fp8=num(2 * cross, "the same at fp8", "= state_bytes / (layers_all // full_attention_blocks * fp8_token - fp8_token)", "tokens"),
    at_cross=num(layers * layer_token * cross, "what both cost there", "= dense_token * cross", "bytes"),
)

# %% tags=["fold"]
K = given("k_binary")
MiB = 1024**2
lengths = [16 * K * step // 64 for step in range(1, 65)]
hybrid = {length: state_bytes + kv_token * length for length in lengths}
dense = {length: layers * layer_token * length for length in lengths}
shown = [length for length in lengths if length <= 4 * K]
with figures.plot(height=300) as (fig, ax):
    ax.plot([0, *shown], [0, *(dense[length] / MiB for length in shown)], color=figures.colour(2))
    ax.plot([0, *shown], [state_bytes / MiB, *(hybrid[length] / MiB for length in shown)], color=figures.colour(1))
    ax.plot([cross], [layers * layer_token * cross / MiB], "o", color=figures.INK)
    ax.set_xlim(0, 4 * K)
    ax.set_ylim(0, None)
    figures.token_axis(ax.xaxis, [0, K, 2 * K, 3 * K, 4 * K])
    figures.axes(ax, x="length of the conversation [tokens]", y="memory of one conversation [MiB], cache in bfloat16")
    figures.label(ax, 2.75 * K, dense[2816] / MiB, "if every layer grew", dx=-16, ha="right", colour=figures.colour(2))
    figures.label(ax, 3 * K, hybrid[3 * K] / MiB, "as it is", dy=-16, colour=figures.colour(1))
    figures.label(ax, cross, layers * layer_token * cross / MiB, "{cross} tokens", cross=cross, dx=10, dy=-16)
figures.show(
    fig,
    name="hybrid-crossing",
    alt="Memory of one conversation against its length. The line of a model whose every layer grows starts at zero and rises "
    "steeply; the line of this one starts at its fixed state and rises a quarter as fast. They cross at {cross} tokens.",
    caption="Past {cross} tokens the mixture is cheaper, and the gap only widens.",
    cross=cross,
)

# %% [markdown]
# ## Check
#
# Other roads to the same figures: the package's own classes for the two kinds of layer; another engine's log;
# and the plot's own points, stepped token by token instead of multiplied.
#
# The other engine is llama.cpp. A build of it, run without a graphics card on this geometry, printed
# [64 MiB](num:log_kv) for a 16-bit cache of [1,024](num:log_cells) tokens, and [288 MiB](num:log_state) of state for
# [two](num:log_seqs) conversations. Both agree to the byte.

# %%
model = catalogue.load("qwen3.8-27b")
assert model.kv_bytes_per_token("bf16") == kv_token
assert model.kv_bytes_per_token("fp8") == fp8_token
assert model.conv_elements == fixed * conv and model.state_elements == fixed * state
assert fixed == given("recurrent_blocks") and growing == given("full_attention_blocks")
assert state_bytes % fp8_token == 0 and state_bytes % (layers * layer_token - kv_token) == 0

# %% tags=["fold"]
source = "llama.cpp at 0c1e57098, CPU build, its own log"
log_cells, log_kv, log_state, log_seqs = 1024, 64, 288, 2
assert log_kv * MiB == kv_token * log_cells
assert log_state * MiB == log_seqs * fixed * state * state_element
numbers(
    log_cells=num(log_cells, "cells of the logged cache", unit="tokens", kind="external", source=source),
    log_kv=num(log_kv, "its logged size, 16 bits", "= kv_token * log_cells / MiB", "MiB", kind="external", source=source),
    log_seqs=num(log_seqs, "conversations of the logged state", unit="conversations", kind="external", source=source),
    log_state=num(
        log_state, "logged state, without the convolution", "= log_seqs * recurrent_blocks * state_el * state_element / MiB", "MiB",
        kind="external", source=source,
    ),
)

# %%
grown, walked = state_bytes, 0
while walked < cross:
    grown, walked = grown + growing * layer_token, walked + 1
assert grown == walked * layers * layer_token == dense[1024] * cross // 1024
assert all(hybrid[length] < dense[length] for length in lengths if length > cross)
assert all(hybrid[length] > dense[length] for length in lengths if length < cross)

# %% [markdown]
# ## What if
#
# **The state were kept in a 16-bit format.** Its matrices would take fewer bytes, but a recurrent state is read and
# written at every token, and errors add up. This model's configuration asks for `float32`.
#
# **Many short chats.** [Ten](num:ten) one-line conversations hold [1.43 GiB](num:ten_chats) of state between them before
# the first token is cached. An engine that gives memory out in blocks
# [charges more still](04_why_289661.ipynb#what-a-short-conversation-costs).
#
# **Another model of the family.** Qwen3.5, Qwen3.6 and Qwen3.8 with 27B share this geometry; `aelius-math model` prints
# the same figures for any `config.json`.

# %% tags=["fold"]
ten = 10
numbers(
    ten=num(ten, "short chats, for scale", unit="chats", kind="assumed", source="a round number, chosen here"),
    ten_chats=num(ten * state_bytes, "state of so many chats", "= ten * state_bytes", "bytes"),
)
