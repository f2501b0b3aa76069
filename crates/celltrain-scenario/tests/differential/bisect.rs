//! Finds the first event at which the engines differ, and shows the events around this event in both engines.
//!
//! Both engines can stop at any instant. So the search halves the time between an instant at which their states are
//! equal and an instant at which their states differ. Each state comes from a new run, because reading the state of the
//! fast engine settles its ports, which may hide a fault. Events of end systems, which both engines emit, are compared
//! without stopping the engines: a hash of all events so far, computed every 2^k events, shows the block of events with
//! the first difference.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use celltrain_core::cancellation::CancellationToken;
use celltrain_core::engine::{Engine, PortMode, Simulation};
use celltrain_core::events::{CellEvent, Event, FrameEvent, FrameStep, MemoryEvent, Observer};
use celltrain_core::index::LinkIndex;
use celltrain_core::metrics::{PortResult, RunResult};
use celltrain_core::network::{MeasureWindow, Network};
use celltrain_core::port::PortCounters;
use celltrain_core::probe::{Nothing, Probe, Recorder};
use celltrain_core::units::{Duration, PS_PER_SECOND, Span, Time};

use super::compare::{ON_THREADS, on_threads, recorder, same_results, same_series};
use super::steps;
use super::watch::{NUMBERS, Numbers, ReportedEvents, numbers};

/// Describes the first difference between the engines on a network, with the events around the difference in both
/// engines.
pub(crate) fn first_difference(network: &Network) -> String {
    let found = Engines { fast: network, reference: network }.bisect();
    found.map_or("the states and events of both engines are equal".into(), |found| found.text)
}

/// The first difference between the engines.
#[derive(Debug)]
struct Difference {
    /// The port whose states differ; `None` if the difference is not at a port, or if an engine panics.
    port: Option<String>,
    /// The first event that differs, with the previous event of its frame. If this event is unknown, all events at the
    /// time of the difference. If the port is known, only events at this port.
    events: Vec<String>,
    /// The complete description of the difference, with the histories of both engines.
    text: String,
}

/// The networks that the two engines simulate. The networks are equal, unless a test makes them differ on purpose.
struct Engines<'a> {
    fast: &'a Network,
    reference: &'a Network,
}

/// A mode in which the fast engine runs.
#[derive(Clone, Copy, Debug)]
enum Way {
    Alone(PortMode),
    /// The engine runs with a recorder of all series.
    Watched(PortMode),
    OnThreads(PortMode, usize),
    /// The engine runs with random steps and injections ([`steps`]).
    InSteps(PortMode),
}

const MODES: [PortMode; 3] = [PortMode::Planned, PortMode::Trains, PortMode::Streams];
/// Number of instants at which states are compared if the engines agree at the end of the run.
const INSTANTS: u64 = 8;
/// Binary logarithm of the number of events covered by one hash.
const BLOCK: u32 = 6;
/// Number of instants before the first difference that a history shows.
const BEFORE: usize = 8;
const AFTER: usize = 3;

/// The state of an engine at the end of an instant: the results or all series so far, or the message of a panic.
struct State {
    result: Option<RunResult>,
    series: Option<Recorder>,
}

