"""Compares a packet network in celltrain and in ns-2: Reno, NewReno and SACK, by goodput and congestion window.

    python peers/ns2.py            runs both, prints a table, exits with 1 if they disagree
    python peers/ns2.py --page     also writes the table into docs/tcp-verification.md

ns-2 (the command `ns`; Debian's package ns2) has no cells. The network is therefore one in which cells make no
difference. Every segment and every acknowledgement is a frame of two cells and a packet of 106 bytes, and EPD loses
whole frames, like a queue of packets. If `ns` is not installed, the script compares nothing and succeeds.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import celltrain as ct
import page

PAGE = Path(__file__).parent.parent / "docs" / "tcp-verification.md"

# Names of a variant in celltrain and in ns-2, and of its receiver in ns-2.
VARIANTS = [
    ("reno", "Reno", "TCPSink"),
    ("newreno", "Newreno", "TCPSink"),
    ("sack_pipe", "Sack1", "TCPSink/Sack1"),
    ("sack", "Sack1", "TCPSink/Sack1"),
]
SOURCES = (1, 2, 5)
CELLS = 2
PACKET_BYTES = 53 * CELLS
PACKETS_PER_SECOND = 2000
LINK_BPS = 8 * PACKET_BYTES * PACKETS_PER_SECOND
ACCESS_BPS = 10 * LINK_BPS
DELAY_MS = 5
"""Delay of each of the three links, one way. The network holds 60 packets per round trip."""
BUFFER_PACKETS = 60
WINDOW_PACKETS = 1000
SSTHRESH_PACKETS = 20
SECONDS = 100
STEP_MS = 20
# Largest accepted differences from ns-2, as fractions: sum of the goodputs, mean congestion window, and distribution of
# windows over time.
GOODPUT_TOLERANCE = 0.02
MEAN_TOLERANCE = 0.1
CURVE_TOLERANCE = 0.1

OTCL = """
set ns [new Simulator]
set r1 [$ns node]
set r2 [$ns node]
Queue set limit_ 100000
$ns duplex-link $r1 $r2 {rate} {delay}ms DropTail
$ns queue-limit $r1 $r2 {buffer}
# Every packet takes the time of our cells: {bytes} bytes, headers included.
Agent/TCP set packetSize_ [expr {bytes} - 40]
Agent/TCP set tcpip_base_hdr_size_ 40
Agent/TCP set window_ {window}
Agent/TCP set windowInit_ 1
Agent/TCP set windowInitOption_ 1
Agent/TCP set tcpTick_ 0.1
Agent/TCP set minrto_ 0.2
Agent/TCP set maxrto_ 64
Agent/TCP set rtxcur_init_ 3.0
Agent/TCP set overhead_ 0
Agent/TCP set maxburst_ 0
Agent/TCP set singledup_ 0
Agent/TCP set timestamps_ 0
Agent/TCP set ecn_ 0
Agent/TCP set slow_start_restart_ 0
Agent/TCP/Newreno set newreno_changes_ 0
Agent/TCP/Newreno set newreno_changes1_ 1
Agent/TCP/Newreno set partial_window_deflation_ 1
Agent/TCP/Newreno set exit_recovery_fix_ 0
Agent/TCPSink set packetSize_ {ack_bytes}
Agent/TCPSink/Sack1 set packetSize_ {ack_bytes}
for {{set i 0}} {{$i < {sources}}} {{incr i}} {{
    set s($i) [$ns node]
    set d($i) [$ns node]
    $ns duplex-link $s($i) $r1 {access} {delay}ms DropTail
    $ns duplex-link $r2 $d($i) {access} {delay}ms DropTail
    set tcp($i) [new Agent/TCP/{variant}]
    set sink($i) [new Agent/{sink}]
    $ns attach-agent $s($i) $tcp($i)
    $ns attach-agent $d($i) $sink($i)
    $ns connect $tcp($i) $sink($i)
    set ftp($i) [new Application/FTP]
    $ftp($i) attach-agent $tcp($i)
    # The constructor and the start of the simulation set ssthresh_ to the window.
    $ns at 0.0 "$tcp($i) set ssthresh_ {ssthresh}"
    $ns at 0.0 "$ftp($i) start"
}}
proc look {{}} {{
    global ns tcp
    set line [$ns now]
    for {{set i 0}} {{$i < {sources}}} {{incr i}} {{
        append line " [$tcp($i) set cwnd_] [$tcp($i) set ack_]"
    }}
    puts $line
    $ns at [expr [$ns now] + {step}] look
}}
$ns at 0.0 look
$ns at {seconds} "exit 0"
$ns run
"""


@dataclass(frozen=True, kw_only=True)
class Run:
    """The result of one of the two simulators."""

    goodput: float
    """Goodput of all sources, in packets per second."""
    cwnd: list[list[float]]
    """Congestion windows by sample and source, in packets."""

    @property
    def mean_cwnd(self) -> float:
        """Mean over time and sources."""
        values = [value for sample in self.cwnd for value in sample]
        return sum(values) / len(values)


def network(sources: int) -> dict[str, object]:
    """Returns N sources, a slower link between two switches, and N destinations."""
    pairs = range(1, sources + 1)
    delay = f"{DELAY_MS}ms"
    access = [("s", "sw1"), ("d", "sw2")]
    links = [
        {"between": [f"{end}{i}", switch], "rate": f"{ACCESS_BPS}bps", "delay": delay}
        for end, switch in access
        for i in pairs
    ]
    links.append({"between": ["sw1", "sw2"], "rate": f"{LINK_BPS}bps", "delay": delay})
    return {
        "hosts": [f"{end}{i}" for end, _ in access for i in pairs],
        "switches": ["sw1", "sw2"],
        "links": links,
        "flows": [{"from": f"s{i}", "to": f"d{i}"} for i in pairs],
        "bottleneck": "sw1->sw2",
    }


def ours(variant: str, sources: int) -> Run:
    """Runs the network in celltrain."""
    options = ct.TcpOptions(
        mss="1B",
        receive_window=f"{WINDOW_PACKETS}B",
        rules="paper",
        start=ct.StartOptions(initial_ssthresh=f"{SSTHRESH_PACKETS}B"),
        windows=ct.WindowOptions(ssthresh_rule="half_of_window", growth="capped"),
    )
    threshold = BUFFER_PACKETS * CELLS
    # Leave room for the remaining cells of every frame that has started.
    port = ct.Port(buffer_cells=threshold + CELLS * sources, policy=ct.Epd(threshold=threshold - CELLS))
    scenario = ct.Scenario.model_validate(
        {
            "duration": f"{SECONDS}s",
            "topology": {"network": network(sources)},
            "tcp": {variant: options.to_dict()},
            "port": {
                "bottleneck": port.to_dict(),
                "default": {"buffer": "infinite", "policy": {"tail_drop": {}}},
            },
        }
    )
    result = ct.run(scenario, trace=["cwnd"], step=f"{STEP_MS}ms")
    windows = result.series["cwnd"].column("cwnd_segments").to_pylist()
    goodput = sum(flow["goodput_mbps"] for flow in result.flows.to_pylist()) * 1e6 / 8
    return Run(goodput=goodput, cwnd=[windows[i : i + sources] for i in range(0, len(windows), sources)])


def theirs(variant: str, sink: str, sources: int) -> Run:
    """Runs the network in ns-2."""
    text = OTCL.format(
        rate=LINK_BPS,
        access=ACCESS_BPS,
        delay=DELAY_MS,
        buffer=BUFFER_PACKETS,
        bytes=PACKET_BYTES,
        ack_bytes=PACKET_BYTES,
        window=WINDOW_PACKETS,
        ssthresh=SSTHRESH_PACKETS,
        sources=sources,
        variant=variant,
        sink=sink,
        step=STEP_MS / 1000,
        seconds=SECONDS + STEP_MS / 2000,
    )
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "network.tcl"
        program.write_text(text, encoding="utf-8")
        done = subprocess.run(["ns", str(program)], capture_output=True, text=True, check=True, timeout=300)
    samples = [[float(word) for word in line.split()] for line in done.stdout.splitlines()]
    acknowledged = sum(samples[-1][2::2]) + sources
    return Run(goodput=acknowledged / SECONDS, cwnd=[sample[1::2] for sample in samples])


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The results of both simulators, and their differences."""

    variant: str
    sources: int
    ours: Run
    theirs: Run

    @property
    def goodput(self) -> float:
        """Relative difference in goodput."""
        return self.ours.goodput / self.theirs.goodput - 1

    @property
    def mean(self) -> float:
        """Relative difference in the mean congestion window."""
        return self.ours.mean_cwnd / self.theirs.mean_cwnd - 1

    @property
    def curve(self) -> float:
        """Mean difference between the sorted values of both curves, as a fraction of ns-2's values.

        The sawteeth of the two curves drift apart in time but keep the same shape, because ns-2 stores packets at every
        hop and celltrain forwards single cells.
        """
        values = [sorted(v for sample in run.cwnd for v in sample) for run in (self.ours, self.theirs)]
        apart = [abs(a - b) for a, b in zip(*values, strict=False)]
        return float(sum(apart) / sum(values[1]))

    @property
    def agrees(self) -> bool:
        """True if every difference is within its tolerance."""
        limits = ((self.goodput, GOODPUT_TOLERANCE), (self.mean, MEAN_TOLERANCE), (self.curve, CURVE_TOLERANCE))
        return all(abs(difference) <= limit for difference, limit in limits)


