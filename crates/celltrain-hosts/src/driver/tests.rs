//! Tests of scripted stacks in the networks of trials.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use celltrain_core::engine::Engine;
use celltrain_core::metrics::RunResult;
use celltrain_core::policy::{PolicyConfig, tail_drop};
use celltrain_core::probe::Nothing;

use super::*;
use crate::stack::{Endpoint, Report};
use crate::trial::Trial;

const US: Duration = Duration::from_micros(1);

/// A stack that sends packets of given lengths at given times, and answers each packet with a packet of `answer` bytes.
#[derive(Default)]
struct Script {
    /// The stack's end of the flow, once the run has begun.
    end: Option<Endpoint>,
    name: &'static str,
    unit: Option<Duration>,
    sends: VecDeque<(Duration, usize)>,
    answer: usize,
    answers: usize,
    /// True if the stack's timeout is always the current time.
    is_hasty: bool,
    received: u64,
    log: Log,
}

/// Log of calls: time, name of the stack, call, and length of the packet.
type Log = Arc<Mutex<Calls>>;

type Calls = Vec<(Duration, &'static str, &'static str, usize)>;

impl Stack for Script {
    fn on_packet(&mut self, now: Duration, packet: &[u8]) {
        self.log.lock().unwrap().push((now, self.name, "packet", packet.len()));
        self.answers += usize::from(self.answer > 0);
    }

    fn poll(&mut self, now: Duration, out: &mut Vec<Packet>) {
        self.log.lock().unwrap().push((now, self.name, "poll", self.answers));
        let packet = |length| self.end.expect("the run has begun").packet(253, &vec![2; length - 20]);
        out.extend((0..std::mem::take(&mut self.answers)).map(|_| packet(self.answer)));
        while let Some((_, length)) = self.sends.pop_front_if(|send| send.0 <= now) {
            out.push(packet(length));
        }
    }

    fn next_timeout(&self) -> Option<Duration> {
        if self.is_hasty { Some(Duration::ZERO) } else { self.sends.front().map(|send| send.0) }
    }

    fn report(&self) -> Report {
        Report { received: self.received, ..Report::default() }
    }

    fn name(&self) -> &'static str {
        "Script"
    }

    fn unit(&self) -> Duration {
        self.unit.unwrap_or(US)
    }
}

/// Returns a flow with the given stacks as its ends.
fn hosted(network: &Network, flow: FlowIndex, mut stacks: [Script; 2]) -> HostedFlow {
    for (stack, end) in stacks.iter_mut().zip(Endpoint::pair(network, flow)) {
        stack.end = Some(end);
    }
    HostedFlow { flow, stacks: stacks.map(|stack| Box::new(stack) as Box<dyn Stack>) }
}

/// Runs stacks in the network of a trial, on both engines. `make` creates the stacks of a flow.
fn run(network: &Network, make: impl Fn(usize, &Log) -> [Script; 2]) -> (Calls, Result<RunResult, HostsError>) {
    let [fast, reference] = [Engine::Fast, Engine::Reference].map(|engine| {
        let log = Log::default();
        let flows = network.flows.keys().map(|flow| hosted(network, flow, make(usize::from(flow), &log)));
        let hosts = Hosts::new(network, flows.collect());
        let result = engine.run_hosted(network, Nothing, |_| true, |simulation| hosts.run(simulation, |_, _| ()));
        let log = std::mem::take(&mut *log.lock().unwrap());
        (log, result)
    });
    assert_eq!(fast, reference);
    fast
}

fn trial() -> Trial {
    Trial::new(1).mss(1460).duration(Duration::from_millis(1))
}

#[test]
fn a_packet_from_a_protocol_stack_and_the_reply_arrive_after_transmission_and_propagation_times() {
    // In units of 1/97.2 MHz, a cell takes 265 and the delay of a link is 486. A packet of 1500 bytes has 32 cells and
    // arrives 34 cell times and three link delays after 9720, at 20188 or 207.7 us. The answer of 40 bytes has two
    // cells, and arrives at 22706 or 233.6 us.
    let (log, _) = run(&trial().network(), |_, log| {
        let sends = [(100 * US, 1500)].into();
        let sender = Script { name: "sender", sends, log: log.clone(), ..Script::default() };
        [sender, Script { name: "receiver", answer: 40, log: log.clone(), ..Script::default() }]
    });
    let expected = [
        (0, "sender", "poll", 0),
        (0, "receiver", "poll", 0),
        (100, "sender", "poll", 0),
        (207, "receiver", "packet", 1500),
        (207, "receiver", "poll", 1),
        (233, "sender", "packet", 40),
        (233, "sender", "poll", 0),
    ];
    assert_eq!(log, expected.map(|(time, name, call, length)| (time * US, name, call, length)));
}

