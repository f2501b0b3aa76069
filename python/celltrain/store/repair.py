"""Repairs a store: parts, ledger, and leftovers of a killed process."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path

from celltrain.errors import StoreError
from celltrain.store import parts, rewrite
from celltrain.store.check import changed, digest_of, known_parts, refuse_others, strange, verify
from celltrain.store.files import Lock, put, sync, uninterrupted, unwritable
from celltrain.store.layout import ASIDE, FOLDERS, JOURNAL, LEDGER, LOCK, PARTS
from celltrain.store.ledger import Ledger, Part
from celltrain.store.store import Store
from celltrain.tables import encoded
from celltrain.writing import linked


def repair(path: Path) -> list[str]:
    """Sets aside what is not what was written, drops what is there twice, makes ledger and parts agree; says what it did.

    Runs that are lost that way are missing: `--resume` runs them again. Raises `StoreError` where it cannot write, and for a
    store of another version, or whose manifest was changed; nothing is touched then.
    """
    store = Store.open(path, changed=True)
    refuse_others(store)
    if faults := linked(*(path / name for name in FOLDERS)):
        raise StoreError(faults)
    done: list[str] = []
    lock = Lock(path / LOCK)
    try:
        with uninterrupted():
            ledger = path / LEDGER
            _end_rewriting(store)
            done += _mend_parts(store, parts.listed(path / PARTS), known_parts(ledger, write=True))
            try:
                store._ledger = Ledger(ledger, write=True)
                with contextlib.closing(Ledger(ledger, write=False)) as now:
                    there = parts.listed(path / PARTS)
                    known = now.parts()
                    changed = [n for n in known if n not in there or known[n].digest != digest_of(there[n])]
                store._ledger.forget(changed)
                done += [f"forgot the {known[n].runs:,} runs the ledger had of part {n}" for n in changed]
                _enter_missing(store, done)
                store.close()
                if any(Path(fault.file).name == LEDGER for fault in verify(store)):
                    raise StoreError([])
            except StoreError:
                # The ledger is an index and can be made again from the parts.
                store.close()
                _take_away(ledger)
                _take_away(ledger.with_name(JOURNAL))
                store._ledger = Ledger(ledger, write=True)
                done.append("made the ledger again from the parts")
                _enter_missing(store, [])
    except OSError as error:
        raise unwritable(Path(error.filename or path), error) from None
    finally:
        store.close()
        lock.release()
    return done


def _end_rewriting(store: Store) -> None:
    """Enters a part that was rewritten before a kill and is not yet in the ledger."""
    if (store.path / rewrite.INTENT).exists() and (store.path / LEDGER).is_file():
        with contextlib.suppress(StoreError):
            store._ledger = Ledger(store.path / LEDGER, write=True)
            rewrite.finish(store)
        store.close()
    _take_away(store.path / rewrite.INTENT)


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
                problems = list(changed(path, known[number]))
        except StoreError as error:
            problems = error.faults
        if problems:
            _set_aside(path, store.path / ASIDE)
            yield f"set aside {path.name}: {problems[0].problem}"
            continue
        own = {key: bytes.fromhex(key) for key in table["run_key"].unique().to_pylist()}
        again = [key for key, short in own.items() if short in seen]
        seen.update(own.values())
        if again:
            kept = table.filter(pc.invert(pc.is_in(table["run_key"].cast(pa.string()), pa.array(again))))
            put(path, encoded(kept))
            yield f"dropped {len(again):,} runs from {path.name}, which an earlier part has"


def _take_away(path: Path) -> None:
    """Removes a file that can be made again; a folder in its place may hold anything, and is set aside."""
    if path.is_dir() and not path.is_symlink():
        _set_aside(path, path.parent / ASIDE)
    else:
        path.unlink(missing_ok=True)


def _set_aside(path: Path, aside: Path) -> None:
    aside.mkdir(exist_ok=True)
    path.rename(_free(aside / path.name))
    sync(aside)
    sync(path.parent)


def _free(path: Path) -> Path:
    """The path, or a free path like it where the path is taken."""
    again = (path.with_name(f"{path.stem}-{count}{path.suffix}") for count in itertools.count(2))
    return path if not path.exists() else next(one for one in again if not one.exists())


def _enter_missing(store: Store, done: list[str]) -> None:
    known = store.ledger.parts()
    for number, path in parts.listed(store.path / PARTS).items():
        if number not in known:
            store.enter(number, path)
            done.append(f"entered the runs of {path.name}")
