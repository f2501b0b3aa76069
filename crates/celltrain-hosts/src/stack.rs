//! The interface between a transport stack and the network.

use std::net::Ipv4Addr;
use std::time::Duration;

use celltrain_core::engine::OpenedOutside;
use celltrain_core::index::FlowIndex;
use celltrain_core::network::Network;
use celltrain_core::rng::Stream;

/// A packet, starting with its IP header.
pub type Packet = Vec<u8>;

/// One end of a flow: a transport stack and its application, without a clock or sockets.
///
/// Times are measured from the start of the run. The network first calls [`poll`](Stack::poll) when the flow starts,
/// then after each arriving packet and each expired timeout, always after all other events of the same instant.
pub trait Stack: Send {
    /// Handles a packet that has arrived.
    fn on_packet(&mut self, now: Duration, packet: &[u8]);

    /// Appends the packets to send now.
    fn poll(&mut self, now: Duration, out: &mut Vec<Packet>);

    /// Returns the time at which to call `poll` next if no packet arrives earlier. If this time has passed, `poll` is
    /// called one [`unit`](Stack::unit) later. The network requests this time after each call of `poll`. The run ends
    /// with an error after 100,000 idle polls within 10 ms.
    fn next_timeout(&self) -> Option<Duration>;

    /// Returns the state of the application's transfer.
    fn report(&self) -> Report;

    /// Returns the stack's name, for error messages.
    fn name(&self) -> &str {
        std::any::type_name::<Self>()
    }

    /// Returns the unit of the stack's clock. Times are rounded down to a whole number of units.
    fn unit(&self) -> Duration {
        Duration::from_nanos(1)
    }
}

/// State of a transfer at one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Bytes that the application has received, in order.
    pub received: u64,
    /// True if the application sends a limited amount of data and knows that all of it has arrived.
    pub completed: bool,
    /// At the sender, the congestion window in bytes; `None` if the stack does not show it.
    pub cwnd: Option<u64>,
    /// At the sender, the number of lost packets whose data was sent again; `None` if the stack does not count them, in
    /// which case packet headers provide the number.
    pub retransmitted: Option<u64>,
}

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end that sends data.
    Sender,
    /// The end that receives the data.
    Receiver,
}

/// Information that a stack needs at one end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The flow.
    pub flow: FlowIndex,
    /// The side of the flow: sender or receiver.
    pub side: Side,
    /// The end's address.
    pub local: Ipv4Addr,
    /// The address of the other end.
    pub remote: Ipv4Addr,
    /// Seed of the stack's random numbers. It depends on the run's seed, the flow's name and the side.
    pub seed: u64,
}

impl Endpoint {
    /// Returns an end of a flow. Each flow has its own pair of addresses.
    pub fn of(network: &Network, flow: FlowIndex, side: Side) -> Self {
        Self::named(&format!("flow/{}", network.flows[flow].name), network.seed, flow, side)
    }

    /// Returns both ends of a request, the sender first. Requests that are open at the same time have different
    /// addresses, unless two million others opened between them.
    pub fn of_request(network: &Network, request: &OpenedOutside) -> [Self; 2] {
        let &OpenedOutside { flow, group, number, .. } = request;
        let name = format!("requests/{}/{number}", network.requests.groups[group].name);
        [Side::Sender, Side::Receiver].map(|side| Self::named(&name, network.seed, flow, side))
    }

    fn named(stream: &str, seed: u64, flow: FlowIndex, side: Side) -> Self {
        let name = match side {
            Side::Sender => "sender",
            Side::Receiver => "receiver",
        };
        let seed = Stream::new(seed, &format!("{stream}/{name}")).next_u64();
        let pair = flow.number() % MOST_PAIRS;
        let [sender, receiver] = [1, 2].map(|end| Ipv4Addr::from_bits(NETWORK | pair << 2 | end));
        let [local, remote] = match side {
            Side::Sender => [sender, receiver],
            Side::Receiver => [receiver, sender],
        };
        Self { flow, side, local, remote, seed }
    }

    /// Returns an IPv4 packet from this end to the other (RFC 791, 3.1). Its header has no options and no checksum.
    ///
    /// # Panics
    /// If the payload has more than 65,515 bytes.
    pub fn packet(&self, protocol: u8, payload: &[u8]) -> Packet {
        let length =
            u16::try_from(HEADER + payload.len()).expect("the length of a packet fits in 16 bits").to_be_bytes();
        let start = [0x45, 0, length[0], length[1], 0, 0, 0x40, 0, 64, protocol, 0, 0];
        [&start, &self.local.octets()[..], &self.remote.octets(), payload].concat()
    }

    /// Returns the number of the pair of addresses to which an address belongs, if it is the address of an end.
    pub(crate) fn pair_number(address: Ipv4Addr) -> Option<u32> {
        address.to_bits().checked_sub(NETWORK).map(|offset| offset >> 2).filter(|&pair| pair < MOST_PAIRS)
    }

    /// Returns both ends of a flow, the sender first.
    pub fn pair(network: &Network, flow: FlowIndex) -> [Self; 2] {
        [Side::Sender, Side::Receiver].map(|side| Self::of(network, flow, side))
    }
}

/// Bytes of an IP header without options (RFC 791, 3.1).
pub(crate) const HEADER: usize = 20;

/// From 10.0.0.0 to 10.127.255.255, four addresses for each connection.
const NETWORK: u32 = 10 << 24;
const MOST_PAIRS: u32 = 1 << 21;
