//! What a part of a run is measured by.
//!
//! A run is the beginning of every longer one of the same network: so what happened between two instants is the
//! difference of two runs that end there.

use super::{AbrResult, CellTotals, ContractResult, FlowResult, PortResult, Rates, RunResult};
use crate::network::Network;
use crate::port::PortCounters;
use crate::units::CELL_BITS;

impl RunResult {
    /// The measures of a run of which only a part counts: rates, efficiency, fairness, utilisations and counters of
    /// what happened after the end of `before`, if there is one, and up to the end of `until`; both are runs of the
    /// same network that end earlier, or together with it. Of the whole run stay the fingerprint, the cell-hops, the
    /// largest queues, delays and ends of files, shares of RM cells, and what is found at the end: windows, rates of
    /// ABR sources, queues, cells in flight.
    #[must_use]
    pub fn over(mut self, before: Option<&RunResult>, until: &RunResult, network: &Network) -> Self {
        self.measured_from_s = before.map_or(0.0, |before| before.measured_to_s);
        self.measured_to_s = until.measured_to_s;
        let seconds = self.measured_to_s - self.measured_from_s;
        for (index, own) in self.flows.iter_mut_enumerated() {
            own.count_between(before.map(|before| &before.flows[index]), &until.flows[index], seconds);
        }
        for (index, own) in self.ports.iter_mut_enumerated() {
            let cell_s = CELL_BITS as f64 / network.links[index].rate.bits_per_second as f64;
            own.count_between(before.map(|before| &before.ports[index]), &until.ports[index], cell_s / seconds);
        }
        for (index, own) in self.contracts.iter_mut().enumerate() {
            own.count_between(before.map(|before| &before.contracts[index]), &until.contracts[index]);
        }
        for (index, own) in self.abr.iter_mut().enumerate() {
            own.count_between(before.map(|before| &before.abr[index]), &until.abr[index]);
        }
        self.cells.count_between(before.map(|before| &before.cells), &until.cells);
        let Rates { efficiency, fairness, fairness_max_min, goodput_mbps } = Rates::of(network, &self.flows);
        Self { efficiency, fairness, fairness_max_min, goodput_mbps, ..self }
    }
}

/// Sets counters to what they became between two instants.
macro_rules! between {
    ($own:expr, $before:expr, $until:expr, $($($field:ident).+),+ $(,)?) => {
        $($own.$($field).+ = $until.$($field).+ - $before.map_or(0, |before| before.$($field).+);)+
    };
}

impl FlowResult {
    fn count_between(&mut self, before: Option<&Self>, until: &Self, seconds: f64) {
        between!(
            self,
            before,
            until,
            delivered_bytes,
            received_bytes,
            segments_sent,
            retransmitted_segments,
            repeated_segments,
            timeouts,
            fast_retransmits,
            packets_sent,
            packets_delivered,
        );
        self.goodput_mbps = super::mbps(self.delivered_bytes, seconds);
        self.throughput_mbps = super::mbps(self.received_bytes, seconds);
    }
}

impl PortResult {
    /// `share_of_cell`: a cell's time as a share of the time that counts.
    fn count_between(&mut self, before: Option<&Self>, until: &Self, share_of_cell: f64) {
        self.counters.count_between(before.map(|before| &before.counters), &until.counters);
        self.utilisation = (self.counters.forwarded as f64 * share_of_cell).min(1.0);
    }
}

impl PortCounters {
    fn count_between(&mut self, before: Option<&Self>, until: &Self) {
        between!(
            self,
            before,
            until,
            offered,
            forwarded,
            lost_overflow,
            lost_pushed_out,
            discarded_frame,
            discarded_remainder,
            discarded_frames,
            cut_frames,
        );
    }
}

impl ContractResult {
    fn count_between(&mut self, before: Option<&Self>, until: &Self) {
        between!(
            self,
            before,
            until,
            edge.frames,
            edge.eligible_frames,
            edge.tagged_frames,
            edge.nonconforming_cells,
            discarded_frames,
            cut_frames,
        );
    }
}

impl AbrResult {
    fn count_between(&mut self, before: Option<&Self>, until: &Self) {
        between!(self, before, until, forward_rm_cells, out_of_rate_rm_cells, returned_rm_cells);
    }
}

impl CellTotals {
    fn count_between(&mut self, before: Option<&Self>, until: &Self) {
        between!(self, before, until, offered, delivered, lost, discarded);
    }
}
