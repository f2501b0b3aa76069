"""Builds the tables of pages whose data are elsewhere. `docs/site/conf.py` calls `filled` for every page of the site.

A page has one of these lines where a table belongs:

[All numbers](results/tagging/numbers.csv)    a line with nothing but a link to a CSV file or a table of standards
<!-- built: flows -->                         a comment with the name of a table of the core or of the package

If pages are not built, the link leads to the data.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import paper_page
import site_pages
import standards
from celltrain.cli.catalog import CHOICES, Parameter, entries, page_of
from celltrain.model.measures import EVENTS, ROWS, RUN, SERIES, Measure

#: A line that contains only a link to a file with data.
LINK = re.compile(r"^\[[^\]\n]+\]\(([\w./-]+\.(?:csv|toml))\)$", re.MULTILINE)
NAMED = re.compile(r"^<!-- built: (\w+) -->$", re.MULTILINE)
COLUMNS = ("unit", "type", "meaning")


def filled(page: Path, text: str) -> str:
    """Returns a page's text with its tables. `KeyError` names an unknown table, `OSError` a missing file."""
    text = NAMED.sub(lambda found: parameters(page.stem) if found[1] == "parameters" else TABLES[found[1]](), text)
    return LINK.sub(lambda found: f"{of_file(page.parent / found[1])}\n\n[Data]({found[1]})", text)


def of_file(path: Path) -> str:
    """Returns the table of a CSV file, the numbers or claims of a paper or study, or the rules of a standard."""
    if path.suffix == ".toml":
        return standards.page(path)
    if build := {"numbers": paper_page.numbers, "claims": paper_page.claims}.get(path.stem):
        return build(path.parent.name)
    with path.open(encoding="utf-8", newline="") as handle:
        heads, *rows = csv.reader(handle)
    words = tuple(head for place, head in enumerate(heads) if not all(_is_number(row[place]) for row in rows))
    return paper_page.grid(heads, [[cell.replace("|", "\\|") for cell in row] for row in rows], left=words)


def _is_number(cell: str) -> bool:
    return not re.search(r"[A-Za-z]{2}", cell)


def parameters(page: str) -> str:
    """Returns the table of a model's parameters."""
    [entry] = [one for kind in CHOICES for one in entries(kind) if page_of(kind, one.name) == page]
    rows = [[f"`{p.name}`", p.type, p.unit, default(p), p.range, p.meaning] for p in entry.parameters]
    heads = ["key", "type", "unit", "default", "range", "meaning"]
    return paper_page.grid(heads, [[text.replace("|", "\\|") for text in row] for row in rows], left=tuple(heads))


def default(parameter: Parameter) -> str:
    """Returns the default of a parameter as TOML, or the reason why there is none."""
    if parameter.required:
        return "required"
    if parameter.default is None:
        return "absent"
    others = {name: value for name, value in parameter.rules.items() if value != parameter.default}
    texts = [f"`{json.dumps(value, ensure_ascii=False)}`" for value in (parameter.default, *others.values())]
    return "; ".join([texts[0], *(f"{name}: {text}" for name, text in zip(others, texts[1:], strict=True))])


def measures(listed: Sequence[Measure]) -> str:
    """Returns a table with a line for each measure."""
    return paper_page.grid(["measure", *COLUMNS], [described(one) for one in listed], left=("measure", *COLUMNS))


def columns(kinds: Mapping[str, object], head: str) -> str:
    """Returns a table with a line for each column of each series, or of each kind of event."""
    rows = [[f"`{kind.name}`", *described(one)] for kind in kinds.values() for one in kind.columns]  # type: ignore[attr-defined]
    return paper_page.grid([head, "column", *COLUMNS], rows, left=(head, "column", *COLUMNS))


def described(measure: Measure) -> list[str]:
    """Returns the name, unit, type and meaning of a measure; strings have no unit."""
    return [f"`{measure.name}`", measure.unit or "-", measure.kind, measure.meaning]


#: Tables by the name in a page's comment.
TABLES: dict[str, Callable[[], str]] = {
    **{name: lambda listed=listed: measures(listed) for name, listed in {"run": RUN, **ROWS}.items()},  # type: ignore[misc]
    "series": lambda: columns(SERIES, "series"),
    "events": lambda: columns(EVENTS, "kind"),
    "models": site_pages.models,
    "api": site_pages.api,
}
