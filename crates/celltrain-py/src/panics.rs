//! A panic of one run as that run's error.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// The panic that this thread catches, in words; None outside.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What the work gives, or the panic it ended with: its words and its place.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    PANIC.set(Some(String::new()));
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    let text = PANIC.take().unwrap_or_default();
    done.map_err(|_| text)
}

/// What a panic says.
fn words_of(payload: &dyn Any) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}

/// A panic that is caught is told with its run; all others as before.
pub(crate) fn quiet_while_caught() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let caught = PANIC.with_borrow_mut(|text| {
                let told = text.is_some();
                *text = text.take().map(|_| {
                    let words = words_of(info.payload());
                    let place = info.location().map(|place| format!(" ({}:{})", place.file(), place.line()));
                    format!("{words}{}", place.unwrap_or_default())
                });
                told
            });
            if !caught {
                before(info);
            }
        }));
    });
}
