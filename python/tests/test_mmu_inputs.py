"""`celltrain mmu` and `celltrain import sonic`: files of SONiC, comparisons, and inputs that are refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import Command, is_refused

from celltrain.mmu import expected

POOLS = {
    "BUFFER_POOL": {
        "ingress_lossless_pool": {"size": "164619432", "type": "ingress", "mode": "dynamic", "xoff": "33690560"},
        "egress_lossless_pool": {"size": "164619432", "type": "egress", "mode": "static"},
    },
    "BUFFER_PROFILE": {
        "egress_lossy_profile": {"pool": "egress_lossless_pool", "size": "1778", "dynamic_th": "0"},
        "egress_lossless_profile": {"pool": "egress_lossless_pool", "size": "0", "static_th": "82682080"},
        "ingress_lossy_profile": {"pool": "ingress_lossless_pool", "size": "0", "static_th": "82682080"},
    },
}
LOOKUP = """\
# speed cable size xon xoff threshold xon_offset
  400000 5m 8636 0 400000 0 3556
  800000 5m 8636 0 724662 0 3556
"""
EXPECTED = """\
qos_params:
    th5:
        topo-lt2-p32o64: &lt2
            800000_5m: &800g
                hdrm_pool_size:
                    pgs: [3, 4]
                    pgs_num: 24
                    pkts_num_hdrm_full: 2853
                    pkts_num_hdrm_partial: 701
                    pkts_num_trig_pfc: 125589
                    pkts_num_trig_pfc_multi: [125589,
                        62811, 31423]
                xoff_1:
                    pg: 3
                    pkts_num_margin: 4
                    pkts_num_trig_ingr_drp: 128443
                    pkts_num_trig_pfc: 125589
                lossy_queue_1:
                    pg: 0
                    pkts_num_trig_egr_drp: 125563
                wm_pg_shared_lossless:
                    cell_size: 254
                    packet_size: 64
                    pg: 3
                    pkts_num_fill_min: 34
                    pkts_num_trig_pfc: 125589
                wm_q_shared_lossy:
                    queue: 0
                    pkts_num_fill_min: 7
            400000_5m:
                xoff_1:
                    pg: 4
                    pkts_num_trig_ingr_drp: 127164
            xon_1:
                pg: 3
                pkts_num_dismiss_pfc: 14
                pkts_num_trig_pfc: 125589
            cell_size: 254
"""


def config_db(ports: int = 96) -> dict:
    names = [f"Ethernet{8 * number}" for number in range(ports)]
    return {
        **json.loads(json.dumps(POOLS)),
        "BUFFER_PG": {f"{name}|0": {"profile": "ingress_lossy_profile"} for name in names},
        "BUFFER_QUEUE": {
            f"{name}|{queues}": {"profile": f"[BUFFER_PROFILE|{profile}]"}
            for name in names
            for queues, profile in (("0-2", "egress_lossy_profile"), ("3-4", "egress_lossless_profile"))
        },
        "CABLE_LENGTH": {"AZURE": dict.fromkeys(names, "5m")},
        "DEVICE_METADATA": {"localhost": {"hwsku": "Arista-7060X6-64PE-B-P32O64"}},
        "PORT": {name: {"speed": "800000", "lanes": "1"} for name in names},
        "PORT_QOS_MAP": {name: {"pfc_enable": "3,4"} for name in names},
    }


def write(folder: Path, table: dict) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config_db.json").write_text(json.dumps(table, indent=4))
    return folder


@pytest.fixture
def switch(tmp_path: Path) -> Path:
    """A folder with the configuration database and the headroom of lossless groups."""
    folder = write(tmp_path / "switch", config_db())
    (folder / "pg_profile_lookup.ini").write_text(LOOKUP)
    return folder


@pytest.fixture
def device(tmp_path: Path) -> Path:
    """A folder like SONiC's for a type of switch, with the buffer template rendered."""
    folder = tmp_path / "device"
    folder.mkdir()
    (folder / "buffers_defaults_lt2.j2").write_text(json.dumps(POOLS, indent=4)[1:-2] + ",\n")
    (folder / "pg_profile_lookup.ini").write_text(LOOKUP)
    rows = "".join(f"Ethernet{8 * number} 1,2 etp{number} {number} 800000\n" for number in range(96))
    (folder / "port_config.ini").write_text(f"# name lanes alias index speed\n{rows}")
    return folder


