"""Runs N-source networks in pairs of celltrain and another simulator, and compares efficiency and CPU time.

    python peers/n_source.py                        prints a table, exits with 1 if efficiencies disagree
    python peers/n_source.py --page                 also writes the table into docs/performance.md
    python peers/n_source.py --htsim csg-htsim/sim  also runs htsim, whose library is built if necessary

N sources send segments of 512 bytes over NewReno or SACK through one bottleneck. All links have the same rate and
delay. A packet takes as long as its 12 cells. The bottleneck holds a number of packets and drops all others: celltrain
uses EPD, which refuses whole frames, like a queue of packets. CPU times are those of whole processes in user mode,
without the CPU time of a run of one microsecond. Simulators that are not installed are left out.
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

SOURCES = (5, 15)
SECONDS = 20.0
ROUNDS = 9
"""Number of pairs of runs, which alternate. The number is odd, so that one of the pairs has the median ratio."""
NS3_FRACTION = 0.05
"""Part of the simulated time that ns-3 runs, because it is slow."""
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


@dataclass(frozen=True, kw_only=True)
class Case:
    """A network and the TCP of its sources."""

    setting: Setting
    sources: int
    variant: str
    """The TCP: newreno or sack."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """The result of a run of one simulator."""

    packets: float
    """Number of delivered packets."""
    cpu_s: float
    """CPU time of the whole process in user mode."""


# Runs a case for a number of simulated seconds.
Simulate = Callable[[Case, float], Run]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Another simulator."""

    name: str
    """The name and the version."""
    simulate: Simulate
    variants: tuple[str, ...] = ("newreno",)
    fraction: float = 1.0
    """Part of the simulated time that the simulator runs, because it is slow."""


def celltrain(case: Case, seconds: float) -> Run:
    """Runs the case in celltrain."""
    setting, sources = case.setting, case.sources
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
            "tcp": {case.variant: tcp},
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
    delivered = sum(flow["delivered_bytes"] for flow in json.loads(output)["flows"])
    return Run(packets=delivered / SEGMENT_BYTES, cpu_s=cpu)


