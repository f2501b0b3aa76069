"""Papers as data: printed numbers, and the scenario that each of them belongs to.

`celltrain.papers.expansion` makes them from a folder. A study has the same form, but no printed numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from celltrain import _core
from celltrain.errors import PaperError as PaperError
from celltrain.model.quantities import seconds
from celltrain.text import described

Value = int | float | str
Row = dict[str, Value]
Item = TypeVar("Item")
Hashed = TypeVar("Hashed", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of data folder that can be run.

    Attributes:
        word: Name of the kind. The description of each folder is `<word>.toml`.
        folder: Folder that holds all folders of this kind.
        command: Command of `celltrain` that runs one.
    """

    word: str
    folder: str
    command: str

    def ids(self) -> list[str]:
        """Returns the ids shipped with this package."""
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
        decimals: Digits after the point in print.
        result: Template of a measure, as `celltrain.model.expressions` reads them.
    """

    name: str
    unit: str
    meaning: str
    decimals: int
    result: str


class Effect(Entry):
    """Consequences of a key, or of one of its values, for the scenario.

    Attributes:
        settings: Values by dotted path.
        names: Names for templates.
        scenario: File of the base scenario.
    """

    settings: dict[str, Any] = Field(default_factory=dict, validation_alias="set")
    names: dict[str, Any] = Field(default_factory=dict)
    scenario: str | None = None


class Case(Effect):
    """An effect of a key in combination with other keys."""

    where: dict[str, Any]


class Key(Effect):
    """A varied setting: a column of a table, the heading over several columns, or fixed for a whole table."""

    name: str
    unit: str
    meaning: str
    values: dict[str, Effect] = Field(default_factory=dict)
    cases: Sequence[Case] = ()

    def effects(self, keys: Row) -> list[Effect]:
        """Returns the effects of the key, of its value, and of its cases that fit the other keys."""
        cases = [case for case in self.cases if matches(keys, case.where)]
        return [self, self.values.get(str(keys[self.name]), Effect()), *cases]


class Choice(Entry):
    """An alternative answer to a question that the paper leaves open.

    Attributes:
        id: Number of the question in the project's register, such as A-19.
        overrides: Values of the scenario by dotted path. Paths and values may name keys; a number without such a key
            stays as it is.
    """

    id: str
    text: str
    overrides: dict[str, Any] = Field(validation_alias="set")


class Description(Entry):
    """Settings that describe a paper or a study as a whole.

    Attributes:
        question: Question that a study asks.
        follows: Text that suggests a study.
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
    """A printed number, or one of an experiment, and the configuration that should give it.

    Attributes:
        row: Key columns of the table, and the key over its columns if it has one.
        keys: `row`, and the keys that are fixed for the whole table.
        result: The quantity's measure with this number's keys in it.
        published: Printed value; None in an experiment.
        rounding: Half a unit of the last printed digit.
        tolerance: Largest distance of the printed value from the seeds at which it still counts as inside.
        tolerance_stated: True if the paper's file states the tolerance; if not, it is a unit of the last printed digit.
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


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of the paper, or an experiment: rows for claims about which the paper prints no table.

    Attributes:
        across: Key of an experiment whose values are the columns of the table on its page.
    """

    number: str
    title: str
    keys: tuple[str, ...]
    quantities: tuple[str, ...]
    numbers: tuple[Number, ...]
    experiment: bool
    across: str | None = None

    @property
    def heading(self) -> str:
        """The title, with the table's number unless it is the name of a section."""
        return f"Table {self.number}: {self.title}" if self.number.isdigit() else self.title


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A scenario that some number needs. Each scenario is listed once."""

    network: str | None
    scenario: dict[str, Any]
    text: str

    @property
    def duration_s(self) -> float:
        """Simulated seconds."""
        try:
            return seconds(str(self.scenario["duration"]))
        except ValueError:
            raise PaperError(
                f"duration = {described(self.scenario['duration'])} is not a duration such as '10s'"
            ) from None


class Paper(Description):
    """A paper, or a study, with all its numbers.

    Attributes:
        scenarios: Scenarios of figures, by the name in `figures`.
        panels: Scenarios of the panels of figures, by the figure's id.
        claims: Content of `claims.toml`, as `celltrain.papers.claims` reads it.
        overrides: Changes to every configuration, by dotted path.
    """

    kind: Kind
    tables: tuple[Table, ...]
    configurations: tuple[Configuration, ...]
    scenarios: dict[str, dict[str, Any]]
    panels: dict[str, list[dict[str, Any]]]
    claims: list[dict[str, Any]]
    overrides: dict[str, Any]

    @property
    def has_print(self) -> bool:
        """True if some table has printed numbers."""
        return any(not table.experiment for table in self.tables)

    def table(self, number: str) -> Table:
        """Returns the table, or experiment, with this number."""
        by_number = {table.number: table for table in self.tables}
        if number not in by_number:
            raise PaperError(f"{self.id} has no table {described(number)}; it has {', '.join(by_number)}")
        return by_number[number]

    def numbers(
        self, *, tables: Sequence[str | int] | None = None, networks: Sequence[str] | None = None
    ) -> list[Number]:
        """Returns the numbers of these tables (all, with experiments, by default) on these networks (all by default)."""
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


def grouped(items: Iterable[Item], key: Callable[[Item], Hashed]) -> dict[Hashed, list[Item]]:
    """Groups items by a key, in the order in which keys come first."""
    groups: dict[Hashed, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def seed_count(count: int) -> str:
    """Returns a number of seeds in words.

    >>> seed_count(1), seed_count(30)
    ('1 seed', '30 seeds')
    """
    return f"{count} seed" if count == 1 else f"{count} seeds"


def matches(row: Mapping[str, Value], where: Mapping[str, Any]) -> bool:
    """Returns whether a row has these values; a list stands for any of its members."""
    return all(
        key in row and (row[key] in wanted if isinstance(wanted, list) else row[key] == wanted)
        for key, wanted in where.items()
    )
