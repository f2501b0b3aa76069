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

#: The three verdicts on a number, as columns.
VERDICTS = ("in range", "near mean", "PIT")

#: By which of them a number counts as inside.
RULES = {"range": "in range", "mean": "near mean", "either": "in range or near mean"}

#: What the verdicts and the columns of a summary mean, in their order.
LEGEND = {
    "inside": "counted as a hit, by the rule of the paper's file: in range, near mean, or either",
    "in range": "between the lowest and the highest seed, give or take a unit of the last digit",
    "near mean": "within the tolerance that the paper's file states; of the numbers that have one",
    "10 %": "our mean is within a tenth of the printed value",
    "PIT": "where the printed value stands among the n seeds, 0 to 1: (below + equal / 2 + 1/2) / (n + 1)",
    "middle PIT": "a PIT between .05 and .95",
    "expected": "how many would be in the middle, were the printed values draws of the model",
    "KS": "how far the PITs are from uniform (Kolmogorov and Smirnov's distance, times the root of their number)",
    "p": "the probability of so large a KS, were the numbers independent of each other",
    "p by seeds": "the same with each seed in place of the paper, which needs no independence; at least 1 / (n + 1)",
}


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
            if line := ks_line(reproduction.summary, table.number):
                console.print(Text(line, style="dim"))
            console.print()
    if reproduction.summary["by"]:
        for grid in summary_grids(reproduction):
            console.print(grid)
            console.print()
    if reproduction.claims:
        console.print(claims_grid(reproduction))
    if reproduction.claims_left_out:
        console.print(f"{len(reproduction.claims_left_out)} claims need tables that were not run, and are left out.")


def table_grid(table: Table, members: Sequence[Scored]) -> Grid:
    """One table of the paper: a line for each row, and for each quantity what is printed, ours, and the verdicts."""
    grid = _grid(table.heading)
    for key in table.keys:
        grid.add_column(_words(key), justify="right")
    for quantity in table.quantities:
        grid.add_column(_words(quantity), justify="right")
        if not table.experiment:
            grid.add_column("ours", justify="right", no_wrap=True)
            # The three in one, as a table may have several quantities.
            grid.add_column("range mean  PIT", no_wrap=True, min_width=15)
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
                in_range, near_mean, pit = verdicts(scored.to_dict())
                mark = Text(marks.get(scored.number.note, ""), "dim")
                line += [printed(scored), ours(scored), _coloured(in_range, 6) + _coloured(near_mean, 6) + pit + mark]
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


def verdicts(number: Mapping[str, Any]) -> list[str]:
    """The three verdicts on a number of an answer, in words: "-" where there is none, or where it is not scored."""
    if not number["scored"]:
        return ["-"] * len(VERDICTS)
    words = {True: "yes", False: "no", None: "-"}
    return [words[number["inside_range"]], words[number["inside_tolerance"]], f"{number['pit']:.2f}"]


def counted_by(numbers: Sequence[Mapping[str, Any]]) -> str:
    """By which verdict the scored numbers of a table count as inside; empty where none is scored."""
    by: dict[str, list[str]] = {}
    for number in numbers:
        quantities = by.setdefault(number["judged_by"], []) if number["scored"] else [number["quantity"]]
        if number["quantity"] not in quantities:
            quantities.append(number["quantity"])
    if len(by) == 1:
        return RULES[next(iter(by))]
    return "; ".join(f"{', '.join(map(_words, quantities))} {RULES[rule]}" for rule, quantities in by.items())


def summary_grids(reproduction: Reproduction) -> list[Grid]:
    """How many numbers agree, by each verdict, and how closely: per table, network and quantity."""
    summary = reproduction.summary
    title = f"{summary['inside']} of {summary['scored']} scored numbers are inside"
    if summary["scored"]:
        title += f" ({100 * summary['share_inside']:.0f} %)"
    title += "; " + counts(summary["verdicts"], summary["scored"])
    shares = _grid(title)
    for heading in SHARES:
        left = heading in ("network", "quantity")
        shares.add_column(heading, justify="left" if left else "right", no_wrap=left or heading == "table")
    for line in share_rows(summary):
        shares.add_row(*line)
    shares.caption = "\n".join(f"{term}: {meaning}" for term, meaning in LEGEND.items())
    errors = _grid("How close")
    for heading in ERRORS:
        errors.add_column(heading, justify="left" if heading in ("network", "quantity") else "right")
    for group in summary["by"]:
        errors.add_row(*error_row(group, reproduction.paper))
    errors.caption = (
        "mean error: printed value to mean of the seeds; error of a seed: one seed to the mean of the others; "
        "relative: mean error as a share of the printed value"
    )
    for grid in (shares, errors):
        grid.caption_justify = "left"
    return [shares, errors]


