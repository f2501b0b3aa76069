//! Tests of memories shared by ports: the networks built from scenarios with memories, and the faults in the tables of
//! memories.

use celltrain_core::aal5::CellFormat;
use celltrain_core::engine::Engine;
use celltrain_core::index::{LinkIndex, MemoryIndex};
use celltrain_core::memory::{Lossless, MemoryConfig, PauseAt, PauseResponse, PolicyScope, Side};
use celltrain_core::network::Network;
use celltrain_core::units::Time;

use super::{messages, read};

const STAR: &str = r#"duration = "20ms"
[topology.network]
hosts = ["host1", "host2", "host3", "host4"]
switches = ["sw"]
links = [
    { between = ["host1", "sw"], delay = "5us" }, { between = ["host2", "sw"], delay = "5us" },
    { between = ["host3", "sw"], delay = "5us" }, { between = ["host4", "sw"], delay = "5us" },
]
flows = [{ from = "host1", to = "host4" }, { from = "host2", to = "host4" }, { from = "host2", to = "host3" }]
"#;

const MEMORY: &str = "
[switch.sw.memory]
cells = 1000
[switch.sw.memory.pool.main.policy.dynamic_threshold]
alpha = 1
";

fn network(tables: &str) -> Network {
    let reading = read(&format!("{STAR}{tables}"));
    assert_eq!(reading.faults, []);
    reading.network.unwrap()
}

fn memory(network: &Network) -> &MemoryConfig {
    &network.memories[MemoryIndex::new(0)]
}

/// Returns the faults of the star scenario with these tables added, without the file name.
fn faults(tables: &str) -> Vec<String> {
    let faults = messages(&format!("{STAR}{tables}"));
    faults.into_iter().map(|fault| fault.trim_start_matches("test.toml:").to_string()).collect()
}

fn refused(tables: &str, parts: &[&str]) {
    let faults = faults(tables);
    assert_eq!(faults.len(), 1, "{faults:#?}");
    for part in parts {
        assert!(faults[0].contains(part), "{part:?} is not in {:?}", faults[0]);
    }
}

#[test]
fn by_default_all_ports_of_a_switch_share_a_memory_without_reserved_space() {
    let network = network(MEMORY);
    let memory = memory(&network);
    let names: Vec<&str> = memory.ports.iter().map(|&port| network.links[port].name.as_str()).collect();
    assert_eq!(names, ["sw->host1", "sw->host2", "sw->host3", "sw->host4"]);
    let pool = &memory.pools.raw[0];
    assert_eq!((pool.name.as_str(), pool.side, pool.cells), ("main", Side::Egress, 1000));
    assert!(memory.ports.iter().all(|&port| network.links[port].buffer == Some(1000)));
    // Data cells go to host3 and host4, and acknowledgements go to host1 and host2.
    assert_eq!(memory.queues.len(), 4);
    let result = Engine::Reference.run_to_end(&network);
    assert!(result.memories[MemoryIndex::new(0)].max_used_cells > 0);
}

#[test]
fn the_memory_table_configures_queues_pools_reserves_and_headrooms() {
    let network = network(
        r#"
[vc.tcp1]
priority = 3
[switch.sw.memory]
cells = 1000
policies_see = "memory"
queue = [
    { pool = "out", ports = ["sw->host4"], reserve = 10, alpha = 2 },
    { pool = "lossless", priorities = [3], reserve = 5, lossless = true, headroom = 20, xon_offset = 3, pause_at = "threshold" },
    { pool = "lossy" },
]
[switch.sw.memory.pool.out.policy.dynamic_threshold]
[switch.sw.memory.pool.lossless]
side = "ingress"
cells = 300
policy.dynamic_threshold = { alpha = 0.5, arriving_cell = "counted" }
[switch.sw.memory.pool.lossy]
side = "ingress"
policy.static_thresholds = {}
"#,
    );
    let memory = memory(&network);
    assert_eq!(memory.policies_see, PolicyScope::Memory);
    let cells: Vec<(&str, u32)> = memory.pools.iter().map(|pool| (pool.name.as_str(), pool.cells)).collect();
    // At the port to host4, the queues of priorities 0 and 3 each have a reserve of 10 cells. At each of the four
    // inputs, the group of priority 3 has a reserve of 5 cells and a headroom of 20 cells.
    assert_eq!(cells, [("lossless", 300), ("lossy", 600), ("out", 980)]);
    let queue = |link: &str, priority, pool: &str| {
        let mut found = memory.queues.iter().filter(|queue| {
            let name = &network.links[queue.link].name;
            (name.as_str(), queue.priority, memory.pools[queue.pool].name.as_str()) == (link, priority, pool)
        });
        found.next().unwrap_or_else(|| panic!("{link} has no queue of priority {priority} in the pool {pool}"))
    };
    let out = queue("sw->host4", 3, "out");
    assert_eq!((out.reserve, out.alpha), (10, Some(2.0)));
    assert_eq!(queue("sw->host3", 0, "out").reserve, 0);
    let group = queue("host4->sw", 3, "lossless");
    let lossless = Lossless { headroom: 20, xon: 0, xon_offset: Some(3), pause_at: PauseAt::Threshold };
    assert_eq!((group.reserve, group.lossless), (5, Some(lossless)));
    assert_eq!(queue("host2->sw", 0, "lossy").lossless, None);
    assert_eq!(network.links[LinkIndex::new(0)].buffer, None, "the port belongs to a host");
    assert!(memory.ports.iter().all(|&port| network.links[port].buffer == Some(980)));
}

