//! The tests as judges: which of them reach a mutant, and whether one of those fails when it is on.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::Mutant;
use crate::build::Binary;
use crate::schemata::{ON, REACHED, WATCH};

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A test failed: its program and name.
    Caught(String),
    /// Tests took much longer than they do: these.
    Slow(String),
    /// No test that reaches it failed; so many do.
    Survived(usize),
}

/// One test.
#[derive(Clone, Debug)]
struct Test {
    binary: usize,
    name: String,
    /// How long it takes by itself, with the program's start.
    takes: Duration,
    reaches: BTreeSet<usize>,
}

/// All tests.
pub struct Judge {
    folder: PathBuf,
    binaries: Vec<Binary>,
    tests: Vec<Test>,
    jobs: usize,
    differential: u32,
}

/// Tests run in one program as long as they take no longer together.
const BATCH: Duration = Duration::from_millis(300);
/// What a test may take, in times of what it takes without a mutant, and what else: other programs may run beside it.
const PATIENCE: (u32, Duration) = (8, Duration::from_secs(10));
/// No test takes longer when all is well.
const LONGEST_TEST: Duration = Duration::from_secs(600);
/// Kilobytes of memory a test program may have.
const MEMORY: u32 = 4_000_000;

/// How a program ended.
enum End {
    Passed,
    Failed(String),
    TimedOut,
}

impl Judge {
    /// Runs every test once, without a mutant, and notes how long it takes and what it reaches.
    pub fn new(folder: &Path, binaries: Vec<Binary>, jobs: usize, differential: u32) -> Result<Self, Box<dyn Error>> {
        let folder = std::env::current_dir()?.join(folder);
        let mut judge = Self { folder, binaries, tests: Vec::new(), jobs, differential };
        let mut names = Vec::new();
        for (number, binary) in judge.binaries.iter().enumerate() {
            let output = Command::new(&binary.path).args(["--list", "--format", "terse"]).output()?;
            let listed = String::from_utf8(output.stdout)?;
            names.extend(listed.lines().filter_map(|line| Some((number, line.strip_suffix(": test")?.to_string()))));
        }
        eprintln!("{} tests of {} programs run once without a mutant", names.len(), judge.binaries.len());
        let (mut tests, mut faults) = (Vec::new(), Vec::new());
        judge.in_parallel(
            &names,
            |worker, (binary, name)| judge.watched(worker, *binary, name),
            |_, test| {
                match test {
                    Ok(test) => tests.push(test),
                    Err(fault) => faults.push(fault),
                }
                Ok(())
            },
        )?;
        if !faults.is_empty() {
            return Err(faults.join("\n").into());
        }
        tests.sort_by(|a, b| (a.takes, &a.name).cmp(&(b.takes, &b.name)));
        judge.tests = tests;
        Ok(judge)
    }

    /// Judges mutants, and tells of each as it is done.
    pub fn all(
        &self,
        mutants: &[Mutant],
        mut tell: impl FnMut(&Mutant, &Verdict) -> Result<(), Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        let begin = Instant::now();
        let mut done = 0;
        self.in_parallel(
            mutants,
            |worker, mutant| self.judge(worker, mutant),
            |mutant, verdict| {
                tell(mutant, &verdict?)?;
                done += 1;
                if done % 20 == 0 || done == mutants.len() {
                    eprintln!("{done} of {} mutants judged in {:.0} s", mutants.len(), begin.elapsed().as_secs_f64());
                }
                Ok(())
            },
        )
    }

    fn judge(&self, worker: usize, mutant: &Mutant) -> Result<Verdict, String> {
        let mut reaching: Vec<&Test> = self.tests.iter().filter(|test| test.reaches.contains(&mutant.number)).collect();
        // The module's own first, then the fastest.
        let own = format!("{}::", mutant.module);
        reaching.sort_by_key(|test| !test.name.starts_with(&own));
        let mut rest = &reaching[..];
        while let Some(first) = rest.first() {
            let mut takes = Duration::ZERO;
            let fits = |test: &&&Test| {
                takes += test.takes;
                test.binary == first.binary && (takes <= BATCH || test.name == first.name)
            };
            let (batch, behind) = rest.split_at(rest.iter().take_while(fits).count());
            rest = behind;
            let names: Vec<&str> = batch.iter().map(|test| test.name.as_str()).collect();
            let limit = PATIENCE.1 + batch.iter().map(|test| test.takes).sum::<Duration>() * PATIENCE.0;
            let program = &self.binaries[first.binary].name;
            match self.run(worker, first.binary, &names, (ON, &mutant.number.to_string()), limit)? {
                End::Passed => {}
                End::Failed(name) => return Ok(Verdict::Caught(format!("{program} {name}"))),
                End::TimedOut => return Ok(Verdict::Slow(format!("{program} {}", names.join(" ")))),
            }
        }
        Ok(Verdict::Survived(reaching.len()))
    }

