//! Tests of steady-state rates in a control loop: sources send through queues at the latest rate received, and feedback
//! arrives after a delay.

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use super::{Allocator, AllocatorConfig, PortKind, VcKind, equal_share, erica, erica_plus, max_min as ideal};
use crate::abr::RmCell;
use crate::index::{Label, LinkIndex};
use crate::max_min::{self, Terms};
use crate::units::{Clock, Span, Time};

/// A step of the loop takes 0.1 ms with a clock of one microsecond.
const STEP: u64 = 100;
const CLOCK: Clock = Clock::exact(1_000_000);
const PCR: f64 = 200_000.0;

/// Links and the VCs that cross them. A VC's cells arrive at all its links at the same time. Every 32nd cell is an RM
/// cell, which returns to the source after `delay` steps.
struct Loops {
    links: TiVec<LinkIndex, Link>,
    vcs: Vec<Vc>,
    delay: u64,
    step: u64,
}

struct Link {
    rate: f64,
    allocator: Box<dyn Allocator>,
    queue: f64,
}

struct Vc {
    /// The links of the VC's path, with the VC's label on each.
    path: Vec<(LinkIndex, Label)>,
    rate: f64,
    /// Fraction of a cell that the source has earned but not sent yet.
    part: f64,
    since_rm: u32,
    /// RM cells in flight, with the step at which each returns to the source.
    on_the_way: Vec<(u64, RmCell)>,
}

impl Loops {
    fn new(config: &AllocatorConfig, rates: &[f64], paths: &[Vec<LinkIndex>], delay: u64) -> Self {
        let shares = max_min::shares(TiSlice::from_ref(rates), paths, Terms::default());
        let mut kinds: TiVec<LinkIndex, TiVec<Label, VcKind>> = ti_vec![TiVec::new(); rates.len()];
        let mut vcs = Vec::new();
        for (path, &share) in paths.iter().zip(&shares) {
            let mut labels = Vec::new();
            for &link in path {
                let kind = VcKind { is_abr: true, above_abr: false, mcr: 0.0, share };
                labels.push((link, kinds[link].push_and_get_key(kind)));
            }
            vcs.push(Vc { path: labels, rate: 10_000.0, part: 0.0, since_rm: 0, on_the_way: Vec::new() });
        }
        let link = |(&rate, vcs): (&f64, &TiVec<Label, VcKind>)| {
            let allocator = config.build(&PortKind { clock: CLOCK, rate, capacity: 1000, vcs: &vcs.raw });
            Link { rate, allocator, queue: 0.0 }
        };
        Self { links: rates.iter().zip(&kinds).map(link).collect(), vcs, delay, step: 0 }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no overflow: a step has few queues and cells"
    )]
    fn step(&mut self) {
        let now = Time(self.step * STEP);
        let seconds = STEP as f64 / CLOCK.units_per_second as f64;
        for vc in &mut self.vcs {
            let back = vc.on_the_way.iter().take_while(|(at, _)| *at <= self.step).count();
            for (_, mut rm) in vc.on_the_way.drain(..back) {
                for &(link, label) in vc.path.iter().rev() {
                    let Link { allocator, queue, .. } = &mut self.links[link];
                    allocator.on_backward_rm(label, now, *queue as u32, &mut rm);
                }
                vc.rate = rm.er;
            }
        }
        for vc in &mut self.vcs {
            vc.part += vc.rate * seconds;
            let cells = vc.part as u32;
            vc.part -= f64::from(cells);
            if cells == 0 {
                continue;
            }
            vc.since_rm += cells;
            for &(link, label) in &vc.path {
                let period = Span(STEP / u64::from(cells));
                self.links[link].allocator.on_cells(label, now, period, cells);
                self.links[link].queue += f64::from(cells);
            }
            if vc.since_rm >= 32 {
                vc.since_rm -= 32;
                let mut rm = RmCell::forward(PCR, vc.rate, 0.0);
                for &(link, label) in &vc.path {
                    self.links[link].allocator.on_forward_rm(label, now, &rm);
                }
                rm.backward = true;
                vc.on_the_way.push((self.step + self.delay, rm));
            }
        }
        for link in &mut self.links {
            link.queue = (link.queue - link.rate * seconds).max(0.0);
        }
        self.step += 1;
    }

    /// Runs this many steps. Returns the mean rates of the VCs, the mean queues of the links, and the longest queue.
    fn run(&mut self, steps: u64) -> (Vec<f64>, Vec<f64>, f64) {
        let (mut rates, mut queues, mut longest) = (vec![0.0; self.vcs.len()], vec![0.0; self.links.len()], 0.0_f64);
        for _ in 0..steps {
            self.step();
            rates.iter_mut().zip(&self.vcs).for_each(|(sum, vc)| *sum += vc.rate / steps as f64);
            queues.iter_mut().zip(&self.links).for_each(|(sum, link)| *sum += link.queue / steps as f64);
            longest = self.links.iter().map(|link| link.queue).fold(longest, f64::max);
        }
        (rates, queues, longest)
    }
}

