//! Marking: a congested port marks packets instead of losing them (explicit congestion notification, ECN).
//!
//! Source: Floyd and Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM Transactions on
//! Networking 1(4), 1993, for the average and the probability; RFC 3168 and RFC 8257 for marks. `k_min`, `k_max`,
//! `p_max` and `w` are the first source's `min_th`, `max_th`, `max_p` and `w_q`. Differences from the source: a packet
//! is marked if its last cell is, as ITU-T I.363.5 specifies for EFCI in AAL5. So a port decides once for each packet,
//! when its last cell arrives or leaves. Queues are counted in cells. The probability is not spread over the packets
//! since the last mark, and the average does not fall while the queue is empty. A packet that is not ECN-capable is
//! dropped instead (`NotCapable`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cell::Cell;
pub use crate::counted::Counted;
use crate::coverage::reached;
use crate::departing::Departing;
use crate::error::Fault;
use crate::policy::BufferPolicy;
use crate::policy::not_capable::NotCapable;
use crate::rng::Stream;
use crate::threshold::Threshold;

/// Conditions under which a port marks packets. With `k_min` alone, the port marks every packet that finds more than
/// `k_min` cells waiting (a step).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Marking")]
pub struct MarkingConfig {
    /// No packet is marked while at most this number of cells wait. With a step, this is the threshold K.
    pub k_min: Threshold,
    /// Every packet is marked while more than this number of cells wait. Between `k_min` and `k_max`, the probability
    /// rises from 0 to `p_max`. Default: `k_min`.
    #[serde(default)]
    pub k_max: Option<Threshold>,
    /// Probability of a mark just below `k_max`.
    #[serde(default = "one")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub p_max: f64,
    /// Weight of the newest value in the average of the queue; 1 for the queue itself.
    #[serde(default = "one")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub weight: f64,
    /// Selects when packets are marked: on arrival or on departure.
    #[serde(default)]
    pub at: MarkedAt,
    /// Selects which waiting cells are compared with the limits.
    #[serde(default)]
    pub of: Counted,
    /// With `at: Dequeue`, the port also marks packets whose last cells have waited longer. Tests compare with it the waits
    /// that both engines see.
    #[cfg(test)]
    #[serde(skip)]
    pub longest_wait: Option<crate::units::Span>,
}

fn one() -> f64 {
    1.0
}

/// Selects when packets are marked: on arrival or on departure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MarkedAt {
    /// Marks a packet when its last cell arrives, by the number of waiting cells.
    #[default]
    Enqueue,
    /// Marks a packet when its last cell starts to leave, by the number of cells left behind.
    Dequeue,
}

impl MarkingConfig {
    /// Returns settings that mark every packet that arrives while the queue is longer than `k_min`.
    pub fn step(k_min: Threshold) -> Self {
        Self {
            k_min,
            k_max: None,
            p_max: 1.0,
            weight: 1.0,
            at: MarkedAt::Enqueue,
            of: Counted::Port,
            #[cfg(test)]
            longest_wait: None,
        }
    }

    /// Returns the faults of the settings, for a buffer or memory of `capacity` cells (`None`: infinite).
    pub fn check(&self, capacity: Option<u32>) -> Vec<Fault> {
        let mut faults = self.k_min.check("k_min", capacity);
        faults.extend(self.k_max.into_iter().flat_map(|k_max| k_max.check("k_max", capacity)));
        let cells = |threshold: Threshold| threshold.cells(capacity.unwrap_or(u32::MAX));
        if let Some(k_max) = self.k_max.filter(|&k_max| faults.is_empty() && cells(k_max) < cells(self.k_min)) {
            let problem = format!("is below k_min, which is {} cells", cells(self.k_min));
            faults.push(Fault::new("k_max", k_max.written(), problem));
        }
        for (key, share, range, is_in_range) in [
            ("p_max", self.p_max, "from 0 to 1", (0.0..=1.0).contains(&self.p_max)),
            ("weight", self.weight, "above 0 and at most 1", self.weight > 0.0 && self.weight <= 1.0),
        ] {
            if !is_in_range {
                faults.push(Fault::new(key, share.to_string(), format!("is not {range}")));
            }
        }
        faults
    }

