"""Papers as data: printed numbers, and the scenario behind each of them. A study has no printed numbers.

The folder of a paper, or of a study, contains `paper.toml` or `study.toml`, `published/*.csv`, `scenarios/*.toml` and
`claims.toml`. papers/af-96-1269/README.md explains the format.
"""

from __future__ import annotations

import copy
import csv
import io
import itertools
import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Literal, TypeVar

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, model_validator

from celltrain import _core
from celltrain.ensemble.plan.document import parse
from celltrain.errors import PaperError as PaperError
from celltrain.errors import PlanError
from celltrain.model import shipped
from celltrain.model.measures import MeasureError, measure
from celltrain.model.overrides import Setting, applied
from celltrain.model.paths import seconds, set_key
from celltrain.text import among, described

Value = int | float | str
Row = dict[str, Value]
Item = TypeVar("Item")
Hashed = TypeVar("Hashed", bound=Hashable)
#: Function that returns the text of a shipped file, such as `papers/af-96-1269/paper.toml`; None if there is none.
Reader = Callable[[str], str | None]

#: Number of rows listed in a message about an unknown row.
MOST_ROWS = 8
_TEMPLATE = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of data folder that can be run.

    Attributes:
        word: Name of the kind. The description of each folder is `<word>.toml`.
        folder: Parent of all folders of this kind.
        command: Command of `celltrain` that runs one.
    """

    word: str
    folder: str
    command: str

    def ids(self) -> list[str]:
        """Returns the ids of the folders shipped with this package."""
        names = (name.split("/") for name in _core.data_names(f"{self.folder}/"))
        return sorted({parts[1] for parts in names if parts[2:] == [f"{self.word}.toml"]})


PAPER = Kind(word="paper", folder="papers", command="reproduce")
STUDY = Kind(word="study", folder="studies", command="study")


class Entry(BaseModel):
    """Part of a description; unknown settings are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Quantity(Entry):
    """A measured quantity.

    Attributes:
        decimals: Number of printed decimal places.
        result: Template of a measure expression (`celltrain.model.measures`).
    """

    name: str
    unit: str
    meaning: str
    decimals: int
    result: str


class Effect(Entry):
    """The effect that a key, or one of its values, has on the scenario.

    Attributes:
        settings: Values by dotted path.
        names: Names that templates can use.
        scenario: File of the base scenario.
    """

    settings: dict[str, Any] = Field(default_factory=dict, validation_alias="set")
    names: dict[str, Any] = Field(default_factory=dict)
    scenario: str | None = None


class Combination(Effect):
    """An effect of a key in combination with other keys."""

    where: dict[str, Any]


class Key(Effect):
    """A parameter that varies: a column of a table, the heading over several columns, or a constant of a table."""

    name: str
    unit: str
    meaning: str
    values: dict[str, Effect] = Field(default_factory=dict)
    cases: Sequence[Combination] = ()

    def effects(self, keys: Row) -> list[Effect]:
        """Returns the effects of the key, of its value, and of the cases in which the other keys match."""
        cases = [case for case in self.cases if matches(keys, case.where)]
        return [self, self.values.get(str(keys[self.name]), Effect()), *cases]


class Choice(Entry):
    """An alternative answer to a question that the paper leaves open.

    Attributes:
        id: Number of the question in the project's register, such as A-19.
        overrides: Settings of the scenario by dotted path. Paths and values may refer to keys; numbers without such a
            key are unaffected.
    """

    id: str
    text: str
    overrides: dict[str, Any] = Field(validation_alias="set")

    @property
    def name(self) -> str:
        """Name for `--choice`, such as `A-03=fixed`: the id, and the value of the only setting or else the text."""
        [value, *more] = self.overrides.values()
        answer = self.text if more or isinstance(value, dict) else value
        return f"{self.id}={answer}" if self.id else str(answer)


class Description(Entry):
    """Settings that describe a paper or a study as a whole.

    Attributes:
        question: The question that a study asks.
        follows: The text that suggested a study.
    """

    id: str
    title: str
    authors: Sequence[str] = ()
    year: int | None = None
    published_in: str = ""
    question: str = ""
    follows: str = ""
    quantities: dict[str, Quantity]
    keys: dict[str, Key]
    figures: Sequence[dict[str, Any]] = ()
    choices: Sequence[Choice] = ()


