"""The runs that some numbers of a paper need, on the runner of sweeps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from celltrain.drawing.pages.words import counted
from celltrain.errors import CancelledError, Fault, ScenarioError, warn
from celltrain.model.cancel import check
from celltrain.model.expressions import needs_series, outlined, problem
from celltrain.model.scenario import Reading
from celltrain.papers.paper import Number, Paper, PaperError
from celltrain.running import Chunk, Local, Rows, RunRecord, Task


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a reproduction has come."""

    done: int
    """Runs that have ended, and runs in all."""
    total: int
    elapsed_seconds: float
    """Seconds of real time that have passed, and those still to come as far as the runs so far can tell."""
    remaining_seconds: float


class Outcomes:
    """The runs that some numbers need, and what has come of them."""

    def __init__(
        self,
        paper: Paper,
        numbers: Sequence[Number],
        seeds: Mapping[str, int],
        *,
        threads: int,
        progress: Callable[[Progress], object] | None,
    ) -> None:
        self._paper = paper
        self._threads = threads
        self._progress = progress
        #: For each configuration, the measures wanted.
        self._wanted: dict[int, list[str]] = {}
        for number in numbers:
            measures = self._wanted.setdefault(number.configuration, [])
            if number.result not in measures:
                measures.append(number.result)
        counts: dict[int, int] = {}
        for number in numbers:
            count = seeds[number.network or ""]
            enough = count if number.most_seeds is None else min(count, number.most_seeds)
            counts[number.configuration] = max(enough, counts.get(number.configuration, 0))
        self.runs = [
            (configuration, seed) for configuration in self._wanted for seed in range(1, 1 + counts[configuration])
        ]
        # Seed by seed, so that stopping early leaves whole tables; within a seed the longest first, so that what is
        # left for the last thread at the very end is short.
        self.runs.sort(key=lambda run: (run[1], -paper.configurations[run[0]].duration_s))
        #: By configuration, measure and seed.
        self.values: dict[int, dict[str, dict[int, float]]] = {
            configuration: {measure: {} for measure in measures} for configuration, measures in self._wanted.items()
        }
        #: By measure, the runs in which it is undefined.
        self.undefined: dict[str, set[tuple[int, int]]] = {}
        self.fingerprints: dict[tuple[int, int], str] = {}
        self.cell_hops = 0
        self.elapsed_seconds = 0.0
        self.interrupted = False
        self._clock = _Clock(self._network(run) for run in self.runs)

    def run(self) -> None:
        """Run everything; a keyboard interrupt or the call's handle ends it early."""
        started = time.monotonic()

        def take(rows: Rows) -> None:
            self.elapsed_seconds = time.monotonic() - started
            for record in rows.runs:
                self._take(record)

        try:
            Local(self._threads).work(self._chunks(), take)
        except (KeyboardInterrupt, CancelledError):
            self.interrupted = True
        self.elapsed_seconds = time.monotonic() - started
        warn(
            f"{text} is undefined in {counted(len(runs), 'run')} of {len(self.fingerprints):,}; they do not count for it"
            for text, runs in self.undefined.items()
        )

    def _chunks(self) -> Iterator[Chunk]:
        """All runs but those that are traced, and then these: a trace costs time and memory.

        Each is one chunk, so that no thread waits for the others before the very end.
        """
        memory = {configuration: self._judged(configuration) for configuration in self._wanted}
        traced = {c for c, measures in self._wanted.items() if any(map(needs_series, measures))}
        for of_chunk in (self._wanted.keys() - traced, traced):
            configurations = [configuration for configuration in self._wanted if configuration in of_chunk]
            place = {configuration: number for number, configuration in enumerate(configurations)}
            tasks = [
                Task(
                    run_key=f"{configuration}/{seed}",
                    point=configuration,
                    seed=seed,
                    configuration=place[configuration],
                    measures=tuple(self._wanted[configuration]),
                )
                for configuration, seed in self.runs
                if configuration in of_chunk
            ]
            if tasks:
                yield Chunk(
                    configurations=tuple(self._paper.configurations[c].text for c in configurations),
                    memory=tuple(memory[c] for c in configurations),
                    tasks=tuple(tasks),
                    measures=(),
                    limit_s=None,
                    recording=None,
                )

    def _judged(self, configuration: int) -> int:
        """What a run of a configuration takes, in bytes.

        Raises `ScenarioError` where it is refused, and `PaperError` for a measure that leads nowhere in its answer.
        """
        check()
        scenario = self._paper.configurations[configuration].scenario
        reading = Reading.of_table(scenario, "scenario")
        outline = outlined(reading.accepted(), scenario)
        for text in self._wanted[configuration]:
            if words := problem(text, outline):
                raise PaperError(f"{self._paper.id}: {text!r} is not a measure of its runs: {words}")
        return reading.memory_bytes or 0

    def _take(self, record: RunRecord) -> None:
        run = (record.point, record.seed)
        if record.error is not None:
            raise ScenarioError([Fault.of(f"a run with seed {record.seed} has no result: {record.error}")])
        measures = self._wanted[record.point]
        for text, value, why in zip(measures, record.values, record.problems or [None] * len(measures), strict=True):
            if value is None and why is not None:
                raise PaperError(why)
            if value is None:
                # A ratio of nothing, such as the fairness of a run that carried nothing: the seed does not count.
                self.undefined.setdefault(text, set()).add(run)
                continue
            self.values[record.point][text][record.seed] = value
        assert record.fingerprint is not None, "a run without an error has a fingerprint"
        self.fingerprints[run] = record.fingerprint
        self.cell_hops += record.cell_hops
        self._clock.ended(self._network(run), record.seconds)
        if self._progress is not None:
            self._progress(
                Progress(
                    done=len(self.fingerprints),
                    total=len(self.runs),
                    elapsed_seconds=self.elapsed_seconds,
                    remaining_seconds=self._clock.remaining_seconds() / min(self._threads, len(self.runs)),
                )
            )

    def _network(self, run: tuple[int, int]) -> str:
        return self._paper.configurations[run[0]].network or ""


class _Clock:
    """How long the runs to come will take: as long, each, as those of its network took so far."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._left: dict[str, int] = {}
        self._seconds: dict[str, list[float]] = {}
        for network in networks:
            self._left[network] = self._left.get(network, 0) + 1

    def ended(self, network: str, seconds: float) -> None:
        self._left[network] -= 1
        self._seconds.setdefault(network, []).append(seconds)

    def remaining_seconds(self) -> float:
        every = [second for seconds in self._seconds.values() for second in seconds]
        return sum(
            left * sum(sample := self._seconds.get(network, every)) / len(sample)
            for network, left in self._left.items()
        )
