"""The one process that expands the plan, hands out missing runs, and writes their rows."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from celltrain.ensemble.plan import Plan, run_key
from celltrain.ensemble.plan.plan import canonical_with_memory, compact
from celltrain.ensemble.store import Store
from celltrain.ensemble.store.database import Repeat
from celltrain.ensemble.store.files import uninterrupted
from celltrain.errors import ClusterError, Fault, ScenarioError, StoreError
from celltrain.model.cancel import check
from celltrain.running import Chunk, Rows, RunRecord, Task, Worker, statistics
from celltrain.text import shown

#: Points that are expanded together; their seeds are run in turn, so that an early end leaves few seeds of many points.
BLOCK = 1000
#: Of these points so many runs are looked at together, so that memory does not grow with the plan.
BLOCK_RUNS = 100_000
#: Runs that are written together, at most.
WRITE_RUNS = 4096
#: Least time between two writes, s: short runs are written together. A run that took half as long is written at once.
WRITE_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a sweep is."""

    done: int
    """Runs whose rows are there, earlier ones included."""
    total: int
    """Runs in all, as far as is known: where seeds are added until intervals are narrow, those asked for so far."""
    failed: int
    """Of those done."""
    repeated: int
    """Runs that an earlier point has, so that they need not be done; they are counted as done."""
    elapsed_seconds: float
    rate: float
    """Runs a second since it was begun or resumed; 0 before the first."""
    wide: int = 0
    """Points that have all the seeds they may have, and an interval wider than asked for all the same."""

    @property
    def remaining_seconds(self) -> float | None:
        """How long the rest will take if it goes on so; None before the first run is done."""
        return (self.total - self.done) / self.rate if self.rate > 0 else None


