//! The links of a network whose rate or delay changes.

use typed_index_collections::TiVec;

use super::{Link, Network, Routing};
use crate::aal5::Framing;
use crate::index::LinkIndex;
use crate::link_changes::{ChangingDelay, DelayChange, Jitter, LinkChanges, RateChange, Transmitter};
use crate::rng::Stream;
use crate::units::{BitRate, Clock, Duration};

impl Link {
    /// Returns the changes of the link during the run.
    pub fn changes(&self) -> &LinkChanges {
        self.changes.as_deref().unwrap_or(&LinkChanges::NONE)
    }

    /// Returns whether a packet may overtake another packet on the link.
    pub(crate) fn reorders(&self) -> bool {
        !self.late.is_empty() || self.changes().reordering.is_some()
    }

    /// Returns whether the link has a delay line at its end.
    pub(crate) fn has_delay_line(&self) -> bool {
        !self.late.is_empty() || self.changes().change_delays()
    }

    fn draws(&self, seed: u64, of: &str) -> Stream {
        Stream::new(seed, &format!("link/{}/{of}", self.name))
    }
}

impl Network {
    /// Returns whether the rate of a link changes.
    pub(crate) fn changes_rate(&self, link: LinkIndex) -> bool {
        self.links[link].changes().rate.is_some()
    }

    /// Returns the mean rate of a link between two times in seconds since the start of the run, in bits per second.
    pub fn mean_rate(&self, link: LinkIndex, [from, to]: [f64; 2]) -> f64 {
        let seconds = to - from;
        let own = self.links[link].rate.bits_per_second as f64;
        match &self.links[link].changes().rate {
            None => own,
            Some(_) if seconds <= 0.0 => own,
            Some(RateChange::Trace(trace)) => trace.bits_between(from, to) / seconds,
            Some(RateChange::Steps(_) | RateChange::Walk(_)) => {
                let steps = self.rate_steps(&self.links[link]);
                let ends = steps.iter().skip(1).map(|&(at, _)| at.seconds()).chain([f64::INFINITY]);
                let bits = |(&(at, rate), end): (&(Duration, u64), f64)| {
                    rate as f64 * (end.min(to) - at.seconds().max(from)).max(0.0)
                };
                steps.iter().zip(ends).map(bits).sum::<f64>() / seconds
            }
        }
    }

    /// Creates the transmitter of each link's port; `None` if the rate of the link does not change. Empty if no rate
    /// changes.
    pub(crate) fn transmitters(&self, clock: Clock) -> TiVec<LinkIndex, Option<Transmitter>> {
        let links = if self.links.keys().any(|link| self.changes_rate(link)) { self.links.len() } else { 0 };
        self.links.keys().take(links).map(|link| self.transmitter(link, clock)).collect()
    }

    /// Creates the transmitter of a link's port; `None` if the rate of the link does not change.
    pub(crate) fn transmitter(&self, link: LinkIndex, clock: Clock) -> Option<Transmitter> {
        let link = &self.links[link];
        if let RateChange::Trace(trace) = link.changes().rate.as_ref()? {
            return Some(Transmitter::of_trace(trace, clock, clock.cell_time(link.rate)));
        }
        let step = |(at, bits_per_second): (Duration, u64)| {
            let cell_time = || clock.cell_time(BitRate { bits_per_second });
            (clock.time(at), (bits_per_second > 0).then(cell_time))
        };
        let keeps_packets = self.aal5.framing == Framing::Packets && !self.switching.cut_through;
        Some(Transmitter::of_rates(self.rate_steps(link).into_iter().map(step).collect(), keeps_packets))
    }

    /// Creates the additional delays at the end of a link; `None` if its delay does not change.
    pub(super) fn changing_delay(&self, routing: &Routing, index: LinkIndex, clock: Clock) -> Option<ChangingDelay> {
        let link = &self.links[index];
        if !link.changes().change_delays() {
            return None;
        }
        assert!(link.late.is_empty(), "a link has either rules for delays or a changing delay");
        let step = |(at, picoseconds): (Duration, u64)| {
            let extra = picoseconds.saturating_sub(link.delay.picoseconds);
            (clock.time(at), clock.span(Duration { picoseconds: extra }))
        };
        let steps = self.delay_steps(link).into_iter().map(step).collect();
        let jitter = |Jitter { by, distribution }| (clock.span(by), distribution, link.draws(self.seed, "jitter"));
        let jitter = link.changes().jitter.map(jitter);
        let reordering = link.changes().reordering.map(|reordering| (reordering, link.draws(self.seed, "reordering")));
        Some(ChangingDelay::new(clock.span(link.delay), steps, jitter, reordering, routing.vcs[index].len()))
    }

    /// Returns the rates of a link in bits per second, with the times from which they apply.
    fn rate_steps(&self, link: &Link) -> Vec<(Duration, u64)> {
        let mut steps = vec![(Duration::default(), link.rate.bits_per_second)];
        match &link.changes().rate {
            Some(RateChange::Steps(changes)) => {
                steps.extend(changes.iter().map(|&(at, rate)| (at, rate.bits_per_second)));
            }
            Some(RateChange::Walk(walk)) => steps = walk.steps(link.draws(self.seed, "rate"), self.duration),
            Some(RateChange::Trace(_)) | None => {}
        }
        steps
    }

    /// Returns the delays of a link in picoseconds, with the times from which they apply.
    fn delay_steps(&self, link: &Link) -> Vec<(Duration, u64)> {
        let mut steps = vec![(Duration::default(), link.delay.picoseconds)];
        match &link.changes().delay {
            Some(DelayChange::Steps(changes)) => {
                steps.extend(changes.iter().map(|&(at, delay)| (at, delay.picoseconds)));
            }
            Some(DelayChange::Walk(walk)) => steps = walk.steps(link.draws(self.seed, "delay"), self.duration),
            None => {}
        }
        steps
    }
}
