"""`celltrain why`: when a connection was in trouble, and what happened at one of these times."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from celltrain.cli import completing, shell

if TYPE_CHECKING:
    from celltrain.inspect.why import Episodes

#: Episodes that are listed without `--all`.
MOST_EPISODES = 10


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("why", epilog="For example: celltrain why lan-epd; celltrain why lan-epd --flow tcp3 --at 2.4s")(why)


@shell.command
def why(
    file: shell.ScenarioFile,
    flow: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The connection. [default: the one in the longest trouble]",
            autocompletion=completing.flows,
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="The time to look at, to the precision written: 2.4s means 2.35 to 2.45 s. Without it, list the times to ask about.",
        ),
    ] = None,
    settings: shell.Settings = None,
    seed: Annotated[
        int | None,
        typer.Option(parser=shell.whole(0, (1 << 64) - 1), metavar="N", help="Seed instead of the scenario's own."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Print all sentences, or list all times.")] = False,
    as_json: shell.Json = False,
) -> None:
    """Explain what happened to a flow at a given time: losses, their cause, how the sender reacted, and the cost."""
    from celltrain.inspect.why import MOST, episodes
    from celltrain.inspect.why import why as ask
    from celltrain.text import shown

    with shell.waiting(f"looking into {shown(file)}") as progress:
        scenario = shell.scenario(file, settings)
        if at is None:
            found = episodes(scenario, flow=flow, seed=seed, progress=progress)
        else:
            answer = ask(scenario, flow=flow, at=at, seed=seed, progress=progress)
    if as_json:
        shell.answer(found.to_dict() if at is None else answer.to_dict())
    elif at is None:
        _list(found, str(file), seed, settings or [], everything=everything)
    else:
        shell.say(answer.text(None if everything else MOST))


def _list(found: Episodes, file: str, seed: int | None, settings: list[str], *, everything: bool) -> None:
    """Prints the episodes of a connection, and the command that explains the first."""
    from celltrain.inspect.why import HEADS
    from celltrain.text import shown

    facts = found.to_dict()
    flow, of = shown(found.flow), f"{shown(facts['scenario'] or file)}, seed {facts['seed']}"
    if found.warning:
        shell.say(found.warning)
    if not found:
        shell.say(f"{flow} lost nothing and retransmitted nothing ({of}).")
        return
    shell.say(f"Times at which {flow} was in trouble, longest silence first ({of}):")
    grid = shell.grid(*HEADS)
    rows = found.rows()
    kept = rows if everything else rows[:MOST_EPISODES]
    for row in kept:
        grid.add_row(*row)
    shell.console().print(grid)
    if len(rows) > len(kept):
        shell.say(f"{len(rows) - len(kept)} shorter ones are not shown; --all lists them.")
    first = found[0]
    middle = first.at_s + first.silent_s / 2
    asked = [word for setting in settings for word in ("--set", setting)]
    asked += [] if seed is None else ["--seed", str(seed)]
    command = ["celltrain", "why", file, *asked, "--flow", found.flow, "--at", f"{middle:.3f}s"]
    shell.say(f"To explain the first: {shlex.join(command)}")
