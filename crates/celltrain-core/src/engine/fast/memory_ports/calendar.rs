//! The transmitters of the ports of a memory: which of them are busy, and when the next is free.

use std::collections::VecDeque;

use typed_index_collections::TiVec;

use crate::engine::fast::plan::MemoryPlace;
use crate::units::{Span, Time};

/// The busy ports, by the time when they will be free, then by place.
///
/// A port that starts a cell is free a cell time later. So ports of one rate become free in the order in which they
/// start, and a list for each rate is a sorted one.
pub(super) struct Calendar {
    /// By place: the list of its rate.
    rate_of: TiVec<MemoryPlace, u32>,
    rates: Vec<Rate>,
}

struct Rate {
    cell_time: Span,
    busy: VecDeque<(Time, MemoryPlace)>,
}

impl Calendar {
    /// Creates the calendar of idle ports with these cell times.
    pub(super) fn new(cell_times: impl Iterator<Item = Span>) -> Self {
        let mut rates: Vec<Rate> = Vec::new();
        let rate_of = |cell_time| {
            let known = rates.iter().position(|rate| rate.cell_time == cell_time);
            let rate = known.unwrap_or_else(|| {
                rates.push(Rate { cell_time, busy: VecDeque::new() });
                rates.len() - 1
            });
            u32::try_from(rate).expect("no more rates than ports")
        };
        Self { rate_of: cell_times.map(rate_of).collect(), rates }
    }

    /// Returns the first instant at which a busy port is free.
    #[inline]
    pub(super) fn first(&self) -> Option<Time> {
        match &self.rates[..] {
            [rate] => Some(rate.busy.front()?.0),
            rates => rates.iter().filter_map(|rate| rate.busy.front()).map(|&(time, _)| time).min(),
        }
    }

    /// Takes the first port that is free at `now`; none was free before.
    #[inline]
    pub(super) fn take_at(&mut self, now: Time) -> Option<MemoryPlace> {
        if let [rate] = &mut self.rates[..] {
            return rate.take_at(now);
        }
        let is_due = |rate: &&mut Rate| rate.busy.front().is_some_and(|&(time, _)| time == now);
        let due = self.rates.iter_mut().filter(is_due).min_by_key(|rate| rate.busy[0].1)?;
        due.take_at(now)
    }

    /// Makes an idle port busy from `now` on.
    #[inline]
    pub(super) fn start(&mut self, place: MemoryPlace, now: Time) {
        let Rate { cell_time, busy } = &mut self.rates[self.rate_of[place] as usize];
        let free = (now + *cell_time, place);
        busy.push_back(free);
        // If service comes before arrivals, ports start twice in an instant.
        let mut at = busy.len() - 1;
        while at > 0 && busy[at - 1] > free {
            busy.swap(at - 1, at);
            at -= 1;
        }
    }

    /// Returns the first instant at which one of the busy ports that `matter` is free.
    pub(super) fn first_of(&self, matters: impl Fn(MemoryPlace) -> bool) -> Option<Time> {
        let first = |rate: &Rate| rate.busy.iter().find(|&&(_, place)| matters(place)).map(|&(time, _)| time);
        self.rates.iter().filter_map(first).min()
    }
}

impl Rate {
    #[inline]
    fn take_at(&mut self, now: Time) -> Option<MemoryPlace> {
        let &(_, place) = self.busy.front().filter(|&&(time, _)| time == now)?;
        self.busy.pop_front();
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn ports_become_free_in_order_of_time_and_place() {
        let mut rng = Stream::new(1, "calendar");
        for rates in 1..4 {
            let cell_times: Vec<Span> = (0..8).map(|_| Span([3, 5, 7][rng.below(rates) as usize])).collect();
            let mut calendar = Calendar::new(cell_times.iter().copied());
            let mut free_at: Vec<Option<Time>> = vec![None; cell_times.len()];
            for now in (0..500).map(Time) {
                let due = |free_at: &[Option<Time>]| free_at.iter().position(|&free| free == Some(now));
                while let Some(place) = calendar.take_at(now) {
                    assert_eq!(Some(usize::from(place)), due(&free_at));
                    free_at[usize::from(place)] = None;
                }
                assert_eq!(due(&free_at), None);
                for _ in 0..2 {
                    for place in (0..cell_times.len()).filter(|_| rng.below(3) == 0).collect::<Vec<_>>() {
                        if free_at[place].is_none() {
                            calendar.start(MemoryPlace::from(place), now);
                            free_at[place] = Some(now + cell_times[place]);
                        }
                    }
                }
                assert_eq!(calendar.first(), free_at.iter().flatten().min().copied());
                let odd = |place: usize| place % 2 == 1;
                let first_odd = free_at.iter().enumerate().filter(|&(place, _)| odd(place)).filter_map(|(_, &free)| free);
                assert_eq!(calendar.first_of(|place| odd(usize::from(place))), first_odd.min());
            }
        }
    }
}
