"""Formats numbers and units for readers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from celltrain.text import shown

#: Units of stored quantities, and their multiples for display.
_MULTIPLES = {
    "s": (("ps", 1e-12), ("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)),
    "bit/s": (("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)),
    "B": (("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9)),
}

#: Maximum length of a line in a label; longer lines would not fit beside a panel.
LONGEST_LINE = 34


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
    # The largest multiple in which the smallest value is at least one, apart from rounding.
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
    """Formats the label of a plot's axis, in several lines if it is long.

    >>> labelled("ports.bottleneck.max_queue_cells", "cells").splitlines(), labelled("policy", "")
    (['ports.bottleneck.max_queue_cells', '(cells)'], 'policy')
    """
    lines = [""]
    for part in re.findall(r"[^. ]*[. ]?", shown(f"{name} ({unit})" if unit not in ("", "1") else name)):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > LONGEST_LINE:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


#: Text for a measure without a value, such as the fairness of flows that delivered nothing.
UNDEFINED = "undefined"
#: Measures whose names are not clear without their underscores.
_CALLED = {"fairness_max_min": "max-min fairness"}
#: Suffixes of measures' names that repeat their unit.
_UNITS = re.compile(r"_(mbps|cells|ms|s|segments)$")


def measure(name: str, unit: str = "1") -> str:
    """Formats a measure for readers: its name without underscores, and its unit if it has one.

    >>> measure("goodput_mbps", "Mb/s"), measure("cells.lost", "cells"), measure("flows.sum(*).timeouts")
    ('goodput (Mb/s)', 'cells lost', 'timeouts of all flows')
    >>> measure("flows.least(*).goodput_mbps", "Mb/s")
    'least goodput of all flows (Mb/s)'
    >>> measure("ports.bottleneck.max_queue_cells", "cells")
    'largest queue of bottleneck (cells)'
    """
    if " " in name or name in _CALLED:
        text = _CALLED.get(name, name)
    elif several := re.fullmatch(r"(\w+)\.(sum|mean|least|largest)\(\*\)\.(.+)", name):
        text = f"{_UNITS.sub('', several[3])} of all {several[1]}"
        text = text if several[2] == "sum" else f"{several[2]} {text}"
    elif one := re.fullmatch(r"(flows|ports|links|contracts|abr|memories|queues)\.([^.()]+)\.([a-z_]+)", name):
        text = f"{_UNITS.sub('', one[3])} of {one[2]}"
    else:
        text = _UNITS.sub("", name).replace("cells.", "cells ")
    text = text.replace("_", " ").replace("max queue", "largest queue")
    return shown(text if unit in ("", "1") or unit in text.split() else f"{text} ({unit})")


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
    ['port.sw1.buffer', 'port.sw2.buffer']
    """
    short = [setting(name) if name == path else shown(name) for name, path in zip(names, paths, strict=True)]
    return [one if short.count(one) == 1 else shown(name) for one, name in zip(short, names, strict=True)]


def prose(text: str) -> str:
    """Removes backticks from a description.

    >>> prose("the path of `epd`")
    'the path of epd'
    """
    return text.replace("`", "")


def estimated(mean: float, half: float) -> str:
    """Formats a mean with the digits that its interval supports.

    >>> estimated(0.93127, 0.0043), estimated(12345.6, 120.0), estimated(0.5, math.nan), estimated(3.0, 0.0)
    ('0.9313 ± 0.0043', '12,350 ± 120', '0.5', '3 ± 0')
    >>> estimated(math.nan, math.nan)
    'undefined'
    """
    if not math.isfinite(mean):
        return UNDEFINED
    if not math.isfinite(half):
        return figure(mean)
    # Values that differ only by rounding have no spread.
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
