"""What a public function is given, against what its annotations ask for: a wrong type is refused in our words, all at once."""

from __future__ import annotations

import collections.abc
import errno
import functools
import inspect
import operator
import os
import pathlib
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ParamSpec, TypeVar

from celltrain.errors import Fault, InputError
from celltrain.text import described, is_text

P = ParamSpec("P")
R = TypeVar("R")

#: Texts that are a number and its unit, by what an annotation calls them; whoever gives a plain number is told so.
Time = Annotated[str, 'a time with its unit, such as "5us"']
Rate = Annotated[str, 'a rate with its unit, such as "155.52Mbps"']

#: Threads anybody may ask for.
MOST_JOBS = 4096


def cores() -> int:
    """Cores this process may use, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_PATH = "a path"
_WORDS: dict[Any, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    dict: "a table",
    types.NoneType: "None",
}


def checked(
    error: type[InputError] = InputError, *, elsewhere: Mapping[str, str] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes a function refuse arguments of types it does not take; nothing is looked at before its first call.

    What stands for a number, a list or a path comes as Python's own: numbers and arrays of numpy, views of tables, anything
    with a path's protocol.

    Args:
        error: What it raises, with every argument that is wrong.
        elsewhere: Options that only other functions take, and which call takes each: `{first}` is the first argument as
            written, `{value}` the option's.

    >>> @checked()
    ... def send(cells: int, name: str | None = None) -> None: ...
    >>> send("many", name=b"x")
    Traceback (most recent call last):
        ...
    celltrain.errors.InputError: cells = 'many' is not a whole number
    name = b'x' is not a text or None
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def guarded(*args: P.args, **options: P.kwargs) -> R:
            signature, hints = _asked(function)
            try:
                given = signature.bind(*args, **options)
            except TypeError:
                for name, value in options.items():
                    if name in (elsewhere or {}) and name not in signature.parameters:
                        first = described(args[0]) if args and isinstance(args[0], str) else "scenario"
                        said = (elsewhere or {})[name].format(first=first, value=described(value))
                        raise error([Fault.saying(said, key=name, value=described(value))]) from None
                # A number of arguments, or names of options, that there are not: Python's own words are as good.
                return function(*args, **options)
            faults = [
                Fault.of_option(name, described(value), f"is not {' or '.join(dict.fromkeys(expected(hints[name])))}")
                for name, value in given.arguments.items()
                if name in hints and not fits(value, hints[name])
            ]
            if faults:
                raise error(faults)
            given.arguments.update(
                {name: taken(value, hints[name]) for name, value in given.arguments.items() if name in hints}
            )
            return function(*given.args, **given.kwargs)

        return guarded

    return decorate


@functools.cache
def _asked(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Any]]:
    """A function's parameters, and what each takes."""
    names = _Names(sys.modules[function.__module__].__dict__)
    hints = {
        # The names of annotations that only checkers of types import are looked up here too.
        name: eval(hint, {}, names) if isinstance(hint, str) else hint
        for name, hint in inspect.get_annotations(function).items()
        if name != "return"
    }
    signature = inspect.signature(function)
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL and name in hints:
            # Arguments without names come as one tuple.
            hints[name] = typing.cast("Any", collections.abc.Sequence)[hints[name]]
    return signature, hints


class Named:
    """A class that is known by its name alone: what has not been imported has no instances to be mistaken for one."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __or__(self, other: Any) -> Any:
        return typing.Union[self, other]  # noqa: UP007

    def __ror__(self, other: Any) -> Any:
        return typing.Union[other, self]  # noqa: UP007

    def __call__(self) -> None:
        """What `typing` takes for a type can be called."""


class _Names(dict[str, Any]):
    def __init__(self, module: Mapping[str, Any]) -> None:
        super().__init__()
        self._module = module

    def __missing__(self, name: str) -> Any:
        builtin = sys.modules["builtins"].__dict__
        return self._module[name] if name in self._module else builtin[name] if name in builtin else Named(name)


def fits(value: object, hint: Any) -> bool:
    """Whether a value is of a type that an annotation names; what it cannot judge fits."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin is Annotated:
        return fits(value, inner[0])
    if isinstance(hint, Named):
        return _has_name(value, hint.name)
    if origin in (typing.Union, types.UnionType):
        if any(_is_path(one) for one in inner) and isinstance(value, str | os.PathLike):
            return _can_be_path(value)
        return any(fits(value, one) for one in inner)
    if hint is None or hint is types.NoneType:
        return value is None
    if hint is str:
        return isinstance(value, str) and is_text(value)
    if hint is bool:
        return isinstance(value, bool)
    if hint in (int, float):
        # Those of numpy are as good.
        kind = "__index__" if hint is int else "__float__"
        return hasattr(type(value), kind) and not isinstance(value, bool) and getattr(value, "ndim", 0) == 0
    if origin is collections.abc.Callable:
        return callable(value)
    if isinstance(origin, type) and issubclass(origin, collections.abc.Mapping):
        key, one = inner
        return isinstance(value, collections.abc.Mapping) and all(
            fits(name, key) and fits(part, one) for name, part in value.items()
        )
    if isinstance(origin, type) and issubclass(origin, collections.abc.Collection):
        # Arrays and views of tables are as good as lists; a text is no list of its letters.
        is_list = isinstance(value, collections.abc.Collection) and not isinstance(value, str)
        return is_list and all(fits(part, inner[0]) for part in typing.cast("typing.Iterable[object]", value))
    kind = origin or hint
    return isinstance(value, kind) if isinstance(kind, type) else True


