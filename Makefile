# All tasks in a checkout. They need only python3 (3.10 or later, with venv), cargo and make.

.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
RUST := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)
# These files are compiled into the core.
SHIPPED := $(shell find papers studies docs/abr.md docs/gfr.md docs/glossary.md docs/models plans scenarios -type f \
    ! -name '*.pyc')
SOURCES := $(shell find python/celltrain -name '*.py')
LOCK := requirements/use.lock
TEST_LOCK := requirements/test.lock
DEV_LOCK := requirements/dev.lock
# The built package, and the packages required by its tests: those for each push, or all.
TEST := .make/built .make/test
DEV := .make/built .make/dev
WHEEL_LOCK := requirements/wheel.lock
# Version of uv, which writes the lock files.
UV := 0.13.9

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 1
# Packages are installed while the simulator is compiled, and Rust and Python are tested at the same time.
MAKEFLAGS += --jobs=3
# Tests start hundreds of processes, which share compiled Python modules.
unexport PYTHONDONTWRITEBYTECODE

# Excludes the pytest tests of the nightly job, which sets NIGHTLY=1.
LATER := $(if $(NIGHTLY),,-m "not nightly")

.PHONY: help demo test test-rust test-python check lint lint-rust lint-python format setup setup-dev models bless docs wheel lab lab-test lock peers campaign clean
.DELETE_ON_ERROR:

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo: out/demo/report.txt ## reproduce Tables 1 to 3 of ATM Forum 96-1269 with a few seeds; figures in out/demo
	@cat $<
	@echo
	@echo "Figures, tables and this report are in out/demo. Three commands to try next:"
	@echo
	@echo "    $(BIN)/celltrain compare lan-tail-drop lan-epd lan-selective-drop --seeds 20 --plot out/policies.svg"
	@echo "    $(BIN)/celltrain why lan-epd --seed 18 --flow tcp4 --at 2.2s"
	@echo "    $(BIN)/celltrain explain selective_drop"

out/demo/report.txt: .make/built $(SOURCES)
	@mkdir -p out/demo
	@echo "make: reproducing Tables 1 to 3 of ATM Forum 96-1269, about a hundred simulated networks: half a minute"
	@COLUMNS=120 $(BIN)/celltrain reproduce af-96-1269 --table 1 --table 2 --table 3 --seeds 10 --wan-seeds 2 \
	    --out out/demo > $@

test: test-rust test-python ## Rust and Python tests; NIGHTLY=1 adds the longest tests and instruction counts
	$(if $(NIGHTLY),$(BIN)/python scripts/instruction_guard.py)

# Print the output at the end, not mixed with the output of the Python tests.
test-rust: | .make/tools
	@mkdir -p out
	@$(if $(NIGHTLY),CELLTRAIN_DIFFERENTIAL=2000 CELLTRAIN_FORMULA_RUNS=1500 CELLTRAIN_ADVERSARY=400 CELLTRAIN_TIMES=200 CELLTRAIN_HOSTED=20 CELLTRAIN_NIGHTLY=1 PROPTEST_CASES=1000) \
	    cargo test --workspace $(if $(NIGHTLY),,--exclude competitive-ratios) --quiet \
	    $(if $(NIGHTLY),-- --include-ignored --skip differential::campaign::both_engines_agree_on_every_network_of_a_campaign) > out/rust-tests.txt 2>&1; passed=$$?; cat out/rust-tests.txt; \
	    test $$passed = 0 || $(PYTHON) scripts/page_lines.py out/rust-tests.txt; exit $$passed

test-python: $(if $(NIGHTLY),$(DEV),$(TEST))
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal $(LATER)

check: lint ## before each commit: lints, types, unit tests and the fast Python tests
	cargo test --workspace --lib --quiet
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal --quiet -m "not nightly and not slow"

setup: .make/built ## build the package into .venv, with figures and reports; demo and test do this automatically

setup-dev: $(DEV) ## add all packages for contributors, with those of NIGHTLY=1 and docs: pandas, polars, Dask, Sphinx

lint: lint-rust lint-python ## format, lints, types, links and licences

