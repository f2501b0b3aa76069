"""The compiled core, which is private. Text is passed as JSON, arrays as numpy, and long work releases the GIL.

docs/design/bridge.md describes every call.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

#: Statistics of requests, and the number of requests that each needs.
REQUESTS_NEEDED: list[tuple[str, int]]
#: Version without the commit. Stores and the keys of runs use it, so that a commit does not invalidate them.
__version__: str

class Build(TypedDict):
    """How the core was built."""

    version: str
    commit: str | None
    profile: str

class Cancel:
    """A handle that ends the calls that received it, from any thread."""

    def __init__(self) -> None: ...
    def cancel(self) -> None: ...
    @property
    def cancelled(self) -> bool: ...

class AwaitedAtExit:
    """Work on a daemon thread that the process finishes before it exits. Used in a `with` statement."""

    def __init__(self) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *raised: object) -> None: ...

class Scenario:
    """A scenario that is read and checked once; it pickles as its JSON."""

    def __init__(self, json: str) -> None: ...
    @property
    def json(self) -> str: ...
    def canonical(self, cancel: Cancel | None = None) -> str: ...
    def problems(self, measures: Sequence[str], cancel: Cancel | None = None) -> list[str | None]: ...
    def network(self, cancel: Cancel | None = None) -> str: ...
    def explain_plan(self, cancel: Cancel | None = None) -> str: ...
    def empty_series(
        self,
        trace: Sequence[str],
        step: str | None = None,
        links: Sequence[str] | None = None,
        cancel: Cancel | None = None,
    ) -> list[tuple[str, str]]: ...
    def threads_of(self, threads: int, cancel: Cancel | None = None) -> int: ...
    def run(
        self,
        seed: int | None,
        trace: Sequence[str] = (),
        step: str | None = None,
        links: Sequence[str] | None = None,
        engine: str = "fast",
        on_progress: Callable[[float], object] | None = None,
        cancel: Cancel | None = None,
        events: tuple[Any, ...] | None = None,
        on_events: Callable[[str, list[tuple[Any, Sequence[str] | None]]], object] | None = None,
        captures: Sequence[tuple[tuple[Any, ...], Callable[[bytes], object]]] = (),
        on_captured: Callable[[list[int]], object] | None = None,
        event_engine: str | None = None,
        threads: int | None = None,
        on_requests: Callable[[dict[str, Any]], object] | None = None,
        most_requests: int = 0,
        delays: bool = False,
        on_warnings: Callable[[list[str]], object] | None = None,
    ) -> tuple[str, dict[str, Any] | None]: ...

class View:
    """The buffer as a Python policy sees it while it decides about a frame. The values change with the next frame."""

    @property
    def X(self) -> int: ...
    @property
    def K(self) -> int | None: ...
    @property
    def Y(self) -> int: ...
    @property
    def N(self) -> int: ...
    @property
    def V(self) -> int: ...
    @property
    def C(self) -> float: ...
    @property
    def now(self) -> float: ...
    @property
    def tagged(self) -> bool: ...
    @property
    def counts(self) -> list[int]: ...
    def random(self) -> float: ...

class MemoryView:
    """The shared part of a pool as a Python policy sees it. The values change with the next call."""

    @property
    def B(self) -> int: ...
    @property
    def Q(self) -> int: ...
    @property
    def q_i(self) -> int: ...
    @property
    def n(self) -> int: ...
    @property
    def N(self) -> int: ...
    @property
    def rank(self) -> int: ...
    @property
    def priority(self) -> int: ...
    @property
    def arriving(self) -> int: ...
    @property
    def now(self) -> float: ...
    @property
    def cell_size(self) -> int: ...
    @property
    def free(self) -> int: ...
    @property
    def counts(self) -> list[int]: ...
    def random(self) -> float: ...

def build() -> Build: ...
def schema() -> str: ...
def conformance(policy: str, seed: int) -> str: ...
def memory_conformance(policy: str, seed: int) -> str: ...
def measures() -> str: ...
def stacks() -> list[tuple[str, str]]: ...
def parse(text: str, source: str, cancel: Cancel | None = None) -> tuple[Scenario | None, str]: ...
def parse_json(text: str, source: str, cancel: Cancel | None = None) -> tuple[Scenario | None, str]: ...
def run_many(
    scenarios: Sequence[Scenario],
    runs: Sequence[tuple[int, int]],
    threads: int,
    on_result: Callable[..., object],
    engine: str = "fast",
    on_error: Callable[[int, str], object] | None = None,
    limit_s: float | None = None,
    trace: Sequence[str] = (),
    step: str | None = None,
    links: Sequence[str] | None = None,
    cancel: Cancel | None = None,
) -> None: ...

class Block(TypedDict):
    """Runs that have ended, in any order."""

    #: Indices of the runs.
    runs: list[int]
    #: A row for each run, with its measures; not a number if a measure has no value.
    values: NDArray[np.float64]
    #: Row, measure, kind (`gap`, `open` or `bound`) and text.
    notes: list[tuple[int, int, str, str]]
    #: None for runs that failed.
    fingerprints: list[str | None]
    seconds: list[float]
    cell_hops: list[int]
    #: Row, and index of the run from which it was filled.
    filled_from: list[tuple[int, int]]
    #: Row and error of runs that failed.
    errors: list[tuple[int, str]]
    #: Rules of links that had no effect, by row: number and warning.
    unmet: list[tuple[int, list[tuple[int, str]]]]
    #: Recorded series by row.
    series: list[tuple[int, dict[str, Any]]]

def run_cases(
    cases: Sequence[Scenario],
    runs: Sequence[tuple[int, int, int]],
    measures: Sequence[Sequence[str]],
    threads: int,
    take: Callable[[Block], object],
    limit_s: float | None = None,
    recording: tuple[Sequence[str], str, Sequence[str] | None] | None = None,
    cancel: Cancel | None = None,
    certificates: bool = False,
) -> None: ...
def toml(text: str, source: str) -> str: ...
def threshold(json: str) -> str | None: ...
def parse_measure(text: str) -> tuple[bool, bool, bool]: ...
def evaluate(text: str, answer: str) -> tuple[float | None, str, str]: ...
def named(text: str, known: Sequence[str]) -> list[str]: ...
def data(path: str) -> str | None: ...
def data_names(prefix: str) -> list[str]: ...
def memory_limit() -> int | None: ...
def bench_cases() -> str: ...
def measure(scenario: str, engine: str, times: int) -> str: ...

# On Linux.
def emulated_hosts(scenario: Scenario, cancel: Cancel | None = None) -> list[tuple[str, str, str]]: ...
def emulate(
    scenario: Scenario,
    seed: int | None,
    devices: Sequence[int],
    should_continue: Callable[[], bool],
    cancel: Cancel | None = None,
) -> tuple[str, str]: ...
