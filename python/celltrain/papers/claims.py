"""The sentences of a paper that state an order or a trend, and whether our runs bear them out.

A claim stands in the paper's `claims.toml` with its quotation and one or more tests; it holds when all of them do on the
means of the seeds. The same tests are also put to each seed alone, because the paper's authors may have run one, and to the
numbers the paper prints, because a text may say more than its own tables do. A claim of a study has a `reason`, the theory
behind it, and a quotation only where a text says the same.

A test looks at rows. A *selection* names them: a table, and values of keys (a list means any of its members). The forms:

`greater`      the mean of a quantity over selection `a` exceeds that over `b`, by more than `margin`; with `share`, also in
               at least this share of the rows of `a` and `b` that match in their other keys.
`difference`   the mean over `a` minus the mean over `b` lies in [`low`, `high`].
`ratio`        the mean over `a` divided by the mean over `b` lies in [`low`, `high`].
`bound`        each row over `over` (or, with `of = "mean"`, their mean) lies in [`low`, `high`]; limits may be expressions
               of the row's keys.
`trend`        the quantity goes with `key` in the direction of `sign`: the mean, over the `groups`, of the rank correlation
               has this sign, and so has the group's own in at least `share` of the groups.
`correlation`  over all rows the rank correlation of quantities `x` and `y` has this sign.
`steady`       in each of the `groups`, largest minus smallest value is at most `within` of their mean.
`spread`       in at least `share` of the `groups`, largest minus smallest value is at least `at_least`.
`best`         of all values of some keys (a `setting`), the stated one has the highest mean of the `quantities`, or comes
               within `within` of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from celltrain.papers.expansion import evaluate
from celltrain.papers.paper import Number, Paper, PaperError, Row, Value, matches
from celltrain.papers.score import SLACK, Scored
from celltrain.running.statistics import rank_correlation


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim and the verdict on it."""

    id: str
    text: str
    reason: str
    """Why a study expects it; empty in a paper."""
    quote: str
    section: str
    holds: bool
    evidence: str
    seeds_share: float | None
    """The share of the seeds in each of which, taken alone, it holds; None where its rows have no seed in common."""
    seeds: int
    """How many seeds all its rows have in common."""
    published_holds: bool | None
    """The same tests on the numbers the paper prints; None where it prints none."""
    published_evidence: str

    def to_dict(self) -> dict[str, Any]:
        """The claim as `celltrain reproduce --json` gives it."""
        return {
            "id": self.id,
            "text": self.text,
            "holds": self.holds,
            "evidence": self.evidence,
            "reason": self.reason,
            "quote": self.quote,
            "section": self.section,
            "published_holds": self.published_holds,
            "published_evidence": self.published_evidence,
            "seeds_share": self.seeds_share,
            "seeds": self.seeds,
        }


@dataclass(frozen=True)
class Point:
    """One value in one row: what a test sees."""

    table: str
    keys: Row
    quantity: str
    value: float


#: A test and the points it looks at, to whether it passes and the figures that say so.
Form = Callable[[Mapping[str, Any], Sequence[Point]], tuple[bool, str]]


def judge(paper: Paper, scored: Sequence[Scored]) -> tuple[list[Claim], list[str]]:
    """The verdict on every claim whose rows were all run, and the ids of the others."""
    ours = [_point(s.number, s.mean) for s in scored]
    printed = [_point(s.number, s.number.published) for s in scored if s.number.published is not None]
    everything = [_point(number, 0.0) for table in paper.tables for number in table.numbers]
    claims, left_out = [], []
    for entry in paper.claims:
        try:
            needed = _rows(everything, entry["tests"])
            if len(_rows(ours, entry["tests"])) < len(needed):
                left_out.append(entry["id"])
                continue
            holds, evidence = _verdict(entry["tests"], ours)
            alone = _alone(entry["tests"], scored)
            published_holds, published_evidence = None, ""
            if len(_rows(printed, entry["tests"])) == len(needed):
                published_holds, published_evidence = _verdict(entry["tests"], printed)
        except (PaperError, KeyError) as error:
            raise PaperError(f"claim {entry.get('id')!r}: {error}") from error
        claims.append(
            Claim(
                id=entry["id"],
                text=entry["text"],
                reason=entry.get("reason", ""),
                quote=entry.get("quote", ""),
                section=str(entry.get("section", "")),
                holds=holds,
                evidence=evidence,
                seeds_share=sum(alone) / len(alone) if alone else None,
                seeds=len(alone),
                published_holds=published_holds,
                published_evidence=published_evidence,
            )
        )
    return claims, left_out


