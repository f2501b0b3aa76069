//! A run's result as the JSON that the command line promises, by the tables.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use celltrain_core::network::{Network, Vc};

use crate::measure::{Measure, object, outline};
use crate::tables::{ABR, CONTRACT, FLOW, PORT, RUN, RunRecord};

/// Version and profile of what ran.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Build {
    /// Of celltrain.
    pub version: &'static str,
    /// `release` or `debug`.
    pub profile: &'static str,
}

impl Build {
    /// This build.
    pub fn this() -> Self {
        let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
        Self { version: env!("CARGO_PKG_VERSION"), profile }
    }
}

/// What of an answer's lists is wanted: by the list's name the columns, beside the rows' names. A list that is not there
/// is not wanted; `bottleneck` is that port's row alone.
pub type Wanted = BTreeMap<String, Vec<String>>;

/// The whole answer, or as much of its lists as is wanted.
pub fn answer(run: &RunRecord, wanted: Option<&Wanted>) -> Value {
    let result = &run.result;
    let mut answer = object(RUN, run, |_| true);
    let ports = match wanted {
        Some(wanted) if !wanted.contains_key("ports") => {
            let bottleneck: Vec<_> = result.ports.iter().filter(|port| port.name == run.bottleneck).cloned().collect();
            rows(PORT, &bottleneck, columns(Some(wanted), "bottleneck"))
        }
        _ => rows(PORT, &result.ports, columns(wanted, "ports")),
    };
    let lists = [
        ("flows", rows(FLOW, &result.flows, columns(wanted, "flows"))),
        ("ports", ports),
        ("contracts", rows(CONTRACT, &result.contracts, columns(wanted, "contracts"))),
        ("abr", rows(ABR, &result.abr, columns(wanted, "abr"))),
        ("build", json!(Build::this())),
    ];
    answer.extend(lists.map(|(name, list)| (name.to_owned(), list)));
    Value::Object(answer)
}

/// Memory of a row of an answer: its values, its text, and what Python makes of it.
const BYTES_PER_ROW: u64 = 4096;

/// What putting the answer of a run of this network together takes of memory, in bytes.
pub fn bytes(network: &Network, wanted: Option<&Wanted>) -> u64 {
    let lists = [("flows", network.flows.len()), ("ports", network.links.len())];
    let rows = lists.iter().filter(|(list, _)| wanted.is_none_or(|wanted| wanted.contains_key(*list)));
    rows.map(|&(_, rows)| rows as u64 * BYTES_PER_ROW).sum()
}

/// What the answer of a run of this network would have: every row that it would have by name, with every measure. It tells
/// which measures lead somewhere, without a run.
pub fn outlined(network: &Network) -> Value {
    let mut answer = outline(RUN, "");
    let vcs = |has: fn(&Vc) -> bool| -> Vec<&str> {
        network.vcs.iter().filter(|vc| has(vc)).map(|vc| vc.name.as_str()).collect()
    };
    let bottleneck = &network.links[network.bottleneck].name;
    let lists = [
        ("bottleneck", json!(bottleneck)),
        ("flows", outlines(FLOW, network.flows.iter().map(|flow| flow.name.as_str()))),
        ("ports", outlines(PORT, network.links.iter().map(|link| link.name.as_str()))),
        ("contracts", outlines(CONTRACT, vcs(|vc| vc.contract.is_some()))),
        ("abr", outlines(ABR, vcs(|vc| vc.abr.is_some()))),
    ];
    answer.extend(lists.map(|(name, list)| (name.to_owned(), list)));
    Value::Object(answer)
}

fn outlines<'a, T>(measures: &[Measure<T>], names: impl IntoIterator<Item = &'a str>) -> Value {
    names.into_iter().map(|name| outline(measures, name)).collect()
}

/// The columns of a list that are wanted.
#[derive(Clone, Copy)]
enum Columns<'a> {
    All,
    These(&'a [String]),
    None,
}

fn columns<'a>(wanted: Option<&'a Wanted>, list: &str) -> Columns<'a> {
    match wanted {
        None => Columns::All,
        Some(wanted) => wanted.get(list).map_or(Columns::None, |columns| Columns::These(columns)),
    }
}

