//! Measures of a rate-controlled VC (ABR).

use celltrain_core::metrics::AbrResult;

use crate::measure::{Measure, When};

type Abr = Measure<AbrResult>;

/// Measures of one direction of a rate-controlled VC.
pub const ABR: &[Abr] = &[
    Abr::text("vc", "VC with a controlled rate (ABR)", |vc| &vc.name),
    Abr::number("acr_mbps", "Mb/s", "final allowed cell rate (ACR), counting cell headers", |vc| Some(vc.acr_mbps))
        .printed("ACR at the end, Mb/s", When::Always),
    Abr::count("forward_rm_cells", "cells", "in-rate forward RM cells sent", |vc| Some(vc.forward_rm_cells))
        .printed("forward RM cells", When::Always),
    Abr::count("out_of_rate_rm_cells", "cells", "out-of-rate forward RM cells sent", |vc| {
        Some(vc.out_of_rate_rm_cells)
    }),
    Abr::count("returned_rm_cells", "cells", "backward RM cells that returned to the source", |vc| {
        Some(vc.returned_rm_cells)
    })
    .printed("came back", When::Always),
    Abr::number("rm_share", "1", "RM cells of both directions as a share of all sent cells", |vc| vc.rm_share)
        .printed("RM share", When::Always),
];
