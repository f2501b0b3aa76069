"""`celltrain sweep`: a plan's runs, into a store."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celltrain.cli import bars, completing, shell, workers
from celltrain.cli.bars import size_in_words
from celltrain.drawing.pages.words import in_words, left

if TYPE_CHECKING:
    from celltrain.ensemble.coordinator import Progress
    from celltrain.ensemble.plan import Plan
    from celltrain.ensemble.store import Store
    from celltrain.running import Local
    from celltrain.running.cluster import Cluster

# What fits a screen; the store has everything.
MOST_POINTS = 24
MOST_RUNS = 50_000
MOST_MEASURES = 16


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("sweep", epilog="For example: celltrain sweep selective-drop-rz --store out/sd")(sweep)


@shell.command
def sweep(
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN", help="The plan: a TOML file, or the name of a shipped one.", autocompletion=completing.plans
        ),
    ],
    store: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the results go: a folder that is new or empty.")
    ] = None,
    settings: shell.PlanSettings = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Run what is missing in the store, and nothing else.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="With --resume: run again what failed, whatever it failed of.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say how many runs there are, how long they take and how much disk.")
    ] = False,
    jobs: workers.Jobs = None,
    dask: workers.Dask = None,
    scheduler_file: workers.SchedulerFile = None,
    dask_timeout: workers.DaskTimeout = "5s",
    as_json: shell.Json = False,
) -> int:
    """Run a scenario over many settings and seeds, into a store. Ctrl-C keeps what is done; --resume goes on."""
    from celltrain.ensemble.coordinator import run_plan
    from celltrain.ensemble.plan import Plan
    from celltrain.errors import Fault, InputError
    from celltrain.model.overrides import single

    if store is None and not dry_run:
        raise InputError([Fault.of_option("--store", "", "is missing: say where the results go, or --dry-run")])
    if retry_failed and not resume:
        raise InputError(
            [Fault.of_option("--retry-failed", "given", "goes with --resume: a new store has no run that failed")]
        )
    what = Plan.load(plan, settings=single(settings))
    latest: list[Progress] = []
    with workers.worker(jobs, dask, scheduler_file, dask_timeout) as worker:
        if dry_run:
            return _foretell(what, worker, as_json=as_json)
        assert store is not None, "refused above"
        with bars.bar(what.name or plan.stem, latest, _bar) as tell:
            try:
                run_plan(what, store, worker, resume=resume, retry_failed=retry_failed, progress=tell)
                interrupted = False
            except KeyboardInterrupt:
                interrupted = True
    return tell_end(store, latest[-1] if latest else None, interrupted=interrupted, as_json=as_json)


def tell_end(folder: Path, progress: Progress | None, *, interrupted: bool, as_json: bool) -> int:
    """Says how a sweep ended and what is in its store; the exit code."""
    from celltrain.ensemble import plan_warnings
    from celltrain.ensemble.store import Store
    from celltrain.text import shown

    if interrupted:
        if as_json:
            shell.answer({"store": shown(folder), "interrupted": True, **_as_json(progress)})
        shell.complain("interrupted: what is done is kept; go on with --resume")
        return shell.INTERRUPTED
    failed = progress.failed if progress is not None else 0
    store = Store.open(folder)
    doubts = [*plan_warnings.of_store(store), *plan_warnings.lock_step_of_store(store)]
    if as_json:
        shell.answer({"store": shown(folder), "interrupted": False, **_as_json(progress), "warnings": doubts})
    else:
        if progress is not None:
            repeated = f", {progress.repeated:,} of them as runs of earlier points" if progress.repeated else ""
            # Nothing was run where nothing is done in any time.
            there = f"nothing was missing: {progress.done:,} runs are there" if not progress.rate else None
            begun = there or f"{progress.done:,} runs done"
            took = "" if there else f", in {in_words(progress.elapsed_seconds)}"
            shell.say(f"{begun}{repeated}, {failed:,} failed{took}: {shown(folder)}")
        show(store)
    for doubt in doubts:
        shell.complain(f"warning: {doubt}")
    if progress is not None and progress.wide:
        shell.complain(
            f"{progress.wide:,} points have all the seeds they may have, and a wider interval than asked for"
        )
    if failed:
        shell.complain(f"{failed:,} runs failed; their rows in the store say why")
    return shell.NO if failed else shell.DONE


def show(store: Store) -> None:
    """Prints the points of a small store for people: the mean and half the width of its 95 % interval."""
    from celltrain.drawing.pages import words
    from celltrain.ensemble import plan_warnings
    from celltrain.ensemble.columns import measured
    from celltrain.ensemble.plan.plan import tcps
    from celltrain.model.grids import Line
    from celltrain.running.summary import tcp_line
    from celltrain.text import shown

    measures, hidden = list(store.plan.measures)[:MOST_MEASURES], list(store.plan.measures)[MOST_MEASURES:]
    if len(store.plan.points) > MOST_POINTS or store.plan.runs > MOST_RUNS:
        shell.say(
            f"too much for a screen: celltrain report {shown(store.path)} writes a page; docs/sweeps.md shows how to ask the "
            "store in Python and SQL"
        )
        return
    varied = [axis for axis in store.axes if len(axis) > 1]
    fixed = [axis for axis in store.axes if len(axis) == 1]
    only = {
        name: f" (only where {plan_warnings.where(use)})"
        for name, use in store.plan.uses.items()
        if use.at and not use.everywhere
    }
    settings = ", ".join(
        f"{shown(axis.name)} = {words.valued(axis.column(0), axis.unit)}{only.get(axis.name, '')}" for axis in fixed
    )
    lines = [Line(text=f"set: {settings}")] if fixed else []
    lines.append(Line(text=tcp_line(tcps(store.plan))))
    heads = words.settings([axis.name for axis in varied], [axis.meaning.partition(":")[0] for axis in varied])
    worded = [words.measure(measure.name, measure.unit) for measure in map(measured, measures)]
    left = tuple(head for head, axis in zip(heads, varied, strict=True) if not axis.is_number)
    grid = shell.grid(*heads, "runs", *worded, left=left, keys=len(heads))
    rows: dict[int, list[dict[str, Any]]] = {}
    for row in store.summary(measures).to_pylist():
        rows.setdefault(row["point"], []).append(row)
    for own in rows.values():
        cells = [words.valued(own[0][axis.name], axis.unit) for axis in varied]
        grid.add_row(*cells, f"{max(row['n'] for row in own):,}", *map(_interval, own))
    shell.say("")
    names = ", ".join(words.measure(measured(one).name) for one in hidden)
    shell.show([*lines, grid, *([Line(text=f"Not shown, but in the store: {names}")] if hidden else [])])


def _interval(row: dict[str, Any]) -> str:
    from celltrain.drawing.pages.words import UNDEFINED, estimated

    if row["mean"] is None:
        return UNDEFINED
    return estimated(row["mean"], math.nan if row["high"] is None else row["high"] - row["mean"])


def _as_json(progress: Progress | None) -> dict[str, Any]:
    return {} if progress is None else dataclasses.asdict(progress)


def _foretell(plan: Plan, worker: Local | Cluster, *, as_json: bool) -> int:
    from celltrain.ensemble import plan_warnings
    from celltrain.ensemble.estimate import estimate
    from celltrain.text import shown

    machines, threads = workers.size(worker)
    with shell.waiting("running a few points to see how long they take"):
        expected = estimate(plan, max(threads, 1))
    warnings = [*plan_warnings.of_plan(plan), *plan_warnings.tried(plan)]
    for warning in warnings:
        shell.complain(f"warning: {warning}")
    if as_json:
        found = {} if machines is None else {"workers": machines}
        axes = [axis.name for axis in plan.axes]
        shell.answer({**dataclasses.asdict(expected), "threads": threads, **found, "axes": axes, "warnings": warnings})
        return shell.DONE
    most = "at most " if expected.least_runs < expected.runs else ""
    shell.say(f"{shown(plan.name or 'plan')}: {expected.points:,} points, {most}{expected.runs:,} runs")
    for group in plan.groups:
        names = " with ".join(shown(axis.name) for axis in group.axes)
        shell.say(f"  {names}: {len(group):,} values")
    if not expected.probes:
        shell.say("no point of those probed can be run, so nothing is known of time and disk")
        return shell.DONE
    words = "run" if expected.probes == 1 else "runs"
    shell.say(
        f"about {most}{in_words(expected.seconds)} on {workers.in_words(machines, threads)} and {size_in_words(expected.bytes)} of disk: "
        f"an estimate, from {expected.probes} {words} of {in_words(expected.seconds_per_run)} each; series not counted"
    )
    return shell.DONE


def _bar(progress: Progress) -> bars.Bar:
    remaining = progress.remaining_seconds
    time = "" if remaining is None else f", {left(remaining)}"
    failed = f", {progress.failed:,} failed" if progress.failed else ""
    return bars.Bar(progress.done, progress.total, f"{progress.rate:.3g} a second{time}{failed}")
