"""Cases of `celltrain bottleneck`: a scenario without senders, and expectations that every sender should meet."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from celltrain import _core
from celltrain.errors import Fault, InputError
from celltrain.model import measures, shipped
from celltrain.model.measures import MeasureError
from celltrain.model.paths import seconds
from celltrain.text import among, shown

#: Folder of the shipped cases, as shown in messages.
FOLDER = "plans/bottleneck/"
#: Keys of a case, with the type of their values.
KEYS = {"title": str, "source": str, "tests": str, "expect": list, "needs": list, "phases": dict, "scenario": dict}
#: Keys that a case may leave out.
OPTIONAL = ("needs", "phases")
#: Abilities of senders that a case may need, in words.
ABILITIES = {"ecn": "ECN"}
#: Comparison of two measures.
_COMPARISON = re.compile(r"(.+?) (>=|<=|>|<) (.+)")


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """A comparison of two measure expressions, such as `ports.bottleneck.utilisation >= 0.95`."""

    text: str
    left: str
    sign: str
    right: str

    @classmethod
    def of(cls, text: str, phases: Mapping[str, Any]) -> Expectation:
        """Parses an expectation; raises `MeasureError` if it is not a comparison of measures."""
        match = _COMPARISON.fullmatch(text)
        if match is None:
            raise MeasureError("is not a comparison of measures, such as: ports.bottleneck.utilisation >= 0.95")
        left, sign, right = match.groups()
        measures.check_syntax(left)
        if not re.fullmatch(r"[0-9.]+", right):
            measures.check_syntax(right)
        for name in re.findall(r"\bphases\.(\w+)\.", text):
            if name not in phases:
                raise MeasureError(f"names a phase that the case lacks; {among(name, list(phases))}")
        return cls(text=text, left=left, sign=sign, right=right)

    def values(self, answer: Mapping[str, Any]) -> tuple[float, float]:
        """Returns both sides of the comparison; raises `MeasureError` if the answer of a run lacks a side."""
        return measures.measure(self.left, answer), measures.measure(self.right, answer)

    def holds(self, left: float, right: float) -> bool:
        """Returns whether the comparison holds for the given numbers."""
        return {">=": left >= right, "<=": left <= right, ">": left > right, "<": left < right}[self.sign]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A network, its load, and the expected outcome."""

    name: str
    title: str
    source: str
    tests: str
    """The behaviour that the case examines, in a sentence."""
    expect: tuple[Expectation, ...]
    needs: tuple[str, ...]
    """Abilities without which a sender cannot do the case."""
    phases: Mapping[str, tuple[float, float]]
    """Parts of the run with measures of their own: begin and end in seconds."""
    scenario: Mapping[str, Any]
    """The scenario, complete but for the senders."""
    file: str
    is_shipped: bool

    @property
    def duration(self) -> float:
        """Duration of the run in seconds."""
        return seconds(self.scenario["duration"])


def names() -> list[str]:
    """Lists the shipped cases.

    >>> "startup-plateau" in names()
    True
    """
    return sorted(Path(path).stem for path in _core.data_names(FOLDER) if path.endswith(".toml"))


def read_all(wanted: Sequence[str] | None) -> list[Case]:
    """Reads cases: shipped ones by name, and files; all shipped ones for None. Raises `InputError` with all faults."""
    known = names()
    cases, faults = list[Case](), list[Fault]()
    for name in dict.fromkeys(known if wanted is None else wanted):
        try:
            if name in known and not Path(name).is_file():
                file = f"{FOLDER}{name}.toml"
                cases.append(_read(_core.data(file) or "", file, is_shipped=True))
            elif name.endswith(".toml") or Path(name).is_file():
                cases.append(_read(shipped.read_text(Path(name), what="case"), shown(name), is_shipped=False))
            else:
                faults.append(Fault.of_option("cases", name, f"is unknown; {among(name, known)}"))
        except InputError as error:
            faults += error.faults
    if wanted is not None and not wanted:
        faults.append(Fault.of_option("cases", "[]", "is empty; name at least one case"))
    called = [case.name for case in cases]
    faults += [
        Fault.of_option("cases", name, "is the name of two cases; rename one file")
        for name in dict.fromkeys(called)
        if called.count(name) > 1
    ]
    if faults:
        raise InputError(faults)
    return cases