impl Engines<'_> {
    fn bisect(&self) -> Option<Difference> {
        let ends = self.end_events();
        let mut way = Way::Alone(PortMode::Planned);
        let (at, what, ports) = match self.first_state() {
            Some((found, at)) => {
                let (what, ports) =
                    self.difference(found, at).expect("the states of the engines differ at this instant");
                if let Way::InSteps(_) = found {
                    way = found;
                }
                (at, format!("{found:?}: {what}"), ports)
            }
            None => (ends.as_ref()?.0, "the states are equal, but the events differ".into(), Vec::new()),
        };
        let events = events_of(self.reference, way);
        let first = self.first_event(&events, &ports, at);
        let port = first.as_ref().and_then(|first| link_of(&events[first.end - 1].1));
        let port = port.or_else(|| ports.first().map(|port| port.link));
        let is_there = |event: &Event| port.is_none_or(|port| link_of(event) == Some(port));
        let there: Vec<(Time, String)> =
            events.iter().filter(|(_, event)| is_there(event)).map(|(time, event)| (*time, self.show(event))).collect();
        let is_exact = first.is_some();
        let (last, here): (_, Vec<String>) = if let Some(first) = first {
            (Some(events[first.start].0), events[first].iter().map(|(_, event)| self.show(event)).collect())
        } else {
            let last = there.iter().map(|&(time, _)| time).filter(|&time| time <= at).max();
            let here = there.iter().filter(|&&(time, _)| Some(time) == last).map(|(_, event)| event.clone()).collect();
            (last, here)
        };
        let name = port.map(|port| self.reference.links[port].name.clone());
        let place = name.as_ref().map_or(String::new(), |name| format!(" at port {name}"));
        let mut text = format!("first difference{place}, {}: {what}\n", self.show_time(at));
        let label = if is_exact || last == Some(at) {
            "first event that differs"
        } else {
            "last event before the \
            difference"
        };
        for event in &here {
            writeln!(text, "{label}: {event}").unwrap();
        }
        text.push_str(&self.history(&there, last.unwrap_or(at), port, way));
        text.extend(ends.map(|(_, ends)| ends));
        Some(Difference { port: name, events: here, text })
    }

    /// Returns the first event after which a counter of a port exceeds its value in the fast engine at the instant
    /// `at`, or, if the fast engine is ahead, its value in the reference engine. If a decision about a frame caused the
    /// event, the decision is included.
    fn first_event(&self, events: &[(Time, Event)], ports: &[Parted], at: Time) -> Option<Range<usize>> {
        let mut all = ReportedEvents::new(self.reference);
        let mut ahead = None;
        for (number, &(time, event)) in events.iter().enumerate() {
            all.on_event(time, event);
            let Some(port) = ports.iter().find(|port| link_of(&event) == Some(port.link)) else { continue };
            let reached = all.numbers(port.link).into_iter().zip(port.numbers);
            let is_beyond = |bound: fn([u64; 2]) -> u64| {
                reached.clone().any(|(number, both)| both[0] != both[1] && number > bound(both))
            };
            if time <= at && is_beyond(|[fast, reference]| if fast < reference { fast } else { u64::MAX }) {
                return Some(with_frame(events, number));
            }
            if ahead.is_none() && is_beyond(|[fast, reference]| if fast > reference { reference } else { u64::MAX }) {
                ahead = Some(number);
            }
        }
        ahead.map(|number| with_frame(events, number))
    }

    /// Returns a mode in which the engines differ, and the first instant at which they differ.
    fn first_state(&self) -> Option<(Way, Time)> {
        let end = self.reference.end(self.reference.clock());
        let ways: Vec<Way> = MODES
            .into_iter()
            .flat_map(|mode| [Way::Alone(mode), Way::Watched(mode)])
            .chain(ON_THREADS.map(|(mode, threads)| Way::OnThreads(mode, threads)))
            .chain(MODES.map(Way::InSteps))
            .collect();
        let instants = (1..=INSTANTS).rev().map(|part| Time(end.0 / INSTANTS * part));
        let mut all = [end].into_iter().chain(instants).flat_map(|at| ways.iter().map(move |&way| (way, at)));
        let (way, mut differs) = all.find(|&(way, at)| self.difference(way, at).is_some())?;
        let mut equal = Time(0);
        while differs - equal > Span(1) {
            let between = Time(equal.0 + (differs - equal).0 / 2);
            if self.difference(way, between).is_some() {
                differs = between;
            } else {
                equal = between;
            }
        }
        Some((way, differs))
    }

    /// Returns the difference between the states of both engines at the end of an instant, and the ports whose states
    /// differ.
    fn difference(&self, way: Way, at: Time) -> Option<(String, Vec<Parted>)> {
        let reference = match state(Engine::Reference, way, self.reference, at) {
            Ok(state) => state?,
            Err(message) => return Some((format!("the reference engine panics: {message}"), Vec::new())),
        };
        let fast = match state(Engine::Fast, way, self.fast, at) {
            Ok(state) => state?,
            Err(message) => return Some((format!("the fast engine panics: {message}"), Vec::new())),
        };
        if let (Some(fast), Some(reference)) = (&fast.result, &reference.result)
            && let Err(difference) = same_results(fast, reference)
        {
            let numbers =
                |port: &PortResult| numbers(&port.counters, port.queue_cells.into(), port.max_queue_cells.into());
            let ports = fast.ports.iter().zip(reference.ports.iter_enumerated());
            let ports = ports.filter(|(fast, (_, reference))| fast != reference);
            let parted = |(fast, (link, reference)): (&PortResult, (LinkIndex, &PortResult))| {
                Parted::new(link, numbers(fast), numbers(reference))
            };
            return Some((difference, ports.map(parted).collect()));
        }
        if let (Some(fast), Some(reference)) = (&fast.series, &reference.series)
            && let Err(difference) = same_series(fast, reference)
        {
            let queues =
                |of: &Recorder| [&of.queue_cells, &of.queue_cells_least, &of.queue_cells_largest].map(Vec::clone);
            let differs =
                |(fast, reference): &(Vec<u32>, Vec<u32>)| fast.iter().zip(reference).position(|(a, b)| a != b);
            let place = queues(fast).into_iter().zip(queues(reference)).find_map(|both| differs(&both));
            let links = self.reference.links.len();
            let parted = |place: usize| {
                let largest = |of: &Recorder| {
                    let of_port = of.queue_cells_largest.iter().skip(place % links).step_by(links);
                    numbers(&PortCounters::default(), 0, of_port.max().copied().unwrap_or_default().into())
                };
                Parted::new(LinkIndex::from(place % links), largest(fast), largest(reference))
            };
            return Some((difference, place.map(parted).into_iter().collect()));
        }
        None
    }

    /// Returns the first event of end systems that differs: the event's time in the reference engine, and the event's
    /// text with the events around it in both engines.
    fn end_events(&self) -> Option<(Time, String)> {
        let all = self.both(|engine, network| EndEvents::of(engine, network, 0..0).hashes);
        let block = differs(&all)? as u64;
        // Keep the events of the block with the first difference, and some events before and after the block.
        let kept = (block << BLOCK).saturating_sub(AFTER as u64)..((block + 1) << BLOCK) + AFTER as u64;
        let events = self.both(|engine, network| EndEvents::of(engine, network, kept.clone()).events);
        let first = differs(&events)?;
        let mut text = format!("event {} of the end systems differs:\n", kept.start + first as u64);
        for (engine, events) in ["fast", "reference"].iter().zip(&events) {
            for (number, (time, event)) in
                events.iter().enumerate().take(first + AFTER).skip(first.saturating_sub(AFTER))
            {
                let mark = if number == first { ">" } else { " " };
                writeln!(text, "{mark} {engine:9} {}  {}", self.show_time(*time), self.show(event)).unwrap();
            }
        }
        let end = self.reference.end(self.reference.clock());
        Some((events[1].get(first).map_or(end, |(time, _)| *time), text))
    }

    fn both<T>(&self, of: impl Fn(Engine, &Network) -> T) -> [T; 2] {
        [of(Engine::Fast, self.fast), of(Engine::Reference, self.reference)]
    }

    /// Returns the events of the reference engine around an instant, and the port's counters in both engines after each
    /// instant.
    fn history(&self, events: &[(Time, String)], at: Time, port: Option<LinkIndex>, way: Way) -> String {
        let times: BTreeSet<Time> = events.iter().map(|&(time, _)| time).collect();
        let before = times.range(..=at).rev().take(BEFORE).copied();
        let mut shown: Vec<Time> = before.chain(times.range(at + Span(1)..).take(AFTER).copied()).collect();
        shown.sort_unstable();
        let mut text = String::from("history:\n");
        for time in shown {
            let mark = if time == at { ">" } else { " " };
            for (_, event) in events.iter().filter(|&&(other, _)| other == time) {
                writeln!(text, "{mark} {}  {event}", self.show_time(time)).unwrap();
            }
            let Some(port) = port else { continue };
            let counters = self.both(|engine, network| match state(engine, way, network, time) {
                Ok(Some(State { result: Some(result), .. })) => {
                    let port = &result.ports[port];
                    format!("{} wait, {:?}", port.queue_cells, port.counters)
                }
                Ok(_) => String::new(),
                Err(message) => format!("panics: {message}"),
            });
            if counters[0] == counters[1] {
                writeln!(text, "    both      {}", counters[0]).unwrap();
            } else {
                writeln!(text, "    fast      {}\n    reference {}", counters[0], counters[1]).unwrap();
            }
        }
        text
    }

    fn show_time(&self, time: Time) -> String {
        format!("{:.9} s", self.reference.clock().seconds(time))
    }

    fn show(&self, event: &Event) -> String {
        match event {
            Event::Cell(CellEvent { link, vc, frame, last, step, rm, .. }) => {
                let kind = if rm.is_some() { "RM cell" } else { "cell" };
                let last = if *last { ", the last" } else { "" };
                let (port, vc) = (&self.reference.links[*link].name, &self.reference.vcs[*vc].name);
                format!("{step:?}: {kind} of frame {}{last}, VC {vc}, port {port}", frame.number())
            }
            other => format!("{other:?}"),
        }
    }
}

