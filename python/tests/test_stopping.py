"""Every long call can be ended: by a time limit at any stage, and by a handle from any thread."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from conftest import import_or_skip

import celltrain as ct
from celltrain import _core
from celltrain.ensemble.plan import canonical
from celltrain.model.arguments import check
from celltrain.running import Chunk, Local, Run

#: The time limit does not test speed. Every stopped call would otherwise take minutes or days.
GENEROUS_SECONDS = 20

LAN = ct.n_source(sources=5, link_delay="5us", buffer_cells=1000, policy=ct.Epd(threshold=800))
DAYS = LAN.replace(duration="900000s")
#: A short file with 100,000 hosts, which takes a second to read and check, and longer to run.
LARGE = """
duration = "1us"
[topology.star]
hosts = 100000
pattern = "ring"
link_delay = "5us"
[tcp.vanilla]
receive_window = "512B"
[port.default]
buffer = 100
[port.default.policy.tail_drop]
"""


@pytest.fixture
def large(tmp_path):
    path = tmp_path / "large.toml"
    path.write_text(LARGE)
    return path


@contextmanager
def interrupted(seconds: float) -> Iterator[None]:
    """Sends Ctrl-C to this process after some seconds. Fails unless the body then ends with `KeyboardInterrupt`."""
    handler = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGALRM, handler)
    assert time.monotonic() - started < GENEROUS_SECONDS


def soon(handle: ct.Cancel, seconds: float = 0.1) -> threading.Timer:
    timer = threading.Timer(seconds, handle.cancel)
    timer.start()
    return timer


@pytest.mark.nightly
@pytest.mark.slow
def test_in_a_batch_a_time_limit_that_expires_before_the_engine_starts_fails_only_that_run():
    # Regression: the run has only a few events, so it finished before the limit was checked, and was accepted.
    store = ct.sweep(
        ct.n_source(
            sources=2,
            link_delay="5us",
            buffer_cells="infinite",
            policy=ct.TailDrop(),
            duration="1us",
            tcp=ct.Vanilla(receive_window="512B"),
        ),
        over={"topology.n_source.sources": [2, 20_000]},
        seeds=2,
        limit="20ms",
        jobs=1,
    )
    errors = {row["topology.n_source.sources"]: row["error"] for row in store.wide().to_pylist()}
    assert errors == {2: None, 20_000: "took longer than 0.02 s of real time"}


@pytest.mark.parametrize("call", [ct.check, ct.load, ct.run, ct.max_min_shares])
def test_a_cancellation_handle_ends_reading_and_checking_a_scenario(call, large):
    handle = ct.Cancel()
    timer = soon(handle)
    started = time.monotonic()
    with pytest.raises(ct.CancelledError):
        call(large, cancel=handle)
    timer.join()
    assert time.monotonic() - started < GENEROUS_SECONDS
    assert handle.cancelled


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_a_cancellation_handle_ends_a_run_in_another_thread(engine):
    handle, outcome = ct.Cancel(), []

    def work():
        try:
            ct.run(DAYS, engine=engine, cancel=handle)
        except ct.CelltrainError as error:
            outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.3)
    handle.cancel()
    thread.join(GENEROUS_SECONDS)
    assert not thread.is_alive()
    assert [type(error) for error in outcome] == [ct.CancelledError]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has different signals")
def test_ctrl_c_ends_reading_and_checking_a_scenario(large):
    with interrupted(0.1):
        ct.check(large)


def test_cancelling_an_asyncio_task_ends_its_run():
    async def run():
        handle = ct.Cancel()
        try:
            return await asyncio.to_thread(ct.run, DAYS, cancel=handle)
        finally:
            handle.cancel()

    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(run(), timeout=0.3)

    started = time.monotonic()
    # asyncio.run waits for its threads to end.
    asyncio.run(main())
    assert time.monotonic() - started < GENEROUS_SECONDS


@pytest.mark.slow
def test_a_stopped_sweep_keeps_its_finished_runs_and_can_be_resumed(tmp_path):
    handle, reports = ct.Cancel(), []
    plan = {"base": LAN.replace(duration="5ms"), "over": {"port.bottleneck.buffer": [900, 1000]}, "seeds": 1000}

    def progress(report):
        reports.append(report)
        if report.done >= 10:
            handle.cancel()

    with pytest.raises(ct.CancelledError):
        ct.sweep(**plan, store=tmp_path / "store", progress=progress, cancel=handle)
    kept = len(ct.Store.open(tmp_path / "store").wide())
    assert 10 <= kept == reports[-1].done < 2000
    store = ct.sweep(**plan, store=tmp_path / "store", resume=True)
    assert len(store.wide()) == 2000
    assert store.verify() == []


def test_another_thread_can_cancel_a_sweep_whose_runs_never_end(tmp_path):
    handle = ct.Cancel()
    timer = soon(handle, 0.5)
    with pytest.raises(ct.CancelledError):
        ct.sweep(DAYS, over={"port.bottleneck.buffer": [900, 1000]}, seeds=3, store=tmp_path / "store", cancel=handle)
    timer.join()
    assert len(ct.Store.open(tmp_path / "store").wide()) == 0


def test_a_stopped_search_keeps_its_finished_trials(tmp_path):
    import_or_skip("optuna")
    handle = ct.Cancel()
    with pytest.raises(ct.CancelledError):
        ct.tune(
            LAN.replace(duration="5ms", port={"bottleneck": ct.Port(buffer_cells=900, policy=ct.SelectiveDrop())}),
            parameters={"Z": {"path": "port.bottleneck.policy.selective_drop.z", "from": 0.2, "to": 2.0}},
            trials=200,
            out=tmp_path / "out",
            progress=lambda report: handle.cancel() if report.runs >= 10 else None,
            cancel=handle,
        )
    stores = [path.parent for path in (tmp_path / "out").rglob("store.sqlite")]
    assert sum(len(ct.Store.open(store).wide()) for store in stores) >= 10


@pytest.mark.slow
def test_a_stopped_reproduction_returns_its_finished_runs():
    handle = ct.Cancel()
    found = ct.reproduce(
        "af-96-1269",
        tables=[1],
        networks=["LAN"],
        seeds=1000,
        progress=lambda report: handle.cancel() if report.done == 3 else None,
        cancel=handle,
    )
    assert found.interrupted
    assert found.numbers


CALLS = {
    "run": lambda cancel: ct.run(DAYS, cancel=cancel),
    "check": lambda cancel: ct.check(DAYS, cancel=cancel),
    "load": lambda cancel: ct.load("there-is-no-such-file.toml", cancel=cancel),
    "max_min_shares": lambda cancel: ct.max_min_shares(DAYS, cancel=cancel),
    "sweep": lambda cancel: ct.sweep(DAYS, store="never-made", cancel=cancel),
    "tune": lambda cancel: ct.tune(DAYS, out="never-made", cancel=cancel),
    "reproduce": lambda cancel: ct.reproduce("af-96-1269", cancel=cancel),
    "study": lambda cancel: ct.study("different-rtts", cancel=cancel),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_with_an_already_cancelled_handle_returns_immediately(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    handle = ct.Cancel()
    handle.cancel()
    with pytest.raises(ct.CancelledError):
        CALLS[call](handle)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("value", [True, 1.0, "soon", threading.Event(), _core.Cancel(), ct.Cancel])
def test_an_object_that_is_not_a_cancellation_handle_is_refused(call, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ct.InputError, match=r"cancel = .* is not a Cancel or None"):
        CALLS[call](value)


def test_cancelling_a_handle_ends_calls_nested_in_its_call_but_not_independent_calls():
    handle, inside = ct.Cancel(), []

    def progress(_):
        handle.cancel()
        try:
            ct.run(DAYS)
        except ct.CancelledError as error:
            inside.append(error)

    with pytest.raises(ct.CancelledError):
        ct.run(DAYS, progress=progress, cancel=handle)
    assert len(inside) == 1
    assert ct.run(LAN.replace(duration="1ms")).cell_hops > 0


def test_no_run_continues_after_a_sweep_was_stopped():
    # Regression: the thread that makes the next chunk was a daemon that nothing joined, and could run during shutdown.
    text = canonical(LAN.replace(duration="1ms").to_dict())
    chunk = Chunk(
        runs=(Run(point=0, case=_core.Case(text, text), seed=1, key="0" * 24),),
        measures=("efficiency",),
        limit_s=None,
        recording=None,
    )

    def chunks():
        yield chunk
        while True:
            check()
            time.sleep(0.01)

    def stop(rows):
        raise KeyboardInterrupt

    before = threading.enumerate()
    with pytest.raises(KeyboardInterrupt):
        Local(1).work(chunks(), stop)
    assert threading.enumerate() == before


CALLBACK_AT_EXIT = """
import sys, threading, time
import celltrain as ct

