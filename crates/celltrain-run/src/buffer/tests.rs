use std::collections::BTreeMap;

use celltrain_core::engine::Engine;
use celltrain_scenario::{build, read_toml};

use super::*;
use crate::events::{Block, Choice, Log, Values};
use crate::runner::Observers;

fn network(policy: &str) -> Network {
    let text = format!(
        "duration = \"20ms\"\n[topology.n_source]\nsources = 3\nlink_delay = \"5us\"\n[tcp.reno]\n\
         [port.bottleneck]\nbuffer = 60\n[port.bottleneck.policy.{policy}]\n"
    );
    build::network(&read_toml(&text, "test").expect_scenario(), 1)
}

fn at(text: &str) -> Duration {
    text.parse().expect("the text is a duration")
}

fn history(network: &Network, [from, to]: [&str; 2], most: usize) -> History {
    let full = Cell::new(false);
    let buffer =
        Buffer::new(network, "bottleneck", [at(from), at(to)], (most, &full)).expect("the network has the port");
    let mut observers = Observers { buffer: Some(buffer), ..Observers::default() };
    let ended = Engine::Reference.observe(network, network.duration, &mut observers, |_| !full.get());
    assert_eq!(ended.is_err(), full.get());
    observers.buffer.expect("the observer has not been removed").history()
}

/// Returns the frame numbers of the cells that have this event in the window's event table.
fn events(network: &Network, window: &str, event: &str) -> Vec<i64> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut sink = |block| {
        blocks.push(block);
        true
    };
    let none = || [None, None, None];
    let choice =
        Choice::new(network.duration, &["cells".to_owned()], none(), Some(window)).expect("the choice is valid");
    {
        let log = Log::new(&choice, network, &mut sink).expect("the choice is valid");
        let mut observers = Observers { log: Some(log), ..Observers::default() };
        Engine::Reference.observe(network, network.duration, &mut observers, |_| true).expect("no test cancels a run");
        observers.log.expect("the observer has not been removed").finish();
    }
    let mut frames = Vec::new();
    for block in &blocks {
        let (Values::Words(kinds, words), Values::Counts(numbers)) = (&block.columns[7], &block.columns[5]) else {
            panic!("event and frame")
        };
        let of = |kind: &i32| usize::try_from(*kind).is_ok_and(|kind| words[kind] == event);
        frames.extend(kinds.iter().zip(numbers).filter(|(kind, _)| of(kind)).map(|(_, number)| *number));
    }
    frames
}

fn of_kind(history: &History, kind: Step) -> Vec<usize> {
    (0..history.steps.kind.len()).filter(|&row| history.steps.kind[row] == kind as i8).collect()
}

#[test]
fn every_kind_of_event_at_a_buffer_has_a_different_name() {
    let kinds = [
        (Step::Refused, "refused"),
        (Step::Cut, "cut"),
        (Step::Admitted, "admitted"),
        (Step::Lost, "lost"),
        (Step::Discarded, "discarded"),
        (Step::PushedOut, "pushed_out"),
        (Step::Dropped, "dropped"),
        (Step::Departed, "departed"),
    ];
    assert_eq!(kinds.map(|(kind, _)| STEPS[kind as usize]), kinds.map(|(_, name)| name));
}

#[test]
fn over_a_time_window_the_queue_length_changes_by_arrivals_minus_departures() {
    let network = network("epd]\nthreshold = 40\n#");
    let history = history(&network, ["500us", "3ms"], usize::MAX);
    let mut waiting = history.cells.from.iter().filter(|&&from| from == 0).count();
    assert!(waiting > 0, "cells are waiting when the window begins");
    for (row, &kind) in history.steps.kind.iter().enumerate() {
        match STEPS[usize::try_from(kind).expect("the text contains the value")] {
            "admitted" => waiting += 1,
            "departed" | "pushed_out" | "dropped" => waiting -= 1,
            _ => {}
        }
        assert_eq!(history.steps.occupancy[row], whole(waiting), "step {row}");
        let after = whole(row + 1);
        let cells = history.cells.from.iter().zip(&history.cells.until);
        assert_eq!(cells.filter(|(from, until)| **from <= after && after < **until).count(), waiting, "step {row}");
    }
    assert!(history.steps.time_s.is_sorted() && history.steps.time_s.iter().all(|time| (0.0005..0.003).contains(time)));
    // EPD refuses whole frames in this run, so no cell finds the buffer full.
    assert!(of_kind(&history, Step::Lost).is_empty());
    for (kind, event) in [(Step::Admitted, "admitted"), (Step::Discarded, "lost"), (Step::Departed, "departed")] {
        let frame = |row: &usize| {
            let frame = usize::try_from(history.steps.frame[*row])
                .expect("the network has no RM cells, so every event belongs to a frame");
            i64::from(history.frames.number[frame])
        };
        let shown: Vec<i64> = of_kind(&history, kind).iter().map(frame).collect();
        assert!(!shown.is_empty(), "{event}");
        assert_eq!(shown, events(&network, "500us:3ms", event), "{event}");
    }
}

