"""Running: chunks of runs on the threads of this machine, in separate processes, or on a cluster.

A `Worker` runs chunks. It is independent of plans and stores: it takes canonical scenarios, seeds and measures, and
returns rows. Sweeps, searches and reproductions all use it.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
