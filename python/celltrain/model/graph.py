"""Scenarios from graphs: GraphML, or JSON as node-link programs write it.

Files are read by networkx. A node is a switch unless it says that it is a host; a flow between two switches gets a host of its
own at each.
"""

from __future__ import annotations

import os
import random
import re
import xml.etree.ElementTree as ElementTree
import xml.parsers.expat as expat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.errors import Fault, InputError, MissingExtraError, ScenarioError
from celltrain.model.arguments import checked
from celltrain.model.documents import read_text
from celltrain.model.files import MAX_BYTES, UnreadableError, json_of
from celltrain.model.scenario import read, table
from celltrain.text import described, shortened, shown

if TYPE_CHECKING:
    from celltrain.model.types import Scenario

FORMATS = (".graphml", ".json")
KINDS = ("host", "switch", "edge_device")
# What is said of a fault that many nodes or edges have.
MOST_NAMED = 5
# Faults that are told; the others are counted.
MAX_FAULTS = 100
# A name stands at every link and flow of its node, so that a long one takes any amount of memory.
MOST_NAME = 1000
# Digits of a number without a unit, and places that its exponent moves them: beyond is no rate and no delay.
MOST_DIGITS, MOST_EXPONENT = 40, 30
# Each has a link of its own at least, and a scenario has no more of them.
MOST_FLOWS = 100_000


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
    """A scenario on the network of a GraphML file, or of a JSON file with `nodes` and `links` or `edges`.

    An edge is a link both ways. In a directed graph two edges between two nodes are the two ways of one link, each with its own
    rate and delay. Every port of a switch has EPD with a threshold of four fifths of its buffer; `replace` sets another policy.

    Args:
        path: The file; needs `pip install celltrain[graph]`.
        flows: How many flows to draw, between random nodes; none when None.
        seed: Seed of these draws, and of the scenario.
        rate: Rate of the links whose edge has none.
        delay: Propagation delay of the links whose edge has none; with None every edge must have one.
        rate_attribute: The attribute of edges that is their rate, such as `"34.368Mbps"`.
        delay_attribute: The attribute of edges that is their delay, such as `"5ms"`.
        rate_unit: The unit of rates that are bare numbers, such as `"bps"`; with None such a number is refused.
        delay_unit: The unit of delays that are bare numbers, such as `"ms"`.
        name_attribute: The attribute of nodes that is their name; the node's id when None.
        kind_attribute: The attribute of nodes that says what they are: `host`, `switch` or `edge_device`; a switch without.
        flow_attribute: The attribute of nodes that says where flows from them go: names, separated by commas.
        both_ways: Whether a directed edge without one back is a link both ways, alike.
        access_rate: Rate of the links between switches and the hosts made for flows; `rate` when None.
        access_delay: Propagation delay of these links.
        buffer_cells: The buffer of every port of a switch.
        duration: How long to simulate.
        name: Description, shown in results and figures; the file's name when None.

    Raises:
        InputError: When the file cannot be read or its graph is no network, with every fault.
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
    reader = _Reader(
        file=file,
        faults=_Faults(file),
        rate=_Quantity(rate_attribute, rate, rate_unit, "rate"),
        delay=_Quantity(delay_attribute, delay, delay_unit, "delay"),
        name_attribute=name_attribute,
        kind_attribute=kind_attribute,
        both_ways=both_ways,
    )
    graph = _read(Path(path), file)
    names = reader.names(graph)
    kinds = reader.kinds(graph, names)
    links = reader.links(graph, names)
    reader.is_one_piece(graph, names)
    wanted = reader.flows(graph, names, flow_attribute)
    reader.faults.stop()
    if flows is not None:
        wanted += _draw(names, kinds, flows, seed, file)
    if not wanted:
        problem = f"has no flows: no node has the attribute {flow_attribute!r}; ask for some (--flows N)"
        raise InputError([Fault.of_file(file, problem)])
    _refuse_more_than_fits(kinds, links, wanted, file)
    hosts = [node for node, kind in kinds.items() if kind == "host"]
    made: list[dict[str, Any]] = []
    links_of_hosts: list[dict[str, Any]] = []
    for number, (start, end) in enumerate(wanted, 1):
        ends = {}
        for key, node, host in (("from", start, f"source{number}"), ("to", end, f"destination{number}")):
            if kinds[node] == "host":
                ends[key] = node
            else:
                # A node of the graph may have that name.
                ends[key] = host = next(name for name in _names_like(host) if name not in kinds)
                hosts.append(host)
                line = {"rate": access_rate or rate, "delay": access_delay}
                links_of_hosts.append({"between": (host, node) if key == "from" else (node, host), **line})
        made.append(ends)
    from celltrain.model.types import Epd, Flow, GeneralNetwork, Link, Port, Scenario

    scenario = Scenario(
        name=Path(path).stem if name is None else name,
        duration=duration,
        seed=seed,
        topology=GeneralNetwork(
            hosts=tuple(hosts),
            switches=tuple(node for node, kind in kinds.items() if kind == "switch"),
            edge_devices=tuple(node for node, kind in kinds.items() if kind == "edge_device"),
            links=tuple(Link(**link) for link in links + links_of_hosts),
            flows=tuple(Flow(from_=ends["from"], to=ends["to"]) for ends in made),
        ),
        port={"default": Port(buffer_cells=buffer_cells, policy=Epd(threshold=buffer_cells * 4 // 5))},
    )
    reading = read(scenario)
    if reading.faults:
        raise ScenarioError(_of_file(fault, file) for fault in reading.faults)
    # With rates and times in their usual units.
    return Scenario.model_validate(table(reading.accepted()))


def _refuse_more_than_fits(
    kinds: dict[str, str], links: list[dict[str, Any]], wanted: list[tuple[str, str]], file: str
) -> None:
    """Refuses more links than a scenario may have, and names that are more text than one may be, before it is made."""
    from celltrain.model.types import GeneralNetwork

    most = next(
        limit.max_length for limit in GeneralNetwork.model_fields["links"].metadata if hasattr(limit, "max_length")
    )
    more = sum(kinds[node] != "host" for ends in wanted for node in ends)
    if len(links) + more > most:
        edges = f"{len(links)} links, and its flows {more} more" if more else f"{len(links)} links"
        raise InputError([Fault.of_file(file, f"has {edges}; a scenario has at most {most}")])
    characters = sum(map(len, kinds)) + sum(len(node) for ends in wanted for node in ends)
    characters += sum(len(node) for link in links for node in link["between"])
    if characters > MAX_BYTES:
        problem = f"has names of {characters:,} characters at its links and flows; a scenario has at most {MAX_BYTES:,}"
        raise InputError([Fault.of_file(file, f"{problem}: take shorter names")])


def _of_file(fault: Fault, file: str) -> Fault:
    """A fault of the scenario, under the name of the file it was made of."""
    return Fault.of(fault.problem, file=file, key=fault.key, value=fault.value)


@dataclass(frozen=True)
class _Quantity:
    """Where an edge says how fast or how long it is."""

    attribute: str
    default: str | None
    unit: str | None
    word: str

    def of(self, data: dict[str, Any]) -> tuple[str | None, str | None]:
        """The value of an edge, and what is wrong with it."""
        value = data.get(self.attribute)
        if value is None or value == "":
            missing = (
                f"has no {self.attribute!r}; give every edge a {self.word}, or one for all without (--{self.word})"
            )
            return self.default, None if self.default is not None else missing
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return None, f"has {self.attribute} = {described(value)}, which is no {self.word}"
        text = str(value).strip()
        written = shortened(text)
        if _is_number(text):
            if self.unit is None:
                example = "34.368Mbps" if self.word == "rate" else "5ms"
                return None, (
                    f"has {self.attribute} = {written} without a unit; write such as {example!r}, or say the unit of all "
                    f"(--{self.word}-unit)"
                )
            digits, _, exponent = text.lower().partition("e")
            if not set(digits) & set("123456789"):
                # Whatever the exponent.
                text = "0"
            elif len(digits) > MOST_DIGITS or len(exponent) > MOST_DIGITS or abs(int(exponent or 0)) > MOST_EXPONENT:
                return None, (
                    f"has {self.attribute} = {written}, which is no {self.word}: it has more than {MOST_DIGITS} digits, or an "
                    f"exponent beyond {MOST_EXPONENT}"
                )
            # As a scenario writes numbers: no exponent.
            text = f"{Decimal(text):f}{self.unit}"
        elif text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
            return None, f"has {self.attribute} = {written}, which is no {self.word}"
        if text.startswith("-"):
            return None, f"has {self.attribute} = {written}, which is negative"
        return text, None


def _is_number(text: str) -> bool:
    """Whether a text is a decimal number: Python takes `1_0` and digits of all scripts too, a scenario does not."""
    return re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text) is not None


class _Faults:
    """The first faults of a file, and how many there are."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._faults: list[Fault] = []
        self._count = 0

    def add(self, problem: str) -> None:
        self._count += 1
        if self._count <= MAX_FAULTS:
            self._faults.append(Fault.of_file(self._file, problem))

    def stop(self) -> None:
        """Raises with the faults there are so far."""
        if self._count > MAX_FAULTS:
            problem = f"has {self._count - MAX_FAULTS} more faults, which are not shown"
            raise InputError([*self._faults, Fault.of_file(self._file, problem)])
        if self._faults:
            raise InputError(self._faults)


