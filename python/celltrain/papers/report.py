"""Results of a reproduction: the numbers with their ensembles and the verdicts, as text, CSV, Parquet and a page."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain import _core
from celltrain.drawing import words
from celltrain.drawing.html import Inlined, Section, render_answer, sections
from celltrain.ensemble.cases import arrow
from celltrain.model import shipped
from celltrain.model.arguments import checked
from celltrain.model.files import replace, writing
from celltrain.model.grids import Block, Card, CardMixin, Grid, Line
from celltrain.papers import claims, figures, score
from celltrain.papers.claims import Claim
from celltrain.papers.paper import STUDY, Number, Paper, Table, grouped
from celltrain.papers.score import ENOUGH_SEEDS, FEWEST_SEEDS, Scored, against
from celltrain.running.tables import Column, write_csv, write_parquet

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

#: Number of seeds that a reproduction runs by default.
USUAL_SEEDS = 30
#: Maximum number of tolerances listed in the sentence about all numbers.
MOST_TOLERANCES = 4
#: Columns that mean little with few seeds.
OF_SEEDS = ("middle PIT", "expected", "KS", "p", "p by seeds")
#: The columns of the table of shares, and of the table of errors.
SHARES = ("table", "network", "quantity", "inside", "in seeds' range", "near mean", "10 %", *OF_SEEDS)
ERRORS = ("table", "network", "quantity", "mean error", "relative", "error of a seed", "rank correlation")


@dataclass(frozen=True, kw_only=True, repr=False)
class Reproduction(CardMixin):
    """Tables of a paper or a study, run again: every number with its ensemble, and every claim with its verdict.

    Attributes:
        seeds: Requested seeds, by network (under "" if the paper has none).
        scored: Printed numbers and those of experiments that were run, in the order of the paper.
        unfinished: Numbers without any finished run.
        command: Command that gives the same results.
        fingerprints: Fingerprint of each run, by configuration and seed.
        cell_hops: Number of cell transmissions over links, in all runs.
        elapsed_seconds: Wall-clock time of all runs.
        without_running: Number of runs with results copied from other runs, because certificates prove that they are
            equal.
        without_certificate: Reasons why the results of some runs could not be copied to other runs.
        interrupted: True if some runs did not finish.
    """

    paper: Paper
    seeds: Mapping[str, int]
    scored: Sequence[Scored]
    unfinished: Sequence[Number] = ()
    command: str = ""
    fingerprints: Mapping[tuple[int, int], str] = field(default_factory=dict)
    cell_hops: int = 0
    elapsed_seconds: float = 0.0
    without_running: int = 0
    without_certificate: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def numbers(self) -> list[Scored]:
        """The printed numbers, or all numbers of a study."""
        return [s for s in self.scored if s.number.published is not None or self.paper.kind is STUDY]

    @property
    def experiments(self) -> list[Scored]:
        """Numbers without a printed value, run for the paper's claims."""
        return [s for s in self.scored if s.number.published is None and self.paper.kind is not STUDY]

    @property
    def agrees(self) -> bool:
        """True if every scored number is inside and every claim holds."""
        scored = [number for number in self.numbers if number.number.scored]
        inside = all(number.inside for number in scored) and not any(number.scored for number in self.unfinished)
        return inside and all(claim.holds for claim in self.claims)

    @property
    def claims(self) -> list[Claim]:
        """The verdicts on all claims whose rows were all requested. A claim is open if too few seeds have finished."""
        return self._judged[0]

    @property
    def held(self) -> tuple[int, int, int]:
        """Numbers of claims that hold, that are not open, and that are open."""
        still_open = sum(claim.open for claim in self.claims)
        return sum(claim.holds is True for claim in self.claims), len(self.claims) - still_open, still_open

    @property
    def claims_left_out(self) -> list[str]:
        """The ids of claims that need rows that were not requested."""
        return self._judged[1]

    @property
    def ratios(self) -> list[dict[str, Any]]:
        """Ratios between the rows of each experiment and the row that its `against` selects, paired by seed."""
        return [one.to_dict() for table in self.paper.tables for one in against(table, self.scored)]

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Counts of the numbers that agree, in total and by table, network and quantity."""
        return score.summary(self.scored, self.unfinished)

    @property
    def finished(self) -> str:
        """Finished seeds in words, and if not all finished, of how many, such as `1 to 3 of 10`; of the network with most."""
        return self.finished_of(max(self.seeds, key=lambda network: self.seeds[network]))

    def finished_of(self, network: str) -> str:
        """Returns the finished seeds of a network in words; see `finished`."""
        requested = self.seeds[network]
        done = [len(s.seeds) for s in self.scored if (s.number.network or "", s.requested) == (network, requested)]
        done += [0 for number in self.unfinished if (number.network or "") == network]
        if not self.interrupted or not done or min(done) == requested:
            return f"{requested:,}"
        few, most = min(done), max(done)
        return f"{few if few == most else f'{few} to {most}'} of {requested:,}"

    @cached_property
    def _judged(self) -> tuple[list[Claim], list[str]]:
        return claims.judge(self.paper, self.scored, self.unfinished)

    def to_dict(self) -> dict[str, Any]:
        """Returns the output of `celltrain reproduce --json`, or of `celltrain study --json`."""
        return {
            self.paper.kind.word: self.paper.id,
            "seeds": max(self.seeds.values()),
            "numbers": [scored.to_dict() for scored in self.numbers],
            "claims": [claim.to_dict() for claim in self.claims],
            "summary": self.summary,
            "seeds_by_network": dict(self.seeds),
            "experiments": [scored.to_dict() for scored in self.experiments],
            "claims_left_out": self.claims_left_out,
            **({"ratios": ratios} if (ratios := self.ratios) else {}),
            "overrides": self.paper.overrides,
            **{
                name: getattr(self, name)
                for name in ("interrupted", "cell_hops", "elapsed_seconds", "without_running", "without_certificate")
            },
            "build": _core.build(),
        }

    def to_json(self) -> str:
        """Returns the answer as text."""
        return json.dumps(self.to_dict(), allow_nan=False, indent=1)

    def to_pandas(self) -> Any:
        """Returns a row for each number as a pandas DataFrame; needs `pip install celltrain[frames]`."""
        return numbers_table(self).to_pandas()

    def compare(self, *, console: Console | None = None) -> None:
        """Prints each table with printed and simulated values, then the summary and the claims."""
        from rich.console import Console

        console = console or Console()
        for block in blocks(self):
            console.print(block)

    @checked()
    def write(
        self, folder: str | os.PathLike[str], *, width: str | None = None, style: str | None = None
    ) -> list[Path]:
        """Writes everything into a folder: the answer as JSON, numbers and seeds as CSV and Parquet, figures, a page.

        Figures are left out without matplotlib and after an interrupt: they take seconds, and some need extra runs. The
        page is left out without Jinja2. Returns the files written.

        Args:
            folder: Folder for the files.
            width: Width of the figures: `page`, `column` or a length such as `8.5cm`; as wide as they need when None.
            style: Style of the figures: one of matplotlib's, such as `grayscale`, or a style file.
        """
        path = Path(folder)
        written = [path / f"{self.paper.kind.command}.json"]
        with writing(folder):
            path.mkdir(parents=True, exist_ok=True)
            replace(written[0], self.to_json() + "\n")
            for name, table in (("numbers", numbers_table(self)), ("seeds", seeds_table(self))):
                for kind, write in (("csv", write_csv), ("parquet", write_parquet)):
                    written.append(path / f"{name}.{kind}")
                    write(table, written[-1])
            drawn = []
            if find_spec("matplotlib") and not self.interrupted:
                drawn = figures.write(self.paper, self.scored, path, width=width, style=style)
            written += drawn
            if find_spec("jinja2"):
                # Write the page last, so that a folder with a page is complete.
                written.append(path / f"{self.paper.kind.command}.html")
                replace(written[-1], page(self, [file for file in drawn if file.suffix == ".svg"]))
        return written

    def html(self) -> str:
        """Returns everything except the figures as one self-contained page."""
        return page(self)

    def _card(self) -> Card:
        notes = [".compare() prints every table, .write(folder) writes a page, tables and figures"]
        return Card.of(repr(self), blocks(self, brief=True), notes)

    def __repr__(self) -> str:
        held, decided, _ = self.held
        inside = f"{self.summary['inside']} of {self.summary['scored']} numbers inside"
        return (
            f"Reproduction({self.paper.id!r}, {inside if self.paper.has_print else f'{len(self.scored)} numbers'}, "
            f"{held} of {decided} claims hold{', interrupted' if self.interrupted else ''})"
        )


def page(reproduction: Reproduction, drawings: Sequence[Path] = ()) -> str:
    """Renders a reproduction as an HTML page that includes the given SVG figures."""
    paper, summary = reproduction.paper, reproduction.summary
    titles = {f"{paper.id}-{spec['id']}": spec["title"] for spec in paper.figures}
    parts = sections(blocks(reproduction), "What was run")
    if drawings:
        drawn = [Inlined.of_svg(file.stem, titles[file.stem], file.read_bytes()) for file in drawings]
        parts.append(Section(id="figures", title="Figures", parts=[*drawn]))
    held, decided, still_open = reproduction.held
    build = _core.build()
    undecided = summary["undecided"]
    facts = (
        (True, f"{len(reproduction.scored):,}", "numbers"),
        (True, reproduction.finished, "seeds"),
        (
            summary["scored"],
            f"{summary['inside']} of {summary['scored']}",
            f"published values {rule(reproduction.scored)}",
        ),
        (undecided, f"{undecided}", "published values without enough runs"),
        (decided, f"{held} of {decided}", "claims hold"),
        (still_open, f"{still_open}", "claims open: not enough runs"),
    )
    today = date.today().isoformat()
    subtitle = f"{paper.kind.word.capitalize()} {paper.id}, run by celltrain {build['version']}, written on {today}"
    if reproduction.command:
        parts[0].parts.insert(0, Line(text=f"Command: {reproduction.command}"))
    return render_answer(paper.title, subtitle, [(number, what) for shown, number, what in facts if shown], [], parts)


def blocks(reproduction: Reproduction, *, brief: bool = False) -> Iterator[Block]:
    """Yields the lines and tables of a reproduction.

    If `brief`, yields only counts, and numbers and claims that do not agree.
    """
    yield from _head(reproduction)
    summary = reproduction.summary
    for table in reproduction.paper.tables:
        members = [scored for scored in reproduction.scored if scored.number.table == table.number]
        if brief:
            members = [scored for scored in members if scored.number.scored and scored.inside is False]
        if members:
            yield Line(text=table.heading + (": numbers that do not agree" if brief else ""), style="bold")
            counted = any(len(scored.seeds) != reproduction.seeds[scored.number.network or ""] for scored in members)
            yield (experiment_grid if table.experiment else number_grid)(table, members, seeds=counted)
            if judged := counted_by([scored.number for scored in members], RULES):
                yield _note(f"agrees: if the published value is {judged}", in_print=True)
            notes = enumerate(footnotes(members), start=1)
            yield from (_note(f"{mark}) {note}", in_print=True) for mark, note in notes)
            yield Line(text="")
    if summary["scored"] or summary["undecided"]:
        if not brief:
            yield _note(shipped.package_data("papers/tables.toml")["columns"])
            yield Line(text="")
        yield Line(text=agreement(summary, reproduction.scored), style="bold")
    if summary["scored"]:
        yield from _summary(reproduction, brief=brief)
    if reproduction.claims:
        yield from _claims(reproduction, brief=brief)
    if reproduction.claims_left_out:
        count = len(reproduction.claims_left_out)
        yield Line(text=f"{count} claims need rows or tables that were not run, and are left out.")


def _note(text: str, *, in_print: bool = False) -> Line:
    return Line(text=text, style="dim", is_note=in_print)


def _head(reproduction: Reproduction) -> Iterator[Line]:
    paper, warning = reproduction.paper, "bold yellow"
    if paper.kind is STUDY:
        yield Line(text=paper.title, style="bold")
        yield Line(text=paper.question)
        yield Line(text=f"It follows {paper.follows}")
    else:
        yield Line(text=f"{paper.title} ({paper.published_in})", style="bold")
    seeds = ", ".join(
        f"{reproduction.finished_of(network)} {'seed' if count == 1 else 'seeds'} {network}".rstrip()
        for network, count in reproduction.seeds.items()
    )
    ours = "ours: " if paper.has_print else ""
    yield Line(text=f"{seeds}; {ours}mean over the seeds, and the range from the lowest to the highest")
    if reproduction.without_running:
        count = len(reproduction.fingerprints)
        yield Line(
            text=f"{words.counted(count, 'run')}, {reproduction.without_running:,} of them copied from equal runs"
        )
    fewest = min(reproduction.seeds.values())
    if paper.has_print and fewest < FEWEST_SEEDS:
        text = f"{words.counted(fewest, 'seed')}: the range means little; {USUAL_SEEDS} is the default"
        yield Line(text=text, style=warning)
    for path, value in paper.overrides.items():
        yield Line(text=f"Changed from the {paper.kind.word}: {path} = {value!r}", style=warning)
    if reproduction.interrupted:
        missing = f"; {count} numbers have none" if (count := len(reproduction.unfinished)) else ""
        needed = f"A verdict needs {ENOUGH_SEEDS} finished seeds, or all that were requested if these are fewer."
        text = f"Interrupted: results cover finished runs only{missing}. {needed}"
        yield Line(text=text, style=warning)
    yield Line(text="")


def number_grid(table: Table, members: Sequence[Scored], *, seeds: bool) -> Grid:
    """Returns a row for each published number: key, the paper's value, ours, the range of the seeds, the verdict.

    With `seeds`, a column shows the number of finished seeds for each number.
    """
    keys = [key for key in table.keys if key != "network"]
    heads = [*map(_words, keys), "paper", "ours", "range", *(["seeds"] if seeds else []), "agrees", "PIT"]
    grid = Grid(heads=heads, left=[*_word_columns(keys, members), len(heads) - 2], keys=len(keys))
    marks = {note: f" {mark})" for mark, note in enumerate(footnotes(members), start=1)}

    def label(scored: Scored) -> str:
        quantity, network = scored.number.quantity, scored.number.network if "network" in table.keys else None
        return words.label(quantity.name, quantity.unit) + (f", {network}" if network else "")

    for title, group in grouped(members, label).items():
        grid.add_group(title)
        for scored in group:
            verdict, pit = "-", "-"
            if scored.number.scored:
                verdict = _yes(scored.inside) if scored.enough else "not enough runs"
                pit = _figure(scored.pit, 2) or "-"
            row = [str(scored.number.row[key]) for key in keys]
            printed = f"{scored.printed:.{scored.number.quantity.decimals}f}"
            row += [printed, *mean_and_range(scored), *([str(len(scored.seeds))] if seeds else [])]
            grid.add_row(*row, verdict + marks.get(footnote(scored), ""), pit)
    return grid


def experiment_grid(table: Table, members: Sequence[Scored], *, seeds: bool) -> Grid:
    """Returns a row for each setting of an experiment: the mean and the range of each quantity; see `number_grid`."""
    heads = list(map(_words, [*table.keys, *table.quantities, *(["seeds"] if seeds else [])]))
    grid = Grid(heads=heads, left=_word_columns(table.keys, members), keys=len(table.keys))
    for row in rows(members):
        by_quantity = {scored.number.quantity.name: mean_and_range(scored) for scored in row}
        ours = [by_quantity.get(name, ("", "")) for name in table.quantities]
        cells = [f"{mean} ({span})" if span else mean for mean, span in ours]
        few, most = (of(len(scored.seeds) for scored in row) for of in (min, max))
        cells += [str(most) if few == most else f"{few} to {most}"] if seeds else []
        grid.add_row(*(str(row[0].number.row[key]) for key in table.keys), *cells)
    return grid


def _word_columns(keys: Sequence[str], members: Sequence[Scored]) -> list[int]:
    return [place for place, key in enumerate(keys) if isinstance(members[0].number.row.get(key), str)]


def agreement(summary: Mapping[str, Any], numbers: Sequence[Scored]) -> str:
    """Returns a sentence for each verdict, with the number of published values that have it."""
    verdicts, scored, once, undecided = (summary[key] for key in ("verdicts", "scored", "once", "undecided"))
    open_text = f"{undecided} published values have too few finished runs for a verdict."
    if not scored:
        return open_text
    text = (
        f"{summary['inside']} of {scored} published values are {rule(numbers)} ({100 * summary['share_inside']:.0f} %). "
        f"Within the range of our seeds: {verdicts['inside_range']} of {scored}."
    )
    if once["scored"] < scored:
        text += (
            f" The paper prints {scored - once['scored']} of them in another table, too; with each counted once, "
            f"{once['inside']} of {once['scored']} agree."
        )
    text += f" {open_text}" if undecided else ""
    if verdicts["with_tolerance"]:
        allowed = list(dict.fromkeys(one.number.allowed for one in numbers if one.number.scored and one.number.allowed))
        listed = " or ".join(filter(None, [", ".join(allowed[:-1]), *allowed[-1:]])) or "0"
        named = listed if len(allowed) <= MOST_TOLERANCES else "in the notes"
        inside = f"{verdicts['inside_tolerance']} of {verdicts['with_tolerance']}"
        text += f" Within the stated tolerance of our mean ({named}): {inside}."
    if few_seeds(numbers):
        text += " PIT: there are too few seeds for the test."
    elif verdicts["draws"]:
        middle, expected = verdicts["pit_middle"], verdicts["pit_middle_expected"]
        text += f" With a PIT between .05 and .95: {middle} of {verdicts['draws']} ({expected:.0f} expected)."
    return text


#: Rule by which a published value agrees, by `judged_by`.
RULES = {
    "range": "inside the seeds' range",
    "mean": "within tolerance of our mean",
    "either": "within tolerance or inside the seeds' range",
}


def rule(numbers: Sequence[Scored]) -> str:
    """Returns the rule by which the scored numbers agree, as a phrase that follows "are"."""
    judged = {one.number.judged_by for one in numbers if one.number.scored}
    return RULES[judged.pop()] if len(judged) == 1 else RULES["either"]


def counted_by(numbers: Iterable[Number], rules: Mapping[str, str]) -> str:
    """Returns the rule by which the scored numbers of a table agree, by quantity if it differs; empty if none is scored."""
    by = grouped((one for one in numbers if one.scored), lambda one: one.judged_by)
    if len(by) == 1:
        return "".join(rules[str(name)] for name in by)
    quantities = {name: list(dict.fromkeys(_words(one.quantity.name) for one in same)) for name, same in by.items()}
    return ", and ".join(f"{rules[str(name)]} for {' and '.join(of)}" for name, of in quantities.items())


def rows(members: Sequence[Scored]) -> list[list[Scored]]:
    """Groups the numbers of a table by row."""
    return list(grouped(members, lambda scored: tuple(scored.number.row.items())).values())


def footnotes(members: Sequence[Scored]) -> list[str]:
    """Returns the distinct notes on the numbers of a table, with their tolerances."""
    return list(dict.fromkeys(note for scored in members if (note := footnote(scored))))


def footnote(scored: Scored) -> str:
    """Returns the note on a number, with the tolerance that decides whether it agrees; empty if it has neither."""
    number = scored.number
    if not number.scored or not number.allowed or "allowed" in number.note:
        return number.note
    of = {"mean": " from the mean", "either": " from the mean, or within the range of the seeds", "range": ""}
    return f"{number.note}; allowed {number.allowed}{of[number.judged_by]}".removeprefix("; ")


def few_seeds(members: Sequence[Scored]) -> bool:
    """Returns whether some scored random number has too few seeds for a PIT test."""
    draws = [scored for scored in members if scored.number.scored and not scored.number.point]
    return any(len(scored.seeds) < FEWEST_SEEDS for scored in draws)


def mean_and_range(scored: Scored) -> tuple[str, str]:
    """Returns the mean and the range of the seeds, with as many decimals as printed; no range if all are the same."""
    decimals = scored.number.quantity.decimals
    mean, low, high = (f"{value:.{decimals}f}" for value in (scored.mean, scored.low, scored.high))
    return mean, "" if low == high else f"{low}\u2013{high}"


def _summary(reproduction: Reproduction, *, brief: bool) -> Iterator[Block]:
    """For each table, network and quantity, yields the errors, and the counts of numbers that agree, by verdict."""
    summary, paper = reproduction.summary, reproduction.paper
    few = few_seeds(reproduction.scored)
    shares = [
        ["-" if few and head in OF_SEEDS else cell for head, cell in zip(SHARES, line, strict=True)]
        for line in share_rows(summary)
    ]
    yield _dense(SHARES[:6] if brief else SHARES, shares, paper)
    if brief:
        return
    yield from (
        _note(f"{term}: {meaning}")
        for term, meaning in shipped.package_data("papers/tables.toml")["legend"]
        if not (few and term in OF_SEEDS)
    )
    yield Line(text="")
    yield Line(text="How close", style="bold")
    yield _dense(ERRORS, [error_row(group, paper) for group in summary["by"]], paper)
    yield _note(
        "mean error: distance of the printed value from the mean of the seeds; error of a seed: from the mean of the others; "
        "relative: mean error as a share of the printed value"
    )
    yield Line(text="")


def _dense(heads: Sequence[str], lines: Sequence[Sequence[str]], paper: Paper) -> Grid:
    """Makes a table of the summary without its empty columns, and with the units of the quantities."""
    titles = {_words(name): words.label(name, quantity.unit) for name, quantity in paper.quantities.items()}
    kept = [place for place in range(len(heads)) if place == 0 or any(line[place] not in ("", "-") for line in lines)]
    keys = sum(place < 3 for place in kept)
    grid = Grid(heads=[heads[place] for place in kept], left=range(keys), keys=keys)
    for line in lines:
        grid.add_row(*(titles.get(line[2], line[2]) if place == 2 else line[place] for place in kept))
    return grid


def share_rows(summary: Mapping[str, Any]) -> list[list[str]]:
    """Returns a line for each group with scored numbers, for each table with several groups, and for all numbers."""
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
    """Returns the errors of a group: distances of the printed numbers from ours."""
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


def _claims(reproduction: Reproduction, *, brief: bool) -> Iterator[Block]:
    """Yields every claim: whether it holds in the runs, for how many single seeds, and for the printed numbers."""
    held, decided, still_open = reproduction.held
    # A study has no text that could be quoted.
    text = "" if reproduction.paper.kind is STUDY else "of the text "
    result = f"{held} of {decided} claims {text}hold"
    if still_open:
        result += f"; {still_open} more claims are open, because not enough runs finished"
    yield Line(text=result, style="bold")
    in_print = ["in print"] if reproduction.paper.has_print else []
    heads = ["holds", "seeds", *in_print, "claim, and evidence of the runs"]
    grid = Grid(heads=heads, left=[place for place, head in enumerate(heads) if head != "seeds"])
    for claim in reproduction.claims:
        if not (brief and claim.holds):
            share = "" if claim.seeds_share is None else f"{round(claim.seeds_share * claim.seeds)}/{claim.seeds}"
            printed = "" if claim.published_holds is None else _yes(claim.published_holds)
            near = f"; with neighbouring thresholds: {_yes(claim.neighbour_holds)}" if claim.neighbour_evidence else ""
            text = f"{claim.text} ({claim.id}: {claim.evidence}{near})"
            grid.add_row("open" if claim.open else _yes(claim.holds), share, *(printed for _ in in_print), text)
    if grid.rows:
        yield grid


def _yes(holds: bool | None) -> str:
    return "undecided" if holds is None else "yes" if holds else "no"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _probability(value: float | None) -> str:
    if value is None:
        return ""
    return "< .001" if value < 0.0005 else f"{value:.3f}".removeprefix("0")


def _figure(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def numbers_table(reproduction: Reproduction) -> pa.Table:
    """Returns a row for each number: its row in the paper's table, the printed value, and the values of all seeds.

    The unit of the values is in the column `unit`.
    """
    content = [{**entry, **entry["row"]} for entry in (scored.to_dict() for scored in reproduction.scored)]
    return _table(reproduction, content, "numbers")


def seeds_table(reproduction: Reproduction) -> pa.Table:
    """Returns a row for each row of a table and each seed: all quantities of that row, and the run's fingerprint."""
    content = []
    for table in reproduction.paper.tables:
        for group in rows([scored for scored in reproduction.scored if scored.number.table == table.number]):
            number = group[0].number
            values = {
                scored.number.quantity.name: dict(zip(scored.seeds, scored.values, strict=True)) for scored in group
            }
            for seed in sorted(set().union(*values.values())):
                content.append(
                    {"table": number.table, "network": number.network, **number.row, "seed": seed}
                    | {name: of_seed.get(seed) for name, of_seed in values.items()}
                    | {"fingerprint": reproduction.fingerprints.get((number.configuration, seed))}
                )
    return _table(reproduction, content, "seeds")


