# %% [markdown]
# # What do fp8 and the second card each save?
#
# Each [halves](num:fp8_factor) what a token costs on a card. The mixture of layers brings [256 KiB](num:dense_token) a token down to
# [64 KiB](num:kv_token), an fp8 cache to [32 KiB](num:fp8_token), and the second card to [16 KiB](num:card_token) on each:
# [a sixteenth](num:all_saving) in all. None of the three is clever alone; together they make the window affordable.
#
# Neither of the two saves everything. The fixed state stays in its own format whatever the cache is kept in, and a third
# doubling of the cards would stop paying, because the model has only [four](num:kv_heads) heads of K and V to split.

# %% tags=["fold"]
from itertools import permutations

from aelius_math import catalogue, figures, service
from aelius_math.dtypes import element_bytes, row_bytes
from aelius_math.ledger import given, givens, num, numbers
from aelius_math.vllm import DoesNotFit

# %% [markdown]
# ## Given

# %%
givens("layers_all", "full_attention_blocks", "cards", "kv_available", "drafts", "engine_version")

# %% [markdown]
# Not all of these are the article's. It states neither the memory nor the draft length nor the version of its engine;
# [the note on the engine's arithmetic](04_why_289661.ipynb) infers memory and drafts from the pool that was logged, and says
# what another version would change.

# %%
model = catalogue.load("qwen3.8-27b")
config = catalogue.config("qwen3.8-27b")["text_config"]
elements = 2 * config["num_key_value_heads"] * config["head_dim"]  # K and V of one token in one layer
cards = given("cards")

# %% [markdown]
# ## Derive: the factors, in any order
#
# What one token costs on one card is a product, and a product does not care about its order:
#
# $$t = \text{layers} \cdot \frac{h_{kv}}{\text{cards}} \cdot 2 \, d_{head} \cdot b$$
#
# The factors are the layers that grow, the bytes of an element and the heads on one card.

