//! Sequence numbers of TCP headers: offsets in the stream, modulo 2^32.
//!
//! Source: RFC 9293 (3.4). The simulation counts bytes in 64 bits, whereas a header has 32 bits, which wrap around
//! every 4 GiB.

/// Returns the sequence number of a byte in a stream whose first byte has number `initial`.
pub fn number(offset: u64, initial: u32) -> u32 {
    // The truncation to the low half is intended.
    #[allow(clippy::cast_possible_truncation)]
    let low = offset as u32;
    initial.wrapping_add(low)
}

/// Converts a sequence number to the offset closest to `near`, an offset known to be within 2^31 of it: `snd_una` for
/// an acknowledgement, `rcv_nxt` for a segment. RFC 7323 (2.3): windows stay below 2^30, so the result is unique.
pub fn offset(number: u32, near: u64, initial: u32) -> u64 {
    let ahead = number.wrapping_sub(self::number(near, initial)).cast_signed();
    near.checked_add_signed(i64::from(ahead)).expect("a sequence number belongs to a byte of the stream")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WRAP: u64 = 1 << 32;

    #[test]
    fn the_sequence_number_after_the_largest_one_is_zero() {
        assert_eq!(number(WRAP - 1, 0), u32::MAX);
        assert_eq!(number(WRAP, 0), 0);
        assert_eq!(number(0, u32::MAX), u32::MAX);
        assert_eq!(number(1, u32::MAX), 0);
    }

    #[test]
    fn sequence_number_comparison_is_correct_across_the_wraparound() {
        assert_eq!(offset(5, WRAP - 10, 0), WRAP + 5);
        assert_eq!(offset(u32::MAX, WRAP + 10, 0), WRAP - 1);
        assert_eq!(offset(0, 0, 0), 0);
    }

    proptest! {
        #![proptest_config(crate::rng::proptest_seeded(7))]

        #[test]
        fn every_stream_offset_can_be_computed_from_its_sequence_number(
            near in 0u64..8 << 32,
            distance in -(1i64 << 31)..1 << 31,
            initial in any::<u32>(),
        ) {
            if let Some(there) = near.checked_add_signed(distance) {
                prop_assert_eq!(offset(number(there, initial), near, initial), there);
            }
        }
    }
}
