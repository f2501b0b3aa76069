"""A reproduction as text: the paper's tables with ours beside them, or those of a study, then the summary and the claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from celltrain.drawing.pages import words
from celltrain.model.grids import Block, Grid, Line
from celltrain.papers.paper import STUDY, Paper, Table, seed_count
from celltrain.papers.score import Scored

if TYPE_CHECKING:
    from rich.console import Console

    from celltrain.papers.run import Reproduction

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


#: Seeds that a reproduction runs by default; of fewer than `FEW` the range says little.
USUAL_SEEDS, FEW = 30, 10
#: Tolerances that the sentence on all numbers names.
MOST_TOLERANCES = 4
#: What the columns of a table of numbers mean.
COLUMNS = (
    "agrees: by the rule of the paper's file; -: not scored. PIT: place of the published value among the seeds, 0 to 1."
)


def blocks(reproduction: Reproduction, *, brief: bool = False) -> Iterator[Block]:
    """A reproduction in lines and tables; `brief`: counts, and the numbers and claims that do not agree."""
    paper, summary = reproduction.paper, reproduction.summary
    if paper.kind is STUDY:
        yield Line(text=paper.title, style="bold")
        yield Line(text=paper.question)
        yield Line(text=f"It follows {paper.follows}")
    else:
        yield Line(text=f"{paper.title} ({paper.published_in})", style="bold")
    printed_ones = any(not table.experiment for table in paper.tables)
    yield Line(text=_seeds(reproduction, printed=printed_ones))
    if printed_ones and (few := min(reproduction.seeds.values())) < FEW:
        said = f"{seed_count(few)}: the range means little; {USUAL_SEEDS} is the default"
        yield Line(text=said, style="bold yellow")
    for path, value in paper.overrides.items():
        yield Line(text=f"Not the {paper.kind.word} as it stands: {path} = {value!r}", style="bold yellow")
    if reproduction.interrupted:
        yield Line(text="Interrupted: what follows holds only the runs that had ended.", style="bold yellow")
    yield Line(text="")
    for table in paper.tables:
        members = [scored for scored in reproduction.scored if scored.number.table == table.number]
        if brief:
            members = [scored for scored in members if scored.number.scored and not scored.inside]
        few = few_seeds(members)
        if members:
            yield Line(text=table.heading + (": numbers that do not agree" if brief else ""), style="bold")
            yield experiment_grid(table, members) if table.experiment else number_grid(table, members)
            for mark, note in enumerate(footnotes(members), start=1):
                yield Line(text=f"{mark}) {note}", style="dim")
            if not brief and not few and (line := ks_line(summary, table.number)):
                yield Line(text=line, style="dim")
            yield Line(text="")
    if summary["scored"]:
        if not brief:
            yield Line(text=COLUMNS, style="dim")
            yield Line(text="")
        yield Line(text=agreement(summary, reproduction.scored), style="bold")
    if summary["by"]:
        yield from summary_blocks(reproduction, brief=brief)
    if reproduction.claims:
        yield from _claims(reproduction, brief=brief)
    if reproduction.claims_left_out:
        count = len(reproduction.claims_left_out)
        yield Line(text=f"{count} claims need tables that were not run, and are left out.")


def show(reproduction: Reproduction, *, console: Console | None = None) -> None:
    """Prints everything."""
    if console is None:
        from rich.console import Console

        console = Console()
    for block in blocks(reproduction):
        console.print(block)


def _seeds(reproduction: Reproduction, *, printed: bool) -> str:
    seeds = ", ".join(f"{seed_count(count)} {network}".rstrip() for network, count in reproduction.seeds.items())
    return f"{seeds}; {'ours: ' if printed else ''}mean over the seeds, and the range from the lowest to the highest"


def number_grid(table: Table, members: Sequence[Scored]) -> Grid:
    """A row for each published number: its key, the paper's value, ours, the range of the seeds, the verdict."""
    keys = [key for key in table.keys if key != "network"]
    left = [place for place, key in enumerate(keys) if isinstance(members[0].number.row.get(key), str)]
    heads = [*map(_words, keys), "paper", "ours", "range", "agrees", "PIT"]
    grid = Grid(heads=heads, left=[*left, len(heads) - 2], keys=len(keys))
    marks = {note: f" {mark})" for mark, note in enumerate(footnotes(members), start=1)}
    groups: dict[str, list[Scored]] = {}
    for scored in members:
        network = scored.number.network or "" if "network" in table.keys else ""
        name = words.measure(scored.number.quantity.name, scored.number.quantity.unit)
        groups.setdefault(f"{name}, {network}".removesuffix(", "), []).append(scored)
    for label, group in groups.items():
        grid.add_group(label)
        for scored in group:
            verdict, pit = "-", "-"
            if scored.number.scored:
                verdict, pit = "yes" if scored.inside else "no", f"{scored.pit:.2f}"
            mark = marks.get(footnote(scored), "")
            row = [str(scored.number.row[key]) for key in keys]
            grid.add_row(*row, printed(scored), *mean_and_range(scored), verdict + mark, pit)
    return grid


