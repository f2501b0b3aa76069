"""Is this installation sound? Versions, build, machine, shipped files, and a run whose outcome is known."""

from __future__ import annotations

import platform
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata, util
from typing import Any

from celltrain import _core
from celltrain.model.arguments import cores

EXTRAS = {"plot": ("matplotlib",), "frames": ("pandas", "polars", "duckdb"), "cluster": ("distributed",)}
NEEDED = ("numpy", "pyarrow", "pydantic", "rich", "typer")

# Fingerprint of the self test on every machine. It changes with the models; the changelog lists each change.
SELF_TEST_FINGERPRINT = "6511410705cde346"

IMPORT_TIME_LIMIT_SECONDS = 0.3


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing looked at."""

    name: str
    value: Any
    fine: bool = True
    advice: str = ""
    """Advice, if it is not fine."""

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON answer."""
        return {"name": self.name, "value": self.value, "fine": self.fine, "advice": self.advice}


def examine() -> list[Finding]:
    """Looks at everything."""
    return [*_build(), *_machine(), *_packages(), *_shipped(), _import_time(), _self_test()]


def _build() -> list[Finding]:
    build = _core.build()
    release = build["profile"] == "release"
    advice = "" if release else "this build is many times slower than it should be; install with: pip install ."
    return [
        Finding(name="celltrain", value=build["version"]),
        Finding(name="build", value=build["profile"], fine=release, advice=advice),
        Finding(name="Python", value=platform.python_version()),
    ]


def _machine() -> list[Finding]:
    memory = _core.memory_limit()
    return [
        Finding(name="system", value=f"{platform.system()} {platform.machine()}"),
        Finding(name="cores", value=cores()),
        Finding(name="memory MiB", value=None if memory is None else memory >> 20),
    ]


def _packages() -> list[Finding]:
    findings = []
    for name in NEEDED:
        version = _version(name)
        advice = "" if version else f"it is needed; install it with: pip install {name}"
        findings.append(Finding(name=name, value=version, fine=version is not None, advice=advice))
    for extra, names in EXTRAS.items():
        for name in names:
            version = _version(name)
            # Nothing is wrong without an extra.
            advice = "" if version else f"optional: pip install celltrain[{extra}]"
            findings.append(Finding(name=f"{name} [{extra}]", value=version, advice=advice))
    return findings


def _version(name: str) -> str | None:
    if util.find_spec(name) is None:
        return None
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"


def _shipped() -> list[Finding]:
    from celltrain.cli.catalog import CHOICES, entries

    papers, studies = ([entry.name for entry in entries(kind)] for kind in ("papers", "studies"))
    scenarios = entries("scenarios")
    models = [entry for kind in CHOICES for entry in entries(kind)]
    without = [entry.name for entry in models if entry.page is None]
    broken = [entry.name for entry in scenarios if not entry.summary]
    incomplete = "this installation is incomplete: install it again"
    return [
        Finding(name="papers", value=papers, fine=bool(papers), advice="" if papers else incomplete),
        Finding(name="studies", value=studies, fine=bool(studies), advice="" if studies else incomplete),
        Finding(
            name="example scenarios",
            value=len(scenarios),
            fine=bool(scenarios) and not broken,
            advice=f"these do not pass: {', '.join(broken)}" if broken else "" if scenarios else incomplete,
        ),
        Finding(
            name="models with a page",
            value=len(models) - len(without),
            fine=not without,
            advice=f"no page for {', '.join(without)}" if without else "",
        ),
    ]


def _import_time() -> Finding:
    """Slow is worth knowing, not wrong."""
    seconds = import_seconds()
    slow = seconds > IMPORT_TIME_LIMIT_SECONDS
    advice = f"more than {IMPORT_TIME_LIMIT_SECONDS} s: the disk is slow or busy" if slow else ""
    return Finding(name="import seconds", value=round(seconds, 4), advice=advice)


def import_seconds() -> float:
    """Seconds that `import celltrain` takes in a fresh interpreter."""
    code = "import time; t = time.perf_counter(); import celltrain; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def _self_test() -> Finding:
    """10 ms of three sources that overflow a small buffer."""
    import celltrain as ct

    small = ct.n_source(
        sources=3, link_delay="5us", buffer_cells=50, policy=ct.Epd(threshold=30), duration="10ms", seed=1
    )
    try:
        fingerprint = ct.run(small).fingerprint
    except Exception as error:
        return Finding(
            name="self test", value=f"{type(error).__name__}: {error}", fine=False, advice="please report it"
        )
    same = fingerprint == SELF_TEST_FINGERPRINT
    advice = (
        "" if same else f"expected {SELF_TEST_FINGERPRINT}: results here differ from those elsewhere; please report it"
    )
    return Finding(name="self test", value=fingerprint, fine=same, advice=advice)
