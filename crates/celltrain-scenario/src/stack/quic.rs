//! Settings of QUIC.
//!
//! Source: quinn-proto 0.11.19, `config/transport.rs`. Connections are not encrypted, and the sender knows the MTU of
//! the path.

use celltrain_core::error::Fault;
use celltrain_core::units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StackSizes;

/// QUIC of quinn-proto at the two ends of a connection. Each file or burst is a stream of the connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Quic")]
pub struct Config {
    /// Congestion control of the sender.
    pub congestion: QuicCongestion,
    /// Length of a full packet, including the headers of UDP and IP.
    pub mtu: Bytes,
    /// Limit of flow control: amount of data that the sender may send before the receiver reads it.
    pub receive_window: Bytes,
    /// Maximum amount of unacknowledged data that the sender stores. Default: eight times the receiver's window.
    pub send_buffer: Option<Bytes>,
    /// Congestion window at the start of a connection. Default: 12000 bytes.
    pub initial_window: Option<Bytes>,
    /// Round-trip time that QUIC assumes until it has measured a round-trip time.
    pub initial_rtt: Duration,
    /// Longest time for which the receiver may delay an acknowledgement, if the sender requests a limit. Default: the
    /// receiver's own limit of 25 ms.
    pub ack_delay: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            congestion: QuicCongestion::Cubic,
            mtu: Bytes { bytes: 1500 },
            receive_window: Bytes { bytes: 65_535 },
            send_buffer: None,
            initial_window: None,
            initial_rtt: Duration::from_milliseconds(333),
            ack_delay: None,
        }
    }
}

/// Congestion control of quinn-proto.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuicCongestion {
    /// `NewReno` (RFC 9002).
    NewReno,
    /// CUBIC (RFC 8312).
    Cubic,
    /// BBR, version 1. Its pacing rate is derived from the congestion window.
    Bbr,
}

/// Minimum MTU: UDP payloads of 1200 bytes (RFC 9000, 14) and 28 bytes of headers.
const MIN_MTU: u64 = 1228;
/// Maximum MTU: the largest packet that fits with LLC/SNAP into the 65535 bytes of an AAL5 frame (RFC 2684, ITU-T
/// I.363.5).
const MAX_MTU: u64 = 65_527;
/// Number of bytes by which the MTU of simulated TCP exceeds the payload of its segments. Results count the data of
/// QUIC in segments of this payload.
const HEADERS: u64 = 40;
/// Minimum window in packets. quinn-proto never reduces a window below two packets.
const MIN_PACKETS: u64 = 2;
/// Maximum size of a buffer in bytes, as for other stacks.
const MAX_BUFFER: u64 = 1 << 30;
const MIN_RTT: Duration = Duration::from_microseconds(1);
const MAX_RTT: Duration = Duration::from_milliseconds(10_000);
/// Range of the delay of acknowledgements. quinn-proto's timers ignore times below 1 ms, and a receiver on a short path
/// waits at most 25 ms, which is its own limit.
const ACK_DELAYS: [Duration; 2] = [Duration::from_milliseconds(1), Duration::from_milliseconds(25)];

impl Config {
    pub(super) fn sizes(&self) -> StackSizes {
        let receive_window = self.receive_window.bytes;
        let send_buffer = self.send_buffer.map_or(receive_window.saturating_mul(8), |buffer| buffer.bytes);
        StackSizes { mss: self.mtu.bytes.saturating_sub(HEADERS), receive_window, send_buffer }
    }

    pub(super) fn packet_size(&self) -> (&'static str, Bytes) {
        ("mtu", self.mtu)
    }

    pub(super) fn check(&self) -> Vec<Fault> {
        let (mut faults, mtu) = (Vec::new(), self.mtu.bytes);
        let is_known = (MIN_MTU..=MAX_MTU).contains(&mtu);
        if !is_known {
            let problem = format!(
                "must be from {MIN_MTU}B (1200 bytes for QUIC and 28 bytes of headers) to {MAX_MTU}B (the maximum of \
                 AAL5 with LLC/SNAP)"
            );
            faults.push(Fault::new("mtu", format!("\"{}\"", self.mtu), problem));
        }
        let packet = if is_known { mtu } else { MIN_MTU };
        let least = packet.saturating_mul(MIN_PACKETS);
        let windows = [
            ("receive_window", Some(self.receive_window)),
            ("send_buffer", self.send_buffer),
            ("initial_window", self.initial_window),
        ];
        for (key, window) in windows {
            if let Some(window) = window.filter(|window| !(least..=MAX_BUFFER).contains(&window.bytes)) {
                let problem = format!("must be from two packets ({least}B) to {MAX_BUFFER}B");
                faults.push(Fault::new(key, format!("\"{window}\""), problem));
            }
        }
        if !(MIN_RTT..=MAX_RTT).contains(&self.initial_rtt) {
            let problem = format!("must be a time from {MIN_RTT} to {MAX_RTT}");
            faults.push(Fault::new("initial_rtt", format!("\"{}\"", self.initial_rtt), problem));
        }
        let [shortest, longest] = ACK_DELAYS;
        if let Some(delay) = self.ack_delay.filter(|delay| !(shortest..=longest).contains(delay)) {
            let problem = format!("must be a time from {shortest} to {longest}, the range that QUIC receivers allow");
            faults.push(Fault::new("ack_delay", format!("\"{delay}\""), problem));
        }
        faults
    }
}
