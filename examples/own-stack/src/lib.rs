//! An example of your own transport stack, which sends a window of numbered packets and has a retransmission timer.

use std::collections::VecDeque;
use std::time::Duration;

use celltrain_hosts::{Endpoint, Packet, Report, Side, Stack};

/// Payload bytes of a data packet. The first four bytes are the number of the packet.
const PAYLOAD: usize = 512;
const TIMEOUT: Duration = Duration::from_millis(200);

/// A stack that sends numbered packets, of which at most `window` are unacknowledged. A timeout resends all
/// unacknowledged packets.
pub struct Windowed {
    end: Endpoint,
    window: u32,
    /// At a sender, the number of the oldest unacknowledged packet. At a receiver, the number of the next packet it
    /// expects.
    oldest: u32,
    /// Number of the next packet to send.
    next: u32,
    timeout: Option<Duration>,
    acknowledgements: VecDeque<Packet>,
}

impl Windowed {
    /// Creates one end of a connection.
    pub fn new(end: Endpoint, window: u32) -> Self {
        Self { end, window, oldest: 0, next: 0, timeout: None, acknowledgements: VecDeque::new() }
    }

    /// Returns an IPv4 packet of a protocol for experiments (RFC 3692), whose payload begins with a number.
    fn packet(&self, number: u32, bytes: usize) -> Packet {
        let mut payload = number.to_be_bytes().to_vec();
        payload.resize(bytes, 0);
        self.end.packet(253, &payload)
    }
}

impl Stack for Windowed {
    fn on_packet(&mut self, now: Duration, packet: &[u8]) {
        let number = u32::from_be_bytes(packet[20..24].try_into().expect("every packet begins with its number"));
        match self.end.side {
            // An acknowledgement carries the number of the next packet that the receiver expects.
            Side::Sender if number > self.oldest => {
                self.oldest = number;
                self.next = self.next.max(number);
                self.timeout = Some(now + TIMEOUT);
            }
            Side::Sender => {}
            Side::Receiver => {
                self.oldest += u32::from(number == self.oldest);
                self.acknowledgements.push_back(self.packet(self.oldest, 4));
            }
        }
    }

    fn poll(&mut self, now: Duration, out: &mut Vec<Packet>) {
        out.extend(self.acknowledgements.drain(..));
        if self.end.side == Side::Receiver {
            return;
        }
        if self.timeout.is_none_or(|timeout| now >= timeout) {
            self.next = self.oldest;
            self.timeout = Some(now + TIMEOUT);
        }
        while self.next < self.oldest + self.window {
            out.push(self.packet(self.next, PAYLOAD));
            self.next += 1;
        }
    }

    fn next_timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn report(&self) -> Report {
        let received = if self.end.side == Side::Receiver { u64::from(self.oldest) * PAYLOAD as u64 } else { 0 };
        Report { received, ..Report::default() }
    }
}
