//! Measures of a rate-controlled VC (ABR).

use celltrain_core::metrics::AbrResult;

use crate::measure::{Measure, When};

type Abr = Measure<AbrResult>;

/// Measures of one direction of a rate-controlled VC.
pub const ABR: &[Abr] = &[
    Abr::text("vc", "the VC whose rate is controlled", |vc| &vc.name),
    Abr::number("acr_mbps", "Mb/s", "ACR at the end, cells included", |vc| Some(vc.acr_mbps))
        .printed("ACR at the end, Mb/s", When::Always),
    Abr::count("forward_rm_cells", "cells", "forward RM cells its source sent in rate", |vc| Some(vc.forward_rm_cells))
        .printed("forward RM cells", When::Always),
    Abr::count("out_of_rate_rm_cells", "cells", "forward RM cells its source sent out of rate", |vc| {
        Some(vc.out_of_rate_rm_cells)
    }),
    Abr::count("returned_rm_cells", "cells", "backward RM cells that came back to it", |vc| Some(vc.returned_rm_cells))
        .printed("came back", When::Always),
    Abr::number("rm_share", "1", "RM cells, of both directions' loops, among the cells it sent", |vc| vc.rm_share)
        .printed("RM share", When::Always),
];
