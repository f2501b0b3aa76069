"""Runs N-source networks in celltrain, ns-2 and ns-3, one after the other: efficiency and CPU time.

    python peers/n_source.py                  runs the programs that are installed, and prints a table
    python peers/n_source.py --page           also saves the results and writes the table into docs/performance.md
    python peers/n_source.py --page --saved   writes the table of the saved results

N sources send segments of 512 bytes over NewReno through one bottleneck. All links have the same rate and delay. A
packet takes as long as its 12 cells. The bottleneck holds a number of packets and drops all others: celltrain uses EPD,
which refuses whole frames, like a queue of packets. In ns-3 (peers/leaf_spine.cc), a third switch divides the link
between the switches, and with it the delay.

CPU times are those of whole processes in user mode. The set-up is the CPU time of a run of a microsecond. The script
exits with 1 if efficiencies disagree.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import celltrain as ct
import ns2
import ns3
import page

SAVED = Path(__file__).with_name("n_source.csv")

RATE_BPS = 155_520_000
SEGMENT_BYTES = 512
CELLS = 12
"""Cells of a segment with its headers."""
ACK_CELLS = 2
CELL_BYTES = 53
NS3_PACKET_BYTES = SEGMENT_BYTES + 20 + 20 + 2
"""Bytes of a segment in ns-3. Its links are slower in proportion."""
TICK_MS = 100
MINIMUM_RTO_MS = 200
INITIAL_RTO_S = 3
SSTHRESH_PACKETS = 20
"""Initial slow start threshold, low enough that slow start does not overflow the buffer."""

SOURCES = (5, 15, 50)
SECONDS = 50.0
ROUNDS = 3
"""Number of runs of each program, which take turns; odd, so that one of them is the median."""
TOLERANCE = 0.05
"""Largest difference in efficiency."""


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
        "initial_rto": f"{INITIAL_RTO_S}s",
        "initial_ssthresh": f"{SEGMENT_BYTES * SSTHRESH_PACKETS}B",
        "ssthresh_rule": "half_of_window",
        "window_growth": "capped",
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
                # Leave room for the remaining cells of every frame that has started.
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
    # Numbers of the last packets acknowledged, from 0.
    return sum(float(word) for word in output.splitlines()[1].split()[2::2]) + sources, cpu


def in_ns3(program: Path) -> Run:
    """Returns a function that runs the network in ns-3."""

    def run(setting: Setting, sources: int, seconds: float) -> tuple[float, float]:
        rate = f"{round(RATE_BPS * NS3_PACKET_BYTES / (CELL_BYTES * CELLS))}bps"
        options = {
            "tcp": "newreno",
            "leaves": 2,
            "hosts": sources,
            "spines": 1,
            "hostRate": rate,
            "uplinkRate": rate,
            "hostDelay": f"{setting.delay_us}us",
            "uplinkDelay": f"{500 * setting.delay_us}ns",
            "segment": SEGMENT_BYTES,
            "window": SEGMENT_BYTES * setting.window_packets,
            "initialWindow": 1,
            "ns3::TcpSocket::InitialSlowStartThreshold": SEGMENT_BYTES * SSTHRESH_PACKETS,
            "minimumRto": f"{MINIMUM_RTO_MS}ms",
            "initialRto": f"{INITIAL_RTO_S}s",
            "timerGranularity": f"{TICK_MS}ms",
            "buffer": setting.buffer_packets,
            "duration": f"{round(1e9 * seconds)}ns",
        }
        endless = SEGMENT_BYTES * 10**9
        flows = [
            ns3.Flow(start_ns=0, source=i, destination=sources + i, bytes=endless, spine=1)
            for i in range(1, sources + 1)
        ]
        summary, _, cpu = ns3.execute(program, flows, options)
        return summary["received_bytes"] / SEGMENT_BYTES, cpu

    return run


def ns2_version() -> str | None:
    """Returns the version of ns-2, or None if it is not installed."""
    if shutil.which("ns") is None:
        return None
    done = subprocess.run(["ns", "-"], input="puts [ns-version]\n", capture_output=True, text=True, check=False)
    return done.stdout.strip() or "of unknown version"


def measure(programs: dict[str, tuple[str, Run]], sources: Iterable[int], seconds: float, rounds: int) -> list[Row]:
    """Runs all programs in turns. Returns the medians of all rounds."""
    rows = []
    for setting, n in itertools.product(SETTINGS, sources):
        taken = [
            {name: (run(setting, n, 1e-6)[1], *run(setting, n, seconds)) for name, (_, run) in programs.items()}
            for _ in range(rounds)
        ]
        for name, (version, _) in programs.items():
            set_up, packets, cpu = map(statistics.median, zip(*(each[name] for each in taken), strict=True))
            row = {
                "network": setting.name,
                "sources": n,
                "program": name,
                "version": version,
                "seconds": f"{seconds:g}",
                "rounds": rounds,
                "efficiency": f"{packets * CELLS * CELL_BYTES * 8 / (RATE_BPS * seconds):.4f}",
                "cpu_s": f"{cpu:.3f}",
                "set_up_s": f"{set_up:.3f}",
            }
            rows.append({key: str(value) for key, value in row.items()})
            print(" ".join(rows[-1].values()), flush=True)
    return rows


Row = dict[str, str]


def networks(rows: Iterable[Row]) -> list[dict[str, Row]]:
    """Returns the rows of each network by program."""
    grouped = itertools.groupby(rows, key=lambda row: (row["network"], row["sources"]))
    return [{row["program"]: row for row in group} for _, group in grouped]


def table(rows: Iterable[Row]) -> str:
    """Returns the results in Markdown."""
    head = "| network | sources | program | efficiency | CPU seconds | set-up | times that of celltrain |"
    lines = [head, "|---|---:|---|---:|---:|---:|---:|"]
    for network in networks(rows):
        ours = net_seconds(network["celltrain"])
        for name, row in network.items():
            ratio = "" if name == "celltrain" else f"{net_seconds(row) / ours:.1f}"
            lines.append(
                f"| {row['network']} | {row['sources']} | {name} | {float(row['efficiency']):.3f} "
                f"| {float(row['cpu_s']):.2f} | {float(row['set_up_s']):.2f} | {ratio} |"
            )
    return "\n".join(lines)


def net_seconds(row: Row) -> float:
    """Returns the CPU time without set-up."""
    return float(row["cpu_s"]) - float(row["set_up_s"])


def page_text(rows: list[Row]) -> str:
    """Returns the text and the table for the page."""
    versions = ", ".join(dict.fromkeys(f"{row['program']} {row['version']}" for row in rows))
    buffers = ", ".join(f"{s.buffer_packets} packets ({s.name}, {s.delay_us} us)" for s in SETTINGS)
    text = f"""
