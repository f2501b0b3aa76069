"""Warnings about plans and results that are likely to mislead.

Examples are an axis that changes nothing, a threshold that stays constant while the buffer grows, and a mean over
different networks. Each is reported before the runs if the plan reveals it, after the runs, and in the report.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain import _core
from celltrain.drawing.words import counted, settings, valued
from celltrain.ensemble.cases import RunTable, trial_run
from celltrain.ensemble.plan import Plan, tcps
from celltrain.ensemble.plan.axes import CHECKED_POINTS, Axis, Group, Use
from celltrain.errors import CelltrainError, ScenarioError
from celltrain.model.network import RECOVERY
from celltrain.model.paths import UnknownKeyError, follow
from celltrain.model.policy_files import tables_in
from celltrain.running.statistics import means
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.ensemble.store import Store, StoredRuns


#: Maximum number of thresholds named in a warning, because a network may have thousands of ports.
MOST_NAMED = 3
#: Parts of a scenario over which means are not meaningful, with their names in warnings.
NETWORKS = {"topology": "network", "tcp": "TCP"}
#: Measures that are 0 if a run delivered no data, and the measures of a sweep that show this, in order of preference.
DELIVERED = "flows.sum(*).delivered_bytes + requests.sum(*).delivered_bytes"
_CARRIED = (DELIVERED, "goodput_mbps", "flows.sum(*).delivered_bytes", "efficiency")
#: A policy that delivers less than this fraction of the best policy's data in the same network causes a warning.
LITTLE = 0.1
#: Seeds hardly change a case if there are at least three, and no standard deviation exceeds this fraction of its mean.
LEAST_SEEDS, NARROW = 3, 0.003
#: Only the first of these measures that the plan has is tested, because counts, such as lost cells, vary with the order
#: of ties. If the plan has none of them, all its measures are tested.
DECISIVE = ("efficiency", "fairness", "fairness_max_min", "goodput_mbps")
#: Maximum runs of a store to check for indistinct seeds and lock-step, and maximum points to check for lock-step.
MOST_RUNS, MOST_JUDGED = 1_000_000, 1000
#: Maximum points of a plan to check for `celltrain check`'s warnings, and maximum warnings to report.
MOST_READ, MOST_REPORTED = 200, 5
#: Time limits in seconds for all trial runs of a plan, and for each of them.
TRIED_SECONDS, TRY_SECONDS = 10.0, 2.0

# Warnings about plans.


def of_plan(plan: Plan) -> list[str]:
    """Returns warnings about a plan before anything is run."""
    constant = thresholds_of(plan)
    paths = {_group_name(group): _network_path(group) for group in plan.groups if len(group) > 1}
    return [*constant, *check_warnings({plan.name: plan}, constant), *networks(paths)]


def check_warnings(plans: Mapping[str, Plan], thresholds: Sequence[str] = ()) -> list[str]:
    """Returns the warnings that `celltrain check` gives for the points of these plans, each once.

    If a warning does not apply to all points, it names the first to which it applies. In a large plan, only some points
    are checked.

    Args:
        plans: Plans by name.
        thresholds: Warnings about thresholds that stay constant while the buffer changes, which are not repeated.
    """
    found: dict[str, list[str]] = {}
    read = 0
    for name, plan in plans.items():
        for index in _spread(len(plan.points), MOST_READ):
            where = ", ".join(one for one in (shown(name) if len(plans) > 1 else "", _point(plan, index)) if one)
            read += 1
            case = _case(plan, index)
            for message in () if case is None else case.warnings:
                path = message.partition(" = ")[0]
                if not any(one.startswith(f"{path} stays") for one in thresholds):
                    found.setdefault(message, []).append(where)
    messages = []
    for message, places in found.items():
        more = f" and {len(places) - 1:,} more" if len(places) > 1 else ""
        messages.append(message if len(places) == read else f"{message} (at {places[0]}{more})")
    if len(messages) > MOST_REPORTED:
        more = f"{len(messages) - MOST_REPORTED:,} more warnings of this kind"
        messages[MOST_REPORTED:] = [f"{more}; celltrain check prints the warnings of a scenario"]
    return messages


def tried(plan: Plan) -> list[str]:
    """Returns warnings about axes that change nothing in short pairs of runs that differ in one axis."""
    found, prints, begun = [], dict[str, str | None](), time.monotonic()
    for group, stride in _strides(plan):
        outcomes = []
        # Vary one axis while all other axes keep their first, middle or last values.
        corners = (0, len(plan.points) // 2, len(plan.points) - 1)
        for base in dict.fromkeys(at - at // stride % len(group) * stride for at in corners):
            first, last = (_case(plan, base + level * stride) for level in (0, len(group) - 1))
            if first is None or last is None or first.canonical == last.canonical:
                # The axis has no effect at these values, but may have an effect at others.
                continue
            for one in (first, last):
                if one.canonical not in prints and time.monotonic() - begun < TRIED_SECONDS:
                    answer, _ = trial_run(one, plan.seeds.first, TRY_SECONDS)
                    prints[one.canonical] = None if answer is None else str(answer["fingerprint"])
            if prints.get(first.canonical) and prints.get(last.canonical):
                outcomes.append(prints[first.canonical] == prints[last.canonical])
        if outcomes and all(outcomes):
            tries = len(outcomes)
            found.append(
                f"{_group_name(group)} seems to change nothing: its first and its last value gave the same run, in "
                f"{tries} of {tries} {'tries' if tries > 1 else 'try'}; check that the scenario uses this setting"
            )
    return found


def thresholds_of(plan: Plan, *, of_plan: bool = True) -> list[str]:
    """Returns warnings about thresholds that stay constant while the buffer changes; plans may use `[[paired]]`."""
    # Only axes whose paths begin with a port can change buffers.
    if not any(axis.path.startswith("port.") for axis in plan.axes):
        return []
    scenarios = [plan.points[index].scenario for index in _spread(len(plan.points), CHECKED_POINTS)]
    # Even if all points have the same buffer size, this size may differ from that of the base scenario.
    is_set = any(len(axis) == 1 and axis.path.endswith(".buffer") for axis in plan.axes)
    return list(thresholds([plan.base, *scenarios] if is_set else scenarios, of_plan=of_plan))


def thresholds(scenarios: Sequence[Mapping[str, Any]], *, of_plan: bool = True) -> Iterator[str]:
    """Yields warnings about thresholds in cells that stay constant while the buffer they belong to changes."""
    otherwise = ", or give each buffer its own threshold in [[paired]]" if of_plan else ""
    # The threshold at each buffer size, by path; None if the plan also varies the threshold, which is intended.
    known: dict[str, dict[int, int | None]] = {}
    for scenario in scenarios:
        for port, table in tables_in(scenario.get("port")):
            buffer = table.get("buffer")
            if not isinstance(buffer, int) or isinstance(buffer, bool) or buffer <= 0:
                continue
            for policy, own in tables_in(table.get("policy")):
                for key, value in own.items():
                    path = f"port.{port}.policy.{policy}.{key}"
                    if (cells := _cells(value, path)) is not None:
                        at = known.setdefault(path, {})
                        at[buffer] = cells if at.get(buffer, cells) == cells else None
    constant = {path: at for path, at in known.items() if len(at) > 1 and len(set(at.values())) == 1}
    for path, at in list(constant.items())[:MOST_NAMED]:
        small, large = min(at), max(at)
        if (value := at[small]) is not None:
            yield (
                f"{path} stays {value:,} cells while the buffer goes from {small:,} to {large:,}: {value / small:.0%} of the "
                f"smallest, {value / large:.0%} of the largest. Write "
                f'"{value / small:.0%}" or "buffer - {small - value} cells", which scale with the buffer{otherwise}'
            )


def networks(paths: Mapping[str, str]) -> Iterator[str]:
    """Yields a warning about means over axes that change the network or the TCP.

    Args:
        paths: Paths into the scenario, by the names of axes that vary.
    """
    names = {name: NETWORKS[root] for name, path in paths.items() if (root := path.split(".")[0]) in NETWORKS}
    if names and len(names) < len(paths):
        kinds = list(dict.fromkeys(names.values()))
        yield (
            f"averaging over {' and '.join(map(shown, names))} mixes different "
            f"{' and '.join(f'{kind}s' for kind in kinds)}: the best value on average may be the best in no case. "
            f"Look at each {' and '.join(kinds)} separately"
        )


# Warnings about stores.


def of_store(store: Store) -> list[str]:
    """Returns warnings about a store's plan and its runs."""
    try:
        plan = store.plan
        warnings = of_plan(plan)
    except CelltrainError:
        # A plan made by another version may be invalid in this version.
        return []
    runs = store.runs()
    carried = _carried(runs)
    count = len(runs.points)
    some, none = (np.bincount(runs.case, one, count) > 0 for one in (carried > 0, carried == 0))
    dead = none & ~some
    undefined = without_values(store.manifest["measures"], runs)
    still_open = open_requests(store.manifest["measures"], runs)
    unmet = unmet_rules(runs, lambda case: _point(plan, int(runs.points[case])))
    checks: list[Iterable[str]] = [_dead(runs, plan, dead), _little(runs, plan), undefined, still_open, unmet, warnings]
    checks += [_without_effect(runs, plan, dead), _indistinct(runs, plan, dead), _lock_step(store, plan)]
    return [one for check in checks for one in check]