class Coordinator:
    """Runs a plan into a store."""

    def __init__(
        self, plan: Plan, store: Store, worker: Worker, progress: Callable[[Progress], object] | None = None
    ) -> None:
        self._plan, self._store, self._worker = plan, store, worker
        self._tell = progress
        #: Of everything below: a worker may draw chunks on a thread of its own.
        self._lock = threading.Lock()
        #: Keys of runs that were handed out and did not come back yet.
        self._out: set[str] = set()
        #: Runs received and not yet written, by key.
        self._held: dict[str, RunRecord] = {}
        self._repeats: list[Repeat] = []
        totals = store.database.totals()
        self._done, self._failed, self._repeated = totals.runs, totals.failed, totals.repeats
        #: Runs that came back since it was begun or resumed.
        self._done_here = 0
        self._wide = 0
        self._total = plan.runs if plan.seeds.until is None else len(plan.points) * plan.seeds.until.at_least
        self._begun = self._written = self._told = time.monotonic()

    def run(self) -> Progress:
        """Runs the missing runs. Finished runs are in the store however it ends; Ctrl-C and errors are raised after that."""
        try:
            if self._plan.seeds.until is None:
                if not self._finished():
                    self._hand_out(self._missing())
            else:
                step = max(1, min(BLOCK, BLOCK_RUNS // self._plan.seeds.until.at_most))
                for first in range(0, len(self._plan.points), step):
                    self._until_narrow(first, min(first + step, len(self._plan.points)))
        except StoreError:
            raise
        except BaseException:
            self._write()
            # A caller that follows the progress also receives the final state.
            self._report(last=True)
            raise
        self._write()
        self._report(last=True)
        return self._progress()

    def _finished(self) -> bool:
        return self._done + self._repeated == self._plan.runs

    def _hand_out(self, wanted: Iterator[list[tuple[int, int]]]) -> None:
        self._worker.work(self._chunks(wanted), self._take)
        assert not self._out, "every run that was handed out came back"
        self._write()

    def _missing(self) -> Iterator[list[tuple[int, int]]]:
        """By blocks of points: point and seed of the runs that are not there, seed by seed."""
        count, begin = len(self._plan.points), self._plan.seeds.first
        for first in range(0, count, BLOCK):
            points = range(first, min(first + BLOCK, count))
            step = max(1, BLOCK_RUNS // len(points))
            for low in range(begin, begin + self._plan.seeds.count, step):
                seeds = range(low, min(low + step, begin + self._plan.seeds.count))
                settled = self._store.database.settled(points, seeds)
                if len(settled) < len(points) * len(seeds):
                    yield [(point, seed) for seed in seeds for point in points if (point, seed) not in settled]

    def _until_narrow(self, first: int, last: int) -> None:
        """Rounds over some points, until the interval of each is narrow enough, or it has all the seeds it may have.

        Which seeds a point gets follows from the values of its earlier ones alone, whichever worker runs them, and when.
        """
        begin, targets_before = self._plan.seeds.first, 0
        until = self._plan.seeds.until
        assert until is not None, "asked of plans that say until when"
        self._total -= (last - first) * until.at_least
        while True:
            values = self._store.database.values(self._plan.measures.index(until.measure), first, last)
            targets = {point: self._target(values.get(point, {})) for point in range(first, last)}
            self._total += sum(targets.values()) - targets_before
            targets_before = sum(targets.values())
            wanted = [
                (point, seed)
                for seed in range(begin, begin + max(targets.values()))
                for point in range(first, last)
                if seed < begin + targets[point] and seed not in values.get(point, {})
            ]
            if not wanted:
                self._wide += sum(self._is_wide(values.get(point, {})) for point in range(first, last))
                return
            self._hand_out(iter([wanted]))

    def _target(self, values: Mapping[int, float | None]) -> int:
        """How many seeds a point needs, as far as the values of those that are there in order tell."""
        until, first = self._plan.seeds.until, self._plan.seeds.first
        assert until is not None, "asked of plans that say until when"
        target = until.at_least
        while target < until.at_most and all(seed in values for seed in range(first, first + target)):
            known = [value for seed in range(first, first + target) if (value := values[seed]) is not None]
            needed = seeds_needed(known, until.interval, until.at_most)
            if needed <= len(known):
                break
            target = min(until.at_most, target + needed - len(known))
        return target

    def _is_wide(self, values: Mapping[int, float | None]) -> bool:
        """Whether a point that has all the seeds it may have still has a wider interval than asked for."""
        until = self._plan.seeds.until
        assert until is not None, "asked of plans that say until when"
        known = [value for value in values.values() if value is not None]
        return len(values) >= until.at_most and half_width(known) > until.interval

    def _chunks(self, wanted: Iterator[list[tuple[int, int]]]) -> Iterator[Chunk]:
        tasks: list[Task] = []
        places: dict[str, int] = {}
        memory: list[int] = []
        for runs in wanted:
            configurations: dict[int, tuple[str, int, str | None]] = {}
            for point, seed in runs:
                check()
                if point not in configurations:
                    configurations[point] = self._configuration(point)
                text, needed, refusal = configurations[point]
                key = run_key(text, seed)
                if not self._is_new(Repeat(point=point, seed=seed, run_key=key)):
                    continue
                if refusal is not None:
                    self._keep(RunRecord(point=point, seed=seed, run_key=key, configuration=text, error=refusal))
                    continue
                place = places.setdefault(text, len(places))
                if place == len(memory):
                    memory.append(needed)
                tasks.append(Task(run_key=key, point=point, seed=seed, configuration=place))
                if len(tasks) >= self._worker.chunk_runs:
                    yield self._chunk(tasks, places, memory)
                    tasks, places, memory = [], {}, []
        if tasks:
            yield self._chunk(tasks, places, memory)

    def _is_new(self, run: Repeat) -> bool:
        """Whether a run is new and so is handed out; otherwise it repeats a run of an earlier point."""
        with self._lock:
            if run.run_key in self._out or run.run_key in self._held or self._store.database.knows(run.run_key):
                self._repeats.append(run)
                self._repeated += 1
                return False
            self._out.add(run.run_key)
            return True

    def _chunk(self, tasks: list[Task], places: Mapping[str, int], memory: list[int]) -> Chunk:
        return Chunk(
            configurations=tuple(places),
            memory=tuple(memory),
            tasks=tuple(tasks),
            measures=self._plan.measures,
            limit_s=self._plan.limit_s,
            recording=self._plan.recording,
        )

    def _configuration(self, point: int) -> tuple[str, int, str | None]:
        """The canonical scenario of a point and what it takes of memory; or the scenario as it was set, and why it is refused."""
        scenario = self._plan.points[point].scenario
        try:
            return *canonical_with_memory(scenario), None
        except ScenarioError as error:
            bare = {key: value for key, value in scenario.items() if key not in ("seed", "name")}
            return compact(json.loads(json.dumps(bare))), 0, str(error).replace("\n", "; ")

    def _take(self, rows: Rows) -> None:
        """Keeps the rows received, and writes them if it is time."""
        manifest = self._store.manifest
        if (rows.version, rows.profile) != (manifest["version"], manifest["profile"]):
            problem = (
                f"was made by celltrain {manifest['version']} ({manifest['profile']}), and a worker runs {rows.version} "
                f"({rows.profile}): install the same on all machines"
            )
            raise ClusterError([Fault.of_file(shown(self._store.path), problem)])
        for record in rows.runs:
            self._keep(record)
        check()
        took = max((record.seconds for record in rows.runs), default=0.0)
        if len(self._held) >= WRITE_RUNS or max(time.monotonic() - self._written, 2 * took) > WRITE_SECONDS:
            self._write()
        self._report()

    def _keep(self, record: RunRecord) -> None:
        """Keeps a run until the next write; a run received before is dropped."""
        with self._lock:
            if record.run_key not in self._out:
                return
            self._held[record.run_key] = record
            self._out.discard(record.run_key)
            self._done += 1
            self._done_here += 1
            self._failed += record.error is not None

    def _write(self) -> None:
        """Writes the runs that are kept, in one transaction."""
        # Ctrl-C waits, so that no run is both written and held.
        with uninterrupted():
            # A worker's thread that draws chunks may add runs meanwhile.
            with self._lock:
                held, repeats = dict(self._held), list(self._repeats)
            self._store.write(list(held.values()), repeats)
            with self._lock:
                for key in held:
                    del self._held[key]
                del self._repeats[: len(repeats)]
        self._written = time.monotonic()

    def _progress(self) -> Progress:
        elapsed = time.monotonic() - self._begun
        return Progress(
            done=self._done + self._repeated,
            total=max(self._total, self._done + self._repeated),
            failed=self._failed,
            repeated=self._repeated,
            elapsed_seconds=elapsed,
            rate=self._done_here / elapsed if elapsed > 0 else 0.0,
            wide=self._wide,
        )

    def _report(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if self._tell is not None and (last or now - self._told > 0.1):
            self._told = now
            self._tell(self._progress())


def seeds_needed(values: list[float], interval: float, most: int) -> int:
    """How many values make half the width of the 95 % interval of their mean no more than `interval`, going by these.

    >>> seeds_needed([0.9, 0.9, 0.9], 0.01, 200), seeds_needed([0.8, 0.9, 1.0], 0.1, 200), seeds_needed([0.8, 1.0], 1e-9, 200)
    (3, 7, 200)
    """
    n = len(values)
    if n < 2:
        return min(n, most)
    sd = _sd(values)
    while n < most and statistics.half_width(n, sd) > interval:
        n += 1
    return n


def half_width(values: list[float]) -> float:
    """Half the width of the 95 % interval of a mean; infinite where there are fewer than two values.

    >>> round(half_width([0.8, 0.9, 1.0]), 3)
    0.248
    """
    n = len(values)
    return math.inf if n < 2 else statistics.half_width(n, _sd(values))


def _sd(values: list[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
