//! The measuring window: the results of a part of a run, between two snapshots.

use super::{AbrResult, CellTotals, ContractResult, FlowResult, LossResult, PortResult, QueueResult, Rates, RunResult};
use crate::network::Network;
use crate::requests::GroupResult;
use crate::wire::Wire;

impl RunResult {
    /// Restricts rates, efficiency, fairness, utilisations, occupancies of memories and counters to the time after the
    /// snapshot `before`, if there is one, and up to the snapshot `until`. The fingerprint, cell-hops, largest queues,
    /// delays and ends of files, shares of RM cells, and the state at the end (windows, rates of ABR sources, queues,
    /// cells in flight) still cover the whole run. Only the records of requests and queries that opened in this time
    /// remain, and each record still extends to the end of the run.
    #[must_use]
    pub fn over(mut self, before: Option<&RunResult>, until: &RunResult, network: &Network) -> Self {
        self.measured_from_s = before.map_or(0.0, |before| before.measured_to_s);
        self.measured_to_s = until.measured_to_s;
        let (seconds, clock) = (self.measured_to_s - self.measured_from_s, network.clock());
        for (index, own) in self.flows.iter_mut_enumerated() {
            own.count_between(before.map(|before| &before.flows[index]), &until.flows[index]);
            own.goodput_mbps = super::mbps(own.delivered_bytes, seconds);
            own.throughput_mbps = super::mbps(own.received_bytes, seconds);
        }
        for (index, own) in self.requests.iter_mut_enumerated() {
            own.open_between(before.map(|before| &before.requests[index]), &until.requests[index]);
        }
        for (index, own) in self.ports.iter_mut_enumerated() {
            let rate = network.mean_rate(index, [self.measured_from_s, self.measured_to_s]).max(1.0);
            let cell_s = network.aal5.cell.bits() as f64 / rate;
            own.count_between(before.map(|before| &before.ports[index]), &until.ports[index]);
            let busy = match network.links[index].wire {
                Wire::Cells => own.counters.forwarded as f64 * (cell_s / seconds),
                Wire::Ethernet => own.on_ethernet as f64 / clock.units_per_second as f64 / seconds,
            };
            own.utilisation = if own.counters.forwarded > 0 { busy.min(1.0) } else { 0.0 };
        }
        for (index, own) in self.memories.iter_mut_enumerated() {
            own.occupancy = until.memories[index].occupancy.clone();
            if let Some(before) = before {
                own.occupancy.subtract(&before.memories[index].occupancy);
            }
            for (queue, own) in own.queues.iter_mut_enumerated() {
                let before = before.map(|before| &before.memories[index].queues[queue]);
                own.count_between(before, &until.memories[index].queues[queue]);
            }
        }
        for (index, own) in self.losses.iter_mut_enumerated() {
            own.count_between(before.map(|before| &before.losses[index]), &until.losses[index]);
        }
        for (index, own) in self.contracts.iter_mut().enumerate() {
            own.count_between(before.map(|before| &before.contracts[index]), &until.contracts[index]);
        }
        for (index, own) in self.abr.iter_mut().enumerate() {
            own.count_between(before.map(|before| &before.abr[index]), &until.abr[index]);
        }
        self.timeouts.restrict(before.map(|before| &before.timeouts), &until.timeouts);
        self.cells.count_between(before.map(|before| &before.cells), &until.cells);
        let Rates { efficiency, fairness, fairness_max_min, goodput_mbps } =
            Rates::of(network, &self.flows, &self.requests, [self.measured_from_s, self.measured_to_s]);
        Self { efficiency, fairness, fairness_max_min, goodput_mbps, ..self }
    }

    /// Drops the records of requests, because at the bounds of the measuring window only their numbers are needed.
    #[must_use]
    pub(crate) fn without_records(mut self) -> Self {
        self.requests.iter_mut().for_each(|group| group.records = Vec::new());
        self
    }

    /// Restricts the result to the measuring window between two snapshots, unless the window is the whole run.
    #[must_use]
    pub(crate) fn within(self, [before, until]: [Option<RunResult>; 2], network: &Network) -> Self {
        match (before, until) {
            (None, None) => self,
            (before, Some(until)) => self.over(before.as_ref(), &until, network),
            (before, None) => {
                let until = self.clone().without_records();
                self.over(before.as_ref(), &until, network)
            }
        }
    }

