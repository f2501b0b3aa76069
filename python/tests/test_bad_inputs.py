"""Damaged or invalid files of any kind. Each gives one clear line, exit code 2 and no traceback, quickly."""

from __future__ import annotations

import os
import random
import re
import sys
from pathlib import Path

import pytest
from conftest import NIGHTLY, ROOT, SMALL

import celltrain as ct


def expect_refusal(celltrain, path: Path, *words: str):
    for command in ("run", "check"):
        answer = celltrain(command, path)
        assert answer.code == 2, answer
        assert answer.out == ""
        assert answer.err.count("\n") == len(answer.err.splitlines()) >= 1
        assert "Traceback" not in answer.err
        for line in answer.err.splitlines():
            assert line.startswith(str(path)), line
        for word in words:
            assert word in answer.err
        as_json = celltrain(command, path, "--json")
        assert as_json.code == 2
        assert as_json.err == ""
        assert [fault["message"] for fault in as_json.json["faults"]] == answer.err.splitlines()
    with pytest.raises(ct.ScenarioError):
        ct.load(path)


def test_a_missing_input_file_is_refused(celltrain, tmp_path):
    expect_refusal(celltrain, tmp_path / "nowhere.toml", "no such file")


def test_a_folder_where_an_input_file_is_expected_is_refused(celltrain, tmp_path):
    expect_refusal(celltrain, tmp_path, "is a folder")


def test_a_file_where_a_folder_is_expected_is_refused(celltrain, small):
    expect_refusal(celltrain, small / "inside.toml", "cannot be read")


def test_an_unreadable_input_file_is_refused(celltrain, small, monkeypatch):
    # Root can read every file, so this test simulates the refusal.
    def refuse(path, *_):
        raise PermissionError(13, "permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)
    expect_refusal(celltrain, small, "cannot be read (permission denied)")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_without_a_writer_is_refused_as_input_file(celltrain, tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    expect_refusal(celltrain, tmp_path / "pipe.toml", "not a regular file")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs an endless device")
def test_a_device_that_never_ends_is_refused_as_input_file(celltrain):
    expect_refusal(celltrain, Path("/dev/zero"), "not a regular file")


def test_an_input_file_too_large_for_memory_is_refused_before_it_is_read(celltrain, tmp_path):
    path = tmp_path / "large.toml"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    expect_refusal(celltrain, path, "1099511.6 MB", "at most 16 MiB")


@pytest.mark.slow
@pytest.mark.parametrize("text", ["a = " + "[" * 500_000, "a = " + "{b=" * 150_000, "[" + "a." * 400_000 + "a]"])
def test_an_input_file_may_contain_brackets_nested_as_deeply_as_the_limit_allows(celltrain, tmp_path, text):
    path = tmp_path / "deep.toml"
    path.write_text(text)
    expect_refusal(celltrain, path)


def test_an_empty_input_file_is_refused(celltrain, tmp_path):
    path = tmp_path / "empty.toml"
    path.touch()
    expect_refusal(celltrain, path, "duration is missing", "topology is missing")


def test_a_binary_input_file_is_refused(celltrain, tmp_path):
    path = tmp_path / "binary.toml"
    path.write_bytes(random.Random(1).randbytes(5000))
    expect_refusal(celltrain, path, "not text in UTF-8")


def test_an_input_file_in_an_encoding_other_than_utf_8_is_refused(celltrain, tmp_path):
    path = tmp_path / "latin.toml"
    path.write_bytes('# ein Kommentar\nname = "für"\n'.encode("latin-1"))
    expect_refusal(celltrain, path, "byte 0xfc in line 2")


def test_an_input_file_with_zero_bytes_or_terminal_escape_codes_is_refused(celltrain, tmp_path):
    path = tmp_path / "control.toml"
    path.write_bytes(SMALL.replace("small", "a\\u001b[31mb").encode() + b'"\\u001b[2Jkey" = 1\nx = \x00\x1b[2J\n')
    expect_refusal(celltrain, path)
    assert "\x1b" not in celltrain("check", path).err


def test_an_input_file_may_have_a_byte_order_mark_and_crlf_line_endings(celltrain, small):
    small.write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())
    assert celltrain("check", small).code == 0


@pytest.mark.sampled(4)
@pytest.mark.parametrize("end", range(0, len(SMALL), 7))
def test_a_truncated_input_file_is_refused(celltrain, tmp_path, end):
    path = tmp_path / "cut.toml"
    path.write_text(SMALL[:end])
    answer = celltrain("check", path)
    assert answer.code in {0, 2}
    assert "Traceback" not in answer.err
    assert bool(answer.err) == (answer.code == 2)


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "old, new, line, words",
    [
        ("buffer = 100", "bufer = 100", 9, ["port.bottleneck.bufer is unknown", "did you mean buffer?"]),
        ("buffer = 100", "buffer = -1", 9, ["port.bottleneck.buffer = -1"]),
        ("buffer = 100", 'buffer = "lots"', 9, ['port.bottleneck.buffer = "lots"', "infinite"]),
        ("policy.epd", "policy.ebd", 11, ["port.bottleneck.policy.ebd is unknown", "epd"]),
        ("threshold = 60", "threshold = 600", 12, ["threshold = 600 is above the buffer of 100 cells"]),
        ("threshold = 60", "threshold = nan", 12, ["threshold"]),
        ('"20ms"', '"20"', 2, ['duration = "20" is not a time (no unit)']),
        ('"20ms"', "20", 2, ["duration = 20"]),
        ('"20ms"', '"-1s"', 2, ["negative"]),
        ("sources = 3", "sources = 1e400", 5, ["sources"]),
        ("sources = 3", "sources = 99999999999999999999", 5, ["sources"]),
        ('name = "small"', 'name = "small"\nname = "again"', 2, ["name"]),
        ('name = "small"', "name = small", 1, ["not TOML"]),
    ],
)
def test_the_error_for_an_invalid_value_in_an_input_file_gives_the_value_and_its_line(
    celltrain, small, old, new, line, words
):
    assert old in SMALL
    small.write_text(SMALL.replace(old, new))
    expect_refusal(celltrain, small, f"{small}:{line}: ", *words)


