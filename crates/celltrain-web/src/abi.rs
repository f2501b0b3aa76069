//! What WebAssembly exports and imports: `docs/design/lab.md`, The interface.
//!
//! A worker asks for room, writes a request into it, calls, and reads the answer and its columns out of memory before it
//! calls again. Nothing is shared: there is one thread, and one request at a time.

#![allow(unsafe_code, reason = "names of exports and imports; no memory is touched here by address")]
#![allow(unreachable_pub, reason = "exports, which nothing in Rust calls")]

use std::cell::RefCell;
use std::panic;
use std::time::Duration;

use celltrain_run::clock;

use crate::answer::{Answer, Column};
use crate::calls;

#[link(wasm_import_module = "celltrain")]
unsafe extern "C" {
    /// Milliseconds since any instant that stays the same.
    safe fn now() -> f64;
    /// So much of a run is done, 0 to 1.
    safe fn progress(done: f64);
    /// The words of a panic, which is the end of this instance.
    safe fn panicked(text: *const u8, length: usize);
}

thread_local! {
    static REQUEST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<Answer> = RefCell::default();
}

/// To be called once, before all else.
#[unsafe(no_mangle)]
pub extern "C" fn celltrain_start() {
    clock::provide(|| Duration::from_secs_f64(now().max(0.0) / 1000.0));
    panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        panicked(text.as_ptr(), text.len());
    }));
}

/// Room for a request of so many bytes of UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn celltrain_request(length: usize) -> *mut u8 {
    REQUEST.with_borrow_mut(|request| {
        request.clear();
        request.resize(length, 0);
        request.as_mut_ptr()
    })
}

/// Answers the request; how many columns the answer has.
#[unsafe(no_mangle)]
pub extern "C" fn celltrain_call() -> usize {
    ANSWER.take();
    let answer = calls::answer(&REQUEST.take(), |done| progress(done));
    let columns = answer.columns.len();
    ANSWER.set(answer);
    columns
}

/// Where the answer's JSON is.
#[unsafe(no_mangle)]
pub extern "C" fn celltrain_answer() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.text.as_ptr())
}

/// Its bytes.
#[unsafe(no_mangle)]
pub extern "C" fn celltrain_answer_length() -> usize {
    ANSWER.with_borrow(|answer| answer.text.len())
}

/// The type of a column's numbers: 0 for f64, 1 for i32, 2 for i8.
#[unsafe(no_mangle)]
pub extern "C" fn celltrain_column_type(column: usize) -> usize {
    ANSWER.with_borrow(|answer| match answer.columns[column] {
        Column::Numbers(_) => 0,
        Column::Places(_) => 1,
        Column::Small(_) => 2,
    })
}

/// Where a column's numbers are.
#[unsafe(no_mangle)]
pub extern "C" fn celltrain_column(column: usize) -> *const u8 {
    ANSWER.with_borrow(|answer| match &answer.columns[column] {
        Column::Numbers(values) => values.as_ptr().cast(),
        Column::Places(values) => values.as_ptr().cast(),
        Column::Small(values) => values.as_ptr().cast(),
    })
}

/// How many numbers.
#[unsafe(no_mangle)]
pub extern "C" fn celltrain_column_length(column: usize) -> usize {
    ANSWER.with_borrow(|answer| match &answer.columns[column] {
        Column::Numbers(values) => values.len(),
        Column::Places(values) => values.len(),
        Column::Small(values) => values.len(),
    })
}

/// Gives the answer's memory back.
#[unsafe(no_mangle)]
pub extern "C" fn celltrain_forget() {
    ANSWER.take();
}
