"""Commands about the installation: `doctor` examines it, `bench` measures both engines, `lab` opens the lab's page.

`bench` runs the scenarios of `celltrain-bench` in the group `whole`. Each scenario runs in a separate process, so that
its peak memory can be measured.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import webbrowser
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from celltrain import _core
from celltrain.cli import shell
from celltrain.errors import CelltrainError, InputError, package
from celltrain.model.arguments import cores
from celltrain.model.files import named
from celltrain.model.grids import Line

# The fastest of a few runs is reported, because other load on the machine can only slow a run down.
TIMES = 3
# `--quick` runs some of the scenarios, unchanged, once each.
QUICK_TIMES = 1
QUICK = ("n-source-lan-5-infinite", "n-source-lan-15-fba-1000", "n-source-wan-5-epd-12000", "idle")
#: Measures a scenario; the arguments are its name, the engine and the number of runs. The core does not check for
#: signals meanwhile, so Ctrl-C ends the process.
PROGRAM = """
import signal, sys
from celltrain import _core
signal.signal(signal.SIGINT, signal.SIG_DFL)
print(_core.measure(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


@shell.command
def bench(output: shell.Table, quick: bool = False) -> None:
    """Measure both engines on fixed scenarios, each in a process of its own: the fastest of three runs.

    Options:
        quick: Four of the scenarios, one run each.

    Examples:
        celltrain bench
        celltrain bench --quick
        celltrain bench --csv speed.csv
    """
    profile = _core.build()["profile"]
    if profile != "release":
        problem = "is not benchmarked: only a release build has meaningful speeds. Install one with: pip install ."
        raise InputError.of_option("build", profile, problem)
    titles = {case["scenario"]: case["title"] for case in cases(quick=quick)}
    measured: list[dict[str, Any]] = []
    with shell.waiting(f"measuring {len(titles)} scenarios on both engines") as tell:
        for row in _measure(list(titles), QUICK_TIMES if quick else TIMES):
            measured.append(row)
            if tell is not None:
                tell(len(measured) / (2 * len(titles)))
    heads = ("scenario", "cell-hops", "engine", "seconds", "M cell-hops/s", "memory (MiB)", "times faster")
    grid = shell.grid(*heads, left=("scenario", "engine"))
    for row in measured:
        first = [titles[row["scenario"]], f"{row['cell_hops']:,}"] if row["engine"] == "reference" else ["", ""]
        speeds = f"{row['engine_seconds']:.4f}", f"{row['cell_hops_per_second'] / 1e6:.1f}"
        others = ((row["peak_rss_mib"], ".0f"), (row.get("ratio_to_reference"), ".1f"))
        grid.add_row(
            *first, row["engine"], *speeds, *("" if one is None else format(one, form) for one, form in others)
        )
    note = "Seconds of wall-clock time. Memory is the peak of the process, including Python."
    output.show(measured, [grid, Line(text=note)], lambda: measured)


def cases(*, quick: bool = False) -> list[dict[str, Any]]:
    """Returns the scenarios: name, title, simulated seconds, text."""
    return [case for case in json.loads(_core.bench_cases()) if case["scenario"] in QUICK or not quick]


def _measure(scenarios: list[str], times: int) -> Iterator[dict[str, Any]]:
    """Runs every scenario on both engines.

    The reference engine runs just before the fast engine, to compute the ratio of their times.
    """
    for scenario in scenarios:
        reference_seconds = None
        for engine in ("reference", "fast"):
            command = [sys.executable, "-c", PROGRAM, scenario, engine, str(times)]
            row = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
            if reference_seconds is not None:
                row["ratio_to_reference"] = reference_seconds / row["engine_seconds"]
            reference_seconds = row["engine_seconds"]
            yield row


#: Packages, each with the extra that installs it; empty for required packages.
PACKAGES = dict.fromkeys(("numpy", "pyarrow", "pydantic", "rich", "typer"), "")
PACKAGES |= {"matplotlib": "plot", "pandas": "frames", "polars": "frames", "duckdb": "frames", "distributed": "cluster"}

# Fingerprint of the self test, the same on every machine. It changes with the models; the changelog lists each change.
SELF_TEST_FINGERPRINT = "6511410705cde346"

IMPORT_TIME_LIMIT_SECONDS = 0.3


@shell.command
def doctor(output: shell.Table) -> int:
    """Check what is installed and whether it works; exit with 1 if something is wrong.

    Examples:
        celltrain doctor
        celltrain doctor --json
        celltrain doctor --csv doctor.csv
    """
    with shell.waiting("looking"):
        findings = list(examine())
    fine = all(finding["fine"] for finding in findings)
    grid = shell.grid("", "what", "found", "", left=("", "what", "found"))
    for finding in findings:
        value = finding["value"]
        text = "not there" if value is None else ", ".join(value) if isinstance(value, list) else str(value)
        grid.add_row("ok" if finding["fine"] else "WRONG", finding["name"], text, finding["advice"])
    verdict = Line(text="everything is fine" if fine else "something is wrong")
    output.show({"fine": fine, "findings": findings}, [grid, verdict], lambda: findings)
    return shell.DONE if fine else shell.NO


def _finding(name: str, value: Any, problem: str = "", advice: str = "") -> dict[str, Any]:
    """Returns a row of the examination: the value found, and a problem with it or advice."""
    return {"name": name, "value": value, "fine": not problem, "advice": problem or advice}


def examine() -> Iterator[dict[str, Any]]:
    """Yields a row for each part of the installation."""
    from celltrain.cli.catalog import CHOICES, entries

    build, memory = _core.build(), _core.memory_limit()
    slow_build = "this build is many times slower than a release build; install with: pip install ."
    of_commit = "" if build["commit"] else "built without git, so results name no commit"
    here = checkout()
    if build["commit"] and here and not here.startswith(build["commit"]):
        of_commit = f"the checkout is at {here[: len(build['commit'])]}: results name the commit of the build"
    yield _finding("celltrain", build["version"])
    yield _finding("commit", build["commit"] or "unknown", advice=of_commit)
    yield _finding("build", build["profile"], "" if build["profile"] == "release" else slow_build)
    yield _finding("Python", platform.python_version())
    yield _finding("system", f"{platform.system()} {platform.machine()}")
    yield _finding("cores", cores())
    yield _finding("memory MiB", None if memory is None else memory >> 20)
    for name, extra in PACKAGES.items():
        version = next((one.version for one in metadata.distributions(name=name)), None)
        if extra:
            # A missing extra is not a problem.
            advice = "" if version else f"optional: pip install {package(extra)}"
            yield _finding(f"{name} [{extra}]", version, advice=advice)
        else:
            problem = "" if version else f"this package is needed; install it with: pip install {name}"
            yield _finding(name, version, problem)
    incomplete = "this installation is incomplete: install celltrain again"
    for kind in ("papers", "studies"):
        names = [entry.name for entry in entries(kind)]
        yield _finding(kind, names, "" if names else incomplete)
    scenarios, models = entries("scenarios"), [entry for kind in CHOICES for entry in entries(kind)]
    without = [entry.name for entry in models if entry.page is None]
    yield _finding("example scenarios", len(scenarios), "" if scenarios else incomplete)
    problem = f"no page for {', '.join(without)}" if without else ""
    yield _finding("models with a page", len(models) - len(without), problem)
    # A slow import is reported, but is not a problem.
    seconds = import_seconds()
    slow = f"more than {IMPORT_TIME_LIMIT_SECONDS} s: the disk is slow or busy"
    yield _finding("import seconds", round(seconds, 4), advice=slow if seconds > IMPORT_TIME_LIMIT_SECONDS else "")
    yield _self_test()


def checkout(root: Path = Path(__file__).parents[3]) -> str | None:
    """Returns the commit of the clone that contains this package; None without a clone or without git."""
    if not (root / ".git").exists():
        return None
    try:
        command = ["git", "-C", str(root), "rev-parse", "HEAD"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def import_seconds() -> float:
    """Returns the seconds that `import celltrain` takes in a new interpreter."""
    code = "import time; t = time.perf_counter(); import celltrain; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def _self_test() -> dict[str, Any]:
    """Simulates 10 ms of three sources that overflow a small buffer, and checks the fingerprint."""
    import celltrain as ct

    small = ct.n_source(
        sources=3, link_delay="5us", buffer_cells=50, policy=ct.Epd(threshold=30), duration="10ms", seed=1
    )
    try:
        fingerprint = ct.run(small).fingerprint
    except Exception as error:
        return _finding("self test", f"{type(error).__name__}: {error}", "please report it")
    differs = f"expected {SELF_TEST_FINGERPRINT}: results here differ from those elsewhere; please report it"
    return _finding("self test", fingerprint, "" if fingerprint == SELF_TEST_FINGERPRINT else differs)


#: Path of the lab's page, both in a wheel and in a checkout after `make lab`.
PAGE = Path(__file__).parent.parent / "lab.html"


@shell.command
def lab(output: shell.Answer, out: Path | None = None) -> None:
    """Open the lab in a browser: the simulator as a page, with a view into a buffer and exercises.

    Output:
        out (FILE): Write the page there instead: one file, which needs no network.

    Examples:
        celltrain lab
        celltrain lab --out lab.html
        celltrain lab --json
    """
    try:
        page = PAGE.read_bytes()
    except FileNotFoundError:
        raise CelltrainError(
            "this installation lacks the page of the lab: in a checkout, build the page with make lab, which needs "
            "node 20 or later, npm, cargo and Rust's wasm target (rustup target add wasm32-unknown-unknown)"
        ) from None
    if out is not None:
        with named(out) as file:
            file.write(page)
    address = (out or PAGE).resolve().as_uri()
    text = f"The lab is {address}: open it in a browser."
    if out is None and output.form != "json" and webbrowser.open(address):
        text = f"The lab is open in a browser: {address}"
    output.tell({"page": address, "bytes": len(page)}, text)


COMMANDS = {"bench": bench, "doctor": doctor, "lab": lab}