#[test]
fn an_error_in_a_memory_table_names_the_line_the_wrong_value_and_valid_values() {
    let with = |more: &str| format!("{MEMORY}{more}");
    let replaced = |from: &str, to: &str| {
        assert!(MEMORY.contains(from));
        MEMORY.replace(from, to)
    };
    refused(
        &with("[switch.sw.memory.pool.other]\nside = \"ingress\"\ncells = 1001\npolicy.complete_sharing = {}\n"),
        &["17: switch.sw.memory.pool.other.cells = 1001 is larger than the memory, which has 1000 cells"],
    );
    refused(
        &replaced("cells = 1000", "cells = 1000\nqueue = [{ reserve = 251 }]"),
        &["switch.sw.memory.cells = 1000 is less than the reserves and headrooms of the egress side, 1004 and 0 cells"],
    );
    refused(
        &replaced(
            "[switch.sw.memory.pool",
            "[switch.sw.memory.pool.main]\ncells = 991\n[[switch.sw.memory.queue]]\nreserve = 5\n[switch.sw.memory.pool",
        ),
        &["pool.main.cells = 991 is too large", "991 cells, reserves 20", "leave the key cells out"],
    );
    refused(
        "[switch.sw.memories.a]\ncells = 10\npool.p.policy.complete_sharing = {}\n\
         [switch.sw.memories.b]\ncells = 10\nports = [\"sw->host3\"]\npool.p.policy.complete_sharing = {}\n",
        &["switch.sw.memories.b.ports has the port sw->host3, which is already in the memory sw.a"],
    );
    refused(
        &replaced("cells = 1000", "cells = 1000\nqueue = [{ headroom = 7 }]"),
        &["13: switch.sw.memory.queue[0].headroom = 7 belongs to a lossy group", "write lossless = true"],
    );
    refused(
        &replaced("cells = 1000", "cells = 1000\nqueue = [{ lossless = true }]"),
        &["queue[0].lossless = true is for priority groups", "side = \"ingress\""],
    );
    let ingress = "[switch.sw.memory]\ncells = 100\nqueue = [{ lossless = true }]\n\
                   pool.p = { side = \"ingress\", policy.dynamic_threshold = {} }\n";
    refused(ingress, &["queue[0].lossless = true pauses a link without headroom", "add headroom, in cells"]);
    refused(&replaced("switch.sw.", "switch.sv."), &["switch.sv is not a switch; did you mean \"sw\"?"]);
    refused(&replaced("cells = 1000", "cells = 0"), &["cells = 0 is not a whole number (1 to 4294967295)"]);
    refused(&replaced("alpha = 1", "alpha = 0"), &["dynamic_threshold.alpha = 0", "above 0"]);
    refused(&replaced("alpha = 1", "alhpa = 1"), &["alhpa is unknown; did you mean alpha?"]);
    refused(
        &replaced("cells = 1000", "cells = 1000\nports = [\"sw->host9\"]"),
        &["ports[0] = \"sw->host9\" is not an output port of the switch", "did you mean"],
    );
    refused(
        &replaced("cells = 1000", "cells = 1000\nqueue = [{ threshold = 7 }]"),
        &[
            "queue[0].threshold = 7 has no effect: dynamic_threshold of the pool main does not use the thresholds of queues",
        ],
    );
    refused(
        &replaced("cells = 1000", "cells = 1000\nqueue = [{ pool = \"mian\" }]"),
        &["queue[0].pool = \"mian\" is not a pool of the memory; did you mean \"main\"?"],
    );
    refused(
        &replaced("cells = 1000", "cells = 1000\nqueue = [{ priorities = [8] }]"),
        &["queue[0].priorities[0] = 8 is not a priority (0 to 7)"],
    );
    refused(&with("[vc.tcp1]\npriority = 8\n"), &["vc.tcp1.priority = 8 is not a priority (0 to 7)"]);
    refused(
        &format!("[switch]\ntie_ordr = \"fixed\"\n{MEMORY}"),
        &["switch.tie_ordr is unknown; did you mean tie_order?"],
    );
}

