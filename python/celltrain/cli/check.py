"""`celltrain check`: what is wrong with a scenario file or a policy file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from celltrain.cli import completing, shell
from celltrain.errors import Fault, InputError

if TYPE_CHECKING:
    from celltrain.model.network import Network
    from celltrain.model.overrides import Setting
    from celltrain.model.policy_files import Policy


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(
        "check",
        epilog="For example: celltrain check mine.toml; celltrain check chain-epd --plot chain.png",
    )(check)


@shell.command
def check(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Scenarios or policies: TOML files, or names of shipped scenarios.",
            autocompletion=completing.scenarios,
        ),
    ],
    plot: Annotated[
        Path | None, typer.Option(metavar="PICTURE", help="Draw the network of the one FILE there: .png, .svg or .pdf.")
    ] = None,
    settings: shell.Settings = None,
    as_json: shell.Json = False,
) -> int:
    """Say everything that is wrong with scenario and policy files, without running them; exit with 2 if anything is."""
    from celltrain.model.overrides import single
    from celltrain.text import shown

    if plot is not None:
        _can_draw(files, plot)
    changed = single(settings)
    checked = [_checked(file, changed) for file in files]
    faults = [fault for one in checked for fault in one.faults]
    if plot is not None and not faults:
        from celltrain.inspect.network_figure import save

        net = checked[0].network
        if net is None:
            raise InputError(
                [Fault.saying(f"Cannot draw {checked[0].file}: it is a policy, not a network.", key="--plot")]
            )
        with shell.writing(plot):
            save(net, plot)
    if as_json:
        shell.answer(
            {
                "faults": [fault.to_dict() for fault in faults],
                "warnings": [{"file": one.file, "message": message} for one in checked for message in one.warnings],
                "networks": [
                    {"file": one.file, **one.network.to_dict(), "memory_bytes": one.memory_bytes}
                    for one in checked
                    if one.network is not None
                ],
                "policies": [
                    {"file": one.file, "name": one.policy.name, "policy": one.policy.table}
                    for one in checked
                    if one.policy is not None
                ],
            }
        )
        return shell.BAD_INPUT if faults else shell.DONE
    shell.report(faults, as_json=False)
    for one in checked:
        for message in one.warnings:
            shell.complain(f"{one.file}: warning: {message}")
        if not one.faults:
            what = "" if one.policy is None else f"the policy {shown(one.policy.name)}; "
            count = len(one.warnings)
            warned = f"valid, with {count} warning{'' if count == 1 else 's'}"
            shell.say(f"{one.file}: {what}{warned if count else 'nothing is wrong'}")
    if plot is not None and not faults:
        shell.say(f"wrote {shown(plot)}")
    return shell.BAD_INPUT if faults else shell.DONE


@dataclass(frozen=True, kw_only=True)
class _Checked:
    """What is known of a file: a scenario's network or a policy, if nothing is wrong with it."""

    file: str
    faults: list[Fault]
    warnings: list[str] = field(default_factory=list)
    network: Network | None = None
    memory_bytes: int | None = None
    policy: Policy | None = None


def _checked(file: Path, settings: Mapping[str, Setting]) -> _Checked:
    """Checks a scenario or a policy file."""
    from celltrain.model.network import Network
    from celltrain.model.policy_files import is_policy_file
    from celltrain.model.scenario import read, table
    from celltrain.text import shown

    name = shown(file)
    if is_policy_file(file):
        from celltrain.ensemble.vetting.policy import check_file

        try:
            policy, warnings = check_file(file, settings)
        except InputError as error:
            return _Checked(file=name, faults=error.faults)
        return _Checked(file=name, faults=[], warnings=warnings, policy=policy)
    reading = read(file, settings, option="--set")
    if reading.faults:
        return _Checked(file=name, faults=reading.faults, warnings=reading.warnings)
    network = Network.of_core(reading.accepted())
    stay = shell.thresholds_that_stay(file, table(reading.accepted())) if settings else []
    warnings = [*reading.warnings, *stay]
    return _Checked(file=name, faults=[], warnings=warnings, network=network, memory_bytes=reading.memory_bytes)


def _can_draw(files: list[Path], plot: Path) -> None:
    """Refuses what cannot be drawn before any file is read."""
    from celltrain.drawing.axes import refuse_other, require_matplotlib
    from celltrain.text import shown

    if len(files) != 1:
        raise InputError([Fault.of_option("--plot", shown(plot), f"draws one scenario; {len(files)} are given")])
    refuse_other(plot, "--plot")
    require_matplotlib()
