"""Public functions, classes and methods raise our own errors or return a result if arguments are invalid."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import json
import pickle
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from conftest import SMALL, import_or_skip

import celltrain as ct
import celltrain.ensemble.plan
import celltrain.ensemble.store
import celltrain.ensemble.tuning
import celltrain.models
import celltrain.papers
from celltrain.errors import CelltrainError
from celltrain.model.arguments import SHARED, names

VALUES: dict[str, Any] = {
    "None": None,
    "True": True,
    "-1": -1,
    "0": 0,
    "0.5": 0.5,
    "nan": float("nan"),
    "empty": "",
    "text": "no such thing",
    "bytes": b"\xff\x00",
    "[]": [],
    "{}": {},
    "{1: 2}": {1: 2},
    "list of None": [None],
    "list of texts": ["", "no such thing"],
    "path": Path("nowhere/at/all"),
}


TUNE = """scenario = "lan-selective-drop"
[tune.parameters]
Z = { path = "port.bottleneck.policy.selective_drop.z", from = 0.5, to = 1.5 }
[tune.objectives]
efficiency = "maximize"
fairness = "maximize"
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """A folder that calls can write to."""
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("file").write_text("no scenario")
    Path("small.toml").write_text(SMALL)
    Path("policy.toml").write_text('policy.formula = { admit = "X < 9" }')
    Path("plan.toml").write_text('scenario = "lan-selective-drop"\nseeds = 1\n')
    Path("tune.toml").write_text(TUNE)
    nodes, link = [{"id": "a"}, {"id": "b"}], {"source": "a", "target": "b"}
    Path("net.json").write_text(json.dumps({"nodes": nodes, "links": [link]}))


@pytest.fixture(scope="module")
def lan() -> ct.Scenario:
    return ct.n_source(sources=2, link_delay="5us", buffer_cells=50, policy=ct.TailDrop(), duration="1ms")


@pytest.fixture(scope="module")
def store(lan, tmp_path_factory) -> ct.Store:
    folder = tmp_path_factory.mktemp("stores") / "store"
    return ct.sweep(lan, over={"port.bottleneck.buffer": [50, 60]}, seeds=2, store=folder)


