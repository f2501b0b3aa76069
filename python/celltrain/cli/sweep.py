"""`celltrain sweep` runs a plan into a store; `celltrain tune` searches a policy's parameters for two objectives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celltrain.cli import options, shell
from celltrain.drawing import words
from celltrain.drawing.figure import FigureStyle, require_matplotlib
from celltrain.errors import InputError
from celltrain.model.files import inner
from celltrain.model.grids import Block, Line
from celltrain.model.overrides import single
from celltrain.model.paths import seconds
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.ensemble.cases import Estimate
    from celltrain.ensemble.plan import Plan
    from celltrain.ensemble.store import Store
    from celltrain.ensemble.sweeps import Progress
    from celltrain.ensemble.tuning import TunePlan, TuneProgress
    from celltrain.running import Local
    from celltrain.running.cluster import Cluster

# Limits of the printed table. The store contains everything.
MOST_POINTS = 24
MOST_RUNS = 50_000
MOST_MEASURES = 16


#: A longer timeout is probably a typing mistake.
MOST_SECONDS = 24 * 60 * 60


@contextmanager
def _worker(
    jobs: int | None, dask: str | None, scheduler_file: Path | None, dask_timeout: str, no_certificates: bool
) -> Iterator[Local | Cluster]:
    """Yields the worker selected by these options.

    Raises:
        InputError: If options conflict.
        ClusterError: If the cluster cannot be reached.
    """
    where = {"--jobs": jobs, "--dask": dask, "--scheduler-file": scheduler_file}
    chosen = [option for option, value in where.items() if value is not None]
    if len(chosen) > 1:
        problem = f"selects where to run, and so does {chosen[0]}: give only one of these options"
        raise InputError.of_option(chosen[1], where[chosen[1]], problem)
    from celltrain.running import Local

    wait = _seconds(dask_timeout)
    if dask is None and scheduler_file is None:
        yield Local(jobs, certificates=not no_certificates)
        return
    from celltrain.running.cluster import Cluster, connected, scheduler_in

    option = "--dask" if scheduler_file is None else "--scheduler-file"
    address = scheduler_in(scheduler_file, timeout=wait) if scheduler_file is not None else str(dask)
    with connected(address, option=option, timeout=wait) as client:
        yield Cluster(client, shell.complain)


def _seconds(text: str) -> float:
    """Returns the seconds of `--dask-timeout`; raises `InputError`."""
    with suppress(ValueError):
        if 0 < (value := seconds(text)) <= MOST_SECONDS:
            return value
    problem = f"must be a time above 0 and at most {MOST_SECONDS}s (one day), such as 60s or 500ms"
    raise InputError.of_option("--dask-timeout", text, problem)


def _option(kind: Any, metavar: str, text: str) -> Any:
    return Annotated[kind, options.option(metavar, text, panel=options.ENSEMBLE)]


_WHERE = {
    "jobs": (options.Jobs, None),
    "dask": (_option(str | None, "ADDRESS", "Run on the Dask cluster of this scheduler: tcp://host:8786."), None),
    "scheduler_file": (_option(Path | None, "FILE", "Run on the Dask cluster whose scheduler wrote this file."), None),
    "dask_timeout": (_option(str, "TIME", "Longest time to wait for the scheduler, such as 60s; at most a day."), "5s"),
    "no_certificates": (options.NoCertificates, False),
}
#: Worker for the runs: threads of this machine, or a cluster.
Where = Annotated[AbstractContextManager[Any], options.OptionGroup(_worker, _WHERE)]


def _plan(kind: str) -> Any:
    """Creates the argument PLAN of a command."""
    text = f"The plan: a TOML file{kind}, or the name of a shipped one."
    return typer.Argument(metavar="PLAN", help=text, autocompletion=options.complete_plans)


@shell.command
def sweep(
    output: shell.Table,
    where: Where,
    plan: Annotated[Path, _plan("")],
    settings: options.PlanSettings = None,
    resume: bool = False,
    retry_failed: bool = False,
    dry_run: bool = False,
    store: Path | None = None,
) -> int:
    """Run a scenario over many settings and seeds, into a store. Ctrl-C keeps finished runs; --resume continues.

    Ensemble:
        resume: Run only what is missing in the store.
        retry_failed: With --resume: run all failed runs again.
        dry_run: Print how many runs there are, and estimate their time and disk.

    Output:
        store (DIR): Folder for the results: new or empty.

    Examples:
        celltrain sweep selective-drop-rz --dry-run
        celltrain sweep selective-drop-rz --store out/sd
        celltrain sweep selective-drop-rz --store out/sd --resume
    """
    from celltrain.ensemble.plan import Plan
    from celltrain.ensemble.sweeps import run_plan

    if store is None and not dry_run:
        raise InputError.of_option("--store", "", "is missing: name a folder for results, or use --dry-run")
    if retry_failed and not resume:
        raise InputError.of_option("--retry-failed", "", "needs --resume: a new store has no failed runs")
    _refuse_csv(output, "sweep", dry_run=dry_run)
    what = Plan.load(plan, settings=single(settings))
    latest: list[Progress] = []
    with where as worker:
        if store is None or dry_run:
            return _estimate_sweep(what, worker, output)
        with shell.counting(what.name or plan.stem, latest, _sweep_bar) as tell:
            try:
                run_plan(what, store, worker, resume=resume, retry_failed=retry_failed, progress=tell)
            except KeyboardInterrupt:
                return _interrupted(output, {"store": shown(store)}, latest)
    return _finish(store, latest[-1], output)


@shell.command
def tune(
    output: shell.Table,
    where: Where,
    plan: Annotated[Path, _plan(" with a table \\[tune]")],
    settings: options.PlanSettings = None,
    resume: bool = False,
    dry_run: bool = False,
    store: Path | None = None,
    style: options.Style = None,
) -> int:
    """Search parameters for the front of two measures. Ctrl-C keeps finished runs; --resume continues.

    Ensemble:
        resume: Continue from the trials already in the folder.
        dry_run: Print how many runs there are, and estimate their time.

    Output:
        store (DIR): Folder for the results: new or empty. [default: out/PLAN]

    Examples:
        celltrain tune tune-selective-drop --dry-run
        celltrain tune tune-selective-drop --store out/tune-sd
        celltrain tune tune-selective-drop --store out/tune-sd --resume
    """
    from celltrain.drawing.html import environment
    from celltrain.ensemble.tuning import TunePlan, run_tune

    _refuse_csv(output, "search", dry_run=dry_run)
    what = TunePlan.load(plan, settings=single(settings))
    if not dry_run:
        # The report needs matplotlib. If it is missing, fail now instead of after an hour.
        require_matplotlib()
        with FigureStyle.of("page", style).applied():
            environment("tune")
    folder = store or Path("out") / plan.stem
    latest: list[TuneProgress] = []
    with where as worker:
        if dry_run:
            return _estimate_search(what, worker, output)
        with shell.counting(what.name or plan.stem, latest, _tune_bar) as tell:
            try:
                tuned = run_tune(what, folder, worker, resume=resume, progress=tell)
            except KeyboardInterrupt:
                return _interrupted(output, {"folder": shown(folder)}, latest)
    with shell.waiting("drawing") as drawing:
        written = tuned.write(inner(folder / "report"), style=style, progress=drawing)
    files = {"files": [shown(path) for path in written]}
    answer = {"folder": shown(folder), "interrupted": False, **tuned.to_dict(), **files}
    output.show(answer, tuned.blocks(), tuned.rows)
    output.note(f"wrote {shown(written[0])}, and {len(written) - 1} files next to it")
    failed = tuned.facts["failed"]
    if failed:
        shell.complain(f"{failed:,} runs failed, and so did their trials; the page gives the reasons")
    return shell.NO if failed else shell.DONE


def _refuse_csv(output: shell.Output, what: str, *, dry_run: bool) -> None:
    """Raises `InputError` for a dry run with `--csv`, because a dry run has no table to write."""
    if dry_run and output.csv is not None:
        raise InputError.saying(f"--csv writes the table of a {what}: leave out --dry-run.", key="--csv")


def _interrupted(output: shell.Output, facts: dict[str, Any], latest: list[Any]) -> int:
    """Prints that the command was interrupted; returns the exit code."""
    if output.form == "json":
        shell.answer({**facts, "interrupted": True, **(asdict(latest[-1]) if latest else {})})
    shell.complain("interrupted: finished runs are kept; continue with --resume")
    return shell.INTERRUPTED


def _sweep_bar(now: Progress) -> tuple[int, int, str]:
    return now.done, now.total, f"{now.rate:.3g} a second{_rest(now)}"


def _tune_bar(now: TuneProgress) -> tuple[int, int, str]:
    trials = f"{now.trials:,} of {now.total_trials:,} trials"
    return now.runs, now.most_runs, f"{trials}, {now.stage}, {now.rate:.3g} runs a second{_rest(now)}"


def _rest(now: Progress | TuneProgress) -> str:
    time = "" if now.remaining_seconds is None else f", {words.left(now.remaining_seconds)}"
    return f"{time}, {now.failed:,} failed" if now.failed else time


def _estimated(plan: Plan, worker: Local | Cluster, what: str) -> tuple[Estimate, dict[str, int], str]:
    """Returns the estimate of a plan, and the size of the worker as numbers and in words."""
    from celltrain.ensemble.cases import estimate
    from celltrain.running import Local

    machines, threads = (None, worker.threads) if isinstance(worker, Local) else worker.size()
    with shell.waiting(f"running a few {what} to see how long they take"):
        expected = estimate(plan, max(threads, 1))
    if machines is None:
        return expected, {"threads": threads}, f"{threads} threads"
    where = f"the cluster's {threads} threads in {machines} workers"
    where = where if threads else "one thread (no workers yet)"
    return expected, {"threads": threads, "workers": machines}, where


def size_in_words(size: float) -> str:
    """Formats a number of bytes with a unit.

    >>> size_in_words(129_500), size_in_words(18_500_000), size_in_words(2.04e9)
    ('130 KB', '18.5 MB', '2.04 GB')
    """
    for limit, scale, word in ((1e6, 1e3, "KB"), (1e9, 1e6, "MB"), (float("inf"), 1e9, "GB")):
        if size < limit:
            return f"{size / scale:.3g} {word}"
    return ""


def _estimate_sweep(plan: Plan, worker: Local | Cluster, output: shell.Output) -> int:
    from celltrain.ensemble import plan_warnings

    expected, size, where = _estimated(plan, worker, "points")
    warnings = [*plan_warnings.of_plan(plan), *plan_warnings.tried(plan)]
    for warning in warnings:
        shell.complain(f"warning: {warning}")
    most = "at most " if expected.least_runs < expected.runs else ""
    cost = "no sampled point can be run, so time and disk cannot be estimated"
    if expected.probes:
        runs = "run" if expected.probes == 1 else "runs"
        cost = (
            f"about {most}{words.in_words(expected.seconds)} on {where} and {size_in_words(expected.bytes)} of disk: "
            f"an estimate, from {expected.probes} {runs} of {words.in_words(expected.seconds_per_run)} each; series "
            "are not counted"
        )
    output.tell(
        {**asdict(expected), **size, "axes": [axis.name for axis in plan.axes], "warnings": warnings},
        f"{shown(plan.name or 'plan')}: {expected.points:,} points, {most}{expected.runs:,} runs",
        *(
            f"  {' with '.join(shown(axis.name) for axis in group.axes)}: {len(group):,} values"
            for group in plan.groups
        ),
        cost,
    )
    return shell.DONE


def _estimate_search(plan: TunePlan, worker: Local | Cluster, output: shell.Output) -> int:
    expected, size, where = _estimated(plan.middle(), worker, "settings")
    searches = len(plan.configurations.points)
    seconds = expected.seconds_per_run * plan.most_runs / max(size["threads"], 1)
    counts = {"searches": searches, **{name: getattr(plan, name) for name in ("trials", "generations", "most_runs")}}
    cost = {"seconds_per_run": expected.seconds_per_run, "seconds": seconds}
    output.tell(
        {**counts, **cost, "bytes": expected.bytes_per_run * plan.most_runs, **size},
        f"{shown(plan.name or 'plan')}: {searches:,} {'search' if searches == 1 else 'searches'} of {plan.trials:,} "
        f"trials in {plan.generations:,} generations, at most {plan.most_runs:,} runs",
        f"about {words.in_words(seconds)} on {where}: an estimate, from {expected.probes} runs of "
        f"{words.in_words(expected.seconds_per_run)} each"
        if expected.probes
        else "no sampled setting can be run, so the time cannot be estimated",
    )
    return shell.DONE


def _finish(folder: Path, last: Progress, output: shell.Output) -> int:
    """Prints the outcome of a sweep and the contents of its store; returns the exit code."""
    from celltrain.ensemble import plan_warnings
    from celltrain.ensemble.store import Store

    store = Store.open(folder)
    doubts = plan_warnings.of_store(store)
    if output.form == "text":
        did = f"{last.done:,} runs done" if last.rate else f"nothing to run: all {last.done:,} runs are in the store"
        repeated = f", {last.repeated:,} of them taken from earlier points" if last.repeated else ""
        if last.without_running:
            repeated += f", {last.without_running:,} of them copied from equal runs"
        took = f", in {words.in_words(last.elapsed_seconds)}" if last.rate else ""
        shell.say(f"{did}{repeated}, {last.failed:,} failed{took}: {shown(folder)}")
    answer = {"store": shown(folder), "interrupted": False, **asdict(last), "warnings": doubts}
    output.show(answer, blocks(store), lambda: store.summary().to_pylist())
    for doubt in doubts:
        shell.complain(f"warning: {doubt}")
    if last.wide:
        shell.complain(f"{last.wide:,} points have the maximum number of seeds, but a wider interval than requested")
    if last.failed:
        shell.complain(f"{last.failed:,} runs failed; their rows in the store give the reasons")
    return shell.NO if last.failed else shell.DONE


def blocks(store: Store) -> Iterator[Block]:
    """Yields a table of a small store: the means of the measures at each point, with half their 95 % intervals."""
    from celltrain.ensemble import plan_warnings
    from celltrain.ensemble.reports.data import of_store

    plan = store.plan
    if len(plan.points) > MOST_POINTS or plan.runs > MOST_RUNS:
        yield Line(
            text=f"too much for the screen: celltrain report {shown(store.path)} writes a page; docs/sweeps.md shows "
            "how to query the store with Python and SQL"
        )
        return
    yield Line(text="")
    if fixed := plan_warnings.fixed_line(plan.axes, plan_warnings.only_where({plan.name: plan})):
        yield Line(text=fixed)
    if not store.totals().runs:
        return
    data = of_store(store, plan.measures[:MOST_MEASURES])
    yield Line(text=data.tcp_line())
    yield data.grid(data.means, range(len(data.points)), counts=True)
    if hidden := plan.measures[MOST_MEASURES:]:
        yield Line(text=f"Not shown, but in the store: {', '.join(map(words.label, hidden))}")


COMMANDS = {"sweep": sweep, "tune": tune}
