//! Measures of a link with loss rules.

use celltrain_core::metrics::LossResult;

use crate::measure::{Measure, When};

type Link = Measure<LossResult>;

/// Measures of one link with loss rules.
pub const LINK: &[Link] = &[
    Link::text("name", "the link", |link| &link.name),
    Link::count("cells", "cells", "cells that reached the end of the link or were lost on it", |link| {
        Some(link.counters.came)
    })
    .printed("cells", When::Always),
    Link::count("lost_cells", "cells", "cells lost on the link", |link| Some(link.counters.lost))
        .printed("lost", When::Always),
    Link::count("cut_frames", "frames", "frames that lost a cell on the link", |link| Some(link.counters.cut_frames))
        .printed("cut frames", When::Always),
];
