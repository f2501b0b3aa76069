"""Runs a campaign: a check, search or measurement that takes too long for `make test`.

make campaign                              lists them
make campaign NAME=kills COUNT=50 SEED=2   runs one
make campaign NAME=exits ARGS=--control    passes arguments on to its script
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Minimum fraction of the effective mutants that tests must catch.
CAUGHT = 0.95


@dataclass(frozen=True)
class Campaign:
    """A campaign: a command, or a function of COUNT and SEED that yields commands. Its duration is for two cores."""

    about: str
    time: str
    command: str | Callable[[int, int], Iterable[str]]
    count: int = 0


def papers(count: int, _: int) -> Iterable[str]:
    """Reproduces every paper and fills the paper's page."""
    for paper in sorted(path.parent.name for path in ROOT.glob("papers/*/paper.toml")):
        yield f"celltrain reproduce {paper} --seeds {count} --out out/{paper}"
        yield f"python scripts/paper_page.py out/{paper}/reproduce.json"


def studies(count: int, _: int) -> Iterable[str]:
    """Runs every study and fills its page."""
    for study in sorted(path.parent.name for path in ROOT.glob("studies/*/study.toml")):
        yield f"celltrain study {study} --seeds {count} --out out/studies/{study}"
        yield f"python scripts/paper_page.py out/studies/{study}/study.json"


def tune_study(_: int, __: int) -> Iterable[str]:
    """Searches with both policies, resumes interrupted searches, and fills the page."""
    stores = [f"out/tune-{policy}" for policy in ("selective-drop", "fba")]
    for store in stores:
        resume = "--resume" if (ROOT / store / "tune.json").exists() else ""
        yield f"celltrain tune plans/{Path(store).name}.toml --store {store} {resume}"
    yield f"python papers/af-96-1269/search/tune_page.py {' '.join(f'{store}/report/tune.json' for store in stores)}"


def formulas(count: int, seed: int) -> Iterable[str]:
    """Checks COUNT formulas, and runs a tenth of this number."""
    yield (
        f"CELLTRAIN_FORMULAS={count} CELLTRAIN_FORMULAS_SEED={seed} cargo test --release "
        "--package celltrain-formula --lib bytecode -- --nocapture"
    )
    yield (
        f"CELLTRAIN_FORMULA_RUNS={count // 10} CELLTRAIN_FORMULAS_SEED={seed} {SCENARIO_TESTS} --test integration "
        "formulas::both_engines_agree_on_random_formulas -- --nocapture"
    )


def fuzz(count: int, _: int) -> Iterable[str]:
    """Fuzzes each parser for a number of seconds."""
    for target in ("scenario_reader", "aal5_reassembler"):
        yield f"cd fuzz && cargo +nightly fuzz run {target} -- -max_total_time={count}"
    yield "python -m pip install --requirement fuzz/python/requirements.txt"
    for reader in ("plan", "graphml", "graph_json", "manifest"):
        yield f"python fuzz/python/readers.py {reader} out/fuzz/{reader} -max_total_time={count}"


