"""Plans: their points and their faults."""

from __future__ import annotations

import itertools
import json
import time
import tracemalloc
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import ROOT, blocks

import celltrain as ct
from celltrain import _core
from celltrain.ensemble.plan import MAX_RUNS, Plan, canonical, follow, run_key
from celltrain.model.scenario import Reading

BASE = '\nscenario = "lan-selective-drop"\n'
SD = "port.bottleneck.policy.selective_drop"
# Numeric settings of the base scenario that accept all values used below.
PATHS = [f"{SD}.threshold", f"{SD}.z", "port.bottleneck.buffer", "topology.n_source.sources"]
NUMBERS = {
    f"{SD}.threshold": [0.1, 0.25, 0.5, 0.75, 1.0],
    f"{SD}.z": [0.5, 0.8, 1.0, 1.3],
    "port.bottleneck.buffer": [100, 200, 300, 1000],
    "topology.n_source.sources": [1, 2, 3, 5],
}


def plan(text):
    return Plan.of_toml(BASE + text)


def refused(text, base=BASE):
    with pytest.raises(ct.PlanError) as refusal:
        Plan.of_toml(base + text, file="plan.toml")
    return [fault.message for fault in refusal.value.faults]


def groups():
    """Generates lists of values for some of the paths, in any order; lists of equal length may be paired."""

    @st.composite
    def make(draw):
        paths = draw(st.permutations(PATHS))[: draw(st.integers(1, 4))]
        values = {path: draw(st.permutations(NUMBERS[path]))[: draw(st.integers(1, 4))] for path in paths}
        paired = draw(st.integers(0, len(paths)))
        first, rest = paths[:paired], paths[paired:]
        if len({len(values[path]) for path in rest}) > 1:
            first, rest = paths, []
        return {path: values[path] for path in first}, {path: values[path] for path in rest}

    return make()


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(groups(), st.integers(1, 4))
def test_the_points_of_a_sweep_plan_match_a_simple_model(made, seeds):
    crossed, paired = made
    document = {"axes": crossed, "seeds": seeds}
    if paired:
        document["paired"] = [paired]
    base = ct.load(ROOT / "scenarios/lan-selective-drop.toml")
    found = Plan.of(base, document)
    together = list(zip(*paired.values(), strict=True)) if paired else [()]
    twin = [
        dict(zip([*crossed, *paired], [*one, *pair], strict=True))
        for one in itertools.product(*crossed.values())
        for pair in together
    ]
    assert [point.values for point in found.points] == twin
    assert found.runs == len(twin) * seeds
    for point, values in zip(found.points, twin, strict=True):
        assert point.scenario["port"]["bottleneck"]["buffer"] == values.get("port.bottleneck.buffer", 1000)
        assert point.scenario["topology"]["n_source"]["sources"] == values.get("topology.n_source.sources", 5)
        policy = point.scenario["port"]["bottleneck"]["policy"]["selective_drop"]
        assert policy["threshold"] == values.get(f"{SD}.threshold", 0.9)
        assert policy["z"] == values.get(f"{SD}.z", 0.8)
    # A plan stored as JSON equals the original plan.
    again = Plan.of_document(json.loads(json.dumps(found.document)))
    assert again.digest == found.digest
    assert [point.values for point in again.points] == twin


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(1, 999), st.integers(1, 999), st.integers(2, 9), st.sampled_from(["ns", "us", "ms"]), st.booleans())
def test_an_axis_range_with_exact_ends_has_exact_values(low, more, count, unit, by_step):
    scale = {"ns": 10**3, "us": 10**6, "ms": 10**9}[unit]
    high = low + more * (count - 1)
    spread = f'step = "{more}{unit}"' if by_step else f"count = {count}"
    axis = f'd = {{ path = "topology.n_source.link_delay", from = "{low}{unit}", to = "{high}{unit}", {spread} }}'
    found = plan(f"[axes]\n{axis}")
    delays = [point.scenario["topology"]["n_source"]["link_delay"] for point in found.points]
    assert delays == [f"{(low + more * i) * scale}ps" for i in range(count)]
    assert [point.values["d"] for point in found.points] == [
        float(Fraction((low + more * i) * scale, 10**12)) for i in range(count)
    ]


