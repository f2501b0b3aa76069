"""All figures use one palette and one style. Colours are assigned by flow index, as in the lab."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import celltrain as ct
from celltrain.drawing.figure import COLOURS, colour_of_flow, tint_of_flow

pytest.importorskip("matplotlib")
ROOT = Path(__file__).parents[2]
#: Linear RGB as seen with deuteranopia and protanopia (Viénot, Brettel, Mollon 1999).
SIGHTS = {
    "deuteranopia": np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]]),
    "protanopia": np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]]),
}


@pytest.fixture(autouse=True)
def closed():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def scenario(**changes) -> ct.Scenario:
    return ct.n_source(
        **{
            "sources": 3,
            "link_delay": "5us",
            "buffer_cells": 100,
            "policy": ct.Epd(threshold=60),
            "duration": "20ms",
            **changes,
        }
    )


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab_of(colour: np.ndarray) -> np.ndarray:
    """Converts linear RGB to CIE L*a*b*."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = np.cbrt(np.clip(to_xyz @ colour / [0.9505, 1.0, 1.089], 1e-6, None))
    return np.array([116 * xyz[1] - 16, 500 * (xyz[0] - xyz[1]), 200 * (xyz[1] - xyz[2])])


def of_lab(sheet: str) -> list[str]:
    css = (ROOT / "lab/src/page/styles" / sheet).read_text()
    found = dict(re.findall(r"--vc-(\d): (#[0-9a-f]{6});", css))
    return [found[str(place)].upper() for place in range(1, 9)]


def test_the_lab_page_and_the_figures_use_the_same_colours() -> None:
    assert of_lab("base.css") == list(COLOURS)


@pytest.mark.parametrize(("sheet", "least"), [("base.css", 18), ("dark.css", 14)])
@pytest.mark.parametrize("sight", SIGHTS)
def test_all_colours_of_figures_are_distinguishable_by_colour_blind_readers(
    sheet: str, least: float, sight: str
) -> None:
    seen = [lab_of(np.clip(SIGHTS[sight] @ linear(colour), 0, 1)) for colour in of_lab(sheet)]
    # A distance of 2 is just noticeable.
    assert min(float(np.linalg.norm(one - other)) for one, other in combinations(seen, 2)) > least


def test_a_flow_has_the_same_colour_in_every_figure(tmp_path: Path) -> None:
    events = ct.Events(folder=tmp_path / "one", flows=["tcp3"])
    result = ct.run(scenario(), trace=["cwnd", "occupancy", "delivered"], events=events)
    colour = colour_of_flow(2)
    for axes in (result.plot.cwnd(), result.plot.occupancy(), result.plot.delivered()):
        [line] = [line for line in axes.get_lines() if line.get_label().startswith("tcp3")]
        assert line.get_color() == colour
    for log in (result.events, ct.read_events(tmp_path / "one")):
        [area] = log.plot.anatomy().collections
        assert area.get_facecolor()[0][:3] == pytest.approx(
            [int(tint_of_flow(2)[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        )
        sent = [one for one in log.plot.sequence("tcp3").get_lines() if one.get_label() == "sent"]
        assert [one.get_color() for one in sent] == [colour]
        links = [line for line in log.plot.ladder("tcp3").get_lines() if line.get_label() == "on the link"]
        assert {line.get_color() for line in links} <= {colour}


def test_all_figures_share_one_style(tmp_path: Path) -> None:
    from celltrain.drawing.figure import new_axes

    for axes in (new_axes(), ct.run(scenario(), trace="queue").plot.queue()):
        assert not axes.spines["top"].get_visible() and not axes.spines["right"].get_visible()
        assert axes.get_axisbelow()
    compared = ct.compare(scenario(), seeds=1, vary={"duration": ["5ms", "6ms"]}, measures=["efficiency"])
    assert not compared.plot().axes[0].spines["top"].get_visible()
