# Every command makes the virtual environment it needs in .venv and says what it does. A file
# .venv/installed-EXTRA, newer than pyproject.toml, means that the extra is there already.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
WORKERS ?= 2

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
say = @echo "==> $(1)"

# The extras that these bring along.
WITH_test := demo notebooks
WITH_dev := bench docs test $(WITH_test)

# Compiled kernels are kept here, so that workers and later runs share them.
JAX_CACHE := JAX_COMPILATION_CACHE_DIR="$(CURDIR)/.cache/jax" \
    JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0.04 \
    JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1

.DEFAULT_GOAL := help
.PHONY: help demo test smoke lint types format generated bench notebooks docs dev clean

help:  ## this list
	@echo "make COMMAND, where COMMAND is one of"
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-9s %s\n", $$1, $$2 }' Makefile
	@echo "PYTHON=... chooses the interpreter (3.11 or newer), WORKERS=... the test processes,"
	@echo "ARGS=... is passed on to the demo, the tests or the benchmarks."

demo: $(VENV)/installed-demo  ## install the package and run its demonstration
	$(call say,running python -m dyngraph.demo)
	@$(BIN)/python -m dyngraph.demo $(ARGS)

test: $(VENV)/installed-test  ## install the package and run its tests
	$(call say,running the tests in $(WORKERS) processes)
	@$(JAX_CACHE) $(BIN)/python -m pytest --numprocesses=$(WORKERS) --dist=worksteal $(ARGS)

smoke: $(VENV)/installed-test  ## run the quick tests that the commit hook runs
	$(call say,running the smoke tests)
	@$(JAX_CACHE) $(BIN)/python -m pytest -m smoke --quiet $(ARGS)

lint: $(VENV)/installed-dev  ## check the formatting and the style
	$(call say,ruff format --check)
	@$(BIN)/ruff format --check .
	$(call say,ruff check)
	@$(BIN)/ruff check .

types: $(VENV)/installed-dev  ## check the types
	$(call say,pyright)
	@$(BIN)/pyright --pythonpath $(BIN)/python

format: $(VENV)/installed-dev  ## format the code and mend what ruff can mend
	$(call say,ruff format and ruff check --fix)
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

generated: $(VENV)/installed-test  ## write what is written from the operators, after one was added
	$(call say,writing dyngraph/__init__.py and methods.pyi, docs/operators.md and names.md)
	@$(BIN)/python -c "from dyngraph.generated import write; write()"
	@$(BIN)/python docs/operators.py
	@$(BIN)/python docs/names.py

bench: $(VENV)/installed-bench  ## print the table of benchmarks
	$(call say,running python -m bench)
	@$(BIN)/python -m bench $(ARGS)

notebooks: $(VENV)/installed-notebooks  ## execute the notebooks and keep what they put out
	$(call say,executing the notebooks)
	@$(BIN)/python notebooks/execute.py $(ARGS)

docs: $(VENV)/installed-docs  ## build the documentation's site
	$(call say,building the site into .cache/site)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

dev: $(VENV)/installed-dev  ## install everything for work on the package, and the commit hook
	$(call say,installing the commit hook)
	@$(BIN)/pre-commit install

clean:  ## remove the environment, caches and build products
	$(call say,removing .venv and caches)
	@rm -rf $(VENV) .cache .hypothesis build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Python compiles by itself what it imports of these, which is less than all.
$(VENV)/installed-%: pyproject.toml | $(VENV)/made
	$(call say,installing dyngraph[$*] into $(VENV) (a first time downloads JAX))
	@$(PIP) install --no-compile --editable ".[$*]"
	@touch $@ $(WITH_$*:%=$(VENV)/installed-%)

# Some systems package Python's venv without pip; then the interpreter's own pip fills it.
$(VENV)/made:
	$(call say,making a virtual environment in $(VENV) with $(PYTHON))
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	    f"dyngraph needs Python 3.11 or newer, this is {sys.version}; choose with make PYTHON=...")'
	@"$(PYTHON)" -m venv $(VENV) >/dev/null 2>&1 || { \
	    echo "==> this Python makes environments without pip: using its own pip"; \
	    "$(PYTHON)" -m venv --without-pip $(VENV) && \
	    "$(PYTHON)" -m pip --quiet --python $(BIN)/python install pip; }
	@touch $@
