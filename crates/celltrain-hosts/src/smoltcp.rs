//! The stack [smoltcp](https://docs.rs/smoltcp), whose only source of randomness is its seed.
//!
//! smoltcp 0.14 has fixed properties: an RTO of 1 to 60 s, timers of 1 ms, a clock of 1 us, at most four gaps in the
//! receiver's data, no selective acknowledgements at the sender, and no ECN. The receiving application reads
//! immediately.

use std::collections::VecDeque;
use std::time::Duration;

use smoltcp::iface::{Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{self, CongestionControl};
use smoltcp::time;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

use crate::application::{Application, Source, payload};
use crate::stack::{Endpoint, Packet, Report, Side, Stack};

/// Version of smoltcp.
pub const VERSION: &str = "0.14.0";

/// Settings of both ends of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Congestion control.
    pub congestion: Congestion,
    /// Payload of a full segment, in bytes.
    pub mss: usize,
    /// The receiver's buffer, in bytes: the largest window that it advertises.
    pub receive_window: usize,
    /// The sender's buffer, in bytes.
    pub send_buffer: usize,
    /// Longest acknowledgement delay; `None` to acknowledge each segment immediately.
    pub ack_delay: Option<Duration>,
    /// True if a segment that is not full waits until earlier data is acknowledged.
    pub nagle: bool,
    /// Determines when the receiving application reads.
    pub reads: Reads,
}

/// Congestion control of smoltcp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// No congestion control: only the receiver's window limits the sender.
    None,
    /// Reno.
    Reno,
    /// CUBIC, in floating-point arithmetic.
    Cubic,
}

/// Time at which the receiving application reads the data that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// The application reads the data before smoltcp acknowledges the data, so each acknowledgement advertises an empty
    /// buffer.
    BeforeAcks,
    /// After smoltcp has acknowledged the data, as in smoltcp's own tests: unread data reduces the window. smoltcp does
    /// not count acknowledgements with a different window as duplicates.
    AfterAcks,
}

impl Default for Config {
    /// Returns smoltcp's own defaults, with Reno, segments of 512 bytes and buffers of 65535 bytes.
    fn default() -> Self {
        Self {
            congestion: Congestion::Reno,
            mss: 512,
            receive_window: 65_535,
            send_buffer: 65_535,
            ack_delay: Some(Duration::from_millis(10)),
            nagle: true,
            reads: Reads::BeforeAcks,
        }
    }
}

impl Config {
    /// The largest buffer that smoltcp accepts, in bytes.
    pub const MAX_BUFFER: usize = 1 << 30;
    /// The smallest MSS that smoltcp accepts.
    pub const MIN_MSS: usize = 48;
}

/// One end of a connection over smoltcp.
pub struct Smoltcp {
    endpoint: Endpoint,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    link: Link,
    reads: Reads,
    source: Source,
    /// Bytes read by the receiver.
    received: u64,
    /// Number of bytes acknowledged by the peer.
    acknowledged: u64,
    next: Option<Duration>,
}

const PORT: u16 = 49152;
/// Length of the TCP header and the IP header, both without options.
const HEADERS: usize = 40;

