"""`celltrain why`: lists when a connection was in trouble, and explains one of these times."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

from celltrain.cli import completing, options, progress, shell
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
    flow: Annotated[str | None, {"autocompletion": completing.flows}] = None,
    at: str | None = None,
    settings: options.Settings = None,
    seed: options.Seed = None,
    everything: Annotated[bool, {"names": ["--all"]}] = False,
    csv: options.Csv = None,
    as_json: options.Json = False,
) -> None:
    """Explain what happened to a flow at a given time: losses, their cause, how the sender reacted, and the cost.

    Scenario:
        flow (NAME): The connection. [default: the one in the longest trouble]
        at (TIME): The time to look at, to the precision written: 2.4s means 2.35 to 2.45 s. Without it, list the times to
            ask about.

    Output:
        everything: Print all sentences, or list all times.
    """
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
        output.tell(answer.to_dict(), answer.text(None if everything else reasons.MOST))
        return
    facts = found.to_dict()
    output.show(answer=lambda: facts, rows=lambda: facts["episodes"], blocks=lambda: [])
    if output.form == "text":
        changes = [word for setting in settings or [] for word in ("--set", setting)]
        changes += [] if seed is None else ["--seed", str(seed)]
        _list(found, str(file), changes, everything=everything)
    output.wrote()


def _list(found: Episodes, file: str, changes: list[str], *, everything: bool) -> None:
    """Prints the episodes of a connection, and the command to explain the first."""
    from celltrain.inspect.why import HEADS

    flow, of = shown(found.flow), f"{shown(found.scenario or file)}, seed {found.seed}"
    if found.warning:
        shell.say(found.warning)
    if not found:
        shell.say(f"{flow} lost nothing and retransmitted nothing ({of}).")
        return
    shell.say(f"Times at which {flow} was in trouble, longest silence first ({of}):")
    grid = shell.grid(*HEADS)
    for row in found.rows()[: None if everything else MOST_EPISODES]:
        grid.add_row(*row)
    shell.console().print(grid)
    if len(found) > len(grid.rows):
        shell.say(f"{len(found) - len(grid.rows)} shorter ones are not shown; --all lists them.")
    middle = found[0].at_s + found[0].silent_s / 2
    command = ["celltrain", "why", file, *changes, "--flow", found.flow, "--at", f"{middle:.3f}s"]
    shell.say(f"To explain the first: {shlex.join(command)}")


COMMANDS = {"why": why}
