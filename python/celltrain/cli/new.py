"""`celltrain new` and `celltrain import`: make a scenario, from a shipped one or from a graph.

`celltrain import sonic` makes the buffer configuration of a switch for `celltrain mmu`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Annotated

import typer

from celltrain.cli import completing, options, shell
from celltrain.text import shown

#: In place of a file: the buffer configuration of a switch with SONiC.
SONIC = "sonic"
#: Arguments that apply to it.
OF_SONIC = {"file", "folder", "generation", "cable", "out", "as_json"}


@shell.command(
    "celltrain new mine", "celltrain new far --like wan-epd", "celltrain new mine && celltrain run mine.toml"
)
def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The scenario's name; the file is NAME.toml.", show_default=False)
    ] = "",
    like: Annotated[str | None, {"autocompletion": completing.shipped_scenarios}] = None,
    as_json: options.Json = False,
) -> None:
    """Write a commented scenario to start from: five TCP connections that share the buffer of a switch.

    Options:
        like (SCENARIO): Copy this shipped scenario instead.
    """
    from celltrain.errors import Fault, InputError, OutputError
    from celltrain.model import shipped
    from celltrain.text import among

    if not name:
        raise InputError([Fault.saying("NAME is missing: celltrain new mine writes mine.toml", key="NAME")])
    path = Path(name.removesuffix(".toml") + ".toml")
    if not re.fullmatch(r"[\w .+-]+", path.stem):
        raise InputError([Fault.of_option("NAME", name, "is not a name; use letters, digits, spaces and - _ + .")])
    if like is None:
        text = (Path(__file__).parent / "new.toml").read_text(encoding="utf-8")
    elif (found := shipped.found(like, "scenario", folder=None)) is not None:
        text = found[1]
    else:
        hint = among(like, shipped.names("scenario"))
        raise InputError([Fault.of_option("--like", like, f"is not a shipped scenario; {hint}")])
    text = re.sub(r"(?m)^name = .*$", f'name = "{path.stem}"', text, count=1)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise OutputError([Fault.of_file(str(path), "already exists; choose another name, or delete it")]) from None
    except OSError as error:
        raise OutputError([Fault.of_file(str(path), f"cannot be written: {error.strerror}")]) from None
    typed = shown(shlex.quote(str(path)))
    shell.Output.of(as_json=as_json).tell(
        {"file": str(path)},
        f"wrote {shown(path)}",
        f"To run it: celltrain run {typed}",
        f"To check a change: celltrain check {typed}",
    )


@shell.command(
    "celltrain import net.graphml --flows 20 --delay 1ms --out net.toml",
    "celltrain import net.json --rate-attribute bandwidth --rate-unit Mbps",
    "celltrain import sonic /etc/sonic --out switch.toml",
)
def import_(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A graph: GraphML, or JSON with nodes and links. Or sonic, to read the buffer configuration in FOLDER.",
        ),
    ],
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="After sonic: a folder with SONiC's files, such as config_db.json."),
    ] = None,
    rate_attribute: str = "rate",
    delay_attribute: str = "delay",
    rate_unit: str | None = None,
    delay_unit: str | None = None,
    name_attribute: str | None = None,
    kind_attribute: str = "kind",
    flow_attribute: str = "flow_to",
    both_ways: bool = False,
    flows: options.Count = None,
    seed: Annotated[int, {"parser": options.whole(0, options.MOST_SEED)}] = 1,
    rate: str = "155.52Mbps",
    delay: str | None = None,
    access_rate: str | None = None,
    access_delay: str = "5us",
    buffer: Annotated[int, {"parser": options.whole(1)}] = 1000,
    duration: str = "1s",
    settings: Annotated[list[str] | None, options.setting("Write this setting as well. May be repeated.")] = None,
    generation: str | None = None,
    cable: str | None = None,
    out: Annotated[Path | None, {"names": ["--out", "-o"]}] = None,
    as_json: options.Json = False,
) -> None:
    """Make a scenario from a graph: its nodes are switches, flows join hosts at them, every port has EPD.

    Switch:
        generation (NAME): After sonic: generation of the chip, as celltrain mmu generations lists them.
            [default: by the name of the hardware]
        cable (LENGTH): After sonic: length of cables that the folder does not say, such as 5m.

    Graph:
        rate_attribute (NAME): Attribute with an edge's rate.
        delay_attribute (NAME): Attribute with an edge's delay.
        rate_unit (UNIT): Unit of rates that are bare numbers, such as bps.
        delay_unit (UNIT): Unit of delays that are bare numbers, such as ms.
        name_attribute (NAME): Attribute with a node's name. [default: its id]
        kind_attribute (NAME): Attribute with a node's kind: host, switch or edge_device.
        flow_attribute (NAME): Attribute with the nodes that a node sends flows to.
        both_ways: Make a directed edge without one back a link both ways.

    Scenario:
        flows (N): Draw N flows between random nodes.
        seed (N): Seed of these draws, and of the scenario.
        rate: Rate of links without a rate.
        delay: Delay of links without a delay. If not given, every edge needs one.
        access_rate: Rate of the links of hosts made for flows. [default: --rate]
        access_delay: Delay of these links.
        buffer (CELLS): Buffer of every port of a switch.
        duration: How long to simulate.

    Output:
        out (SCENARIO): TOML file to write. [default: standard output]
    """
    from celltrain.errors import Fault, InputError

    if folder is not None or str(file) == SONIC:
        if folder is None or str(file) != SONIC:
            problem = "reads one graph, or sonic and a folder: celltrain import sonic FOLDER"
            raise InputError([Fault.of_option("FILE", shown(file if folder is None else folder), problem)])
        _refuse(context, context.params.keys() - OF_SONIC, "applies to graphs only")
        _import_sonic(folder, generation=generation, cable=cable, out=out, as_json=as_json)
        return
    _refuse(context, {"generation", "cable"}, "applies to celltrain import sonic FOLDER only")
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
        changed = table(read(scenario, single(settings), option="--set").accepted())
        scenario = Scenario.model_validate(changed).replace(name=scenario.name)
    head = f"Made by celltrain import of {shown(file.name)}."
    if out is not None:
        with shell.writing(out):
            save(scenario, out, head=head)
    elif not as_json:
        typer.echo(to_toml(scenario, head=head), nl=False)
        return
    network = scenario.to_dict()["topology"]["network"]
    counts = ", ".join(f"{len(network[key])} {key}" for key in ("switches", "hosts", "links", "flows"))
    written = None if out is None else shown(out)
    answer = {"scenario": scenario.to_dict(), "written": written}
    shell.Output.of(as_json=as_json).tell(answer, f"wrote {written}: {counts}")


def _import_sonic(folder: Path, *, generation: str | None, cable: str | None, out: Path | None, as_json: bool) -> None:
    """Writes the buffer configuration in a folder with files of SONiC."""
    from celltrain.mmu.configuration import read_sonic

    switch = read_sonic(folder, generation, cable)
    text = switch.to_toml(
        head=f"Made by celltrain import sonic {shown(folder.name)}; docs/shared-memory.md explains it."
    )
    if out is not None:
        with shell.writing(out):
            out.write_text(text, encoding="utf-8")
    elif not as_json:
        typer.echo(text, nl=False)
        return
    written = None if out is None else shown(out)
    counts = f"{len(switch.pool)} pools, {len(switch.profile)} profiles, {switch.port_count} ports"
    answer = {"configuration": switch.to_dict(), "written": written}
    shell.Output.of(as_json=as_json).tell(answer, f"wrote {written}: {counts}")


def _refuse(context: typer.Context, names: AbstractSet[str], problem: str) -> None:
    """Refuses options that were given and do not apply."""
    from celltrain.errors import Fault, InputError

    given = [
        name
        for name in sorted(names)
        if (source := context.get_parameter_source(name)) and source.name == "COMMANDLINE"
    ]
    if given:
        raise InputError([Fault.of_option(f"--{given[0].replace('_', '-')}", context.params[given[0]], problem)])


COMMANDS = {"new": new, "import": import_}
