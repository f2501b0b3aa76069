"""Parts of all figures: colours, matplotlib's settings, styles, panels, shortened names, and files."""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from celltrain.drawing.words import broken
from celltrain.errors import Fault, InputError, needed
from celltrain.model.files import check_target, replacing
from celltrain.text import nearest, shown

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text
    from numpy.typing import NDArray

#: Colours by index of a flow or a group: six by Okabe and Ito, and two more that are distinct for colour-blind readers.
#: The lab has the same colours in `lab/src/page/styles/base.css`.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#003FB6", "#922244")
INK = "#222222"
MARKERS = "osD^vPX"
#: Line styles by index, so that lines differ even without colours. Dots come last, because they also mark levels.
DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (4, 1, 1, 1)), (0, (9, 2)), (0, (1, 1)))
GREY = "#8A929B"
PALE = "#B8BEC6"
#: Colour of subtitles.
SOFT = "#555555"
#: Colour of losses, whatever the flow.
LOSS = "#B00000"
#: Settings of matplotlib.
STYLE = str(Path(__file__).with_name("celltrain.mplstyle"))


def colour_of_flow(index: int) -> str:
    """Returns the colour of the flow with this index in its scenario. After the last colour, the colours repeat."""
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


#: Maximum number of entries in a legend. With more, it would hide the plot.
MAX_LEGEND = 20
#: Maximum length of a name in a legend and in a title. Longer names would leave no room for the plot.
LONGEST_LABEL = 48
LONGEST_TITLE = 80
#: File name endings of figures.
FIGURES = (".svg", ".pdf", ".png")


def refuse_other(file: str | os.PathLike[str], option: str = "plot", *made: Path | None) -> None:
    """Raises `InputError` if a file name does not have the extension of a figure format, or cannot be written.

    Args:
        file: The file.
        option: The option that names it, for messages.
        made: Folders that the run makes.
    """
    if Path(file).suffix.lower() not in FIGURES:
        raise InputError.saying(f"Cannot draw {shown(file)}: use .svg, .pdf or .png.", key=option)
    check_target(file, *made)


def require_matplotlib() -> None:
    """Raises `MissingExtraError` if matplotlib is not installed."""
    needed("matplotlib", "plots need matplotlib: pip install celltrain[plot]")


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

    ours = [STYLE, {"axes.prop_cycle": cycler(color=COLOURS)}]
    context: AbstractContextManager[None] = styles.context([*ours, *([] if style is None else [style])])
    return context


def rendered(figure: Figure, form: str, *, dpi: float = 150, salt: str = "celltrain") -> bytes:
    """Renders a figure as `svg`, `pdf` or `png`; the same figure always gives the same bytes.

    Without `salt` an SVG would have random identifiers, and both vector formats would contain the date.
    """
    from matplotlib import rc_context

    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
    content = io.BytesIO()
    with rc_context({"svg.hashsalt": salt}):
        figure.savefig(content, format=form, metadata=undated, dpi=dpi)
    return content.getvalue()


def save(figure: Figure, path: Path) -> None:
    """Writes a figure in the format given by the path's suffix."""
    from matplotlib import rcParams

    form = path.suffix.removeprefix(".").lower()
    # The style may specify a resolution.
    own = rcParams["savefig.dpi"]
    dpi = own if isinstance(own, int | float) else PNG_DOTS if form == "png" else 150
    content = rendered(figure, form, dpi=dpi)
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


#: Above this number, marks are drawn as an image within the figure, because each vector mark would take a hundred
#: bytes.
MOST_MARKS = 1500
#: Resolution of this image in dots per inch, by format. A page contains each SVG twice, in two widths, so SVG uses
#: screen resolution to save space.
DOTS = {"svg": 120, "pdf": 200}
#: Resolution of figures in notebooks.
SCREEN = 110
#: Text that explains error bars, by kind of interval.
BARS = "bars: 95 % intervals"
#: Maximum number of panels in a row.
MOST_ACROSS = 3
#: Widths of figures in inches: a column and a page of a paper.
WIDTHS = {"column": 3.5, "page": 7.2}
#: Units of other widths, in inches, and the smallest and largest width.
UNITS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72}
LEAST_WIDTH, MOST_WIDTH = 2.0, 40.0
#: Figures that are narrower than this, in inches, are laid out as a column.
NARROW = 5.0
#: Resolution of PNG files in dots per inch, as printers and journals expect.
PNG_DOTS = 300
#: Characters per inch in a legend.
LEGEND_PER_INCH = 11.0


