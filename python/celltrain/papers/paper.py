"""A paper as data: its printed numbers, and the scenario each of them belongs to.

Everything a paper needs stands in its folder (`paper.toml`, `published/*.csv`, `scenarios/*.toml`, `claims.toml`); this
module reads it and expands it. The format is explained in the folder's README. A study is a paper of ours without
printed numbers: its folder is the same, with a `study.toml` that holds experiments only.
"""

from __future__ import annotations

import copy
import csv
import io
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from celltrain import _core
from celltrain.errors import PaperError as PaperError
from celltrain.model.paths import set_key
from celltrain.model.quantities import seconds
from celltrain.text import described

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Value = int | float | str
Row = dict[str, Value]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What can be run from a folder of data, and how one asks for it."""

    word: str
    """What one of them is called; its description is `<word>.toml`."""
    folder: str
    command: str
    """Of `celltrain`."""

    def ids(self) -> list[str]:
        """Those shipped with this package."""
        names = (name.split("/") for name in _core.data_names(f"{self.folder}/"))
        return sorted({parts[1] for parts in names if parts[2:] == [f"{self.word}.toml"]})


PAPER = Kind(word="paper", folder="papers", command="reproduce")
STUDY = Kind(word="study", folder="studies", command="study")


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """Something measured, and where a run's answer holds it."""

    name: str
    unit: str
    meaning: str
    decimals: int
    """Digits after the point in print."""
    result: str
    """Where a run's answer holds it, as a template; `celltrain.model.expressions` understands it."""


@dataclass(frozen=True, kw_only=True)
class Key:
    """Something varied: a column of a table, the heading over several columns, or fixed for a whole table."""

    name: str
    unit: str
    meaning: str


