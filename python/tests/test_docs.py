"""Runs the examples: every python, console and sh block on the pages, and every docstring.

Blocks fenced as ```text are not run. The Python blocks of a page run in order and share their names, and the commands
of a page share their folder. In a console block, a line that starts with "$ " is a command, and anything else is its
output.

A ```text block with the comment "output" on the line before it shows the output of the command above it, with which
the test compares the real output. `...` stands for omitted lines, or for the rest of a line. Commands of other programs
run if these programs are installed; otherwise the test is skipped and names them.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import importlib.util
import itertools
import os
import pkgutil
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from conftest import NIGHTLY, PACKAGES, import_or_skip
from pages import ROOT, Block, blocks
from typer.core import TyperGroup
from typer.main import get_command

import celltrain
from celltrain.cli import program

COMMAND_LINE = get_command(program())
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Commands that set up the test environment, or need a person to interact.
NOT_RUN = re.compile(r"^(make|pip|git|cd|cargo|\$EDITOR)\b")
#: Programs that read celltrain's output; Debian's packages have the same names.
OTHERS = ("tshark", "tcptrace")
#: Pages with long simulations. The nightly job runs their commands; other jobs only parse them.
LONG = {
    "docs/bottleneck.md",
    "docs/changing-links.md",
    "docs/cluster.md",
    "docs/comparing.md",
    "docs/ecn.md",
    "docs/gallery.md",
    "docs/incast.md",
    "docs/lessons/a-fair-share.md",
    "docs/lessons/everybody-doubles.md",
    "docs/lessons/far-away.md",
    "docs/lessons/figure-for-tomorrow.md",
    "docs/lessons/five-hundred-runs.md",
    "docs/lessons/loss-at-the-edge.md",
    "docs/lessons/the-tie-that-takes-all.md",
    "docs/lessons/waiting-for-a-clock.md",
    "docs/lessons/why-epd-helps.md",
    "docs/looking-inside.md",
    "docs/memory-policies.md",
    "docs/papers.md",
    "docs/python-policies.md",
    "docs/real-stacks.md",
    "docs/reports.md",
    "docs/requests.md",
    "docs/scenarios.md",
    "docs/shared-memory.md",
    "docs/sweeps.md",
    "docs/topologies.md",
    "docs/tuning.md",
    "docs/tutorial.md",
    "docs/vetting.md",
    "docs/your-own-policy.md",
}


#: Pages whose Python code takes a long time.
LONG_PYTHON = {"docs/incast.md", "docs/reports.md"}


def code(page: Path, *languages: str) -> list[Block]:
    """Returns the blocks of a page in these languages, without blocks that show a file."""
    return [b for b in blocks(page) if b.language in languages and not b.comment.startswith("file:")]


def commands(page: Path) -> list[tuple[int, str]]:
    """Returns the commands of a page with their lines. A command continues on the next line after a backslash."""
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


#: Folders that examples read.
READ = ("scenarios", "plans", "papers", "studies")


@pytest.fixture
def linked(tmp_path, monkeypatch):
    """An empty folder with links to the folders that examples read. Copies would take longer than most examples."""
    for name in READ:
        (tmp_path / name).symlink_to(ROOT / name, target_is_directory=True)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A reader's folder with the scenarios, plans, papers and studies, and `celltrain` on the path."""
    for name in READ:
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=named(page), marks=[pytest.mark.nightly] if named(page) in LONG_PYTHON else [])
        for page in PAGES
        if code(page, "python")
    ],
)
def test_the_python_code_on_every_page_runs(page, checkout):
    names = {"__name__": "__main__"}
    for block in code(page, "python"):
        # Keep the page's line numbers, so that tracebacks point to the page.
        try:
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
        except ModuleNotFoundError as error:
            if NIGHTLY or error.name not in PACKAGES:
                raise
            pytest.skip(f"{error.name} is not installed")


def outputs(page: Path) -> dict[int, Block]:
    """Returns the outputs that a page shows, keyed by the line of their command."""
    found, line = {}, 0
    for block in blocks(page):
        if block.comment == "output":
            found[line] = block
        elif block.language == "console":
            end = block.line + len(block.text.splitlines())
            line = max((line for line, _ in commands(page) if line < end), default=0)
    return found


def matches(shown: str, printed: str) -> bool:
    """Returns whether a page shows what was printed, ignoring the width of spaces, empty lines and rules."""
    expected = re.escape("\n".join(lines(shown)) + "\n").replace(r"\ ", " ")
    # `...` on its own line matches any number of lines; at the end of a line it matches the rest of that line.
    expected = re.sub(r"(?m)^\\\.\\\.\\\.\\\n", r"(?:.*\\n)*?", expected)
    expected = re.sub(r"\\\.\\\.\\\.(?=\\\n)", ".*", expected)
    return re.fullmatch(expected, "".join(f"{line}\n" for line in lines(printed))) is not None


