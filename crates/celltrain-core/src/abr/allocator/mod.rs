//! Allocators: algorithms by which output ports control the rates of ABR sources.
//!
//! A port may mark data cells (EFCI) as they leave, or write a source's allowed rate into its backward RM cells. An
//! allocator only responds to calls and sees only their arguments. Both engines make the same calls. A new allocator
//! needs one file in this directory, two lines in this file and a page in `docs/models/`.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod rate_book;

pub mod efci;
pub mod equal_share;
pub mod erica;
pub mod erica_plus;
pub mod max_min;

use super::RmCell;
use crate::error::Fault;
use crate::index::Label;
use crate::registry;
use crate::threshold::Threshold;
use crate::units::{Clock, Duration, Span, Time};

registry! {
    /// The allocator of a port in a scenario: a table whose only key is the allocator's name.
    #[schemars(rename = "Allocator")]
    pub enum AllocatorConfig(module::Config) {
        /// EFCI: marks data cells that leave while the queue exceeds a threshold.
        efci: Efci,
        /// Equal share: divides the link's rate by the number of active VCs.
        equal_share: EqualShare,
        /// ERICA: equal shares of the capacity that other classes leave, with a fixed target load.
        erica: Erica,
        /// ERICA+: ERICA with a target load that keeps the queue short and the link full.
        erica_plus: EricaPlus,
        /// Max-min: the ideal shares of the whole network, for comparison.
        max_min: MaxMin,
    }

    /// Checks the settings for a buffer of `capacity` cells (`None` if infinite).
    pub fn check(&self, capacity: Option<u32>) -> Vec<Fault> { |config| config.check(capacity) }

    /// Returns the thresholds that depend on the buffer size, by key.
    pub fn thresholds(&self) -> Vec<(&'static str, Threshold)> { |config| config.thresholds() }

    /// Creates the allocator of a port that no cell has reached yet.
    pub fn build(&self, port: &PortKind<'_>) -> Box<dyn Allocator> { |config| Box::new(config.build(port)) }

    /// Returns every allocator, with settings valid at any port, for tests that hold for all allocators.
    #[cfg(test)]
    pub(crate) fn samples() -> Vec<Self> { |mod allocator| allocator::sample().into() }
}

/// Interface between a port and its allocator. Both engines call only these methods.
///
/// Calls are made in time order (of `first` or `now`). A call may report several cells of one VC, and a later call may
/// report cells of another VC that arrived in between, so results must not depend on the order of cells of different
/// VCs. Before the call for a backward RM cell, the engine reports all cells that arrived at earlier instants, and no
/// others.
pub trait Allocator: Send {
    /// Counts cells of VC `label` that arrive at the port, including refused cells. The first cell arrives at `first`,
    /// and the others follow `period` apart.
    fn on_cells(&mut self, label: Label, first: Time, period: Span, cells: u32) {
        let _ = (label, first, period, cells);
    }

    /// Handles a forward RM cell of VC `label` that arrives at the port (already counted by `on_cells`).
    fn on_forward_rm(&mut self, label: Label, now: Time, rm: &RmCell) {
        let _ = (label, now, rm);
    }

    /// Handles a backward RM cell that passes the switch. `label` is the label of its VC's data at this port, where
    /// `queue` cells are waiting.
    fn on_backward_rm(&mut self, label: Label, now: Time, queue: u32, rm: &mut RmCell) {
        let _ = (label, now, queue, rm);
    }

    /// Returns the largest number of waiting cells at which a departing data cell is not marked; `None` if no cell is
    /// ever marked.
    fn marks_above(&self) -> Option<u32> {
        None
    }
}

/// Properties of an output port that an allocator knows.
#[derive(Clone, Copy, Debug)]
pub struct PortKind<'a> {
    /// The scenario's clock.
    pub clock: Clock,
    /// C: the link's rate, in cells per second.
    pub rate: f64,
    /// K: size of the buffer in cells; `u32::MAX` if infinite.
    pub capacity: u32,
    /// The VCs that cross the port, by label.
    pub vcs: &'a [VcKind],
}

/// Properties of a VC that an allocator knows.
#[derive(Clone, Copy, Debug)]
pub struct VcKind {
    /// True for an ABR VC.
    pub is_abr: bool,
    /// True if the VC's class has priority over ABR (CBR or VBR). ABR gets the rate that CBR and VBR leave.
    pub above_abr: bool,
    /// MCR: the VC's guaranteed rate, in cells per second; 0 without a guarantee.
    pub mcr: f64,
    /// The VC's max-min fair share of the network, in cells per second ([`crate::max_min`]); used for ABR VCs only.
    pub share: f64,
}

/// Methods of each allocator's settings.
pub trait Configure {
    /// The allocator that these settings describe.
    type Allocator: Allocator + 'static;

    /// Checks the settings for a buffer of `capacity` cells (`None` if infinite).
    fn check(&self, capacity: Option<u32>) -> Vec<Fault> {
        let _ = capacity;
        Vec::new()
    }

    /// Returns the thresholds that depend on the buffer size, by key.
    fn thresholds(&self) -> Vec<(&'static str, Threshold)> {
        Vec::new()
    }

    /// Creates the allocator of a port that no cell has reached yet.
    fn build(&self, port: &PortKind<'_>) -> Self::Allocator;
}

/// The longest timer or interval that the checks accept.
const MAX_TIME: Duration = Duration::from_milliseconds(1_000_000);

/// Returns a fault if a timer or interval is zero or too long to fit the clock.
fn some_time(key: &str, time: Duration) -> Vec<Fault> {
    if time.picoseconds > 0 && time <= MAX_TIME {
        return Vec::new();
    }
    vec![Fault::new(key, format!("\"{time}\""), format!("must be a time above 0 and at most {MAX_TIME}"))]
}

/// Returns a fault if a number is outside its range.
fn within(key: &str, value: f64, least: f64, most: f64) -> Vec<Fault> {
    if (least..=most).contains(&value) {
        return Vec::new();
    }
    vec![Fault::new(key, value, format!("is not a number from {least} to {most}"))]
}

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod loops;
