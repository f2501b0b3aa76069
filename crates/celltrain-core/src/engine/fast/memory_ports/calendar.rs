//! The transmitters of a memory's ports: which of them are busy, and when the next becomes free.

use typed_index_collections::TiVec;

use crate::coverage::reached;
use crate::engine::fast::plan::MemoryPlace;
use crate::units::{Span, Time};

/// The busy ports, sorted by the time when they become free, and then by place.
///
/// A port that starts a cell is free again one cell time later. So ports of the same rate become free in the order in
/// which they start, and each rate's list stays sorted.
pub(super) struct Calendar {
    /// Index of each port's rate in `rates`, by place.
    rate_of: TiVec<MemoryPlace, u32>,
    rates: Vec<Rate>,
}

/// The busy ports of one rate, in a ring.
struct Rate {
    cell_time: Span,
    /// The number of places is a power of two. At least one place is unused, and contains [`Time::NEVER`].
    ring: Box<[(Time, MemoryPlace)]>,
    first: usize,
    end: usize,
}

const FREE: (Time, MemoryPlace) = (Time::NEVER, MemoryPlace::new(0));

impl Calendar {
    /// Creates the calendar of idle ports with the given cell times.
    pub(super) fn new(cell_times: impl ExactSizeIterator<Item = Span>) -> Self {
        let ports = cell_times.len();
        let mut rates: Vec<Rate> = Vec::new();
        let rate_of = |cell_time| {
            let known = rates.iter().position(|rate| rate.cell_time == cell_time);
            let rate = known.unwrap_or_else(|| {
                let ring = vec![FREE; (ports + 1).next_power_of_two()].into();
                rates.push(Rate { cell_time, ring, first: 0, end: 0 });
                rates.len() - 1
            });
            u32::try_from(rate).expect("the number of rates is at most the number of ports")
        };
        Self { rate_of: cell_times.map(rate_of).collect(), rates }
    }

    /// Returns the first time at which a busy port becomes free, or [`Time::NEVER`].
    #[inline]
    pub(super) fn first(&self) -> Time {
        match &self.rates[..] {
            [rate] => rate.first().0,
            rates => rates.iter().map(|rate| rate.first().0).min().unwrap_or(Time::NEVER),
        }
    }

    /// Removes the first port that becomes free before `until`, and returns when it becomes free.
    #[inline(always)]
    pub(super) fn take_before(&mut self, until: Time) -> Option<(Time, MemoryPlace)> {
        let due = match &mut self.rates[..] {
            [rate] => rate,
            rates => rates.iter_mut().min_by_key(|rate| rate.first())?,
        };
        let first = due.first();
        if first.0 >= until {
            return None;
        }
        due.take_first();
        Some(first)
    }

    /// Removes the first port that becomes free before `until`, and returns it with the time when it becomes free. If all
    /// ports have one rate, first makes ports busy again, in order, as long as `goes_on` is true for them.
    #[inline(always)]
    pub(super) fn restart_while(
        &mut self,
        until: Time,
        goes_on: impl FnMut(Time, MemoryPlace) -> bool,
    ) -> Option<(Time, MemoryPlace)> {
        match &mut self.rates[..] {
            [rate] => rate.restart_while(until, goes_on),
            _ => self.take_before(until),
        }
    }

    /// Makes an idle port busy from `now` on.
    #[inline(always)]
    pub(super) fn start(&mut self, place: MemoryPlace, now: Time) {
        self.rates[self.rate_of[place] as usize].start(place, now);
    }

    /// Makes an idle port busy until `free`, whatever its rate.
    pub(super) fn start_until(&mut self, place: MemoryPlace, free: Time) {
        self.rates[self.rate_of[place] as usize].put(free, place);
    }

    /// Returns the first time at which a busy port that satisfies `matters` becomes free.
    pub(super) fn first_of(&self, matters: impl Fn(MemoryPlace) -> bool) -> Option<Time> {
        let first = |rate: &Rate| rate.busy().find(|&(_, place)| matters(place)).map(|(time, _)| time);
        self.rates.iter().filter_map(first).min()
    }

    /// Returns the busy ports, each with the time when it becomes free and its cell time.
    pub(super) fn busy(&self) -> impl Iterator<Item = (Time, Span, MemoryPlace)> {
        self.rates.iter().flat_map(|rate| rate.busy().map(|(time, place)| (time, rate.cell_time, place)))
    }
}

impl Rate {
    #[inline]
    fn place(&self, i: usize) -> usize {
        i & (self.ring.len() - 1)
    }

    #[inline]
    fn first(&self) -> (Time, MemoryPlace) {
        self.ring[self.first]
    }

    #[inline]
    fn take_first(&mut self) {
        self.ring[self.first] = FREE;
        self.first = self.place(self.first + 1);
    }

