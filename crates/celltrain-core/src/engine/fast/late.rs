//! Cells with known departures that arrive after the horizon. They count at each place that they have not reached yet,
//! and continue when the horizon moves.

use typed_index_collections::{TiVec, ti_vec};

use super::plan::{Passed, Plan, StageEnd};
use super::train::cells_after;
use crate::cell::Run;
use crate::coverage::reached;
use crate::index::{Label, LinkIndex};
use crate::units::{Span, Time};

/// Cells that have been sent but arrive after the horizon.
pub(super) struct Late {
    /// Cells that arrive after the horizon, counted by link and VC label, at each transparent port on the path of the
    /// stage and at its end.
    pub(super) counts: TiVec<LinkIndex, TiVec<Label, Box<[u64]>>>,
    pub(super) held_back: Vec<HeldBack>,
    /// RM cells that reach the end of their loop after the horizon.
    pub(super) rm_cells: Vec<RmDeparture>,
    /// Number of RM cells that left their VC within the stage by the horizon, by link and label. Empty if no VC's rate
    /// is controlled.
    rm_cells_left: TiVec<LinkIndex, TiVec<Label, u64>>,
    /// The end of the run. If a window ends at the end of the run, no cells are held back for the next window.
    pub(super) end: Time,
    /// Cells are held back at horizons before this instant: the end of the run, or [`Time::NEVER`] if cells are held back
    /// even then, so that the delays of their packets are known.
    held_until: Time,
}

/// Cells that reach the end of their stage after the horizon and continue when it moves.
#[derive(Clone, Copy)]
pub(super) struct HeldBack {
    pub(super) link: LinkIndex,
    pub(super) run: Run,
    pub(super) first_start: Time,
    pub(super) period: Span,
    /// Time from the start of a cell to its arrival at the end of the stage.
    pub(super) lead: Span,
}

/// The departure of an RM cell that leaves its VC within this stage.
#[derive(Clone, Copy)]
pub(super) struct RmDeparture {
    pub(super) link: LinkIndex,
    pub(super) label: Label,
    pub(super) start: Time,
}

impl Late {
    pub(super) fn new(plan: &Plan, end: Time, holds_at_end: bool) -> Self {
        let zeros = |passed: &Vec<Passed>| vec![0; passed.len() + 1].into();
        Self {
            counts: plan.passed.iter().map(|stages| stages.iter().map(zeros).collect()).collect(),
            held_back: Vec::new(),
            rm_cells: Vec::new(),
            rm_cells_left: plan.rm_ways.iter().map(|ways| ti_vec![0; ways.len()]).collect(),
            end,
            held_until: if holds_at_end { Time::NEVER } else { end },
        }
    }

    /// Holds back the cells of a run that do not reach the end of their stage by the horizon, and counts them as late.
    /// Returns the other cells. They do not end a frame, so the arrival of the last of them has no effect.
    #[cold]
    pub(super) fn hold_back(&mut self, whole: HeldBack, plan: &Plan, horizon: Time) -> Option<Run> {
        let HeldBack { link, run, first_start, period, .. } = whole;
        let missed = self.change(&whole, plan, horizon, |late, cells| *late += cells);
        let goes_whole = matches!(plan.stages[link][run.last.label()].end, StageEnd::Shaped { .. });
        let in_time = if goes_whole { 0 } else { run.cells - missed };
        reached!(TrainSplitByHorizon if in_time > 0 && in_time < run.cells);
        // No cells continue on their path after the end of the run.
        if horizon < self.held_until {
            let run = Run { cells: run.cells - in_time, ..run };
            self.held_back.push(HeldBack { run, first_start: first_start + period * u64::from(in_time), ..whole });
        }
        run.at_most(in_time)
    }

    /// Subtracts cells that were held back at an earlier horizon from the number of late cells.
    pub(super) fn forget(&mut self, held: &HeldBack, plan: &Plan, horizon: Time) {
        self.change(held, plan, horizon, |late, cells| *late -= cells);
    }

    /// Adds or subtracts late cells of a run: cells that arrive after the horizon at each transparent port and at the
    /// end of their stage. Returns how many cells do not reach that end in time.
    fn change(&mut self, held: &HeldBack, plan: &Plan, horizon: Time, change: fn(&mut u64, u64)) -> u32 {
        let &HeldBack { link, run: Run { last, cells }, first_start, period, lead } = held;
        let mut missed = 0;
        let leads = plan.passed[link][last.label()].iter().map(|passed| passed.lead).chain([lead]);
        for (late, lead) in self.counts[link][last.label()].iter_mut().zip(leads) {
            missed = cells_after(horizon, first_start + lead, period, cells);
            change(late, u64::from(missed));
        }
        missed
    }

    /// Returns the number of RM cells that have left their VC within a stage.
    pub(super) fn rm_cells_left(&self, link: LinkIndex, label: Label) -> u64 {
        self.rm_cells_left.get(link).map_or(0, |left| left[label])
    }

    /// Records an RM cell that leaves its VC within this stage. Returns whether the cell leaves before the run ends.
    pub(super) fn leaves(&mut self, cell: RmDeparture, plan: &Plan, horizon: Time) -> bool {
        let RmDeparture { link, label, start } = cell;
        let end = plan.rm_end(link, label);
        let (passed, behind) = self.counts[link][label].split_at_mut(end.passed);
        // The cell never reaches the ports after the end of its loop.
        for late in behind {
            *late += 1;
        }
        let arrival = start + end.lead;
        if arrival <= horizon {
            self.rm_cells_left[link][label] += 1;
            return true;
        }
        for (late, port) in passed.iter_mut().zip(&plan.passed[link][label]) {
            *late += u64::from(start + port.lead > horizon);
        }
        if horizon < self.end {
            self.rm_cells.push(cell);
        }
        arrival <= self.end
    }

    /// Moves the horizon from `before` to `horizon`. Only RM cells that arrive after the new horizon count as late.
    pub(super) fn move_horizon(&mut self, plan: &Plan, before: Time, horizon: Time) {
        self.rm_cells.retain(|&RmDeparture { link, label, start }| {
            let end = plan.rm_end(link, label);
            let counts = &mut self.counts[link][label][..end.passed];
            for (late, port) in counts.iter_mut().zip(&plan.passed[link][label]) {
                let arrival = start + port.lead;
                *late = *late - u64::from(arrival > before) + u64::from(arrival > horizon);
            }
            let is_late = start + end.lead > horizon;
            self.rm_cells_left[link][label] += u64::from(!is_late);
            is_late
        });
    }
}
