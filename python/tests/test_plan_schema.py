"""The JSON Schema of plans, for editors and other programs."""

from __future__ import annotations

import json
import re
import sys

import pytest
from jsonschema import Draft202012Validator
from pages import ROOT, blocks, pages

import plan_schema
from celltrain.ensemble.plan import Plan
from celltrain.ensemble.plan.forms import PlanForm, json_schema
from celltrain.ensemble.tuning.plan import TunePlan
from celltrain.errors import PlanError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SCHEMA = Draft202012Validator(json_schema())
SHIPPED = sorted(ROOT.glob("plans/*.toml"))
IN_FULL = """
name = "x"
scenario = "lan-selective-drop"
measures = ["efficiency"]
[axes]
"port.bottleneck.buffer" = [1000, 2000]
[sample]
points = 4
axes.d = { path = "topology.n_source.link_delay", from = "5us", to = "1ms", scale = "log" }
[seeds]
first = 3
until = { measure = "efficiency", interval = 0.1, at_most = 9 }
[limits]
time = "60s"
[series]
record = ["queue"]
step = "1ms"
"""
TUNED = """
scenario = "lan-selective-drop"
[tune]
objectives = { efficiency = "maximize", fairness = "maximize" }
trials = 4
parameters.Z = { path = "port.bottleneck.policy.selective_drop.z", from = 0.5, to = 2, step = 0.5 }
references.usual = { Z = 1 }
seeds.search = 2
"""


def plans_of_the_pages():
    """Returns the complete plans on the pages, including those that the commands of a page write to a file."""
    for page in pages():
        for block in blocks(page):
            texts = (
                [block.text]
                if block.language == "toml"
                else re.findall(r"<<'END'\n(.*?)\nEND\n", block.text, re.DOTALL)
            )
            for text in texts:
                is_case = "\nexpect = " in text  # Cases of `celltrain bottleneck` are not plans.
                if re.search(r"^scenario = |^\[scenario", text, re.MULTILINE) and not is_case:
                    yield pytest.param(text, id=str(block))


def test_the_plan_schema_is_a_valid_schema_and_describes_every_key():
    Draft202012Validator.check_schema(SCHEMA.schema)
    assert list(SCHEMA.schema["properties"]) == PlanForm.names()
    tables = [SCHEMA.schema, *SCHEMA.schema["$defs"].values()]
    objects = [inner for table in tables for inner in table.get("anyOf", [table]) if "properties" in inner]
    assert len(objects) > 10
    for table in objects:
        assert table["additionalProperties"] is False
        # The class of a table describes the table.
        assert all({"description", "$ref"} & one.keys() for one in table["properties"].values()), table["title"]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_every_shipped_plan_conforms_to_the_plan_schema(path):
    assert [error.message for error in SCHEMA.iter_errors(tomllib.loads(path.read_text()))] == []


def test_the_saved_plan_schema_is_up_to_date():
    text = plan_schema.SCHEMA.read_text(encoding="utf-8")
    assert text == plan_schema.written(), "it is stale: run python scripts/plan_schema.py"


PAGES = list(plans_of_the_pages())


@pytest.mark.parametrize("text", PAGES)
def test_every_plan_on_a_documentation_page_conforms_to_the_plan_schema(text):
    assert [error.message for error in SCHEMA.iter_errors(tomllib.loads(text))] == []


def test_the_documentation_pages_contain_plans_for_sweeps_and_plans_for_searches():
    texts = [param.values[0] for param in PAGES]
    assert len(texts) >= 6
    assert any("[tune]" in text for text in texts)


@pytest.mark.parametrize(
    ("plan", "old", "new", "path"),
    [
        (IN_FULL, '"x"', "5", "name = 5 is not a text"),
        (IN_FULL, '["efficiency"]', '"efficiency"', "measures"),
        (IN_FULL, '["efficiency"]', "[1]", "measures[0]"),
        (IN_FULL, "[1000, 2000]", "5", 'axes."port.bottleneck.buffer"'),
        (IN_FULL, "[1000, 2000]", "{ from = 1, to = 5 }", 'axes."port.bottleneck.buffer" needs a step or a count'),
        (IN_FULL, "[1000, 2000]", "{ values = [1], count = 3 }", "give a list or a range"),
        (IN_FULL, "points = 4\n", "", "sample lacks points"),
        (IN_FULL, "points = 4\n", "points = 0\n", "sample.points = 0"),
        (IN_FULL, '"log"', '"lag"', 'sample.axes.d.scale = "lag" must be one of "linear", "log"'),
        (IN_FULL, 'from = "5us", ', "", "sample.axes.d lacks from"),
        (IN_FULL, "first = 3", "count = 3", "give one of them"),
        (IN_FULL, ", at_most = 9", "", "seeds.until lacks at_most"),
        (IN_FULL, "interval = 0.1", "interval = 0", "seeds.until.interval = 0"),
        (IN_FULL, '"60s"', '"60"', "limits.time"),
        (IN_FULL, "time =", "tim =", "limits.tim is unknown; did you mean time?"),
        (IN_FULL, '"queue"', '"qeue"', "series.record[0]"),
        (IN_FULL, 'step = "1ms"\n', "", "series lacks step"),
        (TUNED, 'fairness = "maximize"', 'fairness = "most"', "tune.objectives.fairness"),
        (TUNED, ', fairness = "maximize"', "", "tune.objectives names one measure"),
        (TUNED, "from = 0.5, ", "", "tune.parameters.Z lacks from"),
        (TUNED, "trials = 4", "trials = 0", "tune.trials = 0 is not a whole number from 1 to 10,000"),
        (TUNED, "{ Z = 1 }", "5", "tune.references.usual = 5 is not a table"),
        (TUNED, "[tune]", "[seeds]\n[tune]", "seeds cannot be set here; use [tune.seeds]"),
    ],
)
def test_malformed_plans_are_refused_both_by_the_schema_and_by_the_plan_parser(plan, old, new, path):
    kind = TunePlan if plan is TUNED else Plan
    assert kind.of_toml(plan).name == ("x" if plan is IN_FULL else "")
    assert SCHEMA.is_valid(tomllib.loads(plan))
    assert old in plan
    wrong = plan.replace(old, new)
    assert not SCHEMA.is_valid(tomllib.loads(wrong))
    with pytest.raises(PlanError) as refused:
        kind.of_toml(wrong)
    assert any(path in fault.message for fault in refused.value.faults), str(refused.value)


def test_an_error_in_a_plan_is_reported_once_and_the_rest_is_checked():
    # A number that was refused is not reported as missing as well, and gets no default.
    [count] = _faults("[1000, 2000]", "{ from = 1, to = 5, count = 0 }")
    assert "count = 0 is not a whole number" in count
    least, most = _faults("at_most = 9", "at_least = 1, at_most = 99999999999999999999")
    assert "at_least = 1 is not a whole number" in least
    assert "at_most = 99999999999999999999 is not" in most
    name, twice = _faults('["efficiency"]', '[3, "efficiency", "efficiency"]')
    assert 'measures[0] = 3 is not a measure such as "efficiency"' in name
    assert 'measures[2] = "efficiency" appears twice' in twice


def _faults(old, new):
    with pytest.raises(PlanError) as refused:
        Plan.of_toml(IN_FULL.replace(old, new))
    return [fault.message for fault in refused.value.faults]


def test_the_schema_command_prints_the_plan_schema(celltrain):
    assert celltrain("schema", "--plan").json == json.loads(json.dumps(json_schema()))
