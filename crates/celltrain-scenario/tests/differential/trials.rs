//! The list of trials. A trial combines a kind of random network with additions and a check.

use std::panic::catch_unwind;

use celltrain_core::delay::DelayChoice;
use celltrain_core::network::Network;
use celltrain_core::rng::Stream;
use celltrain_scenario::{Scenario, build};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};

use super::bisect::first_difference;
use super::certificates::{self, cover_only_the_same_run};
use super::compare::compare;
use super::text::text;
use super::{
    beginning, changes, draw, head_policies, late, losses, marks, memories, overflow, packets, requests, steps, watch,
};

/// A kind of random networks with a check. Tests run a few networks of each trial, and campaigns run many networks.
pub(crate) struct Trial {
    pub(crate) name: &'static str,
    scenarios: fn() -> BoxedStrategy<Scenario>,
    add: Option<Add>,
    check: Check,
    /// Factor by which the trial's number of networks in a campaign is multiplied.
    times: u32,
    /// Divisor of [`cases`] that gives the trial's number of networks in a test.
    part: u32,
}

/// Adds random parts to a network.
type Add = fn(&mut Network, &mut Stream);

/// Returns an error if the engines differ on a network.
pub(crate) type Check = fn(&Network) -> Result<(), String>;

/// Defines the list of trials, and a test for each with its number of networks, check, scenarios and additions.
macro_rules! trials {
    ($($name:ident: $times:literal / $part:literal, $check:expr, $scenarios:expr $(, $add:expr)?;)+) => {
        pub(crate) static TRIALS: &[Trial] = &[$(Trial {
            name: stringify!($name),
            scenarios: $scenarios,
            add: trials!(@add $($add)?),
            check: $check,
            times: $times,
            part: $part,
        }),+];

        $(#[test]
        fn $name() {
            Trial::named(stringify!($name)).test();
        })+
    };
    (@add) => { None };
    (@add $add:expr) => { Some($add) };
}

