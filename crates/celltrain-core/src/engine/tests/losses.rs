//! Tests of losses on links in complete runs of both engines.

use super::{lan, run, watch};
use crate::cell::{Cell, FrameNumber};
use crate::engine::Engine;
use crate::events::{CellStep, Event, FrameStep, SegmentStep};
use crate::index::{Label, LinkIndex, VcIndex};
use crate::link_loss::{Fate, GilbertElliott, LinkLosses, LossCounters, LossPattern, LossRule, LossUnit};
use crate::network::Network;
use crate::network::tests::{FIRST, N_SOURCE_BOTTLENECK, N_SOURCE_WAY_BACK};
use crate::rng::Stream;
use crate::tcp::{TcpConfig, TcpOptions};
use crate::traffic::{TrafficConfig, constant_rate, file};
use crate::units::{BitRate, Bytes, Time};

const DATA: VcIndex = VcIndex::new(0);
const ACKS: VcIndex = VcIndex::new(1);
/// The link from the single source of [`lan`] to its switch.
const FROM_SOURCE: LinkIndex = LinkIndex::new(2);

/// Adds a rule to a link.
fn lose(network: &mut Network, link: LinkIndex, vc: VcIndex, unit: LossUnit, pattern: LossPattern) {
    network.links[link].losses.push(LossRule { vc, unit, pattern });
}

/// Returns a LAN with one source, which sends packets of three cells at 20 Mb/s.
fn packets(duration: &str) -> Network {
    let mut network = lan(1, None, duration);
    // The payload is 144 bytes minus 28 bytes of headers, 8 of LLC/SNAP and 8 of trailer.
    let (rate, packet) = (BitRate::from_bits_per_second(20_000_000), Bytes { bytes: 100 });
    network.flows[FIRST].traffic = TrafficConfig::ConstantRate(constant_rate::Config { rate, packet });
    network
}

/// Counts of packets that arrived, that failed, and that were lost on links.
#[derive(Default)]
struct Seen {
    arrived: Vec<u64>,
    failed: Vec<u32>,
    lost: Vec<(Time, u32, u64)>,
    lost_cells: u64,
}

fn seen(network: &Network) -> Seen {
    run(network);
    let mut seen = Seen::default();
    watch(network, |now, event| match event {
        Event::Segment(event) => {
            if let SegmentStep::Arrived { segment, .. } = event.step {
                seen.arrived.push(segment.seq / u64::from(segment.len));
            }
        }
        Event::Frame(event) => match event.step {
            FrameStep::LostOnLink { loss, .. } => seen.lost.push((now, event.frame.number(), loss.number)),
            FrameStep::Failed(_) => seen.failed.push(event.frame.number()),
            _ => {}
        },
        Event::Cell(event) => seen.lost_cells += u64::from(matches!(event.step, CellStep::LostOnLink(_))),
        _ => {}
    });
    seen
}

#[test]
fn a_loss_rule_loses_exactly_the_listed_packets() {
    for link in [FROM_SOURCE, N_SOURCE_BOTTLENECK, LinkIndex::new(4)] {
        let mut network = packets("1ms");
        lose(&mut network, link, DATA, LossUnit::Packets, LossPattern::Numbers(vec![0, 3, 4]));
        let Seen { arrived, failed, lost, lost_cells } = seen(&network);
        assert_eq!(arrived[..4], [1, 2, 5, 6], "{link:?}");
        assert!(arrived.windows(2).skip(2).all(|pair| pair[1] == pair[0] + 1), "{arrived:?}");
        assert_eq!(
            lost.iter().map(|&(_, frame, number)| (frame, number)).collect::<Vec<_>>(),
            [(0, 0), (3, 3), (4, 4)]
        );
        assert_eq!((lost_cells, failed.len()), (9, 0), "no cell of the lost packets arrives");
        // The first cell is lost at the instant at which it would arrive: in units of 1/97.2 MHz, a cell takes 265 and a
        // delay 486.
        let hops = [FROM_SOURCE, N_SOURCE_BOTTLENECK, LinkIndex::new(4)].iter().position(|&hop| hop == link).unwrap();
        assert_eq!(lost[0].0, Time((hops as u64 + 1) * (265 + 486)));
    }
}

