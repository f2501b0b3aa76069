//! Results and faults as the JSON the command line promises.

use std::collections::BTreeMap;

use celltrain_core::cost::Cost;
use celltrain_core::engine::Engine;
use celltrain_core::file_delay::FileDelay;
use celltrain_core::max_min;
use celltrain_core::metrics::{AbrResult, ContractResult, FlowResult, PortResult, RunResult};
use celltrain_core::network::{Network, NodeKind};
use celltrain_core::policy::PolicyConfig;
use celltrain_core::probe::{Recorder, SeriesChoice};
use celltrain_core::scheduler::SchedulerConfig;
use celltrain_core::stop::{Interrupted, Stop};
use celltrain_core::units::Duration;
use celltrain_scenario::document::{Document, SyntaxFault};
use celltrain_scenario::{Reading, Scenario, build};
use serde::ser::{Error, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::work::Unfinished;

/// What this core was built as.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Build {
    pub(crate) version: &'static str,
    pub(crate) profile: &'static str,
}

impl Build {
    pub(crate) fn this() -> Self {
        let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
        Self { version: env!("CARGO_PKG_VERSION"), profile }
    }
}

pub(crate) fn reading(reading: &Reading) -> String {
    let bytes = reading.footprint.map(|footprint| footprint.bytes);
    json!({
        "scenario": reading.scenario,
        "faults": reading.faults,
        "warnings": reading.warnings,
        "memory_bytes": bytes,
        "does_not_fit": reading.does_not_fit,
    })
    .to_string()
}

/// A text's values, and the line of every key.
pub(crate) fn document(document: Result<Document, Vec<SyntaxFault>>, source: &str) -> String {
    match document {
        Ok(document) => json!({"root": document.root, "lines": document.lines(), "faults": []}),
        Err(faults) => {
            let faults: Vec<_> = faults.into_iter().map(|fault| fault.reported(source)).collect();
            json!({"root": null, "lines": {}, "faults": faults})
        }
    }
    .to_string()
}

/// What of an answer's lists is wanted: by the list's name the columns, beside the rows' names. A list that is not there
/// is not wanted; `bottleneck` is that port's row alone.
pub(crate) type Wanted = BTreeMap<String, Vec<String>>;

/// A list of an answer, as far as it is wanted. Its rows are made one by one as they are written: all of them at once would
/// take more memory than the run.
struct Rows<'a, T, F> {
    wanted: Option<&'a Wanted>,
    list: &'a str,
    items: Vec<&'a T>,
    row: F,
    stop: &'a Stop<'a>,
}

impl<T, F: Fn(&T) -> Value> Serialize for Rows<'_, T, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = self.wanted.map(|wanted| wanted.get(self.list));
        let mut rows = serializer.serialize_seq(None)?;
        for item in self.items.iter().filter(|_| columns != Some(None)) {
            // A row takes as long as some ten things elsewhere.
            self.stop.steps(10).map_err(|_| S::Error::custom("told to stop"))?;
            let mut row = (self.row)(item);
            if let (Value::Object(row), Some(Some(columns))) = (&mut row, columns) {
                row.retain(|name, _| name == "name" || name == "vc" || columns.contains(name));
            }
            rows.serialize_element(&row)?;
        }
        rows.end()
    }
}

/// A run's result, to be written as JSON.
pub(crate) struct Answer<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) seed: u64,
    pub(crate) engine: Engine,
    pub(crate) result: &'a RunResult,
    pub(crate) engine_seconds: f64,
    /// The name of its port.
    pub(crate) bottleneck: &'a str,
    /// What of its lists is wanted; all of it when None.
    pub(crate) wanted: Option<&'a Wanted>,
    pub(crate) stop: &'a Stop<'a>,
}

impl Answer<'_> {
    /// Its text, unless it is told to stop: nothing else can go wrong, as it has names for keys.
    pub(crate) fn text(&self) -> Result<String, Interrupted> {
        serde_json::to_string(self).map_err(|_| Interrupted)
    }

    fn rows<'b, T, F: Fn(&T) -> Value>(&'b self, list: &'b str, items: &'b [T], row: F) -> Rows<'b, T, F> {
        Rows { wanted: self.wanted, list, items: items.iter().collect(), row, stop: self.stop }
    }
}

