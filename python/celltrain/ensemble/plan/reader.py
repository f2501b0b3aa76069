"""Plans from files and from Python: whether what they say goes together, and what it comes to."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.ensemble.plan import shapes
from celltrain.ensemble.plan.axis import Axis, Drawn, Interval, Steps, draw
from celltrain.ensemble.plan.base import Base, base_of, plain, with_tables
from celltrain.ensemble.plan.contents import CHECKED_POINTS, MAX_RUNS, MEASURES, Contents, Group, Seeds, Until
from celltrain.ensemble.plan.document import Diagnostics, Place, as_text, parse
from celltrain.ensemble.plan.form import read
from celltrain.ensemble.plan.points import judge_points
from celltrain.ensemble.plan.shapes import MOST_VALUES, PlanForm
from celltrain.errors import PlanError, ScenarioError
from celltrain.model.expressions import MeasureError, check_syntax, needs_series
from celltrain.model.paths import Key, UnknownKeyError, follow
from celltrain.model.quantities import exact, seconds
from celltrain.model.scenario import no_plan
from celltrain.model.shipped import named_text
from celltrain.running import Recording

if TYPE_CHECKING:
    from celltrain.model.types import Scenario

#: Columns that are every store's.
COLUMNS = (
    *("run_key", "point", "seed", "measure", "value", "error"),
    *("fingerprint", "configuration", "version", "profile"),
)
#: What is no part of a run's key.
NO_AXES = ("seed", "name")
#: What only a plan of another kind says.
NO_SWEEP = {"tune": "makes this a plan for celltrain tune; a sweep has [axes] and [seeds] instead"}
#: Between the ends of a logarithmic range: what a float holds, and to spare.
MOST_RATIO = 10**300
#: Points that are counted in a message.
MOST_COUNTED = 10**30
#: What is measured; every run is asked for each.
MOST_MEASURES = 1000


def read_file(path: Path, settings: Mapping[str, Any] | None = None) -> Contents:
    """The plan in a file, or a shipped one by its name."""
    return read_toml(*plan_text(path), settings)


def plan_text(path: Path) -> tuple[str, str, Path | None]:
    """A plan's text, how messages call it, and the folder it stands in; None where it is a shipped one."""
    try:
        file, text = named_text(path, "plan")
    except ScenarioError as error:
        raise PlanError(error.faults) from None
    if (other := no_plan(parse(text, file)[0], file)) is not None:
        raise PlanError([other])
    return text, file, path.parent if path.is_file() else None


def read_toml(text: str, file: str, folder: Path | None, settings: Mapping[str, Any] | None = None) -> Contents:
    """The plan in a text; `settings` replace those of its scenario."""
    document, lines = parse(text, file)
    diagnostics = Diagnostics(file, lines, document)
    base = Base.named(document.get("scenario"), diagnostics, folder).with_settings(settings or {}, diagnostics)
    diagnostics.document = with_tables(diagnostics.document, base.table, folder, diagnostics)
    name = Path(file).stem if file.endswith(".toml") else ""
    return Reader(diagnostics, base).plan(name)


def read_values(
    base: Scenario | str | os.PathLike[str], document: Mapping[str, Any], file: str, *, unused: bool = True
) -> Contents:
    """The plan of Python values; `unused`: refuse axes that are left out at every point."""
    diagnostics = Diagnostics(file, None, plain(document))
    found = base_of(base, diagnostics)
    diagnostics.document = with_tables(diagnostics.document, found.table, None, diagnostics)
    return Reader(diagnostics, found).plan(found.name, unused=unused)


def read_again(document: Mapping[str, Any]) -> Contents:
    """The plan that a store keeps."""
    return Reader(Diagnostics("plan", None, document), Base.again(document)).plan("", check=False)


