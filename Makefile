# Everything goes into .venv at the root; the command is .venv/bin/loadframe.
#   make demo      set up and run the main job on the embedded default (SQLite)
#   make test      set up, with the real servers where that is permitted; linters, types, and all tests but the long ones
#   make test-long the long tests: whole commands on real servers, measurements, kills
#   make test-alone the core's tests without any extension, then those of each extension by itself
#   make install   only set up

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.installed-core
RUN := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
DEV_EXTRAS := mariadb,postgres,service,locust,dev
ALONE := .venv-alone/.installed
MYSQL := .mysql/bin/mysqld
EXTENSIONS := $(wildcard extensions/*/pyproject.toml)
SERVERS := mariadb-server postgresql pgbouncer sysbench nginx squid varnish wrk redis-server redis-tools mandoc chromium iproute2 openssh-server openssh-client strace
PEERS := gdu duc-nox fd-find atop sysstat prometheus-node-exporter

.PHONY: install demo test test-long test-alone mysql check servers bench planted format clean

install: $(RUN)

$(CORE): pyproject.toml constraints.txt scripts/setup-venv
	scripts/setup-venv $(PYTHON) $(VENV)
	@touch $@

$(RUN): pyproject.toml $(EXTENSIONS) constraints.txt scripts/setup-venv
	scripts/setup-venv $(PYTHON) $(VENV) mariadb,postgres,service
	@touch $(CORE) $@

$(DEV): pyproject.toml $(EXTENSIONS) constraints.txt scripts/setup-venv
	scripts/setup-venv $(PYTHON) $(VENV) $(DEV_EXTRAS)
	@touch $(CORE) $(RUN) $@

# Made from scratch: a package left by an earlier version would hide that one is missing now.
$(ALONE): pyproject.toml constraints.txt scripts/setup-venv
	rm -rf $(@D)
	scripts/setup-venv $(PYTHON) $(@D) $(DEV_EXTRAS) alone
	@touch $@

demo: $(CORE)
	$(BIN)/loadframe demo

servers:
	scripts/system-packages --or-skip $(SERVERS)

check: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

mysql: $(MYSQL)

$(MYSQL): scripts/unpack-mysql
	scripts/unpack-mysql .mysql || echo "Without it, the tests of MySQL are skipped."

# Debian's packages come while pip and the linters work.
test:
	$(MAKE) --no-print-directory --jobs=3 servers mysql check
	scripts/run-tests --durations=20

test-long:
	$(MAKE) --no-print-directory --jobs=3 servers mysql $(DEV)
	scripts/run-tests --long --durations=20

test-alone:
	$(MAKE) --no-print-directory --jobs=3 servers mysql $(ALONE)
	scripts/test-alone

bench: install servers
	scripts/system-packages --or-skip $(PEERS)
	$(BIN)/python benchmarks/gains.py
	$(BIN)/python benchmarks/gains.py --moved
	$(BIN)/python benchmarks/gains.py render-farm --study burst
	$(BIN)/python benchmarks/gains.py bulk-ingest --study pipelines
	-$(BIN)/python benchmarks/planted_services.py
	-$(BIN)/python benchmarks/first_hour.py
	$(BIN)/python benchmarks/planted.py
	-$(BIN)/python benchmarks/recorder.py
	-$(BIN)/python benchmarks/http_cost.py
	-$(BIN)/python benchmarks/metadata.py
	-$(BIN)/python benchmarks/held_out_metadata.py
	-$(BIN)/python benchmarks/following.py
	$(BIN)/python benchmarks/growth_forecasts.py
	-$(BIN)/python benchmarks/growth_foreign.py
	-$(BIN)/python benchmarks/verdicts.py --live 10
	$(BIN)/python benchmarks/forecasts.py
	-$(BIN)/python benchmarks/forecasts.py --live
	-$(BIN)/python benchmarks/observed.py
	$(BIN)/python benchmarks/observed.py --simulated 4
	$(BIN)/python benchmarks/crash.py
	$(BIN)/python benchmarks/faults.py
	$(BIN)/python benchmarks/fuzz.py
	-$(BIN)/python benchmarks/audit.py
	-$(BIN)/python benchmarks/second_user.py
	-$(BIN)/python benchmarks/spawning.py
	-$(BIN)/python benchmarks/tuning.py
	-$(BIN)/python benchmarks/report.py
	-$(BIN)/python benchmarks/live.py
	-$(BIN)/python benchmarks/watch.py
	-$(BIN)/python benchmarks/watch.py --quiet 6
	-$(BIN)/python benchmarks/watch.py --cost
	-$(BIN)/python benchmarks/tuning_live.py --without mysqltuner
	$(BIN)/python benchmarks/fleet.py
	-$(BIN)/python benchmarks/fleet.py --measured

planted: install servers
	$(BIN)/python benchmarks/planted.py

format: $(DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .venv-alone .mysql build *.egg-info src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
