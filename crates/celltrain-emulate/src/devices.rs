//! TUN devices in the hosts' namespaces.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::thread;

use rustix::thread::{LinkNameSpaceType, gettid, move_into_link_name_space};
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::plan::{Host, Plan};

/// Name of the device in every host.
pub const DEVICE: &str = "atm0";

/// A host's device. It exists until it is dropped.
pub type Device = SyncDevice;

/// Creates the devices of all hosts. Host `i` is the network namespace of the process `processes[i]`.
///
/// # Errors
/// If a device cannot be created or configured.
pub fn open(plan: &Plan, processes: &[u32]) -> io::Result<Vec<Device>> {
    let devices = plan.hosts.iter().zip(processes).map(|(host, process)| {
        let namespace = File::open(format!("/proc/{process}/ns/net"))?;
        let commands = commands(plan, host);
        // A thread cannot easily return to its namespace, so each device is created by a thread of its own.
        let create = move || -> io::Result<Device> {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            let device = DeviceBuilder::new().name(DEVICE).build_sync()?;
            device.set_nonblocking(true)?;
            configure(&commands)?;
            Ok(device)
        };
        thread::spawn(create).join().expect("it does not panic")
    });
    devices.collect()
}

/// Returns the commands for `ip -batch` that set up a host's device.
fn commands(plan: &Plan, host: &Host) -> String {
    let mtu = host.peers.iter().map(|peer| peer.mtu).max().unwrap_or_default();
    let mut commands = format!(
        "link set {DEVICE} mtu {mtu} addrgenmode none\naddr add {}/32 dev {DEVICE}\nlink set {DEVICE} up\n",
        host.address
    );
    for peer in &host.peers {
        let address = plan.hosts[peer.host].address;
        commands += &format!("route add {address}/32 dev {DEVICE} mtu {} src {}\n", peer.mtu, host.address);
    }
    commands
}

/// Runs `ip` in this thread's namespace.
fn configure(commands: &str) -> io::Result<()> {
    let mut ip = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    ip.stdin.take().expect("it is piped").write_all(commands.as_bytes())?;
    let done = ip.wait_with_output()?;
    if done.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&done.stderr).trim().to_owned()))
}

/// Gives this thread a fixed priority above all ordinary threads (`SCHED_FIFO`). Returns whether that is permitted.
pub fn run_in_real_time() -> bool {
    let thread = gettid().as_raw_nonzero().to_string();
    let chrt = Command::new("chrt")
        .args(["--reset-on-fork", "--fifo", "--pid", "50", &thread])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    chrt.is_ok_and(|status| status.success())
}
