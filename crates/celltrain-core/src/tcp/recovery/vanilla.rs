//! Vanilla TCP: no fast retransmit. Duplicate acknowledgements are ignored, and every loss waits for the timer.
//!
//! Source: ATM Forum 96-1269, sections 2 and 3.1; `docs/mechanisms.md` 3.3. Differences from the source: none known.

use super::{Flight, Reaction, Recovery};
use crate::tcp::congestion::Windows;

/// A loss recovery that does nothing.
#[derive(Debug, Default)]
pub struct Vanilla;

impl Recovery for Vanilla {
    fn on_duplicate_ack(&mut self, _flight: &Flight<'_>, _news: bool, _windows: &mut Windows) -> Reaction {
        Reaction::Ignore
    }
}
