//! The source of one ABR VC. It maintains ACR, and decides when the next in-rate cell starts and which kind of cell it
//! is.
//!
//! Source: ATM Forum TM 4.0, the source's rules 1 to 13, as `docs/mechanisms.md` 4.2 gives them. Each rule is cited
//! where it is implemented. The names ACR, CCR, ER, Nrm and so on are kept.
//!
//! Choices that the rules leave open: a forward RM cell required by rule 3(a) is not sent until data or a backward RM
//! cell is waiting, so an idle source is silent. ER of a forward RM cell is PCR. Of the optional use-it-or-lose-it
//! behaviour (rule 13), only rule 5 is implemented. If rule 8 says "at least" or "at most", the bound itself is used.
//! Out-of-rate forward RM cells (rule 11) are sent if the VC enables them, while ACR is below TCR and a cell is
//! waiting.

use super::{Parameters, RateFormat, Rates, RmCell, Rule};
use crate::coverage::reached;
use crate::units::{BitRate, Clock, Duration, Span, Time};

/// A kind of in-rate cell (rule 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An RM cell to the destination.
    ForwardRm,
    /// An RM cell from the other direction, which this end returns to its source.
    BackwardRm,
    /// A cell of a data frame. By rule 12, it leaves with EFCI = 0.
    Data,
}

/// Counts of cells sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Forward RM cells sent in rate.
    pub forward_rm_sent: u64,
    /// Forward RM cells sent out of rate.
    pub out_of_rate_sent: u64,
    /// Backward RM cells sent, both in rate and out of rate.
    pub backward_rm_sent: u64,
    /// Backward RM cells that arrived at this source, no matter which node created them.
    pub backward_rm_received: u64,
    /// Backward RM cells that were overwritten by newer ones while waiting to be sent.
    pub overwritten: u64,
}

/// The source of one ABR VC. All times are start times of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    rates: Rates,
    nrm: u32,
    mrm: u32,
    trm: Span,
    rif: f64,
    rdf: f64,
    crm: u32,
    cdf: f64,
    adtf: Span,
    out_of_rate: bool,
    rate_format: RateFormat,
    units_per_second: f64,
    /// The transmission time of a cell on the VC's first link.
    cell_time: Span,

    /// ACR in cells per second.
    acr: f64,
    /// The rule that last changed ACR, for observers.
    rule: Rule,
    /// Time between two in-rate cells at ACR.
    interval: Span,
    pace: Pace,
    /// Start of the last in-rate forward RM cell.
    forward_at: Option<Time>,
    /// In-rate cells started since the last in-rate forward RM cell.
    cells: u32,
    /// True if a backward RM cell was sent after the last in-rate forward RM cell.
    backward_sent: bool,
    waiting: Option<RmCell>,
    /// In-rate forward RM cells sent since the last backward RM cell with BN = 0 arrived.
    unanswered: u32,
    /// Start of the last out-of-rate forward RM cell.
    out_of_rate_at: Option<Time>,
    train: Train,
    counters: Counters,
}

/// State of the stream of in-rate cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pace {
    /// Start of the last in-rate cell.
    last: Option<Time>,
    /// Earliest start of the next in-rate cell.
    next: Time,
}

/// The latest data cells, sent at equal intervals, which can still be taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Train {
    first: Time,
    cells: u32,
    before: Pace,
}

impl Source {
    /// Creates a source that has sent nothing. `link_rate` is the rate of the VC's first link; `round_trip` is the
    /// round-trip time of a cell that never queues.
    pub fn new(parameters: &Parameters, link_rate: BitRate, round_trip: Duration, clock: Clock) -> Self {
        let rates = parameters.rates(link_rate, round_trip);
        let mut source = Self {
            rates,
            nrm: parameters.nrm,
            mrm: parameters.mrm,
            trm: clock.span(parameters.trm),
            rif: parameters.rif,
            rdf: parameters.rdf,
            crm: parameters.crm(),
            cdf: parameters.cdf,
            adtf: clock.span(parameters.adtf),
            out_of_rate: parameters.out_of_rate,
            rate_format: parameters.rate_format,
            units_per_second: clock.units_per_second as f64,
            cell_time: clock.cell_time(link_rate),
            acr: 0.0,
            rule: Rule::Initial,
            interval: Span(0),
            pace: Pace::default(),
            forward_at: None,
            cells: 0,
            backward_sent: false,
            waiting: None,
            unanswered: 0,
            out_of_rate_at: None,
            train: Train::default(),
            counters: Counters::default(),
        };
        source.set_acr(rates.icr); // Rule 2.
        source
    }

    /// Returns ACR in cells per second.
    pub fn acr(&self) -> f64 {
        self.acr
    }

