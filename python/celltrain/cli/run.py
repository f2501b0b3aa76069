"""`celltrain run`: one scenario, one table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from celltrain.cli import completing, shell
from celltrain.model.measures import ABR, CONTRACTS, FLOWS, PORTS, Measure
from celltrain.model.writing import making
from celltrain.text import shortened, shown

if TYPE_CHECKING:
    from celltrain.model.grids import Block, Grid
    from celltrain.model.types import Scenario
    from celltrain.running.captures import Capture
    from celltrain.running.events import Events
    from celltrain.running.results import RunResult
    from celltrain.running.steady import Steady

# What fits a screen; --json and --out give everything.
MOST_FLOWS = 24
MOST_PORTS = 6
#: `--plot` without a file, as it was before: a figure of each series in the folder of `--out`.
BARE = Path()


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("run", cls=_Run, epilog="For example: celltrain run lan-epd --trace queue,cwnd --plot run.svg")(run)


class _Run(TyperCommand):
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


@shell.command
def run(
    file: shell.ScenarioFile,
    settings: shell.Settings = None,
    seed: Annotated[
        int | None,
        typer.Option(parser=shell.whole(0, (1 << 64) - 1), metavar="N", help="Seed instead of the scenario's own."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            parser=shell.whole(1, 1_000_000),
            metavar="N",
            help="Run it N times, with seed 1 (or --seed) and those that follow: means with 95 % intervals.",
        ),
    ] = None,
    fingerprints: Annotated[
        bool,
        typer.Option("--fingerprints", help="With --seeds: list the fingerprint of each run, as --json always does."),
    ] = False,
    trace: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SERIES",
            help="Series to record, with commas: queue, occupancy, cwnd, delivered, acr, edge.",
            autocompletion=completing.series,
        ),
    ] = None,
    step: Annotated[str | None, typer.Option(metavar="TIME", help="Time between samples, such as 1ms.")] = None,
    port: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Record queue, occupancy, the events of frames and cells and captured cells here, not at the bottleneck. "
            "May be repeated.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Write result, tables and series there.")] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="PICTURE",
            help="Draw the series there, queue and cwnd without --trace; with --seeds the means: .svg, .pdf or .png.",
        ),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="With --seeds: write means and intervals there, as CSV.")
    ] = None,
    warm_up: Annotated[
        bool, typer.Option("--warm-up", help="Say when the goodput has settled, by MSER-5, and its mean from there.")
    ] = False,
    engine: Annotated[
        str | None,
        typer.Option(
            help="fast, or reference: naive, slow, with the same results. Events and captures choose it by themselves."
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            parser=shell.whole(1),
            metavar="N",
            help="Share a large network with long links out among N threads; the result is the same for any number.",
        ),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the events of the run there, a table a kind, while it goes on."),
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option(metavar="KINDS", help="Of these kinds: segments, timers, frames, cells, rates. All if not given."),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(metavar="FROM:TO", help="Events and packets from one time to another, such as 1.2s:1.3s."),
    ] = None,
    flow: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Events and packets of this flow only. May be repeated.")
    ] = None,
    vc: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Events and packets of this VC only. May be repeated.")
    ] = None,
    pcap: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a capture of the run there, such as run.pcapng, for Wireshark."),
    ] = None,
    pcap_kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="Of packets at hosts: ip, which it is if not given, or aal5; or of cells at ports: cells, with all their "
            "bytes, or wireshark_cells, whose headers Wireshark shows.",
        ),
    ] = None,
    pcap_at: Annotated[
        str | None,
        typer.Option(
            metavar="SIDE",
            help="Packets at the sender, which it is if not given, the receiver, or both; cells that go out, in, or both.",
        ),
    ] = None,
    explain_plan: Annotated[
        bool,
        typer.Option(
            "--explain-plan", help="Print which code of the fast engine runs for each port, and why, without a run."
        ),
    ] = False,
    event_format: Annotated[str, typer.Option("--format", help="Of the tables of events: parquet or csv.")] = "parquet",
    as_json: shell.Json = False,
    md: shell.Markdown = False,
    tex: shell.Latex = False,
) -> int:
    """Simulate a scenario: efficiency, fairness, flows, losses by cause, largest queue, speed."""
    from celltrain.drawing.axes import refuse_other
    from celltrain.errors import Fault, InputError
    from celltrain.running.results import run as simulate

    form = shell.form(as_json=as_json, md=md, tex=tex)
    if explain_plan:
        return _explain_plan(shell.scenario(file, settings), form, as_json=as_json)
    series = [name.strip() for names in trace or [] for name in names.split(",") if name.strip()]
    if trace and out is None and plot is None:
        problem = "records series; say where they are written to with --out DIR, or drawn with --plot PICTURE"
        raise InputError([Fault.of_option("--trace", shown(",".join(series)), problem)])
    shell.refuse_no_ending(csv)
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
        }
        _refuse_single(of_one, seeds)
        first = 1 if seed is None else seed
        return _ensemble(
            shell.scenario(file, settings),
            seeds,
            first,
            fingerprints=fingerprints,
            out=out,
            plot=out / "seeds.svg" if into_folder and out is not None else plot,
            csv=csv,
            as_json=as_json,
            form=form,
        )
    if csv is not None:
        problem = (
            "--csv writes the means of several runs: add --seeds N. A single run writes its tables with --out DIR."
        )
        raise InputError([Fault.saying(problem, key="--csv")])
    if fingerprints:
        problem = "lists those of several runs, with --seeds N; a run alone prints its own"
        raise InputError([Fault.of_option("--fingerprints", "on", problem)])
    if threads is not None and threads > 1:
        recording = {"--plot": plot, "--warm-up": warm_up}
        if faults := [
            Fault.of_option("--threads", threads, f"does not go with {name}, which needs a single thread")
            for name, given in recording.items()
            if given
        ]:
            raise InputError(faults)
    if plot:
        from celltrain.drawing.axes import require_matplotlib

        require_matplotlib()
        series = series or ["queue", "cwnd"]
    if port and not (series or events or pcap):
        problem = "chooses where queues, events and cells are recorded: add --trace, --events or --pcap"
        raise InputError([Fault.of_option("--port", shown(",".join(port)), problem)])
    if warm_up:
        series = [*series, *({"delivered"} - set(series))]
    _refuse_idle((events, pcap), kinds=kinds, window=window, flow=flow, vc=vc, pcap_kind=pcap_kind, pcap_at=pcap_at)
    kept = _kept(events, kinds=kinds, window=window, flow=flow, vc=vc, port=port, file_format=event_format)
    capture = _capture(pcap, kind=pcap_kind, at=pcap_at, window=window, flow=flow, vc=vc, port=port)
    scenario = shell.scenario(file, settings)
    with ExitStack() as folders, shell.waiting(f"simulating {shown(file)}") as progress:
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
            events=kept,
            pcap=capture,
            progress=progress,
        )
    written: list[Path] = []
    if out is not None:
        with shell.writing(out):
            written = result.write(out, plots=into_folder)
    if plot is not None and not into_folder:
        written.append(result.plot.write(plot))
    settled = result.steady() if warm_up else None
    if as_json:
        shell.answer(result.to_dict() | ({"steady": _settled(settled)} if settled is not None else {}))
        return shell.DONE
    shell.show(blocks(result), form)
    if settled is not None:
        shell.note(f"goodput in Mb/s: {settled}", form)
    written += kept.paths if kept is not None else []
    written += [capture.path] if capture is not None else []
    told = {one.engine(engine) for one in (kept, capture) if one is not None}
    if "reference" in told and result.engine == "fast":
        shell.note("Events come from the reference engine, which stopped at the end of the window.", form)
    empty = _empty(kept, capture, window)
    for path in written:
        shell.note(f"wrote {shown(path)}{empty.get(path, '')}", form)
    return shell.DONE


def _settled(steady: Steady) -> dict[str, Any]:
    """For JSON, which has no NaN."""
    return {name: None if value != value else value for name, value in asdict(steady).items()}


def _ensemble(
    scenario: Path | Scenario,
    seeds: int,
    first: int,
    *,
    fingerprints: bool,
    out: Path | None,
    plot: Path | None,
    csv: Path | None,
    as_json: bool,
    form: shell.Form,
) -> int:
    """Runs a scenario with several seeds: a comparison of one."""
    from celltrain.cli.compare import answered
    from celltrain.ensemble.comparing import compare
    from celltrain.ensemble.comparing.figure import check
    from celltrain.ensemble.plan.axes import MEASURES

    if plot is not None:
        check(plot, "page", None)
    measures = list(dict.fromkeys(["efficiency", "fairness", "goodput_mbps", *MEASURES]))
    with shell.waiting("simulating") as progress:
        compared = compare(scenario, seeds=seeds, first_seed=first, measures=measures, progress=progress)
    wanted = fingerprints or as_json
    return answered(
        compared,
        plot=plot,
        width="page",
        style=None,
        csv=csv,
        out=out,
        as_json=as_json,
        form=form,
        fingerprints=wanted,
    )


def _refuse_single(options: Mapping[str, object], seeds: int) -> None:
    """Refuses options that ask for what a single run has."""
    from celltrain.errors import Fault, InputError

    given = [name for name, value in options.items() if value is not None]
    if given:
        problem = f"looks into a single run; it goes with --seed, not with --seeds {seeds}"
        raise InputError([Fault.saying(f"{name} {problem}", key=name) for name in given])


def _empty(kept: Events | None, capture: Capture | None, window: str | None) -> dict[Path, str]:
    """What to say of files in which nothing is."""
    where = "in the run" if window is None else "in the window"
    told: dict[Path, str] = {}
    if kept is not None:
        for kind, path in zip(kept.chosen, kept.paths, strict=True):
            if not kept.rows.get(kind):
                told[path] = f": no {kind} {where}"
    if capture is not None and capture.is_empty:
        told[capture.path] = f": no {'cells' if capture.of_cells else 'packets'} {where}"
    return told


def _kept(
    folder: Path | None,
    *,
    kinds: list[str] | None,
    window: str | None,
    flow: list[str] | None,
    vc: list[str] | None,
    port: list[str] | None,
    file_format: str,
) -> Events | None:
    """The events that are asked for; nothing where none are."""
    from celltrain.running.events import Events

    if folder is None:
        return None
    named = [name.strip() for names in kinds or [] for name in names.split(",") if name.strip()]
    if kinds and not named:
        # Nobody means all by naming none.
        named = [""]
    return Events(folder, kinds=named, ports=port, vcs=vc, flows=flow, window=window, format=file_format)


def _capture(
    path: Path | None,
    *,
    kind: str | None,
    at: str | None,
    window: str | None,
    flow: list[str] | None,
    vc: list[str] | None,
    port: list[str] | None,
) -> Capture | None:
    """The capture that is asked for; nothing where none is."""
    from celltrain.running.captures import Capture

    if path is None:
        return None
    kind = kind or "ip"
    # Packets are seen at hosts; the ports may be meant for series.
    ports = port if kind.endswith("cells") else None
    return Capture(path, kind=kind, at=at, ports=ports, vcs=vc, flows=flow, window=window)


def _refuse_idle(
    files: tuple[Path | None, Path | None],
    *,
    kinds: list[str] | None,
    window: str | None,
    flow: list[str] | None,
    vc: list[str] | None,
    pcap_kind: str | None,
    pcap_at: str | None,
) -> None:
    """Refuses options that choose among what is not written."""
    from celltrain.errors import Fault, InputError

    events, pcap = files
    of_events = "chooses among events; say where they are written to with --events DIR"
    of_pcap = "chooses what is captured; say where it is written to with --pcap FILE"
    idle: dict[str, tuple[object, str]] = {}
    if events is None:
        idle["--kinds"] = (kinds, of_events)
    if pcap is None:
        idle |= {"--pcap-kind": (pcap_kind, of_pcap), "--pcap-at": (pcap_at, of_pcap)}
    if events is None and pcap is None:
        idle |= {
            name: (value, f"{of_events}, or packets with --pcap FILE")
            for name, value in {"--window": window, "--flow": flow, "--vc": vc}.items()
        }
    if given := [Fault.of_option(name, shown(str(value)), problem) for name, (value, problem) in idle.items() if value]:
        raise InputError(given)


def _explain_plan(scenario: Path | Scenario, form: shell.Form, *, as_json: bool) -> int:
    """Prints the port plan of the fast engine."""
    from celltrain.errors import ScenarioError
    from celltrain.model import scenario as scenarios
    from celltrain.model.cancel import current

    try:
        plan = json.loads(scenarios.read(scenario).accepted().explain_plan(current()))
    except ValueError as error:
        raise ScenarioError.of_refusal(error) from None
    if as_json:
        shell.answer(plan)
        return shell.DONE
    grid = shell.grid("port", "code", "why", "feeds", left=("port", "code", "why", "feeds"))
    for port in plan["ports"]:
        code = ", ".join([port["code"], *port["details"]])
        grid.add_row(port["port"], code, port["why"], ", ".join(port["feeds"]))
    shell.show([grid], form)
    return shell.DONE


def blocks(result: RunResult) -> Iterator[Block]:
    """A result in lines and tables."""
    from celltrain.model.grids import Line
    from celltrain.running.results import balance, share

    answer = result.to_dict()
    yield Line(text=shortened(result.scenario or "scenario"), style="bold")
    begin, end = answer["measured_from_s"], answer["measured_to_s"]
    is_part = begin > 0 or end < result.duration_s
    part = f", measured from {begin:g} s to {end:g} s; largest queues are of the whole run" if is_part else ""
    yield Line(text=f"{result.duration_s:g} s simulated, seed {result.seed}, {answer['engine']} engine{part}")
    yield Line(text=f"TCP: {result.tcp}", is_note=True)
    yield Line(text="")
    ports = _telling(answer)
    at = f" at {answer['bottleneck']}" if len(ports) > 1 else ""
    yield Line(text=f"efficiency  {result.efficiency:.4f}{at}")
    fairness, max_min = result.fairness, result.fairness_max_min
    yield Line(text=f"fairness    {share(fairness)}{'' if fairness is not None else ': nothing arrived'}")
    if fairness is not None and max_min is not None and abs(max_min - fairness) > 1e-9:
        yield Line(text=f"fairness    {share(max_min)} of max-min shares")
    if (delay := result.file_delay_ms) is not None:
        mean = (
            "no file is complete"
            if delay["mean"] is None
            else f"{delay['mean']:.4g} ms, mean of {delay['files']:,} files"
        )
        yield Line(text=f"file delay  {mean}")
    yield from _flows(answer["flows"])
    yield from _ports(ports, answer["ports"])
    yield from _vcs("contracts", CONTRACTS, answer["contracts"])
    yield from _vcs("VCs whose rate is controlled", ABR, answer["abr"])
    yield Line(text=f"cells: {balance(answer)}")
    yield Line(
        text=f"speed: {shell.counted(result.cell_hops)} cell-hops in {result.engine_seconds:.3g} s, "
        f"{shell.counted(result.cell_hops_per_second)} cell-hops/s"
    )
    yield Line(text=f"fingerprint: {result.fingerprint}")
    if answer["build"]["profile"] != "release":
        yield Line(text=f"This is a {answer['build']['profile']} build: many times slower than it should be.")


def _flows(flows: list[dict[str, Any]]) -> Iterator[Block]:
    from celltrain.model.grids import Line

    shown = flows
    if len(flows) > MOST_FLOWS:
        half = MOST_FLOWS // 2
        ordered = sorted(flows, key=lambda flow: -flow["goodput_mbps"])
        shown = [*ordered[:half], *ordered[-half:]]
        yield Line(text="")
        yield Line(text=f"{len(flows)} flows; the {half} fastest and the {half} slowest")
    yield _rows("flow", FLOWS, shown, flows)


def _vcs(what: str, measures: Sequence[Measure], vcs: list[dict[str, Any]]) -> Iterator[Block]:
    """The VCs of a kind, if there are any."""
    from celltrain.model.grids import Line

    if not vcs:
        return
    if len(vcs) > MOST_FLOWS:
        yield Line(text=f"{len(vcs)} {what}; the first {MOST_FLOWS}")
    yield _rows("VC", measures, vcs[:MOST_FLOWS], vcs)


def _telling(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The ports that limit, lose or carry most: the bottleneck, and the others by their losses."""
    ports = answer["ports"]
    busiest = max((port["utilisation"] for port in ports), default=0.0)
    telling = [
        port
        for port in ports
        if _lost(port) > 0
        or (port["offered_cells"] > 0 and (port["buffer_cells"] is not None or port["utilisation"] == busiest))
    ]
    first = answer["bottleneck"]
    return sorted(telling, key=lambda port: (port["name"] != first, -_lost(port), -port["max_queue_cells"]))


