"""The site of the pages: its lists are those of the code, and its links are looked at. `make docs` builds the whole."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from conftest import ROOT

import site_links
import site_pages
from celltrain.catalog import CHOICES, entries


def test_the_pages_of_lists_are_those_of_the_code():
    """After a change: .venv/bin/python scripts/site_pages.py."""
    for path, text in site_pages.PAGES.items():
        assert path.read_text(encoding="utf-8") == text(), path.name
    models = (ROOT / "docs/models.md").read_text(encoding="utf-8")
    assert all(f"[`{entry.name}`](models/" in models for kind in CHOICES for entry in entries(kind))


def test_the_index_reaches_every_page():
    texts = [(ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("index", "models", "papers")]
    blocks = (block for text in texts for block in re.findall(r"```{toctree}\n(.*?)```", text, re.DOTALL))
    listed = {line for block in blocks for line in block.split()}
    pages = {str(path.relative_to(ROOT / "docs").with_suffix("")) for path in (ROOT / "docs").rglob("*.md")}
    globbed = {page for page in pages if f"{page.rpartition('/')[0]}/*" in listed}
    assert not pages - globbed - listed - {"index"}


def test_every_figure_of_the_gallery_is_one_that_its_commands_draw():
    gallery = (ROOT / "docs/gallery.md").read_text(encoding="utf-8")
    figures = re.findall(r"\]\(images/gallery/([^)]+)\)", gallery)
    assert len(figures) >= 8
    assert {path.name for path in site_pages.FIGURES.iterdir()} == set(figures)
    sections = gallery.split("\n## ")[1:]
    assert all("```sh\n" in section for section in sections)


@pytest.mark.parametrize(
    ("reference", "leads"),
    [
        ("b.html#there", True),
        ("b.html#elsewhere", False),
        ("sub/c.txt", True),
        ("sub/d.txt", False),
        ("sub", False),
        ("#here", True),
        ("#nowhere", False),
        ("https://example.org/x", True),
    ],
)
def test_a_link_that_leads_nowhere_is_found_with_its_page(tmp_path, reference, leads):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/c.txt").write_text("c")
    (tmp_path / "a.html").write_text(f'<p id="here"><a href="{reference}">x</a></p>')
    (tmp_path / "b.html").write_text('<h1 id="there">b</h1>')
    assert site_links.broken(tmp_path) == ([] if leads else [f"a.html: {reference}"])
    answer = subprocess.run(
        [sys.executable, site_links.__file__, tmp_path], capture_output=True, text=True, check=False
    )
    assert answer.returncode == (0 if leads else 1)
    assert f"2 pages, 1 links, {0 if leads else 1} broken" in answer.stdout
