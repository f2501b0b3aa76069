//! Reading, checking and laying out end wherever they are told to.

use std::cell::Cell;
use std::path::Path;

use celltrain_core::stop::{Interrupted, Stop};
use celltrain_scenario::{Machine, Reader, Reading, Scenario, build, check};

/// How often this work asks whether it may go on, asking before each piece of it; after so many times it hears no.
fn asked<T>(most: usize, work: impl FnOnce(&Stop<'_>) -> Result<T, Interrupted>) -> (usize, Result<T, Interrupted>) {
    let asked = Cell::new(0);
    let go_on = || {
        asked.set(asked.get() + 1);
        asked.get() <= most
    };
    let outcome = work(&Stop::every(1, &go_on));
    (asked.get(), outcome)
}

fn read(text: &str, stop: &Stop<'_>) -> Result<Reading, Interrupted> {
    Reader { source: "here.toml", machine: Machine::default(), stop }.toml(text)
}

fn scenario(text: &str) -> Scenario {
    let reading = read(text, &Stop::never()).unwrap();
    reading.scenario.unwrap_or_else(|| panic!("{:?}", reading.faults))
}

/// Names and texts of the shipped scenarios: every topology, policy, scheduler, allocator and kind of traffic.
fn shipped() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let named = |file: &std::path::PathBuf| (file.display().to_string(), std::fs::read_to_string(file).unwrap());
    files.iter().map(named).collect()
}

#[test]
fn reading_ends_at_whichever_question_is_answered_with_no() {
    let all = shipped();
    assert!(all.len() > 20);
    for (name, text) in all {
        let (questions, whole) = asked(usize::MAX, |stop| read(&text, stop));
        assert!(whole.unwrap().scenario.is_some(), "{name}");
        // Some hundred of them, spread over all.
        for most in (0..questions).step_by(1 + questions / 100) {
            let (told, outcome) = asked(most, |stop| read(&text, stop));
            assert!(outcome.is_err(), "{name}: question {most} of {questions}");
            assert_eq!(told, most + 1, "{name}: nobody asks again");
        }
    }
}

#[test]
fn so_does_reading_what_is_refused() {
    let faulty = r#"
        duration = "1s"
        [topology.network]
        hosts = ["a", "b", "c"]
        switches = ["s"]
        links = [{ between = ["a", "s"], delay = "0s" }, { between = ["s", "q"], delay = "0s" }]
        flows = [{ from = "a", to = "b" }, { from = "a", to = "z", path = ["a", "x", "z"] }]
        [flow.tcp9]
        start = "1s"
        [vc.tcp8]
        tagged = true
        [port.nowhere]
        buffer = 10
        policy = { tail_drop = {} }
    "#;
    let (questions, whole) = asked(usize::MAX, |stop| read(faulty, stop));
    assert!(whole.unwrap().faults.len() > 3);
    for most in 0..questions {
        assert!(asked(most, |stop| read(faulty, stop)).1.is_err(), "question {most} of {questions}");
    }
}

#[test]
fn every_topology_asks_for_each_flow_while_it_is_checked_laid_out_and_built() {
    let topologies = [
        "[topology.n_source]\nsources = 50\nlink_delay = \"5us\"",
        "[topology.star]\nhosts = 50\npattern = \"ring\"\nlink_delay = \"5us\"",
        "[topology.chain]\nhops = 5\nlong = 10\ncross = 8\nlink_delay = \"5us\"",
        "[topology.vc_merge]\nvcs = 10\nsources_per_vc = 5\nlink_delay = \"5us\"",
        "[edge.\"*\"]\nbuffer = 1000\ndiscard = { tail_drop = {} }\n[topology.internetwork]\nsources = 50\nip_delay = \"5us\"\natm_delay = \"5us\"",
    ];
    for topology in topologies {
        let text =
            format!("duration = \"1ms\"\n{topology}\n[port.default]\nbuffer = 1000\npolicy = {{ tail_drop = {{}} }}\n");
        let scenario = scenario(&text);
        let layout = |stop: &Stop<'_>| build::layout(&scenario.topology, stop);
        let known = layout(&Stop::never()).unwrap();
        let flows = known.flows.len();
        assert!(flows >= 50);
        let parts: [(&str, &dyn Fn(&Stop<'_>) -> Result<(), Interrupted>); 4] = [
            ("layout", &|stop| layout(stop).map(|_| ())),
            ("channels", &|stop| build::channels(&known, stop).map(|_| ())),
            ("network", &|stop| build::network_unless(&scenario, 1, stop).map(|_| ())),
            ("checks", &|stop| check::check(&scenario, &[], Machine::default(), stop).map(|_| ())),
        ];
        for (name, part) in parts {
            let (questions, outcome) = asked(usize::MAX, part);
            assert_eq!(outcome, Ok(()));
            assert!(questions >= flows, "{topology}: {name} asks {questions} times for {flows} flows");
            for most in (0..questions).step_by(1 + questions / 50) {
                assert_eq!(asked(most, part), (most + 1, Err(Interrupted)), "{topology}: {name}");
            }
        }
    }
}