#[test]
fn a_loss_rule_that_lists_packets_that_were_never_sent_is_reported() {
    let byte = |offset, times| LossPattern::Byte { offset, times };
    let every = |first| LossPattern::Every { period: 1, first };
    let (packets, cells) = (LossUnit::Packets, LossUnit::Cells);
    let cases = [
        (packets, LossPattern::Numbers(vec![99]), ""),
        (
            packets,
            LossPattern::Numbers(vec![100]),
            "packet 100 of vc0 was never sent over this link; vc0 sent 100 packets, numbers 0 to 99",
        ),
        (
            packets,
            LossPattern::Numbers(vec![101, 200]),
            "packets 101 and 200 of vc0 were never sent over this link; vc0 sent 100 packets, numbers 0 to 99",
        ),
        (
            packets,
            LossPattern::Numbers((100..150).collect()),
            "packets 100, 101, 102 and 47 more of vc0 were never sent over this link; vc0 sent 100 packets, numbers 0 to 99",
        ),
        (
            cells,
            LossPattern::Numbers(vec![5000]),
            "cell 5000 of vc0 was never sent over this link; vc0 sent 1200 cells, numbers 0 to 1199",
        ),
        (packets, every(99), ""),
        (packets, every(100), "packet 100 of vc0 was never sent over this link; vc0 sent 100 packets, numbers 0 to 99"),
        (packets, byte(51_199, 1), ""),
        (packets, byte(51_200, 1), "byte 51200 of vc0 was never sent over this link; vc0 sent 51200 bytes"),
        (packets, byte(51_199, 100), "byte 51199 of vc0 was sent over this link once, not 100 times"),
        (packets, LossPattern::Probability(1e-9), ""),
    ];
    for (unit, pattern, expected) in cases {
        let mut network = lan(1, None, "100ms");
        network.flows[FIRST].traffic = TrafficConfig::File(file::Config { bytes: Bytes { bytes: 51_200 } });
        let what = format!("{pattern:?}");
        lose(&mut network, FROM_SOURCE, DATA, unit, pattern);
        let unmet: Vec<String> = run(&network).unmet_rules(&network).iter().map(ToString::to_string).collect();
        let expected = if expected.is_empty() {
            vec![]
        } else {
            vec![format!("a loss on source1->sw1 did not happen: {expected}")]
        };
        assert_eq!(unmet, expected, "{what}");
    }
}

#[test]
fn a_lost_cell_damages_its_frame_and_a_lost_last_cell_also_the_next_frame() {
    for (cells, arrived) in [(vec![4], [0, 2, 3]), (vec![5], [0, 3, 4]), (vec![3, 4, 5], [0, 2, 3])] {
        let mut network = packets("1ms");
        let lost = cells.len() as u64;
        lose(&mut network, N_SOURCE_BOTTLENECK, DATA, LossUnit::Cells, LossPattern::Numbers(cells));
        assert_eq!(seen(&network).arrived[..3], arrived);
        let result = run(&network);
        let LossCounters { came, lost: counted, cut_frames } = result.losses.raw[0].counters;
        assert_eq!((counted, cut_frames, result.cells.lost), (lost, 1, lost));
        assert!(came <= result.ports[N_SOURCE_BOTTLENECK].counters.forwarded);
    }
}

#[test]
fn each_loss_rule_counts_all_packets_including_those_lost_by_other_rules() {
    let mut network = packets("1ms");
    let every = |period, first| LossPattern::Every { period, first };
    lose(&mut network, FROM_SOURCE, DATA, LossUnit::Packets, every(4, 1));
    lose(&mut network, FROM_SOURCE, DATA, LossUnit::Packets, LossPattern::Numbers(vec![1, 2]));
    // The second link numbers only the packets that reach it: packets 0, 3, 4, 6, 7 and so on.
    lose(&mut network, N_SOURCE_BOTTLENECK, DATA, LossUnit::Packets, LossPattern::Numbers(vec![2]));
    assert_eq!(seen(&network).arrived[..5], [0, 3, 6, 7, 8]);
}

