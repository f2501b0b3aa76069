//! A run's result in the JSON format of the command line, built from the tables.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::ser::{Error, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::delay::{DelayChoice, queue_names};
use celltrain_core::metrics::PortResult;
use celltrain_core::network::{Network, Vc};

use crate::measure::{Measure, object, outline};
use crate::tables::{ABR, CONTRACT, EndedRun, FLOW, FORMAT, LINK, MEMORY, PORT, QUEUE, REQUEST, RUN};

/// Version, commit and build profile of the program.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Build {
    /// Version of celltrain, with the commit if it is known, such as `0.3.0.dev0+g0dd5865e` (PEP 440).
    pub version: &'static str,
    /// Commit from which this program was built, or `None` if it was built without git.
    pub commit: Option<&'static str>,
    /// Build profile: `release` or `debug`.
    pub profile: &'static str,
}

/// Commit from which the program was built, once the program has set it.
static COMMIT: OnceLock<&'static str> = OnceLock::new();

impl Build {
    /// Returns the version, commit and build profile of this program.
    pub fn this() -> Self {
        static VERSION: OnceLock<String> = OnceLock::new();
        let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
        let commit = COMMIT.get().copied();
        let version = VERSION.get_or_init(|| match commit {
            Some(commit) => format!("{}+g{commit}", Self::release()),
            None => Self::release(),
        });
        Self { version, commit, profile }
    }

    /// Returns the version without the commit, such as `0.3.0.dev0`. The key under which the result of a run is stored
    /// contains this version.
    pub fn release() -> String {
        env!("CARGO_PKG_VERSION").replace("-dev", ".dev")
    }

    /// Sets the commit of the program, before the first call of [`Build::this`]. The commit is set at run time, so that
    /// a new commit requires only the program's own crate to be compiled again.
    pub fn identify(commit: &'static str) {
        COMMIT.get_or_init(|| commit);
    }
}

/// Columns requested for an answer, by the name of their list. Row names are always included. Lists without a key are
/// omitted. The key `bottleneck` selects, from the list of ports, only the row of the bottleneck port.
pub type Wanted = BTreeMap<String, Vec<String>>;

/// Returns which delays must be measured for the requested columns.
pub fn delays(wanted: &Wanted) -> DelayChoice {
    fn reads<T>(wanted: &Wanted, lists: &[&str], measures: &[Measure<T>]) -> bool {
        let is_delay = |name: &str| measures.iter().any(|measure| measure.on_request && measure.name == name);
        lists.iter().filter_map(|&list| wanted.get(list)).flatten().any(|name| is_delay(name))
    }
    let ports = reads(wanted, &["ports", "bottleneck"], PORT) || reads(wanted, &["queues"], QUEUE);
    DelayChoice::of(ports, reads(wanted, &["flows"], FLOW))
}

/// The answer of a run, to be written as JSON with its keys in alphabetical order. Rows are written one by one, since
/// all rows together would take more memory than the run.
pub struct Answer<'a> {
    /// The finished run that the answer describes.
    pub run: &'a EndedRun,
    /// Requested parts of the answer's lists; `None` for all parts.
    pub wanted: Option<&'a Wanted>,
    /// Token that cancels the writing of rows.
    pub token: &'a CancellationToken<'a>,
}

impl Answer<'_> {
    /// Returns the JSON text.
    ///
    /// # Errors
    ///
    /// Returns an error only if writing is interrupted. Serialization itself cannot fail, because all keys are strings.
    pub fn text(&self) -> Result<String, Interrupted> {
        serde_json::to_string(self).map_err(|_| Interrupted)
    }

    /// Returns the answer as a tree of JSON values.
    ///
    /// # Errors
    ///
    /// Returns an error only if the token cancels the conversion.
    pub fn value(&self) -> Result<Value, Interrupted> {
        serde_json::to_value(self).map_err(|_| Interrupted)
    }

    /// Returns the answer's keys in alphabetical order, with placeholders for the lists.
    fn whole(&self) -> Map<String, Value> {
        let mut whole = object(RUN, self.run, |_, _| true);
        whole.insert("build".into(), json!(Build::this()));
        whole.insert("format".into(), json!(FORMAT));
        whole.extend(LISTS.map(|list| (list.to_owned(), Value::Null)));
        whole.extend((!self.run.result.losses.is_empty()).then(|| ("links".to_owned(), Value::Null)));
        whole
    }

    fn ports(&self) -> Rows<'_, PortResult> {
        let mut ports = self.rows("ports", PORT, &self.run.result.ports.raw);
        if self.wanted.is_some_and(|wanted| !wanted.contains_key("ports")) {
            ports.columns = columns(self.wanted, "bottleneck");
            ports.items.retain(|port| port.name == self.run.bottleneck);
        }
        ports
    }

    fn rows<'b, T>(
        &'b self,
        list: &str,
        measures: &'static [Measure<T>],
        items: impl IntoIterator<Item = &'b T>,
    ) -> Rows<'b, T> {
        // A run measures the delays of all flows and ports or no delays at all, so one port shows whether there are
        // delays.
        let has_delays = self.run.result.ports.iter().any(|port| port.delays.is_some());
        let columns = columns(self.wanted, list);
        Rows { measures, items: items.into_iter().collect(), columns, has_delays, token: self.token }
    }
}

