"""Requests: their tables, files of sizes, and faults."""

from __future__ import annotations

import pytest
from conftest import ROOT

import celltrain as ct
from celltrain.ensemble.plan import Plan
from celltrain.ensemble.plan.axes import OF_FLOWS, OF_GROUPS

NETWORK = """duration = "2ms"
topology.leaf_spine = { leaves = 2, spines = 2, hosts_per_leaf = 2, host_rate = "10Gbps", host_delay = "1us" }
tcp.newreno = { mss = "1460B" }
port.default = { buffer = 1000, policy.ppd = {} }
"""
WEB = """[requests.web]
load = 0.3
sizes = "{}"
"""
CDF = """# Sizes of a file, with a heading.
bytes,probability

1000,0.5
20000, 1
"""


def written(folder, cdf=CDF, requests=WEB, name="mine.csv"):
    """Writes a scenario with a file of sizes next to it; returns its path."""
    (folder / "mine.csv").write_text(cdf)
    path = folder / "web.toml"
    path.write_text(NETWORK + requests.format(name))
    return path


def test_request_size_files_are_found_relative_to_the_scenario_file_and_become_part_of_the_scenario(tmp_path):
    path = written(tmp_path)
    assert ct.check(path) == []
    scenario = ct.load(path)
    assert scenario.requests["web"].sizes == ((1000, 0.5), (20000, 1))
    assert ct.load(path, settings={"requests.web.load": 0.2}).requests["web"].sizes == scenario.requests["web"].sizes
    plan = Plan.of(path, {"axes": {"requests.web.load": [0.1, 0.2]}, "measures": ["efficiency"]})
    assert [point.scenario["requests"]["web"]["sizes"] for point in plan.points] == [[[1000, 0.5], [20000, 1]]] * 2
    ct.save(scenario, tmp_path / "saved.toml")
    assert ct.load(tmp_path / "saved.toml") == scenario


def test_a_sweep_plan_can_compare_request_size_distributions_and_fixed_sizes(tmp_path):
    axes = {"requests.web.sizes": ["web_search", "20kB"], "requests.web.load": [0.1, 0.2]}
    plan = Plan.of(written(tmp_path), {"axes": axes, "measures": ["requests.web.all.slowdown_mean"]})
    sizes = [point.scenario["requests"]["web"]["sizes"] for point in plan.points]
    assert sizes == ["web_search", "web_search", "20kB", "20kB"]


@pytest.mark.parametrize(
    "cdf, line, words",
    [
        ("10,0.5\n20,0.4\n30,1\n", 2, "has a lower probability than the row before; write 0.5 or more, up to 1"),
        ("0,0\n20,1\n", 1, "has a size outside the range from 1 to"),
        (
            "bytes,probability\n10,0.5\n20,0.97\n",
            3,
            "is the last row and has the probability 0.97; the last probability must be 1",
        ),
        ("10,0.5\n20\n", 2, "is not a size in bytes, a comma and the probability"),
        ("10,0.5\n20,one\n", 2, "is not a size in bytes, a comma and the probability"),
        ("10,0.5\n20,nan\n", 2, "is not a size in bytes, a comma and the probability"),
        ("10,nan\n20,1\n", 1, "is not a size in bytes, a comma and the probability"),
        ("10;0.5\n20;1\n", 1, "is not a size in bytes, a comma and the probability"),
        ("10kB,0.5\n20000,1\n", 1, "is not a size in bytes, a comma and the probability"),
    ],
)
def test_an_invalid_request_size_file_is_refused_with_the_line_of_the_error(celltrain, tmp_path, cdf, line, words):
    path = written(tmp_path, cdf)
    [fault] = ct.check(path)
    assert (fault.file, fault.line) == (str(tmp_path / "mine.csv"), line)
    assert words in fault.problem
    with pytest.raises(ct.ScenarioError):
        ct.load(path, settings={"requests.web.load": 0.2})
    with pytest.raises(ct.PlanError):
        Plan.of(path, {"axes": {"requests.web.load": [0.1, 0.2]}})
    answer = celltrain("check", path)
    assert (answer.code, "Traceback" in answer.err) == (2, False)


@pytest.mark.parametrize("cdf", ["bytes,probability\n", ""])
def test_a_request_size_file_without_rows_is_refused_with_the_scenario_line_that_names_it(tmp_path, cdf):
    path = written(tmp_path, cdf)
    [fault] = ct.check(path)
    assert (fault.file, fault.line, fault.key) == (str(path), 7, "requests.web.sizes")
    assert "mine.csv: has no rows" in fault.problem
    with pytest.raises(ct.PlanError):
        Plan.of(path, {"axes": {"requests.web.load": [0.1, 0.2]}})


