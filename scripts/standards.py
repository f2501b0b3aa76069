"""Checks the register of standards: rules without a test or a reason, and tests that do not exist.

Each table `docs/standards/NAME.toml` lists the rules of one document in our own words. `compared` says with
which text they were compared. `partly` says which rules were compared with another account of the document, and with
which. Without either, the document was not at hand. A rule has `at` (section), `level` (MUST,
SHOULD, MAY, ..., or RULE for a sentence or a numbered step without a key word) and `rule`, and one of: `tests` (names of
tests or of timed scripts), `differs` (what the model does instead, and why) or `not_modelled` (the reason). `note` adds a
sentence to a tested rule. `partly` says which part of a tested rule has no model or no test.

Only tests count: functions in Rust with `#[test]`, functions in Python whose names start with `test_`, and timed scripts.
`--write` puts the table of rules into each page, and the table of all documents into their index. `page_tables.py` adds
the reasons to the built pages.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/standards"
LEVELS = {"MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "RECOMMENDED", "RULE"}
KEYS = {"at", "level", "rule", "tests", "differs", "not_modelled", "partly", "note"}
#: A Rust function with `#[test]`, perhaps with other attributes and comments between; also in `proptest!`.
RUST_TEST = re.compile(r"#\[test\]\s*(?:(?:#\[[^\]]*\]|//[^\n]*)\s*)*fn (\w+)")
PYTHON_TEST = re.compile(r"^\s*def (test_\w+)", re.M)
#: Largest number of words of a rule in a table.
LONGEST = 15
BEGIN, END = "<!-- standards.py -->", "<!-- end -->"
WORDS = {"tested": "tested", "partly": "partly", "differs": "differ", "not modelled": "not modelled"}


@cache
def definitions() -> dict[str, Path]:
    """Returns the file of every test and timed script, by name."""
    found: dict[str, Path] = {}
    for path in sorted([*ROOT.glob("crates/**/*.rs"), *ROOT.glob("python/tests/**/*.py")]):
        found |= dict.fromkeys(tests_in(path.suffix, path.read_text(encoding="utf-8")), path)
    return found | {path.stem: path for path in ROOT.glob("crates/**/*.script")}


def tests_in(suffix: str, text: str) -> list[str]:
    r"""Returns the names of the tests in a file of Rust or Python, without their helper functions.

    >>> tests_in(".py", "def helper(): ...\ndef test_a_lost_packet_is_sent_again(): ...")
    ['test_a_lost_packet_is_sent_again']
    """
    return (RUST_TEST if suffix == ".rs" else PYTHON_TEST).findall(text)


def faults(name: str, rule: dict[str, Any], known: dict[str, Path]) -> Iterator[str]:
    """Yields the errors in a rule of the document `name`."""
    place = f"docs/standards/{name}.toml: {rule.get('at')}: {str(rule.get('rule'))[:60]}"
    if unknown := rule.keys() - KEYS:
        yield f"{place}: unknown keys {', '.join(sorted(unknown))}"
    if rule.get("level") not in LEVELS:
        yield f"{place}: level is {rule.get('level')!r}, not one of {', '.join(sorted(LEVELS))}"
    if not (rule.get("tests") or rule.get("differs") or rule.get("not_modelled")):
        yield f"{place}: needs tests, or a reason in differs or not_modelled"
    for test in rule.get("tests", ()):
        if test not in known:
            yield f"{place}: {test} is not a test; name a Rust function with #[test], a Python test or a timed script"
    if "partly" in rule and not (rule.get("tests") and rule.keys().isdisjoint({"differs", "not_modelled"})):
        yield f"{place}: partly needs tests, and neither differs nor not_modelled"


def state(rule: dict[str, Any]) -> str:
    """Returns `tested`, `partly`, `differs` or `not modelled`."""
    return next((key for key in ("differs", "not modelled", "partly") if key.replace(" ", "_") in rule), "tested")


def compared(document: dict[str, Any]) -> str:
    """Returns a sentence about the text with which the rules were compared."""
    if "compared" in document:
        return f"Sections, levels and contents were compared {document['compared']}, and each test was read."
    if "partly" in document:
        return f"The document was not at hand. Compared were {document['partly']}. The rest is from memory."
    return "The document was not at hand: sections and levels are from memory."


def rows(rules: list[dict[str, Any]], known: dict[str, Path]) -> str:
    """Returns the table of a document's rules, with a link to the file of each test."""
    lines = ["| section | level | rule | tests |", "|---|---|---|---|"]
    for rule in rules:
        files = ((test, os.path.relpath(known.get(test, ROOT), FOLDER)) for test in rule.get("tests", ()))
        links = ", ".join(f"[`{test}`]({Path(file).as_posix()})" for test, file in files)
        shown = links if state(rule) == "tested" else f"{state(rule)}: {links}" if links else state(rule)
        lines.append(f"| {rule['at']} | {rule['level']} | {shortened(rule['rule'])} | {shown} |")
    return "\n".join(lines)


