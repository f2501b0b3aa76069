"""Policies written as Python classes.

A class decides which frames a port admits. Every port with the policy has its own instance, which is called once per
frame. A scenario names the class but loads no code. So the class must be loaded already, or its module must be named in
the environment variable CELLTRAIN_POLICIES.

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
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from celltrain.errors import Fault, ScenarioError
from celltrain.text import among, described, nearest

if TYPE_CHECKING:
    from celltrain._core import View
    from celltrain.model.types import Python

#: Values of `when_full`.
WHEN_FULL = ("lose_rest_of_frame", "lose_cell", "push_out_front")
_NO_ADMIT = "has no admit(self, view, vc); add it to decide whether a frame may enter"

C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])

#: Classes in this process by their names in scenarios, including those of scripts and notebooks.
KNOWN: dict[str, type[Any]] = {}
#: Modules that may be imported for a scenario, because they were loaded in the process that sent the work.
_SENT: set[str] = set()
#: The environment variable that names further modules, separated by commas.
VARIABLE = "CELLTRAIN_POLICIES"


@dataclass(frozen=True)
class PolicyPort:
    """The port of a policy."""

    capacity: int | None
    """K: the buffer in cells; None if it is unlimited."""
    cells_per_second: float
    """C: the cell rate of the link."""
    vcs: tuple[str, ...]
    """Names of the VCs that cross the port, in the order of their numbers."""


class Named:
    """Base of classes that scenarios choose by module and name, with settings."""

    _called: ClassVar[str] = ""
    #: Kind of the classes, for messages.
    _kind: ClassVar[str] = ""
    _set: dict[str, Any]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._called = f"{cls.__module__}:{cls.__qualname__}"
        KNOWN[cls._called] = cls

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


class PythonPolicy(Named):
    """Base class of your own policies; override `admit`.

    Class attributes that are numbers, texts, True or False are settings, which the constructor can change.
    """

    _kind = "a policy of ports"
    #: Action if a cell of an admitted frame finds the buffer full, as for `celltrain.Formula`.
    when_full: str = "lose_rest_of_frame"

    def __init__(self, **settings: bool | int | float | str) -> None:
        known = settings_of(type(self), PythonPolicy)
        faults = []
        for name, value in settings.items():
            problem = _when_full_problem(value) if name == "when_full" else setting_problem(name, value, known)
            if problem:
                faults.append(Fault.of_option(name, described(value), problem))
        if faults:
            raise ScenarioError(faults)
        self._set = settings
        vars(self).update(settings)

    def start(self, port: PolicyPort) -> None:
        """Called once before the run, with the port of the policy."""

    def admit(self, view: View, vc: int) -> bool:
        """Decides whether the frame whose first cell arrives now may enter.

        Args:
            view: State of the buffer: `X`, `K`, `Y`, `N`, `V`, `C`, `now`, `tagged` as in formulas; `counts`, the cells
                of each VC by its number; `random()`, which draws from the port's own random stream.
            vc: Number of the frame's VC at this port; `start` receives the names.
        """
        raise ScenarioError.of_option("policy", type(self).__name__, _NO_ADMIT)

    def _as_model(self) -> Python:
        """Returns the scenario's table for this policy."""
        from celltrain.model.types import Python

        settings = {name: value for name, value in self._settings().items() if name != "when_full"}
        return Python(class_=self._called, settings=settings, when_full=self.when_full)  # type: ignore[arg-type]


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


def when_full(called: str) -> str | None:
    """Called by the core: returns a class's `when_full`; None if there is no such class, or the value is invalid."""
    try:
        value = class_of(called, PythonPolicy).when_full
    except LookupError:
        return None
    return None if _when_full_problem(value) else value


