"""Common parts of all plots: colours, matplotlib's settings, new axes, shortened names, and figure files."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.errors import Fault, InputError, MissingExtraError
from celltrain.model.files import replacing
from celltrain.text import shown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Colours by index of a flow or a group: six by Okabe and Ito, and two more that are distinct for colour-blind readers.
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
    # A dollar sign in a name does not start a formula.
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
    """Returns the colour of the flow with this index in its scenario. The colours repeat after the last one."""
    return COLOURS[index % len(COLOURS)]


def tint_of_flow(index: int) -> str:
    """Returns a flow's colour for areas, lighter so that marks stay visible. When colours repeat, the tints are darker.

    >>> tint_of_flow(0), tint_of_flow(8)
    ('#80B8D8', '#4C9CC9')
    """
    colour = colour_of_flow(index)
    white = 0.5 if index // len(COLOURS) % 2 == 0 else 0.3
    parts = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * white):02X}" for part in parts)


#: Maximum number of entries in a legend; more would hide the plot.
MAX_LEGEND = 20
#: Maximum length of a name in a legend and in a title; longer names would leave no room for the plot.
LONGEST_LABEL = 48
LONGEST_TITLE = 80
#: File name endings of figures.
FIGURES = (".svg", ".pdf", ".png")


def refuse_other(file: str | os.PathLike[str], option: str = "plot") -> None:
    """Raises `InputError` if a file name does not end in a figure format."""
    if Path(file).suffix.lower() not in FIGURES:
        raise InputError([Fault.saying(f"Cannot draw {shown(file)}: use .svg, .pdf or .png.", key=option)])


def require_matplotlib() -> None:
    """Raises `MissingExtraError` if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("plots need matplotlib: pip install celltrain[plot]") from error


def new_axes(**figure: Any) -> Axes:
    """Creates axes on a new pyplot figure."""
    require_matplotlib()
    from matplotlib import pyplot

    with styled():
        axes: Axes = pyplot.subplots(layout="constrained", **figure)[1]
    return axes


def styled(style: str | None = None) -> AbstractContextManager[None]:
    """Returns a context in which new figures have celltrain's style, overridden by a matplotlib style if given."""
    from matplotlib import style as styles
    from matplotlib.rcsetup import cycler

    ours = {**STYLE, "axes.prop_cycle": cycler(color=COLOURS)}
    context: AbstractContextManager[None] = styles.context([ours, *([] if style is None else [style])])
    return context


def rendered(
    figure: Figure, form: str, *, dpi: float = 150, salt: str = "celltrain", metadata: Mapping[str, str] | None = None
) -> bytes:
    """Renders a figure as `svg`, `pdf` or `png`; the same figure always gives the same bytes.

    Without `salt` an SVG would have random identifiers, and both vector formats would contain the date.
    """
    from matplotlib import rc_context

    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
    content = io.BytesIO()
    with rc_context({"svg.hashsalt": salt}):
        figure.savefig(content, format=form, metadata={**undated, **(metadata or {})}, dpi=dpi)
    return content.getvalue()


def save(figure: Figure, path: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Writes a figure in the format given by the path's suffix."""
    from matplotlib import rcParams

    # The style may set a resolution.
    dpi = rcParams["savefig.dpi"] if isinstance(rcParams["savefig.dpi"], int | float) else 150
    content = rendered(figure, path.suffix.removeprefix(".").lower(), dpi=dpi, metadata=metadata)
    with replacing(path) as file:
        file.write(content)


def legible(label: str, most: int = LONGEST_LABEL) -> str:
    """Shortens a name for a legend. A space before a leading underscore keeps matplotlib from omitting the entry.

    >>> legible("_hidden"), legible("source1 to destination1", 12)
    (' _hidden', 'source1 to …')
    """
    text = brief(label, most)
    return f" {text}" if text.startswith("_") else text


def brief(name: str, most: int) -> str:
    """Shortens a name for a figure."""
    text = shown(name[: most + 1])
    return text if len(text) <= most else f"{text[: most - 1]}…"