@pytest.fixture
def toml(switch: Path, celltrain: Command) -> Path:
    """The configuration file written by `celltrain import sonic`."""
    path = switch.parent / "switch.toml"
    assert celltrain("import", "sonic", switch, "--out", path).code == 0
    return path


def lossless(rows: list[dict]) -> dict:
    return next(row for row in rows if row["pause_cells"] is not None)


def test_a_switch_configuration_folder_and_the_file_exported_from_it_give_the_same_thresholds(switch, toml, celltrain):
    answers = [celltrain("mmu", "thresholds", path, "--json").json for path in (switch, toml)]
    assert answers[0] == answers[1]
    row = lossless(answers[0]["rows"])
    assert (row["group"], row["pause_cells"], row["ingress_drop_cells"]) == ("3-4", 125589, 128443)
    assert 'names = ["Ethernet0 to Ethernet760 by 8"]' in toml.read_text()
    assert len(toml.read_text().splitlines()) < 50


def test_the_device_files_of_a_switch_type_suffice_for_an_import_except_for_the_cable_length(device, celltrain):
    is_refused(
        celltrain("mmu", "thresholds", device, "--generation", "th5"),
        ["port_config.ini: PORT.Ethernet0", "CABLE_LENGTH", "--cable"],
    )
    answer = celltrain("mmu", "thresholds", device, "--generation", "th5", "--cable", "5m", "--json").json
    assert lossless(answer["rows"])["pause_cells"] == 125589
    assert {row["egress_drop_cells"] for row in answer["rows"]} == {125563, None}


def test_by_default_priority_groups_3_and_4_of_a_switch_are_lossless(switch, celltrain):
    table = config_db()
    table["PORT_QOS_MAP"] = {"global": {"dscp_to_tc_map": "AZURE"}}
    write(switch, table)
    assert lossless(celltrain("mmu", "thresholds", switch, "--json").json["rows"])["group"] == "3-4"
    table["PORT_QOS_MAP"] = {name: {"pfc_enable": "2,3,4,6"} for name in table["PORT"]}
    write(switch, table)
    rows = celltrain("mmu", "thresholds", switch, "--json").json["rows"]
    assert [row["group"] for row in rows if row["pause_cells"]] == ["2-4", "6"]


def test_in_the_buffer_keys_of_a_modular_switch_the_port_name_is_followed_by_the_priorities(switch, celltrain):
    table = config_db()
    table["BUFFER_QUEUE"] = {f"host|asic0|{key}": value for key, value in table["BUFFER_QUEUE"].items()}
    write(switch, table)
    rows = celltrain("mmu", "thresholds", switch, "--json").json["rows"]
    assert [row["queue"] for row in rows if row["egress_drop_cells"]] == ["0-2"]


def test_the_printed_switch_thresholds_can_be_limited_to_one_port_and_priority_group_and_queue(toml, celltrain):
    answer = celltrain("mmu", "thresholds", toml, "--port", "Ethernet8", "--group", 3, "--queue", 1, "--json").json
    assert [(row["group"], row["queue"]) for row in answer["rows"]] == [("3-4", None), (None, "0-2")]
    is_refused(celltrain("mmu", "thresholds", toml, "--port", "Ethernet9"), ["Ethernet9", "Ethernet0"])
    is_refused(celltrain("mmu", "thresholds", toml, "--group", 6), ["no such priority group"])


