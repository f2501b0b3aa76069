//! Transport stacks written as Python classes. The program that runs scenarios provides the Python interpreter.

use std::sync::OnceLock;

use celltrain_hosts::{Application, Endpoint, Stack};
use celltrain_scenario::stack::python::Config;

/// The end of a flow at which an object of the Python class runs.
#[derive(Clone, Copy, Debug)]
pub struct FlowEnd<'a> {
    /// Name of the flow.
    pub flow: &'a str,
    /// Sending or receiving end of the flow.
    pub endpoint: Endpoint,
    /// Number of bytes that the flow sends; `None` if it sends data until the end of the run.
    pub file_bytes: Option<u64>,
}

/// Creates an object of a Python class. [`crate::outside`] stores the errors of the class.
pub type Make = fn(&Config, FlowEnd<'_>) -> Box<dyn Stack>;

static MAKE: OnceLock<Make> = OnceLock::new();

/// Sets the function with which this program creates objects of Python classes. Only the first call has an effect.
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
