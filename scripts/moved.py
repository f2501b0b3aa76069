"""Lists the fingerprints and the published numbers that a change moves, and by how much, for its pull request.

    python scripts/moved.py          compares the checkout with the branch main
    python scripts/moved.py HEAD~3   compares it with another commit

Published numbers are those of the CSV files and pages of papers and studies, and of saved answers.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FINGERPRINTS = "crates/celltrain-scenario/tests/fingerprints.csv"
#: Folders with published numbers.
FOLDERS = ("papers", "studies", "docs/papers", "docs/studies", "python/tests/answers")
NUMBER = re.compile(r"(?<![\w.])(?<!\w-)-?\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.]*\w)")
Numbers = dict[tuple[str, int], str]


def main() -> None:
    """Prints the report as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", nargs="?", default="main", help="the commit to compare with (default: main)")
    base = parser.parse_args().base
    found = git("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}", check=False).strip()
    if not found:
        sys.exit(f"moved: {base} is not a commit; name one, for example: python scripts/moved.py HEAD~1")
    print("\n".join(report(found)))


def report(base: str) -> list[str]:
    """Returns the lines of a report on the differences from a commit."""
    moved = fingerprints(before(base, FINGERPRINTS), (ROOT / FINGERPRINTS).read_text(encoding="utf-8"))
    lines = [f"**Fingerprints:** {len(moved)} moved." if moved else "**Fingerprints:** none moved."]
    lines += [f"* {line}" for line in moved]
    names = git("diff", "--name-only", "--no-renames", base, "--", *FOLDERS).split()
    tables = {name: numbers_moved(before(base, name), now(name), Path(name).suffix) for name in names}
    tables = {name: rows for name, rows in tables.items() if rows}
    count = sum(map(len, tables.values()))
    lines += ["", f"**Published numbers:** {count} moved." if count else "**Published numbers:** none moved."]
    for name, rows in tables.items():
        lines += ["", f"`{name}`", "", "| number | before | now | change |", "|---|---:|---:|---:|", *rows]
    return lines


def fingerprints(old: str, new: str) -> list[str]:
    """Returns a line for each run whose fingerprint has changed, is new or is missing."""
    olds, news = (
        {(row["scenario"], row["seed"]): row["fingerprint"] for row in csv.DictReader(io.StringIO(text))}
        for text in (old, new)
    )
    return [
        f"{scenario}, seed {seed}: {olds.get((scenario, seed), 'absent')} -> {news.get((scenario, seed), 'absent')}"
        for scenario, seed in sorted(olds.keys() | news.keys())
        if olds.get((scenario, seed)) != news.get((scenario, seed))
    ]


def numbers_moved(old: str, new: str, suffix: str) -> list[str]:
    """Returns a table row for each number that differs between two versions of a file."""
    olds, news = numbers(old, suffix), numbers(new, suffix)
    rows = []
    for (name, place), before_ in olds.items():
        after = news.get((name, place))
        if after is not None and float(after) != float(before_):
            rows.append(f"| {name} | {before_} | {after} | {change(float(before_), float(after))} |")
    gone, come = len(olds.keys() - news.keys()), len(news.keys() - olds.keys())
    return rows + ([f"| numbers in new or changed rows | {gone} | {come} | |"] if gone or come else [])


def change(old: float, new: float) -> str:
    """Returns the difference, and the difference as a fraction of the old value."""
    share = f" ({(new - old) / abs(old):+.2%})" if old else ""
    return f"{new - old:+.4g}{share}"


def numbers(text: str, suffix: str) -> Numbers:
    """Returns the numbers of a file, keyed by the surrounding words and the position among equal keys."""
    found: Numbers = {}
    for name, value in {".csv": of_csv, ".json": of_json}.get(suffix, of_page)(text):
        place = 0
        while (name, place) in found:
            place += 1
        found[name, place] = value
    return found


def of_csv(text: str) -> Iterator[tuple[str, str]]:
    """Yields the numbers of a CSV file, each with its column and with the words and whole numbers of its row."""
    for row in csv.DictReader(io.StringIO(text)):
        cells = {column: cell for column, cell in row.items() if column and isinstance(cell, str)}
        words = [cell for cell in cells.values() if cell and not re.fullmatch(r"-?[\d.]*\.\d+(e-?\d+)?", cell)]
        for column, cell in cells.items():
            if cell not in words and cell:
                yield ", ".join([*words, column]), cell


def of_json(text: str) -> Iterator[tuple[str, str]]:
    """Yields the numbers of a JSON file with their path."""

    def walk(value: Any, path: str) -> Iterator[tuple[str, str]]:
        if isinstance(value, dict):
            for key, item in value.items():
                yield from walk(item, f"{path}.{key}".lstrip("."))
        elif isinstance(value, list):
            for place, item in enumerate(value):
                yield from walk(item, f"{path}[{place}]")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield path, repr(value)

    if text:
        yield from walk(json.loads(text), "")


def of_page(text: str) -> Iterator[tuple[str, str]]:
    """Yields the numbers of a page's tables with the first cell of their row."""
    for line in text.splitlines():
        if line.startswith("|"):
            first, _, rest = line.strip("| ").partition("|")
            for number in NUMBER.findall(rest):
                yield first.strip(), number


def before(base: str, name: str) -> str:
    """Returns the text of a file in a commit; empty if the commit does not contain it."""
    return git("show", f"{base}:{name}", check=False)


def now(name: str) -> str:
    """Returns the text of a file in the checkout; empty if there is no such file."""
    path = ROOT / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


def git(*arguments: str, check: bool = True) -> str:
    """Runs git in the checkout. Returns its output."""
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=check
    ).stdout


if __name__ == "__main__":
    main()
