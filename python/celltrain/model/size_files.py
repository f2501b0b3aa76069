"""Files with the sizes of requests. Their rows of bytes and probability replace their names in a scenario."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from celltrain.errors import Fault, InputError
from celltrain.model.files import UnreadableError, below
from celltrain.model.shipped import read_text
from celltrain.text import shown

#: Ending of the names of files with sizes.
ENDING = ".csv"
#: A number. Python's `float` also accepts underscores, and the digits of other scripts.
_NUMBER = re.compile(r"\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*")
#: A cell that starts like a number, in any script of the world.
_LIKE_NUMBER = re.compile(r"(?:^|[,;\t])\s*[\"']?[-+.]?\d")
#: Form of a row, for messages.
FORM = "a size in bytes, a comma and the probability of sizes up to it, such as 20000,0.6"


@dataclass(frozen=True, kw_only=True)
class SizeFile:
    """A cumulative distribution function of sizes in a file."""

    file: str
    """Name of the file in messages."""
    rows: list[list[float]]
    """Sizes in bytes with their probabilities."""
    lines: list[int]
    """Line number of each row."""

    def placed(self, fault: Fault, key: str) -> Fault:
        """Moves a fault in a row of the setting at `key` to the row's line in the file."""
        match = re.fullmatch(re.escape(key) + r"\[(\d+)\]", fault.key)
        if match is None:
            return fault
        # Messages do not quote the file, because it may contain anything.
        return fault.changed(file=self.file, line=self.lines[int(match[1])], value="")


def is_file(path: str, value: str) -> bool:
    """Returns whether a setting names a file of sizes."""
    return value.endswith(ENDING) and path.startswith("requests.") and path.endswith(".sizes")


def read(name: str, folder: Path | None, key: str) -> SizeFile:
    """Reads the file of sizes that the setting at `key` names; raises `InputError`.

    Comments start with `#`, and the first row may be a heading, which has no numbers. `folder` is that of the file that
    has the setting; None if the user gave the setting.
    """
    try:
        path = Path(name) if folder is None else below(folder, name)
    except UnreadableError as error:
        raise InputError.of_file(shown(name), error.problem) from None
    file = shown(path)
    text = read_text(path, what="size")
    rows: list[list[float]] = []
    lines: list[int] = []
    is_first = True
    for line, row in enumerate(text.splitlines(), start=1):
        if not row.strip() or row.startswith("#"):
            continue
        numbers = _numbers(row)
        if numbers is not None:
            rows.append(numbers)
            lines.append(line)
        elif not is_first or _LIKE_NUMBER.search(row):
            raise InputError.of(f"is not {FORM}", file=file, line=line, key=f"{key}[{len(rows)}]")
        is_first = False
    if not rows:
        raise InputError.of_file(file, f"has no rows; each is {FORM}")
    return SizeFile(file=file, rows=rows, lines=lines)


def with_rows(
    scenario: Mapping[str, Any], folder: Path | None, file: str, lines: Mapping[str, int] | None = None
) -> tuple[Mapping[str, Any], dict[str, SizeFile]]:
    """Replaces the files that a scenario names with their rows.

    Args:
        scenario: The table of the scenario.
        folder: The folder of the scenario, which must contain the files; None if a user gave the names.
        file: Name of the scenario in messages.
        lines: Line numbers of the settings of the scenario.

    Returns:
        The scenario, and the files by the key of the setting.

    Raises:
        InputError: If a file cannot be read.
    """
    groups = scenario.get("requests") if isinstance(scenario, Mapping) else None
    if not isinstance(groups, Mapping):
        return scenario, {}
    made, files, faults = dict(scenario), {}, []
    for name, group in groups.items():
        sizes = group.get("sizes") if isinstance(group, Mapping) else None
        if not isinstance(sizes, str) or not sizes.endswith(ENDING):
            continue
        key = _key(name)
        try:
            found = read(sizes, folder, key)
        except InputError as error:
            faults += [
                fault if fault.key else _unreadable(fault, key, sizes).changed(file=file, line=(lines or {}).get(key))
                for fault in error.faults
            ]
            continue
        files[key] = found
        made["requests"] = {**made["requests"], name: {**group, "sizes": found.rows}}
    if faults:
        raise InputError(faults)
    return made, files


def placed(fault: Fault, files: Mapping[str, SizeFile]) -> Fault:
    """Assigns the fault of a row to the file that contains the row."""
    for key, file in files.items():
        if (moved := file.placed(fault, key)) is not fault:
            return moved
    return fault


def _unreadable(fault: Fault, key: str, name: str) -> Fault:
    """Returns a fault of a whole file as a fault of the setting that names the file."""
    return Fault.of(f"cannot be used: {fault.message}", key=key, value=json.dumps(name))


def _key(group: str) -> str:
    """Returns the key of a group's sizes, as in faults."""
    name = group if re.fullmatch(r"[A-Za-z0-9_-]+", group) else json.dumps(group, ensure_ascii=False)
    return f"requests.{name}.sizes"


def _numbers(row: str) -> list[float] | None:
    """Returns the two numbers of a row; None for other texts."""
    cells = row.split(",")
    if len(cells) != 2 or not all(map(_NUMBER.fullmatch, cells)):
        return None
    numbers = [float(cell) for cell in cells]
    return numbers if all(map(math.isfinite, numbers)) else None