def test_an_axis_with_a_step_of_0_1_has_exact_decimal_values():
    found = plan(f'[axes]\nz = {{ path = "{SD}.z", from = 0.1, to = 1.0, step = 0.1 }}')
    assert [point.values["z"] for point in found.points] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]


def test_logarithmic_axis_values_have_equal_ratios_and_integer_settings_get_integers():
    found = plan(
        '[axes]\nb = { path = "port.bottleneck.buffer", from = 100, to = 3162, count = 4, scale = "log" }\n'
        'd = { path = "topology.n_source.link_delay", from = "5us", to = "5ms", count = 4, scale = "log" }'
    )
    first, second = found.axes
    assert [first.setting(i) for i in range(4)] == [100, 316, 1000, 3162]
    assert [second.column(i) for i in range(4)] == [5e-6, 5e-5, 5e-4, 5e-3]
    assert (second.unit, first.unit) == ("s", "cells")


def test_plan_labels_are_readable_words_and_values_with_units():
    found = plan(
        '[axes]\n"switch.tie_order" = ["random", "fixed"]\n"topology.n_source.link_rate" = ["155.52Mbps", "1Gbps"]\n'
        'policy = { path = "port.bottleneck.policy", values = { td = { tail_drop = {} }, ppd = { ppd = {} } } }\n'
        'buffer = { path = "port.bottleneck.buffer", values = [1000, "infinite"] }'
    )
    values = found.points[-1].values
    assert values == {
        "switch.tie_order": "fixed",
        "topology.n_source.link_rate": 1e9,
        "policy": "ppd",
        "buffer": "infinite",
    }
    assert found.points[0].values["buffer"] == "1000"
    assert [axis.is_number for axis in found.axes] == [False, True, False, False]


@pytest.mark.parametrize("method", [pytest.param("sobol", marks=pytest.mark.nightly), "latin_hypercube"])
def test_a_random_sample_of_plan_points_is_reproducible_and_covers_its_ranges(method):
    text = f"""
    [axes]
    buffer = {{ path = "port.bottleneck.buffer", values = [1000, 2000] }}
    [sample]
    method = "{method}"
    points = 100
    seed = 7
    [sample.axes]
    z = {{ path = "{SD}.z", from = 0.5, to = 1.5 }}
    delay = {{ path = "topology.n_source.link_delay", from = "1us", to = "1ms", scale = "log" }}
    sources = {{ path = "topology.n_source.sources", from = 2, to = 6 }}
    """
    one, two = plan(text), plan(text)
    assert one.digest == two.digest
    assert one.digest != plan(text.replace("seed = 7", "seed = 8")).digest
    assert len(one.points) == 200
    drawn = [point.values for point in one.points][:100]
    assert drawn == [point.values for point in two.points][:100]
    assert all(0.5 <= v["z"] <= 1.5 and 1e-6 <= v["delay"] <= 1e-3 for v in drawn)
    counts = [sum(v["sources"] == n for v in drawn) for n in range(2, 7)]
    assert sum(counts) == 100
    assert min(counts) >= 12
    # Each half of the logarithmic scale contains half of the values.
    assert 45 <= sum(v["delay"] < 1e-6 * 1000**0.5 for v in drawn) <= 55


