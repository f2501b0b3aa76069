//! Native policies as formulas. A formula has the same operations in the same order as the native code, so the numbers
//! are identical.

use celltrain_core::policy::PolicyConfig;
use celltrain_core::scheduler::SchedulerConfig;
use serde_json::{Value, json};

use super::drawn::Draws;

/// Converts a native policy to a formula; `None` if this file has no formula for the policy.
pub(crate) fn as_formula(policy: &PolicyConfig) -> Option<PolicyConfig> {
    let settings = serde_json::to_value(policy).expect("the settings can be written as JSON");
    let own = &settings[policy.name()];
    // Computes a share of the buffer in cells, in the same way as native policies.
    let share = |key: &str| json!(format!("{} * K", own[key]));
    let constant = |key: &str| own[key].clone();
    // Converts a constant that is one number or a per-VC table to a table, so that a formula can sum it.
    let by_vc = |key: &str| if own[key].is_number() { json!({"default": own[key]}) } else { own[key].clone() };
    let (admit, constants) = match policy.name() {
        "selective_drop" => ("X <= R or Y * N / X <= Z", json!({"R": share("threshold"), "Z": constant("z")})),
        "fba" => ("X <= R or Y * N / X <= Z * (K - R) / (X - R)", json!({"R": share("threshold"), "Z": constant("z")})),
        "wba" => (
            "X <= R or Y * sum(W) / (W * X) <= Z",
            json!({"R": share("threshold"), "Z": constant("z"), "W": by_vc("weights")}),
        ),
        "dfba" => {
            let r = if own["congestion_threshold"].is_null() { json!("K") } else { constant("congestion_threshold") };
            (
                "if Y < Ri then true else if Y > Z * Ri or X >= R or tagged then false else \
                 let p = Ri / R * (Y - Ri) / (Ri * (Z - 1)); p == 0 or random() >= p",
                json!({"Ri": by_vc("thresholds"), "R": r, "Z": constant("z")}),
            )
        }
        "dfba_1998" => (
            "if X <= L then true else if X > H or tagged then false else \
             let p = if Y * sum(W) <= X * W then 0 else \
             Z * (alpha * ((Y - X * w) / (X * (1 - w))) + (1 - alpha) * ((X - L) / (H - L))); \
             p == 0 or random() >= p",
            json!({
                "L": share("low_threshold"),
                "H": share("high_threshold"),
                "alpha": constant("alpha"),
                "W": by_vc("weights"),
                "w": "W / sum(W)",
                "Z": if own["z"].is_null() { json!("1 - W / sum(W)") } else { constant("z") },
            }),
        ),
        _ => return None,
    };
    let formula = json!({"formula": {"admit": admit, "constants": constants}});
    Some(serde_json::from_value(formula).expect("a table of formulas has these keys"))
}

/// Converts weighted fair queuing to a formula whose constant is a table of weights.
pub(crate) fn weights_as_formula(scheduler: &SchedulerConfig) -> Option<SchedulerConfig> {
    let SchedulerConfig::Wfq(wfq) = scheduler else { return None };
    let weights = serde_json::to_value(&wfq.weights).expect("the settings can be written as JSON");
    let table = json!({"wfq_formula": {"weight": "W", "constants": {"W": weights}}});
    Some(serde_json::from_value(table).expect("a table of formulas has these keys"))
}

/// Draws a native policy with random settings, for ports crossed by a VC with this name.
pub(crate) fn drawn(draws: &mut Draws, vc: &str) -> Value {
    let mut share = || f64::from(draws.below(101)) / 100.0;
    let (a, b, c, z) = (share(), share(), share(), 3.0 * share());
    let weight = |i: u32| f64::from(1 + i) / 4.0;
    let weights = match draws.below(3) {
        0 => json!(weight(draws.below(20))),
        _ => {
            json!({vc: weight(draws.below(20)), "default": weight(draws.below(20))})
        }
    };
    match draws.below(5) {
        0 => json!({"selective_drop": {"threshold": a, "z": z}}),
        1 => json!({"fba": {"threshold": a, "z": z}}),
        2 => json!({"wba": {"threshold": a, "z": z, "weights": weights}}),
        3 => {
            let thresholds = match draws.below(2) {
                0 => json!(1 + draws.below(5)),
                _ => json!({vc: 1 + draws.below(9), "default": f64::from(1 + draws.below(5)) + 0.25}),
            };
            let congestion = if draws.below(2) == 0 { Value::Null } else { json!(100 + draws.below(60)) };
            json!({"dfba": {"thresholds": thresholds, "congestion_threshold": congestion, "z": 1.01 + z}})
        }
        _ => {
            let largest = if draws.below(2) == 0 { Value::Null } else { json!(c) };
            json!({"dfba_1998": {
                "weights": weights, "low_threshold": a.min(b), "high_threshold": a.max(b), "alpha": c, "z": largest,
            }})
        }
    }
}