trials! {
    both_engines_agree_on_random_networks: 1/1, compare, draw::any_network;
    both_engines_agree_where_trains_run_in_step: 1/2, compare, draw::in_step;
    both_engines_agree_where_long_trains_meet_ports_that_depart_late: 1/1, compare, draw::crowded;
    both_engines_agree_where_trains_overlap_in_queues_of_their_own: 1/2, compare, draw::overlapping::trains;
    both_engines_agree_where_small_buffers_overflow: 1/6, compare, draw::any_network, overflow::add;
    both_engines_agree_where_trains_in_step_overflow_small_buffers: 1/6, compare, draw::in_step, overflow::add;
    both_engines_agree_where_many_vcs_cross_a_mesh: 1/2, compare, draw::meshes::meshes;
    both_engines_agree_on_the_networks_that_are_written_in_a_few_numbers: 1/2, compare, draw::written_in_numbers;
    both_engines_agree_where_ports_share_memories: 1/3, compare, draw::any_network, memories::add;
    both_engines_agree_where_the_ports_of_a_mesh_share_memories:
        1/15, compare, draw::meshes::meshes, memories::add;
    both_engines_agree_where_ports_mark_packets: 1/4, compare, draw::any_network, marks::add;
    both_engines_agree_where_the_ports_of_a_mesh_mark_packets: 1/15, compare, draw::meshes::meshes, marks::add;
    both_engines_agree_where_ports_of_memories_mark_packets:
        1/6, compare, draw::any_network, memories_and_marks;
    both_engines_agree_where_connections_open_and_close: 1/2, compare, draw::any_network, requests::add;
    both_engines_agree_where_connections_open_and_close_across_a_mesh:
        1/5, compare, draw::meshes::meshes, requests::add;
    both_engines_agree_where_connections_open_and_close_at_ports_with_memories_and_marks:
        1/4, compare, draw::any_network, requests_memories_and_marks;
    events_add_up_to_results_and_both_engines_tell_the_same: 1/2, watch::adds_up, draw::any_network;
    events_add_up_to_results_where_ports_share_memories:
        1/2, watch::adds_up, draw::any_network, memories::add;
    events_add_up_to_results_where_connections_open_and_close:
        1/4, watch::adds_up, draw::any_network, requests::add;
    a_snapshot_is_what_a_recorder_sees_and_parts_of_a_run_add_up: 1/10, beginning::is_the_same, draw::any_network;
    any_steps_and_injections_are_the_same_run_on_both_engines: 1/4, steps::agree, draw::any_network;
    any_steps_and_injections_are_the_same_run_where_cells_come_in_streams:
        1/10, steps::agree, draw::meshes::meshes;
    any_steps_and_injections_are_the_same_run_where_ports_are_crowded: 1/10, steps::agree, draw::crowded;
    any_steps_and_injections_are_the_same_run_where_ports_share_memories:
        1/15, steps::agree, draw::any_network, memories::add;
    any_steps_and_injections_are_the_same_run_where_ports_mark_packets:
        1/15, steps::agree, draw::any_network, marks::add;
    any_steps_and_injections_are_the_same_run_where_connections_open_and_close:
        1/15, steps::agree, draw::any_network, requests::add;
    a_run_that_a_certificate_covers_equals_its_own_run: 1/4, cover_only_the_same_run, draw::any_network;
    a_run_that_a_certificate_covers_equals_its_own_run_at_crowded_ports: 1/10, cover_only_the_same_run, draw::crowded;
    a_run_that_a_certificate_covers_equals_its_own_run_where_ports_share_memories:
        1/4, cover_only_the_same_run, draw::any_network, certificates::add_memories;
    a_run_that_a_certificate_covers_equals_its_own_run_where_ports_mark_packets:
        1/10, cover_only_the_same_run, draw::any_network, all_and_late_packets;
    a_run_that_a_certificate_covers_equals_its_own_run_where_packets_delimit_themselves:
        3/10, cover_only_the_same_run, packets::any_network, certificates::add_memories_of_packets;
    both_engines_agree_where_links_lose_cells: 1/2, compare, draw::any_network, losses::add;
    both_engines_agree_where_the_links_of_a_mesh_lose_cells: 1/10, compare, draw::meshes::meshes, losses::add;
    both_engines_agree_where_links_lose_cells_at_ports_with_memories_marks_and_requests:
        1/6, compare, draw::any_network, requests_memories_marks_and_losses;
    both_engines_agree_where_links_behind_crowded_ports_lose_cells: 1/3, compare, draw::crowded, losses::add;
    any_steps_and_injections_are_the_same_run_where_links_lose_cells:
        1/10, steps::agree, draw::any_network, losses::add;
    any_steps_and_injections_are_the_same_run_where_the_links_of_a_mesh_lose_cells:
        1/15, steps::agree, draw::meshes::meshes, losses::add;
    events_add_up_to_results_where_links_lose_cells: 1/4, watch::adds_up, draw::any_network, losses::add;
    both_engines_agree_where_links_delay_packets: 1/2, compare, draw::any_network, late::add;
    both_engines_agree_where_the_links_of_a_mesh_delay_packets: 1/10, compare, draw::meshes::meshes, late::add;
    both_engines_agree_where_links_behind_crowded_ports_delay_packets: 1/4, compare, draw::crowded, late::add;
    both_engines_agree_where_links_delay_packets_at_ports_with_memories_marks_and_requests:
        1/6, compare, draw::any_network, all_and_late_packets;
    any_steps_and_injections_are_the_same_run_where_links_delay_packets:
        1/10, steps::agree, draw::any_network, late::add;
    any_steps_and_injections_are_the_same_run_where_the_links_of_a_mesh_delay_packets:
        1/15, steps::agree, draw::meshes::meshes, late::add;
    events_add_up_to_results_where_links_delay_packets: 1/4, watch::adds_up, draw::any_network, late::add;
    both_engines_agree_where_links_change: 2/2, compare, draw::any_network, changes_and_delays;
    both_engines_agree_where_the_links_of_a_mesh_change: 1/10, compare, draw::meshes::meshes, changes::add;
    both_engines_agree_where_links_behind_crowded_ports_change: 1/4, compare, draw::crowded, changes::add;
    both_engines_agree_where_links_change_at_ports_with_memories_marks_and_requests:
        2/4, compare, draw::any_network, all_and_changes;
    both_engines_agree_where_links_of_packet_switches_change: 2/2, compare, packets::any_network, packets_and_changes;
    any_steps_and_injections_are_the_same_run_where_links_change:
        1/6, steps::agree, draw::any_network, changes::add;
    events_add_up_to_results_where_links_change: 1/4, watch::adds_up, packets::any_network, packets_and_changes;
    both_engines_measure_the_same_delays: 1/3, compare, draw::any_network, measure_delays;
    both_engines_measure_the_same_delays_in_queues_of_schedulers:
        1/8, compare, draw::overlapping::trains, measure_delays;
    both_engines_measure_the_same_delays_across_a_mesh: 1/10, compare, draw::meshes::meshes, measure_delays;
    both_engines_measure_the_same_delays_where_links_behind_crowded_ports_lose_cells:
        1/5, compare, draw::crowded, losses_and_delays;
    both_engines_measure_the_same_delays_at_ports_with_memories_marks_and_requests:
        1/6, compare, draw::any_network, requests_memories_marks_losses_and_delays;
    any_steps_and_injections_measure_the_same_delays: 1/15, steps::agree, draw::any_network, losses_and_delays;
    a_packet_that_delimits_itself_fails_only_if_it_lost_a_cell:
        6/2, watch::adds_up, packets::any_network, packets::delimit_and_lose;
    a_packet_that_delimits_itself_fails_only_if_it_lost_a_cell_in_a_memory:
        6/3, watch::adds_up, packets::any_network, packets::delimit_and_lose_in_memories;
    both_engines_agree_where_packets_delimit_themselves_behind_crowded_ports:
        6/4, compare, packets::crowded, packets::delimit_and_lose;
    both_engines_agree_where_packets_wait_in_memories_and_requests_open:
        6/2, compare, packets::any_network, packets::delimit_in_memories_with_requests_and_marks;
    any_steps_and_injections_are_the_same_run_where_packets_delimit_themselves:
        6/8, steps::agree, packets::any_network, packets::delimit_in_memories_with_requests_and_marks;
    both_engines_agree_where_packets_delimit_themselves_in_a_mesh:
        6/10, compare, draw::meshes::meshes, packets::delimit_and_lose_in_memories;
    both_engines_agree_where_packets_delimit_themselves:
        6/2, compare, packets::any_network, packets::delimit_and_lose_in_memories;
    both_engines_agree_where_packets_delimit_themselves_in_queues_of_their_own:
        6/8, compare, draw::overlapping::trains, packets::delimit_in_memories_with_requests_and_marks;
    both_engines_agree_where_policies_act_at_the_head: 1/1, compare, draw::any_network, head_policies::add;
    both_engines_agree_where_policies_act_at_the_head_of_crowded_ports: 1/2, compare, draw::crowded, head_policies::add;
    both_engines_agree_where_policies_act_at_the_head_in_a_mesh:
        1/5, compare, draw::meshes::meshes, head_policies::add;
    both_engines_agree_where_policies_act_at_the_head_in_memories:
        1/3, compare, draw::any_network, head_policies::add_in_memories;
    both_engines_agree_where_policies_drop_packets_at_the_head:
        6/4, compare, packets::any_network, head_policies::add_and_delimit;
    events_add_up_to_results_where_policies_act_at_the_head: 1/2, watch::adds_up, draw::any_network, head_policies::add;
    events_add_up_to_results_where_policies_drop_packets_at_the_head:
        6/6, watch::adds_up, packets::any_network, head_policies::add_and_delimit_in_memories;
    any_steps_and_injections_are_the_same_run_where_policies_act_at_the_head:
        1/10, steps::agree, draw::any_network, head_policies::add;
    a_run_that_a_certificate_covers_equals_its_own_run_where_policies_act_at_the_head:
        1/10, cover_only_the_same_run, draw::any_network, head_policies::add;
}

