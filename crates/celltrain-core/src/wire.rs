//! The time that packets take on a link.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of an Ethernet frame around an IP packet: two addresses and a type, and the checksum (IEEE 802.3, 3.1.1).
const FRAME: u64 = 14 + 4;
/// Bytes of the shortest frame (IEEE 802.3, 4.4.2).
const SHORTEST: u64 = 64;
/// Time before and after a frame, in bytes: the preamble with its delimiter, and the gap between frames.
const AROUND: u64 = 8 + 12;

/// The unit in which a link carries packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// Whole cells: the last cell of a packet takes as long as the others.
    #[default]
    Cells,
    /// Ethernet frames. An IP packet of p bytes takes max(p + 18, 64) + 20 bytes. Its cells follow each other as on other
    /// links, except that the last one takes the rest of this time.
    Ethernet,
}

impl Wire {
    /// Returns the transmission time of the last cell of an IP packet, in bits. The packet has `cells` cells of
    /// `cell_bits`.
    pub fn last_cell_bits(self, packet_bytes: u64, cells: u32, cell_bits: u64) -> u64 {
        match self {
            Self::Cells => cell_bits,
            Self::Ethernet => {
                let before = u64::from(cells.saturating_sub(1)).saturating_mul(cell_bits);
                self.frame_bits(packet_bytes.saturating_add(FRAME)).saturating_sub(before).max(8)
            }
        }
    }

    /// Returns the transmission time of a frame of `bytes`, which include its header and checksum, in bits.
    pub fn frame_bits(self, bytes: u64) -> u64 {
        match self {
            Self::Cells => bytes.saturating_mul(8),
            Self::Ethernet => bytes.max(SHORTEST).saturating_add(AROUND).saturating_mul(8),
        }
    }

    /// Returns a number of bits of which the transmission time of every packet on the link is a multiple.
    pub(crate) fn unit_bits(self, cell_bits: u64) -> u64 {
        match self {
            Self::Cells => cell_bits,
            Self::Ethernet => 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cells_of_a_packet_take_as_long_to_send_as_its_ethernet_frame() {
        let cell = 250 * 8;
        for (bytes, cells, on_the_wire) in [(40, 1, 84), (46, 1, 84), (47, 1, 85), (1500, 6, 1538), (9000, 36, 9038)] {
            let bits = u64::from(cells - 1) * cell + Wire::Ethernet.last_cell_bits(bytes, cells, cell);
            assert_eq!(bits, on_the_wire * 8, "{bytes} bytes");
        }
        assert_eq!(Wire::Cells.last_cell_bits(40, 1, cell), cell);
    }
}
