//! Functions of measures that combine the numbers of several members of a list, such as `sum`.

/// A function that combines several numbers into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregate {
    Sum,
    Mean,
    Least,
    Largest,
    /// Standard deviation divided by the mean.
    Variation,
    /// Jain's fairness index.
    Fairness,
}

/// The names of all functions that combine numbers.
pub(super) const NAMES: &str = "sum, mean, least, largest, variation, fairness";

/// Returns the function that combines numbers and has this name.
pub(super) fn named(name: &str) -> Option<Aggregate> {
    Some(match name {
        "sum" => Aggregate::Sum,
        "mean" => Aggregate::Mean,
        "least" => Aggregate::Least,
        "largest" => Aggregate::Largest,
        "variation" => Aggregate::Variation,
        "fairness" => Aggregate::Fairness,
        _ => return None,
    })
}

impl Aggregate {
    /// Returns whether it is an error to apply the function to no values.
    pub(super) fn needs_values(self) -> bool {
        matches!(self, Self::Mean | Self::Least | Self::Largest)
    }

    /// Returns the result of the function for these numbers; `None` if the result is undefined.
    pub(super) fn of(self, values: &[f64]) -> Option<f64> {
        match self {
            Self::Sum => Some(sum(values)),
            Self::Mean => Some(mean(values)),
            Self::Least => values.iter().copied().reduce(f64::min),
            Self::Largest => values.iter().copied().reduce(f64::max),
            Self::Variation => variation(values),
            Self::Fairness => fairness(values),
        }
    }
}

/// Sums numbers pairwise, in the same order as numpy, because stores of earlier versions contain sums computed by
/// numpy.
fn sum(values: &[f64]) -> f64 {
    const BLOCK: usize = 128;
    const LANES: usize = 8;
    if values.len() < LANES {
        return values.iter().fold(0.0, |sum, value| sum + value);
    }
    if values.len() <= BLOCK {
        let (lanes, rest) = values.as_chunks::<LANES>();
        let (first, others) = lanes.split_first().expect("there are at least as many values as lanes");
        let mut sums = *first;
        for lane in others {
            for (sum, value) in sums.iter_mut().zip(lane) {
                *sum += value;
            }
        }
        let [first, last] = [0, 4].map(|at| (sums[at] + sums[at + 1]) + (sums[at + 2] + sums[at + 3]));
        return rest.iter().fold(first + last, |sum, value| sum + value);
    }
    let half = values.len() / 2;
    let (left, right) = values.split_at(half - half % LANES);
    sum(left) + sum(right)
}

/// Returns the mean of the values; NaN if there are no values.
pub(super) fn mean(values: &[f64]) -> f64 {
    sum(values) / values.len() as f64
}

/// Returns the standard deviation divided by the mean; `None` if the mean is 0.
fn variation(values: &[f64]) -> Option<f64> {
    let mean = mean(values);
    if mean == 0.0 {
        return None;
    }
    if values.len() < 2 {
        return Some(0.0);
    }
    let squares: Vec<f64> = values.iter().map(|value| (value - mean) * (value - mean)).collect();
    Some((sum(&squares) / (values.len() - 1) as f64).sqrt() / mean)
}

/// Returns Jain's fairness index; `None` if all values are 0.
fn fairness(values: &[f64]) -> Option<f64> {
    let squares = values.iter().fold(0.0, |sum, &value| value.mul_add(value, sum));
    let total = sum(values);
    (squares != 0.0).then(|| total * total / (values.len() as f64 * squares))
}
