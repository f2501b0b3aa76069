//! Time series: the table of all series, the selection of series to record, and the recorded values.

use typed_index_collections::{TiVec, ti_vec};

use celltrain_core::index::{FlowIndex, LinkIndex, MemoryIndex, VcIndex};
use celltrain_core::memory::QueueIndex;
use celltrain_core::network::{Flow, Network};
use celltrain_core::probe::{Recorder, SeriesChoice};
use celltrain_core::units::Duration;
use serde_json::{Value, json};

/// A time series that can be selected for recording.
pub struct Series {
    /// Its name.
    pub name: &'static str,
    /// Meaning, in one line.
    pub meaning: &'static str,
    /// Entities for each of which the series has columns.
    pub over: Over,
    /// Measures of the series.
    pub columns: &'static [Column],
    choose: fn(&mut SeriesChoice),
}

/// One measure of a series.
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Unit of the measure; `1` for pure numbers.
    pub unit: &'static str,
    /// Meaning, in one line.
    pub meaning: &'static str,
    values: Values,
}

/// Entities for which a series has columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Ports that were selected for the recording.
    Ports,
    /// Pairs of a selected port and a connection.
    PortFlows,
    /// All connections.
    Flows,
    /// Connections whose congestion windows are known. A real stack may not report its window.
    WindowFlows,
    /// Connections whose data VC is rate-controlled.
    RateFlows,
    /// Connections whose packets are queued at the edge of the ATM network.
    EdgeFlows,
    /// Queues and priority groups of memories shared by ports.
    Queues,
}

impl Over {
    /// Returns the key under which recorded series list the names of these entities.
    pub const fn name(self) -> &'static str {
        match self {
            Over::Ports => "ports",
            Over::PortFlows => "occupancy_columns",
            Over::Flows => "flows",
            Over::WindowFlows => "window_flows",
            Over::RateFlows => "rate_flows",
            Over::EdgeFlows => "edge_flows",
            Over::Queues => "memory_queues",
        }
    }

    /// Returns the number of columns that a recorder has for these entities.
    fn width(self, recorder: &Recorder, network: &Network) -> usize {
        match self {
            Over::Ports => recorder.links().len(),
            Over::PortFlows => {
                let routing = network.routing();
                recorder.links().iter().map(|&link| routing.vcs[link].len()).sum()
            }
            Over::Flows | Over::WindowFlows => network.flows.len(),
            Over::RateFlows => recorder.rate_flows().count(),
            Over::EdgeFlows => recorder.edge_flows().count(),
            Over::Queues => recorder.queues().len(),
        }
    }

    /// Returns the reason why a network may have none of these entities, so that a series would be empty.
    fn lacking(self) -> Option<&'static str> {
        match self {
            Over::Ports | Over::PortFlows | Over::Flows | Over::WindowFlows => None,
            Over::RateFlows => Some("no connection sends its data on an ABR VC; add a table [vc.NAME.abr]"),
            Over::EdgeFlows => Some("no connection crosses an edge device or uses an ABR VC"),
            Over::Queues => Some("no ports share a memory; add a table [switch.NAME.memory]"),
        }
    }
}

/// Reads a measure from a recorder. There is one variant for each type of value.
enum Values {
    Counts(fn(&mut Recorder) -> &mut Vec<u32>),
    Bytes(fn(&mut Recorder) -> &mut Vec<u64>),
    Numbers(fn(&mut Recorder) -> &mut Vec<f64>),
}

/// Recorded values of a measure: one row per sample, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub enum Array {
    /// Whole numbers below 2^32.
    Counts(Vec<u32>),
    /// Whole numbers below 2^64.
    Bytes(Vec<u64>),
    /// Numbers.
    Numbers(Vec<f64>),
}

impl Column {
    /// Returns the name of the column's Arrow type.
    pub const fn kind(&self) -> &'static str {
        match self.values {
            Values::Counts(_) => "uint32",
            Values::Bytes(_) => "uint64",
            Values::Numbers(_) => "float64",
        }
    }

    fn take(&self, recorder: &mut Recorder) -> Array {
        match self.values {
            Values::Counts(of) => Array::Counts(std::mem::take(of(recorder))),
            Values::Bytes(of) => Array::Bytes(std::mem::take(of(recorder))),
            Values::Numbers(of) => Array::Numbers(std::mem::take(of(recorder))),
        }
    }
}

