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
    /// File and function of ns-2 in which it was read, or `traces` if it was inferred.
    pub(super) source: &'static str,
    /// Returns whether ns-2 follows the rule in a test.
    pub(super) concerns: fn(&Test) -> bool,
}

impl Rule {
    /// Returns whether the losses of the bottleneck are those of the trace.
    pub(super) fn lists_losses(&self) -> bool {
        self.options.is_empty()
    }

    /// Returns whether it stands for something that is not modelled, instead of a rule of ns-2's TCP.
    pub(super) fn is_substitute(&self) -> bool {
        self.lists_losses() || self.name == "no timestamps"
    }
}

/// All rules.
pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "end grows",
        does: "The acknowledgement that ends fast recovery also grows cwnd.",
        options: "recovery_end = \"grow\"",
        source: "`tcp-reno.cc`, `tcp-newreno.cc`: `recv`",
        concerns: |test| ["reno", "newreno"].contains(&test.variant()) || test.tcp == "FullTcpSack1",
    },
    Rule {
        name: "below two",
        does: "Fast recovery halves cwnd even below two segments.",
        options: "recovery_window = \"half\"",
        source: "traces",
        concerns: |test| test.variant() != "tahoe",
    },
    Rule {
        name: "deflated timeout",
        does: "A timeout during fast recovery sets ssthresh from cwnd without its inflation.",
        options: "ssthresh_rule = \"half_of_deflated_window\"",
        source: "`tcp-reno.cc`: `timeout`",
        concerns: |test| ["reno", "newreno"].contains(&test.variant()),
    },
    Rule {
        name: "deflated end",
        does: "A full acknowledgement leaves the cwnd that partial ones have deflated.",
        options: "full_acks = \"deflated\"",
        source: "`tcp-newreno.cc`: `recv`",
        concerns: |test| test.variant() == "newreno" && !test.is("exit_recovery_fix_"),
    },
    Rule {
        name: "two at once",
        does: "In fast recovery, an acknowledgement sends at most two new segments.",
        options: "recovery_burst = 2",
        source: "`tcp-newreno.cc`: `recv`",
        concerns: |test| test.variant() == "newreno",
    },
    Rule {
        name: "sent before",
        does: "Limited Transmit also repeats segments that were sent before a timeout.",
        options: "limited_transmit = \"any\"",
        source: "traces",
        concerns: |test| test.is("singledup_"),
    },
    Rule {
        name: "ns-2's pipe",
        does: "First retransmissions and some duplicates do not count; SACKed data is repeated after timeouts.",
        options: "pipe = \"ns2\"",
        source: "`tcp-sack1.cc`: `recv`, `dupack_action`, `timeout`",
        concerns: |test| test.variant() == "sack_pipe",
    },
    Rule {
        name: "three",
        does: "The heuristic for duplicates after a timeout allows acknowledgements of three segments, not four.",
        options: "fast_retransmit = \"ack_heuristic_of_three\"",
        source: "`tcp-newreno.cc`: `dupack_action`",
        concerns: |test| test.is("bugFix_ack_"),
    },
    Rule {
        name: "no timestamps",
        does: "Timestamps show whether duplicates follow a timeout. celltrain has no timestamps; the last acknowledgement decides.",
        options: "fast_retransmit = \"ack_heuristic_of_three\"",
        source: "`tcp-newreno.cc`: `dupack_action`",
        concerns: |test| test.is("bugFix_ts_"),
    },
    Rule {
        name: "whole ticks",
        does: "Round trips are whole ticks, counted from 0 and at least 1.",
        options: "rtt_arithmetic = \"integers_from_zero\"",
        source: "`tcp.cc`: `rtt_update`",
        concerns: |_| true,
    },
    Rule {
        name: "repeated",
        does: "The acknowledgement of a repetition of the last segment in order is delayed.",
        options: "repeated_acks = \"delayed\"",
        source: "`tcp-sink.cc`: `DelAckSink::recv`",
        concerns: Test::delays_acks,
    },
    Rule {
        name: "losses from the trace (RED)",
        does: "RED's random losses are copied, so only the TCP's reaction is compared.",
        options: "",
        source: "traces",
        concerns: |test| test.is("red"),
    },
    Rule {
        name: "losses from the trace (rounding)",
        does: "Rounded times decide which packet finds room; these losses are copied too.",
        options: "",
        source: "traces",
        // This suite traces the sender, in front of all losses.
        concerns: |test| test.suite != "LimTransmit" && !test.is("red"),
    },
];
