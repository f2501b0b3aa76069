//! Compares the fast engine with the reference engine on random scenarios: results and series must be identical.
//!
//! `trials` lists the kinds of networks and checks. Each test draws a few networks, and `make campaign
//! NAME=differential` draws many networks. A scenario on which the engines differ is shrunk and printed as TOML. To
//! make such a scenario a test, save it in this folder under a descriptive name.

mod beginning;
mod bisect;
mod campaign;
mod certificates;
pub(crate) mod changes;
pub(crate) mod compare;
mod count;
pub(crate) mod draw;
mod head_policies;
pub(crate) mod late;
pub(crate) mod losses;
pub(crate) mod marks;
pub(crate) mod memories;
pub(crate) mod overflow;
pub(crate) mod packets;
pub(crate) mod requests;
pub(crate) mod stand;
mod steps;
pub(crate) mod text;
mod trials;
mod watch;

use std::collections::{BTreeMap, BTreeSet};

use celltrain_core::engine::Engine;
use celltrain_core::network::Network;
use celltrain_core::units::Duration;
use celltrain_scenario::{build, read_toml};
use proptest::prelude::*;
use serde_json::{Value, json};

use bisect::first_difference;
use compare::{ON_THREADS, compare, on_threads};
use text::text;
use trials::{FOLDER, Trial};
pub(crate) use trials::{cases, runner};

#[test]
fn random_test_networks_contain_every_feature_at_least_at_its_required_frequency() {
    let mut drawn: BTreeMap<String, u32> = count::every_one().into_iter().map(|what| (what, 0)).collect();
    let trial = Trial::named("both_engines_agree_on_random_networks");
    for seed in 0..cases().into() {
        for what in count::all_of(&trial.draw(seed).scenario) {
            *drawn.entry(what).or_default() += 1;
        }
    }
    let rare: Vec<_> = drawn.iter().filter(|&(_, &times)| times < cases() / RAREST).collect();
    assert!(rare.is_empty(), "these properties occur too rarely: {rare:?} of {drawn:?}");
}

/// Number of scenarios in which every feature must occur at least once.
const RAREST: u32 = 100;

#[test]
fn many_random_test_networks_are_partitioned_among_threads() {
    // The lower limits of the shares are in per cent.
    for (trial, least) in [
        ("both_engines_agree_where_many_vcs_cross_a_mesh", [40, 40, 4]),
        ("both_engines_agree_on_random_networks", [5, 5, 1]),
    ] {
        let networks = cases().clamp(50, 100);
        let mut divided = [0; ON_THREADS.len()];
        for seed in 0..u64::from(networks) {
            let mut network = Trial::named(trial).draw(seed).network();
            network.duration = Duration::from_microseconds(1);
            for (apart, (ways, threads)) in divided.iter_mut().zip(ON_THREADS) {
                *apart += u32::from(on_threads(ways, threads, &network).is_some());
            }
        }
        let enough = divided.iter().zip(least).all(|(&apart, least)| 100 * apart >= least * networks);
        assert!(enough, "only {divided:?} of {networks} networks were partitioned");
    }
}

#[test]
fn both_engines_agree_on_ten_thousand_vcs() {
    agree_on_vcs(10_000);
}

#[test]
#[ignore = "slow; the nightly job runs this test"]
fn both_engines_agree_on_a_hundred_thousand_vcs() {
    agree_on_vcs(100_000);
}

fn agree_on_vcs(vcs: usize) {
    // Each connection has two VCs, one in each direction.
    let sources = vcs / 2;
    let (buffer, threshold) = (3 * vcs, 2 * vcs);
    for scheduler in ["fifo = {}", "round_robin = {}"] {
        let text = format!(
            r#"
duration = "150us"
topology.n_source = {{ sources = {sources}, link_delay = "5us" }}
tcp.vanilla = {{}}
port.bottleneck = {{ buffer = {buffer}, policy.epd.threshold = {threshold}, scheduler.{scheduler} }}
"#
        );
        let scenario = read_toml(&text, "large.toml").expect_scenario();
        assert_eq!(build::network(&scenario, 1).vcs.len(), vcs);
        let [fast, reference] = Engine::ALL.map(|engine| engine.run_to_end(&build::network(&scenario, 1)).fingerprint);
        assert_eq!(fast, reference, "{scheduler}");
    }
}

#[test]
fn random_test_networks_include_all_kinds_of_shared_memory_and_fill_the_memory() {
    are_drawn(memories::KINDS, &["both_engines_agree_where_ports_share_memories"], |network| {
        memories::kinds(network, &Engine::Fast.run_to_end(network))
    });
}

#[test]
fn random_test_networks_include_all_kinds_of_congestion_marking() {
    are_drawn(marks::KINDS, &["both_engines_agree_where_ports_of_memories_mark_packets"], |network| {
        marks::kinds(network).into_iter().map(|kind| (kind, 1)).collect()
    });
}

#[test]
fn random_test_networks_include_all_kinds_of_requests() {
    are_drawn(requests::KINDS, &["both_engines_agree_where_connections_open_and_close"], |network| {
        let kinds: BTreeSet<_> = requests::kinds(network, &Engine::Fast.run_to_end(network)).into_iter().collect();
        kinds.into_iter().map(|kind| (kind, 1)).collect()
    });
}

