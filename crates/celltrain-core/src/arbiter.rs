//! Arbiters. For each cell to be sent, an arbiter selects a VC that has cells, either round robin or with minimum
//! shares.
//!
//! Source: `docs/mechanisms.md` 2.7 and 2.8, A-08: the pointer advances past the VC just served, and a VC whose queue
//! becomes non-empty joins at the tail. The same rules apply to real queues (`scheduler`) and virtual ones (`policy`).
//! An arbiter needs to know only whether each VC has cells.

use celltrain_formula::PerVc;

use crate::coverage::reached;
use crate::error::Fault;

/// Selects the VC that sends next.
pub trait Arbiter: Send {
    /// Adds a VC that now has a cell and had none before.
    fn join(&mut self, vc: usize);

    /// Serves the next VC, which must exist. `send` sends one of the VC's cells and returns whether the VC has more
    /// cells.
    fn serve(&mut self, send: impl FnOnce(usize) -> bool);

    /// Returns the VC, if any, that is served in every turn until another VC joins.
    fn alone(&self) -> Option<usize>;

    /// True if a VC that becomes empty and gets a cell before the next turn counts as never having been empty.
    const FORGIVES: bool;
}

/// Round robin: a ring of the VCs that have cells. A VC joins at the end.
#[derive(Debug)]
pub struct RoundRobin {
    /// Both neighbours of each VC in the ring.
    next: Vec<u32>,
    previous: Vec<u32>,
    /// The VC to be served next, if any.
    head: u32,
    members: u32,
}

impl RoundRobin {
    /// Creates an empty ring for `vcs` VCs.
    pub fn new(vcs: usize) -> Self {
        Self { next: vec![0; vcs], previous: vec![0; vcs], head: 0, members: 0 }
    }

    /// Returns `N_v`, the number of VCs with cells.
    pub fn members(&self) -> u32 {
        self.members
    }

    #[inline]
    fn leave(&mut self, vc: usize) {
        let (previous, next) = (self.previous[vc], self.next[vc]);
        self.next[previous as usize] = next;
        self.previous[next as usize] = previous;
        self.members -= 1;
        if self.head as usize == vc {
            self.head = next;
        }
    }

    #[inline]
    fn turn(&mut self) {
        self.head = self.next[self.head as usize];
    }
}

impl Arbiter for RoundRobin {
    const FORGIVES: bool = true;

    #[inline]
    fn join(&mut self, vc: usize) {
        let own = u32::try_from(vc).expect("all labels of VCs fit in 32 bits");
        if self.members == 0 {
            self.head = own;
            self.next[vc] = own;
        }
        // The predecessor of the head is the last VC.
        let last = if self.members == 0 { own } else { self.previous[self.head as usize] };
        self.next[last as usize] = own;
        self.previous[vc] = last;
        self.next[vc] = self.head;
        self.previous[self.head as usize] = own;
        self.members += 1;
    }

    #[inline]
    fn serve(&mut self, send: impl FnOnce(usize) -> bool) {
        debug_assert!(self.members > 0, "at least one VC has a waiting cell");
        let vc = self.head as usize;
        if send(vc) {
            self.turn();
        } else {
            self.leave(vc);
        }
    }

    #[inline]
    fn alone(&self) -> Option<usize> {
        (self.members == 1).then_some(self.head as usize)
    }
}

/// Serves VCs whose minimum shares are due, and otherwise serves VCs round robin.
///
/// Time is measured in turns. A cell of VC j is due every `1 / m_j` turns. Among the VCs with cells, the one whose cell
/// has been due longest is served; if no cell is due, the ring decides. A VC without cells accumulates no credit.
#[derive(Debug)]
pub struct MinimumShares {
    ring: RoundRobin,
    /// Minimum share `m_j` of each VC, in billionths.
    shares: Vec<u64>,
    /// The sum of the shares of VCs with cells.
    promised: u64,
    /// `1 / m_j` in time units; 0 if `m_j` is 0.
    steps: Vec<u64>,
    /// Time at which each VC's next cell is due.
    due: Vec<u64>,
    now: u64,
    /// Tournament tree of due times, ordered by time and label: each entry is the earlier of its two children. The
    /// second half holds the VCs themselves; the first entry is the earliest of all.
    tournament: Vec<(u64, u32)>,
}

/// Length of a turn in time units. A 64-bit clock is sufficient for 2^40 cells.
const TURN: u64 = 1 << 24;
/// Tournament entry of a VC without cells.
const NOBODY: (u64, u32) = (u64::MAX, 0);

