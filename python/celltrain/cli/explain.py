"""`celltrain list`, `explain` and `schema`: the names that a scenario or a plan may use, with their meanings."""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celltrain import _core
from celltrain.cli import options, shell
from celltrain.cli.catalog import KINDS, LISTED, SINGULAR, Entry, entries, everything, rules_of
from celltrain.drawing.words import prose
from celltrain.errors import InputError
from celltrain.model import shipped
from celltrain.model.grammar import OTHERWISE
from celltrain.model.grids import Line
from celltrain.model.measures import ROWS, RUN, result_schema
from celltrain.model.scenario import to_toml
from celltrain.text import among, nearest

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

    from celltrain.papers.paper import Description


#: Column headings in the tables of `list`, by field.
HEADS = {"name": "name", "unit": "unit", "summary": "meaning"}
#: Example of a row in the paths of listed measures, by table.
EXAMPLES = {"flows": "tcp1", "ports": "bottleneck", "links": "LINK", "memories": "SWITCH", "queues": "QUEUE"}
EXAMPLES |= {"contracts": "VC", "abr": "VC", "requests": "GROUP"}
#: The columns of a table of parameters.
PARAMETER: tuple[str, ...] = ("parameter", "type", "unit", "default", "range", "meaning")
#: The TCP parameters that users change most often.
ESSENTIAL = ("mss", "receive_window", "timer_granularity", "delayed_acks", "congestion")
#: The kinds of names that can be explained.
EXPLAINED = (
    "policy, scheduler, allocator, discard algorithm, TCP variant, congestion control, kind of traffic, topology, "
    "stack, service, paper, study, plan, scenario, measure or term"
)


#: Advice printed after the explanation of a measure.
ALL_MEASURES = "To list all measures: celltrain list measures; docs/concepts.md has their formulas"
#: Prefixes of pages and Python classes that are also named after the kind: memory_formula is the formula of a memory.
PAGE_NAMES = {"memory_policies": "memory_", "discards": "edge_"}

_WHAT = f"Kind of entries to list: {', '.join(LISTED)}. Without a kind, lists the kinds."
_KIND = typer.Argument(metavar="KIND", help=_WHAT, autocompletion=options.complete_kinds)


@shell.command
def list_(output: shell.Table, kind: Annotated[str | None, _KIND] = None) -> None:
    """List available models, stacks, services, papers, studies, plans, cases, scenarios or measures.

    Examples:
        celltrain list policies
        celltrain list scenarios --json
        celltrain list measures --csv measures.csv
    """
    if kind is None:
        rows = [{"kind": kind, "count": len(_listed(kind))} for kind in LISTED]
        grid = shell.grid(
            "kind", "how many", left=("kind",), rows=[(kind, f"{len(_listed(kind)):,}") for kind in LISTED]
        )
        hint = Line(text="To list one kind: celltrain list policies")
        output.show(rows, [grid, hint], lambda: rows)
        return
    plurals = {singular.replace(" ", "_"): plural for plural, singular in SINGULAR.items()} | {"measure": "measures"}
    wanted = plurals.get(kind, kind)
    if wanted not in LISTED:
        raise InputError.of_option("KIND", kind, f"is not a kind that can be listed; {among(kind, LISTED)}")
    notes = {
        "measures": "For several connections or ports: flows.sum(*).timeouts, flows.mean(tcp1-3).goodput_mbps; docs/sweeps.md",
        "policies": "Policies of memories that ports share: celltrain list memory_policies",
    }
    entries_of(wanted, output, note=notes.get(wanted, ""))


def entries_of(kind: str, output: shell.Output, hint: str = "", note: str = "") -> None:
    """Prints all names of a kind, one per line. `hint` is part of the answer; `note` is printed after it."""
    rows = _listed(kind)
    cells = [["" if (name, text) == ("unit", "1") else text for name, text in row.items()] for row in rows]
    grid = shell.grid(*map(HEADS.__getitem__, rows[0]), left=HEADS.values(), rows=cells)
    output.show(rows, [grid, *([Line(text=hint)] if hint else [])], lambda: rows)
    if note:
        output.note(note)


def _listed(kind: str) -> list[dict[str, str]]:
    """Returns the names of a kind. Measures are named by the path to each number of a run."""
    if kind != "measures":
        return [{"name": entry.name, "summary": entry.summary} for entry in entries(kind)]

    measures = [("", one) for one in RUN]
    measures += [(f"{rows}.{EXAMPLES[rows]}.", one) for rows, columns in ROWS.items() for one in columns]
    return [
        {"name": f"{path}{one.name}", "unit": one.unit, "summary": one.meaning}
        for path, one in measures
        if one.kind != "string"
    ]


