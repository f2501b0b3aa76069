"""Messages when a cluster is missing, or when a command names two places to run."""

from __future__ import annotations

import asyncio
import re
import sys
import time

import pytest
from conftest import import_or_skip

import celltrain as ct
from celltrain.running.cluster import Cluster
from small_sweep import thresholds

distributed = import_or_skip("distributed")
Client, LocalCluster = distributed.Client, distributed.LocalCluster

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has different signals")


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("tcp://127.0.0.1:1", "Connection refused|Timed out"),
        ("localhost", "missing port number"),
        ("foo://localhost:1", "unknown address scheme 'foo'"),
        ("tcp://127.0.0.1:abc", "abc"),
        ("tls://127.0.0.1:1", "TLS"),
    ],
)
def test_the_error_for_a_cluster_scheduler_that_does_not_respond_names_the_scheduler(tmp_path, celltrain, address, why):
    path = tmp_path / "plan.toml"
    path.write_text(thresholds(6, "5ms"))
    begun = time.monotonic()
    told = celltrain("sweep", path, "--store", tmp_path / "s", "--dask", address, "--dask-timeout", "500ms", "--json")
    assert time.monotonic() - begun < 10
    [fault] = told.json["faults"]
    assert (told.code, told.err, fault["key"], fault["value"]) == (2, "", "--dask", address)
    assert re.search(why, fault["message"])
    assert "start one with dask scheduler" in fault["message"]
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "does not exist: start the scheduler with dask scheduler --scheduler-file"),
        ("{", "is not JSON"),
        ("[]", "holds no address"),
        ("{}", "holds no address"),
        ('{"address": 3}', "has 3 as its address"),
    ],
)
def test_the_error_for_an_invalid_scheduler_file_names_the_file(tmp_path, celltrain, content, problem):
    path, file = tmp_path / "plan.toml", tmp_path / "scheduler.json"
    path.write_text(thresholds(6, "5ms"))
    if content is not None:
        file.write_text(content)
    told = celltrain("sweep", path, "--store", tmp_path / "s", "--scheduler-file", file, "--dask-timeout", "100ms")
    assert told.code == 2
    assert f"--scheduler-file = {file} {problem}" in told.err
    assert told.err.count("\n") == 1
    assert not (tmp_path / "s").exists()


def test_options_that_specify_two_cluster_schedulers_are_refused(tmp_path, celltrain):
    path = tmp_path / "plan.toml"
    path.write_text(thresholds(6, "5ms"))
    where = ("--dask", "tcp://h:1", "--scheduler-file", "f", "--jobs", "2")
    for first, second in ((0, 2), (0, 4), (2, 4)):
        chosen = where[first : first + 2] + where[second : second + 2]
        told = celltrain("sweep", path, "--store", tmp_path / "s", *chosen)
        assert told.code == 2
        assert "selects where to run, and so does" in told.err
    # Regression: a wait longer than the clock can represent blocked silently.
    for wait in ("soon", "0s", "86401s", "18446744073709551615s"):
        told = celltrain("sweep", path, "--store", tmp_path / "s", "--dask", "tcp://h:1", "--dask-timeout", wait)
        assert told.code == 2
        assert f"--dask-timeout = {wait} must be a time above 0 and at most 86400s (one day)" in told.err


def test_if_dask_is_not_installed_the_error_names_the_package_to_install(tmp_path, celltrain, monkeypatch):
    path = tmp_path / "plan.toml"
    path.write_text(thresholds(6, "5ms"))
    monkeypatch.setitem(sys.modules, "distributed", None)
    told = celltrain("sweep", path, "--store", tmp_path / "s", "--dask", "tcp://127.0.0.1:1")
    assert told.code == 2
    assert told.err == "a cluster needs Dask's distributed: pip install '.[cluster]'\n"


def test_an_asynchronous_dask_client_is_refused():
    async def refused():
        async with (
            LocalCluster(n_workers=0, processes=False, dashboard_address=":0", asynchronous=True) as machines,
            Client(machines, asynchronous=True, set_as_default=False) as client,
        ):
            with pytest.raises(ct.ClusterError, match="is asynchronous, but a sweep is not"):
                Cluster(client)

    asyncio.run(refused())
