"""Policies of shared memories as formulas and as Python classes: in scenarios, `check`, `vet`, `compare` and sweeps."""

from __future__ import annotations

import dataclasses
import re
import warnings
from pathlib import Path

import pytest
from conftest import NIGHTLY, ROOT, is_refused

import celltrain as ct
from celltrain.ensemble.vetting import WORDS, standard

#: The pool of the switch in `memory-formula`, and the pools of all switches.
POOL, ALL_POOLS = "switch.sw.memory.pool.main.policy", standard.MEMORY_PATH
RANK = {
    "admit": "q_i + 1 <= alpha * rank * (B - Q) or now - since <= 20 us",
    "constants": {"alpha": 1},
    "queue_state": {"since": 0},
    "on_arrival": {"since": "if q_i == 0 then now else since"},
}


class Dynamic(ct.PythonMemoryPolicy):
    alpha = 1.0

    def admit(self, view, queue):
        assert view.free == view.B - view.Q and view.counts[queue] == view.q_i and sum(view.counts) == view.Q
        assert view.n == sum(cells > 0 for cells in view.counts) and len(view.counts) == view.N
        return view.q_i + 1 <= self.alpha * view.free


class Longest(ct.PythonMemoryPolicy):
    def admit(self, view, queue):
        return True

    def push_out(self, view, queue):
        lengths = [cells + (view.arriving if other == queue else 0) for other, cells in enumerate(view.counts)]
        return lengths.index(max(lengths))


class LongestHead(Longest):
    push_out_end = "head"

    def push_out(self, view, queue):
        lengths = [cells + (view.arriving if other == queue else 0) for other, cells in enumerate(view.counts)]
        return max(range(len(lengths)), key=lambda other: (lengths[other], other))


class RankDT(ct.PythonMemoryPolicy):
    alpha = 1
    first = 20e-6

    def start(self, pool):
        assert pool.name == "sw/main" and {queue.priority for queue in pool.queues} == {0}
        self.since = [0.0] * len(pool.queues)

    def on_arrival(self, view, queue):
        if view.q_i == 0:
            self.since[queue] = view.now

    def admit(self, view, queue):
        return view.q_i + 1 <= self.alpha * view.rank * view.free or view.now - self.since[queue] <= self.first


class Sent(ct.PythonMemoryPolicy):
    """Admits more cells of queues that have sent more."""

    def start(self, pool):
        self.sent = [0] * len(pool.queues)

    def on_departure(self, view, queue):
        assert view.arriving == 0
        self.sent[queue] += 1

    def admit(self, view, queue):
        return view.q_i <= 10 + self.sent[queue] / 100


SENT = ct.MemoryFormula(
    admit="q_i <= 10 cells + sent / 100", queue_state={"sent": 0}, on_departure={"sent": "sent + 1"}
)


class InBytes(ct.PythonMemoryPolicy):
    def admit(self, view, queue):
        return (view.q_i + 1) * view.cell_size <= 1060


class Moody(ct.PythonMemoryPolicy):
    asked = 0

    def admit(self, view, queue):
        Moody.asked += 1
        return Moody.asked % 7 > 0


class Faulty(ct.PythonMemoryPolicy):
    """Breaks a rule, chosen by a setting."""

    fault = "none"

    def start(self, pool):
        if self.fault == "start":
            raise KeyError(pool.name)

    def on_arrival(self, view, queue):
        if self.fault == "arrival":
            raise ValueError(view.now)

    def on_departure(self, view, queue):
        if self.fault == "departure":
            raise ValueError(queue)

    def admit(self, view, queue):
        return "yes" if self.fault == "text" else True

    def push_out(self, view, queue):
        return {"far": 99, "word": "longest", "negative": -1}.get(self.fault)


def fingerprint(policy, engine="fast", **changes) -> str:
    settings = {POOL: policy, "duration": "150ms", "switch.sw.memory.cells": 300, **changes}
    return ct.run(ct.load("memory-formula", settings=settings), engine=engine).fingerprint


