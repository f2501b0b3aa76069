"""`celltrain bottleneck` and `ct.bottleneck`: cases, senders, verdicts, the page and the event logs."""

import json
import re
from pathlib import Path

import pytest
from conftest import NIGHTLY, is_refused

import celltrain as ct
from celltrain.ensemble.bottleneck import MEASURES, blocks, cases, senders
from celltrain.ensemble.bottleneck.cases import Expectation, derived
from celltrain.model.grids import Grid
from celltrain.running.emulation import unsuited

ROOT = Path(__file__).parents[2]
#: The sections of the appendix of draft-ietf-ccwg-bbr, each of which has a case.
APPENDIX = """
Exiting STARTUP on Bandwidth Plateau
Exiting STARTUP on Loss When Application-Limited
Exiting DRAIN Based on Inflight
Exiting DRAIN Based on Time
Exiting PROBE_UP on Bandwidth Plateau
Exiting PROBE_UP on Loss When Application-Limited
Never Exiting PROBE_UP (or STARTUP) When Application-Limited With No Loss
Exiting PROBE_DOWN on Inflight
Exiting PROBE_DOWN After Max Time
Entering and Exiting PROBE_RTT
Skipping PROBE_RTT Due to Application-Limited Sending
Achieving Expected STARTUP Bandwidth on a Link With Aggregation
Achieving Expected Cruise Bandwidth on a Link With Aggregation
Correctly Managing Sub-Packet BDPs
Increasing Bandwidth 10x and Ensuring Full Bandwidth is Reached
Decreasing Bandwidth 10x and Ensuring Max Bandwidth Adapts Down
Handling Token Bucket Policers
Handling Spurious Fast Recovery
Handling Spurious RTO Recovery
Entering and Exiting PROBE_RTT During STARTUP
Handling Loss During PROBE_UP After inflight_longterm is Set
Handling Application-Limited Sending During PROBE_REFILL
"""

CASE = """
title = "A short buffer"
source = "a test"
tests = "Half of the rate in a buffer of 10 packets."
expect = ["phases.late.goodput_mbps >= 4.75", "senders.lost_share <= 0.5"]

[phases]
late = "500ms:1500ms"

[scenario]
duration = "1500ms"
topology.n_source = { sources = 1, link_rate = "10Mbps", link_delay = "1ms", access_rates = { default = "1Gbps" } }
port.bottleneck = { buffer = 10, policy.tail_drop = {} }
"""


def case(tmp_path, text=CASE, name="mine.toml"):
    path = tmp_path / name
    path.write_text(text)
    return str(path)


@pytest.fixture(scope="module")
def every():
    """Shipped cases with the senders that are simulated as models, and one seed: a third of them, at night all."""
    known = ["deep-buffer", "friendly-to-reno", "marking", "spare-capacity", "startup-plateau"]
    chosen = None if NIGHTLY else sorted({*known, *cases.names()[::3]})
    return ct.bottleneck(chosen, senders=["reno", "cubic", "dctcp", "bbr"])


def test_every_section_of_the_appendix_of_the_bbr_draft_has_a_bottleneck_case():
    sources = [one.source for one in cases.read_all(None)]
    for section in APPENDIX.strip().splitlines():
        assert sum(source.endswith(f": {section}") for source in sources) == 1, section
    assert len(sources) >= 30
    assert sorted(cases.names()) == sorted(path.stem for path in ROOT.glob("plans/bottleneck/*.toml"))


@pytest.mark.nightly
@pytest.mark.slow
def test_every_shipped_bottleneck_case_has_a_verdict_for_simulated_senders(every):
    for one in every["cases"]:
        for name in ("reno", "cubic"):
            found = one["senders"][name]
            assert (found["verdict"] == "cannot") == (one["name"] == "marking"), (one["name"], found["reason"])
            assert found["verdict"] == "cannot" or found["measures"]["goodput_mbps"]["mean"] > 0
    assert all(one["senders"]["dctcp"]["verdict"] != "cannot" for one in every["cases"])
    json.dumps(every, allow_nan=False)


@pytest.mark.slow
def test_the_verdicts_of_bottleneck_cases_show_known_differences_between_congestion_controls(every):
    verdict = {
        (one["name"], name): found["verdict"] for one in every["cases"] for name, found in one["senders"].items()
    }
    # RFC 9438, section 5.2: Reno does not use the spare capacity of a long fat path, and CUBIC does.
    assert (verdict["spare-capacity", "reno"], verdict["spare-capacity", "cubic"]) == ("fails", "holds")
    # A control that acts on loss alone fills any buffer; one that acts on marks does not.
    assert {verdict["deep-buffer", name] for name in ("reno", "cubic")} == {"fails"}
    assert verdict["marking", "dctcp"] == "holds"
    assert verdict["startup-plateau", "reno"] == verdict["friendly-to-reno", "reno"] == "holds"


