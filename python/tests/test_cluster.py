"""Sweeps on a Dask cluster: machines join, leave and are killed, and no run is lost or stored twice."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import sweeps
from conftest import import_or_skip
from pages import ROOT, blocks
from sweeps import rows

import celltrain as ct
from celltrain import _core
from celltrain.ensemble.plan import Plan, canonical
from celltrain.ensemble.store import Store
from celltrain.ensemble.sweeps import run_plan
from celltrain.ensemble.tuning import TunePlan, run_tune
from celltrain.running import Local, cluster, run_chunk
from celltrain.running.cluster import Cluster
from small_sweep import thresholds

distributed = import_or_skip("distributed")
Client, Future, LocalCluster = distributed.Client, distributed.Future, distributed.LocalCluster

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="Windows has different signals")]

# A worker chosen to die does so in the middle of its work, and again after its nanny has restarted it. A run chosen to
# panic ends like a real panic.
PRELOAD = """
import os, pathlib, signal, sys
sys.path.insert(0, {tests!r})
from celltrain import _core
from failed_runs import failed_block

order = pathlib.Path({order!r})
panics = order.with_name("panics")

def deadly(cases, runs, measures, threads, take, **options):
    if order.exists() and any(seed == int(order.read_text()) for _, seed, _ in runs):
        os.kill(os.getpid(), signal.SIGKILL)
    if panics.exists():
        [(_, seed, _)] = runs
        if seed == int(panics.read_text()):
            take(failed_block([0], len(measures[0]), "panicked: made for a test"))
            return
    _core.harmless(cases, runs, measures, threads, take, **options)

# Dask loads this module more than once.
if not hasattr(_core, "harmless"):
    _core.harmless, _core.run_cases = _core.run_cases, deadly
"""

# Runs a chunk in a new process, where all threads belong to the chunk, and none to Dask or other tests.
ONE_TASK = """
import sys, threading, time
from pathlib import Path
from celltrain import _core
from celltrain.running import Chunk, Run, run_chunk

case = _core.Case(sys.argv[1], sys.argv[1])
runs = tuple(Run(point=0, case=case, seed=seed, key=str(seed)) for seed in range(4))
chunk = Chunk(runs=runs, measures=("efficiency",), limit_s=0.2, recording=None)
count = lambda: len(list(Path("/proc/self/task").iterdir()))
before = most = count()
worker = threading.Thread(target=run_chunk, args=(chunk,))
worker.start()
turns = 0
while worker.is_alive():
    most, turns = max(most, count()), turns + 1
    time.sleep(0.001)
