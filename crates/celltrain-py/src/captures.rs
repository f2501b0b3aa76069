//! Captures a run's traffic for Python, which receives the bytes of a capture block by block.

use celltrain_capture::CaptureChoice;
use celltrain_core::units::Duration;
use pyo3::prelude::*;

use crate::Failure;

/// Capture options from Python: the kind of capture; observed ends or directions (None for the default); ports, VCs and
/// flows (None for the default of the kind); a time window such as `1.2s:1.3s`.
#[derive(FromPyObject)]
pub(crate) struct Asked(
    String,
    Option<String>,
    Option<Vec<String>>,
    Option<Vec<String>>,
    Option<Vec<String>>,
    Option<String>,
);

impl Asked {
    /// Converts the options to a [`CaptureChoice`] for a run of `duration`.
    pub(crate) fn choice(self, duration: Duration) -> Result<CaptureChoice, Failure> {
        let Self(kind, at, ports, vcs, flows, window) = self;
        CaptureChoice::new(duration, (&kind, at.as_deref()), [ports, vcs, flows], window.as_deref())
            .map_err(|wrong| Failure(wrong.into()))
    }
}