@pytest.mark.nightly
@pytest.mark.slow
def test_the_points_of_a_plan_with_ten_million_points_are_not_all_held_in_memory():
    text = (
        '[axes]\nb = { path = "port.bottleneck.buffer", from = 1001, to = 11000, step = 1 }\n'
        f'z = {{ path = "{SD}.z", from = 0.001, to = 1.0, step = 0.001 }}\n[seeds]\ncount = 10'
    )
    tracemalloc.start()
    begun = time.monotonic()
    found = plan(text)
    assert len(found.points) == 10_000_000
    assert found.points[9_999_999].values == {"b": 11000.0, "z": 1.0}
    assert found.points[1_234_567].values == {"b": 2235.0, "z": 0.568}
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20e6
    assert time.monotonic() - begun < 60


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (
            '[axes]\n"port.bottleneck.bufer" = [1]',
            [
                'plan.toml:4: axes."port.bottleneck.bufer" = "port.bottleneck.bufer" is not a setting: \'bufer\' is unknown; did you mean buffer? '
            ],
        ),
        ("[axes]\nduration = []", ["plan.toml:4: axes.duration is empty; an axis needs at least one value"]),
        (
            '[axes]\nd = { path = "duration", values = [5] }',
            ['plan.toml:4: axes.d.values[0] = 5 is not a time such as "5us"'],
        ),
        (
            '[axes]\nd = { path = "duration", from = "5us", to = "5Mbps", count = 3 }',
            ['plan.toml:4: axes.d.to = "5Mbps" is not a time such as "5us"'],
        ),
        (
            '[axes]\nb = { path = "port.bottleneck.buffer", from = "1s", to = 5, count = 3 }',
            ['plan.toml:4: axes.b.from = "1s" is not a plain number, as port.bottleneck.buffer requires'],
        ),
        (
            '[axes]\nb = { path = "port.bottleneck.buffer", from = 5, to = 5, count = 3 }',
            ["plan.toml:4: axes.b.to = 5 is not above from = 5"],
        ),
        (
            '[axes]\nb = { path = "port.bottleneck.buffer", from = 1, to = 3, count = 30 }',
            ["plan.toml:4: axes.b gives the value 1 twice, because of rounding; use fewer values"],
        ),
        (
            '[axes]\nb = { path = "port.bottleneck.buffer", from = 0, to = 3, count = 3, scale = "log" }',
            ["plan.toml:4: axes.b.from = 0 is not above zero, as a logarithmic scale requires"],
        ),
        ('[axes]\nb = { path = "port.bottleneck.buffer" }', ["plan.toml:4: axes.b has no values; "]),
        (
            '[axes]\nb = { path = "port.bottleneck.buffer", from = 1, to = 3 }',
            ["plan.toml:4: axes.b needs a step or a count"],
        ),
        (
            '[axes]\n"port.bottleneck.buffer" = [1, 1]',
            ['plan.toml:4: axes."port.bottleneck.buffer"[1] = 1 appears twice; delete one'],
        ),
        ("[axes]\nseed = [1, 2]", ['plan.toml:4: axes.seed = "seed" cannot be varied here; use [seeds]']),
        (
            '[axes]\npoint = { path = "duration", values = ["1s"] }',
            ["plan.toml:4: axes.point is the name of a column in every store"],
        ),
        (
            '[axes]\np = { path = "port.bottleneck.policy", values = [{ ppd = {} }] }',
            ["plan.toml:4: axes.p.values[0] = {...} is a table: give it a label"],
        ),
        (
            '[[paired]]\n"topology.n_source.sources" = [5, 15]\n"port.bottleneck.buffer" = [1]',
            ["plan.toml:3: paired[0] must pair axes with the same number of values: topology.n_source.sources has 2, "],
        ),
        (
            '[[paired]]\n"topology.n_source.sources" = [5, 5]\n"port.bottleneck.buffer" = [100, 100]',
            ["plan.toml:3: paired[0] has topology.n_source.sources = 5, port.bottleneck.buffer = 100 twice; "],
        ),
        (
            '[axes]\na = { path = "duration", values = ["1s"] }\nb = { path = "duration", values = ["2s"] }',
            ["plan.toml:1: sets duration twice, by a and by b; delete one"],
        ),
        ("seeds = 0", ["plan.toml:3: seeds = 0 is not a whole number from 1"]),
        (
            '[seeds]\nuntil = { measure = "efficency", interval = 0, at_most = 3 }',
            [
                'plan.toml:4: seeds.until.measure = "efficency" is not measured; choose from efficiency, ',
                "plan.toml:4: seeds.until.interval = 0 is not a number above zero",
                "plan.toml:4: seeds.until.at_most = 3 is below at_least = 5",
            ],
        ),
        ('limits = { time = "60" }', ['plan.toml:3: limits.time = "60" is not a time above zero, such as "60s"']),
        ('limit = { time = "60s" }', ["plan.toml:3: limit is unknown; did you mean limits? Known keys: "]),
        (
            'measures = ["efficiency", "efficency", "cells.lost +"]',
            ["plan.toml:3: measures[2] = \"cells.lost +\" is not a measure: 'cells.lost +' lacks a path or a number"],
        ),
        (
            'measures = ["efficency"]',
            ['plan.toml:3: Unknown measure "efficency". Did you mean efficiency?'],
        ),
        (
            f'[axes]\nz = {{ path = "{SD}.threshold", values = [0.5, 1.9] }}',
            [f"plan.toml:4: {SD}.threshold = 1.9 is not a threshold: a share of the buffer (0 to 1)"],
        ),
        (
            '[axes]\nt = { path = "port.bottleneck.policy.epd.threshold", values = [800] }',
            [
                "plan.toml:4: port.bottleneck.policy names 2 (epd, selective_drop); choose exactly one; at point 0 (t = 800)"
            ],
        ),
        ('[sample]\nmethod = "random"\npoints = 0', ['plan.toml:4: sample.method = "random" must be one of "sobol"']),
        (
            '[series]\nrecord = ["qeue"]',
            ['plan.toml:4: series.record[0] = "qeue" must be one of "queue"', "plan.toml:3: series lacks step"],
        ),
        # Regression: a bad step and a bad series used to be detected only after the runs had started. The step caused
        # an internal error; the series gave results without a column.
        (
            '[series]\nrecord = ["queue"]\nstep = "1ps"',
            ['plan.toml:5: series.step = "1ps" is too short: a run of 10s may have 1000000 samples after the first'],
        ),
        (
            '[series]\nrecord = ["queue", "acr"]\nstep = "1ms"',
            ['plan.toml:4: series.record = "acr" has nothing to record: no connection sends its data on an ABR VC'],
        ),
        (
            '[series]\nrecord = ["queue"]\nports = ["sw9->sw1"]\nstep = "1ms"',
            ['plan.toml:5: series.ports = "sw9->sw1" is not a port of this network'],
        ),
        ("axes = 5", ["plan.toml:3: axes = 5 is not a table"]),
        ("[axes]\nz = nan", ["plan.toml:4: axes.z = NaN is neither a list of values nor a table"]),
        (f'[axes]\n"{SD}.z" = [0.5, inf]', [f'plan.toml:4: axes."{SD}.z"[1] = Infinity is not a finite number']),
        ("[axes\n", ["plan.toml:3: is not TOML: "]),
    ],
)
def test_errors_in_a_plan_are_reported_with_their_line(text, messages):
    found = refused(text)
    for message in messages:
        assert any(one.startswith(message) for one in found), "\n".join(found)
    if len(messages) == 1 and "sample" not in text:
        assert len(found) == 1, "\n".join(found)


