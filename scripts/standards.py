"""Checks the register of standards: rules without a test or a reason, and tests that do not exist.

Each table `docs/standards/NAME.toml` lists the rules of one document in our own words. `compared` says with
which text they were compared. `partly` says which rules were compared with another account of the document, and with
which. Without either, the document was not at hand. A rule has `at` (section), `level` (MUST,
SHOULD, MAY, ..., or RULE for a sentence or a numbered step without a key word) and `rule`, and one of: `tests` (names of
tests or of timed scripts), `differs` (what the model does instead, and why) or `not_modelled` (the reason). `note` adds a
sentence to a tested rule. `page_tables.py` builds the pages from them, and `--write` puts the
table of all documents into their index.
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
KEYS = {"at", "level", "rule", "tests", "differs", "not_modelled", "note"}
DEFINITION = re.compile(r"^\s*(?:pub(?:\(crate\))? )?(?:fn|def) (\w+)", re.M)
BEGIN, END = "<!-- table of scripts/standards.py -->", "<!-- end -->"
WORDS = {"tested": "tested", "differs": "differ", "not modelled": "not modelled"}


@cache
def definitions() -> dict[str, Path]:
    """Returns the file of every test and timed script, by name."""
    found: dict[str, Path] = {}
    for path in [*ROOT.glob("crates/**/*.rs"), *ROOT.glob("python/tests/**/*.py")]:
        found |= dict.fromkeys(DEFINITION.findall(path.read_text(encoding="utf-8")), path)
    return found | {path.stem: path for path in ROOT.glob("crates/**/*.script")}


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
            yield f"{place}: the test {test} does not exist"


def state(rule: dict[str, Any]) -> str:
    """Returns `tested`, `differs` or `not modelled`."""
    return "differs" if "differs" in rule else "not modelled" if "not_modelled" in rule else "tested"


def compared(document: dict[str, Any]) -> str:
    """Returns a sentence about the text with which the rules were compared."""
    if "compared" in document:
        return f"Sections, levels and contents were compared {document['compared']}, and each test was read."
    if "partly" in document:
        return f"The document was not at hand. Compared were {document['partly']}. The rest is from memory."
    return "The document was not at hand: sections and levels are from memory."


def page(path: Path) -> str:
    """Returns the rules of a document in Markdown, with links to their tests."""
    document, known = tomllib.loads(path.read_text(encoding="utf-8")), definitions()
    rules = document["rule"]
    counts = {key: sum(state(rule) == key for rule in rules) for key in ("tested", "differs", "not modelled")}
    lines = [
        f"{document['about']}\n",
        f"{len(rules)} rules: {', '.join(f'{n} {WORDS[key]}' for key, n in counts.items())}. The wording is ours. "
        f"{compared(document)}\n",
        "| section | level | rule | tests |",
        "|---|---|---|---|",
    ]
    reasons = []
    for rule in rules:
        links = " ".join(
            f"[{n}]({os.path.relpath(known[test], FOLDER)})" for n, test in enumerate(rule.get("tests", ()), 1)
        )
        shown = links if state(rule) == "tested" else f"{state(rule)} {links}".strip()
        lines.append(f"| {rule['at']} | {rule['level']} | {rule['rule']} | {shown} |")
        if reason := rule.get("differs") or rule.get("not_modelled") or rule.get("note"):
            reasons.append(f"* {rule['at']}, {str(rule['rule']).rstrip('.')}: {reason}")
    if reasons:
        lines += ["\n## Differences and reasons\n", *reasons]
    return "\n".join(lines) + "\n"


def documents() -> dict[str, dict[str, Any]]:
    """Returns the tables of all documents, by name."""
    return {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.toml"))}


def index() -> str:
    """Returns the table of all documents."""
    rows, sums = [], [0, 0, 0]
    for name, document in documents().items():
        states = [state(rule) for rule in document["rule"]]
        tested, modelled = states.count("tested"), len(states) - states.count("not modelled")
        sums = [a + b for a, b in zip(sums, (len(states), modelled, tested), strict=True)]
        text = "yes" if "compared" in document else "in part" if "partly" in document else "no"
        rows.append(f"| [{document['title']}]({name}.md) | {len(states)} | {modelled} | {tested} | {text} |")
    share = 100 * sums[2] // sums[1]
    return "\n".join(
        [
            f"{sums[2]} of {sums[1]} rules that concern modelled behaviour are tested ({share} %).\n",
            "| document | rules | modelled | tested | compared |",
            "|---|---:|---:|---:|---|",
            *rows,
            f"| all | {sums[0]} | {sums[1]} | {sums[2]} | |",
        ]
    )


def with_table(text: str) -> str:
    """Returns the text of the index with the table of all documents."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{index()}\n\n{END}{rest.split(END)[1]}"


def main() -> int:
    """Writes the table into the index if `--write` is given. Prints the errors; returns 1 if there are any."""
    page = FOLDER / "index.md"
    text = page.read_text(encoding="utf-8")
    if sys.argv[1:] == ["--write"]:
        text = with_table(text)
        page.write_text(text, encoding="utf-8")
    known = definitions()
    wrong = [
        fault
        for name, document in documents().items()
        for rule in document["rule"]
        for fault in faults(name, rule, known)
    ]
    if text != with_table(text):
        wrong.append("docs/standards/index.md: the table is outdated; run: python scripts/standards.py --write")
    print(*wrong, sep="\n", file=sys.stderr, end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