@pytest.mark.slow
def test_a_switch_with_two_speeds_three_pools_and_unusual_alphas_is_imported(tmp_path, celltrain):
    """Two memories: 40 ports of 400 Gb/s, 20 of 800 Gb/s and two of 10 Gb/s without lossless groups."""
    names = [f"Ethernet{8 * number}" for number in range(62)]
    speeds = dict(zip(names, [400000] * 40 + [800000] * 20 + [10000] * 2, strict=True))
    table = {
        "DEVICE_METADATA": {"localhost": {"hwsku": "Arista-7060X6-64PE-B-C"}},
        "PORT": {name: {"speed": str(speed)} for name, speed in speeds.items()},
        "CABLE_LENGTH": {"AZURE": {name: "40m" if speed == 400000 else "5m" for name, speed in speeds.items()}},
        "PORT_QOS_MAP": {name: {"pfc_enable": "2,6"} for name in names[:60]},
        "BUFFER_POOL": {
            "ingress_lossless_pool": {"size": "150000000", "type": "ingress", "mode": "dynamic", "xoff": "20000000"},
            "egress_lossy_pool": {"size": "120000000", "type": "egress", "mode": "dynamic"},
            "egress_lossless_pool": {"size": "160000000", "type": "egress", "mode": "static"},
        },
        "BUFFER_PROFILE": {
            "ingress_lossy_profile": {"pool": "ingress_lossless_pool", "size": "0", "static_th": "50800000"},
            "egress_lossy_profile": {"pool": "egress_lossy_pool", "size": "1778", "dynamic_th": "1"},
            "egress_lossless_profile": {"pool": "egress_lossless_pool", "size": "0", "static_th": "160000000"},
        },
        "BUFFER_PG": {f"{name}|0": {"profile": "ingress_lossy_profile"} for name in names},
        "BUFFER_QUEUE": {
            f"{name}|{queues}": {"profile": profile}
            for name in names
            for queues, profile in (("0-1", "egress_lossy_profile"), ("2", "egress_lossless_profile"))
        },
    }
    folder = write(tmp_path / "switch", table)
    (folder / "pg_profile_lookup.ini").write_text(
        "400000 40m 18796 0 300000 -2 3556\n800000 5m 8636 0 724662 -2 3556\n"
    )
    answer = celltrain("mmu", "thresholds", folder, "--json")
    assert (answer.code, answer.err) == (0, "")
    rows = answer.json["rows"]
    # 150,000,000 / 508 = 295,275 cells, less 20,000,000 / 508 = 39,370 of headroom, 40 groups of 18,796 / 254 = 74,
    # 20 groups of 34, and 31 ports of 70: 250,095.
    assert {row["shared_cells"] for row in rows if row["group"]} == {250095}
    # alpha 1/4 of the free cells is a fifth: 50,019. Headroom: 300,000 / 254 = 1,181, and 724,662 / 254 = 2,853.
    groups = [row for row in rows if row["pause_cells"] is not None]
    assert [(row["speed_mbps"], row["group"]) for row in groups] == [
        (400000, "2"), (400000, "6"), (800000, "2"), (800000, "6"),
    ]  # fmt: skip
    assert [row["pause_cells"] for row in groups] == [50019 + 74] * 2 + [50019 + 34] * 2
    assert [row["ingress_drop_cells"] for row in groups] == [50093 + 1181 + 1] * 2 + [50053 + 2853 + 1] * 2
    assert [row["headroom_partial_cells"] for row in groups] == [39370 - 33 * 1181] * 2 + [39370 - 13 * 2853] * 2
    # The egress pool is smaller than the ingress pool: 2/3 of 120,000,000 / 508 = 236,220 cells, and 7 reserved.
    assert {row["egress_drop_cells"] for row in rows if row["queue"] == "0-1"} == {157480 + 7 + 1}
    assert {row["egress_drop_cells"] for row in rows if row["queue"] == "2"} == {None}
    # 50,800,000 / 254 = 200,000 cells for a lossy group.
    assert {row["ingress_drop_cells"] for row in rows if row["group"] == "0"} == {200001}
    simulated = celltrain("mmu", "thresholds", folder, "--simulate", "--json")
    assert (simulated.code, len(simulated.json["fills"])) == (0, 3)


