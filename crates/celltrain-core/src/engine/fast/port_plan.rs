//! Selects the implementation of each contended port, once before the run. `celltrain run FILE --explain-plan` prints
//! the selection.

use typed_index_collections::TiVec;

use super::contended_port::ContendedPort;
use super::ingress::MOST_INPUTS;
use super::output::Timing;
use super::output_buffer::OutputBuffer;
use super::parallel::Partition;
use super::plan::{Plan, Role};
use super::port_builder::PortSet;
use super::train_port::TrainPort;
use crate::cancellation::{CancellationToken, Interrupted};
use crate::index::{LinkIndex, MemoryIndex};
use crate::network::{LinkTimes, Network, Next, Routing};
use crate::rate_control::RateControl;
use crate::scheduler::BacklogSensitivity;
use crate::units::{Clock, Time};

/// Rule by which the implementation of contended ports is selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortMode {
    /// The implementation that is expected to be faster.
    #[default]
    Planned,
    /// Trains everywhere, for tests and measurements.
    Trains,
    /// Streams of cells wherever possible, for tests and measurements.
    Streams,
}

/// Streams are used only if cells have no effect elsewhere within this many cell times; otherwise batches would consist
/// of a few cells.
pub(super) const FAR: u64 = 8;
/// Streams are used only if at least this many VCs cross the port, because few VCs often keep in step.
pub(super) const MANY: usize = 5;

/// The implementation of a contended port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PortPlan {
    /// [`TrainPort`](super::train_port::TrainPort): cells arrive and leave in trains.
    Trains,
    /// [`StreamPort`](super::contended_port::StreamPort): single cells, first in, first out.
    Stream,
    /// [`QueuePort`](super::contended_port::QueuePort): single cells, and queues whose order is determined later.
    Queues,
    /// [`AtOncePort`](super::contended_port::AtOncePort): single cells, each processed before it arrives.
    AtOnce,
    /// [`MemoryPorts`](super::memory_ports::MemoryPorts): single cells, together with the other ports of its memory.
    Memory,
}

/// Ways in which a port of trains may process several cells at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a way of its own")]
pub(super) struct TrainPlan {
    /// Overlapping trains may be admitted one after another. Each VC then has a queue of its own, the scheduler is not
    /// [`BacklogSensitivity::Exact`], no cell is marked, no allocator records arrivals, and the arrivals of an instant
    /// precede its departure.
    pub(super) any_order: bool,
    /// The order in which empty queues fill affects the scheduler.
    pub(super) fills_in_order: bool,
    /// A queue that is empty for less than a cell time affects the scheduler.
    pub(super) fills_exactly: bool,
    /// Cells of interleaved trains are admitted together. The port then tracks only the number of waiting cells, and
    /// the departure of a single cell has no effect.
    pub(super) interleaves: bool,
    /// Cells of trains in step may be lost in rounds. The port then tracks only the number of waiting cells, and losing
    /// a cell does not affect others.
    pub(super) loses_in_rounds: bool,
}

impl TrainPlan {
    pub(super) fn of(buffer: &OutputBuffer, timing: &Timing) -> Self {
        let sensitivity = buffer.backlog_sensitivity();
        let fills_exactly = sensitivity.is_some_and(|(sensitivity, _)| sensitivity == BacklogSensitivity::Exact);
        Self {
            any_order: sensitivity.is_some_and(|(_, is_one_a_vc)| is_one_a_vc)
                && !fills_exactly
                && !timing.marks()
                && !timing.notes
                // Otherwise an arrival at an empty queue would precede the departure of its instant.
                && !timing.serve_first,
            fills_in_order: sensitivity == Some((BacklogSensitivity::Order, true)),
            fills_exactly,
            interleaves: !buffer.keeps_queue && !timing.every_cell_matters,
            loses_in_rounds: buffer.admission.loses_single_cells() && !buffer.keeps_queue,
        }
    }
}

/// Everything from which the contended ports of a run are built.
pub(super) struct PortBuilder<'a> {
    pub(super) network: &'a Network,
    pub(super) routing: Routing,
    pub(super) times: TiVec<LinkIndex, LinkTimes>,
    pub(super) rate_control: RateControl,
    pub(super) plan: Plan,
    pub(super) end: Time,
    pub(super) clock: Clock,
    /// The partition simulated here; `None` for the whole network.
    pub(super) partition: Option<Partition<'a>>,
    mode: PortMode,
    /// True if a probe looks at queues during the run.
    pub(super) is_looked_at: bool,
    pub(super) token: &'a CancellationToken<'a>,
}

