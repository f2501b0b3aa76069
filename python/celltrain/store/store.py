"""A store: opened to read by anyone, and to write by one coordinator."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.arguments import Answer, checked
from celltrain.cards import Card, Carded, Grid
from celltrain.errors import Fault, StoreError
from celltrain.plan import Axis, Plan
from celltrain.running import RunRecord
from celltrain.store import columns, parts, rewrite, shapes
from celltrain.store.check import disagreements, miscounted, strange, verify
from celltrain.store.columns import Measured, measured
from celltrain.store.files import Lock, Locked, clear, put, sync, uninterrupted
from celltrain.store.layout import FOLDERS, JOURNAL, KIND, LEDGER, LOCK, MANIFEST, PARTS, SERIES
from celltrain.store.ledger import Entry, Ledger, Part, Repeat
from celltrain.text import shown
from celltrain.writing import linked

if TYPE_CHECKING:
    import pyarrow as pa


class Store(Carded, Locked, Answer):
    """Rows of a plan's runs, in a folder."""

    _call = "celltrain.sweep or celltrain.Store.open"
    path: Path
    manifest: dict[str, Any]
    """`manifest.json`: format, version, profile, digest of the plan, columns and measures."""
    keeper: object = None
    """What holds the folder while the store is used, where it is a temporary one."""
    _plan: Plan | None
    _ledger: Ledger | None = None
    _next: int = 1

    @checked(StoreError)
    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Opens the store in a folder to read, as `Store.open` does; raises `StoreError`."""
        vars(self).update(vars(type(self).open(path)))

    @classmethod
    def _of(cls, path: Path, manifest: dict[str, Any], plan: Plan | None = None) -> Store:
        made = cls.__new__(cls)
        made.path = path
        made.manifest = manifest
        made._plan = plan
        return made

    # To read.

    @classmethod
    @checked(StoreError)
    def open(cls, path: str | os.PathLike[str], *, changed: bool = False) -> Store:
        """A store to read, also while a sweep writes it; raises `StoreError`.

        One whose manifest was changed is refused, unless `changed` says that it is opened to be verified.
        """
        folder = Path(path)
        manifest = KIND.read(folder)
        if not changed and (faults := list(KIND.changed(folder, manifest))):
            raise StoreError(faults)
        return cls._of(folder, manifest)

    @cached_property
    def plan(self) -> Plan:
        """What is to be run."""
        return self._plan or Plan.of_document(self.manifest["plan"])

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What is varied: a column each."""
        return self.plan.axes

    @property
    def measures(self) -> tuple[Measured, ...]:
        """What was measured, with unit and meaning."""
        return tuple(map(measured, self.manifest["measures"]))

    @property
    def version(self) -> str:
        """Of the celltrain that ran it."""
        return str(self.manifest["version"])

    def parts(self) -> list[Path]:
        """The files of rows, Parquet."""
        return list(parts.listed(self.path / PARTS).values())

    @checked(StoreError)
    def table(self, measures: Sequence[str] | None = None) -> pa.Table:
        """The rows, one for each run and measure, by point, seed and measure.

        Args:
            measures: Only these; all when None, and the rows of runs that failed.
        """
        return shapes.long(self, measures)

    @checked(StoreError)
    def wide(self, measures: Sequence[str] | None = None) -> pa.Table:
        """One row a run, one column a measure; `error` says why a run has no values."""
        return shapes.wide(self, measures)

    @checked(StoreError)
    def summary(self, measures: Sequence[str] | None = None) -> pa.Table:
        """One row a point and measure: mean, standard deviation, number, and the ends of the mean's 95 % interval.

        The interval is Student's; it is null where there are fewer than two values. A point whose scenario an earlier
        point has too is not there: its runs are that point's.
        """
        return shapes.summary(self, measures)

    @checked(StoreError)
    def missing(self, runs: int) -> int | None:
        """How many runs of the plan are still to be done when so many are; None where the store cannot tell."""
        planned = self.manifest.get("runs")
        if not isinstance(planned, int):
            return None
        try:
            ledger = Ledger(self.path / LEDGER, write=False)
        except StoreError:
            return None
        try:
            repeats = ledger.counts()[3]
        finally:
            ledger.close()
        return max(0, planned - runs - repeats)

    def failures(self) -> pa.Table:
        """The rows of runs that failed."""
        return shapes.failures(self)

    @checked(StoreError)
    def series(self, run_key: str) -> pa.Table:
        """What a run recorded: time, measure, port, flow and value; raises `StoreError` where it recorded nothing."""
        path = self.path / SERIES / f"{run_key}.parquet"
        if not os.path.isfile(path):  # noqa: PTH113 -- a name too long is no file
            raise StoreError(
                [Fault.of_file(shown(path), "is not there: the plan has no [series], or the run is not done")]
            )
        return parts.read(path)

    def verify(self) -> list[Fault]:
        """Everything that is wrong: parts that cannot be read, keys that occur twice, a ledger that disagrees."""
        return verify(self)

    def _card(self) -> Card:
        manifest = self.manifest
        # Metadata alone: a store may hold millions of rows, and its plan may be another version's.
        done, failed = self._counted()
        planned = manifest.get("runs")
        of_all = f" of {planned:,}" if isinstance(planned, int) else ""
        said = (
            f"{done:,}{of_all} runs done{f', {failed:,} of them failed' if failed else ''}" if done is not None else ""
        )
        axes = manifest["columns"]
        names = [column["name"] for column in axes]
        varied = axes[names.index("point") + 1 : names.index("seed")]
        return Card(
            title=manifest["name"] or "A store",
            lines=[*([said] if said else []), f"in {self.path}, by celltrain {self.version}"],
            grids=[
                Grid(heads=["axis", "what it sets", "unit"], rows=_described(varied), left=(0, 1, 2)),
                Grid(
                    heads=["measure", "meaning", "unit"],
                    rows=_described([{"name": name, **about} for name, about in manifest["units"].items()]),
                    left=(0, 1, 2),
                ),
            ],
            notes=[".summary() has the means with their intervals, celltrain.report(store) a page about it"],
        )

    def _counted(self) -> tuple[int | None, int]:
        """Runs done, those that another point has among them, and how many of them failed; None where nobody can tell."""
        try:
            ledger = Ledger(self.path / LEDGER, write=False)
        except StoreError:
            return None, 0
        try:
            done, failed, _, repeats = ledger.counts()
        finally:
            ledger.close()
        return done + repeats, failed

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}, {len(self.parts())} parts)"

    # To write.

    @classmethod
    @checked(StoreError)
    def create(cls, path: str | os.PathLike[str], plan: Plan) -> Store:
        """A new store for a plan, open to write; raises `StoreError` where there is something else already."""
        folder = Path(path)
        _refuse_existing(folder)
        try:
            if folder.exists() and not folder.is_dir():
                raise StoreError([Fault.of_file(shown(folder), "is a file, not a folder")])
            if folder.is_dir() and any(folder.iterdir()) and not _half_made(folder):
                raise StoreError(
                    [Fault.of_file(shown(folder), "holds other files: name a folder that is new or empty")]
                )
            _refuse_links(folder)
            (folder / PARTS).mkdir(parents=True, exist_ok=True)
            if plan.recording is not None:
                (folder / SERIES).mkdir(exist_ok=True)
        except OSError as error:
            raise _not_made(folder, error) from None
        store = cls._of(folder, KIND.new(plan, **_facts(plan)), plan)
        store._lock = Lock(folder / LOCK)
        try:
            # Another sweep may have made it meanwhile.
            _refuse_existing(folder)
            clear(folder)
            for name in (LEDGER, JOURNAL):
                (folder / name).unlink(missing_ok=True)
            store._ledger = Ledger(folder / LEDGER, write=True)
            sync(folder)
            put(folder / MANIFEST, json.dumps(store.manifest, indent=1, ensure_ascii=False).encode())
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    @checked(StoreError)
    def resume(cls, path: str | os.PathLike[str], plan: Plan) -> Store:
        """A store to go on with; raises `StoreError` where it is another plan's, another version's, or not whole.

        One whose creation was killed, or found no room, is created.
        """
        folder = Path(path)
        try:
            manifest = KIND.read(folder)
        except StoreError:
            with contextlib.suppress(OSError):
                if _half_made(folder):
                    return cls.create(folder, plan)
            raise
        faults = list(KIND.differences(folder, manifest, plan))
        if faults:
            raise StoreError(faults)
        _refuse_links(folder)
        store = cls._of(folder, manifest, plan)
        store._lock = Lock(folder / LOCK)
        try:
            store._open_ledger()
        except BaseException:
            store.close()
            raise
        return store

    @property
    def ledger(self) -> Ledger:
        """Which runs are done; only of a store that is open to write."""
        if self._ledger is None:
            problem = "is open to read; Store.create and Store.resume open a store to write"
            raise StoreError([Fault.of_file(shown(self.path), problem)])
        return self._ledger

    @checked(StoreError)
    def write(self, rows: Sequence[RunRecord], repeats: Sequence[Repeat] = ()) -> None:
        """Adds runs as one part, all of them or none; raises `StoreError` where that cannot be done."""
        with uninterrupted():
            if not rows:
                if repeats:
                    self.ledger.enter_repeats(repeats)
                return
            for record in rows:
                if record.series is not None:
                    put(self.path / SERIES / f"{record.run_key}.parquet", record.series)
            content = parts.encode(rows, self.plan, self.schema, (self.version, self.manifest["profile"]))
            number, self._next = self._next, self._next + 1
            put(parts.named(self.path / PARTS, number), content)
            self.ledger.enter(number, _part(len(rows), content), map(self._entry, rows), repeats)

    @checked(StoreError)
    def drop_failed(self, worth: Callable[[str], bool]) -> int:
        """Takes the runs out that failed and are worth another try, so that they are missing; returns how many.

        Args:
            worth: Told the error of a run.

        Raises:
            StoreError: When a part cannot be read or written. One that was written just before a kill, and is not in the
                ledger as it is, is entered when the store is opened again.
        """
        return sum(rewrite.without_failed(self, number, worth) for number in self.ledger.parts_with_failures())

    def close(self) -> None:
        """Lets others write."""
        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None
        super().close()

    @cached_property
    def schema(self) -> pa.Schema:
        """Of every part: columns with unit and meaning, and what they are rows of."""
        metadata = {
            "celltrain": json.dumps(
                {key: self.manifest[key] for key in ("format", "version", "profile", "name", "digest")}
            ),
            "measures": json.dumps({one.name: {"unit": one.unit, "meaning": one.meaning} for one in self.measures}),
        }
        return columns.schema(columns.fixed(self.plan), metadata)

    def _entry(self, record: RunRecord) -> Entry:
        until = self.plan.seeds.until
        value = None
        if until is not None and record.error is None:
            value = record.values[self.plan.measures.index(until.measure)]
        return Entry(
            point=record.point,
            seed=record.seed,
            run_key=record.run_key,
            failed=record.error is not None,
            seconds=record.seconds,
            value=value,
        )

    def _open_ledger(self) -> None:
        """Opens the ledger, removes half-written files, and enters the parts that are missing in it."""
        path = self.path / LEDGER
        if not path.exists():
            raise StoreError(
                [Fault.of_file(shown(path), "is gone; make it again from the parts: celltrain store repair")]
            )
        for folder in (self.path, self.path / PARTS, self.path / SERIES):
            clear(folder)
        self._ledger = Ledger(path, write=True)
        rewrite.finish(self)
        there, known = parts.listed(self.path / PARTS), self._ledger.parts()
        faults = [*disagreements(self.path, there, known), *miscounted(self._ledger, known, self._ledger.held())]
        if faults:
            raise StoreError(faults)
        self._next = max([0, *there, *known]) + 1
        for number in sorted(there.keys() - known.keys()):
            self.enter(number, there[number])

    @checked(StoreError)
    def enter(self, number: int, path: Path) -> None:
        """Enters a part that the ledger does not know: its coordinator died between the two.

        Raises `StoreError` where it is no part of this store, or has runs that another part has.
        """
        table = parts.read(path)
        faults = list(strange(self, path, table))
        if faults:
            raise StoreError(faults)
        until = self.plan.seeds.until
        entries = [
            Entry(point=run.point, seed=run.seed, run_key=run.run_key, failed=run.failed, seconds=None, value=run.value)
            for run in shapes.runs_of(table, None if until is None else until.measure)
        ]
        self.ledger.enter(number, _part(len(entries), parts.content(path)), entries)


