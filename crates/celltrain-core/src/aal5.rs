//! The parts of AAL5 that the engines need: the number of cells per segment, and reassembly of frames at the receiver.
//!
//! Source: ITU-T I.363.5 and RFC 2684 for the framing, `docs/mechanisms.md` sections 1.1 and 1.3. `celltrain-capture`
//! encodes frames in bytes, and its tests check that both give the same cell counts.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cell::{Cell, FrameNumber, Run};
use crate::coverage::reached;
use crate::units::Bytes;

/// Payload bytes of one cell.
pub const CELL_PAYLOAD: u64 = 48;
/// Bytes of one cell on the wire.
pub const CELL_BYTES: u64 = 53;
/// Length of the TCP and IP headers without options.
pub const TCP_IP_HEADERS: u64 = 40;
/// Length of the UDP header and the IP header without options.
pub const UDP_IP_HEADERS: u64 = 28;
const AAL5_TRAILER: u64 = 8;
/// The longest frame that the trailer's length field can express (ITU-T I.363.5).
const MAX_SDU: u64 = 65_535;

/// Encapsulation of IP datagrams in AAL5 (RFC 2684).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Encapsulation {
    /// LLC/SNAP: adds 8 bytes to every datagram; a pure acknowledgement takes 2 cells.
    #[default]
    LlcSnap,
    /// VC multiplexing: adds no header, so a pure acknowledgement takes 1 cell.
    VcMux,
}

/// How receivers recognise packets in a sequence of cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// A packet ends at the cell marked as last, as in AAL5. If that cell is lost, the packet is joined with the next
    /// packet, and both are discarded.
    #[default]
    Aal5,
    /// Each cell identifies its packet, so a packet fails only if one of its own cells is lost. Switches admit whole
    /// packets.
    Packets,
}

/// Sizes of a network's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellFormat {
    /// Bytes of a cell on the wire.
    pub size: u64,
    /// Bytes of frame data in each cell.
    pub payload: u64,
}

impl CellFormat {
    /// The cell format of ATM.
    pub const ATM: Self = Self { size: CELL_BYTES, payload: CELL_PAYLOAD };

    /// Creates a format of cells without headers, for switches that count their memory in cells of this size.
    pub const fn of_memory(size: u64) -> Self {
        Self { size, payload: size }
    }

    /// Returns the bits of a cell on the wire.
    pub fn bits(self) -> u64 {
        self.size.saturating_mul(8)
    }

    /// Returns the number of cells that carry `bytes`. Saturates at `u32::MAX`, which is far above the limits of
    /// scenario checks.
    pub(crate) fn cells_of(self, bytes: u64) -> u32 {
        u32::try_from(bytes.div_ceil(self.payload)).unwrap_or(u32::MAX)
    }
}

/// Framing options of the network's end systems.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Aal5Options {
    /// Encapsulation of IP datagrams in AAL5 (RFC 2684).
    pub encapsulation: Encapsulation,
    /// Longest frame that a receiver accepts, without trailer and padding. The receiver discards a longer frame without
    /// waiting for its last cell (ITU-T I.363.5: at most 65535 bytes).
    pub max_sdu: Bytes,
    /// Format of the network's cells. In a scenario, this is a separate table.
    #[serde(skip, default = "atm")]
    pub cell: CellFormat,
    /// How receivers recognise packets; a separate key in a scenario. [`Framing::Packets`] uses neither `encapsulation`
    /// nor a trailer.
    #[serde(skip)]
    pub framing: Framing,
}

fn atm() -> CellFormat {
    CellFormat::ATM
}

impl Default for Aal5Options {
    fn default() -> Self {
        Self::ATM
    }
}

impl Aal5Options {
    /// Framing of AAL5 with LLC/SNAP in cells of ATM.
    pub const ATM: Self = Self {
        encapsulation: Encapsulation::LlcSnap,
        max_sdu: Bytes { bytes: MAX_SDU },
        cell: CellFormat::ATM,
        framing: Framing::Aal5,
    };

