"""The command line. The output of `--json` is stable; the printed tables may change.

Exit codes: 0 success; 1 the command ran, but the answer is no; 2 bad input; 3 a bug in celltrain; 130 interrupted.
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

#: Commands in the order in which the help lists them.
COMMANDS = (
    *("new", "run", "emulate", "compare", "vet", "why", "plot", "reproduce", "study", "sweep", "tune"),
    *("store", "report"),
    *("check", "import", "mmu", "list", "explain", "schema", "cite", "bench", "lab", "doctor"),
)
#: Modules of commands that have no module with their own name.
MODULES = {
    **{"check": "new", "import": "new", "list": "explain", "schema": "explain", "plot": "why", "report": "store"},
    **{"study": "reproduce", "tune": "sweep", "vet": "compare"},
    **dict.fromkeys(("bench", "doctor", "lab"), "installation"),
}


def program(commands: Iterable[str] = COMMANDS) -> typer.Typer:
    """Returns the command line with only these commands, as each takes time to import and to describe."""
    program = _typer(
        name="celltrain",
        epilog="Start with: celltrain list scenarios; celltrain run lan-epd; celltrain compare lan-tail-drop lan-epd",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for command in commands:
        module = import_module(f"celltrain.cli.{MODULES.get(command, command)}")
        function = module.COMMANDS[command]
        if not isinstance(function, dict):
            program.command(command, **function.registration)(function)
            continue
        group = _typer(help=module.HELP)
        for name, inner in function.items():
            group.command(name, **inner.registration)(inner)
        program.add_typer(group, name=command)
    program.callback()(celltrain)
    return program


def _typer(**options: object) -> typer.Typer:
    return typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, **options)  # type: ignore[arg-type]


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
        program(command if set(command) & {*COMMANDS} else COMMANDS)()
    except KeyboardInterrupt:
        # The interrupt came before a command began or after it ended; commands handle their own interrupts.
        code: object = shell.INTERRUPTED
    except SystemExit as end:
        code = end.code
    if code == shell.INTERRUPTED:
        # Exit at once: after Ctrl-C the user should not have to wait for the interpreter's cleanup.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(shell.INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)
