"""Scenarios from graphs: GraphML, or JSON in node-link form, read by networkx.

A node is a switch unless an attribute says that it is a host. A flow between two switches gets a host of its own at each.
"""

from __future__ import annotations

import os
import random
import re
import xml.etree.ElementTree as ElementTree
import xml.parsers.expat as expat
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.errors import Fault, InputError, MissingExtraError, ScenarioError
from celltrain.model.arguments import checked
from celltrain.model.files import MAX_BYTES, UnreadableError, json_of
from celltrain.model.scenario import read, table
from celltrain.model.shipped import read_text
from celltrain.text import described, shortened, shown

if TYPE_CHECKING:
    from celltrain.model.types import Scenario

FORMATS = {".graphml": "GraphML", ".json": "JSON"}
KINDS = ("host", "switch", "edge_device")
#: Nodes or edges that a fault names.
MOST_NAMED = 5
#: Faults that are shown; the others are counted.
MAX_FAULTS = 100
#: Characters of a name: every link and flow of its node repeats it.
MOST_NAME = 1000
#: Digits of a number without a unit, and of the places that its exponent moves them.
MOST_DIGITS, MOST_EXPONENT = 40, 30
#: Each flow has at least one link of its own, and a scenario has at most this many links.
MOST_FLOWS = 100_000
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


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
    """Makes a scenario on the network of a GraphML file, or of a JSON file with `nodes` and `links` or `edges`.

    An edge is a link both ways. In a directed graph two edges between two nodes are the two ways of one link, each with its own
    rate and delay. Every port of a switch has EPD with a threshold of four fifths of its buffer; `replace` sets another policy.

    Args:
        path: The file; needs `pip install celltrain[graph]`.
        flows: Number of flows to draw between random nodes; none when None.
        seed: Seed of these draws, and of the scenario.
        rate: Rate of the links whose edge has none.
        delay: Propagation delay of the links whose edge has none; with None every edge must have one.
        rate_attribute: The attribute of edges that is their rate, such as `"34.368Mbps"`.
        delay_attribute: The attribute of edges that is their delay, such as `"5ms"`.
        rate_unit: The unit of rates that are bare numbers, such as `"bps"`; with None such a number is refused.
        delay_unit: The unit of delays that are bare numbers, such as `"ms"`.
        name_attribute: The attribute of nodes that is their name; the node's id when None.
        kind_attribute: The attribute of nodes that is their kind: `host`, `switch` or `edge_device`; a switch without it.
        flow_attribute: The attribute of nodes that names the destinations of their flows, separated by commas.
        both_ways: If true, a directed edge without one back is a link with the same rate and delay both ways.
        access_rate: Rate of the links between switches and the hosts made for flows; `rate` when None.
        access_delay: Propagation delay of these links.
        buffer_cells: The buffer of every port of a switch.
        duration: Simulated time.
        name: Description, shown in results and figures; the file's name when None.

    Raises:
        InputError: When the file cannot be read or its graph is not a network, with every fault.
        MissingExtraError: Without networkx.

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
        raise InputError([Fault.of_option("flows", flows, f"is not a number of flows, from 1 to {MOST_FLOWS}")])
    if buffer_cells < 1:
        raise InputError([Fault.of_option("buffer_cells", buffer_cells, "is not a number of cells, 1 or more")])
    graph = _read(Path(path), file)
    problems = _Problems(file)
    names = _names(graph, name_attribute, problems)
    kinds = _kinds(graph, names, kind_attribute, problems)
    quantities = [
        _Quantity(rate_attribute, rate, rate_unit, "rate"),
        _Quantity(delay_attribute, delay, delay_unit, "delay"),
    ]
    links = _links(graph, names, quantities, both_ways, problems)
    _check_connected(graph, names, problems)
    ends = _flows(graph, names, flow_attribute, problems)
    problems.stop()
    if flows is not None:
        ends += _draw(kinds, flows, seed, file)
    if not ends:
        problem = f"has no flows: no node has the attribute {flow_attribute!r}; ask for some (--flows N)"
        raise InputError([Fault.of_file(file, problem)])
    _check_size(kinds, links, ends, file)
    access = {"rate": access_rate or rate, "delay": access_delay}
    hosts = [node for node, kind in kinds.items() if kind == "host"]
    made: list[dict[str, str]] = []
    for number, (start, end) in enumerate(ends, 1):
        flow = {"from_": start, "to": end}
        for key, host in (("from_", f"source{number}"), ("to", f"destination{number}")):
            if kinds[node := flow[key]] != "host":
                # A node of the graph may have the name.
                while host in kinds:
                    host += "-host"
                hosts.append(host)
                links.append({"between": (host, node) if key == "from_" else (node, host), **access})
                flow[key] = host
        made.append(flow)
    from celltrain.model.types import Epd, Flow, GeneralNetwork, Link, Port, Scenario

    scenario = Scenario(
        name=Path(path).stem if name is None else name,
        duration=duration,
        seed=seed,
        topology=GeneralNetwork(
            hosts=tuple(hosts),
            switches=tuple(node for node, kind in kinds.items() if kind == "switch"),
            edge_devices=tuple(node for node, kind in kinds.items() if kind == "edge_device"),
            links=tuple(Link(**link) for link in links),
            flows=tuple(Flow(from_=flow["from_"], to=flow["to"]) for flow in made),
        ),
        port={"default": Port(buffer_cells=buffer_cells, policy=Epd(threshold=buffer_cells * 4 // 5))},
    )
    reading = read(scenario)
    if reading.faults:
        raise ScenarioError(fault.changed(file=file, line=None) for fault in reading.faults)
    # The core writes rates and times in their usual units.
    return Scenario.model_validate(table(reading.accepted()))


class _Problems(list[str]):
    """Everything that is wrong with a file."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file = file

    def stop(self) -> None:
        """Raises `InputError` with the first of them if there are any."""
        if self:
            more = [f"has {len(self) - MAX_FAULTS} more faults, which are not shown"] if len(self) > MAX_FAULTS else []
            raise InputError(Fault.of_file(self.file, problem) for problem in [*self[:MAX_FAULTS], *more])


