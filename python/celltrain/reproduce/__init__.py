"""Running a paper's tables again, and saying number by number whether they agree; running studies of our own.

The package can be called, as `celltrain.reproduce(...)`:

>>> import celltrain as ct
>>> again = ct.reproduce("af-96-1269", tables=[1], networks=["LAN"], seeds=1)
>>> [round(number.mean) for number in again.numbers if number.number.quantity.name == "max_queue_cells"]
[7591, 22831]
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType

from celltrain.reproduce.claims import Claim
from celltrain.reproduce.paper import PAPER, STUDY, Paper, PaperError, load, paper_ids, study_ids
from celltrain.reproduce.run import Progress, Reproduction, reproduce, study
from celltrain.reproduce.score import Scored

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
    "paper_ids",
    "reproduce",
    "study",
    "study_ids",
]


class _CallableModule(ModuleType):
    __call__ = staticmethod(reproduce)


sys.modules[__name__].__class__ = _CallableModule
# What help() and editors show for the call; by itself a module would show it without its first parameter.
__signature__ = inspect.signature(reproduce)
