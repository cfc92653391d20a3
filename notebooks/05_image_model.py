# %% [markdown]
# # What did the image model cost?
#
# Of the memory for conversations, about [44%](num:lost_blocks): at the worst moment of an edit it takes
# [4.11 GiB](num:edit_peak) of the second card, and that is [156](num:edit_blocks) of the [356](num:before) blocks that the
# pool would have had. The article says [almost half](num:lost_bytes). In bytes that is so; in the engine's own blocks it
# falls just short of it.
#
# The bill is paid on both cards. A pool that is split over them is bound by the fuller one, so what is taken from one card lies
# idle on the other.

# %% tags=["fold"]
from aelius_math import figures, service
from aelius_math.ledger import given, givens, num, numbers, published
from aelius_math.tables import Table
from aelius_math.vllm import DoesNotFit, plan_pool

# %% [markdown]
# ## Given
#
# The article gives peaks of the image model, in the order in which they were found. What the pool was before is lost
# with a table.

# %%
GiB = 2**30
pool, limit = given("pool"), given("request_limit")
peaks = {key: int(given(key) * GiB) for key in ("image_peak_streamed", "edit_peak", "image_peak_resident")}
givens("read_on", "image_model_arrived", "image_peak_resident", "image_peak_streamed", "image_time_cost", "edit_peak", "kv_available", "card_visible")

# %% [markdown]
# ## Derive: what a GiB is worth
#
# The engine gives memory out in blocks of [28,131,328](num:block_bytes) bytes on each card. A GiB on every card is so many of
# them, and each block is worth the same part of a full request.

# %%

now = service.pool()
block = now.block_size_bytes
numbers(
    gib_blocks=num(GiB / block, "blocks of one GiB on each card", "= GiB / block_bytes", "blocks"),
    gib_tokens=num(GiB / block * limit / now.blocks_per_request, "pool for one GiB on each card", "= gib_blocks * request_limit / per_request", "tokens"),
    block_tokens=num(limit / now.blocks_per_request, "pool for one block", "= request_limit / per_request", "tokens"),
)

# %% [markdown]
# A GiB is [38](num:gib_blocks) blocks, [about 55,000](num:gib_tokens) tokens of the logged pool. One block more or less moves
# it by [about 1,400](num:block_tokens).
#
# ## Derive: what each peak takes
#
# Give a peak back to the pool and see what it would have been. The memory that was left is known only to the block, so the
# number of blocks before may be one higher than the least.

