//! Test scripts of other projects, converted to timed scripts (see [`super::script`]).
//!
//! A file in `tests/packetdrill` holds one or more scripts. Each begins with these lines:
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

/// Default settings, which a script's own settings override.
const SETTINGS: &[(&str, &str)] = &[
    ("rules", "rfc"),
    ("mss", "1000B"),
    ("receive_window", "256000B"),
    ("initial_window", "10"),
    ("timer_granularity", "1ms"),
    ("minimum_rto", "200"),
    ("initial_rto", "1s"),
    ("rtt_arithmetic", "fractions"),
];

/// Subjects of the scripts, with the least number of scripts of each. Reordering is one test of FreeBSD's receiver with
/// each permutation of five segments.
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
    /// Variants that behave differently, each with the first line that fails.
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

#[test]
fn packetdrill_scripts_of_other_projects_pass_or_fail_at_the_line_that_the_list_states() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/packetdrill");
    let mut failures = String::new();
    let (mut names, mut passes) = (BTreeSet::new(), BTreeMap::<_, BTreeSet<_>>::new());
    let mut all = BTreeMap::<_, usize>::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for script in scripts(&text) {
            assert!(names.insert(script.name.to_string()), "{} is there twice", script.name);
            assert!(KINDS.iter().any(|(kind, _)| *kind == script.kind), "{}: unknown kind", script.name);
            *all.entry(script.kind.to_string()).or_default() += 1;
            for &variant in &script.variants {
                assert!(TcpConfig::NAMES.contains(&variant), "{}: {variant} is not a variant", script.name);
                match play(&script, variant) {
                    Ok(()) => _ = passes.entry(script.kind.to_string()).or_default().insert(script.name.to_string()),
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
    for &(kind, least) in KINDS {
        let (count, passed) = (all.get(kind).map_or(0, |&count| count), passes.get(kind).map_or(0, BTreeSet::len));
        println!("{kind}: {count} scripts, of which {passed} pass with a variant");
        assert!(count >= least && 2 * passed > count, "{kind}: {passed} of {count} pass");
    }
}
