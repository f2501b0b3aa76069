//! All connections. The connections of flows exist from the start, and the connections of requests while they are open.
//!
//! Connections have running numbers: first the flows, by index, then the requests in the order of opening. No number is
//! used twice, so late frames and timers of a closed connection cannot affect another connection.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use typed_index_collections::TiVec;

use super::connection::Connection;
use crate::index::FlowIndex;
use crate::requests::{GroupIndex, RequestRecord};

pub(super) struct Connections {
    pub(super) flows: TiVec<FlowIndex, Connection>,
    open: Open,
}

pub(super) struct OpenRequest {
    pub(super) connection: Connection,
    pub(super) group: GroupIndex,
    /// Record of the request. The counters of segments are filled in when the request closes.
    pub(super) record: RequestRecord,
    /// Number of delivered bytes counted so far.
    pub(super) delivered: u64,
}

/// A table with an entry for every connection since the oldest open connection.
struct Open {
    /// Number of the connection in the first entry of `places`.
    first: u32,
    /// For each connection: its index in `slots`, or [`CLOSED`].
    places: VecDeque<u32>,
    slots: Vec<Option<OpenRequest>>,
    /// Indices of empty slots.
    free: Vec<u32>,
}

const CLOSED: u32 = u32::MAX;

impl Connections {
    pub(super) fn new(flows: TiVec<FlowIndex, Connection>) -> Self {
        let first = u32::try_from(flows.len()).expect("all indices fit in 32 bits");
        Self { flows, open: Open { first, places: VecDeque::new(), slots: Vec::new(), free: Vec::new() } }
    }

    /// Adds the connection of a request. Returns its number.
    pub(super) fn open(&mut self, request: OpenRequest) -> FlowIndex {
        let Open { first, places, slots, free } = &mut self.open;
        let place = free.pop().unwrap_or_else(|| {
            slots.push(None);
            u32::try_from(slots.len() - 1).expect("open connections fit in 32 bits")
        });
        slots[place as usize] = Some(request);
        let ahead = u32::try_from(places.len()).ok();
        let number = ahead.and_then(|ahead| first.checked_add(ahead)).filter(|&number| number < CLOSED);
        places.push_back(place);
        FlowIndex::new(number.expect("the number of requests in a run is below 2^32"))
    }

    /// Removes the connection of a request, which must be open.
    pub(super) fn close(&mut self, flow: FlowIndex) -> OpenRequest {
        let Open { first, places, slots, free } = &mut self.open;
        let place = std::mem::replace(&mut places[(flow.number() - *first) as usize], CLOSED);
        free.push(place);
        let closed = slots[place as usize].take().expect("the connection is open");
        while places.front() == Some(&CLOSED) {
            places.pop_front();
            *first += 1;
        }
        closed
    }

    #[inline]
    pub(super) fn is_request(&self, flow: FlowIndex) -> bool {
        usize::from(flow) >= self.flows.len()
    }

    #[inline]
    pub(super) fn has_closed(&self, flow: FlowIndex) -> bool {
        self.is_request(flow) && self.open.get(flow).is_none()
    }

    pub(super) fn request_mut(&mut self, flow: FlowIndex) -> Option<&mut OpenRequest> {
        self.open.get_mut(flow)
    }

    /// Returns the open connections of requests, in the order of opening.
    pub(super) fn requests(&self) -> impl Iterator<Item = (FlowIndex, &OpenRequest)> {
        let Open { first, places, slots, .. } = &self.open;
        let open = |(number, &place): (u32, &u32)| {
            let request = slots.get(place as usize)?.as_ref()?;
            Some((FlowIndex::new(number), request))
        };
        (*first..).zip(places).filter_map(open)
    }

    /// Returns the number of allocated connection slots and the length of the table.
    #[cfg(test)]
    pub(super) fn allocated(&self) -> [usize; 2] {
        [self.open.slots.len(), self.open.places.capacity()]
    }
}

impl Open {
    #[inline(never)]
    fn place(&self, flow: FlowIndex) -> Option<usize> {
        let place = *self.places.get(flow.number().checked_sub(self.first)? as usize)?;
        (place != CLOSED).then_some(place as usize)
    }

    fn get(&self, flow: FlowIndex) -> Option<&OpenRequest> {
        self.slots[self.place(flow)?].as_ref()
    }

    fn get_mut(&mut self, flow: FlowIndex) -> Option<&mut OpenRequest> {
        let place = self.place(flow)?;
        self.slots[place].as_mut()
    }

    #[cold]
    fn expect(&self, flow: FlowIndex) -> &Connection {
        &self.get(flow).expect(IS_OPEN).connection
    }

    #[cold]
    fn expect_mut(&mut self, flow: FlowIndex) -> &mut Connection {
        &mut self.get_mut(flow).expect(IS_OPEN).connection
    }
}

const IS_OPEN: &str = "only open connections send or receive";

impl Index<FlowIndex> for Connections {
    type Output = Connection;

    #[inline]
    fn index(&self, flow: FlowIndex) -> &Connection {
        match self.flows.get(flow) {
            Some(connection) => connection,
            None => self.open.expect(flow),
        }
    }
}

impl IndexMut<FlowIndex> for Connections {
    #[inline]
    fn index_mut(&mut self, flow: FlowIndex) -> &mut Connection {
        match self.flows.get_mut(flow) {
            Some(connection) => connection,
            None => self.open.expect_mut(flow),
        }
    }
}
