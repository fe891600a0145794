# Every target sets up what it needs first. The second time that takes a fraction of a second.

FLEET ?= examples/arena
PKG   ?=
ARGS  ?=
# Workers for the tests: most wait for processes, so more than there are processors. A file is run by
# one of them, as what it starts is shared by its tests.
JOBS  ?= 4
SECONDS ?= 60
BENCH ?= $(patsubst benchmarks/%,%,$(basename $(wildcard benchmarks/*.py)) $(patsubst %/__main__.py,%,$(wildcard benchmarks/*/__main__.py)))

BIN  := .venv/bin
ATHERIS = $$(sed -n 's/^fuzz = \["\(.*\)"\]/\1/p' pyproject.toml)
FAST := -m "not slow" --ignore=tests/e2e --ignore=tests/simulation -n $(JOBS)

.PHONY: help setup up down test sim check fuzz golden fmt bench lock

help: ## say what there is to make
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/:[^#]*## /\t/' | expand -t 10

setup: ## make this checkout ready: system packages, .venv, the project in it
	@sh tools/setup.sh

up: setup ## run a fleet on this machine (FLEET=examples/arena)
	@$(BIN)/keyplane up $(FLEET)

down: setup ## stop the control plane; the services go on (ARGS=--units stops them too)
	@$(BIN)/keyplane down $(FLEET) $(ARGS)

test: setup ## the whole suite, or one package's unit tests (PKG=planner)
	@$(BIN)/python -m pytest $(if $(PKG),tests/unit/$(PKG),-n $(JOBS) --dist loadfile --no-loadscope-reorder) $(ARGS)

sim: setup ## simulated fleets with drawn faults (SEEDS=500, or SEED=123 with its log)
	@$(BIN)/python -m keyplane.testing.simulation $(if $(SEED),--seed $(SEED),$(if $(SEEDS),--seeds $(SEEDS))) $(ARGS)

check: setup ## format, lint, types, layers, spelling and the fast tests
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports --no-logo > .venv/check.log || { cat .venv/check.log; exit 1; }
	@$(BIN)/codespell
	@if command -v shellcheck >/dev/null; then shellcheck .ci/run $$(git ls-files '*.sh'); fi
	@$(BIN)/pyright --warnings
	@$(BIN)/python -m pytest -q $(FAST) $(ARGS)

fuzz: setup ## look for fleets and Starlark that break the planner, guided by coverage (SECONDS=60)
	@$(BIN)/python -c "import atheris" 2>/dev/null || $(BIN)/python -m pip install -qq $(ATHERIS)
	@$(BIN)/python -m tests.fuzz $(SECONDS)

golden: setup ## record the plans of tests/golden anew, to be read line by line
	@$(BIN)/python -m tests.golden

fmt: setup ## format, and mend what can be mended
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format --quiet .

bench: setup ## measure everything, or one benchmark (BENCH=spawn; ARGS goes to it)
	@for each in $(BENCH); do echo "== $$each"; $(BIN)/python -m benchmarks.$$each $(ARGS) || exit; done

lock: setup ## write requirements.lock anew (ARGS=--upgrade for the newest of all)
	@sh tools/lock.sh $(ARGS)
