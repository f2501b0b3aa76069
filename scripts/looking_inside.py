"""Draws the pictures for docs/looking-inside.md. Runs the page's commands, which takes several seconds."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import celltrain as ct

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
SCENARIO, SEED = ROOT / "scenarios" / "lan-epd.toml", 18
MEMORY = ROOT / "scenarios" / "memory-dynamic-threshold.toml"
PORTS = ["source4->sw1", "sw1->sw2", "sw2->destination4"]


def pictures() -> None:
    """Draws the diagrams of the page."""
    with tempfile.TemporaryDirectory() as folder:
        flow = ct.Events(
            folder=f"{folder}/flow", kinds=["segments", "timers", "frames"], flows=["tcp4"], window="0s:3s"
        )
        ct.run(SCENARIO, seed=SEED, events=flow).events.plot.write(
            "sequence", IMAGES / "looking-inside-sequence.png", flow="tcp4"
        )
        cells = ct.Events(folder=f"{folder}/cells", kinds=["frames", "cells"], ports=PORTS, window="2.1s:2.13s")
        diagrams = ct.run(SCENARIO, seed=SEED, events=cells).events.plot
        diagrams.write("anatomy", IMAGES / "looking-inside-anatomy.png", port="sw1->sw2", window="2.114s:2.126s")
        diagrams.write("ladder", IMAGES / "looking-inside-ladder.png", flow="tcp4", frame=627)
        capture = Path(folder) / "cells.pcapng"
        frame = "2.120407s:2.120440s"
        ct.run(SCENARIO, seed=SEED, pcap=ct.Capture(capture, kind="cells", at="in", flows="tcp4", window=frame))
        parts = list(captured(capture.read_bytes()))
        draw_cells(parts[0], parts[-1], len(parts), IMAGES / "looking-inside-cell.png")
    incast = ct.load(MEMORY).replace(duration="100ms")
    ct.run(incast, trace=["memory"], step="100us").plot.write(IMAGES / "looking-inside-memory.png")


def captured(capture: bytes) -> Iterator[bytes]:
    """Yields the cells in a capture: the packets of a little-endian pcapng file."""
    at = 0
    while at < len(capture):
        kind, length = (int.from_bytes(capture[at + word : at + word + 4], "little") for word in (0, 4))
        if kind == ENHANCED_PACKET:
            size = int.from_bytes(capture[at + 20 : at + 24], "little")
            yield capture[at + 28 : at + 28 + size]
        at += length


@dataclass(frozen=True)
class Row:
    """A row of bytes in the drawing of a cell: the section it belongs to, the length of each field, and labels."""

    part: str
    fields: tuple[int, ...]
    words: str


def first_rows(cell: bytes) -> list[Row]:
    """Describes the first cell of a frame with TCP over IPv4 over LLC/SNAP; it contains only headers."""
    ip, tcp = cell[13:33], cell[33:]
    source, destination = (".".join(str(byte) for byte in ip[at : at + 4]) for at in (12, 16))
    ports = f"{number(tcp, 0, 2)} to {number(tcp, 2, 2)}"
    return [
        header(cell),
        Row("LLC/SNAP", (3, 3, 2), "LLC/SNAP: IPv4 follows"),
        Row("IPv4", (1, 1, 2, 2, 2), f"IPv4: {number(ip, 2, 2)} bytes, ID {number(ip, 4, 2)}"),
        Row("IPv4", (1, 1, 2, 4), f"protocol TCP, from {source}"),
        Row("IPv4", (4,), f"to {destination}"),
        Row("TCP", (2, 2), f"TCP: {ports}"),
        Row("TCP", (4, 4), f"sequence {number(tcp, 4, 4):,}, ACK {number(tcp, 8, 4)}"),
        Row("TCP", (2, 2, 2, 2), f"flags, window {number(tcp, 14, 2):,}, sum"),
    ]


def last_rows(cell: bytes, cells: int) -> list[Row]:
    """Describes the last cell of a frame: the end of its data, the padding and the trailer."""
    length = number(cell, 47, 2)
    data = length - (cells - 1) * PAYLOAD_BYTES
    pad = PAYLOAD_BYTES - TRAILER_BYTES - data
    lines = [
        cell[at : min(at + ROW_BYTES, HEADER_BYTES + data)]
        for at in range(HEADER_BYTES, HEADER_BYTES + data, ROW_BYTES)
    ]
    words = [line.decode("ascii").replace("\n", "\u21b5") for line in lines]
    return [
        header(cell),
        *(Row("data", (len(line),), f"data: {text}") for line, text in zip(lines, words, strict=True)),
        Row("pad", (pad,), "pad"),
        Row("trailer", (1, 1, 2, 4), f"AAL5: {length} bytes, CRC-32"),
    ]


def header(cell: bytes) -> Row:
    """Describes the header of a cell."""
    word = number(cell, 0, 4)
    return Row("header", (4, 1), f"VPI {word >> 20 & 0xFF}, VCI {word >> 4 & 0xFFFF}, type {word >> 1 & 7}; HEC")


def number(data: bytes, at: int, length: int) -> int:
    """Reads a field of a header."""
    return int.from_bytes(data[at : at + length], "big")


def draw_cells(first: bytes, last: bytes, cells: int, path: Path) -> None:
    """Draws the first and the last cell of a frame, readable at a width of 400 pixels."""
    from matplotlib import pyplot
    from matplotlib.patches import Rectangle

    figure, axes = pyplot.subplots(figsize=(4.8, 5.1), layout="constrained")
    y = 0.0
    for place, cell, rows in ((1, first, first_rows(first)), (cells, last, last_rows(last, cells))):
        assert sum(sum(row.fields) for row in rows) == len(cell) == CELL_BYTES, "the rows contain the whole cell"
        axes.text(0, y + 0.6, f"cell {place} of {cells}", fontsize=11, fontweight="bold", va="center")
        y, at = y + 1.2, 0
        for row in rows:
            x = 0
            for length in row.fields:
                axes.add_patch(Rectangle((x, y), length, 1, facecolor=COLOURS[row.part], edgecolor="black", lw=0.8))
                for byte in cell[at : at + length]:
                    axes.text(x + 0.5, y + 0.52, f"{byte:02x}", fontsize=9.5, ha="center", va="center")
                    x, at = x + 1, at + 1
            axes.text(ROW_BYTES + 0.3, y + 0.5, row.words, fontsize=10, va="center")
            y += 1
        y += 0.3
    axes.set(xlim=(-0.05, 17.5), ylim=(y, 0))
    axes.set_axis_off()
    figure.savefig(path, dpi=150)


CELL_BYTES, HEADER_BYTES, PAYLOAD_BYTES, TRAILER_BYTES = 53, 5, 48, 8
#: Bytes per row in the drawing.
ROW_BYTES = 8
#: Light colours, as background for the bytes.
COLOURS = {
    "header": "#f5c77e",
    "LLC/SNAP": "#cfe8f7",
    "IPv4": "#9fd0ee",
    "TCP": "#8fd3ba",
    "data": "#f2f2f2",
    "pad": "#ffffff",
    "trailer": "#e8b9d2",
}
#: Type of a pcapng block with a packet.
ENHANCED_PACKET = 6


if __name__ == "__main__":
    pictures()
