"""`celltrain compare`, `celltrain run --seeds` and `celltrain.compare`: means, paired differences, figures."""

from __future__ import annotations

import csv
import itertools
import json
import math
import re
import warnings

import numpy as np
import pytest
from conftest import WITHOUT_POLICY, is_refused

import celltrain as ct
from celltrain.ensemble import plan_warnings
from celltrain.model.overrides import of_texts

POLICIES = {"port.bottleneck.policy": [ct.TailDrop(), ct.Epd(threshold=60), ct.SelectiveDrop()]}


@pytest.fixture(scope="module")
def lan() -> ct.Scenario:
    return ct.n_source(sources=3, link_delay="5us", buffer_cells=100, policy=ct.TailDrop(), duration="50ms", name="lan")


@pytest.fixture(scope="module")
def compared(lan) -> ct.Compared:
    return ct.compare(lan, vary=POLICIES, seeds=4)


def test_the_means_and_differences_in_a_comparison_match_those_computed_from_single_runs(lan, compared):
    """Computes values from individual runs; 3.182446 is the 97.5 % quantile of Student's t for 3 degrees of freedom."""
    assert compared.names == ("tail_drop", "epd", "selective_drop")
    port = lan.port["bottleneck"]
    by_hand = [
        [ct.run(lan.replace(port={"bottleneck": port.replace(policy=policy)}), seed=seed) for seed in (1, 2, 3, 4)]
        for policy in POLICIES["port.bottleneck.policy"]
    ]
    efficiency = np.array([[run.efficiency for run in runs] for runs in by_hand])
    assert np.ptp(efficiency[1] - efficiency[0]) > 0
    rows = [row for row in compared.table.to_pylist() if row["measure"] == "efficiency"]
    more = efficiency - efficiency[0]
    for place, row in enumerate(rows):
        half = 3.182446 * efficiency[place].std(ddof=1) / 2
        assert row["mean"] == pytest.approx(efficiency[place].mean())
        assert (row["low"], row["high"]) == pytest.approx((row["mean"] - half, row["mean"] + half), rel=1e-5)
        if place:
            half = 3.182446 * more[place].std(ddof=1) / 2
            assert row["difference"] == pytest.approx(more[place].mean())
            assert row["difference_low"] == pytest.approx(more[place].mean() - half, rel=1e-5)
    assert rows[0]["difference"] is None
    assert compared.fingerprints[2, 0].tolist() == [run.fingerprint for run in by_hand[2]]


def test_differences_in_a_comparison_are_paired_over_the_seeds_that_both_scenarios_have(lan):
    """Two identical sets of runs do not differ, however wide their spread."""
    with pytest.warns(ct.CelltrainWarning, match="again and lan give the same runs with every seed"):
        twice = ct.compare(lan, lan.replace(name="again"), seeds=4)
    [more] = [row for row in twice.table.to_pylist() if row["name"] == "again" and row["measure"] == "efficiency"]
    assert more["high"] > more["mean"]
    assert (more["difference"], more["difference_low"], more["difference_high"]) == (0, 0, 0)


def test_any_two_compared_policies_with_identical_runs_are_reported(lan):
    """Regression: only the first policy was compared with the other policies."""
    given = [ct.TailDrop(), ct.Epd(threshold=60), ct.SelectiveDrop(), ct.Formula(admit="X <= 60")]
    with pytest.warns(ct.CelltrainWarning, match="formula and epd give the same runs with every seed"):
        ct.compare(lan, vary={"port.bottleneck.policy": given}, seeds=2)


def test_policies_with_identical_runs_in_one_scenario_are_reported_with_the_name_of_that_scenario(lan):
    roomy = ct.n_source(
        sources=1, link_delay="5us", buffer_cells=9999, policy=ct.TailDrop(), duration="50ms", name="roomy"
    )
    given = [ct.TailDrop(), ct.Ppd()]
    with pytest.warns(ct.CelltrainWarning, match="ppd and tail_drop give the same runs with every seed in roomy: "):
        ct.compare([lan, roomy], vary={"port.bottleneck.policy": given}, seeds=2)


def test_policies_are_compared_within_each_combination_of_the_varied_settings(lan):
    """Compares policies at two buffers and two delays. The axes are in the order of the call."""
    vary = {**POLICIES, "port.bottleneck.buffer": [100, 200], "topology.n_source.link_delay": ["5us", "50us"]}
    with pytest.warns(ct.CelltrainWarning) as said:
        crossed = ct.compare(lan, vary=vary, seeds=2, measures=["efficiency"])
    told = [str(one.message) for one in said]
    assert len(told) == 2
    assert "stays 60 cells while the buffer goes from 100 to 200" in told[0]
    assert "epd: port.bottleneck.buffer changes nothing: all 4 pairs" in told[1]
    assert [axis.name for axis in crossed.conditions] == ["port.bottleneck.buffer", "topology.n_source.link_delay"]
    assert crossed.settings[1] == {"port.bottleneck.buffer": 100.0, "topology.n_source.link_delay": 5e-5}
    alone = lan.replace(
        port={"bottleneck": ct.Port(buffer_cells=200, policy=ct.SelectiveDrop())},
        topology=lan.topology.replace(link_delay="50us"),
    )
    assert crossed.values[2, 3, 1, 0] == ct.run(alone, seed=2).efficiency
    answer = crossed.to_dict()
    assert len(answer["scenarios"]) == 12
    assert len(answer["differences"]) == 8
    assert answer["differences"][0]["settings"] == crossed.settings[0]


