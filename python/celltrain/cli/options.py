"""Options that commands share, in the groups of the help (scenario, ensemble, output), and their shell completion.

`celltrain --install-completion` sets completion up.
"""

from __future__ import annotations

import glob
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from celltrain.cli import catalog
from celltrain.errors import CelltrainError, InputError
from celltrain.model import measures, paths, scenario, shipped
from celltrain.model.arguments import MOST_JOBS
from celltrain.model.network import Network
from celltrain.text import shortened

SCENARIO, ENSEMBLE, OUTPUT = "Scenario", "Ensemble", "Output"
#: The largest seed, and the maximum number of runs of one command.
MOST_SEED, MOST_RUNS = (1 << 64) - 1, 1_000_000


def option(
    metavar: str | None, text: str, *names: str, panel: str | None = None, default: str | bool = True, **more: Any
) -> Any:
    """Creates an option; `metavar` is None if it takes no value, and `default` is the default shown in the help."""
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=panel, show_default=default, **more)


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Returns a parser for an option that takes a whole number in this range."""
    wanted = f" ({least:,} or more)" if most is None else f" from {least:,} to {most:,}"

    def number(text: str) -> int:
        # Typer also parses default values, so `text` may be a number.
        digits = str(text).replace("_", "")
        if re.fullmatch(r"[+-]?[0-9]{1,25}", digits):
            found = int(digits)
            if least <= found and (most is None or found <= most):
                return found
        raise typer.BadParameter(f"{shortened(str(text))!r} is not a whole number{wanted}")

    return number


@dataclass(frozen=True)
class OptionGroup:
    """Options that a command receives as one object: `Annotated[Made, OptionGroup(make, {name: (type, default)})]`."""

    make: Callable[..., Any]
    options: dict[str, tuple[Any, Any]]


def described(function: Callable[..., Any]) -> tuple[str, list[str], dict[str, Any]]:
    """Returns a command's help, its examples, and its annotations completed with the options in its docstring.

    A section of the docstring has the name of a help group, and a line `parameter (METAVAR): text [default: words]` for
    each option. Other properties of an option, such as a parser, are in a dictionary in its annotation. The sections
    `Argument` and `Examples` describe an argument and list commands.
    """
    examples: list[str] = []
    text, *sections = (inspect.getdoc(function) or "").split("\n\n")
    hints = get_type_hints(function, include_extras=True)
    for section in sections:
        panel, *lines = re.split(r":?\n    (?=\S)", section)
        if panel == "Examples":
            examples, lines = lines, []
        for line in lines:
            described = _DESCRIPTION.fullmatch(" ".join(line.split()))
            assert described is not None, f"{line} describes an option"
            name, metavar, meaning, default = described.groups()
            kind, more = hints[name], {}
            if hasattr(kind, "__metadata__"):
                kind, more = kind.__origin__, dict(kind.__metadata__[0])
            if panel == "Argument":
                made = typer.Argument(metavar=metavar, help=meaning, **more)
            else:
                names = more.pop("names", [f"--{name.replace('_', '-')}"])
                in_panel = None if panel == "Options" else panel
                made = option(metavar, meaning, *names, panel=in_panel, default=default or True, **more)
            hints[name] = Annotated[kind, made]
    return text, examples, hints


_DESCRIPTION = re.compile(r"(\w+)(?: \(([^)]+)\))?: (.+?)(?: \[default: (.+)\])?")


def setting(text: str, *names: str) -> Any:
    """Creates the option `--set`, which may have further names."""
    return option("PATH=VALUE", text, "--set", *names, panel=SCENARIO, autocompletion=complete_paths)


def listed(texts: list[str] | None) -> list[str] | None:
    """Returns the names given with `--names`.

    If the option is given once, its value contains all names. If it is repeated, each value is one name, which may
    contain commas.

    >>> listed(["efficiency, fairness", "cells.lost"])
    ['efficiency', 'fairness', 'cells.lost']
    """
    return None if texts is None else [name.strip() for text in texts for name in text.split(",") if name.strip()]


def names_of(texts: list[str] | None) -> list[str] | None:
    """Returns the names given with `--names`.

    If the option is given once, its value contains all names. If it is repeated, each value is one name, which may
    contain commas.

    >>> names_of(["EPD, PPD"]), names_of(["EPD (80%, static)", "PPD"])
    (['EPD', 'PPD'], ['EPD (80%, static)', 'PPD'])
    """
    return listed(texts) if texts is None or len(texts) == 1 else texts


@contextmanager
def naming() -> Iterator[None]:
    """Adds to errors about names an explanation of how `--names` separates them."""
    try:
        yield
    except InputError as error:
        how = "commas separate names; for a name with a comma, repeat --names for each"
        raise InputError(
            fault.changed(key="--names", problem=f"{fault.problem}; {how}") if fault.key == "names" else fault
            for fault in error.faults
        ) from None


def labelled(texts: list[str] | None) -> dict[str, str]:
    """Splits labels of measures and axes at their first equals sign; raises `InputError` if there is none.

    >>> labelled(["efficiency=Link use"])
    {'efficiency': 'Link use'}
    """
    found = {}
    for text in texts or []:
        path, sign, label = (part.strip() for part in text.partition("="))
        if not (path and sign and label):
            raise InputError.of_option("--labels", text, "is not PATH=TEXT, such as 'efficiency=Link use'")
        found[path] = label
    return found


def completer(
    names: Callable[[], Iterable[str]], *, several: bool = False, files: bool = False
) -> Callable[[str], list[str]]:
    """Returns a function that completes names: the last of `several` separated by commas, or also TOML `files`."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
        found = [f"{before}{comma}{name}" for name in names() if name.startswith(last)]
        return [*found, *_files(incomplete)] if files else found

    return complete


