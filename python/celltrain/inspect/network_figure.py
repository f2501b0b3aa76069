"""Figures of networks: positions of the nodes, and drawing."""

from __future__ import annotations

import math
import os
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain.drawing.figure import LONGEST_TITLE, brief, rendered, require_matplotlib
from celltrain.errors import ScenarioError
from celltrain.model.arguments import checked
from celltrain.model.files import named
from celltrain.model.network import Network, OneWayLink, network

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from celltrain.model.types import Scenario

    Points = np.ndarray[Any, np.dtype[np.float64]]

# Maximum numbers of names and texts. More would hide the picture.
MAX_NODE_NAMES = 120
MAX_LINK_TEXTS = 40
LONGEST_NAME = 32
#: Number of hosts of a network, and number of hosts of a switch, above which hosts with consecutive numbers are drawn
#: as one.
MANY_HOSTS, MANY_AT_SWITCH = 20, 8
#: Number of nodes whose distances to all others are used in the layout, and number of iterations.
PIVOTS, STEPS = 60, 100
#: Maximum length of a line in a shared name.
LONGEST_LINE = 12

STYLE: dict[str, dict[str, Any]] = {
    "host": {"marker": "o", "s": 60, "color": "#8da4b8", "edgecolor": "#4a6076", "label": "host"},
    "switch": {"marker": "s", "s": 190, "color": "#2f6690", "edgecolor": "#173a54", "label": "switch"},
    "edge_device": {"marker": "D", "s": 90, "color": "#e0b04c", "edgecolor": "#8a6516", "label": "edge device"},
}
LINK, BOTTLENECK, TEXT = "#9aa5b1", "#d1495b", "#333333"
KINDS = {"host": ("host", "hosts"), "switch": ("switch", "switches"), "edge_device": ("edge device", "edge devices")}


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Positions of nodes.

    Attributes:
        places: A point for each node.
        groups: Hosts of a switch that are drawn as one, with consecutive numbers; single hosts in small networks.
    """

    places: Points
    groups: Sequence[Sequence[int]]

    @property
    def inches(self) -> tuple[float, float]:
        """Width and height of the picture, large enough that neighbours do not touch."""
        width, height = np.ptp(self.places, axis=0)
        return min(max(6.5, 1.15 * width), 16.0), min(max(2.6, 1.2 * height + 1.9), 13.0)


@checked(ScenarioError)
def draw(scenario: Scenario | str | os.PathLike[str], *, ax: Axes | None = None) -> Axes:
    """Draws the network of a scenario, its bottleneck in red; needs `pip install celltrain[plot]`.

    Links that differ from most links have a label with their rate and delay. Below the picture is the rate and delay of
    the others. If there are many nodes, names are left out.

    Args:
        scenario: A scenario, the path of a TOML file, or the name of a shipped one.
        ax: Axes to draw on; new ones when None.

    >>> import celltrain as ct
    >>> ct.draw("scenarios/chain-epd.toml").get_title(loc="left")
    'a long connection over four hops, EPD'
    """
    return draw_network(network(scenario), ax=ax)


def draw_network(net: Network, *, ax: Axes | None = None) -> Axes:
    """Draws a network."""
    require_matplotlib()
    layout = laid_out(net)
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=layout.inches, layout="constrained")[1]
    assert ax is not None
    _draw_links(net, layout, ax)
    _draw_nodes(net, layout, ax)
    ax.set_title(brief(net.name or "network", LONGEST_TITLE), loc="left", fontsize=12, parse_math=False)
    ax.set_axis_off()
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.12, 0.2)
    return ax


def save(net: Network, path: Path) -> None:
    """Draws a network to a .png, .svg or .pdf file."""
    from matplotlib.figure import Figure

    # Do not use pyplot, which may open a window.
    figure = Figure(figsize=laid_out(net).inches, layout="constrained")
    draw_network(net, ax=figure.add_subplot())
    with named(path) as file:
        file.write(rendered(figure, path.suffix.removeprefix("."), dpi=150))


def laid_out(net: Network) -> Layout:
    """Places switches by the number of links between them, and hosts on the free sides of their switch."""
    neighbours: list[list[int]] = [[] for _ in net.nodes]
    for link in net.links:
        neighbours[link.start].append(link.end)
    leaves = {i for i, node in enumerate(net.nodes) if node.kind == "host" and len(neighbours[i]) == 1}
    # Two hosts without a switch are drawn in the way of switches.
    core = [i for i in range(len(net.nodes)) if i not in leaves] or sorted(leaves)
    leaves -= set(core)
    places = np.zeros((len(net.nodes), 2))
    places[core] = _stress(neighbours, core)
    # Data crosses the bottleneck from left to right.
    bottleneck = net.links[net.bottleneck]
    if bottleneck.start in core and places[bottleneck.start, 0] > places[bottleneck.end, 0]:
        places[core, 0] *= -1
    groups: list[list[int]] = []
    for node in core:
        own = _series(net, sorted(leaf for leaf in neighbours[node] if leaf in leaves))
        groups += own
        towards = [places[other] - places[node] for other in neighbours[node] if other not in leaves]
        for hosts, angle in zip(own, _free(towards, len(own)), strict=True):
            distance = 0.62 * max(1.0, len(own) / 8)
            places[hosts] = places[node] + distance * np.array([np.cos(angle), np.sin(angle)])
    return Layout(places=places, groups=groups)


def _free(towards: Sequence[Any], count: int) -> list[float]:
    """Returns the angles at which hosts of a switch are drawn, in the gaps between its links to other switches."""
    if not towards:
        return [np.pi / 2 + 2 * np.pi * place / count for place in range(count)]
    angles = np.sort([np.arctan2(y, x) for x, y in towards])
    gaps = np.append(angles[1:], angles[0] + 2 * np.pi) - angles
    counts = [0] * len(gaps)
    for _ in range(count):
        counts[int(np.argmax(gaps / (np.array(counts) + 1)))] += 1
    found = []
    for start, gap, own in zip(angles, gaps, counts, strict=True):
        # If the switch is at an end of the network, its hosts are drawn behind it.
        wide = min(gap, 1.2 * np.pi)
        found += [start + (gap - wide) / 2 + wide * (place + 1) / (own + 1) for place in range(own)]
    return found


def _stem(name: str) -> tuple[str, int]:
    """Splits a name into its stem and its final number. The number is -1 if there is none."""
    stem = re.sub(r"[0-9]{1,9}\Z", "", name)
    return stem, int(name.removeprefix(stem) or -1)


def _series(net: Network, hosts: Sequence[int]) -> list[list[int]]:
    """Groups the hosts of a switch whose names have the same stem and consecutive numbers, if there are many hosts."""
    many = net.kinds["host"] > MANY_HOSTS or len(hosts) > MANY_AT_SWITCH
    series: list[list[int]] = []
    before = ("", -1)
    for host in hosts:
        stem, number = _stem(net.nodes[host].name)
        if many and number > 0 and (stem, number - 1) == before:
            series[-1].append(host)
        else:
            series.append([host])
        before = stem, number
    return series


def _stress(neighbours: list[list[int]], core: list[int]) -> Points:
    """Returns points whose distances approximate the distances in the graph.

    Source: Gansner, Koren, North: Graph Drawing by Stress Majorization (2004), starting with the layout of Brandes,
    Pich: Eigensolver Methods for Progressive Multidimensional Scaling (2006). Large networks only use distances to some
    pivots.
    """
    count = len(core)
    pivots = np.unique(np.linspace(0, count - 1, min(count, PIVOTS)).astype(int))
    distances = np.array([_distances(neighbours, core, core[pivot]) for pivot in pivots])
    squares = distances**2
    centred = squares.mean(axis=0) + squares.mean(axis=1, keepdims=True) - squares - squares.mean()
    _, sizes, vectors = np.linalg.svd(centred, full_matrices=False)
    places = np.zeros((count, 2))
    places[:, : len(vectors[:2])] = (vectors * np.sqrt(count * sizes / max(sizes[0], 1e-9))[:, None])[:2].T
    # Shift each node differently, because nodes at the same position would never separate.
    places += 0.01 * np.column_stack([np.sin(7.0 * np.arange(count)), np.cos(5.0 * np.arange(count))])
    weights = (distances > 0) / np.maximum(distances, 1.0) ** 2
    weights = weights[:, :, None] / np.maximum(weights.sum(axis=0)[:, None], 1e-9)
    for _ in range(STEPS):
        offsets = places[None] - places[pivots][:, None]
        lengths = np.maximum(np.linalg.norm(offsets, axis=2), 1e-9)
        wanted = places[pivots][:, None] + (distances / lengths)[:, :, None] * offsets
        places = (weights * wanted).sum(axis=0)
    # Rotate the longer side to horizontal and the first node to the left, so that the picture is reproducible.
    places -= places.mean(axis=0)
    turned = places @ np.linalg.svd(places, full_matrices=False)[2].T
    return np.asarray(1.25 * turned * np.where(turned[0] < 0, 1.0, -1.0))


def _distances(neighbours: list[list[int]], core: list[int], start: int) -> list[float]:
    """Returns the number of links from a switch to each switch; unreachable switches come last."""
    away = {start: 0}
    for node in (queue := [start]):
        for other in neighbours[node]:
            if other not in away:
                away[other] = away[node] + 1
                queue.append(other)
    return [float(away.get(node, max(away.values()) + 2)) for node in core]


def _draw_links(net: Network, layout: Layout, ax: Axes) -> None:
    """Draws each link as a line, which is wider for faster links. A link that differs from most has a label."""
    from matplotlib.collections import LineCollection

    places = layout.places
    pairs = list(zip(net.links[::2], net.links[1::2], strict=True))
    usual_rate, _ = Counter(there.rate_mbps for there, _ in pairs).most_common(1)[0]
    many = len(net.nodes) > MAX_NODE_NAMES
    widths = [
        (0.4 if many else 1.3) * min(max(math.sqrt(there.rate_mbps / usual_rate), 0.5), 3.0) for there, _ in pairs
    ]
    segments = [(places[there.start], places[there.end]) for there, _ in pairs]
    ax.add_collection(LineCollection(segments, colors=LINK, linewidths=widths, capstyle="round", zorder=1))
    bottleneck = net.links[net.bottleneck]
    start, end = places[bottleneck.start], places[bottleneck.end]
    width = max(2.4, widths[net.bottleneck // 2])
    ax.plot(*zip(start, end, strict=True), color=BOTTLENECK, linewidth=width, zorder=2)
    arrow = {"arrowstyle": "-|>", "color": BOTTLENECK, "linewidth": 0, "mutation_scale": 8 if many else 16}
    ax.annotate("", xy=start + 0.86 * (end - start), xytext=start + 0.7 * (end - start), arrowprops=arrow, zorder=2)
    texts = [_link_text(*pair) for pair in pairs]
    usual, _ = Counter(texts).most_common(1)[0]
    unusual = [i for i, text in enumerate(texts) if text != usual]
    has_room = len(unusual) <= MAX_LINK_TEXTS and not many
    if has_room:
        _draw_link_texts(net, layout, ax, unusual)
    which = "all" if not unusual else "other" if has_room else "most"
    others = f"{which} links: {usual.replace(chr(10), ', ')}"
    nodes = ", ".join(f"{count} {KINDS[kind][count > 1]}" for kind, count in net.kinds.items())
    flows = f"{len(net.flows)} flow{'s' if len(net.flows) > 1 else ''}"
    below = f"{others}; bottleneck: {brief(bottleneck.name, 2 * LONGEST_NAME)}\n{nodes}, {flows}"
    ax.text(0.0, -0.02, below, transform=ax.transAxes, fontsize=9, color=TEXT, va="top", ha="left", parse_math=False)


def _draw_link_texts(net: Network, layout: Layout, ax: Axes, pairs: Iterable[int]) -> None:
    """Writes the rate and delay next to some links. If all rates are the same, writes only the delay."""
    same_rate = len({link.rate for link in net.links}) == 1
    degrees = Counter(node for link in net.links for node in (link.start, link.end))
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}
    for i in pairs:
        there, back = net.links[2 * i : 2 * i + 2]
        # There is more room near a host than near a switch.
        share = 0.36 if degrees[there.start] == 2 else 0.64
        if min(degrees[there.start], degrees[there.end]) > 2:
            share = 0.5
        start, end = layout.places[there.start], layout.places[there.end]
        text = _link_text(there, back, delay_only=same_rate)
        x, y = start + share * (end - start)
        colour = BOTTLENECK if i == net.bottleneck // 2 else TEXT
        ax.text(x, y, text, fontsize=8, ha="center", va="center", color=colour, bbox=box, zorder=4)


def _link_text(there: OneWayLink, back: OneWayLink, *, delay_only: bool = False) -> str:
    """Returns the rate and delay of a link; for both directions if the directions differ."""
    ways = [link.delay if delay_only else f"{link.rate}, {link.delay}" for link in (there, back)]
    return ways[0] if ways[0] == ways[1] else f"there {ways[0]}\nback {ways[1]}"


def _draw_nodes(net: Network, layout: Layout, ax: Axes) -> None:
    """Draws each node in the style of its kind, with names outside of hosts and below switches."""
    places = layout.places
    kinds = np.array([node.kind for node in net.nodes])
    many = len(net.nodes) > MAX_NODE_NAMES
    shrink = 0.06 if len(net.nodes) > 1000 else 0.25 if many else 1.0
    for kind, style in STYLE.items():
        if kind in kinds:
            drawn = {**style, "s": style["s"] * shrink, "linewidth": 0.3 if many else 1.0}
            ax.scatter(*places[kinds == kind].T, zorder=3, **drawn)
    if many and len(layout.groups) > MAX_NODE_NAMES:
        return
    neighbour = {link.start: link.end for link in net.links}
    for i, (place, node) in enumerate(zip(places, net.nodes, strict=True)):
        if not any(i in hosts for hosts in layout.groups):
            _write(ax, brief(node.name, LONGEST_NAME), place, (0, -9), "center", "top")
    for hosts in layout.groups:
        first, last = (net.nodes[host].name for host in (hosts[0], hosts[-1]))
        stem = _stem(first)[0] if len(hosts) > 1 else first
        lines = textwrap.wrap(brief(stem, LONGEST_NAME), LONGEST_LINE, break_long_words=False)
        lines += [f"{first.removeprefix(stem)} to {last.removeprefix(stem)}"] if len(hosts) > 1 else []
        x, y = places[hosts[0]] - places[neighbour[hosts[0]]]
        if abs(x) > 0.5 * abs(y):
            sides: tuple[Any, str, str] = ((-8, 0), "right", "center") if x < 0 else ((8, 0), "left", "center")
        else:
            sides = ((0, 7), "center", "bottom") if y > 0 else ((0, -7), "center", "top")
        _write(ax, "\n".join(lines), places[hosts[0]], *sides)


def _write(ax: Axes, text: str, at: Any, offset: tuple[float, float], ha: str, va: str) -> None:
    """Writes a text next to a point; dollar signs do not start formulas."""
    style: dict[str, Any] = {"fontsize": 8.5, "linespacing": 1.05, "parse_math": False}
    ax.annotate(text, at, offset, textcoords="offset points", ha=ha, va=va, **style)
