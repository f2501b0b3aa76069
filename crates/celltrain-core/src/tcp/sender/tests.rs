use super::*;
use crate::tcp::scoreboard::SackBlocks;
use crate::tcp::{Ack, StartOptions};

const NOW: Time = Time(0);

fn sender() -> Sender {
    Sender::new(&TcpConfig::Vanilla(TcpOptions { rules: Rules::Paper, ..TcpOptions::default() }), Clock::exact(1))
}

#[test]
fn after_the_receiver_accepts_a_window_probe_the_sender_continues_with_the_next_byte() {
    let mut sender = sender();
    assert_eq!(sender.next_segment(NOW), Some(Segment { seq: 0, len: 512 }));
    sender.on_ack(Ack { ack: 512, window: 0 }, &SackBlocks::default(), NOW);
    assert_eq!(sender.next_segment(NOW), None);
    assert!(!sender.on_tick(NOW) && !sender.on_tick(NOW), "the first probe waits for a retransmission timeout");
    assert!(sender.on_tick(NOW));
    assert_eq!(sender.next_segment(NOW), Some(Segment { seq: 512, len: 1 }));
    assert_eq!(sender.next_segment(NOW), None);
    // RFC 1122 (4.2.2.17): the window has opened, but the update was lost.
    sender.on_ack(Ack { ack: 513, window: 65535 }, &SackBlocks::default(), NOW);
    assert_eq!(sender.next_segment(NOW), Some(Segment { seq: 513, len: 512 }));
    let counters = sender.counters();
    assert_eq!((counters.segments_sent, counters.retransmitted_segments, counters.timeouts), (3, 0, 0));
}

#[test]
fn an_option_reduces_cwnd_to_one_segment_after_an_idle_period_longer_than_the_rto() {
    for (after_idle, ticks, cwnd) in
        [(AfterIdle::SlowStart, 2, 5.0), (AfterIdle::SlowStart, 3, 1.0), (AfterIdle::KeepWindow, 3, 5.0)]
    {
        let options = TcpOptions {
            rules: Rules::Paper,
            start: StartOptions { after_idle: Some(after_idle), ..StartOptions::default() },
            ..TcpOptions::default()
        };
        let clock = Clock::exact(1);
        let mut sender = Sender::new(&TcpConfig::Vanilla(options), clock).of_bytes(4 * 512);
        for ack in 1..=4 {
            while sender.next_segment(NOW).is_some() {}
            sender.on_ack(Ack { ack: 512 * ack, window: 65535 }, &SackBlocks::default(), NOW);
        }
        assert!(sender.has_ended());
        assert_eq!((sender.cwnd(), sender.rto()), (5.0, 3));
        (0..ticks).for_each(|_| assert!(!sender.on_tick(NOW)));
        sender.write(512);
        assert_eq!((sender.cwnd(), sender.ssthresh()), (cwnd, 127.0));
    }
}

/// Regression: ticks before the first data counted as a pause, as did ticks between two segments of a paced sender.
#[test]
fn a_pause_between_bursts_begins_when_all_data_is_acknowledged() {
    let options = TcpOptions {
        rules: Rules::Paper,
        start: StartOptions { after_idle: Some(AfterIdle::SlowStart), ..StartOptions::default() },
        ..TcpOptions::default()
    };
    let mut sender = Sender::new(&TcpConfig::Vanilla(options), Clock::exact(1)).of_bytes(512);
    (0..100).for_each(|_| assert!(!sender.on_tick(NOW)));
    assert!(sender.next_segment(NOW).is_some());
    sender.on_ack(Ack { ack: 512, window: 65535 }, &SackBlocks::default(), NOW);
    sender.write(512);
    assert_eq!(sender.cwnd(), 2.0);
}

#[test]
fn a_paced_sender_sets_its_pacing_timer_only_if_a_segment_is_waiting_to_be_sent() {
    let mut sender = sender().paced(Span(10));
    assert!(sender.next_segment(NOW).is_some());
    assert_eq!((sender.next_segment(NOW), sender.next_departure(NOW)), (None, None), "the window is full");
    sender.on_ack(Ack { ack: 512, window: 65535 }, &SackBlocks::default(), Time(4));
    assert_eq!((sender.next_segment(Time(4)), sender.next_departure(Time(4))), (None, Some(Time(10))));
    assert!(sender.next_segment(Time(10)).is_some());
    assert_eq!((sender.next_segment(Time(10)), sender.next_departure(Time(10))), (None, Some(Time(20))));
}
