//! Tests that hold for every listed discard algorithm. Some compare the buffer with a naive oracle that tracks every
//! cell.

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;

use super::adaptive_discard::{self, EvaluatedAt};
use super::packets::Cause;
use super::shared_adaptive_discard;
use super::{AdaState, DiscardConfig, EdgeBuffer, EdgeConfig, Memory, Packet, Phase};
use crate::cell::{Cell, FrameNumber};
use crate::index::Label;
use crate::port::PortCounters;

/// A buffer whose packets are numbered within each VC, in order of arrival.
pub(super) struct Bench {
    pub(super) buffer: EdgeBuffer,
    offered: Vec<u32>,
}

impl Bench {
    pub(super) const ACR: f64 = 1000.0;

    pub(super) fn new(discard: DiscardConfig, eb: Option<u32>, memory: Memory, longest: &[u32]) -> Self {
        let config = EdgeConfig { buffer: eb, memory, discard };
        Self { buffer: EdgeBuffer::new(&config, longest.len(), longest), offered: vec![0; longest.len()] }
    }

    pub(super) fn offer(&mut self, vc: u32, cells: u32) {
        self.offer_at(vc, cells, Self::ACR);
    }

    pub(super) fn offer_at(&mut self, vc: u32, cells: u32, acr: f64) {
        let frame = self.offered[vc as usize];
        self.offered[vc as usize] += 1;
        self.buffer.offer(Label::new(vc), packet(frame, cells), acr);
    }

    /// Offers packets of equal length to VC 0.
    pub(super) fn offer_many(&mut self, packets: u32, cells: u32) {
        (0..packets).for_each(|_| self.offer(0, cells));
    }

    pub(super) fn frames(&self, vc: u32) -> Vec<u32> {
        self.buffer.packets.queued(Label::new(vc)).map(|packet| packet.frame.number()).collect()
    }

    /// Returns the number of cells in a VC's packets. A packet being transmitted counts as a whole.
    pub(super) fn whole_cells(&self, vc: u32) -> u32 {
        self.buffer.packets.queued(Label::new(vc)).map(|packet| packet.cells).sum()
    }

    /// Applies an operation. Returns the cells that leave and are not put back.
    pub(super) fn apply(&mut self, operation: Operation) -> Vec<Cell> {
        match operation {
            Operation::Offer { vc, cells, acr } => self.offer_at(vc, cells, acr),
            Operation::Rate { vc, acr } => self.buffer.on_rate(Label::new(vc), acr),
            Operation::Take { vc, cells, back } => {
                let (mut taken, vc) = (Vec::new(), Label::new(vc));
                let first = cells / 2;
                for part in [first, cells - first] {
                    let left = self.buffer.packets.front(vc).map_or(0, |(_, left)| left);
                    let is_rest = taken.last().is_none_or(|cell: &Cell| !cell.last_cell());
                    if part.min(left) > 0 && is_rest {
                        taken.extend(self.buffer.take(vc, part.min(left)).iter());
                    }
                }
                let back = back.min(u32::try_from(taken.len()).unwrap());
                // Put back one cell, and then all other removed cells together.
                for part in [back.min(1), back - back.min(1)] {
                    if part > 0 {
                        self.buffer.untake(vc, part);
                    }
                }
                taken.truncate(taken.len() - back as usize);
                return taken;
            }
        }
        Vec::new()
    }
}

/// Creates a packet; every third packet is tagged.
fn packet(frame: u32, cells: u32) -> Packet {
    Packet { frame: FrameNumber::new(frame), cells, tagged: frame.is_multiple_of(3) }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    Offer {
        vc: u32,
        cells: u32,
        acr: f64,
    },
    Rate {
        vc: u32,
        acr: f64,
    },
    /// Takes up to `cells` cells of the front packet, and puts up to `back` of them back.
    Take {
        vc: u32,
        cells: u32,
        back: u32,
    },
}

