"""`celltrain compare` compares scenarios run with the same seeds; `celltrain vet` compares a policy with others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from celltrain.cli import options, shell
from celltrain.cli.options import listed
from celltrain.errors import InputError, add_note
from celltrain.model.files import named
from celltrain.model.overrides import as_options, of_options, single

if TYPE_CHECKING:
    from celltrain.ensemble.comparing import Compared

#: Measures that are printed and drawn by default, for flows and for requests.
USUAL = ("efficiency", "fairness")


@shell.command
def compare(
    output: shell.Document,
    files: Annotated[list[Path], {"autocompletion": options.complete_scenarios}],
    vary: Annotated[list[str] | None, {"autocompletion": options.complete_paths}] = None,
    settings: options.Set = None,
    names: list[str] | None = None,
    seeds: Annotated[int, {"parser": options.whole(1, options.MOST_RUNS)}] = 10,
    seed: options.FirstSeed = 1,
    measures: options.Measures = None,
    show_all: Annotated[bool, {"names": ["--all"]}] = False,
    jobs: options.Jobs = None,
    no_certificates: options.NoCertificates = False,
    plot: Path | None = None,
    width: options.Width = "page",
    style: options.Style = None,
    labels: options.Labels = None,
    out: Path | None = None,
) -> int:
    """Run scenarios with the same seeds: means with 95 % intervals, and paired differences from the first.

    Argument:
        files (FILE...): Scenarios: TOML files, or names of shipped ones. The first is what the others are compared
            with.

    Scenario:
        vary (PATH=VALUES): Values of a setting, separated by commas; examples below. With one FILE the values are compared.
            With several, all FILEs are compared at each value. A single value is set for all. May be repeated: with one FILE
            the first is compared, and the second is the horizontal axis of the figure.
        settings (PATH=VALUE): Use this setting in every FILE. May be repeated.
        names (NAMES): Names of the FILEs in the table and the figure, or of the values that are compared, separated by commas.
            For a name with a comma, repeat the option with one name each.

    Ensemble:
        seeds (N): Number of runs of each.
        show_all: Show goodput, losses and timeouts as well, which are always measured.

    Output:
        plot (PICTURE): Draw means with intervals there: .svg, .pdf or .png.
        out (DIR): Write means, differences and all runs there, as CSV and JSON, and data for celltrain plot compare.

    Examples:
        celltrain compare lan-tail-drop lan-epd --seeds 20
        celltrain compare lan-epd --vary port.bottleneck.buffer=1000,2000
        celltrain compare lan-epd --vary port.bottleneck.policy=tail_drop,epd
        celltrain compare lan-tail-drop lan-epd --names "Tail drop,EPD" --plot a.svg
    """
    from celltrain.ensemble.comparing import compare
    from celltrain.ensemble.comparing.pictured import check

    called = options.names_of(names)
    varied = of_options(vary or [], settings or [])
    if plot is not None:
        check(plot, width, style, out)
    try:
        with shell.making(out), options.naming(), shell.waiting("comparing", by_line=True) as tell:
            compared = compare(
                *files,
                names=called,
                vary=varied,
                seeds=seeds,
                first_seed=seed,
                measures=listed(measures),
                labels=options.labelled(labels),
                jobs=jobs,
                certificates=not no_certificates,
                progress=tell,
            )
    except KeyboardInterrupt as error:
        add_note(error, "compare keeps no finished runs; celltrain sweep keeps them, and continues with --resume")
        raise
    except InputError as error:
        raise InputError(as_options(error.faults, vary or [], settings or [])) from None
    return finish(
        compared, output, plot=plot, width=width, style=style, out=out, is_brief=measures is None and not show_all
    )


def finish(
    compared: Compared,
    output: shell.Output,
    *,
    plot: Path | None,
    width: str = "page",
    style: str | None = None,
    out: Path | None,
    fingerprints: bool = False,
    is_brief: bool = False,
) -> int:
    """Writes the files, prints the rest, and returns the exit code.

    Args:
        compared: The comparison.
        output: Format of the printed answer.
        plot: File of the figure, if one is drawn.
        width: Width of the figure.
        style: Style of the figure.
        out: Folder for all tables.
        fingerprints: If true, also print the fingerprints of the only scenario.
        is_brief: If true, print and draw only the default measures.
    """
    from celltrain.ensemble.comparing.data import blocks

    usual = None
    if is_brief:
        names = [measure.name for measure in compared.measures]
        usual = [place for place, name in enumerate(names) if name in USUAL or name.startswith("requests.")]
    written = [] if out is None else compared.write(shell.folder(out))
    if plot is not None:
        drawn = None if usual is None else [compared.measures[place].name for place in usual]
        compared.plot(plot, measures=drawn, width=width, style=style)
        written.append(plot)
    prints = dict(zip(compared.seeds, compared.fingerprints[0, 0].tolist(), strict=True)) if fingerprints else {}
    # Failed runs have no fingerprint to compare.
    known = {"fingerprints": {str(seed): text or None for seed, text in prints.items()}} if fingerprints else {}
    output.show(compared.to_dict() | known, blocks(compared, usual), lambda: compared.table.to_pylist())
    for seed, text in prints.items():
        output.note(f"seed {seed}  {text or 'failed'}")
    output.wrote(written)
    for failure in compared.failures[:1]:
        also = f", and {len(compared.failures) - 1:,} more failed" if len(compared.failures) > 1 else ""
        shell.complain(f"{failure.name}, seed {failure.seed}: {failure.error}{also}; the results exclude them")
    return shell.NO if compared.failures else shell.DONE


@shell.command
def vet(
    output: shell.Document,
    policy: Path,
    settings: options.Set = None,
    scenarios: list[str] | None = None,
    against: list[str] | None = None,
    seeds: Annotated[int, {"parser": options.whole(1, options.MOST_RUNS)}] = 10,
    seed: options.FirstSeed = 1,
    jobs: options.Jobs = None,
    no_certificates: options.NoCertificates = False,
    brief: bool = False,
    html: Path | None = None,
) -> int:
    """Check a policy's invariants, and compare it with classic policies in standard scenarios.

    Argument:
        policy (POLICY): A TOML file with a table policy, a scenario with one policy of its ports or memories, a policy such as
            fba:z=0.5, or mine.py:Mine.

    Scenario:
        settings (PATH=VALUE): Use this setting instead of that of POLICY. May be repeated.

    Ensemble:
        scenarios (NAMES): Of the standard set, separated by commas: lan-5, lan-15, wan-5, lan-5-sack, wan-5-sack,
            lan-5-random, unequal-rtt; for a memory policy switch, small-memory, switch-dctcp, leaf-spine.
            [default: all]
        against (POLICIES): Policies to compare it with, separated by commas: names, fba:z=0.5, @mine.toml or mine.py:Mine;
            for a memory policy, LQD, DT, ABM and Occamy unless this is given. [default: epd,selective_drop,fba]
        seeds (N): Runs in each scenario.

    Output:
        brief: Print failed checks and the means over all scenarios only.
        html (FILE): Write a page there, with everything.

    Examples:
        celltrain vet mine.toml --brief
        celltrain vet fba:z=0.5 --json
        celltrain vet rank.toml --scenarios switch,leaf-spine
        celltrain vet mine.toml --scenarios lan-5,wan-5 --seeds 20 --against fba
    """
    from celltrain.drawing.html import environment
    from celltrain.ensemble import vetting
    from celltrain.ensemble.vetting.standard import policy_of

    if html is not None:
        shell.check_target(html)
        environment("report")
    mine = policy_of(policy, single(settings), listed(scenarios))
    with shell.waiting("vetting", by_line=True) as tell:
        chosen: dict[str, Any] = {"scenarios": listed(scenarios), "against": listed(against)}
        chosen |= {"jobs": jobs, "certificates": not no_certificates}
        answer = vetting.vet(mine, **chosen, seeds=seeds, first_seed=seed, progress=tell)
    rows = [{"metric": name, **values} for name, values in answer["metrics"].items()]
    output.show(answer, vetting.blocks(answer, brief=brief), lambda: rows)
    if html is not None:
        with named(html) as file:
            file.write(vetting.page(answer).encode())
    output.wrote([] if html is None else [html])
    return shell.DONE if all(check["holds"] for check in answer["conformance"]) else shell.NO


COMMANDS = {"compare": compare, "vet": vet}
