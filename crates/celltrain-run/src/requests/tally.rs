//! Counts of requests by class of sizes and completion time. The counts take much less memory than a record of each
//! request.
//!
//! The counts are exact: completion times that differ by a unit of the clock are counted separately. For slowdowns,
//! requests with different kinds of paths or numbers of segments are counted separately too. So memory grows with the
//! number of different combinations instead of the number of requests.

use std::collections::HashMap;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::events::Observer;
use celltrain_core::network::Network;
use celltrain_core::probe::Probe;
use celltrain_core::requests::{GroupIndex, GroupResult, RequestRecord};
use celltrain_core::units::{Clock, Span, Time};
use celltrain_scenario::scenario::MeasureOptions;
use typed_index_collections::{TiSlice, TiVec, ti_vec};

use super::alone::{PathKind, Paths, Unloaded};
use super::{Counted, SizeMeasures, Statistics, milliseconds};

/// Counts of the requests that opened in the measured time.
///
/// As the probe of a run, the tally counts each request that closes, if the network does not keep a record of the
/// request.
pub struct Tally<'a> {
    network: &'a Network,
    clock: Clock,
    limits: Limits,
    /// Requests that open at or before this time are not counted.
    after: Option<Time>,
    /// Requests that open after this time are not counted.
    until: Time,
    /// The end of the run. Requests that open at this instant are not counted.
    end: Time,
    paths: Option<Paths<'a>>,
    groups: TiVec<GroupIndex, [Counts; 3]>,
}

impl<'a> Tally<'a> {
    /// Creates the tally of a run before it starts. Slowdowns can be computed from the tally only if `with_paths` is
    /// true.
    pub fn new(network: &'a Network, options: &MeasureOptions, with_paths: bool) -> Self {
        let clock = network.clock();
        let end = clock.time(network.duration);
        Self {
            network,
            clock,
            limits: Limits { short: options.short().bytes, long: options.long().bytes },
            after: network.measure.from.map(|from| clock.time(from)),
            until: network.measure.to.map_or(end, |to| clock.time(to)),
            end,
            paths: with_paths.then(|| Paths::of(network)),
            groups: ti_vec![Default::default(); network.requests.groups.len()],
        }
    }

    /// Counts the requests that have records in the result of the run.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the token is cancelled.
    pub fn add_records(
        &mut self,
        groups: &TiSlice<GroupIndex, GroupResult>,
        token: &CancellationToken<'_>,
    ) -> Result<(), Interrupted> {
        for (number, group) in groups.iter_enumerated() {
            for record in &group.records {
                token.tick(1)?;
                self.add(number, record);
            }
        }
        Ok(())
    }

    fn add(&mut self, group: GroupIndex, record: &RequestRecord) {
        let is_early = self.after.is_some_and(|after| record.opened <= after);
        if is_early || record.opened > self.until || record.opened >= self.end {
            return;
        }
        let counts = &mut self.groups[group][self.limits.class(record.bytes) as usize];
        counts.opened += 1;
        counts.retransmitted_segments += u64::from(record.retransmitted_segments);
        counts.timeouts += u64::from(record.timeouts);
        counts.hides_segments |= record.completed().is_some() && record.segments_sent == 0;
        let kind = self.paths.as_mut().map(|paths| paths.add(group, record));
        let (times, until) = match record.completed() {
            Some(completed) => (&mut counts.completed, completed),
            None => (&mut counts.open, self.end),
        };
        *times.entry((until - record.opened, kind)).or_default() += 1;
    }

    /// Returns the paths of the requests, for simulations of each request without other traffic.
    pub fn take_paths(&mut self) -> Option<Paths<'a>> {
        self.paths.take()
    }

    /// Returns four measures of a group: for all requests, short requests, medium requests and long requests.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the token is cancelled.
    pub(super) fn measures(
        &self,
        group: GroupIndex,
        alone: Option<&Unloaded<'_>>,
        token: &CancellationToken<'_>,
    ) -> Result<[SizeMeasures; 4], Interrupted> {
        let mut all = Values::default();
        let mut by_class: [Values; 3] = Default::default();
        for (counts, values) in self.groups[group].iter().zip(&mut by_class) {
            values.collect(counts, self.clock, alone, token)?;
            all.extend(values);
        }
        let [short, medium, long] = by_class.map(Values::measures);
        Ok([all.measures(), short, medium, long])
    }
}

