"""Verdicts on claims: sentences of a paper that state an order or a trend.

Each claim is in the paper's `claims.toml`, with a quotation and one or more tests. It holds if all tests pass on the
means over the seeds; it is open as long as one of its rows has too few finished seeds for a verdict. The same tests are also applied to each seed alone, because the paper's authors may have run only
one, and to the printed numbers, because a text may claim more than its own tables show. A claim of a study has a
`reason`, the theory behind it, and a quotation only if some text makes the same claim.

A test examines rows. A *selection* names them by a table and values of keys (a list matches any of its members). The
forms of tests are:

`greater`      the mean of a quantity over selection `a` exceeds that over `b`, by more than `margin`; with `share`,
               also in at least this share of the rows of `a` and `b` that match in their other keys.
`difference`   the mean over `a` minus the mean over `b` lies in [`low`, `high`].
`ratio`        the mean over `a` divided by the mean over `b` lies in [`low`, `high`].
`bound`        each row over `over` (or, with `of = "mean"`, their mean) lies in [`low`, `high`]; limits may be
               expressions of the row's keys.
`trend`        the quantity changes with `key` in the direction of `sign`: the mean of the rank correlation over the
               `groups` has this sign, and the correlation of at least `share` of the groups has it, too.
`correlation`  over all rows the rank correlation of quantities `x` and `y` has this sign.
`steady`       in each of the `groups`, largest minus smallest value is at most `within` of their mean.
`spread`       in at least `share` of the `groups`, largest minus smallest value is at least `at_least`.
`best`         of all values of some keys (a `setting`), the stated one has the highest mean of the `quantities`, or
               comes within `within` of it.
`paired`       the ratio of `a` to `b`, seed by seed, lies in [`low`, `high`]: its 95 % interval is inside (holds),
               outside (fails), or contains a limit (undecided). With `on`, rows of `a` and `b` that match in these keys
               are compared one by one, and `rows` says whether `every` row, the default, or `some` row is inside.

A claim with a failing test fails; otherwise it is undecided if one of its tests is.

If a threshold stands for a word of the paper, a test may also have a `neighbour`, which contains other limits. With
these limits, the claim has a second verdict, which never replaces the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from celltrain.papers.paper import Number, Paper, PaperError, Row, Value, evaluate, grouped, matches
from celltrain.papers.score import SLACK, Ratio, Scored, ratio
from celltrain.running.statistics import rank_correlation

#: Keys of a test that contain a selection of rows.
SIDES = ("a", "b", "over")
#: Keys of a claim's file that its verdict repeats.
OF_FILE = ("reason", "quote", "section", "depends_on")
#: A test: an entry of `claims.toml`.
Entry = Mapping[str, Any]
#: Result of a test: True if it passes, and None if the seeds cannot decide, with the figures as evidence.
Verdict = tuple[bool | None, str]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim and its verdict.

    Attributes:
        holds: None if the seeds do not decide, and if the claim is open.
        open: True if a row has too few finished seeds.
        reason: Theory from which a study derives the claim; empty for a paper.
        depends_on: Reason for the verdict, in the words of the paper's file: a published or an unpublished setting, or a
            threshold chosen for a word; empty if the file does not say.
        neighbour_holds: Verdict with neighbouring thresholds; None if the claim has none, or is open.
        published_holds: Verdict on the printed numbers; None if the paper prints none.
        seeds_share: Share of single seeds for which the claim holds; None if its rows have no seed in common.
        seeds: Number of seeds common to all its rows.
    """

    id: str
    text: str
    holds: bool | None
    open: bool
    evidence: str
    reason: str
    quote: str
    section: str
    depends_on: str
    neighbour_holds: bool | None
    neighbour_evidence: str
    published_holds: bool | None
    published_evidence: str
    seeds_share: float | None
    seeds: int

    def to_dict(self) -> dict[str, Any]:
        """Returns the claim in the form in which `celltrain reproduce --json` prints it."""
        return asdict(self)