INTERNETWORK = """duration = "20ms"

[topology.internetwork]
sources = 3
ip_delay = "100us"
atm_delay = "100us"

[edge."*"]
buffer = 500

[edge."*".discard.adaptive_discard]

[port."sw*->sw*"]
buffer = 1000

[port."sw*->sw*".policy.tail_drop]

[port."sw*->sw*".allocator.efci]
threshold = 250

[vc.tcp1-3.abr]
nrm = 32
"""

ONE_PORT = INTERNETWORK.replace("sw*->sw*", "sw1->sw2")

NETWORK = """duration = "20ms"

[topology.network]
hosts = ["a", "b"]
switches = ["s", "t"]
edge_devices = ["e", "f"]
links = [
    { between = ["a", "e"], delay = "5us" },
    { between = ["e", "s"], delay = "5us" },
    { between = ["s", "t"], delay = "5us" },
    { between = ["s", "f"], delay = "5us" },
    { between = ["f", "t"], delay = "5us" },
    { between = ["t", "b"], delay = "5us" },
]
flows = [{ from = "a", to = "b" }]

[edge."*"]

[port.default]
buffer = 1000
policy.tail_drop = {}
"""

MERGE = """duration = "20ms"
topology.vc_merge = { vcs = 2, sources_per_vc = 2, link_delay = "5us" }
port.default = { buffer = 1000, policy.tail_drop = {}, allocator.efci = { threshold = 250 } }
vc.tcp1-4.tagged = true
"""

POWERS = "is not a power of two from 1/32768 (0.000030517578125) to 1"
ALLOCATORS = "efci, equal_share, erica, erica_plus, max_min"


