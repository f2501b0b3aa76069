//! What is foretold of a run's memory against what it takes, byte by byte: an allocator that counts.
//!
//! The networks are large and the runs so short that the records made at their start are nearly all there is. One test,
//! as the allocator counts for all threads.

use celltrain_core::engine::Engine;
use celltrain_core::footprint::Footprint;
use celltrain_core::network::Network;
use celltrain_core::probe::Nothing;
use celltrain_core::stop::Stop;
use celltrain_scenario::document::Document;
use celltrain_scenario::{Machine, build, read_toml};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// A large network, and the part of what is foretold that a run of it takes, in the fast engine and in the reference
/// engine.
///
/// It is less than 1: an allocation of its own takes up to 24 bytes more than was asked for, which are foretold and not
/// counted here; and of what comes and goes there is as yet little: frames on their way, lanes, RM cells.
struct Large {
    title: &'static str,
    topology: &'static str,
    rest: &'static str,
    taken: [f64; 2],
}

const SOURCES: &str = "n_source = {sources = 1100, link_delay = '5us'}";
const TO_ONE: &str = "star = {hosts = 1100, pattern = 'to_one', link_delay = '5us'}";
const CONTROLLED: &str = "n_source = {sources = 520, link_delay = '5us'}";

const NETWORKS: [Large; 15] = [
    Large { title: "sources", topology: SOURCES, rest: "buffer = 1000\npolicy.tail_drop = {}", taken: [0.827, 0.783] },
    Large { title: "weights", topology: SOURCES, rest: "buffer = 1000\npolicy.wba.weights = 1", taken: [0.822, 0.778] },
    Large {
        title: "virtual queues",
        topology: SOURCES,
        rest: "buffer = 1000\npolicy.virtual_queuing_weighted = {threshold = 800, minimum_share = 0.0001}",
        taken: [0.837, 0.826],
    },
    Large {
        title: "round robin",
        topology: SOURCES,
        rest: "buffer = 1000\npolicy.epd.threshold = 800\nscheduler.round_robin = {}",
        taken: [0.825, 0.756],
    },
    Large {
        title: "weighted fair queuing",
        topology: SOURCES,
        rest: "buffer = 1000\npolicy.epd.threshold = 800\nscheduler.wfq.weights = 1",
        taken: [0.832, 0.765],
    },
    Large {
        title: "contracts",
        topology: SOURCES,
        rest: "buffer = 1000\npolicy.tail_drop = {}\n[vc.'tcp1-1100'.gfr]\nmcr = '1kbps'\nmfs = 40",
        taken: [0.843, 0.795],
    },
    Large {
        title: "rates",
        topology: CONTROLLED,
        rest: "buffer = 1000\npolicy.tail_drop = {}\nallocator.erica = {}\n[vc.'tcp1-520'.abr]",
        taken: [0.714, 0.832],
    },
    Large {
        title: "marks",
        topology: CONTROLLED,
        rest: "buffer = 1000\npolicy.tail_drop = {}\nallocator.efci.threshold = 250\n[vc.'tcp1-520'.abr]",
        taken: [0.710, 0.800],
    },
    Large {
        title: "ring",
        topology: "star = {hosts = 1100, pattern = 'ring', link_delay = '5us'}",
        rest: "buffer = 12\npolicy.ppd = {}",
        taken: [0.749, 0.789],
    },
    Large { title: "to one", topology: TO_ONE, rest: "buffer = 12\npolicy.fba = {}", taken: [0.810, 0.799] },
    Large {
        title: "classes",
        topology: TO_ONE,
        rest: "buffer = 12\npolicy.epd.threshold = 8\nscheduler.strict_priority = {}\n[vc.tcp1]\nclass = 'vbr'",
        taken: [0.810, 0.759],
    },
    Large {
        title: "chain",
        topology: "chain = {hops = 30, cross = 30, long = 10, link_delay = '5us'}",
        rest: "buffer = 100\npolicy.epd.threshold = 80",
        taken: [0.797, 0.769],
    },
    Large {
        title: "merged",
        topology: "vc_merge = {vcs = 100, sources_per_vc = 10, link_delay = '5us'}",
        rest: "buffer = 100\npolicy.tail_drop = {}",
        taken: [0.807, 0.777],
    },
    Large {
        title: "edge devices",
        topology: "internetwork = {sources = 520, ip_delay = '1ms', atm_delay = '1ms'}",
        rest: "buffer = 100\npolicy.tail_drop = {}\n[edge.'*']\nbuffer = 500\ndiscard.front_drop = {}",
        taken: [0.875, 0.830],
    },
    // Hosts of which two send.
    Large { title: "idle links", topology: "", rest: "buffer = 100\npolicy.tail_drop = {}", taken: [0.897, 0.923] },
];

