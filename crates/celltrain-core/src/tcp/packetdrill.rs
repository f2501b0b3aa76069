//! Test scripts of other projects, converted to timed scripts (see [`super::script`]).
//!
//! A file in `tests/packetdrill` contains one or more scripts. Each script begins with these lines:
//!
//! ```text
//! script google slow_start/slow-start-ack-per-1pkt    its project and its name there
//! variants reno sack               the variants that must behave so; `sack` if there is no such line
//! differs tahoe at > 4 to 5: why   the variants that must not, the first line at which they differ, and why
//! ```
//!
//! The settings and the lines of a timed script follow. By default, the connection has the rules of RFCs, segments of
//! 1000 bytes, an initial window of ten and ticks of a millisecond. A script may end after the line at which all
//! variants differ. Comments name every other difference from the source.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use super::TcpConfig;
use super::script;

/// Default settings. Settings of a script override them.
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

#[derive(Default)]
struct Translated<'a> {
    name: &'a str,
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
        if let Some(names) = line.strip_prefix("variants ") {
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
fn packetdrill_scripts_of_other_projects_pass_or_fail_at_the_listed_line() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/packetdrill");
    let mut failures = String::new();
    let (mut names, mut held) = (BTreeSet::new(), BTreeSet::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for script in scripts(&text) {
            assert!(names.insert(script.name.to_string()), "{} is there twice", script.name);
            for &variant in &script.variants {
                assert!(TcpConfig::NAMES.contains(&variant), "{}: {variant} is not a variant", script.name);
                match play(&script, variant) {
                    Ok(()) => _ = held.insert(script.name.to_string()),
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
    assert!(names.len() >= 155, "the folder contains scripts: {}", names.len());
    assert!(held.len() >= 135, "scripts that pass with a variant: {}", held.len());
}
