"""`celltrain new` and `import` make a scenario from a shipped one or a graph; `check` finds faults in scenarios.

`celltrain import sonic` makes the buffer configuration of a switch for `celltrain mmu`.
"""

from __future__ import annotations

import copy
import re
import shlex
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from celltrain.cli import options, shell
from celltrain.drawing.figure import refuse_other, require_matplotlib
from celltrain.drawing.words import counted
from celltrain.errors import Fault, InputError, OutputError
from celltrain.model import arguments, shipped
from celltrain.model.files import named
from celltrain.model.graph import import_graph
from celltrain.model.grids import Line
from celltrain.model.network import Network
from celltrain.model.overrides import Setting, single
from celltrain.model.policy_files import is_policy_file
from celltrain.model.scenario import read, repeated, table, to_toml
from celltrain.text import among, shown

#: First argument, in place of a file name, to import the buffer configuration of a SONiC switch.
SONIC = "sonic"
#: Arguments that are valid for `sonic`.
OF_SONIC = {"file", "folder", "generation", "cable", "as_scenario", "lossless", "out", "as_json"}
#: Options of graphs.
OF_GRAPHS = {*arguments.names(import_graph)} - {"path"}


@shell.command
def new(
    output: shell.Answer,
    name: Annotated[str, {"show_default": False}] = "",
    like: Annotated[str | None, {"autocompletion": options.complete_shipped}] = None,
) -> None:
    """Write a commented scenario to start from: five TCP connections that share the buffer of a switch.

    Argument:
        name (NAME): The scenario's name; the file is NAME.toml.

    Options:
        like (SCENARIO): Copy this shipped scenario instead.

    Examples:
        celltrain new mine
        celltrain new far --like wan-epd
        celltrain new mine && celltrain run mine.toml
    """
    if not name:
        raise InputError.saying("NAME is missing: celltrain new mine writes mine.toml", key="NAME")
    path = Path(name.removesuffix(".toml") + ".toml")
    if not re.fullmatch(r"[\w .+-]+", path.stem):
        raise InputError.of_option("NAME", name, "is not a name; use letters, digits, spaces and - _ + .")
    if like is None:
        text = (Path(__file__).parent / "new.toml").read_text(encoding="utf-8")
    elif (found := shipped.found(like, "scenario", folder=None)) is not None:
        text = found[1]
    else:
        hint = among(like, shipped.names("scenario"))
        raise InputError.of_option("--like", like, f"is not a shipped scenario; {hint}")
    text = re.sub(r"(?m)^name = .*$", f'name = "{path.stem}"', text, count=1)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise OutputError.of_file(str(path), "already exists; choose another name, or delete it") from None
    except OSError as error:
        raise OutputError.of_file(str(path), f"cannot be written: {error.strerror}") from None
    typed = shown(shlex.quote(str(path)))
    advice = (f"To run it: celltrain run {typed}", f"To check a change: celltrain check {typed}")
    output.tell({"file": str(path)}, f"wrote {shown(path)}", *advice)


