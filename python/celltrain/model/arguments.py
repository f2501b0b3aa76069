"""Arguments of public functions: pydantic checks them against their annotations; a handle cancels the call."""

from __future__ import annotations

import builtins
import collections.abc
import dataclasses
import functools
import inspect
import os
import sys
import time
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any, ParamSpec, TypeVar

import typing_extensions

from celltrain import _core
from celltrain.errors import CancelledError, Fault, InputError
from celltrain.text import described

P = ParamSpec("P")
R = TypeVar("R")

#: Texts with a number and its unit. Error messages quote the annotation.
Time = Annotated[str, 'a time with its unit, such as "5us"']
Rate = Annotated[str, 'a rate with its unit, such as "155.52Mbps"']

#: Name of the parameter for options that several functions share: `**options: Unpack[Options]`.
SHARED = "options"
#: Largest number of threads that a caller may request.
MOST_JOBS = 4096

_WORDS: dict[Any, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    types.NoneType: "None",
    os.PathLike: "a path",
    collections.abc.Callable: "a function",
}


def cores() -> int:
    """Returns the number of cores that this process may use, which can be smaller than the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def checked(
    error: type[InputError] = InputError, *, elsewhere: Mapping[str, str] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes a public function refuse arguments whose types do not match its annotations.

    Accepts numpy numbers and arrays, and dictionary views. A function with the option `cancel` ends when that handle is
    cancelled, and shows its progress in notebooks.

    Args:
        error: Type of the error, which lists every argument that is wrong.
        elsewhere: Options that only other functions accept, each with the call to suggest instead: `{first}` is the
            first argument as written, `{value}` the value of the option.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def guarded(*args: P.args, **options: P.kwargs) -> R:
            if sys._getframe(1).f_globals.get("__name__", "").startswith("celltrain."):
                # mypy has checked the calls of this package, and importing pydantic takes a tenth of a second.
                with supervised(options, _parameters(function)[1]):
                    return function(*args, **options)
            if name := next((name for name in elsewhere or {} if name in options), None):
                first = described(args[0]) if args and isinstance(args[0], str) else "scenario"
                advice = (elsewhere or {})[name].format(first=first, value=described(options[name]))
                raise error([Fault.saying(advice, key=name, value=described(options[name]))])
            faults, given, named = _validated(
                function, [*map(_plain, args)], {k: _plain(v) for k, v in options.items()}
            )
            if faults:
                raise error(faults)
            with supervised(named, _parameters(function)[1]):
                return function(*given, **named)

        return guarded

    return decorate


def _validated(function: Callable[..., Any], args: list[Any], options: dict[str, Any]) -> tuple[list[Fault], Any, Any]:
    """Returns the faults of arguments, and the arguments in the types that the annotations require."""
    from pydantic import ValidationError

    signature, hints = _parameters(function)
    if shares(hints) and (unknown := next((name for name in options if name not in hints), None)):
        raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {unknown!r}")
    try:
        return [], *_validator(function)(*args, **options)
    except ValidationError as error:
        parts = error.errors(include_url=False)
        if any("argument" in part["type"] for part in parts):
            # Python's own messages for a wrong number of arguments or an unknown option are clear enough.
            function(*args, **options)
        faults = []
        for place in dict.fromkeys(part["loc"][0] for part in parts):
            name = list(signature.parameters)[place] if isinstance(place, int) else str(place)
            value = args[place] if isinstance(place, int) else options[name]
            problem = f"is not {' or '.join(dict.fromkeys(expected(hints[name])))}"
            faults.append(Fault.of_option(name, described(value), problem))
        return faults, args, options


@functools.cache
def _validator(function: Callable[..., Any]) -> Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]:
    """Returns a function that checks the arguments of a public function, and returns them."""
    from pydantic import ConfigDict, validate_call

    def given(*args: Any, **options: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return args, options

    signature, hints = _parameters(function)
    kinds = {name: hints.get(name, Any) for name in signature.parameters}
    if shares(hints):
        shared = {name: hint for name, hint in hints.items() if name not in kinds}
        kinds[SHARED] = typing_extensions.Unpack[typing_extensions.TypedDict("Shared", shared, total=False)]  # type: ignore[operator]
    # Classes come last, because recognising a class may import all classes of scenarios.
    for name, kind in kinds.items():
        if typing.get_origin(kind) in (typing.Union, types.UnionType):
            members = sorted(typing.get_args(kind), key=lambda one: isinstance(one, _ByName))
            kinds[name] = typing.Union[tuple(members)]  # noqa: UP007
    own = [one.replace(annotation=kinds[name]) for name, one in signature.parameters.items()]
    given.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
    given.__annotations__ = {one.name: one.annotation for one in own}
    return validate_call(config=ConfigDict(strict=True, arbitrary_types_allowed=True))(given)


def _plain(value: Any) -> Any:
    """Returns numpy's numbers and arrays as Python's, and sets and views of dictionaries as lists."""
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return value.tolist()
    return list(value) if isinstance(value, collections.abc.Set | collections.abc.ValuesView) else value


@functools.cache
def _parameters(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Any]]:
    """Returns the signature of a function and the types of its parameters and of the options that it shares."""
    own = inspect.unwrap(function).__globals__
    hints = _hints(function.__annotations__, own)
    if shares(hints):
        [shared] = typing.get_args(hints[SHARED])
        texts = {name: getattr(hint, "__forward_arg__", hint) for name, hint in shared.__annotations__.items()}
        hints |= _hints(texts, vars(sys.modules[shared.__module__]))
    return inspect.signature(function), hints


def shares(hints: Mapping[str, Any]) -> bool:
    """Returns whether a function has options that it shares with others, given the types of its parameters."""
    return typing_extensions.get_origin(hints.get(SHARED)) is typing_extensions.Unpack


def names(function: Callable[..., Any]) -> list[str]:
    """Returns the names of a public function's parameters, and of the options that it shares with others."""
    signature, hints = _parameters(inspect.unwrap(function))
    return [name for name in dict.fromkeys([*signature.parameters, *hints]) if name != SHARED]


