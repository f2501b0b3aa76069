//! `celltrain-bench` runs one benchmark scenario, lists all scenarios, or measures how cost grows.

use std::error::Error;
use std::io::{self, ErrorKind, Write};
use std::process::{Command, ExitCode};

#[cfg(all(feature = "mimalloc", not(any(windows, target_family = "wasm"))))]
use celltrain_bench::allocator::BySize;
use celltrain_bench::{Case, Group, Measured, all, measure, named};
use celltrain_core::delay::DelayChoice;
use celltrain_core::engine::{Engine, PortMode};
use serde_json::json;

/// Allocator for runs: `docs/design/memory.md` explains why the system allocator is not used.
#[cfg(all(feature = "mimalloc", not(any(windows, target_family = "wasm"))))]
#[global_allocator]
static ALLOCATOR: BySize<mimalloc::MiMalloc> = BySize(mimalloc::MiMalloc);

const USAGE: &str = "\
celltrain-bench: measures the speed of the engines. Build it with --release.

    celltrain-bench --list [--json]                                     lists the scenarios
    celltrain-bench --scenario NAME [--engine fast|reference] [--json]  runs a scenario once
        [--duration 60ms]                                               for another duration
        [--port-mode planned|trains|streams]                            with this code for contended ports
        [--threads 2]                                                   on two threads
        [--delays all|ports|flows]                                      measures delays of packets
    celltrain-bench --scaling                                           measures how cost grows, as CSV, in about two minutes
";

fn main() -> ExitCode {
    let asked = match Asked::read(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(problem) => {
            eprintln!("celltrain-bench: {problem}\n\n{USAGE}");
            return ExitCode::from(BAD_INPUT);
        }
    };
    if cfg!(debug_assertions) {
        eprintln!("celltrain-bench: this build is not optimised, so its speed is meaningless");
    }
    match asked.answer(&mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        // The program that reads the output, such as `head`, closed the pipe.
        Err(problem) if is_closed_pipe(problem.as_ref()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("celltrain-bench: {problem}");
            ExitCode::FAILURE
        }
    }
}

const BAD_INPUT: u8 = 2;
/// Packet delays that can be measured, by name.
const DELAYS: [(&str, DelayChoice); 3] =
    [("all", DelayChoice::All), ("ports", DelayChoice::Ports), ("flows", DelayChoice::Flows)];
/// Modes of contended ports, by their names.
const PORT_MODES: [(&str, PortMode); 3] =
    [("planned", PortMode::Planned), ("trains", PortMode::Trains), ("streams", PortMode::Streams)];

fn is_closed_pipe(problem: &(dyn Error + 'static)) -> bool {
    problem.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

struct Asked {
    what: What,
    as_json: bool,
}

enum What {
    Help,
    List,
    Scaling,
    Run { case: Box<Case>, engine: Engine, mode: PortMode, threads: usize },
}

impl Asked {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut what, mut scenario, mut engine, mut as_json) = (None, None, None, false);
        let (mut mode, mut threads, mut duration, mut delays) = (PortMode::default(), 1, None, DelayChoice::None);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--help" | "-h" => what = Some(What::Help),
                "--list" => what = Some(What::List),
                "--scaling" => what = Some(What::Scaling),
                "--json" => as_json = true,
                "--delays" => {
                    let name = words.next().ok_or("--delays needs a value: all, ports or flows")?;
                    let known = DELAYS.iter().find(|delays| delays.0 == name);
                    delays = known.ok_or("valid values of --delays are all, ports and flows")?.1;
                }
                "--scenario" => scenario = Some(words.next().ok_or("--scenario needs a name")?),
                "--engine" => engine = Some(words.next().ok_or("--engine needs a name")?),
                "--duration" => duration = Some(words.next().ok_or("--duration needs a time such as 60ms")?),
                "--port-mode" => {
                    let name = words.next().ok_or("--port-mode needs the name of a mode")?;
                    let known = PORT_MODES.iter().find(|mode| mode.0 == name);
                    mode = known.ok_or("valid port modes are planned, trains and streams")?.1;
                }
                "--threads" => {
                    let number = words.next().and_then(|word| word.parse().ok()).filter(|&number| number > 0);
                    threads = number.ok_or("--threads needs a number, 1 or more")?;
                }
                other => return Err(format!("{other} is not an option")),
            }
        }
        let engine = match engine {
            Some(name) => {
                Engine::named(&name).ok_or_else(|| format!("{name} is not an engine; use fast or reference"))?
            }
            None => Engine::default(),
        };
        let what = match (what, scenario) {
            (Some(what), None) => what,
            (None, Some(name)) => {
                let mut case = named(&name).ok_or_else(|| format!("{name} is not a scenario; see --list"))?;
                if let Some(duration) = duration {
                    case = case.lasting(&duration);
                }
                case.delays = delays;
                What::Run { case: Box::new(case), engine, mode, threads }
            }
            _ => return Err("use one of --list, --scenario NAME and --scaling".into()),
        };
        Ok(Self { what, as_json })
    }

    fn answer(self, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
        match self.what {
            What::Help => write!(out, "{USAGE}")?,
            What::List => list(out, self.as_json)?,
            What::Scaling => scaling(out)?,
            What::Run { case, engine, mode, threads } => {
                show(out, &measure(&case, engine, (mode, threads), 1), self.as_json)?;
            }
        }
        Ok(out.flush()?)
    }
}

