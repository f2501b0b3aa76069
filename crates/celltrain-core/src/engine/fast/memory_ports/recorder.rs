//! A record of the cells that a memory loses, from which policies take their predictions.

use std::collections::VecDeque;

use crate::memory::{QueueEnd, QueueIndex};

/// Records which of the cells that arrive at a memory are lost.
#[derive(Default)]
pub(super) struct Recorder {
    /// By arrival: true if the cell was lost on arrival or removed later.
    losses: Vec<bool>,
    /// By queue on the egress side: the arrivals of the cells that wait, in order.
    waiting: Vec<VecDeque<usize>>,
}

impl Recorder {
    /// Records an arrival: whether the cell enters, and its queue.
    pub(super) fn arrive(&mut self, queue: Option<QueueIndex>, enters: bool) {
        let number = self.losses.len();
        self.losses.push(queue.is_some() && !enters);
        if let Some(queue) = queue.filter(|_| enters) {
            self.queue(queue).push_back(number);
        }
    }

    /// Records the departure of the first cell of a queue.
    pub(super) fn leave(&mut self, queue: Option<QueueIndex>) {
        if let Some(queue) = queue {
            self.queue(queue).pop_front();
        }
    }

    /// Records that a waiting cell is removed.
    pub(super) fn remove(&mut self, queue: QueueIndex, end: QueueEnd) {
        let waiting = self.queue(queue);
        let number = match end {
            QueueEnd::Head => waiting.pop_front(),
            QueueEnd::Tail => waiting.pop_back(),
        };
        self.losses[number.expect("the cell was recorded when it entered")] = true;
    }

    pub(super) fn into_losses(self) -> Vec<bool> {
        self.losses
    }

    fn queue(&mut self, queue: QueueIndex) -> &mut VecDeque<usize> {
        let queue = usize::from(queue);
        if self.waiting.len() <= queue {
            self.waiting.resize_with(queue + 1, VecDeque::new);
        }
        &mut self.waiting[queue]
    }
}
