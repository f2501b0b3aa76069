//! The observer that captures a run while it is running.

use std::sync::atomic::{AtomicBool, Ordering};

use typed_index_collections::{TiVec, ti_vec};

use celltrain_core::aal5::CellFormat;
use celltrain_core::cell::FrameNumber;
use celltrain_core::events::{EcnBits, Event, FrameStep, Observer};
use celltrain_core::index::{FlowIndex, LinkIndex, NodeIndex, VcIndex};
use celltrain_core::network::{Flow, Link, Network, NodeKind, Routing};
use celltrain_core::probe::Probe;
use celltrain_core::tcp::{Ecn, Segment};
use celltrain_core::units::{Clock, Time};

use crate::cells::Cells;
use crate::choice::CaptureChoice;
use crate::outcomes::{FrameOutcomes, Names, Waiting};
pub use crate::own_packet::OwnPacket;
use crate::sink::{Writing, blocks};
use crate::wire::{data, seen};
use crate::{
    About, Capture, CaptureError, CaptureKind, Circuit, Connection, End, Frame, Interface, Labels, Place, SeenFrame,
    Setting, Tcp,
};

/// Observer that captures a run.
pub struct Watch<'a> {
    clock: Clock,
    /// First instant of the window, and the first instant after the window.
    window: [Time; 2],
    looks: Looks,
    /// `None` after a failure.
    capture: Option<Writing<'a>>,
    /// The problem, if the capture cannot represent some traffic.
    refused: Option<String>,
    stopped: &'a AtomicBool,
}

/// Destination and description of a capture.
pub struct Destination<'a> {
    /// Receives the capture's bytes, and returns whether to continue.
    pub sink: &'a mut dyn FnMut(&[u8]) -> bool,
    /// Description to store in the capture's file.
    pub about: About,
    /// True if the engine reports the outcome of frames.
    pub tells_fates: bool,
    /// Flag that ends the run.
    pub stopped: &'a AtomicBool,
}

/// Observed places.
enum Looks {
    AtHosts(Packets),
    AtPorts(Box<Cells>),
}

struct Packets {
    /// Whether senders and receivers are observed.
    ends: [bool; 2],
    flows: TiVec<FlowIndex, bool>,
    /// Waiting packets, if the engine reports the outcome of frames.
    outcomes: Option<(FrameOutcomes, Names)>,
}

impl<'a> Watch<'a> {
    /// Captures the part of a run of this network that `choice` selects. Packets of requests, and cells of the VCs that
    /// carry them, are left out.
    ///
    /// # Errors
    /// If a port, VC or flow does not exist, or the traffic cannot be represented.
    pub fn new(choice: &CaptureChoice, network: &Network, into: Destination<'a>) -> Result<Self, String> {
        let Destination { sink, about, tells_fates, stopped } = into;
        let CaptureChoice { kind, looks_at, of } = choice;
        let chosen = of.of(network).map_err(|wrong| wrong.to_string())?;
        if kind.of_cells() && network.aal5.cell != CellFormat::ATM {
            let size = network.aal5.cell.size;
            return Err(format!("cells of {size} bytes cannot be captured; leave [cell] out, or capture packets"));
        }
        let routing = network.routing();
        let circuits = circuits(network, &routing, *kind)?;
        let hosts = if kind.of_cells() { [false; 2] } else { *looks_at };
        let (mut interfaces, connections) = at_hosts(network, &circuits, hosts, &chosen.flows);
        if kind.of_cells() {
            let links = network.links.iter().zip(&chosen.cells).filter(|(_, chosen)| **chosen);
            let port = |link: &Link| Interface {
                name: link.name.clone(),
                description: format!("output port, {} Mb/s", link.rate.bits_per_second as f64 / 1e6),
            };
            interfaces = links.map(|(link, _)| port(link)).collect();
        }
        let setting = Setting { kind: *kind, framing: network.aal5.clone(), interfaces, connections };
        let capture = Capture::new(blocks(sink), &about, setting).map_err(|error| error.to_string())?;
        let modelled = |(number, flow): &(u32, &Flow)| chosen.flows[FlowIndex::new(*number)] && !flow.outside;
        for (number, flow) in (0..).zip(&network.flows).filter(modelled) {
            let (bytes, _) = flow.frame(&network.aal5);
            let segment = Segment { seq: 0, len: u32::try_from(bytes).unwrap_or(u32::MAX) };
            let carries = data(segment, flow.traffic.packets().is_none());
            capture
                .fits(&Frame { connection: number, number: 0, ecn: EcnBits::default(), carries })
                .map_err(|error| error.to_string())?;
        }
        let looks = if kind.of_cells() {
            let mut vcs = chosen.vcs;
            network.requests.pairs.iter().flat_map(|pair| &pair.vcs).for_each(|&vc| vcs[vc] = false);
            Looks::AtPorts(Box::new(Cells::new(network, *looks_at, &chosen.cells, vcs, circuits)))
        } else {
            let outcomes = tells_fates.then(|| (FrameOutcomes::default(), Names::of(network)));
            Looks::AtHosts(Packets { ends: *looks_at, flows: chosen.flows, outcomes })
        };
        let clock = network.clock();
        Ok(Self { clock, window: chosen.window, looks, capture: Some(capture), refused: None, stopped })
    }

