"""Sentences about links whose rate changes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from celltrain.drawing.words import counted
from celltrain.inspect.story import Sentence
from celltrain.model.paths import seconds
from celltrain.text import shown

#: Bytes that a link may deliver at each line of a trace.
_OPPORTUNITY = 1504


def with_rates(sentences: Sequence[Sentence], changes: Mapping[str, Mapping[str, Any]]) -> list[Sentence]:
    """Adds a sentence about the rate of a link after the first loss at the link's port.

    Args:
        sentences: Sentences about an episode.
        changes: The table `rate_change` of each link that has one, by the name of the link.
    """
    made: list[Sentence] = []
    left = set(changes)
    for sentence in sentences:
        made.append(sentence)
        ports = [row["port"] for row in sentence.rows if row.get("port") in left] if left else []
        if ports:
            left.discard(ports[0])
            text = _rate(ports[0], changes[ports[0]], sentence.time)
            made.append(replace(sentence, text=text, place=1, is_needed=False))
    return made


def _rate(link: str, change: Mapping[str, Any], time: float) -> str:
    """Returns a sentence about the rate of a link at a time.

    >>> _rate("a->b", {"steps": [{"at": "1s", "rate": "8Mbps"}, {"at": "2s", "rate": "0bps"}]}, 1.5)
    'The link a->b had a rate of 8Mbps then (rate_change).'
    >>> _rate("a->b", {"trace": [1, 2, 500]}, 2.25)
    'In the second before, the link a->b could deliver 1,504 bytes 6 times (rate_change.trace).'
    """
    if (steps := change.get("steps")) is not None:
        rates = [step["rate"] for step in steps if seconds(step["at"]) <= time]
        rate = f"a rate of {rates[-1]}" if rates else "its own rate"
        return f"The link {shown(link)} had {rate} then (rate_change)."
    if (trace := change.get("trace")) is not None:
        until = round(time * 1000)
        times = _opportunities(trace, until) - _opportunities(trace, max(until - 1000, 0))
        could = f"could deliver {_OPPORTUNITY:,} bytes {counted(times, 'time')}"
        return f"In the second before, the link {shown(link)} {could} (rate_change.trace)."
    walk = change["walk"]
    return f"The rate of the link {shown(link)} changes at random from {walk['least']} to {walk['most']} (rate_change.walk)."


def _opportunities(trace: Sequence[int], until: int) -> int:
    """Returns the number of opportunities up to a millisecond."""
    rounds, rest = divmod(until, trace[-1])
    return rounds * len(trace) + bisect_right(trace, rest)
