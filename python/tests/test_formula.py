"""Policies, windows and weights as formulas, from the command line and from Python."""

from __future__ import annotations

import json

import pytest
from conftest import WITHOUT_POLICY, is_refused

import celltrain as ct


def mine(tmp_path, formula: str) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(f"{WITHOUT_POLICY}policy.formula = {formula}\n")
    return str(path)


def test_the_check_command_shows_the_position_of_an_error_in_a_formula(celltrain, tmp_path):
    path = mine(tmp_path, '{ admit = "X <= R or Y * n / X <= 0.8", constants = { R = "0.9 * K" } }')
    told = celltrain("check", path)
    assert told.code == 2
    lines = told.err.splitlines()
    # The message appears once, although several ports use the policy.
    [at] = [i for i, line in enumerate(lines) if "did you mean N?" in line]
    assert "mine.toml:10: port.bottleneck.policy.formula.admit = " in lines[at]
    assert lines[at + 1].strip() == "X <= R or Y * n / X <= 0.8"
    assert lines[at + 2].index("^") == lines[at + 1].index("n /")


@pytest.mark.parametrize(
    "formula, words",
    [
        ('{ admit = "X + 1" }', ["formula.admit", "is in cells; admit must be a condition"]),
        ('{ admit = "X <= N" }', ["one is in cells and the other is a number without unit"]),
        ('{ admit = "(X <= 3" }', ["ends where ) is expected for the ( at 1"]),
        ('{ admit = "X <= A", constants = { A = "B", B = "A" } }', ["constants.B", "is circular"]),
        ('{ admit = "X <= 3", on_frame = { avg = "X" } }', ["on_frame.avg", "is not a state"]),
        ('{ admit = "sojourn < 5 ms" }', ["formula.admit", "only the frame at the head", "use it in drop_head"]),
        ('{ admit = "X <= 3", drop_head = "Y > 3" }', ["formula.drop_head", "only arriving frames have this value"]),
        ('{ admit = "X <= 3", period = "1ms" }', ['formula.period = "1ms"', "there is no on_period"]),
        ('{ admit = "X <= n", state = { n = 0 }, on_drop = { n = "X" } }', ["formula.on_drop", "needs drop_head"]),
        ('{ admit = "Y <= W", constants = { W = { tcp9 = 3, default = 1 } } }', ["constants.W.tcp9", "is not a VC"]),
        ('{ admit = "Y <= W", constants = { W = { tcp1 = 3 } } }', ["constants.W", 'has no value for "tcp2"']),
        ('{ admit = "X <= 3", when_full = "lose" }', ["when_full", "lose_cell"]),
        ('{ admit = "X <= K - s", constants = { s = 3 } }', ["constants.s", "is the unit of seconds"]),
        ('{ admit = "X <= B", constants = { A = "B / 2", B = nan } }', ["constants.B = nan", "is not a finite number"]),
        ('{ admit = "X <= A", state = { a = inf } }', ["state.a = inf", "is not a finite number"]),
        ("{ constants = { A = 3 } }", ["formula.admit", "is missing; it must be a formula"]),
        ("{ admit = 3 }", ["formula.admit", "is not a formula"]),
    ],
)
def test_every_kind_of_error_in_a_policy_formula_is_reported_with_its_key(celltrain, tmp_path, formula, words):
    is_refused(celltrain("check", mine(tmp_path, formula)), words)


def test_an_invalid_constant_of_a_formula_is_reported_once(celltrain, tmp_path):
    """Regression: formulas that used the wrong constant were reported as well, even before the constant itself."""
    for wrong in (
        '{ admit = "X <= B + c", constants = { A = "B / 2", B = -inf }, state = { c = "B + A" } }',
        '{ admit = "X <= R", constants = { R = true } }',
        '{ admit = "X <= R", constants = { R = "0.9 * k" }, state = { c = "R" }, on_frame = { c = "R" } }',
        '{ admit = "X <= 3", every = 0 }',
        '{ admit = "X <= n", state = { n = 0 }, on_cells = { n = "X" }, every = 0 }',
    ):
        told = celltrain("check", mine(tmp_path, wrong))
        assert told.code == 2
        assert told.err.count("mine.toml:10: ") == 1, told.err


def test_a_constant_that_no_formula_uses_gives_a_warning(celltrain, tmp_path):
    unused = '{ admit = "X <= alpha", constants = { alpha = 9, alhpa = 8 }, state = { n = 0 }, on_frame.n = "n + 1" }'
    told = celltrain("check", mine(tmp_path, unused))
    assert told.code == 0
    assert "formula.constants.alhpa is not used by any formula" in told.out + told.err
    assert "formula.state.n is not used by any formula" in told.out + told.err
    assert "constants.alpha is" not in told.out + told.err


def test_a_formula_of_one_megabyte_is_refused_with_a_message_of_a_few_lines(celltrain, tmp_path):
    told = celltrain("check", mine(tmp_path, '{ admit = "' + "X + " * 250_000 + 'X <= 3" }'))
    assert told.code == 2
    assert "a formula can have at most 4000" in told.err
    assert len(told.err) < 3000