def test_the_special_policy_name_as_is_selects_the_unchanged_policy_of_the_scenario(celltrain, tmp_path):
    """Regression: a custom formula could not be compared with EPD, because `formula` alone lacks its rule."""
    path = tmp_path / "own.toml"
    formula = '[port.bottleneck.policy.formula]\nadmit = "X <= R or Y * N <= X"\nconstants = { R = "0.3 * K" }\n'
    path.write_text(WITHOUT_POLICY + formula)
    vary = {"port.bottleneck.policy": ["as-is", ct.Epd(threshold="60%")], "port.bottleneck.buffer": [200, 80]}
    compared = ct.compare(path, vary=vary, seeds=2)
    assert compared.names == ("as-is", "epd")
    own = ct.load(path)
    smaller = own.replace(port={"bottleneck": own.port["bottleneck"].replace(buffer_cells=80)})
    for setting, scenario in enumerate((own, smaller)):
        assert compared.fingerprints[0, setting].tolist() == [ct.run(scenario, seed=s).fingerprint for s in (1, 2)]
    said = celltrain(
        "compare", path, "--seeds", 2, "--json", "--vary", "port.bottleneck.policy=epd:threshold=60%,as-is"
    )
    assert [one["name"] for one in said.json["scenarios"]] == ["epd:threshold=60%", "as-is"]
    rows = [row for row in compared.table.to_pylist() if row["measure"] == "efficiency"]
    [mean] = [row["mean"] for row in rows if (row["name"], row["port.bottleneck.buffer"]) == ("as-is", 200)]
    assert said.json["scenarios"][1]["efficiency"]["mean"] == mean
    refused = celltrain("compare", path, "--vary", "port.bottleneck.policy=as-it-is,epd")
    assert "as-is (the scenario's own value)" in refused.err


@pytest.mark.slow
def test_user_defined_names_appear_in_the_table_and_the_figure_of_a_comparison(lan, celltrain, small, tmp_path):
    options = ("--seeds", 2, "--vary", "duration=5ms")
    policies = ("--vary", "port.bottleneck.policy=tail-drop,Selective Drop")
    picture = tmp_path / "policies.svg"
    said = celltrain("compare", small, *policies, *options, "--names", "Tail drop, SD", "--plot", picture)
    assert "Tail drop, SD in small: seeds 1 to 2 each" in said.out and "difference from Tail drop" in said.out
    drawn = picture.read_text()
    assert all(text in drawn for text in ("Tail drop", "SD", "means of 2 seeds; bars: 95 % intervals"))
    two = ct.compare(lan, lan.replace(seed=2), names=["first", "second"], seeds=1, vary={"duration": ["5ms"]})
    assert two.names == ("first", "second")
    for names, problem in (
        ("one", "must contain one name for each of the 2 values of port.bottleneck.policy"),
        ("a,a", "twice"),
    ):
        refused = celltrain("compare", small, *policies, *options, "--names", names)
        assert (refused.code, problem in refused.err) == (2, True), refused.err


def test_policies_are_found_by_common_spellings():
    said = of_texts(["port.bottleneck.policy=Tail Drop,selective-drop:z=0.8"])["port.bottleneck.policy"]["values"]
    assert said == {"Tail Drop": {"tail_drop": {}}, "selective-drop:z=0.8": {"selective_drop": {"z": 0.8}}}
    assert of_texts(["port.bottleneck.policy=RED,epd"])["port.bottleneck.policy"]["values"] == {
        "RED": {"red": {}},
        "epd": {"epd": {}},
    }


@pytest.mark.nightly
@pytest.mark.slow
def test_a_comparison_figure_has_axis_ticks_only_at_values_that_were_simulated(lan):
    """Regression: between 500 and 4000, ticks were at 1000, 2000 and 3000, and none at 500."""
    buffers = [60, 120, 240, 480]
    vary = {"port.bottleneck.policy": [ct.TailDrop(), ct.SelectiveDrop()], "port.bottleneck.buffer": buffers}
    compared = ct.compare(lan, vary={**vary, "duration": ["5ms"]}, seeds=2)
    for width in ("page", "column"):
        for axes in compared.plot(width=width).axes:
            ticks = axes.get_xticks().tolist()
            assert len(ticks) >= 3 and set(ticks) <= set(buffers), ticks


def test_several_scenarios_are_compared_under_each_value_of_a_varied_setting(lan):
    other = lan.replace(name="other", port={"bottleneck": ct.Port(buffer_cells=100, policy=ct.SelectiveDrop())})
    both = ct.compare(lan, other, vary={"port.bottleneck.buffer": [100, 150]}, seeds=2, measures=["fairness"])
    assert both.names == ("lan", "other")
    assert both.values.shape == (2, 2, 2, 1)
    assert both.runs.num_rows == 8
    assert both.runs.column_names == ["name", "port.bottleneck.buffer", "seed", "fingerprint", "fairness"]