def _table(reproduction: Reproduction, content: list[dict[str, Any]], name: str) -> pa.Table:
    """Makes a table with a column for each key.

    If a key, such as the network, has the name of another column, it gets no second column.
    """
    paper, used = reproduction.paper, {key for scored in reproduction.scored for key in scored.number.row}
    columns = {one["name"]: Column(**one) for one in shipped.package_data("papers/tables.toml")[name]}
    of_rows = {
        key.name: Column(key.name, _type(row[key.name] for row in content if key.name in row), key.unit, key.meaning)
        for key in paper.keys.values()
        if key.name in used
    }
    by_name = {"table": columns.pop("table"), **of_rows, **columns}
    if name == "seeds":
        fingerprint = by_name.pop("fingerprint")
        by_name |= {one.name: Column(one.name, "float64", one.unit, one.meaning) for one in paper.quantities.values()}
        by_name["fingerprint"] = fingerprint
    return arrow((column, [_cell(row.get(name), column) for row in content]) for name, column in by_name.items())


def _type(values: Iterable[object]) -> str:
    """Returns the type of a key's column: string if some value is a word, such as a total among VCs."""
    types = set(map(type, values))
    return "int64" if types == {int} else "float64" if types <= {int, float} else "string"


def _cell(value: Any, column: Column) -> Any:
    return str(value) if column.kind == "string" and value is not None else value