print(most - before, turns)
"""


def text(count, duration):
    return thresholds(count, duration)


def plan(count=6, duration="5ms"):
    return Plan.of_toml(text(count, duration))


class Machines:
    """A scheduler and a nanny with single-threaded workers, in processes that outlive a driver."""

    def __init__(self, folder, workers=2):
        self.folder, self.file = folder, folder / "scheduler.json"
        self.order = folder / "deadly"
        (folder / "preload.py").write_text(PRELOAD.format(order=str(self.order), tests=str(Path(__file__).parent)))
        also = ("--preload", folder / "preload.py", "--local-directory", folder)
        self.scheduler = self._start("scheduler", "--port", 0)
        self.nanny = self._start("worker", "--nworkers", workers, "--nthreads", 1, *also)
        deadline = time.monotonic() + 60
        while not self.file.exists():
            assert time.monotonic() < deadline, (folder / "scheduler.log").read_text()
            time.sleep(0.05)
        with self.client() as client:
            client.wait_for_workers(workers, timeout=60)

    def _start(self, kind, *arguments):
        fixed = ("--scheduler-file", self.file, "--host", "127.0.0.1", "--no-dashboard")
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *fixed, *arguments]
        with (self.folder / f"{kind}.log").open("w") as log:
            return subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, cwd=self.folder)

    def client(self):
        return Client(scheduler_file=str(self.file), set_as_default=False)

    def deadly(self, seed):
        return self._order(self.order, seed)

    def panics(self, seed):
        return self._order(self.folder / "panics", seed)

    @contextlib.contextmanager
    def _order(self, path, seed):
        path.write_text(str(seed))
        try:
            yield
        finally:
            path.unlink()

    def stop(self):
        """Stops all processes immediately, without an orderly shutdown."""
        for process in (self.nanny, self.scheduler):
            with contextlib.suppress(psutil.Error):
                for one in [*psutil.Process(process.pid).children(recursive=True), process]:
                    one.kill()
            process.wait()


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    found = Machines(tmp_path_factory.mktemp("machines"))
    yield found
    found.stop()


@pytest.fixture
def client(machines):
    with machines.client() as found:
        found.wait_for_workers(2, timeout=60)
        yield found


@pytest.fixture
def inside():
    """A cluster with one thread, inside this process."""
    with (
        LocalCluster(n_workers=0, processes=False, threads_per_worker=1, dashboard_address=":0") as found,
        Client(found, set_as_default=False) as client,
    ):
        yield found, client


# The campaign `kills` covers this case too. The tests below kill a worker and a scheduler. test_campaigns.py kills
# drivers.
@pytest.mark.nightly
def test_killing_cluster_drivers_and_workers_at_random_loses_and_duplicates_no_results(tmp_path, machines, client):
    count, seed = 2000, 20261121
    path, store = tmp_path / "plan.toml", tmp_path / "s"
    path.write_text(text(count // 4, "300ms"))
    chance = random.Random(seed)
    # Each write stores 40 to 59 runs, so there are at least 33 writes.
    places = sorted(chance.sample(range(3, 32), 8))
    drivers = set(chance.sample(places, 3))
    process = sweeps.driver(path, store, "--scheduler-file", machines.file)
    killed = {"driver": 0, "worker": 0}
    for place in places:
        sweeps.wait_for_runs(store, place * sweeps.WRITE_RUNS, process)
        if place in drivers:
            process.kill()
            process.communicate()
            stored = sweeps.stored(store)
            process = sweeps.driver(path, store, "--scheduler-file", machines.file)
            killed["driver"] += 1
        else:
            stored = sweeps.stored(store)
            # Kill only workers that respond. Killing a worker that is just starting would also end its nanny.
            while not (workers := client.run(os.getpid, on_error="ignore")):
                time.sleep(0.05)
            os.kill(chance.choice(sorted(workers.values())), signal.SIGKILL)
            killed["worker"] += 1
        assert place * sweeps.WRITE_RUNS <= stored < count, (
            f"seed {seed}: killed after write {place} with {stored} runs done"
        )
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, ""), f"seed {seed}: {out}{err}"
    assert killed == {"driver": 3, "worker": 5}
    assert Store.open(store).verify() == []
    assert sweeps.stored(store) == count
    run_plan(Plan.load(path), tmp_path / "one", Local(2))
    assert rows(store) == rows(tmp_path / "one")


def test_the_python_function_sweep_accepts_any_dask_client(tmp_path, client):
    told = []
    store = ct.sweep(plan(60), client=client, store=tmp_path / "s", progress=told.append)
    ct.sweep(plan(60), store=tmp_path / "one")
    assert rows(tmp_path / "s") == rows(tmp_path / "one")
    assert (told[-1].done, told[-1].total) == (240, 240)
    assert store.verify() == []
    assert client.status == "running"
    with pytest.raises(ct.PlanError, match="client selects where to run, and so does jobs"):
        ct.sweep(plan(), client=client, jobs=2)


def test_a_run_that_kills_its_cluster_worker_becomes_a_failed_row_and_the_other_runs_continue(
    tmp_path, machines, client
):
    one_point = Plan.of_toml(text(9, "5ms").replace("50, 60, 70, 80", "50"))
    client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 1))
    try:
        with machines.deadly(seed=5):
            end = run_plan(one_point, tmp_path / "s", Cluster(client))
    finally:
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 3))
    assert (end.done, end.failed) == (9, 1)
    [row] = Store.open(tmp_path / "s").failures().to_pylist()
    assert (row["seed"], row["error"]) == (5, "the worker died in every attempt")
    assert Store.open(tmp_path / "s").verify() == []


def test_a_run_that_panics_on_a_cluster_becomes_a_failed_row(tmp_path, machines, client, monkeypatch):
    alone = Cluster(client)
    alone.chunk_runs = 1
    with machines.panics(seed=4), monkeypatch.context() as patch:
        patch.setattr(cluster, "MOST_RUNS", 1)
        end = run_plan(plan(), tmp_path / "s", alone)
    assert (end.done, end.failed) == (24, 4)
    failures = Store.open(tmp_path / "s").failures().to_pylist()
    assert [row["seed"] for row in failures] == [4] * 4
    assert {row["error"] for row in failures} == {"panicked: made for a test"}


def test_a_run_that_exceeds_its_time_limit_on_a_cluster_becomes_a_failed_row(tmp_path, client):
    limited = text(1, "5ms").replace("[axes]", '[limits]\ntime = "200ms"\n[axes]\nduration = ["1ms", "100000s"]')
    end = run_plan(Plan.of_toml(limited.replace("50, 60, 70, 80", "50, 60")), tmp_path / "s", Cluster(client))
    assert (end.done, end.failed) == (4, 2)
    errors = Store.open(tmp_path / "s").failures()["error"].to_pylist()
    assert set(errors) == {"took longer than 0.2 s of real time"}


def test_a_cluster_worker_with_another_version_is_reported_and_results_of_other_workers_are_kept(tmp_path, client):
    def other():
        from celltrain import _core

        _core.before, _core.build = _core.build, lambda: {"version": "0.0.9", "profile": "release"}

    def again():
        from celltrain import _core

        _core.build = _core.before

    first, second = client.nthreads()
    run_plan(plan(), tmp_path / "s", Cluster(client))
    client.run(other, workers=[second])
    try:
        with pytest.raises(ct.ClusterError) as refused:
            run_plan(plan(400), tmp_path / "t", Cluster(client))
    finally:
        client.run(again, workers=[second])
    [fault] = refused.value.faults
    here = _core.build()["version"]
    assert f"worker {second} on " in fault.message
    assert f"runs celltrain 0.0.9 (release), but this is celltrain {here} (release): install the same" in fault.message
    assert first not in fault.message
    end = run_plan(plan(400), tmp_path / "t", Cluster(client), resume=True)
    assert (end.done, end.failed) == (1600, 0)
    assert Store.open(tmp_path / "t").verify() == []


def test_a_cluster_worker_without_celltrain_is_reported(tmp_path, client):
    def hide():
        import sys

        sys.modules["celltrain.before"], sys.modules["celltrain"] = sys.modules["celltrain"], None

    def show():
        import sys

        sys.modules["celltrain"] = sys.modules.pop("celltrain.before")

    client.run(hide)
    try:
        with pytest.raises(
            ct.ClusterError, match=r"worker tcp://.* on .* has no celltrain .*: install .* on all machines"
        ):
            run_plan(plan(), tmp_path / "s", Cluster(client))
    finally:
        client.run(show)


def test_ctrl_c_on_a_cluster_cancels_running_chunks_of_runs_and_keeps_finished_chunks(tmp_path, client, monkeypatch):
    monkeypatch.setattr(cluster, "MOST_RUNS", 1)
    # A busy machine may need longer than users would wait.
    monkeypatch.setattr(cluster, "LAST_FETCH", 30.0)
    kept = []
    worker = Cluster(client)

    def stop(progress):
        # If several runs finished at the same time, too few runs may be in flight.
        if kept or progress.done < 30 or len(worker._in_flight) < 4:
            return
        deadline = time.monotonic() + 60
        while (finished := [future.status for future in worker._in_flight].count("finished")) < 4:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        # The run that is being reported counts as finished.
        kept.append(progress.done + finished - 1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_plan(plan(10_000, "50ms"), tmp_path / "s", worker, progress=stop)
    assert sweeps.stored(tmp_path / "s") >= kept[0]
    deadline = time.monotonic() + 30
    while client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert client.submit(sum, [1, 2]).result(timeout=30) == 3


def test_a_second_ctrl_c_while_a_cluster_result_is_being_released_is_handled(tmp_path, client, monkeypatch):
    release = Future.__del__

    def interrupted(future):
        monkeypatch.setattr(Future, "__del__", release)
        release(future)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Future, "__del__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_plan(plan(10_000, "50ms"), tmp_path / "s", Cluster(client))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_during_a_sweep_on_a_cluster_gives_exit_code_130(tmp_path, machines):
    path, store = tmp_path / "plan.toml", tmp_path / "s"
    path.write_text(text(100_000, "100ms"))
    with sweeps.driver(path, store, "--scheduler-file", machines.file, "--json") as process:
        sweeps.wait_for_runs(store, 80, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert err == "interrupted: finished runs are kept; continue with --resume\n"
    answer = json.loads(out)
    assert answer["interrupted"]
    assert sweeps.stored(store) >= answer["done"] >= 80
    assert Store.open(store).verify() == []


@pytest.mark.nightly
def test_a_sweep_ends_if_its_cluster_scheduler_ends_and_resumes_on_another_scheduler(tmp_path):
    path, store = tmp_path / "plan.toml", tmp_path / "s"
    path.write_text(text(120, "300ms"))
    folder = tmp_path / "machines"
    folder.mkdir()
    before = Machines(folder, workers=1)
    try:
        with sweeps.driver(path, store, "--scheduler-file", before.file, "--dask-timeout", "1s") as process:
            sweeps.wait_for_runs(store, 120, process)
            before.scheduler.kill()
            out, err = process.communicate(timeout=60)
    finally:
        before.stop()
    assert (process.returncode, out) == (2, "")
    assert "the scheduler was lost; finished runs are kept" in err
    assert err.count("\n") == 1
    assert 120 <= sweeps.stored(store) < 480
    before.file.unlink()
    after = Machines(folder, workers=1)
    try:
        with sweeps.driver(path, store, "--scheduler-file", after.file) as process:
            out, err = process.communicate(timeout=120)
    finally:
        after.stop()
    assert (process.returncode, err) == (0, ""), out + err
    run_plan(Plan.load(path), tmp_path / "one", Local(2))
    assert rows(store) == rows(tmp_path / "one")


def test_chunks_of_runs_that_the_cluster_lost_are_submitted_again(tmp_path, inside, monkeypatch):
    machines, client = inside
    machines.scale(1)
    monkeypatch.setattr(cluster, "MOST_RUNS", 4)
    dropped = 0

    def drop(progress):
        nonlocal dropped
        futures = [Future(key, client) for key in list(client.futures)]
        if dropped < 3 and futures:
            dropped += len(futures)
            client.cancel(futures)

    end = run_plan(plan(100), tmp_path / "s", Cluster(client), progress=drop)
    assert dropped >= 3
    assert (end.done, end.failed) == (400, 0)
    run_plan(plan(100), tmp_path / "one", Local(1))
    assert rows(tmp_path / "s") == rows(tmp_path / "one")


def test_cluster_workers_that_join_late_get_work_and_missing_workers_are_reported(tmp_path, inside, monkeypatch):
    machines, client = inside
    monkeypatch.setattr(cluster, "SILENCE", 0.2)
    told = []

    def note(words):
        told.append(words)
        machines.scale(2)

    end = run_plan(plan(), tmp_path / "s", Cluster(client, note))
    assert end.done == 24
    assert told == [f"{client.scheduler.address} has no workers: waiting for some"]


def test_chunks_of_cluster_runs_grow_until_a_chunk_takes_about_a_second(tmp_path, inside, monkeypatch):
    machines, client = inside
    machines.scale(1)
    monkeypatch.setattr(cluster, "CHUNK_SECONDS", 0.1)
    sizes = []

    class Seen(Cluster):
        def _open(self, answer, parcel, take):
            sizes.append((parcel.runs, answer[1]))
            super()._open(answer, parcel, take)

    run_plan(plan(500), tmp_path / "s", Seen(client))
    assert sizes[0][0] == cluster.FIRST_RUNS
    assert max(runs for runs, _ in sizes) > 4 * cluster.FIRST_RUNS
    assert sorted(seconds for _, seconds in sizes)[len(sizes) // 2] < 0.5


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="this system does not list the threads of a process")
def test_a_cluster_task_uses_one_thread_and_does_not_block_the_python_interpreter():
    configuration = canonical(plan(1, "100000s").points[0].scenario)
    command = [sys.executable, "-c", ONE_TASK, configuration]
    threads, turns = map(int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert threads == 2, "the process has the thread of the task and a thread of the core"
    assert turns > 50


def test_the_dry_run_of_a_sweep_prints_the_size_of_the_cluster(tmp_path, celltrain, machines, client):
    path = tmp_path / "plan.toml"
    path.write_text(text(6, "5ms"))
    foretold = celltrain("sweep", path, "--dry-run", "--dask", client.scheduler.address, "--json").json
    assert (foretold["workers"], foretold["threads"], foretold["runs"]) == (2, 2, 24)
    assert "2 threads in 2 workers" in celltrain("sweep", path, "--dry-run", "--scheduler-file", machines.file).out


def test_the_error_for_an_invalid_scheduler_address_states_the_address(tmp_path, celltrain, client):
    path = tmp_path / "plan.toml"
    path.write_text(text(6, "5ms"))
    worker, _ = client.nthreads()
    assert "(it is a Worker)" in celltrain("sweep", path, "--store", tmp_path / "s", "--dask", worker).err
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        told = celltrain("sweep", path, "--store", tmp_path / "s", "--dask", address, "--dask-timeout", "500ms")
    assert told.code == 2
    assert f"--dask = {address} is not a scheduler that responds" in told.err


# A replacement for SLURM that runs every task on this machine.
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
exec "$@"
"""


