"""A tuning plan: a scenario, the parameters to search, two objectives, and the size of the search."""

from __future__ import annotations

import hashlib
import itertools
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import Self

from celltrain import _core
from celltrain.ensemble.cases import measured
from celltrain.ensemble.plan import MAX_RUNS, OUTLINED, Cases, Plan, Seeds, check_measures, in_words
from celltrain.ensemble.plan.axes import Axis, Design, Interval, Varied, draw, written
from celltrain.ensemble.plan.document import Place
from celltrain.ensemble.plan.forms import OBJECTIVES, ParameterForm, TuneForm
from celltrain.ensemble.plan.reader import Planned, Reader
from celltrain.ensemble.plan_warnings import DELIVERED
from celltrain.ensemble.store.folder import Kind, Lock, put, sync
from celltrain.errors import Fault, ScenarioError, TuneError, needed, warn
from celltrain.model.files import UnreadableError, linked, read_json
from celltrain.model.paths import NoPlaceError, exact, set_key
from celltrain.model.scenario import Reading
from celltrain.text import key_path, shown

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


#: Maximum number of corners of the parameter space, and of scenarios, that are checked before anything runs.
MOST_CORNERS, MOST_CHECKED = 256, 2000

#: Values of a plan's parameters, in the plan's order.
Numbers = tuple[Fraction, ...]
#: A setting of a configuration.
Setting = tuple[int, Numbers]


