//! Prints the tables of `docs/studies/competitive-ratios.md`: exact ratios for two ports, and the worst arrival
//! sequences that a search finds for more ports. The arguments are the number of changes that a search tries (default:
//! 2000), and the seed of the search (default: 1).

use std::env;

use celltrain_core::memory::{
    MemoryPolicyConfig, complete_sharing, dynamic_threshold, harmonic, longest_queue_drop, static_thresholds,
};
use competitive_ratios::game::two_port_ratio;
use competitive_ratios::search::{Pattern, search};

fn main() {
    let mut numbers = env::args().skip(1).map(|text| text.parse().expect("arguments are whole numbers"));
    let (tries, seed) = (numbers.next().unwrap_or(2000), u64::from(numbers.next().unwrap_or(1)));

    let policies: [MemoryPolicyConfig; 5] = [
        complete_sharing::Config {}.into(),
        static_thresholds::Config::default().into(),
        dynamic_threshold::Config::default().into(),
        harmonic::Config {}.into(),
        longest_queue_drop::Config::default().into(),
    ];
    let memories = 2..=8;
    let heads: Vec<String> = memories.clone().map(|cells| format!("M = {cells}")).collect();
    println!("| policy, two ports | {} |\n|---|{}", heads.join(" | "), "---:|".repeat(heads.len()));
    for policy in &policies {
        let ratio = |cells| two_port_ratio(policy, cells).map_or("none".to_string(), |ratio| ratio.to_string());
        println!("| `{}` | {} |", policy.name(), memories.clone().map(ratio).collect::<Vec<_>>().join(" | "));
    }

    println!("\n| policy | cells | ports | rounds | changes tried | ratio at first | largest ratio |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for policy in &policies {
        for (cells, ports) in [(24, 2), (120, 6), (600, 24)] {
            print_found(policy, Pattern::staggered(cells, ports, 8), tries, seed);
        }
    }
    print_found(&complete_sharing::Config {}.into(), Pattern::dominated(120, 12, 6000), 0, seed);
    let longest_queue_drop = longest_queue_drop::Config::default().into();
    print_found(&longest_queue_drop, Pattern::staggered(800, 64, 8), tries, seed);
    print_found(&longest_queue_drop, Pattern { period: 2400, ..Pattern::staggered(8000, 256, 16) }, 0, seed);
}

fn print_found(policy: &MemoryPolicyConfig, start: Pattern, tries: u32, seed: u64) {
    let (name, cells, ports, rounds) = (policy.name(), start.cells, start.all_ports(), start.rounds);
    let first = start.ratio(policy).expect("the policy sends at least one cell").value();
    let (_, best) = search(policy, start, tries, seed).expect("the policy sends at least one cell");
    println!("| `{name}` | {cells} | {ports} | {rounds} | {tries} | {first:.4} | {:.4} |", best.value());
}
