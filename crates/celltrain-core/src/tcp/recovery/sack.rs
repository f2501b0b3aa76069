//! Standard SACK: losses and the amount of data in the network are computed from the scoreboard at every
//! acknowledgement.
//!
//! Source: RFC 6675, whose names are used: `HighACK` is `snd_una`, `HighData` is `snd_max`; `RecoveryPoint`, `HighRxt`,
//! `RescueRxt`, `DupThresh`, `IsLost`, `SetPipe`, `NextSeg`. `docs/mechanisms.md` 3.7, option of A-27. Differences from
//! the source: with the rules of the papers, min(cwnd, rwnd) replaces the flight size (5, step 4.2), and an
//! acknowledgement of new data is never a duplicate. All segments are full, so octets are counted in whole segments.
//! The timer is RFC 6298's, without the restart at every retransmission that section 6 allows.

use super::prr::{Delivery, Prr};
use super::{Arrival, Choice, Detected, Flight, Gate, Progress, Reaction, Recovery, THRESHOLD as DUP_THRESH};
use crate::coverage::reached;
use crate::tcp::congestion::Windows;
use crate::tcp::{FastRetransmit, RecoveryEnd, Reduction, TcpOptions};

/// The state of the loss recovery with SACK.
#[derive(Debug, Default)]
pub struct Sack {
    dup_acks: u32,
    /// The `recover` of this gate is `RecoveryPoint`.
    gate: Gate,
    end: RecoveryEnd,
    recovering: bool,
    /// Every lost segment below this offset has been resent.
    high_rxt: u64,
    rescue_rxt: u64,
    counts_progress: bool,
    /// `None` if cwnd is reduced at the start of a recovery.
    reduction: Option<Gradual>,
}

/// A gradual reduction of cwnd (RFC 9937).
#[derive(Debug, Default)]
struct Gradual {
    /// The reduction of the recovery that goes on, if any.
    prr: Option<Prr>,
    /// Bytes that the last acknowledgement is the first to report, and whether it covers new data.
    delivered: u64,
    advances: bool,
    /// The result of `IsLost` before the last acknowledgement.
    lost_below: u64,
}

impl Recovery for Sack {
    fn new(options: &TcpOptions) -> Self {
        Self {
            gate: Gate::new(options, FastRetransmit::LessCareful),
            end: options.recovery_rules().end,
            counts_progress: options.rules.is_rfc(),
            reduction: (options.recovery_rules().reduction == Reduction::Prr).then(Gradual::default),
            ..Self::default()
        }
    }

    fn selective(&self) -> bool {
        true
    }

    fn counts_progress(&self) -> bool {
        self.counts_progress
    }

    fn on_duplicate_ack(&mut self, flight: &Flight<'_>, news: bool, windows: &mut Windows) -> Reaction {
        // Section 2: a duplicate is one that "identifies previously unacknowledged and un-SACKed octets"; section 5.1:
        // no new recovery "until HighACK is greater than or equal to the new value of RecoveryPoint".
        if self.recovering || !news || !self.gate.is_open(flight, windows) {
            return Reaction::Ignore;
        }
        self.dup_acks += 1;
        // Section 5, steps 1 and 2: "IsLost (HighACK + 1)".
        if self.dup_acks < DUP_THRESH && flight.una >= flight.board.lost_below(flight.mss) {
            // Step 3.1, for Limited Transmit.
            self.high_rxt = flight.una;
            return Reaction::Ignore;
        }
        reached!(LossBeforeThirdDuplicate if self.dup_acks < DUP_THRESH);
        // Steps 4.1 and 4.2.
        self.dup_acks = 0;
        self.gate.on_loss(flight);
        self.recovering = true;
        self.high_rxt = flight.una;
        self.rescue_rxt = flight.una + flight.mss;
        windows.on_fast_retransmit(flight);
        windows.cwnd = windows.in_recovery();
        Reaction::Resend
    }

    fn on_new_ack(&mut self, flight: &Flight<'_>, acked: u64, windows: &mut Windows) -> Progress {
        self.dup_acks = 0;
        self.gate.on_new_ack(flight, acked);
        if !self.recovering {
            return Progress::Grow;
        }
        // Step A.
        self.recovering = !self.gate.is_recovered(flight);
        reached!(PartialAck if self.recovering);
        if !self.recovering && self.reduction.as_mut().is_some_and(|gradual| gradual.prr.take().is_some()) {
            windows.cwnd = windows.in_recovery();
        }
        if self.recovering { Progress::Hold } else { self.end.progress() }
    }

    fn on_timeout(&mut self, flight: &Flight<'_>) {
        reached!(TimeoutInRecovery if self.recovering);
        reached!(ResentSegmentLost if self.recovering && self.high_rxt > flight.una);
        // Section 5.1.
        self.gate.on_loss(flight);
        (self.dup_acks, self.recovering, self.high_rxt, self.rescue_rxt) = (0, false, 0, 0);
        if let Some(gradual) = &mut self.reduction {
            gradual.prr = None;
        }
    }

    fn chooses(&self) -> bool {
        self.recovering || self.dup_acks > 0
    }

    fn choose(&self, flight: &Flight<'_>, windows: &Windows) -> Option<Choice> {
        // Step C: "if cwnd - pipe >= 1 SMSS".
        if windows.cwnd - flight.segments(self.pipe(flight)) < 1.0 {
            return None;
        }
        if self.recovering {
            return self.next_seg(flight, windows);
        }
        // Step 3.3, Limited Transmit.
        reached!(LimitedTransmit if flight.has_new(windows));
        flight.has_new(windows).then_some(Choice::New(flight.max))
    }