#[test]
fn lost_data_is_retransmitted_and_a_later_acknowledgement_replaces_a_lost_acknowledgement() {
    let tcp = TcpOptions { receive_window: Bytes { bytes: 8 * 512 }, ..TcpOptions::default() };
    let mut network = lan(1, None, "20ms");
    network.flows[FIRST].tcp = TcpConfig::Sack(tcp);
    let without = run(&network).flows[FIRST].clone();
    lose(&mut network, N_SOURCE_WAY_BACK, ACKS, LossUnit::Packets, LossPattern::Numbers(vec![20, 40]));
    let result = run(&network);
    assert_eq!(result.losses.iter().map(|of| of.counters.lost).sum::<u64>(), 4, "an acknowledgement has two cells");
    assert_eq!(result.flows[FIRST].retransmitted_segments, 0);
    network.links[N_SOURCE_WAY_BACK].losses.clear();
    lose(&mut network, FROM_SOURCE, DATA, LossUnit::Packets, LossPattern::Numbers(vec![14, 26, 28]));
    let result = run(&network);
    let flow = &result.flows[FIRST];
    assert_eq!((flow.retransmitted_segments, flow.timeouts, flow.fast_retransmits), (3, 0, 2));
    assert!(flow.delivered_bytes < without.delivered_bytes);
    assert_eq!((result.cells.lost, result.ports[FROM_SOURCE].counters.lost()), (3 * 12, 0));
}

#[test]
fn a_random_loss_rule_drops_the_configured_fraction_of_packets_and_uses_a_separate_random_stream() {
    let network = |seed, shares: &[(LinkIndex, f64)]| {
        let mut network = packets("400ms");
        network.seed = seed;
        for &(link, share) in shares {
            lose(&mut network, link, DATA, LossUnit::Cells, LossPattern::Probability(share));
        }
        network
    };
    let of = |seed, shares: &[(LinkIndex, f64)]| Engine::Fast.run_to_end(&network(seed, shares));
    let first = of(1, &[(FROM_SOURCE, 0.1)]);
    let LossCounters { came, lost, .. } = first.losses.raw[0].counters;
    // 8 Mb are 18,868 cells. The expected number of lost cells is 1887, with a standard deviation of 41.
    assert!(came.abs_diff(18_868) < 3 && lost.abs_diff(1887) < 5 * 41, "{lost} of {came}");
    assert_ne!(of(2, &[(FROM_SOURCE, 0.1)]).losses, first.losses, "a different seed gives different losses");
    let both = of(1, &[(FROM_SOURCE, 0.1), (N_SOURCE_BOTTLENECK, 0.5)]);
    assert_eq!(both.losses.raw.iter().find(|of| of.name.starts_with("source")), Some(&first.losses.raw[0]));
    let [without, nothing_lost] = [of(1, &[]), of(1, &[(FROM_SOURCE, 0.0)])];
    assert_eq!((&nothing_lost.flows, &nothing_lost.ports), (&without.flows, &without.ports));
    for (share, expected) in [(0.0, 0), (1.0, came)] {
        let result = of(1, &[(FROM_SOURCE, share)]);
        assert_eq!(result.losses.raw[0].counters.lost, expected);
    }
}

#[test]
fn losses_of_a_two_state_rule_have_the_ratio_and_burst_lengths_of_its_markov_chain() {
    let (p, r) = (0.02, 0.25);
    let mut network = packets("4s");
    let model = GilbertElliott { p, r, good: 0.0, bad: 1.0 };
    lose(&mut network, FROM_SOURCE, DATA, LossUnit::Cells, LossPattern::GilbertElliott(model));
    let result = Engine::Fast.run_to_end(&network);
    let LossCounters { came, lost, .. } = result.losses.raw[0].counters;
    // The variance of the loss ratio is (2 - p - r) / (p + r) times the variance of independent draws.
    let (share, cells) = (p / (p + r), came as f64);
    let deviation = (share * (1.0 - share) / cells * (2.0 - p - r) / (p + r)).sqrt();
    assert!((lost as f64 / cells - share).abs() < 4.0 * deviation, "{lost} of {came}");
}

