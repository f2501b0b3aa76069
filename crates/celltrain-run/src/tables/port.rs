//! Measures of an output port.

use celltrain_core::metrics::PortResult;

use crate::measure::{Measure, When};

type Port = Measure<PortResult>;

/// Measures of one output port.
pub const PORT: &[Port] = &[
    Port::text("name", "the output port, named after its link", |port| &port.name),
    Port::count("buffer_cells", "cells", "size of the buffer; null without limit", |port| {
        port.buffer_cells.map(u64::from)
    })
    .printed("buffer, cells", When::Always),
    Port::text("policy", "the buffer policy", |port| port.policy).printed("policy", When::Always),
    Port::count(
        "threshold_cells",
        "cells",
        "queue length up to which every frame is admitted; null without such a threshold",
        |port| port.threshold_cells.map(u64::from),
    ),
    Port::text("scheduler", "the scheduler", |port| port.scheduler).printed("scheduler", When::Always),
    Port::count("max_queue_cells", "cells", "largest queue length, without the cell in service", |port| {
        Some(port.max_queue_cells.into())
    })
    .printed("largest queue, cells", When::Always),
    Port::count("queue_cells", "cells", "queue length at the end", |port| Some(port.queue_cells.into())),
    Port::count("offered_cells", "cells", "cells that arrived at the port", |port| Some(port.counters.offered))
        .printed("cells offered", When::Always),
    Port::count("forwarded_cells", "cells", "cells transmitted", |port| Some(port.counters.forwarded)),
    Port::count("lost_cells", "cells", "cells lost because the buffer was full", |port| Some(port.counters.lost())),
    Port::count("lost_overflow_cells", "cells", "arriving cells lost because the buffer was full", |port| {
        Some(port.counters.lost_overflow)
    })
    .printed("lost for lack of room", When::Always),
    Port::count("lost_pushed_out_cells", "cells", "waiting cells pushed out of a full buffer", |port| {
        Some(port.counters.lost_pushed_out)
    })
    .printed("lost, pushed out", When::Always),
    Port::count(
        "discarded_cells",
        "cells",
        "cells of frames that were refused whole or had already lost a cell",
        |port| Some(port.counters.discarded()),
    ),
    Port::count("discarded_frame_cells", "cells", "cells of frames that the policy refused as a whole", |port| {
        Some(port.counters.discarded_frame)
    })
    .printed("discarded, whole frames", When::Always),
    Port::count(
        "refused_by_memory_cells",
        "cells",
        "cells of frames that a shared memory refused as a whole",
        |port| Some(port.counters.refused_by_memory),
    ),
    Port::count(
        "discarded_remainder_cells",
        "cells",
        "remaining cells of frames that had already lost a cell",
        |port| Some(port.counters.discarded_remainder),
    )
    .printed("discarded parts of frames", When::Always),
    Port::count("dropped_cells", "cells", "cells lost or discarded, for any reason", |port| {
        Some(port.counters.lost() + port.counters.discarded())
    }),
    Port::count("discarded_frames", "frames", "frames that the policy or a memory refused as a whole", |port| {
        Some(port.counters.discarded_frames)
    }),
    Port::count("cut_frames", "frames", "frames that lost a cell because the buffer was full", |port| {
        Some(port.counters.cut_frames)
    }),
    Port::count(
        "replaced_results",
        "1",
        "results of policy formulas that were not numbers and were replaced",
        |port| Some(port.replaced_results),
    )
    .printed("formula results replaced", When::Present),
    Port::number("utilisation", "1", "share of the run during which the port transmitted", |port| {
        Some(port.utilisation)
    })
    .printed("utilisation", When::Always),
    Port::number("delay_ms_mean", "ms", "mean queueing delay at the port", |port| port.delays.as_ref()?.mean_ms())
        .on_request(),
    Port::number("delay_ms_p50", "ms", "median queueing delay at the port", |port| {
        port.delays.as_ref()?.percentile_ms(500)
    })
    .on_request(),
    Port::number("delay_ms_p95", "ms", "95th percentile of the queueing delay at the port", |port| {
        port.delays.as_ref()?.percentile_ms(950)
    })
    .on_request(),
    Port::number("delay_ms_p99", "ms", "99th percentile of the queueing delay at the port", |port| {
        port.delays.as_ref()?.percentile_ms(990)
    })
    .on_request(),
    Port::number("delay_ms_p999", "ms", "99.9th percentile of the queueing delay at the port", |port| {
        port.delays.as_ref()?.percentile_ms(999)
    })
    .on_request(),
];
