"""Buffer policies of a port: `ct.policies.Epd(...)`. docs/models has a page for each; see `celltrain list policies`."""

from celltrain.model import types as _types

__all__ = _types.SUBJECTS["policies"]
globals().update({name: vars(_types)[name] for name in __all__})


def __dir__() -> list[str]:
    return __all__