@pytest.mark.slow
def test_the_compare_command_gives_the_same_result_as_the_python_function_compare(celltrain, tmp_path):
    """Uses every output format. The JSON output is a stable interface."""
    folder, table, picture = tmp_path / "out", tmp_path / "table.csv", tmp_path / "figure.svg"
    options = ("--seeds", 3, "--vary", "duration=50ms", "--measures", "efficiency,fairness,goodput_mbps")
    files = ("--out", folder, "--csv", table, "--plot", picture)
    answer = celltrain("compare", "lan-tail-drop", "lan-epd", *options, *files, "--json")
    assert answer.code == 0
    called = ct.compare(
        "lan-tail-drop",
        "lan-epd",
        vary={"duration": ["50ms"]},
        seeds=3,
        measures=["efficiency", "fairness", "goodput_mbps"],
    )
    assert answer.json == called.to_dict() == json.loads((folder / "comparison.json").read_text())
    assert answer.json["seeds"] == 3
    first, second = answer.json["scenarios"]
    assert first["name"] == "lan-tail-drop"
    assert set(second["efficiency"]) == {"mean", "low", "high", "n"}
    [difference] = answer.json["differences"]
    assert (difference["name"], difference["baseline"]) == ("lan-epd", "lan-tail-drop")
    assert set(difference["fairness"]) == {"mean", "low", "high"}
    assert list(csv.reader(table.open())) == list(csv.reader((folder / "comparison.csv").open()))
    rows = list(csv.DictReader(table.open()))
    assert [row["name"] for row in rows] == ["lan-tail-drop"] * 3 + ["lan-epd"] * 3
    assert float(rows[3]["mean"]) == second["efficiency"]["mean"]
    drawn = picture.read_text()
    assert drawn.startswith("<?xml")
    for text in ("lan-tail-drop", "lan-epd", "efficiency", "goodput (Mb/s)"):
        assert text in re.sub(r"<!--(.*?)-->", r"\1", drawn)


def test_a_comparison_table_marks_differences_larger_than_the_variation_between_seeds(celltrain):
    answer = celltrain("compare", "lan-tail-drop", "lan-epd", "--seeds", 3, "--vary", "duration=50ms", "--all")
    assert "lan-tail-drop, lan-epd: seeds 1 to 3 each" in answer.out
    assert "difference from lan-tail-drop" in answer.out
    assert re.search(r"cells discarded\n +lan-tail-drop +0 ± 0\n", answer.out)
    assert re.search(r"lan-epd .*\+[0-9.,]+ ± [0-9.,]+ \*", answer.out)


def test_a_comparison_warns_if_different_seeds_gave_identical_runs():
    """With a single flow and EPD, cells never contend, so nothing is random."""
    lan = ct.n_source(sources=1, link_delay="5us", buffer_cells=100, policy=ct.Epd(), duration="50ms")
    with pytest.warns(
        ct.CelltrainWarning, match="3 seeds hardly change .*: the interval does not cover other start times"
    ):
        compared = ct.compare(lan, seeds=3, measures=["efficiency"])
    assert len(set(compared.fingerprints.ravel())) == 1
    assert "± 0" in str(compared)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ct.compare("lan-tail-drop", seeds=5, vary={"duration": ["1s"]}, measures=["efficiency"])


def test_if_all_runs_are_identical_the_comparison_suggests_options_that_make_the_runs_differ(celltrain):
    """Both suggested settings occur in the scenario that the warning names, and each setting removes the warning."""
    alone = (
        "run",
        "lan-formula-red",
        "--seeds",
        3,
        "--set",
        "port.bottleneck.policy=formula:admit=Y < 0.8 * K / max(N, 1)",
    )
    alone = (*alone, "--set", "duration=2s")
    told = celltrain(*alone).err
    assert "hardly change" in told
    options = re.findall(r"--set [\w.]+=\w+", told)
    assert options == ["--set host.start_spread=100ms", "--set tcp.reno.timer.tick_phase=random"]
    pasted = celltrain(*alone, *" ".join(options).split())
    assert pasted.code == 0
    assert "hardly change" not in pasted.err
    assert "100 ms ticks, random phases" in pasted.out


def test_options_suggested_for_identical_runs_with_protocol_stacks_set_no_tcp_clock_ticks(celltrain):
    one = ("run", "lan-quic", "--seeds", 3, "--set", "topology.n_source.sources=1", "--set", "duration=20ms")
    assert "Add --set host.start_spread=100ms, or vary delays too" in celltrain(*one).err
    assert celltrain(*one, "--set", "host.start_spread=100ms").code == 0
    both = plan_warnings.seeds_hardly_matter(3, 1, 1, "", ["reno (a, b); tcp1: quic 1", "smoltcp 0.14.0 with reno"])
    assert "--set tcp.reno.timer.tick_phase=random" in both


