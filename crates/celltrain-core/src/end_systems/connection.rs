//! A connection, with its two ends, its traffic and its results.

use super::OutsideCounters;
use crate::aal5::Aal5Options;
use crate::file_delay::Files;
use crate::fingerprint::Fingerprint;
use crate::index::VcIndex;
use crate::network::{Flow, Network};
use crate::rng::Stream;
use crate::tcp::{Receiver, Sender, TcpConfig, WindowLoss};
use crate::traffic::Emissions;
use crate::traffic::bursts::Pauses;
use crate::units::{Clock, Span, Time};

/// A connection with its two ends and their state.
pub struct Connection {
    /// The sending end.
    pub sender: Sender,
    /// The receiving end.
    pub receiver: Receiver,
    pub(super) data_vc: VcIndex,
    pub(super) ack_vc: VcIndex,
    pub(super) data_cells: u32,
    pub(super) ack_cells: u32,
    /// True if the two ends exchange SACK blocks.
    pub(super) selective: bool,
    /// Selects the segments to be damaged in transit, if any.
    pub(super) loss: Option<WindowLoss>,
    pub(super) start: Time,
    /// Time of the next segment that pacing allows, if it is scheduled in [`EndSystems`](super::EndSystems).
    pub(super) departure: Option<Time>,
    /// Time at which the last byte was acknowledged.
    pub(super) ended: Option<Time>,
    /// The files into which the stream is divided, if their delays are measured.
    pub(super) files: Option<Box<Files>>,
    /// Bursts of data over TCP, if the flow's traffic consists of bursts.
    pub(super) bursts: Option<Box<Bursts>>,
    /// The packet source, if the flow does not use TCP.
    pub(super) packets: Option<Box<Packets>>,
    /// Counters reported by end systems outside the simulation, if the flow has such ends.
    pub(super) outside: Option<Box<OutsideCounters>>,
    pub(super) fingerprint: Fingerprint,
    /// Observations at the two ends that are not yet in the fingerprint. Used only if the two ends are in different
    /// partitions.
    pub(super) sights: Option<Box<Sights>>,
}

/// An observation at one end of a connection, for the fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sight {
    pub(super) time: Time,
    pub(super) seen: Seen,
    /// A sequence number or packet number; unused for a timeout.
    pub(super) which: u64,
}

/// Kinds of observations at an end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Segment = 1,
    Ack = 2,
    Timeout = 3,
    Packet = 4,
    Syn = 5,
    SynAck = 6,
}

/// Observations at one end, in time order.
pub(super) type Sights = Vec<Sight>;

impl Sight {
    fn fold_into(self, fingerprint: &mut Fingerprint) {
        fingerprint.fold_all([self.seen as u64, self.time.0]);
        if self.seen != Seen::Timeout {
            fingerprint.fold(self.which);
        }
    }
}

/// State of a connection that sends bursts over TCP.
pub(super) struct Bursts {
    /// Size of each burst.
    pub(super) bytes: u64,
    pub(super) pauses: Pauses,
    /// Start of the next burst; set once the previous burst is acknowledged.
    pub(super) next: Option<Time>,
}

/// State of a source that sends packets without feedback.
pub(super) struct Packets {
    pub(super) emissions: Emissions,
    /// Payload of each packet.
    pub(super) bytes: u64,
    pub(super) counters: PacketCounters,
}

/// Counters for the packets of a flow without TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounters {
    /// Packets sent.
    pub sent: u64,
    /// Whole packets received.
    pub delivered: u64,
    /// Payload bytes of the packets that arrived complete.
    pub delivered_bytes: u64,
}

impl Connection {
    pub(super) fn new(network: &Network, flow: &Flow, clock: Clock) -> Self {
        let (payload, data_cells) = flow.frame(&network.aal5);
        let start = network.start_of(flow, clock);
        let bytes = flow.traffic.bytes().map_or(u64::MAX, |file| file.bytes);
        let bursts = flow.traffic.bursts().filter(|_| flow.uses_tcp()).map(|config| {
            let stream = Stream::new(network.seed, &format!("flow/{}/bursts", flow.name));
            Box::new(Bursts { bytes: config.bytes.bytes, pauses: Pauses::new(config, clock, stream), next: None })
        });
        let packets = flow.traffic.packets().filter(|_| !flow.outside).map(|pattern| {
            let stream = Stream::new(network.seed, &format!("flow/{}/on_off", flow.name));
            let emissions = Emissions::new(&pattern, data_cells, start, clock, stream);
            Box::new(Packets { emissions, bytes: payload, counters: PacketCounters::default() })
        });
        Self {
            data_cells,
            files: network.file_size.filter(|_| flow.uses_tcp()).map(|size| Box::new(Files::of(size.bytes))),
            bursts,
            packets,
            outside: flow.outside.then(Box::default),
            ..Self::over_tcp(&flow.tcp, &network.aal5, clock, [flow.data_vc, flow.ack_vc], bytes, start)
                .drawing_from(|| Stream::new(network.seed, &format!("flow/{}/congestion", flow.name)))
        }
    }

