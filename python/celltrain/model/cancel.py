"""Ending a long call from another thread. Ctrl-C reaches the main thread alone; a `Cancel` works from any."""

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
    """A handle that ends the calls it is given to, from whichever thread; `docs/stopping.md` shows where it is needed.

    A call that is ended raises `CancelledError` within 0.1 s; what sweeps, searches and reproductions have done by then is
    kept as after Ctrl-C. A handle that was cancelled stays so: a call that is given it ends at once.

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
        """Ends every call that was given this handle, or will be. Returns at once."""
        self._handle.cancel()

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._handle.cancelled

    def __reduce__(self) -> NoReturn:
        problem = "cannot be copied or pickled: it ends calls of this process. Give the same handle to several calls"
        raise InputError([Fault.of_option("Cancel", "", problem)])

    def __repr__(self) -> str:
        return f"Cancel(cancelled={self.cancelled})"


# Of the call under way on this thread. A call has many others of its own: whatever these ask of the core finds it here.
_CURRENT: ContextVar[Cancel | None] = ContextVar("celltrain_cancel", default=None)


def current() -> _core.Cancel | None:
    """The handle of the call under way on this thread, as the core takes it."""
    handle = _CURRENT.get()
    return None if handle is None else handle._handle


def check() -> None:
    """Raises `CancelledError` when the call under way on this thread is to end."""
    handle = _CURRENT.get()
    if handle is not None and handle.cancelled:
        raise CancelledError("cancelled")


@contextmanager
def ended_by(handle: Cancel | None) -> Iterator[None]:
    """What is done inside ends when this handle is cancelled; raises `InputError` for what is no handle."""
    if handle is None:
        yield
        return
    if not isinstance(handle, Cancel):
        raise InputError([Fault.of_option("cancel", repr(handle), "is not a celltrain.Cancel")])
    token = _CURRENT.set(handle)
    try:
        check()
        yield
    finally:
        _CURRENT.reset(token)


def endable(function: Callable[P, T]) -> Callable[P, T]:
    """A public call that takes `cancel`."""

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> T:
        handle = options.get("cancel")
        with ended_by(handle):  # type: ignore[arg-type]  # looked at there
            return function(*args, **options)

    return call
