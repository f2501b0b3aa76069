"""The policy that is to be vetted: from a file, from a class, or as a table."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from celltrain import _core
from celltrain.errors import Fault, InputError
from celltrain.scenario import Reading, read, read_text, table
from celltrain.text import described, shown

_FORM = 'a table policy, such as policy.formula = { admit = "X <= 0.9 * K" }'
#: Where a policy stands in the scenarios it is tried in.
_PORT = "port.bottleneck."


@dataclass(frozen=True, kw_only=True)
class Given:
    """A policy with what is needed to say where a fault of it stands."""

    name: str
    """What it is called in answers."""
    policy: dict[str, Any]
    """The table with the policy's name as its key, as below `policy` of a port."""
    file: str = "policy"
    """What messages call it."""
    prefix: str = "policy."
    """What its keys begin with in that file."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """The line of every key of that file."""

    def refused(self, fault: Fault) -> Fault:
        """A fault of a scenario that has the policy, as one of the policy's file."""
        if not fault.key.startswith(f"{_PORT}policy"):
            return fault
        key = self.prefix + fault.key.removeprefix(f"{_PORT}policy").removeprefix(".")
        parts = key.rstrip(".").split(".")
        known = (self.lines.get(".".join(parts[:end])) for end in range(len(parts), 0, -1))
        line = next((line for line in known if line is not None), None)
        said = Fault.of(fault.problem, file=self.file, line=line, key=".".join(parts), value=fault.value)
        return dataclasses.replace(said, excerpt=fault.excerpt)


def given(policy: Any) -> Given:
    """The policy that a caller names; raises `InputError` where it is none."""
    if isinstance(policy, str | os.PathLike):
        return _of_file(policy)
    if isinstance(policy, Mapping):
        return _of_table(dict(policy))
    from celltrain.models import Port

    table_of = Port(buffer_cells=1000, policy=policy).to_dict()["policy"]
    [name] = table_of
    called = type(policy).__name__
    return Given(name=called if name == "python" else name, policy=table_of, file=called)


def _of_table(policy: dict[str, Any]) -> Given:
    if set(policy) == {"policy"} and isinstance(policy["policy"], Mapping):
        policy = dict(policy["policy"])
    if len(policy) != 1:
        raise InputError([Fault.of_option("policy", described(policy), f"is no policy; it must be {_FORM}")])
    [name] = policy
    return Given(name=str(name), policy=policy)


def _of_file(path: str | os.PathLike[str]) -> Given:
    """A file with the policy alone, or a whole scenario that has one."""
    file, text = shown(path), read_text(Path(path), what="policy")
    answer = json.loads(_core.toml(text, file))
    if answer["faults"]:
        raise InputError(Fault(**fault) for fault in answer["faults"])
    root, lines, name = answer["root"], answer["lines"], Path(path).stem
    if "topology" in root:
        return _of_scenario(path, file, lines, name)
    if "policy" in root:
        others = [key for key in root if key not in ("policy", "name")]
        if others:
            problem = f"is unknown; a policy's file has {_FORM}, and perhaps a name"
            raise InputError(Fault.of(problem, file=file, line=lines.get(key), key=key) for key in others)
        called = root.get("name", name)
        if not isinstance(called, str) or not called.strip():
            problem = "is no name; write a text, or leave it out: then the file's name is the policy's"
            value = json.dumps(called, ensure_ascii=False)
            raise InputError([Fault.of(problem, file=file, line=lines.get("name"), key="name", value=value)])
        if not isinstance(root["policy"], dict) or len(root["policy"]) != 1:
            at = lines.get("policy")
            raise InputError([Fault.of(f"must be {_FORM}", file=file, line=at, key="policy")])
        return Given(name=called, policy=root["policy"], file=file, lines=lines)
    if len(root) == 1 and isinstance(next(iter(root.values())), dict):
        return Given(name=name, policy=root, file=file, prefix="", lines=lines)
    raise InputError([Fault.of_file(file, f"has no policy; it must have {_FORM}, or be a scenario with one policy")])


def _of_scenario(path: str | os.PathLike[str], file: str, lines: Mapping[str, int], name: str) -> Given:
    """The one policy of a scenario's ports."""
    ports = table(read(path).accepted())["port"]
    policies = {json.dumps(port["policy"], sort_keys=True): key for key, port in ports.items()}
    if len(policies) != 1:
        problem = (
            f"has {len(policies)} policies; what is to be vetted is one: write it into a file of its own as {_FORM}"
        )
        raise InputError([Fault.of(problem, file=file, line=lines.get("port"), key="port")])
    [(policy, port)] = policies.items()
    return Given(name=name, policy=json.loads(policy), file=file, prefix=f"port.{port}.policy.", lines=lines)


def check(policy: Given, scenarios: Mapping[str, dict[str, Any]], named: Sequence[str]) -> None:
    """Refuses a policy that does not go with one of the `named` of these scenarios, with every fault.

    A fault of the policy alone is the same in all of them; one that depends on the scenario says where it is.
    """
    of: dict[Fault, list[str]] = {}
    for name, scenario in scenarios.items():
        for fault in Reading.of_table(scenario, name).faults:
            of.setdefault(policy.refused(fault), []).append(name)
    faults = []
    for fault, places in of.items():
        if not (asked := [name for name in places if name in named]):
            continue
        where = "" if len(places) == len(scenarios) else f" (in {', '.join(asked)})"
        faults.append(dataclasses.replace(fault, problem=fault.problem + where, message=fault.message + where))
    if faults:
        raise InputError(faults)
