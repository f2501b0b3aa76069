"""Colours and matplotlib settings that all figures share."""

from __future__ import annotations

from typing import Any

#: Colours by index of a flow or a group: six of Okabe and Ito's, and two more that remain distinct with colour blindness.
#: The lab has the same colours in `lab/src/page/styles/base.css`.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#003FB6", "#922244")
INK = "#222222"
MARKERS = "osD^vPX"
GREY = "#8A929B"
PALE = "#B8BEC6"
#: Subtitles of figures.
SOFT = "#555555"
#: Losses of all flows.
LOSS = "#B00000"
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    # A dollar in a name is not mathematics.
    "text.parse_math": False,
    "font.size": 9,
    "axes.titlesize": "medium",
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


def colour_of_flow(index: int) -> str:
    """Returns the colour of the flow with this index in its scenario, starting again after the last colour."""
    return COLOURS[index % len(COLOURS)]


def tint_of_flow(index: int) -> str:
    """Returns the colour of a flow for areas, lighter so that marks are visible; a second round of flows has darker tints.

    >>> tint_of_flow(0), tint_of_flow(8)
    ('#80B8D8', '#4C9CC9')
    """
    colour = colour_of_flow(index)
    white = 0.5 if index // len(COLOURS) % 2 == 0 else 0.3
    parts = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * white):02X}" for part in parts)
