"""Pictures of networks: where every node goes, and how it is drawn."""

from __future__ import annotations

import math
import os
import re
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.drawing.axes import LONGEST_TITLE, brief, require_matplotlib
from celltrain.errors import ScenarioError
from celltrain.model.arguments import checked
from celltrain.model.network import Network, OneWayLink, network
from celltrain.model.writing import named

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes

    from celltrain.model.types import Scenario

    Points = np.ndarray[Any, np.dtype[np.float64]]

# More names hide the picture.
MAX_HOST_NAMES = 60
MAX_NODE_NAMES = 120
MAX_LINK_TEXTS = 40
LONGEST_NAME = 32
# Beyond this all distances take too long, and a few must do.
MAX_STRESS = 400
PIVOTS = 40
# In a row what lies between switches, to hosts at the ends, and between hosts; and hosts beside each other at most.
STEP, END, CLOSE, BESIDE = 0.66, 0.5, 0.13, 5
# Between hosts one above the other.
CLOSE_UP = 0.6
# Characters of a line of a shared name.
LONGEST_LINE = 12

STYLE: dict[str, dict[str, Any]] = {
    "host": {"marker": "o", "s": 60, "color": "#8da4b8", "edgecolor": "#4a6076", "label": "host"},
    "switch": {"marker": "s", "s": 190, "color": "#2f6690", "edgecolor": "#173a54", "label": "switch"},
    "edge_device": {"marker": "D", "s": 90, "color": "#e0b04c", "edgecolor": "#8a6516", "label": "edge device"},
}
LINK, BOTTLENECK = "#9aa5b1", "#d1495b"
KINDS = {"host": ("host", "hosts"), "switch": ("switch", "switches"), "edge_device": ("edge device", "edge devices")}


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where every node goes."""

    places: Points
    """A point for each."""
    shared: Sequence[Sequence[int]] = ()
    """Hosts that stand together under one name."""

    @property
    def inches(self) -> tuple[float, float]:
        """Width and height of a picture in which neighbours do not touch."""
        width, height = self.places.max(axis=0) - self.places.min(axis=0)
        # Shared names stand above and below.
        least = 3.2 if self.shared else 2.8
        return min(max(6.5, 1.5 * width + 1.5), 16.0), min(max(least, 0.55 * height + 1.6), 13.0)


@checked(ScenarioError)
def draw(scenario: Scenario | str | os.PathLike[str], *, ax: Axes | None = None) -> Axes:
    """Draws the network of a scenario, its bottleneck in red; needs `pip install celltrain[plot]`.

    Rates and delays stand at the links that differ from most, those of the others below the picture. A network of many nodes
    has no names.

    Args:
        scenario: A scenario, the path of a TOML file, or the name of a shipped one.
        ax: Where to draw; new axes when None.

    >>> import celltrain as ct
    >>> ct.draw("scenarios/chain-epd.toml").get_title(loc="left")
    'a long connection over four hops, EPD'
    """
    return draw_network(network(scenario), ax=ax)


def draw_network(net: Network, *, ax: Axes | None = None) -> Axes:
    """The same of a network."""
    require_matplotlib()
    layout = laid_out(net)
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=layout.inches, layout="constrained")[1]
    assert ax is not None
    _links(net, layout, ax)
    _nodes(net, layout, ax)
    ax.set_title(brief(net.name or "network", LONGEST_TITLE), loc="left", fontsize=12, parse_math=False)
    ax.set_axis_off()
    ax.margins(0.08, 0.3 if layout.shared else 0.14)
    return ax


def save(net: Network, path: Path) -> None:
    """Draws a network into a file, whose ending says how: png, svg or pdf."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # Without pyplot: nothing here may open a window or leave a figure behind.
    figure = Figure(figsize=laid_out(net).inches, layout="constrained")
    draw_network(net, ax=figure.add_subplot())
    # The same network gives the same file, byte for byte.
    kind = path.suffix.removeprefix(".")
    with rc_context({"svg.hashsalt": "celltrain"}), named(path) as file:
        figure.savefig(file, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)