def calls(lan: ct.Scenario, store: ct.Store) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Returns the callables with valid arguments, which the tests replace one at a time."""
    result = ct.run(lan, trace=["queue", "cwnd"])
    settling = ct.run(lan, trace=["delivered"], step="5us")
    if not Path("events").exists():
        ct.run(lan, events="events")
    log = ct.read_events("events")
    report = ct.report(store, measures=["efficiency"])
    compared = ct.compare(lan, seeds=2, measures=["efficiency", "fairness"])
    of_compare: dict[str, Any] = {
        "scenario": lan,
        "names": ["small", "large"],
        "vary": {"port.bottleneck.buffer": [50, 60]},
        "seeds": 1,
        "first_seed": 1,
        "measures": ["efficiency"],
        "limit": "60s",
        "jobs": 1,
        "worker": None,
        "progress": None,
        "cancel": None,
    }
    plan = store.plan
    quick: dict[str, Any] = {"tables": ["ratios"], "seeds": 1, "overrides": {"duration": "100ms"}}
    epd = {"path": "port.bottleneck.policy.epd.threshold", "from": 10, "to": 40}
    of_epd = ct.n_source(sources=2, link_delay="5us", buffer_cells=50, policy=ct.Epd(threshold=20), duration="1ms")
    tuned = {
        "base": of_epd,
        "parameters": {"K": epd},
        "trials": 2,
        "batch": 1,
        "finalists": 1,
        "seeds": {"search": 1, "selection": 2, "confirmation": 2},
    }
    document = {
        "scenario": lan.to_dict(),
        "axes": {"b": {"path": "port.bottleneck.buffer", "values": [50]}},
        "seeds": 1,
    }
    return {
        "run": (ct.run, {"scenario": lan}),
        "check": (ct.check, {"scenario": lan}),
        "load": (ct.load, {"path": "small.toml"}),
        "Cancel": (ct.Cancel, {}),
        "Capture": (ct.Capture, {"path": "run.pcapng", "kind": "cells", "window": "0ms:1ms"}),
        "Events": (ct.Events, {"folder": "events", "kinds": ["segments"], "window": "0ms:1ms"}),
        "n_source": (ct.n_source, {"sources": 1, "link_delay": "5us", "buffer_cells": 9, "policy": ct.TailDrop()}),
        "save": (ct.save, {"scenario": lan, "path": "out.toml"}),
        "draw": (ct.draw, {"scenario": lan}),
        "max_min_shares": (ct.max_min_shares, {"scenario": lan}),
        "import_graph": (ct.import_graph, {"path": "net.json", "flows": 1, "delay": "1ms"}),
        "reproduce": (
            ct.reproduce,
            {"paper_id": "af-97-0831", "tables": [2], "seeds": 1, "overrides": {"duration": "1ms"}},
        ),
        "study": (ct.study, {"study_id": "different-rtts", **quick}),
        "sweep": (ct.sweep, {"base": lan, "over": {"port.bottleneck.buffer": [50]}, "seeds": 1}),
        "tune": (ct.tune, tuned),
        "bound": (ct.bound, {"scenario": lan, "path": "port.bottleneck.buffer", "high": 100}),
        "compare": (lambda scenario, **options: ct.compare(scenario, **options), of_compare),
        "Compared.to_dict": (compared.to_dict, {}),
        "Compared.write": (compared.write, {"folder": "compared"}),
        "Compared.plot": (compared.plot, {"file": "x.svg", "measures": ["fairness"], "width": "page", "style": None}),
        "bottleneck": (
            ct.bottleneck,
            {"cases": ["ramp-up"], "senders": ["reno"], "seeds": 1, "first_seed": 1, "jobs": 1},
        ),
        "vet": (ct.vet, {"policy": ct.TailDrop(), "scenarios": ["lan-5"], "against": [], "seeds": 1, "first_seed": 1}),
        "Policy": (ct.Policy, {"name": "mine", "table": {"tail_drop": {}}}),
        "Policy.read": (ct.Policy.read, {"path": "policy.toml"}),
        "PythonPolicy": (ct.PythonPolicy, {"when_full": "lose_cell"}),
        "PythonMemoryPolicy": (ct.PythonMemoryPolicy, {}),
        "PolicyPort": (ct.PolicyPort, {"capacity": 9, "cells_per_second": 1.0, "vcs": ("tcp1",)}),
        "Stack": (ct.Stack, {}),
        "StackEnd": (
            ct.StackEnd,
            {
                "flow": "tcp1",
                "side": "sender",
                "local": b"\x0a\0\0\1",
                "remote": b"\x0a\0\0\2",
                "seed": 1,
                "file_bytes": None,
            },
        ),
        "report": (ct.report, {"store": store}),
        "Store.open": (ct.Store.open, {"path": store.path}),
        "Store.create": (ct.Store.create, {"path": "new", "plan": plan}),
        "Store.resume": (ct.Store.resume, {"path": store.path, "plan": plan}),
        "Store.table": (store.table, {"measures": ["efficiency"]}),
        "Store.wide": (store.wide, {"measures": ["efficiency"]}),
        "Store.summary": (store.summary, {"measures": ["efficiency"]}),
        "Store.missing": (store.missing, {"runs": 1}),
        "Store.write": (store.write, {"rows": [], "repeats": []}),
        "Store.series": (store.series, {"run_key": "0" * 24}),
        "Report.write": (report.write, {"folder": "page"}),
        "RunResult.write": (result.write, {"folder": "run"}),
        "RunResult.series": (lambda name: result.series[name], {"name": "queue"}),
        "RunResult.steady": (settling.steady, {"flow": "tcp1"}),
        "RunResult.plot.queue": (result.plot.queue, {}),
        "RunResult.plot.cwnd": (result.plot.cwnd, {}),
        "read_events": (ct.read_events, {"folder": "events"}),
        "EventLog": (lambda kind: log[kind], {"kind": "segments"}),
        "EventLog.plot.sequence": (log.plot.sequence, {"flow": "tcp1"}),
        "EventLog.plot.anatomy": (log.plot.anatomy, {}),
        "EventLog.plot.ladder": (log.plot.ladder, {"flow": "tcp1"}),
        "EventLog.plot.write": (log.plot.write, {"kind": "anatomy", "path": "anatomy.svg"}),
        "episodes": (ct.episodes, {"scenario": lan, "flow": "tcp1"}),
        "scenarios": (ct.scenarios, {}),
        "why": (ct.why, {"scenario": lan, "flow": "tcp1", "at": "1ms"}),
        "Plan.load": (celltrain.ensemble.plan.Plan.load, {"path": "plan.toml"}),
        "Plan.of": (celltrain.ensemble.plan.Plan.of, {"base": lan, "document": {"seeds": 1}}),
        "Plan.of_toml": (celltrain.ensemble.plan.Plan.of_toml, {"text": 'scenario = "lan-epd"\nseeds = 1'}),
        "Plan.of_document": (celltrain.ensemble.plan.Plan.of_document, {"document": document}),
        "TunePlan.load": (celltrain.ensemble.tuning.TunePlan.load, {"path": "tune.toml"}),
        "TunePlan.of": (
            celltrain.ensemble.tuning.TunePlan.of,
            {
                "base": of_epd,
                "document": {
                    "tune": {"parameters": {"K": epd}, "objectives": {"efficiency": "maximize", "fairness": "maximize"}}
                },
            },
        ),
        "TunePlan.of_toml": (celltrain.ensemble.tuning.TunePlan.of_toml, {"text": TUNE}),
        "TunePlan.of_document": (
            celltrain.ensemble.tuning.TunePlan.of_document,
            {"document": celltrain.ensemble.tuning.TunePlan.of_toml(TUNE).document},
        ),
        "canonical": (celltrain.ensemble.plan.canonical, {"scenario": lan.to_dict()}),
        "run_key": (celltrain.ensemble.plan.run_key, {"configuration": "{}", "seed": 1}),
        "follow": (celltrain.ensemble.plan.follow, {"path": "port.bottleneck.buffer"}),
        "measured": (celltrain.ensemble.store.measured, {"text": "efficiency"}),
        "InputError": (ct.InputError, {"faults": []}),
        "Fault.of_file": (ct.Fault.of_file, {"file": "f", "problem": "p"}),
        "Fault.of_option": (ct.Fault.of_option, {"option": "o", "value": 1, "problem": "p"}),
    }


# Calls that run many scenarios or draw figures take tenths of a second: use a few random values per argument.
SLOW = {
    "reproduce",
    "study",
    "sweep",
    "tune",
    "report",
    "compare",
    "vet",
    "bottleneck",
    "Compared.plot",
    "Report.write",
    "draw",
    "RunResult.plot.queue",
    "RunResult.plot.cwnd",
    "EventLog.plot.sequence",
    "EventLog.plot.anatomy",
    "EventLog.plot.ladder",
    "EventLog.plot.write",
    "why",
}
SOME = 9
# Without a valid value for these arguments, a call would run all tables, which takes minutes.
LONG = {(name, argument) for name in ("reproduce", "study") for argument in ("tables", "overrides")}


def arguments(function: Callable[..., Any], right: dict[str, Any]) -> list[str]:
    own = [name for name, one in inspect.signature(function).parameters.items() if one.kind != one.VAR_KEYWORD]
    shared = names(function) if isinstance(function, FunctionType) else []
    return [name for name in dict.fromkeys([*own, *shared, *right]) if name != SHARED]


def wrong(name: str, argument: str) -> Iterator[tuple[str, Any]]:
    known = {**VALUES, "folder": "folder", "file": "file"}
    chosen = list(known)
    if name in SLOW:
        chosen = random.Random(f"{name}/{argument}").sample(chosen, 4 if name == "tune" else SOME)
    return ((label, known[label]) for label in chosen)


def test_every_public_function_is_in_the_table_of_calls_with_invalid_arguments(lan, store):
    assert set(NAMES) == set(calls(lan, store))
    called = {name.partition(".")[0] for name in NAMES}
    models = set(celltrain.models.__all__)
    errors = {name for name in ct.__all__ if name.endswith(("Error", "Warning", "Options"))}
    # Result classes, which users do not create.
    answers = {"Compared", "Episodes", "Report", "RunResult", "Store", "Tuned", "Fault", "Why"}
    assert set(ct.__all__) - models - errors - answers <= called


NAMES = [
    "bound",
    "episodes",
    "scenarios",
    "run",
    "check",
    "load",
    "Cancel",
    "Capture",
    "Events",
    "n_source",
    "save",
    "draw",
    "max_min_shares",
    "import_graph",
    "reproduce",
    "study",
    "sweep",
    "tune",
    "bound",
    "compare",
    "vet",
    "bottleneck",
    "Policy",
    "Policy.read",
    "PythonPolicy",
    "PythonMemoryPolicy",
    "PolicyPort",
    "Stack",
    "StackEnd",
    "Compared.to_dict",
    "Compared.write",
    "Compared.plot",
    "report",
    "Store.open",
    "Store.create",
    "Store.resume",
    "Store.table",
    "Store.wide",
    "Store.summary",
    "Store.missing",
    "Store.write",
    "Store.series",
    "Report.write",
    "RunResult.write",
    "RunResult.series",
    "RunResult.steady",
    "RunResult.plot.queue",
    "RunResult.plot.cwnd",
    "read_events",
    "EventLog",
    "EventLog.plot.sequence",
    "EventLog.plot.anatomy",
    "EventLog.plot.ladder",
    "EventLog.plot.write",
    "why",
    "Plan.load",
    "Plan.of",
    "Plan.of_toml",
    "Plan.of_document",
    "TunePlan.load",
    "TunePlan.of",
    "TunePlan.of_toml",
    "TunePlan.of_document",
    "canonical",
    "run_key",
    "follow",
    "measured",
    "InputError",
    "Fault.of_file",
    "Fault.of_option",
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", NAMES)
def test_calls_with_invalid_arguments_raise_exceptions_of_the_package(name, lan, store):
    for extra in ("matplotlib", "networkx", "jinja2"):
        pytest.importorskip(extra)
    if "tune" in name.lower():
        import_or_skip("optuna")
    function, right = calls(lan, store)[name]
    if name == "Store.series":
        with pytest.raises(ct.StoreError, match="the plan has no"):
            function(**right)
    else:
        function(**right)
    raw = []
    for argument in arguments(function, right):
        for label, value in wrong(name, argument):
            if (name, argument) in LONG and label in {"None", "{}"}:
                continue
            given = {**right, argument: value}
            args = [given.pop(one) for one in _positional(function) if one in given]
            try:
                with no_longer_than(20):
                    function(*args, **given)
            except CelltrainError as error:
                assert str(error), (name, argument, label)
                assert len(str(error)) < 20_000, (name, argument, label)
            except (Exception, TookTooLongError) as error:
                raw.append(f"{argument} = {label}: {type(error).__name__}: {str(error)[:200]}")
            finally:
                _close_figures()
    assert not raw, "\n".join(raw)


class TookTooLongError(BaseException):
    """Raised if a call neither returns nor refuses its input within the time limit."""


@contextmanager
def no_longer_than(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TookTooLongError(seconds)

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _positional(function: Callable[..., Any]) -> list[str]:
    return [name for name, one in inspect.signature(function).parameters.items() if one.kind == one.POSITIONAL_ONLY]


def _close_figures() -> None:
    from matplotlib import pyplot

    pyplot.close("all")


def models() -> list[type[Any]]:
    from celltrain.model import types as models

    return [
        one for name in models.__all__ if inspect.isclass(one := getattr(models, name)) and hasattr(one, "model_fields")
    ]


@pytest.mark.slow
@pytest.mark.sampled(10)
@pytest.mark.parametrize("model", models(), ids=lambda model: model.__name__)
def test_settings_of_the_wrong_type_raise_an_exception_of_the_package(model):
    for field, (label, value) in itertools.product(model.model_fields, VALUES.items()):
        try:
            model(**{field: value})
        except ct.ScenarioError as error:
            assert all(fault.message for fault in error.faults), (field, label)
            assert len(str(error)) < 5000, (field, label)
    for value in VALUES.values():
        for read in (model.model_validate, model.model_validate_json):
            try:
                read(value)
            except ct.ScenarioError as error:
                assert str(error)


def test_the_error_for_a_value_of_the_wrong_type_names_the_required_type():
    with pytest.raises(ct.ScenarioError) as refused:
        ct.run(b"x", seed="one", trace=[1], progress=5)
    assert str(refused.value).splitlines() == [
        "scenario = b'x' is not a Scenario or a path",
        "seed = 'one' is not a whole number or None",
        "trace = [1] is not a text or a list, each item a text",
        "progress = 5 is not a function or None",
    ]


def test_keyword_options_shared_by_several_functions_are_checked(lan):
    with pytest.raises(ct.InputError, match=r"^jobs = 'all' is not a whole number or None$"):
        ct.compare(lan, seeds=1, jobs="all")
    with pytest.raises(TypeError, match="unexpected keyword argument 'sed'"):
        ct.compare(lan, sed=1)


def test_a_wrong_number_of_arguments_or_an_unknown_option_raises_pythons_typeerror():
    with pytest.raises(TypeError, match="unexpected keyword argument 'sed'"):
        ct.run("small.toml", sed=1)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        ct.load()


def test_write_errors_are_instances_of_oserror_with_a_message_of_celltrain(lan):
    Path("taken").write_text("")
    for write in (
        lambda: ct.save(lan, "folder"),
        lambda: ct.save(lan, "nowhere/at/all.toml"),
        lambda: ct.run(lan).write("taken"),
        lambda: ct.run(lan).write("taken/inside"),
    ):
        with pytest.raises(ct.OutputError, match="cannot be written") as refused:
            write()
        assert isinstance(refused.value, OSError)


def test_a_string_with_a_lone_surrogate_is_refused_before_any_file_is_written(lan):
    lan = lan.replace(tcp=ct.Tahoe())
    broken = lan.replace(name="\ud800")
    policies = {"p": {"path": "tcp", "values": {"\ud800": {"vanilla": {}}}}}
    for call in (
        lambda: ct.run(broken),
        lambda: ct.max_min_shares(broken),
        lambda: ct.draw(broken),
        lambda: ct.save(broken, "broken.toml"),
        lambda: ct.sweep(broken, over={"duration": ["1ms"]}, seeds=1, store="lab"),
        lambda: ct.sweep(lan, over=policies, seeds=1, measures=["efficiency"], store="lab"),
        lambda: ct.sweep(lan, over={"duration": ["\ud800"]}, seeds=1, store="lab"),
    ):
        with pytest.raises(ct.InputError, match="contains an incomplete character"):
            call()
    assert [fault.key for fault in ct.check(broken)] == ["name"]
    assert not Path("lab").exists()
    assert not Path("broken.toml").exists()


def test_a_lone_surrogate_in_a_graph_node_name_is_an_input_error():
    pytest.importorskip("networkx")
    edge = {"source": "\ud800", "target": "b", "delay": "1ms"}
    Path("net.json").write_text(json.dumps({"nodes": [{"id": "\ud800"}, {"id": "b"}], "links": [edge]}))
    with pytest.raises(ct.InputError, match=r"^net\.json: has a text that contains an incomplete character"):
        ct.import_graph("net.json", flows=1)


def test_a_scenario_copy_made_invalid_by_an_unchecked_update_raises_an_exception_of_the_package(lan):
    for change in ({"duration": object()}, {"topology": "none"}):
        copy = lan.model_copy(update=change)
        for call in (
            lambda copy=copy: ct.run(copy),
            lambda copy=copy: ct.save(copy, "copy.toml"),
            lambda copy=copy: ct.sweep(copy, over={"seed": [1]}, seeds=1),
        ):
            with pytest.raises(ct.InputError, match="that a scenario cannot have"):
                call()
        assert ct.check(copy)


def test_arguments_of_public_functions_may_be_numpy_numbers(lan):
    np = pytest.importorskip("numpy")
    store = ct.sweep(lan, over={"port.bottleneck.buffer": np.array([50, 60])}, seeds=np.int64(2), jobs=np.int32(1))
    assert len(store.wide()) == 4
    plain = ct.run(lan, seed=3, trace=["queue", "cwnd"])
    given = ct.run(lan, seed=np.int64(3), trace=np.array(["queue", "cwnd"]), ports=np.array(["bottleneck"]))
    assert given.fingerprint == plain.fingerprint
    assert list(given.series) == list(plain.series)
    assert ct.run(lan, seed=np.uint64(2**64 - 1)).seed == 2**64 - 1
    with pytest.raises(ct.ScenarioError, match=r"seed = .*3\.0.* is not a whole number or None"):
        ct.run(lan, seed=np.float64(3))
    papers = ct.reproduce("af-97-0831", tables=np.array([2]), seeds=np.int8(1), overrides={"duration": "1ms"})
    assert papers.numbers
    lanes = ct.n_source(sources=np.int16(2), link_delay=np.str_("5us"), buffer_cells=50, policy=ct.TailDrop())
    assert lanes.to_dict()["topology"] == lan.to_dict()["topology"]


class Place:
    """An object that stands for a path."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return self.path


