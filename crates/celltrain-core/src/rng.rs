//! Random numbers from named streams, which are the same on every machine.
//!
//! Source: the generator is xoshiro256** 1.0 and the seeding `SplitMix64` (Blackman and Vigna, 2018); the name is
//! hashed by 64-bit FNV-1a. No generator is shared, so drawing numbers in one component never affects another.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use std::cell::Cell;

use crate::units::Span;

/// A stream of random numbers that depends only on the run's seed and the stream's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    state: [u64; 4],
    /// First word of the state before any draw.
    first: u64,
}

thread_local! {
    /// True if a stream of this thread that has been dropped had drawn a number.
    static DREW: Cell<bool> = const { Cell::new(false) };
}

/// Streams report draws when they are dropped, because a test at each draw would cost more.
impl Drop for Stream {
    fn drop(&mut self) {
        if self.mark() != self.first {
            DREW.set(true);
        }
    }
}

/// Returns the result of `run`, and whether it drew random numbers. All its streams must be of this thread, and be dropped
/// when it returns.
pub(crate) fn draws_in<T>(run: impl FnOnce() -> T) -> (T, bool) {
    let before = DREW.replace(false);
    let result = run();
    let drew = DREW.get();
    DREW.set(before || drew);
    (result, drew)
}

impl Stream {
    /// Creates the stream with this name, for example `"port/bottleneck/ties"`, in a run with this seed.
    pub fn new(seed: u64, name: &str) -> Self {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let mut x = hash ^ split_mix(seed);
        let state = [(); 4].map(|()| {
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
            split_mix(x)
        });
        Self { first: state[0], state }
    }

    /// Returns a word that changes at each draw. A draw that does not change it is as likely as a defect of the machine.
    pub(crate) fn mark(&self) -> u64 {
        self.state[0]
    }

    /// Returns the next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Returns a uniformly distributed integer below `bound` (Lemire's multiplication with rejection).
    #[inline]
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "a product of two 32-bit numbers fits in 64 bits, and the bound is positive"
    )]
    pub fn below(&mut self, bound: u32) -> u32 {
        assert!(bound > 0, "the bound of a random draw is positive");
        let draw = |stream: &mut Self| (stream.next_u64() >> 32) * u64::from(bound);
        let low = |product: u64| product & u64::from(u32::MAX);
        let mut product = draw(self);
        if low(product) < u64::from(bound) {
            // A rejection is possible only if the low half is below the bound, so only this case needs the division.
            let threshold = u64::from(bound.wrapping_neg() % bound);
            while low(product) < threshold {
                product = draw(self);
            }
        }
        u32::try_from(product >> 32).expect("half of a product of two 32-bit numbers fits in 63 bits")
    }

    /// Returns a number in [0, 1) with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws a length of time from the exponential distribution with this mean, by von Neumann's comparison of uniform
    /// numbers (1951). This needs no logarithm, so the result is the same on every machine. The result is at most 2^62
    /// units, which is also the limit of scenario checks for all other times. With a mean of a sixteenth of the limit,
    /// one draw in ten million exceeds it.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "a product of 64-bit numbers fits in 128 bits, and loops have a few dozen rounds"
    )]
    pub fn exponential(&mut self, mean: Span) -> Span {
        let mut rejected = 0u128;
        loop {
            let first = self.next_u64();
            let (mut last, mut run) = (first, 1u32);
            loop {
                let next = self.next_u64();
                run += 1;
                if next > last {
                    break;
                }
                last = next;
            }
            // If a descending run x, y, ... ends at its n-th number, n is even with probability e^-x.
            if run % 2 == 0 {
                let means = (rejected << 64) + u128::from(first);
                let mean = u128::from(mean.0);
                let units = (means >> 64) * mean + (((means & u128::from(u64::MAX)) * mean) >> 64);
                return Span(u64::try_from(units).unwrap_or(LONGEST).min(LONGEST));
            }
            rejected += 1;
        }
    }

    /// Draws from the normal distribution with mean 0 and standard deviation 1, by the transformation of Box and Muller
    /// (1958). Its logarithm comes from [`Stream::exponential`] and its angle from a point in the unit disc, so the result
    /// is the same on every machine.
    pub fn normal(&mut self) -> f64 {
        const UNITS: Span = Span(1 << 53);
        let (x, square) = loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                break (x, square);
            }
        };
        let exponential = self.exponential(UNITS).0 as f64 / UNITS.0 as f64;
        x * (2.0 * exponential / square).sqrt()
    }

    /// Shuffles the items uniformly at random (Fisher and Yates).
    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: this is an index of a list in memory")]
    #[inline]
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let bound = u32::try_from(last + 1).expect("fewer than 2^32 items are shuffled");
            items.swap(last, self.below(bound) as usize);
        }
    }
}

/// A duration far longer than any run.
const LONGEST: u64 = 1 << 62;

/// Returns 64 pseudorandom bits that depend only on a key and a number.
pub(crate) fn hash(key: u64, number: u64) -> u64 {
    split_mix(key ^ split_mix(number.wrapping_add(0x9e37_79b9_7f4a_7c15)))
}

