"""Output and exit codes of all commands. Answers go to standard output, everything else to standard error."""

from __future__ import annotations

import errno
import functools
import inspect
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread, Timer
from typing import TYPE_CHECKING, Annotated, Any, Literal, ParamSpec, TypeVar

import typer

from celltrain.cli.options import Csv, Json, Latex, Markdown, OptionGroup, described
from celltrain.errors import CelltrainError, CelltrainWarning, Fault, InputError, notes_of
from celltrain.model import files as of_files
from celltrain.model import grids
from celltrain.model.files import check_target as check_target
from celltrain.model.files import named
from celltrain.model.files import writing as writing
from celltrain.model.grids import Block, Grid
from celltrain.model.overrides import single
from celltrain.model.scenario import read, table
from celltrain.stopping import INTERRUPTED as INTERRUPTED
from celltrain.stopping import interruptible
from celltrain.text import MOST_CLAUSE, as_json, lines, shortened, shown

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

    from celltrain.model.types import Scenario

DONE, NO, BAD_INPUT, INTERNAL = 0, 1, 2, 3

#: Errors that indicate a full disk or a broken device.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
# Width of output to a pipe. It is large, so that lines are not wrapped.
PIPE_WIDTH = 240

P = ParamSpec("P")
T = TypeVar("T")


def command(function: Callable[P, int | None]) -> Callable[P, None]:
    """Turns a function into a command with an exit code: the one it returns, or the code of its exception.

    A parameter annotated with `OptionGroup` becomes the options listed there.
    """
    about, examples, hints = described(function)
    own, several = [], {}
    for name, parameter in inspect.signature(function).parameters.items():
        metadata = getattr(hints[name], "__metadata__", (None,))
        if isinstance(metadata[0], OptionGroup):
            several[name] = metadata[0]
        else:
            own.append(parameter.replace(annotation=hints[name]))
    own += [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind)
        for group in several.values()
        for name, (kind, default) in group.options.items()
    ]

    @functools.wraps(function)
    def guarded(*args: P.args, **options: P.kwargs) -> None:
        as_json = bool(options["as_json"])

        def call() -> int | None:
            made: dict[str, Any] = {}
            for name, group in several.items():
                made[name] = group.make(**{option: options.pop(option) for option in group.options})
            code = function(*args, **options, **made)
            if isinstance(output := made.get("output"), Output):
                output.wrote(output.tables)
            return code

        raise typer.Exit(_exit_code(call, as_json=as_json))

    guarded.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    guarded.__annotations__ = {one.name: one.annotation for one in own}
    epilog = "\n\n".join(["Examples:", *examples])
    guarded.registration = {"help": about, "epilog": epilog}  # type: ignore[attr-defined]
    return guarded


def _exit_code(function: Callable[[], int | None], *, as_json: bool) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("always", CelltrainWarning)
        warnings.showwarning = lambda message, *_, **__: complain(f"warning: {message}")
        try:
            with interruptible():
                code = function()
                sys.stdout.flush()
        except KeyboardInterrupt as error:
            complain("interrupted")
            for line in "\n".join(notes_of(error)).splitlines():
                complain(line)
            return INTERRUPTED
        except CelltrainError as error:
            faults = error.faults if isinstance(error, InputError) else [Fault.of(str(error))]
            report(faults, as_json=as_json)
            return BAD_INPUT
        except (typer.Exit, BrokenPipeError):
            raise
        # A panic in the core is raised as a BaseException.
        except BaseException as error:
            if isinstance(error, SystemExit | GeneratorExit):
                raise
            if isinstance(error, OSError) and error.errno in FULL:
                # Otherwise, when the interpreter exits, it would try to write the buffered output again.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                complain(f"standard output: cannot be written ({error.strerror})")
                return BAD_INPUT
            if os.environ.get("CELLTRAIN_DEBUG") == "1":
                traceback.print_exc()
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            complain(f"internal error: {shortened(what, MOST_CLAUSE)}")
            complain(
                "this is a fault of celltrain, not of your input. Please report it with the command and its files,"
            )
            complain("and with the output of: celltrain doctor    (CELLTRAIN_DEBUG=1 shows where it happened)")
            return INTERNAL
        return code or DONE


def scenario(file: Path, settings: list[str] | None) -> Path | Scenario:
    """Returns the scenario of a command, with the settings of `--set` applied."""
    if not settings:
        return file
    from celltrain.model.types import Scenario

    changed = table(read(file, single(settings), option="--set").accepted())
    for warning in fixed_thresholds(file, changed):
        complain(f"warning: {warning}")
    return Scenario.model_validate(changed)


def fixed_thresholds(file: Path, changed: Mapping[str, Any]) -> list[str]:
    """Returns warnings about thresholds in cells that stay constant although `--set` changes the buffer."""
    from celltrain.ensemble.plan_warnings import thresholds

    original = read(file)
    return [] if original.faults else list(thresholds([table(original.accepted()), changed], of_plan=False))


