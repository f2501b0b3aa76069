"""Reproductions filled with given values instead of results of runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from celltrain.papers import MOST_SEEDS, Paper, Reproduction, Scored
from celltrain.papers.paper import Number


def filled(
    paper: Paper, seeds: Mapping[str, int], values: Callable[[Number], Mapping[int, float]], **more: object
) -> Reproduction:
    """Returns a reproduction filled with given values.

    Each run has the values of the last number that needs the run.
    """
    numbers = paper.numbers()
    by_run = {(number.configuration, number.result): values(number) for number in numbers}
    scored = [
        Scored(
            number=number,
            values=tuple(by_seed.values()),
            seeds=tuple(by_seed),
            requested=min(seeds[number.network or ""], number.most_seeds or MOST_SEEDS),
        )
        for number in numbers
        if (by_seed := by_run[number.configuration, number.result])
    ]
    unfinished = [number for number in numbers if not by_run[number.configuration, number.result]]
    return Reproduction(paper=paper, seeds=seeds, scored=scored, unfinished=unfinished, **more)
