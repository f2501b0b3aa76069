//! Arithmetic without infinities. Every operation on finite numbers gives a finite number, equal on every machine.
//!
//! Sum, difference, product, quotient and square root are the correctly rounded operations of IEEE 754. A result that
//! is not finite is replaced and counted. Overflow gives the largest number with the sign of the result. Division by
//! zero gives the largest number with the dividend's sign, or 0 for 0 / 0. The root of a negative number is 0.
//! Exponential and logarithm are series implemented here, because system libraries differ in the last bits.

/// Number of replaced results.
pub type Replaced = u64;

/// Returns the result if it is finite, otherwise its replacement.
#[inline]
fn settled(result: f64, replaced: &mut Replaced) -> f64 {
    if result.is_finite() { result } else { replacement(result, replaced) }
}

#[cold]
#[inline(never)]
fn replacement(result: f64, replaced: &mut Replaced) -> f64 {
    *replaced = replaced.saturating_add(1);
    if result.is_nan() { 0.0 } else { f64::MAX.copysign(result) }
}

/// An operation on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfTwo {
    /// a + b.
    Sum,
    /// a - b.
    Difference,
    /// a b.
    Product,
    /// a / b.
    Quotient,
    /// The smaller number.
    Least,
    /// The larger number.
    Greatest,
}

impl OfTwo {
    /// Returns the result of the operation.
    #[inline]
    pub fn of(self, a: f64, b: f64, replaced: &mut Replaced) -> f64 {
        match self {
            Self::Sum => settled(a + b, replaced),
            Self::Difference => settled(a - b, replaced),
            Self::Product => settled(a * b, replaced),
            // The sign of zero must not affect results.
            Self::Quotient => settled(a / if b == 0.0 { 0.0 } else { b }, replaced),
            Self::Least => {
                if b < a {
                    b
                } else {
                    a
                }
            }
            Self::Greatest => {
                if b > a {
                    b
                } else {
                    a
                }
            }
        }
    }
}

/// An operation on one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfOne {
    /// -a.
    Negative,
    /// The absolute value.
    Absolute,
    /// The largest whole number that does not exceed a.
    Floor,
    /// The square root.
    Root,
    /// The exponential.
    Exponential,
    /// The natural logarithm.
    Logarithm,
}

impl OfOne {
    /// Returns the result of the operation.
    #[inline]
    pub fn of(self, a: f64, replaced: &mut Replaced) -> f64 {
        match self {
            Self::Negative => -a,
            Self::Absolute => a.abs(),
            Self::Floor => a.floor(),
            Self::Root => settled(a.sqrt(), replaced),
            Self::Exponential => exponential(a, replaced),
            Self::Logarithm => logarithm(a, replaced),
        }
    }
}

/// ln 2 in two parts. The first has so few bits that its product with an exponent is exact.
const LN_2: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];

/// Returns e^a: a = n ln 2 + r with |r| <= ln 2 / 2. e^r is computed by Taylor's series.
pub fn exponential(a: f64, replaced: &mut Replaced) -> f64 {
    if a > 709.79 {
        return replacement(f64::INFINITY, replaced);
    }
    if a < -745.2 {
        return 0.0;
    }
    let n = (a / (LN_2[0] + LN_2[1])).round();
    let r = (a - n * LN_2[0]) - n * LN_2[1];
    // The last term of the series is below 2^-60 of the sum.
    let series = (1..=TERMS_OF_EXP).rev().fold(1.0, |sum, i| 1.0 + r * sum / f64::from(i));
    // Multiply in two steps, because 2^1024 overflows and 2^-1074 is subnormal.
    #[expect(clippy::cast_possible_truncation, reason = "the exponent is between -1076 and 1076")]
    let n = n as i32;
    let half = n / 2;
    settled(series * power_of_two(half) * power_of_two(n - half), replaced)
}

const TERMS_OF_EXP: u32 = 17;

/// Returns 2^n for an exponent n of a normal number.
fn power_of_two(n: i32) -> f64 {
    f64::from_bits(u64::try_from(n + 1023).expect("the exponent of a normal number is in range") << 52)
}

