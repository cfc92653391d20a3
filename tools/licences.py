"""Lists the licence of each pinned requirement, as its own metadata states it, in LICENCES.md. `make licences` runs it."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parent.parent
HEAD = """# Licences of what the project is made with

The package `aelius_math` itself needs none of these: its core is the standard library. What is listed is what
`requirements.txt` pins, as each states it in its metadata; `make licences` writes this page. The browser's parts are
listed in `tools/node/package.json`, the fonts in `docs/assets/fonts/`. The project itself: MIT, see `LICENSE`.

| package | licence |
|---|---|
"""


def licence(name: str) -> str:
    """The licence as the package states it: the expression, the classifiers, or the first line of the field."""
    try:
        stated = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return "not installed on this system"
    classifiers = [line.split(" :: ")[-1] for line in stated.get_all("Classifier") or [] if line.startswith("License ::")]
    field = (stated.get("License") or "").strip().splitlines()
    found = stated.get("License-Expression") or ", ".join(classifiers) or (field[0] if field else "")
    return found.replace("|", "/") or "not stated"


def main() -> None:
    pinned = re.findall(r"^([a-zA-Z0-9._-]+)==", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.MULTILINE)
    rows = {name: licence(name) for name in pinned}
    lines = [f"| {name} | {found} |\n" for name, found in rows.items()]
    (ROOT / "LICENCES.md").write_text(HEAD + "".join(lines), encoding="utf-8")
    unstated = [name for name, found in rows.items() if found == "not stated"]
    print(f"LICENCES.md: {len(rows)} packages" + (f"; no licence stated by {', '.join(unstated)}" if unstated else ""))


if __name__ == "__main__":
    main()
