//! Controlled delay (CoDel): drops frames at the head of the queue, at times that get closer while frames wait longer
//! than a target.
//!
//! Source: RFC 8289, sections 4 and 5; the names of its pseudocode are used. Differences from the source
//! (`docs/design/queue-management-by-time.md`): the frame takes the place of the packet. It is dequeued when the first
//! of its cells reaches the head, and its other cells do not count as queued. ECN-capable frames are marked, as in RFC
//! 8290, section 5.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        reason = "scenario checks keep times below 2^62 units, and periods are at least one unit"
    )
)]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::formula::PortInfo;
use super::{AtHead, BufferPolicy, Configure, Decision, Head, HeadPolicy, View};
use crate::coverage::reached;
use crate::error::Fault;
use crate::index::Label;
use crate::rng::Stream;
use crate::units::{Bytes, Clock, Duration, Span, Time};

/// Controlled delay: after frames have waited `target` or longer for an `interval`, frames are dropped at the head of the
/// queue. The times between drops shrink until a frame waits less.
///
/// Source: RFC 8289.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "CoDel")]
pub struct Config {
    /// TARGET: acceptable waiting time of a frame.
    pub target: Duration,
    /// INTERVAL: time for which frames must wait longer before the first drop; about the longest round-trip time.
    pub interval: Duration,
    /// MAXPACKET: no frame is dropped if at most this number of bytes wait behind it; the MTU of the link.
    pub maxpacket: Bytes,
    /// True to mark ECN-capable frames instead of dropping them.
    pub ecn: bool,
}

impl Default for Config {
    /// Returns the values of RFC 8289, sections 4.3 and 4.4, and the MTU of Ethernet.
    fn default() -> Self {
        Self {
            target: Duration::from_milliseconds(5),
            interval: Duration::from_milliseconds(100),
            maxpacket: Bytes { bytes: 1500 },
            ecn: true,
        }
    }
}

impl Configure for Config {
    type Policy = CoDel;

    fn check(&self, _capacity: Option<u32>, _vcs: &[&str]) -> Vec<Fault> {
        let Self { target, interval, .. } = self;
        if target.picoseconds == 0 {
            return vec![Fault::new("target", format!("\"{target}\""), "must be a time above 0")];
        }
        if target > interval {
            let problem = format!("is above interval, which is {interval}; the target is usually 5 to 10 % of it");
            return vec![Fault::new("target", format!("\"{target}\""), problem)];
        }
        Vec::new()
    }

    fn build(&self, _capacity: u32, _vcs: &[&str]) -> CoDel {
        CoDel { config: self.clone(), ..CoDel::default() }
    }
}

/// The policy and its state, in units of the run's clock.
#[derive(Debug, Default)]
pub struct CoDel {
    config: Config,
    clock: Option<Clock>,
    target: Span,
    interval: Span,
    /// MAXPACKET in cells.
    maxpacket: u32,
    /// Time from which frames may be dropped; `None` while frames wait less than the target.
    first_above_time: Option<Time>,
    drop_next: Time,
    /// Number of drops since the policy entered the dropping state.
    count: u32,
    lastcount: u32,
    dropping: bool,
    /// The drop after which the next frame continues the same dequeue operation of the pseudocode.
    after: After,
}

/// The last step of a dequeue operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum After {
    /// The dequeue operation has returned a frame.
    #[default]
    Return,
    /// The first drop: the next frame is sent.
    FirstDrop,
    /// A drop in the dropping state.
    Drop,
}

impl CoDel {
    /// Returns whether a frame may be dropped (`dodequeue` and `ok_to_drop` of the pseudocode).
    fn may_drop(&mut self, head: &Head) -> bool {
        if head.waited < self.target || head.behind <= self.maxpacket {
            self.first_above_time = None;
            return false;
        }
        match self.first_above_time {
            None => {
                self.first_above_time = Some(head.now + self.interval);
                false
            }
            Some(time) => head.now >= time,
        }
    }

    /// Returns the time of the next drop: `t + INTERVAL / sqrt(count)`, rounded down.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the quotient is at most the interval")]
    fn control_law(&self, t: Time) -> Time {
        t + Span((self.interval.0 as f64 / f64::from(self.count).sqrt()) as u64)
    }

    /// Drops a frame, or marks it. The next frame continues the dequeue operation only after a drop.
    fn act(&mut self, head: &Head, after: After) -> AtHead {
        if head.capable && self.config.ecn {
            reached!(CoDelMarks);
            return AtHead::Mark;
        }
        self.after = after;
        AtHead::Drop
    }
}

impl BufferPolicy for CoDel {
    #[expect(clippy::cast_possible_truncation, reason = "casting a larger value gives the largest value of the type")]
    #[expect(clippy::cast_sign_loss, reason = "the value is not negative")]
    fn at_port(&mut self, port_info: &PortInfo<'_>) {
        let clock = port_info.clock;
        self.clock = Some(clock);
        (self.target, self.interval) = (clock.span(self.config.target), clock.span(self.config.interval));
        self.maxpacket = (self.config.maxpacket.bytes as f64 * 8.0 / clock.cell_bits as f64) as u32;
    }

    fn admit_frame(&mut self, _buffer: &View<'_>, _vc: Label, _rng: &mut Stream) -> bool {
        true
    }

    fn reads_counts(&self) -> bool {
        false
    }

    fn head_policy(&mut self) -> Option<&mut dyn HeadPolicy> {
        Some(self)
    }
}

