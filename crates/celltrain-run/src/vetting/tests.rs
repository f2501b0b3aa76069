//! Tests that every built-in policy must pass, and tests of the checks of `celltrain vet` themselves.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use celltrain_core::policy::{PolicyConfig, View};

use super::*;

fn drawn_operations() -> impl Strategy<Value = Vec<Operation>> {
    let cell = (0..4u32, prop::bool::weighted(0.2), prop::bool::weighted(0.3));
    let offer = cell.prop_map(|(vc, last, tagged)| Operation::Offer { vc, last, tagged });
    prop::collection::vec(prop_oneof![3 => offer, 2 => Just(Operation::Take)], 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig {
        // The nightly job sets `PROPTEST_CASES` to draw more cases.
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(50),
        rng_seed: RngSeed::Fixed(3),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn vetting_rejects_a_policy_that_exceeds_the_buffer_or_makes_any_counter_wrong(
        capacity in 0u32..40,
        operations in drawn_operations(),
    ) {
        for config in PolicyConfig::samples(capacity) {
            let outcome = trial(config.build(Some(capacity), &VCS), capacity, 1, &operations);
            for check in [Check::Capacity, Check::Counts] {
                prop_assert_eq!(outcome.broken.get(&check), None, "{}", config.name());
            }
            prop_assert_eq!(outcome.recounts, operations.len() as u64, "short queues are recounted after every cell");
        }
    }

    #[test]
    fn vetting_checks_that_admitted_frames_lose_no_cells_unless_the_buffer_overflows(
        capacity in 1u32..40,
        operations in drawn_operations(),
    ) {
        for config in PolicyConfig::samples(capacity) {
            let outcome = trial(config.build(Some(capacity), &VCS), capacity, 1, &operations);
            prop_assert_eq!(outcome.broken.get(&Check::WholeFrames), None, "{}", config.name());
            if overflow(&config) == Overflow::LoseCell {
                let discarded: u64 = outcome.counters.iter().map(PortCounters::discarded).sum();
                prop_assert_eq!(discarded, 0, "tail drop never discards whole frames");
            }
        }
    }

    #[test]
    fn vetting_twice_with_the_same_seed_gives_the_same_result(capacity in 1u32..40, operations in drawn_operations()) {
        for config in PolicyConfig::samples(capacity) {
            let run = || trial(config.build(Some(capacity), &VCS), capacity, 1, &operations);
            prop_assert_eq!(run(), run(), "{}", config.name());
        }
    }
}

fn overflow(config: &PolicyConfig) -> Overflow {
    config.build(Some(1), &VCS[..1]).overflow()
}

/// Uses a policy that decides differently in the second of two equal trials.
#[test]
fn vetting_reports_a_violated_property_with_the_seed_and_operation_that_violate_it() {
    struct Moody(u32);
    impl BufferPolicy for Moody {
        fn admit_frame(&mut self, _: &View<'_>, _: Label, _: &mut Stream) -> bool {
            self.0 += 1;
            self.0.is_multiple_of(3)
        }
    }
    let made = std::cell::Cell::new(0);
    let verdicts = conformance(
        |_| {
            made.set(made.get() + 1);
            Some(Box::new(Moody(made.get())))
        },
        1,
    );
    let broken: Vec<Check> = verdicts.iter().filter(|verdict| !verdict.holds).map(|verdict| verdict.check).collect();
    // The policy depends on the number of its calls, and the probe of an empty buffer calls it in a regular pattern.
    assert_eq!(broken, [Check::SameSeed, Check::AdmitsWhenEmpty], "{verdicts:?}");
    assert!(verdicts[3].evidence.starts_with("in trial 0 the policy refuses"), "{verdicts:?}");
}

#[test]
fn the_random_trials_of_vetting_fill_the_buffer_and_make_every_policy_refuse_frames() {
    // The tests of each push vet a sixth of the policies. The nightly job vets all policies.
    let step = if std::env::var_os("CELLTRAIN_NIGHTLY").is_some() { 1 } else { 6 };
    for config in PolicyConfig::samples(CAPACITY).into_iter().step_by(step) {
        let make = |capacity| {
            let fits = config.check(Some(capacity)).is_empty();
            fits.then(|| config.build(Some(capacity), &VCS))
        };
        let verdicts = conformance(make, 7);
        assert!(verdicts.iter().all(|verdict| verdict.holds), "{}: {verdicts:?}", config.name());
        let [_, _, frames, _, _] = &verdicts[..] else { panic!("{verdicts:?}") };
        let decides = !frames.evidence.contains(" 0 refused, 0 cut");
        assert!(decides, "{}: {}", config.name(), frames.evidence);
    }
}

#[test]
fn counts_in_messages_have_commas_as_thousands_separators() {
    let counts = [0, 999, 1000, 101_842, 1_000_000].map(grouped);
    assert_eq!(counts, ["0", "999", "1,000", "101,842", "1,000,000"]);
}
