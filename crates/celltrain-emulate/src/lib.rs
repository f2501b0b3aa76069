//! Runs a network in real time. Its hosts are Linux network namespaces, in which any program can be started.
//!
//! Each host has a TUN device. A packet that the kernel sends is injected into the simulation at the current time, and
//! written to the other host's device when it arrives there. The caller creates the namespaces and the devices.
#![cfg(target_os = "linux")]

mod devices;
mod emulation;
mod lateness;
mod plan;
mod traffic;
mod wall;

pub use devices::{DEVICE, commands, device};
pub use emulation::{Control, Emulation, EmulationError};
pub use lateness::Lateness;
pub use plan::{Host, Peer, Plan, name_stacks};
