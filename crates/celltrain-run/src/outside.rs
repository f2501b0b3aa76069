//! Errors of user-supplied policies, such as Python classes: they abort the run.
//!
//! Policies cannot return errors to an engine. Therefore the error is stored for the thread that runs, and the run
//! stops at its next check.

use std::cell::RefCell;

thread_local! {
    /// Error of this thread's run.
    static FAILED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Records an error, as [`crate::Unfinished::Refused`] has it; the first of a run stays.
pub fn fail(problem: String) {
    FAILED.with_borrow_mut(|failed| {
        failed.get_or_insert(problem);
    });
}

/// Returns whether a policy failed in the run of this thread.
pub(crate) fn has_failed() -> bool {
    FAILED.with_borrow(Option::is_some)
}

/// Returns the error and clears it.
pub(crate) fn take() -> Option<String> {
    FAILED.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_thing_that_went_wrong_is_kept_until_it_is_taken_by_its_thread() {
        assert!(!has_failed());
        fail("first".into());
        fail("second".into());
        std::thread::spawn(|| assert!(!has_failed())).join().expect("another thread has its own");
        assert!(has_failed());
        assert_eq!(take().as_deref(), Some("first"));
        assert_eq!(take(), None);
    }
}
