"""Blocks of runs in the format of the core, for tests that replace the core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def failed_block(runs: Sequence[int], width: int, error: str) -> dict[str, Any]:
    """Returns a block in which all runs failed; `width` is the number of measures."""
    count = len(runs)
    return {
        "runs": list(runs),
        "values": np.full((count, width), np.nan),
        "notes": [],
        "fingerprints": [None] * count,
        "seconds": [0.0] * count,
        "cell_hops": [0] * count,
        "filled_from": [],
        "uncertified": [],
        "errors": [(row, error) for row in range(count)],
        "unmet": [],
        "series": [],
    }
