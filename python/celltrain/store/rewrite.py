"""Removes failed runs from a part, in steps; a kill between any two of them does no harm.

What is about to be done is written down first, with the part's sha256 before and after: whoever opens the store next sees from
the part itself whether it was done, and makes the ledger agree.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from celltrain.errors import Fault, StoreError
from celltrain.files import UnreadableError, read_json
from celltrain.store import parts
from celltrain.store.files import put, sync, uninterrupted, unwritable
from celltrain.store.layout import PARTS
from celltrain.store.ledger import Part
from celltrain.tables import encoded
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.store.store import Store

#: There while a part is written anew.
INTENT = "rewriting.json"


def without_failed(store: Store, number: int, worth: Callable[[str], bool]) -> int:
    """Writes a part anew without the failed runs that are worth another try; returns how many these are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    path = parts.named(store.path / PARTS, number)
    told = parts.read(path, ["run_key", "measure", "error"])
    failed = told.filter(pc.is_null(told["measure"]))
    errors, keys = (failed[name].cast(pa.string()).to_pylist() for name in ("error", "run_key"))
    chosen = [key for key, error in zip(keys, errors, strict=True) if worth(error or "")]
    if not chosen:
        return 0
    table = parts.read(path)
    kept = table.filter(pc.invert(pc.is_in(table["run_key"].cast(pa.string()), pa.array(chosen))))
    content = encoded(kept)
    before = store.ledger.parts()[number]
    if before.digest != parts.digest(parts.content(path)):
        problem = "is not what was written (its sha256 differs); set it aside and forget its runs with: celltrain store repair"
        raise StoreError([Fault.of_file(shown(path), problem)])
    after = Part(runs=before.runs - len(chosen), bytes=len(content), digest=parts.digest(content))
    intent = {"part": number, "before": before.digest, "after": after.digest, "runs": after.runs, "run_keys": chosen}
    with uninterrupted():
        put(store.path / INTENT, json.dumps(intent).encode())
        put(path, content)
        store.ledger.replace(number, after, chosen)
        _done(store)
    return len(chosen)


def finish(store: Store) -> None:
    """Completes an interrupted rewrite: a part that was already rewritten is entered as it is; raises `StoreError`."""
    path = store.path / INTENT
    if not path.exists() and not path.is_symlink():
        return
    try:
        said = read_json(path, what="note of a part")
        number, after, runs, keys = int(said["part"]), str(said["after"]), int(said["runs"]), list(said["run_keys"])
        part = parts.named(store.path / PARTS, number)
        known = store.ledger.parts()
        if number in known and known[number].digest == said["before"] and part.exists():
            content = parts.content(part)
            if parts.digest(content) == after:
                store.ledger.replace(number, Part(runs=runs, bytes=len(content), digest=after), keys)
    except (UnreadableError, KeyError, TypeError, ValueError) as error:
        problem = f"is not what celltrain wrote ({error}); see what is wrong with: celltrain store repair"
        raise StoreError([Fault.of_file(shown(path), problem)]) from None
    _done(store)


def _done(store: Store) -> None:
    path = store.path / INTENT
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(path, error) from None
    sync(path.parent)
