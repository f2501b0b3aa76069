"""The text of a plan: its values, the lines they stand on, and what is wrong with them."""

from __future__ import annotations

import difflib
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from celltrain import _core
from celltrain.errors import Fault, PlanError
from celltrain.text import described, shortened

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Lines = Mapping[str, int]

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
    """Collects faults; what it is asked for has the wrong form is as good as absent."""

    def __init__(self, file: str, lines: Lines | None) -> None:
        self.file = file
        self._lines = lines
        self.faults: list[Fault] = []

    def line(self, path: str) -> int | None:
        """The line of a key, or of the nearest table around it; None without a text."""
        while self._lines is not None and path not in self._lines:
            end = max(path.rfind("."), path.rfind("["))
            if end < 0:
                return 1
            path = path[:end]
        return None if self._lines is None else self._lines[path]

    def refuse(self, path: str, problem: str, value: Any = ...) -> None:
        """Adds a fault: the problem is a clause that follows `path = value`, or the path alone."""
        text = "" if value is ... else as_text(value)
        fault = Fault.of(problem, file=self.file, line=self.line(path), key=path, value=text)
        if fault in self.faults:
            return
        self.faults.append(fault)
        if len(self.faults) > MOST_FAULTS:
            more = Fault.of(f"has more faults than these {MOST_FAULTS}", file=self.file)
            raise PlanError([*self.faults[:MOST_FAULTS], more])

    def numbers(self, document: Any) -> None:
        """Refuses whole numbers beyond all that can be set, wherever they stand; raises `PlanError` if there are any."""
        before, seen = len(self.faults), set()
        left: list[tuple[str, Any]] = [("", document)]
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

    def table(self, value: Any, path: str, known: Iterable[str] | None = None) -> dict[str, Any]:
        """A table, without the keys that are unknown."""
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.refuse(path, "is not a table", value)
            return {}
        if known is None:
            return dict(value)
        names = list(known)
        for key in value:
            if key not in names:
                near = difflib.get_close_matches(str(key), names, n=1)
                hint = f"did you mean {near[0]}? " if near else ""
                self.refuse(join(path, key), f"is unknown; {hint}Known keys: {', '.join(names)}")
        return {key: one for key, one in value.items() if key in names}

    def whole(self, value: Any, path: str, least: int, most: int) -> int | None:
        """A whole number in a range; None when it is absent or refused."""
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.refuse(path, f"is not a whole number from {least:,} to {most:,}", value)
            return None
        return value

    def number(self, value: Any, path: str, expected: str) -> float | None:
        """A number above zero; None when it is absent or refused."""
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
            self.refuse(path, f"is not {expected}", value)
            return None
        return float(value)

    def text(self, value: Any, path: str, expected: str) -> str | None:
        """A text that says something; None when it is absent or refused."""
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            self.refuse(path, f"is not {expected}", value)
            return None
        return value

    def word(self, value: Any, path: str, words: Iterable[str]) -> str | None:
        """One of some words; None when it is absent or refused."""
        if value is None:
            return None
        names = list(words)
        if value not in names:
            self.refuse(path, f"must be one of {', '.join(map(json.dumps, names))}", value)
            return None
        return str(value)
