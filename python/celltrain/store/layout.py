"""The names of the files in a store's folder, and the content of its manifest."""

from __future__ import annotations

from celltrain.errors import StoreError
from celltrain.store.manifest import Kind

#: Of the folder and its files.
FORMAT = 1
MANIFEST, LEDGER, PARTS, SERIES, LOCK = "manifest.json", "ledger.sqlite", "parts", "series", "lock"
ASIDE = "set-aside"
#: What is in the folder as a folder.
FOLDERS = (PARTS, SERIES, ASIDE)
JOURNAL = f"{LEDGER}-journal"
KIND = Kind("store", MANIFEST, FORMAT, StoreError, unseen="in its measures or its sample", needs=("measures",))
