//! Proportional rate reduction: spreads the reduction of the window over a round trip of fast recovery.
//!
//! Source: RFC 9937 (6), which obsoletes RFC 6937, with its names `RecoverFS`, `prr_delivered`, `prr_out`, `SafeACK` and
//! `SndCnt`. Differences from the source: quantities count segments, as in Linux and in the RFC's figures, because all
//! segments are full. A recovery that a timer starts delivers nothing, and sends one segment.

/// The state of one recovery, in segments.
#[expect(clippy::struct_field_names, reason = "the fields have the names of the RFC")]
#[derive(Clone, Copy, Debug)]
pub(super) struct Prr {
    /// `RecoverFS`: the data that the recovery may deliver.
    recover_fs: f64,
    prr_delivered: f64,
    prr_out: f64,
}

/// The report of an acknowledgement, in segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    /// `DeliveredData`: the data that the acknowledgement is the first to report.
    pub(super) delivered: f64,
    /// `inflight`: the data in the network.
    pub(super) inflight: f64,
    pub(super) ssthresh: f64,
    /// `SafeACK`: the acknowledgement covers new data and indicates no further loss.
    pub(super) is_safe: bool,
}

impl Prr {
    /// Starts a recovery that may deliver `recover_fs` segments.
    pub(super) fn new(recover_fs: f64) -> Self {
        Self { recover_fs: recover_fs.max(1.0), prr_delivered: 0.0, prr_out: 0.0 }
    }

    /// Returns cwnd after an acknowledgement; `None` if the acknowledgement delivers nothing.
    //= rfc9937#6.2 "above ssthresh, data leave in proportion to the data delivered"
    //= rfc9937#6.2 "at or below ssthresh, as much leaves as was delivered, and a segment more on good progress"
    //= rfc9937#6.2 "the first acknowledgement of a recovery sends at least one segment"
    pub(super) fn on_ack(&mut self, ack: Delivery) -> Option<f64> {
        let Delivery { delivered, inflight, ssthresh, is_safe } = ack;
        if delivered <= 0.0 {
            return None;
        }
        self.prr_delivered += delivered;
        let snd_cnt = if inflight > ssthresh {
            (self.prr_delivered * ssthresh / self.recover_fs).ceil() - self.prr_out
        } else {
            let conserved = (self.prr_delivered - self.prr_out).max(delivered);
            (conserved + f64::from(u8::from(is_safe))).min(ssthresh - inflight)
        };
        let least = if self.prr_out == 0.0 { 1.0 } else { 0.0 };
        Some(inflight + snd_cnt.max(least))
    }

    /// Records that a segment was sent.
    pub(super) fn on_sent(&mut self) {
        self.prr_out += 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a recovery. Each acknowledgement delivers one segment; `lost` segments are lost at its start.
    fn play(recover_fs: f64, mut inflight: f64, acks: usize) -> Vec<(f64, f64)> {
        let mut prr = Prr::new(recover_fs);
        let mut seen = Vec::new();
        for i in 0..acks {
            inflight -= if i == 0 { 0.0 } else { 1.0 };
            let delivery = Delivery { delivered: 1.0, inflight, ssthresh: 10.0, is_safe: false };
            let cwnd = prr.on_ack(delivery).expect("data was delivered");
            seen.push((cwnd, inflight));
            while cwnd - inflight >= 1.0 {
                prr.on_sent();
                inflight += 1.0;
            }
        }
        seen
    }

    //= test rfc9937#6.2 "above ssthresh, data leave in proportion to the data delivered"
    #[test]
    fn proportional_rate_reduction_matches_figure_1_of_rfc_9937_after_one_loss() {
        let (cwnd, inflight): (Vec<_>, Vec<_>) = play(20.0, 18.0, 19).into_iter().unzip();
        let mut of_figure = [19, 18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10, 10].map(f64::from);
        // With inflight at ssthresh, the figure still uses the proportion, whereas section 6.2 requires a larger inflight.
        of_figure[16] = 10.0;
        assert_eq!(cwnd, of_figure);
        let mut of_figure = [18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10, 10, 9].map(f64::from);
        of_figure[17] = 9.0;
        assert_eq!(inflight, of_figure);
    }

    //= test rfc9937#6.2 "at or below ssthresh, as much leaves as was delivered, and a segment more on good progress"
    #[test]
    fn proportional_rate_reduction_matches_figure_2_of_rfc_9937_after_fifteen_losses() {
        assert_eq!(play(20.0, 4.0, 3), [(5.0, 4.0); 3]);
        // Each later retransmission delivers a segment. This is good progress, so the rule permits one more segment.
        let mut prr = Prr { recover_fs: 20.0, prr_delivered: 3.0, prr_out: 3.0 };
        let delivery = Delivery { delivered: 1.0, inflight: 6.0, ssthresh: 10.0, is_safe: true };
        assert_eq!(prr.on_ack(delivery), Some(8.0));
        let near = Delivery { inflight: 9.5, ..delivery };
        assert_eq!(prr.on_ack(near), Some(10.0), "at most ssthresh");
    }

    //= test rfc9937#6.2 "the first acknowledgement of a recovery sends at least one segment"
    #[test]
    fn proportional_rate_reduction_sends_a_segment_when_the_recovery_begins_and_ignores_empty_acknowledgements() {
        let delivery = Delivery { delivered: 1.0, inflight: 10.0, ssthresh: 10.0, is_safe: false };
        assert_eq!(Prr::new(20.0).on_ack(delivery), Some(11.0));
        let sent = Prr { prr_out: 1.0, ..Prr::new(20.0) };
        assert_eq!({ sent }.on_ack(delivery), Some(10.0));
        assert_eq!({ sent }.on_ack(Delivery { delivered: 0.0, ..delivery }), None);
    }
}