def check(paper: Paper) -> None:
    """Refuses a claim with a test that looks at a quantity or a row that the paper does not have; nothing is run."""
    everything = [_point(number, 0.0) for table in paper.tables for number in table.numbers]
    for claim in paper.claims:
        try:
            for entry in claim["tests"]:
                _form(entry)
                for quantity in _quantities(entry):
                    if quantity not in paper.quantities:
                        raise PaperError(f"{quantity!r} is not a quantity; there are {', '.join(paper.quantities)}")
                if not _rows(everything, [entry]):
                    raise PaperError("a selection finds no row")
        except (PaperError, KeyError) as error:
            raise PaperError(f"claim {claim.get('id')!r}: {error}") from error


def apply(entry: Mapping[str, Any], points: Sequence[Point]) -> tuple[bool, str]:
    """One test on these points: whether it passes, and the figures that say so."""
    return _form(entry)(entry, points)


def _form(entry: Mapping[str, Any]) -> Form:
    if entry["form"] not in FORMS:
        raise PaperError(f"no form {entry['form']!r}; there are {', '.join(FORMS)}")
    return FORMS[entry["form"]]


def _greater(entry: Mapping[str, Any], points: Sequence[Point]) -> tuple[bool, str]:
    a, b = (select(points, entry[side], entry["quantity"]) for side in ("a", "b"))
    margin = entry.get("margin", 0.0)
    holds = _mean(a) - _mean(b) > margin
    evidence = f"{entry['quantity']} {_number(_mean(a))} against {_number(_mean(b))}"
    if margin:
        evidence += f" (by more than {_number(margin)})"
    if "share" in entry:
        pairs = _matched(a, b, entry.get("on") or _open_keys(a, b, named=set(entry["a"]) | set(entry["b"])))
        ahead = sum(first > second for first, second in pairs)
        holds = holds and ahead >= entry["share"] * len(pairs) - SLACK
        evidence += f", ahead in {ahead} of {len(pairs)} matched rows"
    return holds, evidence


def _difference(entry: Mapping[str, Any], points: Sequence[Point]) -> tuple[bool, str]:
    a, b = (_mean(select(points, entry[side], entry["quantity"])) for side in ("a", "b"))
    return _within(entry, a - b, f"{entry['quantity']} {_number(a)} less {_number(b)}")


def _ratio(entry: Mapping[str, Any], points: Sequence[Point]) -> tuple[bool, str]:
    a, b = (_mean(select(points, entry[side], entry["quantity"])) for side in ("a", "b"))
    return _within(entry, a / b if b else float("inf"), f"{entry['quantity']} {_number(a)} over {_number(b)}")


def _within(entry: Mapping[str, Any], value: float, label: str) -> tuple[bool, str]:
    low, high = entry.get("low", -np.inf), entry.get("high", np.inf)
    holds = low - SLACK <= value <= high + SLACK
    return holds, f"{label} is {_number(value)}, allowed {_range(low, high)}"


def _bound(entry: Mapping[str, Any], points: Sequence[Point]) -> tuple[bool, str]:
    rows = select(points, entry["over"], entry["quantity"])
    if entry.get("of", "each") == "mean":
        return _within(entry, _mean(rows), f"mean {entry['quantity']}")
    kept = 0
    for row in rows:
        low, high = (_limit(entry.get(side, open_), row.keys) for side, open_ in (("low", -np.inf), ("high", np.inf)))
        kept += low - SLACK <= row.value <= high + SLACK
    values = [row.value for row in rows]
    allowed = _range(entry.get("low", -np.inf), entry.get("high", np.inf))
    span = " to ".join(dict.fromkeys(_number(end) for end in (min(values), max(values))))
    evidence = f"{entry['quantity']} {span}, {kept} of {len(rows)} in {allowed}"
    return kept >= entry.get("share", 1.0) * len(rows) - SLACK, evidence


