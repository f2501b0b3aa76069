"""Files that cannot be written, said in our words."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from celltrain.errors import Fault, OutputError


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
