"""Checks the arguments of a public function against its annotations. Reports all wrong types at once, in plain words.

docs/design/libraries.md says why neither pydantic's `validate_call` nor beartype does this.
"""

from __future__ import annotations

import builtins
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
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typing_extensions

from celltrain.errors import Fault, InputError
from celltrain.model.cancel import supervised
from celltrain.text import described, half_pair

if TYPE_CHECKING:
    from typing_extensions import Self

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
_UNIONS = (typing.Union, types.UnionType)


def cores() -> int:
    """Returns the number of cores that this process may use, which can be smaller than the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def checked(
    error: type[InputError] = InputError, *, elsewhere: Mapping[str, str] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes a public function refuse arguments whose types do not match its annotations.

    Converts numpy numbers and arrays, dictionary views and path-like objects to Python's own types. A function with the
    option `cancel` ends when that handle is cancelled, and shows its progress in notebooks.

    Args:
        error: Type of the error, which lists every argument that is wrong.
        elsewhere: Options that only other functions accept, each with the call to suggest instead: `{first}` is the
            first argument as written, `{value}` the option's.

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
            signature, hints = _parameters(function)
            if name := next((name for name in elsewhere or {} if name in options), None):
                first = described(args[0]) if args and isinstance(args[0], str) else "scenario"
                advice = (elsewhere or {})[name].format(first=first, value=described(options[name]))
                raise error([Fault.saying(advice, key=name, value=described(options[name]))])
            try:
                bound = signature.bind(*args, **options)
            except TypeError:
                # Python's own messages for a wrong number of arguments or an unknown option are clear enough.
                return function(*args, **options)
            is_shared = SHARED in signature.parameters and SHARED not in hints
            shared = bound.arguments.setdefault(SHARED, {}) if is_shared else {}
            if unknown := next((name for name in shared if name not in hints), None):
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument {unknown!r}")
            faults = []
            for name, hint in hints.items():
                given = shared if name in shared else bound.arguments
                if name not in given:
                    continue
                try:
                    given[name] = converted(given[name], hint)
                except _MismatchError:
                    problem = f"is not {' or '.join(dict.fromkeys(expected(hint)))}"
                    faults.append(Fault.of_option(name, described(given[name]), problem))
            if faults:
                raise error(faults)
            if "cancel" not in hints:
                return function(*bound.args, **bound.kwargs)
            with supervised(bound.arguments if "cancel" in signature.parameters else shared, hints):
                return function(*bound.args, **bound.kwargs)

        return guarded

    return decorate


class _MismatchError(Exception):
    """Raised for a value that is not of the annotated type."""


@functools.cache
def _parameters(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Any]]:
    own = inspect.unwrap(function).__globals__
    hints = _hints(function.__annotations__, own)
    signature = inspect.signature(function)
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL and name in hints:
            hints[name] = collections.abc.Sequence[hints[name]]  # type: ignore[valid-type]
    if shares(hints):
        [shared] = typing.get_args(hints.pop(SHARED))
        texts = {name: getattr(hint, "__forward_arg__", hint) for name, hint in shared.__annotations__.items()}
        hints |= _hints(texts, vars(sys.modules[shared.__module__]))
    return signature, hints


def shares(hints: Mapping[str, Any]) -> bool:
    """Returns whether a function has options that it shares with others, given the types of its parameters."""
    return typing_extensions.get_origin(hints.get(SHARED)) is typing_extensions.Unpack


def names(function: Callable[..., Any]) -> list[str]:
    """Returns the names of a public function's parameters, and of the options that it shares with others."""
    signature, hints = _parameters(inspect.unwrap(function))
    shared = [name for name in hints if name not in signature.parameters]
    return [*(name for name in signature.parameters if name != SHARED or not shared), *shared]


