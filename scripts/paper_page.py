"""Keeps the numbers and claims of a saved answer as tables in docs/results, and fills the page of its paper or study.

    celltrain reproduce af-96-1269 --json > out/af-96-1269.json
    python scripts/paper_page.py out/af-96-1269.json

    celltrain study tagging --out out/tagging
    python scripts/paper_page.py out/tagging/study.json

The tables are CSV files with the printed digits: docs/results/<id>/numbers.csv, ratios.csv, claims.csv, shares.csv and
errors.csv. `page_tables.py` builds them into the site. The page, docs/papers/<id>.md or docs/studies/<id>.md, gets the
counts, between `<!-- numbers:begin -->` and `<!-- numbers:end -->`, and between the same marks for claims. The script
also copies figures next to the answer to docs/images: all figures of a study or of a paper without printed numbers, and
those figures of other papers that their pages show.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from celltrain.drawing.words import counted as count_of
from celltrain.papers.paper import PAPER, STUDY, Paper, Table, load
from celltrain.papers.report import ERRORS, SHARES, counted_by, error_row, share_rows

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
#: Columns of numbers.csv that contain verdicts, and their headings on pages.
VERDICTS = {"in_range": "in seeds' range", "near_mean": "near mean", "pit": "PIT"}
#: Rules by which a number counts as inside.
RULES = {"range": "in the seeds' range", "mean": "near the mean", "either": "in the seeds' range or near the mean"}
#: Tables longer than this become files.
MOST_WORDS = 120
#: Maximum number of words of a cell in a table on a page.
CELL = 15
CELLS = re.compile(r"(?<!\\)\|")
#: A row of a CSV file.
Row = Mapping[str, str]


def main() -> int:
    """Reads the answer, writes the tables and fills the page."""
    parser = argparse.ArgumentParser(description="Keep the tables of a saved answer, and fill its page.")
    parser.add_argument("answer", type=Path, help="what `celltrain reproduce <paper> --json` or `study` printed")
    arguments = parser.parse_args()
    answer = json.loads(arguments.answer.read_text(encoding="utf-8"))
    kind = PAPER if PAPER.word in answer else STUDY
    paper = load(answer[kind.word], kind=kind)
    keep(answer, paper)
    page = ROOT / "docs" / kind.folder / f"{paper.id}.md"
    for block, head in (("numbers", counted(answer, paper)), ("claims", held(results(paper.id, "claims")))):
        fill(page, block, f"{head}\n\n[All {block}](../results/{paper.id}/{block}.csv)")
    text = page.read_text(encoding="utf-8")
    in_print = any(not table.experiment for table in paper.tables)
    drawn = sorted(arguments.answer.parent.glob(f"{paper.id}-*.png"))
    for figure_file in [path for path in drawn if not in_print or f"images/{path.name}" in text]:
        print(f"wrote {shutil.copyfile(figure_file, ROOT / 'docs' / 'images' / figure_file.name)}")
    return 0


# The committed part of an answer.


def keep(answer: dict[str, Any], paper: Paper) -> None:
    """Writes the CSV files of an answer."""
    for name, rows in kept(answer, paper).items():
        save(RESULTS / paper.id / f"{name}.csv", rows)


def kept(answer: dict[str, Any], paper: Paper) -> dict[str, list[dict[str, Any]]]:
    """Returns the rows of each CSV file, with the digits that pages show."""
    digits = {name: quantity.decimals for name, quantity in paper.quantities.items()}
    ours = answer["numbers"] + answer["experiments"]
    of_table = {table.number: [n for n in ours if n["table"] == table.number] for table in paper.tables}
    ordered = [
        n
        for table in paper.tables
        for name in table.quantities
        for n in of_table[table.number]
        if n["quantity"] == name
    ]
    files = {"numbers": [number_row(number, digits[number["quantity"]], paper) for number in ordered]}
    if answer.get("ratios"):
        shown = ("mean", "low", "high")
        files["ratios"] = [
            {"table": r["table"], **r["row"], "quantity": r["quantity"], **{key: figure(r[key], 2) for key in shown}}
            for r in answer["ratios"]
        ]
    files["claims"] = [claim_row(claim) for claim in answer["claims"]]
    if paper.has_print:
        scored = [group for group in answer["summary"]["by"] if group["scored"]]
        files["shares"] = [dict(zip(SHARES, row, strict=True)) for row in share_rows(answer["summary"])]
        files["errors"] = [dict(zip(ERRORS, error_row(group, paper), strict=True)) for group in scored]
    return files


def number_row(number: dict[str, Any], digits: int, paper: Paper) -> dict[str, Any]:
    """Returns the row of a number: the simulated values and, if the paper prints the number, the verdicts."""
    row = {"table": number["table"], **number["row"], "quantity": number["quantity"]}
    mean, low, high, spread = (figure(number[value], digits) for value in ("mean", "low", "high", "interval"))
    if not paper.has_print:
        return {**row, "mean": mean, "interval": "" if number["low"] == number["high"] else spread}
    row |= {"mean": mean, "low": low, "high": high, "note": number["note"]}
    if number["published"] is None:
        return row
    words = {True: "yes", False: "no", None: "-"}
    verdicts = {"in_range": words[number["inside_range"]], "near_mean": words[number["inside_tolerance"]]}
    verdicts["pit"] = figure(number["pit"], 2)
    if not number["scored"]:
        verdicts = dict.fromkeys(VERDICTS, "-")
    return {**row, "published": figure(number["published"], digits), **verdicts}


def claim_row(claim: dict[str, Any]) -> dict[str, Any]:
    """Returns the row of a claim: whether it holds, with the evidence, for how many seeds, and in print."""
    words = {True: "yes", False: "no", None: "undecided"}
    row = {
        "claim": claim["id"],
        "holds": "open" if claim["open"] else words[claim["holds"]],
        "evidence": claim["evidence"] or "",
    }
    if claim.get("seeds_share") is not None:
        row["seeds"] = f"{round(claim['seeds_share'] * claim['seeds'])} of {claim['seeds']}"
    if claim.get("published_holds") is not None:
        row |= {"printed": words[claim["published_holds"]], "printed_evidence": claim["published_evidence"] or ""}
    if claim.get("depends_on"):
        row["depends_on"] = claim["depends_on"]
    if claim.get("neighbour_evidence"):
        row |= {"neighbour": words[claim["neighbour_holds"]], "neighbour_evidence": claim["neighbour_evidence"]}
    return row


def save(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes rows as CSV, with the columns of all rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def results(paper: str, name: str) -> list[Row]:
    """Returns the rows of a CSV file of a paper or study; empty if there is no such file."""
    return read(RESULTS / paper / f"{name}.csv")


@cache
def read(path: Path) -> list[Row]:
    """Returns the rows of a CSV file; empty if the file does not exist."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