pub(super) fn operations(vcs: u32, longest: u32) -> impl Strategy<Value = Vec<Operation>> {
    let acr = prop_oneof![Just(0.0), Just(100.0), 1.0..1000.0];
    let operation = prop_oneof![
        4 => (0..vcs, 1..=longest, acr.clone()).prop_map(|(vc, cells, acr)| Operation::Offer { vc, cells, acr }),
        1 => (0..vcs, acr).prop_map(|(vc, acr)| Operation::Rate { vc, acr }),
        4 => (0..vcs, 1..=longest, 0..=longest).prop_map(|(vc, cells, back)| Operation::Take { vc, cells, back }),
    ];
    prop::collection::vec(operation, 0..200)
}

/// The oracle: a buffer that follows the sources literally and tracks every cell. Cells that are put back count as
/// never removed.
struct Oracle {
    eb: usize,
    discard: DiscardConfig,
    longest: Vec<u32>,
    vcs: Vec<OracleVc>,
    max_queue: usize,
}

#[derive(Clone, Default)]
struct OracleVc {
    waiting: Vec<OracleCell>,
    offered_packets: u32,
    acr: f64,
    phase_1: bool,
    ld_acr: f64,
    p_ctr: u32,
    counters: PortCounters,
}

#[derive(Clone, Copy)]
struct OracleCell {
    packet: Packet,
    number: u32,
}

impl OracleVc {
    fn ql(&self) -> u32 {
        let lasts = self.waiting.iter().filter(|cell| cell.number + 1 == cell.packet.cells);
        u32::try_from(lasts.count()).unwrap()
    }

    fn whole(&self) -> usize {
        self.waiting.len() + self.waiting.first().map_or(0, |cell| cell.number as usize)
    }

    fn droppable(&self) -> Option<Packet> {
        self.waiting.iter().find(|cell| cell.number == 0).map(|cell| cell.packet)
    }
}

impl Oracle {
    fn new(config: &EdgeConfig, longest: &[u32]) -> Self {
        let eb = config.buffer.map_or(usize::MAX, |eb| eb as usize);
        let vcs = vec![OracleVc::default(); longest.len()];
        Self { eb, discard: config.discard.clone(), longest: longest.to_vec(), vcs, max_queue: 0 }
    }

    fn apply(&mut self, operation: Operation, memory: Memory) -> Vec<Cell> {
        match operation {
            Operation::Offer { vc, cells, acr } => {
                let i = vc as usize;
                self.vcs[i].acr = acr;
                self.before_admission(i, cells, memory);
                let packet = packet(self.vcs[i].offered_packets, cells);
                self.vcs[i].offered_packets += 1;
                self.vcs[i].counters.offered += u64::from(cells);
                if self.fits(i, cells, memory) {
                    self.vcs[i].waiting.extend((0..cells).map(|number| OracleCell { packet, number }));
                } else {
                    self.vcs[i].counters.lost_overflow += u64::from(cells);
                    self.vcs[i].counters.cut_frames += 1;
                }
                self.max_queue = self.max_queue.max(self.vcs.iter().map(|vc| vc.waiting.len()).sum());
                Vec::new()
            }
            Operation::Rate { vc, acr } => {
                self.vcs[vc as usize].acr = acr;
                self.ada(vc as usize, None);
                Vec::new()
            }
            Operation::Take { vc, cells, back } => {
                let i = vc as usize;
                let Some(first) = self.vcs[i].waiting.first().copied() else { return Vec::new() };
                let ahead = cells.min(first.packet.cells - first.number);
                let stay = ahead - back.min(ahead);
                let gone = self.vcs[i].waiting.drain(..stay as usize).map(|cell| {
                    let is_last = cell.number + 1 == cell.packet.cells;
                    Cell::new(Label::new(vc), cell.packet.frame, is_last).with_tag(cell.packet.tagged)
                });
                let gone: Vec<Cell> = gone.collect();
                if gone.last().is_some_and(|cell| cell.last_cell()) && self.vcs[i].p_ctr > 0 {
                    self.vcs[i].p_ctr -= 1;
                }
                self.vcs[i].counters.forwarded += u64::from(stay);
                gone
            }
        }
    }

