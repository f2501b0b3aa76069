//! Compares the memory estimates of runs with the memory that the runs take, measured by a counting allocator.
//!
//! The networks are large and the runs short, so that most memory is taken by the records created at the start of a
//! run. There is only one test, because the allocator counts the memory of all threads.

use celltrain_core::engine::Engine;
use celltrain_core::network::Network;
use celltrain_run::memory::MemoryEstimate;
use celltrain_run::requests::Tally;
use celltrain_scenario::document::Document;
use celltrain_scenario::scenario::MeasureOptions;
use celltrain_scenario::{build, read_toml};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// Topology and other settings of the networks with the most extreme memory use among fifteen measured networks.
const NETWORKS: [(&str, &str); 4] = [
    ("n_source = {sources = 1100, link_delay = '5us'}", "buffer = 1000\npolicy.tail_drop = {}"),
    ("chain = {hops = 30, cross = 30, long = 10, link_delay = '5us'}", "buffer = 100\npolicy.epd.threshold = 80"),
    // A switch with 2100 hosts, of which only two send.
    ("", "buffer = 100\npolicy.tail_drop = {}"),
    (
        "n_source = {sources = 520, link_delay = '5us'}",
        "buffer = 1000\npolicy.tail_drop = {}\nallocator.erica = {}\n[vc.'tcp1-520'.abr]",
    ),
];

#[test]
fn the_memory_that_a_run_uses_lies_between_the_lower_bound_and_the_likely_estimate() {
    // First create the objects that exist once per process, so that their memory is not measured.
    network(NETWORKS[0]);
    for large in NETWORKS {
        for engine in Engine::ALL {
            let before = ALLOCATED.current_usage();
            let network = network(large);
            let taken = peak(before, || drop(engine.run_to_end(&network)));
            let MemoryEstimate { least, likely, .. } = MemoryEstimate::of(&network);
            let engine = engine.name();
            assert!((least..=likely).contains(&taken), "{large:?}, {engine}: {taken} of {least} to {likely}");
        }
    }
    // In the following runs, records of requests take most of the memory.
    for duration in ["2ms", "4ms"] {
        let network = requests(duration);
        let MemoryEstimate { certain_requests, least, likely, .. } = MemoryEstimate::of(&network).with_records();
        for engine in Engine::ALL {
            let mut opened = 0;
            let taken = peak(ALLOCATED.current_usage(), || {
                opened = engine.run_to_end(&network).requests.iter().map(|group| group.opened).sum();
            });
            let engine = engine.name();
            assert!(opened >= certain_requests, "{duration}, {engine}: {opened} of at least {certain_requests}");
            assert!((least..=likely).contains(&taken), "{duration}, {engine}: {taken} of {least} to {likely}");
        }
    }
    // Without records of requests, memory does not grow with the number of requests.
    let [short, long] = ["2ms", "16ms"].map(|duration| {
        let mut network = requests(duration);
        network.requests.drops_closed = true;
        peak(ALLOCATED.current_usage(), || {
            let mut tally = Tally::new(&network, &MeasureOptions::default(), true);
            Engine::Fast.run(&network, &mut tally, |_| true).expect("nothing cancels this run");
        })
    });
    assert!(long < 3 * short, "eight times as many requests take {long} bytes, compared with {short}");
    // Regression: in the fast engine, an averaging interval of 1 ps took 10 GB, because memory grew with simulated time
    // instead of the number of cells.
    let short = "n_source = {sources = 2, link_delay = '5us'}";
    let network =
        network((short, "buffer = 1000\npolicy.tail_drop = {}\nallocator.erica.interval = '1ps'\n[vc.'tcp1-2'.abr]"));
    let network = Network { duration: "5ms".parse().expect("the text is a duration"), ..network };
    for engine in Engine::ALL {
        let taken = peak(ALLOCATED.current_usage(), || drop(engine.run_to_end(&network)));
        assert!(taken < 1 << 20, "{}: {taken}", engine.name());
    }
    // Regression: each fault of a scenario took a kilobyte. Now only the first thousand faults are stored.
    let text = (0..20_000).map(|i| format!("key{i} = {i}")).collect::<Vec<String>>().join("\n");
    let of_text = peak(ALLOCATED.current_usage(), || drop(Document::from_toml(&text)));
    let of_faults = peak(ALLOCATED.current_usage(), || {
        let faults = read_toml(&text, "many").faults;
        assert_eq!(faults.len(), 1_001);
        assert!(faults[1_000].message.contains("more faults, which are not shown"), "{}", faults[1_000].message);
    });
    assert!(of_faults < of_text + (1 << 21), "the faults take {of_faults} bytes, but the text itself only {of_text}");
}

/// Returns a network with many short requests.
fn requests(duration: &str) -> Network {
    let text = format!(
        "duration = '{duration}'\ntopology.n_source = {{sources = 4, link_rate = '10Gbps', link_delay = '1us'}}\n\
         tcp.vanilla = {{}}\nport.default = {{buffer = 1000, policy.tail_drop = {{}}}}\n\
         requests.web = {{load = 0.1, sizes = '1B'}}"
    );
    build::network(&read_toml(&text, "requests").expect_scenario(), 1)
}

/// Returns the peak number of bytes allocated during `work`, minus `before`.
fn peak(before: usize, work: impl FnOnce()) -> u64 {
    ALLOCATED.reset_peak_usage();
    work();
    (ALLOCATED.peak_usage() - before) as u64
}

fn network((topology, rest): (&str, &str)) -> Network {
    let topology = if topology.is_empty() { idle_links() } else { topology.to_string() };
    let text = format!("duration = '1us'\n[topology]\n{topology}\n[tcp.sack]\n[port.default]\n{rest}\n");
    build::network(&read_toml(&text, "large").expect_scenario(), 1)
}

fn idle_links() -> String {
    let hosts: Vec<String> = (0..2100).map(|i| format!("'h{i}'")).collect();
    let link = |host: &String| format!("{{between = [{host}, 'sw'], rate = '155.52Mbps', delay = '5us'}}");
    let links: Vec<String> = hosts.iter().map(link).collect();
    let flow = "{name = 'a', from = 'h0', to = 'h1'}, {name = 'b', from = 'h2', to = 'h1'}";
    format!(
        "network = {{hosts = [{}], switches = ['sw'], links = [{}], flows = [{flow}]}}",
        hosts.join(", "),
        links.join(", ")
    )
}
