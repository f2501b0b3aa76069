"""Every citation of docs/mechanisms.md refers to an existing section or choice, and choices have reasons."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from pages import ROOT

PAGE = ROOT / "docs" / "mechanisms.md"
# The register of mechanisms: the page that is cited, and the pages to which it links.
PAGES = (PAGE, *sorted((ROOT / "docs" / "mechanisms").glob("*.md")))
# Folders in which code and pages may cite the register.
FOLDERS = ("crates", "docs", "fuzz", "papers", "plans", "python", "scenarios", "scripts", "studies")
TEXT = {".md", ".py", ".pyi", ".rs", ".script", ".toml"}

REFERENCE = r"(?:A-\d\d|\d+(?:\.\d+)?(?![\w-]))"
# For example `docs/mechanisms.md` 3.1 to 3.7; `docs/mechanisms.md` sections 1.1 and 1.3; docs/mechanisms.md, A-25.
CITATION = re.compile(
    rf"(?<!\")docs/mechanisms\.md`?(?P<cited>,? (?:sections? )?{REFERENCE}(?:(?:,| and| to|, and) (?:sections? )?{REFERENCE})*)?"
)
QUOTED = '"(?P<quote>[^"]+)"'
# Quotations in scripts before or after a citation: (docs/mechanisms.md 3.7), or docs/mechanisms.md 3.2: "one", "two".
QUOTED_BEFORE = re.compile(rf"{QUOTED} \((?={CITATION.pattern})")
QUOTED_BEHIND = re.compile(rf'{CITATION.pattern}[^".;]{{0,60}}(?P<quotes>"[^"]+"(?:[,;] "[^"]+")*)')


@cache
def headed(page: Path) -> dict[str, str]:
    """Returns the text below each heading with a number or the id of a choice, in the order of the page."""
    parts = re.split(r"^#{2,3} (A-\d\d|\d+(?:\.\d+)?)\.? (.*)$", page.read_text(), flags=re.MULTILINE)[1:]
    numbers, texts = parts[::3], parts[2::3]
    assert len(set(numbers)) == len(numbers), f"{page.name} has a number or an id twice"
    return dict(zip(numbers, texts, strict=True))


@cache
def table() -> dict[str, list[str]]:
    """The rows of the table of choices, by the choice's id: the text of the columns choice and default, weight, and key."""
    rows = re.findall(r"^\| \[?(A-\d\d)\]?(?:\([^)]*\))? \| (.*) \|$", PAGE.read_text(), flags=re.MULTILINE)
    assert len(dict(rows)) == len(rows), "the table has an id twice"
    return {choice: cells.split(" | ") for choice, cells in rows}


@cache
def sections() -> dict[str, str]:
    """The text of every numbered section and of every choice, keyed by its number or id."""
    texts = {number: text for page in PAGES for number, text in headed(page).items()}
    assert len(texts) == sum(len(headed(page)) for page in PAGES), "two pages have the same number or id"
    return texts | {choice: f"{' '.join(cells)} {texts.get(choice, '')}" for choice, cells in table().items()}


def choices() -> list[str]:
    return list(table())


@cache
def texts() -> dict[str, str]:
    """Returns the text of every file outside the register that may cite it, keyed by path."""
    files = [path for path in ROOT.iterdir() if path.suffix in TEXT or path.name == "Makefile"]
    files += [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in TEXT]
    kept = [path for path in sorted(files) if "target" not in path.parts and path not in (*PAGES, Path(__file__))]
    return {str(path.relative_to(ROOT)): path.read_text() for path in kept}


@cache
def flowing(name: str) -> str:
    """Returns a file's text without line breaks and comment marks."""
    text = re.sub(r"\n\s*(?://[/!]?|#)? ?", " ", texts()[name])
    return re.sub(r"\s+", " ", text)


def citations() -> Iterator[tuple[str, re.Match[str]]]:
    """Yields every place in which code cites docs/mechanisms.md, with the cited sections."""
    for name in texts():
        if not name.endswith(".md"):
            yield from ((name, found) for found in CITATION.finditer(flowing(name)))