def test_functions_accept_any_path_like_object_as_a_path(lan):
    pytest.importorskip("networkx")
    assert ct.load(Place("small.toml")) == ct.load("small.toml")
    assert ct.check(Place("small.toml")) == []
    assert ct.run(Place("small.toml")).write(Place("written"))
    ct.save(lan, Place("saved.toml"))
    assert ct.load("saved.toml").topology == lan.topology
    assert ct.import_graph(Place("net.json"), flows=1, delay="1ms")
    ct.sweep(lan, over={"port.bottleneck.buffer": [50]}, seeds=1, store=Place("swept"))
    assert ct.Store.open(Place("swept")).wide().num_rows == 1
    assert celltrain.ensemble.plan.Plan.load(Place("plan.toml")).name == "plan"
    with pytest.raises(ct.StoreError, match="is not there"):
        ct.report(Place("nowhere"))


def test_a_store_can_be_pickled(store):
    assert pickle.loads(pickle.dumps(store)).wide() == store.wide()


def test_a_measure_that_is_requested_twice_appears_once(store):
    for method in (store.table, store.wide, store.summary):
        assert method(["efficiency", "efficiency"]) == method(["efficiency"])


def test_writing_to_a_store_opened_read_only_is_refused(store):
    for call in (store.drop_failed, lambda: store.database):
        with pytest.raises(ct.StoreError, match="is open for reading"):
            call()
    for call in (
        lambda: store.write(5),
        lambda: store.write([5]),
        lambda: store.write([], [5]),
    ):
        with pytest.raises(ct.StoreError, match=" is not a "):
            call()


