//! The observer that writes a capture during a run.

use std::sync::atomic::{AtomicBool, Ordering};

use typed_index_collections::TiVec;

use celltrain_core::aal5::{CellFormat, Framing};
use celltrain_core::cell::FrameNumber;
use celltrain_core::events::{EcnBits, Event, FrameStep, Observer, RequestStep};
use celltrain_core::index::{FlowIndex, VcIndex};
use celltrain_core::network::{Link, Network, Routing};
use celltrain_core::probe::Probe;
use celltrain_core::requests::{GroupIndex, PairIndex, RequestGroup};
use celltrain_core::tcp::Segment;
use celltrain_core::units::{Clock, Time};

use crate::cells::Cells;
use crate::choice::CaptureChoice;
use crate::connections::{Connections, chosen_flows};
use crate::outcomes::{FrameOutcomes, Names, Waiting};
use crate::outside::Outside;
pub use crate::own_packet::OwnPacket;
use crate::selection::{Selected, listed};
use crate::sink::{Writing, blocks};
use crate::wire::{data, seen};
use crate::{About, Capture, CaptureError, CaptureKind, Carries, Circuit, Frame, Interface, Place, SeenFrame, Setting};

/// Observer that captures a run.
pub struct Watch<'a> {
    clock: Clock,
    /// First instant in the time window, and first instant after the window.
    window: [Time; 2],
    outside: Outside,
    looks: Looks,
    connections: Connections,
    /// The capture that is being written; `None` after writing has failed.
    capture: Option<Writing<'a>>,
    /// Description of the problem if the capture cannot represent part of the traffic.
    refused: Option<String>,
    stopped: &'a AtomicBool,
}

/// Destination and description of a capture.
pub struct Destination<'a> {
    /// Function that receives the capture's bytes, and returns whether to continue.
    pub sink: &'a mut dyn FnMut(&[u8]) -> bool,
    /// Description to store in the capture's file.
    pub about: About,
    /// True if the engine reports the outcome of frames.
    pub has_outcomes: bool,
    /// Flag that ends the run when it is set.
    pub stopped: &'a AtomicBool,
}

/// Number of packets in a capture that has ended, and the times of packets outside its window.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    packets: u64,
    outside: Outside,
    /// The words for the captured items and their place, such as "packets at senders", for errors.
    what: &'static str,
}

impl Ended {
    /// Returns whether the capture contains no packets and no cells.
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Returns the number of packets or cells in the capture, without the synthetic handshakes at the beginning.
    ///
    /// # Errors
    /// If the capture contains no packets or cells. The error gives the first and the last time at which the run has
    /// chosen packets or cells.
    pub fn packets(self) -> Result<u64, String> {
        if !self.is_empty() {
            return Ok(self.packets);
        }
        let what = self.what;
        Err(match self.outside.times() {
            None => format!("the capture would be empty: the run sends none of the chosen {what}"),
            Some(times) => {
                let [first, last] = times.map(|time_ns| time_ns as f64 / NS_PER_SECOND as f64);
                format!(
                    "the capture would be empty: its window has no chosen {what}; the run has them from {first}s to {last}s"
                )
            }
        })
    }
}

/// Places that a capture observes, with their packets or cells.
enum Looks {
    AtHosts(Packets),
    AtPorts(Box<Cells>),
}

struct Packets {
    /// Two flags: whether the capture observes senders, and whether it observes receivers.
    ends: [bool; 2],
    chosen: Box<Selected>,
    /// Packets that wait for the outcome of their frames; `None` if the engine does not report outcomes.
    outcomes: Option<(FrameOutcomes, Names)>,
}

