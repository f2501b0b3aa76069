//! Laws on packets that delimit themselves.

use celltrain_core::aal5::{CellFormat, Framing};
use celltrain_scenario::topology::Topology;

use super::Case;
use super::same::same;
use crate::differential::packets::delimit;

/// More bytes than any packet of a drawn network has, with headers.
const ONE_CELL: u64 = 70_000;

/// If all packets have one cell, both framings give the same run.
pub(super) fn of_one_cell(case: &mut Case) -> Result<bool, String> {
    // Contracts, controlled rates and merging VCs need AAL5.
    case.scenario.vc.clear();
    if let Topology::Network(network) = &mut case.scenario.topology {
        network.flows.iter_mut().for_each(|flow| flow.vc = None);
    }
    let mut packets = case.network();
    packets.aal5.cell = CellFormat::of_memory(ONE_CELL);
    if !delimit(&mut packets) {
        return Ok(false);
    }
    let mut aal5 = packets.clone();
    aal5.aal5.framing = Framing::Aal5;
    let (packets, aal5) = (case.run(&packets), case.run(&aal5));
    same(&packets, &aal5)?;
    Ok(packets.cells.offered > 0)
}
