//! Traffic: the data a flow has to send, and its timing.
//!
//! TCP sends bytes: an unlimited number (`greedy`), a file, or files and pauses (`bursts`). Other sources send packets
//! at their own times, regardless of loss, like an application over UDP. To add a kind, add a file here, two lines in
//! this file and one page under `docs/models/`.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

pub mod bursts;
pub mod constant_rate;
pub mod file;
pub mod greedy;
pub mod on_off;

use crate::registry;
use crate::rng::Stream;
use crate::units::{BitRate, Bytes, Clock, Duration, PS_PER_SECOND, Span, Time};

registry! {
    /// The traffic of a flow in a scenario: a table whose only key is the kind's name.
    #[schemars(rename = "Traffic")]
    pub enum TrafficConfig(module::Config) {
        /// TCP with an endless source.
        greedy: Greedy,
        /// TCP with a file. The flow ends when the whole file is acknowledged.
        file: File,
        /// TCP with one file after another, and pauses between them.
        bursts: Bursts,
        /// Packets at a constant rate, regardless of loss.
        constant_rate: ConstantRate,
        /// Packets at a constant rate in bursts.
        on_off: OnOff,
    }

    /// Returns the load.
    pub fn load(&self) -> Load<'_> { |config| config.load() }
}

impl Default for TrafficConfig {
    fn default() -> Self {
        Self::Greedy(greedy::Config {})
    }
}

/// The data of a flow, by the mechanism that determines when it is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load<'a> {
    /// TCP sends this many bytes, or an unlimited number.
    Stream(Option<Bytes>),
    /// TCP sends a burst of bytes, then pauses, repeatedly.
    Bursts(&'a bursts::Config),
    /// The source sends packets at its own times, without TCP.
    Packets(Pattern<'a>),
}

/// Packets of one size at one rate, either continuously or in bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pattern<'a> {
    /// Rate of the packets' cells on the line, headers included.
    pub rate: BitRate,
    /// Payload of a packet.
    pub packet: Bytes,
    /// Bursts; `None` without pauses.
    pub bursts: Option<&'a on_off::Config>,
}

impl TrafficConfig {
    /// Returns the packets of the source, if the flow does not use TCP.
    pub fn packets(&self) -> Option<Pattern<'_>> {
        match self.load() {
            Load::Packets(pattern) => Some(pattern),
            Load::Stream(_) | Load::Bursts(_) => None,
        }
    }

    /// Returns the bursts over TCP, if the flow sends bursts.
    pub fn bursts(&self) -> Option<&bursts::Config> {
        match self.load() {
            Load::Bursts(bursts) => Some(bursts),
            Load::Stream(_) | Load::Packets(_) => None,
        }
    }

    /// Returns the bytes of a file, or of each burst.
    pub fn bytes(&self) -> Option<Bytes> {
        match self.load() {
            Load::Stream(bytes) => bytes,
            Load::Bursts(bursts) => Some(bursts.bytes),
            Load::Packets(_) => None,
        }
    }
}

/// Interface of every kind's `Config`.
pub trait Configure {
    /// Returns the load.
    fn load(&self) -> Load<'_>;
}

/// The times at which a source sends its packets. Each time is computed from the start of its burst with one exact
/// division, so rounding errors do not accumulate.
pub struct Emissions {
    start: Time,
    clock: Clock,
    /// Bits of a packet's cells, headers included.
    bits: u64,
    rate: BitRate,
    /// Number of packets sent in the current burst.
    sent: u64,
    burst: Time,
    until: Option<Time>,
    ended: u64,
    bursts: Option<on_off::Config>,
    rng: Stream,
}

#[expect(
    clippy::arithmetic_side_effects,
    reason = "no overflow: packet sizes have 21 bits, packet numbers 62 bits and times 62 bits"
)]
impl Emissions {
    /// Creates the times of a source that starts at `start`; a packet takes `cells` cells. Exponential times are drawn
    /// from `rng`.
    pub fn new(pattern: &Pattern<'_>, cells: u32, start: Time, clock: Clock, rng: Stream) -> Self {
        let mut emissions = Self {
            start,
            clock,
            bits: u64::from(cells) * clock.cell_bits,
            rate: pattern.rate,
            sent: 0,
            burst: start,
            until: None,
            ended: 0,
            bursts: pattern.bursts.cloned(),
            rng,
        };
        emissions.begin(start);
        emissions
    }

    /// Returns the next sending time. A burst has at least one packet, at its start.
    pub fn next_emission(&mut self) -> Time {
        let bits = u128::from(self.bits) * u128::from(self.sent);
        let after = whole(bits * u128::from(self.clock.units_per_second), u128::from(self.rate.bits_per_second));
        let time = self.burst + after;
        if self.sent > 0
            && let Some(until) = self.until.filter(|&until| time >= until)
        {
            let next = self.pause(until);
            self.begin(next);
            self.sent = 1;
            return next;
        }
        self.sent += 1;
        time
    }