# The counts shown on the page.


def counted(answer: dict[str, Any], paper: Paper) -> str:
    """Returns the page's sentences about all numbers."""
    version = answer["build"]["version"]
    if paper.has_print:
        seeds = [
            f"{count_of(count, 'seed')} for {network}" if network else count_of(count, "seed")
            for network, count in answer["seeds_by_network"].items()
        ]
        groups = [g for g in answer["summary"].get("by_quantity", []) if g["mean_relative_error"] is not None]
        shares = [f"{100 * g['mean_relative_error']:.0f} % for {words(g['quantity'])}" for g in groups]
        once = answer["summary"]["once"]
        repeated = (
            f" With a value that is printed in several tables counted once, {once['inside']} of {once['scored']} are inside."
            if once["scored"] < answer["summary"]["scored"]
            else ""
        )
        error = (
            f" Over all tables, the mean error as a share of the printed number is {listed(shares)}." if shares else ""
        )
        return f"{agreement(results(paper.id, 'shares'))}{repeated} Version {version} ran {listed(seeds)}.{error}"
    ours = answer["numbers"] + answer["experiments"]
    *fewer, most = sorted({max(n["seeds"] for n in ours if n["table"] == table.number) for table in paper.tables})
    return f"Means of {' or '.join([*map(str, fewer), count_of(most, 'seed')])} (version {version})."


def agreement(shares: Sequence[Row]) -> str:
    """Returns how many numbers agree with the printed numbers."""
    inside, scored = map(int, shares[-1]["inside"].split("/"))
    within, near = (shares[-1][key].split("/") for key in ("in seeds' range", "near mean"))
    text = f"{inside} of {scored} scored numbers are inside ({100 * inside / scored:.0f} %): {within[0]} are in the seeds' range"
    return f"{text}, and {near[0]} of the {near[1]} with a tolerance are near the mean." if near[1:] else f"{text}."


def held(claims: Sequence[Row]) -> str:
    """Returns how many claims hold."""
    verdicts = [claim["holds"] for claim in claims]
    undecided = f"; {count} undecided" if (count := verdicts.count("undecided")) else ""
    return f"{verdicts.count('yes')} of {len(verdicts)} claims hold{undecided}."


def fill(page: Path, block: str, content: str) -> None:
    """Replaces the content of a marked block of a page. Its tables become files in docs/results.

    `make format` wraps the lines of the page.
    """
    text, tables = without_tables(page, block, content)
    for path, lines in tables.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as handle:
            csv.writer(handle, lineterminator="\n").writerows(lines)
    page.write_text(replaced(page.read_text(encoding="utf-8"), block, text), encoding="utf-8")
    print(f"wrote {page}")


