"""Networks: their drawings, imports from graphs, and fair shares."""

from __future__ import annotations

import json
import random
import sys
import time
import tracemalloc
from itertools import pairwise

import pytest
from conftest import ROOT

import celltrain as ct
from celltrain import _core
from celltrain.inspect.network_figure import laid_out, save
from celltrain.model.network import network
from celltrain.model.scenario import Reading

SCENARIOS = ROOT / "scenarios"
CHAIN = SCENARIOS / "chain-epd.toml"


@pytest.fixture
def line(tmp_path):
    """Writes a graph of three nodes in a row as JSON; callers can change parts of it."""

    def write(**changes):
        graph = {
            "nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}],
            "links": [{"source": "a", "target": "b", "delay": "1ms"}, {"source": "b", "target": "c", "delay": "2ms"}],
        }
        path = tmp_path / "line.json"
        path.write_text(json.dumps(graph | changes))
        return path

    return write


def refusal(path, **options) -> str:
    with pytest.raises(ct.InputError) as refused:
        ct.import_graph(path, **{"flows": 2, **options})
    text = str(refused.value)
    assert all(line.startswith(str(path)) for line in text.splitlines()), text
    return text


def test_the_check_and_run_commands_give_the_same_max_min_shares(celltrain):
    checked = celltrain("check", CHAIN, SCENARIOS / "star-incast.toml", "--json").json
    chain, star = checked["networks"]
    assert (checked["faults"], chain["file"], chain["bottleneck"], chain["links"]) == ([], str(CHAIN), "sw1->sw2", 38)
    assert chain["flows"][0]["links"] == [
        *("long-source1->sw1", "sw1->sw2", "sw2->sw3", "sw3->sw4", "sw4->sw5", "sw5->long-destination1"),
    ]
    shares = ct.max_min_shares(SCENARIOS / "star-incast.toml")
    assert {flow["name"]: flow["max_min_mbps"] for flow in star["flows"]} == shares
    assert shares["tcp1"] == pytest.approx(10 * 512 / 636)
    result = ct.run(ct.load(SCENARIOS / "star-incast.toml").replace(duration="100ms"))
    flows = result.flows.to_pylist()
    assert {flow["name"]: flow["max_min_mbps"] for flow in flows} == shares
    parts = [flow["goodput_mbps"] / flow["max_min_mbps"] for flow in flows]
    assert result.fairness_max_min == pytest.approx(sum(parts) ** 2 / len(parts) / sum(part**2 for part in parts))
    assert result.flows.field("max_min_mbps").metadata[b"unit"] == b"Mb/s"


def test_the_run_command_prints_max_min_shares_if_flows_have_different_shares(celltrain, tmp_path):
    short = tmp_path / "star.toml"
    short.write_text((SCENARIOS / "star-incast.toml").read_text().replace('"5s"', '"50ms"'))
    assert "max-min Mb/s" in celltrain("run", short).out
    short.write_text(CHAIN.read_text().replace('"5s"', '"50ms"'))
    assert "max-min Mb/s" not in celltrain("run", short).out


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_switches_and_hosts_do_not_overlap_in_the_drawing_of_any_shipped_network(path):
    np = pytest.importorskip("numpy")
    layout = laid_out(network(path))
    places = np.delete(layout.places, [host for hosts in layout.groups for host in hosts[1:]], axis=0)
    assert np.isfinite(places).all()
    apart = np.linalg.norm(places[:, None] - places[None], axis=2) + np.eye(len(places))
    assert apart.min() > 0.1


def test_the_drawing_of_a_chain_has_the_switches_in_a_row_and_hosts_at_both_ends():
    net = network(CHAIN)
    at = {node.name: place for node, place in zip(net.nodes, laid_out(net).places, strict=True)}
    switches = [at[f"sw{i}"] for i in range(1, 6)]
    assert max(abs(y) for _, y in switches) < 0.05
    assert [x for x, _ in switches] == sorted(x for x, _ in switches)
    assert at["long-source1"][0] < at["sw1"][0] and at["long-destination1"][0] > at["sw5"][0]
    assert at["cross-source5"][1] * at["cross-destination1"][1] < 0
    assert (at["cross-source5"] == at["cross-source8"]).all(), "hosts with a common name stem are drawn as one symbol"


