"""Long calls: cancelling them from another thread, and a progress bar in notebooks.

Ctrl-C reaches only the main thread, whereas a `Cancel` works from any thread. The command line has its own progress
bars, and scripts pass `progress`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

from celltrain import _core
from celltrain.errors import CancelledError, InputError


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

    def __reduce__(self) -> NoReturn:
        problem = "cannot be copied or pickled: it cancels calls in this process. Pass the same handle to several calls instead"
        raise InputError.of_option("Cancel", "", problem)

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
    """Applies the handle to the calls in this block."""
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