def little_points(store: Store) -> dict[int, tuple[float, int]]:
    """Returns the points of a store that carry little, in the form of `little`; empty if the plan cannot be read."""
    with suppress(CelltrainError):
        return _little_points(store.runs(), store.plan)
    return {}


def lock_step_points(store: Store) -> dict[int, LockStepWarning]:
    """Returns the points of a store whose results may depend on lock-step, by number.

    Empty if the store lacks the measures of the smallest goodput and of timeouts, has more than a million runs, or has
    an unreadable plan of another version. Checks at most a thousand points, those with the least goodput.
    """
    names = store.manifest["measures"]
    if not {LEAST, TIMEOUTS} <= set(names):
        return {}
    try:
        plan = store.plan
    except CelltrainError:
        return {}
    if plan.runs > MOST_RUNS:
        return {}
    runs = store.runs()
    least, timeouts = (runs.values[:, names.index(name)] for name in (LEAST, TIMEOUTS))
    known = ~np.isnan(least) & ~np.isnan(timeouts)
    by_point: dict[int, dict[int, tuple[float, float]]] = {}
    for place in np.flatnonzero(known & np.isin(runs.case, runs.case[known & (timeouts > 0)])).tolist():
        pair = float(least[place]), float(timeouts[place])
        by_point.setdefault(int(runs.point[place]), {})[int(runs.seed[place])] = pair
    order = sorted(by_point, key=lambda point: min(by_point[point].values()))
    found = {point: lock_step_warning(_case(plan, point), by_point[point]) for point in order[:MOST_JUDGED]}
    return {point: warning for point, warning in sorted(found.items()) if warning is not None}