def laid_out(net: Network) -> Layout:
    """In columns from senders to receivers where the network has that form, else by distances."""
    import numpy as np

    neighbours: list[list[int]] = [[] for _ in net.nodes]
    for link in net.links:
        neighbours[link.start].append(link.end)
    leaves = {i for i, node in enumerate(net.nodes) if node.kind == "host" and len(set(neighbours[i])) == 1}
    core = [i for i in range(len(net.nodes)) if i not in leaves]
    if not core:
        return Layout(places=np.array([[float(i), 0.0] for i in range(len(net.nodes))]))
    columns = _columns(net, neighbours, leaves, core)
    if columns is not None:
        return columns
    if len(core) == 1:
        return Layout(places=_circle(len(net.nodes), core[0]))
    return Layout(places=_by_distance(neighbours, leaves, core))


def _columns(net: Network, neighbours: list[list[int]], leaves: set[int], core: list[int]) -> Layout | None:
    """Where data goes one way only through a tree of switches: a column for each step. None for other networks."""
    import numpy as np

    inside = sum(link.start not in leaves and link.end not in leaves for link in net.links) // 2
    used = {link for flow in net.flows for link in flow.links}
    senders = {net.links[flow.links[0]].start for flow in net.flows}
    receivers = {net.links[flow.links[-1]].end for flow in net.flows}
    is_whole = all(link in used or link ^ 1 in used for link in range(0, len(net.links), 2))
    if inside != len(core) - 1 or senders & receivers or any(link ^ 1 in used for link in used) or not is_whole:
        return None
    # In a tree whose links are used one way each there is no way round: how far it is at most from a sender's switch.
    before: list[list[int]] = [[] for _ in net.nodes]
    for link in (net.links[link] for link in used):
        if link.start not in leaves and link.end not in leaves:
            before[link.end].append(link.start)
    column: dict[int, int] = {}
    todo = deque(core)
    while todo:
        node = todo.popleft()
        if all(other in column for other in before[node]):
            column[node] = 1 + max((column[other] for other in before[node]), default=0)
        else:
            todo.append(node)
    if len(set(column.values())) == len(core):
        return _row(net, neighbours, leaves, column, senders)
    at = dict(column)
    for leaf in leaves:
        at[leaf] = column[neighbours[leaf][0]] + (-1 if leaf in senders else 1)
    members: dict[int, list[int]] = {}
    for node in sorted(at, key=lambda node: (at[node], node)):
        members.setdefault(at[node], []).append(node)
    height = max(map(len, members.values()))
    places = np.zeros((len(net.nodes), 2))
    for _ in range(4):
        for x, nodes in sorted(members.items()):
            if x - 1 in members:
                nodes.sort(key=lambda node: (-_mean(places[n, 1] for n in neighbours[node] if at[n] < x), node))
            places[nodes, 0] = x
            places[nodes, 1] = _spread(len(nodes), height) * CLOSE_UP
    return Layout(places=places)


def _row(
    net: Network, neighbours: list[list[int]], leaves: set[int], column: dict[int, int], senders: set[int]
) -> Layout:
    """Switches one behind the other: hosts before the first and behind the last, those of others above and below.

    Of more than two switches hosts whose names differ in a number stand together, so that the row fits a page.
    """
    import numpy as np

    places = np.zeros((len(net.nodes), 2))
    shared: list[list[int]] = []
    step, end = (STEP, END) if len(column) > 2 else (2 * STEP, 2 * END)
    first, last = min(column.values()), max(column.values())
    for node, x in column.items():
        places[node] = step * x, 0.0
        own = sorted({leaf for leaf in neighbours[node] if leaf in leaves})
        for is_sender in (True, False):
            group = [leaf for leaf in own if (leaf in senders) == is_sender]
            side = 1 if is_sender else -1
            shared += _series(net, group)
            if x == (first if is_sender else last):
                places[group, 0] = step * x - side * end
                places[group, 1] = _spread(len(group), len(group)) * CLOSE_UP
                continue
            # Sources come from above, destinations lie below, as cars enter and leave.
            height = 1.3
            for hosts in _series(net, group):
                for start in range(0, len(hosts), BESIDE):
                    row = hosts[start : start + BESIDE]
                    middle = step * x - side * 0.12
                    places[row, 0] = middle + CLOSE * (np.arange(len(row)) - (len(row) - 1) / 2)
                    places[row, 1] = side * height
                    height += 0.4
                # Room for their name.
                height += 1.2
    return Layout(places=places, shared=shared if len(column) > 2 else ())


