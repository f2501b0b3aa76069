//! TUN devices, which the caller creates.

use std::fs::File;
use std::io;

use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use crate::plan::{Host, Plan};

/// Name of the device in every host.
pub const DEVICE: &str = "atm0";
/// Number of packets that the kernel keeps while the device is not read. It loses more, so this is more than the
/// largest send buffer that Linux has by default holds (4 MB).
const KERNEL_QUEUE: u32 = 10_000;

/// Returns the device of a descriptor of this process. The descriptor may be closed afterwards.
///
/// # Errors
/// If there is no such descriptor.
pub fn device(descriptor: i32) -> io::Result<File> {
    // A duplicate is safe, whoever has the descriptor.
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    Ok(pidfd_getfd(own, descriptor, PidfdGetfdFlags::empty())?.into())
}

/// Returns the commands for `ip -batch` that set up a host's device.
pub fn commands(plan: &Plan, host: &Host) -> String {
    let mtu = host.peers.iter().map(|peer| peer.mtu).max().unwrap_or_default();
    let mut commands = format!(
        "link set {DEVICE} mtu {mtu} txqueuelen {KERNEL_QUEUE} addrgenmode none\naddr add {}/32 dev {DEVICE}\n\
         link set {DEVICE} up\n",
        host.address
    );
    for peer in &host.peers {
        let address = plan.hosts[peer.host].address;
        commands += &format!("route add {address}/32 dev {DEVICE} mtu {} src {}\n", peer.mtu, host.address);
    }
    commands
}
