"""Searches all open choices of a paper jointly for the configurations that fit its printed numbers best.

    python scripts/campaign.py joint-search af-96-1269 --configurations 45
    python scripts/campaign.py joint-search af-96-1269 --sample 150
    python scripts/campaign.py joint-search af-96-1269 --confirm
    python scripts/campaign.py joint-search af-96-1269 --report
    python scripts/campaign.py joint-search af-96-1269 --compare 20001000000000000 --seeds 30

The questions and their answers are in papers/<id>/joint.toml, with the settings that all configurations share. An
answer never applies to individual rows. There are three steps:

1. search: tries the defaults and every answer alone. Then it mixes proposals of Optuna's TPE sampler (categorical,
   multivariate) with the best configurations so far, changing a few of their answers at random. A configuration
   advances through the stages, each with more rows, while it is among the best. A stage of lock-step rows counts the
   exact rows instead: a configuration goes on if at most one row fewer is exact than with the defaults and the same
   answer to the first question. --focus searches for one network or one quantity only. --sample draws configurations
   at random instead, runs the first stage of all, and continues with the best.
2. confirm: runs the best of the last stage with other seeds on the rows of the third stage. The best ten of these run
   with new seeds on the rows of the last stage, and then on all rows of all tables, for the paper's duration. The
   output also shows how many means are within .02 of the printed values, and the difference between two seeds.
3. report: writes papers/<id>/joint.csv, with a line for each configuration, and the tables of the paper's page.

--compare runs the defaults and the given configurations on all rows with many fresh seeds, and writes every number to
papers/<id>/compared.csv and the scores to the page.

Every run is stored in out/joint/<id>.sqlite and never repeated: after an interruption, the same command continues.
wan_search.py defines the likelihood of a printed number, and internetwork_search.py the relative error. If there is a
single seed, the spread of a number is taken from the defaults with six seeds.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from celltrain.ensemble.tuning.plan import quiet, silent_optuna
from joint_runs import REFUSED, Runs, Scores, Space
from paper_page import ROOT

#: Seeds for the spread of each number with the defaults, and for the selection of the best.
REFERENCE, SELECTION = range(1, 7), range(11, 13)
SELECTED, CONFIRMED = 30, 10
#: Fraction of proposals that modify the defaults or one of the best configurations, number of those best
#: configurations, and maximum number of changes.
NEAR, NEIGHBOURS, MOST_CHANGES = 0.4, 10, 4
#: Number of configurations that a stage examines before it rejects any.
PATIENCE = 4
#: Number of lock-step rows that a configuration may lose.
ROWS_LOST = 1


class Search:
    """A search: its store, the scores of its stages so far, and the sampler of configurations."""

    def __init__(self, runs: Runs, focus: str, threads: int | None, seed: int) -> None:
        self.runs, self.space, self.focus, self.threads = runs, runs.space, focus, threads
        self.scores = Scores(runs, REFERENCE)
        self.random = random.Random(seed)
        optuna = silent_optuna()
        with quiet(optuna):
            sampler = optuna.samplers.TPESampler(multivariate=True, n_startup_trials=40, seed=seed)
            self.study = optuna.create_study(direction="maximize", sampler=sampler)
        self.distributions = {
            str(place): optuna.distributions.CategoricalDistribution(range(len(question.answers)))
            for place, question in enumerate(self.space.questions)
        }
        #: Scores of the configurations that have reached each stage.
        self.seen: list[list[float]] = [[] for _ in self.space.stages]

    def jobs(self) -> int:
        """Returns the number of threads: the requested number, or two if the machine is idle enough and one if not."""
        return self.threads or (2 if os.getloadavg()[0] < 2 else 1)

    def value(self, parts: dict[str, float] | None) -> float:
        """Returns the score to maximise: for a network, a quantity, or all of them. Among errors, R counts twice."""
        if parts is None:
            return REFUSED
        if "exact" in parts:
            return parts["exact"]
        if self.focus != "all":
            return parts[self.focus]
        if self.space.measure == "likelihood":
            return sum(parts.values())
        return 2 * parts["goodput_mbps"] + parts["delay_ms"]

    def examine(self, configuration: str, *, run: bool = True) -> tuple[list[float], bool]:
        """Returns the score at each stage reached, and whether it was the last. Without `run`, only uses the store."""
        values: list[float] = []
        for place, stage in enumerate(self.space.stages):
            seeds = range(1, stage.seeds + 1)
            if run:
                self.runs.run(configuration, stage.numbers, seeds, self.jobs())
            elif not self.has(configuration, stage.numbers, seeds):
                break
            values.append(self.value(self.scores.screening(configuration, place)))
            self.seen[place].append(values[-1])
            if values[-1] == REFUSED or (run and not self.goes_on(configuration, place, values[-1])):
                break
        return values, len(values) == len(self.space.stages)

    def has(self, configuration: str, numbers: Sequence[int], seeds: Sequence[int]) -> bool:
        """Returns whether the store has a result or a refusal for every run."""
        rows = {self.space.numbers[number].configuration for number in numbers}
        return all((configuration, row, seed) in self.runs.figures for row in rows for seed in seeds)

    def goes_on(self, configuration: str, place: int, value: float) -> bool:
        """Returns whether a score is among the best in a stage, or enough lock-step rows are exact."""
        stage = self.space.stages[place]
        if stage.lock_step:
            same = self.space.with_answer(0, int(configuration[0]))
            seeds = range(1, stage.seeds + 1)
            self.runs.run(same, stage.numbers, seeds, self.jobs())
            exact = self.scores.exact(same, seeds)
            assert exact is not None, "these numbers have results"
            return value >= exact - ROWS_LOST
        seen = self.seen[place]
        return len(seen) < PATIENCE or value >= float(np.quantile(seen, 1 - stage.keep))

    def tell(self, configuration: str, values: list[float], complete: bool) -> None:
        """Adds a configuration to the sampler's data."""
        optuna = silent_optuna()
        states = optuna.trial.TrialState
        trial = optuna.trial.create_trial(
            state=states.COMPLETE if complete else states.PRUNED,
            params={name: int(digit) for name, digit in zip(self.distributions, configuration, strict=True)},
            distributions=self.distributions,
            intermediate_values=dict(enumerate(values)),
            value=values[-1] if complete else None,
        )
        self.study.add_trial(trial)

    def propose(self) -> str:
        """Returns a new configuration."""
        if self.random.random() < NEAR:
            configuration = self.random.choice([self.space.default, *self.best(NEIGHBOURS)])
            changes = self.random.randint(1, MOST_CHANGES)
        else:
            optuna = silent_optuna()
            with quiet(optuna):
                trial = self.study.ask(self.distributions)
                configuration = "".join(str(trial.params[name]) for name in self.distributions)
                self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
            changes = 0
        while changes > 0 or configuration in self.runs.asked:
            place = self.random.randrange(len(self.space.questions))
            answer = self.random.randrange(len(self.space.questions[place].answers))
            configuration = self.space.with_answer(place, answer, configuration)
            changes -= 1
        return configuration

    def crossed(self, names: Sequence[str]) -> list[str]:
        """Returns every combination of the answers to some questions."""
        places = [place for place, question in enumerate(self.space.questions) if question.name in names]
        unknown = set(names) - {question.name for question in self.space.questions}
        if unknown:
            known = ", ".join(question.name for question in self.space.questions)
            sys.exit(f"there is no question named {', '.join(sorted(unknown))}; choose from {known}")
        found = [self.space.default]
        for place in places:
            answers = range(len(self.space.questions[place].answers))
            found = [self.space.with_answer(place, answer, one) for one in found for answer in answers]
        return found

    def go(self, configurations: int, until: float, crossed: Sequence[str] = ()) -> None:
        """Searches until the store has this number of configurations, or until a given time."""
        if self.space.measure == "likelihood":
            self.runs.run(self.space.default, self.space.stages[-1].numbers, REFERENCE, self.jobs())
        for configuration in self.runs.asked:
            self.tell(configuration, *self.examine(configuration, run=False))
        planned = [self.space.default, *(self.crossed(crossed) if crossed else self.space.alone())]
        first = [one for one in dict.fromkeys(planned) if one not in self.runs.asked]
        best = max((v for v in self.seen[-1]), default=REFUSED)
        while len(self.runs.asked) < configurations and time.time() < until:
            configuration = first.pop(0) if first else self.propose()
            values, complete = self.examine(configuration)
            self.runs.ask(configuration, self.focus)
            self.tell(configuration, values, complete)
            count = len(self.runs.asked)
            if complete and values[-1] > best:
                best = values[-1]
                print(f"{count:5} {best:9.2f}  {self.space.text(configuration)}", flush=True)
            elif count % 50 == 0:
                print(f"{count:5} {time.strftime('%H:%M:%S')}", flush=True)

    def sample(self, count: int, until: float) -> None:
        """Runs the first stage of random configurations, as many for each answer to the first question.

        Until a given time, the configurations with the best scores continue with the other stages.
        """
        drawn: list[str] = []
        while len(drawn) < count:
            digits = [self.random.randrange(len(question.answers)) for question in self.space.questions]
            digits[0] = len(drawn) % len(self.space.questions[0].answers)
            drawn.append("".join(map(str, digits)))
        stage = self.space.stages[0]
        values: dict[str, float] = {}
        for configuration in drawn:
            self.runs.run(configuration, stage.numbers, range(1, stage.seeds + 1), self.jobs())
            if configuration not in self.runs.asked:
                self.runs.ask(configuration, self.focus)
            values[configuration] = self.value(self.scores.screening(configuration, 0))
            if len(values) % 20 == 0:
                print(f"{len(values):5} {time.strftime('%H:%M:%S')}", flush=True)
        for configuration in self.runs.asked:
            self.examine(configuration, run=False)
        for configuration in sorted(values, key=lambda one: -values[one]):
            if time.time() > until:
                return
            reached, _ = self.examine(configuration)
            print(f"{values[configuration]:5.1f} {reached[-1]:9.2f}  {self.space.text(configuration)}", flush=True)

    def best(self, count: int, configurations: Sequence[str] | None = None) -> list[str]:
        """Returns the best configuration of the last stage.

        Of those with equal scores, returns the one with the fewest changes.
        """
        last = len(self.space.stages) - 1
        found = {}
        for configuration in configurations or self.runs.asked:
            stage = self.space.stages[last]
            if self.has(configuration, stage.numbers, range(1, stage.seeds + 1)):
                found[configuration] = self.value(self.scores.screening(configuration, last))
        fewest = sorted(found, key=lambda one: (-found[one], len(self.space.answers(one))))
        return list({found[one]: one for one in reversed(fewest)}.values())[::-1][:count]

    def noise(self) -> None:
        """Scores the defaults with pairs of existing seeds, to estimate the noise in a difference."""
        numbers, pairs = self.space.stages[-1].numbers, zip(REFERENCE[::2], REFERENCE[1::2], strict=True)
        for pair in pairs:
            parts = self.scores.final(self.space.default, pair, numbers) or {}
            figures = " ".join(f"{name} {part:9.2f}" for name, part in parts.items())
            print(f"{len(numbers)} numbers: {figures}  the defaults, seeds {pair[0]} and {pair[1]}", flush=True)

    def confirm(self, selected: int, confirmed: int, until: float, added: Sequence[str] = ()) -> None:
        """Selects among the best with other seeds, then confirms with new seeds on the screened and on all rows.

        `added` are further configurations to confirm.
        """
        chosen = self.best(selected)
        if len(chosen) > confirmed:
            some = self.space.stages[min(2, len(self.space.stages) - 1)].numbers
            values: dict[str, float] = {}
            for configuration in chosen:
                self.runs.run(configuration, some, SELECTION, self.jobs())
                values[configuration] = self.value(self.scores.final(configuration, SELECTION, some))
                print(f"{values[configuration]:9.2f}  {self.space.text(configuration)}", flush=True)
            chosen = sorted(chosen, key=lambda one: -values[one])
        final = [self.space.default, *(one for one in chosen if one != self.space.default)][: confirmed + 1]
        final += [one for one in added if one not in final]
        if self.space.measure == "likelihood":
            self.noise()
        for numbers in (self.space.stages[-1].numbers, range(len(self.space.numbers))):
            for configuration in final:
                if time.time() > until:
                    print("out of time; repeat the command to continue", file=sys.stderr)
                    return
                self.runs.run(configuration, numbers, self.space.confirmation, self.jobs(), whole=True)
                parts = self.scores.final(configuration, self.space.confirmation, numbers) or {}
                figures = " ".join(f"{name} {part:9.2f}" for name, part in parts.items())
                exact = self.scores.exact(configuration, self.space.confirmation)
                in_step = f" exact {exact:.1f}" if self.space.lock_step else ""
                print(f"{len(numbers)} numbers: {figures}{in_step}  {self.space.text(configuration)}", flush=True)
                if self.space.measure == "likelihood" and len(numbers) == len(self.space.numbers):
                    near = self.scores.near(configuration, self.space.confirmation, ("sources", "buffer_cells"))
                    print("\n".join(f"    {group}: {count} of {of}" for group, (count, of) in near.items()), flush=True)

    def compare(self, configurations: Sequence[str], count: int) -> None:
        """Runs the defaults and some configurations with fresh seeds on all rows, and writes the results."""
        from joint_page import compare

        every = [self.space.default, *configurations]
        seeds = range(self.space.confirmation[0], self.space.confirmation[0] + count)
        for seed in seeds:
            for configuration in every:
                self.runs.run(configuration, range(len(self.space.numbers)), [seed], self.jobs(), whole=True)
        compare(self.space, self.runs, every, seeds)


