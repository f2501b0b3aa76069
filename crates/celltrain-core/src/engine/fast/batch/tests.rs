use super::*;
use crate::cell::tests::cell;
use crate::rng::Stream;

/// The times and places of what arrives at these instants, by input, as a batch has them in order.
fn in_order(inputs: &[Vec<u64>]) -> Vec<(u64, usize)> {
    let mut batch = Batch { base: Time(1000), ..Batch::default() };
    for arrivals in inputs {
        batch.begin_input();
        if !arrivals.is_empty() {
            batch.begin_run();
            let arriving = |&since: &u64| Arriving { time: Time(1000 + since), cell: cell(0, 0, false) };
            batch.extend(&arrivals.iter().map(arriving).collect::<Vec<_>>());
        }
    }
    batch.sort();
    let (keys, cells, firsts) = batch.parts();
    assert_eq!((keys.len(), firsts.len()), (cells.len(), inputs.len()));
    keys.iter().map(|&key| (since(key).0, place(key))).collect()
}

fn expected(inputs: &[Vec<u64>]) -> Vec<(u64, usize)> {
    let mut all: Vec<_> = inputs.iter().flatten().copied().zip(0..).collect();
    all.sort_unstable();
    all
}

#[test]
fn runs_of_any_lengths_are_merged_in_order() {
    let mut draws = Stream::new(1, "batches");
    for round in 0..5000 {
        let inputs = 1 + draws.below(9);
        let arrivals = |_| {
            let mut since: Vec<u64> = (0..draws.below(12)).map(|_| u64::from(draws.below(40))).collect();
            since.sort_unstable();
            // A link carries one cell at a time.
            since.dedup();
            since
        };
        let inputs: Vec<Vec<u64>> = (0..inputs).map(arrivals).collect();
        assert_eq!(in_order(&inputs), expected(&inputs), "{round}: {inputs:?}");
    }
}

#[test]
fn the_smallest_runs_and_keys_are_merged_in_order() {
    // The key of a cell that arrives at the base in the first place is 0.
    for inputs in [
        vec![],
        vec![vec![]],
        vec![vec![0]],
        vec![vec![0], vec![0]],
        vec![vec![1], vec![0]],
        vec![vec![], vec![0], vec![]],
        vec![vec![0, 1, 2], vec![3]],
        vec![vec![3], vec![0, 1, 2]],
        vec![vec![0], vec![1], vec![0]],
        vec![vec![5, 6], vec![0, 9], vec![5, 6], vec![0], vec![LONGEST.0]],
    ] {
        assert_eq!(in_order(&inputs), expected(&inputs), "{inputs:?}");
    }
}
