"""The rules of a plan between its keys, and about the settings that its axes name."""

from __future__ import annotations

import itertools
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from celltrain.ensemble.plan import forms
from celltrain.ensemble.plan.axes import (
    CHECKED_POINTS,
    MAX_RUNS,
    MEASURES,
    Axis,
    Drawn,
    Group,
    Interval,
    Seeds,
    Steps,
    Until,
    draw,
)
from celltrain.ensemble.plan.document import Document, Place, RefusedError, as_text, parse
from celltrain.errors import PlanError, ScenarioError
from celltrain.model import overrides
from celltrain.model.arguments import checked
from celltrain.model.expressions import MeasureError, check_syntax, needs_series
from celltrain.model.paths import Key, UnknownKeyError, follow
from celltrain.model.quantities import exact, seconds
from celltrain.model.scenario import no_plan
from celltrain.model.shipped import named_text
from celltrain.running import Recording

if TYPE_CHECKING:
    from typing_extensions import Self

    from celltrain.model.types import Scenario

T = TypeVar("T")
R = TypeVar("R")

#: Columns of every store.
COLUMNS = (
    *("run_key", "point", "seed", "measure", "value", "error"),
    *("fingerprint", "configuration", "version", "profile"),
)
#: Keys of a scenario that a run's key leaves out.
NO_AXES = ("seed", "name")
#: Ratio of the ends of a logarithmic range, within what a float holds.
MOST_RATIO = 10**300
#: Points that are counted in a message.
MOST_COUNTED = 10**30
#: Largest number of measures of a plan.
MOST_MEASURES = 1000