impl HeadPolicy for CoDel {
    fn on_head(&mut self, head: &Head, _rng: &mut Stream) -> AtHead {
        let may_drop = self.may_drop(head);
        let before = std::mem::take(&mut self.after);
        match before {
            After::FirstDrop => return AtHead::Send,
            After::Drop if may_drop => self.drop_next = self.control_law(self.drop_next),
            After::Drop | After::Return => {}
        }
        if self.dropping {
            self.dropping = may_drop;
            if !may_drop || head.now < self.drop_next {
                return AtHead::Send;
            }
            self.count = self.count.saturating_add(1);
            let fate = self.act(head, After::Drop);
            reached!(CoDelDropsAgain if before == After::Drop && fate == AtHead::Drop);
            if fate == AtHead::Mark {
                self.drop_next = self.control_law(self.drop_next);
            }
            return fate;
        }
        if !may_drop {
            return AtHead::Send;
        }
        self.dropping = true;
        // Resume at the last rate of drops if it was in use recently.
        let delta = self.count.saturating_sub(self.lastcount);
        let is_recent = head.now < self.drop_next + self.interval * 16;
        reached!(CoDelResumes if delta > 1 && is_recent);
        self.count = if delta > 1 && is_recent { delta } else { 1 };
        self.drop_next = self.control_law(head.now);
        self.lastcount = self.count;
        self.act(head, After::FirstDrop)
    }

    fn explain_head(&self, head: &Head) -> Decision {
        let seconds = |span: Span| self.clock.map(|clock| clock.seconds(Time(span.0)));
        Decision {
            rule: "frames have waited at least the target for an interval, and the next drop is due",
            waited: seconds(head.waited),
            target: seconds(self.target),
            ..Decision::default()
        }
    }
}

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(_capacity: u32) -> Config {
    Config::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::bench::stream;

    /// A policy with a clock of microseconds.
    fn codel(config: &Config) -> CoDel {
        let mut codel = config.build(1000, &[]);
        codel.at_port(&PortInfo { clock: Clock::exact(1_000_000), ..PortInfo::unknown() });
        codel
    }

    /// Offers a frame that has waited 20 ms, with 1,000 cells behind it.
    fn at(codel: &mut CoDel, now: u64) -> AtHead {
        frame(codel, now, 20_000, 1000)
    }

    fn frame(codel: &mut CoDel, now: u64, waited: u64, behind: u32) -> AtHead {
        codel.on_head(
            &Head { now: Time(now), vc: Label::new(0), waited: Span(waited), behind, capable: false },
            &mut stream(),
        )
    }

    #[test]
    fn under_overload_the_nth_codel_drop_follows_after_the_interval_over_root_n() {
        let mut codel = codel(&Config::default());
        // A frame per 10 us; the queue stays long.
        let drops: Vec<u64> = (0..200_000).map(|i| i * 10).filter(|&now| at(&mut codel, now) == AtHead::Drop).collect();
        let mut next = 100_000.0;
        assert_eq!(drops[0], 100_000);
        for (n, &drop) in drops.iter().enumerate().skip(1) {
            next += 100_000.0 / (n as f64).sqrt();
            // Each step is rounded down to the clock, and a drop waits for the next frame.
            let late = drop as f64 - next;
            assert!((-(n as f64)..=11.0).contains(&late), "drop {n} at {drop}, expected at {next}");
        }
        assert!(drops.len() > 90, "{}", drops.len());
    }

    #[test]
    fn codel_drops_no_frame_below_the_target_delay_or_with_at_most_maxpacket_queued_behind() {
        // 1,500 bytes are 28 cells.
        for (waited, behind, drops) in [(5000, 29, true), (4999, 29, false), (5000, 28, false)] {
            let mut codel = codel(&Config::default());
            let fates = (0..=300).map(|i| frame(&mut codel, i * 1000, waited, behind));
            assert_eq!(fates.filter(|&fate| fate == AtHead::Drop).count() > 0, drops, "{waited} us, {behind} cells");
        }
    }

    #[test]
    fn codel_sends_the_frame_after_the_first_drop_and_can_make_several_drops_at_once() {
        let mut codel = codel(&Config::default());
        at(&mut codel, 0);
        let first: Vec<_> = (0..2).map(|_| at(&mut codel, 100_000)).collect();
        assert_eq!(first, [AtHead::Drop, AtHead::Send]);
        // Due at 200 ms, and 1 / sqrt(2), sqrt(3) and so on of an interval later.
        let later: Vec<_> = (0..4).map(|_| at(&mut codel, 350_000)).collect();
        assert_eq!(later, [AtHead::Drop, AtHead::Drop, AtHead::Drop, AtHead::Send]);
    }

    #[test]
    fn codel_marks_an_ecn_capable_frame_instead_of_dropping_the_frame_unless_ecn_is_off() {
        for (ecn, expected) in [(true, AtHead::Mark), (false, AtHead::Drop)] {
            let mut codel = codel(&Config { ecn, ..Config::default() });
            let mut offer = |now| {
                let head =
                    Head { now: Time(now), vc: Label::new(0), waited: Span(20_000), behind: 1000, capable: true };
                codel.on_head(&head, &mut stream())
            };
            offer(0);
            assert_eq!(offer(100_000), expected);
        }
    }

    #[test]
    fn a_codel_target_of_zero_or_above_the_interval_is_refused() {
        for (target, interval, faults) in [(5, 100, 0), (100, 100, 0), (101, 100, 1), (0, 100, 1)] {
            let [target, interval] = [target, interval].map(Duration::from_milliseconds);
            assert_eq!(Config { target, interval, ..Config::default() }.check(None, &[]).len(), faults);
        }
    }
}
