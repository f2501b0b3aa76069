//! The rates that fit an RM cell (TM 4.0, `docs/mechanisms.md` 4.4).

/// A rate in the format of RM cells: nz 2^e (1 + m/512) cells per second, in one bit nz, five of e and nine of m. The
/// default is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u16);

impl Rate {
    /// Returns the greatest rate of the format that is at most `cells_per_second`. It is less than 1/512 below, from 1
    /// cell a second to 2^32. A rate below 1 is zero. Rounding up would let a cell promise a rate that was never
    /// granted.
    ///
    /// # Panics
    /// If the rate is negative or not a number.
    pub fn at_most(cells_per_second: f64) -> Self {
        assert!(cells_per_second >= 0.0, "a rate is zero or more, not {cells_per_second}");
        if cells_per_second < 1.0 {
            return Self::default();
        }
        if cells_per_second >= TWO_TO_32 {
            return Self(RATE_NONZERO | RATE_MANTISSA | 31 << RATE_EXPONENT_SHIFT);
        }
        // The float's own exponent, whose bias is 1023, and the first nine bits of its mantissa; the sign is zero.
        let bits = cells_per_second.to_bits();
        let exponent = u16::try_from((bits >> 52) - 1023).expect("the rate is below 2^32");
        let mantissa = u16::try_from(bits >> 43 & u64::from(RATE_MANTISSA)).expect("nine bits");
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

    /// Returns the rate of these bits; the highest is reserved and ignored.
    pub fn from_bits(bits: u16) -> Self {
        Self(bits & !RATE_RESERVED)
    }

    /// Returns its bits, of which the highest is reserved and zero.
    pub fn bits(self) -> u16 {
        self.0
    }
}

const RATE_RESERVED: u16 = 1 << 15;
const RATE_NONZERO: u16 = 1 << 14;
const RATE_EXPONENT_SHIFT: u32 = 9;
const RATE_MANTISSA: u16 = 0x1ff;
const TWO_TO_32: f64 = 4_294_967_296.0;
