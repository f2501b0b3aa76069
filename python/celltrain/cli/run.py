"""`celltrain run`: runs one scenario and prints its result, or the means of several seeds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from celltrain.cli import options, shell
from celltrain.cli.options import listed
from celltrain.drawing.figure import FigureStyle, refuse_other, require_matplotlib
from celltrain.drawing.words import BOUND, at_least
from celltrain.errors import Fault, InputError
from celltrain.model import measures as columns
from celltrain.model import scenario as scenarios
from celltrain.model.arguments import current
from celltrain.model.grids import Block, Grid, Line
from celltrain.model.network import Network
from celltrain.running.events import Capture, Events
from celltrain.running.results import CLASSES, RunResult, balance, share
from celltrain.running.results import run as simulate
from celltrain.text import among, shortened, shown

if TYPE_CHECKING:
    from celltrain.model.types import Scenario

#: Maximum rows of the printed tables; --json and --out contain everything.
MOST_FLOWS, MOST_PORTS = 24, 6
#: Shorter times, in seconds, are printed in microseconds. A column has one unit.
SHORT = 0.01


@shell.command
def run(
    output: shell.Document,
    file: options.ScenarioFile,
    settings: options.Settings = None,
    seed: options.Seed = None,
    engine: str | None = None,
    threads: options.Count = None,
    warm_up: bool = False,
    delays: bool = False,
    explain_plan: bool = False,
    seeds: Annotated[int | None, {"parser": options.whole(1, options.MOST_RUNS)}] = None,
    fingerprints: bool = False,
    trace: Annotated[list[str] | None, {"autocompletion": options.complete_series}] = None,
    step: str | None = None,
    port: list[str] | None = None,
    out: Path | None = None,
    plot: Path | None = None,
    logarithmic: Annotated[bool, {"names": ["--log"]}] = False,
    width: options.Width = "page",
    style: options.Style = None,
    labels: options.Labels = None,
    events: Path | None = None,
    kinds: list[str] | None = None,
    window: str | None = None,
    flow: list[str] | None = None,
    vc: list[str] | None = None,
    pcap: Path | None = None,
    pcap_kind: str | None = None,
    pcap_at: str | None = None,
    qlog: Path | None = None,
) -> int:
    """Simulate a scenario: efficiency, fairness, flows, losses by cause, largest queue, speed.

    Scenario:
        engine: fast, or reference: naive and slow, with the same results. Some events need reference.
        threads (N): Threads for one large network with long links; the result is the same for any number.
        delays: Print the delays of packets: round-trip times and jitter of flows, and queueing delays at ports.
        warm_up: Print when the goodput has settled, by MSER-5, and its mean from there.
        explain_plan: Print which code of the fast engine runs for each port, without a run.

    Ensemble:
        seeds (N): Run it N times, with seed 1 (or --seed) and those that follow: means with 95 % intervals.
        fingerprints: With --seeds: list the fingerprint of each run, as --json always does.

    Output:
        trace (SERIES): Series to record, separated by commas: queue, occupancy, cwnd, delivered, acr, edge, memory.
        step (TIME): Time between samples, such as 1ms.
        port (NAME): Record queue, occupancy, events and captured cells at this port instead of the bottleneck. May be
            repeated.
        out (DIR): Write result, tables and series there.
        plot (PICTURE): Draw the series to this file (.svg, .pdf or .png): queue and cwnd without --trace. With --seeds,
            draw the means.
        logarithmic: Draw congestion windows on a logarithmic axis to the base 2, on which slow start is a straight line.

    Events and packets:
        events (DIR): Write the events of the run there, one table for each kind.
        kinds (KINDS): Only these kinds: segments, timers, frames, cells, rates. All by default.
        window (FROM:TO): Events and packets between these times, such as 1.2s:1.3s.
        flow (NAME): Events and packets of this flow only. May be repeated.
        vc (NAME): Events and packets of this VC only. May be repeated.
        pcap (FILE): Write a capture for Wireshark to FILE, such as run.pcapng. A capture of packets at both ends is two files:
            run-sender.pcapng and run-receiver.pcapng.
        pcap_kind (KIND): Packets at hosts: ip or aal5; cells at ports: cells, or wireshark_cells, whose headers Wireshark
            shows. [default: ip]
        pcap_at (SIDE): Capture point: sender, receiver or both (packets); out, in or both (cells). [default: sender]
        qlog (FILE): Write the log of a connection at its sender there, such as run.sqlog, or run.qlog for the viewer
            qvis. Several connections have a file each: run-tcp1.sqlog.

    Examples:
        celltrain run lan-epd --set port.bottleneck.buffer=2000
        celltrain run lan-epd --seeds 20 --csv seeds.csv
        celltrain run lan-epd --trace queue,cwnd --plot run.svg
    """
    if explain_plan:
        return _explain_plan(shell.scenario(file, settings), output)
    if plot is not None:
        refuse_other(plot, "--plot", out, events)
        require_matplotlib()
        FigureStyle.of(width, style)
    named_by = options.labelled(labels)
    if pcap is not None:
        shell.check_target(pcap, out, events)
    if qlog is not None:
        shell.check_target(qlog, out, events)
    chosen: dict[str, object] = {"--window": window, "--flow": flow, "--vc": vc}
    of_capture: dict[str, object] = {"--pcap-kind": pcap_kind, "--pcap-at": pcap_at}
    if seeds is not None:
        of_one: dict[str, object] = {
            "--trace": trace,
            "--step": step,
            "--port": port,
            "--engine": engine,
            "--threads": threads,
        }
        of_one |= {
            "--events": events,
            "--pcap": pcap,
            "--qlog": qlog,
            "--warm-up": warm_up,
            "--kinds": kinds,
            "--delays": delays,
        }
        of_one |= {"--log": logarithmic, **chosen, **of_capture}
        problem = f"applies to a single run; use --seed instead of --seeds {seeds}"
        if given := [Fault.saying(f"{name} {problem}", key=name) for name, value in of_one.items() if value]:
            raise InputError(given)
        look: dict[str, Any] = {"plot": plot, "width": width, "style": style, "out": out}
        ensemble = {"seeds": seeds, "first_seed": 1 if seed is None else seed, "labels": named_by}
        return _ensemble(shell.scenario(file, settings), ensemble, output, look, fingerprints=fingerprints)
    series = listed(trace) or []
    _refuse({"--fingerprints": fingerprints}, "needs --seeds N; a single run prints its fingerprint anyway")
    if not (out or plot):
        where = "name a folder for the series with --out DIR, or a picture with --plot PICTURE"
        _refuse({"--trace": series}, f"records series; {where}")
    if not (series or plot or events or pcap):
        problem = "selects where queues, events and cells are recorded: add --trace, --events or --pcap"
        _refuse({"--port": port}, problem)
    if not plot:
        _refuse(
            {"--log": logarithmic, "--style": style, "--labels": labels},
            "changes the figure; draw the figure with --plot PICTURE",
        )
    of_events = "selects events; name a folder for the events with --events DIR"
    if not events:
        _refuse({"--kinds": kinds}, of_events)
        _refuse({} if pcap else chosen, f"{of_events}, or a file for the packets with --pcap FILE")
    if not pcap:
        _refuse(of_capture, "selects packets or cells; name a file for the capture with --pcap FILE")
    if threads is not None and threads > 1:
        problem = f"needs a single thread; leave out --threads {threads}"
        _refuse({"--plot": plot, "--warm-up": warm_up, "--delays": delays}, problem)
    scenario = shell.scenario(file, settings)
    if plot is not None:
        series = series or ["queue", *([] if _hides_windows(scenario) else ["cwnd"])]
        if wrong := [name for name in named_by if name not in series]:
            raise InputError.of_option("--labels", wrong[0], f"is not drawn; {among(wrong[0], series)}")
        _refuse({"--log": logarithmic and "cwnd" not in series}, "draws congestion windows; add cwnd to --trace")
    if warm_up:
        series = [*series, *({"delivered"} - set(series))]
    log = capture = None
    if events is not None:
        # An empty --kinds is a mistake, not a request for all kinds.
        named = [""] if kinds and not listed(kinds) else listed(kinds) or []
        log = Events(events, kinds=named, ports=port, vcs=vc, flows=flow, window=window)
    if pcap is not None:
        kind = pcap_kind or "ip"
        # Packets are captured at hosts, so --port does not apply to them. It may still select series and events.
        is_of_cells = kind.endswith("cells")
        if not (is_of_cells or series or events):
            problem = "captures cells, but packets are captured at hosts"
            _refuse({"--port": port}, f"{problem}; choose packets with --flow or --vc, or add --pcap-kind cells")
        at: dict[str, Any] = {
            "at": pcap_at,
            "ports": port if is_of_cells else None,
            "vcs": vc,
            "flows": flow,
            "window": window,
        }
        capture = Capture(pcap, kind=kind, **at)
    asked: dict[str, Any] = {"seed": seed, "trace": series, "step": step, "ports": port, "engine": engine}
    asked |= {"qlog": qlog, "threads": threads or 1, "delays": delays, "request_rows": out is not None, "events": log}
    before = _logs(qlog)
    with shell.making(out), shell.waiting(f"simulating {shown(file)}") as tell:
        result = simulate(scenario, **asked, pcap=capture, progress=tell)
    written: list[Path] = []
    if out is not None:
        written += result.write(out)
    if plot is not None:
        written.append(result.plot.write(plot, width=width, style=style, labels=named_by, log=logarithmic))
    settled = result.steady() if warm_up else None
    # NaN cannot be written as JSON.
    steady = {} if settled is None else {"steady": {k: None if v != v else v for k, v in asdict(settled).items()}}
    output.show(result.to_dict() | steady, blocks(result), lambda: result.flows.to_pylist())
    if settled is not None:
        output.note(f"goodput in Mb/s: {settled}")
    recorders = [one for one in (log, capture) if one is not None]
    if result.engine == "fast" and "reference" in {one.engine(engine) for one in recorders}:
        output.note("Events come from the reference engine, which stopped at the end of the window.")
    output.wrote(written)
    where = "in the run" if window is None else "in the window"
    if log is not None:
        for kind, path in zip(log.chosen, log.paths, strict=True):
            output.note(f"wrote {shown(path)}{'' if log.rows.get(kind) else f': no {kind} {where}'}")
    if plot is not None and trace is None and "cwnd" not in series:
        output.note("The figure has no congestion windows: the stacks of all flows hide them.")
    if qlog is not None:
        output.wrote(sorted(_logs(qlog) - before))
    for path, packets in capture.packets.items() if capture is not None else ():
        what = "cells" if capture is not None and capture.of_cells else "packets"
        output.note(f"wrote {shown(path)}{'' if packets else f': no {what} {where}'}")
    return shell.DONE


def _logs(qlog: Path | None) -> set[Path]:
    """Returns the existing logs of connections under this name."""
    return set() if qlog is None else {*qlog.parent.glob(qlog.name), *qlog.parent.glob(f"{qlog.stem}-*{qlog.suffix}")}


def _hides_windows(scenario: Path | Scenario) -> bool:
    """Returns whether no flow reports a congestion window. Of the real stacks, only QUIC reports one."""
    reading = scenarios.read(scenario)
    flows = [] if reading.faults else Network.of_core(reading.accepted()).flows
    return bool(flows) and all(flow.stack not in ("", "quic") for flow in flows)


def _refuse(given: Mapping[str, object], problem: str) -> None:
    """Raises `InputError` for options that have no effect, or conflict with others."""
    faults = []
    for name, value in given.items():
        text = "" if value is True else ",".join(value) if isinstance(value, list) else str(value)
        faults += [Fault.of_option(name, shown(text), problem)] if value else []
    if faults:
        raise InputError(faults)


def _ensemble(
    scenario: Path | Scenario,
    ensemble: Mapping[str, Any],
    output: shell.Output,
    look: Mapping[str, Any],
    *,
    fingerprints: bool,
) -> int:
    """Runs a scenario with several seeds, as a comparison with a single scenario."""
    from celltrain.cli.compare import finish
    from celltrain.ensemble.comparing import compare, default_measures
    from celltrain.ensemble.plan.axes import MEASURES

    measures = default_measures([scenario], list(dict.fromkeys(["efficiency", "fairness", "goodput_mbps", *MEASURES])))
    with shell.making(look["out"]), shell.waiting("simulating", by_line=True) as tell:
        compared = compare(scenario, **ensemble, measures=measures, progress=tell)
    return finish(compared, output, **look, fingerprints=fingerprints or output.form == "json")


def _explain_plan(scenario: Path | Scenario, output: shell.Output) -> int:
    """Prints the port plan of the fast engine."""
    plan = json.loads(scenarios.read(scenario).accepted().explain_plan(current()))
    heads = ("port", "code", "why", "feeds")
    ports = [
        (port["port"], ", ".join([port["code"], *port["details"]]), port["why"], ", ".join(port["feeds"]))
        for port in plan["ports"]
    ]
    output.show(plan, [shell.grid(*heads, left=heads, rows=ports)], lambda: plan["ports"])
    return shell.DONE


def blocks(result: RunResult) -> Iterator[Block]:
    """Yields the lines and tables of a result."""
    answer = result.to_dict()
    begin, end = answer["measured_from_s"], answer["measured_to_s"]
    is_part = begin > 0 or end < result.duration_s
    part = f", measured from {begin:g} s to {end:g} s; largest queues refer to the whole run" if is_part else ""
    ports = _telling(answer)
    at = f" at {answer['bottleneck']}" if len(ports) > 1 else ""
    yield Line(text=shortened(result.scenario or "scenario"), style="bold")
    lasts = f"{1e6 * result.duration_s:.4g} us" if result.duration_s < SHORT else f"{result.duration_s:g} s"
    yield Line(text=f"{lasts} simulated, seed {result.seed}, {answer['engine']} engine{part}")
    yield Line(text=f"TCP: {result.tcp}", is_note=True)
    yield Line(text="")
    fairness, max_min = result.fairness, result.fairness_max_min
    # Without flows, the bottleneck is just the first of many links.
    if answer["flows"]:
        yield Line(text=f"efficiency  {result.efficiency:.4f}{at}")
        yield Line(text=f"fairness    {share(fairness)}{'' if fairness is not None else ': nothing arrived'}")
    if fairness is not None and max_min is not None and abs(max_min - fairness) > 1e-9:
        yield Line(text=f"fairness    {share(max_min)} of max-min shares")
    if (delay := result.file_delay_ms) is not None:
        mean = "no file transfer was completed"
        if delay["mean"] is not None:
            mean = f"{delay['mean']:.4g} ms, mean of {delay['files']:,} files"
        yield Line(text=f"file delay  {mean}")
    shown, half = answer["flows"], MOST_FLOWS // 2
    if len(shown) > MOST_FLOWS:
        yield Line(text="")
        yield Line(text=f"{len(shown)} flows, of which the {half} fastest and the {half} slowest are shown")
        shown = sorted(shown, key=lambda flow: -flow["goodput_mbps"])
        shown = [*shown[:half], *shown[-half:]]
    if shown:
        yield _rows("flow", columns.FLOWS, shown, answer["flows"])
    if answer["requests"]:
        yield _rows("group", columns.REQUESTS, answer["requests"], answer["requests"])
    for group in answer["requests"]:
        yield _sizes(group)
    if any(group["all"]["censored"] or (group["queries"] or {}).get("censored") for group in answer["requests"]):
        yield Line(text=BOUND, is_note=True)
    occurring = [row for group in answer["requests"] for row in _occurring(group).values()]
    if any(row["completion_ms_p999"] is None for row in occurring):
        needed = ", ".join(f"{STATISTICS[name]} needs {count:,}" for name, count in columns.NEEDED.items())
        yield Line(text=f"Percentiles without a value have too few requests or queries: {needed}.", is_note=True)
    grid = shell.grid("port", *(port["name"] for port in ports[:MOST_PORTS]), left=("port",))
    # A memory may drop the cells of any of its ports, so a separate table shows the drops by reason.
    drops = {f"{measure.name.rpartition('.')[2]}_cells" for measure in DROPS} if answer["memories"] else set()
    for measure in _printed(columns.PORTS, answer["ports"]):
        if measure.name not in drops:
            grid.add_row(measure.heading, *(_text(measure, port) for port in ports[:MOST_PORTS]))
    yield grid
    if len(ports) > MOST_PORTS:
        yield Line(text=f"{len(ports) - MOST_PORTS} more ports with fewer losses are in the output of --json")
    if answer.get("links"):
        yield _rows("link", columns.LINKS, answer["links"], answer["links"])
    controlled = ("VCs with a controlled rate", columns.ABR, answer["abr"])
    for what, measures, vcs in (("contracts", columns.CONTRACTS, answer["contracts"]), controlled):
        if len(vcs) > MOST_FLOWS:
            yield Line(text=f"{len(vcs)} {what}; the first {MOST_FLOWS}")
        if vcs:
            yield _rows("VC", measures, vcs[:MOST_FLOWS], vcs)
    yield from _delays(answer, ports)
    if answer["memories"]:
        yield _dropped(answer, ports[:MOST_PORTS])
        yield _rows("memory", columns.MEMORIES, answer["memories"], answer["memories"])
        # Cells are counted by queue only in memories.
        counted = [queue for queue in answer["queues"] if queue["max_cells"] is not None]
        fullest = sorted(counted, key=lambda queue: -queue["max_cells"])[:MOST_FLOWS]
        yield _rows("queue", columns.QUEUES, fullest, counted)
    if (deadlock := answer["deadlock_s"]) is not None:
        blocked = f"pauses blocked a cycle of links at {deadlock:.6g} s"
        yield Line(text=f"deadlock    {blocked}: celltrain why names the cycle")
    yield Line(text=f"cells: {balance(answer)}")
    hops, speed = shell.counted(result.cell_hops), shell.counted(result.cell_hops_per_second)
    yield Line(text=f"speed: {hops} cell-hops in {result.engine_seconds:.3g} s, {speed} cell-hops/s")
    yield Line(text=f"fingerprint: {result.fingerprint}")
    if answer["build"]["profile"] != "release":
        yield Line(text=f"This is a {answer['build']['profile']} build of celltrain, much slower than a release build.")


#: Statistics of completion times and slowdowns, with their headings.
STATISTICS = {"mean": "mean", "median": "median", "p95": "95 %", "p99": "99 %", "p999": "99.9 %"}


def _occurring(group: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the classes of a group that have requests, and its queries."""
    classes = {name: group[name] for name in CLASSES if group[name] is not None}
    return {name: row for name, row in classes.items() if row["completed"] + row["open"]}


