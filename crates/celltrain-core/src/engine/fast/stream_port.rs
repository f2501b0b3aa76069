//! A contended port whose cells come one by one, in the streams of its links, and go on in the stream of its own.
//!
//! First in, first out. What arrives before an instant is gathered from the streams and put in order, ties as the
//! scenario says. A cell that is admitted starts when everything before it has been sent, so how many wait follows from
//! when the link will be free, without a queue: `docs/design/link-streams.md`.

use typed_index_collections::{TiSlice, TiVec};

use super::fabric::Fabric;
use super::gathered::{self, Gathered};
use super::onwards::Onwards;
use super::stream::{self, Batch, Pipe, Stream, place, since};
use super::train_port::Timing;
use crate::cell::{Cell, Run};
use crate::index::{Label, LinkIndex};
use crate::policy::{BufferPolicy, View};
use crate::port::PortState;
use crate::port::admission::{Admission, Arrived, Verdict};
use crate::rng;
use crate::scheduler::waiting::Counts;
use crate::sizes::size;
use crate::tie::TieBreaker;
use crate::units::{Span, Time};

/// A port of single cells.
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(super) struct StreamPort {
    link: LinkIndex,
    admission: Admission,
    capacity: u32,
    cell_time: Span,
    /// When everything that was admitted will have been sent.
    free_at: Time,
    /// A cell that would wait as long finds no room, or it must be looked at more closely.
    full: u64,
    /// The longest wait of a cell that was admitted, and one; 0 where none was.
    longest: u64,
    /// Where the departure of an instant comes first: the most cells that ever waited.
    most_waited: u32,
    /// The departure of an instant comes before its arrivals.
    serves_first: bool,
    /// Cells that came to an idle port in the instant under way, where the departure comes first.
    begun: bool,
    latest_start: Time,
    /// Cells that were admitted, oldest first: those that wait, and those that went since the list was last cut.
    admitted: Pipe<Label>,
    /// Of these, how many are in `counts`.
    counted: usize,
    /// Whether the policy reads the counts of VCs.
    counts_vcs: bool,
    counts: Counts,
    hops: TiVec<Label, Hop>,
    gathered: Gathered,
    ties: TieBreaker,
    /// Its streams are a row among all.
    first_stream: usize,
    /// Numbers of its links at the node, which decide ties.
    at_node: Vec<u32>,
    /// What is under way.
    batch: Batch,
    /// The first place of each input's cells in it, where ties are decided by inputs.
    firsts: Vec<u32>,
    /// The first arrival, among what is on its way, that matters elsewhere.
    next_to_matter: Option<Time>,
    /// From the start of a cell to its earliest effect.
    least_lead: Span,
    /// Everything before is settled.
    reached: Time,
    /// The time in which all inputs together bring no more cells than have places.
    most_in_one_go: Span,
}

/// Where a VC's cells go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    /// From the start of a cell to its arrival there.
    pub(super) lead: Span,
    /// The stream that takes them, or one of the two below.
    pub(super) stream: u32,
    /// The VC's label there.
    pub(super) label: Label,
}

impl Hop {
    /// None: they go to a host.
    pub(super) const TO_HOST: u32 = u32::MAX;
    /// None: they go to a port that takes trains, or each is watched on its way.
    pub(super) const ONE_BY_ONE: u32 = u32::MAX - 1;
}

/// Memory of a VC that crosses a port, beside what admission keeps.
pub(super) const BYTES_PER_VC: u64 = size::<Hop>() + gathered::BYTES_PER_VC + 4;

/// Cells that are handled in a batch at most.
const MOST: u64 = if cfg!(test) { 1 << 9 } else { stream::MOST as u64 / 2 };
/// More inputs than this are too many for a batch.
pub(super) const MOST_INPUTS: usize = 1 << 7;