def test_the_explain_command_shows_the_page_about_the_formula_language(celltrain):
    told = celltrain("explain", "formula").out
    assert "if c then a else b" in told
    assert "random()" in told


def test_a_policy_written_as_a_formula_gives_the_same_run_as_the_native_policy():
    def run(policy):
        scenario = ct.n_source(sources=5, link_delay="5us", buffer_cells=300, policy=policy, duration="300ms")
        return ct.run(scenario, seed=3)

    formula = ct.Formula(admit="X <= R or Y * N / X <= Z * (K - R) / (X - R)", constants={"R": "0.9 * K", "Z": 0.8})
    ours, native = run(formula), run(ct.Fba())
    assert ours.fingerprint == native.fingerprint
    assert sum(ours.ports["discarded_frames"].to_pylist()) > 0


def test_non_finite_results_of_policy_formulas_are_counted_in_the_result(celltrain, tmp_path):
    path = mine(tmp_path, '{ admit = "Y / X < 2" }')
    [port] = [p for p in json.loads(celltrain("run", path, "--json").out)["ports"] if p["policy"] == "formula"]
    assert port["replaced_results"] > 0
    [row] = [line for line in celltrain("run", path).out.splitlines() if "formula results replaced" in line]
    assert f"{port['replaced_results']:,}" in row
    assert "results replaced" not in celltrain("run", mine(tmp_path, '{ admit = "X <= 100" }')).out


def test_a_comparison_warns_about_non_finite_formula_results():
    def scenario(admit):
        formula = ct.Formula(admit=admit)
        return ct.n_source(sources=2, link_delay="5us", buffer_cells=200, policy=formula, duration="20ms")

    with pytest.warns(ct.CelltrainWarning, match="bad: [0-9,]+ results of its formulas had to be replaced"):
        compared = ct.compare(
            scenario("X <= 100"), scenario("Y / X < 2"), names=["good", "bad"], seeds=2, measures=["efficiency"]
        )
    assert [measure.name for measure in compared.measures] == ["efficiency"]
    assert compared.values.shape == (2, 1, 2, 1)
    assert not any("good:" in warning for warning in compared.warnings)


def test_formulas_on_a_plan_axis_are_labelled_by_the_parts_in_which_the_formulas_differ():
    policies = [ct.Fba(), ct.Fba(z=0.5), ct.Formula(admit="X <= a", constants={"a": 9}), ct.Epd(threshold=90)]
    policies.append(ct.Formula(admit="X <= a", constants={"a": 8}))
    lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=200, policy=ct.Ppd(), duration="5ms")
    compared = ct.compare(lan, vary={"port.bottleneck.policy": policies}, seeds=1, measures=["efficiency"])
    assert compared.names == ("fba:z=0.8", "fba:z=0.5", "formula:constants.a=9", "epd", "formula:constants.a=8")


def test_a_search_can_tune_the_constants_of_a_formula():
    from celltrain.ensemble.tuning import TunePlan

    assert len(TunePlan.load("tune-formula").configurations.points) == 2
    formula = ct.Formula(admit="X <= R * K or Y * N <= Z * X", constants={"R": 0.5, "Z": 1.0})
    tuned = ct.tune(
        ct.n_source(sources=3, link_delay="5us", buffer_cells=200, policy=formula, duration="50ms"),
        parameters={"Z": {"path": "port.bottleneck.policy.formula.constants.Z", "from": 0.5, "to": 2.0}},
        trials=3,
        batch=3,
        finalists=2,
        seeds={"search": 1, "selection": 2, "confirmation": 2},
    )
    [search] = tuned.searches
    assert all(0.5 <= one.parameters["Z"] <= 2.0 for one in search.confirmed)


RENO = """\
on_ack = { cwnd = "if cwnd < ssthresh then cwnd + 1 else cwnd + 1 / cwnd" }
on_loss = { ssthresh = "max(2, min(cwnd, rwnd) / 2)", cwnd = "max(2, min(cwnd, rwnd) / 2) + 3" }
on_timeout = { ssthresh = "max(2, min(cwnd / 2, rwnd))", cwnd = "1" }
"""


def sender(tmp_path, formula: str, control: str = "formula") -> str:
    path = tmp_path / "sender.toml"
    tcp = f'[tcp.reno]\ncongestion = "{control}"\n[tcp.reno.formula]\n{formula}'
    path.write_text(f"{WITHOUT_POLICY}policy.epd.threshold = 100\n{tcp}")
    return str(path)


