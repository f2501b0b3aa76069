//! TUN devices, which the caller creates.

use std::fmt::Write;
use std::fs::File;
use std::io;

use celltrain_core::network::Network;
use celltrain_core::units::Time;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use crate::plan::{Host, Plan};

/// Name of the TUN device in every host.
pub const DEVICE: &str = "atm0";
/// Number of bytes that may wait for the device. The kernel drops more, so this exceeds its largest send buffers.
const MOST_BYTES: u32 = 100_000_000;

/// Returns the device for a file descriptor of this process. The descriptor may be closed afterwards.
///
/// # Errors
/// If there is no such descriptor.
pub fn device(descriptor: i32) -> io::Result<File> {
    // SAFETY: duplicating a descriptor is safe, whoever owns it.
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    Ok(pidfd_getfd(own, descriptor, PidfdGetfdFlags::empty())?.into())
}

/// Returns the shell commands that set up a host's device.
///
/// The kernel must know the rate of the host's ports, because a device does not delay its packets. Otherwise TCP would
/// fill the device's queue and treat the wait there as a long path.
pub fn commands(network: &Network, plan: &Plan, host: &Host) -> String {
    let clock = network.clock();
    let mtu = host.peers.iter().map(|peer| peer.mtu).max().unwrap_or_default();
    let mut ip =
        format!("link set {DEVICE} mtu {mtu}\naddr add {}/32 dev {DEVICE}\nlink set {DEVICE} up\n", host.address);
    for peer in &host.peers {
        let address = plan.hosts[peer.host].address;
        let _ = writeln!(ip, "route add {address}/32 dev {DEVICE} mtu {} src {}", peer.mtu, host.address);
    }
    let cells = network.aal5.frame_cells(mtu.into());
    let packet_times = host
        .ports
        .iter()
        .map(|&port| clock.seconds(Time(0) + clock.cell_time(network.links[port].rate) * cells.into()));
    let bytes_per_second: f64 = packet_times.map(|seconds| f64::from(mtu) / seconds).sum();
    // Timers that are less than 1 ms late do no harm.
    let burst = (bytes_per_second / 1e3).max(2.0 * f64::from(mtu));
    format!(
        "ip -batch - << END\n{ip}END\n\
         tc qdisc add dev {DEVICE} root tbf rate {:.0}bit burst {burst:.0} limit {MOST_BYTES}\n",
        bytes_per_second * 8.0
    )
}