    /// Returns the number of cells in a frame with `payload` bytes of TCP: `ceil((L + 40 + llc + 8) / 48)` in ATM
    /// (section 1.1).
    pub fn segment_cells(&self, payload: u64) -> u32 {
        self.cells_of(self.segment_sdu(payload))
    }

    /// Returns the number of cells in a frame with `payload` bytes of UDP.
    pub fn packet_cells(&self, payload: u64) -> u32 {
        self.cells_of(self.packet_sdu(payload))
    }

    /// Returns the length of the AAL5 payload for `payload` bytes of TCP, including headers but not trailer and
    /// padding.
    pub fn segment_sdu(&self, payload: u64) -> u64 {
        payload.saturating_add(TCP_IP_HEADERS).saturating_add(self.llc())
    }

    /// Returns the length of the AAL5 payload for `payload` bytes of UDP, including headers but not trailer and
    /// padding.
    pub fn packet_sdu(&self, payload: u64) -> u64 {
        payload.saturating_add(UDP_IP_HEADERS).saturating_add(self.llc())
    }

    /// Returns the number of cells in a frame that carries a packet of `bytes`, including its headers.
    pub fn frame_cells(&self, bytes: u64) -> u32 {
        self.cells_of(bytes.saturating_add(self.llc()))
    }

    /// Returns the length of the longest packet that fits in a frame of at most `cells` cells and that a receiver
    /// accepts.
    pub fn longest_packet(&self, cells: Option<u32>) -> u64 {
        let in_cells = cells.map_or(u64::MAX, |cells| {
            u64::from(cells).saturating_mul(self.cell.payload).saturating_sub(self.trailer())
        });
        self.max_sdu.bytes.min(MAX_SDU).min(in_cells).saturating_sub(self.llc())
    }

    /// Returns the number of cells in a frame with `sdu` bytes of payload.
    fn cells_of(&self, sdu: u64) -> u32 {
        // With packet framing, an empty packet still takes a cell.
        self.cell.cells_of(sdu.saturating_add(self.trailer())).max(1)
    }

    fn llc(&self) -> u64 {
        match (self.framing, self.encapsulation) {
            (Framing::Aal5, Encapsulation::LlcSnap) => 8,
            (Framing::Aal5, Encapsulation::VcMux) | (Framing::Packets, _) => 0,
        }
    }

    fn trailer(&self) -> u64 {
        match self.framing {
            Framing::Aal5 => AAL5_TRAILER,
            Framing::Packets => 0,
        }
    }

    /// Returns the maximum number of cells a receiver collects before it gives up on a frame.
    pub fn max_cells(&self) -> u32 {
        self.cells_of(self.max_sdu.bytes)
    }

    /// Returns the payload's share of a fully loaded link if each frame of `cells` cells carries `payload` bytes: `MSS
    /// / (53 cells(MSS))` in ATM (section 1.1).
    pub fn payload_share(&self, payload: u64, cells: u32) -> f64 {
        payload as f64 / self.cell.size.saturating_mul(u64::from(cells)) as f64
    }
}

/// The frames of a VC that may still have cells in transit, oldest first.
///
/// When a frame is delivered, the log discards all older frames, because cells of one VC do not overtake each other.
/// Only older frames that a link delays are kept (`delay_line.rs`).
#[derive(Clone, Debug)]
pub struct FrameLog<B> {
    /// Number of the oldest frame in the log.
    first: FrameNumber,
    /// Mask of the bits used for frame numbers.
    mask: u32,
    frames: VecDeque<Frame<B>>,
}

/// A frame in transit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<B> {
    /// The frame's length in cells.
    pub cells: u32,
    /// True if a switch has marked the frame's last cell (ITU-T I.363.5).
    pub marked: bool,
    /// Its contents.
    pub body: B,
}

impl<B> Frame<B> {
    /// Creates a frame that no switch has marked.
    pub fn new(cells: u32, body: B) -> Self {
        Self { cells, marked: false, body }
    }
}