def without_tables(page: Path, block: str, content: str) -> tuple[str, dict[Path, list[list[str]]]]:
    """Returns a block in which links replace its long tables, and the cells of these tables by file."""
    tables: dict[Path, list[list[str]]] = {}

    def link(found: re.Match[str]) -> str:
        lines = [[cell.strip() for cell in CELLS.split(line.strip()[1:-1])] for line in found[0].splitlines()]
        if len(found[0].split()) <= MOST_WORDS and all(len(cell.split()) <= CELL for line in lines for cell in line):
            return found[0]
        path = RESULTS / page.stem / f"{block}-{len(tables) + 1}.csv"
        tables[path] = [lines[0], *lines[2:]]
        return f"[{words(block).capitalize()}, table {len(tables)}]({os.path.relpath(path, page.parent)})\n"

    return re.sub(r"(?:^\|.*\|(?:\n|\Z))+", link, content, flags=re.MULTILINE), tables


def replaced(text: str, block: str, content: str) -> str:
    """Returns the text with the content of a marked block replaced."""
    begin, end = f"<!-- {block}:begin -->", f"<!-- {block}:end -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        sys.exit(f"the page needs one line {begin} and one line {end}")
    before, rest = text.split(begin)
    return f"{before}{begin}\n\n{content.strip()}\n\n{end}{rest.split(end)[1]}"


# The tables on the site.


def numbers(name: str) -> str:
    """Returns all tables of a paper or study, with all numbers, each below its heading."""
    paper = loaded(name)
    return in_print(paper) if paper.has_print else own_numbers(paper)


def loaded(name: str) -> Paper:
    """Returns a paper or study by its name."""
    return load(name, kind=PAPER if name in PAPER.ids() else STUDY)


def in_print(paper: Paper) -> str:
    """Returns the shares and errors, and each table with the printed values, ours and the three verdicts."""
    parts = []
    for name in ("shares", "errors"):
        rows = results(paper.id, name)
        parts.append(grid(list(rows[0]), [list(row.values()) for row in rows], left=("network", "quantity")))
    rules = {table.number: rule for table in paper.tables if (rule := counted_by(table.numbers, RULES))}
    for table in paper.tables:
        rows = [row for row in results(paper.id, "numbers") if row["table"] == table.number]
        parts += [f"### {table.heading}", number_table(table, rows)]
        parts += [f"{mark}) {note}." for mark, note in enumerate(notes(rows), start=1)]
        if len(set(rules.values())) > 1 and table.number in rules:
            parts += [f"A number counts as inside if it is {rules[table.number]}."]
    return "\n\n".join(parts)


def number_table(table: Table, numbers: Sequence[Row]) -> str:
    """Returns one line per row of a table.

    For each quantity it has the printed value, the simulated value, and the three verdicts.

    Tables without tolerances for the mean have no column for that verdict.
    """
    marks = {note: f" {mark})" for mark, note in enumerate(notes(numbers), start=1)}
    shown = [key for key in VERDICTS if key != "near_mean" or any(row[key] in ("yes", "no") for row in numbers)]
    heads = [words(key) for key in table.keys]
    for quantity in table.quantities:
        heads += [words(quantity)] if table.experiment else [words(quantity), "ours", *(VERDICTS[key] for key in shown)]
    lines: dict[tuple[str, ...], list[str]] = {}
    for row in numbers:
        line = lines.setdefault(key := tuple(row[key] for key in table.keys), [*key])
        ours = row["mean"] if row["low"] == row["high"] else f"{row['mean']} ({row['low']}\u2013{row['high']})"
        if table.experiment:
            line.append(ours)
        else:
            verdicts = ["**no**" if row[key] == "no" else row[key] for key in shown]
            line += [row["published"], ours, *verdicts]
            line[-1] += marks.get(row.get("note", ""), "")
    return grid(heads, list(lines.values()), left=tuple(VERDICTS.values()))


def own_numbers(paper: Paper) -> str:
    """Returns every table of a study, or experiment of a paper: each quantity separately, one key across the columns.

    The meaning of each quantity is given with its first table.
    """
    parts = ["\u00b1 is half of the 95 % interval (Student's t)."]
    defined: set[str] = set()
    for table in paper.tables:
        parts.append(f"### {table.heading}")
        for name in table.quantities:
            quantity = paper.quantities[name]
            named = quantity.unit in ("1", quantity.meaning.split()[0])
            unit = "" if named else f", in {quantity.unit}"
            meaning = f" {quantity.meaning}{unit}." if name not in defined else ""
            defined.add(name)
            parts += [
                f"**{words(name).capitalize()}**:{meaning}",
                across(table, name, results(paper.id, "numbers"), paper),
            ]
            ratios = [r for r in results(paper.id, "ratios") if (r["table"], r["quantity"]) == (table.number, name)]
            if ratios:
                base = " and ".join(
                    f"`{value}`" if isinstance(value, str) else f"{words(key)} {value}"
                    for key, value in table.against.items()
                )
                parts += [f"Ratio to {base}, seed by seed, with its 95 % interval:", across(table, name, ratios, paper)]
    return "\n\n".join(parts)