#[test]
fn ports_share_a_buffer_only_in_switches_with_a_memory_table() {
    let port = "[port.default]\nbuffer = 100\npolicy.tail_drop = {}\n";
    refused(&format!("{port}{MEMORY}"), &["port.default.buffer = 100 is the buffer of sw->host1", "write \"shared\""]);
    let shared = port.replace("100", "\"shared\"");
    refused(&shared, &["port.default.buffer = \"shared\" needs a memory", "[switch.sw.memory]"]);
    let network = network(&format!("{}{MEMORY}", shared.replace("tail_drop = {}", "epd = { threshold = \"80%\" }")));
    let port = memory(&network).ports[0];
    assert_eq!(network.links[port].policy.threshold_cells(network.links[port].buffer), Some(800));
}

#[test]
fn a_memory_policy_that_pushes_out_cells_requires_ports_that_support_removal() {
    let drop = MEMORY.replace("dynamic_threshold]\nalpha = 1", "longest_queue_drop]");
    refused(
        &drop.replace(
            "[switch.sw.memory.pool.main.",
            "[switch.sw.memory.pool.main]\nside = \"ingress\"\n[switch.sw.memory.pool.main.",
        ),
        &["longest_queue_drop removes waiting cells"],
    );
    let port = "[port.default]\nbuffer = \"shared\"\npolicy.tail_drop = {}\nscheduler.round_robin = {}\n";
    refused(&format!("{drop}{port}"), &["but the port sw->host1 has the scheduler round_robin"]);
}

#[test]
fn cells_of_any_size_carry_frames_and_their_size_determines_their_transmission_time() {
    let network = network(&format!("[cell]\nsize = \"254B\"\n{MEMORY}"));
    assert_eq!(network.aal5.cell, CellFormat { size: 254, payload: 254 });
    // A frame has 512 bytes of data, 40 bytes of TCP and IP headers, 8 bytes of LLC/SNAP header and 8 bytes of AAL5
    // trailer.
    assert_eq!(network.aal5.segment_cells(512), 3);
    let clock = network.clock();
    assert!(clock.exact);
    let cell_time = clock.cell_time("155.52Mbps".parse().unwrap());
    assert!((clock.seconds(Time(cell_time.0)) - 254.0 * 8.0 / 155.52e6).abs() < 1e-12);
    let result = Engine::Reference.run_to_end(&network);
    let most = 512.0 / (3.0 * 254.0) * 155.52;
    assert!(result.flows.iter().all(|flow| flow.goodput_mbps > 0.0 && flow.goodput_mbps <= most));
    let in_atm = Engine::Reference.run_to_end(&self::network(MEMORY));
    assert!(result.efficiency <= 1.0 && in_atm.cell_hops > result.cell_hops);
}

#[test]
fn the_error_for_an_invalid_cell_size_states_the_valid_values() {
    let with = |more: &str| format!("{more}{MEMORY}");
    refused(&with("[cell]\nsize = \"7B\"\n"), &["cell.size = \"7B\" must be from 8B to 65536B"]);
    refused(&with("[cell]\nsize = \"64B\"\npayload = \"65B\"\n"), &["cell.payload = \"65B\" must be from 8B to"]);
    refused(&with("[cell]\nsize = 254\n"), &["cell.size = 254 is not a"]);
    let gfr = "[cell]\nsize = \"64B\"\n[vc.tcp1.gfr]\nmcr = \"1Mbps\"\nmfs = 12\n";
    refused(&with(gfr), &["cell.size = \"64B\" is not possible with a guaranteed frame rate"]);
}

#[test]
fn a_response_time_to_pause_frames_is_refused_if_links_do_not_carry_pause_frames() {
    let lossless = "[switch.sw.memory]\ncells = 100\nqueue = [{ lossless = true, headroom = 20 }]\n\
                    pool.p = { side = \"ingress\", policy.dynamic_threshold = {} }\n";
    let with =
        |cell: &str, keys: &str| format!("{cell}{}", lossless.replace("cells = 100", &format!("cells = 100\n{keys}")));
    let (own, atm) = ("[cell]\nsize = \"250B\"\n", "");
    let links = "pauses = \"links\"\npause_response = \"394 quanta\"";
    let found = network(&with(own, links));
    assert_eq!(memory(&found).pause_response, Some(PauseResponse::Quanta(394)));
    assert!(found.clock().exact);
    refused(&with(atm, links), &["pause_response = \"394 quanta\" needs framing = \"packets\"", "framing ="]);
    refused(&with(own, "pause_response = \"2us\""), &["pause_response = \"2us\" has no effect", "pauses = \"links\""]);
    for text in ["\"2\"", "\"half a quantum\"", "2"] {
        refused(&with(own, &format!("pauses = \"links\"\npause_response = {text}")), &["pause_response", "is not a"]);
    }
}
