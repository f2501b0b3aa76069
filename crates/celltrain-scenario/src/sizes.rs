//! Distributions of the sizes of requests.

use std::path::Path;

use celltrain_core::requests::Sizes;
use celltrain_core::units::Bytes;

use crate::hints::{closest, did_you_mean};
use crate::limits::MAX_FILE;
use crate::request_options::SizeOptions;
use crate::scope::Scope;

/// Distributions of sizes that are part of the program, with their names. Each file has comments, a heading, and rows
/// of bytes and probability.
const SHIPPED: [(&str, &str); 2] =
    [("web_search", include_str!("sizes/web_search.csv")), ("data_mining", include_str!("sizes/data_mining.csv"))];

/// Returns the distribution that the options describe; `None` if the options have a fault.
pub(crate) fn resolve(options: &SizeOptions, scope: &mut Scope<'_>) -> Option<Sizes> {
    let before = scope.found().count();
    let sizes = match options {
        SizeOptions::Constant(bytes) if (1..=MAX_FILE).contains(&bytes.bytes) => Sizes::constant(*bytes),
        SizeOptions::Constant(bytes) => {
            scope.refuse_text(bytes, format!("is outside 1B to {}", Bytes { bytes: MAX_FILE }));
            return None;
        }
        SizeOptions::Points(points) => {
            check(points, scope);
            if scope.found().count() > before {
                return None;
            }
            Sizes::new(points.clone())
        }
        SizeOptions::Named(name) => {
            let shipped = SHIPPED.iter().find(|(shipped, _)| shipped == name);
            if shipped.is_none() {
                scope.refuse_text(name, unknown(name, scope));
            }
            Sizes::new(rows(shipped?.1))
        }
    };
    Some(sizes)
}

/// Returns the rows of a shipped distribution of sizes.
fn rows(text: &str) -> Vec<(f64, f64)> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    let number = |text: &str| text.parse::<f64>().expect("the distributions in the package contain only numbers");
    lines.filter_map(|line| line.split_once(',')).map(|(bytes, share)| (number(bytes), number(share))).collect()
}

/// Reports errors in the points of a cumulative distribution function.
fn check(points: &[(f64, f64)], scope: &mut Scope<'_>) {
    let Some(&(_, end)) = points.last() else {
        scope.refuse("is empty; it needs rows of bytes and probability, the last with probability 1");
        return;
    };
    let most = MAX_FILE as f64;
    let mut before: Option<(f64, f64)> = None;
    for (number, &(bytes, share)) in points.iter().enumerate() {
        let problem = match before {
            _ if !(bytes >= 1.0 && bytes <= most) => {
                Some(format!("has a size outside the range from 1 to {most} bytes"))
            }
            _ if !(0.0..=1.0).contains(&share) => Some("has a probability outside the range from 0 to 1".into()),
            Some((_, above)) if share < above => {
                Some(format!("has a lower probability than the row before; write {above} or more, up to 1"))
            }
            Some((larger, _)) if bytes < larger => {
                Some(format!("has fewer bytes than the row before; write {larger} or more"))
            }
            _ => None,
        };
        if let Some(problem) = problem {
            scope.item(number).refuse_value(format!("[{bytes}, {share}]"), problem);
            return;
        }
        before = Some((bytes, share));
    }
    if end < 1.0 {
        let (bytes, share) = points[points.len().saturating_sub(1)];
        let problem = format!("is the last row and has the probability {share}; the last probability must be 1");
        scope.item(points.len().saturating_sub(1)).refuse_value(format!("[{bytes}, {share}]"), problem);
    }
}

/// Returns the problem with an unknown name of a distribution.
fn unknown(name: &str, scope: &Scope<'_>) -> String {
    let list = SHIPPED.map(|(name, _)| format!("\"{name}\"")).join(", ");
    if Path::new(name).extension().is_some_and(|ending| ending == "csv") {
        return format!("is a file, which only the Python package reads; write its rows, or one of {list}");
    }
    let hint = did_you_mean(closest(name, SHIPPED.iter().map(|(name, _)| *name), scope.token()));
    let it = if hint.is_empty() { "it" } else { "It" };
    format!(
        "is not a distribution; {hint}{it} must be one of {list}, a size such as \"20kB\", a file with the ending .csv, or rows \
         of bytes and probability such as [[1000, 0.5], [20000, 1]]"
    )
}

