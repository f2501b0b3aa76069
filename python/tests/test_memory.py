"""Runs that do not fit into memory are refused, and exceeding the memory ends with a message."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, Command

from celltrain.ensemble.store import Store

sys.path.insert(0, str(ROOT / "scripts"))
import memory_campaign as campaign

pytestmark = pytest.mark.slow

#: Limit on the address space. It is enough for the interpreter and its libraries, but for little more.
LIMIT = 2 << 30
#: Number of hosts in a ring whose network alone exceeds the limit.
LARGE = 600_000
#: Number of hosts in a ring whose run exceeds this many bytes beyond the process's initial memory.
GROWING, MORE = 20_000, 320 << 20
GROWN = f"""
import resource, sys
from celltrain import cli
from memory_campaign import status
most = status("VmSize") + {MORE}
resource.setrlimit(resource.RLIMIT_AS, (most, most))
cli.main()
"""
EPD = "policy.epd.threshold = 800"

PLAN = """
scenario = "star.toml"
measures = ["efficiency"]
seeds.count = 2

[axes.hosts]
path = "topology.star.hosts"
values = {hosts}
"""


def limited(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs the command line in a process with little memory."""
    command = [sys.executable, "-m", "celltrain", *map(str, arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT)),
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the memory limit")
@pytest.mark.parametrize("command", ["check", "run"])
def test_the_error_for_a_run_too_large_for_memory_names_its_largest_parts(command: str, tmp_path: Path) -> None:
    path = tmp_path / "ring.toml"
    path.write_text(campaign.star(LARGE, "ring", "1ms", EPD))
    done = limited(command, path)
    assert done.returncode == 2, done.stderr
    begins = f"{path}:4: topology.star.hosts = {LARGE} makes a network that is too large: {LARGE + 1} nodes and"
    assert begins in done.stderr and "GiB of memory" in done.stderr and "Use fewer connections" in done.stderr, (
        done.stderr
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the memory limit")
@pytest.mark.parametrize("engine", ["fast", pytest.param("reference", marks=pytest.mark.nightly)])
def test_a_run_that_exceeds_its_memory_limit_ends_with_an_error_message(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "ring.toml"
    path.write_text(campaign.star(GROWING, "ring", "100ms", EPD))
    command = [sys.executable, "-c", GROWN, "run", str(path), "--engine", engine]
    scripts = os.pathsep.join([str(ROOT / "scripts"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": scripts})
    assert done.returncode == 2, done.stderr
    assert f"does not fit: {GROWING + 1} nodes and" in done.stderr and "need more than" in done.stderr, done.stderr


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the memory limit")
def test_a_sweep_point_too_large_for_memory_becomes_a_failed_row(tmp_path: Path) -> None:
    (tmp_path / "star.toml").write_text(campaign.star(3, "ring", "1ms", EPD))
    (tmp_path / "plan.toml").write_text(PLAN.format(hosts=[3, LARGE, 4]))
    store = tmp_path / "store"
    for resume in ([], ["--resume"]):
        done = limited("sweep", tmp_path / "plan.toml", "--store", store, "--jobs", 2, *resume)
        assert done.returncode in (0, 1), done.stderr
        rows = Store.open(store).wide().to_pylist()
        assert len(rows) == 6
        failed = [row for row in rows if row["error"]]
        assert [row["hosts"] for row in failed] == [LARGE] * 2
        assert all("is too large" in row["error"] for row in failed)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the memory limit")
def test_a_plan_is_refused_if_none_of_its_points_fits_into_memory(tmp_path: Path) -> None:
    (tmp_path / "star.toml").write_text(campaign.star(3, "ring", "1ms", EPD))
    (tmp_path / "plan.toml").write_text(PLAN.format(hosts=[LARGE]))
    done = limited("sweep", tmp_path / "plan.toml", "--store", tmp_path / "store")
    assert done.returncode == 2 and "is too large" in done.stderr, done.stderr
    assert not (tmp_path / "store").exists()


def test_the_check_command_estimates_the_memory_of_a_run(celltrain: Command, small: Path) -> None:
    [network] = celltrain("check", small, "--json").json["networks"]
    assert 0 < network["memory_bytes"] < 1 << 20