impl Serialize for Answer<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let result = &self.run.result;
        let whole = self.whole();
        let mut map = serializer.serialize_map(Some(whole.len()))?;
        for (name, value) in &whole {
            match name.as_str() {
                "flows" => map.serialize_entry(name, &self.rows(name, FLOW, &result.flows.raw))?,
                "ports" => map.serialize_entry(name, &self.ports())?,
                "links" => map.serialize_entry(name, &self.rows(name, LINK, &result.losses.raw))?,
                "contracts" => map.serialize_entry(name, &self.rows(name, CONTRACT, &result.contracts))?,
                "abr" => map.serialize_entry(name, &self.rows(name, ABR, &result.abr))?,
                "memories" => map.serialize_entry(name, &self.rows(name, MEMORY, &result.memories.raw))?,
                "queues" => {
                    let of_memories = result.memories.iter().flat_map(|memory| &memory.queues.raw);
                    let queues = of_memories.chain(result.ports.iter().flat_map(|port| &port.queues));
                    map.serialize_entry(name, &self.rows(name, QUEUE, queues))?;
                }
                "requests" => map.serialize_entry(name, &self.rows(name, REQUEST, &self.run.requests))?,
                _ => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

/// The lists of every answer. `links` is written only if a link has loss rules.
const LISTS: [&str; 7] = ["flows", "ports", "contracts", "abr", "memories", "queues", "requests"];

/// Returns the outline of an answer for this network: every row by name, with every measure. The outline shows which
/// measures a run of the scenario would have, without running it.
pub fn outlined(network: &Network) -> Value {
    let mut answer = outline(RUN, "");
    let vcs = |has: fn(&Vc) -> bool| -> Vec<&str> {
        network.vcs.iter().filter(|vc| has(vc)).map(|vc| vc.name.as_str()).collect()
    };
    let bottleneck = &network.links[network.bottleneck].name;
    let queues: Vec<String> = (network.memories.iter())
        .flat_map(|memory| memory.queues.iter().map(|queue| network.queue_name(memory, queue)))
        .chain(queue_names(network))
        .collect();
    let lists = [
        ("bottleneck", json!(bottleneck)),
        ("flows", outlines(FLOW, network.flows.iter().map(|flow| flow.name.as_str()))),
        ("ports", outlines(PORT, network.links.iter().map(|link| link.name.as_str()))),
        ("contracts", outlines(CONTRACT, vcs(|vc| vc.contract.is_some()))),
        ("abr", outlines(ABR, vcs(|vc| vc.abr.is_some()))),
        ("memories", outlines(MEMORY, network.memories.iter().map(|memory| memory.name.as_str()))),
        ("queues", outlines(QUEUE, queues.iter().map(String::as_str))),
        ("requests", outlines(REQUEST, network.requests.groups.iter().map(|group| group.name.as_str()))),
    ];
    answer.extend(lists.map(|(name, list)| (name.to_owned(), list)));
    let lossy = network.links.iter().filter(|link| link.has_rules()).map(|link| link.name.as_str());
    let links = outlines(LINK, lossy);
    if links != json!([]) {
        answer.insert("links".into(), links);
    }
    Value::Object(answer)
}

fn outlines<'a, T>(measures: &[Measure<T>], names: impl IntoIterator<Item = &'a str>) -> Value {
    names.into_iter().map(|name| outline(measures, name)).collect()
}

/// Requested columns of a list.
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

/// The requested part of an answer's list.
struct Rows<'a, T: 'static> {
    measures: &'static [Measure<T>],
    items: Vec<&'a T>,
    columns: Columns<'a>,
    has_delays: bool,
    token: &'a CancellationToken<'a>,
}

impl<T> Rows<'_, T> {
    fn row(&self, item: &T) -> Map<String, Value> {
        // The first measure of a row is the row's name.
        let first = self.measures[0].name;
        object(self.measures, item, |measure, name| match self.columns {
            Columns::These(wanted) => name == first || wanted.iter().any(|column| column == name),
            Columns::All | Columns::None => !measure.on_request || self.has_delays,
        })
    }
}

impl<T> Serialize for Rows<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(None)?;
        if matches!(self.columns, Columns::None) {
            return rows.end();
        }
        for item in &self.items {
            // Writing a row takes as long as about ten ticks of other work.
            self.token.tick(10).map_err(|_| S::Error::custom("stopped on request"))?;
            rows.serialize_element(&self.row(item))?;
        }
        rows.end()
    }
}

