"""Checks of a plan that involve several keys, or the settings named by its axes."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from typing_extensions import Self

from celltrain.ensemble.plan import axes as plan_axes
from celltrain.ensemble.plan import forms
from celltrain.ensemble.plan.axes import MEASURES, Axis, Group, Interval, NumberRange, Seeds
from celltrain.ensemble.plan.document import Document, Place, RefusedError, as_text, parse
from celltrain.errors import PlanError, ScenarioError
from celltrain.model import overrides
from celltrain.model.arguments import checked
from celltrain.model.measures import MeasureError, check_syntax, needs_series
from celltrain.model.paths import Key, UnknownKeyError, exact, follow, seconds
from celltrain.model.scenario import no_plan
from celltrain.model.shipped import named_text
from celltrain.running import Recording

if TYPE_CHECKING:
    from celltrain.model.types import Scenario

T = TypeVar("T")
R = TypeVar("R")

#: Columns of every store.
COLUMNS = (
    *("run_key", "point", "seed", "measure", "value", "error"),
    *("fingerprint", "configuration", "version", "profile"),
)
#: Keys of a scenario that do not affect a run, with the reason why an axis cannot vary them.
NO_AXES = {"seed": "cannot be varied here; use [seeds]", "name": "is not a setting of a run"}
#: Maximum ratio of the ends of a logarithmic range, so that it fits in a float.
MOST_RATIO = 10**300
#: Largest number of points that is written out in a message.
MOST_COUNTED = 10**30
#: Maximum number of measures of a plan.
MOST_MEASURES = 1000


class Reader(Document):
    """Checks the contents of a plan."""

    #: Keys that belong to another kind of plan, and the problem to report for each.
    elsewhere: ClassVar = {"tune": "makes this a plan for celltrain tune; a sweep has [axes] and [seeds] instead"}

    def read(self) -> Self:
        """Reads the tables of the plan. Methods check the rules that involve several keys."""
        before = len(self.faults)
        self.numbers()
        if len(self.faults) > before:
            self.finish()
        for key, problem in self.elsewhere.items():
            if key in self.document:
                self.refuse(key, problem)
        self.keys = [key for key in forms.PlanForm.names() if key not in self.elsewhere]
        self.form = forms.read(forms.PlanForm, self, self.keys, leave=self.elsewhere)
        return self

    def plan(self) -> dict[str, Any]:
        """Returns the plan's attributes other than axes, seeds and measures; raises `PlanError` if it has faults."""
        self.finish()
        document = {key: self.document[key] for key in self.keys if key in self.document and key != "scenario"}
        time, name = self.form.limits.time, self.form.name or self.name
        limit_s = None if time is None else seconds(time)
        return {"name": name, "limit_s": limit_s, "document": {**document, "name": name, "scenario": self.scenario}}

    def measures(self, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Returns the measures of the plan, or `default`, or the default measures of the scenario."""
        texts = self.form.measures
        if texts is None:
            return plan_axes.defaults(self.scenario) if default is None else default
        if not texts:
            self.refuse("measures", forms.MEASURES, texts)
        elif len(texts) > MOST_MEASURES:
            self.refuse("measures", f"has {len(texts):,} measures; at most {MOST_MEASURES:,} are possible")
            return MEASURES
        seen: set[str] = set()
        for step, text in texts.items() if isinstance(texts, dict) else enumerate(texts):
            if text is not None:
                self.syntax(("measures", step), text, text)
                if text in seen:
                    self.refuse(("measures", step), "appears twice; delete one", text)
                seen.add(text)
        return tuple(text for text in _listed_measures(texts) if text is not None)

    def syntax(self, place: Place, text: str, value: Any = ...) -> None:
        """Checks the syntax of a measure."""
        try:
            check_syntax(text)
        except MeasureError as error:
            self.refuse(place, f"is not a measure: {error}", value)

    def groups(self) -> tuple[Group, ...]:
        """Returns all axes, in groups of axes that change together."""
        alone = self.each(self.form.axes, ("axes",), self._axis)
        groups = (*(Group(axes=(axis,)) for axis in alone), *self._paired(), *self._listed_points(), *self._sample())
        # No two axes may have the same name or set the same path. One axis may set a value inside a table that another
        # axis sets.
        names: set[str] = set()
        setting: dict[str, Axis] = {}
        for axis in (axis for group in groups for axis in group.axes):
            if axis.name in names:
                self.refuse("", f"has two axes named {axis.name}; rename one")
            elif other := setting.get(axis.path):
                self.refuse("", f"sets {axis.path} twice, by {other.name} and by {axis.name}; delete one")
            self.varied(axis.name, axis.path)
            names.add(axis.name)
            setting.setdefault(axis.path, axis)
        return groups

    @staticmethod
    def each(table: Mapping[str, T | None] | None, place: Place, make: Callable[[str, T, Place], R]) -> list[R]:
        """Calls `make` for each entry of a table, and returns the results without refused entries."""
        made = []
        for name, entry in (table or {}).items():
            if entry is not None:
                with suppress(RefusedError):
                    made.append(make(name, entry, (*place, name)))
        return made

    def varied(self, axis: str, path: str) -> None:
        """Refuses an axis that varies a setting also given with `--set`."""
        if path in self.settings:
            typed = f"{path}={self.settings[path].typed}"
            self.faults.append(overrides.fault_of("--set", typed, f"sets what {self.file} varies (axis {axis})"))

    def _paired(self) -> Iterator[Group]:
        """Yields the axes that change together."""
        for number, listed in enumerate(self.form.paired or ()):
            place = ("paired", number)
            axes = tuple(self.each(listed, place, partial(self._axis, alone=False)))
            counts = {axis.name: len(axis) for axis in axes}
            if listed == {}:
                self.refuse(place, "pairs nothing")
            elif len(set(counts.values())) > 1:
                words = ", ".join(f"{name} has {count}" for name, count in counts.items())
                self.refuse(place, f"must pair axes with the same number of values: {words}")
            elif again := _again(axes):
                self.refuse(place, f"has {again} twice; no two combinations of paired values may be equal")
            elif axes:
                yield Group(axes=axes)

    def _listed_points(self) -> Iterator[Group]:
        """Yields the axes of `[points]`. It has a row of values for each point."""
        points = self.form.points
        if points is None or not points.axes or not points.rows:
            return
        axes, rows, before, seen = points.axes, points.rows, len(self.faults), set()
        for number, row in enumerate(rows):
            place, text = ("points", "rows", number), json.dumps(row, sort_keys=True)
            if not isinstance(row, list) or len(row) != len(axes):
                self.refuse(place, f"is not a list of {len(axes)} values, one for each axis", row)
            elif text in seen:
                self.refuse(place, "appears twice; delete one", row)
            seen.add(text)
        if len(self.faults) > before:
            return
        places = list(axes)

        def column(name: str, form: forms.ColumnForm, place: Place) -> Axis:
            """Returns an axis whose rows contain plain values, or labels from a table of values."""
            key, number = self.key(name, form.path, place), places.index(name)
            values: list[tuple[Place, Any]] = [
                (("points", "rows", n, number), row[number]) for n, row in enumerate(rows)
            ]
            if form.values is None:
                return self._listed(name, key, place, values)
            for at, label in values:
                if not isinstance(label, str) or label not in form.values:
                    raise self.refused(at, f"is not a label of {name}; choose from {', '.join(form.values)}", label)
            labels = [label for _, label in values]
            values = [((*place, "values", label), form.values[label]) for label in labels]
            return self._listed(name, key, place, values, labels=labels)

        found = self.each(axes, ("points", "axes"), column)
        if len(found) == len(axes):
            yield Group(axes=tuple(found))

    def _sample(self) -> Iterator[Group]:
        """Yields the axes that are drawn together."""
        sample = self.form.sample
        if sample is None or not sample.axes:
            return
        found = self.each(sample.axes, ("sample", "axes"), self.range)
        if sample.points is None or len(found) < len(sample.axes):
            return
        count, shares = sample.points, plan_axes.draw(sample.method, len(found), sample.points, sample.seed)
        axes = []
        for number, (name, (key, interval)) in enumerate(zip(sample.axes, found, strict=True)):
            numbers = NumberRange(interval=interval, count=count, shares=shares[:, number])
            axes.append(Axis(name=name, key=key, numbers=numbers, place=("sample", "axes", name)))
        yield Group(axes=tuple(axes))

    def _axis(self, name: str, form: forms.AxisForm, place: Place, *, alone: bool = True) -> Axis:
        """Returns an axis with listed values or a range. Unless `alone`, a value may occur twice."""
        key, values, at = self.key(name, form.path, place), form.values, (*place, "values")
        ranged = [word for word in ("from", "to", "step", "count", "scale") if self.has(*place, word)]
        if values is None and ranged:
            return self._ranged(name, of_range(key, form), form, place)
        if values is None:
            problem = "has no values; give a list, or from and to with a step or a count"
            raise RefusedError if self.has(*at) else self.refused(place, problem)
        if ranged:
            self.refuse(place, f"has both values and {', '.join(ranged)}; give a list or a range")
        labels = list(values) if isinstance(values, dict) else None
        entries = values.items() if isinstance(values, dict) else enumerate(values)
        found: list[tuple[Place, Any]] = [((*at, step), value) for step, value in entries]
        return self._listed(name, key, place, found, labels=labels, alone=alone)

    def key(self, name: str, path: str | None, place: Place) -> Key:
        """Returns the schema's key for the path of an axis, by default its name. Also checks the name."""
        if path is None and self.has(*place, "path"):
            # The path has already been refused in another check.
            raise RefusedError
        path, where = (name, place) if path is None else (path, (*place, "path"))
        if path in NO_AXES:
            raise self.refused(where, NO_AXES[path], path)
        if name in COLUMNS:
            self.refuse(place, f"is the name of a column in every store; choose another name, such as my_{name}")
        try:
            return follow(path)
        except UnknownKeyError as error:
            raise self.refused(where, str(error), path) from None

    def _listed(
        self,
        name: str,
        key: Key,
        place: Place,
        values: Sequence[tuple[Place, Any]],
        *,
        labels: Sequence[str] | None = None,
        alone: bool = False,
    ) -> Axis:
        """Returns an axis with these values, each with its place. `labels` represent the values in the store."""
        before, seen = len(self.faults), set[str]()
        if not values:
            raise self.refused((*place, "values"), "is empty; an axis needs at least one value")
        for where, value in values:
            text, is_table = json.dumps(value, sort_keys=True), isinstance(value, Mapping | list)
            if isinstance(value, float) and not math.isfinite(value):
                self.refuse(where, "is not a finite number", value)
            elif alone and text in seen:
                self.refuse(where, "appears twice; delete one", value)
            elif is_table and labels is None:
                self.refuse(where, "is a table: give it a label, as in values = { mine = {...} }", value)
            elif not is_table and key.quantity is not None:
                with suppress(RefusedError):
                    self._quantity(value, where, key)
            seen.add(text)
        if len(self.faults) > before:
            raise RefusedError
        settings, named = tuple(value for _, value in values), None if labels is None else tuple(labels)
        return Axis(name=name, key=key, settings=settings, labels=named, place=place)

    def _ranged(self, name: str, key: Key, form: forms.AxisForm, place: Place) -> Axis:
        """Returns an axis whose values are a range."""
        if (form.step is None) != self.has(*place, "count"):
            problem = (
                "needs a step or a count" if form.step is None else "has both a step and a count; give one of them"
            )
            raise self.refused(place, problem)
        interval, count = self._interval(form, place, key), form.count
        if interval.step is not None:
            count = math.floor((interval.high - interval.low) / interval.step) + 1
        elif count == 1:
            raise self.refused((*place, "count"), "is too few for a range; for one value, write values = [...]", 1)
        if count is None:
            # The count has already been refused in another check.
            raise RefusedError
        axis = Axis(name=name, key=key, numbers=NumberRange(interval=interval, count=count), place=place)
        if count <= plan_axes.CHECKED_POINTS:
            settings = [json.dumps(axis.setting(number)) for number in range(count)]
            for one, other in itertools.pairwise(settings):
                if one == other:
                    raise self.refused(place, f"gives the value {one} twice, because of rounding; use fewer values")
        return axis

    def range(self, name: str, form: forms.RangeForm, place: Place) -> tuple[Key, Interval]:
        """Returns the key and the interval of a sampled axis or a searched parameter."""
        key = of_range(self.key(name, form.path, place), form)
        return key, self._interval(form, place, key)

    def _interval(self, form: forms.RangeForm, place: Place, key: Key) -> Interval:
        """Returns the interval of a range: both ends, the scale, and the step if there is one."""
        ends = {"from": form.from_, "to": form.to}
        if missing := [word for word, end in ends.items() if end is None]:
            raise self.refused(place, f"lacks {' and '.join(missing)}")
        bounds = self.each(ends, place, lambda _, end, at: self.bound(end, at, key))
        if len(bounds) < len(ends):
            raise RefusedError
        (low, high), log, start, end = bounds, form.scale == "log", (*place, "from"), (*place, "to")
        if key.is_threshold and key.whole and low < 2:
            cells = f"to = {as_text(form.to)} is a number of cells; start at 2 cells or more"
            raise self.refused(start, f"is a share of the buffer, but {cells}", form.from_)
        if not low < high:
            raise self.refused(end, f"is not above from = {as_text(form.from_)}", form.to)
        if log and low <= 0:
            raise self.refused(start, "is not above zero, as a logarithmic scale requires", form.from_)
        if log and high > MOST_RATIO * low:
            raise self.refused(end, f"is more than 10^300 times from = {as_text(form.from_)}", form.to)
        interval, at = Interval(low=low, high=high, log=log, whole=key.whole), (*place, "step")
        if (given := getattr(form, "step", None)) is None:
            return interval
        step = self.bound(given, at, key)
        if log:
            raise self.refused(at, "works only with a linear scale", given)
        if step <= 0:
            raise self.refused(at, "is not above zero", given)
        if (high - low) / step >= forms.MOST_VALUES:
            problem = f"is too small for the range, which would have more than {forms.MOST_VALUES:,} values"
            raise self.refused(at, problem, given)
        return replace(interval, step=step)

    def bound(self, given: Any, place: Place, key: Key) -> Fraction:
        """Returns an end or the step of a range as a number."""
        if key.quantity is not None:
            return self._quantity(given, place, key)
        if not isinstance(given, int | float) or isinstance(given, bool) or not math.isfinite(given):
            raise self.refused(place, f"is not a plain number, as {key.path} requires", given)
        if key.whole and given != int(given):
            raise self.refused(place, f"is not a whole number, as {key.path} requires", given)
        return exact(given)

    def _quantity(self, given: Any, place: Place, key: Key) -> Fraction:
        """Parses a number with a unit."""
        assert key.quantity is not None, "the caller handles keys without units"
        expected = key.quantity.expected
        try:
            if isinstance(given, str):
                return key.quantity.read(given)
        except ValueError as error:
            expected = str(error)
        raise self.refused(place, f"is not {expected}, as {key.path} requires", given)

    def seeds(self, measures: Sequence[str]) -> Seeds:
        """Returns the seeds of each point."""
        seeds, until = self.form.seeds, self.form.seeds.until
        if until is None:
            return Seeds(first=seeds.first, count=seeds.count)
        if self.has("seeds", "count"):
            self.refuse("seeds", "has both a count and until; give one of them")
        if until.measure is not None and until.measure not in measures:
            problem = f"is not measured; choose from {', '.join(measures)}"
            self.refuse("seeds.until.measure", problem, until.measure)
        most = until.at_most or until.at_least
        least_is_right = all(fault.key != "seeds.until.at_least" for fault in self.faults)
        if most < until.at_least and least_is_right:
            self.refuse("seeds.until.at_most", f"is below at_least = {until.at_least}", most)
        measure, width = until.measure or "", until.interval or 1.0
        narrow = plan_axes.Until(measure=measure, interval=width, at_least=until.at_least, at_most=most)
        return Seeds(first=seeds.first, count=most, until=narrow)

    def recording(self, measures: Sequence[str]) -> Recording | None:
        """Returns the series that every run records."""
        series = self.form.series
        if series is None:
            return None
        if traced := next((text for text in measures if needs_series(text)), None):
            problem = f"cannot be combined with the measure {traced!r}, which needs its own trace"
            self.refuse("series", problem)
        ports = None if series.ports is None else tuple(series.ports)
        return Recording(trace=tuple(series.record or ()), step=series.step or "", ports=ports)

    def size(self, groups: Sequence[Group], seeds: int) -> None:
        """Refuses an unreasonable number of runs. Skips plans with other faults, whose size may be wrong."""
        points = math.prod(map(len, groups))
        if points * seeds > plan_axes.MAX_RUNS and not self.faults:
            few = points <= MOST_COUNTED
            counted = f"{points:,} points and {points * seeds:,} runs" if few else "more than 10^30 points"
            problem = (
                f"has {counted}; at most {plan_axes.MAX_RUNS:,} runs are possible: use fewer values, or a [sample]"
            )
            self.refuse("", problem)


def of_range(key: Key, form: forms.RangeForm) -> Key:
    """Returns the key for a range. A threshold whose `to` is a whole number above 1 is a number of cells."""
    to = form.to
    in_cells = isinstance(to, int | float) and to > 1 and math.isfinite(to) and to == int(to)
    return replace(key, whole=True, unit="cells") if key.is_threshold and in_cells else key


def _again(axes: Sequence[Axis]) -> str:
    """Returns the first combination of values that occurs twice in axes that change together; empty if none."""
    # The values of a range are distinct, and may be too many to iterate over.
    if any(axis.numbers is not None for axis in axes):
        return ""
    seen: set[str] = set()
    for settings in zip(*(axis.settings for axis in axes), strict=True):
        text = json.dumps(settings, sort_keys=True)
        if text in seen:
            return ", ".join(f"{axis.name} = {as_text(one)}" for axis, one in zip(axes, settings, strict=True))
        seen.add(text)
    return ""


@dataclass(frozen=True, kw_only=True)
class Planned(ABC):
    """A plan that can be read from a file, a text, Python values, or a stored document.

    Attributes:
        name: Name of the plan.
        measures: Measures of every run.
        limit_s: Real time that a run may take, in seconds.
        document: The plan as it was given, with its scenario as a table.
    """

    #: The reader for the given kind of plan.
    _reader: ClassVar[type[Any]] = Reader
    #: Name used in faults for a plan given in Python.
    _file: ClassVar[str]

    name: str
    measures: tuple[str, ...]
    limit_s: float | None
    document: dict[str, Any] = field(repr=False)

    @classmethod
    @abstractmethod
    def _read(cls, reader: Any, *, check: bool = True) -> Self:
        """Checks a plan. If `check` is true, also checks its points. Raises `PlanError` with all faults."""

    @classmethod
    @checked(PlanError)
    def load(cls, path: str | os.PathLike[str], *, settings: Mapping[str, Any] | None = None) -> Self:
        """Returns the plan in a TOML file; raises `PlanError` with all faults.

        Args:
            path: The file, or the name of a shipped plan.
            settings: Values that replace settings of the plan's scenario, by path.
        """
        try:
            file, text = named_text(path, "plan")
        except ScenarioError as error:
            raise PlanError(error.faults) from None
        if (other := no_plan(parse(text, file)[0], file)) is not None:
            raise PlanError([other])
        folder = Path(path).parent if Path(path).is_file() else None
        return cls._read(cls._reader.of_text(text, file, folder, settings))

    @classmethod
    @checked(PlanError)
    def of_toml(cls, text: str, *, file: str = "plan", folder: str | os.PathLike[str] = ".") -> Self:
        """Returns the plan in a text. A scenario that the plan names is a file in `folder`, or a shipped one."""
        return cls._read(cls._reader.of_text(text, file, Path(folder)))

    @classmethod
    @checked(PlanError)
    def of(
        cls, base: Scenario | str | os.PathLike[str], document: Mapping[str, Any], *, file: str | None = None
    ) -> Self:
        """Returns the plan of a scenario; `document` has all other keys of a plan file, as Python values."""
        return cls._read(cls._reader.of_values(base, document, file or cls._file))

    @classmethod
    @checked(PlanError)
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        """Returns the plan with this `document`."""
        return cls._read(cls._reader.of_document(document), check=False)

    @property
    def _contents(self) -> list[Any]:
        """Everything that determines the runs, and the measures and series stored for them."""
        document = {key: value for key, value in self.document.items() if key not in ("name", "limits")}
        if document.get("measures"):
            # Labels change neither the runs nor what is stored.
            document["measures"] = _listed_measures(document["measures"])
        return [document, self.measures]

    @cached_property
    def digest(self) -> str:
        """16 hex digits that change with the runs of the plan, and with the measures and series stored for them."""
        return hashlib.sha256(json.dumps(self._contents, separators=(",", ":")).encode()).hexdigest()[:16]


def _listed_measures(measures: list[T] | dict[str, T]) -> list[T]:
    """Returns the measures of a plan without their labels."""
    return list(measures.values() if isinstance(measures, dict) else measures)


def labels_of(measures: Any) -> dict[str, str]:
    """Returns the user's labels of measures, by path, from a plan's list or table of measures.

    >>> labels_of({"link use": "efficiency"}), labels_of(["efficiency"])
    ({'efficiency': 'link use'}, {})
    """
    return {text: label for label, text in measures.items()} if isinstance(measures, Mapping) else {}