@dataclass(frozen=True, kw_only=True)
class _Reader:
    """What a graph says, and what is wrong with it."""

    file: str
    faults: _Faults
    rate: _Quantity
    delay: _Quantity
    name_attribute: str | None
    kind_attribute: str
    both_ways: bool

    def refuse(self, problem: str) -> None:
        self.faults.add(problem)

    def names(self, graph: Any) -> dict[Any, str]:
        """The name of each node; raises `InputError` when one is too long for the faults that would name it."""
        names: dict[Any, str] = {}
        too_long = False
        taken: dict[str, Any] = {}
        for node, data in graph.nodes(data=True):
            name = str(node)
            if self.name_attribute is not None:
                if data.get(self.name_attribute) in (None, ""):
                    self.refuse(f"node {described(name)} has no {self.name_attribute!r}, which is to be its name")
                else:
                    name = str(data[self.name_attribute])
            if len(name) > MOST_NAME:
                too_long = True
                self.refuse(
                    f"node {described(name)} has a name of {len(name):,} characters; a name has at most {MOST_NAME:,}"
                )
            if name in taken:
                first = described(taken[name])
                self.refuse(
                    f"nodes {first} and {described(node)} have one name, {described(name)}; names are different"
                )
            names[node] = name
            taken.setdefault(name, node)
        if too_long:
            self.faults.stop()
        return names

    def kinds(self, graph: Any, names: dict[Any, str]) -> dict[str, str]:
        """What each node is, by its name."""
        kinds = {}
        for node, data in graph.nodes(data=True):
            kind = str(data.get(self.kind_attribute) or "switch").strip().lower()
            if kind not in KINDS:
                what = f"{self.kind_attribute} = {described(data[self.kind_attribute])}"
                self.refuse(f"node {described(names[node])} has {what}, which is none of {', '.join(KINDS)}")
            kinds[names[node]] = kind
        return kinds

    def links(self, graph: Any, names: dict[Any, str]) -> list[dict[str, Any]]:
        """The links, two edges of a directed graph being one."""
        ways: dict[tuple[str, str], tuple[str, str]] = {}
        counted: dict[tuple[str, str], int] = {}
        for start, end, data in graph.edges(data=True):
            a, b = names[start], names[end]
            if start == end:
                self.refuse(f"edge {_edge(a, b)} is a loop: it joins a node to itself")
            if a == b:
                continue
            if not graph.is_directed() and (b, a) in counted:
                a, b = b, a
            counted[a, b] = counted.get((a, b), 0) + 1
            values = []
            for quantity in (self.rate, self.delay):
                value, problem = quantity.of(data)
                if problem is not None:
                    self.refuse(f"edge {_edge(a, b)} {problem}")
                values.append(value or "")
            ways[a, b] = values[0], values[1]
        for (a, b), times in counted.items():
            if times > 1:
                self.refuse(f"edge {_edge(a, b)} is there {times} times; two nodes have one link")
        links = []
        done = set()
        lonely: list[tuple[str, str]] = []
        for (a, b), (rate, delay) in ways.items():
            if (b, a) in done:
                continue
            done.add((a, b))
            link: dict[str, Any] = {"between": (a, b), "rate": rate, "delay": delay}
            if graph.is_directed():
                back = ways.get((b, a), (rate, delay) if self.both_ways else None)
                if back is None:
                    lonely.append((a, b))
                    continue
                link |= {"rate_back": back[0]} if back[0] != rate else {}
                link |= {"delay_back": back[1]} if back[1] != delay else {}
            links.append(link)
        if lonely:
            edges = [_edge(a, b, "->") for a, b in lonely[:MOST_NAMED]]
            self.refuse(
                f"is directed, and no edge leads back from {_some(edges, len(lonely))}; acknowledgements go back the way data came: add "
                "the edges, or take each as a link both ways (--both-ways)"
            )
        return links

    def is_one_piece(self, graph: Any, names: dict[Any, str]) -> None:
        """Refuses a graph without nodes, or of parts that no edge joins."""
        import networkx as nx

        if not graph.nodes:
            self.refuse("has no nodes")
            return
        parts = sorted(nx.connected_components(graph.to_undirected(as_view=True)), key=len, reverse=True)
        if len(parts) > 1:
            alone = [described(min(names[node] for node in part)) for part in parts[1 : MOST_NAMED + 1]]
            self.refuse(
                f"has {len(parts)} parts that no edge joins: {_some(alone, len(parts) - 1)} cannot be reached from the largest"
            )

    def flows(self, graph: Any, names: dict[Any, str], attribute: str) -> list[tuple[str, str]]:
        """The flows that nodes say they send; raises `InputError` when they are too many."""
        known = set(names.values())
        wanted: list[tuple[str, str]] = []
        for node, data in graph.nodes(data=True):
            targets = data.get(attribute)
            if targets is None:
                continue
            count = len(targets) if isinstance(targets, list) else str(targets).count(",") + 1
            if len(wanted) + count > MOST_FLOWS:
                self.refuse(
                    f"has more than {MOST_FLOWS:,} flows: at node {described(names[node])} it has {count:,} more"
                )
                self.faults.stop()
            sender = names[node]
            for target in targets if isinstance(targets, list) else str(targets).split(","):
                name = str(target).strip() if isinstance(target, str | int) else ""
                if name not in known:
                    said = described(target.strip() if isinstance(target, str) else target)
                    self.refuse(f"node {described(sender)} has {attribute} = {said}, which is not a node")
                elif name == sender:
                    self.refuse(f"node {described(sender)} has {attribute} = {described(name)}: it sends to itself")
                else:
                    wanted.append((sender, name))
        return wanted


