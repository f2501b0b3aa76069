//! A policy written as a Python class. The core contains no interpreter; the program that uses the core provides one.
//!
//! Source: the class. `docs/python-policies.md` shows how to write one, and `docs/design/formulas.md` explains how it
//! is called. Differences from the source: none known.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::formula::{PortInfo, WhenFull};
use super::{BufferPolicy, Configure, Decision, Overflow, View};
use crate::error::Fault;
use crate::index::Label;
use crate::rng::Stream;

/// A user-defined policy as a Python class. Its module is imported in the process that executes the run.
///
/// Source: the class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Python")]
pub struct Config {
    /// The class: its module, a colon and its name, such as `mine:Mine`.
    #[schemars(extend("x-expect" = "a module and a class, such as \"mine:Mine\""))]
    pub class: String,
    /// Settings of the class, by name.
    #[serde(default)]
    pub settings: BTreeMap<String, Setting>,
    /// What is lost if a cell of an admitted frame finds no room. Default: the class decides.
    #[serde(default)]
    pub when_full: Option<WhenFull>,
}

/// A setting of the class: a number, true or false, or a string.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "PythonSetting", extend("x-expect" = "a number, true or false, or a text"))]
pub enum Setting {
    /// True or false.
    Truth(bool),
    /// A whole number.
    Whole(i64),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

/// Interface to the Python interpreter.
pub trait Interpreter: Send + Sync {
    /// Checks the class and its settings. Returns faults by key.
    fn check(&self, config: &Config) -> Vec<Fault>;

    /// Returns the class's setting for cells that find no room, if the class can be found.
    fn when_full(&self, config: &Config) -> Option<WhenFull>;

    /// Creates an object of the class for a port crossed by VCs with these names. Stores errors of the constructor for
    /// the caller of the run.
    fn object(&self, config: &Config, port_info: &PortInfo<'_>, vcs: &[String]) -> Box<dyn Object>;
}

/// An instance of the class at a port.
pub trait Object: Send {
    /// Decides whether the frame may enter. If the class raises an error, admits the frame and stores the error for the
    /// caller; the run then has no result.
    fn admit(&mut self, buffer: &View<'_>, vc: Label, rng: &mut Stream) -> bool;
}

static INTERPRETER: OnceLock<Box<dyn Interpreter>> = OnceLock::new();

/// Sets the interpreter of this program. Later calls have no effect.
pub fn provide(interpreter: Box<dyn Interpreter>) {
    drop(INTERPRETER.set(interpreter));
}

/// Returns the interpreter of this program, or `None` if the program has no interpreter.
fn interpreter() -> Option<&'static dyn Interpreter> {
    INTERPRETER.get().map(AsRef::as_ref)
}

/// Returns the fault of a class in a program without an interpreter.
pub(crate) fn no_interpreter(class: &str) -> Vec<Fault> {
    let problem = "is a Python class, but this program cannot run Python; write the policy as a formula";
    vec![Fault::new("class", format!("\"{class}\""), problem)]
}

/// The policy at a port.
pub struct Python {
    config: Config,
    vcs: Vec<String>,
    capacity: u32,
    when_full: WhenFull,
    /// The Python object, created when the port is known. It is not used earlier.
    object: Option<Box<dyn Object>>,
}

impl Debug for Python {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Python({})", self.config.class)
    }
}

impl Configure for Config {
    type Policy = Python;

    fn check(&self, _capacity: Option<u32>, vcs: &[&str]) -> Vec<Fault> {
        // The class is the same at every port, so one check is sufficient.
        if !vcs.is_empty() {
            return Vec::new();
        }
        self.check_with(interpreter())
    }

    fn build(&self, capacity: u32, vcs: &[&str]) -> Python {
        let vcs = vcs.iter().map(ToString::to_string).collect();
        let of_class = || interpreter()?.when_full(self);
        let when_full = self.when_full.or_else(of_class).unwrap_or_default();
        Python { config: self.clone(), vcs, capacity, when_full, object: None }
    }
}

impl BufferPolicy for Python {
    fn at_port(&mut self, port_info: &PortInfo<'_>) {
        let port_info = PortInfo { capacity: Some(self.capacity), ..*port_info };
        self.object = interpreter().map(|known| known.object(&self.config, &port_info, &self.vcs));
    }