def test_the_drawing_of_a_chain_fits_on_a_page_and_its_names_do_not_overlap(tmp_path):
    """Regression: the drawing was 16 inches wide, with a name at each of 34 hosts, and unreadable on a phone."""
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    layout = laid_out(network(CHAIN))
    assert layout.inches[0] <= 7.2
    figure = Figure(figsize=layout.inches, layout="constrained")
    axes = ct.draw(CHAIN, ax=figure.add_subplot())
    figure.draw_without_rendering()
    names = [text for text in axes.texts if text.get_text()]
    assert {"cross-source\n5 to 8", "cross-\ndestination\n9 to 12", "long-source1", "sw3"} <= {
        text.get_text() for text in names
    }
    assert min(text.get_fontsize() for text in names) >= 8
    boxes = [text.get_window_extent() for text in [*names, axes.title]]
    for i, one in enumerate(boxes):
        assert figure.bbox.x0 <= one.x0 and one.x1 <= figure.bbox.x1, names[i]
        assert not any(one.overlaps(other) for other in boxes[:i]), names[i]


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_drawing_a_network_twice_gives_identical_files(celltrain, tmp_path, ending):
    pytest.importorskip("matplotlib")
    picture = tmp_path / f"chain.{ending}"
    answer = celltrain("check", CHAIN, "--plot", picture)
    assert (answer.code, answer.err) == (0, "")
    assert f"wrote {picture}" in answer.out
    first = picture.read_bytes()
    assert len(first) > 1000
    celltrain("check", CHAIN, "--plot", picture)
    if ending != "pdf":  # A PDF contains its creation time.
        assert picture.read_bytes() == first


def test_the_drawing_of_a_network_has_alternative_text_that_describes_the_network(tmp_path):
    pytest.importorskip("matplotlib")
    axes = ct.draw(SCENARIOS / "star-incast.toml")
    texts = [text.get_text() for text in axes.texts]
    assert {"host1", "sw", "10Mbps, 5us", "155.52Mbps, 1ms"} <= set(texts)
    assert any("bottleneck: sw->host1" in text and "8 hosts, 1 switch, 7 flows" in text for text in texts)


@pytest.mark.slow
def test_the_drawing_of_a_network_shows_many_hosts_of_a_switch_as_one_symbol(tmp_path):
    pytest.importorskip("matplotlib")
    large = ct.n_source(sources=400, link_delay="5us", buffer_cells=1000, policy=ct.TailDrop())
    axes = ct.draw(large)
    assert "source\n1 to 400" in [text.get_text() for text in axes.texts]
    save(network(large), tmp_path / "large.png")


@pytest.mark.parametrize(
    "plot, word",
    [
        ("picture.gif", "use .svg, .pdf or .png"),
        ("picture", "use .svg, .pdf or .png"),
        ("no/where.png", "cannot be written"),
    ],
)
def test_impossible_options_for_drawing_a_network_are_refused(celltrain, tmp_path, plot, word):
    answer = celltrain("check", CHAIN, "--plot", tmp_path / plot)
    assert answer.code == 2
    assert word in answer.err


def test_drawing_several_scenarios_into_one_file_is_refused(celltrain, tmp_path):
    answer = celltrain("check", CHAIN, SCENARIOS / "star-incast.toml", "--plot", tmp_path / "two.png")
    assert (answer.code, "draws one scenario, not 2: name only one" in answer.err) == (2, True)


def test_drawing_the_network_of_an_invalid_scenario_is_refused(celltrain, tmp_path):
    faulty = tmp_path / "faulty.toml"
    faulty.write_text(CHAIN.read_text().replace("hops = 4", "hops = 0"))
    answer = celltrain("check", faulty, "--plot", tmp_path / "x.png")
    assert answer.code == 2
    assert not (tmp_path / "x.png").exists()


