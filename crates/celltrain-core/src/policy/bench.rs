//! Helpers for testing policies: a port for test frames, and the decisions of a policy about a given buffer.

#![allow(clippy::arithmetic_side_effects, reason = "only tests call this function, with small numbers")]

use typed_index_collections::TiSlice;

use super::{BufferPolicy, Configure, View};
use crate::cell::{Cell, FrameNumber};
use crate::index::Label;
use crate::port::Port;
use crate::rng::Stream;
use crate::units::Time;

/// A port for tests of a policy. Frames are numbered per VC, as a source numbers them.
pub struct Bench {
    /// The port.
    pub port: Port,
    frames: Vec<u32>,
    /// True for each VC that currently offers tagged cells.
    tagged: Vec<bool>,
}

impl Bench {
    /// Returns a port with this policy, room for `capacity` cells, and at most four VCs.
    pub fn new(config: &impl Configure, capacity: u32, vcs: usize) -> Self {
        Self::of(Box::new(config.build(capacity, &NAMES[..vcs])), capacity, vcs)
    }

    fn of(policy: Box<dyn BufferPolicy>, capacity: u32, vcs: usize) -> Self {
        let port = Port::new(Some(capacity), vcs, policy, stream());
        Self { port, frames: vec![0; vcs], tagged: vec![false; vcs] }
    }

    /// Offers the next cell of a frame. The frame is `ahead` frames after the VC's current frame.
    pub fn offer_cell(&mut self, vc: u32, ahead: u32, last: bool) {
        let frame = self.frames[vc as usize] + ahead;
        self.port.offer(Cell::new(Label::new(vc), FrameNumber::new(frame), last).with_tag(self.tagged[vc as usize]));
        if last {
            self.frames[vc as usize] = frame + 1;
        }
    }

    /// Offers the next frame of a VC.
    pub fn offer_frame(&mut self, vc: u32, cells: u32) {
        for i in 1..=cells {
            self.offer_cell(vc, 0, i == cells);
        }
    }

    /// Sends this number of waiting cells.
    pub fn take(&mut self, cells: u32) {
        for _ in 0..cells {
            self.port.take().expect("at least one cell is waiting");
        }
    }

    /// Returns the policy's virtual queues, by VC.
    pub fn virtual_queues(&mut self) -> &[u32] {
        &self.port.virtual_queues().expect("the policy has virtual queues").raw
    }

    /// Offers the next frame of a VC, with tagged cells.
    pub fn offer_tagged_frame(&mut self, vc: u32, cells: u32) {
        self.tagged[vc as usize] = true;
        self.offer_frame(vc, cells);
        self.tagged[vc as usize] = false;
    }
}

/// Returns the view of a buffer of `capacity` cells with these numbers of waiting cells, by VC.
pub fn view(capacity: u32, per_vc: &[u32]) -> View<'_> {
    let active = per_vc.iter().filter(|&&cells| cells > 0).count();
    View {
        occupancy: per_vc.iter().sum(),
        counted: per_vc.iter().sum(),
        capacity,
        active_vcs: u32::try_from(active).unwrap(),
        per_vc: TiSlice::from_ref(per_vc),
        tagged: false,
        capable: true,
        now: Time(0),
    }
}

/// Returns whether a policy lets VC 0 start a frame while `x` cells wait in a buffer of `k`. `active` VCs have waiting
/// cells; VC 0 has `y`.
pub fn admits<C: Configure>(config: &C, k: u32, x: u32, active: u32, y: u32) -> bool {
    asked(config, &View { occupancy: x, active_vcs: active, ..view(k, &[y]) }, 0, &mut stream())
}

/// Returns the largest `y` for which [`admits`] returns true.
pub fn most_cells<C: Configure>(config: &C, k: u32, x: u32, active: u32) -> u32 {
    most(x, |y| admits(config, k, x, active, y))
}

/// Returns the largest number of cells with which VC `vc` (0 or 1) may start a frame while `x` cells are waiting and K
/// = 1000.
pub fn most_cells_of_two<C: Configure>(config: &C, x: u32, vc: u32) -> u32 {
    let per_vc = |x_i: u32| if vc == 0 { [x_i, x - x_i] } else { [x - x_i, x_i] };
    most(x, |x_i| asked(config, &view(1000, &per_vc(x_i)), vc, &mut stream()))
}

/// Returns the largest number up to `x` that is admitted. Asserts that all smaller numbers are admitted as well.
fn most(x: u32, admits: impl FnMut(u32) -> bool) -> u32 {
    let admitted: Vec<bool> = (0..=x).map(admits).collect();
    assert!(admitted[0] && admitted.is_sorted_by(|less, more| less >= more), "a VC with fewer cells may start a frame");
    u32::try_from(admitted.iter().filter(|&&admitted| admitted).count() - 1).unwrap()
}

/// Asserts that two policies make the same decisions about the first of three VCs, in many states of a buffer of 64
/// cells.
pub fn assert_alike(one: &impl Configure, other: &impl Configure) {
    for y in 1..=20 {
        for others in 1..=40 {
            let per_vc = [y, others, 1];
            let [one, other] =
                [asked(one, &view(64, &per_vc), 0, &mut stream()), asked(other, &view(64, &per_vc), 0, &mut stream())];
            assert_eq!(one, other, "{per_vc:?}");
        }
    }
}

/// Returns the initial state of the helpers' random stream.
pub fn stream() -> Stream {
    Stream::new(1, "bench")
}

/// Returns the decision of a policy in its initial state about a frame of `vc`. VCs are named `vc0` and so on.
pub fn asked<C: Configure>(config: &C, buffer: &View<'_>, vc: u32, rng: &mut Stream) -> bool {
    let mut policy = config.build(buffer.capacity, &NAMES[..buffer.per_vc.len()]);
    fill(&mut policy, buffer.per_vc);
    policy.admit_frame(buffer, Label::new(vc), rng)
}

/// Reports cells to a policy that follows individual cells.
pub fn fill(policy: &mut (impl BufferPolicy + ?Sized), per_vc: &TiSlice<Label, u32>) {
    if let Some(follower) = policy.follower() {
        for (vc, &cells) in per_vc.iter_enumerated().filter(|(_, cells)| **cells > 0) {
            follower.on_enter(vc, cells);
        }
    }
}

/// Returns the fraction of frames that a policy in its initial state refuses with this buffer, in 10,000 draws.
pub fn share_refused<C: Configure>(config: &C, buffer: &View<'_>, vc: u32) -> f64 {
    let mut rng = stream();
    let mut policy = config.build(buffer.capacity, &NAMES[..buffer.per_vc.len()]);
    let refused = (0..10_000).filter(|_| !policy.admit_frame(buffer, Label::new(vc), &mut rng)).count();
    refused as f64 / 1e4
}

/// Returns whether a policy in its initial state draws a random number for a frame of `vc`.
pub fn draws<C: Configure>(config: &C, buffer: &View<'_>, vc: u32) -> bool {
    let mut rng = stream();
    asked(config, buffer, vc, &mut rng);
    rng.next_u64() != stream().next_u64()
}

/// Number of named VCs.
pub const VCS: u32 = 4;
/// Names of the VCs, for settings by name.
pub const NAMES: [&str; VCS as usize] = ["vc0", "vc1", "vc2", "vc3"];
