"""Thresholds of switches: the published values agree with the configurations, exact to the cell."""

from __future__ import annotations

import csv
import time
import warnings
from pathlib import Path

import pytest

import celltrain as ct
from celltrain import mmu
from celltrain.mmu.arithmetic import Thresholds, thresholds
from celltrain.mmu.configuration import of_table
from celltrain.mmu.expected import scenario, simulate
from celltrain.mmu.generations import Source, generation, known, of_switch

DATA = Path(__file__).parent / "mmu"


def read(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(newline="") as file:
        return list(csv.DictReader(file))


TH5 = read("th5-thresholds.csv")
IN_TURN = read("th5-groups-in-turn.csv")
OTHERS = read("other-chips.csv")
MORE = read("th5-more-topologies.csv")


def calculated(table: dict, chip: str, *, in_turn: int = 0) -> Thresholds:
    return thresholds(of_table(table, Source(file="test")), generation=chip, in_turn=in_turn)


def tomahawk5(row: dict[str, str]) -> dict:
    """Returns the configuration of a section: ports with two lossless groups, and management ports without any."""
    ports = 2 * int(row["ports_per_memory"])
    management = 2 * int(row["management_ports_per_memory"])
    table = {
        "pool": {
            "ingress": {"type": "ingress", "size": int(row["pool_bytes"]), "xoff": int(row["xoff_bytes"])},
            "egress": {"type": "egress", "size": int(row["pool_bytes"]), "mode": "static"},
        },
        "profile": {
            "lossless": {
                "pool": "ingress",
                "size": int(row["reserve_bytes"]),
                "xoff": int(row["headroom_bytes"]),
                "dynamic_th": 0,
            },
            "lossy": {"pool": "egress", "size": 1778, "dynamic_th": 0},
        },
        "port": [
            {
                "names": [f"Ethernet{number}" for number in range(ports)],
                "groups": {"3-4": "lossless"},
                "queues": {"0-2": "lossy"},
            }
        ],
    }
    if management:
        table["port"].append({"names": [f"Management{number}" for number in range(management)]})
    return table


def numbers(found: Thresholds) -> dict[str, int | None]:
    """Returns the published numbers of the first lossless group and the first lossy queue."""
    group = next(row.limits for row in found.rows if row.limits.pause is not None)
    queue = next((row.limits for row in found.rows if row.queue is not None), None)
    return {
        "pfc_cells": group.pause,
        "ingress_drop_cells": group.drop,
        "lossy_egress_drop_cells": None if queue is None else queue.drop,
        "headroom_full_cells": group.headroom,
        "headroom_partial_cells": group.partial,
    }


@pytest.mark.parametrize("row", TH5, ids=lambda row: f"{row['topology']}-{row['section']}")
def test_the_pause_thresholds_of_tomahawk_5_follow_from_its_configurations(row):
    found = numbers(calculated(tomahawk5(row), "th5"))
    assert found == {name: int(row[name]) for name in found}


@pytest.mark.parametrize("topology", dict.fromkeys(row["topology"] for row in IN_TURN))
def test_priority_groups_filled_one_after_another_pause_at_the_published_cell_counts(topology):
    expected = [int(row["pfc_cells"]) for row in IN_TURN if row["topology"] == topology]
    row = next(row for row in TH5 if row["topology"] == topology)
    found = calculated(tomahawk5(row), "th5", in_turn=len(expected))
    assert list(found.rows[0].in_turn) == expected


@pytest.mark.parametrize("row", MORE, ids=lambda row: f"{row['topology']}-{row['section']}")
def test_for_other_topologies_a_single_pool_size_reproduces_every_published_pause_threshold(row):
    """The cited sections do not publish pool sizes, but for each pool a single size explains all its numbers."""
    bytes_of = {"pool_bytes": 508 * int(row["pool_cells"]), "xoff_bytes": 508 * int(row["xoff_cells"])}
    published = [int(cells) for cells in row["in_turn"].split()]
    table = tomahawk5({**row, **bytes_of, "headroom_bytes": 254 * int(row["headroom_cells"])})
    found = calculated(table, "th5", in_turn=len(published))
    expected = {name: int(row[name]) for name in numbers(found) if row.get(name)}
    assert {name: cells for name, cells in numbers(found).items() if name in expected} == expected
    assert found.rows[0].limits.filling == int(row["groups"])
    assert list(found.rows[0].in_turn) == published


@pytest.mark.parametrize("row", OTHERS, ids=lambda row: f"{row['generation']}-{row['section']}")
def test_the_pause_thresholds_of_other_chips_follow_from_their_configurations(row):
    table = {
        "pool": {"ingress": {"type": "ingress", "size": int(row["pool_bytes"]), "xoff": int(row["xoff_bytes"])}},
        "profile": {
            "lossless": {
                "pool": "ingress",
                "size": int(row["reserve_bytes"]),
                "xoff": int(row["headroom_bytes"]),
                "dynamic_th": int(row["dynamic_th"]),
            }
        },
        "port": [
            {"names": [f"Ethernet{port}" for port in range(int(row["groups"]) // 2)], "groups": {"3-4": "lossless"}}
        ],
    }
    if row["lossy_pool_bytes"]:
        table["pool"]["egress"] = {"type": "egress", "size": int(row["lossy_pool_bytes"])}
        size, threshold = int(row["lossy_reserve_bytes"]), int(row["lossy_dynamic_th"])
        table["profile"]["lossy"] = {"pool": "egress", "size": size, "dynamic_th": threshold}
        table["port"][0]["queues"] = {"0": "lossy"}
    found = calculated(table, row["generation"])
    published = {name: int(row[name]) for name in numbers(found) if row[name]}
    assert {name: value for name, value in numbers(found).items() if name in published} == published
    if row["equal_groups"]:
        assert found.rows[0].limits.together(int(row["equal_groups"])) == int(row["equal_pfc_cells"])


@pytest.mark.parametrize(
    ("chip", "xoff", "headroom", "partial"), [("th2", 7827456, 682 * 208, 542), ("td3", 1622016, 362 * 256, 182)]
)
def test_the_last_priority_group_to_fill_gets_what_is_left_of_the_headroom_pool(chip, xoff, headroom, partial):
    table = {
        "pool": {"ingress": {"type": "ingress", "size": 4 * xoff, "xoff": xoff}},
        "profile": {"lossless": {"pool": "ingress", "size": 0, "xoff": headroom, "dynamic_th": 0}},
        "port": [{"names": ["Ethernet0"], "groups": {"3": "lossless"}}],
    }
    assert calculated(table, chip).rows[0].limits.partial == partial


def test_management_ports_of_a_switch_use_part_of_its_shared_memory():
    without = calculated(tomahawk5(TH5[0]), "th5").rows[0].limits.shared.cells
    found = calculated(tomahawk5({**TH5[0], "management_ports_per_memory": "1"}), "th5").rows[0].limits.shared.cells
    assert found == without - 70


def test_a_priority_group_never_gets_more_memory_than_its_alpha_allows():
    """The cell that reaches the threshold is still admitted, and the next cell is not."""
    table = tomahawk5({**TH5[2], "pool_bytes": "12000000", "xoff_bytes": "1000000", "ports_per_memory": "2"})
    for chip in ("th5", "td2"):
        for power in range(-7, 4):
            table["profile"]["lossless"]["dynamic_th"] = power
            limits = calculated(table, chip).rows[0].limits
            arriving = 1 if limits.counts_arriving_cell else 0

            def fits(cell, limits=limits, arriving=arriving):
                return cell <= limits.alpha * (limits.shared.cells - cell + 1 - arriving)

            assert fits(limits.share)
            assert not fits(limits.share + 1)


def test_each_switch_chip_generation_is_found_by_all_of_its_names():
    for stem, one in known().items():
        assert generation(stem) == generation(one.name) == generation(one.short) == one
        assert all(of_switch(f"x86_64-{name}-r0") == one for name in one.switches)


def test_pause_thresholds_of_a_switch_are_available_as_text_json_and_pandas():
    found = calculated(tomahawk5(TH5[0]), "th5", in_turn=2)
    text = str(found)
    for words in ("142285", "1/2 of 284,502", "less headroom", "less the queues of 32 ports, 70 each", "12 groups"):
        assert words in text
    assert "142285" in found._repr_html_()
    rows = found.to_dict()["rows"]
    assert [rows[0]["pause_cells"], rows[0]["in_turn_cells"]] == [142285, [142285, 71159]]
    assert list(found.to_pandas()["egress_drop_cells"].dropna()) == [142259]


def test_ports_with_different_settings_are_distributed_evenly_over_the_memories_of_a_switch():
    table = tomahawk5(TH5[0])
    names = table["port"][0]["names"]
    table["port"] = [{**table["port"][0], "names": [name], "speed": number + 1} for number, name in enumerate(names)]
    assert {row.limits.pause for row in calculated(table, "th5").rows if row.group} == {142285}


def test_of_several_memories_the_one_with_the_most_ports_determines_the_thresholds():
    table = tomahawk5(TH5[0])
    table["port"][0]["names"] = table["port"][0]["names"][:-1]
    assert calculated(table, "th5").rows[0].limits.pause == 142285


def test_the_thresholds_of_a_large_switch_are_computed_within_a_second():
    names = [f"Ethernet{number}" for number in range(128)]
    table = tomahawk5(TH5[2])
    table["port"] = [
        {"names": [name], "speed": 1000 + number, "groups": {str(group): "lossless" for group in range(8)}}
        for number, name in enumerate(names)
    ]
    start = time.process_time()
    assert len(calculated(table, "th5").rows) == 128 * 8
    assert time.process_time() - start < 1


def test_a_switch_configuration_gives_the_same_result_from_a_file_and_in_a_python_call(tmp_path):
    file = tmp_path / "switch.toml"
    loaded = of_table({**tomahawk5(TH5[0]), "generation": "th5"}, Source(file="test"))
    file.write_text(loaded.switch.to_toml(head="A switch."))
    assert mmu.load(file).switch == loaded.switch
    assert mmu.thresholds(file, group=3).rows[0].limits.pause == 142285


def test_the_generated_scenario_fills_one_priority_group_after_another_including_its_headroom():
    """Each source sends a cell every 10 ns.

    It starts when the previous source has filled its group and its headroom.
    """
    limits = calculated(tomahawk5(TH5[0]), "th5").rows[0].limits
    table = scenario(limits, groups=2)
    assert [flow["start"] for flow in table["flow"].values()] == ["0ns", f"{10 * (142285 + 2853 + 100)}ns"]
    memory = table["switch"]["switch"]["memory"]
    assert memory["cells"] == 284502 + 35360 + 2 * 34
    assert memory["pool"]["shared"]["policy"] == {"dynamic_threshold": {"alpha": 1.0, "arriving_cell": "counted"}}
    [group] = memory["queue"]
    assert (group["reserve"], group["headroom"], group["ports"]) == (34, 2853, ["source1->switch", "source2->switch"])


def test_the_sources_in_the_generated_scenario_send_exactly_the_cells_that_fill_the_priority_groups():
    """If the network has no memory, a practically infinite buffer accepts the cells."""
    limits = calculated(tomahawk5(TH5[0]), "th5").rows[0].limits
    table = scenario(limits, groups=2)
    del table["switch"], table["vc"]
    table["port"]["switch->sink"]["buffer"] = 1_000_000
    with pytest.warns(ct.CelltrainWarning, match="delivered no data"):
        result = ct.run(ct.Scenario.model_validate(table))
    sent = {port["name"]: port["forwarded_cells"] for port in result.to_dict()["ports"]}
    # The last cells are still on their link.
    fills = [cells + 2853 + 100 for cells in limits.in_turn(2)]
    assert [sent["source1->switch"], sent["source2->switch"]] == pytest.approx(fills, abs=3)


def filled_by(engine: str, limits, groups: int, duration: str | None = None) -> list[dict]:
    """Returns the queues or groups of a run in which sources fill them one after another."""
    model = ct.Scenario.model_validate(scenario(limits, groups=groups))
    with warnings.catch_warnings():
        # The run delivers no data on purpose.
        warnings.simplefilter("ignore", ct.CelltrainWarning)
        result = ct.run(model if duration is None else model.replace(duration=duration), engine=engine)
    return result.to_dict()["queues"]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["fast", pytest.param("reference", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("row", TH5, ids=lambda row: f"{row['topology']}-{row['section']}")
def test_simulations_on_both_engines_reproduce_every_published_number_of_tomahawk_5(row, engine):
    found = calculated(tomahawk5(row), "th5").rows
    limits = next(one.limits for one in found if one.group is not None)
    queues = filled_by(engine, limits, limits.filling)
    pauses = [queue["max_cells"] - queue["max_headroom_cells"] for queue in queues]
    pfc, headroom = int(row["pfc_cells"]), int(row["headroom_full_cells"])
    assert [queue["pauses"] for queue in queues] == [1] * limits.filling
    assert (pauses[0], queues[0]["max_cells"] + 1) == (pfc, int(row["ingress_drop_cells"]))
    # Groups use up the headroom one after the other. The last group gets the rest.
    partial = int(row["headroom_partial_cells"])
    assert [queue["max_headroom_cells"] for queue in queues] == [headroom] * (limits.filling - 1) + [partial]
    # The published cell starts the pause; earlier cells do not.
    for cells in (pfc - 1, pfc):
        # The count excludes the first cell, which is in service.
        first = filled_by(engine, limits, limits.filling, duration=f"{10 * (cells + 1)}ns")[0]
        assert (first["cells"], first["pauses"]) == (cells, int(cells == pfc))
    [queue] = filled_by(engine, next(one.limits for one in found if one.queue is not None), 1)
    assert queue["max_cells"] + 1 == int(row["lossy_egress_drop_cells"])


@pytest.mark.parametrize("engine", ["fast", pytest.param("reference", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("topology", dict.fromkeys(row["topology"] for row in IN_TURN))
def test_priority_groups_filled_one_after_another_pause_at_the_published_cell_counts_on_both_engines(topology, engine):
    expected = [int(row["pfc_cells"]) for row in IN_TURN if row["topology"] == topology]
    row = next(row for row in TH5 if row["topology"] == topology)
    queues = filled_by(engine, calculated(tomahawk5(row), "th5").rows[0].limits, len(expected))
    assert [queue["max_cells"] - queue["max_headroom_cells"] for queue in queues] == expected


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("row", TH5, ids=lambda row: f"{row['topology']}-{row['section']}")
def test_the_pause_thresholds_of_a_simulated_switch_agree_with_the_published_thresholds(row):
    """The memory's events contain the cells at which each group pauses and is full."""
    turns = [int(one["pfc_cells"]) for one in IN_TURN if one["topology"] == row["topology"]] or [int(row["pfc_cells"])]
    simulated = simulate(calculated(tomahawk5(row), "th5", in_turn=len(turns)))
    group, queue = simulated.fills[0], simulated.fills[-1]
    assert (group.pause_simulated, group.full_simulated) == (int(row["pfc_cells"]), int(row["ingress_drop_cells"]) - 1)
    assert queue.full_simulated == int(row["lossy_egress_drop_cells"]) - 1
    assert [fill.pause_simulated for fill in simulated.fills if fill.group is not None] == turns
    assert simulated.agrees