@dataclass(frozen=True, kw_only=True)
class Number:
    """A printed number, or a number of an experiment, and the configuration that should reproduce it.

    Attributes:
        row: Values of the key columns, and of the key in the column heading if there is one.
        keys: `row`, and the keys that are constant in the table.
        result: The quantity's measure, with this number's keys filled in.
        published: Printed value; None in an experiment.
        rounding: Half a unit of the last printed digit.
        tolerance: Largest distance from the seeds at which the printed value still counts as inside.
        tolerance_stated: True if the paper's file states the tolerance; if not, the tolerance is a unit of the last
            printed digit.
        allowed: Stated tolerance in words, such as `0.10` or `5 %`; empty if it is zero or not stated.
        judged_by: `range` of the seeds, their `mean`, or `either` (near their mean, or in their range within rounding).
        point: True if theory gives one value, so that the number is not drawn from an ensemble.
        configuration: Index into `Paper.configurations`.
        most_seeds: Largest number of seeds that an experiment needs.
    """

    table: str
    row: Row
    keys: Row
    network: str | None
    quantity: Quantity
    result: str = ""
    published: float | None
    rounding: float
    tolerance: float
    tolerance_stated: bool = False
    allowed: str = ""
    judged_by: str = "range"
    point: bool
    scored: bool
    note: str
    configuration: int
    most_seeds: int | None = None


@dataclass(frozen=True)
class Cell:
    """A cell of a table: what is known of a number without its scenario.

    Attributes:
        row: Values of the key columns, and of the key in the column heading if there is one.
        keys: `row`, and the keys that are constant in the table.
        quantity: Name of the quantity.
        published: Printed value; None in an experiment.
    """

    row: Row
    keys: Row
    quantity: str
    published: float | None


class Numbers:
    """The numbers of a table. Each number, with its scenario, is created on first access."""

    def __init__(self, cells: Callable[[], Iterable[Cell]], make: Callable[[Cell], Number]) -> None:
        self._cells = cells
        self._at = cache(lambda place: make(self.cells[place]))

    @cached_property
    def cells(self) -> list[Cell]:
        """The cells of the table that are not blank."""
        return list(self._cells())

    def __len__(self) -> int:
        return len(self.cells)

    def __iter__(self) -> Iterator[Number]:
        return map(self._at, range(len(self)))

    def __getitem__(self, place: int) -> Number:
        return self._at(range(len(self))[place])


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of the paper, or an experiment: rows for claims about which the paper prints no table.

    Attributes:
        across: Key of an experiment whose values are the columns of the table on its page.
        against: Values of keys that select the row with which the page compares each row of an experiment.
    """

    number: str
    title: str
    keys: tuple[str, ...]
    quantities: tuple[str, ...]
    numbers: Numbers
    experiment: bool
    across: str | None = None
    against: Row = field(default_factory=dict)

    @property
    def networks(self) -> set[str]:
        """The networks that the rows of the table use."""
        return {str(cell.keys["network"]) for cell in self.numbers.cells if "network" in cell.keys}

    @property
    def heading(self) -> str:
        """The title, with the table's number unless the number is the name of a section."""
        return f"Table {self.number}: {self.title}" if self.number.isdigit() else self.title


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A scenario that one or more numbers need. The list contains each scenario once."""

    network: str | None
    scenario: dict[str, Any]
    text: str

    @property
    def duration_s(self) -> float:
        """Simulated seconds."""
        duration = self.scenario["duration"]
        try:
            return seconds(str(duration))
        except ValueError:
            raise PaperError(f"duration = {described(duration)} is not a duration such as '10s'") from None


class Configurations:
    """The scenarios of a paper's numbers. Its length is known once all numbers have been created."""

    def __init__(self, make_all: Callable[[], object]) -> None:
        self.made: dict[str, int] = {}
        self._list: list[Configuration] = []
        self._make_all = make_all

    def place_of(self, text: str, network: str | None, scenario: dict[str, Any]) -> int:
        """Returns the index of a scenario; `text` is its JSON. Adds a new scenario."""
        if text not in self.made:
            self.made[text] = len(self._list)
            self._list.append(Configuration(network=network, scenario=scenario, text=text))
        return self.made[text]

    def __len__(self) -> int:
        self._make_all()
        return len(self._list)

    def __iter__(self) -> Iterator[Configuration]:
        self._make_all()
        return iter(self._list)

    def __getitem__(self, place: int) -> Configuration:
        if not 0 <= place < len(self._list):
            self._make_all()
        return self._list[place]

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Configurations) else NotImplemented


