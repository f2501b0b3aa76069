"""`celltrain bound` finds the smallest buffer, threshold or memory with which a measure keeps a bound."""

from __future__ import annotations

from typing import Annotated

from celltrain.cli import options, shell


@shell.command
def bound(
    output: shell.Document,
    file: options.ScenarioFile,
    path: Annotated[str, {"autocompletion": options.complete_paths}],
    settings: options.Set = None,
    low: Annotated[int, {"names": ["--from"], "parser": options.whole(0)}] = 1,
    high: Annotated[int, {"names": ["--to"], "parser": options.whole(1)}] = 1_000_000,
    measure: str = "cells.lost + cells.discarded",
    at_most: float = 0.0,
    seeds: Annotated[int, {"parser": options.whole(1, options.MOST_RUNS)}] = 1,
    seed: options.FirstSeed = 1,
    jobs: options.Jobs = None,
    no_certificates: options.NoCertificates = False,
) -> int:
    """Find the smallest value of a setting that keeps a measure within a bound, such as the smallest lossless buffer.

    Argument:
        path (PATH): The setting, in whole numbers, such as port.bottleneck.buffer.

    Scenario:
        settings (PATH=VALUE): Use this setting instead of the scenario's own. May be repeated.
        low (N): Smallest value to try.
        high (N): Largest value to try.

    Ensemble:
        measure (EXPR): The measure; see: celltrain list measures.
        at_most (NUMBER): Bound of the measure, in its unit.
        seeds (N): Number of seeds; the measure must keep the bound with each.

    Examples:
        celltrain bound lan-tail-drop port.bottleneck.buffer
        celltrain bound lan-epd port.bottleneck.buffer --measure ports.bottleneck.lost_cells --seeds 5
        celltrain bound memory-dynamic-threshold "switch.*.memory.cells" --to 100000 --json
    """
    from celltrain.ensemble.bounding import bound as find
    from celltrain.model.overrides import of_options

    with shell.waiting("searching", by_line=True) as tell:
        found = find(
            file,
            path,
            fixed=of_options([], settings or []),
            low=low,
            high=high,
            measure=measure,
            at_most=at_most,
            seeds=seeds,
            first_seed=seed,
            jobs=jobs,
            certificates=not no_certificates,
            progress=tell,
        )
    output.show(found.to_dict(), found.blocks(), lambda: [vars(step) for step in found.steps])
    return shell.DONE if found.smallest is not None else shell.NO


COMMANDS = {"bound": bound}