    /// Adds the counters that another partition has at the same instant.
    pub(crate) fn add_partition(&mut self, other: &RunResult) {
        let add = |own: &mut u64, other: u64| *own += other;
        self.flows.iter_mut().zip(&other.flows).for_each(|(own, other)| own.combine(other, add));
        self.ports.iter_mut().zip(&other.ports).for_each(|(own, other)| own.combine(other, add));
        for (own, other) in self.memories.iter_mut().zip(&other.memories) {
            own.occupancy.add_partition(&other.occupancy);
        }
        let queues = self.memories.iter_mut().flat_map(|memory| &mut memory.queues);
        let others = other.memories.iter().flat_map(|memory| &memory.queues);
        queues.zip(others).for_each(|(own, other)| own.combine(other, add));
        for (own, other) in self.losses.iter_mut().zip(&other.losses) {
            own.combine(other, add);
            own.rules.iter_mut().zip(&other.rules).for_each(|(own, &other)| *own = own.plus(other));
        }
        self.contracts.iter_mut().zip(&other.contracts).for_each(|(own, other)| own.combine(other, add));
        self.abr.iter_mut().zip(&other.abr).for_each(|(own, other)| own.combine(other, add));
        self.timeouts.add_partition(&other.timeouts);
        self.cells.combine(&other.cells, add);
    }
}

impl GroupResult {
    /// Restricts the records to requests that opened between two times, and the bytes to those delivered between them.
    fn open_between(&mut self, before: Option<&Self>, until: &Self) {
        let counts = |group: &Self| [group.opened, group.queries.len() as u64];
        let [requests, queries] = before.map_or([0; 2], counts);
        let [last_request, last_query] = counts(until);
        let number = |number: u64| u32::try_from(number).expect("numbers of requests and queries have 32 bits");
        self.records.retain(|record| (requests..last_request).contains(&u64::from(record.number)));
        self.records.shrink_to_fit();
        self.queries.truncate(number(last_query) as usize);
        self.queries.drain(..number(queries) as usize);
        self.first += number(requests);
        self.first_query += number(queries);
        self.opened = last_request - requests;
        self.count_between(before, until);
    }
}

/// Combines each counter of a record with the same counter of another record.
macro_rules! counters {
    ($record:ty: $($($field:ident).+),+ $(,)?) => {
        impl $record {
            fn combine(&mut self, other: &Self, with: fn(&mut u64, u64)) {
                $(with(&mut self.$($field).+, other.$($field).+);)+
            }

            /// Replaces the counters by their differences between two times.
            fn count_between(&mut self, before: Option<&Self>, until: &Self) {
                self.combine(until, |own, until| *own = until);
                if let Some(before) = before {
                    self.combine(before, |own, before| *own -= before);
                }
            }
        }
    };
}

counters!(
    FlowResult:
    delivered_bytes,
    received_bytes,
    segments_sent,
    retransmitted_segments,
    repeated_segments,
    unknown_packets,
    timeouts,
    fast_retransmits,
    packets_sent,
    packets_delivered,
);
counters!(
    PortResult:
    counters.offered,
    counters.forwarded,
    counters.lost_overflow,
    counters.lost_pushed_out,
    counters.discarded_frame,
    counters.refused_by_memory,
    counters.discarded_remainder,
    counters.discarded_frames,
    counters.cut_frames,
    on_ethernet,
);
counters!(GroupResult: delivered_bytes, bottleneck_bytes);
counters!(QueueResult: counters.entered, counters.refused, counters.pushed_out, counters.pauses);
counters!(
    ContractResult:
    edge.frames,
    edge.eligible_frames,
    edge.tagged_frames,
    edge.nonconforming_cells,
    discarded_frames,
    cut_frames,
);
counters!(LossResult: counters.came, counters.lost, counters.cut_frames);
counters!(AbrResult: forward_rm_cells, out_of_rate_rm_cells, returned_rm_cells);
counters!(CellTotals: offered, delivered, lost, discarded);