#[test]
fn a_timeout_set_in_the_past_expires_one_time_unit_after_the_current_time() {
    let (log, _) = run(&trial().network(), |_, log| {
        let stack =
            Script { name: "sender", unit: Some(250 * US), is_hasty: true, log: log.clone(), ..Script::default() };
        [stack, Script::default()]
    });
    let told: Vec<u128> = log.iter().map(|call| call.0.as_micros()).collect();
    assert_eq!(told, [0, 250, 500, 750, 1000]);
}

#[test]
fn a_protocol_stack_is_first_called_when_its_flow_starts() {
    let mut network = trial().network();
    network.flows[FlowIndex::new(0)].start = celltrain_core::units::Duration::from_microseconds(300);
    let (log, _) = run(&network, |_, log| {
        ["sender", "receiver"].map(|name| Script { name, log: log.clone(), ..Script::default() })
    });
    assert_eq!(log, ["sender", "receiver"].map(|name| (300 * US, name, "poll", 0)));
}

#[test]
fn a_packet_from_a_protocol_stack_is_reported_as_lost_when_a_later_packet_arrives() {
    // Two senders share a buffer of 40 cells. Packets of 32 cells collide at the bottleneck.
    let trial = Trial::new(2).mss(1460).buffer(40).policy(PolicyConfig::TailDrop(tail_drop::Config {}));
    let network = trial.duration(Duration::from_millis(2)).network();
    let flow = |number: usize, log: &Log| {
        let late = (1000 * US, 100);
        let sends = if number == 0 {
            vec![(Duration::ZERO, 1500); 4]
        } else {
            vec![(Duration::ZERO, 1500); 4].into_iter().chain([late]).collect()
        };
        [
            Script { sends: sends.into(), ..Script::default() },
            Script { name: "receiver", log: log.clone(), ..Script::default() },
        ]
    };
    let flows = network.flows.keys().map(|index| hosted(&network, index, flow(usize::from(index), &Log::default())));
    let hosts = Hosts::new(&network, flows.collect());
    let mut seen = Vec::new();
    let result = Engine::Fast.run_hosted(
        &network,
        Nothing,
        |_| true,
        |simulation| {
            hosts.run(simulation, |_, packet| seen.push((packet.step, usize::from(packet.flow), packet.number)))
        },
    );
    let count = |step, flow| seen.iter().filter(|packet| (packet.0, packet.1) == (step, flow)).count();
    assert!(result.unwrap().cells.lost > 0);
    // Later packets arrive only from the second sender, so only its losses are all known.
    assert_eq!(count(Step::Sent, 1), count(Step::Arrived, 1) + count(Step::Lost, 1));
    assert!(count(Step::Lost, 1) > 0);
    let last = seen.iter().rposition(|packet| packet.0 == Step::Arrived).unwrap();
    assert_eq!(seen[last].2, 8, "the loss is known before the packet is delivered");
    assert!(seen[..last].iter().any(|packet| packet.0 == Step::Lost));
}

#[test]
fn a_stack_that_sends_too_many_packets_in_one_poll_aborts_the_run() {
    let (_, result) = run(&trial().network(), |_, _| {
        [Script { sends: vec![(7 * US, 20); 50_001].into(), ..Script::default() }, Script::default()]
    });
    assert_eq!(
        result.unwrap_err().to_string(),
        "Script.poll for the sender of flow1, now 7000 ns: the stack sends 50001 packets at once; send at most 50000"
    );
}

#[test]
fn a_stack_that_sends_a_packet_larger_than_the_mtu_aborts_the_run() {
    let (_, result) = run(&trial().network(), |_, _| {
        [Script { sends: [(7 * US, 1501)].into(), ..Script::default() }, Script::default()]
    });
    assert_eq!(
        result.unwrap_err().to_string(),
        "Script.poll for the sender of flow1, now 7000 ns: the stack sends a packet of 1501 bytes: an mss of 1460 \
         bytes allows at most 1500 bytes; send less, or allow it: mss = 1461 in a Python class, .mss(1461) in a trial"
    );
}

#[test]
fn a_stack_polled_100000_times_with_an_expired_timer_aborts_the_run() {
    // Polls are 10.3 ns apart, so 100,000 polls take 1.03 ms. Packets between the polls do not hide the idle polls.
    let network = Trial::new(1).duration(Duration::from_millis(3)).network();
    for sends in [vec![], (0..30).map(|number| (100 * US * number, 40)).collect()] {
        let (_, result) = run(&network, |_, _| {
            let sends = sends.clone().into();
            [Script { unit: Some(US / 1000), is_hasty: true, sends, ..Script::default() }, Script::default()]
        });
        let message = result.unwrap_err().to_string();
        assert!(message.starts_with("Script.next_timeout for the sender of flow1, now 10"), "{message}");
        assert!(message.contains("the stack returned 0 ns after 100000 polls within 10 ms"), "{message}");
    }
    // One poll per microsecond is allowed.
    let (log, result) = run(&trial().network(), |_, log| {
        [Script { is_hasty: true, log: log.clone(), ..Script::default() }, Script::default()]
    });
    assert!(result.is_ok() && log.len() > 900);
}

