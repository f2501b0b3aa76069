//! Checks that a policy's explanation of a decision contains the numbers it used.

use proptest::prelude::*;

use super::PolicyConfig;
use crate::cell::tests::cell;
use crate::index::Label;
use crate::port::{Port, PortEvent};
use crate::rng::{Stream, proptest_seeded};
use crate::units::Time;

const VCS: u32 = 3;
const NAMES: [&str; VCS as usize] = ["vc0", "vc1", "vc2"];
const CAPACITY: u32 = 30;

/// Policies that compare more than one threshold and one share.
const OTHERS: [&str; 3] = ["single_drop", "dfba", "dfba_1998"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..proptest_seeded(13) })]

    #[test]
    fn the_explanation_of_a_refused_frame_states_the_exceeded_threshold_and_the_exceeded_fair_share(
        cells in prop::collection::vec((0..VCS, prop::bool::weighted(0.3), 0..3u32), 0..300),
    ) {
        for config in PolicyConfig::samples(CAPACITY) {
            let name = config.name();
            let policy = config.build(Some(CAPACITY), &NAMES);
            let asks = policy.admits_up_to() != Some(u32::MAX);
            let mut port = Port::new(Some(CAPACITY), VCS as usize, policy, Stream::new(1, "bench"));
            let mut frames = [0; VCS as usize];
            for &(vc, last, taken) in &cells {
                let (label, frame) = (Label::new(vc), &mut frames[vc as usize]);
                let cell = cell(vc, *frame, last);
                *frame += u32::from(last);
                let mut wrong = None;
                port.offer_observed(cell, Time(0), |event| {
                    let PortEvent::Judged { view, admitted, policy } = event else { return };
                    let decision = policy.explain(view, label);
                    let held = decision.held.unwrap_or(f64::from(view.per_vc[label]));
                    let x = f64::from(view.occupancy);
                    let past = |most: Option<f64>, has: f64| most.is_none_or(|most| has > most);
                    let reaches = |most: Option<f64>, has: f64| most.is_some_and(|most| has >= most);
                    let fits = if !asks {
                        admitted && decision.rule.is_empty()
                    } else if decision.threshold.or(decision.share).is_none() {
                        // Policies with the default explanation, and user policies, report neither a threshold nor a
                        // share.
                        true
                    } else if OTHERS.contains(&name) {
                        let sure = decision.probability.is_none_or(|p| (0.0..=1.0).contains(&p));
                        sure && (admitted || reaches(decision.threshold, x) || reaches(decision.share, held))
                    } else {
                        // The policy compares without a division, so the share in its explanation may be rounded
                        // differently.
                        let is_close = decision.share.is_some_and(|share| (held - share).abs() < 1e-9);
                        is_close || admitted != (past(decision.threshold, x) && past(decision.share, held))
                    };
                    if !fits || asks == decision.rule.is_empty() {
                        wrong = Some(format!("{name}: {view:?} of {vc}, admitted {admitted}: {decision:?}"));
                    }
                });
                prop_assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
                for _ in 0..taken {
                    port.take();
                }
            }
        }
    }
}
