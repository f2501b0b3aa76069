//! Records that wrappers of policies collect for [certificates](crate::certificate).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Memory that the records of a run may take, in bytes.
const MOST_BYTES: usize = 64 << 20;

/// A map of records. Clones share its content.
#[derive(Debug)]
pub(crate) struct Records<K, R>(Arc<Mutex<BTreeMap<K, R>>>);

impl<K, R> Clone for Records<K, R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K, R> Default for Records<K, R> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Ord, R> Records<K, R> {
    pub(crate) fn locked(&self) -> MutexGuard<'_, BTreeMap<K, R>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory used by all records of a run. Clones share this counter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget(Arc<AtomicUsize>);

impl Budget {
    /// Reserves memory for a record. Returns whether the run's records may still grow.
    pub(crate) fn may_grow(&self, bytes: usize) -> bool {
        self.0.fetch_add(bytes, Ordering::Relaxed) <= MOST_BYTES.saturating_sub(bytes)
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.0.load(Ordering::Relaxed) > MOST_BYTES
    }
}
