"""Flows with real transport stacks have the same features as other flows, or an error names the missing feature."""

from __future__ import annotations

import inspect
import json
import random
import re
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import ROOT, WITHOUT_POLICY, is_refused

import celltrain as ct
from celltrain.model.network import network
from celltrain.model.policy_files import stack_of_class

#: Two connections of smoltcp share a switch with one connection of simulated TCP.
MIXED = ct.n_source(
    sources=3,
    link_rate="8Mbps",
    link_delay="1ms",
    buffer_cells=100,
    policy=ct.Epd(threshold=80),
    duration="300ms",
).replace(flow={"tcp1-2": ct.FlowOptions(stack=ct.Smoltcp())})
VERSION = "smoltcp 0.14.0"


@pytest.fixture(scope="module")
def result() -> ct.RunResult:
    return ct.run(MIXED, seed=2, trace=["queue", "cwnd"], step="10ms")


def test_a_result_lists_all_flows_and_the_version_of_each_protocol_stack(result):
    flows = result.flows.to_pydict()
    assert flows["stack"] == [VERSION, VERSION, ""]
    assert min(flows["goodput_mbps"]) > 0.1
    assert flows["timeouts"][:2] == [None, None]
    assert flows["timeouts"][2] is not None
    assert max(result.series["queue"]["queue_cells_largest"].to_pylist()) > 80


def test_with_protocol_stacks_both_engines_give_the_same_fingerprint_which_depends_on_the_seed(result):
    assert ct.run(MIXED, seed=2, engine="reference").fingerprint == result.fingerprint
    assert ct.run(MIXED, seed=3).fingerprint != result.fingerprint


def test_the_congestion_window_series_and_plot_exclude_flows_whose_stack_hides_its_window(result):
    cwnd = result.series["cwnd"].to_pydict()
    assert {*cwnd["flow"]} == {"tcp3"}
    assert min(cwnd["cwnd_segments"]) >= 1
    assert len(result.plot.cwnd().get_lines()) == 1
    over, measures = {"port.bottleneck.buffer": [100]}, ["series.mean_window.tcp3"]
    store = ct.sweep(MIXED.replace(duration="3s"), over=over, seeds=1, measures=measures)
    assert store.wide(measures=measures)["series.mean_window.tcp3"].to_pylist()[0] > 1
    with pytest.raises(ct.ScenarioError, match="cwnd cannot be recorded: the stacks of all flows hide their windows"):
        ct.run("lan-smoltcp", trace=["cwnd"])


QUIC = MIXED.replace(flow={"tcp1-2": ct.FlowOptions(stack=ct.Quic(congestion="new_reno"))})


def test_a_quic_flow_runs_on_both_engines_and_reports_its_congestion_window_and_its_losses(tmp_path):
    run = ct.run(QUIC, seed=2, trace=["cwnd"], step="10ms", pcap=tmp_path / "quic.pcapng")
    flows = run.flows.to_pydict()
    assert flows["stack"] == ["quic 0.11.19 (congestion=new_reno)"] * 2 + [""]
    assert min(flows["goodput_mbps"][:2]) > 0.1
    assert min(flows["retransmitted_segments"][:2]) > 0
    assert [window is None for window in flows["timeouts"]] == [True, True, False]
    cwnd = run.series["cwnd"].to_pydict()
    windows = [window for flow, window in zip(cwnd["flow"], cwnd["cwnd_segments"], strict=True) if flow == "tcp1"]
    assert max(windows) > flows["cwnd_segments"][0] > 1
    # Packets are not encrypted, so a capture shows the first lines of the streams.
    assert (tmp_path / "quic.pcapng").read_bytes().count(b"000000000000000\n000000000000010\n") >= 3
    assert ct.run(QUIC, seed=2, engine="reference").fingerprint == run.fingerprint
    assert ct.run(QUIC, seed=3).fingerprint != run.fingerprint


def test_the_congestion_control_of_quic_can_be_an_axis_of_a_sweep():
    over = {"stack.quic.congestion": ["new_reno", "cubic"], "stack.quic.mtu": ["1228B", "1500B"]}
    plain = MIXED.replace(flow={}, stack=ct.Quic())
    store = ct.sweep(plain, over=over, seeds=1, measures=["efficiency"], limit="60s")
    assert len({*store.wide(measures=["efficiency"])["efficiency"].to_pylist()}) == 4


@pytest.mark.filterwarnings("ignore:2 seeds are few")
def test_protocol_stacks_can_be_compared_and_swept():
    plain = MIXED.replace(flow={})
    compared = ct.compare(plain, vary={"stack": ["as-is", "smoltcp", "smoltcp:congestion=cubic"]}, seeds=2)
    assert len({*compared.fingerprints.ravel()}) == 6
    sizes = {"stack.smoltcp.receive_window": ["10kB", "40kB"]}
    store = ct.sweep(plain.replace(stack=ct.Smoltcp()), over=sizes, seeds=1, measures=["efficiency"], limit="60s")
    assert min(store.wide(measures=["efficiency"])["efficiency"].to_pylist()) > 0.1


