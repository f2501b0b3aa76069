"""Examples are run: every python, console and sh block of the pages, and every docstring.

Blocks fenced as ```text are not run. The Python blocks of a page are run in order and share their names, as a reader would;
so do its commands their folder. In a console block a line that begins with "$ " is a command, anything else its output.
"""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import celltrain

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>[a-z]*)[^\n]*\n(?P<code>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL
)
# These set up what the tests run in, or take the place of a person.
NOT_RUN = re.compile(r"^(make|pip|git|cd|cargo|\$EDITOR)\b")


def blocks(page: Path, *languages: str) -> list[tuple[int, str]]:
    """The blocks of a page in these languages, each with its line."""
    text = page.read_text() if page.exists() else ""
    return [
        (text.count("\n", 0, match.start()) + 1, re.sub(f"^{match['indent']}", "", match["code"], flags=re.MULTILINE))
        for match in BLOCK.finditer(text)
        if match["language"] in languages
    ]


def commands(page: Path) -> list[tuple[int, str]]:
    """The commands of a page, each with its line; a backslash at the end goes on in the next."""
    found = [
        (line + 1 + number, command.removeprefix("$ "))
        for line, code in blocks(page, "console")
        for number, command in enumerate(re.sub(r"\\\n>? *", "", code).splitlines())
        if command.startswith("$ ")
    ]
    found += [(line, code) for line, code in blocks(page, "sh")]
    return [(line, command) for line, command in sorted(found) if not NOT_RUN.match(command)]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder with what a reader has: the scenarios and the papers, and `celltrain` on the path."""
    for name in ("scenarios", "papers"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=named)
def test_the_python_of_a_page_runs(page, checkout):
    names = {"__name__": "__main__"}
    for line, code in blocks(page, "python"):
        # With the lines of the page, so that a traceback leads there.
        exec(compile("\n" * line + code, str(page), "exec"), names)


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=named)
def test_the_commands_of_a_page_run(page, checkout):
    for line, command in commands(page):
        done = subprocess.run(["bash", "-e", "-c", command], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{page}:{line}: {command}\n{done.stdout}{done.stderr}"


MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(celltrain.__path__, "celltrain.")
    if not module.name.endswith(("_core", "__main__"))
)


@pytest.mark.parametrize("name", ["celltrain", *MODULES])
def test_the_examples_in_docstrings_run(name, checkout):
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0
