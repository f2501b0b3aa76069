"""TCP variants, real stacks, and the types of their settings: `ct.tcp.Sack(mss="1460B")`."""

from celltrain.model import types as _types

__all__ = _types.SUBJECTS["tcp"]
globals().update({name: vars(_types)[name] for name in __all__})


def __dir__() -> list[str]:
    return __all__
