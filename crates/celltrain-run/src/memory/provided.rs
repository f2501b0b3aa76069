//! Memory that the host program allows for runs, because WebAssembly code cannot find out how much memory is free.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Machine, readings};

/// Number of bytes that runs may use; `u64::MAX` until the host program sets a number.
static ALLOWED: AtomicU64 = AtomicU64::new(u64::MAX);

/// Sets the number of bytes that runs may use from now on.
pub fn allow(bytes: u64) {
    ALLOWED.store(bytes, Ordering::Relaxed);
    readings().looked = None;
}

/// Returns the allowed memory, of which runs may use three quarters.
pub(super) fn free() -> Machine {
    let allowed = ALLOWED.load(Ordering::Relaxed);
    Machine { memory: (allowed < u64::MAX).then_some(allowed) }
}

/// Returns the size of the WebAssembly instance's memory, which never shrinks. A page of this memory has 64 KiB.
pub(super) fn used() -> Option<u64> {
    #[cfg(target_arch = "wasm32")]
    return Some(core::arch::wasm32::memory_size::<0>() as u64 * (1 << 16));
    #[cfg(not(target_arch = "wasm32"))]
    return None;
}
