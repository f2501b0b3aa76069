//! A capture that is being written.

use std::io::Write;

use celltrain_core::aal5::{Encapsulation, Framing};
use etherparse::TcpHeader;

use crate::codec::CellHeader;
use crate::codec::cell_header::{HEADER_BYTES, PAYLOAD_BYTES};
use crate::codec::rm_cell::RmCell;
use crate::link_types::{
    ERF_CELL_HEADER_BYTES, ERF_TYPE_AAL5, ERF_TYPE_ATM, NULL_IPV4, SUNATM_SENT, SUNATM_TYPE_UNKNOWN, erf_header,
    link_type,
};
use crate::pcapng::{Direction, InterfaceBlock, PacketBlock, Writer};
use crate::wire::{self, Carries, Circuit, Connection, Frame, Tcp, Wire};
use crate::{
    About, CaptureError, CaptureKind, CellKind, Interface, Place, SeenCell, SeenFrame, SeenPacket, Setting, ethernet,
};

/// A capture that is being written. It makes many small writes, so pass a buffered writer.
#[derive(Debug)]
pub struct Capture<W: Write> {
    writer: Writer<W>,
    wire: Wire,
    kind: CaptureKind,
    interfaces: usize,
    /// End of the synthetic handshakes in nanoseconds. Packets that are earlier get this timestamp.
    open_at: u64,
    /// For each connection, true if the capture already contains the connection's handshake or does not need a
    /// handshake.
    is_open: Vec<bool>,
    /// The frames whose cells were written most recently, in slots by connection and direction.
    frames: Vec<Option<(Frame, Vec<u8>)>>,
    /// Bytes of the current packet.
    bytes: Vec<u8>,
    /// Number of packets in the synthetic handshakes at the beginning of the capture.
    made_up: u64,
}

impl<W: Write> Capture<W> {
    /// Begins a capture. Writes the capture's interfaces and, for captures at hosts, the synthetic handshakes.
    ///
    /// # Errors
    /// If the output cannot be written, or the capture cannot represent a connection. Examples are an end at an
    /// interface that does not exist, and a segment too long for a frame.
    pub fn new(out: W, about: &About, setting: Setting) -> Result<Self, CaptureError> {
        let Setting { kind, framing, interfaces, connections } = setting;
        let wire = Wire::new(connections, framing, kind)?;
        for Connection { name, sender, receiver, .. } in &wire.connections {
            for interface in [sender, receiver].into_iter().filter_map(|end| end.interface) {
                if interface as usize >= interfaces.len() {
                    let problem = format!("{name}: this capture has no interface {interface}");
                    return Err(CaptureError::Refused(problem));
                }
            }
        }
        let mut writer = Writer::new(out, &about.application, &about.comment)?;
        let link_type = link_type(kind, &wire.framing, interfaces.len());
        for Interface { name, description } in &interfaces {
            writer.interface(&InterfaceBlock { name, description, link_type })?;
        }
        let mut capture = Self {
            writer,
            kind,
            interfaces: interfaces.len(),
            open_at: 0,
            is_open: vec![true; wire.connections.len()],
            wire,
            frames: vec![None; FRAMES_KEPT],
            bytes: Vec::new(),
            made_up: 0,
        };
        if !kind.of_cells() {
            capture.open_flows()?;
        }
        capture.made_up = capture.writer.packets;
        Ok(capture)
    }

    /// Adds a frame if the capture observes the end of the connection at which the frame was seen.
    ///
    /// # Errors
    /// If the output cannot be written, the frame is too long or does not fit its connection, or this is a capture of
    /// cells.
    pub fn frame(&mut self, seen: &SeenFrame<'_>) -> Result<(), CaptureError> {
        let SeenFrame { time_ns, at, frame, comment } = *seen;
        if self.kind.of_cells() {
            return Err(CaptureError::Refused("a capture of cells cannot record whole frames".to_owned()));
        }
        let Some((interface, direction, circuit)) = self.place(at, &frame) else {
            return Ok(());
        };
        let time_ns = time_ns.max(self.open_at);
        self.open_before(&frame, time_ns)?;
        let packet = self.wire.packet(&frame)?;
        self.write(PacketBlock { interface, time_ns, direction, comment }, circuit, packet)
    }

