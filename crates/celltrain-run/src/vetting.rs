//! Tests properties that every buffer policy must have, with random cells at a port outside any network.
//!
//! The unit tests apply these checks to all built-in policies, and `celltrain vet` applies them to a user's policy.

pub mod memory;

use std::collections::{BTreeMap, BTreeSet};

use typed_index_collections::{TiVec, ti_vec};

use celltrain_core::aal5::Aal5Options;
use celltrain_core::cell::{Cell, FrameNumber};
use celltrain_core::index::Label;
use celltrain_core::policy::formula::PortInfo;
use celltrain_core::policy::{BufferPolicy, Overflow};
use celltrain_core::port::{Port, PortCounters};
use celltrain_core::rng::Stream;
use celltrain_core::units::{Clock, Time};
use celltrain_scenario::liveness::{self, VCS};

/// Buffer size of most trials in cells, as in the LAN scenarios of ATM Forum 96-1269.
pub const CAPACITY: u32 = 1000;
const TRIALS: u32 = 24;
/// Number of arrivals and departures in one trial.
const OPERATIONS: u32 = 8000;
/// For each phase of a trial, the number of arrivals in every four operations. The numbers are chosen so that a buffer
/// of a thousand cells fills and empties.
const PHASES: [u32; 8] = [3, 3, 3, 2, 1, 3, 1, 1];
/// Number of operations between two recounts of a queue longer than [`SHORT`].
const BETWEEN_RECOUNTS: u32 = 64;
/// Number of rounds of the probe that offers frames to an empty buffer.
const PROBE_ROUNDS: u32 = 512;
/// Duration of the probe that offers frames to an empty buffer, in nanoseconds.
const PROBED_NS: u64 = 10_000_000_000;
/// Maximum length of a queue whose cells are recounted after every operation.
const SHORT: u32 = 64;

/// An operation at the port under test.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// A cell of VC `vc` arrives. The value of `tagged` at the first cell of a frame applies to the whole frame.
    Offer {
        /// Number of the VC.
        vc: u32,
        /// True if the cell ends its frame.
        last: bool,
        /// True if the cell's frame is tagged.
        tagged: bool,
    },
    /// The next waiting cell leaves the port, if a cell is waiting.
    Take,
}

/// A property that every buffer policy must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// The queue never exceeds the buffer.
    Capacity,
    /// The counts that the policy sees and the counters of the port equal a recount of the waiting cells.
    Counts,
    /// A frame is cut only if one of its cells found the buffer full.
    WholeFrames,
    /// A second trial with the same cells and the same seed leads to the same decisions.
    SameSeed,
    /// Frames are admitted into an empty or nearly empty buffer, and every trial with a large buffer delivers frames.
    AdmitsWhenEmpty,
}

impl Check {
    /// All properties to check.
    pub const ALL: [Self; 5] = [Self::Capacity, Self::Counts, Self::WholeFrames, Self::SameSeed, Self::AdmitsWhenEmpty];

    /// Returns the name of the property as results show it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Capacity => "never_above_capacity",
            Self::Counts => "counts_equal_a_recount",
            Self::WholeFrames => "whole_frames",
            Self::SameSeed => "same_seed_same_answers",
            Self::AdmitsWhenEmpty => "admits_into_an_empty_buffer",
        }
    }
}

/// The result of a trial of a policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Cells that the port sent, in the order of sending.
    pub sent: Vec<Cell>,
    /// Counters of the cells of each VC, indexed by the VC's label.
    pub counters: Vec<PortCounters>,
    /// Maximum number of waiting cells.
    pub max_queue: u32,
    /// Number of recounts of the port's queue.
    pub recounts: u64,
    /// First violation of each property.
    pub broken: BTreeMap<Check, String>,
}

impl Outcome {
    fn check(&mut self, check: Check, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.broken.entry(check).or_insert_with(what);
        }
    }
}

