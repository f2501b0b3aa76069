"""`celltrain plot`: draws the events that a run wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from celltrain.cli import options, shell
from celltrain.cli.options import option
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
    folder: Folder, flow: str | None = None, out: Out = None, window: Window = None, as_json: options.Json = False
) -> None:
    """Draw time and sequence of a connection, as tcptrace does: segments, ACKs, retransmissions and losses.

    Options:
        flow (NAME): The connection. [default: the one that retransmitted most]
    """
    _draw("sequence", folder, out, as_json, flow=flow, window=window)


@shell.command(
    "celltrain plot anatomy out/events",
    "celltrain plot anatomy out/events --window 300ms:310ms",
    "celltrain plot anatomy out/events --port bottleneck --out buffer.pdf",
)
def anatomy(
    folder: Folder, port: str | None = None, out: Out = None, window: Window = None, as_json: options.Json = False
) -> None:
    """Draw the queue of a port over time, by VC, with refused frames and lost cells.

    Options:
        port (NAME): The port. By default the only one whose cells were kept.
    """
    _draw("anatomy", folder, out, as_json, port=port, window=window)


@shell.command(
    "celltrain plot ladder out/events",
    "celltrain plot ladder out/events --flow tcp3 --frame 108",
    "celltrain plot ladder out/events --flow tcp3-acks --out acks.png",
)
def ladder(
    folder: Folder,
    flow: str | None = None,
    frame: Annotated[int | None, {"parser": options.whole(0)}] = None,
    out: Out = None,
    as_json: options.Json = False,
) -> None:
    """Draw the cells of one frame on their way through the network.

    Options:
        flow (NAME): The connection, or a VC such as tcp3-acks. [default: the VC that lost most]
        frame (N): Number of the frame within the VC. [default: the first that lost only some of its cells]
    """
    _draw("ladder", folder, out, as_json, flow=flow, frame=frame)


def _draw(kind: str, folder: Path, out: Path | None, as_json: bool, **options: Any) -> None:
    from celltrain.running.events import read_events

    diagrams = read_events(folder).plot
    texts = []
    if "flow" in options and options["flow"] is None:
        worst = options["flow"] = diagrams.worst(kind)
        did = "lost" if kind == "ladder" else "retransmitted"
        texts.append(f"{shown(worst)} {did} most of all; for another, add --flow NAME")
    written = diagrams.write(kind, out or folder / f"{kind}.svg", **options)
    answer = {"written": [shown(written)], "diagram": kind, "notes": diagrams.notes, **options}
    shell.Output.of(as_json=as_json).tell(answer, *texts, *diagrams.notes, f"wrote {shown(written)}")


COMMANDS = {"sequence": sequence, "anatomy": anatomy, "ladder": ladder}