def _sizes(group: dict[str, Any]) -> Grid:
    """Returns the table of a group: completion times, then slowdowns, with a line for each size class that occurs."""
    grid = shell.grid(group["name"], "completed", "open", *STATISTICS.values(), left=(group["name"],))
    for kind, heading in (("completion_ms", "completion time, ms"), ("slowdown", "slowdown")):
        begin = len(grid.rows)
        for name, row in _occurring(group).items():
            values = {one: row.get(f"{kind}_{one}") for one in STATISTICS}
            texts = {one: "" if value is None else f"{value:.4g}" for one, value in values.items()}
            cells = [at_least(text) if text and row.get(f"{one}_censored") else text for one, text in texts.items()]
            if any(cells):
                grid.add_row(name, *(f"{row[count]:,}" for count in ("completed", "open")), *cells)
        if len(grid.rows) > begin:
            grid.groups[begin] = heading
    return grid


#: Reasons for which cells are dropped, and their sum.
DROPS = [measure for measure in columns.RUN if measure.name.startswith("drops.")]


def _dropped(answer: dict[str, Any], ports: list[dict[str, Any]]) -> Grid:
    """Returns the table of dropped cells by reason, of the whole network and of these ports. Its lines add up."""
    grid = shell.grid("dropped cells", "all", *(port["name"] for port in ports), left=("dropped cells",))
    for measure in _printed(DROPS, [answer]):
        column = f"{measure.name.rpartition('.')[2]}_cells"
        # Links with loss rules are not ports.
        of_ports = (f"{port[column]:,}" if column in port else "0" for port in ports)
        grid.add_row(measure.heading, _text(measure, answer), *of_ports)
    return grid