def _read(text: str, file: str, *, is_shipped: bool) -> Case:
    root, lines = shipped.toml(text, file)
    faults: list[Fault] = []

    def wrong(problem: str, key: str, value: str = "") -> None:
        faults.append(Fault.of(problem, file=file, line=shipped.line_of(lines, key), key=key, value=value))

    for key, value in root.items():
        if key not in KEYS:
            wrong(f"is unknown; {among(key, list(KEYS))}", key)
        elif not isinstance(value, KEYS[key]):
            wrong(f"is not a {({str: 'text', list: 'list', dict: 'table'})[KEYS[key]]}", key)
    for key in KEYS:
        if key not in root and key not in OPTIONAL:
            wrong("is missing; a case has title, source, tests, expect and scenario", key)
    if faults:
        raise InputError(faults)
    phases = {}
    for name, window in root.get("phases", {}).items():
        if (found := _window(window)) is None:
            wrong('is not a window such as "2s:8s" that ends after it begins', f"phases.{name}", repr(window))
        else:
            phases[name] = found
    for need in root.get("needs", []):
        if need not in ABILITIES:
            wrong(f"is unknown; {among(str(need), list(ABILITIES))}", "needs", repr(need))
    expect = []
    for one in root["expect"]:
        try:
            expect.append(Expectation.of(str(one), phases))
        except MeasureError as error:
            wrong(str(error), "expect", repr(one))
    if not root["expect"]:
        wrong("is empty; name what is expected, such as: ports.bottleneck.utilisation >= 0.95", "expect")
    if "duration" not in root["scenario"]:
        wrong("is missing", "scenario.duration")
    if faults:
        raise InputError(faults)
    scenario = merged(shipped.package_data("ensemble/bottleneck/common.toml"), root["scenario"])
    about = {key: root[key] for key in ("title", "source", "tests")}
    name = Path(file).stem
    return Case(
        name=name,
        **about,
        expect=tuple(expect),
        needs=tuple(root.get("needs", [])),
        phases=phases,
        scenario={"name": about["title"], **scenario},
        file=file,
        is_shipped=is_shipped,
    )