def _lock_step(store: Store, plan: Plan) -> Iterator[str]:
    """Yields a warning about the points that may depend on lock-step."""
    if found := lock_step_points(store):
        first, warning = next(iter(found.items()))
        setting = ", ".join(f"{name} {value}" for name, value in plan.points[first].values.items())
        where = f"the first of these points is {first} ({setting}): " if setting else ""
        yield f"{len(found):,} of {len(plan.points):,} points may depend on lock-step: {where}{warning}"


def _carried(runs: StoredRuns) -> NDArray[np.float64]:
    """Returns the amount of data that each run delivered; NaN if no measure shows it."""
    names = [measure.name for measure in runs.measures]
    measure = next((one for one in _CARRIED if one in names), None)
    return np.full(len(runs), np.nan) if measure is None else runs.values[:, names.index(measure)]


def without_values(measures: Sequence[str], runs: RunTable) -> Iterator[str]:
    """Yields a warning for each measure that has no value in some runs for a reason such as too few requests."""
    without: dict[int, list[int]] = {}
    total = np.bincount(runs.case)
    for run, place in runs.gaps:
        if place >= 0 and np.isnan(runs.values[run, place]):
            without.setdefault(place, []).append(run)
    for place in range(len(measures)):
        if of_measure := without.get(place):
            problem = runs.gaps[min(of_measure), place]
            text = f"{problem}; the measure has no value in {counted(len(of_measure), 'run')} of {len(runs):,}"
            yield text + _partial(np.bincount(runs.case[of_measure], minlength=len(total)), total)


