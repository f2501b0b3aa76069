"""What to look at before a sweep or a comparison is believed: innocent plans that teach what is not so.

An axis that changes nothing, a threshold that stays where it is while the buffer grows, a mean over different networks. Each is
said before the runs where the plan shows it, after them, and in the report.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain import _core
from celltrain.drawing.pages.words import settings, valued
from celltrain.ensemble.lockstep import drawn
from celltrain.ensemble.plan import canonical
from celltrain.ensemble.plan.axes import CHECKED_POINTS
from celltrain.ensemble.plan.plan import tcps
from celltrain.errors import CelltrainError, ScenarioError
from celltrain.model.cancel import current
from celltrain.model.paths import UnknownKeyError, follow
from celltrain.model.scenario import Reading
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.ensemble.plan import Plan
    from celltrain.ensemble.plan.axes import Group, Use
    from celltrain.ensemble.store import Store

#: Thresholds that are named; a network may have thousands of ports.
MOST_NAMED = 3
#: Parts of a scenario that a policy does not choose, and what differs if they are varied. Means over them say little.
NETWORKS = {"topology": "network", "tcp": "TCP"}
#: A measure that is 0 in a run that carried nothing.
DELIVERED = "flows.sum(*).delivered_bytes"
#: Measures of a sweep that are 0 in such a run as well.
_SAME = (DELIVERED, "goodput_mbps", "efficiency")
#: What carries less than this share of the best policy in the same network gets a warning.
LITTLE = 0.1
#: Seeds hardly change a case if there are at least so many and no standard deviation exceeds this share of its mean.
LEAST_ALIKE, NARROW = 3, 0.003
#: The first of these that is measured decides about it; counts such as those of cells vary with the order of ties. Without
#: any of them all decide.
DECISIVE = ("efficiency", "fairness", "fairness_max_min", "goodput_mbps")
#: Runs of a store that is judged: of more the rows would take much memory.
MOST_RUNS = 1_000_000
#: Points of a plan whose scenarios are read for the warnings of the check, and warnings that are told.
MOST_READ, MOST_TOLD = 200, 5
#: Seconds that all tries of a plan may take, and one of them.
TRIED_SECONDS, TRY_SECONDS = 10.0, 2.0


def of_plan(plan: Plan) -> list[str]:
    """What a plan shows before anything is run."""
    staying = of_points(plan)
    return [*staying, *of_check({plan.name: plan}, staying), *_networks(plan)]


def of_check(plans: Mapping[str, Plan], told: Sequence[str] = ()) -> list[str]:
    """Returns the warnings that `celltrain check` gives for the points of these plans, each once.

    A warning that not all points have names the first point that has it. Of a large plan a choice of points is read.

    Args:
        plans: Plans by name.
        told: Warnings of thresholds that stay while the buffer changes; the check doubts some of them as well.
    """
    found: dict[str, list[str]] = {}
    looked_at = 0
    for name, plan in plans.items():
        for index in _chosen(len(plan.points), MOST_READ):
            where = ", ".join(one for one in (shown(name) if len(plans) > 1 else "", _point(plan, index)) if one)
            looked_at += 1
            for message in Reading.of_table(plan.points[index].scenario, name).warnings:
                path = message.partition(" = ")[0]
                if not any(one.startswith(f"{path} stays") for one in told):
                    found.setdefault(message, []).append(where)

    def at(places: Sequence[str]) -> str:
        if len(places) == looked_at:
            return ""
        more = f" and {len(places) - 1:,} more" if len(places) > 1 else ""
        return f" (at {places[0]}{more})"

    messages = [f"{message}{at(places)}" for message, places in found.items()]
    if len(messages) <= MOST_TOLD:
        return messages
    return [
        *messages[:MOST_TOLD],
        f"{len(messages) - MOST_TOLD:,} more warnings of this kind; celltrain check prints those of a scenario",
    ]


def _chosen(count: int, most: int) -> Sequence[int]:
    """Returns the numbers of `count` points, or an even choice of them."""
    return range(count) if count <= most else [(count - 1) * i // (most - 1) for i in range(most)]


def of_store(store: Store) -> list[str]:
    """The same of a store's plan, and the axes that changed nothing in its runs."""
    try:
        plan = store.plan
        told = of_plan(plan)
    except CelltrainError:
        # Another version's plan need not be one today.
        return []
    return [*_dead(store, plan), *_little(store, plan), *told, *_idle(store, plan), *_alike(store, plan)]


