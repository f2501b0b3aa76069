"""Failed runs are repeated on request, or if a limit was raised."""

from __future__ import annotations

import subprocess
import sys

import pytest
from test_sweep import PLAN, plan, rows

import celltrain as ct
from celltrain import _core
from celltrain.ensemble.store import Store
from celltrain.ensemble.store.database import Database
from celltrain.ensemble.sweeps import has_more, run_plan
from celltrain.running import Local

#: Two points take longer than any limit here, and two are quick.
LONG = PLAN.replace("[axes]", '[limits]\ntime = "LIMIT"\n[axes]\nduration = ["1ms", "100000s"]').replace(
    "values = [100, 150, 200]", "values = [100]"
)


def long(limit):
    return plan(LONG.replace("LIMIT", limit).replace("count = 4", "count = 2"))


def test_failed_runs_are_run_again_on_request(tmp_path, failing):
    folder = tmp_path / "s"
    assert run_plan(plan(), folder, Local(2)).failed == 6
    # Without the request nothing is left to do; with it, the runs fail again.
    assert run_plan(plan(), folder, Local(2), resume=True).failed == 6
    assert run_plan(plan(), folder, Local(2), resume=True, retry_failed=True).failed == 6
    assert Store.open(folder).verify() == []
    assert len(Store.open(folder).wide()) == 24
    failing.clear()
    end = run_plan(plan(), folder, Local(2), resume=True, retry_failed=True)
    assert (end.done, end.failed) == (24, 0)
    assert Store.open(folder).verify() == []
    run_plan(plan(), tmp_path / "one", Local(2))
    assert rows(folder) == rows(tmp_path / "one")


def test_runs_that_all_failed_are_run_again(tmp_path, failing):
    failing[:] = range(20)
    folder = tmp_path / "s"
    assert run_plan(plan(), folder, Local(2)).failed == 24
    failing.clear()
    store = ct.sweep(plan(), store=folder, resume=True, retry_failed=True)
    assert store.verify() == []
    run_plan(plan(), tmp_path / "one", Local(2))
    assert rows(folder) == rows(tmp_path / "one")


def test_a_limit_that_was_raised_gives_another_try_and_others_do_not(tmp_path, monkeypatch):
    folder, again = tmp_path / "s", []
    assert run_plan(long("200ms"), folder, Local(2)).failed == 4
    before = Store.drop_failed
    monkeypatch.setattr(Store, "drop_failed", lambda self, worth: again.append(before(self, worth)) or again[-1])
    for limit, count in (("200ms", 0), ("100ms", 0), ("300ms", 4), ("300ms", 0)):
        assert run_plan(long(limit), folder, Local(2), resume=True).failed == 4
        assert again.pop() == count, limit
    errors = set(Store.open(folder).failures()["error"].to_pylist())
    # Only the limit of the last attempt counts.
    assert errors == {"took longer than 0.3 s of real time"}
    assert all(has_more(error, plan()) and has_more(error, long("301ms")) for error in errors)
    assert not any(has_more(error, long("300ms")) for error in errors)
    assert not has_more("panicked: took longer than 0.1 s of real time", plan())
    assert Store.open(folder).verify() == []


def test_a_kill_in_the_middle_of_a_retry_loses_nothing(tmp_path, failing, monkeypatch):
    folder = tmp_path / "s"
    run_plan(plan(), folder, Local(2))
    failing.clear()

    class Killed(BaseException):
        pass

    def dies(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Database, "_count", dies)
        with pytest.raises(Killed):
            run_plan(plan(), folder, Local(2), resume=True, retry_failed=True)
    assert len(Store.open(folder).failures()) == 6
    assert Store.open(folder).verify() == []
    end = run_plan(plan(), folder, Local(2), resume=True, retry_failed=True)
    assert (end.done, end.failed) == (24, 0)
    assert Store.open(folder).verify() == []
    run_plan(plan(), tmp_path / "one", Local(2))
    assert rows(folder) == rows(tmp_path / "one")


def test_it_goes_with_resume(tmp_path, celltrain):
    (tmp_path / "plan.toml").write_text(PLAN)
    told = celltrain("sweep", tmp_path / "plan.toml", "--store", tmp_path / "s", "--retry-failed")
    assert told.code == 2
    assert "--retry-failed = given needs --resume" in told.err
    with pytest.raises(ct.PlanError, match="retry_failed = True needs resume=True"):
        ct.sweep(plan(), store=tmp_path / "s", retry_failed=True)
    run_plan(plan(), tmp_path / "s", Local(2))
    told = celltrain("sweep", tmp_path / "plan.toml", "--store", tmp_path / "s", "--resume", "--retry-failed")
    assert told.code == 0


LARGE = """
import resource
import celltrain as ct
from celltrain import _core
resource.setrlimit(resource.RLIMIT_DATA, (700 << 20, 700 << 20))
large = ct.n_source(sources=1_000_000, link_delay="5us", buffer_cells=9, policy=ct.TailDrop(), duration="1ms")
[fault] = ct.check(large)
print(fault.message)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory that is free is known on Linux")
def test_runs_that_did_not_fit_are_tried_again_with_more_memory(monkeypatch):
    error = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True).stdout
    assert "of memory; a run may use three quarters of the " in error, error
    # The run needs 4.6 GiB and may use three quarters of the free memory.
    for gigabytes, again in ((0.1, False), (6, False), (7, True), (64, True)):
        monkeypatch.setattr(_core, "memory_limit", lambda size=int(gigabytes * (1 << 30)): size)
        assert has_more(error, plan()) == again, gigabytes
    monkeypatch.setattr(_core, "memory_limit", lambda: None)
    assert has_more(error, plan())
