"""Plans of sweeps: a scenario, the axes that vary it, and the seeds of each point.

>>> import celltrain as ct
>>> from celltrain.ensemble.plan import Plan
>>> plan = Plan.of_toml('''
... scenario = "lan-selective-drop"
... seeds = 3
... [axes]
... buffer = { path = "port.bottleneck.buffer", from = 1000, to = 3000, step = 1000 }
... policy = { path = "port.bottleneck.policy", values = { epd = { epd = { threshold = 800 } }, fba = { fba = {} } } }
... ''')
>>> len(plan.points), plan.runs
(6, 18)
>>> plan.points[3].values
{'buffer': 2000.0, 'policy': 'fba'}

`docs/sweeps.md` describes the form.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from celltrain import _core
from celltrain.ensemble.plan.axes import CHECKED_POINTS, MAX_RUNS, Axis, Design, Point, Seeds, Until
from celltrain.ensemble.plan.document import Place, as_text
from celltrain.ensemble.plan.reader import Planned, Reader
from celltrain.errors import Fault, PlanError, ScenarioError
from celltrain.model import policy_files
from celltrain.model.arguments import checked, current
from celltrain.model.grammar import AS_IS
from celltrain.model.measures import encodable
from celltrain.model.network import tcp_summary
from celltrain.model.overrides import misnamed
from celltrain.model.paths import Key, NoPlaceError, follow
from celltrain.model.scenario import Reading
from celltrain.running import Recording

if TYPE_CHECKING:
    from celltrain.model.types import Scenario

__all__ = ["MAX_RUNS", "Axis", "Key", "Plan", "Point", "Seeds", "Until", "canonical", "follow", "run_key"]

#: Number of accepted points used to check the measures, without running them.
OUTLINED = 4
#: Total length of the canonical scenarios of the kept cases, in characters, above which no more cases are kept.
KEPT_CHARACTERS = 1 << 24
#: Maximum number of refusals that are reported.
MOST_REFUSALS = 20


class Cases(dict[Any, _core.Case]):
    """Cases by point or setting, until their canonical texts have `KEPT_CHARACTERS`."""

    characters = 0

    def keep(self, key: Any, case: _core.Case) -> _core.Case:
        """Keeps a case unless the plan has too many cases, and returns the case."""
        if self.characters < KEPT_CHARACTERS:
            self[key] = case
            self.characters += len(case.canonical)
        return case


@dataclass(frozen=True, kw_only=True)
class Plan(Design, Planned):
    """A checked plan of a sweep, with the seeds of each point and the series that every run records."""

    _file = "sweep"

    seeds: Seeds
    recording: Recording | None

    @classmethod
    def of_side(
        cls, base: Scenario | _core.Case | str | os.PathLike[str], document: Mapping[str, Any], file: str
    ) -> Self:
        """Returns the plan of a scenario in a comparison. Its axes may have no effect, and faults do not name points."""
        return cls._read(Reader.of_values(base, document, file), is_side=True)

    @classmethod
    def _read(cls, reader: Reader, *, check: bool = True, is_side: bool = False) -> Self:
        """Checks a plan, or the plan of a compared scenario. Refuses axes of a plan that take effect at no point."""
        measures, groups = reader.read().measures(), reader.groups()
        seeds, recording = reader.seeds(measures), reader.recording(measures)
        reader.size(groups, seeds.count)
        about = reader.plan()
        plan = cls(base=reader.scenario, groups=groups, measures=measures, seeds=seeds, recording=recording, **about)
        if check:
            _check_points(plan, reader, is_side=is_side)
        reader.finish()
        return plan

    def case(self, point: int) -> _core.Case:
        """Returns the case of a point; raises `ScenarioError` if its scenario has faults.

        Each case is made once, unless all of them would need much memory.
        """
        if (case := self.cases.get(point)) is not None:
            return case
        return self.cases.keep(point, Reading.of_table(self.points[point].scenario, "scenario").accepted())

    @cached_property
    def cases(self) -> Cases:
        """The cases made so far."""
        return Cases()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "cases"}

    @property
    def runs(self) -> int:
        """Total number of runs; with `until`, the maximum."""
        return len(self.points) * self.seeds.count

    @property
    def _contents(self) -> list[Any]:
        # The drawn sample is included, because another version of scipy may draw a different one.
        drawn = [
            [axis.name, hashlib.sha256(axis.numbers.shares.tobytes()).hexdigest()]
            for axis in self.axes
            if axis.numbers is not None and axis.numbers.shares is not None
        ]
        return [*super()._contents, drawn]


def _check_points(plan: Plan, reader: Reader, *, is_side: bool) -> None:
    """Checks that the points' scenarios can be run, and that their answers contain the measures."""
    indices = _looked_at(plan)
    refused: dict[tuple[str, str, str], tuple[Fault, list[int]]] = {}
    too_large: dict[tuple[str, str, str], tuple[Fault, list[int]]] = {}
    lacking: Counter[tuple[str, str]] = Counter()
    accepted: list[tuple[int, _core.Case]] = []
    runnable = unfit = 0
    for index in indices:
        try:
            point = plan.points[index]
        except NoPlaceError as error:
            # All points have lists of the same length, so the first error is enough.
            problem = f"sets {error.path}, which {error}"
            reader.refuse("axes", problem if is_side else f"{problem}; at point {index}")
            return
        is_read = reader.case is not None and not plan.axes
        reading = Reading(case=reader.case, faults=[]) if is_read else Reading.of_table(point.scenario, reader.file)
        faults = list(reading.faults)
        # If a point does not fit into memory, it becomes a failed row. If no point fits, the plan is refused.
        unfit += reading.does_not_fit
        if reading.case is not None:
            # The networks of all points would need too much memory, so only those of the first and last points are kept.
            if len(accepted) == OUTLINED:
                plan.cases.keep(*accepted.pop(1))
            accepted.append((index, reading.case))
            runnable += 1
            untraced, empty = _traced(plan.recording, reading.case)
            faults += untraced
            lacking.update(empty)
        kept = too_large if reading.does_not_fit else refused
        for fault in faults:
            kept.setdefault((fault.key, fault.value, fault.problem), (fault, []))[1].append(index)
    if unfit == len(indices):
        refused |= too_large
    check_measures(plan.measures, reader, [case for _, case in accepted])
    for index, case in accepted:
        plan.cases.keep(index, case)
    for (name, reason), count in lacking.items():
        if count == runnable:
            reader.refuse("series.record", f"has nothing to record: {reason}", name)
    base = reader.scenario_faults() if refused else []
    of_base = {(fault.key.removeprefix("scenario."), fault.problem): fault for fault in base}
    axes = {axis.path: axis for axis in plan.axes}
    for fault, at in list(refused.values())[:MOST_REFUSALS]:
        if (other := misnamed(fault, plan.points[at[0]].scenario, [*axes, *reader.settings])) is not None:
            wrong, path = other
            line = reader.line(reader.path(axes[path].place) if path in axes else "scenario")
            reader.faults.append(Fault.of(wrong.problem, file=reader.file, line=line, key=wrong.key))
        elif len(at) == len(indices) and (fault.key, fault.problem) in of_base:
            of_files = (policy_files.refused(fault, path, one.value) for path, one in reader.settings.items())
            of_file = next((one for one in of_files if one is not None), None)
            reader.faults.append(of_file or of_base[fault.key, fault.problem])
        else:
            reader.faults.append(_of_point(plan, reader, fault, at, axes, is_side=is_side))
    if not is_side and not reader.faults:
        for axis in plan.axes:
            if axis.name in plan.uses and not plan.uses[axis.name].at:
                reader.refuse(axis.place, plan.uses[axis.name].nowhere.format("point"))


