"""The page of a search: what its template is filled with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from celltrain.drawing.pages import words
from celltrain.drawing.pages.html import Cell, Head, Inlined, Table, environment
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.drawing.pages.drawing import Drawing
    from celltrain.ensemble.tuning.analysis import Estimate, Searched
    from celltrain.ensemble.tuning.result import Tuned


def page(tuned: Tuned, drawings: tuple[Drawing, Drawing] | None = None) -> str:
    """A search as one HTML page, its figure in both widths."""
    both = drawings or (tuned.drawing(), tuned.drawing(width="column"))
    text: str = environment("tune").get_template("ensemble/tuning/tune.html").render(_content(tuned, Inlined.of(*both)))
    return text


def _content(tuned: Tuned, drawing: Inlined) -> dict[str, Any]:
    facts = tuned.facts
    left = _left(tuned)
    configurations = [
        {
            "id": f"configuration-{place + 1}",
            "title": shown(searched.title) or "Settings",
            "confirmed": _confirmed(tuned, searched),
            "trials": _trials(tuned, searched),
        }
        for place, searched in enumerate(tuned.searches)
    ]
    build = "" if facts["profile"] == "release" else f", a {facts['profile']} build"
    return {
        "title": facts["name"] or "A search",
        "subtitle": f"Parameters searched by celltrain {facts['version']}{build} with Optuna {facts['optuna']}",
        "contents": [
            ("searched", "What was searched"),
            ("fronts", "The fronts"),
            *([("left", "Left on the table")] if left.rows else []),
            *((one["id"], one["title"]) for one in configurations),
            ("reading", "How to read this"),
        ],
        "facts": list(_facts(tuned)),
        "warnings": tuned.warnings,
        "parameters": _parameters(tuned),
        "measures": _measures(tuned),
        "drawing": drawing,
        "left": left if left.rows else None,
        "confirmation": facts["seeds"]["confirmation"]["count"],
        "configurations": configurations,
    }


def _facts(tuned: Tuned) -> Iterator[dict[str, str]]:
    facts, count = tuned.facts, len(tuned.searches)
    yield {"number": f"{count:,}", "text": "search" if count == 1 else "searches"}
    yield {"number": f"{facts['trials']:,}", "text": "trials each"}
    for word, text in (("search", "seeds a trial"), ("selection", "to choose"), ("confirmation", "to confirm")):
        yield {"number": f"{facts['seeds'][word]['count']:,}", "text": text}
    yield {"number": f"{facts['runs']:,}", "text": "runs"}
    yield {"number": f"{facts['failed']:,}", "text": "failed"}


def _parameters(tuned: Tuned) -> Table:
    rows = []
    for one in tuned.facts["parameters"]:
        ends = [words.valued(one[word], one["unit"]) for word in ("from", "to")]
        step = "any" if one["step"] is None else words.valued(one["step"], one["unit"])
        of_references = [
            f"{shown(r['label'])}: {words.valued(r['parameters'][one['name']], one['unit'])}"
            for r in tuned.facts["references"]
        ]
        cells = (one["name"], f"{ends[0]} to {ends[1]}", step, one["scale"], "; ".join(of_references), one["path"])
        rows.append([Cell(text=text, mark=place == 0) for place, text in enumerate(cells)])
    heads = [Head(text=text) for text in ("parameter", "range", "step", "scale", "references", "what it sets")]
    return Table(title="parameters", heads=heads, rows=rows)


def _measures(tuned: Tuned) -> Table:
    rows = [
        [
            Cell(text=one["measure"], mark=True),
            Cell(text=one["unit"]),
            Cell(text=one["better"]),
            Cell(text=one["meaning"]),
        ]
        for one in tuned.facts["objectives"]
    ]
    return Table(
        title="measures", heads=[Head(text=text) for text in ("measure", "unit", "better", "meaning")], rows=rows
    )


def _left(tuned: Tuned) -> Table:
    names = [one["measure"] for one in tuned.facts["objectives"]]
    rows = [
        [
            Cell(text=shown(searched.title)),
            Cell(text=shown(left.reference)),
            Cell(text=names[left.objective]),
            *_settings(tuned, left.parameters),
            *(_estimate(one) for one in left.estimates),
            *(
                Cell(text="nothing", key=0.0) if left.same else _estimate(one, signed=True, mark=one.beyond)
                for one in left.differences
            ),
        ]
        for searched in tuned.searches
        for left in searched.left
    ]
    heads = [
        *(Head(text=text) for text in ("configuration", "reference", "best in")),
        *_parameter_heads(tuned),
        *(Head(text=name) for name in names),
        *(Head(text=f"Δ {name}", meaning="setting less reference") for name in names),
    ]
    return Table(title="left on the table", heads=heads, rows=rows)


def _confirmed(tuned: Tuned, searched: Searched) -> Table:
    rows = [
        [
            Cell(text=shown(c.label or "")),
            *_settings(tuned, c.parameters),
            *([Cell(text="failed")] * 2 if c.estimates is None else [_estimate(one) for one in c.estimates]),
            Cell(text="front" if c.front else "beaten", mark=c.front),
        ]
        for c in searched.confirmed
    ]
    names = [one["measure"] for one in tuned.facts["objectives"]]
    heads = [Head(text="reference"), *_parameter_heads(tuned), *(Head(text=name) for name in names), Head(text="")]
    return Table(title=searched.title, heads=heads, rows=rows)


def _trials(tuned: Tuned, searched: Searched) -> Table:
    names = [one["measure"] for one in tuned.facts["objectives"]]
    rows = [
        [
            Cell(text=str(place + 1), key=float(place + 1)),
            Cell(text=str(trial.generation + 1), key=float(trial.generation + 1)),
            *_settings(tuned, trial.parameters),
            *(
                [Cell(text=shown(trial.error or "failed")), Cell(text="")]
                if trial.means is None
                else [Cell(text=words.figure(mean), key=mean) for mean in trial.means]
            ),
        ]
        for place, trial in enumerate(searched.trials)
    ]
    heads = [
        Head(text="trial"),
        Head(text="generation"),
        *_parameter_heads(tuned),
        *(Head(text=name) for name in names),
    ]
    return Table(title=f"The {words.counted(len(rows), 'trial')} of the search", heads=heads, rows=rows)


def _parameter_heads(tuned: Tuned) -> Sequence[Head]:
    return [Head(text=one["name"], meaning=one["path"]) for one in tuned.facts["parameters"]]


def _settings(tuned: Tuned, parameters: dict[str, float]) -> Iterator[Cell]:
    for one in tuned.facts["parameters"]:
        value = parameters[one["name"]]
        yield Cell(text=words.valued(value, one["unit"]), key=value)


def _estimate(estimate: Estimate, *, signed: bool = False, mark: bool = False) -> Cell:
    text = words.estimated(estimate.mean, estimate.half)
    return Cell(text=f"+{text}" if signed and estimate.mean > 0 else text, key=estimate.mean, mark=mark)