class Reader(Document):
    """Judges the contents of a plan."""

    elsewhere: ClassVar = {"tune": "makes this a plan for celltrain tune; a sweep has [axes] and [seeds] instead"}
    """Keys that only a plan of another kind has, and the problem with each."""

    def read(self) -> Self:
        """Reads the tables of the plan; rules between their keys are for the other methods."""
        self.numbers()
        for key, problem in self.elsewhere.items():
            if key in self.document:
                self.refuse(key, problem)
        self.keys = [key for key in forms.PlanForm.names() if key not in self.elsewhere]
        self.form = forms.read(forms.PlanForm, self, self.keys, leave=self.elsewhere)
        self.name = self.form.name or self.name
        return self

    def kept(self) -> dict[str, Any]:
        """Returns the plan as it was given, its scenario as a table."""
        kept = {key: self.document[key] for key in self.keys if key in self.document and key != "scenario"}
        return {**kept, "name": self.name, "scenario": self.scenario}

    @property
    def limit_s(self) -> float | None:
        """Real time that a run may take, in seconds."""
        time = self.form.limits.time
        return None if time is None else seconds(time)

    def measures(self, default: tuple[str, ...] = MEASURES) -> tuple[str, ...]:
        """Returns the measures."""
        said = self.form.measures
        if said is None:
            return default
        if not said:
            self.refuse("measures", forms.MEASURES, said)
        elif len(said) > MOST_MEASURES:
            self.refuse("measures", f"has {len(said):,} measures; a plan has at most {MOST_MEASURES:,}")
        else:
            for number, text in enumerate(said):
                if text is not None:
                    self.syntax(("measures", number), text, text)
                    if text in said[:number]:
                        self.refuse(("measures", number), "is there twice", text)
            return tuple(text for text in said if text is not None)
        return MEASURES

    def syntax(self, place: Place, text: str, value: Any = ...) -> None:
        """Judges a measure."""
        try:
            check_syntax(text)
        except MeasureError as error:
            self.refuse(place, f"is not a measure: {error}", value)

    def groups(self) -> tuple[Group, ...]:
        """Returns all axes, in groups that move together."""
        axes = self.each(self.form.axes, ("axes",), self._axis)
        groups = (
            *(Group(axes=(axis,)) for axis in axes),
            *self._paired(),
            *self._listed_points(),
            *self._sample(),
        )
        # No two axes have one name, and none sets what another sets; a setting inside it is another matter.
        names: set[str] = set()
        setting: dict[str, Axis] = {}
        for axis in (axis for group in groups for axis in group.axes):
            if axis.name in names:
                self.refuse("", f"has two axes named {axis.name}")
            elif other := setting.get(axis.path):
                self.refuse("", f"sets {axis.path} twice: by {other.name} and by {axis.name}")
            self.varied(axis.name, axis.path)
            names.add(axis.name)
            setting.setdefault(axis.path, axis)
        return groups

    @staticmethod
    def each(table: Mapping[str, T | None] | None, place: Place, make: Callable[[str, T, Place], R]) -> list[R]:
        """Returns what the entries of a table make, without those that are refused."""
        made = []
        for name, said in (table or {}).items():
            if said is not None:
                with suppress(RefusedError):
                    made.append(make(name, said, (*place, name)))
        return made

    def varied(self, axis: str, path: str) -> None:
        """Refuses an axis that varies one of the settings that replace the scenario's own."""
        if path in self.settings:
            typed = f"{path}={self.settings[path].typed}"
            self.faults.append(overrides.fault_of("--set", typed, f"sets what {self.file} varies (axis {axis})"))

    def _paired(self) -> Iterator[Group]:
        """Yields the axes that move together."""
        for number, listed in enumerate(self.form.paired or ()):
            if listed is None:
                continue
            place = ("paired", number)
            axes = tuple(self.each(listed, place, partial(self._axis, alone=False)))
            counts = {axis.name: len(axis) for axis in axes}
            if not listed:
                self.refuse(place, "pairs nothing")
            elif len(set(counts.values())) > 1:
                words = ", ".join(f"{name} has {count}" for name, count in counts.items())
                self.refuse(place, f"moves together what has not as many values: {words}")
            elif again := _again(axes):
                self.refuse(place, f"has {again} twice: what moves together differs in one value at least")
            elif axes:
                yield Group(axes=axes)

    def _listed_points(self) -> Iterator[Group]:
        """Yields the axes of points one by one: a row of values for the axes that it names."""
        said = self.form.points
        if said is None or not said.axes or not said.rows:
            return
        axes, rows, before, seen = said.axes, said.rows, len(self.faults), set()
        for number, row in enumerate(rows):
            place, text = ("points", "rows", number), json.dumps(row, sort_keys=True)
            if not isinstance(row, list) or len(row) != len(axes):
                self.refuse(place, f"is not a list of {len(axes)} values, one for each axis", row)
            elif text in seen:
                self.refuse(place, "is there twice", row)
            seen.add(text)
        if len(self.faults) > before:
            return
        columns = dict(zip(axes, zip(*rows, strict=True), strict=True))
        numbers = {name: number for number, name in enumerate(axes)}

        def column(name: str, one: forms.ColumnForm, place: Place) -> Axis:
            return self._column(name, one, place, columns[name], numbers[name])

        found = self.each(axes, ("points", "axes"), column)
        if len(found) == len(axes):
            yield Group(axes=tuple(found))

    def _column(self, name: str, said: forms.ColumnForm, place: Place, values: Sequence[Any], number: int) -> Axis:
        """Returns an axis whose values are in rows: plain ones, or the labels of a table of values."""
        before = len(self.faults)
        key, labelled = self.key(name, said.path, place), said.values
        for row, value in enumerate(values):
            where = ("points", "rows", row, number)
            if labelled is not None:
                if not isinstance(value, str) or value not in labelled:
                    self.refuse(where, f"is not a label of {name}: {', '.join(labelled)}", value)
            else:
                self._value(value, where, key, f"give it a label in points.axes.{name}.values")
        if len(self.faults) > before:
            raise RefusedError
        settings = tuple(values) if labelled is None else tuple(labelled[value] for value in values)
        labels = None if labelled is None else tuple(values)
        return Axis(name=name, path=key.path, key=key, settings=settings, labels=labels, place=place)

    def _value(self, value: Any, place: Place, key: Key, advice: str) -> None:
        """Judges a listed value without a label."""
        if isinstance(value, Mapping | list):
            self.refuse(place, f"is a table: {advice}", value)
        elif isinstance(value, float) and not math.isfinite(value):
            self.refuse(place, "is not a finite number", value)
        elif key.quantity is not None:
            with suppress(RefusedError):
                self._quantity(value, place, key)

    def _sample(self) -> Iterator[Group]:
        """Yields the axes that are drawn together."""
        said = self.form.sample
        if said is None or not said.axes:
            return
        found = self.each(said.axes, ("sample", "axes"), self.range)
        if said.points is None or len(found) < len(said.axes):
            return
        shares = draw(said.method, len(found), said.points, said.seed)
        axes = []
        for number, (name, (key, interval)) in enumerate(zip(said.axes, found, strict=True)):
            numbers = Drawn(interval=interval, shares=shares[:, number], whole=key.whole)
            axes.append(Axis(name=name, path=key.path, key=key, numbers=numbers, place=("sample", "axes", name)))
        yield Group(axes=tuple(axes))

    def _axis(self, name: str, said: forms.AxisForm, place: Place, *, alone: bool = True) -> Axis:
        """Returns an axis with values, or a range; one that others move with may have a value twice."""
        ranged = [word for word in ("from", "to", "step", "count", "scale") if self.has(*place, word)]
        if said.values is not None:
            if ranged:
                self.refuse(place, f"has values, and {', '.join(ranged)} as well: it is a list or a range")
            return self._listed(name, said, place, alone=alone)
        key = self.key(name, said.path, place)
        if not ranged:
            if not self.has(*place, "values"):
                self.refuse(place, "has no values: a list, or from and to with a step or a count")
            raise RefusedError
        return self._ranged(name, of_range(key, said), said, place)

    def key(self, name: str, said: str | None, place: Place) -> Key:
        """Returns the schema's key for the path of an axis, which is its name if it has none; judges the name too."""
        if said is None and self.has(*place, "path"):
            # The path has been refused.
            raise RefusedError
        path, where = (name, place) if said is None else (said, (*place, "path"))
        if path in NO_AXES:
            word = "what [seeds] is for" if path == "seed" else "not a setting of a run"
            raise self.refused(where, f"is {word}", path)
        if name in COLUMNS:
            problem = f"is the name of a column of every store; call it something else, such as my_{name}"
            self.refuse(place, problem)
        try:
            return follow(path)
        except UnknownKeyError as error:
            raise self.refused(where, str(error), path) from None

    def _listed(self, name: str, said: forms.AxisForm, place: Place, *, alone: bool) -> Axis:
        """Returns an axis whose values are listed."""
        values, at = said.values or [], (*place, "values")
        before = len(self.faults)
        key = None
        with suppress(RefusedError):
            key = self.key(name, said.path, place)
        if not values:
            raise self.refused(at, "is empty: an axis has at least one value")
        seen: set[str] = set()
        for label, setting in values.items() if isinstance(values, dict) else enumerate(values):
            where, text = (*at, label), json.dumps(setting, sort_keys=True)
            finite = not isinstance(setting, float) or math.isfinite(setting)
            if finite and alone and text in seen:
                self.refuse(where, "is there twice", setting)
            seen.add(text)
            if key is not None and not (isinstance(values, dict) and isinstance(setting, Mapping | list)):
                self._value(setting, where, key, "give it a label, as in values = { mine = {...} }")
        if key is None or len(self.faults) > before:
            raise RefusedError
        labels = tuple(values) if isinstance(values, dict) else None
        settings = tuple(values.values()) if isinstance(values, dict) else tuple(values)
        return Axis(name=name, path=key.path, key=key, settings=settings, labels=labels, place=place)

    def _ranged(self, name: str, key: Key, said: forms.AxisForm, place: Place) -> Axis:
        """Returns an axis from one end to another."""
        count, at = said.count, (*place, "step")
        if said.step is None and not self.has(*place, "count"):
            raise self.refused(place, "lacks a step or a count")
        if said.step is not None and self.has(*place, "count"):
            raise self.refused(place, "has a step and a count: one is enough")
        interval = self._interval(said, place, key)
        step = None if said.step is None else self.bound(said.step, at, key)
        if step is not None:
            if interval.log:
                raise self.refused(at, "goes with a linear scale only; give a count", said.step)
            if step <= 0:
                raise self.refused(at, "is not above zero", said.step)
            count = self.count(interval, step, at, said.step)
        if count is None:
            # It has been refused.
            raise RefusedError
        if count == 1 and step is None:
            raise self.refused((*place, "count"), "is too few for two ends; for one value write values = [...]", 1)
        numbers = Steps(interval=interval, length=count, step=step)
        axis = Axis(name=name, path=key.path, key=key, numbers=numbers, place=place)
        if 1 < count <= CHECKED_POINTS:
            settings = [json.dumps(axis.setting(number)) for number in range(count)]
            again = next((one for one, other in itertools.pairwise(settings) if one == other), None)
            if again is not None:
                raise self.refused(place, f"gives {again} twice: the setting takes nothing between")
        return axis

    def range(self, name: str, said: forms.RangeForm, place: Place) -> tuple[Key, Interval]:
        """Returns the key and the ends of a sampled axis or a searched parameter."""
        key = of_range(self.key(name, said.path, place), said)
        return key, self._interval(said, place, key)

    def _interval(self, said: forms.RangeForm, place: Place, key: Key) -> Interval:
        """Returns both ends of a range, and its scale."""
        log = said.scale == "log"
        ends = {"from": said.from_, "to": said.to}
        missing = [word for word, end in ends.items() if end is None]
        if missing:
            raise self.refused(place, f"lacks {' and '.join(missing)}")
        bounds = self.each(ends, place, lambda _, end, at: self.bound(end, at, key))
        if len(bounds) < len(ends):
            raise RefusedError
        low, high = bounds
        if key.is_threshold and key.whole and low < 2:
            cells = f"to = {as_text(said.to)} is a number of cells: begin at 2 cells or more"
            raise self.refused((*place, "from"), f"is a share of the buffer, and {cells}", said.from_)
        if not low < high:
            raise self.refused((*place, "to"), f"is not above from = {as_text(said.from_)}", said.to)
        if log and low <= 0:
            raise self.refused((*place, "from"), "is not above zero, and the scale is logarithmic", said.from_)
        if log and high > MOST_RATIO * low:
            raise self.refused((*place, "to"), f"is more than 10^300 times from = {as_text(said.from_)}", said.to)
        return Interval(low=low, high=high, log=log)

    def count(self, interval: Interval, step: Fraction, place: Place, said: Any) -> int:
        """Returns how many values a range has by a step."""
        count = math.floor((interval.high - interval.low) / step) + 1
        if count > forms.MOST_VALUES:
            problem = f"is too small for the range, which would have more than {forms.MOST_VALUES:,} values"
            raise self.refused(place, problem, said)
        return count

    def bound(self, said: Any, place: Place, key: Key) -> Fraction:
        """Returns an end of a range, or its step."""
        if key.quantity is not None:
            return self._quantity(said, place, key)
        if not isinstance(said, int | float) or isinstance(said, bool) or not math.isfinite(said):
            raise self.refused(place, f"is not a plain number, as {key.path} takes", said)
        if key.whole and said != int(said):
            raise self.refused(place, f"is not a whole number, as {key.path} takes", said)
        return exact(said)

    def _quantity(self, said: Any, place: Place, key: Key) -> Fraction:
        """Returns a number with a unit."""
        assert key.quantity is not None, "only keys that take a quantity get here"
        expected = key.quantity.expected
        try:
            if isinstance(said, str):
                return key.quantity.read(said)
        except ValueError as error:
            expected = str(error)
        raise self.refused(place, f"is not {expected}, as {key.path} takes", said)

    def seeds(self, measures: Sequence[str]) -> Seeds:
        """Returns the seeds of each point."""
        said, until = self.form.seeds, self.form.seeds.until
        if until is None:
            return Seeds(first=said.first, count=said.count)
        if self.has("seeds", "count"):
            self.refuse("seeds", "has a count and until: it is one or the other")
        if until.measure is not None and until.measure not in measures:
            problem = f"is not measured; measures are {', '.join(measures)}"
            self.refuse("seeds.until.measure", problem, until.measure)
        most = until.at_most or until.at_least
        least_is_right = all(fault.key != "seeds.until.at_least" for fault in self.faults)
        if most < until.at_least and least_is_right:
            self.refuse("seeds.until.at_most", f"is below at_least = {until.at_least}", most)
        measure, width = until.measure or "", until.interval or 1.0
        narrow = Until(measure=measure, interval=width, at_least=until.at_least, at_most=most)
        return Seeds(first=said.first, count=most, until=narrow)

    def recording(self, measures: Sequence[str]) -> Recording | None:
        """Returns the series that every run records."""
        said = self.form.series
        if said is None:
            return None
        traced = next((text for text in measures if needs_series(text)), None)
        if traced is not None:
            problem = f"cannot be recorded with the measure {traced!r}, which reads a trace of its own"
            self.refuse("series", problem)
        ports = None if said.ports is None else tuple(said.ports)
        return Recording(trace=tuple(said.record or ()), step=said.step or "", ports=ports)

    def size(self, groups: Sequence[Group], seeds: int) -> None:
        """Refuses more runs than anybody waits for; a plan with other faults may mean another size."""
        if self.faults:
            return
        points = 1
        for group in groups:
            points = min(points * len(group), MOST_COUNTED + 1)
        runs = points * seeds
        if runs > MAX_RUNS:
            counted = f"{points:,} points and {runs:,} runs" if points <= MOST_COUNTED else "more than 10^30 points"
            problem = f"has {counted}; nobody waits for more than {MAX_RUNS:,}: take fewer values, or a [sample]"
            self.refuse("", problem)