def _traced(recording: Recording | None, case: _core.Case) -> tuple[list[Fault], list[tuple[str, str]]]:
    """Checks which series of a scenario are to be recorded. Returns faults, and the series that would be empty."""
    if recording is None:
        return [], []
    try:
        return [], case.empty_series(recording.trace, recording.step or None, recording.ports, current())
    except ScenarioError as error:
        return [replace(fault, key=f"series.{fault.key}") for fault in error.faults], []


def _of_point(
    plan: Plan, reader: Reader, fault: Fault, indices: Sequence[int], axes: Mapping[str, Axis], *, is_side: bool
) -> Fault:
    """Returns a fault that some points have, attributed to the axis that causes it."""
    own, more = plan.points[indices[0]].values, len(indices) - 1
    point = f"at point {indices[0]} ({in_words(own)})"
    points = f"{point} and {more:,} more of the checked points" if more else point
    where = f"; {points}" if own and not is_side else ""
    # If the buffer is varied, no number of cells suits every value.
    share = ' (a share such as "80%" scales with the buffer)' if fault.problem.endswith("is at most the buffer") else ""
    problem = f"{fault.problem}{share}{where}"
    key = f"{policy_files.unquoted(fault.key)}."
    blamed = (
        axis for path, axis in axes.items() if policy_files.is_below(fault.key, path) or f"{path}.".startswith(key)
    )
    to_blame = next(blamed, None)
    if to_blame is not None and to_blame.labels is not None:
        setting = to_blame.settings[to_blame.labels.index(str(own[to_blame.name]))]
        of_file = policy_files.refused(replace(fault, problem=problem), to_blame.path, setting)
        if of_file is not None:
            return of_file
    if own and is_side:
        problem += f" (with {in_words(own)})"
    if is_side and to_blame is not None and key.startswith(f"{to_blame.path}.") and "is missing" in problem:
        name, _, missing = fault.key.removeprefix(f"{to_blame.path}.").partition(".")
        problem += f"; on the command line, write {name}:{missing}=..., or {AS_IS} to use the file's value"
    key = "" if to_blame is None else reader.path(to_blame.place)
    line = reader.line(key or (fault.key if fault.key.startswith("series.") else "axes"))
    return Fault.of(problem, file=reader.file, line=line, key=fault.key, value=fault.value)


