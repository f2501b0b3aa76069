//! Measures of a connection.

use celltrain_core::metrics::FlowResult;

use crate::measure::{Measure, When};

type Flow = Measure<FlowResult>;

/// Returns whether the numbers of segments are known: a stack may use a protocol that is neither TCP nor UDP.
const fn has_segments(flow: &FlowResult) -> bool {
    flow.segments_sent > 0 || flow.unknown_packets == 0
}

/// Measures of one connection.
pub const FLOW: &[Flow] = &[
    Flow::text("name", "the connection", |flow| &flow.name),
    Flow::number(
        "goodput_mbps",
        "Mb/s",
        "bytes handed to the application in order, each once, over the time that counts",
        |flow| Some(flow.goodput_mbps),
    )
    .printed("goodput Mb/s", When::Always),
    Flow::number(
        "throughput_mbps",
        "Mb/s",
        "payload of all segments that arrived whole, repetitions included; null if a stack sends neither TCP nor UDP",
        |flow| has_segments(flow).then_some(flow.throughput_mbps),
    ),
    Flow::count("delivered_bytes", "B", "bytes handed to the application", |flow| Some(flow.delivered_bytes)),
    Flow::count("segments_sent", "segments", "segments sent, retransmissions included; null as above", |flow| {
        has_segments(flow).then_some(flow.segments_sent)
    })
    .printed("segments sent", When::Always),
    Flow::count("retransmitted_segments", "segments", "segments sent again; null as above", |flow| {
        has_segments(flow).then_some(flow.retransmitted_segments)
    })
    .printed("retransmitted", When::Always),
    Flow::count("repeated_segments", "segments", "segments that arrived and held nothing new; null as above", |flow| {
        has_segments(flow).then_some(flow.repeated_segments)
    }),
    Flow::count("timeouts", "1", "times the retransmission timer ran out; null with a real stack", |flow| {
        flow.stack.is_empty().then_some(flow.timeouts)
    })
    .printed("timeouts", When::Always),
    Flow::count(
        "fast_retransmits",
        "1",
        "times duplicate acknowledgements started a retransmission; null with a real stack",
        |flow| flow.stack.is_empty().then_some(flow.fast_retransmits),
    )
    .printed("fast retransmits", When::Always),
    Flow::number(
        "cwnd_segments",
        "segments",
        "congestion window at the end; 0 without TCP; null if a real stack does not show it",
        |flow| (flow.stack.is_empty() || flow.cwnd_segments > 0.0).then_some(flow.cwnd_segments),
    ),
    Flow::count(
        "replaced_results",
        "1",
        "results of its congestion control's formulas that were not numbers and were replaced",
        |flow| Some(flow.replaced_results),
    )
    .printed("formula results replaced", When::Present),
    Flow::text("traffic", "what it has to send", |flow| flow.traffic),
    Flow::text(
        "stack",
        "real transport stack at its ends, with its version; empty with the simulation's own TCP",
        |flow| &flow.stack,
    )
    .printed("stack", When::Present),
    Flow::count("packets_sent", "packets", "packets put in; 0 with TCP", |flow| Some(flow.packets_sent))
        .printed("packets sent", When::Present),
    Flow::count("packets_delivered", "packets", "packets that arrived whole; 0 with TCP", |flow| {
        Some(flow.packets_delivered)
    })
    .printed("packets delivered", When::Present),
    Flow::number(
        "completion_s",
        "s",
        "from its start until all of a file was acknowledged; null while it is not",
        |flow| flow.completion_s,
    )
    .printed("completed after, s", When::Present),
    Flow::number(
        "file_delay_ms.mean",
        "ms",
        "mean delay of the files its stream is cut into; null where not asked for",
        |flow| flow.file_delay?.mean_ms,
    )
    .printed("file delay, ms", When::Present),
    Flow::number("file_delay_ms.median", "ms", "half of these files took no longer", |flow| flow.file_delay?.median_ms),
    Flow::number("file_delay_ms.p95", "ms", "95 % of these files took no longer", |flow| flow.file_delay?.p95_ms),
    Flow::count("file_delay_ms.files", "files", "files of its stream that are complete", |flow| {
        flow.file_delay.map(|delay| delay.files)
    }),
    Flow::number(
        "max_min_mbps",
        "Mb/s",
        "the goodput it would have at its max-min fair share of the network",
        |flow| Some(flow.max_min_mbps),
    )
    .printed("max-min Mb/s", When::Differs),
    Flow::number("rtt_ms_mean", "ms", "mean round-trip time", |flow| flow.delays.as_ref()?.rtt.mean_ms()).on_request(),
    Flow::number("rtt_ms_p50", "ms", "half of the segments had no longer round-trip time", |flow| {
        flow.delays.as_ref()?.rtt.percentile_ms(500)
    })
    .on_request(),
    Flow::number("rtt_ms_p95", "ms", "95 % of the segments had no longer round-trip time", |flow| {
        flow.delays.as_ref()?.rtt.percentile_ms(950)
    })
    .on_request(),
    Flow::number("rtt_ms_p99", "ms", "99 % of the segments had no longer round-trip time", |flow| {
        flow.delays.as_ref()?.rtt.percentile_ms(990)
    })
    .on_request(),
    Flow::number("rtt_ms_p999", "ms", "99.9 % of the segments had no longer round-trip time", |flow| {
        flow.delays.as_ref()?.rtt.percentile_ms(999)
    })
    .on_request(),
    Flow::number("delay_ms_mean", "ms", "mean one-way delay", |flow| flow.delays.as_ref()?.one_way.mean_ms())
        .on_request(),
    Flow::number("delay_ms_p50", "ms", "half of the packets had no longer one-way delay", |flow| {
        flow.delays.as_ref()?.one_way.percentile_ms(500)
    })
    .on_request(),
    Flow::number("delay_ms_p95", "ms", "95 % of the packets had no longer one-way delay", |flow| {
        flow.delays.as_ref()?.one_way.percentile_ms(950)
    })
    .on_request(),
    Flow::number("delay_ms_p99", "ms", "99 % of the packets had no longer one-way delay", |flow| {
        flow.delays.as_ref()?.one_way.percentile_ms(990)
    })
    .on_request(),
    Flow::number("delay_ms_p999", "ms", "99.9 % of the packets had no longer one-way delay", |flow| {
        flow.delays.as_ref()?.one_way.percentile_ms(999)
    })
    .on_request(),
    Flow::number("jitter_ms", "ms", "mean difference between the one-way delays of consecutive packets", |flow| {
        flow.delays.as_ref()?.jitter_ms
    })
    .on_request(),
];
