use super::*;

fn sent(rates: &mut DeliveryRate, segments: std::ops::Range<u64>, times: &[u64]) {
    for (segment, &time) in segments.zip(times) {
        rates.on_sent((segment * 10, segment * 10 + 10), Time(time), 100.0);
    }
}

fn acknowledged(rates: &mut DeliveryRate, una: u64, now: u64) -> Option<Sample> {
    rates.begin();
    rates.on_acknowledged(una * 10, Time(now));
    rates.sample(Time(now))
}

/// The draft's example of steady delivery: segments leave every 10 units, and acknowledgements return after 100.
#[test]
fn a_delivery_rate_sample_starts_at_the_last_acknowledgement_before_the_segment() {
    let mut rates = DeliveryRate::new(true);
    sent(&mut rates, 0..10, &[0, 10, 20, 30, 40, 50, 60, 70, 80, 90]);
    let first = acknowledged(&mut rates, 1, 100).unwrap();
    // The first segment: 1 segment in the 100 units since it was sent.
    assert_eq!((first.delivered, first.interval, first.rtt), (1, Some(Span(100)), Some(Span(100))));
    assert_eq!((first.prior_delivered, first.newly_acked, first.in_flight), (0, 1, 1));
    // The third: three segments. Acknowledgements took 120 units since it was clear that data could be delivered,
    // sending took 20.
    let third = acknowledged(&mut rates, 3, 120).unwrap();
    assert_eq!((third.delivered, third.interval, third.newly_acked), (3, Some(Span(120)), 2));
    // Segments 10 and 11 are sent after these acknowledgements, so their samples begin at 120.
    sent(&mut rates, 10..12, &[120, 121]);
    assert_eq!(rates.in_flight(), 9);
    let tenth = acknowledged(&mut rates, 11, 220).unwrap();
    assert_eq!((tenth.delivered, tenth.interval, tenth.in_flight), (8, Some(Span(100)), 8));
    assert_eq!((tenth.rtt, tenth.prior_delivered), (Some(Span(100)), 3));
}

/// Section 4.1.1.2.3: acknowledgements that arrive together would give a rate that was never sent.
#[test]
fn acknowledgements_that_arrive_together_give_no_delivery_rate_above_the_sending_rate() {
    let mut rates = DeliveryRate::new(true);
    sent(&mut rates, 0..2, &[0, 50]);
    acknowledged(&mut rates, 1, 60).unwrap();
    sent(&mut rates, 2..6, &[60, 110, 160, 210]);
    // All acknowledgements since 60 arrive at 215 and 216. Segment 5 was sent 210 after the first.
    acknowledged(&mut rates, 5, 215).unwrap();
    sent(&mut rates, 6..7, &[216]);
    let last = acknowledged(&mut rates, 6, 270).unwrap();
    assert_eq!((last.delivered, last.interval), (5, Some(Span(210))), "sending took 210, acknowledging 210");
    let next = acknowledged(&mut rates, 7, 276).unwrap();
    assert_eq!((next.delivered, next.interval), (2, Some(Span(61))), "since the acknowledgement at 215");
}

#[test]
fn delivery_rate_samples_shorter_than_the_shortest_round_trip_have_no_rate() {
    let mut rates = DeliveryRate::new(true);
    sent(&mut rates, 0..3, &[0, 0, 0]);
    acknowledged(&mut rates, 1, 100).unwrap();
    assert_eq!([(); 3].map(|()| rates.lose_first().map(|lost| lost.since_sent)), [Some(1), Some(2), None]);
    sent(&mut rates, 1..2, &[101]);
    // The acknowledgement of the first transmission arrives just after the second one was sent.
    let sample = acknowledged(&mut rates, 2, 105).unwrap();
    assert_eq!((sample.interval, sample.rtt, sample.delivered), (None, None, 1));
}

#[test]
fn a_segment_that_is_sacked_or_lost_is_subtracted_from_the_data_in_flight_only_once() {
    let mut rates = DeliveryRate::new(true);
    sent(&mut rates, 0..6, &[0, 1, 2, 3, 4, 5]);
    assert_eq!(rates.in_flight(), 6);
    rates.begin();
    rates.on_reported((20, 60), Time(10));
    rates.on_reported((20, 60), Time(10));
    let sample = rates.sample(Time(10)).unwrap();
    assert_eq!((sample.newly_acked, sample.lost, rates.in_flight()), (4, 0, 2));
    let lost: Vec<_> = std::iter::from_fn(|| rates.lose_below(20)).map(|lost| (lost.range, lost.since_sent)).collect();
    assert_eq!(lost, [((0, 10), 1), ((10, 20), 2)]);
    assert_eq!((rates.in_flight(), rates.lose_below(20), rates.lose(0)), (0, None, None));
    // The first is sent again, and arrives. It is not lost again by the same reports.
    sent(&mut rates, 0..1, &[11]);
    assert_eq!((rates.in_flight(), rates.lose_below(60)), (1, None));
    let sample = acknowledged(&mut rates, 1, 21).unwrap();
    assert_eq!((sample.newly_acked, sample.lost, sample.delivered, sample.rtt), (1, 0, 1, None));
    // After a timeout, all data in flight is lost.
    sent(&mut rates, 1..2, &[22]);
    assert_eq!(rates.lose_first().map(|lost| lost.range), Some((10, 20)));
    assert_eq!((rates.lose_first(), rates.in_flight()), (None, 0));
}

#[test]
fn delivery_rate_samples_are_marked_as_application_limited_until_the_gap_has_left_the_network() {
    let mut rates = DeliveryRate::new(true);
    sent(&mut rates, 0..2, &[0, 1]);
    rates.check_application(true, 10.0);
    assert!(!rates.is_app_limited(), "there is data to send");
    rates.check_application(false, 2.0);
    assert!(!rates.is_app_limited(), "cwnd is full");
    rates.check_application(false, 10.0);
    assert!(rates.is_app_limited());
    sent(&mut rates, 2..4, &[5, 6]);
    assert!(!acknowledged(&mut rates, 2, 10).unwrap().app_limited, "they were sent before");
    assert!(rates.is_app_limited());
    sent(&mut rates, 4..5, &[11]);
    assert!(acknowledged(&mut rates, 3, 15).unwrap().app_limited);
    assert!(!rates.is_app_limited(), "the third delivery is beyond the two in flight");
    sent(&mut rates, 5..6, &[16]);
    assert!(acknowledged(&mut rates, 5, 21).unwrap().app_limited);
    assert!(!acknowledged(&mut rates, 6, 26).unwrap().app_limited);
}

#[test]
fn the_sender_is_cwnd_limited_if_cwnd_was_full_in_the_current_or_previous_round() {
    let mut rates = DeliveryRate::new(true);
    rates.on_sent((0, 10), Time(0), 3.0);
    assert!(!rates.is_cwnd_limited());
    rates.on_sent((10, 20), Time(0), 2.5);
    assert!(rates.is_cwnd_limited());
    rates.begin_round();
    assert!(rates.is_cwnd_limited());
    rates.begin_round();
    assert!(!rates.is_cwnd_limited());
}
