"""Examples are run: every python, console and sh block of the pages, and every docstring.

Blocks fenced as ```text are not run. The Python blocks of a page are run in order and share their names, as a reader would;
so do its commands their folder. In a console block a line that begins with "$ " is a command, anything else its output.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import os
import pkgutil
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT, Block, blocks

import celltrain

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# These set up what the tests run in, or take the place of a person.
NOT_RUN = re.compile(r"^(make|pip|git|cd|cargo|\$EDITOR)\b")


def code(page: Path, *languages: str) -> list[Block]:
    """The blocks of a page in these languages; those that show a file are not run."""
    return [b for b in blocks(page) if b.language in languages and not b.comment.startswith("file:")]


def commands(page: Path) -> list[tuple[int, str]]:
    """The commands of a page, each with its line; a backslash at the end goes on in the next."""
    found = [
        (block.line + number, command.removeprefix("$ "))
        for block in code(page, "console")
        for number, command in enumerate(re.sub(r"\\\n>? *", "", block.text).splitlines())
        if command.startswith("$ ")
    ]
    found += [(block.line, block.text) for block in code(page, "sh")]
    return [(line, command) for line, command in sorted(found) if not NOT_RUN.match(command)]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder with what a reader has: the scenarios, the plans, the papers and the studies, and `celltrain` on the path."""
    for name in ("scenarios", "plans", "papers", "studies"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


@pytest.mark.parametrize("page", [page for page in PAGES if code(page, "python")], ids=named)
def test_the_python_of_a_page_runs(page, checkout):
    names = {"__name__": "__main__"}
    for block in code(page, "python"):
        # With the lines of the page, so that a traceback leads there.
        exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=named)
def test_the_commands_of_a_page_run(page, checkout):
    for line, command in commands(page):
        # Into a file, and in a session of its own: what a command that fails leaves in the background holds no pipe and
        # goes with it.
        with (checkout / "told.txt").open("w+") as told:
            shell = subprocess.Popen(
                ["bash", "-e", "-c", command], stdout=told, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                code = shell.wait(timeout=300)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(shell.pid, signal.SIGKILL)
            told.seek(0)
            assert code == 0, f"{page}:{line}: {command}\n{told.read()}"


MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(celltrain.__path__, "celltrain.")
    if not module.name.endswith(("_core", "__main__"))
)


@pytest.mark.parametrize("name", ["celltrain", *MODULES])
def test_the_examples_in_docstrings_run(name, checkout):
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0
