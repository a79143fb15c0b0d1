# orcalike: from a fresh clone, `make demo` and `make test` need only CPython 3.11+, a C compiler and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Each of the hundreds of programs that the tests start would compile all of orcalike anew.
unexport PYTHONDONTWRITEBYTECODE
# With a slash at the end: they are links in a clone, and folders in an sdist.
COMPILED := orcalike/runtime/ orcalike/transport/
SOURCES := $(shell find $(COMPILED) -name '*.pyx' -o -name '*.pxd' -o -name '*.h') setup.py

.PHONY: build demo test check unit campaign mutants fuzz-asan bench bench-papers bench-peers guests docs coverage clean help

help:            ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

build: $(VENV)/ready $(VENV)/built  ## make the environment and compile

# Two things at once: what is needed to compile comes first, and while it compiles the rest is
# installed, and looked through. Of what is installed little is ever imported, and only that is
# turned into bytecode.
MAKEFLAGS += --jobs=2
PIP_INSTALL = $(BIN)/python -m pip install --quiet --no-compile

$(VENV)/compiler: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) --upgrade 'pip>=25.1'
	$(PIP_INSTALL) --group build
	touch $@

define NEEDED
import tomllib
print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")
endef
export NEEDED

$(VENV)/ready: $(VENV)/compiler
	$(BIN)/python -c "$$NEEDED" | $(PIP_INSTALL) --group dev --requirement /dev/stdin
	touch $@

$(VENV)/built: $(VENV)/compiler $(SOURCES)
	$(PIP_INSTALL) --no-build-isolation --no-deps --editable .
	touch $@

demo: build      ## the travelling salesman on 4 processes, to the proven optimum
	$(BIN)/orcalike run -n 4 examples/tsp.py

check: $(VENV)/ready  ## lint, formatting, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Four for each core, since tests wait most of the time, for processes and for time to pass; fewer beside what runs already.
JOBS ?= $(shell awk -v cores=$$(nproc) '{ split($$4, running, "/"); jobs = 4 * cores - (running[1] - 1); \
	print jobs < cores + 1 ? cores + 1 : jobs < 16 ? jobs : 16 }' /proc/loadavg)
unit: build      ## the unit tests alone, JOBS=8 at once; without it up to four for each core
	$(BIN)/python -m pytest -q -n $(JOBS) -m unit

# The first time one process turns the tests into bytecode, and not each of those that run them, all at once.
$(VENV)/collected: | $(VENV)/ready $(VENV)/built
	$(BIN)/python -m pytest -q --collect-only >$@ || { cat $@; rm $@; false; }

test: check build $(VENV)/collected  ## everything that must pass: `make check`, then all tests, several at once
	$(BIN)/python -m pytest -q -n $(JOBS)

TIER ?= 1
campaign: build  ## over an hour of faults, measured by the bars of docs/testing.md; TIER=2: hours
	$(BIN)/python -m tests.campaign --tier $(TIER)

MUTANTS ?=
mutants: build   ## promises broken on purpose, one by one: the tests must notice; MUTANTS=pattern
	$(BIN)/python -m tests.campaign.mutants '$(MUTANTS)'

SECONDS ?= 120
fuzz-asan: build ## drawn inputs and unit tests under AddressSanitizer and UBSan; SECONDS=120
	$(BIN)/python -m tests.fuzz.sanitized --seconds $(SECONDS)

BENCH ?=
bench: build     ## the table of bars and figures, some minutes; BENCH='--only reads --quick'
	$(BIN)/python -m orcalike.bench $(BENCH)

bench-papers: build  ## the papers' own experiments, with plots, into bench-papers/
	$(PIP_INSTALL) 'matplotlib>=3.8'
	$(BIN)/python -m orcalike.bench.papers

# One by one: what cannot be installed does not keep the others away.
define WANTED
import tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
print(*project["optional-dependencies"]["peers"], sep="\n")
endef
export WANTED
JGROUPS := org.jgroups:jgroups:5.4.5.Final
PEERS ?=
bench-peers: build  ## orcalike beside what people would use instead, as far as that can be installed
	@$(BIN)/python -c "$$WANTED" | while read -r peer; do \
	    $(PIP_INSTALL) "$$peer" </dev/null \
	    || echo "skipped $$peer: it could not be installed"; \
	done
	@mvn --quiet dependency:get -Dartifact=$(JGROUPS) \
	|| echo "skipped $(JGROUPS): Maven is missing, or could not get it"
	$(BIN)/python -m orcalike.bench.peers $(PEERS)

guests: build    ## Dask, Ray and MPI are installed, and the tests of orcalike as their guest run
	$(PIP_INSTALL) --group guests
	$(BIN)/python -m pytest -q tests/cluster/test_dask.py tests/cluster/test_ray.py tests/cluster/test_mpi4py.py
	$(BIN)/python -m pytest -q tests/project/test_docs.py -k with_a_package

$(VENV)/docs: $(VENV)/ready
	$(PIP_INSTALL) --group docs
	touch $@

docs: build $(VENV)/docs  ## the manual as a site, with an API reference, into build/site
	$(BIN)/python -m sphinx -W --keep-going -n -q -c docs -d build/doctrees . build/site
	@echo build/site/index.html

COVERAGE ?= tests
coverage: build  ## lines of the Python modules that the tests run; COVERAGE=tests/unit: some tests
	mkdir -p build/coverage
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q -n $(JOBS) $(COVERAGE)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet
	$(BIN)/coverage report
	@echo "build/coverage/html/function_index.html: by function. Compiled modules are not measured."

clean:           ## remove what was built
	rm -rf build dist *.egg-info $(VENV)
	find $(COMPILED) -name '*.so' -delete