#[test]
fn the_mean_length_of_loss_bursts_is_the_mean_length_of_the_bad_state() {
    let (p, r, cells) = (0.02, 0.25, 400_000);
    let mut losses = LinkLosses::new(FROM_SOURCE, 1, None);
    let pattern = LossPattern::GilbertElliott(GilbertElliott { p, r, good: 0.0, bad: 1.0 });
    let rule = LossRule { vc: DATA, unit: LossUnit::Cells, pattern };
    losses.add(Label::new(0), &rule, None, Stream::new(7, "bursts"));
    let cell = Cell::new(Label::new(0), FrameNumber::new(0), false);
    let (mut bursts, mut lost, mut before) = (0_u32, 0_u32, false);
    for _ in 0..cells {
        let is_lost = matches!(losses.take(cell, Time::default(), || None), Fate::Lost(_));
        bursts += u32::from(is_lost && !before);
        lost += u32::from(is_lost);
        before = is_lost;
    }
    // Lengths are geometric: mean 1 / r, variance (1 - r) / r^2.
    let mean = f64::from(lost) / f64::from(bursts);
    let deviation = ((1.0 - r) / (r * r) / f64::from(bursts)).sqrt();
    assert!((mean - 1.0 / r).abs() < 4.0 * deviation, "{mean} after {bursts} bursts");
}

#[test]
fn losses_of_a_two_state_rule_have_the_ratio_and_correlation_of_its_markov_chain() {
    const CELLS: u32 = 400_000;
    for (p, r, good, bad) in
        [(0.02, 0.25, 0.01, 0.6), (0.3, 0.1, 0.2, 0.9), (0.5, 0.5, 0.5, 0.1), (0.01, 0.05, 0.0, 0.3)]
    {
        let mut losses = LinkLosses::new(FROM_SOURCE, 1, None);
        let pattern = LossPattern::GilbertElliott(GilbertElliott { p, r, good, bad });
        losses.add(
            Label::new(0),
            &LossRule { vc: DATA, unit: LossUnit::Cells, pattern },
            None,
            Stream::new(7, "states"),
        );
        let cell = Cell::new(Label::new(0), FrameNumber::new(0), false);
        let lost: Vec<_> =
            (0..CELLS).map(|_| matches!(losses.take(cell, Time::default(), || None), Fate::Lost(_))).collect();
        let (in_good, in_bad) = (r / (p + r), p / (p + r));
        let ratio = in_good * good + in_bad * bad;
        // Two losses in a row need these draws: the state at the first cell, its loss, the change of state, and the
        // loss in the next state.
        let both = in_good * good * ((1.0 - p) * good + p * bad) + in_bad * bad * ((1.0 - r) * bad + r * good);
        let pairs = lost.windows(2).filter(|pair| pair[0] && pair[1]).count();
        for (counted, expected) in [(lost.iter().filter(|&&lost| lost).count(), ratio), (pairs, both)] {
            // The states make the variance at most (2 - p - r) / (p + r) times the variance of independent draws, and
            // pairs overlap.
            let factor = 3.0 * ((2.0 - p - r) / (p + r)).max(1.0);
            let deviation = (expected * (1.0 - expected) / f64::from(CELLS) * factor).sqrt();
            let share = counted as f64 / f64::from(CELLS);
            assert!((share - expected).abs() < 4.0 * deviation, "{share} and {expected} at {p}, {r}, {good}, {bad}");
        }
    }
}

#[test]
fn a_loss_rule_for_a_byte_drops_the_packet_with_the_byte_as_often_as_configured() {
    let mut network = lan(1, None, "3s");
    let tcp = TcpOptions { receive_window: Bytes { bytes: 8 * 512 }, ..TcpOptions::default() };
    network.flows[FIRST].tcp = TcpConfig::Sack(tcp);
    network.flows[FIRST].traffic = TrafficConfig::File(file::Config { bytes: Bytes { bytes: 10 * 512 } });
    // The selected byte is in the third segment.
    for times in [1, 2, 3] {
        network.links[FROM_SOURCE].losses.clear();
        lose(&mut network, FROM_SOURCE, DATA, LossUnit::Packets, LossPattern::Byte { offset: 1100, times });
        let result = Engine::Fast.run_to_end(&network);
        assert_eq!(result.cells.lost, times * 12);
        assert_eq!(result.flows[FIRST].delivered_bytes, 10 * 512, "the flow recovers");
    }
}
