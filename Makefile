# Everything a checkout needs, for an ordinary user with Python 3.11 to 3.13, make and the package index.
# `make PYTHON=/path/to/python3.12` chooses the interpreter of a new .venv.

.DEFAULT_GOAL := help
SHELL := /bin/sh
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input

ADAPTERS ?= $(shell sed -n 's/^adapter-\([a-z_]*\) = .*/\1/p' pyproject.toml)
RECIPES ?= $(shell sed -n 's/^recipe-\([a-z_]*\) = .*/\1/p' pyproject.toml)

.PHONY: help venv demo bench bench-full bench-rivals test test-adapters test-recipes test-all lint format sync clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-19s %s\n", $$1, $$2 }'

venv: .venv/.dev  ## make .venv with the project (editable), its extras, the lint tools and the test tools

demo: .venv/.run  ## agents pause, are answered and go on elsewhere: a show of two minutes
	$(BIN)/broker demo

bench: .venv/.bench  ## the broker beside Redis by hand: table and plot into benchmarks/results, under five minutes
	$(BIN)/python -m benchmarks

bench-full: .venv/.bench  ## every measure, most of an hour: benchmarks/results/latest.json (RUNS=file of recorded runs)
	$(BIN)/python -m benchmarks --full $(if $(RUNS),--runs $(RUNS))

bench-rivals: .venv/.run  ## what a user would pick instead, beside the broker: one table (installs them into .rivals)
	$(BIN)/python -m benchmarks.rivals

test: .venv/.dev  ## every test that needs nothing installed by root
	$(BIN)/python -m pytest -n auto -m 'not system'

test-adapters: $(ADAPTERS:%=.envs/%/.made)  ## the suite of the adapters, each in an environment with only its extra (ADAPTERS=langgraph)
	@for adapter in $(ADAPTERS); do \
	    echo "== $$adapter"; \
	    BROKER_TEST_REQUIRE= BROKER_TEST_ADAPTER=$$adapter .envs/$$adapter/bin/python -m pytest -n auto tests/adapters || exit 1; \
	done

test-recipes: $(RECIPES:%=.envs/recipe-%/.made)  ## the how-tos of frameworks without an adapter, each with the real packages (RECIPES=strands)
	@for recipe in $(RECIPES); do \
	    echo "== $$recipe"; \
	    BROKER_TEST_REQUIRE= BROKER_TEST_RECIPE=$$recipe .envs/recipe-$$recipe/bin/python -m pytest -n auto tests/recipes || exit 1; \
	done

test-all: $(if $(TESTED),,test) test-adapters test-recipes .venv/.dev  ## make test, then what root adds (all servers found, a second user, an engine), and the drills at full size
	$(BIN)/python -m pytest -n auto --servers all --drills full -m 'system or every_server or drill'

lint: .venv/.dev  ## format, rules, types, import contracts, sizes, the generated twin
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pyright --verifytypes broker --ignoreexternal
	$(BIN)/lint-imports
	$(BIN)/python tests/tools/sizes.py
	$(BIN)/python tests/tools/unasync.py --check

format: .venv/.dev  ## put imports in order and format
	$(BIN)/ruff check --fix-only --select I001 .
	$(BIN)/ruff format .

sync: .venv/.dev  ## write the blocking twin, broker/_sync and tests/clients/_sync, anew
	$(BIN)/python tests/tools/unasync.py

clean:  ## remove .venv, .rivals, caches and built files
	rm -rf .venv .envs .rivals build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# The interpreter is the first one that runs, is of a supported version and can make environments. Names on PATH
# may be stubs that only print an error, so each is tried.
.venv/.made:
	@for python in "$(PYTHON)" python3 python3.13 python3.12 python3.11 python; do \
	    test -n "$$python" || continue; \
	    "$$python" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	        >/dev/null 2>&1 || continue; \
	    echo "making .venv with $$("$$python" --version) ($$python)"; \
	    rm -rf .venv && "$$python" -m venv .venv || exit 1; \
	    touch $@; exit 0; \
	done; \
	echo "No Python 3.11 to 3.13 with its venv module was found (on Debian: the packages python3 and python3-venv)." >&2; \
	echo "Name one with: make venv PYTHON=/path/to/python3" >&2; exit 1
	$(PIP) install --quiet --upgrade 'pip>=25.1'

# Kept from run to run. Made by uv, which takes seconds where everything is in its cache.
.envs/%/.made: pyproject.toml | .venv/.dev
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .envs/$*
	$(BIN)/uv pip install --quiet --python .envs/$*/bin/python -e '.[$*,embedded]' --group adapter-$*
	@touch $@

.envs/recipe-%/.made: pyproject.toml | .venv/.dev
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .envs/recipe-$*
	$(BIN)/uv pip install --quiet --python .envs/recipe-$*/bin/python -e '.[embedded,schema]' --group recipe-$*
	@touch $@

# Three stamps: the demo and the benchmarks need no lint or test tools. They are made anew when pyproject.toml changes.
.venv/.run: pyproject.toml | .venv/.made
	$(PIP) install --quiet -e '.[cli]'
	@touch $@

.venv/.bench: pyproject.toml | .venv/.made
	$(PIP) install --quiet -e '.[cli]' --group bench
	@touch .venv/.run $@

.venv/.dev: pyproject.toml | .venv/.made
	$(PIP) install --quiet -e '.[cli,gateway,slack,notify,testing]' --group dev
	@touch .venv/.run .venv/.bench $@