    /// Creates a connection that sends `bytes` over TCP from `start` on. `vcs` are the VC of its data and the VC of its
    /// acknowledgements.
    pub(super) fn over_tcp(
        tcp: &TcpConfig,
        aal5: &Aal5Options,
        clock: Clock,
        vcs: [VcIndex; 2],
        bytes: u64,
        start: Time,
    ) -> Self {
        let options = tcp.options();
        let data_cells = aal5.segment_cells(options.mss.bytes);
        let sender = Sender::new(tcp, clock).of_bytes(bytes);
        let [data_vc, ack_vc] = vcs;
        Self {
            sender: match options.pacing_rate {
                Some(rate) => sender.paced(clock.cell_time(rate) * u64::from(data_cells)),
                None => sender,
            },
            receiver: Receiver::new(tcp),
            data_vc,
            ack_vc,
            data_cells,
            ack_cells: aal5.segment_cells(0),
            selective: tcp.selective(),
            loss: options
                .window_rules()
                .lose_at_window
                .map(|at| WindowLoss::new(at.bytes as f64 / options.mss.bytes as f64)),
            start,
            departure: None,
            ended: None,
            files: None,
            bursts: None,
            packets: None,
            outside: None,
            fingerprint: Fingerprint::default(),
            sights: None,
        }
    }

    /// Sets the source of the random numbers of the sender's congestion control.
    pub(super) fn drawing_from(self, stream: impl FnOnce() -> Stream) -> Self {
        Self { sender: self.sender.drawing_from(stream), ..self }
    }

    /// Records an observation.
    #[inline]
    pub(super) fn sees(&mut self, seen: Seen, time: Time, which: u64) {
        let sight = Sight { time, seen, which };
        match &mut self.sights {
            None => sight.fold_into(&mut self.fingerprint),
            Some(sights) => sights.push(sight),
        }
    }

    /// Adds the observations at both ends to the fingerprint in time order. Within an instant, deliveries precede clock
    /// ticks and are ordered by link.
    pub(super) fn fold_sights(&mut self, others: impl Iterator<Item = Sight>, data_goes_first: bool) {
        let Some(own) = &mut self.sights else {
            unreachable!("the ends of the connection are in different partitions")
        };
        let rank = |sight: &Sight| match sight.seen {
            Seen::Segment | Seen::Packet | Seen::Syn => (sight.time, u8::from(!data_goes_first)),
            Seen::Ack | Seen::SynAck => (sight.time, u8::from(data_goes_first)),
            Seen::Timeout => (sight.time, 2),
        };
        let mut others = others.peekable();
        for sight in own.drain(..) {
            while let Some(other) = others.next_if(|other| rank(other) < rank(&sight)) {
                other.fold_into(&mut self.fingerprint);
            }
            sight.fold_into(&mut self.fingerprint);
        }
        for other in others {
            other.fold_into(&mut self.fingerprint);
        }
    }

    /// Returns the packet counters of the connection, if it does not use TCP.
    pub fn packets(&self) -> Option<PacketCounters> {
        self.packets.as_ref().map(|packets| packets.counters)
    }

    /// Returns the number of distinct bytes delivered to the application: the bytes in order over TCP, otherwise the
    /// bytes of all packets that arrived.
    pub fn delivered_bytes(&self) -> u64 {
        let others = self.packets.as_ref().map_or(0, |packets| packets.counters.delivered_bytes);
        self.receiver.delivered() + others + self.outside.as_ref().map_or(0, |outside| outside.delivered_bytes)
    }

    /// Returns the counters that end systems outside the simulation report, if they are the flow's ends.
    pub fn outside(&self) -> Option<OutsideCounters> {
        self.outside.as_deref().copied()
    }

    /// Returns the time from the connection's start until the sender knew that the whole file had arrived.
    pub fn completion(&self) -> Option<Span> {
        let ended = self.ended.or_else(|| self.outside.as_ref().and_then(|outside| outside.completed));
        ended.map(|ended| ended - self.start)
    }

    /// Returns the delay D of each complete file of the stream, in order; `None` if delays are not measured.
    pub fn file_delays(&self) -> Option<&[Span]> {
        self.files.as_ref().map(|files| files.delays())
    }

    /// Returns cwnd and ssthresh in segments, or zeros if the flow does not use the simulated TCP. End systems outside
    /// the simulation may report cwnd.
    pub fn windows(&self) -> [f64; 2] {
        if let Some(outside) = &self.outside {
            return [self.sender.segments(outside.cwnd_bytes), 0.0];
        }
        if self.packets.is_some() {
            return [0.0; 2];
        }
        [self.sender.cwnd(), self.sender.ssthresh()]
    }
}
