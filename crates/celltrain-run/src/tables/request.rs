//! Measures of a group of requests.

use crate::measure::{Measure, When};
use crate::requests::GroupMeasures;

type Group = Measure<GroupMeasures>;

fn retransmitted(group: &GroupMeasures) -> Option<u64> {
    (!group.all.hides_segments).then_some(group.all.retransmitted_segments)
}

fn timeouts(group: &GroupMeasures) -> Option<u64> {
    group.stack.is_empty().then_some(group.all.timeouts)
}

/// Creates the table of a group's measures: measures of the whole group, and measures of each class of sizes.
macro_rules! table {
    ($($class:ident: $what:literal;)+) => {
        &[
            Group::text("name", "the group", |group| &group.name),
            Group::count("opened", "1", "requests that opened", |group| Some(group.all.opened))
                .printed("opened", When::Always),
            Group::count("completed", "1", "number of requests whose receiver had the last byte by the end", |group| {
                Some(group.all.completed)
            })
            .printed("completed", When::Always),
            Group::count("open", "1", "number of requests that opened but were not complete at the end", |group| {
                Some(group.all.open())
            })
            .printed("open at the end", When::Always),
            Group::count("delivered_bytes", "B", "bytes delivered to applications in the measured time", |group| {
                Some(group.delivered_bytes)
            }),
            Group::number("goodput_mbps", "Mb/s", "bytes delivered to applications in the measured time, per second", |group| {
                Some(group.goodput_mbps)
            })
            .printed("goodput Mb/s", When::Always),
            Group::count(
                "retransmitted_segments",
                "segments",
                "data segments retransmitted; null without TCP or UDP",
                |group| retransmitted(group),
            )
            .printed("retransmitted", When::Always),
            Group::count("timeouts", "1", "expiries of retransmission timers; null with a real stack", timeouts)
                .printed("timeouts", When::Always),
            Group::number("retransmitted_per_request", "segments", "data segments retransmitted per request", |group| {
                group.all.per_request(retransmitted(group)?)
            }),
            Group::number("timeouts_per_request", "1", "expiries of the retransmission timers per request", |group| {
                group.all.per_request(timeouts(group)?)
            }),
            Group::text("stack", "real transport stack, its version and changed settings; empty without one", |group| {
                &group.stack
            })
            .printed("stack", When::Present),
            $(
                Group::count(
                    concat!(stringify!($class), ".opened"),
                    "1",
                    concat!("number of opened ", $what),
                    |group| Some(group.$class.opened),
                ),
                Group::count(
                    concat!(stringify!($class), ".completed"),
                    "1",
                    concat!("number of completed ", $what),
                    |group| Some(group.$class.completed),
                ),
                Group::count(
                    concat!(stringify!($class), ".open"),
                    "1",
                    concat!("number of ", $what, " that were not complete at the end"),
                    |group| Some(group.$class.open()),
                ),
                Group::flag(
                    concat!(stringify!($class), ".censored"),
                    "whether a percentile is only a lower bound, because too many requests are open",
                    |group| Some(group.$class.censored().contains(&true)),
                ),
                Group::flag(
                    concat!(stringify!($class), ".median_censored"),
                    "whether the median is only a lower bound",
                    |group| Some(group.$class.censored()[0]),
                ),
                Group::flag(
                    concat!(stringify!($class), ".p95_censored"),
                    "whether the 95th percentile is only a lower bound",
                    |group| Some(group.$class.censored()[1]),
                ),
                Group::flag(
                    concat!(stringify!($class), ".p99_censored"),
                    "whether the 99th percentile is only a lower bound",
                    |group| Some(group.$class.censored()[2]),
                ),
                Group::flag(
                    concat!(stringify!($class), ".p999_censored"),
                    "whether the 99.9th percentile is only a lower bound",
                    |group| Some(group.$class.censored()[3]),
                ),
                Group::number(
                    concat!(stringify!($class), ".completion_ms_mean"),
                    "ms",
                    concat!("mean completion time of ", $what),
                    |group| group.$class.completion_ms.mean,
                ),
                Group::number(
                    concat!(stringify!($class), ".completion_ms_median"),
                    "ms",
                    "median completion time, from opening to the last byte",
                    |group| Some(group.$class.completion_ms.median?.value()),
                ),
                Group::number(
                    concat!(stringify!($class), ".completion_ms_p95"),
                    "ms",
                    "95th percentile of the completion time; null for fewer than 20 requests",
                    |group| Some(group.$class.completion_ms.p95?.value()),
                ),
                Group::number(
                    concat!(stringify!($class), ".completion_ms_p99"),
                    "ms",
                    "99th percentile of the completion time; null for fewer than 100 requests",
                    |group| Some(group.$class.completion_ms.p99?.value()),
                ),
                Group::number(
                    concat!(stringify!($class), ".completion_ms_p999"),
                    "ms",
                    "99.9th percentile of the completion time; null for fewer than 1000 requests",
                    |group| Some(group.$class.completion_ms.p999?.value()),
                ),
                Group::number(
                    concat!(stringify!($class), ".slowdown_mean"),
                    "1",
                    concat!("mean slowdown of ", $what),
                    |group| group.$class.slowdown.mean,
                ),
                Group::number(
                    concat!(stringify!($class), ".slowdown_median"),
                    "1",
                    "median slowdown: completion time relative to the same request alone",
                    |group| Some(group.$class.slowdown.median?.value()),
                ),
                Group::number(
                    concat!(stringify!($class), ".slowdown_p95"),
                    "1",
                    "95th percentile of the slowdown; null for fewer than 20 requests",
                    |group| Some(group.$class.slowdown.p95?.value()),
                ),
                Group::number(
                    concat!(stringify!($class), ".slowdown_p99"),
                    "1",
                    "99th percentile of the slowdown; null for fewer than 100 requests",
                    |group| Some(group.$class.slowdown.p99?.value()),
                ),
                Group::number(
                    concat!(stringify!($class), ".slowdown_p999"),
                    "1",
                    "99.9th percentile of the slowdown; null for fewer than 1000 requests",
                    |group| Some(group.$class.slowdown.p999?.value()),
                ),
            )+
            Group::count("queries.asked", "1", "number of queries; null unless the group is an incast", |group| {
                Some(group.queries.as_ref()?.asked)
            }),
            Group::count("queries.completed", "1", "number of queries with all answers by the end", |group| {
                Some(group.queries.as_ref()?.completed)
            }),
            Group::count("queries.open", "1", "number of queries that lacked an answer at the end", |group| {
                Some(group.queries.as_ref()?.open())
            }),
            Group::flag(
                "queries.censored",
                "whether a percentile is only a lower bound, because too many queries are open",
                |group| Some(group.queries.as_ref()?.completion_ms.censored().contains(&true)),
            ),
            Group::flag("queries.median_censored", "whether the median is only a lower bound", |group| {
                Some(group.queries.as_ref()?.completion_ms.censored()[0])
            }),
            Group::flag("queries.p95_censored", "whether the 95th percentile is only a lower bound", |group| {
                Some(group.queries.as_ref()?.completion_ms.censored()[1])
            }),
            Group::flag("queries.p99_censored", "whether the 99th percentile is only a lower bound", |group| {
                Some(group.queries.as_ref()?.completion_ms.censored()[2])
            }),
            Group::flag("queries.p999_censored", "whether the 99.9th percentile is only a lower bound", |group| {
                Some(group.queries.as_ref()?.completion_ms.censored()[3])
            }),
            Group::number(
                "queries.completion_ms_mean",
                "ms",
                "mean completion time of queries: opening to the last byte of all answers",
                |group| group.queries.as_ref()?.completion_ms.mean,
            ),
            Group::number("queries.completion_ms_median", "ms", "median completion time of queries", |group| {
                Some(group.queries.as_ref()?.completion_ms.median?.value())
            }),
            Group::number(
                "queries.completion_ms_p95",
                "ms",
                "95th percentile of the completion time of queries; null for fewer than 20 queries",
                |group| Some(group.queries.as_ref()?.completion_ms.p95?.value()),
            ),
            Group::number(
                "queries.completion_ms_p99",
                "ms",
                "99th percentile of the completion time of queries; null for fewer than 100 queries",
                |group| Some(group.queries.as_ref()?.completion_ms.p99?.value()),
            ),
            Group::number(
                "queries.completion_ms_p999",
                "ms",
                "99.9th percentile of the completion time of queries; null for fewer than 1000 queries",
                |group| Some(group.queries.as_ref()?.completion_ms.p999?.value()),
            ),
        ]
    };
}

/// Measures of one group of requests.
pub const REQUEST: &[Group] = table! {
    all: "requests";
    short: "short requests";
    medium: "medium requests";
    long: "long requests";
};
