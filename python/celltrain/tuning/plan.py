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

from celltrain.arguments import checked
from celltrain.errors import Fault, PlanError, ScenarioError
from celltrain.expressions import MeasureError, check_syntax
from celltrain.paths import UnknownKeyError, set_key
from celltrain.plan import Key, Plan, Seeds
from celltrain.plan.axis import DIGITS, Interval, written
from celltrain.plan.base import Base, base_of, plain
from celltrain.plan.contents import MAX_RUNS, Group
from celltrain.plan.document import Diagnostics, join, parse
from celltrain.plan.points import PROBED, no_measures
from celltrain.plan.reader import MAX_SEED, Reader
from celltrain.quantities import exact
from celltrain.scenario import Reading, read_text
from celltrain.text import shown as shown_path

if TYPE_CHECKING:
    from celltrain.models import Scenario

KEYS = ("name", "scenario", "measures", "axes", "paired", "points", "limits", "tune")
TUNE_KEYS = ("parameters", "objectives", "references", "trials", "batch", "finalists", "seed", "seeds")
DIRECTIONS = ("maximize", "minimize")
#: What is done where a plan does not say.
TRIALS, BATCH, FINALISTS, SEED = 64, 8, 8, 1
SEARCH_SEEDS, SELECTION_SEEDS, CONFIRMATION_SEEDS = 5, 10, 30
MOST_TRIALS = 10_000
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
    def load(cls, path: str | os.PathLike[str]) -> TunePlan:
        """The plan in a TOML file; raises `PlanError` with everything that is wrong with it."""
        path = Path(path)
        try:
            text = read_text(path)
        except ScenarioError as error:
            raise PlanError(error.faults) from None
        return cls.of_toml(text, file=shown_path(path), folder=path.parent)

    @classmethod
    @checked(PlanError)
    def of_toml(cls, text: str, *, file: str = "plan", folder: str | os.PathLike[str] = ".") -> TunePlan:
        """The plan in a text; `folder` is where the scenario it names stands."""
        document, lines = parse(text, file)
        diagnostics = Diagnostics(file, lines)
        base = Base.named(document.get("scenario"), diagnostics, Path(folder))
        return _TuneReader(document, diagnostics, base).tune_plan(Path(file).stem if file.endswith(".toml") else "")

    @classmethod
    @checked(PlanError)
    def of(cls, base: Scenario | str | os.PathLike[str], document: Mapping[str, Any]) -> TunePlan:
        """The plan of a scenario and everything else as in a file, as Python values."""
        diagnostics, known = Diagnostics("tune", None), plain(document)
        found = base_of(base, diagnostics)
        return _TuneReader(known, diagnostics, found).tune_plan(found.name)

    @classmethod
    @checked(PlanError)
    def of_document(cls, document: Mapping[str, Any]) -> TunePlan:
        """The plan again whose `document` this is."""
        return _TuneReader(dict(document), Diagnostics("plan", None), Base.again(document)).tune_plan("", check=False)

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
            "measures": list(self.measures),
            "points": {"axes": axes, "rows": rows},
            "seeds": {"first": seeds.first, "count": seeds.count},
            "scenario": self.configurations.base,
        }
        if "limits" in self.document:
            document["limits"] = self.document["limits"]
        return Plan.of_document(document)


