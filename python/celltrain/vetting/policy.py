"""The policy that is to be vetted: from a file, from a class, or as a table."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from celltrain import overrides, policy_files
from celltrain.errors import Fault, InputError
from celltrain.policy_files import Policy
from celltrain.scenario import Reading

#: Where the scenarios in which a policy is tried have it.
PATH = "port.bottleneck.policy"


def given(policy: Any, settings: Mapping[str, Any] | None = None) -> Policy:
    """Returns the policy that a caller names; raises `InputError` if it is none.

    Args:
        policy: A file, a policy such as `epd:threshold=80%`, a table, or an object that stands for one.
        settings: Values that replace those of the file, by path into the file.
    """
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, str | os.PathLike):
        return policy_files.read(policy, change=lambda root: _changed(root, settings or {}))
    if isinstance(policy, Mapping):
        return policy_files.of_table(policy)
    from celltrain.models import Port

    table_of = Port(buffer_cells=1000, policy=policy).to_dict()["policy"]
    [name] = table_of
    called = type(policy).__name__
    return Policy(name=called if name == "python" else name, table=table_of, file=called)


def _changed(root: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tables of a file with settings in place of its own."""
    if not settings:
        return root
    if "topology" in root:
        return overrides.applied(root, settings)[0]
    around = PATH.removesuffix("policy")
    faults = [
        Fault.of_option("--set", path, 'is not a setting of the policy file; its paths begin with "policy."')
        for path in settings
        if f"{path}.".partition(".")[0] != "policy"
    ]
    if faults:
        raise InputError(faults)
    scenario = {"port": {"bottleneck": {"policy": root.get("policy", root)}}}
    made, _ = overrides.applied(scenario, {f"{around}{path}": value for path, value in settings.items()})
    policy = made["port"]["bottleneck"]["policy"]
    return {**root, "policy": policy} if "policy" in root else {"policy": policy}


def check(policy: Policy, scenarios: Mapping[str, dict[str, Any]], named: Sequence[str]) -> None:
    """Refuses a policy that does not go with one of the `named` of these scenarios, with every fault.

    A fault of the policy alone is the same in all of them; one that depends on the scenario says where it is.
    """
    of: dict[Fault, list[str]] = {}
    for name, scenario in scenarios.items():
        for fault in Reading.of_table(scenario, name).faults:
            of.setdefault(policy.refused(fault, PATH), []).append(name)
    faults = []
    for fault, places in of.items():
        if not (asked := [name for name in places if name in named]):
            continue
        where = "" if len(places) == len(scenarios) else f" (in {', '.join(asked)})"
        faults.append(dataclasses.replace(fault, problem=fault.problem + where, message=fault.message + where))
    if faults:
        raise InputError(faults)
