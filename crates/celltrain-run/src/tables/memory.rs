//! Measures of a memory that ports share.

use celltrain_core::metrics::{MemoryResult, PoolResult, QueueResult};

use crate::measure::{Measure, When};

type Memory = Measure<MemoryResult>;

/// Measures of one memory.
pub const MEMORY: &[Memory] = &[
    Memory::text("name", "the memory", |memory| &memory.name),
    Memory::count("cells", "cells", "cells that fit into it", |memory| Some(memory.cells.into()))
        .printed("cells", When::Always),
    Memory::count("max_used_cells", "cells", "the most cells that were ever in it", |memory| {
        Some(memory.max_used_cells.into())
    })
    .printed("most used", When::Always),
    Memory::count("used_cells", "cells", "cells in it at the end", |memory| Some(memory.used_cells.into())),
    Memory::count("max_pool_cells", "cells", "the most cells ever taken of the shared part of any pool", |memory| {
        memory.pools.iter().map(|pool: &PoolResult| u64::from(pool.max_used_cells)).max()
    }),
    Memory::count("refused_cells", "cells", "cells that found no place in it", |memory| {
        Some(memory.queues.iter().map(|queue: &QueueResult| queue.counters.refused).sum())
    })
    .printed("refused", When::Always),
];