    /// A variant of [`Calendar::restart_while`] for ports that all have this rate.
    #[inline(always)]
    fn restart_while(
        &mut self,
        until: Time,
        mut goes_on: impl FnMut(Time, MemoryPlace) -> bool,
    ) -> Option<(Time, MemoryPlace)> {
        loop {
            let (ring, mut first, mut end) = (&mut self.ring[..], self.first, self.end);
            let mask = ring.len() - 1;
            let stopped = loop {
                let (now, place) = ring[first & mask];
                if now >= until {
                    break None;
                }
                let (goes_on, free) = (goes_on(now, place), now + self.cell_time);
                ring[first & mask] = FREE;
                first = (first + 1) & mask;
                let is_last = first == end || ring[(end + mask) & mask] < (free, place);
                if !goes_on || !is_last {
                    break Some((now, place, goes_on));
                }
                ring[end & mask] = (free, place);
                end = (end + 1) & mask;
            };
            (self.first, self.end) = (first, end);
            match stopped {
                Some((now, place, true)) => self.start(place, now),
                stopped => return stopped.map(|(now, place, _)| (now, place)),
            }
        }
    }

    #[inline(always)]
    fn start(&mut self, place: MemoryPlace, now: Time) {
        let moved = self.put(now + self.cell_time, place);
        // If service precedes arrivals, a port may start twice in an instant.
        reached!(PortStartsTwice if moved);
    }

    /// Adds a port. Returns whether others become free later.
    #[inline]
    fn put(&mut self, time: Time, place: MemoryPlace) -> bool {
        let (free, mut at) = ((time, place), self.end);
        self.end = self.place(self.end + 1);
        debug_assert_ne!(self.end, self.first, "a port appears in the calendar once");
        let end = at;
        while at != self.first {
            let before = self.place(at + self.ring.len() - 1);
            if self.ring[before] < free {
                break;
            }
            self.ring[at] = self.ring[before];
            at = before;
        }
        self.ring[at] = free;
        at != end
    }

    fn busy(&self) -> impl Iterator<Item = (Time, MemoryPlace)> {
        let busy = self.place(self.end + self.ring.len() - self.first);
        (0..busy).map(|i| self.ring[self.place(self.first + i)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn the_calendar_of_a_shared_memory_orders_ports_by_the_time_they_become_free() {
        let mut rng = Stream::new(1, "calendar");
        for rates in 1..4 {
            let cell_times: Vec<Span> = (0..8).map(|_| Span([3, 5, 7][rng.below(rates) as usize])).collect();
            let mut calendar = Calendar::new(cell_times.iter().copied());
            let mut free_at: Vec<Option<Time>> = vec![None; cell_times.len()];
            for now in (0..500).map(Time) {
                // In some cases, the ports that became free wait until a later call.
                let until = now + Span([0, 1, 1, 20][rng.below(4) as usize]);
                let due = |free_at: &[Option<Time>]| {
                    let busy = free_at.iter().enumerate().filter_map(|(place, &free)| Some((free?, place)));
                    busy.min().filter(|&(free, _)| free < until)
                };
                let mut latest = now;
                loop {
                    let removed = calendar.restart_while(until, |now, place| {
                        let place = usize::from(place);
                        assert_eq!(Some((now, place)), due(&free_at));
                        let goes_on = rng.below(2) == 0;
                        free_at[place] = goes_on.then_some(now + cell_times[place]);
                        latest = now;
                        goes_on
                    });
                    let Some((time, place)) = removed else { break };
                    if calendar.rates.len() > 1 {
                        assert_eq!(Some((time, usize::from(place))), due(&free_at));
                        (free_at[usize::from(place)], latest) = (None, time);
                    }
                    assert_eq!((time, free_at[usize::from(place)]), (latest, None));
                }
                assert_eq!(due(&free_at), None);
                for _ in 0..2 {
                    for place in (0..cell_times.len()).filter(|_| rng.below(3) == 0).collect::<Vec<_>>() {
                        if free_at[place].is_none() {
                            // The last cell of an Ethernet frame takes another time than other cells.
                            let free = now + if rng.below(4) == 0 { Span(9) } else { cell_times[place] };
                            if free == now + cell_times[place] {
                                calendar.start(MemoryPlace::from(place), now);
                            } else {
                                calendar.start_until(MemoryPlace::from(place), free);
                            }
                            free_at[place] = Some(free);
                        }
                    }
                }
                assert_eq!(calendar.first(), free_at.iter().flatten().min().copied().unwrap_or(Time::NEVER));
                let odd = |place: usize| place % 2 == 1;
                let first_odd =
                    free_at.iter().enumerate().filter(|&(place, _)| odd(place)).filter_map(|(_, &free)| free);
                assert_eq!(calendar.first_of(|place| odd(usize::from(place))), first_odd.min());
                for (time, cell_time, place) in calendar.busy() {
                    assert_eq!((Some(time), cell_time), (free_at[usize::from(place)], cell_times[usize::from(place)]));
                }
                assert_eq!(calendar.busy().count(), free_at.iter().flatten().count());
            }
        }
    }
}
