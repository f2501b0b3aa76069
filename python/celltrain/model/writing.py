"""Files that celltrain writes, into a folder or to a path that the user names.

Somebody else may have put things into a folder. A file in it is therefore written under a new name and renamed, which
replaces a link and leaves its target alone; a link in the place of a folder is refused. The path that the user names may
be a link, and is followed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from celltrain.errors import Fault, OutputError
from celltrain.text import shown

#: Flags of files that are opened in place: links are not followed, and pipes do not wait. Windows has neither.
NO_LINK = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns errors of writing into an `OutputError` that names the file."""
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
    """Opens a new file that gets its name, and replaces the file of that name, once it is complete."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    created = False
    try:
        # Exclusive creation follows no link.
        with temporary.open("xb") as file:
            created = True
            yield file
        temporary.replace(path)
    except BaseException as error:
        if created:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        # An error of ours may be about another file.
        is_ours = isinstance(error, OutputError)
        if isinstance(error, OSError) and not is_ours and error.filename in (None, str(temporary)):
            error.filename = str(path)
        raise


def replace(path: Path, content: str | bytes) -> None:
    """Writes a file as `replacing` does."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def named(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Opens a new or regular file that the user names, also through a link; raises `OutputError`."""
    target = Path(path)
    with writing(path):
        if target.exists() and not target.is_file() and not target.is_dir():
            problem = "is not a regular file, and nothing is written to it: name another file"
            raise OutputError([Fault.of_file(shown(path), problem)])
        with target.open("wb") as file:
            yield file


@contextmanager
def making(folder: Path) -> Iterator[None]:
    """Makes a folder and those above it; removes the ones it made if the block fails."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for path in made:
            # Folders with something in them stay.
            with contextlib.suppress(OSError):
                path.rmdir()
        raise


def inner(folder: Path) -> Path:
    """Makes a folder in a folder; raises `OutputError` if it is a link."""
    if faults := linked(folder):
        raise OutputError(faults)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def linked(*paths: Path) -> list[Fault]:
    """Returns the faults of paths that are links, in folders where celltrain makes everything itself."""
    problem = "is a link, and celltrain did not make it: take it away"
    return [Fault.of_file(shown(path), problem) for path in paths if path.is_symlink()]
