//! Families of runs: groups of runs in a batch that may have the same result, because their cases differ only in
//! buffers, shared memories and policies.
//!
//! Source: `docs/design/certificates.md`. The least restrictive run of a family, its *leader*, is run first and records
//! the decisions of its policies. Each other run of the family is filled from the leader if the leader's
//! [certificate](celltrain_core::certificate) covers it, and is run otherwise. So the filled rows do not depend on the
//! number of threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use celltrain_core::certificate::Certificate;
use celltrain_core::metrics::UnmetRule;
use celltrain_core::policy::PolicyConfig;
use serde_json::{Map, Value};

use crate::scenario::Handle;
use crate::tables::EndedRun;
use crate::threads::LOOK;

/// A finished run and its certificate.
pub(crate) struct Known {
    /// Index of the run in its batch.
    pub(crate) index: usize,
    pub(crate) certificate: Certificate,
    pub(crate) run: EndedRun,
    pub(crate) unmet: Vec<UnmetRule>,
}

/// The task of a run in its family.
#[derive(Clone, Copy)]
pub(crate) enum Part<'a> {
    /// The run records its decisions for the others.
    Leads(&'a Mutex<Option<Known>>, usize),
    /// The run's row may be filled from another run.
    Follows(&'a Known),
}

/// The state of a leader.
#[derive(Default)]
enum State {
    #[default]
    Running,
    /// The leader has ended; its result, if it has a certificate.
    Ended(Option<Arc<Known>>),
}

/// The leader of a family, for the runs that wait for it.
#[derive(Default)]
struct Leader {
    state: Mutex<State>,
    ended: Condvar,
}

impl Leader {
    fn end(&self, known: Option<Known>) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Ended(known.map(Arc::new));
        self.ended.notify_all();
    }

    /// Waits until the leader has ended, unless the batch is stopped.
    fn wait(&self, stopped: &AtomicBool) -> Option<Arc<Known>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*state {
                State::Ended(known) => return known.clone(),
                State::Running if stopped.load(Ordering::Relaxed) => return None,
                State::Running => {
                    state = self.ended.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }
}

/// A run and its place in a family.
#[derive(Clone, Copy)]
enum Place {
    Alone,
    Leader(usize),
    Member(usize),
}

/// The families of a batch, and the order in which its runs start: leaders first, members last.
pub(crate) struct Families {
    order: Vec<(usize, Place)>,
    leaders: Vec<Leader>,
}

impl Families {
    /// Creates a batch without families.
    pub(crate) fn none(runs: usize) -> Self {
        Self { order: (0..runs).map(|run| (run, Place::Alone)).collect(), leaders: Vec::new() }
    }

    /// Finds the families of a batch. Each run is the index of its case, and its seed.
    pub(crate) fn of(cases: &[&Handle], runs: &[(usize, u64)]) -> Self {
        let outlines: Vec<Outlined> = cases.iter().map(|case| Outlined::of(case)).collect();
        let mut members: BTreeMap<(&str, u64), Vec<usize>> = BTreeMap::new();
        for (index, &(case, seed)) in runs.iter().enumerate() {
            members.entry((&outlines[case].outline, seed)).or_default().push(index);
        }
        let mut places = vec![Place::Alone; runs.len()];
        let mut leaders = Vec::new();
        for members in members.into_values().filter(|members| members.len() > 1) {
            let room = |&index: &usize| outlines[runs[index].0].room;
            // `max_by` returns the last of several; the first run of a batch should lead.
            let leader =
                members.iter().rev().max_by(|a, b| room(a).partial_cmp(&room(b)).unwrap_or(std::cmp::Ordering::Equal));
            for &member in &members {
                places[member] =
                    if Some(&member) == leader { Place::Leader(leaders.len()) } else { Place::Member(leaders.len()) };
            }
            leaders.push(Leader::default());
        }
        let mut order: Vec<_> = places.into_iter().enumerate().collect();
        order.sort_by_key(|(_, place)| match place {
            Place::Leader(_) => 0,
            Place::Alone => 1,
            Place::Member(_) => 2,
        });
        Self { order, leaders }
    }

    /// Returns the run that starts as number `position`.
    pub(crate) fn run_at(&self, position: usize) -> usize {
        self.order[position].0
    }

    /// Executes the run that starts as number `position`. `execute` receives the task of the run in its family.
    pub(crate) fn execute<T>(
        &self,
        position: usize,
        stopped: &AtomicBool,
        execute: impl FnOnce(Option<Part<'_>>) -> T,
    ) -> T {
        let (index, place) = self.order[position];
        match place {
            Place::Alone => execute(None),
            Place::Leader(family) => {
                let known = Mutex::new(None);
                let done = execute(Some(Part::Leads(&known, index)));
                self.leaders[family].end(known.into_inner().unwrap_or_else(PoisonError::into_inner));
                done
            }
            // Leaders start first, so a leader has ended or another thread is running it.
            Place::Member(family) => match self.leaders[family].wait(stopped) {
                Some(known) => execute(Some(Part::Follows(&known))),
                None => execute(None),
            },
        }
    }
}

/// A case without the settings that certificates cover.
struct Outlined {
    outline: String,
    /// The room in its ports and memories: cells of memories, their largest alpha, cells of buffers, and cells of
    /// thresholds. The case with the largest numbers is the least restrictive.
    room: [f64; 4],
}

impl Outlined {
    fn of(case: &Handle) -> Self {
        let mut scenario = case.case();
        let mut room = [0.0; 4];
        for port in tables(&mut scenario, "port") {
            let cells = cells(&taken(port, "buffer"));
            room[2] += cells;
            room[3] += threshold(&taken(port, "policy"), cells);
        }
        for memory in tables(&mut scenario, "switch").filter_map(|switch| switch.get_mut("memory")) {
            room[0] += cells(&taken(memory, "cells"));
            for pool in tables(memory, "pool") {
                room[1] += alpha(&taken(pool, "policy"));
            }
        }
        Self { outline: scenario.to_string(), room }
    }
}

/// Returns the tables in a table of tables; none if there are no such tables.
fn tables<'a>(table: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    table.get_mut(key).and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut)
}

/// Removes a setting from a table.
fn taken(table: &mut Value, key: &str) -> Value {
    table.get_mut(key).map(Value::take).unwrap_or_default()
}

/// Returns the size of a buffer or memory; infinite if it is not a number.
fn cells(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::INFINITY)
}

/// Returns the alpha of a pool's policy, or a large number for a policy without alpha.
fn alpha(policy: &Value) -> f64 {
    let settings = policy.as_object().and_then(|policies| policies.values().next());
    settings.and_then(|settings| settings["alpha"].as_f64()).unwrap_or(1e9)
}

/// Returns the number of cells up to which a port's policy admits every frame.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an infinite buffer has no capacity")]
fn threshold(policy: &Value, cells: f64) -> f64 {
    let capacity = cells.is_finite().then_some(cells as u32);
    let policy: Option<PolicyConfig> = serde_json::from_value(policy.clone()).ok();
    policy.and_then(|policy| policy.threshold_cells(capacity)).map_or(cells, f64::from)
}
