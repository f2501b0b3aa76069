"""Writes the pages of the register of standards, docs/standards/*.md, from the tables next to them.

    standards.py            write the pages
    standards.py --check    report rules without a test or a reason, tests that do not exist, and pages that are stale

Each table `docs/standards/NAME.toml` lists the rules of one document in our own words. A rule has `at` (section), `level`
(MUST, SHOULD, MAY, ...) and `rule`, and one of: `tests` (names of tests or of timed scripts), `differs` (what the model
does instead, and why) or `not_modelled` (the reason). `note` adds a sentence to a tested rule.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/standards"
LEVELS = {"MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "RECOMMENDED"}
KEYS = {"at", "level", "rule", "tests", "differs", "not_modelled", "note"}
DEFINITION = re.compile(r"^\s*(?:pub(?:\(crate\))? )?(?:fn|def) (\w+)", re.M)
WORDS = {"tested": "name a test", "differs": "differ", "not modelled": "not modelled"}
HEAD = "<!-- Written by scripts/standards.py from {name}.toml. -->\n"


def definitions() -> dict[str, Path]:
    """Returns the file of every test and timed script, by name."""
    found: dict[str, Path] = {}
    for path in [*ROOT.glob("crates/**/*.rs"), *ROOT.glob("python/tests/**/*.py")]:
        found |= dict.fromkeys(DEFINITION.findall(path.read_text(encoding="utf-8")), path)
    return found | {path.stem: path for path in ROOT.glob("crates/**/*.script")}


def faults(name: str, rule: dict[str, Any], known: dict[str, Path]) -> Iterator[str]:
    """Yields what is wrong with a rule of the document `name`."""
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


def wrapped(text: str, indent: str = "") -> str:
    """Returns the text in lines of at most 120 characters."""
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def page(name: str, document: dict[str, Any], known: dict[str, Path]) -> str:
    """Returns the page of a document."""
    rules = document["rule"]
    counts = {key: sum(state(rule) == key for rule in rules) for key in ("tested", "differs", "not modelled")}
    lines = [
        HEAD.format(name=name),
        f"# {document['title']}\n",
        wrapped(document["about"]) + "\n",
        f"{len(rules)} rules: {', '.join(f'{n} {WORDS[key]}' for key, n in counts.items())}. The words are ours.\n",
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
        reason = rule.get("differs") or rule.get("not_modelled") or rule.get("note")
        if reason:
            reasons.append(wrapped(f"* {rule['at']}, {str(rule['rule']).rstrip('.')}: {reason}", "  "))
    if reasons:
        lines += ["\n## Differences and reasons\n", *reasons]
    return "\n".join(lines) + "\n"


def index(documents: dict[str, dict[str, Any]]) -> str:
    """Returns the overview page."""
    rows, sums = [], [0, 0, 0]
    for name, document in documents.items():
        states = [state(rule) for rule in document["rule"]]
        tested, modelled = states.count("tested"), len(states) - states.count("not modelled")
        sums = [a + b for a, b in zip(sums, (len(states), modelled, tested), strict=True)]
        rows.append(f"| [{document['title']}]({name}.md) | {len(states)} | {modelled} | {tested} |")
    share = 100 * sums[2] // sums[1]
    return "\n".join(
        [
            HEAD.format(name="*"),
            "# Register of standards\n",
            "These pages list the rules of standards that concern a model here, each with its tests or a reason.",
            f"{sums[2]} of {sums[1]} rules that concern modelled behaviour name a test ({share} %). `make lint` fails for a rule",
            "without a test or a reason, and for a test that does not exist.\n",
            "The rules were written from memory: their sections and levels have not been compared with the documents. Many",
            "tests were assigned by their names and not read again. So the share says where to look, not that each rule holds.\n",
            "| document | rules | modelled | with a test |",
            "|---|---:|---:|---:|",
            *rows,
            f"| all | {sums[0]} | {sums[1]} | {sums[2]} |",
            "",
            "```{toctree}",
            ":hidden:",
            "",
            *documents,
            "```",
            "",
        ]
    )


def main() -> int:
    """Writes or checks the pages; returns 1 if there are faults."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing, and report what is wrong or stale")
    check = parser.parse_args().check
    known = definitions()
    documents = {path.stem: tomllib.loads(path.read_text()) for path in sorted(FOLDER.glob("*.toml"))}
    wrong = [
        fault
        for name, document in documents.items()
        for rule in document["rule"]
        for fault in faults(name, rule, known)
    ]
    if wrong and check:
        print(*wrong, sep="\n", file=sys.stderr)
        return 1
    for fault in wrong:
        print(fault, file=sys.stderr)
    known |= {
        test: FOLDER for d in documents.values() for r in d["rule"] for test in r.get("tests", ()) if test not in known
    }
    pages = {name: page(name, document, known) for name, document in documents.items()} | {"index": index(documents)}
    stale = [name for name, text in pages.items() if not check_or_write(FOLDER / f"{name}.md", text, check)]
    for name in stale:
        print(f"docs/standards/{name}.md is stale: run .venv/bin/python scripts/standards.py", file=sys.stderr)
    return bool(stale)


def check_or_write(path: Path, text: str, check: bool) -> bool:
    """Writes the page, or returns whether it has this text already."""
    if check:
        return path.exists() and path.read_text() == text
    path.write_text(text)
    return True


if __name__ == "__main__":
    sys.exit(main())
