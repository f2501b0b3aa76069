"""The standard set: scenarios for vetting a policy, and policies for comparison. Also reads the vetted policy."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from celltrain.ensemble.plan.document import parse
from celltrain.errors import Fault, InputError
from celltrain.model import overrides, policy_files, shipped
from celltrain.model.policy_files import Policy
from celltrain.model.scenario import Reading

#: Path of the policy in the standard scenarios.
PATH = "port.bottleneck.policy"
#: Scenarios without a policy, by name.
SCENARIOS: dict[str, dict[str, Any]] = parse(Path(__file__).with_suffix(".toml").read_text(), "standard.toml")[0]
#: A small network with a memory shared by ports, and the path of its policy.
SHARED: dict[str, Any] = {
    "duration": "20ms",
    "topology": {
        "network": {
            "hosts": ["h1", "h2", "h3"],
            "switches": ["sw"],
            "links": [{"between": [host, "sw"], "delay": "5us"} for host in ("h1", "h2", "h3")],
            "flows": [{"from": "h1", "to": "h2"}, {"from": "h2", "to": "h3"}],
        }
    },
    "switch": {"sw": {"memory": {"cells": 1000, "pool": {"main": {"policy": {}}}}}},
}
MEMORY_PATH = "switch.sw.memory.pool.main.policy"
#: Scenarios that differ only in their TCP, with a description of it.
PAIRS = tuple(
    {name: f"with {next(iter(SCENARIOS[name]['tcp']))}" for name in pair}
    for pair in (("lan-5", "lan-5-sack"), ("wan-5", "wan-5-sack"))
)
#: Pairs of scenarios that differ only in clocks and start times, which are equal for all hosts in one and random in the
#: other.
CLOCKS = ({"lan-5": "with clocks in step", "lan-5-random": "with random clocks"},)

#: Policies to compare with by default.
CLASSICS = ("epd", "selective_drop", "fba")

#: Measures in each scenario, by name of the metric.
MEASURES = {
    "efficiency": "efficiency",
    "fairness": "fairness",
    "max_queue_cells": "ports.bottleneck.max_queue_cells",
    "timeouts": "flows.sum(*).timeouts",
    "least_goodput_mbps": "flows.least(*).goodput_mbps",
}
#: Measures that are fractions, whose mean over the scenarios is meaningful.
SHARES = ("efficiency", "fairness")


def scenario(name: str, policy: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Returns a scenario of the set with this policy, as a table."""
    made = SCENARIOS[name]
    port = {"bottleneck": {**made["port"]["bottleneck"], "policy": policy}}
    return {"name": name, **made, "port": port, **changes}


def tcp_of(name: str) -> str:
    """Returns the TCP variant of a scenario of the set."""
    [variant] = SCENARIOS[name]["tcp"]
    return str(variant)


def duration_of(name: str) -> str:
    """Returns the duration of a scenario of the set, as text."""
    return str(SCENARIOS[name]["duration"]).replace("s", " s")


