"""Reading files that somebody else wrote: regular ones only, so much and no more, with words for whatever is wrong.

A device, a pipe or a folder may stand where a file is expected, and a file may be empty, endless or nest without end. Whoever
reads one goes through here, and makes the problem an error of its own kind.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from celltrain.text import BROKEN, broken_texts

#: Of a scenario, a plan, a graph: a page of text, or a network of some ten thousand nodes. Anything larger is another kind
#: of file.
MAX_BYTES = 16 << 20
#: Of what celltrain itself writes about a plan: its numbers stand one in a line.
MAX_WRITTEN_BYTES = 256 << 20
#: Tables and lists inside each other: a scenario has seven, and the core's reader of TOML takes 80.
MAX_DEPTH = 80
_PIECE = 1 << 16


class UnreadableError(Exception):
    """A file that is not what it should be; its text is a clause that follows the file's name."""

    def __init__(self, problem: str, *, missing: bool = False, regular: bool = True) -> None:
        self.problem = problem
        self.missing = missing
        """Whether there is no such file."""
        self.regular = regular
        """Whether it is a file at all, which may still be written to."""
        super().__init__(problem)


def read_bytes(path: Path, *, what: str = "file", most: int = MAX_BYTES) -> bytes:
    """What a regular file holds; raises `UnreadableError`.

    Args:
        path: The file.
        what: What it should be: "scenario", "graph".
        most: Bytes it may have.
    """
    handle = opened(path, what=what)
    try:
        with open(handle, "rb") as file:  # noqa: PTH123, a descriptor
            size = os.fstat(handle).st_size
            pieces, length = [], 0
            # What the folder says is not always what there is to read: the reading has the same bound.
            while size <= most and length <= most and (piece := file.read(max(size + 1 - length, _PIECE))):
                pieces.append(piece)
                length += len(piece)
    except OSError as error:
        raise UnreadableError(f"cannot be read ({_reason(error)})") from None
    if max(size, length) > most:
        measured = f"is {size / 1e6:.1f} MB" if size > most else f"has more than {most >> 20} MiB"
        raise UnreadableError(f"{measured}; a {what} is at most {most >> 20} MiB")
    return b"".join(pieces)


def read_json(path: Path, *, what: str = "file", most: int = MAX_WRITTEN_BYTES) -> Any:
    """The value in a JSON file; raises `UnreadableError`."""
    return json_of(read_bytes(path, what=what, most=most))


def json_of(text: str | bytes) -> Any:
    """The value of a JSON text, in which no table has a key twice and nothing nests beyond any use.

    Raises `UnreadableError`.

    >>> json_of('{"a": [1]}')
    {'a': [1]}
    """
    if not text.strip():
        raise UnreadableError("is not JSON (it is empty)")
    try:
        value = json.loads(text, object_pairs_hook=_table)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise UnreadableError(f"is not JSON ({' '.join(str(error).split())[:200]})") from None
    if "\\ud" in (text if isinstance(text, str) else text.decode(errors="replace")).lower() and any(
        broken_texts(value)
    ):
        raise UnreadableError(f"has a text that {BROKEN}")
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        inner = (one for table in level for one in (table.values() if isinstance(table, dict) else table))
        level = [one for one in inner if isinstance(one, dict | list)]
        if not level:
            return value
    raise _too_deep()


def opened(path: Path, *, what: str = "file") -> int:
    """A descriptor of a regular file, to read; raises `UnreadableError`."""
    try:
        _refuse_others(path.stat().st_mode, what)
        # Another file may have come in between: a pipe would wait for its writer here.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            _refuse_others(os.fstat(handle).st_mode, what)
        except BaseException:
            os.close(handle)
            raise
    except FileNotFoundError:
        raise UnreadableError("there is no such file", missing=True) from None
    except PermissionError:
        raise UnreadableError("may not be read (permission denied)") from None
    except (OSError, ValueError) as error:
        raise UnreadableError(f"cannot be read ({_reason(error)})") from None
    return handle


def _refuse_others(mode: int, what: str) -> None:
    """Raises for what is no regular file."""
    if stat.S_ISDIR(mode):
        raise UnreadableError(f"is a folder, not a {what} file", regular=False)
    if not stat.S_ISREG(mode):
        raise UnreadableError("is not a regular file", regular=False)


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        seen: set[str] = set()
        again = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"a table has the key {json.dumps(again)} twice")
    return table


def _too_deep() -> UnreadableError:
    return UnreadableError(f"nests too deep (more than {MAX_DEPTH} tables and lists inside each other)")


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
