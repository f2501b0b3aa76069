//! Runs a test of ns-2 in celltrain, and compares the packets that enter the bottleneck with the reference trace.

use std::collections::BTreeMap;

use celltrain_core::cell::FrameNumber;
use celltrain_core::engine::Engine;
use celltrain_core::events::{Event, FrameEvent, FrameStep, Observer, SegmentEvent, SegmentStep};
use celltrain_core::index::{FlowIndex, VcIndex};
use celltrain_core::probe::Probe;
use celltrain_core::units::{Clock, Time};
use celltrain_scenario::{build, read_toml};

use super::rules::Rule;
use super::suites::Test;
use super::traces::{Packet, Trace, WRAP};

/// Runs a test with these rules of ns-2, and compares the run with the trace of the test.
///
/// # Errors
///
/// Returns the first difference: a different packet, a packet lost in only one of the two runs, or too large a
/// difference in time.
pub(super) fn run(test: &Test, rules: &[&Rule], trace: &Trace) -> Result<(), String> {
    let toml = test.scenario(rules, trace);
    let reading = read_toml(&toml, &test.name);
    let scenario = reading.scenario.unwrap_or_else(|| panic!("{:?}\n{toml}", reading.faults));
    let network = build::network(&scenario, 1);
    let mut packets = Packets {
        clock: network.clock(),
        mss: test.mss(),
        first: test.first(),
        phase: test.phase(),
        access: [1, 2].map(|flow| test.access(flow)),
        late: test.delays(),
        free: BTreeMap::new(),
        on_the_way: BTreeMap::new(),
        found: Trace::new(),
    };
    Engine::Fast.observe(&network, scenario.duration, &mut packets, |_| true).unwrap();
    // Sort by time, because delayed packets enter the bottleneck later than in the order of sending.
    packets.found.values_mut().for_each(|found| found.sort_by(|a, b| a.time.total_cmp(&b.time)));
    let traced = Traced { first: test.first(), until: test.number("end"), tolerance: test.tolerance() };
    traced.compare(trace, &packets.found)
}

/// The part of a trace that is compared with a run.
struct Traced {
    /// Number of the first packet.
    first: u64,
    /// Time at which the trace ends, in seconds.
    until: f64,
    /// Number of seconds by which times may differ.
    tolerance: f64,
}

impl Traced {
    /// Compares the packets of a trace with the packets of a run.
    fn compare(&self, trace: &Trace, found: &Trace) -> Result<(), String> {
        for (what, theirs) in trace {
            let mut ours = found.get(what).into_iter().flatten();
            for theirs in theirs.iter().skip(usize::try_from(self.first).unwrap()) {
                let ours = ours.next().ok_or_else(|| format!("{what}: {theirs:?}, and nothing"))?;
                let is_same = (ours.number, ours.lost) == (theirs.number, theirs.lost);
                if !is_same || (ours.time - theirs.time).abs() > self.tolerance {
                    return Err(format!("{what}: {theirs:?}, and {ours:?}"));
                }
            }
            if let Some(more) = ours.next().filter(|more| more.time < self.until - self.tolerance) {
                return Err(format!("{what}: nothing, and {more:?}"));
            }
        }
        Ok(())
    }
}

/// The packets of a run.
struct Packets {
    clock: Clock,
    mss: u64,
    /// Number of the first packet.
    first: u64,
    /// Delay of the run relative to the trace, in seconds.
    phase: f64,
    /// Seconds that a packet takes on each flow's access link, and the delay of this link.
    access: [[f64; 2]; 2],
    /// Delays in seconds of packets of the first flow, by number on the access link.
    late: BTreeMap<u64, f64>,
    /// Time at which the access link of each flow is next free.
    free: BTreeMap<FlowIndex, f64>,
    /// Position of each frame's packet in the trace, until the packet is delivered.
    on_the_way: BTreeMap<(VcIndex, FrameNumber), (String, usize)>,
    found: Trace,
}

impl Packets {
    /// Adds a packet. The packet counts as lost until it is delivered.
    fn add(&mut self, what: &str, flow: FlowIndex, time: f64, number: u64) -> (String, usize) {
        let what = format!("{what}{}", flow.number() + 1);
        let packets = self.found.entry(what.clone()).or_default();
        packets.push(Packet { time, number: number % WRAP, lost: true });
        (what, packets.len() - 1)
    }
}

impl Observer for Packets {
    const OBSERVES: bool = true;

    fn on_event(&mut self, now: Time, event: Event) {
        let now = self.clock.seconds(now) - self.phase;
        match event {
            Event::Segment(SegmentEvent { flow, vc, frame, step, .. }) => {
                let place = match step {
                    SegmentStep::Sent { segment, .. } | SegmentStep::Retransmitted { segment, .. } => {
                        let number = segment.seq / self.mss + self.first;
                        let (sent, place) = self.add("sent", flow, now, number);
                        self.found.get_mut(&sent).expect("the packet is added only once")[place].lost = false;
                        // A packet enters the bottleneck when the packet has completely arrived at the port.
                        let [takes, delay] = self.access[usize::from(flow)];
                        let free = self.free.entry(flow).or_default();
                        *free = free.max(now) + takes;
                        let sent = self.found.get("data1").map_or(0, |packets| packets.len() as u64);
                        let late = if flow.number() == 0 { self.late.get(&sent) } else { None };
                        let time = *free + delay + late.unwrap_or(&0.0);
                        self.add("data", flow, time, number)
                    }
                    SegmentStep::AckSent { ack, .. } => {
                        self.add("acks", flow, now, ack.ack / self.mss + self.first + WRAP - 1)
                    }
                    _ => return,
                };
                self.on_the_way.insert((vc, frame), place);
            }
            Event::Frame(FrameEvent { vc, frame, step: FrameStep::Delivered }) => {
                let (what, place) =
                    self.on_the_way.remove(&(vc, frame)).expect("the packet was sent before it arrived");
                self.found.get_mut(&what).expect("the packet is added only once")[place].lost = false;
            }
            _ => {}
        }
    }
}

impl Probe for Packets {}

#[test]
fn a_trace_comparison_reports_missing_packets_and_differences_in_sequence_number_loss_and_time() {
    let packet = |time, number, lost| Packet { time, number, lost };
    let trace = |packets: &[Packet]| Trace::from([("data1".to_string(), packets.to_vec())]);
    let theirs = trace(&[packet(0.0, 0, false), packet(1.0, 1, false), packet(2.0, 2, true)]);
    let traced = Traced { first: 1, until: 2.5, tolerance: 0.1 };
    let ours = |packets: &[Packet]| traced.compare(&theirs, &trace(packets));
    let last = packet(2.0, 2, true);
    assert_eq!(ours(&[packet(1.05, 1, false), last, packet(3.0, 3, false)]), Ok(()));
    for different in [packet(1.0, 2, false), packet(1.0, 1, true), packet(1.2, 1, false)] {
        assert!(ours(&[different, last]).is_err(), "{different:?}");
    }
    assert!(ours(&[packet(1.0, 1, false)]).is_err());
    assert!(ours(&[packet(1.0, 1, false), last, packet(2.3, 3, false)]).is_err());
}
