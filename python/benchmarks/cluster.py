"""Measures the speedup by a second Dask worker: a sweep on one and two single-threaded workers, and on local threads.

Needs an idle machine with at least two cores; prints the load. Exits with 1 if two workers are less than 1.8 times as
fast as one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from distributed import Client, LocalCluster

import celltrain as ct
from celltrain.ensemble.plan import Plan
from celltrain.ensemble.sweeps import run_plan
from celltrain.running import Local, Worker
from celltrain.running.cluster import Cluster

#: The speedup that the documentation states.
LEAST = 1.8
POINTS = 12


def main() -> None:
    """Measures the speedup on a cluster and prints the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=8400, help="number of runs: five sources on a LAN for 1 s")
    parser.add_argument("--rounds", type=int, default=1, help="number of repetitions (the fastest counts)")
    options = parser.parse_args()
    lan = ct.n_source(sources=5, link_delay="5us", buffer_cells=1000, duration="1s", policy=ct.Epd(threshold=800))
    thresholds = {"port.bottleneck.policy.epd.threshold": [400 + 50 * i for i in range(POINTS)]}
    plan = Plan.of(lan, {"axes": thresholds, "seeds": max(1, options.runs // POINTS)})
    print(f"{plan.runs} runs of 1 s of five sources on a LAN; {os.cpu_count()} cores, load {busy()}", flush=True)
    best: dict[str, float] = {}
    for _ in range(options.rounds):
        for name, measured in MEASURED.items():
            before = time.process_time()
            seconds = measured(plan)
            own = time.process_time() - before
            print(
                f"{name:28} {seconds:6.1f} s {plan.runs / seconds:7.0f} runs per second, {own:5.1f} CPU s in this "
                "process",
                flush=True,
            )
            best[name] = min(seconds, best.get(name, seconds))
    one, two, alone, both = best.values()
    print(f"two workers are {one / two:.2f} times as fast as one, two threads {alone / both:.2f} times as fast as one")
    print(f"a cluster takes {one / alone:.2f} times as long as one thread, {two / both:.2f} times as long as two")
    print(f"load {busy()}")
    sys.exit(one / two < LEAST)


def on_cluster(plan: Plan, workers: int) -> float:
    """Returns the seconds that the plan takes with this number of single-threaded workers."""
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as machines,
        Client(machines, set_as_default=False) as client,
    ):
        client.wait_for_workers(workers)
        return timed(plan, Cluster(client))


def timed(plan: Plan, worker: Worker) -> float:
    """Returns the seconds that the sweep takes, including the time for its store."""
    with tempfile.TemporaryDirectory(prefix="celltrain-") as folder:
        return run_plan(plan, Path(folder) / "store", worker).elapsed_seconds


def busy() -> str:
    """Returns the load averages over one, five and fifteen minutes."""
    return " ".join(f"{load:.2f}" for load in os.getloadavg())


MEASURED: dict[str, Callable[[Plan], float]] = {
    "1 Dask worker of one thread": lambda plan: on_cluster(plan, 1),
    "2 Dask workers of one thread": lambda plan: on_cluster(plan, 2),
    "this machine, 1 thread": lambda plan: timed(plan, Local(1)),
    "this machine, 2 threads": lambda plan: timed(plan, Local(2)),
}

if __name__ == "__main__":
    main()
