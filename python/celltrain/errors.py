"""What can go wrong, as classes a caller can catch, with the parts of the message as attributes."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from celltrain.text import MOST_CLAUSE, described, shortened, shown


def add_note(error: BaseException, note: str) -> None:
    """Adds a line to what is said of an exception, as its `add_note` does from Python 3.11 on."""
    error.__notes__ = [*notes_of(error), note]  # type: ignore[attr-defined, unused-ignore]


def notes_of(error: BaseException) -> list[str]:
    """The lines that were added."""
    return [str(note) for note in getattr(error, "__notes__", [])]


class CelltrainError(Exception):
    """Every error celltrain raises on purpose."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One setting that is refused, and what would be right.

    What is not to be seen in its texts, such as a command to a terminal, is escaped.
    """

    file: str
    """Where it stands: a file, or the class or scenario it was given to in Python."""
    line: int | None
    """The line in that file, where there is one."""
    key: str
    """The setting, for example `port.bottleneck.policy.epd.threshold`; empty where the whole file is at fault."""
    value: str
    """Its value, as written."""
    problem: str
    """What is wrong and what would be right, a clause that follows the value."""
    message: str
    """The whole as one line."""
    excerpt: tuple[str, ...] = ()
    """Of a text at fault the line, and below it marks under the place."""

    def __post_init__(self) -> None:
        for name in ("file", "key", "value", "problem", "message"):
            object.__setattr__(self, name, shown(_text(getattr(self, name))))
        object.__setattr__(self, "excerpt", tuple(shown(_text(line)) for line in self.excerpt))

    @classmethod
    def of(cls, problem: str, *, file: str = "", line: int | None = None, key: str = "", value: str = "") -> Fault:
        """A fault of its parts; those that are long are shortened."""
        file, key, problem = (shortened(_text(part), MOST_CLAUSE) for part in (file, key, problem))
        value = shortened(_text(value))
        place = "" if not file else f"{file}: " if line is None else f"{file}:{line}: "
        subject = f"{key} = {value} " if value else f"{key} " if key else ""
        return cls(file=file, line=line, key=key, value=value, problem=problem, message=f"{place}{subject}{problem}")

    @classmethod
    def of_file(cls, file: str, problem: str) -> Fault:
        """A file that is at fault as a whole."""
        return cls.of(problem, file=file)

    @classmethod
    def of_option(cls, option: str, value: object, problem: str) -> Fault:
        """An option of a call or a command."""
        return cls.of(problem, key=option, value=_text(value))

    @classmethod
    def saying(cls, message: str, *, key: str = "", value: str = "") -> Fault:
        """Returns a fault of an option whose message is a sentence of its own."""
        said = cls.of(message, key=key, value=value)
        return cls(file="", line=None, key=said.key, value=said.value, problem=said.problem, message=said.problem)

    def to_dict(self) -> dict[str, Any]:
        """The parts, as in the JSON answers of the command line."""
        parts = asdict(self)
        return parts if self.excerpt else {name: part for name, part in parts.items() if name != "excerpt"}

    @property
    def lines(self) -> list[str]:
        """The message, and below it the excerpt."""
        return [self.message, *(f"    {line}" for line in self.excerpt)]


def _text(part: object) -> str:
    """A part of a message, whatever it was given as."""
    return part if isinstance(part, str) else described(part)


class InputError(CelltrainError, ValueError):
    """Something given to celltrain that is refused; `faults` holds everything that is wrong with it."""

    def __init__(self, faults: Iterable[Fault] | Fault | str) -> None:
        given = faults if isinstance(faults, Iterable) and not isinstance(faults, str) else [faults]
        self.faults = [fault if isinstance(fault, Fault) else Fault.of(_text(fault)) for fault in given]
        super().__init__("\n".join(line for fault in self.faults for line in fault.lines))

    def __reduce__(self) -> tuple[type[InputError], tuple[list[Fault]]]:
        return type(self), (self.faults,)


class ScenarioError(InputError):
    """A scenario, or an option of a run, that is refused.

    >>> import celltrain as ct
    >>> try:
    ...     ct.Epd(threshold=-1)
    ... except ct.ScenarioError as error:
    ...     print(error.faults[0].key, error.faults[0].value)
    threshold -1
    """

    @classmethod
    def from_core(cls, faults: Iterable[Mapping[str, Any]]) -> ScenarioError:
        """The error for faults as the core reports them."""
        return cls(Fault(**fault) for fault in faults)

    @classmethod
    def of_refusal(cls, error: ValueError) -> ScenarioError:
        """The error for what the core raises where a scenario it had accepted cannot be laid out or run after all.

        That is so where memory that was free is free no more, and where an option makes no sense.
        """
        text = str(error)
        try:
            return cls.from_core(json.loads(text)["faults"])
        except json.JSONDecodeError:
            pass
        # An option: `step = "5" is no time`, or `"sw9" is not a port`, which the option's name goes before.
        option = re.match(r'(?:(\w+) = )?("(?:[^"\\]|\\.)*") (.*)', text, re.DOTALL)
        if option is None:
            return cls([Fault.of(text)])
        key, value, problem = option.groups()
        return cls([Fault.of_option(key or "ports", value, problem)])


class PlanError(InputError):
    """A plan that is refused."""


class PaperError(InputError):
    """What was asked of a paper or a study, or what its folder says, makes no sense; the message says what would."""


class StoreError(InputError):
    """A store that cannot be read, written or gone on with."""


class TuneError(InputError):
    """A search's folder that cannot be written or gone on with."""


class ClusterError(InputError):
    """A cluster that cannot be reached, was lost, or whose workers run another celltrain."""


class OutputError(InputError, OSError):
    """A file or folder that cannot be written."""


class CancelledError(CelltrainError):
    """A call was ended by its `celltrain.Cancel`."""


class NotTracedError(CelltrainError, KeyError):
    """A series was asked for that the run did not record."""

    def __str__(self) -> str:
        # KeyError would put the message in quotes.
        return str(self.args[0])


class MissingExtraError(CelltrainError, ImportError):
    """An optional package is needed and not installed."""


class CelltrainWarning(UserWarning):
    """Look before you trust this result."""


def warn(messages: Iterable[str]) -> None:
    """Issues a `CelltrainWarning` for each message, at the line that called into this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "celltrain":
        level, frame = level + 1, frame.f_back
    for message in messages:
        warnings.warn(shown(shortened(message, MOST_CLAUSE)), CelltrainWarning, stacklevel=level)