    fn watched(&self, worker: usize, binary: usize, name: &str) -> Result<Test, String> {
        let path = self.reached(worker);
        let _ = std::fs::remove_file(&path);
        let begin = Instant::now();
        match self.run(worker, binary, &[name], (ON, WATCH), LONGEST_TEST)? {
            End::Passed => {}
            End::Failed(_) => return Err(format!("{name} fails without a mutant")),
            End::TimedOut => return Err(format!("{name} takes more than {} s", LONGEST_TEST.as_secs())),
        }
        let takes = begin.elapsed();
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        let reaches = written.lines().filter_map(|line| line.parse().ok()).collect();
        Ok(Test { binary, name: name.to_string(), takes, reaches })
    }

    /// Runs tests of a program, in a process of their own.
    fn run(
        &self,
        worker: usize,
        binary: usize,
        names: &[&str],
        (variable, value): (&str, &str),
        limit: Duration,
    ) -> Result<End, String> {
        let binary = &self.binaries[binary];
        let say = |error: std::io::Error| format!("{}: {error}", binary.path.display());
        let path = self.folder.join(format!("output-{worker}"));
        let output = File::create(&path).map_err(say)?;
        let errors = output.try_clone().map_err(say)?;
        let mut child = Command::new("sh")
            .args(["-c", &format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"")])
            .arg(&binary.path)
            .args(["--exact", "--test-threads=1"])
            .args(names)
            .current_dir(&binary.folder)
            .env(variable, value)
            .env(REACHED, self.reached(worker))
            .env("CARGO_MANIFEST_DIR", &binary.folder)
            .env("CELLTRAIN_DIFFERENTIAL", self.differential.to_string())
            .env("CELLTRAIN_ADVERSARY", self.differential.to_string())
            // Whether a test fails is asked, not by how little.
            .env("PROPTEST_MAX_SHRINK_ITERS", "0")
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(say)?;
        let begin = Instant::now();
        let mut pause = Duration::from_millis(1);
        let status = loop {
            if let Some(status) = child.try_wait().map_err(say)? {
                break status;
            }
            if begin.elapsed() > limit {
                child.kill().map_err(say)?;
                child.wait().map_err(say)?;
                return Ok(End::TimedOut);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        };
        if status.success() {
            return Ok(End::Passed);
        }
        let said = String::from_utf8_lossy(&std::fs::read(&path).map_err(say)?).into_owned();
        Ok(End::Failed(failed_test(&said).unwrap_or_else(|| format!("{} ({status})", names.join(" ")))))
    }

    fn reached(&self, worker: usize) -> PathBuf {
        self.folder.join(format!("reached-{worker}"))
    }

    /// Works through a list on as many threads as there are jobs; answers are taken one by one, as they come.
    fn in_parallel<T: Sync, A: Send>(
        &self,
        list: &[T],
        work: impl Fn(usize, &T) -> A + Sync,
        mut take: impl FnMut(&T, A) -> Result<(), Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        let next = Mutex::new(list.iter());
        let (send, answers) = mpsc::channel();
        let (next, work) = (&next, &work);
        std::thread::scope(|scope| {
            for worker in 0..self.jobs {
                let send = send.clone();
                scope.spawn(move || {
                    while let Some(item) = next.lock().ok().and_then(|mut next| next.next()) {
                        if send.send((item, work(worker, item))).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(send);
            // Dropped on an error, so that the others stop as well.
            let answers = answers;
            for (item, answer) in &answers {
                take(item, answer)?;
            }
            Ok(())
        })
    }
}

/// The first test a program says has failed.
pub fn failed_test(said: &str) -> Option<String> {
    let line = said.lines().find(|line| line.starts_with("test ") && line.ends_with(" ... FAILED"))?;
    Some(line["test ".len()..line.len() - " ... FAILED".len()].to_string())
}