def _edge(start: str, end: str, way: str = "-") -> str:
    """An edge as faults name it."""
    return f"{described(start)} {way} {described(end)}"


def _some(first: list[str], count: int) -> str:
    """The first few of many names."""
    more = f" and {count - MOST_NAMED} more" if count > MOST_NAMED else ""
    return ", ".join(first) + more


def _draw(names: dict[Any, str], kinds: dict[str, str], flows: int, seed: int, file: str) -> list[tuple[str, str]]:
    """Random pairs of hosts, or of switches where there are no two hosts; the same for the same seed and file."""
    hosts = [name for name in names.values() if kinds[name] == "host"]
    ends = hosts if len(hosts) > 1 else [name for name in names.values() if kinds[name] == "switch"]
    if len(ends) < 2:
        raise InputError([Fault.of_file(file, "has no two nodes that a flow could join")])
    draws = random.Random(seed)
    return [(a, b) for a, b in (draws.sample(ends, 2) for _ in range(flows))]


def _read(path: Path, file: str) -> Any:
    """The graph in a file."""
    try:
        import networkx as nx
    except ImportError as error:
        raise MissingExtraError("importing graphs needs networkx: pip install celltrain[graph]") from error
    if path.suffix.lower() not in FORMATS:
        raise InputError(
            [Fault.of_file(file, f"is not a graph this can read; its name ends in {' or '.join(FORMATS)}")]
        )
    text = read_text(path, what="graph")
    try:
        if path.suffix.lower() == ".graphml":
            # networkx takes apart an edge's id and its data; without a type of its own a node's id is a text.
            _check_graphml(text, file)
            return nx.parse_graphml(text)
        return _of_json(json_of(text), file)
    except InputError:
        raise
    except UnreadableError as error:
        raise InputError([Fault.of_file(file, error.problem)]) from None
    except RecursionError:
        raise InputError([Fault.of_file(file, "nests too deep to be a graph")]) from None
    # Whatever networkx stumbles over is in the file: it has exceptions of a dozen kinds for that.
    except Exception as error:
        what = "GraphML" if path.suffix.lower() == ".graphml" else "JSON"
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError([Fault.of_file(file, f"is not {what} that describes a graph ({reason[:200]})")]) from None