impl<'a> Watch<'a> {
    /// Captures the part of a run of this network that `choice` selects.
    ///
    /// # Errors
    /// If a port, VC or flow does not exist, the capture cannot represent the traffic, or the capture would be empty.
    pub fn new(choice: &CaptureChoice, network: &Network, into: Destination<'a>) -> Result<Self, String> {
        let Destination { sink, about, has_outcomes, stopped } = into;
        let CaptureChoice { kind, looks_at, of } = choice;
        let chosen = of.of(network).map_err(|wrong| wrong.to_string())?;
        if kind.of_cells() && network.aal5.cell != CellFormat::ATM {
            let size = network.aal5.cell.size;
            return Err(format!("cells of {size} bytes cannot be captured; leave [cell] out, or capture packets"));
        }
        if *kind != CaptureKind::Ip && network.aal5.framing == Framing::Packets {
            return Err(
                "with framing = \"packets\", there are neither AAL5 frames nor ATM cells to capture; capture ip"
                    .to_owned(),
            );
        }
        let routing = network.routing();
        let circuits = circuits(network, &routing, *kind)?;
        let hosts = if kind.of_cells() { [false; 2] } else { *looks_at };
        let connections = Connections::new(network, &circuits, hosts, &chosen);
        let interfaces = if kind.of_cells() {
            let links = network.links.iter().zip(&chosen.cells).filter(|(_, chosen)| **chosen);
            let port = |link: &Link| Interface {
                name: link.name.clone(),
                description: format!("output port, {} Mb/s", link.rate.bits_per_second as f64 / 1e6),
            };
            links.map(|(link, _)| port(link)).collect()
        } else {
            connections.interfaces(network)
        };
        if kind.of_cells() {
            refuse_silent_ports(network, &chosen)?;
        } else if interfaces.is_empty() {
            return Err(NO_PACKETS.to_owned());
        }
        let flows = network.flows.iter().zip(&chosen.flows);
        let flows = flows.map(|(flow, chosen)| connections.of_flow(flow, hosts.map(|looks| looks && *chosen)));
        let setting = Setting { kind: *kind, framing: network.aal5.clone(), interfaces, connections: flows.collect() };
        let capture = Capture::new(blocks(sink), &about, setting).map_err(|error| error.to_string())?;
        for (number, flow) in chosen_flows(network, &chosen.flows).filter(|(_, flow)| !flow.outside) {
            let (bytes, _) = flow.frame(&network.aal5);
            let segment = Segment { seq: 0, len: u32::try_from(bytes).unwrap_or(u32::MAX) };
            let carries = data(segment, flow.traffic.packets().is_none());
            capture
                .fits(&Frame { connection: number.number(), number: 0, ecn: EcnBits::default(), carries })
                .map_err(|error| error.to_string())?;
        }
        for (group, vcs) in groups(network) {
            let request = connections.of_request(group, 0, vcs);
            capture.fits_segments(&request).map_err(|error| error.to_string())?;
        }
        let (clock, window) = (network.clock(), chosen.window);
        let looks = if kind.of_cells() {
            Looks::AtPorts(Box::new(Cells::new(network, *looks_at, &chosen.cells, chosen.vcs, circuits)))
        } else {
            let outcomes = has_outcomes.then(|| (FrameOutcomes::default(), Names::of(network)));
            Looks::AtHosts(Packets { ends: *looks_at, chosen: Box::new(chosen), outcomes })
        };
        let outside = Outside::default();
        Ok(Self { clock, window, outside, looks, connections, capture: Some(capture), refused: None, stopped })
    }

