"""If links or pipes have been planted in place of output files, they are replaced or refused, never written through."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from conftest import import_or_skip
from test_text import network

import celltrain as ct

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has different links and pipes")


@pytest.fixture
def mine(tmp_path) -> Path:
    """A path to a file that belongs to another user."""
    path = tmp_path / "mine"
    path.write_text("mine")
    return path


def plant(folder: Path, files: list[Path], mine: Path) -> None:
    """Replaces files by links that lead alternately to the other user's file and to a missing file."""
    for place, path in enumerate(files):
        path.unlink()
        path.symlink_to(mine if place % 2 else folder.parent / "new")


def expect_untouched(files: list[Path], mine: Path) -> None:
    assert files
    assert not [path for path in files if path.is_symlink() or not path.is_file()]
    assert mine.read_text() == "mine"
    assert not (mine.parent / "new").exists()
    assert not [path for path in files[0].parent.iterdir() if path.suffix == ".tmp"]


def results() -> ct.RunResult:
    return ct.run(network("a"), trace=["queue"], step="10ms")


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> ct.Store:
    over = {"port.bottleneck.buffer": [100, 200]}
    base = ct.n_source(sources=2, link_delay="5us", buffer_cells=100, policy=ct.TailDrop(), duration="2ms")
    return ct.sweep(base, over=over, seeds=2, measures=["efficiency"], store=tmp_path_factory.mktemp("of") / "s")


@pytest.mark.slow
@pytest.mark.usefixtures("empty_figures")
@pytest.mark.parametrize("what", ["run", "report", pytest.param("study", marks=pytest.mark.nightly)])
def test_symbolic_links_in_an_output_folder_are_replaced_by_files(tmp_path, mine, store, what):
    pytest.importorskip("matplotlib")
    folder = tmp_path / "out"
    written = {
        "run": lambda: results().write(folder),
        "report": lambda: ct.report(store).write(folder),
        "study": lambda: ct.study("tagging", seeds=1, overrides={"duration": "10ms"}).write(folder),
    }[what]
    files = written()
    plant(folder, files, mine)
    assert written() == files
    expect_untouched(files, mine)


def test_a_symbolic_link_in_place_of_an_output_subfolder_is_refused(tmp_path, store, celltrain):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "figures").symlink_to(elsewhere)
    with pytest.raises(ct.OutputError, match=r"figures: is a link that celltrain did not create: delete it"):
        ct.report(store).write(tmp_path / "out")
    (store.path / "report").symlink_to(elsewhere)
    told = celltrain("report", store.path)
    (store.path / "report").unlink()
    assert (told.code, told.out) == (2, "")
    assert "report: is a link" in told.err
    assert not list(elsewhere.iterdir())


def test_the_output_folder_that_the_user_names_may_be_a_symbolic_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk")
    files = results().write(tmp_path / "out")
    assert (tmp_path / "disk" / "result.json").is_file()
    assert len(list((tmp_path / "disk").iterdir())) == len(files)


def test_the_output_file_that_the_user_names_may_be_a_symbolic_link(tmp_path, mine, celltrain):
    (tmp_path / "one.toml").symlink_to(mine)
    scenario = network("a")
    ct.save(scenario, tmp_path / "one.toml")
    assert (tmp_path / "one.toml").is_symlink()
    assert ct.load(mine) == scenario
    ct.save(network("b", name="short"), mine)
    assert ct.load(mine) == network("b", name="short")


@pytest.mark.parametrize("command", ["save", "import", "check"])
def test_output_to_a_pipe_or_a_device_is_refused(tmp_path, celltrain, command):
    # Regression: if the pipe had no reader, the call blocked.
    base = tmp_path / "base.toml"
    ct.save(network("a"), base)
    (tmp_path / "graph.json").write_text('{"nodes": [{"id": 1}, {"id": 2}], "links": [{"source": 1, "target": 2}]}')
    pipe, device = tmp_path / "pipe.svg", tmp_path / "device.svg"
    os.mkfifo(pipe)
    device.symlink_to("/dev/null")
    for path in (pipe, device):
        if command == "save":
            with pytest.raises(ct.OutputError, match="is not a regular file"):
                ct.save(network("a"), path)
            continue
        graph = ("import", tmp_path / "graph.json", "--flows", "1", "--delay", "1ms", "-o", path)
        told = celltrain(*graph if command == "import" else ("check", base, "--plot", path))
        assert (told.code, told.out) == (2, "")
        assert f"{path}: is not a regular file; name another file" in told.err


@pytest.mark.slow
def test_a_search_does_not_write_through_symbolic_links_in_its_folder(tmp_path, mine):
    import_or_skip("optuna")
    from tunes import PLAN

    from celltrain.ensemble.tuning import TunePlan, run_tune
    from celltrain.errors import TuneError
    from celltrain.running import Local

    plan, folder = TunePlan.of_toml(PLAN), tmp_path / "search"
    run_tune(plan, folder, Local(2))
    (folder / "runs").rename(tmp_path / "runs")
    (folder / "runs").symlink_to(tmp_path / "runs")
    with pytest.raises(TuneError, match="runs: is a link"):
        run_tune(plan, folder, Local(2), resume=True)
