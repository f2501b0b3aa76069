//! Number of flows that time out together. Flows that lose data in the same round trip wait for their timers together.

use crate::index::FlowIndex;
use crate::network::Network;
use crate::units::{Clock, Span, Time};

/// The timeouts of all flows, in the order in which they happened. Requests are not included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// Longest tick of the flows' retransmission timers.
    tick: Span,
    all: Vec<(Time, FlowIndex)>,
}

impl Timeouts {
    /// Creates an empty record for the flows of a network.
    pub(crate) fn new(network: &Network, clock: Clock) -> Self {
        let flows = network.flows.iter().filter(|flow| flow.uses_tcp());
        let tick = flows.map(|flow| clock.span(flow.tcp.options().timer_granularity)).max();
        Self { tick: tick.unwrap_or_default(), all: Vec::new() }
    }

    /// Records that the retransmission timer of a flow expired. Times must not decrease.
    pub(crate) fn record(&mut self, now: Time, flow: FlowIndex) {
        self.all.push((now, flow));
    }

    /// Adds the timeouts of another partition.
    pub(crate) fn add_partition(&mut self, other: &Self) {
        self.all.extend(&other.all);
        self.all.sort_unstable();
    }

    /// Restricts the record to the timeouts between two snapshots of the record.
    pub(super) fn restrict(&mut self, before: Option<&Self>, until: &Self) {
        self.all.truncate(until.all.len());
        self.all.drain(..before.map_or(0, |before| before.all.len()));
    }

    /// Returns the mean number of flows that time out together; `None` if no flow times out. A group consists of a
    /// timeout and all timeouts less than one tick later. The next timeout starts the next group.
    pub fn together(&self) -> Option<f64> {
        let (mut groups, mut flows) = (0_u64, 0_u64);
        let mut rest = &self.all[..];
        while let Some(&(first, _)) = rest.first() {
            // Ticks of a host with a slow clock are longer, so a group always contains its first timeout.
            let count = rest.partition_point(|&(time, _)| time - first < self.tick).max(1);
            let mut group: Vec<FlowIndex> = rest[..count].iter().map(|&(_, flow)| flow).collect();
            group.sort_unstable();
            group.dedup();
            groups += 1;
            flows += group.len() as u64;
            rest = &rest[count..];
        }
        (groups > 0).then(|| flows as f64 / groups as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[(u64, u32)]) -> Timeouts {
        let all = times.iter().map(|&(time, flow)| (Time(time), FlowIndex::new(flow))).collect();
        Timeouts { tick: Span(100), all }
    }

    #[test]
    fn timeouts_of_different_flows_within_one_clock_tick_form_one_group() {
        assert_eq!(of(&[]).together(), None);
        assert_eq!(of(&[(100, 0)]).together(), Some(1.0));
        assert_eq!(of(&[(100, 0), (199, 1)]).together(), Some(2.0));
        assert_eq!(of(&[(100, 0), (200, 1)]).together(), Some(1.0));
        // The group of the first timeout ends one tick after it, whatever follows.
        assert_eq!(of(&[(100, 0), (150, 1), (200, 2), (220, 3)]).together(), Some(2.0));
        assert_eq!(of(&[(100, 0), (100, 1), (100, 2), (500, 0)]).together(), Some(2.0));
    }

    #[test]
    fn a_flow_with_several_timeouts_in_a_group_counts_once() {
        assert_eq!(of(&[(100, 0), (110, 1), (120, 0), (130, 0)]).together(), Some(2.0));
    }

    #[test]
    fn a_measuring_window_contains_the_timeouts_between_its_two_snapshots() {
        let mut whole = of(&[(100, 0), (300, 0), (300, 1), (900, 2)]);
        whole.restrict(Some(&of(&[(100, 0)])), &of(&[(100, 0), (300, 0), (300, 1)]));
        assert_eq!(whole, of(&[(300, 0), (300, 1)]));
    }

    #[test]
    fn the_timeouts_of_all_partitions_are_merged_in_order_of_time() {
        let mut first = of(&[(100, 0), (300, 0)]);
        first.add_partition(&of(&[(100, 1), (200, 2)]));
        assert_eq!(first, of(&[(100, 0), (100, 1), (200, 2), (300, 0)]));
    }
}
