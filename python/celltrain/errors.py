"""Exception classes, with the parts of the message as attributes."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.text import MOST_CLAUSE, described, shortened, shown

if TYPE_CHECKING:
    from typing_extensions import Self


def add_note(error: BaseException, note: str) -> None:
    """Adds a line to the message of an exception, like its method `add_note` in Python 3.11 and later."""
    error.__notes__ = [*notes_of(error), note]  # type: ignore[attr-defined, unused-ignore]


def notes_of(error: BaseException) -> list[str]:
    """Returns the lines that `add_note` added."""
    return [str(note) for note in getattr(error, "__notes__", [])]


class CelltrainError(Exception):
    """Base class of all errors that celltrain raises on purpose."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A setting that was refused, and how to correct it.

    Invisible characters in the texts of a fault, such as terminal escape sequences, are escaped.
    """

    file: str
    """The file that contains the setting, or in Python the class or scenario."""
    line: int | None
    """The line in that file, if there is one."""
    key: str
    """The setting, for example `port.bottleneck.policy.epd.threshold`; empty if the whole file is at fault."""
    value: str
    """The value, as written."""
    problem: str
    """The problem and its correction, as a clause that follows the value."""
    message: str
    """The complete message of a fault in one line."""
    excerpt: tuple[str, ...] = ()
    """The faulty line of a text, and a line that marks the position."""

    def __post_init__(self) -> None:
        for name in ("file", "key", "value", "problem", "message"):
            object.__setattr__(self, name, shown(_text(getattr(self, name))))
        object.__setattr__(self, "excerpt", tuple(shown(_text(line)) for line in self.excerpt))

    @classmethod
    def of(cls, problem: str, *, file: str = "", line: int | None = None, key: str = "", value: str = "") -> Fault:
        """Creates a fault from its parts. Shortens long parts."""
        file, key, problem = (shortened(_text(part), MOST_CLAUSE) for part in (file, key, problem))
        value = shortened(_text(value))
        place = "" if not file else f"{file}: " if line is None else f"{file}:{line}: "
        subject = f"{key} = {value} " if value else f"{key} " if key else ""
        return cls(file=file, line=line, key=key, value=value, problem=problem, message=f"{place}{subject}{problem}")

    @classmethod
    def of_file(cls, file: str | os.PathLike[str], problem: str) -> Fault:
        """Creates a fault of a whole file."""
        return cls.of(problem, file=shown(file) if isinstance(file, str | os.PathLike) else _text(file))

    @classmethod
    def of_option(cls, option: str, value: object, problem: str) -> Fault:
        """Creates a fault of an option of a call or a command."""
        return cls.of(problem, key=option, value=_text(value))

    @classmethod
    def of_choice(cls, option: str, value: object, kind: str, known: Iterable[str]) -> Fault:
        """Creates a fault of an option whose value is not among the known values."""
        return cls.of_option(option, repr(value), f"is not {kind}; choose from {', '.join(known)}")

    @classmethod
    def saying(cls, message: str, *, key: str = "", value: str = "") -> Fault:
        """Creates a fault of an option whose message is a complete sentence."""
        fault = cls.of(message, key=key, value=value)
        return replace(fault, message=fault.problem)

    def changed(self, **parts: Any) -> Fault:
        """Returns the fault with some parts replaced, and a new message."""
        names = ("problem", "file", "line", "key", "value")
        made = Fault.of(**{name: getattr(self, name) for name in names} | parts)
        return replace(made, excerpt=self.excerpt)

    def to_dict(self) -> dict[str, Any]:
        """Returns the parts as printed by the command line in JSON."""
        return {name: part for name, part in asdict(self).items() if name != "excerpt" or part}

    @property
    def lines(self) -> list[str]:
        """Message of the fault, followed by the excerpt."""
        return [self.message, *(f"    {line}" for line in self.excerpt)]


def _text(part: object) -> str:
    return part if isinstance(part, str) else described(part)


class InputError(CelltrainError, ValueError):
    """An argument, option or file was refused; `faults` lists all reasons."""

    def __init__(self, faults: Iterable[Fault] | Fault | str) -> None:
        several = faults if isinstance(faults, Iterable) and not isinstance(faults, str) else [faults]
        self.faults = [fault if isinstance(fault, Fault) else Fault.of(_text(fault)) for fault in several]
        super().__init__("\n".join(line for fault in self.faults for line in fault.lines))

    @classmethod
    def of(cls, problem: str, **parts: Any) -> Self:
        """Creates the error of one fault, as `Fault.of` does."""
        return cls([Fault.of(problem, **parts)])

    @classmethod
    def of_file(cls, file: str | os.PathLike[str], problem: str) -> Self:
        """Creates the error of one file."""
        return cls([Fault.of_file(file, problem)])

    @classmethod
    def of_option(cls, option: str, value: object, problem: str) -> Self:
        """Creates the error of one option."""
        return cls([Fault.of_option(option, value, problem)])

    @classmethod
    def saying(cls, message: str, *, key: str = "", value: str = "") -> Self:
        """Creates the error with this message."""
        return cls([Fault.saying(message, key=key, value=value)])

    def __reduce__(self) -> tuple[type[InputError], tuple[list[Fault]]]:
        return type(self), (self.faults,)


class ScenarioError(InputError):
    """A scenario, or an option of a run, was refused.

    >>> import celltrain as ct
    >>> try:
    ...     ct.Epd(threshold=-1)
    ... except ct.ScenarioError as error:
    ...     print(error.faults[0].key, error.faults[0].value)
    threshold -1
    """

    @classmethod
    def from_core(cls, faults: Iterable[Mapping[str, Any]]) -> ScenarioError:
        """Creates the error from faults reported by the core."""
        return cls(Fault(**fault) for fault in faults)

    @classmethod
    def of_refusal(cls, text: str) -> ScenarioError:
        """Creates the error if the core cannot build or run a scenario that it has accepted. The core calls this.

        Possible reasons are less free memory than before, and invalid options.
        """
        try:
            return cls.from_core(json.loads(text)["faults"])
        except json.JSONDecodeError:
            pass
        # The error concerns an option. It starts with the option's name, as in `step = "5" is not a time`, or with its
        # value, as in `"sw9" is not a port`.
        option = re.match(r'(?:(\w+) = )?("(?:[^"\\]|\\.)*") (.*)', text, re.DOTALL)
        if option is None:
            return cls([Fault.of(text)])
        key, value, problem = option.groups()
        return cls([Fault.of_option(key or "ports", value, problem)])


class PlanError(InputError):
    """A plan that is refused."""


class PaperError(InputError):
    """A request about a paper or study is invalid, or its folder is. The message contains the correction."""


class StoreError(InputError):
    """A store cannot be read, written or continued."""


class TuneError(InputError):
    """The folder of a search cannot be written or continued."""


class ClusterError(InputError):
    """A cluster cannot be reached, was lost, or has workers with another version of celltrain."""


class OutputError(InputError, OSError):
    """A file or folder cannot be written."""


class CancelledError(CelltrainError):
    """A call was ended by its handle `celltrain.Cancel`."""


class NotTracedError(CelltrainError, KeyError):
    """The run did not record this series."""

    def __str__(self) -> str:
        # KeyError would put quotation marks around the message.
        return str(self.args[0])


class MissingExtraError(CelltrainError, ImportError):
    """An optional package is required but not installed."""


def needed(module: str, message: str) -> Any:
    """Imports and returns a module of an optional package; raises `MissingExtraError` with the message."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(re.sub(r"'?celltrain\[(\w+)\]'?", lambda extra: package(extra[1]), message)) from error


def package(extra: str) -> str:
    """Returns the argument of `pip install` for an extra: in a checkout, the checkout itself."""
    is_checkout = (Path(__file__).parents[2] / "pyproject.toml").is_file()
    return f"'.[{extra}]'" if is_checkout else f"'celltrain[{extra}]'"


class CelltrainWarning(UserWarning):
    """A reason to doubt a result."""


def warn(messages: Iterable[str]) -> None:
    """Issues a `CelltrainWarning` for each message, at the line that called into this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "celltrain":
        level, frame = level + 1, frame.f_back
    for message in messages:
        warnings.warn(shown(shortened(message, MOST_CLAUSE)), CelltrainWarning, stacklevel=level)
