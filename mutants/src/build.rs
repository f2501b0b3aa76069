//! The copy of the project with the mutants in it, and its tests as programs.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::schemata::{self, Schemata};
use crate::{Mutant, SOURCE};

/// A test program.
#[derive(Clone, Debug)]
pub struct Binary {
    /// The name of what it tests: `celltrain_core`, `differential`.
    pub name: String,
    /// The program.
    pub path: PathBuf,
    /// The folder it expects to run in.
    pub folder: PathBuf,
}

/// The copy.
pub struct Build<'a> {
    root: PathBuf,
    target: PathBuf,
    texts: &'a BTreeMap<PathBuf, String>,
    /// Those that compile, as far as is known.
    pub mutants: Vec<Mutant>,
    /// How many did not.
    pub dropped: usize,
    switches: usize,
    files: BTreeMap<PathBuf, Schemata>,
}

/// What has mutants and tests; the other packages only use them.
const PACKAGES: [&str; 2] = ["celltrain-core", "celltrain-scenario"];

/// Fingerprints say that something changed, not that it is wrong: they are no judge here.
const NO_JUDGES: [&str; 1] = ["fingerprints"];

/// So many times mutants that do not compile are taken out.
const ROUNDS: usize = 25;

impl<'a> Build<'a> {
    /// Copies the project. What tests read but is no code is linked to.
    pub fn new(
        folder: &Path,
        texts: &'a BTreeMap<PathBuf, String>,
        mutants: Vec<Mutant>,
    ) -> Result<Self, Box<dyn Error>> {
        let here = std::env::current_dir()?;
        let root = here.join(folder).join("copy");
        if root.exists() {
            std::fs::remove_dir_all(&root)?;
        }
        std::fs::create_dir_all(&root)?;
        for entry in std::fs::read_dir(&here)? {
            let (path, name) = (entry.as_ref().map_err(ToString::to_string)?.path(), entry?.file_name());
            let is_own = ["crates", "out", "target"].iter().any(|own| name == *own);
            if !is_own && !name.to_string_lossy().starts_with('.') {
                std::os::unix::fs::symlink(path, root.join(name))?;
            }
        }
        copy(&here.join("crates"), &root.join("crates"))?;
        let switches = mutants.len();
        let target = here.join(folder).join("target");
        Ok(Self { root, target, texts, mutants, dropped: 0, switches, files: BTreeMap::new() })
    }

    /// Compiles the tests, and takes out what does not compile.
    pub fn compile(&mut self) -> Result<Vec<Binary>, Box<dyn Error>> {
        // The core alone shows most errors, and soonest.
        self.until_it_compiles(&["check", "--package", PACKAGES[0]])?;
        let [core, scenario] = PACKAGES;
        let messages = self.until_it_compiles(&["test", "--no-run", "--package", core, "--package", scenario])?;
        let binary = |message: &Value| {
            let path = PathBuf::from(message["executable"].as_str()?);
            let name = message["target"]["name"].as_str()?.to_string();
            let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
            let is_judge = message["profile"]["test"] == true && !NO_JUDGES.contains(&name.as_str());
            is_judge.then_some(Binary { name, path, folder })
        };
        Ok(messages.iter().filter_map(binary).collect())
    }

    /// Keeps no more than were asked for.
    pub fn keep(&mut self, count: usize) {
        self.mutants.truncate(count);
    }

    fn until_it_compiles(&mut self, arguments: &[&str]) -> Result<Vec<Value>, Box<dyn Error>> {
        for _ in 0..ROUNDS {
            self.write()?;
            let (succeeded, messages) = self.cargo(arguments)?;
            if succeeded {
                return Ok(messages);
            }
            let blamed = self.blamed(&messages);
            if blamed.is_empty() {
                let texts = errors(&messages).filter_map(|error| error["rendered"].as_str());
                return Err(format!("the copy does not compile:\n{}", texts.collect::<String>()).into());
            }
            self.dropped += blamed.len();
            self.mutants.retain(|mutant| !blamed.contains(&mutant.number));
        }
        Err(format!("after {ROUNDS} rounds there are still mutants that do not compile").into())
    }

    fn write(&mut self) -> Result<(), Box<dyn Error>> {
        let mut by_file: BTreeMap<&Path, Vec<&Mutant>> = BTreeMap::new();
        for mutant in &self.mutants {
            by_file.entry(&mutant.file).or_default().push(mutant);
        }
        let library = Path::new(SOURCE).join("lib.rs");
        self.files.clear();
        for (file, text) in self.texts {
            let mut mutated = Schemata::of(text, by_file.get(file.as_path()).map_or(&[], Vec::as_slice));
            if *file == library {
                mutated.text.push_str("\n#[doc(hidden)]\npub mod mutant;\n");
            }
            write_if_new(&self.root.join(file), &mutated.text)?;
            self.files.insert(file.clone(), mutated);
        }
        write_if_new(&self.root.join(SOURCE).join("mutant.rs"), &schemata::switchboard(self.switches))
    }

    fn cargo(&self, arguments: &[&str]) -> Result<(bool, Vec<Value>), Box<dyn Error>> {
        let output = Command::new("cargo")
            .args(arguments)
            .arg("--message-format=json")
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            // Unused and unreachable code is what mutants are made of; debuggers are not asked.
            .env("RUSTFLAGS", "-Awarnings")
            .env("CARGO_PROFILE_TEST_DEBUG", "false")
            .env("CARGO_PROFILE_DEV_DEBUG", "false")
            .stderr(Stdio::inherit())
            .output()?;
        let lines = String::from_utf8(output.stdout)?;
        Ok((output.status.success(), lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?))
    }

    /// The mutants that errors are due to.
    fn blamed(&self, messages: &[Value]) -> BTreeSet<usize> {
        let mut blamed = BTreeSet::new();
        for error in errors(messages) {
            let mut spans: Vec<&Value> = error["spans"].as_array().into_iter().flatten().collect();
            spans.sort_by_key(|span| span["is_primary"] != true);
            let places: Vec<_> = spans.into_iter().filter_map(|span| self.place(span)).collect();
            match places.iter().find_map(|(file, bytes)| file.blamed(bytes)) {
                Some(number) => drop(blamed.insert(number)),
                None => blamed.extend(places.iter().flat_map(|(file, bytes)| file.near(bytes))),
            }
        }
        blamed
    }

    fn place(&self, span: &Value) -> Option<(&Schemata, Range<usize>)> {
        let file = self.files.get(Path::new(span["file_name"].as_str()?))?;
        let byte = |key: &str| usize::try_from(span[key].as_u64()?).ok();
        Some((file, byte("byte_start")?..byte("byte_end")?))
    }
}

fn errors(messages: &[Value]) -> impl Iterator<Item = &Value> {
    let messages = messages.iter().filter(|message| message["reason"] == "compiler-message");
    messages.map(|message| &message["message"]).filter(|message| message["level"] == "error")
}

/// What is as it was is not compiled anew.
fn write_if_new(path: &Path, text: &str) -> Result<(), Box<dyn Error>> {
    if std::fs::read_to_string(path).is_ok_and(|before| before == text) {
        return Ok(());
    }
    Ok(std::fs::write(path, text)?)
}

fn copy(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let to = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &to)?;
        } else {
            std::fs::copy(&path, &to)?;
        }
    }
    Ok(())
}