    fn fits(&self, i: usize, cells: u32, memory: Memory) -> bool {
        let occupied = match memory {
            Memory::PerVc => self.vcs[i].waiting.len(),
            Memory::Shared => self.vcs.iter().map(|vc| vc.waiting.len()).sum(),
        };
        occupied + cells as usize <= self.eb
    }

    fn before_admission(&mut self, i: usize, cells: u32, memory: Memory) {
        match self.discard {
            DiscardConfig::TailDrop(_) => {}
            DiscardConfig::FrontDrop(_) => {
                let before = self.vcs.clone();
                while !self.fits(i, cells, memory) {
                    let others = match memory {
                        Memory::PerVc => 0..0,
                        Memory::Shared => 0..self.vcs.len(),
                    };
                    let mut victim = self.vcs[i].droppable().map(|_| i);
                    if victim.is_none() {
                        for j in others.filter(|&j| self.vcs[j].droppable().is_some()) {
                            if victim.is_none_or(|v| self.vcs[j].waiting.len() > self.vcs[v].waiting.len()) {
                                victim = Some(j);
                            }
                        }
                    }
                    let Some(victim) = victim else {
                        self.vcs = before;
                        return;
                    };
                    self.drop_front(victim, false);
                }
            }
            _ => self.ada(i, Some(cells)),
        }
    }

    fn drop_front(&mut self, i: usize, rate_fell: bool) -> bool {
        let vc = &mut self.vcs[i];
        let Some(packet) = vc.droppable() else { return false };
        vc.waiting.retain(|cell| cell.packet != packet);
        if rate_fell {
            vc.counters.discarded_frame += u64::from(packet.cells);
            vc.counters.discarded_frames += 1;
        } else {
            vc.counters.lost_pushed_out += u64::from(packet.cells);
            vc.counters.cut_frames += 1;
        }
        true
    }

    fn ada_drop(&mut self, i: usize, rate_fell: bool) {
        if self.drop_front(i, rate_fell) {
            let ql = self.vcs[i].ql();
            let vc = &mut self.vcs[i];
            (vc.phase_1, vc.ld_acr, vc.p_ctr) = (true, vc.acr, ql);
        }
    }

    /// Runs the algorithm with either kind of memory. `arriving` is the number of cells of an arriving packet, if any.
    fn ada(&mut self, i: usize, arriving: Option<u32>) {
        let (f, lt, is_shared, evaluated_at) = match &self.discard {
            DiscardConfig::AdaptiveDiscard(c) => (c.reduction_factor, c.low_threshold, false, c.evaluated_at),
            DiscardConfig::SharedAdaptiveDiscard(c) => {
                (c.reduction_factor, c.low_threshold, true, EvaluatedAt::default())
            }
            _ => return,
        };
        if arriving.is_none() && evaluated_at == EvaluatedAt::Arrivals {
            return;
        }
        let full_counts = arriving.is_some() || evaluated_at == EvaluatedAt::ArrivalsAndRates;
        let was_phase_1 = self.vcs[i].phase_1;
        let vc = &self.vcs[i];
        let rate_fell = !was_phase_1 && vc.acr < f * vc.ld_acr && vc.ql() >= lt;
        if is_shared {
            if rate_fell {
                self.ada_drop(i, true);
            }
            let cells = arriving.unwrap_or(self.longest[i]);
            while let Some(victim) = self.furthest_above_its_share(i, cells) {
                if arriving.is_none() && victim != i {
                    break;
                }
                self.ada_drop(victim, false);
                if arriving.is_none() {
                    break;
                }
            }
        } else if rate_fell {
            self.ada_drop(i, true);
        } else if full_counts && vc.ql() as usize >= self.eb / self.longest[i] as usize {
            self.ada_drop(i, false);
        }
        let vc = &mut self.vcs[i];
        if was_phase_1 {
            if vc.ql() < lt && vc.p_ctr == 0 {
                vc.phase_1 = false;
            }
        } else if vc.acr > vc.ld_acr {
            vc.ld_acr = vc.acr;
        }
    }

