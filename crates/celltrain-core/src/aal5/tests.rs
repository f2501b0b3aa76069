use super::*;
use crate::cell::tests::cell;
use proptest::prelude::*;

const PACKETS: Aal5Options = Aal5Options {
    encapsulation: Encapsulation::LlcSnap,
    max_sdu: Bytes { bytes: MAX_SDU },
    cell: CellFormat::of_memory(250),
    framing: Framing::Packets,
};

#[test]
fn with_packet_framing_the_size_of_a_packet_is_the_size_of_its_headers_and_payload() {
    let cells = [0, 210, 211, 1460, 1461].map(|payload| PACKETS.segment_cells(payload));
    assert_eq!(cells, [1, 1, 2, 6, 7]);
    assert_eq!((PACKETS.packet_cells(222), PACKETS.packet_cells(223)), (1, 2));
    assert_eq!((PACKETS.frame_cells(250), PACKETS.longest_packet(Some(2))), (1, 500));
    assert_eq!(PACKETS.frame_cells(0), 1);
}

proptest! {
    #[test]
    fn with_packet_framing_a_packet_fails_exactly_if_it_loses_a_cell(
        lengths in prop::collection::vec(1..5u32, 1..12), lost in prop::collection::vec(prop::bool::weighted(0.2), 60),
    ) {
        let mut receiver = Reassembler::default();
        let (mut whole, mut failed, mut arrived, mut damaged) = (Vec::new(), Vec::new(), Vec::new(), 0);
        let mut lost = lost.into_iter();
        for (frame, &cells) in lengths.iter().enumerate() {
            for number in 1..=cells {
                if lost.next().unwrap_or_default() {
                    continue;
                }
                let last = cell(0, u32::try_from(frame).unwrap(), number == cells);
                arrived.push(frame);
                let cells_of = |frame: FrameNumber| lengths[frame.number() as usize];
                let (ended, discarded) =
                    receiver.on_packet_run(Run { last, cells: 1 }, cells_of, |packet| failed.push(packet.number() as usize));
                whole.extend(ended.map(|packet| packet.number() as usize));
                damaged += discarded;
            }
        }
        // If the last cell of the final packet is lost, the receiver cannot tell where the packet ends.
        let cells = |frame: usize| arrived.iter().filter(|&&cell| cell == frame).count();
        let open = receiver.cells as usize;
        for (frame, &length) in lengths.iter().enumerate() {
            let is_whole = cells(frame) == length as usize;
            prop_assert_eq!(whole.contains(&frame), is_whole);
            let is_open = open > 0 && frame == *arrived.last().unwrap();
            prop_assert_eq!(failed.contains(&frame), !is_whole && cells(frame) > 0 && !is_open);
        }
        let in_whole: usize = whole.iter().map(|&frame| cells(frame)).sum();
        prop_assert_eq!(damaged as usize + open + in_whole, arrived.len());
    }
}

#[test]
fn the_number_of_cells_per_packet_matches_the_published_table() {
    let aal5 = Aal5Options::default();
    let table = [(512, 12), (536, 13), (1024, 23), (1460, 32), (1500, 33), (9140, 192), (9180, 193), (0, 2)];
    for (payload, cells) in table {
        assert_eq!(aal5.segment_cells(payload), cells, "payload {payload}");
    }
    let vc_mux = Aal5Options { encapsulation: Encapsulation::VcMux, ..aal5 };
    assert_eq!(vc_mux.segment_cells(0), 1);
}

#[test]
fn the_size_of_a_frame_includes_udp_headers_for_packets_and_tcp_headers_for_segments() {
    // 28 bytes of headers, 8 of LLC/SNAP and 8 of trailer leave room for 4 bytes of payload in one cell, 52 in two
    // cells and 532 in twelve. Without LLC/SNAP, there is room for 12, 60 and 540 bytes.
    let llc = Aal5Options::default();
    let vc_mux = Aal5Options { encapsulation: Encapsulation::VcMux, ..llc.clone() };
    for (aal5, most) in [(llc, [4, 52, 532]), (vc_mux, [12, 60, 540])] {
        assert_eq!(most.map(|payload| aal5.packet_cells(payload)), [1, 2, 12], "{aal5:?}");
        assert_eq!(most.map(|payload| aal5.packet_cells(payload + 1)), [2, 3, 13], "{aal5:?}");
    }
}

#[test]
fn the_highest_goodput_of_512_byte_segments_on_a_155_mbit_link_equals_the_published_value() {
    let share = Aal5Options::default().payload_share(512, 12);
    assert!((share * 155.52 - 125.2).abs() < 0.01);
}

