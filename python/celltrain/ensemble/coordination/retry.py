"""Which runs that failed are worth another try.

A row that failed says which limit it ran under, so that a store needs no other place for it, and older stores have it too.
"""

from __future__ import annotations

import re

from celltrain import _core
from celltrain.ensemble.plan import Plan

#: The core's message for a run past its time limit.
_TOOK_LONGER = re.compile(r"took longer than (\d+(?:\.\d+)?) s of real time")
#: The core's message for a network that does not fit into memory.
_DID_NOT_FIT = re.compile(r"take more than (\d+\.\d) ([GM])iB of memory, and of the (\d+\.\d) ([GM])iB that are free")
#: The part of the free memory that one run may have.
SHARE = 0.75
_BYTES = {"G": 1 << 30, "M": 1 << 20}


def has_more(error: str, plan: Plan) -> bool:
    """Whether a run failed for want of what it would be given now: time by the plan, or memory by this machine.

    Args:
        error: Of the failed row.
        plan: With the limits that hold now.

    >>> plan = Plan.of_toml('''
    ... scenario = "lan-epd"
    ... axes = { duration = ["1ms"] }
    ... limits = { time = "2s" }
    ... ''')
    >>> has_more("took longer than 1.5 s of real time", plan), has_more("took longer than 2 s of real time", plan)
    (True, False)
    """
    if longer := _TOOK_LONGER.match(error):
        return plan.limit_s is None or plan.limit_s > float(longer[1])
    if larger := _DID_NOT_FIT.search(error):
        needed, free = float(larger[1]) * _BYTES[larger[2]], float(larger[3]) * _BYTES[larger[4]]
        now = _core.memory_limit()
        return now is None or (now > free and needed <= SHARE * now)
    return False
