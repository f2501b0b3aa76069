use proptest::prelude::*;

use super::*;

const LINK: BitRate = BitRate::from_bits_per_second(155_520_000);
const MILLISECOND: Duration = Duration::from_milliseconds(1);

/// Returns a clock for scenarios with ABR, a thousand times finer than necessary.
fn fine_clock(link_rate: BitRate) -> Clock {
    Clock::covering(crate::units::CELL_BITS, [link_rate], []).finer(1000)
}

fn source(parameters: &Parameters) -> Source {
    Source::new(parameters, LINK, MILLISECOND, fine_clock(LINK))
}

/// Returns the source without the state that is needed only to take cells back.
fn settled(source: &Source) -> Source {
    Source { train: Train::default(), ..source.clone() }
}

#[test]
fn abr_cells_are_whole_cell_times_apart_if_their_rate_divides_the_link_rate() {
    for link_rate in [155_520_000, 149_760_000, 599_040_000, 1_544_000, 34_368_000, 424_000_000] {
        let link_rate = BitRate::from_bits_per_second(link_rate);
        let clock = fine_clock(link_rate);
        let source = Source::new(&Parameters::default(), link_rate, MILLISECOND, clock);
        let cell_time = clock.cell_time(link_rate);
        for fraction in 1..=1000 {
            let interval = source.interval_at(source.acr() / fraction as f64);
            assert_eq!(interval, cell_time * fraction, "{link_rate} / {fraction}");
        }
    }
}

#[test]
fn the_time_between_cells_of_an_abr_source_is_rounded_up_by_less_than_a_time_unit() {
    let source = source(&Parameters::default());
    let units_per_second = source.units_per_second;
    let mut rate = source.acr();
    while rate > 0.01 {
        let Span(interval) = source.interval_at(rate);
        let exact = units_per_second / rate;
        let over = interval as f64 - exact;
        assert!(over >= -exact * FLOAT_ERROR && over < 1.0, "at {rate} it is {over} units over");
        rate *= 0.999;
    }
}

#[test]
fn an_abr_source_never_sends_a_cell_due_after_the_maximum_simulated_time() {
    // 2^62 + 2^14 units, reduced by the error bound 2^-48, are exactly 2^62 units, the limit of times. The next smaller
    // float (by 2^10 units) stays below the limit.
    let interval =
        |units_per_second: f64| Source { units_per_second, ..source(&Parameters::default()) }.interval_at(1.0);
    let most = ((1u64 << 62) + (1 << 14)) as f64;
    assert_eq!(interval(most), Span(u64::MAX));
    assert_eq!(interval(most - 1024.0), Span((1 << 62) - 1024));
}

#[test]
fn an_abr_source_with_a_rate_of_zero_never_sends_a_cell() {
    let mut source = source(&Parameters::default());
    let first = source.next_departure();
    let rm = source.sent(first, Kind::ForwardRm).unwrap();
    source.on_backward_rm(&RmCell { backward: true, er: 0.0, ..rm }, first);
    let kept = source.next_departure();
    assert_ne!(kept, Time::NEVER, "a waiting cell is sent");
    assert_eq!(source.data_cells_until_rm(kept), 1);
    source.sent_data(kept, 1);
    assert_eq!(source.next_departure(), Time::NEVER);
    source.on_backward_rm(&RmCell { backward: true, er: 1000.0, ..rm }, kept);
    assert_eq!(source.next_departure(), after(kept, source.interval()));
}

#[test]
#[should_panic(expected = "in-rate cells start no faster than ACR")]
fn an_abr_source_does_not_send_a_cell_before_the_cell_is_due() {
    let mut source = source(&Parameters::default());
    source.sent(Time(0), Kind::ForwardRm);
    source.sent(Time(1), Kind::Data);
}

#[test]
#[should_panic(expected = "cells whose transmission has not started are taken back before ACR changes")]
fn a_rate_change_does_not_affect_cells_whose_transmission_was_already_scheduled() {
    let mut source = source(&Parameters::default());
    let rm = source.sent(Time(0), Kind::ForwardRm).unwrap();
    source.sent_data(source.next_departure(), 10);
    source.on_backward_rm(&RmCell { backward: true, er: rm.er / 2.0, ..rm }, Time(1));
}

