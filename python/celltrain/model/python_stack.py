"""Transport stacks written as Python classes.

Every end of a flow has an object of the class. A scenario names the class as `celltrain.model.python_policy` explains.

>>> import celltrain as ct
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

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from celltrain.errors import Fault, ScenarioError
from celltrain.model.python_policy import Named, class_of, misspelt, setting_problem, settings_of
from celltrain.text import described

if TYPE_CHECKING:
    from celltrain.model.types import PythonStack

#: Methods that a class must override, with the purpose of each.
_METHODS = {
    "on_packet": "on_packet(self, now, packet); add it to handle packets",
    "poll": "poll(self, now); add it to return the packets to send",
    "next_timeout": "next_timeout(self, now); add it to return the time of the next poll, or None",
}


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
    #: Number of bytes that the receiving application has received, in order; maintained by the stack.
    received: int = 0
    #: True at the sender once a whole file has been acknowledged. The stack updates it.
    completed: bool = False
    #: The end of the flow; set before `start`.
    end: StackEnd

    def __init__(self, **settings: bool | int | float | str) -> None:
        known = settings_of(type(self), Stack)
        problems = {name: setting_problem(name, value, known) for name, value in settings.items()}
        if faults := [Fault.of_option(name, described(settings[name]), one) for name, one in problems.items() if one]:
            raise ScenarioError(faults)
        self._set = settings
        vars(self).update(settings)

    def start(self) -> None:
        """Called once before the run."""

    def on_packet(self, now: int, packet: bytes) -> None:
        """Handles a packet that has arrived. The packet starts with its IP header. A call of `poll` follows."""
        raise ScenarioError.of_option("stack", type(self).__name__, f"has no {_METHODS['on_packet']}")

    def poll(self, now: int) -> Iterable[bytes]:
        """Returns the packets to send now. Each starts with its IP header.

        Called first when the flow starts, then after arrivals, and when a timeout has expired.
        """
        raise ScenarioError.of_option("stack", type(self).__name__, f"has no {_METHODS['poll']}")

    def next_timeout(self, now: int) -> int | None:
        """Returns when to call `poll` next if no packet arrives before; None for never. Called after `poll`.

        If the method returns `now`, `poll` is called one nanosecond later.
        """
        raise ScenarioError.of_option("stack", type(self).__name__, f"has no {_METHODS['next_timeout']}")

    def _as_model(self) -> PythonStack:
        """Returns the scenario's table for this stack."""
        from celltrain.model.types import PythonStack

        return PythonStack(class_=self._called, settings=self._settings(), **_mss(getattr(self, "mss", None)))


def mss_of(called: str, settings: dict[str, Any]) -> dict[str, str]:
    """Returns the key `mss` of a scenario's table for a class with these settings, if it has an attribute `mss`.

    The core also calls this function, and refuses other values.
    """
    return _mss(settings.get("mss", getattr(class_of(called, Stack), "mss", None)))


def _mss(mss: object) -> dict[str, str]:
    return {"mss": f"{mss}B"} if isinstance(mss, int) and not isinstance(mss, bool) else {}


def faults(called: str, settings: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Called by the core: returns the faults of a class and its settings, each as key, value and problem."""
    quoted = f'"{called}"'
    try:
        cls = class_of(called, Stack)
    except LookupError as error:
        return [("class", quoted, str(error))]
    try:
        cls(**settings)
    except ScenarioError as error:
        return [(f"settings.{fault.key}", fault.value, fault.problem) for fault in error.faults]
    except Exception as error:
        return [("settings", "", f"cannot be given to {called}: {type(error).__name__}: {error}")]
    if problem := misspelt(cls, Stack):
        return [("class", quoted, problem)]
    missing = [words for name, words in _METHODS.items() if getattr(cls, name) is getattr(Stack, name)]
    return [("class", quoted, f"has no {words}") for words in missing]


def made(called: str, settings: dict[str, Any], end: tuple[Any, ...]) -> Stack:
    """Called by the core: returns the stack at an end of a flow."""
    stack = class_of(called, Stack)(**settings)
    stack.end = StackEnd(*end)
    if (answer := stack.start()) is not None:  # type: ignore[func-returns-value]
        raise TypeError(f"start() returned a {type(answer).__name__}, but must return None")
    return stack