PHASE = '"tcp.vanilla.timer.tick_phase" = ["common", "random"]'


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        (f'[axes]\ntcp = ["reno", "sack"]\n{PHASE}\n', 5, 'axes."tcp.vanilla.timer.tick_phase"'),
        (f'[[paired]]\ntcp = ["reno", "sack"]\n{PHASE}\n', 5, 'paired[0]."tcp.vanilla.timer.tick_phase"'),
        (
            '[axes]\ntcp = ["reno", "sack"]\nphase = { path = "tcp.vanilla.timer.tick_phase", values = ["random", "common"] }\n',
            5,
            "axes.phase",
        ),
    ],
)
def test_an_axis_without_effect_at_every_point_is_refused_with_its_line(text, line, key):
    [message] = refused(text)
    assert message == f"plan.toml:{line}: {key} changes nothing: no point has tcp.vanilla; they have tcp.reno, tcp.sack"


def test_an_axis_that_has_an_effect_at_only_one_point_is_accepted():
    """An axis is paired with the TCP. The point with Reno ignores the axis, and the point with vanilla uses it."""
    some = plan(f'[[paired]]\ntcp = ["reno", "vanilla"]\n{PHASE}\n')
    own = {"rules": "paper", "receive_window": "65535B"}
    tcp = [{"reno": own}, {"vanilla": {**own, "timer": {"tick_phase": "random"}}}]
    assert [point.scenario["tcp"] for point in some.points] == tcp
    assert some.uses["tcp.vanilla.timer.tick_phase"].at == (("vanilla",),)


