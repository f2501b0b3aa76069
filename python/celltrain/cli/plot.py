"""`celltrain plot`: draws the events that a run wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from celltrain.cli import options, shell
from celltrain.cli.options import count, option
from celltrain.text import shown

HELP = "Draw the events of a run: a connection, a buffer, a frame."

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The events, of celltrain run FILE --events DIR.")]
Out = Annotated[
    Path | None, option("FILE", "Picture to draw: .svg, .png or .pdf. By default in DIR.", "--plot", "--out")
]
Window = Annotated[str | None, option("FROM:TO", "Only between these times, such as 1.2s:1.3s. All by default.")]


@shell.command(
    "celltrain plot sequence out/events",
    "celltrain plot sequence out/events --flow tcp3 --out tcp3.svg",
    "celltrain plot sequence out/events --flow tcp3 --window 1.2s:1.3s",
)
def sequence(
    folder: Folder,
    flow: Annotated[str | None, option("NAME", "The connection.", default="the one that retransmitted most")] = None,
    out: Out = None,
    window: Window = None,
    as_json: options.Json = False,
) -> None:
    """Draw time and sequence of a connection, as tcptrace does: segments, ACKs, retransmissions and losses."""
    _draw("sequence", folder, out, as_json, flow=flow, window=window)


@shell.command(
    "celltrain plot anatomy out/events",
    "celltrain plot anatomy out/events --window 300ms:310ms",
    "celltrain plot anatomy out/events --port bottleneck --out buffer.pdf",
)
def anatomy(
    folder: Folder,
    port: Annotated[str | None, option("NAME", "The port. By default the only one whose cells were kept.")] = None,
    out: Out = None,
    window: Window = None,
    as_json: options.Json = False,
) -> None:
    """Draw the queue of a port over time, by VC, with refused frames and lost cells."""
    _draw("anatomy", folder, out, as_json, port=port, window=window)


@shell.command(
    "celltrain plot ladder out/events",
    "celltrain plot ladder out/events --flow tcp3 --frame 108",
    "celltrain plot ladder out/events --flow tcp3-acks --out acks.png",
)
def ladder(
    folder: Folder,
    flow: Annotated[
        str | None, option("NAME", "The connection, or a VC such as tcp3-acks.", default="the VC that lost most")
    ] = None,
    frame: Annotated[
        int | None,
        count("Number of the frame within the VC.", least=0, default="the first that lost only some of its cells"),
    ] = None,
    out: Out = None,
    as_json: options.Json = False,
) -> None:
    """Draw the cells of one frame on their way through the network."""
    _draw("ladder", folder, out, as_json, flow=flow, frame=frame)


def _draw(kind: str, folder: Path, out: Path | None, as_json: bool, **options: Any) -> None:
    from celltrain.running.events import read_events

    target = folder / f"{kind}.svg" if out is None else out
    diagrams = read_events(folder).plot
    if "flow" in options and options["flow"] is None:
        worst = options["flow"] = diagrams.worst(kind)
        if not as_json:
            did = "lost" if kind == "ladder" else "retransmitted"
            shell.say(f"{shown(worst)} {did} most of all; for another, add --flow NAME")
    written = diagrams.write(kind, target, **options)
    if as_json:
        shell.answer({"written": [shown(written)], "diagram": kind, "notes": diagrams.notes, **options})
        return
    for note in diagrams.notes:
        shell.console().print(note)
    shell.console().print(f"wrote {shown(written)}", soft_wrap=True)


COMMANDS = {"sequence": sequence, "anatomy": anatomy, "ladder": ladder}
