"""Ctrl-C on the command line while no command runs: before the first command is imported, and after its answer.

This module imports no other module of celltrain, so it is loaded first.
"""

from __future__ import annotations

import atexit
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

#: Exit code of a command that was ended by Ctrl-C.
INTERRUPTED = 130


def end_at_once() -> None:
    """Makes Ctrl-C end the process with a message and exit code 130; nothing is lost. Ignored signals stay ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
        # The handler registered first runs last. Otherwise, Ctrl-C during interpreter shutdown would kill the process.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


@contextmanager
def interruptible() -> Iterator[None]:
    """Makes Ctrl-C raise `KeyboardInterrupt` in this block, so that a command can keep its finished work."""
    if signal.getsignal(signal.SIGINT) is not _end:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, _end)


@contextmanager
def noted_interrupts() -> Iterator[list[int]]:
    """Yields a list to which the first Ctrl-C is only added. A second Ctrl-C raises `KeyboardInterrupt` at once.

    If a destructor raises `KeyboardInterrupt`, Python drops it and prints a traceback. So check the list between calls
    of libraries that have destructors.
    """
    noted: list[int] = []
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or current_thread() is not main_thread():
        yield noted
        return

    def note(number: int, frame: FrameType | None) -> None:
        if noted:
            signal.default_int_handler(number, frame)
        noted.append(number)

    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)
