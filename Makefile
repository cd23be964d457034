# Every target makes and reuses .venv by itself; only Python 3.11, 3.12 or 3.13, git and make have to be there.
# With PYTHON=python3.13 a target runs on that interpreter, in .venv-python3.13. `make help` lists the targets.

PYTHON :=
VENV := .venv$(if $(PYTHON),-$(notdir $(PYTHON)))
BIN := $(VENV)/bin

# 3.13 comes last: pgserver has no wheel for it, so tests on PostgreSQL would be skipped.
PYTHONS := $(or $(PYTHON),python3.12 python3.11 python3.13 python3 python)

# Tests start a hundred processes: each would compile our modules again where nobody may keep what was compiled.
export PYTHONDONTWRITEBYTECODE :=

# The inner loops in C: an installation builds them where there is a compiler.
NATIVE := setup.py $(wildcard pipeline/rows/chunk/native/*)

.PHONY: demo check test lint docs bench studies audit fuzz clean help
.NOTPARALLEL:

demo: $(VENV)/installed-demo # the whole main job on real flight records, in demo/
	$(BIN)/suffice demo --dir demo

check: lint # lint, and the tests of what differs from origin/main; SINCE=HEAD~3: from that revision
	$(BIN)/python -m scripts.touched_tests $(SINCE)

# Each process that finds no machine code beside the modules compiles all of it: here two do, for all.
KERNELS := $(addprefix suffice.pipeline.,$(if $(SLOW),$(addprefix math.engines., \
    multivariate.target_kernel mean_variance.slice_kernel network.table_kernel)) \
    math.engines.one_sum.plane_kernel rows.mechanism.cone.fast_matrix math.engines.normal.node_kernel \
    math.engines.one_sum.pair_kernel math.engines.one_sum.spread_kernel rows.chunk.partition \
    rows.contribution.records)

# Three processes on two cores: servers and stalled workers let one wait for minutes.
test: $(VENV)/installed-dev # what decides a commit, on two cores; SLOW=yes: the slow tests too, and which were slowest
	printf '%s\n' $(KERNELS) | xargs -P 2 -I{} $(BIN)/python -c 'import {}'
	$(BIN)/python -m pytest --numprocesses 3 --dist worksteal $(if $(SLOW),--durations=50 --name-slow) \
	    -m "not audit and not wheel$(if $(SLOW),, and not slow)"

lint: $(VENV)/installed-dev # style, types, import contracts and the order of the rooms
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.schemas

docs: $(VENV)/installed-docs # the documentation site, in build/docs; a warning or a dead link is an error
	$(BIN)/python -m scripts.site

bench: $(VENV)/installed-bench # our times beside others', on the same files; benchmarks/RESULTS.md names the rest
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/noise_rate.py
	PYTHONPATH=tests $(BIN)/python benchmarks/one_sum.py
	PYTHONPATH=tests $(BIN)/python benchmarks/normal_cells.py
	PYTHONPATH=tests $(BIN)/python benchmarks/categories.py
	PYTHONPATH=tests $(BIN)/python benchmarks/posterior_rivals.py
	$(BIN)/python benchmarks/starting.py
	$(BIN)/python benchmarks/reading.py
	PYTHONPATH=tests $(BIN)/python benchmarks/ledger.py

studies: $(VENV)/installed-demo # the papers' results beside ours: pictures and tables, in build/studies
	$(BIN)/python -m studies all

audit: $(VENV)/installed-dev # the long statistical audits
	$(BIN)/python -m pytest -m audit

fuzz: $(VENV)/installed-dev # libFuzzer on the loops in C, from tests/fuzz/corpus.gz on; MINUTES=60; it takes clang
	PYTHONPATH=tests $(BIN)/python -m support.fuzzing $(or $(MINUTES),10)

clean: # remove what the other targets made
	rm -rf .venv .venv-* build dist demo *.egg-info pipeline/rows/chunk/_native*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

help: # this list
	@awk -F ':.*# ' '/^[a-z]+:.*# / { printf "make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/installed-demo: pyproject.toml constraints.txt $(NATIVE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[demo]'
	touch $@

# The development tools come on top of everything that the demo needs.
$(VENV)/installed-dev: pyproject.toml constraints.txt $(NATIVE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(VENV)/installed-demo $@

$(VENV)/installed-bench: pyproject.toml constraints.txt $(VENV)/installed-dev | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	touch $@

$(VENV)/installed-docs: pyproject.toml constraints.txt $(VENV)/installed-demo | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@

# A name on PATH may be a shim that cannot run: what counts is that the interpreter answers.
$(BIN)/python:
	@for python in $(PYTHONS); do \
	    if $$python -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	        >/dev/null 2>&1; then \
	        echo "$$python -m venv $(VENV)"; \
	        exec $$python -m venv --clear $(VENV); \
	    fi; \
	done; \
	echo 'suffice needs Python 3.11, 3.12 or 3.13 with its venv and ensurepip modules; none of these is it: $(PYTHONS).' >&2; \
	exit 1
