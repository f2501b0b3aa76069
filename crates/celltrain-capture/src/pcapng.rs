//! The pcapng file format: little-endian blocks, with timestamps in nanoseconds.
//!
//! Source: draft-ietf-opsawg-pcapng (section header, interface description and enhanced packet blocks, and their
//! options). Differences from the source: none known. The writer omits the optional statistics block.

use std::io::{self, Write};

/// Writes the blocks of a file one after another. At most one block is in memory.
#[derive(Debug)]
pub(crate) struct Writer<W> {
    out: W,
    block: Vec<u8>,
    /// Number of packets written so far.
    pub(crate) packets: u64,
}

/// Name, description and link type of an interface.
pub(crate) struct InterfaceBlock<'a> {
    pub(crate) name: &'a str,
    pub(crate) description: &'a str,
    pub(crate) link_type: u16,
}

#[derive(Clone, Copy)]
pub(crate) struct PacketBlock<'a> {
    pub(crate) interface: u32,
    pub(crate) time_ns: u64,
    pub(crate) direction: Direction,
    pub(crate) comment: Option<&'a str>,
}

/// Direction of traffic at an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Traffic that arrives at the interface.
    Inbound,
    /// Traffic that leaves the interface.
    Outbound,
}

impl<W: Write> Writer<W> {
    /// Begins a file by writing its section header.
    pub(crate) fn new(out: W, application: &str, comment: &str) -> io::Result<Self> {
        let mut writer = Self { out, block: Vec::new(), packets: 0 };
        writer.begin(SECTION_HEADER);
        writer.word(BYTE_ORDER_MAGIC);
        writer.block.extend_from_slice(&VERSION_1_0);
        writer.block.extend_from_slice(&SECTION_LENGTH_UNKNOWN);
        writer.text(OPT_COMMENT, comment);
        writer.text(SHB_USERAPPL, application);
        writer.end()?;
        Ok(writer)
    }

    /// Adds an interface. Interfaces are numbered from 0 and must precede the first packet.
    pub(crate) fn interface(&mut self, interface: &InterfaceBlock<'_>) -> io::Result<()> {
        self.begin(INTERFACE_DESCRIPTION);
        // The block has the link type in 16 bits, 16 reserved bits, and the limit on packet lengths, where 0 means no
        // limit.
        self.word(u32::from(interface.link_type));
        self.word(0);
        self.text(IF_NAME, interface.name);
        self.text(IF_DESCRIPTION, interface.description);
        self.option(IF_TSRESOL, &[NANOSECONDS]);
        self.end()
    }

    /// Adds a packet with all of its bytes.
    pub(crate) fn packet(&mut self, packet: PacketBlock<'_>, bytes: &[u8]) -> io::Result<()> {
        let length = u32::try_from(bytes.len()).expect("a packet has at most about 65 kilobytes");
        let (high, low) = (packet.time_ns >> 32, packet.time_ns & u64::from(u32::MAX));
        self.begin(ENHANCED_PACKET);
        self.word(packet.interface);
        for half in [high, low] {
            self.word(u32::try_from(half).expect("each half has 32 bits"));
        }
        self.word(length);
        self.word(length);
        self.block.extend_from_slice(bytes);
        self.pad();
        let flags: u32 = match packet.direction {
            Direction::Inbound => 0b01,
            Direction::Outbound => 0b10,
        };
        self.option(EPB_FLAGS, &flags.to_le_bytes());
        if let Some(comment) = packet.comment {
            self.text(OPT_COMMENT, comment);
        }
        self.packets += 1;
        self.end()
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.word(kind);
        // Placeholder for the block's length, which is written at the end of the block.
        self.word(0);
    }

    fn word(&mut self, word: u32) {
        self.block.extend_from_slice(&word.to_le_bytes());
    }

    fn text(&mut self, code: u16, text: &str) {
        self.option(code, shortened(text).as_bytes());
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let length = u16::try_from(value.len()).expect("the text of an option is cut to the maximum length");
        self.block.extend_from_slice(&code.to_le_bytes());
        self.block.extend_from_slice(&length.to_le_bytes());
        self.block.extend_from_slice(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(WORD), 0);
    }

    /// Ends a block. Writes the end-of-options option first, because every block has options.
    fn end(&mut self) -> io::Result<()> {
        self.option(OPT_ENDOFOPT, &[]);
        let length = u32::try_from(self.block.len() + WORD).expect("the length of a block fits in 32 bits");
        self.word(length);
        self.block[LENGTH_AT..LENGTH_AT + WORD].copy_from_slice(&length.to_le_bytes());
        self.out.write_all(&self.block)
    }
}

/// Shortens a string to the maximum length of an option.
fn shortened(text: &str) -> &str {
    let mut end = text.len().min(usize::from(u16::MAX));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Major and minor version of the file format.
const VERSION_1_0: [u8; 4] = [1, 0, 0, 0];
/// Section length of -1, which means an unknown length, since the file is written during the run.
const SECTION_LENGTH_UNKNOWN: [u8; 8] = [0xff; 8];

const OPT_ENDOFOPT: u16 = 0;
const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
/// `if_tsresol`: timestamps in units of 10^-9 seconds.
const NANOSECONDS: u8 = 9;

/// Number of bytes to whose multiples all parts of a block are padded.
const WORD: usize = 4;
const LENGTH_AT: usize = 4;
