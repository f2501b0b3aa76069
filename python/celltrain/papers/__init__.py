"""Reproductions of papers' tables, with a verdict on each number, and studies of our own.

>>> import celltrain as ct
>>> reproduction = ct.reproduce("af-96-1269", tables=[1], networks=["LAN"], seeds=1)
>>> [round(number.mean) for number in reproduction.numbers if number.number.quantity.name == "max_queue_cells"]
[7591, 22831]
"""

from __future__ import annotations

from celltrain.papers.paper import PAPER as PAPER
from celltrain.papers.paper import STUDY as STUDY
from celltrain.papers.paper import Paper as Paper
from celltrain.papers.paper import PaperError as PaperError
from celltrain.papers.paper import load as load
from celltrain.papers.report import Reproduction as Reproduction
from celltrain.papers.run import Progress as Progress
from celltrain.papers.run import reproduce as reproduce
from celltrain.papers.score import Scored as Scored
