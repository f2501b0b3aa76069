//! Checks that for any sequence of cells, the reassembler for bytes does not panic, and reports the same frames as
//! whole as the engine's reassembler.
#![no_main]

use celltrain_core::aal5::{Reassembled, Reassembler};
use celltrain_core::cell::{Cell, FrameNumber};
use celltrain_capture::codec::aal5;
use celltrain_core::index::Label;
use libfuzzer_sys::fuzz_target;

// The input describes a stream of frames: the bytes of the input give the length of each frame and the cells that are
// lost.
fuzz_target!(|data: &[u8]| {
    let mut engine = Reassembler::default();
    let mut bytes = aal5::Reassembler::new();
    let mut lengths = Vec::new();
    let mut input = data.iter();
    while let Some(length) = input.next() {
        let frame = lengths.len() as u32;
        // The payloads of frames differ, so that cells of two frames never form a third, valid frame.
        let payload: Vec<u8> = (0..=*length).map(|i| i ^ (frame as u8).wrapping_mul(31)).collect();
        let pdu = aal5::encode(&payload, 0);
        lengths.push((pdu.len() / 48) as u32);
        for (cell, last) in aal5::segment(&pdu) {
            if input.next().is_some_and(|fate| fate % 8 == 0) {
                continue;
            }
            let whole = bytes.accept(&cell, last).is_some_and(|pdu| pdu.is_ok());
            let answer = engine.on_cell(Cell::new(Label::new(0), FrameNumber::new(frame), last), 1366, |frame| {
                lengths[frame.number() as usize]
            });
            assert_eq!(whole, matches!(answer, Reassembled::Whole(_)));
        }
    }
});
