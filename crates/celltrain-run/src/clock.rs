//! Wall-clock time, for limits and measured durations.
//!
//! WebAssembly has no clock, so the host program provides one. Until the host program provides a clock, measured times
//! are zero.

#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
pub use std::time::Instant;

#[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
pub use provided::{Instant, provide};

// This module is also compiled for tests on platforms with a clock.
#[cfg(any(test, all(target_arch = "wasm32", target_os = "unknown")))]
#[cfg_attr(
    not(target_arch = "wasm32"),
    expect(unreachable_pub, reason = "only tests call this function on platforms with a clock")
)]
mod provided {
    use std::ops::Add;
    use std::sync::OnceLock;
    use std::time::Duration;

    static CLOCK: OnceLock<fn() -> Duration> = OnceLock::new();

    /// Sets the clock, a function that returns the time since any fixed instant. Only the first call has an effect.
    pub fn provide(clock: fn() -> Duration) {
        CLOCK.get_or_init(|| clock);
    }

    /// A replacement for [`std::time::Instant`] that supports only the operations that celltrain uses.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct Instant(Duration);

    impl Instant {
        /// Returns the current instant.
        pub fn now() -> Self {
            Self(CLOCK.get().map_or(Duration::ZERO, |clock| clock()))
        }

        /// Returns the time since this instant; zero if the clock was set back.
        pub fn elapsed(&self) -> Duration {
            Self::now().0.saturating_sub(self.0)
        }
    }

    impl Add<Duration> for Instant {
        type Output = Self;

        fn add(self, span: Duration) -> Self {
            Self(self.0.saturating_add(span))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::provided::{Instant, provide};

    static SECONDS: AtomicU64 = AtomicU64::new(0);

    #[test]
    fn elapsed_time_follows_the_clock_of_the_embedding_program_or_is_zero_without_a_clock() {
        let before = Instant::now();
        assert_eq!(before.elapsed(), Duration::ZERO);
        provide(|| Duration::from_secs(SECONDS.load(Ordering::Relaxed)));
        SECONDS.store(7, Ordering::Relaxed);
        let then = Instant::now();
        SECONDS.store(10, Ordering::Relaxed);
        assert_eq!(then.elapsed(), Duration::from_secs(3));
        assert_eq!((then + Duration::from_secs(1)).elapsed(), Duration::from_secs(2));
        SECONDS.store(0, Ordering::Relaxed);
        assert_eq!(then.elapsed(), Duration::ZERO, "the clock was set back");
    }
}