`make peers` runs these networks one after the other in {versions}: {rows[0]["seconds"]} s of NewReno over links of
155.52 Mb/s, with a buffer of {buffers}. Packets of 12 cells are lost whole. CPU seconds are medians of
{rows[0]["rounds"]} whole processes in user mode, and ratios leave out the set-up. htsim and YATS are left out, because
no package of them is at hand."""
    return textwrap.fill(" ".join(text.split()), 120) + "\n\n" + table(rows)


def disagreements(rows: Iterable[Row]) -> list[str]:
    """Returns the networks in which another program has another efficiency."""
    return [
        f"{row['network']} with {row['sources']} sources: efficiency {row['efficiency']} in {name}, "
        f"{network['celltrain']['efficiency']} in celltrain"
        for network in networks(rows)
        for name, row in network.items()
        if abs(float(row["efficiency"]) - float(network["celltrain"]["efficiency"])) > TOLERANCE
    ]


def read() -> list[Row]:
    """Returns the saved results."""
    with SAVED.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def save(rows: list[Row]) -> None:
    """Saves results."""
    with SAVED.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> int:
    """Runs the programs, prints the table, and fills the page if requested."""
    parser = argparse.ArgumentParser(description="Compare celltrain with ns-2 and ns-3 on N-source networks.")
    parser.add_argument("--sources", type=int, nargs="+", default=SOURCES, help="numbers of sources")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"simulated time; {SECONDS:g} by default")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"runs of each program; {ROUNDS} by default")
    parser.add_argument("--page", action="store_true", help="save the results and fill docs/performance.md")
    parser.add_argument("--saved", action="store_true", help="with --page: use the saved results")
    arguments = parser.parse_args()
    if arguments.saved:
        page.fill(ns3.PAGE, "peers", page_text(read()))
        return 0
    programs: dict[str, tuple[str, Run]] = {"celltrain": (ct.__version__, celltrain)}
    with tempfile.TemporaryDirectory() as folder:
        if version := ns2_version():
            programs["ns-2"] = (version, in_ns2)
        else:
            print("skipped: ns-2 is not installed (on Debian: apt install ns2)")
        if version := ns3.ns3_version():
            programs["ns-3"] = (version, in_ns3(ns3.build(Path(folder))))
        else:
            print("skipped: ns-3 or g++ is not installed (on Debian: apt install libns3-dev g++ pkg-config)")
        if len(programs) == 1:
            return 0
        rows = measure(programs, arguments.sources, arguments.seconds, arguments.rounds)
    print(table(rows))
    if arguments.page:
        save(rows)
        page.fill(ns3.PAGE, "peers", page_text(rows))
    return page.outcome(disagreements(rows))


if __name__ == "__main__":
    sys.exit(main())
