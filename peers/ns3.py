"""Compares a leaf-spine network under TCP flows in celltrain and in ns-3: completion times, packets and CPU time.

    python peers/ns3.py                          compares a few flows, exits with 1 if the simulators disagree
    python peers/ns3.py --load 10                also compares 10 simulated ms at a load of 0.6
    python peers/ns3.py --load 500 --page        also writes that table into docs/performance.md
    python peers/ns3.py --load 500 --flows FILE  takes the flows from a CSV file

The network has two leaf switches with 16 hosts each and four spine switches. Hosts have links of 10 Gb/s, and leaf
switches have links of 40 Gb/s to each spine switch, so that the network is not oversubscribed. Frames in ns-3 are a few
bytes shorter than those in celltrain, and its links slower in proportion. A full segment therefore takes the same time.

Each flow is a TCP connection of its own with a given start, path and size. In ns-3 it is opened by a handshake. In
celltrain its data starts later by the time of a handshake on empty links. The completion time is the time from the
start of the handshake to the last acknowledgement.

The program for ns-3 is peers/leaf_spine.cc. It needs g++ and ns-3 3.37 (Debian's package libns3-dev, built with logs
that are switched off). If they are missing, the script compares nothing and succeeds.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import celltrain as ct
import page

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance.md"
SOURCE = ROOT / "peers" / "leaf_spine.cc"
LIBRARIES = ("internet", "traffic-control", "point-to-point", "network", "core")

LEAVES = 2
HOSTS = 16
"""Hosts of each leaf switch."""
SPINES = 4
HOST_BPS = 10_000_000_000
UPLINK_BPS = 40_000_000_000
DELAY_US = 16
"""One-way delay of every link. The delay, TCP settings and port settings are the same as in
scenarios/datacenter-dctcp.toml."""
CELL_BYTES = 250
SEGMENT_BYTES = 1452
PACKET_CELLS = 6
"""Cells of a full segment with its headers."""
NS3_PACKET_BYTES = SEGMENT_BYTES + 20 + 20 + 2
"""Bytes of a full segment in ns-3: headers of TCP, IP and PPP."""
BUFFER_PACKETS = 1000
"""Maximum number of packets in a switch port. In celltrain, EPD then loses whole frames, like a queue of packets."""
MARK_PACKETS = 65
WINDOW_BYTES = 4_000_000
INITIAL_WINDOW = 10
MINIMUM_RTO_MS = 10
VARIANTS = ("dctcp", "newreno")

# Cumulative distribution of the sizes of flows in a web search cluster, in bytes: Alizadeh and others, "Data Center TCP
# (DCTCP)", SIGCOMM 2010, Figure 4, as interpreted in their later simulations (pFabric, SIGCOMM 2013).
WEB_SEARCH = (
    (1, 0.0),
    (10_000, 0.15),
    (20_000, 0.2),
    (30_000, 0.3),
    (50_000, 0.4),
    (80_000, 0.53),
    (200_000, 0.6),
    (1_000_000, 0.7),
    (2_000_000, 0.8),
    (5_000_000, 0.9),
    (10_000_000, 0.97),
    (30_000_000, 1.0),
)

# Largest accepted differences from ns-3, as fractions: completion time of a single flow, median completion time of
# several flows, and number of data packets.
ALONE_TOLERANCE = 0.01
SEVERAL_TOLERANCE = 0.06
PACKETS_TOLERANCE = 0.05
# Minimum CPU time of celltrain, in seconds, for a meaningful ratio to ns-3. In shorter runs, the set-up dominates.
SHORTEST_SECONDS = 0.2
LOAD = 0.6
SEED = 2
"""The first seed for which the load of the flows in 500 ms is within 1 % of the target."""


@dataclass(frozen=True, kw_only=True)
class Flow:
    """A TCP connection. Hosts and spine switches have numbers from 1."""

    start_ns: int
    source: int
    destination: int
    bytes: int
    spine: int

    @property
    def path(self) -> list[str]:
        """Names of the nodes on the path."""
        leaves = [f"leaf{(host - 1) // HOSTS + 1}" for host in (self.source, self.destination)]
        between = leaves[:1] if leaves[0] == leaves[1] else [leaves[0], f"spine{self.spine}", leaves[1]]
        return [f"host{self.source}", *between, f"host{self.destination}"]

    @property
    def handshake_ns(self) -> int:
        """Propagation time of a handshake, without the transmission times of its packets."""
        return 2 * (len(self.path) - 1) * DELAY_US * 1000


@dataclass(frozen=True, kw_only=True)
class Run:
    """The result of one of the two simulators."""

    completions: list[float | None]
    """Completion times in seconds, by flow; None if a flow did not complete."""
    packets: int
    """Data packets delivered to hosts, including unnecessary retransmissions."""
    hops: int
    """Number of packets in ns-3, or cells in celltrain, sent on all links, including acknowledgements."""
    cpu_seconds: float
    """CPU time of the whole process in user mode."""


def full_segments(size: float) -> int:
    """Returns the size rounded up to full segments, in bytes."""
    return int(-(-size // SEGMENT_BYTES)) * SEGMENT_BYTES


def draw_flows(load: float, seconds: float, seed: int) -> list[Flow]:
    """Draws flows: Poisson arrivals, web search sizes, any two hosts, and a random spine switch.

    The load is the mean fraction of each host's link that data packets occupy, headers included.
    """
    rng = np.random.default_rng(seed)
    sizes, probabilities = np.array(WEB_SEARCH).T
    # Mean of the rounded sizes, from 100,000 quantiles.
    quantiles = np.interp((np.arange(100_000) + 0.5) / 100_000, probabilities, sizes)
    packets = np.ceil(quantiles / SEGMENT_BYTES).mean()
    hosts = LEAVES * HOSTS
    rate = load * HOST_BPS * hosts / (8 * CELL_BYTES * PACKET_CELLS * packets)
    flows = []
    time = rng.exponential(1 / rate)
    while time < seconds:
        source, destination = rng.choice(hosts, size=2, replace=False) + 1
        flows.append(
            Flow(
                start_ns=round(time * 1e9),
                source=int(source),
                destination=int(destination),
                bytes=full_segments(float(np.interp(rng.random(), probabilities, sizes))),
                spine=int(rng.integers(SPINES)) + 1,
            )
        )
        time += rng.exponential(1 / rate)
    return flows


def offered_load(flows: Sequence[Flow], seconds: float) -> float:
    """Returns the mean fraction of each host's link that data packets occupy, if all of them arrive in this time."""
    packets = sum(flow.bytes for flow in flows) / SEGMENT_BYTES
    return packets * 8 * CELL_BYTES * PACKET_CELLS / (HOST_BPS * LEAVES * HOSTS * seconds)


