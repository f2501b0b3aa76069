//! Frames of end systems outside the simulation. The caller of the simulation injects them, and retrieves the frames
//! that arrive complete.

use super::{Body, Departure, EndSystems, leave};
use crate::aal5::Frame;
use crate::fingerprint::Fingerprint;
use crate::index::VcIndex;
use crate::units::Time;

/// An injected frame that has arrived complete at the host where its VC ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Time at which the frame's last cell arrived.
    pub time: Time,
    /// The VC on which it was injected.
    pub vc: VcIndex,
    /// The tag with which it was injected.
    pub tag: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct InjectedFrame {
    pub(crate) vc: VcIndex,
    pub(crate) cells: u32,
    /// The tag that identifies it when it arrives.
    pub(crate) tag: u64,
}

/// The frames that have arrived.
#[derive(Default)]
pub(super) struct Outside {
    /// Frames not yet taken, in the order of arrival.
    delivered: Vec<Delivered>,
    /// Fingerprint of all frames that have arrived.
    pub(super) fingerprint: Fingerprint,
}

impl Outside {
    pub(super) fn receive(&mut self, delivered: Delivered, cells: u32) {
        let Delivered { time, vc, tag } = delivered;
        self.fingerprint.fold_all([time.0, u64::from(vc.number()), u64::from(cells), tag]);
        self.delivered.push(delivered);
    }
}

impl EndSystems {
    /// Injects a frame. Its host handles it like one of its own.
    pub(crate) fn inject(&mut self, frame: InjectedFrame, now: Time, out: &mut Vec<Departure>) {
        let InjectedFrame { vc, cells, tag } = frame;
        self.outside.get_or_insert_default();
        let departure = self.vcs.put(vc, Frame::new(cells, Body::Outside { tag }), None);
        leave(&mut self.processing, departure, now, out);
    }

    /// Returns the injected frames that have arrived since the last call, in the order of arrival.
    pub(crate) fn take_delivered(&mut self) -> Vec<Delivered> {
        self.outside.as_mut().map(|outside| std::mem::take(&mut outside.delivered)).unwrap_or_default()
    }
}
