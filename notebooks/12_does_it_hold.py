# %% [markdown]
# # Does the article hold?
#
# Yes, with care. Of its [57](num:n_article) numbers [6](num:n_exact) come out to the last digit,
# [2](num:n_rounds) round to what it says, and [11](num:n_source) match their source.
# [14](num:n_reading) hold under a reading that is named, and [21](num:n_measured) are measurements or choices
# that arithmetic can only use. [3](num:n_unknown) are unknown, because what they rested on is lost with a table. None was
# found to be wrong.
#
# That a number holds under a reading is not a flaw of the article's. It is where a reader who takes it as it stands would go
# wrong, and [the errata](../errata.md) say how.

# %% tags=["fold"]
from collections import Counter

from aelius_math import figures
from aelius_math.ledger import num, numbers, published
from aelius_math.tables import Table

# %% [markdown]
# ## Given
#
# Every number that the article publishes, with the kind of each: read off the running system, a property of public hardware or
# software, or arithmetic on other figures.

# %%
article = [number for number in published().values() if number.origin == "article"]
kinds, verdicts = Counter(n.kind for n in article), Counter(n.verdict for n in article)
Table(
    ("verdict", *kinds, "in all"),
    [(v, *(sum(n.verdict == v and n.kind == k for n in article) for k in kinds), verdicts[v]) for v in verdicts],
)

# %% [markdown]
# ## Derive

# %% tags=["fold"]
numbers(
    n_article=num(len(article), "numbers of the article", unit="numbers"),
    n_exact=num(verdicts["exact"], "exact", unit="numbers"),
    n_rounds=num(verdicts["rounds to it"], "round to it", unit="numbers"),
    n_source=num(verdicts["matches its source"], "match their source", unit="numbers"),
    n_reading=num(verdicts["holds under a reading"], "hold under a reading", unit="numbers"),
    n_measured=num(verdicts["measured, cannot be derived"], "measured, cannot be derived", unit="numbers"),
    n_unknown=num(verdicts["unknown"], "unknown", unit="numbers"),
    n_wrong=num(verdicts["does not hold"], "do not hold", unit="numbers"),
    n_care=num(sum(bool(n.care) for n in article), "in the errata", unit="numbers"),
)

# %% tags=["fold"]
order = sorted(verdicts, key=lambda verdict: verdicts[verdict])
with figures.plot(height=240) as (fig, ax):
    ax.barh(range(len(order)), [verdicts[v] for v in order], height=0.6, color=figures.colour(1))
    ax.set_yticks(range(len(order)), order)
    for row, verdict in enumerate(order):
        figures.label(ax, verdicts[verdict], row, "{}", verdicts[verdict], dx=6)
    ax.set_xlim(0, max(verdicts.values()) * 1.12)
    figures.axes(ax, x="numbers of the article", grid="")
figures.show(
    fig,
    name="verdicts",
    alt="Bars, the numbers of the article by verdict: most are measured or hold under a reading, few are unknown, none does not hold.",
    caption="What became of {n_article} numbers.",
    n_article=len(article),
)

# %% [markdown]
# Each number, its verdict and the note that treats it:

# %%
Table(("number", "what", "kind", "verdict", "note"), [(n.text, n.label, n.kind, n.verdict, n.note) for n in article])

# %% [markdown]
# ## Check
#
# Every number has a verdict and a note; a reading is named where one is needed, and nowhere else.

# %%
assert all(n.verdict and n.note for n in article)
assert all(bool(n.reading) == (n.verdict == "holds under a reading") for n in article)
assert sum(verdicts.values()) == len(article) and not verdicts["does not hold"]

# %% [markdown]
# ## What if
#
# **The lost tables turn up.** Then what is unknown can be settled: the running configuration, the pool before the image model, speed
# against the margin, and validation under load. Until then the site says unknown, and does not guess.
#
# **A number changes.** Its verdict is computed anew where it is arithmetic, and the texts that no longer hold stop the build.