def _described(columns: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Name, meaning and unit of columns; pure numbers have no unit."""
    return [[one["name"], one["meaning"], "" if one["unit"] == "1" else one["unit"]] for one in columns]


def _refuse_existing(folder: Path) -> None:
    if (folder / MANIFEST).exists():
        problem = "is a store already: go on with it (--resume), or name another folder"
        raise StoreError([Fault.of_file(shown(folder), problem)])


def _refuse_links(folder: Path) -> None:
    """Raises where a link would have rows written somewhere else."""
    if faults := linked(*(folder / name for name in FOLDERS)):
        raise StoreError(faults)


def _part(runs: int, content: bytes | pa.Buffer) -> Part:
    return Part(runs=runs, bytes=len(content), digest=parts.digest(content))


def _half_made(folder: Path) -> bool:
    """Whether the folder holds only the leftovers of a creation that was killed or found no room."""
    names = [one.name for one in folder.iterdir()]
    known = {LEDGER, JOURNAL, PARTS, SERIES, LOCK}
    ours = all(name in known or (name.startswith(".") and name.endswith(".tmp")) for name in names)
    return bool(names) and ours and not parts.listed(folder / PARTS)


def _facts(plan: Plan) -> dict[str, Any]:
    """The keys of a store's manifest beyond those of every manifest."""
    return {
        # None: how many there will be follows from what they show.
        "runs": plan.runs if plan.seeds.until is None else None,
        "measures": list(plan.measures),
        "columns": columns.as_json(columns.fixed(plan)),
        "units": {one.name: {"unit": one.unit, "meaning": one.meaning} for one in map(measured, plan.measures)},
    }


def _not_made(folder: Path, error: OSError) -> StoreError:
    reason = (error.strerror or str(error)).lower()
    return StoreError([Fault.of_file(shown(folder), f"cannot be made ({reason})")])