/// Performs the operations of a trial at a port with this policy and a buffer for `capacity` cells.
pub fn trial(policy: Box<dyn BufferPolicy>, capacity: u32, seed: u64, operations: &[Operation]) -> Outcome {
    let overflow = policy.overflow();
    let mut bench = Bench {
        port: Port::new(Some(capacity), VCS.len(), policy, Stream::new(seed, "trial")),
        frames: [0; VCS.len()],
        at_start: [true; VCS.len()],
        tagged: [false; VCS.len()],
    };
    let mut outcome = Outcome::default();
    let mut frames = Frames::default();
    for (number, &operation) in (0u32..).zip(operations) {
        match operation {
            Operation::Take => outcome.sent.extend(bench.port.take()),
            Operation::Offer { vc, last, tagged } => {
                let before = refused(&bench.port);
                let frame = (vc, bench.frames[vc as usize]);
                bench.offer((vc, last, tagged), Time(u64::from(number) * 2831));
                let is_refused = refused(&bench.port) > before;
                let holds = frames.offered(frame, is_refused, last) || overflow == Overflow::LoseCell;
                outcome.check(Check::WholeFrames, holds, || {
                    format!("frame {} of {} continues after a refused cell", frame.1, VCS[vc as usize])
                });
            }
        }
        let occupancy = bench.port.occupancy();
        outcome.check(Check::Capacity, occupancy <= capacity, || {
            format!("{occupancy} cells wait in a buffer of {capacity}")
        });
        if occupancy <= SHORT || number.is_multiple_of(BETWEEN_RECOUNTS) {
            outcome.recounts += 1;
            if let Err(what) = recounted(&mut bench.port) {
                outcome.check(Check::Counts, false, || what);
            }
        }
    }
    while let Some(cell) = bench.port.take() {
        outcome.sent.push(cell);
    }
    if let Err(what) = frames.whole(&outcome.sent, &bench.port.counters(), overflow) {
        outcome.check(Check::WholeFrames, false, || what);
    }
    outcome.counters = bench.port.vc_counters().collect();
    outcome.max_queue = bench.port.max_queue();
    outcome
}

/// A port under test, and the frames that its sources are sending. The frames of each VC are numbered separately.
struct Bench {
    port: Port,
    frames: [u32; VCS.len()],
    at_start: [bool; VCS.len()],
    tagged: [bool; VCS.len()],
}

impl Bench {
    fn offer(&mut self, (vc, last, tagged): (u32, bool, bool), now: Time) {
        let at = vc as usize;
        if std::mem::replace(&mut self.at_start[at], last) {
            self.tagged[at] = tagged;
        }
        let cell = Cell::new(Label::new(vc), FrameNumber::new(self.frames[at]), last).with_tag(self.tagged[at]);
        self.port.offer_observed(cell, now, |_| {});
        self.frames[at] += u32::from(last);
    }
}

/// Number of cells of each frame offered so far, and the set of frames with a refused cell.
#[derive(Default)]
struct Frames {
    offered: BTreeMap<(u32, u32), u32>,
    cut: BTreeSet<(u32, u32)>,
}

impl Frames {
    /// Records a cell of a frame. Returns whether the port behaved correctly: after a cell of a frame was refused, only
    /// the frame's last cell may enter.
    fn offered(&mut self, frame: (u32, u32), is_refused: bool, last: bool) -> bool {
        *self.offered.entry(frame).or_insert(0) += 1;
        if is_refused {
            self.cut.insert(frame);
        }
        is_refused || last || !self.cut.contains(&frame)
    }

