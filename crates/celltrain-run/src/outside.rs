//! Errors in code supplied by users, such as policies written as Python classes. An error ends the run.
//!
//! A policy cannot return an error to an engine. Therefore the error is stored in a thread-local variable, and the run
//! ends when the engine next checks whether to continue.

use std::cell::RefCell;

thread_local! {
    /// First error of a user's code in the run on this thread.
    static FAILED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Records an error in the format of [`crate::Unfinished::Refused`]. If a run has several errors, only the first is
/// stored.
pub fn fail(problem: String) {
    FAILED.with_borrow_mut(|failed| {
        failed.get_or_insert(problem);
    });
}

/// Returns whether a policy has failed in the run on this thread.
pub(crate) fn has_failed() -> bool {
    FAILED.with_borrow(Option::is_some)
}

/// Returns the stored error of the run on this thread and clears it.
pub(crate) fn take() -> Option<String> {
    FAILED.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_in_user_code_is_kept_until_the_calling_thread_retrieves_it() {
        assert!(!has_failed());
        fail("first".into());
        fail("second".into());
        std::thread::spawn(|| assert!(!has_failed())).join().expect("the other thread has its own list");
        assert!(has_failed());
        assert_eq!(take().as_deref(), Some("first"));
        assert_eq!(take(), None);
    }
}