@pytest.mark.nightly
def test_the_slurm_script_on_the_cluster_page_runs_and_resumes_a_sweep(tmp_path):
    [script] = [block.text for block in blocks(ROOT / "docs" / "cluster.md") if block.comment == "file: sweep.sbatch"]
    (tmp_path / "sweep.sbatch").write_text(script)
    (tmp_path / "plan.toml").write_text(text(6, "5ms"))
    binaries = tmp_path / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "activate").touch()
    (binaries / "srun").write_text(SRUN)
    (binaries / "srun").chmod(0o755)
    path = os.pathsep.join([str(binaries), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "1", "TMPDIR": str(tmp_path)}
    store = tmp_path / "out" / "plan"
    store.parent.mkdir()

    class Stops(Local):
        def work(self, chunks, take):
            chunk = next(chunks)
            take(run_chunk(replace(chunk, runs=chunk.runs[:5])))
            raise KeyboardInterrupt

    # Simulate an earlier job that ran out of time. The script resumes its store.
    with pytest.raises(KeyboardInterrupt):
        run_plan(Plan.load(tmp_path / "plan.toml"), store, Stops(1))
    assert 0 < sweeps.stored(store) < 24
    command = ["bash", "sweep.sbatch"]
    told = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200)
    assert told.returncode == 0, told.stderr
    assert "24 runs done, 0 failed" in told.stdout
    assert Store.open(store).verify() == []