    /// Captures a packet of a host outside the simulation.
    pub fn on_packet(&mut self, now: Time, seen: &OwnPacket<'_>) {
        let [from, to] = self.window;
        let in_window = now >= from && now < to;
        let time_ns = nanoseconds(self.clock, now);
        if let Looks::AtHosts(packets) = &self.looks
            && !in_window
            && packets.keep(seen.flow, seen.at)
        {
            self.outside.add(time_ns);
        }
        self.write(|looks, capture| {
            match looks {
                Looks::AtPorts(cells) => cells.on_packet(seen, capture),
                Looks::AtHosts(packets) if in_window && packets.keep(seen.flow, seen.at) => {
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
    /// If the capture cannot represent part of the traffic. A failed write is not an error here, since the sink itself
    /// reported the failure.
    pub fn finish(mut self) -> Result<Ended, String> {
        self.write(|looks, capture| match looks {
            Looks::AtHosts(Packets { outcomes: Some((outcomes, _)), .. }) => {
                std::iter::from_fn(|| outcomes.take()).try_for_each(|packet| put(capture, &packet))
            }
            Looks::AtHosts(_) => Ok(()),
            Looks::AtPorts(cells) => cells.flush(capture),
        });
        let ended = Ended {
            packets: self.capture.as_ref().map_or(0, Capture::packets),
            outside: match &self.looks {
                Looks::AtHosts(_) => self.outside,
                Looks::AtPorts(cells) => cells.outside,
            },
            what: self.looks.what(),
        };
        match self.capture.map(Capture::finish) {
            Some(Err(CaptureError::Refused(problem))) => Err(problem),
            _ => self.refused.map_or(Ok(ended), Err),
        }
    }

    /// Calls `write`, and ends the run if `write` fails.
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
            (_, Event::Request(event)) => {
                if let RequestStep::Opened { group, number, vcs, .. } = event.step {
                    let connection = self.connections.of_request(group, number, vcs);
                    self.write(|_, capture| capture.open(connection));
                }
            }
            (Looks::AtHosts(packets), Event::Segment(event)) => {
                let (at, carries, leaves) = seen(&event);
                if !packets.keep(event.flow, at) {
                    return;
                }
                if in_window {
                    let frame = Frame {
                        connection: event.flow.number(),
                        number: event.frame.number(),
                        ecn: event.ecn,
                        carries,
                    };
                    let packet = Waiting::settled(time_ns, at, frame);
                    let of = leaves.then_some((event.vc, event.frame));
                    self.write(|looks, capture| looks.packet(packet, of, capture));
                } else {
                    self.outside.add(time_ns);
                }
            }
            (Looks::AtHosts(Packets { outcomes: Some((outcomes, names)), .. }), Event::Frame(event))
                if !matches!(event.step, FrameStep::Admitted(_) | FrameStep::Marked(_)) =>
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

impl Packets {
    /// Returns whether the packets of a connection are captured at this place.
    fn keep(&self, flow: FlowIndex, at: Place) -> bool {
        self.chosen.keeps(flow) && self.ends[usize::from(at == Place::Receiver)]
    }
}

impl Looks {
    /// Returns the words for the captured items and their place, for errors.
    fn what(&self) -> &'static str {
        match self {
            Looks::AtHosts(Packets { ends: [true, false], .. }) => "packets at senders",
            Looks::AtHosts(Packets { ends: [false, true], .. }) => "packets at receivers",
            Looks::AtHosts(_) => "packets at hosts",
            Looks::AtPorts(_) => "cells at the chosen ports",
        }
    }

    /// Writes a packet seen at a host, or stores the packet until its outcome is known. `of` is the packet's frame if
    /// the packet left this host.
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
    let mut comment = comment.as_deref();
    let opening;
    if frame.carries == Carries::Syn {
        let name = capture.name(frame);
        opening = comment.map_or_else(|| format!("opens {name}"), |loss| format!("opens {name}; {loss}"));
        comment = Some(&opening);
    }
    let seen = SeenFrame { time_ns: *time_ns, at: *at, frame: *frame, comment };
    match own {
        Some(bytes) => capture.own_packet(&seen, bytes),
        None => capture.frame(&seen),
    }
}

/// Returns the VPI and VCI of every VC on each link of its path. A capture of IPv4 packets does not contain VPI and
/// VCI, so it accepts labels too large for VPI and VCI.
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

/// Returns the groups of requests that have at least one pair of hosts, each with the two VCs between the first pair.
fn groups(network: &Network) -> impl Iterator<Item = (GroupIndex, [VcIndex; 2])> {
    let pairs = &network.requests.pairs;
    let vcs = |pair: PairIndex| [pairs[pair].vcs[0], pairs[pairs[pair].back].vcs[0]];
    let groups = network.requests.groups.iter_enumerated();
    groups.filter_map(move |(number, group)| Some((number, vcs(group.pairs().next()?))))
}

/// Returns an error if none of the chosen ports is crossed by cells of a chosen VC.
fn refuse_silent_ports(network: &Network, chosen: &Selected) -> Result<(), String> {
    let pairs = network.requests.groups.iter().flat_map(RequestGroup::pairs);
    let pairs = pairs.map(|pair| &network.requests.pairs[pair]);
    let of_pairs = pairs.flat_map(|pair| pair.vcs.iter().chain(&network.requests.pairs[pair.back].vcs)).copied();
    let of_flows = network.flows.iter().flat_map(|flow| {
        let has_acks = flow.uses_tcp() || flow.outside || network.vcs[flow.data_vc].abr.is_some();
        [flow.data_vc].into_iter().chain(has_acks.then_some(flow.ack_vc))
    });
    let mut crossed: TiVec<_, bool> = network.links.iter().map(|_| false).collect();
    for vc in of_flows.chain(of_pairs).filter(|&vc| chosen.vcs[vc]) {
        network.vcs[vc].path.iter().for_each(|&link| crossed[link] = true);
    }
    if crossed.iter().zip(&chosen.cells).any(|(crossed, chosen)| *crossed && *chosen) {
        return Ok(());
    }
    let names = |links: &TiVec<_, bool>| -> Vec<&str> {
        network.links.iter().zip(links).filter(|(_, is_in)| **is_in).map(|(link, _)| link.name.as_str()).collect()
    };
    Err(format!(
        "the capture would be empty: no chosen cells cross {}; choose from {}",
        listed(&names(&chosen.cells)),
        listed(&names(&crossed))
    ))
}

/// Converts a time to whole nanoseconds since the start of the run.
pub fn nanoseconds(clock: Clock, time: Time) -> u64 {
    let nanoseconds = u128::from(time.0) * NS_PER_SECOND / u128::from(clock.units_per_second);
    u64::try_from(nanoseconds).unwrap_or(u64::MAX)
}

const NO_PACKETS: &str = "the capture would be empty: the chosen VCs carry requests, whose packets are captured only \
                          without the options vcs and flows; leave both out, or capture cells";

const NS_PER_SECOND: u128 = 1_000_000_000;
