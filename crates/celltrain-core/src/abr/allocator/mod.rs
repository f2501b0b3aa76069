//! Allocators: feedback of an output port to the ABR sources whose cells cross it.
//!
//! A port may mark data cells (EFCI) as they leave, or write a source's allowed rate into the backward RM cells of the
//! loops whose data it carries. An allocator only answers calls, and sees only its arguments; both engines make the
//! same calls. A new allocator is one file in this directory, two lines below and a page in `docs/models/`.

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
    /// The allocator of a port, as a scenario names it: one table whose key is the allocator's name.
    #[schemars(rename = "Allocator")]
    pub enum AllocatorConfig(module::Config) {
        /// EFCI: data cells are marked as they leave while more than a threshold wait.
        efci: Efci,
        /// Equal share: the link's rate over the number of active VCs.
        equal_share: EqualShare,
        /// ERICA: equal shares of what others leave, at a fixed load.
        erica: Erica,
        /// ERICA+: ERICA at the load that keeps the queue short and the link full.
        erica_plus: EricaPlus,
        /// Max-min: the ideal shares of the whole network, for comparison.
        max_min: MaxMin,
    }

    /// Checks the settings for a buffer of `capacity` cells (`None`: without limit).
    pub fn check(&self, capacity: Option<u32>) -> Vec<Fault> { |config| config.check(capacity) }

    /// Returns the thresholds of the buffer, by key.
    pub fn thresholds(&self) -> Vec<(&'static str, Threshold)> { |config| config.thresholds() }

    /// Creates the allocator of a port that no cell has reached.
    pub fn build(&self, port: &PortKind<'_>) -> Box<dyn Allocator> { |config| Box::new(config.build(port)) }

    /// Returns every allocator with settings for any port, for tests that hold for all.
    #[cfg(test)]
    pub(crate) fn samples() -> Vec<Self> { |mod allocator| allocator::sample().into() }
}

/// Interface between a port and its allocator. Both engines make only these calls.
///
/// Calls come in the order of their instants (`first` or `now`), but the later cells of one VC may come after the first
/// cells of another that is reported later: an answer does not depend
/// on the order among VCs. When a backward RM cell passes, all cells that arrived before it have been reported, and
/// none that comes at its instant or later.
pub trait Allocator: Send {
    /// Counts cells of VC `label` that reach the port, whether admitted or not: the first at `first`, the others
    /// `period` apart.
    fn on_cells(&mut self, label: Label, first: Time, period: Span, cells: u32) {
        let _ = (label, first, period, cells);
    }

    /// Handles a forward RM cell of VC `label` (already counted by `on_cells`) that reaches the port.
    fn on_forward_rm(&mut self, label: Label, now: Time, rm: &RmCell) {
        let _ = (label, now, rm);
    }

    /// Handles a backward RM cell of the loop whose data crosses this port under `label`, as it passes the switch;
    /// `queue` cells wait at this port.
    fn on_backward_rm(&mut self, label: Label, now: Time, queue: u32, rm: &mut RmCell) {
        let _ = (label, now, queue, rm);
    }

    /// Returns the most cells that may still wait when a data cell starts to leave unmarked; `None` if no cell is
    /// marked.
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
    /// K: places for waiting cells; `u32::MAX` for an infinite buffer.
    pub capacity: u32,
    /// The VCs that cross it, by label.
    pub vcs: &'a [VcKind],
}

/// Properties of a VC that an allocator knows.
#[derive(Clone, Copy, Debug)]
pub struct VcKind {
    /// True for an ABR VC.
    pub is_abr: bool,
    /// True for a class above ABR (CBR or VBR): ABR has the rate that those leave.
    pub above_abr: bool,
    /// MCR: its guaranteed rate, in cells per second; 0 if it has none.
    pub mcr: f64,
    /// Its max-min fair share of the network, in cells per second ([`crate::max_min`]); used for ABR VCs only.
    pub share: f64,
}

/// Operations of every allocator's `Config`.
pub trait Configure {
    /// The allocator it configures.
    type Allocator: Allocator + 'static;

    /// Checks the settings for a buffer of `capacity` cells (`None`: without limit).
    fn check(&self, capacity: Option<u32>) -> Vec<Fault> {
        let _ = capacity;
        Vec::new()
    }

    /// Returns the thresholds of the buffer, by key.
    fn thresholds(&self) -> Vec<(&'static str, Threshold)> {
        Vec::new()
    }

    /// Creates the allocator of a port that no cell has reached.
    fn build(&self, port: &PortKind<'_>) -> Self::Allocator;
}

/// The longest timer or interval.
const MAX_TIME: Duration = Duration::from_milliseconds(1_000_000);

/// Refuses a timer or interval of zero, or one too long to fit the clock.
fn some_time(key: &str, time: Duration) -> Vec<Fault> {
    if time.picoseconds > 0 && time <= MAX_TIME {
        return Vec::new();
    }
    vec![Fault::new(key, format!("\"{time}\""), format!("is not a time above 0 and up to {MAX_TIME}"))]
}

/// Refuses a number outside its range.
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
