"""Policies of ports, policies of memories and transport stacks written as Python classes.

A scenario names the class but loads no code. So the class must be loaded already, or its module must be named in the
environment variable CELLTRAIN_POLICIES. Every port, pool or end of a flow has its own instance.

>>> import celltrain as ct
>>> class Half(PythonPolicy):
...     share = 0.5
...
...     def admit(self, view, vc):
...         return view.X <= self.share * view.K
>>> lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=200, policy=Half(share=0.6), duration="20ms")
>>> formula = ct.Formula(admit="X <= 0.6 * K")
>>> same = ct.n_source(sources=3, link_delay="5us", buffer_cells=200, policy=formula, duration="20ms")
>>> ct.run(lan).fingerprint == ct.run(same).fingerprint
True

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

>>> class Blaster(Stack):
...     def on_packet(self, now, packet):
...         self.received += len(packet) - 20
...
...     def poll(self, now):
...         self.next = now + 1_000_000
...         header = bytes([0x45, 0, 2, 40, 0, 0, 0, 0, 64, 253, 0, 0]) + self.end.local + self.end.remote
...         return [header + bytes(532)] if self.end.side == "sender" else []
...
...     def next_timeout(self, now):
...         return self.next
>>> lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=200, policy=ct.Epd(), duration="20ms")
>>> [round(goodput) for goodput in ct.run(lan.replace(stack=Blaster())).flows["goodput_mbps"].to_pylist()]
[4, 4]
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, TypeVar

from celltrain.errors import Fault, ScenarioError
from celltrain.text import among, described, nearest

if TYPE_CHECKING:
    from celltrain._core import MemoryView, View
    from celltrain.model.types import Python, PythonMemory, PythonStack

#: Values of `when_full`.
WHEN_FULL = ("lose_rest_of_frame", "lose_cell", "push_out_front")
#: The ends of a queue from which a cell can be pushed out.
ENDS = ("tail", "head")

C = TypeVar("C", bound="Named")

#: Classes in this process by their names in scenarios, including those of scripts and notebooks.
KNOWN: dict[str, type[Any]] = {}
#: Modules that may be imported for a scenario, because they were loaded in the process that sent the work.
_SENT: set[str] = set()
#: The environment variable that names further modules, separated by commas.
VARIABLE = "CELLTRAIN_POLICIES"


class Named:
    """Base of classes that scenarios choose by module and name, with settings.

    Class attributes that are numbers, texts, True or False are settings, which the constructor can change.
    """

    _called: ClassVar[str] = ""
    #: Kind of the classes, for messages, and the setting of a scenario that names such a class.
    _kind: ClassVar[str] = ""
    _option: ClassVar[str] = "policy"
    #: Methods that a class must override, with the purpose of each.
    _needed: ClassVar[Mapping[str, str]] = {}
    _set: dict[str, Any]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._called = f"{cls.__module__}:{cls.__qualname__}"
        KNOWN[cls._called] = cls

    def __init__(self, **settings: bool | int | float | str) -> None:
        known = settings_of(type(self))
        problems = {name: self._setting_problem(name, value, known) for name, value in settings.items()}
        if faults := [Fault.of_option(name, described(settings[name]), one) for name, one in problems.items() if one]:
            raise ScenarioError(faults)
        self._set = settings
        vars(self).update(settings)

    def _settings(self) -> dict[str, Any]:
        """Returns the settings; raises `ScenarioError` if a new object with them would have other attributes."""
        name = type(self).__name__
        if not hasattr(self, "_set"):
            raise ScenarioError.of_option(name, "__init__", "does not call super().__init__(**settings)")
        try:
            new = vars(type(self)(**self._set))
        except TypeError as error:
            raise ScenarioError.of_option(
                name, "__init__", f"needs arguments that are not settings, which are class attributes: {error}"
            ) from None
        for key, value in vars(self).items():
            if isinstance(value, bool | int | float | str) and new.get(key) != value:
                raise ScenarioError.of_option(
                    f"{name}.{key}",
                    described(value),
                    f"has no effect, because a run makes new objects; make {key} a class attribute, and write "
                    f"{name}({key}={value!r})",
                )
        return self._set

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._set.items())})"

    @classmethod
    def _setting_problem(cls, name: str, value: object, known: Mapping[str, Any]) -> str:
        """Returns what is wrong with a setting; empty if nothing is. `known` has the defaults of all settings."""
        if name not in known:
            return f"is not a setting; {among(name, known)}"
        kind, default = kind_of(value), known[name]
        if not kind:
            return "is not a number, a string, True or False"
        return "" if kind == kind_of(default) else f"is not {kind_of(default)}, as the default {described(default)} is"

    @classmethod
    def _class_problem(cls) -> str:
        """Returns what is wrong with an attribute of the class that is not a setting; empty if nothing is."""
        return ""

    @classmethod
    @abstractmethod
    def _started(cls, settings: dict[str, Any], place: tuple[Any, ...]) -> Any:
        """Returns the object that the core calls in a run; `place` is the port, the pool or the end of a flow."""

    def _lacks(self, method: str) -> NoReturn:
        raise ScenarioError.of_option(self._option, type(self).__name__, f"has no {self._needed[method]}")


@dataclass(frozen=True)
class PolicyPort:
    """The port of a policy."""

    capacity: int | None
    """K: the buffer in cells; None if it is unlimited."""
    cells_per_second: float
    """C: the cell rate of the link."""
    vcs: tuple[str, ...]
    """Names of the VCs that cross the port, in the order of their numbers."""


class PythonPolicy(Named):
    """Base class of your own policies; override `admit`.

    Class attributes that are numbers, texts, True or False are settings, which the constructor can change.
    """

    _kind = "a policy of ports"
    _needed = {"admit": "admit(self, view, vc); add it to decide whether a frame may enter"}  # noqa: RUF012
    #: Action if a cell of an admitted frame finds the buffer full, as for `celltrain.Formula`.
    when_full: str = "lose_rest_of_frame"

    @classmethod
    def _setting_problem(cls, name: str, value: object, known: Mapping[str, Any]) -> str:
        return _not_among(value, *_FULL) if name == "when_full" else super()._setting_problem(name, value, known)

    @classmethod
    def _class_problem(cls) -> str:
        problem = _not_among(cls.when_full, *_FULL)
        return f"has when_full = {described(cls.when_full)}, which {problem}" if problem else ""

    @classmethod
    def _started(cls, settings: dict[str, Any], place: tuple[Any, ...]) -> Any:
        policy = cls(**settings)
        policy.start(PolicyPort(*place))
        return policy.admit

    def start(self, port: PolicyPort) -> None:
        """Called once before the run, with the port of the policy."""

    def admit(self, view: View, vc: int) -> bool:
        """Decides whether the frame whose first cell arrives now may enter.

        Args:
            view: State of the buffer: `X`, `K`, `Y`, `N`, `V`, `C`, `now`, `tagged` as in formulas; `counts`, the cells
                of each VC by its number; `random()`, which draws from the port's own random stream.
            vc: Number of the frame's VC at this port; `start` receives the names.
        """
        self._lacks("admit")

    def _as_model(self) -> Python:
        """Returns the scenario's table for this policy."""
        from celltrain.model.types import Python

        settings = {name: value for name, value in self._settings().items() if name != "when_full"}
        return Python(class_=self._called, settings=settings, when_full=self.when_full)  # type: ignore[arg-type]


