PYTHON ?= python3
VENV ?= .venv
PY := $(VENV)/bin/python
UV := $(VENV)/bin/uv
COMPILE := $(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-header
# Every pytest worker is one process; more BLAS threads than that would only compete.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 VECLIB_MAXIMUM_THREADS=1
# Kernels of OpenBLAS that round differently, as on other processors; the last one needs AVX-512.
KERNELS ?= Haswell Nehalem $(if $(shell grep -m1 -o avx512f /proc/cpuinfo 2>/dev/null),SkylakeX)
VERSIONS ?= 3.11 3.12 3.13 3.14

unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE CONDA_PREFIX
export UV_PYTHON_DOWNLOADS := never

.PHONY: help demo test test-all audit fuzz attack paper paper-page bench api format lock clean
.NOTPARALLEL:

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 10

demo: $(VENV)/core  ## from a spec and a CSV to a private release, with the core dependencies only
	@$(VENV)/bin/hdmm demo

test: $(VENV)/dev  ## everything that has to hold: style, types, import rules, tests, doctests, README
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy
	$(VENV)/bin/lint-imports --no-logo
	$(ONE_THREAD) $(PY) -m pytest -q -n auto --maxprocesses 4 --dist worksteal

test-all:  ## the same under every Python that is found, with several kernels of OpenBLAS
	@set -e; for version in $(VERSIONS); do \
	  for python in python$$version $${PYENV_ROOT:-$$HOME/.pyenv}/versions/$$version.*/bin/python; do \
	    if $$python -c '' 2>/dev/null; then break; else python=; fi; \
	  done; \
	  if [ -z "$$python" ]; then echo "== Python $$version: not found"; continue; fi; \
	  for kernel in $(KERNELS); do \
	    echo "== Python $$version, OpenBLAS for $$kernel"; \
	    OPENBLAS_CORETYPE=$$kernel $(MAKE) --no-print-directory test PYTHON=$$python VENV=.venv-$$version; \
	  done; \
	done

audit: $(VENV)/dev  ## test every claim about noise and privacy at full size, and that planted faults are caught
	@$(ONE_THREAD) $(PY) -m tests.audit

fuzz: $(VENV)/dev  ## compare random workloads with an independent oracle, and show that planted faults are caught
	@$(ONE_THREAD) $(PY) -m tests.fuzz.sql_campaign --faults
	@$(ONE_THREAD) $(PY) -m tests.fuzz.sql_campaign --statements 5000
	@$(ONE_THREAD) $(PY) -m tests.fuzz --faults
	@$(ONE_THREAD) $(PY) -m tests.fuzz --workloads 2000 --single 300

attack: $(VENV)/spark  ## replay neighbouring data sets with hostile values and names through every source
	@$(ONE_THREAD) $(PY) -m pytest -q -m slow -n auto --maxprocesses 2
	@$(ONE_THREAD) $(PY) -m tests.attack

paper: $(VENV)/core  ## compute every number of the HDMM paper's evaluation beside the paper's, with pictures; about an hour
	@$(VENV)/bin/hdmm paper --out paper-results

bench: $(VENV)/dev  ## run every benchmark; each prints ratios measured in one run
	@set -e; for script in benchmarks/*.py; do echo "== $$script"; $(PY) "$$script"; done

api: $(VENV)/dev  ## write docs/api.md, the reference of the public API, from the docstrings
	$(PY) docs/reference.py

paper-page: $(VENV)/dev  ## write the tables of docs/paper.md, computing with one process what is not in the cache of hdmm paper
	$(PY) docs/paper.py

format: $(VENV)/dev  ## rewrite the code to the house style
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

lock: | $(UV)  ## write core.lock, dev.lock and spark.lock again after a change of the dependencies
	$(COMPILE) pyproject.toml -o core.lock
	$(COMPILE) pyproject.toml --group dev -c core.lock -o dev.lock
	$(COMPILE) --group spark -o spark.lock

clean:  ## remove the environment and every cache
	rm -rf .venv .venv-* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache dist
	find . -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/core $(VENV)/dev: $(VENV)/%: %.lock pyproject.toml | $(UV)
	$(UV) pip install -q --python $(PY) --require-hashes -r $<
	$(UV) pip install -q --python $(PY) --no-deps -e .
	@touch $@

$(VENV)/spark: spark.lock | $(VENV)/dev
	$(UV) pip install -q --python $(PY) --require-hashes -r $<
	@touch $@

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "hdmm needs Python 3.11 or newer: make PYTHON=python3.x"; exit 2; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "Python's venv module is missing: install python3-venv"; exit 2; }
	$(PY) -m pip install -q uv
