//! The rates that an RM cell can express (TM 4.0, `docs/mechanisms.md` 4.4).

/// A rate in the format of RM cells: nz 2^e (1 + m/512) cells per second, with one bit for nz, five for e and nine for
/// m. The default is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u16);

impl Rate {
    /// Returns the largest rate of the format that is at most `cells_per_second`. From 1 cell a second to 2^32 the
    /// difference is less than 1/512; a rate below 1 becomes zero. The rate is never rounded up, because a cell must
    /// not promise more than was granted.
    ///
    /// # Panics
    /// If the rate is negative or not a number.
    pub fn at_most(cells_per_second: f64) -> Self {
        assert!(cells_per_second >= 0.0, "a rate must be zero or more, not {cells_per_second}");
        if cells_per_second < 1.0 {
            return Self::default();
        }
        if cells_per_second >= TWO_TO_32 {
            return Self(RATE_NONZERO | RATE_MANTISSA | 31 << RATE_EXPONENT_SHIFT);
        }
        // The float's exponent, with a bias of 1023, and the first nine bits of its mantissa. The sign bit is zero.
        let bits = cells_per_second.to_bits();
        let exponent = u16::try_from((bits >> 52) - 1023).expect("the rate is below 2^32");
        let mantissa = u16::try_from(bits >> 43 & u64::from(RATE_MANTISSA)).expect("the mantissa has nine bits");
        Self(RATE_NONZERO | exponent << RATE_EXPONENT_SHIFT | mantissa)
    }

    /// Returns the rate in cells per second.
    pub fn cells_per_second(self) -> f64 {
        if self.0 & RATE_NONZERO == 0 {
            return 0.0;
        }
        let power = 1_u32 << (self.0 >> RATE_EXPONENT_SHIFT & 0b1_1111);
        f64::from(power) * (1.0 + f64::from(self.0 & RATE_MANTISSA) / 512.0)
    }

    /// Returns the rate that these bits encode. The highest bit is reserved and ignored.
    pub fn from_bits(bits: u16) -> Self {
        Self(bits & !RATE_RESERVED)
    }

    /// Returns the encoding of the rate. The highest bit is reserved and zero.
    pub fn bits(self) -> u16 {
        self.0
    }
}

const RATE_RESERVED: u16 = 1 << 15;
const RATE_NONZERO: u16 = 1 << 14;
const RATE_EXPONENT_SHIFT: u32 = 9;
const RATE_MANTISSA: u16 = 0x1ff;
const TWO_TO_32: f64 = 4_294_967_296.0;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::rng::proptest_seeded(0x0072_6d63))]

        #[test]
        fn encoding_in_the_rm_cell_format_lowers_a_rate_by_less_than_one_part_in_512(cells_per_second in 1.0..4_294_967_296.0) {
            let rounded = Rate::at_most(cells_per_second).cells_per_second();
            prop_assert!(rounded <= cells_per_second);
            prop_assert!(cells_per_second - rounded < cells_per_second / 512.0, "{rounded}");
            prop_assert_eq!(Rate::at_most(rounded).cells_per_second(), rounded, "rounding a rounded rate does not change it");
        }

        #[test]
        fn encoding_rates_in_the_rm_cell_format_preserves_their_order(low in 0.0..1e10, more in 0.0..1e10) {
            prop_assert!(Rate::at_most(low) <= Rate::at_most(low + more));
        }
    }

    #[test]
    fn a_rate_that_the_rm_cell_format_can_represent_exactly_is_not_rounded() {
        for bits in 1 << 14..1 << 15 {
            let rate = Rate::from_bits(bits);
            assert_eq!(Rate::at_most(rate.cells_per_second()), rate);
        }
    }

    #[test]
    fn rates_in_the_rm_cell_format_equal_values_calculated_by_hand() {
        // nz is in bit 14, e in bits 13 to 9 and m in bits 8 to 0. The rate 1 is 2^0, and 10 is 2^3 (1 + 128/512).
        // 365566 lies between 2^18 (1 + 201/512) = 365056 and 2^18 (1 + 202/512) = 365568. 149.76e6 / 424 = 353207.5 is
        // 2^18 (1 + 177.86/512).
        for (rate, bits, rounded) in [
            (0.0, 0x0000, 0.0),
            (0.99, 0x0000, 0.0),
            (1.0, 0x4000, 1.0),
            (1.001, 0x4000, 1.0),
            (10.0, 0x4000 + (3 << 9) + 128, 10.0),
            (365_566.0, 0x4000 + (18 << 9) + 201, 365_056.0),
            (149.76e6 / 424.0, 0x4000 + (18 << 9) + 177, 352_768.0),
            (4_290_772_992.0, 0x7fff, 4_290_772_992.0),
            (1e12, 0x7fff, 4_290_772_992.0),
            (f64::INFINITY, 0x7fff, 4_290_772_992.0),
        ] {
            assert_eq!((Rate::at_most(rate).bits(), Rate::at_most(rate).cells_per_second()), (bits, rounded), "{rate}");
        }
    }

    #[test]
    #[should_panic(expected = "a rate must be zero or more, not -1")]
    fn a_negative_rate_cannot_be_written_into_an_rm_cell() {
        Rate::at_most(-1.0);
    }
}
