//! Lateness of packets: the time from a packet's arrival in the simulation to its delivery to the kernel.

use std::time::Duration;

/// Number of buckets for each power of two. It makes percentiles exact to 1/32.
const SUB_BUCKETS: u32 = 32;

/// A histogram of the lateness of packets.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    buckets: Vec<u64>,
    /// Number of packets.
    pub packets: u64,
    /// The largest lateness of any packet.
    pub max: Duration,
}

impl Lateness {
    /// Adds a packet.
    pub(crate) fn add(&mut self, lateness: Duration) {
        let bucket = bucket(u64::try_from(lateness.as_nanos()).unwrap_or(u64::MAX));
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.packets += 1;
        self.max = self.max.max(lateness);
    }

    /// Returns the lateness that a fraction `share` of all packets does not exceed, up to 3 % too large; `None` without
    /// packets.
    pub fn percentile(&self, share: f64) -> Option<Duration> {
        let wanted = (share * self.packets as f64).ceil().max(1.0);
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|&count| {
            seen += count;
            seen as f64 >= wanted
        })?;
        Some(Duration::from_nanos(end(bucket)).min(self.max))
    }
}

/// Returns the bucket of a number. The number's power of two and the next bits determine it.
fn bucket(ns: u64) -> usize {
    let bits = SUB_BUCKETS.ilog2();
    let power = ns.max(1).ilog2().max(bits) - bits;
    usize::try_from(u64::from(power * SUB_BUCKETS) + (ns >> power))
        .expect("the index of a bucket fits in the address space")
}

/// Returns the largest number in a bucket.
fn end(bucket: usize) -> u64 {
    let (bucket, size) = (bucket as u64, u64::from(SUB_BUCKETS));
    let power = (bucket / size).saturating_sub(1);
    let low = bucket - power * size;
    (low << power) + ((1 << power) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_histogram_buckets_are_at_most_a_thirty_second_of_their_value_wide() {
        for ns in (0..5000).chain([1_000_000, 123_456_789, u64::from(u32::MAX), 1 << 40]) {
            let end = end(bucket(ns));
            assert!((ns..=ns + ns / 32).contains(&end), "{ns} {end}");
            assert_eq!(bucket(end + 1), bucket(ns) + 1);
        }
    }

    #[test]
    fn lateness_percentiles_are_computed_over_packets() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.percentile(0.5), None);
        (1..=1000).for_each(|ns| lateness.add(Duration::from_nanos(ns)));
        for (share, least) in [(0.0, 1), (0.5, 500), (0.99, 990), (0.999, 999), (1.0, 1000)] {
            let ns = lateness.percentile(share).unwrap().as_nanos();
            assert!((least..=least + least / 32).contains(&ns) && ns <= 1000, "{share} {ns}");
        }
        assert_eq!((lateness.packets, lateness.max), (1000, Duration::from_micros(1)));
    }
}