def test_a_port_speed_without_an_entry_in_the_headroom_table_gives_a_warning(tmp_path, celltrain):
    """One memory with cells of 256 bytes, from a rendered template. The lookup table lacks two of the speeds."""
    folder = tmp_path / "device"
    folder.mkdir()
    (folder / "buffers_defaults_t0.j2").write_text("""\
    "CABLE_LENGTH": { "AZURE": { "Ethernet0": "300m", "Ethernet4": "300m", "Ethernet8": "40m", "Ethernet12": "5m",
        "Ethernet16": "0m", "Ethernet20": "40m" } },
    "BUFFER_POOL": {
        "ingress_lossless_pool": { "size": "30000000", "type": "ingress", "mode": "dynamic", "xoff": "1500000" },
        "egress_lossless_pool": { "size": "32340992", "type": "egress", "mode": "static" }
    },
    "BUFFER_PROFILE": {
        "ingress_lossy_profile": { "pool":"ingress_lossless_pool", "size":"0", "static_th":"20000000" },
        "egress_lossless_profile": { "pool":"egress_lossless_pool", "size":"0", "static_th":"32340992" },
        "egress_lossy_profile": { "pool":"egress_lossless_pool", "size":"0", "static_th":"32340992" }
    },
""")
    (folder / "pg_profile_lookup.ini").write_text("""\
# PG lossless profiles.
# speed cable size xon xoff threshold
  10000     5m     4608    4608   37120   0
  100000   300m    4608    4608   160000  -1
""")
    speeds = [100000, 100000, 40000, 10000, 25000, 40000]
    rows = "".join(f"Ethernet{4 * number} 1 e{number} {number} {speed}\n" for number, speed in enumerate(speeds))
    (folder / "port_config.ini").write_text(f"# name lanes alias index speed\n{rows}")
    answer = celltrain("mmu", "thresholds", folder, "--generation", "td3", "--json")
    lacks = "has no row for 40000_40m: no lossless groups for Ethernet8 and 1 more; add one if they need them"
    assert (answer.code, answer.err.count("warning")) == (0, 1)
    assert lacks in answer.err.replace("\n", " ")
    # 30,000,000 / 256 = 117,187 cells, less 1,500,000 / 256 = 5,859 of headroom and six reserves of 18: 111,220.
    found = [(row["ports"], row["pause_cells"], row["ingress_drop_cells"]) for row in answer.json["rows"]]
    assert [row for row in found if row[1] is not None] == [
        (["Ethernet0", "Ethernet4"], 111220 // 3 + 18, 37091 + 625),
        (["Ethernet12"], 111220 // 2 + 18, 55628 + 145),
    ]


@pytest.mark.slow
def test_a_switch_without_lossless_groups_and_with_several_pools_is_imported(tmp_path, celltrain):
    """Four memories of cells of 208 bytes; queues with alpha 8, alpha 1/256 and a threshold in bytes."""
    names = ["Ethernet0", "Ethernet4", "Ethernet8"]
    every = ",".join(names)
    table = {
        "DEVICE_METADATA": {"localhost": {"hwsku": "Force10-S6100-C"}},
        "PORT": {name: {"speed": "40000"} for name in names},
        "BUFFER_POOL": {
            "ingress_lossless_pool": {"size": "10875072", "type": "ingress", "mode": "dynamic"},
            "ingress_lossy_pool": {"size": "1000000", "type": "ingress", "mode": "dynamic"},
            "egress_lossy_pool": {"size": "9243812", "type": "egress", "mode": "dynamic"},
        },
        "BUFFER_PROFILE": {
            "ingress_lossy_profile": {"pool": "ingress_lossy_pool", "size": "209", "dynamic_th": "-3"},
            "egress_lossy_profile": {"pool": "egress_lossy_pool", "size": "1664", "dynamic_th": "3"},
            "scavenger": {"pool": "egress_lossy_pool", "size": "0", "dynamic_th": "-8"},
            "bounded": {"pool": "egress_lossy_pool", "size": "0", "static_th": "400000"},
        },
        "BUFFER_PG": {f"{every}|0-7": {"profile": "ingress_lossy_profile"}},
        "BUFFER_QUEUE": {
            f"{every}|0-6": {"profile": "egress_lossy_profile"},
            "Ethernet0|7": {"profile": "scavenger"},
            "Ethernet4|7": {"profile": "bounded"},
        },
    }
    folder = write(tmp_path / "switch", table)
    rows = celltrain("mmu", "thresholds", folder, "--json").json["rows"]
    # 1,000,000 / 832 = 1,202 cells, rounded up. (1,202 + 1) / 9 = 133, and 209 bytes need two cells.
    assert {row["ingress_drop_cells"] for row in rows if row["group"]} == {133 + 2 + 1}
    assert {row["pause_cells"] for row in rows} == {None}
    # 9,243,812 / 832 = 11,111: 8/9 of 11,112 is 9,877, 1/257 is 43. 400,000 / 208 = 1,923.
    drops = {(row["ports"][0], row["queue"]): row["egress_drop_cells"] for row in rows if row["queue"]}
    assert drops[("Ethernet0", "0-6")] == 9877 + 8 + 2
    assert (drops[("Ethernet0", "7")], drops[("Ethernet4", "7")]) == (43 + 2, 1923 + 2)
    simulated = celltrain("mmu", "thresholds", folder, "--simulate", "--json")
    assert simulated.code == 0
    assert sorted(fill["full_simulated"] for fill in simulated.json["fills"]) == [43, 1923, 9885]
    text = celltrain("mmu", "thresholds", folder, "--port", "Ethernet4", "--queue", 7).out
    assert "1,923  static threshold and reserve\n" in text


def test_errors_in_all_tables_of_a_switch_configuration_are_reported_together(tmp_path, celltrain):
    table = config_db()
    table["BUFFER_POOL"]["ingress_lossless_pool"]["xof"] = "1"
    table["BUFFER_PROFILE"]["egress_lossy_profile"]["dynamic_th"] = "zero"
    table["BUFFER_PGS"] = {}
    is_refused(
        celltrain("import", "sonic", write(tmp_path / "switch", table)),
        ["BUFFER_PGS", "did you mean BUFFER_PG?", "xof = 1", "did you mean xoff?", "dynamic_th = zero"],
    )


def test_thresholds_of_priority_groups_filled_one_after_another_are_printed_with_their_calculation(toml, celltrain):
    answer = celltrain("mmu", "thresholds", toml, "--in-turn", 3)
    assert answer.code == 0
    for words in ("62811", "31423", "-66,320  less headroom", "251,110  shared", "1/2 of 251,110"):
        assert words in answer.out


def test_the_thresholds_of_an_imported_switch_are_written_as_csv(toml, celltrain):
    lines = celltrain("mmu", "thresholds", toml, "--csv", "-").out.splitlines()
    assert lines[0].startswith("ports,speed_mbps,cable,group,queue,profile")
    assert len(lines) == 5


def test_computed_switch_thresholds_can_be_compared_with_the_expected_values_of_a_switch_test_file(
    toml, tmp_path, celltrain
):
    (tmp_path / "expected.yaml").write_text(EXPECTED)
    answer = celltrain("mmu", "thresholds", toml, "--check", tmp_path / "expected.yaml")
    assert answer.code == 0, answer.out
    assert "17 of 17 entries of topo-lt2-p32o64 agree" in answer.out


def test_the_comparison_with_a_switch_test_file_lists_every_threshold_that_differs(toml, tmp_path, celltrain):
    path = tmp_path / "expected.yaml"
    wrong = EXPECTED.replace("62811", "62810").replace(
        "pkts_num_trig_ingr_drp: 128443", "pkts_num_trig_ingr_drp: 128446"
    )
    path.write_text(wrong.replace("400000_5m", "100000_5m"))
    answer = celltrain("mmu", "thresholds", toml, "--check", path)
    assert answer.code == 1
    assert answer.out.splitlines() == [
        f"{path}:12: topo-lt2-p32o64.800000_5m.hdrm_pool_size.pkts_num_trig_pfc_multi[1] = 62810 does not agree: the"
        " configuration gives 62811 (-1)",
        f"{path}:16: topo-lt2-p32o64.800000_5m.xoff_1.pkts_num_trig_ingr_drp = 128446 does not agree: the"
        " configuration gives 128443 (+3, within the margin of 4)",
        f"{path}:33: topo-lt2-p32o64.100000_5m.xoff_1.pkts_num_trig_ingr_drp = 127164 does not agree: the"
        " configuration has no such group, queue or headroom",
        "14 of 17 entries of topo-lt2-p32o64 agree with the configuration",
    ]
    facts = celltrain("mmu", "thresholds", toml, "--check", path, "--json").json
    assert facts["wrong"] == sum(not entry["follows"] for entry in facts["entries"]) == 3


def test_the_section_of_a_switch_test_file_is_chosen_by_its_name(toml, tmp_path, celltrain):
    path = tmp_path / "expected.yaml"
    path.write_text(f"{EXPECTED}        topo-other: *lt2\n")
    is_refused(celltrain("mmu", "thresholds", toml, "--check", path), ["2 sections", "--section", "topo-other"])
    is_refused(celltrain("mmu", "thresholds", toml, "--check", path, "--section", "lt3"), ["lt3", "topo-lt2-p32o64"])
    for name in ("other", "topo-other", "topo-lt2-p32o64"):
        assert celltrain("mmu", "thresholds", toml, "--check", path, "--section", name).code == 0


def test_the_comparison_with_one_section_of_a_switch_test_file_can_be_printed_as_json(toml, tmp_path, celltrain):
    path = tmp_path / "expected.json"
    path.write_text(json.dumps({"xoff_1": {"pg": 3, "pkts_num_trig_pfc": 125589}}))
    answer = celltrain("mmu", "thresholds", toml, "--check", path)
    assert (answer.code, answer.out) == (0, "1 of 1 entries of the file agree with the configuration\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1", ["expected.yaml", "is not YAML"]),
        ("a: {b: 1}", ["no table of tests such as xoff_1"]),
        ("xoff_1: {pg: 3}", ["has no number to compare"]),
        (
            "xoff_1: {pg: 3, pkts_num_trig_pfc: abc}",
            ["expected.yaml:1", "xoff_1.pkts_num_trig_pfc = abc is not a whole number of cells"],
        ),
        ("", ["no table of tests"]),
        (
            "a: &a [1]\n"
            + "".join(
                f"{name}: &{name} [*{'a' if name == 'b' else chr(ord(name) - 1)}, "
                f"*{'a' if name == 'b' else chr(ord(name) - 1)}]\n"
                for name in "bcdefghijklmnopqrstuvw"
            ),
            ["levels"],
        ),
    ],
)
def test_a_switch_test_file_with_unusable_expected_values_is_refused(text, words, toml, tmp_path, celltrain):
    path = tmp_path / "expected.yaml"
    path.write_text(text)
    is_refused(celltrain("mmu", "thresholds", toml, "--check", path), words)


