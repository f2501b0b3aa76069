"""One-line summaries of a scenario for headings and figure subtitles."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from celltrain.model.quantities import QUANTITIES
from celltrain.model.scenario import read, table
from celltrain.text import shortened, shown

if TYPE_CHECKING:
    from celltrain.model.types import Scenario

#: How each TCP variant recovers from losses, in a phrase short enough for a heading.
RECOVERY = {
    "vanilla": "no fast retransmit",
    "tahoe": "fast retransmit, then slow start",
    "reno": "fast retransmit and recovery",
    "newreno": "fast recovery of several losses",
    "newreno_hoe": "fast recovery of several losses, Hoe 1996",
    "sack": "selective acknowledgements",
    "sack_pipe": "selective acknowledgements, Fall and Floyd 1996",
}
#: Kinds of traffic that do not use TCP.
WITHOUT_TCP = ("constant_rate", "on_off")
#: Default sizes of a TCP; a summary only shows others.
MSS, WINDOW = "512B", "65535B"
#: Maximum length of a TCP with its sizes, for a line of 80 characters.
MOST_WORDS = 75
#: TCPs that a line names.
MOST_TCPS = 8
#: Maximum number of flows with their own TCP that a summary lists.
MOST_FLOWS = 3


def tcp_summary(scenario: Scenario | str | os.PathLike[str] | Mapping[str, Any]) -> str:
    """Describes the TCP of a scenario in one line, including flows with their own TCP.

    Args:
        scenario: A scenario, the path of a TOML file, the name of a shipped one, or a scenario as a table.

    Raises:
        ScenarioError: If the scenario has faults.

    >>> tcp_summary("lan-epd")
    'vanilla (no fast retransmit, 100 ms ticks)'
    >>> tcp_summary("wan-cubic")
    'sack with cubic (mss 1460 B, window 600 kB, 10 ms ticks)'
    >>> tcp_summary("lan-unresponsive")
    'reno (fast retransmit and recovery, 100 ms ticks); tcp5 without TCP'
    """
    settings = scenario if isinstance(scenario, Mapping) else table(read(scenario).accepted())
    common = _variant(settings.get("tcp") or {"vanilla": {}})
    own = {}
    for flow, options in settings.get("flow", {}).items():
        if any(kind in WITHOUT_TCP for kind in options.get("traffic") or {}):
            own[flow] = f"{shown(shortened(flow))} without TCP"
        elif options.get("tcp") and (variant := _variant(options["tcp"])) != common:
            own[flow] = f"{shown(shortened(flow))}: {variant}"
    parts = [common, *list(own.values())[:MOST_FLOWS]]
    if len(own) > MOST_FLOWS:
        parts.append(f"{len(own) - MOST_FLOWS} more flows with settings of their own")
    return "; ".join(parts)


def short_tcp(summary: str) -> str:
    """Returns the names in the summary of a TCP, without the details.

    >>> short_tcp("reno (fast retransmit and recovery, 100 ms ticks); tcp5 without TCP")
    'reno; tcp5 without TCP'
    """
    return re.sub(r" \([^)]*\)", "", summary)


def tcp_line(tcps: Sequence[str]) -> str:
    """Returns a line that names the TCPs of several runs."""
    more = f"; {len(tcps) - MOST_TCPS:,} more" if len(tcps) > MOST_TCPS else ""
    return f"TCP: {'; '.join(tcps[:MOST_TCPS])}{more}"


def _variant(tcp: Mapping[str, Any]) -> str:
    """Describes a TCP variant: congestion control and sizes unless they are defaults, recovery, and clock."""
    [(name, options)] = tcp.items()
    control = options.get("congestion", "jacobson")
    by = {"jacobson": "", "formula": " with formulas"}.get(control, f" with {control}")
    sizes = []
    if (mss := _bytes(options.get("mss", MSS))) != _bytes(MSS):
        sizes.append(f"mss {mss} B")
    if _bytes(window := options.get("receive_window", WINDOW)) != _bytes(WINDOW):
        sizes.append(f"window {_spaced(window)}")
    details = [RECOVERY[name], *sizes, f"{_spaced(options.get('timer_granularity', '100ms'))} ticks"]
    if options.get("tick_phase") == "random":
        details.append("random phases")
    if rate := options.get("pacing_rate"):
        details.append(f"paced at {_spaced(rate)}")
    words = f"{name}{by} ({', '.join(details)})"
    # The name implies the recovery, so a long line leaves it out.
    return words if len(words) <= MOST_WORDS or not sizes else f"{name}{by} ({', '.join(details[1:])})"


def _bytes(quantity: str) -> Fraction:
    return QUANTITIES["size"].read(quantity)


def _spaced(quantity: str) -> str:
    """Writes a quantity with a space before its unit: `100 ms`."""
    number = quantity.rstrip("GMTkbitpsmunB/ ")
    return f"{number} {quantity[len(number) :].strip()}"