def _series(net: Network, hosts: Iterable[int]) -> list[list[int]]:
    """Hosts whose names differ in a number alone that goes up by one, and that are linked to one node."""
    found: list[list[int]] = []
    neighbour = {link.start: link.end for link in net.links}
    before: tuple[str, int, int | None] | None = None
    for host in hosts:
        stem, number = re.fullmatch(r"(.*?)([0-9]{0,9})", net.nodes[host].name, re.DOTALL).groups()  # type: ignore[union-attr]
        here = (stem, int(number or 0), neighbour.get(host))
        if before is not None and number and here == (before[0], before[1] + 1, before[2]):
            found[-1].append(host)
        else:
            found.append([host])
        before = here
    return found


def _spread(count: int, height: int) -> Points:
    """So many points from top to bottom, around 0."""
    import numpy as np

    if count == 1:
        return np.zeros(1)
    # Columns of few nodes do not reach as far as those of many.
    reach = (height - 1) / 2 * (1 if count == height else count / (count + 1) * height / (height - 1))
    return np.linspace(reach, -reach, count)


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else 0.0


def _circle(nodes: int, centre: int) -> Points:
    """All nodes but one around that one, the first at the top."""
    import numpy as np

    others = [node for node in range(nodes) if node != centre]
    places = np.zeros((nodes, 2))
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(others)) / max(len(others), 1)
    radius = max(1.8, 0.16 * len(others))
    places[others] = radius * np.column_stack([1.35 * np.cos(angles), np.sin(angles)])
    return places


def _by_distance(neighbours: list[list[int]], leaves: set[int], core: list[int]) -> Points:
    """Nodes as far apart as they have links between them, and each host on the free side of its switch."""
    import numpy as np

    places = np.zeros((len(neighbours), 2))
    places[core] = _stress(neighbours, core)
    radius = 0.62
    for node in core:
        own = sorted({leaf for leaf in neighbours[node] if leaf in leaves})
        if not own:
            continue
        towards = [places[other] - places[node] for other in set(neighbours[node]) if other not in leaves]
        angles = sorted(float(np.arctan2(y, x)) for x, y in towards) or [0.0]
        gaps = [
            (after - angle) % (2 * np.pi) or 2 * np.pi
            for angle, after in zip(angles, angles[1:] + angles[:1], strict=True)
        ]
        widest = int(np.argmax(gaps))
        steps = np.arange(1, len(own) + 1) / (len(own) + 1)
        at = angles[widest] + gaps[widest] * steps
        places[own] = places[node] + radius * max(1.0, len(own) / 8) * np.column_stack([np.cos(at), np.sin(at)])
    return places