impl<B> Default for FrameLog<B> {
    fn default() -> Self {
        Self::with_numbers_of(u32::BITS)
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "no overflow: the numbers have 1 to 32 bits")]
impl<B> FrameLog<B> {
    /// Creates a log whose frame numbers have `bits` bits and then wrap around.
    pub fn with_numbers_of(bits: u32) -> Self {
        Self { first: FrameNumber::default(), mask: u32::MAX >> (u32::BITS - bits), frames: VecDeque::new() }
    }
}

impl<B: Copy> FrameLog<B> {
    /// Adds a frame that is being sent. Returns its number within the VC.
    pub fn push(&mut self, frame: Frame<B>) -> FrameNumber {
        let ahead = u32::try_from(self.frames.len()).expect("the number of frames in flight fits in 32 bits");
        assert!(ahead < self.mask, "two frames in flight have different numbers");
        self.frames.push_back(frame);
        self.first.later(ahead, self.mask)
    }

    /// Returns the frame with this number.
    pub fn frame(&self, number: FrameNumber) -> Frame<B> {
        let index = number.since(self.first, self.mask) as usize;
        *self.frames.get(index).expect("a cell belongs to a frame that was sent and not yet forgotten")
    }

    /// Returns the frame with this number, to modify it in transit.
    pub fn frame_mut(&mut self, number: FrameNumber) -> &mut Frame<B> {
        let index = number.since(self.first, self.mask) as usize;
        self.frames.get_mut(index).expect("a cell belongs to a frame that was sent and not yet forgotten")
    }

    /// Returns the number that the next frame will get.
    pub fn next(&self) -> FrameNumber {
        let kept = u32::try_from(self.frames.len()).expect("the number of frames in flight fits in 32 bits");
        self.first.later(kept, self.mask)
    }

    /// Returns how many frames in the log are older than the given frame number.
    pub fn older_than(&self, number: FrameNumber) -> u32 {
        number.since(self.first, self.mask)
    }

    /// Returns the frame with this number and all later frames.
    pub fn since(&self, number: FrameNumber) -> impl Iterator<Item = Frame<B>> {
        self.frames.iter().skip(number.since(self.first, self.mask) as usize).copied()
    }

    /// Removes and returns the oldest frame, to move it to another log.
    pub fn take_oldest(&mut self) -> Option<Frame<B>> {
        let oldest = self.frames.pop_front()?;
        self.first = self.first.later(1, self.mask);
        Some(oldest)
    }

    /// Discards every frame older than the given frame number.
    pub fn forget_before(&mut self, number: FrameNumber) {
        let gone = number.since(self.first, self.mask);
        assert!(gone as usize <= self.frames.len(), "only frames that were sent are forgotten");
        for _ in 0..gone {
            self.frames.pop_front();
        }
        self.first = self.first.later(gone, self.mask);
    }
}

/// Reassembles one VC's cells into frames at the receiver (section 1.3).
///
/// In AAL5, a frame is delivered when its last cell arrives and all of its cells, and no others, were collected. If the
/// last cell is lost, the remaining cells are joined to the next frame and both frames are discarded. Any other lost
/// cell destroys only its own frame.
#[derive(Clone, Debug, Default)]
pub struct Reassembler {
    frame: FrameNumber,
    cells: u32,
    mixed: bool,
    /// True if the next cells need the slow path, because their frame is too long or the framing is
    /// [`Framing::Packets`].
    slow: bool,
    delimits: bool,
}

/// The effect of an arriving cell on the frame being reassembled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reassembled {
    /// The frame is not yet complete.
    Incomplete,
    /// The frame with this number is complete.
    Whole(FrameNumber),
    /// With [`Framing::Packets`], call [`Reassembler::on_packet_run`] instead.
    Packet,
    /// Discarded cells that do not form a complete frame.
    Damaged {
        /// Number of cells discarded.
        cells: u32,
    },
}

#[expect(clippy::arithmetic_side_effects, reason = "no overflow: counts of arrived cells are below the longest frame")]
impl Reassembler {
    /// Creates the reassembler of a VC.
    pub fn new(framing: Framing) -> Self {
        let delimits = framing == Framing::Packets;
        Self { slow: delimits, delimits, ..Self::default() }
    }

    /// Returns whether the latest frame was damaged because it contained cells of several frames or was too long.
    pub fn is_mixed(&self) -> bool {
        self.mixed || self.slow
    }