#[test]
fn the_buffer_history_shows_a_refused_frame_with_the_values_compared_in_the_decision() {
    let history = history(&network("epd]\nthreshold = 40\n#"), ["0s", "5ms"], usize::MAX);
    let refused = of_kind(&history, Step::Refused);
    assert!(!refused.is_empty());
    let judgements = &history.judgements;
    for row in refused {
        let judgement = usize::try_from(history.steps.judgement[row]).expect(
            "a refused frame has an explained \
            decision",
        );
        assert_eq!(judgements.frame[judgement], history.steps.frame[row]);
        assert_eq!((judgements.admitted[judgement], judgements.reason[judgement]), (0, "X is above R"));
        assert_eq!(judgements.threshold_cells[judgement], 40.0);
        assert!(judgements.occupancy[judgement] > 40.0);
        let frame = usize::try_from(history.steps.frame[row]).expect("the row refers to a frame");
        assert_eq!(history.frames.fate[frame], "refused");
        assert_eq!(history.frames.damaged_s[frame], history.steps.time_s[row]);
    }
    assert!(judgements.admitted.contains(&1), "EPD admits other frames");
    assert!(judgements.share_cells.iter().all(|share| share.is_nan()), "this policy does not use shares");
}

#[test]
fn in_the_buffer_history_a_frame_that_lost_a_cell_remains_damaged_and_carries_a_data_segment() {
    let network = network("tail_drop");
    let history = history(&network, ["0s", "5ms"], usize::MAX);
    let cuts = of_kind(&history, Step::Cut);
    assert!(!cuts.is_empty());
    for row in cuts {
        let frame = usize::try_from(history.steps.frame[row]).expect("the row refers to a frame");
        let since = history.frames.damaged_s[frame];
        assert!(since <= history.steps.time_s[row]);
        // The value -1 means that the frame was joined to the previous frame before this port cut it.
        let port = history.frames.damaged_at[frame];
        assert!(port == -1 || history.ports[whole_index(port)] == history.port);
        assert!(history.frames.length[frame] > 0.0, "data");
    }
    let whole = (0..history.frames.vc.len()).filter(|&row| history.frames.damaged_s[row].is_nan());
    assert!(whole.clone().count() > 0);
    assert!(
        whole.into_iter().all(|row| history.frames.damaged_at[row] == -1 && history.frames.fate[row] == "admitted")
    );
}

/// Records which frames reached the end of their path, and whether each of these frames was delivered.
#[derive(Default)]
struct Ends(BTreeMap<Frame, bool>);

impl Probe for Ends {}

impl Observer for Ends {
    const OBSERVES: bool = true;

    fn on_event(&mut self, _: Time, event: Event) {
        if let Event::Frame(FrameEvent { vc, frame, step: step @ (FrameStep::Delivered | FrameStep::Failed(_)) }) =
            event
        {
            self.0.insert((vc, frame), matches!(step, FrameStep::Delivered));
        }
    }
}

#[test]
fn buffer_events_report_as_damaged_exactly_the_frames_that_are_not_delivered() {
    for policy in ["tail_drop", "drop_from_front", "ppd"] {
        let text = format!(
            "duration = \"200ms\"\n[topology.n_source]\nsources = 3\nlink_delay = \"5us\"\n[tcp.vanilla]\n\
             [port.bottleneck]\nbuffer = 60\n[port.bottleneck.policy.{policy}]\n"
        );
        let network = build::network(&read_toml(&text, "test").expect_scenario(), 1);
        let history = history(&network, ["0s", "200ms"], usize::MAX);
        let mut ends = Ends::default();
        Engine::Reference.run(&network, &mut ends, |_| true).expect("nothing cancels this run");
        let frames = &history.frames;
        let mut joined = 0;
        for row in 0..frames.vc.len() {
            let (name, number) = (&history.vcs[whole_index(frames.vc[row])], frames.number[row]);
            let vc = network.vcs.position(|vc| vc.name == *name).expect("the network has the VC");
            let frame = (vc, FrameNumber::new(u32::try_from(number).expect("the frame has a number")));
            let is_under_way = ends.0.range(frame..=(vc, FrameNumber::new(u32::MAX))).next().is_none();
            let is_delivered = ends.0.get(&frame).is_some_and(|&delivered| delivered);
            assert!(is_under_way || is_delivered == frames.damaged_s[row].is_nan(), "{policy}: {name}, frame {number}");
            joined += u32::from(!is_delivered && !is_under_way && frames.damaged_at[row] == -1);
        }
        assert_eq!(
            joined == 0,
            policy == "drop_from_front",
            "{policy}: {joined} frames are joined with the previous \
            frame"
        );
    }
}