fn measure_delays(network: &mut Network, rng: &mut Stream) {
    network.delays = [DelayChoice::All, DelayChoice::Ports, DelayChoice::Flows][rng.below(3) as usize];
}

fn all_and_late_packets(network: &mut Network, rng: &mut Stream) {
    requests_memories_and_marks(network, rng);
    late::add(network, rng);
    if rng.below(2) == 0 {
        measure_delays(network, rng);
    }
}

fn changes_and_delays(network: &mut Network, rng: &mut Stream) {
    changes::add(network, rng);
    if rng.below(3) == 0 {
        measure_delays(network, rng);
    }
}

fn all_and_changes(network: &mut Network, rng: &mut Stream) {
    requests_memories_and_marks(network, rng);
    changes_and_delays(network, rng);
}

fn packets_and_changes(network: &mut Network, rng: &mut Stream) {
    packets::delimit_in_memories_with_requests_and_marks(network, rng);
    changes_and_delays(network, rng);
}

fn losses_and_delays(network: &mut Network, rng: &mut Stream) {
    losses::add(network, rng);
    measure_delays(network, rng);
}

fn requests_memories_marks_losses_and_delays(network: &mut Network, rng: &mut Stream) {
    requests_memories_marks_and_losses(network, rng);
    measure_delays(network, rng);
}

fn memories_and_marks(network: &mut Network, rng: &mut Stream) {
    memories::add(network, rng);
    marks::add(network, rng);
}

fn requests_memories_and_marks(network: &mut Network, rng: &mut Stream) {
    // Add the requests before the memories, because memories also have queues for the VCs of requests.
    requests::add(network, rng);
    memories_and_marks(network, rng);
}

fn requests_memories_marks_and_losses(network: &mut Network, rng: &mut Stream) {
    requests_memories_and_marks(network, rng);
    losses::add(network, rng);
}

/// A random network.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    pub(crate) scenario: Scenario,
    /// Function that adds parts that a scenario cannot describe to the network, and the seed of its random numbers.
    pub(crate) added: Option<(Add, u64)>,
}

