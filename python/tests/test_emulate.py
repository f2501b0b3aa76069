"""Emulations in real time. They need Linux, root and /dev/net/tun. The machine may be loaded, so times are bounded loosely."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from conftest import is_refused

from celltrain.running import emulation

LINE = """\
name = "line"
duration = "4s"

[topology.n_source]
sources = 1
link_rate = "8Mbps"
link_delay = "5ms"

[tcp.vanilla]
mss = "1460B"

[port.bottleneck]
buffer = 300

[port.bottleneck.policy.tail_drop]
"""

#: Answers 15 datagrams. As the sender, sends them and prints the shortest time to an answer in milliseconds.
ECHO = """
import socket
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("", 7))
for _ in range(15):
    udp.sendto(*udp.recvfrom(100))
"""
PING = """
import socket, sys, time
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.settimeout(2)
times = []
for _ in range(15):
    before = time.perf_counter()
    udp.sendto(b"x", ("destination1", 7))
    udp.recv(100)
    times.append(time.perf_counter() - before)
print("shortest", min(times) * 1e3, file=sys.stderr)
"""
#: Receives a stream and prints its rate in Mb/s; sends 1 MB and prints the kernel's round trip in milliseconds.
RECEIVE = """
import socket, sys, time
stream = socket.create_server(("", 9)).accept()[0]
received, begun = len(stream.recv(1)), time.perf_counter()
while data := stream.recv(65536):
    received += len(data)
