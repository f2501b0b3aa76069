//! Information about a port that its policy can use.

use crate::aal5::Aal5Options;
use crate::network::{Link, Network};
use crate::units::Clock;

/// Properties of a port that stay constant during a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PortInfo<'a> {
    /// Name of the port's link.
    pub name: &'a str,
    /// K: number of cells that can wait; `None` if unlimited.
    pub capacity: Option<u32>,
    /// C: the rate of the port's link, in cells per second.
    pub cells_per_second: f64,
    /// The run's clock.
    pub clock: Clock,
    /// Framing of the network's packets.
    pub aal5: &'a Aal5Options,
}

impl<'a> PortInfo<'a> {
    /// Creates the information about the port of a network's link, in a run with this clock.
    pub(crate) fn of(network: &'a Network, link: &'a Link, clock: Clock) -> Self {
        let cells_per_second = link.rate.bits_per_second as f64 / clock.cell_bits as f64;
        Self { name: &link.name, capacity: link.buffer, cells_per_second, clock, aal5: &network.aal5 }
    }

    /// Creates port information for checking formulas before the port is known. Equal numbers share a register, so the
    /// placeholders of the rate and of the clock are numbers that no formula contains. A formula that fits into the
    /// registers with these also fits with any other.
    pub(in crate::policy) fn unknown() -> Self {
        Self {
            name: "",
            capacity: None,
            cells_per_second: 353_207.547_169_811_3,
            clock: Clock::exact(97_654_321),
            aal5: &Aal5Options::ATM,
        }
    }
}
