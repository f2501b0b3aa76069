//! An observer of the times at senders in a run.

use std::hash::{DefaultHasher, Hash, Hasher};

use celltrain_core::engine::Engine;
use celltrain_core::events::{Event, Observer, SegmentEvent, SegmentStep};
use celltrain_core::fingerprint::Fingerprint;
use celltrain_core::metrics::RunResult;
use celltrain_core::network::Network;
use celltrain_core::probe::Probe;
use celltrain_core::units::{Duration, Time};

/// Runs a network whose sources start at `start` or later. The fingerprint covers the times of sending and
/// acknowledging segments, relative to `start`.
pub(super) fn run(engine: Engine, network: &Network, start: Duration) -> RunResult {
    let mut senders = Senders { network, start: network.clock().time(start), sum: 0 };
    let result = engine.run(network, &mut senders, |_| true).expect("nothing cancels this run");
    let mut fingerprint = Fingerprint::default();
    fingerprint.fold(senders.sum);
    RunResult { fingerprint, ..result }
}

struct Senders<'a> {
    network: &'a Network,
    start: Time,
    /// Sum of the hashes of all events. The sum does not depend on the order of the events.
    sum: u64,
}

impl Observer for Senders<'_> {
    const OBSERVES: bool = true;

    fn on_event(&mut self, now: Time, event: Event) {
        let Event::Segment(SegmentEvent { flow, frame, step, .. }) = event else { return };
        if matches!(
            step,
            SegmentStep::Sent { .. } | SegmentStep::Retransmitted { .. } | SegmentStep::Acknowledged { .. }
        ) {
            let mut hasher = DefaultHasher::new();
            (&self.network.flows[flow].name, frame, now - self.start).hash(&mut hasher);
            self.sum = self.sum.wrapping_add(hasher.finish());
        }
    }
}

impl Probe for Senders<'_> {}