    /// Creates the policy of a port that marks packets: the port's own `policy`, except that packets which cannot be
    /// marked are dropped.
    pub(crate) fn dropping(&self, policy: Box<dyn BufferPolicy>, capacity: Option<u32>) -> NotCapable {
        NotCapable::new(policy, self.limits(capacity), self.p_max, self.of)
    }

    /// Returns the limits `k_min` and `k_max` in cells, for a buffer or memory of `capacity` cells (`None`: infinite).
    pub(crate) fn limits(&self, capacity: Option<u32>) -> [f64; 2] {
        let cells = |threshold: Threshold| threshold.cells(capacity.unwrap_or(u32::MAX));
        [cells(self.k_min), cells(self.k_max.unwrap_or(self.k_min))]
    }

    /// Creates the marker of a port, for a buffer or memory of `capacity` cells. Marks with a probability are drawn from
    /// `rng`.
    pub(crate) fn build(&self, capacity: Option<u32>, rng: Stream) -> Marker {
        let [k_min, k_max] = self.limits(capacity);
        Marker {
            k_min,
            k_max,
            p_max: self.p_max,
            weight: self.weight,
            at: self.at,
            of: self.of,
            average: 0.0,
            every_cell: false,
            #[cfg(test)]
            longest_wait: self.longest_wait,
            rng,
        }
    }
}

/// Marks the packets or cells of a port.
#[derive(Clone, Debug)]
pub(crate) struct Marker {
    k_min: f64,
    k_max: f64,
    p_max: f64,
    weight: f64,
    at: MarkedAt,
    /// Selects the cells that the caller must count.
    pub(crate) of: Counted,
    average: f64,
    /// True if every data cell is marked, false if only the last cell of a packet is marked.
    every_cell: bool,
    #[cfg(test)]
    longest_wait: Option<crate::units::Span>,
    rng: Stream,
}

impl Marker {
    /// Creates the marker of a port whose allocator marks data cells that depart while more than `most` other cells
    /// wait (EFCI).
    pub(crate) fn of_every_cell(most: u32) -> Self {
        let config = MarkingConfig { at: MarkedAt::Dequeue, ..MarkingConfig::step(most.into()) };
        Self { every_cell: true, ..config.build(None, Stream::new(0, "marks do not need random numbers")) }
    }

    pub(crate) fn at(&self) -> MarkedAt {
        self.at
    }

    /// Returns whether cells that do not end a packet are marked too.
    pub(crate) fn marks_every_cell(&self) -> bool {
        self.every_cell
    }

    /// If packets are marked on arrival, marks the arriving cell if the queue requires it. Returns the cell. `waiting`
    /// cells are already waiting.
    #[inline]
    pub(crate) fn on_arrival(&mut self, cell: Cell, waiting: u32) -> Cell {
        if self.at == MarkedAt::Enqueue { self.mark(cell, waiting) } else { cell }
    }

    /// If packets are marked on departure, marks the departing cell if the queue requires it. Returns the cell.
    #[inline]
    pub(crate) fn on_departure(&mut self, departing: Departing) -> Cell {
        let Departing { cell, left, .. } = departing;
        #[cfg(test)]
        if cell.last_cell() && self.longest_wait.is_some_and(|longest| departing.waited > longest) {
            return cell.with_efci(true);
        }
        if self.at == MarkedAt::Dequeue { self.mark(cell, left) } else { cell }
    }