def test_all_errors_in_a_plan_are_reported_together_with_their_lines():
    found = refused('[axes]\nduration = []\n"prt.x" = [1]\n[seedz]\n', base="")
    assert len(found) == 4
    assert (
        found[0]
        == "plan.toml:1: has no scenario; add a table [scenario], or scenario = the name of a file in its folder"
    )


def test_a_plan_with_too_many_runs_is_refused_and_the_message_states_their_number():
    text = "[axes]\n" + "\n".join(
        f'a{i} = {{ path = "{path}", from = 1, to = 10000, step = 1 }}'
        for i, path in enumerate(["port.bottleneck.buffer", "topology.n_source.sources", f"{SD}.z"])
    )
    [message] = refused(text + "\n[seeds]\ncount = 1")
    assert message.startswith(
        "plan.toml:1: has 1,000,000,000,000 points and 1,000,000,000,000 runs; at most 100,000,000 runs are possible"
    )
    [message] = refused('[axes]\nz = { path = "duration", from = "1ps", to = "1000s", step = "1ps" }')
    assert "1,000,000,000,000,000 points" in message
    assert MAX_RUNS == 10**8


def test_an_error_in_the_base_scenario_of_a_plan_has_its_line_in_that_file(tmp_path):
    (tmp_path / "base.toml").write_text('duration = "1s"\n[topology.n_source]\nsources = 0\nlink_delay = "5us"\n')
    (tmp_path / "plan.toml").write_text('scenario = "base.toml"\nseeds = 2\n')
    with pytest.raises(ct.PlanError) as refusal:
        Plan.load(tmp_path / "plan.toml")
    assert refusal.value.faults[0].message.startswith(f"{tmp_path}/base.toml:3: topology.n_source.sources = 0 is not")
    inline = (
        (tmp_path / "base.toml")
        .read_text()
        .replace("[topology", "[scenario.topology")
        .replace("duration", "scenario.duration")
    )
    [message, *_] = refused(inline, base="")
    assert message.startswith("plan.toml:3: scenario.topology.n_source.sources = 0 is not")
    [message] = refused('scenario = "no-such-scenario"', base="")
    assert "is not a file in the plan's folder, and no shipped scenario" in message
    with pytest.raises(ct.PlanError, match="there is no such file"):
        Plan.load(tmp_path / "nothing.toml")


def test_an_error_in_the_base_scenario_is_ignored_if_an_axis_replaces_the_setting(tmp_path):
    (tmp_path / "base.toml").write_text(
        'duration = "1s"\n[topology.n_source]\nsources = 2\nlink_delay = "5us"\n'
        "[port.bottleneck]\nbuffer = 100\npolicy = { epd = { threshold = 500 } }\n"
    )
    (tmp_path / "plan.toml").write_text('scenario = "base.toml"\n[axes]\n"port.bottleneck.buffer" = [500, 1000]\n')
    assert len(Plan.load(tmp_path / "plan.toml").points) == 2


def test_axis_values_may_be_scenario_classes_as_well_as_tables():
    lan = ct.load(ROOT / "scenarios/lan-epd.toml")
    found = Plan.of(
        lan,
        {
            "axes": {
                "net": {"path": "topology", "values": {"two": ct.NSource(sources=2, link_delay="5us")}},
                "tcp": {"path": "tcp", "values": {"reno": ct.Reno()}},
                "policy": {"path": "port.bottleneck.policy", "values": {"fba": ct.Fba()}},
                "duration": ["1s"],
            }
        },
    )
    [point] = found.points
    assert list(point.scenario["topology"]) == ["n_source"]
    assert list(point.scenario["tcp"]) == ["reno"]
    assert list(point.scenario["port"]["bottleneck"]["policy"]) == ["fba"]


