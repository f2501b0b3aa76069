"""The command line. What a command prints with `--json` is a promise; the tables for people may change.

Exit codes: 0 done; 1 it ran, but the answer is no; 2 bad input; 3 a fault of celltrain; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from celltrain.cli import bench, check, describe, doctor, import_, report, reproduce, run, shell, store, sweep, tune

app = typer.Typer(
    name="celltrain",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: celltrain list scenarios; celltrain run scenarios/lan-epd.toml",
)
for command in (run, reproduce, sweep, tune, store, report, check, import_, describe, bench, doctor):
    command.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        from celltrain import _core

        typer.echo(f"celltrain {_core.build()['version']}")
        raise typer.Exit


@app.callback()
def celltrain(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """A cell-accurate laboratory for TCP over switched networks."""


def main() -> None:
    """Runs the command line; the entry point of the `celltrain` command."""
    try:
        app()
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
