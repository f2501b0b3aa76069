"""`celltrain vet` and `ct.vet`: conformance of a policy, and its performance relative to the classic policies."""

from __future__ import annotations

import html
import json
import re

import pytest
from conftest import WITHOUT_POLICY, is_refused

import celltrain as ct
from celltrain.drawing.words import estimated
from celltrain.ensemble.vetting import blocks, reversals, standard
from celltrain.model.grids import Line

FBA = 'admit = "X <= R or Y * N / X <= Z * (K - R) / (X - R)"\nconstants = { R = "0.9 * K", Z = 0.8 }\n'
QUICK = ["--scenarios", "lan-5", "--seeds", "2"]


def file(tmp_path, text: str, name: str = "mine.toml") -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


@pytest.fixture(scope="module")
def answer():
    formula = {"formula": {"admit": "X <= 0.5 * K or Y * N <= 0.8 * X"}}
    return ct.vet(formula, scenarios=["lan-5", "unequal-rtt"], seeds=3)


@pytest.mark.slow
def test_the_vet_result_contains_policy_checks_and_the_metrics_of_the_policy_and_classic_policies(answer):
    assert [check["check"] for check in answer["conformance"]] == [
        "never_above_capacity",
        "counts_equal_a_recount",
        "whole_frames",
        "same_seed_same_answers",
        "admits_into_an_empty_buffer",
        "both_engines_agree",
        "every_run_ends",
        "carries_half_of_tail_drop",
    ]
    assert all(check["holds"] and check["evidence"] for check in answer["conformance"])
    evidence = " ".join(check["evidence"] for check in answer["conformance"])
    assert re.search(r"\b\d{2,3},\d{3} arriving cells; at most \d+ cells wait", evidence)
    assert not re.search(r"(?<![0-9a-f])\d{4,}(?![0-9a-f])", evidence)
    assert list(answer["beside"]) == ["epd", "selective_drop", "fba"]
    for name in ("efficiency", "fairness", "lan-5.efficiency", "unequal-rtt.max_queue_cells"):
        for one in (answer["metrics"], *answer["beside"].values(), *answer["differences"].values()):
            assert one[name]["low"] <= one[name]["mean"] <= one[name]["high"]
    json.dumps(answer, allow_nan=False)


def test_the_vet_command_computes_metrics_as_means_over_runs_and_as_differences_of_means(answer):
    shares = [answer["metrics"][f"{name}.efficiency"]["mean"] for name in ("lan-5", "unequal-rtt")]
    assert answer["metrics"]["efficiency"]["mean"] == pytest.approx(sum(shares) / 2)
    for other, more in answer["differences"].items():
        for name, estimate in more.items():
            expected = answer["metrics"][name]["mean"] - answer["beside"][other][name]["mean"]
            assert estimate["mean"] == pytest.approx(expected, abs=1e-9)


def test_a_classic_policy_written_as_a_formula_has_the_same_metrics_as_the_native_policy(tmp_path, celltrain):
    told = celltrain("vet", file(tmp_path, f"[policy.formula]\n{FBA}"), *QUICK, "--against", "fba", "--json")
    assert told.code == 0
    answer = json.loads(told.out)
    assert answer["policy"] == "mine"
    assert answer["metrics"] == answer["beside"]["fba"]
    assert "the same runs" in answer["artifacts"]["warnings"][0]


@pytest.mark.slow
def test_the_table_of_the_vet_command_is_printed_and_saved(tmp_path, celltrain):
    told = celltrain("vet", file(tmp_path, '[formula]\nadmit = "X <= 600"\n'), *QUICK, "--against", "epd")
    assert told.code == 0
    assert "whole frames" in told.out and "yes" in told.out
    [line] = [line for line in told.out.splitlines() if "largest queue (cells)" in line]
    assert "±" in line
    answer = ct.vet({"formula": {"admit": "X <= 600"}}, scenarios=["lan-5"], against=["epd"], seeds=2)
    rows = answer["artifacts"]["table"].splitlines()
    assert rows[0] == "| metric | formula | epd |"
    assert len(rows) == 2 + len(answer["metrics"])


def test_the_vet_command_accepts_a_whole_scenario_with_one_policy(tmp_path, celltrain):
    scenario = f"{WITHOUT_POLICY}[port.bottleneck.policy.formula]\n{FBA}"
    told = celltrain("vet", file(tmp_path, scenario), *QUICK, "--against", "fba", "--json")
    assert told.code == 0
    answer = json.loads(told.out)
    assert answer["metrics"] == answer["beside"]["fba"]


