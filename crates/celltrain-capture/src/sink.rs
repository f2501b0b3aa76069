//! Delivers the bytes of a capture to a sink in blocks.

use std::io::{self, BufWriter, Write};

use crate::Capture;

/// A capture that delivers its bytes in blocks to a sink.
pub(crate) type Writing<'a> = Capture<BufWriter<Handing<'a>>>;

/// Creates a writer that delivers its bytes to `sink` in blocks.
pub(crate) fn blocks(sink: &mut dyn FnMut(&[u8]) -> bool) -> BufWriter<Handing<'_>> {
    BufWriter::with_capacity(BLOCK_BYTES, Handing { sink, has_failed: false })
}

/// Writer that passes the bytes of a capture to a sink.
pub(crate) struct Handing<'a> {
    sink: &'a mut dyn FnMut(&[u8]) -> bool,
    has_failed: bool,
}

impl Write for Handing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.has_failed = self.has_failed || !(self.sink)(bytes);
        if self.has_failed { Err(io::Error::other("the packet has no receiver")) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const BLOCK_BYTES: usize = 1 << 20;
