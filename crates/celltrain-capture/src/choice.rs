//! Selection of the traffic to capture.

use celltrain_core::units::Duration;

use crate::CaptureKind;
use crate::selection::{Selection, Wrong};

/// Selection of the traffic to capture. Default: IPv4 packets of all flows at their senders for the whole run, or cells
/// of all VCs as they leave the bottleneck.
#[derive(Clone, Debug, PartialEq)]
pub struct CaptureChoice {
    pub(crate) kind: CaptureKind,
    /// For packets: whether senders and receivers are observed. For cells: whether departures and arrivals are
    /// observed.
    pub(crate) looks_at: [bool; 2],
    /// The selected ports, VCs, flows and window.
    pub(crate) of: Selection,
}

/// Names of the kinds of captures.
pub const KINDS: [(&str, CaptureKind); 4] = [
    ("ip", CaptureKind::Ip),
    ("aal5", CaptureKind::Aal5),
    ("cells", CaptureKind::Cells),
    ("wireshark_cells", CaptureKind::ErfCells),
];

/// Names of the observable ends of connections, and of the observable directions at ports.
const ENDS: [(&str, [bool; 2]); 3] = [("sender", [true, false]), ("receiver", [false, true]), ("both", [true, true])];
const WAYS: [(&str, [bool; 2]); 3] = [("out", [true, false]), ("in", [false, true]), ("both", [true, true])];

impl CaptureChoice {
    /// Selects the kind of packet and the place: `at` is `sender`, `receiver` or `both`, or for cells `out`, `in` or
    /// `both`. Also selects ports (for cells only), VCs, flows, and a window such as `1.2s:1.3s`, for runs of
    /// `duration`.
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

    /// Returns the end of the window, or `None` if the window has no end.
    pub fn until(&self) -> Option<Duration> {
        self.of.until()
    }
}

fn of_word<T: Copy>(option: &'static str, value: &str, problem: &str, words: &[(&'static str, T)]) -> Result<T, Wrong> {
    let known: Vec<&str> = words.iter().map(|word| word.0).collect();
    let found = words.iter().find(|word| word.0 == value).map(|word| word.1);
    found.ok_or_else(|| Wrong::new(option, value, problem, &known))
}