def experiment_grid(table: Table, members: Sequence[Scored]) -> Grid:
    """A row for each setting of an experiment, which has nothing in print: the mean and the range of each quantity."""
    keys = list(table.keys)
    left = [place for place, key in enumerate(keys) if isinstance(members[0].number.row.get(key), str)]
    grid = Grid(heads=[*map(_words, keys), *map(_words, table.quantities)], left=left, keys=len(keys))
    for row in rows(members):
        by_quantity = {scored.number.quantity.name: scored for scored in row}
        cells = [ours(by_quantity[name]) if name in by_quantity else "" for name in table.quantities]
        grid.add_row(*(str(row[0].number.row[key]) for key in keys), *cells)
    return grid


def agreement(summary: Mapping[str, Any], numbers: Sequence[Scored]) -> str:
    """Sentences that count the published values that agree, by each verdict."""
    counted, scored = summary["verdicts"], summary["scored"]
    text = (
        f"{summary['inside']} of {scored} published values agree ({100 * summary['share_inside']:.0f} %). "
        f"Within the range of our seeds: {counted['inside_range']} of {scored}."
    )
    if counted["with_tolerance"]:
        inside, judged = counted["inside_tolerance"], counted["with_tolerance"]
        allowed = list(dict.fromkeys(one.number.allowed for one in numbers if one.number.scored and one.number.allowed))
        listed = " or ".join([part for part in (", ".join(allowed[:-1]), *allowed[-1:]) if part]) or "0"
        named = listed if len(allowed) <= MOST_TOLERANCES else "in the notes"
        text += f" Within the stated tolerance of our mean ({named}): {inside} of {judged}."
    if few_seeds(numbers):
        text += " PIT: too few seeds to test."
    elif counted["draws"]:
        middle, draws, expected = counted["pit_middle"], counted["draws"], counted["pit_middle_expected"]
        text += f" With a PIT between .05 and .95: {middle} of {draws} ({expected:.0f} expected)."
    return text


def rows(members: Sequence[Scored]) -> list[list[Scored]]:
    """The numbers of a table, those of one row together."""
    grouped: dict[tuple[object, ...], list[Scored]] = {}
    for scored in members:
        grouped.setdefault(tuple(scored.number.row.items()), []).append(scored)
    return list(grouped.values())


def notes(members: Sequence[Scored]) -> list[str]:
    """The different notes on a table's numbers, in the order they come."""
    return list(dict.fromkeys(scored.number.note for scored in members if scored.number.note))


def footnotes(members: Sequence[Scored]) -> list[str]:
    """The different notes on a table's numbers, with the tolerances by which numbers agree."""
    return list(dict.fromkeys(note for scored in members if (note := footnote(scored))))


def footnote(scored: Scored) -> str:
    """The note on a number, with the tolerance that decides whether it agrees; empty if there is nothing to say."""
    number = scored.number
    if not number.scored or not number.allowed or "allowed" in number.note:
        return number.note
    of = {"mean": " from the mean", "either": " from the mean, or within the range of the seeds"}.get(
        number.judged_by, ""
    )
    return f"{number.note}; allowed {number.allowed}{of}".removeprefix("; ")


def few_seeds(members: Sequence[Scored]) -> bool:
    """Returns whether some of the scored numbers are draws with too few seeds to test their place among the seeds."""
    draws = [scored for scored in members if scored.number.scored and not scored.number.point]
    return any(len(scored.seeds) < FEW for scored in draws)


