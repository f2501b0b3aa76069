use std::collections::BTreeSet;

use celltrain_core::engine::Engine;
use celltrain_core::network::Network;
use celltrain_core::requests::{Arrivals, Opening, Pair, PairIndex, PairOrder, RequestGroup, Sizes};
use celltrain_core::units::{Bytes, Duration};
use celltrain_scenario::{build, read_toml};

use super::{Block, Choice, KINDS, Kind, Log, Values, Wrong, described};

fn network() -> Network {
    let text = "duration = \"20ms\"\n[topology.n_source]\nsources = 3\nlink_delay = \"5us\"\n[tcp.reno]\n\
                [port.bottleneck]\nbuffer = 60\n[port.bottleneck.policy.epd]\nthreshold = 40\n";
    build::network(&read_toml(text, "test").expect_scenario(), 1)
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn choice(kinds: &[&str], of: [Option<&[&str]>; 3], window: Option<&str>) -> Result<Choice, Wrong> {
    Choice::new(network().duration, &names(kinds), of.map(|list| list.map(names)), window)
}

/// Returns the blocks recorded in a run of the reference engine, which reports all events.
fn kept(choice: &Choice) -> Vec<Block> {
    kept_of(&network(), choice)
}

fn kept_of(network: &Network, choice: &Choice) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut sink = |block| {
        blocks.push(block);
        true
    };
    let mut log = Log::new(choice, network, &mut sink).expect("the network has the chosen flows and ports");
    Engine::Reference.run(network, &mut log, |_| true).expect("no test cancels a run");
    log.finish();
    blocks
}

fn words(block: &Block, column: usize) -> BTreeSet<String> {
    let Values::Words(places, words) = &block.columns[column] else { panic!("column {column} has words") };
    places.iter().filter_map(|&place| usize::try_from(place).ok()).map(|place| words[place].clone()).collect()
}

fn times(block: &Block) -> &[f64] {
    let Values::Numbers(times) = &block.columns[0] else { panic!("the first column is the time") };
    times
}

fn of_kind(blocks: &[Block], kind: Kind) -> &Block {
    blocks.iter().find(|block| block.kind == kind).expect("the blocks contain events of this kind")
}

#[test]
fn each_kind_of_event_has_a_table_whose_first_column_is_the_time() {
    let tables = described();
    for (table, (kind, name, _)) in tables.as_array().expect("the value is a list").iter().zip(KINDS) {
        assert_eq!(table["name"], name);
        assert_eq!(super::name_of(kind), name);
        let columns = table["columns"].as_array().expect("the value is a list");
        assert_eq!(columns[0]["name"], "time_s");
        let distinct: BTreeSet<String> = columns.iter().map(|column| column["name"].to_string()).collect();
        assert_eq!(distinct.len(), columns.len(), "{name}");
        for column in columns {
            let is_text = column["kind"] == "name" || column["kind"] == "bool";
            assert_eq!(is_text, column["unit"] == "", "{name}: {column}");
        }
    }
}

#[test]
fn a_run_produces_rows_for_every_kind_of_event() {
    let blocks = kept(&choice(&[], [None; 3], None).expect("the choice is valid"));
    let kinds: Vec<Kind> = blocks.iter().map(|block| block.kind).collect();
    assert_eq!(kinds, [Kind::Segments, Kind::Timers, Kind::Frames, Kind::Cells], "the network has no ABR VCs");
    for block in &blocks {
        assert!(times(block).is_sorted());
        assert_eq!(
            words(block, if block.kind == Kind::Cells { 2 } else { 1 }),
            ["tcp1", "tcp2", "tcp3"].map(String::from).into()
        );
    }
    assert_eq!(words(of_kind(&blocks, Kind::Cells), 1), ["sw1->sw2".to_owned()].into(), "only the bottleneck");
    let refused = words(of_kind(&blocks, Kind::Frames), 7);
    assert!(refused.contains("X is above R"), "{refused:?}");
}

#[test]
fn event_rows_are_selected_by_flow_port_and_time_window() {
    let of = [Some(&["sw1->sw2"][..]), None, Some(&["tcp2"][..])];
    let blocks = kept(&choice(&["segments", "frames"], of, Some("500us:1500us")).expect("the choice is valid"));
    assert_eq!(blocks.len(), 2);
    for block in &blocks {
        assert!(times(block).iter().all(|time| (0.0005..0.0015).contains(time)), "{block:?}");
        assert_eq!(words(block, 1), ["tcp2".to_owned()].into());
    }
    assert_eq!(words(of_kind(&blocks, Kind::Frames), 6), ["sw1->sw2".to_owned()].into());
}

