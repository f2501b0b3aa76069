//! Disciplines: the ways in which cells wait at a contended port and leave it.
//!
//! Each discipline is a type in a file of its own. [`TrainPort`](super::train_port::TrainPort) and the port of single
//! cells ([`QueuePort`](super::queue_port::QueuePort)) are generic over it. So their loops never check the discipline
//! of a port.

mod counted;
mod followed;
mod in_order;
mod merging;
mod queued;

pub(super) use counted::Counted;
pub(super) use followed::Followed;
pub(super) use in_order::InOrder;
pub(super) use merging::Merging;
pub(super) use queued::Queued;

/// The waiting cells of a port that is being built, by discipline.
pub(super) enum AnyDiscipline {
    Counted(Counted),
    InOrder(InOrder),
    Merging(Merging),
    Followed(Followed),
    Queued(Queued),
}
