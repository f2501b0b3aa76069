//! Reads a scenario within limits of time and memory, and defines the errors of requests.

use std::time::Duration;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_run::Unfinished;
use celltrain_run::clock::Instant;
use celltrain_run::memory::machine;
use celltrain_run::reading::{self, Estimated};
use celltrain_run::scenario::Handle;
use celltrain_scenario::Fault;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Limits {
    /// Limit of the real time of the request in seconds.
    seconds: f64,
    /// Memory allowed for runs in bytes. A run may use three quarters of this memory.
    memory: u64,
}

impl Limits {
    /// Sets the memory limit of the program, and starts measuring the time of the request.
    pub(crate) fn deadline(&self) -> Deadline {
        #[cfg(target_family = "wasm")]
        celltrain_run::memory::allow(self.memory);
        #[cfg(not(target_family = "wasm"))]
        let _ = self.memory;
        let most = Duration::try_from_secs_f64(self.seconds).unwrap_or(Duration::MAX);
        Deadline { begun: Instant::now(), most }
    }
}

/// Time by which the request must be answered.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    begun: Instant,
    pub(crate) most: Duration,
}

impl Deadline {
    /// Returns whether the request has time left. After the result was false once, it remains false.
    pub(crate) fn is_ahead(&self) -> bool {
        self.begun.elapsed() <= self.most
    }

    /// Returns the remaining time of the request.
    pub(crate) fn left(&self) -> Duration {
        self.most.saturating_sub(self.begun.elapsed())
    }

    /// Returns the error for a request that was not answered in time.
    pub(crate) fn passed(&self) -> Refusal {
        Refusal::of(&Unfinished::TookTooLong(self.most))
    }
}

/// The reason why a request has no answer: the kind of reason (as in `api.ts`), a message, and the faults of the
/// scenario.
#[derive(Debug)]
pub(crate) struct Refusal {
    kind: &'static str,
    message: String,
    faults: Vec<Fault>,
}

impl Refusal {
    pub(crate) fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), faults: Vec::new() }
    }

    pub(crate) fn of(unfinished: &Unfinished) -> Self {
        let kind = match unfinished {
            Unfinished::Refused(_) => "refused",
            Unfinished::TooLarge(_) => "too_large",
            Unfinished::TookTooLong(_) => "too_long",
            Unfinished::Interrupted => "stopped",
            Unfinished::Panicked(_) => "broken",
        };
        let subject = match unfinished {
            Unfinished::Refused(_) => "",
            _ => "the run ",
        };
        Self::new(kind, format!("{subject}{unfinished}"))
    }

    pub(crate) fn json(&self) -> Value {
        json!({"kind": self.kind, "message": self.message, "faults": self.faults})
    }
}

/// Reads a TOML text. Returns a handle if the text has no faults, and the reading with its faults and memory estimate.
pub(crate) fn read(toml: &str, deadline: &Deadline) -> Result<(Option<Handle>, Estimated), Refusal> {
    let go_on = || deadline.is_ahead();
    let reading = reading::read("scenario", machine(), &CancellationToken::new(&go_on), |reader| reader.toml(toml));
    let reading = reading.map_err(|Interrupted| deadline.passed())?;
    Ok(Handle::of_reading(reading))
}

/// Returns the handle of a scenario without faults, or an error.
pub(crate) fn accepted(toml: &str, deadline: &Deadline) -> Result<Handle, Refusal> {
    let (handle, Estimated { reading, .. }) = read(toml, deadline)?;
    handle.ok_or_else(|| {
        let kind = if reading.does_not_fit { "too_large" } else { "refused" };
        let messages: Vec<&str> = reading.faults.iter().map(|fault| fault.message.as_str()).collect();
        Refusal { kind, message: messages.join("\n"), faults: reading.faults }
    })
}
