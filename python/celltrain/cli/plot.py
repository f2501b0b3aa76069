"""`celltrain plot`: diagrams of the events that a run wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from celltrain.cli import shell

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The events, of celltrain run FILE --events DIR.")]
Out = Annotated[
    Path | None,
    typer.Option("--plot", "--out", metavar="FILE", help="Where to draw it: .svg, .png or .pdf. If not given, in DIR."),
]
Window = Annotated[
    str | None, typer.Option(metavar="FROM:TO", help="From one time to another, such as 1.2s:1.3s. All if not given.")
]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    plot = typer.Typer(no_args_is_help=True, help="Draw the events of a run: a connection, a buffer, a frame.")
    plot.command("sequence", epilog="For example: celltrain plot sequence out/events --flow tcp3 --out tcp3.svg")(
        sequence
    )
    plot.command("anatomy", epilog="For example: celltrain plot anatomy out/events --window 300ms:310ms")(anatomy)
    plot.command("ladder", epilog="For example: celltrain plot ladder out/events --flow tcp3 --frame 108")(ladder)
    app.add_typer(plot, name="plot")


@shell.command
def sequence(
    folder: Folder,
    flow: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The connection.", show_default="the one that retransmitted most"),
    ] = None,
    out: Out = None,
    window: Window = None,
    as_json: shell.Json = False,
) -> None:
    """Draw time and sequence of a connection, as tcptrace does: segments, ACKs, what was sent again and what was lost."""
    _draw("sequence", folder, out, as_json, flow=flow, window=window)


@shell.command
def anatomy(
    folder: Folder,
    port: Annotated[
        str | None, typer.Option(metavar="NAME", help="The port; the only one whose cells were kept if not given.")
    ] = None,
    out: Out = None,
    window: Window = None,
    as_json: shell.Json = False,
) -> None:
    """Draw what waits at a port over time, by VC, with the frames that were refused and the cells that were lost."""
    _draw("anatomy", folder, out, as_json, port=port, window=window)


@shell.command
def ladder(
    folder: Folder,
    flow: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The connection, or a VC such as tcp3-acks.",
            show_default="the VC that lost most",
        ),
    ] = None,
    frame: Annotated[
        int | None,
        typer.Option(
            parser=shell.whole(0),
            metavar="N",
            help="The frame's number within the VC.",
            show_default="the first that lost only some of its cells",
        ),
    ] = None,
    out: Out = None,
    as_json: shell.Json = False,
) -> None:
    """Draw the cells of one frame on their way through the network."""
    _draw("ladder", folder, out, as_json, flow=flow, frame=frame)


def _draw(kind: str, folder: Path, out: Path | None, as_json: bool, **options: Any) -> None:
    from celltrain.running.events import read_events
    from celltrain.text import shown

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
