"""`celltrain list`: lists models, papers, plans, scenarios and measures."""

from __future__ import annotations

from typing import Annotated

import typer

from celltrain.cli import completing, options, shell
from celltrain.cli.completing import KINDS
from celltrain.model.grids import Line


@shell.command(
    "celltrain list policies", "celltrain list scenarios --json", "celltrain list measures --csv measures.csv"
)
def list_(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND",
            help=f"What to list: {', '.join(KINDS)}. Without it, the kinds.",
            autocompletion=completing.kinds,
        ),
    ] = None,
    csv: options.Csv = None,
    as_json: options.Json = False,
) -> None:
    """List available models, services, papers, studies, plans, scenarios or measures."""
    from celltrain.cli.catalog import SINGULAR, entries
    from celltrain.errors import Fault, InputError
    from celltrain.text import among

    output = shell.Output.of(as_json=as_json, csv=csv)
    if kind is None:
        counts = {kind: len(_measures()) if kind == "measures" else len(entries(kind)) for kind in KINDS}
        rows = [{"kind": kind, "count": count} for kind, count in counts.items()]
        grid = shell.grid("kind", "how many", left=("kind",))
        for name, count in counts.items():
            grid.add_row(name, f"{count:,}")
        hint = Line(text="To list one kind: celltrain list policies")
        output.show(answer=lambda: rows, rows=lambda: rows, blocks=lambda: [grid, hint])
        output.wrote()
        return
    plurals = {singular.replace(" ", "_"): plural for plural, singular in SINGULAR.items()} | {"measure": "measures"}
    wanted = plurals.get(kind, kind)
    if wanted not in KINDS:
        raise InputError([Fault.of_option("KIND", kind, f"is not a kind of things to list; {among(kind, KINDS)}")])
    if wanted != "measures":
        entries_of(wanted, output)
        return
    measures = _measures()
    grid = shell.grid("name", "unit", "what it is", left=("name", "unit", "what it is"))
    for one in measures:
        grid.add_row(one["name"], "" if one["unit"] == "1" else one["unit"], one["summary"])
    output.show(answer=lambda: measures, rows=lambda: measures, blocks=lambda: [grid])
    output.note(
        "Of several connections or ports: flows.sum(*).timeouts, flows.mean(tcp1-3).goodput_mbps; docs/sweeps.md"
    )
    output.wrote()


def entries_of(kind: str, output: shell.Output, hint: str = "") -> None:
    """Prints everything of a kind, one line for each, and a hint."""
    from celltrain.cli.catalog import entries

    found = [{"name": entry.name, "summary": entry.summary} for entry in entries(kind)]
    grid = shell.grid("name", "what it is", left=("name", "what it is"))
    for entry in found:
        grid.add_row(entry["name"], entry["summary"])
    output.show(answer=lambda: found, rows=lambda: found, blocks=lambda: [grid, *([Line(text=hint)] if hint else [])])
    output.wrote()


def _measures() -> list[dict[str, str]]:
    """Returns every number of a run by the path that names it."""
    from celltrain.model.measures import ROWS, RUN

    members = {"flows": "tcp1", "ports": "bottleneck", "contracts": "VC", "abr": "VC"}
    found = [("", one) for one in RUN]
    found += [(f"{rows}.{members[rows]}.", one) for rows, columns in ROWS.items() for one in columns]
    return [
        {"name": f"{path}{one.name}", "unit": one.unit, "summary": one.meaning}
        for path, one in found
        if one.kind != "string"
    ]


COMMANDS = {"list": list_}
