"""Captures: their contents, how other programs read them, and refused requests.

tshark, tcptrace and scapy share no code with the writer. If one of them is missing, its tests are skipped.
"""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from conftest import ROOT, SMALL, Command, import_or_skip

import celltrain as ct

needs_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None,
    reason="tshark is not installed (the command tshark; Debian's package tshark)",
)
needs_tcptrace = pytest.mark.skipif(
    shutil.which("tcptrace") is None,
    reason="tcptrace is not installed (the command tcptrace; Debian's package tcptrace)",
)

#: Shipped scenarios with lost segments, covering every TCP variant, and the duration to run of each.
SCENARIOS = {
    "chain-epd": "250ms",
    "gfr-tagging": "600ms",
    "internetwork-abr-ada": "1s",
    "lan-double-epd": "1s",
    "lan-drop-from-front": "300ms",
    "lan-epd": "1s",
    "lan-fba": "500ms",
    "lan-newreno": "300ms",
    "lan-newreno-hoe": "300ms",
    "lan-per-vc-queuing": "600ms",
    "lan-reno": "600ms",
    "lan-sack": "300ms",
    "lan-sack-pipe": "300ms",
    "lan-tahoe": "300ms",
    "lan-tail-drop": "1s",
    "lan-unresponsive": "300ms",
    "parking-lot": "300ms",
    "peer-to-peer": "600ms",
    "star-incast": "200ms",
    "unequal-rtt": "400ms",
    "vc-merge": "500ms",
    "wan-cubic": "1500ms",
    "wan-dfba": "2s",
    "wan-wba": "2s",
}


@dataclass
class Flow:
    """Counts for a connection, from a tool or from the events of a run."""

    resent: int = 0
    repeated: int = 0
    unique_bytes: int = 0
    out_of_order: int = 0


@dataclass
class Seen:
    """Findings of tshark in a capture."""

    packets: int = 0
    malformed: int = 0
    bad_checksums: int = 0
    #: Number of segments reported as never sent, or as preceded by missing segments.
    not_followed: int = 0
    flows: dict[str, Flow] = field(default_factory=lambda: defaultdict(Flow))
    #: Address and port of both ends, from each connection's first packet.
    ends: dict[tuple[str, str], str] = field(default_factory=dict)


FIELDS = (
    "tcp.stream",
    "frame.comment",
    "_ws.malformed",
    "ip.checksum.status",
    "tcp.checksum.status",
    "udp.checksum.status",
    "tcp.analysis.retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.lost_segment",
    "tcp.analysis.ack_lost_segment",
    "ip.src",
    "tcp.srcport",
    "ip.dst",
    "tcp.dstport",
)


def tshark(path: Path) -> Seen:
    """Reads all packets with tshark."""
    options = [f"-o{protocol}.check_checksum:TRUE" for protocol in ("ip", "tcp", "udp")]
    fields = [option for name in FIELDS for option in ("-e", name)]
    command = ["tshark", "-n", "-r", str(path), *options, "-T", "fields", "-E", "occurrence=f", *fields]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    seen, names = Seen(), {}
    for line in printed.splitlines():
        values = line.split("\t")
        packet = dict(zip(FIELDS, values, strict=True))
        seen.packets += 1
        seen.malformed += packet["_ws.malformed"] != ""
        # A value of 1 means good; the field is empty if the packet has no such header.
        seen.bad_checksums += packet["ip.checksum.status"] != "1"
        seen.bad_checksums += {packet["tcp.checksum.status"], packet["udp.checksum.status"]} != {"1", ""}
        seen.not_followed += bool(packet["tcp.analysis.lost_segment"] or packet["tcp.analysis.ack_lost_segment"])
        stream = packet["tcp.stream"]
        if found := re.match("synthetic: in the model the connection (.*) is open", packet["frame.comment"]):
            if stream not in names:
                ends = f"{packet['ip.src']}:{packet['tcp.srcport']}", f"{packet['ip.dst']}:{packet['tcp.dstport']}"
                seen.ends[ends] = names[stream] = found[1]
        elif stream:
            flow = seen.flows[names[stream]]
            flow.resent += bool(packet["tcp.analysis.retransmission"] or packet["tcp.analysis.out_of_order"])
    return seen


