"""TCP variants and the types of their settings: `ct.tcp.Sack(mss="1460B")`."""

from __future__ import annotations

from celltrain.model.types import (
    AfterIdle,
    Backoff,
    Congestion,
    CongestionFormula,
    DelayedAcks,
    DuplicateAcks,
    EstimateForgotten,
    NewReno,
    NewRenoHoe,
    OfferedWindow,
    OutOfOrder,
    PartialAcks,
    Reno,
    RttArithmetic,
    RttSampling,
    Sack,
    SackPipe,
    SlowStart,
    SsthreshArithmetic,
    SsthreshRule,
    Tahoe,
    Tcp,
    TcpOptions,
    TickPhase,
    TimerRestart,
    Vanilla,
    WindowArithmetic,
    WindowGrowth,
)

__all__ = [
    "AfterIdle",
    "Backoff",
    "Congestion",
    "CongestionFormula",
    "DelayedAcks",
    "DuplicateAcks",
    "EstimateForgotten",
    "NewReno",
    "NewRenoHoe",
    "OfferedWindow",
    "OutOfOrder",
    "PartialAcks",
    "Reno",
    "RttArithmetic",
    "RttSampling",
    "Sack",
    "SackPipe",
    "SlowStart",
    "SsthreshArithmetic",
    "SsthreshRule",
    "Tahoe",
    "Tcp",
    "TcpOptions",
    "TickPhase",
    "TimerRestart",
    "Vanilla",
    "WindowArithmetic",
    "WindowGrowth",
]


def __dir__() -> list[str]:
    return __all__