class _TuneReader(Reader):
    """Reads a tuning plan, and collects its faults."""

    def __init__(self, document: dict[str, Any], diagnostics: Diagnostics, base: Base) -> None:
        if "tune" not in document:
            diagnostics.refuse("", "lacks a table [tune]: what is searched; a plan without one is for celltrain sweep")
            raise PlanError(diagnostics.faults)
        if "seeds" in document:
            diagnostics.refuse(
                "seeds", "is what [tune.seeds] is for: search, selection and confirmation have seeds of their own"
            )
        if "sample" in document:
            diagnostics.refuse(
                "sample", "has no place in a plan for celltrain tune: a search draws by itself, from [tune.parameters]"
            )
        document = {key: value for key, value in document.items() if key not in ("seeds", "sample")}
        super().__init__(document, diagnostics, base, KEYS)

    def tune_plan(self, default_name: str, *, check: bool = True) -> TunePlan:
        diagnostics, document = self.diagnostics, self.document
        said = diagnostics.table(document["tune"], "tune", TUNE_KEYS)
        name = diagnostics.text(document.get("name") or None, "name", "a text") or default_name
        objectives = self.objectives(said.get("objectives"))
        more = () if document.get("measures") is None else self.measures(document["measures"])
        groups = self.groups()
        parameters = self.parameters(said.get("parameters"), groups)
        # References are judged by what they name, so all of it must be known.
        whole = isinstance(said.get("parameters"), Mapping) and len(parameters) == len(said["parameters"])
        references = self.references(said.get("references"), parameters) if whole else ()
        limits = diagnostics.table(document.get("limits"), "limits", ("time",))
        limit_s = self.time(limits.get("time"), "limits.time")
        numbers = {
            word: diagnostics.whole(said.get(word, usual), f"tune.{word}", 0 if word == "seed" else 1, most)
            for word, usual, most in (
                ("trials", TRIALS, MOST_TRIALS),
                ("batch", BATCH, MOST_TRIALS),
                ("finalists", FINALISTS, MOST_TRIALS),
                ("seed", SEED, (1 << 32) - 1),
            )
        }
        stages = self.stages(said.get("seeds"))
        if not diagnostics.faults:
            self.size(groups, Seeds(first=1, count=1))
        if diagnostics.faults:
            raise PlanError(diagnostics.faults)
        measures = tuple(dict.fromkeys([*(one.measure for one in objectives), *more]))
        kept = {key: document[key] for key in KEYS if key in document and key != "scenario"}
        plan = TunePlan(
            name=name,
            measures=measures,
            configurations=Plan(
                name=name,
                measures=measures,
                groups=tuple(groups),
                seeds=stages[0],
                limit_s=limit_s,
                recording=None,
                base=self.base.table,
                document={},
            ),
            parameters=parameters,
            objectives=(objectives[0], objectives[1]),
            references=references,
            trials=numbers["trials"] or 1,
            batch=min(numbers["batch"] or 1, numbers["trials"] or 1),
            finalists=numbers["finalists"] or 1,
            seed=numbers["seed"] or 0,
            search=stages[0],
            selection=stages[1],
            confirmation=stages[2],
            document={**kept, "name": name, "scenario": self.base.table},
        )
        if check:
            self.check_tuned(plan)
        if diagnostics.faults:
            raise PlanError(diagnostics.faults)
        return plan

    def objectives(self, said: Any) -> list[Objective]:
        diagnostics, path = self.diagnostics, "tune.objectives"
        wanted = 'two measures, such as { efficiency = "maximize", fairness = "maximize" }'
        if said is None:
            diagnostics.refuse("tune", f"lacks objectives: {wanted}")
            return []
        found = []
        table = diagnostics.table(said, path)
        for text, direction in table.items():
            word = diagnostics.word(direction, join(path, text), DIRECTIONS)
            try:
                check_syntax(text)
            except MeasureError as error:
                diagnostics.refuse(join(path, text), f"is not a measure: {error}")
            found.append(Objective(measure=text, larger=word != "minimize"))
        if isinstance(said, Mapping) and len(table) != 2:
            count = "one measure" if len(table) == 1 else f"{len(table)} measures"
            diagnostics.refuse(path, f"names {count}: a front is of two; {wanted}")
        return found

    def parameters(self, said: Any, groups: Sequence[Group]) -> tuple[Parameter, ...]:
        diagnostics = self.diagnostics
        table = diagnostics.table(said, "tune.parameters")
        if not table:
            diagnostics.refuse("tune", "lacks parameters: a table of what is searched, each with path, from and to")
        found = []
        others = {axis.name: axis.path for group in groups for axis in group.axes}
        for name, one in table.items():
            path = join("tune.parameters", name)
            inside = diagnostics.table(one, path, ("path", "from", "to", "scale", "step"))
            self.named(name, path)
            key = self.key(inside.get("path", name), join(path, "path") if "path" in inside else path)
            interval = None if key is None else self.interval(inside, path, key)
            if key is None or interval is None:
                continue
            step = self.bound(inside["step"], join(path, "step"), key) if "step" in inside else None
            if step is not None and (step <= 0 or interval.log):
                problem = "goes with a linear scale only" if interval.log else "is not above zero"
                diagnostics.refuse(join(path, "step"), problem, inside["step"])
                step = None
            if step is not None:
                self.places(interval, step, join(path, "step"), inside["step"])
            if step is not None and step > interval.high - interval.low:
                diagnostics.refuse(
                    join(path, "step"), "is more than the whole range: there would be one value", inside["step"]
                )
            if step is None and key.whole and not interval.log:
                step = Fraction(1)
            for other, taken in others.items():
                if name == other:
                    diagnostics.refuse(path, f"has the name of an axis, {other}")
                elif f"{key.path}.".startswith(f"{taken}.") and key.path != taken:
                    # The axis sets a table, the parameter something in it.
                    continue
                elif f"{taken}.".startswith(f"{key.path}."):
                    diagnostics.refuse(join(path, "path"), f"sets what {other} sets too, {taken}", key.path)
            others[name] = key.path
            found.append(Parameter(name=name, path=key.path, key=key, interval=interval, step=step))
        return tuple(found)

    def references(self, said: Any, parameters: Sequence[Parameter]) -> tuple[Reference, ...]:
        diagnostics = self.diagnostics
        found: list[Reference] = []
        for label, one in diagnostics.table(said, "tune.references").items():
            path = join("tune.references", label)
            table = diagnostics.table(one, path)
            names = [parameter.name for parameter in parameters]
            for name in table:
                if name not in names:
                    diagnostics.refuse(
                        join(path, name), f"is no parameter; parameters are {', '.join(names)}", table[name]
                    )
            missing = [name for name in names if name not in table]
            if missing:
                diagnostics.refuse(path, f"lacks {' and '.join(missing)}: a reference has a value for every parameter")
                continue
            numbers = [self.bound(table[p.name], join(path, p.name), p.key) for p in parameters]
            if all(number is not None for number in numbers):
                known = tuple(number for number in numbers if number is not None)
                if any(other.numbers == known for other in found):
                    diagnostics.refuse(path, "has the values of another reference")
                found.append(Reference(label=label, numbers=known))
        return tuple(found)

    def stages(self, said: Any) -> tuple[Seeds, Seeds, Seeds]:
        """The seeds of search, selection and confirmation, one after the other."""
        diagnostics, path = self.diagnostics, "tune.seeds"
        table = diagnostics.table(said, path, ("first", "search", "selection", "confirmation"))
        first = diagnostics.whole(table.get("first", 1), join(path, "first"), 0, MAX_SEED - MAX_RUNS) or 0
        found = []
        for word, usual, least in (
            ("search", SEARCH_SEEDS, 1),
            ("selection", SELECTION_SEEDS, 2),
            ("confirmation", CONFIRMATION_SEEDS, 2),
        ):
            count = diagnostics.whole(table.get(word, usual), join(path, word), least, MAX_RUNS) or 1
            found.append(Seeds(first=first, count=count))
            first += count
        return found[0], found[1], found[2]

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
                elif len(accepted) < PROBED:
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