@dataclass(frozen=True)
class Point:
    """The value of a quantity in a row, for tests.

    Attributes:
        by_seed: Value of each seed; empty if there is only `value`.
    """

    table: str
    keys: Row
    quantity: str
    value: float
    by_seed: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, number: Number, value: float, by_seed: Mapping[int, float] | None = None) -> Point:
        """Makes a point from a number and a value."""
        return cls(number.table, number.keys, number.quantity.name, value, by_seed or {})


def judge(paper: Paper, scored: Sequence[Scored], unfinished: Sequence[Number] = ()) -> tuple[list[Claim], list[str]]:
    """Returns the verdict on every claim whose rows were all requested, and the ids of the other claims."""
    ours = [Point.of(s.number, s.mean, s.by_seed) for s in scored]
    chosen = [*(s.number for s in scored), *unfinished]
    printed = [Point.of(number, number.published) for number in chosen if number.published is not None]
    requested = [Point.of(number, 0.0) for number in chosen]
    tables = {number.table for number in chosen}
    everything = _everything(paper, tables)
    claims, left_out = [], []
    for entry in paper.claims:
        with _naming(entry):
            tests = entry["tests"]
            needed = len(_rows(everything, tests)) if _tables(tests) <= tables else None
            if needed is None or len(_rows(requested, tests)) < needed:
                left_out.append(entry["id"])
                continue
            examined = [s for s in scored if _rows([Point.of(s.number, 0.0)], tests)]
            is_open = len(_rows(ours, tests)) < needed or not all(s.enough for s in examined)
            near = [] if is_open else _neighbours(tests)
            by_seed = [] if is_open else _by_seed(tests, examined)
            is_printed = len(_rows(printed, tests)) == needed
            verdicts = {
                "": (None, _too_few(examined, unfinished, tests)) if is_open else verdict(tests, ours),
                "neighbour_": verdict(near, ours) if near else (None, ""),
                "published_": verdict(tests, printed) if is_printed else (None, ""),
            }
            about: dict[str, Any] = {"id": entry["id"], "text": entry["text"]}
            about |= {name: str(entry.get(name, "")) for name in OF_FILE}
            for name, (holds, evidence) in verdicts.items():
                about |= {f"{name}holds": holds, f"{name}evidence": evidence}
            share = sum(by_seed) / len(by_seed) if by_seed else None
            claims.append(Claim(**about, open=is_open, seeds_share=share, seeds=len(by_seed)))
    return claims, left_out


def check(paper: Paper, tables: Set[str]) -> None:
    """Refuses claims about these tables that test a quantity or a row that the paper does not have.

    This comes before anything is run.
    """
    everything, known = _everything(paper, tables), {table.number for table in paper.tables}
    for claim in paper.claims:
        with _naming(claim):
            if (examined := _tables(claim["tests"])) - known:
                raise PaperError("a selection matches no row")
            if not examined <= tables:
                continue
            for entry in claim["tests"]:
                _form(entry)
                if unknown := set(entry.get("neighbour", {})) - {"low", "high"}:
                    raise PaperError(f"neighbour has {', '.join(sorted(unknown))}; it may have low and high")
                for quantity in _quantities(entry):
                    if quantity not in paper.quantities:
                        raise PaperError(f"{quantity!r} is not a quantity; choose from {', '.join(paper.quantities)}")
                _some(_rows(everything, [entry]))


@contextmanager
def _naming(claim: Entry) -> Iterator[None]:
    try:
        yield
    except (PaperError, KeyError) as error:
        raise PaperError(f"claim {claim.get('id')!r}: {error}") from error


def apply(entry: Entry, points: Sequence[Point]) -> Verdict:
    """Applies one test."""
    return _form(entry)(entry, points)


def _form(entry: Entry) -> Callable[[Entry, Sequence[Point]], Verdict]:
    if entry["form"] not in FORMS:
        raise PaperError(f"{entry['form']!r} is not a form; choose from {', '.join(FORMS)}")
    return FORMS[entry["form"]]