/// A port at which the engines differ, with its counters in the fast engine and in the reference engine.
struct Parted {
    link: LinkIndex,
    numbers: [[u64; 2]; NUMBERS],
}

impl Parted {
    fn new(link: LinkIndex, fast: Numbers, reference: Numbers) -> Self {
        Self { link, numbers: std::array::from_fn(|i| [fast[i], reference[i]]) }
    }
}

/// Returns the range from the events that decided about a frame to the event itself.
fn with_frame(events: &[(Time, Event)], number: usize) -> Range<usize> {
    let is_decision = |(time, event): &&(Time, Event)| *time == events[number].0 && matches!(event, Event::Frame(_));
    number - events[..number].iter().rev().take_while(is_decision).count()..number + 1
}

/// Returns the link of the port at which an event happens.
fn link_of(event: &Event) -> Option<LinkIndex> {
    match event {
        Event::Cell(CellEvent { link, .. }) | Event::Memory(MemoryEvent { link, .. }) => Some(*link),
        Event::Frame(FrameEvent { step, .. }) => match step {
            FrameStep::Admitted(judged)
            | FrameStep::Refused(judged)
            | FrameStep::NoRoom(judged)
            | FrameStep::DroppedAtHead(judged)
            | FrameStep::Marked(judged) => Some(judged.link),
            FrameStep::Cut { link, .. }
            | FrameStep::LostJoined { link, .. }
            | FrameStep::LostOnLink { link, .. }
            | FrameStep::Dropped { link, .. } => Some(*link),
            FrameStep::Delivered | FrameStep::Failed(_) => None,
        },
        Event::Segment(_) | Event::Timer(_) | Event::Rate(_) | Event::Request(_) => None,
    }
}