@dataclass(frozen=True, kw_only=True)
class Output:
    """The format in which a command prints its answer."""

    form: Literal["text", "markdown", "latex", "json", "csv"] = "text"
    csv: Path | None = None
    """File for the table as CSV; `-` is standard output."""
    tables: list[Path] = field(default_factory=list)
    """Tables that were written; the command's last lines name them."""

    @classmethod
    def of(cls, *, as_json: bool = False, csv: Path | None = None, md: bool = False, tex: bool = False) -> Output:
        """Creates the format from a command's options. Raises `InputError` if two options conflict."""
        prints = csv is not None and str(csv) == "-"
        forms = {"--json": as_json, "--md": md, "--tex": tex, "--csv -": prints}
        given = [name for name, wanted in forms.items() if wanted]
        if len(given) > 1:
            raise InputError.of_option(given[1], "", f"cannot be combined with {given[0]}: give one of them")
        if csv is not None and not prints and not csv.suffix and not csv.exists():
            raise InputError.saying(f"--csv {shown(csv)} has no ending: write {shown(csv)}.csv.", key="--csv")
        if csv is not None and not prints:
            # Check the format before a long run, not after the run.
            check_target(csv)
        return cls(
            form="json" if as_json else "csv" if prints else "markdown" if md else "latex" if tex else "text", csv=csv
        )

    def show(
        self, answer: object, blocks: Iterable[Block], rows: Callable[[], pa.Table | Iterable[Mapping[str, Any]]]
    ) -> None:
        """Prints an answer in this format: as JSON or as blocks. Writes its rows to the file given with `--csv`."""
        if self.csv is not None:
            from celltrain.running.tables import as_csv

            content = as_csv(rows())
            if self.form == "csv":
                typer.echo(content, nl=False)
            else:
                with named(self.csv) as file:
                    file.write(content.encode())
                self.tables.append(self.csv)
        if self.form == "json":
            typer.echo(as_json(answer))
        elif self.form != "csv":
            self.print(blocks)

    def tell(self, answer: object, *texts: str) -> None:
        """Prints an answer as JSON, or else as the given lines, without wrapping."""
        if self.form == "json":
            typer.echo(as_json(answer))
        else:
            say("\n".join(texts))

    def print(self, blocks: Iterable[Block]) -> None:
        """Prints lines and tables, with an empty line before and after each table."""
        if self.form in ("markdown", "latex"):
            typer.echo((grids.markdown if self.form == "markdown" else grids.latex)(blocks))
            return
        screen, after = console(), None
        for block in blocks:
            if after is not None and (isinstance(block, grids.Grid) or isinstance(after, grids.Grid)):
                screen.print()
            screen.print(block)
            after = block

    def note(self, words: str) -> None:
        """Prints a line after a table. If the table is in a format for other programs, prints to standard error."""
        if self.form == "text":
            say(words)
        elif self.form != "json":
            complain(words)

    def wrote(self, paths: Iterable[Path]) -> None:
        """Prints the names of written files."""
        for path in paths:
            self.note(f"wrote {shown(path)}")


_TABLE = {"csv": (Csv, None), "as_json": (Json, False)}
#: Decorators for commands that print only an answer, and for commands that print an answer and a table.
Answer = Annotated[Output, OptionGroup(Output.of, {"as_json": (Json, False)})]
Table = Annotated[Output, OptionGroup(Output.of, _TABLE)]
Document = Annotated[Output, OptionGroup(Output.of, {**_TABLE, "md": (Markdown, False), "tex": (Latex, False)})]


def answer(value: object) -> None:
    """Prints an answer as JSON."""
    typer.echo(as_json(value))


def say(words: str) -> None:
    """Prints on standard output, with control characters made visible."""
    typer.echo(lines(words))


def complain(words: str) -> None:
    """Prints a line on standard error, with control characters made visible."""
    typer.echo(shown(words), err=True)


def report(faults: list[Fault], *, as_json: bool) -> None:
    """Prints faults: on standard error with excerpts, or as JSON on standard output."""
    if as_json:
        answer({"faults": [fault.to_dict() for fault in faults]})
    else:
        for fault in faults:
            for line in fault.lines:
                complain(line)


def fault_of_usage(error: Any) -> Fault:
    """Returns the fault of an error in the options of a command."""
    context, parameter = error.ctx, getattr(error, "param", None)
    command = context.command_path if context is not None else "celltrain"
    kind = type(error).__name__
    key = ""
    if parameter is not None:
        key = parameter.human_readable_name
        if parameter.param_type_name == "option":
            key = next((one for one in parameter.opts if one.startswith("--")), parameter.opts[0])
    if kind == "NoSuchOption":
        key = error.option_name
        near = " or ".join(error.possibilities or [])
        problem = f"is not an option of {command}{f'; did you mean {near}?' if near else ''}"
    elif kind == "BadOptionUsage":
        key, problem = error.option_name, "needs a value"
    elif kind == "MissingParameter":
        problem = "is missing"
    elif key:
        problem = error.message
    else:
        problem = error.format_message()
    problem = problem.strip().rstrip(".")
    return Fault.saying(f"{key} {problem}{'' if problem.endswith('?') else ';'} see {command} -h".strip(), key=key)


