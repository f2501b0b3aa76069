//! What lies behind a port: where its cells go, and what that brings forward on the event list.

use super::contended_port::ContendedPort;
use super::fabric::{Fabric, Onward};
use super::queue_port::QueuePort;
use super::stream::Streams;
use super::stream_port::StreamPort;
use super::tournament_tree::{Key, Rank, TournamentTree};
use super::train::Train;
use crate::cell::{Cell, Run};
use crate::index::LinkIndex;
use crate::units::{Span, Time};

/// Where the cells of a port go: to hosts, into shaped ports, and to the contended ports that come next.
pub(super) struct Onwards<'e> {
    pub(super) link: LinkIndex,
    pub(super) fabric: Fabric<'e>,
    pub(super) streams: &'e mut Streams,
    /// The contended ports before this one, if it is one, and behind it: no VC comes twice to the same port.
    pub(super) before: &'e mut [ContendedPort],
    pub(super) behind: &'e mut [ContendedPort],
}

impl Onwards<'_> {
    /// Cells leave: the first starts at `first_start`, the others a `period` apart.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a train at two places; the call costs 4 % of a plain run")]
    pub(super) fn go(&mut self, run: Run, first_start: Time, period: Span) {
        if let Some(onward) = self.fabric.go(self.link, run, first_start, period) {
            let port = another(self.before, self.behind, onward.contended_port as usize);
            join(port, onward, self.streams, &mut self.fabric);
        }
    }

    /// The same where it is seldom.
    #[inline(never)]
    pub(super) fn go_seldom(&mut self, run: Run, first_start: Time, period: Span) {
        self.go(run, first_start, period);
    }

    /// A cell leaves that arrives at a stream port at `time`, before the end of the run.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell; the call costs 3 % of a mesh")]
    pub(super) fn push(&mut self, stream: u32, time: Time, cell: Cell) {
        if let Some((port, arrival)) = self.streams.push(stream, time, cell) {
            self.bring_forward(port, arrival);
        }
    }

    /// A cell arrives at a port that may matter elsewhere before all that were known there.
    #[inline(never)]
    fn bring_forward(&mut self, contended_port: u32, arrival: Time) {
        let number = contended_port as usize;
        let effect = another(self.before, self.behind, number).effect_of(arrival);
        settle_by(self.fabric.event_list, number, effect);
    }

    /// The same at a port that takes cells at once.
    #[inline(never)]
    pub(super) fn hand_over(&mut self, contended_port: u32, time: Time, cell: Cell) {
        let ContendedPort::Stream(port) = another(self.before, self.behind, contended_port as usize) else {
            unreachable!("cells are taken at once where they are first in, first out");
        };
        port.take_at_once(time, cell, &mut self.fabric);
    }
}

/// Cells are on their way to a contended port.
#[inline(always)]
#[expect(clippy::inline_always, reason = "once a train at two places")]
pub(super) fn join(port: &mut ContendedPort, onward: Onward, streams: &mut Streams, fabric: &mut Fabric<'_>) {
    let effect = match port {
        ContendedPort::Trains(port) => port.join(onward.input as usize, onward.train),
        ContendedPort::Stream(port) => join_stream(port, onward, streams, fabric),
        ContendedPort::Queues(port) => join_queues(port, onward, streams),
    };
    if let Some(effect) = effect {
        settle_by(fabric.event_list, onward.contended_port as usize, effect);
    }
}

#[inline(never)]
fn join_stream(
    port: &mut StreamPort,
    Onward { input, train, .. }: Onward,
    streams: &mut Streams,
    fabric: &mut Fabric<'_>,
) -> Option<Time> {
    let stream = port.inbox.stream(input as usize);
    if !streams.get(stream).is_taken_at_once {
        return join_train(stream, train, streams).map(|arrival| port.effect_of(arrival));
    }
    let mut time = train.next;
    for cell in train.run().iter() {
        port.take_at_once(time, cell, fabric);
        time += train.period;
    }
    None
}

#[inline(never)]
fn join_queues(port: &QueuePort, Onward { input, train, .. }: Onward, streams: &mut Streams) -> Option<Time> {
    join_train(port.inbox.stream(input as usize), train, streams).map(|arrival| port.effect_of(arrival))
}

fn join_train(stream: usize, train: Train, streams: &mut Streams) -> Option<Time> {
    let stream = u32::try_from(stream).expect("streams have numbers of 32 bits");
    streams.join(stream, train).map(|(_, arrival)| arrival)
}

/// The contended port of this number, which is another than the one between these.
#[inline]
fn another<'a>(
    before: &'a mut [ContendedPort],
    behind: &'a mut [ContendedPort],
    number: usize,
) -> &'a mut ContendedPort {
    let first_behind = before.len() + 1;
    if number < before.len() { &mut before[number] } else { &mut behind[number - first_behind] }
}

/// A port settles everything before `time` at that time at the latest.
#[inline]
pub(super) fn settle_by(event_list: &mut TournamentTree, contended_port: usize, time: Time) {
    let key = Key::new(time, Rank::Settle, contended_port);
    if key < event_list.key(contended_port) {
        event_list.set(contended_port, key);
    }
}