/// Returns the state of an engine at the end of an instant, or the message of its panic. Returns `None` if the engine
/// cannot run the network in this mode.
fn state(engine: Engine, way: Way, network: &Network, at: Time) -> Result<Option<State>, String> {
    // The clock rounds this number of picoseconds to the instant `at`.
    let units = u128::from(network.clock().units_per_second);
    let picoseconds = (u128::from(at.0) * u128::from(PS_PER_SECOND) + units / 2) / units;
    let since_start =
        Duration { picoseconds: u64::try_from(picoseconds).expect("the duration of a run fits in 64 bits").max(1) };
    let run = || match way {
        Way::Alone(mode) => {
            let mut simulation = start(engine, mode, network, Nothing);
            simulation.advance(at).expect("the target time is not in the past");
            Some(State { result: Some(simulation.snapshot().expect("nothing cancels this run")), series: None })
        }
        Way::Watched(mode) => {
            let mut series = recorder(network, since_start);
            let mut simulation = start(engine, mode, network, &mut series);
            // The recorder takes its sample when the simulation passes the instant.
            if at < simulation.end() {
                simulation.advance(at + Span(1)).expect("the target time is not in the past");
            } else {
                simulation.finish();
            }
            Some(State { result: None, series: Some(series) })
        }
        Way::OnThreads(mode, threads) => {
            // Use a shorter run, because partitions cannot stop together at any instant.
            let network = Network { duration: since_start, measure: MeasureWindow::default(), ..network.clone() };
            let result = match engine {
                Engine::Fast => on_threads(mode, threads, &network)?,
                Engine::Reference => engine.run_to_end(&network),
            };
            Some(State { result: Some(result), series: None })
        }
        Way::InSteps(mode) => {
            let (network, actions) = steps::with_actions(network);
            let mut simulation = start(engine, mode, &network, Nothing);
            steps::follow_until(&mut simulation, &actions, at);
            Some(State { result: Some(simulation.snapshot().expect("nothing cancels this run")), series: None })
        }
    };
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("no message").to_string()
    })
}

fn start<P: Probe>(engine: Engine, mode: PortMode, network: &Network, probe: P) -> Simulation<'_, P> {
    Simulation::by(engine, mode, network, probe, &CancellationToken::never()).expect("nothing cancels this run")
}

/// Returns the index of the first difference between two lists.
fn differs<T: PartialEq>([a, b]: &[Vec<T>; 2]) -> Option<usize> {
    let shorter = a.len().min(b.len());
    a.iter().zip(b).position(|(a, b)| a != b).or_else(|| (a.len() != b.len()).then_some(shorter))
}

/// Returns all events of the reference engine until its run ends or panics.
fn events_of(network: &Network, way: Way) -> Vec<(Time, Event)> {
    let mut events = Events(Vec::new());
    let run = || match way {
        Way::InSteps(mode) => {
            let (network, actions) = steps::with_actions(network);
            let mut simulation = start(Engine::Reference, mode, &network, &mut events);
            let end = simulation.end();
            steps::follow_until(&mut simulation, &actions, end);
        }
        _ => drop(Engine::Reference.run(network, &mut events, |_| true)),
    };
    let _ = catch_unwind(AssertUnwindSafe(run));
    events.0
}

