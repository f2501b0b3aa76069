//! Observation of runs without side effects: the interface of probes, and a probe that records time series.
//!
//! A probe gets only shared references and copies, so it cannot change a run's fingerprint.

use crate::edge_device::Phase;
use crate::end_systems::{Connection, EndSystems};
use crate::events::Observer;
use crate::index::{FlowIndex, LinkIndex, MemoryIndex, VcIndex};
use crate::memory::{Memory, QueueIndex};
use crate::network::Network;
use crate::queue_range::QueueRange;
use crate::rate_control::RateControl;
use crate::units::{CELL_BITS, Clock, Duration, Time};

/// An observer of a run. Every method has an empty default, so unused methods cost nothing.
pub trait Probe: Observer {
    /// Returns the next instant at which this probe takes a snapshot, if any.
    fn next_snapshot(&self) -> Option<Time> {
        None
    }

    /// Returns the ports whose ranges of queue lengths the probe reads ([`Queues::range`]). The list stays the same
    /// during a run.
    fn traced_ports(&self) -> &[LinkIndex] {
        &[]
    }

    /// Observes the network at `now`, after all events of this instant.
    fn snapshot(&mut self, now: Time, view: &NetworkView<'_>) {
        let _ = (now, view);
    }
}

impl<P: Probe> Probe for &mut P {
    fn next_snapshot(&self) -> Option<Time> {
        (**self).next_snapshot()
    }

    fn traced_ports(&self) -> &[LinkIndex] {
        (**self).traced_ports()
    }

    fn snapshot(&mut self, now: Time, view: &NetworkView<'_>) {
        (**self).snapshot(now, view);
    }
}

/// The network, as seen by a probe.
#[derive(Clone, Copy)]
pub struct NetworkView<'a> {
    /// The queues of the output ports.
    pub queues: &'a dyn Queues,
    /// The shaped ports, and the rates of their VCs.
    pub rate_control: &'a RateControl,
    /// The ends of all connections.
    pub end_systems: &'a EndSystems,
}

/// The queues of all output ports, in any engine.
pub trait Queues {
    /// Returns the number of cells waiting at the port of this link.
    fn occupancy(&self, link: LinkIndex) -> u32;

    /// Returns the smallest and largest number of cells waiting at the port of this link since the latest snapshot or
    /// the start of the run. The port must be one of [`Probe::traced_ports`]. The range includes lengths that occur
    /// only within an instant.
    fn range(&self, link: LinkIndex) -> QueueRange;

    /// Appends the number of waiting cells of each VC, by label, at the port of this link.
    fn per_vc(&self, link: LinkIndex, into: &mut Vec<u32>);

    /// Returns a memory shared by ports.
    fn memory(&self, memory: MemoryIndex) -> &Memory;
}

/// A probe that observes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Observer for Nothing {}

impl Probe for Nothing {}

/// Selection of series to record.
#[expect(clippy::struct_excessive_bools, reason = "each flag shows if one kind of event is recorded")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeriesChoice {
    /// Waiting cells at the chosen ports.
    pub queue: bool,
    /// Waiting cells of each VC at the chosen ports.
    pub occupancy: bool,
    /// cwnd and ssthresh of each connection.
    pub windows: bool,
    /// Delivered bytes of each flow.
    pub delivered: bool,
    /// ACR of each flow whose data VC is ABR; see [`Recorder::rate_flows`].
    pub rates: bool,
    /// Packets waiting to enter the ATM network, see [`Recorder::edge_flows`], and the state of the discard algorithm
    /// there.
    pub edges: bool,
    /// Cells and thresholds of the queues of shared memories.
    pub memories: bool,
}

