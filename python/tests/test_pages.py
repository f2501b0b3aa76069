from __future__ import annotations

import json
import re
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest
from pages import MODEL_HEADINGS, ROOT, Block, blocks, headings, pages, prose, section

import page_tables
from celltrain import _core
from celltrain.cli.catalog import CHOICES, Parameter, entries, page_of
from celltrain.model.scenario import Reading

MODELS = ROOT / "docs" / "models"
SCENARIOS = ROOT / "docs" / "scenarios.md"
# Variants of TCP that have the options of vanilla. Their pages refer to the page of vanilla.
WITHOUT_TABLE = {"tahoe", "reno", "newreno", "newreno_hoe", "sack", "sack_pipe"}


def registered() -> dict[str, tuple[str, str]]:
    """Returns the kind and name of every model in the schema, keyed by page."""
    definitions = json.loads(_core.schema())["$defs"]
    choices = ((kind, choice) for kind, name in CHOICES.items() for choice in definitions[name]["oneOf"])
    # A choice is either between tables or between constants.
    models = [(kind, choice["required"][0] if "required" in choice else choice["const"]) for kind, choice in choices]
    return {page_of(kind, name): (kind, name) for kind, name in models}


def test_every_model_has_a_documentation_page_and_every_model_page_has_a_model():
    assert len(registered()) == sum(len(entries(kind)) for kind in CHOICES)
    assert sorted(page.stem for page in MODELS.glob("*.md")) == sorted(registered())


def test_the_verification_page_and_the_ns2_trace_page_state_the_same_counts():
    def counts(page: str) -> list[int]:
        rows = re.findall(r"^\| (?:equal|not modelled)[^|]*\| (\d+) \|$", prose(ROOT / "docs" / page), re.MULTILINE)
        return [int(count) for count in rows]

    *equal, other_tcp, other_test = counts("ns2-traces.md")
    assert counts("tcp-verification.md") == [*equal, other_tcp + other_test]
    assert f"{sum(equal)} of {sum([*equal, other_tcp, other_test])} traces" in prose(ROOT / "docs/tcp-verification.md")


@pytest.mark.slow
@pytest.mark.parametrize("page", registered())
def test_every_model_page_has_the_model_name_in_its_title_and_the_required_headings_in_order(page: str):
    _, name = registered()[page]
    text = prose(MODELS / f"{page}.md")
    assert re.match(rf"# .*\S \(`{name}`\)\n", text), text[:80]
    assert headings(text) == MODEL_HEADINGS


@pytest.mark.parametrize("name", registered())
def test_every_model_page_shows_a_scenario(name: str):
    page = MODELS / f"{name}.md"
    assert any(is_scenario(block) for block in blocks(page)) or "scenarios/" in page.read_text()


@pytest.mark.parametrize("name", [name for name in registered() if name not in WITHOUT_TABLE])
def test_every_parameter_of_a_model_is_documented_on_the_page_of_the_model(name: str):
    kind, own = registered()[name]
    [entry] = [entry for entry in entries(kind) if entry.name == own]
    page = MODELS / f"{name}.md"
    text = section(page_tables.filled(page, prose(page)), "Parameters")
    rows = {row[0].strip("`"): row for row in table(text)} if entry.parameters else {}
    assert set(rows) >= {parameter.name for parameter in entry.parameters}


def test_the_scenario_file_page_lists_every_key_that_no_model_page_documents():
    """The previous test finds the parameters of models on their pages. Pages of TCP variants refer to this page."""
    schema = json.loads(_core.schema())
    parts = dict(schema["$defs"])
    for kind, name in CHOICES.items():
        tables = [table for choice in parts[name]["oneOf"] for table in choice.get("properties", {}).values()]
        for table in tables if kind != "tcp" else []:
            parts.pop(table.get("$ref", "").rpartition("/")[2], None)
    # The groups of a TCP's rules.
    for group in ("Recovery", "Receiver", "Timer", "Start", "Window"):
        parts.pop(f"{group}Options")
    # A choice between tables has no keys of its own.
    keys = {key for part in (schema, *parts.values()) for key in part.get("properties", {})}
    assert len(keys) > 100
    assert sorted(key for key in keys if f"`{key}`" not in prose(SCENARIOS) and f"[{key}" not in prose(SCENARIOS)) == []