#[test]
fn events_are_delivered_in_blocks_until_the_receiver_asks_to_stop() {
    let choice = choice(&["cells"], [None; 3], None).expect("the choice is valid");
    let all: usize = kept(&choice).iter().map(|block| times(block).len()).sum();
    assert!(all > 100, "{all} rows");
    let (network, mut asked) = (network(), 0);
    let mut sink = |_| {
        asked += 1;
        false
    };
    let mut log = Log::new(&choice, &network, &mut sink).expect("the network has the chosen flows and ports");
    Engine::Reference.run(&network, &mut log, |_| true).expect("no test cancels a run");
    log.finish();
    log.finish();
    assert!(log.has_failed());
    assert_eq!(asked, 1);
}

#[test]
fn an_invalid_event_selection_is_refused_with_a_message() {
    let said = |kinds: &[&str], window: Option<&str>| {
        choice(kinds, [None; 3], window).expect_err("the choice is refused").to_string()
    };
    assert_eq!(
        said(&["segment"], None),
        "kinds = \"segment\" is not a kind of event; did you mean segments? (choose from segments, timers, frames, cells, rates, memories)"
    );
    assert_eq!(said(&[], Some("1ms")), "window = \"1ms\" is not a time window such as 1.2s:1.3s");
    assert!(said(&[], Some("5ms:1ms")).contains("ends before it begins"));
    assert!(said(&[], Some("5ms:5ms")).contains("is empty"));
    assert!(said(&[], Some("5ms:30ms")).contains("lies outside the run, which lasts 20ms"));
    assert!(said(&[], Some("20ms:")).contains("is empty"));
    assert!(said(&[], Some("5:6ms")).contains("has the end \"5\", which is not"));
    let there = |of| {
        let (choice, network) =
            (choice(&[], of, None).expect("names of events are looked up in the network"), network());
        Log::new(&choice, &network, &mut |_| true).err().expect("the choice is refused").to_string()
    };
    assert!(
        there([Some(&["sw1->sw3"][..]), None, None])
            .starts_with("ports = \"sw1->sw3\" is not a port of this network; did you mean sw1->sw2?")
    );
    assert!(
        there([None, Some(&["tcp9"][..]), None]).starts_with(
            "vcs = \"tcp9\" is not a VC of this network; did you mean tcp1? (choose from tcp1, tcp1-acks, "
        )
    );
    assert_eq!(
        there([None, Some(&["tcp2"][..]), Some(&["tcp1", "tcp3"][..])]),
        "vcs = \"tcp2\" excludes every VC that the option flows selects: tcp1, tcp1-acks, tcp3, tcp3-acks"
    );
    assert!(there([None, None, Some(&["tcp9"][..])]).starts_with(
        "flows = \"tcp9\" is not a flow of this network; did you mean tcp1? (choose from tcp1, tcp2, tcp3)"
    ));
}

/// Returns the network with a group of requests on the VCs of its first flow.
fn with_requests() -> Network {
    let mut network = network();
    let flow = network.flows.raw[0].clone();
    let (from, to) = (network.source(flow.data_vc), network.destination(flow.data_vc));
    let [there, back] = [0, 1].map(PairIndex::new);
    network.requests.pairs.push(Pair { from, to, vcs: vec![flow.data_vc], back });
    network.requests.pairs.push(Pair { from: to, to: from, vcs: vec![flow.ack_vc], back: there });
    network.requests.groups.push(RequestGroup {
        name: "web".into(),
        tcp: flow.tcp,
        outside: false,
        opening: Opening::Handshake,
        arrivals: Arrivals::Poisson {
            mean: Duration::from_milliseconds(1),
            sizes: Sizes::constant(Bytes { bytes: 1000 }),
            pairs: vec![there],
            order: PairOrder::Random,
        },
    });
    network
}

#[test]
fn event_tables_identify_requests_by_group_and_number() {
    let network = with_requests();
    let opened = Engine::Reference.run_to_end(&network).requests.raw[0].opened;
    assert!(opened > 5, "{opened}");
    let blocks = kept_of(&network, &choice(&["segments", "timers"], [None; 3], None).expect("the choice is valid"));
    let expected: BTreeSet<String> = (0..opened).map(|number| format!("web{number}")).collect();
    for kind in [Kind::Segments, Kind::Timers] {
        let named: BTreeSet<String> =
            words(of_kind(&blocks, kind), 1).into_iter().filter(|name| name.starts_with("web")).collect();
        assert_eq!(named, expected, "each connection sends a SYN, and its timer starts");
    }
    let steps = words(of_kind(&blocks, Kind::Segments), 2);
    assert!(["syn_sent", "syn_arrived", "syn_ack_sent", "syn_ack_arrived"].iter().all(|step| steps.contains(*step)));
    let blocks =
        kept_of(&network, &choice(&["segments"], [None, None, Some(&["tcp1"])], None).expect("the choice is valid"));
    assert_eq!(words(of_kind(&blocks, Kind::Segments), 1), ["tcp1".to_owned()].into(), "requests are not selected");
}