def test_a_time_limit_ends_a_run_with_protocol_stacks():
    endless = MIXED.replace(duration="100000s")
    store = ct.sweep(endless, over={"port.bottleneck.buffer": [100]}, seeds=1, limit="50ms")
    assert "took longer than 0.05 s" in store.wide(measures=["efficiency"])["error"].to_pylist()[0]


def test_events_and_captures_contain_the_packets_of_protocol_stacks(tmp_path, result):
    choice = ct.Events(tmp_path / "events", kinds=["segments"])
    run = ct.run(MIXED, seed=2, events=choice, pcap=tmp_path / "stacks.pcapng")
    assert run.fingerprint == result.fingerprint
    segments = ct.read_events(tmp_path / "events")["segments"].to_pydict()
    hosted = [event for event, flow in zip(segments["event"], segments["flow"], strict=True) if flow == "tcp1"]
    assert {"sent", "arrived", "ack_sent", "acknowledged"} <= {*hosted}
    # The first line of each stream of smoltcp is in its first segment.
    capture = (tmp_path / "stacks.pcapng").read_bytes()
    assert capture.count(b"000000000000000\n000000000000010\n") >= 3


def test_the_why_command_explains_a_packet_loss_of_a_protocol_stack(result):
    answer = ct.why(MIXED, flow="tcp1", at="200ms", seed=2)
    assert not answer.is_well
    assert re.search("the sender had retransmitted .* for reasons that the stack does not report", str(answer))


def test_the_why_command_omits_or_refuses_flows_without_sequence_numbers(celltrain):
    for arguments in ([], ["--at", "5ms"], ["--flow", "tcp2", "--at", "5ms", "--json"]):
        answer = celltrain("why", "lan-quic", "--set", "duration=20ms", *arguments)
        assert answer.code == 2
        assert "stack.quic: no packet before 0.02 s has TCP sequence numbers" in answer.err + answer.out
        assert "celltrain run FILE --events DIR --kinds frames" in answer.err + answer.out
    python = hosting(Windowed(), flow={"tcp2": ct.FlowOptions(tcp=ct.Reno())})
    for mixed, flow, hidden in ((QUIC, "tcp3", "tcp1, tcp2"), (python, "tcp2", "tcp1, tcp3")):
        with pytest.warns(ct.CelltrainWarning, match=f"^not shown: {hidden} use "):
            assert ct.episodes(mixed, seed=2).flow == flow
        with pytest.warns(ct.CelltrainWarning, match=f"^not shown: {hidden} use "):
            assert ct.why(mixed, seed=2, at="20ms").flow == flow
        with pytest.raises(ct.ScenarioError, match=r"^tcp1 uses "):
            ct.why(mixed, flow="tcp1", seed=2, at="20ms")
        assert ct.why(mixed, flow=flow, seed=2, at="20ms").flow == flow


@pytest.mark.parametrize(
    "setting, words",
    [
        ('mtu = "1200B"', ['mtu = "1.2kB"', "must be from 1228B (1200 bytes for QUIC and 28 bytes of headers)"]),
        ('mtu = "65528B"', ["to 65527B (the maximum of AAL5 with LLC/SNAP)"]),
        (
            'congestion = "vegas"',
            ['"vegas" is not one of "new_reno", "cubic", "bbr"\n'],
        ),
        ('receive_window = "1kB"', ["receive_window", "must be from two packets (3000B)"]),
    ],
)
def test_impossible_quic_settings_are_refused_with_a_message(tmp_path, celltrain, setting, words):
    path = tmp_path / "mine.toml"
    path.write_text(f"{WITHOUT_POLICY}policy.epd = {{}}\n[stack.quic]\n{setting}\n")
    is_refused(celltrain("run", path), [f"{path}:12: stack.quic.{setting.split()[0]}", *words])


@pytest.mark.parametrize(
    "stack, words",
    [
        ('receive_window = "1500MB"', ["receive_window", "the maximum of smoltcp"]),
        ('mss = "65495B"', ["frames of 65543 bytes with headers, but AAL5 can carry only 65535"]),
        ('congestion = "bbr"', ['is not one of "none", "reno", "cubic"']),
        ("[stack.quick]", ["stack.quick is unknown"]),
    ],
)
def test_impossible_protocol_stack_settings_are_refused_with_a_message(tmp_path, celltrain, stack, words):
    path, out = tmp_path / "mine.toml", tmp_path / "mine.pcapng"
    table = stack if stack.startswith("[") else f"[stack.smoltcp]\n{stack}"
    path.write_text(f"{WITHOUT_POLICY}policy.epd = {{}}\n{table}\n")
    is_refused(celltrain("run", path, "--pcap", out), [str(path), *words])
    assert not out.exists()


