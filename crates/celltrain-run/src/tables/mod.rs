//! Tables of measures, one table for each kind of row in an answer. To add a measure, add its line to a table, and a
//! test of its value.

use serde_json::{Value, json};

use crate::measure::described;
use crate::{events, series};

mod abr;
mod contract;
mod flow;
mod link;
mod memory;
mod port;
mod queue;
mod request;
mod run;

pub use abr::ABR;
pub use contract::CONTRACT;
pub use flow::FLOW;
pub use link::LINK;
pub use memory::MEMORY;
pub use port::PORT;
pub use queue::QUEUE;
pub use request::REQUEST;
pub use run::{EndedRun, RUN};

/// Version of the answer's format. The version increases when a key moves or changes its meaning, but not when a key is
/// added.
pub const FORMAT: u32 = 1;

/// Returns the descriptions of all tables, for Python.
pub fn described_all() -> Value {
    json!({
        "run": described(RUN),
        "flows": described(FLOW),
        "ports": described(PORT),
        "links": described(LINK),
        "contracts": described(CONTRACT),
        "abr": described(ABR),
        "memories": described(MEMORY),
        "queues": described(QUEUE),
        "requests": described(REQUEST),
        "series": series::described(),
        "format": FORMAT,
        "events": events::described(),
    })
}