def open_requests(measures: Sequence[str], runs: RunTable) -> Iterator[str]:
    """Yields a warning for each measure that depends on open requests in some runs."""
    for place in range(len(measures)):
        notes = [note for (run, at), note in runs.gaps.items() if at == place and not np.isnan(runs.values[run, place])]
        if notes:
            yield on_open(notes, len(runs))


def on_open(notes: Sequence[str], runs: int) -> str:
    """Returns the warning about runs whose notes say that a measure depends on open requests.

    >>> notes = [f"'requests.web.all.slowdown_p99' is a lower bound: {n} of 230 requests were open at the end" for n in (9, 22)]
    >>> on_open(notes, 4).partition(" in ")[2]
    '2 runs of 4: up to 22 of 230 requests were open at the end; run longer, or let measure.to end earlier'
    """
    what, _, most = max(notes, key=_open).rpartition(": ")
    up_to = "up to " if len(notes) > 1 else ""
    where = f" in {counted(len(notes), 'run')} of {runs:,}" if runs > 1 else ""
    return f"{what}{where}: {up_to}{most}; run longer, or let measure.to end earlier"


def _open(note: str) -> int:
    """Returns the number of open requests in a note."""
    number, _, _ = note.rpartition(": ")[2].partition(" ")
    return int(number.replace(",", ""))


def unmet_rules(
    runs: RunTable, place: Callable[[int], str], scenario: Callable[[int], str] = lambda _: ""
) -> Iterator[str]:
    """Yields a warning for each rule of a link that had no effect, once per scenario.

    Args:
        runs: The runs.
        place: Describes the settings of a case; empty if there are none.
        scenario: Returns the name of a case's scenario; empty if there is only one.
    """
    found: dict[tuple[str, int], list[int]] = {}
    for run, gap in runs.gaps:
        if gap < 0:
            found.setdefault((scenario(int(runs.case[run])), gap), []).append(run)
    total = Counter(map(scenario, runs.case.tolist())) if found else {}
    ordered = sorted(found.items(), key=lambda one: (min(one[1]), -one[0][1]))
    for (name, gap), own in ordered[:MOST_REPORTED]:
        first = min(own)
        text = f"{shown(name)}: {runs.gaps[first, gap]}" if name else runs.gaps[first, gap]
        of = ", ".join(filter(None, (place(int(runs.case[first])), f"seed {runs.seed[first]}")))
        share = f"in {len(own):,} of {total[name]:,} runs; the numbers are from {of}"
        yield f"{text} ({share})" if total[name] > 1 else text
    if (more := len(ordered) - MOST_REPORTED) > 0:
        yield f"{counted(more, 'more rule')} of links never met the packets or cells to lose or delay"


def _partial(without: NDArray[np.int64], total: NDArray[np.int64]) -> str:
    """If some means cover only a part of a case's runs, returns the end of a warning with the number of such cases."""
    partial = (without > 0) & (without < total)
    if not partial.any():
        return ""
    place = int(np.argmin(np.where(partial, total - without, total.max() + 1)))
    cases = counted(int(partial.sum()), "case")
    with_value = f"{total[place] - without[place]} of {total[place]}"
    return f". In {cases}, the mean covers only the runs with a value, in one case {with_value}"


