"""`celltrain doctor`: is this installation sound? Versions, build, machine, shipped files, and a run whose outcome is known."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata, util
from typing import Any

from celltrain import _core
from celltrain.cli import options, progress, shell
from celltrain.model.arguments import cores

#: Packages, each with the extra that has it; none for those that are needed.
PACKAGES = dict.fromkeys(("numpy", "pyarrow", "pydantic", "rich", "typer"), "")
PACKAGES |= {"matplotlib": "plot", "pandas": "frames", "polars": "frames", "duckdb": "frames", "distributed": "cluster"}

# Fingerprint of the self test on every machine. It changes with the models; the changelog lists each change.
SELF_TEST_FINGERPRINT = "6511410705cde346"

IMPORT_TIME_LIMIT_SECONDS = 0.3


@shell.command("celltrain doctor", "celltrain doctor --json", "celltrain doctor --csv doctor.csv")
def doctor(csv: options.Csv = None, as_json: options.Json = False) -> int:
    """Check what is installed and whether it works; exit with 1 if something is wrong."""
    from celltrain.model.grids import Line

    output = shell.Output.of(as_json=as_json, csv=csv)
    with progress.waiting("looking"):
        findings = list(examine())
    fine = all(finding["fine"] for finding in findings)
    grid = shell.grid("", "what", "found", "", left=("", "what", "found"))
    for finding in findings:
        value = finding["value"]
        text = "not there" if value is None else ", ".join(value) if isinstance(value, list) else str(value)
        grid.add_row("ok" if finding["fine"] else "WRONG", finding["name"], text, finding["advice"])
    output.show(
        answer=lambda: {"fine": fine, "findings": findings},
        rows=lambda: findings,
        blocks=lambda: [grid, Line(text="everything is fine" if fine else "something is wrong")],
    )
    output.wrote()
    return shell.DONE if fine else shell.NO


def _finding(name: str, value: Any, problem: str = "", advice: str = "") -> dict[str, Any]:
    """One thing looked at, with what is wrong with it, or advice if nothing is."""
    return {"name": name, "value": value, "fine": not problem, "advice": problem or advice}


def examine() -> Iterator[dict[str, Any]]:
    """Looks at everything."""
    from celltrain.cli.catalog import CHOICES, entries

    build, memory = _core.build(), _core.memory_limit()
    slow_build = "this build is many times slower than it should be; install with: pip install ."
    yield _finding("celltrain", build["version"])
    yield _finding("build", build["profile"], "" if build["profile"] == "release" else slow_build)
    yield _finding("Python", platform.python_version())
    yield _finding("system", f"{platform.system()} {platform.machine()}")
    yield _finding("cores", cores())
    yield _finding("memory MiB", None if memory is None else memory >> 20)
    for name, extra in PACKAGES.items():
        version = _version(name)
        if extra:
            # Nothing is wrong without an extra.
            advice = "" if version else f"optional: pip install celltrain[{extra}]"
            yield _finding(f"{name} [{extra}]", version, advice=advice)
        else:
            yield _finding(name, version, "" if version else f"it is needed; install it with: pip install {name}")
    incomplete = "this installation is incomplete: install it again"
    for kind in ("papers", "studies"):
        names = [entry.name for entry in entries(kind)]
        yield _finding(kind, names, "" if names else incomplete)
    scenarios, models = entries("scenarios"), [entry for kind in CHOICES for entry in entries(kind)]
    without = [entry.name for entry in models if entry.page is None]
    yield _finding("example scenarios", len(scenarios), "" if scenarios else incomplete)
    problem = f"no page for {', '.join(without)}" if without else ""
    yield _finding("models with a page", len(models) - len(without), problem)
    # Slow is worth knowing, not wrong.
    seconds = import_seconds()
    slow = f"more than {IMPORT_TIME_LIMIT_SECONDS} s: the disk is slow or busy"
    yield _finding("import seconds", round(seconds, 4), advice=slow if seconds > IMPORT_TIME_LIMIT_SECONDS else "")
    yield _self_test()


def _version(name: str) -> str | None:
    if util.find_spec(name) is None:
        return None
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"


def import_seconds() -> float:
    """Seconds that `import celltrain` takes in a fresh interpreter."""
    code = "import time; t = time.perf_counter(); import celltrain; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def _self_test() -> dict[str, Any]:
    """10 ms of three sources that overflow a small buffer."""
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


COMMANDS = {"doctor": doctor}