def across(table: Table, quantity: str, rows: Sequence[Row], paper: Paper) -> str:
    """Returns one quantity of a study's or experiment's table: means, or ratios with a last column for all columns."""
    down = [key for key in table.keys if key != table.across]
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        if (row["table"], row["quantity"]) == (table.number, quantity):
            column = row[table.across] if table.across else ""
            lines.setdefault(tuple(row[key] for key in down), {})[column] = cell(row)
    values = {str(n.row[table.across]): n.row[table.across] for n in table.numbers} if table.across else {}
    columns = [column for column in (*values, "") if any(column in line for line in lines.values())]
    alone = "ratio" if rows and "low" in rows[0] else words(quantity)
    heads = [headed(key, paper) for key in down]
    for column in columns:
        value = values.get(column, "all" if values else alone)
        heads.append(value if isinstance(value, str) else f"{words(str(table.across))} {value}")
    return grid(heads, [[*left, *(line.get(column, "-") for column in columns)] for left, line in lines.items()])


def cell(row: Row) -> str:
    """Formats a mean with its interval; a ratio is in bold if the interval excludes 1."""
    if "low" in row:
        text = f"{row['mean']} ({row['low']} to {row['high']})"
        return text if float(row["low"]) <= 1 <= float(row["high"]) else f"**{text}**"
    return f"{row['mean']} \u00b1 {row['interval']}" if row["interval"] else row["mean"]


def headed(key: str, paper: Paper) -> str:
    """Returns a key with its unit, unless its name ends in the unit."""
    unit, name = paper.keys[key].unit, words(key)
    return name if unit in ("", "1") or name.endswith(f" {unit}") else f"{name} ({unit})"


def claims(name: str) -> str:
    """Returns every claim with its quotation or reason, and its verdicts."""
    paper = loaded(name)
    rows = {row["claim"]: row for row in results(name, "claims")}
    return "\n".join(claim_text(claim, rows[claim["id"]], paper) for claim in paper.claims if claim["id"] in rows)


def claim_text(claim: Mapping[str, Any], row: Row, paper: Paper) -> str:
    """Returns an item of the list of claims."""
    place = claim.get("section", "")
    place = f"section {place}" if place[:1].isdigit() else place.lower()
    source = "The paper" if paper.kind is PAPER else paper.follows.split(",")[0]
    quoted = f' {source}, {place}: "{claim["quote"]}"' if claim.get("quote") else ""
    reason = f" {claim['reason']}" if claim.get("reason") else ""
    verdicts = [verdict("Holds", row["holds"], row["evidence"])]
    verdicts += [f"Single seeds: {row['seeds']}."] if row.get("seeds") else []
    verdicts += [verdict("In print", row["printed"], row["printed_evidence"])] if row.get("printed", "-") != "-" else []
    if row.get("neighbour"):
        verdicts.append(verdict("With neighbouring thresholds", row["neighbour"], row["neighbour_evidence"]))
    verdicts += [f"Depends on {row['depends_on']}."] if row.get("depends_on") else []
    return f"* `{claim['id']}`: {claim['text']}{reason}{quoted}\n  {' '.join(verdicts)}"


def verdict(head: str, word: str, evidence: str) -> str:
    """Returns whether a claim holds, and the numbers that show this."""
    return f"**{head}: {word}**{f' ({evidence})' if evidence else ''}."


def notes(rows: Iterable[Row]) -> list[str]:
    """Returns the distinct notes on a table's numbers, in order of appearance."""
    return list(dict.fromkeys(row["note"] for row in rows if row.get("note")))


def grid(heads: list[str], rows: list[list[str]], left: tuple[str, ...] = ()) -> str:
    """Returns a Markdown table with right-aligned numbers; the columns in `left` are left-aligned."""
    rule = [":---" if head in left else "---:" for head in heads]
    return "\n".join("| " + " | ".join(line) + " |" for line in [heads, rule, *rows])


def figure(value: float | None, digits: int) -> str:
    """Formats a number; empty if undefined. A number that rounds to zero has no sign."""
    return "" if value is None else f"{round(value, digits) + 0.0:.{digits}f}"


def listed(parts: list[str]) -> str:
    """Joins the parts of a list with commas and "and"."""
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def words(name: str) -> str:
    """Returns a readable name."""
    return name.replace("_", " ")


if __name__ == "__main__":
    sys.exit(main())