@pytest.mark.slow
def test_error_messages_shorten_long_values_and_name_the_option(lan):
    long = "a" * 10**6
    for call, key in (
        (lambda: ct.study("tagging", tables=[long]), ""),
        (lambda: ct.reproduce("af-96-1269", tables=["9" * 10**6]), ""),
        (lambda: ct.reproduce("af-96-1269", networks=[long]), ""),
        (lambda: ct.run(lan, trace=["queue"], step="9" * 5000 + "s"), "step"),
        (lambda: ct.run(lan, trace=["queue"], ports=long), "ports"),
        (lambda: ct.run(lan, trace=["queue"], ports=["nowhere"]), "ports"),
    ):
        with pytest.raises(ct.InputError) as refused:
            call()
        assert [fault.key for fault in refused.value.faults] == [key]
        assert len(str(refused.value)) < 300
    assert isinstance(pickle.loads(pickle.dumps(ct.PaperError("no table"))), ct.PaperError)


def test_every_public_class_has_a_readable_repr():
    classes = [one for name in ct.__all__ if inspect.isclass(one := getattr(ct, name))]
    assert len(classes) > 90
    assert not [one for one in classes if one.__repr__ is object.__repr__]


def test_the_printed_form_of_a_result_table_contains_its_class_name():
    assert str(ct.TailDrop()) == repr(ct.TailDrop()) == "TailDrop()"


