"""What all commands share: answers on standard output, everything else on standard error, one exit code for each case."""

from __future__ import annotations

import functools
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, ParamSpec

import typer

from celltrain.cli import completing
from celltrain.errors import CelltrainError, CelltrainWarning, Fault, InputError, notes_of
from celltrain.model.writing import writing as writing
from celltrain.stopping import INTERRUPTED as INTERRUPTED
from celltrain.stopping import interruptible
from celltrain.text import MOST_CLAUSE, as_json, lines, shortened, shown

if TYPE_CHECKING:
    from rich.console import Console

    from celltrain.model.grids import Block, Grid
    from celltrain.model.types import Scenario

DONE, NO, BAD_INPUT, INTERNAL = 0, 1, 2, 3

# In a pipe there is no screen to fit: lines stay whole.
PIPE_WIDTH = 240

P = ParamSpec("P")

ScenarioFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="The scenario: a TOML file, or the name of a shipped one.",
        autocompletion=completing.scenarios,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "--vary",
        metavar="PATH=VALUE",
        autocompletion=completing.paths,
        help="Use this setting instead of the scenario's own. May be repeated.",
    ),
]
PlanSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        autocompletion=completing.paths,
        help="Use this setting instead of that of PLAN's scenario. May be repeated.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
Markdown = Annotated[bool, typer.Option("--md", help="Print tables in Markdown.")]
Latex = Annotated[bool, typer.Option("--tex", help="Print tables in LaTeX, for booktabs.")]
#: The form of tables on standard output.
Form = Literal["text", "markdown", "latex"]


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Returns a parser for an option that takes a whole number in this range."""
    wanted = f" ({least:,} or more)" if most is None else f" from {least:,} to {most:,}"

    def number(text: str) -> int:
        # Defaults pass through a parser, too.
        digits = str(text).replace("_", "")
        if re.fullmatch(r"[+-]?[0-9]{1,25}", digits):
            found = int(digits)
            if least <= found and (most is None or found <= most):
                return found
        raise typer.BadParameter(f"{shortened(str(text))!r} is not a whole number{wanted}")

    return number


def command(function: Callable[P, int | None]) -> Callable[P, None]:
    """Makes a command of a function: its answer is an exit code, and every way it can fail has one of its own."""

    @functools.wraps(function)
    def guarded(*args: P.args, **options: P.kwargs) -> None:
        raise typer.Exit(_exit_code(functools.partial(function, *args, **options), as_json=bool(options["as_json"])))

    return guarded


def _exit_code(function: Callable[[], int | None], *, as_json: bool) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("always", CelltrainWarning)
        warnings.showwarning = _show_warning
        try:
            with interruptible():
                code = function()
                sys.stdout.flush()
        except KeyboardInterrupt as error:
            complain("interrupted")
            for note in notes_of(error):
                complain(note)
            return INTERRUPTED
        except InputError as error:
            report(error.faults, as_json=as_json)
            return BAD_INPUT
        except CelltrainError as error:
            report([Fault.of(str(error))], as_json=as_json)
            return BAD_INPUT
        except (typer.Exit, BrokenPipeError):
            raise
        # A panic of the core comes as a BaseException.
        except BaseException as error:
            if isinstance(error, SystemExit | GeneratorExit):
                raise
            if os.environ.get("CELLTRAIN_DEBUG") == "1":
                traceback.print_exc()
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            complain(f"internal error: {shortened(what, MOST_CLAUSE)}")
            complain(
                "this is a fault of celltrain, not of your input. Please report it with the command, its files and"
            )
            complain("the output of: celltrain doctor    (CELLTRAIN_DEBUG=1 shows where it happened)")
            return INTERNAL
        return code or DONE


def scenario(file: Path, settings: list[str] | None) -> Path | Scenario:
    """Returns the scenario of a command, with what `--set` says in place of its own settings."""
    if not settings:
        return file
    from celltrain.model.overrides import single
    from celltrain.model.scenario import read, table
    from celltrain.model.types import Scenario

    made = table(read(file, single(settings), option="--set").accepted())
    for warning in thresholds_that_stay(file, made):
        complain(f"warning: {warning}")
    return Scenario.model_validate(made)


def thresholds_that_stay(file: Path, made: Mapping[str, Any]) -> list[str]:
    """Returns warnings of thresholds in cells that stay while `--set` changes the buffer of a scenario."""
    from celltrain.ensemble.plan_warnings import thresholds
    from celltrain.model.scenario import read, table

    as_it_is = read(file)
    return [] if as_it_is.faults else list(thresholds([table(as_it_is.accepted()), made], of_plan=False))


def store(store: Path | None, out: Path | None) -> Path | None:
    """Returns the folder that `--store` names, or `--out`, its former name."""
    if store is not None and out is not None:
        raise InputError([Fault.saying("--out is the former name of --store: give one of them", key="--out")])
    return store or out


def refuse_no_ending(csv: Path | None) -> None:
    """Refuses a new file for `--csv` whose name has no ending; raises `InputError`."""
    if csv is not None and not csv.suffix and not csv.exists():
        raise InputError([Fault.saying(f"--csv {shown(csv)} has no ending: write {shown(csv)}.csv.", key="--csv")])


def answer(value: object) -> None:
    """Prints an answer as JSON."""
    typer.echo(as_json(value))


def say(words: str) -> None:
    """Prints on standard output, with whatever a terminal would take for a command made visible."""
    typer.echo(lines(words))


def complain(words: str) -> None:
    """The same of one line, on standard error."""
    typer.echo(shown(words), err=True)


def report(faults: list[Fault], *, as_json: bool) -> None:
    """Prints faults on standard error, a line each and where it is within a text, or as JSON on standard output."""
    if as_json:
        answer({"faults": [fault.to_dict() for fault in faults]})
    else:
        for fault in faults:
            for line in fault.lines:
                complain(line)


def console(*, stderr: bool = False) -> Console:
    """The screen, or the pipe. What it prints as a text, in tables too, can command no terminal."""
    from rich.console import Console
    from rich.text import Text

    class Screen(Console):
        def render_str(self, text: str, **style: Any) -> Text:
            return super().render_str(lines(text), **style)

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Screen(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def grid(*columns: str, left: tuple[str, ...] = (), keys: int = 1) -> Grid:
    """An empty table: the columns named in `left` hold words, the others numbers; see `celltrain.model.grids`."""
    from celltrain.model.grids import Grid

    return Grid(heads=columns, left=tuple(place for place, name in enumerate(columns) if name in left), keys=keys)


def form(*, as_json: bool, md: bool, tex: bool) -> Form:
    """The form of the tables; raises `InputError` if two are asked for."""
    given = [name for name, wanted in {"--json": as_json, "--md": md, "--tex": tex}.items() if wanted]
    if len(given) > 1:
        raise InputError([Fault.of_option(given[1], "on", f"cannot be combined with {given[0]}: give one of them")])
    return "markdown" if md else "latex" if tex else "text"


def show(blocks: Iterable[Block], form: Form = "text") -> None:
    """Prints lines and tables, with an empty line between a table and its neighbours."""
    from celltrain.model import grids

    if form != "text":
        typer.echo((grids.markdown if form == "markdown" else grids.latex)(blocks))
        return
    screen, after = console(), None
    for block in blocks:
        if after is not None and (isinstance(block, grids.Grid) or isinstance(after, grids.Grid)):
            screen.print()
        screen.print(block)
        after = block


def note(words: str, form: Form = "text") -> None:
    """Prints a line after a table: on standard error if the table is for another program."""
    if form == "text":
        say(words)
    else:
        complain(words)


def examples(*commands: str) -> str:
    """The end of a command's help: example commands, one a line."""
    return "\n\n".join(["Examples:", *commands])


@contextmanager
def waiting(words: str) -> Iterator[Callable[[float], None] | None]:
    """Shows on a terminal what goes on, how far it is and how long it still takes; says nothing in a pipe.

    What it yields takes the share that is done, 0 to 1; None in a pipe.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    from celltrain.drawing.pages.words import left

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[left]}", markup=False),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        # Without a share there is no telling how far it is: the bar only moves.
        task = progress.add_task(shown(words), total=None, left="")

        def told(share: float) -> None:
            progress.update(task, total=1.0, completed=share)
            progress.update(task, left=left(progress.tasks[task].time_remaining))

        yield told


def folder(path: Path) -> Path:
    """A folder to write into, made now so that a long run does not end without one."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK):
            raise PermissionError(13, "permission denied")
    return path


def counted(number: float, digits: int = 3) -> str:
    """A large number for people: 12.8 million."""
    for limit, word in ((1e9, " billion"), (1e6, " million")):
        if number >= limit:
            return f"{number / limit:.{digits}g}{word}"
    return f"{number:,.0f}"


def _show_warning(message: Warning | str, category: type[Warning], *place: Any, **_: Any) -> None:
    complain(f"warning: {message}")
