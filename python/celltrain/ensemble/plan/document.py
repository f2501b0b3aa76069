"""The text of a plan: its values, the lines they stand on, and what is wrong with them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

from celltrain import _core
from celltrain.errors import Fault, PlanError
from celltrain.text import described, shortened

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Lines = Mapping[str, int]
#: Where something stands: the keys of tables and the numbers of entries in lists that lead there.
Place = tuple[str | int, ...]

#: Of a whole number of a plan: one of more is in no range, and no float holds it.
MOST_BITS = 1023
#: Faults of a plan that are told.
MOST_FAULTS = 100


def parse(text: str, file: str) -> tuple[dict[str, Any], Lines]:
    """A TOML text's values, and the line of every key; raises `PlanError`."""
    answer = json.loads(_core.toml(text, file))
    if answer["faults"]:
        raise PlanError(Fault(**fault) for fault in answer["faults"])
    # Python's reader keeps the order of the keys, which is that of the columns.
    try:
        return _as_json(tomllib.loads(text)), answer["lines"]
    except ValueError as error:
        # It reads no number of thousands of digits.
        raise PlanError([Fault.of_file(file, f"cannot be read as TOML ({error})")]) from None


def _as_json(value: Any) -> Any:
    """A value of TOML as JSON has it: dates are texts."""
    if isinstance(value, dict):
        return {key: _as_json(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_as_json(one) for one in value]
    return value if isinstance(value, str | int | float | bool) else str(value)


def join(path: str, key: str | int) -> str:
    """The path of a key inside a table, as `lines` has it."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    name = key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)
    return f"{path}.{name}" if path else name


def as_text(value: Any) -> str:
    """A value as a message shows it."""
    if isinstance(value, Mapping):
        return "{...}"
    try:
        return shortened(json.dumps(value, ensure_ascii=False, default=described))
    except ValueError:
        # A list that holds itself, or a number of more digits than Python writes.
        return described(value)


class Diagnostics:
    """Collects the faults of a plan."""

    def __init__(self, file: str, lines: Lines | None, document: Mapping[str, Any] | None = None) -> None:
        self.file = file
        self.document = document or {}
        """The plan as it was given."""
        self._lines = lines
        self.faults: list[Fault] = []

    def place(self, steps: Iterable[str | int]) -> Place:
        """The steps that the plan has; others are in no file, as `axes.buffer.path` where the name is the path."""
        found: list[str | int] = []
        value: Any = self.document
        for step in steps:
            if step in value if isinstance(value, Mapping) else isinstance(value, list) and step in range(len(value)):
                found.append(step)
                value = value[step]
        return tuple(found)

    def at(self, place: Place) -> Any:
        """What the plan has at a place."""
        value: Any = self.document
        for step in place:
            value = value[step]
        return value

    def has(self, *place: str | int) -> bool:
        """Whether the plan says something there, be it right or wrong."""
        return self.place(place) == place and self.at(place) is not None

    def line(self, path: str) -> int | None:
        """The line of a key, or of the nearest table around it; None without a text."""
        while self._lines is not None and path not in self._lines:
            end = max(path.rfind("."), path.rfind("["))
            if end < 0:
                return 1
            path = path[:end]
        return None if self._lines is None else self._lines[path]

    def refuse(self, at: str | Place, problem: str, value: Any = ...) -> None:
        """Adds a fault: the problem is a clause that follows `path = value`, or the path alone.

        A place is told as far as the plan has it.
        """
        path = at if isinstance(at, str) else reduce(join, self.place(at), "")
        text = "" if value is ... else as_text(value)
        fault = Fault.of(problem, file=self.file, line=self.line(path), key=path, value=text)
        if fault in self.faults:
            return
        self.faults.append(fault)
        if len(self.faults) > MOST_FAULTS:
            more = Fault.of(f"has more faults than these {MOST_FAULTS}", file=self.file)
            raise PlanError([*self.faults[:MOST_FAULTS], more])

    def say(self, path: str, sentence: str, value: Any) -> None:
        """Adds a fault whose message is a sentence of its own, after the line of the key if there is one."""
        line = self.line(path)
        place = "" if line is None else f"{self.file}:{line}: "
        file = "" if line is None else self.file
        said = Fault.of(sentence, file=file, line=line, key=path, value=as_text(value))
        self.faults.append(replace(said, message=f"{place}{said.problem}"))

    def numbers(self) -> None:
        """Refuses whole numbers beyond all that can be set, wherever they stand; raises `PlanError` if there are any."""
        before, seen = len(self.faults), set()
        left: list[tuple[str, Any]] = [("", self.document)]
        while left:
            path, value = left.pop()
            if isinstance(value, Mapping | list) and id(value) not in seen:
                seen.add(id(value))
                inside = value.items() if isinstance(value, Mapping) else enumerate(value)
                left += [
                    (join(path, key if isinstance(key, int) else str(key)), one)
                    for key, one in inside
                    if isinstance(one, int | list | Mapping)
                ]
            elif isinstance(value, int) and value.bit_length() > MOST_BITS:
                self.refuse(path, "is a number beyond all that can be set", value)
        if len(self.faults) > before:
            raise PlanError(self.faults)