@pytest.mark.slow
def test_plot_objects_and_loss_explanations_have_a_readable_repr(lan):
    assert repr(ct.run(lan, trace=["queue"], step="1ms").plot) == "<plots of a run: queue()>"
    assert "<plots of a run: none" in repr(ct.run(lan).plot)
    reasons = ct.why("lan-epd", flow="tcp4", at="2.2s", seed=18)
    assert "tcp4 at 2.2 s" in reasons._repr_html_()
    assert repr(ct.Capture("a.pcapng")) == "Capture('a.pcapng', kind='ip')"


def test_dir_lists_functions_and_result_classes_and_dir_of_submodules_lists_scenario_classes():
    assert len(dir(ct)) <= 55
    assert {"run", "compare", "scenarios", "tcp", "abr", "policies", "topologies", "models", "errors"} <= {*dir(ct)}
    listed = {name for module in (ct.policies, ct.tcp, ct.abr, ct.topologies) for name in module.__all__}
    for choice in ("Policy", "Tcp", "Stack", "Allocator", "Topology"):
        [keyed] = getattr(ct.models, choice).__metadata__
        assert {one.__name__ for one in keyed.variants.values()} <= listed
    assert ct.tcp.Sack is ct.Sack and ct.policies.Epd is ct.Epd
    assert "lan-epd" in ct.scenarios()


@pytest.mark.parametrize(
    "kind", [ct.Compared, ct.Report, ct.RunResult, ct.Store, ct.Tuned, celltrain.papers.Reproduction]
)
def test_results_are_frozen_dataclasses_that_notebooks_and_pandas_can_show(kind):
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen
    assert all(callable(getattr(kind, name)) for name in ("_repr_html_", "to_dict", "to_pandas"))