def _check_graphml(text: str, file: str) -> None:
    """Refuses node ids that are there twice and edges to nodes that are not: networkx takes both as they come."""
    _refuse_declarations(text, file)
    root = ElementTree.fromstring(text)
    ids = Counter(node.get("id") for node in root.iterfind(".//{*}node"))
    faults = _Faults(file)
    for name, times in ids.items():
        if times > 1:
            faults.add(f"has {times} nodes with the id {described(name)}; names are different")
    for edge in root.iterfind(".//{*}edge"):
        for key in ("source", "target"):
            if edge.get(key) not in ids:
                ends = f"{described(edge.get('source'))} - {described(edge.get('target'))}"
                faults.add(f"edge {ends} joins {described(edge.get(key))}, which is not the id of a node")
    faults.stop()


def _refuse_declarations(text: str, file: str) -> None:
    """Refuses a document type: it can declare entities, which grow a billionfold or bring other files in. No graph needs one."""

    def refuse(*_: object) -> None:
        raise InputError(
            [Fault.of_file(file, "has a document type (<!DOCTYPE ...>), which a graph has no use for: take it out")]
        )

    # The same parser as that of ElementTree and of networkx, so that nothing is a declaration to one and not to the other.
    parser = expat.ParserCreate("utf-8")
    parser.StartDoctypeDeclHandler = refuse
    parser.Parse(text.encode(), True)