    /// Adds a connection that opens during the run. Connections are numbered in the order in which they are added.
    ///
    /// # Errors
    /// If the capture cannot represent the connection.
    pub(crate) fn open(&mut self, connection: Connection) -> Result<(), CaptureError> {
        self.wire.add(connection)?;
        self.is_open.push(false);
        Ok(())
    }

    /// Returns the name of a frame's connection.
    pub(crate) fn name(&self, frame: &Frame) -> &str {
        &self.wire.connection(frame).name
    }

    /// Returns the number of packets or cells written so far, without the synthetic handshakes at the beginning.
    pub fn packets(&self) -> u64 {
        self.writer.packets - self.made_up
    }

    /// Adds a packet whose bytes come from a host outside the simulation.
    ///
    /// # Errors
    /// If the output cannot be written, the packet is too long for an AAL5 frame, or this is a capture of cells.
    pub fn packet(&mut self, seen: &SeenPacket<'_>) -> Result<(), CaptureError> {
        let &SeenPacket { time_ns, interface, direction, circuit, bytes, comment } = seen;
        if self.kind.of_cells() {
            return Err(CaptureError::Refused("a capture of cells cannot record whole packets".to_owned()));
        }
        self.write(PacketBlock { interface, time_ns, direction, comment }, circuit, bytes.to_vec())
    }

    /// Adds a packet whose bytes come from a host outside the simulation, if the capture observes the end of the
    /// connection at which the packet was seen.
    pub(crate) fn own_packet(&mut self, seen: &SeenFrame<'_>, bytes: &[u8]) -> Result<(), CaptureError> {
        let SeenFrame { time_ns, at, frame, comment } = *seen;
        let Some((interface, direction, circuit)) = self.place(at, &frame) else { return Ok(()) };
        let time_ns = time_ns.max(self.open_at);
        self.packet(&SeenPacket { time_ns, interface, direction, circuit, bytes, comment })
    }

    /// Stores the bytes of a packet from a host outside the simulation until its cells have been written.
    pub(crate) fn keep_own(&mut self, number: u64, bytes: Vec<u8>) {
        self.wire.own.insert(number, bytes);
    }

    /// Discards the stored bytes of a packet from a host outside the simulation.
    pub(crate) fn forget_own(&mut self, number: u64) {
        self.wire.own.remove(&number);
    }

    /// Adds a cell seen at a port.
    ///
    /// # Errors
    /// If the output cannot be written, or the cell is invalid: the cell's frame is too long or has no cell with this
    /// index, or the interface does not exist.
    pub fn cell(&mut self, seen: &SeenCell<'_>) -> Result<(), CaptureError> {
        let SeenCell { time_ns, interface, direction, circuit, cell, comment } = *seen;
        if !self.kind.of_cells() {
            return Err(CaptureError::Refused("a capture of packets at hosts cannot record cells".to_owned()));
        }
        if interface as usize >= self.interfaces {
            return Err(CaptureError::Refused(format!("this capture has no interface {interface}")));
        }
        let Circuit { vpi, vci } = circuit;
        let bytes = match cell {
            CellKind::Rm(content) => RmCell::carrying(&content, vpi, vci).encode(),
            CellKind::User { frame, index, clp, efci, damaged } => {
                let (mut payload, last) = self.payload_of(&frame, index)?;
                if damaged && index == 0 {
                    payload[PAYLOAD_BYTES - 1] ^= 1;
                }
                let header = CellHeader { clp, ..CellHeader::user_data(vpi, vci, last) };
                CellHeader { pti: header.pti | if efci { PTI_EFCI } else { 0 }, ..header }.cell(&payload)
            }
        };
        let block = PacketBlock { interface, time_ns, direction, comment };
        if self.kind == CaptureKind::Cells {
            return Ok(self.writer.packet(block, &bytes)?);
        }
        let (header, payload) = bytes.split_at(HEADER_BYTES);
        self.put_erf(time_ns, ERF_TYPE_ATM, header, payload)?;
        Ok(self.writer.packet(block, &self.bytes)?)
    }

    /// Returns the AAL5 frame that represents a frame of the model: whole cells with trailer and CRC-32. The result
    /// does not depend on where the frame is seen.
    ///
    /// # Errors
    /// If the frame is too long, or does not fit its connection.
    pub fn pdu(&self, frame: &Frame) -> Result<Vec<u8>, CaptureError> {
        Ok(self.wire.frame(&self.wire.packet(frame)?))
    }

