"""Vetting of a new policy: the checks it passes, and a comparison with the classics.

>>> import celltrain as ct
>>> mine = ct.Formula(admit="Y < K - X")
>>> answer = ct.vet(mine, scenarios=["lan-5"], beside=["epd"], seeds=2)
>>> [check["check"] for check in answer["conformance"] if not check["holds"]]
[]
>>> sorted(answer["metrics"])[:2]
['efficiency', 'fairness']
"""

from __future__ import annotations

from celltrain.ensemble.vetting.run import vet

__all__ = ["vet"]
