use super::*;
use crate::rng::Stream;

/// The pseudo-code of RFC 9406 (4.2) in bytes and milliseconds, written apart from the implementation.
struct Model {
    smss: f64,
    limit: Option<f64>,
    cwnd: f64,
    ssthresh: f64,
    in_css: bool,
    window_end: u64,
    last_round_min_rtt: f64,
    current_round_min_rtt: f64,
    rtt_sample_count: u32,
    css_baseline_min_rtt: f64,
    css_rounds: u32,
}

impl Model {
    fn on_ack(&mut self, bytes: f64, una: u64, snd_nxt: u64, curr_rtt: f64) {
        if self.cwnd >= self.ssthresh {
            return;
        }
        let n = self.limit.map_or(bytes, |limit| bytes.min(limit * self.smss));
        self.cwnd += if self.in_css { n / 4.0 } else { n };
        self.current_round_min_rtt = self.current_round_min_rtt.min(curr_rtt);
        self.rtt_sample_count += 1;
        let both_known = self.current_round_min_rtt < f64::INFINITY && self.last_round_min_rtt < f64::INFINITY;
        if self.in_css {
            if self.rtt_sample_count >= 8 && self.current_round_min_rtt < self.css_baseline_min_rtt {
                self.css_baseline_min_rtt = f64::INFINITY;
                self.in_css = false;
            }
        } else if self.rtt_sample_count >= 8 && both_known {
            let rtt_thresh = (self.last_round_min_rtt / 8.0).clamp(4.0, 16.0);
            if self.current_round_min_rtt >= self.last_round_min_rtt + rtt_thresh {
                self.css_baseline_min_rtt = self.current_round_min_rtt;
                (self.in_css, self.css_rounds) = (true, 0);
            }
        }
        if una >= self.window_end {
            self.window_end = snd_nxt;
            self.last_round_min_rtt = self.current_round_min_rtt;
            self.current_round_min_rtt = f64::INFINITY;
            self.rtt_sample_count = 0;
            if self.in_css {
                self.css_rounds += 1;
                if self.css_rounds >= 5 {
                    self.ssthresh = self.cwnd;
                }
            }
        }
    }
}

#[test]
fn hystart_follows_the_pseudo_code_of_rfc_9406_on_random_round_trip_times() {
    let mut rng = Stream::new(3, "hystart");
    let (mut ends, mut resumes, mut slower) = (0, 0, 0);
    for case in 0..2_000u64 {
        let paced = case % 2 == 0;
        let mut ours = HyStart::new(paced, Clock::exact(1_000_000));
        let mut cwnd = 10.0;
        let (mut una, mut next) = (0u64, 10u64);
        let mut model = Model {
            smss: 100.0,
            limit: (!paced).then_some(8.0),
            cwnd: 1_000.0,
            ssthresh: f64::INFINITY,
            in_css: false,
            window_end: next,
            last_round_min_rtt: f64::INFINITY,
            current_round_min_rtt: f64::INFINITY,
            rtt_sample_count: 0,
            css_baseline_min_rtt: f64::INFINITY,
            css_rounds: 0,
        };
        let mut base = 8 + u64::from(rng.below(200));
        for _ in 0..400 {
            let acked = u64::from(1 + rng.below(12)).min(next - una);
            una += acked;
            // Round-trip times in eighths of a millisecond, so that both models compute exactly.
            base = (base * 8 + u64::from(rng.below(9))) / 8 + u64::from(rng.below(30) == 0) * u64::from(rng.below(40));
            base -= u64::from(rng.below(60) == 0) * (base / 3);
            let eighths = base * 8 + u64::from(rng.below(8));
            let before = model.in_css;
            model.on_ack(acked as f64 * 100.0, una, next, eighths as f64 / 8.0);
            cwnd += ours.growth(acked as f64);
            let ends_now = ours.on_ack(una, next, Some(Span(eighths * 125)));
            assert_eq!(cwnd * 100.0, model.cwnd, "case {case}");
            assert_eq!((ours.conservative.is_some(), ends_now), (model.in_css, model.ssthresh.is_finite()), "{case}");
            resumes += u32::from(before && !model.in_css);
            slower += u32::from(!before && model.in_css);
            if ends_now {
                ends += 1;
                break;
            }
            next += acked + u64::from(rng.below(3));
        }
    }
    assert!(ends > 100 && resumes > 100 && slower > 100, "{ends} ends, {resumes} resumed, {slower} slowed down");
}
