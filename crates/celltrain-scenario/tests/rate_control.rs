//! Rate control and edge devices: whole scenarios on both engines.

use celltrain_core::engine::Engine;
use celltrain_core::probe::Nothing;
use celltrain_scenario::{Machine, build, read_toml};

#[test]
fn scratch() {
    for name in ["ubr", "er", "efci", "ada"] {
        let text = std::fs::read_to_string(format!("/tmp/in-{name}.toml")).unwrap();
        let reading = read_toml(&text, name, Machine { memory: None });
        let Some(scenario) = reading.scenario else { panic!("{:#?}", reading.faults) };
        let network = build::network(&scenario, 1);
        let mut results = Vec::new();
        for engine in Engine::ALL {
            let start = std::time::Instant::now();
            let result = std::panic::catch_unwind(|| engine.run(&network, &mut Nothing, |_| true).unwrap());
            let Ok(result) = result else { println!("{name} {} panicked", engine.name()); continue };
            let seconds = start.elapsed().as_secs_f64();
            let goodput: f64 = result.flows.iter().map(|flow| flow.goodput_mbps).sum();
            println!(
                "{name} {}: {seconds:.3} s, {:.1} M/s, goodput {goodput:.2}, fairness {:.3}, fp {}",
                engine.name(), result.cell_hops as f64 / seconds / 1e6, result.fairness, result.fingerprint
            );
            for abr in result.abr.iter().take(2) { println!("   {abr:?}"); }
            for port in result.ports.iter().filter(|p| p.counters.lost() + p.counters.discarded() > 0).take(3) {
                println!("   {} max {} {:?}", port.name, port.max_queue_cells, port.counters);
            }
            results.push(result);
        }
        if results.len() == 2 { println!("equal: {}", results[0] == results[1]); }
    }
}
