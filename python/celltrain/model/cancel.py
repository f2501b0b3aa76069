"""Long calls: cancelling them from another thread, and a progress bar in notebooks.

Ctrl-C only reaches the main thread; a `Cancel` works from any thread. The command line has its own progress bars, and
scripts pass `progress`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from typing import Any, NoReturn

from celltrain import _core
from celltrain.errors import CancelledError, InputError


class Cancel:
    """A handle that cancels calls from any thread; pass it as `cancel`. `docs/stopping.md` shows examples.

    A cancelled call raises `CancelledError` within 0.1 s. Sweeps, searches and reproductions keep their finished work,
    as they do after Ctrl-C. The handle stays cancelled: later calls with it end at once.

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
        """True if it was cancelled."""
        return self._handle.cancelled

    def __reduce__(self) -> NoReturn:
        problem = "cannot be copied or pickled: it cancels calls in this process. Pass the same handle to several calls instead"
        raise InputError.of_option("Cancel", "", problem)

    def __repr__(self) -> str:
        return f"Cancel(cancelled={self.cancelled})"


# The handle of the call on this thread. Calls into the core read it here.
_CURRENT: ContextVar[Cancel | None] = ContextVar("celltrain_cancel", default=None)


def current() -> _core.Cancel | None:
    """Returns the core's handle of the call on this thread; None if it has none."""
    handle = _CURRENT.get()
    return None if handle is None else handle._handle


def check() -> None:
    """Raises `CancelledError` if the call on this thread was cancelled."""
    handle = _CURRENT.get()
    if handle is not None and handle.cancelled:
        raise CancelledError("cancelled")


@contextmanager
def ended_by(handle: Cancel | None) -> Iterator[None]:
    """Makes the handle apply to the calls in this block."""
    if handle is None:
        yield
        return
    token = _CURRENT.set(handle)
    try:
        check()
        yield
    finally:
        _CURRENT.reset(token)


#: Seconds before a bar appears, and seconds between updates.
AFTER_S, EVERY_S = 1.0, 0.2


@contextmanager
def supervised(name: str, arguments: dict[str, Any], parameters: Collection[str]) -> Iterator[None]:
    """Applies a call's `cancel`; in notebooks also shows a progress bar, unless the caller passes `progress`."""
    with ended_by(arguments.get("cancel")):
        if "progress" not in parameters or arguments.get("progress") is not None or not in_notebook():
            yield
            return
        with bar(name) as arguments["progress"]:
            yield


def in_notebook() -> bool:
    """Returns True in a Jupyter kernel. Does not import IPython."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def bar(name: str) -> Iterator[Callable[[Any], None]]:
    """Yields a callback for `progress`; it accepts a share from 0 to 1, or an object that counts runs."""
    from IPython.display import HTML, display

    began, last, handle = time.monotonic(), 0.0, None

    def update(progress: Any) -> None:
        nonlocal last, handle
        now = time.monotonic()
        if now - began < AFTER_S or now - last < EVERY_S:
            return
        last = now
        drawn = HTML(html(name, *how_far(progress), now - began))
        if handle is None:
            handle = display(drawn, display_id=True)
        else:
            handle.update(drawn)

    try:
        yield update
    finally:
        if handle is not None:
            handle.update(HTML(""))


def how_far(progress: Any) -> tuple[float, str]:
    """Returns the completed share, and the number of runs in words.

    >>> how_far(0.25)
    (0.25, '')
    """
    if isinstance(progress, int | float):
        return float(progress), ""
    done = getattr(progress, "done", None)
    total = getattr(progress, "total", None)
    if done is None or total is None:
        done, total = progress.runs, progress.most_runs
    return done / max(total, 1), f"{done:,} of {total:,} runs"


def html(name: str, share: float, words: str, seconds: float) -> str:
    """Renders a bar as an HTML element that inherits the page's colours.

    >>> html("sweep", 0.25, "1 of 4 runs", 3.0)
    '<div>sweep <progress max="1" value="0.250"></progress> 25 %, 1 of 4 runs, about 9 s more</div>'
    """
    share = min(max(share, 0.0), 1.0)
    rest = f"about {seconds * (1 - share) / share:.0f} s more" if 0.01 <= share < 1 else ""
    text = ", ".join(part for part in (f"{share:.0%}".replace("%", " %"), words, rest) if part)
    return f'<div>{escape(name)} <progress max="1" value="{share:.3f}"></progress> {escape(text)}</div>'
