//! Runs with random steps, snapshots and injections. Steps must not change the run, and both engines must agree.

use celltrain_core::cancellation::CancellationToken;
use celltrain_core::engine::{Delivered, Engine, PortMode, Simulation};
use celltrain_core::index::{NodeIndex, VcIndex};
use celltrain_core::metrics::RunResult;
use celltrain_core::network::{MeasureWindow, Network};
use celltrain_core::probe::{Nothing, Probe};
use celltrain_core::rng::Stream;
use celltrain_core::units::{Duration, Span, Time};

use super::compare::{ON_THREADS, on_threads, same_results};

#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Advance(Time),
    Snapshot,
    Inject(NodeIndex, VcIndex, u64),
}

/// Checks that steps do not change the run, and that both engines give the same deliveries, snapshots and results with
/// injections. The measuring window is also random.
pub(crate) fn agree(network: &Network) -> Result<(), String> {
    let (network, actions) = with_actions(network);
    let plain = Engine::Fast.run_to_end(&network);
    let steps: Vec<_> = actions.iter().copied().filter(|action| !matches!(action, Action::Inject(..))).collect();
    for actions in [&steps, &actions] {
        let does_inject = actions.len() > steps.len();
        let (expected, seen) = follow(Engine::Reference, PortMode::Planned, &network, actions);
        if !does_inject {
            same_results(&plain, &expected).map_err(|difference| format!("steps: {difference}"))?;
        }
        for mode in [PortMode::Planned, PortMode::Trains, PortMode::Streams] {
            let named = |difference: String| format!("{mode:?}, {actions:?}: {difference}");
            let (result, seen_by_fast) = follow(Engine::Fast, mode, &network, actions);
            for (fast, reference) in seen_by_fast.iter().zip(&seen) {
                if fast.0 != reference.0 {
                    return Err(named(format!("deliveries {:?}, reference {:?}", fast.0, reference.0)));
                }
                same_results(&fast.1, &reference.1).map_err(|difference| named(format!("snapshot: {difference}")))?;
            }
            same_results(&result, &expected).map_err(named)?;
        }
    }
    for (mode, threads) in ON_THREADS {
        if let Some(shared) = on_threads(mode, threads, &network) {
            same_results(&shared, &plain).map_err(|difference| format!("{threads} threads, {mode:?}: {difference}"))?;
        }
    }
    Ok(())
}

/// Returns the network with a random measuring window, and random actions for its run.
pub(super) fn with_actions(network: &Network) -> (Network, Vec<Action>) {
    let mut network = network.clone();
    let mut rng = Stream::new(network.seed, "steps");
    let mut bound = || Duration { picoseconds: below(network.duration.picoseconds.max(1), &mut rng) };
    let (one, other) = (bound(), bound());
    network.measure = MeasureWindow { from: Some(one.min(other)), to: Some(one.max(other)) };
    let actions = draw(&network, &mut rng);
    (network, actions)
}

/// Runs a simulation with the given actions up to the end of an instant.
pub(super) fn follow_until<P: Probe>(simulation: &mut Simulation<'_, P>, actions: &[Action], at: Time) {
    for (&action, tag) in actions.iter().zip(0..) {
        match action {
            Action::Advance(until) if until > at => break,
            _ => take(simulation, action, tag),
        };
    }
    simulation.advance(at).expect("the simulation cannot advance to a time in the past");
}

fn take<P: Probe>(simulation: &mut Simulation<'_, P>, action: Action, tag: u64) -> Option<(Vec<Delivered>, RunResult)> {
    match action {
        Action::Advance(until) => {
            simulation.advance(until).expect("the simulation cannot advance to a time in the past");
        }
        Action::Snapshot => {
            let snapshot = simulation.snapshot().expect("nothing cancels this run");
            return Some((simulation.take_deliveries(), snapshot));
        }
        Action::Inject(host, vc, bytes) => {
            simulation.inject(host, vc, bytes, tag).expect("the host is the source of the VC");
        }
    }
    None
}

/// Runs a simulation with the given actions. Returns the result, the deliveries and the snapshots.
fn follow(
    engine: Engine,
    mode: PortMode,
    network: &Network,
    actions: &[Action],
) -> (RunResult, Vec<(Vec<Delivered>, RunResult)>) {
    let mut simulation =
        Simulation::by(engine, mode, network, Nothing, &CancellationToken::never()).expect("nothing cancels this run");
    let seen = actions.iter().zip(0..).filter_map(|(&action, tag)| take(&mut simulation, action, tag)).collect();
    (simulation.finish(), seen)
}

/// Draws steps of various lengths, most of them followed by other actions at the same instant.
fn draw(network: &Network, rng: &mut Stream) -> Vec<Action> {
    let clock = network.clock();
    let end = network.end(clock);
    let cell_time = clock.cell_time(network.links[network.bottleneck].rate);
    let mut now = Time::default();
    let mut actions = Vec::new();
    for _ in 0..below(30, rng) {
        let longest = match below(3, rng) {
            0 => cell_time.0,
            1 => 30 * cell_time.0,
            _ => end.0 / 6,
        };
        for _ in 0..below(4, rng) {
            if below(3, rng) == 0 {
                actions.push(Action::Snapshot);
                continue;
            }
            let vc = VcIndex::from(
                usize::try_from(below(network.vcs.len() as u64, rng)).expect("the index is that of a VC"),
            );
            let mfs = network.vcs[vc].contract.as_ref().map(|contract| contract.mfs);
            let most = network.aal5.longest_packet(mfs).min(if below(4, rng) == 0 { 9180 } else { 600 });
            actions.push(Action::Inject(network.source(vc), vc, below(most + 1, rng)));
        }
        now = (now + Span(below(longest + 1, rng))).min(end);
        actions.push(Action::Advance(now));
    }
    actions.push(Action::Snapshot);
    actions
}

fn below(bound: u64, rng: &mut Stream) -> u64 {
    rng.next_u64() % bound
}
