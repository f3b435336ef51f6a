# `make` alone lists the targets. Each does its own set-up. CI has no steps of its own.
#
#   PYTHON=python3.12        another interpreter (3.11 or newer) for .venv
#   SHORT=1                  bench, campaign, test-slurm: the short form, a few minutes each
#   TESTS=tests/bank         test, test-slurm and campaign: only these
#   ARGS="-x -k hold"        arguments for pytest, the benchmarks, or `fairbank demo`
#   RELEASE=trixie           test-slurm: Slurm and Python of that Debian release (howto/develop.md)
#   SOURCE=/path             test-slurm: the Slurm of this source tree, in RELEASE (bookworm)
#   SLURM_SOURCE=/path       plugins: this source of Slurm instead of Debian's
#   UPGRADE=1                lock: newest versions instead of the smallest change

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CODE := $(wildcard src tests tools benchmarks)
SLURM_IN_SHORT := $(addprefix tests/slurm/test_,\
	charged_runs.py refused.py under_faults.py fairshare_and_priority.py mpi_launchers.py)
COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url \
	--no-annotate \
	--custom-compile-command "make lock" $(if $(UPGRADE),--upgrade)
# Plug-ins of pytest that take seconds to start and that only the slow half uses.
LIGHT := -p no:schemathesis -p no:pytest_cov -p no:faker -p no:platformdirs
ALONE := -p no:xdist
# All tests in parallel, those of a module in one process because they share fixtures. A few
# selected tests are faster in one process. Tests wait for servers and daemons, slow ones a third of
# their time, so there are 3 or 4 processes also on 2 processors.
beside = $(if $(strip $(ARGS)$(TESTS)),$(ALONE),\
	--numprocesses $(1) --maxprocesses 4 --dist loadscope)
# pytest exits with 5 when it finds no test. With ARGS or TESTS that is no failure of one half,
# because the other half may have them all. The file NONE says that the quick half had none.
half = $(BIN)/pytest $(1) $(ARGS) $(TESTS)$(if $(strip $(ARGS)$(TESTS)), \
	|| { [ $$? = 5 ] && $(2); })
NONE := $(VENV)/.none-was-quick
NO_TEST := ARGS and TESTS select no test, neither a quick nor a slow one. Check their spelling.
# The lab exits with 69, after a message, when this release cannot run here.
DEBIAN := $(or $(RELEASE),$(if $(SOURCE),bookworm))
IN_DEBIAN := $(strip $(if $(SOURCE),--source '$(SOURCE)') $(DEBIAN))
WITHIN := $(if $(DEBIAN),$(BIN)/python -m tests.slurm.lab within $(IN_DEBIAN))
OR_SKIPPED := $(if $(SOURCE),,$(if $(RELEASE),|| { [ $$? = 69 ] \
	&& echo 'Skipped: all tests with the Slurm of Debian $(RELEASE).'; }))
say = @printf '\n== %s\n' '$(1)'

export UV_PYTHON_DOWNLOADS := never
export NO_MKDOCS_2_WARNING := 1
export FAIRBANK_SHORT := $(SHORT)
# Containers often disable Python's bytecode cache. Then every process of the tests would compile
# all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-slurm check format bench campaign reference schemas docs lock coverage \
	plugins clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.runtime ## run the main job: a month of jobs through the bank, then a first session
	$(call say,demo)
	$(BIN)/fairbank demo $(ARGS)

test: $(VENV)/.dev $(VENV)/.foreign ## run the tests, with PostgreSQL; print the time of each part
	$(call say,test: the quick half)
	@rm -f $(NONE)
	$(call half,$(LIGHT) $(call beside,3) -m 'not slow and not campaign and not slurm',\
		touch $(NONE))
	$(call say,test: the slow half)
	$(call half,$(call beside,4) -m 'slow and not campaign and not slurm',\
		{ [ ! -e $(NONE) ] || { echo '$(NO_TEST)'; exit 1; }; })

test-slurm: $(VENV)/.dev ## tests with a real Slurm from Debian's packages (as root: installs them)
	$(call say,test-slurm: packages)
	$(if $(SOURCE),,-)$(BIN)/python -m tests.slurm.lab install $(IN_DEBIAN)
	$(call say,test-slurm: tests)
	$(WITHIN) $(BIN)/pytest $(LIGHT) $(ALONE) -m 'slurm and not campaign' $(ARGS) \
		$(or $(TESTS),$(if $(SHORT),$(SLURM_IN_SHORT),tests/slurm)) $(OR_SKIPPED)