def test_the_nodes_of_an_imported_graph_are_switches_with_hosts_for_flows(line):
    scenario = ct.import_graph(line(), flows=3, seed=5)
    topology = scenario.topology
    assert topology.switches == ("a", "b", "c")
    assert len(topology.hosts) == 6 and len(topology.links) == 2 + 6
    assert [(link.between, link.delay) for link in topology.links[:2]] == [(("a", "b"), "1ms"), (("b", "c"), "2ms")]
    assert scenario == ct.import_graph(line(), flows=3, seed=5)
    assert scenario.topology != ct.import_graph(line(), flows=3, seed=6).topology
    assert ct.run(scenario.replace(duration="5ms")).cells["delivered"] > 0


def test_an_imported_graph_can_define_the_hosts_and_flows_of_the_scenario(line):
    nodes = [{"id": "a", "kind": "host", "flow_to": "c"}, {"id": "b"}, {"id": "c", "kind": "host", "flow_to": ["a"]}]
    topology = ct.import_graph(line(nodes=nodes)).topology
    assert (topology.hosts, topology.switches, len(topology.links)) == (("a", "c"), ("b",), 2)
    assert [(flow.from_, flow.to) for flow in topology.flows] == [("a", "c"), ("c", "a")]


def test_two_opposite_edges_of_a_directed_graph_become_the_two_directions_of_a_link(line):
    edges = [
        {"source": "a", "target": "b", "delay": "1ms", "rate": "8Mbps"},
        {"source": "b", "target": "a", "delay": "3ms", "rate": "1Mbps"},
        {"source": "b", "target": "c", "delay": "1ms"},
        {"source": "c", "target": "b", "delay": "1ms"},
    ]
    [first, second, *_] = ct.import_graph(line(directed=True, links=edges), flows=1).topology.links
    assert (first.rate, first.rate_back, first.delay, first.delay_back) == ("8Mbps", "1Mbps", "1ms", "3ms")
    assert (second.rate_back, second.delay_back) == (None, None)
    lonely = refusal(line(directed=True, links=edges[1:]))
    assert "no edge leads back from 'b' -> 'a'" in lonely and "--both-ways" in lonely
    assert len(ct.import_graph(line(directed=True, links=edges[1:]), flows=1, both_ways=True).topology.links) == 4


def test_graphml_and_json_files_of_a_graph_give_the_same_scenario(tmp_path):
    nx = pytest.importorskip("networkx")
    graph = nx.connected_watts_strogatz_graph(30, 4, 0.2, seed=1)
    graph = nx.relabel_nodes(graph, {node: f"n{node}" for node in graph})
    for i, (a, b) in enumerate(graph.edges):
        graph.edges[a, b].update(speed=155_520_000 * (1 + i % 4), distance=0.5 + i)
    nx.write_graphml(graph, tmp_path / "net.graphml")
    (tmp_path / "net.json").write_text(json.dumps(nx.node_link_data(graph, edges="edges")))
    options = {"rate_attribute": "speed", "rate_unit": "bps", "delay_attribute": "distance", "delay_unit": "us"}
    first, second = (ct.import_graph(tmp_path / f"net.{end}", flows=20, **options) for end in ("graphml", "json"))
    assert first == second
    assert first.topology.links[0].delay == "500ns"
    ct.save(first, tmp_path / "net.toml")
    assert ct.load(tmp_path / "net.toml") == first


def test_the_import_command_writes_a_scenario_that_runs(celltrain, line, tmp_path):
    out = tmp_path / "line.toml"
    answer = celltrain("import", line(), "--flows", 2, "-o", out)
    assert (answer.code, answer.err) == (0, "")
    assert "3 switches, 4 hosts, 6 links, 2 flows" in answer.out
    assert celltrain("check", out).code == 0
    assert celltrain("import", line(), "--flows", 2).out == out.read_text()
    as_json = celltrain("import", line(), "--flows", 2, "--json").json
    assert as_json["written"] is None
    assert as_json["scenario"]["topology"]["network"]["switches"] == ["a", "b", "c"]
    assert "cannot be written" in celltrain("import", line(), "--flows", 2, "-o", tmp_path).err