def test_the_run_key_depends_on_the_values_of_a_scenario_and_not_on_notation():
    lan = ct.load(ROOT / "scenarios/lan-epd.toml")
    table = lan.to_dict()
    same = canonical(table)
    assert canonical({**table, "name": "other", "seed": 9}) == same
    assert canonical({**table, "duration": "10000ms"}) == same
    assert canonical({**table, "duration": "9s"}) != same
    assert run_key(same, 1) == run_key(same, 1)
    keys = {run_key(same, 1), run_key(same, 2), run_key(canonical({**table, "duration": "9s"}), 1)}
    assert len(keys | {run_key(same, 1, version="0.0.1")}) == 4


@pytest.mark.slow
def test_every_key_of_every_shipped_scenario_can_be_an_axis_path():
    def paths(value, path):
        if isinstance(value, dict):
            for key, one in value.items():
                yield from paths(one, f"{path}.{key}" if path else key)
        elif isinstance(value, list):
            for place, one in enumerate(value):
                yield from paths(one, f"{path}.{place}")
        else:
            yield path, value

    count = 0
    for name in _core.data_names("scenarios/"):
        if name.endswith(".toml"):
            scenario = Reading.of_core(_core.parse(_core.data(name), name)).scenario
            for path, value in paths(scenario, ""):
                # `follow` splits a path at its dots. In shipped scenarios, no name contains a dot.
                key = follow(path)
                if key.quantity is not None and value is not None:
                    key.quantity.read(value)
                count += 1
    assert count > 500


SHIPPED = [name for name in _core.data_names("plans/") if name.endswith(".toml") and name.count("/") == 1]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SHIPPED if not name.startswith("plans/tune-")])
def test_every_shipped_plan_is_valid(name):
    found = Plan.load(ROOT / name)
    assert found.name
    assert 50 < found.runs < 2000


@pytest.mark.parametrize("block", [b for b in blocks(ROOT / "docs/sweeps.md") if b.language == "toml"], ids=str)
def test_the_plans_on_the_sweep_page_are_valid(block):
    assert Plan.of_toml(block.text).runs > 1


LONG = "9" * 400
BUFFER = 'path = "port.bottleneck.buffer"'


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (f"[axes]\nb = {{ {BUFFER}, values = [{LONG}] }}", 4, "axes.b.values[0] = 99999"),
        (f"[axes]\nb = {{ {BUFFER}, from = {LONG}, to = 5, count = 3 }}", 4, "axes.b.from = 99999"),
        (f"[axes]\nb = {{ {BUFFER}, from = 1, to = {LONG}, count = 3 }}", 4, "axes.b.to = 99999"),
        (f"[axes]\nb = {{ {BUFFER}, from = 1, to = 5, step = {LONG} }}", 4, "axes.b.step = 99999"),
        (f"seeds = {LONG}", 3, "seeds = 99999"),
        (f'[seeds.until]\nmeasure = "efficiency"\nat_most = 5\ninterval = {LONG}', 6, "seeds.until.interval = 99999"),
        ('[seeds]\nuntil = { measure = "efficiency", interval = inf, at_most = 5 }', 4, "is not a number above zero"),
        (f'limits = {{ time = "{LONG}s" }}', 3, 'is not a time above zero, such as "60s", and at most 1000000000s'),
        ('limits = { time = "99999999999999999999s" }', 3, "and at most 1000000000s"),
        (f'[series]\nrecord = ["queue"]\nstep = "{LONG}s"', 5, 'series.step = "9999'),
        (f'[axes]\nd = {{ path = "duration", values = ["{LONG}s"] }}', 4, "is not a time of at most 40 digits, as "),
        (f'[axes]\nd = {{ path = "duration", from = "1s", to = "{LONG}s", count = 9, scale = "log" }}', 4, "40 digits"),
        (
            f'[axes]\nz = {{ path = "{SD}.z", from = 1e-10, to = 1e308, count = 3, scale = "log" }}',
            4,
            "axes.z.to = 1e+308 is more than 10^300 times from = 1e-10",
        ),
        (
            f'[axes]\nz = {{ path = "{SD}.z", from = 0.1, to = 1e308, step = 1e-300 }}',
            4,
            "axes.z.step = 1e-300 is too small for the range, which would have more than 4,611,686,018,427,387,904 values",
        ),
        (
            f"[[paired]]\nb = {{ {BUFFER}, from = 1, to = {10**18}, step = 1 }}\n"
            f'z = {{ path = "{SD}.z", from = 1, to = 4e18, count = {1 << 62} }}',
            3,
            "paired[0] must pair axes with the same number of values",
        ),
        (f'scenario = "{"a" * 10**5}"', 3, "is not a file in the plan's folder, and no shipped scenario"),
    ],
)
def test_absurdly_large_numbers_in_a_plan_are_refused_with_their_line(text, line, words):
    # Regression: Python has no float with 400 digits, so absurdly large numbers were internal errors.
    [message] = refused(f"\n{text}", base="\n") if text.startswith("scenario") else refused(text)
    assert message.startswith(f"plan.toml:{line}: ")
    assert words in message
    assert len(message) < 500


