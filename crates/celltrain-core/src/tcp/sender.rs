//! The sending end: windows, what to send next, the retransmission timer.
//!
//! Source: `MECHANISMS` 3.1 to 3.4; RFC 793 for the variables. Engine-free: events come in, segments are asked for.

use super::congestion::{Windows, jacobson};
use super::recovery::{Reaction, Recovery};
use super::rtt::{RtoLimits, RttEstimator};
use super::timers::{Countdown, SegmentTimers};
use super::{Ack, Backoff, DuplicateAcks, RttSampling, Segment, TcpConfig, TimerRestart, window_scale};

/// A sender that always has data.
pub struct Sender {
    mss: u32,
    /// First byte not acknowledged.
    snd_una: u64,
    /// Next byte to send.
    snd_nxt: u64,
    /// First byte never sent.
    snd_max: u64,
    windows: Windows,
    window_scale: u32,
    recovery: Box<dyn Recovery>,
    rtt: RttEstimator,
    timer: Countdown,
    /// In place of `timer`, where each segment has its own.
    segment_timers: SegmentTimers,
    timing: Option<Timing>,
    sampling: RttSampling,
    backoff: Backoff,
    restart: TimerRestart,
    duplicate_acks: DuplicateAcks,
    counters: SenderCounters,
}

/// The one segment being timed: the ack that ends it, and the ticks counted so far, from 1.
#[derive(Clone, Copy, Debug)]
struct Timing {
    until: u64,
    ticks: u32,
}

/// What a sender did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Segments sent again.
    pub retransmitted_segments: u64,
    /// Times the retransmission timer ran out.
    pub timeouts: u64,
    /// Times duplicate acknowledgements started a retransmission.
    pub fast_retransmits: u64,
}

impl Sender {
    /// The sending end of an open connection, with nothing sent yet.
    pub fn new(config: &TcpConfig) -> Self {
        let options = config.options();
        #[allow(clippy::cast_precision_loss)]
        let segments = |bytes: u64| bytes as f64 / options.mss.bytes as f64;
        let rwnd = options.window_segments() as f64;
        let ssthresh = options.initial_ssthresh.map_or(rwnd, |bytes| segments(bytes.bytes));
        let limits = RtoLimits {
            minimum: options.minimum_rto,
            maximum: options.ticks(options.maximum_rto),
            initial: options.ticks(options.initial_rto),
        };
        Self {
            mss: u32::try_from(options.mss.bytes).expect("scenario checks bound the segment size"),
            snd_una: 0,
            snd_nxt: 0,
            snd_max: 0,
            windows: Windows {
                cwnd: 1.0,
                ssthresh,
                rwnd,
                growth: options.window_growth,
                rule: options.ssthresh_rule,
                arithmetic: options.window_arithmetic,
                mss: options.mss.bytes as f64,
            },
            window_scale: window_scale(options.receive_window.bytes),
            recovery: config.recovery(),
            rtt: RttEstimator::new(limits, options.rtt_arithmetic),
            timer: Countdown::default(),
            segment_timers: SegmentTimers::default(),
            timing: None,
            sampling: options.rtt_sampling,
            backoff: options.backoff,
            restart: options.timer_restart,
            duplicate_acks: options.duplicate_acks,
            counters: SenderCounters::default(),
        }
    }

    /// The next segment the windows allow now, if any. Asking sends it.
    pub fn next_segment(&mut self) -> Option<Segment> {
        let segment = Segment { seq: self.snd_nxt, len: self.mss };
        let window = self.windows.usable() * u64::from(self.mss);
        if segment.end() > self.snd_una + window {
            return None;
        }
        let again = segment.seq < self.snd_max;
        self.counters.segments_sent += 1;
        self.counters.retransmitted_segments += u64::from(again);
        if self.timing.is_none() && (!again || self.sampling == RttSampling::IncludeRetransmissions) {
            self.timing = Some(Timing { until: segment.end(), ticks: 1 });
        }
        if self.restart == TimerRestart::PerSegment {
            self.segment_timers.start(segment.end());
        } else if !self.timer.is_running() {
            self.timer.start(self.rtt.rto());
        }
        self.snd_nxt = segment.end();
        self.snd_max = self.snd_max.max(self.snd_nxt);
        Some(segment)
    }