def test_options_suggested_for_identical_runs_of_several_tcp_variants_name_each_variant(celltrain):
    assert "--set tcp.reno.timer.tick_phase=random" in plan_warnings.seeds_hardly_matter(
        3, 1, 1, "", ["reno (a, b)", "reno (c)"]
    )
    both = ["reno (a, b)", "sack (c)", "reno (d)"]
    options = "--set tcp.reno.timer.tick_phase=random --set tcp.sack.timer.tick_phase=random, or"
    assert options in plan_warnings.seeds_hardly_matter(3, 1, 1, "", both)
    # All options together are accepted, and each changes its own TCP.
    alone = ("compare", "lan-epd", "--vary", "tcp=reno,sack", "--set", "duration=30ms", "--seeds", 3)
    told = celltrain(*alone, *f"--set host.start_spread=100ms {options.partition(',')[0]}".split())
    assert told.code == 0
    assert "hardly change" not in told.err
    assert told.out.count("random phases") == 2


@pytest.mark.slow
def test_the_run_command_with_several_seeds_gives_a_comparison_of_one_scenario(celltrain, small, tmp_path):
    answer = celltrain("run", small, "--seeds", 4, "--seed", 7, "--json")
    [one] = answer.json["scenarios"]
    values = [ct.run(small, seed=seed).efficiency for seed in range(7, 11)]
    assert one["efficiency"]["mean"] == pytest.approx(sum(values) / 4)
    assert (answer.json["seeds"], answer.json["first_seed"], answer.json["differences"]) == (4, 7, [])
    told = celltrain("run", small, "--seeds", 4, "--out", tmp_path / "out", "--plot", tmp_path / "out" / "seeds.svg")
    assert "small: seeds 1 to 4" in told.out
    assert "±" in told.out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "comparison.csv",
        "comparison.json",
        "figure.json",
        "runs.csv",
        "scenarios.json",
        "seeds.svg",
    ]


def test_a_comparison_lists_the_fingerprint_of_each_seed(celltrain, small):
    answer = celltrain("run", small, "--seeds", 4, "--seed", 7, "--json")
    prints = celltrain("run", small, "--seeds", 4, "--seed", 7, "--fingerprints").out
    alone = {seed: celltrain("run", small, "--seed", seed, "--json").json["fingerprint"] for seed in range(7, 11)}
    assert answer.json["fingerprints"] == {str(seed): text for seed, text in alone.items()}
    assert [line for line in prints.splitlines() if line.startswith("seed ")] == [
        f"seed {seed}  {text}" for seed, text in alone.items()
    ]
    refused = celltrain("run", small, "--fingerprints")
    assert refused.code == 2
    assert "--fingerprints needs --seeds N" in refused.err


def test_options_for_single_runs_are_refused_if_several_seeds_are_run(celltrain, small, tmp_path):
    answer = celltrain("run", small, "--seeds", 4, "--trace", "queue", "--out", tmp_path / "out")
    assert answer.code == 2
    assert "--trace applies to a single run; use --seed instead of --seeds 4" in answer.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["lan-epd", "lan-epd"], "scenarios = lan-epd is given twice"),
        (["lan-epd", "lan-edp"], "lan-edp: there is no such file, and no shipped scenario has this name; did you mean"),
        (["lan-epd", "--vary", "port.bottleneck.buffer"], "is not PATH=VALUE,VALUE"),
        (["lan-epd", "--vary", "port.bottleneck.buffer=1,,2"], "is not PATH=VALUE,VALUE"),
        (["lan-epd", "--vary", "prot.bottleneck.buffer=1"], "'prot' is unknown; did you mean port?"),
        (["lan-epd", "--vary", "port.bottleneck.policy=edp"], "Did you mean epd? Policies: tail_drop"),
        (
            ["lan-epd", "--vary", "port.bottleneck.policy=epd:800"],
            "has '800' as a setting of epd; write epd:KEY=VALUE",
        ),
        (["lan-epd", "--vary", "port.bottleneck.buffer=500"], '(a share such as "80%" scales with the buffer)'),
        (
            ["lan-epd", "--vary", "port.bottleneck.policy=formula,epd"],
            "formula:admit=..., or as-is to use the file's value",
        ),
        (
            ["lan-epd", "--measures", "throughput"],
            'Unknown measure "throughput". Did you mean goodput_mbps or flows.sum(*)',
        ),
        (
            ["lan-epd", "--vary", "duration=1s", "--vary", "duration=2s"],
            "sets duration, which another setting also sets",
        ),
        (["lan-epd", "--vary", "topology.n_source.link_delay=5"], 'is not a time such as "5us"'),
        (
            ["lan-epd", "--measures", "efficency"],
            'Unknown measure "efficency". Did you mean efficiency? (See: celltrain list measures)',
        ),
        (["lan-epd", "--measures", "ports.nowhere.lost_cells"], "is not a measure of these runs"),
        (
            ["lan-epd", "lan-fba", "--names", "A"],
            "--names = A gives 1 name for 2 scenarios; give one name for each scenario; commas separate names",
        ),
        (["lan-epd", "--plot", "figure.jpg"], "Cannot draw figure.jpg: use .svg, .pdf or .png."),
        (
            ["lan-epd", "--plot", "figure.svg", "--width", "poster"],
            "is not a figure width; choose column, page, or a length",
        ),
        (["lan-epd", "--plot", "figure.svg", "--style", "grayscal"], "did you mean grayscale?"),
    ],
)
def test_a_comparison_reports_all_errors_in_its_scenarios_before_any_run(
    celltrain, tmp_path, monkeypatch, arguments, expected
):
    monkeypatch.chdir(tmp_path)
    answer = celltrain("compare", *arguments)
    assert answer.code == 2
    assert expected in answer.err
    assert "Traceback" not in answer.err
    assert not list(tmp_path.iterdir())


