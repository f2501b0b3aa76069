//! The fast engine. It is exact to the cell, but processes whole frames wherever cells need no individual treatment.
//!
//! `docs/design/fast-engine.md` explains why it is exact and how much work it saves. In short, cells wait at hosts'
//! ports, where the start of each cell is computed (`nic`), at shaped ports, and at contended ports (`contended_port`).
//! Everything between these ports is a delay (`plan`). Events are whole frames that reach hosts, ticks, starts, and the
//! batches in which contended ports catch up (`event_list`). When the clock reaches an instant, every arrival before
//! it is known.

#![expect(
    clippy::inline_always,
    reason = "every cell or train calls this function; inlining saves 2 to 4 % of the run \
                                           time"
)]

mod advance;
mod contended_port;
mod delays;
mod disciplines;
mod egress;
mod engine;
mod ethernet;
mod ethernet_cells;
mod event_list;
mod explain;
mod fabric;
mod fifo;
mod ingress;
mod lanes;
mod late;
mod links;
mod memory_ports;
mod nic;
mod output;
mod output_buffer;
pub(super) mod parallel;
mod partitioning;
mod pausable_nic;
mod pause_arrivals;
mod pauses;
mod pausing_groups;
mod plan;
mod port_builder;
mod port_plan;
mod port_queue;
mod queue_port;
mod results;
mod stream_port;
mod support;
mod timing;
mod train;
mod train_port;
mod waiting_cells;

pub(super) use engine::Engine;
pub use explain::PortExplanation;
pub(super) use explain::explain;
pub use partitioning::ParallelOptions;
pub use port_plan::PortMode;
pub(super) use support::supports;
