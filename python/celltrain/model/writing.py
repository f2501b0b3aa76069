"""Files that celltrain writes: into a folder, or to a path that the user names; and what cannot be written, said in our words.

A folder may hold what somebody else has put there. So a file in a folder is written under a name made up for it and renamed:
a link of the file's own name is replaced, and what it leads to stays as it is. A folder in it that is a link is refused. The
path that the user names himself may be a link, of a file or of a folder, and is followed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from celltrain.errors import Fault, OutputError
from celltrain.text import shown

#: A link is not followed, and a pipe does not make anybody wait. Windows has neither.
_OPENED = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
NO_LINK = _OPENED | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Says which file could not be written; raises `OutputError`."""
    try:
        yield
    except (BrokenPipeError, OutputError):
        raise
    except OSError as error:
        place = os.fsdecode(error.filename or path) if isinstance(error.filename, str | bytes | None) else str(path)
        reason = "it is a file" if isinstance(error, FileExistsError | NotADirectoryError) else error.strerror
        raise OutputError([Fault.of_file(place, f"cannot be written ({reason})")]) from None


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file in a folder, to write: it has its name once it is whole, and one of that name before is gone.

    The name it has until then is made up and must be new, so nothing that somebody has put there is written to.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK, 0o666)
    except OSError as error:
        # Nobody knows the name that was made up.
        error.filename = str(path)
        raise
    try:
        with open(handle, "wb") as file:  # noqa: PTH123, a descriptor
            yield file
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        # What says it in our words already may be of another file.
        said = isinstance(error, OutputError)
        if isinstance(error, OSError) and not said and error.filename in (None, str(temporary)):
            error.filename = str(path)
        raise


def replace(path: Path, content: str | bytes) -> None:
    """Writes a file in a folder, as `replacing` does."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def named(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file that the user names, to write: a new or a regular one, also by a link; raises `OutputError`."""
    with writing(path):
        # A pipe would wait for its reader, and a device does what it likes when it is opened.
        with contextlib.suppress(FileNotFoundError):
            _refuse_others(path, os.stat(path))  # noqa: PTH116, whatever has a path's protocol
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | _OPENED, 0o666)
        with open(handle, "wb") as file:  # noqa: PTH123, a descriptor
            _refuse_others(path, os.fstat(handle))
            file.truncate()
            yield file


@contextmanager
def making(folder: Path) -> Iterator[None]:
    """A folder, made with those above it where they are not there; when nothing comes of it, what was made is gone again."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for path in made:
            # Of those that hold something the folders above hold something too.
            with contextlib.suppress(OSError):
                path.rmdir()
        raise


def inner(folder: Path) -> Path:
    """A folder in a folder, made where it is not there; raises `OutputError` where it is a link."""
    if faults := linked(folder):
        raise OutputError(faults)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def linked(*paths: Path) -> list[Fault]:
    """Those that are links, where only what celltrain has made itself should be."""
    problem = "is a link, and celltrain did not make it: take it away"
    return [Fault.of_file(shown(path), problem) for path in paths if path.is_symlink()]


def _refuse_others(path: str | os.PathLike[str], status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        problem = "is not a regular file, and nothing is written to it: name another file"
        raise OutputError([Fault.of_file(shown(path), problem)])
