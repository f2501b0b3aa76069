"""`celltrain bottleneck` runs a list of cases over a list of senders: the common setup for congestion controls."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from celltrain.cli import options, shell
from celltrain.cli.options import listed
from celltrain.errors import InputError

complete_cases = options.completer(lambda: _cases(), files=True)
complete_senders = options.completer(lambda: _senders(), several=True)


def _cases() -> list[str]:
    from celltrain.ensemble.bottleneck.cases import names

    return names()


def _senders() -> list[str]:
    from celltrain.ensemble.bottleneck.senders import shipped_senders

    return list(shipped_senders())


@shell.command
def bottleneck(
    output: shell.Document,
    cases: Annotated[list[str] | None, {"autocompletion": complete_cases}] = None,
    senders: Annotated[list[str] | None, {"autocompletion": complete_senders}] = None,
    seeds: Annotated[int, {"parser": options.whole(1, options.MOST_RUNS)}] = 1,
    seed: options.FirstSeed = 1,
    jobs: options.Jobs = None,
    toml: bool = False,
    strict: bool = False,
    brief: bool = False,
    out: Path | None = None,
    qlog: bool = False,
) -> int:
    """Run cases over congestion controls and stacks, and judge each outcome: it holds, fails, or cannot be done.

    Argument:
        cases (CASE...): Shipped cases such as startup-plateau, or files. All shipped ones by default.

    Ensemble:
        senders (NAMES): Separated by commas: names such as cubic or quinn_cubic, settings such as sack:congestion=cubic,
            mine.py:Mine, or linux, which runs in real time. [default: all that are simulated]
        seeds (N): Runs of each case and sender.

    Output:
        toml: Print the scenario of one case with one sender, and run nothing.
        strict: Exit with 1 if a sender fails a case.
        brief: Print the verdicts only.
        out (DIR): Write answer, page and scenarios there, and the event log of each first run.
        qlog: With --out: also write each event log as qlog.

    Examples:
        celltrain bottleneck --senders reno,cubic --brief
        celltrain bottleneck startup-plateau policer --out out/cases --seeds 5
        celltrain bottleneck mine.toml --senders sack:congestion=cubic,mine.py:Mine
    """
    from celltrain.ensemble import bottleneck as of_cases

    wanted, named = cases or None, listed(senders)
    if toml:
        typer.echo(of_cases.scenario_of(wanted, named), nl=False)
        return shell.DONE
    if qlog and out is None:
        raise InputError.of_option("--qlog", "", "needs the folder for the files: name it with --out")
    with shell.making(out), shell.waiting("running cases", by_line=True) as tell:
        answer = of_cases.bottleneck(
            wanted, senders=named, seeds=seeds, first_seed=seed, jobs=jobs, out=out, qlog=qlog, progress=tell
        )
    output.show(answer, of_cases.blocks(answer, brief=brief), lambda: _rows(answer))
    output.wrote([] if out is None else [out / "index.html"])
    fails = any(one["verdict"] == of_cases.FAILS for case in answer["cases"] for one in case["senders"].values())
    return shell.NO if strict and fails else shell.DONE


def _rows(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns a row for each case and sender."""
    return [
        {
            "case": case["name"],
            "sender": name,
            "verdict": one["verdict"],
            **{measure: estimate["mean"] for measure, estimate in one["measures"].items()},
            "reason": one["reason"],
        }
        for case in answer["cases"]
        for name, one in case["senders"].items()
    ]


COMMANDS = {"bottleneck": bottleneck}