@dataclass(frozen=True, kw_only=True)
class Parameter(Varied):
    """A searched parameter, and the interval of its values."""

    interval: Interval

    def setting(self, number: Fraction) -> Any:
        """Returns a value as written in a scenario."""
        return written(number, self.key)

    def plain(self, number: Fraction) -> float:
        """Returns a value as a Python number: an integer if the setting is a whole number, otherwise a float."""
        return round(number) if self.key.whole else float(number)


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A measure, and whether larger is better."""

    measure: str
    unit: str
    meaning: str
    better: str

    @property
    def larger(self) -> bool:
        """True if larger is better."""
        return self.better == "larger"


class _TuneReader(Reader):
    """Checks the contents of a tuning plan."""

    elsewhere: ClassVar = {
        "seeds": "cannot be set here; use [tune.seeds]: search, selection and confirmation have their own seeds",
        "sample": "does not belong in a plan for celltrain tune: a search draws values from [tune.parameters]",
        "series": "does not belong in a plan for celltrain tune: a search stores measures, not series",
    }

    def objectives(self, tune: TuneForm) -> list[Objective]:
        objectives = tune.objectives or {}
        for text in objectives:
            self.syntax(("tune", "objectives", text), text)
        if objectives and len(objectives) != 2:
            count = "one measure" if len(objectives) == 1 else f"{len(objectives)} measures"
            self.refuse("tune.objectives", f"names {count}, but a front needs {OBJECTIVES}")
        return [
            Objective(
                measure=text,
                unit=measured(text).unit,
                meaning=measured(text).meaning,
                better="smaller" if direction == "minimize" else "larger",
            )
            for text, direction in objectives.items()
        ]

    def parameters(self, tune: TuneForm, axes: Sequence[Axis]) -> list[Parameter]:
        others = {axis.name: axis.path for axis in axes}

        def parameter(name: str, form: ParameterForm, place: Place) -> Parameter:
            key, interval = self.range(name, form, place)
            if interval.step is not None and interval.step > interval.high - interval.low:
                problem = "is more than the whole range, which would leave one value; use a smaller step"
                raise self.refused((*place, "step"), problem, form.step)
            self.varied(name, key.path)
            for other, taken in others.items():
                if name == other:
                    self.refuse(place, f"has the same name as the axis {other}; rename one")
                elif f"{taken}.".startswith(f"{key.path}."):
                    # An axis may set a table that contains the parameter, but not the parameter itself or anything
                    # inside it.
                    self.refuse((*place, "path"), f"sets {taken}, which {other} also sets; leave one out", key.path)
            others[name] = key.path
            return Parameter(name=name, key=key, interval=interval)

        return self.each(tune.parameters, ("tune", "parameters"), parameter)

    def references(self, tune: TuneForm, parameters: Sequence[Parameter]) -> dict[str, Numbers]:
        known = {parameter.name: parameter for parameter in parameters}
        found: dict[str, Numbers] = {}

        def reference(label: str, values: Mapping[str, Any], place: Place) -> None:
            for name in values.keys() - known:
                self.refuse((*place, name), f"is not a parameter; choose from {', '.join(known)}", values[name])
            if missing := [name for name in known if name not in values]:
                problem = f"lacks {' and '.join(missing)}: a reference needs a value for every parameter"
                raise self.refused(place, problem)
            own = {name: values[name] for name in known}
            numbers = tuple(self.each(own, place, lambda name, one, at: self.bound(one, at, known[name].key)))
            if numbers in found.values():
                self.refuse(place, "has the same values as another reference; delete one")
            if len(numbers) == len(known):
                found[label] = numbers

        self.each(tune.references, ("tune", "references"), reference)
        return found

    def check(self, plan: TunePlan) -> None:
        """Checks that the corners and the references can be run, and that the measures exist."""
        if plan.most_runs > MAX_RUNS:
            problem = f"asks for {plan.most_runs:,} runs; at most {MAX_RUNS:,} are possible: use fewer trials"
            self.refuse("tune", problem)
            return
        count = len(plan.configurations.points)
        ends = [(p.interval.low, p.interval.last) for p in plan.parameters]
        corners = list(itertools.islice(itertools.product(*ends), MOST_CORNERS))
        looked_at = max(1, MOST_CHECKED // len(corners))
        chosen = sorted({count * i // looked_at for i in range(looked_at)}) if count > looked_at else range(count)
        accepted: list[_core.Case] = []
        outcomes: dict[Setting, list[Fault]] = {}
        for configuration in chosen:
            for corner in corners:
                outcomes[configuration, corner] = faults = plan.faults((configuration, corner))
                if not faults and len(accepted) < OUTLINED:
                    accepted.append(plan.case((configuration, corner)))
            for label, numbers in plan.references.items():
                for fault in plan.faults((configuration, numbers)):
                    self.blame(plan, fault, key_path("tune.references", label), configuration)
        # Some corners may be invalid, for example if thresholds depend on each other. It is a fault if an end of a
        # range is never valid.
        for place, parameter in enumerate(plan.parameters):
            for word, end in (("from", parameter.interval.low), ("to", parameter.interval.last)):
                at_end = [faults for (_, corner), faults in outcomes.items() if corner[place] == end]
                own = [fault for fault in at_end[0] if fault.key == parameter.path]
                if own and all(at_end) and (accepted or word == "from"):
                    self.blame(plan, own[0], key_path(key_path("tune.parameters", parameter.name), word), None)
        if not accepted and not self.faults:
            (configuration, _), faults = next(iter(outcomes.items()))
            for fault in faults:
                self.blame(plan, fault, "", configuration)
        check_measures(plan.measures, self, accepted)

    def blame(self, plan: TunePlan, fault: Fault, path: str, configuration: int | None) -> None:
        """Adds a fault of a scenario, attributed to the place in the plan that causes it."""
        values = {} if configuration is None else plan.configurations.points[configuration].values
        where = in_words(values)
        line = self.line(path or "scenario")
        by = f"; set by {path}" if path else ""
        problem = f"{fault.problem}{by}{f'; where {where}' if where else ''}"
        again = any((one.key, one.value, one.line) == (fault.key, fault.value, line) for one in self.faults)
        if not again:
            at = Fault.of(problem, file=self.file, line=line, key=fault.key, value=fault.value)
            self.faults.append(at)


@dataclass(frozen=True, kw_only=True)
class TunePlan(Planned):
    """A checked tuning plan. Each point of its axes is a *configuration* and has its own search.

    Attributes:
        measures: Measures of every run, the objectives first.
        configurations: The axes, or a single point if there are none.
        parameters: The searched parameters.
        objectives: The two measures.
        references: Settings to compare with, by label.
        trials: Number of trials of each search.
        batch: Number of trials in a generation, which are chosen together.
        finalists: Maximum number of settings of each search that advance to selection, not counting references.
        seed: Seed of the sampler.
        search: Seeds of the first stage. All settings of a stage have the same seeds, and no two stages share a seed.
        selection: Seeds of the second stage.
        confirmation: Seeds of the third stage.
    """

    _reader = _TuneReader
    _file = "tune"

    configurations: Design
    parameters: tuple[Parameter, ...]
    objectives: tuple[Objective, Objective]
    references: dict[str, Numbers]
    trials: int
    batch: int
    finalists: int
    seed: int
    search: Seeds
    selection: Seeds
    confirmation: Seeds

    @classmethod
    def _read(cls, reader: _TuneReader, *, check: bool = True) -> Self:
        if reader.document.get("tune") is None:
            reader.refuse("", "lacks a table [tune] with the settings to search; without one, use celltrain sweep")
            reader.finish()
        tune = reader.read().form.tune or TuneForm()
        objectives = reader.objectives(tune)
        more, groups = reader.measures(default=()), reader.groups()
        parameters = reader.parameters(tune, [axis for group in groups for axis in group.axes])
        # References are checked against the parameters, so all parameters must be valid.
        complete = parameters and len(parameters) == len(tune.parameters or ())
        references = reader.references(tune, parameters) if complete else {}
        seeds, first = tune.seeds, tune.seeds.first
        reader.size(groups, 1)
        about = reader.plan()
        plan = cls(
            measures=tuple(dict.fromkeys([*(one.measure for one in objectives), *more])),
            configurations=Design(base=reader.scenario, groups=groups),
            parameters=tuple(parameters),
            objectives=(objectives[0], objectives[1]),
            references=references,
            trials=tune.trials,
            batch=min(tune.batch, tune.trials),
            finalists=tune.finalists,
            seed=tune.seed,
            search=Seeds(first=first, count=seeds.search),
            selection=Seeds(first=first + seeds.search, count=seeds.selection),
            confirmation=Seeds(first=first + seeds.search + seeds.selection, count=seeds.confirmation),
            **about,
        )
        if check:
            reader.check(plan)
        reader.finish()
        return plan

    @property
    def generations(self) -> int:
        """Number of generations."""
        return -(-self.trials // self.batch)

    @property
    def most_runs(self) -> int:
        """Maximum number of runs. There may be fewer, because a setting that is chosen twice runs only once."""
        last = self.finalists + len(self.references)
        each = self.trials * self.search.count + last * (self.selection.count + self.confirmation.count)
        return len(self.configurations.points) * each

    def scenario(self, configuration: int, numbers: Numbers) -> dict[str, Any]:
        """Returns the scenario of a configuration with the given parameters, without checking it."""
        scenario = self.configurations.points[configuration].scenario
        for parameter, number in zip(self.parameters, numbers, strict=True):
            set_key(scenario, parameter.path, parameter.setting(number))
        return scenario

    def case(self, setting: Setting) -> _core.Case:
        """Returns the case of a setting; raises `ScenarioError` if its scenario has faults.

        Each case is made once, unless all of them would need much memory.
        """
        if (case := self._cases.get(setting)) is not None:
            return case
        return self._cases.keep(setting, Reading.of_table(self.scenario(*setting), "scenario").accepted())

    def faults(self, setting: Setting) -> list[Fault]:
        """Returns the faults of a setting's scenario."""
        try:
            self.case(setting)
        except NoPlaceError as error:
            return [Fault.of(str(error), key=error.path)]
        except ScenarioError as error:
            return error.faults
        return []

    @cached_property
    def _cases(self) -> Cases:
        return Cases()

    def title(self, configuration: int) -> str:
        """Describes a configuration by its values. Omits values determined by an earlier axis."""
        from celltrain.drawing.words import valued

        points = self.configurations.points
        every = [points.values(index) for index in range(len(points))]
        named = []
        for place, axis in enumerate(self.configurations.axes):
            follows = any(
                len({(row[other], row[place]) for row in every}) == len({row[other] for row in every})
                for other in range(place)
            )
            if not follows:
                value = valued(every[configuration][place], axis.unit)
                named.append(value if axis.labels is not None else f"{axis.name} {value}")
        return ", ".join(named)

    def named(self, numbers: Numbers) -> dict[str, float]:
        """Returns the values of the parameters by name."""
        return {parameter.name: float(number) for parameter, number in zip(self.parameters, numbers, strict=True)}

    def middle(self) -> Plan:
        """Returns a sweep for estimating the time: each configuration with the first reference, or mid-range values."""
        middle = tuple(p.interval.draw(0.5) for p in self.parameters)
        numbers = next(iter(self.references.values()), middle)
        everywhere = range(len(self.configurations.points))
        return self.runs("estimate", [(i, numbers) for i in everywhere], self.search)

    def runs(self, name: str, settings: Sequence[Setting], seeds: Seeds) -> Plan:
        """Returns a sweep with a point for each setting of a configuration, and with these seeds."""
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


