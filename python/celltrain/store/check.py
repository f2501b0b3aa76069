"""Proving that a store is what it should be, and mending one that is not."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain import _core
from celltrain.errors import Fault, StoreError
from celltrain.plan import run_key
from celltrain.store import parts
from celltrain.store.files import Lock, put, sync, uninterrupted
from celltrain.store.ledger import Ledger, Part
from celltrain.text import shown

if TYPE_CHECKING:
    import pyarrow as pa

    from celltrain.store.store import Store

#: Keys that occur twice are named up to here.
MOST_NAMED = 5
ASIDE = "set-aside"
#: A part that a sweep has written is in the ledger after this, s.
MOMENT = 0.5
#: Key, point and seed of a run.
Identity = tuple[str, int, int]
#: Columns without which there is no run.
_NEEDED = ("run_key", "point", "seed", "configuration", "version", "profile")


def verify(store: Store) -> list[Fault]:
    """Every part is read, every key worked out again and counted, and the ledger compared, part by part.

    A sweep may go on meanwhile: what it writes after this began is not looked at. Raises `StoreError` for a store of another
    version, or whose manifest was changed: nothing can be judged by these.
    """
    from celltrain.store.store import LEDGER, PARTS

    _refuse_others(store)
    faults: list[Fault] = []
    # Before the folder is looked at: what the ledger has by then must be there.
    before = _known(store.path / LEDGER, write=False)
    there = parts.listed(store.path / PARTS)
    whole: dict[int, set[Identity]] = {}
    keys: list[Any] = []
    for number, path in there.items():
        try:
            table = parts.read(path)
        except StoreError as error:
            faults += error.faults
            continue
        found = list(strange(store, path, table))
        faults += found
        if not found:
            if store.manifest["plan"].get("series") is not None:
                faults += _without_series(store, table)
            whole[number] = _identities(table)
            keys.append(np.array([bytes.fromhex(key) for key, _, _ in sorted(whole[number])], dtype="S12"))
    faults += _twice(store, there, keys)
    ledger_path = store.path / LEDGER
    if not ledger_path.exists():
        return [
            *faults,
            Fault.of_file(shown(ledger_path), "is gone; make it again from the parts: celltrain store repair"),
        ]
    try:
        ledger = Ledger(ledger_path, write=False)
    except StoreError as error:
        return [*faults, *error.faults]
    with contextlib.closing(ledger):
        try:
            faults += _against_ledger(store, ledger, before.keys(), there, whole, {fault.file for fault in faults})
        except StoreError as error:
            faults += error.faults
    return faults


def repair(path: Path) -> list[str]:
    """Sets aside what is not what was written, drops what is there twice, makes ledger and parts agree; says what it did.

    Runs that are lost that way are missing: `--resume` runs them again. Raises `StoreError` where it cannot write, and for a
    store of another version, or whose manifest was changed; nothing is touched then.
    """
    from celltrain.store.store import JOURNAL, LEDGER, LOCK, PARTS, Store

    store = Store.open(path)
    _refuse_others(store)
    done: list[str] = []
    lock = Lock(path / LOCK)
    try:
        with uninterrupted():
            ledger = path / LEDGER
            _end_rewriting(store)
            done += _mend_parts(store, parts.listed(path / PARTS), _known(ledger, write=True))
            try:
                store._ledger = Ledger(ledger, write=True)
                with contextlib.closing(Ledger(ledger, write=False)) as now:
                    there = parts.listed(path / PARTS)
                    known = now.parts()
                    changed = [n for n in known if n not in there or known[n].digest != _digest(there[n])]
                store._ledger.forget(changed)
                done += [f"forgot the {known[n].runs:,} runs the ledger had of part {n}" for n in changed]
                _enter_missing(store, done)
                store.close()
                if any(Path(fault.file).name == LEDGER for fault in verify(store)):
                    raise StoreError([])
            except StoreError:
                # It is an index: what it says is in the parts.
                store.close()
                ledger.unlink(missing_ok=True)
                ledger.with_name(JOURNAL).unlink(missing_ok=True)
                store._ledger = Ledger(ledger, write=True)
                done.append("made the ledger again from the parts")
                _enter_missing(store, [])
    except OSError as error:
        from celltrain.store.files import unwritable

        raise unwritable(Path(error.filename or path), error) from None
    finally:
        store.close()
        lock.release()
    return done


def _end_rewriting(store: Store) -> None:
    """A part that a kill left written anew, and not in the ledger yet, is what was written."""
    from celltrain.store import rewrite
    from celltrain.store.store import LEDGER

    if (store.path / rewrite.INTENT).exists() and (store.path / LEDGER).is_file():
        with contextlib.suppress(StoreError):
            store._ledger = Ledger(store.path / LEDGER, write=True)
            rewrite.finish(store)
        store.close()
    (store.path / rewrite.INTENT).unlink(missing_ok=True)


def _refuse_others(store: Store) -> None:
    """Raises for what this celltrain cannot judge: it would take good parts for another store's."""
    from celltrain.store.store import KIND

    version = _core.build()["version"]
    if store.version != version:
        problem = f"was made by celltrain {store.version}, and this is {version}: only the one that made it can tell what is wrong"
        raise StoreError([Fault.of_file(shown(store.path), f"{problem}; install celltrain {store.version}")])
    faults = list(KIND.changed(store.path, store.manifest))
    if faults:
        raise StoreError(faults)


