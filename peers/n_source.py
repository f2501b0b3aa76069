"""Runs N-source networks alternately in celltrain and in ns-2, and compares efficiency and CPU time.

    python peers/n_source.py          prints a table, exits with 1 if efficiencies disagree
    python peers/n_source.py --page   also writes the table into docs/performance.md

N sources send segments of 512 bytes over NewReno through one bottleneck. All links have the same rate and delay. A
packet takes as long as its 12 cells. The bottleneck holds a number of packets and drops all others: celltrain uses EPD,
which refuses whole frames, like a queue of packets. CPU times are those of whole processes in user mode. If `ns` is not
installed, the script compares nothing and succeeds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import celltrain as ct
import ns2
import ns3
import page

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"

RATE_BPS = 155_520_000
SEGMENT_BYTES = 512
CELLS = 12
"""Number of cells of a segment with its headers."""
ACK_CELLS = 2
CELL_BYTES = 53
TICK_MS = 100
MINIMUM_RTO_MS = 200
INITIAL_RTO_S = 3
SSTHRESH_PACKETS = 20
"""Initial slow start threshold, low enough that slow start does not overflow the buffer."""

SOURCES = (5, 15, 50)
SECONDS = 60.0
ROUNDS = 3
"""Number of runs of each program, which alternate. The number is odd, so that one of the runs is the median."""
TOLERANCE = 0.05
"""Largest accepted difference in efficiency."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The links, buffer and receive windows of a network."""

    name: str
    delay_us: int
    """Delay of each of the three links, one way."""
    buffer_packets: int
    window_packets: int


SETTINGS = (
    Setting(name="LAN", delay_us=5, buffer_packets=83, window_packets=127),
    Setting(name="WAN", delay_us=5000, buffer_packets=1000, window_packets=1171),
)

# Runs a setting with N sources for a number of seconds. Returns the packets delivered, and the CPU time in seconds.
Run = Callable[[Setting, int, float], tuple[float, float]]