def test_error_messages_have_correct_line_numbers_even_if_a_request_size_file_is_missing(tmp_path):
    [fault] = ct.check(written(tmp_path, name="other.csv"))
    assert (fault.file, fault.line, fault.key) == (str(tmp_path / "web.toml"), 7, "requests.web.sizes")
    assert fault.problem == f"cannot be used: {tmp_path / 'other.csv'}: there is no such file"
    [fault] = ct.check(written(tmp_path, requests=WEB.replace("0.3", "30")))
    assert (fault.file, fault.line, fault.key) == (str(tmp_path / "web.toml"), 6, "requests.web.load")


def test_requests_can_be_defined_in_python_scenarios(tmp_path):
    base = ct.load(written(tmp_path))
    made = base.replace(
        requests={"web": ct.Requests(load=0.3, sizes="data_mining", pairs="all_to_all")},
        incast={"query": ct.Incast(senders=3, bytes="60kB", interval="1ms", tcp=ct.Sack(mss="1460B"))},
    )
    assert ct.check(made) == []
    assert isinstance(made.topology, ct.LeafSpine)
    with pytest.raises(
        ct.ScenarioError, match="is more than the number of other hosts; at most 3 hosts can answer a query"
    ):
        ct.run(made.replace(incast={"query": ct.Incast(senders=4, bytes="60kB", interval="1ms")}))


def test_a_load_above_the_capacity_of_a_link_gives_a_warning_with_the_largest_possible_load(celltrain, tmp_path):
    path = written(tmp_path)
    answer = celltrain("check", path, "--set", "requests.web.load=1.5", "--json")
    [warning] = answer.json["warnings"]
    assert "of the rate of host1->leaf1, acknowledgements included" in warning["message"]
    stable = float(warning["message"].split("largest stable load is ")[1].rstrip("."))
    below = celltrain("check", path, "--set", f"requests.web.load={stable}", "--json")
    above = celltrain("check", path, "--set", f"requests.web.load={stable + 0.001}", "--json")
    assert (below.json["warnings"], len(above.json["warnings"])) == ([], 1)


SHORT = NETWORK.replace("port.default =", "measure.long_requests = '500kB'\nport.default =")


@pytest.fixture(scope="module")
def web(tmp_path_factory):
    path = tmp_path_factory.mktemp("web") / "web.toml"
    query = '[incast.query]\nsenders = 3\nbytes = "45kB"\ninterval = "200us"\n'
    path.write_text(SHORT + WEB.replace("0.3", "0.5").format("20kB") + query)
    return path