def test_the_bottleneck_command_shows_why_a_sender_cannot_run_a_case():
    answer = ct.bottleneck(["marking"], senders=["reno", "smoltcp_cubic"])
    found = answer["cases"][0]["senders"]
    assert {one["verdict"] for one in found.values()} == {"cannot"}
    assert found["reno"]["reason"] == found["smoltcp_cubic"]["reason"] == "it has no ECN"
    wrong = {"wrong": {"stack": {"quic": {"congestion": "vegas"}}}}
    refused = ct.bottleneck(["startup-plateau"], senders=wrong)["cases"][0]["senders"]["wrong"]
    assert refused["verdict"] == "cannot" and '"vegas" is not one of' in refused["reason"]
    hidden = ct.bottleneck(["probe-rtt"], senders=["smoltcp_reno"])["cases"][0]["senders"]["smoltcp_reno"]
    assert hidden["verdict"] == "cannot" and "least_cwnd_segments' has no value" in hidden["reason"]


def test_senders_with_ecn_and_quic_senders_can_run_the_bottleneck_case_with_congestion_marks():
    chosen = ["bbr", "today", "quinn_cubic", "sack:ecn=on"]
    found = ct.bottleneck(["marking"], senders=chosen)["cases"][0]["senders"]
    assert set(found) == set(chosen)
    for one in found.values():
        assert one["verdict"] != "cannot" and one["measures"]["goodput_mbps"]["mean"] > 7, one


def test_the_verdict_on_quinn_bbr_is_reproducible_although_its_random_numbers_have_no_seed():
    first, second = (ct.bottleneck(["startup-plateau"], senders=["quinn_bbr"]) for _ in range(2))
    assert first == second and first["cases"][0]["senders"]["quinn_bbr"]["verdict"] != "cannot"


def test_a_user_defined_bottleneck_case_is_judged_for_senders_with_other_settings(tmp_path, celltrain):
    path = case(tmp_path)
    told = celltrain("bottleneck", path, "--senders", "sack:congestion=cubic,quic:initial_window=30kB", "--json")
    assert told.code == 0, told.err
    answer = json.loads(told.out)
    assert [one["name"] for one in answer["senders"]] == ["sack:congestion=cubic", "quic:initial_window=30kB"]
    [one] = answer["cases"]
    assert one["name"] == "mine" and set(one["senders"]) == {"sack:congestion=cubic", "quic:initial_window=30kB"}
    assert set(one["senders"]["sack:congestion=cubic"]["measures"]) == set(MEASURES)
    named = ct.bottleneck([path], senders={"small": {"tcp": {"sack": {"receive_window": "6kB"}}}})
    assert named["cases"][0]["senders"]["small"]["measures"]["goodput_mbps"]["mean"] < 9


class Windowed(ct.Stack):
    """Sends a window of packets, and the next one for each acknowledgement. It never repeats a packet."""

    window = 8
    mss = 1000

    def start(self):
        self.next, self.limit = 0, self.window
        self.acks = []

    def packet(self, number, length):
        header = b"\x45\0" + (24 + length).to_bytes(2, "big") + bytes(4) + b"\x40\xfd\0\0"
        return header + self.end.local + self.end.remote + number.to_bytes(4, "big") + bytes(length)

    def on_packet(self, now, packet):
        if self.end.side == "receiver":
            self.received = (self.received or 0) + 1000
            self.acks.append(self.packet(0, 0))
        else:
            self.limit += 1

    def poll(self, now):
        if self.end.side == "receiver":
            acks, self.acks = self.acks, []
            return acks
        numbers = range(self.next, self.limit)
        self.next = self.limit
        return [self.packet(number, 1000) for number in numbers]

    def next_timeout(self, now):
        return None


def test_a_user_defined_stack_can_be_a_sender_in_a_bottleneck_case(tmp_path):
    answer = ct.bottleneck([case(tmp_path)], senders={"mine": Windowed(window=9), "cubic": "cubic"})
    found = answer["cases"][0]["senders"]
    # In 6 ms, 10 Mb/s carry 7.2 packets of 1038 bytes, so 9 fill the link and two wait.
    assert found["mine"]["verdict"] == "holds", found["mine"]
    assert found["mine"]["measures"]["lost_share"]["mean"] == 0 < found["cubic"]["measures"]["lost_share"]["mean"]