def faulty(table: str, entry: str, **values: str | None) -> dict:
    """Returns the configuration database with changed values in an entry; None removes a value."""
    changed = config_db()
    one = changed.setdefault(table, {}).setdefault(entry, {})
    for key, value in values.items():
        if value is None:
            del one[key]
        else:
            one[key] = value
    return changed


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("table", "words"),
    [
        (faulty("BUFFER_POOL", "ingress_lossless_pool", sise="1"), ["sise = 1 is not a key of BUFFER_POOL; did you mean size"]),
        (faulty("BUFFER_POOL", "ingress_lossless_pool", size="big"), ["size = big is not a whole number of bytes"]),
        (faulty("BUFFER_POOL", "ingress_lossless_pool", size=None), ["BUFFER_POOL.ingress_lossless_pool.size is missing"]),
        (faulty("BUFFER_POOL", "ingress_lossless_pool", type="in"), ["type = in is none of 'ingress' or 'egress'"]),
        (faulty("BUFFER_POOL", "ingress_lossless_pool", size="999999999"), ["999999999 is larger than the memory of Tomahawk 5"]),
        (faulty("BUFFER_POOL", "ingress_lossless_pool", xoff="164619432"), ["xoff = 164619432 is not less than the pool's size"]),
        (faulty("BUFFER_POOL", "ingress_lossless_pool", xoff="164619000"), ["all of them are already used", "less headroom"]),
        (faulty("BUFFER_POOL", "ingress_lossless_pool", percentage="50"), ["percentage", "dynamic buffers"]),
        (faulty("BUFFER_POOL", "egress_lossless_pool", xoff="1"), ["sets headroom for an egress pool"]),
        (faulty("BUFFER_PROFILE", "ingress_lossy_profile", pool="x"), ["pool = x is not a pool; choose from"]),
        (faulty("BUFFER_PROFILE", "ingress_lossy_profile", xoff="100"), ["the group is lossy", "3, 4"]),
        (faulty("BUFFER_PROFILE", "egress_lossy_profile", xoff="100"), ["sets headroom for queues"]),
        (faulty("BUFFER_PROFILE", "ingress_lossy_profile", xon="100"), ["no headroom; add xoff"]),
        (faulty("BUFFER_PROFILE", "ingress_lossy_profile", dynamic_th="1"), ["cannot be combined with dynamic_th"]),
        (faulty("BUFFER_PROFILE", "ingress_lossy_profile", static_th=None), ["has no threshold; add dynamic_th or static_th"]),
        (faulty("BUFFER_PG", "Ethernet0|3-4", profile="ingress_lossy_profile"), ["3-4 = ingress_lossy_profile has no headroom", "priority 3"]),
        (faulty("BUFFER_PG", "Ethernet0|9", profile="ingress_lossy_profile"), ["9 is not a number, or a range such as 3-4"]),
        (faulty("BUFFER_PG", "Ethernet0|0-1", profile="ingress_lossy_profile"), ["a second time"]),
        (faulty("BUFFER_PG", "Ethernet0|1", profile="egress_lossy_profile"), ["is a profile of an egress pool"]),
        (faulty("BUFFER_PG", "Ethernet0|1", profile="ingress_losy_profile"), ["did you mean ingress_lossy_profile?"]),
        (faulty("BUFFER_PG", "3-4", profile="ingress_lossy_profile"), ["3-4", "names no port; write a key such as"]),
        (faulty("BUFFER_PG", "Ethernet5|1", profile="ingress_lossy_profile"), ["Ethernet5 is not a port"]),
        (faulty("PORT", "Ethernet0", speed="fast"), ["speed = fast is not a whole number of Mb/s"]),
        (faulty("PORT_QOS_MAP", "Ethernet0", pfc_enable="9"), ["priority above 7"]),
        (faulty("BUFFER_POOLS", "x", size="1"), ["BUFFER_POOLS", "did you mean BUFFER_POOL?"]),
        ({"PORT": {}}, ["has no table BUFFER_POOL"]),
    ],
)  # fmt: skip
def test_the_error_for_an_invalid_switch_configuration_database_names_the_line(table, words, switch, celltrain):
    write(switch, table)
    for command in (("import", "sonic", switch), ("mmu", "thresholds", switch)):
        answer = celltrain(*command)
        if command[0] == "import" and answer.code == 0:
            # The import does not check the size of the memory. It is checked when thresholds are calculated.
            continue
        is_refused(answer, words)
        if "BUFFER_POOL" in table:
            assert f"{switch}/config_db.json:" in answer.err


