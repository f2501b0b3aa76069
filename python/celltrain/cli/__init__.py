"""The command line. The output of `--json` is stable; the printed tables may change.

Exit codes: 0 success; 1 the command ran, but the answer is no; 2 bad input; 3 a bug in celltrain; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from celltrain.stopping import INTERRUPTED

if TYPE_CHECKING:
    app: typer.Typer

#: The module and the summary of each command, in the order in which the help lists them.
COMMANDS = {
    command: (module, summary)
    for line in (Path(__file__).parent / "commands.txt").read_text(encoding="utf-8").splitlines()
    for command, module, summary in [line.split(maxsplit=2)]
}
#: Commands that contain commands.
GROUPS = ("plot", "store", "mmu")


def program(commands: Iterable[str] = tuple(COMMANDS)) -> typer.Typer:
    """Returns the command line with only these commands, because importing and describing each command takes time."""
    program = _program(_Group)
    for command in commands:
        module = import_module(f"celltrain.cli.{COMMANDS[command][0]}")
        function = module.COMMANDS[command]
        if not isinstance(function, dict):
            program.command(command, **function.registration)(function)
            continue
        group = _typer(help=COMMANDS[command][1])
        for name, inner in function.items():
            group.command(name, **inner.registration)(inner)
        program.add_typer(group, name=command)
    return program


def outline() -> typer.Typer:
    """Returns the command line with the names and summaries of all commands. It imports a command when it is called."""
    program = _program(_Outline)
    for command, (_, summary) in COMMANDS.items():
        if command in GROUPS:
            program.add_typer(_typer(help=summary), name=command)
        else:
            program.command(command, help=summary)(celltrain)
    return program


def _program(group: type[TyperGroup]) -> typer.Typer:
    program = _typer(
        name="celltrain",
        cls=group,
        epilog="Start with: celltrain list scenarios; celltrain run lan-epd; celltrain compare lan-tail-drop lan-epd",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    program.callback()(celltrain)
    return program


#: Base class of the errors of the command line's parser.
_UsageError: Any = typer.BadParameter.__mro__[1]


class _Group(TyperGroup):
    """The program. It reports errors in options in the same way as faults in files."""

    def main(self, args: Any = None, *, standalone_mode: bool = True, **more: Any) -> Any:  # type: ignore[override]
        """Runs the program."""
        if not standalone_mode:
            return super().main(args, standalone_mode=False, **more)
        given = sys.argv[1:] if args is None else args
        try:
            code = super().main(args, standalone_mode=False, **more)
        except _UsageError as error:
            from celltrain.cli import shell

            if type(error).__name__ == "NoArgsIsHelpError":
                error.show()
            else:
                shell.report([shell.fault_of_usage(error)], as_json="--json" in given)
            sys.exit(shell.BAD_INPUT)
        except typer.Abort:
            sys.exit(INTERRUPTED)
        sys.exit(code if isinstance(code, int) else 0)


class _Outline(_Group):
    """The program without its commands. It imports the command that is called, or that the shell completes."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Returns the command that is called."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, typer.main.get_command(program([name])).commands[name], rest  # type: ignore[attr-defined,list-item]


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
        (program(command) if set(command) & {*COMMANDS} else outline())()
    except KeyboardInterrupt:
        # The interrupt came before a command began or after it ended. During a command, the command handles interrupts.
        code: object = INTERRUPTED
    except SystemExit as end:
        code = end.code
    if code == INTERRUPTED:
        # Exit at once: after Ctrl-C the user should not have to wait for the interpreter's cleanup.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)
