"""Packets that a link loses: results, events and explanations name them."""

from pathlib import Path

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
