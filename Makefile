# `make demo`, `make test` and `make test-lowest` need nothing but Python: they make their own virtual environments.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LOWEST ?= .venv-lowest
# The tests that need an extra (or, the documents, all of them) and those of benchmarks: `make test` alone runs them.
BESIDE_THE_CORE := data_docbin documents encoders lora page parts_of_speech serving space spacy_component tag_corpus \
    throughput word_embeddings

.PHONY: demo test test-lowest lint format clean

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

test: $(VENV)/.installed-test lint
	$(BIN)/python -m pytest -n 2

# With the lowest versions that setup.cfg allows.
test-lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/python -m pytest -n 2 $(BESIDE_THE_CORE:%=--ignore=tests/test_%.py)

lint: $(VENV)/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.installed-test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) $(LOWEST) outputs build *.egg-info

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python setup.cfg pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed-test: $(BIN)/python setup.cfg pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test]'
	touch $@ $(VENV)/.installed

$(LOWEST)/.installed: setup.cfg pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --constraint constraints-lowest.txt --editable '.[plot]' \
	    pytest pytest-xdist hypothesis
	touch $@
