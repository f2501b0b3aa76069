"""Ctrl-C ends a command at once with a message, and completed work is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import celltrain as ct

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has different signals")

# The time limit does not test speed. The limit only shows that the signal ended the process.
GENEROUS_SECONDS = 20

LONG = """
duration = "100000s"
[topology.n_source]
sources = 15
link_delay = "5us"
[port.bottleneck]
buffer = 1000
[port.bottleneck.policy.fba]
"""


def wait_until_the_engine_runs(process: subprocess.Popen[str]) -> None:
    """Waits until the engine's thread is running; if threads are not visible, waits long enough."""
    tasks = Path(f"/proc/{process.pid}/task")
    deadline = time.monotonic() + GENEROUS_SECONDS
    while tasks.exists() and time.monotonic() < deadline:
        if len(list(tasks.iterdir())) > 1:
            time.sleep(0.2)
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    time.sleep(3)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_a_command_that_is_interrupted_exits_with_code_130_and_a_message(tmp_path, arguments):
    path = tmp_path / "long.toml"
    path.write_text(LONG)
    command = [sys.executable, "-m", "celltrain", "run", path, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until_the_engine_runs(process)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=GENEROUS_SECONDS)
        finally:
            process.kill()
    assert process.returncode == 130
    assert err == "interrupted\n"
    assert out == ""


def test_interrupting_a_call_in_python_raises_keyboardinterrupt():
    long = ct.n_source(sources=5, link_delay="5us", buffer_cells=100, policy=ct.TailDrop(), duration="100000s")
    started = time.monotonic()
    handler = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            ct.run(long)
    finally:
        signal.signal(signal.SIGALRM, handler)
    assert time.monotonic() - started < GENEROUS_SECONDS


# The signal arrives after the third run, so there are results to keep.
INTERRUPTED_REPRODUCTION = """
import contextlib, signal, sys
import celltrain.cli.shell

@contextlib.contextmanager
def counting(title, latest, describe):
    yield lambda progress: progress.done == 3 and signal.raise_signal(signal.SIGINT)

celltrain.cli.shell.counting = counting
sys.argv = ["celltrain", "reproduce", "af-96-1269", "--table", "1", "--network", "LAN", "--seeds", "1000", *sys.argv[1:]]
celltrain.cli.main()
"""


@pytest.mark.nightly
@pytest.mark.slow
def test_an_interrupted_reproduction_keeps_finished_runs(tmp_path):
    command = [sys.executable, "-c", INTERRUPTED_REPRODUCTION, "--json", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30 * GENEROUS_SECONDS)
    assert done.returncode == 130
    assert done.stderr == f"interrupted: finished runs are kept in {tmp_path}; continue with --resume\n"
    answer = json.loads(done.stdout)
    assert answer["interrupted"]
    assert answer["numbers"]
    assert json.loads((tmp_path / "reproduce.json").read_text())["numbers"] == answer["numbers"]
    # Regression: drawing took seconds, and ran more simulations for some figures.
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [
        ".csv",
        ".csv",
        ".html",
        ".json",
        ".json",
        ".parquet",
        ".parquet",
    ]


# The signal arrives while a module is imported, shortly after the command's answer, or long after it.
EARLY_OR_LATE = """
import atexit, signal, sys

INSTANT = sys.argv.pop(1)
interrupt = lambda: signal.raise_signal(signal.SIGINT)

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == INSTANT:
            interrupt()
        if name == "typer" and INSTANT == "answered":
            atexit.register(interrupt)

sys.meta_path.insert(0, Finder())
if INSTANT == "over":
    atexit.register(interrupt)
from celltrain.__main__ import main
main()
"""


@pytest.mark.parametrize("instant", ["celltrain.cli", "typer", "celltrain.cli.explain", "answered", "over"])
def test_an_interrupt_while_a_command_starts_or_ends_gives_no_traceback(instant):
    command = [sys.executable, "-c", EARLY_OR_LATE, instant, "list", "policies"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=6 * GENEROUS_SECONDS)
    # While the interpreter shuts down, the command has already ended with its own exit code.
    code, word = (0, "") if instant == "over" else (130, "interrupted\n")
    assert (done.returncode, done.stderr) == (code, word)
