//! Measures of queues: the queues and priority groups of memories, and the queues of schedulers.

use celltrain_core::memory::Side;
use celltrain_core::metrics::QueueResult;

use crate::measure::{Measure, When};

type Queue = Measure<QueueResult>;

/// Returns a count of cells of a queue; `None` for a queue without a memory, because only memories count cells by
/// queue.
fn counted(queue: &QueueResult, cells: u64) -> Option<u64> {
    queue.pool.is_some().then_some(cells)
}

/// Measures of one queue or priority group.
pub const QUEUE: &[Queue] = &[
    Queue::text("name", "name of the queue: memory, link and priority; link and class; link and VCs", |queue| {
        &queue.name
    }),
    Queue::text("side", "egress for a queue, ingress for a priority group", |queue| match queue.side {
        Side::Egress => "egress",
        Side::Ingress => "ingress",
    }),
    Queue::text("pool", "pool to which the queue belongs", |queue| queue.pool.as_deref().unwrap_or_default()),
    Queue::count("max_cells", "cells", "largest queue length, with reserve, pool and headroom", |queue| {
        counted(queue, queue.counters.max_cells.into())
    })
    .printed("most cells", When::Always),
    Queue::count("max_headroom_cells", "cells", "largest number of cells in the headroom of the queue", |queue| {
        counted(queue, queue.counters.max_headroom.into())
    })
    .printed("most headroom", When::Present),
    Queue::count("cells", "cells", "queue length at the end", |queue| counted(queue, queue.cells.into())),
    Queue::count("entered_cells", "cells", "cells that entered the queue", |queue| {
        counted(queue, queue.counters.entered)
    }),
    Queue::count(
        "refused_cells",
        "cells",
        "cells refused by the queue itself, excluding the rest of their frames",
        |queue| counted(queue, queue.counters.refused),
    ),
    Queue::count(
        "pushed_out_cells",
        "cells",
        "waiting cells removed by the pool's policy, including the rest of their packets",
        |queue| counted(queue, queue.counters.pushed_out),
    )
    .printed("pushed out", When::Present),
    Queue::count("pauses", "1", "number of pauses of the link that feeds the queue", |queue| {
        counted(queue, queue.counters.pauses)
    })
    .printed("pauses", When::Present),
    Queue::number("delay_ms_mean", "ms", "mean queueing delay in the queue", |queue| queue.delays.as_ref()?.mean_ms())
        .on_request(),
    Queue::number("delay_ms_p50", "ms", "median queueing delay in the queue", |queue| {
        queue.delays.as_ref()?.percentile_ms(500)
    })
    .on_request(),
    Queue::number("delay_ms_p95", "ms", "95th percentile of the queueing delay in the queue", |queue| {
        queue.delays.as_ref()?.percentile_ms(950)
    })
    .on_request(),
    Queue::number("delay_ms_p99", "ms", "99th percentile of the queueing delay in the queue", |queue| {
        queue.delays.as_ref()?.percentile_ms(990)
    })
    .on_request(),
    Queue::number("delay_ms_p999", "ms", "99.9th percentile of the queueing delay in the queue", |queue| {
        queue.delays.as_ref()?.percentile_ms(999)
    })
    .on_request(),
];
