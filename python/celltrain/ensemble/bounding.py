"""The smallest value of a setting with which a measure does not exceed a bound, such as the smallest buffer without loss.

>>> import celltrain as ct
>>> lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=100, policy=ct.TailDrop(), duration="20ms")
>>> found = bound(lan, "port.bottleneck.buffer", high=10_000)
>>> found.largest_without == found.smallest - 1
True
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import Unpack

from celltrain.drawing.words import counted
from celltrain.ensemble.cases import execute
from celltrain.ensemble.comparing import wrong_seeds
from celltrain.ensemble.plan import Plan
from celltrain.errors import Fault, InputError
from celltrain.model.arguments import check, checked
from celltrain.model.grids import Block, Line
from celltrain.running import Options, Rows, Run, RunRecord, Worker, without_certificate, worker_of
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.model.types import Scenario

#: Lost or discarded cells.
LOST = "cells.lost + cells.discarded"
#: Number of values in the first batch, from the smallest to the largest.
FIRST = 5


@dataclass(frozen=True, kw_only=True)
class Step:
    """The outcome for one value of the setting.

    Attributes:
        value: The value.
        worst: Largest value of the measure over the seeds; None if the scenario is refused.
        seed: Seed of the run with the value `worst`.
        runs: Number of simulated runs; the others are known to equal other runs.
        refusal: The reason why the scenario is refused.
    """

    value: int
    worst: float | None
    seed: int | None
    runs: int
    refusal: str | None = None

    @property
    def outcome(self) -> str:
        """The outcome in words."""
        return self.refusal or f"{self.worst:g} (seed {self.seed})"


@dataclass(frozen=True, kw_only=True)
class Bound:
    """The result of `celltrain.bound`.

    Attributes:
        path: Path of the setting.
        measure: The measure.
        at_most: Bound of the measure.
        smallest: Smallest value with which the measure keeps the bound with every seed; None if no value does.
        largest_without: The value below, with which it does not; None if it does with the smallest value of the range.
        seeds: Number of seeds.
        runs: Runs that were done.
        without_running: Number of runs that are known to equal other runs, and were not simulated.
        without_certificate: Reasons why the results of some runs could not be copied to other runs.
        steps: The outcomes, by value.
    """

    path: str
    measure: str
    at_most: float
    smallest: int | None
    largest_without: int | None
    seeds: int
    runs: int
    without_running: int
    without_certificate: tuple[str, ...]
    steps: tuple[Step, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns the answer as `celltrain bound --json` prints it."""
        return {**vars(self), "steps": [vars(step) for step in self.steps]}

    def blocks(self) -> Iterator[Block]:
        """Yields the answer in words."""
        seeds = "" if self.seeds == 1 else f" with each of {self.seeds} seeds"
        bounded = f"{self.measure} at most {self.at_most:g}{seeds}"
        if self.smallest is None:
            yield Line(text=f"{shown(self.path)}: no value in the range gives {bounded}", style="bold")
        else:
            yield Line(text=f"{shown(self.path)} = {self.smallest:,}: the smallest value with {bounded}", style="bold")
        steps = {step.value: step for step in self.steps}
        for value in (self.largest_without, self.smallest):
            if value is not None:
                yield Line(text=f"{value:,} gives {steps[value].outcome}")
        total = self.runs + self.without_running
        yield Line(text=f"{counted(total, 'run')}, {self.without_running:,} of them copied from equal runs")


@checked(InputError)
def bound(
    scenario: Scenario | str | os.PathLike[str],
    path: str,
    *,
    fixed: Mapping[str, Any] | None = None,
    low: int = 1,
    high: int = 1_000_000,
    measure: str = LOST,
    at_most: float = 0.0,
    seeds: int = 1,
    first_seed: int = 1,
    **options: Unpack[Options],
) -> Bound:
    """Finds the smallest value of a setting with which a measure does not exceed a bound, by exact runs.

    The measure must keep the bound for every larger value. If the runs show that it does not, no value is returned.

    Args:
        scenario: The scenario, its path, or the name of a shipped one.
        path: Path of a setting in whole numbers, such as `"port.bottleneck.buffer"` or `"switch.*.memory.cells"`.
        fixed: Other settings, each as a list of one value by path: `{"tcp": ["reno"]}`.
        low: Smallest value to try.
        high: Largest value to try.
        measure: The measure, such as `"ports.bottleneck.lost_cells"`.
        at_most: Bound of the measure, in its unit.
        seeds: Number of seeds; the measure must keep the bound with each of them.
        first_seed: The first seed.
        options: See `celltrain.Options`: jobs, client, worker, limit, progress, cancel, certificates.

    Raises:
        InputError: If the scenario, the path or an option is wrong, if a run fails, or if two runs show that a larger value
            can be worse.
        CancelledError: If `cancel` ended the call.
    """
    faults = list(wrong_seeds(seeds, first_seed))
    if not 0 <= low < high:
        faults.append(Fault.of_option("high", high, f"is not above low, which is {low:,}"))
    if faults:
        raise InputError(faults)
    wanted, numbers = (measure, at_most), range(first_seed, first_seed + seeds)
    return _Search((scenario, fixed or {}), path, wanted, numbers, worker_of(options), options).run(low, high)


