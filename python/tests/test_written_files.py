"""Files and folders that a command writes at its end are checked before its runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from typer.main import get_command

from celltrain.cli import program, shell

#: Arguments of each command up to an option that names an output file. Stores and event folders need not exist.
SHORT = ("--set", "duration=5ms")
COMMANDS: dict[str, tuple[tuple[object, ...], dict[str, str]]] = {
    "compare": (("lan-epd", "--seeds", 1), {"--plot": "a.svg", "--csv": "a.csv"}),
    "vet": (("epd", "--scenarios", "lan-5", "--seeds", 1), {"--html": "a.html", "--csv": "a.csv"}),
    "run": (("lan-epd", *SHORT), {"--plot": "a.svg", "--csv": "a.csv", "--pcap": "a.pcapng"}),
    "check": (("lan-epd",), {"--plot": "a.svg"}),
    "sweep": (("selective-drop-rz", "--store", "store"), {"--csv": "a.csv"}),
    "tune": (("tune-selective-drop", "--store", "store"), {"--csv": "a.csv"}),
    "report": (("store",), {"--csv": "a.csv"}),
    "reproduce": (("af-96-1269",), {"--csv": "a.csv"}),
    "study": (("different-rtts",), {"--csv": "a.csv"}),
    "store export": (("store", "--csv"), {"--out": "a.csv"}),
}
CASES = [(name, first, option, file) for name, (first, options) in COMMANDS.items() for option, file in options.items()]


@pytest.fixture
def no_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*_: Any, **__: Any) -> Any:
        raise AssertionError("the command started a run before it checked its output file")

    monkeypatch.setattr(shell, "waiting", run)
    monkeypatch.setattr(shell, "counting", run)


@pytest.mark.parametrize(("name", "first", "option", "file"), CASES)
def test_an_output_file_in_a_folder_that_does_not_exist_is_refused_before_the_run(
    celltrain: Any, no_run: None, name: str, first: tuple[object, ...], option: str, file: str
) -> None:
    told = celltrain(*name.split(), *first, option, f"nodir/x/{file}")
    assert (told.code, told.out) == (2, ""), told
    assert told.err == f"nodir/x/{file}: cannot be written (there is no such folder)\n"
    Path(file).mkdir()
    told = celltrain(*name.split(), *first, option, file)
    assert (told.code, told.out, "cannot be written (it is a folder)" in told.err) == (2, "", True), told


@pytest.mark.parametrize("name", ["compare", "run", "run --seeds 2", "reproduce", "study"])
def test_an_output_folder_that_cannot_be_created_is_refused_before_the_run(
    celltrain: Any, no_run: None, name: str
) -> None:
    Path("file").touch()
    command, *more = name.split()
    told = celltrain(command, COMMANDS[command][0][0], *more, "--out", "file/out")
    assert (told.code, told.out) == (2, ""), told
    assert "cannot be written (it is a file)" in told.err


@pytest.mark.slow
@pytest.mark.parametrize("first", [("run", "lan-epd", *SHORT), ("compare", "lan-epd", *SHORT, "--seeds", 1)])
def test_a_figure_can_be_written_into_the_output_folder_of_the_same_run(
    celltrain: Any, tmp_path: Path, first: tuple[object, ...]
) -> None:
    told = celltrain(*first, "--out", tmp_path / "a/b", "--plot", tmp_path / "a/b/c.svg")
    assert told.code == 0, told.err
    assert (tmp_path / "a/b/c.svg").is_file()


def test_a_newly_created_output_folder_is_removed_if_all_runs_fail(celltrain: Any, no_run: None) -> None:
    told = celltrain("compare", "lan-epd", "--seeds", 1, "--vary", "duration=nothing", "--out", "a/b")
    assert told.code != 0
    assert not Path("a").exists()


def commands(group: click.Command, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yields all commands with their names."""
    for name, one in getattr(group, "commands", {}).items():
        yield from commands(one, f"{before}{name} ") if hasattr(one, "commands") else [(f"{before}{name}", one)]


def test_every_option_that_names_a_figure_file_has_a_test() -> None:
    """One place checks `--csv` for all commands."""
    known = {(name, option) for name, _, option, _ in CASES}
    for name, command in commands(get_command(program())):
        for parameter in command.params:
            if getattr(parameter, "metavar", None) == "PICTURE":
                assert (name, parameter.opts[-1]) in known, f"add {name} {parameter.opts[-1]} to COMMANDS"