impl Observer for Tally<'_> {
    fn on_request_closed(&mut self, group: GroupIndex, record: &RequestRecord) {
        if self.network.requests.drops_closed {
            self.add(group, record);
        }
    }
}

impl Probe for Tally<'_> {}

/// Counts of the requests of one class of sizes.
#[derive(Clone, Default)]
struct Counts {
    opened: u64,
    retransmitted_segments: u64,
    timeouts: u64,
    /// True if the number of segments of a completed request is unknown, because its stack sends neither TCP nor UDP.
    hides_segments: bool,
    /// Number of requests with each completion time.
    completed: Times,
    /// Number of requests that are open at the end of the run, by age.
    open: Times,
}

/// Number of requests by time, and for slowdowns also by kind of path and number of segments.
type Times = HashMap<(Span, Option<PathKind>), u64>;

/// Values of the requests of one or more size classes. Each distinct value is stored with the number of times it
/// occurred.
#[derive(Default)]
struct Values {
    opened: u64,
    retransmitted_segments: u64,
    timeouts: u64,
    hides_segments: bool,
    completed: u64,
    completions_ms: Counted,
    slowdowns: Counted,
    /// Lower bounds of the values of open requests.
    open_ms: Counted,
    open_slowdowns: Counted,
}

impl Values {
    fn collect(
        &mut self,
        counts: &Counts,
        clock: Clock,
        alone: Option<&Unloaded<'_>>,
        token: &CancellationToken<'_>,
    ) -> Result<(), Interrupted> {
        (self.opened, self.retransmitted_segments, self.timeouts) =
            (counts.opened, counts.retransmitted_segments, counts.timeouts);
        self.hides_segments = counts.hides_segments;
        // The order of a hash map has no effect, because values are sorted.
        for (&(took, kind), &times) in &counts.completed {
            token.tick(1)?;
            self.completed += times;
            self.completions_ms.push((milliseconds(took, clock), times));
            let slowdown = alone.zip(kind).and_then(|(alone, kind)| alone.slowdown_of(kind, took, clock));
            self.slowdowns.extend(slowdown.map(|slowdown| (slowdown, times)));
        }
        for (&(age, kind), &times) in &counts.open {
            token.tick(1)?;
            self.open_ms.push((milliseconds(age, clock), times));
            // An open request that would be incomplete even without other traffic gives no lower bound of its slowdown.
            let slowdown = alone.zip(kind).map(|(alone, kind)| alone.slowdown_of(kind, age, clock).unwrap_or(0.0));
            self.open_slowdowns.extend(slowdown.map(|slowdown| (slowdown, times)));
        }
        Ok(())
    }

    fn extend(&mut self, other: &Self) {
        self.opened += other.opened;
        self.retransmitted_segments += other.retransmitted_segments;
        self.timeouts += other.timeouts;
        self.hides_segments |= other.hides_segments;
        self.completed += other.completed;
        self.completions_ms.extend(&other.completions_ms);
        self.slowdowns.extend(&other.slowdowns);
        self.open_ms.extend(&other.open_ms);
        self.open_slowdowns.extend(&other.open_slowdowns);
    }

    fn measures(self) -> SizeMeasures {
        SizeMeasures {
            opened: self.opened,
            completed: self.completed,
            retransmitted_segments: self.retransmitted_segments,
            timeouts: self.timeouts,
            hides_segments: self.hides_segments,
            completion_ms: Statistics::of(self.completions_ms, self.open_ms),
            slowdown: Statistics::of(self.slowdowns, self.open_slowdowns),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Short,
    Medium,
    Long,
}

/// Limits of the size classes, in bytes.
#[derive(Clone, Copy, Debug)]
struct Limits {
    short: u64,
    long: u64,
}

impl Limits {
    fn class(self, bytes: u64) -> Class {
        match bytes {
            bytes if bytes <= self.short => Class::Short,
            bytes if bytes > self.long => Class::Long,
            _ => Class::Medium,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_whose_size_is_the_boundary_of_two_size_classes_belongs_to_the_smaller_class() {
        let limits = Limits { short: 100, long: 1000 };
        assert_eq!(
            [1, 100, 101, 1000, 1001].map(|bytes| limits.class(bytes)),
            [Class::Short, Class::Short, Class::Medium, Class::Medium, Class::Long]
        );
    }
}