def test_the_rate_control_scenarios_are_valid_before_other_tests_make_them_invalid(celltrain, tmp_path):
    path = tmp_path / "sound.toml"
    for text in (INTERNETWORK, ONE_PORT, NETWORK, MERGE):
        path.write_text(text)
        assert celltrain("check", path).code == 0


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "base, old, new, line, fault",
    [
        (INTERNETWORK, "nrm = 32", "rif = 0.1", 22, f"vc.tcp1-3.abr.rif = 0.1 {POWERS}"),
        (INTERNETWORK, "nrm = 32", "rif = 2.0", 22, f"vc.tcp1-3.abr.rif = 2.0 {POWERS}"),
        (INTERNETWORK, "nrm = 32", "rdf = 0.3", 22, f"vc.tcp1-3.abr.rdf = 0.3 {POWERS}"),
        (
            INTERNETWORK,
            "nrm = 32",
            'mcr = "60Mbps"',
            21,
            "vc guarantees 180Mbps to VCs on sw1->sw2, which has only 155.52Mbps; the sum of mcr must not exceed this rate",
        ),
        (
            INTERNETWORK,
            "nrm = 32",
            'mcr = "160Mbps"',
            22,
            'vc.tcp1-3.abr.mcr = "160Mbps" is not a rate up to pcr = "155.52Mbps"',
        ),
        (
            INTERNETWORK,
            "nrm = 32",
            'pcr = "40Mbps"\nicr = "50Mbps"',
            23,
            'vc.tcp1-3.abr.icr = "50Mbps" is not a positive rate from mcr = "0bps" to pcr = "40Mbps"',
        ),
        (
            INTERNETWORK,
            "nrm = 32",
            "nrm = 33",
            22,
            "vc.tcp1-3.abr.nrm = 33 is not one of 2, 4, 8, 16, 32, 64, 128, 256 cells",
        ),
        (
            INTERNETWORK,
            "nrm = 32",
            'rif = "1/32"',
            22,
            'vc.tcp1-3.abr.rif = "1/32" is a text; write a number without quotes, such as 0.03125',
        ),
        (
            INTERNETWORK,
            "nrm = 32",
            'nrm = "32"',
            22,
            'vc.tcp1-3.abr.nrm = "32" is a text; write a number without quotes, such as 32',
        ),
        (
            INTERNETWORK,
            "nrm = 32",
            'pcr = "1kbps"',
            21,
            'vc.tcp1-3.abr.tcr = "4.24kbps" must be a positive rate of at most pcr = "1kbps", so the default of tcr is too high',
        ),
        (
            INTERNETWORK,
            "nrm = 32",
            'nrm = 32\n\n[vc.tcp1]\nclass = "vbr"',
            24,
            "vc.tcp1 takes tcp1 out of [vc.tcp1-3.abr]: a VC uses only one table: the one with its name, or else the "
            "first matching range; write [vc.tcp1.abr] too, or leave tcp1 out of the range",
        ),
        (
            INTERNETWORK,
            "nrm = 32",
            'nrm = 32\n\n[vc.tcp1-acks]\nclass = "vbr"',
            25,
            'vc.tcp1-acks.class = "vbr" cannot be combined with [vc.tcp1-3.abr]: a VC has one service, and schedulers by class serve '
            "ABR with ubr; leave it out",
        ),
        (
            ONE_PORT,
            "sources = 3",
            "sources = 3\nbidirectional = true",
            14,
            'port."sw2->sw1" has no table and no allocator, but carries the ABR VC tcp1-acks: cells can arrive at up to '
            "466.56Mbps, but leave at 155.52Mbps; write a table for this port, or [port.default] for all other ports, "
            f"with an allocator ({ALLOCATORS})",
        ),
        (
            ONE_PORT,
            '".allocator.efci]',
            '".scheduler.strict_priority]\n\n[port."sw1->sw2".allocator.efci]',
            18,
            'port."sw1->sw2".scheduler.strict_priority has only one class to serve: every VC that crosses sw1->sw2 is of class '
            "ubr, as ABR VCs are; leave the scheduler out",
        ),
        (
            INTERNETWORK,
            "buffer = 500",
            "buffer = 60",
            11,
            'edge."*".discard.adaptive_discard.low_threshold = 6 must be at most 5, the number of full '
            "packets that fit into the buffer, so the default of low_threshold is too high",
        ),
        (INTERNETWORK, "nrm = 32", "nrm = 512", 22, "vc.tcp1-3.abr.nrm = 512 is not a power of two (2 to 256)"),
        (
            INTERNETWORK,
            '[port."sw*->sw*".allocator.efci]\nthreshold = 250\n',
            "",
            13,
            'port."sw*->sw*".allocator is missing, but sw1->sw2 carries the ABR VC tcp1; choose the allocator that sets '
            f"the rate of its source: {ALLOCATORS}",
        ),
        (
            INTERNETWORK,
            "allocator.efci",
            "allocator.efcj",
            18,
            f'port."sw*->sw*".allocator.efcj is unknown; did you mean efci? It must be one of {ALLOCATORS}',
        ),
        (
            INTERNETWORK,
            "threshold = 250",
            "threshold = 1001",
            19,
            'port."sw*->sw*".allocator.efci.threshold = 1001 is above the buffer of 1000 cells; a threshold is at most the '
            "buffer",
        ),
        (
            INTERNETWORK,
            "buffer = 500",
            "buffer = 5",
            9,
            'edge."*".buffer = 5 is smaller than a packet of 12 cells; the buffer of an edge device must hold at least one packet',
        ),
        (INTERNETWORK, "buffer = 500", "buffer = 0", 9, 'edge."*".buffer = 0 is not a whole number (1 to 4294967295)'),
        (
            INTERNETWORK,
            "adaptive_discard]",
            "adaptive_discard]\nlow_threshold = 900",
            12,
            'edge."*".discard.adaptive_discard.low_threshold = 900 must be at most 41, the number of full '
            "packets that fit into the buffer",
        ),
        (
            INTERNETWORK,
            "[vc.",
            "[edge.egde1]\n\n[vc.",
            21,
            'edge.egde1 is not an edge device; did you mean "edge1"? Write a device\'s name such as "edge1", or a pattern '
            'such as "*"',
        ),
        (
            INTERNETWORK,
            '[edge."*"]\nbuffer = 500\n\n[edge."*".discard.adaptive_discard]\n',
            "",
            1,
            'edge has no table for the edge device "edge1"; write [edge."*"] with its buffer',
        ),
        (
            INTERNETWORK,
            "[vc.tcp1-3.abr]",
            "[vc.tcp1-acks.abr]",
            21,
            "vc.tcp1-acks.abr is not necessary: the table of the VC of the data controls both directions; write [vc.tcp1.abr]",
        ),
        (
            INTERNETWORK,
            "nrm = 32",
            '\n[vc.tcp1-3.gfr]\nmcr = "10Mbps"\nmfs = 12\nmbs = 24',
            23,
            "vc.tcp1-3.gfr cannot be combined with [vc.tcp1-3.abr]; a VC has only one service: a guaranteed frame rate or ABR",
        ),
        (
            INTERNETWORK,
            "nrm = 32",
            'nrm = 32\nout_of_rate = true\nmcr = "1Mbps"',
            23,
            'vc.tcp1-3.abr.out_of_rate = true has no effect with mcr = "1Mbps": ACR is never below tcr = "4.24kbps", so '
            "no cell is sent out of rate; leave it out, or lower mcr below tcr",
        ),
        (
            INTERNETWORK,
            "nrm = 32",
            "nrm = 32\n\n[vc.tcp1-3]\ntagged = true",
            25,
            "vc.tcp1-3.tagged = true cannot be combined with [vc.tcp1-3.abr]: cells in rate have CLP = 0 (TM 4.0, source rule 4); "
            "leave it out",
        ),
        (
            MERGE,
            "vc.tcp1-4.tagged = true",
            "vc.tcp1.abr = {}",
            4,
            "vc.tcp1.abr controls the rate of a VC that merges with other VCs; a control loop has only one source",
        ),
        (
            NETWORK,
            'to = "b" }',
            'to = "b", path = ["a", "e", "s", "f", "t", "b"] }',
            None,
            'topology.network.flows[0] crosses the edge device "f" in its middle; an edge device must be next to a host, with a switch or '
            "another edge device behind it",
        ),
        (
            NETWORK,
            '    { between = ["s", "t"], delay = "5us" },\n',
            "",
            None,
            'topology.network.flows[0].to = "b" cannot be reached from "a": no links lead there through switches. An edge '
            "device must be next to a host, not in the middle of a path",
        ),
    ],
)
def test_impossible_rate_control_settings_are_refused_with_a_helpful_message(
    celltrain, tmp_path, base, old, new, line, fault
):
    assert old in base
    path = tmp_path / "bad.toml"
    path.write_text(base.replace(old, new, 1))
    expect_refusal(celltrain, path)
    [said] = celltrain("check", path).err.splitlines()
    place, _, words = said.removeprefix(f"{path}:").partition(": ")
    assert words == fault
    assert line is None or int(place) == line


