//! QUIC (RFC 9000) from the crate [quinn-proto](https://docs.rs/quinn-proto).
//!
//! The sender is the client. Each file, each burst, and endless data use one stream. Connections are not encrypted, so
//! the seed determines all bytes. The path MTU is known and not probed; idle connections stay open; packets carry
//! ECT(0), but no switch marks them. The receiving application reads immediately.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::BytesMut;
use etherparse::{IpEcn, IpHeaders, IpNumber, Ipv4Header, NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent,
    Dir, EcnCodepoint, EndpointConfig, Event, ReadError, ServerConfig, StreamEvent, StreamId, TimeSource,
    TransportConfig, WriteError,
};

use celltrain_core::rng::Stream;

use crate::application::{Application, Source, payload};
use crate::stack::{Endpoint, Packet, Report, Side, Stack};

mod session;

use session::{NoKey, NoTls};

/// Version of quinn-proto.
pub const VERSION: &str = "0.11.19";

/// Settings of both ends of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Congestion control.
    pub congestion: Congestion,
    /// Length of a full packet in bytes, including the headers of IP and UDP.
    pub mtu: u16,
    /// Bytes that the receiver permits beyond what its application has read.
    pub receive_window: u32,
    /// Amount of unacknowledged data that the sender keeps, in bytes.
    pub send_buffer: u64,
    /// Initial congestion window in bytes; `None` for quinn-proto's default.
    pub initial_window: Option<u32>,
    /// Round-trip time assumed before the first measurement.
    pub initial_rtt: Duration,
    /// Longest acknowledgement delay that the sender requests; `None` for the receiver's default of 25 ms.
    pub ack_delay: Option<Duration>,
}

/// Congestion control of quinn-proto.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// `NewReno` (RFC 9002).
    NewReno,
    /// CUBIC (RFC 8312), in floating-point arithmetic.
    Cubic,
    /// BBR, version 1. Its random numbers have no seed, but only choose where the cycle of pacing gains begins. The
    /// window does not depend on these gains, and quinn-proto paces by the window, so runs repeat.
    Bbr,
}

impl Default for Config {
    /// Returns quinn-proto's own defaults, with packets of 1500 bytes and a window of 65535 bytes.
    fn default() -> Self {
        Self {
            congestion: Congestion::Cubic,
            mtu: 1500,
            receive_window: 65_535,
            send_buffer: 8 * 65_535,
            initial_window: None,
            initial_rtt: Duration::from_millis(333),
            ack_delay: None,
        }
    }
}

impl Config {
    /// The shortest MTU: QUIC needs UDP packets with 1200 bytes.
    pub const MIN_MTU: u16 = 1200 + HEADERS;

    /// Returns the settings of quinn-proto.
    fn transport(&self) -> TransportConfig {
        let mut own = TransportConfig::default();
        let datagram = self.mtu - HEADERS;
        own.initial_mtu(datagram).min_mtu(datagram).mtu_discovery_config(None).max_idle_timeout(None);
        own.stream_receive_window(self.receive_window.into()).receive_window(self.receive_window.into());
        own.send_window(self.send_buffer).initial_rtt(self.initial_rtt);
        if let Some(delay) = self.ack_delay {
            let mut asked = AckFrequencyConfig::default();
            asked.max_ack_delay(Some(delay));
            own.ack_frequency_config(Some(asked));
        }
        own.congestion_controller_factory(self.controller());
        own
    }

    fn controller(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        let window = self.initial_window.map(u64::from);
        match self.congestion {
            Congestion::NewReno => {
                let mut own = NewRenoConfig::default();
                window.map(|window| own.initial_window(window));
                Arc::new(own)
            }
            Congestion::Cubic => {
                let mut own = CubicConfig::default();
                window.map(|window| own.initial_window(window));
                Arc::new(own)
            }
            Congestion::Bbr => {
                let mut own = BbrConfig::default();
                window.map(|window| own.initial_window(window));
                Arc::new(own)
            }
        }
    }
}

/// One end of a connection over QUIC.
pub struct Quic {
    end: Endpoint,
    endpoint: quinn_proto::Endpoint,
    /// The sender's settings, kept until the sender connects.
    client: Option<ClientConfig>,
    connection: Option<(ConnectionHandle, Connection)>,
    /// The stream that is being sent or received.
    stream: Option<StreamId>,
    source: Source,
    /// Data that the application has written but the stream has not accepted yet.
    unsent: Vec<u8>,
    /// Number of bytes acknowledged, up to the last finished stream.
    acknowledged: u64,
    /// Bytes read by the receiver.
    received: u64,
    /// Start of the run on the clock of quinn-proto.
    start: Instant,
    next: Option<Duration>,
}