/// Records series at a fixed step.
#[derive(Clone, Debug)]
pub struct Recorder {
    choice: SeriesChoice,
    links: Vec<LinkIndex>,
    /// Flows whose rate is controlled, with the VCs of their data.
    rates: Vec<(FlowIndex, VcIndex)>,
    /// Flows whose packets wait to enter the ATM network, with the VCs of their data.
    edges: Vec<(FlowIndex, VcIndex)>,
    queues: Vec<(MemoryIndex, QueueIndex)>,
    step: Duration,
    clock: Clock,
    /// Number of samples taken.
    taken: u64,
    end: Time,
    /// Times of the samples.
    pub times: Vec<Time>,
    /// Waiting cells, one row per sample, one column per chosen port.
    pub queue_cells: Vec<u32>,
    /// The smallest number of waiting cells since the previous sample, in the same layout as `queue_cells`.
    pub queue_cells_least: Vec<u32>,
    /// The largest number of waiting cells since the previous sample, in the same layout as `queue_cells`.
    pub queue_cells_largest: Vec<u32>,
    /// Waiting cells by VC, one row per sample, one column per label at each chosen port.
    pub occupancy_cells: Vec<u32>,
    /// cwnd in segments, one row per sample, one column per flow; 0 without TCP.
    pub cwnd_segments: Vec<f64>,
    /// ssthresh in segments, one row per sample, one column per flow.
    pub ssthresh_segments: Vec<f64>,
    /// Bytes delivered in order to the application since the start, each counted once; one row per sample, one column
    /// per flow.
    pub delivered_bytes: Vec<u64>,
    /// ACR in megabits per second, cell headers included; one row per sample, one column for each of `rate_flows`.
    pub acr_mbps: Vec<f64>,
    /// QL: packets at the edge device or ABR source, one row per sample, one column for each of `edge_flows`.
    pub edge_packets: Vec<u32>,
    /// Phase of the adaptive discard algorithm, 0 or 1, in the same layout; 0 for other algorithms.
    pub edge_phase: Vec<u32>,
    /// `LD_ACR` of the algorithm in megabits per second, including cell headers, in the same layout.
    pub edge_ld_acr_mbps: Vec<f64>,
    /// `P_CTR` of the algorithm, in the same layout.
    pub edge_p_ctr: Vec<u32>,
    /// Cells in each queue of a memory, one row per sample, one column for each of `queues`.
    pub memory_cells: Vec<u32>,
    /// Cells of each queue in the shared part of its pool, in the same layout.
    pub memory_shared_cells: Vec<u32>,
    /// Threshold of the queue in the shared part, in the same layout; NaN if its policy has no threshold.
    pub memory_threshold_cells: Vec<f64>,
}

impl Recorder {
    /// Creates a recorder that samples at 0, `step`, 2 `step` and so on until the end of a network's run, each rounded
    /// to the clock independently. It records queues and occupancies at the ports of `links`.
    pub fn new(choice: SeriesChoice, links: Vec<LinkIndex>, step: Duration, network: &Network) -> Self {
        assert!(step > Duration::default(), "a recorder steps forward");
        let clock = network.clock();
        let data = || network.flows.iter_enumerated().map(|(flow, of)| (flow, of.data_vc));
        let is_abr = |vc: VcIndex| network.vcs[vc].abr.is_some();
        let waits = |vc: VcIndex| is_abr(vc) || network.atm_part(&network.vcs[vc]).start > 0;
        Self {
            choice,
            links,
            rates: data().filter(|&(_, vc)| is_abr(vc)).collect(),
            edges: data().filter(|&(_, vc)| waits(vc)).collect(),
            queues: (network.memories.iter_enumerated())
                .flat_map(|(memory, config)| config.queues.keys().map(move |queue| (memory, queue)))
                .collect(),
            step,
            clock,
            taken: 0,
            end: network.end(clock),
            times: Vec::new(),
            queue_cells: Vec::new(),
            queue_cells_least: Vec::new(),
            queue_cells_largest: Vec::new(),
            occupancy_cells: Vec::new(),
            cwnd_segments: Vec::new(),
            ssthresh_segments: Vec::new(),
            delivered_bytes: Vec::new(),
            acr_mbps: Vec::new(),
            edge_packets: Vec::new(),
            edge_phase: Vec::new(),
            edge_ld_acr_mbps: Vec::new(),
            edge_p_ctr: Vec::new(),
            memory_cells: Vec::new(),
            memory_shared_cells: Vec::new(),
            memory_threshold_cells: Vec::new(),
        }
    }

