# make demo    profile, pack, kill, restart: the whole story in one command
# make test    the full test-suite, with formatting and type checks
# make bench   timings: medians and ratios
# make clean   remove what these made
# Everything is set up in .venv; nothing else on the machine is touched.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SOURCES := $(shell find scr_critplugin cbindings integration -type f \
             \( -name '*.py' -o -name '*.[ch]' -o -name '*.f90' -o -name '*.in' -o -name 'CMakeLists.txt' \
                -o -name Makefile \) -not -path '*/__pycache__/*') \
           docs/scr_crit.1 CMakeLists.txt pyproject.toml

# An MPI on the PATH is used as it is; without one, PyPI's mpich wheel brings mpicc and mpiexec.
ifeq ($(shell command -v mpicc 2>/dev/null),)
MPI_PACKAGES := mpich
endif

.PHONY: demo test lint bench clean install install-test

demo: install
	$(BIN)/scr_crit demo

test: install-test lint
	$(BIN)/pytest

lint: install-test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	@$(BIN)/clang-format --dry-run --Werror $(filter %.c %.h,$(SOURCES)) $(wildcard tests/*/*.[ch])

bench: install
	$(BIN)/python integration/bench/run.py
	$(BIN)/python integration/bench/profile_cost.py
	$(BIN)/python integration/bench/large_profile.py --elements 1e7
	$(BIN)/python integration/bench/tracer.py

install: $(VENV)/.installed
install-test: $(VENV)/.installed-test

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

$(VENV)/.installed: $(VENV)/.created $(SOURCES)
	$(BIN)/python -m pip install --quiet zstandard $(MPI_PACKAGES)
	$(BIN)/python -m pip install --quiet .
	touch $@

# The package itself is there already: this adds what the extras name.
$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet mpi4py 'scr_critplugin[test,hdf5]'
	touch $@

clean:
	rm -rf $(VENV) build dist