def _ports(telling: list[dict[str, Any]], ports: list[dict[str, Any]]) -> Iterator[Block]:
    """Ports, one column each."""
    from celltrain.model.grids import Line

    shown = telling[:MOST_PORTS]
    grid = shell.grid("port", *(port["name"] for port in shown), left=("port",))
    for measure in _printed(PORTS, ports):
        grid.add_row(measure.heading, *(_text(measure, port) for port in shown))
    yield grid
    if len(telling) > MOST_PORTS:
        yield Line(text=f"{len(telling) - MOST_PORTS} more ports, which lost less, are in the answer of --json")


def _lost(port: dict[str, Any]) -> int:
    return int(port["lost_cells"]) + int(port["discarded_cells"])


def _rows(of: str, measures: Sequence[Measure], shown: list[dict[str, Any]], rows: list[dict[str, Any]]) -> Grid:
    """One line for each row that is shown: its name and its printed measures."""
    printed = _printed(measures, rows)
    grid = shell.grid(of, *(measure.heading for measure in printed), left=(of,))
    for row in shown:
        grid.add_row(measures[0].of(row), *(_text(measure, row) for measure in printed))
    return grid


def _printed(measures: Sequence[Measure], rows: list[dict[str, Any]]) -> list[Measure]:
    """The measures that tables of these rows have."""

    def says_something(measure: Measure) -> bool:
        if measure.printed == "differs":
            return len({_text(measure, row) for row in rows}) > 1
        return measure.printed == "always" or (measure.printed == "present" and any(map(measure.of, rows)))

    return [measure for measure in measures if says_something(measure)]


#: How numbers of a unit are written; whole numbers with commas.
FORMATS = {"Mb/s": ".3f", "s": ".3f", "ms": ".4g", "1": ".1%"}


def _text(measure: Measure, row: dict[str, Any]) -> str:
    value = measure.of(row)
    if value is None:
        # Cells that have no limit; anything else is not there.
        return "infinite" if measure.unit == "cells" else ""
    if measure.kind == "string":
        return str(value)
    return format(value, "," if measure.kind == "int64" else FORMATS.get(measure.unit, ".4g"))