@dataclass(frozen=True)
class PolicyQueue:
    """A queue of a pool: a port and a priority."""

    port: int
    """Number of the port among the ports of the pool, from 0."""
    priority: int
    """Priority of the queue, 0 to 7."""
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
    _needed = {"admit": "admit(self, view, queue); add it to decide whether a cell may enter"}  # noqa: RUF012
    #: The cell that a queue chosen by `push_out` loses: the last one ("tail") or the next one to be sent ("head").
    push_out_end: str = "tail"

    @classmethod
    def _class_problem(cls) -> str:
        problem = _not_among(cls.push_out_end, "an end of a queue", ENDS)
        return f"has push_out_end = {described(cls.push_out_end)}, which {problem}" if problem else ""

    @classmethod
    def _started(cls, settings: dict[str, Any], place: tuple[Any, ...]) -> Any:
        policy, (name, cells, queues) = cls(**settings), place
        policy.start(PolicyPool(name, cells, tuple(PolicyQueue(*queue) for queue in queues)))
        return policy

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
        self._lacks("admit")

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


@dataclass(frozen=True)
class StackEnd:
    """The end of a flow at which a stack runs."""

    flow: str
    """Name of the flow."""
    side: Literal["sender", "receiver"]
    """The end of the flow that sends the data."""
    local: bytes
    """IPv4 address of this end: four bytes."""
    remote: bytes
    """IPv4 address of the other end."""
    seed: int
    """Seed for the stack's random numbers. It depends on the run's seed, the flow and the side."""
    file_bytes: int | None
    """Size of the file that the flow sends; None for endless data."""


