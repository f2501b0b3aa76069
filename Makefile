# Everything a checkout needs: only python3 (3.10 or later, with venv), cargo and make have to be there.
#
#   make demo     reproduces Tables 1 to 3 of ATM Forum 96-1269 with a few seeds; figures in out/demo
#   make test     every check: format, lints, types, Rust tests, Python tests, instruction counts
#   make setup    builds the package into .venv, with figures and reports; the two above do it themselves
#   make setup-dev  adds what only contributors need: linters, test tools, pandas, polars, Dask, Sphinx
#   make models   writes python/celltrain/models.py anew, after a change to what a scenario may hold
#   make docs     the site of the pages into out/site, which opens from disk; every link is looked at
#   make wheel    wheels and an sdist into dist; the wheel of this machine is installed into an empty environment and tried
#   make lab      the page that runs the simulator in a browser, one file: dist/lab.html (needs node 20 and npm)
#   make lab-test its tests, in node and in a browser
#   make lock     writes requirements/*.lock anew: what development and CI install, and what builds wheels
#   make lint  make format  make clean
#
# Longer campaigns, each on its own:
#
#   make paper          every table and experiment of every paper in papers/ with 30 seeds, into out/<paper>, and their pages
#   make studies        every study with 10 seeds, into out/studies, their pages and the figures in docs/images
#   make tune-study     the best R and Z for each configuration of 96-1269: half an hour, its page, figures and results
#   make search         the open choices of 96-1269 (its WAN) and of draft-jagan, into papers/<paper>/search.csv
#   make differential   both engines on 100,000 random scenarios, and half as many whose cells come in step
#   make formulas       10,000,000 random formulas through the checker, and 1,000,000 short runs on both engines
#   make adversary      20,000 random scenarios at the edges of what can be written, on a build that checks overflow
#   make exits          2,000 processes that use stores or end during a run: none may end abnormally
#   make kills          200 kills of drivers and workers, and kills at chosen system calls: nothing lost, nothing twice
#   make mutated-files  5,000 files that were changed, given to the command line: words, and nothing lost
#   make bench          the benchmarks of cargo bench
#   make bench-cluster  one sweep on one and on two Dask workers, and on the threads of this machine
#   make performance    measures anew and fills docs/performance.md
#   make guard          only the instruction counts of make test: eight fixed scenarios against their budgets (valgrind)
#   make counts         instructions, mispredicted branches and cache misses of a cell-hop, some minutes (valgrind)
#   make mutants        300 random mutants of the core against the Rust tests, into out/mutants (SEED=1 COUNT=300)
#   make planted        faults planted in the fast engine's port and in admission: each is found by a Rust test
#   make memory         200 random large networks: what each takes of memory against what was foretold; the ring of 10,000
#   make fuzz           ten minutes of fuzzing for each target (cargo-fuzz, a nightly toolchain, CPython 3.11 to 3.13)

PYTHON ?= python3
BIN := .venv/bin
# Of campaigns that are random.
SEED ?= 1
RUST := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)
# These files are compiled into the core.
SHIPPED := $(shell find papers studies docs/abr.md docs/gfr.md docs/models plans scenarios -type f)
SOURCES := $(shell find python/celltrain -name '*.py')
LOCK := requirements/use.lock
DEV_LOCK := requirements/dev.lock
# The package, and what its checks and campaigns need.
DEV := .make/built .make/dev
WHEEL_LOCK := requirements/wheel.lock
# What writes the lock file.
UV := 0.13.9

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 1

.PHONY: demo test setup setup-dev models docs wheel lab lab-test lock lint format clean paper studies tune-study search differential formulas adversary exits kills mutated-files bench bench-cluster performance guard counts mutants planted memory fuzz
.DELETE_ON_ERROR:

demo: out/demo/report.txt
	@cat $<
	@echo
	@echo "Figures, tables and this report are in out/demo. Three commands to try next:"
	@echo
	@echo "    $(BIN)/celltrain compare lan-tail-drop lan-epd lan-selective-drop --seeds 20 --plot out/policies.svg"
	@echo "    $(BIN)/celltrain why lan-epd --seed 18 --flow tcp4 --at 2.2s"
	@echo "    $(BIN)/celltrain explain selective_drop"

