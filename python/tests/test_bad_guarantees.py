"""Guarantees that no port can keep, and merges that would interleave frames, get helpful messages."""

from __future__ import annotations

import pytest
from test_bad_inputs import expect_refusal

GUARANTEED = """name = "guarantees"
duration = "1ms"

[topology.n_source]
sources = 3
link_delay = "5us"
link_rate = "149.76Mbps"

[tcp.sack_pipe]
mss = "1024B"

{contracts}
[port.bottleneck]
buffer = 1000

{port}
"""

EPD = "[port.bottleneck.policy.epd]\nthreshold = 800"

MERGED = """name = "merges"
duration = "1ms"

[topology.network]
hosts = ["a", "b", "c", "z"]
switches = ["s1", "s2"]
links = [
    {{ between = ["a", "s1"], delay = "5us" }},
    {{ between = ["b", "s1"], delay = "5us" }},
    {{ between = ["c", "s2"], delay = "5us" }},
    {{ between = ["s1", "s2"], delay = "5us" }},
    {{ between = ["s2", "z"], delay = "5us" }},
]
flows = [{flows}]

[port.default]
buffer = 1000

{port}
"""


def contract(vc: str, **keys: object) -> str:
    lines = [f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}" for key, value in keys.items()]
    return "\n".join([f"[vc.{vc}.gfr]", *lines, ""])


def guaranteed(*contracts: str, port: str = EPD) -> str:
    return GUARANTEED.format(contracts="\n".join(contracts), port=port)


def merged(*sources: str, port: str = "[port.default.policy.tail_drop]") -> str:
    return MERGED.format(flows=", ".join(f'{{ from = "{a}", to = "z", vc = "v" }}' for a in sources), port=port)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            guaranteed(contract("tcp1", mcr="150Mbps", mfs=23)),
            ['vc.tcp1.gfr.mcr = "150Mbps"', "a positive rate up to pcr", "149.76Mbps"],
        ),
        (
            guaranteed(contract("tcp1", mcr="80Mbps", mfs=23), contract("tcp2", mcr="80Mbps", mfs=23)),
            ["160Mbps to VCs on sw1->sw2, which has only 149.76Mbps", "the sum of mcr must not exceed this rate"],
        ),
        (
            guaranteed(contract("tcp1", mcr="20Mbps", mfs=23, mbs=45)),
            ["vc.tcp1.gfr.mbs = 45", "two frames of mfs = 23"],
        ),
        (
            guaranteed(contract("tcp1", mcr="20Mbps", mfs=22)),
            ["vc.tcp1.gfr.mfs = 22", "fewer than the 23 cells of the VC's longest frame"],
        ),
        (
            guaranteed(port="[port.bottleneck.policy.dfba]\nthresholds = { tcp1-2 = 400, tcp3 = 200 }"),
            ["dfba.thresholds add up to 1000 cells", "less than the buffer, 1000"],
        ),
        (
            guaranteed(port=EPD + "\n[port.bottleneck.scheduler.wfq]\nweights = { tcp1 = 0, default = 1 }"),
            ["scheduler.wfq.weights.tcp1 = 0", "a number above 0"],
        ),
        (
            guaranteed(port=EPD + "\n[port.bottleneck.scheduler.wfq]\nweights = { tcp1-2 = 1 }"),
            ["scheduler.wfq.weights", '"tcp3"', "add the key default"],
        ),
        (merged("a", "b", "c"), ["merges at s1->s2 and again at s2->z", "interleaved", "a VC merges at one port"]),
        (
            merged("a", "b", port="[port.default.policy.drop_from_front]"),
            ["drop_from_front", "s1->s2 merges VCs", "choose another policy"],
        ),
        (
            merged("a", "b", port="[port.default.policy.tail_drop]\n[port.default.scheduler.wfq]\nweights = 1"),
            ["scheduler.wfq", "s1->s2 merges VCs into one queue", "remove the scheduler"],
        ),
    ],
)
def test_unsatisfiable_rate_guarantees_and_vc_merges_that_would_interleave_frames_are_refused(
    celltrain, tmp_path, text, words
):
    path = tmp_path / "guarantees.toml"
    path.write_text(text)
    expect_refusal(celltrain, path, *words)


def test_satisfiable_rate_guarantees_and_valid_vc_merges_are_accepted(celltrain, tmp_path):
    path = tmp_path / "guarantees.toml"
    contracts = [contract("tcp1", mcr="80Mbps", mfs=23, mbs=46), contract("tcp2", mcr="69.76Mbps", mfs=23)]
    dfba = "[port.bottleneck.policy.dfba]\nthresholds = { tcp1-2 = 400, tcp3 = 199 }"
    for text in (guaranteed(*contracts), guaranteed(port=dfba), merged("a", "b"), merged("a", "a", "a")):
        path.write_text(text)
        answer = celltrain("check", path)
        assert (answer.code, answer.err) == (0, ""), answer