struct Events(Vec<(Time, Event)>);

impl Probe for Events {}

impl Observer for Events {
    const OBSERVES: bool = true;

    fn on_event(&mut self, now: Time, event: Event) {
        self.0.push((now, event));
    }
}

/// The events that both engines emit, as hashes.
struct EndEvents {
    number: u64,
    hash: DefaultHasher,
    /// Hashes of all events up to the end of each block, and of all events.
    hashes: Vec<u64>,
    /// Numbers of the events whose texts are kept.
    kept: Range<u64>,
    events: Vec<(Time, Event)>,
}

impl EndEvents {
    /// Runs an engine until the run ends or panics.
    fn of(engine: Engine, network: &Network, kept: Range<u64>) -> Self {
        let mut all = Self { number: 0, hash: DefaultHasher::new(), hashes: Vec::new(), kept, events: Vec::new() };
        let run = || engine.run(network, &mut all, |_| true).is_ok();
        let _ = catch_unwind(AssertUnwindSafe(run));
        all.hashes.push(all.hash.finish());
        all
    }
}

impl Probe for EndEvents {}

impl Observer for EndEvents {
    const OBSERVES: bool = true;

    fn on_event(&mut self, now: Time, event: Event) {
        if !matches!(event, Event::Segment(_) | Event::Timer(_) | Event::Request(_)) {
            return;
        }
        self.hash.write(format!("{now:?} {event:?}").as_bytes());
        if self.kept.contains(&self.number) {
            self.events.push((now, event));
        }
        self.number += 1;
        if self.number.is_multiple_of(1 << BLOCK) {
            self.hashes.push(self.hash.finish());
        }
    }
}

mod tests {
    use celltrain_core::events::CellStep;
    use celltrain_scenario::{build, read_toml};

    use super::*;

    fn network(admit: &str) -> Network {
        let text = format!(
            r#"
duration = "3ms"
topology.n_source = {{ sources = 3, link_delay = "5us" }}
tcp.reno = {{ timer_granularity = "1ms", timer.initial_rto = "3ms" }}
flow.tcp3.start = "2ms"
port.bottleneck = {{ buffer = 60, policy.formula.admit = "{admit}" }}
"#
        );
        build::network(&read_toml(&text, "here.toml").expect_scenario(), 1)
    }

    #[test]
    fn bisection_reports_a_frame_that_only_the_fast_engine_refuses_as_the_first_difference() {
        let (fast, reference) = (network("X < 20"), network("X < 40"));
        let engines = Engines { fast: &fast, reference: &reference };
        let found = engines.bisect().expect("the two engines give different results");
        let starts_frame = |(_, event): &&(Time, Event)| matches!(event, Event::Frame(FrameEvent { step: FrameStep::Admitted(judged), .. }) if judged.occupancy >= 20);
        let events = events_of(&reference, Way::Alone(PortMode::Planned));
        let (time, judged) = events.iter().find(starts_frame).expect("a frame of this VC arrives");
        assert_eq!(found.port.as_ref(), Some(&reference.links[reference.bottleneck].name), "{}", found.text);
        assert!(found.events.contains(&engines.show(judged)), "{}", found.text);
        assert!(found.text.contains(&format!("{}: Alone(Planned): ", engines.show_time(*time))), "{}", found.text);
        let cell = events
            .iter()
            .find(|(at, event)| at == time && matches!(event, Event::Cell(cell) if cell.step == CellStep::Admitted));
        assert!(
            found.text.contains(&engines.show(&cell.expect("the first cell of the frame is admitted").1)),
            "{}",
            found.text
        );
    }

    #[test]
    fn bisection_finds_the_start_of_a_flow_that_only_the_fast_engine_delays() {
        let reference = network("X < 40");
        let mut fast = reference.clone();
        fast.flows.raw[2].start = Duration::from_microseconds(2_005);
        let engines = Engines { fast: &fast, reference: &reference };
        let all = engines.both(|engine, network| EndEvents::of(engine, network, 0..u64::MAX).events);
        let first = differs(&all).expect("the two engines give different results");
        assert!(first > 1 << BLOCK, "the first difference lies in a later block");
        let found = engines.bisect().expect("the two engines give different results");
        assert!(found.text.contains(&format!("event {first} of the end systems differs")), "{}", found.text);
        assert!(found.text.contains(&engines.show(&all[1][first].1)), "{}", found.text);
    }
}