fn rows<T>(measures: &[Measure<T>], items: &[T], columns: Columns<'_>) -> Value {
    // The first measure of a row is its name.
    let kept = |name: &str| match columns {
        Columns::All => true,
        Columns::These(wanted) => name == measures[0].name || wanted.iter().any(|column| column == name),
        Columns::None => false,
    };
    let row = |item: &T| -> Map<String, Value> { object(measures, item, kept) };
    match columns {
        Columns::None => json!([]),
        Columns::All | Columns::These(_) => items.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use celltrain_core::engine::Engine;
    use celltrain_core::probe::Nothing;
    use celltrain_scenario::{Machine, build, read_toml};

    use super::*;

    const SCENARIO: &str = r#"
        name = "everything"
        duration = "20ms"
        [topology.n_source]
        sources = 3
        link_delay = "5us"
        [tcp.reno]
        [measure]
        file_size = "10kB"
        [port.bottleneck]
        buffer = 200
        [port.bottleneck.policy.epd]
        threshold = 150
        [port.default]
        buffer = 500
        [port.default.policy.tail_drop]
        [port.default.allocator.equal_share]
        [port.bottleneck.allocator.equal_share]
        [vc.tcp1.gfr]
        mcr = "1Mbps"
        mfs = 20
        [vc.tcp2.abr]
    "#;

    fn network() -> Network {
        let reading = read_toml(SCENARIO, "test", Machine::default());
        assert!(reading.faults.is_empty(), "{:?}", reading.faults);
        build::network(&reading.scenario.expect("it has no faults"), 1)
    }

    fn record(network: &Network) -> RunRecord {
        let result = Engine::Fast.run(network, &mut Nothing, |_| true).expect("nobody stops it");
        let bottleneck = network.links[network.bottleneck].name.clone();
        RunRecord::new("everything".into(), 1, Engine::Fast, bottleneck, 0.5, result)
    }

    /// The paths of an answer, lists entered by their rows' names.
    fn paths(value: &Value, at: &str, into: &mut Vec<String>) {
        match value {
            Value::Object(members) => members.iter().for_each(|(name, one)| paths(one, &format!("{at}.{name}"), into)),
            Value::Array(rows) => {
                for row in rows {
                    let name = row["name"].as_str().or(row["vc"].as_str()).expect("a row has a name");
                    paths(row, &format!("{at}.{name}"), into);
                }
            }
            _ => into.push(at.to_owned()),
        }
    }

    #[test]
    fn the_outline_has_what_the_answer_of_a_run_has() {
        let network = network();
        let (mut found, mut outlined_paths) = (Vec::new(), Vec::new());
        let mut answer = answer(&record(&network), None);
        answer.as_object_mut().expect("an answer is an object").remove("build");
        paths(&answer, "", &mut found);
        paths(&outlined(&network), "", &mut outlined_paths);
        assert_eq!(found, outlined_paths);
        assert!(found.iter().any(|path| path == ".contracts.tcp1.eligible_frames"), "{found:?}");
    }

    #[test]
    fn of_the_lists_only_what_is_wanted_is_there() {
        let network = network();
        let record = record(&network);
        let all = answer(&record, None);
        let wanted = Wanted::from([
            ("flows".into(), vec!["timeouts".into(), "file_delay_ms".into()]),
            ("bottleneck".into(), vec!["max_queue_cells".into()]),
        ]);
        let some = answer(&record, Some(&wanted));
        assert_eq!(some["efficiency"], all["efficiency"]);
        assert_eq!(some["contracts"], json!([]));
        assert_eq!(some["ports"].as_array().map(Vec::len), Some(1));
        assert_eq!(some["ports"][0]["name"], some["bottleneck"]);
        let flow = &all["flows"][2];
        let expected = json!({"name": "tcp3", "timeouts": flow["timeouts"], "file_delay_ms": flow["file_delay_ms"]});
        assert_eq!(some["flows"][2], expected);
    }

    #[test]
    fn no_name_is_twice_in_a_table_and_every_line_says_what_it_is() {
        fn check<T>(measures: &[Measure<T>]) {
            for (place, measure) in measures.iter().enumerate() {
                assert!(
                    measures[..place].iter().all(|other| other.name != measure.name),
                    "{} is there twice",
                    measure.name
                );
                assert!(!measure.meaning.is_empty(), "{} says nothing", measure.name);
                assert_eq!(
                    measure.unit.is_empty(),
                    measure.kind() == "string",
                    "{}: numbers have a unit",
                    measure.name
                );
            }
        }
        check(RUN);
        check(FLOW);
        check(PORT);
        check(CONTRACT);
        check(ABR);
    }
}
