"""Scenarios from graphs: GraphML, or JSON in node-link form, read by networkx.

A node is a switch unless an attribute makes it a host. For a flow between switches, a host is added at each end. The core
checks the scenario; faults that it finds are reported under the name of the edge or the flow.
"""

from __future__ import annotations

import os
import random
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from typing_extensions import Unpack

from celltrain.errors import Fault, InputError, needed
from celltrain.model.arguments import checked
from celltrain.model.files import MAX_BYTES, UnreadableError, json_of
from celltrain.model.scenario import Reading, table
from celltrain.model.shipped import read_text
from celltrain.text import described, shortened, shown

if TYPE_CHECKING:
    from celltrain.model.types import Scenario

FORMATS = {".graphml": "GraphML", ".json": "JSON"}
KINDS = {"host": "hosts", "switch": "switches", "edge_device": "edge_devices"}
#: Largest number of nodes listed in a fault.
MOST_NAMED = 5
#: Largest number of faults shown.
MAX_FAULTS = 100
#: Maximum length of a name. Every link and flow of a node repeats the node's name.
MOST_NAME = 1000
#: Maximum number of flows. Each flow needs at least one link of its own.
MOST_FLOWS = 100_000
#: A number without a unit. The core refuses longer numbers.
_NUMBER = re.compile(r"[+-]?([0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})([eE][+-]?[0-9]{1,2})?")


class GraphOptions(TypedDict, total=False):
    """How to read a graph, and the links of the hosts that are added to it. All options may be left out.

    Attributes:
        rate_attribute: Edge attribute with the rate, such as `"34.368Mbps"`; by default `"rate"`.
        delay_attribute: Edge attribute with the delay, such as `"5ms"`; by default `"delay"`.
        rate_unit: The unit of rates that are bare numbers, such as `"bps"`; if None, such a number is refused.
        delay_unit: The unit of delays that are bare numbers, such as `"ms"`.
        name_attribute: Node attribute with the name; nodes without it are named by their ids.
        kind_attribute: Node attribute with the kind: `host`, `switch` or `edge_device`; by default `"kind"`. Nodes
            without it are switches.
        flow_attribute: Node attribute that lists the destinations of the node's flows, separated by commas; by default
            `"flow_to"`.
        both_ways: If true, a directed edge without an opposite edge is a link with the same rate and delay in both
            directions.
        access_rate: Rate of the links between switches and the hosts made for flows; `rate` when None.
        access_delay: Propagation delay of these links; by default `"5us"`.
    """

    rate_attribute: str
    delay_attribute: str
    rate_unit: str | None
    delay_unit: str | None
    name_attribute: str | None
    kind_attribute: str
    flow_attribute: str
    both_ways: bool
    access_rate: str | None
    access_delay: str


#: Values of options that are left out.
DEFAULTS: GraphOptions = {
    "rate_attribute": "rate",
    "delay_attribute": "delay",
    "kind_attribute": "kind",
    "flow_attribute": "flow_to",
    "access_delay": "5us",
}


