"""`celltrain check`: finds what is wrong with a scenario file or a policy file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celltrain.cli import completing, options, shell
from celltrain.errors import Fault, InputError
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.model.network import Network
    from celltrain.model.overrides import Setting


@shell.command(
    "celltrain check mine.toml",
    "celltrain check policy.toml lan-epd --json",
    "celltrain check chain-epd --plot chain.png",
)
def check(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Scenarios or policies: TOML files, or names of shipped scenarios.",
            autocompletion=completing.scenarios,
        ),
    ],
    settings: options.Settings = None,
    plot: Path | None = None,
    csv: options.Csv = None,
    as_json: options.Json = False,
) -> int:
    """Find everything that is wrong with scenario and policy files, without a run; exit with 2 if anything is.

    Output:
        plot (PICTURE): Draw the network of the one FILE there: .png, .svg or .pdf.
    """
    from celltrain.model.grids import Line
    from celltrain.model.overrides import single

    output = shell.Output.of(as_json=as_json, csv=csv)
    if plot is not None:
        _can_draw(files, plot)
    changed = single(settings)
    checked = [_checked(file, changed) for file in files]
    faults = [fault for one in checked for fault in one.faults]
    if plot is not None and not faults:
        _draw(checked[0], plot)
    warnings = [{"file": one.file, "message": message} for one in checked for message in one.warnings]
    if not as_json:
        shell.report(faults, as_json=False)
        for warning in warnings:
            shell.complain(f"{warning['file']}: warning: {warning['message']}")
    output.show(
        answer=lambda: {
            "faults": [fault.to_dict() for fault in faults],
            "warnings": warnings,
            "networks": [one.answer for one in checked if one.network is not None],
            "policies": [one.answer for one in checked if one.answer and one.network is None],
        },
        rows=lambda: [fault.to_dict() for fault in faults],
        blocks=lambda: [Line(text=one.summary) for one in checked if not one.faults],
    )
    output.wrote([plot] if plot is not None and not faults else [])
    return shell.BAD_INPUT if faults else shell.DONE


@dataclass(frozen=True, kw_only=True)
class _Checked:
    """A checked file; `answer` has its network or its policy if it has no faults."""

    file: str
    faults: list[Fault] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    network: Network | None = None
    answer: dict[str, Any] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """One line about a file without faults."""
        what = f"the policy {shown(self.answer['name'])}; " if self.network is None else ""
        count = len(self.warnings)
        warned = f"valid, with {count} warning{'' if count == 1 else 's'}"
        return f"{self.file}: {what}{warned if count else 'nothing is wrong'}"


def _checked(file: Path, settings: Mapping[str, Setting]) -> _Checked:
    """Checks a scenario or a policy file."""
    from celltrain.model.network import Network
    from celltrain.model.policy_files import is_policy_file
    from celltrain.model.scenario import read, table

    name = shown(file)
    if is_policy_file(file):
        from celltrain.ensemble.vetting.standard import check_file

        try:
            policy, warnings = check_file(file, settings)
        except InputError as error:
            return _Checked(file=name, faults=error.faults)
        answer: dict[str, Any] = {"file": name, "name": policy.name, "policy": policy.table}
        return _Checked(file=name, warnings=warnings, answer=answer)
    reading = read(file, settings, option="--set")
    if reading.faults:
        return _Checked(file=name, faults=reading.faults, warnings=reading.warnings)
    network = Network.of_core(reading.accepted())
    stay = shell.fixed_thresholds(file, table(reading.accepted())) if settings else []
    answer = {"file": name, **network.to_dict(), "memory_bytes": reading.memory_bytes}
    return _Checked(file=name, warnings=[*reading.warnings, *stay], network=network, answer=answer)


def _can_draw(files: list[Path], plot: Path) -> None:
    """Raises `InputError`, before any file is read, if the network cannot be drawn."""
    from celltrain.drawing.axes import refuse_other, require_matplotlib

    if len(files) != 1:
        raise InputError([Fault.of_option("--plot", shown(plot), f"draws one scenario, not {len(files)}: name one")])
    refuse_other(plot, "--plot")
    require_matplotlib()


def _draw(checked: _Checked, plot: Path) -> None:
    from celltrain.inspect.network_figure import save

    if checked.network is None:
        problem = f"Cannot draw {checked.file}: it is a policy, not a network."
        raise InputError([Fault.saying(problem, key="--plot")])
    with shell.writing(plot):
        save(checked.network, plot)


COMMANDS = {"check": check}
