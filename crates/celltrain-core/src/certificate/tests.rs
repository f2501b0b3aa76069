//! Certificates of small networks: which settings they cover.

use super::*;
use crate::engine::Engine;
use crate::network::tests::n_source_network;
use crate::policy::{PerVc, double_epd, epd, fba, single_drop, tail_drop};
use crate::tcp::{TcpConfig, TcpOptions};
use crate::tie::TieOrder;

fn lan(sources: usize, buffer: Option<u32>, duration: &str) -> Network {
    let tcp = TcpConfig::Vanilla(TcpOptions::default());
    n_source_network(sources, "5us", buffer, tail_drop::Config {}.into(), &tcp, duration)
}

/// Returns the certificate of a run, its network and its result.
fn certified(network: Network) -> (Certificate, Network, RunResult) {
    let recording = Recording::default();
    let network = Network { recording: Some(recording.clone()), ..network };
    let result = recording.watch_draws(|| Engine::Fast.run_to_end(&network));
    let certificate = Certificate::new(&network, &recording, &result).expect("nothing outside the core decides");
    (certificate, network, result)
}

fn with_port(network: &Network, buffer: Option<u32>, policy: impl Into<PolicyConfig>) -> Network {
    let mut network = network.clone();
    let link = &mut network.links[network.bottleneck];
    (link.buffer, link.policy) = (buffer, policy.into());
    network
}

fn policy_of(network: &Network) -> PolicyConfig {
    network.links[network.bottleneck].policy.clone()
}

#[test]
fn a_result_without_losses_is_reused_for_every_buffer_of_at_least_the_largest_queue() {
    let (certificate, network, result) = certified(lan(3, None, "20ms"));
    let largest = result.ports[network.bottleneck].max_queue_cells;
    assert_eq!(certificate.least_buffer(network.bottleneck), Some(largest));
    let covers = |cells| certificate.covers(&with_port(&network, Some(cells), policy_of(&network)));
    assert_eq!([largest - 1, largest, largest + 1].map(covers), [false, true, true]);
}

#[test]
fn a_result_with_a_buffer_overflow_is_reused_only_for_the_same_buffer_size() {
    let (certificate, network, _) = certified(lan(5, Some(100), "50ms"));
    let covers = |cells| certificate.covers(&with_port(&network, Some(cells), policy_of(&network)));
    assert_eq!([99, 100, 101].map(covers), [false, true, false]);
}

#[test]
fn a_result_is_reused_for_thresholds_that_give_the_same_admission_decisions() {
    let (_, network, _) = certified(lan(5, Some(1000), "50ms"));
    let (certificate, network, result) =
        certified(with_port(&network, Some(1000), epd::Config { threshold: 800.into() }));
    assert!(result.ports[network.bottleneck].counters.discarded_frames > 0, "some frame meets the threshold");
    let covers =
        |cells: u32| certificate.covers(&with_port(&network, Some(1000), epd::Config { threshold: cells.into() }));
    assert_eq!([700, 800, 1000].map(covers), [false, true, false]);
    let same = double_epd::Config { threshold: 800.into(), tagged_threshold: 900.into() };
    assert!(certificate.covers(&with_port(&network, Some(1000), same)), "no frame is tagged");
    let with_state = single_drop::Config { thresholds: PerVc::Same(800.0) };
    assert!(!certificate.covers(&with_port(&network, Some(1000), with_state)), "its answers depend on state");
}

#[test]
fn a_result_is_never_reused_for_another_seed_or_link_rate() {
    let (certificate, network, _) = certified(lan(3, None, "20ms"));
    assert!(certificate.covers(&network));
    let mut faster = network.clone();
    faster.links[network.bottleneck].rate.bits_per_second += 1;
    let other_seed = Network { seed: network.seed + 1, ..network.clone() };
    assert!(!certificate.covers(&faster) && !certificate.covers(&other_seed));
}

#[test]
fn the_seed_may_change_if_no_random_number_was_drawn() {
    let covers_other_seed = |tie_order| {
        let (certificate, network, _) = certified(Network { tie_order, ..lan(3, None, "20ms") });
        certificate.covers(&Network { seed: network.seed + 1, ..network })
    };
    assert_eq!([TieOrder::Fixed, TieOrder::Random].map(covers_other_seed), [true, false]);
}

#[test]
fn a_reused_result_shows_the_settings_of_the_network_for_which_it_is_reused() {
    let (_, network, result) = certified(lan(3, None, "20ms"));
    let other = with_port(&network, Some(9000), fba::Config::default());
    let own = Engine::Fast.run_to_end(&Network { recording: None, ..other.clone() });
    assert_eq!(own, result.with_settings_of(&other));
    let port = &own.ports[network.bottleneck];
    assert_eq!((port.buffer_cells, port.policy, port.threshold_cells), (Some(9000), "fba", Some(8100)));
}
