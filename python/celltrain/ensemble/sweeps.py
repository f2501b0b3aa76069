"""Sweeps from Python: run a scenario with many settings and seeds.

>>> import celltrain as ct
>>> lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=200, policy=ct.SelectiveDrop(), duration="20ms")
>>> store = ct.sweep(lan, over={"port.bottleneck.policy.selective_drop.z": [0.5, 0.8, 1.1]}, seeds=4)
>>> store.summary(["fairness"])["n"].to_pylist()
[4, 4, 4]
"""

from __future__ import annotations

import operator
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import Unpack

from celltrain import _core
from celltrain.ensemble import plan_warnings
from celltrain.ensemble.cases import case_of, execute
from celltrain.ensemble.plan import Plan
from celltrain.ensemble.store import Store
from celltrain.ensemble.store.database import Repeat
from celltrain.ensemble.store.folder import uninterrupted
from celltrain.errors import ClusterError, PlanError, warn
from celltrain.model.arguments import check, checked
from celltrain.running import Rows, Run, RunRecord, SweepOptions, Worker, statistics, without_certificate, worker_of

if TYPE_CHECKING:
    from celltrain.model.types import Scenario


@checked(PlanError)
def sweep(
    base: Scenario | Plan | str | os.PathLike[str],
    *,
    over: Mapping[str, Any] | None = None,
    paired: Sequence[Mapping[str, Any]] = (),
    sample: Mapping[str, Any] | None = None,
    seeds: int | Mapping[str, Any] = 10,
    measures: Sequence[str] | Mapping[str, str] | None = None,
    series: Mapping[str, Any] | None = None,
    store: str | os.PathLike[str] | None = None,
    resume: bool = False,
    **options: Unpack[SweepOptions],
) -> Store:
    """Runs a scenario over every combination of settings, each with several seeds; returns the store of the results.

    Args:
        base: The scenario to vary, its path, or the name of a shipped one; or a whole `Plan`, to which the arguments about
            the plan do not apply.
        over: The axes, crossed with each other: lists of values by path into the scenario, such as
            `{"port.bottleneck.buffer": [1000, 2000]}`, or tables by name as in a plan's `[axes]`.
        paired: Tables of axes that move together, as in a plan's `[[paired]]`.
        sample: Axes drawn together, as in a plan's `[sample]`.
        seeds: Number of seeds for each setting, or a table as in a plan's `[seeds]`.
        measures: Measures to store for every run, or a table of measures by their labels. When None, efficiency,
            fairness, losses, the largest queue, timeouts, retransmissions and the smallest goodput of a flow, and
            measures of requests.
        series: Series that every run records, as in a plan's `[series]`.
        store: The folder, new or empty. When None, a temporary one that is deleted with the returned store.
        resume: True to continue with `store`. Failed runs count as done.
        options: See `celltrain.SweepOptions`: jobs, client, worker, limit, progress, cancel, certificates,
            retry_failed.

    Raises:
        PlanError: With all faults of the plan.
        StoreError: If the store cannot be created, written or continued.
        ClusterError: If the cluster is lost, or its workers run another version; finished runs are kept.
        CancelledError: If `cancel` ended the call; finished runs are in `store`.

    >>> import celltrain as ct
    >>> lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=100, policy=ct.Epd(threshold=60), duration="20ms")
    >>> short = {"path": "tcp", "values": {"vanilla": ct.Vanilla(), "reno": ct.Reno()}}
    >>> store = ct.sweep(lan, over={"tcp": short, "topology.n_source.link_delay": ["5us", "50us"]}, seeds=2)
    >>> store.summary(["efficiency"]).column_names[:4]
    ['point', 'tcp', 'topology.n_source.link_delay', 'measure']
    """
    limits = {"time": limit} if (limit := options.get("limit")) is not None else None
    retry_failed = options.get("retry_failed", False)
    document = {"axes": over, "paired": paired or None, "sample": sample, "seeds": seeds, "measures": measures}
    plan = base if isinstance(base, Plan) else Plan.of(base, {**document, "series": series, "limits": limits})
    if resume and store is None:
        raise PlanError.of_option("resume", True, "needs the store to continue")
    if retry_failed and not resume:
        raise PlanError.of_option("retry_failed", True, "needs resume=True and the store to continue")
    where = worker_of(options)
    keeper = tempfile.TemporaryDirectory(prefix="celltrain-") if store is None else None
    folder = Path(keeper.name) / "store" if keeper is not None else Path(store or "")
    run_plan(plan, folder, where, resume=resume, retry_failed=retry_failed, progress=options.get("progress"))
    answer = Store._made(**{**vars(Store.open(folder)), "keeper": keeper, "plan": plan})
    warn(plan_warnings.of_store(answer))
    return answer


