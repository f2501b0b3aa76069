//! Mutation testing of the core: what the Rust tests would not notice.
//!
//! `celltrain-mutants [--seed N] [--count N] [--jobs N] [--differential N] [--in TEXT,TEXT] [--planted FILE]`, in the
//! project's folder: draws mutants, or takes those of a list, puts all of them into one copy of the core, each behind a
//! switch, and runs the tests that reach each of them.
//! `docs/design/testing.md` says how, and what it cannot see.

mod build;
mod judge;
mod report;
mod schemata;
mod sites;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sites::{Change, Site};

/// Where the core's sources are.
const SOURCE: &str = "crates/celltrain-core/src";

/// One change of the core.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// Its number in this draw.
    pub number: usize,
    /// Its file, from the project's folder.
    pub file: PathBuf,
    /// The module it is in, as tests write it: `abr::source`.
    pub module: String,
    /// Where.
    pub site: Site,
    /// What.
    pub change: Change,
    /// What stood there, on one line.
    pub before: String,
    /// The line it begins in.
    pub line: String,
}

/// What is asked for.
struct Options {
    seed: u64,
    count: usize,
    jobs: usize,
    /// Random scenarios of each differential test and of the adversary's.
    differential: u32,
    /// A list of mutants to judge instead of drawn ones, all of which are to be caught.
    planted: Option<PathBuf>,
    /// Where to draw: places whose file and function, with a space between, hold one of these texts.
    within: Vec<String>,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("celltrain-mutants: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether enough was caught.
fn run() -> Result<bool, Box<dyn Error>> {
    let options = options()?;
    let folder = Path::new("out/mutants");
    let texts =
        texts(Path::new(SOURCE)).map_err(|error| format!("{SOURCE}: {error}; is this the project's folder?"))?;
    let equivalent = report::Equivalent::read(Path::new("mutants/equivalent.csv"))?;
    let (drawn, name) = match &options.planted {
        Some(list) => (planted(&texts, list)?, "planted".to_string()),
        None => (draw(&texts, &options)?, options.seed.to_string()),
    };
    let wanted = if options.planted.is_some() { drawn.len() } else { options.count };
    eprintln!("{} mutants; they are built into one copy of the core", drawn.len());
    let mut build = build::Build::new(folder, &texts, drawn)?;
    let binaries = build.compile()?;
    build.keep(wanted);
    if options.planted.is_some() && build.mutants.len() < wanted {
        return Err("a planted fault does not compile".into());
    }
    eprintln!("{} do not compile and were replaced; {} are judged", build.dropped, build.mutants.len());
    let judge = judge::Judge::new(folder, binaries, options.jobs, options.differential)?;
    let mut table = report::Table::create(&folder.join(format!("{name}.csv")), &equivalent)?;
    judge.all(&build.mutants, |mutant, verdict| table.add(mutant, verdict))?;
    Ok(table.finish(if options.planted.is_some() { 1.0 } else { report::WANTED }))
}

fn options() -> Result<Options, Box<dyn Error>> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut options =
        Options { seed: 1, count: 300, jobs, differential: 90, planted: None, within: vec![String::new()] };
    let mut words = std::env::args().skip(1);
    while let Some(option) = words.next() {
        let value = words.next().ok_or_else(|| format!("{option} has no value"))?;
        let number = || value.parse::<u32>().map_err(|_| format!("{option} {value}: {value:?} is no whole number"));
        match option.as_str() {
            "--seed" => options.seed = number()?.into(),
            "--count" => options.count = number()? as usize,
            "--jobs" => options.jobs = number()?.max(1) as usize,
            "--differential" => options.differential = number()?,
            "--planted" => options.planted = Some(value.into()),
            "--in" => options.within = value.split(',').map(str::to_string).collect(),
            _ => {
                return Err(
                    format!("{option}: there are --seed, --count, --jobs, --differential, --in and --planted").into()
                );
            }
        }
    }
    Ok(options)
}

/// The texts of all sources below a folder.
fn texts(folder: &Path) -> Result<BTreeMap<PathBuf, String>, Box<dyn Error>> {
    let mut texts = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            texts.append(&mut self::texts(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            texts.insert(path.clone(), std::fs::read_to_string(&path)?);
        }
    }
    Ok(texts)
}

/// Draws mutants: every site is as likely as every other, and so is each of its changes. A few more than asked for take the
/// places of those that will not compile.
fn draw(texts: &BTreeMap<PathBuf, String>, options: &Options) -> Result<Vec<Mutant>, Box<dyn Error>> {
    let of_tests: BTreeSet<PathBuf> = sites::files_of_tests(texts)?;
    let mut all = Vec::new();
    for (file, text) in texts {
        if of_tests.contains(file) {
            continue;
        }
        let is_within = |site: &Site| {
            let place = format!("{} {}", file.display(), site.function);
            options.within.iter().any(|text| place.contains(text))
        };
        all.extend(sites::of(text)?.into_iter().filter(is_within).map(|site| (file, text, site)));
    }
    eprintln!("{} places to change in {} files", all.len(), texts.len() - of_tests.len());
    let mut random = Random(options.seed);
    let wanted = (options.count + options.count / 4 + 10).min(all.len());
    for i in 0..wanted {
        let other = i + random.below(all.len() - i);
        all.swap(i, other);
    }
    all.truncate(wanted);
    let mut mutants = Vec::new();
    for (file, text, site) in all {
        let change = site.changes[random.below(site.changes.len())].clone();
        mutants.push(mutant(mutants.len(), file, text, site, change));
    }
    Ok(mutants)
}

/// The mutants of a list: columns file, function, text (the line it begins in), before, after and what it is.
fn planted(texts: &BTreeMap<PathBuf, String>, list: &Path) -> Result<Vec<Mutant>, Box<dyn Error>> {
    let mut mutants = Vec::new();
    for (record, number) in csv::Reader::from_path(list)?.records().zip(2..) {
        let record = record?;
        let at = || format!("{}:{number}", list.display());
        let [file, function, line, before, after, _] = record.iter().collect::<Vec<_>>()[..] else {
            return Err(format!("{}: {} fields, not 6", at(), record.len()).into());
        };
        let text = texts.get(Path::new(file)).ok_or_else(|| format!("{}: there is no {file}", at()))?;
        let sites = sites::of(text)?.into_iter().filter(|site| site.function == function);
        let all = sites.flat_map(|site| site.changes.clone().into_iter().map(move |change| (site.clone(), change)));
        let all = all.map(|(site, change)| mutant(mutants.len(), Path::new(file), text, site, change));
        let found: Vec<_> =
            all.filter(|m| m.line == line && m.before == before && m.site.after(&m.change) == after).collect();
        let [found] = &found[..] else {
            return Err(format!("{}: {} such changes in {function}", at(), found.len()).into());
        };
        mutants.push(found.clone());
    }
    Ok(mutants)
}

fn mutant(number: usize, file: &Path, text: &str, site: Site, change: Change) -> Mutant {
    Mutant {
        number,
        file: file.to_path_buf(),
        module: module(file),
        change,
        before: site.before(text),
        line: text.lines().nth(site.line - 1).unwrap_or_default().trim().to_string(),
        site,
    }
}

/// `crates/celltrain-core/src/abr/source.rs` is `abr::source`.
fn module(file: &Path) -> String {
    let inside = file.strip_prefix(SOURCE).unwrap_or(file).with_extension("");
    let mut names: Vec<_> = inside.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names.last().is_some_and(|last| last == "mod" || last == "lib") {
        names.pop();
    }
    names.join("::")
}

/// `SplitMix64` (Steele, Lea and Flood 2014): the same draw for the same seed and sources.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % n as u64).expect("it is below n")
    }
}

#[cfg(test)]
mod tests;