def test_a_comparison_refuses_measures_whose_meanings_differ_between_scenarios(lan):
    """Covers counts and rates over different times, and delays of files of different sizes."""
    policy = ct.Port(buffer_cells=100, policy=ct.SelectiveDrop())
    longer = lan.replace(name="longer", duration="60ms", port={"bottleneck": policy})
    with pytest.raises(
        ct.InputError, match="longer lasts 60ms, but lan lasts 50ms: rates and counts would cover different"
    ):
        ct.compare(lan, longer, seeds=1)
    assert ct.compare(lan, longer, seeds=1, vary={"duration": ["20ms"]}).names == ("lan", "longer")
    small, large = (
        lan.replace(name=size, measure=ct.MeasureOptions(file_size=size), duration="200ms") for size in ("1kB", "100kB")
    )
    # The file size affects no run, and no measure except the delays.
    with pytest.warns(ct.CelltrainWarning, match="100kB and 1kB give the same runs"):
        assert ct.compare(small, large, seeds=1, measures=["efficiency"]).names == ("1kB", "100kB")
    with pytest.raises(
        ct.InputError, match=r"100kB has measure.file_size = .*file_delay_ms.mean would not mean the same"
    ):
        ct.compare(small, large, seeds=1, measures=["file_delay_ms.mean"])


def test_a_comparison_warns_about_different_networks_and_about_settings_without_effect(lan):
    """Covers different networks, a setting without effect, and a condition without effect on one of the scenarios."""
    wan = lan.replace(name="wan", topology=lan.topology.replace(link_delay="1ms"))
    with pytest.warns(ct.CelltrainWarning, match="wan and lan are different networks"):
        ct.compare(lan, wan, seeds=1)
    with pytest.warns(ct.CelltrainWarning, match="10 kB and 65.53. kB give the same runs with every seed"):
        ct.compare(lan, vary={"aal5.max_sdu": ["65535B", "10000B"]}, seeds=2)
    epd = ct.n_source(sources=3, link_delay="5us", buffer_cells=400, policy=ct.Epd(threshold=60), duration="50ms")
    with pytest.warns(ct.CelltrainWarning) as said:
        ct.compare(lan, epd.replace(name="epd"), vary={"port.bottleneck.buffer": [400, 500]}, seeds=2)
    told = [str(one.message) for one in said]
    assert any("epd: port.bottleneck.buffer changes nothing: all 2 pairs of runs" in text for text in told), told
    assert any(
        "stays 60 cells while the buffer goes from 400 to 500: 15% of the smallest, 12%" in text for text in told
    )


def test_a_comparison_with_one_seed_has_means_but_no_confidence_intervals(lan):
    one = ct.compare(lan, seeds=1, measures=["efficiency"])
    [row] = one.table.to_pylist()
    assert (row["n"], row["sd"], row["low"], row["high"]) == (1, None, None, None)
    assert one.to_dict()["scenarios"][0]["efficiency"]["low"] is None
    assert repr(one) == "Compared(lan: 1 seed)"


def test_a_comparison_reports_failed_runs_and_excludes_them_from_the_means(celltrain, small, failing):
    """The run of the second seed panics, and the other seeds are still compared."""
    failing.append(2)
    answer = celltrain("compare", small, "--seeds", 3, "--jobs", 1, "--json")
    assert answer.code == 1
    assert answer.json["scenarios"][0]["efficiency"]["n"] == 2
    assert [one["seed"] for one in answer.json["failures"]] == [2]
    assert "small, seed 2:" in answer.err


@pytest.mark.slow
def test_comparison_figures_have_the_requested_width_and_show_every_bar_in_full(compared):
    """Error bars lie within their axes, and no two labels overlap."""
    for width, inches in (("column", 3.5), ("page", 7.2)):
        figure = compared.plot(width=width)
        assert figure.get_size_inches()[0] == inches
        figure.draw_without_rendering()
        for axes, measure in zip(figure.axes, compared.means, strict=False):
            low, high = axes.get_xlim()
            assert low <= np.nanmin(measure.low)
            assert np.nanmax(measure.high) <= high
            # matplotlib also has ticks beyond both ends of an axis, but does not draw them.
            ticks = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
            boxes = [text.get_window_extent() for place, text in ticks if low <= place <= high]
            assert all(one.x1 < other.x0 for one, other in itertools.pairwise(boxes))


