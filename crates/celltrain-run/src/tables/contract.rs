//! Measures of a VC with a contract (GFR).

use celltrain_core::metrics::ContractResult;

use crate::measure::{Measure, When};

type Contract = Measure<ContractResult>;

/// Measures of one VC with a contract.
pub const CONTRACT: &[Contract] = &[
    Contract::text("vc", "the VC with a contract", |vc| &vc.name),
    Contract::count("frames", "frames", "frames that reached the edge of the network", |vc| Some(vc.edge.frames))
        .printed("frames", When::Always),
    Contract::count("eligible_frames", "frames", "frames eligible for the guarantee (F-GCRA)", |vc| {
        Some(vc.edge.eligible_frames)
    })
    .printed("eligible", When::Always),
    Contract::count("tagged_frames", "frames", "ineligible frames tagged by the network (GFR.2)", |vc| {
        Some(vc.edge.tagged_frames)
    })
    .printed("tagged", When::Always),
    Contract::count("nonconforming_cells", "cells", "cells that exceed PCR or the maximum frame size (MFS)", |vc| {
        Some(vc.edge.nonconforming_cells)
    })
    .printed("nonconforming cells", When::Always),
    Contract::count(
        "discarded_frames",
        "frames",
        "whole frames refused by policies, before the VC merges with others",
        |vc| Some(vc.discarded_frames),
    )
    .printed("discarded", When::Always),
    Contract::count(
        "cut_frames",
        "frames",
        "frames that lost a cell in a full buffer, before the VC merges with others",
        |vc| Some(vc.cut_frames),
    )
    .printed("cut", When::Always),
];
