//! Detects policies that refuse frames at an empty or nearly empty buffer.
//!
//! A policy that refuses these frames delivers little or nothing, but passes all other checks. A probe offers frames of
//! one cell to a port with the policy, at times spread over a run, and empties the buffer after each frame. The probe
//! also offers a frame of 12 cells while another frame is waiting, and while a frame and one cell of another VC are
//! waiting. If a policy decides at the head of the queue, the probe also offers frames that have not waited to it.

#![expect(clippy::arithmetic_side_effects, reason = "no overflow: a probe sends few frames")]

pub mod memory;

use typed_index_collections::{TiVec, ti_vec};

use celltrain_formula::Clause;

use celltrain_core::cell::{Cell, FrameNumber};
use celltrain_core::index::Label;
use celltrain_core::policy::formula::{Formula, PortInfo};
use celltrain_core::policy::{AtHead, BufferPolicy, Head, HeadPolicy};
use celltrain_core::port::{Port, PortEvent};
use celltrain_core::rng::Stream;
use celltrain_core::units::{Span, Time};

/// Names of the VCs at the probed port if the settings of the policy do not name VCs.
pub const VCS: [&str; 4] = ["tcp1", "tcp2", "tcp3", "tcp4"];
/// Number of rounds of a probe when a scenario is checked. A probe takes about 50 microseconds.
pub const ROUNDS: u32 = 64;
/// Maximum number of rounds of a probe, regardless of the number of VCs.
const MOST_ROUNDS: u32 = 1024;
const ROUNDS_PER_VC: u32 = 4;
/// Number of frames offered to a policy that decides at the head of the queue.
const HEADS: usize = 64;
/// A policy that admits less than one in this many frames into an empty buffer causes a warning.
const LEAST_SHARE: u32 = 4;
/// Number of cells in a frame with 512 bytes of data, the default for every TCP.
const FRAME_CELLS: u32 = 12;
/// Minimum number of frames for which a buffer must have room to be probed with frames of several cells. In a smaller
/// buffer, a policy may rightly admit only one frame at a time.
const LEAST_FRAMES: u32 = 10;
/// Advice for formulas that only compare shares. Replacing `<` by `<=` would not be enough, because then frames would
/// be admitted only into an empty buffer.
const HINT: &str = "; add \"X <= ... or\"";

/// The result of a probe of a buffer policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// Number of untagged frames offered to an empty buffer.
    pub offered: u32,
    /// Number of these frames that the policy admitted.
    pub admitted: u32,
    /// Descriptions of the refusals that make the policy useless, with reasons if the policy is a formula; empty if
    /// there are no such refusals.
    pub refusals: Vec<String>,
    /// A restriction of a policy that delivers frames, for example a limit of one waiting frame per VC.
    pub remark: Option<String>,
}