print("rate", received * 8e-6 / (time.perf_counter() - begun), file=sys.stderr)
"""
SEND = """
import socket, struct, sys
stream = socket.create_connection(("destination1", 9))
stream.sendall(bytes(1_000_000))
# The field tcpi_rtt of struct tcp_info (linux/tcp.h).
print("rtt", struct.unpack_from("I", stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 68)[0] / 1e3, file=sys.stderr)
stream.close()
"""


#: Does the same as the setup of a host, and also creates a device with a rate.
PROBE = """
mount -t tmpfs tmpfs /tmp
touch /tmp/hosts
mount --bind /tmp/hosts /etc/hosts
ip tuntap add probe mode tun
tc qdisc add dev probe root tbf rate 1mbit burst 10000 limit 10000
"""
PIDFD_GETFD = 438


def unsuited() -> str:
    """Returns the reason why this machine cannot emulate; empty if it can."""
    if faults := emulation.unsuited():
        return faults[0].message
    command = ["unshare", "--net", "--pid", "--fork", "--mount-proc", "sh", "-e", "-c", PROBE]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    if tried.returncode:
        return tried.stderr.strip() or "no namespaces"
    number = ctypes.CDLL(None).syscall(PIDFD_GETFD, os.pidfd_open(os.getpid()), 0, 0)
    if number < 0:
        return "no pidfd_getfd"
    os.close(number)
    return ""


LINUX = pytest.mark.skipif(bool(unsuited()), reason=f"this machine cannot run emulations: {unsuited()}")


@pytest.fixture
def line(tmp_path: Path) -> Path:
    path = tmp_path / "line.toml"
    path.write_text(LINE)
    return path


def command(*words: object, before: tuple[str, ...] = ()) -> list[str]:
    return [*before, sys.executable, "-m", "celltrain", "emulate", *map(str, words)]


def in_host(host: str, *words: str) -> list[str]:
    return ["--", "host", host, *words]


def printed(stderr: str) -> dict[str, float]:
    """Returns the output of programs. On a loaded machine, the warning about late packets follows."""
    return {name: float(value) for name, value in re.findall(r"^(shortest|rate|rtt) ([0-9.]+)$", stderr, re.MULTILINE)}


@LINUX
@pytest.mark.slow
def test_a_datagram_and_its_reply_take_at_least_the_emulated_round_trip_time(line):
    hosts = [*in_host("destination1", sys.executable, "-c", ECHO), *in_host("source1", sys.executable, "-c", PING)]
    # Linux disables IPv6 on devices with an MTU as small as the packets of this scenario.
    words = command(line, "--set", "tcp.vanilla.mss=512B", "--json", *hosts)
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    # The path consists of six links of 5 ms each.
    assert 30 <= printed(done.stderr)["shortest"] < 45
    report = answer["emulation"]
    assert 30_000 < report["shortest_round_trip_us"] < 31_000
    assert report["packets"] == 30
    assert 0 < report["lateness_us"]["p50"] <= report["lateness_us"]["max"]
    assert [program["exit_code"] for program in report["programs"]] == [0, 0]
    flow = answer["flows"][0]
    assert flow["delivered_bytes"] == 30
    assert flow["stack"].startswith("Linux ")
    assert [flow[name] for name in ("timeouts", "fast_retransmits", "cwnd_segments")] == [None] * 3


@LINUX
@pytest.mark.slow
def test_in_an_emulation_a_connection_gets_the_rate_of_the_slow_link(line):
    hosts = [*in_host("destination1", sys.executable, "-c", RECEIVE), *in_host("source1", sys.executable, "-c", SEND)]
    done = subprocess.run(command(line, "--json", *hosts), capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    # A packet of 1500 bytes, 52 of them headers, has 32 cells.
    most = 8 * 1448 / (32 * 53)
    seen = printed(done.stderr)
    assert 0.85 * most < seen["rate"] < 1.02 * most
    # The kernel notices the slow link: packets do not wait in a device's queue.
    assert 30 <= seen["rtt"] < 100
    flow = answer["flows"][0]
    assert flow["delivered_bytes"] == 1_000_000
    assert flow["segments_sent"] >= 1_000_000 / 1448
    assert answer["duration_s"] < 4, "the emulation ends when its programs end"
    assert [program["exit_code"] for program in answer["emulation"]["programs"]] == [0, 0]


@LINUX
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_after_an_emulation_no_network_interfaces_remain(line, number):
    ready = [*in_host("destination1", "sleep", "1000"), *in_host("source1", "sh", "-c", "echo ready; sleep 1000")]
    emulated = subprocess.Popen(command(line, "--duration", "100s", *ready), stdout=subprocess.PIPE, text=True)
    assert emulated.stdout is not None
    assert emulated.stdout.readline() == "ready\n"
    others = psutil.Process(emulated.pid).children(recursive=True)
    spaces = {Path(f"/proc/{one.pid}/ns/net").readlink() for one in others} - {Path("/proc/self/ns/net").readlink()}
    assert len(spaces) == 2
    emulated.send_signal(number)
    out, _ = emulated.communicate(timeout=20)
    assert emulated.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL)
    assert ("lateness" in out or "no packet" in out) == (number == signal.SIGINT)
    _, alive = psutil.wait_procs(others, timeout=5)
    assert not alive
    assert not spaces & namespaces()


def namespaces() -> set[Path]:
    """Returns the network namespaces of all processes."""
    found = set()
    for process in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            found.add(process.readlink())
        except OSError:
            continue
    return found


@LINUX
@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (in_host("destination2", "true"), ["host = 'destination2' is not a host", "source1, destination1"]),
        (in_host("destination1"), ["host = destination1 has no program"]),
        (in_host("destination1", "no-such-program"), ["program = no-such-program is not found"]),
        (["--", "destination1", "true"], ["found destination1: write -- host HOST PROGRAM"]),
        (["--duration", "soon"], ["duration", "soon"]),
        (["--set", "tcp.vanilla.mss=20B"], ["flow tcp1 carries packets of at most 60 bytes", "larger mss"]),
    ],
)
def test_invalid_input_for_an_emulation_is_refused_with_a_message(celltrain, line, words, refusal):
    is_refused(celltrain("emulate", line, *words), refusal)


@LINUX
def test_an_emulation_of_a_network_without_tcp_flows_is_refused(celltrain, line):
    line.write_text(LINE + '\n[flow.tcp1.traffic.constant_rate]\nrate = "1Mbps"\npacket = "512B"\n')
    is_refused(celltrain("emulate", line), ["the scenario has no TCP flow"])


def test_emulation_on_an_unsuitable_machine_is_refused_with_a_message(celltrain, line, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    is_refused(celltrain("emulate", line), ["emulate needs Linux"])


@LINUX
def test_missing_permissions_and_programs_of_an_emulation_are_reported_together(celltrain, line, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(emulation, "CAPABILITIES", {"CAP_NEW": 63, "CAP_OTHER": 62})
    monkeypatch.setattr(emulation, "TUN", "/dev/net/none")
    words = [
        "needs CAP_NEW and CAP_OTHER: run it as root",
        "needs /dev/net/none",
        "program ip: install the package iproute2",
    ]
    is_refused(celltrain("emulate", line), words)


@LINUX
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is missing (Debian's package util-linux)")
def test_an_emulation_without_the_required_permissions_is_refused(line):
    without = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    done = subprocess.run(command(line, before=without), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "emulate needs CAP_SYS_ADMIN: run it as root, such as with sudo\n"


def test_an_emulation_warns_if_packets_were_late_enough_to_affect_results():
    report = {"lateness_us": {"p99": 100.0}, "shortest_round_trip_us": 1001.0}
    assert emulation.doubts(report) == []
    [doubt] = emulation.doubts(report | {"shortest_round_trip_us": 999.0})
    assert "1 % of the packets were 100 us late or more" in doubt
    assert emulation.doubts(report | {"lateness_us": {"p99": None}}) == []


@LINUX
@pytest.mark.slow
def test_a_scenario_that_cannot_be_emulated_in_real_time_is_refused_and_leaves_no_files(celltrain, line):
    flows = '\n[flow.tcp2-40.traffic.constant_rate]\nrate = "5Gbps"\npacket = "1000B"\n'
    line.write_text(LINE.replace("sources = 1", "sources = 40").replace("8Mbps", "10Gbps") + flows)
    words = ["the scenario is faster than real time on this machine: after 0.", "behind the clock"]
    # Other tests in this process may have left worker processes.
    before = psutil.Process().children(recursive=True)
    is_refused(celltrain("emulate", line), words)
    assert set(psutil.Process().children(recursive=True)) <= set(before)