def faults(called: str, settings: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Called by the core: returns the faults of a class and its settings, each as key, value and problem."""
    quoted = json.dumps(called)
    try:
        cls = class_of(called, PythonPolicy)
    except LookupError as error:
        return [("class", quoted, str(error))]
    if "when_full" in settings:
        problem = "is not a setting of the class; write it into the table, next to class"
        return [("settings.when_full", json.dumps(settings["when_full"]), problem)]
    if problem := _when_full_problem(cls.when_full):
        return [("class", quoted, f"has when_full = {described(cls.when_full)}, which {problem}")]
    try:
        cls(**settings)
    except ScenarioError as error:
        return [(f"settings.{fault.key}", fault.value, fault.problem) for fault in error.faults]
    except Exception as error:
        return [("settings", "", f"cannot be given to {called}: {type(error).__name__}: {error}")]
    if problem := misspelt(cls, PythonPolicy):
        return [("class", quoted, problem)]
    if cls.admit is PythonPolicy.admit:
        return [("class", quoted, _NO_ADMIT)]
    return []


def made(called: str, settings: dict[str, Any], port: tuple[int | None, float, tuple[str, ...]]) -> Callable[..., Any]:
    """Called by the core: returns the function that decides at a port."""
    policy = class_of(called, PythonPolicy)(**settings)
    policy.start(PolicyPort(*port))
    return policy.admit


def traceback_of(error: BaseException) -> list[str]:
    """Called by the core: returns an exception's traceback without the last line, which is in the message.

    The traceback begins at the user's code, after the calls of this package.
    """
    begin = error.__traceback__
    while begin is not None and begin.tb_frame.f_globals.get("__name__", "").startswith("celltrain."):
        begin = begin.tb_next
    lines = "".join(traceback.format_exception(type(error), error, begin)).splitlines()
    last = "".join(traceback.format_exception_only(type(error), error)).splitlines()
    return lines[:-1] if lines[-1:] == last else lines


def class_of(called: str, base: type[C]) -> type[C]:
    """Returns the subclass of `base` with this module and name; raises `LookupError` with the problem."""
    found = KNOWN.get(called) or _loaded(called)
    if not isinstance(found, type) or not issubclass(found, base):
        if isinstance(found, type) and issubclass(found, Named) and issubclass(base, Named) and found._kind:
            raise LookupError(
                f"is {found._kind} (a subclass of celltrain.{_base_of(found)}), but here {base._kind} is needed"
            )
        raise LookupError(f"is not a subclass of celltrain.{base.__name__}")
    return found


def _base_of(cls: type) -> str:
    """Returns the name of the class of celltrain from which a class is derived."""
    return next(base.__name__ for base in cls.__mro__ if base.__module__.startswith("celltrain."))


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


def misspelt(cls: type, base: type) -> str:
    """Describes a method that resembles one that celltrain calls, and that the class lacks; empty if there is none.

    >>> class Late(PythonPolicy):
    ...     def strat(self, port): ...
    >>> misspelt(Late, PythonPolicy)
    "has a method strat, which nobody calls; did you mean start? A helper's name begins with _"
    """
    bases = [one for one in cls.__mro__ if issubclass(one, base) and one is not base]
    own = {
        name: None for one in bases for name in vars(one) if not name.startswith("_") and callable(getattr(cls, name))
    }
    missing = [name for name, hook in vars(base).items() if callable(hook) and name[0] != "_" and name not in own]
    for name in own:
        if not hasattr(base, name) and (meant := nearest(name, missing, cutoff=0.8)):
            return f"has a method {name}, which nobody calls; did you mean {meant}? A helper's name begins with _"
    return ""


def _when_full_problem(value: object) -> str:
    """Describes the problem with a value of `when_full`; empty if the value is valid."""
    if isinstance(value, str) and value in WHEN_FULL:
        return ""
    return f"is not an action for a full buffer; {among(value if isinstance(value, str) else '', WHEN_FULL)}"


def settings_of(cls: type, base: type) -> dict[str, Any]:
    """Returns the settings of a class with their defaults: attributes that are numbers, texts, True or False."""
    bases = [one for one in reversed(cls.__mro__) if issubclass(one, base) and one is not base]
    attributes = {name: value for one in bases for name, value in vars(one).items()}
    return {
        name: value
        for name, value in attributes.items()
        if isinstance(value, bool | int | float | str) and not name.startswith("_") and name not in vars(base)
    }


def setting_problem(name: str, value: object, known: Mapping[str, Any]) -> str:
    """Returns what is wrong with a setting of a class, whose settings have the defaults `known`; empty if nothing is."""
    if name not in known:
        return f"is not a setting; {among(name, known)}"
    kind = _kind(value)
    if not kind:
        return "is not a number, a text, True or False"
    default = known[name]
    return "" if kind == _kind(default) else f"is not {_kind(default)}, as the default {described(default)} is"


def _kind(value: object) -> str:
    """Returns the kind of a setting's value; empty if settings cannot have this kind of value."""
    kinds = ((bool, "True or False"), (int | float, "a number"), (str, "a text"))
    return next((words for kind, words in kinds if isinstance(value, kind)), "")