/// Probes a policy in its initial state until `end`, at a port that has these properties and is crossed by VCs with
/// these names.
pub fn probe(
    mut policy: Box<dyn BufferPolicy>,
    port_info: &PortInfo<'_>,
    vcs: &[&str],
    end: Time,
    rounds: u32,
) -> Probe {
    policy.at_port(port_info);
    let is_sure = policy.admits_up_to().is_some_and(|cells| cells > 0);
    if vcs.is_empty() || is_sure || port_info.capacity == Some(0) {
        return Probe::default();
    }
    if policy.head_policy().is_some_and(|policy| drops_all(policy, vcs.len())) {
        let refusal = "drops every frame at the head of the queue, even if it has not waited";
        return Probe { refusals: vec![refusal.into()], ..Probe::default() };
    }
    let vcs_in_32_bits = u32::try_from(vcs.len()).unwrap_or(u32::MAX);
    let rounds = rounds.max(vcs_in_32_bits.saturating_mul(ROUNDS_PER_VC)).min(MOST_ROUNDS);
    let mut bench = Bench::new(policy, port_info, vcs);
    let mut tried = Tried::new(vcs.len());
    for round in 0..rounds {
        bench.now = Time(end.0 / u64::from(rounds) * u64::from(round));
        let number = round % vcs_in_32_bits;
        let (vc, other) = (Label::new(number), Label::new((number + 1) % vcs_in_32_bits));
        let admitted = bench.offer(vc, 1, false, Some(&mut tried.of_vc[vc]));
        tried.empty.count(admitted);
        bench.drain();
        bench.offer(vc, 1, true, Some(&mut tried.tagged));
        bench.drain();
        if port_info.capacity.is_some_and(|capacity| capacity < 2) {
            continue;
        }
        // Offer frames while one cell is waiting: first a cell of another VC, then a cell of the frame's VC.
        bench.offer_beside([vc, other], 1, &mut tried.cell_waits);
        // Stop after the first admission, which proves that frames are admitted, because frames of 12 cells are slow to
        // test.
        if tried.frame_waits.iter().any(|attempts| attempts.admitted == 0)
            && port_info.capacity.is_none_or(|capacity| capacity >= FRAME_CELLS * LEAST_FRAMES)
        {
            bench.offer_beside([vc, other], FRAME_CELLS, &mut tried.frame_waits);
        }
        if vcs.len() > 1
            && tried.both_wait.admitted == 0
            && port_info.capacity.is_none_or(|capacity| capacity >= FRAME_CELLS * LEAST_FRAMES)
        {
            bench.offer_to_two([vc, other], &mut tried.both_wait);
        }
    }
    let refusals = tried.refusals(vcs);
    let remark = if refusals.is_empty() { tried.remark() } else { None };
    Probe { offered: tried.empty.offered, admitted: tried.empty.admitted, refusals, remark }
}

/// Returns whether a policy, in its initial state, drops all frames that have not waited.
fn drops_all(policy: &mut dyn HeadPolicy, vcs: usize) -> bool {
    let mut rng = Stream::new(1, "liveness at the head");
    let mut drops = |vc: usize| {
        let vc = Label::new(u32::try_from(vc).expect("a port has fewer than 2^32 VCs"));
        let head = Head { now: Time(0), vc, waited: Span(0), behind: 0, capable: false };
        policy.on_head(&head, &mut rng) == AtHead::Drop
    };
    (0..vcs).cycle().take(HEADS).all(&mut drops)
}

/// Numbers of frames offered and admitted while the buffer had a certain content.
#[derive(Clone, Default)]
struct Attempts {
    offered: u32,
    admitted: u32,
    /// Number of frames offered up to the last admitted frame.
    until_last: u32,
    /// Comparisons in a formula that caused the first refusal.
    clauses: Vec<Clause>,
}

impl Attempts {
    fn count(&mut self, admitted: bool) {
        self.offered += 1;
        self.admitted += u32::from(admitted);
        if admitted {
            self.until_last = self.offered;
        }
    }

    /// Returns true if frames were offered but none was admitted.
    fn all_refused(&self) -> bool {
        self.offered > 0 && self.admitted == 0
    }

    /// Returns the message for a refusal that `what` describes, with the reasons for the refusal.
    fn told(&self, what: &str) -> String {
        format!("{what}{}", reasons(&self.clauses, HINT))
    }
}

/// Returns a colon and the reasons for a refusal, with a hint if a comparison is false only because it is strict. The
/// text is empty if there are no reasons.
fn reasons(clauses: &[Clause], hint: &str) -> String {
    if clauses.is_empty() {
        return String::new();
    }
    let reason = |Clause { text, values, .. }: &Clause| match &**text {
        "true" | "false" => format!("the condition is always {text}"),
        _ => format!("{text} is {values}"),
    };
    let reasons = clauses.iter().map(reason).collect::<Vec<_>>().join(", and ");
    let hint = if clauses.iter().any(|clause| clause.is_strict_tie) { hint } else { "" };
    format!(": {reasons}{hint}")
}