    fn admit_frame(&mut self, buffer: &View<'_>, vc: Label, rng: &mut Stream) -> bool {
        self.object.as_mut().is_none_or(|object| object.admit(buffer, vc, rng))
    }

    fn overflow(&self) -> Overflow {
        self.when_full.overflow()
    }

    fn explain(&self, _buffer: &View<'_>, _vc: Label) -> Decision {
        Decision { rule: "the Python class refuses the frame", ..Decision::default() }
    }
}

impl Config {
    fn check_with(&self, interpreter: Option<&dyn Interpreter>) -> Vec<Fault> {
        interpreter.map_or_else(|| no_interpreter(&self.class), |known| known.check(self))
    }
}

/// A fake interpreter. Its class draws a random number for every frame that finds more than half of the buffer in use.
#[cfg(any(test, feature = "samples"))]
struct Stand;

/// An object of that class: half of the buffer, in cells.
#[cfg(any(test, feature = "samples"))]
struct Half(u32);

#[cfg(any(test, feature = "samples"))]
impl Interpreter for Stand {
    fn check(&self, config: &Config) -> Vec<Fault> {
        let is_known = config.class == "mine:Mine";
        (!is_known).then(|| Fault::new("class", &config.class, "is unknown")).into_iter().collect()
    }

    fn when_full(&self, config: &Config) -> Option<WhenFull> {
        (config.class == "mine:Losing").then_some(WhenFull::LoseCell)
    }

    fn object(&self, _config: &Config, port_info: &PortInfo<'_>, _vcs: &[String]) -> Box<dyn Object> {
        Box::new(Half(port_info.capacity.unwrap_or(u32::MAX) / 2))
    }
}

#[cfg(any(test, feature = "samples"))]
impl Object for Half {
    fn admit(&mut self, buffer: &View<'_>, _vc: Label, rng: &mut Stream) -> bool {
        buffer.occupancy <= self.0 || (!buffer.tagged && rng.unit() < 0.5)
    }
}

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(_capacity: u32) -> Config {
    provide(Box::new(Stand));
    Config { class: "mine:Mine".into(), settings: BTreeMap::new(), when_full: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::bench::view;
    use crate::units::Clock;

    #[test]
    fn a_python_policy_is_refused_without_a_python_interpreter() {
        let faults = sample(100).check_with(None);
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].key, "class");
        assert!(faults[0].problem.contains("this program cannot run Python"), "{}", faults[0].problem);
    }

    /// Regression: a scenario that named the class lost the class's own setting for full buffers.
    #[test]
    fn a_scenario_overrides_the_action_on_buffer_overflow_that_a_python_policy_class_sets() {
        let overflow = |class: &str, when_full| {
            let config = Config { class: class.into(), when_full, ..sample(100) };
            config.build(100, &["tcp1"]).overflow()
        };
        assert_eq!(overflow("mine:Mine", None), WhenFull::LoseRestOfFrame.overflow());
        assert_eq!(overflow("mine:Losing", None), Overflow::LoseCell);
        assert_eq!(overflow("mine:Losing", Some(WhenFull::PushOutFront)), Overflow::PushOutFront);
    }

    #[test]
    fn a_python_policy_object_is_created_when_the_properties_of_its_port_are_known() {
        let mut policy = sample(100).build(100, &["tcp1"]);
        let view = View { tagged: true, ..view(100, &[80]) };
        let mut rng = Stream::new(1, "bench");
        assert!(policy.admit_frame(&view, Label::new(0), &mut rng), "no decision before");
        policy.at_port(&PortInfo {
            name: "sw1->sw2",
            cells_per_second: 1.0,
            clock: Clock::exact(1),
            ..PortInfo::unknown()
        });
        assert!(!policy.admit_frame(&view, Label::new(0), &mut rng), "above half of 100");
    }
}
