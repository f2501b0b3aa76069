"""A folder written by one process at a time: its lock, its manifest, and files that are replaced atomically."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, Any

from celltrain import _core
from celltrain.ensemble.plan.reader import Planned
from celltrain.errors import Fault, InputError, StoreError
from celltrain.model.files import NO_LINK, UnreadableError, read_json, replacing
from celltrain.text import shown

#: The file that is locked while a process writes a folder.
LOCK = "lock"
#: The key of a manifest's checksum, which covers all other keys.
SHA256 = "sha256"
#: The keys of every manifest, and their types.
_EVERY: dict[str, type] = {"version": str, "profile": str, "name": str, "digest": str, "plan": dict}


def put(path: Path, content: bytes) -> None:
    """Writes a file under a temporary name, and renames it once it is on disk; raises `StoreError`."""
    try:
        with replacing(path) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        sync(path.parent)
    except OSError as error:
        raise unwritable(path, error) from None


def clear(folder: Path) -> None:
    """Removes incomplete files left by a killed process; raises `StoreError`. The caller must hold the lock."""
    for path in folder.glob(".*.tmp"):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(path, error) from None


def sync(folder: Path) -> None:
    """Flushes a folder's entries to disk, if the system supports it."""
    with contextlib.suppress(PermissionError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def unwritable(path: Path, error: Exception) -> StoreError:
    """Returns the error for a file that could not be written."""
    reason = getattr(error, "strerror", None) or str(error)
    problem = f"cannot be written ({reason[:1].lower()}{reason[1:]}); earlier results are intact: fix the problem, then use --resume"
    return StoreError.of_file(path, problem)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Delays Ctrl-C until the block ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[tuple[int, FrameType | None]] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: received.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if received and callable(before):
            before(*received[0])


class Lock:
    """Lock held by the process that writes a store or the folder of a search.

    The lock is released when the process ends, even if the process is killed.
    """

    def __init__(self, path: Path, what: str = "sweep") -> None:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | NO_LINK, 0o666)
        except OSError as error:
            if path.is_symlink():
                raise StoreError.of_file(path, "is a link that celltrain did not create: delete it") from None
            raise unwritable(path, error) from None
        self._file: IO[str] = open(handle, "a+")  # noqa: PTH123, SIM115, a descriptor, held until the release
        if not _locked(self._file):
            self._file.seek(0)
            owner = "".join(c for c in self._file.read(20) if c.isdecimal())
            self._file.close()
            who = f" (process {owner})" if owner else ""
            problem = f"is being written by another {what}{who}; wait until it ends, or stop it and use --resume"
            raise StoreError.of_file(path.parent, problem)
        with contextlib.suppress(OSError):
            self._file.truncate(0)
            # Bypass the buffer, because on a full disk the buffer would be written again on release.
            os.write(self._file.fileno(), f"{os.getpid()}\n".encode())

    def close(self) -> None:
        """Releases the lock, so that other processes can write."""
        self._file.close()

    @contextlib.contextmanager
    def released_on_error(self) -> Iterator[None]:
        """Releases the lock if the block fails."""
        try:
            yield
        except BaseException:
            self.close()
            raise


def is_locked(folder: Path) -> bool:
    """Returns whether a process is writing a folder."""
    try:
        with (folder / LOCK).open("r") as file:
            return not _locked(file)
    except OSError:
        return False


def _locked(file: IO[str]) -> bool:
    """Locks a file; returns False if another process holds the lock."""
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
        # The file system does not support locks, so users must take care not to run two sweeps in one folder.
        return True
    return True


