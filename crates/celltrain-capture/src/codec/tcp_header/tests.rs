use super::super::tests::refusal;
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

const SRC: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const DST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

const DAMAGED: &str = "TCP segment damaged or misdirected: it does not match its checksum";

fn any_option() -> impl Strategy<Value = TcpOption> {
    let block = any::<(u32, u32)>().prop_map(|(left, right)| SackBlock { left, right });
    prop_oneof![
        Just(TcpOption::NoOperation),
        any::<u16>().prop_map(TcpOption::MaximumSegmentSize),
        any::<u8>().prop_map(TcpOption::WindowScale),
        Just(TcpOption::SackPermitted),
        vec(block, 1..=MAX_SACK_BLOCKS).prop_map(TcpOption::Sack),
        any::<(u32, u32)>().prop_map(|(value, echo_reply)| TcpOption::Timestamps { value, echo_reply }),
    ]
}

/// Generates options that fit: each one of a longer list that still has room.
pub(in super::super) fn any_options() -> impl Strategy<Value = Vec<TcpOption>> {
    vec(any_option(), 0..12).prop_map(|wanted| {
        let mut room = MAX_OPTIONS_BYTES;
        wanted
            .into_iter()
            .filter(|option| {
                let fits = option.bytes() <= room;
                room -= if fits { option.bytes() } else { 0 };
                fits
            })
            .collect()
    })
}

pub(in super::super) fn any_header() -> impl Strategy<Value = TcpHeader> {
    (any::<(u16, u16)>(), any::<(u32, u32)>(), any::<u8>(), any::<(u16, u16)>(), any_options()).prop_map(
        |((src_port, dst_port), (sequence, acknowledgement), flags, (window, urgent), options)| TcpHeader {
            src_port,
            dst_port,
            sequence,
            acknowledgement,
            flags: TcpFlags::from_bits(flags),
            window,
            urgent,
            options,
        },
    )
}

/// Builds a segment with these option bytes and a correct checksum, to reach the checks after it.
fn segment_with_options(options: &[u8]) -> Vec<u8> {
    let mut segment = TcpHeader::default().encode(&[], SRC, DST);
    segment.extend_from_slice(options);
    segment[12] = u8::try_from(segment.len() / 4).expect("at most 15 words") << 4;
    with_right_checksum(segment)
}

