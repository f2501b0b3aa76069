"""The finished runs of a reproduction in a file, so that an interrupted reproduction can be continued."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from celltrain.ensemble.cases import Run
from celltrain.errors import PaperError
from celltrain.model.files import UnreadableError, read_json, replace, writing
from celltrain.running import RunRecord

#: Name of the file in the folder of `--out`.
NAME = "runs.json"
_FIELDS = ("fingerprint", "cell_hops", "seconds")


def _checked(run: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a run from a file; raises an exception of Python if it does not have the form that `Kept.write` gives it."""
    values = {
        name: (None if value is None else float(value), None if problem is None else str(problem))
        for name, (value, problem) in run["values"].items()
    }
    fingerprint = None if run["fingerprint"] is None else str(run["fingerprint"])
    hops, seconds = int(run["cell_hops"]), float(run["seconds"])
    return {
        "fingerprint": fingerprint,
        "cell_hops": hops,
        "seconds": seconds,
        "seed": int(run["seed"]),
        "values": values,
    }


class Kept:
    """Finished runs by key.

    The key includes the scenario, the seed and the version, so the file never supplies a different run.
    """

    def __init__(self, path: Path, *, resume: bool) -> None:
        """If `resume` is true, reads the file; raises `PaperError` if that is impossible."""
        self.path = path
        self._runs: dict[str, dict[str, Any]] = {}
        if not resume:
            return
        try:
            content = read_json(path, what="runs")
            self._runs = {key: _checked(run) for key, run in content["runs"].items()}
        except UnreadableError as error:
            advice = "leave out --resume to begin" if error.missing else "delete this file to begin again"
            raise PaperError(f"{path}: {error.problem}; {advice}") from None
        except (AttributeError, KeyError, TypeError, ValueError):
            raise PaperError(f"{path}: is not a file of runs that celltrain wrote; delete it to begin again") from None

    def records(self, runs: Sequence[Run]) -> list[RunRecord]:
        """Returns the records of those runs that are finished, with all their measures."""
        found = []
        for run in runs:
            before = self._runs.get(run.key)
            names = run.measures or ()
            if before is None or not all(name in before["values"] for name in names):
                continue
            values, problems = zip(*(before["values"][name] for name in names), strict=True)
            fields = {name: before[name] for name in _FIELDS}
            about: dict[str, Any] = {"point": run.case.number, "seed": run.seed, "run_key": run.key}
            found.append(
                RunRecord(**about, configuration=run.case.configuration, values=values, problems=problems, **fields)
            )
        return found

    def write(self, records: Sequence[RunRecord], measures: Mapping[int, Sequence[str]]) -> None:
        """Writes the records, in addition to the runs in the file; raises `OutputError`."""
        for record in records:
            names = measures[record.point]
            problems = record.problems or [None] * len(names)
            values = dict(zip(names, zip(record.values, problems, strict=True), strict=True))
            old = self._runs.get(record.run_key, {}).get("values", {})
            fields = {name: getattr(record, name) for name in _FIELDS}
            self._runs[record.run_key] = {**fields, "seed": record.seed, "values": {**old, **values}}
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace(self.path, json.dumps({"runs": self._runs}) + "\n")
