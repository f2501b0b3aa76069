//! Allocators: what an output port tells the ABR sources whose cells cross it.
//!
//! A port may mark data cells (EFCI) as they leave, or write the rate a source may have into the backward RM cells of
//! the loops whose data it carries. An allocator only answers, and sees only what it is handed; both engines ask the
//! same questions. A new one is one file beside these, two lines below and a page in `docs/models/`.

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

    /// What is wrong with the settings for a buffer of `capacity` cells (`None`: without limit).
    pub fn check(&self, capacity: Option<u32>) -> Vec<Fault> { |config| config.check(capacity) }

    /// The thresholds of the buffer, by key.
    pub fn thresholds(&self) -> Vec<(&'static str, Threshold)> { |config| config.thresholds() }

    /// The allocator of a port, before a cell has come.
    pub fn build(&self, port: &PortKind<'_>) -> Box<dyn Allocator> { |config| Box::new(config.build(port)) }

    /// Every allocator with settings for any port, for tests that hold for all.
    #[cfg(test)]
    pub(crate) fn samples() -> Vec<Self> { |mod allocator| allocator::sample().into() }
}

/// What an allocator is asked. Both engines ask only these questions.
///
/// Calls come in the order of their instants (`first` or `now`), but the later cells of one VC may come after the first
/// cells of another that is reported later: an answer does not depend
/// on the order among VCs. When a backward RM cell passes, all cells that arrived before it have been reported, and
/// none that comes at its instant or later.
pub trait Allocator: Send {
    /// Cells of VC `label` reach the port, whatever becomes of them: the first at `first`, the others `period` apart.
    fn on_cells(&mut self, label: Label, first: Time, period: Span, cells: u32) {
        let _ = (label, first, period, cells);
    }

    /// A forward RM cell of VC `label` (already counted by `on_cells`) reaches the port.
    fn on_forward_rm(&mut self, label: Label, now: Time, rm: &RmCell) {
        let _ = (label, now, rm);
    }

    /// A backward RM cell of the loop whose data crosses this port under `label` passes the switch; `queue` cells wait
    /// at this port.
    fn on_backward_rm(&mut self, label: Label, now: Time, queue: u32, rm: &mut RmCell) {
        let _ = (label, now, queue, rm);
    }

    /// The most cells that may still wait when a data cell starts to leave unmarked; none where none is marked.
    fn marks_above(&self) -> Option<u32> {
        None
    }
}

/// An output port as an allocator is told of it.
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

/// A VC as an allocator is told of it.
#[derive(Clone, Copy, Debug)]
pub struct VcKind {
    /// Whether it is an ABR VC.
    pub is_abr: bool,
    /// Whether it is of a class above ABR, CBR or VBR: ABR has what those leave.
    pub above_abr: bool,
    /// MCR: its guaranteed rate, in cells per second; 0 where it has none.
    pub mcr: f64,
    /// Its max-min fair share of the network, in cells per second ([`crate::max_min`]); of use for an ABR VC only.
    pub share: f64,
}

/// What every allocator's `Config` can do.
pub trait Configure {
    /// The allocator it configures.
    type Allocator: Allocator + 'static;

    /// What is wrong with the settings for a buffer of `capacity` cells (`None`: without limit).
    fn check(&self, capacity: Option<u32>) -> Vec<Fault> {
        let _ = capacity;
        Vec::new()
    }

    /// The thresholds of the buffer, by key.
    fn thresholds(&self) -> Vec<(&'static str, Threshold)> {
        Vec::new()
    }

    /// The allocator of a port, before a cell has come.
    fn build(&self, port: &PortKind<'_>) -> Self::Allocator;
}

/// The longest timer or interval.
const MAX_TIME: Duration = Duration::from_milliseconds(1_000_000);

/// A timer or interval is refused where it is no time at all, or so long that it would not fit the clock.
fn some_time(key: &str, time: Duration) -> Vec<Fault> {
    if time.picoseconds > 0 && time <= MAX_TIME {
        return Vec::new();
    }
    vec![Fault::new(key, format!("\"{time}\""), format!("is not a time above 0 and up to {MAX_TIME}"))]
}

/// A number is refused outside its range.
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