class Moody(ct.PythonPolicy):
    asked = 0

    def admit(self, view, vc):
        Moody.asked += 1
        return Moody.asked % 5 > 0


def test_a_failed_check_of_the_vet_command_gives_exit_code_1(tmp_path, celltrain):
    policy = f'[policy.python]\nclass = "{__name__}:Moody"\n'
    told = celltrain(
        "vet", file(tmp_path, policy), "--scenarios", "lan-5", "--seeds", "1", "--against", "epd", "--json"
    )
    assert told.code == 1
    assert "same_seed_same_answers" in [
        check["check"] for check in json.loads(told.out)["conformance"] if not check["holds"]
    ]


@pytest.mark.slow
def test_the_vet_command_warns_about_non_finite_formula_results(tmp_path, celltrain):
    """Regression: vetting refused a condition of the kind that the page about formulas recommends."""
    policy = file(tmp_path, '[policy.formula]\nadmit = "X <= 0.5 * K or Y * N / X <= 0.8"\n')
    told = celltrain("vet", policy, *QUICK, "--against", "epd")
    assert told.code == 0 and "no number" not in told.err and "replaced" not in told.err
    policy = file(tmp_path, '[policy.formula]\nadmit = "X <= 0.8 * K and (Y * N / X <= 0.8 or X <= 0.5 * K)"\n')
    told = celltrain("vet", policy, *QUICK, "--against", "epd")
    assert told.code == 0
    assert "warning: lan-5: mine: " in told.err and "results of its formulas had to be replaced" in told.err


@pytest.mark.slow
def test_column_names_in_the_table_of_the_vet_command_are_unique_and_escaped_for_markdown(tmp_path, celltrain):
    answer = ct.vet({"fba": {}}, scenarios=["lan-5"], against=["fba"], seeds=1)
    assert answer["artifacts"]["table"].splitlines()[0] == "| metric | this fba | fba |"
    path = file(tmp_path, f'name = "a|b [x](y)"\n[policy.formula]\n{FBA}')
    answer = ct.vet(path, scenarios=["lan-5"], against=["epd"], seeds=1)
    assert answer["artifacts"]["table"].splitlines()[0] == r"| metric | a\|b \[x\](y) | epd |"
    told = celltrain("vet", path, "--scenarios", "lan-5", "--seeds", "1", "--against", "epd")
    assert "a|b [x](y): seed 1 in lan-5" in told.out


def test_a_failed_check_that_depends_on_the_scenario_names_the_scenario(tmp_path, celltrain):
    path = file(tmp_path, "[policy.epd]\nthreshold = 5000\n")
    told = celltrain("vet", path)
    is_refused(told, ["mine.toml:2: policy.epd.threshold", "(in lan-5, lan-15, lan-5-sack, lan-5-random, unequal-rtt)"])
    told = celltrain("vet", path, "--scenarios", "lan-15")
    is_refused(told, ["above the buffer of 1000 cells", "(in lan-15)"])
    told = celltrain("vet", file(tmp_path, '[policy.formula]\nadmit = "X <= k"\n'))
    assert "(in " not in told.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "text, words",
    [
        ('[policy.formula]\nadmit = "X <= k"\n', ["mine.toml:2: policy.formula.admit", "did you mean K?", "^"]),
        ('[formula]\nadmit = "X <= k"\n', ["mine.toml:2: formula.admit", "did you mean K?"]),
        ('[policy.formula]\nadmitt = "X <= K"\n', ["mine.toml:2: policy.formula.admitt", "did you mean admit?"]),
        ("[policy.epd]\nthreshold = 5000\n", ["mine.toml:2: policy.epd.threshold", "above the buffer of 1000 cells"]),
        ("[policy.edp]\n", ["mine.toml:1: policy", "did you mean epd?"]),
        ("[policy.fba]\n[port]\n", ["mine.toml:2: port", "is unknown"]),
        ("policy = 3\n", ["mine.toml:1: policy", "is not a table policy"]),
        ('name = ""\n[policy.fba]\n', ["mine.toml:1: name", "is not a name"]),
        ("admit = 3\n", ["mine.toml", "has no policy"]),
        ("[policy", ["mine.toml:1"]),
        (
            '[policy.formula]\nadmit = "Y <= W"\nconstants.W = { tcp9 = 3, default = 1 }\n',
            ["mine.toml:3: policy.formula.constants.W.tcp9", "is not a VC"],
        ),
    ],
)
def test_the_vet_command_reports_an_invalid_policy_with_the_location_of_the_error(tmp_path, celltrain, text, words):
    is_refused(celltrain("vet", file(tmp_path, text), *QUICK), words)