@shell.command
def explain(
    output: shell.Answer,
    name: Annotated[str | None, {"autocompletion": options.complete_explained}] = None,
    page: bool = False,
    settings: options.Set = None,
) -> None:
    """Explain a model: its parameters with type, unit, default and range, and its page. Print an example plan or scenario.

    Argument:
        name: A policy, scheduler, allocator, discard algorithm, TCP variant, congestion control, kind of traffic,
            topology, stack, service (abr, gfr), paper, study, example plan or scenario, a measure, or a term such as
            'tail drop'. If two have the name, put the kind before it: discards/tail_drop.

    Scenario:
        settings (PATH=VALUE): Print a scenario with this setting. May be repeated.

    Options:
        page: Print the whole page of a TCP variant: all parameters, symbols, validation. After a scenario, print the
            rules that hold for each TCP, and whether a profile or the scenario sets them.

    Examples:
        celltrain explain fba
        celltrain explain vanilla --page
        celltrain explain lan-epd > mine.toml
    """
    from celltrain.ensemble.cases import measured

    if name is None:
        names = {kind: [entry.name for entry in entries(kind)] for kind in KINDS}
        rows = [(kind, ", ".join(those)) for kind, those in names.items()]
        grid = shell.grid("kind", "names", left=("kind", "names"), rows=rows)
        output.show(names, [grid, Line(text="To explain an entry: celltrain explain fba")], list)
        return
    wanted = name.removesuffix(".toml")
    named = [
        entry
        for entry in everything()
        if wanted in (entry.name, f"{entry.kind}/{entry.name}", f"{PAGE_NAMES.get(entry.kind, '/')}{entry.name}")
    ]
    if not named and (about := measured(wanted)).meaning != wanted:
        answer = {"kind": "measures", "name": wanted, "unit": about.unit, "meaning": about.meaning}
        output.tell(answer, _measure(wanted, about.unit, about.meaning), ALL_MEASURES)
        return
    exact = [] if named else _measures(wanted, exact=True)
    found = None if named or exact else _term(wanted)
    if found is not None:
        term, meaning = found
        model = re.sub(r"[ -]", "_", term.lower())
        known = any(entry.name == model for entry in everything())
        more = f"The model: celltrain explain {model}" if known else "All terms: docs/glossary.md"
        output.tell({"kind": "terms", "name": term, "meaning": meaning}, f"{term}: {meaning}", more)
        return
    if measures := exact or ([] if named else _measures(wanted)):
        lines = [_measure(row["name"], row["unit"], row["summary"]) for row in measures]
        output.tell({"kind": "measures", "name": wanted, "measures": measures}, *lines, ALL_MEASURES)
        return
    if not named:
        raise InputError.of_option("name", name, f"is not a {EXPLAINED}{_advice(wanted)}")
    entry, *others = named
    if settings:
        entry = _changed(entry, settings)
    if output.form == "json":
        shell.answer(entry.to_dict())
    elif entry.kind in ("plans", "scenarios"):
        typer.echo(entry.page, nl=False)
        if page and entry.kind == "scenarios":
            typer.echo("\n".join(_rules(entry)))
    else:
        for one in named:
            if others:
                shell.say(
                    f"{'' if one is entry else chr(10)}{one.name} as a {SINGULAR[one.kind]} ({one.kind}/{one.name}):\n"
                )
            _show(one, whole=page)
            if one.kind == "stacks":
                shell.say("\nHow to use or write a stack: docs/real-stacks.md")


def _measures(wanted: str, *, exact: bool = False) -> list[dict[str, str]]:
    """Returns the measures with this last part of their path, or with this name without its unit and statistic.

    With `exact`, the name must have both. The case of letters is ignored.
    """
    name, says = re.sub(r"[ -]", "_", wanted.lower()), ""
    if found := re.match(r"(queue?ing_delay|latency)", name):
        name = f"delay{name.removeprefix(found[0])}"
        says = "" if found[0] == "latency" else "queueing delay"
    columns = [(row, row["name"].rpartition(".")[2]) for row in _listed("measures") if says in row["summary"]]
    if same := [row for row, column in columns if column == name]:
        return same
    names = [(row, {_stem(column), re.sub(r"_(mean|p\d+)$", "", column)}) for row, column in columns]
    return [] if exact else [row for row, shorter in names if name in shorter]


def _stem(name: str) -> str:
    """Returns the name of a measure without its unit and what follows it.

    >>> _stem("rtt_ms_p99"), _stem("throughput_mbps"), _stem("queueing_delay")
    ('rtt', 'throughput', 'queueing_delay')
    """
    return re.sub(r"_(ms|s|mbps|cells|bytes)(_\w+)?$", "", name)