def edges(*ends: str, **values: object) -> list[dict[str, object]]:
    return [{"source": pair[0], "target": pair[1], "delay": "1ms", **values} for pair in ends]


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"links": edges("ab", "bc", "cc")}, "edge 'c' - 'c' is a loop"),
        ({"links": edges("ab", "bc", "cb")}, "edge 'b' - 'c' joins two nodes that are already joined"),
        ({"links": edges("ab")}, "has 2 parts that no edge joins: 'c' cannot be reached"),
        ({"links": edges("ab", "bc", delay=None)}, "or use --delay for all edges without one"),
        ({"links": edges("ab", "bc", delay=5)}, "give one unit for all edges with --delay-unit"),
        ({"links": edges("ab", "bc", delay="5")}, "give one unit for all edges with --delay-unit"),
        ({"links": edges("ab", "bc", delay=-5)}, "it is negative"),
        ({"links": edges("ab", "bc", delay="-5ms")}, "edge 'a' - 'b', delay = \"-5ms\" is not a time (it is negative)"),
        ({"links": edges("ab", "bc", delay="5 miles")}, "is not a time"),
        ({"links": edges("ab", "bc", delay=[1])}, "is not a time"),
        ({"links": edges("ab", "bc", delay="2000s")}, "must be a delay of at most 1800s"),
        ({"links": edges("ab", "bc", rate="0bps")}, "is not a positive rate"),
        ({"links": edges("ab", "bx")}, "edge 'b' - 'x' joins 'x', which is not the id of a node"),
        ({"links": [*edges("ab", "bc"), "ab"]}, "is not a node-link graph"),
        ({"links": 7}, "is not a node-link graph"),
        ({"links": []}, "has 3 parts"),
        ({"nodes": []}, "is not the id of a node"),
        ({"nodes": [], "links": []}, "has no nodes"),
        ({"nodes": [{"id": "a"}], "links": []}, "has no two nodes that a flow could join"),
        ({"nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "a"}]}, "has 2 nodes with the id 'a'"),
        ({"nodes": [{"id": "a"}, {"name": "b"}, {"id": "c"}]}, "has a node without an id"),
        ({"nodes": [{"id": "a"}, {"id": 1}, {"id": "1"}], "links": edges("a1")}, "parts that no edge joins"),
        (
            {"nodes": [{"id": "a"}, {"id": "b", "kind": "router"}, {"id": "c"}]},
            "kind = 'router', which is none of host",
        ),
        (
            {"nodes": [{"id": "a"}, {"id": "b", "flow_to": "z"}, {"id": "c"}]},
            "flow 'b' -> 'z', to = \"z\" is not a host",
        ),
        (
            {"nodes": [{"id": "a", "kind": "host", "flow_to": "a"}, {"id": "b"}, {"id": "c"}]},
            "is the flow's own source",
        ),
    ],
)
def test_a_graph_that_cannot_be_a_network_is_refused(line, changes, words):
    assert words in refusal(line(**changes))


@pytest.mark.parametrize(
    "nodes, edge, words",
    [
        ("abca", "ab", "has 2 nodes with the id 'a'"),
        ("abc", "aq", "edge 'a' - 'q' joins 'q', which is not the id of a node"),
    ],
)
def test_a_graphml_file_with_duplicate_or_missing_node_names_is_refused(tmp_path, nodes, edge, words):
    path = tmp_path / "x.graphml"
    inside = "".join(f'<node id="{node}"/>' for node in nodes) + '<edge source="{}" target="{}"/>'.format(*edge)
    path.write_text(
        f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">{inside}</graph></graphml>'
    )
    assert words in refusal(path, delay="1ms")


def test_hosts_that_a_graph_import_adds_for_flows_have_names_not_used_in_the_graph(line):
    nodes = [{"id": "source1"}, {"id": "b"}]
    links = [{"source": "source1", "target": "b", "delay": "1s", "key": [1]}]
    topology = ct.import_graph(line(nodes=nodes, links=links), flows=1).topology
    assert topology.hosts == ("source1-host", "destination1")