def _names_like(name: str) -> Iterator[str]:
    """The name, and others like it."""
    while True:
        yield name
        name += "-host"


def _of_json(data: Any, file: str) -> Any:
    """A graph in node-link form: `nodes` with `id`, and `links` or `edges` with `source` and `target`."""
    import networkx as nx

    if not isinstance(data, dict) or not isinstance(data.get("nodes"), list):
        raise InputError([Fault.of_file(file, "is not a node-link graph: a table with the lists nodes and links")])
    key = "links" if "links" in data else "edges"
    if not isinstance(data.get(key), list):
        raise InputError([Fault.of_file(file, "is not a node-link graph: it has no list of links, or edges")])
    faults = _Faults(file)
    seen = set()
    for i, node in enumerate(data["nodes"]):
        if not isinstance(node, dict) or not isinstance(node.get("id"), str | int):
            faults.add(f"nodes[{i}] is not a table with an id")
        elif node["id"] in seen:
            faults.add(f"nodes[{i}] has the id {described(node['id'])} of another node; names are different")
        else:
            seen.add(node["id"])
    for i, edge in enumerate(data[key]):
        ends = [edge.get("source"), edge.get("target")] if isinstance(edge, dict) else [None]
        for end in ends:
            if not isinstance(end, str | int) or end not in seen:
                faults.add(f"{key}[{i}] joins {described(end)}, which is not the id of a node")
    faults.stop()
    # As a multigraph, so that an edge that is there twice is seen, whatever keys it has.
    edges = [{name: value for name, value in edge.items() if name != "key"} for edge in data[key]]
    return nx.node_link_graph({**data, "multigraph": True, "edges": edges}, edges="edges")