def test_a_congestion_control_written_as_a_formula_gives_the_same_run_as_the_native_control(celltrain, tmp_path):
    ours = celltrain("run", sender(tmp_path, RENO), "--json").json
    lan = ct.n_source(
        sources=3,
        link_delay="5us",
        buffer_cells=200,
        policy=ct.Epd(threshold=100),
        duration="20ms",
        tcp=ct.Reno(),
    )
    assert ours["fingerprint"] == ct.run(lan).to_dict()["fingerprint"]
    slower = ct.CongestionFormula(on_ack={"cwnd": "cwnd + a"}, constants={"a": 0.01})
    other = ct.run(lan.replace(tcp=ct.Reno(congestion="formula", formula=slower)))
    # cwnd starts at one segment and grows by a hundredth with each acknowledgement.
    for sent, cwnd in zip(
        other.flows["segments_sent"].to_pylist(), other.flows["cwnd_segments"].to_pylist(), strict=True
    ):
        assert sent > 100 and 1.5 < cwnd < 1 + sent / 100


def test_the_error_for_a_congestion_formula_shows_the_position_of_the_error(celltrain, tmp_path):
    told = celltrain("check", sender(tmp_path, 'on_ack = { cwnd = "cwnd + 1 / cwmd" }\n'))
    is_refused(told, ["sender.toml:14: tcp.reno.formula.on_ack.cwnd", "did you mean cwnd?"])
    text, carets = told.err.splitlines()[-2:]
    assert carets.index("^") == text.index("cwmd")


@pytest.mark.parametrize(
    "formula, control, words",
    [
        ('on_ack = { cwnd = "cwnd + mss" }', "formula", ["on_ack.cwnd", "the other is in bytes"]),
        (
            'on_ack = { rwnd = "3" }',
            "formula",
            ["on_ack.rwnd", "It must be cwnd, ssthresh or the name of a variable in state"],
        ),
        ('on_loss = { cwnd = "acked" }', "formula", ["on_loss.cwnd", "available only in on_ack"]),
        ('on_los = { cwnd = "1" }', "formula", ["formula.on_los", "did you mean on_loss?"]),
        ("constants = { W = { tcp1 = 3 } }", "formula", ["constants.W", "is not a number, or a formula of constants"]),
        ("", "formula", ["tcp.reno.formula", "has no formula for cwnd or ssthresh"]),
        ('on_ack = { cwnd = "1" }', "cubic", ["tcp.reno.formula", 'has no effect, as congestion is "cubic"']),
    ],
)
def test_every_kind_of_error_in_a_congestion_formula_is_reported_with_its_key(
    celltrain, tmp_path, formula, control, words
):
    is_refused(celltrain("check", sender(tmp_path, f"{formula}\n", control)), words)


def test_non_finite_results_of_congestion_formulas_are_counted_in_the_result(celltrain, tmp_path):
    flows = celltrain("run", sender(tmp_path, 'on_ack = { cwnd = "cwnd + 1 / (cwnd - 1)" }\n'), "--json").json["flows"]
    assert all(flow["replaced_results"] > 0 for flow in flows)


def weighted(tmp_path, scheduler: str) -> str:
    path = tmp_path / "weighted.toml"
    path.write_text(f"{WITHOUT_POLICY}policy.epd.threshold = 100\nscheduler.wfq_formula = {scheduler}\n")
    return str(path)


def test_a_weight_formula_with_constant_values_gives_the_same_run_as_the_constant_weights(celltrain, tmp_path):
    formula = '{ weight = "2 * W + 1", constants = { W = { tcp1 = 1, default = 0 } } }'
    ours = celltrain("run", weighted(tmp_path, formula), "--json").json
    port = ct.Port(
        buffer_cells=200,
        policy=ct.Epd(threshold=100),
        scheduler=ct.Wfq(weights={"tcp1": 3, "default": 1}),
    )
    lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=200, policy=ct.TailDrop(), duration="20ms")
    assert ours["fingerprint"] == ct.run(lan.replace(port={"bottleneck": port})).to_dict()["fingerprint"]


@pytest.mark.parametrize(
    "scheduler, words",
    [
        ('{ weight = "w", constants = { W = 3 } }', ["weighted.toml:11", "wfq_formula.weight", "did you mean W?", "^"]),
        ('{ weight = "W", constants.W = { tcp2 = 0, default = 1 } }', ["weight", "gives 0 for the VC tcp2"]),
        ('{ weight = "W", constants.W = { tcp9 = 1, default = 1 } }', ["constants.W.tcp9", "is not a VC"]),
        ('{ weight = "W", constants.W = { tcp1 = 1 } }', ["constants.W", 'has no value for "tcp2"']),
        ('{ weight = "random()" }', ["weight", "evaluated only once, at the start of the run"]),
        ("{}", ["wfq_formula.weight", "is missing; it must be a formula"]),
    ],
)
def test_every_kind_of_error_in_a_weight_formula_is_reported_with_its_key(celltrain, tmp_path, scheduler, words):
    is_refused(celltrain("check", weighted(tmp_path, scheduler)), words)


def test_the_explain_command_prints_the_page_and_the_keys_of_congestion_formulas(celltrain):
    told = celltrain("explain", "congestion/formula").out
    assert "min_rtt" in told
    assert "on_timeout" in told
    assert "formula" in celltrain("list", "congestion").out
