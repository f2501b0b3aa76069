//! A memory policy written as a Python class. The core contains no interpreter; the program that uses the core provides
//! one.
//!
//! Source: the class. `docs/memory-policies.md` shows how to write one. Differences from the source: none known.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Configure, Hooks, MemoryPolicy, PoolInfo, PoolQueue, PushOut, QueueEnd, Verdict, View};
use crate::error::Fault;
pub use crate::policy::python::Setting;
use crate::policy::python::no_interpreter;

/// A policy of your own as a Python class. Its module is imported in the process that executes the run.
///
/// Source: the class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PythonMemory")]
pub struct Config {
    /// The class: its module, a colon and its name, such as `mine:Mine`.
    #[schemars(extend("x-expect" = "a module and a class, such as \"mine:Mine\""))]
    pub class: String,
    /// Settings of the class, by name.
    #[serde(default)]
    pub settings: BTreeMap<String, Setting>,
}

/// The methods that a class overrides, besides the decision about arriving cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Methods {
    /// True if the class has a method for arriving cells.
    pub on_arrival: bool,
    /// True if the class has a method for departing cells.
    pub on_departure: bool,
    /// The end of a queue from which the class removes waiting cells to make room; `None` if it removes none.
    pub push_out: Option<QueueEnd>,
}

/// Interface to the Python interpreter.
pub trait Interpreter: Send + Sync {
    /// Checks the class and its settings. Returns faults by key.
    fn check(&self, config: &Config) -> Vec<Fault>;

    /// Returns the methods that the class overrides, if the class can be found.
    fn methods(&self, config: &Config) -> Methods;

    /// Creates an object of the class for a pool. Stores errors of the constructor for the caller of the run.
    fn object(&self, config: &Config, pool: &PoolInfo<'_>) -> Box<dyn Object>;
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

/// An instance of the class for a pool. If the class raises an error, it is stored for the caller, and the run then has
/// no result.
pub trait Object: Send {
    /// Decides whether `cells` cells may enter `queue`.
    fn admit(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) -> bool;

    /// Records that cells arrive for `queue`.
    fn on_arrival(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32);

    /// Records that a cell of `queue` has left.
    fn on_departure(&mut self, view: &View<'_>, queue: PoolQueue);

    /// Chooses the queue that loses a cell in favour of `queue`, if any. The object checks that the choice is possible.
    fn push_out(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) -> Option<PoolQueue>;
}

/// Returns whether a queue can lose a cell at this end in favour of `queue`: it holds a cell, or it is `queue` and can
/// lose the arriving cell.
pub fn can_lose(view: &View<'_>, other: PoolQueue, queue: PoolQueue, end: QueueEnd) -> bool {
    view.queues.get(other).is_some_and(|&cells| cells > 0 || (other == queue && end == QueueEnd::Tail))
}

/// The policy of a pool.
pub struct Python {
    class: String,
    methods: Methods,
    object: Option<Box<dyn Object>>,
}

impl Debug for Python {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Python({})", self.class)
    }
}

impl Config {
    fn methods(&self) -> Methods {
        interpreter().map(|known| known.methods(self)).unwrap_or_default()
    }
}

impl Configure for Config {
    type Policy = Python;

    fn pushes_out(&self) -> bool {
        self.methods().push_out.is_some()
    }

    fn check(&self, _cells: u32) -> Vec<Fault> {
        interpreter().map_or_else(|| no_interpreter(&self.class), |known| known.check(self))
    }

    fn build(&self, pool: &PoolInfo<'_>) -> Python {
        let object = interpreter().map(|known| known.object(self, pool));
        Python { class: self.class.clone(), methods: self.methods(), object }
    }
}

impl MemoryPolicy for Python {
    fn admit(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) -> Verdict {
        let fits = view.fits(cells);
        if !fits && self.methods.push_out.is_none() {
            return Verdict::Refuse;
        }
        let Some(object) = &mut self.object else { return Verdict::Admit };
        if !object.admit(view, queue, cells) {
            return Verdict::Refuse;
        }
        match self.methods.push_out {
            Some(end) if !fits => match object.push_out(view, queue, cells) {
                // The arriving cell is the last of its queue.
                Some(victim) if victim != queue || end == QueueEnd::Head => {
                    Verdict::PushOut(PushOut { queue: victim, end })
                }
                _ => Verdict::Refuse,
            },
            _ => Verdict::Admit,
        }
    }

    fn arrived(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) {
        if let Some(object) = &mut self.object {
            object.on_arrival(view, queue, cells);
        }
    }

    fn left(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) {
        if let Some(object) = &mut self.object {
            (0..cells).for_each(|_| object.on_departure(view, queue));
        }
    }

    fn hooks(&self) -> Hooks {
        Hooks { arrivals: self.methods.on_arrival, cells: self.methods.on_departure, clock: false }
    }

    fn rule(&self) -> &'static str {
        "the Python class refuses the cell"
    }
}

#[cfg(any(test, feature = "samples"))]
impl Default for Config {
    /// Returns the class of the fake interpreter for tests.
    fn default() -> Self {
        provide(Box::new(Stand { left: Vec::new() }));
        Self { class: "mine:Mine".into(), settings: BTreeMap::new() }
    }
}

/// The class of a fake interpreter: a queue may hold a tenth more than its share of the pool, and a full pool loses the last
/// cell of the queue from which the fewest cells have left.
#[cfg(any(test, feature = "samples"))]
struct Stand {
    left: Vec<u32>,
}

#[cfg(any(test, feature = "samples"))]
impl Interpreter for Stand {
    fn check(&self, _config: &Config) -> Vec<Fault> {
        Vec::new()
    }

