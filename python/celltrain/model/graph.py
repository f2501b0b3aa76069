"""Scenarios from graphs: GraphML, or JSON in node-link form, read by networkx.

A node is a switch unless an attribute makes it a host. For a flow between switches, a host is added at each end.
"""

from __future__ import annotations

import os
import random
import re
import xml.parsers.expat as expat
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.errors import Fault, InputError, needed
from celltrain.model.arguments import checked
from celltrain.model.files import MAX_BYTES, UnreadableError, json_of
from celltrain.model.scenario import Reading, table
from celltrain.model.shipped import read_text
from celltrain.text import described, shortened, shown

if TYPE_CHECKING:
    from celltrain.model.types import Scenario

FORMATS = {".graphml": "GraphML", ".json": "JSON"}
KINDS = ("host", "switch", "edge_device")
#: Largest number of nodes or edges that a fault names.
MOST_NAMED = 5
#: Largest number of faults shown; the others are only counted.
MAX_FAULTS = 100
#: Maximum length of a name: every link and flow of the node repeats it.
MOST_NAME = 1000
#: Maximum digits of a number without a unit, and the largest exponent.
MOST_DIGITS, MOST_EXPONENT = 40, 30
#: Maximum number of links of a scenario; each flow needs at least one link of its own.
MOST_LINKS = MOST_FLOWS = 100_000
_NUMBER = re.compile(r"(?P<digits>[+-]?([0-9]+\.?[0-9]*|\.[0-9]+))([eE](?P<power>[+-]?[0-9]+))?")
_NO_NUMBER = re.compile("true|false|[+-]?(nan|inf|infinity)", re.IGNORECASE)


