//! Selection of the packet delays that a run measures.

/// Selects the packet delays to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DelayChoice {
    /// No delays.
    #[default]
    None,
    /// Measures only the delays at ports.
    Ports,
    /// Measures only the delays of flows.
    Flows,
    /// All delays.
    All,
}

impl DelayChoice {
    /// Returns a selection of delays at ports, of flows, or both.
    pub fn of(ports: bool, flows: bool) -> Self {
        match (ports, flows) {
            (false, false) => Self::None,
            (true, false) => Self::Ports,
            (false, true) => Self::Flows,
            (true, true) => Self::All,
        }
    }

    /// Returns whether the delays at ports are measured.
    pub fn at_ports(self) -> bool {
        matches!(self, Self::Ports | Self::All)
    }

    /// Returns whether the delays of flows are measured.
    pub fn of_flows(self) -> bool {
        matches!(self, Self::Flows | Self::All)
    }
}
