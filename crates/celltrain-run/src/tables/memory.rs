//! Measures of a memory shared by ports.

use celltrain_core::metrics::{MemoryResult, PoolResult, QueueResult};

use crate::measure::{Measure, When};

type Memory = Measure<MemoryResult>;

/// Measures of one memory.
pub const MEMORY: &[Memory] = &[
    Memory::text("name", "the memory", |memory| &memory.name),
    Memory::count("cells", "cells", "capacity of the memory", |memory| Some(memory.cells.into()))
        .printed("cells", When::Always),
    Memory::count("max_used_cells", "cells", "largest occupancy of the memory", |memory| {
        Some(memory.max_used_cells.into())
    })
    .printed("most used", When::Always),
    Memory::count("used_cells", "cells", "occupancy of the memory at the end", |memory| Some(memory.used_cells.into())),
    Memory::number("used_cells_mean", "cells", "mean occupancy of the memory over the measured time", |memory| {
        memory.occupancy.mean()
    })
    .printed("mean", When::Always),
    Memory::count("used_cells_median", "cells", "median of the occupancy over time", |memory| percentile(memory, 500))
        .printed("median", When::Always),
    Memory::count("used_cells_p95", "cells", "95th percentile of the occupancy over time", |memory| {
        percentile(memory, 950)
    })
    .printed("95 %", When::Always),
    Memory::count("used_cells_p99", "cells", "99th percentile of the occupancy over time", |memory| {
        percentile(memory, 990)
    })
    .printed("99 %", When::Always),
    Memory::count("used_cells_p999", "cells", "99.9th percentile of the occupancy over time", |memory| {
        percentile(memory, 999)
    })
    .printed("99.9 %", When::Always),
    Memory::count("max_pool_cells", "cells", "largest number of cells in the shared part of any pool", |memory| {
        memory.pools.iter().map(|pool: &PoolResult| u64::from(pool.max_used_cells)).max()
    }),
    Memory::count(
        "refused_cells",
        "cells",
        "cells refused by the memory itself; ports also count the rest of their frames",
        |memory| Some(memory.queues.iter().map(|queue: &QueueResult| queue.counters.refused).sum()),
    ),
    Memory::count(
        "pushed_out_cells",
        "cells",
        "waiting cells removed by pool policies, including the rest of their packets",
        |memory| Some(memory.queues.iter().map(|queue: &QueueResult| queue.counters.pushed_out).sum()),
    ),
    Memory::count("pauses", "1", "number of pauses of the links that feed the memory", |memory| {
        Some(memory.queues.iter().map(|queue: &QueueResult| queue.counters.pauses).sum())
    }),
    Memory::count(
        "replaced_results",
        "1",
        "results of policy formulas that were not numbers and were replaced",
        |memory| Some(memory.pools.iter().map(|pool: &PoolResult| pool.replaced_results).sum()),
    )
    .printed("formula results replaced", When::Present),
];

/// Returns a percentile of the memory's occupancy over time. `share` is in thousandths.
fn percentile(memory: &MemoryResult, share: u16) -> Option<u64> {
    memory.occupancy.percentile(share).map(u64::from)
}