def compare() -> list[Comparison]:
    """Compares every variant with every number of sources."""
    return [
        Comparison(variant=name, sources=n, ours=ours(name, n), theirs=theirs(variant, sink, n))
        for name, variant, sink in VARIANTS
        for n in SOURCES
    ]


def table(comparisons: list[Comparison]) -> str:
    """Returns the result in Markdown."""
    rows = ["| variant | sources | goodput, ours | ns-2 | | mean cwnd, ours | ns-2 | | curves apart |"]
    rows.append("|---|---|---|---|---|---|---|---|---|")
    for c in comparisons:
        rows.append(
            f"| `{c.variant}` | {c.sources} | {c.ours.goodput:.1f} | {c.theirs.goodput:.1f} | {c.goodput:+.1%} "
            f"| {c.ours.mean_cwnd:.1f} | {c.theirs.mean_cwnd:.1f} | {c.mean:+.1%} | {c.curve:.1%} |"
        )
    return "\n".join(rows)


def main() -> int:
    """Compares, prints the table, and fills the page if requested."""
    parser = argparse.ArgumentParser(description="Compare celltrain's TCP with that of ns-2.")
    parser.add_argument("--page", action="store_true", help="write the table into docs/tcp-verification.md")
    arguments = parser.parse_args()
    if shutil.which("ns") is None:
        print("skipped: ns-2 is not installed (the command ns; on Debian: apt install ns2)")
        return 0
    comparisons = compare()
    print(table(comparisons))
    if arguments.page:
        page.fill(PAGE, "ns2", table(comparisons))
    return page.outcome([f"{c.variant} with {c.sources} sources" for c in comparisons if not c.agrees])


if __name__ == "__main__":
    sys.exit(main())
