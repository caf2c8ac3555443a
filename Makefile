# Every target first makes a local .venv with the package and its development tools in it.
# Needs python3 (3.10 or later) with venv, and make. Another interpreter: make PYTHON=python3.12 test

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/
INSTALLED := $(VENV)/.installed
WORKERS ?= 2

EXAMPLES = $(sort $(wildcard examples/[0-9]*.py))
BENCHMARKS = $(sort $(wildcard benchmarks/[a-z]*.py))

.PHONY: help demo test test-all check ledger bench
.DEFAULT_GOAL := help

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

# The stamp is younger than pyproject.toml exactly when what it asks for is installed.
$(INSTALLED): pyproject.toml
	@test -x $(RUN)python || $(PYTHON) -m venv $(VENV)
	@$(RUN)python -m pip install -qq --disable-pip-version-check --editable '.[test,plot,dev]'
	@touch $@

demo: $(INSTALLED)  ## run the numbered examples
	@set -e; for script in $(or $(EXAMPLES),$(error no examples/[0-9]*.py to run)); do \
		echo "== $$script"; $(RUN)python $$script; done

test: $(INSTALLED)  ## run the tests, without the slow ones
	@$(RUN)python -m pytest -q -n $(WORKERS) -m "not slow"

test-all: $(INSTALLED)  ## run all tests
	@$(RUN)python -m pytest -q -n $(WORKERS)

check: $(INSTALLED)  ## lint, format, types, import rules
	@$(RUN)ruff check .
	@$(RUN)ruff format --check .
	@$(RUN)mypy linkwise
	@$(RUN)lint-imports --no-cache

ledger: $(INSTALLED)  ## which results of the papers are covered by tests; writes docs/ledger.md
	@$(RUN)python -m tools.ledger

bench: $(INSTALLED)  ## run the benchmarks; each prints a ratio
	@set -e; for script in $(or $(BENCHMARKS),$(error no benchmarks/[a-z]*.py to run)); do \
		echo "== $$script"; $(RUN)python $$script; done
