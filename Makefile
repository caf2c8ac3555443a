# Every target first makes a local .venv with the package in it, and what the target needs besides.
# Needs python3 (3.10 or later) with venv, and make. Another interpreter: make PYTHON=python3.12 test

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/
RUNNABLE := $(VENV)/.runnable
INSTALLED := $(VENV)/.installed
PIP = $(RUN)python -m pip install -qq --disable-pip-version-check
WORKERS ?= 2
# Each worker begins with a row of files that are next to each other, and uses again what these have compiled.
PYTEST = $(RUN)python -m pytest -q
IN_PARALLEL = -n $(WORKERS) --dist worksteal
# Workers, the commands that tests run and later runs share the bytecode of tests and package.
unexport PYTHONDONTWRITEBYTECODE

EXAMPLES = $(sort $(wildcard examples/[0-9]*.py))
BENCHMARKS = $(sort $(wildcard benchmarks/[a-z]*.py))

.PHONY: help demo examples gallery docs smoke test test-all test-torch test-view check ledger bench
.DEFAULT_GOAL := help

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

# A stamp is younger than pyproject.toml exactly when what it asks for is installed.
$(RUNNABLE): pyproject.toml
	@test -x $(RUN)python || { echo "setting up $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@$(PIP) --editable '.[plot]'
	@touch $@

$(INSTALLED): $(RUNNABLE)
	@$(PIP) --editable '.[test,plot,dev]'
	@touch $@

demo: $(RUNNABLE)  ## the first minute: tables here, a page with pictures in demo/
	@$(RUN)python -m linkwise demo --output demo

examples: $(RUNNABLE)  ## run the numbered examples; pictures in demo/
	@set -e; for script in $(or $(EXAMPLES),$(error no examples/[0-9]*.py to run)); do \
		echo "== $$script"; $(RUN)python $$script; done

gallery: $(RUNNABLE)  ## the papers' figures and tables, computed again into gallery/
	@$(RUN)python -m linkwise reproduce all --output gallery

gallery/gallery.md: | $(RUNNABLE)
	@$(RUN)python -m linkwise reproduce all --output gallery

docs: $(INSTALLED) gallery/gallery.md  ## the documentation site, in docs/_build/html/; warnings and stale outputs are errors
	@$(PIP) --editable '.[docs]'
	@$(PYTEST) $(IN_PARALLEL) -m "not slow" tests/docs
	@$(RUN)python -m sphinx -q -W --keep-going -n -b html docs docs/_build/html

smoke: $(INSTALLED)  ## a minute: physics, a kernel per target, a file per format, the README
	@$(PYTEST) $(IN_PARALLEL) -m smoke

test: $(INSTALLED)  ## run the tests, without the slow ones
	@$(PYTEST) $(IN_PARALLEL) -m "not slow"

test-all: $(INSTALLED)  ## run all tests
	@$(PYTEST) $(IN_PARALLEL)

test-torch: $(INSTALLED)  ## the tests of gradients in torch, which is installed for them
	@$(PIP) --editable '.[torch]'
	@$(PYTEST) tests/torch

test-view: $(INSTALLED)  ## the tests of the viewer and of pages in a browser (Chromium must be there)
	@$(PYTEST) tests/viewer/browser tests/viewer/test_scene.py tests/viewer/test_pages_in_a_browser.py

check: $(INSTALLED)  ## lint, format, types, import rules, public names
	@$(RUN)ruff check .
	@$(RUN)ruff format --check .
	@$(RUN)mypy
	@$(RUN)lint-imports --no-cache
	@$(RUN)python -m tools.public_api --check

ledger: $(INSTALLED)  ## which results of the papers are covered by tests; writes docs/ledger.md
	@$(RUN)python -m tools.ledger

bench: $(INSTALLED)  ## run the benchmarks; each prints a ratio
	@set -e; for script in $(or $(BENCHMARKS),$(error no benchmarks/[a-z]*.py to run)); do \
		echo "== $$script"; $(RUN)python $$script; done