#[test]
fn out_of_rate_cells_do_not_affect_when_in_rate_cells_are_sent() {
    let icr = Some(BitRate::from_bits_per_second(8 * 424));
    let parameters = Parameters { icr, out_of_rate: true, ..Parameters::default() };
    let mut source = source(&parameters);
    let first = source.sent(Time(0), Kind::ForwardRm).unwrap();
    assert!(!first.out_of_rate, "rule 4: CLP = 0");
    source.turn_around(RmCell { backward: true, ..first });
    let at = source.next_out_of_rate(false).unwrap();
    assert!(source.goes_out_of_rate(at, true) && !source.goes_out_of_rate(source.next_departure(), true));
    let before = source.clone();
    assert_eq!(source.sent_out_of_rate(at), RmCell { out_of_rate: true, ..first }, "rule 11: CLP = 1");
    let counters = Counters { out_of_rate_sent: 1, ..before.counters };
    assert_eq!(source, Source { out_of_rate_at: Some(at), counters, ..before });
    assert_eq!(source.next_out_of_rate(false), Some(after(at, source.interval_at(10.0))));
}

#[test]
#[should_panic(expected = "an out-of-rate RM cell answers another one, or is sent no faster than TCR")]
fn an_abr_source_does_not_send_an_out_of_rate_cell_before_the_cell_is_due() {
    let icr = Some(BitRate::from_bits_per_second(8 * 424));
    let mut source = source(&Parameters { icr, out_of_rate: true, ..Parameters::default() });
    source.sent(Time(0), Kind::ForwardRm);
    source.sent_out_of_rate(Time(1));
}

/// An event between two periods of sending.
#[derive(Clone, Debug)]
enum Event {
    Nothing,
    Back { bn: bool, ci: bool, ni: bool, er: f64 },
    TurnAround,
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Nothing),
        (any::<bool>(), any::<bool>(), any::<bool>(), 0.0..400_000.0).prop_map(|(bn, ci, ni, er)| Event::Back {
            bn,
            ci,
            ni,
            er
        }),
        Just(Event::TurnAround),
    ]
}

prop_compose! {
    fn any_parameters()(
        [nrm, rif, rdf, cdf] in [1_u32..=8, 0..=15, 0..=15, 0..=6],
        mrm in 1_u32..=40,
        trm in 1_u64..=100_000,
        icr in 1_000_u64..=155_520_000,
        mcr in 0_u64..=1_000,
        tbe in prop_oneof![1_u32..=200, Just(16_777_215)],
        adtf in 10_u64..=30,
    ) -> Parameters {
        let power = |exponent: u32| 1.0 / f64::from(1_u32 << exponent);
        Parameters {
            icr: Some(BitRate::from_bits_per_second(icr)),
            mcr: BitRate::from_bits_per_second(mcr),
            nrm: 1 << nrm,
            mrm,
            trm: Duration::from_microseconds(trm),
            rif: power(rif),
            rdf: power(rdf),
            cdf: power(cdf),
            tbe,
            adtf: Duration::from_milliseconds(adtf),
            ..Parameters::default()
        }
    }
}

/// Generates random periods of sending: length, whether data is waiting, largest number of cells in a train, and the
/// event that follows.
fn any_stretches() -> impl Strategy<Value = Vec<(u64, bool, u32, Event)>> {
    let far = prop_oneof![0_u64..200, 0_u64..20_000, 0_u64..1_000_000];
    proptest::collection::vec((far, prop::bool::weighted(0.8), 1_u32..300, any_event()), 1..60)
}

/// Sends trains of at most `longest` cells that start from `now` on and before `until`, and takes back the cells that
/// have not started by then.
fn send_ahead(
    source: &mut Source,
    [now, until]: [Time; 2],
    data_waits: bool,
    longest: u32,
) -> Result<(), TestCaseError> {
    loop {
        let start = source.next_departure().max(now);
        if start >= until {
            return Ok(());
        }
        let Some(kind) = source.next_kind(start, data_waits) else { return Ok(()) };
        if kind != Kind::Data {
            source.sent(start, kind);
            continue;
        }
        let interval = source.interval();
        let cells = source.data_cells_until_rm(start).min(longest);
        prop_assert!(cells > 0, "rule 3 makes the next cell a data cell");
        let before = source.clone();
        source.sent_data(start, cells);
        let late = (0..cells).filter(|&i| start + interval * u64::from(i) >= until).count();
        let late = u32::try_from(late).unwrap();
        // Take the cells back in two steps, as two separate events would.
        source.unsend_data(late / 2);
        source.unsend_data(late - late / 2);
        if late == 0 {
            // Taking back all cells and sending them again changes nothing.
            let sent = source.clone();
            source.unsend_data(cells);
            prop_assert_eq!(settled(source), settled(&before));
            source.sent_data(start, cells);
            prop_assert_eq!(settled(source), settled(&sent));
        }
    }
}

