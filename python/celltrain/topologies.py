"""Networks: `ct.topologies.Chain(...)`, or `ct.topologies.GeneralNetwork(...)` for any graph."""

from celltrain.model import types as _types

__all__ = _types.SUBJECTS["topologies"]
globals().update({name: vars(_types)[name] for name in __all__})


def __dir__() -> list[str]:
    return __all__