def in_ns2(case: Case, seconds: float) -> Run:
    """Runs the case in ns-2."""
    setting = case.setting
    variant, sink = {"newreno": ("Newreno", "TCPSink"), "sack": ("Sack1", "TCPSink/Sack1")}[case.variant]
    text = ns2.OTCL.format(
        rate=RATE_BPS,
        access=RATE_BPS,
        delay=setting.delay_us / 1000,
        buffer=setting.buffer_packets,
        bytes=CELL_BYTES * CELLS,
        ack_bytes=CELL_BYTES * ACK_CELLS,
        window=setting.window_packets,
        ssthresh=SSTHRESH_PACKETS,
        sources=case.sources,
        variant=variant,
        sink=sink,
        # Windows are printed at the start and at the end only.
        step=seconds,
        seconds=1.001 * seconds,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "n-source.tcl"
        path.write_text(text, encoding="utf-8")
        output, cpu = ns3.measured(["ns", str(path)])
    # Numbers of the last acknowledged packets, from 0.
    acknowledged = sum(float(word) for word in output.splitlines()[1].split()[2::2])
    return Run(packets=acknowledged + case.sources, cpu_s=cpu)


def ns2_version() -> str | None:
    """Returns the version of ns-2, or None if it is not installed."""
    if shutil.which("ns") is None:
        return None
    done = subprocess.run(["ns", "-"], input="puts [ns-version]\n", capture_output=True, text=True, check=False)
    return done.stdout.strip() or "of unknown version"


def words(case: Case, seconds: float) -> list[str]:
    """Returns the arguments of our programs for htsim and ns-3 that follow the rate."""
    setting = case.setting
    numbers = (setting.delay_us, setting.buffer_packets, setting.window_packets, SSTHRESH_PACKETS, CELLS * CELL_BYTES)
    return [*map(str, numbers), f"{seconds:.9f}"]


def compiled(folder: Path, name: str, *options: str) -> Path:
    """Compiles a program of this folder."""
    program = folder / name
    source = Path(__file__).with_name(f"{name}.cc")
    command = ["g++", "-std=c++17", "-O3", "-DNDEBUG", "-o", str(program), str(source), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{source.name} does not compile: {done.stderr}")
    return program


def htsim(folder: Path, source: Path) -> Peer:
    """Returns htsim, whose source is in the folder `source`: `sim` of github.com/Broadcom/csg-htsim."""
    if not (source / "tcp.h").is_file():
        sys.exit(f"{source} does not contain the source of htsim: name the folder with tcp.h and its Makefile")
    built = subprocess.run(["make", "-C", str(source), "libhtsim.a"], capture_output=True, text=True, check=False)
    if built.returncode != 0:
        sys.exit(f"htsim does not compile in {source}: {built.stderr}")
    program = compiled(folder, "n_source_htsim", f"-I{source}", str(source / "libhtsim.a"), "-w")

    def simulate(case: Case, seconds: float) -> Run:
        command = [str(program), str(case.sources), f"{RATE_BPS / 1e6:.2f}", *words(case, seconds)]
        output, cpu = ns3.measured(command)
        return Run(packets=float(output.splitlines()[-1]), cpu_s=cpu)

    return Peer(name="htsim", simulate=simulate)


def in_ns3(folder: Path, version: str) -> Peer:
    """Returns ns-3."""
    libraries = ("applications", *ns3.LIBRARIES)
    program = compiled(folder, "n_source_ns3", *(f"-lns3-{name}" for name in libraries))

    def simulate(case: Case, seconds: float) -> Run:
        command = [str(program), case.variant, str(case.sources), str(RATE_BPS), *words(case, seconds)]
        output, cpu = ns3.measured(command)
        return Run(packets=float(output), cpu_s=cpu)

    return Peer(name=f"ns-3 {version}", simulate=simulate, variants=("newreno", "sack"), fraction=NS3_FRACTION)


def installed(folder: Path, htsim_source: Path | None) -> list[Peer]:
    """Returns the simulators that can be run."""
    peers = []
    if htsim_source is not None:
        peers.append(htsim(folder, htsim_source))
    if (version := ns2_version()) is not None:
        peers.append(Peer(name=f"ns-2 {version}", simulate=in_ns2, variants=("newreno", "sack")))
    if (version := ns3.ns3_version()) is not None:
        peers.append(in_ns3(folder, version))
    return peers


@dataclass(frozen=True, kw_only=True)
class Row:
    """A case in celltrain and in another simulator."""

    case: Case
    peer: str
    efficiencies: tuple[float, float]
    """Efficiency in celltrain and in the other simulator."""
    cpu_s: tuple[float, float]
    """Medians of the CPU seconds per simulated second, without set-up."""
    ratios: list[float]
    """Ratios of the CPU times of the pairs, in ascending order."""

    @property
    def name(self) -> str:
        """The simulator and the network."""
        return f"{self.peer}, {self.case.variant}, {self.case.setting.name} with {self.case.sources} sources"


def measure(peer: Peer, case: Case, seconds: float, rounds: int) -> Row:
    """Runs both programs in pairs."""
    sides = ((celltrain, seconds), (peer.simulate, peer.fraction * seconds))
    set_up = [simulate(case, 1e-6).cpu_s for simulate, _ in sides]
    pairs = [[simulate(case, time) for simulate, time in sides] for _ in range(rounds)]
    ours, theirs = (
        [(run.cpu_s - start) / time for run in runs]
        for runs, start, (_, time) in zip(zip(*pairs, strict=True), set_up, sides, strict=True)
    )
    # The efficiencies are averages over the same simulated time.
    shortest = min(time for _, time in sides)
    mine = pairs[0][0] if shortest == seconds else celltrain(case, shortest)
    most = RATE_BPS * shortest / (8 * CELLS * CELL_BYTES)
    return Row(
        case=case,
        peer=peer.name,
        efficiencies=(mine.packets / most, pairs[0][1].packets / most),
        cpu_s=(statistics.median(ours), statistics.median(theirs)),
        ratios=sorted(b / a for a, b in zip(ours, theirs, strict=True)),
    )


def table(rows: Sequence[Row]) -> str:
    """Returns the results in Markdown."""
    lines = [
        "| simulator | TCP | network | sources | celltrain: efficiency | simulator: efficiency "
        "| celltrain: CPU ms per second | simulator: CPU ms per second | ratio | range |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        case = row.case
        numbers = [f"{value:.3f}" for value in row.efficiencies] + [f"{1000 * value:.2f}" for value in row.cpu_s]
        numbers += [f"{statistics.median(row.ratios):.1f}", f"{row.ratios[0]:.1f}-{row.ratios[-1]:.1f}"]
        lines.append(f"| {row.peer} | {case.variant} | {case.setting.name} | {case.sources} | {' | '.join(numbers)} |")
    return "\n".join(lines)


def page_text(rows: Sequence[Row], seconds: float, rounds: int) -> str:
    """Returns the text and the table for the page."""
    delays = [f"{s.delay_us} us" if s.delay_us < 1000 else f"{s.delay_us // 1000} ms" for s in SETTINGS]
    buffers = " or ".join(
        f"{s.buffer_packets} packets ({s.name}, {delay} per link)" for s, delay in zip(SETTINGS, delays, strict=True)
    )
    text = f"""
`make peers` runs these networks in pairs of celltrain {ct.__version__} and another simulator: {seconds:g} s (ns-3:
{NS3_FRACTION * seconds:g} s) over links of 155.52 Mb/s, with a buffer of {buffers}. Packets of {CELLS} cells are lost whole.
The initial ssthresh is {SSTHRESH_PACKETS} packets, the tick {TICK_MS} ms and the minimum RTO {MINIMUM_RTO_MS} ms. CPU
times are those of whole processes in user mode per simulated second, without set-up: medians of {rounds} pairs.
Ratios are medians with ranges."""
    return textwrap.fill(" ".join(text.split()), 120, break_on_hyphens=False) + "\n\n" + table(rows)


def disagreements(rows: Sequence[Row]) -> list[str]:
    """Returns the networks whose efficiencies differ."""
    return [
        f"{row.name}: efficiency {row.efficiencies[0]:.3f}, {row.efficiencies[1]:.3f} there"
        for row in rows
        if abs(row.efficiencies[0] - row.efficiencies[1]) > TOLERANCE
    ]


def main() -> int:
    """Runs all programs, prints the table, and fills the page if requested."""
    parser = argparse.ArgumentParser(description="Compare celltrain with other simulators on N-source networks.")
    parser.add_argument("--sources", type=int, nargs="+", default=SOURCES, help="numbers of sources")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"simulated time; {SECONDS:g} by default")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"number of pairs of runs (default: {ROUNDS})")
    parser.add_argument("--htsim", type=Path, metavar="FOLDER", help="the folder sim of htsim's source")
    parser.add_argument("--page", action="store_true", help="also write the table into docs/performance.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        peers = installed(Path(folder), arguments.htsim)
        if not peers:
            print("nothing compared: on Debian, install ns2, or libns3-dev, g++ and pkg-config")
            return 0
        cases = [
            (peer, Case(setting=setting, sources=sources, variant=variant))
            for setting, sources, peer in itertools.product(SETTINGS, arguments.sources, peers)
            for variant in peer.variants
        ]
        rows = [measure(peer, case, arguments.seconds, arguments.rounds) for peer, case in cases]
    print(table(rows))
    if arguments.page:
        page.fill(PAGE, "peers", page_text(rows, arguments.seconds, arguments.rounds))
    return page.outcome(disagreements(rows))


if __name__ == "__main__":
    sys.exit(main())
