//! FQ-CoDel: a queue for each VC, served by deficit round robin with new and old queues, with `codel` at each queue.
//!
//! Source: RFC 8290, sections 3, 4 and 5. Differences from the source: each VC has its own queue, so no hash puts flows
//! into queues. The frame takes the place of the packet (`docs/design/queue-management-by-time.md`). A full port drops
//! the first half of the frames of the longest queue, at most 64, from which no cell has left; at least one. The order of
//! service is in `scheduler/deficit_round_robin.rs`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::TiVec;

use super::codel::{self, CoDel};
use super::formula::PortInfo;
use super::{AtHead, BufferPolicy, Configure, Decision, Head, HeadPolicy, Overflow, View};
use crate::error::Fault;
use crate::index::Label;
use crate::rng::Stream;
use crate::scheduler::{Service, deficit_round_robin};
use crate::units::{Bytes, Clock, Duration};

/// FQ-CoDel: each VC has its own queue with `codel`. Queues are served by deficit round robin, and a queue that becomes
/// active is served before the others. A full port drops frames of the longest queue.
///
/// Source: RFC 8290.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "FqCoDel")]
pub struct Config {
    /// TARGET: acceptable waiting time of a frame.
    pub target: Duration,
    /// INTERVAL: time for which frames must wait longer before the first drop; about the longest round-trip time.
    pub interval: Duration,
    /// MAXPACKET: no frame is dropped if at most this number of bytes wait behind it in its queue; the MTU of the link.
    pub maxpacket: Bytes,
    /// Number of bytes that a queue may send before the next queue is served.
    pub quantum: Bytes,
    /// True to mark ECN-capable frames instead of dropping them.
    pub ecn: bool,
}

impl Default for Config {
    /// Returns the values of RFC 8290, section 5.2, and the MTU of Ethernet.
    fn default() -> Self {
        let codel::Config { target, interval, maxpacket, ecn } = codel::Config::default();
        Self { target, interval, maxpacket, quantum: Bytes { bytes: 1514 }, ecn }
    }
}

impl Config {
    /// Returns the settings of each queue.
    fn codel(&self) -> codel::Config {
        let &Self { target, interval, maxpacket, ecn, .. } = self;
        codel::Config { target, interval, maxpacket, ecn }
    }
}

impl Configure for Config {
    type Policy = FqCoDel;

    fn check(&self, capacity: Option<u32>, vcs: &[&str]) -> Vec<Fault> {
        let mut faults = self.codel().check(capacity, vcs);
        if self.quantum.bytes == 0 {
            let problem = "lets no queue send; it must be above 0, and is usually the length of a long frame";
            faults.push(Fault::new("quantum", format!("\"{}B\"", self.quantum.bytes), problem));
        }
        faults
    }

    fn queues(&self, vcs: &[&str], clock: Clock) -> Option<Service> {
        let quantum = self.quantum.bytes.saturating_mul(8).max(1);
        Some(deficit_round_robin::service(vcs.len(), quantum, clock.cell_bits))
    }

    fn build(&self, capacity: u32, vcs: &[&str]) -> FqCoDel {
        FqCoDel { queues: vcs.iter().map(|_| self.codel().build(capacity, &[])).collect() }
    }
}

/// The policy: the state of `codel` at each queue.
#[derive(Debug)]
pub struct FqCoDel {
    queues: TiVec<Label, CoDel>,
}

impl BufferPolicy for FqCoDel {
    fn at_port(&mut self, port_info: &PortInfo<'_>) {
        self.queues.iter_mut().for_each(|queue| queue.at_port(port_info));
    }

    fn admit_frame(&mut self, _buffer: &View<'_>, _vc: Label, _rng: &mut Stream) -> bool {
        true
    }

    fn overflow(&self) -> Overflow {
        Overflow::PushOutLongest
    }

    fn head_policy(&mut self) -> Option<&mut dyn HeadPolicy> {
        Some(self)
    }
}

impl HeadPolicy for FqCoDel {
    fn on_head(&mut self, head: &Head, rng: &mut Stream) -> AtHead {
        self.queues[head.vc].on_head(head, rng)
    }

    fn explain_head(&self, head: &Head) -> Decision {
        let rule = "frames of its VC have waited at least the target for an interval, and the next drop is due";
        Decision { rule, ..self.queues[head.vc].explain_head(head) }
    }
}

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(_capacity: u32) -> Config {
    Config::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::tests::cell;
    use crate::policy::bench::{NAMES, stream};
    use crate::port::Port;
    use crate::units::{Span, Time};

    #[test]
    fn each_queue_of_fq_codel_has_its_own_state() {
        let mut policy = Config::default().build(1000, &NAMES);
        policy.at_port(&PortInfo { clock: Clock::exact(1_000_000), ..PortInfo::unknown() });
        let mut drops = |vc: u32, waited: u64| {
            let head =
                |now| Head { now: Time(now), vc: Label::new(vc), waited: Span(waited), behind: 99, capable: false };
            (0..150).filter(|ms| policy.on_head(&head(ms * 1000), &mut stream()) == AtHead::Drop).count()
        };
        assert_eq!((drops(0, 20_000), drops(1, 4999), drops(2, 20_000)), (1, 0, 1));
    }

    /// Returns a port of three VCs with this policy and room for `capacity` cells.
    fn port(capacity: u32) -> Port {
        let config = Config::default();
        let policy = Box::new(config.build(capacity, &NAMES[..3]));
        Port::new(Some(capacity), 3, policy, stream()).scheduled(config.queues(&NAMES[..3], Clock::exact(1)))
    }

    fn offer(port: &mut Port, label: u32, frame: u32, cells: u32) {
        for number in 1..=cells {
            port.offer(cell(label, frame, number == cells));
        }
    }

    #[test]
    fn a_full_port_with_fq_codel_drops_whole_frames_from_the_front_of_the_longest_queue() {
        let mut port = port(12);
        offer(&mut port, 0, 0, 3);
        (0..3).for_each(|frame| offer(&mut port, 1, frame, 3));
        port.offer(cell(2, 0, false));
        // Half of three frames, rounded up.
        assert_eq!(port.per_vc().raw, [3, 3, 1]);
        assert_eq!(
            port.waiting().filter(|cell| cell.label() == Label::new(1)).map(|cell| cell.frame.number()).min(),
            Some(2)
        );
        assert_eq!((port.counters().lost_pushed_out, port.counters().cut_frames), (6, 2));
    }

    #[test]
    fn once_fq_codel_has_dropped_or_refused_cells_it_refuses_the_rest_of_the_frame() {
        let mut first = port(4);
        offer(&mut first, 0, 0, 6);
        assert_eq!(
            (first.occupancy(), first.counters().lost_pushed_out, first.counters().discarded_remainder),
            (0, 4, 2)
        );
        let mut second = port(4);
        second.offer(cell(0, 0, false));
        second.take();
        for _ in 0..4 {
            second.offer(cell(0, 0, false));
        }
        second.offer(cell(1, 0, true));
        assert_eq!(second.per_vc().raw, [4, 0, 0]);
        assert_eq!(second.counters().lost_overflow, 1);
    }

    #[test]
    fn fq_codel_settings_out_of_range_are_refused() {
        let ms = Duration::from_milliseconds;
        for (config, keys) in [
            (Config::default(), &[][..]),
            (Config { quantum: Bytes { bytes: 0 }, ..Config::default() }, &["quantum"]),
            (Config { target: ms(200), ..Config::default() }, &["target"]),
        ] {
            let found: Vec<_> = config.check(None, &[]).into_iter().map(|fault| fault.key).collect();
            assert_eq!(found, keys);
        }
    }
}