def test_a_vc_range_that_extends_beyond_the_last_vc_gives_a_warning(celltrain, tmp_path):
    path = tmp_path / "beyond.toml"
    path.write_text(INTERNETWORK.replace("tcp1-3", "tcp1-4"))
    answer = celltrain("check", path)
    assert answer.code == 0
    assert "the range vc.tcp1-4 ends at tcp4, but tcp3 is the last name" in answer.err


@pytest.mark.slow
def test_random_damage_to_input_files_never_gives_a_traceback(celltrain, tmp_path):
    chance = random.Random(20)
    path = tmp_path / "damaged.toml"
    for _ in range(150 if NIGHTLY else 20):
        text = bytearray(SMALL.encode())
        for _ in range(chance.randint(1, 6)):
            text[chance.randrange(len(text))] = chance.choice(b'0123456789abcs"=[].#\n-+{}\xff\x00')
        path.write_bytes(text)
        answer = celltrain("check", path)
        assert answer.code in {0, 2}, text
        assert "Traceback" not in answer.err


def test_the_name_of_an_input_file_need_not_be_valid_unicode(celltrain, tmp_path):
    if sys.platform != "linux":
        pytest.skip("this system does not allow file names that are not Unicode")
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/na\xffme [red]x[bold].toml"))
    answer = celltrain("check", path)
    assert answer.code == 2
    assert "no such file" in answer.err
    path.write_text(SMALL)
    assert celltrain("run", path).code == 0