def tcptrace(path: Path, ends: dict[tuple[str, str], str]) -> dict[str, Flow]:
    """Returns tcptrace's counts of each connection's data, keyed by the names of its ends."""
    command = ["tcptrace", "-n", "-l", str(path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    flows = {}
    for text in re.split(r"TCP connection \d+:", printed)[1:]:

        def first(name: str, text: str = text) -> int:
            found = re.search(rf"{name}: +(\d+)", text)
            assert found is not None, f"tcptrace prints no {name}"
            return int(found[1])

        a, b = re.findall(r"host \w+:\s+(\S+)", text)
        flows[ends[a, b]] = Flow(
            resent=first("rexmt data pkts"),
            unique_bytes=first("unique bytes sent"),
            out_of_order=first("outoforder pkts"),
        )
    return flows


def recorded(path: Path) -> dict[str, Flow]:
    """Returns the same counts from the events of segments."""
    flows: dict[str, Flow] = defaultdict(Flow)
    highest: Counter[str] = Counter()
    columns = ("flow", "event", "reason", "sequence", "length")
    table = pq.read_table(path, columns=list(columns))
    table = table.filter(pc.is_in(table["event"].cast("string"), pa.array(["sent", "retransmitted", "arrived"])))
    for name, event, reason, sequence, length in zip(*(table[column].to_pylist() for column in columns), strict=True):
        flow, end = flows[name], sequence + length
        if event == "arrived":
            flow.repeated += reason == "repeated"
            flow.out_of_order += reason != "repeated" and sequence < highest[name]
            highest[name] = max(highest[name], end)
        else:
            flow.resent += event == "retransmitted"
            flow.unique_bytes = max(flow.unique_bytes, end)
    return flows


def shortened(name: str, duration: str, folder: Path) -> Path:
    text = (ROOT / "scenarios" / f"{name}.toml").read_text()
    path = folder / f"{name}.toml"
    path.write_text(re.sub(r"(?m)^duration = .*$", f'duration = "{duration}"', text))
    return path


#: One scenario for each kind of network and traffic. The nightly job runs all scenarios.
FEW = {"chain-epd", "internetwork-abr-ada", "lan-sack", "lan-unresponsive", "vc-merge"}


@pytest.mark.slow
@needs_tshark
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in FEW else [pytest.mark.nightly]) for name in SCENARIOS]
)
def test_tshark_and_tcptrace_count_the_same_packets_in_a_capture_as_the_run(name: str, tmp_path: Path) -> None:
    scenario = shortened(name, SCENARIOS[name], tmp_path)
    capture = tmp_path / "run.pcapng"
    events = ct.Events(tmp_path / "events", kinds=["segments"])
    result = ct.run(scenario, pcap=capture, events=events, engine="fast")
    over_tcp = [flow for flow in result.flows.to_pylist() if flow["segments_sent"] > 0]
    resent = {flow["name"]: flow["retransmitted_segments"] for flow in over_tcp}
    assert sum(resent.values()) > 0, "the run loses nothing; make the run longer"
    seen = tshark(capture)
    assert (seen.malformed, seen.bad_checksums, seen.not_followed) == (0, 0, 0)
    assert seen.packets > 1000
    assert {name: flow.resent for name, flow in seen.flows.items()} == resent
    if shutil.which("tcptrace") is not None:
        flows = recorded(tmp_path / "events" / "segments.parquet")
        counted = tcptrace(capture, seen.ends)
        assert {name: flow.resent for name, flow in counted.items()} == resent
        assert {name: flow.unique_bytes for name, flow in counted.items()} == {
            name: flows[name].unique_bytes for name in counted
        }