@shell.command
def import_(
    output: shell.Answer,
    context: typer.Context,
    file: Path,
    folder: Path | None = None,
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
    buffer_cells: Annotated[int, {"names": ["--buffer"], "parser": options.whole(1)}] = 1000,
    duration: str = "1s",
    settings: Annotated[list[str] | None, options.setting("Write this setting as well. May be repeated.")] = None,
    generation: str | None = None,
    cable: str | None = None,
    as_scenario: Annotated[bool, {"names": ["--scenario"]}] = False,
    lossless: bool = False,
    out: Annotated[Path | None, {"names": ["--out", "-o"]}] = None,
) -> None:
    """Make a scenario from a graph: its nodes are switches, flows join hosts at them, every port has EPD.

    Argument:
        file (FILE): A graph: GraphML, or JSON with nodes and links. Or sonic, to read the buffer configuration in
            FOLDER.
        folder (FOLDER): After sonic: a folder with SONiC's files, such as config_db.json.

    Switch:
        generation (NAME): After sonic: generation of the chip, as celltrain mmu generations lists them.
            [default: by the name of the hardware]
        cable (LENGTH): After sonic: length of cables that the folder does not say, such as 5m.
        as_scenario: After sonic: write a scenario instead, with a host at each port and an incast.
        lossless: With --scenario: the traffic has a lossless priority. By default it has a lossy one.

    Graph:
        rate_attribute (NAME): Attribute with an edge's rate.
        delay_attribute (NAME): Attribute with an edge's delay.
        rate_unit (UNIT): Unit of rates that are bare numbers, such as bps.
        delay_unit (UNIT): Unit of delays that are bare numbers, such as ms.
        name_attribute (NAME): Attribute with a node's name. [default: its id]
        kind_attribute (NAME): Attribute with a node's kind: host, switch or edge_device.
        flow_attribute (NAME): Attribute with the nodes that a node sends flows to.
        both_ways: Make a directed edge without an opposite edge a link in both directions.

    Scenario:
        flows (N): Draw N flows between random nodes.
        seed (N): Seed of these draws, and of the scenario.
        rate: Rate of links without a rate.
        delay: Delay of links without a delay. If not given, every edge needs one.
        access_rate: Rate of the links of hosts made for flows. [default: --rate]
        access_delay: Delay of these links.
        buffer_cells (CELLS): Buffer of every port of a switch.
        duration: Simulated time.

    Output:
        out (SCENARIO): TOML file to write. [default: standard output]

    Examples:
        celltrain import net.graphml --flows 20 --delay 1ms --out net.toml
        celltrain import net.json --rate-attribute bandwidth --rate-unit Mbps
        celltrain import sonic /etc/sonic --out switch.toml
        celltrain import sonic /etc/sonic --scenario --lossless --out incast.toml
    """
    if folder is not None or str(file) == SONIC:
        if folder is None or str(file) != SONIC:
            problem = "is not possible: import takes one graph, or the word sonic and a folder (celltrain import sonic FOLDER)"
            raise InputError.of_option("FILE", shown(file if folder is None else folder), problem)
        _refuse(context, context.params.keys() - OF_SONIC, "applies to graphs only")
        if as_scenario:
            text, answer, counts = _sonic_scenario(folder, generation, cable, lossless=lossless)
        else:
            _refuse(context, {"lossless"}, "applies to a scenario: add --scenario")
            text, answer, counts = _sonic(folder, generation, cable)
    else:
        of_switches = {"generation", "cable", "as_scenario", "lossless"}
        _refuse(context, of_switches, "applies to celltrain import sonic FOLDER only")
        of_graph = {name: value for name, value in context.params.items() if name in OF_GRAPHS}
        text, answer, counts = _graph(file, settings, of_graph)
    if out is not None:
        with named(out) as made:
            made.write(text.encode())
    elif output.form != "json":
        typer.echo(text, nl=False)
        return
    written = None if out is None else shown(out)
    output.tell({**answer, "written": written}, f"wrote {written}: {counts}")


#: The text of a file that `celltrain import` makes, its answer, and counts in words.
Made = tuple[str, dict[str, Any], str]


def _graph(file: Path, settings: list[str] | None, of_graph: Mapping[str, Any]) -> Made:
    """Makes the scenario of a graph."""
    from celltrain.model.types import Scenario

    scenario = import_graph(file, **of_graph)
    if settings:
        changed = table(read(scenario, single(settings), option="--set").accepted())
        scenario = Scenario.model_validate(changed).replace(name=scenario.name)
    content = scenario.to_dict()
    network = content["topology"]["network"]
    counts = ", ".join(f"{len(network[key])} {key}" for key in ("switches", "hosts", "links", "flows"))
    text = to_toml(scenario, head=f"Made by celltrain import of {shown(file.name)}.")
    return text, {"scenario": content}, counts


def _sonic(folder: Path, generation: str | None, cable: str | None) -> Made:
    """Makes the buffer configuration in a folder with files of SONiC."""
    from celltrain.mmu.configuration import read_sonic

    switch = read_sonic(folder, generation, cable)
    explained = "docs/shared-memory.md explains this file."
    text = switch.to_toml(head=f"Made by celltrain import sonic {shown(folder.name)}; {explained}")
    counts = f"{len(switch.pool)} pools, {len(switch.profile)} profiles, {switch.port_count} ports"
    return text, {"configuration": switch.to_dict()}, counts


def _sonic_scenario(folder: Path, generation: str | None, cable: str | None, *, lossless: bool) -> Made:
    """Makes a scenario of the switch that a folder with files of SONiC describes."""
    from celltrain.mmu.configuration import load_with_chip
    from celltrain.mmu.network import Question, written
    from celltrain.model.types import Scenario

    loaded, chip = load_with_chip(folder, generation=generation, cable=cable)
    made = written(loaded, chip, Question(senders=None, is_lossless=lossless), generation=generation, cable=cable)
    counts = f"{made.ports} ports, {len(made.senders)} senders to {shown(made.receiver.name)}"
    scenario = Scenario.model_validate(shipped.toml(made.text, "scenario")[0])
    return made.text, {"scenario": scenario.to_dict()}, counts


class _Import(TyperCommand):
    """The command `import`. The help of `import sonic` omits options for graphs."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Prints the help of `import sonic`, or parses the arguments."""
        if args[:1] == [SONIC] and {"-h", "--help"} & {*args}:
            own = copy.copy(self)
            own.params = [one for one in self.params if one.name in OF_SONIC - {"file"}]
            own.help = (
                "Make the buffer configuration for celltrain mmu, or a scenario, from a folder with SONiC's files."
            )
            own.epilog = (
                "Examples:\n\ncelltrain import sonic /etc/sonic --out switch.toml\n\n"
                "celltrain import sonic /etc/sonic --scenario --lossless --out incast.toml"
            )
            ctx.info_name = f"{ctx.info_name} {SONIC}"
            typer.echo(own.get_help(ctx), nl=False)
            ctx.exit()
        return super().parse_args(ctx, args)


