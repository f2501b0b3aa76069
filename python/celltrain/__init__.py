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

Make a scenario with `n_source`, `load` or the class `Scenario`; `scenarios()` names those that come with celltrain. `run`
simulates one, `compare` several with the same seeds. `check` finds faults, `draw` shows the network, `import_graph` reads one.
`sweep`, `tune` and `report` work on many settings; `reproduce` and `study` run published tables and studies; `vet` tests a policy.
`episodes` lists when a flow was in trouble, `why` explains one of these times, and `read_events` reads recorded events. A `Cancel` ends any of these calls from another
thread. Buffer policies are in `ct.policies`, TCP variants in `ct.tcp`, rate control in `ct.abr`, networks in `ct.topologies`, all
other tables of a scenario in `ct.models`, exceptions in `ct.errors`. Every class is also an attribute of `ct` itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from celltrain import abr as abr
    from celltrain import errors as errors
    from celltrain import models as models
    from celltrain import policies as policies
    from celltrain import tcp as tcp
    from celltrain import topologies as topologies
    from celltrain.ensemble.comparing import Compared as Compared
    from celltrain.ensemble.comparing import compare as compare
    from celltrain.ensemble.reports import Report as Report
    from celltrain.ensemble.reports import report as report
    from celltrain.ensemble.store import Store as Store
    from celltrain.ensemble.sweeps import sweep as sweep
    from celltrain.ensemble.tuning import Tuned as Tuned
    from celltrain.ensemble.tuning import tune as tune
    from celltrain.ensemble.vetting import vet as vet
    from celltrain.errors import CancelledError as CancelledError
    from celltrain.errors import CelltrainError as CelltrainError
    from celltrain.errors import CelltrainWarning as CelltrainWarning
    from celltrain.errors import ClusterError as ClusterError
    from celltrain.errors import Fault as Fault
    from celltrain.errors import InputError as InputError
    from celltrain.errors import MissingExtraError as MissingExtraError
    from celltrain.errors import NotTracedError as NotTracedError
    from celltrain.errors import OutputError as OutputError
    from celltrain.errors import PaperError as PaperError
    from celltrain.errors import PlanError as PlanError
    from celltrain.errors import ScenarioError as ScenarioError
    from celltrain.errors import StoreError as StoreError
    from celltrain.errors import TuneError as TuneError
    from celltrain.inspect.network_figure import draw as draw
    from celltrain.inspect.why import Episodes as Episodes
    from celltrain.inspect.why import Why as Why
    from celltrain.inspect.why import why as why
    from celltrain.model.cancel import Cancel as Cancel
    from celltrain.model.graph import import_graph as import_graph
    from celltrain.model.network import max_min_shares as max_min_shares
    from celltrain.model.policy_files import Policy as Policy
    from celltrain.model.python_policy import PolicyPort as PolicyPort
    from celltrain.model.python_policy import PythonPolicy as PythonPolicy
    from celltrain.model.python_policy import compiled as compiled
    from celltrain.model.scenario import check as check
    from celltrain.model.scenario import load as load
    from celltrain.model.scenario import n_source as n_source
    from celltrain.model.shipped import scenarios as scenarios
    from celltrain.model.toml import save as save
    from celltrain.model.types import *
    from celltrain.papers.run import reproduce as reproduce
    from celltrain.papers.run import study as study
    from celltrain.running.captures import Capture as Capture
    from celltrain.running.event_log import EventLog as EventLog
    from celltrain.running.event_log import read_events as read_events
    from celltrain.running.events import Events as Events
    from celltrain.running.results import RunResult as RunResult
    from celltrain.running.results import run as run

    __version__: str

# Importing celltrain takes a hundredth of a second: a name brings its module when it is first used.
_HOMES = {
    "Cancel": "model.cancel",
    "Compared": "ensemble.comparing",
    "Capture": "running.captures",
    "CancelledError": "errors",
    "CelltrainError": "errors",
    "CelltrainWarning": "errors",
    "ClusterError": "errors",
    "EventLog": "running.event_log",
    "Events": "running.events",
    "Fault": "errors",
    "InputError": "errors",
    "MissingExtraError": "errors",
    "NotTracedError": "errors",
    "OutputError": "errors",
    "PaperError": "errors",
    "PlanError": "errors",
    "Policy": "model.policy_files",
    "PolicyPort": "model.python_policy",
    "PythonPolicy": "model.python_policy",
    "compiled": "model.python_policy",
    "Report": "ensemble.reports",
    "ScenarioError": "errors",
    "Store": "ensemble.store",
    "StoreError": "errors",
    "TuneError": "errors",
    "Tuned": "ensemble.tuning",
    "Episodes": "inspect.why",
    "Why": "inspect.why",
    "episodes": "inspect.why",
    "RunResult": "running.results",
    "draw": "inspect.network_figure",
    "import_graph": "model.graph",
    "max_min_shares": "model.network",
    "read_events": "running.event_log",
    "run": "running.results",
    "check": "model.scenario",
    "compare": "ensemble.comparing",
    "report": "ensemble.reports",
    "load": "model.scenario",
    "n_source": "model.scenario",
    "save": "model.toml",
    "scenarios": "model.shipped",
    "reproduce": "papers",
    "study": "papers",
    "sweep": "ensemble.sweeps",
    "tune": "ensemble.tuning",
    "vet": "ensemble.vetting",
    "why": "inspect.why",
}


#: Submodules with the classes of a scenario by subject, and with all of them.
_SUBMODULES = ("abr", "errors", "models", "policies", "tcp", "topologies")
#: The classes that completion lists here; the others are in the submodules.
_LISTED = ("CelltrainError", "CelltrainWarning", "Epd", "InputError", "Port", "Scenario", "SelectiveDrop", "TailDrop")

#: Deprecated aliases.
_BEFORE = {"Newreno": "NewReno", "NewrenoHoe": "NewRenoHoe"}


def __getattr__(name: str) -> object:
    name = _BEFORE.get(name, name)
    if name == "__version__":
        return import_module("celltrain._core").build()["version"]
    if name == "__all__":
        return sorted([*_HOMES, *import_module("celltrain.model.types").__all__])
    if name in _SUBMODULES:
        return import_module(f"celltrain.{name}")
    # The models take longer to import than all else: `from celltrain import tables` asks for an attribute first.
    if name not in _HOMES and not name[:1].isupper():
        raise AttributeError(f"module 'celltrain' has no attribute {name!r}")
    module = import_module(f"celltrain.{_HOMES.get(name, 'model.types')}")
    if name not in _HOMES and name not in module.__all__:
        raise AttributeError(f"module 'celltrain' has no attribute {name!r}{_advice(name)}")
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def _advice(name: str) -> str:
    """What somebody who asks for a class that there is not may have meant."""
    import difflib

    if (control := name.lower()) in import_module("celltrain.model.scenario").controls():
        return f'; it is a congestion control of a TCP: Vanilla(congestion="{control}"), for example'
    known: list[str] = __getattr__("__all__")  # type: ignore[assignment]
    by_letters = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), by_letters, n=1, cutoff=0.8)
    return f"; did you mean {by_letters[near[0]]}?" if near else ""


def __dir__() -> list[str]:
    functions_and_results = [name for name, home in _HOMES.items() if home != "errors"]
    return sorted({*functions_and_results, *_LISTED, *_SUBMODULES, "__version__"})
