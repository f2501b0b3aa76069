"""Kills sweeps at every possible moment, resumes them, and compares the results.

    python scripts/kills.py --kills 200
    python scripts/kills.py --kills 12 --only threads

There are two kinds of kills, all by SIGKILL, which no process can catch:

- Random kills, spread over sweeps that write at least 20 times: the driver on threads, and the driver and workers on a
  Dask cluster of two workers.
- Forced kills: a small C library counts the system calls that a driver makes on one file. It kills the driver at the
  n-th call, or in the middle of a write, when half is written. The files are the database, its write-ahead log and its
  rollback journal.

After the kills, --resume completes each sweep. Then every row must exist exactly once and equal the row of an
undisturbed sweep byte for byte, and `celltrain store verify` must find nothing. Otherwise the script exits with 1. The
seed reproduces the kills, as far as the speed of the machine allows.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from celltrain.ensemble.plan import Plan
from celltrain.ensemble.store import Store
from celltrain.ensemble.sweeps import run_plan
from celltrain.running import Local
from small_sweep import WRITE_RUNS, driver, stored, thresholds

#: Loaded before libc: counts the calls on files whose path contains a string, and kills the process at one of them.
LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int calls;

static void die(void) { kill(getpid(), SIGKILL); for (;;) pause(); }

/* Returns whether the process dies at this call. Without KILL_AT, calls are only logged, so that they can be counted. */
static int last(const char *call, const char *path) {
    const char *file = getenv("KILL_FILE"), *at = getenv("KILL_AT"), *log = getenv("KILL_LOG");
    /* A name matches the end of the path, a folder any part of it. Incomplete files have a number after their name. */
    const char *found = file && path ? strstr(path, file) : NULL;
    if (!found || (file[0] != '/' && found[strlen(file)] && found[strlen(file)] != '.')) return 0;
    const char *only = getenv("KILL_CALL");
    if (only && strcmp(only, call)) return 0;
    calls++;
    if (log) {
        int out = open(log, O_WRONLY | O_APPEND | O_CREAT, 0600);
        if (out >= 0) { dprintf(out, "%s\n", call); close(out); }
    }
    return at && atoi(at) == calls;
}

static const char *path_of(int handle) {
    static __thread char path[4096];
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return NULL;
    path[length] = 0;
    return path;
}

#define REAL(name) ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))

ssize_t write(int h, const void *b, size_t n) {
    if (last("write", path_of(h))) { REAL(write)(h, b, n / 2); die(); }
    return REAL(write)(h, b, n);
}
ssize_t pwrite(int h, const void *b, size_t n, off_t o) {
    if (last("pwrite", path_of(h))) { REAL(pwrite)(h, b, n / 2, o); die(); }
    return REAL(pwrite)(h, b, n, o);
}
ssize_t pwrite64(int h, const void *b, size_t n, off64_t o) {
    if (last("pwrite", path_of(h))) { REAL(pwrite64)(h, b, n / 2, o); die(); }
    return REAL(pwrite64)(h, b, n, o);
}
int fsync(int h) { if (last("fsync", path_of(h))) die(); return REAL(fsync)(h); }
int fdatasync(int h) { if (last("fdatasync", path_of(h))) die(); return REAL(fdatasync)(h); }
int rename(const char *a, const char *b) {
    if (last("rename", b)) die();
    int answer = REAL(rename)(a, b);
    if (last("renamed", b)) die();
    return answer;
}
int ftruncate(int h, off_t n) { if (last("truncate", path_of(h))) die(); return REAL(ftruncate)(h, n); }
int ftruncate64(int h, off64_t n) { if (last("truncate", path_of(h))) die(); return REAL(ftruncate64)(h, n); }
int unlink(const char *p) { if (last("unlink", p)) die(); return REAL(unlink)(p); }
"""
#: Files at whose use a driver is killed, identified by a part of their path.
FILES = {"database": "store.sqlite", "log": "store.sqlite-wal", "journal": "store.sqlite-journal"}
#: Seconds to wait for progress in a sweep: machines may be busy.
PATIENCE = 300.0


class WrongError(Exception):
    """Raised if a killed sweep leaves a result that differs from the result of an undisturbed sweep."""