    /// Processes a cell. `cells_of` returns the number of cells in the frame with a given number; `max_cells` is the
    /// maximum for any frame.
    #[inline]
    pub fn on_cell(&mut self, cell: Cell, max_cells: u32, cells_of: impl FnOnce(FrameNumber) -> u32) -> Reassembled {
        if self.slow {
            if self.delimits {
                return Reassembled::Packet;
            }
            self.slow = !cell.last_cell();
            return Reassembled::Damaged { cells: 1 };
        }
        if self.cells == 0 {
            self.frame = cell.frame;
            self.mixed = false;
        } else if self.frame != cell.frame {
            self.mixed = true;
        }
        self.cells += 1;
        if cell.last_cell() {
            let cells = std::mem::take(&mut self.cells);
            if !self.mixed && cells == cells_of(cell.frame) {
                return Reassembled::Whole(cell.frame);
            }
            reached!(FrameJoined if self.mixed);
            reached!(FrameIncomplete if !self.mixed);
            return Reassembled::Damaged { cells };
        }
        if self.cells >= max_cells {
            reached!(FrameTooLong);
            // The frame is too long, even if the next cell is its last.
            self.slow = true;
            return Reassembled::Damaged { cells: std::mem::take(&mut self.cells) };
        }
        Reassembled::Incomplete
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "no overflow: counts of arrived cells are below the longest frame")]
impl Reassembler {
    /// Processes a run of cells in order. If cells are discarded, the result is their total number.
    #[inline]
    pub fn on_run(&mut self, run: Run, max_cells: u32, cells_of: impl Fn(FrameNumber) -> u32) -> Reassembled {
        if run.cells > 1 && !self.slow && self.cells + run.cells < max_cells {
            // Cells before the last cell of a frame only need to be counted.
            self.mixed = self.cells > 0 && (self.mixed || self.frame != run.last.frame);
            self.frame = if self.cells == 0 { run.last.frame } else { self.frame };
            self.cells += run.cells - 1;
            return self.on_cell(run.last, max_cells, cells_of);
        }
        self.on_single_cells(run, max_cells, cells_of)
    }

    /// Like [`Self::on_run`], but cell by cell. This function is separate, so that the path for whole frames saves no
    /// registers for the loop.
    #[inline(never)]
    fn on_single_cells(&mut self, run: Run, max_cells: u32, cells_of: impl Fn(FrameNumber) -> u32) -> Reassembled {
        let mut damaged = 0;
        for cell in run.iter() {
            match self.on_cell(cell, max_cells, &cells_of) {
                Reassembled::Incomplete => {}
                Reassembled::Damaged { cells } => damaged += cells,
                other @ (Reassembled::Whole(_) | Reassembled::Packet) => return other,
            }
        }
        if damaged > 0 { Reassembled::Damaged { cells: damaged } } else { Reassembled::Incomplete }
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "no overflow: counts of arrived cells are below the longest frame")]
impl Reassembler {
    /// Processes a run of cells of one packet with [`Framing::Packets`]. `cells_of` returns the number of cells in a
    /// packet. Calls `failed` with the number of each packet that will never be complete. Returns the packet if it is
    /// complete, and the number of cells discarded.
    #[inline]
    pub fn on_packet_run(
        &mut self,
        run: Run,
        cells_of: impl FnOnce(FrameNumber) -> u32,
        mut failed: impl FnMut(FrameNumber),
    ) -> (Option<FrameNumber>, u32) {
        let packet = run.last.frame;
        let mut damaged = 0;
        if self.cells > 0 && self.frame != packet {
            reached!(PacketWithoutLastCell);
            damaged = std::mem::take(&mut self.cells);
            failed(self.frame);
        }
        self.frame = packet;
        self.cells += run.cells;
        if !run.last.last_cell() {
            return (None, damaged);
        }
        let cells = std::mem::take(&mut self.cells);
        if cells == cells_of(packet) {
            return (Some(packet), damaged);
        }
        failed(packet);
        (None, damaged + cells)
    }
}

#[cfg(test)]
mod tests;
