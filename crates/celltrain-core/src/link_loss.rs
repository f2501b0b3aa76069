//! Losses and delays on links: cells and whole frames of chosen VCs that a link does not deliver, or delivers late.
//!
//! A lost cell occupies the link for its transmission time and disappears at the instant when it would arrive, like a
//! cell with a bit error in its header (`docs/design/engine-order.md`). Each rule counts the cells or frames of one VC
//! on the link, including those lost by another rule. A delayed frame leaves the link later (`delay_line.rs`).

use typed_index_collections::{TiVec, ti_vec};

use crate::cell::{Cell, FrameNumber};
use crate::index::{Label, LinkIndex, VcIndex, indices};
use crate::link_changes::{ChangingDelay, Lateness};
use crate::rng::Stream;
use crate::tcp::Segment;
use crate::units::{Duration, Span, Time};

indices! {
    /// Index of a link with rules for losses or delays, among all such links of a network.
    LossyIndex;
}

/// A rule by which a link loses cells of a VC.
#[derive(Clone, Debug, PartialEq)]
pub struct LossRule {
    /// The VC, which must cross the link. The link must not lead from a host to an edge device, which receives whole
    /// packets.
    pub vc: VcIndex,
    /// Unit that the rule counts and loses: packets or cells.
    pub unit: LossUnit,
    /// Selects the packets or cells that are lost.
    pub pattern: LossPattern,
}

/// A rule by which a link delays packets of a VC.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayRule {
    /// The VC, which must cross the link. The link must not lead from a host to an edge device.
    pub vc: VcIndex,
    /// Selects the packets that are delayed. A pattern with a probability uses the same random stream as a loss rule
    /// for packets.
    pub pattern: LossPattern,
    /// Additional delay of the packets. If several rules delay a packet, the longest delay applies.
    pub by: Duration,
}

/// The unit that a rule counts and loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossUnit {
    /// Frames with all their cells, numbered from 0 in the order in which their first cell enters the link.
    Packets,
    /// Single cells, including RM cells, numbered from 0 in the order in which they enter the link.
    Cells,
}

/// Selects the packets or cells that are lost or delayed.
#[derive(Clone, Debug, PartialEq)]
pub enum LossPattern {
    /// The packets or cells with the listed numbers, in ascending order.
    Numbers(Vec<u64>),
    /// One packet or cell in `period`, starting with number `first`.
    Every {
        /// Distance from one selected packet or cell to the next, at least 1.
        period: u64,
        /// Number of the first selected packet or cell.
        first: u64,
    },
    /// Each packet or cell with this probability, drawn from the rule's own stream `link/<name>/losses/<vc>/<unit>`.
    Probability(f64),
    /// Bursts of losses, drawn from the rule's own stream `link/<name>/losses/<vc>/<unit>/gilbert_elliott`.
    GilbertElliott(GilbertElliott),
    /// The packet that carries the byte at this offset of its flow, for the first `times` times that the byte enters
    /// the link. The unit must be packets.
    Byte {
        /// Offset of the byte in the flow's data, from 0.
        offset: u64,
        /// Number of transmissions that are lost, including retransmissions.
        times: u64,
    },
}

/// A link with a good and a bad state (E. N. Gilbert, BSTJ 39, 1960; E. O. Elliott, BSTJ 42, 1963). The link starts in
/// the good state. Each packet or cell is lost with the probability of the state, and then the state may change. In the
/// long run, the bad state has a share of p / (p + r), and lasts 1 / r packets or cells on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// p: probability of the change from the good to the bad state.
    pub p: f64,
    /// r: probability of the change from the bad to the good state.
    pub r: f64,
    /// Probability of a loss in the good state.
    pub good: f64,
    /// Probability of a loss in the bad state.
    pub bad: f64,
}

/// The reason for the loss of a cell: the number of the packet or cell selected by a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLoss {
    /// The unit that the rule counts.
    pub unit: LossUnit,
    /// The lost packet or cell's number among the VC's packets or cells on the link.
    pub number: u64,
    /// True if this is the first cell of its frame that the link loses.
    pub cuts: bool,
}