impl<'a> PortBuilder<'a> {
    /// Makes the plan of a run. If queues are looked at during the run, `traced` has the ports whose ranges are read.
    pub(super) fn new(
        network: &'a Network,
        mode: PortMode,
        traced: Option<&[LinkIndex]>,
        partition: Option<Partition<'a>>,
        token: &'a CancellationToken<'a>,
    ) -> Result<Self, Interrupted> {
        let clock = network.clock();
        token.check()?;
        let routing = network.routing();
        let times = LinkTimes::of(network, clock);
        let rate_control = RateControl::new(network, &routing, clock, token)?;
        let partition_of = |node| partition.map_or(0, |partition| partition.partitioning.of(node));
        token.check()?;
        let plan = Plan::new(network, &routing, &rate_control, &times, partition_of, traced.unwrap_or_default());
        let (end, is_looked_at) = (network.end(clock), traced.is_some());
        Ok(Self { network, routing, times, rate_control, plan, end, clock, partition, mode, is_looked_at, token })
    }

    /// Selects the implementation of a port. Single cells are faster if cells arrive or leave one by one, because a
    /// contended port feeds the port or follows it. Elsewhere trains stay whole. `is_plain` is true if the port is
    /// first in, first out, and a departure time is only a sum.
    pub(super) fn port_plan(&self, link: LinkIndex, timing: &Timing, is_plain: bool) -> (PortPlan, String) {
        if let Some((memory, _)) = self.plan.in_memory(link) {
            return self.memory_plan(memory);
        }
        let upstream = self.plan.upstream.of(link);
        let can_gain = timing.every_cell_matters || upstream.iter().any(|&from| self.brings_cells(from));
        let is_far = timing.least_lead.0 >= timing.cell_time.0.saturating_mul(FAR);
        let is_crossed_by_many = self.routing.vcs[link].len() >= MANY;
        let is_last_behind_one = !timing.every_cell_matters && upstream.len() == 1;
        let at_once = is_last_behind_one
            && is_plain
            && !self.is_looked_at
            && self.brings_cells(upstream[0])
            && self.are_together(self.beginning(upstream[0]), link);
        let cells = match (at_once, is_plain) {
            (true, _) => PortPlan::AtOnce,
            (_, true) => PortPlan::Stream,
            _ => PortPlan::Queues,
        };
        let trains = PortPlan::Trains;
        match self.mode {
            PortMode::Trains => (trains, "forced for a test".into()),
            _ if upstream.len() > MOST_INPUTS => (trains, format!("more than {MOST_INPUTS} links feed it")),
            PortMode::Streams => (cells, "forced for a test".into()),
            _ if !can_gain => (trains, "no other contended port feeds it or follows, so trains stay whole".into()),
            _ if is_last_behind_one && !timing.notes => {
                (cells, "one link from a contended port feeds it, and all its cells go to hosts".into())
            }
            _ if !is_far => (trains, format!("its cells have an effect elsewhere within {FAR} cell times")),
            _ if !is_crossed_by_many => (trains, format!("fewer than {MANY} VCs cross it, which often keep in step")),
            PortMode::Planned => {
                (cells, "another contended port feeds it or follows, so single cells come or go".into())
            }
        }
    }

    /// Returns the code that runs for the ports of a memory.
    pub(super) fn memory_plan(&self, memory: MemoryIndex) -> (PortPlan, String) {
        let (name, ports) = (&self.network.memories[memory].name, self.plan.memories[memory].ports.len());
        let why = match ports {
            1 => format!("it has memory {name} alone"),
            ports => format!("it shares memory {name}, whose {ports} ports are settled together"),
        };
        (PortPlan::Memory, why)
    }

    /// Returns whether the cells on a link come from a contended port, one by one. A transparent port has one feeder,
    /// so its cells come from wherever the feeder's stage begins.
    pub(super) fn brings_cells(&self, link: LinkIndex) -> bool {
        matches!(self.plan.roles[self.beginning(link)], Role::Contended(_))
    }

