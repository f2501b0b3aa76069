"""Runs Linux's TCPs over cells in real time, and fills docs/studies/linux-cells.md.

    python scripts/campaign.py linux-cells                    every run that the file of runs does not have yet
    python scripts/campaign.py linux-cells --count 1 --page x.md  one repetition, into another page

Needs root. Other work must have the policy SCHED_IDLE (chrt --idle 0). Each run is appended to the file of runs, so an
interrupted study continues where it stopped. Repetitions are the outer loop, so that a slow change of the machine affects
all settings.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from celltrain.running import statistics
from paper_page import fill

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "studies" / "linux-cells.md"
SCENARIO = ROOT / "peers" / "linux_cells.toml"
RUNS = ROOT / "peers" / "linux_cells.csv"

NETWORKS = {
    "lan": {"topology.n_source.link_delay": "5us"},
    "wan": {"topology.n_source.link_delay": "5ms"},
    "line": {
        "topology.n_source.link_rate": "8Mbps",
        "topology.n_source.link_delay": "1ms",
        "port.bottleneck.buffer": "200",
    },
}
POLICIES = {
    "tail drop": {"port.bottleneck.policy": "tail_drop"},
    "EPD": {"port.bottleneck.policy": "epd:threshold=0.8"},
    "Selective Drop": {"port.bottleneck.policy": "selective_drop:threshold=0.9:z=0.8"},
}
#: Cases for the WAN and CUBIC only, to show which part of EPD costs throughput.
PARTS = {
    "tail drop, 800 cells": {"port.bottleneck.policy": "tail_drop", "port.bottleneck.buffer": "800"},
    "EPD at 0.95": {"port.bottleneck.policy": "epd:threshold=0.95"},
}
CONGESTION = ("cubic", "reno", "bbr")
NAMES = {"lan": "LAN", "wan": "WAN", "line": "line", "cubic": "CUBIC", "reno": "Reno", "bbr": "BBR"}
SETTINGS = [(network, policy, congestion) for network in NETWORKS for policy in POLICIES for congestion in CONGESTION]
SETTINGS += [("wan", policy, "cubic") for policy in PARTS]
#: The kernel's segments have timestamps, so 1448 of the 1460 bytes that the scenario's efficiency assumes.
PAYLOAD = 1460 / 1448

COLUMNS = ["network", "policy", "congestion", "repetition", "efficiency", "fairness", "retransmitted"]
COLUMNS += ["p50_us", "p99_us", "p999_us", "priority", "load"]
Row = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """An expectation: the 95 % interval of a mean, or of a difference of two, is between two limits."""

    text: str
    network: str
    congestion: str
    policy: str
    over: str | None = None
    measure: str = "efficiency"
    low: float = -np.inf
    high: float = np.inf

    def verdict(self, rows: Sequence[Row]) -> tuple[str, str]:
        """Returns the verdict and the interval."""
        own = mean(rows, self.network, self.policy, self.congestion, self.measure)
        interval: statistics.Intervals = own
        if self.over is not None:
            interval = statistics.welch(mean(rows, self.network, self.over, self.congestion, self.measure), own)
        low, high = float(interval.low[0]), float(interval.high[0])
        shown = f"{interval.mean[0]:{'+' if self.over else ''}.3f} ± {interval.half[0]:.3f}"
        if self.low <= low and high <= self.high:
            return "holds", shown
        return ("fails" if high < self.low or low > self.high else "undecided"), shown


EPD = Claim(text="", network="wan", congestion="cubic", policy="EPD", over="tail drop")
CLAIMS = [
    replace(EPD, text="WAN: EPD costs CUBIC at least 0.05 of efficiency", high=-0.05),
    replace(EPD, text="WAN: EPD costs Reno less than 0.05", congestion="reno", low=-0.05),
    replace(EPD, text="WAN: BBR gains from EPD", congestion="bbr", low=0.0),
    replace(
        EPD,
        text="WAN: the headroom is the cost: with CUBIC, EPD at 0.8 is within 0.03 of tail drop with 800 cells",
        over="tail drop, 800 cells",
        low=-0.03,
        high=0.03,
    ),
    replace(
        EPD, text="WAN: with CUBIC, EPD at 0.95 is better than EPD at 0.8", policy="EPD at 0.95", over="EPD", low=0.0
    ),
    *(
        Claim(
            text=f"LAN: {NAMES[one]} reaches an efficiency of at least 0.9 with tail drop",
            network="lan",
            congestion=one,
            policy="tail drop",
            low=0.9,
        )
        for one in CONGESTION
    ),
    *(
        replace(EPD, text=f"line: {NAMES[one]} gains at least 0.03 from EPD", network="line", congestion=one, low=0.03)
        for one in CONGESTION
    ),
    *(
        replace(
            EPD,
            text=f"{NAMES[network]}: {NAMES[one]} shares more evenly with Selective Drop than with tail drop",
            network=network,
            congestion=one,
            policy="Selective Drop",
            measure="fairness",
            low=0.0,
        )
        for network in NETWORKS
        for one in CONGESTION
    ),
]


def main() -> int:
    """Makes the missing runs and fills the page."""
    parser = argparse.ArgumentParser(description="Run the TCPs of Linux over cells.")
    parser.add_argument("--count", type=int, default=10, help="repetitions")
    parser.add_argument("--runs", type=Path, default=RUNS)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    done = {key(row) for row in rows(options.runs)}
    for repetition in range(options.count):
        for setting in SETTINGS:
            if (*setting, str(repetition)) not in done:
                append(options.runs, {**run(*setting), "repetition": repetition})
    if not options.page.exists():
        shutil.copyfile(PAGE, options.page)
    fill(options.page, "runs", tables(rows(options.runs)))
    return 0


def settings(network: str, policy: str) -> list[str]:
    """Returns what `--set` takes."""
    return [f"{path}={value}" for path, value in {**NETWORKS[network], **{**POLICIES, **PARTS}[policy]}.items()]


def run(network: str, policy: str, congestion: str) -> dict[str, object]:
    """Emulates one setting."""
    command = [sys.executable, "-m", "celltrain", "emulate", str(SCENARIO), "--json"]
    command += [word for setting in settings(network, policy) for word in ("--set", setting)]
    for number in range(1, 6):
        command += ["--", "host", f"destination{number}", "iperf3", "--server"]
    for number in range(1, 6):
        client = ["iperf3", "--client", f"destination{number}", "--congestion", congestion, "--time", "60"]
        command += ["--", "host", f"source{number}", *client]
    load = os.getloadavg()[0]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr or done.stdout)
    answer = json.loads(done.stdout)
    emulation = answer["emulation"]
    late = {f"{name}_us": round(emulation["lateness_us"][name], 1) for name in ("p50", "p99", "p999")}
    return {
        "network": network,
        "policy": policy,
        "congestion": congestion,
        "efficiency": round(answer["efficiency"] * PAYLOAD, 4),
        "fairness": round(answer["fairness"], 4),
        "retransmitted": sum(flow["retransmitted_segments"] for flow in answer["flows"]),
        **late,
        "priority": int(emulation["real_time"]),
        "load": load,
    }


def rows(path: Path) -> list[dict[str, str]]:
    """Returns the runs made so far."""
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def append(path: Path, row: Mapping[str, object]) -> None:
    """Appends a run."""
    is_new = not path.exists()
    with path.open("a") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def key(row: Row) -> tuple[str, ...]:
    """Returns the key that identifies a run."""
    return row["network"], row["policy"], row["congestion"], row["repetition"]


def mean(some: Sequence[Row], network: str, policy: str, congestion: str, measure: str) -> statistics.Means:
    """Returns the mean of a measure over the repetitions of a setting."""
    own = [float(row[measure]) for row in some if key(row)[:3] == (network, policy, congestion)]
    return statistics.mean(own)


def tables(some: Sequence[Row]) -> str:
    """Returns the verdicts and the table of all settings."""
    lines = ["| claim | difference or mean | verdict |", "| --- | ---: | --- |"]
    for claim in CLAIMS:
        verdict, shown = claim.verdict(some)
        lines.append(f"| {claim.text} | {shown} | {verdict} |")
    lines += ["", "| network | TCP | policy | runs | efficiency | fairness | retransmitted | late, p99 (us) |"]
    lines.append("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for network, policy, congestion in sorted(SETTINGS, key=lambda one: (list(NETWORKS).index(one[0]), one[2])):
        means = [
            mean(some, network, policy, congestion, name)
            for name in ("efficiency", "fairness", "retransmitted", "p99_us")
        ]
        values = [f"{one.mean[0]:.3f} ± {one.half[0]:.3f}" for one in means[:2]] + [
            f"{one.mean[0]:.0f}" for one in means[2:]
        ]
        lines.append(f"| {NAMES[network]} | {NAMES[congestion]} | {policy} | {means[0].n[0]} | {' | '.join(values)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
