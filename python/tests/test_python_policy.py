"""Policies as Python classes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap

import pytest
from conftest import WITHOUT_POLICY

import celltrain as ct

FBA = ct.Formula(admit="X <= R or Y * N / X <= Z * (K - R) / (X - R)", constants={"R": "0.9 * K", "Z": 0.8})


class Fba(ct.PythonPolicy):
    r = 0.9
    z = 0.8

    def admit(self, view, vc):
        r = self.r * view.K
        return r >= view.X or self.z * (view.K - r) / (view.X - r) >= view.Y * view.N / view.X


class Average(ct.PythonPolicy):
    def start(self, port):
        self.average = 0.0
        self.names = port.vcs

    def admit(self, view, vc):
        self.average += 0.01 * (view.X - self.average)
        assert view.counts[vc] == view.Y
        assert len(self.names) == view.V == len(view.counts)
        return self.average <= 0.3 * view.K or view.random() < 0.9


class Raises(ct.PythonPolicy):
    def admit(self, view, vc):
        return 1 / (view.X < 50) > 0


class ReturnsNone(ct.PythonPolicy):
    def admit(self, view, vc):
        return True if view.X < 50 else None


class Moody(ct.PythonPolicy):
    asked = 0

    def admit(self, view, vc):
        Moody.asked += 1
        return Moody.asked % 5 > 0


def lan(policy, **changes) -> ct.Scenario:
    return ct.n_source(
        **{"sources": 5, "link_delay": "5us", "buffer_cells": 300, "policy": policy, "duration": "200ms", **changes}
    )


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize(
    "policy, formula",
    [
        (Fba(), FBA),
        (
            Average(),
            ct.Formula(
                admit="average <= 0.3 * K or random() < 0.9",
                state={"average": 0},
                on_frame={"average": "average + 0.01 * (X - average)"},
            ),
        ),
    ],
)
def test_a_policy_class_gives_the_same_run_as_the_equivalent_formula_on_both_engines(policy, formula, engine):
    ours = ct.run(lan(policy), seed=3, engine=engine)
    assert ours.fingerprint == ct.run(lan(formula), seed=3).fingerprint
    assert sum(ours.ports["discarded_frames"].to_pylist()) > 0


@pytest.mark.parametrize(
    "policy, words",
    [
        (Raises(), ["Raises.admit(view, ", " for tcp", " at sw1->sw2, 0.0", "ZeroDivisionError: division by zero"]),
        (ReturnsNone(), ["ReturnsNone.admit(view, ", "admit returned NoneType, but must return True or False"]),
    ],
)
@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_an_exception_in_a_policy_class_ends_the_run_with_the_call_and_the_traceback(policy, words, engine):
    with pytest.raises(ct.ScenarioError) as raised:
        ct.run(lan(policy), engine=engine)
    [fault] = raised.value.faults
    for word in words:
        assert word in fault.message
    # The time has at most nine decimals (nanoseconds), and no word is repeated.
    assert re.search(r", 0\.\d{1,9} s: ", fault.message)
    assert str(raised.value).count(words[-1]) == 1
    if isinstance(policy, Raises):
        assert fault.excerpt[0].startswith("Traceback")
        assert any("return 1 / (view.X < 50)" in line for line in fault.excerpt)
    # The exception does not affect the next run on the same thread.
    ct.run(lan(Fba()))


def test_the_error_for_an_exception_in_a_policy_class_names_the_scenario_file(tmp_path, celltrain):
    path = tmp_path / "mine.toml"
    path.write_text(f'{WITHOUT_POLICY}policy.python.class = "{__name__}:Raises"\n')
    told = celltrain("run", path)
    assert told.code == 2
    [line] = [line for line in told.err.splitlines() if "Raises.admit(" in line and "Traceback" not in line]
    assert "mine.toml: " in line and " at sw1->sw2, " in line


def test_settings_of_a_policy_class_can_be_plan_axes_and_an_exception_fails_only_one_row(tmp_path):
    class Some(ct.PythonPolicy):
        z = 1.0

        def admit(self, view, vc):
            return 200 / self.z >= view.X

    store = ct.sweep(lan(Some()), over={"port.bottleneck.policy.python.settings.z": [0.0, 1.0, 2.0]}, seeds=1)
    errors = store.wide(measures=["efficiency"])["error"].to_pylist()
    assert "ZeroDivisionError" in errors[0]
    assert errors[1:] == [None, None]


@pytest.mark.filterwarnings("ignore:.*give the same runs")
def test_python_functions_accept_a_policy_object_wherever_they_accept_a_policy_name(tmp_path):
    compared = ct.compare(lan(FBA), vary={"port.bottleneck.policy": [FBA, Fba(), Fba(z=0.5)]}, seeds=2)
    assert (compared.fingerprints[0] == compared.fingerprints[1]).all()
    assert (compared.fingerprints[0] != compared.fingerprints[2]).any()
    ct.save(lan(Fba(z=0.5)), tmp_path / "mine.toml")
    again = ct.load(tmp_path / "mine.toml")
    assert ct.run(again).fingerprint == ct.run(lan(Fba(z=0.5))).fingerprint


def test_vetting_detects_a_nondeterministic_policy_class():
    answer = ct.vet(Moody(), scenarios=["lan-5"], against=[], seeds=1)
    assert answer["policy"] == "Moody"
    bad = {check["check"] for check in answer["conformance"] if not check["holds"]}
    assert "same_seed_same_answers" in bad
    with pytest.raises(ct.ScenarioError, match="ZeroDivisionError"):
        ct.vet(Raises(), scenarios=["lan-5"], against=[], seeds=1)


def test_errors_in_the_definition_of_a_policy_class_are_reported():
    class Empty(ct.PythonPolicy):
        pass

    with pytest.raises(ct.ScenarioError, match="zz = 3 is not a setting; did you mean z"):
        Fba(zz=3)
    with pytest.raises(ct.ScenarioError, match="is not a number, a string, True or False"):
        Fba(z=[])
    for policy, words in [
        (Empty(), "has no admit(self, view, vc)"),
        (ct.Python(class_="Mine"), "write its module, a colon and its name"),
        (ct.Python(class_="no_such_module:Mine"), "scenarios never load code"),
        (ct.Python(class_=f"{__name__}:Nobody"), "is not a class of"),
        (ct.Python(class_=f"{__name__}:lan"), "is not a subclass of celltrain.PythonPolicy"),
        (ct.Python(class_=f"{__name__}:Fba", settings={"zz": 3}), "is not a setting; did you mean z"),
    ]:
        [fault] = ct.check(lan(policy))
        assert words in fault.message, fault.message


class Losing(Fba):
    when_full = "lose_cell"


def test_a_policy_class_named_in_a_scenario_sets_the_action_on_buffer_overflow():
    """Regression: a scenario that names the class ignored its setting."""
    called = f"{__name__}:Losing"
    named = ct.Python(class_=called)
    assert ct.run(lan(named)).fingerprint == ct.run(lan(Losing())).fingerprint != ct.run(lan(Fba())).fingerprint
    # The table's setting takes precedence over the class, and so does a constructor argument.
    rest = "lose_rest_of_frame"
    said = ct.Python(class_=called, when_full=rest)
    assert (
        ct.run(lan(said)).fingerprint
        == ct.run(lan(Fba())).fingerprint
        == ct.run(lan(Losing(when_full=rest))).fingerprint
    )


class Nonsense(Fba):
    when_full = "lose_all"


def test_a_policy_class_with_an_invalid_action_on_buffer_overflow_is_refused():
    with pytest.raises(
        ct.ScenarioError, match=r"when_full = 'lose_cel' is not an action for a full buffer; did you mean lose_cell"
    ):
        Fba(when_full="lose_cel")
    with pytest.raises(ct.InputError, match="when_full"):
        lan(Nonsense())
    for policy, words in [
        (
            ct.Python(class_=f"{__name__}:Fba", settings={"when_full": "lose_cell"}),
            "write it into the table, next to class",
        ),
        (ct.Python(class_=f"{__name__}:Nonsense"), "has when_full = 'lose_all', which is not an action"),
    ]:
        [fault] = ct.check(lan(policy))
        assert words in fault.message, fault.message


@pytest.mark.slow
def test_a_python_policy_module_is_imported_only_if_the_user_names_it(tmp_path):
    (tmp_path / "elsewhere_mine.py").write_text(
        textwrap.dedent("""
            import celltrain as ct

            class Half(ct.PythonPolicy):
                share = 0.5
                def admit(self, view, vc):
                    return view.X <= self.share * view.K
        """)
    )
    (tmp_path / "mine.toml").write_text(
        'duration = "20ms"\n[topology.n_source]\nsources = 2\nlink_delay = "5us"\n'
        '[port.bottleneck]\nbuffer = 300\n[port.bottleneck.policy.python]\nclass = "elsewhere_mine:Half"\n'
    )
    program = [sys.executable, "-m", "celltrain", "run", str(tmp_path / "mine.toml"), "--json"]
    # Run in another folder, because modules in the current folder would be found too.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def run(**variables):
        # Keep the paths from which this test imports celltrain.
        found = [path for path in (variables.pop("path", str(tmp_path)), os.environ.get("PYTHONPATH")) if path]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(found), **variables}
        return subprocess.run(program, cwd=elsewhere, env=environment, capture_output=True, text=True)

    refused = run()
    assert refused.returncode == 2
    assert "scenarios never load code" in refused.stdout + refused.stderr
    done = run(CELLTRAIN_POLICIES="other, elsewhere_mine")
    assert done.returncode == 0, done.stderr
    missing = run(CELLTRAIN_POLICIES="elsewhere_mine", path="")
    assert missing.returncode == 2
    assert "which this Python cannot import" in missing.stdout + missing.stderr


def test_a_worker_process_imports_the_policy_modules_named_in_its_task(monkeypatch):
    from celltrain import _core
    from celltrain.ensemble.plan import canonical
    from celltrain.model.python_classes import modules_of
    from celltrain.running import Chunk, Run

    text = canonical(lan(Fba()).to_dict())
    runs = (Run(point=0, case=_core.Case(text, text), seed=1, key="a"),)
    chunk = Chunk(runs=runs, measures=("efficiency",), limit_s=None, recording=None)
    assert chunk.modules == (__name__,) == modules_of([text])
