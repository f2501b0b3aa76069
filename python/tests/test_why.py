"""`celltrain why`: its statements are true and follow from the events."""

from __future__ import annotations

import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Command

import celltrain as ct
from celltrain.model import types as models

LAN = {"sources": 3, "link_delay": "5us", "buffer_cells": 100, "duration": "400ms"}


def scenario(**changes: Any) -> ct.Scenario:
    return ct.n_source(**{**LAN, "policy": ct.Epd(threshold=60), "tcp": ct.Sack(rules="paper"), **changes})


def text_of(answer: ct.Why) -> str:
    return answer.text(None)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> ct.RunResult:
    return ct.run(
        scenario(tcp=ct.Vanilla(rules="paper"), duration="1s"), events=tmp_path_factory.mktemp("why") / "events"
    )


@pytest.fixture(scope="module")
def vanilla() -> ct.Why:
    return ct.why(scenario(tcp=ct.Vanilla(rules="paper"), duration="1s"), flow="tcp1", at="100ms")


@pytest.mark.slow
def test_the_explanation_of_a_refused_frame_states_the_values_compared_in_the_decision(
    everything: ct.RunResult, vanilla: ct.Why
) -> None:
    refused = [r for r in everything.events["frames"].to_pylist() if r["event"] == "refused" and r["vc"] == "tcp1"]
    first = refused[0]
    texts = [sentence.text for sentence in vanilla.sentences]
    assert f"the port sw1->sw2 refused frame {first['frame']} " in texts[1]
    assert (
        texts[2] == f"The port refuses a frame if X is above R: X = {first['occupancy']} cells were queued, the "
        f"threshold was 60, Y_i = {first['vc_cells']} of them were from its VC, and N_a = {first['active_vcs']} VCs had "
        "cells queued."
    )


@pytest.mark.slow
def test_every_sentence_of_an_explanation_refers_to_events_of_the_run(
    everything: ct.RunResult, vanilla: ct.Why
) -> None:
    tables = {
        kind: Counter(
            str(sorted((k, v) for k, v in row.items() if v is not None)) for row in everything.events[kind].to_pylist()
        )
        for kind in ("segments", "timers", "frames")
    }
    for sentence in vanilla.sentences:
        assert sentence.rows, sentence.text
        for row in sentence.rows:
            kind = row.pop("kind")
            assert str(sorted(row.items())) in tables[kind], sentence.text


def test_the_timeout_the_retransmission_and_the_cost_in_an_explanation_match_the_event_tables(
    everything: ct.RunResult, vanilla: ct.Why
) -> None:
    segments = [row for row in everything.events["segments"].to_pylist() if row["flow"] == "tcp1"]
    arrived = {row["frame"] for row in segments if row["event"] == "arrived"}
    lost = [r for r in segments if r["event"] in ("sent", "retransmitted") and r["frame"] not in arrived]
    assert vanilla.from_s is not None and vanilla.to_s is not None
    lost = [row for row in lost if vanilla.from_s <= row["time_s"] <= vanilla.to_s]
    assert f"lost {len(lost)} segments ({512 * len(lost):,} bytes)" in text_of(vanilla)
    acked = next(
        row["time_s"]
        for row in segments
        if row["event"] == "acknowledged" and row["acknowledgement"] >= max(r["sequence"] + r["length"] for r in lost)
    )
    assert acked <= vanilla.to_s
    assert re.search(r"At 0\.3 s the retransmission timer ran out, \d+ ms after the first loss", text_of(vanilla))
    assert re.search(r"cwnd went from [\d.]+ to 1 segments", text_of(vanilla))
    again = [r for r in segments if r["event"] == "retransmitted" and r["time_s"] <= vanilla.to_s]
    repeated = {row["frame"] for row in segments if row["event"] == "arrived" and row["reason"] == "repeated"}
    vain = sum(row["frame"] in repeated for row in again)
    assert (
        (f"{vain} segment" in text_of(vanilla))
        if vain
        else ("Nothing was retransmitted needlessly" in text_of(vanilla))
    )