@pytest.mark.slow
@pytest.mark.skipif(bool(unsuited()), reason="this machine cannot run emulations")
def test_the_linux_kernel_can_be_a_sender_in_a_bottleneck_case_unless_the_machine_is_too_slow(tmp_path):
    text = CASE.replace('link_delay = "1ms"', 'link_delay = "20ms"').replace("buffer = 10,", "buffer = 100,")
    text = text.replace('"500ms:1500ms"', '"1s:3s"').replace('duration = "1500ms"', 'duration = "3s"')
    found = ct.bottleneck([case(tmp_path, text)], senders=["linux", "linux_reno"])["cases"][0]["senders"]
    for one in found.values():
        if one["verdict"] == "cannot":
            assert "too slow" in one["reason"]
        else:
            assert 3 < one["measures"]["goodput_mbps"]["mean"] < 9.5
            assert one["measures"]["delay_ms_p50"]["mean"] is None


def test_a_bottleneck_case_that_the_linux_kernel_cannot_run_is_skipped_with_the_reason():
    sender = senders.shipped_senders()["linux"]
    [endless, limited] = cases.read_all(["startup-plateau", "limited-without-loss"])
    assert sender.lacks(endless) == "" and sender.lacks(limited) == "programs in Linux hosts send endless data only"


def test_an_expectation_reports_the_mean_with_its_interval_and_the_number_of_passing_seeds(tmp_path, celltrain):
    path = case(tmp_path, CASE.replace("sources = 1", "sources = 3"))
    answer = ct.bottleneck([path], senders=["reno"], seeds=4)
    found = answer["cases"][0]["senders"]["reno"]
    [first, _] = found["expectations"]
    assert first["left"]["low"] < first["left"]["mean"] < first["left"]["high"] and first["seeds_held"] == 4
    assert found["measures"]["fairness"]["low"] < found["measures"]["fairness"]["high"]
    again = ct.bottleneck([path], senders=["reno"], seeds=4, jobs=1)
    assert again == answer
    told = celltrain("bottleneck", path, "--senders", "reno", "--seeds", "4")
    assert told.code == 0 and "in 4 of 4 seeds" in told.out and "±" in told.out


def test_the_page_of_the_bottleneck_command_shows_every_measure_and_links_each_case_to_its_event_log(
    tmp_path, celltrain
):
    path, out = case(tmp_path), tmp_path / "out"
    told = celltrain("bottleneck", path, "--senders", "reno,quinn_cubic", "--out", out, "--qlog")
    assert told.code == 0 and "index.html" in told.out, told.err
    page = (out / "index.html").read_text()
    for heading, _ in MEASURES.values():
        assert heading in page
    answer = json.loads((out / "bottleneck.json").read_text())
    for name, found in answer["cases"][0]["senders"].items():
        assert f'href="{found["events"]}/"' in page
        assert (out / found["events"] / "run.sqlog").exists()
        assert ct.run(out / "mine" / name / "scenario.toml", seed=1).efficiency > 0.4
    assert ct.read_events(out / "mine" / "reno")["segments"].num_rows > 1000
    is_refused(celltrain("bottleneck", path, "--senders", "reno", "--out", out), ["is not empty; name another folder"])


def test_the_bottleneck_command_prints_verdicts_and_in_strict_mode_fails_if_a_sender_fails(tmp_path, celltrain):
    path = case(tmp_path, CASE.replace(">= 4.75", ">= 40"))
    told = celltrain("bottleneck", path, "--senders", "reno,cubic", "--brief")
    assert told.code == 0 and re.search(r"mine +fails +fails", told.out)
    assert celltrain("bottleneck", path, "--senders", "reno", "--brief", "--strict").code == 1
    csv = celltrain("bottleneck", path, "--senders", "reno", "--csv", "-")
    assert csv.out.splitlines()[0].startswith("case,sender,verdict,goodput_mbps")
    answer = ct.bottleneck([path], senders=["reno"])
    assert [one.heads[0] for one in blocks(answer) if isinstance(one, Grid)] == ["case", "sender", "sender"]