def _measure(name: str, unit: str, meaning: str) -> str:
    return f"{name} is a measure{'' if unit in ('', '1') else f', in {unit}'}: {prose(meaning)}"


def _term(wanted: str) -> tuple[str, str] | None:
    """Returns a term of the glossary with its meaning; None if there is none. A term may be written out or plural."""
    terms = {term.lower(): (term, meaning) for term, meaning in shipped.glossary().items()}
    for name in (wanted.lower(), wanted.lower().removesuffix("s")):
        if name in terms:
            return terms[name]
        # The meaning of an abbreviation begins with its long form: FBA | Fair buffer allocation: ...
        written_out = [one for one in terms.values() if one[1].lower().startswith((f"{name}:", f"{name}."))]
        if written_out:
            return written_out[0]
    return None


def _advice(wanted: str) -> str:
    """Returns the end of a message about a name that does not exist."""
    known = [entry.name for entry in everything()]
    known += [measure.name for listed in (RUN, *ROWS.values()) for measure in listed]
    known += [term.lower() for term in shipped.glossary() if re.sub(r"[ -]", "_", term.lower()) not in known]
    known = list(dict.fromkeys(known))
    near = difflib.get_close_matches(wanted.lower().replace("-", "_"), known, n=3, cutoff=0.5)
    initials = nearest(wanted, [name for name in known if "_" in name], cutoff=1.0)
    near = [initials] if initials else near
    # The words of a page's name in another order, for example memory_python for python_memory.
    pages = [f"{PAGE_NAMES[entry.kind]}{entry.name}" for entry in everything() if entry.kind in PAGE_NAMES]
    near = [page for page in pages if sorted(page.split("_")) == sorted(wanted.lower().split("_"))] or near
    hint = f"did you mean {' or '.join(map(shlex.quote, near))}?" if near else "see: celltrain list policies"
    return f"; {OTHERWISE.get(wanted.lower(), hint)}"


def _rules(entry: Entry) -> Iterator[str]:
    """Yields comments that name the rules of each TCP of a scenario, and where each is from."""
    document = json.loads(_core.toml(entry.page or "", entry.name))["root"]
    above = ""
    for path, key, value, origin in rules_of(document):
        if path != above:
            above = path
            yield f"\n# Rules of {path}, each followed by its origin, a profile or the scenario:"
        yield f"# {f'{key} = {json.dumps(value)}':<55} {origin}"


def _changed(entry: Entry, settings: list[str]) -> Entry:
    """Returns a shipped scenario as a TOML page, with the given settings changed."""
    from celltrain.model.types import Scenario

    if entry.kind != "scenarios":
        problem = f"applies only to scenarios; {entry.name} is one of the {entry.kind}"
        raise InputError.of_option("--set", settings[0], problem)
    scenario = shell.scenario(Path(entry.name), settings)
    assert isinstance(scenario, Scenario), "only a scenario has settings"
    return replace(entry, page=to_toml(scenario, head=f"{entry.name} with {', '.join(settings)}."))


def _show(entry: Entry, *, whole: bool) -> None:
    """Prints an entry's page and parameters; for a TCP only the main ones, unless `whole`."""
    console = shell.console()
    width = min(console.width, 100)
    page, parameters, columns = entry.page, entry.parameters, PARAMETER
    is_brief = entry.kind == "tcp" and not whole
    if is_brief and page is not None:
        title, *sections = page.split("\n## ")
        page = "\n## ".join([title, *(one for one in sections if one.startswith(("What it does\n", "Source\n")))])
        parameters = tuple(one for one in parameters if one.name in ESSENTIAL)
        columns = ("parameter", "default", "meaning")
    if page is None:
        shell.say(f"{entry.name} ({SINGULAR[entry.kind]}): {entry.summary}\n")
        console.print(entry.description, width=width)
    else:
        console.print(_markdown(page), width=width)
    if parameters:
        cells = [
            dict(
                zip(PARAMETER, (one.name, one.type, one.unit, one.default_text(), one.range, one.meaning), strict=True)
            )
            for one in parameters
        ]
        rows = [[cell[name] for name in columns] for cell in cells]
        console.print()
        console.print(shell.grid(*columns, left=columns, rows=rows))
    if is_brief:
        left = len(entry.parameters) - len(parameters)
        shell.say(f"\n{left} more parameters, ranges, symbols and validation: celltrain explain {entry.name} --page")