impl LinkLoss {
    /// Returns the reason in words, without the number.
    pub fn reason(&self) -> &'static str {
        match self.unit {
            LossUnit::Packets => "packet chosen by a loss rule",
            LossUnit::Cells => "cell chosen by a loss rule",
        }
    }
}

/// The result for a cell at the end of a link with rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    Passes,
    /// The cell is lost.
    Lost(LinkLoss),
    /// The link delays the frame of this packet or cell by the given time. Later packets may overtake it.
    Delayed(Span),
    /// The link delays the cell by the given time, or until it has delivered all earlier cells.
    InOrder(Span),
}

/// Counters of a VC's cells at the end of a link with losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossCounters {
    /// Cells that reached the end of the link, including cells that are then lost.
    pub came: u64,
    /// Cells lost.
    pub lost: u64,
    /// Frames that lost at least one cell.
    pub cut_frames: u64,
}

impl LossCounters {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            came: self.came + other.came,
            lost: self.lost + other.lost,
            cut_frames: self.cut_frames + other.cut_frames,
        }
    }
}

/// Counts of packets or cells that reached a rule during a run, and of those that it selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCounters {
    /// Packets or cells that reached the end of the link. For a byte rule: number of the flow's bytes up to the last
    /// byte that reached the end of the link.
    pub reached: u64,
    /// Packets or cells that the rule lost or delayed.
    pub selected: u64,
}

impl RuleCounters {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { reached: self.reached + other.reached, selected: self.selected + other.selected }
    }
}

impl LossPattern {
    /// Describes packets or cells that a rule should have selected in a run but that never arrived; `None` if all
    /// arrived. `of` is the flow or VC, and `counters` are the rule's counters at the end of the run.
    pub fn unmet(&self, unit: LossUnit, of: &str, counters: RuleCounters) -> Option<String> {
        let RuleCounters { reached, selected } = counters;
        match *self {
            LossPattern::Numbers(ref numbers) => never_came(unit, numbers, of, reached),
            LossPattern::Every { first, .. } => never_came(unit, &[first], of, reached),
            LossPattern::Byte { offset, .. } if selected == 0 => {
                Some(format!("byte {offset} of {of} was never sent over this link; {of} sent {reached} bytes"))
            }
            LossPattern::Byte { offset, times, .. } if selected < times => {
                let sent = if selected == 1 { "once".to_owned() } else { format!("{selected} times") };
                Some(format!("byte {offset} of {of} was sent over this link {sent}, not {times} times"))
            }
            LossPattern::Byte { .. } | LossPattern::Probability(_) | LossPattern::GilbertElliott(_) => None,
        }
    }
}

/// Describes which of these packets or cells never arrived; `None` if all arrived. `numbers` are in ascending order,
/// `of` is the flow or VC, and `came` is the number of packets or cells that arrived.
pub fn never_came(unit: LossUnit, numbers: &[u64], of: &str, came: u64) -> Option<String> {
    const MOST: usize = 3;
    let rest = &numbers[numbers.partition_point(|&number| number < came)..];
    let shown: Vec<String> = rest.iter().take(MOST).map(u64::to_string).collect();
    let name = |count: u64| match count {
        1 => unit.name().trim_end_matches('s'),
        _ => unit.name(),
    };
    let which = match &*shown {
        [] => return None,
        [only] => format!("{} {only} of {of} was", name(1)),
        several if rest.len() > MOST => {
            format!("{} {} and {} more of {of} were", name(2), several.join(", "), rest.len() - MOST)
        }
        [before @ .., last] => format!("{} {} and {last} of {of} were", name(2), before.join(", ")),
    };
    let numbered = if came > 0 { format!(", numbers 0 to {}", came - 1) } else { String::new() };
    Some(format!("{which} never sent over this link; {of} sent {came} {}{numbered}", name(came)))
}

