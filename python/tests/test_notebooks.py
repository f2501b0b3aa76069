"""The example notebooks run from the first cell to the last, and display results correctly."""

from __future__ import annotations

import json
import re
import sys
import types
from html.parser import HTMLParser
from pathlib import Path

import pytest
from conftest import ROOT, import_or_skip

import celltrain as ct
from celltrain.model import arguments
from celltrain.model.grids import MOST_ROWS, Card, Grid

pytestmark = pytest.mark.slow

NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
HARMFUL = "<script>alert('x')</script>\x1b[31m & \u202e"


@pytest.fixture(scope="module")
def answers():
    """One result of each class, with markup and a terminal escape in its name."""
    lan = ct.n_source(
        sources=2, link_delay="5us", buffer_cells=60, policy=ct.SelectiveDrop(), duration="5ms", name=HARMFUL
    )
    other = ct.n_source(
        sources=2, link_delay="5us", buffer_cells=60, policy=ct.TailDrop(), duration="5ms", name="other"
    )
    z = {"path": "port.bottleneck.policy.selective_drop.z", "values": {HARMFUL: 0.5, "more": 1.1}}
    store = ct.sweep(lan, over={"Z": z}, seeds=2, measures=["efficiency", "fairness"])
    compared = ct.compare(lan, other, seeds=2, measures=["efficiency", "cells.lost"])
    return {
        "Scenario": lan,
        "RunResult": ct.run(lan),
        "Compared": compared,
        "Store": store,
        "Report": ct.report(store),
    }


class Words(HTMLParser):
    """Tags and text of an element."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.texts = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts += [data.strip()] if data.strip() else []


@pytest.mark.parametrize("name", ["Scenario", "RunResult", "Compared", "Store", "Report"])
def test_the_html_of_a_result_in_a_notebook_has_the_same_content_as_the_printed_text(answers, name):
    answer = answers[name]
    html, text = answer._repr_html_(), str(answer)
    words = Words(html)
    assert not words.open
    assert set(words.tags) <= {"div", "strong", "small", "table", "thead", "tbody", "tr", "th", "td"}
    plain = re.sub(r"\s+", " ", text)
    for said in words.texts:
        assert re.sub(r"\s+", " ", said) in plain, said
    # One or two dozen lines, so that the text fits on a screen.
    assert len(text.splitlines()) < 45


@pytest.mark.parametrize("name", ["Scenario", "RunResult", "Compared", "Store", "Report"])
def test_names_in_results_are_escaped_in_html_and_on_terminals(answers, name):
    html, text = answers[name]._repr_html_(), str(answers[name])
    assert "&lt;script&gt;" in html
    for one in (html, text):
        assert "\x1b" not in one and "\u202e" not in one
        assert "\\x1b[31m" in one


def test_the_html_of_a_result_sets_no_colours(answers):
    """Text and lines use the colours of the surrounding page, light or dark."""
    for answer in answers.values():
        styles = " ".join(re.findall(r'style="([^"]*)"', answer._repr_html_()))
        assert not re.search(r"(?<!-)color:|background:(?!none)|#[0-9a-f]{3}", styles)


def test_the_html_of_a_long_result_omits_rows_and_states_their_number():
    rows = [[f"flow {i}", str(i)] for i in range(MOST_ROWS + 5)]
    card = Card(title="many", grids=[Grid(heads=["flow", "count"], rows=rows, more=2)])
    for text in (card.text(), card.html()):
        assert f"flow {MOST_ROWS - 1}" in text and f"flow {MOST_ROWS}" not in text
        assert "and 7 more" in text


def test_numbers_in_the_html_of_a_result_match_the_result(answers):
    result, compared = answers["RunResult"], answers["Compared"]
    assert f"efficiency {result.efficiency:.4f}, fairness {result.fairness:.4f}" in str(result)
    assert result.fingerprint in str(result)
    [mean] = [
        row["mean"] for row in compared.table.to_pylist() if row["name"] == "other" and row["measure"] == "cells.lost"
    ]
    assert re.search(rf"other +{mean:g}\b", str(compared).partition("cells lost")[2])
    assert "4 of 4 runs done" in str(answers["Store"])


class Shell:
    """A replacement for IPython's shell in a notebook."""

    def __init__(self, kernel):
        self.kernel = kernel