@pytest.mark.slow
def test_an_explanation_mentions_timeout_backoff_and_changes_of_ssthresh() -> None:
    answer = ct.why("lan-epd", flow="tcp4", at="5.805s")
    told = text_of(answer)
    assert "ssthresh was set to 45.2 (half of cwnd 90.4)." in told
    assert (
        "ssthresh went from 45.2 to 12. The timeout had doubled to 1 s at 5.3 s, and no round trip had been measured"
        in told
    )
    assert told.count("had doubled") == 1
    [second] = [one for one in answer.sentences if "had doubled" in one.text]
    timeouts = [row["rto_s"] for row in second.rows if row["kind"] == "segments" and 5.3 <= row["time_s"] < 6.3]
    assert timeouts and set(timeouts) == {1.0}


@pytest.mark.parametrize(
    ("tcp", "words"),
    [
        (ct.Sack(rules="paper"), "to fill holes that SACK showed"),
        (ct.NewReno(), "because of partial ACKs"),
        (ct.Tahoe(), "the third duplicate ACK reached the sender"),
        (ct.Vanilla(), "because of the timeout"),
    ],
)
def test_an_explanation_states_each_action_of_the_sender_with_its_reason(tcp: ct.Tcp, words: str) -> None:
    result = text_of(ct.why(scenario(tcp=tcp, duration="1s"), flow="tcp2", at="2ms"))
    assert words in result
    notice = "the retransmission timer ran out" if isinstance(tcp, ct.Vanilla) else "the third duplicate ACK reached"
    assert notice in result


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "at", "words"),
    [
        (
            ct.TailDrop(),
            "1ms",
            r"the buffer of sw1->sw2 had no room for a cell of frame \d+ .*: 100 cells were waiting",
        ),
        (ct.DropFromFront(), "1ms", "dropped a waiting cell of frame .* to make room for another"),
        (ct.SelectiveDrop(), "2ms", "if X is above R, and Y_i above Z X / N_a: .* and the share of the VC was"),
    ],
)
def test_each_cause_of_a_lost_frame_has_a_different_sentence_in_the_explanation(
    policy: models.Policy, at: str, words: str
) -> None:
    assert re.search(words, text_of(ct.why(scenario(policy=policy), flow="tcp1", at=at)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"steps": [{"at": "0s", "rate": "50Mbps"}]}, "The link sw1->sw2 had a rate of 50Mbps then (rate_change)."),
        ({"trace": [1, 2, 3, 3]}, "the link sw1->sw2 could deliver 1,504 bytes "),
        (
            {"walk": {"every": "1ms", "step": "1Mbps", "least": "9Mbps", "most": "20Mbps"}},
            "The rate of the link sw1->sw2 changes at random from 9Mbps to 20Mbps (rate_change.walk).",
        ),
    ],
)
def test_an_explanation_of_a_loss_states_the_rate_of_a_link_that_changes(change: dict[str, Any], words: str) -> None:
    changing = scenario().replace(link={"sw1->sw2": {"rate_change": change}})
    sentences = ct.why(changing, flow="tcp1", at="100ms").sentences
    places = [place for place, sentence in enumerate(sentences) if words in sentence.text]
    assert len(places) == 1
    assert "sw1->sw2" in sentences[places[0] - 1].text


def test_an_explanation_names_a_delayed_packet_that_caused_spurious_retransmissions_and_its_delay() -> None:
    tcp = ct.NewReno(mss="1000B", receive_window="32kB", timer_granularity="10ms")
    lan = ct.n_source(sources=1, link_delay="1ms", tcp=tcp, duration="50ms", buffer_cells=5000, policy=ct.TailDrop())
    delay = [{"flow": "tcp1", "packets": [40], "by": "5ms"}]
    answer = ct.why(lan.replace(link={"source1->sw1": {"delay": delay}}), at="40ms")
    [text] = [sentence.text for sentence in answer.sentences if "were late" in sentence.text]
    assert text.startswith("Bytes 40,000 to 40,999 were late: sent at ")
    sent, arrived, after = (float(number) for number in re.findall(r"([.\d]+) m?s", text))
    # The packet crosses three links of 1 ms and waits for 5 ms. The next packet is at least 21 cells later.
    assert 1000 * (arrived - sent) == pytest.approx(3 + 5, abs=0.5)
    assert after == pytest.approx(5, abs=0.3)


