//! Detects memory policies that refuse every cell although the shared part of the pool is empty.

use celltrain_core::aal5::CellFormat;
use celltrain_core::memory::formula::Config as Formula;
use celltrain_core::memory::{
    MemoryConfig, MemoryPolicyConfig, PoolIndex, PoolInfo, PoolQueue, QueueInfo, Verdict, View,
};
use celltrain_core::rng::Stream;
use celltrain_core::units::{Clock, Span, Time};
use typed_index_collections::{TiVec, ti_vec};

use super::reasons;

/// Maximum number of queues that are tested. A switch may have thousands of queues, almost all of which are alike.
const MOST_QUEUES: usize = 64;

/// Offers a cell of each queue to a pool while the pool's shared part is empty, and then while it contains a cell of
/// another queue. Returns the fault of the pool's policy if the policy refuses every cell of a queue.
pub fn probe(memory: &MemoryConfig, pool: PoolIndex, cell: CellFormat) -> Option<String> {
    let config = &memory.pools[pool];
    // Do not test a policy that uses predictions, which exist only during a run, or a Python class, because checking a
    // scenario must not execute a user's code.
    let is_unknown = matches!(config.policy, MemoryPolicyConfig::Python(_)) || config.policy.needs_predictions();
    if config.cells == 0 || is_unknown {
        return None;
    }
    let own = memory.queues.iter().filter(|queue| queue.pool == pool).take(MOST_QUEUES);
    let queues: TiVec<PoolQueue, QueueInfo> = (0..)
        .zip(own)
        .map(|(port, queue)| QueueInfo {
            priority: queue.priority,
            cell_time: Span(1_000_000),
            alpha: queue.alpha,
            threshold: queue.threshold,
            ..QueueInfo::at_port(port)
        })
        .collect();
    let rng = Stream::new(1, "liveness");
    let clock = Clock::exact(1_000_000_000_000);
    let info = PoolInfo { name: &config.name, cells: config.cells, queues: &queues, clock, cell, rng: &rng };
    let refused = |held: &TiVec<PoolQueue, u32>, queue: PoolQueue| {
        let view = View { cells: config.cells, used: held.iter().sum(), queues: held, now: Time(0) };
        let mut policy = config.policy.build(&info);
        policy.arrived(&view, queue, 1);
        (policy.admit(&view, queue, 1) == Verdict::Refuse).then(|| match &config.policy {
            MemoryPolicyConfig::Formula(formula) => why(formula, &info, &view, queue),
            _ => String::new(),
        })
    };
    let empty = ti_vec![0; queues.len()];
    let dead: Vec<String> = queues.keys().filter_map(|queue| refused(&empty, queue)).collect();
    if let Some(reason) = dead.first() {
        let which = if dead.len() == queues.len() {
            String::new()
        } else {
            format!(" of {} of the {} queues", dead.len(), queues.len())
        };
        return Some(format!("refuses every cell{which} while the pool is empty{reason}"));
    }
    let [first, second] = [0, 1].map(PoolQueue::new);
    if queues.len() > 1 && config.cells > 1 {
        let mut held = empty;
        held[second] = 1;
        if let Some(reason) = refused(&held, first) {
            return Some(format!("refuses every cell while a single cell of another queue is in the pool{reason}"));
        }
    }
    None
}

/// Returns a colon and the reason for a refusal by a formula; an empty text if there is no reason.
fn why(formula: &Formula, info: &PoolInfo<'_>, view: &View<'_>, queue: PoolQueue) -> String {
    let clauses = formula.why_refused(info, view, queue);
    // Give the advice only about comparisons of cells, because a tie between other values, such as priorities, needs a
    // different remedy.
    let is_about_cells = clauses.iter().any(|clause| clause.text.contains(['Q', 'q']));
    reasons(&clauses, if is_about_cells { "; add \"Q <= ... or\"" } else { "" })
}