import_.registration["cls"] = _Import  # type: ignore[attr-defined]


def _refuse(context: typer.Context, names: AbstractSet[str], problem: str) -> None:
    """Refuses options that were given although they do not apply."""
    options = {one.name: one.opts[0] for one in context.command.params}
    for name in sorted(names):
        source, value = context.get_parameter_source(name), context.params[name]
        if source is not None and source.name == "COMMANDLINE":
            raise InputError.of_option(options[name], "" if value is True else value, problem)


@shell.command
def check(
    output: shell.Table,
    files: Annotated[list[Path], {"autocompletion": options.complete_scenarios}],
    settings: options.Settings = None,
    plot: Path | None = None,
) -> int:
    """Find everything that is wrong with scenario and policy files; exit with 2 if anything is.

    Only stacks in Python run, twice for at least 100 ms, to compare their results.

    Argument:
        files (FILE...): Scenarios or policies: TOML files, or names of shipped scenarios.

    Output:
        plot (PICTURE): Draw the network of the one FILE there: .png, .svg or .pdf.

    Examples:
        celltrain check mine.toml
        celltrain check policy.toml lan-epd --json
        celltrain check chain-epd --plot chain.png
    """
    if plot is not None:
        # Refuse options that do not apply before any file is read.
        if len(files) != 1:
            raise InputError.of_option("--plot", shown(plot), f"draws one scenario, not {len(files)}: name only one")
        refuse_other(plot, "--plot")
        require_matplotlib()
    changed = single(settings)
    checked = [_checked(file, changed) for file in files]
    faults = [fault for one in checked for fault in one.faults]
    written = []
    if plot is not None and not faults:
        from celltrain.inspect.network_figure import save

        if (network := checked[0].network) is None:
            raise InputError.saying(f"Cannot draw {checked[0].file}: it is a policy, not a network.", key="--plot")
        with shell.writing(plot):
            save(network, plot)
        written.append(plot)
    warnings = [{"file": one.file, "message": message} for one in checked for message in one.warnings]
    if output.form != "json":
        shell.report(faults, as_json=False)
        for warning in warnings:
            shell.complain(f"{warning['file']}: warning: {warning['message']}")
    found = [fault.to_dict() for fault in faults]
    networks = [one.answer for one in checked if one.network is not None]
    policies = [one.answer for one in checked if one.answer and one.network is None]
    answer = {"faults": found, "warnings": warnings, "networks": networks, "policies": policies}
    output.show(answer, [Line(text=one.summary) for one in checked if not one.faults], lambda: found)
    output.wrote(written)
    return shell.BAD_INPUT if faults else shell.DONE


@dataclass(frozen=True, kw_only=True)
class _Checked:
    """A checked file. If it has no faults, `answer` contains its network or its policy."""

    file: str
    faults: list[Fault] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    network: Network | None = None
    answer: dict[str, Any] = field(default_factory=dict)
    kind: str = ""
    """Kind of a policy, such as `memory policy`."""
    advice: str = ""
    """How to compare the policy of a memory."""

    @property
    def summary(self) -> str:
        """One line about a file without faults."""
        what = f"the {self.kind} {shown(self.answer['name'])}; " if self.network is None else ""
        warned = f"valid, with {counted(len(self.warnings), 'warning')}" if self.warnings else "no problems found"
        return f"{self.file}: {what}{warned}{f'; {self.advice}' if self.advice else ''}"


def _checked(file: Path, settings: Mapping[str, Setting]) -> _Checked:
    name = shown(file)
    if is_policy_file(file):
        from celltrain.ensemble.vetting.standard import check_file

        try:
            policy, kind, warnings, advice = check_file(file, settings)
        except InputError as error:
            return _Checked(file=name, faults=error.faults)
        answer: dict[str, Any] = {"file": name, "name": policy.name, "policy": policy.table}
        return _Checked(file=name, warnings=warnings, answer=answer, kind=kind, advice=advice)
    reading = read(file, settings, option="--set")
    if reading.faults:
        return _Checked(file=name, faults=reading.faults, warnings=reading.warnings)
    if faults := repeated(reading):
        return _Checked(file=name, faults=faults, warnings=reading.warnings)
    network = Network.of_core(reading.accepted())
    stay = shell.fixed_thresholds(file, table(reading.accepted())) if settings else []
    answer = {"file": name, **network.to_dict(), "memory_bytes": reading.memory_bytes}
    return _Checked(file=name, warnings=[*reading.warnings, *stay], network=network, answer=answer)


COMMANDS = {"new": new, "import": import_, "check": check}
