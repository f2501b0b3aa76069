"""The command line. What a command prints with `--json` is a promise; the tables for people may change.

Exit codes: 0 done; 1 it ran, but the answer is no; 2 bad input; 3 a fault of celltrain; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from celltrain.cli import shell

if TYPE_CHECKING:
    app: typer.Typer

#: Every command and the module that has it, in the order in which the help lists them.
COMMANDS = {
    "new": "new",
    "run": "run",
    "compare": "compare",
    "vet": "vet",
    "why": "why",
    "plot": "plot",
    "reproduce": "reproduce",
    "study": "reproduce",
    "sweep": "sweep",
    "tune": "tune",
    "store": "store",
    "report": "report",
    "check": "check",
    "import": "import_",
    "list": "describe",
    "explain": "describe",
    "schema": "describe",
    "bench": "bench",
    "lab": "lab",
    "doctor": "doctor",
}


def program(commands: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands and those of their modules: each costs time to import and to describe."""
    made = typer.Typer(
        name="celltrain",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="Start with: celltrain list scenarios; celltrain run lan-epd; celltrain compare lan-tail-drop lan-epd",
    )
    for module in dict.fromkeys(COMMANDS[command] for command in commands):
        import_module(f"celltrain.cli.{module}").register(made)
    made.callback()(celltrain)
    return made


def __getattr__(name: str) -> object:
    if name == "app":
        globals()["app"] = program()
        return globals()["app"]
    raise AttributeError(f"module 'celltrain.cli' has no attribute {name!r}")


def _version(wanted: bool) -> None:
    if wanted:
        from celltrain import _core

        typer.echo(f"celltrain {_core.build()['version']}")
        raise typer.Exit


def celltrain(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """A cell-accurate laboratory for TCP over switched networks."""


def main() -> None:
    """Runs the command line."""
    try:
        command = sys.argv[1:2]
        program(command if set(command) & COMMANDS.keys() else COMMANDS)()
    except KeyboardInterrupt:
        # Before a command began or after it ended; commands answer for themselves.
        code: object = shell.INTERRUPTED
    except SystemExit as end:
        code = end.code
    if code == shell.INTERRUPTED:
        # Whoever pressed Ctrl-C need not wait for the interpreter to tidy up.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(shell.INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)
