"""Shipped scenarios keep their fingerprints through the bindings: with one or two jobs, with or without observers."""

from __future__ import annotations

import csv
import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import NIGHTLY, ROOT

import celltrain as ct
from celltrain import _core
from celltrain.model.scenario import Reading

pytestmark = pytest.mark.slow

# The first simulated second, as in the Rust test that maintains the table.
DURATION = "1s"
#: Duration of scenarios with requests.
OF_REQUESTS = "60ms"
TABLE = ROOT / "crates" / "celltrain-scenario" / "tests" / "fingerprints.csv"


@pytest.fixture(scope="module")
def table() -> dict[tuple[str, int], str]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {(row["scenario"], int(row["seed"])): row["fingerprint"] for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def scenarios(table) -> dict[str, _core.Case]:
    """The shipped scenarios by name, as the core's objects."""
    paths = [*_core.data_names("scenarios/"), *_core.data_names("papers/af-96-1269/scenarios/")]
    found = {}
    for path in paths:
        name = path.rpartition("/")[2].removesuffix(".toml")
        scenario = Reading.of_core(_core.parse(_core.data(path), path)).scenario
        # Networks with requests run for their own time, as in the Rust test.
        changes = {"duration": DURATION}
        if scenario.get("requests"):
            # The measuring window of requests may end after the shortened duration.
            changes = {"duration": OF_REQUESTS, "measure": {}, "until": "duration"}
        found[name] = _core.Case(json.dumps({**scenario, **changes}))
    assert {name for name, _ in table} == set(found)
    return found


# The Rust tests compare seed 2 of every eighth scenario with the table, and at night both seeds on both engines.
# This test runs seed 1 of every second scenario on the optimised core, and in the nightly job both seeds of all.
@pytest.mark.parametrize(
    "engine, jobs",
    [
        pytest.param("fast", 1, marks=pytest.mark.nightly),
        ("fast", 2),
        pytest.param("reference", 2, marks=pytest.mark.nightly),
    ],
)
def test_shipped_scenarios_run_in_a_batch_have_the_saved_fingerprints(table, scenarios, engine, jobs):
    names = list(scenarios)
    saved = table if NIGHTLY else {run: text for run, text in table.items() if run[1] == 1 and run[0] in names[::4]}
    runs = [(names.index(name), seed) for name, seed in saved]
    found = {}

    def on_result(position: int, text: str) -> None:
        scenario, seed = runs[position]
        found[names[scenario], seed] = json.loads(text)["fingerprint"]

    _core.run_many(list(scenarios.values()), runs, jobs, on_result, engine=engine)
    assert found == saved


# The Rust test also covers observers.
@pytest.mark.nightly
@pytest.mark.parametrize("jobs", [1, 2])
def test_shipped_scenarios_have_the_saved_fingerprints_even_if_series_are_recorded(table, scenarios, jobs):
    def fingerprint(run: tuple[str, int]) -> str:
        scenario, seed = run
        # smoltcp does not report its windows.
        windows = [] if scenario == "lan-smoltcp" else ["cwnd"]
        text, series = scenarios[scenario].run(seed, ["queue", "occupancy", *windows])
        assert len(series["time_s"]) > 0
        return json.loads(text)["fingerprint"]

    with ThreadPoolExecutor(jobs) as pool:
        found = dict(zip(table, pool.map(fingerprint, table), strict=True))
    assert found == table


def test_the_page_for_artifact_reviewers_states_the_correct_fingerprints_of_its_runs():
    rows = re.findall(r"^\| `([\w-]+)` \| `(\w{16})` \|$", (ROOT / "ARTIFACT.md").read_text(), re.MULTILINE)
    assert len(rows) == 3
    assert rows == [(name, ct.run(name).fingerprint) for name, _ in rows]