# %%
factors = {
    "mixture of layers": (config["num_hidden_layers"], config["num_hidden_layers"] // config["full_attention_interval"]),
    "fp8": (element_bytes("bf16"), element_bytes("fp8")),
    "second card": (cards, 1),
}
dense = config["num_hidden_layers"] * elements * element_bytes("bf16")
for order in permutations(factors):
    cost = dense
    for name in order:
        before, after = factors[name]
        cost = cost * after // before
    print(" > ".join(order), "=", f"{cost:,} bytes")
card_token = cost
numbers(
    card_token=num(card_token, "one token on one card, fp8", "= fp8_token // cards", "bytes"),
    all_saving=num(dense / card_token, "saved by all three", "= dense_token / card_token", "x"),
    fp8_factor=num(element_bytes("bf16") / element_bytes("fp8"), "saved by fp8", "= kv_token / fp8_token", "x"),
    card_factor=num(cards, "saved by the second card", "= fp8_token / card_token", "x"),
)

# %% tags=["fold"]
KiB = 1024
levels = [dense]
for before, after in factors.values():
    levels.append(levels[-1] * after // before)
names = ["every layer grows", "mixture of layers", "fp8 cache", "second card"]
with figures.plot(height=300) as (fig, ax):
    for place, (name, level) in enumerate(zip(names, levels, strict=True)):
        ax.bar(place, level / KiB, width=0.62, color=figures.colour(1))
        if place:
            saved = levels[place - 1] - level
            ax.bar(place, saved / KiB, bottom=level / KiB, width=0.62, color=figures.colour(6), alpha=0.28)
    ids = ["dense_token", "kv_token", "fp8_token", "card_token"]
    for place, (key, level) in enumerate(zip(ids, levels, strict=True)):
        figures.label(ax, place, level / KiB, "{" + key + "}", dy=4, ha="center", va="bottom", bold=True, **{key: f"{level // KiB} KiB"})
    ax.set_xticks(range(len(names)), [name.replace(" ", "\n", 1) for name in names])
    ax.set_yticks([])
    ax.set_ylim(0, 280)
    figures.axes(ax, y="what one token costs on one card", grid="")
figures.show(
    fig,
    name="savings",
    alt="Four bars, what one token costs on one card: {dense_token} if every layer grew, {kv_token} with the mixture of layers, "
    "{fp8_token} in an fp8 cache, {card_token} split over the second card. Above each bar, in grey, what the step saved.",
    caption="Three factors, {dense_token} down to {card_token}: the mixture does half of the work, fp8 and the second card the rest.",
    dense_token=f"{levels[0] // KiB} KiB",
    kv_token=f"{levels[1] // KiB} KiB",
    fp8_token=f"{levels[2] // KiB} KiB",
    card_token=f"{levels[3] // KiB} KiB",
)

# %% [markdown]
# ## Derive: when splitting stops paying
#
# Tensor parallel splits heads, not tokens. The model has [four](num:kv_heads) heads of K and V; with more cards than
# heads, every card still keeps a whole head, and the copies save nothing.

# %% tags=["fold"]
on_a_card = {split: model.layers[1].token_bytes("fp8", split) * model.layers[1].num_layers for split in (1, 2, 4, 8)}
for split, size in on_a_card.items():
    print(f"{split} cards: {size:,} bytes a token on each, {split * size:,} on all of them")
numbers(
    four_cards=num(on_a_card[4], "one token on one of four cards", "= fp8_token // kv_heads", "bytes"),
    most_cards=num(max(on_a_card), "most cards tried here", unit="cards", kind="assumed", source="the next power of two past the heads"),
    eight_cards=num(on_a_card[8], "one token on one of eight cards", "= max(fp8_token // 8, fp8_token // kv_heads)", "bytes"),
)

# %% [markdown]
# On [eight](num:most_cards) cards instead of [four](num:kv_heads), each still keeps [8 KiB](num:eight_cards) a token. (The heads of
# the recurrent layers go on splitting, and so does the fixed state.)
#
# ## Derive: what fp8 does not halve
#
# The state is in its own format. In the engine, where a block of the cache must be at least as large as one layer's state,
# that has a strange consequence: at the same bytes a 16-bit cache is refused, though it would hold more than one would think.


# %%
fp8 = service.pool()
try:
    service.pool(kv_cache_dtype="bf16")
except DoesNotFit as refusal:
    refused = refusal
bf16 = service.pool(kv_cache_dtype="bf16", max_model_len=refused.longest_max_model_len)
print(refused)
rule = f"vLLM {given('engine_version')}, rule as written in aelius_math.vllm"
in_proportion = refused.num_blocks * given("request_limit") // refused.blocks_per_request
numbers(
    fp8_block=num(fp8.block_size, "tokens of a block, fp8", unit="tokens", source=rule),
    bf16_block=num(bf16.block_size, "tokens of a block, 16 bits", unit="tokens", source=rule),
    bf16_blocks=num(refused.num_blocks, "blocks at the same bytes, 16 bits", unit="blocks", source=rule),
    bf16_wanted=num(
        refused.blocks_per_request, "blocks that a full request would want", unit="blocks", source=rule
    ),
    bf16_pool=num(in_proportion, "the pool in proportion, 16 bits", "= bf16_blocks * request_limit // bf16_wanted", "tokens"),
    bf16_longest=num(
        refused.longest_max_model_len, "longest limit that it accepts, 16 bits", unit="tokens", source=rule
    ),
    bf16_share=num(in_proportion / given("pool"), "16 bits against fp8", "= bf16_pool / pool", "x"),
)

# %% [markdown]
# The block shrinks from [1,616](num:fp8_block) to [816](num:bf16_block) tokens, since a token is larger and the state is
# not. There are [198](num:bf16_blocks) such blocks in the same bytes, and a full request would want
# [340](num:bf16_wanted). In proportion that is a pool of [152,660](num:bf16_pool) tokens,
# [more than half](num:bf16_share) of the article's; but the engine does not start in proportion. It refuses a limit of
# [262,144](num:request_limit) and offers [146,880](num:bf16_longest).
#
# ## Check
#
# The package's layer classes give the same bytes as the product; any order of the three factors ends at the same place;
# and cards hold equal shares of what one card would.

# %%
assert levels == [dense, model.kv_bytes_per_token("bf16"), model.kv_bytes_per_token("fp8"), on_a_card[2]]
assert len({tuple(sorted(order)) for order in permutations(factors)}) == 1 and levels[-1] == card_token
assert on_a_card[1] == 2 * on_a_card[2] == 4 * on_a_card[4] and on_a_card[8] == on_a_card[4]
assert fp8.tokens == given("pool") and fp8.num_blocks - refused.num_blocks == 2
assert service.pool(kv_cache_dtype="bf16", max_model_len=refused.longest_max_model_len).num_blocks == refused.num_blocks
try:
    service.pool(kv_cache_dtype="bf16", max_model_len=refused.longest_max_model_len + 1)
except DoesNotFit:
    print("one token more is refused")

# %% [markdown]
# ## What if
#
# **You come from llama.cpp.** The article's earlier card kept its cache in `q8_0`, which is not one byte an element: a
# block of [32](num:q8_values) values carries a scale and takes [34](num:q8_bytes) bytes. Against that, fp8 alone saves a
# factor of only [1.0625](num:fp8_over_q8).

# %% tags=["fold"]
q8_values, q8_bytes = 32, row_bytes("q8_0", 32)
numbers(
    q8_values=num(q8_values, "values of one q8_0 block", unit="values", kind="external", source="llama.cpp, ggml/src/ggml-common.h, QK8_0"),
    q8_bytes=num(q8_bytes, "bytes of one q8_0 block", unit="bytes", kind="external", source="llama.cpp, ggml/src/ggml-common.h, block_q8_0"),
    fp8_over_q8=num(q8_bytes / q8_values, "saved by fp8 against q8_0", "= q8_bytes / q8_values", "x"),
)

# %% [markdown]
# **You add a card, but no memory is freed on the fullest.** Every card holds its share of every token, so the pool is as
# large as the fullest card allows. What something else takes from one card is taken from both.
#
# **You run one card.** The same fp8 cache costs [32 KiB](num:fp8_token) a token there, and the fixed state is
# whole instead of shared. [The engine's arithmetic](04_why_289661.ipynb) puts both in blocks.
