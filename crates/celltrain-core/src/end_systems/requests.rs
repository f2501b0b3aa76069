//! Opens the connections of requests when they are due, closes them, and keeps a record of each request.
//!
//! Source: RFC 9293 (3.5) for the handshake; RFC 6298 for its timer; RFC 3168 (6.1.1): a SYN is not ECN-capable.
//! Differences from the source: a SYN-ACK is repeated only when another SYN arrives, and there are no FIN segments.

use typed_index_collections::{TiVec, ti_vec};

use super::clocks::{GroupClocks, HostClock, HostClocks};
use super::connection::{Connection, Seen};
use super::connections::{Connections, OpenRequest};
use super::sending::leave;
use super::{Body, Departure, EndSystems, OpenedOutside, emit};
use crate::aal5::Frame;
use crate::cell::FrameNumber;
use crate::coverage::reached;
use crate::events::{HandshakeStep, Observer, RequestStep};
use crate::fingerprint::Fingerprint;
use crate::index::{FlowIndex, VcIndex};
use crate::network::Network;
use crate::requests::arrivals::{Due, Opening, Schedule, path_key, paths};
use crate::requests::{self, Arrivals, GroupIndex, GroupResult, Pair, PairIndex, QueryRecord, RequestRecord};
use crate::rng::Stream;
use crate::tcp::{TcpConfig, TickPhase};
use crate::units::{Clock, Time};

pub(super) struct Requests {
    clock: Clock,
    pairs: TiVec<PairIndex, Pair>,
    groups: TiVec<GroupIndex, Group>,
    /// Time of the next request or query.
    next: Option<Time>,
    crosses_bottleneck: TiVec<VcIndex, bool>,
    drops_closed: bool,
    /// Connections with ends outside the simulation that have opened and that the caller has not retrieved.
    opened: Vec<OpenedOutside>,
    /// Fingerprint of all closed requests.
    fingerprint: Fingerprint,
}

struct Group {
    name: String,
    tcp: TcpConfig,
    opening: requests::Opening,
    outside: bool,
    /// Number of hosts that answer a query; 0 if the group is not an incast.
    senders: u32,
    schedule: Schedule,
    clocks: GroupClocks,
    path_key: u64,
    opened: u32,
    /// Records of closed requests in the order of closing, if records are kept.
    closed: Vec<RequestRecord>,
    queries: Vec<QueryRecord>,
    delivered_bytes: u64,
    bottleneck_bytes: u64,
}

impl Requests {
    /// Creates the requests of a network before the first one opens; `None` if the network has none.
    pub(super) fn new(network: &Network, clocks: &mut HostClocks, clock: Clock) -> Option<Self> {
        if network.requests.groups.is_empty() {
            return None;
        }
        let group = |group: &requests::RequestGroup| {
            let phase = group.tcp.options().timer_rules().tick_phase;
            assert_ne!(phase, TickPhase::Random, "a phase per connection would need a clock per connection");
            Group {
                name: group.name.clone(),
                tcp: group.tcp.clone(),
                opening: group.opening,
                outside: group.outside,
                senders: match group.arrivals {
                    Arrivals::Poisson { .. } => 0,
                    Arrivals::Incast { senders, .. } => senders,
                },
                schedule: Schedule::new(&network.requests, group, network.seed, clock),
                clocks: clocks.of_group(network, group, clock),
                path_key: path_key(network.seed, group),
                opened: 0,
                closed: Vec::new(),
                queries: Vec::new(),
                delivered_bytes: 0,
                bottleneck_bytes: 0,
            }
        };
        let mut requests = Self {
            clock,
            pairs: network.requests.pairs.clone(),
            groups: network.requests.groups.iter().map(group).collect(),
            next: None,
            crosses_bottleneck: network.vcs.iter().map(|vc| vc.path.contains(&network.bottleneck)).collect(),
            drops_closed: network.requests.drops_closed,
            opened: Vec::new(),
            fingerprint: Fingerprint::default(),
        };
        requests.schedule();
        Some(requests)
    }

    /// Returns the time of the next request or query, if there is one.
    pub(super) fn next(&self) -> Option<Time> {
        self.next
    }

    pub(super) fn has_opened(&self) -> bool {
        !self.opened.is_empty()
    }

