//! The memory that the program around WebAssembly allows it: nothing can be looked up there.

use std::sync::atomic::{AtomicU64, Ordering};

use super::book;
use crate::Machine;

/// Nothing is known until it is said.
static ALLOWED: AtomicU64 = AtomicU64::new(u64::MAX);

/// Allows so many bytes for runs from now on.
pub fn allow(bytes: u64) {
    ALLOWED.store(bytes, Ordering::Relaxed);
    book().looked = None;
}

/// What is allowed, of which three quarters are for a run.
pub(super) fn free() -> Machine {
    let allowed = ALLOWED.load(Ordering::Relaxed);
    Machine { memory: (allowed < u64::MAX).then_some(allowed), addresses: None }
}
