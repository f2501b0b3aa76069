"""`celltrain tune`: a policy's parameters for two objectives."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from celltrain.cli import bars, completing, shell, workers
from celltrain.drawing.pages.words import in_words, left

if TYPE_CHECKING:
    from celltrain.ensemble.tuning import Tuned, TunePlan, TuneProgress
    from celltrain.running import Local
    from celltrain.running.cluster import Cluster


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("tune", epilog="For example: celltrain tune tune-selective-drop --store out/tune-sd")(tune)


@shell.command
def tune(
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN",
            help="The plan: a TOML file with a table \\[tune], or the name of a shipped one.",
            autocompletion=completing.plans,
        ),
    ],
    store: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where everything goes: new or empty.", show_default="out/PLAN"),
    ] = None,
    out: Annotated[Path | None, typer.Option(hidden=True)] = None,
    settings: shell.PlanSettings = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what the folder holds.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say how many runs there are, and how long they take.")
    ] = False,
    style: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of the figure: a style of matplotlib, such as grayscale, or its file."),
    ] = None,
    jobs: workers.Jobs = None,
    dask: workers.Dask = None,
    scheduler_file: workers.SchedulerFile = None,
    dask_timeout: workers.DaskTimeout = "5s",
    as_json: shell.Json = False,
) -> int:
    """Search parameters for the front of two measures. Ctrl-C keeps what is done; --resume goes on."""
    from celltrain.drawing.axes import require_matplotlib
    from celltrain.drawing.figure import FigureStyle
    from celltrain.drawing.pages.html import environment
    from celltrain.ensemble.tuning import TunePlan, run_tune
    from celltrain.model.overrides import single
    from celltrain.model.writing import inner
    from celltrain.text import shown

    what = TunePlan.load(plan, settings=single(settings))
    if dry_run:
        with workers.worker(jobs, dask, scheduler_file, dask_timeout) as worker:
            return _foretell(what, worker, as_json=as_json)
    # Now rather than after an hour.
    require_matplotlib()
    with FigureStyle.of("page", style).applied():
        environment("tune")
    folder = shell.store(store, out) or Path("out") / plan.stem
    latest: list[TuneProgress] = []
    with (
        workers.worker(jobs, dask, scheduler_file, dask_timeout) as worker,
        bars.bar(what.name or plan.stem, latest, _bar) as tell,
    ):
        try:
            tuned = run_tune(what, folder, worker, resume=resume, progress=tell)
        except KeyboardInterrupt:
            if as_json:
                said = dataclasses.asdict(latest[-1]) if latest else {}
                shell.answer({"folder": shown(folder), "interrupted": True, **said})
            shell.complain("interrupted: what is done is kept; go on with --resume")
            return shell.INTERRUPTED
    with shell.waiting("drawing") as progress:
        written = tuned.write(inner(folder / "report"), style=style, progress=progress)
    if as_json:
        files = [shown(path) for path in written]
        shell.answer({"folder": shown(folder), "interrupted": False, **tuned.to_dict(), "files": files})
    else:
        _show(tuned)
        shell.say(f"wrote {shown(written[0])}, and {len(written) - 1} files beside it")
    failed = tuned.facts["failed"]
    if failed:
        shell.complain(f"{failed:,} runs failed, and the trials they are of; the page says why")
    return shell.NO if failed else shell.DONE


def _show(tuned: Tuned) -> None:
    """What references left on the table, or the fronts where there is none, for people."""
    from celltrain.drawing.pages.words import estimated, valued
    from celltrain.text import shown

    facts = tuned.facts
    for warning in tuned.warnings:
        shell.console().print(f"WARNING: {warning}", style="bold", soft_wrap=True)
    names = [one["measure"] for one in facts["objectives"]]
    parameters = [(one["name"], one["unit"]) for one in facts["parameters"]]
    searches = "1 search" if len(tuned.searches) == 1 else f"{len(tuned.searches):,} searches"
    shell.say(
        f"{shown(facts['name'])}: {searches} of {facts['trials']:,} trials, {facts['runs']:,} runs, "
        f"{facts['failed']:,} failed"
    )
    left = ("configuration", "reference", "best in")
    titled = [*(name for name, _ in parameters), *names]
    if not facts["references"]:
        grid = shell.grid("configuration", *titled, left=left)
        for searched in tuned.searches:
            for c in searched.confirmed:
                if c.front and c.estimates is not None:
                    values = [valued(c.parameters[name], unit) for name, unit in parameters]
                    grid.add_row(searched.title, *values, *(estimated(e.mean, e.half) for e in c.estimates))
        shell.say("")
        shell.show([grid])
        return
    grid = shell.grid(*left, *titled, *(f"{name}, gained" for name in names), left=left)
    for searched in tuned.searches:
        for one in searched.left:
            values = [valued(one.parameters[name], unit) for name, unit in parameters]
            gained = ["nothing" if one.same else f"{d.mean:+.3g} ± {d.half:.2g}" for d in one.differences]
            of = (estimated(e.mean, e.half) for e in one.estimates)
            grid.add_row(searched.title, one.reference, names[one.objective], *values, *of, *gained)
    shell.say("")
    shell.show([grid])
    shell.say("")


def _foretell(plan: TunePlan, worker: Local | Cluster, *, as_json: bool) -> int:
    from celltrain.ensemble.coordination import estimate
    from celltrain.text import shown

    machines, threads = workers.size(worker)
    with shell.waiting("running a few settings to see how long they take"):
        expected = estimate(plan.middle(), max(threads, 1))
    searches = len(plan.configurations.points)
    seconds = expected.seconds_per_run * plan.most_runs / max(threads, 1)
    if as_json:
        shell.answer(
            {
                "searches": searches,
                "trials": plan.trials,
                "generations": plan.generations,
                "most_runs": plan.most_runs,
                "seconds_per_run": expected.seconds_per_run,
                "seconds": seconds,
                "bytes": expected.bytes_per_run * plan.most_runs,
                "threads": threads,
                **({} if machines is None else {"workers": machines}),
            }
        )
        return shell.DONE
    shell.say(
        f"{shown(plan.name or 'plan')}: {searches:,} {'search' if searches == 1 else 'searches'} of {plan.trials:,} trials in "
        f"{plan.generations:,} generations, at most {plan.most_runs:,} runs"
    )
    if not expected.probes:
        shell.say("none of the settings probed can be run, so nothing is known of the time")
        return shell.DONE
    shell.say(
        f"about {in_words(seconds)} on {workers.in_words(machines, threads)}: an estimate, from {expected.probes} runs of "
        f"{in_words(expected.seconds_per_run)} each"
    )
    return shell.DONE


def _bar(progress: TuneProgress) -> bars.Bar:
    remaining = progress.remaining_seconds
    time = "" if remaining is None else f", {left(remaining)}"
    failed = f", {progress.failed:,} failed" if progress.failed else ""
    trials = f"{progress.trials:,} of {progress.total_trials:,} trials"
    rest = f"{trials}, {progress.stage}, {progress.rate:.3g} runs a second{time}{failed}"
    return bars.Bar(progress.runs, progress.most_runs, rest)
