//! A transport stack written as a Python class. The program that reads scenarios provides the Python interpreter.
//!
//! Source: the user's class. `docs/real-stacks.md` shows how to write such a class.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use celltrain_core::error::Fault;
use celltrain_core::policy::python::Setting;
use celltrain_core::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StackSizes;

/// A transport stack of your own, as a Python class. The module of the class is imported in the process that executes
/// the run. One run does not show whether the class gives the same results again: `celltrain check` executes the
/// beginning of a run twice and compares the results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PythonStack")]
pub struct Config {
    /// The class, as the name of its module, a colon and the name of the class, such as `mine:Mine`.
    #[schemars(extend("x-expect" = "a module and a class, such as \"mine:Mine\""))]
    pub class: String,
    /// Settings of the class, by name.
    #[serde(default)]
    pub settings: BTreeMap<String, Setting>,
    /// Largest payload of a packet, without the 40 bytes of headers.
    #[serde(default = "usual_mss")]
    pub mss: Bytes,
}

fn usual_mss() -> Bytes {
    Bytes { bytes: 512 }
}

/// Function that returns the faults of a Python class and its settings, by key.
pub type Check = fn(&Config) -> Vec<Fault>;

static CHECK: OnceLock<Check> = OnceLock::new();

/// Sets the function that checks Python classes of stacks in this process. Only the first call has an effect.
pub fn provide(check: Check) {
    CHECK.get_or_init(|| check);
}

impl Config {
    pub(super) fn sizes(&self) -> StackSizes {
        StackSizes { mss: self.mss.bytes, receive_window: WINDOW, send_buffer: WINDOW }
    }

    pub(super) fn packet_size(&self) -> (&'static str, Bytes) {
        ("mss", self.mss)
    }

    pub(super) fn check(&self) -> Vec<Fault> {
        if let Some(check) = CHECK.get() {
            return check(self);
        }
        let problem = "is a Python class, but this program cannot run Python";
        vec![Fault::new("class", format!("\"{}\"", self.class), problem)]
    }
}

/// Placeholder for the window, which is not used for stacks outside the simulation.
const WINDOW: u64 = 65_535;
