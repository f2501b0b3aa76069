"""Atomic files, and the lock by which one coordinator at a time writes a folder."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, TYPE_CHECKING

from celltrain.errors import Fault, StoreError
from celltrain.model.writing import NO_LINK, replacing
from celltrain.text import shown

if TYPE_CHECKING:
    from typing_extensions import Self

#: The suffix of a file until it is whole.
TEMPORARY = ".*.tmp"


def put(path: Path, content: bytes) -> None:
    """Writes a file under another name, and gives it its own once it is on the disk; raises `StoreError`."""
    try:
        with replacing(path) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        sync(path.parent)
    except OSError as error:
        raise unwritable(path, error) from None


def clear(folder: Path) -> None:
    """Removes half-written files of a process that died; raises `StoreError`. The caller must hold the lock."""
    for one in folder.glob(TEMPORARY):
        try:
            one.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(one, error) from None


def sync(folder: Path) -> None:
    """Brings a folder's names to the disk, where the system can."""
    with contextlib.suppress(PermissionError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def unwritable(path: Path, error: OSError) -> StoreError:
    """The error for a file that could not be written."""
    reason = error.strerror or str(error)
    problem = f"cannot be written ({reason[:1].lower()}{reason[1:]}); what was stored before is whole: mend that, then --resume"
    return StoreError([Fault.of_file(shown(path), problem)])


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until this is over."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came and callable(before):
            before(*came[0])


class Lock:
    """Held by the one process that writes a store, or a search; gone with it, however it ends."""

    def __init__(self, path: Path, what: str = "sweep") -> None:
        self._file: IO[str] | None = None
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | NO_LINK, 0o666)
        except OSError as error:
            if path.is_symlink():
                raise _not_ours(path, "is a link") from None
            raise unwritable(path, error) from None
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            os.close(handle)
            raise _not_ours(
                path, "has another name as well" if stat.S_ISREG(status.st_mode) else "is not a regular file"
            )
        file = open(handle, "a+")  # noqa: PTH123, SIM115, a descriptor, held until the release
        if not _lock(file):
            file.seek(0)
            owner = "".join(c for c in file.read(20) if c.isdecimal())
            file.close()
            who = f" (process {owner})" if owner else ""
            problem = f"is being written by another {what}{who}; wait for its end, or stop it and --resume"
            raise StoreError([Fault.of_file(shown(path.parent), problem)])
        self._file = file
        with contextlib.suppress(OSError):
            file.truncate(0)
            # Past the buffer, which a full disk would have written once more at the release.
            os.write(file.fileno(), f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Lets others write."""
        if self._file is not None:
            self._file.close()
            self._file = None


class Locked:
    """A folder, and the lock by which this process writes it until it is closed."""

    _lock: Lock | None = None

    def close(self) -> None:
        """Lets others write."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _not_ours(path: Path, problem: str) -> StoreError:
    """The error for something else in the place of the lock."""
    return StoreError([Fault.of_file(shown(path), f"{problem}, and celltrain did not make it: take it away")])


def _lock(file: IO[str]) -> bool:
    try:
        import fcntl
    except ImportError:
        import msvcrt

        try:
            file.seek(1 << 20)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # The file system has no locks; its users must keep two sweeps apart themselves.
        return True
    return True
