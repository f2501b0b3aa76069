//! Measures of a connection.

use celltrain_core::metrics::FlowResult;

use crate::measure::{Measure, When};

type Flow = Measure<FlowResult>;

/// Measures of one connection.
pub const FLOW: &[Flow] = &[
    Flow::text("name", "the connection", |flow| &flow.name),
    Flow::number(
        "goodput_mbps",
        "Mb/s",
        "application bytes delivered in order in the measured time, per second",
        |flow| Some(flow.goodput_mbps),
    )
    .printed("goodput Mb/s", When::Always),
    Flow::number(
        "throughput_mbps",
        "Mb/s",
        "payload received per second, with duplicates; null without TCP or UDP",
        |flow| flow.has_segments().then_some(flow.throughput_mbps),
    ),
    Flow::count("delivered_bytes", "B", "bytes delivered to the application", |flow| Some(flow.delivered_bytes)),
    Flow::count(
        "segments_sent",
        "segments",
        "segments sent, retransmissions included; null without TCP or UDP",
        |flow| flow.has_segments().then_some(flow.segments_sent),
    )
    .printed("segments sent", When::Always),
    Flow::count("retransmitted_segments", "segments", "segments retransmitted; null without TCP or UDP", |flow| {
        flow.has_segments().then_some(flow.retransmitted_segments)
    })
    .printed("retransmitted", When::Always),
    Flow::count(
        "repeated_segments",
        "segments",
        "segments that arrived without new data; null without TCP or UDP",
        |flow| flow.has_segments().then_some(flow.repeated_segments),
    ),
    Flow::count("timeouts", "1", "expiries of the retransmission timer; null with a real stack", |flow| {
        flow.stack.is_empty().then_some(flow.timeouts)
    })
    .printed("timeouts", When::Always),
    Flow::count(
        "fast_retransmits",
        "1",
        "retransmissions started by duplicate acknowledgements; null with a real stack",
        |flow| flow.stack.is_empty().then_some(flow.fast_retransmits),
    )
    .printed("fast retransmits", When::Always),
    Flow::number(
        "cwnd_segments",
        "segments",
        "congestion window at the end; 0 without TCP; null if a stack hides it",
        |flow| (flow.stack.is_empty() || flow.cwnd_segments > 0.0).then_some(flow.cwnd_segments),
    ),
    Flow::count(
        "replaced_results",
        "1",
        "results of congestion control formulas that were not numbers and were replaced",
        |flow| Some(flow.replaced_results),
    )
    .printed("formula results replaced", When::Present),
    Flow::text("traffic", "kind of traffic of the flow", |flow| flow.traffic),
    Flow::text("stack", "real transport stack, its version and changed settings; empty without one", |flow| {
        &flow.stack
    })
    .printed("stack", When::Present),
    Flow::count("packets_sent", "packets", "packets sent; 0 with TCP", |flow| Some(flow.packets_sent))
        .printed("packets sent", When::Present),
    Flow::count("packets_delivered", "packets", "packets delivered; 0 with TCP", |flow| Some(flow.packets_delivered))
        .printed("packets delivered", When::Present),
    Flow::number(
        "completion_s",
        "s",
        "time from the start until the whole file was acknowledged; null if incomplete",
        |flow| flow.completion_s,
    )
    .printed("completed after, s", When::Present),
    Flow::number(
        "file_delay_ms.mean",
        "ms",
        "mean delay of the files in the flow's stream; null unless requested",
        |flow| flow.file_delay?.mean_ms,
    )
    .printed("file delay, ms", When::Present),
    Flow::number("file_delay_ms.median", "ms", "median delay of the files in the flow's stream", |flow| {
        flow.file_delay?.median_ms
    }),
    Flow::number("file_delay_ms.p95", "ms", "95th percentile of the delay of the files", |flow| {
        flow.file_delay?.p95_ms
    }),
    Flow::count("file_delay_ms.files", "files", "number of completed files in the flow's stream", |flow| {
        flow.file_delay.map(|delay| delay.files)
    }),
    Flow::number("max_min_mbps", "Mb/s", "goodput that the flow's max-min fair share of the network allows", |flow| {
        Some(flow.max_min_mbps)
    })
    .printed("max-min Mb/s", When::Differs),
    Flow::number("rtt_ms_mean", "ms", "mean round-trip time", |flow| flow.delays.as_ref()?.rtt.mean_ms()).on_request(),
    Flow::number("rtt_ms_p50", "ms", "median round-trip time of segments", |flow| {
        flow.delays.as_ref()?.rtt.percentile_ms(500)
    })
    .on_request(),
    Flow::number("rtt_ms_p95", "ms", "95th percentile of the round-trip time of segments", |flow| {
        flow.delays.as_ref()?.rtt.percentile_ms(950)
    })
    .on_request(),
    Flow::number("rtt_ms_p99", "ms", "99th percentile of the round-trip time of segments", |flow| {
        flow.delays.as_ref()?.rtt.percentile_ms(990)
    })
    .on_request(),
    Flow::number("rtt_ms_p999", "ms", "99.9th percentile of the round-trip time of segments", |flow| {
        flow.delays.as_ref()?.rtt.percentile_ms(999)
    })
    .on_request(),
    Flow::number("delay_ms_mean", "ms", "mean one-way delay", |flow| flow.delays.as_ref()?.one_way.mean_ms())
        .on_request(),
    Flow::number("delay_ms_p50", "ms", "median one-way delay of packets", |flow| {
        flow.delays.as_ref()?.one_way.percentile_ms(500)
    })
    .on_request(),
    Flow::number("delay_ms_p95", "ms", "95th percentile of the one-way delay of packets", |flow| {
        flow.delays.as_ref()?.one_way.percentile_ms(950)
    })
    .on_request(),
    Flow::number("delay_ms_p99", "ms", "99th percentile of the one-way delay of packets", |flow| {
        flow.delays.as_ref()?.one_way.percentile_ms(990)
    })
    .on_request(),
    Flow::number("delay_ms_p999", "ms", "99.9th percentile of the one-way delay of packets", |flow| {
        flow.delays.as_ref()?.one_way.percentile_ms(999)
    })
    .on_request(),
    Flow::number("jitter_ms", "ms", "mean difference of the one-way delays of consecutive packets", |flow| {
        flow.delays.as_ref()?.jitter_ms
    })
    .on_request(),
];
