from __future__ import annotations

import importlib.util
import json
import pickle
import sys

import pytest
from conftest import ROOT
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import celltrain as ct
from celltrain import _core
from celltrain.model import types as models
from celltrain.model.base import Keyed, Model
from celltrain.model.scenario import Reading

CHOICES = [models.Policy, ct.Allocator, ct.EdgeDiscard, ct.Tcp, ct.Topology]


def variants():
    for choice in CHOICES:
        [keyed] = [part for part in choice.__metadata__ if isinstance(part, Keyed)]
        yield from keyed.variants.items()


def generator():
    spec = importlib.util.spec_from_file_location("generate_models", ROOT / "scripts" / "generate_models.py")
    module = importlib.util.module_from_spec(spec)
    # The module's dataclasses and annotations need the module in sys.modules.
    sys.modules["generate_models"] = module
    spec.loader.exec_module(module)
    return module


def lan(**changes):
    settings = {"sources": 3, "link_delay": "5us", "buffer_cells": 100, "policy": ct.TailDrop(), "duration": "5ms"}
    return ct.n_source(**{**settings, **changes})


def test_the_generated_python_classes_match_the_schema():
    generate = generator()
    for path, current in generate.generate(json.loads(_core.schema())).items():
        assert path.read_text() == current, f"{path.name} is stale: run python scripts/generate_models.py"


def test_every_generated_python_class_is_public():
    for name in models.__all__:
        assert getattr(ct, name) is getattr(models, name)
    assert set(models.__all__) < set(ct.__all__)


def test_every_choice_in_the_scenario_schema_has_a_python_class():
    definitions = json.loads(_core.schema())["$defs"]
    keys = [
        key
        for name in ("Policy", "Allocator", "EdgeDiscard", "Tcp", "Topology")
        for c in definitions[name]["oneOf"]
        for key in c["properties"]
    ]
    assert [key for key, _ in variants()] == keys


def test_python_setting_names_contain_the_unit_where_the_setting_is_a_bare_number():
    assert ct.Epd(threshold=800) == ct.Epd(threshold=800)
    assert ct.Epd(threshold=800).to_dict() == {"threshold": 800}
    assert ct.Vanilla(minimum_rto_ticks=3).to_dict()["minimum_rto"] == 3
    assert ct.Port(buffer_cells="infinite", policy=ct.TailDrop()).to_dict()["buffer"] == "infinite"


def test_a_field_of_a_scenario_class_accepts_an_instance_or_a_dict():
    by_class = ct.Port(buffer_cells=1000, policy=ct.Epd(threshold=800))
    by_table = ct.Port(buffer_cells=1000, policy={"epd": {"threshold": 800}})
    assert by_class == by_table
    table = {"buffer": 1000, "policy": {"epd": {"threshold": 800}}, "scheduler": {"fifo": {}}}
    assert by_class.to_dict() == table


def test_tcp_variants_share_their_options_but_are_different_python_types():
    assert ct.Vanilla(mss="512B") != ct.Tahoe(mss="512B")
    assert isinstance(ct.Tahoe(), ct.TcpOptions)
    assert lan(tcp=ct.Tahoe(mss="1024B")).to_dict()["tcp"]["tahoe"]["mss"] == "1024B"
    # The options alone do not identify the variant.
    with pytest.raises(ct.ScenarioError, match="neither one of Vanilla or Tahoe or Reno"):
        lan(tcp=ct.TcpOptions())


TOPOLOGIES = [choice["required"][0] for choice in json.loads(_core.schema())["$defs"]["Topology"]["oneOf"]]


def smallest(field):
    """Returns a value for a required key: 2 for a count, or the example of a quantity."""
    least = [limit.ge for limit in field.metadata if hasattr(limit, "ge")]
    return max(2, *least) if least else field.examples[0]


class Half(ct.PythonPolicy):
    def admit(self, view, vc):
        return view.K is None or view.X <= view.K / 2


@pytest.mark.parametrize("key, model", list(variants()))
def test_every_model_variant_is_unchanged_after_the_core_parses_and_serializes_it(key, model):
    required = {
        "threshold": 50,
        "tagged_threshold": 20,
        "thresholds_cells": {"tcp1-2": 20, "default": 10},
        "weights": {"tcp1": 2.5, "default": 1},
        "minimum_share": {"tcp1": 0.2, "default": 0.1},
        "admit": "X <= 300 or Y < 100",
        "class_": f"{__name__}:Half",
        "l4s": {"tcp1": 1, "default": 0},
    }
    if key == "network":
        required = {
            "hosts": ["a", "b"],
            "switches": ["s"],
            "links": [{"between": ["a", "s"], "delay": "5us"}, ct.Link(between=("s", "b"), delay="5us")],
            "flows": [ct.Flow(from_="a", to="b")],
        }
    elif key in TOPOLOGIES:
        required = {name: smallest(field) for name, field in model.model_fields.items() if field.is_required()}
    fields = {
        name: value
        for name, value in required.items()
        if name in model.model_fields and (model.model_fields[name].is_required() or "threshold" not in name)
    }
    variant = model(**fields)
    assert isinstance(variant, Model)
    choice = next(choice for choice in CHOICES if model in choice.__metadata__[0].variants.values())
    everywhere = {"default": ct.Port(buffer_cells="infinite", policy=ct.TailDrop())}
    if choice is models.Policy:
        scenario = lan(policy=variant)
    elif choice is ct.Tcp:
        scenario = lan(tcp=variant)
    elif choice is ct.Allocator:
        port = ct.Port(buffer_cells=100, policy=ct.TailDrop(), allocator=variant)
        scenario = lan().replace(port={"bottleneck": port})
    elif choice is ct.EdgeDiscard:
        memory = "shared" if key == "shared_adaptive_discard" else "per_vc"
        network = ct.Internetwork(sources=2, ip_delay="5us", atm_delay="5us")
        edge = ct.Edge(buffer_cells=100, memory=memory, discard=variant)
        scenario = lan().replace(topology=network, port=everywhere, edge={"*": edge})
    else:
        edges = {"*": ct.Edge()} if key == "internetwork" else {}
        requests = {"web": ct.Requests(load=0.1, sizes="10kB")} if key == "leaf_spine" else {}
        scenario = lan().replace(topology=variant, port=everywhere, edge=edges, requests=requests)
    reading = Reading.of_core(_core.parse_json(json.dumps(scenario.to_dict()), "test"))
    assert reading.faults == []
    assert ct.Scenario.model_validate(reading.scenario) == scenario


