"""`celltrain explain`: explains a model, with its parameters and its page."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from celltrain.cli import completing, options, shell
from celltrain.cli.options import flag
from celltrain.errors import Fault, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions, RenderableType

    from celltrain.cli.catalog import Entry

#: The kinds of names that can be explained.
KINDS = (
    "policy, scheduler, allocator, discard algorithm, TCP variant, congestion control, kind of traffic, topology, "
    "service, paper, study, plan or scenario"
)


@shell.command("celltrain explain fba", "celltrain explain vanilla --page", "celltrain explain lan-epd > mine.toml")
def explain(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A policy, scheduler, allocator, discard algorithm, TCP variant, congestion control, kind of traffic, topology, "
            "service (abr, gfr), paper, study, example plan or scenario; with its kind before it where two have the name: discards/tail_drop.",
            autocompletion=completing.explained,
        ),
    ] = None,
    page: Annotated[
        bool, flag("--page", "Print the whole page of a TCP variant: all parameters, symbols, validation.")
    ] = False,
    settings: Annotated[
        list[str] | None, options.setting("Print a scenario with this setting. May be repeated.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Explain a model: its parameters with type, unit, default and range, and its page. Print an example plan or scenario."""
    from celltrain.cli.catalog import everything
    from celltrain.drawing.pages.words import prose
    from celltrain.ensemble.columns import measured
    from celltrain.model.grammar import OTHERWISE

    if name is None:
        _names(as_json=as_json)
        return
    of_kind = {f"{entry.kind}/{entry.name}": entry for entry in everything()}
    known: dict[str, Entry] = {}
    for entry in of_kind.values():
        known.setdefault(entry.name, entry)
    wanted = name.removesuffix(".toml")
    if wanted in of_kind:
        known[wanted] = of_kind[wanted]
    if wanted not in known and (about := measured(wanted)).meaning != wanted:
        if as_json:
            shell.answer({"kind": "measures", "name": wanted, "unit": about.unit, "meaning": about.meaning})
        else:
            unit = "" if about.unit in ("", "1") else f", in {about.unit}"
            shell.say(f"{wanted} is a measure{unit}: {prose(about.meaning)}")
            shell.say("All measures: celltrain list measures; docs/concepts.md has their formulas")
        return
    if wanted not in known:
        near = difflib.get_close_matches(wanted.lower().replace("-", "_"), known, n=3, cutoff=0.5)
        hint = f"; did you mean {' or '.join(near)}?" if near else "; see: celltrain list policies"
        if wanted.lower() in OTHERWISE:
            hint = f"; {OTHERWISE[wanted.lower()]}"
        raise InputError([Fault.of_option("name", name, f"is not a {KINDS}{hint}")])
    if settings:
        _show_changed(known[wanted], settings, as_json=as_json)
    elif as_json:
        shell.answer(known[wanted].to_dict())
    elif known[wanted].kind in ("plans", "scenarios"):
        typer.echo(known[wanted].page, nl=False)
    else:
        _show(known[wanted], whole=page)
        others = [path for path, entry in of_kind.items() if entry.name == wanted and entry is not known[wanted]]
        for path in others:
            shell.say(f"\nThere is another of this name: celltrain explain {path}")


def _names(*, as_json: bool) -> None:
    """Prints the names that `explain` takes, by kind."""
    from celltrain.cli.catalog import entries

    names = {kind: [entry.name for entry in entries(kind)] for kind in completing.KINDS if kind != "measures"}
    if as_json:
        shell.answer(names)
        return
    grid = shell.grid("kind", "names", left=("kind", "names"))
    for kind, those in names.items():
        grid.add_row(kind, ", ".join(those))
    shell.console().print(grid)
    shell.say("\nTo explain one: celltrain explain fba")


def _show_changed(entry: Entry, settings: list[str], *, as_json: bool) -> None:
    """Prints a shipped scenario as a file, with settings in place of its own."""
    from celltrain.model.scenario import to_toml
    from celltrain.model.types import Scenario

    if entry.kind != "scenarios":
        problem = f"changes a scenario, and {entry.name} is one of the {entry.kind}"
        raise InputError([Fault.of_option("--set", settings[0], problem)])
    scenario = shell.scenario(Path(entry.name), settings)
    assert isinstance(scenario, Scenario), "it has settings of its own"
    page = to_toml(scenario, head=f"{entry.name} with {', '.join(settings)}.")
    if as_json:
        shell.answer({**entry.to_dict(), "page": page})
    else:
        typer.echo(page, nl=False)


def _show(entry: Entry, *, whole: bool) -> None:
    """Prints an entry: its page and its parameters; of a TCP the beginning and what people change, unless `whole`."""
    from celltrain.cli.catalog import SINGULAR
    from celltrain.model.grids import Line

    console = shell.console()
    width = min(console.width, 100)
    page, parameters = entry.page, entry.parameters
    is_brief = entry.kind == "tcp" and not whole
    if page is None:
        shell.Output().print([Line(text=f"{entry.name} ({SINGULAR[entry.kind]}): {entry.summary}"), Line(text="")])
        console.print(entry.description, width=width)
    else:
        console.print(_markdown(_beginning(page) if is_brief else page), width=width)
    if is_brief:
        parameters = tuple(one for one in parameters if one.name in ESSENTIAL)
    if parameters:
        columns = ("parameter", "default", "meaning") if is_brief else PARAMETER
        grid = shell.grid(*columns, left=columns)
        for parameter in parameters:
            default = "required" if parameter.required else "absent"
            if parameter.default is not None:
                default = json.dumps(parameter.default)
            cells = [parameter.name, parameter.type, parameter.unit, default, parameter.range, parameter.meaning]
            grid.add_row(*(cell for name, cell in zip(PARAMETER, cells, strict=True) if name in columns))
        console.print()
        console.print(grid)
    if is_brief:
        left = len(entry.parameters) - len(parameters)
        shell.say(f"\n{left} more parameters, ranges, symbols and validation: celltrain explain {entry.name} --page")


#: The columns of a table of parameters.
PARAMETER = ("parameter", "type", "unit", "default", "range", "meaning")
#: The parameters of a TCP that people change most.
ESSENTIAL = ("mss", "receive_window", "timer_granularity", "delayed_acks", "congestion")


def _beginning(page: str) -> str:
    """The title of a model's page, what it does and its source."""
    title, *sections = page.split("\n## ")
    kept = [one for one in sections if one.partition("\n")[0] in ("What it does", "Source")]
    return "\n## ".join([title, *kept])


def _markdown(page: str) -> RenderableType:
    """A page for a terminal; its tables wrap words that are too long, and cut none."""
    from rich.markdown import Markdown, TableElement
    from rich.table import Table

    class WholeTable(TableElement):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
            for table in super().__rich_console__(console, options):
                assert isinstance(table, Table), "a table of Markdown is a table"
                for column in table.columns:
                    column.overflow = "fold"
                yield table

    class Whole(Markdown):
        elements = {**Markdown.elements, "table_open": WholeTable}  # noqa: RUF012

    return Whole(page, hyperlinks=False)


COMMANDS = {"explain": explain}