def test_the_line_number_reported_for_a_switch_setting_is_its_line_in_the_configuration_database(switch, celltrain):
    write(switch, faulty("BUFFER_PROFILE", "ingress_lossy_profile", dynamic_th="x"))
    lines = (switch / "config_db.json").read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if '"dynamic_th": "x"' in text)
    is_refused(
        celltrain("import", "sonic", switch),
        [f"config_db.json:{line}: BUFFER_PROFILE.ingress_lossy_profile.dynamic_th = x"],
    )


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            "buffers_defaults_t0.j2",
            '\n"A": "{{ size }}"',
            ["t0.j2:2: template = {{ is a template that has not been rendered"],
        ),
        ("buffers_defaults_t0.j2", "{% set x = 1 %}", ["t0.j2:1: template = {%"]),
        ("buffers.json", "[]", ["is not an object of tables"]),
        ("buffers.json", "{", ["is not JSON"]),
        ("config_db.json", "\xff", ["is not text in UTF-8"]),
        (
            "pg_profile_lookup.ini",
            "800000 5m 8636 0 many 0",
            ["lookup.ini:1: 800000_5m.xoff = many is not a whole number"],
        ),
        ("pg_profile_lookup.ini", "800000 5m 8636 0", ["lookup.ini:1: 800000_5m.xoff is missing"]),
    ],
)
def test_the_error_for_an_unusable_switch_file_names_the_line(name, text, words, switch, celltrain):
    (switch / name).write_text(text, encoding="latin-1")
    is_refused(celltrain("import", "sonic", switch), words)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("size = 164619432", "sise = 164619432", ["switch.toml:7: pool.ingress_lossless_pool.sise is not a key here"]),
        ("xoff = 724662", 'xoff = "many"', ['5m_profile.xoff = "many" is text; write a number without quotes']),
        ("xoff = 724662", "xoff = -1", ["xoff = -1 is below 0"]),
        ("xoff = 724662\n", "", ["no headroom, but priority 3 pauses"]),
        ('generation = "th5"', 'generation = "th9"', ["switch.toml:3: generation = th9 is not a known generation", "th5"]),
        ('generation = "th5"', "", []),
        ("dynamic_th = 0", "dynamic_th = 99", ["dynamic_th = 99"]),
        ("dynamic_th = 0", "dynamic_th =", ["switch.toml"]),
        ('"Ethernet0 to Ethernet760 by 8"', '"Ethernet0 to Ethernet760 by 8", "Ethernet8"', ["Ethernet8 appears in two places"]),
        ('"Ethernet0 to Ethernet760 by 8"', '"Ethernet0 to Ethernet99999 by 1"', ["more than 4096 ports"]),
    ],
)  # fmt: skip
def test_the_error_for_an_invalid_switch_configuration_file_names_the_line(old, new, words, toml, celltrain):
    text = toml.read_text()
    assert old in text
    toml.write_text(text.replace(old, new, 1))
    answer = celltrain("mmu", "thresholds", toml)
    if words:
        is_refused(answer, words)
    else:
        # The name of the hardware also identifies the chip.
        assert answer.code == 0


