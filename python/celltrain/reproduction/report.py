"""A reproduction as text: the paper's tables with ours beside them, or those of a study, then the summary and the claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from celltrain.reproduction.paper import STUDY, Paper, Table, seed_count
from celltrain.reproduction.score import Scored

if TYPE_CHECKING:
    from celltrain.reproduction.run import Reproduction

YES, NO, NOT_SCORED = Text("yes", style="green"), Text("no", style="bold red"), Text("-", style="dim")


def show(reproduction: Reproduction, *, console: Console | None = None) -> None:
    """Print everything."""
    console = console or Console()
    paper = reproduction.paper
    if paper.kind is STUDY:
        console.print(Text(paper.title, style="bold"))
        console.print(f"{paper.question}\nIt follows {paper.follows}\n")
    else:
        console.print(Text(f"{paper.title} ({paper.published_in})", style="bold"))
    seeds = ", ".join(f"{seed_count(count)} {network}".rstrip() for network, count in reproduction.seeds.items())
    ours_is = "ours: " if any(not table.experiment for table in paper.tables) else ""
    console.print(f"{seeds}; {ours_is}mean over the seeds (lowest to highest)\n")
    for path, value in paper.overrides.items():
        console.print(Text(f"Not the {paper.kind.word} as it stands: {path} = {value!r}\n", style="bold yellow"))
    if reproduction.interrupted:
        console.print(Text("Interrupted: what follows holds only the runs that had ended.\n", style="bold yellow"))
    for table in paper.tables:
        members = [scored for scored in reproduction.scored if scored.number.table == table.number]
        if members:
            console.print(table_grid(table, members))
            for mark, note in enumerate(notes(members), start=1):
                console.print(Text(f"  {mark}) {note}", style="dim"))
            console.print()
    if reproduction.summary["by"]:
        console.print(summary_grid(reproduction))
        console.print()
    if reproduction.claims:
        console.print(claims_grid(reproduction))
    if reproduction.claims_left_out:
        console.print(f"{len(reproduction.claims_left_out)} claims need tables that were not run, and are left out.")


def table_grid(table: Table, members: Sequence[Scored]) -> Grid:
    """One table of the paper: a line for each row, and for each quantity what is printed, ours, and whether they agree."""
    grid = _grid(table.heading)
    for key in table.keys:
        grid.add_column(_words(key), justify="right")
    for quantity in table.quantities:
        grid.add_column(_words(quantity), justify="right")
        if not table.experiment:
            grid.add_column("ours", justify="right", no_wrap=True)
            grid.add_column("inside", no_wrap=True)
    marks = {note: f" {mark})" for mark, note in enumerate(notes(members), start=1)}
    for row in rows(members):
        line: list[str | Text] = [str(row[0].number.row[key]) for key in table.keys]
        by_quantity = {scored.number.quantity.name: scored for scored in row}
        for quantity in table.quantities:
            scored = by_quantity.get(quantity)
            if scored is None:
                line += [""] if table.experiment else ["", "", ""]
            elif table.experiment:
                line.append(ours(scored))
            else:
                inside = verdict(scored) + Text(marks.get(scored.number.note, ""), "dim")
                line += [printed(scored), ours(scored), inside]
        grid.add_row(*line)
    return grid


def rows(members: Sequence[Scored]) -> list[list[Scored]]:
    """The numbers of a table, those of one row together."""
    grouped: dict[tuple[object, ...], list[Scored]] = {}
    for scored in members:
        grouped.setdefault(tuple(scored.number.row.items()), []).append(scored)
    return list(grouped.values())


def notes(members: Sequence[Scored]) -> list[str]:
    """The different notes on a table's numbers, in the order they come."""
    return list(dict.fromkeys(scored.number.note for scored in members if scored.number.note))


def printed(scored: Scored) -> str:
    """The published value, with as many decimals as the paper prints."""
    return f"{scored.printed:.{scored.number.quantity.decimals}f}"


def ours(scored: Scored) -> str:
    """Mean and range of the seeds, with as many decimals as the paper prints."""
    decimals = scored.number.quantity.decimals
    mean, low, high = (f"{value:.{decimals}f}" for value in (scored.mean, scored.low, scored.high))
    return mean if low == high else f"{mean} ({low}\u2013{high})"


def verdict(scored: Scored) -> Text:
    """Whether the published value is inside: in the seeds' range, or as near as the paper's file allows."""
    if not scored.number.scored:
        return NOT_SCORED.copy()
    return (YES if scored.inside else NO).copy()


def summary_grid(reproduction: Reproduction) -> Grid:
    """How many numbers agree and how closely, per table, network and quantity."""
    summary = reproduction.summary
    title = f"{summary['inside']} of {summary['scored']} scored numbers are inside"
    if summary["scored"]:
        title += f" ({100 * summary['share_inside']:.0f} %)"
    grid = _grid(title)
    for heading in ("table", "network", "quantity", "inside", "mean error", "error of a seed", "rank corr.", "KS"):
        grid.add_column(heading, justify="left" if heading in ("network", "quantity") else "right")
    for group in summary["by"]:
        grid.add_row(*summary_row(group, reproduction.paper))
    grid.caption = (
        "inside: in the range of the seeds, or as near to it or to their mean as the paper's file allows; "
        "mean error: printed value to mean of the seeds; error of a seed: one seed to the mean of the others; "
        "KS: below 1.36 if the printed values could be draws of the model"
    )
    grid.caption_justify = "left"
    return grid


def summary_row(group: Mapping[str, Any], paper: Paper) -> list[str]:
    """What a group of the summary says: table, network, quantity, how many agree, and how closely."""
    decimals = paper.quantities[group["quantity"]].decimals
    digits = decimals + 1 if decimals else 0
    return [
        group["table"],
        group["network"] or "",
        _words(group["quantity"]),
        f"{group['inside']} of {group['scored']}",
        *(_figure(group[error], digits) for error in ("mean_abs_error", "self_error")),
        *(_figure(group[measure], 2) for measure in ("rank_correlation", "ks")),
    ]


def claims_grid(reproduction: Reproduction) -> Grid:
    """Every claim, whether it holds in our runs, in how many of the seeds alone, and in print, and why."""
    held = sum(claim.holds for claim in reproduction.claims)
    # A study follows no text, and of some papers no number is in print.
    text = "" if reproduction.paper.kind is STUDY else "of the text "
    printed = any(not table.experiment for table in reproduction.paper.tables)
    title = f"{held} of {len(reproduction.claims)} claims {text}hold"
    grid = _grid(title)
    grid.add_column("holds")
    grid.add_column("seeds", justify="right")
    if printed:
        grid.add_column("in print")
    grid.add_column("claim, and what the runs show")
    for claim in reproduction.claims:
        in_print = Text("", style="dim") if claim.published_holds is None else YES if claim.published_holds else NO
        grid.add_row(
            YES if claim.holds else NO,
            "" if claim.seeds_share is None else f"{100 * claim.seeds_share:.0f} %",
            *([in_print] if printed else []),
            Text.assemble((claim.text, ""), "\n", (f"{claim.id}: {claim.evidence}", "dim")),
        )
    return grid


def _grid(title: str) -> Grid:
    return Grid(title=title, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _figure(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
