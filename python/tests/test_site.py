"""The site's lists match the code. `make docs` builds the whole site."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT

import page_tables
import site_pages
import standards
from celltrain.cli.catalog import CHOICES, entries


def test_the_list_of_models_on_the_documentation_site_is_complete():
    models = site_pages.models()
    assert all(f"[`{entry.name}`](models/" in models for kind in CHOICES for entry in entries(kind))


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/**/*.md")), ids=lambda page: page.stem)
def test_every_table_that_the_documentation_site_inserts_into_a_page_can_be_generated(page):
    text = page.read_text(encoding="utf-8")
    if page_tables.LINK.search(text) or "<!-- built: " in text:
        built = page_tables.filled(page, text)
        assert "<!-- built: " not in built
        assert built.count("\n| ") + built.count("\n* ") + built.count("::") > text.count("\n| ") + text.count("\n* ")


def test_every_measure_and_every_table_of_results_is_documented_on_a_page():
    texts = {page: page.read_text(encoding="utf-8") for page in ROOT.glob("docs/**/*.md")}
    named = {name for text in texts.values() for name in page_tables.NAMED.findall(text)}
    assert named == {*page_tables.TABLES, "parameters"}
    linked = {(page.parent / path).resolve() for page, text in texts.items() for path in page_tables.LINK.findall(text)}
    # Ratios, shares and errors are generated with the numbers.
    files = {path for path in ROOT.glob("docs/results/*/*.csv") if path.stem not in ("ratios", "shares", "errors")}
    assert files <= linked


def test_every_page_of_the_documentation_site_is_reachable_from_its_index():
    texts = [
        (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        for name in ("index", "mechanisms", "models", "papers")
    ]
    blocks = (block for text in texts for block in re.findall(r"```{toctree}\n(.*?)```", text, re.DOTALL))
    listed = {line for block in blocks for line in block.split()}
    documents = {path.stem for path in (ROOT / "docs/standards").glob("*.toml")}
    assert documents == {path.stem for path in (ROOT / "docs/standards").glob("*.md")} - {"index"}
    listed |= {f"standards/{name}" for name in documents}
    pages = {str(path.relative_to(ROOT / "docs").with_suffix("")) for path in (ROOT / "docs").rglob("*.md")}
    globbed = {page for page in pages if f"{page.rpartition('/')[0]}/*" in listed}
    assert not pages - globbed - listed - {"index"}


def test_the_index_of_the_standards_register_states_the_number_of_rules_from_each_document():
    assert {path.name: text for path, (text, _) in standards.pages().items()} == {
        path.name: text for path, (_, text) in standards.pages().items()
    }


def test_the_standards_register_accepts_only_the_names_of_tests_and_refuses_helper_functions():
    rust = (
        'fn helper() {}\n#[test]\n#[ignore = "slow"]\n// A comment.\nfn a_sum_is_exact() { fn inner() {} }\n'
        "proptest! {\n    #[test]\n    fn a_sum_is_commutative(x in 0..3u32) {}\n}\n#[cfg(test)]\nfn other() {}\n"
    )
    assert standards.tests_in(".rs", rust) == ["a_sum_is_exact", "a_sum_is_commutative"]
    assert standards.tests_in(".py", "def helper(): ...\ndef test_a_sum_is_exact(): ...\n") == ["test_a_sum_is_exact"]
    # Functions of the crates' tests and of this folder that are not tests.
    known = standards.definitions()
    assert not {"drawn", "situations", "is_refused", "celltrain", "new"} & known.keys()
    rule = {"at": "1", "level": "MUST", "rule": "It holds."}
    helper, partly = ({**rule, **own} for own in ({"tests": ["situations"]}, {"partly": "Half.", "differs": "No."}))
    assert ["situations is not a test" in fault for fault in standards.faults("x", helper, known)] == [True]
    assert ["partly needs tests" in fault for fault in standards.faults("x", partly, known)] == [True]


def test_the_pages_of_the_standards_register_link_each_test_to_its_file():
    for name, document in standards.documents().items():
        page = (standards.FOLDER / f"{name}.md").read_text(encoding="utf-8")
        links = dict(re.findall(r"\[`(\w+)`\]\(([^)]+)\)", page))
        assert set(links) == {test for rule in document["rule"] for test in rule.get("tests", ())}
        for test, file in links.items():
            path = standards.FOLDER / file
            assert path.stem == test or test in path.read_text(encoding="utf-8")


def test_each_figure_in_the_gallery_is_drawn_by_the_commands_below_the_figure():
    gallery = (ROOT / "docs/gallery.md").read_text(encoding="utf-8")
    figures = re.findall(r"\]\(images/gallery/([^)]+)\)", gallery)
    assert len(figures) >= 8
    assert {path.name for path in site_pages.FIGURES.iterdir()} == set(figures)
    sections = gallery.split("\n## ")[1:]
    assert all("```sh\n" in section for section in sections)
