"""`celltrain run`: one scenario, one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celltrain.cli import shell
from celltrain.text import shortened, shown

if TYPE_CHECKING:
    from rich.console import Console

    from celltrain.results import RunResult

# What fits a screen; --json and --out give everything.
MOST_FLOWS = 24
MOST_PORTS = 6


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("run", epilog="For example: celltrain run scenarios/lan-epd.toml --trace queue,cwnd --out out --plot")(
        run
    )


@shell.command
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The scenario, a TOML file.")],
    seed: Annotated[
        int | None, typer.Option(min=0, max=(1 << 64) - 1, help="Seed instead of the scenario's own.")
    ] = None,
    trace: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SERIES", help="Series to record, with commas: queue, occupancy, cwnd, delivered, acr, edge."
        ),
    ] = None,
    step: Annotated[str | None, typer.Option(metavar="TIME", help="Time between samples, such as 1ms.")] = None,
    port: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Record queue and occupancy here, not at the bottleneck. May be repeated."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Write result, tables and series there.")] = None,
    plot: Annotated[bool, typer.Option("--plot", help="Draw the series too; with no --trace: queue and cwnd.")] = False,
    engine: Annotated[str, typer.Option(help="fast, or reference: naive, slow, with the same results.")] = "fast",
    as_json: shell.Json = False,
) -> None:
    """Simulate a scenario: efficiency, fairness, flows, losses by cause, largest queue, speed."""
    from celltrain.errors import Fault, InputError
    from celltrain.results import run as simulate

    series = [name.strip() for names in trace or [] for name in names.split(",") if name.strip()]
    if plot and out is None:
        raise InputError([Fault.of_option("--plot", "on", "draws files; say where to with --out DIR")])
    if plot:
        from celltrain.plot import require_matplotlib

        require_matplotlib()
        series = series or ["queue", "cwnd"]
    if out is not None:
        shell.folder(out)
    with shell.waiting(f"simulating {shown(file)}") as progress:
        result = simulate(file, seed=seed, trace=series, step=step, ports=port, engine=engine, progress=progress)
    written: list[Path] = []
    if out is not None:
        with shell.writing(out):
            written = result.write(out, plots=plot)
    if as_json:
        shell.answer(result.to_dict())
        return
    console = shell.console()
    show(result, console)
    for path in written:
        console.print(f"wrote {shown(path)}", soft_wrap=True)


def show(result: RunResult, console: Console) -> None:
    """Prints a result for people."""
    answer = result.to_dict()
    console.print(shown(shortened(result.scenario or "scenario")), style="bold", soft_wrap=True)
    console.print(f"{result.duration_s:g} s simulated, seed {result.seed}, {answer['engine']} engine\n")
    console.print(f"efficiency  {result.efficiency:.4f}\nfairness    {result.fairness:.4f}")
    if abs(result.fairness_max_min - result.fairness) > 1e-9:
        console.print(f"fairness    {result.fairness_max_min:.4f} of max-min shares")
    if (delay := result.file_delay_ms) is not None:
        mean = (
            "no file is complete"
            if delay["mean"] is None
            else f"{delay['mean']:.4g} ms, mean of {delay['files']:,} files"
        )
        console.print(f"file delay  {mean}")
    _flows(answer["flows"], console)
    _ports(answer["ports"], console)
    _contracts(answer["contracts"], console)
    _abr(answer["abr"], console)
    cells = result.cells
    console.print(
        f"cells: {cells['offered']:,} offered = {cells['delivered']:,} delivered + {cells['lost']:,} lost "
        f"+ {cells['discarded']:,} discarded + {cells['in_flight']:,} in flight",
        soft_wrap=True,
    )
    console.print(
        f"speed: {shell.counted(result.cell_hops)} cell-hops in {result.engine_seconds:.3g} s, "
        f"{shell.counted(result.cell_hops_per_second)} cell-hops/s"
    )
    console.print(f"fingerprint: {result.fingerprint}")
    if answer["build"]["profile"] != "release":
        console.print(f"This is a {answer['build']['profile']} build: many times slower than it should be.")


def _flows(flows: list[dict[str, Any]], console: Console) -> None:
    shown, title = flows, ""
    if len(flows) > MOST_FLOWS:
        half = MOST_FLOWS // 2
        ordered = sorted(flows, key=lambda flow: -flow["goodput_mbps"])
        shown = [*ordered[:half], *ordered[-half:]]
        title = f"{len(flows)} flows; the {half} fastest and the {half} slowest"
    columns = {"goodput Mb/s": [f"{flow['goodput_mbps']:.3f}" for flow in shown]}
    # Where all have the same share the column says nothing.
    if len({round(flow["max_min_mbps"], 6) for flow in flows}) > 1:
        columns["max-min Mb/s"] = [f"{flow['max_min_mbps']:.3f}" for flow in shown]
    columns |= {
        "timeouts": [f"{flow['timeouts']:,}" for flow in shown],
        "fast retransmits": [f"{flow['fast_retransmits']:,}" for flow in shown],
        "segments sent": [f"{flow['segments_sent']:,}" for flow in shown],
        "retransmitted": [f"{flow['retransmitted_segments']:,}" for flow in shown],
    }
    if any(flow["packets_sent"] for flow in flows):
        columns["packets sent"] = [f"{flow['packets_sent']:,}" for flow in shown]
        columns["packets delivered"] = [f"{flow['packets_delivered']:,}" for flow in shown]
    if any(flow["traffic"] == "file" for flow in flows):
        times = [flow["completion_s"] for flow in shown]
        columns["completed after, s"] = ["" if time is None else f"{time:.3f}" for time in times]
    if any(flow["file_delay_ms"] for flow in flows):
        means = [(flow["file_delay_ms"] or {}).get("mean") for flow in shown]
        columns["file delay, ms"] = ["" if mean is None else f"{mean:.4g}" for mean in means]
    grid = shell.grid("flow", *columns, left=("flow",))
    for flow, *cells in zip(shown, *columns.values(), strict=True):
        grid.add_row(flow["name"], *cells)
    if title:
        console.print(f"\n{title}")
    console.print(grid)


def _contracts(contracts: list[dict[str, Any]], console: Console) -> None:
    """The VCs with a contract, if there are any."""
    if not contracts:
        return
    grid = shell.grid("VC", "frames", "eligible", "tagged", "discarded", "cut", "nonconforming cells", left=("VC",))
    keys = ("frames", "eligible_frames", "tagged_frames", "discarded_frames", "cut_frames", "nonconforming_cells")
    for contract in contracts[:MOST_FLOWS]:
        grid.add_row(contract["vc"], *(f"{contract[key]:,}" for key in keys))
    if len(contracts) > MOST_FLOWS:
        console.print(f"\n{len(contracts)} contracts; the first {MOST_FLOWS}")
    console.print(grid)


def _abr(vcs: list[dict[str, Any]], console: Console) -> None:
    """The VCs whose rate is controlled, if there are any."""
    if not vcs:
        return
    grid = shell.grid("VC", "ACR at the end, Mb/s", "forward RM cells", "came back", "RM share", left=("VC",))
    for vc in vcs[:MOST_FLOWS]:
        counts = (f"{vc[key]:,}" for key in ("forward_rm_cells", "returned_rm_cells"))
        grid.add_row(vc["vc"], f"{vc['acr_mbps']:.3f}", *counts, f"{vc['rm_share']:.1%}")
    if len(vcs) > MOST_FLOWS:
        console.print(f"\n{len(vcs)} VCs whose rate is controlled; the first {MOST_FLOWS}")
    console.print(grid)


def _ports(ports: list[dict[str, Any]], console: Console) -> None:
    """The ports that limit, lose or carry most, one column each."""
    busiest = max((port["utilisation"] for port in ports), default=0.0)
    telling = [
        port
        for port in ports
        if _lost(port) > 0
        or (port["offered_cells"] > 0 and (port["buffer_cells"] is not None or port["utilisation"] == busiest))
    ]
    telling.sort(key=lambda port: (-_lost(port), -port["max_queue_cells"]))
    shown = telling[:MOST_PORTS]
    grid = shell.grid("port", *(port["name"] for port in shown), left=("port",))
    lines = {
        "policy": [port["policy"] for port in shown],
        "scheduler": [port["scheduler"] for port in shown],
        "buffer, cells": [
            "infinite" if port["buffer_cells"] is None else f"{port['buffer_cells']:,}" for port in shown
        ],
        "largest queue, cells": [f"{port['max_queue_cells']:,}" for port in shown],
        "cells offered": [f"{port['offered_cells']:,}" for port in shown],
        "lost for want of room": [f"{port['lost_overflow_cells']:,}" for port in shown],
        "lost, pushed out": [f"{port['lost_pushed_out_cells']:,}" for port in shown],
        "discarded, whole frames": [f"{port['discarded_frame_cells']:,}" for port in shown],
        "discarded, rest of frames": [f"{port['discarded_remainder_cells']:,}" for port in shown],
        "utilisation": [f"{port['utilisation']:.1%}" for port in shown],
    }
    for label, values in lines.items():
        grid.add_row(label, *values)
    console.print(grid)
    if len(telling) > MOST_PORTS:
        console.print(f"{len(telling) - MOST_PORTS} more ports, which lost less, are in the answer of --json")


def _lost(port: dict[str, Any]) -> int:
    return int(port["lost_cells"]) + int(port["discarded_cells"])
