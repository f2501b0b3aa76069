//! Builds smoltcp stacks with the settings of a scenario.

use std::time::Duration;

use celltrain_hosts::smoltcp::{Config, Congestion, Reads, Smoltcp};
use celltrain_hosts::{Application, Endpoint, Stack};
use celltrain_scenario::stack::StackSizes;
use celltrain_scenario::stack::smoltcp::{self, SmoltcpCongestion, SmoltcpReads};

/// Creates the smoltcp stacks of a sender and a receiver.
pub(super) fn stacks(
    own: &smoltcp::Config,
    sizes: StackSizes,
    ends: [Endpoint; 2],
    application: Application,
) -> [Box<dyn Stack>; 2] {
    let bytes = |bytes: u64| usize::try_from(bytes).expect("the check of the scenario limits this value to a gigabyte");
    let ack_delay = Duration::from_nanos(own.ack_delay.picoseconds / 1000);
    let config = Config {
        congestion: match own.congestion {
            SmoltcpCongestion::None => Congestion::None,
            SmoltcpCongestion::Reno => Congestion::Reno,
            SmoltcpCongestion::Cubic => Congestion::Cubic,
        },
        mss: bytes(sizes.mss),
        receive_window: bytes(sizes.receive_window),
        send_buffer: bytes(sizes.send_buffer),
        ack_delay: Some(ack_delay).filter(|delay| !delay.is_zero()),
        nagle: own.nagle,
        reads: match own.reads {
            SmoltcpReads::BeforeAcks => Reads::BeforeAcks,
            SmoltcpReads::AfterAcks => Reads::AfterAcks,
        },
    };
    Smoltcp::pair(&config, ends, application)
}