/// Creates the measures of a series from lines of kind, name, unit and meaning. The name is also the name of the
/// recorder's field.
macro_rules! columns {
    ($($kind:ident $name:ident, $unit:literal, $meaning:literal;)+) => {
        &[$(Column {
            name: stringify!($name),
            unit: $unit,
            meaning: $meaning,
            values: Values::$kind(|of| &mut of.$name),
        }),+]
    };
}

/// All time series that can be recorded.
pub const SERIES: &[Series] = &[
    Series {
        name: "queue",
        meaning: "number of cells that wait at each chosen port",
        over: Over::Ports,
        columns: columns! {
            Counts queue_cells, "cells", "waiting cells, without the cell in service";
            Counts queue_cells_least, "cells", "smallest number of cells waiting since the previous sample";
            Counts queue_cells_largest, "cells", "largest number of cells waiting since the previous sample";
        },
        choose: |choice| choice.queue = true,
    },
    Series {
        name: "occupancy",
        meaning: "number of waiting cells of each connection at the chosen ports",
        over: Over::PortFlows,
        columns: columns! { Counts occupancy_cells, "cells", "number of cells of the connection that wait at the port"; },
        choose: |choice| choice.occupancy = true,
    },
    Series {
        name: "cwnd",
        meaning: "congestion window and slow start threshold of each connection, unless a real stack hides its window",
        over: Over::WindowFlows,
        columns: columns! {
            Numbers cwnd_segments, "segments", "congestion window";
            Numbers ssthresh_segments, "segments", "slow start threshold; 0 with a real stack";
        },
        choose: |choice| choice.windows = true,
    },
    Series {
        name: "delivered",
        meaning: "bytes of each connection delivered to its application since the start",
        over: Over::Flows,
        columns: columns! {
            Bytes delivered_bytes, "bytes", "bytes delivered to the application since the start, without duplicates";
        },
        choose: |choice| choice.delivered = true,
    },
    Series {
        name: "acr",
        meaning: "allowed cell rate (ACR) of each ABR connection's data",
        over: Over::RateFlows,
        columns: columns! { Numbers acr_mbps, "Mb/s", "ACR, counting cell headers"; },
        choose: |choice| choice.rates = true,
    },
    Series {
        name: "edge",
        meaning: "packets of each connection at its edge device or ABR source, and the state of its discard algorithm",
        over: Over::EdgeFlows,
        columns: columns! {
            Counts edge_packets, "packets", "QL: packets at the edge device, or at the ABR source";
            Counts edge_phase, "1", "phase of the adaptive discard algorithm";
            Numbers edge_ld_acr_mbps, "Mb/s", "LD_ACR of the adaptive discard algorithm";
            Counts edge_p_ctr, "packets", "P_CTR of the adaptive discard algorithm";
        },
        choose: |choice| choice.edges = true,
    },
    Series {
        name: "memory",
        meaning: "cells and threshold of each queue in a shared memory",
        over: Over::Queues,
        columns: columns! {
            Counts memory_cells, "cells", "cells of the queue, including its reserve and headroom";
            Counts memory_shared_cells, "cells", "q_i: the queue's cells in the shared part of the pool";
            Numbers memory_threshold_cells, "cells", "threshold of the queue in the shared part; empty if its policy has no threshold";
        },
        choose: |choice| choice.memories = true,
    },
];

/// Returns the descriptions of all series, as JSON.
pub fn described() -> Value {
    let line = |series: &Series| {
        let columns = series.columns.iter().map(|column| {
            json!({"name": column.name, "kind": column.kind(), "unit": column.unit, "meaning": column.meaning})
        });
        json!({
            "name": series.name,
            "meaning": series.meaning,
            "over": series.over.name(),
            "columns": columns.collect::<Vec<_>>(),
        })
    };
    SERIES.iter().map(line).collect()
}

/// Selection of the series to record, their ports and the sampling step.
#[derive(Clone)]
pub struct Trace {
    series: Vec<&'static Series>,
    links: Option<Vec<String>>,
    step: Duration,
    /// True if the user specified the sampling step.
    is_given: bool,
}

/// Default number of samples per series: enough for a plot at screen resolution.
const SAMPLES: u64 = 1000;

