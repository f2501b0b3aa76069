"""Verifies a store: the file, the checksums, the keys of the runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from celltrain import _core
from celltrain.ensemble.plan import run_key
from celltrain.ensemble.store.database import MEND, Database
from celltrain.ensemble.store.layout import KIND
from celltrain.ensemble.store.runs import Runs, read
from celltrain.errors import Fault, StoreError
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.ensemble.store.store import Store


def verify(store: Store) -> list[Fault]:
    """Returns what is wrong with a store. A sweep may write it meanwhile.

    Raises `StoreError` for a store of another version, and for one whose manifest was changed: they say nothing about the runs.
    """
    version = _core.build()["version"]
    if store.version != version:
        problem = (
            f"was made by celltrain {store.version}, and this is {version}: only the version that made it can verify it"
        )
        raise StoreError([Fault.of_file(shown(store.path), f"{problem}; install celltrain {store.version}")])
    faults = list(KIND.changed(store.path, store.manifest))
    if faults:
        raise StoreError(faults)
    try:
        with store.reading() as database:
            return [*_of_file(store, database), *_of_runs(store, read(database, store.manifest))]
    except StoreError as error:
        return error.faults


def _of_file(store: Store, database: Database) -> Iterator[Fault]:
    for text in database.integrity():
        yield Fault.of_file(shown(database.path), f"is damaged ({text}): {MEND}")
    with database.snapshot() as query:
        [double] = query("SELECT count(*) FROM repeats JOIN runs USING (point, seed)").fetchone()
        [lost] = query("SELECT count(*) FROM repeats WHERE run_key NOT IN (SELECT run_key FROM runs)").fetchone()
        [count] = query("SELECT count(*) FROM repeats").fetchone()
        if double or lost or count != database.totals().repeats:
            problem = "counts runs of other points that are not there, or twice"
            yield Fault.of_file(shown(database.path), f"{problem}: it was changed; {MEND}")
        if store.manifest["plan"].get("series") is not None:
            text = "SELECT count(*) FROM runs WHERE error IS NULL AND run NOT IN (SELECT run FROM series)"
            [missing] = query(text).fetchone()
            if missing:
                yield Fault.of_file(shown(database.path), f"lacks the series of {missing:,} runs: {MEND}")


def _of_runs(store: Store, runs: Runs) -> Iterator[Fault]:
    seeds, cases = runs.seed.tolist(), runs.case.tolist()
    for key, seed, case in zip(runs.keys, seeds, cases, strict=True):
        if key != run_key(runs.configurations[case], seed, version=store.version):
            problem = f"holds the run {key}, whose scenario and seed are others'"
            yield Fault.of_file(shown(store.path), f"{problem}: it was changed; {MEND}")
            return
