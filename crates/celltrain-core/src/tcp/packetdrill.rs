//! Test scripts of other projects, converted to timed scripts (see [`super::script`]).
//!
//! A file in `tests/packetdrill` contains one or more scripts. Each script begins with these lines:
//!
//! ```text
//! script google slow_start/slow-start-ack-per-1pkt    its project and its name there
//! kind slow start                  its subject, one of `KINDS`
//! variants reno sack               the variants that must behave so; `sack` if there is no such line
//! differs tahoe at > 4 to 5: why   the variants that must not, the first line at which they differ, and why
//! ```
//!
//! The settings and the lines of a timed script follow. By default, the connection has the rules of RFCs, segments of
//! 1000 bytes, an initial window of ten and ticks of a millisecond. A script may end after the line at which all
//! variants differ. Comments name every other difference from the source.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use super::TcpConfig;
use super::script;

/// Default settings of scripts. Settings in a script override the defaults.
const SETTINGS: &[(&str, &str)] = &[
    ("rules", "rfc"),
    ("mss", "1000B"),
    ("receive_window", "256000B"),
    ("initial_window", "10"),
    ("timer_granularity", "1ms"),
    ("minimum_rto", "200"),
    ("timer.initial_rto", "1s"),
    ("timer.rtt_arithmetic", "fractions"),
];

/// Subjects of the scripts, each with its minimum number of source tests. Reordering is one test of FreeBSD's receiver
/// with each permutation of five segments.
const KINDS: &[(&str, usize)] = &[
    ("slow start", 12),
    ("fast recovery", 12),
    ("limited transmit", 8),
    ("SACK", 12),
    ("RTO", 12),
    ("ECN", 8),
    ("CUBIC", 8),
    ("reordering", 120),
];

#[derive(Default)]
struct Translated<'a> {
    name: &'a str,
    kind: &'a str,
    variants: Vec<&'a str>,
    /// Variants with different behaviour, each with the first line that fails.
    differs: Vec<(&'a str, &'a str)>,
    lines: String,
}

fn scripts(text: &str) -> Vec<Translated<'_>> {
    let mut scripts: Vec<Translated<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("script ") {
            scripts.push(Translated { name, ..Translated::default() });
            continue;
        }
        let Some(script) = scripts.last_mut() else { continue };
        if let Some(kind) = line.strip_prefix("kind ") {
            script.kind = kind;
        } else if let Some(names) = line.strip_prefix("variants ") {
            script.variants = names.split(' ').collect();
        } else if let Some(differs) = line.strip_prefix("differs ") {
            let (place, reason) = differs.split_once(": ").expect("the line that fails is followed by a reason");
            let (names, line) = place.split_once(" at ").expect("the variants are followed by the line that fails");
            assert!(!reason.is_empty(), "{}: a reason is needed", script.name);
            script.differs.extend(names.split(' ').map(|name| (name, line)));
        } else {
            script.lines.push_str(line);
            script.lines.push('\n');
        }
    }
    for script in &mut scripts {
        if script.variants.is_empty() && script.differs.is_empty() {
            script.variants.push("sack");
        }
    }
    scripts
}

/// Runs a script with a variant.
fn play(script: &Translated<'_>, variant: &str) -> Result<(), String> {
    let is_set = |key: &str| script.lines.lines().any(|line| line.starts_with(&format!("set {key} ")));
    let defaults = SETTINGS.iter().filter(|(key, _)| !is_set(key));
    let settings = defaults.fold(String::new(), |text, (key, value)| text + &format!("set {key} {value}\n"));
    script::play(&format!("set variant {variant}\n{settings}{}", script.lines))
}

/// Projects whose tests are packetdrill scripts. The tests of other projects are programs.
const PACKETDRILL: &[&str] = &["google", "google-2013", "linux", "bsd", "freebsd"];

/// Names of a kind's tests, each counted once if it was split into several scripts.
#[derive(Default)]
struct Names {
    packetdrill: BTreeSet<String>,
    others: BTreeSet<String>,
    passed: BTreeSet<String>,
}

#[test]
fn packetdrill_scripts_of_other_projects_pass_or_fail_at_the_recorded_line() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut failures = String::new();
    let (mut names, mut kinds) = (BTreeSet::new(), BTreeMap::<_, Names>::new());
    for entry in std::fs::read_dir(folder.join("tests/packetdrill")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for script in scripts(&text) {
            assert!(names.insert(script.name.to_string()), "{} occurs twice", script.name);
            let source = script.name.split(" (").next().unwrap_or_default().to_string();
            let kind = kinds.entry(script.kind.to_string()).or_default();
            let project = source.split(' ').next().unwrap_or_default();
            let of = if PACKETDRILL.contains(&project) { &mut kind.packetdrill } else { &mut kind.others };
            of.insert(source.clone());
            for &variant in &script.variants {
                assert!(TcpConfig::NAMES.contains(&variant), "{}: {variant} is not a variant", script.name);
                match play(&script, variant) {
                    Ok(()) => _ = kind.passed.insert(source.clone()),
                    Err(why) => writeln!(failures, "{} with {variant}: {why}", script.name).unwrap(),
                }
            }
            for (variant, line) in &script.differs {
                assert!(TcpConfig::NAMES.contains(variant), "{}: {variant} is not a variant", script.name);
                match play(&script, variant) {
                    Err(why) if why.contains(&format!(": `{line}`: ")) => {}
                    other => writeln!(failures, "{} with {variant} does not fail at `{line}`: {other:?}", script.name)
                        .unwrap(),
                }
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
    let page = std::fs::read_to_string(folder.join("../../docs/tcp-verification.md")).unwrap();
    for &(kind, least) in KINDS {
        let Names { packetdrill, others, passed } = kinds.remove(kind).unwrap_or_default();
        let count = packetdrill.len() + others.len();
        assert!(count >= least && 2 * passed.len() > count, "{kind}: {} of {count} pass", passed.len());
        let row = format!("| {kind} | {} | {} | {} |", packetdrill.len(), others.len(), passed.len());
        assert!(page.contains(&row), "docs/tcp-verification.md lacks the row {row}");
    }
    assert!(kinds.is_empty(), "unknown kinds: {:?}", kinds.keys());
}