@dataclass(frozen=True, kw_only=True)
class Number:
    """One printed number (or, in an experiment, one that is only ours) and the configuration that should give it."""

    table: str
    row: Row
    """The table's key columns, and the key over its columns where it has one."""
    keys: Row
    """`row`, and the keys that are fixed for the whole table."""
    network: str | None
    quantity: Quantity
    result: str = ""
    """The quantity's `result` with this number's keys in it."""
    published: float | None
    """What the paper prints; None in an experiment."""
    rounding: float
    """Half a unit of the last printed digit."""
    tolerance: float
    """How far the printed value may lie from what it is judged by and still count as inside."""
    tolerance_stated: bool = False
    """Whether the paper's file states it; otherwise it is a unit of the last printed digit."""
    allowed: str = ""
    """The stated tolerance in words, such as `0.10` or `5 %`; empty if it is zero or not stated."""
    judged_by: str = "range"
    """The seeds' `range`, their `mean`, or `either`: near their mean, or in their range give or take its rounding."""
    point: bool
    """Theory gives one value, so the number is no draw from an ensemble."""
    scored: bool
    note: str
    configuration: int
    """Index into `Paper.configurations`."""
    most_seeds: int | None = None
    """An experiment of many rows needs no more seeds than this."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Another answer to a question that the paper leaves open, as values of the scenario."""

    id: str
    """The number the question has in the project's register, such as A-19."""
    text: str
    overrides: dict[str, Any]
    """By dotted path; paths and values may name keys, as those of `set` do. What a path names and a number does not have
    leaves that number alone."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of the paper, or an experiment: rows of ours for claims about which the paper prints no table."""

    number: str
    title: str
    keys: tuple[str, ...]
    quantities: tuple[str, ...]
    numbers: tuple[Number, ...]
    experiment: bool
    across: str | None = None
    """An experiment's key whose values stand side by side on its page."""

    @property
    def heading(self) -> str:
        """The title, with the table's number where it has one: numbers from the text stand under a section's name."""
        return f"Table {self.number}: {self.title}" if self.number.isdigit() else self.title


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A scenario that some number needs; the same one is never listed twice."""

    network: str | None
    scenario: dict[str, Any]
    text: str

    @property
    def duration_s(self) -> float:
        """Simulated seconds: how long the run is, compared with others."""
        try:
            return seconds(str(self.scenario["duration"]))
        except ValueError:
            raise PaperError(
                f"duration = {described(self.scenario['duration'])} is not a duration such as '10s'"
            ) from None


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper, or a study, expanded."""

    id: str
    kind: Kind = PAPER
    title: str
    authors: Sequence[str] = ()
    year: int | None = None
    published_in: str = ""
    question: str = ""
    """What a study asks."""
    follows: str = ""
    """The text that suggests a study."""
    quantities: dict[str, Quantity]
    keys: dict[str, Key]
    tables: tuple[Table, ...]
    configurations: tuple[Configuration, ...]
    figures: tuple[dict[str, Any], ...]
    scenarios: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The figures' own scenarios, by the name `figures` uses."""
    panels: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The scenarios of a figure's panels, by the figure's id."""
    claims: tuple[dict[str, Any], ...] = ()
    choices: tuple[Choice, ...] = ()
    overrides: dict[str, Any] = field(default_factory=dict)
    """What every configuration was changed in, by dotted path; empty for the paper as it stands."""
    """`claims.toml` as it stands; `celltrain.papers.claims` understands it."""

    def table(self, number: str) -> Table:
        """The table (or experiment) with this number."""
        for table in self.tables:
            if table.number == number:
                return table
        raise PaperError(
            f"{self.id} has no table {described(number)}; it has {', '.join(t.number for t in self.tables)}"
        )

    def numbers(
        self, *, tables: Sequence[str | int] | None = None, networks: Sequence[str] | None = None
    ) -> list[Number]:
        """The numbers of these tables (by default all, experiments too) on these networks (by default all)."""
        chosen = self.tables if tables is None else [self.table(str(number)) for number in tables]
        known = sorted({c.network for c in self.configurations if c.network is not None})
        for network in networks or ():
            if network not in known:
                raise PaperError(f"{self.id} has no network {described(network)}; it has {', '.join(known) or 'none'}")
        return [
            number
            for table in chosen
            for number in table.numbers
            if networks is None or number.network is None or number.network in networks
        ]


def paper_ids() -> list[str]:
    """The papers shipped with this package."""
    return PAPER.ids()


def study_ids() -> list[str]:
    """The studies shipped with this package."""
    return STUDY.ids()


def load(
    paper_id: str,
    *,
    kind: Kind = PAPER,
    overrides: Mapping[str, Any] | None = None,
    read: Callable[[str], str | None] | None = None,
) -> Paper:
    """Read a paper, or a study, and expand it into numbers and configurations.

    Args:
        paper_id: Such as `"af-96-1269"`.
        kind: `PAPER` or `STUDY`: what the id is one of.
        overrides: Values set in every scenario by their dotted path, such as `{"switch.tie_order": "fixed"}`.
        read: Gives the text of a shipped file (such as `"papers/af-96-1269/paper.toml"`) or None; by default from the
            files that are built into the package.
    """
    folder = _Folder(f"{kind.folder}/{paper_id}", read or _core.data)
    if folder.read(f"{kind.word}.toml", needed=False) is None:
        [other] = [one for one in (PAPER, STUDY) if one != kind]
        if read is None and paper_id in other.ids():
            raise PaperError(
                f"{described(paper_id)} is a {other.word}, not a {kind.word}; type: celltrain {other.command} {paper_id}"
            )
        known = f"; there are {', '.join(kind.ids())}" if read is None else ""
        raise PaperError(f"there is no {kind.word} {described(paper_id)}{known}")
    return _Expansion(folder, kind, dict(overrides or {})).paper()


JUDGED_BY = ("range", "mean", "either")


def evaluate(expression: str, names: Mapping[str, Value]) -> Value:
    """A name, a number, or a sum, difference or product of them: "buffer_cells - 200"."""
    tokens = re.findall(r"\d+(?:\.\d+)?|[A-Za-z_]\w*|\S", expression)
    if len(tokens) == 1 and tokens[0] in names:
        return names[tokens[0]]
    operands, operators = tokens[::2], tokens[1::2]
    if len(operands) != len(operators) + 1 or any(operator not in ("+", "-", "*") for operator in operators):
        raise PaperError(f"{expression!r} is not a sum, difference or product")
    total, term = 0.0, _operand(operands[0], names, expression)
    for operator, token in zip(operators, operands[1:], strict=True):
        operand = _operand(token, names, expression)
        if operator == "*":
            term *= operand
        else:
            total, term = total + term, operand if operator == "+" else -operand
    result = total + term
    return int(result) if result == int(result) else result


def substitute(template: Any, names: Mapping[str, Value]) -> Any:
    """Replace every "{expression}" in a value, a table or a list; a text that is one expression keeps its type."""
    if isinstance(template, dict):
        return {key: substitute(value, names) for key, value in template.items()}
    if isinstance(template, list):
        return [substitute(value, names) for value in template]
    if not isinstance(template, str):
        return template
    whole = re.fullmatch(r"\{([^{}]*)\}", template)
    if whole is not None:
        return evaluate(whole[1], names)
    return re.sub(r"\{([^{}]*)\}", lambda match: str(evaluate(match[1], names)), template)


def seed_count(count: int) -> str:
    """So many seeds, in words.

    >>> seed_count(1), seed_count(30)
    ('1 seed', '30 seeds')
    """
    return f"{count} seed" if count == 1 else f"{count} seeds"


def matches(row: Mapping[str, Value], where: Mapping[str, Any]) -> bool:
    """Whether a row has these values; a list means any of its members."""
    return all(
        key in row and (row[key] in wanted if isinstance(wanted, list) else row[key] == wanted)
        for key, wanted in where.items()
    )


def _operand(token: str, names: Mapping[str, Value], expression: str) -> float:
    value = names.get(token, token)
    try:
        return float(value)
    except ValueError:
        raise PaperError(f"{token!r} in {expression!r} is not a number and not a key that holds one") from None


def _mentioned(template: Any) -> set[str]:
    """The names in a template's expressions."""
    expressions = re.findall(r"\{([^{}]*)\}", template) if isinstance(template, str) else []
    return {name for expression in expressions for name in re.findall(r"[A-Za-z_]\w*", expression)}