class Reader:
    """Judges what a plan says, and collects its faults."""

    def __init__(self, diagnostics: Diagnostics, base: Base, elsewhere: Mapping[str, str] = NO_SWEEP) -> None:
        self.diagnostics = diagnostics
        self.base = base
        diagnostics.numbers()
        for key, problem in elsewhere.items():
            if key in diagnostics.document:
                diagnostics.refuse(key, problem)
        self.keys = [key for key in PlanForm.names() if key not in elsewhere]
        self.form = read(PlanForm, diagnostics, self.keys, leave=elsewhere)

    def plan(self, default_name: str, *, check: bool = True, unused: bool = True) -> Contents:
        """The plan; raises `PlanError` with everything that is wrong with it."""
        diagnostics, form = self.diagnostics, self.form
        measures = MEASURES if form.measures is None else self.measures(form.measures)
        groups = self.groups()
        seeds = self.seeds(measures)
        recording = None if form.series is None else self.recording(form.series, measures)
        # The size that is refused is that of what was meant, so nothing else is wrong yet.
        if not diagnostics.faults:
            self.size(groups, seeds)
        if diagnostics.faults:
            raise PlanError(diagnostics.faults)
        name = form.name or default_name
        plan = Contents(
            name=name,
            measures=measures,
            groups=tuple(groups),
            seeds=seeds,
            limit_s=self.limit_s,
            recording=recording,
            base=self.base.table,
            document=self.kept(name),
        )
        if check:
            judge_points(plan, diagnostics, self.base, unused=unused)
        if diagnostics.faults:
            raise PlanError(diagnostics.faults)
        return plan

    def kept(self, name: str) -> dict[str, Any]:
        """The plan as it was given, its scenario as a table."""
        document = self.diagnostics.document
        kept = {key: document[key] for key in self.keys if key in document and key != "scenario"}
        return {**kept, "name": name, "scenario": self.base.table}

    @property
    def limit_s(self) -> float | None:
        """What a run may take, in seconds."""
        time = self.form.limits.time
        return None if time is None else seconds(time)

    def measures(self, said: Sequence[str | None]) -> tuple[str, ...]:
        """What is measured."""
        if not said:
            self.diagnostics.refuse("measures", 'is not a list of measures such as "efficiency"', said)
            return MEASURES
        if len(said) > MOST_MEASURES:
            self.diagnostics.refuse("measures", f"has {len(said):,} measures; a plan has at most {MOST_MEASURES:,}")
            return MEASURES
        for number, text in enumerate(said):
            if text is None:
                continue
            place = ("measures", number)
            try:
                check_syntax(text)
            except MeasureError as error:
                self.diagnostics.refuse(place, f"is not a measure: {error}", text)
            if text in said[:number]:
                self.diagnostics.refuse(place, "is there twice", text)
        return tuple(text for text in said if text is not None)

    def groups(self) -> list[Group]:
        """All that is varied."""
        groups = [*self.axes(), *self.paired(), *self.listed_points(), *self.sample()]
        self.distinct(groups)
        return groups

    def axes(self) -> Iterator[Group]:
        """The axes that are crossed."""
        for name, said in (self.form.axes or {}).items():
            axis = self.axis(name, said, ("axes", name))
            if axis is not None:
                yield Group(axes=(axis,))

    def paired(self) -> Iterator[Group]:
        """The axes that move together."""
        for number, listed in enumerate(self.form.paired or ()):
            if listed is None:
                continue
            place = ("paired", number)
            axes = [self.axis(name, one, (*place, name), alone=False) for name, one in listed.items()]
            found = [axis for axis in axes if axis is not None]
            if not listed:
                self.diagnostics.refuse(place, "pairs nothing")
            counts = {axis.name: axis_length(axis) for axis in found}
            if len(set(counts.values())) > 1:
                words = ", ".join(f"{name} has {count}" for name, count in counts.items())
                self.diagnostics.refuse(place, f"moves together what has not as many values: {words}")
            elif again := _again(found):
                self.diagnostics.refuse(place, f"has {again} twice: what moves together differs in one value at least")
            elif found:
                yield Group(axes=tuple(found))

    def listed_points(self) -> Iterator[Group]:
        """Points one by one: a row of values for the axes that it names."""
        said, diagnostics = self.form.points, self.diagnostics
        if said is None or not said.axes or not said.rows:
            return
        before, seen = len(diagnostics.faults), set()
        for number, row in enumerate(said.rows):
            place, text = ("points", "rows", number), json.dumps(row, sort_keys=True)
            if not isinstance(row, list) or len(row) != len(said.axes):
                diagnostics.refuse(place, f"is not a list of {len(said.axes)} values, one for each axis", row)
            elif text in seen:
                diagnostics.refuse(place, "is there twice", row)
            seen.add(text)
        if len(diagnostics.faults) > before:
            return
        found = [
            self.column(name, one, [row[place] for row in said.rows], place)
            for place, (name, one) in enumerate(said.axes.items())
        ]
        if found and all(axis is not None for axis in found):
            yield Group(axes=tuple(axis for axis in found if axis is not None))

    def column(self, name: str, said: shapes.ColumnForm | None, values: list[Any], number: int) -> Axis | None:
        """An axis whose values stand in rows: plain ones, or the labels of a table of values."""
        if said is None:
            return None
        diagnostics, place = self.diagnostics, ("points", "axes", name)
        key, labelled, before = self.key(name, said.path, place), said.values, len(diagnostics.faults)
        for row, value in enumerate(values):
            where = ("points", "rows", row, number)
            if labelled is not None:
                if not isinstance(value, str) or value not in labelled:
                    diagnostics.refuse(where, f"is not a label of {name}: {', '.join(labelled)}", value)
            elif isinstance(value, Mapping | list):
                diagnostics.refuse(where, f"is a table: give it a label in points.axes.{name}.values", value)
            elif isinstance(value, float) and not math.isfinite(value):
                diagnostics.refuse(where, "is not a finite number", value)
            elif key is not None and key.quantity is not None:
                self.quantity(value, where, key)
        if key is None or len(diagnostics.faults) > before:
            return None
        if labelled is None:
            return Axis(name=name, path=key.path, key=key, settings=tuple(values))
        settings = tuple(labelled[value] for value in values)
        return Axis(name=name, path=key.path, key=key, settings=settings, labels=tuple(values))

    def sample(self) -> Iterator[Group]:
        """The axes that are drawn together."""
        said = self.form.sample
        if said is None or not said.axes:
            return
        found: list[tuple[str, Key, Interval]] = []
        for name, one in said.axes.items():
            if one is None:
                continue
            place = ("sample", "axes", name)
            key = self.of_range(self.key(name, one.path, place), one)
            interval = None if key is None else self.interval(one, place, key)
            if key is not None and interval is not None:
                found.append((name, key, interval))
        if said.points is None or len(found) < len(said.axes):
            return
        shares = draw(said.method, len(found), said.points, said.seed)
        yield Group(
            axes=tuple(
                Axis(
                    name=name,
                    path=key.path,
                    key=key,
                    numbers=Drawn(interval=interval, shares=shares[:, place], whole=key.whole),
                )
                for place, (name, key, interval) in enumerate(found)
            )
        )

    def axis(self, name: str, said: shapes.AxisForm | None, place: Place, *, alone: bool = True) -> Axis | None:
        """An axis with values, or a range; one that others move with may have a value again."""
        if said is None:
            return None
        diagnostics = self.diagnostics
        key = self.key(name, said.path, place)
        ranged = [word for word in ("from", "to", "step", "count", "scale") if diagnostics.has(*place, word)]
        if said.values is not None:
            if ranged:
                diagnostics.refuse(place, f"has values, and {', '.join(ranged)} as well: it is a list or a range")
            return self.listed(name, key, said.values, (*place, "values"), alone=alone)
        if not ranged:
            if diagnostics.has(*place, "values"):
                return None
            diagnostics.refuse(place, "has no values: a list, or from and to with a step or a count")
            return None
        if key is None:
            return None
        return self.ranged(name, self.of_range(key, said) or key, said, place)

    def key(self, name: str, said: str | None, place: Place) -> Key | None:
        """What the schema says of an axis's path, which is its name where it has none; judges the name too."""
        if said is None and self.diagnostics.has(*place, "path"):
            # What stands there has been refused.
            return None
        path, where = (name, place) if said is None else (said, (*place, "path"))
        if path in NO_AXES:
            word = "what [seeds] is for" if path == "seed" else "not a setting of a run"
            self.diagnostics.refuse(where, f"is {word}", path)
            return None
        if name in COLUMNS:
            self.diagnostics.refuse(
                place, f"is the name of a column of every store; call it something else, such as my_{name}"
            )
        try:
            return follow(path)
        except UnknownKeyError as error:
            self.diagnostics.refuse(where, str(error), path)
            return None

    @staticmethod
    def of_range(key: Key | None, said: shapes.RangeForm) -> Key | None:
        """The key for the numbers of a range: thresholds up to a whole number above 1 are cells."""
        if key is None or not key.is_threshold or not isinstance(said.to, int | float):
            return key
        return replace(key, whole=True, unit="cells") if said.to > 1 and said.to == int(said.to) else key

    def listed(
        self, name: str, key: Key | None, said: list[Any] | dict[str, Any], place: Place, *, alone: bool = True
    ) -> Axis | None:
        """An axis whose values are listed."""
        labels = tuple(said) if isinstance(said, dict) else None
        settings = list(said.values()) if isinstance(said, dict) else said
        if not settings:
            self.diagnostics.refuse(place, "is empty: an axis has at least one value")
            return None
        before = len(self.diagnostics.faults)
        seen: set[str] = set()
        for number, setting in enumerate(settings):
            where = (*place, number if labels is None else labels[number])
            text = json.dumps(setting, sort_keys=True)
            if isinstance(setting, float) and not math.isfinite(setting):
                self.diagnostics.refuse(where, "is not a finite number", setting)
            elif text in seen and alone:
                self.diagnostics.refuse(where, "is there twice", setting)
            seen.add(text)
            if isinstance(setting, Mapping | list) and labels is None:
                self.diagnostics.refuse(where, "is a table: give it a label, as in values = { mine = {...} }", setting)
            elif key is not None and key.quantity is not None and not isinstance(setting, Mapping):
                self.quantity(setting, where, key)
        if key is None or len(self.diagnostics.faults) > before:
            return None
        return Axis(name=name, path=key.path, key=key, settings=tuple(settings), labels=labels)

    def ranged(self, name: str, key: Key, said: shapes.AxisForm, place: Place) -> Axis | None:
        """An axis from one end to another."""
        diagnostics = self.diagnostics
        interval = self.interval(said, place, key)
        step = None if said.step is None else self.bound(said.step, (*place, "step"), key)
        count = said.count
        if (said.step is None) != diagnostics.has(*place, "count"):
            diagnostics.refuse(
                place, "lacks a step or a count" if said.step is None else "has a step and a count: one is enough"
            )
            return None
        if interval is None or (step is None and count is None):
            return None
        if step is not None:
            if interval.log:
                diagnostics.refuse((*place, "step"), "goes with a linear scale only; give a count", said.step)
                return None
            if step <= 0:
                diagnostics.refuse((*place, "step"), "is not above zero", said.step)
                return None
            count = self.places(interval, step, (*place, "step"), said.step)
            if count is None:
                return None
        assert count is not None, "a range has a step or a count"
        if count == 1 and step is None:
            diagnostics.refuse((*place, "count"), "is too few for two ends; for one value write values = [...]", 1)
            return None
        numbers = Steps(interval=interval, length=count, step=step)
        axis = Axis(name=name, path=key.path, key=key, numbers=numbers)
        if 1 < count <= CHECKED_POINTS:
            settings = [json.dumps(axis.setting(number)) for number in range(count)]
            again = next((s for s, t in itertools.pairwise(settings) if s == t), None)
            if again is not None:
                diagnostics.refuse(place, f"gives {again} twice: the setting takes nothing between")
                return None
        return axis

    def interval(self, said: shapes.RangeForm, place: Place, key: Key) -> Interval | None:
        """Both ends of a range, and its scale."""
        diagnostics, scale = self.diagnostics, said.scale
        missing = [word for word, end in (("from", said.from_), ("to", said.to)) if end is None]
        if missing:
            diagnostics.refuse(place, f"lacks {' and '.join(missing)}")
            return None
        low = self.bound(said.from_, (*place, "from"), key)
        high = self.bound(said.to, (*place, "to"), key)
        if low is None or high is None:
            return None
        if key.is_threshold and key.whole and low < 2:
            problem = (
                f"is a share of the buffer, and to = {as_text(said.to)} is a number of cells: begin at 2 cells or more"
            )
            diagnostics.refuse((*place, "from"), problem, said.from_)
            return None
        if not low < high:
            diagnostics.refuse((*place, "to"), f"is not above from = {as_text(said.from_)}", said.to)
            return None
        if scale == "log" and low <= 0:
            diagnostics.refuse((*place, "from"), "is not above zero, and the scale is logarithmic", said.from_)
            return None
        if scale == "log" and high > MOST_RATIO * low:
            diagnostics.refuse((*place, "to"), f"is more than 10^300 times from = {as_text(said.from_)}", said.to)
            return None
        return Interval(low=low, high=high, log=scale == "log")

    def places(self, interval: Interval, step: Fraction, place: Place, said: Any) -> int | None:
        """How many values a range has by this step; None when that is refused."""
        count = math.floor((interval.high - interval.low) / step) + 1
        if count > MOST_VALUES:
            self.diagnostics.refuse(
                place, f"is too small for the range, which would have more than {MOST_VALUES:,} values", said
            )
            return None
        return count

    def bound(self, said: Any, place: Place, key: Key) -> Fraction | None:
        """An end of a range, or its step."""
        if key.quantity is not None:
            return self.quantity(said, place, key)
        if not isinstance(said, int | float) or isinstance(said, bool) or not math.isfinite(said):
            self.diagnostics.refuse(place, f"is not a plain number, as {key.path} takes", said)
            return None
        if key.whole and said != int(said):
            self.diagnostics.refuse(place, f"is not a whole number, as {key.path} takes", said)
            return None
        return exact(said)

    def quantity(self, said: Any, place: Place, key: Key) -> Fraction | None:
        """A number with a unit."""
        assert key.quantity is not None, "asked of keys that take a quantity"
        expected = key.quantity.expected
        try:
            if isinstance(said, str):
                return key.quantity.read(said)
        except ValueError as error:
            expected = str(error)
        self.diagnostics.refuse(place, f"is not {expected}, as {key.path} takes", said)
        return None

    def distinct(self, groups: Sequence[Group]) -> None:
        """No two axes have one name, and none sets what another sets; what stands inside it is another matter."""
        names: set[str] = set()
        setting: dict[str, Axis] = {}
        for axis in (axis for group in groups for axis in group.axes):
            if axis.name in names:
                self.diagnostics.refuse("", f"has two axes named {axis.name}")
            elif other := setting.get(axis.path):
                self.diagnostics.refuse("", f"sets {axis.path} twice: by {other.name} and by {axis.name}")
            names.add(axis.name)
            setting.setdefault(axis.path, axis)

    def seeds(self, measures: Sequence[str]) -> Seeds:
        """How often each point is run."""
        said, diagnostics = self.form.seeds, self.diagnostics
        until = said.until
        if until is None:
            return Seeds(first=said.first, count=said.count)
        if diagnostics.has("seeds", "count"):
            diagnostics.refuse("seeds", "has a count and until: it is one or the other")
        if until.measure is not None and until.measure not in measures:
            problem = f"is not measured; measures are {', '.join(measures)}"
            diagnostics.refuse("seeds.until.measure", problem, until.measure)
        most = until.at_most or until.at_least
        least_is_right = all(fault.key != "seeds.until.at_least" for fault in diagnostics.faults)
        if most < until.at_least and least_is_right:
            diagnostics.refuse("seeds.until.at_most", f"is below at_least = {until.at_least}", most)
        return Seeds(
            first=said.first,
            count=most,
            until=Until(
                measure=until.measure or "", interval=until.interval or 1.0, at_least=until.at_least, at_most=most
            ),
        )

    def recording(self, said: shapes.SeriesForm, measures: Sequence[str]) -> Recording:
        """What every run records."""
        traced = next((text for text in measures if needs_series(text)), None)
        if traced is not None:
            self.diagnostics.refuse(
                "series", f"cannot be recorded with the measure {traced!r}, which reads a trace of its own"
            )
        ports = None if said.ports is None else tuple(said.ports)
        return Recording(trace=tuple(said.record or ()), step=said.step or "", ports=ports)

    def size(self, groups: Sequence[Group], seeds: Seeds) -> None:
        """Refuses more runs than anybody waits for."""
        # len() stops at what a machine can count; a plan that is refused need not.
        points = 1
        for group in groups:
            points *= axis_length(group.axes[0])
            if points > MOST_COUNTED:
                break
        runs = points * seeds.count
        if runs > MAX_RUNS:
            counted = f"{points:,} points and {runs:,} runs" if points <= MOST_COUNTED else "more than 10^30 points"
            problem = f"has {counted}; nobody waits for more than {MAX_RUNS:,}: take fewer values, or a [sample]"
            self.diagnostics.refuse("", problem)


def _again(axes: Sequence[Axis]) -> str:
    """Values of axes that move together which are there twice, all of them; empty where there are none."""
    # A range has no value twice, and may be longer than can be gone through.
    if not axes or any(axis.numbers is not None for axis in axes):
        return ""
    seen: set[str] = set()
    for settings in zip(*(axis.settings for axis in axes), strict=True):
        text = json.dumps(settings, sort_keys=True)
        if text in seen:
            return ", ".join(f"{axis.name} = {as_text(one)}" for axis, one in zip(axes, settings, strict=True))
        seen.add(text)
    return ""


def axis_length(axis: Axis) -> int:
    """How many values an axis has, however many."""
    return axis.numbers.length if isinstance(axis.numbers, Steps) else len(axis)