lint-rust: | .make/tools
	@cargo fmt --version > /dev/null 2>&1 && cargo clippy --version > /dev/null 2>&1 || \
	    { echo "make: rustfmt and clippy are needed: rustup component add rustfmt clippy" >&2; exit 1; }
	cargo fmt --check
	@for manifest in examples/known-bugs examples/own-stack fuzz; do \
	    cargo metadata --locked --format-version 1 --manifest-path $$manifest/Cargo.toml > /dev/null || exit 1; done
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
	@if cargo deny --version > /dev/null 2>&1; then cargo deny --log-level error check bans licenses sources; \
	    elif [ -n "$$CELLTRAIN_WHOLE" ]; then \
	        echo "make: cargo-deny is needed: cargo install cargo-deny --locked" >&2; exit 1; \
	    else echo "make: skipping licences and sources of crates; to check them: cargo install cargo-deny --locked"; fi
	@if [ -n "$$CELLTRAIN_WHOLE" ]; then \
	    cargo modules --version > /dev/null 2>&1 || \
	        { echo "make: cargo-modules is needed: cargo install cargo-modules --locked" >&2; exit 1; }; \
	    $(PYTHON) scripts/rust_modules.py; fi

lint-python: $(TEST)
	$(BIN)/rumdl check --quiet .
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/python scripts/prose.py
	$(BIN)/python scripts/standards.py
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy

format: $(TEST) ## format Rust, Python and Markdown
	cargo fmt
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
	$(BIN)/rumdl fmt --quiet .

docs: $(DEV) ## build the site into out/site
	rm -rf out/site out/doctrees
	$(BIN)/python -m sphinx --builder html --jobs 2 --fail-on-warning --keep-going --quiet --conf-dir docs/site \
	    --doctree-dir out/doctrees . out/site
	@echo "The site is out/site/index.html."

models: $(TEST) ## generate python/celltrain/model/types.py, stubs and the plan's schema after a change to their types
	$(BIN)/python scripts/generate_models.py
	$(BIN)/python scripts/plan_schema.py

bless: $(TEST) ## regenerate all derived files, and print what changed; with uncommitted changes, FORCE=1
	@$(if $(FORCE),FORCE=$(FORCE)) $(BIN)/python scripts/bless.py

# Each lock file is for all Python versions and systems, with hashes. `make lock UPGRADE=--upgrade` takes the newest
# versions.
lock: | .make/tools ## write requirements/*.lock; UPGRADE=--upgrade takes the newest versions
	$(PYTHON) -m venv .make/locking
	.make/locking/bin/python -m pip install "uv==$(UV)"
	$(LOCKED) pyproject.toml --extra dev --extra docs --output-file $(DEV_LOCK)
	$(LOCKED) pyproject.toml --extra test --constraint $(DEV_LOCK) --output-file $(TEST_LOCK)
	$(LOCKED) pyproject.toml --extra plot --extra report --constraint $(DEV_LOCK) --no-annotate --output-file $(LOCK)
	$(LOCKED) requirements/wheel.in --output-file $(WHEEL_LOCK)

LOCKED = .make/locking/bin/uv pip compile --universal --python-version 3.10 --generate-hashes --quiet \
    --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" $(UPGRADE)

wheel: .make/dev .make/wheel/done ## build wheels and an sdist into dist, and test the wheel for this machine
	.make/wheel/bin/python scripts/wheels.py
	CELLTRAIN_WHEELS=dist $(BIN)/python -m pytest python/tests/test_wheel.py -rP

# The page as one file. `celltrain lab` opens it, and wheels include it if it was built before them.
lab: dist/lab.html ## build the page that runs the simulator in a browser: dist/lab.html (node 20, npm)
	@cp dist/lab.html python/celltrain/lab.html
	@echo "The lab is dist/lab.html. Open it in a browser, or run: $(BIN)/celltrain lab"

LAB := $(shell find lab/src -type f) lab/build.mjs lab/package.json lab/tsconfig.json docs/glossary.md
CORE := $(or $(CARGO_TARGET_DIR),target)/wasm32-unknown-unknown/web/celltrain_web.wasm

dist/lab.html: .make/lab $(LAB) $(RUST) $(SHIPPED) out/lab/data.json
	@echo "make: compiling the simulator to WebAssembly: several minutes the first time, on two cores"
	@cargo build --quiet --locked --profile web --target wasm32-unknown-unknown --package celltrain-web
	@cd lab && node_modules/.bin/tsc
	@cd lab && node build.mjs --core "$(abspath $(CORE))" --data ../out/lab/data.json --out ../$@

out/lab/data.json: .make/built $(SOURCES) scripts/lab_data.py
	@$(BIN)/python scripts/lab_data.py data $@

lab-test: dist/lab.html $(DEV) ## test the lab in node and in a browser
	$(BIN)/python scripts/lab_data.py answers out/lab/native.json
	cd lab && node build.mjs --tests out/tests
	cd lab && CELLTRAIN_NATIVE=../out/lab/native.json node --test --test-reporter=spec \
	    $$(find out/tests -name '*.test.mjs')