@dataclass(frozen=True, kw_only=True)
class FigureStyle:
    """Width and style of a figure, and the information in its subtitle."""

    width: str = "page"
    """One of `WIDTHS`, or a length such as `8.5cm`."""
    style: str | None = None
    """Name or file of a matplotlib style; celltrain's own when None."""
    tcp: str = ""
    """TCP of all runs, for the subtitle."""
    seeds: str = ""
    """Number of seeds, for the subtitle."""

    def subtitle(self, marks: str = "") -> list[str]:
        """Returns the sentences above a figure: the TCP, the number of seeds, and the meaning of the bars."""
        facts = "; ".join(text for text in (self.seeds, marks) if text)
        return [text for text in (self.tcp, facts) if text]

    @property
    def inches(self) -> float:
        """Width in inches."""
        inches = _inches(self.width)
        assert inches is not None, "checked by FigureStyle.of"
        return inches

    @property
    def narrow(self) -> bool:
        """True if the figure is about as wide as a column. Panels are then placed below each other."""
        return self.inches < NARROW

    @property
    def layout(self) -> str:
        """The element of `WIDTHS` whose layout the figure has."""
        return "column" if self.narrow else "page"

    def shape(self, count: int, most: int) -> tuple[int, int]:
        """Returns the number of rows and columns of panels: rows as full as possible, at most `most` columns."""
        down = math.ceil(count / (1 if self.narrow else most))
        return down, math.ceil(count / down)

    def columns(self, labels: Sequence[str]) -> int:
        """Returns the number of columns with which a legend has the fewest and fullest rows.

        >>> FigureStyle(width="column").columns(["R 0.5", "R 0.6", "R 0.7", "R 0.8", "R 0.9"])
        3
        """
        longest = max(map(len, labels), default=0)
        most = max(1, min(len(labels), int(self.inches * LEGEND_PER_INCH / (longest + 4))))
        return math.ceil(len(labels) / math.ceil(len(labels) / most)) if labels else 1

    @classmethod
    def of(cls, width: str, style: str | None) -> FigureStyle:
        """Creates a style from options; raises `InputError` for an unknown width or style."""
        faults = []
        if _inches(width) is None:
            known = f"{', '.join(WIDTHS)}, or a length from {LEAST_WIDTH:g}in to {MOST_WIDTH:g}in, such as 8.5cm"
            faults.append(Fault.of_option("width", width, f"is not a figure width; choose {known}"))
        if style is not None:
            from matplotlib import style as styles

            if style not in (*styles.available, "default") and not _is_file(style):
                near = nearest(style, styles.available)
                hint = f"; did you mean {near}?" if near else "; for example grayscale"
                faults.append(Fault.of_option("style", style, f"is neither a matplotlib style nor a file{hint}"))
        if faults:
            raise InputError(faults)
        return cls(width=width, style=style)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Applies the style to figures created inside the context."""
        try:
            with styled(self.style):
                yield
        except (OSError, ValueError) as error:
            if self.style is None or not _is_file(self.style):
                raise
            raise InputError.of_option("style", self.style, f"cannot be used as a style ({error})") from None


def _inches(width: str) -> float | None:
    """Returns the width of a figure in inches; None if the text is not a width."""
    if width in WIDTHS:
        return WIDTHS[width]
    found = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,6})?) ?([a-z]{2})", width)
    if found is None or found[2] not in UNITS:
        return None
    inches = float(found[1]) * UNITS[found[2]]
    return inches if LEAST_WIDTH <= inches <= MOST_WIDTH else None


def _is_file(path: str) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 (a Path raises OSError for a very long name)


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A figure with its title and caption."""

    name: str
    """Name of the figure's files."""
    title: str
    caption: str
    figure: Figure
    look: FigureStyle = field(default_factory=FigureStyle)
    _saved: dict[str, bytes] = field(default_factory=dict, repr=False, compare=False)

    def save(self, kind: str) -> bytes:
        """Returns the figure as `svg` or `pdf`; each format is rendered once."""
        if kind not in self._saved:
            self._saved[kind] = self._drawn(kind)
        return self._saved[kind]

    def _drawn(self, kind: str) -> bytes:
        with self.look.applied():
            if self.figure.get_layout_engine() is not None:
                # Compute the layout only once for all formats.
                self.figure.draw_without_rendering()
                self.figure.set_layout_engine("none")
            # A page contains several figures, whose identifiers must differ, so each figure has its own salt.
            return rendered(self.figure, kind, dpi=DOTS[kind], salt=f"celltrain {self.name} {self.look.width}")


