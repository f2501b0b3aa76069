//! Stacks written as Python classes. The program that runs scenarios provides the interpreter.

use std::sync::OnceLock;

use celltrain_hosts::{Application, Endpoint, Stack};
use celltrain_scenario::stack::python::Config;

/// The end of a flow at which an object of the class runs.
#[derive(Clone, Copy, Debug)]
pub struct FlowEnd<'a> {
    /// The flow's name.
    pub flow: &'a str,
    /// The end.
    pub endpoint: Endpoint,
    /// Bytes that the flow sends; `None` for endless data.
    pub file_bytes: Option<u64>,
}

/// Creates an object of a class. Errors are stored as in [`crate::outside`].
pub type Make = fn(&Config, FlowEnd<'_>) -> Box<dyn Stack>;

static MAKE: OnceLock<Make> = OnceLock::new();

/// Sets the interpreter of this program. Later calls have no effect.
pub fn provide(make: Make) {
    MAKE.get_or_init(|| make);
}

pub(super) fn stack(own: &Config, flow: &str, endpoint: Endpoint, application: &Application) -> Box<dyn Stack> {
    let file_bytes = match application {
        Application::File(bytes) => Some(*bytes),
        Application::Bulk | Application::Bursts { .. } => None,
    };
    let make = MAKE.get().expect("without a Python interpreter the check refuses classes");
    make(own, FlowEnd { flow, endpoint, file_bytes })
}
