"""How fast the engines are: whole scenarios, each in a process of its own so that its peak memory is its own.

`celltrain bench` runs every scenario as `python -m celltrain.bench NAME SECONDS ENGINE`, which prints one JSON object.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from celltrain.models import Scenario

# The best of a few runs: whatever else the machine does can only slow a run down.
REPEATS = 3


@dataclass(frozen=True, kw_only=True)
class Case:
    """A scenario to measure."""

    name: str
    seconds: float
    """Simulated time."""
    quick_seconds: float
    """The same with `--quick`."""


CASES = (
    Case(name="n-source-lan-5-infinite", seconds=10, quick_seconds=1),
    Case(name="n-source-lan-15-fba-1000", seconds=10, quick_seconds=1),
    Case(name="n-source-wan-5-epd-12000", seconds=20, quick_seconds=2),
    Case(name="idle", seconds=1000, quick_seconds=100),
)


def scenario(name: str, seconds: float) -> Scenario:
    """The scenario of a case."""
    import celltrain as ct

    duration = f"{seconds:g}s"
    wan = ct.Vanilla(receive_window="600000B")
    match name:
        case "n-source-lan-5-infinite":
            return ct.n_source(
                sources=5, link_delay="5us", buffer_cells="infinite", policy=ct.TailDrop(), duration=duration
            )
        case "n-source-lan-15-fba-1000":
            policy = ct.Fba(threshold=0.9, z=0.8)
            return ct.n_source(sources=15, link_delay="5us", buffer_cells=1000, policy=policy, duration=duration)
        case "n-source-wan-5-epd-12000":
            epd = ct.Epd(threshold_cells=11800)
            return ct.n_source(sources=5, link_delay="5ms", buffer_cells=12000, policy=epd, duration=duration, tcp=wan)
        case "idle":
            # One segment in flight on a long link: nearly every cell time is empty, at every port.
            tcp = ct.Vanilla(receive_window="512B", initial_rto="60s", minimum_rto_ticks=100)
            return ct.n_source(
                sources=1, link_delay="1s", buffer_cells=1000, policy=ct.TailDrop(), duration=duration, tcp=tcp
            )
    raise ValueError(f"{name!r} is no case; there are {', '.join(case.name for case in CASES)}")


def measure(name: str, seconds: float, engine: str) -> dict[str, Any]:
    """Runs a case in this process."""
    import celltrain as ct

    runs = [ct.run(scenario(name, seconds), engine=engine) for _ in range(REPEATS)]
    best = min(runs, key=lambda run: run.engine_seconds)
    return {
        "scenario": name,
        "engine": engine,
        "cell_hops": best.cell_hops,
        "engine_seconds": best.engine_seconds,
        "cell_hops_per_second": best.cell_hops_per_second,
        "peak_rss_mib": peak_rss_mib(),
    }


def measure_all(*, quick: bool) -> Iterator[dict[str, Any]]:
    """Runs every case on every engine, each in a process of its own."""
    from celltrain.results import ENGINES

    for case in CASES:
        for engine in ENGINES:
            seconds = case.quick_seconds if quick else case.seconds
            command = [sys.executable, "-m", "celltrain.bench", case.name, str(seconds), engine]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
            yield json.loads(done.stdout)


def peak_rss_mib() -> float | None:
    """The most memory this process ever had, in MiB; None where the system does not tell."""
    # Not getrusage where there is better: on Linux a child starts with the peak of the process that made it.
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], float(sys.argv[2]), sys.argv[3])))  # noqa: T201
