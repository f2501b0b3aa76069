//! IP/ATM edge devices: the buffer of whole packets waiting to be sent as cells, and the algorithms that drop packets.
//!
//! Source: draft-jagan-e2e-traf-mgmt-00, section 4; `docs/mechanisms.md` 5. The buffer manages the queues, the counts
//! and the free space. A discard algorithm reads them and may drop packets. A new algorithm needs one file in this
//! directory, two lines in this file and a page in `docs/models/`.

mod packets;

pub mod adaptive_discard;
pub mod front_drop;
pub mod shared_adaptive_discard;
pub mod tail_drop;

pub use adaptive_discard::{AdaState, Phase};
pub use packets::{Cause, Packet, PacketOutcome, PacketStep, Packets};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cell::Run;
use crate::error::Fault;
use crate::index::Label;
use crate::registry;

registry! {
    /// The discard algorithm of an edge device in a scenario: a table whose only key is the algorithm's name.
    #[schemars(rename = "EdgeDiscard")]
    pub enum DiscardConfig(module::Config) {
        /// Tail drop: a packet that does not fit in the buffer is refused.
        tail_drop: TailDrop,
        /// Front drop: packets at the head of the queue are dropped to make room for an arriving packet.
        front_drop: FrontDrop,
        /// Adaptive Discard Algorithm: drops packets from the front when the queue is full, and when the VC's ACR has
        /// fallen considerably.
        adaptive_discard: AdaptiveDiscard,
        /// Adaptive Discard Algorithm for VCs that share one memory.
        shared_adaptive_discard: SharedAdaptiveDiscard,
    }

    /// Returns the kind of memory that the algorithm requires, or `None` if it supports both.
    pub fn memory(&self) -> Option<Memory> { |config| config.memory() }

    /// Checks the settings for a buffer that holds `mqs` packets (`None` if infinite).
    pub fn check(&self, mqs: Option<u32>) -> Vec<Fault> { |config| config.check(mqs) }

    /// Creates the algorithm for the given VCs, which have no packets yet.
    pub fn build(&self, packets: &Packets) -> Box<dyn Discard> { |config| Box::new(config.build(packets)) }

    /// Returns every algorithm with its default settings, for tests that hold for all algorithms.
    #[cfg(test)]
    pub(crate) fn samples() -> Vec<Self> { |mod discard| discard::Config::default().into() }
}

impl Default for DiscardConfig {
    fn default() -> Self {
        Self::TailDrop(tail_drop::Config {})
    }
}

/// The buffer of an edge device in a scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Edge")]
pub struct EdgeConfig {
    /// EB: buffer size in cells, for each VC or for all VCs together, depending on `memory`. Default: infinite.
    #[schemars(range(min = 1), extend("x-unit" = "cells"))]
    pub buffer: Option<u32>,
    /// Selects a separate buffer for each VC, or one buffer that all VCs share.
    pub memory: Memory,
    /// Algorithm that selects the packets to drop.
    pub discard: DiscardConfig,
}

/// Division of an edge device's buffer among VCs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "EdgeMemory")]
pub enum Memory {
    /// Each VC has its own buffer.
    #[default]
    PerVc,
    /// All VCs share one buffer.
    Shared,
}

impl Memory {
    fn name(self) -> &'static str {
        match self {
            Memory::PerVc => "per_vc",
            Memory::Shared => "shared",
        }
    }
}

impl EdgeConfig {
    /// Checks the settings for packets of at most `longest_packet_cells` cells. Keys in faults are relative to the
    /// edge's table, for example `discard.adaptive_discard.low_threshold`.
    pub fn check(&self, longest_packet_cells: u32) -> Vec<Fault> {
        let mut faults = Vec::new();
        if let Some(buffer) = self.buffer.filter(|&buffer| buffer < longest_packet_cells) {
            let problem = format!(
                "is smaller than a packet of {longest_packet_cells} cells; the buffer of an edge device must hold at least one packet"
            );
            faults.push(Fault::new("buffer", buffer, problem));
        }
        let name = self.discard.name();
        if let Some(memory) = self.discard.memory().filter(|&memory| memory != self.memory) {
            let problem = format!("does not go with `{name}`, which needs memory = \"{}\"", memory.name());
            faults.push(Fault::new("memory", format!("\"{}\"", self.memory.name()), problem));
        }
        // A buffer that holds no packet has its own error, so the thresholds are not checked against it.
        let mqs = self.buffer.map(|buffer| buffer / longest_packet_cells).filter(|&mqs| mqs > 0);
        let inner = self.discard.check(mqs).into_iter();
        faults.extend(inner.map(|fault| Fault { key: format!("discard.{name}.{}", fault.key), ..fault }));
        faults
    }
}

