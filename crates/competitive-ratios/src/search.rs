//! Searches for arrival sequences for which a policy has a large competitive ratio.
//!
//! A sequence consists of rounds, in which saturated ports stop one after the other. A port that stops gets a last
//! burst, of which a policy can keep only a few cells. The best schedule keeps one cell of each saturated port, fills
//! its memory with the cells of the last bursts, and sends these cells much later.
//!
//! For longest queue drop, let M / t ports be saturated t slots after some origin. In the limit of many cells and
//! ports, the saturated queues of this policy contain (x - 1) t cells, where x ln x = 1, and the best schedule keeps
//! (e - 1) t cells of each last burst. While t grows by a factor of e, longest queue drop sends x M cells and the best
//! schedule e M. So the ratio of one long round tends to e / x = 1.5417. With more or fewer ports than M / t, the same
//! calculation gives a ratio of at most r = 1.5422, where r ln r - (r - 1) ln (r - 1) = 1.

use super::{Burst, Ratio, ratio};
use celltrain_core::memory::MemoryPolicyConfig;
use celltrain_core::rng::Stream;

/// Number of cells that arrive in each slot for a port while the port is saturated.
const SATURATION: u32 = 2;

/// Arrivals in rounds in which saturated ports stop one after the other. Two sets of ports take turns, so that the
/// ports of one set can send their cells during the round of the other set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// M: number of cells that fit into the memory.
    pub cells: u32,
    /// The ports of one of the two sets.
    pub ports: Vec<PatternPort>,
    /// Slots from the start of one round to the start of the next.
    pub period: u32,
    /// Number of rounds in the pattern.
    pub rounds: u32,
}

/// The arrivals for a port in a round of a [`Pattern`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternPort {
    /// Number of cells that arrive for the port at the start of a round.
    pub fill: u32,
    /// Slot of the round in which the port's last burst arrives. This burst is as large as the memory.
    pub stop: u32,
}

impl Pattern {
    /// Creates the rounds described at the top of this file, with `ports` ports in each of the two sets. In the first
    /// slot, 30 % of the ports stop at the same time, because the memory of the best schedule is empty.
    pub fn staggered(cells: u32, ports: u32, rounds: u32) -> Self {
        let origin = f64::from(cells) / (0.7 * f64::from(ports));
        let port = |number: u32| {
            let time = f64::from(cells) / (f64::from(ports - number) - 0.5);
            PatternPort { fill: cells.div_ceil(ports), stop: rounded(time - origin) }
        };
        Self { cells, ports: (0..ports).map(port).collect(), period: cells * 2 / 5, rounds }
    }

    /// Creates one round: the cells of the first port fill the memory, and then cells arrive for all ports in every
    /// slot. A policy that lets the first port keep all places sends only one cell per slot.
    pub fn dominated(cells: u32, ports: u32, period: u32) -> Self {
        let port = |number: u32| PatternPort { fill: if number == 0 { cells } else { 0 }, stop: period };
        Self { cells, ports: (0..ports).map(port).collect(), period, rounds: 1 }
    }

    /// Returns the number of ports of all sets together.
    pub fn all_ports(&self) -> u32 {
        self.rounds.min(2) * self.set()
    }

    /// Returns the bursts of the pattern, sorted by slot.
    pub fn bursts(&self) -> Vec<Burst> {
        let mut bursts = Vec::new();
        for round in 0..self.rounds {
            let (start, first) = (round * self.period, round % 2 * self.set());
            let ports = || (first..).zip(&self.ports);
            bursts.extend(ports().map(|(port, &PatternPort { fill, .. })| Burst { slot: start, port, cells: fill }));
            for slot in 0..=self.period {
                let mut arrive = |port, cells| bursts.push(Burst { slot: start + slot, port, cells });
                for (port, _) in ports().filter(|(_, port)| port.stop.min(self.period) == slot) {
                    arrive(port, self.cells);
                }
                for (port, _) in ports().filter(|(_, port)| port.stop.min(self.period) > slot) {
                    arrive(port, SATURATION);
                }
            }
        }
        bursts
    }

    /// Returns the ratio of the optimum to a policy, or `None` if the policy sends no cell.
    pub fn ratio(&self, policy: &MemoryPolicyConfig) -> Option<Ratio> {
        ratio(policy, self.cells, self.all_ports(), &self.bursts())
    }

    fn set(&self) -> u32 {
        u32::try_from(self.ports.len()).expect("the number of ports fits in 32 bits")
    }

    /// Changes one property of one port, of several adjacent ports, or of all ports.
    fn mutate(&mut self, rng: &mut Stream) {
        let first = rng.below(self.set());
        let count = 1 + rng.below(1 + self.set() / 3);
        let ports = self.ports.iter_mut().skip(first as usize).take(count as usize);
        let factor = 0.7 + 0.6 * f64::from(rng.below(1000)) / 1000.0;
        let scaled = |value: u32| rounded(f64::from(value) * factor);
        match rng.below(8) {
            0 => self.period = scaled(self.period).max(1),
            1 => ports.for_each(|port| port.fill = scaled(port.fill).min(self.cells)),
            2 => ports.take(1).for_each(|port| port.fill = rng.below(self.cells + 1)),
            3 => ports.take(1).for_each(|port| port.stop = rng.below(self.period + 1)),
            4 | 5 => ports.for_each(|port| port.stop = scaled(port.stop)),
            _ => {
                let later = rng.below(2) == 0;
                let by = 1 + rng.below(1 + self.cells / 100);
                ports.for_each(|port| port.stop = if later { port.stop + by } else { port.stop.saturating_sub(by) });
            }
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casting a negative value gives 0")]
fn rounded(value: f64) -> u32 {
    (value + 0.5) as u32
}

/// Improves a pattern by hill climbing: changes the pattern at random `tries` times, and keeps each change unless the
/// ratio falls. Returns the improved pattern and its ratio, which are the same on every machine, or `None` if the
/// policy sends no cell of the first pattern.
pub fn search(policy: &MemoryPolicyConfig, start: Pattern, tries: u32, seed: u64) -> Option<(Pattern, Ratio)> {
    let mut rng = Stream::new(seed, "memory/slotted/search");
    let mut best = start.ratio(policy)?;
    let mut pattern = start;
    for _ in 0..tries {
        let mut changed = pattern.clone();
        for _ in 0..=rng.below(3) {
            changed.mutate(&mut rng);
        }
        if let Some(ratio) = changed.ratio(policy).filter(|&ratio| ratio >= best) {
            (pattern, best) = (changed, ratio);
        }
    }
    Some((pattern, best))
}