const PORT: u16 = 443;
/// UDP header plus IP header without options.
const HEADERS: u16 = 28;
const TIME_TO_LIVE: u8 = 64;
/// Number of bytes that an application writes in one call.
const WRITE: usize = 4096;

impl Quic {
    /// Creates an end of a connection. The receiver ignores `application`.
    ///
    /// # Panics
    /// If the MTU is below [`Config::MIN_MTU`].
    pub fn new(config: &Config, end: Endpoint, application: Application) -> Self {
        assert!(config.mtu >= Config::MIN_MTU, "QUIC needs an MTU of {} bytes or more", Config::MIN_MTU);
        let seed = end.seed;
        let mut own = EndpointConfig::new(Arc::new(NoKey));
        own.rng_seed(Some(random(seed, "quic"))).grease_quic_bit(false);
        own.cid_generator(move || Box::new(ConnectionIds(Stream::new(seed, "connection ids"))));
        own.max_udp_payload_size(config.mtu - HEADERS).expect("the maximum UDP payload is at least 1200 bytes");
        let transport = Arc::new(config.transport());
        let mut server = ServerConfig::new(Arc::new(NoTls), Arc::new(NoKey));
        server.transport_config(Arc::clone(&transport)).time_source(Arc::new(NoDate));
        let mut client = ClientConfig::new(Arc::new(NoTls));
        let first = ConnectionId::new(&random::<8>(seed, "first connection id"));
        client.transport_config(transport).initial_dst_cid_provider(Arc::new(move || first));
        let server = (end.side == Side::Receiver).then(|| Arc::new(server));
        Self {
            end,
            endpoint: quinn_proto::Endpoint::new(Arc::new(own), server, false, None),
            client: (end.side == Side::Sender).then_some(client),
            connection: None,
            stream: None,
            source: Source::new(application),
            unsent: Vec::new(),
            acknowledged: 0,
            received: 0,
            start: Instant::now(),
            next: None,
        }
    }

    /// Creates both ends of a connection, the sender first.
    pub fn pair(config: &Config, ends: [Endpoint; 2], application: Application) -> [Box<dyn Stack>; 2] {
        let [sender, receiver] = ends;
        let receiver = Self::new(config, receiver, Application::Bulk);
        [Box::new(Self::new(config, sender, application)), Box::new(receiver)]
    }

    fn remote(&self) -> SocketAddr {
        (self.end.remote, PORT).into()
    }

    /// Passes events between the connection and its endpoint, and records acknowledgements.
    fn handle_events(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(answer);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Stream(StreamEvent::Finished { .. }) => self.acknowledged = self.source.written(),
                Event::ConnectionLost { reason } => panic!("a connection without an idle timeout has ended: {reason}"),
                _ => {}
            }
        }
    }

    /// Writes the application's data to the stream.
    fn write(&mut self, now: Duration) {
        let Some((_, connection)) = &mut self.connection else { return };
        loop {
            if self.unsent.is_empty() {
                let (offset, bytes) = self.source.write(now, self.acknowledged, WRITE);
                if bytes == 0 {
                    break;
                }
                self.unsent.resize(bytes, 0);
                payload(offset, &mut self.unsent);
            }
            // The peer permits no stream before the handshake.
            let Some(stream) = self.stream.or_else(|| connection.streams().open(Dir::Uni)) else { return };
            self.stream = Some(stream);
            match connection.send_stream(stream).write(&self.unsent) {
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(WriteError::Blocked) => return,
                Err(error) => panic!("the receiver reads the stream to the end: {error}"),
            }
        }
        if let Some(stream) = self.stream.take() {
            connection.send_stream(stream).finish().expect("the receiver reads the stream to the end");
        }
    }

    /// Reads all data that has arrived in order. Panics if it differs from the data of the sender's application.
    fn read(&mut self) {
        let Some((_, connection)) = &mut self.connection else { return };
        let mut expected = Vec::new();
        while let Some(stream) = self.stream.or_else(|| connection.streams().accept(Dir::Uni)) {
            self.stream = Some(stream);
            let mut stream = connection.recv_stream(stream);
            let mut chunks = stream.read(true).expect("nothing else reads or stops the stream");
            let has_ended = loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => {
                        expected.resize(chunk.bytes.len(), 0);
                        payload(self.received, &mut expected);
                        assert!(chunk.bytes == expected, "QUIC delivers the sent bytes");
                        self.received += chunk.bytes.len() as u64;
                    }
                    Ok(None) => break true,
                    Err(ReadError::Blocked) => break false,
                    Err(error) => panic!("the sender does not reset the stream: {error}"),
                }
            };
            // The current poll also sends any new flow-control credit.
            let _ = chunks.finalize();
            if !has_ended {
                return;
            }
            self.stream = None;
        }
    }

    /// Returns a UDP packet over IPv4 to the other end.
    fn packet(&self, datagram: &[u8], ecn: Option<EcnCodepoint>) -> Packet {
        let (from, to) = (self.end.local.octets(), self.end.remote.octets());
        // The packet builder sets the length.
        let mut ip = Ipv4Header::new(0, TIME_TO_LIVE, IpNumber::UDP, from, to)
            .expect("an IPv4 header of length 0 is valid before its payload is known");
        ip.ecn = match ecn {
            None => IpEcn::NotEct,
            Some(EcnCodepoint::Ect0) => IpEcn::Ect0,
            Some(EcnCodepoint::Ect1) => IpEcn::Ect1,
            Some(EcnCodepoint::Ce) => IpEcn::CongestionExperienced,
        };
        let builder = PacketBuilder::ip(IpHeaders::Ipv4(ip, etherparse::Ipv4Extensions::default())).udp(PORT, PORT);
        let mut packet = Vec::with_capacity(builder.size(datagram.len()));
        builder.write_to_vec(&mut packet, datagram).expect("the datagram is not longer than the MTU");
        packet
    }
}

