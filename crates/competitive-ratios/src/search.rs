//! Searches for arrival sequences that are bad for a policy.
//!
//! A sequence consists of rounds, in which saturated ports stop one after the other. A port that stops gets a last
//! burst, and a policy can keep only a few of its cells. The best schedule keeps one cell of each saturated port, fills
//! its memory with the last bursts, and sends them much later.
//!
//! For longest queue drop let M / t ports be saturated t slots after some origin. In the limit of many cells and ports,
//! the saturated queues of this policy contain (x - 1) t cells, where x ln x = 1, and the best schedule keeps (e - 1) t
//! cells of each last burst. While t grows by a factor of e, longest queue drop sends x M cells and the best schedule e
//! M. So the ratio of one long round tends to e / x = 1.5417. With more or fewer ports than M / t, and the same
//! calculation, it is at most the r for which r ln r - (r - 1) ln (r - 1) = 1, which is 1.5422.

use super::{Burst, Ratio, ratio};
use celltrain_core::memory::MemoryPolicyConfig;
use celltrain_core::rng::Stream;

/// Number of cells that arrive in each slot for a port while it is saturated.
const SATURATION: u32 = 2;

/// Rounds in which saturated ports stop one after the other. Two sets of ports take turns, so that ports can send their
/// cells during the next round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// M: number of cells that fit into the memory.
    pub cells: u32,
    /// The ports of one of the two sets.
    pub ports: Vec<PatternPort>,
    /// Slots from the start of one round to the start of the next.
    pub period: u32,
    /// Number of rounds.
    pub rounds: u32,
}

/// A port of a [`Pattern`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternPort {
    /// Number of cells that arrive for the port at the start of a round.
    pub fill: u32,
    /// Slot of the round in which the port's last burst arrives. This burst is as large as the memory.
    pub stop: u32,
}

impl Pattern {
    /// Creates the rounds described at the top of this file, with `ports` ports in a set. At first 30 % of the ports
    /// stop at once, because the best schedule's memory is empty.
    pub fn staggered(cells: u32, ports: u32, rounds: u32) -> Self {
        let origin = f64::from(cells) / (0.7 * f64::from(ports));
        let port = |number: u32| {
            let time = f64::from(cells) / (f64::from(ports - number) - 0.5);
            PatternPort { fill: cells.div_ceil(ports), stop: rounded(time - origin) }
        };
        Self { cells, ports: (0..ports).map(port).collect(), period: cells * 2 / 5, rounds }
    }

    /// Creates one round: the first port fills the memory, and then cells arrive for all ports in every slot. If a
    /// policy lets the first port keep all places, it sends one cell a slot.
    pub fn dominated(cells: u32, ports: u32, period: u32) -> Self {
        let port = |number: u32| PatternPort { fill: if number == 0 { cells } else { 0 }, stop: period };
        Self { cells, ports: (0..ports).map(port).collect(), period, rounds: 1 }
    }

    /// Returns the number of ports of all sets.
    pub fn all_ports(&self) -> u32 {
        self.rounds.min(2) * self.set()
    }

    /// Returns the arrivals of the pattern.
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

/// Improves a pattern by hill climbing: `tries` times, changes it at random and keeps the change unless the ratio
/// falls. Returns the pattern and its ratio, the same on every machine, or `None` if the policy sends no cell of the
/// first pattern.
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
