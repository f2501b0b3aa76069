//! A contended port whose cells come one by one, in the streams of its links, and go on in the stream of its own.
//!
//! First in, first out. What arrives before an instant is gathered from the streams and put in order, ties as the
//! scenario says. A cell that is admitted starts when everything before it has been sent, so how many wait follows from
//! when the link will be free, without a queue: `docs/design/link-streams.md`.

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use super::Onwards;
use super::stream::{Pipe, Stream};
use super::train_port::Timing;
use crate::cell::{Cell, Run};
use crate::index::Label;
use crate::policy::{BufferPolicy, View};
use crate::port::PortState;
use crate::port::admission::{Admission, BYTES_OF_REFUSED, BYTES_OF_STATE, Verdict};
use crate::rng;
use crate::scheduler::waiting::Counts;
use crate::sizes::{PortRecords, size};
use crate::tie::TieBreaker;
use crate::units::{Span, Time};

/// A port of single cells.
pub(super) struct StreamPort {
    admission: Admission,
    capacity: u32,
    cell_time: Span,
    /// When everything that was admitted will have been sent.
    free_at: Time,
    /// A cell that would wait as long finds no room.
    full: u64,
    /// The longest wait of a cell that was admitted, and one; 0 where none was.
    longest: u64,
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
    /// By label: cells of a frame under way to its host, whose departure is known and has no effect.
    gathered: TiVec<Label, Run>,
    ties: TieBreaker,
    /// Its streams are a row among all.
    first_stream: usize,
    /// Numbers of its links at the node, which decide ties.
    at_node: Vec<u32>,
    /// The first arrival of the batch under way.
    base: Time,
    /// What is under way: of each cell its arrival since `base` and its place in `cells`.
    keys: Vec<u64>,
    cells: Vec<Cell>,
    /// The number of the input of each.
    origins: Vec<u32>,
    /// The time in which all inputs together bring no more cells than have places.
    most_in_one_go: Span,
}

/// Where a VC's cells go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    /// From the start of a cell to its arrival there.
    pub(super) lead: Span,
    /// The stream that takes them, or [`Hop::ELSEWHERE`].
    pub(super) stream: u32,
    /// The VC's label there.
    pub(super) label: Label,
}

impl Hop {
    /// To a host, or to a port that takes trains.
    pub(super) const ELSEWHERE: u32 = u32::MAX;
    /// To a port that takes trains, or where cells are watched: each goes on its own.
    pub(super) const ONE_BY_ONE: u32 = u32::MAX - 1;
}

/// Memory of a port.
pub(super) const BYTES: u64 = size::<StreamPort>();
/// Of a port and of a VC that crosses it.
pub(super) const RECORDS: PortRecords = PortRecords {
    port: BYTES,
    of_vc: &[BYTES_OF_STATE, BYTES_OF_REFUSED, 4, size::<Hop>(), size::<Run>()],
    queues: 0,
    queue: 0,
};

/// Bits of a cell's place in a batch.
const PLACE: u32 = 16;
/// Cells that are handled in a batch at most.
const MOST: u64 = if cfg!(test) { 1 << 9 } else { 1 << (PLACE - 1) };
/// More inputs than this are too many for a batch.
pub(super) const MOST_INPUTS: usize = 1 << 7;
/// No run.
const NOTHING: Run = Run { last: Cell::NONE, cells: 0 };

