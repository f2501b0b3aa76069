"""Scenarios and plans: users' files, and shipped files by name. Shipped files are part of the extension module."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from celltrain import _core
from celltrain.errors import Fault, InputError, ScenarioError
from celltrain.model import files
from celltrain.model.files import UnreadableError, below
from celltrain.text import key_path, nearest, shown

#: Folders of shipped files by kind, as shown in messages.
FOLDERS = {"scenario": "scenarios", "plan": "plans"}
#: Valid names of shipped files: no folder, and no unusual characters.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.toml)?")


def names(kind: str) -> list[str]:
    """Lists the names of all shipped files of a kind, `scenario` or `plan`.

    >>> "lan-epd" in names("scenario"), "selective-drop-rz" in names("plan")
    (True, True)
    """
    folder = FOLDERS[kind]
    files = [path.removeprefix(f"{folder}/") for path in _core.data_names(f"{folder}/")]
    # Folders below have files of other kinds, such as the cases of `celltrain bottleneck`.
    return [file.removesuffix(".toml") for file in files if file.endswith(".toml") and "/" not in file]


def glossary() -> dict[str, str]:
    """Returns the terms of docs/glossary.md with their meanings.

    >>> glossary()["K"]
    'The size of the buffer, in cells.'
    """
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", _core.data("docs/glossary.md") or "", re.MULTILINE)
    return {term: meaning for term, meaning in rows if term not in ("term", "---")}


def line_of(lines: Mapping[str, int], key: str) -> int | None:
    """Returns the line of a key, or of the nearest enclosing table in the text; None without lines.

    >>> line_of({"port": 3, "port.a": 4}, "port.a.list[2].x"), line_of({"port": 3}, "duration"), line_of({}, "port")
    (4, 1, None)
    """
    while key and key not in lines:
        key = key[: max(key.rfind("."), key.rfind("["), 0)]
    return lines[key] if key else 1 if lines else None


def scenarios() -> list[str]:
    """Returns the names of the scenarios that come with celltrain; `run`, `compare` and `load` accept them.

    >>> "lan-epd" in scenarios()
    True
    """
    return names("scenario")


def found(name: str | os.PathLike[str], kind: str, folder: Path | None = Path()) -> tuple[str, str] | None:
    """Finds a shipped scenario or plan. Returns its file name for messages, and its text; None if there is none.

    Args:
        name: The name, with or without `.toml`.
        kind: `scenario` or `plan`.
        folder: A folder in which a file of this name takes precedence; None for no folder.

    >>> found("lan-epd", "scenario")[0], found("no-such-thing", "scenario")
    ('scenarios/lan-epd.toml', None)
    """
    text = os.fspath(name)
    if not isinstance(text, str) or not _NAME.fullmatch(text):
        return None
    file = f"{FOLDERS[kind]}/{text.removesuffix('.toml')}.toml"
    content = _core.data(file)
    if content is None or (folder is not None and (folder / text).is_file()):
        return None
    return file, content


def policies(kind: str = "Policy") -> list[str]:
    """Lists the policies of a port, or those of a memory (`MemoryPolicy`), by their names in scenarios."""
    choices = json.loads(_core.schema())["$defs"][kind]["oneOf"]
    return [name for one in choices for name in one["properties"]]


def with_ending(path: Path, folder: Path | None = None) -> str:
    """If the name has no suffix and a file of this name with `.toml` exists, returns that name; otherwise empty."""
    try:
        exists = not path.suffix and ((folder or Path()) / f"{path}.toml").is_file()
    except (OSError, ValueError):
        # The name may be too long for the file system.
        exists = False
    return f"{path}.toml" if exists else ""


def advice(path: Path, kind: str) -> str:
    """Returns the end of a message about a missing file: a shipped file with a similar name, or a policy of this name.

    >>> advice(Path("lan-edp"), "scenario")
    ', and no shipped scenario has this name; did you mean lan-epd? See: celltrain list scenarios'
    >>> advice(Path("elsewhere/lan-epd.toml"), "scenario")
    '; write lan-epd for the scenario that celltrain ships under this name (see: celltrain explain lan-epd)'
    >>> advice(Path("tail_drop"), "scenario")
    '; tail_drop is a policy, which a scenario has at a port, as in celltrain compare lan-epd --vary port.bottleneck.policy=tail_drop'
    """
    if file := with_ending(path):
        return f"; did you mean {shown(file)}?"
    stem = path.name.removesuffix(".toml")
    known = names(kind)
    if str(path) != path.name or _NAME.fullmatch(path.name) is None:
        if stem not in known:
            return ""
        return f"; write {stem} for the {kind} that celltrain ships under this name (see: celltrain explain {stem})"
    if kind == "scenario" and stem in policies():
        example = f"celltrain compare lan-epd --vary port.bottleneck.policy={stem}"
        return f"; {stem} is a policy, which a scenario has at a port, as in {example}"
    hint = f"; did you mean {near}?" if (near := nearest(stem, known)) else "."
    return f", and no shipped {kind} has this name{hint} See: celltrain list {FOLDERS[kind]}"


def named_text(name: str | os.PathLike[str], kind: str = "scenario", folder: Path | None = Path()) -> tuple[str, str]:
    """Returns the display name and the text of a scenario or plan, either a file or a shipped one.

    Args:
        name: The path or the name; a file of that name takes precedence.
        kind: `scenario` or `plan`.
        folder: A folder in which a file of this name takes precedence; None for no folder.

    Raises:
        ScenarioError: If there is neither.
    """
    return found(name, kind, folder) or (shown(name), read_text(Path(name), what=kind))


def toml(text: str, file: str) -> tuple[dict[str, Any], dict[str, int]]:
    """Parses TOML; returns the tables, and the line of every key. Raises `ScenarioError` under the name of the file."""
    answer = json.loads(_core.toml(text, file))
    if answer["faults"]:
        raise ScenarioError.from_core(answer["faults"])
    return answer["root"], answer["lines"]


@cache
def package_data(path: str) -> dict[str, Any]:
    """Returns the tables of a TOML file of this package, such as `papers/tables.toml`."""
    return toml((Path(__file__).parents[1] / path).read_text(encoding="utf-8"), path)[0]


def read_text(path: Path, *, what: str = "scenario") -> str:
    """Reads a text file of at most the maximum size of a scenario; raises `ScenarioError` if that is impossible."""
    name = shown(path)
    try:
        content = files.read_bytes(path, what=what)
    except files.UnreadableError as error:
        known = error.missing and what in FOLDERS
        raise ScenarioError.of_file(name, f"{error.problem}{advice(path, what)}" if known else error.problem) from None
    try:
        # Some editors write a byte order mark.
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        form = f"; a {what} is a TOML file" if what in FOLDERS else ""
        problem = f"is not text in UTF-8 (byte 0x{content[error.start]:02x} in line {line}){form}"
        raise ScenarioError.of_file(name, problem) from None
    # A file of another kind, such as a table of results, would cause a fault in every line.
    is_other = what in (*FOLDERS, "policy") and path.suffix not in ("", ".toml")
    if is_other and (faults := json.loads(_core.toml(text, name))["faults"]):
        problem = f"is not a {what}, which is a TOML file: line {faults[0]['line']} {faults[0]['problem']}"
        raise ScenarioError.of_file(name, problem)
    return text


# Files with the sizes of requests, and files with the delivery opportunities of links. Their rows replace their names in
# a scenario.


#: Ending of the names of files with sizes.
SIZES_ENDING = ".csv"
#: Key of a link that may name a file with delivery opportunities.
_TRACE = "rate_change"
#: Every scenario that names a file contains at least one of these texts.
OF_FILES = (SIZES_ENDING, _TRACE)
#: A number. Python's `float` also accepts underscores, and the digits of other scripts.
_NUMBER = re.compile(r"\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*")
#: A cell that starts like a number, in any script of the world.
_LIKE_NUMBER = re.compile(r"(?:^|[,;\t])\s*[\"']?[-+.]?\d")
#: Form of a row, for messages.
SIZES_FORM = "a size in bytes, a comma and the probability of sizes up to it, such as 20000,0.6"
#: Form of a line of a trace, for messages.
TRACE_FORM = "a time in whole milliseconds, such as 12, at which 1504 bytes may leave"


@dataclass(frozen=True, kw_only=True)
class RowFile:
    """The rows of a file that replace its name in a scenario."""

    file: str
    """Name of the file in messages."""
    rows: list[Any]
    """Sizes in bytes with their probabilities, or milliseconds."""
    lines: list[int]
    """Line number of each row."""

    def placed(self, fault: Fault, key: str) -> Fault:
        """Moves a fault in a row of the setting at `key` to the row's line in the file."""
        match = re.fullmatch(re.escape(key) + r"\[(\d+)\]", fault.key)
        if match is None:
            return fault
        # Messages do not quote the file, because it may contain anything.
        return fault.changed(file=self.file, line=self.lines[int(match[1])], value="")


