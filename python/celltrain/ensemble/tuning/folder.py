"""The folder of a search: its plan, what was asked, a store for each stage, and the trials for Optuna's own tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from celltrain.ensemble.store.folder import Kind, Lock, Locked, clear, put, sync
from celltrain.ensemble.tuning.ask import Trial, directions, frozen, quiet, silent_optuna
from celltrain.ensemble.tuning.plan import Numbers, TunePlan
from celltrain.errors import Fault, TuneError, warn
from celltrain.model.files import UnreadableError, read_json
from celltrain.model.quantities import exact
from celltrain.model.writing import linked
from celltrain.text import shown

#: Of the folder and its files.
FORMAT = 1
MANIFEST, ASKED, RUNS, JOURNAL, LOCK = "tune.json", "asked.json", "runs", "optuna.journal", "lock"
KIND = Kind("search", MANIFEST, FORMAT, TuneError, unseen="in the order of what it says")


class Folder(Locked):
    """A folder that one search writes. Its truth is what was asked and the stores; the journal is made anew from them."""

    def __init__(self, path: Path, manifest: dict[str, Any], plan: TunePlan) -> None:
        self.path = path
        self.plan = plan
        self.manifest = manifest
        self._asked: list[list[list[Numbers]]] = []

    @classmethod
    def create(cls, path: Path, plan: TunePlan) -> Folder:
        """A new folder; raises `TuneError` where there is something else already."""
        _refuse_existing(path)
        try:
            if path.exists() and not path.is_dir():
                raise TuneError([Fault.of_file(shown(path), "is a file, not a folder")])
            # What a creation that was killed has left is no obstacle.
            known = (LOCK, RUNS)
            if path.is_dir() and any(one.name not in known and not one.name.startswith(".") for one in path.iterdir()):
                raise TuneError([Fault.of_file(shown(path), "holds other files: name a folder that is new or empty")])
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            problem = f"cannot be made ({error.strerror})"
            raise TuneError([Fault.of_file(shown(path), problem)]) from None
        folder = cls(path, KIND.new(plan, optuna=silent_optuna().__version__), plan)
        folder._lock = Lock(path / LOCK, "search")
        try:
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
        """A folder to go on with; raises `TuneError` where it is another plan's or another version's."""
        manifest = KIND.read(path)
        faults = list(KIND.differences(path, manifest, plan))
        if faults:
            raise TuneError(faults)
        folder = cls(path, manifest, plan)
        folder._lock = Lock(path / LOCK, "search")
        try:
            clear(path)
            folder._asked = folder._read_asked()
        except BaseException:
            folder.close()
            raise
        before, now = manifest["optuna"], silent_optuna().__version__
        if before != now:
            warn(
                [
                    f"{shown(path)} was begun with optuna {before}, and this is {now}: later trials may be others than there"
                ]
            )
        return folder

    @property
    def asked(self) -> Sequence[Sequence[Sequence[Numbers]]]:
        """What was asked: by generation, by configuration."""
        return self._asked

    def keep(self, generation: Sequence[Sequence[Numbers]]) -> None:
        """Writes down what the next generation tries, before it is run."""
        self._asked.append([list(settings) for settings in generation])
        said = [[[[float(n) for n in numbers] for numbers in of] for of in one] for one in self._asked]
        content = json.dumps({"parameters": [p.name for p in self.plan.parameters], "generations": said})
        put(self.path / ASKED, content.encode())

    def stage(self, name: str) -> Path:
        """Where the runs of a stage are: a store."""
        _refuse_links(self.path / RUNS, self.path / RUNS / name)
        return self.path / RUNS / name

    def note(self, histories: Sequence[Sequence[Trial]]) -> None:
        """Writes the trials for Optuna's own tools: a study for each configuration, in a journal.

        Nothing here reads it; one that was cut short by a kill, or is somebody else's, is made anew.
        """
        optuna = silent_optuna()
        path = self.path / JOURNAL
        if not _is_journal(path):
            path.unlink(missing_ok=True)
        with quiet(optuna):
            try:
                self._append(_journal(path), histories)
            except Exception:
                # Whatever Optuna makes of a file that is not its own.
                path.unlink(missing_ok=True)
                self._append(_journal(path), histories)

    def _append(self, storage: Any, histories: Sequence[Sequence[Trial]]) -> None:
        optuna = silent_optuna()
        plan = self.plan
        names = [title(plan, configuration) or plan.name or "search" for configuration in range(len(histories))]
        if len(set(names)) < len(names):
            names = [f"{place + 1}: {name}" for place, name in enumerate(names)]
        for name, history in zip(names, histories, strict=True):
            study = optuna.create_study(
                storage=storage,
                study_name=name,
                directions=directions(plan),
                load_if_exists=True,
            )
            there = len(study.get_trials(deepcopy=False))
            if not there:
                study.set_metric_names([objective.measure for objective in plan.objectives])
            study.add_trials([frozen(plan, trial) for trial in history[there:]])

    def _read_asked(self) -> list[list[list[Numbers]]]:
        path, plan = self.path / ASKED, self.plan
        if not path.exists():
            return []
        try:
            said = read_json(path, what="list of trials")["generations"]
            asked = [[[tuple(map(exact, numbers)) for numbers in of] for of in one] for one in said]
        except (UnreadableError, ValueError, ArithmeticError, TypeError, KeyError) as error:
            problem = f"is not what celltrain wrote ({error}): start anew in another folder"
            raise TuneError([Fault.of_file(shown(path), problem)]) from None
        if any(len(one) != len(plan.configurations.points) for one in asked):
            raise TuneError([Fault.of_file(shown(path), "is of other configurations: start anew in another folder")])
        return asked


class _NoLock:
    """The folder has its own lock; one of Optuna's would outlive a kill."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


def _journal(path: Path) -> Any:
    """Optuna's storage in a file."""
    optuna = silent_optuna()
    return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path), lock_obj=_NoLock()))


def _is_journal(path: Path) -> bool:
    """Whether there is a file that may be added to: whole, and with no other name."""
    if path.is_symlink() or not path.is_file() or path.stat().st_nlink > 1:
        return False
    return path.read_bytes().endswith(b"\n")


def title(plan: TunePlan, configuration: int) -> str:
    """A configuration by its values; what follows from one axis alone, as a window from the network, is left out."""
    from celltrain.drawing.pages.words import valued

    axes, every = (
        plan.configurations.axes,
        [plan.configurations.points.values(i) for i in range(len(plan.configurations.points))],
    )
    named = []
    for place, axis in enumerate(axes):
        follows = any(
            len({(row[other], row[place]) for row in every}) == len({row[other] for row in every})
            for other in range(place)
        )
        if not follows:
            value = valued(every[configuration][place], axis.unit)
            named.append(value if axis.labels is not None else f"{axis.name} {value}")
    return ", ".join(named)


def _refuse_links(*paths: Path) -> None:
    """Raises where a link would have runs written somewhere else."""
    if faults := linked(*paths):
        raise TuneError(faults)


def _refuse_existing(path: Path) -> None:
    if (path / MANIFEST).exists():
        problem = "is a search already: go on with it (--resume), or name another folder"
        raise TuneError([Fault.of_file(shown(path), problem)])