def shortened(rule: str) -> str:
    """Returns a rule for a table, cut off if it is too long.

    >>> shortened("A " * 20)
    'A A A A A A A A A A A A A A ...'
    """
    words = rule.split()
    return " ".join([*words[: LONGEST - 1], "..."] if len(words) > LONGEST else words)


def page(path: Path) -> str:
    """Returns what the built page of a document adds to its table: the counts, and the reasons."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    rules = document["rule"]
    counts = {key: sum(state(rule) == key for rule in rules) for key in WORDS}
    counted = ", ".join(f"{count} {WORDS[key]}" for key, count in counts.items() if count)
    lines = [
        f"{document['about']}\n",
        f"{len(rules)} rules: {counted}. The wording is ours. {compared(document)}",
    ]
    reasons = []
    for rule in rules:
        partly = f"Partly: {rule['partly']}" if "partly" in rule else None
        if reason := rule.get("differs") or rule.get("not_modelled") or partly or rule.get("note"):
            reasons.append(f"* {rule['at']}, {str(rule['rule']).rstrip('.')}: {reason}")
    if reasons:
        lines += ["\n## Differences and reasons\n", *reasons]
    return "\n".join([*lines, "\n## Rules and tests\n"])


def documents() -> dict[str, dict[str, Any]]:
    """Returns the tables of all documents, by name."""
    return {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.toml"))}


def index() -> str:
    """Returns the table of all documents."""
    lines, sums = [], [0, 0, 0]
    for name, document in documents().items():
        states = [state(rule) for rule in document["rule"]]
        tested, modelled = states.count("tested"), len(states) - states.count("not modelled")
        sums = [a + b for a, b in zip(sums, (len(states), modelled, tested), strict=True)]
        text = "yes" if "compared" in document else "in part" if "partly" in document else "no"
        lines.append(f"| [{document['title']}]({name}.md) | {len(states)} | {modelled} | {tested} | {text} |")
    share = 100 * sums[2] // sums[1]
    return "\n".join(
        [
            f"{sums[2]} of {sums[1]} rules that concern modelled behaviour are tested ({share} %).\n",
            "| document | rules | modelled | tested | compared |",
            "|---|---:|---:|---:|---|",
            *lines,
            f"| all | {sums[0]} | {sums[1]} | {sums[2]} | |",
        ]
    )


def with_table(text: str, table: str) -> str:
    """Returns the text of a page with this table."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.split(END)[1]}"


def pages() -> dict[Path, tuple[str, str]]:
    """Returns the current text of each page, and the text that it should have."""
    tables = {FOLDER / f"{name}.md": rows(own["rule"], definitions()) for name, own in documents().items()}
    texts = {path: path.read_text(encoding="utf-8") for path in [FOLDER / "index.md", *tables]}
    return {path: (text, with_table(text, tables.get(path) or index())) for path, text in texts.items()}


def main() -> int:
    """Writes the tables into the pages if `--write` is given. Prints the errors; returns 1 if there are any."""
    if sys.argv[1:] == ["--write"]:
        for path, (_, text) in pages().items():
            path.write_text(text, encoding="utf-8")
    known = definitions()
    wrong = [
        fault
        for name, document in documents().items()
        for rule in document["rule"]
        for fault in faults(name, rule, known)
    ]
    for path, (before, text) in pages().items():
        if text != before:
            name = path.relative_to(ROOT).as_posix()
            wrong.append(f"{name}: the table is outdated; run: python scripts/standards.py --write")
    print(*wrong, sep="\n", file=sys.stderr, end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
