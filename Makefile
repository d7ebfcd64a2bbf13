# Everything a contributor runs. `make` alone lists it.
#
# The environment is `.venv`, installed from requirements.lock (exact versions, hashes checked, no
# index named) the first time any target needs it, and again only when the lock or pyproject.toml
# changes.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= 2
SEEDS ?= 10000
KILLS ?= 50
AWS_KILLS ?= 200

.DEFAULT_GOAL := help
.PHONY: help setup test lint format types layers unit demo example paper fidelity bench-packing bench-load aws-box docs soak proto lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## build .venv from the lock (done once)

# The pinned uv installs the rest in seconds. It does not read pip's configuration, so where
# packages can only be had through that, pip itself does the same from the same lock.
$(READY): requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > $(VENV)/uv.lock
	$(BIN)/python -m pip install --quiet --require-hashes --requirement $(VENV)/uv.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --requirement requirements.lock \
	  || $(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --offline --no-deps --no-build-isolation \
	  $(patsubst %/pyproject.toml,--editable %,$(wildcard packages/*/pyproject.toml)) --editable .
	@touch $@

test: lint unit ## everything that CI checks: lint, types, layers, tests

lint: format types layers ## ruff, mypy and import-linter

format: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	@$(BIN)/lint-imports --no-logo

unit: $(READY) ## the tests alone (WORKERS=2 processes)
	$(BIN)/pytest --numprocesses $(WORKERS) --dist worksteal

demo: $(READY) ## three jobs packed, migrated and finished on this machine, in under two minutes
	$(BIN)/eva demo

example: $(READY) ## plan the paper's worked example, and say why
	$(BIN)/eva solve --tasks examples/paper-example/tasks.csv --catalog examples/paper-example/catalog.csv

paper: $(READY) ## the paper's evaluation: TRACE=openb_pod_list_default.csv, or a synthetic trace
	$(BIN)/eva experiment run all --out results $(if $(TRACE),--trace $(TRACE))

fidelity: $(READY) ## 32 jobs live and simulated: do the bills agree? (about 8 minutes)
	$(BIN)/python -m benchmarks.fidelity

bench-packing: $(READY) ## how fast and how near the optimum packing is, as tables
	$(BIN)/python -m benchmarks.packing

bench-load: $(READY) ## what one master carries: 1,000 workers, 10,000 tasks, 50 submissions a second
	$(BIN)/python -m benchmarks.load

aws-box: $(READY) ## EC2 in a box until Ctrl-C: what to type to use it is printed (Debian, root, Docker)
	$(BIN)/python -m tests.support.ec2_box

docs: $(READY) ## the documentation as HTML in site/; `make test` checks its links and commands
	$(BIN)/python -m tests.documentation.pages site

soak: $(READY) ## SEEDS=10000 fault schedules, planted bugs, KILLS=50 live, AWS_KILLS=200 on AWS emulated
	$(BIN)/python -m tests.simulation.soak --seeds $(SEEDS) --jobs $(WORKERS)
	$(BIN)/python -m tests.simulation.soak --mutations --jobs $(WORKERS)
	$(BIN)/python -m tests.end_to_end.live.kill_soak --kills $(KILLS)
	$(BIN)/python -m tests.end_to_end.aws.kill_soak --kills $(AWS_KILLS)

proto: $(READY) ## generate the worker protocol's messages from proto/
	PYTHON=$(BIN)/python proto/generate.sh

lock: $(READY) ## resolve requirements.lock anew from pyproject.toml
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --upgrade \
	  --generate-hashes --no-annotate --no-emit-index-url --quiet \
	  --custom-compile-command "make lock" --output-file requirements.lock
	@! grep -n '://' requirements.lock || { echo "requirements.lock must name no index"; exit 1; }

clean: ## remove the environment and every cache
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
