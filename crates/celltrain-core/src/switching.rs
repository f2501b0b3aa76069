//! Forwarding of packets by switches, with packet framing (`docs/design/packets.md`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rules by which switches forward packets with packet framing. They have no effect on AAL5 frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switching {
    /// True if a packet may leave a port before its last cell has arrived there.
    pub cut_through: bool,
    /// Determines when policies decide about a packet, and which of its cells they take into account.
    pub admission: PacketAdmission,
}

/// When and with which cells the policies of ports and memories decide about a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PacketAdmission {
    /// When the first cell arrives, without the packet's length. The other cells are counted as they arrive.
    #[default]
    Start,
    /// When the first cell arrives, with the packet's length. An admitted packet takes places for all its cells at once.
    Fits,
    /// When the last cell arrives. The cells are counted as they arrive.
    End,
}