    /// Returns an error if a capture of this kind cannot represent this frame.
    ///
    /// # Errors
    /// If the frame is too long, or does not fit its connection.
    pub fn fits(&self, frame: &Frame) -> Result<(), CaptureError> {
        self.fits_bytes(&self.wire.packet(frame)?)
    }

    /// Returns an error if a capture of this kind cannot represent the full segments of a connection.
    pub(crate) fn fits_segments(&self, connection: &Connection) -> Result<(), CaptureError> {
        let Some(Tcp { mss, .. }) = connection.tcp else { return Ok(()) };
        let bytes = self.wire.fits(connection, mss.saturating_add(TcpHeader::MIN_LEN as u64))?;
        self.fits_bytes(&vec![0; bytes])
    }

    fn fits_bytes(&self, packet: &[u8]) -> Result<(), CaptureError> {
        if self.kind == CaptureKind::Aal5 && self.wire.framing.encapsulation == Encapsulation::LlcSnap {
            erf_header(0, ERF_TYPE_AAL5, ERF_CELL_HEADER_BYTES + self.wire.frame(packet).len())?;
        }
        Ok(())
    }

    /// Ends the capture and returns the underlying writer.
    ///
    /// # Errors
    /// If the remaining bytes cannot be written.
    pub fn finish(self) -> Result<W, CaptureError> {
        Ok(self.writer.finish()?)
    }

    /// Generates a synthetic handshake for every connection, from nanosecond 1 to nanosecond 2.
    fn open_flows(&mut self) -> Result<(), CaptureError> {
        let tcp = |(_, connection): &(u32, &Connection)| connection.tcp.is_some();
        let numbers: Vec<u32> = (0..).zip(&self.wire.connections).filter(tcp).map(|(number, _)| number).collect();
        let comment = |name: &str| {
            format!(
                "synthetic: in the model the connection {name} is open from the start. This handshake shows its segment \
                 size, its window scale and its use of selective acknowledgements"
            )
        };
        for (steps, time_ns) in [(0..2, SYN_NS), (2..3, OPEN_NS)] {
            for &number in &numbers {
                self.open_at = OPEN_NS;
                self.make_up(&wire::made_up(number)[steps.clone()], time_ns, comment)?;
            }
        }
        Ok(())
    }

    /// Writes steps of a handshake, each step at both ends of the connection (RFC 9293, 3.5).
    fn make_up(&mut self, steps: &[Frame], time_ns: u64, comment: impl Fn(&str) -> String) -> Result<(), CaptureError> {
        for frame in steps {
            let packet = self.wire.packet(frame)?;
            let comment = comment(&self.wire.connection(frame).name);
            let ends = [Place::Sender, Place::Receiver];
            for at in if frame.carries.is_forward() { ends } else { [ends[1], ends[0]] } {
                if let Some((interface, direction, circuit)) = self.place(at, frame) {
                    let block = PacketBlock { interface, time_ns, direction, comment: Some(&comment) };
                    self.write(block, circuit, packet.clone())?;
                }
            }
        }
        Ok(())
    }

    /// Generates a synthetic handshake for a connection if the connection's first packet in this capture belongs to no
    /// handshake.
    fn open_before(&mut self, frame: &Frame, time_ns: u64) -> Result<(), CaptureError> {
        let is_open = &mut self.is_open[frame.connection as usize];
        if std::mem::replace(is_open, true) || matches!(frame.carries, Carries::Syn | Carries::SynAck) {
            return Ok(());
        }
        self.make_up(&wire::made_up(frame.connection), time_ns, |name| {
            format!(
                "synthetic: {name} opened without a handshake, or before this capture. This handshake shows its segment \
                 size, its window scale and its use of selective acknowledgements"
            )
        })
    }

