//! Pauses as on a wire, at ports that store packets: a port finishes its packet before it obeys a pause or sends a pause
//! frame.

use typed_index_collections::TiVec;

use super::waiting::Waiting;
use super::{MemoryPort, Switch};
use crate::cell::Run;
use crate::coverage::reached;
use crate::engine::fast::egress::Downstream;
use crate::engine::fast::pauses::{PauseCommand, PauseSender, StoppedPriorities};
use crate::engine::fast::plan::MemoryPlace;
use crate::index::Label;
use crate::memory::PausedGroup;
use crate::units::Time;

/// The pauses that a port obeys, and the pause frames that it sends next.
pub(super) struct WirePauses {
    /// Priority of each VC, by label.
    priorities: TiVec<Label, u8>,
    pub(super) stopped: StoppedPriorities,
    /// Pause frames that wait until the port has sent its packet.
    frames: Vec<WaitingFrame>,
}

#[derive(Clone, Copy)]
struct WaitingFrame {
    group: PausedGroup,
    command: PauseCommand,
    sender: PauseSender,
}

impl WirePauses {
    pub(super) fn new(priorities: TiVec<Label, u8>) -> Self {
        Self { priorities, stopped: StoppedPriorities::NONE, frames: Vec::new() }
    }

    /// Adds a pause frame. An older one for the same priority is not sent any more.
    fn push(&mut self, frame: WaitingFrame) {
        self.frames.retain(|old| old.group.1 != frame.group.1);
        self.frames.push(frame);
    }
}

impl MemoryPort {
    /// Returns whether a pause frame waits.
    pub(super) fn has_pause_frame(&self) -> bool {
        self.wire_pauses.as_ref().is_some_and(|pauses| !pauses.frames.is_empty())
    }

    /// Returns whether the port has sent a part of a packet.
    fn is_in_packet(&self) -> bool {
        let Waiting::Packets(runs) = &self.waiting else { unreachable!("the port is first in, first out") };
        let stored = self.stored.as_ref().expect("the port stores packets");
        runs.front().is_some_and(|run| stored.is_leaving(run.last))
    }

    /// Moves the first packet whose priority is not stopped to the front. Returns whether there is one.
    fn bring_unstopped_forward(&mut self) -> bool {
        let (Some(pauses), Waiting::Packets(runs)) = (&self.wire_pauses, &mut self.waiting) else { return true };
        let may_go = |run: &Run| !pauses.stopped.contain(pauses.priorities[run.last.label()]);
        let Some(first) = runs.iter().position(may_go) else {
            reached!(PausedPortWaits if !runs.is_empty());
            return false;
        };
        reached!(PausedPriorityOvertaken if first > 0);
        if first > 0 {
            let after =
                runs.range(first..).position(|run| run.last.last_cell()).map_or(runs.len(), |end| first + end + 1);
            let packet: Vec<Run> = runs.drain(first..after).collect();
            packet.into_iter().rev().for_each(|run| runs.push_front(run));
        }
        true
    }
}

impl Switch {
    /// Prepares a free port that sends or obeys pause frames. Returns whether the port may send a cell now.
    #[inline(never)]
    pub(super) fn begin_packet(&mut self, place: MemoryPlace, now: Time, downstream: &mut Downstream<'_>) -> bool {
        let port = &mut self.ports[place];
        if port.is_in_packet() {
            return true;
        }
        if port.has_pause_frame() {
            self.send_pause_frame(place, now, downstream);
            return false;
        }
        if port.wire_pauses.as_ref().is_some_and(|pauses| pauses.stopped != StoppedPriorities::NONE)
            && !port.bring_unstopped_forward()
        {
            port.is_busy = false;
            return false;
        }
        true
    }

    /// Orders the pause frames of this instant, and sends the pause frames of idle ports.
    pub(super) fn order_pauses(&mut self, now: Time, downstream: &mut Downstream<'_>) {
        let Some(senders) = &self.pause_senders else { return };
        while let Some(change) = self.memory.next_pause_change() {
            let Some((group, sender)) = senders[change.queue] else { continue };
            let port = &mut self.ports[sender.place];
            let pauses = port.wire_pauses.as_mut().expect("the port sends pause frames");
            pauses.push(WaitingFrame { group, command: PauseCommand::after(change), sender });
            if !port.is_busy {
                port.is_busy = true;
                self.to_start.push(sender.place);
            }
        }
        while let Some(place) = self.to_start.pop() {
            self.send_pause_frame(place, now, downstream);
        }
    }

    /// Sends the pause frame that waits at a free port.
    fn send_pause_frame(&mut self, place: MemoryPlace, now: Time, downstream: &mut Downstream<'_>) {
        let pauses = self.ports[place].wire_pauses.as_mut().expect("the port sends pause frames");
        let fabric = &mut *downstream.fabric;
        let mut sent = now;
        for WaitingFrame { group, command, sender } in pauses.frames.drain(..) {
            sent = now + sender.sending;
            if let Some(pauses) = &mut fabric.pauses {
                pauses.send(sent + sender.response, group, command, &mut fabric.event_list);
            }
        }
        self.calendar.start_until(place, sent);
    }
}
