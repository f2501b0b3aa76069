"""The folder of a search: its plan, the settings of each generation, a store for each stage, and a journal for Optuna's tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from celltrain.ensemble.store.folder import Kind, Lock, Locked, clear, put, sync
from celltrain.ensemble.tuning.ask import Trial, silent_optuna, write_journal
from celltrain.ensemble.tuning.plan import Numbers, TunePlan
from celltrain.errors import Fault, TuneError, warn
from celltrain.model.files import UnreadableError, linked, read_json
from celltrain.model.quantities import exact
from celltrain.text import shown

#: Version of the folder and its files.
FORMAT = 1
MANIFEST, ASKED, RUNS, JOURNAL, LOCK = "tune.json", "asked.json", "runs", "optuna.journal", "lock"
KIND = Kind("search", MANIFEST, FORMAT, TuneError, unseen="in the order of what it says")


class Folder(Locked):
    """A folder that one search writes. The journal is made from the generations and the stores."""

    def __init__(self, path: Path, manifest: dict[str, Any], plan: TunePlan) -> None:
        self.path = path
        self.plan = plan
        self.manifest = manifest
        self.asked: list[list[list[Numbers]]] = []
        """Settings by generation and configuration."""
        self._lock = Lock(path / LOCK, "search")

    @classmethod
    def create(cls, path: Path, plan: TunePlan) -> Folder:
        """Creates a folder; raises `TuneError` if it has other files already."""
        try:
            if path.exists() and not path.is_dir():
                raise _error(path, "is a file, not a folder")
            path.mkdir(parents=True, exist_ok=True)
            names = {one.name for one in path.iterdir() if not one.name.startswith(".")}
        except OSError as error:
            raise _error(path, f"cannot be made ({error.strerror})") from None
        _refuse_existing(path)
        # A creation that was killed may have left these.
        if names - {LOCK, RUNS}:
            raise _error(path, "holds other files: name a folder that is new or empty")
        folder = cls(path, KIND.new(plan, optuna=silent_optuna().__version__), plan)
        try:
            # Another search may have been faster.
            _refuse_existing(path)
            _refuse_links(path / RUNS)
            (path / RUNS).mkdir(exist_ok=True)
            sync(path)
            put(path / MANIFEST, json.dumps(folder.manifest, indent=1, ensure_ascii=False).encode())
        except BaseException:
            folder.close()
            raise
        return folder

    @classmethod
    def resume(cls, path: Path, plan: TunePlan) -> Folder:
        """Opens a folder to continue its search; raises `TuneError` if it is of another plan or version."""
        manifest = KIND.read(path)
        if faults := list(KIND.differences(path, manifest, plan)):
            raise TuneError(faults)
        folder = cls(path, manifest, plan)
        try:
            clear(path)
            folder.asked = folder._read_asked()
        except BaseException:
            folder.close()
            raise
        before, now = manifest["optuna"], silent_optuna().__version__
        if before != now:
            begun = f"{shown(path)} was begun with optuna {before}, and this is {now}"
            warn([f"{begun}: later trials may be others than there"])
        return folder

    def keep(self, generation: Sequence[Sequence[Numbers]]) -> None:
        """Writes down what the next generation tries, before it is run."""
        self.asked.append([list(settings) for settings in generation])
        asked = [[[[float(n) for n in numbers] for numbers in of] for of in one] for one in self.asked]
        content = json.dumps({"parameters": [p.name for p in self.plan.parameters], "generations": asked})
        put(self.path / ASKED, content.encode())

    def stage(self, name: str) -> Path:
        """Returns the path of a stage's store."""
        _refuse_links(self.path / RUNS, self.path / RUNS / name)
        return self.path / RUNS / name

    def note(self, histories: Sequence[Sequence[Trial]]) -> None:
        """Writes the trials into the journal; one that a kill cut short or that is another file is replaced."""
        path = self.path / JOURNAL
        regular = path.is_file() and not path.is_symlink() and path.stat().st_nlink == 1
        if not (regular and path.read_bytes().endswith(b"\n")):
            path.unlink(missing_ok=True)
        try:
            write_journal(path, self.plan, histories)
        except Exception:
            # Optuna may raise anything for a file that is not its own.
            path.unlink(missing_ok=True)
            write_journal(path, self.plan, histories)

    def _read_asked(self) -> list[list[list[Numbers]]]:
        path = self.path / ASKED
        if not path.exists():
            return []
        try:
            said = read_json(path, what="list of trials")["generations"]
            asked = [[[tuple(map(exact, numbers)) for numbers in of] for of in one] for one in said]
        except (UnreadableError, ValueError, ArithmeticError, TypeError, KeyError) as error:
            raise _error(path, f"is not what celltrain wrote ({error}): start anew in another folder") from None
        if any(len(one) != len(self.plan.configurations.points) for one in asked):
            raise _error(path, "is of other configurations: start anew in another folder")
        return asked


def _error(path: Path, problem: str) -> TuneError:
    return TuneError([Fault.of_file(shown(path), problem)])


def _refuse_links(*paths: Path) -> None:
    """Raises `TuneError` if a link would have runs written somewhere else."""
    if faults := linked(*paths):
        raise TuneError(faults)


def _refuse_existing(path: Path) -> None:
    if (path / MANIFEST).exists():
        raise _error(path, "is a search already: go on with it (--resume), or name another folder")