TUNE = """
[scenario]
duration = "4ms"
[scenario.topology.n_source]
sources = 3
link_delay = "5us"
[scenario.port.bottleneck]
buffer = 100
policy = { selective_drop = {} }
[tune]
objectives = { efficiency = "maximize", "cells.lost" = "minimize" }
trials = 4
batch = 2
finalists = 2
[tune.parameters]
Z = { path = "port.bottleneck.policy.selective_drop.z", from = 0.2, to = 2.0 }
[tune.references]
"the paper's" = { Z = 0.8 }
[tune.seeds]
search = 2
selection = 2
confirmation = 3
"""


def test_a_search_on_a_cluster_gives_the_result_of_a_local_search(tmp_path, machines, client):
    plan = TunePlan.of_toml(TUNE)
    here = run_tune(plan, tmp_path / "here", Local(2)).to_dict()
    assert ct.tune(plan, client=client, out=tmp_path / "there").to_dict() == here
    (tmp_path / "plan.toml").write_text(TUNE)
    command = [sys.executable, "-m", "celltrain", "tune", "plan.toml", "--store", "said", "--json"]
    asked = subprocess.run(
        [*command, "--scheduler-file", machines.file], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (asked.returncode, asked.stderr) == (0, "")
    answer = json.loads(asked.stdout)
    assert {key: answer[key] for key in here if key != "name"} == {key: here[key] for key in here if key != "name"}
    for path in sorted((tmp_path / "here" / "runs").iterdir()):
        assert (
            rows(path) == rows(tmp_path / "there" / "runs" / path.name) == rows(tmp_path / "said" / "runs" / path.name)
        )


def test_a_search_accepts_only_one_cluster_scheduler(client):
    with pytest.raises(ct.PlanError, match="selects where to run, and so does jobs"):
        ct.tune(TunePlan.of_toml(TUNE), jobs=2, client=client)