impl MinimumShares {
    /// Creates the state for VCs with the minimum shares `m_j` of turns, whose sum is at most 1.
    pub fn new(shares: &[f64]) -> Self {
        let leaves = shares.len().next_power_of_two();
        Self {
            ring: RoundRobin::new(shares.len()),
            shares: shares.iter().map(|&share| billionths(share)).collect(),
            promised: 0,
            steps: shares.iter().map(|&share| step(share)).collect(),
            due: vec![0; shares.len()],
            now: 0,
            tournament: vec![NOBODY; 2 * leaves],
        }
    }

    /// Returns the fraction of the turns that a VC with cells gets until the next VC joins or leaves: its own share,
    /// plus an equal part of the turns that are not promised to any VC with cells.
    pub fn part(&self, vc: usize) -> f64 {
        let rest = ONE.saturating_sub(self.promised) as f64 / f64::from(self.ring.members.max(1));
        (self.shares[vc] as f64 + rest) / ONE as f64
    }
}

impl Arbiter for MinimumShares {
    /// False, because when a VC joins again, its next cell is not due before the current turn.
    const FORGIVES: bool = false;

    #[inline]
    fn join(&mut self, vc: usize) {
        self.ring.join(vc);
        self.promised += self.shares[vc];
        if self.steps[vc] > 0 {
            self.due[vc] = self.due[vc].max(self.now);
            play(
                &mut self.tournament,
                vc,
                (self.due[vc], u32::try_from(vc).expect("all labels of VCs fit in 32 bits")),
            );
        }
    }

    #[inline]
    fn serve(&mut self, send: impl FnOnce(usize) -> bool) {
        let (due, label) = self.tournament[1];
        let is_due = due <= self.now;
        reached!(MinimumShareDue if is_due && self.ring.members > 1);
        self.now += TURN;
        let vc = if is_due { label as usize } else { self.ring.head as usize };
        let goes_on = send(vc);
        if is_due {
            self.due[vc] += self.steps[vc];
        } else if goes_on {
            self.ring.turn();
        }
        if !goes_on {
            self.ring.leave(vc);
            self.promised -= self.shares[vc];
        }
        if self.steps[vc] > 0 && (is_due || !goes_on) {
            let next = (self.due[vc], u32::try_from(vc).expect("all labels of VCs fit in 32 bits"));
            play(&mut self.tournament, vc, if goes_on { next } else { NOBODY });
        }
    }

    fn alone(&self) -> Option<usize> {
        // Count turns even if only one VC has cells, because its due times depend on the number of turns.
        None
    }
}

/// Replaces the entry of a VC in a tournament. Entry 1 is the smallest of all, entries 2 and 3 the smallest of each
/// half, and so on; the second half holds the VCs' own entries.
#[inline]
pub fn play<P: Copy + Ord>(tournament: &mut [P], vc: usize, player: P) {
    let mut winner = player;
    let mut place = tournament.len() / 2 + vc;
    tournament[place] = winner;
    while place > 1 {
        winner = winner.min(tournament[place ^ 1]);
        place /= 2;
        tournament[place] = winner;
    }
}

/// A share of one (the whole link), in billionths.
pub const ONE: u64 = 1_000_000_000;

/// Converts a share from 0 to 1 to billionths.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the product of a 30-bit number and a share up to 1 fits in 32 bits"
)]
pub fn billionths(share: f64) -> u64 {
    (share * ONE as f64).round() as u64
}

/// Returns `1 / m_j`, rounded up to whole time units, so VCs whose shares add up to 1 never get more than the link's
/// rate.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "no overflow: there is at least one turn, and 2^63 turns never happen"
)]
fn step(share: f64) -> u64 {
    if share == 0.0 {
        return 0;
    }
    (TURN as f64 / share).ceil().min((1u64 << 62) as f64) as u64
}

/// Returns a fault for every invalid minimum share.
pub fn check_shares(shares: &PerVc) -> Vec<Fault> {
    let problem = "is not a share of the link; it must be 0 to 1, such as 0.1 for a tenth";
    shares.check(MINIMUM_SHARE, |share| (0.0..=1.0).contains(&share), problem)
}

