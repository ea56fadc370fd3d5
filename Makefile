# Every target works on a fresh machine that has python3 (>= 3.11, with venv and pip), make and git.
# The virtual environment .venv is made once and made anew when setup.py or constraints.txt changes.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
BENCH_READY := .venv/.ready-benchmarks
NOTEBOOKS_READY := .venv/.ready-notebooks
DOCS_READY := .venv/.ready-docs
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

.PHONY: venv demo test test-slow faults lint format bench notebooks notebooks-write docs clean

venv: $(READY)

$(READY): setup.py constraints.txt
	rm -rf .venv
	$(PYTHON) -m venv .venv
	$(INSTALL) ".[dev]"
	touch $@

$(BENCH_READY): $(READY)
	$(INSTALL) ".[dev,benchmarks]"
	touch $@

$(NOTEBOOKS_READY): $(READY)
	$(INSTALL) ".[dev,notebooks]"
	touch $@

$(DOCS_READY): $(READY)
	$(INSTALL) ".[dev,docs]"
	touch $@

demo: venv
	$(BIN)/python -m experiments.demo

test: venv
	$(BIN)/python -m pytest --numprocesses=auto --dist=loadfile --no-loadscope-reorder $(PYTEST_ARGS)

test-slow: venv
	$(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

# Malformed inputs and what comes of them; BEFORE=DIR adds the column of another checkout.
BEFORE ?=
faults: venv
	$(BIN)/python -m tests.faults $(if $(BEFORE),--before=$(BEFORE))

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: venv
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# All benchmarks, or one: make bench NAME=elliptic
NAME ?=
bench: $(BENCH_READY)
	$(BIN)/python -m benchmarks $(NAME)

# Executes all notebooks on tiny settings; with -write as they are published, and keeps outputs.
notebooks: $(NOTEBOOKS_READY)
	$(BIN)/python -m notebooks.build $(NAME)

notebooks-write: $(NOTEBOOKS_READY)
	$(BIN)/python -m notebooks.build --write $(NAME)

# The documentation site, in site/.
docs: $(DOCS_READY)
	$(BIN)/mkdocs build --strict

clean:
	rm -rf .venv build site *.egg-info