def _files(incomplete: str) -> list[str]:
    """Returns TOML files and folders that begin with `incomplete`; a slash is added to folders."""
    found = sorted(glob.glob(f"{glob.escape(incomplete)}*"))  # noqa: PTH207 -- a path prefix, not a path
    folders = [f"{path}/" for path in found if os.path.isdir(path)]  # noqa: PTH112
    return [*folders, *(path for path in found if path.endswith(".toml"))]


complete_shipped = completer(shipped.scenarios)
complete_scenarios = completer(shipped.scenarios, files=True)
complete_plans = completer(lambda: shipped.names("plan"), files=True)
complete_kinds = completer(lambda: catalog.LISTED)
complete_explained = completer(lambda: dict.fromkeys(entry.name for entry in catalog.everything()))
complete_measures = completer(lambda: (one.name for one in measures.RUN if one.kind != "string"), several=True)
complete_series = completer(lambda: measures.SERIES, several=True)


def complete_flows(context: typer.Context, incomplete: str) -> list[str]:
    """Completes connections of the scenario already given on the command line."""
    flows = network.flows if (network := _network(context)) else ()
    return completer(lambda: (flow.name for flow in flows))(incomplete)


def complete_hosts(context: typer.Context, incomplete: str) -> list[str]:
    """Completes hosts of the scenario already given on the command line."""
    nodes = network.nodes if (network := _network(context)) else ()
    return completer(lambda: (node.name for node in nodes if node.kind == "host"))(incomplete)


def _network(context: typer.Context) -> Network | None:
    file = context.params.get("file")
    try:
        return None if file is None else Network.of_core(scenario.read(file).accepted())
    except (CelltrainError, OSError):
        return None


def complete_paths(incomplete: str) -> list[str]:
    """Completes the next step of a path, such as `port.bottleneck.buffer=`; after `=`, values such as `epd`."""
    path, sign, values = incomplete.partition("=")
    parent, _, step = path.rpartition(".")
    try:
        if sign:
            return [f"{path}={one}" for one in completer(lambda: paths.choices(path), several=True)(values)]
        before = f"{parent}." if parent else ""
        return [f"{before}{one}" for one in completer(lambda: paths.steps(parent))(step)]
    except CelltrainError:
        return []


#: A whole number above 0.
Count = Annotated[int | None, {"parser": whole(1)}]
_FILE = "The scenario: a TOML file, or the name of a shipped one."
ScenarioFile = Annotated[Path, typer.Argument(metavar="FILE", help=_FILE, autocompletion=complete_scenarios)]
Set = Annotated[list[str] | None, {"names": ["--set"], "autocompletion": complete_paths}]
Settings = Annotated[
    list[str] | None, setting("Use this setting instead of the scenario's own. May be repeated.", "--vary")
]
PlanSettings = Annotated[
    list[str] | None, setting("Use this setting instead of the one in PLAN's scenario. May be repeated.")
]
Seed = Annotated[
    int | None, option("N", "Seed in place of the scenario's own seed.", panel=SCENARIO, parser=whole(0, MOST_SEED))
]
FirstSeed = Annotated[
    int, option("N", "First seed; the others are the next numbers.", panel=ENSEMBLE, parser=whole(0, MOST_SEED))
]
_NAMES = "Names in the table and the figure, separated by commas; or repeat the option, with one name each."
Names = Annotated[list[str] | None, option("NAMES", _NAMES, panel=OUTPUT)]
_MEASURES = "Measures to show, separated by commas; see: celltrain list measures."
_USUAL: dict[str, Any] = {"default": "efficiency,fairness", "autocompletion": complete_measures}
Measures = Annotated[list[str] | None, option("NAMES", _MEASURES, panel=ENSEMBLE, **_USUAL)]
Labels = Annotated[
    list[str] | None,
    option("PATH=TEXT", "Call this measure or axis TEXT in tables and figures. May be repeated.", panel=OUTPUT),
]
_JOBS = "Number of threads; by default, one for each core."
Jobs = Annotated[int | None, option("N", _JOBS, "--jobs", "--threads", panel=ENSEMBLE, parser=whole(1, MOST_JOBS))]
NoCertificates = Annotated[
    bool,
    option(
        None, "Simulate every run, even if its result is known from an equal run.", "--no-certificates", panel=ENSEMBLE
    ),
]
Style = Annotated[
    str | None,
    option("NAME", "Style of the figures: one of matplotlib's, such as grayscale, or a style file.", panel=OUTPUT),
]
_WIDTH = "Width of the figure: page, column for a paper's column, or a length such as 8.5cm or 5in."
Width = Annotated[str, option("WIDTH", _WIDTH, panel=OUTPUT)]
FiguresWidth = Annotated[str | None, option("WIDTH", _WIDTH.replace("figure", "figures"), panel=OUTPUT)]
Json = Annotated[bool, option(None, "Print the answer as JSON.", "--json", panel=OUTPUT)]
Csv = Annotated[Path | None, option("TABLE", "Write the table to a file as CSV, or print it with -.", panel=OUTPUT)]
Markdown = Annotated[bool, option(None, "Print tables in Markdown.", "--md", panel=OUTPUT)]
Latex = Annotated[bool, option(None, "Print tables in LaTeX, for booktabs.", "--tex", panel=OUTPUT)]
