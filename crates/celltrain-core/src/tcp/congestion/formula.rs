//! A congestion control written as formulas in the scenario. They give new values of cwnd and ssthresh after an
//! acknowledgement, a loss or a timeout.
//!
//! Source: the scenario. `celltrain-formula` defines the language, and `docs/design/formulas.md` describes its
//! evaluation. Names are from `docs/mechanisms.md` 3. Differences from the source: without a formula, a value follows
//! [`jacobson`](super::jacobson).

pub mod table;

use celltrain_formula::rules::{Rules, Updates, update};
use table::{ACKED, CWND, FLIGHT, MIN_RTT, NOW, RTT, RWND, SRTT, SSTHRESH, Table};

use super::jacobson::Jacobson;
use super::{CongestionControl, Event, NewAck, Seen, Set};
use crate::tcp::options::TcpOptions;
use crate::units::{Clock, Span, Time};

/// RFC 6298 (2.3): gain alpha of the smoothed round-trip time.
const GAIN: f64 = 0.125;

/// The congestion control with its state.
#[derive(Debug)]
pub struct Formula {
    /// The control used for values without a formula.
    usual: Jacobson,
    rules: Rules,
    /// Time of the sender's last call, and the number of outstanding segments at that time.
    now: Time,
    flight: f64,
    units_per_second: f64,
    /// Latest round-trip time in seconds.
    rtt: f64,
    srtt: f64,
    min_rtt: f64,
    /// cwnd to set after the variant has begun its recovery.
    after_loss: Option<f64>,
    replaced: u64,
}

impl CongestionControl for Formula {
    fn on_new_ack(&mut self, ack: NewAck) -> f64 {
        self.usual.on_new_ack(ack)
    }

    fn decrease(&self, window: f64) -> f64 {
        self.usual.decrease(window)
    }

    fn on_round_trip(&mut self, took: Span) {
        let sample = took.0 as f64 / self.units_per_second;
        let is_first = self.rtt == 0.0;
        self.rtt = sample;
        self.srtt = if is_first { sample } else { self.srtt + GAIN * (sample - self.srtt) };
        self.min_rtt = if is_first { sample } else { self.min_rtt.min(sample) };
    }

    fn sets_windows(&self) -> bool {
        true
    }

    fn at(&mut self, now: Time, flight: f64) {
        (self.now, self.flight) = (now, flight);
    }

    fn set(&mut self, event: Event, seen: Seen) -> Set {
        let updates = match event {
            Event::NewAck => 0,
            Event::FastRetransmit => 1,
            Event::Timeout => 2,
        };
        let Rules { updates: all, registers, .. } = &mut self.rules;
        let updates: &Updates = &all[updates];
        for (register, value) in [
            (CWND, seen.cwnd),
            (SSTHRESH, seen.ssthresh),
            (RWND, seen.rwnd),
            (ACKED, seen.acked),
            (FLIGHT, self.flight),
            (RTT, self.rtt),
            (SRTT, self.srtt),
            (MIN_RTT, self.min_rtt),
            (NOW, self.now.0 as f64 / self.units_per_second),
        ] {
            registers[usize::from(register)] = value;
        }
        update(updates, registers, &mut || 0.0, &mut self.replaced);
        let is_set = |name: u8| updates.iter().any(|(register, _)| *register == name);
        let value = |name: u8| is_set(name).then(|| registers[usize::from(name)]);
        let mut set = Set { cwnd: value(CWND), ssthresh: value(SSTHRESH) };
        if event == Event::FastRetransmit {
            self.after_loss = set.cwnd.take();
        }
        set
    }

    fn after_loss(&mut self) -> Option<f64> {
        self.after_loss.take()
    }

    fn replaced_results(&self) -> u64 {
        self.replaced
    }
}

impl Formula {
    /// Creates the control of a new connection. If the formulas cannot be parsed, the control uses none, because the
    /// scenario is refused before it runs.
    pub fn new(options: &TcpOptions, clock: Clock) -> Self {
        let nothing = Table::default();
        let table = options.formula.as_deref().unwrap_or(&nothing);
        let rules = table
            .rules(options.mss.bytes)
            .or_else(|_| nothing.rules(options.mss.bytes))
            .expect("an empty formula can be parsed");
        Self {
            usual: Jacobson::new(options, clock),
            replaced: rules.replaced,
            rules,
            now: Time(0),
            flight: 0.0,
            units_per_second: clock.units_per_second as f64,
            rtt: 0.0,
            srtt: 0.0,
            min_rtt: 0.0,
            after_loss: None,
        }
    }
}

#[cfg(test)]
mod tests;
