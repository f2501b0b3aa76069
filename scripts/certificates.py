"""Counts the runs of plans and studies that certificates fill, and proves each of them by a run.

make campaign NAME=certificates ARGS="--only incast,tagging --duration 1s"
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import celltrain as ct
from celltrain.ensemble.plan import Plan
from celltrain.ensemble.tuning import TunePlan, run_tune
from celltrain.running import Chunk, Local, Rows, Run, RunRecord

ROOT = Path(__file__).resolve().parents[1]


class Counting(Local):
    """Runs chunks on this machine, and keeps their records."""

    def __init__(self, threads: int | None = None) -> None:
        super().__init__(threads)
        self.runs: dict[str, Run] = {}
        self.measures: dict[str, tuple[str, ...]] = {}
        self.records: list[RunRecord] = []

    def work(self, chunks: Iterator[Chunk], take: Callable[[Rows], None]) -> None:
        """Runs every chunk."""

        def seen() -> Iterator[Chunk]:
            for chunk in chunks:
                yield chunk
                for run in chunk.runs:
                    self.runs[run.key] = run
                    self.measures[run.key] = run.measures or chunk.measures

        def taken(rows: Rows) -> None:
            self.records += rows.runs
            take(rows)

        super().work(seen(), taken)

    def wrong(self) -> int:
        """Runs all filled rows, and returns how many differ."""
        filled = [record for record in self.records if record.filled_from is not None]
        by_measures: dict[tuple[str, ...], list[Run]] = {}
        for record in filled:
            by_measures.setdefault(self.measures[record.run_key], []).append(self.runs[record.run_key])
        again: dict[str, RunRecord] = {}
        for measures, runs in by_measures.items():
            chunk = Chunk(runs=tuple(runs), measures=measures, limit_s=None, recording=None)
            Local(self.threads, certificates=False).work(
                iter([chunk]), lambda rows: again.update({record.run_key: record for record in rows.runs})
            )
        own = [(record, again[record.run_key]) for record in filled]
        return sum((one.fingerprint, one.values) != (other.fingerprint, other.values) for one, other in own)


def main() -> int:
    """Prints a row for each plan and study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, help="seeds of each study; those of the page by default")
    parser.add_argument("--duration", help="end of each scenario")
    parser.add_argument("--only", help="names")
    parser.add_argument("--no-proof", action="store_true", help="only count")
    chosen = parser.parse_args()
    names = [path.parent.name for path in sorted(ROOT.glob("studies/*/study.toml"))]
    names += [path.stem for path in sorted(ROOT.glob("plans/*.toml"))]
    failed = 0
    for name in chosen.only.split(",") if chosen.only else names:
        worker, begun = Counting(), time.monotonic()
        path = ROOT / "plans" / f"{name}.toml"
        if path.exists() and name.startswith("tune"):
            with tempfile.TemporaryDirectory() as folder:
                run_tune(TunePlan.load(path), Path(folder), worker, resume=False)
        elif path.exists():
            with tempfile.TemporaryDirectory() as folder:
                ct.sweep(Plan.load(path), store=Path(folder) / "store", worker=worker)
        else:
            settings = {"duration": chosen.duration} if chosen.duration else {}
            ct.study(name, seeds=chosen.seeds or 10, overrides=settings, worker=worker)
        records = worker.records
        filled = sum(record.filled_from is not None for record in records)
        same = len(records) - len({(record.fingerprint) for record in records})
        with_seed = len(records) - len({(record.fingerprint, record.seed) for record in records})
        hops = sum(record.cell_hops for record in records)
        wrong = 0 if chosen.no_proof else worker.wrong()
        failed += wrong
        print(
            f"{name:24} {len(records):6} runs, {filled:6} filled, {with_seed} {same:6} repeat, {wrong} wrong, "
            f"{time.monotonic() - begun:.0f} s, {hops / 1e9:.1f} G",
            flush=True,
        )
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