/// Interface of a discard algorithm. It may change its arguments only through [`Packets::drop_front`].
pub trait Discard: Send {
    /// Handles the arrival of a packet of `cells` cells on VC `vc`, whose ACR is up to date. `packets` does not include
    /// this packet yet. The packet is admitted if it fits afterwards, and otherwise refused.
    fn on_arrival(&mut self, packets: &mut Packets, vc: Label, cells: u32);

    /// Handles a change of the ACR of `vc`.
    fn on_rate(&mut self, packets: &mut Packets, vc: Label) {
        let _ = (packets, vc);
    }

    /// Handles the removal of a packet's last cell on `vc`.
    fn on_served(&mut self, vc: Label) {
        let _ = vc;
    }

    /// Undoes the latest `on_served`, because the packet's last cell is put back. No other call for `vc` may have
    /// happened since.
    fn on_put_back(&mut self, vc: Label) {
        let _ = vc;
    }

    /// Returns the state of a VC for time series, if the algorithm has one.
    fn state(&self, vc: Label) -> Option<AdaState> {
        let _ = vc;
        None
    }
}

/// Operations of every discard algorithm's `Config`.
pub trait Configure {
    /// The discard algorithm that these settings configure.
    type Discard: Discard + 'static;

    /// Returns the kind of memory that the algorithm requires, or `None` if it supports both.
    fn memory(&self) -> Option<Memory> {
        None
    }

    /// Checks the settings for a buffer that holds `mqs` packets (`None` if infinite).
    fn check(&self, mqs: Option<u32>) -> Vec<Fault> {
        let _ = mqs;
        Vec::new()
    }

    /// Creates the algorithm for the given VCs, which have no packets yet.
    fn build(&self, packets: &Packets) -> Self::Discard;
}

/// The buffer of one edge device towards one output link.
///
/// QL, the queue length in packets, includes a packet until its last cell is taken. The number of waiting cells
/// excludes taken cells. Once one of its cells is taken, a packet is under way and never dropped.
///
/// An engine may take cells of a packet before they start, if no event can occur in the meantime. Before any other
/// call, it puts back the cells that have not started ([`EdgeBuffer::untake`]), so that algorithms still see these
/// cells in the queue.
pub struct EdgeBuffer {
    packets: Packets,
    discard: Box<dyn Discard>,
}

impl EdgeBuffer {
    /// Creates an empty buffer for `vcs` VCs. `longest_packet` is the number of cells in each VC's longest packet, by
    /// label.
    ///
    /// # Panics
    /// If `longest_packet` does not have one entry for each VC.
    pub fn new(config: &EdgeConfig, vcs: usize, longest_packet: &[u32]) -> Self {
        assert_eq!(longest_packet.len(), vcs, "every VC of an edge device has a maximum packet length");
        let packets = Packets::new(config.buffer, config.memory, longest_packet);
        Self { discard: config.discard.build(&packets), packets }
    }

    /// Admits an arriving packet, or refuses it and counts the loss; other packets may be dropped. `acr` is its VC's
    /// current rate, in cells a second.
    pub fn offer(&mut self, label: Label, packet: Packet, acr: f64) {
        self.packets.set_acr(label, acr);
        self.discard.on_arrival(&mut self.packets, label, packet.cells);
        self.packets.admit_or_refuse(label, packet);
    }

    /// Starts recording the outcomes of packets.
    pub fn note_fates(&mut self) {
        self.packets.outcomes = Some(Vec::new());
    }

    /// Returns the outcomes of packets since the previous call; empty if outcomes are not recorded.
    pub fn take_outcomes(&mut self) -> Vec<PacketOutcome> {
        self.packets.outcomes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Sets a VC's ACR, in cells a second. A packet may be dropped as a result.
    pub fn on_rate(&mut self, label: Label, acr: f64) {
        self.packets.set_acr(label, acr);
        self.discard.on_rate(&mut self.packets, label);
    }

    /// Returns the packets in the buffer, with their counts.
    #[inline]
    pub fn packets(&self) -> &Packets {
        &self.packets
    }

    /// Removes the next cells of a VC for transmission: at least one cell, and at most the rest of its front packet.
    #[inline]
    pub fn take(&mut self, label: Label, cells: u32) -> Run {
        let run = self.packets.take(label, cells);
        if run.last.last_cell() {
            self.discard.on_served(label);
        }
        run
    }

    /// Puts back the last cells taken from a VC, as if they had never been taken. Only cells of one packet can be put
    /// back, and only those taken since the VC was last offered a packet, changed its rate or lost a packet.
    #[inline]
    pub fn untake(&mut self, label: Label, cells: u32) {
        if self.packets.untake(label, cells) {
            self.discard.on_put_back(label);
        }
    }

    /// Restarts the recorded range of the number of waiting cells, at a sample of a time series.
    pub fn start_range(&mut self) {
        self.packets.start_range();
    }

    /// Returns a VC's state in the discard algorithm, if it has one.
    pub fn state(&self, label: Label) -> Option<AdaState> {
        self.discard.state(label)
    }
}

#[cfg(test)]
mod conformance;
