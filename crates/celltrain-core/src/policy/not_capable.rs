//! Drops packets that a congested port cannot mark.
//!
//! Source: RFC 3168, section 5. Differences from the source: a whole frame is dropped when its first cell arrives. The
//! average of [`marking`](crate::marking) is not used.

use std::any::Any;

use super::recorded::RecordedPolicy;
use super::{BufferPolicy, CellFollower, Decision, HeadPolicy, Overflow, View, whole_cells};
use crate::counted::Counted;
use crate::coverage::reached;
use crate::index::Label;
use crate::policy::formula::PortInfo;
use crate::rng::Stream;

/// The policy of a port that marks packets. The inner policy decides about all packets that can be marked. While few
/// cells wait, it also decides about the other packets.
pub(crate) struct NotCapable {
    pub(super) policy: Box<dyn BufferPolicy>,
    /// Largest queue length at which no packet is dropped.
    pub(crate) k_min: f64,
    /// Queue length above which every packet that cannot be marked is dropped.
    pub(crate) k_max: f64,
    /// Probability of a drop just below `k_max`.
    pub(crate) p_max: f64,
    /// Selects which waiting cells the port compares with the limits.
    of: Counted,
    /// True if the last frame was dropped because it could not be marked.
    pub(crate) dropped: bool,
}

impl NotCapable {
    /// Creates the policy of a port that marks packets between `k_min` and `k_max` with a probability up to `p_max`.
    pub(crate) fn new(policy: Box<dyn BufferPolicy>, [k_min, k_max]: [f64; 2], p_max: f64, of: Counted) -> Self {
        Self { policy, k_min, k_max, p_max, of, dropped: false }
    }

    fn drops(&self, waiting: f64, rng: &mut Stream) -> bool {
        waiting > self.k_max
            || (waiting > self.k_min && rng.unit() < self.p_max * (waiting - self.k_min) / (self.k_max - self.k_min))
    }
}

impl BufferPolicy for NotCapable {
    fn at_port(&mut self, port_info: &PortInfo<'_>) {
        self.policy.at_port(port_info);
    }

    //= rfc3168#5 "a router drops a packet that is not ECN-capable where it would mark another"
    fn admit_frame(&mut self, buffer: &View<'_>, vc: Label, rng: &mut Stream) -> bool {
        self.dropped = !buffer.capable && self.drops(buffer.counted.into(), rng);
        reached!(DroppedInsteadOfMarked if self.dropped);
        !self.dropped && self.policy.admit_frame(buffer, vc, rng)
    }

    fn overflow(&self) -> Overflow {
        self.policy.overflow()
    }

    fn admits_up_to(&self) -> Option<u32> {
        if self.of != Counted::Port {
            // Engines compare the answer with the number of cells at the port, but this policy compares other counts
            // with its limits.
            return None;
        }
        self.policy.admits_up_to().and_then(|most| whole_cells(self.k_min).map(|k_min| most.min(k_min)))
    }

    fn reads_counts(&self) -> bool {
        self.policy.reads_counts()
    }

    /// Returns the answer of the inner policy. If this policy draws a random number between its limits, the recorder of
    /// a certificate notices.
    fn reads_own_view(&self) -> bool {
        self.policy.reads_own_view()
    }

    fn follower(&mut self) -> Option<&mut dyn CellFollower> {
        self.policy.follower()
    }

    fn head_policy(&mut self) -> Option<&mut dyn HeadPolicy> {
        self.policy.head_policy()
    }

    fn marks_admitted(&self) -> bool {
        self.policy.marks_admitted()
    }

    fn explain(&self, buffer: &View<'_>, vc: Label) -> Decision {
        if self.dropped {
            let rule = "the queue is above k_min and the packet cannot be marked";
            return Decision { rule, threshold: Some(self.k_min), ..Decision::default() };
        }
        self.policy.explain(buffer, vc)
    }
}

/// Returns the inner policy, which decides about packets that can be marked.
pub(super) fn inner(policy: &dyn BufferPolicy) -> &dyn BufferPolicy {
    let recorded = (policy as &dyn Any).downcast_ref();
    let policy = recorded.map_or(policy, |outer: &RecordedPolicy| &*outer.policy);
    (policy as &dyn Any).downcast_ref().map_or(policy, |outer: &NotCapable| &*outer.policy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::bench::view;
    use crate::policy::{PolicyConfig, tail_drop};

    //= test rfc3168#5 "a router drops a packet that is not ECN-capable where it would mark another"
    #[test]
    fn above_the_marking_threshold_only_ecn_capable_packets_are_admitted() {
        let policy = PolicyConfig::from(tail_drop::Config {}).build(Some(100), &[]);
        let mut policy = NotCapable::new(policy, [20.0, 20.0], 1.0, Counted::Port);
        assert_eq!(policy.admits_up_to(), Some(20));
        for (waiting, capable, enters) in [(20, false, true), (21, false, false), (21, true, true), (100, true, true)] {
            let per_vc = [waiting];
            let view = View { capable, ..view(100, &per_vc) };
            let admitted = policy.admit_frame(&view, Label::new(0), &mut Stream::new(1, "bench"));
            assert_eq!(admitted, enters, "{waiting} cells, {capable}");
        }
    }

    #[test]
    fn marking_does_not_change_the_values_that_the_wrapped_policy_reads() {
        let reads = |policy: &dyn BufferPolicy| [policy.reads_own_view(), policy.reads_counts()];
        let mut all = Vec::new();
        for config in PolicyConfig::samples(100) {
            let inner = || config.build(Some(100), &["a", "b"]);
            let outer = NotCapable::new(inner(), [20.0, 20.0], 1.0, Counted::Port);
            assert_eq!(reads(&outer), reads(&*inner()), "{}", config.name());
            all.push(outer.reads_own_view());
        }
        assert!(all.contains(&true) && all.contains(&false), "both answers occur: {all:?}");
    }

    //= test rfc3168#5 "a router drops a packet that is not ECN-capable where it would mark another"
    #[test]
    fn a_packet_without_ecn_is_dropped_at_the_queue_length_that_marks_ecn_capable_packets() {
        for of in [Counted::Queue, Counted::Memory] {
            let policy = PolicyConfig::from(tail_drop::Config {}).build(Some(100), &[]);
            let mut policy = NotCapable::new(policy, [20.0, 20.0], 1.0, of);
            assert_eq!(policy.admits_up_to(), None, "the port must call the policy even if it is empty");
            for (at_port, counted, enters) in [(0, 21, false), (100, 20, true)] {
                let per_vc = [at_port];
                let view = View { capable: false, counted, ..view(100, &per_vc) };
                let admitted = policy.admit_frame(&view, Label::new(0), &mut Stream::new(1, "bench"));
                assert_eq!(admitted, enters, "{at_port} cells at the port, {counted} counted");
            }
        }
    }
}