class Windowed(ct.Stack):
    """A stack with numbered packets, of which at most `window` are unacknowledged. A timeout resends all of those."""

    window = 8

    def start(self):
        self.oldest = self.next = 0
        self.timeout = None
        self.acks = []

    def packet(self, number: int, length: int) -> bytes:
        header = b"\x45\0" + (24 + length).to_bytes(2, "big") + bytes(4) + b"\x40\xfd\0\0" + self.end.local
        return header + self.end.remote + number.to_bytes(4, "big") + bytes(length)

    def on_packet(self, now, packet):
        number = int.from_bytes(packet[20:24], "big")
        if self.end.side == "receiver":
            self.oldest += number == self.oldest
            self.received = min(self.payload * self.oldest, self.end.file_bytes or sys.maxsize)
            self.acks.append(self.packet(self.oldest, 0))
        elif number > self.oldest:
            self.oldest, self.next, self.timeout = number, max(self.next, number), now + 20_000_000
            self.completed = self.oldest == self.packets

    @property
    def payload(self):
        return getattr(self, "mss", 512)

    @property
    def packets(self):
        return None if self.end.file_bytes is None else -(-self.end.file_bytes // 512)

    def poll(self, now):
        if self.end.side == "receiver":
            acks, self.acks = self.acks, []
            return acks
        if self.timeout is None or now >= self.timeout:
            self.next, self.timeout = self.oldest, now + 20_000_000
        last = self.oldest + self.window
        numbers = range(self.next, last if self.packets is None else min(last, self.packets))
        self.next = max(self.next, numbers.stop)
        return [self.packet(number, self.payload) for number in numbers]

    def next_timeout(self, now):
        return None if self.completed else self.timeout


class Raises(Windowed):
    def on_packet(self, now, packet):
        raise OSError("no route")


class RaisesAtStart(Windowed):
    def start(self):
        raise OSError("no route")


class LooksBack(Windowed):
    def next_timeout(self, now):
        return now - 1


class Wordy(Windowed):
    def poll(self, now):
        return ["a text"]


class Soon(Windowed):
    def next_timeout(self, now):
        return 0.5


class Jumbo(Windowed):
    def poll(self, now):
        return [bytes(65_600)]


class Halved(Windowed):
    received = "half"


class Generous(Windowed):
    def poll(self, now):
        self.received = 10**12
        return super().poll(now)


class Stuck(Windowed):
    def next_timeout(self, now):
        return now


class CountsHeaders(Windowed):
    """The packets are TCP segments. Their receiver also reports headers."""

    header = 20

    def packet(self, number: int, length: int) -> bytes:
        start = b"\x45\0" + (40 + length).to_bytes(2, "big") + bytes(4) + b"\x40\x06\0\0" + self.end.local
        tcp = bytes(4) + (512 * number).to_bytes(4, "big") + number.to_bytes(4, "big") + b"\x50\x10" + bytes(6)
        return start + self.end.remote + tcp + bytes(length)

    def on_packet(self, now, packet):
        if self.end.side == "receiver":
            number = int.from_bytes(packet[24:28], "big") // 512
        else:
            number = int.from_bytes(packet[28:32], "big")
        super().on_packet(now, bytes(20) + number.to_bytes(4, "big"))
        if self.end.side == "receiver":
            self.received = (512 + self.header) * self.oldest


class Finished(Windowed):
    def poll(self, now):
        self.completed = self.end.side == "sender"
        return []


class Elsewhere(Windowed):
    change: int = 16

    def packet(self, number: int, length: int) -> bytes:
        packet = bytearray(super().packet(number, length))
        packet[self.change] ^= 0xFF
        return bytes(packet)


#: Serves a stack over standard input and output, as `celltrain_hosts::serve` does.
SERVED = """
import struct, sys, types
class Stack:
    received, completed = 0, False
{source}
def read(form):
    data = sys.stdin.buffer.read(struct.calcsize(form))
    return struct.unpack(form, data) if data else None
_, side, local, remote, seed = read("<BB4s4sQ")
stack = Windowed()
stack.end = types.SimpleNamespace(side="receiver" if side else "sender", local=local, remote=remote, file_bytes=None)
stack.start()
while call := read("<cQ"):
    if call[0] == b"p":
        stack.on_packet(call[1], sys.stdin.buffer.read(*read("<I")))
        continue
    packets = stack.poll(call[1])
    out = struct.pack("<I", len(packets)) + b"".join(struct.pack("<I", len(packet)) + packet for packet in packets)
    timeout = stack.next_timeout(call[1])
    out += struct.pack("<QQ?", 2**64 - 1 if timeout is None else timeout, stack.received, stack.completed)
    sys.stdout.buffer.write(out)
    sys.stdout.buffer.flush()
"""

#: Methods that every stack must have.
METHODS = """
    def on_packet(self, now, packet): ...
    def poll(self, now): return []
    def next_timeout(self, now): return None
"""


class Measured(Windowed):
    mss: int = 1000


class Long(Windowed):
    def poll(self, now):
        return [self.packet(0, 1476)]


class Loops(Windowed):
    def poll(self, now):
        while True:
            pass


class Tiny(Windowed):
    def poll(self, now):
        return [b"x"]


class Endless(Windowed):
    def poll(self, now):
        packet = self.packet(0, 512)
        while True:
            yield packet


class Dice(Windowed):
    careful = False
    name = "dice"

    def next_timeout(self, now):
        return now + random.randrange(1, 10**6)


class Late(Windowed):
    def next_timeout(self, now):
        return super().next_timeout(now) if now < 3 * 10**8 else now + random.randrange(1, 10**6)


class NoPoll(ct.Stack):
    def on_packet(self, now, packet):
        pass

    def next_timeout(self, now):
        return None


def hosting(stack: ct.Stack, **changes) -> ct.Scenario:
    lan = ct.n_source(
        sources=3, link_rate="8Mbps", link_delay="1ms", buffer_cells=100, policy=ct.Epd(), duration="40ms"
    )
    return lan.replace(**{"stack": stack, **changes})


def test_a_python_stack_runs_on_both_engines_together_with_other_flows(tmp_path):
    others = {
        "tcp1": ct.FlowOptions(stack=Windowed(window=2), traffic=ct.File(bytes="3kB")),
        "tcp2": ct.FlowOptions(tcp=ct.Reno()),
    }
    mixed = hosting(Windowed(), flow=others)
    run = ct.run(mixed, pcap=tmp_path / "mine.pcapng")
    flows = run.flows.to_pydict()
    assert flows["stack"] == [f"{__name__}:Windowed (window=2)", "", f"{__name__}:Windowed"]
    assert flows["completion_s"][0] > 0
    assert min(flows["goodput_mbps"]) > 0
    # The packets of the stack are neither TCP nor UDP.
    for name in ("segments_sent", "retransmitted_segments", "repeated_segments", "throughput_mbps"):
        assert [value is None for value in flows[name]] == [True, False, True]
    assert "tcp3" in str(run)
    assert ct.run(mixed, engine="reference").fingerprint == run.fingerprint
    assert ct.run(hosting(Windowed(window=4), flow=others)).fingerprint != run.fingerprint


def test_a_python_stack_setting_can_be_an_axis_of_a_sweep():
    store = ct.sweep(hosting(Windowed()), over={"stack.python.settings.window": [1, 4]}, seeds=1)
    one, four = store.wide(measures=["efficiency"])["efficiency"].to_pylist()
    assert 0 < one < four


@pytest.mark.parametrize(
    "stack, words",
    [
        (Raises(), r"Raises\.on_packet for the receiver of tcp\d, now \d+ ns: OSError: no route"),
        (LooksBack(), r"LooksBack\.next_timeout for the sender .* it returned -\d+|a time in the past"),
        (
            Wordy(),
            r"Wordy\.poll for the sender of .* item 0 of the returned packets is the str 'a text', but must be bytes",
        ),
        (Soon(), r"Soon\.next_timeout .* the method returned the float 0\.5, but must return whole nanoseconds"),
        (Jumbo(), r"65600 bytes: the IP version is 0, but must be 4"),
        (Tiny(), r"a packet of 1 bytes: the packet is shorter than an IP header \(20 bytes\)"),
        (Elsewhere(change=0), r"the IP version is 11, but must be 4"),
        (Elsewhere(change=3), r"the IP header states a total length of \d+ bytes"),
        (Elsewhere(change=12), r"the source address is [\d.]+, but must be the local address of its end \([\d.]+\)"),
        (
            Elsewhere(change=16),
            r"the destination address is [\d.]+, but must be the remote address of its end \([\d.]+\)",
        ),
        (Generous(), r"received is 1000000000000, but only \d+ bytes of IP payload have arrived"),
        (
            CountsHeaders(),
            r"CountsHeaders\.received for the receiver of tcp\d, now \d+ ns: received is 532, but only 512 bytes",
        ),
        (
            Long(),
            r"a packet of 1500 bytes: an mss of 512 bytes allows at most 552 bytes; send less, or allow it: mss = 1460",
        ),
        (Endless(), r"returned more than 50000 packets at once"),
        (Halved(), r"its received is the str 'half', but must be a number of bytes"),
        (NoPoll(), r"has no poll\(self, now\); add it to return the packets to send"),
    ],
)
def test_an_exception_in_a_python_stack_ends_the_run_and_names_the_call(stack, words):
    with pytest.raises(ct.ScenarioError, match=words):
        ct.run(hosting(stack))
    assert ct.run(hosting(Windowed())).efficiency > 0
    assert ct.run(hosting(CountsHeaders(header=0))).efficiency > 0


#: For each method or attribute, a wrong value and a part of the message.
OTHER = {
    "poll": {
        "None": (None, "None, but must return a list of bytes; return [] to send nothing"),
        "number": (7, "7, but must return a list of bytes"),
        "bytes": (b"E", "the bytes b'E', but must return a list of bytes; put a packet into a list, as in [packet]"),
        "text": ("E", "the str 'E', but must return a list of bytes; put a packet into a list"),
        "array": (bytearray(2), "the bytearray bytearray(b'\\x00\\x00'), but must return a list of bytes; put"),
        "item": ([None], "item 0 of the returned packets is None, but must be bytes"),
        "view": (
            [memoryview(b"E")],
            "item 0 of the returned packets is a memoryview, but must be bytes; convert",
        ),
        "items": ((one for one in (bytearray(1),)), "item 0 of the returned packets is the bytearray"),
    },
    "next_timeout": {
        "text": ("soon", "the method returned the str 'soon', but must return whole nanoseconds"),
        "float": (1e9, "the method returned the float 1000000000.0, but must return whole nanoseconds"),
        "list": ([], "the method returned the list [], but must return whole nanoseconds"),
        "negative": (-(10**30), "whole nanoseconds"),
        "past": (-1, "the method returned -1, a time in the past"),
        "generator": ((one for one in ()), "the method returned a generator, but must return whole nanoseconds"),
    },
    "on_packet": {
        "packets": ([b"E"], "the method returned the list [b'E'], but must return None; poll returns packets to send"),
        "generator": ((one for one in ()), "the method returned a generator, but must return None"),
    },
    "start": {"generator": ((one for one in ()), "start() returned a generator, but must return None")},
    "received": {
        "float": (1.0, "its received is the float 1.0, but must be a number of bytes"),
        "None": (None, "its received is None, but must be a number of bytes"),
        "negative": (-1, "its received is -1, but must be a number of bytes, as an int from 0 on"),
    },
    "completed": {"text": ("yes", "its completed is the str 'yes', but must be True or False")},
}
WRONG = [(place, kind) for place, kinds in OTHER.items() for kind in kinds]


@pytest.mark.parametrize(("place", "kind"), WRONG)
def test_the_error_for_a_wrong_return_value_of_a_stack_names_the_correct_type(place, kind):
    value, words = OTHER[place][kind]
    attribute = value if place in ("received", "completed") else lambda self, *given: value
    wrong = type("Wrong", (Windowed,), {place: attribute})
    with pytest.raises(ct.ScenarioError, match=re.escape(words)) as raised:
        ct.run(hosting(wrong()))
    method = {"received": "received and completed", "completed": "received and completed"}.get(place, place)
    assert f"Wrong.{method} for the " in str(raised.value) or place == "start"


class Never(Windowed):
    def next_timeout(self, now):
        return super().next_timeout(now) or 10**30


def test_a_timeout_of_a_python_stack_later_than_the_maximum_simulated_time_never_expires():
    assert ct.run(hosting(Never())).fingerprint == ct.run(hosting(Windowed())).fingerprint


class Floods(Windowed):
    """Sends a hundred packets every microsecond. About 16,000 packets with a full `mss` add up to a gigabyte."""

    mss = 60_000

    def poll(self, now):
        self.timeout = now + 1000
        return [self.packet(0, 16)] * 100 if self.end.side == "sender" else []


def test_the_error_for_a_stack_that_floods_its_host_states_the_number_of_packets():
    words = (
        r"Floods\.poll for the sender of tcp1, now \d+ ns: it has sent 16\d00 packets with \d{6} bytes; 16\d+ of them have "
        r"not arrived, and \d+ cells wait at the port of its host; send only what a window or a rate allows"
    )
    with pytest.raises(ct.ScenarioError, match=words):
        ct.run(hosting(Floods(), port={"bottleneck": {"buffer": 2000, "policy": ct.Epd()}}))


def test_in_python_the_losses_of_a_link_may_be_one_rule_or_a_list_of_rules():
    loss = ct.Loss(flow="tcp1", packets=[3])
    without = ct.run(hosting(Windowed())).fingerprint
    found = set()
    for rules in (loss, [loss], [{"flow": "tcp1", "packets": [3]}]):
        run = ct.run(hosting(Windowed(), link={"source1->sw1": ct.LinkOptions(lose=rules)}))
        assert [row["cut_frames"] for row in run.to_dict()["links"]] == [1]
        found.add(run.fingerprint)
    assert len(found) == 1 and without not in found
    with pytest.raises(ct.ScenarioError, match=re.escape('"lose": ...}}, which replaces the whole table')):
        hosting(Windowed(), **{"link.source1->sw1.lose": [loss]})
    with pytest.raises(ct.ScenarioError, match=r"is not a list; put it into brackets, as in \[\.\.\.\]"):
        hosting(Windowed(), link={"source1->sw1": {"lose": {"flow": "tcp1"}}})


@pytest.mark.slow
def test_the_run_plot_shows_only_queues_for_flows_that_do_not_report_congestion_windows(tmp_path, celltrain):
    figure = tmp_path / "x.png"
    arguments = ("run", "lan-smoltcp", "--set", "duration=20ms", "--plot", figure)
    answer = celltrain(*arguments)
    assert (answer.code, figure.exists()) == (0, True)
    assert "The figure has no congestion windows: the stacks of all flows hide them." in answer.err + answer.out
    is_refused(celltrain(*arguments, "--trace", "cwnd"), ["cwnd cannot be recorded"])


def test_the_error_for_a_missing_stack_or_policy_file_begins_with_the_file_name(tmp_path, celltrain, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for setting in ("stack=min.py:Mine", "port.bottleneck.policy=min.py:Mine"):
        answer = celltrain("run", "lan-epd", "--set", setting)
        is_refused(answer, ["min.py: there is no such file"])
        assert "CELLTRAIN_POLICIES" not in answer.err


def test_the_explain_command_shows_all_models_with_the_same_name_under_separate_headings(celltrain):
    answer = celltrain("explain", "python")
    assert answer.code == 0
    for words in (
        "python as a policy (policies/python):",
        "python as a transport stack (stacks/python):",
        "real-stacks",
    ):
        assert words in answer.out


def test_the_mss_attribute_of_a_python_stack_is_the_maximum_payload_of_its_packets(tmp_path, monkeypatch):
    long = hosting(Measured(mss=1460))
    assert long.to_dict()["stack"]["python"]["mss"] == "1460B"
    assert hosting(Measured()).to_dict()["stack"]["python"]["mss"] == "1000B"
    # A link of 8 Mb/s carries 1460 bytes in 32 cells.
    efficiency = ct.run(long.replace(duration="200ms")).efficiency
    assert 0.1 < efficiency <= 1
    own = Path(tmp_path / "ownstack.py")
    own.write_text("import celltrain as ct\n\n\nclass Own(ct.Stack):\n    mss = 900\n" + METHODS)
    monkeypatch.setenv("CELLTRAIN_POLICIES", "ownstack")
    monkeypatch.chdir(tmp_path)
    named = stack_of_class("ownstack.py:Own", tmp_path, ())
    assert named == ("Own", {"python": {"class": "ownstack:Own", "mss": "900B"}})
    own = {"class": "ownstack:Own", "settings": {"mss": 700, "kind": "new"}, "mss": "700B"}
    assert stack_of_class("ownstack.py:Own:mss=700:kind=new", tmp_path, ()) == ("Own:mss=700:kind=new", {"python": own})
    # A file that names the stack class must give the same mss.
    (tmp_path / "other.toml").write_text(f'{WITHOUT_POLICY}policy.epd = {{}}\n[stack.python]\nclass = "ownstack:Own"\n')
    [fault] = ct.check(tmp_path / "other.toml")
    assert (fault.key, fault.value) == ("stack.python.mss", '"512B"')
    assert fault.problem == 'differs from 900 bytes, the mss of the class; write mss = "900B"'


def test_the_error_for_an_endless_loop_in_a_python_stack_names_the_line_of_the_loop():
    handle = ct.Cancel()
    threading.Timer(0.3, handle.cancel).start()
    with pytest.raises(ct.CancelledError) as raised:
        ct.run(hosting(Loops()), cancel=handle)
    [note] = raised.value.__notes__
    assert re.match(r"during .*:Loops\.poll for the sender of tcp\d, now 0 ns:", note)
    assert "pass" in note or "while True" in note


@pytest.mark.slow
def test_a_python_stack_that_never_clears_an_expired_timer_aborts_the_run():
    words = r"Stuck\.next_timeout for the (sender|receiver) of tcp\d, now \d+ ns: .* 100000 polls within 10 ms"
    with pytest.raises(ct.ScenarioError, match=words):
        ct.run(
            ct.n_source(sources=1, link_delay="50us", buffer_cells=100, policy=ct.Epd(), duration="9ms").replace(
                stack=Stuck()
            )
        )


def test_a_python_stack_cannot_report_a_file_as_acknowledged_before_sending_the_file():
    with pytest.raises(
        ct.ScenarioError, match=r"Finished\.completed .* completed is true, but only 0 of the 3000 bytes"
    ):
        ct.run(hosting(Finished(), flow={"tcp1": ct.FlowOptions(traffic=ct.File(bytes="3kB"))}))


class Prepared(Windowed):
    def __init__(self, width=3):
        super().__init__()
        self.width = width


class Careless(Windowed):
    def __init__(self):
        pass


def test_instance_attributes_of_a_stack_or_policy_that_would_be_lost_in_a_run_are_refused():
    changed = Windowed()
    changed.window = 2
    words = (
        "Windowed.window = 2 has no effect, because a run makes new objects; make window a class attribute, and write"
    )
    for stack, problem in (
        (changed, f"{words} Windowed(window=2)"),
        (Prepared(5), "Prepared.width = 5 has no effect"),
        (Careless(), "does not call super().__init__(**settings)"),
    ):
        with pytest.raises(ct.ScenarioError, match=re.escape(problem)):
            ct.run(hosting(stack))
    assert ct.run(hosting(Prepared())).efficiency > 0


@pytest.mark.parametrize(
    "setting, words",
    [
        ({"careful": "maybe"}, "careful = 'maybe' is not True or False, as the default False is"),
        ({"careful": 1}, "careful = 1 is not True or False"),
        ({"window": True}, "window = True is not a number, as the default 8 is"),
        ({"window": "8"}, "window = '8' is not a number"),
        ({"name": 3}, "name = 3 is not a text, as the default 'dice' is"),
    ],
)
def test_a_python_stack_setting_must_have_the_type_of_its_default_value(setting, words):
    with pytest.raises(ct.ScenarioError, match=re.escape(words)):
        Dice(**setting)


def test_the_check_command_reports_a_nondeterministic_stack():
    assert ct.check(hosting(Windowed())) == []
    [fault] = ct.check(hosting(Dice()))
    assert (fault.key, fault.value) == ("stack.python.class", f'"{__name__}:Dice"')
    assert fault.problem.startswith("gives another result when it runs again")


def test_the_check_of_a_stack_detects_nondeterminism_that_starts_after_300_ms():
    # From 300 ms on, each run draws different timeouts.
    [fault] = ct.check(hosting(Late(), duration="900ms"))
    assert fault.problem.startswith("gives another result when it runs again")


def test_a_run_without_tcp_and_udp_packets_gives_a_warning_instead_of_a_qlog_file(tmp_path):
    with pytest.warns(ct.CelltrainWarning, match="no flow sent TCP, UDP or QUIC"):
        ct.run(hosting(Windowed()), qlog=tmp_path / "run.sqlog")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_in_rust", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_an_external_program_can_be_the_protocol_stack_at_both_ends_of_a_flow(
    tmp_path, celltrain, monkeypatch, is_in_rust
):
    if is_in_rust:
        command = ["cargo", "build", "--locked", "--manifest-path", str(ROOT / "examples/own-stack/Cargo.toml")]
        subprocess.run([*command, "--target-dir", str(tmp_path)], check=True, capture_output=True)
        command = [str(tmp_path / "debug/own-stack"), "8"]
    else:
        source = inspect.getsource(Windowed).replace("ct.Stack", "Stack")
        (tmp_path / "served.py").write_text(SERVED.replace("{source}", source))
        command = [sys.executable, str(tmp_path / "served.py")]
    shutil.copy(ROOT / "examples/own-stack/program.py", tmp_path)
    monkeypatch.setenv("CELLTRAIN_POLICIES", "program")
    monkeypatch.chdir(tmp_path)
    ct.save(hosting(Windowed()).replace(stack=None), tmp_path / "lan.toml")
    arguments = ("run", "lan.toml", "--json", "--set")
    answer = celltrain(*arguments, f"stack=program.py:Program:command={shlex.join(command)}")
    assert answer.code == 0, answer.err
    found, expected = json.loads(answer.out), ct.run(hosting(Windowed())).to_dict()
    assert found["cells"] == expected["cells"]
    assert [flow["delivered_bytes"] for flow in found["flows"]] == [
        flow["delivered_bytes"] for flow in expected["flows"]
    ]
    assert is_in_rust or found["fingerprint"] == expected["fingerprint"]
    for program, words in (
        (":command=/bin/false", "the program has ended with code 1"),
        (":command=/bin/cat", "wrote something else than an answer"),
        ("", "command is empty"),
    ):
        wrong = celltrain("run", "lan.toml", "--set", f"stack=program.py:Program{program}")
        assert wrong.code != 0
        assert words in wrong.err


def test_a_protocol_stack_in_a_python_file_is_specified_in_the_same_way_as_a_policy(tmp_path, celltrain, monkeypatch):
    source = Path(__file__).read_text()
    start, end = source.index("class Windowed"), source.index("class Raises(")
    path = tmp_path / "my_stack.py"
    path.write_text("import sys\n\nimport celltrain as ct\n\n" + source[start:end])
    arguments = ("run", "lan-epd", "--set", "duration=20ms", "--set", f"stack={path}:Windowed")
    is_refused(celltrain(*arguments), ["is a Python class, and celltrain loads code only if CELLTRAIN_POLICIES names"])
    monkeypatch.setenv("CELLTRAIN_POLICIES", "my_stack")
    answer = celltrain(*arguments, "--json")
    assert answer.code == 0, answer.err
    assert "my_stack:Windowed" in answer.out
    lan = ct.n_source(sources=1, link_delay="1ms", buffer_cells=100, policy=ct.Epd(), duration="10ms", stack=Windowed())
    assert ct.run(lan).flows["stack"].to_pylist() == [f"{__name__}:Windowed"]


@pytest.mark.parametrize("stack, method", [(RaisesAtStart(), "start"), (Raises(), "on_packet")])
def test_the_traceback_of_an_exception_in_a_python_stack_starts_in_user_code(stack, method):
    with pytest.raises(ct.ScenarioError) as raised:
        ct.run(hosting(stack))
    [fault] = raised.value.faults
    [frame] = [line for line in fault.excerpt if line.startswith("  File ")]
    assert __file__ in frame and frame.endswith(f"in {method}")


def test_passing_a_stack_class_instead_of_an_instance_is_refused_with_a_message():
    with pytest.raises(ct.ScenarioError, match=r"stack = .* is a class: pass an object of the class, Windowed\(\)"):
        hosting(Windowed)
    with pytest.raises(ct.ScenarioError, match=r"stack = .* is a class: pass an object of the class, Quic\(\)"):
        hosting(ct.Quic)
    with pytest.raises(ct.ScenarioError, match="is neither one of Smoltcp or Quic or PythonStack"):
        hosting(int)
    with pytest.raises(ct.InputError, match=r"value = Windowed is a class: pass an object of the class, Windowed\(\)"):
        ct.compare("lan-epd", vary={"stack": [Windowed]}, seeds=1)
    with pytest.raises(ct.InputError, match=r"value = Epd is a class"):
        ct.sweep("lan-epd", over={"port.bottleneck.policy": [ct.Epd]}, seeds=1)


@pytest.mark.parametrize(
    ("settings", "stacks"),
    [
        (
            {"stack": {"quic": {}}, "flow": {"tcp3": {"traffic": {"constant_rate": {"rate": "1Mbps"}}}}},
            ["quic", "quic", ""],
        ),
        ({"flow": {"tcp1-3": {"stack": {"quic": {}}}, "tcp2": {"start": "1ms"}}}, ["quic", "", "quic"]),
        (
            {"flow": {"tcp1-2": {"stack": {"quic": {}}}, "tcp2-3": {"stack": {"smoltcp": {}}}}},
            ["quic", "quic", "smoltcp"],
        ),
        ({"stack": {"quic": {}}, "flow": {"tcp1-2": {"tcp": {"reno": {}}}}}, ["", "", "quic"]),
    ],
)
def test_the_python_description_of_a_network_states_the_protocol_stack_of_each_flow(settings, stacks):
    assert [flow.stack for flow in network(MIXED.replace(flow={}).replace(**settings)).flows] == stacks


def test_flows_without_tcp_have_no_retransmission_measures():
    constant = ct.FlowOptions(traffic=ct.ConstantRate(rate="1Mbps"))
    flows = network(MIXED.replace(flow={"tcp1": ct.FlowOptions(stack=ct.Quic()), "tcp2-3": constant})).flows
    assert [flow.retransmits for flow in flows] == [True, False, False]


def test_a_python_stack_cannot_send_bursts_and_accepts_only_the_settings_that_its_class_defines():
    with pytest.raises(ct.ScenarioError, match="is not possible with a Python stack"):
        ct.run(hosting(Windowed(), flow={"tcp1": ct.FlowOptions(traffic=ct.Bursts(bytes="3kB", pause="1ms"))}))
    with pytest.raises(ct.ScenarioError, match="size = 3 is not a setting"):
        Windowed(size=3)


def test_the_command_line_refuses_a_stack_class_from_a_module_that_the_user_did_not_name(tmp_path, celltrain):
    path = tmp_path / "mine.toml"
    path.write_text(f'{WITHOUT_POLICY}policy.epd = {{}}\n[stack.python]\nclass = "mine:Mine"\n')
    is_refused(
        celltrain("run", path), ["mine.toml:12: stack.python.class", "needs the module mine, which is not loaded"]
    )


def test_a_loss_rule_for_a_packet_that_is_never_sent_is_reported_after_the_run():
    lan = ct.n_source(sources=1, link_delay="5us", buffer_cells=100, policy=ct.Epd(), duration="5ms").replace(
        link={"source1->sw1": {"lose": [{"flow": "tcp1", "packets": [1, 10_000]}]}}
    )
    words = r"a loss on source1->sw1 did not happen: packet 10000 of tcp1 was never sent over this link; tcp1 sent \d+ packets"
    with pytest.warns(ct.CelltrainWarning, match=words):
        ct.run(lan)


def test_requests_over_a_python_stack_run_on_both_engines_and_without_other_traffic_have_slowdown_1():
    query = ct.Incast(senders=1, bytes="3kB", interval="10ms", receivers=["host1"], stack=Windowed())
    hosts = ct.LeafSpine(leaves=2, spines=1, hosts_per_leaf=1, host_rate="10Mbps", host_delay="10us")
    port = {"default": ct.Port(buffer=200, policy=ct.TailDrop())}
    scenario = ct.Scenario(duration="45ms", topology=hosts, port=port, incast={"query": query})
    assert ct.check(scenario) == []
    fast, reference = (ct.run(scenario, engine=engine) for engine in ("fast", "reference"))
    assert fast.fingerprint == reference.fingerprint
    requests = fast.requests.to_pydict()
    assert requests["slowdown"] == [1.0] * 4
    assert requests["timeouts"] == requests["segments_sent"] == [None] * 4
    [group] = fast.to_dict()["requests"]
    assert group["stack"] == f"{__name__}:Windowed" and group["retransmitted_segments"] is None
    assert fast.tcp.endswith(f"requests query: {__name__}:Windowed")


@pytest.mark.slow
def test_the_heading_of_the_output_names_the_protocol_stack_that_carries_the_requests(celltrain):
    settings = {"duration": "2ms", "measure.to": "1ms", "until": "duration"}
    for stack, named in (("smoltcp", "TCP: smoltcp"), ("quic", "TCP: quic")):
        set_to = [f"--set={key}={value}" for key, value in (settings | {"stack": stack}).items()]
        run = celltrain("run", "leaf-spine-web-search", *set_to)
        assert named in run.out
        assert "newreno" not in run.out.split("\n\n")[0]