#: Statistics of delays, with their headings.
DELAYS = {"mean": "mean", "p50": "median", "p95": "95 %", "p99": "99 %", "p999": "99.9 %"}


def _delays(answer: dict[str, Any], ports: list[dict[str, Any]]) -> Iterator[Grid]:
    """If delays were measured, yields tables of the delays in milliseconds."""
    kinds = (
        ("round-trip time, ms", "rtt_ms", answer["flows"][:MOST_FLOWS]),
        ("one-way delay, ms", "delay_ms", answer["flows"][:MOST_FLOWS]),
        ("delay at port, ms", "delay_ms", ports[:MOST_PORTS]),
        ("delay in queue, ms", "delay_ms", answer["queues"][:MOST_FLOWS]),
    )
    for heading, name, rows in kinds:
        measured = [row for row in rows if row.get(f"{name}_mean") is not None]
        if not measured:
            continue
        names = {f"{name}_{one}": text for one, text in DELAYS.items()}
        names |= {"jitter_ms": "jitter"} if name == "delay_ms" and "jitter_ms" in measured[0] else {}
        cells = [["" if (value := row[one]) is None else f"{value:.4g}" for one in names] for row in measured]
        rows = [[row["name"], *values] for row, values in zip(measured, cells, strict=True)]
        yield shell.grid(heading, *names.values(), left=(heading,), rows=rows)