@pytest.fixture
def notebook(monkeypatch):
    """Simulates a notebook's kernel for tests of progress bars. Returns the displayed output."""
    shown = []

    class ProgressBar:
        def __init__(self, total):
            self.total, self.percent = total, 0

        def display(self):
            shown.append("a bar")

        @property
        def progress(self):
            return self.percent

        @progress.setter
        def progress(self, percent):
            self.percent = percent
            shown.append(percent)

    ipython, drawing = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: Shell(object())
    drawing.ProgressBar = ProgressBar
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", drawing)
    monkeypatch.setattr(arguments, "AFTER_S", 0.0)
    return shown


def test_a_long_call_in_a_notebook_shows_a_progress_bar(notebook):
    lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=60, policy=ct.TailDrop(), duration="5ms")
    ct.compare(lan, seeds=4, jobs=1)
    ct.sweep(lan, over={"port.bottleneck.buffer": [50, 60]}, seeds=2, jobs=1)
    assert notebook.count("a bar") == 2
    percents = [one for one in notebook if one != "a bar"]
    assert percents and all(0 < percent <= 100 for percent in percents)
    assert percents[-1] == 100


def test_a_user_supplied_progress_callback_replaces_the_progress_bar(notebook):
    lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=60, policy=ct.TailDrop(), duration="5ms")
    told = []
    ct.compare(lan, seeds=2, progress=told.append)
    assert told and not notebook


def test_calls_in_a_terminal_or_a_script_show_no_notebook_progress_bar(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", None)
    assert not arguments.in_notebook()
    console = types.ModuleType("IPython")
    console.get_ipython = lambda: Shell(None)
    monkeypatch.setitem(sys.modules, "IPython", console)
    assert not arguments.in_notebook()


def cells(path: Path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_notebooks_contain_no_outputs(path):
    """Saved outputs would be from another version, so the site and the tests generate them."""
    for cell in cells(path):
        assert cell["cell_type"] == "markdown" or (cell["outputs"], cell["execution_count"]) == ([], None)


# Each notebook starts its own kernel.
@pytest.mark.nightly
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_notebook_of_the_project_runs_and_shows_tables_and_figures(path, tmp_path, monkeypatch):
    nbclient, nbformat = import_or_skip("nbclient"), import_or_skip("nbformat")
    import_or_skip("ipykernel")
    import_or_skip("polars")
    import_or_skip("pandas")
    # The kernel uses the Python of this test, whatever is on the path.
    monkeypatch.delenv("MPLBACKEND", raising=False)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    kinds = [kind for cell in notebook.cells for output in cell.get("outputs", []) for kind in output.get("data", {})]
    assert kinds.count("text/html") >= 2
    assert kinds.count("image/png") >= 2
    errors = [output for cell in notebook.cells for output in cell.get("outputs", []) if output.output_type == "stream"]
    assert all(output.name == "stdout" for output in errors), errors


def test_the_project_has_exactly_three_notebooks():
    assert len(NOTEBOOKS) >= 3
    text = (ROOT / "docs/notebooks.md").read_text(encoding="utf-8")
    assert all(f"notebooks/{path.stem}" in text for path in NOTEBOOKS)


def test_a_notebook_can_display_the_explanation_of_a_loss():
    lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=60, policy=ct.TailDrop(), duration="300ms")
    why = ct.why(lan, flow="tcp1", at="0.1s")
    shown: list[str] = []
    why._repr_pretty_(types.SimpleNamespace(text=shown.append), cycle=False)
    assert shown == [str(why)]
    assert "tcp1" in shown[0]