impl StreamPort {
    /// A port of VCs that go on as `hops` say. `at_node` has the numbers of its inputs among those of the node, in
    /// order; the fastest of them brings a cell every `least_spacing`.
    pub(super) fn new(
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
            counts_vcs: policy.reads_counts(),
            admission: Admission::new(vcs, policy, rng),
            capacity,
            cell_time: timing.cell_time,
            free_at: Time::default(),
            full: timing.cell_time.0.saturating_mul(u64::from(capacity)),
            longest: 0,
            serves_first: timing.serve_first,
            begun: false,
            latest_start: timing.latest_start,
            admitted: Pipe::EMPTY,
            counted: 0,
            counts: Counts::new(vcs),
            gathered: ti_vec![NOTHING; vcs],
            hops,
            ties,
            first_stream,
            at_node,
            base: Time::default(),
            keys: Vec::new(),
            cells: Vec::new(),
            origins: Vec::new(),
            most_in_one_go: Span(least_spacing.0.saturating_mul(each).min((1 << (64 - PLACE)) - 1)),
        }
    }

    #[inline]
    fn own<'a>(&self, streams: &'a [Stream]) -> &'a [Stream] {
        &streams[self.first_stream..self.first_stream + self.at_node.len()]
    }

    /// Its streams.
    #[inline]
    pub(super) fn stream(&self, input: usize) -> usize {
        self.first_stream + input
    }

    /// The end of the next batch.
    #[inline]
    pub(super) fn reach(&self, until: Time, streams: &[Stream]) -> Time {
        let first = self.own(streams).iter().filter_map(Stream::next).min();
        first.map_or(until, |first| {
            if first >= until || until - first <= self.most_in_one_go { until } else { first + self.most_in_one_go }
        })
    }

    /// The earliest instant at which unsettled arrivals can have an effect elsewhere.
    #[inline]
    pub(super) fn next_effect(&self, streams: &[Stream]) -> Option<Time> {
        self.own(streams).iter().filter_map(Stream::effect).min()
    }

    /// Settles everything before `until`.
    pub(super) fn work(&mut self, until: Time, onwards: &mut Onwards<'_>) {
        self.gather(until, onwards.streams);
        let base = self.base;
        let mut keys = std::mem::take(&mut self.keys);
        let mut i = 0;
        while i < keys.len() {
            let since = keys[i] >> PLACE;
            let mut after = i + 1;
            while after < keys.len() && keys[after] >> PLACE == since {
                after += 1;
            }
            let now = base + Span(since);
            if after - i > 1 {
                let (origins, at_node) = (&self.origins, &self.at_node);
                self.ties.order(&mut keys[i..after], |&key| at_node[origins[place(key)] as usize]);
            }
            for &key in &keys[i..after] {
                self.arrive(now, self.cells[place(key)], onwards);
            }
            self.begun = false;
            i = after;
        }
        keys.clear();
        self.keys = keys;
        self.cells.clear();
        self.origins.clear();
        self.forget(until);
    }

    /// Collects what arrives before `until`, in order.
    #[inline]
    fn gather(&mut self, until: Time, streams: &mut [Stream]) {
        let own = &mut streams[self.first_stream..self.first_stream + self.at_node.len()];
        self.base = own.iter().filter_map(Stream::next).min().unwrap_or(until);
        let (base, keys, cells, origins) = (self.base, &mut self.keys, &mut self.cells, &mut self.origins);
        let mut contributors = 0;
        for (stream, input) in own.iter_mut().zip(0..) {
            let before = cells.len();
            stream.take_before(until, |time, cell| {
                keys.push((time - base).0 << PLACE | cells.len() as u64);
                cells.push(cell);
            });
            if cells.len() > before {
                contributors += 1;
                origins.resize(cells.len(), input);
            }
        }
        assert!(cells.len() <= 1 << PLACE, "a batch has a place for each cell");
        if contributors > 1 {
            // Places follow the numbers of the inputs, so cells that tie are in that order.
            keys.sort_unstable();
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell")]
    fn arrive(&mut self, now: Time, cell: Cell, onwards: &mut Onwards<'_>) {
        if cell.is_rm() {
            self.admission.on_cells_between(cell.label(), 1);
        } else if self.admission.on_arrival(cell) {
            self.judge_frame(now, cell);
        }
        let wait = self.free_at.0.saturating_sub(now.0);
        let is_full = if self.serves_first { self.waiting_at(now) >= self.capacity } else { wait >= self.full };
        if (is_full || !self.admission.is_passing(cell.label())) && !self.admits_unwelcome(cell, is_full) {
            return;
        }
        if self.serves_first {
            self.longest = self.longest.max(u64::from(self.waiting_at(now)) + 1);
            self.begun |= wait == 0;
        } else {
            self.longest = self.longest.max(wait + 1);
        }
        let start = now + Span(wait);
        self.free_at = start + self.cell_time;
        self.admitted.push(cell.label());
        let hop = self.hops[cell.label()];
        if hop.stream < Hop::ONE_BY_ONE && start <= self.latest_start && !cell.is_rm() {
            onwards.push(hop.stream, start + hop.lead, cell.relabelled(hop.label));
        } else {
            self.depart(cell, hop.stream, start, onwards);
        }
    }

    /// A cell of a refused frame, or one that finds no room; whether it enters all the same.
    #[cold]
    fn admits_unwelcome(&mut self, cell: Cell, is_full: bool) -> bool {
        if cell.is_rm() {
            if is_full {
                self.admission.lose_rm(cell.label());
            }
            return !is_full;
        }
        self.admission.verdict(cell, is_full, false) == Verdict::Enter
    }

    /// Asks the policy about the frame whose first cell arrives.
    #[inline]
    fn judge_frame(&mut self, now: Time, cell: Cell) {
        if !self.admission.may_refuse_frames() {
            self.admission.pass_frame(cell.label());
            return;
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
        };
        self.admission.judge_frame(&view, cell.label());
    }

    /// How many wait when a cell arrives.
    #[inline]
    fn waiting_at(&self, now: Time) -> u32 {
        let wait = self.free_at.0.saturating_sub(now.0);
        let first = u64::from(self.serves_first);
        whole(wait.saturating_sub(first) / self.cell_time.0) + u32::from(self.begun)
    }

    /// Hands on a cell that goes elsewhere. On the way to a host it matters only if it ends a frame, is an RM cell, or
    /// may be too late for the end of the run; others are gathered.
    #[inline(never)]
    fn depart(&mut self, cell: Cell, to: u32, start: Time, onwards: &mut Onwards<'_>) {
        let label = cell.label();
        let run = Run { last: cell, cells: 1 };
        if to != Hop::ELSEWHERE || cell.is_rm() || start > self.latest_start {
            self.report_gathered(label, onwards);
            onwards.go(run, start, self.cell_time);
            return;
        }
        let gathered = &mut self.gathered[label];
        let goes_on = gathered.cells > 0 && gathered.goes_on_with(run);
        if !goes_on {
            self.report_gathered(label, onwards);
        }
        let gathered = &mut self.gathered[label];
        *gathered = Run { last: cell, cells: gathered.cells + 1 };
        if cell.last_cell() {
            let whole = std::mem::replace(gathered, NOTHING);
            onwards.go(whole, start, Span(0));
        }
    }

    /// Reports the collected cells of a VC, whose starts have no effect.
    fn report_gathered(&mut self, label: Label, onwards: &mut Onwards<'_>) {
        let gathered = std::mem::replace(&mut self.gathered[label], NOTHING);
        if gathered.cells > 0 {
            onwards.go(gathered, Time::default(), Span(0));
        }
    }

    /// Reports all such cells, at the end of the run.
    pub(super) fn report_all_gathered(&mut self, onwards: &mut Onwards<'_>) {
        for label in 0..self.gathered.len() {
            self.report_gathered(Label::from(label), onwards);
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
            most if self.serves_first => whole(most),
            wait => whole((wait - 1) / self.cell_time.0) + 1,
        };
        PortState {
            counters: self.admission.counters(&self.counts.per_vc).collect(),
            waiting: self.counts.per_vc.clone(),
            max_queue: longest,
        }
    }
}

#[inline]
fn place(key: u64) -> usize {
    key as usize & ((1 << PLACE) - 1)
}

#[inline]
fn whole(cells: u64) -> u32 {
    u32::try_from(cells).expect("a queue stays below 2^32 cells")
}
