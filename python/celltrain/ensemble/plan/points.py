"""Judging a plan by its points: whether their scenarios can be run, and the measures lead somewhere in their answers."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from celltrain import _core
from celltrain.ensemble.plan.axis import Axis
from celltrain.ensemble.plan.base import Base
from celltrain.ensemble.plan.contents import CHECKED_POINTS, Contents
from celltrain.ensemble.plan.document import Diagnostics, join
from celltrain.errors import Fault, ScenarioError
from celltrain.model import policy_files
from celltrain.model.cancel import current
from celltrain.model.expressions import outlined, problem
from celltrain.model.overrides import misnamed
from celltrain.model.paths import UnknownKeyError
from celltrain.model.scenario import Reading

#: Accepted points on whose outlines the measures are judged; nothing is run.
OUTLINED = 4
#: Refusals that are told apart.
MOST_REFUSALS = 20


def judge_points(plan: Contents, diagnostics: Diagnostics, base: Base, *, unused: bool = True) -> None:
    """Checks that the scenarios of the points can be run, and that the measures exist in their answers.

    `unused`: refuse axes that are left out at every point, because another axis chooses other tables there.
    """
    of_base = {(fault.key.removeprefix("scenario."), fault.problem): fault for fault in base.faults(diagnostics)}
    indices = _looked_at(plan)
    refused: dict[tuple[str, str, str], tuple[Fault, int, int]] = {}
    too_large: dict[tuple[str, str, str], tuple[Fault, int, int]] = {}
    unfit = 0
    accepted: list[Reading] = []
    runnable = 0
    lacking: dict[tuple[str, str], list[int]] = {}
    for index in indices:
        try:
            point = plan.points[index]
        except UnknownKeyError as error:
            # Lists are as long in all points, or nearly so: the first will do.
            diagnostics.refuse("axes", f"{error}; at point {index}")
            return
        reading = Reading.of_table(point.scenario, diagnostics.file)
        faults = list(reading.faults)
        # A point that does not fit is a failed row, as long as others do.
        unfit += reading.does_not_fit
        if reading.handle is not None:
            # The first and some of the last: all would be too much to keep.
            if len(accepted) == OUTLINED:
                accepted.pop(1)
            accepted.append(reading)
            untraced, empty = _traced(plan, reading.handle)
            faults += untraced
            for name, reason in empty:
                lacking.setdefault((name, reason), []).append(index)
            runnable += 1
        kept = too_large if reading.does_not_fit else refused
        for fault in faults:
            known = (fault.key, fault.value, fault.problem)
            _, first, count = kept.get(known, (fault, index, 0))
            kept[known] = (fault, first, count + 1)
    if unfit == len(indices):
        refused |= too_large
    if accepted:
        _judge_measures(plan, diagnostics, accepted)
    for (name, reason), without in lacking.items():
        if len(without) == runnable:
            diagnostics.refuse("series.record", f"has nothing to record: {reason}", name)
    axes = {axis.path: axis for axis in plan.axes}
    for fault, index, count in list(refused.values())[:MOST_REFUSALS]:
        if (other := misnamed(fault, plan.points[index].scenario, [*axes, *base.settings])) is not None:
            wrong, path = other
            line = diagnostics.line(_axis_path(plan.document, axes[path].name) if path in axes else "scenario")
            diagnostics.faults.append(Fault.of(wrong.problem, file=diagnostics.file, line=line, key=wrong.key))
            continue
        if count == len(indices) and (fault.key, fault.problem) in of_base:
            diagnostics.faults.append(base.refused(fault) or of_base[fault.key, fault.problem])
            continue
        _refuse_point(plan, diagnostics, fault, index, count, axes)
    if unused and not diagnostics.faults:
        for name, use in plan.uses.items():
            if not use.at:
                diagnostics.refuse(_axis_path(plan.document, name), use.nowhere.format("point"))


def _traced(plan: Contents, scenario: _core.Scenario) -> tuple[list[Fault], list[tuple[str, str]]]:
    """What is wrong with the series that runs of a scenario would record, and those that would have no column."""
    recording = plan.recording
    if recording is None:
        return [], []
    try:
        return [], scenario.empty_series(recording.trace, recording.step or None, recording.ports, current())
    except ValueError as error:
        faults = ScenarioError.of_refusal(error).faults
        return [dataclasses.replace(fault, key=f"series.{fault.key}") for fault in faults], []


def _refuse_point(
    plan: Contents, diagnostics: Diagnostics, fault: Fault, index: int, count: int, axes: Mapping[str, Axis]
) -> None:
    """Adds what the core says of a point, at the axis to blame."""
    values = ", ".join(f"{name} = {_shortly(value)}" for name, value in plan.points[index].values.items())
    others = f", and {count - 1:,} more of those looked at" if count > 1 else ""
    where = f"at point {index} ({values}){others}" if values else ""
    related = (
        axis
        for path, axis in axes.items()
        if f"{fault.key}.".startswith(f"{path}.") or f"{path}.".startswith(f"{fault.key}.")
    )
    to_blame = next(related, None)
    key = "" if to_blame is None else _axis_path(plan.document, to_blame.name)
    line = diagnostics.line(key or (fault.key if fault.key.startswith("series.") else "axes"))
    # Of a buffer that is varied no number of cells fits every value.
    share = ' (a share such as "80%" goes with the buffer)' if fault.problem.endswith("is at most the buffer") else ""
    problem = f"{fault.problem}{share}; {where}" if where else fault.problem
    if to_blame is not None and to_blame.labels is not None:
        setting = to_blame.settings[to_blame.labels.index(str(plan.points[index].values[to_blame.name]))]
        at = policy_files.refused(dataclasses.replace(fault, problem=problem), to_blame.path, setting)
        if at is not None:
            diagnostics.faults.append(at)
            return
    at = Fault.of(problem, file=diagnostics.file, line=line, key=fault.key, value=fault.value)
    diagnostics.faults.append(at)


def _axis_path(document: Mapping[str, Any], name: str) -> str:
    """Where an axis stands in the plan."""
    for table in ("axes", "points.axes", "sample.axes"):
        place: Any = document
        for step in table.split("."):
            place = place.get(step, {}) if isinstance(place, Mapping) else {}
        if name in place:
            return join(table, name)
    for number, pair in enumerate(document.get("paired", [])):
        if name in pair:
            return join(join("paired", number), name)
    return ""


def _judge_measures(plan: Contents, diagnostics: Diagnostics, scenarios: Sequence[Reading]) -> None:
    """A measure that leads nowhere in the answers of all of the first accepted points is refused."""
    said = plan.document.get("measures", [])
    for text, why in no_measures(plan.measures, scenarios).items():
        path = join("measures", said.index(text)) if text in said else "measures"
        if text.isidentifier():
            hint = f" Did you mean {why.rpartition('did you mean ')[2]}" if "did you mean " in why else ""
            sentence = f'Unknown measure "{text}".{hint} (See: celltrain list measures)'
            diagnostics.say(path, sentence, text)
        else:
            diagnostics.refuse(path, f"is not a measure of these runs: {why}", text)


def no_measures(measures: Sequence[str], scenarios: Sequence[Reading]) -> dict[str, str]:
    """Which measures lead nowhere in all of these scenarios, and why; those that no longer fit the memory say nothing."""
    wrong: dict[str, str] = {}
    outlines = []
    for one in scenarios:
        # A scenario that fitted when it was checked is a failed row where it fits no more.
        with suppress(ScenarioError):
            outlines.append(outlined(one.accepted(), one.scenario or {}))
    if not outlines:
        return wrong
    for text in measures:
        problems = [words for outline in outlines if (words := problem(text, outline))]
        if len(problems) == len(outlines):
            wrong[text] = problems[0]
    return wrong


def _looked_at(plan: Contents) -> Sequence[int]:
    """The points that are checked before anything runs: all of them, or the corners and an even choice."""
    count = len(plan.points)
    if count <= CHECKED_POINTS:
        return range(count)
    corners = itertools.islice(itertools.product(*((0, len(group) - 1) for group in plan.groups)), CHECKED_POINTS // 4)
    chosen = {
        sum(place * math.prod(len(g) for g in plan.groups[i + 1 :]) for i, place in enumerate(corner))
        for corner in corners
    }
    chosen.update(count * i // CHECKED_POINTS for i in range(CHECKED_POINTS))
    return sorted(chosen)


def _shortly(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"