fn split_mix(x: u64) -> u64 {
    let z = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns whether the nightly job runs the tests, with more cases and longer runs than for each push.
#[cfg(test)]
pub(crate) fn is_nightly() -> bool {
    std::env::var_os("CELLTRAIN_NIGHTLY").is_some()
}

/// Returns a property-test configuration with a fixed seed, so that tests behave the same everywhere.
#[cfg(test)]
pub(crate) fn proptest_seeded(seed: u64) -> proptest::test_runner::Config {
    proptest::test_runner::Config {
        rng_seed: proptest::test_runner::RngSeed::Fixed(seed),
        failure_persistence: None,
        // The nightly job sets `PROPTEST_CASES` to draw more cases.
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(32),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawing_a_random_number_from_a_copy_of_a_stream_is_detected() {
        let draw = |draws: bool| {
            move || {
                let mut stream = Stream::new(1, "port/bottleneck/ties").clone();
                draws.then(|| stream.below(2)).is_some()
            }
        };
        assert_eq!(
            [draws_in(draw(true)), draws_in(draw(false)), draws_in(draw(true))],
            [(true, true), (false, false), (true, true)]
        );
        assert!(!draws_in(|| draws_in(|| ()).1).0 && draws_in(|| draws_in(draw(true))).1);
    }

    #[test]
    fn a_random_stream_is_the_same_in_every_version_of_the_program() {
        let mut stream = Stream::new(1, "port/bottleneck/ties");
        let drawn: Vec<u64> = (0..3).map(|_| stream.next_u64()).collect();
        assert_eq!(drawn, PINNED);
    }

    #[test]
    fn the_random_generator_is_xoshiro256_starstar() {
        // The first outputs of Blackman and Vigna's generator from the state 1, 2, 3, 4.
        let mut stream = Stream { state: [1, 2, 3, 4], first: 1 };
        let known = [
            11_520, 0, 1_509_978_240, 1_215_971_899_390_074_240, 1_216_172_134_540_287_360, 607_988_272_756_665_600,
            16_172_922_978_634_559_625, 8_476_171_486_693_032_832, 10_595_114_339_597_558_777,
            2_904_607_092_377_533_576,
        ];
        assert_eq!(known.map(|_| stream.next_u64()), known);
    }

    #[test]
    fn random_streams_with_different_names_or_seeds_differ() {
        let first = |seed, name| Stream::new(seed, name).next_u64();
        assert_ne!(first(1, "a"), first(1, "b"));
        assert_ne!(first(1, "a"), first(2, "a"));
    }

    #[test]
    fn shuffling_three_items_produces_each_order_equally_often() {
        let mut stream = Stream::new(7, "shuffle");
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..60_000 {
            let mut items = [0, 1, 2];
            stream.shuffle(&mut items);
            *counts.entry(items).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        // Each of the six orders is drawn about 10,000 times, with a standard deviation of 91. The test allows five
        // standard deviations, 456.
        assert!(counts.values().all(|&n: &i32| (n - 10_000).abs() < 456), "{counts:?}");
    }

    #[test]
    fn exponential_random_times_have_the_correct_mean_standard_deviation_and_tail() {
        let mut stream = Stream::new(9, "exponential");
        let draws: Vec<f64> = (0..100_000).map(|_| stream.exponential(Span(1_000_000)).0 as f64 / 1e6).collect();
        let mean = draws.iter().sum::<f64>() / 1e5;
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 1e5;
        // The standard errors are 0.0032 for the mean and 0.009 for the variance.
        assert!((mean - 1.0).abs() < 0.013, "{mean}");
        assert!((variance - 1.0).abs() < 0.036, "{variance}");
        // A fraction of e^-2 = 0.1353 is expected above 2, with a standard error of 0.0011.
        let beyond = draws.iter().filter(|&&x| x > 2.0).count() as f64 / 1e5;
        assert!((beyond - 0.1353).abs() < 0.0045, "{beyond}");
    }

    #[test]
    fn exponential_random_times_never_exceed_the_maximum_time() {
        // With a mean of 2^61 units, one draw in seven exceeds 2^62, and three in ten thousand do not fit in 64 bits.
        // Regression: such draws caused a panic.
        let mut stream = Stream::new(11, "exponential");
        let draws: Vec<Span> = (0..100_000).map(|_| stream.exponential(Span(1 << 61))).collect();
        let cut = draws.iter().filter(|&&draw| draw == Span(LONGEST)).count();
        // About e^-2 of the draws are cut to the limit, with a standard error of 108.
        assert!((cut as f64 - 13_534.0).abs() < 500.0, "{cut}");
        assert_eq!(draws.iter().max(), Some(&Span(LONGEST)));
    }

    /// Recorded random numbers. If the numbers change, the results of every run change.
    const PINNED: [u64; 3] = [11_279_107_376_953_867_294, 4_143_580_889_016_707_893, 6_105_796_715_261_145_753];
}
