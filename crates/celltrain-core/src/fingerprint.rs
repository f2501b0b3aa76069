//! The run's fingerprint: 64 bits that change if the time of any segment or acknowledgement changes.
//!
//! Each flow adds the events at its end systems in order of time. At the end, flows and ports are added by index. So
//! two engines have the same fingerprint if and only if every frame reached its end system at the same instant and
//! every counter is equal, regardless of the order of computation.

use std::fmt;

/// A 64-bit digest of a sequence of whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0x6365_6c6c_7472_6169)
    }
}

impl Fingerprint {
    /// Adds one number to the fingerprint. The order of calls matters.
    #[inline]
    pub fn fold(&mut self, value: u64) {
        let x = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = x ^ x.rotate_left(29);
    }

    /// Adds several numbers to the digest, in order.
    pub fn fold_all(&mut self, values: impl IntoIterator<Item = u64>) {
        for value in values {
            self.fold(value);
        }
    }

    /// Returns the digest.
    pub fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_of_a_run_depends_on_the_order_of_the_hashed_values() {
        let of = |values: [u64; 2]| {
            let mut print = Fingerprint::default();
            print.fold_all(values);
            print
        };
        assert_ne!(of([1, 2]), of([2, 1]));
        assert_eq!(of([1, 2]).to_string().len(), 16);
    }
}