def _hints(annotations: Mapping[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Evaluates annotations, without the annotation of the result. `own` contains the names of their module."""
    annotations = {name: hint for name, hint in annotations.items() if name != "return"}
    texts = [hint for hint in annotations.values() if isinstance(hint, str)]
    names = {name for text in texts for name in compile(text, "<annotation>", "eval").co_names}
    # Classes imported only for type checkers are recognised by name, and so are dataclasses, whose fields were checked.
    unknown = {name for name in names if name not in own and not hasattr(builtins, name)}
    by_name = unknown | {name for name in names if dataclasses.is_dataclass(own.get(name))}
    placeholders = {name: _ByName(name, (), {}) for name in by_name}
    annotated = types.SimpleNamespace(__annotations__=annotations)
    return typing.get_type_hints(annotated, globalns=own, localns=placeholders, include_extras=True)


class _ByName(type):
    """A placeholder for a class that has not been imported. Its instances are recognised by the name of their class."""

    def __instancecheck__(cls, value: object) -> bool:
        if any(kind.__name__ == cls.__name__ for kind in type(value).__mro__):
            return True
        from celltrain.model import types as models

        # Some annotations name a union of tables rather than a class; pydantic checks those values.
        return not isinstance(vars(models).get(cls.__name__, type), type)


def expected(hint: Any) -> list[str]:
    """Describes the values that a type accepts.

    >>> expected(typing.Sequence[int] | None)
    ['a list, each item a whole number', 'None']
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    kind = origin or hint
    if origin in (typing.Union, types.UnionType):
        is_path = any(typing.get_origin(one) is os.PathLike for one in inner)
        members = [one for one in inner if one is not str or not is_path]
        return [word for one in members for word in expected(one)]
    if origin is Annotated:
        return [str(inner[1])]
    if kind in _WORDS:
        return [_WORDS[kind]]
    if inner and issubclass(kind, Mapping):
        return ["a table"]
    if inner and issubclass(kind, Collection):
        return [f"a list, each item {' or '.join(dict.fromkeys(expected(inner[0])))}"]
    return [f"a {getattr(hint, '__name__', hint)}"]


def names_of(names: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Returns one name or several names as a tuple; None stays None.

    >>> names_of("sw1"), names_of(["sw1", "sw2"]), names_of(None)
    (('sw1',), ('sw1', 'sw2'), None)
    """
    return (names,) if isinstance(names, str) else None if names is None else tuple(names)


class Cancel:
    """A handle that cancels calls from any thread; pass it as `cancel`. `docs/stopping.md` shows examples.

    A cancelled call raises `CancelledError` within 0.1 s. Sweeps, searches and reproductions keep their finished work,
    as they do after Ctrl-C. The handle stays cancelled, so later calls with it end at once.

    >>> import threading
    >>> import celltrain as ct
    >>> days = ct.n_source(sources=2, link_delay="5us", buffer_cells=100, policy=ct.Ppd(), duration="1000000s")
    >>> handle = ct.Cancel()
    >>> threading.Timer(0.2, handle.cancel).start()
    >>> try:
    ...     ct.run(days, cancel=handle)
    ... except ct.CancelledError as error:
    ...     print(error)
    cancelled
    >>> handle.cancelled
    True
    """

    def __init__(self) -> None:
        self._handle = _core.Cancel()

    def cancel(self) -> None:
        """Cancels all current and future calls with this handle. Returns at once."""
        self._handle.cancel()

    @property
    def cancelled(self) -> bool:
        """True if the handle was cancelled."""
        return self._handle.cancelled

    def __repr__(self) -> str:
        return f"Cancel(cancelled={self.cancelled})"


# The handle of the call on this thread. Calls into the core read it here.
_CURRENT: ContextVar[Cancel | None] = ContextVar("celltrain_cancel", default=None)


def current() -> _core.Cancel | None:
    """Returns the core's handle of the call on this thread; None if the call has none."""
    handle = _CURRENT.get()
    return None if handle is None else handle._handle


def check() -> None:
    """Raises `CancelledError` if the call on this thread was cancelled."""
    handle = _CURRENT.get()
    if handle is not None and handle.cancelled:
        raise CancelledError("cancelled")


@contextmanager
def ended_by(handle: Cancel | None) -> Iterator[None]:
    """Applies the handle to the calls in the block that follows."""
    if handle is None:
        yield
        return
    token = _CURRENT.set(handle)
    try:
        check()
        yield
    finally:
        _CURRENT.reset(token)


#: Seconds before a bar appears.
AFTER_S = 1.0


@contextmanager
def supervised(arguments: dict[str, Any], parameters: Collection[str]) -> Iterator[None]:
    """Applies a call's `cancel`; in notebooks also shows a progress bar, unless the caller passes `progress`."""
    with ended_by(arguments.get("cancel")):
        if "progress" not in parameters or arguments.get("progress") is not None or not in_notebook():
            yield
            return
        arguments["progress"] = bar()
        yield


def in_notebook() -> bool:
    """Returns True in a Jupyter kernel. Does not import IPython."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def bar() -> Callable[[Any], None]:
    """Returns a callback for `progress` that shows a bar. It accepts a fraction, or an object that counts runs."""
    from IPython.display import ProgressBar

    began, drawn = time.monotonic(), ProgressBar(100)

    def update(progress: Any) -> None:
        percent = int(100 * share(progress))
        if time.monotonic() - began >= AFTER_S and percent != drawn.progress:
            if drawn.progress == 0:
                drawn.display()
            drawn.progress = percent

    return update


def share(progress: Any) -> float:
    """Returns the completed share.

    >>> share(0.25)
    0.25
    """
    if isinstance(progress, int | float):
        return float(progress)
    done, total = getattr(progress, "done", None), getattr(progress, "total", None)
    if done is None or total is None:
        done, total = progress.runs, progress.most_runs
    return float(done / max(total, 1))