#[cfg(test)]
mod tests {
    use celltrain_core::engine::Engine;
    use celltrain_scenario::{build, read_toml};

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
        [link."sw2->destination1"]
        lose = [{ flow = "tcp1", packets = [1] }]
    "#;

    fn network() -> Network {
        build::network(&read_toml(SCENARIO, "test").expect_scenario(), 1)
    }

    fn record(network: &Network) -> EndedRun {
        let result = Engine::Fast.run_to_end(network);
        let bottleneck = network.links[network.bottleneck].name.clone();
        EndedRun::new("everything".into(), 1, Engine::Fast, bottleneck, 0.5, result)
    }

    fn answer(run: &EndedRun, wanted: Option<&Wanted>) -> Value {
        let text = Answer { run, wanted, token: &CancellationToken::never() }.text().expect("no test cancels a run");
        serde_json::from_str(&text).expect("the text is valid JSON")
    }

    #[test]
    fn the_keys_of_a_json_output_are_sorted_and_writing_the_output_can_be_cancelled() {
        let network = network();
        let record = record(&network);
        let text = Answer { run: &record, wanted: None, token: &CancellationToken::never() }
            .text()
            .expect("no test cancels a run");
        assert_eq!(text, serde_json::from_str::<Value>(&text).expect("the text is valid JSON").to_string());
        let no = || false;
        assert!(Answer { run: &record, wanted: None, token: &CancellationToken::every(1, &no) }.text().is_err());
    }

    /// Collects the paths of all values in an answer. In a list, the name of each row is a step of the path.
    fn paths(value: &Value, at: &str, into: &mut Vec<String>) {
        match value {
            Value::Object(members) => members.iter().for_each(|(name, one)| paths(one, &format!("{at}.{name}"), into)),
            Value::Array(rows) => {
                for row in rows {
                    let name = row["name"].as_str().or(row["vc"].as_str()).expect("every row has a name");
                    paths(row, &format!("{at}.{name}"), into);
                }
            }
            _ => into.push(at.to_owned()),
        }
    }

    #[test]
    fn the_outline_of_a_result_has_the_same_keys_as_the_result() {
        let network = Network { delays: DelayChoice::All, ..network() };
        let (mut found, mut outlined_paths) = (Vec::new(), Vec::new());
        let mut answer = answer(&record(&network), None);
        let answer_keys = answer.as_object_mut().expect("an answer is a JSON object");
        assert_eq!(answer_keys.remove("format"), Some(json!(FORMAT)));
        answer_keys.remove("build");
        paths(&answer, "", &mut found);
        paths(&outlined(&network), "", &mut outlined_paths);
        assert_eq!(found, outlined_paths);
        assert!(found.iter().any(|path| path == ".contracts.tcp1.eligible_frames"), "{found:?}");
        assert!(found.iter().any(|path| path == ".links.sw2->destination1.lost_cells"), "{found:?}");
        assert!(found.iter().any(|path| path == ".queues.source2->sw1/tcp2.delay_ms_p99"), "{found:?}");
    }

    #[test]
    fn a_result_contains_only_the_requested_tables_and_columns() {
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
    fn packet_delays_are_measured_only_if_a_requested_column_needs_them() {
        let wanted = |list: &str, column: &str| Wanted::from([(list.to_owned(), vec![column.to_owned()])]);
        assert_eq!(delays(&wanted("flows", "goodput_mbps")), DelayChoice::None);
        assert_eq!(delays(&wanted("flows", "rtt_ms_p99")), DelayChoice::Flows);
        for (list, column) in [("ports", "delay_ms_p99"), ("bottleneck", "delay_ms_mean"), ("queues", "delay_ms_p50")] {
            assert_eq!(delays(&wanted(list, column)), DelayChoice::Ports);
        }
        let both = Wanted::from(
            [("flows", "jitter_ms"), ("ports", "delay_ms_p999")]
                .map(|(list, column)| (list.to_owned(), vec![column.to_owned()])),
        );
        assert_eq!(delays(&both), DelayChoice::All);
        let without = answer(&record(&network()), None);
        assert!(without["ports"][0].get("delay_ms_p99").is_none() && without["flows"][0].get("rtt_ms_p99").is_none());
    }

    #[test]
    fn measure_names_are_unique_within_their_table_and_every_measure_has_a_description() {
        fn check<T>(measures: &[Measure<T>]) {
            for (place, measure) in measures.iter().enumerate() {
                assert!(
                    measures[..place].iter().all(|other| other.name != measure.name),
                    "{} occurs twice",
                    measure.name
                );
                assert!(!measure.meaning.is_empty(), "{} says nothing", measure.name);
                assert_eq!(
                    measure.unit.is_empty(),
                    matches!(measure.kind(), "string" | "bool"),
                    "{}: numbers have a unit",
                    measure.name
                );
            }
        }
        check(RUN);
        check(FLOW);
        check(PORT);
        check(LINK);
        check(CONTRACT);
        check(ABR);
        check(MEMORY);
        check(QUEUE);
        check(REQUEST);
    }
}