def test_an_unknown_switch_chip_is_refused_with_a_list_of_known_chips(switch, celltrain):
    table = config_db()
    table["DEVICE_METADATA"]["localhost"]["hwsku"] = "Unheard-Of"
    write(switch, table)
    is_refused(celltrain("mmu", "thresholds", switch), ["lacks the switch's chip generation", "--generation"])
    is_refused(celltrain("mmu", "thresholds", switch, "--generation", "th9"), ["th9", "Choose from", "th5"])
    assert celltrain("mmu", "thresholds", switch, "--generation", "Tomahawk 5").code == 0


def test_a_switch_chip_generation_can_be_described_in_a_user_supplied_file(toml, tmp_path, celltrain):
    rows = celltrain("mmu", "generations", "--json").json
    file = next(Path(row["file"]) for row in rows if row["name"] == "th5")
    (tmp_path / "mine.toml").write_text(file.read_text().replace("port_cells = 70", "port_cells = 80"))
    answer = celltrain("mmu", "thresholds", toml, "--generation", tmp_path / "mine.toml", "--json").json
    assert lossless(answer["rows"])["shared_cells"] == 251110 - 480
    (tmp_path / "mine.toml").write_text(file.read_text().replace("port_cells", "port_cell"))
    is_refused(
        celltrain("mmu", "thresholds", toml, "--generation", tmp_path / "mine.toml"),
        ["mine.toml:", "did you mean port_cells"],
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sonic"], ["import takes one graph, or the word sonic and a folder"]),
        (["net.json", "other"], ["import takes one graph, or the word sonic and a folder"]),
        (["sonic", "nowhere"], ["nowhere: is not a folder"]),
        (["sonic", ".", "--flows", "3"], ["--flows = 3 applies to graphs only"]),
        (["net.json", "--generation", "th5"], ["--generation = th5 applies to celltrain import sonic FOLDER only"]),
    ],
)
def test_contradictory_switch_import_options_are_refused(arguments, words, celltrain):
    is_refused(celltrain("import", *arguments), words)


