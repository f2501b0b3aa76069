//! Turns a panic in one run of a batch into an error of this run.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Message of a panic caught on this thread. While [`caught`] is not active on this thread, the value is `None`.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Returns the result of `work`. If `work` panics, returns the message and location of the panic instead of printing
/// them. All other panics are printed as usual.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    print_no_caught_panic();
    PANIC.set(Some(String::new()));
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    let text = PANIC.take().unwrap_or_default();
    done.map_err(|_| text)
}

/// Returns the message of a panic.
fn words_of(payload: &dyn Any) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

fn print_no_caught_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let caught = PANIC.with_borrow_mut(|text| {
                let is_caught = text.is_some();
                *text = text.take().map(|_| {
                    let words = words_of(info.payload());
                    let place = info.location().map(|place| format!(" ({}:{})", place.file(), place.line()));
                    format!("{words}{}", place.unwrap_or_default())
                });
                is_caught
            });
            if !caught {
                before(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_a_run_becomes_an_error_with_its_message_and_location() {
        let seed = 4;
        let error = caught::<()>(|| panic!("seed {seed} fails")).unwrap_err();
        assert!(error.starts_with("seed 4 fails ("), "{error}");
        assert!(error.contains("panics.rs:"), "{error}");
        assert!(caught::<()>(|| panic::panic_any(3)).unwrap_err().starts_with("without a message ("));
        assert_eq!(caught(|| 5), Ok(5));
    }

    #[test]
    fn a_panic_outside_a_run_ends_its_thread_as_usual() {
        let thread = std::thread::spawn(|| assert_eq!(caught(|| 1), Ok(2), "the closure that may panic has ended"));
        assert!(thread.join().is_err());
    }
}
