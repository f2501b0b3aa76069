//! Rules of ns-2's TCP that are neither settings of a test nor celltrain's defaults.

use super::suites::Test;

/// A rule of ns-2.
pub(super) struct Rule {
    /// Its name on the page.
    pub(super) name: &'static str,
    /// Description of ns-2's behaviour.
    pub(super) does: &'static str,
    /// Settings of a TCP with this behaviour here.
    pub(super) options: &'static str,
    /// Returns whether ns-2 follows the rule in a test.
    pub(super) concerns: fn(&Test) -> bool,
}

impl Rule {
    /// Returns whether the losses of the bottleneck are those of the trace.
    pub(super) fn lists_losses(&self) -> bool {
        self.options.is_empty()
    }
}

/// All rules.
pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "end grows",
        does: "The acknowledgement that ends fast recovery also grows cwnd.",
        options: "recovery_end = \"grow\"",
        concerns: |test| ["reno", "newreno"].contains(&test.variant()) || test.tcp == "FullTcpSack1",
    },
    Rule {
        name: "below two",
        does: "Fast recovery halves cwnd even below two segments.",
        options: "recovery_window = \"half\"",
        concerns: |test| test.variant() != "tahoe",
    },
    Rule {
        name: "deflated timeout",
        does: "A timeout during fast recovery sets ssthresh from cwnd without its inflation.",
        options: "ssthresh_rule = \"half_of_deflated_window\"",
        concerns: |test| ["reno", "newreno"].contains(&test.variant()),
    },
    Rule {
        name: "deflated end",
        does: "A full acknowledgement leaves the cwnd that partial ones have deflated.",
        options: "full_acks = \"deflated\"",
        concerns: |test| test.variant() == "newreno" && !test.is("exit_recovery_fix_"),
    },
    Rule {
        name: "two at once",
        does: "In fast recovery, an acknowledgement sends at most two new segments.",
        options: "recovery_burst = 2",
        concerns: |test| test.variant() == "newreno",
    },
    Rule {
        name: "sent before",
        does: "Limited Transmit also repeats segments that were sent before a timeout.",
        options: "limited_transmit = \"any\"",
        concerns: |test| test.is("singledup_"),
    },
    Rule {
        name: "Sack1",
        does: "The retransmission that starts a recovery leaves alone and uncounted. Duplicates without news do not count. A timeout sends reported data again.",
        options: "pipe = \"ns2\"",
        concerns: |test| test.variant() == "sack_pipe",
    },
    Rule {
        name: "three",
        does: "The heuristic for duplicates after a timeout allows acknowledgements of three segments, not four.",
        options: "fast_retransmit = \"ack_heuristic_of_three\"",
        concerns: |test| test.is("bugFix_ack_"),
    },
    Rule {
        name: "no timestamps",
        does: "Timestamps show whether duplicates follow a timeout. celltrain has no timestamps; the last acknowledgement decides.",
        options: "fast_retransmit = \"ack_heuristic_of_three\"",
        concerns: |test| test.is("bugFix_ts_"),
    },
    Rule {
        name: "whole ticks",
        does: "Round trips are whole ticks, counted from 0 and at least 1.",
        options: "rtt_arithmetic = \"integers_from_zero\"",
        concerns: |_| true,
    },
    Rule {
        name: "repeated",
        does: "The acknowledgement of a repetition of the last segment in order is delayed.",
        options: "repeated_acks = \"delayed\"",
        concerns: Test::delays_acks,
    },
    Rule {
        name: "listed losses",
        does: "RED's random numbers decide the losses, or the rounding of times if a packet arrives as another leaves.",
        options: "",
        // This suite traces the sender, in front of all losses.
        concerns: |test| test.suite != "LimTransmit",
    },
];
