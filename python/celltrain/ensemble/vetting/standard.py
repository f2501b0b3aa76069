"""The standard sets: scenarios for vetting a policy of ports or of memories, and policies for comparison.

Also reads the vetted policy.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import re
import warnings as of_python
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from celltrain import _core
from celltrain.ensemble.plan.document import parse
from celltrain.errors import CelltrainWarning, Fault, InputError, ScenarioError
from celltrain.model import overrides, policy_files, shipped
from celltrain.model.paths import choices, matched, set_key
from celltrain.model.policy_files import Policy
from celltrain.model.scenario import Reading
from celltrain.text import among

_FOLDER = Path(__file__).parent
#: Paths of the policy in the scenarios of the sets.
PATH, MEMORY_PATH = "port.bottleneck.policy", "switch.*.memory.pool.main.policy"


def _of_memories(name: str) -> dict[str, Any]:
    """Returns a shipped scenario without its name. Its policy of memories is replaced by the vetted one."""
    file, text = shipped.named_text(name, folder=None)
    scenario, _ = shipped.toml(text, file)
    return {key: table for key, table in scenario.items() if key != "name"}


#: The scenarios by name: without a policy for policies of ports, and shipped ones for policies of memories.
SCENARIOS: dict[str, dict[str, Any]] = parse((_FOLDER / "standard.toml").read_text(), "standard.toml")[0]
MEMORY_SCENARIOS = {name: _of_memories(name) for name in ("switch", "small-memory", "switch-dctcp", "leaf-spine")}
#: Scenarios that differ only in their TCP, with a description of each TCP.
PAIRS = tuple(
    {name: f"with {next(iter(SCENARIOS[name]['tcp']))}" for name in pair}
    for pair in (("lan-5", "lan-5-sack"), ("wan-5", "wan-5-sack"))
)
#: Pairs of scenarios that differ only in clocks and start times, which are equal for all hosts in one and random in the
#: other.
CLOCKS = ({"lan-5": "with synchronised clocks", "lan-5-random": "with random clocks"},)


@dataclass(frozen=True, kw_only=True)
class Standard:
    """A standard set of scenarios for a kind of policies."""

    kind: str
    """Kind of the policies: `port` or `memory`."""
    scenarios: Mapping[str, dict[str, Any]]
    """Scenarios without a policy, by name."""
    path: str
    """Path of the policy in the scenarios."""
    classics: tuple[str, ...]
    """Policies to compare with by default."""
    reference: str
    """The reference policy for delivered data."""
    measures: Mapping[str, str]
    """Measures in each scenario, by name of the metric."""
    shares: tuple[str, ...]
    """Metrics whose mean over the scenarios is meaningful."""
    pairs: tuple[Mapping[str, str], ...]
    """Pairs of scenarios that differ only in the TCP, each with a description of that TCP."""
    clocks: tuple[Mapping[str, str], ...]
    """Pairs of scenarios that differ only in clocks and starts."""
    by_both: str
    """Duration simulated by both engines. It is short, because the reference engine is slow."""
    conformance: Callable[[str, int], str]
    """The core's checks of a policy (as JSON), with a seed."""

    def scenario(self, name: str, policy: dict[str, Any], **changes: Any) -> dict[str, Any]:
        """Returns a scenario of the set with this policy, as a table."""
        made = {"name": name, **copy.deepcopy(self.scenarios[name]), **changes}
        set_key(made, self.path, policy)
        return made

    def other(self, name: str, of: str) -> dict[str, Any]:
        """Returns another policy by name for a scenario; EPD has a threshold of four fifths of the buffer."""
        return {name: {"threshold": SCENARIOS[of]["port"]["bottleneck"]["buffer"] * 4 // 5} if name == "epd" else {}}

    def against(
        self, wanted: Sequence[str] | None, named: Sequence[str], readings: Readings
    ) -> dict[str, dict[str, Any] | None]:
        """Returns the policies to compare with, by name: their tables, or None for a policy with its defaults.

        Raises `InputError` with all faults.

        Args:
            wanted: Names, policies with settings such as `dynamic_threshold:alpha=2`, policy files and Python classes.
            named: The scenarios to run.
            readings: The readings of this vetting.
        """
        faults, others = list[Fault](), list[str]()
        found: dict[str, dict[str, Any] | None] = {}
        for text in self.classics if wanted is None else wanted:
            if text in self.classics or text in (others := others or self.others(readings)):
                found[text] = None
                continue
            if ":" not in text and not policy_files.is_file(text):
                problem = f"is unknown; {among(re.sub(r'[-_ ]+', '_', text.lower()), others)}"
                faults.append(Fault.of_option("against", text, problem))
                continue
            try:
                label, table = overrides.resolved(self.path, text)
                policy = table.policy if isinstance(table, policy_files.Table) else Policy(name=label, table=table)
                check_policy(policy, self, named, readings)
                found[text if label in found else label] = policy.table
            except InputError as error:
                faults += error.faults
            except ValueError as error:
                faults.append(Fault.of_option("against", text, str(error)))
        if faults:
            raise InputError(faults)
        return found

    def settings_of(self, name: str, table: Mapping[str, Any] | None, readings: Readings) -> str:
        """Returns a policy with the numbers among its settings, in words, with defaults filled in."""
        first = next(iter(self.scenarios))
        policy = dict(table) if table is not None else self.other(name, first)
        place: Any = readings.of(self, first, policy).scenario
        for step in matched(place, self.path)[0]:
            place = place[step]
        [own] = place.values()
        numbers = [f"{key} = {value:g}" for key, value in own.items() if isinstance(value, int | float)]
        return f"{name} ({', '.join(numbers)})" if numbers else name

    def others(self, readings: Readings) -> list[str]:
        """Returns the policies whose settings all have defaults, and EPD."""
        first = next(iter(self.scenarios))
        return [name for name in choices(self.path) if name == "epd" or not readings.of(self, first, {name: {}}).faults]


class Readings:
    """Policies in scenarios of the standard sets, each read once for a vetting."""

    def __init__(self) -> None:
        self._made: dict[str, Reading] = {}

    def of(self, standard: Standard, name: str, policy: dict[str, Any]) -> Reading:
        """Returns the verdict on a policy in a scenario."""
        key = f"{name} {policy!r}"
        if key not in self._made:
            self._made[key] = Reading.of_table(standard.scenario(name, policy), name)
        return self._made[key]

    def is_valid(self, standard: Standard, policy: Policy) -> bool:
        """Returns whether a policy is valid in the first scenario of a set."""
        return not self.of(standard, next(iter(standard.scenarios)), policy.table).faults


PORTS = Standard(
    kind="port",
    scenarios=SCENARIOS,
    path=PATH,
    classics=("epd", "selective_drop", "fba"),
    reference="tail_drop",
    measures={
        "efficiency": "efficiency",
        "fairness": "fairness",
        "max_queue_cells": "ports.bottleneck.max_queue_cells",
        "timeouts": "flows.sum(*).timeouts",
        "least_goodput_mbps": "flows.least(*).goodput_mbps",
    },
    shares=("efficiency", "fairness"),
    pairs=PAIRS,
    clocks=CLOCKS,
    by_both="200ms",
    conformance=_core.conformance,
)
MEMORIES = Standard(
    kind="memory",
    scenarios=MEMORY_SCENARIOS,
    path=MEMORY_PATH,
    classics=("longest_queue_drop", "dynamic_threshold", "abm", "occamy"),
    reference="complete_sharing",
    measures={
        "short_ms_p99": "requests.web.short.completion_ms_p99",
        "short_slowdown": "requests.web.short.slowdown_mean",
        "slowdown": "requests.web.all.slowdown_mean",
        "query_ms": "requests.query.queries.completion_ms_mean",
        "query_ms_p99": "requests.query.queries.completion_ms_p99",
        "open_requests": "requests.sum(*).open",
        "timeouts": "requests.sum(*).timeouts",
        "goodput_mbps": "requests.sum(*).goodput_mbps",
    },
    shares=("short_ms_p99", "short_slowdown", "slowdown", "query_ms", "query_ms_p99"),
    pairs=({"switch": "with newreno", "switch-dctcp": "with dctcp"},),
    clocks=(),
    by_both="2ms",
    conformance=_core.memory_conformance,
)
#: Names and keys that exist in only one of the two formula languages.
_OWN_WORDS = {
    "port": {
        *("X", "K", "Y", "V", "C", "tagged", "random"),
        *("vc_state", "on_frame", "on_admission", "on_refusal", "on_cells", "every", "when_full"),
        *("sojourn", "tick", "on_head", "drop_head", "on_drop", "on_send", "on_period", "period"),
    },
    "memory": {
        *("B", "Q", "q_i", "n", "rank", "priority", "arriving", "cell_size"),
        *("queue_state", "on_arrival", "push_out", "push_out_end"),
    },
}


#: The end of a message about equal faults of several switches.
_SWITCHES = re.compile(r" \(at \d+ switches\)")


def tcp_of(name: str) -> str:
    """Returns the TCP variant of a scenario of a set, or its congestion control if it is not the variant's own."""
    [(variant, settings)] = {**SCENARIOS, **MEMORY_SCENARIOS}[name]["tcp"].items()
    return str(settings.get("congestion", variant))


def duration_of(name: str) -> str:
    """Returns the duration of a scenario of a set, as text."""
    duration = str({**SCENARIOS, **MEMORY_SCENARIOS}[name]["duration"])
    return re.sub(r"(?<=\d)(?=m?s$)", " ", duration)


def policy_of(policy: Any, settings: Mapping[str, Any] | None = None, scenarios: Sequence[str] | None = None) -> Policy:
    """Returns the policy given by a caller; raises `InputError` if it is not a policy.

    Args:
        policy: A file, a policy such as `epd:threshold=80%`, a table, or a policy object.
        settings: Values that override settings in the file, keyed by their path in a scenario.
        scenarios: The scenarios to run, which decide if the file is a scenario with policies of ports and of memories.
    """
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, str | os.PathLike):
        kinds = (one.kind for one in (PORTS, MEMORIES) if scenarios and set(scenarios) <= set(one.scenarios))
        of_memories = {"port": False, "memory": True}.get(next(kinds, ""))
        return policy_files.read(policy, change=lambda root: _changed(root, settings or {}), of_memories=of_memories)
    if isinstance(policy, Mapping):
        return policy_files.of_table(policy)
    from celltrain.model.types import PoolOptions, Port

    try:
        table_of = Port(buffer_cells=1000, policy=policy).to_dict()["policy"]
    except ScenarioError:
        try:
            table_of = PoolOptions(policy=policy).to_dict()["policy"]
        except ScenarioError:
            table_of = None
        if table_of is None:
            raise
    [name] = table_of
    called = type(policy).__name__
    return Policy(name=called if name == "python" else name, table=table_of, file=called)


def _changed(root: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tables of a file with the given settings replaced."""
    if not settings:
        return root
    if "topology" in root:
        return overrides.applied(root, settings)[0]
    faults = []
    path = next(
        (one for one in (MEMORY_PATH, PATH) if any(f"{path}.".startswith(f"{one}.") for path in settings)), PATH
    )
    for other in settings:
        if not f"{other}.".startswith(f"{path}."):
            problem = f"changes nothing in a policy file, where paths begin with {PATH}, or with {MEMORY_PATH}"
            faults.append(overrides.fault_of("--set", other, problem))
    if faults:
        raise InputError(faults)
    scenario: dict[str, Any] = {}
    set_key(scenario, path, root.get("policy", root))
    made: Any = overrides.applied(scenario, settings)[0]
    for step in path.split("."):
        made = made[step]
    return {**{key: root[key] for key in root if key == "name"}, "policy": made}


def _words(value: object) -> Iterator[str]:
    """Yields the keys of tables, and the names in texts."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from (str(key), *_words(inner))
    elif isinstance(value, str):
        yield from re.findall(r"[A-Za-z_]\w*", value)


def standard_of(policy: Policy, scenarios: Sequence[str] | None = None, readings: Readings | None = None) -> Standard:
    """Returns the standard set for a policy: that of the language in which the policy is valid, or of the nearer one.

    If both are possible, the names of the scenarios to run decide, or the place of the policy in its scenario.
    """
    readings, is_in_memory = readings or Readings(), policy.prefix.startswith("switch.")
    if policy.note or is_in_memory:
        return MEMORIES if is_in_memory else PORTS
    if fits_both(policy, readings) and scenarios and set(scenarios) <= set(MEMORIES.scenarios):
        return MEMORIES
    [(name, settings)] = policy.table.items()
    if name == "python":
        is_of_memories = isinstance(settings, Mapping) and policy_files.is_of_memories(str(settings.get("class", "")))
        return MEMORIES if is_of_memories else PORTS
    known = [kind for kind, of in ((PORTS, "Policy"), (MEMORIES, "MemoryPolicy")) if name in shipped.policies(of)]
    if len(known) != 2:
        return known[0] if known else PORTS
    for kind in known:
        if readings.is_valid(kind, policy):
            return kind
    words = set(_words(settings))
    return max(known, key=lambda kind: len(words & _OWN_WORDS[kind.kind]))


def fits_both(policy: Policy, readings: Readings | None = None) -> bool:
    """Returns whether a policy is valid at a port and in a memory, because its formulas have no name of only one."""
    readings = readings or Readings()
    [(name, settings)] = policy.table.items()
    return (
        all(name in shipped.policies(of) for of in ("Policy", "MemoryPolicy"))
        and name != "python"
        and set(_words(settings)).isdisjoint(_OWN_WORDS["port"] | _OWN_WORDS["memory"])
        and all(readings.is_valid(kind, policy) for kind in (PORTS, MEMORIES))
    )


def check_policy(policy: Policy, standard: Standard, named: Sequence[str], readings: Readings) -> list[str]:
    """Returns the warnings about a policy in the scenarios of a set; raises `InputError` with all faults.

    If a fault or warning does not occur in all scenarios, it lists those of `named` in which it occurs.
    """
    faults: dict[Fault, list[str]] = {}
    warnings: dict[str, list[str]] = {}
    for name in standard.scenarios:
        reading = readings.of(standard, name, policy.table)
        for fault in reading.faults:
            # The number of switches with the fault is a property of the scenario.
            problem, message = (_SWITCHES.sub("", text) for text in (fault.problem, fault.message))
            own = policy.refused(dataclasses.replace(fault, problem=problem, message=message), standard.path)
            faults.setdefault(own, []).append(name)
        for warning in reading.warnings:
            if standard.path in (plain := policy_files.unquoted(warning)):
                words = plain.replace(f"{standard.path}.", policy.prefix)
                warnings.setdefault(words.replace(standard.path, policy.prefix.rstrip(".")), []).append(name)

    def where(places: Sequence[str]) -> str:
        everywhere = len(places) == len(standard.scenarios)
        return "" if everywhere else f" (in {', '.join(name for name in places if name in named)})"

    refused = [
        dataclasses.replace(fault, problem=fault.problem + where(places), message=fault.message + where(places))
        for fault, places in faults.items()
        if not set(places).isdisjoint(named)
    ]
    if refused:
        raise InputError(refused)
    return [one + where(places) for one, places in warnings.items() if not set(places).isdisjoint(named)]


def how_to_compare(policy: Policy) -> str:
    """Returns the advice on a policy of a memory."""
    value = f"@{policy.file}" if policy.file.endswith(".toml") else policy.file if ":" in policy.file else policy.name
    return f"compare it with --vary '{MEMORY_PATH}={value}'"


def check_file(
    file: str | os.PathLike[str], settings: Mapping[str, Any] | None = None
) -> tuple[Policy, str, list[str], str]:
    """Returns the policy in a file, its kind, warnings about it, and advice if it can be the policy of a memory.

    Raises `InputError` with all faults of the policy in the standard scenarios, in the language that it fits better.
    """
    policy, readings = policy_of(file, settings), Readings()
    standard = standard_of(policy, None, readings)
    warnings = check_policy(policy, standard, list(standard.scenarios), readings)
    if fits_both(policy, readings):
        advice = (
            f"valid for ports and memories; for a memory, {how_to_compare(policy)}, and vet it with --scenarios switch"
        )
        return policy, "policy", warnings, advice
    if standard is PORTS:
        return policy, "port policy", warnings, ""
    return policy, "memory policy", [*warnings, *_tried(policy)], how_to_compare(policy)


#: Beginning of a run in which a Python class is tried.
TRIED = "3ms"
#: Settings with which a shortened run ends at its duration.
AT_ONCE: dict[str, Any] = {"measure": {}, "until": "duration"}


def _tried(policy: Policy) -> Iterator[str]:
    """Runs the beginning of a scenario with a Python class. Yields a warning if the class admits no cell.

    Raises `ScenarioError` if the class raises an error or returns a wrong value.
    """
    if "python" not in policy.table:
        return
    from celltrain.model.types import Scenario
    from celltrain.running.results import run

    scenario = MEMORIES.scenario(next(iter(MEMORIES.scenarios)), policy.table, duration=TRIED, **AT_ONCE)
    with of_python.catch_warnings():
        # The warning below names the policy.
        of_python.simplefilter("ignore", CelltrainWarning)
        queues = run(Scenario.model_validate(scenario), seed=1).queues
    entered, refused = (sum(queues[count].to_pylist()) for count in ("entered_cells", "refused_cells"))
    if refused and not entered:
        yield f"{policy.name} refuses every cell, also while the pool is empty"
