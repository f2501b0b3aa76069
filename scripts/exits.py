"""Counts processes that exit abnormally after completing their work.

    python scripts/exits.py --count 2000
    python scripts/exits.py --count 2000 --control
    python scripts/exits.py --count 200 --interrupts out/times

Each process opens two stores and uses them in one of several ways: tables, summaries, verification, series, the data of
a report, or a resumed sweep. Other processes exit at a random time while a daemon thread runs a scenario: alone, with a
Python policy, with events, or with a capture. --only selects among these. With --control, each process only reads two
files with pyarrow, once with its thread pool and once as celltrain does; the result shows where an abnormal exit comes
from. Any exit code but 0 is counted and printed with the number of its process, which together with the seed reproduces
it. The script then exits with 1. Abnormal exits of the control with pyarrow's threads are only printed.

With --interrupts, each process runs a scenario that `make campaign NAME=times` has left in the folder, and receives
SIGINT at a random instant. The script exits with 1 if an interrupted run continues for longer than 0.1 s.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from small_sweep import SCENARIO

#: Programs that use two stores, whose paths they receive.
USES = {
    "tables": "for s in stores: s.table(); s.wide()",
    "summaries": "for s in stores: s.summary()",
    "equal": "assert stores[0].table().equals(stores[1].table())",
    "verify": "assert [s.verify() for s in stores] == [[], []]",
    "kept": "kept = [s.table() for s in stores]; import builtins; builtins.kept = kept",
    "failures": "for s in stores: s.failures(); s.missing(0)",
    "series": "for s in stores: s.series(s.table()['run_key'][0].as_py())",
    "report": "from celltrain.ensemble.reports import data\nfor s in stores: data.of_store(s)",
    "resume": "from celltrain.ensemble.sweeps import run_plan\nfrom celltrain.running import Local\nfor s in stores: run_plan(s.plan, s.path, Local(2), resume=True)",
    "thread": "import threading\nfor s in stores: threading.Thread(target=s.table).start()\ns.table()",
}
OPEN = "import sys\nfrom celltrain.ensemble.store import Store\nstores = [Store.open(path) for path in sys.argv[1:3]]\n"
#: Code that a daemon thread runs while the process exits. It uses `seconds`, `folder` and the policy `Half`.
RUNS = {
    "run": "ct.run(lan(seconds, ct.Ppd()))",
    "run, reference engine": "ct.run(lan(seconds, ct.Ppd()), engine='reference')",
    "run, progress": "ct.run(lan(seconds, ct.Ppd()), progress=lambda share: sum(range(1000)))",
    "run, Python policy": "ct.run(lan(seconds, Half()))",
    "runs, Python policy": "ct.compare(lan(seconds, Half()), lan(seconds, ct.Ppd()), seeds=4)",
    "a run with segments and timers": "ct.run(lan(seconds, ct.Ppd()), events=ct.Events(folder, kinds=['segments', 'timers']))",
    "run, all events": "ct.run(lan(seconds, ct.Ppd()), events=ct.Events(folder))",
    "run, packets": "ct.run(lan(seconds, ct.Ppd()), pcap=ct.Capture(f'{folder}/packets.pcapng'))",
    "run, cells": "ct.run(lan(seconds, ct.Ppd()), pcap=ct.Capture(f'{folder}/cells.pcapng', kind='cells'))",
    "a run with a Python policy and events": "ct.run(lan(seconds, Half()), events=ct.Events(folder, kinds=['segments']))",
}
#: A short run comes first, so that everything is imported.
RUN = """
import random, sys, threading, time
import celltrain as ct

class Half(ct.PythonPolicy):
    def admit(self, view, vc):
        return view.X <= 0.5 * view.K

def lan(seconds, policy):
    return ct.n_source(sources=3, link_delay="5us", buffer_cells=100, policy=policy, duration=f"{seconds}s")

def work(seconds, folder):
    USE

folder, seed = sys.argv[3:]
work(0.002, folder + "/short")
threading.Thread(target=work, args=(1000, folder + "/long"), daemon=True).start()
chance = random.Random(int(seed))
time.sleep(chance.choice([0.002, 0.02, 0.2]) * chance.random())
"""
#: Longest time from an interrupt to its exception.
LATEST_S = 0.1
#: A run that reports its start and its interruption. Both times are from the machine's clock.
INTERRUPTED = """
import sys, time
import celltrain as ct
scenario = ct.Scenario.model_validate_json(open(sys.argv[1]).read())
try:
    print("begins", flush=True)
    ct.run(scenario)
except KeyboardInterrupt:
    print("interrupted", time.monotonic())