    fn methods(&self, _config: &Config) -> Methods {
        Methods { on_arrival: true, on_departure: true, push_out: Some(QueueEnd::Tail) }
    }

    fn object(&self, _config: &Config, pool: &PoolInfo<'_>) -> Box<dyn Object> {
        Box::new(Self { left: vec![0; pool.queues.len()] })
    }
}

#[cfg(any(test, feature = "samples"))]
impl Object for Stand {
    fn admit(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) -> bool {
        let queues = u64::try_from(view.queues.len()).unwrap_or(u64::MAX);
        u64::from(view.queues[queue] + cells) * queues <= u64::from(view.cells) * 11 / 10 + queues
    }

    fn on_arrival(&mut self, _view: &View<'_>, queue: PoolQueue, _cells: u32) {
        self.left[queue.number() as usize] /= 2;
    }

    fn on_departure(&mut self, _view: &View<'_>, queue: PoolQueue) {
        self.left[queue.number() as usize] += 1;
    }

    fn push_out(&mut self, view: &View<'_>, queue: PoolQueue, _cells: u32) -> Option<PoolQueue> {
        let may_lose = |&other: &PoolQueue| can_lose(view, other, queue, QueueEnd::Tail);
        view.queues.keys().filter(may_lose).min_by_key(|other| self.left[other.number() as usize])
    }
}

#[cfg(test)]
mod tests {
    use typed_index_collections::TiVec;

    use super::*;
    use crate::memory::MemoryPolicyConfig;
    use crate::memory::tests::{Pool, fill};
    use crate::units::Time;

    #[test]
    fn a_push_out_can_remove_a_waiting_cell_or_the_arriving_cell_at_the_queue_tail() {
        let queues: TiVec<PoolQueue, u32> = vec![0, 3, 0].into();
        let view = View { cells: 3, used: 3, queues: &queues, now: Time::default() };
        // The cell arrives for the first queue. The fourth queue does not exist.
        for (end, expected) in
            [(QueueEnd::Tail, [true, true, false, false]), (QueueEnd::Head, [false, true, false, false])]
        {
            let of = [0, 1, 2, 3].map(|other| can_lose(&view, PoolQueue::new(other), PoolQueue::new(0), end));
            assert_eq!(of, expected, "{end:?}");
        }
    }

    #[test]
    fn a_python_memory_policy_can_push_out_cells_only_from_nonempty_queues() {
        let config: MemoryPolicyConfig = Config::default().into();
        assert!(config.pushes_out());
        let mut pool = Pool::new(&config, 20, 3);
        assert_eq!(fill(&mut pool, &[0]), [8, 0, 0], "8 <= 22 / 3 + 1");
        (0..4).for_each(|_| pool.leave(0));
        assert_eq!(fill(&mut pool, &[0, 1, 2]).iter().sum::<u32>(), 20);
    }
}