def _cell(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


class _Folder:
    """A paper's files."""

    def __init__(self, path: str, read: Callable[[str], str | None]) -> None:
        self.path = path
        self._read = read

    def read(self, name: str, *, needed: bool = True) -> str | None:
        text = self._read(f"{self.path}/{name}")
        if text is None and needed:
            raise PaperError(f"{self.path}/{name} is missing")
        return text

    def toml(self, name: str) -> dict[str, Any]:
        try:
            content: dict[str, Any] = tomllib.loads(self.read(name) or "")
        except tomllib.TOMLDecodeError as error:
            raise PaperError(f"{self.path}/{name}: {error}") from error
        return content


class _Expansion:
    """Turns `paper.toml`, or `study.toml`, into numbers, and collects the configurations they need."""

    def __init__(self, folder: _Folder, kind: Kind, overrides: dict[str, Any]) -> None:
        self.folder = folder
        self.kind = kind
        self.overrides = overrides
        self.description = f"{kind.word}.toml"
        self.source = folder.toml(self.description)
        self.quantities = {
            name: Quantity(
                name=name,
                unit=entry["unit"],
                meaning=entry["meaning"],
                decimals=entry["decimals"],
                result=entry["result"],
            )
            for name, entry in self.source["quantities"].items()
        }
        self.configurations: dict[str, Configuration] = {}
        self.bases: dict[str, dict[str, Any]] = {}

    #: What else is said of a paper, and of a study.
    OF_KIND: ClassVar = {"paper": ("authors", "year", "published_in"), "study": ("question", "follows")}

    def paper(self) -> Paper:
        source = self.source
        tables = tuple(self.table(entry) for entry in source.get("tables", []))
        experiments = tuple(self.experiment(entry) for entry in source.get("experiments", []))
        figures = tuple(source.get("figures", []))
        claims = self.folder.read("claims.toml", needed=False)
        return Paper(
            id=source["id"],
            kind=self.kind,
            title=source["title"],
            **{name: source[name] for name in self.OF_KIND[self.kind.word]},
            quantities=self.quantities,
            keys={n: Key(name=n, unit=e["unit"], meaning=e["meaning"]) for n, e in source["keys"].items()},
            tables=tables + experiments,
            configurations=tuple(self.configurations.values()),
            figures=figures,
            scenarios={f["scenario"]: self.base(f["scenario"]) for f in figures if "scenario" in f},
            panels={
                f["id"]: [
                    self.scenario({**f.get("fixed", {}), **panel, "network": f["network"]}) for panel in f["panels"]
                ]
                for f in figures
                if "panels" in f
            },
            claims=() if claims is None else tuple(self.folder.toml("claims.toml")["claims"]),
            choices=tuple(
                Choice(id=entry["id"], text=entry["text"], overrides=entry["set"])
                for entry in source.get("choices", [])
            ),
            overrides=self.overrides,
        )

    def table(self, entry: dict[str, Any]) -> Table:
        text = self.folder.read(entry["csv"]) or ""
        columns = entry.get("columns")
        numbers = []
        for line in csv.DictReader(io.StringIO(text)):
            row: Row = {key: _cell(line[key]) for key in entry["keys"]}
            if columns is None:
                cells = [(row, quantity, line[quantity]) for quantity in entry["quantities"]]
            else:
                [quantity] = entry["quantities"]
                cells = [({**row, columns["key"]: value}, quantity, line[value]) for value in columns["values"]]
            # A number that a row does not have is left blank.
            numbers += [
                self.number(entry, entry["number"], full, name, float(text)) for full, name, text in cells if text
            ]
        keys = tuple(entry["keys"]) + ((columns["key"],) if columns else ())
        return Table(
            number=entry["number"],
            title=entry["title"],
            keys=keys,
            quantities=tuple(entry["quantities"]),
            numbers=tuple(numbers),
            experiment=False,
        )

    def experiment(self, entry: dict[str, Any]) -> Table:
        numbers = [
            self.number(entry, entry["id"], row, quantity, None)
            for row in _grid(entry["grid"])
            for quantity in entry["quantities"]
        ]
        return Table(
            number=entry["id"],
            title=entry["title"],
            keys=tuple(entry["grid"]),
            quantities=tuple(entry["quantities"]),
            numbers=tuple(numbers),
            experiment=True,
            across=entry.get("columns"),
        )

    def number(self, entry: dict[str, Any], table: str, row: Row, name: str, published: float | None) -> Number:
        keys: Row = {**row, **entry.get("fixed", {})}
        quantity = self.quantities[name]
        unit_of_last_digit = 10.0**-quantity.decimals
        rule: dict[str, Any] = {}
        for candidate in entry.get("rules", []):
            if matches({**keys, "quantity": name}, candidate["where"]):
                rule = candidate
        tolerance = rule.get("tolerance", unit_of_last_digit)
        if "relative_tolerance" in rule and published is not None:
            tolerance = rule["relative_tolerance"] * abs(published)
        judged_by = rule.get("judged_by", "range")
        if judged_by not in JUDGED_BY:
            raise PaperError(f"judged_by = {judged_by!r} is none of {', '.join(JUDGED_BY)}")
        configuration = self.configuration(keys)
        return Number(
            table=table,
            row=row,
            keys=keys,
            network=self.configurations[configuration].network,
            quantity=quantity,
            result=str(substitute(quantity.result, self.names(keys))),
            published=published,
            rounding=unit_of_last_digit / 2,
            tolerance=tolerance,
            tolerance_stated="tolerance" in rule or "relative_tolerance" in rule,
            allowed=_allowed(rule, quantity.decimals),
            judged_by=judged_by,
            point=rule.get("point", False),
            scored=rule.get("scored", True) and published is not None,
            note=rule.get("note", ""),
            configuration=list(self.configurations).index(configuration),
            most_seeds=entry.get("most_seeds"),
        )

    def effects(self, keys: Row) -> list[dict[str, Any]]:
        """What follows from each key in turn: always, for this value of it, and in its cases that fit the other keys."""
        declared = self.source["keys"]
        effects = []
        for name, value in keys.items():
            if name not in declared:
                raise PaperError(f"{self.folder.path}/{self.description}: the key {name!r} is used but not described")
            effects += [declared[name], declared[name].get("values", {}).get(str(value), {})]
            effects += [case for case in declared[name].get("cases", []) if matches(keys, case["where"])]
        return effects

    def names(self, keys: Row) -> Row:
        """The keys, and the names made of them, in whatever order; one that needs a name no key gives is left out."""
        templates = {n: t for effect in self.effects(keys) for n, t in effect.get("names", {}).items()}
        names: Row = dict(keys)
        while ready := {n: t for n, t in templates.items() if n not in names and _mentioned(t) <= names.keys()}:
            names |= {name: substitute(template, names) for name, template in ready.items()}
        return names

    def configuration(self, keys: Row) -> str:
        """Make the scenario that these keys describe, or find it among those made already; returns its text."""
        scenario = self.scenario(keys)
        text = json.dumps(scenario, sort_keys=True)
        network = keys.get("network")
        self.configurations.setdefault(
            text, Configuration(network=None if network is None else str(network), scenario=scenario, text=text)
        )
        return text

    def scenario(self, keys: Row) -> dict[str, Any]:
        """The scenario that these keys describe."""
        effects = self.effects(keys)
        names = self.names(keys)
        base = next((e["scenario"] for e in effects if "scenario" in e), self.source.get("scenario"))
        if base is None:
            raise PaperError(f"{self.folder.path}/{self.description}: no key of {keys} names a scenario")
        scenario = copy.deepcopy(self.base(base))
        for effect in effects:
            for path, template in effect.get("set", {}).items():
                set_key(scenario, str(substitute(path, names)), substitute(template, names))
        for path, value in self.overrides.items():
            if not _mentioned(path) <= names.keys():
                continue
            set_key(scenario, str(substitute(path, names)), substitute(value, names))
        return scenario

    def base(self, name: str) -> dict[str, Any]:
        if name not in self.bases:
            self.bases[name] = self.folder.toml(name)
        return self.bases[name]


def _grid(axes: Mapping[str, Iterable[Value]]) -> Iterator[Row]:
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def _allowed(rule: Mapping[str, Any], decimals: int) -> str:
    """The tolerance that a rule states, in words; empty if it states none or zero."""
    if share := rule.get("relative_tolerance"):
        return f"{100 * share:.3g} %"
    tolerance = rule.get("tolerance", 0)
    text = f"{tolerance:.{decimals}f}"
    return "" if not tolerance else text if float(text) == tolerance else f"{tolerance:g}"