class Paper(Description):
    """A paper, or a study, with all its numbers.

    Attributes:
        configurations: Scenarios of the numbers, each once. `Number.configuration` is an index into it.
        panels: Scenarios of the panels of figures with runs of their own, by the figure's id.
        claims: Content of `claims.toml`, as `celltrain.papers.claims` reads it.
        overrides: Changes to every configuration, by dotted path, including those of `chosen`.
        chosen: Alternative answers in place of the paper's own.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    kind: Kind
    tables: tuple[Table, ...]
    configurations: Configurations
    panels: dict[str, list[dict[str, Any]]]
    claims: list[dict[str, Any]]
    overrides: dict[str, Any]
    chosen: tuple[Choice, ...] = ()

    @property
    def has_print(self) -> bool:
        """True if some table has printed numbers."""
        return any(not table.experiment for table in self.tables)

    def table(self, number: str) -> Table:
        """Returns the table, or experiment, with this number."""
        by_number = {table.number: table for table in self.tables}
        if number not in by_number:
            raise PaperError(f"{self.id} has no table {described(number)}; choose from {', '.join(by_number)}")
        return by_number[number]

    def numbers(
        self,
        *,
        tables: Sequence[str | int] | None = None,
        networks: Sequence[str] | None = None,
        rows: Sequence[str] | None = None,
    ) -> list[Number]:
        """Returns the numbers of these tables, networks and rows; by default all, including experiments.

        Args:
            tables: Numbers of tables.
            networks: Names of networks, in upper or lower case.
            rows: Rows by the values of their keys, such as `"5,1000,epd"`; some of the values, in their order, suffice.
        """
        chosen = self.tables if tables is None else [self.table(str(number)) for number in tables]
        wanted = None if networks is None else {None, *(self._network(name, chosen) for name in networks)}
        found = [
            (table, place, cell.row)
            for table in chosen
            for place, cell in enumerate(table.numbers.cells)
            if wanted is None or cell.keys.get("network") in wanted
        ]
        if rows is not None:
            matching = {row: [one for one in found if _is_row(one[2], row)] for row in rows}
            for row, own in matching.items():
                if found and not own:
                    known = list(dict.fromkeys(",".join(map(str, values.values())) for *_, values in found))
                    raise PaperError(f"{self.id} has no row {described(row)} there; {among(row, known[:MOST_ROWS])}")
            found = [one for one in found if any(one in own for own in matching.values())]
        return [table.numbers[place] for table, place, _ in found]

    def _network(self, name: str, tables: Sequence[Table]) -> str:
        """Returns the name of a network as the paper writes it. Looks in these tables first."""
        known: dict[str, str] = {}
        for table in (*tables, *self.tables):
            known |= {network.lower(): network for network in table.networks}
            if name.lower() in known:
                return known[name.lower()]
        names = ", ".join(sorted(known.values())) or "none"
        raise PaperError(f"{self.id} has no network {described(name)}; it has {names}")


def _is_row(row: Row, text: str) -> bool:
    """Returns whether the keys of a row have the given values, in their order."""
    values = iter([str(value).lower() for value in row.values()])
    return all(value.strip().lower() in values for value in text.split(","))


def grouped(items: Iterable[Item], key: Callable[[Item], Hashed]) -> dict[Hashed, list[Item]]:
    """Groups items by a key, in the order in which the keys first occur."""
    groups: dict[Hashed, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def matches(row: Mapping[str, Value], where: Mapping[str, Any]) -> bool:
    """Returns whether a row has the given values; a list matches any of its members."""
    return all(
        key in row and (row[key] in wanted if isinstance(wanted, list) else row[key] == wanted)
        for key, wanted in where.items()
    )


def load(
    paper_id: str,
    *,
    kind: Kind = PAPER,
    overrides: Mapping[str, Any] | None = None,
    choices: Sequence[str] = (),
    read: Reader = _core.data,
) -> Paper:
    """Reads a paper, or a study.

    Args:
        paper_id: The id, such as `"af-96-1269"`.
        kind: `PAPER` or `STUDY`.
        overrides: Settings to change in every scenario, by dotted path, such as `{"switch.tie_order": "fixed"}`.
        choices: Names of alternative answers to open questions, such as `A-03=fixed`. `overrides` count for more.
        read: Function that reads a shipped file; by default from the files built into the package.
    """
    folder = f"{kind.folder}/{paper_id}"
    if read(f"{folder}/{kind.word}.toml") is None:
        [other] = {PAPER, STUDY} - {kind}
        if paper_id in other.ids():
            hint = f"type: celltrain {other.command} {paper_id}"
            raise PaperError(f"{described(paper_id)} is a {other.word}, not a {kind.word}; {hint}")
        raise PaperError(f"there is no {kind.word} {described(paper_id)}; {among(paper_id, kind.ids())}")
    return _Expansion(folder, kind, overrides or {}, read, choices).paper()


def describe(paper_id: str, kind: Kind) -> Description:
    """Returns the description of a shipped paper or study, without expanding its tables."""
    return _Expansion(f"{kind.folder}/{paper_id}", kind, {}, _core.data).source


def evaluate(expression: str, names: Mapping[str, Value]) -> Value:
    """Evaluates a name, or a sum, difference or product such as `buffer_cells - 200`."""
    if expression.strip() in names:
        return names[expression.strip()]
    try:
        result = measure(expression.strip(), names)
    except MeasureError:
        raise PaperError(f"{expression!r} is not a sum, difference or product of numbers and keys") from None
    return int(result) if result.is_integer() else result


def substitute(template: Any, names: Mapping[str, Value]) -> Any:
    """Replaces every `{expression}` in a value, a table or a list. A lone expression in a text keeps its type."""
    if isinstance(template, dict):
        return {key: substitute(value, names) for key, value in template.items()}
    if isinstance(template, list):
        return [substitute(value, names) for value in template]
    if not isinstance(template, str):
        return template
    if whole := _TEMPLATE.fullmatch(template):
        return evaluate(whole[1], names)
    return _TEMPLATE.sub(lambda part: str(evaluate(part[1], names)), template)


def _has_names(template: Any, names: Mapping[str, Value]) -> bool:
    """Returns whether all names in the expressions of a template are known."""
    expressions = _TEMPLATE.findall(template) if isinstance(template, str) else []
    return all(name in names for expression in expressions for name in _NAME.findall(expression))


class _Rule(Entry):
    """Rule for scoring the numbers that `where` matches. The last matching rule applies."""

    where: dict[str, Any] = Field(default_factory=dict)
    tolerance: int | float | None = None
    relative_tolerance: float | None = None
    judged_by: Literal["range", "mean", "either"] = "range"
    point: bool = False
    scored: bool = True
    note: str = ""

    @model_validator(mode="after")
    def _checked(self) -> _Rule:
        if self.point and self.tolerance is None and self.relative_tolerance is None:
            raise ValueError("a point needs tolerance or relative_tolerance, such as tolerance = 0 for an exact value")
        return self

    def tolerance_of(self, published: float | None, unit_of_last_digit: float) -> float:
        """Returns the stated tolerance. If none is stated, returns one unit of the last printed digit."""
        if self.relative_tolerance is not None and published is not None:
            return self.relative_tolerance * abs(published)
        return unit_of_last_digit if self.tolerance is None else self.tolerance

    def allowed(self, decimals: int) -> str:
        """Returns the stated tolerance as text; empty if it is zero or not stated."""
        if self.relative_tolerance:
            return f"{100 * self.relative_tolerance:.3g} %"
        if not self.tolerance:
            return ""
        text = f"{self.tolerance:.{decimals}f}"
        return text if float(text) == self.tolerance else f"{self.tolerance:g}"


class _Rows(Entry):
    """A table, which has a CSV file, or an experiment, which has a grid of values."""

    number: str = Field(validation_alias=AliasChoices("number", "id"))
    title: str
    quantities: tuple[str, ...]
    csv: str = ""
    keys: tuple[str, ...] = ()
    grid: dict[str, list[Any]] = Field(default_factory=dict)
    columns: dict[str, Any] | str | None = None
    fixed: dict[str, Any] = Field(default_factory=dict)
    against: dict[str, Any] = Field(default_factory=dict)
    rules: Sequence[_Rule] = ()
    most_seeds: int | None = None


class _Source(Description):
    """Content of `paper.toml` or `study.toml`."""

    scenario: str | None = None
    tables: Sequence[_Rows] = ()
    experiments: Sequence[_Rows] = ()


class _Expansion:
    """Expands a description into numbers, and collects the configurations they need."""

    def __init__(
        self, folder: str, kind: Kind, overrides: Mapping[str, Any], read: Reader, choices: Sequence[str] = ()
    ) -> None:
        self.folder = folder
        self.kind = kind
        self.read = read
        self.file = f"{folder}/{kind.word}.toml"
        self.base = cache(self.toml)
        content = self.toml(f"{kind.word}.toml")
        try:
            for part in ("quantities", "keys"):
                content[part] = {name: {"name": name, **entry} for name, entry in content.get(part, {}).items()}
            self.source = _Source.model_validate(content)
        except ValidationError as error:
            raise self.invalid(error) from None
        self.chosen = tuple(self.choice(name) for name in choices)
        answers = {path: value for choice in self.chosen for path, value in choice.overrides.items()}
        self.overrides = {**answers, **overrides}
        self.tables = tuple(map(self.table, [*self.source.tables, *self.source.experiments]))
        self.configurations = Configurations(lambda: [list(table.numbers) for table in self.tables])
        self.by_keys: dict[str, int] = {}

    def invalid(self, error: ValidationError) -> PaperError:
        """Returns the error for an invalid description, with the line."""
        fault = error.errors()[0]
        place = ""
        _, lines = shipped.toml(self.text(f"{self.kind.word}.toml"), self.file)
        line = 1
        for part in fault["loc"]:
            place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else str(part)
            line = lines.get(place, line)
        value = "" if isinstance(fault["input"], dict) else f" = {described(fault['input'])}"
        return PaperError(f"{self.file}:{line}: {place}{value}: {fault['msg'].removeprefix('Value error, ')}")

    def choice(self, name: str) -> Choice:
        """Returns the alternative answer with this name."""
        by_name = {choice.name: choice for choice in self.source.choices}
        if name not in by_name:
            raise PaperError(f"{self.source.id} has no choice {described(name)}; {among(name, by_name)}")
        return by_name[name]

    def text(self, name: str) -> str:
        text = self.read(f"{self.folder}/{name}")
        if text is None:
            raise PaperError(f"{self.folder}/{name} is missing")
        return text

    def toml(self, name: str) -> dict[str, Any]:
        try:
            return parse(self.text(name), f"{self.folder}/{name}")[0]
        except PlanError as error:
            raise PaperError(error.faults) from None

    def paper(self) -> Paper:
        source = self.source
        has_claims = self.read(f"{self.folder}/claims.toml") is not None
        return Paper(
            **{name: getattr(source, name) for name in Description.model_fields},
            kind=self.kind,
            tables=self.tables,
            configurations=self.configurations,
            panels={one["id"]: self.panels(one) for one in source.figures if {"network", "scenario"} & set(one)},
            claims=self.toml("claims.toml")["claims"] if has_claims else [],
            overrides={path: one.typed if isinstance(one, Setting) else one for path, one in self.overrides.items()},
            chosen=self.chosen,
        )

    def panels(self, figure: dict[str, Any]) -> list[dict[str, Any]]:
        if "scenario" in figure:
            return [self.base(figure["scenario"])]
        fixed = {**figure.get("fixed", {}), "network": figure["network"]}
        return [self.scenario({**panel, **fixed}) for panel in figure["panels"]]

    def table(self, entry: _Rows) -> Table:
        heading = [entry.columns["key"]] if isinstance(entry.columns, dict) else []
        return Table(
            number=entry.number,
            title=entry.title,
            keys=(*entry.keys, *heading, *entry.grid),
            quantities=entry.quantities,
            numbers=Numbers(lambda: self.cells(entry), lambda cell: self.number(entry, cell)),
            experiment=not entry.csv,
            across=entry.columns if isinstance(entry.columns, str) else None,
            against=entry.against,
        )

    def cells(self, entry: _Rows) -> Iterator[Cell]:
        """Yields the cells that are not blank."""
        if not entry.csv:
            for values in itertools.product(*entry.grid.values()):
                row = dict(zip(entry.grid, values, strict=True))
                for quantity in entry.quantities:
                    yield Cell(row, {**row, **entry.fixed}, quantity, None)
            return
        for line in csv.DictReader(io.StringIO(self.text(entry.csv))):
            row = {key: _cell(line[key]) for key in entry.keys}
            if isinstance(entry.columns, dict):
                key, [quantity] = entry.columns["key"], entry.quantities
                cells = [({**row, key: value}, quantity, line[value]) for value in entry.columns["values"]]
            else:
                cells = [(row, quantity, line[quantity]) for quantity in entry.quantities]
            for row, quantity, text in cells:
                if text:
                    yield Cell(row, {**row, **entry.fixed}, quantity, float(text))

    def number(self, entry: _Rows, cell: Cell) -> Number:
        keys, name, published = cell.keys, cell.quantity, cell.published
        quantity = self.source.quantities[name]
        unit_of_last_digit = 10.0**-quantity.decimals
        covering = [rule for rule in entry.rules if matches({**keys, "quantity": name}, rule.where)]
        rule = covering[-1] if covering else _Rule()
        place = self.configuration(keys)
        return Number(
            table=entry.number,
            row=cell.row,
            keys=keys,
            network=str(keys["network"]) if "network" in keys else None,
            quantity=quantity,
            result=str(substitute(quantity.result, self.names(keys))),
            published=published,
            rounding=unit_of_last_digit / 2,
            tolerance=rule.tolerance_of(published, unit_of_last_digit),
            tolerance_stated=rule.tolerance is not None or rule.relative_tolerance is not None,
            allowed=rule.allowed(quantity.decimals),
            judged_by=rule.judged_by,
            point=rule.point,
            scored=rule.scored and published is not None,
            note=self.note(rule.note, self.configurations[place].scenario),
            configuration=place,
            most_seeds=entry.most_seeds,
        )

    def note(self, template: str, scenario: Mapping[str, Any]) -> str:
        """Replaces every `{dotted path}` in a note with its value in the scenario."""

        def value(part: re.Match[str]) -> str:
            found: Any = scenario
            for step in part[1].split("."):
                if step not in found:
                    raise PaperError(f"{self.file}: the scenario has no {part[1]}, which the note {template!r} needs")
                found = found[step]
            return str(found)

        return _TEMPLATE.sub(value, template)

    def configuration(self, keys: Row) -> int:
        """Returns the index of the configuration that the given keys describe. Adds a new configuration."""
        # Every quantity of a row has the same keys, so the keys identify the configuration.
        name = repr(keys)
        if name not in self.by_keys:
            scenario = self.scenario(keys)
            network = str(keys["network"]) if "network" in keys else None
            text = json.dumps(scenario, sort_keys=True)
            self.by_keys[name] = self.configurations.place_of(text, network, scenario)
        return self.by_keys[name]

    def effects(self, keys: Row) -> list[Effect]:
        """Returns the effects of each key in turn."""
        for name in keys:
            if name not in self.source.keys:
                raise PaperError(f"{self.file}: the key {name!r} is used but not described")
        return [effect for name in keys for effect in self.source.keys[name].effects(keys)]

    def names(self, keys: Row) -> Row:
        """Returns the keys and the names derived from them, without names that need a missing key."""
        templates = {name: template for effect in self.effects(keys) for name, template in effect.names.items()}
        names: Row = dict(keys)
        while ready := {n: t for n, t in templates.items() if n not in names and _has_names(t, names)}:
            names |= {name: substitute(template, names) for name, template in ready.items()}
        return names

    def scenario(self, keys: Row) -> dict[str, Any]:
        """Returns the scenario that the given keys describe."""
        effects, names = self.effects(keys), self.names(keys)
        base = next((effect.scenario for effect in effects if effect.scenario), self.source.scenario)
        if base is None:
            raise PaperError(f"{self.file}: no key of {keys} names a scenario")
        scenario = copy.deepcopy(self.base(base))
        settings = [setting for effect in effects for setting in effect.settings.items()]
        typed = {path: value for path, value in self.overrides.items() if isinstance(value, Setting)}
        others = ((path, value) for path, value in self.overrides.items() if path not in typed)
        settings += [(path, value) for path, value in others if _has_names(path, names)]
        for path, value in settings:
            set_key(scenario, str(substitute(path, names)), substitute(value, names))
        scenario, _ = applied(scenario, typed)
        if "duration" in self.overrides:
            _end_measuring_in_time(scenario)
        return scenario


def _end_measuring_in_time(scenario: dict[str, Any]) -> None:
    """If a run is shortened to less than its measured time, measurement lasts until the end of the run."""
    measure = scenario.get("measure", {})
    try:
        ends_late = "to" in measure and seconds(str(measure["to"])) > seconds(str(scenario["duration"]))
    except ValueError:
        return  # A later check of the scenario reports the invalid time.
    if ends_late:
        del measure["to"]


def _cell(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
