"""Common parts of the comparisons with other simulators: a block on a page, and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "scripts"))

from paper_page import fill

__all__ = ["fill", "outcome"]


def outcome(disagreements: Sequence[str]) -> int:
    """Prints the disagreements. Returns the exit code: 1 if there are any."""
    for disagreement in disagreements:
        print(f"disagreement: {disagreement}", file=sys.stderr)
    return 1 if disagreements else 0
