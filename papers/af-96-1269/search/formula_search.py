"""Searches for a one-line policy for the configurations of 96-1269: Optuna chooses the constants of given formulas.

    python scripts/campaign.py formula-search                        six minutes of CPU; fills docs/studies/one-line-policy.md
    python scripts/campaign.py formula-search --trials 2 --page x.md  a short search, into another file

The score of a trial is the mean of efficiency times fairness over the twelve configurations of Tables 2 and 3, with one
seed each. The best constants of each formula are run again with the selection seeds. The page shows results of the best
formula with new seeds. It compares them with Selective Drop and Fair Buffer Allocation (the paper's R = 0.9 and Z =
0.8), and with EPD.
"""

from __future__ import annotations

import argparse
import shutil
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna

import celltrain as ct
from celltrain.running import statistics
from paper_page import ROOT, fill, listed

PAGE = ROOT / "docs" / "studies" / "one-line-policy.md"

#: Sources and buffers (in cells) that Tables 2 and 3 vary.
LAN = [(sources, buffer) for sources in (5, 15) for buffer in (1000, 2000, 3000)]
WAN = [(sources, buffer) for sources in (5, 15) for buffer in (12_000, 24_000, 36_000)]

#: First seed and number of seeds of each stage: the results use none of the seeds of the search and the selection.
SEARCH, SELECTION, CONFIRMATION = (1, 1), (101, 3), (201, 10)


@dataclass(frozen=True)
class Form:
    """A formula with open constants."""

    name: str
    admit: str
    ranges: Mapping[str, tuple[float, float]]
    operations: int
    """Operations per frame in a switch, counted as in docs/policy-costs.md."""

    def policy(self, constants: Mapping[str, float]) -> ct.Formula:
        """Returns the policy with the given constants."""
        return ct.Formula(admit=self.admit, constants=dict(constants))


SHARE, LOAD = (0.1, 1.0), (0.3, 3.0)
FORMS = [
    Form("Selective Drop", "X <= R * K or Y * N <= Z * X", {"R": SHARE, "Z": LOAD}, 7),
    Form(
        "Fair Buffer Allocation",
        "X <= R * K or Y * N / X <= Z * (K - R * K) / (X - R * K)",
        {"R": SHARE, "Z": (0.1, 2.0)},
        9,
    ),
    Form("Dynamic Threshold", "Y < alpha * (K - X)", {"alpha": (0.05, 4.0)}, 5),
    Form("a share of the buffer", "X <= R * K or Y * N <= Z * K", {"R": SHARE, "Z": (0.2, 2.0)}, 6),
    Form(
        "load limit that falls as the buffer fills",
        "X <= R * K or Y * N <= Z * X * (1 - a * X / K)",
        {"R": SHARE, "Z": LOAD, "a": (0.0, 1.0)},
        11,
    ),
    Form(
        "Selective Drop with a random chance of refusal",
        "X <= R * K or Y * N <= Z * X or random() < p",
        {"R": SHARE, "Z": LOAD, "p": (0.0, 0.5)},
        11,
    ),
]


def networks(policy_of: Mapping[int, Any]) -> list[list[ct.Scenario]]:
    """Returns the LAN and the WAN configurations, with the policy for each buffer size."""
    lan: dict[str, Any] = {"link_delay": "5us", "duration": "10s", "tcp": ct.Vanilla(receive_window="65535B")}
    wan: dict[str, Any] = {"link_delay": "5ms", "duration": "20s", "tcp": ct.Vanilla(receive_window="600000B")}
    return [
        [
            ct.n_source(sources=n, buffer_cells=k, policy=policy_of[k], name=f"{where}, {n}, {k}", **common)
            for n, k in configurations
        ]
        for where, configurations, common in (("LAN", LAN, lan), ("WAN", WAN, wan))
    ]


def values(policy: Any, seeds: tuple[int, int]) -> np.ndarray:
    """Returns efficiency and fairness, keyed by configuration and seed."""
    of_all = policy if isinstance(policy, Mapping) else dict.fromkeys([k for _, k in LAN + WAN], policy)
    first, count = seeds
    with warnings.catch_warnings():
        # The ignored warnings are about differences between configurations, which this script does not use.
        warnings.simplefilter("ignore", ct.CelltrainWarning)
        found = [
            ct.compare(*scenarios, seeds=count, first_seed=first, measures=["efficiency", "fairness"]).values[:, 0]
            for scenarios in networks(of_all)
        ]
    return np.concatenate(found)


def score(found: np.ndarray) -> float:
    """Returns the mean of efficiency times fairness. A run in which no data arrived counts as 0."""
    return float(np.nan_to_num(np.prod(found, axis=-1)).mean())


def warning(found: np.ndarray, tail_drop: np.ndarray) -> str:
    """Returns a warning for the top of the page if a policy delivers less than half as much as tail drop."""
    own, of_tail_drop = (float(values[..., 0].mean()) for values in (found, tail_drop))
    if own >= 0.5 * of_tail_drop:
        return ""
    return (
        f"**Warning:** the found policy carries {own / of_tail_drop:.0%} of the goodput of tail drop: a mean efficiency of "
        f"{own:.3f} against {of_tail_drop:.3f}. Ignore its fairness.\n\n"
    )