def _dead(runs: StoredRuns, plan: Plan, dead: NDArray[np.bool_]) -> Iterator[str]:
    """If runs delivered no data and one of the measures shows it, yields a warning."""
    carried = _carried(runs)
    empty = int((carried == 0).sum())
    if not empty:
        return
    count = "1 run" if empty == 1 else f"{empty:,} runs"
    text = f"{count} of {int((~np.isnan(carried)).sum()):,} carried nothing, and fairness is undefined there"
    if points := runs.points[dead].tolist():
        first = _point(plan, points[0])
        if len(points) == 1:
            text += f". 1 point delivers no data with any seed{first and f', {first}'}: ignore its other measures"
        else:
            text += f". {len(points):,} points deliver no data with any seed{first and f', the first {first}'}: ignore their other measures"
    yield text


def _little_points(runs: StoredRuns, plan: Plan) -> dict[int, tuple[float, int]]:
    """Returns the points that carry little, in the form of `little`. Rivals differ only in axes of policies."""
    points = runs.points
    rivals = points.copy()
    for group, stride in _strides(plan):
        if all(re.match(r"port\.[^.]+\.policy(\.|$)", axis.path) for axis in group.axes):
            rivals -= points // stride % len(group) * stride
    found = little(means(runs.case, _carried(runs), len(points)).mean, rivals)
    return {int(points[case]): (share, int(points[best])) for case, (share, best) in found.items()}


def _little(runs: StoredRuns, plan: Plan) -> Iterator[str]:
    if found := _little_points(runs, plan):
        point, (share, best) = min(found.items(), key=lambda one: one[1][0])
        others = len(found) - 1
        more = f", and {others:,} more such {'point' if others == 1 else 'points'}" if others else ""
        yield carries_little(_point(plan, point), share, _point(plan, best)) + more


def _without_effect(runs: StoredRuns, plan: Plan, dead: NDArray[np.bool_]) -> Iterator[str]:
    """Yields a warning for each axis that changed nothing in any run."""
    known = runs.printed & ~dead[runs.case]
    if not known.any():
        return
    point, prints = runs.point[known], runs.fingerprint[known].view(np.int64)
    seeds, seed = np.unique(runs.seed[known], return_inverse=True)
    for group, stride in _strides(plan):
        others = point - point // stride % len(group) * stride
        if pairs := equal_pairs(others * len(seeds) + seed, prints):
            yield without_effect(_group_name(group), pairs)


def _indistinct(runs: StoredRuns, plan: Plan, dead: NDArray[np.bool_]) -> Iterator[str]:
    """Yields a warning about points at which seeds hardly differ, so that their intervals mean little."""
    if plan.seeds.count < LEAST_SEEDS or plan.runs > MOST_RUNS or not runs.printed.any():
        return
    case, prints, count = runs.case[runs.printed], runs.fingerprint[runs.printed], len(runs.points)
    seeds = np.bincount(case, minlength=count)
    pairs = np.unique(np.stack([case.astype(np.uint64), prints]), axis=1)
    distinct = np.bincount(pairs[0].astype(np.int64), minlength=count)
    found_means = [means(case, column, count) for column in runs.values[runs.printed].T]
    mean, sd = (np.array([getattr(one, name) for one in found_means]) for name in ("mean", "sd"))
    able = np.flatnonzero(
        (seeds >= LEAST_SEEDS) & ~dead & ((distinct == 1) | narrow([one.name for one in runs.measures], mean, sd))
    )
    # Reading a scenario takes as long as a short run. If there are many points, only some scenarios are read.
    chosen = able[list(_spread(len(able), MOST_READ))]
    points = runs.points[chosen].tolist()
    found = [
        point
        for point, prints in zip(points, distinct[chosen], strict=True)
        if prints == 1 or _ties_only(_case(plan, point))
    ]
    if found:
        total = len(chosen) if len(chosen) < len(able) else int((seeds > 0).sum())
        yield seeds_hardly_matter(int(seeds.max()), len(found), total, _point(plan, found[0]), tcps(plan), "points")


