//! Measures of a whole run.

use celltrain_core::engine::Engine;
use celltrain_core::metrics::RunResult;

use crate::measure::Measure;
use crate::requests::GroupMeasures;

/// A finished run and its settings.
pub struct EndedRun {
    /// The scenario's name.
    pub scenario: String,
    /// The seed for all random choices.
    pub seed: u64,
    /// The engine that ran it.
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
    /// Creates a finished run from its result, without measures of requests.
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

/// Measures of a whole run.
pub const RUN: &[Run] = &[
    Run::text("scenario", "the scenario's name", |run| &run.scenario),
    Run::count("seed", "1", "seed of every random choice of the run", |run| Some(run.seed)),
    Run::text("engine", "the engine that ran it", |run| run.engine.name()),
    Run::number("duration_s", "s", "simulated time", |run| Some(run.result.duration_s)),
    Run::number("measured_from_s", "s", "from when on rates and counters count", |run| {
        Some(run.result.measured_from_s)
    }),
    Run::number("measured_to_s", "s", "until when they count", |run| Some(run.result.measured_to_s)),
    Run::number(
        "deadlock_s",
        "s",
        "when links of shared memories had paused each other for ever, if they did",
        |run| run.result.deadlock.as_ref().map(|deadlock| deadlock.at_s),
    ),
    Run::number(
        "efficiency",
        "1",
        "sum of the goodputs of flows through the bottleneck, each as a share of the most that port could carry of it",
        |run| Some(run.result.efficiency),
    ),
    Run::number(
        "fairness",
        "1",
        "Jain's index of the goodputs of the flows of class UBR; of all flows where none is; undefined if nothing arrives",
        |run| run.result.fairness,
    ),
    Run::number(
        "fairness_max_min",
        "1",
        "Jain's index of the goodputs that fairness compares, each as a share of its max-min fair one; undefined if nothing \
         arrives",
        |run| run.result.fairness_max_min,
    ),
    Run::text("bottleneck", "the port that efficiency is measured at", |run| &run.bottleneck),
    Run::number("goodput_mbps", "Mb/s", "sum of the goodputs", |run| Some(run.result.goodput_mbps)),
    Run::number("file_delay_ms.mean", "ms", "mean delay of the files", |run| run.result.file_delay?.mean_ms),
    Run::number("file_delay_ms.median", "ms", "median delay of the files", |run| run.result.file_delay?.median_ms),
    Run::number("file_delay_ms.p95", "ms", "95 % of the files took no longer", |run| run.result.file_delay?.p95_ms),
    Run::count("file_delay_ms.files", "files", "files that are complete", |run| {
        run.result.file_delay.map(|delay| delay.files)
    }),
    Run::number(
        "timeouts_together",
        "1",
        "mean number of flows whose retransmission timers run out together, within one tick of the longest timer; undefined \
         if none runs out",
        |run| run.result.timeouts.together(),
    ),
    Run::count("cells.offered", "cells", "cells put in", |run| Some(run.result.cells.offered)),
    Run::count("cells.delivered", "cells", "cells that arrived", |run| Some(run.result.cells.delivered)),
    Run::count("cells.lost", "cells", "cells lost for want of room, or on links with loss rules", |run| {
        Some(run.result.cells.lost)
    }),
    Run::count("cells.discarded", "cells", "cells discarded by policies", |run| Some(run.result.cells.discarded)),
    Run::count("cells.in_flight", "cells", "cells under way at the end", |run| Some(run.result.cells.in_flight)),
    Run::count("cell_hops", "1", "cells that crossed a link, counted once a link", |run| Some(run.result.cell_hops)),
    Run::number("timing.engine_seconds", "s", "real time the engine took", |run| Some(run.engine_seconds)),
    Run::number("timing.cell_hops_per_second", "1/s", "cell-hops in a second of real time", |run| {
        Some(run.result.cell_hops as f64 / run.engine_seconds.max(f64::MIN_POSITIVE))
    }),
    Run::text("fingerprint", "16 hex digits that change with any segment's instant", |run| &run.fingerprint),
];
