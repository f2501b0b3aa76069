//! The main loop, which keeps a simulation synchronised with the wall clock.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use celltrain_core::aal5::Aal5Options;
use celltrain_core::cancellation::Interrupted;
use celltrain_core::engine::{Delivered, HostedSimulation, SimulationError};
use celltrain_core::index::VcIndex;
use celltrain_core::network::Network;
use celltrain_core::probe::Probe;
use celltrain_core::units::{self, Span};
use celltrain_hosts::ecn;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::set_current_timer_slack;
use typed_index_collections::TiVec;

use crate::devices::DEVICE;
use crate::lateness::Lateness;
use crate::plan::{Peer, Plan};
use crate::traffic::Traffic;
use crate::wall::WallClock;

/// Queue length at a host's port above which the program stops reading the host's device, so that the kernel notices
/// the slow link.
const MOST_WAITING: u32 = 128;
/// Longest sleep of the loop. After each sleep, the loop checks for cancellation.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);
/// Minimum time between the present and the end of the run, so that all events during a sleep are known.
const AHEAD: units::Duration = units::Duration::from_milliseconds(20);
/// Longest delay behind the wall clock at which the loop still keeps up.
const MOST_BEHIND: Duration = Duration::from_millis(10);
/// Simulated time from one check of whether the loop keeps up to the next.
const LONGEST_STEP: units::Duration = units::Duration::from_milliseconds(1);
/// The loop gives up after it has not kept up for this long.
const PATIENCE: Duration = Duration::from_secs(1);
/// The largest IPv4 packet.
const LONGEST_PACKET: usize = 65_535;

/// Communication with an emulation on another thread.
#[derive(Debug, Default)]
pub struct Control {
    /// Set by the loop once packets can travel.
    pub started: AtomicBool,
    /// Set by the caller to end the emulation early.
    pub over: AtomicBool,
}

/// An emulation of a network in real time.
pub struct Emulation<'a> {
    plan: &'a Plan,
    devices: &'a [File],
    aal5: &'a Aal5Options,
    /// Peers of each host, by address.
    peers: Vec<HashMap<Ipv4Addr, &'a Peer>>,
    /// Time in which each host's port sends half of the cells that may wait at the port.
    pauses: Vec<Span>,
    /// Packets in transit, by VC, in sending order.
    on_the_way: TiVec<VcIndex, VecDeque<InFlight<'a>>>,
    traffic: Traffic,
    lateness: Lateness,
    buffer: Box<[u8]>,
    /// Number of packets sent so far.
    packets: u64,
    /// Time since which the loop has not kept up. If it keeps up, time of the next check.
    behind_since: Option<Instant>,
}

/// A packet in transit.
struct InFlight<'a> {
    number: u64,
    peer: &'a Peer,
    bytes: Vec<u8>,
}

/// A packet read from a device.
struct Read<'a> {
    from: usize,
    peer: &'a Peer,
    bytes: Vec<u8>,
}

impl<'a> Emulation<'a> {
    /// Creates an emulation with a device for each host of the plan.
    pub fn new(network: &'a Network, plan: &'a Plan, devices: &'a [File]) -> Self {
        let clock = network.clock();
        let peers =
            plan.hosts.iter().map(|host| host.peers.iter().map(|peer| (plan.hosts[peer.host].address, peer)).collect());
        let pauses = plan.hosts.iter().map(|host| {
            let cell_times = host.ports.iter().map(|&port| clock.cell_time(network.links[port].rate));
            cell_times.min().unwrap_or(Span(1)) * u64::from(MOST_WAITING / 2)
        });
        Self {
            plan,
            devices,
            aal5: &network.aal5,
            peers: peers.collect(),
            pauses: pauses.collect(),
            on_the_way: network.vcs.iter().map(|_| VecDeque::new()).collect(),
            traffic: Traffic::default(),
            lateness: Lateness::default(),
            buffer: vec![0; LONGEST_PACKET].into(),
            packets: 0,
            behind_since: None,
        }
    }

