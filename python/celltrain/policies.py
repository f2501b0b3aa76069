"""Buffer policies of a port: `ct.policies.Epd(...)`. A page for each is in docs/models; `celltrain list policies` lists them."""

from celltrain.model import types as _types

__all__ = _types.SUBJECTS["policies"]
globals().update({name: vars(_types)[name] for name in __all__})


def __dir__() -> list[str]:
    return __all__
