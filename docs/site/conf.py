"""How Sphinx makes the site of the pages: `make docs`. The pages stay as they are; links between files of the checkout hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import celltrain

ROOT = Path(__file__).parents[2]

project = "celltrain"
author = "The celltrain developers"
copyright = "The celltrain developers"  # noqa: A001
version = release = celltrain.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
root_doc = "docs/index"
#: What of the checkout has pages.
PAGES = {
    "docs",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "papers",
    "studies",
}
exclude_patterns = [
    *(path.name for path in ROOT.iterdir() if path.name not in PAGES),
    "docs/site",
    "docs/images",
    # Their studies have pages in docs/studies.
    "studies/*/*",
]

myst_enable_extensions = ["colon_fence"]
# As GitHub does it, so that a link to a heading holds in both places.
myst_heading_anchors = 6
# The notebooks of docs/notebooks have no outputs of their own; other pages have no cells.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_in_temp = True
nb_merge_streams = True
suppress_warnings = [
    # Outputs in console blocks are no commands, and a few scenarios are shown with what is wrong in them.
    "misc.highlighting_failure",
    # Settings may have names of Python's types, such as the bytes of a burst.
    "ref.python",
    # Pages begin where their subject does.
    "myst.header",
]

# Docstrings are plain text with names in backticks.
default_role = "code"
autodoc_default_options = {"members": True, "undoc-members": False, "member-order": "bysource"}
autodoc_typehints = "description"
autodoc_typehints_format = "short"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"celltrain {release}"
html_extra_path = ["first"]
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}


def setup(app: Any) -> None:
    """What pydantic adds to each class is not ours to explain."""
    app.connect("autodoc-skip-member", lambda _, __, name, ___, skip, ____: skip or name.startswith("model_"))
