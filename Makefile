# Every command of the project. Each lays what it needs on a fresh clone, and nothing the second time.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

fit = import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for python in python3 python python3.13 python3.12 python3.11; do \
	"$$python" -c '$(fit)' 2>/dev/null && { echo "$$python"; exit; }; done; \
	for python in python3 python; do command -v "$$python" >/dev/null 2>&1 && { echo "$$python"; exit; }; done)

run := .venv/bin/python
export NO_MKDOCS_2_WARNING := 1
export PYTHONDONTWRITEBYTECODE :=
export MPLBACKEND := agg

generators := mkdocs properdocs
GENERATOR ?= mkdocs
export GENERATOR
generator = $(if $(filter $(GENERATOR),$(generators)),$(GENERATOR),$(error GENERATOR=$(GENERATOR) is none of: $(generators)))

python := .venv/.laid
assets := tools/node/node_modules/.laid
browser := .venv/.browser
audit := tools/audit/node_modules/.laid

help: ## explain the commands (what `make` alone does)
	@echo 'make COMMAND, where COMMAND is one of'
	@sed -n 's/^\([a-z-]*\):[^#]*## /  \1|/p' Makefile | awk -F'|' '{ printf "  %-15s %s\n", $$1, $$2 }'
	@echo 'Each does its own set-up the first time. It needs Python 3.11 to 3.13 and, that once, the network.'

site: set-up ## build the site into site/ (SITE_URL=https://... for canonical links; GENERATOR=properdocs for the heir of MkDocs)
	@$(run) -m $(generator) build --strict --config-file mkdocs.yml
	@echo 'site/ is built. To look at it: make serve, or python -m http.server -d site'

serve: set-up ## live preview on http://127.0.0.1:8000, following notes, pages and the package (PORT=8001 for another)
	@$(run) -m $(generator) serve --config-file mkdocs.yml --no-strict --dev-addr 127.0.0.1:$(or $(PORT),8000)

test: set-up $(browser) ## all that CI runs (ONLY='word or word': the tests with that in their names)
	@$(run) -m $(generator) build --strict --config-file mkdocs.yml --site-dir .cache/site
	@$(run) -m pytest $(PYTEST) $(if $(ONLY),-k '$(ONLY)')

lint: $(python) ## what no test looks at: style, types, spelling, workflow files; pairs and numbers too
	@git ls-files -z --cached --others --exclude-standard --deduplicate | xargs -0 .venv/bin/pre-commit run --files

habits: $(python) ## have git run the same before each commit
	@.venv/bin/pre-commit install

matrix: $(python) ## the tests under each Python from 3.11 to 3.13, with the pins (ARGS=3.12 for one; ONLY=word)
	@ONLY='$(ONLY)' $(run) tools/matrix.py $(ARGS)

canary: $(python) ## the tests with the newest of everything
	@ONLY='$(ONLY)' $(run) tools/matrix.py --canary $(ARGS)

licences: $(python) ## list the licences of all that is pinned, in LICENCES.md
	@$(run) tools/licences.py

oracle-vllm: $(python) ## ask a vLLM release's own planner, CPU only: some 45 MB once, then seconds (VERSION=0.33.0; WRITE=1: golden cases; AGAINST=0.32.0: only what changed)
	@$(run) tools/oracle_vllm.py '$(VERSION)' $(if $(WRITE),--write) $(if $(AGAINST),--against '$(AGAINST)') $(ARGS)

oracle-llamacpp: $(python) ## ask a real build of llama.cpp, CPU only: 7 MB once, then some 5 minutes (VERSION=b11739; FEW=1, WRITE=1, ONLY=name)
	@$(run) tools/oracle_llamacpp.py --version '$(VERSION)' $(if $(FEW),--few) $(if $(WRITE),--write) $(if $(ONLY),--only '$(ONLY)')

coverage: $(python) ## lines and branches of the package that its tests reach: at least 95%
	@$(run) -m pytest tests/unit aelius_math --cov --cov-report=term

note: $(python) ## lay a new note, which passes as it stands (NAME=where_it_ends)
	@$(run) tools/note.py '$(NAME)'

notebooks: $(python) ## execute the notes that changed and store their outputs (FORCE=1: every note)
	@$(run) tools/notebooks.py $(if $(FORCE),--force)

numbers: $(python) ## run what depends on a changed number, show what moved, rewrite the prose, lock the bindings
	@$(run) tools/restate.py

compare: set-up ## build the site with MkDocs and with its heir, and compare them file by file
	@$(run) tools/compare.py $(generators)

proof: set-up ## spoil every number of every note and page, and report what the checks let through
	@$(run) tools/proof.py

mutants: $(python) ## break the package in small ways, and report what its tests let through (ARGS="module count seed")
	@$(run) tools/mutants.py $(ARGS)

bench: $(python) ## time the package: medians
	@for script in tests/bench/*.py; do $(run) $$script || exit 1; done

simulate: $(python) ## re-make the long runs of the simulation (half an hour of one core; JOBS=4 for four, ONLY="now idle")
	@$(run) tools/simulate.py --jobs $(or $(JOBS),1) $(if $(ONLY),--only $(ONLY))

fuzz: $(python) ## feed the readers of configs, logs and GGUF files with nonsense (ARGS='count seed')
	@for script in tests/fuzz/*.py; do $(run) $$script $(ARGS) || exit 1; done

picture: site $(browser) ## take the README's picture of the site (needs Chromium)
	@$(run) tools/picture.py

audit: site $(browser) $(audit) ## Lighthouse over the built site and the speed of Your rig, beside the budgets (RUNS=1 for a quick look, PAGE='the ledger' for that alone)
	@$(if $(PAGE),,$(run) tools/audit/rig.py)
	@$(run) tools/audit/run.py --runs $(or $(RUNS),5) $(if $(PAGE),--page '$(PAGE)')

requirements: $(python) ## resolve requirements.in anew into requirements.txt (KEEP=1: keep each pin that still serves)
	@.venv/bin/uv pip compile requirements.in -o requirements.txt $(if $(KEEP),,--upgrade) --universal --python-version 3.11 \
		--fork-strategy fewest --generate-hashes --no-emit-index-url --custom-compile-command 'make requirements' --quiet
	@echo 'requirements.txt is resolved; the next command installs it.'

clean: ## remove all that the commands made
	rm -rf .venv .cache site tools/node/node_modules tools/audit/node_modules .pytest_cache .hypothesis .ruff_cache .mypy_cache .coverage *.egg-info
	find . -name __pycache__ -type d -exec rm -rf {} +

set-up: $(python) $(assets)

$(python): requirements.txt pyproject.toml tools/set_up.py
	@test -n '$(PYTHON)' || { echo 'set-up: no Python found. Install Python 3.11 to 3.13 (Debian and Ubuntu:' \
		'apt-get install python3 python3-venv), or say where it is: make PYTHON=/path/to/python site' >&2; exit 1; }
	@'$(PYTHON)' tools/set_up.py python
	@touch $@

$(assets): tools/node/package-lock.json tools/set_up.py | $(python)
	@'$(PYTHON)' tools/set_up.py assets
	@touch $@

$(audit): tools/audit/package-lock.json | $(python)
	@'$(PYTHON)' tools/set_up.py audit
	@touch $@

$(browser): tools/set_up.py | $(python)
	@'$(PYTHON)' tools/set_up.py browser
	@touch $@

.PHONY: help site serve test lint habits coverage matrix canary licences note notebooks numbers oracle-vllm oracle-llamacpp compare proof mutants bench simulate fuzz picture audit requirements clean set-up