def main() -> int:
    """Searches, confirms, compares or reports."""
    parser = argparse.ArgumentParser(description="Search all open choices of a paper jointly.")
    parser.add_argument("paper", nargs="?", default="af-96-1269", help="id of the paper (default: af-96-1269)")
    parser.add_argument(
        "--configurations", type=int, default=1500, help="number of configurations in the store (default: 1500)"
    )
    parser.add_argument(
        "--sample", type=int, help="number of random configurations to run in the first stage; the best continue"
    )
    parser.add_argument("--focus", default="all", help="a single network or quantity, such as WAN (default: all)")
    parser.add_argument(
        "--cross", action="append", default=[], metavar="QUESTION", help="first try all combinations of these choices"
    )
    parser.add_argument("--minutes", type=float, default=1e6, help="time after which the search ends")
    parser.add_argument("--jobs", type=int, help="number of threads (default: 1, or 2 while the machine is idle)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sampler (default: 1)")
    parser.add_argument("--confirm", action="store_true", help="run the best configurations again with other seeds")
    parser.add_argument(
        "--selected",
        type=int,
        default=SELECTED,
        help=f"number of configurations to compare with other seeds (default: {SELECTED})",
    )
    parser.add_argument(
        "--confirmed",
        type=int,
        default=CONFIRMED,
        help=f"number of configurations to confirm on all rows (default: {CONFIRMED})",
    )
    parser.add_argument(
        "--add", action="append", default=[], metavar="DIGITS", help="confirm this configuration of joint.csv, too"
    )
    parser.add_argument(
        "--compare", action="append", default=[], metavar="ANSWERS", help="a configuration to compare with the defaults"
    )
    parser.add_argument("--seeds", type=int, default=30, help="number of fresh seeds to compare with (default: 30)")
    parser.add_argument("--report", action="store_true", help="run nothing; write the table and the page")
    parser.add_argument("--store", type=Path, help="the SQLite file (default: out/joint/<paper>.sqlite)")
    arguments = parser.parse_args()
    space = Space(arguments.paper)
    if arguments.report:
        from joint_page import report

        return report(space, arguments.store or store(arguments.paper))
    runs = Runs(space, arguments.store or store(arguments.paper))
    until = time.time() + 60 * arguments.minutes
    search = Search(runs, arguments.focus, arguments.jobs, arguments.seed)
    try:
        if arguments.compare:
            search.compare(arguments.compare, arguments.seeds)
        elif arguments.confirm:
            search.confirm(arguments.selected, arguments.confirmed, until, arguments.add)
        elif arguments.sample:
            search.sample(arguments.sample, until)
        else:
            search.go(arguments.configurations, until, arguments.cross)
    except KeyboardInterrupt:
        print("interrupted; the store keeps finished runs", file=sys.stderr)
        return 130
    finally:
        runs.close()
    print(f"{len(runs.asked)} configurations, {len(runs.figures)} runs in {arguments.store or store(arguments.paper)}")
    return 0


def store(paper: str) -> Path:
    """Returns the path of a paper's store."""
    place: Any = ROOT / "out" / "joint" / f"{paper}.sqlite"
    return Path(place)


if __name__ == "__main__":
    sys.exit(main())