"""
CONTROLS = {
    "pyarrow with its pool of threads": "pq.ParquetFile(pa.BufferReader(open(path, 'rb').read())).read()",
    "pyarrow, one thread, its own memory pool": (
        "pq.ParquetFile(pa.BufferReader(pa.OSFile(path).read_buffer()), pre_buffer=False).read(use_threads=False)"
    ),
}
CONTROL = "import sys, pathlib\nimport pyarrow as pa, pyarrow.parquet as pq\nfor folder in sys.argv[1:3]:\n"
FILES = "    for path in map(str, pathlib.Path(folder).glob('parts/*.parquet')):\n        "
#: A plan with a few runs that record series.
PLAN = f"""
{SCENARIO}
[axes]
"port.bottleneck.buffer" = [100, 150, 200]
[series]
record = ["queue", "cwnd"]
step = "100us"
"""


def main() -> int:
    """Runs the campaign. Returns the exit code."""
    options = _options()
    if options.interrupts:
        return _interrupts(options.interrupts, options.count, random.Random(options.seed))
    with tempfile.TemporaryDirectory(prefix="celltrain-exits-") as folder:
        stores = [str(Path(folder) / name) for name in ("one", "two")]
        for store in stores:
            _sweep(store)
        programs = {name: OPEN + use for name, use in USES.items()}
        programs |= {name: RUN.replace("USE", use) for name, use in RUNS.items()}
        if options.only:
            programs = {name: program for name, program in programs.items() if options.only in name}
        if options.control:
            programs = {name: CONTROL + FILES + use for name, use in CONTROLS.items()}
        chance = random.Random(options.seed)
        names = [chance.choice(list(programs)) for _ in range(options.count)]
        with ThreadPoolExecutor(options.jobs) as pool:
            codes = list(pool.map(lambda number: _ended(programs[names[number]], stores, number), range(options.count)))
    counts = Counter(names)
    abnormal = [
        (number, name, *ended) for number, (name, ended) in enumerate(zip(names, codes, strict=True)) if ended[0]
    ]
    for number, name, code, told in abnormal:
        print(f"process {number} of seed {options.seed} ({name}): {_in_words(code)}; {told[-300:]}")
    for name in programs:
        print(f"{name}: {counts[name]:,} exits, {sum(one[1] == name for one in abnormal):,} abnormal")
    print(f"in all: {options.count:,} exits, {len(abnormal):,} abnormal (seed {options.seed})")
    return 1 if [one for one in abnormal if one[1] != next(iter(CONTROLS))] else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Counts processes that use stores and end abnormally.")
    parser.add_argument("--count", type=int, default=2000, help="processes")
    parser.add_argument("--seed", type=int, default=1, help="seed for the order of the processes' actions")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes at a time")
    parser.add_argument("--only", default="", help="test only the exits whose name contains this text, such as run")
    parser.add_argument("--interrupts", type=Path, help="interrupt runs of the scenarios in this folder instead")
    parser.add_argument("--control", action="store_true", help="pyarrow alone")
    return parser.parse_args()


def _interrupts(folder: Path, count: int, chance: random.Random) -> int:
    """Interrupts runs at random instants, as Ctrl-C does. Returns 1 if some run continues for longer than 0.1 s."""
    paths = sorted(folder.glob("*.json"))
    late: list[tuple[float, Path]] = []
    while len(late) < count:
        path = chance.choice(paths)
        process = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        with process:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise SystemExit(f"{path}: the process ends before it runs the scenario")
            time.sleep(2 * chance.random())
            interrupted = time.monotonic()
            process.send_signal(signal.SIGINT)
            try:
                told = process.communicate(timeout=60)[0].split()
            except subprocess.TimeoutExpired:
                process.kill()
                told = ["interrupted", str(interrupted + 60)]
        # A run may end, or be refused for lack of memory, before the interrupt.
        if told[:1] == ["interrupted"]:
            late.append((float(told[1]) - interrupted, path))
    late.sort()
    (longest, path), middle = late[-1], late[len(late) // 2][0]
    print(f"{count} interrupts: half within {1e3 * middle:.1f} ms, all within {1e3 * longest:.1f} ms ({path})")
    return 1 if longest > LATEST_S else 0


def _sweep(store: str) -> None:
    """Creates a store with several runs and their series, in a separate process, because this one keeps running."""
    program = (
        "import sys\nfrom celltrain.ensemble.plan import Plan\nfrom celltrain.ensemble.sweeps import run_plan\nfrom celltrain.running import Local\n"
        "from pathlib import Path\nrun_plan(Plan.of_toml(sys.argv[2]), Path(sys.argv[1]), Local(2))"
    )
    subprocess.run([sys.executable, "-c", program, store, PLAN], check=True)


def _ended(program: str, stores: list[str], number: int) -> tuple[int, str]:
    """Returns a process's exit code and output. Kills it if it hangs for two minutes."""
    with tempfile.TemporaryDirectory(prefix="celltrain-exit-", ignore_cleanup_errors=True) as folder:
        command = [sys.executable, "-c", program, *stores, folder, str(number)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        except subprocess.TimeoutExpired:
            return -signal.SIGKILL, "the process was still running after 120 s"
    return done.returncode, " ".join(done.stderr.split())


def _in_words(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


if __name__ == "__main__":
    sys.exit(main())