def taken(value: Any, hint: Any) -> Any:
    """A value that fits, as the number, the text, the list or the path that its annotation names.

    >>> import numpy as np
    >>> taken(np.array([1, 2]), typing.Sequence[int]), taken(np.int64(3), int | None)
    ([1, 2], 3)
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return taken(value, inner[0])
    if origin in (typing.Union, types.UnionType):
        if any(_is_path(one) for one in inner) and isinstance(value, os.PathLike):
            return value if isinstance(value, pathlib.PurePath) else os.fsdecode(value)
        return taken(value, next((one for one in inner if fits(value, one)), Any))
    if hint is int and type(value) is not int:
        return int.__index__(value) if isinstance(value, int) else operator.index(value)
    if hint is float and not isinstance(value, int | float):
        return float(value)
    if hint is str and type(value) is not str:
        return str.__str__(value)
    if isinstance(origin, type) and issubclass(origin, collections.abc.Mapping) and inner[1] is not Any:
        return {name: taken(part, inner[1]) for name, part in value.items()}
    if isinstance(origin, type) and issubclass(origin, collections.abc.Sequence):
        parts = [taken(part, inner[0]) for part in value]
        kept = isinstance(value, collections.abc.Sequence) and all(map(operator.is_, parts, value))
        return value if kept else parts
    return value


def expected(hint: Any) -> Iterator[str]:
    """What would be right, in words."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        for one in inner:
            if not (one is str and any(map(_is_path, inner))):
                yield from expected(one)
    elif origin is Annotated:
        yield str(inner[1])
    elif _is_path(hint):
        yield _PATH
    elif isinstance(hint, Named):
        yield f"a {hint.name}"
    elif origin is collections.abc.Callable:
        yield "a function"
    elif isinstance(origin, type) and issubclass(origin, collections.abc.Mapping):
        yield _WORDS[dict]
    elif isinstance(origin, type) and issubclass(origin, collections.abc.Collection):
        one = " or ".join(dict.fromkeys(expected(inner[0])))
        yield f"a list, each item {one}"
    else:
        yield _WORDS.get(hint, f"a {getattr(hint, '__name__', hint)}")


class Answer:
    """A class of answers: calls of celltrain give them, and nobody else makes one."""

    _call = ""
    """The call."""

    def __init__(self, *_: object, **__: object) -> None:
        name = type(self).__name__
        raise InputError([Fault.of_option(name, "", f"is made by {self._call}, and cannot be made otherwise")])


def _is_path(hint: Any) -> bool:
    return hint is os.PathLike or typing.get_origin(hint) is os.PathLike


def _can_be_path(value: str | os.PathLike[str]) -> bool:
    """Whether a system takes it for a path, of something that is there or not."""
    try:
        os.lstat(value)
    except (TypeError, ValueError):
        return False
    except OSError as error:
        return error.errno != errno.ENAMETOOLONG
    return True


def _has_name(value: object, name: str) -> bool:
    """Whether a class of a value has a name; a name that is not a class's but that of a choice fits, for its class judges it."""
    if any(kind.__name__ == name for kind in type(value).__mro__):
        return True
    from celltrain.model import types as models

    return not isinstance(vars(models).get(name, type), type)


def names_of(given: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """One name or several, as several; None stays.

    >>> names_of("sw1"), names_of(["sw1", "sw2"]), names_of(None)
    (('sw1',), ('sw1', 'sw2'), None)
    """
    return (given,) if isinstance(given, str) else None if given is None else tuple(given)