def _greater(entry: Entry, points: Sequence[Point]) -> Verdict:
    a, b = _sides(entry, points)
    margin = entry.get("margin", 0.0)
    holds = _mean(a) - _mean(b) > margin
    evidence = f"{entry['quantity']} {_text(_mean(a))} against {_text(_mean(b))}"
    if margin:
        evidence += f" (by more than {_text(margin)})"
    if "share" in entry:
        common = set.intersection(*(set(point.keys) for point in (*a, *b)))
        on = entry.get("on") or sorted(common - set(entry["a"]) - set(entry["b"]))
        first, second = _by_keys(a, on), _by_keys(b, on)
        pairs = [(_mean(first[key]), _mean(second[key])) for key in first if key in second]
        ahead = sum(one > other for one, other in pairs)
        holds = holds and _is_share(ahead, pairs, entry["share"])
        evidence += f", ahead in {ahead} of {len(pairs)} matched rows"
    return holds, evidence


def _difference(entry: Entry, points: Sequence[Point]) -> Verdict:
    a, b = map(_mean, _sides(entry, points))
    return _within(entry, a - b, f"{entry['quantity']} {_text(a)} less {_text(b)}")


def _ratio(entry: Entry, points: Sequence[Point]) -> Verdict:
    a, b = map(_mean, _sides(entry, points))
    return _within(entry, a / b if b else np.inf, f"{entry['quantity']} {_text(a)} over {_text(b)}")


def _bound(entry: Entry, points: Sequence[Point]) -> Verdict:
    rows = select(points, entry["over"], entry["quantity"])
    if entry.get("of", "each") == "mean":
        return _within(entry, _mean(rows), f"mean {entry['quantity']}")
    kept = sum(_is_within(row.value, *_limits(entry, row.keys)) for row in rows)
    values = [row.value for row in rows]
    span = " to ".join(dict.fromkeys(map(_text, (min(values), max(values)))))
    evidence = f"{entry['quantity']} {span}, {kept} of {len(rows)} in {_range(entry)}"
    return _is_share(kept, rows, entry.get("share", 1.0)), evidence


def _trend(entry: Entry, points: Sequence[Point]) -> Verdict:
    groups, sign = _groups(entry, points), _sign(entry)
    # The correlation of a group without variation is undefined, and counts as zero.
    signed = [
        sign * (rank_correlation([_ordinal(p.keys[entry["key"]]) for p in group], [p.value for p in group]) or 0.0)
        for group in groups
    ]
    in_direction = sum(one > SLACK for one in signed)
    mean = float(np.mean(signed))
    evidence = (
        f"{entry['quantity']} {'grows' if sign > 0 else 'falls'} with {entry['key']} in {in_direction} of {len(groups)} groups, "
        f"mean rank correlation {_text(sign * mean)}"
    )
    return mean > SLACK and _is_share(in_direction, groups, entry.get("share", 0.5)), evidence


def _correlation(entry: Entry, points: Sequence[Point]) -> Verdict:
    x, y = ([p.value for p in select(points, entry["over"], entry[side])] for side in ("x", "y"))
    correlation = rank_correlation(x, y) or 0.0
    evidence = f"rank correlation of {entry['x']} and {entry['y']} over {len(x)} rows {_text(correlation)}"
    return _sign(entry) * correlation > SLACK, evidence


def _spread(entry: Entry, points: Sequence[Point]) -> Verdict:
    groups = [[p.value for p in group] for group in _groups(entry, points)]
    wide = sum(max(group) - min(group) >= entry["at_least"] - SLACK for group in groups)
    evidence = f"{entry['quantity']} varies by {_text(entry['at_least'])} or more in {wide} of {len(groups)} groups"
    return _is_share(wide, groups, entry.get("share", 0.5)), evidence


def _steady(entry: Entry, points: Sequence[Point]) -> Verdict:
    groups = [[p.value for p in group] for group in _groups(entry, points)]
    widest = max((max(group) - min(group)) / float(np.mean(group)) for group in groups)
    evidence = f"{entry['quantity']} varies by at most {_text(widest)} of its mean in {len(groups)} groups"
    return widest <= entry["within"] + SLACK, f"{evidence}, allowed {_text(entry['within'])}"


