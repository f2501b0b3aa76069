//! Tests of runs on several threads, with small networks that can be partitioned.

use crate::cancellation::CancellationToken;
use crate::engine::{Engine, Interrupted, Sharing};
use crate::metrics::RunResult;
use crate::network::Network;
use crate::network::tests::{FIRST, SECOND, n_source_network};
use crate::policy::{PolicyConfig, tail_drop};
use crate::probe::Nothing;
use crate::tcp::{TcpConfig, TcpOptions};
use crate::traffic::{TrafficConfig, constant_rate};
use crate::units::{BitRate, Bytes, Duration};

/// With a delay of 50 ms each side has enough to do until cells of the other arrive.
fn apart(sources: usize, delay: &str) -> Network {
    let tcp = TcpConfig::Sack(TcpOptions::default());
    n_source_network(sources, delay, Some(100), PolicyConfig::TailDrop(tail_drop::Config {}), &tcp, "8s")
}

fn whole(engine: Engine, network: &Network) -> RunResult {
    engine.run(network, &mut Nothing, |_| true).unwrap()
}

#[test]
fn a_run_on_two_threads_has_the_result_of_one_to_the_last_bit() {
    let mut network = apart(3, "50ms");
    network.flows[SECOND].traffic = TrafficConfig::ConstantRate(constant_rate::Config {
        rate: BitRate::from_bits_per_second(10_000_000),
        packet: Bytes { bytes: 500 },
    });
    network.flows[FIRST].tcp = TcpConfig::Vanilla(TcpOptions::default());
    network.host.processing = Duration::from_microseconds(10);
    let alone = whole(Engine::Reference, &network);
    let timeouts: u64 = alone.flows.iter().map(|flow| flow.timeouts).sum();
    assert!(alone.cells.lost > 0 && timeouts > 0, "something happens: {:?}, {timeouts} timeouts", alone.cells);
    for threads in [2, 3] {
        let sharing = Sharing::among(threads);
        assert_eq!(
            Engine::Fast.threads_of(sharing, &network, &CancellationToken::never()),
            Ok(2),
            "it comes apart at one link"
        );
        assert_eq!(Engine::Fast.run_shared(sharing, &network, |_| true).unwrap(), alone);
        assert_eq!(Engine::Reference.run_shared(sharing, &network, |_| true).unwrap(), alone);
    }
    let near = apart(3, "5us");
    assert_eq!(Engine::Fast.threads_of(Sharing::among(2), &near, &CancellationToken::never()), Ok(1));
    assert_eq!(Engine::Fast.run_shared(Sharing::among(2), &near, |_| true).unwrap(), whole(Engine::Fast, &near));
}

#[test]
fn a_run_on_two_threads_ends_when_it_is_told_to() {
    let network = apart(3, "50ms");
    for most in [0.0, 0.01, 0.3] {
        let mut shares = Vec::new();
        let keep_going = |share: f64| {
            shares.push(share);
            share < most
        };
        assert_eq!(Engine::Fast.run_shared(Sharing::among(2), &network, keep_going), Err(Interrupted));
        assert!(shares.is_sorted(), "it goes on, and never back: {shares:?}");
    }
}