@pytest.mark.slow
@needs_tshark
@pytest.mark.parametrize(("flows", "hosts"), [(None, 3), (["tcp2"], 1)])
@pytest.mark.parametrize("program", ["tcptrace", "tcpdump"])
def test_tshark_can_read_captures_of_one_host_and_of_several_hosts(
    flows: list[str] | None, hosts: int, program: str, small: Path, tmp_path: Path
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed (Debian's package {program})")
    capture = tmp_path / "run.pcapng"
    ct.run(small, pcap=ct.Capture(capture, flows=flows), engine="fast")
    command = ["tshark", "-n", "-r", str(capture), "-T", "fields", "-e", "frame.interface_name", "-e", "ip.src"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    packets = [line.split("\t") for line in printed.splitlines()]
    assert len({name for name, _ in packets}) == hosts
    ended = subprocess.run(
        [program, "-n", *(["-r"] if program == "tcpdump" else []), capture], capture_output=True, timeout=60
    )
    said = ended.stdout.decode()
    assert ended.returncode == 0, ended.stderr
    if program == "tcpdump":
        assert len(re.findall(r" IP 10\.", said)) == len(packets)
    else:
        assert f"{len(packets)} packets seen, {len(packets)} TCP packets traced" in said


@pytest.mark.slow
@needs_tshark
@pytest.mark.parametrize("flows", [None, ["tcp2"]])
def test_tshark_reads_packets_captured_with_packet_framing_as_ethernet_frames(
    flows: list[str] | None, tmp_path: Path
) -> None:
    scenario = tmp_path / "packets.toml"
    scenario.write_text(f'{SMALL}\n[cell]\nsize = "250B"\n')
    capture = tmp_path / "run.pcapng"
    result = ct.run(scenario, pcap=ct.Capture(capture, flows=flows))
    seen = tshark(capture)
    assert (seen.malformed, seen.bad_checksums) == (0, 0)
    resent = {flow["name"]: flow["retransmitted_segments"] for flow in result.flows.to_pylist()}
    assert {name: flow.resent for name, flow in seen.flows.items()} == {name: resent[name] for name in seen.flows}
    fields = ("frame.time_epoch", "frame.len", "eth.src", "eth.dst", "ip.src", "ip.dst", "ip.len")
    command = ["tshark", "-n", "-r", str(capture), "-T", "fields", *(one for field in fields for one in ("-e", field))]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    for line in printed.splitlines():
        time, length, *addresses, ip_length = line.split("\t")
        assert re.fullmatch(r"\d+\.\d{9}", time), "times are nanoseconds"
        assert int(length) == max(int(ip_length) + 14, 60)
        macs = ["02:00:" + ":".join(f"{int(part):02x}" for part in address.split(".")) for address in addresses[2:]]
        assert addresses[:2] == macs


@pytest.mark.slow
@needs_tshark
@needs_tcptrace
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["lan-reno", "lan-sack", "lan-tahoe", "wan-dfba"])
def test_tcptrace_counts_the_same_duplicates_and_filled_gaps_as_the_run_in_a_receiver_capture(
    name: str, tmp_path: Path
) -> None:
    counted_at_receiver(shortened(name, SCENARIOS[name], tmp_path), tmp_path)


@pytest.mark.slow
@needs_tshark
@needs_tcptrace
@pytest.mark.parametrize("name", ["lan-reno", "lan-sack"])
def test_tcptrace_counts_the_same_duplicates_and_filled_gaps_as_the_run_if_packets_are_delayed(
    name: str, tmp_path: Path
) -> None:
    scenario = shortened(name, "300ms", tmp_path)
    delay = '[link."source1->sw1"]\ndelay = [{ flow = "tcp1", packets = [20, 30, 31, 40], by = "3ms" }]\n'
    scenario.write_text(scenario.read_text() + delay)
    counted_at_receiver(scenario, tmp_path)


def counted_at_receiver(scenario: Path, folder: Path) -> None:
    """Compares tcptrace's counts of duplicates and filled gaps at the receivers with the events of the run."""
    capture = folder / "run.pcapng"
    ct.run(
        scenario,
        pcap=ct.Capture(capture, at="receiver"),
        events=ct.Events(folder / "events", kinds=["segments"]),
        engine="fast",
    )
    seen = tshark(capture)
    assert (seen.malformed, seen.bad_checksums) == (0, 0)
    flows = recorded(folder / "events" / "segments.parquet")
    counted = tcptrace(capture, seen.ends)
    assert sum(flow.out_of_order for flow in counted.values()) > 0
    for flow, counts in counted.items():
        assert (counts.resent, counts.out_of_order) == (flows[flow].repeated, flows[flow].out_of_order), flow


@pytest.mark.slow
@needs_tshark
@pytest.mark.parametrize("encapsulation", ["llc_snap", "vc_mux"])
def test_tshark_can_read_captured_aal5_frames(encapsulation: str, tmp_path: Path) -> None:
    scenario = tmp_path / "small.toml"
    scenario.write_text(f'{SMALL}\n[aal5]\nencapsulation = "{encapsulation}"\n')
    capture = tmp_path / "run.pcapng"
    result = ct.run(scenario, pcap=ct.Capture(capture, kind="aal5"))
    seen = tshark(capture)
    assert (seen.malformed, seen.bad_checksums) == (0, 0)
    resent = {flow["name"]: flow["retransmitted_segments"] for flow in result.flows.to_pylist()}
    assert {name: flow.resent for name, flow in seen.flows.items()} == resent
    command = [
        "tshark",
        "-n",
        "-r",
        str(capture),
        "-T",
        "fields",
        "-e",
        "atm.vpi",
        "-e",
        "atm.vci",
        "-e",
        "frame.comment",
    ]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.split("\t") for line in printed.splitlines()]
    assert {(vpi, vci) for vpi, vci, _ in lines} == {("0", "32")}
    assert any(comment.startswith("lost at sw1->sw2: refused: X is above R (X = ") for *_, comment in lines)


def test_the_capture_comment_on_a_dropped_packet_states_the_shared_memory_limit_that_it_exceeded(
    tmp_path: Path,
) -> None:
    capture = tmp_path / "run.pcapng"
    incast = ct.load(ROOT / "scenarios" / "memory-dynamic-threshold.toml").replace(duration="5ms")
    ct.run(incast, pcap=ct.Capture(capture))
    numbers = rb"pool sw/main: Q = (\d+) of 1000 cells, q_i = (\d+) cells, threshold (\d+) cells\)"
    found = [tuple(map(int, numbers)) for numbers in re.findall(numbers, capture.read_bytes())]
    assert len(found) > 20
    assert all(used + threshold == 1000 and held >= threshold for used, held, threshold in found)


@dataclass
class Cells:
    """Findings of a decoder in a capture of cells."""

    cells: int = 0
    frames: int = 0
    rm: int = 0
    datagrams: list[bytes] = field(default_factory=list)


#: The table of CRC-8 with x^8 + x^2 + x + 1 (ITU-T I.432), and all bytes with their bits reversed.
HEC = bytes(range(256))
for _ in range(8):
    HEC = bytes(value << 1 & 0xFF ^ (0x07 if value & 0x80 else 0) for value in HEC)
REVERSED = bytes(int(f"{value:08b}"[::-1], 2) for value in range(256))


def header_check(header: bytes) -> int:
    remainder = 0
    for byte in header:
        remainder = HEC[remainder ^ byte]
    return remainder ^ 0x55


def crc32(data: bytes) -> int:
    """Returns the CRC-32 of AAL5, most significant bit first: zlib's CRC over the same bits in reverse."""
    return int(f"{zlib.crc32(data.translate(REVERSED)):032b}"[::-1], 2)


def crc10(payload: bytes) -> int:
    """Returns the remainder modulo x^10 + x^9 + x^5 + x^4 + x + 1 (ITU-T I.610); 0 if data is followed by its CRC."""
    remainder = 0
    for bit in f"{int.from_bytes(payload, 'big'):0384b}":
        remainder = remainder << 1 | int(bit)
        remainder ^= 0x633 if remainder & 0x400 else 0
    return remainder


def decoded(path: Path) -> Cells:
    """Decodes and verifies every cell and every complete frame of a capture."""
    scapy = import_or_skip("scapy.utils")
    found, parts = Cells(), defaultdict(list)
    for cell, metadata in scapy.RawPcapNgReader(str(path)):
        assert len(cell) == 53
        assert header_check(cell[:4]) == cell[4]
        found.cells += 1
        word = int.from_bytes(cell[:4], "big")
        pti = word >> 1 & 7
        if pti == 6:
            assert crc10(cell[5:]) == 0
            found.rm += 1
            continue
        assert pti < 4
        frame = parts[metadata.ifname, word >> 4]
        frame.append(cell[5:])
        if pti & 1:
            whole = b"".join(frame)
            frame.clear()
            length = int.from_bytes(whole[-6:-4], "big")
            assert crc32(whole[:-4]) == int.from_bytes(whole[-4:], "big")
            assert -(-(length + 8) // 48) * 48 == len(whole)
            assert whole[:8] == bytes.fromhex("aaaa030000000800")
            found.frames += 1
            found.datagrams.append(whole[8:length])
    return found


@pytest.mark.nightly
@pytest.mark.slow
def test_an_independent_decoder_verifies_the_crc_of_each_of_10000_captured_frames(tmp_path: Path) -> None:
    capture = tmp_path / "cells.pcapng"
    result = ct.run(shortened("lan-epd", "1s", tmp_path), pcap=ct.Capture(capture, kind="cells"))
    found = decoded(capture)
    [port] = [port for port in result.ports.to_pylist() if port["name"] == "sw1->sw2"]
    assert found.cells == port["forwarded_cells"]
    assert found.frames > 10_000
    from scapy.layers.inet import IP, TCP

    for datagram in found.datagrams[:: len(found.datagrams) // 300]:
        packet = IP(datagram)
        sums = packet.chksum, packet[TCP].chksum
        del packet.chksum, packet[TCP].chksum
        again = IP(bytes(packet))
        assert (again.chksum, again[TCP].chksum) == sums


@pytest.mark.slow
def test_an_independent_decoder_verifies_the_crc_of_every_captured_rm_cell(tmp_path: Path) -> None:
    capture = tmp_path / "cells.pcapng"
    choice = ct.Capture(capture, kind="cells", ports=["sw1->sw2", "sw2->sw1"])
    ct.run(shortened("abr-erica-parking-lot", "100ms", tmp_path), pcap=choice)
    found = decoded(capture)
    assert found.rm > 500
    assert found.frames > 100


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def test_writing_a_capture_does_not_change_the_run(small: Path, tmp_path: Path) -> None:
    plain = ct.run(small)
    for number, kind in enumerate(["ip", "aal5", "cells", "wireshark_cells"]):
        result = ct.run(small, pcap=ct.Capture(tmp_path / f"{number}.pcapng", kind=kind))
        assert (result.engine, result.fingerprint) == ("reference", plain.fingerprint)
        assert (tmp_path / f"{number}.pcapng").stat().st_size > 10_000


def test_the_run_command_writes_events_and_a_capture_of_the_same_run(
    celltrain: Command, small: Path, tmp_path: Path
) -> None:
    file, out = tmp_path / "run.pcapng", tmp_path / "events"
    options = ["--kinds", "frames", "--flow", "tcp2", "--window", "0ms:5ms", "--port", "sw1->sw2"]
    answer = celltrain("run", small, "--pcap", file, "--events", out, *options)
    assert (answer.code, answer.err) == (0, "")
    assert "reference engine" in answer.out
    assert f"wrote {out / 'frames.parquet'}" in answer.out
    assert f"wrote {file}" in answer.out
    capture = file.read_bytes()
    assert b"source2" in capture
    assert b"source1" not in capture
    table = pq.read_table(out / "frames.parquet").to_pylist()
    refused = {f"(X = {row['occupancy']} cells".encode() for row in table if row["event"] == "refused"}
    assert refused
    assert all(words in capture for words in refused)


@pytest.mark.slow
@needs_tshark
def test_capturing_packets_at_both_ends_of_a_connection_writes_two_files(
    celltrain: Command, small: Path, tmp_path: Path
) -> None:
    file = tmp_path / "run.pcapng"
    answer = celltrain("run", small, "--pcap", file, "--pcap-at", "both")
    paths = [tmp_path / f"run-{end}.pcapng" for end in ("sender", "receiver")]
    assert answer.code == 0
    assert all(f"wrote {path}" in answer.out for path in paths)
    assert sorted(tmp_path.iterdir()) == sorted([small, *paths])
    result = ct.run(small)
    resent = {flow["name"]: flow["retransmitted_segments"] for flow in result.flows.to_pylist()}
    assert {name: flow.resent for name, flow in tshark(paths[0]).flows.items()} == resent
    assert all(name.encode() in paths[1].read_bytes() for name in ("destination1", "destination3"))
    assert celltrain("run", small, "--pcap", file, "--pcap-at", "both").code == 2, "the files exist"


#: One query. Its answer has a connection of its own.
QUERY = """
duration = "30ms"
[topology.n_source]
sources = 2
link_delay = "5us"
[incast.q]
senders = 1
receivers = ["destination1"]
bytes = "40kB"
interval = "10ms"
[tcp.sack]
mss = "1000B"
timer_granularity = "1ms"
[port.default]
buffer = 1000
policy.tail_drop = {}
"""


@pytest.mark.slow
@needs_tshark
def test_a_capture_contains_the_packets_and_the_handshake_of_requests(celltrain: Command, tmp_path: Path) -> None:
    scenario, file = tmp_path / "query.toml", tmp_path / "run.pcapng"
    scenario.write_text(QUERY)
    assert celltrain("run", scenario, "--pcap", file).code == 0
    command = ["tshark", "-n", "-r", str(file), "-Y", "tcp.port == 49154", "-T", "fields", "-e", "tcp.flags", "-e"]
    printed = subprocess.run([*command, "tcp.len"], capture_output=True, text=True, check=True, timeout=60).stdout
    packets = [line.split("\t") for line in printed.splitlines()]
    assert [flags for flags, _ in packets[:3]] == ["0x0002", "0x0012", "0x0010"]
    assert sum(int(length) for _, length in packets) == 40_000
    assert b"opens q0" in file.read_bytes()


def test_the_capture_option_for_ports_captures_cells(celltrain: Command, small: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.pcapng"
    options = ["--pcap-kind", "wireshark_cells", "--pcap-at", "both", "--port", "sw2->destination1"]
    answer = celltrain("run", small, "--pcap", file, *options)
    assert answer.code == 0
    assert b"sw2->destination1" in file.read_bytes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--pcap-kind", "ipv4"],
            "is not a kind of capture; did you mean ip? (choose from ip, aal5, cells, wireshark_cells)",
        ),
        (["--pcap-at", "out"], "is not an end of a connection (choose from sender, receiver, both)"),
        (
            ["--port", "sw1->sw2"],
            "packets are captured at hosts; choose packets with --flow or --vc, or add --pcap-kind cells",
        ),
        (["--pcap-kind", "cells", "--pcap-at", "sender"], "choose from out, in, both"),
        (["--pcap-kind", "cells", "--engine", "fast"], "does not report single cells"),
        (["--pcap-kind", "cells", "--port", "sw1->sw3"], "is not a port of this network; did you mean sw1->sw2?"),
        (["--flow", "tcp9"], "is not a flow of this network; did you mean tcp1? (choose from tcp1, tcp2, tcp3)"),
        (["--window", "1ms:90ms"], "lies outside the run, which lasts 20ms"),
        (["--kinds", "segments"], "name a folder for the events with --events DIR"),
        (
            ["--pcap-kind", "cells", "--flow", "tcp1", "--port", "sw2->destination2"],
            "the capture would be empty: no chosen cells cross sw2->destination2; choose from sw1->sw2, sw2->sw1,",
        ),
    ],
)
def test_an_impossible_capture_is_refused_and_leaves_no_file(
    celltrain: Command, small: Path, tmp_path: Path, options: list[str], words: str
) -> None:
    answer = celltrain("run", small, "--pcap", tmp_path / "run.pcapng", *options)
    assert answer.code == 2
    assert words in " ".join(answer.err.split())
    assert list(tmp_path.iterdir()) == [small]


@pytest.mark.parametrize(("kind", "window"), [("ip", "0s:1us"), ("cells", "500us:500001ns")])
def test_capturing_an_empty_time_window_is_refused_and_leaves_no_file(
    celltrain: Command, small: Path, tmp_path: Path, kind: str, window: str
) -> None:
    small.write_text(f'{SMALL}[flow.tcp1]\nstart = "2ms"\n')
    outputs = ["--pcap", tmp_path / "run.pcapng", "--events", tmp_path / "events", "--out", tmp_path / "out"]
    options = ["--flow", "tcp1", "--trace", "queue", "--pcap-kind", kind, "--window", window]
    answer = celltrain("run", small, *outputs, *options)
    assert answer.code == 2, answer.out
    said = " ".join(answer.err.split())
    assert "the capture would be empty: its window has no chosen" in said
    first, last = re.findall(r"from ([0-9.e-]+)s to ([0-9.e-]+)s", said)[0]
    assert 0.002 <= float(first) < 0.0025, said
    assert float(first) < float(last) <= 0.02
    assert list(tmp_path.iterdir()) == [small]
    with pytest.raises(ct.ScenarioError, match=r"the run has them from 0\.002"):
        capture = ct.Capture(tmp_path / "run.pcapng", kind=kind, flows=["tcp1"], window=window)
        ct.run(small, pcap=capture)
    assert list(tmp_path.iterdir()) == [small]


def test_packets_can_be_captured_at_hosts_but_not_at_ports(tmp_path: Path) -> None:
    with pytest.raises(ct.ScenarioError, match="packets are captured at hosts; choose flows"):
        ct.run("lan-epd", pcap=ct.Capture(tmp_path / "run.pcapng", ports="sw1->sw2"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", [["--pcap-kind", "ip"], ["--pcap-at", "both"], ["--flow", "tcp1"]])
def test_a_capture_option_without_an_output_file_is_refused(celltrain: Command, small: Path, option: list[str]) -> None:
    answer = celltrain("run", small, *option)
    assert answer.code == 2
    assert "with --pcap FILE" in " ".join(answer.err.split())


@pytest.mark.parametrize("link", [False, True])
def test_a_capture_does_not_overwrite_an_existing_file(
    celltrain: Command, small: Path, tmp_path: Path, link: bool
) -> None:
    there = tmp_path / "mine.pcapng"
    if link:
        there.symlink_to(tmp_path / "nowhere")
    else:
        there.write_text("mine")
    answer = celltrain("run", small, "--pcap", there)
    assert answer.code == 2
    assert "mine.pcapng: already exists" in answer.err
    assert there.is_symlink() if link else there.read_text() == "mine"
    assert sorted(tmp_path.iterdir()) == sorted([small, there])


def test_an_interrupted_run_keeps_its_incomplete_capture_files(tmp_path: Path) -> None:
    lan = ct.n_source(sources=5, link_delay="5us", buffer_cells=1000, policy=ct.Epd(threshold=800), duration="60s")
    cancel = ct.Cancel()

    def progress(share: float) -> None:
        if share > 0.001:
            cancel.cancel()

    file = tmp_path / "run.pcapng"
    with pytest.raises(ct.CancelledError) as raised:
        ct.run(lan, pcap=file, progress=progress, cancel=cancel)
    assert list(tmp_path.iterdir()) == [file]
    capture = file.read_bytes()
    blocks = list(lengths(capture))
    assert len(blocks) > 100
    assert capture[-blocks[-1]] == 6, "the last block is a packet"
    assert raised.value.__notes__ == [f"kept the packets captured until then: {file}"]


def test_a_capture_creates_its_folder_and_is_refused_if_another_output_has_its_path(
    celltrain: Command, small: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out" / "deep"
    answer = celltrain("run", small, "--events", out, "--kinds", "timers", "--pcap", out / "run.pcapng")
    assert answer.code == 0
    assert sorted(path.name for path in out.iterdir()) == ["run.pcapng", "timers.parquet"]
    other = tmp_path / "other"
    for file in (other, tmp_path / "out" / ".." / "other", other / "frames.parquet"):
        answer = celltrain("run", small, "--events", other, "--pcap", file)
        assert answer.code == 2
        assert "is where the events are written; name another file" in " ".join(answer.err.split())
    assert not other.exists()
    assert celltrain("run", small, "--pcap", tmp_path / "a" / "b.pcapng", "--window", "1s:2s").code == 2
    assert not (tmp_path / "a").exists()


def lengths(capture: bytes) -> Iterator[int]:
    """Yields the lengths of the blocks of a capture. Each block states its length at its start and at its end."""
    at = 0
    while at < len(capture):
        length = int.from_bytes(capture[at + 4 : at + 8], "little")
        assert capture[at + length - 4 : at + length] == capture[at + 4 : at + 8]
        yield length
        at += length
    assert at == len(capture)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_full_disk_leaves_no_incomplete_capture_file(small: Path, tmp_path: Path) -> None:
    file, events = tmp_path / "run.pcapng", tmp_path / "events"
    ended = subprocess.run(
        [sys.executable, "-m", "celltrain", "run", small, "--pcap", file, "--events", events, "--kinds", "timers"],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)),
    )
    assert ended.returncode == 2, ended.stderr
    assert "run.pcapng: cannot be written (File too large)" in " ".join(ended.stderr.split())
    assert list(tmp_path.iterdir()) == [small]


def test_capturing_a_flow_is_refused_in_a_network_with_requests_only(celltrain: Command, tmp_path: Path) -> None:
    out = tmp_path / "run.pcapng"
    for option in (["--pcap", out], ["--events", tmp_path / "events"]):
        answer = celltrain("run", "leaf-spine-web-search", *option, "--flow", "web")
        words = "is not a flow: this network has no flows, only requests (web, query). Leave the option out to record the packets"
        assert answer.code == 2
        assert words in " ".join(answer.err.split())
    assert not out.exists()
