//! The time that a port takes to obey a pause frame.
//!
//! Source: IEEE 802.3 annex 31B.3.7 limits the time from the reception of a pause frame to the last start of another
//! frame, in pause quanta of 512 bit times. `LIMITS` has the values that switch vendors and the tests of `SONiC` quote (at
//! 10 Gb/s, vendors quote 60 quanta and `SONiC` 67). The response to the end of a pause takes as long, so frames are obeyed
//! in order.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::{BitRate, Clock, Duration, Span};

/// Bits sent in a pause quantum (31B.2).
pub const QUANTUM_BITS: u64 = 512;

/// Limits of the response time (31B.3.7): Mb/s, and quanta.
const LIMITS: [(u64, u32); 9] = [
    (100, 1),
    (1_000, 2),
    (10_000, 60),
    (25_000, 80),
    (40_000, 118),
    (50_000, 147),
    (100_000, 394),
    (200_000, 453),
    (400_000, 905),
];

/// The time from the arrival of a pause frame to its effect on the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseResponse {
    /// A time.
    Time(Duration),
    /// A number of pause quanta on the link of the port.
    Quanta(u32),
}

impl PauseResponse {
    /// Name of this kind of quantity in schemas.
    pub const KIND: &str = "response time";

    /// Returns the limit of annex 31B.3.7 for a port's rate. A rate that is not listed has the limit of the next higher
    /// one; faster links than those listed have the time of 400 Gb/s.
    pub fn limit(rate: BitRate) -> Self {
        let [.., (last, quanta)] = LIMITS;
        match LIMITS.iter().find(|&&(speed, _)| rate.bits_per_second <= speed * 1_000_000) {
            Some(&(_, quanta)) => Self::Quanta(quanta),
            None => Self::Time(Duration { picoseconds: u64::from(quanta) * QUANTUM_BITS * 1_000_000 / last }),
        }
    }

    /// Returns the response time on a clock, for a port of this rate.
    pub fn span(self, rate: BitRate, clock: Clock) -> Span {
        match self {
            Self::Time(time) => clock.span(time),
            Self::Quanta(quanta) => clock.sending_time(u64::from(quanta) * QUANTUM_BITS, rate),
        }
    }
}

impl FromStr for PauseResponse {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim().strip_suffix("quanta").or_else(|| text.trim().strip_suffix("quantum"));
        let Some(number) = number else {
            let expected = "write a time such as \"2us\", or pause quanta of 512 bit times such as \"394 quanta\"";
            return text.parse().map(Self::Time).map_err(|_| format!("a response time; {expected}"));
        };
        let refused = |_| "a whole number of pause quanta, such as \"394 quanta\"".to_string();
        number.trim().parse().map(Self::Quanta).map_err(refused)
    }
}

impl fmt::Display for PauseResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => time.fmt(f),
            Self::Quanta(1) => f.write_str("1 quantum"),
            Self::Quanta(quanta) => write!(f, "{quanta} quanta"),
        }
    }
}

impl Serialize for PauseResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PauseResponse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for PauseResponse {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "PauseResponse".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "x-quantity": Self::KIND, "examples": ["394 quanta"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_pause_response_time_depends_on_the_port_rate_as_in_the_standard() {
        let limit = |rate: &str| PauseResponse::limit(rate.parse().unwrap()).to_string();
        let rates = ["10Mbps", "155.52Mbps", "1Gbps", "10Gbps", "25Gbps", "100Gbps", "400Gbps", "800Gbps"];
        let limits =
            ["1 quantum", "2 quanta", "2 quanta", "60 quanta", "80 quanta", "394 quanta", "905 quanta", "1.1584us"];
        assert_eq!(rates.map(limit), limits);
        let clock = Clock::exact(1_000_000_000_000);
        let rate = "100Gbps".parse().unwrap();
        assert_eq!(PauseResponse::limit(rate).span(rate, clock), Span(2_017_280), "394 x 512 bits take 2.01728 us");
    }

    #[test]
    fn a_pause_response_time_is_given_as_a_time_or_in_pause_quanta() {
        for text in ["2us", "0s", "394 quanta", "1 quantum"] {
            assert_eq!(text.parse::<PauseResponse>().unwrap().to_string(), text);
        }
        for text in ["2", "-1 quanta", "1.5 quanta", "quanta", "2 cells"] {
            let problem = text.parse::<PauseResponse>().unwrap_err();
            assert!(problem.contains("394 quanta"), "{text}: {problem}");
        }
    }
}