# lab/package-lock.json lists all npm packages with their hashes. Scripts of packages do not run.
.make/lab: lab/package.json lab/package-lock.json | .make/lab-tools
	@cd lab && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# Only the lab depends on these tools. The check reports all missing ones at once.
.PHONY: .make/lab-tools
.make/lab-tools:
	@missing=; \
	node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)' 2> /dev/null || \
	    { echo "make: node is needed, 20 or later (https://nodejs.org; on Debian: apt install nodejs)" >&2; missing=1; }; \
	command -v npm > /dev/null || \
	    { echo "make: npm is needed; it comes with node (on Debian: apt install npm)" >&2; missing=1; }; \
	command -v cargo > /dev/null || \
	    { echo "make: cargo is needed: install Rust 1.91 or later (https://rustup.rs)" >&2; missing=1; }; \
	test -d "$$(rustc --print sysroot 2> /dev/null)/lib/rustlib/wasm32-unknown-unknown" || \
	    { echo "make: Rust's wasm target is needed: rustup target add wasm32-unknown-unknown" >&2; missing=1; }; \
	test -z "$$missing" || { echo "make: the lab was not built" >&2; exit 2; }
	@mkdir -p .make

.make/wheel/done: $(WHEEL_LOCK) | .make/tools
	$(PYTHON) -m venv .make/wheel
	.make/wheel/bin/python -m pip install --require-hashes --no-deps --requirement $(WHEEL_LOCK)
	@touch $@

# Compares networks with htsim (HTSIM is the folder sim of its source), ns-2 and ns-3 (Debian's ns2 and libns3-dev), and
# smoltcp with its own tests, and fills their pages.
peers: .make/built
	$(BIN)/python peers/n_source.py $(if $(HTSIM),--htsim $(HTSIM)) --page
	$(BIN)/python peers/ns3.py --load 10
	$(BIN)/python peers/netsim.py --page

campaign: $(DEV) ## run a longer check or measurement: NAME=kills COUNT=50 SEED=2; without NAME, list them
	@$(BIN)/python scripts/campaign.py $(NAME) $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED)) $(ARGS)

clean: ## remove all build output
	rm -rf .venv .make dist out target lab/node_modules lab/out .pytest_cache .ruff_cache .mypy_cache .hypothesis
	rm -f python/celltrain/_core*.so python/celltrain/lab.html
	find python scripts -name __pycache__ -type d -prune -exec rm -rf {} +

# The editable package with an optimised core. Changes to Python code need no new build.
.make/built: .make/compiled .make/packages pyproject.toml
	@$(BIN)/maturin develop --release --quiet
	@touch $@

.make/compiled: $(RUST) $(SHIPPED) | .make/venv
	@echo "make: building celltrain with all optimisations, about two minutes the first time, on two cores"
	@$(BIN)/maturin develop --release --quiet --skip-install
	@touch $@

# The lock files contain every requirement, so maturin installs none.
.make/packages: $(LOCK) | .make/venv
	@echo "make: installing $$(grep -c == $(LOCK)) Python packages from $(LOCK) into .venv"
	@$(BIN)/python -m pip install --require-hashes --no-deps --requirement $(LOCK)
	@touch $@

.make/test .make/dev: .make/%: requirements/%.lock .make/packages
	@echo "make: installing $$(grep -c == $<) packages for development from $<"
	@# Python compiles modules at their first use. Most of these are never used.
	@$(BIN)/python -m pip install --no-compile --require-hashes --no-deps --requirement $<
	@touch $@

.make/venv: pyproject.toml | .make/tools
	@$(PYTHON) -m venv .venv
	@sed -n '/^maturin==/,/# via/p; /^tomli==/,/# via/p' $(TEST_LOCK) > .make/maturin.lock
	@$(BIN)/python -m pip install --require-hashes --no-deps --requirement .make/maturin.lock
	@touch $@

.make/tools:
	@command -v $(PYTHON) > /dev/null || \
	    { echo "make: $(PYTHON) is needed, 3.10 or later (https://www.python.org)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	    { echo "make: $(PYTHON) is older than 3.10; choose another, for example: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || \
	    { echo "make: $(PYTHON) lacks venv; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@command -v cargo > /dev/null || \
	    { echo "make: cargo is needed: install Rust 1.91 or later (https://rustup.rs)" >&2; exit 1; }
	@mkdir -p .make && touch $@
