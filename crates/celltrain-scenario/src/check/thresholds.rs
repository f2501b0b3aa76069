//! Warnings about thresholds that are valid but probably not intended.

use celltrain_core::threshold::Threshold;

/// Returns a hint if a threshold is probably not what the user meant, given a buffer of `capacity` cells: a small
/// number of cells may be meant as a percentage, 1 may be meant as one cell, and a tiny share may be a typing error.
pub(super) fn doubt(threshold: Threshold, capacity: u32) -> Option<String> {
    match threshold {
        Threshold::Whole(1) => {
            Some("1 is the whole buffer; write \"1 cell\" for one cell, or \"100%\" for the whole buffer".into())
        }
        Threshold::Whole(cells @ 2..) if f64::from(cells) < SMALL * f64::from(capacity) => {
            let part = percentage(f64::from(cells) / f64::from(capacity));
            Some(if cells <= 100 {
                format!(
                    "{cells} cells are only {part} of the buffer; if you meant a percentage, write {cells}%, otherwise \
                     \"{cells} cells\""
                )
            } else {
                format!("{cells} cells are only {part} of the buffer; write \"{cells} cells\" if that is intended")
            })
        }
        Threshold::Percent(percent) => tiny(percent, capacity, |meant| format!("{meant}%")),
        Threshold::Share(share) => tiny(share * 100.0, capacity, |meant| format!("{}", meant / 100.0)),
        _ => None,
    }
}

/// Part of the buffer below which a plain number of cells is doubtful.
const SMALL: f64 = 0.2;

/// Percentage below which a share of the buffer is doubtful.
const TINY: f64 = 2.0;

/// Returns a hint if a threshold of `percent` of the buffer is tiny. `write` formats a percentage in the user's
/// notation.
fn tiny(percent: f64, capacity: u32, write: impl Fn(f64) -> String) -> Option<String> {
    if percent <= 0.0 || percent >= TINY {
        return None;
    }
    let cells = Threshold::Percent(percent).cells(capacity);
    let cells = if cells == 1.0 { "1 cell".to_owned() } else { format!("{} cells", significant(cells)) };
    // A user who writes 0.8 % may mean 80 %, and a user who writes 1.5 % may mean 15 %.
    let meant = significant(percent * if percent <= 1.0 { 100.0 } else { 10.0 });
    let meant = write(meant.parse().unwrap_or(percent));
    let (percent, capacity) = (significant(percent), grouped(capacity));
    Some(format!("{percent} % of a buffer of {capacity} cells is only {cells}; did you mean {meant}?"))
}

/// Formats a number with at most three significant digits.
fn significant(number: f64) -> String {
    // The exponential format contains only significant digits.
    let rounded: f64 = format!("{number:.2e}").parse().unwrap_or(number);
    rounded.to_string()
}

/// Formats a number with thousands separators.
fn grouped(number: u32) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// Formats a share as a percentage, such as `8 %` or `0.25 %`.
fn percentage(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 0.01 {
        return "less than 0.01 %".into();
    }
    let decimals = match percent {
        ..0.1 => 3,
        ..1.0 => 2,
        _ => 1,
    };
    let digits = format!("{percent:.decimals$}");
    format!("{} %", digits.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_threshold_as_a_small_number_without_a_unit_gives_a_warning() {
        let doubt = |value: Value, k| doubt(serde_json::from_value(value).unwrap(), k);
        assert_eq!(
            doubt(json!(80), 1000).unwrap(),
            "80 cells are only 8 % of the buffer; if you meant a percentage, write 80%, otherwise \"80 cells\""
        );
        assert_eq!(
            doubt(json!(150), 1000).unwrap(),
            "150 cells are only 15 % of the buffer; write \"150 cells\" if that is intended"
        );
        assert!(doubt(json!(1), 1000).unwrap().starts_with("1 is the whole buffer; write \"1 cell\" for one cell"));
        for value in [
            json!(200),
            json!("80 cells"),
            json!("8%"),
            json!(0.08),
            json!("2%"),
            json!(0.02),
            json!("0%"),
            json!(0),
            json!(1.0),
            json!("buffer - 990"),
        ] {
            assert_eq!(doubt(value.clone(), 1000), None, "{value}");
        }
        for (value, k, question) in [
            (json!("0.8%"), 1000, "0.8 % of a buffer of 1,000 cells is only 8 cells; did you mean 80%?"),
            (json!(0.008), 1000, "0.8 % of a buffer of 1,000 cells is only 8 cells; did you mean 0.8?"),
            (json!("1.5%"), 1000, "1.5 % of a buffer of 1,000 cells is only 15 cells; did you mean 15%?"),
            (json!(0.001), 1_000_000, "0.1 % of a buffer of 1,000,000 cells is only 1000 cells; did you mean 0.1?"),
            (json!("1%"), 100, "1 % of a buffer of 100 cells is only 1 cell; did you mean 100%?"),
            (json!("0.01%"), 500, "0.01 % of a buffer of 500 cells is only 0.05 cells; did you mean 1%?"),
        ] {
            assert_eq!(doubt(value, k).unwrap(), question);
        }
        let parts = [
            (2, 1000, "0.2 %"),
            (25, 12_000, "0.21 %"),
            (33, 1000, "3.3 %"),
            (99, 500, "19.8 %"),
            (2, 3000, "0.067 %"),
            (2, 1 << 28, "less than 0.01 %"),
        ];
        for (cells, k, part) in parts {
            assert!(doubt(json!(cells), k).unwrap().contains(&format!("are only {part} of")), "{cells} of {k}");
        }
    }
}
