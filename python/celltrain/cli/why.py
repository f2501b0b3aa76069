"""`celltrain why` explains when a connection was in trouble, and `celltrain plot` draws the events that a run wrote."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celltrain.cli import options, shell
from celltrain.cli.options import option
from celltrain.errors import InputError
from celltrain.running.events import read_events
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.inspect.why import Episodes

#: Episodes listed without `--all`.
MOST_EPISODES = 10


@shell.command
def why(
    output: shell.Table,
    file: options.ScenarioFile,
    flow: Annotated[str | None, {"autocompletion": options.complete_flows}] = None,
    at: str | None = None,
    settings: options.Settings = None,
    seed: options.Seed = None,
    everything: Annotated[bool, {"names": ["--all"]}] = False,
) -> None:
    """Explain what happened to a flow at a given time: losses, their cause, how the sender reacted, and the cost.

    Scenario:
        flow (NAME): The connection. [default: the one in the longest trouble]
        at (TIME): The time to look at, to the precision written: 2.4s means 2.35 to 2.45 s. Without it, list the times to
            ask about.

    Output:
        everything: Print all sentences, or list all times.

    Examples:
        celltrain why lan-epd
        celltrain why lan-epd --flow tcp3 --at 2.4s
        celltrain why lan-epd --seed 18 --set tcp=reno --all
    """
    from celltrain.inspect import why as reasons

    if output.csv is not None and at is not None:
        raise InputError.saying("--csv writes the list of times: leave out --at.", key="--csv")
    with shell.waiting(f"looking into {shown(file)}") as tell:
        scenario = shell.scenario(file, settings)
        if at is None:
            found = reasons.episodes(scenario, flow=flow, seed=seed, progress=tell)
        else:
            answer = reasons.why(scenario, flow=flow, at=at, seed=seed, progress=tell)
    if at is not None:
        output.tell(answer.to_dict(), answer.text(None if everything else reasons.MOST))
        return
    facts = found.to_dict()
    output.show(facts, [], lambda: facts["episodes"])
    if output.form == "text":
        changes = [word for setting in settings or [] for word in ("--set", setting)]
        changes += [] if seed is None else ["--seed", str(seed)]
        _list(found, str(file), changes, everything=everything)


def _list(found: Episodes, file: str, changes: list[str], *, everything: bool) -> None:
    """Prints the episodes of a connection, and the command to explain the first."""
    from celltrain.inspect.why import HEADS

    flow, of = shown(found.flow), f"{shown(found.scenario or file)}, seed {found.seed}"
    if found.warning:
        shell.say(found.warning)
    if not found:
        shell.say(f"{flow} neither lost nor retransmitted anything ({of}).")
        return
    shell.say(f"Times at which {flow} lost or retransmitted data, longest pause in sending first ({of}):")
    grid = shell.grid(*HEADS, rows=found.rows()[: None if everything else MOST_EPISODES])
    shell.console().print(grid)
    if len(found) > len(grid.rows):
        shell.say(f"{len(found) - len(grid.rows)} shorter silences are not shown; --all lists them.")
    middle = found[0].at_s + found[0].silent_s / 2
    command = ["celltrain", "why", file, *changes, "--flow", found.flow, "--at", f"{middle:.3f}s"]
    shell.say(f"To explain the first one: {shlex.join(command)}")


Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder written by celltrain run FILE --events DIR.")]
Out = Annotated[
    Path | None, option("FILE", "Picture to draw: .svg, .png or .pdf. By default in DIR.", "--plot", "--out")
]
Window = Annotated[
    str | None, option("FROM:TO", "Draw only this period, such as 1.2s:1.3s. By default, the whole run.")
]


@shell.command
def sequence(
    output: shell.Answer, folder: Folder, flow: str | None = None, out: Out = None, window: Window = None
) -> None:
    """Draw time and sequence of a connection, as tcptrace does: segments, ACKs, retransmissions and losses.

    Options:
        flow (NAME): The connection. [default: the one that retransmitted most]

    Examples:
        celltrain plot sequence out/events
        celltrain plot sequence out/events --flow tcp3 --out tcp3.svg
        celltrain plot sequence out/events --flow tcp3 --window 1.2s:1.3s
    """
    _draw("sequence", output, folder, out, flow=flow, window=window)


@shell.command
def anatomy(
    output: shell.Answer, folder: Folder, port: str | None = None, out: Out = None, window: Window = None
) -> None:
    """Draw the queue of a port over time, by VC, with refused frames and lost cells.

    Options:
        port (NAME): The port. By default the only one whose cells were kept.

    Examples:
        celltrain plot anatomy out/events
        celltrain plot anatomy out/events --window 300ms:310ms
        celltrain plot anatomy out/events --port bottleneck --out buffer.pdf
    """
    _draw("anatomy", output, folder, out, port=port, window=window)


@shell.command
def ladder(
    output: shell.Answer,
    folder: Folder,
    flow: str | None = None,
    frame: Annotated[int | None, {"parser": options.whole(0)}] = None,
    out: Out = None,
) -> None:
    """Draw the cells of one frame on their way through the network.

    Options:
        flow (NAME): The connection, or a VC such as tcp3-acks. [default: the VC that lost most]
        frame (N): Number of the frame within the VC. [default: the first that lost only some of its cells]

    Examples:
        celltrain plot ladder out/events
        celltrain plot ladder out/events --flow tcp3 --frame 108
        celltrain plot ladder out/events --flow tcp3-acks --out acks.png
    """
    _draw("ladder", output, folder, out, flow=flow, frame=frame)


def _draw(kind: str, output: shell.Output, folder: Path, out: Path | None, **options: Any) -> None:

    diagrams = read_events(folder).plot
    texts = []
    if "flow" in options and options["flow"] is None:
        worst = options["flow"] = diagrams.worst(kind)
        did = "lost" if kind == "ladder" else "retransmitted"
        texts.append(f"{shown(worst)} {did} the most, so this flow is drawn; to draw another flow, add --flow NAME")
    written = diagrams.write(kind, out or folder / f"{kind}.svg", **options)
    answer = {"written": [shown(written)], "diagram": kind, "notes": diagrams.notes, **options}
    output.tell(answer, *texts, *diagrams.notes, f"wrote {shown(written)}")


@shell.command
def compare(
    output: shell.Answer,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder written by celltrain compare ... --out DIR.")],
    measures: Annotated[
        list[str] | None, option("NAMES", "Measures to draw, separated by commas. By default, all measures.")
    ] = None,
    labels: options.Labels = None,
    names: options.Names = None,
    width: options.Width = "page",
    style: options.Style = None,
    out: Out = None,
) -> None:
    """Draw the figure of a comparison again without new runs, in another width or with other labels.

    Examples:
        celltrain plot compare out/cmp --width column --out column.pdf
        celltrain plot compare out/cmp --labels 'efficiency=Link use' --names 'Tail drop,EPD'
    """
    from celltrain.ensemble.comparing.pictured import Pictured

    with options.naming():
        pictured = Pictured.read(folder, options.labelled(labels), options.names_of(names))
    target = out or folder / "compare.svg"
    pictured.plot(target, measures=options.listed(measures), width=width, style=style)
    output.tell({"written": [shown(target)], "diagram": "compare"}, f"wrote {shown(target)}")


COMMANDS = {"why": why, "plot": {"compare": compare, "sequence": sequence, "anatomy": anatomy, "ladder": ladder}}
