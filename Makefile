# Targets call the commands of `ipu-results`; `make setup` is a no-op when the environment is current.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.current
RUN := $(VENV)/bin/ipu-results

RELEASE ?= warehouse

# Compiled once, and not again in each of the hundred processes that the tests start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup ingest test sweep publish verify site lint bench clean

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: Python 3.11 or newer is needed; name one with: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

ingest: setup
	$(RUN) ingest

test: setup
	$(VENV)/bin/python -m pytest -n auto --maxprocesses 4 --dist worksteal

sweep: setup
	$(RUN) sweep

publish: setup
	$(RUN) publish $(ARGS)

verify: setup
	$(RUN) verify release

# From a release folder: make site RELEASE=dist/release; the site there was stays until the new one is whole
site: setup
	@command -v npm >/dev/null || { echo "error: Node.js 20.19 or newer with npm is needed" >&2; exit 1; }
	rm -rf site/build
	$(VENV)/bin/python -m ipu_results.site "$(RELEASE)" site/build/new/data
	cd site && npm ci --no-audit --no-fund && npm run build -- build/new
	if [ -e site/dist ]; then mv site/dist site/build/old; fi
	mv site/build/new site/dist
	rm -rf site/build

lint: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

bench: setup
	$(VENV)/bin/python -m benchmarks

clean:
	rm -rf $(VENV) build site/build site/dist site/node_modules *.egg-info .hypothesis .mypy_cache .ruff_cache warehouse/*.duckdb warehouse/.staging warehouse/.lock release .release.publishing
