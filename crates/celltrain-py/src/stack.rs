//! Transport stacks written as Python classes: calls from the driver are forwarded to the interpreter.
//!
//! `celltrain.model.python_stack` finds the class and creates its objects.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use celltrain_core::error::Fault;
use celltrain_core::units::Bytes;
use celltrain_hosts::{MOST_PACKETS, Packet, Report, Side, Stack};
use celltrain_run::hosting::python::FlowEnd;
use celltrain_scenario::stack::python::Config;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::interpreter;
use crate::policy::{failed, settings};

/// The Python module that loads the classes.
const MODULE: &str = "celltrain.model.python_stack";

/// Returns the faults of a class and its settings.
pub(crate) fn check(config: &Config) -> Vec<Fault> {
    interpreter::attach(|py| {
        let faults = crate::policy::faults(py, MODULE, &config.class, &config.settings);
        if faults.is_empty() { mss_fault(py, config).into_iter().collect() } else { faults }
    })
}

/// Returns the fault of a scenario whose `mss` is not that of the class.
fn mss_fault(py: Python<'_>, config: &Config) -> Option<Fault> {
    let own = settings(py, &config.settings)
        .and_then(|settings| py.import(MODULE)?.call_method1("mss_of", (&config.class, settings))?.extract());
    let own: BTreeMap<String, String> = own.ok()?;
    let class = own.get("mss")?.strip_suffix('B')?;
    let Bytes { bytes } = config.mss;
    let problem = format!("is not the {class} bytes of the class; write mss = \"{class}B\"");
    (class != bytes.to_string()).then(|| Fault::new("mss", format!("\"{bytes}B\""), problem))
}

/// Creates the object of a class for an end of a flow.
pub(crate) fn make(config: &Config, end: FlowEnd<'_>) -> Box<dyn Stack> {
    let FlowEnd { flow, endpoint, file_bytes } = end;
    let side = match endpoint.side {
        Side::Sender => "sender",
        Side::Receiver => "receiver",
    };
    let made = interpreter::attach(|py| {
        let octets = |address: Ipv4Addr| PyBytes::new(py, &address.octets());
        let end = (flow, side, octets(endpoint.local), octets(endpoint.remote), endpoint.seed, file_bytes);
        let made = settings(py, &config.settings)
            .and_then(|settings| py.import(MODULE)?.call_method1("made", (&config.class, settings, end)));
        match made {
            Ok(object) => Some(object.unbind()),
            Err(error) => {
                failed(py, &format!("{} cannot be created for the {side} of {flow}", config.class), &error);
                None
            }
        }
    });
    Box::new(Class {
        name: config.class.clone(),
        end: format!("the {side} of {flow}"),
        object: made,
        timeout: None,
        report: Report::default(),
    })
}

/// An object of a stack class, at an end of a flow.
struct Class {
    name: String,
    /// The end, for error messages.
    end: String,
    /// Removed after an error. The run ends at its next check.
    object: Option<Py<PyAny>>,
    timeout: Option<Duration>,
    report: Report,
}

impl Class {
    /// Calls the object. Records an error with the name of the call.
    fn call<T>(
        &mut self,
        now: Duration,
        call: &str,
        body: impl FnOnce(&Bound<'_, PyAny>, u64) -> PyResult<T>,
    ) -> Option<T> {
        let object = self.object.as_ref()?;
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let answer = interpreter::attach(|py| {
            body(object.bind(py), now).map_err(|error| {
                failed(py, &format!("{}.{call} for {}, now {now} ns", self.name, self.end), &error);
            })
        });
        if answer.is_err() {
            self.object = None;
        }
        answer.ok()
    }
}

impl Stack for Class {
    fn on_packet(&mut self, now: Duration, packet: &[u8]) {
        self.call(now, "on_packet", |object, now| {
            object.call_method1("on_packet", (now, PyBytes::new(object.py(), packet))).map(drop)
        });
    }

    fn poll(&mut self, now: Duration, out: &mut Vec<Packet>) {
        let packets = self.call(now, "poll", |object, now| packets(&object.call_method1("poll", (now,))?));
        out.extend(packets.unwrap_or_default());
        self.timeout = self.call(now, "next_timeout", timeout).flatten();
        if let Some(report) = self.call(now, "received and completed", |object, _| report(object)) {
            self.report = report;
        }
    }

    fn next_timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn report(&self) -> Report {
        self.report
    }

    fn name(&self) -> &str {
        &self.name
    }
}

fn packets(answer: &Bound<'_, PyAny>) -> PyResult<Vec<Packet>> {
    let wrong = |found: &Bound<'_, PyAny>| {
        PyTypeError::new_err(format!("the method returned {}, but must return a list of bytes", kind(found)))
    };
    let mut packets = Vec::new();
    for packet in answer.try_iter().map_err(|_| wrong(answer))? {
        let packet = packet?;
        let bytes = packet.cast::<PyBytes>().map_err(|_| wrong(&packet))?.as_bytes();
        if packets.len() == MOST_PACKETS {
            return Err(PyValueError::new_err(format!(
                "the method returned more than {MOST_PACKETS} packets at once; return fewer, and return the others in \
                 later calls"
            )));
        }
        packets.push(bytes.to_vec());
    }
    Ok(packets)
}

fn timeout(object: &Bound<'_, PyAny>, now: u64) -> PyResult<Option<Duration>> {
    let answer = object.call_method1("next_timeout", (now,))?;
    if answer.is_none() {
        return Ok(None);
    }
    match answer.extract::<i64>().map(u64::try_from) {
        Ok(Ok(timeout)) if timeout >= now => Ok(Some(Duration::from_nanos(timeout))),
        Ok(_) => Err(PyValueError::new_err(format!(
            "the method returned {answer}, a time in the past; it must return the time of the next poll, or None"
        ))),
        Err(_) => Err(PyTypeError::new_err(format!(
            "the method returned {}, but must return whole nanoseconds since the start of the run, or None",
            kind(&answer)
        ))),
    }
}

fn report(object: &Bound<'_, PyAny>) -> PyResult<Report> {
    let wrong = |name, must| move |_| PyTypeError::new_err(format!("its {name} must be {must}"));
    let received = object.getattr("received")?.extract().map_err(wrong("received", "a number of bytes"))?;
    let completed = object.getattr("completed")?.extract().map_err(wrong("completed", "True or False"))?;
    Ok(Report { received, completed, ..Report::default() })
}

/// Returns the name of a value's type, and the value of a number.
fn kind(value: &Bound<'_, PyAny>) -> String {
    if value.is_instance_of::<pyo3::types::PyInt>() {
        return value.to_string();
    }
    value.get_type().name().map_or_else(|_| "something".to_owned(), |name| name.to_string())
}
