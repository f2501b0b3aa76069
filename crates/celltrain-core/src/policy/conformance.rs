//! Tests that run for every listed policy. A new policy is tested as soon as it is listed.

use proptest::prelude::*;
use typed_index_collections::TiSlice;

use super::bench::{NAMES, VCS, fill, stream, view};
use super::{BufferPolicy, PolicyConfig, View};
use crate::cell::tests::cell;
use crate::index::Label;
use crate::port::{Port, PortCounters};
use crate::rng::{Stream, proptest_seeded};
use crate::units::Clock;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..proptest_seeded(3) })]

    #[test]
    fn every_policy_that_admits_a_tagged_frame_would_also_admit_it_untagged(
        per_vc in prop::array::uniform4(0u32..14),
        vc in 0..VCS,
    ) {
        let view = view(52, &per_vc);
        for config in PolicyConfig::samples(52) {
            let admitted = |tagged| {
                let mut policy = config.build(Some(52), &NAMES);
                fill(&mut *policy, view.per_vc);
                policy.admit_frame(&View { tagged, ..view }, Label::new(vc), &mut stream())
            };
            prop_assert!(admitted(false) || !admitted(true), "{}", config.name());
        }
    }
}

#[test]
fn the_default_settings_of_every_policy_are_valid() {
    for config in PolicyConfig::samples(100) {
        assert!(config.check(Some(100)).is_empty(), "{}", config.name());
        assert!(config.check_vcs(Some(100), &NAMES).is_empty(), "{}", config.name());
    }
}

#[test]
fn thresholds_given_as_shares_of_the_buffer_require_a_finite_buffer() {
    let mut with_shares = 0;
    for config in PolicyConfig::samples(1000) {
        let settings = serde_json::to_value(&config).unwrap();
        let settings = settings[config.name()].as_object().unwrap();
        // A threshold in cells is a whole number; a share of the buffer is not.
        let shares = settings.iter().filter(|(key, value)| key.ends_with("threshold") && value.is_f64());
        let shares: Vec<_> = shares.map(|(key, _)| key.as_str()).collect();
        let refused: Vec<_> = config.check(None).iter().map(|fault| fault.key.clone()).collect();
        assert!(shares.iter().all(|share| refused.iter().any(|key| key == share)), "{}: {refused:?}", config.name());
        with_shares += usize::from(!shares.is_empty());
    }
    assert!(with_shares >= 5, "Selective Drop, WBA, FBA, weighted FBA, DFBA of 1998");
}

#[test]
fn a_policy_threshold_larger_than_the_buffer_is_refused() {
    let mut with_threshold = 0;
    for config in PolicyConfig::samples(1000) {
        for (threshold, refused) in [(1000, &[][..]), (1001, &["threshold"])] {
            let mut settings = serde_json::to_value(&config).unwrap();
            let Some(written) = settings[config.name()].get_mut("threshold") else { continue };
            *written = threshold.into();
            let config: PolicyConfig = serde_json::from_value(settings).unwrap();
            let keys: Vec<_> = config.check(Some(1000)).into_iter().map(|fault| fault.key).collect();
            assert_eq!(keys, refused, "{}", config.name());
            with_threshold += 1;
        }
    }
    assert!(with_threshold >= 2 * 11, "all policies with exactly one threshold are listed");
}

/// Asks a policy about tagged and untagged frames of two VCs, while `x` waiting cells are divided between the VCs in
/// several ways.
fn asked_in_all_ways(policy: &mut dyn BufferPolicy, x: u32, capacity: u32, rng: &mut Stream) -> Vec<bool> {
    let mut answers = Vec::new();
    for x_1 in [0, x / 2, x] {
        let per_vc = &[x - x_1, x_1];
        for (vc, tagged) in [(0, false), (0, true), (1, false), (1, true)] {
            answers.push(policy.admit_frame(&View { tagged, ..view(capacity, per_vc) }, Label::new(vc), rng));
        }
    }
    answers
}

#[test]
fn below_its_admit_all_limit_a_policy_admits_every_frame_without_changing_its_state() {
    for k in [0, 1, 2, 7, 100] {
        for config in PolicyConfig::samples(k) {
            let name = config.name();
            let [mut asked, mut fresh] = [(); 2].map(|()| config.build(Some(k), &NAMES[..2]));
            let Some(most) = asked.admits_up_to() else { continue };
            let mut draws = stream();
            let before = draws.clone().next_u64();
            let queues = |policy: &mut dyn BufferPolicy| {
                policy.follower().and_then(|follower| follower.virtual_queues().map(TiSlice::to_owned))
            };
            // A policy that follows cells must learn of every waiting cell, so each step adds exactly one cell.
            let one_more = |x: u32, policies: [&mut Box<dyn BufferPolicy>; 2]| {
                for policy in policies {
                    fill(&mut **policy, TiSlice::from_ref(&[u32::from(x % 3 == 1), u32::from(x > 0 && x % 3 != 1)]));
                }
            };
            for x in 0..=most.min(k) {
                one_more(x, [&mut asked, &mut fresh]);
                let answers = asked_in_all_ways(&mut *asked, x, k, &mut draws);
                assert!(answers.iter().all(|&admitted| admitted), "{name} at {x} of {k}");
                assert_eq!(queues(&mut *asked), queues(&mut *fresh), "{name} notes nothing");
            }
            assert_eq!(draws.clone().next_u64(), before, "{name} draws nothing");
            let mut others = draws.clone();
            for x in most.min(k)..k {
                one_more(x + 1, [&mut asked, &mut fresh]);
                let answers = asked_in_all_ways(&mut *asked, x + 1, k, &mut draws);
                let same = asked_in_all_ways(&mut *fresh, x + 1, k, &mut others);
                assert_eq!(answers, same, "{name}: earlier decisions do not affect the decision at {x} of {k} cells");
            }
            assert_eq!(draws.next_u64(), others.next_u64(), "{name}");
        }
    }
}

