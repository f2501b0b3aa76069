//! Settings of smoltcp.
//!
//! Source: smoltcp 0.14, `socket/tcp.rs`. All other settings of smoltcp are fixed: an RTO from 1 to 60 s, and timers of
//! 1 ms.

use celltrain_core::error::Fault;
use celltrain_core::units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StackSizes;

/// The TCP of smoltcp at the two ends of a connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Smoltcp")]
pub struct Config {
    /// Congestion control of the sender.
    pub congestion: SmoltcpCongestion,
    /// Payload of a full segment. The MTU is 40 bytes larger.
    pub mss: Bytes,
    /// Size of the receiver's buffer, which is the largest window that the receiver advertises.
    pub receive_window: Bytes,
    /// Size of the sender's buffer. Default: the size of the receiver's buffer.
    pub send_buffer: Option<Bytes>,
    /// Longest time for which the receiver waits for a second segment before it acknowledges the first segment. With
    /// 0s, the receiver acknowledges every segment at once.
    pub ack_delay: Duration,
    /// True if a segment that is not full waits until all earlier data is acknowledged.
    pub nagle: bool,
    /// Time at which the receiving application reads the data that has arrived.
    pub reads: SmoltcpReads,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            congestion: SmoltcpCongestion::Reno,
            mss: Bytes { bytes: 512 },
            receive_window: Bytes { bytes: 65_535 },
            send_buffer: None,
            ack_delay: Duration::from_milliseconds(10),
            nagle: true,
            reads: SmoltcpReads::BeforeAcks,
        }
    }
}

/// Congestion control of smoltcp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SmoltcpCongestion {
    /// No congestion control: only the receiver's window limits the sender.
    None,
    /// Reno.
    Reno,
    /// CUBIC (RFC 9438).
    Cubic,
}

/// Time at which the receiving application reads the data that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SmoltcpReads {
    /// The application reads before smoltcp acknowledges the data.
    BeforeAcks,
    /// The application reads after smoltcp has acknowledged the data. Unread data reduces the advertised window.
    AfterAcks,
}

/// Minimum MSS in bytes. smoltcp treats a smaller MSS as an attack.
const MIN_MSS: u64 = 48;
/// Maximum MSS: 65535 bytes minus the headers of TCP and IP.
const MAX_MSS: u64 = 65_495;
/// Maximum size of a buffer: the largest window that a window scale of 14 can express (RFC 7323). smoltcp refuses a
/// larger buffer.
const MAX_BUFFER: u64 = 1 << 30;
/// Maximum delay of an acknowledgement: half a second, as RFC 1122 (4.2.3.2) allows.
const MAX_ACK_DELAY: Duration = Duration::from_milliseconds(500);

impl Config {
    pub(super) fn sizes(&self) -> StackSizes {
        let receive_window = self.receive_window.bytes;
        let send_buffer = self.send_buffer.map_or(receive_window, |buffer| buffer.bytes);
        StackSizes { mss: self.mss.bytes, receive_window, send_buffer }
    }

    pub(super) fn packet_size(&self) -> (&'static str, Bytes) {
        ("mss", self.mss)
    }

    pub(super) fn check(&self) -> Vec<Fault> {
        let (mut faults, mss) = (Vec::new(), self.mss.bytes);
        if !(MIN_MSS..=MAX_MSS).contains(&mss) {
            let problem = format!("must be from {MIN_MSS}B to {MAX_MSS}B, as smoltcp requires");
            faults.push(Fault::new("mss", format!("\"{}\"", self.mss), problem));
        }
        let least = mss.clamp(MIN_MSS, MAX_MSS);
        for (key, buffer) in [("receive_window", Some(self.receive_window)), ("send_buffer", self.send_buffer)] {
            if let Some(buffer) = buffer.filter(|buffer| !(least..=MAX_BUFFER).contains(&buffer.bytes)) {
                let problem = format!("must be from one segment ({least}B) to {MAX_BUFFER}B, the maximum of smoltcp");
                faults.push(Fault::new(key, format!("\"{buffer}\""), problem));
            }
        }
        if self.ack_delay > MAX_ACK_DELAY {
            let problem = format!("must be a time of at most {MAX_ACK_DELAY}, the longest that RFC 1122 allows");
            faults.push(Fault::new("ack_delay", format!("\"{}\"", self.ack_delay), problem));
        }
        faults
    }
}