def test_all_invalid_input_files_are_reported_if_there_are_several(celltrain, small, tmp_path):
    small.write_text("x = 1")
    answer = celltrain("check", small, tmp_path / "missing.toml", ROOT / "scenarios" / "lan-epd.toml")
    assert answer.code == 2
    assert f"{small}:1: x is unknown" in answer.err
    assert "missing.toml: there is no such file" in answer.err
    assert "lan-epd.toml: no problems found" in answer.out


@pytest.mark.parametrize("file", [True, False])
def test_an_impossible_output_folder_is_refused_before_the_run(celltrain, small, monkeypatch, file):
    monkeypatch.setattr("celltrain.running.results.run", lambda *_, **__: pytest.fail("it ran"))
    answer = celltrain("run", small, "--out", small if file else small / "below")
    assert answer.code == 2
    assert str(small) in answer.err
    assert "cannot be written" in answer.err


def test_the_plot_command_requires_an_input_file(celltrain, small):
    answer = celltrain("run", small, "--plot")
    assert answer.code == 2
    assert "--plot" in answer.err


def test_trace_options_without_an_output_folder_are_refused_and_the_message_names_the_missing_option(celltrain, small):
    answer = celltrain("run", small, "--trace", "queue,cwnd", "--json")
    assert answer.code == 2
    [fault] = answer.json["faults"]
    assert (
        fault["message"]
        == "--trace = queue,cwnd records series; name a folder for the series with --out DIR, or a picture with --plot PICTURE"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["--trace", "cwd"],
        ["--engine", "warp"],
        ["--trace", "queue", "--step", "soon"],
        ["--trace", "queue", "--port", "x"],
    ],
)
def test_invalid_options_give_exit_code_2(celltrain, small, tmp_path, arguments):
    answer = celltrain("run", small, "--out", tmp_path / "out", *arguments)
    assert answer.code == 2
    assert arguments[-1] in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("command", ["run", "check", "compare", "why", "vet", "sweep --dry-run", "tune --dry-run"])