fn with_right_checksum(mut segment: Vec<u8>) -> Vec<u8> {
    segment[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
    let length = u16::try_from(segment.len()).expect("a short segment");
    let checksum = internet_checksum(&[&pseudo_header(SRC, DST, PROTOCOL_TCP, length), &segment]);
    segment[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
    segment
}

fn parsed_options(options: &[u8]) -> Result<Vec<TcpOption>, ParseError> {
    let segment = segment_with_options(options);
    TcpHeader::parse(&segment, SRC, DST).map(|(header, _)| header.options)
}

proptest! {
    #![proptest_config(crate::tests::proptest_seeded(0x0074_6370))]

    #[test]
    fn any_segment_that_can_be_built_is_parsed_back(
        header in any_header(),
        payload in vec(any::<u8>(), 0..200),
    ) {
        let segment = header.encode(&payload, SRC, DST);
        prop_assert_eq!(segment.len(), header.bytes() + payload.len());
        prop_assert_eq!(
            TcpHeader::parse(&segment, SRC, DST),
            Ok((header, payload.as_slice()))
        );
    }

    #[test]
    fn any_single_flipped_bit_of_an_address_is_refused(
        header in any_header(),
        bit in 0..32_u32,
    ) {
        let segment = header.encode(&[1, 2, 3], SRC, DST);
        let elsewhere = Ipv4Addr::from(u32::from(DST) ^ 1 << bit);
        prop_assert_eq!(refusal(TcpHeader::parse(&segment, SRC, elsewhere)), DAMAGED);
    }

    #[test]
    fn any_header_behind_a_right_checksum_never_panics(bytes in vec(any::<u8>(), 20..100)) {
        let segment = with_right_checksum(bytes);
        prop_assert!(TcpHeader::parse(&segment, SRC, DST).map_or_else(|error| error.0 != DAMAGED, |_| true));
    }

    #[test]
    fn options_of_any_content_never_panic(
        // Kinds and lengths are small numbers, so small bytes reach deeper than arbitrary bytes.
        words in vec(prop_oneof![any::<[u8; 4]>(), prop::array::uniform4(0_u8..12)], 0..=10),
    ) {
        if let Ok(options) = parsed_options(&words.concat()) {
            prop_assert!(options_bytes(&options) <= 4 * words.len());
        }
    }

    #[test]
    fn unknown_options_are_skipped_by_their_length(
        kind in 9_u8..,
        body in vec(any::<u8>(), 0..=30),
    ) {
        let length = u8::try_from(body.len() + 2).expect("a short body");
        let mut options = [&[1, kind, length], body.as_slice(), &[3, 3, 7]].concat();
        options.resize(options.len().next_multiple_of(4), 0);
        prop_assert_eq!(
            parsed_options(&options),
            Ok(vec![TcpOption::NoOperation, TcpOption::WindowScale(7)])
        );
    }

    #[test]
    fn aligned_options_each_end_on_a_whole_word(options in vec(any_option(), 0..8)) {
        let mut end = 0;
        let aligned = word_aligned(&options);
        for option in &aligned {
            end += option.bytes();
            prop_assert!(end % 4 == 0 || *option == TcpOption::NoOperation);
        }
        let kept = |options: Vec<TcpOption>| -> Vec<TcpOption> {
            options.into_iter().filter(|o| *o != TcpOption::NoOperation).collect()
        };
        prop_assert_eq!(kept(aligned), kept(options));
    }
}

#[test]
fn every_field_stands_in_its_place() {
    let header = TcpHeader {
        src_port: 0x0102,
        dst_port: 0x0304,
        sequence: 0x0506_0708,
        acknowledgement: 0x090a_0b0c,
        flags: TcpFlags::SYN | TcpFlags::ACK,
        window: 0x0d0e,
        urgent: 0x0f10,
        options: vec![TcpOption::MaximumSegmentSize(9140), TcpOption::WindowScale(3)],
    };
    let segment = header.encode(&[0xee], SRC, DST);
    assert_eq!(segment[..16], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x70, 0x12, 13, 14]);
    assert_eq!(segment[18..], [15, 16, 2, 4, 0x23, 0xb4, 3, 3, 3, 0, 0xee]);
}

#[test]
fn every_option_has_the_bytes_of_its_source() {
    let header = TcpHeader {
        options: word_aligned(&[
            TcpOption::SackPermitted,
            TcpOption::Timestamps { value: 0x0102_0304, echo_reply: 0x0506_0708 },
            TcpOption::Sack(vec![SackBlock { left: 0x1112_1314, right: 0x1516_1718 }]),
            TcpOption::WindowScale(7),
        ]),
        ..TcpHeader::default()
    };
    let segment = header.encode(&[], SRC, DST);
    let (words, _) = segment[HEADER_BYTES..].as_chunks::<4>();
    assert_eq!(
        words,
        [
            [1, 1, 4, 2],
            [1, 1, 8, 10],
            [1, 2, 3, 4],
            [5, 6, 7, 8],
            [1, 1, 5, 10],
            [0x11, 0x12, 0x13, 0x14],
            [0x15, 0x16, 0x17, 0x18],
            [1, 3, 3, 7],
        ]
    );
}

#[test]
fn the_checksum_of_a_bare_segment_is_what_a_hand_reckons() {
    // Nonzero words: 0a00 0001 0a00 0002 0006 0014 (pseudo header) and 5010 (offset 5, ACK), which sum to 642d.
    let header = TcpHeader { flags: TcpFlags::ACK, ..TcpHeader::default() };
    let segment = header.encode(&[], SRC, DST);
    assert_eq!(segment[16..18], (!0x642d_u16).to_be_bytes());
}

#[test]
fn each_flag_has_its_bit() {
    let all = [
        TcpFlags::FIN,
        TcpFlags::SYN,
        TcpFlags::RST,
        TcpFlags::PSH,
        TcpFlags::ACK,
        TcpFlags::URG,
        TcpFlags::ECE,
        TcpFlags::CWR,
    ];
    assert_eq!(all.map(TcpFlags::bits), [1, 2, 4, 8, 16, 32, 64, 128]);
    let both = TcpFlags::SYN | TcpFlags::ACK;
    assert!(both.contains(TcpFlags::SYN) && both.contains(both));
    assert!(!both.contains(TcpFlags::SYN | TcpFlags::FIN));
}

#[test]
fn timestamps_leave_room_for_three_sack_blocks_and_four_stand_alone() {
    let timestamps = TcpOption::Timestamps { value: 1, echo_reply: 2 };
    let block = SackBlock { left: 3, right: 4 };
    let both = word_aligned(&[timestamps.clone(), TcpOption::Sack(vec![block; 3])]);
    assert_eq!(options_bytes(&word_aligned(&[timestamps])), 12);
    assert_eq!(options_bytes(&both), MAX_OPTIONS_BYTES);
    assert_eq!(options_bytes(&[TcpOption::Sack(vec![block; 4])]), 36);
}

#[test]
fn what_stands_behind_the_end_of_the_list_is_not_looked_at() {
    assert_eq!(parsed_options(&[1, 0, 2, 99]), Ok(vec![TcpOption::NoOperation]));
}

#[test]
fn malformed_option_lengths_are_refused() {
    for (options, kind, length) in [
        ([8, 0, 0, 0], 8, 0),
        ([8, 1, 0, 0], 8, 1),
        ([99, 1, 0, 0], 99, 1),
        ([99, 5, 0, 0], 99, 5),
        ([2, 3, 0, 0], 2, 3),
        ([2, 255, 0, 0], 2, 255),
        ([3, 4, 0, 0], 3, 4),
        ([4, 3, 0, 0], 4, 3),
        ([5, 2, 0, 0], 5, 2),
        ([5, 4, 0, 0], 5, 4),
        ([8, 4, 0, 0], 8, 4),
    ] {
        let expected = format!("TCP option of kind {kind} cannot have length {length} here");
        assert_eq!(refusal(parsed_options(&options)), expected);
    }
    for length in [6, 14] {
        let mut options = [0; 16];
        options[..2].copy_from_slice(&[5, length]);
        let expected = format!("TCP option of kind 5 cannot have length {length} here");
        assert_eq!(refusal(parsed_options(&options)), expected);
    }
    assert_eq!(refusal(parsed_options(&[1, 1, 1, 8])), "TCP options end inside an option of kind 8");
}

#[test]
fn a_data_offset_that_cannot_be_is_refused() {
    for words in [0, 4, 6, 15] {
        let mut segment = TcpHeader::default().encode(&[0; 3], SRC, DST);
        segment[12] = words << 4;
        let expected = format!("TCP header of {words} words is less than 5 or more than the 23 bytes there are");
        assert_eq!(refusal(TcpHeader::parse(&with_right_checksum(segment), SRC, DST)), expected);
    }
}

#[test]
fn a_segment_too_short_or_too_long_is_refused() {
    let refused = |bytes| refusal(TcpHeader::parse(&vec![0; bytes], SRC, DST));
    assert_eq!(refused(19), "a TCP header has 20 bytes, there are only 19");
    assert_eq!(refused(65_536), "a TCP segment has at most 65535 bytes, not 65536");
}

#[test]
#[should_panic(expected = "TCP options have room for 40 bytes, not 44")]
fn options_that_do_not_fit_are_not_cut_in_silence() {
    let header = TcpHeader { options: vec![TcpOption::NoOperation; 41], ..TcpHeader::default() };
    let _ = header.encode(&[], SRC, DST);
}

#[test]
#[should_panic(expected = "a SACK option has 1 to 4 blocks, not 0")]
fn a_sack_without_blocks_is_not_sent() {
    let header = TcpHeader { options: vec![TcpOption::Sack(vec![])], ..TcpHeader::default() };
    let _ = header.encode(&[], SRC, DST);
}

#[test]
#[should_panic(expected = "a TCP segment has at most 65535 bytes, not 65536")]
fn a_segment_beyond_the_length_field_is_not_cut_in_silence() {
    let _ = TcpHeader::default().encode(&vec![0; 65_516], SRC, DST);
}
