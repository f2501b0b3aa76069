"""Fills the page of a paper, or of a study, with the numbers and claims of a saved answer.

    celltrain reproduce af-96-1269 --json > out/af-96-1269.json
    python scripts/paper_page.py out/af-96-1269.json

    celltrain study tagging --out out/tagging
    python scripts/paper_page.py out/tagging/study.json

The page is docs/papers/<id>.md or docs/studies/<id>.md. The script replaces the text between `<!-- numbers:begin -->`
and `<!-- numbers:end -->`, and between `<!-- claims:begin -->` and `<!-- claims:end -->`. It copies figures next to the
answer to docs/images: all figures of a study or of a paper without printed numbers, and those figures of other papers
that their pages show.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from itertools import compress
from pathlib import Path
from typing import Any

from celltrain.papers.paper import PAPER, STUDY, Paper, Table, load, seed_count
from celltrain.papers.report import ERRORS, SHARES, error_row, share_rows

ROOT = Path(__file__).resolve().parents[1]
#: The three verdicts for a number, as columns.
VERDICTS = ("in range", "near mean", "PIT")
#: Rules by which a number counts as inside.
RULES = {"range": "in range", "mean": "near the mean", "either": "in range or near the mean"}


def main() -> int:
    """Reads the answer and fills the page."""
    parser = argparse.ArgumentParser(description="Fill a page with the numbers of a saved answer.")
    parser.add_argument("answer", type=Path, help="what `celltrain reproduce <paper> --json` or `study` printed")
    parser.add_argument("--page", type=Path, help="the page; docs/papers/<id>.md or docs/studies/<id>.md when absent")
    arguments = parser.parse_args()
    answer = json.loads(arguments.answer.read_text(encoding="utf-8"))
    kind = PAPER if PAPER.word in answer else STUDY
    paper = load(answer[kind.word], kind=kind)
    page: Path = arguments.page or ROOT / "docs" / kind.folder / f"{paper.id}.md"
    text = page.read_text(encoding="utf-8")
    in_print = any(not table.experiment for table in paper.tables)
    text = replaced(text, "numbers", numbers(answer, paper) if in_print else own_numbers(answer, paper))
    text = replaced(text, "claims", claims(answer, in_print) if kind is PAPER else study_claims(answer, paper))
    page.write_text(text, encoding="utf-8")
    print(f"wrote {page}")
    drawn = sorted(arguments.answer.parent.glob(f"{paper.id}-*.png"))
    for figure_file in [path for path in drawn if not in_print or f"images/{path.name}" in text]:
        print(f"wrote {shutil.copyfile(figure_file, ROOT / 'docs' / 'images' / figure_file.name)}")
    return 0


def replaced(text: str, block: str, content: str) -> str:
    """Returns the text with the content of a marked block replaced; `make format` wraps its lines."""
    begin, end = f"<!-- {block}:begin -->", f"<!-- {block}:end -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        sys.exit(f"the page needs one line {begin} and one line {end}")
    before, rest = text.split(begin)
    return f"{before}{begin}\n\n{content.strip()}\n\n{end}{rest.split(end)[1]}"


def numbers(answer: dict[str, Any], paper: Paper) -> str:
    """Returns the summary, then every table with every number."""
    summary = answer["summary"]
    seeds = [
        f"{seed_count(count)} for {network}" if network else seed_count(count)
        for network, count in answer["seeds_by_network"].items()
    ]
    members = {
        table.number: [n for n in answer["numbers"] + answer["experiments"] if n["table"] == table.number]
        for table in paper.tables
    }
    rules = {table: rule for table, some in members.items() if (rule := counted_by(some))}
    parts = [
        f"{summary['inside']} of {summary['scored']} scored numbers are inside ({percent(summary['share_inside'])}): "
        f"{counts(summary['verdicts'], summary['scored'])}. Version {answer['build']['version']} ran {listed(seeds)}.",
        grid(list(SHARES), share_rows(summary), left=("network", "quantity")),
        grid(list(ERRORS), [error_row(group, paper) for group in summary["by"] if group["scored"]], left=ERRORS[1:3]),
        relative_errors(answer),
    ]
    for table in paper.tables:
        if some := members[table.number]:
            parts += [f"### {table.heading}", number_table(table, some, paper)]
            parts += [f"{mark}) {note}." for mark, note in enumerate(notes(some), start=1)]
            if len(set(rules.values())) > 1 and table.number in rules:
                parts += [f"A number counts as inside if it is {rules[table.number]}."]
    return "\n\n".join(part for part in parts if part)


def relative_errors(answer: dict[str, Any]) -> str:
    """Returns the mean error of each quantity as a fraction of the printed values; empty if the answer lacks it."""
    groups = [g for g in answer["summary"].get("by_quantity", []) if g["mean_relative_error"] is not None]
    shares = listed([f"{percent(g['mean_relative_error'])} for {words(g['quantity'])}" for g in groups])
    return f"Over all tables, the mean error as a share of the printed number is {shares}." if shares else ""


def number_table(table: Table, members: list[dict[str, Any]], paper: Paper) -> str:
    """Returns one line per row of a table: for each quantity the printed value, ours, and the three verdicts.

    Tables without tolerances for the mean have no column for that verdict.
    """
    marks = {note: f" {mark})" for mark, note in enumerate(notes(members), start=1)}
    heads = [words(key) for key in table.keys]
    shown = [True, any(number["inside_tolerance"] is not None for number in members), True]
    for quantity in table.quantities:
        heads += [words(quantity)] if table.experiment else [words(quantity), "ours", *compress(VERDICTS, shown)]
    rows: dict[str, list[str]] = {}
    for number in members:
        line = rows.setdefault(json.dumps(number["row"]), [str(number["row"][key]) for key in table.keys])
        digits = paper.quantities[number["quantity"]].decimals
        mean, low, high = (f"{number[value]:.{digits}f}" for value in ("mean", "low", "high"))
        ours = mean if low == high else f"{mean} ({low}\u2013{high})"
        if table.experiment:
            line.append(ours)
        else:
            *first, last = compress(verdicts(number), shown)
            first = ["**no**" if word == "no" else word for word in first]
            line += [f"{number['published']:.{digits}f}", ours, *first, last + marks.get(number["note"], "")]
    return grid(heads, list(rows.values()), left=VERDICTS)


def verdicts(number: dict[str, Any]) -> list[str]:
    """Returns the three verdicts for a number as text: "-" if there is none, or if the number is not scored."""
    if not number["scored"]:
        return ["-"] * len(VERDICTS)
    words = {True: "yes", False: "no", None: "-"}
    return [words[number["inside_range"]], words[number["inside_tolerance"]], f"{number['pit']:.2f}"]


def counted_by(numbers: list[dict[str, Any]]) -> str:
    """Returns the rule by which the scored numbers of a table count as inside; empty if none is scored."""
    by: dict[str, list[str]] = {}
    for number in numbers:
        quantities = by.setdefault(number["judged_by"], []) if number["scored"] else [number["quantity"]]
        if number["quantity"] not in quantities:
            quantities.append(number["quantity"])
    if len(by) == 1:
        return RULES[next(iter(by))]
    return ", and ".join(f"{RULES[rule]} for {listed(list(map(words, quantities)))}" for rule, quantities in by.items())


def counts(verdicts: dict[str, Any], scored: int) -> str:
    """Returns the three verdicts for several numbers, as counts."""
    return (
        f"{verdicts['inside_range']} of {scored} are in range, and {verdicts['inside_tolerance']} of the "
        f"{verdicts['with_tolerance']} with a tolerance are near the mean. {verdicts['pit_middle']} of {verdicts['draws']} "
        f"have a PIT in the middle; {verdicts['pit_middle_expected']:.0f} would be expected by chance"
    )


def claims(answer: dict[str, Any], in_print: bool) -> str:
    """Returns every claim with its quotation and both verdicts, or one verdict if the paper prints no numbers."""
    held = sum(claim["holds"] for claim in answer["claims"])
    heads = ["claim", "our runs", "seeds", *(["printed numbers"] if in_print else [])]
    rows = []
    for claim in answer["claims"]:
        stated = f'{claim["text"]} The paper: "{claim["quote"]}"'
        row = [f"`{claim['id']}` ({place(claim)}): {stated}", verdict(claim["holds"], claim["evidence"]), alone(claim)]
        printed = verdict(claim["published_holds"], claim["published_evidence"])
        rows.append([*row, printed] if in_print else row)
    parts = [f"{held} of {len(answer['claims'])} claims hold in our runs.", grid(heads, rows, left=tuple(heads))]
    if answer["claims_left_out"]:
        parts.append(f"Not judged, because their tables were not run: {', '.join(answer['claims_left_out'])}.")
    return "\n\n".join(parts)


def place(claim: dict[str, Any]) -> str:
    """Returns the place of a claim in the text."""
    return f"section {claim['section']}" if claim["section"][:1].isdigit() else claim["section"].lower()


def verdict(holds: bool | None, evidence: str | None) -> str:
    """Returns whether a claim holds, and the numbers behind that; "-" if there are none."""
    if holds is None:
        return "-"
    return f"{'yes' if holds else '**no**'}: {evidence}" if evidence else "yes" if holds else "**no**"


def alone(claim: dict[str, Any]) -> str:
    """Returns the number of single seeds for which a claim holds; empty if the answer lacks it."""
    if claim.get("seeds_share") is None:
        return ""
    return f"{round(claim['seeds_share'] * claim['seeds'])} of {claim['seeds']}"


def own_numbers(answer: dict[str, Any], paper: Paper) -> str:
    """Returns every table of a study, or experiment of a paper: each quantity separately, one key across the columns.

    The meaning of each quantity is given with its first table.
    """
    ours = answer["numbers"] + answer["experiments"]
    seeds = {max(n["seeds"] for n in ours if n["table"] == table.number) for table in paper.tables}
    *fewer, most = sorted(seeds)
    count = " or ".join([*map(str, fewer), seed_count(most)])
    parts = [
        f"Means of {count} (version {answer['build']['version']}), \u00b1 half of the 95 % interval (Student's t)."
    ]
    defined: set[str] = set()
    for table in paper.tables:
        parts.append(f"### {table.heading}")
        for name in table.quantities:
            quantity = paper.quantities[name]
            named = quantity.unit in ("1", quantity.meaning.split()[0])
            unit = "" if named else f", in {quantity.unit}"
            members = [n for n in ours if (n["table"], n["quantity"]) == (table.number, name)]
            meaning = f" {quantity.meaning}{unit}." if name not in defined else ""
            defined.add(name)
            parts += [f"**{words(name).capitalize()}**:{meaning}", across(table, members, paper)]
            of = [r for r in answer.get("ratios", []) if (r["table"], r["quantity"]) == (table.number, name)]
            if of:
                base = " and ".join(
                    f"`{value}`" if isinstance(value, str) else f"{words(key)} {value}"
                    for key, value in table.against.items()
                )
                parts += [f"Ratio to {base}, seed by seed, with its 95 % interval:", ratios(table, of, members, paper)]
    return "\n\n".join(parts)


def across(table: Table, members: list[dict[str, Any]], paper: Paper) -> str:
    """Returns one quantity of a study's or experiment's table."""
    down = [key for key in table.keys if key != table.across]
    heads = [headed(key, paper) for key in down]
    rows: dict[str, list[str]] = {}
    for number in members:
        line = rows.setdefault(
            json.dumps([number["row"][key] for key in down]), [str(number["row"][key]) for key in down]
        )
        digits = paper.quantities[number["quantity"]].decimals
        mean, spread = figure(number["mean"], digits), figure(number["interval"], digits)
        same = number["low"] == number["high"]
        line.append(mean if same else f"{mean} \u00b1 {spread}")
    if table.across is None:
        heads.append(words(members[0]["quantity"]))
    else:
        values = dict.fromkeys(number["row"][table.across] for number in members)
        heads += [str(value) if isinstance(value, str) else f"{words(table.across)} {value}" for value in values]
    return grid(heads, list(rows.values()))


def ratios(table: Table, members: list[dict[str, Any]], order: list[dict[str, Any]], paper: Paper) -> str:
    """Returns the paired ratios of one quantity of a study's table, in bold if the interval excludes 1.

    The last column has the geometric mean over the other columns.
    """
    down = [key for key in table.keys if key != table.across]
    cells = {json.dumps(ratio["row"], sort_keys=True): ratio for ratio in members}
    # The row of `against` may be a column; it has no ratios.
    values = list(dict.fromkeys(ratio["row"][table.across] for ratio in members if table.across in ratio["row"]))
    columns: list[dict[str, Any]] = [{str(table.across): value} for value in values]
    heads = [str(value) if isinstance(value, str) else f"{words(str(table.across))} {value}" for value in values]
    if any(table.across not in ratio["row"] for ratio in members):
        columns, heads = [*columns, {}], [*heads, "all" if values else "ratio"]
    rows = []
    for left in dict.fromkeys(tuple(number["row"][key] for key in down) for number in order):
        row = dict(zip(down, left, strict=True))
        found = [cells.get(json.dumps(row | column, sort_keys=True)) for column in columns]
        if any(found):
            rows.append([*map(str, left), *map(interval, found)])
    return grid([*(headed(key, paper) for key in down), *heads], rows)


def interval(ratio: dict[str, Any] | None) -> str:
    """Formats a ratio with its interval; "-" if there is none."""
    if ratio is None:
        return "-"
    text = f"{ratio['mean']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})"
    return text if ratio["low"] <= 1 <= ratio["high"] else f"**{text}**"


def headed(key: str, paper: Paper) -> str:
    """Returns a key with its unit, unless its name ends in the unit."""
    unit, name = paper.keys[key].unit, words(key)
    return name if unit in ("", "1") or name.endswith(f" {unit}") else f"{name} ({unit})"


def study_claims(answer: dict[str, Any], paper: Paper) -> str:
    """Returns every claim of a study with its reason and verdict. Quotations are from the study's source."""
    verdicts = [claim["holds"] for claim in answer["claims"]]
    text = paper.follows.split(",")[0]
    rows = []
    for claim in answer["claims"]:
        quoted = f' {text}, {place(claim)}: "{claim["quote"]}"' if claim["quote"] else ""
        holds = (
            f"undecided: {claim['evidence']}" if claim["holds"] is None else verdict(claim["holds"], claim["evidence"])
        )
        rows.append([f"`{claim['id']}`: {claim['text']}", f"{claim['reason']}{quoted}", holds])
    heads = ["claim", "expected because", "holds"]
    undecided = f"; {count} undecided" if (count := verdicts.count(None)) else ""
    held = f"{verdicts.count(True)} of {len(verdicts)} claims hold{undecided}."
    return f"{held}\n\n{grid(heads, rows, left=tuple(heads))}"


def notes(members: list[dict[str, Any]]) -> list[str]:
    """Returns the distinct notes on a table's numbers, in order of appearance."""
    return list(dict.fromkeys(number["note"] for number in members if number["note"]))


def grid(heads: list[str], rows: list[list[str]], left: tuple[str, ...] = ()) -> str:
    """Returns a Markdown table with right-aligned numbers; the columns in `left` are left-aligned."""
    rule = [":---" if head in left else "---:" for head in heads]
    return "\n".join("| " + " | ".join(line) + " |" for line in [heads, rule, *rows])


def figure(value: float | None, digits: int) -> str:
    """Formats a number; empty if undefined. A number that rounds to zero has no sign."""
    return "" if value is None else f"{round(value, digits) + 0.0:.{digits}f}"


def percent(share: float | None) -> str:
    """Formats a fraction as a percentage."""
    return "" if share is None else f"{100 * share:.0f} %"


def listed(parts: list[str]) -> str:
    """Joins the parts of a list with commas and "and"."""
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def words(name: str) -> str:
    """Returns a readable name."""
    return name.replace("_", " ")


if __name__ == "__main__":
    sys.exit(main())
