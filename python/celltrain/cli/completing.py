"""What a shell completes: names of shipped scenarios and plans, models, series. `celltrain --install-completion` sets it up."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable


def scenarios(incomplete: str) -> list[str]:
    """Shipped scenarios by name, and TOML files."""
    return _shipped("scenario", incomplete)


def plans(incomplete: str) -> list[str]:
    """Shipped plans by name, and TOML files."""
    return _shipped("plan", incomplete)


def explained(incomplete: str) -> list[str]:
    """Everything that can be explained."""
    from celltrain.catalog import everything

    return _starting(dict.fromkeys(entry.name for entry in everything()), incomplete)


def series(incomplete: str) -> list[str]:
    """What can be recorded; of several names with commas between the last is completed."""
    from celltrain.measures import SERIES

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _starting(SERIES, last)]


def _shipped(kind: str, incomplete: str) -> list[str]:
    from celltrain.shipped import names

    return [*_starting(names(kind), incomplete), *_files(incomplete)]


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _files(incomplete: str) -> list[str]:
    """TOML files and folders that begin so; a folder's name ends in a stroke."""
    found = sorted(glob.glob(f"{glob.escape(incomplete)}*"))  # noqa: PTH207 -- a beginning of a path, not a path
    folders = [f"{path}/" for path in found if os.path.isdir(path)]  # noqa: PTH112
    return [*folders, *(path for path in found if path.endswith(".toml"))]
