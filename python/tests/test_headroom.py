"""The headroom that groups need, and profiles for another speed or cable."""

from __future__ import annotations

import json
import re
import warnings
from fractions import Fraction
from pathlib import Path

import pytest

import celltrain as ct
from celltrain import mmu
from celltrain.errors import InputError
from celltrain.mmu import generations
from celltrain.mmu.configuration import of_table
from celltrain.mmu.generations import Source

ROOT = Path(__file__).parents[2]


def switch(profile: str, *, speed: int | None = 100_000, cable: str | None = "5m", ports: int = 2) -> mmu.Thresholds:
    """Returns the thresholds of a switch with a lossless profile of this name."""
    table = {
        "generation": "th",
        "pool": {"ingress": {"type": "ingress", "size": 10_000_000}},
        "profile": {profile: {"pool": "ingress", "size": 1248, "xoff": 96_928, "dynamic_th": -3}},
        "port": [
            {
                "names": [f"Ethernet{port}" for port in range(ports)],
                "groups": {"3-4": profile},
                **({} if speed is None else {"speed": speed}),
                **({} if cable is None else {"cable": cable}),
            }
        ],
    }
    return mmu.thresholds(of_table(table, Source(file="switch.toml")))


@pytest.mark.parametrize(
    ("profile", "speed", "cable", "parts"),
    [
        ("pg_lossless_100000_5m_profile", 100_000, "5m", None),
        ("pg_lossless_100000_5m_profile", 100_000, "5.0m", None),
        ("pg_lossless_100000_5m_profile", None, None, None),
        ("pg_lossless_100000_5m_mtu1500_profile", 100_000, "5m", None),
        ("ingress_lossless_profile", 40_000, "300m", None),
        (
            "pg_lossless_100000_5m_profile",
            100_000,
            "300m",
            [
                "port.0.groups.3-4 = pg_lossless_100000_5m_profile is a profile for cables of 5m, but Ethernet0 and 1 more"
                " have cables of 300m",
                "use the headroom of 100000_300m",
            ],
        ),
        ("pg_lossless_100000_5m_profile", 40_000, "5m", ["for 100000 Mb/s, but", "have 40000 Mb/s", "of 40000_5m"]),
        (
            "pg_lossless_100000_5m_profile",
            40_000,
            "2km",
            ["100000 Mb/s and cables of 5m", "40000 Mb/s and cables of 2km"],
        ),
    ],
)
def test_a_headroom_profile_is_reported_if_its_speed_or_cable_length_differs_from_the_port(
    profile, speed, cable, parts
):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        switch(profile, speed=speed, cable=cable)
    messages = [str(one.message) for one in caught if issubclass(one.category, ct.CelltrainWarning)]
    assert len(messages) == (0 if parts is None else 1), messages
    assert all(part in messages[0] for part in parts or ()), messages


