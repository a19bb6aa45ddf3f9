# make demo    install, then learn, evaluate and audit codes of embedded data; the page is out/demo/index.html
# make test    install, then every check of a commit: lint, types, layers, tests
# make bench   speed against what people use today, in one run
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
NATIVE := $(wildcard src/native/*)
# Without these, a benchmark would compare one thread of ours with all of theirs.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: demo test lint pytest bench sanitize kill fuzz docs format clean

demo: $(INSTALLED)
	$(BIN)/rankbits demo --out out/demo --format table

test: lint pytest

pytest: $(INSTALLED)
	$(BIN)/python -m pytest -q -n 2

lint: $(INSTALLED)
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(INSTALLED)
	$(ONE_THREAD) $(BIN)/python benchmarks/evaluation.py
	$(ONE_THREAD) $(BIN)/python benchmarks/objectives.py
	$(ONE_THREAD) $(BIN)/python benchmarks/search.py

# The suite on a build with AddressSanitizer and UndefinedBehaviorSanitizer, in an environment of its own.
sanitize: $(VENV)-sanitize/.installed
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	$(VENV)-sanitize/bin/python -m pytest -q -n 2 -m "not unsanitized" tests

$(VENV)-sanitize/.installed: pyproject.toml CMakeLists.txt $(NATIVE)
	$(PYTHON) -m venv $(VENV)-sanitize
	$(VENV)-sanitize/bin/python -m pip install -q --disable-pip-version-check -e '.[test]' -C cmake.define.RANKBITS_SANITIZE=ON
	touch $@

# Kills a process that writes to a collection, at every call that changes a file and at random, and looks at what is left.
kill: $(INSTALLED)
	$(BIN)/python tests/index/killing.py --every 1 --scripts 3 --random 1000 --seed $$(date +%s)

fuzz: $(INSTALLED)
	$(BIN)/python tests/fuzz/fuzz_loaders.py --seconds 120 --seed $$(date +%s)

docs: $(INSTALLED)
	$(BIN)/mkdocs build --strict

format: $(INSTALLED)
	$(BIN)/ruff format src tests benchmarks
	$(BIN)/ruff check --fix src tests benchmarks

# Python files are used where they lie; only a change to the native code or to the packaging installs again.
$(INSTALLED): pyproject.toml CMakeLists.txt $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-sanitize build dist site out