def of_range(key: Key, said: forms.RangeForm) -> Key:
    """Returns the key for the numbers of a range: thresholds up to a whole number above 1 are cells."""
    to = said.to
    in_cells = isinstance(to, int | float) and to > 1 and math.isfinite(to) and to == int(to)
    return replace(key, whole=True, unit="cells") if key.is_threshold and in_cells else key


def _again(axes: Sequence[Axis]) -> str:
    """Returns the values of axes that move together which are there twice, all of them; empty if there are none."""
    # A range has no value twice, and may be too long to go through.
    if not axes or any(axis.numbers is not None for axis in axes):
        return ""
    seen: set[str] = set()
    for settings in zip(*(axis.settings for axis in axes), strict=True):
        text = json.dumps(settings, sort_keys=True)
        if text in seen:
            return ", ".join(f"{axis.name} = {as_text(one)}" for axis, one in zip(axes, settings, strict=True))
        seen.add(text)
    return ""


class Readable(ABC):
    """A plan that can be read from a file, a text, Python values, or the document that a folder keeps."""

    _reader: ClassVar[type[Any]] = Reader
    """Judges plans of this kind."""
    _file: ClassVar[str]
    """The name of a plan from Python, in faults."""

    @classmethod
    @abstractmethod
    def _read(cls, reader: Any, *, check: bool = True) -> Self:
        """Judges a plan; `check` also its points. Raises `PlanError` with everything that is wrong with it."""

    @classmethod
    @checked(PlanError)
    def load(cls, path: str | os.PathLike[str], *, settings: Mapping[str, Any] | None = None) -> Self:
        """Returns the plan in a TOML file; raises `PlanError` with everything that is wrong with it.

        Args:
            path: The file, or the name of a shipped plan.
            settings: Values that replace those of the plan's scenario, by path into the scenario.
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
        """Returns the plan in a text; `folder` has the scenario that it names."""
        return cls._read(cls._reader.of_text(text, file, Path(folder)))

    @classmethod
    @checked(PlanError)
    def of(
        cls, base: Scenario | str | os.PathLike[str], document: Mapping[str, Any], *, file: str | None = None
    ) -> Self:
        """Returns the plan of a scenario and everything else as in a file, as Python values."""
        return cls._read(cls._reader.of_values(base, document, file or cls._file))

    @classmethod
    @checked(PlanError)
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        """Returns the plan that has this `document`."""
        return cls._read(cls._reader.of_document(document), check=False)
