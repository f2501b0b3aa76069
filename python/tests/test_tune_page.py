"""Output of a search on the command line, on its page and in its figure, and the shipped tuning study."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import import_or_skip
from sweeps import interrupted
from tunes import PLAN

from celltrain import _core
from celltrain.ensemble.store import Store
from celltrain.ensemble.tuning import Estimate, Tuned, TunePlan
from celltrain.ensemble.tuning.plan import ask
from celltrain.model.paths import exact

import_or_skip("optuna")

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "docs" / "studies"


# The command line.


@pytest.mark.nightly
def test_the_tune_command_gives_the_same_result_as_the_python_function_tune(tmp_path, celltrain, monkeypatch):
    path = tmp_path / "tiny.toml"
    path.write_text(PLAN)
    foretold = celltrain("tune", path, "--dry-run", "--json", "--threads", 2).json
    assert (foretold["searches"], foretold["trials"], foretold["generations"], foretold["most_runs"]) == (2, 10, 3, 104)
    assert foretold["seconds"] > 0
    assert "at most 104 runs" in celltrain("tune", path, "--dry-run").out
    monkeypatch.chdir(tmp_path)
    said = celltrain("tune", path, "--json")
    assert (said.code, said.err) == (0, "")
    answer = said.json
    assert answer["folder"] == "out/tiny"
    assert [one["title"] for one in answer["searches"]] == ["buffer 60 cells", "buffer 100 cells"]
    assert {"trials", "confirmed", "left", "values"} <= answer["searches"][0].keys()
    assert answer["files"][0] == "out/tiny/report/tune.html"
    kept = json.loads((tmp_path / "out/tiny/report/tune.json").read_text())
    assert kept == {key: value for key, value in answer.items() if key not in ("folder", "interrupted", "files")}
    html = (tmp_path / "out/tiny/report/tune.html").read_text()
    assert "Gains over the references" in html
    assert "<svg" in html
    assert "http://" not in html.replace("http://www.w3.org", "")
    svg = (tmp_path / "out/tiny/report/figures/fronts.svg").read_text()
    for text in ("efficiency, larger is better", "cells lost, smaller is better", "the paper's", "trials"):
        assert text in svg
    again = celltrain("tune", path, "--resume")
    assert again.code == 0
    assert "2 searches of 10 trials" in again.out
    refused = celltrain("tune", path, "--json")
    assert refused.code == 2
    assert "is already a search" in refused.json["faults"][0]["message"]


@pytest.mark.nightly
def test_the_html_page_of_a_search_opens_in_a_browser_without_console_messages(undisturbed, tmp_path):
    from test_reports_browser import BROWSER, opened

    if BROWSER is None:
        pytest.skip("no chromium or google-chrome on PATH")
    tuned, _ = undisturbed
    [page, *_] = tuned.write(tmp_path / "report")
    text, console = opened(page, tmp_path)
    assert console == []
    assert text.count("<figure") == 1
    assert "cells lost, smaller is better" in text


@pytest.mark.nightly
def test_at_a_width_of_400_pixels_the_html_page_of_a_search_needs_no_sideways_scrolling(undisturbed, tmp_path):
    from test_reports_browser import BROWSER, framed

    if BROWSER is None:
        pytest.skip("no chromium or google-chrome on PATH")
    tuned, _ = undisturbed
    [page, *_] = tuned.write(tmp_path / "report")
    for screen, narrow in ((400, True), (1280, False)):
        width, drawings, scrolling = framed(page, tmp_path, screen)
        assert width <= screen
        assert not narrow or scrolling == 0
        assert [one["narrow"] for one in drawings] == [narrow]
        assert all(one["fits"] for one in drawings)


def test_the_plot_of_a_search_shows_every_confidence_interval_in_full(undisturbed):
    from matplotlib.collections import LineCollection

    tuned, _ = undisturbed
    for width in ("page", "column"):
        for axes in tuned.drawing(width=width).figure.axes:
            (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
            bars = [one for one in axes.collections if isinstance(one, LineCollection)]
            assert bars
            ends = np.concatenate([segment for one in bars for segment in one.get_segments()])
            assert left <= ends[:, 0].min() and ends[:, 0].max() <= right
            assert low <= ends[:, 1].min() and ends[:, 1].max() <= high


def test_a_number_that_rounds_to_zero_has_no_minus_sign_on_the_tuning_study_page(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import tune_page

    assert tune_page.difference(Estimate(mean=-0.0004, half=0.01)) == "+0.000 ± 0.010"
    assert tune_page.difference(Estimate(mean=-0.0006, half=0.01)) == "-0.001 ± 0.010"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has different signals")
def test_ctrl_c_during_a_search_keeps_finished_trials_and_reports_their_number(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.replace("search = 2", "search = 20000"))
    command = [sys.executable, "-m", "celltrain", "tune", path, "--store", tmp_path / "s", "--json"]
    assert json.loads(interrupted(command, tmp_path, "s/runs/*", more_than=100))["interrupted"]
    store = Store.open(tmp_path / "s" / "runs" / "search-001")
    assert len(store.wide()) > 100
    assert store.verify() == []


def test_optuna_is_imported_only_when_a_search_needs_it():
    program = "import sys, celltrain as ct, celltrain.cli; ct.tune; from celltrain.ensemble.tuning import TunePlan; print('optuna' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


# The tuning study that the package ships.


@pytest.mark.parametrize("name", ["tune-selective-drop", "tune-fba"])
def test_the_plans_of_the_tuning_study_are_valid(name):
    made = TunePlan.load(ROOT / "plans" / f"{name}.toml")
    assert len(made.configurations.points) == 12
    assert next(iter(made.references.values())) == (exact(0.9), exact(0.8))
    assert _core.data(f"plans/{name}.toml") is not None


@pytest.mark.parametrize("name", ["selective-drop", "fba"])
def test_the_numbers_on_the_tuning_study_page_are_those_in_the_shipped_results(name, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import paper_page
    import tune_page

    path = STUDIES / f"tuned-{name}.json"
    assert path.stat().st_size < 200_000
    tuned = Tuned._of_dict(json.loads(path.read_text()))
    assert tuned.to_dict() == json.loads(path.read_text())
    # The page and its files have exactly the content that the script would write.
    block = tune_page.policy(tuned)
    text, tables = paper_page.without_tables(tune_page.PAGE, block, tune_page.numbers(tuned))
    page = tune_page.PAGE.read_text()
    # `make format` wraps the page.
    assert paper_page.replaced(page, block, text).split() == page.split()
    for path, rows in tables.items():
        with path.open(encoding="utf-8", newline="") as handle:
            assert list(csv.reader(handle)) == rows
    # The results come from the shipped plan.
    made = TunePlan.load(ROOT / "plans" / f"tune-{name}.toml")
    facts = tuned.facts
    assert (facts["name"], facts["trials"], facts["batch"]) == (made.name, made.trials, made.batch)
    assert facts["seeds"]["confirmation"] == {"first": made.confirmation.first, "count": made.confirmation.count}
    assert [s.title for s in tuned.searches] == [made.title(i) for i in range(len(made.configurations.points))]
    # The plan still generates the trials of the first generation, on any machine.
    for place, searched in enumerate(tuned.searches):
        asked = ask(made, place, 0, [], made.batch)
        assert [tuple(map(float, numbers)) for numbers in asked] == [
            tuple(t.parameters.values()) for t in searched.trials[: made.batch]
        ]
    assert all(t.means is not None for s in tuned.searches for t in s.trials)