    /// Returns the interface and direction of a frame at one end of its connection, and the VPI and VCI at this end;
    /// `None` if the capture does not observe this end.
    fn place(&self, at: Place, frame: &Frame) -> Option<(u32, Direction, Circuit)> {
        let Connection { sender, receiver, data, acks, .. } = self.wire.connection(frame);
        let (labels, from) = if frame.carries.is_forward() { (data, Place::Sender) } else { (acks, Place::Receiver) };
        let end = if at == Place::Sender { sender } else { receiver };
        let (direction, circuit) =
            if at == from { (Direction::Outbound, labels.first) } else { (Direction::Inbound, labels.last) };
        end.interface.map(|interface| (interface, direction, circuit))
    }

    /// Writes a packet seen at a host, in the format of the capture's link type.
    fn write(&mut self, block: PacketBlock<'_>, circuit: Circuit, packet: Vec<u8>) -> Result<(), CaptureError> {
        match (self.kind, self.wire.framing.encapsulation) {
            (CaptureKind::Ip, _) if self.wire.framing.framing == Framing::Packets => {
                ethernet::put(&packet, &mut self.bytes);
            }
            (CaptureKind::Aal5, Encapsulation::LlcSnap) => {
                // The record has the header of the frame's last cell.
                let header = CellHeader::user_data(circuit.vpi, circuit.vci, true).encode();
                let frame = self.wire.frame(&packet);
                self.put_erf(block.time_ns, ERF_TYPE_AAL5, &header, &frame)?;
            }
            (CaptureKind::Aal5, Encapsulation::VcMux) => {
                let [high, low] = circuit.vci.to_be_bytes();
                let sent = if block.direction == Direction::Outbound { SUNATM_SENT } else { 0 };
                self.bytes = [sent | SUNATM_TYPE_UNKNOWN, circuit.vpi, high, low].to_vec();
                self.bytes.extend_from_slice(&self.wire.frame(&packet));
            }
            (CaptureKind::Ip, _) if self.interfaces > 1 => {
                self.bytes = NULL_IPV4.to_vec();
                self.bytes.extend_from_slice(&packet);
            }
            (CaptureKind::Ip | CaptureKind::Cells | CaptureKind::ErfCells, _) => self.bytes = packet,
        }
        Ok(self.writer.packet(block, &self.bytes)?)
    }

    /// Builds an ERF record from a cell header and a payload. The cell header has no HEC byte.
    fn put_erf(&mut self, time_ns: u64, kind: u8, header: &[u8], payload: &[u8]) -> Result<(), CaptureError> {
        let header = &header[..ERF_CELL_HEADER_BYTES];
        self.bytes.clear();
        self.bytes.extend_from_slice(&erf_header(time_ns, kind, header.len() + payload.len())?);
        self.bytes.extend_from_slice(header);
        self.bytes.extend_from_slice(payload);
        Ok(())
    }

    /// Returns the payload of one cell of a frame, and whether the cell is the last cell of the frame.
    fn payload_of(&mut self, frame: &Frame, index: u32) -> Result<([u8; PAYLOAD_BYTES], bool), CaptureError> {
        // Cells of several VCs alternate at a port, so recently used frames are soon needed again.
        let way = u32::from(!frame.carries.is_forward());
        let slot = frame.connection.wrapping_mul(2).wrapping_add(way) as usize % FRAMES_KEPT;
        if self.frames[slot].as_ref().is_none_or(|(kept, _)| kept != frame) {
            self.frames[slot] = Some((*frame, self.pdu(frame)?));
        }
        let pdu = self.frames[slot].as_ref().map_or(&[][..], |(_, pdu)| pdu);
        let (cells, _) = pdu.as_chunks::<PAYLOAD_BYTES>();
        let Some(payload) = cells.get(index as usize) else {
            let name = &self.wire.connection(frame).name;
            let problem =
                format!("{name}: a frame of {} cells has no cell with the index {index} (counted from 0)", cells.len());
            return Err(CaptureError::Refused(problem));
        };
        Ok((*payload, index as usize + 1 == cells.len()))
    }
}

/// The congestion bit of the payload type of user data (ITU-T I.361).
const PTI_EFCI: u8 = 0b010;

/// Time at which the synthetic handshakes start, in nanoseconds.
const SYN_NS: u64 = 1;
/// Time at which the synthetic handshakes end, in nanoseconds.
const OPEN_NS: u64 = 2;

/// Number of slots for frames, which is more than most ports have VCs. With frames of the maximum length, the slots use
/// at most 16 megabytes.
const FRAMES_KEPT: usize = 256;