def _best(entry: Entry, points: Sequence[Point]) -> Verdict:
    keys, stated = list(entry["setting"]), tuple(entry["setting"].values())
    rows = [row for quantity in entry["quantities"] for row in select(points, entry["over"], quantity)]
    means = {setting: _mean(of_setting) for setting, of_setting in _by_keys(rows, keys).items()}
    if stated not in means:
        raise PaperError(f"no row has the setting {entry['setting']}")
    top = max(means, key=lambda setting: means[setting])
    label = ", ".join(f"{key} = {value}" for key, value in zip(keys, top, strict=True))
    rank = 1 + sum(mean > means[stated] for mean in means.values())
    evidence = (
        f"mean of {' and '.join(entry['quantities'])} {_text(means[stated])}, "
        f"rank {rank} of {len(means)}; the best is {label} with {_text(means[top])}"
    )
    return means[stated] >= means[top] - entry.get("within", 0.0) - SLACK, evidence


def _paired(entry: Entry, points: Sequence[Point]) -> Verdict:
    # Several tables may share rows.
    sides = [{tuple(sorted(p.keys.items())): p for p in side}.values() for side in _sides(entry, points)]
    a, b = (_by_keys(_some(list(side)), entry.get("on", [])) for side in sides)
    rows = {key: ratio(_seeds(a[key]), _seeds(b[key])) for key in a if key in b}
    if not rows:
        raise PaperError("no row of `a` matches a row of `b`")
    verdicts = [_decided(entry, row) for row in rows.values()]
    if len(rows) == 1:
        [row] = rows.values()
        return verdicts[0], f"ratio of {entry['quantity']} {row}, allowed {_range(entry)}"
    inside, outside = verdicts.count(True), verdicts.count(False)
    ends = [min(rows.values(), key=lambda row: row.mean), max(rows.values(), key=lambda row: row.mean)]
    evidence = (
        f"ratio of {entry['quantity']} from {ends[0]} to {ends[1]}; {inside} of {len(rows)} rows inside, "
        f"{outside} outside {_range(entry)}"
    )
    if entry.get("rows", "every") == "every":
        return _all(verdicts), evidence
    return (True if inside else None if None in verdicts else False), evidence


def _decided(entry: Entry, row: Ratio) -> bool | None:
    low, high = _limits(entry, {})
    if low - SLACK <= row.low and row.high <= high + SLACK:
        return True
    return False if row.high < low or row.low > high else None


def _all(verdicts: Sequence[bool | None]) -> bool | None:
    return False if False in verdicts else None if None in verdicts else True


FORMS: dict[str, Callable[[Entry, Sequence[Point]], Verdict]] = {
    form.__name__.removeprefix("_"): form
    for form in (_greater, _difference, _ratio, _bound, _trend, _correlation, _steady, _spread, _best, _paired)
}


def select(points: Iterable[Point], selection: Entry, quantity: str) -> list[Point]:
    """Returns the points of a selection for this quantity."""
    where = {key: value for key, value in selection.items() if key != "table"}
    tables = selection["table"] if isinstance(selection["table"], list) else [selection["table"]]
    return [p for p in points if p.quantity == quantity and p.table in tables and matches(p.keys, where)]


def _everything(paper: Paper, tables: Set[str]) -> list[Point]:
    return [
        Point(table.number, cell.keys, cell.quantity, 0.0)
        for table in paper.tables
        if table.number in tables
        for cell in table.numbers.cells
    ]


def _tables(tests: Sequence[Entry]) -> set[str]:
    """Returns the tables that the given tests examine."""
    named = [entry[side]["table"] for entry in tests for side in SIDES if side in entry]
    return {table for some in named for table in (some if isinstance(some, list) else [some])}


def verdict(tests: Sequence[Entry], points: Sequence[Point]) -> Verdict:
    """Applies all tests of a claim."""
    verdicts = [apply(entry, points) for entry in tests]
    return _all([holds for holds, _ in verdicts]), "; ".join(evidence for _, evidence in verdicts)


def _neighbours(tests: Sequence[Entry]) -> list[Entry]:
    """Returns the tests with the limits of their neighbours; none if no test has a neighbour."""
    has_any = any("neighbour" in test for test in tests)
    return [{**test, **test.get("neighbour", {})} for test in tests] if has_any else []