def mutants(count: int, seed: int) -> Iterable[str]:
    """Tests every n-th mutant of the core, about COUNT in total, and exits with 1 if the tests miss too many."""
    listed = ["cargo", "mutants", "--package", "celltrain-core", "--list"]
    names = subprocess.run(listed, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    shards = max(1, len(names) // count)
    drawn = f"--sharding round-robin --shard {random.Random(seed).randrange(shards)}/{shards}"
    # Exit code 2: some mutants were missed. Exit code 3: a test timed out, so it noticed the mutant.
    # A mutant changes one function: small units compiled incrementally take a fifth of the time.
    fast = "CARGO_INCREMENTAL=1 CARGO_PROFILE_DEV_CODEGEN_UNITS=256"
    yield f"{fast} cargo mutants --package celltrain-core --output out {drawn} || test $? = 2 -o $? = 3"
    outcomes = json.loads((ROOT / "out/mutants.out/outcomes.json").read_text())
    caught, missed = outcomes["caught"] + outcomes["timeout"], outcomes["missed"]
    print(
        f"{caught} of {caught + missed} mutants that compile were caught; out/mutants.out/missed.txt names the others"
    )
    if caught < CAUGHT * (caught + missed):
        sys.exit(1)


SCENARIO_TESTS = "cargo test --profile adversary --package celltrain-scenario"
RUN_TESTS = "cargo test --profile adversary --package celltrain-run"
CAMPAIGNS = {
    # Checks.
    "adversary": Campaign(
        "runs random scenarios at the limits of valid values, on a build that checks overflow",
        "20 min",
        f"CELLTRAIN_ADVERSARY={{count}} CELLTRAIN_ADVERSARY_SEED={{seed}} {RUN_TESTS} --test adversary -- --nocapture",
        count=20_000,
    ),
    "captures": Campaign(
        "captures of random networks with pushed-out cells, real stacks and requests, read by tshark",
        "2 min",
        f"CELLTRAIN_CAPTURES={{count}} CELLTRAIN_CAPTURES_SEED={{seed}} {RUN_TESTS} --test captures -- --nocapture",
        count=200,
    ),
    "certificates": Campaign(
        "counts the runs of plans and studies that certificates fill, with COUNT seeds, and does each filled run",
        "15 min",
        "python scripts/certificates.py --seeds {count}",
        count=1,
    ),
    "differential": Campaign(
        "runs both engines on random networks of all kinds, which must reach all rare situations",
        "30 min",
        f"CELLTRAIN_CAMPAIGN={{count}} CELLTRAIN_CAMPAIGN_SEED={{seed}} {SCENARIO_TESTS} --test integration "
        "-- --ignored --exact differential::campaign::both_engines_agree_on_every_network_of_a_campaign --nocapture",
        count=60_000,
    ),
    "exits": Campaign(
        "tests processes that use stores or end during a run: none may end abnormally",
        "30 min",
        "python scripts/exits.py --count {count} --seed {seed}",
        count=2000,
    ),
    "faults": Campaign(
        "plants faults in the core: the differential campaign or a law must find each of them",
        "1 h",
        "python scripts/faults.py --seed {seed}",
    ),
    "formulas": Campaign(
        "checks random formulas, and runs a tenth of them on both engines",
        "3 h",
        formulas,
        10_000_000,
    ),
    "fuzz": Campaign(
        "fuzzes the readers of files for COUNT seconds each (cargo-fuzz, nightly Rust)", "1 h", fuzz, count=600
    ),
    "hosted": Campaign(
        "runs both engines on random networks of real stacks, whose runs must be repeatable",
        "2 min",
        "CELLTRAIN_HOSTED={count} CELLTRAIN_HOSTED_SEED={seed} cargo test --release --package celltrain-hosts "
        "--all-features --test hosted",
        count=1000,
    ),
    "kills": Campaign(
        "kills drivers and workers, at random and at chosen system calls: no run may be lost or stored twice",
        "30 min",
        "python scripts/kills.py --kills {count} --seed {seed}",
        count=200,
    ),
    "emulate-kills": Campaign(
        "kills emulations at random moments: no process, namespace or device may remain (needs root)",
        "30 min",
        "python scripts/emulate_kills.py --count {count} --seed {seed}",
        count=500,
    ),
    "memory": Campaign(
        "runs random large networks with little memory: no process may die, and no valid network may be refused",
        "15 min",
        "python scripts/memory_campaign.py --networks {count} --seed {seed}",
        count=50,
    ),
    "mutants": Campaign(
        "tests random changes of the core (cargo-mutants), into out/mutants.out", "4 h", mutants, count=100
    ),
    "mutated-files": Campaign(
        "gives changed files to the command line, which must report the damage and lose no data",
        "30 min",
        "python scripts/mutated_files.py --count {count} --seed {seed}",
        count=5000,
    ),
    "times": Campaign(
        "sets every time parameter from 1 ps to the length of the run: it must be possible to stop every run within 0.1 s",
        "10 min",
        f"CELLTRAIN_TIMES={{count}} CELLTRAIN_TIMES_SEED={{seed}} CELLTRAIN_TIMES_FOLDER={ROOT}/out/times {RUN_TESTS} "
        "--test adversary times -- --nocapture",
        count=10_000,
    ),
    "planted": Campaign(
        "plants faults in the ports of the core; a unit test must find each of them; a part of make test",
        "1 min",
        "python -m pytest python/tests/test_planted.py",
    ),
    # Results.
    "paper": Campaign(
        "runs every table and experiment of every paper with COUNT seeds, and writes their pages", "1 h", papers, 30
    ),
    "studies": Campaign(
        "runs every study with COUNT seeds, and writes the pages and figures", "35 min", studies, count=10
    ),
    "linux-cells": Campaign(
        "runs Linux's TCPs over cells in real time with COUNT repetitions, and writes the page (needs root and an idle machine)",
        "50 min",
        "python peers/linux_cells.py --count {count}",
        count=10,
    ),
    "tune-study": Campaign(
        "searches for the best R and Z of each configuration of 96-1269, and writes the page", "45 min", tune_study
    ),
    "competitive-ratios": Campaign(
        "calculates exact ratios of memory policies with two ports, and searches bad arrivals for more ports in COUNT tries",
        "5 min",
        "cargo run --release --package competitive-ratios -- {count} {seed}",
        count=500,
    ),
    # Campaigns for research on single papers.
    "choices": Campaign(
        "measures the effect of each open choice of a paper: ARGS='af-96-1269 --table 2'",
        "10 min",
        "python papers/search/paper_choices.py",
    ),
    "efci-search": Campaign(
        "searches the control of EFCI in draft-jagan: every combination of five settings",
        "10 min",
        "python papers/draft-jagan/search/efci_search.py",
    ),
    "formula-search": Campaign(
        "searches for the best one-line policy for all configurations of 96-1269",
        "6 min",
        "python papers/af-96-1269/search/formula_search.py --seed {seed}",
    ),
    "internetwork-search": Campaign(
        "searches for the open choices of draft-jagan one after the other",
        "1 h",
        "python papers/draft-jagan/search/internetwork_search.py",
    ),
    "joint-search": Campaign(
        "searches all open choices of a paper together: ARGS='af-96-1269 --sample 150'",
        "1 h",
        "python papers/search/joint_search.py --seed {seed}",
    ),
    "lock-step-search": Campaign(
        "counts the exact lock-step rows of 96-1269 with each answer to an open question",
        "2 min",
        "python papers/search/lock_step_search.py",
    ),
    "littles-law": Campaign(
        "applies Little's law to the results of the joint search of draft-jagan",
        "10 min",
        "python papers/draft-jagan/search/littles_law.py",
    ),
    "wan-search": Campaign(
        "searches for the open choices of 96-1269 on its WAN one after the other",
        "2 h",
        "python papers/af-96-1269/search/wan_search.py",
    ),
    # Measurements.
    "bench-cluster": Campaign(
        "runs a sweep on one and on two Dask workers, and on the threads of this machine",
        "10 min",
        "python python/benchmarks/cluster.py",
    ),
    "counts": Campaign(
        "counts instructions, mispredicted branches and cache misses of a cell-hop (valgrind)",
        "5 min",
        "python scripts/count_events.py --page",
    ),
    "performance": Campaign(
        "measures the engines and fills docs/performance.md", "5 min", "python scripts/performance_plots.py --page"
    ),
}


def main() -> int:
    """Lists the campaigns, or runs the named campaign."""
    parser = argparse.ArgumentParser(description="Run a campaign; without a name, list them.", allow_abbrev=False)
    parser.add_argument("name", nargs="?", choices=CAMPAIGNS)
    parser.add_argument("--count", type=int, help="number of cases to try; each campaign has a default")
    parser.add_argument("--seed", type=int, default=1, help="seed of random campaigns (default: 1)")
    asked, further = parser.parse_known_args()
    if asked.name is None:
        for name, one in CAMPAIGNS.items():
            print(f"{name:20} {one.time:>7}  {one.about}" + (f" [COUNT={one.count}]" if one.count else ""))
        return 0
    campaign = CAMPAIGNS[asked.name]
    count = asked.count or campaign.count
    if not isinstance(campaign.command, str):
        if further:
            parser.error(f"{asked.name} takes no arguments of its own")
        return next(filter(None, map(run, campaign.command(count, asked.seed))), 0)
    return run(f"{campaign.command.format(count=count, seed=asked.seed)} {shlex.join(further)}")


def run(command: str) -> int:
    """Runs a command in the root of the checkout, with this Python and the scripts of all papers on the path."""
    print(f"$ {command[:400]}", flush=True)
    modules = [ROOT / "scripts", *ROOT.glob("papers/search"), *ROOT.glob("papers/*/search")]
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([*map(str, modules), os.environ.get("PYTHONPATH", "")]),
    }
    return subprocess.run(command, shell=True, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