    /// An acknowledgement arrived.
    pub fn on_ack(&mut self, ack: Ack) {
        assert!(ack.ack <= self.snd_max, "a receiver acknowledges only what was sent");
        if ack.ack < self.snd_una {
            // RFC 1122 (4.2.2.20 g): an old acknowledgement says nothing about the window either.
            return;
        }
        let rwnd = ((u64::from(ack.window) << self.window_scale) / u64::from(self.mss)) as f64;
        let same_window = rwnd == self.windows.rwnd;
        self.windows.rwnd = rwnd;
        if ack.ack > self.snd_una {
            self.on_new_ack(ack.ack);
        } else if same_window && self.snd_max > self.snd_una {
            // RFC 5681 (2 e): a window update is no duplicate.
            self.on_duplicate_ack();
        }
    }

    /// One tick of the retransmission clock.
    pub fn on_tick(&mut self) {
        let ran_out = match self.restart {
            TimerRestart::PerSegment => self.segment_timers.on_tick(self.snd_una, self.rtt.rto()),
            TimerRestart::EveryNewAck | TimerRestart::WhenAllAcked => self.timer.on_tick(),
        };
        if ran_out {
            self.on_timeout();
        }
        if let Some(timing) = &mut self.timing {
            timing.ticks += 1;
        }
    }

    /// cwnd in segments.
    pub fn cwnd(&self) -> f64 {
        self.windows.cwnd
    }

    /// ssthresh in segments.
    pub fn ssthresh(&self) -> f64 {
        self.windows.ssthresh
    }

    /// The retransmission timeout in ticks, backoff included.
    pub fn rto(&self) -> u32 {
        self.rtt.rto()
    }

    /// What it did so far.
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }

    fn on_new_ack(&mut self, ack: u64) {
        if let Some(timing) = self.timing.take_if(|timing| ack >= timing.until) {
            self.rtt.sample(timing.ticks);
        }
        if ack == self.snd_max {
            self.timer.stop();
        } else if self.restart == TimerRestart::EveryNewAck {
            self.timer.start(self.rtt.rto());
        }
        self.recovery.on_new_ack();
        jacobson::on_new_ack(&mut self.windows);
        self.snd_una = ack;
        self.snd_nxt = self.snd_nxt.max(ack);
    }

    fn on_duplicate_ack(&mut self) {
        if self.duplicate_acks == DuplicateAcks::GrowWindow {
            jacobson::on_new_ack(&mut self.windows);
        }
        match self.recovery.on_duplicate_ack(&mut self.windows) {
            Reaction::Ignore => {}
            Reaction::GoBack => {
                self.counters.fast_retransmits += 1;
                self.go_back();
            }
        }
    }

    fn on_timeout(&mut self) {
        self.counters.timeouts += 1;
        if self.backoff == Backoff::Double {
            self.rtt.back_off();
        }
        #[allow(clippy::cast_precision_loss)]
        let flight_size = (self.snd_max - self.snd_una) as f64 / f64::from(self.mss);
        self.windows.on_timeout(flight_size);
        self.recovery.on_timeout();
        self.go_back();
    }

    /// Go-back-N: the next segment sent is the first unacknowledged one, and it may not be timed (Karn). The timer runs
    /// anew from here, even where a closed window lets nothing be sent.
    fn go_back(&mut self) {
        self.timing = None;
        if self.restart != TimerRestart::PerSegment {
            self.timer.start(self.rtt.rto());
        }
        self.snd_nxt = self.snd_una;
    }
}