impl Drawn {
    pub(crate) fn network(&self) -> Network {
        let mut network = build::network(&self.scenario, self.scenario.seed);
        if let Some((add, seed)) = self.added {
            add(&mut network, &mut Stream::new(seed, "memories"));
        }
        network
    }
}

impl Trial {
    /// Returns the trial of this name.
    pub(crate) fn named(name: &str) -> &'static Self {
        TRIALS.iter().find(|trial| trial.name == name).unwrap_or_else(|| panic!("there is no trial {name}"))
    }

    fn test(&self) {
        let networks = self.networks();
        for seed in 0..self.cases() {
            self.run(&networks, seed).unwrap_or_else(|difference| panic!("{difference}"));
        }
    }

    /// Returns the number of networks in a test: at most [`MOST`] on a push, and more in the CI jobs.
    fn cases(&self) -> u64 {
        let most = if cases() == ON_A_PUSH { MOST } else { u32::MAX };
        (cases() / self.part).clamp(1, most).into()
    }

    /// Returns the trial's weight in a campaign. About half of its networks have packet framing.
    pub(crate) fn weight(&self) -> f64 {
        f64::from(self.times) / f64::from(self.part)
    }

    /// Returns the networks of this trial.
    pub(crate) fn networks(&self) -> BoxedStrategy<Drawn> {
        let add = self.add;
        let drawn = move |(scenario, seed)| Drawn { scenario, added: add.map(|add| (add, seed)) };
        ((self.scenarios)(), any::<u64>()).prop_map(drawn).boxed()
    }

    /// Draws the network of a seed.
    pub(crate) fn draw(&self, seed: u64) -> Drawn {
        drawn(&self.networks(), seed)
    }

    /// Returns whether the check succeeds for the network of a seed.
    pub(crate) fn agrees(&self, networks: &BoxedStrategy<Drawn>, seed: u64) -> bool {
        let drawn = drawn(networks, seed);
        catch_unwind(|| (self.check)(&drawn.network()).is_ok()).unwrap_or(false)
    }

    /// Checks the network of a seed. If the check fails, shrinks the network and reports the result.
    pub(crate) fn run(&self, networks: &BoxedStrategy<Drawn>, seed: u64) -> Result<(), String> {
        let mut runner = runner(seed, 1);
        let tree = networks.new_tree(&mut runner).expect("drawing a network cannot fail");
        match runner.run_one(tree, |drawn| (self.check)(&drawn.network()).map_err(TestCaseError::fail)) {
            Ok(_) => Ok(()),
            Err(TestError::Fail(difference, drawn)) => Err(self.report(seed, difference.message(), &drawn)),
            Err(TestError::Abort(reason)) => Err(format!("gave up: {reason}")),
        }
    }

    fn report(&self, seed: u64, difference: &str, drawn: &Drawn) -> String {
        let network = drawn.network();
        let first = first_difference(&network);
        format!(
            "the engines differ on network {seed} of {}: {difference}\n\n{first}\n\
             Save this in {FOLDER}, under a name that says what it shows:\n\n{}\n{:#?}\nwith {:?}",
            self.name,
            text(&drawn.scenario),
            network.memories,
            drawn.added
        )
    }
}

/// Draws the network of a seed.
pub(crate) fn drawn(networks: &BoxedStrategy<Drawn>, seed: u64) -> Drawn {
    networks.new_tree(&mut runner(seed, 1)).expect("drawing a network cannot fail").current()
}

/// Number of random networks in a test if `CELLTRAIN_DIFFERENTIAL` is not set.
const ON_A_PUSH: u32 = 20;
/// Maximum number of networks of a trial in a test if `CELLTRAIN_DIFFERENTIAL` is not set.
const MOST: u32 = 4;

/// Returns the number of random networks in a test. The CI jobs for changes and for each night use more networks.
pub(crate) fn cases() -> u32 {
    std::env::var("CELLTRAIN_DIFFERENTIAL").ok().and_then(|n| n.parse().ok()).unwrap_or(ON_A_PUSH)
}

/// Returns a runner that draws `cases` values from a seed.
pub(crate) fn runner(seed: u64, cases: u32) -> TestRunner {
    // The environment can lower the number of shrinking steps if shrinking is not needed.
    let most = std::env::var("PROPTEST_MAX_SHRINK_ITERS").ok().and_then(|n| n.parse().ok());
    TestRunner::new(Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: most.unwrap_or(10_000),
        // Time limit of shrinking in milliseconds. A shorter search results in a larger network.
        max_shrink_time: 60_000,
        ..Config::default()
    })
}

/// Folder of the scenarios on which the engines once disagreed.
pub(crate) const FOLDER: &str = "crates/celltrain-scenario/tests/differential";
