//! Tests of laws. A law is a change of a network that, according to theory, leaves the results unchanged or changes the
//! results in a known way.
//!
//! The two engines could share a mistake. A law can reveal a shared mistake, because it compares a changed network with
//! the original network on one engine. Each law is checked on random networks, on each engine.
//!
//! Exact ties are part of the model, and the rules that break ties use the order in which the parts of a network are
//! listed (`docs/design/engine-order.md`). If a change affects this order, the law applies only to networks without
//! ties.

mod added;
mod losses;
mod numbering;
mod packets;
mod ports;
mod same;
mod tcp;
mod ties;
mod times;
mod watch;
mod written;

use std::cell::Cell;

use celltrain_core::engine::Engine;
use celltrain_core::metrics::RunResult;
use celltrain_core::network::Network;
use celltrain_core::rng::Stream;
use celltrain_core::units::Duration;
use celltrain_scenario::{Scenario, build};
use proptest::prelude::*;
use proptest::test_runner::TestError;

use crate::differential::draw;
use crate::differential::text::text;
use crate::differential::{cases, runner};

/// A random network to which a law is applied.
struct Case {
    scenario: Scenario,
    engine: Engine,
    /// Random numbers for choosing the change.
    draws: Stream,
}

impl Case {
    fn network(&self) -> Network {
        build::network(&self.scenario, self.scenario.seed)
    }

    fn run(&self, network: &Network) -> RunResult {
        self.engine.run_to_end(network)
    }

    /// Runs a network. The fingerprint covers the times at senders, which do not depend on the order of flows.
    fn run_watched(&self, network: &Network) -> RunResult {
        watch::run(self.engine, network, Duration::default())
    }

    fn below(&mut self, bound: usize) -> usize {
        self.draws.below(u32::try_from(bound).expect("the bound fits in 32 bits")) as usize
    }
}

/// A law. The function returns whether the law applies to a network, or an error that describes the violation of the
/// law.
type Law = fn(&mut Case) -> Result<bool, String>;

/// Checks a law on random networks. The law must apply to at least a third of the networks.
fn check(seed: u64, law: Law) {
    let cases = cases().max(24) / 8;
    let applied = Cell::new(0);
    let networks = (draw::any_network(), any::<u64>());
    let outcome = runner(seed, cases).run(&networks, |(scenario, draws)| {
        let engine = Engine::ALL[usize::from(draws % 8 == 0)];
        let outcome = law(&mut Case { scenario, engine, draws: Stream::new(draws, "law") });
        applied.set(applied.get() + u32::from(outcome.map_err(TestCaseError::fail)?));
        Ok(())
    });
    match outcome {
        Err(TestError::Fail(violation, (scenario, draws))) => {
            panic!("{violation}\n\nwith {draws}:\n\n{}", text(&scenario))
        }
        outcome => outcome.expect("drawing a network cannot fail"),
    }
    assert!(3 * applied.get() >= cases, "the law applies to {} of {cases} networks", applied.get());
}

#[test]
fn reordering_nodes_links_and_flows_in_a_scenario_changes_a_run_only_if_their_order_decides_ties() {
    check(1, numbering::keep_ties);
}

#[test]
fn if_no_cells_arrive_simultaneously_the_order_of_flows_does_not_change_a_run() {
    check(2, numbering::no_ties);
}

#[test]
fn adding_a_source_that_never_sends_does_not_change_a_run() {
    check(3, added::idle_source);
}

#[test]
fn two_disconnected_copies_of_a_network_in_one_scenario_give_the_same_results() {
    check(4, added::copies);
}

#[test]
fn inserting_a_fast_switch_into_a_link_of_the_same_total_delay_changes_no_run() {
    check(5, added::split_link);
}

#[test]
fn the_seed_changes_only_runs_that_use_random_numbers() {
    check(6, written::seed);
}

#[test]
fn renaming_nodes_and_flows_does_not_change_a_run() {
    check(7, written::names);
}

#[test]
fn mirroring_a_network_gives_the_same_results_with_sources_and_destinations_exchanged() {
    check(8, written::mirror_image);
}

#[test]
fn doubling_all_rates_and_halving_all_times_gives_the_same_run() {
    check(9, written::faster);
}

#[test]
fn a_short_run_equals_the_beginning_of_a_longer_run() {
    check(10, times::longer);
}

#[test]
fn starting_all_sources_later_shifts_the_run_in_time() {
    check(11, times::later);
}

#[test]
fn moving_delay_between_the_two_directions_of_a_receiver_link_changes_no_run() {
    check(12, times::farther_receiver);
}

#[test]
fn a_buffer_of_the_longest_queue_length_loses_no_cells_and_a_smaller_buffer_loses_some() {
    check(13, ports::large_buffers);
}

#[test]
fn a_policy_whose_threshold_is_never_reached_gives_the_same_run_as_tail_drop() {
    check(14, ports::unused_policies);
}

#[test]
fn a_shared_memory_that_never_fills_acts_like_private_buffers_and_a_smaller_memory_refuses_cells() {
    check(15, ports::large_memories);
}

#[test]
fn tcp_variants_differ_only_after_a_loss() {
    check(16, tcp::variants);
}

#[test]
fn loss_rules_that_select_the_same_packets_give_the_same_run() {
    check(17, losses::patterns);
}

#[test]
fn aal5_and_packet_framing_give_the_same_run_if_every_packet_is_one_cell() {
    check(18, packets::of_one_cell);
}

#[test]
fn no_queue_exceeds_its_threshold_by_more_than_the_packets_that_arrive_simultaneously() {
    check(19, packets::thresholds);
}
