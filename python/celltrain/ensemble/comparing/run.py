"""Runs scenarios beside each other, every one with the same seeds."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from celltrain.drawing.pages.words import counted, valued
from celltrain.ensemble import cautions
from celltrain.ensemble.comparing import settings
from celltrain.ensemble.comparing.alike import ADDITIONAL, REPLACED, judge
from celltrain.ensemble.comparing.compared import MOST_SEEDS, Compared, Failure
from celltrain.ensemble.comparing.settings import SCENARIO
from celltrain.ensemble.lockstep import drawn
from celltrain.ensemble.plan import Axis, Key, Plan
from celltrain.ensemble.plan.plan import canonical_with_memory
from celltrain.ensemble.store.columns import measured
from celltrain.errors import Fault, InputError, ScenarioError, warn
from celltrain.model.arguments import Time, checked
from celltrain.model.cancel import Cancel, endable
from celltrain.model.grammar import AS_IS
from celltrain.model.progress import watched
from celltrain.running import Chunk, Rows, Task, Worker, worker_of
from celltrain.running.summary import tcp_summary
from celltrain.text import described, shown

if TYPE_CHECKING:
    from distributed import Client
    from numpy.typing import NDArray

    from celltrain.model.types import Scenario

P = ParamSpec("P")
R = TypeVar("R")

#: What is measured where nothing is said.
MEASURES = ("efficiency", "fairness", "goodput_mbps", "cells.lost", "cells.discarded", "flows.sum(*).timeouts")


def _one_by_one(function: Callable[P, R]) -> Callable[P, R]:
    """Makes a function take its arguments in lists too; raises `InputError` for those that are not scenarios."""

    @functools.wraps(function)
    def guarded(*args: P.args, **options: P.kwargs) -> R:
        flat = [one for each in args for one in (each if isinstance(each, list | tuple) else [each])]
        faults = [
            Fault.of_option("scenarios", described(one), "is not a Scenario, a path or the name of a shipped scenario")
            for one in flat
            if not isinstance(one, str | os.PathLike) and not hasattr(one, "to_dict")
        ]
        if faults:
            raise InputError(faults)
        return function(*flat, **options)  # type: ignore[arg-type]

    return guarded


@_one_by_one
@checked()
@endable
@watched
def compare(
    *scenarios: Scenario | str | os.PathLike[str] | Sequence[Scenario | str | os.PathLike[str]],
    names: Sequence[str] | None = None,
    vary: Mapping[str, Any] | None = None,
    seeds: int = 10,
    first_seed: int = 1,
    measures: Sequence[str] | None = None,
    limit: Time | None = None,
    jobs: int | None = None,
    client: Client | None = None,
    worker: Worker | None = None,
    progress: Callable[[float], object] | None = None,
    cancel: Cancel | None = None,
) -> Compared:
    """Runs scenarios under the same seeds: means with 95 % intervals, and differences from the first, paired by seed.

    Several scenarios are compared with the first of them; of one scenario the values of the first axis in `vary` are
    compared with the first value. What else is varied are conditions: everything is compared at each of them. Several
    policies in several scenarios are compared within each scenario.

    Args:
        scenarios: Scenarios, paths of TOML files, or names of shipped ones, one by one or in a list.
        names: What is compared is called so in the answer and in figures: the scenarios, or of one scenario the values of
            the first axis; their files, names or values when None.
        vary: Settings by their paths, such as `{"port.bottleneck.buffer": [1000, 2000]}`. A policy is a text such as
            `"epd:threshold=80%"` or `"mine.toml"`, `celltrain.Policy.read("mine.toml")`, or an object such as
            `celltrain.Epd(threshold=800)`. A table is as in a plan's `[axes]`. One value sets it for all.
        seeds: How many runs of each; all have the same seeds.
        first_seed: The first of them; the others follow.
        measures: What is measured, as in a plan; efficiency, fairness, goodput, losses and timeouts when None.
        limit: What a run may take in real time, such as `"60s"`.
        jobs: Threads; one for each core when None.
        client: A Dask cluster's, to run there instead of here; needs `pip install celltrain[cluster]`.
        worker: Whatever else runs chunks.
        progress: Called now and then with the share of the runs that is done, 0 to 1.
        cancel: A handle that ends it from another thread; see `celltrain.Cancel`.

    Raises:
        InputError: With everything that is wrong with a scenario, a setting or a measure, and where the measures of two
            scenarios do not mean the same.
        CancelledError: When `cancel` ended it.

    >>> import celltrain as ct
    >>> compared = ct.compare("lan-tail-drop", "lan-epd", vary={"duration": ["100ms"]}, seeds=4)
    >>> compared.names
    ('lan-tail-drop', 'lan-epd')
    >>> compared.table.column_names[:5]
    ['name', 'measure', 'n', 'mean', 'sd']
    """
    compared = put_beside(
        scenarios,
        names=names,
        vary=vary,
        seeds=seeds,
        first_seed=first_seed,
        measures=measures,
        limit=limit,
        jobs=jobs,
        client=client,
        worker=worker,
        progress=progress,
    )
    warn(compared.warnings)
    return compared


def put_beside(
    scenarios: Sequence[Any],
    *,
    names: Sequence[str] | None = None,
    vary: Mapping[str, Any] | None = None,
    seeds: int,
    first_seed: int,
    measures: Sequence[str] | None,
    limit: str | None = None,
    jobs: int | None = None,
    client: Client | None = None,
    worker: Worker | None = None,
    progress: Callable[[float], object] | None = None,
) -> Compared:
    """What `compare` does, for callers inside; its warnings are left to them."""
    sides = _sides(scenarios, names if len(scenarios) != 1 else None, vary, seeds, first_seed, measures, limit)
    called = _names_of_one(sides[0], names) if len(scenarios) == 1 and names is not None else None
    plans = {side.name: side.plan for side in sides}
    staying = list(dict.fromkeys(one for plan in plans.values() for one in cautions.of_points(plan, of_plan=False)))
    warnings = [*judge(list(plans.items()), within=_policies(sides) is not None), *staying]
    of_check = cautions.of_check(plans, staying)
    where = worker_of(jobs, client, worker)
    work = _Work(sides, where.chunk_runs)
    total = sum(side.plan.runs for side in sides)

    def take(rows: Rows) -> None:
        work.keep(rows)
        if progress is not None:
            progress(len(work.kept) / total)

    where.work(work.chunks(), take)
    asked = len(MEASURES if measures is None else measures)
    return _compared(sides, work, (warnings, of_check, called), asked)


@dataclass(frozen=True, kw_only=True)
class _Side:
    """A scenario with its points."""

    name: str
    plan: Plan


def _names_of_one(side: _Side, names: Sequence[str]) -> tuple[str, ...]:
    """What one scenario is called, or the values that are compared in it."""
    axis = next((axis for axis in side.plan.axes if len(axis) > 1), None)
    count, what = (1, "the one scenario") if axis is None else (len(axis), f"each of {len(axis)} values of {axis.name}")
    faults = []
    if len(names) != count:
        faults.append(Fault.of_option("names", ", ".join(names), f"is not a name for {what}"))
    elif again := next((name for name in names if list(names).count(name) > 1), None):
        faults.append(Fault.of_option("names", again, "is there twice"))
    if faults:
        raise InputError(faults)
    return tuple(names)


def _sides(
    scenarios: Sequence[Any],
    names: Sequence[str] | None,
    vary: Mapping[str, Any] | None,
    seeds: int,
    first_seed: int,
    measures: Sequence[str] | None,
    limit: str | None,
) -> list[_Side]:
    faults = []
    if not scenarios:
        faults.append(Fault.of_option("scenarios", "", "names nothing to run; for example lan-tail-drop and lan-epd"))
    if names is not None and len(names) != len(scenarios):
        faults.append(
            Fault.saying(
                f"names has {counted(len(names), 'name')} for {counted(len(scenarios), 'scenario')}.", key="names"
            )
        )
    faults += of_seeds(seeds, first_seed)
    if faults:
        raise InputError(faults)
    asked = list(MEASURES if measures is None else measures)
    document: dict[str, Any] = {
        "axes": settings.axes(vary or {}),
        "seeds": {"first": first_seed, "count": seeds},
        "measures": [*asked, *(one for one in ADDITIONAL if one not in asked)],
        **({} if limit is None else {"limits": {"time": limit}}),
    }
    if SCENARIO in (vary or {}):
        raise InputError([Fault.of_option("vary", SCENARIO, "is a name of its own: call the axis something else")])
    called = _called(scenarios) if names is None else list(names)
    if again := next((name for name in called if called.count(name) > 1), None):
        problem = "is the name of two scenarios" if names else "is given twice"
        raise InputError([Fault.of_option("names" if names else "scenarios", again, problem)])
    sides = []
    for name, scenario in zip(called, scenarios, strict=True):
        try:
            sides.append(_Side(name=name, plan=Plan.of_side(scenario, document, name)))
        except InputError as error:
            faults.extend(_how_to_say(fault, vary or {}, name) for fault in error.faults)
    if faults:
        # What is wrong with a setting is wrong with it in every scenario.
        raise InputError(list(dict.fromkeys(faults)))
    if unused := list(_unused(sides)):
        raise InputError(unused)
    return sides


def _unused(sides: Sequence[_Side]) -> Iterator[Fault]:
    """Settings that no case of any scenario has a place for."""
    for name in sides[0].plan.uses:
        uses = [side.plan.uses[name] for side in sides]
        if not any(use.at for use in uses):
            found = tuple(dict.fromkeys(table for use in uses for table in use.found))
            yield Fault.of_option("vary", name, replace(uses[0], found=found).nowhere.format("case"))


def _how_to_say(fault: Fault, vary: Mapping[str, Any], scenario: str) -> Fault:
    """A fault of a comparison, which has no points with numbers, with how settings of a policy are written here."""
    problem, sign, where = fault.problem.partition("; at point ")
    if sign:
        # A fault of a policy file names the file.
        values = re.sub(r"^\d+ \((.*)\)(, and [\d,]+ more of those looked at)?$", r"\1", where)
        problem += f" (with {values})" if fault.file == scenario else ""
        at = Fault.of(problem, file=fault.file, line=fault.line, key=fault.key, value=fault.value)
        fault = replace(at, excerpt=fault.excerpt)
    path = next((path for path in vary if fault.key.startswith(f"{path}.")), None)
    if path is None or "is missing" not in fault.problem:
        return fault
    name, _, setting = fault.key.removeprefix(f"{path}.").partition(".")
    problem = f"{fault.problem}; on the command line {name}:{setting}=..., and {AS_IS} for what the file has"
    return Fault.of(problem, file=fault.file, line=fault.line, key=fault.key, value=fault.value)


def of_seeds(seeds: int, first_seed: int) -> list[Fault]:
    """What is wrong with a number of seeds and the first of them."""
    faults = []
    if not 1 <= seeds <= MOST_SEEDS:
        faults.append(Fault.of_option("seeds", seeds, f"is not a number of runs from 1 to {MOST_SEEDS:,}"))
    if not 0 <= first_seed < (1 << 64) - MOST_SEEDS:
        faults.append(Fault.of_option("first_seed", first_seed, "is not a whole number from 0 to nearly 2^64"))
    return faults


def _called(scenarios: Sequence[Any]) -> list[str]:
    """What scenarios are called: by their file where no other has its name, or their own name, or a number."""
    found = []
    for number, scenario in enumerate(scenarios, 1):
        if isinstance(scenario, str | os.PathLike):
            found.append(shown(scenario))
        else:
            found.append(getattr(scenario, "name", "") or f"scenario {number}")
    short = [Path(name).stem if name.endswith(".toml") else name for name in found]
    return [one if short.count(one) == 1 else whole for one, whole in zip(short, found, strict=True)]


def _policies(sides: Sequence[_Side]) -> Axis | None:
    """The policies that are compared within each of several scenarios; None if the scenarios are compared."""
    axes = [axis for axis in sides[0].plan.axes if len(axis) > 1 and axis.path.rpartition(".")[2] == "policy"]
    return axes[0] if axes and len(sides) > 1 else None


@dataclass
class _Work:
    """The runs of all sides, and what came of them."""

    sides: Sequence[_Side]
    most: int
    kept: dict[tuple[int, int], Any] = field(default_factory=dict)
    """By case and seed."""
    configurations: dict[int, str] = field(default_factory=dict)
    """By case: the scenario with all its settings."""
    tcp: dict[int, str] = field(default_factory=dict)
    """The TCP of each case."""
    network: dict[int, str] = field(default_factory=dict)
    """By case: everything but the policies of its ports."""
    ties_only: dict[int, bool] = field(default_factory=dict)
    """By case: whether seeds draw at most the order of simultaneous cells."""

    def chunks(self) -> Iterator[Chunk]:
        """Seed by seed within a case, so that a scenario is read once a chunk."""
        first = self.sides[0].plan
        configurations: list[str] = []
        memory: list[int] = []
        tasks: list[Task] = []

        def chunk() -> Chunk:
            made = Chunk(
                configurations=tuple(configurations),
                tasks=tuple(tasks),
                measures=first.measures,
                limit_s=first.limit_s,
                recording=None,
                memory=tuple(memory),
            )
            for gathered in (configurations, memory, tasks):
                gathered.clear()
            return made

        case = 0
        for side in self.sides:
            for point in side.plan.points:
                try:
                    text, size = canonical_with_memory(point.scenario)
                except ScenarioError as error:
                    # It fitted the memory when it was checked.
                    raise InputError(error.faults) from None
                full = json.loads(text)
                self.configurations[case] = text
                self.tcp[case] = tcp_summary(full)
                self.ties_only[case] = not any(True for _ in drawn(full))
                ports = {name: {**port, "policy": None} for name, port in full.get("port", {}).items()}
                self.network[case] = json.dumps({**full, "port": ports}, sort_keys=True)
                configurations.append(text)
                memory.append(size)
                for seed in range(first.seeds.first, first.seeds.first + first.seeds.count):
                    if len(tasks) == self.most:
                        yield chunk()
                        configurations.append(text)
                        memory.append(size)
                    place = len(configurations) - 1
                    tasks.append(Task(run_key=f"{case}/{seed}", point=case, seed=seed, configuration=place))
                case += 1
        if tasks:
            yield chunk()

    def keep(self, rows: Rows) -> None:
        """Runs as they end; one may come twice."""
        for record in rows.runs:
            self.kept[record.point, record.seed] = record


def _compared(
    sides: Sequence[_Side],
    work: _Work,
    said: tuple[Sequence[str], Sequence[str], tuple[str, ...] | None],
    asked: int,
) -> Compared:
    """The runs in order: by what is compared, condition, seed and measure, of which the first `asked` are kept.

    `said`: warnings, those of the check, and names for what is compared, if not those of the scenarios or settings.
    """
    warnings, of_check, names = said
    plan = sides[0].plan
    conditions = [axis for axis in plan.axes if len(axis) > 1]
    settings_of = [plan.points.places(index) for index in range(len(plan.points))]
    files = tuple(side.name for side in sides)
    scenario = ""
    if (policies := _policies(sides)) is not None:
        what, called = policies.name, tuple(_worded(policies, place) for place in range(len(policies)))
        key = Key(path=SCENARIO, quantity=None, whole=False, unit="", meaning="the scenario in which they are compared")
        within = Axis(name=SCENARIO, path=SCENARIO, key=key, settings=files, labels=files)
        conditions = [within, *(axis for axis in conditions if axis is not policies)]
    elif len(sides) > 1 or not conditions:
        what, called = SCENARIO, names or files
    else:
        first, *conditions = conditions
        what, scenario = first.name, files[0]
        called = names or tuple(_worded(first, place) for place in range(len(first)))
    # Of one scenario the axis that is compared may stand anywhere; what is left keeps its order.
    wanted = [
        {**{axis.name: place for axis, place in one}, SCENARIO: side}
        for side in range(len(sides))
        for one in settings_of
    ]
    rest = list(dict.fromkeys(tuple(one[axis.name] for axis in conditions) for one in wanted))
    seeds = range(plan.seeds.first, plan.seeds.first + plan.seeds.count)
    shape = (len(called), len(rest), len(seeds))
    values = np.full((*shape, len(plan.measures)), np.nan)
    prints = np.full(shape, "", dtype=object)
    tcp, configurations = ([[""] * len(rest) for _ in called] for _ in range(2))
    ties_only = np.zeros(shape[:2], dtype=bool)
    rivals = np.zeros(shape[:2], dtype=np.int64)
    networks = list(dict.fromkeys(work.network.values()))
    for case, text in work.tcp.items():
        at = wanted[case]
        condition = rest.index(tuple(at[axis.name] for axis in conditions))
        tcp[at[what]][condition] = text
        configurations[at[what]][condition] = work.configurations[case]
        ties_only[at[what], condition] = work.ties_only[case]
        rivals[at[what], condition] = networks.index(work.network[case])
    failures = []
    for (case, seed), record in sorted(work.kept.items()):
        at = wanted[case]
        one = at[what]
        place = one, rest.index(tuple(at[axis.name] for axis in conditions)), seed - seeds[0]
        if record.error is not None:
            failures.append(Failure(name=called[one], seed=seed, error=record.error))
            continue
        values[place] = [np.nan if value is None else value for value in record.values]
        prints[place] = record.fingerprint
    replaced = [plan.measures.index(measure) for measure in REPLACED]
    return Compared._of(
        what=what,
        scenario=scenario,
        names=called,
        conditions=tuple(conditions),
        settings=tuple(
            {axis.name: axis.column(place) for axis, place in zip(conditions, places, strict=True)} for places in rest
        ),
        fixed=tuple(axis for axis in plan.axes if len(axis) == 1),
        only_where=_only_where(sides),
        configurations=tuple(map(tuple, configurations)),
        tcp=tuple(map(tuple, tcp)),
        measures=tuple(map(measured, plan.measures[:asked])),
        seeds=tuple(seeds),
        values=values[..., :asked],
        fingerprints=prints,
        ties_only=ties_only,
        failures=tuple(failures),
        delivered=values[..., plan.measures.index(cautions.DELIVERED)],
        rivals=rivals,
        of_check=tuple(of_check),
        said=(*warnings, *_no_numbers(called, values[..., replaced])),
    )


def _only_where(sides: Sequence[_Side]) -> dict[str, str]:
    """By name the settings for all that take effect in some cases only, and the cases in words."""
    found = {}
    for axis in sides[0].plan.axes:
        uses = [side.plan.uses[axis.name] for side in sides] if axis.name in sides[0].plan.uses else []
        if len(axis) > 1 or all(use.everywhere for use in uses):
            continue
        if all(use.at == uses[0].at for use in uses):
            found[axis.name] = cautions.where(uses[0])
            continue
        each = [f"{cautions.where(use)} in {shown(side.name)}" for side, use in zip(sides, uses, strict=True) if use.at]
        found[axis.name] = ", or ".join(each)
    return found


def _no_numbers(called: Sequence[str], replaced: NDArray[np.float64]) -> Iterator[str]:
    """Whose formulas gave results that are no numbers, and how many."""
    for name, counts in zip(called, replaced, strict=True):
        if (count := np.nansum(counts)) > 0:
            yield (
                f"{shown(name)}: {counted(int(count), 'result')} of its formulas had to be replaced, because they were not numbers "
                "(after a division by zero, for one); docs/models/formula.md says by what"
            )


def _worded(axis: Axis, place: int) -> str:
    """A value that is compared, with its unit."""
    return valued(axis.column(place), axis.unit)
