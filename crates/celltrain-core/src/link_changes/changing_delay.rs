//! The additional delay of the packets at the end of a link whose delay changes.

use typed_index_collections::{TiVec, ti_vec};

use super::{Distribution, Reordering};
use crate::cell::{Cell, FrameNumber};
use crate::index::Label;
use crate::rng::Stream;
use crate::units::{Span, Time};

/// Delays of a link beyond its shortest delay.
#[derive(Clone, Debug)]
pub(crate) struct ChangingDelay {
    /// The shortest delay of the link.
    least: Span,
    /// The additional delay, with the time from which it applies.
    steps: Vec<(Time, Span)>,
    /// Position of the current delay.
    current: usize,
    jitter: Option<(Span, Distribution, Stream)>,
    reordering: Option<(Reordering, Stream)>,
    /// Number of packets since the latest packet that overtook others.
    since_selected: u64,
    packets: TiVec<Label, Option<Packet>>,
}

/// The current packet of a VC.
#[derive(Clone, Copy, Debug)]
struct Packet {
    frame: FrameNumber,
    /// Difference from the link's delay.
    jitter: i64,
    /// The delay of all cells of the packet if packets may overtake each other, or [`Lateness::InOrder`].
    overtaking: Option<Lateness>,
}

/// The delay of a cell at the end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lateness {
    /// Later cells of the VC wait for this cell.
    InOrder(Span),
    /// The packet may be overtaken. It leaves late by this time.
    Overtaken(Span),
    /// The packet overtakes all that are late.
    Overtakes,
}

impl ChangingDelay {
    /// Creates the state of a link that `vcs` VCs cross. `steps` are the additional delays with the times from which they
    /// apply.
    pub(crate) fn new(
        least: Span,
        steps: Vec<(Time, Span)>,
        jitter: Option<(Span, Distribution, Stream)>,
        reordering: Option<(Reordering, Stream)>,
        vcs: usize,
    ) -> Self {
        Self { least, steps, current: 0, jitter, reordering, since_selected: 0, packets: ti_vec![None; vcs] }
    }

    /// Returns the delay of a cell that reaches the end of the link at `now`. Cells must be passed in order.
    pub(crate) fn of_cell(&mut self, cell: Cell, now: Time) -> Lateness {
        // The delay of a cell is the link's delay at the time at which the transmission of the cell ended.
        let sent = Time(now.0.saturating_sub(self.least.0));
        while self.steps.get(self.current + 1).is_some_and(|&(from, _)| from <= sent) {
            self.current += 1;
        }
        let extra = self.steps[self.current].1;
        if cell.is_rm() {
            return Lateness::InOrder(extra);
        }
        let packet = match self.packets[cell.label()] {
            Some(packet) if packet.frame == cell.frame => packet,
            _ => {
                let packet = self.next_packet(cell.frame, extra);
                self.packets[cell.label()] = Some(packet);
                packet
            }
        };
        packet.overtaking.unwrap_or(Lateness::InOrder(moved(extra, packet.jitter)))
    }

    fn next_packet(&mut self, frame: FrameNumber, extra: Span) -> Packet {
        let jitter = self.jitter.as_mut().map_or(0, |(by, distribution, draws)| draw(*by, *distribution, draws));
        let is_selected = |(Reordering { probability, gap }, draws): &mut (Reordering, Stream)| {
            self.since_selected + 1 >= *gap && draws.unit() < *probability
        };
        let overtaking = self.reordering.as_mut().map(is_selected).map(|is_selected| {
            self.since_selected = if is_selected { 0 } else { self.since_selected + 1 };
            if is_selected { Lateness::Overtakes } else { Lateness::Overtaken(moved(extra, jitter)) }
        });
        Packet { frame, jitter, overtaking }
    }
}

fn moved(extra: Span, jitter: i64) -> Span {
    Span(extra.0.saturating_add_signed(jitter))
}

/// Draws a difference with a mean of 0.
#[expect(clippy::cast_possible_truncation, reason = "scenario checks keep the product far below 2^62")]
fn draw(by: Span, distribution: Distribution, draws: &mut Stream) -> i64 {
    let of_by = match distribution {
        Distribution::Uniform => 2.0 * draws.unit() - 1.0,
        Distribution::Normal => draws.normal(),
    };
    (of_by * by.0 as f64).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::tests::cell;

    fn changing(steps: &[(u64, u64)]) -> ChangingDelay {
        let steps = steps.iter().map(|&(from, extra)| (Time(from), Span(extra))).collect();
        ChangingDelay::new(Span(100), steps, None, None, 1)
    }

    #[test]
    fn the_delay_of_a_cell_depends_on_the_time_at_which_it_was_sent() {
        let mut delay = changing(&[(0, 7), (50, 3)]);
        let found = [100, 149, 150, 400].map(|now| delay.of_cell(cell(0, now / 150, false), Time(now.into())));
        assert_eq!(found, [7, 7, 3, 3].map(|extra| Lateness::InOrder(Span(extra))));
    }

    #[test]
    fn jitter_is_drawn_once_for_each_packet_around_the_current_delay() {
        for (distribution, deviation) in [(Distribution::Uniform, 100.0 / 3f64.sqrt()), (Distribution::Normal, 100.0)] {
            let mut delay = changing(&[(0, 1000)]);
            delay.jitter = Some((Span(100), distribution, Stream::new(1, "link/a->b/jitter")));
            let mut drawn = Vec::new();
            for frame in 0..10_000u32 {
                let both = [false, true].map(|ends| delay.of_cell(cell(0, frame, ends), Time(frame.into())));
                let [Lateness::InOrder(first), Lateness::InOrder(second)] = both else { unreachable!("{both:?}") };
                assert_eq!(first, second);
                drawn.push(first.0 as f64 - 1000.0);
            }
            let mean = drawn.iter().sum::<f64>() / 1e4;
            let found = (drawn.iter().map(|difference| difference * difference).sum::<f64>() / 1e4).sqrt();
            assert!(mean.abs() < 3.0 && (found / deviation - 1.0).abs() < 0.03, "{distribution:?} {mean} {found}");
            assert!(distribution == Distribution::Normal || drawn.iter().all(|difference| difference.abs() <= 100.0));
        }
    }

    #[test]
    fn packets_overtake_others_with_the_given_probability_and_after_the_given_gap() {
        let mut delay = changing(&[(0, 1000)]);
        let selected = |delay: &mut ChangingDelay| {
            let is_selected = |&frame: &u32| delay.of_cell(cell(0, frame, true), Time(0)) == Lateness::Overtakes;
            (0..1000).filter(is_selected).collect::<Vec<u32>>()
        };
        let mut with = |probability| {
            delay.reordering = Some((Reordering { probability, gap: 5 }, Stream::new(1, "link/a->b/reordering")));
            (delay.since_selected, delay.packets) = (0, ti_vec![None; 1]);
            selected(&mut delay)
        };
        assert_eq!(with(1.0), (4..1000).step_by(5).collect::<Vec<u32>>());
        let some = with(0.25);
        assert!(some.windows(2).all(|pair| pair[1] - pair[0] >= 5), "{some:?}");
        // On average, four packets must pass, and another four draws are needed before a packet overtakes.
        assert!((100..150).contains(&some.len()), "{}", some.len());
        assert_eq!(with(0.0), [0u32; 0]);
    }
}
