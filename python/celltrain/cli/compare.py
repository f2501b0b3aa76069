"""`celltrain compare`: scenarios beside each other under the same seeds; `celltrain run --seeds` is one of them alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from celltrain.cli import completing, shell, workers

if TYPE_CHECKING:
    from celltrain.ensemble.comparing import Compared

Measures = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        help="Measures, separated by commas; see: celltrain list measures.",
        show_default="efficiency,fairness",
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
        epilog=shell.examples(
            "celltrain compare lan-tail-drop lan-epd --seeds 20",
            "celltrain compare lan-epd --vary port.bottleneck.buffer=1000,2000",
            "celltrain compare lan-epd --vary port.bottleneck.policy=tail_drop,epd",
            'celltrain compare lan-tail-drop lan-epd --names "Tail drop,EPD" --plot a.svg',
        ),
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
            autocompletion=completing.paths,
            help="Values of a setting, separated by commas; examples below. With one FILE the values are compared. "
            "With several, all FILEs are compared at each value. A single value is set for all. May be repeated: "
            "with one FILE the first is compared, and the second is the horizontal axis of the figure.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=VALUE",
            autocompletion=completing.paths,
            help="Use this setting in every FILE. May be repeated.",
        ),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Names of the FILEs in the table and the figure, or of the values that are compared, separated by commas.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(parser=shell.whole(1, 1_000_000), metavar="N", help="Runs of each.")] = 10,
    seed: Annotated[
        int, typer.Option(parser=shell.whole(0), metavar="N", help="The first seed; the others follow.")
    ] = 1,
    measures: Measures = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="Show goodput, losses and timeouts as well, which are always measured.")
    ] = False,
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
    md: shell.Markdown = False,
    tex: shell.Latex = False,
) -> int:
    """Run scenarios under the same seeds: means with 95 % intervals, and paired differences from the first."""
    from celltrain.drawing.pages.words import counted
    from celltrain.ensemble.comparing import compare as put_beside
    from celltrain.ensemble.comparing.figure import check
    from celltrain.errors import Fault, InputError
    from celltrain.model.overrides import as_options, of_options

    form = shell.form(as_json=as_json, md=md, tex=tex)
    called = None if names is None else listed([names])
    varied = of_options(vary or [], settings or [])
    shell.refuse_no_ending(csv)
    if plot is not None:
        check(plot, width, style)
    if called is not None and len(files) > 1 and len(called) != len(files):
        said = f"--names has {counted(len(called), 'name')} for {counted(len(files), 'scenario')}."
        raise InputError([Fault.saying(said, key="--names", value=names or "")])
    try:
        with shell.waiting("comparing") as progress:
            compared = put_beside(
                *files,
                names=called,
                vary=varied,
                seeds=seeds,
                first_seed=seed,
                measures=listed(measures),
                jobs=jobs,
                progress=progress,
            )
    except InputError as error:
        raise InputError(as_options(error.faults, vary or [], settings or [])) from None
    brief = measures is None and not show_all
    return answered(
        compared, plot=plot, width=width, style=style, csv=csv, out=out, as_json=as_json, form=form, brief=brief
    )


def listed(texts: list[str] | None) -> list[str] | None:
    """Names that stand in options, with commas between; nothing where there is no option."""
    return None if texts is None else [name.strip() for text in texts for name in text.split(",") if name.strip()]


def usual(compared: Compared) -> list[int]:
    """The places of the measures that are shown unless others are asked for."""
    from celltrain.ensemble.comparing.rows import USUAL

    return [place for place, measure in enumerate(compared.measures) if measure.name in USUAL]


def answered(
    compared: Compared,
    *,
    plot: Path | None,
    width: str,
    style: str | None,
    csv: Path | None,
    out: Path | None,
    as_json: bool,
    form: shell.Form,
    fingerprints: bool = False,
    brief: bool = False,
) -> int:
    """Writes the files, prints the rest, and returns the exit code.

    `fingerprints`: print those of a scenario alone too. `brief`: print and draw the usual measures only.
    """
    from celltrain.text import shown

    written: list[Path] = []
    if out is not None:
        written += compared.write(shell.folder(out))
    if csv is not None:
        written.append(compared.write_csv(csv))
    if plot is not None:
        drawn = [compared.measures[place].name for place in usual(compared)] if brief else None
        compared.plot(plot, measures=drawn, width=width, style=style)
        written.append(plot)
    prints = dict(zip(compared.seeds, compared.fingerprints[0, 0].tolist(), strict=True)) if fingerprints else {}
    if as_json:
        # A failed run has none.
        known = {str(seed): text or None for seed, text in prints.items()}
        shell.answer(compared.to_dict() | ({"fingerprints": known} if fingerprints else {}))
    else:
        from celltrain.ensemble.comparing.rows import blocks

        shell.show(blocks(compared, usual(compared) if brief else None), form)
        for seed, text in prints.items():
            shell.note(f"seed {seed}  {text or 'failed'}", form)
        for path in written:
            shell.note(f"wrote {shown(path)}", form)
    for failure in compared.failures[:1]:
        also = f", and {len(compared.failures) - 1:,} more failed" if len(compared.failures) > 1 else ""
        shell.complain(f"{failure.name}, seed {failure.seed}: {failure.error}{also}; they count nowhere")
    return shell.NO if compared.failures else shell.DONE
