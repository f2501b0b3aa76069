"""Measures how many formulas `vet` checks per hour, and the cost of policies written in different ways.

python python/benchmarks/formulas.py                  both, in CPU seconds, which other work hardly affects
python python/benchmarks/formulas.py --count 20       with this number of formulas
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import celltrain as ct

FBA = "X <= R or Y * N / X <= Z * (K - R) / (X - R)"
HOUR = 3600


class Fba(ct.PythonPolicy):
    """Fair Buffer Allocation as a class."""

    r = 0.9
    z = 0.8

    def start(self, port: ct.PolicyPort) -> None:
        """Computes R."""
        assert port.capacity is not None
        self.limit = self.r * port.capacity

    def admit(self, view: Any, vc: int) -> bool:
        """Evaluates the condition of FBA."""
        x, limit = view.X, self.limit
        return bool(x <= limit or view.Y * view.N / x <= self.z * (view.K - limit) / (x - limit))


def seconds(work: Callable[[], object]) -> float:
    """Returns the CPU seconds that the work takes in all threads."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> None:
    """Measures the speed of policy formulas and prints the results."""
    parser = argparse.ArgumentParser(description="Measure the costs of vetting a formula and of running a policy.")
    parser.add_argument("--count", type=int, default=30, help="number of formulas to vet (default: 30)")
    parser.add_argument("--times", type=int, default=5, help="number of runs of each policy (default: 5)")
    arguments = parser.parse_args()
    vetted(arguments.count)
    compared(arguments.times)


def vetted(count: int) -> None:
    """Measures the speed of vetting in the LAN with five sources, including the check and the conformance trials."""

    def vet(number: int) -> None:
        constants = {"R": f"{0.3 + 0.6 * number / count:.3f} * K", "Z": 0.5 + number / count}
        formula = {"formula": {"admit": FBA, "constants": constants}}
        ct.vet(formula, scenarios=["lan-5"], against=[], seeds=1, jobs=1)

    vet(0)

    def all_of_them() -> None:
        for number in range(count):
            vet(number)

    taken = seconds(all_of_them) / count
    print(
        f"vetting a formula in lan-5, one seed: {taken:.3f} CPU seconds; {2 * HOUR / taken:,.0f} per hour on two cores"
    )


def compared(times: int) -> None:
    """Measures the cost of FBA written in each way: the minimum of several runs, and the ratio to the native policy."""
    policies: dict[str, Any] = {
        "native": ct.Fba(),
        "formula": ct.Formula(admit=FBA, constants={"R": "0.9 * K", "Z": 0.8}),
        "Python class": Fba(),
    }
    print("| sources | policy | CPU seconds | of the native one |\n| ---: | --- | ---: | ---: |")
    for sources in (5, 15):
        least: dict[str, float] = {}
        prints = set()
        # Run the variants in turn, so that other load on the machine affects all of them equally. For the slow Python
        # class, one run is precise enough.
        for turn in range(times):
            for name, policy in policies.items():
                if turn > 0 and name == "Python class":
                    continue
                lan = ct.n_source(sources=sources, link_delay="5us", buffer_cells=1000, policy=policy, duration="20s")
                begun = time.process_time()
                prints.add(ct.run(lan, seed=1).fingerprint)
                taken = time.process_time() - begun
                least[name] = min(taken, least.get(name, taken))
        assert len(prints) == 1, "all formulas express the same policy"
        for name, taken in least.items():
            print(f"| {sources} | {name} | {taken:.3f} | {taken / least['native']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