def test_an_explanation_states_if_a_loss_was_not_repaired_before_the_end_of_the_run() -> None:
    result = text_of(ct.why(scenario(tcp=ct.Vanilla(), duration="100ms"), flow="tcp1", at="50ms"))
    assert "segments" in result.splitlines()[0]
    assert result.splitlines()[0].endswith("; some data was not acknowledged before the end of the run.")


@pytest.mark.slow
def test_an_explanation_counts_the_cells_of_merged_vcs_as_the_port_does() -> None:
    answer = ct.why(ROOT / "scenarios" / "vc-merge.toml", flow="tcp2", at="250ms", seed=3)
    refused = [r for one in answer.sentences for r in one.rows if r["kind"] == "frames" and r["port"] == "sw1->sw2"]
    assert refused and {row["port_vc"] for row in refused if row["vc"] == "tcp2"} == {"vc1"}
    assert "from its VC there, vc1" in text_of(answer)
    assert all(row["frame"] < 1000 for row in refused)
    for sentence in answer.sentences:
        if sentence.text.startswith("In all, "):
            vcs = {row["port_vc"] for row in sentence.rows}
            assert f"of {len(vcs)} VCs" in sentence.text if len(vcs) > 1 else "from its VC there, vc1" in sentence.text


@pytest.mark.slow
def test_an_explanation_names_the_edge_device_that_dropped_a_packet() -> None:
    answer = ct.why(ROOT / "scenarios" / "internetwork-abr-ada.toml", flow="tcp1", at="135ms")
    assert "the edge device dropped frame" in text_of(answer)
    assert "at edge1->sw1, to make room for another" in text_of(answer)


@pytest.mark.slow
def test_without_a_loss_near_the_given_time_the_explanation_lists_the_nearest_losses() -> None:
    calm = ct.n_source(sources=1, link_delay="5us", buffer_cells=100, policy=ct.TailDrop(), duration="5ms")
    answer = ct.why(calm, flow="tcp1", at="2ms")
    assert answer.is_well and answer.from_s is None
    assert text_of(answer).splitlines() == [
        "tcp1 had no losses at 0.002 s: all sent data had arrived or was in flight.",
        "No segment of the flow was lost or retransmitted before that, since the start of the run.",
        "No segment of the flow was lost or retransmitted after that, until the end of the run at 0.005 s.",
    ]
    busy = scenario(tcp=ct.Sack())
    episodes = ct.why(busy, flow="tcp1", at="0.00000s")
    assert "The nearest loss of the flow after that time: " in text_of(episodes)
    later = re.search(r"sent from ([\d.]+) s on", text_of(episodes))
    assert later is not None
    assert not ct.why(busy, flow="tcp1", at=f"{later[1]}s").is_well


@pytest.mark.slow
def test_the_time_given_to_the_why_command_covers_the_interval_that_rounds_to_its_digits() -> None:
    first = ct.why(scenario(), flow="tcp1", at="2ms").from_s
    assert first is not None
    before = f"{first * 1e3 - 0.2:.6f}ms"
    assert ct.why(scenario(), flow="tcp1", at=before).is_well
    assert not ct.why(scenario(), flow="tcp1", at=f"{round(first * 1e3)}ms").is_well