@pytest.mark.nightly
def test_the_error_for_too_many_links_states_their_number_without_listing_them(line):
    names = [f"n{i}" for i in range(100_002)]
    links = [{"source": a, "target": b} for a, b in pairwise(names)]
    text = refusal(line(nodes=[{"id": name} for name in names], links=links), delay="1ms")
    assert "has 100005 items; at most 100000 are possible" in text
    many = tuple(ct.Link(between=("a", "b"), delay="1ms") for _ in range(100_001))
    with pytest.raises(ct.ScenarioError, match="at most 100000 items") as refused:
        ct.GeneralNetwork(hosts=(), switches=(), links=many, flows=())
    assert len(str(refused.value)) < 400


def test_numbers_without_a_unit_in_a_graph_have_the_unit_given_by_an_option(line):
    links = ct.import_graph(line(links=edges("ab", "bc", delay=2.5e-3)), flows=1, delay_unit="ms").topology.links
    assert links[0].delay == "2.5us"
    assert "it is negative" in refusal(line(links=edges("ab", "bc", delay=-5)), delay_unit="ms")
    assert "parsecs" in refusal(line(links=edges("ab", "bc", delay=5)), delay_unit="parsecs")
    assert 'delay = "nan" is not a time' in refusal(line(links=edges("ab", "bc", delay="nan")), delay_unit="ms")


def test_all_errors_in_a_graph_are_reported_together(line):
    faulty = line(links=edges("ab", "bc", "aa", delay="-1s"))
    text = refusal(faulty)
    assert len(text.splitlines()) == 3
    for ends in ("'a' - 'b'", "'b' - 'c'", "'a' - 'a'"):
        assert f'edge {ends}, delay = "-1s" is not a time' in text


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("x.graphml", "<graphml", "is not GraphML"),
        ("x.graphml", "", "is not GraphML"),
        ("x.graphml", "<html><body/></html>", "is not GraphML"),
        ("x.graphml", '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"/>', "is not GraphML"),
        ("x.json", "", "is not JSON"),
        ("x.json", "{", "is not JSON"),
        ("x.json", "[1, 2]", "is not a node-link graph"),
        ("x.json", "[" * 100_000, "is nested too deep"),
        ("x.json", '{"nodes": 1}', "is not a node-link graph"),
        ("x.txt", "a b", "its name must end in .graphml or .json"),
        ("x.json", b"\xff\xfe", "is not text in UTF-8"),
    ],
)
def test_a_file_that_is_not_a_graph_is_refused(celltrain, tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    answer = celltrain("import", path, "--flows", 1)
    assert (answer.code, answer.out) == (2, "")
    assert words in answer.err and "Traceback" not in answer.err
    assert answer.err.startswith(str(path))


LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))


@pytest.mark.parametrize(
    "declared, used",
    [
        (f'<!DOCTYPE graphml [<!ENTITY l0 "ha">{LAUGHS}]>', "&l11;"),
        ('<!DOCTYPE graphml [<!ENTITY secret SYSTEM "secret.txt">]>', "&secret;"),
        ('<!DOCTYPE graphml [<!ENTITY % outside SYSTEM "outside.dtd"> %outside;]>', ""),
        ('<!DOCTYPE graphml SYSTEM "graphml.dtd">', ""),
    ],
    ids=["a billion laughs", "a file as a name", "declarations from elsewhere", "a document type"],
)
def test_a_graphml_file_that_declares_xml_entities_is_refused_before_their_expansion(
    celltrain, tmp_path, declared, used
):
    # Entities may expand to gigabytes or include files. Regression: a small included file was read.
    (tmp_path / "secret.txt").write_text("the secret")
    path = tmp_path / "x.graphml"
    inside = f'<node id="a{used}"/><node id="b"/><edge source="a{used}" target="b"/>'
    graph = f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">{inside}</graph></graphml>'
    path.write_text(f'<?xml version="1.0" encoding="UTF-8"?>{declared}{graph}')
    answer = celltrain("import", path, "--flows", 1, "--delay", "1ms")
    assert (answer.code, answer.out) == (2, "")
    assert "has a document type" in answer.err and "secret" not in answer.err.replace(str(path), "")


def test_a_graph_file_that_is_missing_or_too_large_is_refused(celltrain, tmp_path):
    assert "no such file" in celltrain("import", tmp_path / "nowhere.json", "--flows", 1).err
    assert "is a folder, not a graph file" in refusal(_folder(tmp_path / "folder.json"))
    large = tmp_path / "large.json"
    large.write_bytes(b" " * (20 << 20))
    assert "a graph is at most 16 MiB" in refusal(large)