/// Returns the frames delivered out of `frames` frames of three cells each. `lost` lists the positions of cells
/// that never arrive.
fn delivered(frames: u32, lost: &[usize]) -> Vec<u32> {
    let mut receiver = Reassembler::default();
    (0..frames * 3)
        .filter(|i| !lost.contains(&(*i as usize)))
        .filter_map(|i| match receiver.on_cell(cell(0, i / 3, i % 3 == 2), 10, |_| 3) {
            Reassembled::Whole(frame) => Some(frame.number()),
            _ => None,
        })
        .collect()
}

#[test]
fn losing_a_cell_destroys_one_frame_and_losing_the_last_cell_of_a_frame_two() {
    assert_eq!(delivered(4, &[4]), [0, 2, 3]);
    assert_eq!(delivered(4, &[5]), [0, 3]);
    // Frame 1 arrives without its last two cells, frame 2 without its first cell. Together they have three cells,
    // including a last one.
    assert_eq!(delivered(4, &[4, 5, 6]), [0, 3]);
}

#[test]
fn reassembly_of_an_overlong_frame_is_abandoned_before_its_last_cell_arrives() {
    let mut receiver = Reassembler::default();
    let of_frame = |last| cell(0, 0, last);
    assert_eq!(receiver.on_cell(of_frame(false), 2, |_| 5), Reassembled::Incomplete);
    assert_eq!(receiver.on_cell(of_frame(false), 2, |_| 5), Reassembled::Damaged { cells: 2 });
    assert_eq!(receiver.on_cell(of_frame(false), 2, |_| 5), Reassembled::Damaged { cells: 1 });
    assert_eq!(receiver.on_cell(of_frame(true), 2, |_| 5), Reassembled::Damaged { cells: 1 });
    let next = cell(0, 1, true);
    assert_eq!(receiver.on_cell(next, 2, |_| 1), Reassembled::Whole(FrameNumber::new(1)));
}

proptest! {
    #![proptest_config(crate::rng::proptest_seeded(2))]

    #[test]
    fn reassembling_a_run_of_cells_in_one_call_equals_reassembling_them_one_at_a_time(
        runs in prop::collection::vec((0u32..3, 1u32..5, any::<bool>()), 1..30),
        max_cells in 4u32..12,
    ) {
        let [mut in_runs, mut one_by_one] = [(); 2].map(|()| Reassembler::default());
        for (frame, cells, last) in runs {
            let run = Run { last: cell(0, frame, last), cells };
            let of_run = in_runs.on_run(run, max_cells, |frame| frame.number() + 3);
            let single: Vec<_> = run.iter().map(|cell| one_by_one.on_cell(cell, max_cells, |frame| frame.number() + 3)).collect();
            let damaged = single.iter().map(|now| if let Reassembled::Damaged { cells } = now { *cells } else { 0 }).sum();
            let whole = single.into_iter().find(|now| matches!(now, Reassembled::Whole(_)));
            let incomplete = if damaged > 0 { Reassembled::Damaged { cells: damaged } } else { Reassembled::Incomplete };
            prop_assert_eq!(of_run, whole.unwrap_or(incomplete));
        }
    }

    #[test]
    fn reassembling_a_frame_requires_all_its_cells_and_the_last_cell_of_the_previous_frame(
        lengths in prop::collection::vec(1u32..6, 1..40),
        losses in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let cells: Vec<(u32, bool)> = lengths
            .iter()
            .zip(0..)
            .flat_map(|(&n, frame)| (0..n).map(move |i| (frame, i == n - 1)))
            .collect();
        let mut lost = vec![false; cells.len()];
        for index in losses {
            lost[index.index(cells.len())] = true;
        }
        let mut receiver = Reassembler::default();
        let mut got = Vec::new();
        let mut collected = 0;
        for (&(frame, last), _) in cells.iter().zip(&lost).filter(|(_, lost)| !**lost) {
            collected += 1;
            match receiver.on_cell(cell(0, frame, last), 100, |f| lengths[f.number() as usize]) {
                Reassembled::Incomplete => {}
                Reassembled::Whole(frame) => {
                    prop_assert_eq!(std::mem::take(&mut collected), lengths[frame.number() as usize]);
                    got.push(frame.number());
                }
                Reassembled::Damaged { cells } => prop_assert_eq!(std::mem::take(&mut collected), cells),
                Reassembled::Packet => unreachable!("AAL5 frames the packets"),
            }
        }
        // A frame should be delivered if all its cells arrive and no cells of an incomplete earlier frame precede
        // it.
        let mut expected = Vec::new();
        let mut remains = false;
        for frame in 0..u32::try_from(lengths.len()).unwrap() {
            let own: Vec<usize> = (0..cells.len()).filter(|&i| cells[i].0 == frame).collect();
            let arrived = own.iter().filter(|&&i| !lost[i]).count();
            let last_lost = lost[*own.last().unwrap()];
            if arrived == own.len() && !remains {
                expected.push(frame);
            }
            remains = last_lost && (remains || arrived > 0);
        }
        prop_assert_eq!(got, expected);
    }
}
