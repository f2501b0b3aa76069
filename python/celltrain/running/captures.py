"""Captures of a run, written during the run: packets at hosts or cells at ports, in the format of Wireshark."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from celltrain.errors import CancelledError, Fault, OutputError, ScenarioError, add_note
from celltrain.model.arguments import checked, names_of
from celltrain.model.files import making, replacing, writing
from celltrain.text import shown

#: The kinds of captures, with the points that each can observe.
KINDS = dict.fromkeys(("ip", "aal5"), ("sender", "receiver", "both"))
KINDS |= dict.fromkeys(("cells", "wireshark_cells"), ("out", "in", "both"))
#: Function that receives the next bytes of the file.
Take = Callable[[bytes], object]


class Capture:
    """Packets or cells to capture, and the pcapng file for them, to read with Wireshark, tshark, tcptrace or scapy.

    >>> import celltrain as ct
    >>> lan = ct.n_source(sources=2, link_delay="5us", buffer_cells=100, policy=ct.Ppd(), duration="10ms")
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "run.pcapng")
    ...     result = ct.run(lan, pcap=ct.Capture(file, flows=["tcp1"]))
    ...     magic = file.read_bytes()[:4]
    >>> result.engine, magic.hex()
    ('reference', '0a0d0d0a')
    """

    @checked(ScenarioError)
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        kind: str = "ip",
        at: str | None = None,
        ports: str | Sequence[str] | None = None,
        vcs: str | Sequence[str] | None = None,
        flows: str | Sequence[str] | None = None,
        window: str | None = None,
    ) -> None:
        """Chooses packets or cells.

        Args:
            path: The file, which must not exist.
            kind: `"ip"` for IPv4 packets at hosts, `"aal5"` for the same in AAL5 frames with VPI and VCI, `"cells"` for
                cells at ports with all their 53 bytes, `"wireshark_cells"` for cells without their HEC, whose headers
                Wireshark shows. Comments on packets at hosts name the place of a loss; these packets then come from the
                reference engine, as cells do. With `engine="fast"` there are no such comments.
            at: For packets `"sender"`, `"receiver"` or `"both"`: the hosts that are observed; the senders' when None.
                Readers follow a connection through all hosts of a file, and take arrivals at the other end for
                retransmissions, so a capture of both is for reading and not for counting. For cells `"out"`, `"in"` or
                `"both"`: departures from a port, arrivals at it with a comment on losses, or both; departures when None.
            ports: Ports whose cells are captured; the bottleneck when None.
            vcs: VCs whose cells, or whose flows' packets, are captured; all when None.
            flows: Flows whose packets or cells are captured; all when None.
            window: Start and end, such as `"1.2s:1.3s"`; either may be left out. The whole run when None.

        Raises:
            ScenarioError: If an option is invalid.
        """
        self.path = Path(path)
        self.kind, self.at, self.window = kind, at, window
        self.ports, self.vcs, self.flows = names_of(ports), names_of(vcs), names_of(flows)
        self._end = b""
        faults = []
        if kind not in KINDS:
            faults.append(Fault.of_choice("kind", kind, "a kind of capture", KINDS))
        elif at is not None and at not in KINDS[kind]:
            faults.append(Fault.of_choice("at", at, f"a capture point for {kind}", KINDS[kind]))
        if self.ports is not None and not self.of_cells:
            problem = "applies only to cells; packets are captured at hosts, so choose flows"
            faults.append(Fault.of_option("ports", ", ".join(self.ports), problem))
        if faults:
            raise ScenarioError(faults)

    def __repr__(self) -> str:
        return f"Capture({str(self.path)!r}, kind={self.kind!r})"

    @property
    def of_cells(self) -> bool:
        """True for cells at ports, False for packets at hosts."""
        return self.kind.endswith("cells")

    def engine(self, requested: str | None) -> str:
        """Returns the engine for this capture: by default the reference engine, which reports losses."""
        if requested == "fast" and self.of_cells:
            problem = "does not report single cells: let celltrain choose the engine, or capture packets at hosts"
            raise ScenarioError.of_option("engine", '"fast"', problem)
        return requested or "reference"

    def for_core(self) -> tuple[Any, ...]:
        """Returns the core's arguments for this capture."""
        return (self.kind, self.at, self.ports, self.vcs, self.flows, self.window)

    @contextmanager
    def taking(self) -> Iterator[Take]:
        """Yields a function that writes bytes to the file. The file gets its name at the end, also after Ctrl-C."""
        if self.path.exists() or self.path.is_symlink():
            raise OutputError.of_file(str(self.path), "already exists; name another file, or delete it")
        ended: BaseException | None = None
        self._end = b""
        with making(self.path.parent), writing(self.path), replacing(self.path) as file:

            def take(data: bytes) -> None:
                # Errors here must name this file, not another file of the run.
                with writing(self.path):
                    file.write(data)
                self._end = (data if len(data) >= _BLOCK else self._end + data)[-_BLOCK:]

            try:
                yield take
            except (KeyboardInterrupt, CancelledError) as error:
                ended = error
                until, block = _interruption(self._end)
                file.write(block)
        if ended is not None:
            add_note(ended, f"kept until {until:.9g} s, the last packet that was written: {shown(self.path)}")
            raise ended

    @property
    def is_empty(self) -> bool:
        """True if the last run captured nothing but handshakes, which are not in the model but made up."""
        return _last_packet(self._end) is None or _MADE_UP in _last_block(self._end)


#: Block types of pcapng, and option codes of comments and of interface statistics.
_PACKET, _STATISTICS, _COMMENT, _END_TIME = 6, 5, 1, 3
#: Longer than any block.
_BLOCK = 1 << 18
#: Start of the comment on a handshake.
_MADE_UP = b"made up: in the model"


def _last_block(end: bytes) -> bytes:
    """Returns the last block, given the end of a capture: a block ends with its length."""
    length = int.from_bytes(end[-4:], "little")
    return end[-length:] if 28 <= length <= len(end) else b""


def _last_packet(end: bytes) -> tuple[int, int] | None:
    """Returns the interface and the time (ns) of the last packet; None if the last block is not a packet."""
    block = _last_block(end)
    if int.from_bytes(block[:4], "little") != _PACKET:
        return None
    interface, high, low = struct.unpack("<III", block[8:20])
    return interface, high << 32 | low


def _interruption(end: bytes) -> tuple[float, bytes]:
    """Returns the time of the last packet in seconds, and a block with the comment that the run was interrupted."""
    interface, nanoseconds = _last_packet(end) or (0, 0)
    seconds = nanoseconds / 1e9
    comment = f"the run was interrupted: packets until {seconds:.9g} s".encode()
    stamp = struct.pack("<II", nanoseconds >> 32, nanoseconds & 0xFFFF_FFFF)
    options = struct.pack("<HH", _COMMENT, len(comment)) + comment + bytes(-len(comment) % 4)
    options += struct.pack("<HH", _END_TIME, 8) + stamp + struct.pack("<HH", 0, 0)
    length = struct.pack("<I", 24 + len(options))
    return seconds, struct.pack("<I", _STATISTICS) + length + struct.pack("<I", interface) + stamp + options + length
