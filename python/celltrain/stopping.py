"""Ctrl-C on the command line while no command runs: before the first one is imported, and after its answer.

It imports nothing of ours, so that it is ready first.
"""

from __future__ import annotations

import atexit
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: The exit code of a command that Ctrl-C ended.
INTERRUPTED = 130


def end_at_once() -> None:
    """Makes Ctrl-C end the process with a message and exit code 130, as nothing is lost; an ignored signal stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
        # Registered first, so called last: the interpreter shuts down then, and would die of the signal.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


@contextmanager
def interruptible() -> Iterator[None]:
    """Makes Ctrl-C raise `KeyboardInterrupt` inside, so that a command keeps its finished work."""
    if signal.getsignal(signal.SIGINT) is not _end:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, _end)


def _end(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)