    /// Captures a packet of a host outside the simulation.
    pub fn on_packet(&mut self, now: Time, seen: &OwnPacket<'_>) {
        let [from, to] = self.window;
        let in_window = now >= from && now < to;
        let time_ns = nanoseconds(self.clock, now);
        self.write(|looks, capture| {
            match looks {
                Looks::AtPorts(cells) => cells.on_packet(seen, capture),
                Looks::AtHosts(Packets { ends, flows, .. })
                    if in_window && flows[seen.flow] && ends[usize::from(seen.at == Place::Receiver)] =>
                {
                    let mut packet = Waiting::settled(time_ns, seen.at, seen.frame());
                    packet.own = Some(seen.bytes.into());
                    return looks.packet(packet, seen.leaves.then_some((seen.vc, seen.frame)), capture);
                }
                Looks::AtHosts(_) => {}
            }
            Ok(())
        });
    }

    /// Writes the waiting packets and ends the capture.
    ///
    /// # Errors
    /// If some traffic cannot be represented. Failed writes are not reported, since `sink` already knows about them.
    pub fn finish(mut self) -> Result<(), String> {
        self.write(|looks, capture| match looks {
            Looks::AtHosts(Packets { outcomes: Some((outcomes, _)), .. }) => {
                std::iter::from_fn(|| outcomes.take()).try_for_each(|packet| put(capture, &packet))
            }
            Looks::AtHosts(_) => Ok(()),
            Looks::AtPorts(cells) => cells.flush(capture),
        });
        match self.capture.map(Capture::finish) {
            Some(Err(CaptureError::Refused(problem))) => Err(problem),
            _ => self.refused.map_or(Ok(()), Err),
        }
    }

    /// Calls `write`, and ends the run if it fails.
    fn write(&mut self, write: impl FnOnce(&mut Looks, &mut Writing<'a>) -> Result<(), CaptureError>) {
        let Some(capture) = &mut self.capture else { return };
        if let Err(error) = write(&mut self.looks, capture) {
            self.capture = None;
            self.stopped.store(true, Ordering::Relaxed);
            if let CaptureError::Refused(problem) = error {
                self.refused = Some(problem);
            }
        }
    }
}

impl Probe for Watch<'_> {}

impl Observer for Watch<'_> {
    const OBSERVES: bool = true;

    fn on_event(&mut self, now: Time, event: Event) {
        let [from, to] = self.window;
        let in_window = now >= from && now < to;
        let time_ns = nanoseconds(self.clock, now);
        match (&mut self.looks, event) {
            (Looks::AtHosts(packets), Event::Segment(event))
                if in_window && packets.flows.get(event.flow) == Some(&true) =>
            {
                if let Some((at, carries, leaves)) = seen(&event)
                    && packets.ends[usize::from(at == Place::Receiver)]
                {
                    let frame = Frame {
                        connection: event.flow.number(),
                        number: event.frame.number(),
                        ecn: event.ecn,
                        carries,
                    };
                    let packet = Waiting::settled(time_ns, at, frame);
                    let of = leaves.then_some((event.vc, event.frame));
                    self.write(|looks, capture| looks.packet(packet, of, capture));
                }
            }
            (Looks::AtHosts(Packets { outcomes: Some((outcomes, names)), .. }), Event::Frame(event))
                if !matches!(event.step, FrameStep::Admitted(_)) =>
            {
                outcomes.settle((event.vc, event.frame), || names.loss(&event));
                self.write(Looks::ready);
            }
            (Looks::AtPorts(_), event) => {
                self.write(|looks, capture| match looks {
                    Looks::AtPorts(cells) => cells.on_event((time_ns, in_window), &event, capture),
                    Looks::AtHosts(_) => Ok(()),
                });
            }
            _ => {}
        }
    }
}

impl Looks {
    /// Handles a packet seen at a host. `of` is its frame if the packet left that host.
    fn packet(
        &mut self,
        packet: Waiting,
        of: Option<(VcIndex, FrameNumber)>,
        capture: &mut Writing<'_>,
    ) -> Result<(), CaptureError> {
        let Looks::AtHosts(Packets { outcomes: Some((outcomes, _)), .. }) = self else { return put(capture, &packet) };
        outcomes.push(packet, of);
        self.ready(capture)
    }

