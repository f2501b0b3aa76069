"""`celltrain sweep`: runs a plan, into a store."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celltrain.cli import completing, options, progress, shell, workers
from celltrain.cli.options import ENSEMBLE, OUTPUT, flag, option
from celltrain.drawing.pages.words import in_words, left
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.ensemble.coordinator import Progress
    from celltrain.ensemble.plan import Plan
    from celltrain.ensemble.store import Store
    from celltrain.model.grids import Block
    from celltrain.running import Local
    from celltrain.running.cluster import Cluster

# Limits of the printed table. The store has everything.
MOST_POINTS = 24
MOST_RUNS = 50_000
MOST_MEASURES = 16


@shell.command(
    "celltrain sweep selective-drop-rz --dry-run",
    "celltrain sweep selective-drop-rz --store out/sd",
    "celltrain sweep selective-drop-rz --store out/sd --resume",
)
def sweep(
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN", help="The plan: a TOML file, or the name of a shipped one.", autocompletion=completing.plans
        ),
    ],
    settings: options.PlanSettings = None,
    resume: Annotated[bool, flag("--resume", "Run only what is missing in the store.", ENSEMBLE)] = False,
    retry_failed: Annotated[
        bool, flag("--retry-failed", "With --resume: run again all that failed, for whatever reason.", ENSEMBLE)
    ] = False,
    dry_run: Annotated[
        bool, flag("--dry-run", "Print how many runs there are, and estimate their time and disk.", ENSEMBLE)
    ] = False,
    jobs: options.Jobs = None,
    dask: options.Dask = None,
    scheduler_file: options.SchedulerFile = None,
    dask_timeout: options.DaskTimeout = "5s",
    store: Annotated[Path | None, option("DIR", "Folder for the results: new or empty.", panel=OUTPUT)] = None,
    csv: options.Csv = None,
    as_json: options.Json = False,
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
    output = shell.Output.of(as_json=as_json, csv=csv)
    if dry_run and csv is not None:
        raise InputError([Fault.saying("--csv writes the table of a sweep: leave out --dry-run.", key="--csv")])
    what = Plan.load(plan, settings=single(settings))
    latest: list[Progress] = []
    with workers.worker(jobs, dask, scheduler_file, dask_timeout) as worker:
        if dry_run:
            return _estimate(what, worker, output)
        assert store is not None, "refused above"
        with progress.runs(what.name or plan.stem, latest, _bar) as tell:
            try:
                run_plan(what, store, worker, resume=resume, retry_failed=retry_failed, progress=tell)
                interrupted = False
            except KeyboardInterrupt:
                interrupted = True
    return finish(store, latest[-1] if latest else None, output, interrupted=interrupted)


def finish(folder: Path, last: Progress | None, output: shell.Output, *, interrupted: bool) -> int:
    """Prints the end of a sweep and the content of its store; returns the exit code."""
    from celltrain.ensemble import plan_warnings
    from celltrain.ensemble.store import Store

    facts = {"store": shown(folder), "interrupted": interrupted, **({} if last is None else dataclasses.asdict(last))}
    if interrupted:
        if output.form == "json":
            shell.answer(facts)
        shell.complain("interrupted: what is done is kept; go on with --resume")
        return shell.INTERRUPTED
    failed = last.failed if last is not None else 0
    store = Store.open(folder)
    doubts = [*plan_warnings.of_store(store), *plan_warnings.lock_step_of_store(store)]
    if last is not None and output.form == "text":
        repeated = f", {last.repeated:,} of them as runs of earlier points" if last.repeated else ""
        did = f"{last.done:,} runs done" if last.rate else f"nothing was missing: {last.done:,} runs are there"
        took = f", in {in_words(last.elapsed_seconds)}" if last.rate else ""
        shell.say(f"{did}{repeated}, {failed:,} failed{took}: {shown(folder)}")
    output.show(
        answer=lambda: facts | {"warnings": doubts},
        rows=lambda: store.summary().to_pylist(),
        blocks=lambda: blocks(store),
    )
    output.wrote()
    for doubt in doubts:
        shell.complain(f"warning: {doubt}")
    if last is not None and last.wide:
        shell.complain(f"{last.wide:,} points have all the seeds they may have, and a wider interval than asked for")
    if failed:
        shell.complain(f"{failed:,} runs failed; their rows in the store say why")
    return shell.NO if failed else shell.DONE


def blocks(store: Store) -> Iterator[Block]:
    """Yields the points of a small store: the mean of each measure and half the width of its 95 % interval."""
    from celltrain.drawing.pages import words
    from celltrain.ensemble import plan_warnings
    from celltrain.ensemble.plan.plan import tcps
    from celltrain.ensemble.table import measured
    from celltrain.model.grids import Line
    from celltrain.running.summary import tcp_line

    measures, hidden = list(store.plan.measures)[:MOST_MEASURES], list(store.plan.measures)[MOST_MEASURES:]
    if len(store.plan.points) > MOST_POINTS or store.plan.runs > MOST_RUNS:
        yield Line(
            text=f"too much for a screen: celltrain report {shown(store.path)} writes a page; docs/sweeps.md shows how "
            "to ask the store in Python and SQL"
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
    yield Line(text="")
    if fixed:
        yield Line(text=f"set: {settings}")
    yield Line(text=tcp_line(tcps(store.plan)))
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
    yield grid
    if hidden:
        names = ", ".join(words.measure(measured(one).name) for one in hidden)
        yield Line(text=f"Not shown, but in the store: {names}")


def _interval(row: dict[str, Any]) -> str:
    from celltrain.drawing.pages.words import UNDEFINED, estimated

    if row["mean"] is None:
        return UNDEFINED
    return estimated(row["mean"], math.nan if row["high"] is None else row["high"] - row["mean"])


def _estimate(plan: Plan, worker: Local | Cluster, output: shell.Output) -> int:
    from celltrain.ensemble import plan_warnings
    from celltrain.ensemble.estimate import estimate

    machines, threads = workers.size(worker)
    with progress.waiting("running a few points to see how long they take"):
        expected = estimate(plan, max(threads, 1))
    warnings = [*plan_warnings.of_plan(plan), *plan_warnings.tried(plan)]
    for warning in warnings:
        shell.complain(f"warning: {warning}")
    facts = dataclasses.asdict(expected) | {"threads": threads}
    facts |= ({} if machines is None else {"workers": machines}) | {"axes": [axis.name for axis in plan.axes]}
    most = "at most " if expected.least_runs < expected.runs else ""
    said = [f"{shown(plan.name or 'plan')}: {expected.points:,} points, {most}{expected.runs:,} runs"]
    said += [
        f"  {' with '.join(shown(axis.name) for axis in group.axes)}: {len(group):,} values" for group in plan.groups
    ]
    if expected.probes:
        runs = "run" if expected.probes == 1 else "runs"
        said.append(
            f"about {most}{in_words(expected.seconds)} on {workers.in_words(machines, threads)} and "
            f"{workers.size_in_words(expected.bytes)} of disk: an estimate, from {expected.probes} {runs} of "
            f"{in_words(expected.seconds_per_run)} each; series not counted"
        )
    else:
        said.append("no point of those probed can be run, so nothing is known of time and disk")
    if output.form == "json":
        shell.answer(facts | {"warnings": warnings})
    else:
        shell.say("\n".join(said))
    return shell.DONE


def _bar(now: Progress) -> tuple[int, int, str]:
    time = "" if now.remaining_seconds is None else f", {left(now.remaining_seconds)}"
    failed = f", {now.failed:,} failed" if now.failed else ""
    return now.done, now.total, f"{now.rate:.3g} a second{time}{failed}"


COMMANDS = {"sweep": sweep}