# %%
rows = {}
for key, peak in peaks.items():
    least, most = (given("kv_available") + peak) // block, (given("kv_available") + block - 1 + peak) // block
    rows[key] = (peak, least, most, least * limit // now.blocks_per_request)
streamed, edit, resident = (rows[key] for key in peaks)


def lost(row):
    return 100 * (row[1] - now.num_blocks) / row[1]


Table(
    ("peak", "GiB", "blocks before", "pool before", "lost [%]"),
    [(given_key.replace("_", " "), f"{float(given(given_key)):.2f}", row[1], row[3], f"{lost(row):.1f}") for given_key, row in rows.items()],
)

# %% tags=["fold"]
numbers(
    before=num(edit[1], "blocks without the edit's peak", "= floor((kv_available + edit_peak * GiB) / block_bytes)", "blocks"),
    edit_blocks=num(edit[1] - now.num_blocks, "blocks that the edit's peak takes", "= before - blocks", "blocks"),
    lost_blocks=num(lost(edit), "pool lost to the edit's peak, in blocks", "= 100 * edit_blocks / before", "%"),
    lost_most=num(100 * (edit[2] - now.num_blocks) / edit[2], "the same, one block more before", "= 100 * (edit_blocks + 1) / (before + 1)", "%"),
    lost_streamed=num(lost(streamed), "pool lost to the streamed peak", "= 100 * (floor((kv_available + image_peak_streamed * GiB) / block_bytes) - blocks) / floor((kv_available + image_peak_streamed * GiB) / block_bytes)", "%"),
    lost_resident=num(lost(resident), "pool lost to the resident peak", "= 100 * (floor((kv_available + image_peak_resident * GiB) / block_bytes) - blocks) / floor((kv_available + image_peak_resident * GiB) / block_bytes)", "%"),
    pool_before=num(edit[3], "the pool without the edit's peak", "= floor(before * request_limit / per_request)", "tokens"),
)  # fmt: skip

# %% [markdown]
# ## Derive: [almost half](num:lost_bytes), in bytes and in blocks
#
# These are different currencies, and they must not be mixed. **In bytes**, [4.11 GiB](num:edit_peak) at [16 KiB](num:card_token) a
# token and card hold [269,352](num:edit_tokens) tokens; beside the logged pool that is [48.2%](num:lost_bytes) of the sum. But
# the sum adds tokens of bytes to tokens of the engine, and those are different things. **In the engine's blocks**, the edit
# takes [156](num:edit_blocks) of [356](num:before), between [43.8%](num:lost_blocks) and [44.0%](num:lost_most).

# %% tags=["fold"]
edit_tokens = peaks["edit_peak"] // (now.block_size_bytes // now.block_size // 17 * 16)
numbers(
    edit_tokens=num(edit_tokens, "tokens of bytes that the edit's peak holds", "= floor(edit_peak * GiB / card_token)", "tokens"),
    lost_bytes=num(100 * edit_tokens / (edit_tokens + pool), "pool lost to the edit's peak, in bytes", "= 100 * edit_tokens / (edit_tokens + pool)", "%"),
    half_low=num(9 * given("kv_available") / 11 / GiB, "peak at which almost half begins", "= 45 / 55 * kv_available / GiB", "GiB"),
    half_high=num(given("kv_available") / GiB, "peak that would cost half", "= kv_available / GiB", "GiB"),
    low_end=num(45, "where almost half begins", unit="%", kind="assumed", source="words.toml: almost half is from here up to half"),
)  # fmt: skip

# %% [markdown]
# Which peak was the pool sized for? The plain generation's [2.70 GiB](num:image_peak_streamed) would have cost
# [34%](num:lost_streamed), the resident [7.10 GiB](num:image_peak_resident) [more than half](num:lost_resident), [57%](num:lost_resident). If
# [almost half](num:lost_bytes) means [45%](num:low_end) or more, the peak lies between [4.29 GiB](num:half_low) and [5.24 GiB](num:half_high). So of the
# published peaks the edit's is the only one near, and it alone does not quite give the article's words. Something beside it was
# taken, or the words are generous. **Inferred**; the table that would settle it is lost.

# %% tags=["fold"]
taken = [step * block for step in range(0, 320)]
total = given("kv_available") + peaks["edit_peak"]  # what the cache would have without the image model
full = total // block
steps = [(total - size) // block for size in taken]
with figures.plot(height=300) as (fig, ax):
    fits = [(s / GiB, n * limit // now.blocks_per_request) for s, n in zip(taken, steps, strict=True) if n >= now.blocks_per_request]
    ax.step(*zip(*fits, strict=True), where="post", color=figures.colour(1))
    refused = [(s / GiB, n * limit // now.blocks_per_request) for s, n in zip(taken, steps, strict=True) if n < now.blocks_per_request]
    ax.step(*zip(*refused, strict=True), where="post", color=figures.colour(6), linestyle=(0, (2, 2)))
    for key, name in (("image_peak_streamed", "streamed"), ("edit_peak", "edit"), ("image_peak_resident", "resident")):
        size = peaks[key]
        left = (total - size) // block * limit // now.blocks_per_request
        ax.plot([size / GiB], [left], "o", color=figures.colour(2))
        figures.label(ax, size / GiB, left, name + " {" + key + "}", dx=7, dy=12, **{key: f"{float(given(key)):.2f} GiB"})
    ax.axhline(limit, color=figures.INK, linewidth=1, linestyle=(0, (4, 3)))
    figures.label(ax, 9, limit, "one full request: {request_limit}", request_limit=limit, dy=8, ha="right", va="bottom")
    ax.set_xlim(0, 9.2)
    ax.set_ylim(0, 560_000)
    figures.token_axis(ax.yaxis, [step * 131072 for step in range(5)])
    figures.axes(ax, x="taken from one card [GiB]", y="the pool as logged [tokens]")
quarters = [quarter * GiB // 4 for quarter in range(37)]
left = [(total - size) // block for size in quarters]
slider = figures.Slider(
    ax=ax,
    columns=("taken from one card", "blocks left", "the pool", "a full request"),
    stops=[
        (size / GiB, (f"{size / GiB:.2f} GiB", n, f"{n * limit // now.blocks_per_request:,} tokens", "fits" if n >= now.blocks_per_request else "refused"))
        for size, n in zip(quarters, left, strict=True)
    ],
    start=round(4 * peaks["edit_peak"] / GiB),
)
figures.show(
    fig,
    name="pool-by-gib",
    slider=slider,
    alt="The pool against the GiB taken from one card, a staircase of blocks falling from {pool_before} tokens. The streamed peak, "
    "{image_peak_streamed}, and the edit's, {edit_peak}, still leave a full request; the resident peak, {image_peak_resident}, does not.",
    caption="Each GiB taken from one card costs the pool the same number of blocks; past the dashed line one full request no longer fits.",
    pool_before=edit[3],
    image_peak_streamed=published()["image_peak_streamed"],
    edit_peak=published()["edit_peak"],
    image_peak_resident=published()["image_peak_resident"],
)

# %% [markdown]
# ## Derive: what the seconds bought
#
# With everything resident, a plain generation peaked at [7.10 GiB](num:image_peak_resident). Streaming the weights from
# system memory, a segment at a time, brought that down to [2.70 GiB](num:image_peak_streamed), for about
# [11 s](num:image_time_cost) an image. What that is worth can be said in blocks.

# %%
left_resident = (total - peaks["image_peak_resident"]) // block
left_streamed = (total - peaks["image_peak_streamed"]) // block
try:
    plan_pool(service.model(), service.engine(), left_resident * block)
except DoesNotFit as error:
    refusal = error
print(refusal)
numbers(
    freed=num(float(given("image_peak_resident") - given("image_peak_streamed")), "freed by streaming", "= image_peak_resident - image_peak_streamed", "GiB", digits=3),
    freed_blocks=num(left_streamed - left_resident, "blocks freed by streaming", unit="blocks"),
    left_resident=num(left_resident, "blocks left with all resident", "= floor((kv_available + (edit_peak - image_peak_resident) * GiB) / block_bytes)", "blocks"),
    longest_left=num(refusal.longest_max_model_len, "longest request that these would take", unit="tokens", source="vLLM's rule, run in aelius_math.vllm"),
)  # fmt: skip

# %% [markdown]
# With all of it resident [85](num:left_resident) blocks would have been left, and one full request wants
# [181](num:per_request). The engine would not have started at its limit at all; it would have offered
# [108,272](num:longest_left) tokens. So the seconds did not buy a larger pool. They bought the window.
#
# And then the edit came. To encode a reference image it peaks at [4.11 GiB](num:edit_peak), whatever budget the server is
# given: the article tried [2 GiB](num:edit_budgets), [2.5 GiB](num:edit_budgets) and [3 GiB](num:edit_budgets). A flag that a peak
# does not answer to is no reserve. The pool has to be sized against what was measured.
#
# ## Derive: taken once, paid on both cards
#
# Tensor parallel keeps a share of every token on each card, so the pool is as large as the smaller remainder. What the image
# model takes from the second card, the first keeps and cannot use.

# %%
after = [total, total - peaks["edit_peak"]]
uneven = plan_pool(service.model(), service.engine(), after)
assert uneven.num_blocks == now.num_blocks
stranded = after[0] - after[1]
numbers(
    stranded=num(float(given("edit_peak")), "memory that lies idle on the other card", "= edit_peak", "GiB", digits=3),
    both=num(float(2 * given("edit_peak")), "taken and stranded together", "= edit_peak + stranded", "GiB", digits=3),
)

# %% [markdown]
# [4.11 GiB](num:edit_peak) are used and [4.11 GiB](num:stranded) stranded: [8.22 GiB](num:both) less for conversations.
#
# ## The card, line by line
#
# How much of the card is spoken for? Only the edit's peak is the article's, and the cache is inferred. The rest are
# **estimates** from public threads on such rigs, good to a few tenths.

# %% tags=["fold"]
threads = "estimate from public threads on rigs of this kind"
batched = 8192
numbers(
    checkpoint=num(21.0, "checkpoint with its DeltaNet layers in 16-bit", unit="GB", kind="assumed", source=threads, digits=3),
    weights=num(21.0e9 / 2 / GiB, "weights on one card", "= checkpoint * GB / cards / GiB", "GiB", kind="assumed", digits=2),
    non_torch=num(0.9, "CUDA context and communication", unit="GiB", kind="assumed", source=threads),
    activation=num(1.7, f"activation peak at {batched:,} batched tokens", unit="GiB", kind="assumed", source=threads, digits=2),
    graphs=num(0.2, "CUDA graphs", unit="GiB", kind="assumed", source=threads),
    engine_card=num(
        21.0e9 / 2 / GiB + 0.9 + 1.7 + 0.2 + now.available_bytes / GiB, "the engine on one card",
        "= weights + non_torch + activation + graphs + kv_available / GiB", "GiB", kind="assumed", digits=3,
    ),
    card_used=num(
        21.0e9 / 2 / GiB + 0.9 + 1.7 + 0.2 + now.available_bytes / GiB + float(given("edit_peak")), "the second card, edit included",
        "= engine_card + edit_peak", "GiB", kind="assumed", digits=3,
    ),
    card_gib=num(given("card_visible") / 1024, "what CUDA sees of a card", "= card_visible / 1024", "GiB", digits=4),
    util=num((21.0e9 / 2 / GiB + 0.9 + 1.7 + 0.2 + now.available_bytes / GiB) * 1024 / given("card_visible"),
        "the utilisation this would be", "= engine_card / card_gib", "x", kind="assumed", digits=2),
)  # fmt: skip

# %% tags=["fold"]
w = 21.0e9 / 2 / GiB
other = 0.9 + 1.7 + 0.2
kv_now, kv_then = now.available_bytes / GiB, total / GiB
edit_gib = float(given("edit_peak"))
visible = given("card_visible") / 1024
bars = {
    "after, second": [(w, 3), (other, 6), (kv_now, 1), (edit_gib, 2)],
    "after, first": [(w, 3), (other, 6), (kv_now, 1), (edit_gib, 0)],
    "before, either": [(w, 3), (other, 6), (kv_then, 1)],
}
with figures.plot(height=250) as (fig, ax):
    for place, parts in enumerate(bars.values()):
        left = 0
        for size, series in parts:
            style = dict(color=figures.colour(series)) if series else dict(color="none", edgecolor=figures.INK, hatch="///", linewidth=0)
            ax.barh(place, size, left=left, height=0.6, **style)
            left += size
    ax.axvline(visible, color=figures.INK, linewidth=1)
    ax.set_yticks(range(len(bars)), list(bars))
    ax.set_ylim(-0.5, 3.1)
    ax.set_xlim(0, 24.2)
    figures.axes(ax, x="memory of one card [GiB]", grid="")
    for start, size, text, series in ((0, w, "weights", 3), (w, other, "rest", 6), (w + other, kv_then, "conversations", 1)):
        figures.label(ax, start + size / 2, 2.42, text, ha="center", va="bottom", colour=figures.colour(series))
    figures.label(ax, w + other + kv_now + edit_gib / 2, 0, "image", ha="center", colour=figures.PAPER)
    figures.label(ax, w + other + kv_now + edit_gib / 2, 1.36, "stranded", ha="center", va="bottom")
    figures.label(ax, visible, 2.75, "{card_gib}", card_gib=f"{visible:.2f} GiB", dx=-4, ha="right", va="bottom")
figures.show(
    fig,
    name="both-cards",
    alt="Three bars, the memory of one card. Before: weights, rest and conversations fill most of {card_gib}. After, on the second card "
    "the image model takes {edit_peak} of the conversations' part; on the first the same amount is hatched: stranded.",
    caption="What the image model takes from the second card, the first card keeps and cannot use.",
    card_gib=f"{visible:.2f} GiB",
    edit_peak=published()["edit_peak"],
)

# %% [markdown]
# By these estimates the engine takes about [17.8 GiB](num:engine_card), a utilisation of [0.76](num:util), and the second
# card stands at [21.9 GiB](num:card_used) of [23.56 GiB](num:card_gib) when an edit peaks. The rest is what the estimates are
# worth.
#
# ## Check
#
# The staircase by another road: hand the planner less memory and count.

# %%
for size, left in zip(taken[:170], steps[:170], strict=True):
    if left >= now.blocks_per_request:
        assert plan_pool(service.model(), service.engine(), total - size).num_blocks == left
assert steps[0] == full and [a - b for a, b in zip(steps, steps[1:], strict=False)] == [1] * 319
assert (edit[1], edit[1] - now.num_blocks) == (356, 156)
assert left_resident < now.blocks_per_request < left_streamed
assert abs(sum(size for size, _ in bars["after, second"]) - sum(size for size, _ in bars["after, first"])) < 1e-9

# %% [markdown]
# ## What if
#
# **Only plain generations were served.** With the streamed peak as the worst case, [253](num:only_plain) blocks would be
# left instead of [200](num:blocks), a pool of [366,422](num:only_plain_pool) tokens.
#
# **The image model had a card of its own.** Then nothing would be stranded, and conversations would have the whole of what
# the other cards leave.

# %% tags=["fold"]
numbers(
    only_plain=num(left_streamed, "blocks beside the streamed peak", "= floor((kv_available + (edit_peak - image_peak_streamed) * GiB) / block_bytes)", "blocks"),
    only_plain_pool=num(left_streamed * limit // now.blocks_per_request, "the pool beside the streamed peak", "= only_plain * request_limit // per_request", "tokens"),
)  # fmt: skip