check: $(VENV)/.dev ## lint, formatting, types, imports, language, reference, schemas, lock files
	$(call say,check: lint)
	$(BIN)/ruff check $(CODE)
	$(call say,check: formatting)
	$(BIN)/ruff format --check $(CODE)
	$(call say,check: types)
	$(BIN)/mypy --strict $(CODE)
	$(call say,check: imports)
	$(BIN)/python -m tools.dependencies
	$(call say,check: language)
	$(BIN)/python -m tools.language
	$(call say,check: reference pages)
	$(BIN)/python -m tools.reference --check
	$(call say,check: published schemas)
	$(BIN)/python -m tools.schemas --check
	$(call say,check: locks)
	$(BIN)/python -m tools.locks

format: $(VENV)/.dev ## format the code with ruff
	$(call say,format)
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

bench: $(VENV)/.dev ## measure every published speed
	$(call say,bench)
	$(BIN)/python -m benchmarks $(if $(SHORT),--short) $(ARGS)

campaign: $(VENV)/.dev $(VENV)/.foreign ## faults, overload, random runs; with Slurm if installed
	$(call say,campaign)
	$(BIN)/pytest $(if $(SHORT),-m 'campaign and not slurm' --timeout 600,\
		-m 'campaign or hypothesis' --hypothesis-profile campaign --timeout 7200) \
		$(ARGS) $(TESTS)

reference: $(VENV)/.dev ## write the generated reference pages and manual pages
	$(call say,reference)
	$(BIN)/python -m tools.reference

schemas: $(VENV)/.dev ## publish new JSON Schemas and fields, for ever
	$(call say,schemas)
	$(BIN)/python -m tools.schemas

# Without --quiet, with which --strict does not see the warnings.
docs: $(VENV)/.dev ## build the documentation into site/
	$(call say,docs)
	$(BIN)/mkdocs build --strict
	@echo 'site/index.html'

coverage: $(VENV)/.dev $(VENV)/.foreign ## list the lines that no test reaches
	$(call say,coverage)
	$(BIN)/pytest --cov --cov-report term-missing:skip-covered -m 'not campaign and not slurm' \
		$(ARGS) $(TESTS)

plugins: ## build the plug-ins against the Slurm of this machine
	$(call say,plugins)
	SLURM_SOURCE='$(SLURM_SOURCE)' plugins/build

lock: $(VENV)/.uv ## bring the lock files up to date with pyproject.toml
	$(call say,lock)
	$(COMPILE) --group setup --output-file requirements-setup.lock
	$(COMPILE) pyproject.toml --extra server --output-file requirements.lock
	$(COMPILE) pyproject.toml --constraints requirements.lock \
		--output-file requirements-client.lock
	$(COMPILE) pyproject.toml --all-extras --group dev --constraints requirements.lock \
		--output-file requirements-dev.lock
	$(COMPILE) requirements-foreign.in --output-file requirements-foreign.lock

clean: ## remove what the other targets made
	rm -rf $(VENV) .cache site dist

# Set-up. A stamp file is written when its step has succeeded, so that a second call costs nothing.
# setuptools is removed because it slows every start of Python, which users of commands notice.

$(VENV)/.uv: requirements-setup.lock
	$(call say,set-up: $(VENV) with $(PYTHON))
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'Fairbank needs Python 3.11 or newer. Name one: make PYTHON=python3.11'; \
		exit 1; }
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV) || { echo \
		'This Python cannot make environments. On Debian: apt-get install python3-venv'; \
		exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes \
		-r requirements-setup.lock
	$(BIN)/uv pip uninstall --quiet --python $(BIN)/python setuptools
	@touch $@

$(VENV)/.runtime: $(VENV)/.uv requirements.lock pyproject.toml
	$(call say,set-up: dependencies)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements-dev.lock
	$(call say,set-up: development dependencies)
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements-dev.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps -e .
	@touch $@

$(VENV)/.foreign: $(VENV)/.uv requirements-foreign.lock
	$(call say,set-up: tools that use Slurm)
	$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(VENV)/foreign
	$(BIN)/uv pip sync --quiet --python $(VENV)/foreign/bin/python --require-hashes \
		requirements-foreign.lock
	@touch $@