@pytest.mark.parametrize("flows", ["tcp5", "tcp4-5"])
def test_the_explanation_of_a_lost_packet_of_a_flow_without_tcp_mentions_no_retransmission(flows: str) -> None:
    constant = ct.FlowOptions(traffic=ct.ConstantRate(rate="150Mbps", packet="512B"))
    short = ct.load("lan-unresponsive").replace(duration="20ms", flow={flows: constant})
    answer = ct.why(short, flow="tcp5", at="5ms")
    assert "has no TCP: lost data is not retransmitted" in text_of(answer)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_long_explanation_is_shortened_to_12_lines_with_a_note() -> None:
    answer = ct.why(scenario(tcp=ct.Reno(), sources=5, duration="2s"), flow="tcp1", at="1s")
    assert len(str(answer).splitlines()) <= 12 or "not shown" not in str(answer)
    if len(answer.sentences) > 12:
        assert "more sentences are not shown" in str(answer)
        assert str(answer).splitlines()[0] == answer.sentences[0].text


@pytest.mark.slow
@pytest.mark.parametrize("policy", [ct.Epd(threshold=60), ct.Ppd()])
def test_a_shortened_explanation_keeps_the_first_cause_and_refers_only_to_sentences_it_contains(
    policy: models.Policy,
) -> None:
    answer = ct.why(scenario(tcp=ct.Reno(), sources=5, duration="2s", policy=policy), flow="tcp1", at="1900ms")
    texts = [sentence.text for sentence in answer.sentences]
    causes = [text for text in texts if " refused frame " in text or " had no room for a cell of " in text]
    rules = [text for text in texts if text.startswith("The port refuses")]
    for most in range(8, len(texts)):
        lines = answer.text(most).splitlines()
        assert len(lines) == most
        assert lines[-1] == f"{len(texts) - most + 1} more sentences are not shown; celltrain why --all prints them."
        assert causes[0] in lines
        assert not rules or rules[0] in lines
        for line in lines:
            if "more segment" in line or line.startswith("In all, "):
                before = [text for text in texts[: texts.index(line)] if text in causes]
                assert before[-1] in lines, line


def test_the_why_command_prints_the_explanation_as_text_and_its_rows_as_json(celltrain: Command, small: Path) -> None:
    answer = celltrain("why", small, "--flow", "tcp1", "--at", "2ms")
    assert (answer.code, answer.err) == (0, "")
    assert "the port sw1->sw2 refused frame" in answer.out
    told = celltrain("why", small, "--flow", "tcp1", "--at", "2ms", "--json").json
    assert (told["flow"], told["at_s"], told["is_well"], told["seed"]) == ("tcp1", 0.002, False, 1)
    assert told["sentences"][1]["rows"][0]["event"] == "refused"
    assert {"kind", "time_s"} <= told["sentences"][1]["rows"][0].keys()
    assert celltrain("why", small, "--flow", "tcp1", "--at", "2ms", "--seed", "2").out != answer.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--flow", "tcp9", "--at", "1ms"],
            "is not a flow of this network; did you mean tcp3? (choose from tcp1, tcp2",
        ),
        (["--flow", "tcp1", "--at", "21ms"], "at = 21ms lies outside the run, which lasts 20ms"),
        (["--flow", "tcp1", "--at", "soon"], "at = soon is not a time such as"),
    ],
)
def test_invalid_arguments_of_the_why_command_are_refused(
    celltrain: Command, small: Path, arguments: list[str], words: str
) -> None:
    answer = celltrain("why", small, *arguments)
    assert answer.code == 2
    assert words in " ".join(answer.err.split())


def test_a_cancellation_handle_ends_the_computation_of_an_explanation() -> None:
    handle = ct.Cancel()
    threading.Timer(0.3, handle.cancel).start()
    with pytest.raises(ct.CancelledError):
        ct.why(scenario(duration="100000s"), flow="tcp1", at="90000s", cancel=handle)


