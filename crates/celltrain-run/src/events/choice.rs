//! Selection of the events to record.

use celltrain_capture::selection::{Selection, Wrong};
use celltrain_core::units::Duration;

use super::{KINDS, Kind, name_of};

/// Selection of the events to record. If no kind of event is named, the selection includes all kinds.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    kinds: Vec<Kind>,
    pub(super) of: Selection,
}

impl Choice {
    /// Selects events of these kinds (all kinds if none is named), at these ports and for these VCs and flows, in a
    /// time window such as `1.2s:1.3s` of a run that lasts `duration`.
    ///
    /// # Errors
    /// Returns a message if a kind or the window is invalid.
    pub fn new(
        duration: Duration,
        kinds: &[String],
        names: [Option<Vec<String>>; 3],
        window: Option<&str>,
    ) -> Result<Self, Wrong> {
        let mut chosen = Vec::new();
        for name in kinds {
            let Some((kind, ..)) = KINDS.iter().find(|kind| kind.1 == name) else {
                let known: Vec<&str> = KINDS.iter().map(|kind| kind.1).collect();
                return Err(Wrong::new("kinds", name, "is not a kind of event", &known));
            };
            chosen.push(*kind);
        }
        if chosen.is_empty() {
            chosen.extend(KINDS.iter().map(|kind| kind.0));
        }
        chosen.sort_unstable();
        chosen.dedup();
        Ok(Self { kinds: chosen, of: Selection::new(duration, names, window)? })
    }

    /// Returns the selected kinds of events.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Returns the first selected kind of event that only the reference engine reports.
    pub fn needs_reference(&self) -> Option<&'static str> {
        self.kinds.iter().find(|kind| !kind.of_end_systems()).map(|&kind| name_of(kind))
    }

    /// Returns the end of the time window, or `None` if the window has no end.
    pub(crate) fn until(&self) -> Option<Duration> {
        self.of.until()
    }
}
