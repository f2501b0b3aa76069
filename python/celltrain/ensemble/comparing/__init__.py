"""Compares scenarios run with the same seeds: means with intervals, and paired differences.

>>> import celltrain as ct
>>> lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=200, policy=ct.TailDrop(), duration="20ms")
>>> ct.compare(lan, vary={"port.bottleneck.policy": [ct.TailDrop(), ct.Epd(threshold=100)]}, seeds=3)
Compared(tail_drop, epd: 3 seeds)

`docs/design/ensemble.md` has the design.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from typing_extensions import Unpack

from celltrain import _core
from celltrain.drawing.words import counted, valued
from celltrain.ensemble import plan_warnings
from celltrain.ensemble.cases import Measured, RunTable, checked_labels, execute
from celltrain.ensemble.comparing.data import (
    ADDITIONAL,
    DECIDED,
    REPLACED,
    Compared,
    Failure,
    check_comparable,
    idle_memories,
    not_numbers,
)
from celltrain.ensemble.comparing.pictured import SCENARIO, checked_names
from celltrain.ensemble.plan import Axis, Key, Plan
from celltrain.ensemble.plan.axes import defaults
from celltrain.ensemble.plan.reader import Reader, labels_of
from celltrain.errors import Fault, InputError, ScenarioError, warn
from celltrain.model.arguments import checked
from celltrain.model.network import tcp_summary
from celltrain.model.overrides import is_tcp, plain, resolved, told_apart
from celltrain.model.paths import UnknownKeyError
from celltrain.model.policy_files import Policy
from celltrain.running import Options, Rows, Run, RunRecord, without_certificate, worker_of
from celltrain.text import described, shortened, shown

if TYPE_CHECKING:
    from celltrain.model.types import Scenario

    Comparable: TypeAlias = Scenario | _core.Case | str | os.PathLike[str]
else:
    # `_wrong_scenarios` checks the scenarios, not the decorator `checked`.
    Comparable = Any

__all__ = ["Compared", "compare"]

#: Default measures.
MEASURES = ("efficiency", "fairness", "goodput_mbps", "cells.lost", "cells.discarded", "flows.sum(*).timeouts")
#: Maximum number of runs of a case.
MOST_SEEDS = 1_000_000
#: Maximum length of a setting in a name; longer settings are shortened in the middle.
MOST_SETTING = 40


@checked()
def compare(
    *scenarios: Comparable | Sequence[Comparable],
    names: Sequence[str] | None = None,
    vary: Mapping[str, Any] | None = None,
    seeds: int = 10,
    first_seed: int = 1,
    measures: Sequence[str] | Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **options: Unpack[Options],
) -> Compared:
    """Runs scenarios with the same seeds: means with 95 % intervals, and differences from the first, paired by seed.

    Several scenarios are compared with the first of them. If there is one scenario, the values of the first axis in `vary`
    are compared with the first value. Other axes are conditions: everything is compared at each of their values. If
    several policies and several scenarios are given, the policies are compared within each scenario.

    Args:
        scenarios: Scenarios, paths of TOML files, or names of shipped ones, one by one or in a list.
        names: Names in the result and in figures: of the scenarios, or, for a single scenario, of the first axis's
            values. When None, the names of files or scenarios, or the values.
        vary: Settings by their paths, such as `{"port.bottleneck.buffer": [1000, 2000]}`. A policy is a text such as
            `"epd:threshold=80%"` or `"mine.toml"`, `celltrain.Policy.read("mine.toml")`, or an object such as
            `celltrain.Epd(threshold=800)`. A table is as in a plan's `[axes]`. A single value is set in all scenarios.
        seeds: Number of runs of each case; all cases have the same seeds.
        first_seed: The first seed; the others follow.
        measures: Measures as in a plan: a list, or a table of measures by their labels. When None, efficiency, fairness, goodput, losses and timeouts of flows, and
            completion times, slowdowns and timeouts of requests.
        labels: Labels of measures by path, and of axes by name, in tables and figures; otherwise they are in words.
        options: See `celltrain.Options`: jobs, client, worker, limit, progress, cancel.

    Raises:
        InputError: With all faults of a scenario, a setting or a measure; also if measures have different meanings in
            two scenarios.
        CancelledError: If `cancel` ended the call.

    >>> import celltrain as ct
    >>> compared = ct.compare("lan-tail-drop", "lan-epd", vary={"duration": ["100ms"]}, seeds=4)
    >>> compared.names
    ('lan-tail-drop', 'lan-epd')
    >>> compared.table.column_names[:5]
    ['name', 'measure', 'n', 'mean', 'sd']
    """
    flat = [one for each in scenarios for one in (each if isinstance(each, list | tuple) else [each])]
    given = labels_of(measures) | dict(labels or {})
    wanted = list(measures.values() if isinstance(measures, Mapping) else measures or default_measures(flat))
    axis_labels = {
        name: label
        for name, label in checked_labels(labels or {}, [*wanted, *(vary or {})]).items()
        if name not in wanted
    }
    faults = [*_wrong_scenarios(flat, names), *wrong_seeds(seeds, first_seed)]
    if SCENARIO in (vary or {}) and not faults:
        faults.append(Fault.of_option("vary", SCENARIO, "is a reserved name; choose another name for the axis"))
    if faults:
        raise InputError(faults)
    document: dict[str, Any] = {
        "axes": {name: _axis(name, given) for name, given in (vary or {}).items()},
        "seeds": {"first": first_seed, "count": seeds},
        "measures": [*wanted, *(one for one in ADDITIONAL if one not in wanted)],
        **({} if options.get("limit") is None else {"limits": {"time": options["limit"]}}),
    }
    plans = _plans(flat, names if len(flat) != 1 else None, document)
    layout, points = _layout(plans, names if len(flat) == 1 else None)
    within = layout["what"] != SCENARIO and len(plans) > 1
    constant = list(
        dict.fromkeys(one for plan in plans.values() for one in plan_warnings.thresholds_of(plan, of_plan=False))
    )
    warnings = [*check_comparable(list(plans.items()), within=within), *constant]
    of_check = plan_warnings.check_warnings(plans, constant)
    try:
        cases = [plan.case(point) for plan, point in points]
    except ScenarioError as error:
        # The scenario was valid when it was checked, but now there is less free memory.
        raise InputError(error.faults) from None
    plan = next(iter(plans.values()))
    records: dict[tuple[int, int], RunRecord] = {}
    total = len(cases) * seeds

    def take(rows: Rows) -> None:
        records.update({(record.point, record.seed): record for record in rows.runs})
        if (progress := options.get("progress")) is not None:
            progress(len(records) / total)

    seeds_of_each = range(first_seed, first_seed + seeds)
    runs = (
        Run(point=number, case=case, seed=seed, key=f"{number}/{seed}")
        for number, case in enumerate(cases)
        for seed in seeds_of_each
    )
    execute(runs, worker_of(options), take, measures=plan.measures, limit_s=plan.limit_s)
    table = RunTable.of_records(list(records.values()), plan.measures)
    measured = [replace(one, label=given.get(one.name, "")) for one in table.measures[: len(wanted)]]
    without_running = sum(record.filled_from is not None for record in records.values())
    layout = {**layout, "axis_labels": axis_labels, "without_running": without_running}
    layout["without_certificate"] = without_certificate(records.values())
    compared = _compared(layout, plans, cases, table, measured, (warnings, of_check))
    warn(compared.warnings)
    return compared


def default_measures(scenarios: Sequence[Any], measures: Sequence[str] = MEASURES) -> list[str]:
    """Returns those default measures that all scenarios have. If a scenario cannot be read, returns `measures`."""
    try:
        of_each = [defaults(Reader.of_values(one, {}, "scenario").scenario, measures) for one in scenarios]
    except InputError:
        return list(measures)
    first, *others = of_each or [tuple(measures)]
    return [text for text in first if all(text in other for other in others)]


def _wrong_scenarios(scenarios: Sequence[Any], names: Sequence[str] | None) -> Iterator[Fault]:
    for one in scenarios:
        if not isinstance(one, str | os.PathLike | _core.Case) and not hasattr(one, "to_dict"):
            problem = "is not a Scenario, a path or the name of a shipped scenario"
            if isinstance(one, Mapping):
                problem += "; pass the scenarios one by one, and their names as names="
            yield Fault.of_option("scenarios", described(one), problem)
    if not scenarios:
        yield Fault.of_option("scenarios", "", "is empty; name the scenarios to run, such as lan-tail-drop and lan-epd")
    if len(scenarios) != 1 and names is not None and len(names) != len(scenarios):
        given = f"{counted(len(names), 'name')} for {counted(len(scenarios), 'scenario')}"
        problem = f"gives {given}; give one name for each scenario"
        yield Fault.of_option("names", ", ".join(names), problem)


def wrong_seeds(seeds: int, first_seed: int) -> Iterator[Fault]:
    """Yields the faults of a number of seeds and a first seed."""
    if not 1 <= seeds <= MOST_SEEDS:
        yield Fault.of_option("seeds", seeds, f"is not a number of runs from 1 to {MOST_SEEDS:,}")
    if not 0 <= first_seed < (1 << 64) - MOST_SEEDS:
        yield Fault.of_option("first_seed", first_seed, "is not a whole number from 0 to nearly 2^64")


def _plans(scenarios: Sequence[Any], names: Sequence[str] | None, document: Mapping[str, Any]) -> dict[str, Plan]:
    called = _names(scenarios) if names is None else list(names)
    if again := next((name for name in called if called.count(name) > 1), None):
        problem = "is the name of two scenarios" if names else "is given twice"
        raise InputError.of_option("names" if names else "scenarios", again, problem)
    plans, faults = dict[str, Plan](), list[Fault]()
    for name, scenario in zip(called, scenarios, strict=True):
        try:
            plans[name] = Plan.of_side(scenario, document, name)
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        # A wrong setting causes the same fault in every scenario, so the fault is reported once.
        raise InputError(list(dict.fromkeys(faults)))
    unused = []
    for name in next(iter(plans.values())).uses:
        uses = [plan.uses[name] for plan in plans.values()]
        if not any(use.at for use in uses):
            found = tuple(dict.fromkeys(table for use in uses for table in use.found))
            unused.append(Fault.of_option("vary", name, replace(uses[0], found=found).nowhere.format("case")))
    if unused:
        raise InputError(unused)
    return plans


def _names(scenarios: Sequence[Any]) -> list[str]:
    """Returns names for scenarios: a file's stem if unique, or else the file; a scenario's name, or else a number."""
    found = [
        shown(one) if isinstance(one, str | os.PathLike) else getattr(one, "name", "") or f"scenario {number}"
        for number, one in enumerate(scenarios, 1)
    ]
    short = [Path(name).stem if name.endswith(".toml") else name for name in found]
    return [one if short.count(one) == 1 else whole for one, whole in zip(short, found, strict=True)]


def _layout(plans: Mapping[str, Plan], names: Sequence[str] | None) -> tuple[dict[str, Any], list[tuple[Plan, int]]]:
    """Returns the compared cases and their settings, as attributes of `Compared`, and plans and points, sorted by name."""
    files = tuple(plans)
    varied = [axis for axis in plans[files[0]].axes if len(axis) > 1]
    comparable = [axis for axis in varied if len(files) == 1 or axis.path.rpartition(".")[2] == "policy"]
    first = comparable[0] if comparable else None
    conditions = [axis for axis in varied if axis is not first]
    if len(files) > 1 and first is not None:
        meaning = "the scenario in which the settings are compared"
        key = Key(path=SCENARIO, quantity=None, whole=False, unit="", meaning=meaning)
        conditions.insert(0, Axis(name=SCENARIO, key=key, settings=files, labels=files))
    usual = files if first is None else tuple(valued(first.column(i), first.unit) for i in range(len(first)))
    what = SCENARIO if first is None else first.name
    found: dict[tuple[int, tuple[int, ...]], tuple[Plan, int]] = {}
    for number, plan in enumerate(plans.values()):
        for point in range(len(plan.points)):
            at = {**{axis.name: place for axis, place in plan.points.places(point)}, SCENARIO: number}
            found[at[what], tuple(at[axis.name] for axis in conditions)] = plan, point
    settings = list(dict.fromkeys(setting for _, setting in found))
    attributes = {
        "what": what,
        "scenario": files[0] if len(files) == 1 and first is not None else "",
        "names": usual if names is None else checked_names(names, len(usual), _what(first)),
        "conditions": tuple(conditions),
        "settings": tuple(
            {axis.name: axis.column(place) for axis, place in zip(conditions, setting, strict=True)}
            for setting in settings
        ),
    }
    return attributes, [found[name, setting] for name in range(len(usual)) for setting in settings]


def _what(axis: Axis | None) -> str:
    """For a message, names the things that are compared: one scenario, or the values of an axis."""
    return "the one scenario" if axis is None else f"each of the {len(axis)} values of {axis.name}"


def _compared(
    layout: Mapping[str, Any],
    plans: Mapping[str, Plan],
    cases: Sequence[_core.Case],
    table: RunTable,
    measures: Sequence[Measured],
    warnings: tuple[Sequence[str], Sequence[str]],
) -> Compared:
    """Returns the comparison with the first measures of the table; the rest are only used for warnings."""
    plan = next(iter(plans.values()))
    names, shape = layout["names"], (len(layout["names"]), len(layout["settings"]))
    configurations = [json.loads(case.canonical) for case in cases]
    networks = [_without_policies(one) for one in configurations]
    different = list(dict.fromkeys(networks))
    count = len(measures)
    values = table.values.reshape(*shape, -1, len(table.measures))

    def by_name(texts: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(texts[first : first + shape[1]]) for first in range(0, len(texts), shape[1]))

    replaced, decided = (
        values[..., [plan.measures.index(measure) for measure in those]] for those in (REPLACED, DECIDED)
    )
    policies = [json.dumps(list(_policies(one.get("switch", {}))), sort_keys=True) for one in configurations]
    conditions = [
        ", ".join(f"{shown(axis.name)} = {valued(own[axis.name], axis.unit)}" for axis in layout["conditions"])
        for own in layout["settings"]
    ]
    return Compared(
        **layout,
        fixed=tuple(axis for axis in plan.axes if len(axis) == 1),
        only_where=plan_warnings.only_where(plans),
        configurations=by_name([case.canonical for case in cases]),
        tcp=by_name(list(map(tcp_summary, configurations))),
        measures=tuple(measures),
        seeds=tuple(range(plan.seeds.first, plan.seeds.first + plan.seeds.count)),
        values=values[..., :count],
        censored=table.censored.reshape(values.shape)[..., :count],
        fingerprints=np.array([text or "" for text in table.fingerprints], object).reshape(*shape, -1),
        ties_only=np.array([not case.drawn for case in cases]).reshape(shape),
        failures=tuple(
            Failure(name=names[table.case[run] // shape[1]], seed=int(table.seed[run]), error=error)
            for run, error in table.errors.items()
        ),
        delivered=values[..., plan.measures.index(plan_warnings.DELIVERED)],
        rivals=np.array([different.index(one) for one in networks], np.int64).reshape(shape),
        of_check=tuple(warnings[1]),
        of_plan=(
            *warnings[0],
            *not_numbers(names, replaced),
            *idle_memories(names, conditions, np.array(policies, object).reshape(shape), decided.sum(axis=-1)),
            *plan_warnings.without_values(plan.measures[:count], table),
            *plan_warnings.open_requests(plan.measures[:count], table),
            *_unmet_rules(layout, table),
        ),
    )


def _unmet_rules(layout: Mapping[str, Any], table: RunTable) -> Iterator[str]:
    """Yields a warning for each rule of a link that had no effect, once per scenario."""
    names, settings, conditions = layout["names"], layout["settings"], layout["conditions"]
    compares_scenarios = layout["what"] == SCENARIO

    def place(case: int) -> str:
        name, setting = divmod(case, len(settings))
        axes = [axis for axis in conditions if axis.name != SCENARIO]
        values = [f"{shown(axis.name)} = {valued(settings[setting][axis.name], axis.unit)}" for axis in axes]
        return ", ".join([*([] if compares_scenarios else [names[name]]), *values])

    def scenario(case: int) -> str:
        name, setting = divmod(case, len(settings))
        if compares_scenarios:
            return names[name] if len(names) > 1 else ""
        return str(settings[setting].get(SCENARIO, ""))

    return plan_warnings.unmet_rules(table, place, scenario)


def _without_policies(scenario: Mapping[str, Any]) -> str:
    """Returns a text that is equal for scenarios that differ only in the policies of their ports."""
    ports = {name: {**port, "policy": None} for name, port in scenario.get("port", {}).items()}
    return json.dumps({**scenario, "port": ports}, sort_keys=True)


def _policies(table: Mapping[str, Any]) -> Iterator[Any]:
    """Yields the policy of each pool in a scenario's table `switch`."""
    for key, one in table.items():
        if key == "policy":
            yield one
        elif isinstance(one, Mapping):
            yield from _policies(one)


