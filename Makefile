# Each target sets up what it needs. `make demo` and `make test` work in a fresh clone.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
# The libraries we are measured beside live in an environment of their own.
PEERS := .cache/peers
# So does what builds the docs site.
SITE := .cache/docs-site
# So does the server of an object store.
MOTO := .cache/moto
# So do the programs that public files are validated with.
VALIDATORS := .cache/validators
# Spark, too: what `make test` runs must not need it.
SPARK := .cache/spark
# Compiled bytecode makes imports three times as fast; an environment that forbids it would be felt in every command.
export PYTHONDONTWRITEBYTECODE :=
export GX_ANALYTICS_ENABLED := false

.PHONY: help install demo crowd-demo ui spark-demo test test-rest test-studies test-bench test-public test-spark test-storage test-all lint bench bench-noise bench-peers bench-selection bench-solvers bench-crowd bench-storage docs docs-site test-site screenshots plots pins clean

help: ## What can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.installed: requirements.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is needed: install Python 3.11, or say make PYTHON=/path/to/it"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

install: $(VENV)/.installed ## The environment alone

demo: $(VENV)/.installed ## A synthetic log, three months, three private releases
	$(BIN)/qlog demo

$(VENV)/.installed-crowd: $(VENV)/.installed requirements-dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation -c requirements-dev.txt -e '.[crowd]'
	@touch $@

crowd-demo: $(VENV)/.installed-crowd ## Two hundred clients, relays and servers on this machine, and what each party saw
	rm -rf .cache/crowd-demo
	$(BIN)/qlog crowd demo .cache/crowd-demo

ui: $(VENV)/.installed ## Dagster's web UI on the demo's data
	$(BIN)/qlog ui

QUICK := not slow and not faults and not postgresql and not browser and not study and not site and not spark and not storage

# Three workers on two cores: a quarter of the time a test waits for a process or a disk.
test: $(VENV)/.installed-dev ## The suite a developer runs
	$(BIN)/python -m pytest -n 3 --dist worksteal -m "$(QUICK)"

test-rest: $(VENV)/.installed-dev ## What `make test` leaves out: faults, races, canaries, PostgreSQL, browser
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not ($(QUICK)) and not study and not site and not spark and not storage" --ignore tests/benchmarks

test-studies: $(VENV)/.installed-dev ## Whole studies and simulations by the command, on small logs
	$(BIN)/python -m pytest -n 2 --dist worksteal -m study

test-bench: $(VENV)/.installed-dev ## The benchmark measured on small logs, whole: minutes
	$(BIN)/python -m pytest -n 0 -m "not ($(QUICK))" tests/benchmarks

test-public: $(VENV)/.installed-dev $(VALIDATORS)/.installed ## Public files read by frictionless, cffconvert and Polars
	$(BIN)/python -m pytest -n 0 tests/report/test_validators.py

$(SPARK)/.installed: requirements.txt requirements-dev.txt requirements-spark.txt pyproject.toml
	test -x $(SPARK)/bin/python || $(PYTHON) -m venv $(SPARK)
	$(SPARK)/bin/pip install --quiet --disable-pip-version-check -r requirements.txt -r requirements-dev.txt -r requirements-spark.txt
	$(SPARK)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# Rows of the whole releases; the statements run on small tables.
QLOG_SPARK_ROWS ?= 1000000

test-spark: $(SPARK)/.installed ## Every statement and whole releases on Spark beside DuckDB; needs Java 17
	QLOG_SPARK_ROWS=$(QLOG_SPARK_ROWS) $(SPARK)/bin/python -m pytest -n 0 -m spark tests/spark

$(MOTO)/.installed: tests/requirements-moto.txt
	test -x $(MOTO)/bin/python || $(PYTHON) -m venv $(MOTO)
	$(MOTO)/bin/pip install --quiet --disable-pip-version-check --no-deps -r tests/requirements-moto.txt
	@touch $@

test-storage: $(VENV)/.installed-dev $(MOTO)/.installed ## Whole releases with partitions on an object store
	$(BIN)/python -m pytest -n 0 -m storage tests/storage

spark-demo: $(SPARK)/.installed ## One month of a synthetic log, counted by Spark, and the same month by DuckDB
	$(SPARK)/bin/python -m benchmarks.spark_demo

test-all: test test-rest test-studies test-bench test-public test-site test-spark test-storage ## Everything

lint: $(VENV)/.installed-dev ## ruff, mypy, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed-dev $(PEERS)/.installed ## A whole release beside bare DuckDB and the peers
	$(BIN)/qlog bench

bench-noise: $(VENV)/.installed $(PEERS)/.installed ## Noise draws per second beside OpenDP, python-dp and numpy
	$(PEERS)/bin/python -m benchmarks.noise

bench-peers: $(VENV)/.installed-dev $(PEERS)/.installed ## Queries released beside OpenDP and PipelineDP, three months, with a picture
	$(BIN)/python -m benchmarks.peers

bench-selection: bench-peers ## The same, and three months of the demo's log: every figure and picture of docs/selection.md
	$(BIN)/python -m benchmarks.steered_months

bench-solvers: $(VENV)/.installed-dev ## The sanitized log's solvers at the paper's size, and a million variables
	$(BIN)/python -m benchmarks.solvers

bench-crowd: $(VENV)/.installed-dev ## Reports that a collector of CrowdLogging takes per second, and shares that give artifacts
	$(BIN)/python -m benchmarks.crowd_load
	$(BIN)/python -m benchmarks.crowd_shares

bench-storage: $(VENV)/.installed-dev $(MOTO)/.installed ## A table in an object store beside the disk
	$(BIN)/python -m benchmarks.object_storage

$(PEERS)/.installed: benchmarks/requirements-peers.txt
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check -r benchmarks/requirements-peers.txt
	@touch $@

$(VALIDATORS)/.installed: tests/requirements-validators.txt
	test -x $(VALIDATORS)/bin/python || $(PYTHON) -m venv $(VALIDATORS)
	$(VALIDATORS)/bin/pip install --quiet --disable-pip-version-check --no-deps -r tests/requirements-validators.txt
	@touch $@

docs: $(VENV)/.installed ## Write the generated pages
	$(BIN)/python -m tools.guarantees_page
	$(BIN)/python -m tools.policy_page
	$(BIN)/python -m tools.api_page

$(SITE)/.installed: tools/site/requirements.txt
	test -x $(SITE)/bin/python || $(PYTHON) -m venv $(SITE)
	$(SITE)/bin/pip install --quiet --disable-pip-version-check -r tools/site/requirements.txt
	@touch $@

docs-site: $(SITE)/.installed ## The docs as a site in .cache/site: offline, every link and anchor checked
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --quiet --strict --config-file tools/site/mkdocs.yml

test-site: docs-site $(VENV)/.installed-dev ## A browser on the docs site, after building it
	$(BIN)/python -m pytest -n 0 -m site

screenshots: $(VENV)/.installed-dev ## The pictures of Dagster and of a release in docs/pictures, taken anew
	PYTHONPATH=tests:. $(BIN)/python -m tools.screenshots

plots: $(VENV)/.installed-dev ## The plots of docs/pictures: what a row needs, by mechanism, and the gallery of studies
	$(BIN)/python -m tools.mechanism_pictures
	$(BIN)/python -m tools.gallery

pins: $(VENV)/.installed-dev ## Write the requirement files from what is installed
	$(BIN)/python tools/pins.py

clean: ## Remove the environment and the demo's data
	rm -rf $(VENV) .cache warehouse
