//! Parameters of an ABR VC in a scenario, with the defaults and ranges of TM 4.0.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Rate;
use crate::error::Fault;
use crate::gfr::check_pcr;
use crate::units::{BitRate, CELL_BITS, Duration};

/// The parameters of a VC of the available bit rate service (ABR). Rates include cell headers and RM cells.
///
/// Source: ATM Forum TM 4.0, as summarised in `docs/mechanisms.md` 4.1. Names are those of the source, in lower case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Abr")]
pub struct Parameters {
    /// PCR: the rate that the source never exceeds. Default: the rate of the VC's first link.
    pub pcr: Option<BitRate>,
    /// MCR: the guaranteed rate. The source may always send at this rate.
    pub mcr: BitRate,
    /// ICR: the rate at which the source starts, and restarts after `adtf`. Default: `pcr` (A-28). It is limited to
    /// `tbe` cells per round trip.
    pub icr: Option<BitRate>,
    /// Nrm: in-rate cells per forward RM cell, including that cell; a power of two.
    #[schemars(range(min = 2, max = 256), extend("x-unit" = "cells", "x-expect" = "a power of two (2 to 256)"))]
    pub nrm: u32,
    /// Mrm: minimum number of in-rate cells between two forward RM cells, however slow the source is.
    #[schemars(range(min = 1, max = 256), extend("x-unit" = "cells"))]
    pub mrm: u32,
    /// Trm: time after which a forward RM cell is sent as soon as `mrm` in-rate cells have been sent.
    pub trm: Duration,
    /// RIF: how much ACR rises on a backward RM cell, as a share of PCR; a power of two.
    #[schemars(
        range(min = 0.000_030_517_578_125, max = 1.0),
        extend("x-expect" = "a power of two from 1/32768 (0.000030517578125) to 1")
    )]
    pub rif: f64,
    /// RDF: how much ACR falls on a backward RM cell that indicates congestion, as a share of ACR; a power of two.
    #[schemars(
        range(min = 0.000_030_517_578_125, max = 1.0),
        extend("x-expect" = "a power of two from 1/32768 (0.000030517578125) to 1")
    )]
    pub rdf: f64,
    /// TBE: cells that the source may send before the first RM cell returns. After CRM = TBE / Nrm unanswered forward
    /// RM cells, ACR falls.
    #[schemars(range(min = 1, max = 16_777_215), extend("x-unit" = "cells"))]
    pub tbe: u32,
    /// CDF: how much ACR falls after CRM unanswered forward RM cells, as a share of ACR; 0 or a power of two.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expect" = "0 or a power of two from 1/64 (0.015625) to 1"))]
    pub cdf: f64,
    /// ADTF: a source that has sent no forward RM cell for longer than this restarts at ICR.
    pub adtf: Duration,
    /// TCR: maximum rate of out-of-rate forward RM cells. Ten cells a second are 4240 bps.
    pub tcr: BitRate,
    /// True if a source with data to send sends forward RM cells out of rate while its ACR is below TCR. The
    /// destination also returns these cells out of rate.
    pub out_of_rate: bool,
    /// FRTT: the fixed part of the VC's round-trip time, which limits ICR. Default: computed from the path.
    #[schemars(example = "30ms")]
    pub frtt: Option<Duration>,
    /// Format of rates in RM cells (A-29).
    pub rate_format: RateFormat,
}

/// Format of rates in RM cells (A-29).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateFormat {
    /// Not rounded.
    #[default]
    Exact,
    /// Rates have the 16-bit format of real cells, which rounds them down by less than 0.2 %.
    RmCell,
}

impl RateFormat {
    /// Returns the value of a rate, in cells per second, after it was written into an RM cell and read back.
    pub fn through_cell(self, rate: f64) -> f64 {
        match self {
            Self::Exact => rate,
            Self::RmCell => Rate::at_most(rate).cells_per_second(),
        }
    }
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            pcr: None,
            mcr: BitRate::from_bits_per_second(0),
            icr: None,
            nrm: 32,
            mrm: 2,
            trm: Duration::from_milliseconds(100),
            rif: 1.0 / 16.0,
            rdf: 1.0 / 16.0,
            tbe: MAX_TBE,
            cdf: 1.0 / 16.0,
            adtf: Duration::from_milliseconds(500),
            tcr: BitRate::from_bits_per_second(10 * CELL_BITS),
            out_of_rate: false,
            frtt: None,
            rate_format: RateFormat::default(),
        }
    }
}