#: The columns of the table of shares.
SHARES = (
    *("table", "network", "quantity", "inside", "in range", "near mean", "10 %", "middle PIT"),
    *("expected", "KS", "p", "p by seeds"),
)
#: The columns of the table of errors.
ERRORS = ("table", "network", "quantity", "mean error", "relative", "error of a seed", "rank correlation")


def counts(verdicts: Mapping[str, Any], scored: int) -> str:
    """All three verdicts on some numbers, as counts."""
    return (
        f"in range {verdicts['inside_range']} of {scored}, "
        f"near mean {verdicts['inside_tolerance']} of the {verdicts['with_tolerance']} with a tolerance, "
        f"middle PIT {verdicts['pit_middle']} of {verdicts['draws']} "
        f"where {verdicts['pit_middle_expected']:.0f} were expected of draws"
    )


def share_rows(summary: Mapping[str, Any]) -> list[list[str]]:
    """The table of shares: a line for each group with scored numbers, one for each table of several groups, one for all."""
    lines = []
    for table in summary["by_table"]:
        groups = [group for group in summary["by"] if group["table"] == table["table"] and group["scored"]]
        lines += [_share_row([g["table"], g["network"] or "", _words(g["quantity"])], g) for g in groups]
        if len(groups) > 1:
            lines.append(_share_row([table["table"], "", "all of it"], table))
    everything = {**summary["verdicts"], "scored": summary["scored"], "inside": summary["inside"]}
    return [*lines, _share_row(["all", "", ""], everything)] if len(summary["by_table"]) > 1 else lines


def _share_row(names: list[str], group: Mapping[str, Any]) -> list[str]:
    scored, draws, judged = group["scored"], group["draws"], group["with_tolerance"]
    return [
        *names,
        f"{group['inside']}/{scored}",
        f"{group['inside_range']}/{scored}",
        f"{group['inside_tolerance']}/{judged}" if judged else "-",
        f"{group['within_tenth']}/{scored}",
        f"{group['pit_middle']}/{draws}" if draws else "-",
        f"{group['pit_middle_expected']:.1f}" if draws else "-",
        _figure(group["ks"], 2),
        _probability(group["ks_p"]),
        _probability(group["ks_p_seeds"]),
    ]


def error_row(group: Mapping[str, Any], paper: Paper) -> list[str]:
    """How far the printed numbers of a group are from ours."""
    decimals = paper.quantities[group["quantity"]].decimals
    digits = decimals + 1 if decimals else 0
    relative = group["mean_relative_error"]
    return [
        group["table"],
        group["network"] or "",
        _words(group["quantity"]),
        _figure(group["mean_abs_error"], digits),
        "" if relative is None else f"{100 * relative:.1f} %",
        _figure(group["self_error"], digits),
        _figure(group["rank_correlation"], 2),
    ]


def ks_line(summary: Mapping[str, Any], table: str) -> str:
    """What Kolmogorov and Smirnov say of a table's numbers, in one line; empty where none of them is a draw."""
    groups = [group for group in summary["by"] if group["table"] == table and group["draws"]]
    named = [(f"{group['network'] or ''} {_words(group['quantity'])}".strip(), group) for group in groups]
    if len(named) > 1:
        named += [("all of it", group) for group in summary["by_table"] if group["table"] == table]
    parts = [
        f"{name} {group['ks']:.2f} ({group['draws']} {'number' if group['draws'] == 1 else 'numbers'}, "
        f"p {_probability(group['ks_p'])}"
        + (f", by seeds {_probability(group['ks_p_seeds'])})" if group["ks_p_seeds"] is not None else ")")
        for name, group in named
    ]
    return f"Kolmogorov-Smirnov: {'; '.join(parts)}." if parts else ""


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


def _coloured(word: str, width: int) -> Text:
    text = {"yes": YES, "no": NO, "-": NOT_SCORED}[word].copy()
    text.pad_right(width - len(word))
    return text


def _probability(value: float | None) -> str:
    if value is None:
        return ""
    return "< .001" if value < 0.0005 else f"{value:.3f}".removeprefix("0")


def _figure(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
