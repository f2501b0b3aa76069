//! Formulas equivalent to the usual congestion control with any options, and random formulas.

use celltrain_core::tcp::{
    Congestion, SlowStart, SsthreshArithmetic, SsthreshRule, TcpConfig, TcpOptions, WindowArithmetic,
};
use serde_json::{Value, json};

use super::drawn::{Draws, ONE_QUEUE};

/// Converts the usual congestion control of a TCP to formulas; `None` for any other congestion control.
pub(crate) fn as_formula(tcp: &TcpConfig) -> Option<TcpConfig> {
    let (options, rules) = (tcp.options(), tcp.options().window_rules());
    if options.congestion != Congestion::Jacobson {
        return None;
    }
    let below = if options.start_rules().slow_start == SlowStart::BelowSsthresh { "<" } else { "<=" };
    let grown = match rules.arithmetic {
        WindowArithmetic::Fractions => "1 / cwnd",
        WindowArithmetic::WholeBytes => "max(floor(mss / cwnd), 1 byte) / mss",
        WindowArithmetic::WholeBytesAndAnEighth => "(floor(mss / cwnd) + floor(mss / 8)) / mss",
    };
    let left = "min(cwnd, rwnd) / 2";
    let left = match rules.ssthresh_arithmetic {
        SsthreshArithmetic::Fractions => format!("max(2, {left})"),
        SsthreshArithmetic::WholeSegments => format!("max(2, floor({left}))"),
    };
    let after_loss = match tcp.name() {
        "tahoe" => "1".to_string(),
        "reno" | "newreno" => format!("{left} + 3"),
        _ => left.clone(),
    };
    let after_timeout = match rules.ssthresh_rule {
        SsthreshRule::HalfOfCwnd => "min(cwnd / 2, rwnd)",
        // These two rules differ only while cwnd is inflated, which formulas do not know. No random TCP uses them.
        SsthreshRule::HalfOfWindow | SsthreshRule::HalfOfDeflatedWindow => "min(cwnd, rwnd) / 2",
        SsthreshRule::HalfOfUsed => "min(cwnd, rwnd, flight) / 2",
        SsthreshRule::HalfOfFlight => "flight / 2",
        SsthreshRule::OpenWindow => "min(cwnd / 2, rwnd - flight)",
    };
    let formula = json!({
        "on_ack": {"cwnd": format!("if cwnd {below} ssthresh then cwnd + 1 else cwnd + {grown}")},
        "on_loss": {"ssthresh": left, "cwnd": after_loss},
        "on_timeout": {"ssthresh": after_timeout, "cwnd": "1"},
    });
    let formula = Some(serde_json::from_value(formula).expect("a table of congestion formulas has these keys"));
    let options = TcpOptions { congestion: Congestion::Formula, formula, ..options.clone() };
    TcpConfig::named(tcp.name(), options)
}

/// Draws a TCP with the usual congestion control and random options.
pub(crate) fn drawn(draws: &mut Draws) -> Value {
    let mut of = |choices: &[&str]| -> String {
        choices[draws.below(u32::try_from(choices.len()).expect("the length of this list fits in 32 bits")) as usize]
            .to_string()
    };
    let name = of(&["tahoe", "reno", "reno", "tahoe", "newreno", "newreno_hoe", "sack", "sack_pipe", "vanilla"]);
    json!({name: {
        "rules": "paper",
        "mss": of(&["64B", "512B", "1460B"]),
        "receive_window": of(&["20000B", "65535B"]),
        "timer_granularity": of(&["1ms", "2ms"]),
        "delayed_acks": of(&["off", "200ms", "timer"]),
        "timer": {"resolution": of(&["500us", "1ms"]), "initial_rto": "4ms"},
        "start": {"slow_start": of(&["below_ssthresh", "up_to_ssthresh"])},
        "windows": {
            "arithmetic": of(&["fractions", "fractions", "whole_bytes", "whole_bytes_and_an_eighth"]),
            "ssthresh_arithmetic": of(&["fractions", "whole_segments"]),
            "ssthresh_rule": of(&["half_of_cwnd", "half_of_window", "half_of_flight", "open_window"]),
            "growth": of(&["uncapped", "capped", "capped_by_field"]),
            "duplicate_acks": of(&["ignored", "ignored", "grow_window"]),
        },
        "receiver": {"delayed_ack_time": "3ms"},
    }})
}

/// Adds congestion windows to some scenarios, and weights to some scenarios, from random formulas.
pub(crate) fn with_random_ones(draws: &mut Draws, scenario: &mut Value, vc: &str) {
    if draws.below(2) == 0 {
        let (_, options) = scenario["tcp"]
            .as_object_mut()
            .and_then(|tcp| tcp.iter_mut().next())
            .expect("the scenario has a TCP table");
        let mss = options["mss"]
            .as_str()
            .and_then(|mss| mss.strip_suffix('B')?.parse().ok())
            .expect("the segment size is in bytes");
        options["congestion"] = json!("formula");
        options["formula"] = draws.control(mss);
        options["timer_granularity"] = json!("1ms");
        options["timer"]["initial_rto"] = json!("3ms");
    }
    let policy = &scenario["port"]["default"]["policy"]["formula"];
    let follows = ONE_QUEUE.iter().any(|event| !policy[event].is_null());
    // Add no weights if the policy tracks cells or pushes out cells, because such a policy requires a single queue.
    if !follows && policy["when_full"] != "push_out_front" && draws.below(3) == 0 {
        let weight = draws.weight(vc);
        scenario["port"]["default"]["scheduler"] = json!({"wfq_formula": weight});
    }
}
