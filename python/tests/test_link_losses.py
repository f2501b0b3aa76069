"""Packets lost on a link: results, events and explanations name them."""

import re
from pathlib import Path

import pytest

import celltrain as ct


@pytest.mark.slow
def test_a_packet_lost_on_a_link_appears_in_the_counts_the_events_and_the_explanation(tmp_path: Path) -> None:
    lan = ct.n_source(
        sources=2, link_delay="1ms", buffer_cells=1000, policy=ct.TailDrop(), duration="100ms", tcp=ct.NewReno()
    )
    lossy = lan.replace(link={"source1->sw1": ct.LinkOptions(lose=[ct.Loss(flow="tcp1", packets=[14])])})
    assert "links" not in ct.run(lan).to_dict()
    result = ct.run(lossy, events=ct.Events(tmp_path / "events", kinds=["frames", "cells"]))
    [link] = result.links.to_pylist()
    assert (link["name"], link["lost_cells"], link["cut_frames"]) == ("source1->sw1", 12, 1)
    assert result.cells["lost"] == 12 and result.flows["retransmitted_segments"].to_pylist() == [1, 0]
    events = ct.read_events(tmp_path / "events")
    [frame] = [row for row in events["frames"].to_pylist() if row["event"] == "lost"]
    assert (frame["vc"], frame["port"], frame["lost_number"]) == ("tcp1", "source1->sw1", 14)
    assert frame["reason"] == "packet chosen by a loss rule"
    answer = ct.why(lossy, flow="tcp1", at=f"{frame['time_s']:.6f}s")
    assert "the link source1->sw1 lost frame 14 (bytes 7,168 to 7,679 of tcp1" in str(answer)
    assert "to a loss rule: it was packet 14 of its VC there." in str(answer)


def delayed(*rules: dict[str, object]) -> ct.Scenario:
    lan = ct.n_source(
        sources=2, link_delay="1ms", buffer_cells=1000, policy=ct.TailDrop(), duration="100ms", tcp=ct.NewReno()
    )
    return lan.replace(link={"source1->sw1": {"delay": list(rules)}})


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_reordered_packets_cause_a_retransmission_although_no_packet_is_lost(engine: str) -> None:
    result = ct.run(delayed({"flow": "tcp1", "packets": [14], "by": "50ms"}), engine=engine)
    assert result.cells["lost"] == 0
    assert result.flows["retransmitted_segments"].to_pylist() == [1, 0]
    assert result.flows["fast_retransmits"].to_pylist() == [1, 0]
    # The receiver gets the packet twice.
    by_byte = ct.run(delayed({"flow": "tcp1", "bytes": "7168B", "by": "50ms"}), engine=engine)
    assert by_byte.fingerprint == result.fingerprint


def test_a_delay_rule_for_a_packet_that_is_never_sent_is_reported_after_the_run() -> None:
    words = "a delay on source1->sw1 did not happen: packet 100000 of tcp1 was never sent over this link"
    with pytest.warns(ct.CelltrainWarning, match=words):
        ct.run(delayed({"flow": "tcp1", "packets": [100_000], "by": "1ms"}))


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"flow": "tcp1", "packets": [1], "by": "0s"}, "by = 0s must be above 0 and at most 1000s"),
        ({"flow": "tcp1", "packets": [1], "by": "1001s"}, "by = 1001s must be above 0 and at most 1000s"),
        ({"flow": "tcp1", "by": "1ms"}, "must have either packets or bytes"),
        ({"flow": "tcp1", "packets": [1], "bytes": "1kB", "by": "1ms"}, "must have either packets or bytes"),
        ({"flow": "tcp9", "packets": [1], "by": "1ms"}, "tcp9"),
    ],
)
def test_an_invalid_packet_delay_rule_is_refused_with_the_path_of_its_key(rule: dict[str, object], words: str) -> None:
    with pytest.raises(ct.ScenarioError, match=re.escape(words)) as raised:
        ct.run(ct.Scenario.model_validate(delayed(rule).to_dict()))
    assert "source1->sw1" in str(raised.value)


