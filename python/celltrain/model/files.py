"""Reading of files of other people: regular files up to a size, with a message for everything that is wrong.

Callers turn `UnreadableError` into an error of their own kind.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from celltrain.text import BROKEN, broken_texts

#: Largest scenario, plan or graph: a page of text, or a network of some ten thousand nodes.
MAX_BYTES = 16 << 20
#: Largest file that celltrain itself writes about a plan, with one number in a line.
MAX_WRITTEN_BYTES = 256 << 20
#: Levels of tables and lists: a scenario has seven, and the core's reader of TOML takes 80.
MAX_DEPTH = 80


class UnreadableError(Exception):
    """A file that cannot be read; the text is a clause that follows the file's name."""

    def __init__(self, problem: str, *, missing: bool = False, regular: bool = True) -> None:
        self.problem = problem
        self.missing = missing
        """True if there is no such file."""
        self.regular = regular
        """False for a folder, a pipe or a device; a regular file may still change."""
        super().__init__(problem)


def read_bytes(path: Path, *, what: str = "file", most: int = MAX_BYTES) -> bytes:
    """Reads a regular file; raises `UnreadableError`.

    Args:
        path: The file.
        what: Kind of file for messages: "scenario", "graph".
        most: Bytes it may have.
    """
    try:
        with opened(path, what=what) as file:
            size = os.fstat(file.fileno()).st_size
            # Some files are longer than the system says.
            content = file.read(most + 1) if size <= most else b""
    except OSError as error:
        raise UnreadableError(f"cannot be read ({error.strerror})") from None
    if max(size, len(content)) > most:
        measured = f"is {size / 1e6:.1f} MB" if size > most else f"has more than {most >> 20} MiB"
        raise UnreadableError(f"{measured}; a {what} is at most {most >> 20} MiB")
    return content


def read_json(path: Path, *, what: str = "file", most: int = MAX_WRITTEN_BYTES) -> Any:
    """Reads the value in a JSON file; raises `UnreadableError`."""
    return json_of(read_bytes(path, what=what, most=most))


def json_of(text: str | bytes) -> Any:
    """Reads a JSON text, in which no table has a key twice and nothing nests deeper than `MAX_DEPTH`.

    Raises `UnreadableError`.

    >>> json_of('{"a": [1]}')
    {'a': [1]}
    """
    if not text.strip():
        raise UnreadableError("is not JSON (it is empty)")
    try:
        value = json.loads(text, object_pairs_hook=_table)
        if _is_deeper(value, MAX_DEPTH):
            raise RecursionError
        written = text if isinstance(text, str) else text.decode(errors="replace")
        if "\\ud" in written.lower() and any(broken_texts(value)):
            raise UnreadableError(f"has a text that {BROKEN}")
    except RecursionError:
        problem = f"nests too deep (more than {MAX_DEPTH} tables and lists inside each other)"
        raise UnreadableError(problem) from None
    except ValueError as error:
        raise UnreadableError(f"is not JSON ({' '.join(str(error).split())[:200]})") from None
    return value


def opened(path: Path, *, what: str = "file") -> BinaryIO:
    """Opens a regular file to read; raises `UnreadableError`."""
    try:
        file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115, the caller closes it
    except FileNotFoundError:
        raise UnreadableError("there is no such file", missing=True) from None
    except IsADirectoryError:
        raise UnreadableError(f"is a folder, not a {what} file", regular=False) from None
    except PermissionError:
        raise UnreadableError("may not be read (permission denied)") from None
    except (OSError, ValueError) as error:
        raise UnreadableError(f"cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise UnreadableError("is not a regular file", regular=False)
    return file


def _without_waiting(path: str, flags: int) -> int:
    """Opens a file; a pipe would wait for its writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _is_deeper(value: Any, most: int) -> bool:
    """Returns whether tables and lists nest deeper than this."""
    if not isinstance(value, dict | list):
        return False
    return most == 0 or any(_is_deeper(one, most - 1) for one in (value.values() if isinstance(value, dict) else value))


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise ValueError(f"a table has the key {json.dumps(key)} twice")
        table[key] = value
    return table