def _folder(path):
    path.mkdir()
    return path


def test_a_graph_without_flows_is_refused_and_the_message_names_the_flows_option(celltrain, line):
    assert "request some with --flows N" in celltrain("import", line()).err


def test_the_error_names_the_extra_to_install_if_networkx_is_missing(line, monkeypatch, celltrain):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ct.MissingExtraError, match=r"pip install .*\[graph\]"):
        ct.import_graph(line(), flows=1)
    answer = celltrain("import", line(), "--flows", 1)
    assert (answer.code, "'.[graph]'" in answer.err) == (2, True)


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_a_scenario_imported_from_a_graph_can_be_saved_and_loaded_again(path, tmp_path):
    scenario = ct.load(path)
    ct.save(scenario, tmp_path / "again.toml", head="A copy.\n")
    assert (tmp_path / "again.toml").read_text().startswith("# A copy.\n")
    assert ct.load(tmp_path / "again.toml") == scenario


def test_a_scenario_imported_from_a_graph_can_be_saved_whatever_characters_its_names_contain(tmp_path):
    strange = 'a "b" \\ \x7f \t é \U0001f600'
    edges_of = (ct.Link(between=(strange, "sw"), delay="1ms"), ct.Link(between=("sw", "b"), delay="1ms"))
    scenario = ct.Scenario(
        duration="1ms",
        topology=ct.GeneralNetwork(
            hosts=(strange, "b"), switches=("sw",), links=edges_of, flows=(ct.Flow(from_=strange, to="b"),)
        ),
        port={"default": ct.Port(buffer_cells=100, policy=ct.TailDrop())},
    )
    ct.save(scenario, tmp_path / "strange.toml")
    assert ct.load(tmp_path / "strange.toml") == scenario


def line_of_hosts(links: int) -> str:
    """Returns a JSON scenario with this number of links, most of them to one switch."""
    network = {
        "hosts": [f"h{i}" for i in range(links)],
        "switches": ["sw"],
        "links": [{"between": [f"h{i}", "sw"], "delay": "1us"} for i in range(links)],
        "flows": [{"from": "h0", "to": "h1"}],
    }
    port = {"default": {"buffer": 100, "policy": {"tail_drop": {}}}}
    return json.dumps({"duration": "1ms", "topology": {"network": network}, "port": port}, separators=(",", ":"))


@pytest.mark.nightly
def test_a_graph_with_more_than_a_hundred_thousand_links_is_refused(celltrain, tmp_path):
    answer = Reading.of_core(_core.parse_json(line_of_hosts(100_001), "large"))
    [fault] = answer.faults
    assert fault.message == "large: topology.network.links has 100001 items; at most 100000 are possible"
    assert Reading.of_core(_core.parse_json(line_of_hosts(100_000), "large")).faults == []
    path = tmp_path / "large.toml"
    link = '{ between = ["h%d", "sw"], delay = "1us" },\n'
    path.write_text(
        "duration = '1s'\n[topology.network]\nlinks = [\n" + "".join(link % i for i in range(1_000_000)) + "]\n"
    )
    answer = celltrain("check", path)
    assert (answer.code, "MB; a scenario is at most 16 MiB" in answer.err) == (2, True)


@pytest.mark.nightly
def test_a_network_of_ten_thousand_nodes_can_be_checked_drawn_and_run(celltrain, tmp_path):
    draws = random.Random(1)
    switches, hosts = 1000, 9000
    pairs = [(f"sw{i}", f"sw{draws.randrange(i)}") for i in range(1, switches)]
    pairs += [(f"h{i}", f"sw{draws.randrange(switches)}") for i in range(hosts)]
    links = "".join(f'{{ between = ["{a}", "{b}"], delay = "1ms" }},\n' for a, b in pairs)
    ends = [draws.sample(range(hosts), 2) for _ in range(4000)]
    flows = "".join(f'{{ from = "h{a}", to = "h{b}" }},\n' for a, b in ends)
    path = tmp_path / "large.toml"
    path.write_text(
        f"""duration = "1ms"
[topology.network]
hosts = {json.dumps([f"h{i}" for i in range(hosts)])}
switches = {json.dumps([f"sw{i}" for i in range(switches)])}
links = [{links}]
flows = [{flows}]
[port.default]
buffer = 1000
policy.epd = {{ threshold = 800 }}
"""
    )
    answer = celltrain("check", path, "--plot", tmp_path / "large.png", "--json").json
    [told] = answer["networks"]
    assert (answer["faults"], told["nodes"], told["links"], len(told["flows"])) == ([], 10_000, 9_999, 4000)
    assert all(flow["max_min_mbps"] > 0 for flow in told["flows"])
    assert celltrain("run", path, "--json").json["cells"]["offered"] > 0