impl StreamPort {
    /// A port of VCs that go on as `hops` say. `at_node` has the numbers of its inputs among those of the node, in
    /// order; the fastest of them brings a cell every `least_spacing`.
    pub(super) fn new(
        link: LinkIndex,
        (capacity, policy, rng): (Option<u32>, Box<dyn BufferPolicy>, rng::Stream),
        ties: TieBreaker,
        hops: TiVec<Label, Hop>,
        (first_stream, at_node, least_spacing): (usize, Vec<u32>, Span),
        timing: Timing,
    ) -> Self {
        let capacity = capacity.unwrap_or(u32::MAX);
        let vcs = hops.len();
        let inputs = at_node.len() as u64;
        let each = (MOST / inputs.max(1)).saturating_sub(1).max(1);
        Self {
            link,
            counts_vcs: policy.reads_counts(),
            admission: Admission::new(vcs, policy, rng),
            capacity,
            cell_time: timing.cell_time,
            free_at: Time::default(),
            full: if timing.serve_first { 0 } else { timing.cell_time.0.saturating_mul(u64::from(capacity)) },
            longest: 0,
            most_waited: 0,
            serves_first: timing.serve_first,
            begun: false,
            latest_start: timing.latest_start,
            admitted: Pipe::EMPTY,
            counted: 0,
            counts: Counts::new(vcs),
            gathered: Gathered::new(vcs),
            hops,
            ties,
            first_stream,
            at_node,
            batch: Batch::default(),
            firsts: Vec::new(),
            next_to_matter: None,
            least_lead: timing.least_lead,
            reached: Time::default(),
            most_in_one_go: Span(least_spacing.0.saturating_mul(each)).min(stream::LONGEST),
        }
    }

    /// Its streams.
    #[inline]
    pub(super) fn stream(&self, input: usize) -> usize {
        self.first_stream + input
    }

