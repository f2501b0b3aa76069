"""A cell-accurate laboratory for TCP over switched networks.

>>> import celltrain as ct
>>> lan = ct.n_source(
...     sources=5, link_delay="5us", buffer_cells=1000, policy=ct.Epd(threshold=800), duration="100ms"
... )
>>> result = ct.run(lan, seed=1, trace=["queue", "cwnd"])
>>> 0 < result.efficiency <= 1
True
>>> result.flows.column_names[:2]
['name', 'goodput_mbps']

Make a scenario with `n_source`, `load` or the class `Scenario`; `scenarios()` lists those shipped with celltrain. `run`
simulates one scenario, `compare` several with the same seeds. `check` finds faults, `draw` shows the network, and
`import_graph` reads a network from a graph. `sweep`, `tune` and `report` handle many settings; `reproduce` and `study`
run published tables and studies; `vet` tests a policy. `episodes` lists when a flow was in trouble, `why` explains one
of these times, and `read_events` reads recorded events. A `Cancel` ends any of these calls from another thread. Buffer
policies are in `ct.policies`, TCP variants in `ct.tcp`, rate control in `ct.abr`, networks in `ct.topologies`, all
other tables of a scenario in `ct.models`, exceptions in `ct.errors`. `ct.mmu` calculates thresholds of switches that
share their packet memory. Every class is also an attribute of `ct` itself.
"""

from __future__ import annotations

import lazy_loader

# The first use of a name imports its module, which `__init__.pyi` declares.
_attribute, _, _stubbed = lazy_loader.attach_stub(__name__, __file__)

#: Submodules: the classes of a scenario (by subject, and all of them in `models`), errors, and thresholds of switches.
_SUBMODULES = ("abr", "errors", "mmu", "models", "policies", "tcp", "topologies")
#: The classes that completion lists under `celltrain`. Other classes are listed in the submodules.
_LISTED = ("CelltrainError", "CelltrainWarning", "Epd", "InputError", "Port", "Scenario", "SelectiveDrop", "TailDrop")

__all__ = [name for name in _stubbed if name not in _SUBMODULES]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from celltrain import _core

        return _core.build()["version"]
    if name not in _stubbed:
        raise AttributeError(f"module 'celltrain' has no attribute {name!r}{_advice(name)}")
    return _attribute(name)


def _advice(name: str) -> str:
    """If a name does not exist, suggests a class with a similar name."""
    import difflib

    if not name[:1].isupper():
        return ""
    from celltrain.model.scenario import controls

    if (control := name.lower()) in controls():
        return f'; it is a congestion control of a TCP: Vanilla(congestion="{control}"), for example'
    by_letters = {one.lower(): one for one in __all__}
    near = difflib.get_close_matches(name.lower(), by_letters, n=1, cutoff=0.8)
    return f"; did you mean {by_letters[near[0]]}?" if near else ""


def __dir__() -> list[str]:
    from celltrain.model import types

    functions_and_results = {name for name in __all__ if not name.endswith(("Error", "Warning", "Options"))} - {
        "Fault",
        *types.__all__,
    }
    return sorted({*functions_and_results, *_LISTED, *_SUBMODULES, "__version__"})
