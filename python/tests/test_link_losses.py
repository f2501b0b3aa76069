"""Packets that a link loses: results, events and explanations name them."""

import re
from pathlib import Path

import pytest

import celltrain as ct


def test_a_packet_that_a_link_loses_is_counted_recorded_and_explained(tmp_path: Path) -> None:
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
def test_a_packet_that_overtakes_others_causes_a_retransmission_although_no_packet_is_lost(engine: str) -> None:
    result = ct.run(delayed({"flow": "tcp1", "packets": [14], "by": "50ms"}), engine=engine)
    assert result.cells["lost"] == 0
    assert result.flows["retransmitted_segments"].to_pylist() == [1, 0]
    assert result.flows["fast_retransmits"].to_pylist() == [1, 0]
    # The receiver gets the packet twice.
    by_byte = ct.run(delayed({"flow": "tcp1", "bytes": "7168B", "by": "50ms"}), engine=engine)
    assert by_byte.fingerprint == result.fingerprint


def test_a_rule_that_delays_a_packet_that_is_never_sent_is_reported_after_the_run() -> None:
    words = "a delay on source1->sw1 did not happen: packet 100000 of tcp1 was never sent over this link"
    with pytest.warns(ct.CelltrainWarning, match=words):
        ct.run(delayed({"flow": "tcp1", "packets": [100_000], "by": "1ms"}))


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"flow": "tcp1", "packets": [1], "by": "0s"}, "by = 0s is not above 0 and at most 1000s"),
        ({"flow": "tcp1", "packets": [1], "by": "1001s"}, "by = 1001s is not above 0 and at most 1000s"),
        ({"flow": "tcp1", "by": "1ms"}, "must have either packets or bytes"),
        ({"flow": "tcp1", "packets": [1], "bytes": "1kB", "by": "1ms"}, "must have either packets or bytes"),
        ({"flow": "tcp9", "packets": [1], "by": "1ms"}, "tcp9"),
    ],
)
def test_a_wrong_delay_rule_for_packets_is_refused_with_its_place(rule: dict[str, object], words: str) -> None:
    with pytest.raises(ct.ScenarioError, match=re.escape(words)) as raised:
        ct.run(ct.Scenario.model_validate(delayed(rule).to_dict()))
    assert "source1->sw1" in str(raised.value)
