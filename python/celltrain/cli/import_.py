"""`celltrain import`: makes a scenario from a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from celltrain.cli import options, shell
from celltrain.cli.options import OUTPUT, SCENARIO, count, flag, option
from celltrain.text import shown

GRAPH = "Graph"


@shell.command(
    "celltrain import net.graphml --flows 20 --delay 1ms --out net.toml",
    "celltrain import net.json --rate-attribute bandwidth --rate-unit Mbps",
    "celltrain import net.graphml --name-attribute label --both-ways --json",
)
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A graph: GraphML, or JSON with nodes and links.")],
    rate_attribute: Annotated[str, option("NAME", "Attribute with an edge's rate.", panel=GRAPH)] = "rate",
    delay_attribute: Annotated[str, option("NAME", "Attribute with an edge's delay.", panel=GRAPH)] = "delay",
    rate_unit: Annotated[
        str | None, option("UNIT", "Unit of rates that are bare numbers, such as bps.", panel=GRAPH)
    ] = None,
    delay_unit: Annotated[
        str | None, option("UNIT", "Unit of delays that are bare numbers, such as ms.", panel=GRAPH)
    ] = None,
    name_attribute: Annotated[
        str | None, option("NAME", "Attribute with a node's name.", default="its id", panel=GRAPH)
    ] = None,
    kind_attribute: Annotated[
        str, option("NAME", "Attribute with a node's kind: host, switch or edge_device.", panel=GRAPH)
    ] = "kind",
    flow_attribute: Annotated[
        str, option("NAME", "Attribute with the nodes that a node sends flows to.", panel=GRAPH)
    ] = "flow_to",
    both_ways: Annotated[
        bool, flag("--both-ways", "Make a directed edge without one back a link both ways.", GRAPH)
    ] = False,
    flows: Annotated[int | None, count("Draw N flows between random nodes.", panel=SCENARIO)] = None,
    seed: Annotated[
        int, count("Seed of these draws, and of the scenario.", least=0, most=options.MOST_SEED, panel=SCENARIO)
    ] = 1,
    rate: Annotated[str, option(None, "Rate of links without a rate.", panel=SCENARIO)] = "155.52Mbps",
    delay: Annotated[
        str | None,
        option(None, "Delay of links without a delay. If not given, every edge needs one.", panel=SCENARIO),
    ] = None,
    access_rate: Annotated[
        str | None, option(None, "Rate of the links of hosts made for flows.", default="--rate", panel=SCENARIO)
    ] = None,
    access_delay: Annotated[str, option(None, "Delay of these links.", panel=SCENARIO)] = "5us",
    buffer: Annotated[int, count("Buffer of every port of a switch.", metavar="CELLS", panel=SCENARIO)] = 1000,
    duration: Annotated[str, option(None, "How long to simulate.", panel=SCENARIO)] = "1s",
    settings: Annotated[list[str] | None, options.setting("Write this setting as well. May be repeated.")] = None,
    out: Annotated[
        Path | None,
        option("SCENARIO", "TOML file to write.", "--out", "-o", default="standard output", panel=OUTPUT),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Make a scenario from a graph: its nodes are switches, flows join hosts at them, every port has EPD."""
    from celltrain.model.graph import import_graph
    from celltrain.model.overrides import single
    from celltrain.model.scenario import read, save, table, to_toml
    from celltrain.model.types import Scenario

    scenario = import_graph(
        file,
        flows=flows,
        seed=seed,
        rate=rate,
        delay=delay,
        rate_attribute=rate_attribute,
        delay_attribute=delay_attribute,
        rate_unit=rate_unit,
        delay_unit=delay_unit,
        name_attribute=name_attribute,
        kind_attribute=kind_attribute,
        flow_attribute=flow_attribute,
        both_ways=both_ways,
        access_rate=access_rate,
        access_delay=access_delay,
        buffer_cells=buffer,
        duration=duration,
    )
    if settings:
        name = scenario.name
        scenario = Scenario.model_validate(table(read(scenario, single(settings), option="--set").accepted()))
        scenario = scenario.replace(name=name)
    head = f"Made by celltrain import of {shown(file.name)}."
    if out is not None:
        with shell.writing(out):
            save(scenario, out, head=head)
    if as_json:
        shell.answer({"scenario": scenario.to_dict(), "written": None if out is None else shown(out)})
    elif out is None:
        typer.echo(to_toml(scenario, head=head), nl=False)
    else:
        network = scenario.to_dict()["topology"]["network"]
        counts = ", ".join(f"{len(network[key])} {key}" for key in ("switches", "hosts", "links", "flows"))
        shell.say(f"wrote {shown(out)}: {counts}")


COMMANDS = {"import": import_}