# Tests on the results of runs.


def equal_pairs(keys: NDArray[np.int64], prints: NDArray[np.int64]) -> int:
    """Returns the number of pairs of runs with the same key, if all have equal fingerprints; otherwise 0.

    Args:
        keys: A number for each run, equal for runs that differ only in the examined setting.
        prints: A number for each run that represents its fingerprint.

    >>> equal_pairs(np.array([0, 0, 1, 1]), np.array([7, 7, 8, 8])), equal_pairs(np.array([0, 0, 1]), np.array([7, 8, 8]))
    (2, 0)
    """
    if not len(keys):
        return 0
    order = np.lexsort((prints, keys))
    again = keys[order][1:] == keys[order][:-1]
    differs = again & (prints[order][1:] != prints[order][:-1])
    return 0 if differs.any() else int(again.sum())


def little(carried: NDArray[np.float64], rivals: NDArray[np.int64]) -> dict[int, tuple[float, int]]:
    """Returns the cases that deliver little data, by number: their fraction of the best rival's data, and the rival.

    Args:
        carried: Mean traffic of each case; NaN if it is not known.
        rivals: A number for each case, equal for cases that differ only in their policies.

    >>> little(np.array([5.0, 0.1, 7.0, 0.0]), np.array([0, 0, 1, 0]))
    {1: (0.02, 0)}
    """
    found = {}
    for case in np.flatnonzero(carried > 0):
        own = np.flatnonzero(rivals == rivals[case])
        best = int(own[np.nanargmax(carried[own])])
        if carried[case] < LITTLE * carried[best]:
            found[int(case)] = (float(carried[case] / carried[best]), best)
    return found


def narrow(measures: Sequence[str], mean: NDArray[np.float64], sd: NDArray[np.float64]) -> NDArray[np.bool_]:
    """For each case, returns whether its runs hardly differ.

    Args:
        measures: Names of the measures.
        mean: Means by measure and case.
        sd: Standard deviations by measure and case.
    """
    names = list(measures)
    rows = [names.index(name) for name in DECISIVE if name in names][:1] or list(range(len(names)))
    with np.errstate(invalid="ignore"):
        return np.asarray(~(sd[rows] > NARROW * np.abs(mean[rows])).any(axis=0))


# The texts of the warnings.


def carried_nothing(name: str, count: int, runs: int) -> str:
    """Returns the warning about runs in which no flow delivered any data.

    >>> carried_nothing("mine", 10, 10)
    'mine carried nothing in any of 10 runs: its fairness is undefined, and a comparison with it is meaningless'
    >>> carried_nothing("mine", 3, 10)
    'mine carried nothing in 3 of 10 runs: fairness is undefined there, and its mean excludes these runs'
    """
    if count < runs:
        return f"{name} carried nothing in {count:,} of {runs:,} runs: fairness is undefined there, and its mean excludes these runs"
    of = "its one run" if runs == 1 else f"any of {runs:,} runs"
    return f"{name} carried nothing in {of}: its fairness is undefined, and a comparison with it is meaningless"


def carries_little(name: str, share: float, best: str, where: str = "") -> str:
    """Returns the warning about a policy that delivers only this fraction of the best policy's data.

    >>> carries_little("mine", 0.00161, "tail_drop", " in lan-5")
    'mine carries 0.16 % of the goodput of tail_drop in lan-5; ignore its other measures'
    """
    return f"{name} carries {percent(share)} of the goodput of {best}{where}; ignore its other measures"


