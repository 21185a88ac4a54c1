# Everything a developer types. Needs Python 3.11 or later, git and make; all else goes into .venv.
# Only relative paths are used, so that the checkout may live in a folder with spaces in its name.

VENV  := .venv
PY    := $(VENV)/bin/python
STAMP := $(VENV)/.installed
ARGS  ?=
SEEDS ?= 50000

# The first Python on this machine that is new enough; `make PYTHON=... setup` decides otherwise.
PYTHON ?= $(shell for each in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$each && break; done)

# An environment that was moved or copied here would test the tree it came from: make it anew.
ifneq "$(shell cat $(STAMP) 2>/dev/null)" "$(CURDIR)"
.PHONY: $(STAMP)
endif

.DEFAULT_GOAL := help
.PHONY: help setup check test lint format demo bench soak clients docs clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

setup: $(STAMP) ## create .venv and install loopr with its development tools; skipped while pyproject.toml is unchanged

$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { echo 'loopr needs Python 3.11 or later, and none was found.' \
		'Install one, or name it: make PYTHON=/path/to/python3.12 setup' >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { echo '$(PYTHON) cannot create environments:' \
		'its venv module is missing. On Debian and Ubuntu: apt install python3-venv' >&2; exit 1; }
	@echo "setting up $(VENV) (once; a minute or so)"
	@rm -f $(STAMP)
	@"$(PYTHON)" -m venv --clear $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@printf '%s\n' "$$(pwd -P)" > $(STAMP)

check: lint ## the short way: style, types, layers, and the tests of all that decides (about a minute)
	$(PY) -m pytest tests/core $(ARGS)

test: lint ## run what CI runs: style, types, layers, and every test (half an hour on two cores; ARGS="-k name" for some)
	$(PY) -m pytest $(ARGS)

lint: setup ## check style, format, types and layers
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports --no-logo

format: setup ## mend style and format where a tool can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

demo: setup ## drive a small tree of work, from a plan to landed commits
	@PATH="$$PWD/$(VENV)/bin:$$PATH" sh examples/quickstart/demo.sh

bench: setup ## measure, and write what was measured to docs/benchmarks.md
	$(PY) tests/bench/run.py $(ARGS)

soak: setup ## run the simulation over SEEDS seeds, and the tests that take minutes
	$(PY) -m pytest tests/sim tests/world tests/agents tests/e2e -m 'soak or not soak' --seeds=$(SEEDS) --hypothesis-profile=soak --timeout=3600 $(ARGS)

clients: setup ## install the real agents that tests drive, at pinned versions, and run those tests
	-$(PY) -m tests.standin.clients # what cannot be had is named, and its tests are skipped
	$(PY) -m pytest -m clients $(ARGS)

docs: setup ## write the generated pages of docs/ anew
	$(PY) docs/generate.py

clean: ## remove .venv, caches and builds; never touches worktrees or loopr's state
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find loopr tests docs examples -name __pycache__ -type d -prune -exec rm -rf {} +
