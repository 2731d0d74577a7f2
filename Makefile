# `make check` does what CI does. Everything runs in .venv, which `make setup` builds from the pinned versions.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
STAMP := $(VENV)/.installed
RELEASES := $(VENV)/.releases
SERVES := $(VENV)/.serves
DEMO := build/demo
PEERS := .peers
NEEDS := benchmarks/contenders/requirements
TIER ?= commit
HOURS ?= 1
MEASURED := build/bench.json
MEASURED_BIG := build/bench-big.json
CONSOLE := $(VENV)/.console
CODE := src tests console $(wildcard benchmarks examples prove docs release)
WHOLE := faults mutants twin acceptance alerts app archive batch benchmarks cli client docs examples http integrations ops packaging pipeline \
	processes schedule prove store/invariants testing views worker
# Tests that repair: a database that a later release has migrated is repaired by that release only.
REPAIRS := test_committed_before.py test_job_claim_each.py

.DEFAULT_GOAL := help
.PHONY: help demo console docs setup console-build console-check quick test faults simulate prove prove-report soak lint types house check peers bench bench-quick bench-big bench-report dist format clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 13

demo: $(RUNS) $(CONSOLE) ## see it work, and see a worker die
	@$(BIN)/detent demo --directory $(DEMO)
	@echo 'To see in the console what the demo left behind: make console'

console: $(SERVES) $(CONSOLE) ## open the console on what the demo left behind
	@test -f $(DEMO)/demo.db || { echo 'There is no demo to look at. Run `make demo` first.' >&2; exit 1; }
	@$(BIN)/detent server detent.cli.demo.shop:app --database sqlite:///$(abspath $(DEMO))/demo.db

docs: $(STAMP) ## build the documentation as a site with search, in build/site
	@$(BIN)/python -m docs.build_site

setup: $(STAMP) $(CONSOLE) ## create .venv with everything that tests need

$(RUNS): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Detent needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(SERVES): $(RUNS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[server]'
	@touch $@

$(STAMP): $(RUNS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[postgres,dev]'
	@touch $@

$(RELEASES): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[release]'
	@touch $@

# A failure, as without a network, is not an error: the server then says how to build the console.
$(CONSOLE): $(RUNS) console/build.py console/package.json console/vite.config.ts console/index.html \
		$(shell find console/src console/public -type f 2> /dev/null)
	@$(BIN)/python console/build.py --try
	@touch $@

console-build: $(RUNS) ## build the console into the package, with Node from PyPI if none is installed
	@$(BIN)/python console/build.py

dist: $(RELEASES) $(CONSOLE) ## what is published, in dist: wheel, source archive, bill of materials, checksums (docs/release.md)
	@$(BIN)/python -m release.dist dist

console-check: $(STAMP) ## check the types of the console against the description of the HTTP API
	@$(BIN)/python -m tests.console.types_check

quick: $(STAMP) ## tests for the inner loop: SQLite only, no other processes, about a minute
	$(BIN)/python -m pytest --quick -q -n 2 --dist worksteal

# Twice as many workers as cores: tests of processes wait for leases and time-outs most of their time.
test: $(STAMP) $(CONSOLE) ## all tests, on SQLite and on a real PostgreSQL, with a slice of the faults
	$(BIN)/python -m tests.repeat -n 4 --dist worksteal

faults: $(STAMP) ## kills, lost answers, crashes of the database: the whole (up to an hour; docs/faults.md)
	$(BIN)/python -m pytest --whole -s $(addprefix tests/,$(WHOLE))
	$(BIN)/python -m pytest --wider tests/contract $(addprefix --ignore=tests/contract/jobs/,$(REPAIRS))

simulate: $(STAMP) ## real workers on a database in memory, with faults, by seed: 20,000 schedules (docs/reliability.md)
	$(BIN)/python -m prove simulate --schedules 20000

prove: $(STAMP) ## every proof as a figure in one table: TIER=commit (default), nightly or release (docs/reliability.md)
	$(BIN)/python -m prove run --tier $(TIER) $(if $(SEED),--seed $(SEED))

prove-report: $(STAMP) ## put the last `make prove` into docs/reliability.md
	$(BIN)/python -m prove report

soak: $(STAMP) ## a steady load with faults: nothing may grow. HOURS=1, DATABASE=sqlite or postgresql (default: both)
	$(BIN)/python -m prove soak --hours $(HOURS) $(if $(DATABASE),--database $(DATABASE)) $(if $(SEED),--seed $(SEED))

lint: $(STAMP) ## ruff: rules and format
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)

types: $(STAMP) ## mypy --strict
	$(BIN)/mypy --strict $(CODE)

house: $(STAMP) ## the rules of the house: rooms, touch table, files
	$(BIN)/python -m pytest -q tests/house

check: lint types house console-check test ## what CI runs

peers: $(PEERS)/.installed ## install those we are measured against, each into an environment of its own

$(PEERS)/.installed: $(wildcard $(NEEDS)/*)
	for needs in $(NEEDS)/*.txt; do \
		home=$(PEERS)/$$(basename $$needs .txt); \
		$(PYTHON) -m venv $$home && $$home/bin/python -m pip install --quiet -r $$needs || exit 1; \
	done
	mkdir -p $(PEERS)/node
	cp $(NEEDS)/package.json $(PEERS)/node/
	if command -v npm > /dev/null; then npm install --prefix $(PEERS)/node --no-package-lock --no-audit --no-fund; \
		else echo "no npm here: graphile-worker will not be run"; fi
	@touch $@

bench: $(STAMP) ## Detent, the raw limit and the peers in one run, as ratios (docs/performance.md)
	-@$(MAKE) --no-print-directory peers
	$(BIN)/python -m benchmarks contest --to $(MEASURED)

bench-big: $(STAMP) ## a drain beside 10 million finished jobs, against an empty database (up to 15 GB of disk)
	$(BIN)/python -m benchmarks big --to $(MEASURED_BIG)

bench-report: $(STAMP) ## put what `make bench` and `make bench-big` measured into docs/performance.md
	$(BIN)/python -m benchmarks report $(MEASURED) $(wildcard $(MEASURED_BIG))

bench-quick: $(STAMP) ## the same in two minutes, with less work and without the peers
	$(BIN)/python -m benchmarks contest --quick

format: $(STAMP) ## put the code into ruff's format
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

clean: ## remove .venv and all caches
	rm -rf $(VENV) $(PEERS) console/node_modules src/detent/http/console_files build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
