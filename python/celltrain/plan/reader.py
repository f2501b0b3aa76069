"""Plans from files and from Python: what they say, and everything that is wrong with them."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.errors import PlanError, ScenarioError
from celltrain.expressions import MeasureError, check_syntax, needs_series
from celltrain.measures import SERIES
from celltrain.paths import Key, UnknownKeyError, follow
from celltrain.plan.axis import Axis, Drawn, Interval, Steps, draw
from celltrain.plan.base import Base, base_of, plain
from celltrain.plan.contents import CHECKED_POINTS, MAX_RUNS, MEASURES, SEEDS, Contents, Group, Seeds, Until
from celltrain.plan.document import Diagnostics, as_text, join, parse
from celltrain.plan.points import judge_points
from celltrain.quantities import exact, seconds
from celltrain.running import Recording
from celltrain.scenario import read_text
from celltrain.text import shown as shown_path

if TYPE_CHECKING:
    from celltrain.models import Scenario

KEYS = ("name", "scenario", "measures", "axes", "paired", "points", "sample", "seeds", "limits", "series")
#: Columns that are every store's.
COLUMNS = (
    *("run_key", "point", "seed", "measure", "value", "error"),
    *("fingerprint", "configuration", "version", "profile"),
)
#: What is no part of a run's key.
NO_AXES = ("seed", "name")
METHODS = ("sobol", "latin_hypercube")
SCALES = ("linear", "log")
#: A sample is drawn as a whole.
MAX_SAMPLE = 1 << 20
#: The ledger counts seeds in 63 bits.
MAX_SEED = (1 << 63) - 1
#: A range has so many values at most; nobody runs as many.
MOST_VALUES = 1 << 62
#: Between the ends of a logarithmic range: what a float holds, and to spare.
MOST_RATIO = 10**300
#: Of real time, and between two samples: thirty years.
MOST_SECONDS = 10**9
#: Points that are counted in a message.
MOST_COUNTED = 10**30
#: What is measured; every run is asked for each.
MOST_MEASURES = 1000


def read_file(path: Path) -> Contents:
    """The plan in a file."""
    try:
        text = read_text(path)
    except ScenarioError as error:
        raise PlanError(error.faults) from None
    return read_toml(text, shown_path(path), path.parent)


def read_toml(text: str, file: str, folder: Path) -> Contents:
    """The plan in a text."""
    document, lines = parse(text, file)
    diagnostics = Diagnostics(file, lines)
    base = Base.named(document.get("scenario"), diagnostics, folder)
    name = Path(file).stem if file.endswith(".toml") else ""
    return Reader(document, diagnostics, base).plan(name)


def read_values(base: Scenario | str | os.PathLike[str], document: Mapping[str, Any], file: str) -> Contents:
    """The plan of Python values."""
    diagnostics = Diagnostics(file, None)
    known = plain(document)
    found = base_of(base, diagnostics)
    return Reader(known, diagnostics, found).plan(found.name)


def read_again(document: Mapping[str, Any]) -> Contents:
    """The plan that a store keeps."""
    diagnostics = Diagnostics("plan", None)
    return Reader(dict(document), diagnostics, Base.again(document)).plan("", check=False)


class Reader:
    """Reads the parts of a plan, and collects their faults."""

    def __init__(
        self, document: dict[str, Any], diagnostics: Diagnostics, base: Base, known: Sequence[str] = KEYS
    ) -> None:
        self.diagnostics = diagnostics
        self.base = base
        if "tune" in document and "tune" not in known:
            diagnostics.refuse("tune", "makes this a plan for celltrain tune; a sweep has [axes] and [seeds] instead")
            document = {key: value for key, value in document.items() if key != "tune"}
        diagnostics.numbers(document)
        self.document = diagnostics.table(document, "", known)

    def plan(self, default_name: str, *, check: bool = True) -> Contents:
        """The plan; raises `PlanError` with everything that is wrong with it."""
        diagnostics, document = self.diagnostics, self.document
        name = diagnostics.text(document.get("name") or None, "name", "a text") or default_name
        measures = self.measures(document.get("measures"))
        groups = self.groups()
        seeds = self.seeds(document.get("seeds"), measures)
        limits = diagnostics.table(document.get("limits"), "limits", ("time",))
        recording = self.recording(document.get("series"), measures)
        limit_s = self.time(limits.get("time"), "limits.time")
        # The size that is refused is that of what was meant, so nothing else is wrong yet.
        if not diagnostics.faults:
            self.size(groups, seeds)
        if diagnostics.faults:
            raise PlanError(diagnostics.faults)
        kept = {key: document[key] for key in KEYS if key in document and key != "scenario"}
        plan = Contents(
            name=name,
            measures=measures,
            groups=tuple(groups),
            seeds=seeds,
            limit_s=limit_s,
            recording=recording,
            base=self.base.table,
            document={**kept, "name": name, "scenario": self.base.table},
        )
        if check:
            judge_points(plan, diagnostics, self.base)
        if diagnostics.faults:
            raise PlanError(diagnostics.faults)
        return plan

    def measures(self, said: Any) -> tuple[str, ...]:
        """What is measured."""
        if said is None:
            return MEASURES
        if not isinstance(said, list) or not said:
            self.diagnostics.refuse("measures", 'is not a list of measures such as "efficiency"', said)
            return MEASURES
        if len(said) > MOST_MEASURES:
            self.diagnostics.refuse("measures", f"has {len(said):,} measures; a plan has at most {MOST_MEASURES:,}")
            return MEASURES
        for place, text in enumerate(said):
            path = join("measures", place)
            if not isinstance(text, str):
                self.diagnostics.refuse(path, 'is not a measure such as "efficiency"', text)
                continue
            try:
                check_syntax(text)
            except MeasureError as error:
                self.diagnostics.refuse(path, f"is not a measure: {error}", text)
            if text in said[:place]:
                self.diagnostics.refuse(path, "is there twice", text)
        return tuple(text for text in said if isinstance(text, str))

    def groups(self) -> list[Group]:
        """All that is varied."""
        groups = [*self.axes(), *self.paired(), *self.listed_points(), *self.sample()]
        self.distinct(groups)
        return groups

    def axes(self) -> Iterator[Group]:
        """The axes that are crossed."""
        for name, said in self.diagnostics.table(self.document.get("axes"), "axes").items():
            path = join("axes", name)
            axis = self.axis(name, said, path)
            if axis is not None:
                yield Group(axes=(axis,))

    def paired(self) -> Iterator[Group]:
        """The axes that move together."""
        said = self.document.get("paired", [])
        if not isinstance(said, list):
            self.diagnostics.refuse("paired", "is not a list of tables: write [[paired]]", said)
            return
        for place, table in enumerate(said):
            path = join("paired", place)
            listed = self.diagnostics.table(table, path)
            axes = [self.axis(name, one, join(path, name)) for name, one in listed.items()]
            found = [axis for axis in axes if axis is not None]
            if not listed:
                self.diagnostics.refuse(path, "pairs nothing")
            counts = {axis.name: axis_length(axis) for axis in found}
            if len(set(counts.values())) > 1:
                words = ", ".join(f"{name} has {count}" for name, count in counts.items())
                self.diagnostics.refuse(path, f"moves together what has not as many values: {words}")
            elif found:
                yield Group(axes=tuple(found))

    def listed_points(self) -> Iterator[Group]:
        """Points one by one: a row of values for the axes that it names."""
        diagnostics = self.diagnostics
        if "points" not in self.document:
            return
        said = diagnostics.table(self.document["points"], "points", ("axes", "rows"))
        listed, rows = diagnostics.table(said.get("axes"), "points.axes"), said.get("rows")
        if not listed:
            diagnostics.refuse("points", "has no axes: a table of names and paths, in the order of the rows' values")
        if not isinstance(rows, list) or not rows:
            diagnostics.refuse("points", "has no rows: a list of lists, a value for each axis in each")
            return
        before, seen = len(diagnostics.faults), set()
        for place, row in enumerate(rows):
            text = json.dumps(row, sort_keys=True)
            if not isinstance(row, list) or len(row) != len(listed):
                problem = f"is not a list of {len(listed)} values, one for each axis"
                diagnostics.refuse(join("points.rows", place), problem, row)
            elif text in seen:
                diagnostics.refuse(join("points.rows", place), "is there twice", row)
            seen.add(text)
        if len(diagnostics.faults) > before:
            return
        found = [
            self.column(name, one, [row[place] for row in rows], place)
            for place, (name, one) in enumerate(listed.items())
        ]
        if found and all(axis is not None for axis in found):
            yield Group(axes=tuple(axis for axis in found if axis is not None))

    def column(self, name: str, said: Any, values: list[Any], place: int) -> Axis | None:
        """An axis whose values stand in rows: plain ones, or the labels of a table of values."""
        diagnostics, path = self.diagnostics, join("points.axes", name)
        table = diagnostics.table({"path": said} if isinstance(said, str) else said, path, ("path", "values"))
        if table.get("path", name) not in NO_AXES:
            self.named(name, path)
        key = self.key(table.get("path", name), path if isinstance(said, str) else join(path, "path"))
        labelled, before = table.get("values"), len(diagnostics.faults)
        if labelled is not None and (not isinstance(labelled, Mapping) or not labelled):
            diagnostics.refuse(join(path, "values"), "is not a table of values with labels", labelled)
            return None
        for number, value in enumerate(values):
            where = join(join("points.rows", number), place)
            if labelled is not None:
                if not isinstance(value, str) or value not in labelled:
                    diagnostics.refuse(where, f"is no label of {name}: {', '.join(labelled)}", value)
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
        diagnostics = self.diagnostics
        if "sample" not in self.document:
            return
        said = diagnostics.table(self.document["sample"], "sample", ("method", "points", "seed", "axes"))
        method = diagnostics.word(said.get("method", METHODS[0]), "sample.method", METHODS)
        points = diagnostics.whole(said.get("points"), "sample.points", 1, MAX_SAMPLE)
        seed = diagnostics.whole(said.get("seed", 1), "sample.seed", 0, (1 << 32) - 1)
        listed = diagnostics.table(said.get("axes"), "sample.axes")
        if "points" not in said:
            diagnostics.refuse("sample", "lacks points: how many are drawn")
        if not listed:
            diagnostics.refuse("sample", "has no axes to draw from")
        found: list[tuple[str, str, Key, Interval]] = []
        for name, one in listed.items():
            path = join("sample.axes", name)
            table = diagnostics.table(one, path, ("path", "from", "to", "scale"))
            key = self.key(table.get("path", name), join(path, "path") if "path" in table else path)
            interval = None if key is None else self.interval(table, path, key)
            self.named(name, path)
            if key is not None and interval is not None:
                found.append((name, key.path, key, interval))
        if points is None or seed is None or method is None or not found or len(found) < len(listed):
            return
        shares = draw(method, len(found), points, seed)
        yield Group(
            axes=tuple(
                Axis(
                    name=name,
                    path=path,
                    key=key,
                    numbers=Drawn(interval=interval, shares=shares[:, place], whole=key.whole),
                )
                for place, (name, path, key, interval) in enumerate(found)
            )
        )

    def axis(self, name: str, said: Any, path: str) -> Axis | None:
        """An axis with values, or a range."""
        diagnostics = self.diagnostics
        # A list is short for its values, at the path that the axis is named after.
        given = {"path": name, "values": said} if isinstance(said, list) else said
        if not isinstance(given, Mapping):
            diagnostics.refuse(
                path, "is neither a list of values nor a table with a path and values, or from and to", said
            )
            return None
        table = diagnostics.table(given, path, ("path", "values", "from", "to", "step", "count", "scale"))
        inside = isinstance(said, Mapping)
        if table.get("path", name) not in NO_AXES:
            self.named(name, path)
        key = self.key(table.get("path", name), join(path, "path") if inside and "path" in table else path)
        ranged = [word for word in ("from", "to", "step", "count", "scale") if word in table]
        if "values" in table:
            if ranged:
                diagnostics.refuse(path, f"has values, and {', '.join(ranged)} as well: it is a list or a range")
            return self.listed(name, key, table["values"], join(path, "values") if inside else path)
        if not ranged:
            diagnostics.refuse(path, "has no values: a list, or from and to with a step or a count")
            return None
        if key is None:
            return None
        return self.ranged(name, key, table, path)

    def named(self, name: str, path: str) -> None:
        """Refuses the name of a column that every store has."""
        if name in COLUMNS:
            self.diagnostics.refuse(
                path, f"is the name of a column of every store; call it something else, such as my_{name}"
            )

    def key(self, said: Any, path: str) -> Key | None:
        """What the schema says of a path."""
        if not isinstance(said, str):
            self.diagnostics.refuse(path, "is not a path into the scenario such as port.bottleneck.buffer", said)
            return None
        if said in NO_AXES:
            word = "what [seeds] is for" if said == "seed" else "no setting of a run"
            self.diagnostics.refuse(path, f"is {word}", said)
            return None
        try:
            return follow(said)
        except UnknownKeyError as error:
            self.diagnostics.refuse(path, str(error), said)
            return None

    def listed(self, name: str, key: Key | None, said: Any, path: str) -> Axis | None:
        """An axis whose values are listed."""
        labels = tuple(said) if isinstance(said, Mapping) else None
        settings = list(said.values()) if isinstance(said, Mapping) else said
        if not isinstance(settings, list):
            self.diagnostics.refuse(path, "is neither a list nor a table of values with labels", said)
            return None
        if not settings:
            self.diagnostics.refuse(path, "is empty: an axis has at least one value")
            return None
        before = len(self.diagnostics.faults)
        seen: set[str] = set()
        for place, setting in enumerate(settings):
            where = join(path, place if labels is None else labels[place])
            text = json.dumps(setting, sort_keys=True)
            if isinstance(setting, float) and not math.isfinite(setting):
                self.diagnostics.refuse(where, "is not a finite number", setting)
            elif text in seen:
                self.diagnostics.refuse(where, "is there twice", setting)
            seen.add(text)
            if isinstance(setting, Mapping | list) and labels is None:
                self.diagnostics.refuse(where, "is a table: give it a label, as in values = { mine = {...} }", setting)
            elif key is not None and key.quantity is not None and not isinstance(setting, Mapping):
                self.quantity(setting, where, key)
        if key is None or len(self.diagnostics.faults) > before:
            return None
        return Axis(name=name, path=key.path, key=key, settings=tuple(settings), labels=labels)

    def ranged(self, name: str, key: Key, table: dict[str, Any], path: str) -> Axis | None:
        """An axis from one end to another."""
        diagnostics = self.diagnostics
        interval = self.interval(table, path, key)
        step = self.bound(table["step"], join(path, "step"), key) if "step" in table else None
        count = diagnostics.whole(table.get("count"), join(path, "count"), 1, MOST_VALUES)
        if ("step" in table) == ("count" in table):
            diagnostics.refuse(
                path, "lacks a step or a count" if "step" not in table else "has a step and a count: one is enough"
            )
            return None
        if interval is None or (step is None and count is None):
            return None
        if step is not None:
            if interval.log:
                diagnostics.refuse(join(path, "step"), "goes with a linear scale only; give a count", table["step"])
                return None
            if step <= 0:
                diagnostics.refuse(join(path, "step"), "is not above zero", table["step"])
                return None
            count = self.places(interval, step, join(path, "step"), table["step"])
            if count is None:
                return None
        assert count is not None, "a range has a step or a count"
        if count == 1 and step is None:
            diagnostics.refuse(join(path, "count"), "is too few for two ends; for one value write values = [...]", 1)
            return None
        numbers = Steps(interval=interval, length=count, step=step)
        axis = Axis(name=name, path=key.path, key=key, numbers=numbers)
        if 1 < count <= CHECKED_POINTS:
            settings = [json.dumps(axis.setting(place)) for place in range(count)]
            again = next((s for s, t in itertools.pairwise(settings) if s == t), None)
            if again is not None:
                diagnostics.refuse(path, f"gives {again} twice: the setting takes nothing between")
                return None
        return axis

    def interval(self, table: Mapping[str, Any], path: str, key: Key) -> Interval | None:
        """Both ends of a range, and its scale."""
        diagnostics = self.diagnostics
        scale = diagnostics.word(table.get("scale", "linear"), join(path, "scale"), SCALES)
        missing = [word for word in ("from", "to") if word not in table]
        if missing:
            diagnostics.refuse(path, f"lacks {' and '.join(missing)}")
            return None
        low = self.bound(table["from"], join(path, "from"), key)
        high = self.bound(table["to"], join(path, "to"), key)
        if low is None or high is None:
            return None
        if not low < high:
            diagnostics.refuse(join(path, "to"), f"is not above from = {as_text(table['from'])}", table["to"])
            return None
        if scale == "log" and low <= 0:
            diagnostics.refuse(join(path, "from"), "is not above zero, and the scale is logarithmic", table["from"])
            return None
        if scale == "log" and high > MOST_RATIO * low:
            diagnostics.refuse(
                join(path, "to"), f"is more than 10^300 times from = {as_text(table['from'])}", table["to"]
            )
            return None
        return Interval(low=low, high=high, log=scale == "log")

    def places(self, interval: Interval, step: Fraction, path: str, said: Any) -> int | None:
        """How many values a range has by this step; None when that is refused."""
        count = math.floor((interval.high - interval.low) / step) + 1
        if count > MOST_VALUES:
            self.diagnostics.refuse(
                path, f"is too small for the range, which would have more than {MOST_VALUES:,} values", said
            )
            return None
        return count

    def bound(self, said: Any, path: str, key: Key) -> Fraction | None:
        """An end of a range, or its step."""
        if key.quantity is not None:
            return self.quantity(said, path, key)
        if not isinstance(said, int | float) or isinstance(said, bool) or not math.isfinite(said):
            self.diagnostics.refuse(path, f"is not a plain number, as {key.path} takes", said)
            return None
        if key.whole and said != int(said):
            self.diagnostics.refuse(path, f"is not a whole number, as {key.path} takes", said)
            return None
        return exact(said)

    def quantity(self, said: Any, path: str, key: Key) -> Fraction | None:
        """A number with a unit."""
        assert key.quantity is not None, "asked of keys that take a quantity"
        expected = key.quantity.expected
        try:
            if isinstance(said, str):
                return key.quantity.read(said)
        except ValueError as error:
            expected = str(error)
        self.diagnostics.refuse(path, f"is not {expected}, as {key.path} takes", said)
        return None

    def distinct(self, groups: Sequence[Group]) -> None:
        """No two axes have one name, and none sets what another sets."""
        names: set[str] = set()
        # Who sets a path, and who something inside it; the wider one goes first, the other changes what it has set.
        setting: dict[str, Axis] = {}
        inside: dict[str, Axis] = {}
        for axis in (axis for group in groups for axis in group.axes):
            if axis.name in names:
                self.diagnostics.refuse("", f"has two axes named {axis.name}")
            elif other := setting.get(axis.path):
                self.diagnostics.refuse("", f"sets {axis.path} twice: by {other.name} and by {axis.name}")
            elif other := inside.get(axis.path):
                problem = f"sets {other.path} by {other.name} before {axis.path} by {axis.name}: the wider goes first"
                self.diagnostics.refuse("", problem)
            names.add(axis.name)
            setting.setdefault(axis.path, axis)
            steps = axis.path.split(".")
            for count in range(1, len(steps)):
                inside.setdefault(".".join(steps[:count]), axis)

    def seeds(self, said: Any, measures: Sequence[str]) -> Seeds:
        """How often each point is run."""
        diagnostics = self.diagnostics
        if said is None or isinstance(said, int):
            count = SEEDS if said is None else diagnostics.whole(said, "seeds", 1, 1 << 62)
            return Seeds(first=1, count=count or 1)
        table = diagnostics.table(said, "seeds", ("first", "count", "until"))
        first = diagnostics.whole(table.get("first", 1), "seeds.first", 0, MAX_SEED - MAX_RUNS)
        if "until" not in table:
            count = diagnostics.whole(table.get("count", SEEDS), "seeds.count", 1, 1 << 62)
            return Seeds(first=first or 1, count=count or 1)
        if "count" in table:
            diagnostics.refuse("seeds", "has a count and until: it is one or the other")
        path = "seeds.until"
        until = diagnostics.table(table["until"], path, ("measure", "interval", "at_least", "at_most"))
        text = diagnostics.text(until.get("measure"), join(path, "measure"), "one of the measures")
        for word in ("measure", "interval", "at_most"):
            if word not in until:
                diagnostics.refuse(path, f"lacks {word}")
        if text is not None and text not in measures:
            diagnostics.refuse(join(path, "measure"), f"is not measured; measures are {', '.join(measures)}", text)
        interval = diagnostics.number(
            until.get("interval"), join(path, "interval"), "a number above zero, half the width"
        )
        least = diagnostics.whole(until.get("at_least", 5), join(path, "at_least"), 2, MAX_RUNS)
        most = diagnostics.whole(until.get("at_most"), join(path, "at_most"), 2, 1 << 62)
        if least is not None and most is not None and most < least:
            diagnostics.refuse(join(path, "at_most"), f"is below at_least = {least}", most)
        return Seeds(
            first=first or 1,
            count=most or 1,
            until=Until(measure=text or "", interval=interval or 1.0, at_least=least or 2, at_most=most or 2),
        )

    def recording(self, said: Any, measures: Sequence[str]) -> Recording | None:
        """What every run records."""
        diagnostics = self.diagnostics
        if said is None:
            return None
        table = diagnostics.table(said, "series", ("record", "step", "ports"))
        record = table.get("record")
        if not isinstance(record, list) or not record:
            diagnostics.refuse("series", f"lacks record = a list out of {', '.join(SERIES)}")
            return None
        for place, name in enumerate(record):
            diagnostics.word(name, join("series.record", place), tuple(SERIES))
        if "step" not in table:
            diagnostics.refuse("series", 'lacks step: the time between two samples, such as "1ms"')
        self.time(table.get("step"), "series.step")
        ports = table.get("ports")
        if ports is not None and not (isinstance(ports, list) and all(isinstance(one, str) for one in ports)):
            diagnostics.refuse("series.ports", "is not a list of ports' names", ports)
            ports = None
        traced = next((text for text in measures if needs_series(text)), None)
        if traced is not None:
            diagnostics.refuse(
                "series", f"cannot be recorded with the measure {traced!r}, which reads a trace of its own"
            )
        return Recording(
            trace=tuple(map(str, record)), step=str(table.get("step")), ports=None if ports is None else tuple(ports)
        )

    def time(self, said: Any, path: str) -> float | None:
        """A time above zero, in seconds."""
        if said is None:
            return None
        try:
            if isinstance(said, str) and 0 < (value := seconds(said)) <= MOST_SECONDS:
                return value
        except ValueError:
            pass
        self.diagnostics.refuse(path, f'is not a time above zero such as "60s", and at most {MOST_SECONDS}s', said)
        return None

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


def axis_length(axis: Axis) -> int:
    """How many values an axis has, however many."""
    return axis.numbers.length if isinstance(axis.numbers, Steps) else len(axis)