    fn on_sent(&mut self, choice: Choice, mss: u64) {
        if let Some(prr) = self.reduction.as_mut().and_then(|gradual| gradual.prr.as_mut()) {
            prr.on_sent();
        }
        match choice {
            Choice::Hole(seq) => self.high_rxt = seq + mss,
            Choice::New(_) => {}
            Choice::Rescue(_) => self.rescue_rxt = self.gate.recover.unwrap_or(0),
        }
    }

    fn observes(&self) -> bool {
        self.reduction.is_some()
    }

    fn on_arrival(&mut self, arrival: &Arrival<'_>) {
        if let Some(gradual) = &mut self.reduction {
            gradual.delivered = arrival.delivered();
            gradual.advances = arrival.ack > arrival.una;
        }
    }

    fn detect(&mut self, flight: &Flight<'_>, windows: &mut Windows) -> Detected {
        let inflight = flight.segments(self.pipe(flight));
        let Some(gradual) = self.reduction.as_mut().filter(|_| self.recovering) else { return Detected::Nothing };
        let (ssthresh, delivered) = (windows.in_recovery(), gradual.delivered);
        let prr = gradual
            .prr
            .get_or_insert_with(|| Prr::new(flight.segments(flight.board.missing(flight.una, flight.max) + delivered)));
        let lost_below = flight.board.lost_below(flight.mss);
        let loses = lost_below > std::mem::replace(&mut gradual.lost_below, lost_below);
        let is_safe = gradual.advances && !loses;
        let cwnd = prr.on_ack(Delivery { delivered: flight.segments(delivered), inflight, ssthresh, is_safe });
        windows.cwnd = cwnd.unwrap_or(windows.cwnd);
        Detected::Nothing
    }
}

impl Sack {
    /// Returns `SetPipe` (4) in octets: data that is neither reported nor lost, plus retransmitted data not yet
    /// reported. Recomputing it after a segment is sent counts that segment, as step C.4 does.
    fn pipe(&self, flight: &Flight<'_>) -> u64 {
        let board = flight.board;
        let not_lost_from = board.lost_below(flight.mss).clamp(flight.una, flight.max);
        let resent_below = self.high_rxt.clamp(flight.una, flight.max);
        board.missing(not_lost_from, flight.max) + board.missing(flight.una, resent_below)
    }

    /// Returns the next segment to send: `NextSeg` (4).
    fn next_seg(&self, flight: &Flight<'_>, windows: &Windows) -> Option<Choice> {
        let board = flight.board;
        // Rules 1.a and 1.b. All unreported data below a certain offset is lost (rule 1.c). No data above it is.
        let hole = board.hole(self.high_rxt.max(flight.una)).filter(|&seq| flight.fits(seq, windows));
        if let Some(lost) = hole.filter(|&seq| seq < board.lost_below(flight.mss)) {
            return Some(Choice::Hole(lost));
        }
        // Rule 2: "available unsent data and the receiver's advertised window allows".
        if flight.has_new(windows) {
            return Some(Choice::New(flight.max));
        }
        // 3.
        if let Some(seq) = hole {
            reached!(HoleSentEarly);
            return Some(Choice::Hole(seq));
        }
        // Rule 4 applies once per recovery, and only after the first resent segment has been acknowledged.
        let last = board.last_missing(flight.max).saturating_sub(flight.mss);
        let may = flight.una > self.rescue_rxt && last >= flight.una && flight.fits(last, windows);
        reached!(RescueRetransmission if may);
        may.then_some(Choice::Rescue(last))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::tcp::scoreboard::{SackBlocks, Scoreboard};

    proptest! {
        #![proptest_config(crate::rng::proptest_seeded(9))]

        #[test]
        fn the_sack_estimate_of_data_in_flight_follows_section_4_of_rfc_6675(
            sacked in prop::collection::btree_set(1u64..40, 0..30),
            resent_below in 0u64..40,
        ) {
            const MSS: u64 = 3;
            const MAX: u64 = 40;
            let mut board = Scoreboard::default();
            for &segment in &sacked {
                let mut block = SackBlocks::default();
                block.push(segment * MSS, (segment + 1) * MSS);
                board.record(&block, 0);
            }
            let flight = Flight { una: 0, max: MAX * MSS, end: u64::MAX, mss: MSS, reduced: false, board: &board };
            let sack = Sack { high_rxt: resent_below * MSS, ..Sack::default() };
            // Evaluate the RFC's definition octet by octet.
            let octets: BTreeSet<u64> = sacked.iter().flat_map(|segment| segment * MSS..(segment + 1) * MSS).collect();
            let is_lost = |octet: u64| {
                let above = || octets.iter().filter(|&&other| other > octet);
                let discontiguous = above().filter(|&&other| !octets.contains(&(other - 1))).count();
                discontiguous >= 3 || above().count() as u64 > 2 * MSS
            };
            let mut pipe = 0;
            for octet in (0..MAX * MSS).filter(|octet| !octets.contains(octet)) {
                pipe += u64::from(!is_lost(octet)) + u64::from(octet < sack.high_rxt);
            }
            prop_assert_eq!(sack.pipe(&flight), pipe);
        }
    }
}
