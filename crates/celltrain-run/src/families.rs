//! Families of runs: runs of a batch that may have equal results, because their cases differ only in buffers, shared
//! memories and policies, and in seeds if the order of ties is not random.
//!
//! Source: `docs/design/certificates.md`. The least restrictive run of a family, its *leader*, is run first and records
//! the decisions of its policies. The runs of a family that have the same seed and the same kinds of policies at ports
//! are a *group*, led by its least restrictive run. If the [certificate](celltrain_core::certificate) of the leader of
//! its group or family covers a run, the leader's result is copied to the run. Otherwise the run is executed. So the
//! set of copied rows does not depend on the number of threads.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::atomic::{self, AtomicBool};
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
pub(crate) struct Part<'a> {
    /// Index of the run in its batch.
    pub(crate) index: usize,
    /// Finished runs whose results may be copied to this run.
    pub(crate) follows: &'a [Arc<Known>],
    /// If the results of this run may be copied to other runs, the place in which this run is stored when it has
    /// finished.
    pub(crate) leads: Option<&'a Mutex<Option<Arc<Known>>>>,
}

/// Whether the leader of a family or group has ended.
#[derive(Default)]
enum State {
    #[default]
    Running,
    /// The leader has ended. The value is the leader's run, if the run has a certificate.
    Ended(Option<Arc<Known>>),
}

/// The leader of a family or group, for the runs that wait for it.
#[derive(Default)]
struct Leader {
    state: Mutex<State>,
    ended: Condvar,
}

impl Leader {
    fn end(&self, known: Option<Arc<Known>>) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Ended(known);
        self.ended.notify_all();
    }

    /// Waits until the leader has ended or the batch is stopped.
    fn wait(&self, stopped: &AtomicBool) -> Option<Arc<Known>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*state {
                State::Ended(known) => return known.clone(),
                State::Running if stopped.load(atomic::Ordering::Relaxed) => return None,
                State::Running => {
                    state = self.ended.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }
}

/// Numbers of the leaders of a run's family and group.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    family: Option<usize>,
    group: Option<usize>,
    /// The family or group that the run itself leads.
    leads: Option<usize>,
}

/// The families of a batch, and the order in which the runs of the batch start: each run after its leaders.
pub(crate) struct Families {
    order: Vec<(usize, Place)>,
    leaders: Vec<Leader>,
}

impl Families {
    /// Creates the order of a batch whose runs belong to no families.
    pub(crate) fn none(runs: usize) -> Self {
        Self { order: (0..runs).map(|run| (run, Place::default())).collect(), leaders: Vec::new() }
    }

    /// Finds the families of a batch. A run is given as the index of its case and its seed.
    pub(crate) fn of(cases: &[&Handle], runs: &[(usize, u64)]) -> Self {
        let outlines: Vec<Outlined> = cases.iter().map(|case| Outlined::of(case)).collect();
        let room = |&index: &usize| outlines[runs[index].0].room;
        // `max_by` returns the last of several largest elements, but the first run of the batch should lead.
        let least_restrictive = |members: &[usize]| {
            let by_room = |a: &&usize, b: &&usize| room(a).partial_cmp(&room(b)).unwrap_or(Ordering::Equal);
            members.iter().rev().max_by(by_room).copied().filter(|_| members.len() > 1)
        };
        let mut families: BTreeMap<_, BTreeMap<_, Vec<usize>>> = BTreeMap::new();
        for (index, &(case, seed)) in runs.iter().enumerate() {
            let Outlined { outline, kinds, random_ties, .. } = &outlines[case];
            let family = families.entry((outline, random_ties.then_some(seed))).or_default();
            family.entry((kinds, seed)).or_default().push(index);
        }
        let mut places = vec![Place::default(); runs.len()];
        let mut leaders = Vec::new();
        let mut lead = |place: &mut Place| {
            leaders.push(Leader::default());
            *place.leads.insert(leaders.len() - 1)
        };
        for groups in families.into_values() {
            let mut members: Vec<usize> = groups.values().flatten().copied().collect();
            members.sort_unstable();
            let Some(first) = least_restrictive(&members) else { continue };
            let family = lead(&mut places[first]);
            for members in groups.into_values() {
                let group = least_restrictive(&members).filter(|_| !members.contains(&first));
                let number = group.map(|group| lead(&mut places[group]));
                for member in members.into_iter().filter(|&member| member != first) {
                    places[member].family = Some(family);
                    places[member].group = number.filter(|_| Some(member) != group);
                }
            }
        }
        let mut order: Vec<_> = places.into_iter().enumerate().collect();
        order.sort_by_key(|(_, place)| match place {
            Place { family: None, leads: Some(_), .. } => 0,
            Place { family: None, leads: None, .. } => 1,
            Place { leads: Some(_), .. } => 2,
            Place { .. } => 3,
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
        let (index, Place { family, group, leads }) = self.order[position];
        // Leaders start before their followers, so a leader has ended or another thread is running it.
        let followed = [group, family].into_iter().flatten();
        let mut follows: Vec<_> = followed.filter_map(|leader| self.leaders[leader].wait(stopped)).collect();
        follows.dedup_by(|a, b| Arc::ptr_eq(a, b));
        let known = Mutex::new(None);
        let part = Part { index, follows: &follows, leads: leads.map(|_| &known) };
        let done = execute((leads.is_some() || !follows.is_empty()).then_some(part));
        if let Some(leads) = leads {
            self.leaders[leads].end(known.into_inner().unwrap_or_else(PoisonError::into_inner));
        }
        done
    }
}

/// A case without the settings that certificates cover.
struct Outlined {
    outline: String,
    /// Names of the policies of ports.
    kinds: Vec<String>,
    /// True if the seed decides the order of cells that arrive at the same instant.
    random_ties: bool,
    /// The room in the case's ports and memories: cells of memories, their largest alpha, cells of buffers, and cells
    /// of thresholds. The case with the largest numbers is the least restrictive case.
    room: [f64; 4],
}

impl Outlined {
    fn of(case: &Handle) -> Self {
        let mut scenario = case.case();
        let random_ties = matches!(scenario["switch"]["tie_order"].as_str(), None | Some("random"));
        let (mut room, mut kinds) = ([0.0; 4], Vec::new());
        for port in tables(&mut scenario, "port") {
            let cells = cells(&taken(port, "buffer"));
            room[2] += cells;
            let policy = taken(port, "policy");
            room[3] += threshold(&policy, cells);
            kinds.extend(name(&policy));
        }
        for memory in tables(&mut scenario, "switch").filter_map(|switch| switch.get_mut("memory")) {
            room[0] += cells(&taken(memory, "cells"));
            for pool in tables(memory, "pool") {
                room[1] += alpha(&taken(pool, "policy"));
            }
        }
        Self { outline: scenario.to_string(), kinds, random_ties, room }
    }
}

/// Returns the tables under a key of a table, such as all tables `[port.NAME]`.
fn tables<'a>(table: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    table.get_mut(key).and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut)
}

/// Removes a setting from a table and returns its value.
fn taken(table: &mut Value, key: &str) -> Value {
    table.get_mut(key).map(Value::take).unwrap_or_default()
}

/// Returns the name of a policy.
fn name(policy: &Value) -> Option<String> {
    policy.as_object()?.keys().next().cloned()
}

/// Returns the size of a buffer or memory in cells; infinity if the size is not a number.
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