@pytest.mark.slow
def test_every_combination_of_varied_settings_has_a_separate_position_or_panel_in_a_comparison_figure(lan):
    """Numeric conditions are on the x axis. Each value of another condition has a panel."""
    vary = {
        "port.bottleneck.policy": [ct.TailDrop(), ct.SelectiveDrop()],
        "port.bottleneck.buffer": [100, 200, 400],
        "switch.tie_order": ["random", "fixed"],
    }
    crossed = ct.compare(lan, vary=vary, seeds=2, measures=["efficiency", "fairness"])
    figure = crossed.plot()
    assert [axes.get_title() for axes in figure.axes] == ["tie order random", "tie order fixed"] * 2
    assert figure.axes[2].get_xlabel() == "buffer of bottleneck (cells)"
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["tail_drop", "selective_drop"]
    with pytest.raises(ct.InputError, match="was not measured; choose from efficiency, fairness"):
        crossed.plot(measures=["goodput_mbps"])


def test_setting_values_on_the_command_line_are_parsed_as_toml():
    assert of_texts(["port.bottleneck.buffer=1000,infinite"]) == {"port.bottleneck.buffer": [1000, "infinite"]}
    assert of_texts(["topology.n_source.link_delay=5us,5ms"]) == {"topology.n_source.link_delay": ["5us", "5ms"]}
    [axis] = of_texts(["port.bottleneck.policy=selective_drop:threshold=0.9:z=.8"]).values()
    assert axis["values"] == {"selective_drop:threshold=0.9:z=.8": {"selective_drop": {"threshold": 0.9, "z": 0.8}}}
    assert not math.isnan(axis["values"]["selective_drop:threshold=0.9:z=.8"]["selective_drop"]["z"])


LAN = ["lan-tail-drop", "lan-epd", "--vary", "duration=50ms"]


def test_a_comparison_table_shows_the_default_measures_and_lists_those_that_it_omits(celltrain):
    answer = celltrain("compare", *LAN, "--seeds", 2)
    assert "goodput (Mb/s)" not in answer.out
    wanted = "Not shown: goodput, cells lost, cells discarded, timeouts of all flows. Choose with --measures, or show all with --all."
    assert wanted in answer.out
    assert {"goodput_mbps", "cells.lost", "flows.sum(*).timeouts"} <= celltrain(
        "compare", *LAN, "--seeds", 2, "--json"
    ).json["scenarios"][0].keys()
    whole = celltrain("compare", *LAN, "--seeds", 2, "--all").out
    assert "goodput (Mb/s)" in whole and "Not shown" not in whole
    chosen = celltrain("compare", *LAN, "--seeds", 2, "--measures", "cells.lost").out
    assert "cells lost" in chosen and "efficiency" not in chosen and "Not shown" not in chosen


def test_the_column_heading_for_a_varied_setting_is_the_last_component_of_its_path(celltrain):
    vary = ["--vary", "port.bottleneck.policy=tail_drop,ppd", "--vary", "port.bottleneck.buffer=1000,2000"]
    told = celltrain("compare", "lan-epd", "--vary", "duration=20ms", *vary, "--seeds", 1).out
    assert "varied: port.bottleneck.policy, port.bottleneck.buffer\n" in told
    assert re.search(r"^  policy +buffer +mean +difference from tail_drop$", told, re.MULTILINE)


@pytest.mark.slow
def test_the_heading_of_a_comparison_names_every_tcp_variant(celltrain):
    alike = celltrain("compare", *LAN, "--seeds", 1)
    assert "\nTCP: vanilla (no fast retransmit, rules of the papers, 100 ms ticks)\n" in alike.out
    lan = ["compare", "lan-epd", "lan-sack", "--vary", "duration=20ms", "--seeds", 1]
    assert (
        "\nTCP of lan-sack: sack (selective acknowledgements, rules of the papers, 100 ms ticks)\n"
        in celltrain(*lan).out
    )
    named = {one["name"]: one["tcp"].partition(" ")[0] for one in celltrain(*lan, "--json").json["scenarios"]}
    assert named == {"lan-epd": "vanilla", "lan-sack": "sack"}
    varied = ct.compare("lan-epd", vary={"duration": ["20ms"], "tcp": [{"tahoe": {}}, {"sack": {}}]}, seeds=1)
    assert [own[0].partition(" ")[0] for own in varied.tcp] == ["tahoe", "sack"]


@pytest.mark.slow
def test_a_warning_is_given_if_a_confidence_interval_from_few_seeds_includes_impossible_values():
    with pytest.warns(ct.CelltrainWarning, match=r"3 seeds are few: .*\(.*fairness.*\)\. Use 5 seeds or more"):
        ct.compare("lan-epd", seeds=3)
    enough = ct.compare("lan-epd", seeds=5)
    assert not any("seeds are few" in warning for warning in enough.warnings)