@checked()
def import_graph(
    path: str | os.PathLike[str],
    *,
    flows: int | None = None,
    seed: int = 1,
    rate: str = "155.52Mbps",
    delay: str | None = None,
    rate_attribute: str = "rate",
    delay_attribute: str = "delay",
    rate_unit: str | None = None,
    delay_unit: str | None = None,
    name_attribute: str | None = None,
    kind_attribute: str = "kind",
    flow_attribute: str = "flow_to",
    both_ways: bool = False,
    access_rate: str | None = None,
    access_delay: str = "5us",
    buffer_cells: int = 1000,
    duration: str = "1s",
    name: str | None = None,
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
        rate_attribute: Edge attribute with the rate, such as `"34.368Mbps"`.
        delay_attribute: Edge attribute with the delay, such as `"5ms"`.
        rate_unit: The unit of rates that are bare numbers, such as `"bps"`; if None, such a number is refused.
        delay_unit: The unit of delays that are bare numbers, such as `"ms"`.
        name_attribute: Node attribute with the name; the node's id when None.
        kind_attribute: Node attribute with the kind: `host`, `switch` or `edge_device`; nodes without it are switches.
        flow_attribute: Node attribute that lists the destinations of the node's flows, separated by commas.
        both_ways: If true, a directed edge without an opposite edge is a link with the same rate and delay in both
            directions.
        access_rate: Rate of the links between switches and the hosts made for flows; `rate` when None.
        access_delay: Propagation delay of these links.
        buffer_cells: The buffer of every port of a switch.
        duration: Simulated time.
        name: Description, shown in results and figures; the file's name when None.

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
    graph = _read(Path(path), file)
    problems = _Problems(file)
    nodes = _nodes(graph, name_attribute, problems)
    kinds = {
        name: str(graph.nodes[node].get(kind_attribute) or "switch").strip().lower() for node, name in nodes.items()
    }
    problems += [
        f"node {described(name)} has {kind_attribute} = {described(kind)}, which is none of {', '.join(KINDS)}"
        for name, kind in kinds.items()
        if kind not in KINDS
    ]
    quantities = [
        _Quantity(rate_attribute, rate, rate_unit, "rate"),
        _Quantity(delay_attribute, delay, delay_unit, "delay"),
    ]
    links = _links(graph, nodes, quantities, both_ways, problems)
    _check_connected(graph, nodes, problems)
    ends = _flows(graph, nodes, flow_attribute, problems)
    problems.stop()
    if flows is not None:
        ends += _draw(kinds, flows, seed, problems)
    if not ends:
        problems.append(f"has no flows: no node has the attribute {flow_attribute!r}; ask for some (--flows N)")
    _check_size(kinds, links, ends, problems)
    problems.stop()
    access = {"rate": access_rate or rate, "delay": access_delay}
    hosts = [node for node, kind in kinds.items() if kind == "host"]

    def host_at(node: str, host: str, *, sends: bool) -> str:
        """Returns the node if it is a host; otherwise adds a host with a link to it."""
        if kinds[node] == "host":
            return node
        # A node of the graph may already have this name.
        while host in kinds:
            host += "-host"
        hosts.append(host)
        links.append({"between": (host, node) if sends else (node, host), **access})
        return host

    from celltrain.model.types import Scenario

    flows_between = [
        {"from": host_at(start, f"source{number}", sends=True), "to": host_at(end, f"destination{number}", sends=False)}
        for number, (start, end) in enumerate(ends, 1)
    ]
    switches, edge_devices = (
        [node for node, own in kinds.items() if own == kind] for kind in ("switch", "edge_device")
    )
    nodes_of = {"hosts": hosts, "switches": switches, "edge_devices": edge_devices}
    made = {
        "name": Path(path).stem if name is None else name,
        "duration": duration,
        "seed": seed,
        "topology": {"network": {"flows": flows_between, **nodes_of, "links": links}},
        "port": {"default": {"buffer": buffer_cells, "policy": {"epd": {"threshold": buffer_cells * 4 // 5}}}},
    }
    # Reading the scenario normalises the units of rates and times.
    return Scenario.model_validate(table(Reading.of_table(made, file).accepted()))


class _Problems(list[str]):
    """Collects everything that is wrong with a file."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file = file

    def stop(self) -> None:
        """Raises `InputError` with the first `MAX_FAULTS` problems, if there are any."""
        if self:
            more = [f"has {len(self) - MAX_FAULTS} more faults, which are not shown"] if len(self) > MAX_FAULTS else []
            raise InputError(Fault.of_file(self.file, problem) for problem in [*self[:MAX_FAULTS], *more])


def _check_size(
    kinds: dict[str, str], links: list[dict[str, Any]], ends: list[tuple[str, str]], problems: _Problems
) -> None:
    """Refuses too many links and too long names before the scenario is made."""
    more = sum(kinds[node] != "host" for flow in ends for node in flow)
    if len(links) + more > MOST_LINKS:
        edges = f"{len(links)} links, and its flows {more} more" if more else f"{len(links)} links"
        problems.append(f"has {edges}; a scenario can have at most {MOST_LINKS}")
    characters = sum(len(node) for pair in [kinds, *ends, *(link["between"] for link in links)] for node in pair)
    if characters > MAX_BYTES:
        problem = (
            f"has names of {characters:,} characters in its links and flows; a scenario can have at most {MAX_BYTES:,}"
        )
        problems.append(f"{problem}: take shorter names")


@dataclass(frozen=True)
class _Quantity:
    """How to read the rate or the delay of edges."""

    attribute: str
    default: str | None
    unit: str | None
    word: str

    def of(self, data: dict[str, Any]) -> str:
        """Returns an edge's value; raises `ValueError` with the problem."""
        value = data.get(self.attribute)
        if value is None or value == "":
            if self.default is None:
                advice = f"give every edge a {self.word}, or one for all without (--{self.word})"
                raise ValueError(f"has no {self.attribute!r}; {advice}")
            return self.default
        text = str(value).strip() if isinstance(value, str | int | float) else described(value)
        written = f"has {self.attribute} = {shortened(text)}"
        number = _NUMBER.fullmatch(text)
        if not isinstance(value, str | int | float) or _NO_NUMBER.fullmatch(text):
            raise ValueError(f"{written}, which is not a {self.word}")
        if number and self.unit is None:
            example = "34.368Mbps" if self.word == "rate" else "5ms"
            advice = f"write such as {example!r}, or say the unit of all (--{self.word}-unit)"
            raise ValueError(f"{written} without a unit; {advice}")
        if number and not set(number["digits"]) & set("123456789"):
            return f"0{self.unit}"
        power = (number and number["power"]) or "0"
        if number and (
            len(number["digits"]) > MOST_DIGITS or len(power) > MOST_DIGITS or abs(int(power)) > MOST_EXPONENT
        ):
            limits = f"it has more than {MOST_DIGITS} digits, or an exponent beyond {MOST_EXPONENT}"
            raise ValueError(f"{written}, which is not a {self.word}: {limits}")
        if text.startswith("-"):
            raise ValueError(f"{written}, which is negative")
        return f"{Decimal(text):f}{self.unit}" if number else text


def _nodes(graph: Any, attribute: str | None, problems: _Problems) -> dict[Any, str]:
    """Returns the name of each node; raises `InputError` if a name is too long to be quoted in faults."""
    nodes: dict[Any, str] = {}
    first: dict[str, Any] = {}
    for node, data in graph.nodes(data=True):
        name = str(node)
        if attribute is not None:
            if data.get(attribute) in (None, ""):
                problems.append(f"node {described(name)} has no {attribute!r}, which is to be its name")
            else:
                name = str(data[attribute])
        if len(name) > MOST_NAME:
            length = f"{len(name):,} characters; a name can have at most {MOST_NAME:,}"
            problems.append(f"node {described(name)} has a name of {length}")
        if name in first:
            both = f"{described(first[name])} and {described(node)}"
            problems.append(f"nodes {both} have one name, {described(name)}; names must be different")
        nodes[node] = name
        first.setdefault(name, node)
    if any(len(name) > MOST_NAME for name in first):
        problems.stop()
    return nodes


def _links(
    graph: Any, nodes: dict[Any, str], quantities: list[_Quantity], both_ways: bool, problems: _Problems
) -> list[dict[str, Any]]:
    """Returns the links; two opposite edges of a directed graph are one link."""
    ways: dict[tuple[str, str], dict[str, str]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for start, end, data in graph.edges(data=True):
        a, b = nodes[start], nodes[end]
        if a == b:
            if start == end:
                problems.append(f"edge {_edge(a, b)} is a loop: it joins a node to itself")
            continue
        if not graph.is_directed() and (b, a) in counts:
            a, b = b, a
        counts[a, b] += 1
        way = ways[a, b] = {}
        for quantity in quantities:
            try:
                way[quantity.word] = quantity.of(data)
            except ValueError as error:
                problems.append(f"edge {_edge(a, b)} {error}")
    problems += [
        f"edge {_edge(*ends)} appears {times} times; two nodes can have only one link"
        for ends, times in counts.items()
        if times > 1
    ]
    links: dict[tuple[str, str], dict[str, Any]] = {}
    lonely = []
    for (a, b), way in ways.items():
        back = ways.get((b, a), way if both_ways or not graph.is_directed() else None)
        if back is None:
            lonely.append(_edge(a, b, "->"))
        elif (b, a) not in links:
            other = {f"{word}_back": value for word, value in back.items() if value != way.get(word)}
            links[a, b] = {"between": (a, b), **way, **other}
    if lonely:
        problems.append(
            f"is directed, and no edge leads back from {_some(lonely)}; acknowledgements return the way data came: add "
            "the edges, or use each in both directions (--both-ways)"
        )
    return list(links.values())


def _check_connected(graph: Any, nodes: dict[Any, str], problems: _Problems) -> None:
    """Refuses graphs that are empty or not connected."""
    import networkx as nx

    if not nodes:
        problems.append("has no nodes")
        return
    _, *others = sorted(nx.connected_components(graph.to_undirected(as_view=True)), key=len, reverse=True)
    if others:
        names = [described(min(nodes[node] for node in part)) for part in others]
        problems.append(
            f"has {len(others) + 1} parts that no edge joins: {_some(names)} cannot be reached from the largest"
        )


def _flows(graph: Any, nodes: dict[Any, str], attribute: str, problems: _Problems) -> list[tuple[str, str]]:
    """Returns the flows that nodes list; raises `InputError` if there are too many."""
    known = set(nodes.values())
    flows: list[tuple[str, str]] = []
    for node, targets in graph.nodes(data=attribute):
        if targets is None:
            continue
        sender = nodes[node]
        count = len(targets) if isinstance(targets, list) else str(targets).count(",") + 1
        if len(flows) + count > MOST_FLOWS:
            more = f"at node {described(sender)} it has {count:,} more"
            problems.append(f"has more than {MOST_FLOWS:,} flows: {more}")
            problems.stop()
        for target in targets if isinstance(targets, list) else str(targets).split(","):
            name = str(target).strip() if isinstance(target, str | int) else target
            written = f"node {described(sender)} has {attribute} = {described(name)}"
            if not isinstance(name, str) or name not in known:
                problems.append(f"{written}, which is not a node")
            elif name == sender:
                problems.append(f"{written}: it sends to itself")
            else:
                flows.append((sender, name))
    return flows


def _edge(start: object, end: object, way: str = "-") -> str:
    """Returns the name of an edge for a fault."""
    return f"{described(start)} {way} {described(end)}"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _draw(kinds: dict[str, str], flows: int, seed: int, problems: _Problems) -> list[tuple[str, str]]:
    """Draws pairs of hosts, or of switches if there are fewer than two hosts; deterministic for a seed and a file."""
    hosts = [name for name, kind in kinds.items() if kind == "host"]
    ends = hosts if len(hosts) > 1 else [name for name, kind in kinds.items() if kind == "switch"]
    if len(ends) < 2:
        problems.append("has no two nodes that a flow could join")
        problems.stop()
    draws = random.Random(seed)
    return [(a, b) for a, b in (draws.sample(ends, 2) for _ in range(flows))]


def _read(path: Path, file: str) -> Any:
    nx = needed("networkx", "importing graphs needs networkx: pip install celltrain[graph]")
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise InputError.of_file(file, f"is not a graph in a known format; its name must end in {' or '.join(FORMATS)}")
    text = read_text(path, what="graph")
    problems = _Problems(file)
    try:
        if form == "JSON":
            return nx.node_link_graph(_node_link(json_of(text), problems), edges="edges")
        _check_graphml(text, problems)
        return nx.parse_graphml(text)
    except InputError:
        raise
    except UnreadableError as error:
        problem = error.problem
    # networkx raises a dozen kinds of exceptions for invalid files.
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        problem = f"is not {form} that describes a graph ({reason[:200]})"
    raise InputError.of_file(file, problem)


def _check_graphml(text: str, problems: _Problems) -> None:
    """Refuses document types, repeated ids, and edges to unknown nodes.

    A document type can declare entities, which can expand exponentially or include other files. No graph needs one.
    """
    nodes: list[Any] = []
    edges: list[tuple[Any, Any]] = []

    def refuse(*_: object) -> None:
        problems.append("has a document type (<!DOCTYPE ...>), which a graph does not need: delete it")
        problems.stop()

    def begin(tag: str, attributes: dict[str, str]) -> None:
        if tag.endswith(" node"):
            nodes.append(attributes.get("id"))
        elif tag.endswith(" edge"):
            edges.append((attributes.get("source"), attributes.get("target")))

    # The same parser as in networkx, so both recognise the same declarations.
    parser = expat.ParserCreate("utf-8", " ")
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = begin
    parser.Parse(text.encode(), True)
    _check_ids(nodes, edges, problems)


def _node_link(data: Any, problems: _Problems) -> dict[str, Any]:
    """Checks a graph in node-link form: `nodes` with `id`, and `links` or `edges` with `source` and `target`."""
    key = "links" if isinstance(data, dict) and "links" in data else "edges"
    if not isinstance(data, dict) or not isinstance(data.get("nodes"), list) or not isinstance(data.get(key), list):
        problems.append("is not a node-link graph: a table with the lists nodes, and links or edges")
        problems.stop()
    nodes, edges = ([one if isinstance(one, dict) else {} for one in data[name]] for name in ("nodes", key))
    _check_ids(
        [node.get("id") for node in nodes], [(edge.get("source"), edge.get("target")) for edge in edges], problems
    )
    # In a multigraph, repeated edges are kept; their keys do not matter.
    edges = [{name: value for name, value in edge.items() if name != "key"} for edge in edges]
    return {**data, "multigraph": True, "edges": edges}


def _check_ids(nodes: list[Any], edges: list[tuple[Any, Any]], problems: _Problems) -> None:
    """Refuses repeated node ids and edges to unknown nodes, which networkx accepts."""
    ids = Counter(name if isinstance(name, str | int) else None for name in nodes)
    for name, times in ids.items():
        if name is None:
            problems.append("has a node without an id, which is a text or a whole number")
        elif times > 1:
            problems.append(f"has {times} nodes with the id {described(name)}; names must be different")
    for ends in edges:
        for end in ends:
            if not isinstance(end, str | int) or end not in ids:
                problems.append(f"edge {_edge(*ends)} joins {described(end)}, which is not the id of a node")
    problems.stop()