@checked()
def import_graph(
    path: str | os.PathLike[str],
    *,
    flows: int | None = None,
    seed: int = 1,
    rate: str = "155.52Mbps",
    delay: str | None = None,
    buffer_cells: int = 1000,
    duration: str = "1s",
    name: str | None = None,
    **options: Unpack[GraphOptions],
) -> Scenario:
    """Makes a scenario from the network in a GraphML file, or in a JSON file with `nodes` and `links` or `edges`.

    An edge is a link in both directions. In a directed graph, two opposite edges are the two directions of one link,
    each with its own rate and delay. Every port of a switch has EPD with a threshold of four fifths of its buffer;
    `replace` sets another policy.

    Args:
        path: The file; needs `pip install celltrain[graph]`.
        flows: Number of flows to draw between random nodes; none when None.
        seed: Seed of these draws, and of the scenario.
        rate: Rate of links whose edge states none.
        delay: Propagation delay of links whose edge states none; if None, every edge must state one.
        buffer_cells: The buffer of every port of a switch.
        duration: Simulated time.
        name: Description, shown in results and figures; the file's name when None.
        options: See `celltrain.GraphOptions`: the attributes and units of the file, and the links of added hosts.

    Raises:
        InputError: If the file cannot be read or its graph is not a network; lists every fault.
        MissingExtraError: If networkx is not installed.

    >>> import celltrain as ct
    >>> edges = '{"source": "a", "target": "b", "delay": "1ms"}, {"source": "b", "target": "c", "delay": "2ms"}'
    >>> nodes = '{"id": "a"}, {"id": "b"}, {"id": "c"}'
    >>> _ = Path("line.json").write_text('{"nodes": [%s], "links": [%s]}' % (nodes, edges))
    >>> line = ct.import_graph("line.json", flows=2, seed=7)
    >>> line.topology.switches, len(line.topology.flows)
    (('a', 'b', 'c'), 2)
    """
    file = shown(path)
    if flows is not None and not 1 <= flows <= MOST_FLOWS:
        raise InputError.of_option("flows", flows, f"is not a number of flows from 1 to {MOST_FLOWS}")
    if buffer_cells < 1:
        raise InputError.of_option("buffer_cells", buffer_cells, "is not a number of cells, 1 or more")
    graph, how = _read(Path(path), file), DEFAULTS | options
    kind_attribute, flow_attribute = how["kind_attribute"], how["flow_attribute"]
    names = {node: str(data.get(how.get("name_attribute")) or node) for node, data in graph.nodes(data=True)}
    if (longest := max(map(len, names.values()))) > MOST_NAME:
        problem = f"has a name of {longest:,} characters; a name can have at most {MOST_NAME:,}"
        raise InputError.of_file(file, problem)
    kinds = {names[node]: str(kind or "switch").strip().lower() for node, kind in graph.nodes(data=kind_attribute)}
    for node, kind in kinds.items():
        if kind not in KINDS:
            problem = f"node {described(node)} has {kind_attribute} = {described(kind)}, which is none of"
            raise InputError.of_file(file, f"{problem} {', '.join(KINDS)}")
    quantities = {
        "rate": (how["rate_attribute"], rate, how.get("rate_unit")),
        "delay": (how["delay_attribute"], delay, how.get("delay_unit")),
    }
    links = _links(graph, names, quantities, both_ways=how.get("both_ways", False), file=file)
    ends = _flows(graph.nodes(data=flow_attribute), names)
    if flows is not None:
        ends += _draw(kinds, flows, seed, file)
    if not ends:
        problem = f"has no flows: no node has the attribute {flow_attribute!r}; request some with --flows N"
        raise InputError.of_file(file, problem)
    characters = sum(len(node) for pair in [*ends, *(link["between"] for link in links)] for node in pair)
    if characters > MAX_BYTES:
        problem = (
            f"has links and flows with names of {characters:,} characters in all; use names of at most {MAX_BYTES:,}"
        )
        raise InputError.of_file(file, problem)
    network: dict[str, Any] = {
        key: [node for node, own in kinds.items() if own == kind] for kind, key in KINDS.items()
    } | {"links": links}

    def host_at(node: str, host: str, *, sends: bool) -> str:
        """Returns the node if it is a host; otherwise adds a host with a link to it."""
        if kinds.get(node, "host") == "host":
            return node
        # A node of the graph may already have the name of the new host.
        while host in kinds:
            host += "-host"
        network["hosts"].append(host)
        between = (host, node) if sends else (node, host)
        links.append({"between": between, "rate": how.get("access_rate") or rate, "delay": how["access_delay"]})
        return host

    network["flows"] = [
        {"from": host_at(start, f"source{number}", sends=True), "to": host_at(end, f"destination{number}", sends=False)}
        for number, (start, end) in enumerate(ends, 1)
    ]
    from celltrain.model.types import Scenario

    made = {
        "name": Path(path).stem if name is None else name,
        "duration": duration,
        "seed": seed,
        "topology": {"network": network},
        "port": {"default": {"buffer": buffer_cells, "policy": {"epd": {"threshold": buffer_cells * 4 // 5}}}},
    }
    reading = Reading.of_table(made, file)
    if reading.faults:
        raise InputError(_of_graph(fault, links, ends) for fault in reading.faults[:MAX_FAULTS])
    # Reading the scenario normalises the units of rates and times.
    return Scenario.model_validate(table(reading.accepted()))


def _of_graph(fault: Fault, links: Sequence[Mapping[str, Any]], flows: Sequence[tuple[str, str]]) -> Fault:
    """Describes a fault of a link or a flow by its ends. Adds how to give all edges a value or a unit."""
    match = re.fullmatch(r"topology\.network\.(links|flows)\[(\d+)\]\.?(.*)", fault.key)
    if match is None:
        return fault
    number, inner = int(match[2]), match[3]
    if match[1] == "flows":
        return fault.changed(key=f"flow {_edge(*flows[number], way='->')}, {inner}")
    key = f"edge {_edge(*links[number]['between'])}"
    if inner.startswith("between"):
        return fault.changed(key=key, value="")
    problem, option = fault.problem, inner.removesuffix("_back")
    if problem.startswith("is missing"):
        problem += f"; give every edge a {option}, or use --{option} for all edges without one"
    elif "(no unit)" in problem:
        problem += f", or give one unit for all edges with --{option}-unit"
    return fault.changed(key=f"{key}, {inner}", problem=problem)


def _links(
    graph: Any, names: Mapping[Any, str], quantities: Mapping[str, Any], *, both_ways: bool, file: str
) -> list[dict[str, Any]]:
    """Returns the links. Two opposite edges of a directed graph are one link."""
    links: list[dict[str, Any]] = []
    alone: dict[tuple[str, str], dict[str, Any]] = {}
    for start, end, data in graph.edges(data=True):
        ends = names[start], names[end]
        way = {word: own for word, quantity in quantities.items() if (own := _value(data, *quantity)) is not None}
        if (link := alone.pop(ends[::-1], None)) is not None:
            link |= {f"{word}_back": value for word, value in way.items() if value != link.get(word)}
            continue
        links.append({"between": ends, **way})
        if graph.is_directed() and start != end:
            alone[ends] = links[-1]
    if alone and not both_ways:
        problem = (
            f"is directed, and no edge leads back from {_some([_edge(*ends, way='->') for ends in alone])}; "
            "acknowledgements take the reverse path: add the edges, or use each in both directions (--both-ways)"
        )
        raise InputError.of_file(file, problem)
    return links


def _value(data: Mapping[str, Any], attribute: str, default: str | None, unit: str | None) -> str | None:
    """Returns the rate or the delay of an edge."""
    value = data.get(attribute)
    if value is None or value == "":
        return default
    text = shortened(str(value).strip())
    return f"{Decimal(text):f}{unit}" if unit is not None and _NUMBER.fullmatch(text) else text


def _flows(nodes: Any, names: Mapping[Any, str]) -> list[tuple[str, str]]:
    """Returns the flows that nodes list: names in a list, or separated by commas. Stops if there are too many."""
    flows: list[tuple[str, str]] = []
    for node, targets in nodes:
        listed = targets if isinstance(targets, list) else str(targets).split(",", MOST_FLOWS)
        if targets is not None and len(flows) <= MOST_FLOWS:
            flows += [(names[node], described(one) if isinstance(one, list) else str(one).strip()) for one in listed]
    return flows


def _edge(start: object, end: object, *, way: str = "-") -> str:
    """Returns the name of an edge for a fault."""
    return f"{described(start)} {way} {described(end)}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _draw(kinds: Mapping[str, str], flows: int, seed: int, file: str) -> list[tuple[str, str]]:
    """Draws pairs of hosts, or of switches if there are fewer than two hosts; deterministic for a seed and a file."""
    hosts = [name for name, kind in kinds.items() if kind == "host"]
    ends = hosts if len(hosts) > 1 else [name for name, kind in kinds.items() if kind == "switch"]
    if len(ends) < 2:
        raise InputError.of_file(file, "has no two nodes that a flow could join")
    draws = random.Random(seed)
    return [(a, b) for a, b in (draws.sample(ends, 2) for _ in range(flows))]


def _read(path: Path, file: str) -> Any:
    """Reads a graph whose nodes are connected; raises `InputError`."""
    nx = needed("networkx", "importing graphs needs networkx: pip install celltrain[graph]")
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise InputError.of_file(file, f"is not a graph in a known format; its name must end in {' or '.join(FORMATS)}")
    text = read_text(path, what="graph")
    try:
        graph = _graphml(nx, text, file) if form == "GraphML" else _node_link(nx, json_of(text), file)
    except InputError:
        raise
    except UnreadableError as error:
        raise InputError.of_file(file, error.problem) from None
    # networkx raises a dozen kinds of exceptions for invalid files.
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError.of_file(file, f"is not {form} that describes a graph ({reason[:200]})") from None
    if not len(graph):
        raise InputError.of_file(file, "has no nodes")
    _, *others = sorted(nx.connected_components(graph.to_undirected(as_view=True)), key=len, reverse=True)
    if others:
        names = _some([described(min(map(str, part))) for part in others])
        problem = f"has {len(others) + 1} parts that no edge joins: {names} cannot be reached from the largest"
        raise InputError.of_file(file, problem)
    return graph


def _graphml(nx: Any, text: str, file: str) -> Any:
    if "<!DOCTYPE" in text:
        # A document type can declare entities. These can expand exponentially or include other files.
        problem = "has a document type (<!DOCTYPE ...>), which a graph does not need: delete it"
        raise InputError.of_file(file, problem)
    elements = list(ET.fromstring(text.encode()).iter())
    nodes, edges = ([one.attrib for one in elements if one.tag.endswith(kind)] for kind in ("}node", "}edge"))
    _check_ids(nodes, edges, file)
    return nx.parse_graphml(text)


def _node_link(nx: Any, data: Any, file: str) -> Any:
    root: dict[str, Any] = data if isinstance(data, dict) else {}
    lists: list[Any] = [root.get("nodes"), root.get("links", root.get("edges"))]
    if not all(isinstance(one, list) and all(isinstance(row, dict) for row in one) for one in lists):
        problem = "is not a node-link graph, which is a table with the lists nodes and links (or edges)"
        raise InputError.of_file(file, problem)
    nodes, edges = lists
    _check_ids(nodes, edges, file)
    # A multigraph keeps repeated edges. The keys that distinguish repeated edges have no meaning in a scenario.
    edges = [{name: value for name, value in edge.items() if name != "key"} for edge in edges]
    return nx.node_link_graph({**data, "multigraph": True, "edges": edges}, edges="edges")


def _check_ids(nodes: Sequence[Any], edges: Sequence[Any], file: str) -> None:
    """Refuses repeated node ids and edges to unknown nodes, which networkx accepts."""
    ids = Counter(one.get("id") if isinstance(one.get("id"), str | int) else None for one in nodes)
    problems = [
        f"has {times} nodes with the id {described(one)}" for one, times in ids.items() if times > 1 and one is not None
    ]
    problems += ["has a node without an id, which is a text or a whole number"] if None in ids else []
    for edge in edges:
        ends = edge.get("source"), edge.get("target")
        problems += [
            f"edge {_edge(*ends)} joins {described(end)}, which is not the id of a node"
            for end in ends
            if not isinstance(end, str | int) or end not in ids
        ]
    if problems:
        raise InputError(Fault.of_file(file, problem) for problem in problems[:MAX_FAULTS])