#[test]
fn random_test_networks_include_all_kinds_of_link_losses() {
    let trials =
        ["both_engines_agree_where_links_lose_cells", "both_engines_agree_where_links_behind_crowded_ports_lose_cells"];
    are_drawn(losses::KINDS, &trials, |network| {
        losses::kinds(network, &Engine::Fast.run_to_end(network)).into_iter().map(|kind| (kind, 1)).collect()
    });
}

#[test]
fn random_test_networks_include_all_kinds_of_packet_delays() {
    let trials = [
        "both_engines_agree_where_links_delay_packets",
        "both_engines_agree_where_links_behind_crowded_ports_delay_packets",
    ];
    are_drawn(late::KINDS, &trials, |network| late::kinds(network).into_iter().map(|kind| (kind, 1)).collect());
}

#[test]
fn random_test_networks_include_all_kinds_of_changing_links() {
    let trials = [
        "both_engines_agree_where_links_change",
        "both_engines_agree_where_links_of_packet_switches_change",
        "both_engines_agree_where_links_change_at_ports_with_memories_marks_and_requests",
    ];
    are_drawn(changes::KINDS, &trials, |network| changes::kinds(network).into_iter().map(|kind| (kind, 1)).collect());
}

#[test]
fn random_test_networks_include_all_kinds_of_framing() {
    let trials = [
        "both_engines_agree_where_packets_delimit_themselves",
        "a_packet_that_delimits_itself_fails_only_if_it_lost_a_cell_in_a_memory",
        "both_engines_agree_where_packets_delimit_themselves_behind_crowded_ports",
        "both_engines_agree_where_packets_wait_in_memories_and_requests_open",
    ];
    are_drawn(packets::KINDS, &trials, |network| {
        let kinds = packets::kinds(network).into_iter().filter(|kind| packets::KINDS.contains(kind));
        kinds.map(|kind| (kind, 1)).collect()
    });
}

/// Checks that each kind occurs in at least a twentieth of 60 networks of the trials, or of 200 networks in the nightly
/// job.
fn are_drawn(kinds: &[&'static str], trials: &[&str], of: fn(&Network) -> Vec<(&'static str, u64)>) {
    let mut drawn: BTreeMap<&str, u64> = kinds.iter().map(|&kind| (kind, 0)).collect();
    let networks = u64::from(cases()).clamp(60, 200);
    for (seed, trial) in (0..networks).zip(trials.iter().cycle()) {
        let trial = Trial::named(trial);
        for (kind, times) in of(&trial.draw(seed).network()) {
            *drawn.get_mut(kind).unwrap_or_else(|| panic!("{kind} is in the list")) += times;
        }
    }
    let rare: Vec<_> = drawn.iter().filter(|&(_, &times)| times < networks / 20).collect();
    assert!(rare.is_empty(), "these properties occur too rarely: {rare:?} of {drawn:?}");
}

#[test]
fn a_named_topology_gives_the_same_run_as_the_equivalent_list_of_nodes_and_links() {
    let same = runner(10, 60).run(&(draw::any_topology(), 1..1000u64), |(topology, seed)| {
        let text = |topology: Value| {
            let scenario = json!({
                "duration": "5ms",
                "topology": topology,
                "port": {"default": {"buffer": 60, "policy": {"epd": {"threshold": 30}}}},
            });
            celltrain_scenario::read_json(&scenario.to_string(), "drawn")
        };
        let short = text(json!(topology)).scenario.expect("the scenario is valid");
        let long = text(json!({"network": draw::written_out(&topology)})).scenario.expect("the scenario is valid");
        let [short, long] = [short, long].map(|scenario| build::network(&scenario, seed));
        for engine in Engine::ALL {
            prop_assert_eq!(engine.run_to_end(&short), engine.run_to_end(&long), "{:?}", topology);
        }
        Ok(())
    });
    same.unwrap();
}

#[test]
fn both_engines_agree_on_every_archived_network_on_which_they_once_differed() {
    for (name, text) in crate::scenarios_in(FOLDER) {
        let scenario = read_toml(&text, &name).expect_scenario();
        let network = build::network(&scenario, scenario.seed);
        if let Err(difference) = compare(&network) {
            panic!("{name}: {difference}\n\n{}", first_difference(&network));
        }
    }
}

#[test]
fn a_random_scenario_is_valid_and_remains_the_same_when_serialized_and_parsed() {
    let strategy = prop_oneof![
        draw::any_network(),
        draw::in_step(),
        draw::crowded(),
        draw::overlapping::trains(),
        draw::meshes::meshes(),
        draw::written_in_numbers()
    ];
    let same = runner(7, 100).run(&strategy, |scenario| {
        let reading = read_toml(&text(&scenario), "drawn");
        prop_assert!(reading.faults.is_empty(), "{:?}", reading.faults);
        prop_assert_eq!(reading.scenario.unwrap(), scenario);
        Ok(())
    });
    same.unwrap();
}