NEVER = "a loss on source1->sw1 did not happen: packet 900000 of tcp1 was never sent over this link; tcp1 sent "


def test_a_comparison_reports_a_loss_rule_that_never_applied_once_per_scenario(celltrain, tmp_path: Path) -> None:
    for name, packet in (("one", 900_000), ("two", 900_000), ("met", 1)):
        rule = f"[[link.'source1->sw1'.lose]]\nflow = 'tcp1'\npackets = [{packet}]\n"
        lan = re.sub(r'(?m)^duration = ".*"$', 'duration = "20ms"', Path("scenarios/lan-epd.toml").read_text())
        (tmp_path / f"{name}.toml").write_text(f"{lan}\n{rule}")
    one, two, met = (tmp_path / f"{name}.toml" for name in ("one", "two", "met"))
    seeds = ("--seeds", 2)
    policies = celltrain("compare", one, "--vary", "port.bottleneck.policy=epd,tail_drop", *seeds, "--json").json
    [warning] = [text for text in policies["warnings"] if "did not happen" in text]
    assert warning.startswith(NEVER)
    assert warning.endswith(" (in 4 of 4 runs; the numbers are from epd, seed 1)")
    both = " ".join(celltrain("compare", one, two, met, *seeds).err.split())
    assert both.count(NEVER) == 2
    assert f"one: {NEVER}" in both and f"two: {NEVER}" in both
    assert "(in 2 of 2 runs; the numbers are from seed 1)" in both
    # Several seeds of one scenario give the same warning; a single run gives a different one.
    several = " ".join(celltrain("run", one, *seeds).err.split())
    assert several.count(NEVER) == 1 and "(in 2 of 2 runs" in several
    single = " ".join(celltrain("run", one).err.split())
    assert single.count(NEVER) == 1 and "of 2 runs" not in single


@pytest.mark.nightly
@pytest.mark.slow
def test_a_sweep_and_its_report_each_mention_a_delay_rule_that_never_applied_once(tmp_path: Path, celltrain) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        """
name = "late"
measures = ["efficiency"]
[scenario]
duration = "20ms"
topology.n_source = { sources = 2, link_delay = "5us" }
port.bottleneck = { buffer = 200, policy.epd = { threshold = 160 } }
[[scenario.link."source1->sw1".delay]]
flow = "tcp1"
packets = [1, 900000]
by = "1ms"
[[scenario.link."source1->sw1".delay]]
flow = "tcp1"
packets = [800000]
by = "1ms"
[axes]
rate = { path = "topology.n_source.link_rate", values = ["100Mbps", "150Mbps"] }
[seeds]
count = 2
"""
    )
    store = tmp_path / "store"
    words = "a delay on source1->sw1 did not happen: packet {} of tcp1 was never sent over this link; tcp1 sent "
    answer = celltrain("sweep", plan, "--store", store, "--json")
    for number in (900_000, 800_000):
        [one] = [warning for warning in answer.json["warnings"] if words.format(number) in warning]
        assert one.endswith(" (in 4 of 4 runs; the numbers are from rate = 100 Mbit/s, seed 1)")
    # The store keeps warnings about rules, but the warnings are neither failures nor errors of runs.
    again = celltrain("sweep", plan, "--store", store, "--resume")
    assert (again.code, " ".join(again.err.split()).count("did not happen")) == (0, 2)
    opened = ct.Store.open(store)
    assert opened.wide()["error"].null_count == opened.table()["error"].null_count == 4
    assert opened.verify() == [] and opened.failures().num_rows == 0
    page = tmp_path / "report"
    assert celltrain("report", store, "--out", page).code == 0
    [text] = [file.read_text() for file in page.rglob("*.html")]
    assert "packet 900000 of tcp1 was never sent over this link" in text