    pub(super) fn take_opened(&mut self) -> Vec<OpenedOutside> {
        std::mem::take(&mut self.opened)
    }

    fn schedule(&mut self) {
        self.next = self.groups.iter().filter_map(|group| group.schedule.next()).min();
    }

    /// Returns the next connection that opens at `now`, with its group. Records queries that begin before that
    /// connection opens.
    fn take_due(&mut self, now: Time) -> Option<(GroupIndex, Opening)> {
        for (number, group) in self.groups.iter_mut_enumerated() {
            while let Some(due) = group.schedule.take_due(now) {
                match due {
                    Due::Query(receiver) => group.queries.push(QueryRecord::new(now, receiver)),
                    Due::Opening(opening) => return Some((number, opening)),
                }
            }
        }
        None
    }

    /// Returns the results so far. `open` contains the connections that have not closed.
    fn results<'a>(&self, open: impl Iterator<Item = &'a OpenRequest>) -> TiVec<GroupIndex, GroupResult> {
        let result = |group: &Group| GroupResult {
            name: group.name.clone(),
            clock: self.clock,
            first: 0,
            opened: u64::from(group.opened),
            delivered_bytes: group.delivered_bytes,
            bottleneck_bytes: group.bottleneck_bytes,
            records: group.closed.clone(),
            first_query: 0,
            queries: group.queries.clone(),
        };
        let mut results: TiVec<GroupIndex, GroupResult> = self.groups.iter().map(result).collect();
        for request in open {
            results[request.group].records.push(request.record());
        }
        for group in &mut results {
            group.records.sort_unstable_by_key(|record| record.number);
        }
        results
    }

    /// Folds the results into `fingerprint`.
    pub(super) fn fold_into(&self, fingerprint: &mut Fingerprint, connections: &Connections) {
        for group in &self.groups {
            fingerprint.fold_all([group.delivered_bytes, group.bottleneck_bytes, u64::from(group.opened)]);
            group.queries.iter().for_each(|query| fingerprint.fold_all(query.numbers()));
        }
        fingerprint.fold(self.fingerprint.value());
        for (flow, request) in connections.requests() {
            request.fold_into(fingerprint, flow);
        }
    }
}

impl EndSystems {
    pub(super) fn open_requests(&mut self, now: Time, observer: &mut impl Observer, out: &mut Vec<Departure>) {
        while let Some(requests) = &mut self.requests
            && let Some((group, opening)) = requests.take_due(now)
        {
            self.open(group, opening, now, observer, out);
        }
        if let Some(requests) = &mut self.requests {
            requests.schedule();
        }
    }

    fn open(
        &mut self,
        number_of_group: GroupIndex,
        opening: Opening,
        now: Time,
        observer: &mut impl Observer,
        out: &mut Vec<Departure>,
    ) {
        let Requests { clock, pairs, groups, opened, .. } = &mut **self.requests.as_mut().expect(HAS_REQUESTS);
        let group = &mut groups[number_of_group];
        let Opening { pair, bytes, query } = opening;
        let number = group.opened;
        group.opened = number.checked_add(1).expect("the number of requests in a run is below 2^32");
        let ends = &pairs[pair];
        let [there, back] = [&ends.vcs, &pairs[ends.back].vcs];
        let paths = paths(group.path_key, number, [there.len(), back.len()]);
        let vcs = [there[paths[0]], back[paths[1]]];
        let key = group.path_key;
        let mut connection = Connection::over_tcp(&group.tcp, &self.aal5, *clock, vcs, bytes, now)
            .drawing_from(|| Stream::new(key, &format!("request/{number}/congestion")));
        connection.outside = group.outside.then(Box::default);
        let record = RequestRecord::new(now, number, opening, paths);
        let flow = self.connections.open(OpenRequest { connection, group: number_of_group, record, delivered: 0 });
        for clock in group.clocks.of([ends.from, ends.to]) {
            self.clocks[clock].flows.push(flow);
        }
        let step = RequestStep::Opened { group: number_of_group, number, pair, vcs, bytes, query };
        emit::request(flow, step, now, observer);
        if group.outside {
            opened.push(OpenedOutside { flow, group: number_of_group, number, vcs, bytes });
            return;
        }
        let before = emit::before(&self.connections, flow, observer);
        match group.opening {
            requests::Opening::Handshake => {
                self.connections[flow].sender.open(now);
                self.send_syn(flow, false, now, observer, out);
            }
            requests::Opening::Open => self.send(flow, now, observer, out),
        }
        self.emit_timers(flow, before, now, observer);
    }

