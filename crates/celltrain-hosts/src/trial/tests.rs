use super::*;
use crate::stack::{Packet, Report};
use celltrain_core::policy::tail_drop;
use std::sync::atomic::{AtomicU8, Ordering};

/// Sends 40 packets of 1500 bytes every millisecond, which is more than the network can carry.
struct Flood {
    end: Endpoint,
    next: Duration,
    byte: u8,
    received: u64,
}

impl Stack for Flood {
    fn on_packet(&mut self, _: Duration, packet: &[u8]) {
        self.received += packet.len() as u64 - 20;
        assert!(packet[20] < 9, "a stack that panics");
    }

    fn poll(&mut self, now: Duration, out: &mut Vec<Packet>) {
        if now >= self.next {
            out.extend([(); 40].map(|()| self.end.packet(253, &[self.byte; 1480])));
            self.next = now + Duration::from_millis(1);
        }
    }

    fn next_timeout(&self) -> Option<Duration> {
        Some(self.next)
    }

    fn report(&self) -> Report {
        Report { received: self.received, ..Report::default() }
    }
}

fn flood(byte: u8) -> impl Fn([Endpoint; 2]) -> [Box<dyn Stack>; 2] {
    move |ends| ends.map(|end| Box::new(Flood { end, next: Duration::ZERO, byte, received: 0 }) as Box<dyn Stack>)
}

fn trial() -> Trial {
    Trial::new(2).mss(1460).duration(Duration::from_millis(20))
}

/// Returns the message of a panic, and the captures of the senders and the receivers.
fn failure(name: &str, check: impl FnOnce(&Path)) -> (String, Option<[Vec<u8>; 2]>) {
    let folder = std::env::temp_dir().join(format!("celltrain-{}-{name}", std::process::id()));
    let panic = catch_unwind(AssertUnwindSafe(|| check(&folder.join("x.pcapng")))).err();
    let captures = ["sender", "receiver"].map(|side| std::fs::read(folder.join(format!("x-{side}.pcapng"))).ok());
    let _ = std::fs::remove_dir_all(&folder);
    let message = panic.map(|panic| match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => (*panic.downcast::<&str>().unwrap()).to_owned(),
    });
    let [senders, receivers] = captures;
    (message.unwrap_or_default(), senders.zip(receivers).map(<[_; 2]>::from))
}

fn count(capture: &[u8], part: &[u8]) -> usize {
    capture.windows(part.len()).filter(|window| *window == part).count()
}

#[test]
fn a_stack_trial_that_passes_writes_no_capture() {
    let check = |path: &Path| {
        trial().check(path, flood(1), |result| assert!(result.efficiency > 0.8, "{}", result.efficiency));
    };
    assert_eq!(failure("met", check), (String::new(), None));
}

#[test]
fn a_failed_stack_trial_writes_captures_of_both_ends_with_the_reasons_for_losses() {
    let check = |path: &Path| {
        trial().check(path, flood(1), |result| assert!(result.cells.discarded == 0, "frames were discarded"));
    };
    let (message, captures) = failure("not-met", check);
    assert_eq!(message, "frames were discarded");
    let [senders, receivers] = captures.unwrap();
    assert!(senders.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]), "it is pcapng");
    assert_eq!(["source1", "destination2"].map(|host| count(&senders, host.as_bytes())), [1, 0]);
    assert_eq!(["source1", "destination2"].map(|host| count(&receivers, host.as_bytes())), [0, 1]);
    assert!(count(&senders, &[1; 1480]) > 1000, "the capture has the packets");
    let reason = b"lost at switch1->switch2: refused: X is above R (X = ";
    assert!(count(&senders, reason) > 100 && count(&senders, b"threshold R = 800 cells)") > 100);
}

#[test]
fn the_capture_of_a_long_stack_trial_is_small_and_begins_shortly_before_the_first_loss() {
    let long = trial().duration(Duration::from_millis(60)).link_rate(2_488_320_000).lose(1, [700]);
    let long = long.buffer(100_000).policy(tail_drop::Config {});
    let (message, captures) = failure("long", |path| long.check(path, flood(1), |_| panic!("not met")));
    assert_eq!(message, "not met");
    let [senders, receivers] = captures.unwrap();
    for capture in [&senders, &receivers] {
        assert!((3_500_000..5_500_000).contains(&capture.len()), "{} bytes captured of 7 MB", capture.len());
    }
    assert_eq!(count(&senders, b"lost on source2->switch1: packet chosen by a loss rule (number 700)"), 1);
}

#[test]
fn a_stack_trial_can_capture_only_a_part_of_the_run() {
    let some = trial().capture_around(Duration::from_millis(10), Duration::from_millis(1));
    let (_, captures) = failure("around", |path| some.check(path, flood(1), |_| panic!("not met")));
    let packets = count(&captures.unwrap()[0], &[1; 1480]);
    // Both ends of two flows send forty packets each millisecond. The capture file contains only the senders' packets.
    assert!((100..600).contains(&packets), "{packets}");
}