#[cfg(test)]
mod tests {
    use celltrain_core::cancellation::CancellationToken;

    use super::*;
    use crate::fault::Faults;

    fn resolved(options: &SizeOptions) -> (Option<Sizes>, Vec<String>) {
        let (mut faults, token) = (Faults::default(), CancellationToken::never());
        let mut root = Scope::root(&mut faults, &[], &token);
        let sizes = resolve(options, &mut root.at("sizes"));
        (sizes, faults.iter().map(|fault| format!("{} = {} {}", fault.key, fault.value, fault.problem)).collect())
    }

    fn points(points: &[(f64, f64)]) -> Vec<String> {
        resolved(&SizeOptions::Points(points.to_vec())).1
    }

    #[test]
    fn the_stated_mean_of_each_shipped_size_distribution_equals_the_mean_computed_from_its_points() {
        let mean = |name: &str| {
            let sizes = resolved(&SizeOptions::Named(name.to_string())).0.expect(
                "the package contains the \
                distribution",
            );
            sizes.mean_of(|bytes| bytes)
        };
        // The expected mean is the sum, over all intervals, of the middle of the interval times its probability.
        let web = 0.15 * 5000.5 + 0.05 * 15e3 + 0.1 * 25e3 + 0.1 * 40e3 + 0.13 * 65e3 + 0.07 * 140e3 + 0.1 * 600e3;
        let web = web + 0.1 * 1.5e6 + 0.1 * 3.5e6 + 0.07 * 7.5e6 + 0.03 * 20e6;
        assert!((mean("web_search") / web - 1.0).abs() < 1e-9, "{}", mean("web_search"));
        let packets = 0.5 * 1.0 + 0.1 * 1.5 + 0.1 * 2.5 + 0.1 * 5.0 + 0.1 * 137.0 + 0.05 * 1187.0 + 0.04 * 34387.0;
        let mining = 1460.0 * (packets + 0.01 * 366_667.0);
        assert!((mean("data_mining") / mining - 1.0).abs() < 1e-9, "{}", mean("data_mining"));
    }

    #[test]
    fn an_invalid_size_distribution_is_refused_with_the_invalid_row_and_the_valid_values() {
        assert_eq!(points(&[(1.0, 0.0), (10.0, 0.5), (20.0, 1.0)]), Vec::<String>::new());
        for (rows, says) in [
            (
                &[(10.0, 0.5), (20.0, 0.4), (30.0, 1.0)][..],
                "sizes[1] = [20, 0.4] has a lower probability than the row before; write 0.5 or more",
            ),
            (&[(10.0, 0.5), (9.0, 1.0)], "sizes[1] = [9, 1] has fewer bytes than the row before; write 10 or more"),
            (&[(0.0, 0.0), (9.0, 1.0)], "sizes[0] = [0, 0] has a size outside the range from 1 to"),
            (
                &[(10.0, 0.5), (20.0, 0.97)],
                "sizes[1] = [20, 0.97] is the last row and has the probability 0.97; the last probability must be 1",
            ),
            (&[(10.0, 1.5)], "sizes[0] = [10, 1.5] has a probability outside the range from 0 to 1"),
            (&[(f64::NAN, 1.0)], "sizes[0] = [NaN, 1] has a size outside the range from 1 to"),
            (&[], "sizes =  is empty"),
        ] {
            let [found] = &points(rows)[..] else { panic!("{rows:?}: {:?}", points(rows)) };
            assert!(found.starts_with(says), "{found}");
        }
    }

    #[test]
    fn the_error_for_a_misspelt_distribution_name_suggests_the_most_similar_known_name() {
        let words = |name: &str| resolved(&SizeOptions::Named(name.to_string())).1.join("\n");
        assert!(
            words("web_serch")
                .starts_with("sizes = \"web_serch\" is not a distribution; did you mean \"web_search\"? It")
        );
        assert!(words("20 kilo").contains("a size such as \"20kB\""));
        assert!(words("mine.csv").contains("is a file, which only the Python package reads"));
        let size = |bytes| resolved(&SizeOptions::Constant(Bytes { bytes })).1;
        assert_eq!((size(1), size(0).len(), size(MAX_FILE + 1).len()), (Vec::new(), 1, 1));
    }
}
