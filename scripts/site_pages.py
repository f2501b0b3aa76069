"""Lists models and public names for the site, and draws the figures of `docs/gallery.md`.

python scripts/site_pages.py      runs the commands of the gallery and saves their figures
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from celltrain.cli.catalog import CHOICES, entries, page_of

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FIGURES = DOCS / "images" / "gallery"
#: Heading for each kind of model.
KINDS = {
    "policies": "Buffer policies: which frames a port admits",
    "memory_policies": "Memory policies: which cells enter a memory that ports share",
    "schedulers": "Schedulers: which cell leaves a port next",
    "allocators": "Allocators: the rates a switch gives ABR sources",
    "discards": "Discard in edge devices",
    "tcp": "TCP: how a sender reacts to loss",
    "congestion": "Congestion control: how a window grows and shrinks",
    "traffic": "Traffic: what a flow sends, and when",
    "topologies": "Topologies",
}
#: Functions, results and errors; all other public names are tables of a scenario.
CALLS = [
    "n_source",
    "load",
    "save",
    "check",
    "draw",
    "import_graph",
    "max_min_shares",
    "run",
    "compare",
    "sweep",
    "report",
    "tune",
    "reproduce",
    "study",
    "why",
    "read_events",
    "mmu.thresholds",
    "mmu.check",
    "mmu.load",
]
ANSWERS = [
    "RunResult",
    "Compared",
    "Store",
    "Report",
    "Tuned",
    "Why",
    "mmu.Thresholds",
    "mmu.Checked",
    "EventLog",
    "Events",
    "Capture",
    "Cancel",
    "Fault",
]
#: Results whose data have a class of their own.
INHERITING = ("Compared",)


def models() -> str:
    """Returns a table of models for each kind."""
    return "\n".join(line for kind in CHOICES for line in _kind(kind))


def _kind(kind: str) -> Iterator[str]:
    yield from ("", f"## {KINDS[kind]}", "", "| | |", "|---|---|")
    for entry in entries(kind):
        yield f"| [`{entry.name}`](models/{page_of(kind, entry.name)}.md) | {_cell(entry.summary)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def api() -> str:
    """Returns the directives for all public names, for autodoc."""
    celltrain: Any = import_module("celltrain")
    names = [name for name in celltrain.__all__ if inspect.isclass(getattr(celltrain, name))]
    errors = [name for name in names if issubclass(getattr(celltrain, name), Exception)]
    tables = [name for name in names if name not in (*errors, *ANSWERS)]
    blocks = (
        ("Calls", "autofunction", CALLS, ""),
        (
            "Answers",
            "autoclass",
            ANSWERS,
            "You get these objects as results of calls; you cannot create them yourself.",
        ),
        ("Errors and warnings", "autoexception", errors, "See [when each is raised](errors.md)."),
        (
            "Tables of a scenario",
            "autoclass",
            tables,
            "Each table of a [scenario file](scenarios.md) has a class. The page on scenario files gives units, defaults and ranges.",
        ),
    )
    lines: list[str] = []
    for title, directive, listed, text in blocks:
        lines += ["", f"## {title}", *(["", text] if text else []), "", "```{eval-rst}"]
        for name in listed:
            lines += [f".. {directive}:: celltrain.{name}", *(["   :inherited-members:"] if name in INHERITING else [])]
        lines += ["```"]
    return "\n".join([*lines, ""])


def draw() -> None:
    """Runs the gallery's command blocks in one folder, like a reader, and saves the figures that the page shows."""
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with tempfile.TemporaryDirectory() as folder:
        for commands in re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
            subprocess.run(commands, shell=True, check=True, cwd=folder, env={**os.environ, "PATH": paths})
        for name in re.findall(r"\]\(images/gallery/([^)]+)\)", page):
            shutil.copyfile(next(Path(folder).rglob(name)), FIGURES / name)


if __name__ == "__main__":
    draw()