out/demo/report.txt: .make/built $(SOURCES)
	@mkdir -p out/demo
	@echo "make: running Tables 1 to 3 of ATM Forum 96-1269 again, some hundred simulated networks: about half a minute"
	@COLUMNS=120 $(BIN)/celltrain reproduce af-96-1269 --table 1 --table 2 --table 3 --seeds 10 --wan-seeds 2 \
	    --out out/demo > $@

test: lint
	cargo test --workspace --quiet
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal
	$(BIN)/python scripts/instruction_guard.py

setup: .make/built

setup-dev: $(DEV)

lint: $(DEV)
	@cargo fmt --version > /dev/null 2>&1 && cargo clippy --version > /dev/null 2>&1 || \
	    { echo "make: rustfmt and clippy are needed: rustup component add rustfmt clippy" >&2; exit 1; }
	cargo fmt --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	cargo fetch --locked --quiet
	$(BIN)/python scripts/cargo_deny.py
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy

format: $(DEV)
	cargo fmt
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
	$(BIN)/python scripts/wrap_pages.py

docs: $(DEV)
	rm -rf out/site
	$(BIN)/python scripts/site_pages.py --check
	$(BIN)/python -m sphinx --builder html --jobs 2 --fail-on-warning --keep-going --quiet --conf-dir docs/site \
	    --doctree-dir out/doctrees . out/site
	$(BIN)/python scripts/site_links.py out/site
	@echo "The site is out/site/index.html."

models: $(DEV)
	$(BIN)/python scripts/generate_models.py

# One file for every Python there is and every system, each package with its hashes. `make lock UPGRADE=--upgrade` takes the newest.
lock: | .make/tools
	$(PYTHON) -m venv .make/locking
	.make/locking/bin/python -m pip install "uv==$(UV)"
	$(LOCKED) pyproject.toml --extra dev --extra docs --output-file $(DEV_LOCK)
	$(LOCKED) pyproject.toml --extra plot --extra report --constraint $(DEV_LOCK) --no-annotate --output-file $(LOCK)
	$(LOCKED) requirements/wheel.in --output-file $(WHEEL_LOCK)

LOCKED = .make/locking/bin/uv pip compile --universal --python-version 3.10 --generate-hashes --quiet \
    --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" $(UPGRADE)

wheel: .make/dev .make/wheel/done
	.make/wheel/bin/python scripts/wheels.py
	CELLTRAIN_WHEELS=dist $(BIN)/python -m pytest python/tests/test_wheel.py -rP

# The page in one file; celltrain lab opens it, and wheels have it where it was built before them.
lab: dist/lab.html
	@cp dist/lab.html python/celltrain/lab.html
	@echo "The lab is dist/lab.html: open it in a browser, or type: $(BIN)/celltrain lab"

LAB := $(shell find lab/src -type f) lab/build.mjs lab/package.json lab/tsconfig.json
CORE := $(or $(CARGO_TARGET_DIR),target)/wasm32-unknown-unknown/web/celltrain_web.wasm

dist/lab.html: .make/lab $(LAB) $(RUST) $(SHIPPED) out/lab/data.json
	@echo "make: compiling the simulator to WebAssembly: some minutes the first time, on two cores"
	@cargo build --quiet --locked --profile web --target wasm32-unknown-unknown --package celltrain-web
	@cd lab && node_modules/.bin/tsc
	@cd lab && node build.mjs --core "$(abspath $(CORE))" --data ../out/lab/data.json --out ../$@

out/lab/data.json: .make/built $(SOURCES) scripts/lab_data.py
	@$(BIN)/python scripts/lab_data.py $@

lab-test: dist/lab.html $(DEV)
	$(BIN)/python scripts/lab_native.py out/lab/native.json
	cd lab && node build.mjs --tests out/tests
	cd lab && CELLTRAIN_NATIVE=../out/lab/native.json node --test --test-reporter=spec \
	    $$(find out/tests -name '*.test.mjs')