/// Returns the natural logarithm of a: a = m 2^n with m between sqrt(1/2) and sqrt(2). ln m is computed by artanh's
/// series.
pub fn logarithm(a: f64, replaced: &mut Replaced) -> f64 {
    if a <= 0.0 {
        return replacement(f64::NEG_INFINITY, replaced);
    }
    // A subnormal number must be scaled before its exponent can be read.
    let (a, below) = if a < f64::MIN_POSITIVE { (a * power_of_two(54), 54) } else { (a, 0) };
    let bits = a.to_bits();
    let mut n = i32::try_from(bits >> 52).expect("the exponent has 11 bits") - 1023 - below;
    let mut m = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if m > std::f64::consts::SQRT_2 {
        m /= 2.0;
        n += 1;
    }
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    // s <= 0.172, so the last term of the series is below 2^-60 of the sum.
    let series = (0..TERMS_OF_LOG).rev().fold(0.0, |sum, i| sum * square + 1.0 / f64::from(2 * i + 1));
    let n = f64::from(n);
    n * LN_2[0] + (2.0 * s * series + n * LN_2[1])
}

const TERMS_OF_LOG: u32 = 13;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinite_and_nan_formula_results_are_replaced_and_counted() {
        let mut n = 0;
        for (operation, a, b, expected) in [
            (OfTwo::Quotient, 3.0, 0.0, f64::MAX),
            (OfTwo::Quotient, 3.0, -0.0, f64::MAX),
            (OfTwo::Quotient, -3.0, 0.0, -f64::MAX),
            (OfTwo::Quotient, 0.0, 0.0, 0.0),
            (OfTwo::Product, 1e200, -1e200, -f64::MAX),
            (OfTwo::Sum, f64::MAX, f64::MAX, f64::MAX),
            (OfTwo::Difference, -f64::MAX, f64::MAX, -f64::MAX),
        ] {
            assert_eq!(operation.of(a, b, &mut n), expected, "{operation:?}");
        }
        assert_eq!(OfOne::Root.of(-1.0, &mut n), 0.0);
        assert_eq!(logarithm(0.0, &mut n), -f64::MAX);
        assert_eq!(logarithm(-2.0, &mut n), -f64::MAX);
        assert_eq!(exponential(1000.0, &mut n), f64::MAX);
        assert_eq!(n, 11);
        assert_eq!(OfTwo::Quotient.of(3.0, 2.0, &mut n), 1.5);
        assert_eq!(n, 11, "finite results are not counted as replaced");
    }

    #[test]
    fn the_formula_functions_exp_and_log_are_accurate_to_15_digits() {
        let mut n = 0;
        for i in -7000..7000 {
            let a = f64::from(i) * 0.101;
            let (ours, theirs) = (exponential(a, &mut n), a.exp());
            assert!((ours / theirs - 1.0).abs() < 1e-15, "e^{a}: {ours} and {theirs}");
            let (ours, theirs) = (logarithm(theirs, &mut n), theirs.ln());
            assert!((ours - theirs).abs() <= 1e-15 * theirs.abs().max(0.1), "ln e^{a}: {ours} and {theirs}");
        }
        for a in [f64::MIN_POSITIVE, f64::MAX, 5e-324, 1.0, 0.999_999_999, 1.000_000_001, 1.5, 1.4] {
            let (ours, theirs) = (logarithm(a, &mut n), a.ln());
            assert!((ours - theirs).abs() <= 1e-15 * theirs.abs(), "ln {a}: {ours} and {theirs}");
        }
        assert_eq!([exponential(0.0, &mut n), exponential(-800.0, &mut n)], [1.0, 0.0]);
        assert_eq!(n, 0);
    }

    #[test]
    fn formula_functions_return_bit_identical_results_on_every_machine() {
        // Reference values. A change would affect all runs that use these functions.
        let bits =
            [exponential(1.0, &mut 0), exponential(-0.3, &mut 0), logarithm(10.0, &mut 0), logarithm(0.7, &mut 0)];
        let [e, less, ln_10, below_0] = bits;
        assert_eq!([less, below_0], [0.740_818_220_681_717_9, -0.356_674_943_938_732_4]);
        assert_eq!([e.to_bits(), ln_10.to_bits()], [0x4005_bf0a_8b14_576a, 0x4002_6bb1_bbb5_5516]);
    }
}