def searched(form: Form, trials: int, seed: int) -> tuple[float, dict[str, float]]:
    """Returns the best score of a form with the search seeds, and its constants."""
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=max(1, trials // 3))
    study = optuna.create_study(direction="maximize", sampler=sampler)

    def trial(one: optuna.Trial) -> float:
        constants = {name: round(one.suggest_float(name, *ends), 2) for name, ends in form.ranges.items()}
        return score(values(form.policy(constants), SEARCH))

    study.optimize(trial, n_trials=trials)
    return study.best_value, {name: round(value, 2) for name, value in study.best_params.items()}


def main() -> None:
    """Searches formulas, confirms the selected formulas with more seeds, and writes the page."""
    parser = argparse.ArgumentParser(description="Search for a one-line policy for the configurations of 96-1269.")
    parser.add_argument("--trials", type=int, default=10, help="number of trials of each form (default: 10)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the search")
    parser.add_argument("--page", type=Path, default=PAGE, help="page that receives the results")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    best: list[tuple[float, float, Form, dict[str, float]]] = []
    for form in FORMS:
        found, constants = searched(form, arguments.trials, arguments.seed)
        chosen = score(values(form.policy(constants), SELECTION))
        best.append((chosen, found, form, constants))
        print(f"{form.name}: {constants}, search {found:.3f}, selection {chosen:.3f}", flush=True)
    text = table_of_forms(best)
    _, _, form, constants = max(best, key=lambda one: one[0])
    policies: dict[str, Any] = {
        "found": form.policy(constants),
        "Selective Drop": ct.SelectiveDrop(threshold=0.9, z=0.8),
        "FBA": ct.Fba(threshold=0.9, z=0.8),
        "EPD": {k: ct.Epd(threshold=k - 200) for _, k in LAN + WAN},
    }
    confirmed = {name: values(policy, CONFIRMATION) for name, policy in policies.items()}
    text = warning(confirmed["found"], values(ct.TailDrop(), CONFIRMATION)) + text
    text += "\n\n" + result(form, constants, confirmed)
    if arguments.page != PAGE:
        shutil.copyfile(PAGE, arguments.page)
    fill(arguments.page, "search", text)


def table_of_forms(best: Sequence[tuple[float, float, Form, dict[str, float]]]) -> str:
    """Returns the table of the forms and their scores."""
    lines = [
        "| form | `admit` | best constants | operations a frame | score, search | score, selection |",
        "| --- | --- | --- | ---: | ---: | ---: |",
    ]
    for chosen, found, form, constants in sorted(best, key=lambda one: -one[0]):
        said = ", ".join(f"{name} = {value:g}" for name, value in constants.items())
        lines.append(f"| {form.name} | `{form.admit}` | {said} | {form.operations} | {found:.3f} | {chosen:.3f} |")
    return "\n".join(lines)


def result(form: Form, constants: Mapping[str, float], confirmed: Mapping[str, np.ndarray]) -> str:
    """Returns the result compared with the classic policies, with the confirmation seeds."""
    said = listed([f"{name} = {value:g}" for name, value in constants.items()])
    count = CONFIRMATION[1]
    lines = [
        f"The search found **{form.name}**, `{form.admit}` with {said}. As [policy costs](../policy-costs.md) counts them, a "
        f"frame costs a switch {form.operations} operations in addition to those of its cells, and each VC costs 19 bits. "
        "Selective Drop needs 7 and FBA 9 operations, and as many bits. The table gives means over "
        f"{count} fresh seeds with half of the 95 % interval. Bold means differ from the policy found by more than the "
        "seeds' spread, paired by seed.",
        "",
        "| configuration | measure | " + " | ".join(confirmed) + " |",
        "| --- | --- |" + " ---: |" * len(confirmed),
    ]
    names = [f"{where}, {n} sources, {k:,} cells" for where, each in (("LAN", LAN), ("WAN", WAN)) for n, k in each]
    for place, name in enumerate([*names, "all twelve"]):
        for number, measure in enumerate(("efficiency", "fairness")):
            at = [
                own[place, :, number] if place < len(names) else own[:, :, number].mean(0) for own in confirmed.values()
            ]
            cells = [estimate(at[0])]
            for other in at[1:]:
                mean, half = interval(at[0] - other)
                cells.append(f"**{estimate(other)}**" if abs(mean) > half else estimate(other))
            lines.append(f"| {name if number == 0 else ''} | {measure} | {' | '.join(cells)} |")
    return "\n".join(lines)


def interval(samples: np.ndarray) -> tuple[float, float]:
    """Returns a mean and half its 95 % interval."""
    means = statistics.means(np.zeros(len(samples), dtype=np.int64), samples, 1)
    return float(means.mean[0]), float(means.half[0])


def estimate(samples: np.ndarray) -> str:
    """Formats a mean and its interval."""
    mean, half = interval(samples)
    return f"{mean:.3f} ± {half:.3f}"


if __name__ == "__main__":
    main()
