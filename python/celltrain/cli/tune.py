"""`celltrain tune`: searches a policy's parameters for two objectives."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celltrain.cli import completing, options, progress, shell, workers
from celltrain.cli.options import ENSEMBLE, OUTPUT, flag, option
from celltrain.drawing.pages.words import in_words, left
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.ensemble.tuning import Tuned, TunePlan, TuneProgress
    from celltrain.model.grids import Block
    from celltrain.running import Local
    from celltrain.running.cluster import Cluster


@shell.command(
    "celltrain tune tune-selective-drop --dry-run",
    "celltrain tune tune-selective-drop --store out/tune-sd",
    "celltrain tune tune-selective-drop --store out/tune-sd --resume",
)
def tune(
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN",
            help="The plan: a TOML file with a table \\[tune], or the name of a shipped one.",
            autocompletion=completing.plans,
        ),
    ],
    settings: options.PlanSettings = None,
    resume: Annotated[bool, flag("--resume", "Continue with the folder's trials.", ENSEMBLE)] = False,
    dry_run: Annotated[
        bool, flag("--dry-run", "Print how many runs there are, and estimate their time.", ENSEMBLE)
    ] = False,
    jobs: options.Jobs = None,
    dask: options.Dask = None,
    scheduler_file: options.SchedulerFile = None,
    dask_timeout: options.DaskTimeout = "5s",
    store: Annotated[
        Path | None, option("DIR", "Folder for the results: new or empty.", panel=OUTPUT, default="out/PLAN")
    ] = None,
    out: Annotated[Path | None, typer.Option(hidden=True)] = None,
    style: options.Style = None,
    csv: options.Csv = None,
    as_json: options.Json = False,
) -> int:
    """Search parameters for the front of two measures. Ctrl-C keeps what is done; --resume goes on."""
    from celltrain.drawing.axes import require_matplotlib
    from celltrain.drawing.figure import FigureStyle
    from celltrain.drawing.pages.html import environment
    from celltrain.ensemble.tuning import TunePlan, run_tune
    from celltrain.errors import Fault, InputError
    from celltrain.model.files import inner
    from celltrain.model.overrides import single

    output = shell.Output.of(as_json=as_json, csv=csv)
    if dry_run and csv is not None:
        raise InputError([Fault.saying("--csv writes the table of a search: leave out --dry-run.", key="--csv")])
    what = TunePlan.load(plan, settings=single(settings))
    if dry_run:
        with workers.worker(jobs, dask, scheduler_file, dask_timeout) as worker:
            return _estimate(what, worker, output)
    # Fail now rather than after an hour.
    require_matplotlib()
    with FigureStyle.of("page", style).applied():
        environment("tune")
    folder = shell.store(store, out) or Path("out") / plan.stem
    latest: list[TuneProgress] = []
    with (
        workers.worker(jobs, dask, scheduler_file, dask_timeout) as worker,
        progress.runs(what.name or plan.stem, latest, _bar) as tell,
    ):
        try:
            tuned = run_tune(what, folder, worker, resume=resume, progress=tell)
        except KeyboardInterrupt:
            if as_json:
                said = dataclasses.asdict(latest[-1]) if latest else {}
                shell.answer({"folder": shown(folder), "interrupted": True, **said})
            shell.complain("interrupted: what is done is kept; go on with --resume")
            return shell.INTERRUPTED
    with progress.waiting("drawing") as drawing:
        written = tuned.write(inner(folder / "report"), style=style, progress=drawing)
    files = {"files": [shown(path) for path in written]}
    output.show(
        answer=lambda: {"folder": shown(folder), "interrupted": False, **tuned.to_dict(), **files},
        rows=lambda: _rows(tuned),
        blocks=lambda: _blocks(tuned),
    )
    output.note(f"wrote {shown(written[0])}, and {len(written) - 1} files beside it")
    output.wrote()
    failed = tuned.facts["failed"]
    if failed:
        shell.complain(f"{failed:,} runs failed, and the trials they are of; the page says why")
    return shell.NO if failed else shell.DONE


def _rows(tuned: Tuned) -> Iterator[dict[str, Any]]:
    """Yields the confirmed settings with the means of both objectives."""
    names = [one["measure"] for one in tuned.facts["objectives"]]
    for search in tuned.searches:
        for one in search.confirmed:
            if one.estimates is not None:
                means = zip(names, one.estimates, strict=True)
                values = {name: {"mean": estimate.mean, "half": estimate.half} for name, estimate in means}
                yield {"configuration": search.title, "front": one.front, **one.parameters, **values}


def _blocks(tuned: Tuned) -> Iterator[Block]:
    """Yields the gains over the references, or the fronts of a plan without references."""
    from celltrain.drawing.pages.words import estimated, valued
    from celltrain.model.grids import Line

    facts = tuned.facts
    for warning in tuned.warnings:
        yield Line(text=f"WARNING: {warning}", style="bold")
    names = [one["measure"] for one in facts["objectives"]]
    parameters = [(one["name"], one["unit"]) for one in facts["parameters"]]
    searches = "1 search" if len(tuned.searches) == 1 else f"{len(tuned.searches):,} searches"
    yield Line(
        text=f"{shown(facts['name'])}: {searches} of {facts['trials']:,} trials, {facts['runs']:,} runs, "
        f"{facts['failed']:,} failed"
    )
    left = ("configuration", "reference", "best in")
    titled = [*(name for name, _ in parameters), *names]
    if not facts["references"]:
        grid = shell.grid("configuration", *titled, left=left)
        for search in tuned.searches:
            for one in search.confirmed:
                if one.front and one.estimates is not None:
                    values = [valued(one.parameters[name], unit) for name, unit in parameters]
                    grid.add_row(search.title, *values, *(estimated(e.mean, e.half) for e in one.estimates))
        yield grid
        return
    grid = shell.grid(*left, *titled, *(f"{name}, gained" for name in names), left=left)
    for search in tuned.searches:
        for gain in search.left:
            values = [valued(gain.parameters[name], unit) for name, unit in parameters]
            gained = ["nothing" if gain.same else f"{d.mean:+.3g} ± {d.half:.2g}" for d in gain.differences]
            means = (estimated(e.mean, e.half) for e in gain.estimates)
            grid.add_row(search.title, gain.reference, names[gain.objective], *values, *means, *gained)
    yield grid


def _estimate(plan: TunePlan, worker: Local | Cluster, output: shell.Output) -> int:
    from celltrain.ensemble.estimate import estimate

    machines, threads = workers.size(worker)
    with progress.waiting("running a few settings to see how long they take"):
        expected = estimate(plan.middle(), max(threads, 1))
    searches = len(plan.configurations.points)
    facts = {
        "searches": searches,
        "trials": plan.trials,
        "generations": plan.generations,
        "most_runs": plan.most_runs,
        "seconds_per_run": expected.seconds_per_run,
        "seconds": expected.seconds_per_run * plan.most_runs / max(threads, 1),
        "bytes": expected.bytes_per_run * plan.most_runs,
        "threads": threads,
        **({} if machines is None else {"workers": machines}),
    }
    said = [
        f"{shown(plan.name or 'plan')}: {searches:,} {'search' if searches == 1 else 'searches'} of {plan.trials:,} "
        f"trials in {plan.generations:,} generations, at most {plan.most_runs:,} runs",
        f"about {in_words(facts['seconds'])} on {workers.in_words(machines, threads)}: an estimate, from "
        f"{expected.probes} runs of {in_words(expected.seconds_per_run)} each"
        if expected.probes
        else "none of the settings probed can be run, so nothing is known of the time",
    ]
    if output.form == "json":
        shell.answer(facts)
    else:
        shell.say("\n".join(said))
    return shell.DONE


def _bar(now: TuneProgress) -> tuple[int, int, str]:
    time = "" if now.remaining_seconds is None else f", {left(now.remaining_seconds)}"
    failed = f", {now.failed:,} failed" if now.failed else ""
    trials = f"{now.trials:,} of {now.total_trials:,} trials"
    return now.runs, now.most_runs, f"{trials}, {now.stage}, {now.rate:.3g} runs a second{time}{failed}"


COMMANDS = {"tune": tune}