def test_absurdly_large_numbers_in_a_plan_made_in_python_are_refused_with_their_key():
    for over in ({"port.bottleneck.buffer": [10**400]}, {"z": {"path": f"{SD}.z", "values": [10**5000]}}):
        with pytest.raises(ct.PlanError, match=r"axes\..* is too large for any setting"):
            Plan.of("lan-selective-drop", {"axes": over})


def test_an_axis_range_up_to_the_largest_floating_point_number_is_computed():
    z = f'[axes]\nz = {{ path = "{SD}.z", from = 1e10, to = 1e308, count = 4, scale = "log" }}'
    assert [point.values["z"] for point in plan(z).points] == pytest.approx(
        [1e10, 2.15443e109, 4.64159e208, 1e308], rel=1e-5
    )


def test_an_axis_path_whose_index_is_beyond_the_end_of_a_list_is_refused():
    star = ct.Scenario(
        duration="1ms",
        topology=ct.GeneralNetwork(
            hosts=("a", "b"),
            switches=("s",),
            links=(ct.Link(between=("a", "s"), delay="1us"), ct.Link(between=("s", "b"), delay="1us")),
            flows=(ct.Flow(from_="a", to="b"),),
        ),
        port={"default": ct.Port(buffer_cells=100, policy=ct.TailDrop())},
    )
    links = "topology.network.links"
    assert len(Plan.of(star, {"axes": {f"{links}.1.delay": ["1us", "2us"]}}).points) == 2
    for place in ("2", "9" * 5000, "\u0663", "x"):
        with pytest.raises(ct.PlanError):
            Plan.of(star, {"axes": {f"{links}.{place}.delay": ["1us", "2us"]}})


def test_a_plan_that_is_far_too_large_is_refused_without_delay():
    # Regression: comparing every axis and every fault with every other took minutes.
    begun = time.process_time()
    pairs = "\n".join(f"a{i} = {{ {BUFFER}, values = [1, 2] }}" for i in range(1000))
    assert len(refused(f"[axes]\n{pairs}")) == 101
    vcs = "\n".join(f'"vc.tcp{i}.gfr.mcr" = ["1Mbps", "2Mbps"]' for i in range(1000))
    [message] = refused(f"[axes]\n{vcs}")
    assert "has more than 10^30 points; at most 100,000,000" in message
    many = ",".join(f'"m{i}"' for i in range(2000))
    [message] = refused(f"measures = [{many}]")
    assert "has 2,000 measures; at most 1,000 are possible" in message
    assert time.process_time() - begun < 10
