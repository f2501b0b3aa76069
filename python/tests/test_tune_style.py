"""The figure of a search in a greyscale style of matplotlib."""

from __future__ import annotations

import re

import pytest
from conftest import import_or_skip
from tunes import PLAN

import celltrain as ct
from celltrain.ensemble.tuning import TunePlan, run_tune
from celltrain.running import Local

import_or_skip("optuna")

pytestmark = pytest.mark.slow

pytest.importorskip("matplotlib")

TWO = PLAN.replace("Z = 0.8 }\n", "Z = 0.8 }\ncautious = { R = 0.5, Z = 0.6 }\n")


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    return run_tune(TunePlan.of_toml(TWO), tmp_path_factory.mktemp("style") / "whole", Local(2))


def coloured(text):
    """Returns the colours of a drawing that are not grey."""
    return {one for one in re.findall(r"#[0-9a-f]{6}", text.lower()) if len({one[1:3], one[3:5], one[5:]}) > 1}


@pytest.mark.nightly
def test_search_plots_in_grey_style_have_no_colours_and_distinct_markers(tuned, tmp_path):
    tuned.write(tmp_path / "ours")
    tuned.write(tmp_path / "grey", style="grayscale")
    for suffix in ("", "-column"):
        ours, grey = ((tmp_path / kind / "figures" / f"fronts{suffix}.svg").read_text() for kind in ("ours", "grey"))
        assert {"#0072b2", "#d55e00"} <= coloured(ours)
        # Only the dots of trials and grey bars are slightly blue. Elements that normally have a colour are grey.
        assert not coloured(grey) - {"#b8bec6", "#8a929b"}
    axes = tuned.drawing(style="grayscale").figure.axes[0]
    marks = {
        bars.get_label(): bars.lines[0].get_marker() for bars in axes.containers if bars.get_label() != "confirmed"
    }
    assert marks == {"the paper's": "D", "cautious": "^"}


def test_a_search_with_an_unknown_figure_style_is_refused_before_it_starts(celltrain, tmp_path):
    plan = tmp_path / "tiny.toml"
    plan.write_text(TWO)
    answer = celltrain("tune", plan, "--store", tmp_path / "out", "--style", "grayscal")
    assert answer.code == 2
    assert "is neither a matplotlib style nor a file; did you mean grayscale?" in answer.err
    file = tmp_path / "mine.mplstyle"
    file.write_bytes(b"\xff\xfe\x00\x00")
    answer = celltrain("tune", plan, "--store", tmp_path / "out", "--style", file)
    assert answer.code == 2
    assert "cannot be used as a style" in answer.err
    assert not (tmp_path / "out").exists()


def test_the_error_for_an_unknown_figure_style_in_a_python_call_names_the_style(tuned, tmp_path):
    with pytest.raises(ct.InputError, match="did you mean grayscale"):
        tuned.drawing(style="grayscal")
    with pytest.raises(ct.InputError, match="did you mean grayscale"):
        tuned.write(tmp_path / "report", style="grayscal")