def console(*, stderr: bool = False) -> Console:
    """Returns a console for the terminal or the pipe. Escape sequences in text, also in tables, are made visible."""
    from rich.console import Console
    from rich.text import Text

    class Screen(Console):
        def render_str(self, text: str, **style: Any) -> Text:
            return super().render_str(lines(text), **style)

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Screen(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def grid(*columns: str, left: Iterable[str] = (), rows: Iterable[Iterable[str]] = ()) -> Grid:
    """Returns a table. Columns in `left` contain words, the others numbers. See `celltrain.model.grids`."""
    words = {*left}
    places = tuple(place for place, name in enumerate(columns) if name in words)
    return Grid(heads=columns, rows=list(map(list, rows)), left=places)


def folder(path: Path) -> Path:
    """Creates an output folder before a long run, and returns it."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK):
            raise PermissionError(13, "permission denied")
    return path


@contextmanager
def making(path: Path | None) -> Iterator[None]:
    """If there is an output folder, creates it before a long run; removes it if the run fails."""
    if path is None:
        yield
        return
    with of_files.making(path):
        folder(path)
        yield


def counted(number: float, digits: int = 3) -> str:
    """Formats a large number in words, such as 12.8 million."""
    for limit, word in ((1e9, " billion"), (1e6, " million")):
        if number >= limit:
            return f"{number / limit:.{digits}g}{word}"
    return f"{number:,.0f}"


#: Commands that take less time than this number of seconds show no progress bar.
DELAY_SECONDS = 1.0


@contextmanager
def _bar(title: str, *, counts_runs: bool) -> Iterator[Callable[..., None]]:
    """Shows a bar with the completed runs, or with a percentage and the time left."""
    from rich import progress as bars

    runs = (bars.MofNCompleteColumn(), bars.TextColumn("runs, {task.fields[rest]}", markup=False))
    columns = runs if counts_runs else (bars.TaskProgressColumn(), bars.TimeRemainingColumn())
    begin = (bars.TextColumn("{task.description}", markup=False), bars.BarColumn())
    drawn = bars.Progress(*begin, *columns, console=console(stderr=True), transient=True)
    start = Timer(DELAY_SECONDS, drawn.start)
    start.daemon = True
    start.start()
    task = drawn.add_task(shown(title), total=None, rest="")
    try:
        yield lambda done, total=1.0, rest="": drawn.update(task, completed=done, total=total, rest=rest)
    finally:
        start.cancel()
        start.join()
        drawn.stop()


#: Time between two lines of progress if standard error is not a terminal.
LINE_SECONDS = 10.0


@contextmanager
def _lines_of_progress(title: str, *, counts_runs: bool) -> Iterator[Callable[..., None]]:
    """Writes the completed percentage and the time left every ten seconds, whether it counts runs or not."""
    from celltrain.drawing.words import in_words, left

    begun, latest, ended = time.monotonic(), [0.0], Event()

    def write() -> None:
        while not ended.wait(LINE_SECONDS):
            took, share = time.monotonic() - begun, latest[0]
            rest = f", about {left(took * (1 - share) / share)}" if share > 0 else ""
            complain(f"{title}: {share:.0%} after {in_words(max(round(took), 1))}{rest}")

    writer = Thread(target=write, daemon=True)
    writer.start()
    try:
        yield lambda done, total=1.0, rest="": latest.__setitem__(0, done / max(total, 1))
    finally:
        ended.set()
        writer.join()


@contextmanager
def _progress(title: str, *, counts_runs: bool, by_line: bool) -> Iterator[Callable[..., None] | None]:
    """Yields a function that takes the completed amount, the total and a text, to show them; None if nothing does."""
    shows = _bar if sys.stderr.isatty() else _lines_of_progress
    if shows is _bar or by_line:
        with shows(title, counts_runs=counts_runs) as show:
            yield show
    else:
        yield None


def waiting(title: str, *, by_line: bool = False) -> AbstractContextManager[Callable[[float], None] | None]:
    """Shows a percentage and the time left. Yields a function that takes the completed fraction.

    In a pipe, writes lines if `by_line`, or else yields None.
    """
    return _progress(title, counts_runs=False, by_line=by_line)


@contextmanager
def counting(
    title: str, latest: list[T], describe: Callable[[T], tuple[int, int, str]]
) -> Iterator[Callable[[T], None]]:
    """Shows the completed and total runs, followed by a text. `latest` receives the latest progress."""
    with _progress(title, counts_runs=True, by_line=True) as show:

        def tell(progress: T) -> None:
            latest[:] = [progress]
            if show is not None:
                show(*describe(progress))

        yield tell