def is_row_file(path: str, value: str) -> bool:
    """Returns whether a setting names a file of sizes or of delivery opportunities."""
    is_size = value.endswith(SIZES_ENDING) and path.startswith("requests.") and path.endswith(".sizes")
    return is_size or (path.startswith("link.") and path.endswith(f".{_TRACE}.trace"))


def read_rows(name: str, folder: Path | None, key: str) -> RowFile:
    """Reads the file that the setting at `key` names; raises `InputError`.

    `folder` is that of the file that has the setting; None if the user gave the setting.
    """
    is_trace = key.endswith(".trace")
    try:
        path = Path(name) if folder is None else below(folder, name)
    except UnreadableError as error:
        raise InputError.of_file(shown(name), error.problem) from None
    text = read_text(path, what="trace" if is_trace else "size")
    return (_trace if is_trace else _sizes)(text, shown(path), key)


def _trace(text: str, file: str, key: str) -> RowFile:
    """Reads delivery opportunities in the form of Mahimahi: a millisecond on each line."""
    lines = {number: row.strip() for number, row in enumerate(text.splitlines(), start=1) if row.strip()}
    for line, row in lines.items():
        if not re.fullmatch(r"[0-9]{1,18}", row):
            raise InputError.of(f"is not {TRACE_FORM}", file=file, line=line, key=key)
    if not lines:
        raise InputError.of_file(file, f"is empty; each line is {TRACE_FORM}")
    return RowFile(file=file, rows=[int(row) for row in lines.values()], lines=list(lines))


