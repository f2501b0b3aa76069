//! Measures of a whole run.

use celltrain_core::engine::Engine;
use celltrain_core::metrics::RunResult;
use celltrain_core::port::PortCounters;

use crate::measure::{Measure, When};
use crate::requests::GroupMeasures;

/// A finished run and its settings.
pub struct EndedRun {
    /// The scenario's name.
    pub scenario: String,
    /// The seed for all random choices of the run.
    pub seed: u64,
    /// The engine that executed the run.
    pub engine: Engine,
    /// Name of the port at which efficiency is measured.
    pub bottleneck: String,
    /// Real time in seconds that the engine took.
    pub engine_seconds: f64,
    /// Measured results.
    pub result: RunResult,
    /// Measures of groups of requests.
    pub requests: Vec<GroupMeasures>,
    /// Fingerprint of the result as 16 hex digits.
    fingerprint: String,
}

impl EndedRun {
    /// Creates a finished run from its result. The new run has no measures of requests yet.
    pub fn new(
        scenario: String,
        seed: u64,
        engine: Engine,
        bottleneck: String,
        engine_seconds: f64,
        result: RunResult,
    ) -> Self {
        let fingerprint = result.fingerprint.to_string();
        Self { scenario, seed, engine, bottleneck, engine_seconds, result, requests: Vec::new(), fingerprint }
    }
}

type Run = Measure<EndedRun>;

/// Sums a number over all ports.
fn of_ports(run: &EndedRun, cells: fn(&PortCounters) -> u64) -> u64 {
    run.result.ports.iter().map(|port| cells(&port.counters)).sum()
}

fn on_links(run: &EndedRun) -> u64 {
    run.result.losses.iter().map(|link| link.counters.lost).sum()
}

/// Measures of a whole run.
pub const RUN: &[Run] = &[
    Run::text("scenario", "the scenario's name", |run| &run.scenario),
    Run::count("seed", "1", "seed of every random choice of the run", |run| Some(run.seed)),
    Run::text("engine", "engine that ran the scenario", |run| run.engine.name()),
    Run::number("duration_s", "s", "simulated time", |run| Some(run.result.duration_s)),
    Run::number("measured_from_s", "s", "start of the measured time", |run| Some(run.result.measured_from_s)),
    Run::number("measured_to_s", "s", "end of the measured time", |run| Some(run.result.measured_to_s)),
    Run::number("deadlock_s", "s", "time at which paused links deadlocked; null without deadlock", |run| {
        run.result.deadlock.as_ref().map(|deadlock| deadlock.at_s)
    }),
    Run::number(
        "efficiency",
        "1",
        "total goodput through the bottleneck, as a share of its capacity for payload",
        |run| Some(run.result.efficiency),
    ),
    Run::number("fairness", "1", "Jain's fairness index of the goodputs of UBR flows, or of all flows", |run| {
        run.result.fairness
    }),
    Run::number("fairness_max_min", "1", "Jain's fairness index of goodputs relative to max-min fair shares", |run| {
        run.result.fairness_max_min
    }),
    Run::text("bottleneck", "port at which efficiency is measured", |run| &run.bottleneck),
    Run::number("goodput_mbps", "Mb/s", "total goodput of all flows", |run| Some(run.result.goodput_mbps)),
    Run::number("file_delay_ms.mean", "ms", "mean delay of the files", |run| run.result.file_delay?.mean_ms),
    Run::number("file_delay_ms.median", "ms", "median delay of the files", |run| run.result.file_delay?.median_ms),
    Run::number("file_delay_ms.p95", "ms", "95th percentile of the delay of the files", |run| {
        run.result.file_delay?.p95_ms
    }),
    Run::count("file_delay_ms.files", "files", "number of completed files", |run| {
        run.result.file_delay.map(|delay| delay.files)
    }),
    Run::number(
        "timeouts_together",
        "1",
        "mean number of flows whose retransmission timers expire together, within one tick",
        |run| run.result.timeouts.together(),
    ),
    Run::count("cells.offered", "cells", "cells sent into the network", |run| Some(run.result.cells.offered)),
    Run::count("cells.delivered", "cells", "cells that arrived at their destinations", |run| {
        Some(run.result.cells.delivered)
    }),
    Run::count("cells.lost", "cells", "cells lost in full buffers and on links with loss rules", |run| {
        Some(run.result.cells.lost)
    }),
    Run::count(
        "cells.discarded",
        "cells",
        "cells of frames that were refused whole or had already lost a cell",
        |run| Some(run.result.cells.discarded),
    ),
    Run::count("cells.in_flight", "cells", "cells in flight at the end", |run| Some(run.result.cells.in_flight)),
    Run::count("drops.lost_overflow", "cells", "cells that found no room at a port or in a memory", |run| {
        Some(of_ports(run, |port| port.lost_overflow))
    })
    .printed("no room", When::Present),
    Run::count("drops.lost_pushed_out", "cells", "waiting cells pushed out by other cells", |run| {
        Some(of_ports(run, |port| port.lost_pushed_out))
    })
    .printed("pushed out", When::Present),
    Run::count(
        "drops.discarded_frame",
        "cells",
        "cells of frames that the policy of a port refused as a whole",
        |run| Some(of_ports(run, |port| port.discarded_frame)),
    )
    .printed("frame refused by the port", When::Present),
    Run::count("drops.refused_by_memory", "cells", "cells of frames that a shared memory refused as a whole", |run| {
        Some(of_ports(run, |port| port.refused_by_memory))
    })
    .printed("frame refused by the memory", When::Present),
    Run::count("drops.discarded_remainder", "cells", "remaining cells of frames that had lost a cell", |run| {
        Some(of_ports(run, |port| port.discarded_remainder))
    })
    .printed("rest of a damaged frame", When::Present),
    Run::count("drops.lost_on_links", "cells", "cells lost on links with loss rules", |run| Some(on_links(run)))
        .printed("lost on links", When::Present),
    Run::count("drops.dropped", "cells", "all dropped cells: the sum of the other reasons in this group", |run| {
        Some(of_ports(run, |port| port.lost() + port.discarded()) + on_links(run))
    })
    .printed("all", When::Always),
    Run::count("cell_hops", "1", "cells forwarded over links, counted once per link", |run| Some(run.result.cell_hops)),
    Run::number("timing.engine_seconds", "s", "run time of the engine", |run| Some(run.engine_seconds)),
    Run::number("timing.cell_hops_per_second", "1/s", "cell-hops per second of real time", |run| {
        Some(run.result.cell_hops as f64 / run.engine_seconds.max(f64::MIN_POSITIVE))
    }),
    Run::text("fingerprint", "hash of the exact times of all segments (16 hexadecimal digits)", |run| &run.fingerprint),
];