# The trials of a search: how the next trials are chosen, and the folder in which trials are stored.


#: Minimum number of trials with values for Optuna's model.
LEAST_TRIALS = 4
#: Format version of the folder and its files.
FORMAT = 2
MANIFEST, ASKED, RUNS = "tune.json", "asked.json", "runs"
_UNSEEN = "in the order of its entries"
KIND = Kind("search", MANIFEST, FORMAT, TuneError, unseen=_UNSEEN, writer="search", folders=(RUNS,))


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A setting that was tried in a trial.

    Attributes:
        generation: Number of the trial's generation, from 0.
        numbers: The values of the parameters.
        values: Means of the objectives over the seeds; None if a run failed or has no value.
    """

    generation: int
    numbers: Numbers
    values: tuple[float, float] | None


def ask(plan: TunePlan, configuration: int, generation: int, history: Sequence[Trial], count: int) -> list[Numbers]:
    """Returns the settings of a generation.

    The first generation consists of a Sobol sample and of those references that are within the ranges. Later
    generations come from Optuna's multi-objective tree-structured Parzen estimator, which treats the rest of a batch as
    running.
    """
    # The seed does not depend on the other configurations of the plan.
    text = json.dumps([plan.seed, plan.configurations.points[configuration].values, generation], sort_keys=True)
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    parameters = plan.parameters
    if generation == 0:
        known = [
            numbers
            for numbers in plan.references.values()
            if all(p.interval.near(float(number)) == number for p, number in zip(parameters, numbers, strict=True))
        ][:count]
        shares = draw("sobol", len(parameters), max(count - len(known), 1), seed)
        drawn = [tuple(p.interval.draw(float(s)) for p, s in zip(parameters, row, strict=True)) for row in shares]
        return [*known, *drawn][:count]
    optuna = silent_optuna()
    with quiet(optuna):
        # Multivariate, because good values of R and Z depend on each other. Constant liar, to avoid equal proposals in
        # a batch.
        sampler = optuna.samplers.TPESampler(
            seed=seed, multivariate=True, constant_liar=True, n_startup_trials=LEAST_TRIALS
        )
        directions = ["maximize" if objective.larger else "minimize" for objective in plan.objectives]
        study, space = optuna.create_study(directions=directions, sampler=sampler), _distributions(plan)
        for trial in history:
            made = optuna.trial.create_trial(
                state=optuna.trial.TrialState.FAIL if trial.values is None else optuna.trial.TrialState.COMPLETE,
                values=trial.values,
                params={p.name: p.plain(number) for p, number in zip(parameters, trial.numbers, strict=True)},
                distributions=space,
            )
            study.add_trial(made)
        asked = [study.ask(space).params for _ in range(count)]
    return [tuple(p.interval.near(float(params[p.name])) for p in parameters) for params in asked]


def silent_optuna() -> Any:
    """Imports and returns Optuna; raises `MissingExtraError` if Optuna is not installed."""
    return needed("optuna", "tuning needs optuna: pip install 'celltrain[tune]'")


@contextmanager
def quiet(optuna: Any) -> Iterator[None]:
    """Disables Optuna's log, and its warnings about experimental features."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


