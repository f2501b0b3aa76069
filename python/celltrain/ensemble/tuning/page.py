"""The page of a search: its tables, for the template `tune.html`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from celltrain.drawing.figure import Drawing
from celltrain.drawing.pages import words
from celltrain.drawing.pages.html import Cell, Head, Inlined, Table, bold, count, estimate, render, table, value
from celltrain.ensemble.tuning.outcome import Estimate, Searched
from celltrain.text import shown


def page(facts: Mapping[str, Any], searches: Sequence[Searched], drawings: tuple[Drawing, Drawing]) -> str:
    """Renders a search as one HTML page, with its figure in both widths."""
    names = [one["measure"] for one in facts["objectives"]]
    return render(
        "ensemble/tuning/tune.html",
        "tune",
        title=facts["name"] or "A search",
        facts=facts,
        searches=searches,
        warnings=facts.get("warnings", ()),
        parameters=_parameters(facts),
        measures=table(
            "measures",
            ["measure", "unit", "better", "meaning"],
            [[bold(one["measure"]), one["unit"], one["better"], one["meaning"]] for one in facts["objectives"]],
        ),
        drawing=Inlined.of(*drawings),
        left=_left(facts, searches, names) if any(searched.left for searched in searches) else None,
        configurations=[
            {
                "title": shown(searched.title) or "Settings",
                "confirmed": _confirmed(facts, searched, names),
                "trials": _trials(facts, searched, names),
            }
            for searched in searches
        ],
    )


def _parameters(facts: Mapping[str, Any]) -> Table:
    rows = []
    for one in facts["parameters"]:
        low, high = (words.valued(one[word], one["unit"]) for word in ("from", "to"))
        step = "any" if one["step"] is None else words.valued(one["step"], one["unit"])
        references = [
            f"{shown(r['label'])}: {words.valued(r['parameters'][one['name']], one['unit'])}"
            for r in facts["references"]
        ]
        rows.append([bold(one["name"]), f"{low} to {high}", step, one["scale"], "; ".join(references), one["path"]])
    return table("parameters", ["parameter", "range", "step", "scale", "references", "what it sets"], rows)


def _left(facts: Mapping[str, Any], searches: Sequence[Searched], names: Sequence[str]) -> Table:
    rows = [
        [
            shown(searched.title),
            shown(left.reference),
            names[left.objective],
            *_settings(facts, left.parameters),
            *map(_estimate, left.estimates),
            *(
                Cell("nothing", 0.0) if left.same else estimate(one.mean, one.half, signed=True, mark=one.beyond)
                for one in left.differences
            ),
        ]
        for searched in searches
        for left in searched.left
    ]
    differences = [Head(f"Δ {name}", "setting less reference") for name in names]
    heads = ["configuration", "reference", "best in", *_heads(facts), *names, *differences]
    return table("left on the table", heads, rows)


def _confirmed(facts: Mapping[str, Any], searched: Searched, names: Sequence[str]) -> Table:
    rows = [
        [
            shown(one.label or ""),
            *_settings(facts, one.parameters),
            *(["failed"] * 2 if one.estimates is None else map(_estimate, one.estimates)),
            bold("front") if one.front else "beaten",
        ]
        for one in searched.confirmed
    ]
    return table(searched.title, ["reference", *_heads(facts), *names, ""], rows)


def _trials(facts: Mapping[str, Any], searched: Searched, names: Sequence[str]) -> Table:
    rows = [
        [
            count(place),
            count(trial.generation + 1),
            *_settings(facts, trial.parameters),
            *(
                [shown(trial.error or "failed"), ""]
                if trial.means is None
                else [Cell(words.figure(mean), mean) for mean in trial.means]
            ),
        ]
        for place, trial in enumerate(searched.trials, 1)
    ]
    title = f"The {words.counted(len(rows), 'trial')} of the search"
    return table(title, ["trial", "generation", *_heads(facts), *names], rows)


def _heads(facts: Mapping[str, Any]) -> list[Head]:
    return [Head(one["name"], one["path"]) for one in facts["parameters"]]


def _settings(facts: Mapping[str, Any], parameters: Mapping[str, float]) -> Iterator[Cell]:
    for one in facts["parameters"]:
        number = parameters[one["name"]]
        yield value(number, words.valued(number, one["unit"]))


def _estimate(one: Estimate) -> Cell:
    return estimate(one.mean, one.half)
