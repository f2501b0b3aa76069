//! What went wrong in a policy that somebody else answers for, such as a Python class: it ends the run.
//!
//! An engine asks policies for answers and not for errors. So what went wrong is kept for the thread that runs, and the
//! run stops at its next look.

use std::cell::RefCell;

thread_local! {
    /// Of the run of this thread.
    static FAILED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Notes what went wrong, as [`crate::Unfinished::Refused`] has it; the first of a run stays.
pub fn fail(problem: String) {
    FAILED.with_borrow_mut(|failed| {
        failed.get_or_insert(problem);
    });
}

/// Whether something went wrong in the run of this thread.
pub(crate) fn has_failed() -> bool {
    FAILED.with_borrow(Option::is_some)
}

/// What went wrong, which is forgotten with that.
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
