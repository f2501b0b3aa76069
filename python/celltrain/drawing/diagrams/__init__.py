"""Diagrams of a run's events: time and sequence, the anatomy of a buffer, the ladder of a frame."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.drawing.axes import refuse_other, require_matplotlib, save, styled
from celltrain.drawing.diagrams import anatomy, ladder, sequence
from celltrain.drawing.diagrams.ladder import GONE, TALL
from celltrain.drawing.event_rows import SIZE, Events, names, texts
from celltrain.errors import Fault, InputError, OutputError
from celltrain.model import files
from celltrain.model.arguments import checked
from celltrain.model.files import writing
from celltrain.text import shown

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

#: Mark of files that were drawn here.
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
        #: Notes on the latest diagram for its reader, such as which cells it lacks.
        self.notes: list[str] = []

    @checked()
    def sequence(self, flow: str, *, window: str | None = None, ax: Axes | None = None) -> Axes:
        """Draws the time-sequence diagram of a connection, as tcptrace does.

        A bar is a segment that was sent, from its first to its last byte. Bars of retransmissions have the colour of their
        reason. A cross is on a lost segment; if frames were kept, the legend names the port and the cause. The steps below
        are the highest ACK at the sender, with a tick for each duplicate. The steps above are the limit that cwnd sets. A
        dotted line is a timeout, if timers were kept.

        Args:
            flow: The connection.
            window: First and last time, such as `"1.2s:1.3s"`; all events when None.
            ax: Axes to draw on.
        """
        return sequence.draw(self._run, flow, window=window, ax=ax)

    @checked()
    def anatomy(self, port: str | None = None, *, window: str | None = None, ax: Axes | None = None) -> Axes:
        """Draws the cells waiting at a port over time, stacked by VC, and the cells lost there.

        Crosses are frames that the policy refused, triangles cells that found no room or were pushed out. A dashed line is
        the policy's threshold, a dotted one the buffer's size. Marks of frames and the threshold are drawn if frames were
        kept. If only some VCs' cells were kept, grey dots are X, all cells waiting, at each judgement of a frame.

        Args:
            port: The port; the only one whose cells were kept when None.
            window: First and last time, such as `"1.2s:1.3s"`; all events when None.
            ax: Axes to draw on.
        """
        self.notes = []
        return anatomy.draw(self._run, port, window=window, notes=self.notes, ax=ax)

    @checked()
    def ladder(self, flow: str, frame: int | None = None, *, ax: Axes | None = None) -> Axes:
        """Draws the cells of one frame on their way: a line for each port whose cells were kept, time from top to bottom.

        A thin line goes from a cell's departure to its arrival at the next port. A thick one is a waiting cell, a cross a
        lost one.

        Args:
            flow: The connection that sent the data; or a VC, such as `"tcp1-acks"`.
            frame: The frame's number within the VC. If None, the first one that lost only some of its cells, or else the
                first that waited and arrived.
            ax: Axes to draw on.
        """
        self.notes = []
        return ladder.draw(self._run, flow, frame, notes=self.notes, ax=ax)

    def worst(self, kind: str) -> str:
        """Returns the connection, or for a ladder the VC, that lost or retransmitted most among the events.

        Args:
            kind: `"sequence"` or `"ladder"`.
        """
        import numpy as np

        table, column, bad = ("cells", "vc", GONE) if kind == "ladder" else ("segments", "flow", ("retransmitted",))
        rows = self._run.log[table]
        counts = Counter(texts(rows, column)[np.isin(texts(rows, "event"), bad)].tolist())
        return max(names(rows, column), key=lambda name: counts[name], default="")

    @checked()
    def write(self, kind: str, path: str | os.PathLike[str], **options: Any) -> Path:
        """Draws a diagram into a file, whose ending names its format: svg, png or pdf. The same events give the same file.

        A file that was drawn by this method is replaced; any other existing file is refused.

        Args:
            kind: `"sequence"`, `"anatomy"` or `"ladder"`.
            path: The file.
            options: Options of the method of this name.
        """
        require_matplotlib()
        from matplotlib.figure import Figure

        target = Path(path)
        refuse_other(target, "out")
        form = target.suffix.removeprefix(".").lower()
        if kind not in ("sequence", "anatomy", "ladder"):
            raise InputError([Fault.of_option("kind", kind, "is not a diagram; choose from sequence, anatomy, ladder")])
        _refuse_others(target)
        # Without pyplot, which could open a window or keep the figure.
        with styled():
            figure = Figure(figsize=TALL if kind == "ladder" else SIZE, layout="constrained")
            getattr(self, kind)(**options, ax=figure.add_subplot())
            with writing(target):
                save(figure, target, {"Software" if form == "png" else "Creator": _MARK})
        return target


def _refuse_others(target: Path) -> None:
    """Raises `OutputError` if the file exists and was not drawn here."""
    if not target.exists() and not target.is_symlink():
        return
    try:
        is_ours = _MARK.encode() in files.read_bytes(target, what="figure", most=files.MAX_WRITTEN_BYTES)
    except files.UnreadableError:
        is_ours = False
    if not is_ours:
        problem = "already exists and was not drawn by celltrain plot; name another file, or delete it"
        raise OutputError([Fault.of_file(shown(target), problem)])