    /// Begins a burst and sets its end.
    fn begin(&mut self, burst: Time) {
        self.burst = burst;
        let Some(bursts) = &self.bursts else { return };
        self.until = Some(match bursts.times {
            on_off::Times::Fixed => self.start + span(self.clock, bursts.on, bursts.off, self.ended, bursts.on),
            on_off::Times::Exponential => burst + self.rng.exponential(self.clock.span(bursts.on)),
        });
    }

    /// Ends a burst. Returns the start of the next burst.
    fn pause(&mut self, until: Time) -> Time {
        self.ended += 1;
        let bursts = self.bursts.as_ref().expect("only traffic in bursts ends a burst");
        match bursts.times {
            on_off::Times::Fixed => {
                self.start + span(self.clock, bursts.on, bursts.off, self.ended, Duration::default())
            }
            on_off::Times::Exponential => until + self.rng.exponential(self.clock.span(bursts.off)),
        }
    }
}

/// Returns the time of `cycles` on-off cycles plus `more`, on a clock.
#[expect(clippy::arithmetic_side_effects, reason = "no overflow: a product of 62 and 61 bits fits in 128 bits")]
fn span(clock: Clock, on: Duration, off: Duration, cycles: u64, more: Duration) -> Span {
    let cycle = u128::from(on.picoseconds) + u128::from(off.picoseconds);
    let picoseconds = cycle * u128::from(cycles) + u128::from(more.picoseconds);
    whole(picoseconds * u128::from(clock.units_per_second), u128::from(PS_PER_SECOND))
}

#[expect(clippy::arithmetic_side_effects, reason = "no division by zero: checks refuse a rate of zero")]
fn whole(numerator: u128, denominator: u128) -> Span {
    Span(u64::try_from(numerator / denominator).expect("scenario checks keep times below 2^62 units"))
}

/// Returns the default payload of a packet: a full segment of ATM Forum 96-1269.
fn packet() -> Bytes {
    Bytes { bytes: 512 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: Clock = Clock::exact(97_200_000);

    fn emissions(traffic: &TrafficConfig) -> Emissions {
        let stream = Stream::new(1, "test");
        Emissions::new(&traffic.packets().unwrap(), 12, Time(1000), CLOCK, stream)
    }

    fn on_off(times: on_off::Times) -> TrafficConfig {
        let on = Duration::from_milliseconds(3);
        let off = Duration::from_milliseconds(6);
        TrafficConfig::OnOff(on_off::Config { on, off, times, ..on_off::Config::default() })
    }

    #[test]
    fn a_constant_rate_source_sends_every_packet_within_one_time_unit_of_its_exact_time() {
        // 12 cells at 10 Mb/s take 508.8 us or 49455.36 units, so the k-th packet is sent after k times that interval,
        // rounded down.
        let rate = BitRate::from_bits_per_second(10_000_000);
        let traffic = TrafficConfig::ConstantRate(constant_rate::Config { rate, packet: packet() });
        let mut emissions = emissions(&traffic);
        for k in 0..1_000_000u64 {
            assert_eq!(emissions.next_emission(), Time(1000 + k * 4_945_536 / 100));
        }
    }

    #[test]
    fn bursts_with_fixed_durations_start_one_cycle_apart() {
        let mut emissions = emissions(&on_off(on_off::Times::Fixed));
        // A cycle of 9 ms has 874800 units. In 3 ms at 0.8 of an OC-3 there are 74 packets of 3975 units each, all
        // complete.
        for cycle in 0..1000 {
            for k in 0..74 {
                assert_eq!(emissions.next_emission(), Time(1000 + cycle * 874_800 + k * 3975));
            }
        }
    }

    #[test]
    fn a_burst_shorter_than_a_time_unit_consists_of_one_packet() {
        let (on, off) = (Duration { picoseconds: 1 }, Duration::from_milliseconds(6));
        let config = on_off::Config { on, off, times: on_off::Times::Fixed, ..on_off::Config::default() };
        let mut emissions = emissions(&TrafficConfig::OnOff(config));
        for cycle in 0..100 {
            assert_eq!(emissions.next_emission(), Time(1000 + cycle * 583_200));
        }
    }

    #[test]
    fn exponentially_distributed_bursts_and_pauses_have_the_configured_means() {
        let mut emissions = emissions(&on_off(on_off::Times::Exponential));
        let (mut packets, mut now) = (0u32, Time(0));
        while now < Time(97_200_000 * 200) {
            now = emissions.next_emission();
            packets += 1;
        }
        // The source is on for a third of the time. 200 s contain 22,222 bursts. Their length is 3 ms on average, with
        // a standard deviation of 3 ms. Each burst has half a packet more than its share, because it begins with a
        // packet.
        let expected = 200.0 / 3.0 * 97_200_000.0 / 3975.0 + 22_222.0 / 2.0;
        assert!((f64::from(packets) / expected - 1.0).abs() < 0.03, "{packets} of {expected}");
    }
}
