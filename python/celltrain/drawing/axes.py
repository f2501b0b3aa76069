"""What all plots have in common: matplotlib, new axes, and names as a figure can hold them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.drawing.style import COLOURS, STYLE
from celltrain.errors import Fault, InputError, MissingExtraError
from celltrain.model.writing import replacing
from celltrain.text import shown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# A legend with more entries hides the plot.
MAX_LEGEND = 20
# Characters of a name in a legend and in a title: longer ones leave no room for the plot.
LONGEST_LABEL = 48
LONGEST_TITLE = 80


#: Endings of the figures that are written.
FIGURES = (".svg", ".pdf", ".png")


def refuse_other(file: str | os.PathLike[str], option: str = "plot") -> None:
    """Raises `InputError` if the ending of a file is not a figure's."""
    if Path(file).suffix.lower() not in FIGURES:
        raise InputError([Fault.saying(f"Cannot draw {shown(file)}: use .svg, .pdf or .png.", key=option)])


def require_matplotlib() -> None:
    """Raises `MissingExtraError` where matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise missing_matplotlib() from error


def missing_matplotlib() -> MissingExtraError:
    """What to say where matplotlib is not installed."""
    return MissingExtraError("plots need matplotlib: pip install celltrain[plot]")


def new_axes(**figure: Any) -> Axes:
    """Axes of a figure of their own."""
    require_matplotlib()
    from matplotlib import pyplot

    with styled():
        axes: Axes = pyplot.subplots(layout="constrained", **figure)[1]
    return axes


def styled() -> AbstractContextManager[None]:
    """A context in which new figures and axes look as all figures of celltrain do."""
    from matplotlib import rc_context
    from matplotlib.rcsetup import cycler

    return rc_context({**STYLE, "axes.prop_cycle": cycler(color=COLOURS)})


def save(figure: Figure, path: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Writes a figure into a folder, in the form that the path's ending names; the same figure gives the same file."""
    from matplotlib import rc_context, rcParams

    form = path.suffix.removeprefix(".").lower()
    # A style may ask for other points an inch.
    dpi = rcParams["savefig.dpi"] if isinstance(rcParams["savefig.dpi"], int | float) else 150
    # An SVG has the date, and names that are drawn by lot; a PDF has the date.
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
    with rc_context({"svg.hashsalt": "celltrain"}), replacing(path) as file:
        figure.savefig(file, format=form, metadata={**undated, **(metadata or {})}, dpi=dpi)


def legible(label: str, most: int = LONGEST_LABEL) -> str:
    """A name as a legend can hold it: short, and not beginning with an underscore, for that would leave it out.

    >>> legible("_hidden"), legible("source1 to destination1", 12)
    (' _hidden', 'source1 to …')
    """
    text = brief(label, most)
    return f" {text}" if text.startswith("_") else text


def brief(name: str, most: int) -> str:
    """A name as a figure can hold it."""
    text = shown(name[: most + 1])
    return text if len(text) <= most else f"{text[: most - 1]}…"
