use std::collections::BTreeSet;

use super::*;
use crate::memory::tests::{Pool, fill};
use crate::memory::{MemoryPolicyConfig, dynamic_threshold, harmonic, longest_queue_drop, static_thresholds};
use crate::units::Time;

fn formula(admit: &str, constants: &[(&str, Start)]) -> Config {
    let constants = constants.iter().map(|(name, start)| ((*name).to_string(), start.clone())).collect();
    Config { admit: admit.into(), constants, ..Config::default() }
}

fn table<T: Clone>(entries: &[(&str, T)]) -> BTreeMap<String, T> {
    entries.iter().map(|(name, value)| ((*name).to_string(), value.clone())).collect()
}

/// Offers cells to two pools in the same order, and asserts that both admit the same cells.
fn assert_alike(formula: Config, native: MemoryPolicyConfig) {
    assert_eq!(formula.check(97), []);
    let [mut ours, mut theirs] = [formula.into(), native].map(|config| Pool::new(&config, 97, 4));
    for step in 0..4000_u32 {
        // The queues grow at different speeds, with departures in between.
        let queue = step * 7 % 13 % 4;
        if step % 5 < 3 {
            assert_eq!(ours.offer(queue), theirs.offer(queue), "step {step}");
        } else if ours.held()[queue as usize] > 0 {
            ours.leave(queue);
            theirs.leave(queue);
        }
        assert_eq!(ours.held(), theirs.held());
    }
    assert_eq!(fill(&mut ours, &[0, 1, 2, 3]), fill(&mut theirs, &[0, 1, 2, 3]));
}

#[test]
fn published_memory_policies_make_the_same_decisions_when_written_as_formulas() {
    let alpha = [("alpha", Start::Number(2.0))];
    let dynamic = dynamic_threshold::Config { alpha: 2.0, ..Default::default() };
    assert_alike(formula("q_i + 1 <= alpha * (B - Q)", &alpha), dynamic.into());
    assert_alike(formula("q_i + 1 <= floor(B / N)", &[]), static_thresholds::Config::default().into());
    let h_n = [("H", Start::Formula("1 + 1 / 2 + 1 / 3 + 1 / 4".into()))];
    assert_alike(formula("q_i + 1 <= B / (rank * H)", &h_n), harmonic::Config {}.into());
    let longest = Config { push_out: Some("q_i + arriving".into()), ..formula("true", &[]) };
    assert!(MemoryPolicyConfig::from(longest.clone()).pushes_out());
    assert_alike(longest, longest_queue_drop::Config::default().into());
}

#[test]
fn a_memory_formula_that_compares_the_queue_with_an_expression_reports_the_native_policys_threshold() {
    let alpha = [("alpha", Start::Number(2.0))];
    let dynamic = dynamic_threshold::Config { alpha: 2.0, ..Default::default() };
    let h_n = [("H", Start::Formula("1 + 1 / 2 + 1 / 3 + 1 / 4".into()))];
    for (formula, native) in [
        (formula("q_i + 1 <= alpha * (B - Q)", &alpha), dynamic.clone().into()),
        (formula("let free = B - Q; alpha * free >= q_i + arriving", &alpha), dynamic.into()),
        (formula("q_i < floor(B / N)", &[]), static_thresholds::Config::default().into()),
        (formula("q_i + 1 <= B / (rank * H)", &h_n), harmonic::Config {}.into()),
    ] {
        let [mut ours, mut theirs]: [Pool; 2] =
            [formula.into(), native].map(|config: MemoryPolicyConfig| Pool::new(&config, 97, 4));
        for step in 0..200_u32 {
            let queue = step * 7 % 13 % 4;
            assert_eq!(ours.offer(queue), theirs.offer(queue), "step {step}");
            for queue in 0..4 {
                let [own, native] = [&mut ours, &mut theirs].map(|pool| pool.threshold(queue));
                assert!((own - native).abs() <= 1e-12 * native, "step {step}: {own}, {native}");
            }
        }
    }
}

#[test]
fn a_memory_formula_reports_a_threshold_only_if_it_compares_the_queue_length_with_an_expression() {
    let config = Config {
        queue_state: table(&[("seen", Start::Number(0.0))]),
        on_arrival: table(&[("seen", "seen + 1".to_string())]),
        ..formula("q_i < 10 cells * seen", &[])
    };
    let mut pool = Pool::new(&config.into(), 97, 2);
    (0..3).for_each(|_| assert!(pool.offer(1)));
    assert_eq!([0, 1].map(|queue| pool.threshold(queue)), [0.0, 30.0]);
    for other in ["true", "q_i < 10 or Q < 20", "Q < 10"] {
        assert!(!Pool::new(&formula(other, &[]).into(), 97, 2).has_threshold(0), "{other}");
    }
}

#[test]
fn the_page_about_memory_formulas_lists_every_variable_with_its_unit() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/models/memory_formula.md");
    let page = std::fs::read_to_string(page).unwrap();
    let table = page.split("## Symbols").nth(1).and_then(|text| text.split("\n\n").nth(1)).unwrap();
    let listed: BTreeSet<[String; 2]> = table
        .lines()
        .skip(2)
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            [cells[1].into(), cells[2].into()]
        })
        .collect();
    let provided = |(name, _): &(Name, _)| {
        let unit = match name.kind {
            Kind::Number(Some(unit)) if unit != Unit::NONE => unit.to_string(),
            _ => String::new(),
        };
        [format!("`{}`", name.name), unit]
    };
    assert_eq!(listed, NAMES.iter().map(provided).collect());
}