def _telling(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the bottleneck, then the busiest ports and those with losses or finite buffers, sorted by losses."""
    busiest = max((port["utilisation"] for port in answer["ports"]), default=0.0)
    lost = {port["name"]: port["lost_cells"] + port["discarded_cells"] for port in answer["ports"]}
    telling = [
        port
        for port in answer["ports"]
        if lost[port["name"]]
        or (port["offered_cells"] > 0 and (port["buffer_cells"] is not None or port["utilisation"] == busiest))
    ]
    first = answer["bottleneck"]
    return sorted(telling, key=lambda port: (port["name"] != first, -lost[port["name"]], -port["max_queue_cells"]))


def _rows(
    of: str, measures: Sequence[columns.Measure], shown: list[dict[str, Any]], rows: list[dict[str, Any]]
) -> Grid:
    """Returns a table with a line for each shown row: its name and its printed measures."""
    printed = _printed(measures, rows)
    times = {
        one.name: [time for row in rows if (time := one.of(row)) is not None] for one in printed if one.unit == "s"
    }
    short = {name for name, known in times.items() if known and max(known) < SHORT}
    heads = (f"{one.heading.removesuffix(', s')}, us" if one.name in short else one.heading for one in printed)
    grid = shell.grid(of, *heads, left=(of,))
    for row in shown:
        grid.add_row(measures[0].of(row), *(_text(one, row, in_us=one.name in short) for one in printed))
    return grid


def _printed(measures: Sequence[columns.Measure], rows: list[dict[str, Any]]) -> list[columns.Measure]:

    def says_something(measure: columns.Measure) -> bool:
        if measure.printed == "differs":
            return len({_text(measure, row) for row in rows}) > 1
        return measure.printed == "always" or (measure.printed == "present" and any(map(measure.of, rows)))

    return [measure for measure in measures if says_something(measure)]


#: Formats of numbers by unit; whole numbers have commas.
FORMATS = {"Mb/s": ".3f", "s": ".3f", "ms": ".4g", "1": ".1%"}


def _text(measure: columns.Measure, row: dict[str, Any], *, in_us: bool = False) -> str:
    value = measure.of(row)
    if in_us and value is not None:
        return format(1e6 * value, ".4g")
    if value is None:
        # A missing number of cells means no limit. Other missing values are omitted.
        return "infinite" if measure.unit == "cells" else ""
    if measure.kind == "string":
        return str(value)
    return format(value, "," if measure.kind == "int64" else FORMATS.get(measure.unit, ".4g"))


COMMANDS = {"run": run}
