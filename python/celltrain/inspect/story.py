"""Sentences about an episode: the losses, how the sender noticed and reacted, and the cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from celltrain.drawing.words import counted
from celltrain.inspect.history import AT_HEAD, NEVER, Episode, History, Outcomes, Rows
from celltrain.model import shipped
from celltrain.text import shown


def _phrases(kind: str) -> dict[str, str]:
    found: dict[str, str] = shipped.package_data("inspect/story.toml")[kind]
    return found


def instant(seconds: float) -> str:
    """Formats a time to the microsecond.

    >>> instant(0.0025377880658436214), instant(2.4)
    ('0.002538 s', '2.4 s')
    """
    text = f"{seconds:.6f}".rstrip("0").rstrip(".")
    return f"{text} s"


def span(seconds: float) -> str:
    """Formats a duration to three significant digits.

    >>> span(0.2974), span(1.5), span(2.5e-05), span(0.0)
    ('297 ms', '1.5 s', '25 µs', '0 s')
    """
    for limit, factor, unit in ((1.0, 1, "s"), (1e-3, 1e3, "ms"), (1e-6, 1e6, "µs")):
        if seconds >= 0.9995 * limit:
            return f"{float(f'{seconds * factor:.3g}'):,g} {unit}"
    return "0 s" if seconds < 5e-13 else f"{seconds * 1e9:.3g} ns"


def window(segments: float) -> str:
    """Returns a window in segments.

    >>> window(1.0), window(17.404)
    ('1', '17.4')
    """
    return f"{segments:,.1f}".removesuffix(".0")


def loss(row: Mapping[str, Any], what: str) -> str:
    """Returns a sentence that explains how a frame was lost."""
    reason, losses = row["reason"] or "", _phrases("losses")
    if reason.startswith("joined"):
        end = "{what} reached its host, but was joined to the previous frame, whose last cell was lost."
    elif reason.startswith("a bit"):
        end = "{what} reached its host with a bit changed by the scenario."
    elif row.get("pool_used_cells") is not None:
        end = "the shared memory had no place at {port} for a cell of {what}."
    else:
        end = losses.get(f"{row['event']}: {reason}", losses[row["event"]])
    waiting = f"{counted(row['occupancy'] or 0, 'cell')} were waiting"
    place = {"port": shown(row["port"] or ""), "waiting": waiting, "number": row["lost_number"]}
    return f"At {instant(row['time_s'])} {end.format(what=what, **place)}"


def pool(row: Mapping[str, Any]) -> str:
    """Returns a sentence about the pool, queue and threshold because of which a shared memory refused a cell."""
    what = "priority group" if row["side"] == "ingress" else "queue"
    queue = f"the {what} of priority {row['priority']} at {shown(row['port'])}"
    threshold = row.get("threshold")
    parts = [
        f"q_i = {counted(row['shared'], 'cell')} of these were from {queue}",
        *([] if threshold is None else [f"its threshold was {threshold:,.6g}"]),
        *([f"the queue held {row['held']:,} with its reserve and headroom"] if row["held"] != row["shared"] else []),
    ]
    used = f"Q = {row['used']:,} of B = {counted(row['pool_cells'], 'cell')} were taken"
    listed = [used, *parts]
    text = f"{', '.join(listed[:-1])}, and {listed[-1]}"
    return f"The pool {shown(row['pool'])} refused the cell because {row['reason']}: {text}."


def deadlock(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns a sentence about the links of a deadlock, in an order in which each waits for the next."""
    cycle = [f"{shown(row['port'])} (priority {row['priority']})" for row in rows]
    ways = ", ".join(f"{one} waits for {other}" for one, other in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    return f"At {instant(rows[0]['time_s'])} links were deadlocked by pauses: {ways}. No cell can leave them."


def rule(row: Mapping[str, Any]) -> str | None:
    """Returns a sentence about the rule by which a port refused a frame; None for other events."""
    if row["event"] not in {"refused", AT_HEAD}:
        return None
    were = "was" if row["occupancy"] == 1 else "were"
    merged = f" there, {shown(row['port_vc'])}" if row["port_vc"] != row["vc"] else ""
    optional = {
        "share_cells": "the share of the VC was {:,.4g} cells",
        "held_cells": "the virtual queue of the VC held {:,.4g} cells",
        "drop_probability": "the probability of a refusal was {:.3g}",
        "waited_s": "the waiting time was {:.6g} s",
        "target_s": "its target was {:.6g} s",
    }
    threshold = row["threshold_cells"]
    parts = [
        f"X = {counted(row['occupancy'], 'cell')} {were} queued",
        *([] if threshold is None else [f"the threshold was {threshold:,.6g}"]),
        f"Y_i = {row['vc_cells']:,} of them were from its VC{merged}",
        f"N_a = {counted(row['active_vcs'], 'VC')} had cells queued",
        *(text.format(row[column]) for column, text in optional.items() if row[column] is not None),
        *(["the frame was tagged"] if row["tagged"] else []),
    ]
    verb = "drops" if row["event"] == AT_HEAD else "refuses"
    return f"The port {verb} a frame if {row['reason']}: {', '.join(parts[:-1])}, and {parts[-1]}."


def change(before: float, after: float, cwnd: float = 0.0) -> str:
    """Describes a change of a window; a slow start threshold of half of `cwnd`, the window before, is pointed out.

    >>> change(45.2, 12.0, 24.0), change(2.0, 2.0, 1.0)
    ('went from 45.2 to 12', 'stayed 2')
    >>> change(45.18483, 45.179296, 90.358592)
    'was set to 45.2 (half of cwnd 90.4)'
    """
    one, other = window(before), window(after)
    if one != other:
        return f"went from {one} to {other}"
    is_half = abs(after - cwnd / 2) < 1e-6
    if before == after and not is_half:
        return f"stayed {one}"
    return f"was set to {other}" + (f" (half of cwnd {window(cwnd)})" if is_half else "")


def capital(text: str) -> str:
    """Returns the text with its first letter capitalised."""
    return text[:1].upper() + text[1:]


#: The reason for a fast retransmission in the table of segments.
_FAST = "third duplicate ACK"
#: Group number of the sentences about lost ACKs, which come after all groups of segments.
_OF_ACKS = 1 << 32


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A sentence, and the events on which it is based.

    Attributes:
        time: Time described by the sentence.
        is_needed: True to keep the sentence if there is only room for some sentences.
        group: Number of a series of losses, whose sentences are kept together.
        place: Position in the group: 0 for the first loss, to which the other sentences refer, 1 for its cause.
    """

    text: str
    time: float
    events: tuple[Rows, ...]
    is_needed: bool = False
    group: int | None = None
    place: int = 0

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The events: `kind` is the name of the table, and the rest are the columns of the row."""
        return [row for rows in self.events for row in rows.to_list()]


def sentences_on(history: History, episode: Episode, outcomes: Outcomes) -> list[Sentence]:
    """Returns the sentences about an episode."""
    return [*_on_nothing_delivered(history), *_Story(history, episode, outcomes).tell()]


def sentences_without_episode(history: History, at: float, end: float) -> list[Sentence]:
    """Returns the sentences about a time without an episode, and the nearest losses in a run that ends at `end`."""
    flow, times = shown(history.flow), history.time[history.sent]
    before, after = history.sent[times <= at], history.sent[times > at]
    if len(before):
        text = f"{flow} had no losses at {instant(at)}: all sent data had arrived or was in flight."
    else:
        first = f" The first segment of the flow is sent at {instant(history.time[after[0]])}." if len(after) else ""
        text = f"{flow} had sent nothing by {instant(at)}.{first}"
    own = history.rows(before[-1:] if len(before) else after[:1])
    return [
        *_on_nothing_delivered(history),
        Sentence(text=text, time=at, events=(own,), is_needed=True),
        _nearest(history, "before", [one for one in history.episodes if one.end < at][-1:], at, end),
        _nearest(history, "after", [one for one in history.episodes if one.start > at][:1], at, end),
    ]


def _on_nothing_delivered(history: History) -> Iterator[Sentence]:
    if history.delivered_nothing:
        sent = counted(len(history.sent), "segment")
        text = f"{shown(history.flow)} delivered nothing in the whole run: of {sent} sent, 0 arrived."
        time = float(history.time[history.sent[0]])
        yield Sentence(text=text, time=time, events=(history.rows(history.sent),), is_needed=True)


def _nearest(history: History, which: str, nearest: Sequence[Episode], at: float, end: float) -> Sentence:
    """Returns a sentence about the nearest loss before or after a time."""
    if not nearest:
        until = "since the start of the run" if which == "before" else f"until the end of the run at {instant(end)}"
        text = f"No segment of the flow was lost or retransmitted {which} that, {until}."
        return Sentence(text=text, time=at, events=(), is_needed=True)
    [episode] = nearest
    until = f"; it had recovered by {instant(episode.end)}" if episode.end < NEVER else ""
    text, places = f"{instant(episode.start)}{until}.", history.within(history.retransmitted, episode)
    lost, acks = history.within(history.lost, episode), history.within(history.lost_acks, episode)
    if len(lost) or len(acks):
        places, what = (lost, "segment") if len(lost) else (acks, "ACK")
        text = f"The nearest loss of the flow {which} that time: {counted(len(places), what)}, sent from {instant(episode.start)} on{until}."
    else:
        text = f"The nearest retransmission of the flow {which} that time: {text}"
    return Sentence(text=text, time=episode.start, events=(history.rows(places),), is_needed=True)


class _Story:
    """The sentences about one episode."""

    def __init__(self, history: History, episode: Episode, outcomes: Outcomes) -> None:
        self.history = history
        self.episode = episode
        self.outcomes = outcomes
        self.flow = shown(history.flow)
        self.lost = history.within(history.lost, episode)
        self.lost_acks = history.within(history.lost_acks, episode)
        self.retransmitted = history.within(history.retransmitted, episode)
        self.notices = self._notices()

    def tell(self) -> Iterator[Sentence]:
        yield self._headline()
        sentences = [*self._losses(), *self._ack_losses(), *self._overtaken(), *self._reactions()]
        begin = {one.group: one.time for one in sentences if one.group is not None and one.place == 0}
        yield from sorted(
            sentences, key=lambda one: (begin[one.group], one.place) if one.group in begin else (one.time, 0)
        )
        yield from self._costs()

    def _bytes(self, places: Any) -> str:
        return f"bytes {self.history.first[places]:,.0f} to {self.history.last[places] - 1:,.0f}"

    def _volume(self, places: Any) -> str:
        return f"{counted(len(places), 'segment')} ({counted(int(self.history.length[places].sum()), 'byte')})"

    def _on_episode(self, text: str, *rows: Rows) -> Sentence:
        return Sentence(text=text, time=self.episode.end, events=rows, is_needed=True)

    def _headline(self) -> Sentence:
        history, episode = self.history, self.episode
        again = f" and retransmitted {counted(len(self.retransmitted), 'segment')}" if len(self.retransmitted) else ""
        if len(self.lost):
            what = f"lost {self._volume(self.lost)}{again}"
        elif len(self.lost_acks):
            what = f"lost {counted(len(self.lost_acks), 'ACK')}{again or ', and no data'}"
        else:
            what = f"lost nothing, but retransmitted {counted(len(self.retransmitted), 'segment')}"
        end = (
            f"; it had recovered by {instant(episode.end)}, {span(episode.end - episode.start)} later"
            if episode.end < NEVER
            else "; some data was not acknowledged before the end of the run"
            if history.has_tcp
            else "; it had not recovered before the end of the run"
        )
        text = f"From {instant(episode.start)} on {self.flow} {what}{end}."
        rows = history.rows(next((one for one in (self.lost, self.retransmitted) if len(one)), self.lost_acks))
        return Sentence(text=text, time=episode.start, events=(rows,), is_needed=True)

    # Losses.

    def _outcome(self, place: int) -> int | None:
        """Returns the index of the event at which a frame was lost; None if that event was not recorded."""
        return self.outcomes.by_frame.get(self.history.frame_of(place))

    def _when(self, place: int) -> float:
        """Returns the time of a loss, or the time of sending if the loss was not recorded."""
        outcome = self._outcome(place)
        return float(self.history.time[place] if outcome is None else self.outcomes.time[outcome])

    def _losses(self) -> Iterator[Sentence]:
        """Yields the sentences about each series of losses. A series ends when the sender notices a loss."""
        groups: dict[int, list[int]] = {}
        for place in self.lost:
            passed = sum(time <= self.history.time[place] for time, _, _ in self.notices)
            groups.setdefault(passed, []).append(int(place))
        for group, places in enumerate(groups.values()):
            yield from (replace(one, group=group) for one in self._group(places))

    def _group(self, places: list[int]) -> Iterator[Sentence]:
        """Yields the first loss and its cause, then the number of other losses."""
        history = self.history
        first = min(places, key=self._when)
        outcome, when = self._outcome(first), self._when(first)
        segment, number = f"{self._bytes(first)} of {self.flow}", f"frame {history.frame[first]:.0f}"
        sent = "sent again" if history.event[first] == "retransmitted" else "sent"
        what = f"{number} ({segment}, {sent} {span(when - history.time[first])} before)"
        unknown = f"{capital(segment)} in {number}, left at {instant(when)} and never arrived."
        yield from self._first(first, what, unknown, history.rows([first]))
        if rest := [place for place in places if place != first]:
            yield self._rest(rest)
        if outcome is not None:
            yield from self._others(places)

    def _first(self, place: int, what: str, unknown: str, own: Rows, *, has_rule: bool = True) -> Iterator[Sentence]:
        """Yields a detailed loss and the rule that caused it.

        If the loss was not recorded, yields the sentence `unknown`.
        """
        outcome, when = self._outcome(place), self._when(place)
        if outcome is None:
            yield Sentence(text=unknown, time=when, events=(own,))
            return
        row, event = self.outcomes.row(outcome), self.outcomes.rows([outcome])
        yield Sentence(text=loss(row, what), time=when, events=(event, own))
        if has_rule and (refusal := self.outcomes.refusal(outcome)) is not None:
            [at_memory] = refusal.to_list()
            yield Sentence(text=pool(at_memory), time=when, events=(refusal,), place=1)
        elif has_rule and (cause := rule(row)) is not None:
            yield Sentence(text=cause, time=when, events=(event,), place=1)

    def _rest(self, places: list[int]) -> Sentence:
        """Returns a sentence about the remaining losses of a series."""
        time = max(map(self._when, places))
        outcomes = [self._outcome(place) for place in places]
        known = [outcome for outcome in outcomes if outcome is not None]
        ways = Counter("never arrived" if outcome is None else self._way(outcome) for outcome in outcomes)
        more = counted(len(places), "more segment")
        if len(ways) > 1:
            listed = ", ".join(f"{count:,} {way}" for way, count in ways.items())
            text = f"By {instant(time)} {more} had been lost: {listed}."
        elif known:
            text = f"By {instant(time)} {more} had been {next(iter(ways))}."
        else:
            text = f"{more} sent until {instant(time)} never arrived."
        rows = (self.outcomes.rows(known),) if known else ()
        return Sentence(text=text, time=time, events=(*rows, self.history.rows(places)), place=2)

    def _way(self, outcome: int) -> str:
        port = self.outcomes.port[outcome]
        return _phrases("done")[self.outcomes.event[outcome]] + (f" at {shown(port)}" if port is not None else "")

    def _others(self, places: list[int]) -> Iterator[Sentence]:
        """Yields the number of frames, of all VCs, that were lost in the same way at the port during that time."""
        outcome = self._outcome(places[0])
        if outcome is None or self.outcomes.port[outcome] is None:
            return
        times = [self._when(place) for place in places if self._outcome(place) is not None]
        event = self.outcomes.event[outcome]
        same = self.outcomes.others(self.outcomes.port[outcome], event, min(times), max(times))
        if set(self.outcomes.vc[same]) == {self.outcomes.vc[outcome]}:
            return
        # VCs that merge at the port count as one VC.
        vcs = len(set(self.outcomes.port_vc[same]))
        of = counted(vcs, "VC") if vcs > 1 else f"its VC there, {shown(self.outcomes.port_vc[outcome])}"
        text = f"In all, {counted(len(same), 'frame')} of {of} were {_phrases('done')[event]} there in that time."
        yield Sentence(text=text, time=max(times), events=(self.outcomes.rows(same),), place=3)

    def _ack_losses(self) -> Iterator[Sentence]:
        """Yields the first lost ACK in detail, and the number of other lost ACKs."""
        if not len(self.lost_acks):
            return
        first, times = int(self.lost_acks[0]), self.history.time[self.lost_acks]
        what = f"the ACK of {self.flow} for all bytes up to {self.history.ack[first]:,.0f}"
        unknown = f"{capital(what)}, sent at {instant(self._when(first))}, was lost."
        own = self.history.rows(self.lost_acks)
        sentences = [*self._first(first, what, unknown, own, has_rule=not len(self.lost))]
        if len(self.lost_acks) > 1:
            text = f"So were {counted(len(self.lost_acks) - 1, 'more ACK')}, sent until {instant(times[-1])}."
            sentences.append(Sentence(text=text, time=times[-1], events=(own,), place=2))
        yield from (replace(one, group=_OF_ACKS) for one in sentences)

    def _overtaken(self) -> Iterator[Sentence]:
        """Yields the first retransmitted segment that had not been lost, but arrived after later ones."""
        history, arrived = self.history, self.history.arrived
        frames = history.frame[arrived]
        late = arrived[frames < np.maximum.accumulate(frames)]
        late = late[np.isin(history.first[late], history.first[self.retransmitted])]
        if len(late):
            frame, place = history.frame[late[0]], int(late[0])
            [sent] = history.sent[history.frame[history.sent] == frame]
            later = arrived[frames > frame][0]
            when = float(history.time[place])
            text = f"{capital(self._bytes(place))} were late: sent at {instant(history.time[sent])}, they arrived at "
            text += f"{instant(when)}, {span(when - history.time[later])} after the first later segment."
            yield Sentence(text=text, time=when, events=(history.rows([sent, later, place]),))

    # Reactions of the sender.

    def _notices(self) -> list[tuple[float, str, int]]:
        """Returns when the sender noticed losses: the time, the reason, and the index of the timer or the segment."""
        history, episode = self.history, self.episode
        expired = np.flatnonzero((history.expired >= episode.start) & (history.expired <= episode.end))
        notices = [(float(history.expired[place]), "timeout", int(place)) for place in expired]
        # After go-back-N, a sender retransmits many segments for the same reason. Only for the first does a duplicate
        # ACK request the retransmission.
        requests = {(history.time[place], history.ack[place]) for place in history.duplicates}
        fast = self.retransmitted[history.reason[self.retransmitted] == _FAST]
        notices += [
            (float(history.time[place]), _FAST, int(place))
            for place in fast
            if (history.time[place], history.first[place]) in requests
        ]
        return sorted(notices)

    def _reactions(self) -> Iterator[Sentence]:
        times = self.history.time[self.retransmitted]
        limits = [self.episode.start, *(time for time, _, _ in self.notices), NEVER]
        lost_at = self._when(self.lost[0]) if len(self.lost) else None
        for number, (time, what, place) in enumerate(self.notices):
            if what == "timeout":
                yield from self._ignored_duplicates(limits[number], time)
            yield self._notice(time, what, place, lost_at if number == 0 else None)
            sent = self.retransmitted[(times >= time) & (times < limits[number + 2])]
            # The sentence about the sender's notice already includes the first segment.
            if len(sent) > 1 or (len(sent) and self.history.time[sent[0]] > time):
                yield self._retransmissions(sent)
        early = self.retransmitted[times < limits[1]]
        if len(early):
            yield self._retransmissions(early)

    def _ignored_duplicates(self, start: float, end: float) -> Iterator[Sentence]:
        """Yields the number of duplicate ACKs before a timeout, unless they caused retransmissions."""
        history = self.history
        places, again = (
            places[(history.time[places] > start) & (history.time[places] < end)]
            for places in (history.duplicates, history.retransmitted)
        )
        if len(places) and not len(again):
            last = float(history.time[places[-1]])
            text = f"{counted(len(places), 'duplicate ACK')} had arrived by {instant(last)}."
            yield Sentence(text=text, time=last, events=(history.rows(places),))

    def _notice(self, time: float, what: str, place: int, lost_at: float | None) -> Sentence:
        """Returns a sentence about a timeout or a third duplicate ACK, and its effect on cwnd and ssthresh."""
        history = self.history
        if what == "timeout":
            text = f"At {instant(time)} the retransmission timer ran out"
            rows = [history.expirations([place])]
            own = self.retransmitted[history.time[self.retransmitted] == time]
        else:
            text = f"At {instant(time)} the third duplicate ACK reached the sender"
            rows = [history.rows(history.duplicates[history.time[history.duplicates] == time])]
            own = np.array([place])
        if lost_at is not None and time > lost_at:
            text += f", {span(time - lost_at)} after the first loss"
        if len(own):
            text += f": it retransmitted {self._bytes(own[0])}"
        known = np.flatnonzero(~np.isnan(history.cwnd) & (history.time <= time))
        earlier, later = (known[history.time[known] < time], known[history.time[known] == time])
        if len(earlier) and len(later):
            one, other = earlier[-1], later[-1]
            text += f"; cwnd {change(history.cwnd[one], history.cwnd[other])} segments"
            text += f", ssthresh {change(history.ssthresh[one], history.ssthresh[other], history.cwnd[one])}"
            rows.append(history.rows([one, other]))
        if len(own):
            rows.append(history.rows(own[:1]))
        text += "."
        if what == "timeout" and (places := self._doubling(time)) is not None:
            rto, since = span(history.rto[places[0]]), instant(history.time[places[0]])
            text += f" The timeout had doubled to {rto} at {since}, and no round trip had been measured since."
            rows.append(history.rows(places))
        return Sentence(text=text, time=time, events=tuple(rows), is_needed=True)

    def _doubling(self, time: float) -> list[int] | None:
        """Returns the first and last row of the doublings of the RTO up to the expiry before `time`.

        None if the RTO has changed since.

        A round-trip measurement ends the doubling. Retransmitted data is not measured (Karn's algorithm).
        """
        history = self.history
        expired = history.expired[history.expired < time]
        known = np.flatnonzero(~np.isnan(history.rto) & (history.time < time))
        if not len(expired):
            return None
        before, since = known[history.time[known] < expired[-1]], known[history.time[known] >= expired[-1]]
        if not len(before) or not len(since):
            return None
        rto = history.rto[since]
        is_kept = bool((rto == rto[0]).all()) and bool(np.isclose(rto[0], 2 * history.rto[before[-1]]))
        return [int(since[0]), int(since[-1])] if is_kept else None

    def _retransmissions(self, places: Any) -> Sentence:
        """Returns a sentence about retransmissions and their reasons."""
        history = self.history
        reasons = Counter(history.reason[places]).most_common()
        listed = ", ".join(f"{count:,} {_phrases('because')[reason]}" for reason, count in reasons)
        why = f" {_phrases('because')[reasons[0][0]]}" if len(reasons) == 1 else f": {listed}"
        lost = len(np.intersect1d(places, self.lost))
        again = f", and {lost:,} of them {'was' if lost == 1 else 'were'} lost again" if lost else ""
        last = float(history.time[places[-1]])
        text = f"By {instant(last)} the sender had retransmitted {self._volume(places)}{why}{again}."
        return Sentence(text=text, time=last, events=(history.rows(places),))

    # Costs.

    def _costs(self) -> Iterator[Sentence]:
        history = self.history
        if not history.has_tcp:
            text = f"{self.flow} has no TCP: lost data is not retransmitted."
            yield self._on_episode(text, history.rows(self.lost))
            return
        if len(self.lost):
            yield self._repair()
        if len(self.retransmitted):
            yield from self._silence()
            yield self._needless()
        elif not len(self.lost):
            later = history.acknowledged[history.time[history.acknowledged] >= self.episode.end]
            end = int(later[0]) if len(later) else int(self.lost_acks[-1])
            text = f"Nothing was retransmitted: a later ACK, at {instant(history.time[end])}, covered the same data."
            yield self._on_episode(text, history.rows([end]))

    def _repair(self) -> Sentence:
        """Returns a sentence about the time until all lost data was acknowledged."""
        history = self.history
        ack = history.acknowledging(history.last[self.lost].max())
        if ack is None:
            text = "Some lost data was not acknowledged before the end of the run."
            return self._on_episode(text, history.rows(self.lost))
        first, time = self._when(self.lost[0]), float(history.time[ack])
        text = f"By {instant(time)} all lost bytes were acknowledged, {span(time - first)} after the first loss."
        return Sentence(text=text, time=time, events=(history.rows([self.lost[0], ack]),), is_needed=True)

    def _silence(self) -> Iterator[Sentence]:
        """Yields a sentence about the longest time in which nothing was sent."""
        history = self.history
        sent = history.within(history.sent, self.episode)
        if len(sent) < 2:
            return
        gaps = np.diff(history.time[sent])
        first, last = sent[gaps.argmax()], sent[gaps.argmax() + 1]
        times = f"from {instant(history.time[first])} to {instant(history.time[last])}"
        text = f"The longest time without sending was {span(gaps.max())}, {times}."
        yield self._on_episode(text, history.rows([first, last]))

    def _needless(self) -> Sentence:
        """Returns a sentence about retransmissions of data that the receiver already had."""
        history = self.history
        repeated = history.arrived[history.reason[history.arrived] == "repeated"]
        needless = repeated[np.isin(history.frame[repeated], history.frame[self.retransmitted])]
        if not len(needless):
            return self._on_episode("Nothing was retransmitted needlessly.", history.rows(self.retransmitted))
        was, them = ("was", "it") if len(needless) == 1 else ("were", "them")
        text = f"{self._volume(needless)} {was} retransmitted needlessly: the receiver already had {them}."
        return self._on_episode(text, history.rows(needless))