def _markdown(page: str) -> RenderableType:
    """Renders a page for a terminal. Its tables wrap long words instead of cutting them off."""
    from rich.markdown import Markdown, TableElement
    from rich.table import Table

    class WholeTable(TableElement):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
            for table in super().__rich_console__(console, options):
                assert isinstance(table, Table), "the lines form a Markdown table"
                for column in table.columns:
                    column.overflow = "fold"
                yield table

    class Whole(Markdown):
        elements = {**Markdown.elements, "table_open": WholeTable}  # noqa: RUF012

    return Whole(page, hyperlinks=False)


@shell.command
def schema(output: shell.Answer, plan: bool = False, result: bool = False) -> None:
    """Print the JSON Schema of a scenario, a plan or a result, for editors and other programs.

    Options:
        plan: Print the schema of sweep and tune plans instead.
        result: Print the schema of the answer of run --json.

    Examples:
        celltrain schema > scenario.schema.json
        celltrain schema --plan > plan.schema.json
        celltrain schema --result > result.schema.json
    """
    from celltrain.ensemble.plan.forms import json_schema

    # The schema is JSON, with or without --json.
    if plan and result:
        raise InputError.of_option("--plan", "", "cannot be combined with --result; give one of them")
    shell.answer(result_schema() if result else json_schema() if plan else json.loads(_core.schema()))


# `celltrain cite` prints BibTeX entries of celltrain and of the papers that it reproduces.


#: Title and authors, as in CITATION.cff, and the date of the last release.
TITLE = "celltrain: a cell-accurate simulator of TCP and real stacks over packet switches and ATM"
AUTHORS = "The celltrain developers"
RELEASED = "2026-11-23"
#: Forms of the text that says where a paper was published, with the type and the fields of its entry.
_FORMS: tuple[tuple[str, str, dict[str, str]], ...] = (
    (r"ATM Forum contribution (?P<number>\S+), ", "techreport", {"institution": "ATM Forum", "type": "Contribution"}),
    (r"Internet-Draft (?P<number>\S+), ", "techreport", {"institution": "IETF", "type": "Internet-Draft"}),
    (r"(?P<journal>\D+) (?P<volume>\d+)\((?P<number>\d+)\), .*pages (?P<pages>\S+)$", "article", {}),
)


@shell.command
def cite(output: shell.Answer, paper: str | None = None) -> None:
    """Print BibTeX entries of this celltrain, with its commit, and of the papers that it reproduces.

    Argument:
        paper (PAPER): Only the entry of this paper, such as af-96-1269.

    Examples:
        celltrain cite
        celltrain cite af-96-1269
        celltrain cite --json
    """
    from celltrain.papers.paper import PAPER, describe, load

    if paper is None:
        entries = [_own(), *(_of_paper(describe(one, PAPER)) for one in PAPER.ids())]
    else:
        entries = [_of_paper(load(paper))]
    answer = {"entries": [entry.to_dict() for entry in entries], "build": _core.build()}
    output.tell(answer, *(entry.bibtex for entry in entries))


@dataclass(frozen=True, kw_only=True)
class Citation:
    """A BibTeX entry."""

    key: str
    kind: str
    fields: dict[str, str]

    @property
    def bibtex(self) -> str:
        """The entry as text."""
        return "\n".join([f"@{self.kind}{{{self.key},", *self._lines(), "}"])

    def _lines(self) -> Iterator[str]:
        for name, value in self.fields.items():
            # Two pairs of braces keep the capitals of a title, and mark an institution as a single name.
            text = re.sub(r"([&%#_$])", r"\\\1", value).replace("-", "--" if name == "pages" else "-")
            whole = name == "title" or value == AUTHORS
            yield f"  {name} = {{{{{text}}}}}," if whole else f"  {name} = {{{text}}},"

    def to_dict(self) -> dict[str, Any]:
        """Returns the entry for `--json`."""
        return {"key": self.key, "type": self.kind, "fields": self.fields, "bibtex": self.bibtex}


def _own() -> Citation:
    build = _core.build()
    note = f"Version {build['version']}"
    if build["commit"] is None:
        note = f"Version {build['version']}, built without git, so its commit is unknown"
    fields = {"author": AUTHORS, "title": TITLE, "year": RELEASED[:4], "note": note}
    return Citation(key="celltrain", kind="misc", fields=fields)


def _of_paper(paper: Description) -> Citation:
    fields = {"author": " and ".join(paper.authors), "title": paper.title, "year": str(paper.year)}
    for form, kind, more in _FORMS:
        if match := re.match(form, paper.published_in):
            return Citation(key=paper.id, kind=kind, fields={**fields, **more, **match.groupdict()})
    return Citation(key=paper.id, kind="misc", fields={**fields, "howpublished": paper.published_in})


COMMANDS = {"list": list_, "explain": explain, "schema": schema, "cite": cite}