impl Smoltcp {
    /// Creates an end of a connection. The receiver ignores `application`.
    ///
    /// # Panics
    /// If the MSS is below [`Config::MIN_MSS`] or a buffer is larger than [`Config::MAX_BUFFER`].
    pub fn new(config: &Config, endpoint: Endpoint, application: Application) -> Self {
        assert!(config.mss >= Config::MIN_MSS, "smoltcp accepts segments of {} bytes or more", Config::MIN_MSS);
        let mut link = Link { mtu: config.mss + HEADERS, ..Link::default() };
        let mut own = smoltcp::iface::Config::new(HardwareAddress::Ip);
        own.random_seed = endpoint.seed;
        let mut interface = Interface::new(own, &mut link, time::Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            addresses
                .push(IpCidr::new(IpAddress::Ipv4(endpoint.local), 8))
                .expect("the list of addresses has room for one address");
        });
        let [receive, send] = match endpoint.side {
            Side::Sender => [config.mss, config.send_buffer],
            Side::Receiver => [config.receive_window, config.mss],
        };
        let buffer = |bytes| tcp::SocketBuffer::new(vec![0; bytes]);
        let mut socket = tcp::Socket::new(buffer(receive), buffer(send));
        socket.set_congestion_control(match config.congestion {
            Congestion::None => CongestionControl::None,
            Congestion::Reno => CongestionControl::Reno,
            Congestion::Cubic => CongestionControl::Cubic,
        });
        socket.set_ack_delay(config.ack_delay.map(Into::into));
        socket.set_nagle_enabled(config.nagle);
        if endpoint.side == Side::Receiver {
            socket.listen(PORT).expect("the port is not 0");
        }
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        let source = Source::new(application);
        let reads = config.reads;
        Self { endpoint, interface, sockets, socket, link, reads, source, received: 0, acknowledged: 0, next: None }
    }

    /// Creates both ends of a connection, the sender first.
    pub fn pair(config: &Config, ends: [Endpoint; 2], application: Application) -> [Box<dyn Stack>; 2] {
        let [sender, receiver] = ends;
        let receiver = Self::new(config, receiver, Application::Bulk);
        [Box::new(Self::new(config, sender, application)), Box::new(receiver)]
    }

    /// Writes the application's data to the sender's buffer.
    fn write(&mut self, now: Duration) {
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(self.socket);
        if socket.state() == tcp::State::Closed && self.source.written() == 0 {
            let remote = (IpAddress::Ipv4(self.endpoint.remote), PORT);
            socket.connect(self.interface.context(), remote, PORT).expect("the socket was just created");
            return;
        }
        self.acknowledged = self.source.written() - socket.send_queue() as u64;
        // The buffer is a ring, so there may be free space at its end and at its start.
        while socket.can_send() {
            let (source, acknowledged) = (&mut self.source, self.acknowledged);
            let written = socket.send(|room| {
                let (offset, bytes) = source.write(now, acknowledged, room.len());
                payload(offset, &mut room[..bytes]);
                (bytes, bytes)
            });
            if written == Ok(0) {
                break;
            }
        }
        if self.source.has_ended() && socket.may_send() {
            socket.close();
        }
    }

    /// Reads all data that has arrived in order. Panics if it differs from the data of the sender's application.
    fn read(&mut self) {
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(self.socket);
        let mut expected = Vec::new();
        while socket.can_recv() {
            let read = socket.recv(|bytes| {
                expected.resize(bytes.len(), 0);
                payload(self.received, &mut expected);
                assert!(*bytes == *expected, "smoltcp delivers the sent bytes");
                (bytes.len(), bytes.len())
            });
            self.received += read.expect("the socket can receive") as u64;
        }
        if socket.state() == tcp::State::CloseWait {
            socket.close();
        }
    }
}

impl Stack for Smoltcp {
    fn on_packet(&mut self, now: Duration, packet: &[u8]) {
        self.link.arrived.push_back(packet.to_vec());
        self.interface.poll_ingress_single(instant(now), &mut self.link, &mut self.sockets);
    }

    fn poll(&mut self, now: Duration, out: &mut Vec<Packet>) {
        match self.endpoint.side {
            Side::Sender => self.write(now),
            Side::Receiver => {
                if self.reads == Reads::AfterAcks {
                    self.interface.poll(instant(now), &mut self.link, &mut self.sockets);
                }
                self.read();
            }
        }
        self.interface.poll(instant(now), &mut self.link, &mut self.sockets);
        out.append(&mut self.link.sent);
        let timer = self.interface.poll_at(instant(now), &self.sockets);
        let timer = timer.map(|timer| Duration::from_micros(u64::try_from(timer.total_micros()).unwrap_or(0)));
        self.next = timer.into_iter().chain(self.source.next()).min();
    }

    fn next_timeout(&self) -> Option<Duration> {
        self.next
    }

    fn report(&self) -> Report {
        let completed = self.source.has_ended() && self.acknowledged == self.source.written();
        Report { received: self.received, completed, ..Report::default() }
    }

    fn unit(&self) -> Duration {
        Duration::from_micros(1)
    }
}

fn instant(now: Duration) -> time::Instant {
    time::Instant::from_micros(i64::try_from(now.as_micros()).expect("a run is shorter than 292,000 years"))
}

/// The device that connects smoltcp to the network.
#[derive(Default)]
struct Link {
    mtu: usize,
    arrived: VecDeque<Packet>,
    sent: Vec<Packet>,
}

impl Device for Link {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Sent<'a>;

    fn receive(&mut self, _: time::Instant) -> Option<(Arrived, Sent<'_>)> {
        self.arrived.pop_front().map(|packet| (Arrived(packet), Sent(&mut self.sent)))
    }

    fn transmit(&mut self, _: time::Instant) -> Option<Sent<'_>> {
        Some(Sent(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut own = DeviceCapabilities::default();
        own.medium = Medium::Ip;
        own.max_transmission_unit = self.mtu;
        own
    }
}

struct Arrived(Packet);

impl phy::RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

struct Sent<'a>(&'a mut Vec<Packet>);

impl phy::TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut packet = vec![0; length];
        let result = write(&mut packet);
        self.0.push(packet);
        result
    }
}