def _trend(entry: Mapping[str, Any], points: Sequence[Point]) -> tuple[bool, str]:
    groups = _grouped(select(points, entry["over"], entry["quantity"]), entry["groups"])
    sign = _sign(entry)
    # A group in which nothing varies shows no trend either way.
    signed = [
        sign * (rank_correlation([_ordinal(p.keys[entry["key"]]) for p in group], [p.value for p in group]) or 0.0)
        for group in groups
    ]
    going = sum(one > SLACK for one in signed)
    holds = float(np.mean(signed)) > SLACK and going >= entry.get("share", 0.5) * len(groups) - SLACK
    verb = "grows" if sign > 0 else "falls"
    evidence = f"{entry['quantity']} {verb} with {entry['key']} in {going} of {len(groups)} groups"
    return holds, f"{evidence}, mean rank correlation {_number(sign * float(np.mean(signed)))}"


def _correlation(entry: Mapping[str, Any], points: Sequence[Point]) -> tuple[bool, str]:
    x = select(points, entry["over"], entry["x"])
    y = select(points, entry["over"], entry["y"])
    correlation = rank_correlation([p.value for p in x], [p.value for p in y]) or 0.0
    evidence = f"rank correlation of {entry['x']} and {entry['y']} over {len(x)} rows {_number(correlation)}"
    return _sign(entry) * correlation > SLACK, evidence


def _spread(entry: Mapping[str, Any], points: Sequence[Point]) -> tuple[bool, str]:
    groups = _grouped(select(points, entry["over"], entry["quantity"]), entry["groups"])
    spreads = [max(p.value for p in group) - min(p.value for p in group) for group in groups]
    wide = sum(spread >= entry["at_least"] - SLACK for spread in spreads)
    evidence = f"{entry['quantity']} varies by {_number(entry['at_least'])} or more in {wide} of {len(groups)} groups"
    return wide >= entry.get("share", 0.5) * len(groups) - SLACK, evidence


def _steady(entry: Mapping[str, Any], points: Sequence[Point]) -> tuple[bool, str]:
    groups = _grouped(select(points, entry["over"], entry["quantity"]), entry["groups"])
    values = [[p.value for p in group] for group in groups]
    widest = max((max(group) - min(group)) / float(np.mean(group)) for group in values)
    evidence = f"{entry['quantity']} varies by at most {_number(widest)} of its mean in {len(groups)} groups"
    return widest <= entry["within"] + SLACK, f"{evidence}, allowed {_number(entry['within'])}"


def _best(entry: Mapping[str, Any], points: Sequence[Point]) -> tuple[bool, str]:
    keys = list(entry["setting"])
    values: dict[tuple[Value, ...], list[float]] = {}
    for quantity in entry["quantities"]:
        for row in select(points, entry["over"], quantity):
            values.setdefault(tuple(row.keys[key] for key in keys), []).append(row.value)
    means = {setting: float(np.mean(of)) for setting, of in values.items()}
    stated = tuple(entry["setting"].values())
    if stated not in means:
        raise PaperError(f"no row has the setting {entry['setting']}")
    top = max(means, key=lambda setting: means[setting])
    label = ", ".join(f"{key} = {value}" for key, value in zip(keys, top, strict=True))
    evidence = (
        f"mean of {' and '.join(entry['quantities'])} {_number(means[stated])}, "
        f"rank {1 + sum(m > means[stated] for m in means.values())} of {len(means)}; the best is {label} with {_number(means[top])}"
    )
    return means[stated] >= means[top] - entry.get("within", 0.0) - SLACK, evidence


FORMS: dict[str, Form] = {
    "greater": _greater,
    "difference": _difference,
    "ratio": _ratio,
    "bound": _bound,
    "trend": _trend,
    "correlation": _correlation,
    "steady": _steady,
    "spread": _spread,
    "best": _best,
}


def select(points: Iterable[Point], selection: Mapping[str, Any], quantity: str) -> list[Point]:
    """The points of a selection that hold this quantity."""
    where = {key: value for key, value in selection.items() if key != "table"}
    tables = selection["table"] if isinstance(selection["table"], list) else [selection["table"]]
    return [p for p in points if p.quantity == quantity and p.table in tables and matches(p.keys, where)]