    fn furthest_above_its_share(&self, i: usize, cells: u32) -> Option<usize> {
        let whole: Vec<usize> =
            self.vcs.iter().enumerate().map(|(j, vc)| vc.whole() + if j == i { cells as usize } else { 0 }).collect();
        if whole.iter().sum::<usize>() <= self.eb {
            return None;
        }
        let active: Vec<usize> = (0..self.vcs.len()).filter(|&j| whole[j] > 0).collect();
        let rates: f64 = active.iter().map(|&j| self.vcs[j].acr).sum();
        let mut found: Option<(usize, f64)> = None;
        for &j in active.iter().filter(|&&j| self.vcs[j].droppable().is_some()) {
            let share = if rates == 0.0 { 1.0 / active.len() as f64 } else { self.vcs[j].acr / rates };
            let above = whole[j] as f64 - self.eb as f64 * share;
            let is_first = found.is_none_or(|(_, most)| above > most || (above >= most && j == i));
            if above > 0.0 && is_first {
                found = Some((j, above));
            }
        }
        found.map(|(j, _)| j)
    }
}

const VCS: u32 = 4;
const LONGEST: [u32; 4] = [9, 5, 9, 1];

/// Returns every algorithm with every memory it supports. Thresholds are low enough to be reached in small buffers.
fn configs(eb: Option<u32>, f: f64, lt: u32, evaluated_at: EvaluatedAt) -> Vec<EdgeConfig> {
    let mut configs = Vec::new();
    for mut discard in DiscardConfig::samples() {
        match &mut discard {
            DiscardConfig::AdaptiveDiscard(config) => {
                *config = adaptive_discard::Config { reduction_factor: f, low_threshold: lt, evaluated_at };
            }
            DiscardConfig::SharedAdaptiveDiscard(config) => {
                *config = shared_adaptive_discard::Config { reduction_factor: f, low_threshold: lt };
            }
            DiscardConfig::TailDrop(_) | DiscardConfig::FrontDrop(_) => {}
        }
        for memory in [Memory::PerVc, Memory::Shared] {
            if discard.memory().is_none_or(|only| only == memory) {
                configs.push(EdgeConfig { buffer: eb, memory, discard: discard.clone() });
            }
        }
    }
    configs
}

fn evaluated_at() -> impl Strategy<Value = EvaluatedAt> {
    prop_oneof![Just(EvaluatedAt::ArrivalsAndRates), Just(EvaluatedAt::FullAtArrivals), Just(EvaluatedAt::Arrivals)]
}

fn ada_state(vc: &OracleVc) -> AdaState {
    let phase = if vc.phase_1 { Phase::One } else { Phase::Zero };
    AdaState { phase, ld_acr: vc.ld_acr, p_ctr: vc.p_ctr }
}