def test_the_scenario_file_page_states_the_default_tcp_settings():
    [title] = [title for title in headings(prose(SCENARIOS)) if "[tcp.vanilla]" in title]
    listed = table(section(prose(SCENARIOS), title))
    rows = {key: row for row in listed for key in re.findall(r"`([^`]+)`", row[0])}
    [entry] = [entry for entry in entries("tcp") if entry.name == "vanilla"]
    known = {parameter.name: parameter for parameter in entry.parameters}
    assert rows.keys() <= known.keys()
    assert len(rows) > 15
    for key, row in rows.items():
        assert stated(row[2]) == normal(default(known[key])), key


@pytest.mark.parametrize("name", registered())
def test_every_test_named_on_the_page_of_a_model_exists(name: str):
    text = section(prose(MODELS / f"{name}.md"), "Validation")
    for word in re.findall(r"`([^`\s]+)`", text):
        if "/" in word:
            assert (ROOT / word).exists() or list(ROOT.glob(f"crates/*/src/**/{word}")), word
        elif word.endswith(".script"):
            assert (ROOT / "crates/celltrain-core/tests/tcp" / word).exists(), word
        elif re.fullmatch(r"\w+_", word):
            assert list((ROOT / "crates/celltrain-core/tests/tcp").glob(f"{word}*.script")), word
        elif re.fullmatch(r"\w+(_\w+){3,}", word):
            # A macro generates the tests of the trials that `trials.rs` lists.
            assert f"fn {word}(" in rust() or f"\n    {word}:" in rust(), word
        elif re.fullmatch(r"\w+(-\w+){2,}", word):
            assert f'id = "{word}"' in claims(), word


def is_scenario(block: Block) -> bool:
    """Returns whether a block is a complete scenario that is not from a page about adding a model."""
    complete = re.search(r"^duration\s*=", block.text, re.MULTILINE) is not None
    return block.language == "toml" and complete and not block.comment.startswith(("file:", "faulty"))


@pytest.mark.parametrize("block", [b for page in pages() for b in blocks(page) if is_scenario(b)], ids=str)
def test_every_complete_scenario_on_a_page_is_valid_and_gives_no_warning(block: Block):
    reading = Reading.of_core(_core.parse(block.text, str(block)))
    assert [fault.message for fault in reading.faults] == []
    assert reading.warnings == []


@pytest.mark.parametrize(
    "block", [b for page in pages() for b in blocks(page) if b.comment.startswith("faulty")], ids=str
)
def test_the_invalid_scenario_shown_on_a_page_gives_the_error_messages_shown_there(block: Block):
    faults = Reading.of_core(_core.parse(block.text, "slips.toml")).faults
    shown = "".join(other.text for other in blocks(block.page) if other.language == "text")
    assert faults
    for fault in faults:
        assert f"{fault.message}\n" in shown


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_link_on_a_page_has_an_existing_target(page: Path):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.+)$", prose(file), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles], (
                target
            )


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_pages_contain_no_lines_that_the_site_generator_would_drop_as_comments(page: Path):
    # MyST leaves out lines that begin with a percent sign.
    assert not re.findall(r"^ *%.*", prose(page), re.MULTILINE)


def table(text: str) -> list[list[str]]:
    """Returns the rows of the tables in a text, without their headers."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [row for row in rows if row[0] not in ("key", "---")]


def default(parameter: Parameter) -> object:
    """Returns the default of a parameter in the form in which a page must state it."""
    if parameter.required:
        return "required"
    return "absent" if parameter.default is None else parameter.default


def stated(cell: str) -> object:
    """Returns the default stated in a table cell: a TOML value or a word."""
    if re.match(r"`tcp1`", cell):
        return "absent"  # The table cell describes the behaviour instead.
    value = re.fullmatch(r"`(.+)`", cell)
    return normal(json.loads(value[1])) if value else cell


UNITS = {
    **{"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12},
    **{"B": 1, "kB": 10**3, "MB": 10**6},
    **{"bps": 1, "kbps": 10**3, "Mbps": 10**6, "Gbps": 10**9},
}


def normal(value: object) -> object:
    """Converts a number with a unit to an integer of the smallest unit, so that 65.535kB is 65535B."""
    quantity = re.fullmatch(r"([\d.]+) ?([a-zA-Z]+)", value) if isinstance(value, str) else None
    return Decimal(quantity[1]) * UNITS[quantity[2]] if quantity and quantity[2] in UNITS else value


@cache
def rust() -> str:
    return "".join(file.read_text() for file in sorted(ROOT.glob("crates/*/**/*.rs")))


@cache
def claims() -> str:
    return "".join(file.read_text() for file in sorted(ROOT.glob("papers/*/claims.toml")))
