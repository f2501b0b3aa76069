"""Figures for pages and for print: what they look like, and their files."""

from __future__ import annotations

import difflib
import io
import itertools
import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing.style import COLOURS, MARKERS, SOFT, STYLE
from celltrain.errors import Fault, InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAP = "viridis"
#: Marks from which they are drawn as an image within the figure: a hundred bytes each would be a file of megabytes.
MOST_MARKS = 1500
#: Dots an inch of such an image, by the kind of file. A page holds each SVG in two widths, so those are for screens.
DOTS = {"svg": 120, "pdf": 200}
#: The same of a notebook.
SCREEN = 110
#: The meaning of error bars.
BARS = "bars: 95 % intervals"
#: Panels in a row, at most.
MOST_ACROSS = 3


#: Inches of a figure: as wide as a paper's column, and as its page.
WIDTHS = {"column": 3.5, "page": 7.2}
#: Characters of a legend that go side by side in an inch.
LEGEND_PER_INCH = 11.0


@dataclass(frozen=True, kw_only=True)
class Look:
    """How wide a figure is, and in which style."""

    width: str = "page"
    """One of `WIDTHS`."""
    style: str | None = None
    """A style of matplotlib, by its name or its file; ours when None."""
    tcp: str = ""
    """The TCP of all runs, for the subtitle."""
    seeds: str = ""
    """The number of seeds, for the subtitle."""

    def subtitle(self, marks: str = "") -> list[str]:
        """Returns the lines above a figure: its TCP, the number of seeds, and the meaning of its bars."""
        said = "; ".join(text for text in (self.seeds, marks) if text)
        wide = 52 if self.narrow else 100
        return [*textwrap.wrap(self.tcp, wide), *textwrap.wrap(said, wide)]

    @property
    def inches(self) -> float:
        """The width."""
        return WIDTHS[self.width]

    @property
    def narrow(self) -> bool:
        """Whether it is as wide as a column: then panels stand below each other."""
        return self.width == "column"

    def shape(self, count: int, most: int) -> tuple[int, int]:
        """Rows and columns of so many panels, as full as can be, at most so many beside each other on a page."""
        down = math.ceil(count / (1 if self.narrow else most))
        return down, math.ceil(count / down)

    def columns(self, labels: Sequence[str]) -> int:
        """Entries of a legend that go side by side below the figure: as few rows as can be, and all of them as full.

        >>> Look(width="column").columns(["R 0.5", "R 0.6", "R 0.7", "R 0.8", "R 0.9"])
        3
        """
        longest = max(map(len, labels), default=0)
        most = max(1, min(len(labels), int(self.inches * LEGEND_PER_INCH / (longest + 4))))
        return math.ceil(len(labels) / math.ceil(len(labels) / most)) if labels else 1

    @classmethod
    def of(cls, width: str, style: str | None) -> Look:
        """What options ask for; raises `InputError` where there is no such width or style."""
        faults = []
        if width not in WIDTHS:
            faults.append(Fault.of_option("width", width, f"is not a width of a figure; choose {' or '.join(WIDTHS)}"))
        if style is not None:
            from matplotlib import style as styles

            if style not in (*styles.available, "default") and not _is_file(style):
                near = difflib.get_close_matches(style, styles.available, n=1)
                hint = f"; did you mean {near[0]}?" if near else "; for example grayscale"
                faults.append(Fault.of_option("style", style, f"is not a style of matplotlib, nor a file{hint}"))
        if faults:
            raise InputError(faults)
        return cls(width=width, style=style)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Figures made inside look so: ours first, then the style that is asked for."""
        from matplotlib import style as styles
        from matplotlib.rcsetup import cycler

        ours = {**STYLE, "axes.prop_cycle": cycler(color=COLOURS)}
        try:
            with styles.context([ours, *([] if self.style is None else [self.style])]):
                yield
        except (OSError, ValueError) as error:
            if self.style is None or not _is_file(self.style):
                raise
            problem = f"cannot be used as a style ({error})"
            raise InputError([Fault.of_option("style", self.style, problem)]) from None


def colour_of(place: int) -> str:
    """A colour of the style that holds now, after the last the first again; to be asked inside `Look.applied`."""
    return _cycle()[place % len(_cycle())]


def marked(place: int) -> tuple[str, str]:
    """Colour and mark of a group, the colours as the style has them; no two groups have both the same for long."""
    return colour_of(place), MARKERS[(place + place // len(_cycle())) % len(MARKERS)]


def _cycle() -> list[str]:
    from matplotlib import rcParams

    return [str(one) for one in rcParams["axes.prop_cycle"].by_key().get("color", COLOURS)]


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A figure with what is said of it."""

    name: str
    """Of its files."""
    title: str
    caption: str
    figure: Figure
    look: Look = field(default_factory=lambda: Look())
    _saved: dict[str, bytes] = field(default_factory=dict, repr=False, compare=False)

    def save(self, kind: str) -> bytes:
        """The figure as `svg` or `pdf`; each is drawn once."""
        if kind not in self._saved:
            self._saved[kind] = self._drawn(kind)
        return self._saved[kind]

    def _drawn(self, kind: str) -> bytes:
        from matplotlib import rc_context

        metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {"CreationDate": None}
        content = io.BytesIO()
        # One salt a figure: several stand in one page, and their identifiers must differ.
        with rc_context({"svg.hashsalt": f"celltrain {self.name} {self.look.width}"}), self.look.applied():
            if self.figure.get_layout_engine() is not None:
                # Where everything stands is worked out once, not for each kind of file.
                self.figure.draw_without_rendering()
                self.figure.set_layout_engine("none")
            self.figure.savefig(content, format=kind, metadata=metadata, dpi=DOTS[kind])
        return content.getvalue()