def _too_few(examined: Sequence[Scored], unfinished: Sequence[Number], tests: Sequence[Entry]) -> str:
    """Returns why a claim is open."""
    finished = [len(s.seeds) for s in examined]
    finished += [0 for number in unfinished if _rows([Point.of(number, 0.0)], tests)]
    few, most = min(finished), max(finished)
    return f"not enough runs: its rows have {few if few == most else f'{few} to {most}'} finished seeds"


def _by_seed(tests: Sequence[Entry], scored: Sequence[Scored]) -> list[bool]:
    """Returns the verdict for each seed that is present in every row of these tests."""
    values = [(one.number, one.by_seed) for one in scored]
    common = set.intersection(*(set(of_seed) for _, of_seed in values)) if values else set()
    return [
        bool(verdict(tests, [Point.of(number, of_seed[seed]) for number, of_seed in values])[0])
        for seed in sorted(common)
    ]


def _quantities(entry: Entry) -> list[str]:
    return entry.get("quantities") or [entry[name] for name in ("quantity", "x", "y") if name in entry]


def _rows(points: Sequence[Point], tests: Sequence[Entry]) -> list[Point]:
    """Returns every point that the given tests examine."""
    return [
        point
        for entry in tests
        for side in SIDES
        if side in entry
        for quantity in _quantities(entry)
        for point in select(points, entry[side], quantity)
    ]


def _some(points: Sequence[Point]) -> Sequence[Point]:
    if not points:
        raise PaperError("a selection matches no row")
    return points


def _sides(entry: Entry, points: Sequence[Point]) -> list[list[Point]]:
    return [select(points, entry[side], entry["quantity"]) for side in ("a", "b")]


def _by_keys(points: Sequence[Point], keys: Sequence[str]) -> dict[tuple[Value, ...], list[Point]]:
    return grouped(points, lambda point: tuple(point.keys[key] for key in keys))


def _groups(entry: Entry, points: Sequence[Point]) -> list[list[Point]]:
    return list(_by_keys(_some(select(points, entry["over"], entry["quantity"])), entry["groups"]).values())


def _seeds(points: Sequence[Point]) -> list[Mapping[int, float]]:
    """Returns the values of each point by seed. A point without seeds has one value."""
    return [point.by_seed or {0: point.value} for point in points]


def _mean(points: Sequence[Point]) -> float:
    return float(np.mean([p.value for p in _some(points)]))


def _is_share(count: int, of: Sequence[object], share: float) -> bool:
    return count >= share * len(of) - SLACK


def _limits(entry: Entry, keys: Row) -> list[float]:
    limits = (entry.get("low", -np.inf), entry.get("high", np.inf))
    return [float(evaluate(limit, keys)) if isinstance(limit, str) else limit for limit in limits]


def _is_within(value: float, low: float, high: float) -> bool:
    return low - SLACK <= value <= high + SLACK


def _within(entry: Entry, value: float, label: str) -> Verdict:
    return _is_within(value, *_limits(entry, {})), f"{label} is {_text(value)}, allowed {_range(entry)}"


def _sign(entry: Entry) -> int:
    signs = {"positive": 1, "negative": -1}
    if entry["sign"] not in signs:
        raise PaperError(f"sign = {entry['sign']!r} is neither 'positive' nor 'negative'")
    return signs[entry["sign"]]


def _ordinal(value: Value) -> float:
    """Returns a key's value as a number without its unit. All values of a key have the same unit."""
    if isinstance(value, str):
        digits = re.match(r"[0-9.]+", value)
        if digits is None:
            raise PaperError(f"{value!r} cannot be ordered: it does not start with a number")
        return float(digits[0])
    return value


def _text(value: float) -> str:
    # Adding zero converts -0.0 to 0.0.
    return f"{round(value, 3) + 0.0:.3f}" if abs(value) < 100 else f"{value:.0f}"


def _range(entry: Entry) -> str:
    low, high = (limit if isinstance(limit := entry.get(side, ""), str) else f"{limit:g}" for side in ("low", "high"))
    return f"{low} to {high}" if low and high else f"{low} or more" if low else f"{high} or less"