def test_request_percentiles_are_order_statistics_of_the_table_of_request_records(web):
    result = ct.run(web)
    rows = result.requests.to_pandas()
    groups = {row["name"]: row for row in result.to_dict()["requests"]}
    assert set(rows["group"]) == set(groups) == {"web", "query"}
    for name, group in groups.items():
        own = rows[rows["group"] == name]
        done = own[own["completed_s"].notna()]
        assert (group["opened"], group["completed"]) == (len(own), len(done))
        assert group["open"] == len(own) - len(done)
        assert group["retransmitted_segments"] == own["retransmitted_segments"].sum()
        times = sorted((done["completed_s"] - done["opened_s"]) * 1e3)
        assert group["all"]["completion_ms_mean"] == pytest.approx(sum(times) / len(times))
        # Open requests count as longer than any completed request. If an open request has the rank, its age counts.
        ages = (result.duration_s - own[own["completed_s"].isna()]["opened_s"]) * 1e3
        rank = -(-len(own) * 95 // 100)
        ordered = sorted([*times, *ages]) if (is_bound := rank > len(times)) else times
        assert group["all"]["p95_censored"] == is_bound
        assert group["all"]["completion_ms_p95"] == pytest.approx(ordered[rank - 1])
        slowdowns = sorted(done["slowdown"])
        assert group["short"]["slowdown_median"] == slowdowns[-(-group["short"]["opened"] // 2) - 1]
        assert slowdowns[0] >= 1
    assert groups["web"]["short"]["slowdown_p99"] is not None
    assert groups["web"]["short"]["slowdown_p999"] is None
    assert groups["web"]["queries"] is None
    # The request at the very end of the run is not counted.
    assert groups["query"]["queries"]["asked"] == 9
    assert rows["query"].isna().sum() == groups["web"]["opened"]
    assert result.requests.field("slowdown").metadata[b"unit"] == b"1"
    assert result.request_groups.column("short_slowdown_p99").to_pylist()[0] == groups["web"]["short"]["slowdown_p99"]


def test_both_engines_give_the_same_request_records(web):
    fast, reference = (ct.run(web, engine=engine) for engine in ("fast", "reference"))
    assert fast.fingerprint == reference.fingerprint
    assert fast.requests.equals(reference.requests)
    assert fast.to_dict()["requests"] == reference.to_dict()["requests"]


def test_the_message_about_a_percentile_of_too_few_requests_states_the_required_number(celltrain, web):
    measures = (
        "requests.web.short.slowdown_p99,requests.web.short.slowdown_p999,requests.query.queries.completion_ms_p95"
    )
    compared = celltrain("compare", web, "--seeds", "2", "--measures", measures)
    assert compared.code == 0
    assert "requests.web.short.slowdown_p999' needs 1,000 requests of a run, but this run has only" in compared.err
    assert "; the measure has no value in 2 runs of 2" in compared.err
    assert "requests.query.queries.completion_ms_p95' needs 20 queries" in compared.err
    assert "carried nothing" not in compared.err


def test_the_run_command_shows_a_table_for_each_group_of_requests_and_writes_their_records(celltrain, web, tmp_path):
    answer = celltrain("run", web, "--out", tmp_path / "out")
    assert answer.code == 0, answer
    for words in ("group", "slowdown", "99.9 %", "queries"):
        assert words in answer.out
    assert "flow " not in answer.out
    assert (tmp_path / "out" / "requests.parquet").is_file()
    assert (tmp_path / "out" / "request_groups.csv").is_file()


def test_the_result_of_a_run_without_requests_has_no_request_measures():
    lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=100, policy=ct.Ppd(), duration="2ms")
    result = ct.run(lan)
    assert (len(result.requests), len(result.request_groups), result.to_dict()["requests"]) == (0, 0, [])
    assert "requests" not in lan.to_dict() or lan.to_dict()["requests"] == {}


def test_request_measures_cover_only_the_measuring_window(web):
    whole, part = ct.run(web), ct.run(web.parent / "web.toml")
    half = ct.run(ct.load(web, settings={"measure.from": "1ms"}))
    assert whole.to_dict()["requests"] == part.to_dict()["requests"]
    late = [row for row in whole.requests.to_pylist() if row["opened_s"] > 0.001]
    assert half.requests.to_pylist() == late


def test_the_shipped_scenario_with_requests_is_valid(celltrain):
    path = ROOT / "scenarios" / "leaf-spine-web-search.toml"
    assert ct.check(path) == []
    [network] = celltrain("check", path, "--json").json["networks"]
    assert network["flows"] == []


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("seed", [1, 2])
def test_no_percentile_of_the_shipped_scenario_with_requests_is_a_lower_bound_or_undefined(seed):
    result = ct.run(ROOT / "scenarios" / "leaf-spine-web-search.toml", seed=seed)
    groups = result.to_dict()["requests"]
    assert [(group["all"]["open"], group["all"]["censored"]) for group in groups] == [(0, False)] * 2
    assert all(group["short"]["completion_ms_p95"] is not None for group in groups)


INCAST = """[incast.query]
senders = 2
bytes = "40kB"
interval = "500us"
"""


def test_by_default_the_measures_of_a_scenario_with_requests_are_request_measures(celltrain, tmp_path):
    path = written(tmp_path, requests=WEB + INCAST)
    of_requests = {
        *(f"requests.web.{measure}" for measure in OF_GROUPS["requests"]),
        *(f"requests.query.{measure}" for measure in OF_GROUPS["incast"]),
    }
    names = {measure.name for measure in ct.compare(path, seeds=2).measures}
    assert names > of_requests
    assert not any(name.startswith(OF_FLOWS) for name in names)
    assert celltrain("run", path, "--seeds", 2).code == 0
    plan = Plan.of(path, {"axes": {"requests.web.load": [0.1, 0.2]}})
    assert set(plan.measures) > of_requests
    assert not any(name.startswith(OF_FLOWS) for name in plan.measures)
    shown = celltrain("compare", path, "lan-epd", "--vary", "duration=2ms", "--seeds", 2)
    assert (shown.code, "requests." in shown.out) == (0, False)


def test_request_measures_do_not_require_records_of_each_request(web, tmp_path):
    with_rows, without = (ct.run(web, request_rows=rows) for rows in (True, False))
    assert with_rows.request_groups.equals(without.request_groups)
    assert with_rows.fingerprint == without.fingerprint
    opened = sum(without.request_groups["opened"].to_pylist())
    assert len(with_rows.requests) == opened > 0
    with pytest.raises(
        ct.NotTracedError, match=f"had {opened} requests and did not keep a row for each of them: use run"
    ):
        _ = without.requests
    written = {path.name for path in without.write(tmp_path)}
    assert "request_groups.csv" in written
    assert "requests.csv" not in written
