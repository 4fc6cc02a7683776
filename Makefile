# Each target sets up what it needs. `make run` and `make test` work on a fresh machine with Python 3.11+.
PYTHON ?= python3
BIN := .venv/bin
RECIPE ?= textworld-tiny
CYCLE ?= cycle
ROWS ?=
RUN ?=

# Each module is compiled once, and not by each of the many processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test suite lint bench throughput evidence ablations methods backbone faults nights power up engines

run: .venv/installed
	$(BIN)/dreamgym run $(RECIPE)

test: lint suite

suite: .venv/installed-dev
	$(BIN)/python -m pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: .venv/installed-dev
	$(BIN)/python -m tests.benchmarks.run $(or $(ROWS),$(CYCLE))

throughput: .venv/installed-dev
	$(BIN)/python -m tests.benchmarks.throughput $(RUN)

faults: .venv/installed-dev
	$(BIN)/python -m tests.faults.run --large

nights: .venv/installed-dev
	$(BIN)/python -m tests.benchmarks.nights

power: .venv/installed-dev
	$(BIN)/python -m tests.benchmarks.gate_power

evidence: .venv/installed
	$(BIN)/python -m flows.evidence $(RECIPE)

ablations: .venv/installed
	$(BIN)/python -m flows.evidence $(RECIPE) --ablations

methods: .venv/installed
	$(BIN)/python -m flows.try_methods

backbone: .venv/installed
	$(BIN)/python -m tasks.backbones.pretrain_backbone models/backbones/textworld-tiny

up: .venv/installed-server
	$(BIN)/dreamgym up

engines: .venv/installed
	$(BIN)/python -m infra.engines.vllm_environment

.venv/bin/python:
	$(PYTHON) -m venv .venv

# Modules are compiled when they are first imported, as most of the packages' never are.
.venv/installed: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --no-compile -c constraints.txt torch==2.13.0 -e .
	touch $@

.venv/installed-server: .venv/installed
	$(BIN)/pip install --quiet --no-compile -c constraints.txt -e '.[server]'
	touch $@

.venv/installed-dev: .venv/installed
	$(BIN)/pip install --quiet --no-compile -c constraints.txt -e '.[dev]'
	touch $@
