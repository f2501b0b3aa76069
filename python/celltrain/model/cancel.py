"""Ends a long call from another thread. Ctrl-C reaches the main thread alone; a `Cancel` works from any."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import NoReturn, ParamSpec, TypeVar

from celltrain import _core
from celltrain.errors import CancelledError, Fault, InputError

P = ParamSpec("P")
T = TypeVar("T")


class Cancel:
    """A handle that ends the calls that take it, from any thread; `docs/stopping.md` shows its uses.

    A call that is ended raises `CancelledError` within 0.1 s; sweeps, searches and reproductions keep their finished work
    as after Ctrl-C. A cancelled handle stays cancelled: a call that takes it ends at once.

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
        """Ends every call that has taken this handle, or will. Returns at once."""
        self._handle.cancel()

    @property
    def cancelled(self) -> bool:
        """True if it was cancelled."""
        return self._handle.cancelled

    def __reduce__(self) -> NoReturn:
        problem = "cannot be copied or pickled: it ends calls of this process. Give the same handle to several calls"
        raise InputError([Fault.of_option("Cancel", "", problem)])

    def __repr__(self) -> str:
        return f"Cancel(cancelled={self.cancelled})"


# The handle of the call on this thread. Calls of the core inside it find the handle here.
_CURRENT: ContextVar[Cancel | None] = ContextVar("celltrain_cancel", default=None)


def current() -> _core.Cancel | None:
    """Returns the handle of the call on this thread, as the core takes it."""
    handle = _CURRENT.get()
    return None if handle is None else handle._handle


def check() -> None:
    """Raises `CancelledError` if the call on this thread was cancelled."""
    handle = _CURRENT.get()
    if handle is not None and handle.cancelled:
        raise CancelledError("cancelled")


@contextmanager
def ended_by(handle: Cancel | None) -> Iterator[None]:
    """Ends the calls inside when this handle is cancelled."""
    if handle is None:
        yield
        return
    token = _CURRENT.set(handle)
    try:
        check()
        yield
    finally:
        _CURRENT.reset(token)


def endable(function: Callable[P, T]) -> Callable[P, T]:
    """Makes a public call take `cancel`."""

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> T:
        with ended_by(options.get("cancel")):  # type: ignore[arg-type]  # `checked` looks at it
            return function(*args, **options)

    return call