def test_a_comparison_accepts_only_one_table_format(celltrain):
    is_refused(celltrain("compare", *LAN, "--md", "--tex"), ["--tex", "cannot be combined with --md"])
    assert celltrain("run", "lan-epd", "--tex", "--json").code == 2
    markdown = celltrain("compare", *LAN, "--seeds", 2, "--md").out
    assert "| scenario | mean | difference from lan-tail-drop |\n| --- | ---: | ---: |" in markdown
    assert "\\begin{tabular}{lrr}" in celltrain("compare", *LAN, "--seeds", 2, "--tex").out


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--seeds", "ten", "'ten' is not a whole number from 1 to 1,000,000"),
        ("--seeds", "0", "'0' is not a whole number from 1 to 1,000,000"),
        ("--seed", "-1", "'-1' is not a whole number from 0 to 18,446,744,073,709,551,615"),
        ("--jobs", "2.5", "'2.5' is not a whole number from 1 to"),
    ],
)
def test_an_invalid_integer_on_the_command_line_gives_a_readable_error(celltrain, monkeypatch, option, value, words):
    monkeypatch.setenv("COLUMNS", "200")
    is_refused(celltrain("compare", *LAN, option, value), [words])


@pytest.mark.slow
def test_help_texts_do_not_contain_the_internal_type_name_int_range(celltrain):
    for command in ("run", "compare", "vet", "why", "reproduce", "sweep", "import"):
        told = celltrain(command, "--help").out
        assert "int range" not in told and "<=x" not in told


