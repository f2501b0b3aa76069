"""Diagrams of a run's events: a connection's time-sequence diagram, the anatomy of a buffer, the ladder of a frame."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain.drawing.diagrams import anatomy, ladder, sequence
from celltrain.drawing.diagrams.ladder import GONE, TALL
from celltrain.drawing.event_rows import SIZE, Events, names, texts
from celltrain.drawing.figure import refuse_other, require_matplotlib, save, styled
from celltrain.errors import InputError, OutputError
from celltrain.model import files
from celltrain.model.arguments import checked
from celltrain.model.files import writing

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

#: Metadata that marks files drawn by `Diagrams.write`.
_MARK = "celltrain plot"


class Diagrams:
    """The diagrams of one run's events. Every method draws on `ax`, or on new axes, and returns the axes.

    >>> import celltrain as ct
    >>> lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=100, policy=ct.TailDrop(), duration="5ms")
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     axes = ct.run(lan, events=folder).plot.sequence("tcp1")
    >>> axes.get_ylabel()
    'place in the stream (kB)'
    """

    def __init__(self, log: Mapping[str, pa.Table], title: str, facts: Mapping[str, Any]) -> None:
        self._run = Events(log=log, title=title, facts=facts)
        #: Notes for the reader of the latest diagram, such as which cells are missing.
        self.notes: list[str] = []

    @checked()
    def sequence(self, flow: str, *, window: str | None = None, ax: Axes | None = None) -> Axes:
        """Draws the time-sequence diagram of a connection, as tcptrace does.

        A bar is a segment that was sent, from its first to its last byte. The colour of a retransmission shows its
        reason. A cross marks a lost segment; if frames were recorded, the legend names the port and the cause. The
        lower steps are the highest ACK at the sender, with a tick for each duplicate. The upper steps are the limit set
        by cwnd. A dotted line is a timeout, if timers were recorded.

        Args:
            flow: The connection.
            window: First and last time, such as `"1.2s:1.3s"`; all events when None.
            ax: Axes to draw on.
        """
        return sequence.draw(self._run, flow, window=window, ax=ax)

    @checked()
    def anatomy(self, port: str | None = None, *, window: str | None = None, ax: Axes | None = None) -> Axes:
        """Draws the cells waiting at a port over time, stacked by VC, and the cells lost there.

        Crosses are frames that the policy refused; triangles are cells lost for lack of room, or pushed out. The dashed
        line is the policy's threshold, the dotted line the buffer's size. Frames and the threshold are drawn if frames
        were recorded. If only some VCs' cells were recorded, grey dots show X, all cells waiting, at each decision
        about a frame.

        Args:
            port: The port. If None, the only one whose cells were recorded.
            window: First and last time, such as `"1.2s:1.3s"`; all events when None.
            ax: Axes to draw on.
        """
        self.notes = []
        return anatomy.draw(self._run, port, window=window, notes=self.notes, ax=ax)

    @checked()
    def ladder(self, flow: str, frame: int | None = None, *, ax: Axes | None = None) -> Axes:
        """Draws the path of one frame's cells: a line for each port whose cells were recorded, time running downwards.

        A thin line connects a cell's departure to its arrival at the next port. A thick line is a waiting cell, a cross
        a lost cell.

        Args:
            flow: The connection that sent the data; or a VC, such as `"tcp1-acks"`.
            frame: The frame's number within the VC. If None, the first one that lost only some of its cells, or else the
                first that waited and arrived.
            ax: Axes to draw on.
        """
        self.notes = []
        return ladder.draw(self._run, flow, frame, notes=self.notes, ax=ax)

    def worst(self, kind: str) -> str:
        """Returns the connection with most retransmissions, or for a ladder the VC with most lost cells.

        Args:
            kind: `"sequence"` or `"ladder"`.
        """
        table, column, bad = ("cells", "vc", GONE) if kind == "ladder" else ("segments", "flow", ("retransmitted",))
        rows = self._run.log[table]
        counts = Counter(texts(rows, column)[np.isin(texts(rows, "event"), bad)].tolist())
        return max(names(rows, column), key=lambda name: counts[name], default="")

    @checked()
    def write(self, kind: str, path: str | os.PathLike[str], **options: Any) -> Path:
        """Draws a diagram to a file in the format of its suffix: svg, png or pdf. The same events give the same file.

        Replaces a file written by this method; raises `OutputError` for any other existing file.

        Args:
            kind: `"sequence"`, `"anatomy"` or `"ladder"`.
            path: The file.
            options: Arguments of the method named by `kind`.
        """
        require_matplotlib()
        from matplotlib.figure import Figure

        target = Path(path)
        refuse_other(target, "out")
        form = target.suffix.removeprefix(".").lower()
        if kind not in ("sequence", "anatomy", "ladder"):
            raise InputError.of_option("kind", kind, "is not a diagram; choose from sequence, anatomy, ladder")
        _refuse_others(target)
        # Do not use pyplot, which could open a window or keep the figure in memory.
        with styled():
            figure = Figure(figsize=TALL if kind == "ladder" else SIZE, layout="constrained")
            getattr(self, kind)(**options, ax=figure.add_subplot())
            with writing(target):
                save(figure, target, {"Software" if form == "png" else "Creator": _MARK})
        return target


def _refuse_others(target: Path) -> None:
    """Raises `OutputError` if the file exists and was not written by `Diagrams.write`."""
    if not target.exists() and not target.is_symlink():
        return
    try:
        is_ours = _MARK.encode() in files.read_bytes(target, what="figure", most=files.MAX_WRITTEN_BYTES)
    except files.UnreadableError:
        is_ours = False
    if not is_ours:
        problem = "already exists and was not drawn by celltrain plot; name another file, or delete it"
        raise OutputError.of_file(target, problem)
