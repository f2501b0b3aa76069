//! Pause frames as in IEEE 802.3 annex 31B, and the packets during which they wait.

use typed_index_collections::{TiVec, ti_vec};

use super::Port;
use crate::cell::Cell;
use crate::index::{Label, LinkIndex};
use crate::units::Span;

/// The instruction of a pause frame to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PauseOrder {
    /// The link whose port must obey.
    pub(crate) link: LinkIndex,
    pub(crate) priority: u8,
    /// True if the pause begins, false if it ends.
    pub(crate) stops: bool,
    /// The time that the port takes to obey.
    pub(crate) response: Span,
}

/// The pause frames that ports send, and the packets during which these wait, by link.
pub(crate) struct PauseFrames {
    /// Orders that the port of each link has not sent yet.
    waiting: TiVec<LinkIndex, Vec<PauseOrder>>,
    /// The latest cell on each link, if it does not end its packet.
    under_way: TiVec<LinkIndex, Option<Cell>>,
}

impl PauseFrames {
    pub(crate) fn new(links: usize) -> Self {
        Self { waiting: ti_vec![Vec::new(); links], under_way: ti_vec![None; links] }
    }

    /// Queues an order for the port that sends over `by`. It replaces a waiting order for the same priority.
    pub(crate) fn push(&mut self, by: LinkIndex, order: PauseOrder) {
        self.waiting[by].retain(|old| old.priority != order.priority);
        self.waiting[by].push(order);
    }

    /// Returns whether an order that ends a pause waits to be sent.
    pub(crate) fn will_resume(&self, link: LinkIndex, priority: u8) -> bool {
        let ends = |order: &PauseOrder| (order.link, order.priority, order.stops) == (link, priority, false);
        self.waiting.iter().flatten().any(ends)
    }

    /// Returns the orders of a pause frame that a free port sends now. It sends none while a packet is under way.
    pub(crate) fn take(&mut self, link: LinkIndex, port: &Port) -> Vec<PauseOrder> {
        if self.waiting[link].is_empty() || self.is_in_packet(link, port) {
            return Vec::new();
        }
        std::mem::take(&mut self.waiting[link])
    }

    /// Returns whether the port of a link has sent a part of a packet, and can send more of it.
    pub(crate) fn is_in_packet(&self, link: LinkIndex, port: &Port) -> bool {
        self.under_way[link].is_some_and(|sent| port.has_rest_of(sent))
    }

    /// Passes the next cell of a port to the transmitter: a cell of the packet under way, or otherwise of a VC that may
    /// send.
    pub(crate) fn take_cell(
        &mut self,
        link: LinkIndex,
        port: &mut Port,
        may_go: Option<impl Fn(Label) -> bool>,
    ) -> Option<Cell> {
        let sent = self.under_way[link].filter(|&sent| port.is_fifo() && port.has_rest_of(sent));
        let cell = match (sent, may_go) {
            (Some(sent), _) => port.take_unpaused(|label| label == sent.label()),
            (None, Some(may_go)) => port.take_unpaused(may_go),
            (None, None) => port.take(),
        }?;
        self.under_way[link] = (!cell.last_cell()).then_some(cell);
        Some(cell)
    }
}