    /// Sends or retransmits the SYN of a connection.
    pub(super) fn send_syn(
        &mut self,
        flow: FlowIndex,
        is_repeated: bool,
        now: Time,
        observer: &mut impl Observer,
        out: &mut Vec<Departure>,
    ) {
        let Connection { data_vc, ack_cells, ref sender, .. } = self.connections[flow];
        let capable = sender.opens_capable();
        let departure = self.vcs.put(data_vc, Frame::new(ack_cells, Body::Syn { flow }), None).with_capable(capable);
        leave(&mut self.processing, departure, now, out);
        self.emit_handshake(
            (flow, departure.last.frame),
            data_vc,
            (HandshakeStep::SynSent { is_repeated }, false),
            now,
            observer,
        );
    }

    /// Returns whether an arriving frame belongs to an open connection. Discards the SACK blocks of frames before
    /// `oldest`.
    #[inline(never)]
    pub(super) fn is_expected(&mut self, sender: VcIndex, number: FrameNumber, oldest: FrameNumber) -> bool {
        if let Some(blocks) = self.vcs.blocks(sender) {
            // Forget old SACK blocks now, because the VC may later carry only data, without blocks, for a long time.
            blocks.forget_before(oldest);
        }
        match self.vcs.get(sender).log.frame(number).body {
            Body::Data { flow, .. } | Body::Ack { flow, .. } | Body::Syn { flow } | Body::SynAck { flow } => {
                !self.connections.has_closed(flow)
            }
            Body::Packet { .. } | Body::Damaged { .. } | Body::Outside { .. } => true,
        }
    }

    /// Delivers a SYN. The receiver answers every SYN.
    pub(super) fn deliver_syn(
        &mut self,
        (flow, number, marked): (FlowIndex, FrameNumber, bool),
        now: Time,
        observer: &mut impl Observer,
        out: &mut Vec<Departure>,
    ) {
        let connection = &mut self.connections[flow];
        connection.sees(Seen::Syn, now, 0);
        let Connection { data_vc, ack_vc, ack_cells, .. } = *connection;
        let capable = connection.sender.opens_capable();
        self.emit_handshake((flow, number), data_vc, (HandshakeStep::SynArrived, marked), now, observer);
        let departure = self.vcs.put(ack_vc, Frame::new(ack_cells, Body::SynAck { flow }), None).with_capable(capable);
        leave(&mut self.processing, departure, now, out);
        self.emit_handshake((flow, departure.last.frame), ack_vc, (HandshakeStep::SynAckSent, false), now, observer);
    }

    /// Delivers a SYN-ACK. The first one opens the connection at the sender, whose data then carries the ACK.
    pub(super) fn deliver_syn_ack(
        &mut self,
        (flow, number, marked): (FlowIndex, FrameNumber, bool),
        now: Time,
        observer: &mut impl Observer,
        out: &mut Vec<Departure>,
    ) {
        let before = emit::before(&self.connections, flow, observer);
        let connection = &mut self.connections[flow];
        connection.sees(Seen::SynAck, now, 0);
        let opens = connection.sender.is_opening();
        if opens {
            connection.sender.on_opened(now);
        }
        reached!(SynAckRepeated if !opens);
        let ack_vc = connection.ack_vc;
        self.emit_handshake((flow, number), ack_vc, (HandshakeStep::SynAckArrived, marked), now, observer);
        if opens {
            self.send(flow, now, observer, out);
        }
        self.emit_timers(flow, before, now, observer);
    }