def test_the_error_for_a_file_of_the_wrong_kind_states_the_kind_that_the_command_requires(celltrain, tmp_path, command):
    table = tmp_path / "cwnd.csv"
    table.write_text("time_s,flow,cwnd\n0.0,tcp1,1\n0.1,tcp1,2\n")
    told = celltrain(*command.split(), table)
    assert told.code == 2
    assert re.fullmatch(r".*cwnd\.csv: is not a (scenario|plan|policy), which is a TOML file: line 1 .*\n", told.err)


PACKETS = """duration = "20ms"
cell.size = "250B"
topology.star = { hosts = 5, link_rate = "10Gbps", link_delay = "2us" }
incast.query = { senders = 4, receivers = ["host1"], bytes = "600kB", interval = "5ms" }
tcp.newreno = { mss = "1460B" }
port.default = { buffer = 100, policy.tail_drop = {} }
"""


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "old, new, line, words",
    [
        ("tcp.newreno", 'aal5.encapsulation = "vc_mux"\ntcp.newreno', 5, ["aal5.encapsulation has no effect", "leave"]),
        ("tail_drop", "ppd", 6, ["port.default.policy.ppd is a rule for AAL5", "use tail_drop"]),
        ("tail_drop", "drop_from_front", 6, ["port.default.policy.drop_from_front", "choose another policy"]),
        ('cell.size = "250B"', 'framing = "packet"', 2, ['framing = "packet"', 'did you mean "packets"?']),
        ("[port]", "", 7, ['link."*".wire = "ethernet" needs framing = "packets"', "set this framing"]),
        ("tcp.newreno", 'link."*".wire = "ether"\ntcp.newreno', 5, ['link."*".wire = "ether"', '"ethernet"']),
        ("tcp.newreno", "switch.cut_through = 1\ntcp.newreno", 5, ["switch.cut_through = 1", "true or false"]),
        ("tcp.newreno", 'switch.admission = "middle"\ntcp.newreno', 5, ['switch.admission = "middle"', '"end"']),
    ],
)
def test_with_packet_framing_a_setting_that_does_not_apply_is_refused_with_its_line(
    celltrain, tmp_path, old, new, line, words
):
    text = PACKETS.replace(old, new)
    if old == "[port]":
        text = PACKETS.replace('cell.size = "250B"\n', "\n") + 'link."*".wire = "ethernet"\n'
    assert text != PACKETS
    path = tmp_path / "packets.toml"
    path.write_text(text)
    expect_refusal(celltrain, path, f"{path}:{line}: ", *words)


def test_the_error_for_an_unused_protocol_stack_gives_its_line_in_the_file(celltrain, tmp_path):
    path = tmp_path / "unused.toml"
    path.write_text(ONLY_UDP)
    expect_refusal(celltrain, path, f"{path}:5: stack.smoltcp is used by no flow and no request", "leave it out")


ONLY_UDP = """duration = "20ms"
topology.n_source = { sources = 1, link_delay = "5us" }
flow.tcp1.traffic.constant_rate = { rate = "1Mbps", packet = "1000B" }
port.default = { buffer = 100, policy.tail_drop = {} }
stack.smoltcp = {}
"""


LOSSLESS = PACKETS.replace(
    "port.default = { buffer = 100, policy.tail_drop = {} }",
    """[switch."*".memory]
cells = 1000
pauses = "links"
[switch."*".memory.pool.lossless]
side = "ingress"
policy.dynamic_threshold = { alpha = 0.01 }
[[switch."*".memory.queue]]
pool = "lossless"
lossless = true
headroom = 6""",
)


def test_a_run_warns_about_lossless_priority_groups_with_too_little_headroom(celltrain, tmp_path):
    path = tmp_path / "lossless.toml"
    path.write_text(LOSSLESS)
    answer = celltrain("run", path, "--json")
    assert answer.code == 0
    lost = [one for one in answer.json["queues"] if one["refused_cells"] > 0]
    assert f"warning: queues: {len(lost)} lossless groups refused packets although the link was paused" in answer.err
    assert "with 6 cells of headroom in use" in answer.err
    path.write_text(LOSSLESS.replace("headroom = 6", "headroom = 60"))
    assert "refused packets" not in celltrain("run", path, "--json").err