def _check_size(kinds: dict[str, str], links: list[dict[str, Any]], ends: list[tuple[str, str]], file: str) -> None:
    """Refuses more links and longer names than a scenario may have, before it is made."""
    from celltrain.model.types import GeneralNetwork

    limits = GeneralNetwork.model_fields["links"].metadata
    most = next(limit.max_length for limit in limits if hasattr(limit, "max_length"))
    more = sum(kinds[node] != "host" for flow in ends for node in flow)
    if len(links) + more > most:
        edges = f"{len(links)} links, and its flows {more} more" if more else f"{len(links)} links"
        raise InputError([Fault.of_file(file, f"has {edges}; a scenario has at most {most}")])
    characters = sum(map(len, kinds)) + sum(len(node) for flow in ends for node in flow)
    characters += sum(len(node) for link in links for node in link["between"])
    if characters > MAX_BYTES:
        problem = f"has names of {characters:,} characters at its links and flows; a scenario has at most {MAX_BYTES:,}"
        raise InputError([Fault.of_file(file, f"{problem}: take shorter names")])


@dataclass(frozen=True)
class _Quantity:
    """The rate or the delay of edges."""

    attribute: str
    default: str | None
    unit: str | None
    word: str

    def of(self, data: dict[str, Any]) -> str:
        """Returns the value of an edge; raises `ValueError` with the problem."""
        value = data.get(self.attribute)
        if value is None or value == "":
            if self.default is None:
                advice = f"give every edge a {self.word}, or one for all without (--{self.word})"
                raise ValueError(f"has no {self.attribute!r}; {advice}")
            return self.default
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError(f"has {self.attribute} = {described(value)}, which is no {self.word}")
        text = str(value).strip()
        written = f"has {self.attribute} = {shortened(text)}"
        if _NUMBER.fullmatch(text):
            text = self._with_unit(text, written)
        elif text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
            raise ValueError(f"{written}, which is no {self.word}")
        if text.startswith("-"):
            raise ValueError(f"{written}, which is negative")
        return text

    def _with_unit(self, text: str, written: str) -> str:
        """Writes a bare number as a scenario does, without an exponent."""
        if self.unit is None:
            example = "34.368Mbps" if self.word == "rate" else "5ms"
            advice = f"write such as {example!r}, or say the unit of all (--{self.word}-unit)"
            raise ValueError(f"{written} without a unit; {advice}")
        digits, _, exponent = text.lower().partition("e")
        if not set(digits) & set("123456789"):
            return f"0{self.unit}"
        if len(digits) > MOST_DIGITS or len(exponent) > MOST_DIGITS or abs(int(exponent or 0)) > MOST_EXPONENT:
            limits = f"it has more than {MOST_DIGITS} digits, or an exponent beyond {MOST_EXPONENT}"
            raise ValueError(f"{written}, which is no {self.word}: {limits}")
        return f"{Decimal(text):f}{self.unit}"