def cited(found: re.Match[str]) -> list[str]:
    return re.findall(REFERENCE, found["cited"] or "")


def test_the_sections_of_the_mechanism_register_are_in_order_and_its_choices_are_numbered_without_gaps():
    for page in PAGES:
        numbers = [tuple(map(int, number.split("."))) for number in headed(page) if not number.startswith("A-")]
        assert numbers == sorted(numbers)
    assert choices() == [f"A-{number:02}" for number in range(1, len(choices()) + 1)]
    explained = [number for page in PAGES for number in headed(page) if number.startswith("A-")]
    assert explained == sorted(explained)
    assert set(explained) <= set(choices())


@pytest.mark.parametrize("choice", choices())
def test_every_modelling_choice_in_the_mechanism_register_has_a_default_a_reason_and_a_weight(choice: str):
    described, weight, _ = table()[choice]
    assert re.fullmatch(r"\*\*[^*]+\*\*: \S.*\.", described), f"{choice} has no default"
    assert weight, f"{choice} has no weight"
    # A short reason follows the default. If the reason is longer, the id of the choice links to a heading.
    explained = [page for page in PAGES if choice in headed(page)]
    linked = f"[{choice}](mechanisms/choices.md#{choice.lower()}-" in PAGE.read_text()
    assert linked == bool(explained)
    assert explained or described.count(". ") >= 1, f"{choice} has no reason"


@pytest.mark.slow
def test_every_citation_of_the_mechanism_register_in_code_names_an_existing_section_or_choice():
    wrong = [f"{name}: {found[0]}" for name, found in citations() if not cited(found)]
    wrong += [f"{name}: {n}" for name, found in citations() for n in cited(found) if n not in sections()]
    assert wrong == []
    # Checks that the pattern above finds citations at all.
    assert sum(1 for _ in citations()) > 100


def test_links_to_sections_and_choices_of_the_mechanism_register_have_the_correct_targets():
    links = [
        (name, *link)
        for name, text in texts().items()
        for link in re.findall(r"\[(?:[Mm]echanisms )?([^\]]+)\]\([\w./]*mechanisms(?:/\w+)?\.md#([\w-]+)\)", text)
    ]
    numbered = [(name, label, anchor) for name, label, anchor in links if re.fullmatch(REFERENCE, label)]
    assert numbered
    for name, label, anchor in numbered:
        assert anchor.startswith(f"{label.replace('.', '').lower()}-"), f"{name}: {label} leads to {anchor}"


def test_every_modelling_choice_named_in_any_file_is_in_the_mechanism_register():
    named = {(name, choice) for name, text in texts().items() for choice in re.findall(r"\bA-\d\d\b", text)}
    assert sorted(place for place in named if place[1] not in choices()) == []


def test_scripts_quote_the_mechanism_register_verbatim():
    quotes = []
    for name in texts():
        if name.endswith(".script"):
            quotes += [(name, CITATION.match(flowing(name), f.end()), f["quote"]) for f in quoted_before(name)]
            quotes += [(name, f, quote) for f in quoted_behind(name) for quote in re.findall(QUOTED, f["quotes"])]
    wrong = [
        f"{name}: {quote}" for name, found, quote in quotes if not any(plain(quote) in text for text in places(found))
    ]
    assert wrong == []
    assert len(quotes) > 50


def quoted_before(name: str) -> Iterator[re.Match[str]]:
    return QUOTED_BEFORE.finditer(flowing(name))


def quoted_behind(name: str) -> Iterator[re.Match[str]]:
    return QUOTED_BEHIND.finditer(flowing(name))


def places(found: re.Match[str]) -> list[str]:
    return [plain(sections()[number]) for number in cited(found)]


def plain(text: str) -> str:
    """Returns text without marks, line breaks and hyphens at line ends."""
    return re.sub(r"\s+", " ", re.sub(r"[`*]", "", text)).replace("- ", "-")


def test_no_file_uses_the_old_name_of_the_mechanism_register():
    old = "MECHAN" + "ISMS"
    assert sorted(name for name, text in texts().items() if old in text) == []
    assert old not in PAGE.read_text()