def _distributions(plan: TunePlan) -> dict[str, BaseDistribution]:
    """Returns the parameters' ranges as Optuna distributions, in the units of a store's columns."""
    of, made = silent_optuna().distributions, {}
    for p in plan.parameters:
        kind = of.IntDistribution if p.key.whole else of.FloatDistribution
        step = p.plain(p.interval.grid) if p.interval.grid is not None else 1 if p.key.whole else None
        made[p.name] = kind(p.plain(p.interval.low), p.plain(p.interval.last), log=p.interval.log, step=step)
    return made


class Folder:
    """The folder of a search, locked for writing."""

    def __init__(self, path: Path, manifest: dict[str, Any], plan: TunePlan, lock: Lock) -> None:
        self.path, self.manifest, self.plan, self.lock = path, manifest, plan, lock
        #: Trials: for each generation of the search and each configuration, a list of settings.
        self.asked: list[list[list[Numbers]]] = []

    @classmethod
    def create(cls, path: Path, plan: TunePlan) -> Folder:
        """Creates a folder; raises `TuneError` if it is in use."""
        lock = KIND.begin(path)
        with lock.released_on_error():
            manifest = KIND.new(plan, optuna=silent_optuna().__version__)
            _refuse_links(path / RUNS)
            (path / RUNS).mkdir(exist_ok=True)
            sync(path)
            put(path / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False).encode())
        return cls(path, manifest, plan, lock)

    @classmethod
    def resume(cls, path: Path, plan: TunePlan) -> Folder:
        """Opens a folder to continue its search; raises `TuneError` if it belongs to another plan or version."""
        manifest = KIND.read(path)
        if faults := list(KIND.differences(path, manifest, plan)):
            raise TuneError(faults)
        folder = cls(path, manifest, plan, KIND.locked(path))
        with folder.lock.released_on_error():
            folder.asked = folder._read_asked()
        before, now = manifest["optuna"], silent_optuna().__version__
        if before != now:
            begun = f"{shown(path)} was begun with optuna {before}, and this is {now}"
            warn([f"{begun}: later trials may differ between the two versions"])
        return folder

    def keep(self, generation: Sequence[Sequence[Numbers]]) -> None:
        """Stores the settings of the next generation before they are run."""
        self.asked.append([list(settings) for settings in generation])
        asked = [[[[float(n) for n in numbers] for numbers in of] for of in one] for one in self.asked]
        content = json.dumps({"parameters": [p.name for p in self.plan.parameters], "generations": asked})
        put(self.path / ASKED, content.encode())

    def stage(self, name: str) -> Path:
        """Returns the path of a stage's store."""
        _refuse_links(self.path / RUNS, self.path / RUNS / name)
        return self.path / RUNS / name

    def _read_asked(self) -> list[list[list[Numbers]]]:
        path = self.path / ASKED
        if not path.exists():
            return []
        try:
            generations = read_json(path, what="list of trials")["generations"]
            asked = [[[tuple(map(exact, numbers)) for numbers in of] for of in one] for one in generations]
        except (UnreadableError, ValueError, ArithmeticError, TypeError, KeyError) as error:
            raise TuneError.of_file(
                path, f"has content that celltrain did not write ({error}): start again in another folder"
            ) from None
        if any(len(one) != len(self.plan.configurations.points) for one in asked):
            raise TuneError.of_file(path, "has other configurations: start again in another folder")
        return asked


def _refuse_links(*paths: Path) -> None:
    """Raises `TuneError` if a path is a link, because a link would redirect the written runs."""
    if faults := linked(*paths):
        raise TuneError(faults)