@pytest.mark.slow
@pytest.mark.parametrize(
    "native, others",
    [
        (ct.DynamicThreshold(alpha=1.0), [ct.MemoryFormula(admit="q_i + 1 <= B - Q"), Dynamic()]),
        (ct.LongestQueueDrop(), [ct.MemoryFormula(admit="true", push_out="q_i + arriving"), Longest()]),
        (ct.LongestQueueDrop(variant="head_highest"), [LongestHead()]),
        (ct.MemoryFormula(**RANK), [RankDT()]),
        (SENT, [Sent()]),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_memory_policy_written_as_a_formula_or_class_runs_like_the_native_memory_policy(native, others):
    expected = fingerprint(native)
    assert expected != fingerprint(ct.CompleteSharing())
    for policy in (native, *others):
        assert {fingerprint(policy), fingerprint(policy, "reference")} == {expected}


@pytest.mark.slow
def test_a_memory_policy_class_can_be_saved_compared_and_swept(tmp_path):
    base = ct.load("memory-formula", settings={"duration": "20ms"})
    given = [ct.DynamicThreshold(alpha=0.5), Dynamic(alpha=0.5), RankDT()]
    with pytest.warns(ct.CelltrainWarning, match="give the same runs"):
        compared = ct.compare(base, vary={POOL: given}, seeds=2)
    assert (compared.fingerprints[0] == compared.fingerprints[1]).all()
    assert (compared.fingerprints[0] != compared.fingerprints[2]).any()
    ct.save(ct.load("memory-formula", settings={POOL: Dynamic(alpha=0.5), "duration": "20ms"}), tmp_path / "mine.toml")
    assert ct.run(tmp_path / "mine.toml").fingerprint == compared.fingerprints[1, 0, 0]
    path = f"{POOL}.python.settings.alpha"
    store = ct.sweep(
        tmp_path / "mine.toml", over={path: [0.25, 1.0]}, seeds=1, measures=["efficiency"], store=tmp_path / "store"
    )
    assert len(store.table()) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault, words",
    [
        ("start", "Faulty cannot be created for the pool sw/main: KeyError: 'sw/main'"),
        ("arrival", r"Faulty.on_arrival\(view, \d\) for sw/main at [\d.]+ s: ValueError: \d"),
        ("departure", r"Faulty.on_departure\(view, \d\) for sw/main at [\d.]+ s: ValueError: \d"),
        ("text", r"Faulty.admit\(view, \d\) for .*: TypeError: admit returned 'yes', but must return True or False"),
        ("far", r"Faulty.push_out\(view, \d\) for .*: ValueError: push_out returned 99, but must return None or the"),
        ("word", "push_out returned 'longest', but must return None or the number of a queue that can lose a cell: "),
        ("negative", "push_out returned -1, but"),
    ],
)
def test_the_error_for_an_invalid_return_value_of_a_memory_policy_names_class_method_and_value(fault, words):
    with pytest.raises(ct.ScenarioError, match=words):
        fingerprint(Faulty(fault=fault))
    assert fingerprint(Faulty()) == fingerprint(ct.CompleteSharing())


class Empty(ct.PythonMemoryPolicy):
    pass


class Middle(Dynamic):
    push_out_end = "middle"


class OfPort(ct.PythonPolicy):
    def admit(self, view, vc):
        return True


class Deaf(Dynamic):
    def on_arival(self, view, queue): ...


class Full(Dynamic):
    @staticmethod
    def pushout(view, queue): ...


class Never(ct.PythonMemoryPolicy):
    def admits(self, view, queue):
        return True


class Helped(Dynamic):
    """Has a method whose name resembles a method that it also overrides."""

    def admits(self, view, queue):
        return super().admit(view, queue)

    def admit(self, view, queue):
        return self.admits(view, queue)


class LatePort(OfPort):
    def strat(self, port): ...


class LateStack(ct.Stack):
    def on_packet(self, now, packet): ...

    def polls(self, now):
        return []


def test_a_memory_policy_class_with_a_misspelt_method_name_is_refused():
    """Regression: the misspelt method was never called, and there was no message."""
    for cls, words in {
        Deaf: "has a method on_arival, which celltrain never calls; did you mean on_arrival?",
        Full: "has a method pushout, which celltrain never calls; did you mean push_out?",
        Never: "has a method admits, which celltrain never calls; did you mean admit?",
    }.items():
        with pytest.raises(ct.ScenarioError, match=re.escape(words)):
            ct.load("memory-formula", settings={POOL: cls()})
    ct.load("memory-formula", settings={POOL: Helped()})
    with pytest.raises(ct.ScenarioError, match=r"has a method strat, .* did you mean start\?"):
        ct.load("lan-epd", settings={"port.bottleneck.policy": LatePort()})
    with pytest.raises(ct.ScenarioError, match=r"has a method polls, .* did you mean poll\?"):
        ct.load("lan-epd", settings={"stack": LateStack()})


def test_errors_in_the_definition_of_a_memory_policy_class_are_reported():
    with pytest.raises(ct.ScenarioError, match="alfa = 3 is not a setting; did you mean alpha"):
        Dynamic(alfa=3)
    for name, words in {
        "Empty": "has no admit(self, view, queue)",
        "Middle": "has push_out_end = 'middle', which is not an end of a queue",
        "OfPort": "is a policy of ports (a subclass of celltrain.PythonPolicy), but here a policy of memories is needed",
        "Nobody": "is not a class of",
    }.items():
        with pytest.raises(ct.ScenarioError, match=re.escape(words)):
            ct.load("memory-formula", settings={POOL: {"python": {"class": f"{__name__}:{name}"}}})
    with pytest.raises(ct.ScenarioError, match=r"is a policy of memories .*, but here a stack is needed"):
        ct.load("lan-epd", settings={"stack": {"python": {"class": f"{__name__}:Dynamic"}}})
    with pytest.raises(ct.ScenarioError, match=r"is a policy of memories .*, but here a policy of ports is needed"):
        ct.load("lan-epd", settings={"port.bottleneck.policy": {"python": {"class": f"{__name__}:Dynamic"}}})


@pytest.fixture
def short_set(monkeypatch):
    """Vets memory policies in the first tenth of each scenario, except in the nightly job."""
    if NIGHTLY:
        return
    ends = {"duration": "60ms", "measure": {"to": "13ms"}}
    scenarios = {name: {**one, **ends} for name, one in standard.MEMORIES.scenarios.items()}
    monkeypatch.setattr(standard, "MEMORIES", dataclasses.replace(standard.MEMORIES, scenarios=scenarios))


@pytest.mark.slow
@pytest.mark.nightly
def test_vetting_compares_a_memory_policy_with_published_policies_by_request_and_query_measures():
    answer = ct.vet(ct.MemoryFormula(**RANK), scenarios=["switch"], seeds=1)
    assert [check["check"] for check in answer["conformance"]] == [
        "never_above_capacity",
        "counts_equal_a_recount",
        "same_seed_same_answers",
        "admits_into_an_empty_buffer",
        "both_engines_agree",
        "every_run_ends",
        "carries_half_of_complete_sharing",
    ]
    assert all(check["holds"] for check in answer["conformance"])
    assert list(answer["beside"]) == ["longest_queue_drop", "dynamic_threshold", "abm", "occamy"]
    for other, differences in answer["differences"].items():
        for name, difference in differences.items():
            expected = answer["metrics"][name]["mean"] - answer["beside"][other][name]["mean"]
            assert difference["mean"] == pytest.approx(expected)
    assert {"short_slowdown", "switch.query_ms", "switch.query_ms_p99", "switch.timeouts"} <= set(answer["metrics"])
    assert not [name for name in answer["metrics"] if "_" in name and name.rpartition(".")[2] not in WORDS]


@pytest.mark.slow
@pytest.mark.usefixtures("short_set")
def test_vetting_detects_memory_policies_that_admit_nothing_or_are_nondeterministic():
    quick = {"scenarios": ["switch"], "against": [], "seeds": 1}

    def failed(policy) -> dict[str, str]:
        checks = ct.vet(policy, **quick)["conformance"]
        return {check["check"]: check["evidence"] for check in checks if not check["holds"]}

    with pytest.warns(ct.CelltrainWarning, match="carried nothing"):
        dead = failed({"formula": {"admit": "q_i < 0.1 * Q"}})
    assert set(dead) == {"admits_into_an_empty_buffer", "carries_half_of_complete_sharing"}
    assert "while the pool is empty: q_i < 0.1 * Q is 0 < 0" in dead["admits_into_an_empty_buffer"]
    assert {"same_seed_same_answers", "both_engines_agree"} <= set(failed(Moody()))
    with pytest.raises(ct.ScenarioError, match=r"Faulty\.on_arrival"):
        ct.vet(Faulty(fault="arrival"), **quick)


def test_the_paired_scenarios_for_vetting_memory_policies_differ_only_in_their_tcp_and_marking():
    for one, other in standard.MEMORIES.pairs:
        first, second = ({**standard.MEMORY_SCENARIOS[name], "tcp": None} for name in (one, other))
        without = [{**each, "port": {**each["port"]["default"], "marking": None}} for each in (first, second)]
        assert without[0] == without[1] and standard.tcp_of(one) != standard.tcp_of(other)


@pytest.mark.parametrize(
    "formula, kind, words",
    [
        ('admit = "q_i + 1 <= B - Q"', "memory policy", "no problems found"),
        ('admit = "X <= 0.9 * K"', "port policy", "no problems found"),
        (
            'admit = "q_i < 0.1 * Q"',
            "memory policy",
            "refuses every cell while the pool is empty: q_i < 0.1 * Q is 0 < 0",
        ),
        ('admit = "q_i + 1 <= alfa * (B - Q)"', "", "does not know alfa; choose from B, N, Q"),
        ('admit = "Y + 1 <= alfa * (K - X)"', "", "does not know alfa; choose from X, K, Y"),
        ('admit = "N > 2"\nqueue_state = 3', "", "policy.formula.queue_state"),
        ('admit = "q_i < 3 and Q < B"\nvc_state = { a = 1 }', "", "known keys: admit, constants, on_arrival"),
        ('admit = "q_i < 3"\npush_out_end = "head"', "", "policy.formula.push_out_end chooses the cell"),
    ],
)
def test_the_check_of_a_policy_file_reports_errors_in_the_formula_language_that_fits_better(
    celltrain, tmp_path, formula, kind, words
):
    path = tmp_path / "mine.toml"
    path.write_text(f"[policy.formula]\n{formula}\n")
    done = celltrain("check", str(path))
    if kind:
        assert done.code == 0 and f"the {kind} mine" in done.out
        assert words in done.out + done.err
    else:
        is_refused(done, [words])
        assert "switch" not in done.err.replace("switches", "")


def test_an_error_in_a_memory_policy_names_its_file_even_for_a_pattern_of_switches(celltrain, tmp_path):
    """Regression: the key in the fault has quotes, which the path of the key lacks."""
    path = tmp_path / "mine.toml"
    path.write_text('[policy.formula]\nadmit = "q_i < alfa"\n')
    for command in (("run",), ("compare", "--seeds", "1")):
        option = "--set" if command == ("run",) else "--vary"
        done = celltrain(command[0], "leaf-spine-web-search", *command[1:], option, f"{ALL_POOLS}=@{path}")
        is_refused(done, ["mine.toml:2: policy.formula.admit"])


def test_settings_on_the_command_line_override_the_settings_of_any_vetted_policy(celltrain, tmp_path):
    """Regression: settings of a class, or of a policy given by name, were ignored."""
    changed = standard.policy_of("fba:z=0.5", {"port.bottleneck.policy.fba.z": 0.7})
    assert changed.table == {"fba": {"z": 0.7}}
    path = tmp_path / "mine.toml"
    path.write_text('[policy.formula]\nadmit = "q_i < a * B"\nconstants.a = 0\n')
    setting = f"{ALL_POOLS}.formula.constants.a=1"
    assert "warning" in celltrain("check", str(path)).err
    assert "warning" not in celltrain("check", str(path), "--set", setting).err
    is_refused(celltrain("check", str(path), "--set", "duration=1s"), [f"paths begin with {standard.PATH}, or with"])


SHORT = ["--set", "duration=4ms", "--set", "measure.to=3ms", "--seeds", "1"]


@pytest.mark.slow
def test_the_scenarios_in_which_memory_policies_are_vetted_are_shipped(celltrain):
    """Regression: vet printed names such as switch and small-memory, which no other command knew."""
    assert set(standard.MEMORIES.scenarios) <= set(ct.scenarios())
    policies = f"{ALL_POOLS}=dynamic_threshold,longest_queue_drop"
    names = list(standard.MEMORIES.scenarios) if NIGHTLY else ["switch"]
    done = celltrain("compare", *names, *SHORT, "--vary", policies)
    assert done.code == 0 and "longest_queue_drop" in done.out
    for name in names:
        page = celltrain("explain", name).out
        assert "requests.web" in page and "99th" not in page
        # Regression: hosts also sent to host1 without end, and there were too few queries for a 99th percentile.
        result = ct.run(name, seed=1).to_dict()
        assert result["flows"] == []
        for group, row in zip(result["requests"], ("short", "queries"), strict=True):
            assert group[row]["completion_ms_p99"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["memory-dynamic-threshold", "leaf-spine-web-search"])
def test_a_switch_name_pattern_in_a_memory_setting_matches_only_switches_with_a_shared_memory(
    celltrain, tmp_path, scenario
):
    """Regression: the pattern added a memory without cells, as no switch of the scenario has this name."""
    path = tmp_path / "tight.toml"
    path.write_text('[policy.formula]\nadmit = "q_i < a * B"\nconstants.a = 0.01\n')
    short = {"duration": "20ms"} if scenario.startswith("memory") else {"duration": "4ms", "measure.to": "3ms"}
    compared = ct.compare(ct.load(scenario, settings=short), vary={ALL_POOLS: ["as-is", f"@{path}"]}, seeds=1)
    assert compared.fingerprints[0] != compared.fingerprints[1]
    path.write_text('[policy.formula]\nadmit = "q_i < alfa"\n')
    for command, option in (("run", "--set"), ("compare", "--vary")):
        done = celltrain(command, scenario, option, f"{ALL_POOLS}=@{path}")
        is_refused(done, ["tight.toml:2: policy.formula.admit"])
    small = ct.run(ct.load("memory-formula", settings={"switch.*.memory.cells": 123, "duration": "1ms"}))
    assert small.memories["cells"].to_pylist() == [123]


def test_a_setting_for_an_unknown_memory_is_refused_with_a_list_of_memories(celltrain):
    """Regression: the message said that the setting lacked the number of cells."""
    done = celltrain("run", "lan-epd", "--set", f"{ALL_POOLS}=occamy")
    is_refused(done, [f"{ALL_POOLS} is in a memory, but no ports share a memory in this scenario"])
    setting, other = f"{POOL}=occamy", "is in another memory; the memory of this scenario is switch.*.memory"
    done = celltrain("run", "switch", "--set", setting)
    is_refused(done, [f"{POOL} {other}"])
    # Regression: the message named the path twice.
    assert done.err.count(POOL) == 1
    done = celltrain("compare", "switch", "--vary", f"{setting},abm")
    is_refused(done, [f"sets {POOL}, which {other}"])


def test_a_comparison_of_memory_policies_warns_if_no_memory_refused_or_pushed_out_any_cell():
    base = ct.load("memory-formula", settings={"duration": "50ms"})
    alphas = [ct.DynamicThreshold(alpha=alpha) for alpha in (1.0, 8.0)]
    words = "the memory refused nothing and pushed nothing out in any run, so its policy had no effect"
    cells = "switch.sw.memory.cells"
    with pytest.warns(ct.CelltrainWarning, match="had no effect"):
        huge = ct.compare(base, vary={POOL: alphas, cells: [100000]}, seeds=1)
    assert any(words in one for one in huge.warnings)
    with pytest.warns(ct.CelltrainWarning, match="had no effect"):
        both = ct.compare(base, vary={POOL: alphas, cells: [200, 100000]}, seeds=1)
    [told] = [one for one in both.warnings if "pushed nothing out" in one]
    assert told.startswith(f"at {cells} = 100000 cells: {words}")
    small = ct.compare(base, vary={POOL: alphas, cells: [200]}, seeds=1)
    assert not any("pushed nothing out" in one for one in small.warnings)


def test_non_finite_results_of_memory_formulas_are_counted_in_runs_and_reported_in_comparisons(celltrain):
    """Regression: a division by zero in a formula of a memory was silent."""
    faulty, fine = (ct.MemoryFormula(admit=f"q_i + 1 <= B * (B - Q) / {by}") for by in ("Q", "max(Q, 1)"))
    base = ct.load("memory-formula", settings={"duration": "20ms"})
    for policy, is_counted in ((faulty, True), (fine, False)):
        result = ct.run(ct.load("memory-formula", settings={POOL: policy, "duration": "20ms"}))
        assert (result.memories["replaced_results"].to_pylist()[0] > 0) == is_counted
    option = f"{POOL}=formula:admit={faulty.admit}"
    assert (
        "formula results replaced" in celltrain("run", "memory-formula", "--set", "duration=20ms", "--set", option).out
    )
    with pytest.warns(ct.CelltrainWarning, match="of its formulas had to be replaced"):
        compared = ct.compare(base, vary={POOL: [faulty, fine]}, seeds=1)
    assert sum("had to be replaced" in one for one in compared.warnings) == 1


def test_the_unit_of_a_state_variable_is_inferred_from_the_memory_formula_that_updates_it():
    """Regression: the unit of high was inferred before the unit of average."""
    policy = ct.MemoryFormula(
        admit="q_i + 1 <= (high - (high - low) * average / B) * (B - Q)",
        constants={"high": 2, "low": 0.5, "tau": "50 us"},
        state={"average": 0, "last": 0},
        on_arrival={"average": "average + (1 - exp(-(now - last) / tau)) * (Q - average)", "last": "now"},
    )
    assert fingerprint(policy) == fingerprint(policy, "reference")


def test_series_events_and_pauses_under_a_memory_formula_show_the_thresholds_of_the_native_policy(
    tmp_path,
):
    """Regression: the thresholds were missing, and groups ended their pauses only when they were empty."""
    dynamic, formula = ct.DynamicThreshold(alpha=2.0), ct.MemoryFormula(admit="q_i + 1 <= 2 * (B - Q)")

    def thresholds(policy) -> list[list[float | None]]:
        scenario = ct.load("memory-formula", settings={POOL: policy, "duration": "20ms"})
        events = ct.Events(tmp_path / str(len(list(tmp_path.iterdir()))), kinds=["memories"])
        result = ct.run(scenario, trace=["memory"], step="1ms", events=events)
        columns = result.series["memory"]["memory_threshold_cells"], result.events["memories"]["threshold"]
        return [column.to_pylist() for column in columns]

    native = thresholds(dynamic)
    assert thresholds(formula) == native and all(any(column) for column in native)
    assert all(set(column) == {None} for column in thresholds(ct.MemoryFormula(**RANK)))
    path = "switch.sw.memory.pool.lossless.policy"
    runs = [
        ct.run(ct.load("memory-lossless", settings={path: policy, "duration": "50ms"})) for policy in (dynamic, formula)
    ]
    assert runs[0].fingerprint == runs[1].fingerprint and sum(runs[0].queues["pauses"].to_pylist()) > 0


def test_memory_policies_written_as_formulas_or_classes_can_read_the_cell_size():
    for size, cells in (("53B", 20), ("106B", 10)):
        own = {"cell.size": size, "framing": "aal5"}
        formula = ct.MemoryFormula(admit="(q_i + 1) * cell_size <= 1060 bytes")
        fixed = ct.MemoryFormula(admit=f"q_i < {cells}")
        assert len({fingerprint(policy, **own) for policy in (formula, InBytes(), fixed)}) == 1


@pytest.mark.parametrize("policy", ["dynamic_threshold", "abm", "abm_occamy", "occamy"])
def test_an_alpha_of_zero_is_refused_both_by_the_scenario_parser_and_by_the_schema(policy, celltrain):
    """Regression: the range was 0 or more, although zero admits nothing."""
    done = celltrain("run", "memory-formula", "--set", f"{POOL}={policy}:alpha=0")
    is_refused(done, ["alpha = 0", "above 0"])
    rows = [line for line in celltrain("explain", policy).out.splitlines() if re.match(r"\W*alpha\b", line)]
    assert any("above 0" in row for row in rows) and not any("0 or more" in row for row in rows)
    assert ct.run(ct.load("memory-formula", settings={POOL: f"{policy}:alpha=0.01", "duration": "1ms"}))


@pytest.mark.slow
@pytest.mark.usefixtures("short_set")
def test_a_policy_valid_for_ports_and_for_memories_is_vetted_as_the_chosen_scenarios_require(celltrain, tmp_path):
    path = tmp_path / "all.toml"
    path.write_text('[policy.formula]\nadmit = "true"\n')
    told = celltrain("check", path)
    assert told.code == 0 and "the policy all; no problems found; valid for ports and memories" in told.out
    quick = {"against": [], "seeds": 1}
    assert "switch.timeouts" in ct.vet(path, scenarios=["switch"], **quick)["metrics"]
    assert "lan-5.efficiency" in ct.vet(path, scenarios=["lan-5"], **quick)["metrics"]
    assert not standard.fits_both(standard.policy_of({"formula": {"admit": "X <= 0.9 * K"}}))


def both(tmp_path, port: str = "epd = { threshold = 60 }") -> Path:
    """Writes a scenario with policies of ports and of memories."""
    text = (ROOT / "scenarios/switch.toml").read_text(encoding="utf-8")
    assert "policy.tail_drop = {}" in text
    own = f"{text.replace('policy.tail_drop = {}', f'policy.{port}')}\n"
    path = tmp_path / "both.toml"
    path.write_text(own.replace("alpha = 1.0", "alpha = 1.5"))
    return path


def test_an_option_selects_the_vetted_policy_if_both_the_port_and_the_memory_have_policies(
    tmp_path,
):
    """Regression: the policy of the ports was vetted even if the scenarios named memories."""
    path, memory = both(tmp_path), {"dynamic_threshold": {"alpha": 1.5}}
    for scenarios, table, standard_set in (
        (None, {"epd": {"threshold": 60}}, standard.PORTS),
        (["lan-5"], {"epd": {"threshold": 60}}, standard.PORTS),
        (["switch", "leaf-spine"], memory, standard.MEMORIES),
    ):
        policy = standard.policy_of(path, scenarios=scenarios)
        assert policy.table == table and standard.standard_of(policy, scenarios) is standard_set
    assert policy.note == f"dynamic_threshold is the policy of the memories in {path}, not that of its ports (epd)"
    # Ports that share a memory have tail drop in this scenario.
    plain = standard.policy_of(both(tmp_path, "tail_drop = {}"))
    assert plain.table == memory and standard.standard_of(plain) is standard.MEMORIES
    loaded = ct.load("switch", settings={ALL_POOLS: f"@{both(tmp_path)}"}).to_dict()
    assert loaded["switch"]["*"]["memory"]["pool"]["main"]["policy"]["dynamic_threshold"]["alpha"] == 1.5


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.usefixtures("short_set")
def test_vetting_states_which_policy_of_a_scenario_is_tested_and_how_to_test_the_other(celltrain, tmp_path):
    path = both(tmp_path)
    done = celltrain("vet", path, "--scenarios", "lan-5", "--seeds", "1", "--against", "epd", "--brief")
    words = f"epd is the policy of the ports in {path}, not that of its memories (dynamic_threshold)"
    assert done.out.startswith(f"{words}; to vet the other one: --scenarios switch\n")
    done = celltrain("vet", path, "--scenarios", "switch", "--seeds", "1", "--against", "abm", "--brief")
    words = f"dynamic_threshold is the policy of the memories in {path}, not that of its ports (epd)"
    assert done.out.startswith(f"{words}; to vet the other one: --scenarios lan-5\n")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.usefixtures("short_set")
def test_vetting_can_compare_a_memory_policy_with_configured_policies_and_with_policy_classes():
    beside = ["dynamic_threshold:alpha=2", f"{__name__}:Dynamic", "dynamic_threshold"]
    answer = ct.vet(ct.DynamicThreshold(alpha=2.0), scenarios=["switch"], against=beside, seeds=1)
    assert list(answer["beside"]) == ["dynamic_threshold:alpha=2", "Dynamic", "dynamic_threshold"]
    assert answer["beside"]["dynamic_threshold:alpha=2"] == answer["metrics"]
    assert answer["beside"]["Dynamic"] == answer["beside"]["dynamic_threshold"] != answer["metrics"]
    assert answer["settings"]["dynamic_threshold"] == "dynamic_threshold (alpha = 1)"
    assert answer["metrics"]["switch.short_slowdown"]["mean"] > 0
    for wrong, words in {
        "dynamic_treshold": "is unknown; did you mean dynamic_threshold?",
        "dynamic_threshold:alpha=-1": "alpha = -1",
        "dynamic_threshold:alpah=1": "did you mean alpha?",
    }.items():
        with pytest.raises(ct.InputError, match=re.escape(words)):
            ct.vet(ct.LongestQueueDrop(), scenarios=["switch"], against=[wrong], seeds=1)


class Wrong(ct.PythonMemoryPolicy):
    """Makes a mistake, chosen by a setting, that appears only when a method is called."""

    mistake = "none"

    def admit(self, view, queue):
        return {"type": view.free, "never": False}.get(self.mistake, True) if self.mistake != "name" else view.qi < 9


class TooFew(ct.PythonMemoryPolicy):
    def admit(self, view):
        return True


@pytest.mark.slow
def test_the_check_command_tests_a_memory_policy_class_in_the_beginning_of_a_run(celltrain, monkeypatch):
    monkeypatch.setenv("CELLTRAIN_POLICIES", __name__)
    setting = f"{ALL_POOLS}.python.settings.mistake"
    for mistake, words in {"type": "admit returned", "name": "has no attribute 'qi'"}.items():
        done = celltrain("check", f"{__name__}:Wrong", "--set", f"{setting}={mistake}")
        assert done.code == 2 and words in done.err
    done = celltrain("check", f"{__name__}:TooFew")
    assert done.code == 2 and "TypeError" in done.err
    never = celltrain("check", f"{__name__}:Wrong", "--set", f"{setting}=never")
    assert never.code == 0 and "refuses every cell, also while the pool is empty" in never.err
    fine = celltrain("check", f"{__name__}:Wrong")
    assert fine.code == 0 and "the memory policy Wrong; no problems found" in fine.out


@pytest.mark.parametrize("scenario, switch", [("memory-formula", "sw"), ("switch", "*")])
def test_a_run_warns_about_a_memory_policy_class_that_admits_no_cells(scenario, switch):
    """Regression: there was no warning, and only the measures were empty."""
    quick = {"duration": "3ms", **({"measure": {}, "until": "duration"} if scenario == "switch" else {})}

    def warned(policy) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ct.run(ct.load(scenario, settings={f"switch.{switch}.memory.pool.main.policy": policy, **quick}))
        return [str(one.message) for one in caught if "refuses every cell" in str(one.message)]

    [dead] = warned(Wrong(mistake="never"))
    assert re.fullmatch(r"Wrong refuses every cell, also while the pool is empty: no cell entered sw\w*/main", dead)
    assert not warned(Wrong())


def names(page: str) -> set[str]:
    """Returns the names in the first columns of the tables of a page."""
    return set(re.findall(r"^\| `(\w+)`", (Path(ROOT) / page).read_text(encoding="utf-8"), re.MULTILINE))


def test_names_that_identify_a_port_formula_are_invalid_in_memory_formulas_and_vice_versa():
    port, memory = standard._OWN_WORDS["port"], standard._OWN_WORDS["memory"]
    assert not port & memory
    keys = {
        kind: {field.validation_alias or name for name, field in cls.model_fields.items()}
        for kind, cls in (("port", ct.Formula), ("memory", ct.MemoryFormula))
    }
    for own, other, kind, page in (
        (port, memory, "port", "docs/models/formula.md"),
        (memory, port, "memory", "docs/models/memory_formula.md"),
    ):
        known = names(page) | keys[kind] | ({"random"} if kind == "port" else set())
        assert own <= known
        assert not other & known