inside = threading.Event()

def wait(*_):
    inside.set()
    time.sleep(0.02)
    return True

class Slow(ct.PythonPolicy):
    admit = wait

def lan(policy):
    return ct.n_source(sources=3, link_delay="5us", buffer_cells=100, policy=policy, duration="1000s")

work = {
    "policy": lambda: ct.run(lan(Slow())),
    "progress": lambda: ct.run(lan(ct.Ppd()), progress=wait),
    "both": lambda: ct.run(lan(Slow()), progress=wait),
    "no": lambda: (inside.set(), ct.run(lan(ct.Ppd()))),
}[sys.argv[1]]
threading.Thread(target=work, daemon=True).start()
inside.wait()
"""


@pytest.mark.slow
@pytest.mark.parametrize("callback", ["policy", "progress", "both", "no"])
def test_a_process_exits_cleanly_even_if_a_run_in_a_daemon_thread_is_executing_a_callback(callback):
    # Regression: the interpreter unwound the thread's stack, which contains Rust frames. This usually caused SIGABRT.
    done = subprocess.run(
        [sys.executable, "-c", CALLBACK_AT_EXIT, callback], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


AFTER_EXIT = """
import atexit, threading

def late():
    try:
        ct.run(lan)
    except ct.CancelledError as error:
        print(error)

