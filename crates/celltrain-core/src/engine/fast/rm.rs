//! RM cells on their way, as far as they need an instant of their own: passing a switch that writes into them, and at the
//! end of their loop. The cells themselves travel like any others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::plan::{Passed, Plan, RmWay};
use crate::abr::RmCell;
use crate::shaping::Place;
use crate::units::Time;

/// Something an RM cell does at an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Errand {
    pub(super) time: Time,
    /// Index of the link it comes in on.
    pub(super) link: u32,
    /// The VC it travels on.
    pub(super) vc: u32,
    /// Its number there.
    pub(super) number: u32,
    pub(super) what: What,
}

/// What it does.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// It comes to the end of its loop: as what it is turned around, if it goes forward.
    End(Option<RmCell>),
    /// It passes the switch of this place, whose allocator writes into it if it goes backward.
    Pass(Place),
}

impl Errand {
    /// Ends come before passes within an instant, each by link.
    fn order(&self) -> (Time, bool, u32) {
        (self.time, matches!(self.what, What::Pass(_)), self.link)
    }
}

impl Ord for Errand {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for Errand {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Errand {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Errand {}

/// All of them, and the count of RM cells that leave their VC within a stage.
pub(super) struct Errands {
    heap: BinaryHeap<Reverse<Errand>>,
    /// By link and label: RM cells whose departure is known and that leave their VC before the stage ends.
    leaving: Vec<Vec<u64>>,
    /// By link and label, for every transparent port they pass and at last for the end of their loop: how many of them
    /// arrive there only after the run.
    late: Vec<Vec<Vec<u64>>>,
}

impl Errands {
    pub(super) fn new(plan: &Plan) -> Self {
        let late = |way: &Option<RmWay>| {
            let end = way.as_ref().and_then(|way| way.end);
            end.map_or_else(Vec::new, |end| vec![0; end.passed + 1])
        };
        Self {
            heap: BinaryHeap::new(),
            leaving: plan.rm_ways.iter().map(|ways| vec![0; ways.len()]).collect(),
            late: plan.rm_ways.iter().map(|ways| ways.iter().map(late).collect()).collect(),
        }
    }

    pub(super) fn push(&mut self, errand: Errand) {
        self.heap.push(Reverse(errand));
    }

    pub(super) fn first(&self) -> Option<&Errand> {
        self.heap.peek().map(|errand| &errand.0)
    }

    pub(super) fn pop(&mut self) -> Option<Errand> {
        self.heap.pop().map(|errand| errand.0)
    }

    /// An RM cell that starts at `start` leaves its VC within the stage; whether it does so before the run ends.
    pub(super) fn leaves(
        &mut self,
        at: (usize, usize),
        start: Time,
        way: &RmWay,
        passed: &[Passed],
        end: Time,
    ) -> bool {
        let (link, label) = at;
        self.leaving[link][label] += 1;
        let here = way.end.expect("asked only where it does");
        let leads = passed[..here.passed].iter().map(|passed| passed.lead).chain([here.lead]);
        for (late, lead) in self.late[link][label].iter_mut().zip(leads) {
            *late += u64::from(start + lead > end);
        }
        start + here.lead <= end
    }

    /// Of the RM cells that leave their VC within a stage: how many there were, how many have passed its `i`th transparent
    /// port, and how many have left.
    pub(super) fn counted(&self, link: usize, label: usize) -> Leaving<'_> {
        Leaving { all: self.leaving[link][label], late: &self.late[link][label] }
    }
}

/// The count of RM cells that leave their VC within a stage.
pub(super) struct Leaving<'a> {
    pub(super) all: u64,
    late: &'a [u64],
}

impl Leaving<'_> {
    /// How many have passed the stage's `i`th transparent port; none of those behind the end of their loop.
    pub(super) fn passed(&self, i: usize) -> u64 {
        if i + 1 < self.late.len() { self.all - self.late[i] } else { 0 }
    }

    /// How many have left.
    pub(super) fn left(&self) -> u64 {
        self.late.last().map_or(0, |late| self.all - late)
    }
}
