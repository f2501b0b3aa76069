//! smoltcp on the network of ATM Forum 96-1269: five senders, 1000 cells, four policies.
//!
//! ```sh
//! cargo run --release -p celltrain-hosts --features smoltcp --example smoltcp_lan
//! ```

use celltrain_core::policy::{PolicyConfig, epd, fba, selective_drop, tail_drop};
use celltrain_hosts::smoltcp::{Config, Congestion, Smoltcp, VERSION};
use celltrain_hosts::{Application, Trial};

fn main() {
    let policies: [PolicyConfig; 4] = [
        PolicyConfig::TailDrop(tail_drop::Config {}),
        PolicyConfig::Epd(epd::Config::default()),
        PolicyConfig::SelectiveDrop(selective_drop::Config::default()),
        PolicyConfig::Fba(fba::Config::default()),
    ];
    println!("smoltcp {VERSION}                efficiency  fairness  retransmitted");
    for congestion in [Congestion::Reno, Congestion::Cubic] {
        for policy in &policies {
            let config = Config { congestion, ..Config::default() };
            let trial = Trial::new(5).policy(policy.clone());
            let result = trial.run(|ends| Smoltcp::pair(&config, ends, Application::Bulk));
            let retransmitted: u64 = result.flows.iter().filter_map(|flow| flow.retransmitted_segments).sum();
            println!(
                "{:<6} {:<20} {:>10.3} {:>9.3} {retransmitted:>14}",
                format!("{congestion:?}"),
                policy.name(),
                result.efficiency,
                result.fairness.unwrap_or(f64::NAN),
            );
        }
    }
}
