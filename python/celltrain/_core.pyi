"""The compiled core, private: text crosses as JSON, arrays as numpy, and long work releases the interpreter.

docs/design/bridge.md describes every call.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

class Build(TypedDict):
    """How the core was built."""

    version: str
    profile: str

class Cancel:
    """Ends the calls it is given to, from any thread."""

    def __init__(self) -> None: ...
    def cancel(self) -> None: ...
    @property
    def cancelled(self) -> bool: ...

def build() -> Build: ...
def schema() -> str: ...
def costs() -> str: ...
def parse(text: str, source: str, cancel: Cancel | None = None) -> str: ...
def network(scenario_json: str, cancel: Cancel | None = None) -> str: ...
def parse_json(text: str, source: str, cancel: Cancel | None = None) -> str: ...
def run(
    scenario_json: str,
    seed: int,
    trace: Sequence[str],
    step: str | None = None,
    links: Sequence[str] | None = None,
    engine: str = "fast",
    on_progress: Callable[[float], object] | None = None,
    cancel: Cancel | None = None,
) -> tuple[str, dict[str, Any] | None]: ...
def run_many(
    scenarios: Sequence[str],
    runs: Sequence[tuple[int, int]],
    threads: int,
    on_result: Callable[..., object],
    engine: str = "fast",
    on_error: Callable[[int, str], object] | None = None,
    limit_s: float | None = None,
    trace: Sequence[str] = (),
    step: str | None = None,
    links: Sequence[str] | None = None,
    wanted: Mapping[str, Sequence[str]] | None = None,
    cancel: Cancel | None = None,
) -> None: ...
def toml(text: str, source: str) -> str: ...
def data(path: str) -> str | None: ...
def data_names(prefix: str) -> list[str]: ...
def memory_limit() -> int | None: ...
def bench_cases() -> str: ...
def measure(scenario: str, engine: str, times: int) -> str: ...
