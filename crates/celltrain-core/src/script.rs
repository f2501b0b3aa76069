//! Reads the timed scripts of tests: settings (`set KEY VALUE`), then events alternating with their expected results.
//!
//! `#` begins a comment. A [`Player`] defines the lines after the settings.

use std::fmt::{Debug, Write};
use std::path::Path;

/// Settings of a script, by key.
pub(crate) type Settings = serde_json::Map<String, serde_json::Value>;

/// Executes the lines after the settings.
pub(crate) trait Player {
    /// Record of an item that the player has sent.
    type Sent: Debug;

    /// Plays a line. The error explains why the line failed.
    fn play(&mut self, words: &[&str]) -> Result<(), String>;

    /// Returns the records of sent items that no script line has expected yet.
    fn unexpected(&self) -> &[Self::Sent];

    /// Fails if, before the next event, the player sent an item that the script does not list.
    fn expect_silence(&self) -> Result<(), String> {
        if self.unexpected().is_empty() {
            Ok(())
        } else {
            Err(format!("{:?} were sent unexpectedly", self.unexpected()))
        }
    }
}

/// Runs a script with the player that `begin` creates from its settings. The error names the first line that failed.
pub(crate) fn play<P: Player>(text: &str, begin: impl Fn(Settings) -> Result<P, String>) -> Result<(), String> {
    let mut settings = Settings::new();
    let mut player: Option<P> = None;
    for (line, number) in text.lines().zip(1..) {
        let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
        let outcome = match (words.as_slice(), &mut player) {
            ([], _) => Ok(()),
            (["set", ..], Some(_)) => Err("settings precede the first event".into()),
            (["set", key, value], None) => {
                let value = serde_json::from_str(value).unwrap_or_else(|_| (*value).into());
                settings.insert((*key).to_string(), value);
                Ok(())
            }
            (words, Some(playing)) => playing.play(words),
            (words, None) => begin(settings.clone()).and_then(|playing| player.insert(playing).play(words)),
        };
        outcome.map_err(|why| format!("line {number}: `{}`: {why}", line.trim()))?;
    }
    player.ok_or("the script does nothing")?.expect_silence().map_err(|why| format!("at the end, {why}"))
}

/// Runs every script in a folder of `tests`, which must contain at least `least` scripts.
pub(crate) fn play_all(folder: &str, least: usize, play: impl Fn(&str) -> Result<(), String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= least, "the folder contains test scripts: {}", paths.len());
    let mut failures = String::new();
    for path in paths {
        if let Err(why) = play(&std::fs::read_to_string(&path).unwrap()) {
            writeln!(failures, "{}: {why}", path.file_name().unwrap().display()).unwrap();
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// Parses a whole number.
pub(crate) fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|e| format!("{word:?}: {e}"))
}

/// Compares a value with a value in a script, which has four decimals.
pub(crate) fn compare(value: f64, expected: &str) -> Result<(), String> {
    let expected: f64 = expected.parse().map_err(|e| format!("{expected:?}: {e}"))?;
    if (value - expected).abs() > TOLERANCE { Err(format!("it is {value}")) } else { Ok(()) }
}

/// Tolerance for the rounding to four decimals.
pub(crate) const TOLERANCE: f64 = 1e-4;
