//! A policy written as formulas in the scenario. The formulas decide which frames may enter, and how the policy's state
//! changes.
//!
//! Source: the scenario. `celltrain-formula` defines the language, and `docs/design/formulas.md` explains how it runs.
//! Names are the symbols of `docs/mechanisms.md` 2. Differences from the source: none known.

mod events;
mod names;
mod port_info;
mod rules;

pub use names::PORT_NAMES;
pub use port_info::PortInfo;

pub use celltrain_formula::rules::{Constant, Start};

use std::any::Any;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use celltrain_formula::rules::{Texts, constants_by_vc};
use celltrain_formula::{Clause, Kind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BufferPolicy, CellFollower, Configure, Decision, HeadPolicy, Overflow, PerVc, View};
use crate::error::Fault;
use crate::index::Label;
use crate::rng::Stream;
use crate::units::Duration;
use events::Running;
use rules::Rules;

/// A user-defined policy: a condition for starting a frame, constants, and state that is kept between evaluations.
///
/// Source: the scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Formula")]
pub struct Table {
    /// A frame may start if this condition holds: `X <= R or Y * N / X <= Z`.
    #[schemars(extend("x-expect" = "a formula, such as \"X <= 0.9 * K\""))]
    pub admit: String,
    /// Constants by name: each one is a number, a formula of constants, or a table of numbers keyed by VC name.
    #[serde(default)]
    pub constants: BTreeMap<String, Constant>,
    /// State variables of the port, by name, each with its initial value.
    #[serde(default)]
    pub state: BTreeMap<String, Start>,
    /// State variables of each VC, by name, each with its initial value.
    #[serde(default)]
    pub vc_state: BTreeMap<String, Start>,
    /// New values of the state variables when the first cell of a frame arrives, before the policy accepts or refuses the
    /// frame.
    #[serde(default)]
    pub on_frame: BTreeMap<String, String>,
    /// New values of the state variables when a frame is admitted.
    #[serde(default)]
    pub on_admission: BTreeMap<String, String>,
    /// New values of the state variables when a frame is refused.
    #[serde(default)]
    pub on_refusal: BTreeMap<String, String>,
    /// New values of the state variables when a cell leaves the queue.
    #[serde(default)]
    pub on_departure: BTreeMap<String, String>,
    /// New values of the state variables after every `every` cells that enter the queue.
    #[serde(default)]
    pub on_cells: BTreeMap<String, String>,
    /// Number of cells that enter the queue between two `on_cells` updates.
    #[serde(default)]
    #[schemars(range(min = 1), extend("x-unit" = "cells", "x-expect" = "a whole number of cells (1 to 4294967295)"))]
    pub every: Option<u32>,
    /// New values of the state variables when a frame reaches the head of the queue, before it is sent or dropped.
    #[serde(default)]
    pub on_head: BTreeMap<String, String>,
    /// A frame is dropped at the head of the queue if this condition holds: `sojourn > 20 ms`. If absent, no frame is
    /// dropped there.
    #[serde(default)]
    #[schemars(extend("x-expect" = "a formula, such as \"sojourn > 20 ms\""))]
    pub drop_head: Option<String>,
    /// New values of the state variables when a frame is dropped at the head of the queue.
    #[serde(default)]
    pub on_drop: BTreeMap<String, String>,
    /// New values of the state variables when a frame at the head of the queue is sent.
    #[serde(default)]
    pub on_send: BTreeMap<String, String>,
    /// New values of state at each multiple of `period`.
    #[serde(default)]
    pub on_period: BTreeMap<String, String>,
    /// Time between two `on_period` updates.
    #[serde(default)]
    pub period: Option<Duration>,
    /// What is lost if a cell of an admitted frame finds no room.
    #[serde(default)]
    pub when_full: WhenFull,
}

/// The table of a scenario. It is boxed because every port stores an enum of the size of its largest variant.
pub type Config = Box<Table>;

/// What is lost if a cell of an admitted frame finds no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// Partial packet discard: the rest of the frame is refused, except for the last cell.
    #[default]
    LoseRestOfFrame,
    /// Tail drop: only this cell is lost.
    LoseCell,
    /// Drop from front: the cell nearest to transmission makes room.
    PushOutFront,
}

impl WhenFull {
    /// Returns the overflow behaviour of a policy with this setting.
    pub(super) fn overflow(self) -> Overflow {
        match self {
            Self::LoseRestOfFrame => Overflow::LoseRestOfFrame { keep_last_cell: true },
            Self::LoseCell => Overflow::LoseCell,
            Self::PushOutFront => Overflow::PushOutFront,
        }
    }
}

/// The policy with its state.
#[derive(Debug)]
pub struct Formula {
    config: Config,
    capacity: u32,
    vcs: Vec<String>,
    /// True if formulas see frames at the head of the queue, or the time between frames.
    sees_time: bool,
    /// The compiled formulas. Created when the port is known, or on first use before that. Compiling formulas takes as
    /// long as deciding about a few hundred frames.
    running: OnceCell<Running>,
}