def test_a_switch_configuration_folder_with_two_topologies_is_refused(device, celltrain):
    (device / "buffers_defaults_t1.j2").write_text(json.dumps(POOLS))
    is_refused(celltrain("import", "sonic", device), ["buffers_defaults_lt2.j2 and buffers_defaults_t1.j2"])


@dataclass
class Ran:
    """The part of a run's result that is compared."""

    events: dict[str, pa.Table]
    fingerprint: str = "same"


@pytest.mark.parametrize("late", [0, 1])
def test_simulated_pause_thresholds_are_compared_with_computed_pause_thresholds(late, toml, celltrain, monkeypatch):
    """A run that pauses one cell too late counts as a difference. `test_mmu.py` runs the engines."""

    def run(model, *, events=None):
        is_group = "ingress" in str(model)
        port, held = ("source1->switch", (125589 + late, 128442)) if is_group else ("switch->sink", (None, 125562))
        rows = [
            {"event": event, "port": port, "priority": 3, "held": cells}
            for event, cells in zip(("paused", "refused"), held, strict=True)
            if cells is not None
        ]
        return Ran(events={"memories": pa.Table.from_pylist(rows)})

    monkeypatch.setattr(expected, "run", run)
    monkeypatch.setattr(expected, "Events", lambda *_, **__: None)
    monkeypatch.setattr(expected.Scenario, "model_validate", lambda table: table)
    answer = celltrain("mmu", "thresholds", toml, "--simulate")
    assert answer.code == late
    assert ("125590" in answer.out, "NO" in answer.out) == (bool(late), bool(late))
    facts = celltrain("mmu", "thresholds", toml, "--simulate", "--json").json
    assert [fill["full_simulated"] for fill in facts["fills"]] == [128442, 125562]
    assert facts["agrees"] == (not late)


def test_comparing_thresholds_both_with_a_simulation_and_with_a_switch_test_file_is_refused(toml, celltrain):
    is_refused(celltrain("mmu", "thresholds", toml, "--simulate", "--check", toml), ["give one of them"])


def test_headroom_for_a_lossy_priority_group_of_an_imported_switch_is_refused(device, tmp_path, celltrain):
    path = tmp_path / "switch.toml"
    assert celltrain("import", "sonic", device, "--cable", "5m", "--generation", "th5", "--out", path).code == 0
    text = path.read_text()
    assert "pause = [3, 4]" in text
    path.write_text(text.replace("[profile.ingress_lossy_profile]\n", "[profile.ingress_lossy_profile]\nxoff = 1000\n"))
    is_refused(celltrain("mmu", "thresholds", path), ["ingress_lossy_profile has headroom, but the group is lossy"])