/// The state of all rules of a link.
#[derive(Clone, Debug)]
pub struct LinkLosses {
    /// The link.
    pub link: LinkIndex,
    vcs: TiVec<Label, VcLosses>,
    /// Delays of all packets, if the delay of the link changes.
    delay: Option<ChangingDelay>,
}

#[derive(Clone, Debug, Default)]
struct VcLosses {
    counters: LossCounters,
    /// The latest frame that lost a cell.
    cut: Option<FrameNumber>,
    rules: Vec<RuleState>,
}

#[derive(Clone, Debug)]
struct RuleState {
    /// Index of the rule among the link's rules.
    place: usize,
    /// The branch whose frames the rule counts, if several VCs have merged.
    branch: Option<u8>,
    unit: LossUnit,
    pattern: LossPattern,
    /// Delay of the selected packets; `None` if they are lost.
    delay: Option<Span>,
    draws: Stream,
    /// Number of packets or cells counted so far.
    count: u64,
    /// True in the bad state of a link with two states.
    is_bad: bool,
    /// Number of packets or cells that the rule has selected so far.
    selected: u64,
    /// For a byte rule: number of the flow's bytes up to the last byte that arrived.
    bytes: u64,
    /// For a rule for packets: the current frame, and whether it is selected.
    frame: Option<FrameNumber>,
    selects_frame: bool,
}

impl LinkLosses {
    /// Creates the state of a link that `vcs` VCs cross, at first without rules.
    pub(crate) fn new(link: LinkIndex, vcs: usize, delay: Option<ChangingDelay>) -> Self {
        Self { link, vcs: ti_vec![VcLosses::default(); vcs], delay }
    }

    /// Adds a rule for the VC with this label. If several VCs have merged, the rule counts the frames of `branch`. A
    /// pattern with a probability draws from `draws`.
    pub fn add(&mut self, label: Label, rule: &LossRule, branch: Option<u8>, draws: Stream) {
        self.add_rule(label, rule.unit, &rule.pattern, None, branch, draws);
    }

    /// Adds a rule that delays packets of the VC with this label by `delay`.
    pub fn add_delay(&mut self, label: Label, rule: &DelayRule, delay: Span, branch: Option<u8>, draws: Stream) {
        self.add_rule(label, LossUnit::Packets, &rule.pattern, Some(delay), branch, draws);
    }

    fn add_rule(
        &mut self,
        label: Label,
        unit: LossUnit,
        pattern: &LossPattern,
        delay: Option<Span>,
        branch: Option<u8>,
        draws: Stream,
    ) {
        let pattern = pattern.clone();
        let place = self.vcs.iter().map(|vc| vc.rules.len()).sum();
        self.vcs[label].rules.push(RuleState {
            place,
            branch,
            unit,
            pattern,
            delay,
            draws,
            count: 0,
            is_bad: false,
            selected: 0,
            bytes: 0,
            frame: None,
            selects_frame: false,
        });
    }

    /// Records that a cell has reached the end of the link at `now`. Returns whether the link delivers, loses or delays it.
    /// Cells of a VC must be passed in order. `segment` returns the bytes of the flow that the cell's packet carries,
    /// if any.
    pub fn take(&mut self, cell: Cell, now: Time, segment: impl Fn() -> Option<Segment>) -> Fate {
        let VcLosses { counters, cut, rules } = &mut self.vcs[cell.label()];
        counters.came += 1;
        let (mut loss, mut delay) = (None, None);
        for rule in rules {
            let selected = rule.take(cell, &segment);
            match rule.delay {
                None => loss = loss.or(selected),
                of_rule => delay = delay.max(of_rule.filter(|_| selected.is_some())),
            }
        }
        let Some((unit, number)) = loss else {
            return match self.delay.as_mut().map(|delay| delay.of_cell(cell, now)) {
                None => delay.map_or(Fate::Passes, Fate::Delayed),
                Some(Lateness::InOrder(by)) => Fate::InOrder(by),
                Some(Lateness::Overtaken(by)) => Fate::Delayed(by),
                Some(Lateness::Overtakes) => Fate::Passes,
            };
        };
        let cuts = !cell.is_rm() && cut.replace(cell.frame) != Some(cell.frame);
        counters.lost += 1;
        counters.cut_frames += u64::from(cuts);
        Fate::Lost(LinkLoss { unit, number, cuts })
    }