def _hints(annotations: Mapping[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Evaluates annotations, except that of the result. `own` contains the names of their module."""
    annotations = {name: hint for name, hint in annotations.items() if name != "return"}
    texts = [hint for hint in annotations.values() if isinstance(hint, str)]
    names = {name for text in texts for name in compile(text, "<annotation>", "eval").co_names}
    # Classes imported only for type checkers are recognised by name.
    unknown = {name: _ByName(name, (), {}) for name in names if name not in own and not hasattr(builtins, name)}
    annotated = types.SimpleNamespace(__annotations__=annotations)
    return typing.get_type_hints(annotated, globalns=own, localns=unknown, include_extras=True)


class _ByName(type):
    """A placeholder for a class that has not been imported. Its instances are recognised by the name of their class."""

    def __instancecheck__(cls, value: object) -> bool:
        if any(kind.__name__ == cls.__name__ for kind in type(value).__mro__):
            return True
        from celltrain.model import types as models

        # Some annotations name a union of tables rather than a class; pydantic checks those values.
        return not isinstance(vars(models).get(cls.__name__, type), type)


def converted(value: Any, hint: Any) -> Any:
    """Converts a value to the number, text, list or path that the annotation names; raises `_MismatchError`.

    >>> import numpy as np
    >>> converted(np.array([1, 2]), typing.Sequence[int]), converted(np.int64(3), int | None)
    ([1, 2], 3)
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    kind = origin or hint
    if hint is Any:
        return value
    if origin is Annotated:
        return converted(value, inner[0])
    if origin in _UNIONS:
        return _of_union(value, inner)
    if hint is str and isinstance(value, str) and not half_pair(value):
        return str.__str__(value)
    if hint in (int, float):
        protocol = "__index__" if hint is int else "__float__"
        is_number = hasattr(type(value), protocol) and not isinstance(value, bool) and getattr(value, "ndim", 0) == 0
        if is_number:
            return operator.index(value) if hint is int else value if isinstance(value, int) else float(value)
    elif kind is collections.abc.Callable:
        if callable(value):
            return value
    elif inner and issubclass(kind, Mapping):
        if isinstance(value, Mapping):
            parts = {converted(name, inner[0]): converted(part, inner[1]) for name, part in value.items()}
            return value if inner[1] is Any else parts
    elif inner and issubclass(kind, Collection):
        if isinstance(value, Collection) and not isinstance(value, str):
            items = [converted(part, inner[0]) for part in value]
            is_same = isinstance(value, Sequence) and all(map(operator.is_, items, value))
            return value if is_same or not issubclass(kind, Sequence) else items
    elif hint is not str and (not isinstance(kind, type) or isinstance(value, kind)):
        return value
    raise _MismatchError


def _of_union(value: Any, members: Sequence[Any]) -> Any:
    """Converts a value to the first member of a union that accepts it.

    A text that may be a path is checked as a path.
    """
    if any(map(_is_path, members)) and isinstance(value, str | os.PathLike):
        if not _can_be_path(value):
            raise _MismatchError
        return value if isinstance(value, pathlib.PurePath) else os.fsdecode(value)
    for member in members:
        try:
            return converted(value, member)
        except _MismatchError:
            continue
    raise _MismatchError


def expected(hint: Any) -> list[str]:
    """Describes the values that a type accepts.

    >>> expected(typing.Sequence[int] | None)
    ['a list, each item a whole number', 'None']
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    kind = origin or hint
    if origin in _UNIONS:
        members = [one for one in inner if one is not str or not any(map(_is_path, inner))]
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


class Answer:
    """Base of the classes that users do not create, such as the results of calls."""

    _call = ""
    """The call that returns this kind of answer, for messages."""

    def __init__(self, *_: object, **__: object) -> None:
        name = type(self).__name__
        raise InputError.of_option(name, "", f"cannot be created directly; it comes from {self._call}")

    @classmethod
    def _made(cls, **parts: Any) -> Self:
        """Creates an answer with these attributes."""
        made = cls.__new__(cls)
        vars(made).update(parts)
        return made


def _is_path(hint: Any) -> bool:
    return hint is os.PathLike or typing.get_origin(hint) is os.PathLike


def _can_be_path(value: str | os.PathLike[str]) -> bool:
    """Returns whether the operating system accepts this as a path, whether or not the file exists."""
    try:
        os.lstat(value)
    except (TypeError, ValueError):
        return False
    except OSError as error:
        return error.errno != errno.ENAMETOOLONG
    return True


def names_of(names: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Returns one name or several names as a tuple; None stays None.

    >>> names_of("sw1"), names_of(["sw1", "sw2"]), names_of(None)
    (('sw1',), ('sw1', 'sw2'), None)
    """
    return (names,) if isinstance(names, str) else None if names is None else tuple(names)
