//! Results of requests: a record for each request, and a record for each query.

use super::arrivals::Opening;
use super::{Pair, PairIndex, Requests};
use crate::index::{NodeIndex, VcIndex};
use crate::units::{Clock, Time};

/// The results of a group of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupResult {
    /// Its name.
    pub name: String,
    /// The clock that defines the times in the records.
    pub clock: Clock,
    /// Number of the first request within the group, from 0.
    pub first: u32,
    /// Number of requests that opened.
    pub opened: u64,
    /// Bytes that receivers have passed to their applications, for all requests of the group.
    pub delivered_bytes: u64,
    /// The part of `delivered_bytes` that crossed the network's bottleneck.
    pub bottleneck_bytes: u64,
    /// A record for each request that has opened, in order of opening; only for open requests if
    /// [`Requests::drops_closed`] is set.
    pub records: Vec<RequestRecord>,
    /// Number of the first query in `queries`, from 0.
    pub first_query: u32,
    /// The queries, if the group is an incast, in order.
    pub queries: Vec<QueryRecord>,
}

/// The result of a request. A run can have millions of them, so the record is small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRecord {
    /// Time at which the connection opened: with a SYN or, without a handshake, with the first data.
    pub opened: Time,
    /// Time at which the receiver had the last byte, or [`NEVER`].
    completed: Time,
    /// Number of requested bytes. TCP rounds it up to full segments.
    pub bytes: u64,
    /// The request's number within the group, from 0.
    pub number: u32,
    /// The pair of hosts of the request.
    pub pair: PairIndex,
    /// Number of the query within the group, or [`NO_QUERY`].
    query: u32,
    /// Number of data segments sent, including retransmissions. SYNs are not counted.
    pub segments_sent: u32,
    /// Number of data segments retransmitted.
    pub retransmitted_segments: u32,
    /// Number of times the retransmission timer expired, for the SYN or for data.
    pub timeouts: u32,
    /// Index of the data VC among the pair's VCs.
    data_path: u16,
    /// Index of the VC of the request's acknowledgements among the VCs of the reverse pair.
    ack_path: u16,
}

const _: () = assert!(size_of::<RequestRecord>() == 56, "a million take 56 MB");

/// Completion time of an incomplete request.
const NEVER: Time = Time(u64::MAX);
/// Query number of requests that belong to no query.
const NO_QUERY: u32 = u32::MAX;

impl RequestRecord {
    /// Creates the record of a request that opens now. `paths` has the index of its data VC among the VCs of its pair,
    /// and of its acknowledgements' VC among the VCs of the reverse pair.
    pub(crate) fn new(opened: Time, number: u32, Opening { pair, bytes, query }: Opening, paths: [usize; 2]) -> Self {
        let [data_path, ack_path] = paths.map(|path| u16::try_from(path).expect("a pair has fewer than 2^16 VCs"));
        Self {
            opened,
            completed: NEVER,
            bytes,
            number,
            pair,
            query: query.unwrap_or(NO_QUERY),
            segments_sent: 0,
            retransmitted_segments: 0,
            timeouts: 0,
            data_path,
            ack_path,
        }
    }

    /// Records that the receiver has the last byte.
    pub(crate) fn complete(&mut self, now: Time) {
        self.completed = now;
    }

    /// Returns when the receiver had the last byte; `None` if it did not by the end of the run.
    pub fn completed(&self) -> Option<Time> {
        (self.completed != NEVER).then_some(self.completed)
    }

    /// Returns the index, within the group, of the query to which the request belongs; `None` outside an incast.
    pub fn query(&self) -> Option<u32> {
        (self.query != NO_QUERY).then_some(self.query)
    }

    /// Returns the VC of the request's data.
    pub fn data_vc(&self, requests: &Requests) -> VcIndex {
        requests.pairs[self.pair].vcs[usize::from(self.data_path)]
    }

    /// Returns the VC of the request's acknowledgements.
    pub fn ack_vc(&self, requests: &Requests) -> VcIndex {
        let Pair { back, .. } = requests.pairs[self.pair];
        requests.pairs[back].vcs[usize::from(self.ack_path)]
    }

    /// Returns all fields of the record as numbers, for a fingerprint.
    pub(crate) fn numbers(&self) -> [u64; 8] {
        let halves = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        [
            self.opened.0,
            self.completed.0,
            self.bytes,
            halves(self.pair.number(), self.query),
            halves(self.segments_sent, self.retransmitted_segments),
            u64::from(self.timeouts),
            u64::from(self.data_path),
            u64::from(self.ack_path),
        ]
    }
}

/// The result of a query that several hosts answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryRecord {
    /// Time of the query.
    pub asked: Time,
    /// Time at which the receiver had the last byte of the last answer, or [`NEVER`].
    completed: Time,
    /// The host that receives the answers.
    pub receiver: NodeIndex,
    /// Number of answers.
    pub answers: u32,
}

impl QueryRecord {
    pub(crate) fn new(asked: Time, receiver: NodeIndex) -> Self {
        Self { asked, completed: NEVER, receiver, answers: 0 }
    }

    /// Returns all fields of the record as numbers, for a fingerprint.
    pub(crate) fn numbers(&self) -> [u64; 4] {
        [self.asked.0, self.completed.0, u64::from(self.receiver.number()), u64::from(self.answers)]
    }

    pub(crate) fn count_answer(&mut self, senders: u32, now: Time) {
        self.answers += 1;
        if self.answers == senders {
            self.completed = now;
        }
    }

    /// Returns when all answers were complete; `None` if some were still incomplete at the end of the run.
    pub fn completed(&self) -> Option<Time> {
        (self.completed != NEVER).then_some(self.completed)
    }
}