proptest! {
    #![proptest_config(crate::rng::proptest_seeded(0x0061_6272))]

    /// Compares two sources: the oracle sends each cell when it starts, and the other source sends trains ahead of time
    /// and takes back the cells that have not started.
    #[test]
    fn an_abr_source_sends_the_same_cells_in_batches_as_one_at_a_time(
        parameters in any_parameters(),
        stretches in any_stretches(),
    ) {
        prop_assert_eq!(parameters.check(LINK), []);
        // With a clock as coarse as a microsecond, events often coincide.
        let clock = Clock { exact: false, ..Clock::exact(1_000_000) };
        let mut oracle = Source::new(&parameters, LINK, MILLISECOND, clock);
        let mut ahead = oracle.clone();
        let pcr = ahead.rates.pcr;
        let mut now = Time::default();
        let mut since_forward = 0;
        for (span, data_waits, longest, event) in stretches {
            let until = now + Span(span);
            loop {
                let start = oracle.next_departure().max(now);
                if start >= until {
                    break;
                }
                let Some(kind) = oracle.next_kind(start, data_waits) else { break };
                oracle.sent(start, kind);
                since_forward = if kind == Kind::ForwardRm { 0 } else { since_forward + 1 };
                prop_assert!(since_forward < parameters.nrm, "one forward RM cell is sent for each Nrm cells");
            }
            send_ahead(&mut ahead, [now, until], data_waits, longest)?;
            now = until;
            prop_assert_eq!(settled(&ahead), settled(&oracle));
            match event {
                Event::Nothing => {}
                Event::Back { bn, ci, ni, er } => {
                    let rm = RmCell { backward: true, bn, ci, ni, ..RmCell::forward(er, 0.0, 0.0) };
                    let acr = oracle.acr();
                    for source in [&mut oracle, &mut ahead] {
                        source.on_backward_rm(&rm, now);
                    }
                    prop_assert!(oracle.acr() <= acr || !(ci || ni), "ACR does not rise after an RM cell with CI or NI");
                }
                Event::TurnAround => {
                    let rm = RmCell { backward: true, ..RmCell::forward(pcr, 0.0, 0.0) };
                    for source in [&mut oracle, &mut ahead] {
                        source.turn_around(rm);
                    }
                }
            }
            prop_assert_eq!(settled(&ahead), settled(&oracle));
            prop_assert!((oracle.rates.mcr..=pcr).contains(&oracle.acr()), "rule 1: {}", oracle.acr());
        }
    }

    /// Tests that `data_cells_until_rm` returns exactly the number of data cells that follow.
    #[test]
    fn the_number_of_cells_before_the_next_rm_cell_follows_abr_source_rule_3(
        parameters in any_parameters(),
        sent_before in 0_u32..40,
        idle in 0_u64..200_000,
        turn_around in any::<bool>(),
    ) {
        let clock = Clock { exact: false, ..Clock::exact(1_000_000) };
        let mut source = Source::new(&parameters, LINK, MILLISECOND, clock);
        let rm = source.sent(Time(0), Kind::ForwardRm).unwrap();
        for _ in 0..sent_before {
            let start = source.next_departure();
            let kind = source.next_kind(start, true).unwrap();
            source.sent(start, kind);
        }
        if turn_around {
            source.turn_around(RmCell { backward: true, ..rm });
        }
        let first = source.next_departure() + Span(idle);
        let said = source.data_cells_until_rm(first);
        let (mut start, mut found) = (first, 0);
        while source.next_kind(start, true) == Some(Kind::Data) {
            source.sent(start, Kind::Data);
            start = source.next_departure();
            found += 1;
        }
        prop_assert_eq!(said, found);
    }
}
