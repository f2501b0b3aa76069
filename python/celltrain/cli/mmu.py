"""`celltrain mmu`: thresholds of switches that share their packet memory, and incasts through them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celltrain.cli import options, shell
from celltrain.errors import InputError
from celltrain.model.grids import Line

if TYPE_CHECKING:
    from celltrain.mmu.arithmetic import Thresholds

Configuration = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG", help="Buffer configuration: a file of celltrain import sonic, or a folder with SONiC's files."
    ),
]


@shell.command
def thresholds(
    output: shell.Table,
    configuration: Configuration,
    generation: str | None = None,
    cable: str | None = None,
    port: str | None = None,
    group: Annotated[int | None, {"parser": options.whole(0, 7)}] = None,
    queue: Annotated[int | None, {"parser": options.whole(0, 19)}] = None,
    in_turn: Annotated[int | None, {"parser": options.whole(1, 10_000)}] = None,
    in_bytes: Annotated[bool, {"names": ["--bytes"]}] = False,
    mtu: Annotated[int, {"parser": options.whole(64, 65_535)}] = 9216,
    response: Annotated[int | None, {"parser": options.whole(0, 65_535)}] = None,
    simulate: bool = False,
    check: Path | None = None,
    section: str | None = None,
) -> int:
    """Print the cell at which each priority group pauses and drops, and each queue drops, with the arithmetic.

    Switch:
        generation (NAME): Generation of the chip: see celltrain mmu generations. A file with its rules works too.
            [default: the one that CONFIG names]
        cable (LENGTH): Length of cables that a folder does not say, such as 5m.
        port (NAME): Only this port.
        group (N): Only the priority group of this priority.
        queue (N): Only this queue.
        in_turn (N): Also fill N groups one after the other.
        in_bytes: Also print bytes and, in brackets, packets of 1500 bytes. A packet takes whole cells.

    Headroom needed:
        mtu (BYTES): Longest packet, with its Ethernet header.
        response (QUANTA): Time that a sender takes to obey a pause frame. [default: the limit of IEEE 802.3]

    Comparison:
        simulate: Fill each group and queue in a run, cell by cell, and compare the results; exit with 1 if they differ.
        check (FILE): Compare with this test file (sonic-mgmt's qos_params, YAML or JSON); exit with 1 if numbers
            differ.
        section (NAME): Section of that file, such as topo-ft2-64. [default: its only one]

    Examples:
        celltrain mmu thresholds switch.toml
        celltrain mmu thresholds /etc/sonic --generation th5 --port Ethernet0 --group 3
        celltrain mmu thresholds switch.toml --check qos_params.th5.yaml --section topo-ft2-64
    """
    from celltrain.mmu import expected
    from celltrain.mmu.arithmetic import thresholds as calculated
    from celltrain.mmu.configuration import load_with_chip
    from celltrain.mmu.generations import in_words

    if section is not None and check is None:
        raise InputError.saying("--section selects a part of the file of --check: add --check", key="--section")
    if simulate and check is not None:
        raise InputError.saying("--simulate and --check are two comparisons: give one of them", key="--simulate")
    loaded, chip = load_with_chip(configuration, generation=generation, cable=cable)
    if check is not None:
        compared = expected.check(loaded, check, generation=chip, section=section)
        facts = compared.to_dict()
        output.show(facts, [], lambda: facts["entries"])
        if output.form == "text":
            shell.say("\n".join(compared.lines()))
        return shell.NO if compared.wrong else shell.DONE
    found = calculated(
        loaded, generation=chip, port=port, group=group, queue=queue, in_turn=in_turn or 0, mtu=mtu, response=response
    )
    if simulate:
        return _simulate(found, output)
    head = Line(text=f"{found.switch or configuration.name}: {in_words(chip)}")
    grids = [found.grid(), *([found.bytes_grid()] if in_bytes else []), *found.in_turn_grids()]
    output.show(found.to_dict(), [head, *grids], lambda: [row.to_dict() for row in found.rows])
    if output.form == "text":
        shell.say("\n".join(["", *found.words()]))
    return shell.DONE


def _simulate(found: Thresholds, output: shell.Output) -> int:
    """Prints the thresholds in cells, from the arithmetic and from runs."""
    from celltrain.mmu.expected import simulate

    with shell.waiting("filling groups and queues") as tell:
        simulated = simulate(found, progress=tell)
    facts = simulated.to_dict()
    output.show(facts, [simulated.grid()], lambda: facts["fills"])
    return shell.DONE if simulated.agrees else shell.NO


@shell.command
def incast(
    output: shell.Table,
    configuration: Configuration,
    senders: Annotated[int, {"parser": options.whole(1, 4095)}] = 32,
    size: Annotated[str, {"names": ["--bytes"]}] = "64kB",
    lossless: bool = False,
    port: str | None = None,
    priority: Annotated[int | None, {"parser": options.whole(0, 7)}] = None,
    mtu: str = "1500B",
    window: Annotated[int | None, {"parser": options.whole(1, 2**30 - 1)}] = None,
    generation: str | None = None,
    cable: str | None = None,
    out: Annotated[Path | None, {"names": ["--out", "-o"]}] = None,
) -> None:
    """Simulate hosts that send to one port at once: drops, pauses, and the time until all data has arrived.

    Senders:
        senders (N): Number of hosts that send.
        size (SIZE): Data of each host, such as 64kB.
        lossless: The data has a priority that pauses its senders. By default it has a lossy one.
        port (NAME): Port of the receiver. [default: the first one]
        priority (N): Priority group and queue of the data. [default: the first of its kind]
        mtu (SIZE): Length of a full packet with its headers.
        window (N): Initial window in segments. [default: 10; with --lossless, all data at once]

    Switch:
        generation (NAME): Generation of the chip: see celltrain mmu generations. A file with its rules works too.
            [default: the one that CONFIG names]
        cable (LENGTH): Length of cables that a folder does not say, such as 5m.

    Output:
        out (SCENARIO): Also write the scenario of the run, a TOML file with comments.

    Examples:
        celltrain mmu incast switch.toml
        celltrain mmu incast /etc/sonic --senders 32 --bytes 64kB --lossless --out incast.toml
        celltrain mmu incast switch.toml --senders 64 --bytes 1MB --port Ethernet8 --json
    """
    from celltrain.mmu.incast import incast

    asked: dict[str, Any] = {"senders": senders, "bytes": size, "lossless": lossless, "port": port, "mtu": mtu}
    asked |= {"priority": priority, "window": window, "generation": generation, "cable": cable}
    with shell.waiting("simulating the incast") as tell:
        found = incast(configuration, **asked, progress=tell)
    facts = found.to_dict()
    headline, *details = found.lines()
    output.show(facts, [Line(text=headline), found.grid()], lambda: [found.to_row()])
    if output.form == "text":
        shell.say("\n".join(["", *details]))
    if out is not None:
        with shell.writing(out):
            out.write_text(found.scenario, encoding="utf-8")
    output.wrote([] if out is None else [out])


@shell.command
def generations(output: shell.Table) -> None:
    """List the generations of chips whose rules are known.

    Examples:
        celltrain mmu generations
        celltrain mmu generations --json
        celltrain mmu generations --csv -
    """
    from celltrain.mmu.generations import FOLDER, known

    rows = [
        {"name": one.short, "generation": one.name, "cell_bytes": one.memory.cell_bytes, "memories": one.memory.count}
        | {"egress": one.queue is not None, "file": str(FOLDER / f"{stem}.toml")}
        for stem, one in known().items()
    ]
    heads = ("name", "generation", "cell (bytes)", "memories", "egress drop")
    texts = [[*map(str, [*row.values()][:4]), "yes" if row["egress"] else "no"] for row in rows]
    grid = shell.grid(*heads, left=heads[:2], rows=texts)
    output.show(rows, [grid], lambda: rows)


COMMANDS = {"mmu": {"thresholds": thresholds, "incast": incast, "generations": generations}}
