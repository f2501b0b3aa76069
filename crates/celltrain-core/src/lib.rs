//! Models and engines of celltrain, a cell-accurate laboratory for TCP over switched networks.
//!
//! The core does not use files, the wall clock, a Python interpreter or header bytes. It starts threads only to run one
//! network in parallel (`engine/fast/parallel`). An engine takes a [`network::Network`], simulates every cell of it and
//! returns a [`metrics::RunResult`]; a [`probe::Probe`] may observe it. The models (`policy`, `tcp`, `aal5`, `port`,
//! `end_systems`) do not depend on the engine that drives them, so that two engines can share them.

pub mod aal5;
pub mod abr;
pub mod arbiter;
pub mod cancellation;
pub mod cell;
pub mod certificate;
pub mod contracts;
mod counted;
pub mod coverage;
pub mod delay;
pub(crate) mod delay_choice;
mod delay_line;
mod delay_times;
mod departing;
mod departure;
pub mod edge_device;
pub mod end_systems;
pub mod engine;
pub mod error;
pub mod events;
pub mod file_delay;
pub mod fingerprint;
pub mod gfr;
pub mod host;
pub mod index;
pub mod length;
pub mod link_changes;
pub mod link_loss;
pub mod marking;
pub mod max_min;
pub mod memory;
pub mod metrics;
pub mod network;
pub mod policy;
pub mod port;
pub mod probe;
pub mod queue_range;
pub mod rate_control;
mod recording;
mod registry;
pub mod requests;
pub mod rng;
pub mod scheduler;
#[cfg(test)]
mod script;
pub mod shaped_port;
pub mod switching;
pub mod tcp;
pub mod threshold;
pub mod tie;
pub mod timeouts;
pub mod traffic;
pub mod units;
pub mod until;
mod upstream;
pub mod wire;