class _Search:
    """Tries values of a setting, several at a time, so that certificates fill what is the same."""

    def __init__(
        self,
        base: tuple[Any, Mapping[str, Any]],
        path: str,
        wanted: tuple[str, float],
        seeds: range,
        worker: Worker,
        options: Options,
    ) -> None:
        self._scenario, self._fixed = base
        self._path, self._seeds, self._worker, self._options = path, seeds, worker, options
        self._measure, self._at_most = wanted
        self._steps: dict[int, Step] = {}
        #: The largest occupancies in the runs, by value, if there is a measure for them.
        self._used: dict[int, int] = {}
        self._without_running, self._has_plan = 0, False
        self._without_certificate: set[str] = set()
        self._occupancy = _occupancy(path)

    def run(self, low: int, high: int) -> Bound:
        """Returns the result for values from `low` to `high`."""
        ratio = high / max(low, 1)
        self._try({low, high, *(round(max(low, 1) * ratio ** (i / (FIRST - 1))) for i in range(1, FIRST - 1))})
        while True:
            below, above = self._bracket()
            if above is None or below is None or above - below == 1:
                break
            self._try(self._next(below, above))
        return Bound(
            path=self._path,
            measure=self._measure,
            at_most=self._at_most,
            smallest=above,
            largest_without=below,
            seeds=len(self._seeds),
            runs=sum(step.runs for step in self._steps.values()),
            without_running=self._without_running,
            without_certificate=tuple(sorted(self._without_certificate)),
            steps=tuple(self._steps[value] for value in sorted(self._steps)),
        )

    def _keeps(self, value: int) -> bool:
        worst = self._steps[value].worst
        return worst is not None and worst <= self._at_most

    def _bracket(self) -> tuple[int | None, int | None]:
        """Returns the largest value that exceeds the bound, and the smallest that does not.

        Raises:
            InputError: If the first is above the second.
        """
        good = [value for value in self._steps if self._keeps(value)]
        bad = [value for value in self._steps if not self._keeps(value)]
        below, above = max(bad, default=None), min(good, default=None)
        if below is not None and above is not None and above < below:
            first, second = (self._steps[value] for value in (above, below))
            words = (
                f"rises and falls as {self._path} grows: {first.value:,} gives {first.outcome}, but "
                f"{second.value:,} gives {second.outcome}; sweep the setting to see all values"
            )
            raise InputError.of_option("measure", self._measure, words)
        return below, above

    def _next(self, below: int, above: int) -> list[int]:
        """Returns the values to try next: the largest occupancy of the best run and the value below, or the middle."""
        guess = self._used.pop(above, None)
        if guess is not None and below < guess < above:
            return [value for value in (guess - 1, guess) if value > below]
        return [(below + above) // 2]

    def _try(self, values: Iterable[int]) -> None:
        check()
        plans: dict[int, Plan] = {}
        for value in sorted(values, reverse=True):
            try:
                plans[value] = self._plan(value)
            except InputError as error:
                if not (plans or self._is_small(value)):
                    raise
                self._steps[value] = Step(value=value, worst=None, seed=None, runs=0, refusal=str(error))
        cases = {value: plan.case(0) for value, plan in plans.items()}
        runs = [
            Run(point=value, case=case, seed=seed, key=f"{value}/{seed}")
            for value, case in cases.items()
            for seed in self._seeds
        ]
        records: dict[int, list[RunRecord]] = {value: [] for value in cases}

        def take(rows: Rows) -> None:
            for record in rows.runs:
                records[record.point].append(record)
            if (progress := self._options.get("progress")) is not None:
                progress(sum(map(len, records.values())) / len(runs))

        if runs:
            plan = plans[min(plans)]
            execute(runs, self._worker, take, measures=plan.measures, limit_s=plan.limit_s)
        for value, own in records.items():
            self._add(value, own)

    def _add(self, value: int, records: Sequence[RunRecord]) -> None:
        """Adds the runs of a value; raises `InputError` if one has no value of the measure."""
        for record in records:
            if record.error is not None or record.values[0] is None:
                problem = record.error or (record.problems or [None])[0] or "it is undefined"
                words = f"has no value with {self._path} = {value:,} and seed {record.seed}: {problem}"
                raise InputError.of_option("measure", self._measure, words)
        worst = max(records, key=lambda record: (record.values[0] or 0.0, -record.seed))
        filled = sum(record.filled_from is not None for record in records)
        self._without_running += filled
        self._without_certificate.update(without_certificate(records))
        self._steps[value] = Step(
            value=value, worst=float(worst.values[0] or 0.0), seed=worst.seed, runs=len(records) - filled
        )
        if self._occupancy is not None:
            self._used[value] = int(max(record.values[1] or 0.0 for record in records))

    def _is_small(self, value: int) -> bool:
        """Returns whether a scenario with a larger value is accepted, so that this one is too small."""
        return any(step.refusal is None and step.value > value for step in self._steps.values())

    def _plan(self, value: int) -> Plan:
        extra = [] if self._occupancy is None else [self._occupancy]
        document = {
            "axes": {**self._fixed, "bounded": {"path": self._path, "values": [value]}},
            "seeds": {"first": self._seeds.start, "count": len(self._seeds)},
            "measures": [self._measure, *extra],
            **({} if self._options.get("limit") is None else {"limits": {"time": self._options["limit"]}}),
        }
        try:
            plan = Plan.of(self._scenario, document)
            self._has_plan = True
            return plan
        except InputError:
            if not extra or self._has_plan:
                raise
            # The scenario may lack the measure of the occupancy.
            self._occupancy = None
            return self._plan(value)


def _occupancy(path: str) -> str | None:
    """Returns the measure of the largest occupancy of the buffer or memory at a path.

    >>> _occupancy("port.bottleneck.buffer"), _occupancy("switch.*.memory.cells"), _occupancy("duration")
    ('ports.bottleneck.max_queue_cells', 'memories.largest(*).max_used_cells', None)
    """
    if re.fullmatch(r"switch\..+\.memory\.cells", path):
        return "memories.largest(*).max_used_cells"
    port = re.fullmatch(r"port\.(.+)\.buffer", path)
    return None if port is None else f"ports.{port[1]}.max_queue_cells"
