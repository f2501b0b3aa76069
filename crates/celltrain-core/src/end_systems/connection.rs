//! One connection: its two ends, what it has to send, and what became of that.

use crate::file_delay::Files;
use crate::fingerprint::Fingerprint;
use crate::index::VcIndex;
use crate::network::{Flow, Network};
use crate::rng::Stream;
use crate::tcp::{Receiver, Sender, WindowLoss};
use crate::traffic::Emissions;
use crate::traffic::bursts::Pauses;
use crate::units::{Clock, Span, Time};

/// One connection: its two ends and what they have to show.
pub struct Connection {
    /// The sending end.
    pub sender: Sender,
    /// The receiving end.
    pub receiver: Receiver,
    pub(super) data_vc: VcIndex,
    pub(super) ack_vc: VcIndex,
    pub(super) data_cells: u32,
    pub(super) ack_cells: u32,
    /// Whether its ends exchange SACK blocks.
    pub(super) selective: bool,
    /// Which of its segments are damaged on their way.
    pub(super) loss: Option<WindowLoss>,
    pub(super) start: Time,
    /// When its pace lets it go on, as noted among all departures.
    pub(super) departure: Option<Time>,
    /// When its last byte was acknowledged.
    pub(super) ended: Option<Time>,
    /// The files its stream is cut into, where their delay is measured.
    pub(super) files: Option<Box<Files>>,
    /// What TCP has to send, where it comes in bursts.
    pub(super) bursts: Option<Box<Bursts>>,
    /// What sends instead of TCP.
    pub(super) packets: Option<Box<Packets>>,
    pub(super) fingerprint: Fingerprint,
    /// What its ends saw and its fingerprint has not folded yet, where its two ends are simulated apart.
    pub(super) sights: Option<Box<Sights>>,
}

/// Something that an end of a connection saw, as its fingerprint folds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sight {
    pub(super) time: Time,
    pub(super) seen: Seen,
    /// Which: a sequence number or a packet's; nothing of a timeout.
    pub(super) which: u64,
}

/// What there is to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Segment = 1,
    Ack = 2,
    Timeout = 3,
    Packet = 4,
}

/// Sights in the order of time, of one end.
pub(super) type Sights = Vec<Sight>;

impl Sight {
    fn fold_into(self, fingerprint: &mut Fingerprint) {
        fingerprint.fold_all([self.seen as u64, self.time.0]);
        if self.seen != Seen::Timeout {
            fingerprint.fold(self.which);
        }
    }
}

/// Bursts over TCP.
pub(super) struct Bursts {
    /// Size of each.
    pub(super) bytes: u64,
    pub(super) pauses: Pauses,
    /// When the next one begins, once the last is acknowledged.
    pub(super) next: Option<Time>,
}

/// Packets that nothing answers.
pub(super) struct Packets {
    pub(super) emissions: Emissions,
    /// Payload of each.
    pub(super) bytes: u64,
    pub(super) counters: PacketCounters,
}

/// What became of the packets of a flow without TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounters {
    /// Put in.
    pub sent: u64,
    /// Arrived whole.
    pub delivered: u64,
    /// Their payload.
    pub delivered_bytes: u64,
}

impl Connection {
    /// That of a flow, before anything was sent.
    pub(super) fn new(network: &Network, flow: &Flow, clock: Clock) -> Self {
        let options = flow.tcp.options();
        let (payload, data_cells) = flow.frame(&network.aal5);
        let start = Time::default() + clock.span(flow.start);
        let start = start + network.host.start_delay(network.seed, &flow.name, clock);
        let sender = Sender::new(&flow.tcp, clock);
        let sender = sender.of_bytes(flow.traffic.bytes().map_or(u64::MAX, |file| file.bytes));
        let bursts = flow.traffic.bursts().map(|config| {
            let stream = Stream::new(network.seed, &format!("flow/{}/bursts", flow.name));
            Box::new(Bursts { bytes: config.bytes.bytes, pauses: Pauses::new(config, clock, stream), next: None })
        });
        let packets = flow.traffic.packets().map(|pattern| {
            let stream = Stream::new(network.seed, &format!("flow/{}/on_off", flow.name));
            let emissions = Emissions::new(&pattern, data_cells, start, clock, stream);
            Box::new(Packets { emissions, bytes: payload, counters: PacketCounters::default() })
        });
        Self {
            sender: match options.pacing_rate {
                Some(rate) => sender.paced(clock.cell_time(rate) * u64::from(data_cells)),
                None => sender,
            },
            receiver: Receiver::new(&flow.tcp),
            data_vc: flow.data_vc,
            ack_vc: flow.ack_vc,
            data_cells,
            ack_cells: network.aal5.segment_cells(0),
            selective: flow.tcp.selective(),
            loss: options.lose_at_window.map(|at| WindowLoss::new(at.bytes as f64 / options.mss.bytes as f64)),
            start,
            departure: None,
            ended: None,
            files: network.file_size.filter(|_| sends_over_tcp(flow)).map(|size| Box::new(Files::of(size.bytes))),
            bursts,
            packets,
            fingerprint: Fingerprint::default(),
            sights: None,
        }
    }

    /// An end saw something.
    #[inline]
    pub(super) fn sees(&mut self, seen: Seen, time: Time, which: u64) {
        let sight = Sight { time, seen, which };
        match &mut self.sights {
            None => sight.fold_into(&mut self.fingerprint),
            Some(sights) => sights.push(sight),
        }
    }

    /// Folds what its ends saw, each end's in order. In an instant what is delivered comes first, by link, and then what
    /// clocks do.
    pub(super) fn fold_sights(&mut self, others: impl Iterator<Item = Sight>, data_goes_first: bool) {
        let Some(own) = &mut self.sights else { unreachable!("its ends are simulated apart") };
        let rank = |sight: &Sight| match sight.seen {
            Seen::Segment | Seen::Packet => (sight.time, u8::from(!data_goes_first)),
            Seen::Ack => (sight.time, u8::from(data_goes_first)),
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

    /// What became of its packets, if TCP does not send it.
    pub fn packets(&self) -> Option<PacketCounters> {
        self.packets.as_ref().map(|packets| packets.counters)
    }

    /// Bytes handed to the application, each once: in order over TCP, those of all that arrived without.
    pub fn delivered_bytes(&self) -> u64 {
        self.receiver.delivered() + self.packets.as_ref().map_or(0, |packets| packets.counters.delivered_bytes)
    }

    /// From its start until its sender knew that all of a file had arrived.
    pub fn completion(&self) -> Option<Span> {
        self.ended.map(|ended| ended - self.start)
    }

    /// D of the files of its stream that are complete, in order; `None` where that is not measured.
    pub fn file_delays(&self) -> Option<&[Span]> {
        self.files.as_ref().map(|files| files.delays())
    }

    /// cwnd and ssthresh in segments; nothing of either without TCP.
    pub fn windows(&self) -> [f64; 2] {
        match self.packets {
            None => [self.sender.cwnd(), self.sender.ssthresh()],
            Some(_) => [0.0; 2],
        }
    }
}

/// Whether TCP sends what a flow has to send.
pub(super) fn sends_over_tcp(flow: &Flow) -> bool {
    flow.traffic.packets().is_none()
}