def _is_file(path: str) -> bool:
    """Whether there is such a file; a name may be longer than any can be."""
    try:
        return Path(path).is_file()
    except OSError:
        return False


@cache
def _shown_figure() -> Any:
    """A figure that a notebook shows, also where pyplot was never imported."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            content = io.BytesIO()
            self.savefig(content, format="png", dpi=SCREEN)
            return content.getvalue()

    return ShownFigure


def new_figure(**options: Any) -> Figure:
    """A figure that no window ever shows, of whatever matplotlib's `Figure` takes."""
    made: Figure = _shown_figure()(**options)
    return made


def bars(mean: NDArray[np.float64], half: NDArray[np.float64], limits: tuple[float, float]) -> NDArray[np.float64]:
    """The lengths of error bars below and above means: intervals that do not reach beyond the measure's limits.

    >>> bars(np.array([0.9, 0.5]), np.array([0.3, np.nan]), (0.0, 1.0)).round(6).tolist()
    [[0.3, 0.0], [0.1, 0.0]]
    """
    half = np.nan_to_num(half)
    room = mean - limits[0], limits[1] - mean
    return np.stack([np.minimum(half, np.maximum(np.nan_to_num(one, posinf=np.inf), 0.0)) for one in room])


def direction(label: str, larger: bool) -> str:
    """A label that says which way is better."""
    return f"{label}, {'larger' if larger else 'smaller'} is better"


def headed(figure: Figure, look: Look, marks: str) -> None:
    """Writes the subtitle of a look above a figure."""
    if lines := look.subtitle(marks):
        figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize="small", color=SOFT)


def panelled(
    count: int,
    look: Look,
    *,
    height: float,
    extra: float = 0.0,
    most: int = MOST_ACROSS,
    marks: str = "",
    **shared: Any,
) -> tuple[Figure, list[Axes]]:
    """So many panels, a few in each row, none left empty.

    Args:
        count: How many.
        look: How wide the figure is.
        height: Of a panel with what is around it, in inches.
        extra: Inches below the panels, for a legend.
        most: Panels in a row of a page.
        marks: The meaning of bars, for the subtitle.
        shared: What panels share, as `Figure.subplots` has it.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    down, across = look.shape(count, most)
    # Room between panels, so that the numbers at their ends do not touch.
    layout = ConstrainedLayoutEngine(w_pad=0.09, h_pad=0.06)
    room = 0.16 * len(look.subtitle(marks))
    figure = new_figure(figsize=(look.inches, height * down + 0.3 + extra + room), layout=layout)
    headed(figure, look, marks)
    grid = list(figure.subplots(down, across, squeeze=False, **shared).flat)
    for axes in grid[count:]:
        axes.remove()
    return figure, grid[:count]


def fit(
    axes: Axes,
    places: Sequence[float],
    texts: Sequence[str],
    *,
    logarithmic: bool = False,
    span: tuple[float, float] | None = None,
) -> bool:
    """Whether texts at these places below a panel, which reaches from one end to the other, leave room between each other."""
    if len(places) < 2:
        return True
    spec = axes.get_subplotspec()
    columns = 1 if spec is None else spec.get_gridspec().ncols
    # What is beside the panels, and a digit of a label with some room, in inches.
    figure: Any = axes.figure
    inches = figure.get_size_inches()[0] / columns * 0.66
    at, ends = (
        [math.log(place) if logarithmic else float(place) for place in those] for those in (places, span or places)
    )
    length = max(ends) - min(ends) or 1.0
    wide = [0.085 * (len(one) + len(other)) / 2 + 0.06 for one, other in itertools.pairwise(texts)]
    gaps = [abs(other - one) / length * inches for one, other in itertools.pairwise(at)]
    return all(gap > needed for gap, needed in zip(gaps, wide, strict=True))