proptest! {
    #[test]
    fn the_buffer_of_an_edge_device_matches_a_simple_model(
        eb in prop_oneof![9 => (9u32..60).prop_map(Some), 1 => Just(None)],
        f in prop_oneof![Just(0.5), 0.0..1.0],
        lt in 1u32..4,
        evaluated_at in evaluated_at(),
        operations in operations(VCS, 9),
    ) {
        for config in configs(eb, f, lt, evaluated_at) {
            let name = format!("{} {:?}", config.discard.name(), config.memory);
            let mut bench = Bench::new(config.discard.clone(), eb, config.memory, &LONGEST);
            let mut oracle = Oracle::new(&config, &LONGEST);
            for (step, &operation) in operations.iter().enumerate() {
                let operation = match operation {
                    Operation::Offer { vc, cells, acr } => {
                        Operation::Offer { vc, cells: cells.min(LONGEST[vc as usize]), acr }
                    }
                    other => other,
                };
                prop_assert_eq!(bench.apply(operation), oracle.apply(operation, config.memory), "{} at {}", name, step);
                // `port_state` asserts that the counters account for every cell.
                let state = bench.buffer.packets.port_state();
                prop_assert_eq!(state.max_queue as usize, oracle.max_queue, "{} at {}", name, step);
                for (vc, oracle) in Label::counting().zip(&oracle.vcs) {
                    prop_assert_eq!(state.counters[vc], oracle.counters, "{} at {}", name, step);
                    prop_assert_eq!(state.waiting[vc] as usize, oracle.waiting.len(), "{} at {}", name, step);
                    prop_assert_eq!(bench.buffer.packets.ql(vc), oracle.ql(), "{} at {}", name, step);
                    prop_assert_eq!(bench.buffer.packets.cells(vc) > 0, !oracle.waiting.is_empty());
                    let front = bench.buffer.packets.front(vc);
                    let first = oracle.waiting.first().map(|cell| (cell.packet, cell.packet.cells - cell.number));
                    prop_assert_eq!(front, first, "{} at {}", name, step);
                    if let Some(state) = bench.buffer.state(vc) {
                        prop_assert_eq!(state, ada_state(oracle), "{} at {}", name, step);
                    }
                }
                let waiting = match config.memory {
                    Memory::PerVc => state.waiting.iter().copied().max().unwrap_or(0),
                    Memory::Shared => state.waiting.iter().sum(),
                };
                prop_assert!(eb.is_none_or(|eb| waiting <= eb), "{}: no queue exceeds its buffer", name);
            }
        }
    }
}

#[test]
fn default_settings_of_discard_algorithms_are_valid_for_finite_and_infinite_buffers() {
    assert_eq!(DiscardConfig::default().name(), "tail_drop");
    for discard in DiscardConfig::samples() {
        let memory = discard.memory().unwrap_or_default();
        for buffer in [Some(500), Some(1000), None] {
            let config = EdgeConfig { buffer, memory, discard: discard.clone() };
            assert_eq!(config.check(33), [], "{}", config.discard.name());
        }
    }
}

