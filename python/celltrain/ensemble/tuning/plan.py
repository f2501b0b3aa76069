"""A tuning plan: a scenario, the parameters that are searched, two objectives, and how much is spent on it."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.ensemble.plan import Key, Plan, Seeds
from celltrain.ensemble.plan.axis import DIGITS, Interval, written
from celltrain.ensemble.plan.base import Base, base_of, plain, with_tables
from celltrain.ensemble.plan.contents import MAX_RUNS, Group
from celltrain.ensemble.plan.document import Diagnostics, join, parse
from celltrain.ensemble.plan.points import OUTLINED, no_measures
from celltrain.ensemble.plan.reader import Reader, plan_text
from celltrain.ensemble.plan.shapes import OBJECTIVES, TuneForm
from celltrain.ensemble.plan_warnings import DELIVERED
from celltrain.errors import Fault, PlanError
from celltrain.model.arguments import checked
from celltrain.model.expressions import MeasureError, check_syntax
from celltrain.model.paths import UnknownKeyError, set_key
from celltrain.model.quantities import exact
from celltrain.model.scenario import Reading

if TYPE_CHECKING:
    from celltrain.model.types import Scenario

#: What only a plan of another kind says.
NO_TUNE = {
    "seeds": "is what [tune.seeds] is for: search, selection and confirmation have seeds of their own",
    "sample": "has no place in a plan for celltrain tune: a search draws by itself, from [tune.parameters]",
    "series": "has no place in a plan for celltrain tune: it keeps measures of its many runs, and no series",
}
#: Scenarios that are checked before anything runs: the corners of what is searched, for each configuration.
MOST_CORNERS, MOST_CHECKED = 256, 2000

#: The values of a plan's parameters, in its order.
Numbers = tuple[Fraction, ...]


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """Something searched: a name, a path into the scenario, and the values it may take."""

    name: str
    path: str
    key: Key
    interval: Interval
    step: Fraction | None
    """Between two of its values; None where every value of the interval will do."""

    def near(self, value: float) -> Fraction:
        """The nearest value it takes: on its grid, or with nine significant digits."""
        low, high = self.interval.low, self.interval.high
        if self.step is not None:
            return min(max(low + round((exact(value) - low) / self.step) * self.step, low), self.last)
        number = exact(float(f"{value:.{DIGITS}g}"))
        return min(max(Fraction(round(number)) if self.key.whole else number, low), high)

    def at(self, share: float) -> Fraction:
        """The value so far on the way from its lowest to its highest, 0 to 1; every one of a grid is as likely."""
        if self.step is None:
            return self.near(float(self.interval.at(share)))
        count = (self.last - self.interval.low) / self.step + 1
        return min(self.interval.low + int(share * count) * self.step, self.last)

    def takes(self, number: Fraction) -> bool:
        """Whether it may have the value."""
        return self.near(float(number)) == number

    @property
    def last(self) -> Fraction:
        """Its highest value."""
        low, high = self.interval.low, self.interval.high
        return high if self.step is None else low + math.floor((high - low) / self.step) * self.step

    @property
    def unit(self) -> str:
        """Of its numbers; empty where they have none."""
        return self.key.unit if self.key.quantity is None else self.key.quantity.unit

    def setting(self, number: Fraction) -> Any:
        """What the scenario gets."""
        return written(number, self.key)


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A measure, and whether larger is better."""

    measure: str
    larger: bool


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A setting to compare with."""

    label: str
    numbers: Numbers


@dataclass(frozen=True, kw_only=True)
class TunePlan:
    """A checked tuning plan. Each point of its axes is a *configuration*, with a search of its own."""

    name: str
    measures: tuple[str, ...]
    """What is kept of every run, the objectives first."""
    configurations: Plan
    """The axes; one point where there are none."""
    parameters: tuple[Parameter, ...]
    objectives: tuple[Objective, Objective]
    references: tuple[Reference, ...]
    trials: int
    """Of each search."""
    batch: int
    """Trials of a search that are asked for together: a generation."""
    finalists: int
    """Settings of each search that are run again to choose among, at most, the references not counted."""
    seed: int
    """Of what the search draws."""
    search: Seeds
    selection: Seeds
    confirmation: Seeds
    """The seeds of the three stages' runs: the same for all settings of a stage, and no seed in two stages."""
    document: dict[str, Any] = field(repr=False)
    """The plan as it was given, its scenario as a table."""

    @classmethod
    @checked(PlanError)
    def load(cls, path: str | os.PathLike[str], *, settings: Mapping[str, Any] | None = None) -> TunePlan:
        """The plan in a TOML file; raises `PlanError` with everything that is wrong with it.

        Args:
            path: The file, or the name of a shipped plan.
            settings: Values that replace those of the plan's scenario, by path into the scenario.
        """
        return cls._read(*plan_text(Path(path)), settings)

    @classmethod
    @checked(PlanError)
    def of_toml(cls, text: str, *, file: str = "plan", folder: str | os.PathLike[str] = ".") -> TunePlan:
        """The plan in a text; `folder` is where the scenario it names stands."""
        return cls._read(text, file, Path(folder))

    @classmethod
    def _read(cls, text: str, file: str, folder: Path | None, settings: Mapping[str, Any] | None = None) -> TunePlan:
        document, lines = parse(text, file)
        diagnostics = Diagnostics(file, lines, document)
        base = Base.named(document.get("scenario"), diagnostics, folder).with_settings(settings or {}, diagnostics)
        diagnostics.document = with_tables(diagnostics.document, base.table, folder, diagnostics)
        return _TuneReader(diagnostics, base).tune_plan(Path(file).stem if file.endswith(".toml") else "")

    @classmethod
    @checked(PlanError)
    def of(cls, base: Scenario | str | os.PathLike[str], document: Mapping[str, Any]) -> TunePlan:
        """The plan of a scenario and everything else as in a file, as Python values."""
        diagnostics = Diagnostics("tune", None, plain(document))
        found = base_of(base, diagnostics)
        diagnostics.document = with_tables(diagnostics.document, found.table, None, diagnostics)
        return _TuneReader(diagnostics, found).tune_plan(found.name)

    @classmethod
    @checked(PlanError)
    def of_document(cls, document: Mapping[str, Any]) -> TunePlan:
        """The plan again whose `document` this is."""
        return _TuneReader(Diagnostics("plan", None, document), Base.again(document)).tune_plan("", check=False)

    @property
    def generations(self) -> int:
        """How often trials are asked for."""
        return -(-self.trials // self.batch)

    @property
    def most_runs(self) -> int:
        """Runs there can be; settings that are asked for twice are run once."""
        last = self.finalists + len(self.references)
        each = self.trials * self.search.count + last * (self.selection.count + self.confirmation.count)
        return len(self.configurations.points) * each

    @cached_property
    def digest(self) -> str:
        """16 hex digits that change when anything does that changes which runs there are."""
        said = {key: value for key, value in self.document.items() if key not in ("name", "limits")}
        text = json.dumps([said, self.measures], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def scenario(self, configuration: int, numbers: Numbers) -> dict[str, Any]:
        """The scenario of a configuration with the parameters set; not checked."""
        scenario = self.configurations.points[configuration].scenario
        for parameter, number in zip(self.parameters, numbers, strict=True):
            set_key(scenario, parameter.path, parameter.setting(number))
        return scenario

    def middle(self) -> Plan:
        """The first reference of each configuration, or the middle of all ranges: what an estimate of time goes by."""
        numbers = self.references[0].numbers if self.references else tuple(p.at(0.5) for p in self.parameters)
        everywhere = range(len(self.configurations.points))
        return self.runs("estimate", [(i, numbers) for i in everywhere], self.search)

    def runs(self, name: str, settings: Sequence[tuple[int, Numbers]], seeds: Seeds) -> Plan:
        """The sweep of some settings, each of a configuration, with some seeds: points one by one."""
        axes: dict[str, Any] = {}
        for axis in self.configurations.axes:
            axes[axis.name] = {"path": axis.path}
            if axis.labels is not None:
                axes[axis.name]["values"] = dict(zip(axis.labels, axis.settings, strict=True))
        axes |= {parameter.name: {"path": parameter.path} for parameter in self.parameters}
        rows = []
        for configuration, numbers in settings:
            places = self.configurations.points.places(configuration)
            chosen = [axis.setting(i) if axis.labels is None else axis.labels[i] for axis, i in places]
            rows.append([*chosen, *(p.setting(n) for p, n in zip(self.parameters, numbers, strict=True))])
        document = {
            "name": f"{self.name}: {name}",
            "measures": list(dict.fromkeys([*self.measures, DELIVERED])),
            "points": {"axes": axes, "rows": rows},
            "seeds": {"first": seeds.first, "count": seeds.count},
            "scenario": self.configurations.base,
        }
        if "limits" in self.document:
            document["limits"] = self.document["limits"]
        return Plan.of_document(document)


class _TuneReader(Reader):
    """Judges a tuning plan, and collects its faults."""

    def __init__(self, diagnostics: Diagnostics, base: Base) -> None:
        if diagnostics.document.get("tune") is None:
            diagnostics.refuse("", "lacks a table [tune]: what is searched; a plan without one is for celltrain sweep")
            raise PlanError(diagnostics.faults)
        super().__init__(diagnostics, base, NO_TUNE)
        self.tune = self.form.tune or TuneForm()

    def tune_plan(self, default_name: str, *, check: bool = True) -> TunePlan:
        diagnostics, form, tune = self.diagnostics, self.form, self.tune
        objectives = self.objectives()
        more = () if form.measures is None else self.measures(form.measures)
        groups = self.groups()
        parameters = self.parameters(groups)
        # References are judged by what they name, so all of it must be known.
        whole = parameters and len(parameters) == len(tune.parameters or ())
        references = self.references(parameters) if whole else ()
        stages = self.stages()
        if not diagnostics.faults:
            self.size(groups, Seeds(first=1, count=1))
        if diagnostics.faults:
            raise PlanError(diagnostics.faults)
        name = form.name or default_name
        measures = tuple(dict.fromkeys([*(one.measure for one in objectives), *more]))
        plan = TunePlan(
            name=name,
            measures=measures,
            configurations=Plan(
                name=name,
                measures=measures,
                groups=tuple(groups),
                seeds=stages[0],
                limit_s=self.limit_s,
                recording=None,
                base=self.base.table,
                document={},
            ),
            parameters=parameters,
            objectives=(objectives[0], objectives[1]),
            references=references,
            trials=tune.trials,
            batch=min(tune.batch, tune.trials),
            finalists=tune.finalists,
            seed=tune.seed,
            search=stages[0],
            selection=stages[1],
            confirmation=stages[2],
            document=self.kept(name),
        )
        if check:
            self.check_tuned(plan)
        if diagnostics.faults:
            raise PlanError(diagnostics.faults)
        return plan

    def objectives(self) -> list[Objective]:
        found = []
        for text, direction in (self.tune.objectives or {}).items():
            try:
                check_syntax(text)
            except MeasureError as error:
                self.diagnostics.refuse(("tune", "objectives", text), f"is not a measure: {error}")
            found.append(Objective(measure=text, larger=direction != "minimize"))
        if found and len(found) != 2:
            count = "one measure" if len(found) == 1 else f"{len(found)} measures"
            self.diagnostics.refuse("tune.objectives", f"names {count}: a front is of two; {OBJECTIVES}")
        return found

    def parameters(self, groups: Sequence[Group]) -> tuple[Parameter, ...]:
        diagnostics = self.diagnostics
        found = []
        others = {axis.name: axis.path for group in groups for axis in group.axes}
        for name, said in (self.tune.parameters or {}).items():
            if said is None:
                continue
            place = ("tune", "parameters", name)
            key = self.of_range(self.key(name, said.path, place), said)
            interval = None if key is None else self.interval(said, place, key)
            if key is None or interval is None:
                continue
            step = None if said.step is None else self.bound(said.step, (*place, "step"), key)
            if step is not None and (step <= 0 or interval.log):
                problem = "goes with a linear scale only" if interval.log else "is not above zero"
                diagnostics.refuse((*place, "step"), problem, said.step)
                step = None
            if step is not None:
                self.places(interval, step, (*place, "step"), said.step)
            if step is not None and step > interval.high - interval.low:
                diagnostics.refuse(
                    (*place, "step"), "is more than the whole range: there would be one value", said.step
                )
            if step is None and key.whole and not interval.log:
                step = Fraction(1)
            for other, taken in others.items():
                if name == other:
                    diagnostics.refuse(place, f"has the name of an axis, {other}")
                elif f"{key.path}.".startswith(f"{taken}.") and key.path != taken:
                    # The axis sets a table, the parameter something in it.
                    continue
                elif f"{taken}.".startswith(f"{key.path}."):
                    diagnostics.refuse((*place, "path"), f"sets what {other} sets too, {taken}", key.path)
            others[name] = key.path
            found.append(Parameter(name=name, path=key.path, key=key, interval=interval, step=step))
        return tuple(found)

    def references(self, parameters: Sequence[Parameter]) -> tuple[Reference, ...]:
        diagnostics = self.diagnostics
        found: list[Reference] = []
        names = [parameter.name for parameter in parameters]
        for label, said in (self.tune.references or {}).items():
            if said is None:
                continue
            place = ("tune", "references", label)
            for name in said:
                if name not in names:
                    diagnostics.refuse(
                        (*place, name), f"is no parameter; parameters are {', '.join(names)}", said[name]
                    )
            missing = [name for name in names if name not in said]
            if missing:
                diagnostics.refuse(place, f"lacks {' and '.join(missing)}: a reference has a value for every parameter")
                continue
            numbers = [self.bound(said[p.name], (*place, p.name), p.key) for p in parameters]
            if all(number is not None for number in numbers):
                known = tuple(number for number in numbers if number is not None)
                if any(other.numbers == known for other in found):
                    diagnostics.refuse(place, "has the values of another reference")
                found.append(Reference(label=label, numbers=known))
        return tuple(found)

    def stages(self) -> tuple[Seeds, Seeds, Seeds]:
        """The seeds of search, selection and confirmation, one after the other."""
        said = self.tune.seeds
        search = Seeds(first=said.first, count=said.search)
        selection = Seeds(first=said.first + search.count, count=said.selection)
        confirmation = Seeds(first=selection.first + selection.count, count=said.confirmation)
        return search, selection, confirmation

    def check_tuned(self, plan: TunePlan) -> None:
        """Whether corners and references can be run, and the objectives lead somewhere."""
        diagnostics = self.diagnostics
        if plan.most_runs > MAX_RUNS:
            diagnostics.refuse(
                "tune", f"asks for {plan.most_runs:,} runs; nobody waits for more than {MAX_RUNS:,}: take fewer trials"
            )
            return
        count = len(plan.configurations.points)
        ends = [(p.interval.low, p.last) for p in plan.parameters]
        corners = list(itertools.islice(itertools.product(*ends), MOST_CORNERS))
        looked_at = max(1, MOST_CHECKED // len(corners))
        chosen = sorted({count * i // looked_at for i in range(looked_at)}) if count > looked_at else range(count)
        accepted: list[Reading] = []
        refused: list[tuple[int, Numbers, list[Fault]]] = []
        for configuration in chosen:
            for corner in corners:
                reading = self.judged(plan, configuration, corner)
                if reading.handle is None:
                    refused.append((configuration, corner, reading.faults))
                elif len(accepted) < OUTLINED:
                    accepted.append(reading)
            for reference in plan.references:
                for fault in self.judged(plan, configuration, reference.numbers).faults:
                    self.blame(plan, fault, join("tune.references", reference.label), configuration)
        # Some corners may be no scenarios, as where thresholds depend on each other; an end that is in none is a mistake.
        for place, parameter in enumerate(plan.parameters):
            for word, end in (("from", parameter.interval.low), ("to", parameter.last)):
                with_end = [one for one in refused if one[1][place] == end]
                if len(with_end) == len(chosen) * sum(corner[place] == end for corner in corners):
                    own = [fault for fault in with_end[0][2] if fault.key == parameter.path]
                    if own and not (word == "to" and len(refused) == len(chosen) * len(corners)):
                        self.blame(plan, own[0], join(join("tune.parameters", parameter.name), word), None)
        if not accepted and not diagnostics.faults:
            for fault in refused[0][2]:
                self.blame(plan, fault, "", refused[0][0])
        if accepted:
            for text, problem in no_measures(plan.measures, accepted).items():
                objective = any(one.measure == text for one in plan.objectives)
                path = join("tune.objectives", text) if objective else "measures"
                diagnostics.refuse(path, f"is not a measure of these runs: {problem}")

    @staticmethod
    def judged(plan: TunePlan, configuration: int, numbers: Numbers) -> Reading:
        try:
            scenario = plan.scenario(configuration, numbers)
        except UnknownKeyError as error:
            return Reading(handle=None, faults=[Fault.of(str(error))], warnings=[])
        return Reading.of_table(scenario, "scenario")

    def blame(self, plan: TunePlan, fault: Fault, path: str, configuration: int | None) -> None:
        """Adds what the core says of a scenario, at the place of the plan it comes from."""
        values = {} if configuration is None else plan.configurations.points[configuration].values
        where = ", ".join(
            f"{name} = {value if isinstance(value, str) else f'{value:g}'}" for name, value in values.items()
        )
        line = self.diagnostics.line(path or "scenario")
        by = f"; set by {path}" if path else ""
        problem = f"{fault.problem}{by}{f'; where {where}' if where else ''}"
        again = any((one.key, one.value, one.line) == (fault.key, fault.value, line) for one in self.diagnostics.faults)
        if not again:
            at = Fault.of(problem, file=self.diagnostics.file, line=line, key=fault.key, value=fault.value)
            self.diagnostics.faults.append(at)