def _known(ledger: Path, *, write: bool) -> dict[int, Part]:
    """The parts a ledger knows, as far as there is one that can be read; to write, so as to undo what was half done."""
    if not ledger.exists():
        return {}
    with contextlib.suppress(StoreError), contextlib.closing(Ledger(ledger, write=write)) as now:
        return now.parts()
    return {}


def _mend_parts(store: Store, there: dict[int, Path], known: dict[int, Part]) -> Iterator[str]:
    """Sets aside the parts that are not what was written, or of something else, and drops runs that an earlier part has."""
    import pyarrow as pa
    import pyarrow.compute as pc

    seen: set[bytes] = set()
    for number, path in there.items():
        try:
            table = parts.read(path)
            problems = list(strange(store, path, table))
            if not problems and number in known:
                problems = list(_changed(path, known[number]))
        except StoreError as error:
            problems = error.faults
        if problems:
            aside = store.path / ASIDE
            aside.mkdir(exist_ok=True)
            path.rename(_free(aside / path.name))
            sync(aside)
            sync(path.parent)
            yield f"set aside {path.name}: {problems[0].problem}"
            continue
        own = {key: bytes.fromhex(key) for key in table["run_key"].unique().to_pylist()}
        again = [key for key, short in own.items() if short in seen]
        seen.update(own.values())
        if again:
            kept = table.filter(pc.invert(pc.is_in(table["run_key"].cast(pa.string()), pa.array(again))))
            put(path, parts.encoded(kept))
            yield f"dropped {len(again):,} runs from {path.name}, which an earlier part has"


def _free(path: Path) -> Path:
    """The path, or one like it where there is something already."""
    again = (path.with_name(f"{path.stem}-{count}{path.suffix}") for count in itertools.count(2))
    return path if not path.exists() else next(one for one in again if not one.exists())


def _changed(path: Path, part: Part) -> Iterator[Fault]:
    if part.digest != _digest(path):
        problem = "is not what was written (its sha256 differs)"
        yield Fault.of_file(shown(path), f"{problem}; set it aside and forget its runs with: celltrain store repair")


def _enter_missing(store: Store, done: list[str]) -> None:
    from celltrain.store.store import PARTS

    known = store.ledger.parts()
    for number, path in parts.listed(store.path / PARTS).items():
        if number not in known:
            store.enter(number, path)
            done.append(f"entered the runs of {path.name}")


def strange(store: Store, path: Path, table: pa.Table) -> Iterator[Fault]:
    """What is wrong with the rows of a part by themselves."""
    import pyarrow as pa

    try:
        yield from _strange(store, path, table)
    except (*parts.DAMAGE, pa.ArrowException) as error:
        yield parts.damaged(path, error)


def _strange(store: Store, path: Path, table: pa.Table) -> Iterator[Fault]:
    names = store.schema.names
    if table.column_names != names:
        problem = f"has the columns {', '.join(table.column_names)}, and the plan's are {', '.join(names)}"
        yield Fault.of_file(shown(path), f"{problem}: it is another store's; set it aside with: celltrain store repair")
        return
    if not table.schema.equals(store.schema):
        yield parts.damaged(path, TypeError("its columns are of other types"))
        return
    if any(table[name].null_count for name in _NEEDED):
        yield parts.damaged(path, ValueError("rows lack what tells whose they are"))
        return
    other = set(table["measure"].unique().to_pylist()) - {None, *store.manifest["measures"]}
    if other:
        problem = f"has the measure {min(other)}, which is not in the plan: it is another store's"
        yield Fault.of_file(shown(path), f"{problem}; set it aside with: celltrain store repair")
        return
    for column in ("version", "profile"):
        for value in table[column].unique().to_pylist():
            if value != store.manifest[column]:
                problem = (
                    f"holds rows of {column} {value}, and the store is of {store.manifest[column]}: they do not mix"
                )
                yield Fault.of_file(shown(path), f"{problem}; set it aside with: celltrain store repair")
    by = ["run_key", "point", "configuration", "seed"]
    runs = table.select(by).group_by(by, use_threads=False).aggregate([])
    known: set[str] = set()
    for row in runs.to_pylist():
        key = row["run_key"]
        if key in known or key != run_key_of(store, row["configuration"], row["seed"]):
            problem = f"holds the run {key}, whose scenario and seed are others'"
            yield Fault.of_file(shown(path), f"{problem}: it was changed; set it aside with: celltrain store repair")
            return
        known.add(key)


