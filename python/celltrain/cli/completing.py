"""Shell completion: shipped scenarios and plans, models, series. `celltrain --install-completion` sets it up."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable

import typer

from celltrain.cli import catalog

#: Kinds of things that can be listed.
KINDS = (*catalog.KINDS, "measures")


def scenarios(incomplete: str) -> list[str]:
    """Shipped scenarios by name, and TOML files."""
    return _shipped("scenario", incomplete)


def shipped_scenarios(incomplete: str) -> list[str]:
    """Shipped scenarios by name."""
    from celltrain.model.shipped import names

    return _starting(names("scenario"), incomplete)


def flows(context: typer.Context, incomplete: str) -> list[str]:
    """Connections of the scenario already given on the command line."""
    from celltrain.errors import CelltrainError
    from celltrain.model import scenario
    from celltrain.model.network import Network

    file = context.params.get("file")
    try:
        network = Network.of_core(scenario.read(file).accepted()) if file is not None else None
    except (CelltrainError, OSError):
        network = None
    return [] if network is None else _starting([flow.name for flow in network.flows], incomplete)


def measures(incomplete: str) -> list[str]:
    """Measures of a whole run; completes the last of several names separated by commas."""
    from celltrain.model.measures import RUN

    return _last_of([one.name for one in RUN if one.kind != "string"], incomplete)


def paths(incomplete: str) -> list[str]:
    """The next step of a path into a scenario, such as `port.bottleneck.buffer=`; after `=`, values such as `epd`."""
    from celltrain.errors import CelltrainError
    from celltrain.model.paths import choices, steps

    path, sign, values = incomplete.partition("=")
    try:
        if sign:
            return [f"{path}={one}" for one in _last_of(choices(path), values)]
        parent, _, step = path.rpartition(".")
        before = f"{parent}." if parent else ""
        return [f"{before}{one}" for one in _starting(steps(parent), step)]
    except CelltrainError:
        return []


def plans(incomplete: str) -> list[str]:
    """Shipped plans by name, and TOML files."""
    return _shipped("plan", incomplete)


def kinds(incomplete: str) -> list[str]:
    """Kinds of things that can be listed."""
    return _starting(KINDS, incomplete)


def explained(incomplete: str) -> list[str]:
    """Everything that can be explained."""
    return _starting(dict.fromkeys(entry.name for entry in catalog.everything()), incomplete)


def series(incomplete: str) -> list[str]:
    """Series that can be recorded; completes the last of several names separated by commas."""
    from celltrain.model.measures import SERIES

    return _last_of(SERIES, incomplete)


def _shipped(kind: str, incomplete: str) -> list[str]:
    from celltrain.model.shipped import names

    return [*_starting(names(kind), incomplete), *_files(incomplete)]


def _last_of(names: Iterable[str], incomplete: str) -> list[str]:
    """Completes the last of several names separated by commas."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _starting(names, last)]


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _files(incomplete: str) -> list[str]:
    """TOML files and folders that begin with `incomplete`; a slash is added to folders."""
    found = sorted(glob.glob(f"{glob.escape(incomplete)}*"))  # noqa: PTH207 -- a path prefix, not a path
    folders = [f"{path}/" for path in found if os.path.isdir(path)]  # noqa: PTH112
    return [*folders, *(path for path in found if path.endswith(".toml"))]