def seeds_hardly_matter(seeds: int, count: int, total: int, first: str, tcp: Iterable[str], what: str = "cases") -> str:
    """Returns the warning that `count` of `total` cases hardly change with the seed.

    `tcp` contains the summaries of their TCPs, which begin with the variant or the stack. Stacks have no ticks.
    """
    variants = dict.fromkeys(name for one in tcp if (name := one.partition(" ")[0]) in RECOVERY)
    phase = "".join(f" --set tcp.{variant}.timer.tick_phase=random" for variant in variants)
    cases = f"{count:,} of {total:,} {what}, such as {first}" if total > 1 else first or "this scenario"
    return (
        f"{seeds} seeds hardly change {cases}: the interval does not cover other start times or delays. "
        f"Add --set host.start_spread=100ms{phase}, or vary delays too"
    )


def without_effect(name: str, pairs: int) -> str:
    """Returns the warning about an axis that changes nothing."""
    if pairs == 1:
        return f"{name} changes nothing in the only pair of runs that differ in this setting alone"
    return (
        f"{name} changes nothing: all {pairs:,} pairs of runs that differ in this setting alone have the same "
        "fingerprint; check that the scenario uses this setting"
    )


def fixed_line(axes: Iterable[Axis], only_where: Mapping[str, str]) -> str:
    """Returns a line about the axes with a single value; empty if all axes have several values."""
    texts = []
    for axis in axes:
        only = f" (only where {only_where[axis.name]})" if axis.name in only_where else ""
        if len(axis) == 1:
            texts.append(f"{shown(axis.name)} = {valued(axis.column(0), axis.unit)}{only}")
    return f"set: {', '.join(texts)}" if texts else ""


def only_where(plans: Mapping[str, Plan]) -> dict[str, str]:
    """Returns, by name, the axes with one value that only take effect in some cases, with a description of these cases."""
    found = {}
    for axis in next(iter(plans.values())).axes:
        uses = {name: plan.uses[axis.name] for name, plan in plans.items() if axis.name in plan.uses}
        if len(axis) > 1 or all(use.everywhere for use in uses.values()):
            continue
        if len({use.at for use in uses.values()}) == 1:
            found[axis.name] = _where(next(iter(uses.values())))
        else:
            found[axis.name] = ", or ".join(f"{_where(use)} in {shown(name)}" for name, use in uses.items() if use.at)
    return found


def _where(use: Use) -> str:
    """Returns the points at which an axis takes effect as a clause, such as `tcp is vanilla`."""
    names = settings([axis.name for axis in use.by], [axis.path for axis in use.by])
    points = [[valued(one, axis.unit) for one, axis in zip(values, use.by, strict=True)] for values in use.at]
    if len(names) == 1:
        return f"{names[0]} is {' or '.join(value for [value] in points)}"
    return " or ".join(" and ".join(f"{name} is {one}" for name, one in zip(names, own, strict=True)) for own in points)


def percent(share: float) -> str:
    """Formats a small fraction as a percentage with two digits."""
    return f"{float(f'{100 * share:.2g}'):g} %"


# Helpers.