@pytest.mark.nightly
@pytest.mark.slow
def test_loss_episodes_are_sorted_by_how_long_sending_paused_and_each_can_be_explained() -> None:
    lan = scenario(duration="1s")
    found = ct.episodes(lan)
    assert found.flow in {"tcp1", "tcp2", "tcp3"} and len(found) > 1
    silences = [one.silent_s for one in found]
    assert silences == sorted(silences, reverse=True)
    for one in list(found)[:2]:
        assert one.from_s <= one.at_s and one.silent_s > 0
        answer = ct.why(lan, flow=found.flow, at=f"{one.at_s:.9f}s")
        assert not answer.is_well
        assert answer.from_s == pytest.approx(one.from_s)
        assert f"lost {one.lost_segments} segment" in text_of(answer)
    assert found.to_dict()["episodes"][0]["flow"] == found.flow


@pytest.mark.slow
def test_by_default_the_why_command_explains_the_connection_with_the_longest_pause_in_sending() -> None:
    lan = scenario(tcp=ct.Vanilla())
    longest = {flow: max(one.silent_s for one in ct.episodes(lan, flow=flow)) for flow in ("tcp1", "tcp2", "tcp3")}
    assert ct.episodes(lan).flow == max(longest, key=lambda flow: longest[flow])
    assert ct.why(lan, at="100ms").to_dict()["flow"] in longest


def test_a_connection_without_losses_has_no_loss_episodes() -> None:
    found = ct.episodes(scenario(sources=1, buffer_cells="infinite", policy=ct.TailDrop()))
    assert len(found) == 0 and "neither lost nor retransmitted anything" in str(found)
    with pytest.raises(ct.ScenarioError, match="tcp9"):
        ct.episodes(scenario(), flow="tcp9")


#: The first policy refuses every frame at an empty buffer. The second admits one frame of each VC.
NEVER = models.Formula(admit="X < 0.8 * K and Y * N < 1.2 * X")
ONCE = models.Formula(admit="seen < 0.5", vc_state={"seen": 0}, on_admission={"seen": "1"})


@pytest.mark.filterwarnings("ignore::celltrain.CelltrainWarning")
@pytest.mark.parametrize(("policy", "lost"), [(NEVER, 1), (ONCE, 2)])
@pytest.mark.parametrize("duration", ["100ms", "4s"])
def test_frames_of_a_flow_that_a_policy_always_refuses_are_explained_as_lost(
    policy: models.Formula, lost: int, duration: str, tmp_path: Path
) -> None:
    dead = scenario(policy=policy, tcp=ct.Vanilla(), duration=duration)
    frames = ct.run(dead, events=tmp_path / "events").events["frames"].to_pylist()
    found = ct.episodes(dead, flow="tcp1")
    assert sum(one.lost_segments for one in found) == sum(
        row["event"] == "refused" and row["vc"] == "tcp1" for row in frames
    )
    answer = ct.why(dead, flow="tcp1", at="50ms")
    assert not answer.is_well
    assert f"lost {lost}" in text_of(answer) or duration != "100ms"
    for text in (text_of(answer), str(found)):
        assert "lost nothing" not in text and "neither lost" not in text and "had no losses" not in text
    assert all(sentence.rows for sentence in answer.sentences)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::celltrain.CelltrainWarning")
def test_an_explanation_begins_by_stating_that_no_data_was_delivered(celltrain: Command, tmp_path: Path) -> None:
    dead = scenario(policy=NEVER, duration="100ms")
    assert text_of(ct.why(dead, flow="tcp2", at="50ms")).startswith("tcp2 delivered nothing in the whole run: ")
    assert ct.episodes(dead).to_dict()["delivered_nothing"] == ["tcp1", "tcp2", "tcp3"]
    ct.save(dead, file := tmp_path / "dead.toml")
    out = celltrain("why", file).out
    assert out.startswith("Nothing of tcp1, tcp2, tcp3 arrived in the whole run.\n")
    assert ct.episodes(scenario(), flow="tcp1").to_dict()["delivered_nothing"] == []


