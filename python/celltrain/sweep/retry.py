"""Which runs that failed are worth another try."""

from __future__ import annotations

import re

from celltrain.plan import Plan

#: What the core says of a run past its time; it has the limit it ran under, so that a store needs no other place for it.
_TOOK_LONGER = re.compile(r"took longer than (\d+(?:\.\d+)?) s of real time")


def has_more(error: str, plan: Plan) -> bool:
    """Whether a run failed for want of what the plan now gives it.

    Args:
        error: Of the failed row.
        plan: With the limits that hold now.

    >>> lan = {"scenario": {"duration": "1ms"}, "axes": {"duration": ["1ms"]}, "limits": {"time": "2s"}}
    >>> plan = Plan.of_document(lan)
    >>> has_more("took longer than 1.5 s of real time", plan), has_more("took longer than 2 s of real time", plan)
    (True, False)
    """
    found = _TOOK_LONGER.match(error)
    return found is not None and (plan.limit_s is None or plan.limit_s > float(found[1]))
