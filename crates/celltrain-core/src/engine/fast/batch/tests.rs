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
            batch.extend_before(Time(u64::MAX), &arrivals.iter().map(arriving).collect::<Vec<_>>());
        }
    }
    batch.sort();
    let (keys, cells, firsts) = batch.parts();
    let keys = keys.split_last_mut().map_or(&mut [][..], |(_, keys)| keys);
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

#[test]
fn what_arrives_before_an_instant_is_added_however_many_those_are() {
    for (cells, in_time) in (0..2 * FEW + 3).flat_map(|cells| (0..=cells).map(move |in_time| (cells, in_time))) {
        let arriving = |i: u32| Arriving { time: Time(1000 + 3 * u64::from(i)), cell: cell(0, i, false) };
        let on_their_way: Vec<_> = (0..).map(arriving).take(cells).collect();
        // At the instant itself is not before it.
        let until = Time(1000 + 3 * in_time as u64);
        let mut batch = Batch { base: Time(1000), ..Batch::default() };
        batch.begin_input();
        batch.begin_run();
        assert_eq!(batch.extend_before(until, &on_their_way), in_time, "of {cells}");
        batch.sort();
        let (keys, cells, _) = batch.parts();
        let times: Vec<_> = keys.iter().take(in_time).map(|&key| since(key).0).collect();
        assert_eq!(times, (0..in_time as u64).map(|i| 3 * i).collect::<Vec<_>>());
        let frames: Vec<_> = cells.iter().map(|cell| cell.frame.number() as usize).collect();
        assert_eq!(frames, (0..in_time).collect::<Vec<_>>());
    }
}