def _names(graph: Any, attribute: str | None, problems: _Problems) -> dict[Any, str]:
    """Returns the name of each node; raises `InputError` if one is too long for the faults that would name it."""
    names: dict[Any, str] = {}
    nodes: dict[str, Any] = {}
    for node, data in graph.nodes(data=True):
        name = str(node)
        if attribute is not None:
            if data.get(attribute) in (None, ""):
                problems.append(f"node {described(name)} has no {attribute!r}, which is to be its name")
            else:
                name = str(data[attribute])
        if len(name) > MOST_NAME:
            length = f"{len(name):,} characters; a name has at most {MOST_NAME:,}"
            problems.append(f"node {described(name)} has a name of {length}")
        if name in nodes:
            both = f"{described(nodes[name])} and {described(node)}"
            problems.append(f"nodes {both} have one name, {described(name)}; names are different")
        names[node] = name
        nodes.setdefault(name, node)
    if any(len(name) > MOST_NAME for name in nodes):
        problems.stop()
    return names


def _kinds(graph: Any, names: dict[Any, str], attribute: str, problems: _Problems) -> dict[str, str]:
    """Returns the kind of each node by its name."""
    kinds = {}
    for node, data in graph.nodes(data=True):
        kind = str(data.get(attribute) or "switch").strip().lower()
        if kind not in KINDS:
            value = f"{attribute} = {described(data[attribute])}"
            problems.append(f"node {described(names[node])} has {value}, which is none of {', '.join(KINDS)}")
        kinds[names[node]] = kind
    return kinds


