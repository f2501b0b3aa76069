"""Ctrl-C on the command line while no command runs: before the first one is imported, and after its answer.

This imports nothing of ours, so that it is there first.
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
    """From now on Ctrl-C ends the process with a word and 130, as nothing is lost by that. Ignored, it stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
        # Registered first, so last: then the interpreter takes itself apart, and would die of the signal.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


@contextmanager
def interruptible() -> Iterator[None]:
    """Inside, Ctrl-C raises `KeyboardInterrupt` again: a command keeps what is done."""
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