    /// Counts the bytes that are new to the receiver of a request. They may complete the request.
    pub(super) fn on_progress(&mut self, flow: FlowIndex, now: Time, observer: &mut impl Observer) {
        let request = self.connections.request_mut(flow).expect(
            "a request exists after the arrival of its first \
            segment",
        );
        let connection = &request.connection;
        let delivered = match &connection.outside {
            None => connection.receiver.delivered(),
            Some(outside) => outside.delivered_bytes,
        };
        let bytes = delivered - std::mem::replace(&mut request.delivered, delivered);
        let Requests { groups, crosses_bottleneck, .. } = &mut **self.requests.as_mut().expect(HAS_REQUESTS);
        let group = &mut groups[request.group];
        group.delivered_bytes += bytes;
        if crosses_bottleneck[connection.data_vc] {
            group.bottleneck_bytes += bytes;
        }
        let record = &mut request.record;
        if delivered >= record.bytes && record.completed().is_none() {
            record.complete(now);
            if let Some(query) = record.query() {
                group.queries[query as usize].count_answer(group.senders, now);
            }
            emit::request(flow, RequestStep::Completed, now, observer);
        }
    }

    /// Closes the connection of a request. Its sender knows that all data has arrived.
    pub(super) fn close(&mut self, flow: FlowIndex, now: Time, observer: &mut impl Observer) {
        self.emit_stopped_timers(flow, now, observer);
        let request = self.connections.close(flow);
        let record = request.record();
        let requests = &mut **self.requests.as_mut().expect(HAS_REQUESTS);
        request.fold_into(&mut requests.fingerprint, flow);
        let Group { closed, clocks, .. } = &mut requests.groups[request.group];
        if !requests.drops_closed {
            closed.push(record);
        }
        observer.on_request_closed(request.group, &record);
        let Pair { from, to, .. } = requests.pairs[record.pair];
        for clock in clocks.of([from, to]) {
            leave_clock(&mut self.clocks[clock], flow);
        }
        emit::request(flow, RequestStep::Closed, now, observer);
    }

    /// Returns whether all requests and queries that opened up to an instant are complete.
    pub(crate) fn has_completed(&self, until: Time) -> bool {
        let mut open = self.connections.requests().map(|(_, request)| &request.record);
        let groups = self.requests.iter().flat_map(|requests| &requests.groups);
        let mut queries = groups.flat_map(|group| &group.queries);
        open.all(|record| record.opened > until || record.completed().is_some())
            && queries.all(|query| query.asked > until || query.completed().is_some())
    }

    /// Returns the results of requests so far, by group.
    pub fn request_results(&self) -> TiVec<GroupIndex, GroupResult> {
        let open = self.connections.requests().map(|(_, request)| request);
        self.requests.as_ref().map_or_else(|| ti_vec![], |requests| requests.results(open))
    }
}

const HAS_REQUESTS: &str = "a network with requests has connections";

/// Removes a connection from a clock's sorted list.
fn leave_clock(clock: &mut HostClock, flow: FlowIndex) {
    let place = clock.flows.binary_search(&flow).expect("every open connection is registered with its clocks");
    clock.flows.remove(place);
}

impl OpenRequest {
    /// Returns the request's record with its sender's current counters.
    fn record(&self) -> RequestRecord {
        let short = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let mut record = self.record;
        if let Some(outside) = &self.connection.outside {
            record.segments_sent = short(outside.segments_sent);
            record.retransmitted_segments = short(outside.retransmitted_segments);
            return record;
        }
        let sent = self.connection.sender.counters();
        record.segments_sent = short(sent.segments_sent);
        record.retransmitted_segments = short(sent.retransmitted_segments);
        record.timeouts = short(sent.timeouts);
        record
    }

    fn fold_into(&self, fingerprint: &mut Fingerprint, flow: FlowIndex) {
        let Connection { sender, receiver, outside, fingerprint: of_connection, .. } = &self.connection;
        fingerprint.fold_all([
            u64::from(flow.number()),
            of_connection.value(),
            receiver.delivered(),
            receiver.counters().segments,
            sender.cwnd().to_bits(),
        ]);
        fingerprint.fold_all(self.record().numbers());
        if let Some(outside) = outside {
            outside.fold_into(fingerprint);
        }
    }
}

/// For each VC, returns whether it carries acknowledgements of requests with SACK blocks.
pub(super) fn exchange_blocks(network: &Network, exchanges: &mut TiVec<VcIndex, bool>) {
    let requests = &network.requests;
    for group in requests.groups.iter().filter(|group| group.tcp.selective()) {
        for pair in group.pairs() {
            for &vc in &requests.pairs[requests.pairs[pair].back].vcs {
                exchanges[vc] = true;
            }
        }
    }
}

#[cfg(test)]
mod tests;