/// Keys in alphabetical order.
impl Serialize for Answer<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { scenario, seed, engine, result, engine_seconds, bottleneck, wanted, .. } = *self;
        let alone = wanted.is_some_and(|wanted| !wanted.contains_key("ports"));
        let mut ports = self.rows("ports", &result.ports, port_row);
        if alone {
            ports.list = "bottleneck";
            ports.items.retain(|port| port.name == bottleneck);
        }
        let cells = &result.cells;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("abr", &self.rows("abr", &result.abr, abr_row))?;
        map.serialize_entry("bottleneck", bottleneck)?;
        map.serialize_entry("build", &json!(Build::this()))?;
        map.serialize_entry("cell_hops", &result.cell_hops)?;
        map.serialize_entry(
            "cell_hops_per_second",
            &json!(result.cell_hops as f64 / engine_seconds.max(f64::MIN_POSITIVE)),
        )?;
        map.serialize_entry(
            "cells",
            &json!({
                "offered": cells.offered,
                "delivered": cells.delivered,
                "lost": cells.lost,
                "discarded": cells.discarded,
                "in_flight": cells.in_flight,
            }),
        )?;
        map.serialize_entry("contracts", &self.rows("contracts", &result.contracts, contract_row))?;
        map.serialize_entry("duration_s", &result.duration_s)?;
        map.serialize_entry("efficiency", &result.efficiency)?;
        map.serialize_entry("engine", engine.name())?;
        map.serialize_entry("engine_seconds", &engine_seconds)?;
        map.serialize_entry("fairness", &result.fairness)?;
        map.serialize_entry("fairness_max_min", &result.fairness_max_min)?;
        map.serialize_entry("file_delay_ms", &result.file_delay.map(file_delay_ms))?;
        map.serialize_entry("fingerprint", &result.fingerprint.to_string())?;
        map.serialize_entry("flows", &self.rows("flows", &result.flows, flow_row))?;
        map.serialize_entry("goodput_mbps", &result.goodput_mbps)?;
        map.serialize_entry("ports", &ports)?;
        map.serialize_entry("scenario", &scenario.name)?;
        map.serialize_entry("seed", &seed)?;
        map.end()
    }
}

fn flow_row(flow: &FlowResult) -> Value {
    json!({
        "name": flow.name,
        "goodput_mbps": flow.goodput_mbps,
        "max_min_mbps": flow.max_min_mbps,
        "throughput_mbps": flow.throughput_mbps,
        "delivered_bytes": flow.delivered_bytes,
        "segments_sent": flow.segments_sent,
        "retransmitted_segments": flow.retransmitted_segments,
        "repeated_segments": flow.repeated_segments,
        "timeouts": flow.timeouts,
        "fast_retransmits": flow.fast_retransmits,
        "cwnd_segments": flow.cwnd_segments,
        "traffic": flow.traffic,
        "packets_sent": flow.packets_sent,
        "packets_delivered": flow.packets_delivered,
        "completion_s": flow.completion_s,
        "file_delay_ms": flow.file_delay.map(file_delay_ms),
    })
}

fn port_row(port: &PortResult) -> Value {
    json!({
        "name": port.name,
        "policy": port.policy,
        "scheduler": port.scheduler,
        "buffer_cells": port.buffer_cells,
        "max_queue_cells": port.max_queue_cells,
        "queue_cells": port.queue_cells,
        "offered_cells": port.counters.offered,
        "forwarded_cells": port.counters.forwarded,
        "lost_cells": port.counters.lost(),
        "lost_overflow_cells": port.counters.lost_overflow,
        "lost_pushed_out_cells": port.counters.lost_pushed_out,
        "discarded_cells": port.counters.discarded(),
        "discarded_frame_cells": port.counters.discarded_frame,
        "discarded_remainder_cells": port.counters.discarded_remainder,
        "discarded_frames": port.counters.discarded_frames,
        "cut_frames": port.counters.cut_frames,
        "utilisation": port.utilisation,
    })
}

