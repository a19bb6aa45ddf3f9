# make demo    install, then learn, evaluate and audit codes of embedded data; the page is out/demo/index.html
# make test    install, then every check of a commit: lint, types, layers, tests, apart from those that are slow
# make test-slow   the tests that take more than five seconds each
# make docs    the site, in site/, with an API reference and tables generated from the code
# make bench   speed against what people use today, in one run
# make soak    everything that attacks it: sanitizers, fuzz, kills, failing storage, power loss, hostile folders; under an hour
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
NATIVE := $(wildcard src/native/*)
# Without these, a benchmark would compare one thread of ours with all of theirs, and tests that run beside each other
# would wait for each other: threads of BLAS spin.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
LOCK := --generate-hashes --no-emit-index-url --no-header --python-version 3.11 --python-platform x86_64-manylinux_2_28

.PHONY: demo test test-slow lint pytest bench sanitize threads kill kill-cluster soak fuzz requests lock screenshots docs docs-tables format clean

demo: $(INSTALLED)
	$(BIN)/rankbits demo --out out/demo --format table

test: lint pytest

pytest: $(INSTALLED)
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n 2 -m "not slow"

# By file: what a module's tests share, such as a run of the demo, is computed once.
test-slow: $(INSTALLED)
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n 2 --dist loadfile -m slow

lint: $(INSTALLED)
	$(BIN)/ruff format --check src tests benchmarks examples tools
	$(BIN)/ruff check src tests benchmarks examples tools
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

# What runs in threads, on a build with ThreadSanitizer, which must also report a race that is there on purpose.
threads: $(INSTALLED) $(VENV)-thread/.installed
	$(BIN)/python tests/durability/soak.py --only "a race" threads --thread $(VENV)-thread/bin/python

$(VENV)-sanitize/.installed: SANITIZER := address
$(VENV)-thread/.installed: SANITIZER := thread
$(VENV)-sanitize/.installed $(VENV)-thread/.installed: pyproject.toml CMakeLists.txt $(NATIVE)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install -q --disable-pip-version-check -e '.[test]' -C cmake.define.RANKBITS_SANITIZE=$(SANITIZER)
	touch $@

# Kills a process that writes to a collection, at every call that changes a file and at random, and looks at what is left.
kill: $(INSTALLED)
	$(BIN)/python tests/durability/killing.py --every 1 --scripts 3 --random 1000 --seed $$(date +%s)

# The same for the workers of a cluster of three nodes that encodes, counts and searches; make soak includes it.
kill-cluster: $(INSTALLED)
	$(BIN)/python tests/distributed/soak.py --kills 200 --seed $$(date +%s)

# Prints one table; SOAK=--quick takes a few minutes. Logs, with a command that repeats each violation, are in out/soak.
soak: $(INSTALLED) $(VENV)-sanitize/.installed $(VENV)-thread/.installed
	$(BIN)/python tests/durability/soak.py $(SOAK) --save out/soak.json --address $(VENV)-sanitize/bin/python --thread $(VENV)-thread/bin/python

fuzz: $(INSTALLED)
	$(BIN)/python tests/fuzz/fuzz_loaders.py --seconds 120 --seed $$(date +%s)

# Random requests to a server, none of which may be answered by a 500.
requests: $(INSTALLED)
	$(BIN)/python tests/service/random_requests.py --requests 10000 --seed $$(date +%s)

# The pictures of docs/serve.md, taken by the tests of the page.
screenshots: $(INSTALLED)
	RANKBITS_SCREENSHOTS=1 $(BIN)/python -m pytest -q tests/service/test_page.py

# The packages of deploy/Dockerfile with the hashes of their files, in their newest versions.
lock: $(VENV)-lock/.installed
	cd deploy && ../$(VENV)-lock/bin/uv pip compile -q --upgrade $(LOCK) --extra serve --extra files --extra images \
		-o requirements.lock ../pyproject.toml
	cd deploy && ../$(VENV)-lock/bin/uv pip compile -q --upgrade $(LOCK) -o build.lock build.in

$(VENV)-lock/.installed:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install -q --disable-pip-version-check uv
	touch $@

docs: $(INSTALLED) docs-tables
	$(BIN)/mkdocs build --strict

# The parts of the documentation that follow from the code: the reference, the commands, the tables.
docs-tables: $(INSTALLED)
	PYTHONPATH=tools $(BIN)/python -m docs_generator

format: $(INSTALLED) docs-tables
	$(BIN)/ruff format src tests benchmarks examples tools
	$(BIN)/ruff check --fix src tests benchmarks examples tools

# Python files are used where they lie; only a change to the native code or to the packaging installs again.
$(INSTALLED): pyproject.toml CMakeLists.txt $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-sanitize $(VENV)-thread $(VENV)-lock build dist site out
