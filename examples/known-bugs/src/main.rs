//! Two bugs of smoltcp 0.13, packet by packet, next to smoltcp 0.14, which has their fixes: pull requests
//! [1155](https://github.com/smoltcp-rs/smoltcp/pull/1155) and [1157](https://github.com/smoltcp-rs/smoltcp/pull/1157).
//!
//! ```sh
//! cargo run --release --manifest-path examples/known-bugs/Cargo.toml
//! ```

use std::sync::{Arc, Mutex};
use std::time::Duration;

use celltrain_hosts::{Endpoint, Packet, Report, Side, Stack, Trial};
use etherparse::{SlicedPacket, TransportSlice};

mod application {
    pub use celltrain_hosts::{Application, Source, payload};
}

mod stack {
    pub use celltrain_hosts::{Endpoint, Packet, Report, Side, Stack};
}

/// The adapter with which celltrain runs smoltcp 0.14, compiled with smoltcp 0.13.
#[path = "../../../crates/celltrain-hosts/src/smoltcp.rs"]
#[allow(dead_code)]
mod old;

use celltrain_hosts::smoltcp as new;

const MSS: u32 = 1460;

/// A stack that logs the segments that its end of the connection sends and receives.
struct Watched {
    stack: Box<dyn Stack>,
    log: Log,
}

/// Segments that one end of the connection sent and received.
type Log = Arc<Mutex<Vec<Event>>>;

#[derive(Clone, Copy)]
struct Event {
    time: Duration,
    is_sent: bool,
    sequence: u32,
    ack: u32,
    bytes: usize,
}

fn event(time: Duration, is_sent: bool, packet: &[u8]) -> Event {
    let packet = SlicedPacket::from_ip(packet).expect("the packet is a valid IP packet");
    let Some(TransportSlice::Tcp(tcp)) = packet.transport else { panic!("the packet is not TCP") };
    let (sequence, ack) = (tcp.sequence_number(), tcp.acknowledgment_number());
    Event { time, is_sent, sequence, ack, bytes: tcp.payload().len() }
}

impl Stack for Watched {
    fn on_packet(&mut self, now: Duration, packet: &[u8]) {
        self.log.lock().expect("no other thread has panicked with the lock").push(event(now, false, packet));
        self.stack.on_packet(now, packet);
    }

    fn poll(&mut self, now: Duration, out: &mut Vec<Packet>) {
        let before = out.len();
        self.stack.poll(now, out);
        self.log.lock().expect("no other thread has panicked with the lock").extend(out[before..].iter().map(|packet| event(now, true, packet)));
    }

    fn next_timeout(&self) -> Option<Duration> {
        self.stack.next_timeout()
    }

    fn report(&self) -> Report {
        self.stack.report()
    }

    fn unit(&self) -> Duration {
        self.stack.unit()
    }
}

/// Runs a single sender on a link with a round trip of 50 ms. Returns the log of the sender.
fn run(lost: &[u64], seconds: u64, make: impl Fn([Endpoint; 2]) -> [Box<dyn Stack>; 2]) -> Vec<Event> {
    let log = Log::default();
    let trial = Trial::new(1).link_rate(25_600_000).round_trip(Duration::from_millis(50)).mss(MSS.into());
    // The SYN is packet 0 of the connection, so the first segment with data is packet 1.
    let trial = trial.lose(0, lost.iter().copied());
    trial.duration(Duration::from_secs(seconds)).run(|ends| {
        let [sender, receiver] = make(ends);
        let watched = |stack, side: Side| {
            let log = if side == Side::Sender { Arc::clone(&log) } else { Log::default() };
            Box::new(Watched { stack, log }) as Box<dyn Stack>
        };
        [watched(sender, Side::Sender), watched(receiver, Side::Receiver)]
    });
    std::mem::take(&mut *log.lock().expect("no other thread has panicked with the lock"))
}

/// Prints the retransmissions of a sender, each with the number of segments in flight.
fn retransmissions(name: &str, events: &[Event]) {
    let first = events.iter().find(|event| event.bytes > 0).expect("the connection sends data").sequence;
    let position = |sequence: u32| sequence.wrapping_sub(first);
    let (mut newest, mut duplicates, mut acknowledged) = (0, 0, 0);
    let mut again: Vec<(Duration, u32, usize, u32)> = Vec::new();
    for event in events {
        if !event.is_sent {
            let ack = position(event.ack);
            duplicates = if ack == acknowledged { duplicates + 1 } else { 0 };
            acknowledged = ack;
        } else if event.bytes > 0 {
            if position(event.sequence) < newest {
                let flight = (newest - acknowledged).div_ceil(MSS);
                again.push((event.time, position(event.sequence) / MSS, duplicates, flight));
            }
            newest = newest.max(position(event.sequence) + u32::try_from(event.bytes).expect("the length of a segment fits in 32 bits"));
        }
    }
    println!("{name}: retransmissions: {}", again.len());
    for (time, number, duplicates, flight) in again.iter().take(6) {
        println!(
            "  {:>7.1} ms  segment {}, after {duplicates} duplicate acknowledgements, {flight} in flight",
            time.as_secs_f64() * 1e3,
            number + 1
        );
    }
    if again.len() > 6 {
        println!("  and {} more", again.len() - 6);
    }
}

/// Prints the largest amount of outstanding data in each half second.
fn windows(name: &str, events: &[Event], half_seconds: u32) {
    let first = events.iter().find(|event| event.bytes > 0).expect("the connection sends data").sequence;
    let mut most = vec![0; half_seconds as usize];
    let (mut newest, mut acknowledged) = (0, 0);
    for event in events {
        if !event.is_sent {
            acknowledged = event.ack.wrapping_sub(first);
        } else if event.bytes > 0 {
            newest = newest.max(event.sequence.wrapping_sub(first) + event.bytes as u32);
        }
        let place = (event.time.as_millis() / 500) as usize;
        if let Some(most) = most.get_mut(place) {
            *most = (newest - acknowledged).div_ceil(MSS).max(*most);
        }
    }
    println!("{name}: {most:?}");
}

/// Runs one version of smoltcp. This is a macro, because the two versions have different types.
macro_rules! run {
    ($version:ident, $congestion:ident, $buffer:expr, $lost:expr, $seconds:expr) => {
        run($lost, $seconds, |ends| {
            let own = $version::Config {
                congestion: $version::Congestion::$congestion,
                mss: MSS as usize,
                receive_window: $buffer,
                send_buffer: $buffer,
                ..$version::Config::default()
            };
            $version::Smoltcp::pair(&own, ends, application::Application::Bulk)
        })
    };
}

fn main() {
    println!("1155: With Reno, the 40th segment is lost. A fast retransmit sends one segment.");
    retransmissions("smoltcp 0.13.1", &run!(old, Reno, 65_535, &[40], 2));
    retransmissions("smoltcp 0.14.0", &run!(new, Reno, 65_535, &[40], 2));
    println!("\n1157: CUBIC, the 300th and the 900th segment are lost. Each should take 0.3 of the window.");
    let [before, after] = [run!(old, Cubic, 400_000, &[300, 900], 6), run!(new, Cubic, 400_000, &[300, 900], 6)];
    retransmissions("smoltcp 0.13.1", &before);
    retransmissions("smoltcp 0.14.0", &after);
    println!("Maximum number of segments in flight in each half second:");
    windows("smoltcp 0.13.1", &before, 12);
    windows("smoltcp 0.14.0", &after, 12);
}
