"""Sphinx configuration of the site: `make docs`. It uses the pages unchanged, including links between files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import celltrain

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import page_tables  # noqa: E402

project = "celltrain"
author = "The celltrain developers"
copyright = "The celltrain developers"  # noqa: A001
version = release = celltrain.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
root_doc = "docs/index"
#: Folders of the checkout that contain pages.
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
    # The pages of studies are in docs/studies.
    "studies/*/*",
]

myst_enable_extensions = ["colon_fence"]
# Headings have the same anchors as on GitHub, so links to headings work on both sites.
myst_heading_anchors = 6
# The notebooks in docs/notebooks have no saved outputs; other pages have no code cells.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_in_temp = True
nb_merge_streams = True
suppress_warnings = [
    # Console blocks also contain output, and some scenarios are shown with their faults.
    "misc.highlighting_failure",
    # Some settings, such as `bytes` of a burst, have the same names as Python types.
    "ref.python",
    # Pages may start with a heading of any level.
    "myst.header",
]

# Docstrings are plain text with names in backticks.
default_role = "code"
autodoc_default_options = {"members": True, "undoc-members": False, "member-order": "bysource"}
autodoc_typehints = "description"
autodoc_typehints_format = "short"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
# Show attributes as fields of their class. Separate entries would describe each attribute of a dataclass twice.
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"celltrain {release}"
html_extra_path = ["first"]
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}


def with_tables(app: Any, page: str, source: list[str]) -> None:
    """Builds the tables of pages whose data are in other files."""
    path = Path(app.srcdir) / f"{page}.md"
    if path.exists():
        source[0] = page_tables.filled(path, source[0])


def setup(app: Any) -> None:
    """Builds tables, and omits the attributes that pydantic adds to each class, which celltrain does not document."""
    app.connect("source-read", with_tables)
    app.connect("autodoc-skip-member", lambda _, __, name, ___, skip, ____: skip or name.startswith("model_"))
