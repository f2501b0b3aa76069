//! Resolves the pools of a memory, and the number of cells in each pool.

use celltrain_core::memory::{PoolConfig, PoolIndex, QueueConfig, QueueIndex, Side};
use typed_index_collections::TiVec;

use super::Resolver;
use crate::memory_options::PoolOptions;
use crate::scope::Scope;

impl Resolver<'_> {
    /// Determines the number of cells of every pool, and checks that the pools fit into the memory.
    pub(super) fn pools(
        &self,
        queues: &TiVec<QueueIndex, QueueConfig>,
        scope: &mut Scope<'_>,
    ) -> TiVec<PoolIndex, PoolConfig> {
        let all = u64::from(self.options.cells);
        for side in [Side::Egress, Side::Ingress] {
            let Taken { reserves, headrooms, pools } = self.taken(side, queues);
            let beyond_pools = reserves.saturating_add(headrooms);
            if beyond_pools > all {
                let problem = format!(
                    "is less than the reserves and headrooms of the {} side, {reserves} and {headrooms} cells; make \
                     the memory larger, or reduce these",
                    side_name(side)
                );
                scope.at("cells").once(|scope| scope.refuse_value(all, problem));
                continue;
            }
            let mut without: Vec<&str> = Vec::new();
            for (name, pool) in self.options.pool.iter().filter(|(_, pool)| pool.side == side) {
                let Some(cells) = pool.cells else {
                    without.push(name);
                    continue;
                };
                if u64::from(cells) > all {
                    let problem = format!("is larger than the memory, which has {all} cells");
                    scope.at("pool").at(name).at("cells").refuse_value(cells, problem);
                } else if pools.saturating_add(beyond_pools) > all {
                    let problem = format!(
                        "is too large: the pools of the {} side have {pools} cells, reserves {reserves} and headrooms \
                         {headrooms}, but the whole memory has only {all}; leave the key cells out to use the remaining \
                         cells",
                        side_name(side)
                    );
                    scope.at("pool").at(name).at("cells").refuse_value(cells, problem);
                }
            }
            if let [first, second, ..] = without[..] {
                let problem = format!("is missing; {first} and {second} cannot both use the remaining cells");
                scope.at("pool").at(second).at("cells").refuse(problem);
            } else if let [only] = without[..]
                && pools.saturating_add(beyond_pools) == all
            {
                let problem = "is missing, but the other pools, reserves and headrooms leave no cells of the memory";
                scope.at("pool").at(only).at("cells").refuse(problem);
            }
        }
        let pool = |(number, (name, options)): (usize, (&String, &PoolOptions))| {
            let PoolOptions { side, cells, headroom, ref policy } = *options;
            let Taken { reserves, headrooms, pools } = self.taken(side, queues);
            let rest = all.saturating_sub(reserves.saturating_add(headrooms).saturating_add(pools));
            let cells = cells.unwrap_or(u32::try_from(rest).unwrap_or(u32::MAX));
            let mut of_pools = scope.at("pool");
            let mut scope = of_pools.at(name);
            let is_lossy = queues.iter().all(|queue| usize::from(queue.pool) != number || queue.lossless.is_none());
            if let Some(headroom) = headroom.filter(|_| is_lossy) {
                let problem = "is for lossless groups, but the pool has none; write lossless = true and a headroom \
                               into an entry of queue";
                scope.at("headroom").refuse_value(headroom, problem);
            }
            let mut of_policy = scope.at("policy");
            let mut scope = of_policy.at(policy.name());
            if (policy.pushes_out() || policy.needs_predictions()) && side == Side::Ingress {
                scope.refuse(
                    "removes waiting cells, or follows a policy that removes them; this is possible only in a pool on \
                              the egress side; choose another policy",
                );
            }
            for fault in policy.check(cells) {
                scope.refuse_setting(fault);
            }
            PoolConfig { name: name.clone(), side, cells, headroom, policy: policy.clone() }
        };
        self.options.pool.iter().enumerate().map(pool).collect()
    }

    /// Adds up the cells that reserves, headrooms and pools of one side take from the memory.
    fn taken(&self, side: Side, queues: &TiVec<QueueIndex, QueueConfig>) -> Taken {
        let mut taken = Taken::default();
        for (number, pool) in self.options.pool.values().enumerate().filter(|(_, pool)| pool.side == side) {
            let own = || queues.iter().filter(|queue| usize::from(queue.pool) == number);
            let headrooms = own().filter_map(|queue| Some(queue.lossless?.headroom));
            taken.reserves = taken.reserves.saturating_add(sum(own().map(|queue| queue.reserve)));
            taken.headrooms = taken.headrooms.saturating_add(pool.headroom.map_or_else(|| sum(headrooms), u64::from));
            taken.pools = taken.pools.saturating_add(pool.cells.unwrap_or(0).into());
        }
        taken
    }
}

/// Numbers of cells that the ingress side or the egress side takes from the memory.
#[derive(Default)]
struct Taken {
    reserves: u64,
    headrooms: u64,
    /// Number of cells of the pools whose size is set.
    pools: u64,
}

fn sum(cells: impl Iterator<Item = u32>) -> u64 {
    cells.fold(0, |sum: u64, cells| sum.saturating_add(cells.into()))
}

fn side_name(side: Side) -> &'static str {
    match side {
        Side::Egress => "egress",
        Side::Ingress => "ingress",
    }
}
