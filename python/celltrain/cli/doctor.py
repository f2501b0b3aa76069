"""`celltrain doctor`: is this installation sound?"""

from __future__ import annotations

import typer

from celltrain.cli import shell


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("doctor", epilog="For example: celltrain doctor --json")(doctor)


@shell.command
def doctor(as_json: shell.Json = False) -> int:
    """Say what is installed and whether it works; exit with 1 if something is wrong."""
    from celltrain.cli.diagnosis import examine
    from celltrain.model.grids import Line

    with shell.waiting("looking"):
        findings = examine()
    fine = all(finding.fine for finding in findings)
    if as_json:
        shell.answer({"fine": fine, "findings": [finding.to_dict() for finding in findings]})
    else:
        grid = shell.grid("", "what", "found", "", left=("", "what", "found"))
        for finding in findings:
            value = ", ".join(finding.value) if isinstance(finding.value, list) else finding.value
            shown = "not there" if value is None else str(value)
            grid.add_row("ok" if finding.fine else "WRONG", finding.name, shown, finding.advice)
        shell.show([grid, Line(text="everything is fine" if fine else "something is wrong")])
    return shell.DONE if fine else shell.NO