/// A VC's rates in cells per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// PCR.
    pub pcr: f64,
    /// MCR.
    pub mcr: f64,
    /// ICR used by the source: min(ICR, TBE/FRTT), and at least MCR.
    pub icr: f64,
    /// TCR.
    pub tcr: f64,
}

impl Parameters {
    /// Returns the VC's rates, given the rate of its first link and the round-trip time of a cell that never queues.
    pub fn rates(&self, link_rate: BitRate, round_trip: Duration) -> Rates {
        let pcr = self.pcr.unwrap_or(link_rate);
        let mcr = cells_per_second(self.mcr);
        // If the round-trip time is zero, TBE/FRTT is infinite and sets no limit.
        let start = f64::from(self.tbe) / self.frtt.unwrap_or(round_trip).seconds();
        let icr = cells_per_second(self.icr.unwrap_or(pcr)).min(start).max(mcr);
        Rates { pcr: cells_per_second(pcr), mcr, icr, tcr: cells_per_second(self.tcr) }
    }

    /// Returns the share of the VC's rate that data takes while the source always has data: one in every Nrm in-rate
    /// cells is a forward RM cell (`docs/mechanisms.md` 1.1).
    pub fn data_share(&self) -> f64 {
        f64::from(self.nrm.saturating_sub(1)) / f64::from(self.nrm)
    }

    /// Returns CRM, the number of unanswered forward RM cells after which ACR falls.
    pub fn crm(&self) -> u32 {
        self.tbe.div_ceil(self.nrm)
    }

    /// Checks the parameters of a VC whose first link has this rate.
    pub fn check(&self, link_rate: BitRate) -> Vec<Fault> {
        let pcr = self.pcr.unwrap_or(link_rate);
        let mut faults = Vec::from_iter(check_pcr(pcr, link_rate));
        let mut refuse = |key, value: String, problem: String| faults.push(Fault::new(key, value, problem));
        if self.mcr > pcr {
            refuse("mcr", format!("\"{}\"", self.mcr), format!("is not a rate up to pcr = \"{pcr}\""));
        }
        if let Some(icr) = self.icr.filter(|&icr| icr > pcr || icr < self.mcr || icr.bits_per_second == 0) {
            let problem = format!("is not a positive rate from mcr = \"{}\" to pcr = \"{pcr}\"", self.mcr);
            refuse("icr", format!("\"{icr}\""), problem);
        }
        if !self.nrm.is_power_of_two() || !(2..=256).contains(&self.nrm) {
            refuse("nrm", self.nrm.to_string(), "is not one of 2, 4, 8, 16, 32, 64, 128, 256 cells".into());
        }
        if !(1..=256).contains(&self.mrm) {
            refuse("mrm", self.mrm.to_string(), "is not a number of cells from 1 to 256".into());
        }
        if self.trm > MAX_TRM || self.trm.picoseconds == 0 {
            refuse("trm", format!("\"{}\"", self.trm), format!("must be a positive time of at most {MAX_TRM}"));
        }
        for (key, factor) in [("rif", self.rif), ("rdf", self.rdf)] {
            if !is_power_of_two(factor, 1.0 / 32768.0) {
                refuse(key, factor.to_string(), "is not a power of two from 1/32768 (0.000030517578125) to 1".into());
            }
        }
        if !(1..=MAX_TBE).contains(&self.tbe) {
            refuse("tbe", self.tbe.to_string(), format!("is not a number of cells from 1 to {MAX_TBE}"));
        }
        if self.cdf != 0.0 && !is_power_of_two(self.cdf, 1.0 / 64.0) {
            refuse("cdf", self.cdf.to_string(), "is neither 0 nor a power of two from 1/64 (0.015625) to 1".into());
        }
        if !(MIN_ADTF..=MAX_ADTF).contains(&self.adtf) {
            refuse("adtf", format!("\"{}\"", self.adtf), format!("is not a time from {MIN_ADTF} to {MAX_ADTF}"));
        }
        if self.tcr > pcr || self.tcr.bits_per_second == 0 {
            // The message must also make sense to users who did not set the key.
            let is_default = self.tcr == Self::default().tcr;
            let own = if is_default { ", so the default of tcr is too high" } else { "" };
            let problem = format!("must be a positive rate of at most pcr = \"{pcr}\"{own}");
            refuse("tcr", format!("\"{}\"", self.tcr), problem);
        }
        if self.out_of_rate && self.mcr >= self.tcr {
            let problem = format!(
                "has no effect with mcr = \"{}\": ACR is never below tcr = \"{}\", so no cell is sent out of rate; leave it \
                 out, or lower mcr below tcr",
                self.mcr, self.tcr
            );
            refuse("out_of_rate", "true".into(), problem);
        }
        if let Some(frtt) = self.frtt.filter(|&frtt| frtt > MAX_FRTT) {
            refuse("frtt", format!("\"{frtt}\""), format!("must be a time of at most {MAX_FRTT}"));
        }
        faults
    }
}