/// Memory of a row of an answer: its text, and what Python makes of it.
const BYTES_PER_ROW: u64 = 2048;

/// What putting an answer together takes of memory.
pub(crate) fn bytes(network: &Network, wanted: Option<&Wanted>) -> u64 {
    let lists = [("flows", network.flows.len()), ("ports", network.links.len())];
    let rows = lists.iter().filter(|(list, _)| wanted.is_none_or(|wanted| wanted.contains_key(*list)));
    rows.map(|&(_, rows)| rows as u64 * BYTES_PER_ROW).sum()
}

/// The network of a scenario: what there is to draw, and each flow's fair share.
pub(crate) fn network(scenario: &Scenario, stop: &Stop<'_>) -> Result<String, Interrupted> {
    let network = build::network_unless(scenario, scenario.seed, stop)?;
    let nodes = network.nodes.iter().map(|node| {
        let kind = match node.kind {
            NodeKind::Host => "host",
            NodeKind::Switch => "switch",
            NodeKind::EdgeDevice => "edge_device",
        };
        json!({"name": node.name, "kind": kind})
    });
    let links = network.links.iter().map(|link| {
        json!({
            "name": link.name,
            "from": link.from,
            "to": link.to,
            "rate": link.rate.to_string(),
            "delay": link.delay.to_string(),
            "rate_mbps": link.rate.bits_per_second as f64 / 1e6,
            "delay_s": link.delay.seconds(),
        })
    });
    let flows = network.flows.iter().zip(max_min::goodputs_mbps(&network, stop)?).map(|(flow, max_min_mbps)| {
        let path = &network.vcs[flow.data_vc].path;
        json!({"name": flow.name, "links": path, "max_min_mbps": max_min_mbps})
    });
    Ok(json!({
        "nodes": stop.map::<_, _, Vec<_>>(nodes, |node| node)?,
        "links": stop.map::<_, _, Vec<_>>(links, |link| link)?,
        "flows": stop.map::<_, _, Vec<_>>(flows, |flow| flow)?,
        "bottleneck": network.bottleneck,
    })
    .to_string())
}

fn file_delay_ms(delay: FileDelay) -> Value {
    json!({"mean": delay.mean_ms, "median": delay.median_ms, "p95": delay.p95_ms, "files": delay.files})
}

/// A VC with a contract.
fn contract_row(contract: &ContractResult) -> Value {
    json!({
        "vc": contract.name,
        "frames": contract.edge.frames,
        "eligible_frames": contract.edge.eligible_frames,
        "tagged_frames": contract.edge.tagged_frames,
        "nonconforming_cells": contract.edge.nonconforming_cells,
        "discarded_frames": contract.discarded_frames,
        "cut_frames": contract.cut_frames,
    })
}

/// A VC whose rate is controlled.
fn abr_row(abr: &AbrResult) -> Value {
    json!({
        "vc": abr.name,
        "acr_mbps": abr.acr_mbps,
        "forward_rm_cells": abr.forward_rm_cells,
        "out_of_rate_rm_cells": abr.out_of_rate_rm_cells,
        "returned_rm_cells": abr.returned_rm_cells,
        "rm_share": abr.rm_share,
    })
}

/// What every policy and every scheduler costs a switch, by name, and what that comes to.
pub(crate) fn costs() -> String {
    let table = |costs: Vec<(&'static str, Cost)>| -> serde_json::Map<String, Value> {
        costs.into_iter().map(|(name, cost)| (name.into(), json!({"parts": cost, "sums": cost.sums()}))).collect()
    };
    json!({"policies": table(PolicyConfig::costs()), "schedulers": table(SchedulerConfig::costs())}).to_string()
}

/// The scenarios of the benchmarks.
pub(crate) fn bench_cases() -> String {
    let row = |case: &celltrain_bench::Case| {
        json!({
            "scenario": case.name,
            "group": case.group.name(),
            "title": case.title,
            "duration_s": case.duration_s(),
            "toml": case.toml,
        })
    };
    json!(celltrain_bench::all().iter().map(row).collect::<Vec<_>>()).to_string()
}