/// Numbers of frames offered and admitted, by the content of the buffer.
struct Tried {
    /// Untagged frames offered to an empty buffer.
    empty: Attempts,
    /// Tagged frames offered to an empty buffer.
    tagged: Attempts,
    /// Untagged frames offered while one cell of another VC is waiting, and while one cell of the frame's VC is
    /// waiting.
    cell_waits: [Attempts; 2],
    /// Untagged frames of several cells offered while one frame of another VC is waiting, and while one frame of the
    /// same VC is waiting.
    frame_waits: [Attempts; 2],
    /// Untagged frames of several cells offered while a frame of the same VC and a cell of another VC are waiting.
    both_wait: Attempts,
    /// Untagged frames offered to an empty buffer, counted per VC. Only these attempts record the reasons for refusals.
    of_vc: TiVec<Label, Attempts>,
}

impl Tried {
    fn new(vcs: usize) -> Self {
        let none = Attempts::default;
        let of_vc = ti_vec![none(); vcs];
        let pair = || [none(), none()];
        Self { empty: none(), tagged: none(), cell_waits: pair(), frame_waits: pair(), both_wait: none(), of_vc }
    }

    fn refusals(&self, vcs: &[&str]) -> Vec<String> {
        let Self { empty, tagged, cell_waits, frame_waits, of_vc, .. } = self;
        let reason = of_vc.iter().find(|attempts| !attempts.clauses.is_empty());
        let empty = &Attempts { clauses: reason.map(|of| of.clauses.clone()).unwrap_or_default(), ..empty.clone() };
        if empty.admitted == 0 && tagged.admitted == 0 {
            return vec![empty.told("refuses every frame while the buffer is empty")];
        }
        // With random decisions, a policy may admit a few tagged frames and no untagged frames.
        if empty.admitted == 0 && tagged.admitted >= tagged.offered / LEAST_SHARE {
            return vec![empty.told("admits only tagged frames (CLP = 1) while the buffer is empty")];
        }
        // If a policy admits a few frames at random, the last admission may be early although the policy still admits
        // frames.
        let stops = empty.until_last <= empty.offered / 2 && empty.admitted >= empty.until_last / 2;
        if stops && empty.admitted > 0 {
            return vec![empty.told(&format!(
                "refuses every frame while the buffer is empty, after the first {} of {} frames",
                empty.until_last, empty.offered
            ))];
        }
        let mut refusals = Vec::new();
        let without: Vec<(&str, &Attempts)> =
            vcs.iter().copied().zip(of_vc).filter(|(_, attempts)| attempts.all_refused()).collect();
        let by_others: u32 = of_vc.iter().filter(|of| !of.all_refused()).map(|of| of.offered).sum();
        let by_chance = empty.admitted == 0 || empty.admitted < by_others / 2;
        if let ([(first, attempts), others @ ..], false) = (&without[..], by_chance) {
            let others = match others.len() {
                0 => String::new(),
                1 => " and another VC".into(),
                more => format!(" and {more} more VCs"),
            };
            refusals.push(attempts.told(&format!("refuses every frame of {first}{others} while the buffer is empty")));
        }
        if refusals.is_empty() && empty.admitted < empty.offered / LEAST_SHARE {
            let refused = empty.offered - empty.admitted;
            let what = format!("refuses {refused} of {} frames while the buffer is empty", empty.offered);
            return vec![empty.told(&what)];
        }
        let frame = format!("one frame waits ({FRAME_CELLS} cells)");
        for ([another, its_own], what) in [(cell_waits, "a single cell waits"), (frame_waits, &frame)] {
            if another.all_refused() {
                let whose = if its_own.all_refused() { "" } else { " of a second VC" };
                refusals.push(another.told(&format!("refuses every frame{whose} while {what}")));
                break;
            }
        }
        refusals
    }