def check_measures(measures: Sequence[str], reader: Reader, cases: Sequence[_core.Case]) -> None:
    """Refuses measures that no run of the given cases has in its answer."""
    given = reader.form.measures or []
    steps: dict[Any, Any] = {
        text: step for step, text in (given.items() if isinstance(given, dict) else enumerate(given))
    }
    for text, why in no_measures(measures, cases).items():
        place: Place = ("measures", steps[text]) if text in steps else ("tune", "objectives", text)
        path = reader.path(place if reader.has(*place) else "measures")
        if text.isidentifier():
            hint = f" Did you mean {why.rpartition('did you mean ')[2]}" if "did you mean " in why else ""
            line = reader.line(path)
            file, start = ("", "") if line is None else (reader.file, f"{reader.file}:{line}: ")
            sentence = f'Unknown measure "{text}".{hint} (See: celltrain list measures)'
            fault = Fault.of(sentence, file=file, line=line, key=path, value=as_text(text))
            reader.faults.append(replace(fault, message=f"{start}{fault.problem}"))
        else:
            value = ... if place[0] == "tune" else text
            reader.refuse(path, f"is not a measure of these runs: {why}", value)


def no_measures(measures: Sequence[str], cases: Sequence[_core.Case]) -> dict[str, str]:
    """Returns the measures that no run of the given cases has, and the reason."""
    found = [case.problems(encodable(measures), current()) for case in cases]
    return {text: problems[0] for text, *problems in zip(measures, *found, strict=True) if found and all(problems)}


def _looked_at(plan: Plan) -> Sequence[int]:
    """Returns the points to check before any run: all points, or the corners and an even selection."""
    count = len(plan.points)
    if count <= CHECKED_POINTS:
        return range(count)
    chosen = {count * i // CHECKED_POINTS for i in range(CHECKED_POINTS)}
    corners = itertools.product(*((0, len(group) - 1) for group in plan.groups))
    for corner in itertools.islice(corners, CHECKED_POINTS // 4):
        index = 0
        for group, place in zip(plan.groups, corner, strict=True):
            index = index * len(group) + place
        chosen.add(index)
    return sorted(chosen)


def in_words(values: Mapping[str, float | str]) -> str:
    """Formats the values of a point for messages."""
    return ", ".join(f"{name} = {value if isinstance(value, str) else f'{value:g}'}" for name, value in values.items())


@checked(ScenarioError)
def tcps(plan: Plan) -> list[str]:
    """Returns the distinct TCPs of a plan's points, each as summarised by `tcp_summary`."""
    points = range(len(plan.points)) if any(_changes_tcp(axis.path) for axis in plan.axes) else range(1)
    first: dict[tuple[tuple[str, int], ...], int] = {}
    for index in points:
        own = tuple((axis.name, place) for axis, place in plan.points.places(index) if _changes_tcp(axis.path))
        first.setdefault(own, index)
    scenarios = (json.loads(plan.case(index).canonical) for index in first.values())
    return list(dict.fromkeys(map(tcp_summary, scenarios)))


def _changes_tcp(path: str) -> bool:
    return path.partition(".")[0] in ("tcp", "stack", "flow")


def canonical(scenario: Mapping[str, Any]) -> str:
    """Returns the canonical text of a scenario: with all defaults, keys sorted, without seed and name.

    Raises `ScenarioError` if the scenario is refused.

    >>> from celltrain import load
    >>> text = canonical(load("scenarios/lan-epd.toml").to_dict())
    >>> text[:8]
    '{"aal5":'
    """
    return Reading.of_table(scenario, "scenario").accepted().canonical


def compact(value: Any) -> str:
    """Returns JSON with sorted keys and no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@checked(PlanError)
def run_key(configuration: str, seed: int, *, version: str | None = None) -> str:
    """Returns 24 hex digits that identify a run by its canonical scenario, seed and version (by default this one)."""
    if not 0 <= seed < 1 << 64:
        raise PlanError.of_option("seed", seed, "is not a whole number from 0 to 2^64 - 1")
    return _core.run_key(configuration, seed, version)