def _stress(neighbours: list[list[int]], core: list[int]) -> Points:
    """Points whose distances are those in the graph, as nearly as can be.

    Source: Gansner, Koren, North: Graph Drawing by Stress Majorization (2004), from classical scaling; for large networks
    Brandes, Pich: Eigensolver Methods for Progressive Multidimensional Scaling (2006), which is its first step alone.
    """
    import numpy as np

    number = {node: i for i, node in enumerate(core)}
    inner = [[number[other] for other in set(neighbours[node]) if other in number] for node in core]
    n = len(core)
    pivots = list(range(n)) if n <= MAX_STRESS else [i * n // PIVOTS for i in range(PIVOTS)]
    distances = np.array([_distances(inner, pivot) for pivot in pivots])
    squares = distances**2
    centred = -0.5 * (squares - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True) + squares.mean())
    vectors = np.linalg.svd(centred, full_matrices=False)[2][:2]
    # A fixed sign, so that the picture is the same everywhere.
    vectors *= np.where(vectors.sum(axis=1) < 0, -1.0, 1.0)[:, None]
    places = np.asarray((centred.T @ (centred @ vectors.T)), dtype=np.float64)
    scale = np.linalg.norm(places[:, None] - places[pivots][None], axis=2).sum() / max(distances.sum(), 1.0)
    places = places / max(scale, 1e-12)
    if n > MAX_STRESS:
        return np.asarray(places)
    # A shift no two nodes share, since points that coincide stay together.
    places += 0.05 * np.column_stack([np.sin(7.0 * np.arange(n)), np.cos(5.0 * np.arange(n))])
    weights = 1.0 / np.maximum(distances, 1.0) ** 2
    np.fill_diagonal(weights, 0.0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.pinv(laplacian)
    for _ in range(100):
        apart = np.linalg.norm(places[:, None] - places[None], axis=2)
        ratio = weights * distances / np.maximum(apart, 1e-9)
        places = inverse @ (np.diag(ratio.sum(axis=1)) - ratio) @ places
    # The longer side lies down.
    axes = np.linalg.svd(places - places.mean(axis=0), full_matrices=False)[2]
    turned = (places - places.mean(axis=0)) @ axes.T
    return np.asarray(1.25 * turned * np.where(turned[0] < 0, 1.0, -1.0))


def _distances(neighbours: list[list[int]], start: int) -> list[float]:
    """Links from one node to each other; what cannot be reached is farther than anything."""
    away = [-1] * len(neighbours)
    away[start] = 0
    todo = deque([start])
    while todo:
        node = todo.popleft()
        for other in neighbours[node]:
            if away[other] < 0:
                away[other] = away[node] + 1
                todo.append(other)
    farthest = max(away) + 2
    return [float(farthest if distance < 0 else distance) for distance in away]


def _links(net: Network, layout: Layout, ax: Axes) -> None:
    """Each link as a line, wider where it is faster, and what it is where that is not what most are."""
    from matplotlib.collections import LineCollection

    places = layout.places
    pairs = list(zip(net.links[::2], net.links[1::2], strict=True))
    texts = [_text(there, back, alike=False) for there, back in pairs]
    usual, _ = Counter(texts).most_common(1)[0]
    usual_rate, _ = Counter(there.rate_mbps for there, _ in pairs).most_common(1)[0]
    many = len(net.nodes) > MAX_NODE_NAMES

    def width(link: OneWayLink) -> float:
        return (0.4 if many else 1.3) * min(max(math.sqrt(link.rate_mbps / usual_rate), 0.5), 3.0)

    segments = [(places[there.start], places[there.end]) for there, _ in pairs]
    ax.add_collection(
        LineCollection(
            segments, colors=LINK, linewidths=[width(there) for there, _ in pairs], capstyle="round", zorder=1
        )
    )
    there = net.links[net.bottleneck]
    start, end = places[there.start], places[there.end]
    ax.plot(*zip(start, end, strict=True), color=BOTTLENECK, linewidth=max(2.4, width(there)), zorder=2)
    arrow = {"arrowstyle": "-|>", "color": BOTTLENECK, "linewidth": 0, "mutation_scale": 8 if many else 16}
    ax.annotate("", xy=start + 0.86 * (end - start), xytext=start + 0.7 * (end - start), arrowprops=arrow, zorder=2)
    apart = [i for i, text in enumerate(texts) if text != usual]
    if len(apart) <= MAX_LINK_TEXTS and not many:
        others = "all links" if not apart else "other links"
        alike = len({link.rate_mbps for link in net.links}) == 1
        degrees = Counter(node for link in net.links for node in (link.start, link.end))
        for i in apart:
            ends = pairs[i][0].start, pairs[i][0].end
            # Near its host there is more room than where links meet.
            share = 0.5 if min(degrees[end] for end in ends) > 2 else 0.36 if degrees[ends[0]] == 2 else 0.64
            x, y = places[ends[0]] + share * (places[ends[1]] - places[ends[0]])
            colour = BOTTLENECK if i == net.bottleneck // 2 else "#333333"
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}
            text = _text(*pairs[i], alike=alike)
            text = text.replace(", ", "\n") if layout.shared else text
            ax.text(x, y, text, fontsize=8, ha="center", va="center", color=colour, bbox=box, zorder=4)
    else:
        others = f"{len(texts)} links"
        usual = f"{_range(net.links, 'rate')}, {_range(net.links, 'delay')}"
    nodes = ", ".join(f"{count} {KINDS[kind][count > 1]}" for kind, count in net.kinds.items())
    flows = f"{len(net.flows)} flow{'s' if len(net.flows) > 1 else ''}"
    below = (
        f"{others}: {usual.replace(chr(10), ', ')}; bottleneck: {brief(there.name, 2 * LONGEST_NAME)}\n{nodes}, {flows}"
    )
    ax.text(
        0.0,
        -0.02,
        below,
        transform=ax.transAxes,
        fontsize=9,
        color="#333333",
        va="top",
        ha="left",
        parse_math=False,
    )


