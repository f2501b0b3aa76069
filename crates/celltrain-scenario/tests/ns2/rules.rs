//! Rules of ns-2's TCP that celltrain does not follow by default, and that no setting of a test states.

use super::suites::Test;

/// A rule that ns-2's TCP follows.
pub(super) struct Rule {
    /// Name of the rule on the documentation page.
    pub(super) name: &'static str,
    /// Description of the behaviour of ns-2.
    pub(super) does: &'static str,
    /// TCP settings with which celltrain follows this rule of ns-2.
    pub(super) options: &'static str,
    /// File and function of ns-2 with this behaviour; `traces` if the behaviour was inferred from traces.
    pub(super) source: &'static str,
    /// Function that returns whether ns-2 follows the rule in a test.
    pub(super) concerns: fn(&Test) -> bool,
}

impl Rule {
    /// Returns whether the rule copies the losses at the bottleneck from the trace.
    pub(super) fn lists_losses(&self) -> bool {
        self.options.is_empty()
    }

    /// Returns whether the rule replaces an unmodelled feature, rather than describing ns-2's TCP.
    pub(super) fn is_substitute(&self) -> bool {
        self.lists_losses() || self.name == "no_timestamps"
    }
}

/// All rules of ns-2 that a run may need to equal a trace.
pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "end_grows",
        does: "The acknowledgement that ends fast recovery also increases cwnd.",
        options: "recovery.end = \"grow\"",
        source: "`tcp-reno.cc`, `tcp-newreno.cc`: `recv`",
        concerns: |test| ["reno", "newreno"].contains(&test.variant()) || test.tcp == "FullTcpSack1",
    },
    Rule {
        name: "below_two",
        does: "Fast recovery may halve cwnd to below two segments.",
        options: "recovery.window = \"half\"",
        source: "traces",
        concerns: |test| test.variant() != "tahoe",
    },
    Rule {
        name: "deflated_timeout",
        does: "A timeout in fast recovery computes ssthresh from cwnd before duplicate ACKs inflated it.",
        options: "windows.ssthresh_rule = \"half_of_deflated_window\"",
        source: "`tcp-reno.cc`: `timeout`",
        concerns: |test| ["reno", "newreno"].contains(&test.variant()),
    },
    Rule {
        name: "deflated_end",
        does: "A full acknowledgement does not restore the cwnd that partial acknowledgements deflated.",
        options: "recovery.full_acks = \"deflated\"",
        source: "`tcp-newreno.cc`: `recv`",
        concerns: |test| test.variant() == "newreno" && !test.is("exit_recovery_fix_"),
    },
    Rule {
        name: "two_at_once",
        does: "In fast recovery, each acknowledgement triggers at most two new segments.",
        options: "recovery.burst = 2",
        source: "`tcp-newreno.cc`: `recv`",
        concerns: |test| test.variant() == "newreno",
    },
    Rule {
        name: "sent_before",
        does: "Limited Transmit also resends segments that were sent before a timeout.",
        options: "recovery.limited_transmit = \"any\"",
        source: "traces",
        concerns: |test| test.is("singledup_"),
    },
    Rule {
        name: "ns2_pipe",
        does: "Pipe ignores first retransmissions and some duplicate ACKs. Timeouts also resend SACKed data.",
        options: "recovery.pipe = \"ns2\"",
        source: "`tcp-sack1.cc`: `recv`, `dupack_action`, `timeout`",
        concerns: |test| test.variant() == "sack_pipe",
    },
    Rule {
        name: "three_segments",
        does: "The duplicate-ACK heuristic accepts ACKs of at most three segments, not four.",
        options: "recovery.fast_retransmit = \"ack_heuristic_of_three\"",
        source: "`tcp-newreno.cc`: `dupack_action`",
        concerns: |test| test.is("bugFix_ack_"),
    },
    Rule {
        name: "no_timestamps",
        does: "After a timeout, timestamps identify unnecessary duplicate ACKs; the last acknowledgement does not.",
        options: "recovery.fast_retransmit = \"ack_heuristic_of_three\"",
        source: "`tcp-newreno.cc`: `dupack_action`",
        concerns: |test| test.is("bugFix_ts_"),
    },
    Rule {
        name: "whole_ticks",
        does: "Round-trip samples are rounded down to whole ticks, but are at least 1.",
        options: "timer.rtt_arithmetic = \"integers_from_zero\"",
        source: "`tcp.cc`: `rtt_update`",
        concerns: |_| true,
    },
    Rule {
        name: "repeated_acks",
        does: "The receiver may delay its ACK if it receives the last segment again.",
        options: "receiver.repeated_acks = \"delayed\"",
        source: "`tcp-sink.cc`: `DelAckSink::recv`",
        concerns: Test::delays_acks,
    },
    Rule {
        name: "red_losses",
        does: "Random losses of RED are copied from the trace.",
        options: "",
        source: "traces",
        concerns: |test| test.is("red"),
    },
    Rule {
        name: "rounding_losses",
        does: "Rounding of times decides which packet is lost, so losses come from the trace.",
        options: "",
        source: "traces",
        // This test suite traces packets at the sender, before packets are lost.
        concerns: |test| test.suite != "LimTransmit" && !test.is("red"),
    },
];
