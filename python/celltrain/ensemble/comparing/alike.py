"""Whether the measures of scenarios mean the same, so that a difference between them says something."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from celltrain.ensemble import cautions
from celltrain.ensemble.plan import Plan
from celltrain.ensemble.plan.plan import canonical
from celltrain.errors import Fault, InputError
from celltrain.model.quantities import seconds

#: Measured beside what is asked for: results of formulas that were no numbers.
REPLACED = ("ports.sum(*).replaced_results", "flows.sum(*).replaced_results")
#: Measured in addition to what is asked for.
ADDITIONAL = (*REPLACED, cautions.DELIVERED)


def judge(sides: Sequence[tuple[str, Plan]], *, within: bool = False) -> list[str]:
    """What to look at before the differences of these scenarios are believed, the first being the baseline.

    Args:
        sides: Scenarios by name.
        within: Whether policies are compared within each scenario, so that the networks may differ.

    Raises:
        InputError: Where a measure means one thing in one scenario, and another in another.
    """
    (name, plan), *others = sides
    faults: list[Fault] = []
    said = list(_of_time(plan, alone=not others))
    first = _settings(plan)
    for other, own in others:
        second = _settings(own)
        faults.extend(_faults((name, first), (other, second), plan.measures))
        said.extend(() if within else _networks((name, first), (other, second)))
    if faults:
        raise InputError(faults)
    return said


def _settings(plan: Plan) -> dict[str, Any]:
    """The scenario of the first point, every default filled in."""
    settings: dict[str, Any] = json.loads(canonical(plan.points[0].scenario))
    return settings


def _of_time(plan: Plan, *, alone: bool) -> Iterator[str]:
    varied = [axis for axis in plan.axes if len(axis) > 1]
    if alone and varied and varied[0].path == "duration":
        yield "runs of different length are compared: counts, such as cells lost, grow with the length alone"


def _faults(
    one: tuple[str, dict[str, Any]], other: tuple[str, dict[str, Any]], measures: Sequence[str]
) -> Iterator[Fault]:
    """Measures that do not mean the same in two scenarios."""
    (first, of_first), (second, of_second) = one, other
    lasts = [str(settings["duration"]) for settings in (of_first, of_second)]
    if seconds(lasts[0]) != seconds(lasts[1]):
        problem = (
            f"lasts {lasts[1]}, and {first} {lasts[0]}: rates and counts would be of different times. Give all one length, "
            f"such as --vary duration={lasts[0]}"
        )
        yield Fault.of_option(second, "", problem)
    options = [settings.get("measure", {}) for settings in (of_first, of_second)]
    for key in sorted(options[0].keys() | options[1].keys()):
        values = [one.get(key) for one in options]
        # The size of files is that of their delays alone; everything else is of all measures.
        asked = [text for text in measures if text not in ADDITIONAL]
        concerned = [text for text in asked if key != "file_size" or "file_delay" in text]
        if values[0] != values[1] and concerned:
            said = [json.dumps(value) if value is not None else "nothing" for value in values]
            problem = (
                f"has measure.{key} = {said[1]}, and {first} {said[0]}: {', '.join(concerned)} would not mean the same. "
                f"Give all one value, such as --vary measure.{key}=..."
            )
            yield Fault.of_option(second, "", problem)


def _networks(one: tuple[str, dict[str, Any]], other: tuple[str, dict[str, Any]]) -> Iterator[str]:
    (first, of_first), (second, of_second) = one, other
    if of_first["topology"] != of_second["topology"]:
        yield (
            f"{second} and {first} are different networks: a share of one is not a share of the other, and a difference "
            "between them is not the policy's alone"
        )
