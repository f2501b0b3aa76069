"""`celltrain run`: simulates one scenario; with `--seeds`, an ensemble of one case."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer.core import TyperCommand

from celltrain.cli import completing, options, progress, shell
from celltrain.cli.options import ENSEMBLE, OUTPUT, SCENARIO, count, flag, listed, option
from celltrain.errors import Fault, InputError
from celltrain.model.files import making
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.model.types import Scenario
    from celltrain.running.captures import Capture
    from celltrain.running.events import Events

#: `--plot` without a file, as in earlier versions: a figure of each series in the folder of `--out`.
BARE = Path()
EVENTS = "Events and packets"


class Run(TyperCommand):
    """The command, which accepts `--plot` without a file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses the arguments, a bare `--plot` as one with an empty path."""
        from celltrain.model.shipped import scenarios

        given = []
        for place, argument in enumerate(args):
            following = args[place + 1] if place + 1 < len(args) else "-"
            is_file = following.endswith(".toml") or following in scenarios()
            is_bare = argument == "--plot" and (following.startswith("-") or is_file)
            given.append("--plot=" if is_bare else argument)
        return super().parse_args(ctx, given)


@shell.command(
    "celltrain run lan-epd --set port.bottleneck.buffer=2000",
    "celltrain run lan-epd --seeds 20 --csv seeds.csv",
    "celltrain run lan-epd --trace queue,cwnd --plot run.svg",
    cls=Run,
)
def run(
    file: options.ScenarioFile,
    settings: options.Settings = None,
    seed: options.Seed = None,
    engine: Annotated[
        str | None,
        option(
            None,
            "fast, or reference: naive and slow, with the same results. Events choose by themselves.",
            panel=SCENARIO,
        ),
    ] = None,
    threads: Annotated[
        int | None,
        count("Threads for one large network with long links; the result is the same for any number.", panel=SCENARIO),
    ] = None,
    warm_up: Annotated[
        bool, flag("--warm-up", "Print when the goodput has settled, by MSER-5, and its mean from there.", SCENARIO)
    ] = False,
    explain_plan: Annotated[
        bool, flag("--explain-plan", "Print which code of the fast engine runs for each port, without a run.", SCENARIO)
    ] = False,
    seeds: Annotated[
        int | None,
        count(
            "Run it N times, with seed 1 (or --seed) and those that follow: means with 95 % intervals.",
            most=options.MOST_RUNS,
            panel=ENSEMBLE,
        ),
    ] = None,
    fingerprints: Annotated[
        bool,
        flag("--fingerprints", "With --seeds: list the fingerprint of each run, as --json always does.", ENSEMBLE),
    ] = False,
    trace: Annotated[
        list[str] | None,
        option(
            "SERIES",
            "Series to record, with commas: queue, occupancy, cwnd, delivered, acr, edge.",
            panel=OUTPUT,
            autocompletion=completing.series,
        ),
    ] = None,
    step: Annotated[str | None, option("TIME", "Time between samples, such as 1ms.", panel=OUTPUT)] = None,
    port: Annotated[
        list[str] | None,
        option(
            "NAME",
            "Record queue, occupancy, events and captured cells at this port, not at the bottleneck. May be repeated.",
            panel=OUTPUT,
        ),
    ] = None,
    out: Annotated[Path | None, option("DIR", "Write result, tables and series there.", panel=OUTPUT)] = None,
    plot: Annotated[
        Path | None,
        option(
            "PICTURE",
            "Draw the series there, queue and cwnd without --trace; with --seeds the means: .svg, .pdf or .png.",
            panel=OUTPUT,
        ),
    ] = None,
    csv: options.Csv = None,
    as_json: options.Json = False,
    md: options.Markdown = False,
    tex: options.Latex = False,
    events: Annotated[
        Path | None, option("DIR", "Write the events of the run there, one table for each kind.", panel=EVENTS)
    ] = None,
    kinds: Annotated[
        list[str] | None,
        option("KINDS", "Only these kinds: segments, timers, frames, cells, rates. All by default.", panel=EVENTS),
    ] = None,
    window: Annotated[
        str | None,
        option("FROM:TO", "Events and packets between these times, such as 1.2s:1.3s.", panel=EVENTS),
    ] = None,
    flow: Annotated[
        list[str] | None, option("NAME", "Events and packets of this flow only. May be repeated.", panel=EVENTS)
    ] = None,
    vc: Annotated[
        list[str] | None, option("NAME", "Events and packets of this VC only. May be repeated.", panel=EVENTS)
    ] = None,
    event_format: Annotated[
        str, option("FORMAT", "Of the tables of events: parquet or csv.", "--format", panel=EVENTS)
    ] = "parquet",
    pcap: Annotated[
        Path | None,
        option("FILE", "Write a capture for Wireshark there, such as run.pcapng.", panel=EVENTS),
    ] = None,
    pcap_kind: Annotated[
        str | None,
        option(
            "KIND",
            "Packets at hosts: ip or aal5; cells at ports: cells, or wireshark_cells, whose headers Wireshark shows.",
            panel=EVENTS,
            default="ip",
        ),
    ] = None,
    pcap_at: Annotated[
        str | None,
        option(
            "SIDE",
            "Capture point: sender, receiver or both (packets); out, in or both (cells).",
            panel=EVENTS,
            default="sender",
        ),
    ] = None,
) -> int:
    """Simulate a scenario: efficiency, fairness, flows, losses by cause, largest queue, speed."""
    from celltrain.drawing.axes import refuse_other, require_matplotlib
    from celltrain.running.results import run as simulate

    output = shell.Output.of(as_json=as_json, csv=csv, md=md, tex=tex)
    if explain_plan:
        return _explain_plan(shell.scenario(file, settings), output)
    series = listed(trace) or []
    if trace and out is None and plot is None:
        problem = "records series; say where they are written to with --out DIR, or drawn with --plot PICTURE"
        raise InputError([Fault.of_option("--trace", shown(",".join(series)), problem)])
    into_folder = plot == BARE
    if plot is not None and not into_folder:
        refuse_other(plot, "--plot")
    elif into_folder and out is None:
        raise InputError(
            [Fault.saying("--plot needs a file: --plot run.svg, or a folder: add --out DIR.", key="--plot")]
        )
    if seeds is not None:
        of_one = {
            "--trace": trace,
            "--step": step,
            "--port": port,
            "--engine": engine,
            "--threads": threads,
            "--events": events,
            "--pcap": pcap,
            "--warm-up": warm_up or None,
            "--kinds": kinds,
            "--window": window,
            "--flow": flow,
            "--vc": vc,
            "--pcap-kind": pcap_kind,
            "--pcap-at": pcap_at,
        }
        _refuse_single(of_one, seeds)
        return _ensemble(
            shell.scenario(file, settings),
            seeds,
            1 if seed is None else seed,
            fingerprints=fingerprints,
            out=out,
            plot=out / "seeds.svg" if into_folder and out is not None else plot,
            output=output,
        )
    if fingerprints:
        problem = "lists those of several runs, with --seeds N; a run alone prints its own"
        raise InputError([Fault.of_option("--fingerprints", "on", problem)])
    if threads is not None and threads > 1:
        problem = "which needs a single thread"
        recording = [name for name, value in {"--plot": plot, "--warm-up": warm_up}.items() if value]
        if recording:
            raise InputError(
                [Fault.of_option("--threads", threads, f"does not go with {name}, {problem}") for name in recording]
            )
    if plot:
        require_matplotlib()
        series = series or ["queue", "cwnd"]
    if port and not (series or events or pcap):
        problem = "chooses where queues, events and cells are recorded: add --trace, --events or --pcap"
        raise InputError([Fault.of_option("--port", shown(",".join(port)), problem)])
    if warm_up:
        series = [*series, *({"delivered"} - set(series))]
    chosen = {"window": window, "flows": flow, "vcs": vc}
    _refuse_idle(events, pcap, chosen, {"--kinds": kinds}, {"--pcap-kind": pcap_kind, "--pcap-at": pcap_at})
    log = _events(events, kinds, ports=port, format=event_format, **chosen)
    capture = _capture(pcap, kind=pcap_kind or "ip", at=pcap_at, ports=port, **chosen)
    scenario = shell.scenario(file, settings)
    with ExitStack() as folders, progress.waiting(f"simulating {shown(file)}") as tell:
        if out is not None:
            folders.enter_context(making(out))
            shell.folder(out)
        result = simulate(
            scenario,
            seed=seed,
            trace=series,
            step=step,
            ports=port,
            engine=engine,
            threads=1 if threads is None else threads,
            events=log,
            pcap=capture,
            progress=tell,
        )
    written: list[Path] = []
    if out is not None:
        with shell.writing(out):
            written = result.write(out, plots=into_folder)
    if plot is not None and not into_folder:
        written.append(result.plot.write(plot))
    settled = result.steady() if warm_up else None
    # JSON has no NaN.
    steady = {} if settled is None else {"steady": {k: None if v != v else v for k, v in asdict(settled).items()}}
    from celltrain.cli.result_table import blocks

    output.show(
        answer=lambda: result.to_dict() | steady,
        rows=lambda: result.flows.to_pylist(),
        blocks=lambda: blocks(result),
    )
    if settled is not None:
        output.note(f"goodput in Mb/s: {settled}")
    recorders = [one for one in (log, capture) if one is not None]
    if result.engine == "fast" and "reference" in {one.engine(engine) for one in recorders}:
        output.note("Events come from the reference engine, which stopped at the end of the window.")
    output.wrote(written)
    empty = _empty(log, capture, window)
    for path in [*(log.paths if log is not None else []), *([capture.path] if capture is not None else [])]:
        output.note(f"wrote {shown(path)}{empty.get(path, '')}")
    return shell.DONE


def _ensemble(
    scenario: Path | Scenario,
    seeds: int,
    first: int,
    *,
    fingerprints: bool,
    out: Path | None,
    plot: Path | None,
    output: shell.Output,
) -> int:
    """Runs a scenario with several seeds: a comparison of one."""
    from celltrain.cli.compare import finish
    from celltrain.ensemble.comparing import compare
    from celltrain.ensemble.comparing.figure import check
    from celltrain.ensemble.plan.axes import MEASURES

    if plot is not None:
        check(plot, "page", None)
    measures = list(dict.fromkeys(["efficiency", "fairness", "goodput_mbps", *MEASURES]))
    with progress.waiting("simulating") as tell:
        compared = compare(scenario, seeds=seeds, first_seed=first, measures=measures, progress=tell)
    return finish(compared, output, plot=plot, out=out, fingerprints=fingerprints or output.form == "json")


def _refuse_single(of_one: Mapping[str, object], seeds: int) -> None:
    """Refuses options that need a single run."""
    problem = f"looks into a single run; it goes with --seed, not with --seeds {seeds}"
    if given := [name for name, value in of_one.items() if value is not None]:
        raise InputError([Fault.saying(f"{name} {problem}", key=name) for name in given])


def _refuse_idle(
    events: Path | None,
    pcap: Path | None,
    chosen: Mapping[str, object],
    of_events: Mapping[str, object],
    of_pcap: Mapping[str, object],
) -> None:
    """Refuses options that choose among events or packets if none are written."""
    about_events = "chooses among events; say where they are written to with --events DIR"
    about_pcap = "chooses what is captured; say where it is written to with --pcap FILE"
    either = f"{about_events}, or packets with --pcap FILE"
    names = {"window": "--window", "flows": "--flow", "vcs": "--vc"}
    idle = [(name, value, about_events) for name, value in of_events.items() if events is None]
    idle += [(name, value, about_pcap) for name, value in of_pcap.items() if pcap is None]
    if events is None and pcap is None:
        idle += [(names[name], value, either) for name, value in chosen.items()]
    if given := [Fault.of_option(name, shown(str(value)), problem) for name, value, problem in idle if value]:
        raise InputError(given)


def _events(folder: Path | None, kinds: list[str] | None, **chosen: Any) -> Events | None:
    from celltrain.running.events import Events

    if folder is None:
        return None
    named = listed(kinds) or []
    # Nobody means all kinds by naming none.
    return Events(folder, kinds=[""] if kinds and not named else named, **chosen)


def _capture(path: Path | None, *, kind: str, ports: list[str] | None, **chosen: Any) -> Capture | None:
    from celltrain.running.captures import Capture

    # Packets are captured at hosts; --port may be meant for series.
    return None if path is None else Capture(path, kind=kind, ports=ports if kind.endswith("cells") else None, **chosen)


def _empty(log: Events | None, capture: Capture | None, window: str | None) -> dict[Path, str]:
    """Returns what to add to the names of files without rows."""
    where = "in the run" if window is None else "in the window"
    notes: dict[Path, str] = {}
    if log is not None:
        for kind, path in zip(log.chosen, log.paths, strict=True):
            if not log.rows.get(kind):
                notes[path] = f": no {kind} {where}"
    if capture is not None and capture.is_empty:
        notes[capture.path] = f": no {'cells' if capture.of_cells else 'packets'} {where}"
    return notes


def _explain_plan(scenario: Path | Scenario, output: shell.Output) -> int:
    """Prints the port plan of the fast engine."""
    from celltrain.errors import ScenarioError
    from celltrain.model import scenario as scenarios
    from celltrain.model.cancel import current

    try:
        plan = json.loads(scenarios.read(scenario).accepted().explain_plan(current()))
    except ValueError as error:
        raise ScenarioError.of_refusal(error) from None
    grid = shell.grid("port", "code", "why", "feeds", left=("port", "code", "why", "feeds"))
    for port in plan["ports"]:
        grid.add_row(port["port"], ", ".join([port["code"], *port["details"]]), port["why"], ", ".join(port["feeds"]))
    output.show(answer=lambda: plan, rows=lambda: plan["ports"], blocks=lambda: [grid])
    output.wrote()
    return shell.DONE


COMMANDS = {"run": run}
