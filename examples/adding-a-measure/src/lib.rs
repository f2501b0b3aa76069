//! The measure of `docs/adding-a-measure.md`, in a separate table of measures.

use celltrain_core::metrics::PortResult;
// [use]
use celltrain_core::port::PortCounters;
// [/use]
use celltrain_run::measure::Measure;

type Port = Measure<PortResult>;

/// The lines from the page, which belong into `PORT` in `celltrain-run`.
pub const PORT: &[Port] = &[
    // [line]
    Port::number(
        "loss_ratio",
        "1",
        "share of the arriving cells that were lost or discarded; null if none arrived",
        |port| loss_ratio(&port.counters),
    ),
    // [/line]
];
// [equation]

/// Ratio of lost or discarded cells to offered cells.
fn loss_ratio(counters: &PortCounters) -> Option<f64> {
    let gone = counters.lost() + counters.discarded();
    (counters.offered > 0).then(|| gone as f64 / counters.offered as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_ratio_counts_cells_lost_at_a_full_buffer_and_cells_discarded_by_a_policy() {
        let counters = PortCounters { offered: 200, lost_overflow: 1, discarded_frame: 99, ..PortCounters::default() };
        assert_eq!(loss_ratio(&counters), Some(0.5));
        assert_eq!(loss_ratio(&PortCounters { lost_overflow: 200, discarded_frame: 0, ..counters }), Some(1.0));
        assert_eq!(loss_ratio(&PortCounters { lost_overflow: 0, discarded_frame: 0, ..counters }), Some(0.0));
    }

    #[test]
    fn the_loss_ratio_of_a_port_at_which_no_cells_arrived_is_undefined() {
        assert_eq!(loss_ratio(&PortCounters::default()), None);
    }
}
// [/equation]
