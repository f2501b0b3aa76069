//! ABR, the available bit rate service: sources control their rates in closed loops of resource management (RM) cells.
//!
//! Source: ATM Forum Traffic Management 4.0 as `docs/mechanisms.md` 4 gives it; section 2 of
//! draft-jagan-e2e-traf-mgmt-00.
//! `docs/design/abr.md` describes how the parts work together.

pub mod allocator;
mod destination;
mod parameters;
mod rate;
#[cfg(test)]
mod script;
mod source;

pub use destination::Destination;
pub use parameters::{Parameters, RateFormat, Rates, cells_per_second};
pub use rate::Rate;
pub use source::{Counters, Kind, Source};

/// Content of an RM cell (`docs/mechanisms.md` 4.4). Rates are cells per second. The engines round them to the 16-bit
/// format of real cells only if the VC's parameters require it.
#[expect(clippy::struct_excessive_bools, reason = "the cast keeps exactly the bits of this field")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmCell {
    /// DIR: true if the cell is on its way back to the source.
    pub backward: bool,
    /// BN: true if a switch or destination created the cell, not the source.
    pub bn: bool,
    /// CI: congestion indication; the source must decrease its rate.
    pub ci: bool,
    /// NI: no increase; the source must not increase its rate.
    pub ni: bool,
    /// ER: highest rate allowed to the source.
    pub er: f64,
    /// CCR: rate of the source when it sent the cell.
    pub ccr: f64,
    /// MCR: rate guaranteed to the source.
    pub mcr: f64,
    /// CLP bit in the cell's header: true if the source sent the cell out of rate.
    pub out_of_rate: bool,
}

impl RmCell {
    /// Creates a source's forward RM cell, sent in rate and without congestion indications.
    pub const fn forward(er: f64, ccr: f64, mcr: f64) -> Self {
        Self { backward: false, bn: false, ci: false, ni: false, er, ccr, mcr, out_of_rate: false }
    }
}

/// The rules by which an ABR source changes ACR (`docs/mechanisms.md` 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// Rule 2: the source starts at ICR.
    #[default]
    Initial,
    /// Rule 5: the source has sent no forward RM cell for ADTF, so ACR falls to ICR.
    Idle,
    /// Rule 6: CRM forward RM cells are unanswered, so ACR falls by CDF.
    Unanswered,
    /// Rule 8: a backward RM cell returned with CI, so ACR falls by RDF.
    CongestionIndication,
    /// Rule 8: a backward RM cell returned with neither CI nor NI, so ACR rises by RIF.
    Increase,
    /// Rule 9: a backward RM cell returned with an ER below the rate that rule 8 gives.
    ExplicitRate,
}
