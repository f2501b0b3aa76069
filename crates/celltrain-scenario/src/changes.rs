//! Links whose rate or delay changes. This module checks the tables of such links, and converts them to changes in the
//! network.

use celltrain_core::aal5::Framing;
use celltrain_core::index::{LinkIndex, MemoryIndex};
use celltrain_core::link_changes::{
    DelayChange, Distribution, Jitter, LinkChanges, OPPORTUNITY_BYTES, RateChange, Reordering, Trace, Walk,
};
use celltrain_core::memory::{MemoryConfig, Pauses};
use celltrain_core::network::NodeKind;
use celltrain_core::units::{BitRate, Duration};
use celltrain_core::wire::Wire;
use typed_index_collections::TiSlice;

use crate::change_options::{
    DelayChangeOptions, DelayStep, JitterDistribution, JitterOptions, RateChangeOptions, RateStep, ReorderOptions,
};
use crate::scenario::{LinkOptions, Scenario};
use crate::scope::Scope;
use crate::topology::Layout;
use crate::topology::links::{check_delay, check_rate};

/// The changes of a link, with the link's highest rate and shortest delay.
pub(crate) struct ChangedLink {
    pub(crate) changes: LinkChanges,
    pub(crate) rate: BitRate,
    pub(crate) delay: Duration,
}

/// A walk of more steps than this is probably an error in the unit.
const MOST_STEPS: u64 = 10_000_000;
/// Maximum length of a trace, as long as the longest run.
const LONGEST_TRACE_MS: u64 = 1_000_000_000;