def _spread(count: int, most: int) -> Sequence[int]:
    """Returns the numbers of `count` points, or an even selection of the points."""
    return range(count) if count <= most else [(count - 1) * i // (most - 1) for i in range(most)]


def _strides(plan: Plan) -> Iterator[tuple[Group, int]]:
    """Yields the groups of axes that vary, each with the difference in point number between adjacent values."""
    stride = len(plan.points)
    for group in plan.groups:
        stride //= len(group)
        if len(group) > 1:
            yield group, stride


def _network_path(group: Group) -> str:
    """Returns the path in a group of axes that changes the network or the TCP.

    If no path does, returns the first path.
    """
    paths = [axis.path for axis in group.axes]
    return next((path for path in paths if path.split(".")[0] in NETWORKS), paths[0])


def _group_name(group: Group) -> str:
    return " with ".join(shown(axis.name) for axis in group.axes)


def _point(plan: Plan, index: int) -> str:
    """Describes a point by its settings that vary between points."""
    places = plan.points.places(index)
    return ", ".join(
        f"{shown(axis.name)} = {valued(axis.column(place), axis.unit)}" for axis, place in places if len(axis) > 1
    )


def _case(plan: Plan, point: int) -> _core.Case | None:
    """Returns the case of a point; None if its scenario is refused, for example because it does not fit into memory."""
    try:
        return plan.case(point)
    except ScenarioError:
        return None


def _ties_only(case: _core.Case | None) -> bool:
    """Returns whether only the order of simultaneous cells is random, or nothing at all."""
    return case is not None and not case.drawn


def _cells(value: Any, path: str) -> int | None:
    """Returns a setting as a number of cells if it does not depend on the buffer; otherwise None."""
    if isinstance(value, str):
        written = re.fullmatch(r"\s*([0-9]+)\s*cells?\s*", value)
        return int(written[1]) if written else None
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 1 or value != int(value):
        return None
    return int(value) if _is_threshold(path) else None


def _is_threshold(path: str) -> bool:
    with suppress(UnknownKeyError):
        return follow(path).is_threshold
    return False


# Checks whether a result may depend on lock-step, in which flows that start together run in step and one starves.


#: A flow counts as starved if it gets less than this fraction of its fair share over a whole run.
NEAR_NONE = 0.01
#: Minimum fair share, in segments of the largest size, for starvation to be meaningful.
LARGE_SHARE = 100
#: The measures needed from each run.
LEAST, TIMEOUTS = "flows.least(*).goodput_mbps", "flows.sum(*).timeouts"


@dataclass(frozen=True, kw_only=True)
class LockStepWarning:
    """A result that may depend on lock-step.

    Attributes:
        step: The flows in step: see `celltrain_run::lock_step::LockStep`.
        seeds: Number of seeds that were run.
        starved: Number of seeds in which a flow starves.
        least_mbps: The smallest goodput of a flow in any of these seeds.
    """

    step: Mapping[str, Any]
    seeds: int
    starved: int
    least_mbps: float

    def __str__(self) -> str:
        step = self.step
        runs = f"{self.starved} of {self.seeds} seeds" if self.seeds > 1 else "its one seed"
        changed = ["the order of simultaneous cells"] * step["ties_drawn"] + ["the rate of all clocks together"] * step[
            "ticks_drift"
        ]
        differ = f"different seeds change only {' and '.join(changed)}" if changed else "seeds do not differ"
        return (
            f"in {runs} a flow starves ({self.least_mbps:.3g} of a fair {step['fair_mbps']:.3g} Mb/s), and {differ}: "
            f"{step['together']} flows start together and hosts use no random times. The result may depend on this lock-step. Check "
            f'whether it stays the same with [host] processing = "{step["processing"]}", processing_times = "uniform", '
            f'or with clock_offset = "{step["tick"]}"'
        )


def lock_step_warning(case: _core.Case | None, runs: Mapping[int, tuple[float, float]]) -> LockStepWarning | None:
    """Returns a warning if the results of several seeds may depend on lock-step, or else None.

    Args:
        case: The case; None if its scenario is refused, which gives no warning.
        runs: For each seed, the smallest goodput of a flow in megabits per second and the timeouts of all flows: the
            values of the measures `LEAST` and `TIMEOUTS`.

    >>> from celltrain.model.scenario import read
    >>> lan = read("lan-tail-drop").case
    >>> lock_step_warning(lan, {1: (9.5, 40.0), 2: (8.0, 41.0)}) is None
    True
    >>> found = lock_step_warning(lan, {1: (9.5, 40.0), 2: (0.1, 41.0)})
    >>> found.starved, found.seeds
    (1, 2)
    """
    # Building the network takes time, so first check whether any timer expired.
    if case is None or not any(timeouts for _, timeouts in runs.values()):
        return None
    step = json.loads(case.in_step() or "{}")
    if not step or step["fair_segments"] < LARGE_SHARE:
        return None
    least = NEAR_NONE * step["fair_mbps"]
    starved = [goodput for goodput, timeouts in runs.values() if timeouts > 0 and goodput < least]
    return (
        LockStepWarning(step=step, seeds=len(runs), starved=len(starved), least_mbps=min(starved)) if starved else None
    )
