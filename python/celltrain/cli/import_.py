"""`celltrain import`: a scenario from a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from celltrain.cli import completing, shell


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("import", epilog="For example: celltrain import net.graphml --flows 20 --delay 1ms -o net.toml")(
        import_
    )


@shell.command
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A graph: GraphML, or JSON with nodes and links.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="SCENARIO", help="TOML file to write.", show_default="standard output"),
    ] = None,
    flows: Annotated[
        int | None, typer.Option(parser=shell.whole(1), metavar="N", help="Draw N flows between random nodes.")
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            parser=shell.whole(0, (1 << 64) - 1), metavar="N", help="Seed of these draws, and of the scenario."
        ),
    ] = 1,
    rate: Annotated[str, typer.Option(help="Rate of links without a rate.")] = "155.52Mbps",
    delay: Annotated[
        str | None, typer.Option(help="Delay of links without a delay. If not given, every edge needs one.")
    ] = None,
    rate_attribute: Annotated[str, typer.Option(metavar="NAME", help="The attribute that is an edge's rate.")] = "rate",
    delay_attribute: Annotated[
        str, typer.Option(metavar="NAME", help="The attribute that is an edge's delay.")
    ] = "delay",
    rate_unit: Annotated[
        str | None, typer.Option(metavar="UNIT", help="The unit of rates that are bare numbers, such as bps.")
    ] = None,
    delay_unit: Annotated[
        str | None, typer.Option(metavar="UNIT", help="The unit of delays that are bare numbers, such as ms.")
    ] = None,
    name_attribute: Annotated[
        str | None, typer.Option(metavar="NAME", help="The attribute that is a node's name.", show_default="its id")
    ] = None,
    kind_attribute: Annotated[
        str, typer.Option(metavar="NAME", help="The attribute that says what a node is: host, switch or edge_device.")
    ] = "kind",
    flow_attribute: Annotated[
        str, typer.Option(metavar="NAME", help="The attribute that says which nodes a node sends flows to.")
    ] = "flow_to",
    both_ways: Annotated[
        bool, typer.Option("--both-ways", help="Take a directed edge without one back as a link both ways.")
    ] = False,
    access_rate: Annotated[
        str | None, typer.Option(help="Rate of the links of hosts made for flows.", show_default="--rate")
    ] = None,
    access_delay: Annotated[str, typer.Option(help="Delay of these links.")] = "5us",
    buffer: Annotated[
        int, typer.Option(parser=shell.whole(1), metavar="CELLS", help="Buffer of every port of a switch.")
    ] = 1000,
    duration: Annotated[str, typer.Option(help="How long to simulate.")] = "1s",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=VALUE",
            autocompletion=completing.paths,
            help="Write this setting as well. May be repeated.",
        ),
    ] = None,
    as_json: shell.Json = False,
) -> None:
    """Make a scenario of a graph: its nodes are switches, flows join hosts at them, every port has EPD."""
    from celltrain.model.graph import import_graph
    from celltrain.model.overrides import single
    from celltrain.model.scenario import read, table
    from celltrain.model.toml import save, to_toml
    from celltrain.model.types import Scenario
    from celltrain.text import shown

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
