//! One run of one scenario: how long, how many cells, how much memory.

use std::time::Instant;

use celltrain_core::engine::Engine;
use celltrain_core::probe::Nothing;
use serde::{Deserialize, Serialize};

use crate::Case;

/// What a run cost, with the keys `celltrain bench --json` has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The case's name.
    pub scenario: String,
    /// The engine's name.
    pub engine: String,
    /// Cells that crossed a link, counted once a link.
    pub cell_hops: u64,
    /// Wall-clock seconds from the network to its result.
    pub engine_seconds: f64,
    /// Cell-hops per second.
    pub cell_hops_per_second: f64,
    /// The most memory this process ever had, in MiB; `None` where the system does not tell.
    pub peak_rss_mib: Option<f64>,
}

impl Measured {
    /// Nanoseconds a cell-hop.
    pub fn ns_per_cell_hop(&self) -> f64 {
        1e9 / self.cell_hops_per_second
    }
}

/// Runs a case once. For a peak of memory that is its own, once a process.
pub fn measure(case: &Case, engine: Engine) -> Measured {
    let network = case.network();
    let begun = Instant::now();
    let result = engine.run(&network, &mut Nothing, |_| true).expect("nobody interrupts a benchmark");
    let engine_seconds = begun.elapsed().as_secs_f64();
    Measured {
        scenario: case.name.clone(),
        engine: engine.name().into(),
        cell_hops: result.cell_hops,
        engine_seconds,
        cell_hops_per_second: result.cell_hops as f64 / engine_seconds,
        peak_rss_mib: peak_rss_mib(),
    }
}

/// The most memory this process ever had, in MiB; `None` where the system does not tell.
pub fn peak_rss_mib() -> Option<f64> {
    // Not the peak of getrusage: on Linux a child starts with that of the process that made it.
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}