    /// Runs until the end of the network's run or until `control` ends it. Returns how late packets were.
    ///
    /// # Errors
    /// If the run is interrupted, a device fails, or the simulation is slower than real time.
    pub fn run<P: Probe>(
        mut self,
        simulation: &mut HostedSimulation<'_, '_, P>,
        control: &Control,
    ) -> Result<Lateness, EmulationError> {
        // Without a fixed priority, the kernel may wake the thread 50 us too late.
        set_current_timer_slack(NonZeroU64::new(1)).map_err(io::Error::from)?;
        let (clock, mut end) = (simulation.clock(), simulation.end());
        simulation.end_at((simulation.now() + clock.span(AHEAD)).min(end));
        let wall = WallClock::start(clock);
        control.started.store(true, Ordering::Relaxed);
        let mut room: Vec<Option<u32>> = vec![Some(MOST_WAITING); self.devices.len()];
        let mut read = Vec::new();
        loop {
            let next = simulation.next_event().map_or(LONGEST_SLEEP, |time| wall.until(time));
            let pauses = self
                .pauses
                .iter()
                .zip(&room)
                .filter(|(_, room)| room.is_none())
                .map(|(&pause, _)| wall.duration(units::Time(pause.0)));
            let ready = self.wait(&room, pauses.fold(next.min(LONGEST_SLEEP), Duration::min))?;
            // Read the packet before the clock. Otherwise the packet could be injected before it was sent.
            self.read(&ready, &room, &mut read)?;
            let now = wall.now().min(end);
            if now + clock.span(AHEAD) > simulation.end() {
                simulation.end_at((now + clock.span(AHEAD) * 2).min(end));
            }
            loop {
                simulation.advance_to_delivery(now.min(simulation.now() + clock.span(LONGEST_STEP)))?;
                for delivered in simulation.take_deliveries() {
                    self.deliver(&delivered, simulation, &wall);
                }
                self.check_pace(wall.since(simulation.now()), clock.seconds(simulation.now()))?;
                if simulation.now() == now {
                    break;
                }
            }
            // Packets that arrive before the simulation's end still count, so they are delivered.
            if control.over.load(Ordering::Relaxed) {
                end = simulation.end();
            }
            if now == end {
                return Ok(self.lateness);
            }
            for packet in read.drain(..) {
                self.send(packet, simulation)?;
            }
            for (room, host) in room.iter_mut().zip(&self.plan.hosts) {
                let waiting = host.ports.iter().map(|&port| simulation.waiting(port)).max().unwrap_or_default();
                *room = MOST_WAITING.checked_sub(waiting).filter(|&room| room > 0);
            }
        }
    }

    /// Waits until a device that has room is readable, or until `timeout`. Returns the readable devices.
    fn wait(&self, room: &[Option<u32>], timeout: Duration) -> io::Result<Vec<usize>> {
        let has_room: Vec<usize> = (0..self.devices.len()).filter(|&host| room[host].is_some()).collect();
        let mut devices: Vec<PollFd<'_>> =
            has_room.iter().map(|&host| PollFd::from_borrowed_fd(self.devices[host].as_fd(), PollFlags::IN)).collect();
        let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
        match poll(&mut devices, Some(&timeout)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        }
        let is_ready = |(&host, device): (&usize, &PollFd<'_>)| (!device.revents().is_empty()).then_some(host);
        Ok(has_room.iter().zip(&devices).filter_map(is_ready).collect())
    }

    /// Reads packets from devices until the ports are full.
    fn read(
        &mut self,
        ready: &[usize],
        room: &[Option<u32>],
        packets: &mut Vec<Read<'a>>,
    ) -> Result<(), EmulationError> {
        for &from in ready {
            let mut left = room[from].unwrap_or_default();
            while left > 0 {
                let bytes = match (&self.devices[from]).read(&mut self.buffer) {
                    Ok(length) => &self.buffer[..length],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(EmulationError::Device { host: from, error }),
                };
                // Packets to unknown addresses, and packets that no frame can carry, are lost.
                if let Some(&peer) = destination(bytes).and_then(|address| self.peers[from].get(&address))
                    && bytes.len() <= usize::from(peer.mtu)
                {
                    left = left.saturating_sub(self.aal5.frame_cells(bytes.len() as u64));
                    packets.push(Read { from, peer, bytes: bytes.to_vec() });
                }
            }
        }
        Ok(())
    }

    /// Passes a packet to its host's port.
    fn send<P: Probe>(
        &mut self,
        Read { from, peer, bytes }: Read<'a>,
        simulation: &mut HostedSimulation<'_, '_, P>,
    ) -> Result<(), EmulationError> {
        let number = self.packets;
        self.packets += 1;
        self.traffic.on_sent(peer.vc, &bytes, simulation.counters(peer.flow));
        let (host, length) = (self.plan.hosts[from].node, bytes.len() as u64);
        if ecn::bits(&bytes).capable {
            simulation.inject_capable(host, peer.vc, length, number)?;
        } else {
            simulation.inject(host, peer.vc, length, number)?;
        }
        self.on_the_way[peer.vc].push_back(InFlight { number, peer, bytes });
        Ok(())
    }

    /// Passes a packet that has arrived to the kernel.
    fn deliver<P: Probe>(
        &mut self,
        &Delivered { time, vc, tag, marked }: &Delivered,
        simulation: &mut HostedSimulation<'_, '_, P>,
        wall: &WallClock,
    ) {
        // Packets of a VC do not overtake each other, so earlier packets are lost.
        let InFlight { peer, mut bytes, .. } = loop {
            let kept = self.on_the_way[vc].pop_front().expect("every arriving packet was sent before");
            if kept.number == tag {
                break kept;
            }
        };
        if marked {
            ecn::mark(&mut bytes);
        }
        self.traffic.on_arrived(vc, &bytes, simulation.counters(peer.flow));
        // If a host's device is down, the host loses the packet.
        let _ = (&self.devices[peer.host]).write(&bytes);
        self.lateness.add(wall.since(time));
    }

    /// Checks that the loop keeps up. `behind` is its delay behind the wall clock. A slow iteration makes the next one
    /// longer, so a simulation that is too slow never catches up.
    fn check_pace(&mut self, behind: Duration, simulated_s: f64) -> Result<(), EmulationError> {
        if behind <= MOST_BEHIND {
            self.behind_since = None;
            return Ok(());
        }
        let since = self.behind_since.get_or_insert_with(Instant::now);
        if since.elapsed() < PATIENCE {
            return Ok(());
        }
        Err(EmulationError::TooFast { simulated_s, behind })
    }
}

/// Returns the destination of an IPv4 packet (RFC 791, section 3.1).
fn destination(packet: &[u8]) -> Option<Ipv4Addr> {
    let address: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
    (packet[0] >> 4 == 4).then(|| address.into())
}

/// Reason why an emulation has no result.
#[derive(Debug)]
pub enum EmulationError {
    /// The emulation was interrupted.
    Interrupted,
    /// A device failed.
    Device {
        /// Index of the host in the plan.
        host: usize,
        /// The error.
        error: io::Error,
    },
    /// A system call failed.
    System(io::Error),
    /// The simulation refused a packet.
    Refused(SimulationError),
    /// The simulation is slower than real time.
    TooFast {
        /// Simulated seconds so far.
        simulated_s: f64,
        /// Delay of the simulation behind the wall clock.
        behind: Duration,
    },
}

impl From<Interrupted> for EmulationError {
    fn from(Interrupted: Interrupted) -> Self {
        Self::Interrupted
    }
}

impl From<SimulationError> for EmulationError {
    fn from(error: SimulationError) -> Self {
        match error {
            SimulationError::Interrupted => Self::Interrupted,
            error => Self::Refused(error),
        }
    }
}

impl From<io::Error> for EmulationError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl fmt::Display for EmulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => write!(f, "{}", SimulationError::Interrupted),
            Self::Device { error, .. } => write!(f, "the device {DEVICE} failed: {error}"),
            Self::System(error) => write!(f, "{error}"),
            Self::Refused(error) => write!(f, "{error}"),
            Self::TooFast { simulated_s, behind } => write!(
                f,
                "the scenario is faster than real time on this machine: after {simulated_s:.1} s the simulation was \
                 {:.0} ms behind the clock. Use slower links, fewer flows or a machine with less load",
                behind.as_secs_f64() * 1e3
            ),
        }
    }
}

