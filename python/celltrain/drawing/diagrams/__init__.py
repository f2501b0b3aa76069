"""Diagrams of a run's events: time and sequence, the anatomy of a buffer, the ladder of a frame."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.drawing.axes import refuse_other, require_matplotlib, save, styled
from celltrain.drawing.diagrams import anatomy, ladder, sequence
from celltrain.drawing.diagrams.ladder import GONE
from celltrain.drawing.event_rows import names, texts
from celltrain.errors import Fault, InputError, OutputError
from celltrain.model import files
from celltrain.model.arguments import checked
from celltrain.model.writing import writing
from celltrain.text import shown

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

#: Inches: read in a column of 8 cm as well as on a screen.
SIZE = (4.8, 3.9)


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
        self._log = log
        self._title = title
        self._facts = facts
        #: Notes on the latest diagram for its reader, such as which cells it lacks.
        self.notes: list[str] = []

    def __repr__(self) -> str:
        return "<diagrams of a run's events: sequence(flow), anatomy(port), ladder(flow, frame)>"

    @checked()
    def sequence(self, flow: str, *, window: str | None = None, ax: Axes | None = None) -> Axes:
        """The time-sequence diagram of a connection, as tcptrace draws it.

        A bar is a segment as it was sent: from its first to its last byte. Bars of segments that were sent again have the
        colour of the reason. A cross is on a segment that was lost; where frames were kept, with the port and what it did.
        The steps below are the highest ACK at the sender, with a tick for each duplicate; those above are what cwnd allows.
        A dotted line is a timeout, where timers were kept.

        Args:
            flow: The connection.
            window: From when to when, such as `"1.2s:1.3s"`; all that was kept when None.
            ax: Axes to draw on.
        """
        return sequence.draw(self._log, flow, window=window, title=self._title, facts=self._facts, ax=ax, size=SIZE)

    @checked()
    def anatomy(self, port: str | None = None, *, window: str | None = None, ax: Axes | None = None) -> Axes:
        """What waits at a port over time, one VC upon the other, and what is lost there.

        Crosses are frames that the policy refused, triangles cells that found no room or were pushed out; a dashed line is
        the policy's threshold, a dotted one the buffer's size. Marks of frames and the threshold are drawn if frames were
        kept. If only some VCs' cells were kept, grey dots are X, all cells waiting, at each judgement of a frame.

        Args:
            port: The port; when None the only one whose cells were kept.
            window: From when to when, such as `"1.2s:1.3s"`; all that was kept when None.
            ax: Axes to draw on.
        """
        self.notes = []
        run: dict[str, Any] = {"title": self._title, "facts": self._facts, "notes": self.notes}
        return anatomy.draw(self._log, port, window=window, ax=ax, size=SIZE, **run)

    @checked()
    def ladder(self, flow: str, frame: int | None = None, *, ax: Axes | None = None) -> Axes:
        """The cells of one frame on their way: a line for each port whose cells were kept, time from top to bottom.

        A thin line goes from a cell's departure to its arrival at the next port, a thick one is a cell that waits, a cross
        is a cell that is lost.

        Args:
            flow: The connection, whose data it is; or a VC, such as `"tcp1-acks"`.
            frame: The frame's number within the VC. If None, the first one that lost only some of its cells, or else the
                first that waited and arrived.
            ax: Axes to draw on.
        """
        self.notes = []
        run: dict[str, Any] = {"title": self._title, "facts": self._facts, "notes": self.notes}
        return ladder.draw(self._log, flow, frame, ax=ax, size=(SIZE[0], 1.25 * SIZE[1]), **run)

    def worst(self, kind: str) -> str:
        """Returns the connection, or for a ladder the VC, that lost or retransmitted most among the events.

        Args:
            kind: `"sequence"` or `"ladder"`.
        """
        import numpy as np

        table, column, bad = ("cells", "vc", GONE) if kind == "ladder" else ("segments", "flow", ("retransmitted",))
        rows = self._log[table]
        counts = Counter(texts(rows, column)[np.isin(texts(rows, "event"), bad)].tolist())
        return max(names(rows, column), key=lambda name: counts[name], default="")

    @checked()
    def write(self, kind: str, path: str | os.PathLike[str], **options: Any) -> Path:
        """Draws one into a file, whose ending says which form it has: svg, png or pdf. The same events give the same file.

        A file that was drawn so before is replaced; any other that is there is refused.

        Args:
            kind: `"sequence"`, `"anatomy"` or `"ladder"`.
            path: The file.
            options: Those of the method of this name.
        """
        require_matplotlib()
        from matplotlib.figure import Figure

        target = Path(path)
        refuse_other(target, "out")
        form = target.suffix.removeprefix(".").lower()
        if kind not in ("sequence", "anatomy", "ladder"):
            raise InputError([Fault.of_option("kind", kind, "is not a diagram; choose from sequence, anatomy, ladder")])
        _refuse_others(target)
        # Without pyplot: nothing here may open a window or leave a figure behind.
        height = 1.25 * SIZE[1] if kind == "ladder" else SIZE[1]
        with styled():
            figure = Figure(figsize=(SIZE[0], height), layout="constrained")
            getattr(self, kind)(**options, ax=figure.add_subplot())
            with writing(target):
                save(figure, target, {"Software" if form == "png" else "Creator": _MARK})
        return target


#: What the files say of who made them.
_MARK = "celltrain plot"


def _refuse_others(target: Path) -> None:
    """Refuses a file that is there and is none that was drawn here; raises `OutputError`."""
    if not target.exists() and not target.is_symlink():
        return
    try:
        is_ours = _MARK.encode() in files.read_bytes(target, what="figure", most=files.MAX_WRITTEN_BYTES)
    except files.UnreadableError:
        is_ours = False
    if not is_ours:
        problem = "is there already, and celltrain plot did not draw it; name another file, or take it away"
        raise OutputError([Fault.of_file(shown(target), problem)])
