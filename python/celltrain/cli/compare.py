"""`celltrain compare`: scenarios beside each other under the same seeds; `celltrain run --seeds` is one of them alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from celltrain.cli import completing, shell, workers

if TYPE_CHECKING:
    from rich.console import Console

    from celltrain.comparing import Compared

# What fits a screen; --json, --csv and --out give everything.
MOST_ROWS = 60

Measures = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES", help="What is measured, with commas, such as efficiency,ports.bottleneck.max_queue_cells."
    ),
]
Width = Annotated[str, typer.Option(metavar="WIDTH", help="Of the figure: page, or column for a paper's column.")]
Style = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Of the figure: a style of matplotlib, such as grayscale, or its file."),
]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(
        "compare",
        epilog="For example: celltrain compare lan-tail-drop lan-epd lan-selective-drop --seeds 20 --plot policies.svg; "
        "celltrain compare lan-epd --vary port.bottleneck.policy=tail_drop,epd:threshold=800,selective_drop",
    )(compare)


@shell.command
def compare(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Scenarios: TOML files, or names of shipped ones. The first is what the others are compared with.",
            autocompletion=completing.scenarios,
        ),
    ],
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH=VALUES",
            help="Settings, with commas: port.bottleneck.buffer=1000,2000 or port.bottleneck.policy=tail_drop,epd:threshold=800. "
            "Of one FILE the values are compared; of several, all are compared at each. One value sets it for all. "
            "May be repeated.",
        ),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="What the FILEs are called in the table and the figure, or of one FILE the values that are compared; "
            'with commas: "Tail drop,EPD,Selective Drop".',
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=1_000_000, metavar="N", help="Runs of each.")] = 10,
    seed: Annotated[int, typer.Option(min=0, metavar="K", help="The first seed; the others follow.")] = 1,
    measures: Measures = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="PICTURE", help="Draw means with intervals there: .svg, .pdf or .png.")
    ] = None,
    width: Width = "page",
    style: Style = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="Write means, intervals and differences there, as CSV.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write means, differences and all runs there, as CSV and JSON.")
    ] = None,
    jobs: workers.Jobs = None,
    as_json: shell.Json = False,
) -> int:
    """Run scenarios under the same seeds: means with 95 % intervals, and paired differences from the first."""
    from celltrain.comparing import compare as put_beside
    from celltrain.comparing.figure import check
    from celltrain.overrides import of_texts

    varied = of_texts(vary or [], "--vary")
    if plot is not None:
        check(plot, width, style)
    with shell.waiting("comparing") as progress:
        compared = put_beside(
            *files,
            names=None if names is None else listed([names]),
            vary=varied,
            seeds=seeds,
            first_seed=seed,
            measures=listed(measures),
            jobs=jobs,
            progress=progress,
        )
    return answered(compared, plot=plot, width=width, style=style, csv=csv, out=out, as_json=as_json)


def listed(texts: list[str] | None) -> list[str] | None:
    """Names that stand in options, with commas between; nothing where there is no option."""
    return None if texts is None else [name.strip() for text in texts for name in text.split(",") if name.strip()]


def answered(
    compared: Compared,
    *,
    plot: Path | None,
    width: str,
    style: str | None,
    csv: Path | None,
    out: Path | None,
    as_json: bool,
    fingerprints: bool = False,
) -> int:
    """Writes what is asked for, and prints the rest; the exit code. `fingerprints`: those of a scenario alone too."""
    from celltrain.text import shown

    written: list[Path] = []
    if out is not None:
        written += compared.write(shell.folder(out))
    if csv is not None:
        written.append(compared.write_csv(csv))
    if plot is not None:
        compared.plot(plot, width=width, style=style)
        written.append(plot)
    prints = dict(zip(compared.seeds, compared.fingerprints[0, 0].tolist(), strict=True)) if fingerprints else {}
    if as_json:
        # A failed run has none.
        known = {str(seed): text or None for seed, text in prints.items()}
        shell.answer(compared.to_dict() | ({"fingerprints": known} if fingerprints else {}))
    else:
        console = shell.console()
        show(compared, console)
        for seed, text in prints.items():
            console.print(f"seed {seed}  {text or 'failed'}", soft_wrap=True, highlight=False)
        for path in written:
            console.print(f"wrote {shown(path)}", soft_wrap=True)
    for failure in compared.failures[:1]:
        also = f", and {len(compared.failures) - 1:,} more failed" if len(compared.failures) > 1 else ""
        shell.complain(f"{failure.name}, seed {failure.seed}: {failure.error}{also}; they count nowhere")
    return shell.NO if compared.failures else shell.DONE


def show(compared: Compared, console: Console) -> None:
    """Prints a comparison for people."""
    from celltrain.comparing import rows

    console.print(rows.heading(compared), style="bold")
    if rows.is_alone(compared):
        _one(compared, console)
    else:
        _several(compared, console)
    if len(compared.seeds) > 1:
        console.print(rows.HALF)


def _one(compared: Compared, console: Console) -> None:
    """A scenario alone: a row for each measure."""
    from celltrain.comparing.rows import alone

    grid = shell.grid("measure", "mean", "least", "largest", left=("measure",))
    for row in alone(compared):
        grid.add_row(*row)
    console.print(grid)


def _several(compared: Compared, console: Console) -> None:
    """A block of rows for each measure: what is compared at each combination, and what it has more than the first."""
    from celltrain.comparing import rows
    from celltrain.pages.words import measure as worded

    heads = rows.heads(compared)
    grid = shell.grid("", *heads, left=("", compared.what))
    each = len(compared.names) * len(compared.settings)
    shown = max(1, MOST_ROWS // each)
    for i, measure in enumerate(compared.measures[:shown]):
        label = worded(measure.name, measure.unit)
        for number, cells in enumerate(rows.rows(compared, i)):
            grid.add_row(label if number == 0 else "", *cells)
        if i < shown - 1:
            grid.add_section()
    console.print(grid)
    if len(compared.names) > 1 and len(compared.seeds) > 1:
        console.print(rows.BEYOND)
    if (left := len(compared.measures) - shown) > 0:
        more = "measure is" if left == 1 else "measures are"
        console.print(f"{left} more {more} in --json, --csv and --out; --measures chooses")
