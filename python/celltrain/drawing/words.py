"""Formats numbers and units for readers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from celltrain.model import shipped
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.model.measures import Measure

#: Units of stored quantities, and their multiples for display.
_MULTIPLES = {
    "s": (("ps", 1e-12), ("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)),
    "bit/s": (("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)),
    "B": (("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9)),
}


def ruler(unit: str, values: Iterable[float]) -> tuple[str, float]:
    """Returns the multiple of a unit in which values are easiest to read, and its size.

    >>> ruler("s", [5e-6, 5e-3])
    ('µs', 1e-06)
    >>> ruler("cells", [1000.0])
    ('cells', 1.0)
    """
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    multiples = _MULTIPLES.get(unit)
    if multiples is None or not sizes:
        return unit, 1.0
    # Select the largest multiple in which the smallest value is at least one, except for rounding.
    fitting = [(name, size) for name, size in multiples if min(sizes) >= size * (1 - 1e-9)]
    return fitting[-1] if fitting else multiples[0]


def plain(value: float, digits: int = 6) -> str:
    """Formats the value of a setting: exactly if that is short, otherwise rounded.

    >>> plain(1000.0), plain(0.1 + 0.2), plain(600000.0)
    ('1000', '0.3', '600000')
    """
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e7 else f"{value:.{digits}g}"


def valued(value: float | str, unit: str, digits: int = 6) -> str:
    """Formats a value of an axis with its unit.

    >>> valued(5e-6, "s"), valued("epd", ""), valued(0.9, "1")
    ('5 µs', 'epd', '0.9')
    """
    if isinstance(value, str):
        return shown(value)
    name, size = ruler(unit, [value])
    text = plain(value / size, digits)
    return text if name in ("", "1") else f"{text} {name}"


def labelled(name: str, unit: str) -> str:
    """Formats the label of a plot's axis.

    >>> labelled("buffer of bottleneck", "cells"), labelled("policy", "")
    ('buffer of bottleneck (cells)', 'policy')
    """
    return shown(f"{name} ({unit})" if unit not in ("", "1") else name)


#: A unit in parentheses at the end of a label.
_UNIT = re.compile(r" *\(([^()]+)\)$")


def axis_label(name: str, unit: str, values: Iterable[float]) -> tuple[str, float]:
    """Returns the label of an axis, and the size of the unit in which its values are drawn.

    A name that ends with a multiple of the axis's unit keeps that unit. Otherwise the unit that is easiest to read is
    added.

    >>> axis_label("link delay", "s", [0.005]), axis_label("Delay (\u00b5s)", "s", [0.005])
    (('link delay (ms)', 0.001), ('Delay (\u00b5s)', 1e-06))
    >>> axis_label("Buffer (in cells)", "cells", [1000.0])
    ('Buffer (in cells)', 1.0)
    """
    easiest, size = ruler(unit, values)
    if found := _UNIT.search(name):
        known = dict(_MULTIPLES.get(unit, ()))
        if not known:
            return shown(name), size
        if (own := known.get(found[1].replace("us", "\u00b5s"))) is not None:
            return shown(name), own
    return labelled(name, easiest), size


def heading(label: str) -> str:
    """Removes the unit from the user's label of an axis, for tables and titles whose values have units.

    >>> heading("Buffer (cells)"), heading("Policy")
    ('Buffer', 'Policy')
    """
    return shown(_UNIT.sub("", label) or label)


def broken(text: str, most: int) -> str:
    """Breaks a text into lines of at most this many characters: after spaces, and after dots of paths.

    A unit in parentheses stays in one line.

    >>> broken("requests.web.short.slowdown_p99, smaller is better", 24).splitlines()
    ['requests.web.short.', 'slowdown_p99, smaller is', 'better']
    """
    lines = [""]
    for part in re.findall(r"\([^()]{1,20}\)|[^. ]*[. ]?", text):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > most:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


#: Text for a measure without a value, such as the fairness of flows that delivered nothing.
UNDEFINED = "undefined"
#: Units at the end of a key, which the label shows in parentheses. "Lost cells" keeps the word "cells", but a buffer in
#: cells does not.
_UNITS = re.compile(
    r"(?:(?<![a-z])(buffer|threshold|queue|used|pool|headroom|max|cwnd)_(?:cells|segments)|_(?:mbps|ms|s))$"
)
#: Statistics at the end of a key, and the words with which a label names them.
_STATISTICS = {"mean": "mean", "median": "median", "p50": "median", "p95": "p95", "p99": "p99", "p999": "p99.9"}
_STATISTIC = re.compile(rf"[._]({'|'.join(_STATISTICS)})$")
#: A measure of a row, or a function of some rows: the list, the row or the function, and the key.
_OF_ROW = re.compile(
    r"(flows|ports|links|contracts|abr|memories|queues|requests)\."
    r"(?:(sum|mean|least|largest|variation|fairness)\(([^()]*)\)|([^()]+?))\."
    r"((?:(?:all|short|medium|long|queries|file_delay_ms)\.)?[a-z0-9_]+)"
)


def called(measure: Measure, *, unit: bool = True) -> str:
    """Returns the label of a measure: the user's own label, or one made from its path, by default with its unit.

    >>> from celltrain.model.measures import Measure
    >>> goodput = Measure("goodput_mbps", "float64", "Mb/s", "total goodput of all flows")
    >>> called(goodput), called(goodput, unit=False)
    ('goodput (Mb/s)', 'goodput')
    """
    return shown(measure.label) if measure.label else label(measure.name, measure.unit if unit else "1")


def label(name: str, unit: str = "1") -> str:
    """Returns a label for a measure: its path in words, and its unit if it has one.

    >>> label("goodput_mbps", "Mb/s"), label("cells.lost", "cells"), label("flows.sum(*).timeouts")
    ('goodput (Mb/s)', 'cells lost', 'timeouts of all flows')
    >>> label("flows.least(*).goodput_mbps", "Mb/s")
    'least goodput of all flows (Mb/s)'
    >>> label("ports.bottleneck.max_queue_cells", "cells")
    'largest queue of bottleneck (cells)'
    >>> label("ports.bottleneck.delay_ms_p50", "ms")
    'median delay of bottleneck (ms)'
    >>> label("requests.web.short.slowdown_p99")
    'p99 slowdown, short requests (web)'
    >>> label("requests.query.queries.completion_ms_mean", "ms")
    'mean completion time, queries (query, ms)'
    """
    if " " in name:
        # An expression's unit is unknown.
        return shown(name.replace("_", " "))
    if (found := _OF_ROW.fullmatch(name)) is None:
        text = _key(name)
    else:
        rows, function, of, row, key = found.groups()
        text = _of_requests(key, row or of, unit) if rows == "requests" else f"{_key(key)} of {row or _rows(rows, of)}"
        if function not in (None, "sum"):
            text = f"{function.replace('variation', 'variation of')} {text}".replace("fairness", "fairness of", 1)
        if rows == "requests":
            return shown(text)
    return shown(text if _shows(text, unit) else f"{text} ({unit})")


def _shows(text: str, unit: str) -> bool:
    """Returns whether a text shows the unit: lost cells need no "(cells)"."""
    return unit in ("", "1") or text.endswith(")") or {"B": "bytes"}.get(unit, unit) in re.split("[ ,]", text)


def _of_requests(key: str, group: str, unit: str) -> str:
    """Returns the label of a measure of requests: the measure, the class of requests, the group and the unit."""
    size, _, own = key.rpartition(".")
    whose = "queries" if size == "queries" else f"{size} requests" if size else "requests"
    what = _key(own)
    known = [text for text in ("" if group == "*" else group, "" if _shows(what, unit) else unit) if text]
    text = f"{whose} {what}" if what in ("opened", "completed", "open", "asked") else f"{what}, {whose}"
    text = what if what.endswith("per request") else text
    return f"{text} ({', '.join(known)})" if known else text


def _rows(rows: str, pattern: str) -> str:
    """Returns the rows that a pattern selects, in words."""
    return f"all {rows}" if pattern == "*" else pattern


def _key(key: str) -> str:
    """Returns the key of a measure in words, without its unit."""
    start = ""
    if found := _STATISTIC.search(key):
        start, key = f"{_STATISTICS[found[1]]} ", key[: found.start()]
    called = shipped.package_data("drawing/words.toml")["called"]
    if key in called:
        return f"{start}{called[key]}"
    if key.startswith("file_delay_ms"):
        return f"{start}file delay" if start else "files completed"
    key = _UNITS.sub(r"\1", key)
    key = "completion_time" if key == "completion" else key
    return start + str(called.get(key, key)).replace("_rm_", " RM ").replace(".", " ").replace("_", " ")


#: Tables whose entries are named in labels, such as the port of a buffer.
_NAMED = ("port", "link", "requests", "switch", "flow", "vc", "pool", "host", "group", "node")


def axis(path: str) -> str:
    """Returns the label of an axis: the last step of its path, and the part of the network to which it belongs.

    >>> axis("port.bottleneck.buffer"), axis("topology.n_source.link_delay"), axis("port.*.buffer")
    ('buffer of bottleneck', 'link delay', 'buffer of all ports')
    >>> axis("port.bottleneck.policy.fba.z"), axis('switch."*".memory.pool.main.policy'), axis("Z")
    ('z of fba', 'policy of main', 'Z')
    """
    steps = [step.strip('"') for step in re.findall(r'"[^"]*"|[^.]+', path)]
    last = steps[-1].replace("_", " ")
    if len(steps) > 3 and "policy" in steps[:-1]:
        return shown(f"{last} of {steps[-2].replace('_', ' ')}")
    places = [place for place, step in enumerate(steps[:-2]) if step in _NAMED]
    if not places:
        return shown(last)
    kind, name = steps[places[-1]], steps[places[-1] + 1]
    return shown(f"{last} of {f'all {kind}s' if name == '*' else name}")


def setting(path: str) -> str:
    """Returns the last step of an axis's path, without underscores.

    >>> setting("port.bottleneck.buffer"), setting("topology.n_source.link_delay")
    ('buffer', 'link delay')
    """
    return shown(path.rpartition(".")[2].replace("_", " "))


def settings(names: Sequence[str], paths: Sequence[str]) -> list[str]:
    """Shortens names of axes that are paths to the last step of the path, unless two names would then be the same.

    >>> settings(["port.bottleneck.buffer", "Z"], ["port.bottleneck.buffer", "port.bottleneck.policy.fba.z"])
    ['buffer', 'Z']
    >>> settings(["port.sw1.buffer", "port.sw2.buffer"], ["port.sw1.buffer", "port.sw2.buffer"])
    ['buffer of sw1', 'buffer of sw2']
    """
    both = list(zip(names, paths, strict=True))
    forms = [[form(name) if name == path else shown(name) for name, path in both] for form in (setting, axis)]
    return [
        next((form[place] for form in forms if form.count(form[place]) == 1), shown(name))
        for place, name in enumerate(names)
    ]


def prose(text: str) -> str:
    """Removes backticks from a description.

    >>> prose("the path of `epd`")
    'the path of epd'
    """
    return text.replace("`", "")


def estimated(mean: float, half: float) -> str:
    """Formats a mean with as many digits as its interval supports.

    >>> estimated(0.93127, 0.0043), estimated(12345.6, 120.0), estimated(0.5, math.nan), estimated(3.0, 0.0)
    ('0.9313 ± 0.0043', '12,350 ± 120', '0.5', '3 ± 0')
    >>> estimated(math.nan, math.nan)
    'undefined'
    """
    if not math.isfinite(mean):
        return UNDEFINED
    if not math.isfinite(half):
        return figure(mean)
    # Values that differ only by rounding have zero spread.
    if half <= 1e-9 * abs(mean):
        return f"{figure(mean)} ± 0"
    # Round to two digits of the half width.
    place = 1 - math.floor(math.log10(half))
    return f"{_rounded(mean, place)} ± {_rounded(half, place)}"


def difference(mean: float, half: float) -> str:
    """Formats a mean difference with its sign, and a star if its interval excludes zero.

    >>> difference(0.0123, 0.0031), difference(-0.0123, 0.031)
    ('+0.0123 ± 0.0031 *', '-0.012 ± 0.031  ')
    """
    return f"{'+' if mean > 0 else ''}{estimated(mean, half)}{' *' if abs(mean) > half else '  '}"


#: Note below a table with lower bounds.
BOUND = "\u2265: a lower bound, because requests were open at the end"


def at_least(text: str) -> str:
    """Marks a number as a lower bound.

    >>> at_least("46.6 ± 0.3"), at_least(UNDEFINED)
    ('≥ 46.6 ± 0.3', 'undefined')
    """
    return text if text == UNDEFINED else f"\u2265 {text}"


def of_bounds(difference: str, *, first: bool, second: bool) -> str:
    """Marks the formatted difference of two numbers if one or both of them are lower bounds.

    >>> of_bounds("+3.1 ± 0.2 *", first=True, second=False), of_bounds("+3.1 ± 0.2 *", first=False, second=True)
    ('≥ +3.1 ± 0.2  ', '≤ +3.1 ± 0.2  ')
    >>> of_bounds("+3.1 ± 0.2 *", first=True, second=True)
    'unknown'
    """
    if difference.strip() == UNDEFINED:
        return difference
    sign = "\u2265" if first else "\u2264"
    return "unknown" if first and second else f"{sign} {difference.replace('*', ' ')}"


def figure(value: float) -> str:
    """Formats a number to four digits. Whole numbers are exact, and a fraction below 1 is never rounded to 1.

    >>> figure(0.123456), figure(1234.56), figure(22831.0), figure(1e-7), figure(0.999955)
    ('0.1235', '1,235', '22,831', '1e-07', '0.999955')
    """
    if not math.isfinite(value):
        return UNDEFINED
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{value:,.0f}"
    if value == 0 or not 1e-4 <= abs(value) < 1e7:
        return f"{value:.4g}"
    place = 3 - math.floor(math.log10(abs(value)))
    if abs(value) < 1 == abs(round(value, place)):
        place = min(12, 1 - math.floor(math.log10(1 - abs(value))))
    text = _rounded(value, place)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _rounded(value: float, place: int) -> str:
    return f"{value:,.{place}f}" if place > 0 else f"{round(value, place):,.0f}"


def counted(count: int, word: str) -> str:
    """Formats a count of something.

    >>> counted(1, "run"), counted(12000, "run")
    ('1 run', '12,000 runs')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def in_words(seconds: float) -> str:
    """Formats a duration with a suitable unit.

    >>> in_words(0.0042), in_words(0.456), in_words(75), in_words(5400), in_words(200000)
    ('4.2 ms', '456 ms', '75 s', '90 min', '2.3 days')
    """
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    for limit, scale, word in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h"), (float("inf"), 86400, "days")):
        if seconds < limit:
            return f"{seconds / scale:.3g} {word}" if word != "days" else f"{seconds / scale:.2g} {word}"
    return ""


def left(seconds: float | None) -> str:
    """Formats the remaining time of a progress bar.

    >>> left(3.2), left(150), left(None)
    ('3 s left', '2.5 min left', '')
    """
    return "" if seconds is None else f"{in_words(max(round(seconds), 1))} left"
