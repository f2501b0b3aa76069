"""The site's lists match the code. `make docs` builds the whole site."""

from __future__ import annotations

import re

from conftest import ROOT

import site_pages
from celltrain.cli.catalog import CHOICES, entries


def test_generated_lists_of_pages_match_the_code():
    """To update them: .venv/bin/python scripts/site_pages.py."""
    for path, text in site_pages.PAGES.items():
        assert path.read_text(encoding="utf-8") == text(), path.name
    models = (ROOT / "docs/models.md").read_text(encoding="utf-8")
    assert all(f"[`{entry.name}`](models/" in models for kind in CHOICES for entry in entries(kind))


def test_the_index_reaches_every_page():
    texts = [
        (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        for name in ("index", "mechanisms", "models", "papers")
    ]
    blocks = (block for text in texts for block in re.findall(r"```{toctree}\n(.*?)```", text, re.DOTALL))
    listed = {line for block in blocks for line in block.split()}
    listed |= {f"standards/{path.stem}" for path in (ROOT / "docs/standards").glob("*.toml")}
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