def _text(there: OneWayLink, back: OneWayLink, *, alike: bool) -> str:
    """Rate and delay of a link, of both ways where they differ; the delay alone where all rates are alike."""
    ways = [link.delay if alike else f"{link.rate}, {link.delay}" for link in (there, back)]
    return ways[0] if ways[0] == ways[1] else f"there {ways[0]}\nback {ways[1]}"


def _range(links: Iterable[OneWayLink], what: str) -> str:
    """The least and the most of the links' rates or delays."""
    key = {"rate": "rate_mbps", "delay": "delay_s"}[what]
    ordered = sorted(links, key=lambda link: float(getattr(link, key)))
    least, most = getattr(ordered[0], what), getattr(ordered[-1], what)
    return str(least) if least == most else f"{least} to {most}"


def _nodes(net: Network, layout: Layout, ax: Axes) -> None:
    """Each node by its kind, hosts named outside, switches below."""
    import numpy as np

    places = layout.places
    kinds = np.array([node.kind for node in net.nodes])
    many = len(net.nodes) > MAX_NODE_NAMES
    for kind, style in STYLE.items():
        of_kind = kinds == kind
        if of_kind.any():
            shrink = 0.06 if len(net.nodes) > 1000 else 0.25 if many else 1.0
            drawn = {**style, "s": style["s"] * shrink, "linewidth": 0.3 if many else 1.0}
            ax.scatter(places[of_kind, 0], places[of_kind, 1], zorder=3, **drawn)
    if many:
        return
    neighbour = {link.start: link.end for link in net.links}
    for i, (place, node) in enumerate(zip(places, net.nodes, strict=True)):
        name: dict[str, Any] = {
            "text": brief(node.name, LONGEST_NAME),
            "textcoords": "offset points",
            "parse_math": False,
        }
        if node.kind == "host":
            if net.kinds["host"] > MAX_HOST_NAMES or layout.shared:
                continue
            left = place[0] < places[neighbour.get(i, i)][0]
            offset, align = (-7, "right") if left else (7, "left")
            ax.annotate(xy=place, xytext=(offset, 0), ha=align, va="center", fontsize=8, **name)
        elif layout.shared:
            # Below to the left no link ends, but at the row itself.
            ax.annotate(xy=place, xytext=(-2, -9), ha="right", va="top", fontsize=9, **name)
        else:
            ax.annotate(xy=place, xytext=(0, -9), ha="center", va="top", fontsize=9, **name)
    for hosts in layout.shared:
        _shared_name(net, places, hosts, places[neighbour[hosts[0]]], ax)


def _shared_name(net: Network, places: Points, hosts: Sequence[int], switch: Any, ax: Axes) -> None:
    """The name of hosts that stand together: away from their switch."""
    first, last = (net.nodes[host].name for host in (hosts[0], hosts[-1]))
    stem = first.rstrip("0123456789") if len(hosts) > 1 else first
    lines = [""]
    for part in re.findall(r"[^-_. ]*[-_. ]*", brief(stem, LONGEST_NAME)):
        if lines[-1] and len(lines[-1]) + len(part) > LONGEST_LINE:
            lines.append("")
        lines[-1] += part
    if len(hosts) > 1:
        lines.append(f"{first.removeprefix(stem)} to {last.removeprefix(stem)}")
    align: dict[str, Any]
    own = places[hosts]
    middle, low, high = own.mean(axis=0), own.min(axis=0), own.max(axis=0)
    beside = abs(middle[0] - switch[0]) >= END * 0.99
    if not beside and low[1] > switch[1]:
        at, offset, align = (middle[0], high[1]), (0, 6), {"ha": "center", "va": "bottom"}
    elif not beside:
        at, offset, align = (middle[0], low[1]), (0, -6), {"ha": "center", "va": "top"}
    else:
        left = middle[0] < switch[0]
        at, offset, align = tuple(middle), (-8 if left else 8, 0), {"ha": "right" if left else "left", "va": "center"}
    ax.annotate(
        "\n".join(lines),
        at,
        offset,
        textcoords="offset points",
        fontsize=9,
        linespacing=1.05,
        parse_math=False,
        **align,
    )