/// Rates of three links. VC 0 crosses all three. Two more VCs cross the slow middle link, one crosses the first link
/// and two the last.
const RATES: [f64; 3] = [100_000.0, 60_000.0, 100_000.0];

fn parking_lot() -> [Vec<LinkIndex>; 6] {
    [vec![0, 1, 2], vec![1], vec![1], vec![0], vec![2], vec![2]]
        .map(|path| path.into_iter().map(LinkIndex::new).collect())
}

/// Returns the largest relative deviation of the rates from the max-min shares if only the fraction `part` of each link
/// is used.
fn distance(rates: &[f64], part: f64) -> f64 {
    let capacities = RATES.map(|rate| part * rate);
    let shares = max_min::shares(TiSlice::from_ref(&capacities), &parking_lot(), Terms::default());
    rates.iter().zip(&shares).map(|(rate, share)| (rate / share - 1.0).abs()).fold(0.0, f64::max)
}

fn settled(config: &AllocatorConfig, delay: u64) -> Vec<f64> {
    let mut loops = Loops::new(config, &RATES, &parking_lot(), delay);
    loops.run(20_000);
    loops.run(5_000).0
}

#[test]
fn erica_reaches_max_min_fair_rates_in_a_parking_lot_topology_and_equal_share_does_not() {
    let config = AllocatorConfig::Erica(erica::Config { delta: 0.0, ..erica::sample() });
    for delay in [1, 10, 60] {
        let off = distance(&settled(&config, delay), 0.9);
        assert!(off < 0.001, "the rates are off by {off} with a delay of {delay} steps");
    }
    // Equal share gives VC 3 only 50,000 cells per second of the first link, not the 80,000 that VC 0 leaves.
    let equal = settled(&AllocatorConfig::EqualShare(equal_share::sample()), 10);
    assert!((distance(&equal, 1.0) - 0.375).abs() < 1e-3, "{equal:?}");
}

#[test]
fn erica_lets_the_load_exceed_its_target_by_the_fraction_delta() {
    let rates = settled(&AllocatorConfig::Erica(erica::sample()), 10);
    // The rates may lie anywhere between two max-min allocations: for 0.9 and for 0.99 of the links' capacity.
    assert!(distance(&rates, 0.945) < 0.06, "{rates:?}");
}

#[test]
fn the_reference_allocator_gives_exactly_the_max_min_rates() {
    assert_eq!(distance(&settled(&AllocatorConfig::MaxMin(ideal::Config {}), 10), 1.0).max(1e-9), 1e-9);
}

#[test]
fn erica_plus_fills_the_link_and_drains_a_long_queue_to_its_target_length() {
    // Q0 is 500 us times 100,000 cells per second, which is 50 cells.
    let config = AllocatorConfig::EricaPlus(erica_plus::sample());
    for (n, delay) in [(2, 1), (5, 5), (10, 20)] {
        let mut loops = Loops::new(&config, &[100_000.0], &vec![vec![LinkIndex::new(0)]; n], delay);
        loops.links[LinkIndex::new(0)].queue = 1000.0;
        loops.run(10_000);
        let (rates, queues, longest) = loops.run(10_000);
        let load = rates.iter().sum::<f64>() / 1e5;
        assert!((0.999..=1.001).contains(&load), "a load of {load} by {n} VCs");
        assert!(
            (45.0..70.0).contains(&queues[0]) && longest < 100.0,
            "the queue ends with {} cells and never exceeds \
            {longest}",
            queues[0]
        );
    }
}