pub(crate) fn measured(measured: &celltrain_bench::Measured) -> String {
    json!(measured).to_string()
}

/// Which series to record, where and how often.
#[derive(Clone)]
pub(crate) struct Trace {
    choice: SeriesChoice,
    links: Option<Vec<String>>,
    step: Duration,
}

/// Fine enough for a plot, coarse enough for a screen: a thousand samples where no step is given.
const SAMPLES: u64 = 1000;

impl Trace {
    /// None when nothing is to be recorded.
    pub(crate) fn new(
        scenario: &Scenario,
        names: &[String],
        step: Option<&str>,
        links: Option<Vec<String>>,
    ) -> Result<Option<Self>, String> {
        let mut choice = SeriesChoice::default();
        for name in names {
            match name.as_str() {
                "queue" => choice.queue = true,
                "occupancy" => choice.occupancy = true,
                "cwnd" => choice.windows = true,
                "delivered" => choice.delivered = true,
                "acr" => choice.rates = true,
                "edge" => choice.edges = true,
                other => {
                    return Err(format!(
                        "{other:?} is not a series; it must be one of queue, occupancy, cwnd, delivered, acr, edge"
                    ));
                }
            }
        }
        if choice == SeriesChoice::default() {
            return Ok(None);
        }
        let step = match step {
            Some(text) => text.parse::<Duration>().map_err(|error| format!("step = {text:?} is not {error}"))?,
            None => Duration { picoseconds: (scenario.duration.picoseconds / SAMPLES).max(1) },
        };
        if step == Duration::default() || scenario.duration.picoseconds / step.picoseconds > MAX_SAMPLES {
            return Err(format!("step = \"{step}\" must be above zero and give at most {MAX_SAMPLES} samples"));
        }
        Ok(Some(Self { choice, links, step }))
    }

    pub(crate) fn recorder(&self, network: &Network, stop: &Stop<'_>) -> Result<Recorder, Unfinished> {
        let links = match &self.links {
            None => vec![network.bottleneck],
            Some(names) => {
                let find = |name: &String| {
                    let link = network.links.iter().position(|link| link.name == *name);
                    let named_so = || (name == "bottleneck").then_some(network.bottleneck);
                    link.or_else(named_so).ok_or_else(|| format!("{name:?} is not a port of this network"))
                };
                names.iter().map(find).collect::<Result<_, _>>()?
            }
        };
        let recorder = Recorder::new(self.choice, links, self.step, network);
        self.values(network, &recorder, stop)?;
        Ok(recorder)
    }

    /// Memory of what is recorded of a run: of each value, as lists grow and are handed over.
    pub(crate) fn bytes(&self, network: &Network, stop: &Stop<'_>) -> Result<u64, Unfinished> {
        Ok(self.values(network, &self.recorder(network, stop)?, stop)? * 16)
    }

    /// How many values are recorded of a run.
    fn values(&self, network: &Network, recorder: &Recorder, stop: &Stop<'_>) -> Result<u64, Unfinished> {
        let links = recorder.links();
        let occupancies: usize = if self.choice.occupancy {
            let routing = network.routing(stop)?;
            links.iter().map(|&link| routing.vcs[link].len()).sum()
        } else {
            0
        };
        let columns = usize::from(self.choice.queue) * links.len()
            + occupancies
            + (2 * usize::from(self.choice.windows) + usize::from(self.choice.delivered)) * network.flows.len()
            + usize::from(self.choice.rates) * recorder.rate_flows().count()
            + 4 * usize::from(self.choice.edges) * recorder.edge_flows().count();
        let samples = network.duration.picoseconds / self.step.picoseconds + 1;
        if samples.saturating_mul(columns as u64) > MAX_VALUES {
            return Err(format!(
                "step = \"{}\" gives {samples} samples of {columns} values; at most {MAX_VALUES} values are recorded",
                self.step
            )
            .into());
        }
        Ok(samples * columns as u64)
    }