def celltrain(setting: Setting, sources: int, seconds: float) -> tuple[float, float]:
    """Runs the network in celltrain."""
    threshold = CELLS * setting.buffer_packets
    tcp = {
        "mss": f"{SEGMENT_BYTES}B",
        "receive_window": f"{SEGMENT_BYTES * setting.window_packets}B",
        "timer_granularity": f"{TICK_MS}ms",
        "minimum_rto": MINIMUM_RTO_MS // TICK_MS,
        "timer": {"initial_rto": f"{INITIAL_RTO_S}s"},
        "start": {"initial_ssthresh": f"{SEGMENT_BYTES * SSTHRESH_PACKETS}B"},
        "rules": "paper",
        "windows": {"ssthresh_rule": "half_of_window", "growth": "capped"},
    }
    scenario = ct.Scenario.model_validate(
        {
            "duration": f"{round(1e6 * seconds)}us",
            "topology": {
                "n_source": {
                    "sources": sources,
                    "link_rate": f"{RATE_BPS}bps",
                    "link_delay": f"{setting.delay_us}us",
                }
            },
            "tcp": {"newreno": tcp},
            "port": {
                # Leave room for the remaining cells of every frame whose first cell has been admitted.
                "bottleneck": {
                    "buffer": threshold + CELLS * sources,
                    "policy": {"epd": {"threshold": f"{threshold - CELLS} cells"}},
                },
                "default": {"buffer": "infinite", "policy": {"tail_drop": {}}},
            },
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "n-source.toml"
        ct.save(scenario, path)
        output, cpu = ns3.measured([sys.executable, "-m", "celltrain", "run", str(path), "--json"])
    return sum(flow["delivered_bytes"] for flow in json.loads(output)["flows"]) / SEGMENT_BYTES, cpu


def in_ns2(setting: Setting, sources: int, seconds: float) -> tuple[float, float]:
    """Runs the network in ns-2."""
    text = ns2.OTCL.format(
        rate=RATE_BPS,
        access=RATE_BPS,
        delay=setting.delay_us / 1000,
        buffer=setting.buffer_packets,
        bytes=CELL_BYTES * CELLS,
        ack_bytes=CELL_BYTES * ACK_CELLS,
        window=setting.window_packets,
        ssthresh=SSTHRESH_PACKETS,
        sources=sources,
        variant="Newreno",
        sink="TCPSink",
        # Windows are printed at the start and at the end only.
        step=seconds,
        seconds=1.001 * seconds,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "n-source.tcl"
        path.write_text(text, encoding="utf-8")
        output, cpu = ns3.measured(["ns", str(path)])
    # Numbers of the last acknowledged packets, from 0.
    return sum(float(word) for word in output.splitlines()[1].split()[2::2]) + sources, cpu


def ns2_version() -> str | None:
    """Returns the version of ns-2, or None if it is not installed."""
    if shutil.which("ns") is None:
        return None
    done = subprocess.run(["ns", "-"], input="puts [ns-version]\n", capture_output=True, text=True, check=False)
    return done.stdout.strip() or "of unknown version"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A network described for both programs: first for celltrain, then for ns-2."""

    network: str
    sources: int
    efficiencies: tuple[float, float]
    cpu_s: tuple[float, float]
    """CPU time: the median of all rounds."""
    set_up_s: tuple[float, float]
    """CPU time for simulating one microsecond."""


def measure(setting: Setting, sources: int, seconds: float, rounds: int) -> Row:
    """Runs both programs alternately."""
    runs: tuple[Run, Run] = (celltrain, in_ns2)
    set_up = [run(setting, sources, 1e-6)[1] for run in runs]
    taken = [[run(setting, sources, seconds) for run in runs] for _ in range(rounds)]
    ours, theirs = zip(*taken, strict=True)
    efficiency = CELLS * CELL_BYTES * 8 / (RATE_BPS * seconds)
    return Row(
        network=setting.name,
        sources=sources,
        efficiencies=(ours[0][0] * efficiency, theirs[0][0] * efficiency),
        cpu_s=(statistics.median(cpu for _, cpu in ours), statistics.median(cpu for _, cpu in theirs)),
        set_up_s=(set_up[0], set_up[1]),
    )


def table(rows: Sequence[Row]) -> str:
    """Returns the results in Markdown."""
    lines = [
        "| network | sources | efficiency | in ns-2 | CPU seconds | in ns-2 | set-up | in ns-2 | ratio without set-up |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        ours, theirs = (cpu - set_up for cpu, set_up in zip(row.cpu_s, row.set_up_s, strict=True))
        numbers = [f"{value:.3f}" for value in row.efficiencies]
        numbers += [f"{value:.2f}" for value in (*row.cpu_s, *row.set_up_s)]
        lines.append(f"| {row.network} | {row.sources} | {' | '.join(numbers)} | {theirs / ours:.1f} |")
    return "\n".join(lines)


def page_text(rows: Sequence[Row], seconds: float, rounds: int, version: str) -> str:
    """Returns the text and the table for the page."""
    delays = [f"{s.delay_us} us" if s.delay_us < 1000 else f"{s.delay_us // 1000} ms" for s in SETTINGS]
    buffers = " or ".join(
        f"{s.buffer_packets} packets ({s.name}, {delay} per link)" for s, delay in zip(SETTINGS, delays, strict=True)
    )
    text = f"""
`make peers` runs these networks alternately in celltrain {ct.__version__} and ns-2 {version}: {seconds:g} s of NewReno over
links of 155.52 Mb/s, with a buffer of {buffers}. Packets of {CELLS} cells are lost whole. The initial ssthresh
is {SSTHRESH_PACKETS} packets, the tick {TICK_MS} ms and the minimum RTO {MINIMUM_RTO_MS} ms. CPU seconds are
medians of {rounds} whole processes in user mode. htsim and YATS have no packages, so they are left out."""
    return textwrap.fill(" ".join(text.split()), 120, break_on_hyphens=False) + "\n\n" + table(rows)


def disagreements(rows: Sequence[Row]) -> list[str]:
    """Returns the networks whose efficiencies differ."""
    return [
        f"{row.network} with {row.sources} sources: efficiency {row.efficiencies[0]:.3f}, {row.efficiencies[1]:.3f} in ns-2"
        for row in rows
        if abs(row.efficiencies[0] - row.efficiencies[1]) > TOLERANCE
    ]


def main() -> int:
    """Runs both programs, prints the table, and fills the page if requested."""
    parser = argparse.ArgumentParser(description="Compare celltrain with ns-2 on N-source networks.")
    parser.add_argument("--sources", type=int, nargs="+", default=SOURCES, help="numbers of sources")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"simulated time; {SECONDS:g} by default")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"number of runs of each program (default: {ROUNDS})"
    )
    parser.add_argument("--page", action="store_true", help="also write the table into docs/performance.md")
    arguments = parser.parse_args()
    version = ns2_version()
    if version is None:
        print("nothing compared: ns-2 is not installed (on Debian: apt install ns2)")
        return 0
    networks = itertools.product(SETTINGS, arguments.sources)
    rows = [measure(setting, n, arguments.seconds, arguments.rounds) for setting, n in networks]
    print(table(rows))
    if arguments.page:
        page.fill(PAGE, "peers", page_text(rows, arguments.seconds, arguments.rounds, version))
    return page.outcome(disagreements(rows))


if __name__ == "__main__":
    sys.exit(main())