def tried(plan: Plan) -> list[str]:
    """Axes that seem to change nothing: a few pairs of runs that differ in one alone, none longer than a moment."""
    found, prints, begun = [], dict[str, str | None](), time.monotonic()
    stride, strides = 1, list[int]()
    for group in reversed(plan.groups):
        strides.insert(0, stride)
        stride *= len(group)
    for group, step in zip(plan.groups, strides, strict=True):
        if len(group) == 1:
            continue
        differ, alike = False, 0
        # At both corners and in the middle of the other axes.
        for base in dict.fromkeys(at - at // step % len(group) * step for at in (0, stride // 2, stride - 1)):
            texts = [_canonical(plan.points[base + level * step].scenario) for level in (0, len(group) - 1)]
            if None in texts or texts[0] == texts[1]:
                # Here it sets nothing; elsewhere it may.
                continue
            for text in texts:
                if text is not None and text not in prints and time.monotonic() - begun < TRIED_SECONDS:
                    prints[text] = _print(text, plan.seeds.first)
            known = [prints.get(text or "") for text in texts]
            if None in known:
                continue
            differ |= known[0] != known[1]
            alike += known[0] == known[1]
        if alike and not differ:
            found.append(
                f"{_called(group)} seems to change nothing: its first and its last value gave the same run, in "
                f"{alike} of {alike} {'tries' if alike > 1 else 'try'}; look whether the scenario uses what it sets"
            )
    return found


def same(keys: NDArray[np.int64], prints: NDArray[np.int64]) -> int:
    """How many runs could differ from another of their key, where none does; 0 where one does, or none could.

    Args:
        keys: For each run a number that runs share which differ only in what is asked about.
        prints: For each run a number that stands for its fingerprint.

    >>> same(np.array([0, 0, 1, 1]), np.array([7, 7, 8, 8])), same(np.array([0, 0, 1]), np.array([7, 8, 8]))
    (2, 0)
    """
    if not len(keys):
        return 0
    order = np.lexsort((prints, keys))
    again = keys[order][1:] == keys[order][:-1]
    differs = again & (prints[order][1:] != prints[order][:-1])
    return 0 if differs.any() else int(again.sum())


def carried_nothing(name: str, count: int, runs: int) -> str:
    """What to say of runs in which no flow delivered anything.

    >>> carried_nothing("mine", 10, 10)
    'mine carried nothing in any of 10 runs: its fairness is undefined, and a comparison with it says nothing'
    >>> carried_nothing("mine", 3, 10)
    'mine carried nothing in 3 of 10 runs: fairness is undefined there, and its mean leaves them out'
    """
    if count < runs:
        return f"{name} carried nothing in {count:,} of {runs:,} runs: fairness is undefined there, and its mean leaves them out"
    of = "its one run" if runs == 1 else f"any of {runs:,} runs"
    return f"{name} carried nothing in {of}: its fairness is undefined, and a comparison with it says nothing"


def carries_little(name: str, share: float, best: str, where: str = "") -> str:
    """Returns the warning for a policy that carries this share of what the best one carries.

    >>> carries_little("mine", 0.00161, "tail_drop", " in lan-5")
    'mine carries 0.16 % of what tail_drop carries in lan-5; ignore its other measures'
    """
    return f"{name} carries {percent(share)} of what {best} carries{where}; ignore its other measures"


def narrow(measures: Sequence[str], mean: NDArray[np.float64], sd: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Returns for each case whether its runs hardly differ.

    Args:
        measures: Names of the measures.
        mean: By measure and case.
        sd: Their standard deviations.
    """
    names = list(measures)
    rows = [names.index(name) for name in DECISIVE if name in names][:1] or list(range(len(names)))
    with np.errstate(invalid="ignore"):
        return np.asarray(~(sd[rows] > NARROW * np.abs(mean[rows])).any(axis=0))


def alike(seeds: int, count: int, total: int, first: str, tcps: Iterable[str], what: str = "cases") -> str:
    """Returns the warning that seeds hardly change `count` of `total` cases.

    `tcps`: the summaries of their TCPs, which begin with the variant.
    """
    variants = {tcp.partition(" ")[0] for tcp in tcps}
    variant = variants.pop() if len(variants) == 1 else "NAME"
    cases = f"{count:,} of {total:,} {what}, such as {first}" if total > 1 else first or "this scenario"
    return (
        f"{seeds} seeds hardly change {cases}: the interval says nothing about other starts or delays. "
        f"Add --set host.start_spread=100ms --set tcp.{variant}.tick_phase=random, or vary delays too"
    )


def where(use: Use) -> str:
    """Returns the points at which an axis takes effect, as a clause: `tcp is vanilla`."""
    names = settings([axis.name for axis in use.by], [axis.path for axis in use.by])
    points = [[valued(one, axis.unit) for one, axis in zip(values, use.by, strict=True)] for values in use.at]
    if len(names) == 1:
        return f"{names[0]} is {' or '.join(value for [value] in points)}"
    return " or ".join(" and ".join(f"{name} is {one}" for name, one in zip(names, own, strict=True)) for own in points)


def percent(share: float) -> str:
    """Returns a small share in per cent, with two digits."""
    return f"{float(f'{100 * share:.2g}'):g} %"


def little(carried: NDArray[np.float64], rivals: NDArray[np.int64]) -> dict[int, tuple[float, int]]:
    """Returns the cases that carry little: by number the share of what the best rival carries, and the rival's number.

    Args:
        carried: What each case carries on average; NaN if it is not known.
        rivals: For each case a number that cases share which differ in nothing but their policies.

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


def idle_words(name: str, pairs: int) -> str:
    """What is said of an axis that changes nothing."""
    return (
        f"{name} changes nothing: all {pairs:,} pairs of runs that differ in it alone have the same fingerprint; look "
        "whether the scenario uses what it sets"
        if pairs > 1
        else f"{name} changes nothing in the one pair of runs that differ in it alone"
    )


def thresholds(scenarios: Sequence[Mapping[str, Any]], *, of_plan: bool = True) -> Iterator[str]:
    """Thresholds in cells that stay while the buffer they belong to changes."""
    otherwise = ", or give each its own in [[paired]]" if of_plan else ""
    shares: dict[str, dict[int, int]] = {}
    for scenario in scenarios:
        for port, table in _tables(scenario.get("port")):
            buffer = table.get("buffer")
            if not isinstance(buffer, int) or isinstance(buffer, bool) or buffer <= 0:
                continue
            for policy, own in _tables(table.get("policy")):
                for key, value in own.items():
                    path = f"port.{port}.policy.{policy}.{key}"
                    cells = _cells(value, path)
                    if cells is not None:
                        # A threshold that is varied too is somebody's intention.
                        known = shares.setdefault(path, {})
                        known[buffer] = cells if known.get(buffer, cells) == cells else -1
    stays = {path: known for path, known in shares.items() if len(known) > 1 and len(set(known.values())) == 1}
    for path, known in list(stays.items())[:MOST_NAMED]:
        (value,) = set(known.values())
        if value < 0:
            continue
        small, large = min(known), max(known)
        yield (
            f"{path} stays {value:,} cells while the buffer goes from {small:,} to {large:,}: {value / small:.0%} of the "
            f"smallest, {value / large:.0%} of the largest. Write "
            f'"{value / small:.0%}" or "buffer - {small - value} cells", which go with the buffer{otherwise}'
        )


def networks(paths: Mapping[str, str]) -> Iterator[str]:
    """Warns of axes that change the network or its TCP.

    Args:
        paths: By the name of each axis that varies its path into the scenario.
    """
    names = {name: NETWORKS[root] for name, path in paths.items() if (root := path.split(".")[0]) in NETWORKS}
    if names and len(names) < len(paths):
        kinds = list(dict.fromkeys(names.values()))
        yield (
            f"averaging over {' and '.join(map(shown, names))} mixes different {' and '.join(f'{kind}s' for kind in kinds)}: the "
            f"best on average may be best in none. Look at each {' and '.join(kinds)} separately"
        )


def of_points(plan: Plan, *, of_plan: bool = True) -> list[str]:
    """Returns the warnings of thresholds that stay while the buffer changes; a comparison has no `[[paired]]` to offer."""
    # Other plans have the same ports at every point.
    if not any(axis.path.split(".")[0] == "port" for axis in plan.axes):
        return []
    chosen = _chosen(len(plan.points), CHECKED_POINTS)
    scenarios = [plan.points[index].scenario for index in chosen]
    # One other buffer at all points is a change too.
    is_set = any(len(axis) == 1 and axis.path.endswith(".buffer") for axis in plan.axes)
    return list(thresholds([plan.base, *scenarios] if is_set else scenarios, of_plan=of_plan))


def _networks(plan: Plan) -> Iterator[str]:
    groups = [group for group in plan.groups if len(group) > 1]
    yield from networks({_called(group): _path(group) for group in groups})


def _path(group: Group) -> str:
    """Of axes that move together the one that changes the network or its TCP, if one does."""
    paths = [axis.path for axis in group.axes]
    return next((path for path in paths if path.split(".")[0] in NETWORKS), paths[0])


def _called(group: Group) -> str:
    return " with ".join(shown(axis.name) for axis in group.axes)


def _carried(store: Store, plan: Plan) -> NDArray[np.float64] | None:
    """Returns a table of point and what a run of it carried, one row a run; None if no measure shows it."""
    measure = next((one for one in _SAME if one in plan.measures), None)
    if measure is None:
        return None
    runs = store.runs()
    values = runs.values[:, plan.measures.index(measure)]
    known = ~np.isnan(values)
    return np.stack([runs.point[known].astype(np.float64), values[known]]) if known.any() else None


def _dead(store: Store, plan: Plan) -> Iterator[str]:
    """Points whose runs carried nothing, if one of the measures shows it."""
    rows = _carried(store, plan)
    if rows is None or not (empty := int((rows[1] == 0).sum())):
        return
    dead = sorted(_without(rows))
    runs = "1 run" if empty == 1 else f"{empty:,} runs"
    told = f"{runs} of {rows.shape[1]:,} carried nothing, and fairness is undefined there"
    if dead:
        first = _point(plan, dead[0])
        points = "point carries nothing with any seed" if len(dead) == 1 else "points carry nothing with any seed"
        told += f"; {len(dead):,} {points}{f', the first {first}' if first else ''}: ignore their other measures"
    yield told


def _without(rows: NDArray[np.float64] | None) -> set[int]:
    """Returns the points that carried nothing with any seed."""
    if rows is None:
        return set()
    points, empty = rows[0].astype(np.int64), rows[1] == 0
    return set(points[empty].tolist()) - set(points[~empty].tolist())


def little_of(store: Store, plan: Plan) -> dict[int, tuple[float, int]]:
    """Returns the points of a store that carry little, as `little`: rivals differ in axes of policies alone."""
    rows = _carried(store, plan)
    if rows is None:
        return {}
    points, place = np.unique(rows[0].astype(np.int64), return_inverse=True)
    carried = np.bincount(place, rows[1]) / np.bincount(place)
    rivals, stride = points.copy(), 1
    for group in reversed(plan.groups):
        if all(re.match(r"port\.[^.]+\.policy(\.|$)", axis.path) for axis in group.axes):
            rivals -= points // stride % len(group) * stride
        stride *= len(group)
    found = little(carried, rivals)
    return {int(points[case]): (share, int(points[best])) for case, (share, best) in found.items()}


def little_points(store: Store) -> dict[int, tuple[float, int]]:
    """Returns the same for the plan of the store itself; nothing if it is another version's that cannot be read."""
    with suppress(CelltrainError):
        return little_of(store, store.plan)
    return {}


def _little(store: Store, plan: Plan) -> Iterator[str]:
    found = little_of(store, plan)
    if found:
        point, (share, best) = min(found.items(), key=lambda one: one[1][0])
        more = (
            f", and {len(found) - 1:,} more such {'point' if len(found) == 2 else 'points'}" if len(found) > 1 else ""
        )
        yield carries_little(_point(plan, point), share, _point(plan, best)) + more


def _point(plan: Plan, index: int) -> str:
    """Returns a point by its settings that vary."""
    places = plan.points.places(index)
    return ", ".join(
        f"{shown(axis.name)} = {valued(axis.column(place), axis.unit)}" for axis, place in places if len(axis) > 1
    )


def _idle(store: Store, plan: Plan) -> Iterator[str]:
    """The axes that changed nothing in the runs that are there."""
    groups = plan.groups
    runs = _prints(store) if any(len(group) > 1 for group in groups) else None
    if runs is None:
        return
    point, codes, seeds = runs[:, ~np.isin(runs[0], list(_without(_carried(store, plan))))]
    if not len(point):
        return
    stride = 1
    for group in reversed(groups):
        level = point // stride % len(group)
        if len(group) > 1:
            others = point - level * stride
            if pairs := same(others * (int(seeds.max()) + 1) + seeds, codes):
                yield idle_words(_called(group), pairs)
        stride *= len(group)


def _prints(store: Store) -> NDArray[np.int64] | None:
    """Returns point, number of the fingerprint and number of the seed of each run; None if there are no runs."""
    runs = store.runs()
    known = runs.printed
    if not known.any():
        return None
    _, codes = np.unique(runs.fingerprint[known], return_inverse=True)
    _, seeds = np.unique(runs.seed[known], return_inverse=True)
    return np.vstack([runs.point[known], codes.reshape(-1), seeds.reshape(-1)]).astype(np.int64)


def _alike(store: Store, plan: Plan) -> Iterator[str]:
    """Points whose runs hardly differ from seed to seed, so that their intervals say little."""
    runs = _prints(store) if plan.seeds.count >= LEAST_ALIKE and plan.runs <= MOST_RUNS else None
    if runs is None:
        return
    numbers, place, count = np.unique(runs[0], return_inverse=True, return_counts=True)
    distinct = np.bincount(np.unique(np.stack([place, runs[1]]), axis=1)[0], minlength=len(numbers))
    names = list(plan.measures)
    mean, sd = np.full((2, len(names), len(numbers)), np.nan)
    summary = store.summary()
    places = {number: place for place, number in enumerate(numbers.tolist())}
    for row in summary.select(["point", "measure", "mean", "sd"]).to_pylist():
        if row["sd"] is not None and row["point"] in places:
            at = names.index(row["measure"]), places[row["point"]]
            mean[at], sd[at] = row["mean"], row["sd"]
    able = (count >= LEAST_ALIKE) & ~np.isin(numbers, list(_without(_carried(store, plan))))
    able &= (distinct == 1) | narrow(names, mean, sd)
    # To read a scenario takes as long as a short run, so that a few of many are read.
    chosen = np.flatnonzero(able)
    chosen = chosen[list(_chosen(len(chosen), MOST_READ))]
    found = [
        int(numbers[one]) for one in chosen if distinct[one] == 1 or _ties_only(plan.points[numbers[one]].scenario)
    ]
    if found:
        yield alike(
            int(count.max()),
            len(found),
            len(chosen) if len(chosen) < able.sum() else len(numbers),
            _point(plan, found[0]),
            tcps(plan),
            "points",
        )


def _ties_only(scenario: Mapping[str, Any]) -> bool:
    """Returns whether seeds draw at most the order of simultaneous cells."""
    text = _canonical(scenario)
    return text is not None and not any(True for _ in drawn(json.loads(text)))


def _canonical(scenario: Mapping[str, Any]) -> str | None:
    """None for one that does not fit the memory: its rows will say so."""
    try:
        return canonical(scenario)
    except ScenarioError:
        return None


class _Enough(Exception):  # noqa: N818, no error
    """A try has taken long enough."""


def _print(text: str, seed: int) -> str | None:
    """The fingerprint of a run; None where it takes too long."""
    begun = time.monotonic()

    def enough(_: float) -> None:
        if time.monotonic() - begun > TRY_SECONDS:
            raise _Enough

    try:
        answer, _ = _core.Scenario(text).run(seed, on_progress=enough, cancel=current())
    except _Enough:
        return None
    return str(json.loads(answer)["fingerprint"])


def _tables(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The tables in a table; a plan's scenario may hold anything."""
    for name, table in value.items() if isinstance(value, Mapping) else ():
        if isinstance(table, Mapping):
            yield str(name), table


def _cells(value: Any, path: str) -> int | None:
    """A setting that is a number of cells, whatever the buffer."""
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