def test_invalid_options_of_the_vet_command_are_refused():
    with pytest.raises(ct.InputError, match="lan-6 is unknown; did you mean lan-5"):
        ct.vet({"fba": {}}, scenarios=["lan-6"])
    with pytest.raises(ct.InputError, match="no-policy"):
        ct.vet({"fba": {}}, against=["no-policy"])
    with pytest.raises(ct.InputError, match="is not a policy"):
        ct.vet({})
    with pytest.raises(ct.InputError, match="scenarios"):
        ct.vet({"fba": {}}, scenarios=[])


def test_with_one_seed_the_vet_command_prints_no_confidence_interval():
    answer = ct.vet(ct.Fba(), scenarios=["lan-5"], against=[], seeds=1)
    assert answer["policy"] == "fba"
    assert answer["metrics"]["efficiency"]["low"] is None
    assert answer["beside"] == answer["differences"] == {}


def differing(**differences: tuple[float, float]) -> dict[str, dict[str, dict[str, float]]]:
    """Returns differences from EPD by scenario, for two TCPs. Unspecified differences are not significant."""
    found = {
        f"{name}.{share}": {"mean": 0.0, "low": -0.1, "high": 0.1}
        for name in ("lan-5", "lan-5-sack", "wan-5", "wan-5-sack", "lan-5-random")
        for share in ("efficiency", "fairness")
    }
    for name, (low, high) in differences.items():
        found[name.replace("__", ".").replace("_", "-")] = {"mean": (low + high) / 2, "low": low, "high": high}
    return {"epd": found}


SET = ["lan-5", "lan-15", "wan-5", "lan-5-sack", "wan-5-sack", "lan-5-random", "unequal-rtt"]


def test_the_vet_command_reports_each_measure_for_which_another_tcp_reverses_the_ranking_of_policies():
    reversed_ = differing(lan_5__efficiency=(0.1, 0.2), lan_5_sack__efficiency=(-0.3, -0.2))
    text = "compared with epd, the efficiency of mine is higher with vanilla (lan-5) and lower with sack (lan-5-sack)"
    assert reversals("mine", SET, reversed_, standard.PAIRS) == [text]
    both = differing(
        wan_5__fairness=(-0.2, -0.1),
        wan_5_sack__fairness=(0.1, 0.2),
        lan_5__efficiency=(0.1, 0.2),
        lan_5_sack__efficiency=(-0.3, -0.2),
    )
    assert reversals("mine", SET, both, standard.PAIRS) == [
        text,
        "compared with epd, the fairness of mine is lower with vanilla (wan-5) and higher with sack (wan-5-sack)",
    ]


def test_the_vet_command_mentions_a_policy_ranking_only_if_some_tcp_variant_reverses_the_ranking():
    same = differing(lan_5__efficiency=(0.1, 0.2), lan_5_sack__efficiency=(0.1, 0.3))
    assert reversals("mine", SET, same, standard.PAIRS) == []
    # The difference is significant with one TCP but not with the other. This does not show that the TCPs differ.
    alone = differing(lan_5__efficiency=(0.1, 0.2))
    assert (
        reversals("mine", SET, alone, standard.PAIRS)
        == reversals("mine", ["lan-5", "wan-5-sack"], alone, standard.PAIRS)
        == []
    )


def test_the_vet_command_reports_if_random_clock_phases_reverse_a_ranking_of_policies():
    reversed_ = differing(lan_5__efficiency=(0.1, 0.2), lan_5_random__efficiency=(-0.3, -0.2))
    text = (
        "compared with epd, the efficiency of mine is higher with synchronised clocks (lan-5) and lower with random clocks "
        "(lan-5-random)"
    )
    assert reversals("mine", SET, reversed_, standard.CLOCKS) == [text]
    assert reversals("mine", SET, reversed_, standard.PAIRS) == []
    alone = differing(lan_5__efficiency=(0.1, 0.2), lan_5_sack__efficiency=(-0.3, -0.2))
    assert (
        reversals("mine", SET, alone, standard.CLOCKS) == reversals("mine", ["lan-5"], reversed_, standard.CLOCKS) == []
    )
    answer = {**ct.vet({"fba": {}}, scenarios=["lan-5"], against=["epd"], seeds=2), "ranking_by_clocks": [text]}
    said = [one.text for one in blocks(answer) if isinstance(one, Line)]
    assert f"The ranking depends on the clocks: {text}." in said


