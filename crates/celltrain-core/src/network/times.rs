//! The clock of a network, and its times on that clock.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use typed_index_collections::TiVec;

use super::{Flow, Link, Network};
use crate::aal5::Framing;
use crate::host::ProcessingTimes;
use crate::index::LinkIndex;
use crate::memory::{MemoryConfig, PauseResponse, Pauses};
use crate::requests::{Arrivals, QueryTimes};
use crate::tcp::DelayedAcks;
use crate::tcp::timers::DELAYED_ACK_TICK;
use crate::units::{BitRate, Clock, Duration, Span, Time};
use crate::wire::Wire;

/// Bits of a pause frame: 64 bytes (IEEE 802.3 annex 31A), one pause quantum.
pub(crate) const PAUSE_FRAME_BITS: u64 = 512;

/// The transmission and propagation times of a link on a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTimes {
    /// Transmission time of one cell.
    pub cell_time: Span,
    /// Propagation delay.
    pub delay: Span,
}

impl LinkTimes {
    /// Returns the times of every link of a network.
    pub fn of(network: &Network, clock: Clock) -> TiVec<LinkIndex, LinkTimes> {
        let times = |link: &Link| LinkTimes { cell_time: clock.cell_time(link.rate), delay: clock.span(link.delay) };
        network.links.iter().map(times).collect()
    }
}

impl Network {
    /// Returns the time at which a flow starts, including its host's random delay.
    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: scenario checks keep times below 2^62 units")]
    pub fn start_of(&self, flow: &Flow, clock: Clock) -> Time {
        Time::default() + clock.span(flow.start) + self.host.start_delay(self.seed, &flow.name, clock)
    }

    /// Returns a clock on which every time of this network is a whole number of units, if such a clock exists. With
    /// rate control, jitter or a random walk of rates, the clock is a thousand times finer, because times are rounded to
    /// its unit.
    pub fn clock(&self) -> Clock {
        let over_tcp = || self.flows.iter().filter(|flow| flow.uses_tcp());
        let starts = self.flows.iter().map(|flow| flow.start);
        let tcps = || over_tcp().map(|flow| &flow.tcp).chain(self.requests.groups.iter().map(|group| &group.tcp));
        let times = self.links.iter().map(|link| link.delay).chain(starts).chain(tcps().flat_map(|tcp| {
            let options = tcp.options();
            let delayed_ack_tick = match options.delayed_acks {
                DelayedAcks::On => DELAYED_ACK_TICK,
                DelayedAcks::Off | DelayedAcks::Timer => Duration::default(),
            };
            [options.resolution(), delayed_ack_tick]
        }));
        let times = times.chain(self.links.iter().flat_map(|link| &link.late).map(|rule| rule.by));
        let times = times.chain(self.links.iter().flat_map(|link| link.changes().times()));
        let times = times.chain((self.host.processing_times == ProcessingTimes::Fixed).then_some(self.host.processing));
        let paces = tcps().filter_map(|tcp| tcp.options().pacing_rate);
        let intervals = self.requests.groups.iter().filter_map(|group| match group.arrivals {
            Arrivals::Incast { interval, times: QueryTimes::Fixed, .. } => Some(interval),
            _ => None,
        });
        let rates = self.links.iter().flat_map(|link| link.changes().rates().chain([link.rate])).chain(paces);
        let cell_bits = self.aal5.cell.bits();
        let (frames, responses): (Vec<_>, Vec<_>) = self.pause_frames().unzip();
        let times = times.chain(responses.into_iter().flatten());
        let clock = Clock::covering_bits(
            cell_bits,
            rates.map(|rate| (cell_bits, rate)).chain(frames).chain(self.ethernet_bytes()),
            times.chain(intervals).chain([self.duration]),
        );
        let computed = tcps().any(|tcp| tcp.options().computes_pace());
        let controlled = computed || self.vcs.iter().any(|vc| vc.abr.is_some());
        let rounds = controlled || self.links.iter().any(|link| link.changes().need_finer_clock());
        if rounds { clock.finer(UNITS_FOR_RATES) } else { clock }
    }

    /// Returns whether pauses use pause frames as in IEEE 802.3, which requires packet framing.
    pub(crate) fn has_pause_frames(&self) -> bool {
        self.aal5.framing == Framing::Packets && self.memories.iter().any(|memory| memory.pauses == Pauses::Links)
    }

    /// Returns whether any link carries Ethernet frames.
    pub(crate) fn has_ethernet(&self) -> bool {
        self.links.keys().any(|link| self.is_on_ethernet(link))
    }

    /// Returns whether a link carries Ethernet frames.
    pub(crate) fn is_on_ethernet(&self, link: LinkIndex) -> bool {
        self.links[link].wire == Wire::Ethernet
    }

    /// Returns the bits of a byte and the link's rate, for each link with Ethernet frames. Their times are multiples of
    /// a byte's time.
    fn ethernet_bytes(&self) -> impl Iterator<Item = (u64, BitRate)> {
        let ethernet = self.links.iter().filter(|link| link.wire == Wire::Ethernet);
        ethernet.map(|link| (link.wire.unit_bits(self.aal5.cell.bits()), link.rate))
    }

    /// Returns the bits of a pause frame and the link's rate, for each link that may carry pause frames, and the
    /// response time of its port unless that is a number of pause quanta.
    fn pause_frames(&self) -> impl Iterator<Item = ((u64, BitRate), Option<Duration>)> {
        let pausing = self.memories.iter().filter(|memory| self.has_pause_frames() && memory.pauses == Pauses::Links);
        let of_memory = |memory: &MemoryConfig| {
            let response = memory.pause_response;
            self.links.iter().map(move |link| {
                let time = match response.unwrap_or_else(|| PauseResponse::limit(link.rate)) {
                    PauseResponse::Time(time) => Some(time),
                    PauseResponse::Quanta(_) => None,
                };
                ((PAUSE_FRAME_BITS, link.rate), time)
            })
        };
        pausing.flat_map(of_memory)
    }

    /// Returns the end of the run on `clock`.
    #[expect(clippy::arithmetic_side_effects, reason = "the value is never negative")]
    pub fn end(&self, clock: Clock) -> Time {
        Time::default() + clock.span(self.duration)
    }

    /// Returns both ends of the measuring window on `clock`, if they lie within the run.
    #[expect(clippy::arithmetic_side_effects, reason = "the value is never negative")]
    pub fn window(&self, clock: Clock) -> [Option<Time>; 2] {
        let within = |&bound: &Duration| bound > Duration::default() && bound < self.duration;
        [self.measure.from, self.measure.to]
            .map(|bound| bound.filter(within).map(|at| Time::default() + clock.span(at)))
    }
}

/// With rate control, the clock's unit is divided by this number. The shortest interval between two cells is then some
/// hundred thousand units.
const UNITS_FOR_RATES: u64 = 1000;