@dataclass
class Campaign:
    """The folders, the plan, and the result of an undisturbed sweep."""

    folder: Path
    chance: random.Random
    plan: Path
    undisturbed: Any
    runs: int

    @classmethod
    def of(cls, folder: Path, seed: int, *, seeds: int, duration: str) -> Campaign:
        """Creates a campaign in an empty folder."""
        plan = folder / "plan.toml"
        plan.write_text(thresholds(seeds, duration))
        run_plan(Plan.load(plan), folder / "undisturbed", Local(2))
        table = Store.open(folder / "undisturbed").table()
        return cls(folder, random.Random(seed), plan, table, 4 * seeds)

    def driver(self, store: Path, *arguments: object, **variables: str) -> subprocess.Popen[str]:
        """Starts a sweep in a separate process. Resumes the store if it exists."""
        return driver(self.plan, store, *arguments, **variables)

    def finish(self, store: Path, process: subprocess.Popen[str]) -> None:
        """Waits until the sweep has completed and compares the results. Raises `WrongError` if they differ."""
        out, err = process.communicate(timeout=PATIENCE)
        if process.returncode != 0:
            raise WrongError(f"{store.name}: --resume ended with {process.returncode}: {err or out}")
        opened = Store.open(store)
        if faults := opened.verify():
            raise WrongError(f"{store.name}: {faults[0].message}")
        if not opened.table().equals(self.undisturbed):
            raise WrongError(f"{store.name}: the rows differ from the rows of an undisturbed sweep")
        if len(opened.wide()) != self.runs:
            raise WrongError(f"{store.name}: has {len(opened.wide())} runs of {self.runs}")
        if left := [path.name for path in store.rglob("*.tmp")]:
            raise WrongError(f"{store.name}: {left[0]} was left")
        shutil.rmtree(store)