# What npm installs is in lab/package-lock.json, each package with its hash; no script of a package is run.
.make/lab: lab/package.json lab/package-lock.json | .make/lab-tools
	@cd lab && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# Only the lab needs these, so nothing else asks for them. All that is missing is said at once.
.PHONY: .make/lab-tools
.make/lab-tools:
	@missing=; \
	node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)' 2> /dev/null || \
	    { echo "make: node is needed, 20 or later (https://nodejs.org; on Debian: apt install nodejs)" >&2; missing=1; }; \
	command -v npm > /dev/null || \
	    { echo "make: npm is needed; it comes with node (on Debian: apt install npm)" >&2; missing=1; }; \
	command -v cargo > /dev/null || \
	    { echo "make: cargo is needed: install Rust 1.88 or later (https://rustup.rs)" >&2; missing=1; }; \
	test -d "$$(rustc --print sysroot 2> /dev/null)/lib/rustlib/wasm32-unknown-unknown" || \
	    { echo "make: Rust's wasm target is needed: rustup target add wasm32-unknown-unknown" >&2; missing=1; }; \
	test -z "$$missing" || { echo "make: the lab was not built" >&2; exit 2; }
	@mkdir -p .make

.make/wheel/done: $(WHEEL_LOCK) | .make/tools
	$(PYTHON) -m venv .make/wheel
	.make/wheel/bin/python -m pip install --require-hashes --no-deps --requirement $(WHEEL_LOCK)
	@touch $@

paper: .make/built
	set -e; for paper in $(patsubst papers/%/paper.toml,%,$(wildcard papers/*/paper.toml)); do \
	    $(BIN)/celltrain reproduce $$paper --seeds 30 --out out/$$paper; \
	    $(BIN)/python scripts/paper_page.py out/$$paper/reproduce.json; \
	done

studies: .make/built
	set -e; for study in $(patsubst studies/%/study.toml,%,$(wildcard studies/*/study.toml)); do \
	    $(BIN)/celltrain study $$study --seeds 10 --out out/studies/$$study; \
	    $(BIN)/python scripts/paper_page.py out/studies/$$study/study.json; \
	done

tune-study: $(DEV)
	set -e; for policy in selective-drop fba; do out=out/tune-$$policy; \
	    $(BIN)/celltrain tune plans/tune-$$policy.toml --store $$out $$(test -e $$out/tune.json && echo --resume); done
	$(BIN)/python scripts/tune_page.py out/tune-selective-drop/report/tune.json out/tune-fba/report/tune.json

search: $(DEV)
	$(BIN)/python scripts/wan_search.py af-96-1269
	$(BIN)/python scripts/internetwork_search.py

differential:
	CELLTRAIN_DIFFERENTIAL=100000 cargo test --release --package celltrain-scenario --test differential

# CHECKED texts and RUNS: make formulas CHECKED=100000 RUNS=10000 SEED=2.
formulas: CHECKED ?= 10000000
formulas: RUNS ?= 1000000
formulas:
	CELLTRAIN_FORMULAS=$(CHECKED) CELLTRAIN_FORMULAS_SEED=$(SEED) cargo test --release --package celltrain-formula --lib \
	    bytecode -- --nocapture
	CELLTRAIN_FORMULA_RUNS=$(RUNS) CELLTRAIN_FORMULAS_SEED=$(SEED) cargo test --profile adversary \
	    --package celltrain-scenario --test formulas random_formulas -- --nocapture

adversary: COUNT ?= 20000
adversary:
	CELLTRAIN_ADVERSARY=$(COUNT) CELLTRAIN_ADVERSARY_SEED=$(SEED) cargo test --profile adversary \
	    --package celltrain-scenario --test adversary -- --nocapture

# COUNT and SEED: make exits COUNT=200 SEED=2.
exits: COUNT ?= 2000
exits: $(DEV)
	$(BIN)/python scripts/exits.py --count $(COUNT) --seed $(SEED)

kills: COUNT ?= 200
kills: $(DEV)
	$(BIN)/python scripts/kills.py --kills $(COUNT) --seed $(SEED)

