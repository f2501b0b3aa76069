"""Running: chunks of runs on the threads of this machine, in processes of their own, or on a cluster.

What runs chunks is a `Worker`. It knows neither plans nor stores: it takes canonical scenarios, seeds and measures, and gives
rows. Sweeps, searches and reproductions all run on it.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