#: Number of points in a block. A block runs seed by seed, so if the sweep stops early, many points have a few seeds.
BLOCK = 1000
#: Number of runs in a block that are looked up together, so that memory does not grow with the plan.
BLOCK_RUNS = 100_000
#: Number of runs that are prepared together.
AT_ONCE = 64
#: Maximum number of runs to collect before a write.
WRITE_RUNS = 4096
#: Minimum time between two writes in seconds, so that short runs are written together. A run that took at least half of
#: this time is written at once.
WRITE_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The progress of a sweep.

    Attributes:
        done: Runs whose rows are stored, including earlier ones.
        total: Total number of runs. If seeds are added until intervals are narrow, the number requested so far.
        failed: Failed runs among `done`.
        repeated: Runs that are identical to a run of an earlier point. They count as done and are not run again.
        elapsed_seconds: Time since the sweep was started or resumed.
        rate: Runs per second since then; 0 before the first run is done.
        without_running: Number of runs among `done` with results copied from other runs, because certificates prove
            that they are equal.
        without_certificate: Reasons why the results of some runs could not be copied to other runs.
        wide: Points that have reached the maximum number of seeds with an interval still wider than requested.
    """

    done: int
    total: int
    failed: int
    repeated: int
    elapsed_seconds: float
    rate: float
    wide: int = 0
    without_running: int = 0
    without_certificate: tuple[str, ...] = ()

    @property
    def remaining_seconds(self) -> float | None:
        """Estimated remaining time in seconds; None before the first run is done."""
        return (self.total - self.done) / self.rate if self.rate > 0 else None


def run_plan(
    plan: Plan,
    folder: Path,
    worker: Worker,
    *,
    resume: bool = False,
    retry_failed: bool = False,
    progress: Callable[[Progress], object] | None = None,
) -> Progress:
    """Runs a plan into a new store, or the missing runs into an existing one; returns the final progress.

    After Ctrl-C, the finished runs are stored before `KeyboardInterrupt` is raised. Failed runs count as done; with
    `retry_failed` they are run again.
    """
    with Store.resume(folder, plan) if resume else Store.create(folder, plan) as store:
        if retry_failed:
            store.drop_failed()
        return Coordinator(plan, store, worker, progress).run()


class Coordinator:
    """Runs a plan and writes its store. Only this process expands the plan and writes rows."""

    def __init__(
        self, plan: Plan, store: Store, worker: Worker, progress: Callable[[Progress], object] | None = None
    ) -> None:
        self._plan, self._store, self._worker, self._tell = plan, store, worker, progress
        #: Protects all attributes below, because a worker may iterate over the runs from another thread.
        self._lock = threading.Lock()
        #: Runs that were started but not written yet, by key; None until they are received.
        self._runs: dict[str, RunRecord | None] = {}
        self._received = 0
        self._repeats: list[Repeat] = []
        totals = store.database.totals()
        self._done, self._failed, self._repeated = totals.runs, totals.failed, totals.repeats
        self._done_now = 0
        self._wide, self._filled = 0, len(store.database.filled())
        self._without_certificate: set[str] = set()
        until = plan.seeds.until
        self._total = plan.runs if until is None else len(plan.points) * until.at_least
        self._begun = self._written = self._told = time.monotonic()

    def run(self) -> Progress:
        """Runs the missing runs. On Ctrl-C or an error, finished runs are stored before the exception is raised."""
        try:
            self._run_missing()
        finally:
            self._write()
            self._report(last=True)
        return self._progress()

    def _run_missing(self) -> None:
        until, count = self._plan.seeds.until, len(self._plan.points)
        if until is None:
            if self._done + self._repeated < self._plan.runs:
                self._execute(self._missing())
            return
        step = max(1, min(BLOCK, BLOCK_RUNS // until.at_most))
        for first in range(0, count, step):
            self._until_narrow(first, min(first + step, count))

    def _execute(self, missing: Iterable[Sequence[tuple[int, int]]]) -> None:
        plan, runs = self._plan, self._new_runs(missing)
        limits: dict[str, Any] = {"limit_s": plan.limit_s, "recording": plan.recording}
        execute(runs, self._worker, self._take, measures=plan.measures, **limits)
        self._write()
        assert not self._runs, "all runs have returned"

    def _missing(self) -> Iterator[list[tuple[int, int]]]:
        """Yields the point and seed of runs that are not stored: block by block, and within a block seed by seed."""
        count, begin = len(self._plan.points), self._plan.seeds.first
        for first in range(0, count, BLOCK):
            points = range(first, min(first + BLOCK, count))
            step = max(1, BLOCK_RUNS // len(points))
            for low in range(begin, begin + self._plan.seeds.count, step):
                seeds = range(low, min(low + step, begin + self._plan.seeds.count))
                settled = self._store.database.settled(points, seeds)
                if len(settled) < len(points) * len(seeds):
                    yield [(point, seed) for seed in seeds for point in points if (point, seed) not in settled]

    def _new_runs(self, blocks: Iterable[Sequence[tuple[int, int]]]) -> Iterator[Run]:
        """Yields the runs to do. Points that repeat others, and refused scenarios, get their rows at once."""
        for block in blocks:
            cases: dict[int, tuple[_core.Case, str | None]] = {}
            for first in range(0, len(block), AT_ONCE):
                some = block[first : first + AT_ONCE]
                for point, _ in some:
                    if point not in cases:
                        check()
                        cases[point] = case_of(self._plan, point)
                check()
                yield from self._new(some, cases)

    def _new(self, block: Sequence[tuple[int, int]], cases: Mapping[int, tuple[_core.Case, str | None]]) -> list[Run]:
        """Returns the new runs of a block. The others repeat a run of an earlier point."""
        keys = [cases[point][0].key(seed) for point, seed in block]
        new, refused = [], []
        with self._lock:
            stored = self._store.database.known(keys)
            for (point, seed), key in zip(block, keys, strict=True):
                if key in self._runs or key in stored:
                    self._repeats.append(Repeat(point, seed, key))
                    self._repeated += 1
                    continue
                self._runs[key] = None
                case, refusal = cases[point]
                if refusal is None:
                    new.append(Run(point=point, case=case, seed=seed, key=key))
                else:
                    text = case.canonical
                    refused.append(RunRecord(point=point, seed=seed, run_key=key, configuration=text, error=refusal))
        self._keep(refused)
        return new

    def _take(self, rows: Rows) -> None:
        """Stores the received rows in memory. If a write is due, writes them to disk."""
        manifest = self._store.manifest
        if (rows.version, rows.profile) != (manifest["version"], manifest["profile"]):
            problem = (
                f"was made by celltrain {manifest['version']} ({manifest['profile']}), but a worker runs "
                f"{rows.version} ({rows.profile}): install the same version on all machines"
            )
            raise ClusterError.of_file(self._store.path, problem)
        self._keep(rows.runs)
        check()
        took = max(map(operator.attrgetter("seconds"), rows.runs), default=0.0)
        if self._received >= WRITE_RUNS or max(time.monotonic() - self._written, 2 * took) > WRITE_SECONDS:
            self._write()
        self._report()

    def _keep(self, records: Iterable[RunRecord]) -> None:
        """Stores runs in memory until the next write. Ignores runs that were received before."""
        with self._lock:
            for record in records:
                if self._runs.get(record.run_key, record) is not None:
                    continue
                self._runs[record.run_key] = record
                self._received += 1
                self._done += 1
                self._done_now += 1
                self._failed += record.error is not None
                self._filled += record.filled_from is not None
                self._without_certificate.update(without_certificate([record]))

    def _write(self) -> None:
        """Writes the received runs in one transaction."""
        # Ctrl-C is delayed until the written runs are removed from the list of runs to write.
        with uninterrupted():
            with self._lock:
                received = [record for record in self._runs.values() if record is not None]
                repeats = list(self._repeats)
            self._store.add(received, repeats)
            with self._lock:
                for record in received:
                    del self._runs[record.run_key]
                self._received -= len(received)
                del self._repeats[: len(repeats)]
        self._written = time.monotonic()

    def _progress(self) -> Progress:
        elapsed = time.monotonic() - self._begun
        done = self._done + self._repeated
        return Progress(
            done=done,
            total=max(self._total, done),
            failed=self._failed,
            repeated=self._repeated,
            elapsed_seconds=elapsed,
            rate=self._done_now / elapsed if elapsed > 0 else 0.0,
            wide=self._wide,
            without_running=self._filled,
            without_certificate=tuple(sorted(self._without_certificate)),
        )

    def _report(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if self._tell is not None and (last or now - self._told > 0.1):
            self._told = now
            self._tell(self._progress())

    # Functions that add seeds until intervals are narrow.

    def _until_narrow(self, first: int, last: int) -> None:
        """Runs some points in rounds, until each has a narrow enough interval or the maximum number of seeds.

        The number of seeds of a point depends only on the values of its earlier seeds, not on where and when they run.
        """
        begin, before, until = self._plan.seeds.first, 0, self._plan.seeds.until
        assert until is not None, "only plans with the key until need this"
        self._total -= (last - first) * until.at_least
        measure = self._plan.measures.index(until.measure)
        while True:
            values = self._store.database.values(measure, first, last)
            targets = {point: self._target(values.get(point, {})) for point in range(first, last)}
            self._total += sum(targets.values()) - before
            before = sum(targets.values())
            missing = [
                (point, seed)
                for seed in range(begin, begin + max(targets.values()))
                for point in range(first, last)
                if seed < begin + targets[point] and seed not in values.get(point, {})
            ]
            if not missing:
                break
            self._execute([missing])
        for point in range(first, last):
            own = values.get(point, {})
            known = [value for value in own.values() if value is not None]
            self._wide += len(own) >= until.at_most and not statistics.mean(known).half[0] <= until.interval

    def _target(self, values: Mapping[int, float | None]) -> int:
        """Returns the number of seeds a point needs, estimated from its finished runs with consecutive seeds."""
        until, first = self._plan.seeds.until, self._plan.seeds.first
        assert until is not None, "only plans with the key until need this"
        target = until.at_least
        while target < until.at_most and all(seed in values for seed in range(first, first + target)):
            known = [value for seed in range(first, first + target) if (value := values[seed]) is not None]
            needed = seeds_needed(known, until.interval, until.at_most)
            if needed <= len(known):
                break
            target = min(until.at_most, target + needed - len(known))
        return target


def seeds_needed(values: Sequence[float], interval: float, most: int) -> int:
    """Estimates how many values are needed for the 95 % interval of their mean to be at most ± `interval`.

    >>> seeds_needed([0.9, 0.9, 0.9], 0.01, 200), seeds_needed([0.8, 0.9, 1.0], 0.1, 200), seeds_needed([0.8, 1.0], 1e-9, 200)
    (3, 7, 200)
    """
    n, sd = len(values), statistics.mean(values).sd[0]
    if n < 2:
        return min(n, most)
    while n < most and statistics.half_width(n, sd) > interval:
        n += 1
    return n
