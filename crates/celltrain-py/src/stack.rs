//! Transport stacks written as Python classes. Calls of a stack are forwarded from the driver to the Python
//! interpreter.
//!
//! The Python module `celltrain.model.python_classes` finds the class of a stack and creates its objects.

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
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyMemoryView, PyString};

use crate::interpreter;
use crate::policy::{MODULE, failed, settings};

/// Returns the faults of a stack class and its settings.
pub(crate) fn check(config: &Config) -> Vec<Fault> {
    interpreter::attach(|py| {
        let faults = crate::policy::faults(py, "stack", &config.class, &config.settings);
        if faults.is_empty() { mss_fault(py, config).into_iter().collect() } else { faults }
    })
}

/// Returns the fault of a scenario whose `mss` differs from the `mss` of the stack class.
fn mss_fault(py: Python<'_>, config: &Config) -> Option<Fault> {
    let own = settings(py, &config.settings)
        .and_then(|settings| py.import(MODULE)?.call_method1("mss_of", (&config.class, settings))?.extract());
    let own: BTreeMap<String, String> = own.ok()?;
    let class = own.get("mss")?.strip_suffix('B')?;
    let Bytes { bytes } = config.mss;
    let problem = format!("differs from {class} bytes, the mss of the class; write mss = \"{class}B\"");
    (class != bytes.to_string()).then(|| Fault::new("mss", format!("\"{bytes}B\""), problem))
}

/// Creates an object of a stack class for one end of a flow.
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
            .and_then(|settings| py.import(MODULE)?.call_method1("made", ("stack", &config.class, settings, end)));
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

/// An object of a stack class at one end of a flow.
struct Class {
    name: String,
    /// Description of the end of the flow, for error messages.
    end: String,
    /// The Python object; `None` after an error. The run then ends at its next check for cancellation.
    object: Option<Py<PyAny>>,
    timeout: Option<Duration>,
    report: Report,
}

impl Class {
    /// Calls the Python object. Records an error together with the name of the call.
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
            let answer = object.call_method1("on_packet", (now, PyBytes::new(object.py(), packet)))?;
            if answer.is_none() {
                return Ok(());
            }
            // A generator is refused, because its packets would not be sent: nothing would run its code.
            let found = described(&answer);
            Err(PyTypeError::new_err(format!(
                "the method returned {found}, but must return None; poll returns packets to send"
            )))
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
    let wrong = |hint: &str| {
        let found = described(answer);
        PyTypeError::new_err(format!("the method returned {found}, but must return a list of bytes; {hint}"))
    };
    if is_one_packet(answer) || answer.is_instance_of::<PyString>() {
        return Err(wrong("put a packet into a list, as in [packet]"));
    }
    let mut packets = Vec::new();
    for (number, packet) in answer.try_iter().map_err(|_| wrong("return [] to send nothing"))?.enumerate() {
        let packet = packet?;
        let Ok(bytes) = packet.cast::<PyBytes>() else {
            let hint = if is_one_packet(&packet) { "; convert it with bytes(...)" } else { "" };
            let found = described(&packet);
            return Err(PyTypeError::new_err(format!(
                "item {number} of the returned packets is {found}, but must be bytes{hint}"
            )));
        };
        if packets.len() == MOST_PACKETS {
            return Err(PyValueError::new_err(format!(
                "the method returned more than {MOST_PACKETS} packets at once; return fewer, and return the others in \
                 later calls"
            )));
        }
        packets.push(bytes.as_bytes().to_vec());
    }
    Ok(packets)
}

/// Returns whether a value consists of bytes, like a packet.
fn is_one_packet(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>() || value.is_instance_of::<PyMemoryView>()
}

fn timeout(object: &Bound<'_, PyAny>, now: u64) -> PyResult<Option<Duration>> {
    let answer = object.call_method1("next_timeout", (now,))?;
    if answer.is_none() {
        return Ok(None);
    }
    // A time later than the longest possible simulated time means never.
    let time = if answer.is_instance_of::<PyInt>() && answer.gt(i64::MAX)? {
        Ok(Ok(i64::MAX.unsigned_abs()))
    } else {
        answer.extract::<i64>().map(u64::try_from)
    };
    match time {
        Ok(Ok(timeout)) if timeout >= now => Ok(Some(Duration::from_nanos(timeout))),
        Ok(_) => Err(PyValueError::new_err(format!(
            "the method returned {answer}, a time in the past; it must return the time of the next poll, or None"
        ))),
        Err(_) => Err(PyTypeError::new_err(format!(
            "the method returned {}, but must return whole nanoseconds since the start of the run, as an int, or None",
            described(&answer)
        ))),
    }
}

fn report(object: &Bound<'_, PyAny>) -> PyResult<Report> {
    let wrong = |name, must| {
        let found = object.getattr(name).map_or_else(|error| error.to_string(), |value| described(&value));
        PyTypeError::new_err(format!("its {name} is {found}, but must be {must}"))
    };
    let received = object.getattr("received")?.extract();
    let received = received.map_err(|_| wrong("received", "a number of bytes, as an int from 0 on"))?;
    let completed = object.getattr("completed")?.extract();
    let completed = completed.map_err(|_| wrong("completed", "True or False"))?;
    Ok(Report { received, completed, ..Report::default() })
}

/// Returns a Python value's type and the beginning of its text. For `None` and whole numbers, returns only the value.
fn described(value: &Bound<'_, PyAny>) -> String {
    const MOST: usize = 30;
    let text = value.repr().map_or_else(|_| "...".to_owned(), |text| text.to_string());
    if value.is_none() || value.is_instance_of::<PyInt>() {
        return text;
    }
    let kind = value.get_type().name().map_or_else(|_| "value".to_owned(), |name| name.to_string());
    match text.char_indices().nth(MOST) {
        // A text that begins with `<`, such as that of a generator, only repeats the value's type.
        _ if text.starts_with('<') => format!("a {kind}"),
        Some((end, _)) => format!("the {kind} {}...", &text[..end]),
        None => format!("the {kind} {text}"),
    }
}
