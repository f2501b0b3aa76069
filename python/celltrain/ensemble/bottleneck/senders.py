"""Senders of `celltrain bottleneck`: models, hosted stacks, classes of users, and the kernel of this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from celltrain.ensemble.bottleneck.cases import ABILITIES, Case, merged
from celltrain.ensemble.plan.document import parse
from celltrain.errors import Fault, InputError
from celltrain.model import overrides
from celltrain.model.paths import choices
from celltrain.text import among

#: Kinds of traffic that TCP carries, except endless data.
_OTHER_TRAFFIC = ("file", "bursts")


@dataclass(frozen=True, kw_only=True)
class Sender:
    """A TCP model, a stack, or the kernel."""

    name: str
    meaning: str
    table: Mapping[str, Any] = field(default_factory=dict)
    """`tcp` or `stack`, as in a scenario."""
    kernel: str | None = None
    """Congestion control of the kernel, empty for its default; None for senders that are simulated."""
    only_named: bool = False

    @property
    def can(self) -> tuple[str, ...]:
        """Abilities that some cases need. A class of a user counts as without them."""
        is_marked = "quic" in self.table.get("stack", {}) or any(
            own.get("ecn") == "on" for own in self.table.get("tcp", {}).values()
        )
        return ("ecn",) if is_marked else ()

    def lacks(self, case: Case) -> str:
        """Returns the reason why the sender cannot do a case, as far as it is known before a run; empty if it can."""
        if missing := [ABILITIES[need] for need in case.needs if need not in self.can]:
            return f"it has no {' and no '.join(missing)}"
        if self.kernel is None:
            return ""
        flows = case.scenario.get("flow", {}).values()
        if any(kind in flow.get("traffic", {}) for flow in flows for kind in _OTHER_TRAFFIC):
            return "programs in Linux hosts send endless data only"
        return "emulate refuses requests" if {"requests", "incast"} & case.scenario.keys() else ""

    def of_case(self, case: Case) -> dict[str, Any]:
        """Returns the scenario of a case with this sender. Flows of the case with a TCP or stack of their own keep it."""
        scenario = dict(case.scenario)
        own = scenario.pop("tcp", {})
        for kind, table in self.table.items():
            # A case may replace settings of every TCP, such as its windows.
            scenario[kind] = merged(table, dict.fromkeys(table, own)) if kind == "tcp" and own else table
        return scenario


@cache
def _tables() -> dict[str, Any]:
    # This parser keeps the order of the senders, which is that of the columns.
    return parse((Path(__file__).parent / "senders.toml").read_text(encoding="utf-8"), "senders.toml")[0]


def _sender(name: str, table: Mapping[str, Any]) -> Sender:
    made = {kind: dict(table[kind]) for kind in ("tcp", "stack") if kind in table}
    if "kernel" in table:
        # The kernel replaces this TCP, which only sets the size of packets.
        made["tcp"] = {"sack": {}}
    if "tcp" in made:
        made["tcp"] = {variant: merged(_tables()["common"], own) for variant, own in made["tcp"].items()}
    return Sender(
        name=name,
        meaning=table["meaning"],
        table=made,
        kernel=table.get("kernel"),
        only_named=table.get("only_named", False),
    )


def shipped_senders() -> dict[str, Sender]:
    """Returns the senders by name.

    >>> [sender.name for sender in shipped_senders().values()][:3]
    ['reno', 'newreno', 'cubic']
    """
    return {name: _sender(name, table) for name, table in _tables()["senders"].items()}


def read_all(wanted: Sequence[str] | Mapping[str, Any] | None) -> list[Sender]:
    """Returns senders: by name, as texts such as `sack:congestion=cubic`, or as tables by name.

    Raises `InputError` with all faults.
    """
    known = shipped_senders()
    if wanted is None:
        return [sender for sender in known.values() if not sender.only_named]
    given = dict(wanted) if isinstance(wanted, Mapping) else {text: text for text in wanted}
    faults = [] if given else [Fault.of_option("senders", "[]", "is empty; name at least one sender")]
    senders = []
    for name, sender in given.items():
        try:
            senders.append(known[sender] if isinstance(sender, str) and sender in known else _of_user(name, sender))
        except InputError as error:
            faults += error.faults
        except ValueError as error:
            faults.append(Fault.of_option("senders", name, str(error)))
    if faults:
        raise InputError(faults)
    return senders


def _of_user(name: str, given: Any) -> Sender:
    """Returns a sender from a text or from a table `tcp` or `stack`; raises `ValueError` or `InputError`."""
    if isinstance(given, str):
        first = given.partition(":")[0]
        kind = "tcp" if first in choices("tcp") else "stack"
        if kind == "stack" and first not in choices("stack") and ":" not in given:
            names = [*shipped_senders(), *choices("tcp"), *choices("stack")]
            raise ValueError(f"is unknown; {among(given, names)}, or mine.py:Mine for a class")
        label, table = overrides.resolved(kind, given)
        return _sender(name if name != given else label, {kind: table, "meaning": given})
    table = given if isinstance(given, Mapping) else {"stack": overrides.plain(given)}
    if len(table) != 1 or not table.keys() <= {"tcp", "stack"}:
        raise ValueError("is neither a text nor a table with one of the keys tcp and stack")
    [(kind, setting)] = table.items()
    return _sender(name, {kind: overrides.plain(setting), "meaning": f"given as a table {kind}"})