    /// A series that no connection of this network has is refused: nothing would be in it.
    pub(crate) fn refuse_empty(&self, network: &Network, stop: &Stop<'_>) -> Result<(), Unfinished> {
        let recorder = self.recorder(network, stop)?;
        if self.choice.rates && recorder.rate_flows().next().is_none() {
            let problem = "\"acr\" has nothing to record: no connection's data is an ABR VC, as [vc.NAME.abr] makes it";
            return Err(problem.to_string().into());
        }
        if self.choice.edges && recorder.edge_flows().next().is_none() {
            let problem = "\"edge\" has nothing to record: no connection crosses an edge device or is an ABR VC";
            return Err(problem.to_string().into());
        }
        Ok(())
    }
}

/// A million rows of every series is what a laptop still draws.
const MAX_SAMPLES: u64 = 1_000_000;

/// Some 800 MB of series.
const MAX_VALUES: u64 = 100_000_000;

/// Recorded series with the names of their columns.
pub(crate) struct Series {
    pub(crate) time_s: Vec<f64>,
    pub(crate) ports: Vec<String>,
    pub(crate) flows: Vec<String>,
    pub(crate) rate_flows: Vec<String>,
    pub(crate) edge_flows: Vec<String>,
    pub(crate) occupancy_columns: Vec<(String, String)>,
    pub(crate) queue_cells: Option<Vec<u32>>,
    pub(crate) occupancy_cells: Option<Vec<u32>>,
    pub(crate) cwnd_segments: Option<Vec<f64>>,
    pub(crate) ssthresh_segments: Option<Vec<f64>>,
    pub(crate) delivered_bytes: Option<Vec<u64>>,
    pub(crate) acr_mbps: Option<Vec<f64>>,
    pub(crate) edge_packets: Option<Vec<u32>>,
    pub(crate) edge_phase: Option<Vec<u32>>,
    pub(crate) edge_ld_acr_mbps: Option<Vec<f64>>,
    pub(crate) edge_p_ctr: Option<Vec<u32>>,
}

impl Series {
    pub(crate) fn of(
        network: &Network,
        trace: &Trace,
        recorder: Recorder,
        stop: &Stop<'_>,
    ) -> Result<Self, Interrupted> {
        let clock = network.clock();
        let routing = network.routing(stop)?;
        let port = |link: usize| network.links[link].name.clone();
        let mut of_vc: Vec<Option<&str>> = vec![None; network.vcs.len()];
        for flow in &network.flows {
            for vc in [flow.data_vc, flow.ack_vc] {
                of_vc[vc].get_or_insert(&flow.name);
            }
        }
        let flow_of = |vc: u32| of_vc[vc as usize].map_or_else(|| format!("vc{vc}"), str::to_string);
        let name = |flow: usize| network.flows[flow].name.clone();
        let links: Vec<usize> = recorder.links().to_vec();
        let columns = links.iter().flat_map(|&link| routing.vcs[link].iter().map(move |&vc| (link, vc)));
        Ok(Self {
            time_s: recorder.times.iter().map(|&time| clock.seconds(time)).collect(),
            occupancy_columns: columns.map(|(link, vc)| (port(link), flow_of(vc))).collect(),
            ports: links.into_iter().map(port).collect(),
            flows: (0..network.flows.len()).map(name).collect(),
            rate_flows: recorder.rate_flows().map(name).collect(),
            edge_flows: recorder.edge_flows().map(name).collect(),
            queue_cells: trace.choice.queue.then_some(recorder.queue_cells),
            occupancy_cells: trace.choice.occupancy.then_some(recorder.occupancy_cells),
            cwnd_segments: trace.choice.windows.then_some(recorder.cwnd_segments),
            ssthresh_segments: trace.choice.windows.then_some(recorder.ssthresh_segments),
            delivered_bytes: trace.choice.delivered.then_some(recorder.delivered_bytes),
            acr_mbps: trace.choice.rates.then_some(recorder.acr_mbps),
            edge_packets: trace.choice.edges.then_some(recorder.edge_packets),
            edge_phase: trace.choice.edges.then_some(recorder.edge_phase),
            edge_ld_acr_mbps: trace.choice.edges.then_some(recorder.edge_ld_acr_mbps),
            edge_p_ctr: trace.choice.edges.then_some(recorder.edge_p_ctr),
        })
    }
}