#[test]
fn the_error_for_an_invalid_discard_setting_names_the_key_and_the_valid_values() {
    let faults = |json: &str| {
        let config: EdgeConfig = serde_json::from_str(json).unwrap();
        let faults = config.check(192).into_iter();
        faults.map(|fault| format!("{} = {} {}", fault.key, fault.value, fault.problem)).collect::<Vec<_>>()
    };
    assert_eq!(
        faults(r#"{"buffer": 191}"#),
        [
            "buffer = 191 is smaller than a packet of 192 cells; the buffer of an edge device must hold at least one packet"
        ]
    );
    assert_eq!(
        faults(r#"{"buffer": 500, "discard": {"adaptive_discard": {"reduction_factor": 1.5, "low_threshold": 3}}}"#),
        [
            "discard.adaptive_discard.reduction_factor = 1.5 is not a share of a rate (0 to 1)",
            "discard.adaptive_discard.low_threshold = 3 must be at most 2, the number of full packets that fit into the buffer",
        ]
    );
    assert_eq!(
        faults(r#"{"memory": "per_vc", "discard": {"shared_adaptive_discard": {"low_threshold": 0}}}"#),
        [
            "memory = \"per_vc\" does not go with `shared_adaptive_discard`, which needs memory = \"shared\"",
            "discard.shared_adaptive_discard.low_threshold = 0 must be at least 1; with 0 packets the \
             queue would never be considered low",
        ]
    );
    // If the scenario does not set LT, it is 6.
    assert_eq!(
        faults(r#"{"buffer": 500, "discard": {"adaptive_discard": {}}}"#),
        ["discard.adaptive_discard.low_threshold = 6 must be at most 2, the number of full packets that fit into \
             the buffer, so the default of low_threshold is too high"]
    );
    assert!(faults(r#"{"buffer": 192, "memory": "shared", "discard": {"front_drop": {}}}"#).is_empty());
    assert!(faults(r#"{"buffer": 384, "discard": {"adaptive_discard": {"low_threshold": 2}}}"#).is_empty());
    assert!(serde_json::from_str::<EdgeConfig>(r#"{"discard": {"front_drop": {"depth": 1}}}"#).is_err());
}

#[test]
fn only_cells_removed_since_the_last_rate_change_can_be_returned_to_an_edge_device_queue() {
    type Change = fn(&mut Bench);
    let vc = Label::new(0);
    let changes: [(&str, Change); 3] = [
        ("a packet came", |bench| bench.offer(0, 9)),
        ("the second packet, which was not in service, was dropped", |bench| {
            assert!(bench.buffer.packets.drop_front(Label::new(0), Cause::NoRoom));
        }),
        ("the rate changed", |bench| bench.buffer.on_rate(Label::new(0), 2.0 * Bench::ACR)),
    ];
    for (what, change) in changes {
        let mut bench = Bench::new(DiscardConfig::default(), None, Memory::PerVc, &[9]);
        bench.offer_many(2, 9);
        bench.buffer.take(vc, 4);
        bench.buffer.untake(vc, 1);
        change(&mut bench);
        bench.buffer.take(vc, 2);
        bench.buffer.untake(vc, 1);
        // One of the last two cells taken has been put back, so only one more can follow. Earlier cells were taken
        // before the rate changed.
        let panic = catch_unwind(AssertUnwindSafe(|| bench.buffer.untake(vc, 2))).expect_err(what);
        assert_eq!(panic.downcast_ref(), Some(&"only cells that were taken early are returned"), "{what}");
    }
}

#[test]
fn a_discard_algorithm_that_does_not_support_the_configured_kind_of_memory_is_refused() {
    use Memory::{PerVc, Shared};
    let made_for: Vec<_> = DiscardConfig::samples().iter().map(DiscardConfig::memory).collect();
    assert_eq!(
        made_for[..4],
        [None, None, Some(PerVc), Some(Shared)],
        "each adaptive algorithm works with exactly one kind of buffer"
    );
    for discard in DiscardConfig::samples() {
        for memory in [PerVc, Shared] {
            let config = EdgeConfig { buffer: Some(1000), memory, discard: discard.clone() };
            let refused: Vec<_> = config.check(32).into_iter().map(|fault| (fault.key, fault.value)).collect();
            let fits = discard.memory().is_none_or(|only| only == memory);
            let expected = if fits { vec![] } else { vec![("memory".into(), format!("\"{}\"", memory.name()))] };
            assert_eq!(refused, expected, "{}", discard.name());
        }
    }
}

#[test]
fn discard_thresholds_may_not_exceed_the_number_of_packets_that_fit_into_the_buffer() {
    for discard in DiscardConfig::samples() {
        let (name, Some(memory)) = (discard.name(), discard.memory()) else { continue };
        // LT is 6 packets. A buffer of 192 cells holds six, one of 191 five, and one of 32 a single one. A buffer of 31
        // cells holds none, which gives a different error.
        let low = format!("discard.{name}.low_threshold");
        for (buffer, refused) in [(192, None), (191, Some(&low)), (32, Some(&low)), (31, Some(&"buffer".into()))] {
            let config = EdgeConfig { buffer: Some(buffer), memory, discard: discard.clone() };
            let keys: Vec<_> = config.check(32).into_iter().map(|fault| fault.key).collect();
            assert_eq!(keys.iter().collect::<Vec<_>>(), Vec::from_iter(refused), "{name} in {buffer} cells");
        }
        let settings = &serde_json::to_value(&discard).unwrap()[name];
        assert_eq!((&settings["reduction_factor"], &settings["low_threshold"]), (&0.5.into(), &6.into()), "{name}");
    }
}