def read_flows(path: Path) -> list[Flow]:
    """Reads flows from a CSV file with the columns start_s, source, destination, bytes and spine."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Flow(
                start_ns=round(float(row["start_s"]) * 1e9),
                source=int(row["source"]),
                destination=int(row["destination"]),
                bytes=full_segments(int(row["bytes"])),
                spine=int(row["spine"]),
            )
            for row in csv.DictReader(file)
        ]


def measured(command: Sequence[str]) -> tuple[str, float]:
    """Runs a program. Returns its output and its CPU time in user mode, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed: {done.stderr}")
    return done.stdout, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def build(folder: Path) -> Path:
    """Compiles the program for ns-3."""
    program = folder / "leaf_spine"
    libraries = [f"-lns3-{name}" for name in LIBRARIES]
    command = ["g++", "-std=c++17", "-O2", "-DNDEBUG", "-o", str(program), str(SOURCE), *libraries]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{SOURCE.name} does not compile: {done.stderr}")
    return program


def ns3_version() -> str | None:
    """Returns the version of ns-3, or None if it is not installed."""
    if shutil.which("g++") is None or shutil.which("pkg-config") is None:
        return None
    done = subprocess.run(["pkg-config", "--modversion", "ns3-core"], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def theirs(program: Path, flows: Sequence[Flow], variant: str, duration_ns: int) -> Run:
    """Runs the network in ns-3."""
    slower = NS3_PACKET_BYTES / (CELL_BYTES * PACKET_CELLS)
    with tempfile.TemporaryDirectory() as folder:
        listed, times = Path(folder) / "flows.csv", Path(folder) / "completions.csv"
        rows = ["start_s,source,destination,bytes,spine,ack_spine"]
        rows += [f"{f.start_ns / 1e9:.9f},{f.source},{f.destination},{f.bytes},{f.spine},{f.spine}" for f in flows]
        listed.write_text("\n".join(rows) + "\n", encoding="utf-8")
        options = {
            "flows": listed,
            "completions": times,
            "tcp": variant,
            "leaves": LEAVES,
            "hosts": HOSTS,
            "spines": SPINES,
            "hostRate": f"{round(HOST_BPS * slower)}bps",
            "uplinkRate": f"{round(UPLINK_BPS * slower)}bps",
            "hostDelay": f"{DELAY_US}us",
            "uplinkDelay": f"{DELAY_US}us",
            "segment": SEGMENT_BYTES,
            "window": WINDOW_BYTES,
            "initialWindow": INITIAL_WINDOW,
            "minimumRto": f"{MINIMUM_RTO_MS}ms",
            "buffer": BUFFER_PACKETS,
            "mark": MARK_PACKETS,
            "duration": f"{duration_ns}ns",
        }
        output, seconds = measured([str(program), *(f"--{name}={value}" for name, value in options.items())])
        with times.open(encoding="utf-8", newline="") as file:
            completions = [
                float(row["acknowledged_s"]) - float(row["start_s"]) if row["acknowledged_s"] else None
                for row in csv.DictReader(file)
            ]
    summary = json.loads(output)
    return Run(
        completions=completions,
        packets=summary["data_packets_delivered"],
        hops=summary["packet_hops"],
        cpu_seconds=seconds,
    )


def scenario(flows: Sequence[Flow], variant: str, duration_ns: int) -> ct.Scenario:
    """Returns the network for celltrain."""
    names = [f"flow{i}" for i in range(1, len(flows) + 1)]
    hosts = range(1, LEAVES * HOSTS + 1)
    delay = f"{DELAY_US}us"
    links: list[dict[str, Any]] = [
        {"between": [f"host{h}", f"leaf{(h - 1) // HOSTS + 1}"], "rate": f"{HOST_BPS}bps", "delay": delay}
        for h in hosts
    ]
    links += [
        {"between": [f"leaf{leaf}", f"spine{spine}"], "rate": f"{UPLINK_BPS}bps", "delay": delay}
        for leaf in range(1, LEAVES + 1)
        for spine in range(1, SPINES + 1)
    ]
    network = {
        "hosts": [f"host{h}" for h in hosts],
        "switches": [f"leaf{i}" for i in range(1, LEAVES + 1)] + [f"spine{i}" for i in range(1, SPINES + 1)],
        "links": links,
        "flows": [
            {
                "name": name,
                "from": f.path[0],
                "to": f.path[-1],
                "path": f.path,
                "start": f"{f.start_ns + f.handshake_ns}ns",
            }
            for name, f in zip(names, flows, strict=True)
        ],
    }
    dctcp = variant == "dctcp"
    tcp = {
        "mss": f"{SEGMENT_BYTES}B",
        "receive_window": f"{WINDOW_BYTES}B",
        "timer_granularity": "1ms",
        "minimum_rto": MINIMUM_RTO_MS,
        "timer": {"initial_rto": "1s"},
        "initial_window": INITIAL_WINDOW,
        "rules": "paper",
        "windows": {"growth": "capped"},
        **({"ecn": "on", "congestion": "dctcp"} if dctcp else {}),
    }
    buffer = BUFFER_PACKETS * PACKET_CELLS
    # Leave room for the remaining cells of every frame that has started.
    room = PACKET_CELLS * (HOSTS + SPINES)
    marking = {"marking": {"k_min": MARK_PACKETS * PACKET_CELLS}} if dctcp else {}
    return ct.Scenario.model_validate(
        {
            "name": f"leaf-spine network, {len(flows)} flows",
            "duration": f"{duration_ns}ns",
            "cell": {"size": f"{CELL_BYTES}B"},
            "topology": {"network": network},
            "flow": {
                name: {"traffic": {"file": {"bytes": f"{f.bytes}B"}}} for name, f in zip(names, flows, strict=True)
            },
            "tcp": {"newreno": tcp},
            "port": {
                "default": {"buffer": buffer + room, "policy": {"epd": {"threshold": buffer}}, **marking},
            },
        }
    )


def ours(flows: Sequence[Flow], variant: str, duration_ns: int) -> Run:
    """Runs the network in celltrain."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "leaf-spine.toml"
        ct.save(scenario(flows, variant, duration_ns), path)
        output, seconds = measured([sys.executable, "-m", "celltrain", "run", str(path), "--json"])
    result = json.loads(output)
    return Run(
        completions=[
            None if row["completion_s"] is None else row["completion_s"] + flow.handshake_ns / 1e9
            for row, flow in zip(result["flows"], flows, strict=True)
        ],
        packets=sum(flow["delivered_bytes"] for flow in result["flows"]) // SEGMENT_BYTES,
        hops=result["cell_hops"],
        cpu_seconds=seconds,
    )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The results of both simulators with the same flows, and their differences."""

    name: str
    variant: str
    tolerance: float
    """Largest median of the relative differences in the completion times."""
    ours: Run
    theirs: Run

    @property
    def completions(self) -> list[tuple[float, float]]:
        """Completion times in both simulators, in seconds, of the flows that completed in both."""
        pairs = zip(self.ours.completions, self.theirs.completions, strict=True)
        return [(a, b) for a, b in pairs if a is not None and b is not None]

    @property
    def means(self) -> tuple[float, float]:
        """Mean completion times in both simulators, in seconds."""
        ours, theirs = zip(*self.completions, strict=True)
        return sum(ours) / len(ours), sum(theirs) / len(theirs)

    @property
    def differences(self) -> list[float]:
        """Relative differences in the completion times."""
        return [ours / theirs - 1 for ours, theirs in self.completions]

    @property
    def median(self) -> float:
        """Median of the differences."""
        return statistics.median(self.differences)

    @property
    def largest(self) -> float:
        """Largest difference."""
        return max(self.differences, key=abs)

    @property
    def packets(self) -> float:
        """Relative difference in the number of data packets."""
        return self.ours.packets / self.theirs.packets - 1

    @property
    def agrees(self) -> bool:
        """True if every difference is within its tolerance."""
        return abs(self.median) <= self.tolerance and abs(self.packets) <= PACKETS_TOLERANCE


def compare_few(program: Path) -> list[Comparison]:
    """Compares single flows and a few flows that share a link."""

    def flow(start_us: int, source: int, destination: int, segments: int, spine: int = 1) -> Flow:
        size = segments * SEGMENT_BYTES
        return Flow(start_ns=1000 * start_us, source=source, destination=destination, bytes=size, spine=spine)

    far = HOSTS + 1
    alone = {"1 flow of 1 segment": [flow(0, 1, far, 1)]}
    alone |= {f"1 flow of {n:,} segments": [flow(0, 1, far, n)] for n in (10, 100, 1000, 10_000)}
    alone["1 flow of 100 segments at one leaf"] = [flow(0, 1, 2, 100)]
    # No packet is lost in these cases, because a single additional loss would make a large difference.
    several = {
        "8 flows of 200 segments from one host": [flow(20 * i, 1, far + i, 200, i % SPINES + 1) for i in range(8)],
        "8 flows of 200 segments to one host": [flow(20 * i, 1 + i, far, 200, i % SPINES + 1) for i in range(8)],
    }
    marked = {"2 flows of 3,000 segments to one host": [flow(0, 1, far, 3000), flow(500, 2, far, 3000)]}
    cases = [(name, flows, v, ALONE_TOLERANCE) for v in VARIANTS for name, flows in alone.items()]
    cases += [(name, flows, v, SEVERAL_TOLERANCE) for v in VARIANTS for name, flows in several.items()]
    cases += [(name, flows, "dctcp", SEVERAL_TOLERANCE) for name, flows in marked.items()]
    duration = 30_000_000
    return [
        Comparison(
            name=name,
            variant=variant,
            tolerance=tolerance,
            ours=ours(flows, variant, duration),
            theirs=theirs(program, flows, variant, duration),
        )
        for name, flows, variant, tolerance in cases
    ]


def table(comparisons: Sequence[Comparison]) -> str:
    """Returns the differences in Markdown."""
    rows = ["| flows | TCP | mean completion (us), ours | ns-3 | median difference | largest | packets, ours | ns-3 |"]
    rows.append("|---|---|---:|---:|---:|---:|---:|---:|")
    for c in comparisons:
        ours, theirs = c.means
        rows.append(
            f"| {c.name} | {c.variant} | {ours * 1e6:.1f} | {theirs * 1e6:.1f} | {c.median:+.1%} | {c.largest:+.1%} "
            f"| {c.ours.packets:,} | {c.theirs.packets:,} |"
        )
    return "\n".join(rows)


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A comparison under load, with the CPU time before the first event."""

    comparison: Comparison
    our_set_up: float
    their_set_up: float

    @property
    def our_seconds(self) -> float:
        """CPU time of the simulation in celltrain."""
        return self.comparison.ours.cpu_seconds - self.our_set_up

    @property
    def their_seconds(self) -> float:
        """CPU time of the simulation in ns-3."""
        return self.comparison.theirs.cpu_seconds - self.their_set_up

    @property
    def ratio(self) -> float | None:
        """CPU time of ns-3 divided by that of celltrain; None if the run is too short for a measurement."""
        return self.their_seconds / self.our_seconds if self.our_seconds >= SHORTEST_SECONDS else None


def benchmark(program: Path, flows: Sequence[Flow], variant: str, duration_ns: int) -> Benchmark:
    """Runs the flows in both simulators, and subtracts the CPU time of runs of one nanosecond."""
    return Benchmark(
        our_set_up=ours(flows, variant, 1).cpu_seconds,
        their_set_up=theirs(program, flows, variant, 1).cpu_seconds,
        comparison=Comparison(
            name=f"{len(flows):,} flows",
            variant=variant,
            tolerance=SEVERAL_TOLERANCE,
            ours=ours(flows, variant, duration_ns),
            theirs=theirs(program, flows, variant, duration_ns),
        ),
    )


def benchmark_table(benchmarks: Sequence[Benchmark], version: str) -> str:
    """Returns the CPU times in Markdown."""
    rows = [
        "| TCP | simulator | CPU seconds | set-up | data packets | us per packet | completed flows | mean completion (us) |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for b in benchmarks:
        c = b.comparison
        our_mean, their_mean = c.means
        for name, run, seconds, set_up, mean in (
            (f"ns-3 {version}", c.theirs, b.their_seconds, b.their_set_up, their_mean),
            (f"celltrain {ct.__version__}", c.ours, b.our_seconds, b.our_set_up, our_mean),
        ):
            completed = sum(time is not None for time in run.completions)
            rows.append(
                f"| {c.variant} | {name} | {seconds:.2f} | {set_up:.2f} | {run.packets:,} "
                f"| {seconds / run.packets * 1e6:.2f} | {completed:,} | {mean * 1e6:.0f} |"
            )
    return "\n".join(rows)


def page_text(benchmarks: Sequence[Benchmark], flows: Sequence[Flow], version: str, milliseconds: float) -> str:
    """Returns the paragraphs and the table for the page."""
    ratios = [f"{b.ratio:.0f} times ({b.comparison.variant})" for b in benchmarks if b.ratio is not None]
    faster = (
        f"The CPU time of ns-3 was {' and '.join(ratios)} that of celltrain, on one core, in user mode and without set-up."
        if len(ratios) == len(benchmarks)
        else "The run is too short to compare CPU times."
    )
    medians = " and ".join(f"{b.comparison.median:+.1%}" for b in benchmarks)
    network = f"""
ns-3 {version} and celltrain {ct.__version__} simulated {milliseconds:g} ms of the same {len(flows):,} TCP flows in a
leaf-spine network: {LEAVES} leaf switches with {HOSTS} hosts each, {SPINES} spine switches, and links of
{HOST_BPS // 10**9} Gb/s to hosts and {UPLINK_BPS // 10**9} Gb/s to spine switches. The load is
{offered_load(flows, milliseconds / 1000):.2f}. ns-3 simulates packets of {CELL_BYTES * PACKET_CELLS} bytes, celltrain
cells of {CELL_BYTES} bytes. {faster}
ns-3 is Debian's package, in which logs are compiled in but switched off."""
    times = f"""
The median of the differences in completion time is {medians}. The means are those of flows that completed in both
simulators. In ns-3 a handshake opens each connection. In celltrain each connection is a flow with a file, because the
arrivals of [requests](requests.md) are random and cannot be given. Its data starts later by the time of a handshake on
empty links."""
    paragraphs = [textwrap.fill(" ".join(text.split()), 120) for text in (network, times)]
    command = f"```text\npython peers/ns3.py --load {milliseconds:g}\n```"
    return "\n\n".join([paragraphs[0], benchmark_table(benchmarks, version), paragraphs[1], command])


def main() -> int:
    """Compares, prints the tables, and fills the page if requested."""
    parser = argparse.ArgumentParser(description="Compare a leaf-spine network in celltrain and in ns-3.")
    parser.add_argument("--load", type=float, metavar="MS", help=f"also simulate this many ms at a load of {LOAD}")
    parser.add_argument("--seed", type=int, default=SEED, help=f"seed of the flows; {SEED} by default")
    parser.add_argument("--flows", type=Path, metavar="FILE", help="take the flows from a CSV file")
    parser.add_argument(
        "--tcp", choices=VARIANTS, action="append", help="simulator to run under --load; by default, both"
    )
    parser.add_argument("--page", action="store_true", help="write the table of --load into docs/performance.md")
    arguments = parser.parse_args()
    if (arguments.page or arguments.flows) and not arguments.load:
        parser.error("--page and --flows need --load")
    version = ns3_version()
    if version is None:
        print("skipped: ns-3 or g++ is not installed (on Debian: apt install libns3-dev g++ pkg-config)")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        comparisons = compare_few(program)
        print(table(comparisons), flush=True)
        if arguments.load:
            seconds = arguments.load / 1000
            flows = read_flows(arguments.flows) if arguments.flows else draw_flows(LOAD, seconds, arguments.seed)
            print(f"\n{len(flows):,} flows in {arguments.load:g} ms; load of this machine {os.getloadavg()[0]:.1f}")
            benchmarks = [benchmark(program, flows, v, round(seconds * 1e9)) for v in arguments.tcp or VARIANTS]
            block = page_text(benchmarks, flows, version, arguments.load)
            print(block)
            comparisons += [b.comparison for b in benchmarks]
            if arguments.page and any(b.ratio is None for b in benchmarks):
                parser.error("--page needs a longer run: simulate 500 ms")
            if arguments.page:
                page.fill(PAGE, "ns3", block)
    return page.outcome([f"{c.name} under {c.variant}" for c in comparisons if not c.agrees])


if __name__ == "__main__":
    sys.exit(main())