/// The cells lost by a frame of five cells at a buffer of two. One cell leaves after the third arrives, and one after
/// the fourth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// The frame loses only its third cell.
    ThirdAlone,
    /// The third cell is lost. The fourth is also lost, although there is room. The last cell is kept because it
    /// delimits the next frame.
    ButTheLast,
    /// The third cell pushes out the two waiting cells. This damages their frame, so the third and fourth cells are
    /// also refused.
    PushedOut,
    /// The third cell pushes out the whole frame, whose other cells are refused.
    Whole,
}

const ALL: Option<u32> = Some(u32::MAX);

/// For each policy: its name, the losses of a frame that finds no room (`docs/mechanisms.md` 2), the number of waiting
/// cells up to which a buffer of 100 admits every frame, and whether the policy follows individual cells.
const ANSWERS: &[(&str, Cut, Option<u32>, bool)] = &[
    ("tail_drop", Cut::ThirdAlone, ALL, false),
    ("ppd", Cut::ButTheLast, ALL, false),
    ("epd", Cut::ButTheLast, Some(80), false),
    ("double_epd", Cut::ButTheLast, Some(50), false),
    ("per_vc_accounting", Cut::ButTheLast, Some(80), false),
    ("per_vc_accounting_fixed", Cut::ButTheLast, Some(80), false),
    ("virtual_queuing", Cut::ButTheLast, Some(80), true),
    ("virtual_queuing_threshold", Cut::ButTheLast, Some(0), true),
    ("virtual_queuing_weighted", Cut::ButTheLast, Some(80), true),
    ("selective_drop", Cut::ButTheLast, Some(90), false),
    ("wba", Cut::ButTheLast, Some(90), false),
    ("fba", Cut::ButTheLast, Some(90), false),
    ("weighted_fba", Cut::ButTheLast, Some(90), false),
    ("single_drop", Cut::ButTheLast, None, false),
    ("dfba", Cut::ButTheLast, Some(12), false),
    ("dfba_1998", Cut::ButTheLast, Some(50), false),
    ("drop_from_front", Cut::PushedOut, ALL, false),
    ("codel", Cut::ButTheLast, None, false),
    ("fq_codel", Cut::Whole, None, false),
    ("dualpi2", Cut::ButTheLast, None, false),
    ("pie", Cut::ButTheLast, None, false),
    ("red", Cut::ButTheLast, None, false),
    ("formula", Cut::ButTheLast, None, false),
    ("python", Cut::ButTheLast, None, false),
];

#[test]
fn every_policy_makes_the_decisions_described_on_its_documentation_page() {
    for &(name, cut, admits_up_to, follows_cells) in ANSWERS {
        let mut samples = PolicyConfig::samples(100).into_iter();
        let config = samples.find(|config| config.name() == name).expect("every row names a listed policy");
        let mut policy = config.build(Some(100), &NAMES);
        let said = (policy.admits_up_to(), policy.follower().is_some());
        assert_eq!(said, (admits_up_to, follows_cells), "{name}");
        // The listed policies have thresholds for individual VCs, not for the buffer.
        let is_of_buffer = admits_up_to != ALL && !["dfba", "virtual_queuing_threshold"].contains(&name);
        assert_eq!(config.threshold_cells(Some(100)), admits_up_to.filter(|_| is_of_buffer), "{name}");

        // The settings are for a buffer of 100, but the port has a buffer of two, so no threshold is reached.
        let queues = config.queues(&NAMES, Clock::exact(1));
        let mut port = Port::new(Some(2), VCS as usize, policy, stream()).scheduled(queues);
        for (number, last) in [(1, false), (2, false), (3, false), (4, false), (5, true)] {
            port.offer(cell(0, 7, last));
            if number == 3 || number == 4 {
                port.take();
            }
        }
        let zero = PortCounters { offered: 5, cut_frames: 1, ..PortCounters::default() };
        let expected = match cut {
            // Of the first, second, fourth and fifth cells, two have been sent and two are waiting.
            Cut::ThirdAlone => PortCounters { forwarded: 2, lost_overflow: 1, ..zero },
            // Two cells have been sent, and the fifth is waiting.
            Cut::ButTheLast => PortCounters { forwarded: 2, lost_overflow: 1, discarded_remainder: 1, ..zero },
            Cut::PushedOut => PortCounters { lost_pushed_out: 2, discarded_remainder: 2, ..zero },
            Cut::Whole => PortCounters { lost_pushed_out: 2, discarded_remainder: 3, ..zero },
        };
        assert_eq!(port.vc_counters().next(), Some(expected), "{name}");
        let waiting = match cut {
            Cut::ThirdAlone => 2,
            Cut::ButTheLast | Cut::PushedOut => 1,
            Cut::Whole => 0,
        };
        assert_eq!(port.occupancy(), waiting, "{name}");
    }
}