impl std::error::Error for EmulationError {}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;

    use celltrain_core::engine::Engine;
    use celltrain_core::probe::Nothing;
    use celltrain_hosts::Trial;
    use etherparse::PacketBuilder;

    use super::*;
    use crate::plan::name_stacks;

    /// Sends a packet and answers each arriving packet, using sockets instead of devices.
    #[test]
    fn an_emulation_delays_packets_and_replies_as_the_simulated_network_does() {
        let mut network = Trial::new(1).link_rate(8_000_000).round_trip(Duration::from_millis(30)).network();
        let plan = Plan::new(&mut network).unwrap();
        let pair = |_| {
            let (device, kernel) = UnixDatagram::pair().unwrap();
            device.set_nonblocking(true).unwrap();
            kernel.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            (device, kernel)
        };
        let (devices, kernels): (Vec<_>, Vec<_>) = (0..2).map(pair).unzip();
        let devices: Vec<_> = devices.into_iter().map(|device| File::from(OwnedFd::from(device))).collect();
        let (control, emulation) = (Control::default(), Emulation::new(&network, &plan, &devices));
        let mut times = Vec::new();
        let (lateness, mut result) = std::thread::scope(|scope| {
            let loops = scope.spawn(|| {
                let mut lateness = Lateness::default();
                let ended = Engine::Fast.run_hosted::<_, EmulationError>(
                    &network,
                    Nothing,
                    |_| true,
                    |simulation| {
                        lateness = emulation.run(simulation, &control)?;
                        Ok(())
                    },
                );
                (lateness, ended.unwrap())
            });
            let mut buffer = [0; 100];
            for _ in 0..4 {
                let begun = Instant::now();
                for (from, to) in [(0, 1), (1, 0)] {
                    let [source, destination] = [from, to].map(|host| plan.hosts[host].address.octets());
                    let mut packet = Vec::new();
                    PacketBuilder::ipv4(source, destination, 64).udp(1, 2).write_to_vec(&mut packet, b"hello").unwrap();
                    kernels[from].send(&packet).unwrap();
                    let read = kernels[to].recv(&mut buffer).unwrap();
                    assert_eq!(buffer[..read], packet);
                }
                times.push(begun.elapsed());
            }
            control.over.store(true, Ordering::Relaxed);
            loops.join().unwrap()
        });
        assert_eq!(lateness.packets, 8);
        name_stacks(&network, &mut result);
        let stack = &result.flows.raw[0].stack;
        assert!(stack.starts_with("Linux ") && stack.len() > 8, "{stack}");
        let shortest = *times.iter().min().unwrap();
        assert!((Duration::from_millis(30)..Duration::from_millis(60)).contains(&shortest), "{times:?}");
    }
}