atexit.register(late)
import celltrain as ct

lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=100, policy=ct.Ppd(), duration="1ms")
"""


@pytest.mark.slow
def test_a_run_that_starts_while_the_process_exits_is_cancelled():
    done = subprocess.run([sys.executable, "-c", AFTER_EXIT], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "cancelled: the process exits\n", "")


class EndlessStack(ct.Stack):
    """A stack whose first poll never returns."""

    def on_packet(self, now, packet):
        pass

    def poll(self, now):
        while True:
            pass

    def next_timeout(self, now):
        return None

    received = 0
    completed = False


class EndlessPolicy(ct.PythonPolicy):
    """A policy that never decides."""

    def admit(self, view, vc):
        while True:
            pass


ENDLESS = {
    "stack": LAN.replace(stack=EndlessStack()),
    "policy": ct.n_source(sources=5, link_delay="5us", buffer_cells=1000, policy=EndlessPolicy()),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_cancellation_handle_stops_user_python_code_that_never_returns(kind):
    handle = ct.Cancel()
    soon(handle)
    started = time.monotonic()
    with pytest.raises(ct.CancelledError):
        ct.run(ENDLESS[kind], cancel=handle)
    assert time.monotonic() - started < GENEROUS_SECONDS


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has different signals")
@pytest.mark.parametrize("kind", ENDLESS)
def test_ctrl_c_stops_user_python_code_that_never_returns(kind):
    with interrupted(0.2):
        ct.run(ENDLESS[kind])
    assert ct.run(LAN.replace(duration="1ms")).fingerprint, "later runs are not interrupted"


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_time_limit_stops_user_python_code_that_never_returns(kind):
    store = ct.sweep(ENDLESS[kind], over={"duration": ["1ms", "2ms"]}, seeds=1, limit="200ms", jobs=1)
    assert store.wide()["error"].to_pylist() == ["took longer than 0.2 s of real time"] * 2
