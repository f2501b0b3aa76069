//! The documentation page that shows the results of comparisons with ns-2, and that stores these results.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::rules::{RULES, Rule};
use super::suites::Test;

pub(super) const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ns2-traces.md");

/// Result of the comparison of a run with a trace of ns-2.
pub(super) enum Verdict {
    /// The run equals the trace if the simulator follows the listed rules of ns-2.
    Equal(Vec<&'static Rule>),
    /// celltrain cannot run the test. The text is the reason.
    NotModelled(&'static str),
}

const NOT_MODELLED: &str = "not modelled: ";
/// Text of a table cell if the run equals the trace without any rule of ns-2.
const NO_RULE: &str = "none";

impl Verdict {
    fn text(&self) -> String {
        match self {
            Self::Equal(rules) if rules.is_empty() => NO_RULE.to_string(),
            Self::Equal(rules) => {
                let names: Vec<_> = rules.iter().map(|rule| format!("`{}`", rule.name)).collect();
                names.join(", ")
            }
            Self::NotModelled(reason) => format!("{NOT_MODELLED}{reason}"),
        }
    }
}

/// Returns the result that the page shows for a test.
pub(super) fn verdict(page: &str, test: &Test) -> Verdict {
    let (_, of_suite) =
        page.split_once(&format!("## {}\n", test.suite)).expect("the page has a section for every suite");
    let start = format!("| {} | {} | ", test.name, test.tcp);
    let row = of_suite.lines().find_map(|line| line.strip_prefix(&start)?.strip_suffix(" |"));
    let row = row.unwrap_or_else(|| panic!("{} {} has a row on the page", test.suite, test.name));
    if row.starts_with(NOT_MODELLED) {
        return Verdict::NotModelled(test.missing().unwrap_or_else(|| panic!("{} is modelled", test.name)));
    }
    let names = if row == NO_RULE { "" } else { row };
    let rule = |name| RULES.iter().find(|rule| rule.name == name).unwrap_or_else(|| panic!("{name} is a rule"));
    Verdict::Equal(
        names.split(", ").map(|name| name.trim_matches('`')).filter(|name| !name.is_empty()).map(rule).collect(),
    )
}

/// Returns the text of the page with the given results.
pub(super) fn text<'a>(verdicts: impl Iterator<Item = (&'a Test, Verdict)>) -> String {
    let mut suites: BTreeMap<&str, Vec<(&Test, Verdict)>> = BTreeMap::new();
    for (test, verdict) in verdicts {
        suites.entry(&test.suite).or_default().push((test, verdict));
    }
    let count = |is: fn(&Verdict) -> bool| suites.values().flatten().filter(|(_, verdict)| is(verdict)).count();
    let plain = count(|verdict| matches!(verdict, Verdict::Equal(rules) if rules.is_empty()));
    let equal = count(|verdict| matches!(verdict, Verdict::Equal(_)));
    let copied =
        count(|verdict| matches!(verdict, Verdict::Equal(rules) if rules.iter().any(|rule| rule.is_substitute())));
    let not_modelled = count(|verdict| matches!(verdict, Verdict::NotModelled(_)));
    let is_other = |(test, _): &&(&Test, Verdict)| ["Fack", "SackRH"].contains(&test.tcp.as_str());
    let other_tcp = suites.values().flatten().filter(is_other).count();
    let with_rule = |rule: &Rule| {
        let used = |verdict: &Verdict| matches!(verdict, Verdict::Equal(rules) if rules.iter().any(|used| used.name == rule.name));
        suites.values().flatten().filter(|(_, verdict)| used(verdict)).count()
    };
    let mut rules = String::new();
    for rule in RULES {
        let option = if rule.lists_losses() {
            "`lose` rules that repeat the trace's losses".into()
        } else {
            format!("`{}`", rule.options)
        };
        let Rule { name, does, source, .. } = rule;
        writeln!(rules, "| `{name}` | {does} | {option} | {} | {source} |", with_rule(rule)).unwrap();
    }
    let mut rows = String::new();
    for (suite, verdicts) in &suites {
        write!(rows, "\n## {suite}\n\n| test | TCP | rules needed |\n|---|---|---|\n").unwrap();
        for (test, verdict) in verdicts {
            writeln!(rows, "| {} | {} | {} |", test.name, test.tcp, verdict.text()).unwrap();
        }
    }
    include_str!("page.md")
        .replace("TRACES", &(equal + not_modelled).to_string())
        .replace("OTHER_TCP", &other_tcp.to_string())
        .replace("OTHER_TEST", &(not_modelled - other_tcp).to_string())
        .replace("COPIED", &copied.to_string())
        .replace("OF_NS2", &(equal - plain - copied).to_string())
        .replace("PLAIN", &plain.to_string())
        .replace("RULES\n", &rules)
        .replace("ROWS\n", &rows)
}
