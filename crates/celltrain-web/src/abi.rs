//! Functions that the WebAssembly module exports and imports, described in `docs/design/lab.md`, section "The
//! interface".
//!
//! For each call, a worker allocates a buffer, writes the request, makes the call, and reads the answer and its columns
//! from memory. No memory is shared between threads: a single thread handles one request at a time.

#![allow(unsafe_code, reason = "the attributes only name exports and imports and access no memory")]
#![allow(unreachable_pub, reason = "nothing in Rust calls these exported functions")]

use std::cell::RefCell;
use std::panic;
use std::time::Duration;

use celltrain_run::clock;

use crate::answer::{Answer, Column};
use crate::calls;

#[link(wasm_import_module = "celltrain")]
unsafe extern "C" {
    /// Returns the time in milliseconds since any fixed instant.
    safe fn now() -> f64;
    /// Reports the completed fraction of a run, 0 to 1.
    safe fn progress(done: f64);
    /// Reports the message of a panic. Afterwards, the WebAssembly instance cannot be used.
    safe fn panicked(text: *const u8, length: usize);
}

thread_local! {
    static REQUEST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<Answer> = RefCell::default();
}

/// Prepares the WebAssembly instance. This function must be called once, before any other function.
#[unsafe(no_mangle)]
pub extern "C" fn celltrain_start() {
    clock::provide(|| Duration::from_secs_f64(now().max(0.0) / 1000.0));
    panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        panicked(text.as_ptr(), text.len());
    }));
}

/// Allocates a buffer for a request of `length` bytes of UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn celltrain_request(length: usize) -> *mut u8 {
    REQUEST.with_borrow_mut(|request| {
        request.clear();
        request.resize(length, 0);
        request.as_mut_ptr()
    })
}

/// Processes the request in the buffer. Returns the number of columns in the answer.
#[unsafe(no_mangle)]
pub extern "C" fn celltrain_call() -> usize {
    ANSWER.take();
    let answer = calls::answer(&REQUEST.take(), |done| progress(done));
    let columns = answer.columns.len();
    ANSWER.set(answer);
    columns
}

/// Returns the address of the JSON text of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn celltrain_answer() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.text.as_ptr())
}

/// Returns the length in bytes of the JSON text of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn celltrain_answer_length() -> usize {
    ANSWER.with_borrow(|answer| answer.text.len())
}

/// Returns the type of a column's numbers: 0 for f64, 1 for i32, 2 for i8.
#[unsafe(no_mangle)]
pub extern "C" fn celltrain_column_type(column: usize) -> usize {
    parts(column).0
}

/// Returns the address of a column's numbers.
#[unsafe(no_mangle)]
pub extern "C" fn celltrain_column(column: usize) -> *const u8 {
    parts(column).1
}

/// Returns the number of values in a column.
#[unsafe(no_mangle)]
pub extern "C" fn celltrain_column_length(column: usize) -> usize {
    parts(column).2
}

/// Returns the type of a column's values, the address of the values and the number of values.
fn parts(column: usize) -> (usize, *const u8, usize) {
    ANSWER.with_borrow(|answer| match &answer.columns[column] {
        Column::Numbers(values) => (0, values.as_ptr().cast(), values.len()),
        Column::Places(values) => (1, values.as_ptr().cast(), values.len()),
        Column::Small(values) => (2, values.as_ptr().cast(), values.len()),
    })
}

/// Frees the memory of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn celltrain_forget() {
    ANSWER.take();
}
