"""Text files that people write: scenarios, plans and policies."""

from __future__ import annotations

import os
from pathlib import Path

from celltrain.errors import Fault, ScenarioError
from celltrain.model import files, shipped
from celltrain.text import shown


def named_text(name: str | os.PathLike[str], kind: str = "scenario") -> tuple[str, str]:
    """Returns how messages call a scenario or a plan, and its text: a file, or a shipped one by its name.

    Args:
        name: The path or the name; a file of that name goes first.
        kind: `scenario` or `plan`.

    Raises:
        ScenarioError: When it is neither.
    """
    return shipped.found(name, kind) or (shown(name), read_text(Path(name), what=kind))


def read_text(path: Path, *, what: str = "scenario") -> str:
    """Returns the text of a scenario file, or of another file of that size; raises `ScenarioError` if it cannot be one."""
    name = shown(path)
    try:
        content = files.read_bytes(path, what=what)
    except files.UnreadableError as error:
        known = error.missing and what in shipped.FOLDERS
        problem = f"{error.problem}{shipped.advice(path, what)}" if known else error.problem
        raise ScenarioError([Fault.of_file(name, problem)]) from None
    try:
        # Some editors write a byte order mark.
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        form = f"; a {what} is a TOML file" if what in shipped.FOLDERS else ""
        problem = f"is not text in UTF-8 (byte 0x{content[error.start]:02x} in line {line}){form}"
        raise ScenarioError([Fault.of_file(name, problem)]) from None
