"""What came of a search: trials, the confirmed front of each configuration, and what the references left on the table."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain import _core
from celltrain.ensemble.store import measured
from celltrain.ensemble.tuning import analysis, tail_drop
from celltrain.ensemble.tuning.analysis import Confirmed, Estimate, Left, Searched, Tried
from celltrain.ensemble.tuning.folder import title
from celltrain.model.arguments import Answer, checked
from celltrain.model.writing import inner, replace, writing
from celltrain.running import statistics

if TYPE_CHECKING:
    from celltrain.drawing.figure import Drawing
    from celltrain.ensemble.tuning.plan import Numbers, TunePlan
    from celltrain.ensemble.tuning.search import Search


class Tuned(Answer):
    """What came of a search."""

    _call = "celltrain.tune"
    facts: dict[str, Any]
    """Name, versions, objectives, parameters, seeds of each stage, runs, failures and warnings."""
    searches: tuple[Searched, ...]
    keeper: object = None
    """What holds the folder while this is used, where it is a temporary one."""

    @classmethod
    def _of(cls, facts: Mapping[str, Any], searches: Sequence[Searched]) -> Tuned:
        made = cls.__new__(cls)
        made.facts = dict(facts)
        made.searches = tuple(searches)
        return made

    @classmethod
    def _of_search(cls, plan: TunePlan, search: Search) -> Tuned:
        """Of a search that has run to its end."""
        build = _core.build()
        facts = {
            "name": plan.name,
            "version": build["version"],
            "profile": build["profile"],
            "optuna": search.optuna,
            "objectives": [
                {
                    "measure": one.measure,
                    "unit": measured(one.measure).unit,
                    "meaning": measured(one.measure).meaning,
                    "better": "larger" if one.larger else "smaller",
                }
                for one in plan.objectives
            ],
            "parameters": [
                {
                    "name": p.name,
                    "path": p.path,
                    "unit": p.unit,
                    "from": float(p.interval.low),
                    "to": float(p.last),
                    "scale": "log" if p.interval.log else "linear",
                    "step": None if p.step is None else float(p.step),
                }
                for p in plan.parameters
            ],
            "references": [{"label": one.label, "parameters": _named(plan, one.numbers)} for one in plan.references],
            "seeds": {
                word: {"first": seeds.first, "count": seeds.count}
                for word, seeds in (
                    ("search", plan.search),
                    ("selection", plan.selection),
                    ("confirmation", plan.confirmation),
                )
            },
            "trials": plan.trials,
            "batch": plan.batch,
            "runs": search.found.runs,
            "failed": search.found.failed,
        }
        searches = [_searched(plan, search, i) for i in range(len(plan.configurations.points))]
        told = [one for place, searched in enumerate(searches) for one in _warnings(plan, search, place, searched)]
        return cls._of({**facts, "warnings": told}, searches)

    @classmethod
    def _of_dict(cls, said: Mapping[str, Any]) -> Tuned:
        """What `to_dict` gave."""
        searches = [
            Searched(
                values=one["values"],
                title=one["title"],
                trials=tuple(
                    Tried(
                        generation=t["generation"],
                        parameters=t["parameters"],
                        means=None if t["means"] is None else (t["means"][0], t["means"][1]),
                        error=t["error"],
                    )
                    for t in one["trials"]
                ),
                confirmed=tuple(
                    Confirmed(
                        parameters=c["parameters"],
                        estimates=None if c["estimates"] is None else _estimates(c["estimates"]),
                        label=c["label"],
                        chosen=c["chosen"],
                        front=c["front"],
                    )
                    for c in one["confirmed"]
                ),
                left=tuple(
                    Left(
                        reference=left["reference"],
                        objective=left["objective"],
                        parameters=left["parameters"],
                        same=left["same"],
                        estimates=_estimates(left["estimates"]),
                        differences=_estimates(left["differences"]),
                    )
                    for left in one["left"]
                ),
            )
            for one in said["searches"]
        ]
        return cls._of({key: value for key, value in said.items() if key != "searches"}, searches)

    def to_dict(self) -> dict[str, Any]:
        """The answer of `celltrain tune --json`."""
        return {
            **self.facts,
            "searches": [
                {
                    "values": one.values,
                    "title": one.title,
                    "trials": [
                        {
                            "generation": t.generation,
                            "parameters": t.parameters,
                            "means": None if t.means is None else list(t.means),
                            "error": t.error,
                        }
                        for t in one.trials
                    ],
                    "confirmed": [
                        {
                            "parameters": c.parameters,
                            "estimates": None if c.estimates is None else list(map(_said, c.estimates)),
                            "label": c.label,
                            "chosen": c.chosen,
                            "front": c.front,
                        }
                        for c in one.confirmed
                    ],
                    "left": [
                        {
                            "reference": left.reference,
                            "objective": left.objective,
                            "parameters": left.parameters,
                            "same": left.same,
                            "estimates": list(map(_said, left.estimates)),
                            "differences": list(map(_said, left.differences)),
                        }
                        for left in one.left
                    ],
                }
                for one in self.searches
            ],
        }

    def to_json(self) -> str:
        """The same as text, a line for each trial and setting."""
        said = self.to_dict()
        searches = said.pop("searches")
        lines = [
            f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}"
            for key, value in said.items()
        ]
        blocks = []
        for one in searches:
            parts = []
            for key, value in one.items():
                if isinstance(value, list) and value:
                    rows = ",\n  ".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in value)
                    parts.append(f"{json.dumps(key)}: [\n  {rows}]")
                else:
                    parts.append(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
            blocks.append("{" + ",\n ".join(parts) + "}")
        lines.append('"searches": [' + ",\n".join(blocks) + "]")
        return "{" + ",\n".join(lines) + "}\n"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Settings on a front that carry less than half of what tail drop carries."""
        return tuple(self.facts.get("warnings", ()))

    @checked()
    def drawing(self, *, width: str = "page", style: str | None = None) -> Drawing:
        """The fronts: a panel for each configuration.

        Args:
            width: `"page"` (7.2 inches), or `"column"` (3.5 inches).
            style: A style of matplotlib, by its name or its file; ours when None.

        Raises:
            InputError: Where there is no such width or style.
        """
        from celltrain.drawing.figure import FigureStyle
        from celltrain.ensemble.tuning.figure import fronts

        return fronts(self.facts, self.searches, FigureStyle.of(width, style))

    def html(self) -> str:
        """The report as one page that needs nothing else."""
        from celltrain.ensemble.tuning.page import page

        return page(self.facts, self.searches, (self.drawing(), self.drawing(width="column")))

    @checked()
    def write(
        self,
        folder: str | os.PathLike[str],
        *,
        style: str | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> list[Path]:
        """Writes the page, the answer as JSON and the figure as SVG and PDF into a folder; returns the files.

        Args:
            folder: Where they go; it is made where it is not there.
            style: Of the figure: a style of matplotlib, by its name or its file; ours when None.
            progress: Called now and then with the share that is done, 0 to 1.

        Raises:
            InputError: Where there is no such style.
        """
        with writing(folder):
            return self._write(Path(folder), style, progress)

    def _write(self, folder: Path, style: str | None, progress: Callable[[float], object] | None) -> list[Path]:
        from celltrain.drawing.pages.html import write_figure
        from celltrain.ensemble.tuning.page import page

        drawings = self.drawing(style=style), self.drawing(width="column", style=style)
        written = write_figure(*drawings, inner(folder / "figures"))
        if progress is not None:
            progress(0.8)
        answer = folder / "tune.json"
        replace(answer, self.to_json())
        # Last, so that a folder with a page has everything.
        html = folder / "tune.html"
        replace(html, page(self.facts, self.searches, drawings))
        return [html, answer, *written]

    def __repr__(self) -> str:
        return f"Tuned({self.facts['name']!r}, {len(self.searches)} searches of {self.facts['trials']} trials)"


def _searched(plan: TunePlan, search: Search, configuration: int) -> Searched:
    found, confirmation = search.found, plan.confirmation
    history, chosen = search.histories[configuration], search.chosen[configuration]
    labels = {reference.numbers: reference.label for reference in plan.references}
    # References first: of equals it is the reference that is best, and nothing was left.
    settings = list(dict.fromkeys([*labels, *chosen]))
    values = [found.values((configuration, numbers), confirmation) for numbers in settings]
    known = [None if one is None else _mean(one) for one in values]
    means = np.array([[np.nan] * 2 if one is None else [e.mean for e in one] for one in known]).reshape(-1, 2)
    better = search.better(means)
    front = statistics.pareto_front(better[:, 0], better[:, 1])
    order = sorted(range(len(settings)), key=lambda i: (np.isnan(better[i, 0]), -better[i, 0], -better[i, 1]))
    confirmed = tuple(
        Confirmed(
            parameters=_named(plan, settings[i]),
            estimates=known[i],
            label=labels.get(settings[i]),
            chosen=settings[i] in chosen,
            front=bool(front[i]),
        )
        for i in order
    )
    return Searched(
        values=plan.configurations.points[configuration].values,
        title=title(plan, configuration),
        trials=tuple(
            Tried(
                generation=trial.generation,
                parameters=_named(plan, trial.numbers),
                means=trial.values,
                error=None if trial.values is not None else found.error((configuration, trial.numbers)),
            )
            for trial in history
        ),
        confirmed=confirmed,
        left=tuple(_left(plan, search, configuration, settings, dict(zip(settings, values, strict=True)))),
    )


def _warnings(plan: TunePlan, search: Search, configuration: int, searched: Searched) -> Iterator[str]:
    """Settings on the front that carry much less than tail drop."""
    of_tail_drop = search.tail_drop[configuration]
    fronts = [one.parameters for one in searched.confirmed if one.front]
    for numbers in search.chosen[configuration]:
        own = search.found.delivered((configuration, numbers), plan.confirmation)
        if of_tail_drop is None or own is None or _named(plan, numbers) not in fronts:
            continue
        told = tail_drop.warning(plan, searched.title, numbers, own, of_tail_drop)
        if told is not None:
            yield told


def _left(
    plan: TunePlan,
    search: Search,
    configuration: int,
    settings: Sequence[Numbers],
    values: Mapping[Numbers, NDArray[np.float64] | None],
) -> list[Left]:
    means = search.better(search.means([(configuration, numbers) for numbers in settings], plan.selection))
    answer = []
    for reference in plan.references:
        own = settings.index(reference.numbers)
        base = values[reference.numbers]
        if base is None or np.isnan(means[own]).any():
            continue
        for objective in (0, 1):
            place = analysis.best(means[:, objective], means[:, 1 - objective], float(means[own, 1 - objective]))
            assert place is not None, "the reference is as good as itself"
            its = values[settings[place]]
            if its is None:
                continue
            answer.append(
                Left(
                    reference=reference.label,
                    objective=objective,
                    parameters=_named(plan, settings[place]),
                    same=place == own,
                    estimates=_mean(its),
                    differences=_mean(its - base),
                )
            )
    return answer


def _mean(values: NDArray[np.float64]) -> tuple[Estimate, Estimate]:
    """The means of both columns."""
    group = np.zeros(len(values), np.int64)
    found = [statistics.means(group, values[:, i], 1) for i in (0, 1)]
    first, second = (Estimate(mean=float(one.mean[0]), half=float(one.half[0])) for one in found)
    return first, second


def _named(plan: TunePlan, numbers: Numbers) -> dict[str, float]:
    return {parameter.name: float(number) for parameter, number in zip(plan.parameters, numbers, strict=True)}


def _said(estimate: Estimate) -> dict[str, float | None]:
    return {"mean": estimate.mean, "half": None if math.isnan(estimate.half) else estimate.half}


def _estimates(said: Sequence[Mapping[str, Any]]) -> tuple[Estimate, Estimate]:
    first, second = (Estimate(mean=one["mean"], half=math.nan if one["half"] is None else one["half"]) for one in said)
    return first, second