impl Formula {
    fn running(&self) -> &Running {
        self.running.get_or_init(|| {
            let port_info = PortInfo { capacity: Some(self.capacity), ..PortInfo::unknown() };
            let running = Running::new(&self.config, &port_info, &self.vcs);
            running.unwrap_or_else(|_| Running::admits_all(&self.config, &port_info))
        })
    }

    #[inline]
    fn running_mut(&mut self) -> &mut Running {
        if self.running.get().is_none() {
            self.running();
        }
        self.running.get_mut().expect("the program was created in the line above")
    }
}

impl Configure for Config {
    type Policy = Formula;

    fn check(&self, capacity: Option<u32>, vcs: &[&str]) -> Vec<Fault> {
        let port_info = PortInfo { capacity, ..PortInfo::unknown() };
        let faults = |vcs| Rules::of(self, &port_info, vcs).err().unwrap_or_default();
        if vcs.is_empty() {
            return [self.occasions(), faults(None)].concat();
        }
        // Compiling formulas is slow, so they are compiled a second time, without VCs, only to report faults.
        let of_vcs = faults(Some(vcs));
        if of_vcs.is_empty() || self.check(capacity, &[]).is_empty() { of_vcs } else { Vec::new() }
    }

    fn build(&self, capacity: u32, vcs: &[&str]) -> Formula {
        let vcs = vcs.iter().map(ToString::to_string).collect();
        Formula { running: OnceCell::new(), config: self.clone(), capacity, vcs, sees_time: self.sees_time() }
    }
}

impl BufferPolicy for Formula {
    fn at_port(&mut self, port_info: &PortInfo<'_>) {
        let port_info = PortInfo { capacity: Some(self.capacity), ..*port_info };
        // The names of VCs use much memory and are needed only once.
        let vcs = std::mem::take(&mut self.vcs);
        let running = Running::new(&self.config, &port_info, &vcs);
        debug_assert!(vcs.is_empty() || running.is_ok(), "formulas of a checked scenario can be read: {running:?}");
        self.running = running.unwrap_or_else(|_| Running::admits_all(&self.config, &port_info)).into();
    }

    #[inline]
    fn admit_frame(&mut self, buffer: &View<'_>, vc: Label, rng: &mut Stream) -> bool {
        self.running_mut().admits(buffer, vc, rng)
    }

    fn overflow(&self) -> Overflow {
        self.config.when_full.overflow()
    }

    fn admits_up_to(&self) -> Option<u32> {
        if self.sees_time { None } else { self.running().admits_up_to() }
    }

    fn reads_counts(&self) -> bool {
        self.running().rules.reads_counts()
    }

    fn reads_own_view(&self) -> bool {
        !self.sees_time && self.running().rules.reads_own_view()
    }

    fn follower(&mut self) -> Option<&mut dyn CellFollower> {
        if !self.sees_time && self.config.follows_cells() { Some(self.running_mut()) } else { None }
    }

    fn head_policy(&mut self) -> Option<&mut dyn HeadPolicy> {
        if self.sees_time { Some(self.running_mut()) } else { None }
    }

    fn explain(&self, _buffer: &View<'_>, _vc: Label) -> Decision {
        let rule = if self.running().rules.admits_all() { "" } else { "the condition admit does not hold" };
        Decision { rule, ..Decision::default() }
    }
}

impl Formula {
    /// Returns the policy's formulas, if the policy is written as formulas.
    pub fn of(policy: &dyn BufferPolicy) -> Option<&Self> {
        (super::not_capable::inner(policy) as &dyn Any).downcast_ref()
    }

    /// Lists the clauses of `admit` that caused the refusal of the frame of VC `vc`. Called right after
    /// [`admit_frame`](BufferPolicy::admit_frame) returned false. `port_info` and `vcs` must be the same as when the
    /// port was built.
    pub fn why_refused(&self, port_info: &PortInfo<'_>, vcs: &[&str], vc: Label) -> Vec<Clause> {
        let port_info = PortInfo { capacity: Some(self.capacity), ..*port_info };
        Rules::why_not(&self.config, &port_info, vcs, &self.running().registers_of(vc))
    }

    /// Returns how many formula results have been replaced because they were NaN or infinite.
    pub(crate) fn replaced_results(&self) -> u64 {
        self.running().replaced
    }
}

impl Table {
    pub(super) fn constants_by_vc(&self) -> Vec<(&str, &PerVc)> {
        constants_by_vc(&self.constants)
    }

    /// Returns whether a formula uses the number of VCs. Storing the VCs of every port takes memory, so they are stored
    /// only for such formulas.
    pub(super) fn counts_vcs(&self) -> bool {
        self.texts(&self.questions(), &self.events()).use_name("V")
    }

    /// For each key of a table, returns the names that no formula uses.
    pub(super) fn unused(&self) -> Vec<String> {
        self.texts(&self.questions(), &self.events()).unused()
    }

