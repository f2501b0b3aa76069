"""The tables of a run's result for people: flows, ports and VCs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from celltrain.cli import shell
from celltrain.model.grids import Line
from celltrain.model.measures import ABR, CONTRACTS, FLOWS, PORTS, Measure
from celltrain.text import shortened

if TYPE_CHECKING:
    from celltrain.model.grids import Block, Grid
    from celltrain.running.results import RunResult

# Limits of the printed tables; --json and --out give everything.
MOST_FLOWS = 24
MOST_PORTS = 6


def blocks(result: RunResult) -> Iterator[Block]:
    """Yields a result in lines and tables."""
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
