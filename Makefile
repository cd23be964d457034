# Every target makes and reuses .venv by itself; only Python 3.12 or 3.11, git and make have to be there.

VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint bench audit clean
.NOTPARALLEL:

demo: $(VENV)/installed-demo # the whole main job on real flight records, in demo/
	$(BIN)/suffice demo --dir demo

test: $(VENV)/installed-dev # everything but the long audits, a file of tests at a time on each of two cores
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

lint: $(VENV)/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/installed-bench # our times beside others', on the same files; benchmarks/RESULTS.md names the rest
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/noise_rate.py
	$(BIN)/python benchmarks/reading.py
	PYTHONPATH=tests $(BIN)/python benchmarks/ledger.py

audit: $(VENV)/installed-dev # the long statistical audits
	$(BIN)/python -m pytest -m audit

clean:
	rm -rf $(VENV) build dist demo *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/installed-demo: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[demo]'
	touch $@

# The development tools come on top of everything that the demo needs.
$(VENV)/installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(VENV)/installed-demo $@

$(VENV)/installed-bench: pyproject.toml constraints.txt $(VENV)/installed-dev | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	touch $@

# A name on PATH may be a shim that cannot run: what counts is that the interpreter answers.
$(BIN)/python:
	@for python in python3.12 python3.11 python3 python; do \
	    if $$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info[:2] not in [(3, 11), (3, 12)])' \
	        >/dev/null 2>&1; then \
	        echo "$$python -m venv $(VENV)"; \
	        exec $$python -m venv --clear $(VENV); \
	    fi; \
	done; \
	echo 'suffice needs Python 3.12 or 3.11 with its venv and ensurepip modules: put one on PATH as python3.12 or python3.11.' >&2; \
	exit 1