    /// Returns the formulas that make decisions, each with its key and the kind of its result.
    fn questions(&self) -> Vec<(&'static str, &str, Kind)> {
        let drop_head = self.drop_head.as_deref().map(|text| ("drop_head", text, Kind::Truth));
        [("admit", &*self.admit, Kind::Truth)].into_iter().chain(drop_head).collect()
    }

    /// Returns all formulas, for compilation when the VCs are not known.
    fn texts<'a>(
        &'a self,
        questions: &'a [(&'static str, &'a str, Kind)],
        events: &'a [(&'static str, &'a BTreeMap<String, String>)],
    ) -> Texts<'a> {
        Texts {
            constants: &self.constants,
            state: &self.state,
            vc_state: &self.vc_state,
            questions,
            events,
            vcs: None,
            first: names::FIRST_OWN,
        }
    }

    /// Returns whether single cells change the policy's state.
    fn follows_cells(&self) -> bool {
        !self.on_departure.is_empty() || !self.on_cells.is_empty()
    }

    /// Returns whether formulas see frames at the head of the queue, or the time between frames.
    fn sees_time(&self) -> bool {
        let tables = [&self.on_head, &self.on_drop, &self.on_send, &self.on_period];
        self.drop_head.is_some() || tables.into_iter().any(|table| !table.is_empty())
    }

    /// Returns the tables of new state values, by event.
    fn events(&self) -> [(&'static str, &BTreeMap<String, String>); 9] {
        [
            ("on_frame", &self.on_frame),
            ("on_admission", &self.on_admission),
            ("on_refusal", &self.on_refusal),
            ("on_departure", &self.on_departure),
            ("on_cells", &self.on_cells),
            ("on_head", &self.on_head),
            ("on_drop", &self.on_drop),
            ("on_send", &self.on_send),
            ("on_period", &self.on_period),
        ]
    }

    /// Checks that each occasion on which formulas are evaluated exists.
    fn occasions(&self) -> Vec<Fault> {
        let mut faults = self.occasions_in_time();
        match (self.every, self.on_cells.is_empty()) {
            (None, false) => {
                faults.push(Fault::new(
                    "every",
                    "",
                    "is missing; it sets the number of cells after which on_cells is \
                                                     evaluated",
                ));
            }
            (Some(every), true) => {
                faults.push(Fault::new(
                    "every",
                    every,
                    "sets how often on_cells is evaluated, but there is no on_cells",
                ));
            }
            _ => {}
        }
        if self.when_full == WhenFull::PushOutFront && self.follows_cells() {
            let problem =
                "takes cells out of the queue, but on_departure and on_cells track the queue; choose one of them";
            faults.push(Fault::new("when_full", "\"push_out_front\"", problem));
        } else if self.when_full == WhenFull::PushOutFront && self.sees_time() {
            let problem = "takes cells out of the queue, but drop_head and on_head need whole frames at its head; choose \
                           another value, or leave out on_head, drop_head, on_drop, on_send and on_period";
            faults.push(Fault::new("when_full", "\"push_out_front\"", problem));
        }
        faults
    }

    fn occasions_in_time(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        match (self.period, self.on_period.is_empty()) {
            (None, false) => {
                faults.push(Fault::new("period", "", "is missing; it sets the time between evaluations of on_period"));
            }
            (Some(period), true) => {
                let problem = "sets how often on_period is evaluated, but there is no on_period";
                faults.push(Fault::new("period", format!("\"{period}\""), problem));
            }
            (Some(period), false) if period < SHORTEST_PERIOD => {
                let problem = format!("is too short; it must be at least {SHORTEST_PERIOD}");
                faults.push(Fault::new("period", format!("\"{period}\""), problem));
            }
            _ => {}
        }
        for (key, table) in [("on_drop", &self.on_drop), ("on_send", &self.on_send)] {
            if self.drop_head.is_none() && !table.is_empty() {
                let problem =
                    "needs drop_head, which decides if a frame is dropped or sent; add drop_head, or use on_head";
                faults.push(Fault::new(key, "", problem));
            }
        }
        faults
    }
}

/// Shortest period, so that the updates of a long idle time take little time.
const SHORTEST_PERIOD: Duration = Duration::from_microseconds(1);

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(_capacity: u32) -> Config {
    let updates = |entries: &[(&str, &str)]| -> BTreeMap<String, String> {
        entries.iter().map(|(name, text)| ((*name).to_string(), (*text).to_string())).collect()
    };
    let number = |value| Constant::Value(PerVc::Same(value));
    let table = Table {
        admit: "average <= R or Y * N <= Z * X".into(),
        constants: [
            ("R".to_string(), Constant::Formula("0.5 * K".into())),
            ("Z".to_string(), number(0.8)),
            ("w".to_string(), number(0.25)),
        ]
        .into(),
        state: [("average".to_string(), Start::Number(0.0))].into(),
        on_frame: updates(&[("average", "average + w * (X - average)")]),
        ..Table::default()
    };
    table.into()
}

#[cfg(test)]
mod tests;
