"""`celltrain doctor`: checks the installation."""

from __future__ import annotations

from celltrain.cli import options, progress, shell


@shell.command("celltrain doctor", "celltrain doctor --json", "celltrain doctor --csv doctor.csv")
def doctor(csv: options.Csv = None, as_json: options.Json = False) -> int:
    """Check what is installed and whether it works; exit with 1 if something is wrong."""
    from celltrain.cli.diagnosis import examine
    from celltrain.model.grids import Line

    output = shell.Output.of(as_json=as_json, csv=csv)
    with progress.waiting("looking"):
        findings = examine()
    fine = all(finding.fine for finding in findings)
    grid = shell.grid("", "what", "found", "", left=("", "what", "found"))
    for finding in findings:
        value = ", ".join(finding.value) if isinstance(finding.value, list) else finding.value
        found = "not there" if value is None else str(value)
        grid.add_row("ok" if finding.fine else "WRONG", finding.name, found, finding.advice)
    rows = [finding.to_dict() for finding in findings]
    output.show(
        answer=lambda: {"fine": fine, "findings": rows},
        rows=lambda: rows,
        blocks=lambda: [grid, Line(text="everything is fine" if fine else "something is wrong")],
    )
    output.wrote()
    return shell.DONE if fine else shell.NO


COMMANDS = {"doctor": doctor}
