//! Checks of requests: their TCP, and the load that they put on links.

use celltrain_core::index::LinkIndex;
use celltrain_core::requests::{Arrivals, RequestGroup};
use celltrain_core::tcp::TickPhase;
use celltrain_core::units::Duration;
use typed_index_collections::TiVec;

use crate::build::ResolvedScenario;
use crate::document::join;
use crate::fault::Warning;
use crate::requests::{Table, kind_of, utilisation};
use crate::scenario::Scenario;
use crate::scope::Scope;

/// Checks that the connections of requests can use their TCP or stack. If each connection had its own phase of ticks, it would
/// need its own clock, and a run has millions of connections.
pub(super) fn tcp(scenario: &Scenario, root: &mut Scope<'_>) {
    let problem = "gives each connection its own clock, which is not possible for requests; write \"common\"";
    for (kind, name, table) in Table::all(scenario) {
        if let Some(stack) = table.stack(scenario) {
            if !table.has_handshake() {
                let problem =
                    format!("is not possible with stack.{}, which opens its connections; leave it out", stack.name());
                root.at(kind).at(name).at("handshake").refuse_value(false, problem);
            }
            continue;
        }
        if let (Some(stack), Some(tcp)) = (table.own_stack(), table.tcp()) {
            let problem = format!(
                "is a second transport for the requests, in addition to [{kind}.{name}.tcp.{}]; choose one of the two",
                tcp.name()
            );
            root.at(kind).at(name).at("stack").at(stack.name()).refuse(problem);
        }
        let tcp = table.tcp().unwrap_or(&scenario.tcp);
        if tcp.options().timer_rules().tick_phase != TickPhase::Random {
            continue;
        }
        let refuse = |scope: &mut Scope<'_>| {
            scope.at("timer").at("tick_phase").once(|scope| scope.refuse_text("random", problem));
        };
        match table.tcp() {
            Some(_) => refuse(&mut root.at(kind).at(name).at("tcp").at(tcp.name())),
            None => refuse(&mut root.at("tcp").at(tcp.name())),
        }
    }
}

pub(super) fn classes(scenario: &Scenario, root: &mut Scope<'_>) {
    let (short, long) = (scenario.measure.short(), scenario.measure.long());
    let mut measure = root.at("measure");
    if short > long {
        let key = if scenario.measure.short_requests.is_some() { "short_requests" } else { "long_requests" };
        let (value, other) = if key == "short_requests" {
            (short, format!("is above long_requests; write at most {long}"))
        } else {
            (long, format!("is below short_requests; write at least {short}"))
        };
        measure.at(key).refuse_text(value, other);
    }
}

/// Warns of requests that need more than the rate of a link, so that connections accumulate as long as the run lasts.
pub(super) fn loads(resolved: &ResolvedScenario<'_>, warnings: &mut Vec<Warning>) {
    let ResolvedScenario { scenario, layout, channels, requests, .. } = resolved;
    let framing = scenario.framing();
    let by_group: Vec<TiVec<LinkIndex, f64>> =
        (requests.groups.iter()).map(|group| utilisation(group, (layout, channels), (requests, &framing))).collect();
    let sum = |link: LinkIndex| by_group.iter().map(|taken| taken[link]).sum::<f64>();
    let busiest = layout.graph.links.keys().max_by(|&a, &b| sum(a).total_cmp(&sum(b)).then(b.cmp(&a)));
    let Some(busiest) = busiest.filter(|&link| sum(link) > 1.0) else { return };
    // The advice concerns the group with the largest load on the link.
    let most = by_group.iter().zip(&requests.groups).max_by(|(a, _), (b, _)| a[busiest].total_cmp(&b[busiest]));
    let Some((own, group)) = most else { return };
    let stretch = |link: LinkIndex| (1.0 - (sum(link) - own[link])) / own[link];
    let least = layout.graph.links.keys().filter(|&link| own[link] > 0.0).map(stretch).fold(f64::INFINITY, f64::min);
    let (key, value, advice) = remedy(group, least, scenario);
    let key = join(&join(kind_of(group), &group.name), key);
    let message = format!(
        "{key} = {value}: requests are expected to need {:.1} % of the rate of {}, acknowledgements included, so that open \
         connections accumulate as long as the run lasts. {advice}",
        sum(busiest) * 100.0,
        layout.graph.links[busiest].name
    );
    warnings.push(Warning { key, message });
}

/// Returns the setting of a group that determines its load, the setting's value, and advice. `factor` is the largest
/// factor by which the number of requests may be multiplied.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is positive and was checked to be below the limit"
)]
fn remedy(group: &RequestGroup, factor: f64, scenario: &Scenario) -> (&'static str, String, String) {
    let others = "The other requests alone exceed the rate of the link.".to_string();
    match &group.arrivals {
        Arrivals::Poisson { .. } => {
            let load = scenario.requests.get(&group.name).map_or(0.0, |own| own.load);
            // Round down to three digits, so that the load is stable.
            let stable = (load * factor * 1e3).floor() / 1e3;
            let advice = if factor > 0.0 { format!("The largest stable load is {stable}.") } else { others };
            ("load", load.to_string(), advice)
        }
        Arrivals::Incast { interval, .. } => {
            let picoseconds = interval.picoseconds as f64 / factor;
            let microseconds = (picoseconds / 1e6).ceil();
            let shortest = Duration::from_microseconds(microseconds as u64);
            let advice = if factor > 0.0 { format!("The shortest stable interval is {shortest}.") } else { others };
            ("interval", format!("\"{interval}\""), advice)
        }
    }
}