def printed(scored: Scored) -> str:
    """The published value, with as many decimals as the paper prints."""
    return f"{scored.printed:.{scored.number.quantity.decimals}f}"


def ours(scored: Scored) -> str:
    """Mean and range of the seeds in one text, with as many decimals as the paper prints."""
    mean, span = mean_and_range(scored)
    return f"{mean} ({span})" if span else mean


def mean_and_range(scored: Scored) -> tuple[str, str]:
    """Mean and range of the seeds, with as many decimals as the paper prints; no range if all are the same."""
    decimals = scored.number.quantity.decimals
    mean, low, high = (f"{value:.{decimals}f}" for value in (scored.mean, scored.low, scored.high))
    return mean, "" if low == high else f"{low}\u2013{high}"


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


def summary_blocks(reproduction: Reproduction, *, brief: bool = False) -> Iterator[Block]:
    """How many numbers agree, by each verdict, and how closely: per table, network and quantity."""
    summary = reproduction.summary
    columns = SHARES[:6] if brief else SHARES
    units = {name: quantity.unit for name, quantity in reproduction.paper.quantities.items()}
    titles = {_words(name): words.measure(name, unit) for name, unit in units.items()}
    few = few_seeds(reproduction.scored)
    shares = [
        ["-" if few and head in OF_SEEDS else cell for head, cell in zip(SHARES, line, strict=True)]
        for line in share_rows(summary)
    ]
    yield _dense(columns, [[*line[:2], titles.get(line[2], line[2]), *line[3:]] for line in shares])
    if brief:
        return
    for term, meaning in LEGEND.items():
        if not (few and term in OF_SEEDS):
            yield Line(text=f"{term}: {meaning}", style="dim")
    yield Line(text="")
    yield Line(text="How close", style="bold")
    errors = [error_row(group, reproduction.paper) for group in summary["by"]]
    yield _dense(ERRORS, [[*line[:2], titles.get(line[2], line[2]), *line[3:]] for line in errors])
    yield Line(
        text="mean error: printed value to mean of the seeds; error of a seed: one seed to the mean of the others; "
        "relative: mean error as a share of the printed value",
        style="dim",
    )
    yield Line(text="")


def _dense(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> Grid:
    """A table of a summary, without the columns that say nothing."""
    kept = [place for place in range(len(heads)) if place == 0 or any(line[place] not in ("", "-") for line in lines)]
    grid = Grid(heads=[heads[place] for place in kept], left=(), keys=sum(place < 3 for place in kept))
    grid.left = tuple(range(grid.keys))
    for line in lines:
        grid.add_row(*(line[place] for place in kept))
    return grid


#: The columns of the table of shares.
SHARES = (
    *("table", "network", "quantity", "inside", "in range", "near mean", "10 %", "middle PIT"),
    *("expected", "KS", "p", "p by seeds"),
)
#: Columns that say nothing with few seeds.
OF_SEEDS = SHARES[7:]
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


def _claims(reproduction: Reproduction, *, brief: bool) -> Iterator[Block]:
    """Every claim, whether it holds in our runs, in how many of the seeds alone, and in print, and why."""
    held = sum(claim.holds for claim in reproduction.claims)
    # A study follows no text, and of some papers no number is in print.
    text = "" if reproduction.paper.kind is STUDY else "of the text "
    printed = any(not table.experiment for table in reproduction.paper.tables)
    yield Line(text=f"{held} of {len(reproduction.claims)} claims {text}hold", style="bold")
    columns = ["holds", "seeds", *(["in print"] if printed else []), "claim, and what the runs show"]
    grid = Grid(heads=columns, left=[place for place, name in enumerate(columns) if name != "seeds"])
    for claim in reproduction.claims:
        if brief and claim.holds:
            continue
        in_print = "" if claim.published_holds is None else _yes(claim.published_holds)
        share = "" if claim.seeds_share is None else f"{100 * claim.seeds_share:.0f} %"
        said = f"{claim.text} ({claim.id}: {claim.evidence})"
        grid.add_row(_yes(claim.holds), share, *([in_print] if printed else []), said)
    if grid.rows:
        yield grid


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _probability(value: float | None) -> str:
    if value is None:
        return ""
    return "< .001" if value < 0.0005 else f"{value:.3f}".removeprefix("0")


def _figure(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
