"""Reproductions of papers' tables, with a verdict on each number, and studies of our own.

>>> import celltrain as ct
>>> reproduction = ct.reproduce("af-96-1269", tables=[1], networks=["LAN"], seeds=1)
>>> [round(number.mean) for number in reproduction.numbers if number.number.quantity.name == "max_queue_cells"]
[7591, 22831]
"""

from __future__ import annotations

from celltrain.papers.claims import Claim
from celltrain.papers.expansion import load
from celltrain.papers.paper import PAPER, STUDY, Paper, PaperError
from celltrain.papers.run import Progress, Reproduction, reproduce, study
from celltrain.papers.score import Scored

__all__ = [
    "PAPER",
    "STUDY",
    "Claim",
    "Paper",
    "PaperError",
    "Progress",
    "Reproduction",
    "Scored",
    "load",
    "reproduce",
    "study",
]