class Stack(Named):
    """Base class of your own transport stacks; override `on_packet`, `poll` and `next_timeout`.

    Class attributes that are numbers, texts, True or False are settings, which the constructor can change. An attribute
    `mss` is also the maximum payload of a packet in bytes, in addition to 40 bytes of headers. Without it, the maximum
    is 512. Times are whole nanoseconds since the start of the run.
    """

    _kind = "a stack"
    _option = "stack"
    _needed = {  # noqa: RUF012
        "on_packet": "on_packet(self, now, packet); add it to handle packets",
        "poll": "poll(self, now); add it to return the packets to send",
        "next_timeout": "next_timeout(self, now); add it to return the time of the next poll, or None",
    }
    #: Number of bytes that the receiving application has received, in order; maintained by the stack.
    received: int = 0
    #: True at the sender once a whole file has been acknowledged. The stack updates it.
    completed: bool = False
    #: The end of the flow; set before `start`.
    end: StackEnd

    @classmethod
    def _started(cls, settings: dict[str, Any], place: tuple[Any, ...]) -> Any:
        stack = cls(**settings)
        stack.end = StackEnd(*place)
        if (answer := stack.start()) is not None:  # type: ignore[func-returns-value]
            raise TypeError(f"start() returned a {type(answer).__name__}, but must return None")
        return stack

    def start(self) -> None:
        """Called once before the run."""

    def on_packet(self, now: int, packet: bytes) -> None:
        """Handles a packet that has arrived. The packet starts with its IP header. A call of `poll` follows."""
        self._lacks("on_packet")

    def poll(self, now: int) -> Iterable[bytes]:
        """Returns the packets to send now. Each starts with its IP header.

        Called first when the flow starts, then after arrivals, and when a timeout has expired.
        """
        self._lacks("poll")

    def next_timeout(self, now: int) -> int | None:
        """Returns when to call `poll` next if no packet arrives before; None for never. Called after `poll`.

        If the method returns `now`, `poll` is called one nanosecond later.
        """
        self._lacks("next_timeout")

    def _as_model(self) -> PythonStack:
        """Returns the scenario's table for this stack."""
        from celltrain.model.types import PythonStack

        return PythonStack(class_=self._called, settings=self._settings(), **_mss(getattr(self, "mss", None)))


#: The base of each kind of class, by the name that the core uses.
BASES: dict[str, type[Named]] = {"port": PythonPolicy, "memory": PythonMemoryPolicy, "stack": Stack}


# Functions that the core calls.