    /// Returns the rule that last changed ACR.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// Returns the time between two in-rate cells at ACR: 1/ACR rounded up to a whole unit, but at least the cell time
    /// of the first link. Returns `u64::MAX` if the interval is longer than any possible run.
    pub fn interval(&self) -> Span {
        self.interval
    }

    /// Returns the earliest start of the next in-rate cell (rule 1), which may be in the past. Returns [`Time::NEVER`] while
    /// ACR is almost zero.
    pub fn next_departure(&self) -> Time {
        self.pace.next
    }

    /// Returns whether a backward RM cell is waiting to be sent, whether in rate or out of rate.
    pub fn backward_rm_waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// Returns the earliest start of the next cell of any kind in the current state, which may be in the past. Returns
    /// `None` if there is no cell to send, or if ACR is almost zero.
    pub fn next_start(&self, data_waits: bool) -> Option<Time> {
        let in_rate =
            (data_waits || self.in_rate_rm_waits()).then_some(self.pace.next).filter(|&next| next != Time::NEVER);
        in_rate.into_iter().chain(self.next_out_of_rate(data_waits)).min()
    }

    /// Returns whether the cell that starts at `now` is sent out of rate. `now` must not be earlier than
    /// [`next_start`](Self::next_start). A turned-around out-of-rate cell precedes any in-rate cell. An out-of-rate
    /// forward cell is sent only if no in-rate cell may be sent.
    pub fn goes_out_of_rate(&self, now: Time, data_waits: bool) -> bool {
        let is_due = (data_waits || self.in_rate_rm_waits()) && self.pace.next <= now;
        self.out_of_rate_rm_waits() || !is_due
    }

    /// Returns whether a backward RM cell is waiting to be sent in rate, by [rule 3](Self::next_kind).
    fn in_rate_rm_waits(&self) -> bool {
        self.waiting.is_some_and(|rm| !rm.out_of_rate)
    }

    /// Returns whether a backward RM cell is waiting to be sent out of rate, by the destination's rule 6.
    fn out_of_rate_rm_waits(&self) -> bool {
        self.waiting.is_some_and(|rm| rm.out_of_rate)
    }

    /// Returns the numbers of cells sent and received so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns the kind of the next in-rate cell if it starts at `now` (rule 3). Returns `None` if neither data nor a
    /// backward RM cell is waiting.
    pub fn next_kind(&self, now: Time, data_waits: bool) -> Option<Kind> {
        if !data_waits && !self.in_rate_rm_waits() {
            None
        } else if self.forward_rm_is_due(now) {
            Some(Kind::ForwardRm) // Rule 3(a).
        } else if self.in_rate_rm_waits() && !(self.backward_sent && data_waits) {
            Some(Kind::BackwardRm) // Rule 3(b).
        } else {
            Some(Kind::Data) // Rule 3(c).
        }
    }

    /// Starts an in-rate cell now, and returns its content if it is an RM cell. Its CLP is 0 (rule 4).
    pub fn sent(&mut self, now: Time, kind: Kind) -> Option<RmCell> {
        if kind == Kind::Data {
            self.sent_data(now, 1);
            return None;
        }
        assert!(now >= self.pace.next, "in-rate cells start no faster than ACR");
        assert_eq!(
            kind == Kind::ForwardRm,
            self.forward_rm_is_due(now),
            "rule 3(a) decides when the next cell is a forward RM cell"
        );
        let content = if kind == Kind::ForwardRm {
            self.prepare_forward_rm(now);
            self.counters.forward_rm_sent += 1;
            self.forward_rm(false)
        } else {
            self.backward_sent = true;
            self.cells += 1;
            self.counters.backward_rm_sent += 1;
            self.waiting.take().expect("a backward RM cell is sent only if one is waiting")
        };
        self.pace = Pace { last: Some(now), next: after(now, self.interval) };
        self.train = Train::default();
        Some(content)
    }

    /// Returns how many data cells may be sent before rule 3 requires an RM cell. The first starts at `first`, and the
    /// others follow an [`interval`](Self::interval) apart. Assumes that data never runs out and that nothing arrives
    /// in the meantime.
    pub fn data_cells_until_rm(&self, first: Time) -> u32 {
        let Some(forward_at) = self.forward_at else { return 0 };
        if self.in_rate_rm_waits() && !self.backward_sent {
            return 0;
        }
        // Rule 3(a) allows Nrm - 1 cells, or Mrm cells plus those that start before Trm has elapsed. No run lasts
        // longer than `LONGEST`.
        let by_count = (self.nrm - 1).saturating_sub(self.cells);
        let least = self.mrm.saturating_sub(self.cells);
        let by_time = (forward_at + self.trm).0.saturating_sub(first.0).div_ceil(self.interval.0);
        let started = 1 + LONGEST.saturating_sub(first.0) / self.interval.0;
        let cells = by_time.max(u64::from(least)).min(u64::from(by_count)).min(started);
        u32::try_from(cells).expect("the number of cells is below Nrm")
    }