@dataclass(frozen=True)
class Kind:
    """A kind of manifest: of stores, or of searches. It records the version of celltrain and the plan of a folder.

    Attributes:
        what: Name of the kind in messages.
        file: The file that contains the manifest.
        format: Format version of the folder. Other versions cannot be read.
        error: Type of the errors raised.
        unseen: Description, for messages, of how two plans with equal documents can differ.
        needs: Additional keys of this kind of manifest, and their types.
        writer: Name of the process that writes such a folder, for messages.
        folders: Folders that an interrupted creation may leave behind.
        export: The command that exports a folder.
    """

    what: str
    file: str
    format: int
    error: type[InputError]
    unseen: str
    needs: Mapping[str, type] = field(default_factory=dict)
    writer: str = "sweep"
    folders: tuple[str, ...] = ()
    export: str = ""

    def refuse(self, folder: Path) -> None:
        """Raises `error` unless the folder can become a folder of this kind."""
        problem = ""
        with self._creating(folder):
            if folder.exists() and not folder.is_dir():
                problem = "is a file, not a folder"
            elif folder.is_dir() and not self.is_half_made(folder):
                problem = "contains other files: name a folder that is new or empty"
                if (folder / self.file).exists():
                    problem = f"is already a {self.what}: continue it with --resume, or name another folder"
        if problem:
            raise self.error.of_file(folder, problem)

    def is_half_made(self, folder: Path) -> bool:
        """Returns whether the folder is empty, or contains only files of an interrupted creation."""
        names = {one.name for one in folder.iterdir()} - {LOCK, *self.folders}
        return all(name.startswith(".") and name.endswith(".tmp") for name in names)

    def begin(self, folder: Path) -> Lock:
        """Creates a folder of this kind, and returns its lock; raises `error` if the folder is in use."""
        self.refuse(folder)
        with self._creating(folder):
            folder.mkdir(parents=True, exist_ok=True)
        lock = self.locked(folder)
        with lock.released_on_error():
            # Another process may have created the folder in the meantime.
            self.refuse(folder)
        return lock

    def locked(self, folder: Path) -> Lock:
        """Locks a folder for writing, and removes incomplete files."""
        lock = Lock(folder / LOCK, self.writer)
        with lock.released_on_error():
            clear(folder)
        return lock

    @contextlib.contextmanager
    def _creating(self, folder: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise self.error.of_file(folder, f"cannot be made ({reason})") from None

    def new(self, plan: Planned, **more: Any) -> dict[str, Any]:
        """Returns the manifest of a new folder."""
        manifest = {"format": self.format, "version": _core.__version__, "profile": _core.build()["profile"]}
        manifest |= {"name": plan.name, "digest": plan.digest, **more, "plan": plan.document}
        return {SHA256: checksum(manifest), **manifest}

    def read(self, folder: Path) -> dict[str, Any]:
        """Returns the manifest of a folder from a JSON file; raises `error` if this version cannot read it."""
        path = folder / self.file
        try:
            manifest = read_json(path, what="manifest")
        except UnreadableError as error:
            if error.missing or not folder.is_dir():
                problem = f"is not a {self.what}: it has no {self.file}" if folder.exists() else "is not there"
                raise self.error.of_file(folder, problem) from None
            problem = f"{error.problem}: celltrain did not write it; restore it from a backup"
            raise self.error.of_file(path, problem) from None
        return self.understood(folder, manifest)

    def understood(self, folder: Path, manifest: Any) -> dict[str, Any]:
        """Returns the manifest if this version can read it; otherwise raises `error`."""
        path = folder / self.file
        if not isinstance(manifest, dict) or manifest.get("format") != self.format:
            found = manifest.get("format") if isinstance(manifest, dict) else None
            problem = f"has format {found!r}, but this celltrain reads {self.format}: use the version that made it"
            problem += self.export and f", or export its rows with that version: {self.export.format(shown(folder))}"
            raise self.error.of_file(path, problem)
        known = {**_EVERY, **self.needs}
        wrong = [key for key, kind in known.items() if not isinstance(manifest.get(key), kind)]
        if wrong:
            problem = f"has no valid {', '.join(wrong)}"
            raise self.error.of_file(path, f"{problem}: it was changed; restore it from a backup")
        return dict(manifest)

    def changed(self, folder: Path, manifest: dict[str, Any]) -> Iterator[Fault]:
        """Yields a fault if the manifest was changed. Such a folder is not read, verified or resumed."""
        if manifest.get(SHA256) != checksum(manifest):
            found = "differs" if SHA256 in manifest else "is missing"
            problem = f"was changed (its sha256 {found}): it cannot be trusted, so restore it from a backup"
            yield Fault.of_file(folder / self.file, problem)

    def differences(self, folder: Path, manifest: dict[str, Any], plan: Planned) -> Iterator[Fault]:
        """Yields the reasons why a folder cannot be resumed."""
        version, profile = _core.__version__, _core.build()["profile"]
        if manifest["version"] != version:
            yield Fault.of_file(
                shown(folder),
                f"was made by celltrain {manifest['version']}, but this is {version}: results of two versions do "
                f"not mix; install celltrain {manifest['version']} to continue, or name a new folder",
            )
        elif manifest["profile"] != profile:
            problem = f"was made by a {manifest['profile']} build, but this is a {profile} build: name a new folder"
            yield Fault.of_file(folder, problem)
        else:
            yield from self.changed(folder, manifest)
        if manifest["digest"] != plan.digest:
            before, now = manifest["plan"], json.loads(json.dumps(plan.document))
            keys = [key for key in sorted(before.keys() | now.keys()) if before.get(key) != now.get(key)]
            what = f"in {', '.join(keys)}" if set(keys) - {"name", "limits"} else self.unseen
            problem = f"was made from another plan: it differs {what}; name a new folder for this one"
            yield Fault.of_file(folder, problem)


def checksum(manifest: dict[str, Any]) -> str:
    """Returns the SHA-256 of a manifest, computed from all keys except the checksum itself."""
    others = {key: value for key, value in manifest.items() if key != SHA256}
    return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()