# Axes.


def _axis(name: str, given: Any) -> Any:
    """Returns an axis as in a plan: objects become tables, and a list of tables gets labels."""
    if isinstance(given, Mapping):
        listed = given.get("values")
        if listed is None or isinstance(listed, Mapping):
            return plain(given)
        values = _axis(str(given.get("path", name)), listed)
        return {**plain({key: given[key] for key in given if key != "values"}), "values": _values_of(values)}
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError.of_option("vary", described(given), f"is not a list of values for {name}")
    listed = list(given)
    try:
        found = [resolved(name, value) if isinstance(value, str | Policy) else ("", plain(value)) for value in listed]
    except (UnknownKeyError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError.of_option("vary", name, str(error)) from None
    values = [value for _, value in found]
    if not any(isinstance(value, Mapping) for value in values):
        return values
    labels = [called or label for (called, _), label in zip(found, _labels(values), strict=True)]
    labels = told_apart(labels, values, listed)
    if again := next((label for label in labels if labels.count(label) > 1), None):
        raise InputError.of_option("vary", again, f"appears twice among the values of {name}; delete one")
    # Keep the text of a TCP as it is, because its table depends on the scenario.
    kept = [
        text if isinstance(text, str) and is_tcp(name) else value for text, value in zip(listed, values, strict=True)
    ]
    return {"path": name, "values": dict(zip(labels, kept, strict=True))}


def _values_of(axis: Any) -> Any:
    return axis["values"] if isinstance(axis, Mapping) else axis


def _labels(values: Sequence[Any]) -> list[str]:
    """Returns labels. For tables with one key, such as a policy, a label has the key and the settings that differ."""
    named = [_named(value) for value in values]
    labels = []
    for name, settings in named:
        same_name = [others for other, others in named if other == name]
        own = [key for key, one in settings.items() if any(others.get(key) != one for others in same_name)]
        labels.append(":".join([name, *(f"{key}={shortened(_text(settings[key]), MOST_SETTING)}" for key in own)]))
    # Shortened labels may be equal if long texts differ only in the middle.
    whole = [":".join([name, *(f"{key}={_text(one)}" for key, one in settings.items())]) for name, settings in named]
    return [label if labels.count(label) == 1 else full for label, full in zip(labels, whole, strict=True)]


def _text(setting: object) -> str:
    """Formats a setting as a user would write it: 9, not 9.0."""
    return f"{setting:.15g}" if isinstance(setting, float) else str(setting)


def _named(value: Any) -> tuple[str, dict[str, Any]]:
    """Returns the name of a table with one key, and its settings by path. A Python policy is named after its class."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return str(value), {}
    [(name, table)] = value.items()
    settings = dict(_settings(table)) if isinstance(table, Mapping) else {}
    if name == "python" and isinstance(called := settings.get("class"), str):
        name = re.split(r"[:.]", called)[-1]
        settings = {key.removeprefix("settings."): one for key, one in settings.items()}
    return str(name), settings


def _settings(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, one in table.items():
        if isinstance(one, Mapping):
            yield from _settings(one, f"{before}{key}.")
        else:
            yield f"{before}{key}", one