    /// Returns the counters of each VC, by label.
    pub fn counters(&self) -> impl Iterator<Item = LossCounters> {
        self.vcs.iter().map(|vc| vc.counters)
    }

    /// Returns the counters of each rule, in the order of the link's rules.
    pub fn rules(&self) -> Vec<RuleCounters> {
        let mut rules: Vec<&RuleState> = self.vcs.iter().flat_map(|vc| &vc.rules).collect();
        rules.sort_unstable_by_key(|rule| rule.place);
        rules.into_iter().map(RuleState::counters).collect()
    }

    /// Returns the counters of a VC.
    pub fn of_vc(&self, label: Label) -> LossCounters {
        self.vcs[label].counters
    }
}

impl RuleState {
    fn counters(&self) -> RuleCounters {
        let reached = if matches!(self.pattern, LossPattern::Byte { .. }) { self.bytes } else { self.count };
        RuleCounters { reached, selected: self.selected }
    }

    /// Counts a cell. If the rule selects it, returns the unit and the number within that unit.
    fn take(&mut self, cell: Cell, segment: impl Fn() -> Option<Segment>) -> Option<(LossUnit, u64)> {
        let of_other_branch = self.branch.is_some_and(|branch| branch != cell.frame.branch());
        match self.unit {
            _ if of_other_branch => return None,
            LossUnit::Cells => self.selects_frame = self.selects_next(segment),
            LossUnit::Packets if cell.is_rm() => return None,
            LossUnit::Packets if self.frame == Some(cell.frame) => {}
            LossUnit::Packets => {
                self.frame = Some(cell.frame);
                self.selects_frame = self.selects_next(segment);
            }
        }
        self.selects_frame.then(|| (self.unit, self.count - 1))
    }

    /// Counts the next packet or cell. Returns whether the rule selects it.
    fn selects_next(&mut self, segment: impl Fn() -> Option<Segment>) -> bool {
        let number = self.count;
        self.count += 1;
        let selects = match self.pattern {
            LossPattern::Numbers(ref numbers) => numbers.binary_search(&number).is_ok(),
            LossPattern::Every { period, first } => number >= first && (number - first).is_multiple_of(period),
            LossPattern::Probability(share) => self.draws.unit() < share,
            LossPattern::GilbertElliott(GilbertElliott { p, r, good, bad }) => {
                let [loses, changes] = if self.is_bad { [bad, r] } else { [good, p] };
                let loses = self.draws.unit() < loses;
                self.is_bad ^= self.draws.unit() < changes;
                loses
            }
            LossPattern::Byte { offset, times } => {
                let segment = segment();
                let end = |segment: &Segment| segment.seq + u64::from(segment.len);
                self.bytes = self.bytes.max(segment.as_ref().map_or(0, end));
                let has_byte = |segment: Segment| (segment.seq..end(&segment)).contains(&offset);
                self.selected < times && segment.is_some_and(has_byte)
            }
        };
        self.selected += u64::from(selects);
        selects
    }
}

impl LossUnit {
    /// Returns the scenario key for rules that count in this unit.
    pub fn name(self) -> &'static str {
        match self {
            Self::Packets => "packets",
            Self::Cells => "cells",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_for_a_loss_names_the_unit_that_the_rule_counts() {
        for (unit, name) in [(LossUnit::Packets, "packet"), (LossUnit::Cells, "cell")] {
            let loss = LinkLoss { unit, number: 1, cuts: true };
            assert!(loss.reason().starts_with(name), "{name}: {}", loss.reason());
        }
    }
}
