"""Failed runs are repeated on request."""

from __future__ import annotations

import pytest
from test_sweep import PLAN, plan, rows

import celltrain as ct
from celltrain.ensemble.store import Store
from celltrain.ensemble.store.database import Database
from celltrain.ensemble.sweeps import run_plan
from celltrain.running import Local

#: Two points take longer than any limit in this test, and two are quick.
LONG = PLAN.replace("[axes]", '[limits]\ntime = "LIMIT"\n[axes]\nduration = ["1ms", "100000s"]').replace(
    "values = [100, 150, 200]", "values = [100]"
)


def long(limit):
    return plan(LONG.replace("LIMIT", limit).replace("count = 4", "count = 2"))


def test_failed_runs_of_a_sweep_are_run_again_if_a_retry_is_requested(tmp_path, failing):
    folder = tmp_path / "s"
    assert run_plan(plan(), folder, Local(2)).failed == 6
    # Without the option, no run is left to do. With it, the failed runs fail again.
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


def test_a_sweep_whose_runs_have_all_failed_can_run_them_again(tmp_path, failing):
    failing[:] = range(20)
    folder = tmp_path / "s"
    assert run_plan(plan(), folder, Local(2)).failed == 24
    failing.clear()
    store = ct.sweep(plan(), store=folder, resume=True, retry_failed=True)
    assert store.verify() == []
    run_plan(plan(), tmp_path / "one", Local(2))
    assert rows(folder) == rows(tmp_path / "one")


@pytest.mark.nightly
@pytest.mark.slow
def test_without_the_retry_option_failed_runs_are_not_repeated_even_if_a_limit_was_raised(tmp_path):
    folder = tmp_path / "s"
    assert run_plan(long("200ms"), folder, Local(2)).failed == 4
    for limit, retry, left in (("300ms", False, "0.2"), ("300ms", True, "0.3")):
        assert run_plan(long(limit), folder, Local(2), resume=True, retry_failed=retry).failed == 4
        errors = set(Store.open(folder).failures()["error"].to_pylist())
        # Only the time limit of the last attempt has an effect.
        assert errors == {f"took longer than {left} s of real time"}
    assert Store.open(folder).verify() == []


def test_killing_a_sweep_while_it_retries_runs_loses_no_results(tmp_path, failing, monkeypatch):
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


def test_failed_runs_can_be_retried_while_a_sweep_is_resumed(tmp_path, celltrain):
    (tmp_path / "plan.toml").write_text(PLAN)
    told = celltrain("sweep", tmp_path / "plan.toml", "--store", tmp_path / "s", "--retry-failed")
    assert told.code == 2
    assert "--retry-failed needs --resume" in told.err
    with pytest.raises(ct.PlanError, match="retry_failed = True needs resume=True"):
        ct.sweep(plan(), store=tmp_path / "s", retry_failed=True)
    run_plan(plan(), tmp_path / "s", Local(2))
    told = celltrain("sweep", tmp_path / "plan.toml", "--store", tmp_path / "s", "--resume", "--retry-failed")
    assert told.code == 0