def _links(
    graph: Any, names: dict[Any, str], quantities: list[_Quantity], both_ways: bool, problems: _Problems
) -> list[dict[str, Any]]:
    """Returns the links; two opposite edges of a directed graph are one link."""
    ways: dict[tuple[str, str], tuple[str, ...]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for start, end, data in graph.edges(data=True):
        a, b = names[start], names[end]
        if start == end:
            problems.append(f"edge {_edge(a, b)} is a loop: it joins a node to itself")
        if a == b:
            continue
        if not graph.is_directed() and (b, a) in counts:
            a, b = b, a
        counts[a, b] += 1
        values = []
        for quantity in quantities:
            try:
                values.append(quantity.of(data))
            except ValueError as error:
                problems.append(f"edge {_edge(a, b)} {error}")
                values.append("")
        ways[a, b] = tuple(values)
    problems += [
        f"edge {_edge(*ends)} is there {times} times; two nodes have one link"
        for ends, times in counts.items()
        if times > 1
    ]
    links = {}
    lonely = []
    for (a, b), (rate, delay) in ways.items():
        if (b, a) in links:
            continue
        links[a, b] = {"between": (a, b), "rate": rate, "delay": delay}
        if graph.is_directed():
            back = ways.get((b, a), (rate, delay) if both_ways else None)
            if back is None:
                lonely.append(_edge(a, b, "->"))
                continue
            changes = {"rate_back": back[0]} if back[0] != rate else {}
            links[a, b] |= changes | ({"delay_back": back[1]} if back[1] != delay else {})
    if lonely:
        problems.append(
            f"is directed, and no edge leads back from {_some(lonely)}; acknowledgements go back the way data came: add "
            "the edges, or take each as a link both ways (--both-ways)"
        )
    return list(links.values())


def _check_connected(graph: Any, names: dict[Any, str], problems: _Problems) -> None:
    """Refuses a graph without nodes, or of parts that no edge joins."""
    import networkx as nx

    if not graph.nodes:
        problems.append("has no nodes")
        return
    parts = sorted(nx.connected_components(graph.to_undirected(as_view=True)), key=len, reverse=True)
    if len(parts) > 1:
        others = [described(min(names[node] for node in part)) for part in parts[1:]]
        problems.append(
            f"has {len(parts)} parts that no edge joins: {_some(others)} cannot be reached from the largest"
        )


def _flows(graph: Any, names: dict[Any, str], attribute: str, problems: _Problems) -> list[tuple[str, str]]:
    """Returns the flows that nodes name; raises `InputError` if they are too many."""
    known = set(names.values())
    flows: list[tuple[str, str]] = []
    for node, data in graph.nodes(data=True):
        targets = data.get(attribute)
        if targets is None:
            continue
        sender = names[node]
        count = len(targets) if isinstance(targets, list) else str(targets).count(",") + 1
        if len(flows) + count > MOST_FLOWS:
            more = f"at node {described(sender)} it has {count:,} more"
            problems.append(f"has more than {MOST_FLOWS:,} flows: {more}")
            problems.stop()
        for target in targets if isinstance(targets, list) else str(targets).split(","):
            name = str(target).strip() if isinstance(target, str | int) else ""
            value = described(target.strip() if isinstance(target, str) else target)
            if name not in known:
                problems.append(f"node {described(sender)} has {attribute} = {value}, which is not a node")
            elif name == sender:
                problems.append(f"node {described(sender)} has {attribute} = {described(name)}: it sends to itself")
            else:
                flows.append((sender, name))
    return flows


def _edge(start: str, end: str, way: str = "-") -> str:
    """Names an edge in a fault."""
    return f"{described(start)} {way} {described(end)}"


def _some(names: list[str]) -> str:
    """Lists the first few of many names."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _draw(kinds: dict[str, str], flows: int, seed: int, file: str) -> list[tuple[str, str]]:
    """Draws pairs of hosts, or of switches if there are not two hosts; the same for the same seed and file."""
    hosts = [name for name, kind in kinds.items() if kind == "host"]
    ends = hosts if len(hosts) > 1 else [name for name, kind in kinds.items() if kind == "switch"]
    if len(ends) < 2:
        raise InputError([Fault.of_file(file, "has no two nodes that a flow could join")])
    draws = random.Random(seed)
    return [(a, b) for a, b in (draws.sample(ends, 2) for _ in range(flows))]


def _read(path: Path, file: str) -> Any:
    """Reads the graph in a file."""
    try:
        import networkx as nx
    except ImportError as error:
        raise MissingExtraError("importing graphs needs networkx: pip install celltrain[graph]") from error
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        problem = f"is not a graph this can read; its name ends in {' or '.join(FORMATS)}"
        raise InputError([Fault.of_file(file, problem)])
    text = read_text(path, what="graph")
    try:
        if form == "JSON":
            return _of_json(json_of(text), file)
        _check_graphml(text, file)
        return nx.parse_graphml(text)
    except InputError:
        raise
    except UnreadableError as error:
        problem = error.problem
    except RecursionError:
        problem = "nests too deep to be a graph"
    # networkx has exceptions of a dozen kinds for faults of a file.
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        problem = f"is not {form} that describes a graph ({reason[:200]})"
    raise InputError([Fault.of_file(file, problem)])


def _check_graphml(text: str, file: str) -> None:
    """Refuses repeated node ids and edges to unknown nodes, which networkx accepts, and document types.

    A document type can declare entities, which multiply or bring in other files. No graph needs one.
    """
    problems = _Problems(file)

    def refuse(*_: object) -> None:
        problems.append("has a document type (<!DOCTYPE ...>), which a graph has no use for: take it out")
        problems.stop()

    # The parser of ElementTree and of networkx: a declaration to one is a declaration to the other.
    parser = expat.ParserCreate("utf-8")
    parser.StartDoctypeDeclHandler = refuse
    parser.Parse(text.encode(), True)
    root = ElementTree.fromstring(text)
    ids = Counter(node.get("id") for node in root.iterfind(".//{*}node"))
    problems += [
        f"has {times} nodes with the id {described(name)}; names are different"
        for name, times in ids.items()
        if times > 1
    ]
    for edge in root.iterfind(".//{*}edge"):
        ends = edge.get("source"), edge.get("target")
        joined = f"{described(ends[0])} - {described(ends[1])}"
        problems += [
            f"edge {joined} joins {described(end)}, which is not the id of a node" for end in ends if end not in ids
        ]
    problems.stop()


def _of_json(data: Any, file: str) -> Any:
    """Reads a graph in node-link form: `nodes` with `id`, and `links` or `edges` with `source` and `target`."""
    import networkx as nx

    problems = _Problems(file)
    if not isinstance(data, dict) or not isinstance(data.get("nodes"), list):
        problems.append("is not a node-link graph: a table with the lists nodes and links")
        problems.stop()
    key = "links" if "links" in data else "edges"
    if not isinstance(data.get(key), list):
        problems.append("is not a node-link graph: it has no list of links, or edges")
        problems.stop()
    ids = set()
    for i, node in enumerate(data["nodes"]):
        if not isinstance(node, dict) or not isinstance(node.get("id"), str | int):
            problems.append(f"nodes[{i}] is not a table with an id")
        elif node["id"] in ids:
            problems.append(f"nodes[{i}] has the id {described(node['id'])} of another node; names are different")
        else:
            ids.add(node["id"])
    for i, edge in enumerate(data[key]):
        for end in [edge.get("source"), edge.get("target")] if isinstance(edge, dict) else [None]:
            if not isinstance(end, str | int) or end not in ids:
                problems.append(f"{key}[{i}] joins {described(end)}, which is not the id of a node")
    problems.stop()
    # A multigraph keeps repeated edges, whatever keys they have.
    edges = [{name: value for name, value in edge.items() if name != "key"} for edge in data[key]]
    return nx.node_link_graph({**data, "multigraph": True, "edges": edges}, edges="edges")