def _sizes(text: str, file: str, key: str) -> RowFile:
    """Reads sizes. Comments start with `#`, and the first row may be a heading, which has no numbers."""
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
            raise InputError.of(f"is not {SIZES_FORM}", file=file, line=line, key=f"{key}[{len(rows)}]")
        is_first = False
    if not rows:
        raise InputError.of_file(file, f"has no rows; each is {SIZES_FORM}")
    return RowFile(file=file, rows=rows, lines=lines)


def with_rows(
    scenario: Mapping[str, Any], folder: Path | None, file: str, lines: Mapping[str, int] | None = None
) -> tuple[Mapping[str, Any], dict[str, RowFile]]:
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
    if not isinstance(scenario, Mapping):
        return scenario, {}
    made, files, faults = dict(scenario), {}, []
    for key, steps, named in _named(scenario):
        try:
            found = read_rows(named, folder, key)
        except InputError as error:
            faults += [
                fault if fault.key else _unreadable(fault, key, named).changed(file=file, line=(lines or {}).get(key))
                for fault in error.faults
            ]
            continue
        files[key] = found
        table: dict[str, Any] = made
        for step in steps[:-1]:
            table[step] = dict(table[step])
            table = table[step]
        table[steps[-1]] = found.rows
    if faults:
        raise InputError(faults)
    return made, files


def _named(scenario: Mapping[str, Any]) -> Iterator[tuple[str, list[str], str]]:
    """Lists the files that a scenario names: the key of the setting, its steps, and the name."""
    for kind, inner in (("requests", ["sizes"]), ("link", [_TRACE, "trace"])):
        tables = scenario.get(kind)
        for name, table in tables.items() if isinstance(tables, Mapping) else ():
            value: Any = table
            for step in inner:
                value = value.get(step) if isinstance(value, Mapping) else None
            path = ".".join([kind, name, *inner])
            if isinstance(value, str) and is_row_file(path, value):
                yield ".".join([key_path(kind, name), *inner]), [kind, name, *inner], value


def placed(fault: Fault, files: Mapping[str, RowFile]) -> Fault:
    """Assigns the fault of a row to the file that contains the row."""
    for key, file in files.items():
        if (moved := file.placed(fault, key)) is not fault:
            return moved
    return fault


def _unreadable(fault: Fault, key: str, name: str) -> Fault:
    """Returns a fault of a whole file as a fault of the setting that names the file."""
    return Fault.of(f"cannot be used: {fault.message}", key=key, value=json.dumps(name))


def _numbers(row: str) -> list[float] | None:
    """Returns the two numbers of a row; None for other texts."""
    cells = row.split(",")
    if len(cells) != 2 or not all(map(_NUMBER.fullmatch, cells)):
        return None
    numbers = [float(cell) for cell in cells]
    return numbers if all(map(math.isfinite, numbers)) else None
