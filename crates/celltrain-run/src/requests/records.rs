//! The records of all requests of a run, as columns.

use std::collections::BTreeMap;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::index::VcIndex;
use celltrain_core::metrics::RunResult;
use celltrain_core::network::Network;
use celltrain_core::units::Time;

use super::alone::Unloaded;

/// The requests of a run that opened in the measured time, one per row, by group and in the order of opening.
#[derive(Debug, Default, PartialEq)]
pub struct Records {
    /// Names of the groups.
    pub groups: Vec<String>,
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// Names of the VCs that requests used.
    pub vcs: Vec<String>,
    /// Index of the group in `groups`.
    pub group: Vec<i32>,
    /// Number of the request within its group, from 0.
    pub number: Vec<i64>,
    /// Number of the query within the group, from 0; -1 if the group is not an incast.
    pub query: Vec<i64>,
    /// Index in `nodes` of the host that sends.
    pub from: Vec<i32>,
    /// Index in `nodes` of the host that receives.
    pub to: Vec<i32>,
    /// Index in `vcs` of the VC for the data.
    pub data_vc: Vec<i32>,
    /// Index in `vcs` of the VC for the acknowledgements.
    pub ack_vc: Vec<i32>,
    /// Number of bytes that the request transfers.
    pub bytes: Vec<i64>,
    /// Time at which the connection opened, in seconds.
    pub opened_s: Vec<f64>,
    /// Time at which the last byte arrived at the receiver, in seconds; NaN if it did not arrive.
    pub completed_s: Vec<f64>,
    /// The request's completion time divided by its completion time without other traffic; NaN if it did not complete.
    pub slowdown: Vec<f64>,
    /// Data segments sent, retransmissions included; -1 if the stack sends neither TCP nor UDP.
    pub segments_sent: Vec<i64>,
    /// Data segments retransmitted; -1 if the stack sends neither TCP nor UDP.
    pub retransmitted_segments: Vec<i64>,
    /// Expirations of the request's retransmission timer; -1 with a real stack.
    pub timeouts: Vec<i64>,
}

impl Records {
    /// Collects the records of a run. Requests that open at the last instant of the run are left out, as in the
    /// measures.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the token is cancelled.
    pub fn of(
        network: &Network,
        result: &RunResult,
        alone: &Unloaded<'_>,
        token: &CancellationToken<'_>,
    ) -> Result<Self, Interrupted> {
        let mut records = Self {
            groups: result.requests.iter().map(|group| group.name.clone()).collect(),
            nodes: network.nodes.iter().map(|node| node.name.clone()).collect(),
            ..Self::default()
        };
        let mut vcs: BTreeMap<VcIndex, i32> = BTreeMap::new();
        for (number, group) in result.requests.iter_enumerated() {
            let first = u64::from(group.first);
            let end = Time::default() + group.clock.span(network.duration);
            for (record, number_in_group) in group.records.iter().zip(first..).filter(|(record, _)| record.opened < end)
            {
                token.tick(1)?;
                let [data_vc, ack_vc] =
                    [record.data_vc(&network.requests), record.ack_vc(&network.requests)].map(|vc| {
                        *vcs.entry(vc).or_insert_with(|| {
                            records.vcs.push(network.vcs[vc].name.clone());
                            index(records.vcs.len() - 1)
                        })
                    });
                let pair = &network.requests.pairs[record.pair];
                records.group.push(index(usize::from(number)));
                records.number.push(count(number_in_group));
                records.query.push(record.query().map_or(-1, i64::from));
                records.from.push(index(usize::from(pair.from)));
                records.to.push(index(usize::from(pair.to)));
                records.data_vc.push(data_vc);
                records.ack_vc.push(ack_vc);
                records.bytes.push(count(record.bytes));
                records.opened_s.push(group.clock.seconds(record.opened));
                records.completed_s.push(record.completed().map_or(f64::NAN, |time| group.clock.seconds(time)));
                records.slowdown.push(alone.slowdown(number, record, group.clock).unwrap_or(f64::NAN));
                let is_hidden = record.completed().is_some() && record.segments_sent == 0;
                let segments = |count: u32| if is_hidden { UNKNOWN } else { i64::from(count) };
                records.segments_sent.push(segments(record.segments_sent));
                records.retransmitted_segments.push(segments(record.retransmitted_segments));
                let outside = network.requests.groups[number].outside;
                records.timeouts.push(if outside { UNKNOWN } else { i64::from(record.timeouts) });
            }
        }
        Ok(records)
    }
}

/// Placeholder for a count that a real stack does not report.
const UNKNOWN: i64 = -1;

fn index(place: usize) -> i32 {
    i32::try_from(place).expect("the number of rows is below 2^31")
}

fn count(number: u64) -> i64 {
    i64::try_from(number).expect("the counter is below 2^63")
}
