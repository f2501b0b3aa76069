//! Samples of deliveries, for controls that model the path and for `HyStart++`.

use super::{Pending, Sender};
use crate::rng::Stream;
use crate::tcp::congestion::model::Recovers;
use crate::tcp::delivery::DeliveryRate;
use crate::tcp::scoreboard::SackBlocks;
use crate::tcp::{Ack, Segment};
use crate::units::Time;

/// The samples of a sender, and the signs of congestion since the last sample.
pub(super) struct Deliveries {
    rate: DeliveryRate,
    /// True if a mark was reported for which the sender must slow down.
    pub(super) marked: bool,
    /// The recovery ends when this offset is acknowledged.
    recover: Option<u64>,
}

impl Deliveries {
    pub(super) fn new(selective: bool) -> Self {
        Self { rate: DeliveryRate::new(selective), marked: false, recover: None }
    }
}

/// The caller has checked that the sender takes samples.
const SAMPLES: &str = "the sender takes samples";

impl Sender {
    /// Sets the source of the control's random numbers. `stream` is called only if the control draws any.
    #[must_use]
    pub fn drawing_from(mut self, stream: impl FnOnce() -> Stream) -> Self {
        if let Some(model) = self.windows.model() {
            model.draw_from(stream());
        }
        self
    }

    /// Returns the interval between the segments of a paced sender.
    #[cfg(test)]
    pub fn interval(&self) -> crate::units::Span {
        self.departures.pace.expect("the sender is paced").interval()
    }

    /// Returns the state of BBR and the number of segments in flight.
    #[cfg(test)]
    pub fn bbr(&mut self) -> (&crate::tcp::congestion::bbr::Bbr, u64) {
        let in_flight = self.departures.deliveries.as_ref().expect(SAMPLES).rate.in_flight();
        (self.windows.model().expect("the control is BBR").bbr(), in_flight)
    }

    /// Records that data is limited by the application, if it is.
    #[cold]
    pub(super) fn check_application(&mut self) {
        let has_unsent_data = self.snd_nxt < self.end;
        let deliveries = self.departures.deliveries.as_mut().expect(SAMPLES);
        deliveries.rate.check_application(has_unsent_data, self.windows.cwnd);
    }

    /// Records a segment that leaves.
    #[cold]
    pub(super) fn record_departure(&mut self, segment: Segment, now: Time) {
        let rate = &mut self.departures.deliveries.as_mut().expect(SAMPLES).rate;
        if let Some(model) = self.windows.model() {
            model.on_transmit(rate, now);
        }
        rate.on_sent((segment.seq, segment.end()), now, self.windows.cwnd);
        self.follow_model();
    }

    /// Begins the sample of an acknowledgement, before its blocks are recorded.
    #[cold]
    pub(super) fn begin_sample(&mut self, ack: Ack, blocks: &SackBlocks, now: Time) {
        self.check_application();
        let rate = &mut self.departures.deliveries.as_mut().expect(SAMPLES).rate;
        rate.begin();
        for (start, end) in blocks.iter() {
            for gap in self.board.gaps(start.max(ack.ack), end) {
                rate.on_reported(gap, now);
            }
        }
        rate.on_acknowledged(ack.ack, now);
    }

    /// Ends the sample of an acknowledgement, and adapts the windows to the sample.
    #[cold]
    pub(super) fn end_sample(&mut self, now: Time) {
        if self.next.pending == Pending::Resend {
            self.lose(self.snd_una, now);
        }
        let deliveries = self.departures.deliveries.as_mut().expect(SAMPLES);
        let rate = &mut deliveries.rate;
        let below = self.board.lost_below(u64::from(self.mss));
        while let Some(lost) = rate.lose_below(below) {
            if let Some(model) = self.windows.model() {
                model.on_lost(rate, lost, now);
            }
        }
        self.windows.on_sample(self.snd_una, self.snd_nxt, rate.rtt(now));
        if let Some(model) = self.windows.model() {
            if deliveries.recover.take_if(|recover| *recover <= self.snd_una).is_some() {
                model.on_recovered();
            }
            if let Some(sample) = rate.sample(now) {
                model.on_ack(rate, &sample, std::mem::take(&mut deliveries.marked), now);
            }
        }
        self.follow_model();
    }

    /// Declares the segment at `seq` lost.
    #[cold]
    pub(super) fn lose(&mut self, seq: u64, now: Time) {
        let rate = &mut self.departures.deliveries.as_mut().expect(SAMPLES).rate;
        if let (Some(lost), Some(model)) = (rate.lose(seq), self.windows.model()) {
            model.on_lost(rate, lost, now);
        }
    }

    /// Records the start of a recovery.
    #[cold]
    pub(super) fn begin_recovery(&mut self, by: Recovers) {
        self.departures.deliveries.as_mut().expect(SAMPLES).recover = Some(self.snd_max);
        if let Some(model) = self.windows.model() {
            model.on_recovery(by);
        }
    }

    /// Declares everything in flight lost, after a timeout.
    #[cold]
    pub(super) fn lose_all(&mut self, now: Time) {
        self.begin_recovery(Recovers::Timeout);
        let rate = &mut self.departures.deliveries.as_mut().expect(SAMPLES).rate;
        while let Some(lost) = rate.lose_first() {
            if let Some(model) = self.windows.model() {
                model.on_lost(rate, lost, now);
            }
        }
        if let Some(model) = self.windows.model() {
            model.on_timeout(rate);
        }
        self.follow_model();
    }

    /// Applies cwnd and the pace of a control that models the path.
    #[cold]
    pub(super) fn follow_model(&mut self) {
        if let (Some(interval), Some(pace)) = (self.windows.follow_model(), &mut self.departures.pace) {
            pace.set_interval(interval);
        }
    }
}
