"""Reads users' files, and writes celltrain's own.

Only regular files up to a size limit are read. Callers turn `UnreadableError` into an error of their own kind.

Other users may have access to an output folder. A file in it is therefore written under a new name and renamed, which
replaces a link without touching its target; a link in place of a folder is refused. If the path that the user names is
a link, the link is followed.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

from celltrain.errors import Fault, OutputError
from celltrain.text import BROKEN, broken_texts

#: Maximum size of a scenario, plan or graph: from a page of text to a network of some ten thousand nodes.
MAX_BYTES = 16 << 20
#: Maximum size of a file that celltrain writes about a plan, if it has one number per line.
MAX_WRITTEN_BYTES = 256 << 20
#: Maximum nesting of tables and lists: a scenario needs seven levels, and the core's TOML parser allows 80.
MAX_DEPTH = 80


class UnreadableError(Exception):
    """Raised if a file cannot be read; the text is a clause that follows the file's name."""

    def __init__(self, problem: str, *, missing: bool = False, regular: bool = True) -> None:
        self.problem = problem
        self.missing = missing
        """True if the file does not exist."""
        self.regular = regular
        """False for a folder, a pipe or a device. A regular file may be replaced later."""
        super().__init__(problem)


def read_bytes(path: Path, *, what: str = "file", most: int = MAX_BYTES) -> bytes:
    """Reads a regular file; raises `UnreadableError`.

    Args:
        path: The file.
        what: Kind of file for messages, such as "scenario" or "graph".
        most: Maximum size in bytes.
    """
    try:
        with opened(path, what=what) as file:
            size = os.fstat(file.fileno()).st_size
            # Some files, such as those in /proc, are longer than their stated size.
            content = file.read(most + 1) if size <= most else b""
    except OSError as error:
        raise UnreadableError(f"cannot be read ({error.strerror})") from None
    if max(size, len(content)) > most:
        measured = f"is {size / 1e6:.1f} MB" if size > most else f"has more than {most >> 20} MiB"
        raise UnreadableError(f"{measured}; a {what} is at most {most >> 20} MiB")
    return content


def below(folder: Path, name: str) -> Path:
    """Returns the path of a file that another file in `folder` names; raises `UnreadableError`.

    A scenario or a plan may come from an unknown source. So it may only name files in its own folder or below, and no
    link that leaves that folder.
    """
    path = folder / name
    try:
        is_inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        is_inside = False
    if not is_inside:
        raise UnreadableError(f"is outside the folder of the file that names it ({folder}): move it there")
    return path


def read_json(path: Path, *, what: str = "file", most: int = MAX_WRITTEN_BYTES) -> Any:
    """Reads the value in a JSON file; raises `UnreadableError`."""
    return json_of(read_bytes(path, what=what, most=most))


def json_of(text: str | bytes) -> Any:
    """Parses JSON. A table must not contain a key twice, and nesting must not be deeper than `MAX_DEPTH`.

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
        raise UnreadableError(f"is nested too deeply (more than {MAX_DEPTH} tables and lists)") from None
    except ValueError as error:
        raise UnreadableError(f"is not JSON ({' '.join(str(error).split())[:200]})") from None
    return value


def opened(path: Path, *, what: str = "file") -> BinaryIO:
    """Opens a regular file for reading; raises `UnreadableError`."""
    try:
        file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115, the caller closes it
    except FileNotFoundError:
        raise UnreadableError("there is no such file", missing=True) from None
    except IsADirectoryError:
        raise UnreadableError(f"is a folder, not a {what} file", regular=False) from None
    except PermissionError:
        raise UnreadableError("cannot be read (permission denied)") from None
    except (OSError, ValueError) as error:
        raise UnreadableError(f"cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise UnreadableError("is not a regular file", regular=False)
    return file


def _without_waiting(path: str, flags: int) -> int:
    """Opens a file without blocking: opening a pipe would wait for its writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _is_deeper(value: Any, most: int) -> bool:
    """Returns whether tables and lists are nested deeper than `most` levels."""
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


#: Flags for files opened in place: do not follow links, do not wait for pipes. Windows has neither flag.
NO_LINK = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns errors while writing into an `OutputError` that names the file."""
    try:
        yield
    except (BrokenPipeError, OutputError):
        raise
    except OSError as error:
        place = os.fsdecode(error.filename or path) if isinstance(error.filename, str | bytes | None) else str(path)
        reason = "it is a file" if isinstance(error, FileExistsError | NotADirectoryError) else error.strerror
        raise OutputError.of_file(place, f"cannot be written ({reason})") from None


def check_target(path: str | os.PathLike[str], *made: Path | None) -> None:
    """Raises `OutputError` if a file cannot be written at the end of a run: its folder is missing, or it is a folder.

    Args:
        path: The file.
        made: Folders that the run makes.
    """
    target = Path(path)
    if target.absolute().parent in [folder.absolute() for folder in made if folder is not None]:
        return
    with writing(path):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if not target.absolute().parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "there is no such folder")
        if not os.access(target if target.exists() else target.absolute().parent, os.W_OK):
            raise PermissionError(errno.EACCES, "permission denied")


@contextmanager
def replacing(path: Path, *, kept: tuple[type[BaseException], ...] = ()) -> Iterator[IO[bytes]]:
    """Opens a temporary file. When it is complete, it is renamed to `path` and replaces any existing file.

    The file is renamed even if the block raises one of the exceptions in `kept`.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    created = False
    try:
        # Exclusive creation does not follow links.
        with temporary.open("xb") as file:
            created = True
            yield file
        temporary.replace(path)
    except kept:
        temporary.replace(path)
        raise
    except BaseException as error:
        if created:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        # An OutputError may concern another file.
        if (
            isinstance(error, OSError)
            and not isinstance(error, OutputError)
            and error.filename in (None, str(temporary))
        ):
            error.filename = str(path)
        raise


def replace(path: Path, content: str | bytes) -> None:
    """Writes a complete file by `replacing`."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def named(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Opens a file named by the user, for writing. If the file is a link, opens its target.

    Raises `OutputError` unless the file is a regular file or does not exist yet.
    """
    target = Path(path)
    with writing(path):
        if target.exists() and not target.is_file() and not target.is_dir():
            raise OutputError.of_file(path, "is not a regular file; name another file")
        with target.open("wb") as file:
            yield file


@contextmanager
def making(folder: Path) -> Iterator[None]:
    """Creates a folder and its parents. If the block fails, removes the folders that it created."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for path in made:
            # Folders that are not empty are not removed.
            with contextlib.suppress(OSError):
                path.rmdir()
        raise


def inner(folder: Path) -> Path:
    """Creates a folder inside an output folder; raises `OutputError` if a link has its name."""
    if faults := linked(folder):
        raise OutputError(faults)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def linked(*paths: Path) -> list[Fault]:
    """In folders whose content only celltrain creates, returns a fault for each path that is a link."""
    problem = "is a link that celltrain did not create: delete it"
    return [Fault.of_file(path, problem) for path in paths if path.is_symlink()]
