//! Selection of the traffic to capture.

use celltrain_core::units::Duration;

use crate::CaptureKind;
use crate::selection::{Selection, Wrong};

/// Selection of the traffic to capture. By default, packets of all flows are captured at the flows' senders, and cells
/// of all VCs are captured as they leave the bottleneck, during the whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct CaptureChoice {
    pub(crate) kind: CaptureKind,
    /// In a capture of packets, whether senders and receivers are observed. In a capture of cells, whether departures
    /// and arrivals are observed.
    pub(crate) looks_at: [bool; 2],
    /// The selected ports, VCs, flows and time window.
    pub(crate) of: Selection,
}

/// Names of the kinds of captures.
pub const KINDS: [(&str, CaptureKind); 4] = [
    ("ip", CaptureKind::Ip),
    ("aal5", CaptureKind::Aal5),
    ("cells", CaptureKind::Cells),
    ("wireshark_cells", CaptureKind::ErfCells),
];

/// Names of the ends of connections at which packets can be captured: senders, receivers or both.
const ENDS: [(&str, [bool; 2]); 3] = [("sender", [true, false]), ("receiver", [false, true]), ("both", [true, true])];
/// Names of the directions in which cells can be captured at ports: departing cells, arriving cells or both.
const WAYS: [(&str, [bool; 2]); 3] = [("out", [true, false]), ("in", [false, true]), ("both", [true, true])];

impl CaptureChoice {
    /// Selects the kind of capture, the place, ports, VCs, flows, and a time window such as `1.2s:1.3s`, for runs of
    /// `duration`. The place `at` is `sender`, `receiver` or `both` for packets, and `out`, `in` or `both` for cells.
    /// Only a capture of cells may select ports.
    ///
    /// # Errors
    /// If a choice is invalid; the error describes the problem.
    pub fn new(
        duration: Duration,
        (kind, at): (&str, Option<&str>),
        [ports, vcs, flows]: [Option<Vec<String>>; 3],
        window: Option<&str>,
    ) -> Result<Self, Wrong> {
        let kind = of_word("kind", kind, "is not a kind of capture", &KINDS)?;
        let (words, problem) = if kind.of_cells() {
            (&WAYS, "is not a direction at a port")
        } else {
            (&ENDS, "is not an end of a connection")
        };
        let looks_at = at.map_or(Ok(words[0].1), |at| of_word("at", at, problem, words))?;
        if let Some(ports) = ports.as_ref().filter(|_| !kind.of_cells()) {
            let problem = "selects cells, but packets are captured at hosts; choose flows".to_owned();
            return Err(Wrong { option: "ports", value: ports.join(", "), problem });
        }
        Ok(Self { kind, looks_at, of: Selection::new(duration, [ports, vcs, flows], window)? })
    }

    /// Returns true for a capture of cells, and false for a capture of packets.
    pub fn of_cells(&self) -> bool {
        self.kind.of_cells()
    }

    /// Returns the end of the time window, or `None` if the window has no end.
    pub fn until(&self) -> Option<Duration> {
        self.of.until()
    }
}

fn of_word<T: Copy>(option: &'static str, value: &str, problem: &str, words: &[(&'static str, T)]) -> Result<T, Wrong> {
    let known: Vec<&str> = words.iter().map(|word| word.0).collect();
    let found = words.iter().find(|word| word.0 == value).map(|word| word.1);
    found.ok_or_else(|| Wrong::new(option, value, problem, &known))
}