def lines(text: str) -> list[str]:
    """Returns the non-empty lines of a text."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip(" ─")]


def test_command_output_shown_on_a_page_matches_the_actual_output_except_for_omitted_lines():
    printed = "a  1\n\nb  2 of 3\n ───\nc  3\n"
    for shown in ("a 1\nb 2 of 3\nc 3\n", "...\nc 3\n", "a 1\n...\n", "a 1\nb 2 ...\n c  3\n", "...\nb 2 of 3\n...\n"):
        assert matches(shown, printed), shown
    for shown in (
        "a 1\nc 3\n",
        "a 1\nb 2 of 3\n",
        "...\nc 4\n",
        "a 1\nb 3 ...\nc 3\n",
        "a .\n...\n",
        "b 2 of 3\n...\n",
    ):
        assert not matches(shown, printed), shown


def calls(text: str) -> list[list[str]]:
    """Returns the arguments of each call of celltrain in a command, without redirections and pipes."""
    found = []
    for line in re.sub(r"\\\n *", "", text).splitlines():
        if line.startswith("celltrain "):
            words = shlex.shlex(line, posix=True, punctuation_chars=True)
            words.whitespace_split = True
            found.append(list(itertools.takewhile(lambda word: not set(word) <= set("|&<>;"), words))[1:])
    return found


#: The base class from click, for which typer has no public name.
UsageError = typer.BadParameter.__base__


def is_accepted(command, name: str, arguments: list[str], parent: typer.Context | None = None) -> None:
    """Parses arguments like the command line. A wrong option is a `UsageError`, an unknown command a `KeyError`."""
    if isinstance(command, TyperGroup):
        group = typer.Context(command, parent, name)
        is_accepted(command.commands[arguments[0]], arguments[0], arguments[1:], group)
    else:
        command.make_context(name, list(arguments), parent)


@pytest.mark.parametrize("page", [page for page in PAGES if any(calls(text) for _, text in commands(page))], ids=named)
def test_the_command_line_parser_accepts_every_command_on_a_page(page):
    for _, text in commands(page):
        for arguments in calls(text):
            is_accepted(COMMAND_LINE, "celltrain", arguments)


def test_the_check_of_documentation_pages_reports_a_command_with_an_unknown_option():
    is_accepted(COMMAND_LINE, "celltrain", ["run", "lan-epd", "--seed", "2"])
    for arguments in (["run", "lan-epd", "--sede", "2"], ["run", "lan-epd", "--step"], ["store", "verify"]):
        with pytest.raises(UsageError):
            is_accepted(COMMAND_LINE, "celltrain", arguments)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=named(page), marks=[pytest.mark.nightly] if named(page) in LONG else [])
        for page in PAGES
        if commands(page)
    ],
)
def test_the_commands_on_every_page_run_without_error(page, checkout):
    shown, left = outputs(page), {}
    # Print tables in the width used on the pages.
    wide = {**os.environ, "COLUMNS": "120"}
    for line, command in commands(page):
        program = command.split()[0]
        if program in OTHERS and shutil.which(program) is None:
            left[line] = program
            shown.pop(line, None)
            continue
        # Write to files and use a new session, so that background processes of a failing command keep no pipe open and
        # end together with it.
        with (checkout / "printed.txt").open("w+") as printed, (checkout / "told.txt").open("w+") as told:
            shell = subprocess.Popen(
                ["bash", "-e", "-c", command], stdout=printed, stderr=told, env=wide, start_new_session=True
            )
            try:
                code = shell.wait(timeout=300)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(shell.pid, signal.SIGKILL)
            printed.seek(0)
            told.seek(0)
            output = printed.read()
            assert code == 0, f"{page}:{line}: {command}\n{output}{told.read()}"
        if block := shown.pop(line, None):
            assert matches(block.text, output), f"{block} is not what is printed:\n{output}"
    assert not shown, "an output block has no command above it"
    if left:
        names = " and ".join(sorted(set(left.values())))
        pytest.skip(
            f"not installed (Debian's package): {names}. So these lines of {named(page)} did not run: {[*left]}"
        )


def source(name: str) -> str:
    """Returns the source text of a module."""
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).read_text(encoding="utf-8")


#: Modules with examples.
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(celltrain.__path__, "celltrain.")
    if not module.name.endswith(("_core", "__main__")) and ">>> " in source(module.name)
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.nightly] if name == "celltrain.inspect.why" else [])
        for name in ("celltrain", *MODULES)
    ],
)
@pytest.mark.usefixtures("linked")
def test_the_examples_in_docstrings_run(name):
    if name == "celltrain.ensemble.tuning":
        import_or_skip("optuna")
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0