    /// Starts `cells` data cells: the first at `first`, the others an [`interval`](Self::interval) apart. Equivalent to
    /// calling [`sent`](Self::sent) for each.
    pub fn sent_data(&mut self, first: Time, cells: u32) {
        if cells == 0 {
            return;
        }
        assert!(first >= self.pace.next, "in-rate cells start no faster than ACR");
        assert!(cells <= self.data_cells_until_rm(first), "rule 3 requires an RM cell before this data cell");
        if self.train.cells == 0 || first != self.pace.next {
            self.train = Train { first, cells: 0, before: self.pace };
        }
        self.train.cells += cells;
        self.cells += cells;
        self.pace = self.train.pace(self.interval);
    }

    /// Undoes `sent_data` for the last `cells` data cells, because they will not start as planned. The cells must be an
    /// interval apart. Since `sent_data`, no RM cell may have been sent and ACR must not have changed.
    pub fn unsend_data(&mut self, cells: u32) {
        assert!(cells <= self.train.cells, "only data cells sent since the last RM cell are taken back");
        self.train.cells -= cells;
        self.cells -= cells;
        self.pace = self.train.pace(self.interval);
    }

    /// Handles a backward RM cell that returns to its source. If it changes ACR, the caller must already have taken
    /// back the data cells that have not started by `now`.
    pub fn on_backward_rm(&mut self, rm: &RmCell, now: Time) {
        assert!(rm.backward, "RM cells that return to the source have the backward direction");
        self.counters.backward_rm_received += 1;
        if !rm.bn {
            self.unanswered = 0; // Rule 6.
        }
        let acr = self.acr_after(rm);
        if acr == self.acr {
            return;
        }
        assert!(
            self.pace.last.is_none_or(|last| last <= now),
            "cells whose transmission has not started are taken back before ACR changes"
        );
        self.rule = self.rule_of(rm, acr);
        self.set_acr(acr);
        // If ACR has risen, the next cell is rescheduled. If it has fallen, the next cell keeps the start scheduled at
        // the old rate.
        if let Some(last) = self.pace.last {
            self.pace.next = self.pace.next.min(after(last, self.interval));
        }
        self.train = Train::default();
    }

    /// Returns the new ACR after this backward RM cell.
    pub fn acr_after(&self, rm: &RmCell) -> f64 {
        let Rates { pcr, mcr, .. } = self.rates;
        // Rule 8.
        let acr = if rm.ci {
            (self.acr - self.acr * self.rdf).max(mcr)
        } else if rm.ni {
            self.acr
        } else {
            (self.acr + self.rif * pcr).min(pcr)
        };
        // Rule 9.
        let acr = acr.min(self.rate_format.through_cell(rm.er));
        reached!(AcrHeldAtMcr if acr < mcr);
        acr.max(mcr)
    }

    /// Returns the rule by which this backward RM cell sets ACR to `acr`.
    fn rule_of(&self, rm: &RmCell, acr: f64) -> Rule {
        let by_er = acr == self.rate_format.through_cell(rm.er).max(self.rates.mcr);
        match rm {
            // Neither CI nor ER reduces ACR below MCR.
            RmCell { ci: true, .. } if acr == (self.acr - self.acr * self.rdf).max(self.rates.mcr) => {
                Rule::CongestionIndication
            }
            _ if by_er => Rule::ExplicitRate,
            _ => Rule::Increase,
        }
    }

    /// Queues a backward RM cell that the destination at this end has turned around, to be sent in or out of rate
    /// according to its CLP. It overwrites a waiting backward RM cell (destination rule 3), so that no older cell
    /// follows it (rule 4).
    pub fn turn_around(&mut self, rm: RmCell) {
        assert!(rm.backward, "the destination has turned this RM cell around");
        reached!(WaitingRmOverwritten if self.waiting.is_some());
        self.counters.overwritten += u64::from(self.waiting.is_some());
        self.waiting = Some(rm);
    }