    fn mark(&mut self, cell: Cell, waiting: u32) -> Cell {
        if cell.is_rm() || !(self.every_cell || cell.last_cell()) {
            return cell;
        }
        // With a weight of 1, the average equals the queue length.
        self.average += self.weight * (f64::from(waiting) - self.average);
        let marks = if self.average > self.k_max {
            true
        } else if self.average > self.k_min {
            self.rng.unit() < self.p_max * (self.average - self.k_min) / (self.k_max - self.k_min)
        } else {
            false
        };
        reached!(MarkedByChance if marks && self.average <= self.k_max);
        reached!(MarkedByAverage if marks && f64::from(waiting) <= self.k_min);
        if marks { cell.with_efci(true) } else { cell }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::tests::cell;

    fn marker(config: &MarkingConfig) -> Marker {
        config.build(Some(1000), Stream::new(1, "test"))
    }

    fn last() -> Cell {
        cell(0, 7, true)
    }

    fn departing(cell: Cell, left: u32) -> Departing {
        Departing { cell, left, waited: crate::units::Span(0) }
    }

    #[test]
    fn threshold_marking_marks_the_last_cell_of_a_packet_if_more_than_k_cells_are_queued() {
        let mut marker = marker(&MarkingConfig::step(65.into()));
        assert!(!marker.on_arrival(last(), 65).efci());
        assert!(marker.on_arrival(last(), 66).efci());
        assert!(!marker.on_arrival(last(), 0).efci(), "the queue length alone decides about the mark");
        assert!(!marker.on_departure(departing(last(), 66)).efci(), "packets are marked on arrival");
        assert!(!marker.on_arrival(cell(0, 7, false), 66).efci());
    }

    #[test]
    fn a_congestion_mark_is_never_removed_from_a_packet() {
        for at in [MarkedAt::Enqueue, MarkedAt::Dequeue] {
            for cell in [last(), cell(0, 7, false)].map(|cell| cell.with_efci(true)) {
                let mut marker = marker(&MarkingConfig { at, ..MarkingConfig::step(65.into()) });
                for waiting in [0, 65, 66, 1000] {
                    let arrived = marker.on_arrival(cell, waiting);
                    assert!(marker.on_departure(departing(arrived, waiting)).efci(), "{at:?}, {waiting} cells");
                }
            }
        }
    }

    #[test]
    fn marking_at_departure_counts_the_cells_that_remain_in_the_queue() {
        let mut marker = marker(&MarkingConfig { at: MarkedAt::Dequeue, ..MarkingConfig::step(65.into()) });
        assert!(!marker.on_arrival(last(), 66).efci());
        assert!(marker.on_departure(departing(last(), 66)).efci());
        assert!(!marker.on_departure(departing(last(), 65)).efci());
    }

    #[test]
    fn the_marking_probability_rises_linearly_from_k_min_to_k_max() {
        let config = MarkingConfig { k_max: Some(300.into()), p_max: 0.2, ..MarkingConfig::step(100.into()) };
        // The number of marks in 10,000 draws has a standard deviation of at most 40, as p is at most 0.2 or exactly 1.
        for (waiting, expected) in [(100, 0), (150, 500), (200, 1000), (300, 2000), (301, 10_000)] {
            let mut marker = marker(&config);
            let marks = (0..10_000).filter(|_| marker.on_arrival(last(), waiting).efci()).count();
            assert!(marks.abs_diff(expected) < 150, "{marks} at {waiting}");
            assert!(!matches!(expected, 0 | 10_000) || marks == expected);
        }
    }

    #[test]
    fn red_marking_draws_no_random_number_if_the_queue_length_is_k_min() {
        let config = MarkingConfig { k_max: Some(300.into()), ..MarkingConfig::step(100.into()) };
        let marks = |first: u32| -> Vec<bool> {
            let mut marker = marker(&config);
            marker.on_arrival(last(), first);
            (0..100).map(|_| marker.on_arrival(last(), 200).efci()).collect()
        };
        assert_eq!(marks(100), marks(99));
        assert_ne!(marks(100), marks(101));
    }

    #[test]
    fn each_arriving_packet_updates_the_average_queue_length_with_the_configured_weight() {
        let mut marker = marker(&MarkingConfig { weight: 0.25, ..MarkingConfig::step(40.into()) });
        // While 100 cells wait, the averages are 25 and 43.75. Once no cell waits, the average is 32.8.
        let marks = [100, 100, 0].map(|waiting| marker.on_arrival(last(), waiting).efci());
        assert_eq!((marks, marker.average), ([false, true, false], 32.8125));
    }

    #[test]
    fn ecn_marking_settings_out_of_range_are_refused() {
        let step = || MarkingConfig::step(100.into());
        for (config, keys) in [
            (step(), vec![]),
            (MarkingConfig::step(1001.into()), vec!["k_min"]),
            (MarkingConfig { k_max: Some(99.into()), ..step() }, vec!["k_max"]),
            (MarkingConfig { p_max: 1.1, weight: 0.0, ..step() }, vec!["p_max", "weight"]),
            (MarkingConfig { p_max: f64::NAN, ..step() }, vec!["p_max"]),
        ] {
            let found: Vec<_> = config.check(Some(1000)).into_iter().map(|fault| fault.key).collect();
            assert_eq!(found, keys);
        }
    }
}