    #[inline]
    fn own<'a>(&self, streams: &'a [Stream]) -> &'a [Stream] {
        &streams[self.first_stream..self.first_stream + self.at_node.len()]
    }

    /// The end of the next batch: a cell has a place in it.
    #[inline]
    pub(super) fn reach(&self, until: Time, streams: &[Stream]) -> Time {
        if until <= self.reached || until - self.reached <= self.most_in_one_go {
            return until;
        }
        let first = self.own(streams).iter().filter_map(Stream::next).min();
        first.map_or(until, |first| until.min(first.max(self.reached) + self.most_in_one_go))
    }

    /// The earliest instant at which unsettled arrivals can have an effect elsewhere.
    #[inline]
    pub(super) fn next_effect(&self) -> Option<Time> {
        self.next_to_matter.map(|arrival| self.effect_of(arrival))
    }

    /// The earliest effect elsewhere of what arrives then: it starts behind all that was admitted.
    #[inline]
    pub(super) fn effect_of(&self, arrival: Time) -> Time {
        arrival.max(self.free_at) + self.least_lead
    }

    /// Settles everything before `until`.
    #[inline(never)]
    pub(super) fn work(&mut self, until: Time, onwards: &mut Onwards<'_>) {
        self.gather(until, onwards.streams);
        let mut batch = std::mem::take(&mut self.batch);
        let base = batch.base;
        let (keys, cells) = batch.keys();
        let mut i = 0;
        while let Some(&key) = keys.get(i) {
            let now = base + since(key);
            if keys.get(i + 1).is_some_and(|&next| since(next) == since(key)) {
                let tied = keys[i..].iter().take_while(|&&other| since(other) == since(key)).count();
                let together = &mut keys[i..i + tied];
                self.tie(together);
                for &mut key in together {
                    self.arrive(now, cells[place(key)], onwards);
                }
                self.begun = false;
                i += tied;
            } else {
                self.arrive(now, cells[place(key)], onwards);
                self.begun = false;
                i += 1;
            }
        }
        batch.clear();
        self.batch = batch;
        self.forget(until);
    }

    /// Puts cells that arrive in the same instant in order.
    #[inline(never)]
    fn tie(&mut self, keys: &mut [u64]) {
        let (firsts, at_node) = (&self.firsts, &self.at_node);
        let input = |key: &u64| at_node[firsts.partition_point(|&first| first as usize <= place(*key)) - 1];
        self.ties.order(keys, input);
    }

    /// Collects what arrives before `until`, in order.
    #[inline]
    fn gather(&mut self, until: Time, streams: &mut [Stream]) {
        let own = &mut streams[self.first_stream..self.first_stream + self.at_node.len()];
        let batch = &mut self.batch;
        batch.base = self.reached;
        if until > self.reached && until - self.reached > self.most_in_one_go {
            batch.base = own.iter().filter_map(Stream::next).min().unwrap_or(until);
        }
        self.firsts.clear();
        let mut to_matter = None::<Time>;
        for stream in own {
            let before = batch.len();
            self.firsts.push(whole(before as u64));
            if stream.next().is_some_and(|next| next < until) {
                batch.begin_run();
                stream.take_before(until, batch);
            }
            if let Some(arrival) = stream.next_to_matter() {
                to_matter = Some(to_matter.map_or(arrival, |first| first.min(arrival)));
            }
        }
        assert!(batch.len() <= stream::MOST, "a batch has a place for each cell");
        self.next_to_matter = to_matter;
        self.reached = self.reached.max(until);
        // Places follow the numbers of the inputs, so cells that tie are in that order.
        batch.sort();
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell")]
    fn arrive(&mut self, now: Time, cell: Cell, onwards: &mut Onwards<'_>) {
        let Some(start) = self.enter(now, cell) else { return };
        let hop = self.hops[cell.label()];
        if hop.stream < Hop::ONE_BY_ONE && start <= self.latest_start && !cell.is_rm() {
            onwards.push(hop.stream, start + hop.lead, cell.relabelled(hop.label));
        } else {
            self.depart(cell, hop.stream, start, onwards);
        }
    }

    /// Works on a cell that will arrive at `now`, of a stream that is taken at once.
    #[inline]
    pub(super) fn take_at_once(&mut self, now: Time, cell: Cell, fabric: &mut Fabric<'_>) {
        self.begun = false;
        let Some(start) = self.enter(now, cell) else { return };
        self.depart_to_host(cell, start, fabric);
        if cell.last_cell() {
            // No other cell comes in this instant.
            self.forget(now + Span(1));
        }
    }

    /// A cell comes; when it starts, unless it is refused.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell")]
    fn enter(&mut self, now: Time, cell: Cell) -> Option<Time> {
        let wait = self.free_at.0.saturating_sub(now.0);
        let passes = if cell.is_rm() {
            self.admission.on_cells_between(cell.label(), 1);
            true
        } else {
            match self.admission.on_cell(cell) {
                Arrived::Starts => self.judge_frame(now, cell),
                Arrived::Passes => true,
                Arrived::IsUnwelcome => false,
            }
        };
        // Where the departure of an instant comes first, `full` is 0.
        if (wait >= self.full || !passes) && !self.admits_unwelcome(now, cell, passes) {
            return None;
        }
        self.longest = self.longest.max(wait + 1);
        let start = now + Span(wait);
        self.free_at = start + self.cell_time;
        self.admitted.push(cell.label());
        Some(start)
    }

    /// A cell of a refused frame, or one that may find no room; whether it enters all the same.
    #[cold]
    fn admits_unwelcome(&mut self, now: Time, cell: Cell, passes: bool) -> bool {
        let waiting = self.waiting_at(now);
        let is_full = waiting >= self.capacity;
        let enters = if cell.is_rm() {
            if is_full {
                self.admission.lose_rm(cell.label());
            }
            !is_full
        } else {
            (passes && !is_full) || self.admission.verdict(cell, is_full, false) == Verdict::Enter
        };
        if enters && self.serves_first {
            self.most_waited = self.most_waited.max(waiting + 1);
            // Cells of one instant that come to an idle port all wait, as its departure comes before them.
            self.begun |= self.free_at <= now;
        }
        enters
    }

    /// Asks the policy about the frame whose first cell arrives; whether it may enter.
    #[inline(never)]
    fn judge_frame(&mut self, now: Time, cell: Cell) -> bool {
        if !self.admission.may_refuse_frames() {
            self.admission.pass_frame(cell.label());
            return true;
        }
        let occupancy = self.waiting_at(now);
        if self.counts_vcs {
            self.count(occupancy);
        }
        let view = View {
            occupancy,
            capacity: self.capacity,
            active_vcs: self.counts.active_vcs,
            per_vc: &self.counts.per_vc,
            tagged: cell.tagged(),
            now,
        };
        self.admission.judge_frame(&view, cell.label())
    }

    /// How many wait when a cell arrives.
    #[inline]
    fn waiting_at(&self, now: Time) -> u32 {
        let wait = self.free_at.0.saturating_sub(now.0);
        let first = u64::from(self.serves_first);
        whole(wait.saturating_sub(first) / self.cell_time.0) + u32::from(self.begun)
    }

    /// Hands on a cell that goes elsewhere.
    #[inline(never)]
    fn depart(&mut self, cell: Cell, to: u32, start: Time, onwards: &mut Onwards<'_>) {
        if to == Hop::TO_HOST {
            self.depart_to_host(cell, start, &mut onwards.fabric);
        } else {
            onwards.go_seldom(Run { last: cell, cells: 1 }, start, self.cell_time);
        }
    }

    /// Hands on a cell on its way to a host. It matters only if it ends a frame, is an RM cell, or may be too late for
    /// the end of the run; others are gathered.
    #[inline]
    fn depart_to_host(&mut self, cell: Cell, start: Time, fabric: &mut Fabric<'_>) {
        let run = Run { last: cell, cells: 1 };
        if cell.is_rm() || start > self.latest_start {
            self.report_gathered(cell.label(), fabric);
            self.report(run, start, self.cell_time, fabric);
        } else if cell.last_cell() {
            let cells = self.gathered.take_before(run) + 1;
            self.report_gathered(cell.label(), fabric);
            self.report(Run { cells, ..run }, start, Span(0), fabric);
        } else if let Some(others) = self.gathered.add(run) {
            self.report(others, Time::default(), Span(0), fabric);
        }
    }

    #[inline(never)]
    fn report(&self, run: Run, start: Time, period: Span, fabric: &mut Fabric<'_>) {
        let onward = fabric.go(self.link, run, start, period);
        assert!(onward.is_none(), "cells are gathered only on their way to hosts");
    }

    /// Reports the collected cells of a VC, whose starts have no effect.
    fn report_gathered(&mut self, label: Label, fabric: &mut Fabric<'_>) {
        if let Some(gathered) = self.gathered.take(label) {
            self.report(gathered, Time::default(), Span(0), fabric);
        }
    }

    /// Reports all such cells, at the end of the run.
    pub(super) fn report_all_gathered(&mut self, onwards: &mut Onwards<'_>) {
        for label in self.gathered.labels() {
            self.report_gathered(label, &mut onwards.fabric);
        }
    }

    /// Brings the counts to an instant at which so many wait.
    fn count(&mut self, waiting: u32) {
        for &label in &self.admitted.rest()[self.counted..] {
            self.counts.put(label, 1);
        }
        let gone = self.admitted.rest().len() - waiting as usize;
        for &label in &self.admitted.rest()[..gone] {
            self.counts.take(label, 1);
        }
        self.admitted.take(gone);
        self.counted = waiting as usize;
    }

    /// Cuts what has gone before `until` off the list of cells, where nobody counts them.
    #[inline]
    fn forget(&mut self, until: Time) {
        let waiting = self.waiting_before(until);
        if self.counts_vcs {
            self.count(waiting);
        } else {
            self.admitted.take(self.admitted.rest().len() - waiting as usize);
        }
    }

    /// How many wait when all that starts before `until` has gone.
    #[inline]
    fn waiting_before(&self, until: Time) -> u32 {
        whole(self.free_at.0.saturating_sub(until.0) / self.cell_time.0)
    }

    /// Brings the counts to `until`; everything before it is settled.
    pub(super) fn look_at(&mut self, until: Time) {
        self.forget(until);
        if !self.counts_vcs {
            self.counts = Counts::new(self.hops.len());
            for &label in self.admitted.rest() {
                self.counts.put(label, 1);
            }
        }
    }

    /// X: cells waiting, after a look.
    pub(super) fn occupancy(&self) -> u32 {
        u32::try_from(self.admitted.rest().len()).expect("a queue stays below 2^32 cells")
    }

    /// `Y_i`: cells waiting of each VC, by label, after a look.
    pub(super) fn per_vc(&self) -> &TiSlice<Label, u32> {
        &self.counts.per_vc
    }

    /// The port as results show it, after a look.
    pub(super) fn state(&self) -> PortState {
        let longest = match self.longest {
            0 => 0,
            _ if self.serves_first => self.most_waited,
            wait => whole((wait - 1) / self.cell_time.0) + 1,
        };
        PortState {
            counters: self.admission.counters(&self.counts.per_vc).collect(),
            waiting: self.counts.per_vc.clone(),
            max_queue: longest,
            replaced_results: self.admission.policy.replaced_results(),
        }
    }
}

#[inline]
fn whole(cells: u64) -> u32 {
    u32::try_from(cells).expect("a queue stays below 2^32 cells")
}