def figure_of(*scenarios, **options):
    """Returns a figure of short runs, ignoring their warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ct.compare(*scenarios, seeds=2, measures=["efficiency", "fairness"], **options).plot()


def titles(figure):
    return [axes.get_title() for axes in figure.axes]


@pytest.mark.nightly
@pytest.mark.slow
def test_a_comparison_figure_with_several_tcp_variants_labels_each_panel_or_line_with_its_variant():
    short = [ct.load(name).replace(duration="20ms") for name in ("lan-epd", "lan-sack")]
    policies = {"port.bottleneck.policy": ["tail_drop", "epd"]}
    panels = [title.partition("\n")[2] for title in titles(figure_of(*short, vary=policies))]
    assert panels == ["TCP: vanilla", "TCP: sack"] * 2
    for vary in ({}, {"port.bottleneck.buffer": [1000, 2000]}):
        suptitle = figure_of(*short, names=["one", "other"], vary=vary).get_suptitle()
        assert suptitle.startswith("TCP of one: vanilla; other: sack\n")
    by_tcp = figure_of(short[0], vary={**policies, "tcp": ["vanilla", "sack"], "port.bottleneck.buffer": [1000, 2000]})
    assert titles(by_tcp)[:2] == ["tcp vanilla", "tcp sack"]
    assert "TCP" not in figure_of(short[0], vary={"tcp": ["vanilla", "sack"]}).get_suptitle()


@pytest.mark.slow
def test_figure_panels_that_show_the_same_measure_have_the_same_axis_range():
    lan = ct.load("lan-epd").replace(duration="50ms")
    vary = {"port.bottleneck.policy": ["tail_drop", "epd"], "tcp": ["vanilla", "sack"]}
    limits = {}
    for axes in figure_of(lan, vary={**vary, "port.bottleneck.buffer": [1000, 2000]}).axes:
        limits.setdefault(axes.get_ylabel(), []).append(axes.get_ylim())
    assert [len(one) for one in limits.values()] == [2, 2]
    assert all(len(set(one)) == 1 for one in limits.values())


def test_an_undefined_value_is_marked_in_its_row_of_the_comparison_table():
    lan = ct.load("lan-epd").replace(duration="5ms")
    dead = ct.Formula(admit="X < 0.8 * K and Y * N < 1.2 * X")
    efficiency, fairness = figure_of(lan, vary={"port.bottleneck.policy": ["epd", dead]}).axes
    assert not efficiency.texts
    assert [(text.get_text(), text.get_position()[1]) for text in fairness.texts] == [("undefined", 1)]


def test_a_varied_setting_that_none_of_the_compared_variants_uses_is_refused(celltrain):
    """Regression: the setting was ignored, although the table heading named it."""
    words = "changes nothing: no case has tcp.tahoe; they have tcp.reno, tcp.sack"
    phase, tcp = "tcp.tahoe.timer.tick_phase", "tcp=reno,sack"
    is_refused(
        celltrain("compare", "lan-epd", "--set", f"{phase}=random", "--vary", tcp), [f"--set {phase}=random", words]
    )
    several = f"{phase}=random,common"
    is_refused(celltrain("compare", *LAN[:1], "--vary", several, "--vary", tcp), [f"--vary {several}", words])
    with pytest.raises(ct.InputError) as refusal:
        ct.compare("lan-epd", vary={"tcp": ["reno", "sack"], phase: ["random"]})
    [fault] = refusal.value.faults
    assert (fault.key, fault.value, fault.problem) == ("vary", phase, words)


def test_a_note_lists_a_varied_setting_that_only_some_of_the_compared_variants_use(celltrain):
    options = ("--seeds", 2, "--set", "duration=50ms", "--set", "tcp.reno.timer.tick_phase=random")
    line = "tcp.reno.timer.tick_phase = random (only where tcp is reno)"
    vary = ("--vary", "tcp=vanilla,reno,sack")
    assert line in celltrain("compare", "lan-epd", *options, *vary).out
    assert line in celltrain("compare", "lan-epd", *options, *vary, "--md").out.replace("\\", "")
    assert "only where tcp is reno" in celltrain("compare", "lan-epd", *options, *vary, "--tex").out
    answer = celltrain("compare", "lan-epd", *options, *vary, "--json").json
    assert answer["set_only_where"] == {"tcp.reno.timer.tick_phase": "tcp is reno"}
    # The setting affects the runs of Reno: they equal runs of a scenario in which it is written.
    vary = {"duration": ["50ms"], "tcp": ["reno:timer.tick_phase=random"]}
    [only] = ct.compare("lan-epd", vary=vary, seeds=2).to_dict()["scenarios"]
    assert answer["scenarios"][1]["efficiency"] == only["efficiency"]


def test_compared_tcp_variants_keep_the_tcp_settings_given_by_options(celltrain):
    options = ("--seeds", 2, "--set", "duration=50ms", "--set", "tcp.vanilla.timer.tick_phase=random")
    compared = celltrain("compare", "lan-epd", *options, "--vary", "tcp=reno,sack")
    assert "set: duration = 50 ms, tcp.vanilla.timer.tick_phase = random\n" in compared.out
    assert compared.out.count("random phases") == 2


def test_the_output_names_the_scenario_that_an_option_changes_if_other_scenarios_are_unaffected(celltrain):
    options = (
        "--seeds",
        2,
        "--set",
        "duration=50ms",
        "--set",
        "tcp.sack.timer.tick_phase=random",
        "--vary",
        "tcp=as-is,reno",
    )
    assert "(only where tcp is as-is or reno in lan-sack)" in celltrain("compare", "lan-epd", "lan-sack", *options).out


def test_names_shortened_for_a_narrow_screen_keep_the_parts_in_which_the_names_differ(celltrain, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    tcps = [f"{kind}:mss=1460B:receive_window=16MB:timer_granularity=10ms" for kind in ("sack", "reno")]
    lan = ["compare", "lan-epd", "--seeds", 2, "--set", "duration=20ms", "--vary", f"tcp={','.join(tcps)}"]
    lan += ["--vary", "port.bottleneck.buffer=2000,8000", "--measures", "cells.lost"]
    lines = celltrain(*lan).out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert any("difference from the" in line for line in lines)
    [*rows] = [line for line in lines if line.startswith("  reno:")]
    assert [line.count("\u00b1") for line in rows] == [2, 2], "a mean and a difference"


def test_the_heading_of_a_comparison_of_settings_names_the_scenario(celltrain, tmp_path):
    """Regression: tables of two networks could not be distinguished."""
    options = ("--seeds", 2, "--set", "duration=20ms", "--vary", "port.bottleneck.policy=epd,fba")
    assert ": seeds 1 to 2 each" in celltrain("compare", "lan-epd", *options).out
    assert "epd, fba in lan-epd: seeds" in celltrain("compare", "lan-epd", *options).out
    assert "in lan-epd: seeds" in celltrain("compare", "lan-epd", *options, "--tex").out
    celltrain("compare", "lan-epd", *options, "--out", tmp_path, "--plot", tmp_path / "a.svg")
    kept = json.loads((tmp_path / "comparison.json").read_text())
    assert (kept["scenario"], kept["version"]) == ("lan-epd", ct.__version__)
    [_, fba] = json.loads((tmp_path / "scenarios.json").read_text())
    assert fba["name"] == "fba" and "fba" in fba["scenario"]["port"]["bottleneck"]["policy"]
    assert "lan-epd: means of 2 seeds" in (tmp_path / "a.svg").read_text()


def test_integers_in_comparison_tables_have_no_decimal_places(celltrain):
    options = ("--seeds", 2, "--set", "duration=5ms", "--vary", "port.bottleneck.buffer=11399,11401")
    told = celltrain("compare", "zero-loss", *options, "--measures", "ports.bottleneck.buffer_cells").out
    assert "11,399 ± 0" in told and "11,401 ± 0" in told


def test_a_comparison_figure_names_the_compared_settings(celltrain, tmp_path):
    celltrain("compare", "lan-epd", "lan-fba", "--seeds", 2, "--set", "duration=5ms", "--plot", tmp_path / "a.svg")
    assert "set: duration = 5 ms" in (tmp_path / "a.svg").read_text()


def test_the_output_of_a_comparison_states_the_measuring_window(celltrain):
    options = ("--seeds", 2, "--set", "duration=200ms", "--set", "measure.from=50ms")
    assert "from 50ms to the end; largest queues refer to the whole run" in celltrain("run", "lan-epd", *options).out
    assert "largest queues" not in celltrain("run", "lan-epd", *options[:4]).out


def test_the_error_for_scenarios_passed_as_a_dict_explains_the_names_argument():
    with pytest.raises(ct.InputError, match="one by one, and their names as names="):
        ct.compare({"mine": ct.load("lan-epd")})