    /// Writes the packets whose outcome is known.
    fn ready(&mut self, capture: &mut Writing<'_>) -> Result<(), CaptureError> {
        let Looks::AtHosts(Packets { outcomes: Some((outcomes, _)), .. }) = self else { return Ok(()) };
        std::iter::from_fn(|| outcomes.next()).try_for_each(|packet| put(capture, &packet))
    }
}

fn put(capture: &mut Writing<'_>, packet: &Waiting) -> Result<(), CaptureError> {
    let Waiting { time_ns, at, frame, comment, own, .. } = packet;
    let seen = SeenFrame { time_ns: *time_ns, at: *at, frame: *frame, comment: comment.as_deref() };
    match own {
        Some(bytes) => capture.own_packet(&seen, bytes),
        None => capture.frame(&seen),
    }
}

/// Returns the VPI and VCI of every VC on each link of its path. IPv4 captures do not show them, so for these captures
/// a label that does not fit is not an error.
fn circuits(network: &Network, routing: &Routing, kind: CaptureKind) -> Result<TiVec<VcIndex, Vec<Circuit>>, String> {
    let of_vc = |vc: VcIndex| {
        let circuit = |label| match Circuit::of_label(label) {
            None if kind != CaptureKind::Ip => {
                let name = &network.vcs[vc].name;
                Err(format!("a link of the VC {name} has more VCs than VPI and VCI can distinguish"))
            }
            circuit => Ok(circuit.unwrap_or_default()),
        };
        routing.labels(network, vc).map(|label| circuit(label.number())).collect()
    };
    network.vcs.keys().map(of_vc).collect()
}

/// Returns the observed hosts, and all connections.
fn at_hosts(
    network: &Network,
    circuits: &TiVec<VcIndex, Vec<Circuit>>,
    ends: [bool; 2],
    chosen: &TiVec<FlowIndex, bool>,
) -> (Vec<Interface>, Vec<Connection>) {
    let hosts_of = |vc: VcIndex| -> [NodeIndex; 2] {
        let path = &network.vcs[vc].path;
        let [first, last] = [path.first(), path.last()]
            .map(|link: Option<&LinkIndex>| &network.links[*link.expect("a VC crosses a link")]);
        [first.from, last.to]
    };
    let mut is_seen: TiVec<NodeIndex, bool> = ti_vec![false; network.nodes.len()];
    for (flow, _) in network.flows.iter().zip(chosen).filter(|(_, chosen)| **chosen) {
        for (host, _) in hosts_of(flow.data_vc).into_iter().zip(ends).filter(|(_, looks)| *looks) {
            is_seen[host] = true;
        }
    }
    let (mut numbers, mut interfaces) = (TiVec::<NodeIndex, _>::new(), Vec::new());
    // Packets of hosts outside the simulation have addresses in 10.0.0.0/9, which are in their bytes.
    let mut hosts = if network.flows.iter().any(|flow| flow.outside) { 1 << 23 } else { 0 };
    for (node, &is_seen) in network.nodes.iter().zip(&is_seen) {
        let interface = u32::try_from(interfaces.len()).expect("indices fit 32 bits");
        numbers.push((hosts, is_seen.then_some(interface)));
        hosts += u32::from(node.kind == NodeKind::Host);
        if is_seen {
            interfaces.push(Interface { name: node.name.clone(), description: "host".to_owned() });
        }
    }
    let labels = |vc: VcIndex| Labels {
        first: circuits[vc].first().copied().unwrap_or_default(),
        last: circuits[vc].last().copied().unwrap_or_default(),
    };
    let connection = |(flow, is_chosen): (&Flow, &bool)| {
        let [from, to] = hosts_of(flow.data_vc);
        let end = |host: NodeIndex, looks: bool| {
            let (number, interface) = numbers[host];
            End { host: number, interface: interface.filter(|_| looks && *is_chosen) }
        };
        let options = flow.tcp.options();
        let is_tcp = flow.uses_tcp();
        Connection {
            name: flow.name.clone(),
            sender: end(from, ends[0]),
            receiver: end(to, ends[1]),
            data: labels(flow.data_vc),
            acks: if is_tcp || flow.outside { labels(flow.ack_vc) } else { Labels::default() },
            tcp: is_tcp.then(|| Tcp {
                mss: options.mss.bytes,
                receive_window: options.receive_window.bytes,
                selective: flow.tcp.selective(),
                ecn: flow.tcp.options().ecn == Ecn::On,
            }),
        }
    };
    let connections = network.flows.iter().zip(chosen).map(connection).collect();
    (interfaces, connections)
}

/// Converts a time to whole nanoseconds since the start.
pub fn nanoseconds(clock: Clock, time: Time) -> u64 {
    let nanoseconds = u128::from(time.0) * NS_PER_SECOND / u128::from(clock.units_per_second);
    u64::try_from(nanoseconds).unwrap_or(u64::MAX)
}

const NS_PER_SECOND: u128 = 1_000_000_000;