fn list(out: &mut impl Write, as_json: bool) -> io::Result<()> {
    let cases = all();
    if as_json {
        let row = |case: &Case| json!({"scenario": case.name, "group": case.group.name(), "title": case.title});
        return writeln!(out, "{}", json!(cases.iter().map(row).collect::<Vec<_>>()));
    }
    for case in cases {
        writeln!(out, "{:26} {:8} {}", case.name, case.group.name(), case.title)?;
    }
    Ok(())
}

fn show(out: &mut impl Write, measured: &Measured, as_json: bool) -> io::Result<()> {
    if as_json {
        return writeln!(out, "{}", json!(measured));
    }
    writeln!(out, "scenario              {}", measured.scenario)?;
    writeln!(out, "engine                {}", measured.engine)?;
    writeln!(out, "simulated seconds     {}", measured.duration_s)?;
    writeln!(out, "cell-hops             {}", measured.cell_hops)?;
    writeln!(out, "engine seconds        {:.4}", measured.engine_seconds)?;
    writeln!(out, "cell-hops per second  {:.3e}", measured.cell_hops_per_second)?;
    match measured.peak_rss_mib {
        Some(mib) => writeln!(out, "peak memory           {mib:.1} MiB"),
        None => writeln!(out, "peak memory           not reported by this system"),
    }
}

/// Measures every point of every series. Each run has its own process, because a process's peak memory never decreases.
/// Each round covers all points, so that a temporary load on the machine affects at most a few of a point's runs.
fn scaling(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let mut points = Vec::new();
    for case in all() {
        if let Group::Scaling { axis, ref value, reference } = case.group {
            let engines = if reference { &Engine::ALL[..] } else { &[Engine::Fast] };
            for &engine in engines {
                points.push((axis, value.clone(), case.name.clone(), engine, Vec::new()));
            }
        }
    }
    for _ in 0..ROUNDS {
        for (_, _, name, engine, runs) in &mut points {
            runs.push(in_a_process_of_its_own(name, *engine)?);
        }
    }
    writeln!(out, "axis,value,engine,cell_hops,engine_seconds,ns_per_cell_hop,peak_rss_mib")?;
    for (axis, value, _, engine, mut runs) in points {
        runs.sort_by(|a, b| a.engine_seconds.total_cmp(&b.engine_seconds));
        let median = &runs[ROUNDS / 2];
        let peak = median.peak_rss_mib.map_or_else(String::new, |mib| format!("{mib:.1}"));
        writeln!(
            out,
            "{},{value},{},{},{:.5},{:.3},{peak}",
            axis.name(),
            engine.name(),
            median.cell_hops,
            median.engine_seconds,
            median.ns_per_cell_hop(),
        )?;
    }
    Ok(())
}

/// Number of rounds. It is odd, so that the median is the result of an actual run.
const ROUNDS: usize = 3;

fn in_a_process_of_its_own(scenario: &str, engine: Engine) -> Result<Measured, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    let done = command.args(["--scenario", scenario, "--engine", engine.name(), "--json"]).output()?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{scenario} on the {} engine: {}: {said}", engine.name(), done.status).into());
    }
    Ok(serde_json::from_slice(&done.stdout)?)
}