def test_unknown_missing_and_invalid_settings_are_all_reported_together():
    with pytest.raises(ct.ScenarioError) as caught:
        ct.NSource(sources=0, link_dely="5us", link_rate=3)
    faults = {fault.key: fault for fault in caught.value.faults}
    assert set(faults) == {"sources", "link_delay", "link_dely", "link_rate"}
    assert faults["link_delay"].problem == "is missing"
    assert "known fields" in faults["link_dely"].problem
    assert faults["sources"].message == ("NSource: sources = 0 is refused: input should be greater than or equal to 1")


def test_an_error_message_about_a_nested_setting_gives_the_path_of_the_key():
    with pytest.raises(ct.ScenarioError) as caught:
        ct.Scenario(
            duration="1s",
            topology={"n_source": {"sources": 2, "link_delay": "5us"}},
            port={"bottleneck": {"buffer": "infinit", "policy": {"epd": {"threshold": -1}}}},
        )
    assert [fault.key for fault in caught.value.faults] == [
        "port.bottleneck.buffer",
        "port.bottleneck.policy.epd.threshold",
    ]


def test_celltrain_exceptions_can_be_pickled_and_sent_to_another_process():
    with pytest.raises(ct.ScenarioError) as caught:
        ct.Epd(threshold=-1)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert copy.faults == caught.value.faults
    assert str(copy) == str(caught.value)


def test_scenario_objects_are_immutable_and_can_be_copied_with_changes():
    scenario = lan()
    with pytest.raises(AttributeError, match=r"replace\(seed="):
        scenario.seed = 2
    assert scenario.replace(seed=2).seed == 2
    assert scenario.seed == 1
    with pytest.raises(ct.ScenarioError, match="unknown"):
        scenario.replace(sed=2)


def test_settings_accept_number_types_of_numpy_and_other_libraries():
    np = pytest.importorskip("numpy")
    assert ct.Epd(threshold=np.int64(800)) == ct.Epd(threshold=800)
    assert ct.Fba(z=np.float64(0.5)).to_dict()["z"] == 0.5
    with pytest.raises(ct.ScenarioError, match="z = nan"):
        ct.Fba(z=float("nan"))


@pytest.mark.slow
@seed(1)
@settings(max_examples=50, deadline=None)
@given(
    buffer=st.one_of(st.integers(0, 1 << 28), st.just("infinite")),
    threshold=st.integers(0, 1 << 28),
    seed_of_run=st.integers(0, (1 << 64) - 1),
    name=st.text(max_size=20),
)
def test_the_core_accepts_scenarios_serialized_by_the_python_package(buffer, threshold, seed_of_run, name):
    scenario = lan(buffer_cells=buffer, policy=ct.Epd(threshold=threshold), seed=seed_of_run, name=name)
    reading = Reading.of_core(_core.parse_json(json.dumps(scenario.to_dict()), "test"))
    if reading.faults:
        assert isinstance(buffer, int)
        assert threshold > buffer or buffer == 0, reading.faults
    else:
        assert ct.Scenario.model_validate(reading.scenario) == scenario


#: Tables with one fault each, inside tables and lists whose names need quotes or resemble pydantic's own names.
FAULTY = {
    'link."source1->sw1".delay[0].by': {"link": {"source1->sw1": {"delay": [{"packets": [3]}]}}},
    'link."source1->sw1".lose[1].x': {"link": {"source1->sw1": {"lose": [{"packets": [3]}, {"packets": [1], "x": 1}]}}},
    'link."source1->sw1".delay[0].packets': {"link": {"source1->sw1": {"delay": [{"packets": 3, "by": "1ms"}]}}},
    'port."sw1->sw2".buffer': {"port": {"sw1->sw2": {"buffer": -1, "policy": {"tail_drop": {}}}}},
    "flow.tcp1-2.start": {"flow": {"tcp1-2": {"start": 5}}},
    "flow.tcp1-2.tcp.newreno.mss": {"flow": {"tcp1-2": {"tcp": {"newreno": {"mss": 5}}}}},
    "vc.tcp1-2.priority": {"vc": {"tcp1-2": {"priority": "high"}}},
    'port."sw1->sw2".policy.epd.threshold': {"port": {"sw1->sw2": {"buffer": 9, "policy": {"epd": {"threshold": []}}}}},
}


@pytest.mark.parametrize("key", FAULTY)
def test_python_reports_the_same_path_for_an_invalid_key_as_the_check_of_a_scenario_file(key: str) -> None:
    lan = ct.load("lan-epd").to_dict() | FAULTY[key]
    with pytest.raises(ct.ScenarioError) as refused:
        ct.Scenario.model_validate(lan)
    assert [fault.key for fault in refused.value.faults] == [key]
    assert Reading.of_table(lan, "file").faults[0].key == key