#[test]
fn memory_formulas_convert_bytes_to_cells_with_the_cell_size() {
    // 53 bytes.
    let mut pool = Pool::new(&formula("(q_i + 1) * cell_size <= 530 bytes", &[]).into(), 97, 2);
    assert_eq!(fill(&mut pool, &[0, 1]), [10, 10]);
    let limit = [("limit", Start::Formula("530 bytes / cell_size".into()))];
    assert_eq!(fill(&mut Pool::new(&formula("q_i + 1 <= limit", &limit).into(), 97, 1), &[0]), [10]);
    assert_eq!(formula("q_i + 1 <= 530 bytes / cell_size", &[]).check(97), []);
    let faults = formula("q_i + 1 <= cell_size", &[]).check(97);
    assert!(faults[0].problem.contains("bytes/cells"), "{faults:?}");
}

#[test]
fn a_memory_formula_has_state_per_pool_and_per_queue_and_can_read_the_time() {
    let config = Config {
        state: table(&[("sent", Start::Number(0.0))]),
        queue_state: table(&[("since", Start::Number(-1.0))]),
        on_arrival: table(&[("since", "if since < 0 then now else since".to_string())]),
        on_departure: table(&[("sent", "sent + 1".to_string()), ("since", "-1".to_string())]),
        ..formula("q_i < 3 or sent > 1 or now - since >= 20 us", &[])
    };
    assert_eq!(config.check(97), []);
    // A unit of the pool's clock is a microsecond.
    let mut pool = Pool::new(&config.into(), 97, 3);
    assert_eq!(fill(&mut pool, &[0]), [3, 0, 0]);
    pool.act_at(Time(10));
    assert_eq!(fill(&mut pool, &[1]), [3, 3, 0]);
    pool.act_at(Time(20));
    assert!(pool.offer(0), "20 us after its first arrival");
    assert!(!pool.offer(1), "10 us after its first arrival");
    pool.leave(0);
    assert!(!pool.offer(0) || pool.held()[0] < 5, "its clock starts again");
    pool.leave(0);
    assert!(pool.offer(1), "two cells have left the pool");
}

#[test]
fn non_finite_results_of_a_memory_formula_are_replaced_and_counted() {
    let counted = |admit: &str| {
        let mut pool = Pool::new(&formula(admit, &[]).into(), 97, 2);
        assert!(pool.offer(0));
        assert!(pool.offer(0));
        pool.replaced_results()
    };
    assert_eq!(counted("q_i + 1 <= B * (B - Q) / Q"), 1, "the pool is empty only for the first cell");
    assert_eq!(counted("q_i + 1 <= B * (B - Q) / max(Q, 1)"), 0);
}

#[test]
fn a_full_pool_pushes_out_cells_of_the_queue_with_the_largest_push_out_value() {
    let pushing = |push_out: &str, end| {
        let config = Config { push_out: Some(push_out.into()), push_out_end: end, ..formula("q_i < 9", &[]) };
        let mut pool = Pool::new(&config.into(), 12, 3);
        assert_eq!(fill(&mut pool, &[0]), [9, 0, 0]);
        assert_eq!((0..3).filter(|_| pool.offer(1)).count(), 3);
        let admitted = pool.offer(2);
        (admitted, pool.held())
    };
    assert_eq!(pushing("q_i", None), (true, vec![8, 3, 1]));
    assert_eq!(pushing("10 cells - q_i", None), (false, vec![9, 3, 0]), "the arriving cell is the last of its queue");
    assert_eq!(pushing("10 cells - q_i", Some(QueueEnd::Head)), (true, vec![9, 2, 1]), "queue 2 is empty");
    assert_eq!(pushing("1", None), (true, vec![8, 3, 1]), "the first of equal queues");
    assert_eq!(pushing("0", None), (false, vec![9, 3, 0]));
}

#[test]
fn an_error_message_about_a_memory_policy_formula_gives_the_position_of_the_error() {
    let told = |config: Config, key: &str, words: &str| {
        let faults = config.check(100);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert_eq!(faults[0].key, key, "{faults:?}");
        assert!(faults[0].problem.contains(words), "{faults:?}");
    };
    told(formula("q + 1 <= B", &[]), "admit", "does not know q");
    told(formula("q_i + 1", &[]), "admit", "admit must be a condition");
    told(formula("random() < 0.5", &[]), "admit", "memory policies do not support random numbers");
    let changing = "this value changes during the run";
    told(formula("q_i < R", &[("R", Start::Formula("Q / 2".into()))]), "constants.R", changing);
    let taken = "is already one of the pool's variables";
    told(formula("q_i < n", &[("n", Start::Number(1.0))]), "constants.n", taken);
    let config = || formula("true", &[]);
    let twice = table(&[("a", Start::Number(1.0))]);
    let twice = Config { state: twice.clone(), queue_state: twice, ..config() };
    told(twice, "queue_state.a", "is the name of another constant or state");
    let unknown = Config { on_arrival: table(&[("a", "1".to_string())]), ..config() };
    told(unknown, "on_arrival.a", "it must be the name of a variable in state or queue_state");
    let leaving = Config {
        state: table(&[("a", Start::Number(1.0))]),
        on_departure: table(&[("a", "arriving".to_string())]),
        ..config()
    };
    told(leaving, "on_departure.a", "this value counts arriving cells");
    told(Config { push_out: Some("q_i > 1".into()), ..config() }, "push_out", "push_out must be a number");
    told(Config { push_out_end: Some(QueueEnd::Head), ..config() }, "push_out_end", "there is no push_out");
}