    /// Returns the earliest start of the next out-of-rate RM cell in the current state, which may be in the past. A
    /// turned-around cell is sent immediately (destination rule 6). Forward cells (rule 11) are spaced by 1/TCR from
    /// the last forward RM cell, in rate or not, while ACR is below TCR and data or a backward RM cell is waiting. They
    /// are sent only if the VC enables them.
    pub fn next_out_of_rate(&self, data_waits: bool) -> Option<Time> {
        if self.out_of_rate_rm_waits() {
            return Some(Time::default());
        }
        if !self.out_of_rate || self.acr >= self.rates.tcr || !(data_waits || self.in_rate_rm_waits()) {
            return None;
        }
        let last = self.forward_at.max(self.out_of_rate_at);
        Some(last.map_or(Time::default(), |last| after(last, self.interval_at(self.rates.tcr))))
    }

    /// Starts an out-of-rate RM cell and returns its content. Its CLP is 1 (rule 11, destination rule 6), and it does
    /// not affect in-rate cells: rules 1, 3, 5 and 6 ignore it.
    pub fn sent_out_of_rate(&mut self, now: Time) -> RmCell {
        assert!(
            self.next_out_of_rate(true).is_some_and(|next| next <= now),
            "an out-of-rate RM cell answers another one, or is sent no faster than TCR"
        );
        if self.out_of_rate_rm_waits() {
            self.counters.backward_rm_sent += 1;
            return self.waiting.take().expect("an RM cell is waiting");
        }
        self.out_of_rate_at = Some(now);
        self.counters.out_of_rate_sent += 1;
        reached!(OutOfRateRmSent);
        self.forward_rm(true)
    }

    /// Returns whether a forward RM cell is the next in-rate cell if it starts at `now` (rules 2 and 3(a)).
    fn forward_rm_is_due(&self, now: Time) -> bool {
        self.forward_at.is_none_or(|forward_at| {
            self.cells + 1 >= self.nrm || (self.cells >= self.mrm && now >= forward_at + self.trm)
        })
    }

    /// Updates ACR before a forward RM cell that starts at `now` (rules 5 and 6). The new ACR applies to the following
    /// cells (rule 7).
    fn prepare_forward_rm(&mut self, now: Time) {
        reached!(RmDueByTime if self.forward_at.is_some() && self.cells + 1 < self.nrm);
        let mut acr = self.acr;
        // Rule 5 uses the time since the last forward RM cell, which is zero if none has been sent.
        if acr > self.rates.icr && self.forward_at.is_some_and(|forward_at| now - forward_at > self.adtf) {
            reached!(AcrResetWhenIdle);
            acr = self.rates.icr;
            self.rule = Rule::Idle;
        }
        // Rule 6.
        if self.unanswered >= self.crm {
            let before = acr;
            acr = (acr - acr * self.cdf).max(self.rates.mcr);
            if acr != before {
                reached!(CrmCutOff);
                self.rule = Rule::Unanswered;
            }
        }
        self.set_acr(acr);
        self.unanswered = self.unanswered.saturating_add(1);
        self.forward_at = Some(now);
        self.cells = 0;
        self.backward_sent = false;
    }

    /// Returns the content of a forward RM cell (rules 7 and 10), including its CLP (rules 4 and 11).
    fn forward_rm(&self, out_of_rate: bool) -> RmCell {
        let rate = |rate| self.rate_format.through_cell(rate);
        RmCell { out_of_rate, ..RmCell::forward(rate(self.rates.pcr), rate(self.acr), rate(self.rates.mcr)) }
    }

    fn set_acr(&mut self, acr: f64) {
        self.acr = acr;
        self.interval = self.interval_at(acr);
    }

    /// Returns 1/rate, rounded up to a whole unit. The rounding tolerates float errors, so that an interval of a whole
    /// number of units does not change.
    fn interval_at(&self, rate: f64) -> Span {
        let units = self.units_per_second / rate * (1.0 - FLOAT_ERROR);
        if units < LONGEST as f64 {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the value is an integer from 0 to 2^62"
            )]
            let units = units.ceil() as u64;
            Span(units).max(self.cell_time)
        } else {
            Span(u64::MAX)
        }
    }
}

impl Train {
    /// Returns the state of the stream of in-rate cells after the train.
    fn pace(&self, interval: Span) -> Pace {
        match self.cells {
            0 => self.before,
            cells => {
                let last = self.first + interval * u64::from(cells - 1);
                Pace { last: Some(last), next: after(last, interval) }
            }
        }
    }
}

fn after(time: Time, interval: Span) -> Time {
    Time(time.0.saturating_add(interval.0))
}

/// Bound on the relative error of a rate, and of a quotient by a rate: 2^-48. Each operation rounds by only 2^-53, so
/// the bound has a margin.
const FLOAT_ERROR: f64 = 1.0 / (1_u64 << 48) as f64;
/// Scenario checks limit all times to this number of units.
const LONGEST: u64 = 1 << 62;

#[cfg(test)]
mod tests;
