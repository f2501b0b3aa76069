//! Memory that the program around WebAssembly allows: nothing can be looked up there.

use std::sync::atomic::{AtomicU64, Ordering};

use celltrain_scenario::Machine;

use super::reservations;

/// `u64::MAX` until it is set.
static ALLOWED: AtomicU64 = AtomicU64::new(u64::MAX);

/// Sets the bytes that runs may have from now on.
pub fn allow(bytes: u64) {
    ALLOWED.store(bytes, Ordering::Relaxed);
    reservations().looked = None;
}

/// The memory that is allowed, of which three quarters are for a run.
pub(super) fn free() -> Machine {
    let allowed = ALLOWED.load(Ordering::Relaxed);
    Machine { memory: (allowed < u64::MAX).then_some(allowed) }
}

/// The memory of the instance, which never shrinks. It has pages of 64 KiB.
pub(super) fn used() -> Option<u64> {
    #[cfg(target_arch = "wasm32")]
    return Some(core::arch::wasm32::memory_size::<0>() as u64 * (1 << 16));
    #[cfg(not(target_arch = "wasm32"))]
    return None;
}