    /// Returns the link at which the stage that ends with this link begins.
    pub(super) fn beginning(&self, link: LinkIndex) -> LinkIndex {
        let mut from = link;
        while let (Role::Transparent, &[feeder]) = (self.plan.roles[from], self.plan.upstream.of(from)) {
            from = feeder;
        }
        from
    }

    /// Returns whether the same partition simulates the ports of both links. The answer is the same in every partition,
    /// so streams have the same numbers in all of them.
    fn are_together(&self, one: LinkIndex, other: LinkIndex) -> bool {
        let partition_of =
            |partition: Partition<'_>, link: LinkIndex| partition.partitioning.of(self.network.links[link].from);
        self.partition.is_none_or(|partition| partition_of(partition, one) == partition_of(partition, other))
    }

    /// Returns whether the port of a link is simulated here.
    pub(super) fn has(&self, link: LinkIndex) -> bool {
        self.partition.is_none_or(|partition| partition.has(self.network.links[link].from))
    }
}

/// A port's implementation and the reason for it, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortExplanation {
    /// The port's link.
    pub link: LinkIndex,
    /// The implementation, such as `trains`.
    pub code: &'static str,
    /// The port's methods for processing several cells at once.
    pub details: Vec<&'static str>,
    /// The reason for choosing it.
    pub why: String,
    /// The names of the ports and hosts that the port's cells reach next.
    pub feeds: Vec<String>,
}

const BY_REFERENCE: &str = "a memory pauses links, or its switch has too many inputs; the reference engine runs it all";

/// Explains, by link, which implementation each port of a network has if no probe looks at queues.
pub(in crate::engine) fn explain(
    network: &Network,
    token: &CancellationToken<'_>,
) -> Result<Vec<PortExplanation>, Interrupted> {
    let builder = PortBuilder::new(network, PortMode::default(), None, None, token)?;
    let PortSet { ports, plans, .. } = builder.ports()?;
    let PortBuilder { plan, routing, .. } = builder;
    let is_supported = super::supports(network);
    let explain = |link: LinkIndex| {
        let (code, details, why) = match plan.roles[link] {
            _ if !is_supported => ("reference", Vec::new(), BY_REFERENCE.to_string()),
            Role::Host(_) => ("host", Vec::new(), "frames leave a host whole and in order".to_string()),
            Role::Shaped(_) => ("shaped", Vec::new(), "it sends packets at the rates of its VCs".to_string()),
            Role::Transparent => (
                "transparent",
                Vec::new(),
                "one link feeds it, no faster than its own, so no cell ever waits".to_string(),
            ),
            Role::Contended(port) => {
                let (plan, reason) = &plans[port];
                (plan.name(), details(&ports[port]), reason.clone())
            }
        };
        let mut feeds = Vec::new();
        for next in &routing.next[link] {
            let name = match *next {
                Next::Host { .. } => &network.nodes[network.links[link].to].name,
                Next::Port { link, .. } => &network.links[link].name,
            };
            if !feeds.contains(name) {
                feeds.push(name.clone());
            }
        }
        PortExplanation { link, code, details, why, feeds }
    };
    Ok(network.links.keys().map(explain).collect())
}

impl PortPlan {
    fn name(self) -> &'static str {
        match self {
            PortPlan::Trains => "trains",
            PortPlan::Stream => "stream",
            PortPlan::Queues => "queues",
            PortPlan::AtOnce => "at once",
            PortPlan::Memory => "memory",
        }
    }
}

fn details(port: &ContendedPort) -> Vec<&'static str> {
    let ContendedPort::Trains(TrainPort { output, plan, .. }) = port else { return Vec::new() };
    let queue = match (output.buffer.keeps_queue, output.defers_order, output.buffer.merges()) {
        (false, ..) => "counts cells",
        (_, true, _) => "defers the order of departures",
        (.., true) => "reassembles frames of merging VCs",
        _ => "keeps a queue",
    };
    let ways = [
        (true, queue),
        (plan.any_order, "any order"),
        (plan.interleaves, "interleaves"),
        (plan.loses_in_rounds, "loses in rounds"),
    ];
    ways.into_iter().filter_map(|(has, way)| has.then_some(way)).collect()
}
