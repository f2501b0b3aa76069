from __future__ import annotations

import functools
import gc
import importlib
import importlib.util
import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer.main
from failed_runs import failed_block

if TYPE_CHECKING:
    from celltrain.ensemble.tuning import Tuned

# Collecting thousands of tests creates millions of objects that live until the end.
gc.disable()
# Set before anything imports matplotlib, because tests have no screen.
os.environ["MPLBACKEND"] = "Agg"
# Use the default width for pipes, not the width of the terminal that runs the tests.
os.environ.pop("COLUMNS", None)
# Background jobs ignore Ctrl-C, and so would the processes that the tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parents[2]
#: True if every package in requirements/dev.lock is installed, as in the nightly job.
NIGHTLY = bool(os.environ.get("NIGHTLY"))
#: Packages of requirements/dev.lock, by the names in the lock file.
PACKAGES = set(
    re.findall(r"^([a-z0-9_-]+)==", (ROOT / "requirements/dev.lock").read_text(encoding="utf-8"), re.MULTILINE)
)

SMALL = """\
name = "small"
duration = "20ms"

[topology.n_source]
sources = 3
link_delay = "5us"

[port.bottleneck]
buffer = 100

[port.bottleneck.policy.epd]
threshold = 60
"""


#: A scenario without the policy of its bottleneck.
WITHOUT_POLICY = """\
name = "mine"
duration = "20ms"

[topology.n_source]
sources = 3
link_delay = "5us"

[port.bottleneck]
buffer = 200
"""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The output and the exit code of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Answer]


def is_refused(answer: Answer, words: list[str]) -> None:
    """Asserts that a command refused its input with a message that contains all of these words."""
    assert answer.code == 2
    assert "Traceback" not in answer.err
    for word in words:
        assert word in answer.err


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs only a sample of the cases of a `sampled` test; the nightly job runs all cases.

    Runs the tests of the lab first, because they take longest and would otherwise run alone at the end.
    """
    cases: Counter[str] = Counter()
    for item in items:
        if mark := item.get_closest_marker("sampled"):
            test = item.nodeid.partition("[")[0]
            if cases[test] % mark.args[0]:
                item.add_marker(pytest.mark.nightly)
            cases[test] += 1
    items.sort(key=lambda item: not item.nodeid.startswith("python/tests/test_lab.py"))


def pytest_collection_finish() -> None:
    """Collects garbage from now on, except among the objects of the collected tests."""
    gc.freeze()
    gc.enable()


def import_or_skip(name: str) -> Any:
    """Imports a package that only the nightly job installs. Skips the test or its module without the package.

    The nightly job installs everything in requirements/dev.lock. If a package of that file is missing, the test fails
    there.
    """
    if NIGHTLY:
        return importlib.import_module(name)
    return pytest.importorskip(name)


def pytest_configure() -> None:
    """Skips tests of celltrain's features that need a package which only the nightly job installs."""
    # Modules import this function by its name, so it is replaced before they are imported.
    from celltrain import errors

    needed = errors.needed

    def needed_or_skip(module: str, message: str) -> Any:
        package = module.partition(".")[0]
        # Tests of the message replace the module with None.
        if NIGHTLY or package not in PACKAGES or package in sys.modules or importlib.util.find_spec(package):
            return needed(module, message)
        pytest.skip(f"{package} is not installed")

    errors.needed = needed_or_skip


@functools.cache
def command_line() -> Callable[..., None]:
    """The whole command line. Building it takes longer than most commands."""
    from celltrain.cli import app

    return typer.main.get_command(app)


@pytest.fixture
def celltrain(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs the command line in this process."""
    from celltrain.cli import shell

    # On a slow machine, long commands would write lines of progress.
    monkeypatch.setattr(shell, "LINE_SECONDS", 1e6)

    def run(*arguments: object) -> Answer:
        with pytest.raises(SystemExit) as ended:
            command_line()([str(argument) for argument in arguments], prog_name="celltrain")
        out, err = capsys.readouterr()
        # The command line reports every exception, including the exception of a skipped test.
        if skipped := re.search(r"internal error: Skipped: (\w+ is not installed)", err):
            pytest.skip(skipped[1])
        return Answer(code=int(ended.value.code or 0), out=out, err=err)

    return run


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Writes a scenario that runs quickly and loses cells."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seeds whose runs fail as if they panicked. crates/celltrain-run/src/runner/tests.rs tests real panics."""
    return fail_runs(monkeypatch)


def fail_runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Makes the runs of some seeds fail. Returns the failing seeds."""
    from celltrain import _core

    seeds, before = [4], _core.run_cases

    def run_cases(cases: Any, runs: Any, measures: Any, threads: int, take: Any, **options: Any) -> None:
        failed = [place for place, (_, seed, _) in enumerate(runs) if seed in seeds]
        others = [place for place, (_, seed, _) in enumerate(runs) if seed not in seeds]
        if failed:
            take(failed_block(failed, max(map(len, measures)), "panicked: made for a test"))
        kept = [runs[place] for place in others]

        def take_others(block: Any) -> None:
            filled = [(row, others[run]) for row, run in block["filled_from"]]
            take({**block, "runs": [others[run] for run in block["runs"]], "filled_from": filled})

        before(cases, kept, measures, threads, take_others, **options)

    monkeypatch.setattr(_core, "run_cases", run_cases)
    return seeds


def replace_pdf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the PDF of each figure with its first bytes: embedding fonts takes half the time of a report."""
    from celltrain.drawing.figure import Drawing

    drawn = Drawing._drawn
    monkeypatch.setattr(Drawing, "_drawn", lambda self, kind: b"%PDF-" if kind == "pdf" else drawn(self, kind))


def skip_fitting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Does not fit the labels of figures into their room, which takes most of the time. The nightly job does."""
    from celltrain.drawing import figure as canvas

    if not NIGHTLY:
        monkeypatch.setattr(canvas, "fitted", lambda figure, least=0.0: figure)


@pytest.fixture
def without_pdf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes figures, but PDF files without their content."""
    replace_pdf(monkeypatch)


@pytest.fixture
def one_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes figures of reproductions only as SVG. The nightly job writes every format."""
    from celltrain.papers import figures

    if not NIGHTLY:
        monkeypatch.setattr(figures, "ENDINGS", ("svg",))


@pytest.fixture
def empty_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Computes no layout and writes empty figures, for tests of other parts of a report.

    Those steps take most of the time. Only the nightly job draws each figure a second time, in the width of a column.
    """
    from matplotlib.figure import Figure

    from celltrain.drawing import figure as canvas
    from celltrain.drawing.figure import Drawing
    from celltrain.ensemble.reports import Report

    files = {"pdf": b"%PDF-", "svg": b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"></svg>'}
    monkeypatch.setattr(Drawing, "_drawn", lambda self, kind: files[kind])
    monkeypatch.setattr(Figure, "draw_without_rendering", lambda self: None)
    skip_fitting(monkeypatch)
    if not NIGHTLY:
        monkeypatch.setattr(canvas, "_lines", lambda figure, text, room: [text])
        monkeypatch.setattr(Report, "_pairs", lambda self: ((drawing, drawing) for drawing in self.drawings()))


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tuned, Path]:
    """A completed search and its folder."""
    from tunes import plan

    from celltrain.ensemble.tuning import run_tune
    from celltrain.running import Local

    folder = tmp_path_factory.mktemp("tune") / "whole"
    return run_tune(plan(), folder, Local(2)), folder
