"""`celltrain emulate`: runs a scenario in real time between Linux network namespaces."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

from celltrain.cli import options, shell
from celltrain.cli.run import blocks
from celltrain.errors import InputError, warn
from celltrain.model.grids import Block, Line
from celltrain.running.emulation import Emulated, Host, Program, doubts
from celltrain.running.emulation import emulate as emulate_scenario
from celltrain.text import shown

#: Marks the beginning of a program on the command line.
KEYWORD = "host"


@shell.command
def emulate(
    output: shell.Answer,
    file: options.ScenarioFile,
    programs: Annotated[list[str] | None, {"autocompletion": options.complete_hosts}] = None,
    settings: options.Settings = None,
    seed: options.Seed = None,
    duration: str | None = None,
) -> int:
    """Run a scenario in real time: programs in its hosts, which are Linux network namespaces, use its links (needs root).

    Argument:
        programs (-- host HOST PROGRAM...): Programs to start in hosts, in this order. Without one, print the commands
            that enter the hosts. Programs run as root and use the files of this machine; only their network is separate.

    Scenario:
        duration (TIME): End after this time, such as 20s. It ends earlier if all programs have ended. [default: the
            scenario's]

    Examples:
        celltrain emulate lan-epd --duration 20s -- host destination1 iperf3 -s -1 -- host source1 iperf3 -c destination1
        celltrain emulate wan.toml --json -- host source1 ping -c 5 destination1
        celltrain emulate lan-epd --duration 1h
    """
    wanted = _programs(programs or [])
    changes = [*(settings or []), *([] if duration is None else [f"duration={duration}"])]
    with _interrupts() as interrupts:
        emulated = emulate_scenario(
            shell.scenario(file, changes),
            wanted,
            seed=seed,
            is_over=lambda: bool(interrupts),
            on_ready=lambda hosts: None if wanted else _enter(hosts),
            output=sys.stderr if output.form == "json" else None,
        )
        warn(doubts(emulated.report))
        output.show(emulated.to_dict(), _blocks(emulated), lambda: [])
    if interrupts:
        return shell.INTERRUPTED
    return shell.NO if any(program.exit_code for program in wanted) else shell.DONE


def _programs(words: Sequence[str]) -> list[Program]:
    """Returns the programs of a command line."""
    programs: list[Program] = []
    rest = list(words)
    while rest:
        if rest[0] != KEYWORD or len(rest) < 2:
            raise InputError.saying(
                f"found {shown(rest[0])}: write -- {KEYWORD} HOST PROGRAM [ARGUMENTS]", key="programs"
            )
        # A program may itself have an argument `--`.
        ends = (place for place in range(2, len(rest) - 1) if rest[place] == "--" and rest[place + 1] == KEYWORD)
        end = next(ends, len(rest))
        programs.append(Program(host=rest[1], words=rest[2:end]))
        rest = rest[end + 1 :]
    return programs


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Collects interrupts (Ctrl-C) in this block, which end an emulation with its tables."""
    interrupts: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)


def _enter(hosts: Sequence[Host]) -> None:
    shell.complain("Commands that start programs in these hosts (Ctrl-C ends the emulation):")
    for host in hosts:
        shell.complain(f"  {host.name}: {shlex.join(host.command(['sh']))}")


def _blocks(emulated: Emulated) -> Iterator[Block]:
    """Yields the lines and tables of an emulation: the tables of a run, lateness and programs."""
    for block in blocks(emulated.result):
        # The engine follows the wall clock, so no run can be repeated exactly.
        if not (isinstance(block, Line) and block.text.startswith(("speed:", "fingerprint:"))):
            yield block
    report = emulated.report
    names = {"p50": "50 %", "p99": "99 %", "p999": "99.9 %", "max": "all"}
    late = report["lateness_us"]
    if report["packets"]:
        figures = ", ".join(f"{text} {late[name]:.3g} us" for name, text in names.items())
        yield Line(text=f"{report['packets']:,} packets, with a lateness of at most: {figures}")
    else:
        yield Line(text="no packet arrived")
    if not report["real_time"]:
        text = "This process lacks the right to a fixed priority (CAP_SYS_NICE), so packets arrive later."
        yield Line(text=text, is_note=True)
    for flow in report["unused_flows"]:
        yield Line(text=f"flow {shown(flow)} carried no packets: another flow connects the same hosts", is_note=True)
    if emulated.programs:
        grid = shell.grid("host", "program", "exit code", left=("host", "program", "exit code"))
        for program in emulated.programs:
            code = "ended with the emulation" if program.exit_code is None else str(program.exit_code)
            grid.add_row(program.host, shlex.join(program.words), code)
        yield grid


COMMANDS = {"emulate": emulate}