def classic(name: str, of: str) -> dict[str, Any]:
    """Returns a policy by name for a scenario of the set; EPD has a threshold of four fifths of the buffer."""
    if name != "epd":
        return {name: {}}
    return {name: {"threshold": SCENARIOS[of]["port"]["bottleneck"]["buffer"] * 4 // 5}}


def policy_of(policy: Any, settings: Mapping[str, Any] | None = None) -> Policy:
    """Returns the policy given by a caller; raises `InputError` if it is not a policy.

    Args:
        policy: A file, a policy such as `epd:threshold=80%`, a table, or a policy object.
        settings: Values that override settings in the file, keyed by their path in a scenario.
    """
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, str | os.PathLike):
        return policy_files.read(policy, change=lambda root: _changed(root, settings or {}))
    if isinstance(policy, Mapping):
        return policy_files.of_table(policy)
    from celltrain.model.types import Port

    table_of = Port(buffer_cells=1000, policy=policy).to_dict()["policy"]
    [name] = table_of
    called = type(policy).__name__
    return Policy(name=called if name == "python" else name, table=table_of, file=called)


def _changed(root: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tables of a file with these settings replaced."""
    if not settings:
        return root
    if "topology" in root:
        return overrides.applied(root, settings)[0]
    faults = [
        overrides.fault_of("--set", path, f"changes nothing in a policy file, where paths begin with {PATH}")
        for path in settings
        if not f"{path}.".startswith(f"{PATH}.")
    ]
    if faults:
        raise InputError(faults)
    scenario = {"port": {"bottleneck": {"policy": root.get("policy", root)}}}
    made, _ = overrides.applied(scenario, settings)
    return {**{key: root[key] for key in root if key == "name"}, "policy": made["port"]["bottleneck"]["policy"]}


def check_policy(policy: Policy, scenarios: Mapping[str, dict[str, Any]], named: Sequence[str]) -> list[str]:
    """Returns the warnings about a policy in these scenarios; raises `InputError` with all faults.

    If a fault or warning does not occur in all scenarios, it lists those of `named` in which it occurs.
    """
    faults: dict[Fault, list[str]] = {}
    warnings: dict[str, list[str]] = {}
    for name, scenario in scenarios.items():
        reading = Reading.of_table(scenario, name)
        for fault in reading.faults:
            faults.setdefault(policy.refused(fault, PATH), []).append(name)
        for warning in reading.warnings:
            if PATH in warning:
                own = warning.replace(f"{PATH}.", policy.prefix).replace(PATH, policy.prefix.rstrip("."))
                warnings.setdefault(own, []).append(name)

    def where(places: Sequence[str]) -> str:
        return "" if len(places) == len(scenarios) else f" (in {', '.join(name for name in places if name in named)})"

    refused = [
        dataclasses.replace(fault, problem=fault.problem + where(places), message=fault.message + where(places))
        for fault, places in faults.items()
        if not set(places).isdisjoint(named)
    ]
    if refused:
        if not of_memory(policy).faults:
            problem = f"is a memory policy, and vet tests policies of ports only; {how_to_compare(policy)}"
            raise InputError.of_file(policy.file, problem)
        raise InputError(refused)
    return [one + where(places) for one, places in warnings.items() if not set(places).isdisjoint(named)]


def of_memory(policy: Policy) -> Reading:
    """Returns the verdict on a policy of a memory shared by ports. Faults refer to the policy's file."""
    made = overrides.applied(SHARED, {MEMORY_PATH: policy.table})[0]
    reading = Reading.of_table(made, policy.name)
    own = [
        warning.replace(f"{MEMORY_PATH}.", policy.prefix).replace(MEMORY_PATH, policy.prefix.rstrip("."))
        for warning in reading.warnings
        if MEMORY_PATH in warning
    ]
    return dataclasses.replace(
        reading, faults=[policy.refused(fault, MEMORY_PATH) for fault in reading.faults], warnings=own
    )


def _unknown(faults: Sequence[Fault]) -> set[str]:
    """Returns the names that formulas do not know."""
    return {match[1] for fault in faults if (match := re.search(r"does not know (\w+)", fault.problem))}


def how_to_compare(policy: Policy) -> str:
    """Returns the advice on a policy of a memory."""
    value = f"@{policy.file}" if policy.file.endswith(".toml") else policy.name
    return f"compare it with --vary 'switch.*.memory.pool.main.policy={value}'"


def check_file(
    file: str | os.PathLike[str], settings: Mapping[str, Any] | None = None
) -> tuple[Policy, list[str], str]:
    """Returns the policy in a file, warnings about it, and advice if it is the policy of a memory.

    Raises `InputError` with all faults of the policy in the standard scenarios.
    """
    policy = policy_of(file, settings)
    [name] = policy.table
    scenarios = {one: scenario(one, policy.table) for one in SCENARIOS}
    if name in shipped.policies():
        try:
            return policy, check_policy(policy, scenarios, list(scenarios)), ""
        except InputError as error:
            faults = error.faults
            is_memory_policy = name in shipped.policies("MemoryPolicy")
            if not is_memory_policy:
                raise
            reading = of_memory(policy)
            # If a name is unknown only at ports, it is a name of memories, such as q_i.
            if reading.faults and _unknown(faults) <= _unknown(reading.faults):
                raise
    else:
        reading = of_memory(policy)
    if reading.faults:
        raise InputError(reading.faults)
    return policy, list(reading.warnings), how_to_compare(policy)