def test_the_bottleneck_command_prints_the_scenario_of_a_case_and_a_sender(tmp_path, celltrain):
    told = celltrain("bottleneck", case(tmp_path), "--senders", "cubic", "--toml")
    assert told.code == 0
    file = tmp_path / "printed.toml"
    file.write_text(told.out)
    scenario = ct.load(file)
    assert scenario.tcp.congestion == "cubic" and scenario.tcp.initial_window == 10
    is_refused(celltrain("bottleneck", "--toml"), ["prints one scenario", "name one case"])


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('title = "A short buffer"', "", "mine.toml:1: title is missing"),
        ("[phases]", "[phase]", "phase is unknown; did you mean phases?"),
        ("500ms:1500ms", "2s:1s", "is not a window such as"),
        ("phases.late.goodput_mbps >=", "phases.early.goodput_mbps >=", "names a phase that the case lacks"),
        ("phases.late.goodput_mbps >= 4.75", "phases.late.goodput_mbps", "is not a comparison of measures"),
        ("senders.lost_share <= 0.5", "senders.lost <= 0.5", "mine.toml: expect: 'senders.lost' is not in the result"),
        ('duration = "1500ms"', "", "scenario.duration is missing"),
        ("buffer = 10,", "buffer = 10, buffers = 3,", "mine.toml: scenario.port.bottleneck.buffers is unknown"),
        ("[phases]", 'needs = ["pace"]\n[phases]', "needs = 'pace' is unknown; choose from ecn"),
    ],
)
def test_errors_in_a_bottleneck_case_are_reported_with_their_location(tmp_path, celltrain, old, new, problem):
    assert old in CASE
    is_refused(celltrain("bottleneck", case(tmp_path, CASE.replace(old, new)), "--senders", "reno"), [problem])


def test_the_error_for_an_unknown_bottleneck_case_or_sender_suggests_a_similar_name(celltrain):
    is_refused(celltrain("bottleneck", "polcier"), ["polcier", "did you mean policer?"])
    is_refused(celltrain("bottleneck", "policer", "--senders", "cubik"), ["cubik", "did you mean cubic?"])
    is_refused(celltrain("bottleneck", "policer", "--qlog"), ["--qlog needs the folder"])
    with pytest.raises(ct.InputError, match="is not a number of runs"):
        ct.bottleneck(["policer"], seeds=0)
    with pytest.raises(ct.InputError, match="is not a number of threads"):
        ct.bottleneck(["policer"], jobs=0)


def test_the_time_until_flows_converge_is_computed_from_their_delivered_bytes():
    import numpy as np

    times = np.arange(0, 10.005, 0.01)
    # The second flow starts after 2 s and has its share from 4 s on.
    second = np.where(times < 2, 0, np.where(times < 4, 0.1, 0.5)) * 1.25e6
    delivered = {"a": np.cumsum(1.25e6 - second) * 0.01, "b": np.cumsum(second) * 0.01}
    queue = np.linspace(0, 10, len(times))
    series = {
        "time_s": times,
        "delivered_bytes": {name: rows - rows[0] for name, rows in delivered.items()},
        "cwnd_segments": {"a": queue + 1},
        **dict.fromkeys(("queue_cells", "queue_cells_least", "queue_cells_largest"), queue),
    }
    flows = [{"name": name, "traffic": "greedy", "goodput_mbps": rate} for name, rate in (("a", 6.0), ("b", 4.0))]
    flows.append({"name": "cross", "traffic": "constant_rate", "goodput_mbps": 0.0})
    port = {"name": "p", "lost_cells": 1, "discarded_cells": 2, "offered_cells": 60}
    answer = {"flows": flows, "ports": [port], "bottleneck": "p"}
    [one] = cases.read_all(["convergence"])
    made = derived(one, answer, series)
    assert made["senders"]["goodput_mbps"] == 10 and made["senders"]["lost_share"] == 0.05
    # Within a third of the mean over a window of 0.5 s: for three tenths of it at 4.3 s.
    assert made["senders"]["convergence_s"] == pytest.approx(2.3, abs=0.1)


def test_expectations_of_bottleneck_cases_compare_measures_and_refuse_anything_else():
    answer = {"a": 3.0, "b": 2.0}
    for text, holds in (("a >= 3", True), ("a > 3", False), ("2 * b > a", True), ("a + b <= 4.9", False)):
        expectation = Expectation.of(text, {})
        assert expectation.holds(*expectation.values(answer)) is holds


def test_a_new_bottleneck_sender_or_case_needs_no_code():
    known = senders.shipped_senders()
    assert list(known)[:3] == ["reno", "newreno", "cubic"]
    assert all(sender.meaning for sender in known.values())
    assert [one.name for one in senders.read_all(None)] == [name for name, one in known.items() if not one.only_named]