def _verdict(tests: Sequence[Mapping[str, Any]], points: Sequence[Point]) -> tuple[bool, str]:
    verdicts = [apply(entry, points) for entry in tests]
    return all(holds for holds, _ in verdicts), "; ".join(evidence for _, evidence in verdicts)


def _alone(tests: Sequence[Mapping[str, Any]], scored: Sequence[Scored]) -> list[bool]:
    """The verdict of each seed that all the rows of these tests have."""
    looked_at = [one for one in scored if _rows([_point(one.number, one.mean)], tests)]
    values = [(one.number, dict(zip(one.seeds, one.values, strict=True))) for one in looked_at]
    common = set.intersection(*(set(of_seed) for _, of_seed in values)) if values else set()
    return [
        _verdict(tests, [_point(number, of_seed[seed]) for number, of_seed in values])[0] for seed in sorted(common)
    ]


def _quantities(entry: Mapping[str, Any]) -> list[str]:
    return entry.get("quantities") or [entry[name] for name in ("quantity", "x", "y") if name in entry]


def _rows(points: Sequence[Point], tests: Sequence[Mapping[str, Any]]) -> list[Point]:
    """Every point that these tests look at."""
    found: list[Point] = []
    for entry in tests:
        for side in ("a", "b", "over"):
            if side in entry:
                for quantity in _quantities(entry):
                    found += select(points, entry[side], quantity)
    return found


def _open_keys(a: Sequence[Point], b: Sequence[Point], *, named: set[str]) -> list[str]:
    """The keys that every row has and that neither selection names."""
    return sorted(set.intersection(*(set(p.keys) for p in (*a, *b))) - named)


def _matched(a: Sequence[Point], b: Sequence[Point], on: Sequence[str]) -> list[tuple[float, float]]:
    """Pairs of means over the rows of `a` and over those of `b` that agree in these keys."""
    sides = [_by_keys(rows, on) for rows in (a, b)]
    return [(_mean(sides[0][key]), _mean(sides[1][key])) for key in sides[0] if key in sides[1]]


def _by_keys(points: Sequence[Point], keys: Sequence[str]) -> dict[tuple[Value, ...], list[Point]]:
    groups: dict[tuple[Value, ...], list[Point]] = {}
    for point in points:
        groups.setdefault(tuple(point.keys[key] for key in keys), []).append(point)
    return groups


def _grouped(points: Sequence[Point], keys: Sequence[str]) -> list[list[Point]]:
    if not points:
        raise PaperError("a selection finds no row")
    return list(_by_keys(points, keys).values())


def _mean(points: Sequence[Point]) -> float:
    if not points:
        raise PaperError("a selection finds no row")
    return float(np.mean([p.value for p in points]))


def _sign(entry: Mapping[str, Any]) -> int:
    signs = {"positive": 1, "negative": -1}
    if entry["sign"] not in signs:
        raise PaperError(f"sign = {entry['sign']!r} is neither 'positive' nor 'negative'")
    return signs[entry["sign"]]


def _limit(limit: float | str, keys: Row) -> float:
    return float(evaluate(limit, keys)) if isinstance(limit, str) else limit


def _ordinal(value: Value) -> float:
    """A key's value as a number, its unit left aside: the values of one key are all given in the same unit."""
    if isinstance(value, str):
        digits = re.match(r"[0-9.]+", value)
        if digits is None:
            raise PaperError(f"{value!r} has no order")
        return float(digits[0])
    return value


def _number(value: float) -> str:
    # Adding zero keeps a minus sign from standing before zeros alone.
    return f"{round(value, 3) + 0.0:.3f}" if abs(value) < 100 else f"{value:.0f}"


def _range(low: float | str, high: float | str) -> str:
    ends = [end if isinstance(end, str) else f"{end:g}" for end in (low, high)]
    if high == np.inf:
        return f"{ends[0]} or more"
    return f"{ends[1]} or less" if low == -np.inf else f"{ends[0]} to {ends[1]}"


def _point(number: Number, value: float) -> Point:
    return Point(number.table, number.keys, number.quantity.name, value)