    /// Checks that no frame lost a cell unless the buffer was full. The port must be empty when this function is
    /// called.
    fn whole(&self, sent: &[Cell], counters: &PortCounters, overflow: Overflow) -> Result<(), String> {
        if overflow == Overflow::LoseCell && counters.discarded_remainder > 0 {
            return Err(format!(
                "{} cells are discarded because their frame had lost a cell, although this policy loses only single cells",
                counters.discarded_remainder
            ));
        }
        if counters.lost() > 0 {
            return Ok(());
        }
        if counters.discarded_remainder > 0 {
            return Err(format!(
                "{} cells are discarded because their frame had lost a cell, but no cell was lost",
                counters.discarded_remainder
            ));
        }
        let mut served: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for cell in sent {
            *served.entry((cell.label().number(), cell.frame.number())).or_insert(0) += 1;
        }
        match served.iter().find(|(frame, cells)| self.offered[frame] != **cells) {
            None => Ok(()),
            Some((frame, cells)) => {
                Err(format!("only {cells} of the {} cells of a frame are sent", self.offered[frame]))
            }
        }
    }
}

/// Returns the number of arriving cells that the port has refused so far.
fn refused(port: &Port) -> u64 {
    let counters = port.counters();
    counters.lost_overflow + counters.discarded()
}

/// Recounts the cells that wait at a port. Returns an error if a counter of the port differs from the recount.
fn recounted(port: &mut Port) -> Result<(), String> {
    let mut per_vc: TiVec<Label, u32> = ti_vec![0; VCS.len()];
    for cell in port.waiting() {
        per_vc[cell.label()] += 1;
    }
    let active = per_vc.iter().filter(|&&cells| cells > 0).count();
    if *port.per_vc() != *per_vc {
        return Err(format!("Y is {:?}, but {per_vc:?} cells wait", port.per_vc()));
    }
    if port.active_vcs() as usize != active {
        return Err(format!("N is {}, but {active} VCs have waiting cells", port.active_vcs()));
    }
    if let Some(sum) = port.virtual_queues().map(|queues| queues.iter().sum::<u32>())
        && sum != port.occupancy()
    {
        return Err(format!("the virtual queues hold {sum} cells, but {} cells wait", port.occupancy()));
    }
    for (counters, &waiting) in port.vc_counters().zip(&per_vc) {
        let accounted = counters.forwarded + counters.lost() + counters.discarded() + u64::from(waiting);
        if counters.offered != accounted {
            return Err(format!("{} cells arrived, but only {accounted} are accounted for", counters.offered));
        }
    }
    Ok(())
}

/// The result of checking one property in many trials.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The property that was checked.
    pub check: Check,
    /// True if the property was never violated.
    pub holds: bool,
    /// Summary of the trials, or a description of the first violation.
    pub evidence: String,
}