@pytest.mark.parametrize(
    "number, words",
    [
        # Regression: written out, the numbers had a gigabyte or more of zeros.
        ("1e-99999999999", "is not a time"),
        ("1e-999999999", "is not a time"),
        ("1e" + "9" * 5000, "is not a time"),
        ("9" * 5000, "is not a time"),
        (1e-300, "is not a time"),
        ("-1e-5", "it is negative"),
        # Only Python accepts numbers with underscores or with digits of other scripts.
        ("1_0", "is not a time"),
        ("\u0663", "is not a time"),
        ("-infinity", "is not a time"),
    ],
)
def test_numbers_from_an_imported_graph_are_written_as_short_decimals(line, number, words):
    text = refusal(line(links=edges("ab", "bc", delay=number)), delay_unit="ms")
    assert words in text
    assert len(text) < 1000


LONG = "n" * 1_000_000
STAR = [{"id": 0, "label": LONG}, *({"id": i, "label": f"x{i}"} for i in range(1, 3000))]
RAYS = [{"source": 0, "target": i, "delay": "1ms"} for i in range(1, 3000)]
MIDDLING = [{"id": f"{i}{'n' * 990}"} for i in range(9000)]


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    "graph, options, words",
    [
        ({"nodes": STAR, "links": RAYS}, {"name_attribute": "label"}, "has a name of 1,000,000 characters"),
        (
            {"nodes": STAR, "links": [{"source": 0, "target": i} for i in range(1, 3000)]},
            {"name_attribute": "label"},
            "has a name of 1,000,000 characters; a name can have at most 1,000",
        ),
        (
            {"nodes": [{"id": LONG, "flow_to": "," * 3000}, {"id": "b"}], "links": [{"source": LONG, "target": "b"}]},
            {},
            "a name can have at most 1,000",
        ),
        (
            {
                "nodes": [{"id": "a" * 900, "flow_to": "," * 20000}, {"id": "b"}],
                "links": [{"source": "a" * 900, "target": "b", "delay": "1ms"}],
            },
            {},
            "has links and flows with names of",
        ),
        pytest.param(
            {"nodes": [{"id": "a", "flow_to": "b," * 5_000_000}, {"id": "b"}], "links": edges("ab")},
            {},
            "items; at most 100000 are possible",
            marks=pytest.mark.nightly,
        ),
        (
            {"nodes": [{"id": "a", "flow_to": [[["x"] * 1000] * 1000]}, {"id": "b"}], "links": edges("ab")},
            {},
            "is not a host, a switch or an edge device",
        ),
        (
            {
                "nodes": [{"id": i, "label": node["id"]} for i, node in enumerate(MIDDLING)],
                "links": [{"source": i, "target": i + 1, "delay": "1ms"} for i in range(len(MIDDLING) - 1)],
            },
            {"name_attribute": "label"},
            "characters in all; use names of at most 16,777,216",
        ),
    ],
    ids=["links", "no delays", "targets", "empty targets", "many targets", "nested", "all names"],
)
def test_importing_a_graph_stores_a_long_node_name_only_once(line, graph, options, words):
    # Regression: a megabyte name was stored once per edge, which took gigabytes.
    path = line(**graph)
    tracemalloc.start()
    begun = time.process_time()
    try:
        text = refusal(path, flows=1, **options)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert words in text
    assert len(text) < 150_000
    assert most < 500e6
    assert time.process_time() - begun < 30