/// Checks that the sum of the VCs' minimum shares does not exceed the link.
pub fn check_sum(shares: &PerVc, vcs: &[&str]) -> Vec<Fault> {
    let sum: f64 = shares.resolve(vcs).iter().sum();
    // Allows for rounding errors: the sum of ten shares of 0.1 is not exactly one. Invalid shares are reported
    // elsewhere.
    if sum <= 1.0 + 1e-9 || !check_shares(shares).is_empty() {
        return Vec::new();
    }
    let problem = format!("is the sum of the shares of the {} VCs that cross a port; it must be at most 1", vcs.len());
    vec![Fault::new(MINIMUM_SHARE, (sum * 1e6).round() / 1e6, problem)]
}

/// Key of the minimum shares in a scenario.
pub const MINIMUM_SHARE: &str = "minimum_share";

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves VCs `number` times; `cells` contains the number of cells that each VC has left. Returns the VCs served.
    fn sent(arbiter: &mut impl Arbiter, cells: &mut [u32], number: usize) -> Vec<usize> {
        let mut sent = Vec::new();
        for _ in 0..number {
            arbiter.serve(|vc| {
                sent.push(vc);
                cells[vc] -= 1;
                cells[vc] > 0
            });
        }
        sent
    }

    #[test]
    fn a_vc_that_becomes_active_or_was_just_served_is_served_last() {
        let mut ring = RoundRobin::new(4);
        let mut cells = [2, 2, 1, 1];
        ring.join(2);
        ring.join(0);
        assert_eq!(sent(&mut ring, &mut cells, 1), [2], "and leaves");
        ring.join(1);
        assert_eq!(sent(&mut ring, &mut cells, 1), [0]);
        ring.join(3);
        assert_eq!(ring.members(), 3);
        assert_eq!(sent(&mut ring, &mut cells, 4), [1, 0, 3, 1]);
        assert_eq!(ring.members(), 0);
        cells[3] = 1;
        ring.join(3);
        assert_eq!(ring.alone(), Some(3));
        assert_eq!(sent(&mut ring, &mut cells, 1), [3]);
    }

    #[test]
    fn without_minimum_shares_the_arbiter_serves_vcs_round_robin() {
        let (mut ring, mut arbiter) = (RoundRobin::new(3), MinimumShares::new(&[0.0; 3]));
        for vc in [1, 0, 2] {
            ring.join(vc);
            arbiter.join(vc);
        }
        assert_eq!(sent(&mut ring, &mut [2, 5, 3], 10), sent(&mut arbiter, &mut [2, 5, 3], 10));
    }

    #[test]
    fn a_backlogged_vc_gets_its_share_of_cells_within_one_cell_per_competing_vc() {
        for shares in [&[0.1, 0.2, 0.3, 0.4][..], &[0.01, 0.0, 0.62, 1.0 / 3.0], &[0.999, 0.0005, 0.0]] {
            let mut arbiter = MinimumShares::new(shares);
            (0..shares.len()).for_each(|vc| arbiter.join(vc));
            let mut served = vec![0u32; shares.len()];
            for turn in 1..=1_000_000 {
                arbiter.serve(|vc| {
                    served[vc] += 1;
                    true
                });
                if turn % 9973 == 0 {
                    for (&served, share) in served.iter().zip(shares) {
                        let due = f64::from(turn) * share;
                        let lag = due - f64::from(served);
                        assert!(lag <= shares.len() as f64, "{shares:?}: {served} of {due} in {turn}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_idle_vc_accumulates_no_credit() {
        let mut arbiter = MinimumShares::new(&[0.5, 0.0]);
        let mut cells = [100, 1000];
        arbiter.join(1);
        sent(&mut arbiter, &mut cells, 400);
        arbiter.join(0);
        let of_the_first = sent(&mut arbiter, &mut cells, 40).iter().filter(|&&vc| vc == 0).count();
        assert_eq!(of_the_first, 30, "the VC gets half of the link by its share, and half of the rest");
    }

    #[test]
    fn the_unreserved_rate_is_shared_equally_by_backlogged_vcs() {
        let mut arbiter = MinimumShares::new(&[0.5, 0.2, 0.0]);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is {b}");
        arbiter.join(2);
        close(arbiter.part(2), 1.0);
        arbiter.join(0);
        close(arbiter.part(0), 0.75);
        close(arbiter.part(2), 0.25);
        arbiter.join(1);
        close(arbiter.part(0), 0.6);
        close(arbiter.part(1), 0.3);
        sent(&mut arbiter, &mut [1, 1, 1], 3);
        assert_eq!(arbiter.promised, 0);
    }
}