/// Checks every property in trials with random cells derived from `seed`. `make` creates the policy for a buffer of the
/// given number of cells, or returns `None` if the policy does not support this size.
pub fn conformance(make: impl Fn(u32) -> Option<Box<dyn BufferPolicy>>, seed: u64) -> Vec<Verdict> {
    let mut draws = Stream::new(seed, "conformance");
    let mut broken: BTreeMap<Check, String> = BTreeMap::new();
    let (mut trials, mut recounts, mut frames, mut max_queue) = (0u32, 0u64, 0u64, 0u32);
    let mut all = PortCounters::default();
    let probe = make(CAPACITY).map(|policy| {
        let port_info = port_info(CAPACITY);
        liveness::probe(policy, &port_info, &VCS, Time(PROBED_NS), PROBE_ROUNDS)
    });
    let probe = probe.unwrap_or_default();
    if !probe.refusals.is_empty() {
        broken.insert(Check::AdmitsWhenEmpty, probe.refusals.join("; "));
    }
    for number in 0..TRIALS {
        let small = draws.below(60);
        let operations = operations(&mut draws);
        // A policy whose threshold in cells exceeds a small buffer does not support this buffer.
        let capacity = if number.is_multiple_of(3) { small } else { CAPACITY };
        let run = || {
            make(capacity).map(|mut policy| {
                policy.at_port(&port_info(capacity));
                trial(policy, capacity, seed, &operations)
            })
        };
        let (Some(outcome), Some(again)) = (run(), run()) else { continue };
        trials += 1;
        recounts += outcome.recounts;
        max_queue = max_queue.max(outcome.max_queue);
        let sent = outcome.sent.iter().filter(|cell| cell.last_cell()).count() as u64;
        frames += sent;
        if sent == 0 && capacity == CAPACITY {
            broken.entry(Check::AdmitsWhenEmpty).or_insert_with(|| {
                format!(
                    "trial {number} delivers no frame from a buffer of {CAPACITY} places, although {} cells arrive",
                    grouped(offered(&operations))
                )
            });
        }
        all = PortCounters::sum([all].into_iter().chain(outcome.counters.iter().copied()));
        if outcome != again {
            broken.entry(Check::SameSeed).or_insert_with(|| {
                let told = |outcome: &Outcome| PortCounters::sum(outcome.counters.iter().copied()).discarded_frames;
                format!(
                    "in trial {number} the policy refuses {} frames in the first run and {} in the second, or refuses \
                     different frames",
                    told(&outcome),
                    told(&again)
                )
            });
        }
        for (check, what) in outcome.broken {
            broken.entry(check).or_insert_with(|| format!("in trial {number} {what}"));
        }
    }
    let evidence = |check| match check {
        Check::Capacity => {
            let (cells, most) = (grouped(all.offered), grouped(u64::from(max_queue)));
            format!("{trials} trials, {cells} arriving cells; at most {most} cells wait")
        }
        Check::Counts => format!("{} recounts", grouped(recounts)),
        Check::WholeFrames => {
            let [sent, refused, cut] = [frames, all.discarded_frames, all.cut_frames].map(grouped);
            format!("{sent} frames sent, {refused} refused, {cut} cut by a full buffer")
        }
        Check::SameSeed => format!("{trials} trials, each executed twice"),
        Check::AdmitsWhenEmpty => match probe.offered {
            0 => "every frame is admitted while the buffer is empty or a single cell waits".into(),
            offered => {
                let [admitted, offered] = [probe.admitted, offered].map(|frames| grouped(frames.into()));
                let remark = probe.remark.as_ref().map(|remark| format!(", but it {remark}")).unwrap_or_default();
                format!("{admitted} of {offered} frames admitted while the buffer is empty{remark}")
            }
        },
    };
    let verdict = |check: Check| match broken.get(&check) {
        Some(what) => Verdict { check, holds: false, evidence: what.clone() },
        None if trials == 0 => {
            let evidence = format!(
                "no trial was possible: the policy does not work with {} and a buffer of {CAPACITY} cells",
                VCS.join(", ")
            );
            Verdict { check, holds: false, evidence }
        }
        None => Verdict { check, holds: true, evidence: evidence(check) },
    };
    Check::ALL.map(verdict).into()
}

fn offered(operations: &[Operation]) -> u64 {
    operations.iter().filter(|operation| matches!(operation, Operation::Offer { .. })).count() as u64
}

/// Formats a count with thousands separators, as in all printed output.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Describes a port at the cell rate of an OC-3, with a nanosecond clock.
fn port_info(capacity: u32) -> PortInfo<'static> {
    PortInfo {
        name: "trial",
        capacity: Some(capacity),
        cells_per_second: 353_207.5,
        clock: Clock::exact(1_000_000_000),
        aal5: &Aal5Options::ATM,
    }
}

/// Generates arrivals and departures in phases, so that the buffer fills and empties.
fn operations(draws: &mut Stream) -> Vec<Operation> {
    let mut all = Vec::new();
    for number in 0..OPERATIONS {
        let of_four = PHASES[number as usize * PHASES.len() / OPERATIONS as usize];
        all.push(if draws.below(4) < of_four {
            let vc = draws.below(u32::try_from(VCS.len()).expect("the number of VCs is four"));
            Operation::Offer { vc, last: draws.below(12) == 0, tagged: draws.below(4) == 0 }
        } else {
            Operation::Take
        });
    }
    all
}

#[cfg(test)]
mod tests;
