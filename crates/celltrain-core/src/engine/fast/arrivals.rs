//! Arrival times of a VC's packets at a port, by packet number.

use crate::cell::FrameNumber;
use crate::units::Time;

/// The arrival times of the last cells of packets that may still wait. Packets must arrive and leave in the order of
/// their numbers; numbers may be missing. Unlike a queue, the ring needs no comparison to skip lost packets.
#[derive(Clone)]
pub(super) struct Arrivals {
    /// A ring whose size is a power of two. A packet's place is its number, modulo the size.
    times: Vec<Time>,
    /// The number after the latest packet that has left. Earlier packets have left or are lost.
    oldest: u32,
    /// The number of the latest packet that has arrived.
    newest: u32,
    /// Selects the bits of a number that count packets.
    mask: u32,
}

impl Arrivals {
    /// Creates an empty list for packets whose numbers wrap to the bits of `mask`.
    pub(super) fn new(mask: u32) -> Self {
        Self { times: Vec::new(), oldest: 0, newest: u32::MAX, mask }
    }

    /// Records the arrival of a packet's last cell. Returns false if the ring is too small.
    #[inline]
    pub(super) fn arrive(&mut self, frame: FrameNumber, now: Time) -> bool {
        let (number, size) = (frame.number(), self.times.len());
        let has_room = (number.wrapping_sub(self.oldest) as usize) < size;
        if has_room {
            self.times[number as usize & (size - 1)] = now;
            self.newest = number;
        }
        has_room
    }

    /// Makes room for a packet, and records its arrival.
    #[cold]
    pub(super) fn make_room(&mut self, frame: FrameNumber, now: Time) {
        let number = frame.number();
        let since_oldest = |number: u32, oldest: u32| number.wrapping_sub(oldest) & self.mask;
        let is_any_waiting = since_oldest(self.newest, self.oldest) <= self.mask / 2;
        if !is_any_waiting {
            self.oldest = number;
        }
        let needed = since_oldest(number, self.oldest) as usize + 1;
        let size = self.times.len();
        if needed > size {
            let mut times = vec![Time::default(); needed.next_power_of_two().max(4)];
            let new_size = times.len();
            if is_any_waiting {
                for waiting in 0..=since_oldest(self.newest, self.oldest) {
                    let number = self.oldest.wrapping_add(waiting) as usize;
                    times[number & (new_size - 1)] = self.times[number & (size - 1)];
                }
            }
            self.times = times;
        }
        let place = number as usize & (self.times.len() - 1);
        self.times[place] = now;
        self.newest = number;
    }

    /// Removes a waiting packet. Returns the arrival time of its last cell.
    #[inline]
    pub(super) fn take(&mut self, frame: FrameNumber) -> Time {
        self.oldest = frame.number().wrapping_add(1);
        self.of(frame)
    }

    /// Returns the arrival time of a waiting packet's last cell.
    #[inline]
    pub(super) fn of(&self, frame: FrameNumber) -> Time {
        self.times[frame.number() as usize & self.times.len().wrapping_sub(1)]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Each step adds a packet, loses a packet before it arrives, or removes the first or third waiting packet.
        #[test]
        fn a_waiting_packet_keeps_its_arrival_time_if_others_are_lost_or_packet_numbers_wrap(
            steps in prop::collection::vec(0..6_u8, 0..400),
            bits in prop::sample::select(vec![24, 32]),
            before_wrap in 0..40_u32,
        ) {
            let mask = u32::MAX >> (32 - bits);
            let (branch, mut next) = (!mask & 0x0500_0000, FrameNumber::new(mask - before_wrap));
            let (mut arrivals, mut waiting) = (Arrivals::new(mask), VecDeque::new());
            for (now, step) in steps.into_iter().enumerate() {
                let now = Time(now as u64 * 7);
                if step < 4 {
                    let frame = FrameNumber::new(next.number() | branch);
                    next = next.later(1, mask);
                    if step > 0 {
                        if !arrivals.arrive(frame, now) {
                            arrivals.make_room(frame, now);
                        }
                        waiting.push_back((frame, now));
                    }
                } else {
                    let place = if step == 4 { 0 } else { 2 };
                    if let Some(&(frame, arrival)) = waiting.get(place) {
                        prop_assert_eq!(arrivals.take(frame), arrival);
                        waiting.drain(..=place);
                    }
                }
                for &(frame, arrival) in &waiting {
                    prop_assert_eq!(arrivals.of(frame), arrival);
                }
            }
        }
    }

    #[test]
    fn packets_lost_on_the_way_to_an_empty_port_take_no_memory() {
        let mut arrivals = Arrivals::new(u32::MAX);
        for number in (0..100_000_000).step_by(1_000_000) {
            let frame = FrameNumber::new(number);
            if !arrivals.arrive(frame, Time(u64::from(number))) {
                arrivals.make_room(frame, Time(u64::from(number)));
            }
            assert_eq!(arrivals.take(frame), Time(u64::from(number)));
        }
        assert_eq!(arrivals.times.len(), 4);
    }
}