/// Maximum number of samples per series. A laptop can still draw a million samples of every series.
const MAX_SAMPLES: u64 = 1_000_000;

/// Maximum number of recorded values. This many values take about 800 MB.
const MAX_VALUES: u64 = 100_000_000;

impl Trace {
    /// Creates a trace of the named series at `links` (by default the bottleneck), for runs of `duration`. Returns
    /// `None` if no series is named.
    ///
    /// # Errors
    ///
    /// Returns a message if the name of a series or the step is invalid.
    pub fn new(
        duration: Duration,
        names: &[String],
        step: Option<&str>,
        links: Option<Vec<String>>,
    ) -> Result<Option<Self>, String> {
        let mut chosen = Vec::new();
        for name in names {
            let Some(series) = SERIES.iter().find(|series| series.name == *name) else {
                let known = SERIES.iter().map(|series| series.name).collect::<Vec<_>>().join(", ");
                return Err(format!("{name:?} is not a series; it must be one of {known}"));
            };
            if !chosen.iter().any(|known: &&Series| known.name == series.name) {
                chosen.push(series);
            }
        }
        if chosen.is_empty() {
            return Ok(None);
        }
        let is_given = step.is_some();
        let step = match step {
            Some(text) => text.parse::<Duration>().map_err(|error| format!("step = {text:?} is not {error}"))?,
            None => Duration { picoseconds: (duration.picoseconds / SAMPLES).max(1) },
        };
        if step == Duration::default() || duration.picoseconds / step.picoseconds > MAX_SAMPLES {
            let least = Duration { picoseconds: duration.picoseconds.div_ceil(MAX_SAMPLES).max(1) };
            return Err(format!(
                "step = \"{step}\" is too short: a run of {duration} may have {MAX_SAMPLES} samples after the first, so the \
                 smallest step is {least}"
            ));
        }
        Ok(Some(Self { series: chosen, links, step, is_given }))
    }

    /// Creates a recorder for a run of this network.
    ///
    /// # Errors
    ///
    /// Returns an error if a port does not exist or there are too many values.
    pub fn recorder(&self, network: &Network) -> Result<Recorder, String> {
        let between = self.step(network)?;
        let links = match &self.links {
            None => vec![network.bottleneck],
            Some(names) => {
                let find = |name: &String| {
                    let link = network.links.position(|link| link.name == *name);
                    let named_so = || (name == "bottleneck").then_some(network.bottleneck);
                    link.or_else(named_so).ok_or_else(|| format!("{name:?} is not a port of this network"))
                };
                names.iter().map(find).collect::<Result<_, _>>()?
            }
        };
        let mut choice = SeriesChoice::default();
        for series in &self.series {
            (series.choose)(&mut choice);
        }
        let recorder = Recorder::new(choice, links, between, network);
        self.values(network, &recorder)?;
        Ok(recorder)
    }

    /// Returns whether congestion windows are recorded.
    pub(crate) fn has_windows(&self) -> bool {
        self.series.iter().any(|series| series.name == "cwnd")
    }

    /// Returns the sampling step. The step is at least one clock tick, so that no two samples are taken at the same
    /// instant.
    fn step(&self, network: &Network) -> Result<Duration, String> {
        let tick = network.clock().tick();
        if self.is_given && self.step < tick {
            return Err(format!(
                "step = \"{}\" is shorter than a tick of the run's clock, so the smallest step is {tick}",
                self.step
            ));
        }
        Ok(self.step.max(tick))
    }

    pub(crate) fn values(&self, network: &Network, recorder: &Recorder) -> Result<u64, String> {
        let width = |series: &&Series| series.columns.len() * series.over.width(recorder, network);
        let columns: usize = self.series.iter().map(width).sum();
        let between = self.step(network)?;
        let samples = network.duration.picoseconds / between.picoseconds + 1;
        match samples.checked_mul(columns as u64).filter(|&values| values <= MAX_VALUES) {
            Some(values) => Ok(values),
            None => Err(format!(
                "step = \"{between}\" gives {samples} samples of {columns} values; at most {MAX_VALUES} values are recorded"
            )),
        }
    }

