"""Verifies a store: its parts, its ledger and its manifest."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain import _core
from celltrain.errors import Fault, StoreError
from celltrain.plan import run_key
from celltrain.store import parts
from celltrain.store.layout import FOLDERS, KIND, LEDGER, PARTS, SERIES
from celltrain.store.ledger import Ledger, Part
from celltrain.text import shown
from celltrain.writing import linked

if TYPE_CHECKING:
    import pyarrow as pa

    from celltrain.store.store import Store

#: Keys that occur twice are named up to here.
MOST_NAMED = 5
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
    refuse_others(store)
    faults = linked(*(store.path / name for name in FOLDERS))
    # The ledger is read before the folder: every part it has then must be there.
    before = known_parts(store.path / LEDGER, write=False)
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


def refuse_others(store: Store) -> None:
    """Raises for a store of another version or with a changed manifest: its good parts would seem to be another store's."""
    version = _core.build()["version"]
    if store.version != version:
        problem = f"was made by celltrain {store.version}, and this is {version}: only the one that made it can tell what is wrong"
        raise StoreError([Fault.of_file(shown(store.path), f"{problem}; install celltrain {store.version}")])
    faults = list(KIND.changed(store.path, store.manifest))
    if faults:
        raise StoreError(faults)


def known_parts(ledger: Path, *, write: bool) -> dict[int, Part]:
    """The parts in the ledger, if it can be read; it is opened to write, so that an interrupted change is undone."""
    if not ledger.exists():
        return {}
    with contextlib.suppress(StoreError), contextlib.closing(Ledger(ledger, write=write)) as now:
        return now.parts()
    return {}


def changed(path: Path, part: Part) -> Iterator[Fault]:
    """The fault of a part whose sha256 differs from the ledger's."""
    if part.digest != digest_of(path):
        problem = "is not what was written (its sha256 differs)"
        yield Fault.of_file(shown(path), f"{problem}; set it aside and forget its runs with: celltrain store repair")


def strange(store: Store, path: Path, table: pa.Table) -> Iterator[Fault]:
    """The faults within the rows of one part."""
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
    """Where ledger and parts disagree, except for parts with a fault reported before."""
    known, entered = ledger.snapshot()
    if there.keys() - known.keys():
        # A sweep that goes on enters a part once it is on the disk.
        time.sleep(MOMENT)
        known, entered = ledger.snapshot()
    # A part written after the folder was read belongs to a sweep that is still running.
    later = known.keys() - there.keys() - set(before)
    known = {number: part for number, part in known.items() if number not in later}
    first = list(disagreements(store.path, there, known))
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
            yield from changed(there[number], known[number])
    old = {number: len(runs) for number, runs in entered.items() if number not in later}
    yield from miscounted(ledger, known, old)
    for number in sorted(whole.keys() & known.keys()):
        differ = whole[number] ^ entered.get(number, set())
        if differ:
            problem = f"and {there[number].name} disagree on {len(differ):,} runs, {min(differ)[0]} one of them"
            yield Fault.of_file(place, f"{problem}; make it again from the parts: celltrain store repair")


def _without_series(store: Store, table: pa.Table) -> Iterator[Fault]:
    import pyarrow.compute as pc

    ran = table.filter(pc.is_valid(table["measure"]))["run_key"].unique().to_pylist()
    missing = [key for key in ran if not (store.path / SERIES / f"{key}.parquet").is_file()]
    if missing:
        yield Fault.of_file(
            shown(store.path / SERIES), f"lacks the series of {len(missing):,} runs, {missing[0]} one of them"
        )


def digest_of(path: Path) -> str:
    """Of a part's content."""
    return parts.digest(parts.content(path))


def disagreements(folder: Path, there: dict[int, Path], known: dict[int, Part]) -> Iterator[Fault]:
    """Where ledger and parts disagree, as far as a look at the files' sizes tells."""
    for number in sorted(known.keys() - there.keys()):
        path = parts.named(folder / PARTS, number)
        problem = f"is in the ledger and not there: forget its {known[number].runs:,} runs with: celltrain store repair"
        yield Fault.of_file(shown(path), problem)
    for number, part in known.items():
        if number in there and (size := there[number].stat().st_size) != part.bytes:
            problem = (
                f"has {size:,} bytes and had {part.bytes:,} when it was written: it is cut short or changed; set it aside "
                "and forget its runs with: celltrain store repair"
            )
            yield Fault.of_file(shown(there[number]), problem)


def miscounted(ledger: Ledger, known: dict[int, Part], held: dict[int, int]) -> Iterator[Fault]:
    """Where a ledger has more or fewer runs of a part than were written with it: it would have runs done twice, or never."""
    for number in sorted(known.keys() | held.keys()):
        runs, written = held.get(number, 0), known[number].runs if number in known else 0
        if runs != written:
            problem = f"has {runs:,} runs of {parts.named(Path(), number).name}, which was written with {written:,}"
            if number not in known:
                problem = f"has {runs:,} runs of {parts.named(Path(), number).name}, which it does not know"
            yield Fault.of_file(shown(ledger.path), f"{problem}; make it again from the parts: celltrain store repair")
    if double := ledger.double():
        problem = f"has {double:,} runs twice, as done and as another point's"
        yield Fault.of_file(shown(ledger.path), f"{problem}; make it again from the parts: celltrain store repair")
