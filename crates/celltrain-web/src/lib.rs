//! The bridge to the browser: types, errors, columns; no logic. A request is JSON, an answer is JSON with columns of
//! numbers beside it ([`answer::Answer`]). `docs/design/lab.md` has every call and the functions that WebAssembly
//! exports and imports.

#[cfg(target_family = "wasm")]
mod abi;
pub mod answer;
mod buffer;
pub mod calls;
mod edit;
mod events;
mod network;
mod reading;
