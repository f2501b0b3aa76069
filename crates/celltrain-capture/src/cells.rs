//! Reconstructs the content of cells at ports, and selects the cells that a capture contains.

use std::collections::BTreeMap;

use typed_index_collections::TiVec;

use celltrain_core::cell::FrameNumber;
use celltrain_core::events::{CellEvent, CellStep, Event, FrameEvent, SegmentEvent, SegmentStep};
use celltrain_core::index::{LinkIndex, VcIndex};
use celltrain_core::network::Network;

use crate::outcomes::Names;
use crate::outside::Outside;
use crate::own_packet::OwnPacket;
use crate::sink::Writing;
use crate::tracker::{CellTracker, Followed};
use crate::wire::seen;
use crate::{CaptureError, Carries, CellKind, Circuit, Direction, Frame, SeenCell};

/// The cells of the chosen VCs at the chosen ports.
pub(crate) struct Cells {
    /// Two flags: true to capture departing cells, and true to capture arriving cells.
    ways: [bool; 2],
    /// Number of each link's interface in the capture; `None` if the link's port is not chosen.
    interfaces: TiVec<LinkIndex, Option<u32>>,
    vcs: TiVec<VcIndex, bool>,
    /// VPI and VCI of each VC on the links of its path.
    circuits: TiVec<VcIndex, Vec<Circuit>>,
    tracker: CellTracker,
    /// Frames with cells in the network.
    frames: BTreeMap<(VcIndex, FrameNumber), OnTheWay>,
    names: Names,
    /// The latest cell to arrive, until it is known whether the port admitted it.
    coming: Option<Coming>,
    /// Numbers of the packets from hosts outside the simulation whose cells have all left the network.
    gone: Vec<u64>,
    pub(crate) outside: Outside,
}

/// A frame with cells in the network.
struct OnTheWay {
    frame: Frame,
    is_damaged: bool,
    cells: u32,
    /// True if all cells of the frame have entered the network.
    is_whole: bool,
}

/// A cell that has arrived at a port, and its content.
struct Coming {
    event: CellEvent,
    seen: SeenCell<'static>,
    comment: Option<String>,
}

impl Cells {
    pub(crate) fn new(
        network: &Network,
        ways: [bool; 2],
        ports: &TiVec<LinkIndex, bool>,
        vcs: TiVec<VcIndex, bool>,
        circuits: TiVec<VcIndex, Vec<Circuit>>,
    ) -> Self {
        let mut numbers = 0..;
        Self {
            ways,
            interfaces: ports.iter().map(|&chosen| if chosen { numbers.next() } else { None }).collect(),
            vcs,
            circuits,
            tracker: CellTracker::of(network),
            frames: BTreeMap::new(),
            names: Names::of(network),
            coming: None,
            gone: Vec::new(),
            outside: Outside::default(),
        }
    }

    /// Follows the cells in every event. Writes the cells that are selected and within the time window.
    pub(crate) fn on_event(
        &mut self,
        at: (u64, bool),
        event: &Event,
        capture: &mut Writing<'_>,
    ) -> Result<(), CaptureError> {
        let written = match event {
            Event::Segment(event) if self.vcs[event.vc] => {
                self.on_segment(event);
                Ok(())
            }
            Event::Frame(event) => {
                self.on_frame(event);
                Ok(())
            }
            Event::Cell(event) if self.vcs[event.vc] => self.on_cell(at, event, capture),
            _ => Ok(()),
        };
        // The last cell of each of these packets has already been written.
        self.gone.drain(..).for_each(|packet| capture.forget_own(packet));
        written
    }