fn whole_index(index: i32) -> usize {
    usize::try_from(index).expect("the index is not negative")
}

#[test]
fn in_buffer_events_the_cells_of_a_frame_are_numbered_consecutively_from_the_first_cell() {
    let history = history(&network("epd]\nthreshold = 40\n#"), ["0s", "1ms"], usize::MAX);
    let mut next: BTreeMap<i32, i32> = BTreeMap::new();
    let cells = &history.cells;
    for row in 0..cells.vc.len() {
        let index = next.entry(cells.frame[row]).or_insert(0);
        assert_eq!(cells.index[row], *index, "cell {row}");
        *index = if cells.last[row] == 1 { i32::MIN } else { *index + 1 };
    }
    assert!(cells.last.contains(&1));
}

#[test]
fn the_number_of_buffer_events_is_limited_and_an_unknown_port_is_refused() {
    let network = network("tail_drop");
    let short = history(&network, ["0s", "5ms"], 100);
    assert!(short.cut_short);
    assert_eq!(short.steps.kind.len(), 100);
    let full = Cell::new(false);
    let wrong = Buffer::new(&network, "sw1->sw3", [at("0s"), at("1ms")], (1, &full)).map(|_| ()).unwrap_err();
    assert!(wrong.to_string().contains("did you mean sw1->sw2?"), "{wrong}");
}

#[test]
fn the_buffer_history_after_the_last_event_contains_the_waiting_cells() {
    let network = network("tail_drop");
    let all = history(&network, ["0s", "20ms"], usize::MAX);
    let none = history(&network, ["19999999ns", "20ms"], usize::MAX);
    let waiting = all.cells.until.iter().filter(|&&until| until == i32::MAX).count();
    assert_eq!(
        none.cells.from.iter().filter(|&&from| from == 0).count(),
        waiting + of_kind(&none, Step::Departed).len()
    );
}

#[test]
fn the_cells_in_a_shared_memory_are_reported_after_each_instant_with_a_buffer_event() {
    let text = "duration = \"5ms\"\n[topology.n_source]\nsources = 3\nlink_delay = \"5us\"\n[tcp.reno]\n\
         [port.bottleneck]\nbuffer = \"shared\"\npolicy.ppd = {}\n[switch.sw1.memory]\ncells = 100\n\
         [switch.sw1.memory.pool.main.policy.dynamic_threshold]\nalpha = 1.0\n";
    let network = build::network(&read_toml(text, "test").expect_scenario(), 1);
    let history = history(&network, ["0s", "5ms"], 100_000);
    let memory = history.memory.expect("the port belongs to a shared memory");
    assert_eq!((memory.name.as_str(), memory.cells), ("sw1", 100));
    let own =
        memory.queues.iter().position(|name| *name == history.port).expect("the memory has the queue of the port");
    let queues = memory.queues.len();
    let mut instants: Vec<f64> = history.steps.time_s.clone();
    instants.dedup();
    assert_eq!(memory.steps.len(), instants.len());
    for ((&steps, held), most) in memory.steps.iter().zip(memory.held.chunks(queues)).zip(memory.most.chunks(queues)) {
        let step = usize::try_from(steps).expect("the number of steps is not negative") - 1;
        assert_eq!(held[own], history.steps.occupancy[step]);
        let threshold = f64::from(100 - held.iter().sum::<i32>());
        assert!(most.iter().all(|&most| most == threshold), "{most:?} with {held:?}");
    }
    let refusals = &memory.refusals;
    let is_refused = |&(&kind, _): &(&i8, &i32)| [Step::Cut as i8, Step::Lost as i8].contains(&kind);
    let rows: Vec<_> = history.steps.kind.iter().zip(&history.steps.refusal).filter(is_refused).collect();
    assert!(!rows.is_empty() && rows.iter().all(|&(_, &row)| row >= 0), "{rows:?}");
    assert_eq!(history.steps.refusal.iter().max(), Some(&(i32::try_from(refusals.used.len()).unwrap() - 1)));
    for (row, &used) in refusals.used.iter().enumerate() {
        assert_eq!((refusals.pool_cells[row], refusals.threshold[row]), (100, f64::from(100 - used)));
        assert!(f64::from(refusals.shared[row]) + 1.0 > refusals.threshold[row]);
        assert_eq!(refusals.reason[row], "q_i would exceed alpha_i (B - Q)");
        let queue = usize::try_from(refusals.queue[row]).expect("the row has the index of a queue");
        assert_eq!(refusals.pools[queue], "sw1/main");
        assert_eq!(refusals.queues[queue], format!("the queue of priority 0 at {}", history.port));
    }
}