impl Stack for Quic {
    fn on_packet(&mut self, now: Duration, packet: &[u8]) {
        let now = self.start + now;
        let packet = SlicedPacket::from_ip(packet).expect("the packet of the peer is a valid IP packet");
        let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Udp(udp))) = (packet.net, packet.transport) else {
            panic!("the peer sends UDP over IPv4");
        };
        let ecn = EcnCodepoint::from_bits(ip.header().ecn().value());
        let local = Some(IpAddr::V4(self.end.local));
        let mut answer = Vec::new();
        match self.endpoint.handle(now, self.remote(), local, ecn, BytesMut::from(udp.payload()), &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                let (_, connection) = self.connection.as_mut().expect("the packet is for the connection");
                connection.handle_event(event);
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, now, &mut answer, None);
                self.connection = Some(accepted.expect("the sender's first packet is valid"));
            }
            Some(DatagramEvent::Response(_)) => panic!("the peer sends only valid packets"),
            None => {}
        }
    }

    fn poll(&mut self, now: Duration, out: &mut Vec<Packet>) {
        let time = self.start + now;
        if let Some(client) = self.client.take() {
            let connected = self.endpoint.connect(time, client, self.remote(), "receiver");
            self.connection = Some(connected.expect("the settings are valid"));
        }
        if let Some((_, connection)) = &mut self.connection
            && connection.poll_timeout().is_some_and(|timeout| timeout <= time)
        {
            connection.handle_timeout(time);
        }
        self.handle_events();
        match self.end.side {
            Side::Sender => self.write(now),
            Side::Receiver => self.read(),
        }
        let mut datagram = Vec::new();
        while let Some((_, connection)) = &mut self.connection
            && let Some(transmit) = connection.poll_transmit(time, 1, &mut datagram)
        {
            out.push(self.packet(&datagram, transmit.ecn));
            datagram.clear();
        }
        let timeout = self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        self.next = timeout.map(|timeout| timeout - self.start).into_iter().chain(self.source.next()).min();
    }

    fn next_timeout(&self) -> Option<Duration> {
        self.next
    }

    fn report(&self) -> Report {
        let completed = self.source.has_ended() && self.acknowledged == self.source.written();
        let path = self.connection.as_ref().map(|(_, connection)| connection.stats().path);
        Report {
            received: self.received,
            completed,
            cwnd: path.map(|path| path.cwnd),
            retransmitted: path.map(|path| path.lost_packets),
        }
    }
}

/// Returns random bytes for a given purpose.
fn random<const BYTES: usize>(seed: u64, purpose: &str) -> [u8; BYTES] {
    let mut stream = Stream::new(seed, purpose);
    std::array::from_fn(|_| stream.next_u64().to_le_bytes()[0])
}

struct ConnectionIds(Stream);

impl ConnectionIdGenerator for ConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.0.next_u64().to_le_bytes())
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The calendar date of all runs.
struct NoDate;

impl TimeSource for NoDate {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

#[cfg(test)]
mod tests;