    /// Follows a cell, and writes it if it is selected. An arriving cell is written once the port has reported whether
    /// it admitted the cell. Before this report, the port reports the cells that it removes to make room.
    fn on_cell(
        &mut self,
        (time_ns, in_window): (u64, bool),
        event: &CellEvent,
        capture: &mut Writing<'_>,
    ) -> Result<(), CaptureError> {
        let (hop, cell) = self.follow(event);
        let way = match event.step {
            CellStep::Arrived => Direction::Inbound,
            CellStep::Departed => Direction::Outbound,
            CellStep::Lost(_) => {
                self.on_lost(event, event.step.reason());
                return self.flush(capture);
            }
            CellStep::Admitted => return self.flush(capture),
            _ => return Ok(()),
        };
        self.flush(capture)?;
        let (Some(interface), Some(cell)) = (self.interfaces[event.link], cell) else { return Ok(()) };
        if !self.ways[usize::from(way == Direction::Inbound)] {
            return Ok(());
        }
        if !in_window {
            self.outside.add(time_ns);
            return Ok(());
        }
        // At its arrival, a cell still has the VC's label on the incoming link.
        let on = if way == Direction::Inbound { hop.saturating_sub(1) } else { hop };
        let circuit = self.circuits[event.vc][on];
        let seen = SeenCell { time_ns, interface, direction: way, circuit, cell, comment: None };
        if way == Direction::Outbound {
            return capture.cell(&seen);
        }
        self.coming = Some(Coming { event: *event, seen, comment: None });
        Ok(())
    }

    /// Writes the latest arrived cell, if it has not been written yet, because its outcome is now known.
    pub(crate) fn flush(&mut self, capture: &mut Writing<'_>) -> Result<(), CaptureError> {
        match self.coming.take() {
            Some(Coming { seen, comment, .. }) => capture.cell(&SeenCell { comment: comment.as_deref(), ..seen }),
            None => Ok(()),
        }
    }

    /// Stores a packet that enters the network from a host outside the simulation.
    pub(crate) fn on_packet(&mut self, seen: &OwnPacket<'_>, capture: &mut Writing<'_>) {
        if seen.leaves && self.vcs[seen.vc] {
            let on_the_way = OnTheWay { frame: seen.frame(), is_damaged: false, cells: 0, is_whole: false };
            self.frames.insert((seen.vc, seen.frame), on_the_way);
            capture.keep_own(seen.number, seen.bytes.to_vec());
        }
    }

    /// Stores the content of a frame that enters the network, from which the content of its cells is derived.
    fn on_segment(&mut self, event: &SegmentEvent) {
        let (_, carries, true) = seen(event) else { return };
        let is_damaged = matches!(event.step, SegmentStep::Sent { is_damaged: true, .. });
        let frame = Frame { connection: event.flow.number(), number: event.frame.number(), ecn: event.ecn, carries };
        let on_the_way = OnTheWay { frame, is_damaged, cells: 0, is_whole: false };
        self.frames.insert((event.vc, event.frame), on_the_way);
    }

    /// Follows the cell of an event. Returns the index of the event's port in the VC's path, and the cell's content.
    fn follow(&mut self, event: &CellEvent) -> (usize, Option<CellKind>) {
        let CellEvent { vc, frame, tagged, efci, .. } = *event;
        if let Some(rm) = event.rm {
            return (self.tracker.hop(vc, event.link), Some(CellKind::Rm(rm)));
        }
        let Some(Followed { index, hop, is_gone }) = self.tracker.follow(event) else { return (0, None) };
        let on_the_way = self.frames.get_mut(&(vc, frame)).expect("a frame is sent before its cells arrive");
        let of = CellKind::User { frame: on_the_way.frame, index, clp: tagged, efci, damaged: on_the_way.is_damaged };
        if event.step == CellStep::Arrived && hop == 0 {
            on_the_way.cells += 1;
            on_the_way.is_whole = event.last;
        }
        on_the_way.cells -= u32::from(is_gone);
        if on_the_way.is_whole && on_the_way.cells == 0 {
            if let Carries::Own { packet, .. } = on_the_way.frame.carries {
                self.gone.push(packet);
            }
            self.frames.remove(&(vc, frame));
        }
        (hop, Some(of))
    }

    /// Describes a frame's loss in the comment on the frame's newly arrived cell.
    fn on_frame(&mut self, event: &FrameEvent) {
        if let Some(Coming { event: cell, comment, .. }) = &mut self.coming
            && (cell.vc, cell.frame, Some(cell.link)) == (event.vc, event.frame, event.step.link())
        {
            *comment = self.names.loss(event);
        }
    }

    /// Describes the loss of the newly arrived cell in the comment on the cell.
    fn on_lost(&mut self, event: &CellEvent, reason: &str) {
        if let Some(Coming { event: cell, comment, .. }) = &mut self.coming
            && (cell.vc, cell.frame, cell.link) == (event.vc, event.frame, event.link)
        {
            comment.get_or_insert_with(|| format!("lost here: {reason}"));
        }
    }
}
