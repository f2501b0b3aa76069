"""`celltrain why`: what happened to a flow around an instant, in sentences."""

from __future__ import annotations

from typing import Annotated

import typer

from celltrain.cli import shell


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("why", epilog="For example: celltrain why lan-epd --flow tcp3 --at 2.4s")(why)


@shell.command
def why(
    file: shell.ScenarioFile,
    flow: Annotated[str, typer.Option(metavar="NAME", help="The connection.")],
    at: Annotated[
        str, typer.Option(metavar="TIME", help="The instant, as exact as it is written: 2.4s is from 2.35 s to 2.45 s.")
    ],
    seed: Annotated[
        int | None, typer.Option(min=0, max=(1 << 64) - 1, help="Seed instead of the scenario's own.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Print all sentences, however many they are.")] = False,
    as_json: shell.Json = False,
) -> None:
    """Say what happened to a flow around an instant: what was lost and why, how its sender noticed, what it cost."""
    from celltrain.reasons import why as ask
    from celltrain.reasons.run import MOST
    from celltrain.text import shown

    with shell.waiting(f"looking into {shown(file)}") as progress:
        answer = ask(file, flow=flow, at=at, seed=seed, progress=progress)
    if as_json:
        shell.answer(answer.to_dict())
    else:
        shell.say(answer.text(None if everything else MOST))