def _window(text: object) -> tuple[float, float] | None:
    try:
        begin, end = (seconds(part) for part in str(text).split(":"))
    except (ValueError, TypeError):
        return None
    return (begin, end) if begin < end else None


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tables of both; values of the second replace those of the first. An empty table removes one.

    >>> merged({"a": {"b": 1, "c": 2}, "d": {"e": 1}}, {"a": {"b": 3}, "d": {}})
    {'a': {'b': 3, 'c': 2}}
    """
    made = copy.deepcopy(dict(first))
    for key, value in second.items():
        if value == {} and key in made:
            del made[key]
        elif isinstance(value, Mapping) and isinstance(made.get(key), Mapping):
            made[key] = merged(made[key], value)
        else:
            made[key] = copy.deepcopy(value)
    return made


def derived(case: Case, answer: Mapping[str, Any], series: Mapping[str, Any]) -> dict[str, Any]:
    """Returns measures that an answer lacks: of the senders together, and of each phase.

    Args:
        case: The case.
        answer: The answer of a run.
        series: Its series as columns of numbers: `time_s`, `queue_cells`, `queue_cells_least`, `queue_cells_largest`,
            and by flow `delivered_bytes` and `cwnd_segments`.
    """
    senders = [flow["name"] for flow in answer["flows"] if flow["traffic"] not in ("constant_rate", "on_off")]
    rates = [flow["goodput_mbps"] for flow in answer["flows"] if flow["name"] in senders]
    whole = {"goodput_mbps": sum(rates), "fairness": fairness(rates)}
    port = next(port for port in answer["ports"] if port["name"] == answer["bottleneck"])
    lost = port["lost_cells"] + port["discarded_cells"]
    whole["lost_share"] = lost / port["offered_cells"] if port["offered_cells"] else None
    if not series:
        return {"senders": {**whole, "convergence_s": None}}
    return {
        "senders": {**whole, "convergence_s": _convergence(case, senders, series)},
        "phases": [{"name": name, **_phase(senders, series, begin, end)} for name, (begin, end) in case.phases.items()],
    }


def fairness(rates: Sequence[float]) -> float | None:
    """Returns Jain's index of these rates; None if all are zero.

    >>> fairness([1.0, 1.0]), fairness([2.0, 0.0]), fairness([0.0])
    (1.0, 0.5, None)
    """
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else None


def _phase(senders: Sequence[str], series: Mapping[str, Any], begin: float, end: float) -> dict[str, Any]:
    import numpy as np

    times = series["time_s"]
    first, last = np.searchsorted(times, (begin - 1e-9, end - 1e-9))
    last = min(int(last), len(times) - 1)
    inside = slice(int(first) + 1, last + 1)
    flows = []
    for name in senders:
        delivered = series["delivered_bytes"][name]
        flow = {
            "name": name,
            "goodput_mbps": 8e-6 * (delivered[last] - delivered[first]) / (times[last] - times[first]),
        }
        windows = series["cwnd_segments"].get(name)
        extremes = (None, None) if windows is None else (windows[inside].min(), windows[inside].max())
        flow |= {
            f"{which}_cwnd_segments": None if value is None else float(value)
            for which, value in zip(("least", "largest"), extremes, strict=True)
        }
        flows.append(flow)
    rates = [flow["goodput_mbps"] for flow in flows]
    return {
        "goodput_mbps": float(sum(rates)),
        "fairness": fairness(rates),
        "least_queue_cells": _known(series["queue_cells_least"][inside].min()),
        "mean_queue_cells": _known(series["queue_cells"][inside].mean()),
        "largest_queue_cells": _known(series["queue_cells_largest"][inside].max()),
        "flows": flows,
    }


def _known(value: float) -> float | None:
    """Returns a number, or None instead of NaN: an emulation does not record the queue."""
    return None if math.isnan(value) else float(value)


#: Delta-fair convergence (RFC 5166): every sender is within this share of an equal share, and the goodput
#: within a tenth of its final value, over a window of this length in seconds.
DELTA, NEARLY, WINDOW_S = 1 / 3, 0.9, 0.5


def _convergence(case: Case, senders: Sequence[str], series: Mapping[str, Any]) -> float | None:
    """Returns the time from the start of the last sender until all converge; None if they never do."""
    import numpy as np

    times = series["time_s"]
    data = np.array([series["delivered_bytes"][name] for name in senders], dtype=np.float64)
    width = max(1, round(WINDOW_S / (times[1] - times[0])))
    if len(times) <= 4 * width or not data[:, -1].all():
        return None
    started = int(max((row > 0).argmax() for row in data))
    rates = data[:, width:] - data[:, :-width]
    quarter = len(times) // 4
    final = (data[:, -1] - data[:, -1 - quarter]).sum() * width / quarter
    mean = rates.mean(axis=0)
    fair = (np.abs(rates - mean) <= DELTA * mean).all(axis=0)
    good = np.flatnonzero(fair & (rates.sum(axis=0) >= NEARLY * final) & (np.arange(rates.shape[1]) >= started - 1))
    if not good.size or not final:
        return None
    return float(times[int(good[0]) + width] - times[max(started - 1, 0)])


def faults_of(case: Case, faults: Sequence[Fault]) -> Iterator[Fault]:
    """Yields faults in the scenario of a case with the place in its file."""
    for fault in faults:
        yield fault.changed(file=case.file, line=None, key=f"scenario.{fault.key}" if fault.key else fault.key)