def test_the_required_headroom_sums_its_terms_for_the_worst_case_packet_size():
    """At 100 Gb/s, 300 m of cable delay by 1.5 us, in which 18,750 bytes are sent."""
    need = generations.headroom_needed(100_000, Fraction(300), 208)
    terms = (need.delay_bytes, need.own_packet_bytes, need.pause_bytes, need.response_bytes, need.peer_packet_bytes)
    assert terms == (2 * 18_750, 9216 + 20, 84, 394 * 64, 9216)
    assert need.bytes == sum(terms)
    # Packets of 64 bytes take a cell each, every 84 bytes; the last packet takes 45 cells.
    assert need.cells == -(-sum(terms[:4]) // 84) + 45 == 903


@pytest.mark.parametrize("speed", [100, 1_000, 2_500, 10_000, 40_000, 100_000, 400_000, 800_000])
@pytest.mark.parametrize("cell", [64, 80, 208, 254, 1500])
def test_longer_cables_longer_packets_and_slower_pause_responses_never_need_less_headroom(speed, cell):
    """The worst packet length is found without trying every length."""
    need = generations.headroom_needed(speed, Fraction(100), cell, mtu=1500)
    for more in ({"metres": Fraction(101)}, {"mtu": 1564}, {"response": 100_000}):
        call = {"metres": Fraction(100), "mtu": 1500, **more}
        assert generations.headroom_needed(speed, call.pop("metres"), cell, **call).cells >= need.cells
    densest = max(Fraction(-(-length // cell), length + 20) for length in range(64, 1501))
    assert generations.densest(cell, 1500) == densest


def test_text_and_json_output_show_the_required_and_the_configured_headroom():
    found = switch("pg_lossless_100000_5m_profile")
    [row] = found.to_dict()["rows"]
    assert (row["headroom_cells"], row["headroom_needed_cells"]) == (466, 464)
    assert row["headroom_needed"]["response_bytes"] == 394 * 64
    grid = found.grid()
    assert grid.rows[0][grid.heads.index("headroom") :][:2] == ["466", "464"]
    assert any("464  headroom needed for 625 bytes in twice the delay" in line for line in found.words())
    assert switch("lossless", cable=None).to_dict()["rows"][0]["headroom_needed"] is None


def test_the_package_the_engine_and_the_page_have_equal_limits_of_the_pause_response_time():
    rust = (ROOT / "crates/celltrain-core/src/memory/pause_response.rs").read_text()
    listed = re.findall(r"^    \(([\d_]+), (\d+)\),$", rust, re.MULTILINE)
    assert {int(speed.replace("_", "")): int(quanta) for speed, quanta in listed} == generations.RESPONSE
    page = (ROOT / "docs/design/shared-memory.md").read_text()
    rows = [
        re.findall(r"[\d.]+", row.split("|", 2)[2])
        for row in page.splitlines()
        if row.startswith(("| speed", "| quanta"))
    ]
    assert {
        round(1000 * float(speed)): int(quanta) for speed, quanta in zip(*rows, strict=True)
    } == generations.RESPONSE


@pytest.mark.parametrize("option", [{"mtu": 63}, {"mtu": 70_000}, {"response": -1}, {"response": 70_000}])
def test_an_impossible_packet_length_or_pause_response_time_is_refused(option, tmp_path):
    [(name, value)] = option.items()
    file = tmp_path / "switch.toml"
    file.write_text(
        'generation = "th"\npool.p = { type = "ingress", size = 1000000 }\n'
        'profile.a = { pool = "p", dynamic_th = 0 }\nport = [{ names = ["E0"], groups = { 0 = "a" } }]\n'
    )
    with pytest.raises(InputError, match=f"{name} = {value} is not from"):
        mmu.thresholds(file, **option)


def test_an_outdated_headroom_profile_in_the_files_of_a_switch_is_reported_with_file_and_line(tmp_path):
    """The cable was replaced, but the profile is still for 5 m and another speed."""
    config = {
        "PORT": {"Ethernet0": {"speed": "40000"}},
        "CABLE_LENGTH": {"AZURE": {"Ethernet0": "300m"}},
        "BUFFER_POOL": {"pool": {"size": "10000000", "type": "ingress", "mode": "dynamic"}},
        "BUFFER_PROFILE": {
            "pg_lossless_100000_5m_profile": {"pool": "pool", "size": "1248", "xoff": "96928", "dynamic_th": "-3"}
        },
        "BUFFER_PG": {"Ethernet0|3-4": {"profile": "pg_lossless_100000_5m_profile"}},
    }
    (tmp_path / "config_db.json").write_text(json.dumps(config, indent=1))
    with pytest.warns(ct.CelltrainWarning, match=r"config_db.json:\d+: .*has 40000 Mb/s and cables of 300m; use"):
        found = mmu.thresholds(tmp_path, generation="th")
    [row] = found.to_dict()["rows"]
    assert row["headroom_needed_cells"] == generations.headroom_needed(40_000, Fraction(300), 208).cells > 400