def at_random(campaign: Campaign, kills: int, each: int, machines: Machines | None = None) -> Counter[str]:
    """Kills a number of drivers, `each` per sweep; also kills workers if machines are given."""
    done: Counter[str] = Counter()
    where = () if machines is None else ("--scheduler-file", machines.file)
    for number in range(-(-kills // each)):
        store = campaign.folder / f"random-{number}"
        most = campaign.runs // WRITE_RUNS
        places = sorted(campaign.chance.sample(range(most - 3), min(each, kills - sum(done.values()))))
        process = campaign.driver(store, *where)
        for place in places:
            _wait_for_runs(store, place * WRITE_RUNS, process)
            # Kill at a random time before the next write.
            time.sleep(campaign.chance.random() * 0.2)
            if machines is not None and campaign.chance.random() < 0.6:
                done["worker"] += machines.kill(campaign.chance)
                continue
            if process.poll() is not None:
                raise WrongError(f"{store.name}: the driver ended before it was killed: {process.communicate()[1]}")
            process.kill()
            process.communicate()
            done["driver"] += 1
            process = campaign.driver(store, *where)
        campaign.finish(store, process)
        print(f"{store.name}: after kills at {places} writes, all {campaign.runs:,} rows are complete", flush=True)
    return done


def forced(campaign: Campaign, kills: int) -> Counter[str]:
    """Kills drivers on threads at system calls on each file: at the first call of every kind, and at random calls."""
    done: Counter[str] = Counter()
    library = built(campaign.folder)
    for name, text in FILES.items():
        log, store = campaign.folder / f"{name}.log", campaign.folder / f"forced-{name}"
        process = campaign.driver(store, "--jobs", 2, LD_PRELOAD=str(library), KILL_FILE=text, KILL_LOG=str(log))
        campaign.finish(store, process)
        calls = log.read_text().split()
        # Include the first call of each kind, and choose other calls at random.
        first = [calls.index(kind) + 1 for kind in dict.fromkeys(calls)]
        others = [place for place in range(1, len(calls) + 1) if place not in first]
        count = max(len(first), kills // len(FILES))
        places = first + campaign.chance.sample(others, min(len(others), count - len(first)))
        for place in places:
            # Runs are also written after a certain time, so another sweep may make fewer calls on files.
            if forced_at(campaign, library, name, str(place)):
                done[f"{name}: {calls[place - 1]}"] += 1
        print(f"{name}: killed at {len(places)} of {len(calls)} calls", flush=True)
    return done


def forced_at(campaign: Campaign, library: Path, name: str, place: str, call: str | None = None) -> bool:
    """Kills a driver at the n-th call on a file (of one kind or any) and completes its sweep.

    Returns false if there were too few calls.
    """
    store = campaign.folder / f"forced-{name}"
    only = {} if call is None else {"KILL_CALL": call}
    variables = {"LD_PRELOAD": str(library), "KILL_FILE": FILES[name], "KILL_AT": place, **only}
    process = campaign.driver(store, "--jobs", 2, **variables)
    _, err = process.communicate(timeout=PATIENCE)
    if process.returncode not in (0, -signal.SIGKILL):
        raise WrongError(f"{store.name}: ended with {process.returncode} before call {place}: {err}")
    was_killed = process.returncode != 0
    campaign.finish(store, campaign.driver(store, "--jobs", 2))
    return was_killed


class Machines:
    """A scheduler and a nanny with two single-threaded workers, as processes that outlive a driver."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "scheduler.json"
        folder.mkdir()
        self._processes = [
            self._start("scheduler", "--port", 0),
            self._start("worker", "--nworkers", 2, "--nthreads", 1, "--local-directory", folder),
        ]
        self._wait(lambda: self.file.exists())
        self.client = self._client()
        self.client.wait_for_workers(2, timeout=PATIENCE)

    def kill(self, chance: random.Random) -> int:
        """Kills one of the workers that respond. The nanny then starts another worker."""
        found: dict[str, int] = {}
        self._wait(lambda: found.update(self.client.run(os.getpid, on_error="ignore")) or found)
        os.kill(chance.choice(sorted(found.values())), signal.SIGKILL)
        return 1

    def stop(self) -> None:
        """Stops all processes immediately."""
        with contextlib.suppress(Exception):
            self.client.close(timeout=2)
        for process in reversed(self._processes):
            with contextlib.suppress(psutil.Error):
                for one in [*psutil.Process(process.pid).children(recursive=True), process]:
                    one.kill()
            process.wait()

    def _start(self, kind: str, *arguments: object) -> subprocess.Popen[bytes]:
        fixed = ("--scheduler-file", self.file, "--host", "127.0.0.1", "--no-dashboard")
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *fixed, *arguments]
        with (self.folder / f"{kind}.log").open("w") as log:
            return subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, cwd=self.folder)

    def _client(self) -> Any:
        from distributed import Client

        # Allow as many failures per task as this script kills workers.
        client = Client(scheduler_file=str(self.file), set_as_default=False)
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 1000))
        return client

    @staticmethod
    def _wait(done: Any) -> None:
        deadline = time.monotonic() + PATIENCE
        while not done():
            if time.monotonic() > deadline:
                raise WrongError("the cluster does not answer")
            time.sleep(0.05)


@contextlib.contextmanager
def machines_in(folder: Path) -> Iterator[Machines]:
    """Starts machines, and stops them at the end."""
    machines = Machines(folder)
    try:
        yield machines
    finally:
        machines.stop()


def can_force() -> bool:
    """Returns whether drivers can be killed at a system call on this platform."""
    return sys.platform == "linux" and shutil.which("cc") is not None


def built(folder: Path) -> Path:
    """Compiles the library and returns its path."""
    source, library = folder / "kill.c", folder / "kill.so"
    source.write_text(LIBRARY)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


def _wait_for_runs(store: Path, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while stored(store) < count:
        if process.poll() is not None:
            raise WrongError(f"{store.name}: the driver ended before run {count}: {process.communicate()[1]}")
        if time.monotonic() > deadline:
            raise WrongError(f"{store.name}: does not reach run {count}")
        time.sleep(0.002)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the campaign. Returns the exit code."""
    parser = argparse.ArgumentParser(description="Kills sweeps, resumes them, and compares the results.")
    parser.add_argument(
        "--kills",
        type=int,
        default=200,
        help="number of kills at random times, half of them on threads and half on a cluster",
    )
    parser.add_argument("--forced", type=int, help="number of kills at system calls (default: a fifth of --kills)")
    parser.add_argument("--each", type=int, default=8, help="number of kills of each sweep")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--seeds", type=int, default=320, help="seeds for each of the plan's four points; 40 runs are written together"
    )
    parser.add_argument("--duration", default="30ms", help="simulated time of each run")
    parser.add_argument("--only", choices=["threads", "cluster", "forced"], action="append")
    options = parser.parse_args(arguments)
    chosen = options.only or ["threads", "cluster", "forced"]
    done: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="celltrain-kills-") as folder:
        campaign = Campaign.of(Path(folder), options.seed, seeds=options.seeds, duration=options.duration)
        share = -(-options.kills // len({"threads", "cluster"} & set(chosen))) if set(chosen) - {"forced"} else 0
        try:
            if "threads" in chosen:
                done.update({f"threads, {k}": n for k, n in at_random(campaign, share, options.each).items()})
            if "cluster" in chosen:
                with machines_in(Path(folder) / "machines") as machines:
                    killed = at_random(campaign, share, options.each, machines)
                done.update({f"cluster, {k}": n for k, n in killed.items()})
            if "forced" in chosen:
                if not can_force():
                    print("no kills at system calls: they need Linux and cc")
                else:
                    done.update(forced(campaign, options.forced or options.kills // 5))
        except WrongError as error:
            print(f"WRONG (seed {options.seed}): {error}")
            return 1
    for what, count in sorted(done.items()):
        print(f"{what}: {count} kills")
    print(f"{sum(done.values())} kills in all: no run was lost or stored twice (seed {options.seed})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
