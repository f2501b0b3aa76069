//! Builds QUIC stacks with the settings of a scenario.

use std::time::Duration;

use celltrain_core::units;
use celltrain_hosts::quic::{Config, Congestion, Quic};
use celltrain_hosts::{Application, Endpoint, Stack};
use celltrain_scenario::stack::StackSizes;
use celltrain_scenario::stack::quic::{self, QuicCongestion};

/// Creates the QUIC stacks of a sender and a receiver.
pub(super) fn stacks(
    own: &quic::Config,
    sizes: StackSizes,
    ends: [Endpoint; 2],
    application: Application,
) -> [Box<dyn Stack>; 2] {
    let bytes = |bytes: u64| u32::try_from(bytes).expect("the check of the scenario limits this value");
    let time = |time: units::Duration| Duration::from_nanos(time.picoseconds / 1000);
    let config = Config {
        congestion: match own.congestion {
            QuicCongestion::NewReno => Congestion::NewReno,
            QuicCongestion::Cubic => Congestion::Cubic,
            QuicCongestion::Bbr => Congestion::Bbr,
        },
        mtu: u16::try_from(own.mtu.bytes).expect("the check of the scenario limits this value"),
        receive_window: bytes(sizes.receive_window),
        send_buffer: sizes.send_buffer,
        initial_window: own.initial_window.map(|window| bytes(window.bytes)),
        initial_rtt: time(own.initial_rtt),
        ack_delay: own.ack_delay.map(time),
    };
    Quic::pair(&config, ends, application)
}
