"""Counts the runs of plans and studies that certificates fill, and proves each filled row by its run.

    python scripts/certificates.py --seeds 1 --only incast,tagging

Runs with the fingerprint of another run are counted as `same`: no certificate could fill more.
Searches (`tune-...`) take an hour and more, so they must be named.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import celltrain as ct
from celltrain.ensemble.plan import Plan
from celltrain.ensemble.tuning import TunePlan, run_tune
from celltrain.running import Chunk, Local, Rows, Run, RunRecord

ROOT = Path(__file__).resolve().parents[1]


class Counting(Local):
    """Runs chunks on this machine, and keeps their runs and records."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: dict[str, tuple[Run, tuple[str, ...]]] = {}
        self.records: list[RunRecord] = []

    def work(self, chunks: Iterator[Chunk], take: Callable[[Rows], None]) -> None:
        """Runs every chunk."""

        def noted() -> Iterator[Chunk]:
            for chunk in chunks:
                self.runs |= {run.key: (run, run.measures or chunk.measures) for run in chunk.runs}
                yield chunk

        def taken(rows: Rows) -> None:
            self.records += rows.runs
            take(rows)

        super().work(noted(), taken)

    def filled(self) -> list[RunRecord]:
        """Returns the records that were filled from other runs."""
        return [record for record in self.records if record.filled_from is not None]

    def wrong(self) -> int:
        """Runs what was filled in without running, and returns the number of records that differ."""
        again: dict[str, RunRecord] = {}
        for run, measures in (self.runs[record.run_key] for record in self.filled()):
            chunk = Chunk(runs=(run,), measures=measures, limit_s=None, recording=None)
            Local(1).work(iter([chunk]), lambda rows: again.update({run.run_key: run for run in rows.runs}))
        pairs = [(record, again[record.run_key]) for record in self.filled()]
        return sum((one.fingerprint, one.values) != (other.fingerprint, other.values) for one, other in pairs)


def counted(name: str, seeds: int, duration: str | None) -> Counting:
    """Runs a plan or study."""
    worker, path = Counting(), ROOT / "plans" / f"{name}.toml"
    with tempfile.TemporaryDirectory() as folder:
        if not path.exists():
            ct.study(name, seeds=seeds, overrides={} if duration is None else {"duration": duration}, worker=worker)
        elif name.startswith("tune-"):
            run_tune(TunePlan.load(path), Path(folder), worker)
        else:
            ct.sweep(Plan.load(path), store=Path(folder) / "store", worker=worker)
    return worker


def main() -> int:
    """Prints a row for each plan and study. Returns 1 if a filled row differs from the row of its run."""
    names = [path.parent.name for path in sorted(ROOT.glob("studies/*/study.toml"))]
    names += [path.stem for path in sorted(ROOT.glob("plans/*.toml")) if not path.stem.startswith("tune-")]
    parser = argparse.ArgumentParser(description="Count the runs that certificates fill.", allow_abbrev=False)
    parser.add_argument("--seeds", type=int, default=1, help="seeds of each study (default: 1)")
    parser.add_argument("--duration", help="end of each scenario of studies, for a quick look")
    parser.add_argument("--only", type=lambda text: text.split(","), default=names, help="names of plans and studies")
    asked = parser.parse_args()
    differ = 0
    print(f"{'plan or study':24} {'runs':>6} {'filled':>6} {'same':>6} {'wrong':>6}")
    for name in asked.only:
        worker = counted(name, asked.seeds, asked.duration)
        same = len(worker.records) - len({record.fingerprint for record in worker.records})
        wrong = worker.wrong()
        differ += wrong
        print(f"{name:24} {len(worker.records):6} {len(worker.filled()):6} {same:6} {wrong:6}", flush=True)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
