# Each target installs what it needs into .venv the first time, and nothing after that. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/ipu-results
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input install
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal
RELEASE ?= $(if $(wildcard release/release.json),release,warehouse)

# Compile modules once: `make test` starts many processes.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup ingest add test test-all sweep publish release site verify bench fuzz docs lint format wheel clean lock

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-10s %s\n", $$1, $$2 }'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: Python 3.11 or newer is needed; name it with: make PYTHON=python3.12" >&2; exit 1; }
	@echo "Creating $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

# $(call install,SECTION,WHAT FOR,HOW LONG): each section of requirements.lock needs those before it
define install
	@echo "Installing the packages of requirements.lock into $(VENV), for $(2): about $(3), once ..."
	@sed '/^# end of $(1)$$/q' requirements.lock > $(VENV)/requirements.txt
	@$(PIP) --no-compile --require-hashes -r $(VENV)/requirements.txt
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@
endef

$(VENV)/.ingest: requirements.lock pyproject.toml | $(BIN)/python
	$(call install,ingest,ingest and query and publish,30 s)

$(VENV)/.user: requirements.lock pyproject.toml | $(BIN)/python
	$(call install,user,every command,45 s)
	@touch $(VENV)/.ingest

$(VENV)/.dev: requirements.lock pyproject.toml | $(BIN)/python
	$(call install,dev,tests and lint,60 s)
	@touch $(VENV)/.ingest $(VENV)/.user

setup: $(VENV)/.user ## Install what every user command needs

ingest: $(VENV)/.ingest ## Build the warehouse from raw/ (no network after the installation)
	@echo "Building warehouse/ from the documents in raw/: a few seconds ..."
	@$(RUN) ingest

add: $(VENV)/.ingest ## Draft the sidecar of a new document: make add FILE=raw/publisher/page.html, or a URL
	@test -n "$(FILE)" || { echo "error: name the document: make add FILE=raw/publisher/page.html" >&2; exit 2; }
	@$(RUN) add "$(FILE)" $(ARGS)

test: $(VENV)/.dev ## Run the quick tests, which prove the dataset
	$(PYTEST) -m "not slow"

test-all: $(VENV)/.dev ## Run all tests: kills, readers, benchmarks, browser, wheel: some minutes
	$(PYTEST)

sweep: $(VENV)/.user ## Measure or emulate the ResNeXt101 sweep on this machine
	$(RUN) sweep $(ARGS)

publish: $(VENV)/.ingest ## Make a release of the warehouse in release/
	$(RUN) publish --record docs/releases $(ARGS)

verify: $(VENV)/.ingest ## Check the release in release/
	$(RUN) verify release

# The version is checked against the previous release in release/, if it is there. What is made is printed and not pushed.
release: $(VENV)/.dev ## Make release VERSION=X.Y.Z: version, changelog, record, files, wheel, commit and tag
	@test -n "$(VERSION)" || { echo "error: name the version: make release VERSION=2.1.0" >&2; exit 2; }
	$(BIN)/python .ci/release.py prepare "$(VERSION)"
	UPDATE_DOCS=1 $(BIN)/python -m pytest -q tests/docs/test_metadata.py
	$(RUN) ingest
	$(RUN) publish --record docs/releases $(ARGS)
	$(RUN) verify release
	$(MAKE) wheel
	$(BIN)/python .ci/release.py tag "$(VERSION)"

# From release/ if there is one, else from warehouse/, or: make site RELEASE=FOLDER.
# The old site stays until the new one is complete. Previews of links, the sitemap and the feed need the address of the
# site: make site BASE_URL=https://example.org/ipu-results/
site: $(VENV)/.user ## Build the web page of the release, else of the warehouse, in site/dist/ (needs Node.js)
	@command -v npm >/dev/null || { echo "error: Node.js 20.19 or newer with npm is needed" >&2; exit 1; }
	@echo "Building the page of $(RELEASE)/: about a minute ..."
	rm -rf site/build
	$(BIN)/python -m ipu_results.doors.site "$(RELEASE)" site/build/new/data --pages site/build/new --base-url "$(BASE_URL)"
	cd site && npm ci --no-audit --no-fund && npm run build -- build/new
	if [ -e site/dist ]; then mv site/dist site/build/old; fi
	mv site/build/new site/dist
	rm -rf site/build

bench: $(VENV)/.dev ## Run the benchmarks and print their tables
	$(BIN)/python -m benchmarks $(ARGS)

# More than a minute: make fuzz FUZZ_SECONDS=3600
fuzz: $(VENV)/.dev ## Feed broken documents to every reader for FUZZ_SECONDS (60)
	$(BIN)/python -m tests.record.read.fuzz --seconds $(or $(FUZZ_SECONDS),60) $(ARGS)

docs: $(VENV)/.dev ## Generate the generated parts of docs/ and README.md again
	UPDATE_DOCS=1 $(BIN)/python -m pytest -q -m docs
	$(BIN)/python -m benchmarks.emulator page
	$(BIN)/python -m benchmarks.emulator training

lint: $(VENV)/.dev ## Check style, types, imports and workflows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python .ci/imports.py
	$(BIN)/zizmor --offline --quiet .github

format: $(VENV)/.dev ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

wheel: $(VENV)/.dev ## Build the wheel with the dataset inside in dist/
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .

# uv writes pins and hashes, and no index address. A section leaves out what is pinned in those before it.
COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate
PINNED = $$(sed -nE 's/^([A-Za-z0-9_.-]+).*==.*/--no-emit-package \1/p' requirements.lock)
LOCK := $(COMPILE) pyproject.toml --extra build
lock: $(VENV)/.dev ## Pin the newest versions of all packages again
	$(LOCK) --upgrade --extra dev --quiet --output-file $(VENV)/newest.txt
	: > requirements.lock
	for section in ingest user dev; do \
		$(LOCK) --constraint $(VENV)/newest.txt --extra $$section $(PINNED) >> requirements.lock || exit 1; \
		echo "# end of $$section" >> requirements.lock; \
	done
	$(COMPILE) --quiet --upgrade --constraint requirements.lock $(PINNED) --output-file tests/readers.txt tests/readers.in

clean: ## Remove what was built, but not the environment
	rm -rf build dist release .release.publishing site/build site/dist site/node_modules .hypothesis .mypy_cache .ruff_cache
	rm -rf .cache warehouse/*.duckdb warehouse/.staging warehouse/.lock
	find . -name __pycache__ -not -path "./$(VENV)/*" -prune -exec rm -rf {} +