/// So far from what stands there a part may be.
const NEAR: f64 = 0.002;

#[test]
fn what_is_foretold_is_what_is_taken() {
    let mut far = Vec::new();
    // What is made once in a process is there before.
    NETWORKS[0].network();
    for large in &NETWORKS {
        for (engine, part) in Engine::ALL.into_iter().zip(large.taken) {
            let before = ALLOCATED.current_usage();
            let network = large.network();
            ALLOCATED.reset_peak_usage();
            let result = engine.run(&network, &mut Nothing, |_| true).expect("nothing interrupts it");
            let taken = ALLOCATED.peak_usage() - before;
            let kept = ALLOCATED.current_usage() - before;
            drop(result);
            let foretold = Footprint::of(&network, engine, &Stop::never()).unwrap();
            let [of_all, of_kept] = [(taken, foretold.bytes), (kept, foretold.kept)].map(|(a, b)| a as f64 / b as f64);
            if (of_all - part).abs() > NEAR || (of_kept - KEPT).abs() > 0.04 {
                far.push(format!(
                    "{}, {}: {of_all:.3} of all, {of_kept:.3} of what is kept",
                    large.title,
                    engine.name()
                ));
            }
        }
    }
    assert!(far.is_empty(), "{}", far.join("\n"));
    for (title, text) in SHORT_TIMES {
        for engine in Engine::ALL {
            let network = read(title, text);
            let before = ALLOCATED.current_usage();
            ALLOCATED.reset_peak_usage();
            let result = engine.run(&network, &mut Nothing, |_| true).expect("nothing interrupts it");
            let taken = (ALLOCATED.peak_usage() - before) as u64;
            drop(result);
            let foretold = Footprint::of(&network, engine, &Stop::never()).unwrap().bytes;
            let engine = engine.name();
            assert!((taken..20 * taken).contains(&foretold), "{title}, {engine}: {foretold} foretold, {taken} taken");
        }
    }
    // Each fault took a kilobyte once, and a thousand are shown.
    let text = (0..100_000).map(|i| format!("key{i} = {i}")).collect::<Vec<String>>().join("\n");
    let peak = |read: &dyn Fn()| {
        let before = ALLOCATED.current_usage();
        ALLOCATED.reset_peak_usage();
        read();
        ALLOCATED.peak_usage() - before
    };
    let of_text = peak(&|| drop(Document::from_toml(&text)));
    let of_faults = peak(&|| {
        let faults = read_toml(&text, "many", Machine::default()).faults;
        assert_eq!(faults.len(), 1_001);
        assert!(faults[1_000].message.contains("more faults, which are not shown"), "{}", faults[1_000].message);
    });
    assert!(of_faults < of_text + (1 << 21), "{of_faults} bytes for a text that takes {of_text}");
}

/// Times so short that memory once followed them instead of the cells: an averaging interval of a picosecond took 10 GB
/// in the fast engine, timeouts of a microsecond 60 MB a second in both.
const SHORT_TIMES: [(&str, &str); 2] = [
    (
        "an interval of 1 ps",
        "duration = '5ms'\n[topology.n_source]\nsources = 2\nlink_delay = '5us'\n[port.default]\nbuffer = 1000\n\
         policy.tail_drop = {}\nallocator.erica.interval = '1ps'\n[vc.'tcp1-2'.abr]",
    ),
    (
        "timeouts of 1 us",
        "duration = '100ms'\n[topology.n_source]\nsources = 2\nlink_delay = '5us'\n[tcp.reno]\ntimer_granularity = '1us'\n\
         initial_rto = '1us'\nminimum_rto = 1\nmaximum_rto = '1us'\n[port.default]\nbuffer = 1000\npolicy.tail_drop = {}",
    ),
];

/// What is kept of what is foretold of that: it is made of few large lists and of names.
const KEPT: f64 = 0.95;

impl Large {
    fn network(&self) -> Network {
        let topology = if self.topology.is_empty() { idle_links() } else { self.topology.to_string() };
        let text = format!("duration = '1us'\n[topology]\n{topology}\n[tcp.sack]\n[port.default]\n{}\n", self.rest);
        read(self.title, &text)
    }
}

fn read(title: &str, text: &str) -> Network {
    let reading = read_toml(text, title, Machine::default());
    build::network(&reading.scenario.unwrap_or_else(|| panic!("{:?}", reading.faults)), 1)
}

/// A switch with 2100 hosts.
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