    /// Describes refusals of frames whose VC has waiting cells. The description is used only if there are no other
    /// refusals.
    fn remark(&self) -> Option<String> {
        let [cell, frame] = [&self.cell_waits, &self.frame_waits].map(|[_, its_own]| its_own);
        if cell.all_refused() {
            return Some(cell.told("refuses every frame of a VC while at least one cell of that VC waits"));
        }
        if frame.all_refused() {
            let what = format!("refuses every frame of a VC while one frame of that VC waits ({FRAME_CELLS} cells)");
            return Some(frame.told(&what));
        }
        let both = &self.both_wait;
        // A policy with random numbers may refuse a few frames by chance.
        let is_rule = both.all_refused() && both.offered >= self.empty.offered / LEAST_SHARE;
        is_rule.then(|| {
            let what = format!(
                "refuses every frame of a VC while one frame of that VC ({FRAME_CELLS} cells) and a single cell of another VC wait"
            );
            let told = both.told(&what);
            if both.clauses.is_empty() || told.ends_with(HINT) { told } else { told + HINT }
        })
    }
}

/// A port outside any network, and the numbers of the next frames that its VCs send.
struct Bench<'a> {
    port: Port,
    port_info: &'a PortInfo<'a>,
    vcs: &'a [&'a str],
    frames: TiVec<Label, u32>,
    now: Time,
}

impl<'a> Bench<'a> {
    fn new(policy: Box<dyn BufferPolicy>, port_info: &'a PortInfo<'a>, vcs: &'a [&'a str]) -> Self {
        let port = Port::new(port_info.capacity, vcs.len(), policy, Stream::new(1, "liveness"));
        Self { port, port_info, vcs, frames: ti_vec![0; vcs.len()], now: Time(0) }
    }

    /// Offers a frame of `vc` while a frame of `other` is waiting, and then while another frame of `vc` is waiting.
    fn offer_beside(&mut self, [vc, other]: [Label; 2], cells: u32, attempts: &mut [Attempts; 2]) {
        for (first, attempts) in [other, vc].into_iter().zip(attempts) {
            if (self.vcs.len() > 1 || first != other) && self.offer(first, cells, false, None) {
                self.offer(vc, cells, false, Some(attempts));
            }
            self.drain();
        }
    }

    /// Offers a frame of `vc` while another frame of `vc` and one cell of `other` are waiting.
    fn offer_to_two(&mut self, [vc, other]: [Label; 2], attempts: &mut Attempts) {
        if self.offer(other, 1, false, None) && self.offer(vc, FRAME_CELLS, false, None) {
            self.offer(vc, FRAME_CELLS, false, Some(attempts));
        }
        self.drain();
    }

    /// Offers a frame. Returns whether the frame was admitted.
    fn offer(&mut self, vc: Label, cells: u32, tagged: bool, mut attempts: Option<&mut Attempts>) -> bool {
        let Self { port, port_info, vcs, frames, now } = self;
        let cell = |last| Cell::new(vc, FrameNumber::new(frames[vc]), last).with_tag(tagged);
        let mut judged = true;
        port.offer_observed(cell(cells == 1), *now, |event| {
            let PortEvent::Judged { admitted, policy, .. } = event else { return };
            judged = admitted;
            // Explain only one refusal by a formula, because an explanation takes as long as offering hundreds of
            // frames.
            let unexplained = attempts.as_mut().filter(|attempts| attempts.admitted == attempts.offered);
            if let Some(attempts) = unexplained.filter(|_| !admitted) {
                attempts.clauses = Formula::of(policy).map(|it| it.why_refused(port_info, vcs, vc)).unwrap_or_default();
            }
        });
        for number in 1..cells {
            port.offer_observed(cell(number + 1 == cells), *now, |_| {});
        }
        frames[vc] = frames[vc].wrapping_add(1);
        if let Some(attempts) = attempts {
            attempts.count(judged);
        }
        judged
    }

    fn drain(&mut self) {
        while self.port.take().is_some() {}
    }
}

#[cfg(test)]
mod tests;