/// A stack that leaves its timer unchanged, or sets it to a later time at each poll.
struct Timer {
    end: Endpoint,
    unit: Duration,
    /// Time from each poll to its timeout; `None` to leave the timer at 0.
    every: Option<Duration>,
    now: Duration,
    sends: Duration,
}

impl Stack for Timer {
    fn on_packet(&mut self, _: Duration, _: &[u8]) {}

    fn poll(&mut self, now: Duration, out: &mut Vec<Packet>) {
        self.now = now;
        if now >= self.sends {
            out.push(self.end.packet(253, &[1; 20]));
            self.sends = now + Duration::from_millis(300);
        }
    }

    fn next_timeout(&self) -> Option<Duration> {
        Some(self.every.map_or(Duration::ZERO, |every| self.now + every))
    }

    fn report(&self) -> Report {
        Report::default()
    }

    fn unit(&self) -> Duration {
        self.unit
    }
}

#[test]
fn a_stack_that_never_clears_an_expired_timer_aborts_the_run_and_a_slow_stack_does_not() {
    let ended = |rate: u64, unit: Duration, every: Option<Duration>| {
        let trial = Trial::new(1).link_rate(rate).round_trip(Duration::from_millis(6));
        let network = trial.duration(Duration::from_secs(2)).network();
        let flow = FlowIndex::new(0);
        let stack = |end| Box::new(Timer { end, unit, every, now: Duration::ZERO, sends: Duration::ZERO });
        let stacks = Endpoint::pair(&network, flow).map(|end| stack(end) as Box<dyn Stack>);
        let hosts = Hosts::new(&network, vec![HostedFlow { flow, stacks }]);
        let result =
            Engine::Fast.run_hosted(&network, Nothing, |_| true, |simulation| hosts.run(simulation, |_, _| ()));
        result.map(drop).map_err(|error| error.to_string())
    };
    for rate in [9_600, 64_000, 1_536_000, 155_520_000, 10_000_000_000] {
        for unit in [Duration::from_nanos(1), US, 100 * US, 1_000 * US, 10_000 * US, 100_000 * US] {
            let error = ended(rate, unit, None).unwrap_err();
            assert!(
                error.contains("the stack returned 0 ns after") && error.contains("without a packet"),
                "{rate} {unit:?} {error}"
            );
            // One stack that is slow, and one stack that is polled often.
            for every in [unit.max(200 * US), Duration::from_millis(500)] {
                assert_eq!(ended(rate, unit, Some(every)), Ok(()), "{rate} {unit:?} {every:?}");
            }
        }
    }
}

#[test]
fn a_stack_that_sends_faster_than_its_host_link_for_too_long_aborts_the_run() {
    // With segments of 60 kB, 16,655 packets contain a gigabyte.
    let network = trial().mss(60_000).buffer(2000).network();
    let sends = |packets: usize| {
        move |_: usize, log: &Log| {
            // The stack sends a hundred packets each microsecond.
            let sends =
                (0..packets).map(|packet| (u32::try_from(packet / 100).expect("it is small") * US, 60)).collect();
            [Script { sends, log: log.clone(), ..Script::default() }, Script::default()]
        }
    };
    let (_, result) = run(&network, sends(20_000));
    let error = result.unwrap_err().to_string();
    let words = "Script.poll for the sender of flow1, now 166000 ns: it has sent 16700 packets with 668000 bytes; 16674 of \
                 them have not arrived, and ";
    assert!(error.starts_with(words), "{error}");
    assert!(
        error.ends_with(" cells wait at the port of its host; send only what a window or a rate allows"),
        "{error}"
    );
    assert!(run(&network, sends(16_600)).1.is_ok());
}

#[test]
fn a_stack_cannot_report_more_bytes_than_its_packets_delivered() {
    let (_, result) = run(&trial().network(), |_, _| [Script::default(), Script { received: 1, ..Script::default() }]);
    assert_eq!(
        result.unwrap_err().to_string(),
        "Script.received for the receiver of flow1, now 0 ns: received is 1, but only 0 bytes of IP payload have arrived"
    );
}

#[test]
fn each_end_of_a_flow_has_its_own_address_and_seed() {
    let network = Trial::new(300).network();
    let mut ends: Vec<Endpoint> = network.flows.keys().flat_map(|flow| Endpoint::pair(&network, flow)).collect();
    assert_eq!((ends[0].local.to_string(), ends[0].remote.to_string()), ("10.0.0.1".into(), "10.0.0.2".into()));
    ends.sort_by_key(|end| (end.seed, end.local));
    ends.dedup_by_key(|end| end.seed);
    ends.sort_by_key(|end| end.local);
    ends.dedup_by_key(|end| end.local);
    assert_eq!(ends.len(), 600);
}
