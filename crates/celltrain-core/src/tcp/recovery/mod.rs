//! What loss makes a sender do. One file each.

pub mod tahoe;
pub mod vanilla;

use super::congestion::Windows;

/// What a sender asks its variant about loss. Timeouts are the same for all ([`Windows::on_timeout`], then go-back-N).
pub trait Recovery: Send {
    /// A duplicate acknowledgement arrived while data is outstanding.
    fn on_duplicate_ack(&mut self, windows: &mut Windows) -> Reaction;

    /// New data was acknowledged.
    fn on_new_ack(&mut self) {}

    /// The retransmission timer ran out.
    fn on_timeout(&mut self) {}
}

/// What follows a duplicate acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing.
    Ignore,
    /// Fast retransmit: start again from the first unacknowledged segment.
    GoBack,
}