#[test]
fn a_stack_trial_drops_exactly_the_packets_selected_for_loss() {
    let run = |trial: Trial| trial.run(flood(1));
    let (without, with) = (run(trial().buffer(100_000)), run(trial().buffer(100_000).lose(0, [40, 3, 40, 7])));
    assert_eq!(with.losses.iter().map(|link| link.counters.cut_frames).sum::<u64>(), 3);
    assert_eq!(with.cells.lost, without.cells.lost + 3 * 32);
}

#[test]
fn a_stack_trial_fails_if_a_packet_selected_for_loss_is_never_sent() {
    let one = trial().duration(Duration::from_millis(4));
    let (message, captures) = failure("unmet", |path| one.lose(1, [3, 500]).check(path, flood(1), |_| ()));
    let words =
        "a loss on source2->switch1 did not happen: packet 500 of flow2 was never sent over this link; flow2 sent ";
    assert!(message.starts_with(words) && message.contains(" packets, numbers 0 to "), "{message}");
    assert_eq!(captures, None);
}

#[test]
fn counts_that_cannot_be_derived_from_packets_are_reported_as_unknown_instead_of_zero() {
    let own = trial().run(flood(1)).flows.raw.remove(0);
    assert!(own.delivered_bytes > 0 && own.unknown_packets > 0);
    let counts = [own.segments_sent, own.retransmitted_segments, own.repeated_segments];
    assert_eq!((counts, own.throughput_mbps, own.cwnd_segments), ([None; 3], None, None));
}

#[test]
fn the_trial_of_a_stack_that_panics_leaves_a_capture_that_ends_at_the_panic() {
    let (message, captures) = failure("panic", |path| trial().check(path, flood(9), |_| ()));
    assert_eq!(message, "a stack that panics");
    assert!(count(&captures.unwrap()[0], &[9; 1480]) > 0);
}

#[test]
fn a_nondeterministic_stack_fails_its_trial_even_if_the_requirement_is_met() {
    let runs = AtomicU8::new(0);
    // The packets differ from run to run.
    let make = |ends| flood(1 + runs.fetch_add(1, Ordering::Relaxed) / 2)(ends);
    assert_eq!(failure("changing", |path| trial().check(path, make, |_| ())), (DIFFERS.to_owned(), None));
}

#[test]
fn a_stack_that_panics_in_only_one_of_two_identical_runs_is_reported_as_nondeterministic() {
    for first_panics in [false, true] {
        let runs = AtomicU8::new(0);
        let make = |ends| {
            let is_first = runs.fetch_add(1, Ordering::Relaxed) < 2;
            flood(if is_first == first_panics { 9 } else { 1 })(ends)
        };
        let (message, _) = failure("panics-once", |path| trial().check(path, make, |_| ()));
        assert_eq!(message, DIFFERS, "{first_panics}");
    }
}

#[test]
fn a_stack_trial_without_a_requirement_is_refused_with_a_message() {
    let cases = [
        (Trial::new(0), "a trial has no senders; it needs at least one"),
        (trial().link_rate(0), "the links of a trial have a rate of 0 bit/s; choose a positive rate"),
        (trial().duration(Duration::ZERO), "a trial lasts 0 s; choose a positive duration"),
        (trial().mss(0), "the packets of a trial carry 0 bytes; choose a positive mss"),
        (
            trial().mss(70_000),
            "an mss of 70000 bytes does not fit into an AAL5 frame, which has room for 65487 \
                               bytes",
        ),
        (
            trial().buffer(3),
            "a buffer of 3 cells is smaller than a packet with 1460 bytes of payload; the buffer needs at least 32 \
             cells",
        ),
        (trial().lose(2, [1]), "flow 2 cannot lose packets; the trial has flows 0 to 1"),
    ];
    for (trial, words) in cases {
        let run = |_: &Path| drop(trial.run(flood(1)));
        assert_eq!(failure("refused", run), (words.to_owned(), None));
        assert_eq!(failure("refused", |path| trial.check(path, flood(1), |_| ())), (words.to_owned(), None));
    }
}

#[test]
fn a_stack_trial_runs_the_network_described_by_its_scenario() {
    let network = trial().link_rate(8_000_000).round_trip(Duration::from_millis(30)).buffer(200).network();
    let round_trip: u64 = network.links.iter().take(6).map(|link| link.delay.picoseconds).sum();
    assert_eq!(round_trip, 30_000_000_000);
    let bottleneck = &network.links[network.bottleneck];
    assert_eq!((bottleneck.name.as_str(), bottleneck.buffer), ("switch1->switch2", Some(200)));
    assert!(network.flows.iter().all(|flow| network.vcs[flow.data_vc].path[1] == network.bottleneck));
    assert_eq!(network.flows[FlowIndex::new(0)].frame(&network.aal5), (1460, 32));
}
