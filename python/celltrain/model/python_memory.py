"""Memory policies written as Python classes.

A class decides which cells enter the shared part of a pool. Every pool with the policy has its own instance. Scenarios name
classes as `celltrain.model.python_policy` explains.

>>> import celltrain as ct
>>> class Dynamic(PythonMemoryPolicy):
...     alpha = 1.0
...
...     def admit(self, view, queue):
...         return view.q_i + 1 <= self.alpha * view.free
>>> path = "switch.sw.memory.pool.main.policy"
>>> short = {"duration": "20ms"}
>>> mine = ct.run(ct.load("memory-formula", settings={path: Dynamic(alpha=2.0), **short}))
>>> native = ct.run(ct.load("memory-formula", settings={path: ct.DynamicThreshold(alpha=2.0), **short}))
>>> mine.fingerprint == native.fingerprint
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from celltrain.errors import Fault, ScenarioError
from celltrain.model.python_policy import Named, class_of, misspelt, setting_problem, settings_of
from celltrain.text import among, described

if TYPE_CHECKING:
    from celltrain._core import MemoryView
    from celltrain.model.types import PythonMemory

#: The ends of a queue from which a cell can be pushed out.
ENDS = ("tail", "head")
_NO_ADMIT = "has no admit(self, view, queue); add it to decide whether a cell may enter"


@dataclass(frozen=True)
class PolicyQueue:
    """A queue of a pool: a port and a priority."""

    port: int
    """Number of the port among the ports of the pool, from 0."""
    priority: int
    """Its priority, 0 to 7."""
    cells_per_second: float
    """The cell rate of the port's link."""


@dataclass(frozen=True)
class PolicyPool:
    """The pool of a memory policy."""

    name: str
    """Names of the memory and the pool, such as `sw/main`."""
    cells: int
    """B: cells of the shared part."""
    queues: tuple[PolicyQueue, ...]
    """The queues, by their numbers."""


class PythonMemoryPolicy(Named):
    """Base class of your own policies of shared memories; override `admit`.

    Class attributes that are numbers, texts, True or False are settings, which the constructor can change.
    """

    _kind = "a policy of memories"
    #: The cell that a queue chosen by `push_out` loses: the last one ("tail") or the next one to be sent ("head").
    push_out_end: str = "tail"

    def __init__(self, **settings: bool | int | float | str) -> None:
        known = settings_of(type(self), PythonMemoryPolicy)
        problems = ((name, value, setting_problem(name, value, known)) for name, value in settings.items())
        faults = [Fault.of_option(name, described(value), problem) for name, value, problem in problems if problem]
        if faults:
            raise ScenarioError(faults)
        self._set = settings
        vars(self).update(settings)

    def start(self, pool: PolicyPool) -> None:
        """Called once before the run, with the pool of the policy."""

    def admit(self, view: MemoryView, queue: int) -> bool:
        """Decides whether a cell that arrives for a queue may enter the shared part.

        Args:
            view: State of the pool: `B`, `Q`, `q_i`, `n`, `N`, `rank`, `priority`, `arriving`, `now` as in formulas; `free`,
                which is B - Q; `counts`, the cells of each queue by its number; `random()`, which draws from the
                pool's own random stream.
            queue: Number of the queue; `start` receives the queues.
        """
        raise ScenarioError.of_option("policy", type(self).__name__, _NO_ADMIT)

    def on_arrival(self, view: MemoryView, queue: int) -> None:
        """Called when a cell arrives for a queue, before `admit`."""

    def on_departure(self, view: MemoryView, queue: int) -> None:
        """Called when a cell of a queue has left the shared part, sent or pushed out."""

    def push_out(self, view: MemoryView, queue: int) -> int | None:
        """Returns the number of the queue that loses a cell, or None to refuse the arriving cell.

        Called if `admit` returned True and the pool is full. A class that does not override this refuses the cell.
        """
        return None

    def _as_model(self) -> PythonMemory:
        """Returns the scenario's table for this policy."""
        from celltrain.model.types import PythonMemory

        return PythonMemory(class_=self._called, settings=self._settings())


def faults(called: str, settings: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Called by the core: returns the faults of a class and its settings, each as key, value and problem."""
    quoted = f'"{called}"'
    try:
        cls = class_of(called, PythonMemoryPolicy)
    except LookupError as error:
        return [("class", quoted, str(error))]
    if cls.push_out_end not in ENDS:
        end = cls.push_out_end
        problem = f"is not an end of a queue; {among(end if isinstance(end, str) else '', ENDS)}"
        return [("class", quoted, f"has push_out_end = {described(end)}, which {problem}")]
    try:
        cls(**settings)
    except ScenarioError as error:
        return [(f"settings.{fault.key}", fault.value, fault.problem) for fault in error.faults]
    except Exception as error:
        return [("settings", "", f"cannot be given to {called}: {type(error).__name__}: {error}")]
    problem = misspelt(cls, PythonMemoryPolicy) or (_NO_ADMIT if cls.admit is PythonMemoryPolicy.admit else "")
    return [("class", quoted, problem)] if problem else []


def methods(called: str) -> tuple[bool, bool, str | None]:
    """Called by the core: whether a class overrides `on_arrival` and `on_departure`, and its end if it pushes out."""
    cls = class_of(called, PythonMemoryPolicy)
    own = [getattr(cls, name) is not getattr(PythonMemoryPolicy, name) for name in ("on_arrival", "on_departure")]
    return own[0], own[1], cls.push_out_end if cls.push_out is not PythonMemoryPolicy.push_out else None


def made(
    called: str, settings: dict[str, Any], pool: tuple[str, int, list[tuple[int, int, float]]]
) -> PythonMemoryPolicy:
    """Called by the core: returns the object that decides for a pool."""
    name, cells, queues = pool
    policy = class_of(called, PythonMemoryPolicy)(**settings)
    policy.start(PolicyPool(name, cells, tuple(PolicyQueue(*queue) for queue in queues)))
    return policy
