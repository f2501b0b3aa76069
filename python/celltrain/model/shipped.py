"""Scenarios and plans: users' files, and shipped files by name. Shipped files are part of the extension module."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from celltrain import _core
from celltrain.errors import ScenarioError
from celltrain.model import files
from celltrain.text import nearest, shown

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
    return [file.removesuffix(".toml") for file in files if file.endswith(".toml")]


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
