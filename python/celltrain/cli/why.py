"""`celltrain why`: lists when a connection was in trouble, and explains one of these times."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

from celltrain.cli import completing, options, progress, shell
from celltrain.cli.options import OUTPUT, SCENARIO, flag, option
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.inspect.why import Episodes

#: Episodes listed without `--all`.
MOST_EPISODES = 10


@shell.command(
    "celltrain why lan-epd",
    "celltrain why lan-epd --flow tcp3 --at 2.4s",
    "celltrain why lan-epd --seed 18 --set tcp=reno --all",
)
def why(
    file: options.ScenarioFile,
    flow: Annotated[
        str | None,
        option(
            "NAME",
            "The connection. [default: the one in the longest trouble]",
            panel=SCENARIO,
            autocompletion=completing.flows,
        ),
    ] = None,
    at: Annotated[
        str | None,
        option(
            "TIME",
            "The time to look at, to the precision written: 2.4s means 2.35 to 2.45 s. "
            "Without it, list the times to ask about.",
            panel=SCENARIO,
        ),
    ] = None,
    settings: options.Settings = None,
    seed: options.Seed = None,
    everything: Annotated[bool, flag("--all", "Print all sentences, or list all times.", OUTPUT)] = False,
    csv: options.Csv = None,
    as_json: options.Json = False,
) -> None:
    """Explain what happened to a flow at a given time: losses, their cause, how the sender reacted, and the cost."""
    from celltrain.errors import Fault, InputError
    from celltrain.inspect import why as reasons

    output = shell.Output.of(as_json=as_json, csv=csv)
    if csv is not None and at is not None:
        raise InputError([Fault.saying("--csv writes the list of times: leave out --at.", key="--csv")])
    with progress.waiting(f"looking into {shown(file)}") as tell:
        scenario = shell.scenario(file, settings)
        if at is None:
            found = reasons.episodes(scenario, flow=flow, seed=seed, progress=tell)
        else:
            answer = reasons.why(scenario, flow=flow, at=at, seed=seed, progress=tell)
    if at is not None:
        if as_json:
            shell.answer(answer.to_dict())
        else:
            shell.say(answer.text(None if everything else reasons.MOST))
        return
    facts = found.to_dict()
    output.show(answer=lambda: facts, rows=lambda: facts["episodes"], blocks=lambda: [])
    if output.form == "text":
        _list(found, str(file), seed, settings or [], everything=everything)
    output.wrote()


def _list(found: Episodes, file: str, seed: int | None, settings: list[str], *, everything: bool) -> None:
    """Prints the episodes of a connection, and the command that explains the first."""
    from celltrain.inspect.why import HEADS

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


COMMANDS = {"why": why}
