//! Measures of a group of requests.

use crate::measure::{Measure, When};
use crate::requests::GroupMeasures;

type Group = Measure<GroupMeasures>;

/// Creates the table of the measures of a group: those of the whole group, and for each class of sizes.
macro_rules! table {
    ($($class:ident: $what:literal;)+) => {
        &[
            Group::text("name", "the group", |group| &group.name),
            Group::count("opened", "1", "requests that opened", |group| Some(group.all.opened))
                .printed("opened", When::Always),
            Group::count("completed", "1", "requests among them whose receiver had the last byte at the end", |group| {
                Some(group.all.completed)
            })
            .printed("completed", When::Always),
            Group::count("open", "1", "requests that opened and were not complete at the end", |group| {
                Some(group.all.open())
            })
            .printed("open at the end", When::Always),
            Group::count("delivered_bytes", "B", "bytes passed to applications in the time that counts", |group| {
                Some(group.delivered_bytes)
            }),
            Group::number("goodput_mbps", "Mb/s", "bytes passed to applications, over the time that counts", |group| {
                Some(group.goodput_mbps)
            })
            .printed("goodput Mb/s", When::Always),
            Group::count("retransmitted_segments", "segments", "data segments sent again", |group| {
                Some(group.all.retransmitted_segments)
            })
            .printed("retransmitted", When::Always),
            Group::count("timeouts", "1", "times a retransmission timer ran out", |group| Some(group.all.timeouts))
                .printed("timeouts", When::Always),
            Group::number("retransmitted_per_request", "segments", "data segments sent again per request", |group| {
                group.all.per_request(group.all.retransmitted_segments)
            }),
            Group::number("timeouts_per_request", "1", "times a timer ran out per request", |group| {
                group.all.per_request(group.all.timeouts)
            }),
            $(
                Group::count(
                    concat!(stringify!($class), ".opened"),
                    "1",
                    concat!($what, " that opened"),
                    |group| Some(group.$class.opened),
                ),
                Group::count(
                    concat!(stringify!($class), ".completed"),
                    "1",
                    concat!($what, " among them that completed; those below are statistics of these"),
                    |group| Some(group.$class.completed),
                ),
                Group::number(
                    concat!(stringify!($class), ".completion_ms_mean"),
                    "ms",
                    concat!("mean time from the opening of ", $what, " until the receiver has the last byte"),
                    |group| group.$class.completion_ms.mean,
                ),
                Group::number(
                    concat!(stringify!($class), ".completion_ms_median"),
                    "ms",
                    "half of them took no longer",
                    |group| group.$class.completion_ms.median,
                ),
                Group::number(
                    concat!(stringify!($class), ".completion_ms_p95"),
                    "ms",
                    "95 % of them took no longer; null for fewer than 20",
                    |group| group.$class.completion_ms.p95,
                ),
                Group::number(
                    concat!(stringify!($class), ".completion_ms_p99"),
                    "ms",
                    "99 % of them took no longer; null for fewer than 100",
                    |group| group.$class.completion_ms.p99,
                ),
                Group::number(
                    concat!(stringify!($class), ".completion_ms_p999"),
                    "ms",
                    "99.9 % of them took no longer; null for fewer than 1000",
                    |group| group.$class.completion_ms.p999,
                ),
                Group::number(
                    concat!(stringify!($class), ".slowdown_mean"),
                    "1",
                    concat!("mean slowdown of ", $what, ": completion time over that of the same request alone"),
                    |group| group.$class.slowdown.mean,
                ),
                Group::number(
                    concat!(stringify!($class), ".slowdown_median"),
                    "1",
                    "half of the slowdowns are no larger",
                    |group| group.$class.slowdown.median,
                ),
                Group::number(
                    concat!(stringify!($class), ".slowdown_p95"),
                    "1",
                    "95 % of the slowdowns are no larger; null for fewer than 20",
                    |group| group.$class.slowdown.p95,
                ),
                Group::number(
                    concat!(stringify!($class), ".slowdown_p99"),
                    "1",
                    "99 % of the slowdowns are no larger; null for fewer than 100",
                    |group| group.$class.slowdown.p99,
                ),
                Group::number(
                    concat!(stringify!($class), ".slowdown_p999"),
                    "1",
                    "99.9 % of the slowdowns are no larger; null for fewer than 1000",
                    |group| group.$class.slowdown.p999,
                ),
            )+
            Group::count("queries.asked", "1", "queries; null unless the group is an incast", |group| {
                Some(group.queries.as_ref()?.asked)
            }),
            Group::count("queries.completed", "1", "queries among them with all answers at the end", |group| {
                Some(group.queries.as_ref()?.completed)
            }),
            Group::number(
                "queries.completion_ms_mean",
                "ms",
                "mean time from a query until the receiver has the last byte of the last answer",
                |group| group.queries.as_ref()?.completion_ms.mean,
            ),
            Group::number("queries.completion_ms_median", "ms", "half of the queries took no longer", |group| {
                group.queries.as_ref()?.completion_ms.median
            }),
            Group::number(
                "queries.completion_ms_p95",
                "ms",
                "95 % of the queries took no longer; null for fewer than 20",
                |group| group.queries.as_ref()?.completion_ms.p95,
            ),
            Group::number(
                "queries.completion_ms_p99",
                "ms",
                "99 % of the queries took no longer; null for fewer than 100",
                |group| group.queries.as_ref()?.completion_ms.p99,
            ),
            Group::number(
                "queries.completion_ms_p999",
                "ms",
                "99.9 % of the queries took no longer; null for fewer than 1000",
                |group| group.queries.as_ref()?.completion_ms.p999,
            ),
        ]
    };
}

/// Measures of one group of requests.
pub const REQUEST: &[Group] = table! {
    all: "requests";
    short: "short requests";
    medium: "requests that are neither short nor long";
    long: "long requests";
};