mutated-files: COUNT ?= 5000
mutated-files: $(DEV)
	$(BIN)/python scripts/mutated_files.py --count $(COUNT) --seed $(SEED)

bench:
	cargo bench --package celltrain-bench

bench-cluster: $(DEV)
	$(BIN)/python scripts/bench_cluster.py

performance: $(DEV)
	$(BIN)/python scripts/performance_plots.py --page

guard: $(DEV)
	$(BIN)/python scripts/instruction_guard.py

counts: $(DEV)
	$(BIN)/python scripts/count_events.py --page

mutants: SEED ?= 1
mutants: COUNT ?= 300
mutants:
	cd mutants && cargo fmt --check && cargo clippy --all-targets --quiet -- -D warnings && cargo test --quiet
	cargo run --release --quiet --manifest-path mutants/Cargo.toml -- --seed $(SEED) --count $(COUNT)

planted:
	cargo run --release --quiet --manifest-path mutants/Cargo.toml -- --planted mutants/planted.csv

memory: $(DEV)
	$(BIN)/python scripts/memory_campaign.py

# FUZZ_SECONDS: how long for each of them.
FUZZ_SECONDS ?= 600
fuzz: $(DEV)
	cd fuzz && cargo +nightly fuzz run scenario_reader -- -max_total_time=$(FUZZ_SECONDS)
	cd fuzz && cargo +nightly fuzz run aal5_reassembler -- -max_total_time=$(FUZZ_SECONDS)
	$(BIN)/python -m pip install --requirement fuzz/python/requirements.txt
	set -e; for reader in plan graphml graph_json manifest; do \
	    $(BIN)/python fuzz/python/readers.py $$reader out/fuzz/$$reader -max_total_time=$(FUZZ_SECONDS); done

clean:
	rm -rf .venv .make dist out target lab/node_modules lab/out .pytest_cache .ruff_cache .mypy_cache .hypothesis
	rm -f python/celltrain/_core*.so python/celltrain/lab.html
	find python scripts -name __pycache__ -type d -prune -exec rm -rf {} +

# The package, editable, with an optimised core. Changed Python needs no new build.
.make/built: .make/venv $(RUST) $(SHIPPED)
	@echo "make: building celltrain with all optimisation; what is compiled already is kept"
	@$(BIN)/maturin develop --release --quiet
	@touch $@

# The lock file holds every requirement, so that maturin installs none. maturin comes first: the simulator is compiled while
# the other packages are installed.
.make/venv: pyproject.toml $(LOCK) | .make/tools
	@echo "make: compiling the simulator with all optimisation: about two minutes the first time, on two cores;"
	@echo "make: meanwhile installing $$(grep -c == $(LOCK)) Python packages into .venv, as $(LOCK) says"
	@$(PYTHON) -m venv .venv
	@sed -n '/^maturin==/,/# via/p; /^tomli==/,/# via/p' $(DEV_LOCK) > .make/maturin.lock
	@$(BIN)/python -m pip install --require-hashes --no-deps --requirement .make/maturin.lock
	@$(BIN)/maturin develop --release --quiet --skip-install & compiling=$$!; \
	    $(BIN)/python -m pip install --require-hashes --no-deps --requirement $(LOCK); installed=$$?; \
	    wait $$compiling && exit $$installed
	@touch $@

.make/dev: .make/venv $(DEV_LOCK)
	@echo "make: installing the packages for development, $$(grep -c == $(DEV_LOCK)) in all, as $(DEV_LOCK) says"
	@$(BIN)/python -m pip install --require-hashes --no-deps --requirement $(DEV_LOCK)
	@touch $@

.make/tools:
	@command -v $(PYTHON) > /dev/null || \
	    { echo "make: $(PYTHON) is needed, 3.10 or later (https://www.python.org)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	    { echo "make: $(PYTHON) is older than 3.10; choose another with: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || \
	    { echo "make: $(PYTHON) lacks venv; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@command -v cargo > /dev/null || \
	    { echo "make: cargo is needed: install Rust 1.88 or later (https://rustup.rs)" >&2; exit 1; }
	@mkdir -p .make && touch $@