def test_the_message_about_an_interrupted_explanation_mentions_no_output_files() -> None:
    # Regression: the message named the events folder, which `why` deletes.
    def interrupt(_share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as raised:
        ct.why("lan-epd", flow="tcp1", at="2s", progress=interrupt)
    assert getattr(raised.value, "__notes__", []) == []


@pytest.mark.slow
def test_the_explanation_of_a_frame_refused_by_a_shared_memory_states_memory_queue_and_compared_values(
    tmp_path: Path,
) -> None:
    incast = ct.load(ROOT / "scenarios" / "memory-dynamic-threshold.toml").replace(duration="100ms")
    refused = [
        row
        for row in ct.run(incast, events=tmp_path / "events").events["memories"].to_pylist()
        if row["event"] == "refused"
    ]
    assert {row["pool"] for row in refused} == {"sw/main"}
    assert {row["pool_cells"] for row in refused} == {1000}
    assert all(row["threshold"] == 1000 - row["used"] < row["shared"] + 1 for row in refused)
    flow = refused[0]["vc"]
    first = next(row for row in refused if row["vc"] == flow)
    answer = ct.why(incast, flow=flow, at=f"{first['time_s'] * 1e3:.3f}ms")
    [sentence] = [one for one in answer.sentences if one.text.startswith("The pool ")][:1]
    row = sentence.rows[0]
    assert row["kind"] == "memories"
    assert row in [
        {"kind": "memories", **{name: value for name, value in one.items() if value is not None}} for one in refused
    ]
    assert sentence.text == (
        f"The pool sw/main refused the cell because q_i would exceed alpha_i (B - Q): Q = {row['used']} of B = 1,000 cells "
        f"were taken, q_i = {row['shared']} cells of these were from the queue of priority 0 at {row['port']}, and its threshold "
        f"was {row['threshold']:.6g}."
    )


@pytest.mark.slow
def test_the_explanation_of_a_refusal_by_a_shared_memory_does_not_mention_the_port_policy(
    tmp_path: Path,
) -> None:
    text = (ROOT / "scenarios" / "memory-dynamic-threshold.toml").read_text()
    (tmp_path / "whole.toml").write_text(text.replace("cells = 1000\n", 'cells = 1000\nframes = "whole"\n'))
    incast = ct.load(tmp_path / "whole.toml").replace(duration="100ms")
    sentences = [one.text for one in ct.why(incast, flow="tcp8", at="2ms").sentences]
    refused = next(place for place, one in enumerate(sentences) if "the port sw->right refused frame" in one)
    assert sentences[refused + 1].startswith("The pool sw/main refused the cell because q_i would exceed")
    assert not any(one.startswith("The port refuses a frame if") for one in sentences)


@pytest.mark.slow
def test_the_explanation_of_a_deadlock_begins_with_the_deadlock_and_reports_no_recovery() -> None:
    answer = ct.why("memory-deadlock", flow="tcp1", at="10ms")
    assert not answer.is_well
    assert "deadlocked" in answer.sentences[0].text
    for link in ("s1->s2", "s2->s3", "s3->s1"):
        assert f"{link} (priority 0) waits for" in answer.sentences[0].text


@pytest.mark.slow
def test_the_explanation_of_a_frame_refused_by_a_full_memory_states_that_the_memory_was_full() -> None:
    answer = ct.why("memory-static-thresholds", flow="tcp8", at="2ms")
    assert any("the pool is full" in sentence.text for sentence in answer.sentences)


@pytest.mark.parametrize("options", [[], ["--flow", "web"], ["--flow", "web", "--at", "1ms"]])
def test_in_a_network_without_flows_the_why_command_lists_requests_with_commands(
    celltrain: Command, options: list[str]
) -> None:
    answer = celltrain("why", "leaf-spine-web-search", *options)
    assert answer.code == 2
    words = " ".join(answer.err.split())
    assert "This network has no flows to explain, only requests (web, query)." in words
    assert "celltrain run FILE --out DIR" in words and "celltrain run FILE --events DIR" in words
