//! Replaces the settings in the result of a run.

use crate::metrics::RunResult;
use crate::network::Network;

impl RunResult {
    /// Replaces the settings of ports and memories in a result with the settings of another network whose run gives the
    /// same result ([`Certificate::covers`](super::Certificate::covers)).
    #[must_use]
    pub fn with_settings_of(mut self, network: &Network) -> Self {
        for (own, link) in self.ports.iter_mut().zip(&network.links) {
            (own.buffer_cells, own.policy, own.threshold_cells) = link.port_settings();
        }
        for (own, memory) in self.memories.iter_mut().zip(&network.memories) {
            own.cells = memory.cells;
            for (own, pool) in own.pools.iter_mut().zip(&memory.pools) {
                (own.policy, own.cells) = (pool.policy.name(), pool.cells);
            }
        }
        self
    }
}