/// Converts a bit rate to cells per second.
pub fn cells_per_second(rate: BitRate) -> f64 {
    rate.bits_per_second as f64 / CELL_BITS as f64
}

fn is_power_of_two(factor: f64, least: f64) -> bool {
    (least..=1.0).contains(&factor) && factor.to_bits().trailing_zeros() >= 52
}

/// TM 4.0: TBE is a 24-bit number of cells.
const MAX_TBE: u32 = (1 << 24) - 1;
/// TM 4.0: Trm is 100 ms times a power of two from 1/128 to 1.
const MAX_TRM: Duration = Duration::from_milliseconds(100);
/// TM 4.0: ADTF is a 10-bit multiple of 10 ms.
const MIN_ADTF: Duration = Duration::from_milliseconds(10);
const MAX_ADTF: Duration = Duration::from_milliseconds(10_230);
/// TM 4.0: FRTT is a 24-bit number of microseconds.
const MAX_FRTT: Duration = Duration::from_microseconds((1 << 24) - 1);

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: BitRate = BitRate::from_bits_per_second(155_520_000);

    fn keys(parameters: &Parameters) -> Vec<String> {
        parameters.check(LINK).into_iter().map(|fault| fault.key).collect()
    }

    fn said(parameters: &Parameters) -> Vec<String> {
        parameters.check(LINK).iter().map(|f| format!("{} = {} {}", f.key, f.value, f.problem)).collect()
    }

    fn mbps(rate: u64) -> BitRate {
        BitRate::from_bits_per_second(rate * 1_000_000)
    }

    #[test]
    fn the_default_abr_parameters_are_valid_and_equal_those_of_tm_4_0() {
        let read: Parameters = serde_json::from_str("{}").unwrap();
        assert_eq!(read, Parameters::default());
        assert_eq!(keys(&read), [""; 0]);
        // CRM is 16777215 / 32, rounded up.
        assert_eq!(read.crm(), 524_288);
        let rates = read.rates(LINK, Duration::from_milliseconds(6));
        // PCR is 155.52e6 / 424 cells a second. TBE/FRTT is 2.8e9 and sets no limit.
        assert_eq!((rates.pcr, rates.icr), (155.52e6 / 424.0, 155.52e6 / 424.0));
        assert_eq!((rates.mcr, rates.tcr), (0.0, 10.0));
    }

    #[test]
    fn the_initial_cell_rate_is_at_least_mcr_and_at_most_tbe_per_round_trip() {
        let parameters = Parameters { tbe: 600, ..Parameters::default() };
        let icr = |parameters: &Parameters| parameters.rates(LINK, Duration::from_milliseconds(6)).icr;
        assert_eq!(icr(&parameters), 100_000.0);
        let frtt = Some(Duration::from_milliseconds(3));
        assert_eq!(icr(&Parameters { frtt, ..parameters.clone() }), 200_000.0);
        let mcr = BitRate::from_bits_per_second(424 * 150_000);
        assert_eq!(icr(&Parameters { mcr, ..parameters.clone() }), 150_000.0);
        let icr_given = Some(BitRate::from_bits_per_second(424 * 50_000));
        assert_eq!(icr(&Parameters { icr: icr_given, ..parameters.clone() }), 50_000.0);
        assert_eq!(icr(&Parameters { frtt: Some(Duration::default()), ..parameters }), 155.52e6 / 424.0);
    }

    #[test]
    fn invalid_abr_parameters_are_refused_with_their_key_and_extreme_valid_parameters_are_accepted() {
        type Change = fn(&mut Parameters);
        let with = |change: Change| {
            let mut parameters = Parameters::default();
            change(&mut parameters);
            keys(&parameters)
        };
        let good: [Change; 14] = [
            |p| p.pcr = Some(LINK),
            |p| p.mcr = LINK,
            |p| (p.icr, p.mcr) = (Some(mbps(10)), mbps(10)),
            |p| p.icr = Some(LINK),
            |p| (p.out_of_rate, p.mcr, p.tcr) = (true, mbps(1), mbps(2)),
            |p| p.nrm = 2,
            |p| p.nrm = 256,
            |p| p.rif = 1.0,
            |p| p.rdf = 1.0 / 32768.0,
            |p| p.cdf = 0.0,
            |p| p.cdf = 1.0 / 64.0,
            |p| p.tbe = 1,
            |p| p.adtf = Duration::from_milliseconds(10_230),
            |p| p.frtt = Some(Duration::from_microseconds(16_777_215)),
        ];
        for (which, change) in good.into_iter().enumerate() {
            assert_eq!(with(change), [""; 0], "good value {which}");
        }
        let bad: [(&str, Change); 27] = [
            ("pcr", |p| p.pcr = Some(mbps(156))),
            ("mcr", |p| p.mcr = mbps(156)),
            ("icr", |p| p.icr = Some(mbps(156))),
            ("icr", |p| (p.icr, p.mcr) = (Some(mbps(10)), mbps(11))),
            ("icr", |p| p.icr = Some(mbps(0))),
            ("nrm", |p| p.nrm = 1),
            ("nrm", |p| p.nrm = 33),
            ("nrm", |p| p.nrm = 512),
            ("mrm", |p| p.mrm = 0),
            ("mrm", |p| p.mrm = 257),
            ("trm", |p| p.trm = Duration::default()),
            ("trm", |p| p.trm = Duration::from_milliseconds(101)),
            ("rif", |p| p.rif = 0.1),
            ("rif", |p| p.rif = 2.0),
            ("rif", |p| p.rif = f64::NAN),
            ("rdf", |p| p.rdf = 0.0),
            ("rdf", |p| p.rdf = 1.0 / 65536.0),
            ("rdf", |p| p.rdf = -0.5),
            ("tbe", |p| p.tbe = 0),
            ("tbe", |p| p.tbe = 1 << 24),
            ("cdf", |p| p.cdf = 1.0 / 128.0),
            ("cdf", |p| p.cdf = 0.75),
            ("adtf", |p| p.adtf = Duration::from_milliseconds(9)),
            ("adtf", |p| p.adtf = Duration::from_milliseconds(10_231)),
            ("tcr", |p| p.tcr = mbps(0)),
            ("out_of_rate", |p| (p.out_of_rate, p.mcr, p.tcr) = (true, mbps(2), mbps(2))),
            ("frtt", |p| p.frtt = Some(Duration::from_microseconds(16_777_216))),
        ];
        for (which, (key, change)) in bad.into_iter().enumerate() {
            assert_eq!(with(change), [key], "bad value {which}");
        }
    }

    #[test]
    fn all_invalid_abr_parameters_are_reported_together_with_their_valid_ranges() {
        let parameters = Parameters { rif: 0.1, nrm: 31, icr: Some(mbps(200)), ..Parameters::default() };
        assert_eq!(
            said(&parameters),
            [
                "icr = \"200Mbps\" is not a positive rate from mcr = \"0bps\" to pcr = \"155.52Mbps\"",
                "nrm = 31 is not one of 2, 4, 8, 16, 32, 64, 128, 256 cells",
                "rif = 0.1 is not a power of two from 1/32768 (0.000030517578125) to 1",
            ]
        );
    }

    #[test]
    fn the_error_for_an_abr_default_out_of_range_states_that_the_value_is_a_default() {
        let said = |tcr: u64| {
            let tcr = BitRate::from_bits_per_second(tcr);
            let pcr = Some(BitRate::from_bits_per_second(1000));
            self::said(&Parameters { pcr, tcr, ..Parameters::default() })
        };
        assert_eq!(
            said(4240),
            [
                "tcr = \"4.24kbps\" must be a positive rate of at most pcr = \"1kbps\", so the default of tcr is too high"
            ]
        );
        assert_eq!(said(4241), ["tcr = \"4.241kbps\" must be a positive rate of at most pcr = \"1kbps\""]);
        assert_eq!(said(1000), [""; 0]);
    }

    #[test]
    fn unknown_keys_in_an_abr_table_are_refused() {
        assert!(serde_json::from_str::<Parameters>(r#"{"rif": 0.5, "xrm": 1}"#).is_err());
    }
}