    /// Checks that no selected series would be empty because this network lacks the entities for which the series has
    /// columns.
    ///
    /// # Errors
    ///
    /// Returns an error with the first series that would be empty and the reason, or an error of [`Trace::recorder`].
    pub fn refuse_empty(&self, network: &Network) -> Result<(), String> {
        match self.empty(network)?.first() {
            Some((name, lacking)) => Err(format!("trace = {name:?} has nothing to record: {lacking}")),
            None => Ok(()),
        }
    }

    /// Returns the names of the series that would have no column for this network, each with the reason.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Trace::recorder`].
    pub fn empty(&self, network: &Network) -> Result<Vec<(&'static str, &'static str)>, String> {
        let recorder = self.recorder(network)?;
        let mut empty = Vec::new();
        for series in &self.series {
            if let Some(lacking) = series.over.lacking()
                && series.over.width(&recorder, network) == 0
            {
                empty.push((series.name, lacking));
            }
        }
        Ok(empty)
    }
}

/// Recorded series with the names of their columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Times of the samples, in seconds.
    pub time_s: Vec<f64>,
    /// Names of the recorded entities, by [`Over::name`].
    pub names: Vec<(&'static str, Vec<String>)>,
    /// Port and connection of each occupancy column.
    pub occupancy_columns: Vec<(String, String)>,
    /// Samples of each measure, with the name of the measure.
    pub arrays: Vec<(&'static str, Array)>,
}

impl Recorded {
    /// Converts the values that a recorder created by `trace` recorded in a run of this network.
    pub fn of(network: &Network, trace: &Trace, mut recorder: Recorder) -> Self {
        let shown = keep_shown_windows(network, &mut recorder);
        let clock = network.clock();
        let routing = network.routing();
        let port = |link: LinkIndex| network.links[link].name.clone();
        let mut of_vc: TiVec<VcIndex, Option<&str>> = ti_vec![None; network.vcs.len()];
        for flow in &network.flows {
            for vc in [flow.data_vc, flow.ack_vc] {
                of_vc[vc].get_or_insert(&flow.name);
            }
        }
        let flow_of = |vc: VcIndex| of_vc[vc].map_or_else(|| format!("vc{}", vc.number()), str::to_owned);
        let name = |flow: FlowIndex| network.flows[flow].name.clone();
        let links: Vec<LinkIndex> = recorder.links().to_vec();
        let queue = |&(memory, queue): &(MemoryIndex, QueueIndex)| {
            let memory = &network.memories[memory];
            network.queue_name(memory, &memory.queues[queue])
        };
        let columns = links.iter().flat_map(|&link| routing.vcs[link].iter().map(move |&vc| (link, vc)));
        Self {
            time_s: recorder.times.iter().map(|&time| clock.seconds(time)).collect(),
            occupancy_columns: columns.map(|(link, vc)| (port(link), flow_of(vc))).collect(),
            names: vec![
                (Over::Ports.name(), links.iter().copied().map(port).collect()),
                (Over::Flows.name(), network.flows.keys().map(name).collect()),
                (Over::WindowFlows.name(), shown.into_iter().map(name).collect()),
                (Over::RateFlows.name(), recorder.rate_flows().map(name).collect()),
                (Over::EdgeFlows.name(), recorder.edge_flows().map(name).collect()),
                (Over::Queues.name(), recorder.queues().iter().map(queue).collect()),
            ],
            arrays: trace
                .series
                .iter()
                .flat_map(|series| series.columns)
                .map(|column| (column.name, column.take(&mut recorder)))
                .collect(),
        }
    }
}

/// Removes the series of windows of each flow whose stack has reported no window. Returns the flows whose windows
/// remain.
fn keep_shown_windows(network: &Network, recorder: &mut Recorder) -> Vec<FlowIndex> {
    let is_shown = |(number, flow): (usize, &Flow)| {
        let mut windows = recorder.cwnd_segments.iter().skip(number).step_by(network.flows.len());
        !flow.outside || windows.any(|&cwnd| cwnd > 0.0)
    };
    let shown: Vec<bool> = network.flows.iter().enumerate().map(is_shown).collect();
    if shown.contains(&false) {
        for windows in [&mut recorder.cwnd_segments, &mut recorder.ssthresh_segments] {
            let mut shown = shown.iter().cycle();
            windows.retain(|_| shown.next() == Some(&true));
        }
    }
    network.flows.keys().zip(shown).filter(|(_, shown)| *shown).map(|(flow, _)| flow).collect()
}

#[cfg(test)]
mod tests;
