//! What was found, as a table, and what is known to change nothing.

use std::collections::HashMap;
use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::Mutant;
use crate::judge::Verdict;

/// The share of those mutants that change anything which the tests are to catch.
pub const WANTED: f64 = 0.97;

/// Mutants that were judged by a person to change nothing a test could see, and why. Lines move, so a mutant is known by its
/// file, its function, the text of its line, and what becomes of what.
pub struct Equivalent {
    reasons: HashMap<[String; 5], String>,
}

impl Equivalent {
    /// Reads the table; columns file, function, text, before, after, reason.
    pub fn read(path: &Path) -> Result<Self, Box<dyn Error>> {
        let mut reasons = HashMap::new();
        let say = |error: csv::Error| format!("{}: {error}", path.display());
        for (record, line) in csv::Reader::from_path(path).map_err(say)?.records().zip(2..) {
            let record = record.map_err(say)?;
            let fields: Vec<String> = record.iter().map(str::to_string).collect();
            let [file, function, text, before, after, reason] = <[String; 6]>::try_from(fields)
                .map_err(|fields| format!("{}:{line}: {} fields, not 6", path.display(), fields.len()))?;
            if reason.is_empty() {
                return Err(format!("{}:{line}: it says no reason", path.display()).into());
            }
            reasons.insert([file, function, text, before, after], reason);
        }
        Ok(Self { reasons })
    }

    fn reason(&self, mutant: &Mutant) -> Option<&str> {
        let site = &mutant.site;
        let key = [
            mutant.file.display().to_string(),
            site.function.clone(),
            mutant.line.clone(),
            mutant.before.clone(),
            site.after(&mutant.change),
        ];
        self.reasons.get(&key).map(String::as_str)
    }
}

/// The table of a draw.
pub struct Table<'a> {
    path: PathBuf,
    writer: csv::Writer<File>,
    equivalent: &'a Equivalent,
    caught: usize,
    slow: usize,
    same: usize,
    survivors: Vec<String>,
}

impl<'a> Table<'a> {
    /// An empty table at `path`.
    pub fn create(path: &Path, equivalent: &'a Equivalent) -> Result<Self, Box<dyn Error>> {
        let mut writer = csv::Writer::from_path(path)?;
        writer
            .write_record(["id", "file", "line", "function", "operator", "text", "before", "after", "outcome", "by"])?;
        Ok(Self { path: path.to_path_buf(), writer, equivalent, caught: 0, slow: 0, same: 0, survivors: Vec::new() })
    }

    /// Adds a mutant's row; what was judged stays if the rest is interrupted.
    pub fn add(&mut self, mutant: &Mutant, verdict: &Verdict) -> Result<(), Box<dyn Error>> {
        let site = &mutant.site;
        let (file, line, after) =
            (mutant.file.display().to_string(), site.line.to_string(), site.after(&mutant.change));
        let (outcome, by) = match verdict {
            Verdict::Caught(test) => {
                self.caught += 1;
                ("caught", test.clone())
            }
            Verdict::Slow(tests) => {
                self.slow += 1;
                ("caught by time", tests.clone())
            }
            Verdict::Survived(tests) => {
                let by = format!("{tests} tests reach it");
                if let Some(reason) = self.equivalent.reason(mutant) {
                    self.same += 1;
                    ("changes nothing", reason.to_string())
                } else {
                    let operator = mutant.change.operator;
                    self.survivors.push(format!("{file}:{line}: {operator}: {} -> {after} ({by})", mutant.before));
                    ("survived", by)
                }
            }
        };
        let (id, operator) = (mutant.number.to_string(), mutant.change.operator);
        self.writer.write_record([
            &id,
            &file,
            &line,
            &site.function,
            operator,
            &mutant.line,
            &mutant.before,
            &after,
            outcome,
            &by,
        ])?;
        Ok(self.writer.flush()?)
    }

    /// Says what was found; whether as large a share was caught as is wanted.
    pub fn finish(self, wanted: f64) -> bool {
        let Self { path, caught, slow, same, survivors, .. } = self;
        let found = caught + slow;
        let changing = found + survivors.len();
        let share = if changing == 0 { 1.0 } else { found as f64 / changing as f64 };
        println!("{} mutants: {caught} caught by a test that fails and {slow} by time,", changing + same);
        println!("{same} change nothing, {} survived: {:.1} % are caught.", survivors.len(), 100.0 * share);
        for survivor in &survivors {
            println!("survived: {survivor}");
        }
        println!("All of them are in {}.", path.display());
        share >= wanted
    }
}
