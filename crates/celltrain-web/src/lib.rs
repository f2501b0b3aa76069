//! Browser bindings of the core: types, errors and columns, but no logic. A request is JSON. An answer is JSON with
//! separate columns of numbers ([`answer::Answer`]). `docs/design/lab.md` describes every call, and the functions that
//! the WebAssembly module exports and imports.

#[cfg(target_family = "wasm")]
mod abi;
pub mod answer;
mod buffer;
pub mod calls;
mod edit;
mod events;
mod network;
mod reading;

/// Compiles and runs the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