def colour_of(place: int) -> str:
    """Returns a colour of the current style.

    After the last colour, the colours repeat. Use this inside `FigureStyle.applied`.
    """
    return _cycle()[place % len(_cycle())]


def marked(place: int) -> tuple[str, str]:
    """Returns the colour and marker of a group. The same combination repeats only after many groups."""
    return colour_of(place), MARKERS[(place + place // len(_cycle())) % len(MARKERS)]


def _cycle() -> list[str]:
    from matplotlib import rcParams
    from matplotlib.colors import to_hex

    # In some styles, such as `default`, colours are tuples.
    colours = rcParams["axes.prop_cycle"].by_key().get("color", COLOURS)
    return [one if isinstance(one, str) else to_hex(one) for one in colours]


def new_figure(**options: Any) -> Figure:
    """Creates a figure without a window. The options are the options of matplotlib's `Figure`."""
    from matplotlib.figure import Figure

    figure: Any = Figure(**options)
    # Notebooks then show the figure even if pyplot was never imported.
    figure._repr_png_ = partial(rendered, figure, "png", dpi=SCREEN)
    made: Figure = figure
    return made


#: Length of the arrow at a lower bound, in points (1/72 inch), and of its head as a share of the arrow.
ARROW, HEAD = 18.0, 0.35
#: Explanation of the arrows in subtitles and captions, and in legends.
ARROWS = "arrows: lower bounds, because requests were open at the end"
BOUND = "lower bound: requests still open"


def bars(mean: NDArray[np.float64], half: NDArray[np.float64], limits: tuple[float, float]) -> NDArray[np.float64]:
    """Returns the lengths of error bars below and above means, clipped at the measure's limits.

    >>> import numpy as np
    >>> bars(np.array([0.9, 0.5]), np.array([0.3, np.nan]), (0.0, 1.0)).round(6).tolist()
    [[0.3, 0.0], [0.1, 0.0]]
    """
    import numpy as np

    half = np.nan_to_num(half)
    room = mean - limits[0], limits[1] - mean
    return np.stack([np.minimum(half, np.maximum(np.nan_to_num(one, posinf=np.inf), 0.0)) for one in room])


def lower_bounds(
    axes: Axes,
    x: Any,
    y: Any,
    bounds: NDArray[np.bool_] | None,
    colour: str,
    *,
    along: Literal["x", "y"],
    length: float = ARROW,
    clip: bool = False,
) -> None:
    """Draws an arrow towards larger values at each point that is only a lower bound.

    Args:
        axes: The panel.
        x: Positions of the points.
        y: Positions of the points.
        bounds: True for lower bounds; None if there are none.
        colour: Colour of the arrows.
        along: Axis of the measure.
        length: Length of an arrow in points.
        clip: If true, arrows outside the panel are not drawn.
    """
    if bounds is None or not bounds.any():
        return
    # Matplotlib scales an outline so that its largest coordinate is half of the marker's size.
    style: dict[str, Any] = {"s": (2 * length) ** 2, "facecolors": "none", "linewidths": 1.4, "zorder": 4}
    style |= {"marker": _arrow(0, along), "label": f"_{BOUND}"}
    axes.scatter(x[bounds], y[bounds], edgecolors=colour, clip_on=clip, **style)


def bounds_entry(axes: Axes) -> None:
    """Adds the arrows of `lower_bounds` to the legend of a panel."""
    style: dict[str, Any] = {"markersize": 13, "markerfacecolor": "none", "markeredgewidth": 1.4}
    axes.plot([], [], linestyle="none", marker=_arrow(-0.5, "x"), color=INK, label=BOUND, **style)


def _arrow(start: float, along: Literal["x", "y"]) -> Any:
    """Returns the outline of an arrow of length 1 from `start` along an axis."""
    from matplotlib.path import Path as Outline

    tip, neck = start + 1, start + 1 - HEAD
    shape = [(start, 0), (tip, 0), (neck, HEAD / 2), (tip, 0), (neck, -HEAD / 2)]
    return Outline([point if along == "x" else point[::-1] for point in shape], [1, 2, 1, 2, 2])


def direction(label: str, larger: bool) -> str:
    """Adds to a label whether larger or smaller is better."""
    return f"{label}, {'larger' if larger else 'smaller'} is better"


def panelled(
    count: int,
    look: FigureStyle,
    *,
    height: float,
    extra: float = 0.0,
    most: int = MOST_ACROSS,
    marks: str = "",
    **shared: Any,
) -> tuple[Figure, list[Axes]]:
    """Creates a figure with a subtitle and this number of panels.

    Args:
        count: Number of panels.
        look: Width and subtitle of the figure.
        height: Height of a panel including its labels, in inches.
        extra: Inches below the panels, for a legend.
        most: Maximum number of panels in a row of a page.
        marks: Meaning of bars, for the subtitle.
        shared: Axes shared by panels, as in `Figure.subplots`.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    down, across = look.shape(count, most)
    # Space between panels, so that tick labels at their edges do not touch each other.
    layout = ConstrainedLayoutEngine(w_pad=0.09, h_pad=0.06)
    figure = new_figure(figsize=(look.inches, height * down + 0.3 + extra), layout=layout)
    subtitled(figure, look.subtitle(marks))
    grid = list(figure.subplots(down, across, squeeze=False, **shared).flat)
    for axes in grid[count:]:
        axes.remove()
    return figure, grid[:count]


#: Height of a line of small text, in inches.
LINE = 0.16
#: Fraction of the available width that a text may use, because its width varies slightly with resolution and format.
SURE = 0.92


def subtitled(figure: Figure, sentences: Sequence[str]) -> None:
    """Writes sentences above a figure, broken into lines of the figure's width, and makes room for them."""
    lines = [line for sentence in sentences for line in _lines(figure, sentence, SURE * figure.bbox.width)]
    if not lines:
        return
    figure.set_size_inches(figure.get_figwidth(), figure.get_figheight() + LINE * len(lines))
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize="small", color=SOFT)


def _lines(figure: Figure, text: str, room: float) -> list[str]:
    """Breaks small text into lines of at most `room` pixels."""
    probe = figure.text(0, 0, "", fontsize="small")
    lines = [""]
    for word in text.split():
        joined = f"{lines[-1]} {word}".strip()
        probe.set_text(joined)
        if lines[-1] and probe.get_window_extent().width > room:
            lines.append(word)
        else:
            lines[-1] = joined
    probe.remove()
    return lines if lines[0] else []


def label_outer(grid: Sequence[Axes], columns: int, x: str, y: str) -> None:
    """Labels the axes at the left and bottom edges of a grid of panels."""
    for place, axes in enumerate(grid):
        if place % columns == 0:
            axes.set_ylabel(y)
        if place + columns >= len(grid):
            axes.set_xlabel(x)


def by_rows(entries: Sequence[Any], columns: int) -> list[Any]:
    """Returns the entries of a legend in the order in which matplotlib, which fills columns, shows them row by row.

    >>> by_rows(["a", "b", "c", "d", "e"], 2)
    ['a', 'c', 'e', 'b', 'd']
    """
    return [entry for column in range(columns) for entry in entries[column::columns]]


def legend_of(axes: Axes, columns: int = 1, *, once: bool = False, **layout: Any) -> None:
    """Adds a legend to axes, read row by row; with `once`, each label appears once."""
    entries = list(zip(*axes.get_legend_handles_labels(), strict=True))
    if once:
        known = {label: place for place, (_, label) in reversed(list(enumerate(entries)))}
        entries = [entries[place] for place in sorted(known.values())]
    handles, labels = zip(*by_rows(entries, columns), strict=True) if entries else ((), ())
    for text in axes.legend(handles, labels, ncols=columns, **layout).get_texts():
        # A dollar sign in a name does not start a formula.
        text.set_parse_math(False)


def legend_below(figure: Figure, grid: Sequence[Axes], look: FigureStyle, title: str = "") -> None:
    """Adds one legend for all panels below them, read row by row. It has a title only if it has several entries."""
    handles = {text: handle for axes in grid for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    columns = look.columns(list(handles))
    texts = by_rows(list(handles), columns)
    figure.legend(
        [handles[text] for text in texts],
        texts,
        title=title if title and len(handles) > 1 else None,
        loc="outside lower center",
        ncols=columns,
        fontsize="small",
        title_fontsize="small",
    )


#: Number of attempts to fit labels, because breaking one label changes the space for others.
ATTEMPTS = 5
#: Smallest size of a label whose words are longer than its room, in points.
SMALLEST = 5.0
#: Least height of the axes of a panel, in inches.
LEAST = 1.2


def fitted(figure: Figure, least: float = LEAST) -> Figure:
    """Breaks labels and titles that are longer than their axes into lines, and thins ticks, until no texts touch.

    Args:
        figure: The figure.
        least: Minimum height of the axes of a panel, in inches. The figure grows if its labels leave less.
    """
    whole = {text: text.get_text() for axes in figure.axes for text, _ in _labels(axes)}
    for _ in range(ATTEMPTS):
        figure.draw_without_rendering()
        rows = [
            axes for axes in figure.axes if (spec := axes.get_subplotspec()) is not None and spec.colspan.start == 0
        ]
        lacking = sum(max(least - axes.get_window_extent().height / figure.dpi, 0.0) for axes in rows)
        if lacking > 0.02:
            figure.set_size_inches(figure.get_figwidth(), figure.get_figheight() + lacking)
            figure.draw_without_rendering()
        # Fit every text before the next layout.
        changed = [_fit(text, whole[text], room) for axes in figure.axes for text, room in _labels(axes)]
        if not any(changed) and lacking <= 0.02:
            break
    else:
        figure.draw_without_rendering()
    return thinned(figure)


def _labels(axes: Axes) -> Iterator[tuple[Text, float]]:
    """Yields the labels and the title of axes, each with the pixels that it may take."""
    box = axes.get_window_extent()
    gap = 0.06 * axes.figure.dpi
    yield axes.yaxis.label, box.height
    yield axes.xaxis.label, box.width + gap
    yield axes.title, box.width + gap


def _fit(text: Text, whole: str, room: float) -> bool:
    """Breaks a text that is longer than its room.

    If that is not enough, reduces its size. Returns whether it changed.
    """
    before = text.get_text()
    if not before:
        return False
    box = text.get_window_extent()
    length = box.height if text.get_rotation() in (90.0, 270.0) else box.width
    if length <= SURE * room:
        return False
    longest = max(map(len, before.split("\n")))
    most = max(min(int(longest * SURE * room / length), longest - 1), 1)
    shorter = "\n".join(broken(line, most) for line in whole.split("\n"))
    if max(map(len, shorter.split("\n"))) < longest:
        text.set_text(shorter)
        return True
    size = float(text.get_fontsize())
    smaller = max(SMALLEST, size * SURE * room / length)
    text.set_fontsize(smaller)
    return smaller < size


def thinned(figure: Figure) -> Figure:
    """Removes labelled ticks of x axes, from right to left, until no labels touch. Skips axes with rotated labels.

    The layout of the figure must be up to date.
    """
    from matplotlib.ticker import FixedLocator

    for axes in figure.axes:
        ticks = [(tick.get_loc(), tick.label1) for tick in axes.xaxis.get_major_ticks()]
        is_ours = isinstance(axes.xaxis.get_major_locator(), FixedLocator)
        if not is_ours or any(text.get_rotation() or not text.get_visible() for _, text in ticks):
            continue
        kept: list[tuple[float, str]] = []
        end = math.inf
        for place, text in reversed(ticks):
            box = text.get_window_extent()
            if box.x1 + figure.dpi / 72 < end:
                kept.append((place, text.get_text()))
                end = box.x0
        if len(kept) < len(ticks):
            axes.set_xticks(*zip(*reversed(kept), strict=True))
    return figure
