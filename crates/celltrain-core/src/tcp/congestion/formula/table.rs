//! The table of a scenario with the formulas of a congestion control, and the names that they may use.

use std::collections::BTreeMap;

use celltrain_formula::rules::{Constant, Host, Name, On, Rules, Start, Texts};
use celltrain_formula::{Meaning, Unit, Word};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Fault;

/// A user-defined congestion control: formulas for cwnd and ssthresh, constants, and state that is kept between
/// evaluations.
///
/// Source: the scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CongestionFormula")]
pub struct Table {
    /// New values of cwnd, ssthresh and state after an acknowledgement that lets cwnd grow, also in slow start:
    /// `cwnd = "if cwnd < ssthresh then cwnd + 1 else cwnd + 1 / cwnd"`.
    #[serde(default)]
    pub on_ack: BTreeMap<String, String>,
    /// New values when duplicate acknowledgements start a fast retransmit.
    #[serde(default)]
    pub on_loss: BTreeMap<String, String>,
    /// New values when the retransmission timer expires.
    #[serde(default)]
    pub on_timeout: BTreeMap<String, String>,
    /// Constants by name: each one is a number or a formula of constants.
    #[serde(default)]
    pub constants: BTreeMap<String, Start>,
    /// State variables of the connection, by name, each with its initial value.
    #[serde(default)]
    pub state: BTreeMap<String, Start>,
}

/// The table of a scenario. It is boxed to keep the options of every connection small.
pub type Config = Box<Table>;

/// Registers of the sender's values; the user's own names follow.
pub(super) const CWND: u8 = 0;
pub(super) const SSTHRESH: u8 = 1;
pub(super) const RWND: u8 = 2;
pub(super) const ACKED: u8 = 3;
pub(super) const FLIGHT: u8 = 4;
pub(super) const RTT: u8 = 5;
pub(super) const SRTT: u8 = 6;
pub(super) const MIN_RTT: u8 = 7;
pub(super) const NOW: u8 = 8;
const FIRST_OWN: u8 = 9;

/// The names that the sender provides, with their registers. Constants have no register.
pub const NAMES: &[(Name, Option<u8>)] = &[
    (Name::number("cwnd", Unit::NONE, "congestion window, in segments"), Some(CWND)),
    (Name::number("ssthresh", Unit::NONE, "slow start threshold, in segments"), Some(SSTHRESH)),
    (Name::number("rwnd", Unit::NONE, "the receiver's window, in segments"), Some(RWND)),
    (Name::number("acked", Unit::NONE, "number of segments acknowledged by this acknowledgement"), Some(ACKED)),
    (Name::number("flight", Unit::NONE, "number of segments sent but not yet acknowledged"), Some(FLIGHT)),
    (Name::number("rtt", Unit::SECONDS, "latest round-trip time; 0 before the first sample"), Some(RTT)),
    (Name::number("srtt", Unit::SECONDS, "smoothed round-trip time (RFC 6298)"), Some(SRTT)),
    (Name::number("min_rtt", Unit::SECONDS, "shortest round-trip time so far"), Some(MIN_RTT)),
    (Name::number("now", Unit::SECONDS, "seconds since the start of the run"), Some(NOW)),
    (Name::number("mss", Unit::BYTES, "payload of a full segment in bytes"), None),
];

/// Properties of a sender with segments of `mss` bytes.
struct OfSender {
    mss: f64,
}

impl Host for OfSender {
    fn words(&self, on: On) -> Vec<Word> {
        let meaning = |register: Option<u8>| match register {
            None => Meaning::Constant(self.mss),
            Some(_) if on == On::Start => Meaning::NotHere(
                "this value changes during the run, but this formula is evaluated only once, at the start",
            ),
            Some(ACKED) if on != On::Event(ON_ACK) => Meaning::NotHere("this value is available only in on_ack"),
            Some(register) => Meaning::Register(register),
        };
        let word = |(name, register): &(Name, Option<u8>)| Word {
            name: name.name.into(),
            kind: name.kind,
            meaning: meaning(*register),
        };
        NAMES.iter().map(word).collect()
    }

    fn no_random(&self, _on: On) -> Option<&'static str> {
        Some("a sender draws no random numbers")
    }

    fn taken(&self) -> [&'static str; 2] {
        ["the sender's", "docs/models/congestion_formula.md"]
    }

    fn settable(&self) -> &'static [&'static str] {
        &["cwnd", "ssthresh"]
    }

    fn targets(&self) -> &'static str {
        "cwnd, ssthresh or the name of a variable in state"
    }
}

const ON_ACK: &str = "on_ack";

impl Table {
    /// Returns the faults of the table for segments of `mss` bytes.
    pub fn check(&self, mss: u64) -> Vec<Fault> {
        self.rules(mss).err().unwrap_or_default()
    }

    /// Returns whether the table has no formulas.
    pub fn is_empty(&self) -> bool {
        self.events().iter().all(|(_, updates)| updates.is_empty())
    }

    /// Returns unused names in the table, by their keys.
    pub fn unused(&self) -> Vec<String> {
        let (constants, vc_state) = (self.all_constants(), BTreeMap::new());
        self.texts(&constants, &vc_state, &self.events()).unused()
    }

    /// Returns the compiled formulas for segments of `mss` bytes, or their faults.
    pub(super) fn rules(&self, mss: u64) -> Result<Rules, Vec<Fault>> {
        let (constants, vc_state) = (self.all_constants(), BTreeMap::new());
        self.texts(&constants, &vc_state, &self.events()).compile(&OfSender { mss: mss as f64 })
    }

    fn all_constants(&self) -> BTreeMap<String, Constant> {
        self.constants.iter().map(|(name, start)| (name.clone(), Constant::from(start.clone()))).collect()
    }

    fn texts<'a>(
        &'a self,
        constants: &'a BTreeMap<String, Constant>,
        vc_state: &'a BTreeMap<String, Start>,
        events: &'a [(&'static str, &'a BTreeMap<String, String>)],
    ) -> Texts<'a> {
        Texts { constants, state: &self.state, vc_state, questions: &[], events, vcs: Some(&[]), first: FIRST_OWN }
    }

    fn events(&self) -> [(&'static str, &BTreeMap<String, String>); 3] {
        [(ON_ACK, &self.on_ack), ("on_loss", &self.on_loss), ("on_timeout", &self.on_timeout)]
    }
}

/// Returns Reno as formulas, for the tests of every control.
#[cfg(test)]
#[expect(clippy::unnecessary_box_returns, reason = "settings are always passed in a box")]
pub(crate) fn sample() -> Config {
    let updates = |entries: &[(&str, &str)]| -> BTreeMap<String, String> {
        entries.iter().map(|(name, text)| ((*name).to_string(), (*text).to_string())).collect()
    };
    let table = Table {
        on_ack: updates(&[("cwnd", "if cwnd < ssthresh then cwnd + 1 else cwnd + 1 / cwnd"), ("acks", "acks + 1")]),
        on_loss: updates(&[("ssthresh", "max(2, beta * min(cwnd, rwnd))")]),
        on_timeout: updates(&[("ssthresh", "max(2, min(beta * cwnd, rwnd))"), ("cwnd", "1"), ("acks", "0")]),
        constants: [("beta".to_string(), Start::Number(0.5))].into(),
        state: [("acks".to_string(), Start::Number(0.0))].into(),
    };
    table.into()
}
