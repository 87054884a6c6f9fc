# `make demo` and all of `make test…` need nothing but Python: they make their own virtual environments.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LOWEST ?= .venv-lowest
LATEST ?= .venv-latest
# Most of what is installed is never imported. Python compiles the rest when it is, and must keep what it compiled: with
# this variable, which container images set, every process of the tests would compile all libraries again.
INSTALL := -m pip install --quiet --no-compile
unexport PYTHONDONTWRITEBYTECODE
# On Linux, the usual index has torch with CUDA alone. Without a GPU, its build for the CPU is a tenth as large.
CPU_TORCH ?= https://download.pytorch.org/whl/cpu
CONSTRAINTS := constraints.txt
$(LOWEST)/bin/python: CONSTRAINTS := constraints-lowest.txt
$(LATEST)/bin/python: CONSTRAINTS := /dev/null
# Every file in one process, for the sake of its fixtures; the slowest files first (tests/conftest.py).
PYTEST := -m pytest -n 2 --dist loadfile --no-loadscope-reorder
# The tests that need an extra (or, the documents, all of them) and those of benchmarks: `make test` alone runs them.
BESIDE_THE_CORE := conversion/test_onnx.py data/formats/test_docbin.py \
    model/test_encoders.py model/test_lora.py page serving tagging test_documents.py \
    test_spacy_component.py test_benchmarks.py test_site.py test_reference.py test_examples.py \
    training/test_word_vectors.py

# Whatever -j says, one target after the other: one must not install into the environment that another one installs into
# or runs in. `test` alone runs two at a time, in a make of its own.
ifndef MAKE_SIDE_BY_SIDE
.NOTPARALLEL:
endif

.PHONY: demo install quick test suite test-gpu test-lowest test-latest nightly portability docs lint style types format clean

demo: $(VENV)/.installed
	$(BIN)/python -m modeling_triaffine.demo

install: $(VENV)/.installed-test

# After each edit: whether what is said in one place is missed in another. Only files with such tests are imported.
quick: $(VENV)/.installed-test
	$(BIN)/python -m pytest -q -m contract $$(grep -rl --include='*.py' 'mark\.contract' tests)

# mypy needs a minute the first time: it takes what time the tests leave.
test: $(VENV)/.installed-test style
	@$(MAKE) --no-print-directory --jobs 2 MAKE_SIDE_BY_SIDE=1 types suite

suite: $(VENV)/.installed-test
	$(BIN)/python $(PYTEST)

# The tests that need a GPU; `make test` uses the CPU alone, also beside a GPU. Most of the time goes to compiling.
test-gpu: $(VENV)/.installed-test
	TRIAFFINE_TEST_GPU=1 $(BIN)/python -m pytest -n 4 -m gpu tests/acceleration tests/test_cuda.py

# With the lowest versions that setup.cfg allows.
test-lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/python $(PYTEST) $(BESIDE_THE_CORE:%=--ignore=tests/%)

# With the newest versions, which `pip install .` takes.
test-latest: $(LATEST)/.installed
	$(LATEST)/bin/python $(PYTEST) $(BESIDE_THE_CORE:%=--ignore=tests/%)

# The slow ones: a training killed at 1,000 points, every reader and the model's files damaged thousands of times, more
# examples of what hypothesis draws.
nightly: $(VENV)/.installed-test
	TRIAFFINE_KILL_POINTS=1000 TRIAFFINE_EXAMPLES=5000 $(BIN)/python -m pytest -n 2 \
	    tests/training/test_kill_points.py tests/test_fuzzing.py
	TRIAFFINE_EXAMPLES=500 $(BIN)/python -m pytest -n 2 tests/data tests/drawing tests/evaluation
	$(BIN)/python $(PYTEST) -m nightly

# `make test` as on other machines: results may not depend on instruction sets or the number of threads.
portability: $(VENV)/.installed-test
	for threads in 1 2 4; do \
	    for processor in THIS_ONE= ATEN_CPU_CAPABILITY=default ATEN_CPU_CAPABILITY=avx2; do \
	        echo "$$processor $$threads threads"; \
	        env $$processor OMP_NUM_THREADS=$$threads $(BIN)/python $(PYTEST) -q || exit; \
	    done; \
	done

# The documentation as a site, in build/site.
docs: $(VENV)/.installed-test
	$(BIN)/python docs/_site/build.py

lint: style types

style: $(VENV)/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.installed-test
	nice $(BIN)/mypy

format: $(VENV)/.installed-test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# What the targets above made: other models in `outputs` took somebody hours.
clean:
	rm -rf $(VENV) $(LOWEST) $(LATEST) outputs/demo build *.egg-info

# What a failed step leaves is not taken for its result: without ensurepip, `venv` fails after it made $(BIN)/python.
.DELETE_ON_ERROR:

# An environment of an older Python would stay, whatever PYTHON is given next: it is not made. The pip that Python brings
# can be years old and takes 1.6 times the time for the same packages.
%/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "This is Python " + sys.version.split()[0] + "; \
	3.11 or newer is needed. To use another: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv --upgrade-deps $*
	@if [ "$$(uname)" = Linux ] && ! command -v nvidia-smi > /dev/null; then \
	    $@ $(INSTALL) --index-url $(CPU_TORCH) --retries 0 --timeout 15 --no-deps --constraint $(CONSTRAINTS) torch || \
	    echo "$(CPU_TORCH) cannot be reached; torch comes from the usual index, perhaps with CUDA (5 GB)."; \
	fi

$(VENV)/.installed: $(BIN)/python setup.cfg pyproject.toml constraints.txt
	$(BIN)/python $(INSTALL) --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed-test: $(BIN)/python setup.cfg pyproject.toml constraints.txt
	$(BIN)/python $(INSTALL) --constraint constraints.txt --editable '.[test]'
	touch $@ $(VENV)/.installed

$(LOWEST)/.installed: $(LOWEST)/bin/python setup.cfg pyproject.toml constraints-lowest.txt
	$(LOWEST)/bin/python $(INSTALL) --constraint constraints-lowest.txt --editable . \
	    pytest pytest-xdist hypothesis 'setuptools>=70.1'
	touch $@

$(LATEST)/.installed: $(LATEST)/bin/python setup.cfg pyproject.toml
	$(LATEST)/bin/python $(INSTALL) --upgrade --upgrade-strategy eager --editable . \
	    pytest pytest-xdist hypothesis 'setuptools>=70.1'
	touch $@
