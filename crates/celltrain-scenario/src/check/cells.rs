//! Checks of the cells of a network.

use celltrain_core::aal5::CellFormat;
use celltrain_core::units::Bytes;

use crate::scenario::Scenario;
use crate::scope::Scope;

/// The largest cells of known switches have 4096 bytes.
const MAX_SIZE: u64 = 65_536;
/// A cell must have room for the AAL5 trailer.
const MIN_PAYLOAD: u64 = 8;

/// Checks the cell format, and that services defined for ATM cells have such cells.
pub(super) fn check(scenario: &Scenario, root: &mut Scope<'_>) {
    let (size, payload) = (scenario.cell.size, scenario.cell.payload);
    if !(MIN_PAYLOAD..=MAX_SIZE).contains(&size.bytes) {
        let problem = format!("must be from {MIN_PAYLOAD}B to {MAX_SIZE}B; an ATM cell has 53B");
        root.at("cell").at("size").refuse_text(size, problem);
        return;
    }
    if let Some(payload) = payload.filter(|payload| !(MIN_PAYLOAD..=size.bytes).contains(&payload.bytes)) {
        let problem = format!("must be from {MIN_PAYLOAD}B to the size of a cell, {size}");
        root.at("cell").at("payload").refuse_text(payload, problem);
        return;
    }
    if scenario.cell.format() == CellFormat::ATM {
        return;
    }
    if let Some(service) = service_of_atm(scenario) {
        let key = if size.bytes == 53 { ("payload", payload.unwrap_or(Bytes { bytes: 48 })) } else { ("size", size) };
        let problem = format!("is not possible with {service}, which is defined for ATM cells only; leave [cell] out");
        root.at("cell").at(key.0).refuse_text(key.1, problem);
    }
}

/// Returns a service in use that is defined for ATM cells only.
pub(super) fn service_of_atm(scenario: &Scenario) -> Option<&'static str> {
    let uses_abr = scenario.vc.values().any(|vc| vc.abr.is_some());
    let uses_gfr = scenario.vc.values().any(|vc| vc.gfr.is_some());
    let services =
        [("ABR", uses_abr), ("a guaranteed frame rate", uses_gfr), ("edge devices", !scenario.edge.is_empty())];
    services.into_iter().find_map(|(service, is_used)| is_used.then_some(service))
}
