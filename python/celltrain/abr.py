"""ABR sources and the rate allocators of switches: `ct.abr.Erica(...)`."""

from celltrain.model import types as _types

__all__ = _types.SUBJECTS["abr"]
globals().update({name: vars(_types)[name] for name in __all__})


def __dir__() -> list[str]:
    return __all__
