"""Lays a new note: its pair with the five headings, outputs and all, its line in the navigation and its locks.

    make note NAME=where_it_ends

No kernel is started: the few cells are run here, and their results stored as a kernel would store them.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from pathlib import Path

import jupytext
import nbformat
from IPython.core.formatters import DisplayFormatter

import locks
import notebooks
import prose
import restate
from aelius_math.ledger import collect, published

ROOT = Path(__file__).parent.parent
NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
TEMPLATE = """\
# %% [markdown]
# # {question}
#
# The answer comes here, at once, in a few sentences. One request may be [262,144](num:request_limit) tokens
# long; the cache holds [289,661](num:pool).

# %% tags=["fold"]
from aelius_math.ledger import given, num, numbers

# %% [markdown]
# ## Given
#
# What the note takes from elsewhere, and where that is.

# %%
pool, request_limit = given("pool"), given("request_limit")

# %% [markdown]
# ## Derive
#
# The arithmetic, in short cells. The last expression of a cell records what it found.

# %%
numbers(
    {id}_gap=num(pool - request_limit, "tokens beyond one full request", "= pool - request_limit", "tokens"),
)

# %% [markdown]
# [27,517](num:{id}_gap) tokens are left for everybody else.
#
# ## Check
#
# The same by another road, or against what an engine printed.

# %%
assert request_limit + (pool - request_limit) == pool

# %% [markdown]
# ## What if
#
# What changes when something given is another one, and what would show that this is wrong.
"""


def run(notebook: nbformat.NotebookNode) -> None:
    """Runs the cells in order and stores what the last expression of each shows. They must print nothing."""
    names: dict[str, object] = {}
    show = DisplayFormatter()
    count = 0
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        count += 1
        cell.execution_count = count
        body = ast.parse(cell.source).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            data, _ = show.format(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
            cell.outputs = [nbformat.v4.new_output("execute_result", data, execution_count=count, metadata={})]


def lay(name: str) -> Path:
    """Writes the pair. Returns its script."""
    number = max(int(script.name[:2]) for script in notebooks.scripts()) + 1
    script = ROOT / "notebooks" / f"{number:02d}_{name}.py"
    question = name.replace("_", " ").capitalize() + "?"
    text = TEMPLATE.format(question=question, id=name.split("_")[0][:8] + f"_{number}")
    script.write_text(restate.rewrite(text, published())[0], encoding="utf-8")
    notebook = jupytext.read(script)
    notebook.metadata = notebooks.metadata(notebook)
    for place, cell in enumerate(notebook.cells):  # ids of its own place, so that laying it again makes no difference
        cell.id = hashlib.sha256(f"{script.stem} {place}".encode()).hexdigest()[:8]
        cell.metadata = nbformat.from_dict({"tags": cell.metadata["tags"]} if cell.metadata.get("tags") else {})
    run(notebook)
    nbformat.validate(notebook)
    script.with_suffix(".ipynb").write_text(nbformat.writes(notebook, version=4) + "\n", encoding="utf-8")
    notebooks.mark_current(script)
    return script


def enter(script: Path) -> None:
    """Puts the note behind the last one in the navigation."""
    config = ROOT / "mkdocs.yml"
    lines = config.read_text(encoding="utf-8").splitlines(keepends=True)
    last = max(place for place, line in enumerate(lines) if re.match(r"\s+- notebooks/\S+\.ipynb", line))
    lines.insert(last + 1, re.sub(r"notebooks/.*", f"notebooks/{script.stem}.ipynb", lines[last]))
    config.write_text("".join(lines), encoding="utf-8")


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if not NAME.fullmatch(name):
        sys.exit(f'NAME: got "{name}", expected words in lower case joined by _: make note NAME=where_it_ends')
    if any(script.stem[3:] == name for script in notebooks.scripts()):
        sys.exit(f"NAME: got {name}, which is a note already; choose another, or edit that one")
    script = lay(name)
    enter(script)
    ledger = collect(ROOT)
    locks.write(locks.wanted(ledger, prose.check(ledger, ROOT)))
    print(f"notebooks/{script.name} and its notebook are laid, in the navigation, with locks. Edit the script, then: make numbers")


if __name__ == "__main__":
    main()