/// Returns the names of the keys that change a link, and for each key whether the link has it.
pub(crate) fn keys(options: &LinkOptions) -> [(&'static str, bool); 4] {
    let LinkOptions { rate_change, delay_change, jitter, reorder, .. } = options;
    [
        ("rate_change", rate_change.is_some()),
        ("delay_change", delay_change.is_some()),
        ("jitter", jitter.is_some()),
        ("reorder", reorder.is_some()),
    ]
}

/// Returns the changes of a link; `None` if the link has no changes or its table has faults.
pub(crate) fn resolve(
    scenario: &Scenario,
    layout: &Layout,
    memories: &TiSlice<MemoryIndex, MemoryConfig>,
    link: LinkIndex,
    options: &LinkOptions,
    scope: &mut Scope<'_>,
) -> Option<ChangedLink> {
    let (key, _) = keys(options).into_iter().find(|&(_, is_there)| is_there)?;
    if scope.at(key).is_malformed() {
        return None;
    }
    let before = scope.found().count();
    check_place(scenario, layout, memories, link, options, key, scope);
    let own = &layout.graph.links[link];
    let mut of_link = ChangedLink { changes: LinkChanges::default(), rate: own.rate, delay: own.delay };
    if let Some(rate) = &options.rate_change {
        change_rate(scenario, rate, &mut of_link, &mut scope.at("rate_change"));
    }
    change_delays(scenario, options, &mut of_link, scope);
    (scope.found().count() == before).then_some(of_link)
}

/// Refuses changes of a link on which they would have no effect or are not supported.
fn check_place(
    scenario: &Scenario,
    layout: &Layout,
    memories: &TiSlice<MemoryIndex, MemoryConfig>,
    link: LinkIndex,
    options: &LinkOptions,
    key: &str,
    scope: &mut Scope<'_>,
) {
    let graph = &layout.graph;
    let ends = [graph.links[link].from, graph.links[link].to];
    if ends.iter().any(|&node| graph.nodes[node].kind == NodeKind::EdgeDevice) {
        scope
            .at(key)
            .refuse("is on a link of an edge device, which sends at the rates of its VCs; choose another link");
    }
    if memories.iter().any(|memory| memory.pauses == Pauses::Links) {
        let problem = "cannot be combined with memories that pause links, because headroom depends on rates and delays; \
                       leave out one of them";
        scope.at(key).refuse(problem);
    }
    if options.rate_change.is_some() && scenario.vc.values().any(|own| own.abr.is_some()) {
        let problem = "cannot be combined with ABR VCs, whose allocators divide a constant rate; leave out one of them";
        scope.at("rate_change").refuse(problem);
    }
    for (key, is_there) in keys(options).into_iter().skip(1) {
        if is_there && !options.delay.is_empty() {
            scope.at(key).refuse("cannot be combined with rules for the delay of packets; leave out one of them");
        }
    }
    if options.reorder.is_some() && scenario.framing().framing == Framing::Aal5 {
        let problem = "needs framing = \"packets\", because the cells of a VC keep their order (ITU-T I.150) and AAL5 \
                       joins packets whose cells mix; set this framing, or leave it out";
        scope.at("reorder").refuse(problem);
    }
}

/// Refuses changes of links that carry Ethernet frames.
pub(crate) fn check_wire(options: &LinkOptions, wire: Wire, scope: &mut Scope<'_>) {
    for (key, is_there) in keys(options) {
        if is_there && wire == Wire::Ethernet {
            let problem = "cannot be combined with wire = \"ethernet\", because such links change only whole cells; leave \
                           out one of them";
            scope.at(key).refuse(problem);
        }
    }
}

fn change_rate(scenario: &Scenario, options: &RateChangeOptions, of_link: &mut ChangedLink, scope: &mut Scope<'_>) {
    let own = of_link.rate;
    let change = match options {
        RateChangeOptions { steps: Some(steps), walk: None, trace: None } => {
            let mut list = scope.at("steps");
            check_times(steps.iter().map(|step| step.at), &mut list);
            for (number, step) in steps.iter().enumerate().filter(|(_, step)| step.rate.bits_per_second > 0) {
                check_rate("rate", step.rate, &mut list.item(number));
            }
            let starts_at_once = steps.first().is_some_and(|step| step.at == Duration::default());
            let rates = steps.iter().map(|step| step.rate);
            if starts_at_once && rates.clone().all(|rate| rate.bits_per_second == 0) {
                list.refuse("stops the link for the whole run; add a step with a rate above 0bps");
            }
            of_link.rate = rates.max().map_or(own, |most| most.max(own));
            let mut changes: Vec<_> = steps.iter().map(|&RateStep { at, rate }| (at, rate)).collect();
            if !starts_at_once {
                changes.insert(0, (Duration::default(), own));
            }
            changes.retain(|&(at, _)| at <= scenario.duration);
            RateChange::Steps(changes)
        }
        RateChangeOptions { steps: None, walk: Some(walk), trace: None } => {
            let mut scope = scope.at("walk");
            check_walk(scenario, walk.every, &mut scope);
            if walk.least.bits_per_second > 0 {
                check_rate("least", walk.least, &mut scope);
            }
            check_rate("most", walk.most, &mut scope);
            check_rate("step", walk.step, &mut scope);
            if walk.least > walk.most {
                scope.at("least").refuse_text(walk.least, format!("is above most, which is {}", walk.most));
                return;
            }
            of_link.rate = walk.most;
            let [least, most, step] = [walk.least, walk.most, walk.step].map(|rate| rate.bits_per_second);
            let first = own.bits_per_second.clamp(least, most);
            RateChange::Walk(Walk { every: walk.every, first, step, least, most })
        }
        RateChangeOptions { steps: None, walk: None, trace: Some(milliseconds) } => {
            let Some(trace) = trace(milliseconds, own, &mut scope.at("trace")) else { return };
            RateChange::Trace(trace)
        }
        _ => return scope.refuse("must have exactly one of steps, walk and trace"),
    };
    of_link.changes.rate = Some(change);
}

/// Returns a trace of delivery opportunities, and reports its faults.
fn trace(milliseconds: &[u64], rate: BitRate, scope: &mut Scope<'_>) -> Option<Trace> {
    let Some(&last) = milliseconds.last() else {
        scope.refuse("is empty; list milliseconds at which the link may deliver, such as [1, 2, 2, 5]");
        return None;
    };
    let pairs = std::iter::once(0).chain(milliseconds.iter().copied()).zip(milliseconds);
    if let Some((number, (before, &at))) = pairs.enumerate().find(|&(_, (before, &at))| at < before) {
        let problem = format!("goes backwards after {before}; a trace is in order, so write {before} or more");
        scope.item(number).refuse_value(at, problem);
        return None;
    }
    let end = milliseconds.len().saturating_sub(1);
    if last == 0 || last > LONGEST_TRACE_MS {
        let problem = format!("is the end of the trace, which must last from 1 to {LONGEST_TRACE_MS} milliseconds");
        scope.item(end).refuse_value(last, problem);
        return None;
    }
    let trace = Trace::new(milliseconds.to_vec())?;
    let mean = milliseconds.len() as f64 * (OPPORTUNITY_BYTES * 8) as f64 * 1e3 / last as f64;
    if mean > rate.bits_per_second as f64 {
        let problem = format!(
            "delivers {:.3} Mb/s on average, but cells leave at the link's rate of {rate}; give the link a higher rate",
            mean / 1e6
        );
        scope.refuse(problem);
        return None;
    }
    Some(trace)
}

fn change_delays(scenario: &Scenario, options: &LinkOptions, of_link: &mut ChangedLink, scope: &mut Scope<'_>) {
    let own = of_link.delay;
    let LinkOptions { delay_change, jitter, reorder, .. } = options;
    let mut least = own;
    if let Some(change) = delay_change {
        let mut scope = scope.at("delay_change");
        match change {
            DelayChangeOptions { steps: Some(steps), walk: None } => {
                let mut list = scope.at("steps");
                check_times(steps.iter().map(|step| step.at), &mut list);
                for (number, step) in steps.iter().enumerate() {
                    check_delay("delay", step.delay, &mut list.item(number));
                }
                let mut changes: Vec<_> = steps.iter().map(|&DelayStep { at, delay }| (at, delay)).collect();
                if steps.first().is_none_or(|step| step.at > Duration::default()) {
                    changes.insert(0, (Duration::default(), own));
                }
                changes.retain(|&(at, _)| at <= scenario.duration);
                least = changes.iter().map(|&(_, delay)| delay).min().unwrap_or(own);
                of_link.changes.delay = Some(DelayChange::Steps(changes));
            }
            DelayChangeOptions { steps: None, walk: Some(walk) } => {
                let mut scope = scope.at("walk");
                check_walk(scenario, walk.every, &mut scope);
                check_delay("most", walk.most, &mut scope);
                check_delay("step", walk.step, &mut scope);
                if walk.least > walk.most {
                    scope.at("least").refuse_text(walk.least, format!("is above most, which is {}", walk.most));
                    return;
                }
                least = walk.least;
                let [first, least, most, step] = [own, walk.least, walk.most, walk.step].map(|delay| delay.picoseconds);
                let first = first.clamp(least, most);
                of_link.changes.delay = Some(DelayChange::Walk(Walk { every: walk.every, first, step, least, most }));
            }
            _ => return scope.refuse("must have exactly one of steps and walk"),
        }
    }
    if let &Some(JitterOptions { by, distribution }) = jitter {
        check_delay("by", by, &mut scope.at("jitter"));
        if by == Duration::default() {
            scope.at("jitter").at("by").refuse_text(by, "must be above 0s");
        }
        let (distribution, most) = match distribution {
            JitterDistribution::Uniform => (Distribution::Uniform, by.picoseconds),
            JitterDistribution::Normal => (Distribution::Normal, by.picoseconds.saturating_mul(4)),
        };
        least.picoseconds = least.picoseconds.saturating_sub(most);
        of_link.changes.jitter = Some(Jitter { by, distribution });
    }
    if let &Some(ReorderOptions { probability, gap, delay }) = reorder {
        check_delay("delay", delay, &mut scope.at("reorder"));
        if delay >= own && delay_change.is_none() && jitter.is_none() {
            let problem =
                format!("is not below the link's delay of {own}, so no packet can overtake; write a shorter delay");
            scope.at("reorder").at("delay").refuse_text(delay, problem);
        }
        least = least.min(delay);
        of_link.changes.reordering = Some(Reordering { probability, gap });
    }
    if least < own && of_link.changes.delay.is_none() {
        of_link.changes.delay = Some(DelayChange::Steps(vec![(Duration::default(), own)]));
    }
    of_link.delay = least;
}

/// Refuses an empty list of changes, and changes that are not in order of time.
fn check_times(times: impl Iterator<Item = Duration>, list: &mut Scope<'_>) {
    let mut before: Option<Duration> = None;
    for (number, at) in times.enumerate() {
        if let Some(before) = before.filter(|&before| at <= before) {
            list.item(number).at("at").refuse_text(at, format!("must be later than the previous time, {before}"));
        }
        before = Some(at);
    }
    if before.is_none() {
        list.refuse("is empty; list changes with their times");
    }
}

fn check_walk(scenario: &Scenario, every: Duration, scope: &mut Scope<'_>) {
    let least = scenario.duration.picoseconds / MOST_STEPS;
    if every.picoseconds <= least {
        let least = Duration { picoseconds: least.saturating_add(1) };
        let problem = format!("is too short: a walk has at most {MOST_STEPS} steps, so write at least {least}");
        scope.at("every").refuse_text(every, problem);
    }
}