def faults(kind: str, called: str, settings: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Returns the faults found in a class and in its settings, each as key, value and problem.

    `kind` is a key of `BASES`.
    """
    quoted, base = json.dumps(called), BASES[kind]
    try:
        cls = class_of(called, base)
    except LookupError as error:
        return [("class", quoted, str(error))]
    if base is PythonPolicy and "when_full" in settings:
        problem = "is not a setting of the class; write it into the table, next to class"
        return [("settings.when_full", json.dumps(settings["when_full"]), problem)]
    if problem := cls._class_problem():
        return [("class", quoted, problem)]
    try:
        cls(**settings)
    except ScenarioError as error:
        return [(f"settings.{fault.key}", fault.value, fault.problem) for fault in error.faults]
    except Exception as error:
        return [("settings", "", f"cannot be given to {called}: {type(error).__name__}: {error}")]
    if problem := misspelt(cls):
        return [("class", quoted, problem)]
    needed = cls._needed.items()
    return [("class", quoted, f"has no {words}") for name, words in needed if getattr(cls, name) is getattr(base, name)]


def made(kind: str, called: str, settings: dict[str, Any], place: tuple[Any, ...]) -> Any:
    """Creates the object for a port, a pool or an end of a flow. `kind` is a key of `BASES`."""
    return class_of(called, BASES[kind])._started(settings, place)


def when_full(called: str) -> str | None:
    """Returns a class's `when_full`; None if there is no such class, or the value is invalid."""
    try:
        cls = class_of(called, PythonPolicy)
    except LookupError:
        return None
    return None if cls._class_problem() else cls.when_full


def methods(called: str) -> tuple[bool, bool, str | None]:
    """Returns whether a class overrides `on_arrival` and `on_departure`, and its end if it pushes out."""
    cls = class_of(called, PythonMemoryPolicy)
    own = [getattr(cls, name) is not getattr(PythonMemoryPolicy, name) for name in ("on_arrival", "on_departure")]
    return own[0], own[1], cls.push_out_end if cls.push_out is not PythonMemoryPolicy.push_out else None


def mss_of(called: str, settings: dict[str, Any]) -> dict[str, str]:
    """Returns the key `mss` of a scenario's table for a class with these settings, if it has an attribute `mss`.

    The core also calls this function, and refuses other values.
    """
    return _mss(settings.get("mss", getattr(class_of(called, Stack), "mss", None)))


def _mss(mss: object) -> dict[str, str]:
    return {"mss": f"{mss}B"} if isinstance(mss, int) and not isinstance(mss, bool) else {}


def traceback_of(error: BaseException) -> list[str]:
    """Returns an exception's traceback without the last line, which is in the message.

    The traceback begins at the user's code, after the calls of this package.
    """
    begin = error.__traceback__
    while begin is not None and begin.tb_frame.f_globals.get("__name__", "").startswith("celltrain."):
        begin = begin.tb_next
    lines = "".join(traceback.format_exception(type(error), error, begin)).splitlines()
    last = "".join(traceback.format_exception_only(type(error), error)).splitlines()
    return lines[:-1] if lines[-1:] == last else lines


# Classes and their settings.


def modules_of(scenarios: Iterable[str]) -> tuple[str, ...]:
    """Returns the loaded modules that define classes named by these scenarios (as JSON)."""
    texts = [text for text in scenarios if '"python"' in text]
    found = (called.partition(":")[0] for called in KNOWN if any(json.dumps(called) in text for text in texts))
    return tuple(sorted(set(found)))


def allow(modules: Iterable[str]) -> None:
    """Allows scenarios to name classes in these modules, because the sender of the work had loaded them."""
    _SENT.update(modules)


def named_modules() -> set[str]:
    """Returns the modules that may be imported for a policy: named by the user or by the sender of the work."""
    return _SENT | {one.strip() for one in os.environ.get(VARIABLE, "").split(",")}


def class_of(called: str, base: type[C]) -> type[C]:
    """Returns the subclass of `base` with this module and name; raises `LookupError` with the problem."""
    found = KNOWN.get(called) or _loaded(called)
    if not isinstance(found, type) or not issubclass(found, base):
        if isinstance(found, type) and issubclass(found, Named) and found._kind:
            other = f"is {found._kind} (a subclass of celltrain.{_base_of(found).__name__})"
            raise LookupError(f"{other}, but here {base._kind} is needed")
        raise LookupError(f"is not a subclass of celltrain.{base.__name__}")
    return found


def _base_of(cls: type) -> type[Named]:
    """Returns the class of celltrain from which a class is derived."""
    return next(base for base in BASES.values() if issubclass(cls, base))


def _loaded(called: str) -> Any:
    """Returns the object with this module and name; raises `LookupError` with the problem."""
    module, _, name = called.partition(":")
    if not module or not name:
        raise LookupError('is not a class; write its module, a colon and its name, such as "mine:Mine"')
    if "<locals>" in name:
        raise LookupError("was defined inside a function and cannot be found by another process; move it to a module")
    if module not in sys.modules and module not in named_modules():
        problem = f"needs the module {module}, which is not loaded; scenarios never load code: import it first, or set"
        raise LookupError(f"{problem} the environment variable {VARIABLE} to {module}")
    try:
        place: Any = sys.modules.get(module) or importlib.import_module(module)
    except ImportError as error:
        raise LookupError(f"needs the module {module}, which this Python cannot import: {error}") from None
    except Exception as error:
        raise LookupError(f"needs the module {module}, which raises {type(error).__name__}: {error}") from None
    for part in name.split("."):
        place = getattr(place, part, None)
    if place is None:
        another = "this process, which runs another program; move the class to a module"
        raise LookupError(f"is not a class of {another if module == '__main__' else module}")
    return place


def misspelt(cls: type) -> str:
    """Describes a method that resembles one that celltrain calls, and that the class lacks; empty if there is none.

    >>> class Late(PythonPolicy):
    ...     def strat(self, port): ...
    >>> misspelt(Late)
    "has a method strat, which celltrain never calls; did you mean start? A helper's name begins with _"
    """
    base = _base_of(cls)
    bases = [one for one in cls.__mro__ if issubclass(one, base) and one is not base]
    own = {
        name: None for one in bases for name in vars(one) if not name.startswith("_") and callable(getattr(cls, name))
    }
    missing = [name for name, hook in vars(base).items() if callable(hook) and name[0] != "_" and name not in own]
    for name in own:
        if not hasattr(base, name) and (meant := nearest(name, missing, cutoff=0.8)):
            return (
                f"has a method {name}, which celltrain never calls; did you mean {meant}? A helper's name begins with _"
            )
    return ""


#: The meaning of `when_full`, and its values.
_FULL = "an action for a full buffer", WHEN_FULL


def _not_among(value: object, what: str, known: tuple[str, ...]) -> str:
    """Describes the problem with a value that must be one of some words; empty if the value is valid."""
    if isinstance(value, str) and value in known:
        return ""
    return f"is not {what}; {among(value if isinstance(value, str) else '', known)}"


def settings_of(cls: type) -> dict[str, Any]:
    """Returns the settings of a class with their defaults: attributes that are numbers, texts, True or False."""
    base = _base_of(cls)
    bases = [one for one in reversed(cls.__mro__) if issubclass(one, base) and one is not base]
    attributes = {name: value for one in bases for name, value in vars(one).items()}
    return {
        name: value
        for name, value in attributes.items()
        if isinstance(value, bool | int | float | str) and not name.startswith("_") and name not in vars(base)
    }


def kind_of(value: object) -> str:
    """Returns the kind of a setting's value; empty if settings cannot have this kind of value."""
    kinds = ((bool, "True or False"), (int | float, "a number"), (str, "a text"))
    return next((words for kind, words in kinds if isinstance(value, kind)), "")