def test_the_vet_command_shows_one_reversed_ranking_and_counts_the_others():
    answer = ct.vet({"fba": {}}, scenarios=["lan-5"], against=["epd"], seeds=2)
    for found, said in (
        ([], None),
        (["a is b"], "The ranking depends on the TCP: a is b."),
        (["a is b", "c is d"], "The ranking depends on the TCP: a is b; --json lists 1 more reversed difference."),
    ):
        texts = [one.text for one in blocks({**answer, "ranking": found}) if isinstance(one, Line)]
        assert [text for text in texts if "ranking" in text] == ([said] if said else [])


def test_paired_scenarios_of_the_vet_command_differ_only_in_their_tcp():
    for one, other in standard.PAIRS:
        first, second = ({**standard.SCENARIOS[name], "tcp": None} for name in (one, other))
        assert first == second and standard.tcp_of(one) != standard.tcp_of(other)


def test_vet_scenarios_compared_with_random_clocks_differ_only_in_clocks_and_start_times():
    for one, other in standard.CLOCKS:
        first, second = standard.SCENARIOS[one], standard.SCENARIOS[other]
        [(tcp, options)] = second["tcp"].items()
        own = {key: value for key, value in options.items() if key != "timer"}
        assert first == {**{key: value for key, value in second.items() if key != "host"}, "tcp": {tcp: own}}
        assert (options["timer"], second["host"]) == ({"tick_phase": "random"}, {"start_spread": "100ms"})


@pytest.mark.slow
def test_the_table_of_the_vet_command_states_durations_and_its_heading_mentions_random_clocks(tmp_path, celltrain):
    policy = file(tmp_path, f"[policy.formula]\n{FBA}")
    told = celltrain("vet", policy, "--scenarios", "lan-5,lan-5-random", "--seeds", 2, "--against", "epd").out
    assert "TCP of lan-5-random: vanilla (rules of the papers, 100 ms ticks, random phases)" in told
    assert "\nlan-5, 2 s\n" in told and "\nlan-5-random, 2 s\n" in told


@pytest.mark.slow
def test_the_result_and_the_table_of_the_vet_command_name_the_tcp(tmp_path, celltrain):
    policy = file(tmp_path, f"[policy.formula]\n{FBA}")
    told = celltrain("vet", policy, "--scenarios", "lan-5,lan-5-sack", "--seeds", 2, "--against", "epd")
    assert "TCP of lan-5: vanilla (no fast retransmit, rules of the papers, 100 ms ticks)" in told.out
    assert re.search(r"efficiency +sack +0\.", told.out) and re.search(r"efficiency +vanilla +0\.", told.out)
    answer = ct.vet({"fba": {}}, scenarios=["lan-5-sack"], against=[], seeds=1)
    assert answer["tcp"] == {"lan-5-sack": "sack (selective acknowledgements, rules of the papers, 100 ms ticks)"}
    assert answer["ranking"] == []


def test_the_short_output_of_the_vet_command_has_only_failed_checks_and_means(tmp_path, celltrain):
    policy = file(tmp_path, f"[policy.formula]\n{FBA}")
    told = celltrain("vet", policy, *QUICK, "--against", "epd", "--brief").out
    assert re.search(r"(\d) of \1 checks hold", told)
    assert "recount" not in told and "all scenarios" in told and "least goodput" not in told


def test_the_output_of_the_vet_command_can_be_written_as_an_html_page(celltrain, tmp_path):
    file = tmp_path / "vetted.html"
    told = celltrain("vet", "fba", "--scenarios", "lan-5", "--against", "epd", "--seeds", 2, "--html", file, "--json")
    page = html.unescape(file.read_text())
    assert all(check["evidence"] in page for check in told.json["conformance"])
    assert all(warning in page for warning in told.json["artifacts"]["warnings"])
    own = told.json["metrics"]["lan-5.efficiency"]
    text = estimated(own["mean"], own["high"] - own["mean"])
    assert text in page.partition("<h3>lan-5, ")[2]
    assert "://" not in page
    refused = celltrain("vet", "fba", "--scenarios", "lan-5", "--seeds", 1, "--html", tmp_path / "none" / "x.html")
    assert (refused.code, "cannot be written" in refused.err) == (2, True)
