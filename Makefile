# Signalbox. `make` lists what can be done.
#
# PYTHON=/path/to/python3.11 picks the interpreter of .venv; without it the newest suitable one on PATH is taken.
# ARGS="..." goes on to the command behind a target: make test ARGS="tests/engine -x", make demo ARGS="--port 9000".

VENV := .venv
PY := $(VENV)/bin/python
ARGS :=
SUITE :=
# One process more than cores, as tests wait for servers, and four at most; or PYTEST_XDIST_AUTO_NUM_WORKERS of them. Each has
# servers of its own, and four need some 3 GB. ARGS="-n 0" is one process.
PROCESSES := $(or $(PYTEST_XDIST_AUTO_NUM_WORKERS),$(shell expr $$(getconf _NPROCESSORS_ONLN) + 1))
PARALLEL := -n $(PROCESSES) --maxprocesses $(or $(PYTEST_XDIST_AUTO_NUM_WORKERS),4) --dist worksteal
export PYTHON
# Tests start many Python processes: these keep compiled modules in a folder of ours, whatever the shell says.
test test-all engine-on-redis: export PYTHONDONTWRITEBYTECODE :=
test test-all engine-on-redis: export PYTHONPYCACHEPREFIX := $(CURDIR)/.venv/pycache

.DEFAULT_GOAL := help
.PHONY: help demo test test-all fuzz check bench bench-queues bench-room bench-cluster conformance screenshots docs wheel release audit lock format lint types engine-on-redis

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

demo: ## a live control room on this machine: server, sample machines, worker, traffic, site
	@.ci/venv requirements.txt && exec $(PY) manage.py demo --with-parent $(ARGS)

test: ## the tests in a few minutes, on a real Valkey that they start; says at its end what it leaves out
	@.ci/venv requirements-dev.txt && exec $(PY) -m pytest $(PARALLEL) --quick $(ARGS)

test-all: ## all tests, the slow kinds too: ARGS="-m browser" for one kind
	@.ci/venv requirements-dev.txt && exec .ci/test-all $(PY) $(PARALLEL) $(ARGS)

fuzz: ## random input of a seed, until something gives way: ARGS="--kind expressions --count 50000 --seed 7"
	@.ci/venv requirements-dev.txt && exec $(PY) -m tests.security.fuzz $(ARGS)

check: lint types ## everything CI does: format, lint, types, Lua lint, tests
	@$(MAKE) --no-print-directory --jobs 2 test-all engine-on-redis

engine-on-redis: ## the engine's tests on the installed redis-server (Redis 7.0 on Debian) instead of Valkey
	@.ci/on-redis $(PY) -n 2 --dist worksteal

bench: ## how fast the engine is, as ratios to hand-written Redis code in the same run
	@.ci/venv requirements-dev.txt && exec $(PY) -m benchmarks $(ARGS)

bench-queues: ## how fast our workers are, beside RQ, Celery, Dramatiq, Huey and BullMQ in the same run
	@.ci/venv requirements-dev.txt && exec $(PY) -m benchmarks.queues $(ARGS)

bench-room: ## the operator's room with a million instances: pages, sockets, browser
	@.ci/venv requirements-dev.txt && exec $(PY) -m benchmarks.room $(ARGS)

screenshots: ## every page of a site with sample work, light, dark and phone, as PNGs: ARGS=folder
	@.ci/venv requirements-dev.txt && exec $(PY) -m tests.docs.screenshots $(ARGS)

docs: ## the docs as a site with search: build/docs/index.html; a broken link is an error
	@.ci/docs build/docs

lock: ## write the lock files anew, after a change of requirements*.txt: ARGS=--upgrade takes the newest of all else
	@.ci/lock $(ARGS)

audit: ## has an installed package a known hole? Fails as well where nobody could be asked
	@.ci/venv requirements-dev.txt && exec .ci/audit $(PY)

bench-cluster: ## one server and a cluster of 3 + 3 nodes: steps, find, failover, resharding, idle workers, pages
	@.ci/venv requirements-dev.txt && exec $(PY) -m benchmarks.cluster $(ARGS)

wheel: ## the package: dist/signalbox-*.whl, the sdist, and sbom.cdx.json
	@.ci/build dist && .ci/release dist --only-sbom

release: ## dist/ as it is published: wheel, sdist, SBOM, attestation, table of upgrades
	@git diff --quiet HEAD || { echo "release: commit first; a release is a commit" >&2; exit 1; }
	@.ci/build dist && .ci/release dist

conformance: ## play a folder of SCXML cases, SUITE=path, and write docs/conformance.md
	@.ci/venv requirements-dev.txt && exec $(PY) -m tests.conformance "$(SUITE)" $(ARGS)

format: ## rewrite the code in the house format
	@.ci/venv requirements-dev.txt
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

lint: ## what the formatter and the linters (Python, Lua) would complain about
	@.ci/venv requirements-dev.txt
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	@.ci/lint-lua

types: ## the type checker, strict for the engine
	@.ci/venv requirements-dev.txt
	$(PY) -m mypy