    /// Returns the ports whose queues the recorder records, by link.
    pub fn links(&self) -> &[LinkIndex] {
        &self.links
    }

    /// Returns the flows whose data VC is ABR. They are the columns of the ACR series.
    pub fn rate_flows(&self) -> impl Iterator<Item = FlowIndex> {
        self.rates.iter().map(|&(flow, _)| flow)
    }

    /// Returns the flows whose packets wait to enter the ATM network: flows through an edge device, and flows whose
    /// host is itself an ABR source. They are the columns of the edge series.
    pub fn edge_flows(&self) -> impl Iterator<Item = FlowIndex> {
        self.edges.iter().map(|&(flow, _)| flow)
    }

    /// Returns the queues of shared memories. They are the columns of the memory series.
    pub fn queues(&self) -> &[(MemoryIndex, QueueIndex)] {
        &self.queues
    }
}

impl Observer for Recorder {}

impl Probe for Recorder {
    fn next_snapshot(&self) -> Option<Time> {
        let next = Time::default() + self.clock.span(Duration { picoseconds: self.step.picoseconds * self.taken });
        (next <= self.end).then_some(next)
    }

    fn traced_ports(&self) -> &[LinkIndex] {
        if self.choice.queue { &self.links } else { &[] }
    }

    fn snapshot(&mut self, now: Time, view: &NetworkView<'_>) {
        self.taken += 1;
        self.times.push(now);
        for &link in &self.links {
            if self.choice.queue {
                self.queue_cells.push(view.queues.occupancy(link));
                let QueueRange { least, largest } = view.queues.range(link);
                self.queue_cells_least.push(least);
                self.queue_cells_largest.push(largest);
            }
            if self.choice.occupancy {
                view.queues.per_vc(link, &mut self.occupancy_cells);
            }
        }
        if self.choice.windows {
            for connection in view.end_systems.connections() {
                let [cwnd, ssthresh] = connection.windows();
                self.cwnd_segments.push(cwnd);
                self.ssthresh_segments.push(ssthresh);
            }
        }
        if self.choice.delivered {
            self.delivered_bytes.extend(view.end_systems.connections().iter().map(Connection::delivered_bytes));
        }
        let place = |vc: VcIndex| {
            let place = view.rate_control.place(vc).expect("only rates of shaped VCs are recorded");
            (view.rate_control.port(place.link).expect("the cells of a shaped VC cross a shaped port"), place.label)
        };
        let mbps = |rate: f64| rate * CELL_BITS as f64 / 1e6;
        if self.choice.rates {
            for &(_, vc) in &self.rates {
                let (port, label) = place(vc);
                self.acr_mbps.push(mbps(port.source(label).expect("an ABR VC has a source").acr()));
            }
        }
        if self.choice.edges {
            for &(_, vc) in &self.edges {
                let (port, label) = place(vc);
                let state = port.discard_state(label);
                self.edge_packets.push(port.buffer().ql(label));
                self.edge_phase.push(state.map_or(0, |state| u32::from(state.phase == Phase::One)));
                self.edge_ld_acr_mbps.push(state.map_or(0.0, |state| mbps(state.ld_acr)));
                self.edge_p_ctr.push(state.map_or(0, |state| state.p_ctr));
            }
        }
        if self.choice.memories {
            for &(memory, queue) in &self.queues {
                let memory = view.queues.memory(memory);
                self.memory_cells.push(memory.held(queue));
                self.memory_shared_cells.push(memory.shared(queue));
                self.memory_threshold_cells.push(memory.threshold(queue, now).unwrap_or(f64::NAN));
            }
        }
    }
}
