"""What happened, in sentences: losses, how the sender noticed, what it did, and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from celltrain.inspect.reasons.history import NEVER, Episode, Fates, History, Rows
from celltrain.inspect.reasons.words import DONE, counted, grounds, instant, loss, span, stretch, window
from celltrain.text import shown

#: As the table of segments has it.
_FAST = "third duplicate ACK"
#: Why segments were sent again, by the word of the table of segments.
_BECAUSE = {
    "timeout": "because of the timeout",
    _FAST: "because of the third duplicate ACK",
    "partial ACK": "because of partial ACKs",
    "SACK hole": "to fill holes that SACK showed",
}
#: The group of what is said of lost ACKs: behind those of segments.
_OF_ACKS = 1 << 32


@dataclass(frozen=True, kw_only=True)
class Told:
    """A sentence, when it is about, and the events it follows from."""

    text: str
    time: float
    rows: tuple[Rows, ...]
    is_needed: bool = False
    """Whether it stays where there is room for some sentences only."""
    group: int | None = None
    """Which run of losses it is about, from 0: sentences of one stand together."""
    place: int = 0
    """Its place there: at 0 what was lost first, to which all others refer, at 1 the rule by which it was."""


def of_episode(history: History, episode: Episode, fates: Fates, at: float) -> list[Told]:
    """What happened in a span of time in which not all was well."""
    return list(_Story(history, episode, fates, at).tell())


def dead(history: History) -> Told:
    """Says that nothing of a flow arrived."""
    import numpy as np

    sent = np.flatnonzero(history.is_sent)
    text = (
        f"{shown(history.flow)} delivered nothing in the whole run: of {counted(len(sent), 'segment')} sent, 0 arrived."
    )
    return Told(text=text, time=float(history.time[sent[0]]), rows=(history.rows(sent),), is_needed=True)


def nothing(history: History, at: float, end: float) -> list[Told]:
    """That all was well, and where the nearest losses are; `end` is that of the run."""
    import numpy as np

    flow = shown(history.flow)
    sent = np.flatnonzero(history.is_sent)
    before, after = sent[history.time[sent] <= at], sent[history.time[sent] > at]
    told = []
    if not len(before):
        first = f" Its first segment is sent at {instant(history.time[after[0]])}." if len(after) else ""
        text = f"{flow} had sent nothing by {instant(at)}.{first}"
        told.append(Told(text=text, time=at, rows=(history.rows(after[:1]),), is_needed=True))
    else:
        text = f"All was well with {flow} at {instant(at)}: all that it had sent had arrived or was on its way."
        told.append(Told(text=text, time=at, rows=(history.rows(before[-1:]),), is_needed=True))
    earlier = [one for one in history.episodes if one.end < at]
    later = [one for one in history.episodes if one.start > at]
    for which, found in (("before", earlier[-1:]), ("after", later[:1])):
        for one in found:
            told.append(_nearest(history, which, one))
        if not found:
            until = "since the start of the run" if which == "before" else f"until {instant(end)}, the end of the run"
            text = f"None of its segments was lost or retransmitted {which} that, {until}."
            told.append(Told(text=text, time=at, rows=(), is_needed=True))
    return told


def _nearest(history: History, which: str, episode: Episode) -> Told:
    """Where a loss before or after an instant is."""
    lost = history.within(history.lost, episode)
    acks = history.within(history.lost_acks, episode)
    places = lost if len(lost) else acks
    what = "segment" if len(lost) else "ACK"
    until = f"; it had recovered by {instant(episode.end)}" if episode.end < NEVER else ""
    if len(places):
        text = f"Its nearest loss {which} that: {counted(len(places), what)}, sent from {instant(episode.start)} on{until}."
    else:
        places = history.within(_again(history), episode)
        text = f"Its nearest retransmission {which} that: {instant(episode.start)}{until}."
    return Told(text=text, time=episode.start, rows=(history.rows(places),), is_needed=True)


def _again(history: History) -> Any:
    import numpy as np

    return np.flatnonzero(history.is_again)


class _Story:
    """The sentences of one span of time."""

    def __init__(self, history: History, episode: Episode, fates: Fates, at: float) -> None:
        self.history = history
        self.episode = episode
        self.fates = fates
        self.at = at
        self.flow = shown(history.flow)
        self.lost = history.within(history.lost, episode)
        self.lost_acks = history.within(history.lost_acks, episode)
        self.again = history.within(_again(history), episode)
        self.notices = self._find_notices()

    def tell(self) -> Iterator[Told]:
        yield self._headline()
        told = [*self._losses(), *self._of_acks(), *self._reactions()]
        begin = {one.group: one.time for one in told if one.group is not None and one.place == 0}
        yield from sorted(told, key=lambda one: (begin[one.group], one.place) if one.group in begin else (one.time, 0))
        yield from self._costs()

    def _headline(self) -> Told:
        """All of it in a line."""
        history, episode = self.history, self.episode
        again = f" and retransmitted {counted(len(self.again), 'segment')}" if len(self.again) else ""
        if len(self.lost):
            volume = counted(history.length[self.lost].sum(), "byte")
            what = f"lost {counted(len(self.lost), 'segment')} ({volume}){again}"
        elif len(self.lost_acks):
            what = f"lost {counted(len(self.lost_acks), 'ACK')}{again or ', and no data'}"
        else:
            what = f"lost nothing, but retransmitted {counted(len(self.again), 'segment')}"
        end = (
            f"; it had recovered by {instant(episode.end)}, {span(episode.end - episode.start)} later"
            if episode.end < NEVER
            else f"; not all {'was acknowledged' if history.has_tcp else 'was well'} before the end of the run"
        )
        text = f"From {instant(episode.start)} on {self.flow} {what}{end}."
        rows = (history.rows(self.lost if len(self.lost) else self.again if len(self.again) else self.lost_acks),)
        return Told(text=text, time=episode.start, rows=rows, is_needed=True)

    # Losses.

    def _losses(self) -> Iterator[Told]:
        """Each run of losses between two notices: the first in full, the others as numbers."""
        groups: dict[int, list[int]] = {}
        for place in self.lost:
            passed = sum(time <= self.history.time[place] for time, _, _ in self.notices)
            groups.setdefault(passed, []).append(int(place))
        for group, places in enumerate(groups.values()):
            for one in self._loss(places):
                yield replace(one, group=group)

    def _loss(self, places: list[int]) -> Iterator[Told]:
        history = self.history
        told = {place: self.fates.of(history.vc(place), history.frame[place]) for place in places}
        first = min(places, key=lambda place: self._when(place, told[place]))
        fate = told[first]
        segment = f"{stretch(history.first[first], history.last[first])} of {self.flow}"
        sent = "sent again" if history.is_again[first] else "sent"
        own = history.rows([first])
        when = self._when(first, fate)
        if fate is None:
            text = (
                f"{_capital(segment)} in frame {history.frame[first]:.0f}, left at {instant(when)} and never arrived."
            )
            yield Told(text=text, time=when, rows=(own,))
        else:
            row = self.fates.row(fate)
            on_way = row["time_s"] - history.time[first]
            text = loss(row, f"frame {history.frame[first]:.0f} ({segment}, {sent} {span(on_way)} before)")
            rows = (self.fates.rows([fate]), own)
            yield Told(text=text, time=when, rows=rows)
            if (rule := grounds(row)) is not None:
                yield Told(text=rule, time=when, rows=(self.fates.rows([fate]),), place=1)
        if len(places) > 1:
            yield self._rest(places, told, first)
        if fate is not None and (others := self._others(places, told)) is not None:
            yield others

    def _when(self, place: int, fate: int | None) -> float:
        return float(self.history.time[place] if fate is None else self.fates.time[fate])

    def _rest(self, places: list[int], told: dict[int, int | None], first: int) -> Told:
        """The other losses of a run of them."""
        history = self.history
        rest = [place for place in places if place != first]
        last = max(self._when(place, told[place]) for place in rest)
        ways: Counter[str] = Counter()
        for place in rest:
            fate = told[place]
            if fate is None:
                ways["never arrived"] += 1
            else:
                port = self.fates.port[fate]
                where = f" at {shown(port)}" if port is not None else ""
                ways[f"{DONE[self.fates.event[fate]]}{where}"] += 1
        listed = ", ".join(f"{count:,} {way}" for way, count in ways.items())
        one = next(iter(ways))
        how = f"{one}" if len(ways) == 1 else listed
        if one == "never arrived" and len(ways) == 1:
            text = f"{counted(len(rest), 'more segment')} sent until {instant(last)} never arrived."
        elif len(ways) == 1:
            text = f"By {instant(last)} {counted(len(rest), 'more segment')} had been {how}."
        else:
            text = f"By {instant(last)} {counted(len(rest), 'more segment')} had been lost: {how}."
        known = [fate for place in rest if (fate := told[place]) is not None]
        rows = (self.fates.rows(known), history.rows(rest)) if known else (history.rows(rest),)
        return Told(text=text, time=last, rows=rows, place=2)

    def _others(self, places: list[int], told: dict[int, int | None]) -> Told | None:
        """How many frames of all VCs met the same end at the port meanwhile."""
        fate = told[places[0]]
        if fate is None or self.fates.port[fate] is None:
            return None
        port, event = self.fates.port[fate], self.fates.event[fate]
        times = [self._when(place, told[place]) for place in places if told[place] is not None]
        same = self.fates.others(port, event, min(times), max(times))
        if set(self.fates.vc[same]) == {self.fates.vc[fate]}:
            return None
        # As the port sees them: what has merged is one.
        vcs = set(self.fates.port_vc[same])
        of = counted(len(vcs), "VC") if len(vcs) > 1 else f"its VC there, {shown(self.fates.port_vc[fate])}"
        text = f"In all, {counted(len(same), 'frame')} of {of} were {DONE[event]} there in that time."
        return Told(text=text, time=max(times), rows=(self.fates.rows(list(same)),), place=3)

    def _of_acks(self) -> Iterator[Told]:
        """ACKs that were lost: the first in full."""
        history = self.history
        if not len(self.lost_acks):
            return
        first = int(self.lost_acks[0])
        fate = self.fates.of(history.vc(first), history.frame[first])
        what = f"the ACK of {self.flow} for all bytes up to {history.ack[first]:,.0f}"
        own = history.rows(self.lost_acks)
        if fate is None:
            yield Told(
                text=f"{_capital(what)}, sent at {instant(history.time[first])}, was lost.",
                time=history.time[first],
                rows=(own,),
                group=_OF_ACKS,
            )
        else:
            row = self.fates.row(fate)
            yield Told(text=loss(row, what), time=row["time_s"], rows=(self.fates.rows([fate]), own), group=_OF_ACKS)
            if not len(self.lost) and (rule := grounds(row)) is not None:
                yield Told(text=rule, time=row["time_s"], rows=(self.fates.rows([fate]),), group=_OF_ACKS, place=1)
        if len(self.lost_acks) > 1:
            last = history.time[self.lost_acks[-1]]
            text = f"So were {counted(len(self.lost_acks) - 1, 'more ACK')}, sent until {instant(last)}."
            yield Told(text=text, time=last, rows=(own,), group=_OF_ACKS, place=2)

    # What the sender noticed, and did.

    def _find_notices(self) -> list[tuple[float, str, int]]:
        """When the sender noticed something: the instant, what, and the place of the timer's or the segment's event."""
        import numpy as np

        history, episode = self.history, self.episode
        expired = np.flatnonzero((history.expired >= episode.start) & (history.expired <= episode.end))
        found = [(float(history.expired[place]), "timeout", int(place)) for place in expired]
        # A sender that goes back sends many segments for the reason it began with. It began at the duplicate ACK that asks
        # for the very segment.
        duplicates = np.flatnonzero((history.event == "acknowledged") & (history.reason == "duplicate"))
        asked = {(history.time[row], history.ack[row]) for row in duplicates}
        for place in self.again:
            if history.reason[place] == _FAST and (history.time[place], history.first[place]) in asked:
                found.append((float(history.time[place]), _FAST, int(place)))
        return sorted(found)

    def _reactions(self) -> Iterator[Told]:
        history = self.history
        before = self._before_loss()
        for number, (time, what, place) in enumerate(self.notices):
            until = self.notices[number + 1][0] if number + 1 < len(self.notices) else NEVER
            yield from self._duplicates(time, what, self.notices[number - 1][0] if number else self.episode.start)
            yield self._notice(time, what, place, before)
            before = None
            times = history.time[self.again]
            sent = self.again[(times >= time) & (times < until)]
            # The first of them stands in the sentence before.
            if len(sent) > 1 or (len(sent) and history.time[sent[0]] > time):
                yield self._sent_again(sent)
        known = self.notices[0][0] if self.notices else NEVER
        early = self.again[history.time[self.again] < known]
        if len(early):
            yield self._sent_again(early)

    def _before_loss(self) -> float | None:
        """When the first loss happened that a notice follows."""
        if not len(self.lost):
            return None
        place = self.lost[0]
        return self._when(int(place), self.fates.of(self.history.vc(place), self.history.frame[place]))

    def _duplicates(self, time: float, what: str, since: float) -> Iterator[Told]:
        """The duplicate ACKs that came before a timeout, where the sender did nothing because of them."""
        import numpy as np

        history = self.history
        meanwhile = (history.time > since) & (history.time < time)
        rows = np.flatnonzero((history.event == "acknowledged") & (history.reason == "duplicate") & meanwhile)
        if what == "timeout" and len(rows) and not (history.is_again & meanwhile).any():
            text = f"{counted(len(rows), 'duplicate ACK')} had come back until {instant(history.time[rows[-1]])}."
            yield Told(text=text, time=float(history.time[rows[-1]]), rows=(history.rows(rows),))

    def _notice(self, time: float, what: str, place: int, lost_at: float | None) -> Told:
        """The timeout or the third duplicate ACK, and what it made of the windows."""
        import numpy as np

        history = self.history
        after_loss = f", {span(time - lost_at)} after the first loss" if lost_at is not None and time > lost_at else ""
        if what == "timeout":
            begin = f"At {instant(time)} the retransmission timer ran out{after_loss}"
            rows = [history.expirations([place])]
            own = self.again[history.time[self.again] == time]
        else:
            begin = f"At {instant(time)} the third duplicate ACK reached the sender{after_loss}"
            acks = (history.event == "acknowledged") & (history.reason == "duplicate") & (history.time == time)
            rows = [history.rows(np.flatnonzero(acks))]
            own = np.array([place])
        earlier = np.flatnonzero((history.time < time) & ~np.isnan(history.cwnd))
        later = np.flatnonzero((history.time == time) & ~np.isnan(history.cwnd))
        windows = ""
        if len(earlier) and len(later):
            one, other = earlier[-1], later[-1]
            windows = f"; cwnd {_change(history.cwnd[one], history.cwnd[other])} segments"
            windows += f", ssthresh {_change(history.ssthresh[one], history.ssthresh[other], history.cwnd[one])}"
            rows.append(history.rows([one, other]))
        did = ""
        if len(own):
            did = f": it retransmitted {stretch(history.first[own[0]], history.last[own[0]])}"
            rows.append(history.rows(own[:1]))
        doubled = ""
        if what == "timeout" and (places := self._doubling(time)) is not None:
            first = places[0]
            doubled = (
                f" The timeout had doubled to {span(history.rto[first])} at {instant(history.time[first])}, "
                "and no round trip was timed since."
            )
            rows.append(history.rows(places))
        return Told(text=f"{begin}{did}{windows}.{doubled}", time=time, rows=tuple(rows), is_needed=True)

    def _doubling(self, time: float) -> list[int] | None:
        """Returns the first and last row with a timeout that the expiry before `time` doubled; None if it changed since.

        A measured round trip ends the doubling. Data sent again is not timed (Karn's algorithm).
        """
        import numpy as np

        history = self.history
        expired = history.expired[history.expired < time]
        if not len(expired):
            return None
        known = ~np.isnan(history.rto)
        before = np.flatnonzero(known & (history.time < expired[-1]))
        since = np.flatnonzero(known & (history.time >= expired[-1]) & (history.time < time))
        if not len(before) or not len(since):
            return None
        rto = history.rto[since]
        is_kept = bool((rto == rto[0]).all()) and bool(np.isclose(rto[0], 2 * history.rto[before[-1]]))
        return [int(since[0]), int(since[-1])] if is_kept else None

    def _sent_again(self, places: Any) -> Told:
        """What was sent again, and why."""
        history = self.history
        reasons = Counter(history.reason[places]).most_common()
        if len(reasons) == 1:
            why = f" {_BECAUSE[reasons[0][0]]}"
        else:
            why = ": " + ", ".join(f"{count:,} {_BECAUSE[reason]}" for reason, count in reasons)
        lost = len(set(places.tolist()) & set(self.lost.tolist()))
        again = f", and {lost:,} of them {'was' if lost == 1 else 'were'} lost again" if lost else ""
        volume = counted(history.length[places].sum(), "byte")
        last = float(history.time[places[-1]])
        text = f"By {instant(last)} it had retransmitted {counted(len(places), 'segment')} ({volume}){why}{again}."
        return Told(text=text, time=last, rows=(history.rows(places),))

    # What it cost.

    def _costs(self) -> Iterator[Told]:
        import numpy as np

        history = self.history
        if not history.has_tcp:
            text = f"{self.flow} has no TCP: lost data is not retransmitted."
            yield Told(text=text, time=self.episode.end, rows=(history.rows(self.lost),), is_needed=True)
            return
        if len(self.lost):
            yield self._repair()
        if len(self.again):
            yield from self._silence()
            frames = history.frame[self.again]
            vain = np.flatnonzero(
                (history.event == "arrived") & (history.reason == "repeated") & np.isin(history.frame, frames)
            )
            if len(vain):
                volume = counted(history.length[vain].sum(), "byte")
                text = f"{counted(len(vain), 'segment')} ({volume}) {'was' if len(vain) == 1 else 'were'} retransmitted needlessly: the receiver already had {'it' if len(vain) == 1 else 'them'}."
                rows: tuple[Rows, ...] = (history.rows(vain),)
            else:
                text, rows = "Nothing was retransmitted needlessly.", (history.rows(self.again),)
            yield Told(text=text, time=self.episode.end, rows=rows, is_needed=True)
        elif not len(self.lost):
            end = self._next_ack()
            text = f"Nothing was retransmitted: a later ACK, which came at {instant(history.time[end])}, said as much."
            yield Told(text=text, time=self.episode.end, rows=(history.rows([end]),), is_needed=True)

    def _next_ack(self) -> int:
        import numpy as np

        history = self.history
        came = np.flatnonzero((history.event == "acknowledged") & (history.time >= self.episode.end))
        return int(came[0]) if len(came) else int(self.lost_acks[-1])

    def _repair(self) -> Told:
        """How long it took until all that was lost was acknowledged."""
        history = self.history
        furthest = int(self.lost[history.last[self.lost].argmax()])
        ack = history.acknowledging(history.last[furthest])
        first = self._before_loss()
        if ack is None or first is None:
            text = "Not all that was lost was acknowledged before the end of the run."
            return Told(text=text, time=self.episode.end, rows=(history.rows(self.lost),), is_needed=True)
        time = float(history.time[ack])
        text = f"By {instant(time)} all lost bytes were acknowledged, {span(time - first)} after the first loss."
        return Told(text=text, time=time, rows=(history.rows([self.lost[0], ack]),), is_needed=True)

    def _silence(self) -> Iterator[Told]:
        """The longest time in which nothing was sent."""
        import numpy as np

        history = self.history
        sent = history.within(np.flatnonzero(history.is_sent), self.episode)
        if len(sent) < 2:
            return
        gaps = np.diff(history.time[sent])
        at = int(gaps.argmax())
        first, last = sent[at], sent[at + 1]
        times = f"from {instant(history.time[first])} to {instant(history.time[last])}"
        text = f"The longest time in which it sent nothing was {span(gaps[at])}, {times}."
        yield Told(text=text, time=self.episode.end, rows=(history.rows([first, last]),), is_needed=True)


def _change(before: float, after: float, cwnd: float = 0.0) -> str:
    """Returns what a notice made of a window. A slow start threshold may be set to half of `cwnd`, the window before it.

    >>> _change(45.2, 12.0, 24.0), _change(2.0, 2.0, 1.0)
    ('went from 45.2 to 12', 'stayed 2')
    >>> _change(45.18483, 45.179296, 90.358592)
    'was set to 45.2 (half of cwnd 90.4)'
    """
    one, other = window(before), window(after)
    if one != other:
        return f"went from {one} to {other}"
    is_half = abs(after - cwnd / 2) < 1e-6
    if before == after and not is_half:
        return f"stayed {one}"
    return f"was set to {other}" + (f" (half of cwnd {window(cwnd)})" if is_half else "")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