def _identities(table: pa.Table) -> set[Identity]:
    """The runs of a part."""
    by = ["run_key", "point", "seed"]
    runs = table.select(by).group_by(by, use_threads=False).aggregate([])
    return set(zip(*(runs[name].to_pylist() for name in by), strict=True))


def run_key_of(store: Store, configuration: str, seed: int) -> str:
    """The key a run of this store must have."""
    return run_key(configuration, seed, version=store.version)


def _twice(store: Store, there: dict[int, Path], keys: list[Any]) -> Iterator[Fault]:
    """The runs that two parts have."""
    if not keys:
        return
    every = np.sort(np.concatenate(keys))
    again = np.unique(every[1:][every[1:] == every[:-1]])
    for short in again[:MOST_NAMED]:
        # numpy drops zeros at the end of bytes.
        key = bytes(short).ljust(12, b"\0").hex()
        holders = []
        for path in there.values():
            with contextlib.suppress(StoreError):
                if key in parts.read(path, ["run_key"])["run_key"].unique().to_pylist():
                    holders.append(path.name)
        problem = f"has the run {key} more than once ({', '.join(holders)}); drop all but the first with: celltrain store repair"
        yield Fault.of_file(shown(store.path), problem)
    if len(again) > MOST_NAMED:
        yield Fault.of_file(shown(store.path), f"has {len(again) - MOST_NAMED:,} more runs more than once")


def _against_ledger(
    store: Store,
    ledger: Ledger,
    before: Collection[int],
    there: dict[int, Path],
    whole: dict[int, set[Identity]],
    told: set[str | None],
) -> Iterator[Fault]:
    """Where ledger and parts disagree, beside the parts of which something was told already."""
    from celltrain.store.store import _disagreements, miscounted

    known, entered = ledger.snapshot()
    if there.keys() - known.keys():
        # A sweep that goes on enters a part once it is on the disk.
        time.sleep(MOMENT)
        known, entered = ledger.snapshot()
    # A part that came after the folder was looked at is the sweep's that goes on.
    later = known.keys() - there.keys() - set(before)
    known = {number: part for number, part in known.items() if number not in later}
    first = list(_disagreements(store.path, there, known))
    told |= {fault.file for fault in first}
    yield from first
    place = shown(ledger.path)
    for number in sorted(there.keys() - known.keys()):
        yield Fault.of_file(
            place,
            f"does not know {there[number].name}: the next --resume enters it, and so does celltrain store repair",
        )
    for number in sorted(known.keys() & there.keys()):
        if shown(there[number]) not in told:
            yield from _changed(there[number], known[number])
    old = {number: len(runs) for number, runs in entered.items() if number not in later}
    yield from miscounted(ledger, known, old)
    for number in sorted(whole.keys() & known.keys()):
        differ = whole[number] ^ entered.get(number, set())
        if differ:
            problem = f"and {there[number].name} disagree on {len(differ):,} runs, {min(differ)[0]} one of them"
            yield Fault.of_file(place, f"{problem}; make it again from the parts: celltrain store repair")


def _without_series(store: Store, table: pa.Table) -> Iterator[Fault]:
    import pyarrow.compute as pc

    from celltrain.store.store import SERIES

    ran = table.filter(pc.is_valid(table["measure"]))["run_key"].unique().to_pylist()
    missing = [key for key in ran if not (store.path / SERIES / f"{key}.parquet").is_file()]
    if missing:
        yield Fault.of_file(
            shown(store.path / SERIES), f"lacks the series of {len(missing):,} runs, {missing[0]} one of them"
        )


def _digest(path: Path) -> str:
    return parts.digest(parts.content(path))
